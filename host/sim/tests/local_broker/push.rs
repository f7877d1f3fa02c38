//! The push: frames, pings, a second client, frames that are wrong on purpose.

use std::io::Read as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use sim::local_broker::limits::{
    CLIENT_FRAME_BYTES_MAX, QUEUE_FRAMES_MAX, REQUEST_COUNT_MAX, STRETCHES_KEPT_MAX,
    TRADE_SHARES_MAX, TRADES_POSTED_MAX, VOLUME_MAX,
};
use sim::local_broker::{Config, Dialect, QuoteNames, Server};
use tokio_tungstenite::tungstenite::Message;

use crate::client::{Client, Push, ask, start, start_with, wait};

fn trade(server: &Server, symbol: &str, price: &str, quantity: u64) {
    let trade = json!({ "do": "trade", "symbol": symbol, "price": price, "quantity": quantity });
    server.control(&trade).unwrap();
}

/// A gateway with one registered symbol and a client of the push.
fn with_push() -> (Server, Client, Push) {
    let server = start(Dialect::Spec);
    let client = Client::logged_in(&server);
    client.put("/register", &["7203"]);
    let push = client.push();
    wait(&server, "a client of the push", |view| view["push_open"] == true);
    (server, client, push)
}

#[test]
fn a_frame_says_what_was_traded() {
    let (server, _client, mut push) = with_push();
    server.control(&json!({ "do": "boards" })).unwrap();
    let before = push.frame();
    assert!(before["CurrentPrice"].is_null() && before["TradingVolume"].is_null());
    trade(&server, "7203", "2850.5", 300);
    trade(&server, "7261", "980", 100);
    trade(&server, "7203", "2851", 200);
    let (first, second) = (push.frame(), push.frame());
    assert_eq!((&first["CurrentPrice"], &first["TradingVolume"]), (&json!(2850.5), &json!(300.0)));
    assert_eq!(
        (&second["CurrentPrice"], &second["TradingVolume"]),
        (&json!(2851.0), &json!(500.0))
    );
    assert_eq!((&second["HighPrice"], &second["LowPrice"]), (&json!(2851.0), &json!(2850.5)));
    assert_eq!(second["BidPrice"], second["Sell1"]["Price"]);
    let time = second["CurrentPriceTime"].as_str().unwrap();
    assert!(time.len() == 25 && time.ends_with("+09:00"), "{time}");
    let symbols = &server.view()["symbols"];
    assert_eq!(symbols["7203"]["volume"], 500);
    // The frame before the first number had none: a client counts from 0.
    assert_eq!(symbols["7203"]["pushed_volume"], 500);
    assert_eq!((&symbols["7261"]["volume"], &symbols["7261"]["frames"]), (&json!(100), &json!(0)));
}

#[test]
fn best_prices_can_have_their_usual_names() {
    let usual = Config { quote_names: QuoteNames::Usual, ..Config::default() };
    let server = start_with(usual);
    let board = Client::logged_in(&server).get("/board/7203@1").json();
    assert_eq!(board["BidPrice"], board["Buy1"]["Price"]);
    assert_eq!(board["AskQty"], board["Sell1"]["Qty"]);
}

#[test]
fn volumes_begin_again_with_a_day_and_a_reset() {
    let (server, _client, mut push) = with_push();
    for quantity in [100, 200] {
        trade(&server, "7203", "2850", quantity);
    }
    server.control(&json!({ "do": "volume-reset", "symbol": "7203" })).unwrap();
    trade(&server, "7203", "2850", 400);
    server.control(&json!({ "do": "day" })).unwrap();
    trade(&server, "7203", "2860", 800);
    trade(&server, "7203", "2860", 1_600);
    let told: Vec<Value> = (0..6).map(|_| push.frame()).collect();
    let volumes: Vec<&Value> = told.iter().map(|frame| &frame["TradingVolume"]).collect();
    assert_eq!(json!(volumes), json!([100.0, 300.0, 0.0, 400.0, 800.0, 2400.0]));
    assert_eq!(told[4]["PreviousClose"], 2850.0);
    assert!(told[4]["CurrentPriceTime"].as_str() > told[3]["CurrentPriceTime"].as_str());
    let symbol = &server.view()["symbols"]["7203"];
    assert_eq!(symbol["volume"], 3_100);
    assert_eq!(symbol["pushed_volume"], 200 + 400 + 1_600);
    assert_eq!(symbol["stretches"].as_array().unwrap().len(), 3);
    let yesterday = json!({ "do": "day", "date": "2000-01-04" });
    assert!(server.control(&yesterday).unwrap_err().contains("not after"));
}

#[test]
fn old_stretches_are_joined() {
    let (server, _client, _push) = with_push();
    let of_one = [
        json!({ "do": "volume-reset", "symbol": "7203" }),
        json!({ "do": "trade", "symbol": "7203", "price": "2850", "quantity": 100 }),
    ];
    let stretches = STRETCHES_KEPT_MAX + 3;
    // Nobody reads: fewer frames than the queue holds.
    assert!(stretches * of_one.len() < QUEUE_FRAMES_MAX);
    let all: Vec<&Value> = (0..stretches).flat_map(|_| &of_one).collect();
    server.control(&json!(all)).unwrap();
    let symbol = &server.view()["symbols"]["7203"];
    assert_eq!(symbol["stretches"].as_array().unwrap().len(), STRETCHES_KEPT_MAX);
    assert_eq!(symbol["pushed_volume"], 100 * stretches);
}

#[test]
fn commands_post_so_many_shares_only() {
    let server = start(Dialect::Spec);
    let trade = |quantity: u64, count: u64| {
        server.control(&json!({
            "do": "trade", "symbol": "7203", "price": "2850", "quantity": quantity, "count": count
        }))
    };
    for wrong in [0, TRADE_SHARES_MAX + 1, u64::MAX] {
        assert!(trade(wrong, 1).unwrap_err().contains("quantity 1 to"), "{wrong}");
    }
    let most = VOLUME_MAX / TRADE_SHARES_MAX;
    assert!(trade(TRADE_SHARES_MAX, most + 1).unwrap_err().contains("VOLUME_MAX"));
    assert_eq!(server.view()["symbols"]["7203"]["trades"], 0, "none of too many is made");
    trade(TRADE_SHARES_MAX, most).unwrap();
    assert!(trade(VOLUME_MAX % TRADE_SHARES_MAX + 1, 1).unwrap_err().contains("VOLUME_MAX"));
    assert_eq!(server.view()["symbols"]["7203"]["volume"], most * TRADE_SHARES_MAX);
}

#[test]
fn commands_post_so_many_trades_only() {
    let server = start(Dialect::Spec);
    for (command, count) in
        [("trade", 0), ("trade", TRADES_POSTED_MAX + 1), ("book", TRADES_POSTED_MAX + 1)]
    {
        let mut command = json!({ "do": command, "symbol": "7203", "count": count });
        if command["do"] == "trade" {
            command["price"] = json!("2850");
            command["quantity"] = json!(100);
        }
        assert!(server.control(&command).unwrap_err().contains("count"), "{command}");
    }
    let most = json!({
        "do": "trade", "symbol": "7203", "price": "2850", "quantity": 100, "count": TRADES_POSTED_MAX
    });
    server.control(&most).unwrap();
    assert_eq!(server.view()["symbols"]["7203"]["trades"], TRADES_POSTED_MAX);
}

#[test]
fn pings_are_answered_as_asked_for() {
    let (server, _client, mut push) = with_push();
    push.ping(b"one");
    assert_eq!(push.next(), Some(Message::Pong("one".into())));
    server.fault("empty-pong").unwrap();
    push.ping(b"two");
    assert_eq!(push.next(), Some(Message::Pong("".into())));
    server.control(&json!({ "do": "clear-faults" })).unwrap();
    push.ping(b"three");
    assert_eq!(push.next(), Some(Message::Pong("three".into())));
    assert_eq!(server.view()["counts"]["pings"], 3);
}

#[test]
fn a_second_client_takes_the_place_or_freezes_the_first() {
    for freezes in [false, true] {
        let (server, client, mut first) = with_push();
        if freezes {
            server.fault("second-freezes").unwrap();
        }
        let mut second = client.push();
        wait(&server, "the second client", |view| view["counts"]["pushes"] == 2);
        trade(&server, "7203", "2850", 100);
        assert_eq!(second.frame()["TradingVolume"], 100.0);
        if freezes {
            first.ping(b"anybody?");
            assert!(first.is_silent());
        } else {
            assert!(matches!(first.next(), Some(Message::Close(_)) | None));
        }
    }
}

#[test]
fn the_push_can_fall_silent_and_end() {
    let (server, client, mut push) = with_push();
    server.fault("silent-push").unwrap();
    trade(&server, "7203", "2850", 100);
    server.control(&json!({ "do": "clear-faults" })).unwrap();
    trade(&server, "7203", "2850", 200);
    assert_eq!(push.frame()["TradingVolume"], 300.0);
    assert_eq!(server.view()["counts"]["lost_frames"], 1);
    // Half open: it is there, and says nothing, not even to pings.
    assert_eq!(server.control(&json!({ "do": "half-open" })).unwrap()["was_open"], true);
    trade(&server, "7203", "2850", 100);
    push.ping(b"anybody?");
    assert!(push.is_silent());
    assert_eq!(server.view()["push_open"], false);
    let mut again = client.push();
    wait(&server, "a new client", |view| view["push_open"] == true);
    trade(&server, "7203", "2850", 100);
    assert_eq!(again.frame()["TradingVolume"], 500.0);
    assert_eq!(server.control(&json!({ "do": "drop-push" })).unwrap()["was_open"], true);
    assert!(again.next().is_none());
    assert!(server.push(&json!({})).unwrap_err().contains("no client"));
}

#[test]
fn extra_frames_tell_nothing_new() {
    let (server, _client, mut push) = with_push();
    for fault in [
        "binary-frames*1",
        "malformed-frames*1",
        "giant-frames=70000*1",
        "unregistered-frames*1",
        "foreign-exchange-frames*1",
        "duplicate-frames*1",
    ] {
        server.fault(fault).unwrap();
    }
    trade(&server, "7203", "2850", 100);
    let Some(Message::Binary(bytes)) = push.next() else { panic!("not binary") };
    let good: Value = serde_json::from_slice(&bytes).unwrap();
    let Some(Message::Text(half)) = push.next() else { panic!("no text") };
    assert!(serde_json::from_str::<Value>(&half).is_err());
    let Some(Message::Text(giant)) = push.next() else { panic!("no text") };
    assert!(giant.len() == 70_000 && giant.contains("\"TradingVolume\":100.0"));
    let (other, foreign) = (push.frame(), push.frame());
    assert_eq!((&other["Symbol"], &foreign["Exchange"]), (&json!("9999"), &json!(3)));
    assert_eq!((&push.frame(), &push.frame()), (&good, &good));
    trade(&server, "7203", "2850", 100);
    assert_eq!(push.frame()["TradingVolume"], 200.0);
    let view = server.view();
    assert_eq!(
        (&view["counts"]["frames"], &view["counts"]["extra_frames"]),
        (&json!(2), &json!(6))
    );
    assert_eq!(view["symbols"]["7203"]["frames"], 2);
}

#[test]
fn frames_can_be_no_utf8_or_of_many_bytes() {
    let (server, _client, mut push) = with_push();
    server.fault("wrong-utf8*1").unwrap();
    trade(&server, "7203", "2850", 100);
    // The text frame as bytes: its head, then what is no UTF-8.
    let mut head = [0; 4];
    push.raw().read_exact(&mut head).unwrap();
    assert_eq!((head[0], head[1]), (0x81, 126));
    let mut text = vec![0; usize::from(u16::from_be_bytes([head[2], head[3]]))];
    push.raw().read_exact(&mut text).unwrap();
    assert!(std::str::from_utf8(&text).is_err());
    assert_eq!(push.frame()["TradingVolume"], 100.0);
    server.fault("giant-frames=2000000*1").unwrap();
    trade(&server, "7203", "2850", 100);
    let Some(Message::Text(giant)) = push.next() else { panic!("no text") };
    assert_eq!(giant.len(), 2_000_000);
}

#[test]
fn books_can_be_as_they_should_not() {
    let (server, _client, mut push) = with_push();
    let mut told = |fault: &str| {
        server.fault(fault).unwrap();
        trade(&server, "7203", "2850", 100);
        push.frame()
    };
    let crossed = told("crossed-book*1");
    assert!(crossed["Buy1"]["Price"].as_f64() > crossed["Sell1"]["Price"].as_f64());
    let one = told("one-sided-book*1");
    assert!(one["Sell1"].is_null() && one["BidPrice"].is_null() && one["Buy1"].is_object());
    let unordered = told("unordered-levels*1");
    let buy = |place: u32| unordered[format!("Buy{place}")]["Price"].as_f64();
    assert!(buy(8) < buy(9) && buy(8) == buy(10));
    let nulls = told("null-levels*1");
    assert!(nulls["Sell1"]["Price"].is_null() && nulls["Sell2"].is_null());
    trade(&server, "7203", "2850", 100);
    assert_eq!(push.frame()["TradingVolume"], 500.0);
}

#[test]
fn any_frame_can_be_pushed_by_hand() {
    let (server, _client, mut push) = with_push();
    server.push(&json!({ "Symbol": "7203", "Exchange": 1 })).unwrap();
    server.push_text("no JSON".to_owned()).unwrap();
    server.push_binary(vec![1, 2]).unwrap();
    server.control(&json!({ "do": "frame", "text": "by control" })).unwrap();
    assert_eq!(push.frame(), json!({ "Symbol": "7203", "Exchange": 1 }));
    assert_eq!(push.next(), Some(Message::text("no JSON")));
    assert_eq!(push.next(), Some(Message::binary(vec![1, 2])));
    assert_eq!(push.next(), Some(Message::text("by control")));
    assert!(server.control(&json!({ "do": "frame" })).is_err());
}

#[test]
fn a_client_that_reads_slowly_loses_nothing() {
    let (server, _client, mut push) = with_push();
    let frames = QUEUE_FRAMES_MAX * 3;
    // More than the queue and the sockets hold: the giver waits.
    let text = "x".repeat(2_000);
    std::thread::scope(|scope| {
        let giver = scope.spawn(|| {
            for number in 0..frames {
                server.push_text(format!("{number} {text}")).unwrap();
            }
        });
        for number in 0..frames {
            let Some(Message::Text(told)) = push.next() else { panic!("frame {number}") };
            assert_eq!(told.split(' ').next(), Some(number.to_string().as_str()));
        }
        giver.join().unwrap();
    });
}

#[test]
fn nobody_waits_for_ever_for_a_client_that_takes_nothing() {
    let (server, _client, push) = with_push();
    let given = AtomicUsize::new(0);
    let text = "x".repeat(16 << 10);
    std::thread::scope(|scope| {
        // More than the queue and the sockets hold.
        let giver = scope.spawn(|| {
            (0..QUEUE_FRAMES_MAX + 2_000).try_for_each(|_| {
                given.fetch_add(1, Ordering::Relaxed);
                server.push_text(text.clone())
            })
        });
        wait(&server, "a full queue", |view| {
            given.load(Ordering::Relaxed) > QUEUE_FRAMES_MAX && view["push_waiting"] == 1
        });
        let state = ask(server.address, "GET", "/control/state", None, None).unwrap().json();
        assert_eq!(state["push_open"], true, "whoever looks does not wait until it is closed");
        let body = json!({ "symbol": "7203", "price": "2850", "quantity": 100 }).to_string();
        let told = ask(server.address, "POST", "/control/trade", None, Some(&body)).unwrap();
        assert_eq!(told.status, 200);
        wait(&server, "the end of the client", |view| view["push_open"] == false);
        giver.join().unwrap().unwrap_err();
    });
    drop(push);
}

#[test]
fn one_request_posts_no_more_than_its_limit() {
    let server = start(Dialect::Spec);
    let trades = |count: u64| {
        json!({
            "do": "trade", "symbol": "7203", "price": "2850", "quantity": 1, "count": count
        })
    };
    let whole = u64::from(TRADES_POSTED_MAX);
    let mut commands = vec![trades(whole); (REQUEST_COUNT_MAX / whole) as usize];
    server.control(&json!(commands)).unwrap();
    commands.push(trades(1));
    let error = server.control(&json!(commands)).unwrap_err();
    assert!(error.contains("more than 50000; send several requests"), "{error}");
    assert_eq!(server.view()["symbols"]["7203"]["trades"], REQUEST_COUNT_MAX, "nothing is done");
}

#[test]
fn a_client_that_sends_much_is_left() {
    let (server, client, mut push) = with_push();
    push.send(Message::text("x".repeat(CLIENT_FRAME_BYTES_MAX)));
    wait(&server, "a message", |view| view["counts"]["client_frames"] == 1);
    push.send(Message::text("x".repeat(CLIENT_FRAME_BYTES_MAX + 1)));
    wait(&server, "the end", |view| view["push_open"] == false);
    assert_eq!(client.get("/brokerapi/websocket").status, 404);
}
