//! What comes late or from elsewhere: lists, fills after an order's end, another person's orders, a split.

use serde_json::{Value, json};
use sim::web_broker::{Config, FaultKind, FaultSetting, Form, Server};

use crate::client::{Client, item, start};

fn with_shares() -> Server {
    let holdings = vec![("7203".to_owned(), 300)];
    Server::start(Config { form: Form::V4r8, holdings, ..Config::default() }).unwrap()
}

fn trade(server: &Server, price: &str, quantity: u64) {
    let one = json!({ "do": "trade", "issue": "7203", "price": price, "quantity": quantity });
    server.control(&one).unwrap();
}

fn detail(client: &mut Client, order: &(String, String)) -> Value {
    client.ask("CLMOrderListDetail", &json!({ "sOrderNumber": order.0, "sEigyouDay": order.1 }))
}

fn shares(client: &mut Client) -> Value {
    client.ask("CLMGenbutuKabuList", &json!({ "sIssueCode": "" }))["aGenbutuKabuList"][0]
        ["sUriOrderZanKabuSuryou"]
        .clone()
}

#[test]
fn late_lists_show_what_was() {
    let server = with_shares();
    let mut client = Client::logged_in(&server, Form::V4r8);
    let before = client.placed(&json!({ "sOrderPrice": "2840" }));
    // So late that nothing new is told within this test.
    server.control(&json!({ "do": "fault", "name": "late-lists", "value": 600_000 })).unwrap();
    let after = client.placed(&json!({ "sOrderPrice": "2839" }));
    trade(&server, "2840", 100);
    assert_eq!(client.status(&before), "1");
    assert_eq!(client.list().len(), 1);
    assert_ne!(detail(&mut client, &after)["sResultCode"], "0");
    assert_eq!(shares(&mut client), "300");
    // The broker itself is not late.
    assert_eq!(client.cancel(&before)["sResultCode"], "13294");
    assert_eq!(client.cancel(&after)["sResultCode"], "0");
    server.control(&json!({ "do": "clear-faults", "name": "late-lists" })).unwrap();
    assert_eq!((client.status(&before), client.status(&after)), ("10".to_owned(), "7".to_owned()));
    assert_eq!(shares(&mut client), "400");
    // Without a lag it changes nothing.
    server.control(&json!({ "do": "fault", "name": "late-lists", "value": 0 })).unwrap();
    let third = client.placed(&json!({ "sOrderPrice": "2838" }));
    assert_eq!(client.status(&third), "1");
    assert!(FaultSetting::new(FaultKind::LateLists, None, None, None).is_err());
    assert!(FaultSetting::new(FaultKind::LateLists, Some(600_001), None, None).is_err());
}

#[test]
fn late_lists_catch_up() {
    let server = with_shares();
    let mut client = Client::logged_in(&server, Form::V4r8);
    server.control(&json!({ "do": "fault", "name": "late-lists", "value": 50 })).unwrap();
    let order = client.placed(&json!({ "sOrderPrice": "2840" }));
    trade(&server, "2840", 100);
    while client.list().is_empty() || client.status(&order) != "10" {
        std::thread::yield_now();
    }
}

#[test]
fn a_fill_may_come_after_the_order_s_end() {
    let server = with_shares();
    let mut client = Client::logged_in(&server, Form::V4r8);
    let mut events = client.events();
    let order = client.placed(&json!({ "sOrderPrice": "2840", "sOrderSuryou": "300" }));
    let fill = |quantity: Value| json!({ "do": "late-fill", "number": order.0, "price": "2840", "quantity": quantity });
    assert!(server.control(&fill(json!(100))).unwrap_err().contains("not an order that ended"));
    assert_eq!(client.cancel(&order)["sResultCode"], "0");
    assert!(server.control(&fill(json!(301))).unwrap_err().contains("1 to 300"));
    server.control(&fill(json!(100))).unwrap();
    assert_eq!(events.kinds(3), ["1", "3", "11"]);
    let late = events.notice();
    assert_eq!((item(&late, "p_NT"), item(&late, "p_EXSR")), ("12", "100"));
    let row = client.list().remove(0);
    assert_eq!(
        (&row["sOrderStatusCode"], &row["sOrderYakuzyouSuryo"]),
        (&json!("7"), &json!("100"))
    );
    server.control(&fill(Value::Null)).unwrap();
    assert_eq!(client.status(&order), "10");
    assert_eq!(shares(&mut client), "600");
    assert!(server.control(&fill(json!(100))).is_err(), "nothing is left");
}

#[test]
fn a_fill_is_the_same_in_the_stream_the_list_and_the_details() {
    let server = with_shares();
    let mut client = Client::logged_in(&server, Form::V4r8);
    let mut events = client.events();
    let order = client.placed(&json!({ "sOrderPrice": "2840", "sOrderSuryou": "300" }));
    server.control(&json!({ "do": "fault", "name": "hold-notices" })).unwrap();
    trade(&server, "2840", 100);
    trade(&server, "2839", 200);
    // The list and the details have it before the stream does.
    let row = client.list().remove(0);
    assert_eq!(
        (&row["sOrderYakuzyouSuryo"], &row["sOrderYakuzyouPrice"]),
        (&json!("300"), &json!("2840.0000"))
    );
    let fills = detail(&mut client, &order)["aYakuzyouSikkouList"].clone();
    let of = |place: usize| {
        (fills[place]["sYakuzyouSuryou"].clone(), fills[place]["sYakuzyouPrice"].clone())
    };
    assert_eq!(
        [of(0), of(1)],
        [(json!("100"), json!("2840.0000")), (json!("200"), json!("2840.0000"))]
    );
    server.control(&json!({ "do": "release-notices" })).unwrap();
    assert_eq!(events.kinds(1), ["1"]);
    for quantity in ["100", "200"] {
        let notice = events.notice();
        assert_eq!((item(&notice, "p_EXSR"), item(&notice, "p_EXPR")), (quantity, "2840.000000"));
    }
}

#[test]
fn somebody_else_sells_on_the_account() {
    let server = with_shares();
    let mut client = Client::logged_in(&server, Form::V4r8);
    let mut events = client.events();
    let own = client.placed(&json!({ "sOrderPrice": "2840" }));
    let by_hand = json!({ "do": "order", "issue": "7203", "side": "sell", "quantity": 200 });
    let number = server.control(&by_hand).unwrap()["number"].clone();
    trade(&server, "2850", 500);
    assert_eq!(shares(&mut client), "100");
    let notices: Vec<String> = (0..3).map(|_| item(&events.notice(), "p_ON").to_owned()).collect();
    assert_eq!(
        notices,
        [own.0.clone(), number.as_str().unwrap().to_owned(), number.as_str().unwrap().to_owned()]
    );
    // Who placed an order is told by the number of its request.
    let orders = server.view()["orders"].clone();
    assert_eq!((&orders[0]["p_no"], &orders[1]["p_no"]), (&json!(102), &Value::Null));
    assert_eq!((&orders[0]["foreign"], &orders[1]["foreign"]), (&json!(false), &json!(true)));
}

#[test]
fn shares_split_overnight() {
    let server = with_shares();
    let mut client = Client::logged_in(&server, Form::V4r8);
    client.placed(&json!({ "sOrderPrice": "0", "sGenkinShinyouKubun": "2" }));
    trade(&server, "2850", 100);
    for (splits, why) in [
        (json!({ "7203": 1 }), "7203: a split makes 2 to 1000 shares of one, not 1"),
        (json!({ "9984": 2 }), "`9984` is not traded"),
    ] {
        let told = server.control(&json!({ "do": "next-day", "splits": splits })).unwrap_err();
        assert!(told.contains(why), "{told}");
    }
    let next = json!({ "do": "next-day", "keep_session": true, "splits": { "7203": 2 } });
    server.control(&next).unwrap();
    assert_eq!(shares(&mut client), "600");
    let view = server.view();
    assert_eq!(view["prices"][0]["last"], "1425");
    assert_eq!(
        (&view["positions"][0]["open"], &view["positions"][0]["price"]),
        (&json!(200), &json!("1425"))
    );
    assert_eq!(view["holdings"][0]["cost"], "855000");
    let sale = client
        .placed(&json!({ "sOrderPrice": "1425", "sOrderSuryou": "600", "sBaibaiKubun": "1" }));
    trade(&server, "1425", 600);
    assert_eq!(client.status(&sale), "10");
}

#[test]
fn an_unknown_shape_of_a_fill_is_refused() {
    let server = start(Form::V4r8);
    for wrong in ["x", "1", "20000001"] {
        let one = json!({ "do": "late-fill", "number": wrong, "price": "2840" });
        assert!(server.control(&one).unwrap_err().contains("not an order that ended"), "{wrong}");
    }
}
