//! Orders: what is refused, fills, changes, margin, days.

use serde_json::{Value, json};
use sim::web_broker::{Config, Form, Server};

use crate::client::{Client, money, start};

fn trade(server: &Server, price: &str, quantity: u64) {
    let trade = json!({ "do": "trade", "issue": "7203", "price": price, "quantity": quantity });
    server.control(&trade).unwrap();
}

fn code(answer: &Value) -> String {
    let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
    if text("p_errno") == "0" { text("sResultCode") } else { format!("errno {}", text("p_errno")) }
}

#[test]
fn new_orders_are_judged_by_their_fields() {
    let server = start(Form::V4r8);
    let mut client = Client::logged_in(&server, Form::V4r8);
    let day = server.view()["day"].as_str().unwrap().to_owned();
    let cases = [
        (json!({}), "0"),
        (json!({ "sOrderPrice": "0" }), "0"),
        (json!({ "sIssueCode": "9999" }), "11104"),
        (json!({ "sOrderSuryou": "150" }), "11112"),
        (json!({ "sOrderSuryou": "2000000" }), "11352"),
        (json!({ "sOrderPrice": "2850.3" }), "11118"),
        (json!({ "sOrderPrice": "5000" }), "11113"),
        (json!({ "sOrderPrice": "2860", "sOrderSuryou": "10000" }), "11420"),
        (json!({ "sBaibaiKubun": "1" }), "11482"),
        (json!({ "sGenkinShinyouKubun": "4", "sTatebiType": "*" }), "11421"),
        (json!({ "sGenkinShinyouKubun": "2", "sOrderSuryou": "20000" }), "11429"),
        (json!({ "sSecondPassword": "9999" }), "11304"),
        (json!({ "sSecondPassword": "" }), "11030"),
        (json!({ "sOrderExpireDay": "20991231" }), "11120"),
        (json!({ "sOrderExpireDay": day, "sCondition": "4" }), "11033"),
        (json!({ "sOrderPrice": "0", "sCondition": "6" }), "11032"),
        (
            json!({ "sGyakusasiOrderType": "2", "sGyakusasiZyouken": "2900", "sGyakusasiPrice": "0" }),
            "11341",
        ),
        (json!({ "sOrderPrice": "*" }), "errno -1"),
        (json!({ "sOrderSuryou": "0100" }), "errno -1"),
        (json!({ "sOrderSuryou": "-100" }), "errno -1"),
        (json!({ "sSizyouC": "01" }), "errno -1"),
        (json!({ "sBaibaiKubun": "2" }), "errno -1"),
        (json!({ "sGyakusasiZyouken": "2900" }), "errno -1"),
    ];
    for (fields, expected) in cases {
        assert_eq!(code(&client.new_order(&fields)), expected, "{fields}");
    }
    let stop = |other: Value| {
        let mut fields = json!({
            "sOrderPrice": "*", "sGyakusasiOrderType": "1", "sGyakusasiZyouken": "2900",
            "sGyakusasiPrice": "0",
        });
        fields.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
        fields
    };
    let cases = [
        (stop(json!({})), "0"),
        (stop(json!({ "sGyakusasiPrice": "2905" })), "0"),
        (stop(json!({ "sOrderPrice": "2905" })), "errno -1"),
        (stop(json!({ "sGyakusasiPrice": "*" })), "errno -1"),
        (stop(json!({ "sCondition": "4" })), "11034"),
        (stop(json!({ "sGyakusasiZyouken": "2900.3" })), "11123"),
        (stop(json!({ "sGyakusasiZyouken": "9000" })), "11121"),
        (stop(json!({ "sGyakusasiZyouken": "2800" })), "11349"),
    ];
    for (fields, expected) in cases {
        assert_eq!(code(&client.new_order(&fields)), expected, "{fields}");
    }
    let fields = json!({ "sSecondPassword": "9999" });
    assert_eq!(code(&client.ask("CLMKabuCancelOrderAll", &fields)), "13304");
}

#[test]
fn a_wrong_second_password_has_a_number_in_the_form_of_the_spec() {
    let server = start(Form::Spec);
    let mut client = Client::logged_in(&server, Form::Spec);
    assert_eq!(code(&client.new_order(&json!({ "sSecondPassword": "9999" }))), "errno 4");
    // A stop is told by its trigger alone.
    let stop = json!({
        "sOrderPrice": "2905", "sGyakusasiZyouken": "2900", "sGyakusasiPrice": "2905",
    });
    let order = client.placed(&stop);
    assert_eq!(client.status(&order), "16");
    // And needs no business day.
    let cancel = json!({ "sOrderNumber": order.0, "sSecondPassword": "0000" });
    assert_eq!(code(&client.ask("CLMKabuCancelOrder", &cancel)), "0");
    assert_eq!(client.status(&order), "7");
}

#[test]
fn fills_come_part_by_part_and_move_the_account() {
    let server = start(Form::V4r8);
    let mut client = Client::logged_in(&server, Form::V4r8);
    let cash = |client: &mut Client| {
        money(&client.ask("CLMZanKaiKanougaku", &json!({})), "sSummaryGenkabuKaituke")
    };
    assert_eq!(cash(&mut client), 10_000_000);
    let order = client.placed(&json!({ "sOrderSuryou": "300" }));
    assert_eq!(cash(&mut client), 10_000_000 - 855_000);
    trade(&server, "2849.5", 100);
    assert_eq!(client.status(&order), "9");
    let row = client.list().remove(0);
    assert_eq!(
        (&row["sOrderYakuzyouSuryo"], &row["sOrderCurrentSuryou"]),
        (&json!("100"), &json!("200"))
    );
    assert_eq!(
        (&row["sOrderYakuzyouPrice"], &row["sOrderYakuzyouStatus"]),
        (&json!("2849.5000"), &json!("1"))
    );
    trade(&server, "2849", 500);
    assert_eq!(client.status(&order), "10");
    assert_eq!(code(&client.cancel(&order)), "13294");
    assert_eq!(code(&client.correct(&order, &json!({ "sOrderSuryou": "200" }))), "12294");
    let fields = json!({ "sOrderNumber": order.0, "sEigyouDay": order.1 });
    let detail = client.ask("CLMOrderListDetail", &fields);
    assert_eq!(detail["sChannel"], "F");
    let fills = detail["aYakuzyouSikkouList"].as_array().unwrap();
    let told: Vec<_> =
        fills.iter().map(|fill| (&fill["sYakuzyouSuryou"], &fill["sYakuzyouPrice"])).collect();
    let expected = [(json!("100"), json!("2849.5000")), (json!("200"), json!("2849.0000"))];
    assert_eq!(told, expected.iter().map(|(shares, price)| (shares, price)).collect::<Vec<_>>());
    assert!(fills.iter().all(|fill| fill["sYakuzyouDate"].as_str().unwrap().len() == 14));
    assert_eq!(detail["sOrderNumber"], order.0.as_str());
    // The stop's fields have other names than in the list, and no order has a code of its own.
    assert_eq!(
        (&detail["sGyakusasiOrderType"], &detail["sUtidekiKubun"]),
        (&json!("0"), &json!("2"))
    );
    assert_eq!(detail.get("sOrderGyakusasiOrderType"), None);
    let foreign = json!({ "sOrderNumber": "99999999", "sEigyouDay": order.1 });
    assert_eq!(code(&client.ask("CLMOrderListDetail", &foreign)), "991005");
    let sellable = client.ask("CLMZanUriKanousuu", &json!({ "sIssueCode": "7203" }));
    assert_eq!(sellable["sZanKabuSuryouUriKanouTokutei"], "300");
    let held = client.ask("CLMGenbutuKabuList", &json!({ "sIssueCode": "" }));
    let row = &held["aGenbutuKabuList"][0];
    assert_eq!(
        (&row["sUriOrderIssueCode"], &row["sUriOrderZanKabuSuryou"]),
        (&json!("7203"), &json!("300"))
    );
    let sale =
        client.placed(&json!({ "sBaibaiKubun": "1", "sOrderSuryou": "200", "sOrderPrice": "0" }));
    trade(&server, "2860", 1_000);
    assert_eq!(client.status(&sale), "10");
    assert_eq!(cash(&mut client), 10_000_000 - 284_950 - 569_800 + 572_000);
    assert_eq!(server.view()["contents"].as_array().unwrap().len(), 2);
}

#[test]
fn changes_and_cancels_follow_the_orders_state() {
    let server = start(Form::V4r8);
    let mut client = Client::logged_in(&server, Form::V4r8);
    let order = client.placed(&json!({ "sOrderSuryou": "300", "sOrderPrice": "2800" }));
    let cases = [
        (json!({ "sOrderSuryou": "400" }), "12170"),
        (json!({ "sOrderSuryou": "150" }), "12298"),
        (json!({ "sOrderPrice": "2800.3" }), "12118"),
        (json!({ "sOrderPrice": "9000" }), "12113"),
        (json!({ "sCondition": "4" }), "12034"),
        (json!({ "sGyakusasiZyouken": "2900" }), "12296"),
        (json!({ "sSecondPassword": "9999" }), "12304"),
        (json!({ "sSecondPassword": "" }), "12023"),
        (json!({ "sEigyouDay": "20200101" }), "errno -1"),
        (json!({ "sOrderNumber": "1" }), "errno -1"),
    ];
    for (fields, expected) in cases {
        assert_eq!(code(&client.correct(&order, &fields)), expected, "{fields}");
    }
    assert_eq!(client.status(&order), "5");
    let change = json!({ "sOrderSuryou": "200", "sOrderPrice": "2810" });
    assert_eq!(code(&client.correct(&order, &change)), "0");
    let row = client.list().remove(0);
    assert_eq!(
        (&row["sOrderOrderSuryou"], &row["sOrderOrderPrice"]),
        (&json!("200"), &json!("2810.0000"))
    );
    assert_eq!(row["sOrderStatusCode"], "4");
    assert_eq!(code(&client.cancel(&(order.0.clone(), "20200101".to_owned()))), "errno -1");
    assert_eq!(code(&client.cancel(&order)), "0");
    assert_eq!(client.status(&order), "7");
    assert_eq!(code(&client.cancel(&order)), "13295");
    assert_eq!(code(&client.correct(&order, &json!({}))), "12295");
    let foreign =
        json!({ "do": "order", "issue": "7261", "side": "buy", "quantity": 100, "price": "970" });
    server.control(&foreign).unwrap();
    client.placed(&json!({ "sOrderPrice": "2700" }));
    let all = client.ask("CLMKabuCancelOrderAll", &json!({ "sSecondPassword": "0000" }));
    assert_eq!(code(&all), "0");
    assert!(client.list().iter().all(|row| row["sOrderStatusCode"] == "7"));
}

#[test]
fn a_stop_waits_for_its_trigger() {
    let server = start(Form::V4r8);
    let mut client = Client::logged_in(&server, Form::V4r8);
    let order = client.placed(&json!({
        "sOrderPrice": "*", "sGyakusasiOrderType": "1", "sGyakusasiZyouken": "2900",
        "sGyakusasiPrice": "2910",
    }));
    let change = json!({ "sGyakusasiZyouken": "2895", "sGyakusasiPrice": "2905" });
    assert_eq!(code(&client.correct(&order, &change)), "0");
    trade(&server, "2894", 100);
    assert_eq!(client.list()[0]["sOrderTriggerType"], "0");
    trade(&server, "2895", 100);
    let row = client.list().remove(0);
    assert_eq!(
        (&row["sOrderTriggerType"], &row["sOrderOrderPrice"]),
        (&json!("1"), &json!("2905.0000"))
    );
    assert_eq!(code(&client.correct(&order, &json!({ "sGyakusasiZyouken": "2890" }))), "12296");
    assert_eq!(code(&client.correct(&order, &json!({ "sGyakusasiPrice": "2890" }))), "12296");
    trade(&server, "2900", 100);
    assert_eq!(client.status(&order), "10");
}

#[test]
fn auctions_take_the_orders_that_wait_for_them() {
    let server = start(Form::V4r8);
    let mut client = Client::logged_in(&server, Form::V4r8);
    let open = client.placed(&json!({ "sCondition": "2", "sOrderPrice": "0" }));
    let close = client.placed(&json!({ "sCondition": "4", "sOrderPrice": "2700" }));
    let funari = client.placed(&json!({ "sCondition": "6", "sOrderPrice": "2700" }));
    let at = |time: &str| {
        json!({
            "do": "trade", "issue": "7203", "price": "2855", "quantity": 1000, "time": time,
        })
    };
    server.control(&at("09:31:00")).unwrap();
    assert_eq!(client.status(&open), "1");
    server.control(&at("11:30:00")).unwrap();
    assert_eq!(client.status(&close), "12");
    assert_eq!(client.status(&funari), "10");
    server.control(&at("12:30:00")).unwrap();
    assert_eq!(client.status(&open), "10");
}

#[test]
fn margin_positions_are_opened_and_closed() {
    let server = start(Form::V4r8);
    let mut client = Client::logged_in(&server, Form::V4r8);
    let capacity = |client: &mut Client| {
        money(&client.ask("CLMZanShinkiKanoIjiritu", &json!({})), "sSummarySinyouSinkidate")
    };
    assert_eq!(capacity(&mut client), 30_000_000);
    client
        .placed(&json!({ "sGenkinShinyouKubun": "2", "sOrderSuryou": "300", "sOrderPrice": "0" }));
    client.placed(&json!({
        "sGenkinShinyouKubun": "6", "sBaibaiKubun": "1", "sIssueCode": "7261", "sOrderPrice": "980",
    }));
    trade(&server, "2850", 300);
    let other = json!({ "do": "trade", "issue": "7261", "price": "980", "quantity": 100 });
    server.control(&other).unwrap();
    assert_eq!(capacity(&mut client), 30_000_000 - 855_000 - 98_000);
    let list = client.ask("CLMShinyouTategyokuList", &json!({ "sIssueCode": "" }));
    let rows = list["aShinyouTategyokuList"].as_array().unwrap().clone();
    let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    let shown: Vec<_> = rows
        .iter()
        .map(|row| {
            ["sOrderIssueCode", "sOrderBaibaiKubun", "sOrderBensaiKubun", "sOrderHensaiKanouSuryou"]
                .map(|name| text(row, name))
        })
        .collect();
    assert_eq!(shown, [["7203", "3", "26", "300"], ["7261", "1", "36", "100"]]);
    let bought = text(&rows[0], "sOrderTategyokuNumber");
    let close = |number: &str, shares: &str, other: Value| {
        let mut fields = json!({
            "sGenkinShinyouKubun": "4", "sBaibaiKubun": "1", "sOrderPrice": "0",
            "sOrderSuryou": shares, "sTatebiType": "1",
            "aCLMKabuHensaiData": [
                { "sTategyokuNumber": number, "sTatebiZyuni": "1", "sOrderSuryou": shares },
            ],
        });
        fields.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
        fields
    };
    assert_eq!(code(&client.new_order(&close("1", "100", json!({})))), "11421");
    assert_eq!(code(&client.new_order(&close(&bought, "400", json!({})))), "11421");
    client.placed(&close(&bought, "100", json!({})));
    assert_eq!(code(&client.new_order(&close(&bought, "300", json!({})))), "11421");
    trade(&server, "2900", 100);
    // Genbiki: the rest for cash, at once.
    let settle =
        json!({ "sBaibaiKubun": "7", "sOrderPrice": "*", "sTategyokuZyoutoekiKazeiC": "1" });
    let order = client.placed(&close(&bought, "200", settle));
    assert_eq!(client.status(&order), "10");
    let view = server.view();
    assert_eq!(view["cash"], (10_000_000 + 5_000 - 570_000).to_string());
    assert_eq!(view["holdings"][0]["quantity"], 200);
    assert_eq!(capacity(&mut client), 30_000_000 - 98_000);
}

#[test]
fn orders_of_the_day_lapse_and_dated_ones_go_on() {
    let server = start(Form::V4r8);
    let mut client = Client::logged_in(&server, Form::V4r8);
    let path = client.target("sUrlMaster");
    let fields = json!({ "sTargetCLMID": "CLMDateZyouhou", "sTargetColumn": "" });
    let dates = client.ask_at(&path, "CLMMfdsGetMasterData", &fields)["CLMDateZyouhou"][0].clone();
    let mut events = client.events();
    let day = client.placed(&json!({ "sOrderPrice": "2700" }));
    let dated = client
        .placed(&json!({ "sOrderPrice": "2710", "sOrderExpireDay": dates["sYokuEigyouDay_1"] }));
    let next = json!({ "do": "next-day", "keep_session": true });
    server.control(&next).unwrap();
    assert_eq!(client.list().len(), 1, "what is over is told on its own day only");
    let row = client.list().remove(0);
    assert_eq!(
        (&row["sOrderOrderNumber"], &row["sOrderKurikosiOrderFlg"]),
        (&json!(dated.0), &json!("1"))
    );
    assert_eq!(row["sOrderSikkouDay"], dates["sYokuEigyouDay_1"]);
    assert_eq!(events.kinds(4), ["1", "1", "13", "16"]);
    assert_eq!(code(&client.correct(&dated, &json!({ "sOrderPrice": "2720" }))), "0");
    server.control(&next).unwrap();
    let view = server.view();
    let status = |number: &str| {
        let orders = view["orders"].as_array().unwrap();
        orders.iter().find(|order| order["number"] == number).unwrap()["status"].clone()
    };
    assert_eq!((status(&day.0), status(&dated.0)), (json!("12"), json!("19")));
    server.control(&json!({ "do": "next-day" })).unwrap();
    assert_eq!(client.ask("CLMOrderList", &json!({}))["p_errno"], "2", "a ticket of one day");
}

#[test]
fn shares_may_be_held_from_the_start() {
    let config = Config { holdings: vec![("7203".to_owned(), 500)], ..Config::default() };
    let server = Server::start(config).unwrap();
    let mut client = Client::logged_in(&server, Form::Spec);
    client.placed(&json!({ "sBaibaiKubun": "1", "sOrderSuryou": "300" }));
    let sellable = client.ask("CLMZanUriKanousuu", &json!({ "sIssueCode": "7203" }));
    assert_eq!(sellable["sZanKabuSuryouUriKanouTokutei"], "200");
    let wrong = Config { holdings: vec![("9999".to_owned(), 500)], ..Config::default() };
    assert!(Server::start(wrong).is_err());
}
