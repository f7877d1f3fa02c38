//! The stream of events.

use std::time::Duration;

use serde_json::json;
use sim::web_broker::{Config, Form, Server};

use crate::client::{Client, Events, command, item, start};

#[test]
fn the_day_is_told_again_to_each_connection() {
    let server = start(Form::V4r8);
    let mut client = Client::logged_in(&server, Form::V4r8);
    client.placed(&json!({}));
    let mut first = client.events();
    let mut next = || {
        let frame = first.next().unwrap();
        (
            command(&frame).to_owned(),
            item(&frame, "p_ALT").to_owned(),
            item(&frame, "p_ENO").to_owned(),
        )
    };
    assert_eq!(next().0, "KP");
    let told: Vec<_> = (0..3).map(|_| next()).collect();
    let kinds: Vec<&str> = told.iter().map(|(kind, ..)| kind.as_str()).collect();
    assert_eq!(kinds, ["SS", "US", "EC"]);
    assert!(told.iter().all(|(_, first, _)| first == "1"));
    let numbers: Vec<u64> = told.iter().map(|(.., number)| number.parse().unwrap()).collect();
    assert!(numbers.is_sorted_by(|before, after| before < after));
    // A second connection ends the first, and not the session.
    let mut second = client.events_after(numbers[1]);
    let ended = first.next().unwrap();
    assert_eq!((command(&ended), item(&ended, "p_errno")), ("ST", "2"));
    assert_eq!(first.next(), None);
    let again = second.notice();
    assert_eq!(
        (item(&again, "p_ALT"), item(&again, "p_ENO")),
        ("0", numbers[2].to_string().as_str())
    );
    assert_eq!(client.ask("CLMOrderList", &json!({}))["p_errno"], "0");
    assert_eq!(server.view()["counts"]["streams_displaced"], 1);
}

#[test]
fn frames_have_the_fields_of_their_form() {
    for (form, key) in [(Form::Spec, "p_evt_cmd"), (Form::V4r8, "p_cmd")] {
        let server = start(form);
        let mut client = Client::logged_in(&server, form);
        let mut events = client.events();
        let order = client.placed(&json!({ "sOrderSuryou": "300" }));
        let trade = json!({ "do": "trade", "issue": "7203", "price": "2849.5", "quantity": 100 });
        server.control(&trade).unwrap();
        let accepted = events.notice();
        let filled = events.notice();
        let expected = [
            (key, "EC"),
            ("p_NT", "12"),
            ("p_ON", &order.0),
            ("p_ED", &order.1),
            ("p_IC", "7203"),
            ("p_BBKB", "3"),
            ("p_CRPR", "2850.000000"),
            ("p_CRSR", "300"),
            ("p_CREXSR", "100"),
            ("p_EXST", "1"),
            ("p_EXPR", "2849.500000"),
            ("p_EXSR", "100"),
            ("p_IN", "g2eDiINejqmTro7U"),
        ];
        for (name, value) in expected {
            assert_eq!(item(&filled, name), value, "{name}");
        }
        let branches = [item(&accepted, "p_eda_no"), item(&filled, "p_eda_no")];
        assert_eq!(branches, if form == Form::Spec { ["1", "2"] } else { ["", ""] });
        assert_eq!(item(&filled, "p_EXDT").len(), 14);
    }
}

#[test]
fn silence_is_filled_with_keep_alives() {
    let config = Config { keep_alive: Duration::from_millis(20), ..Config::default() };
    let server = Server::start(config).unwrap();
    let client = Client::logged_in(&server, Form::Spec);
    let mut events = client.events();
    let mut kept = 0;
    while kept < 4 {
        kept += u32::from(command(&events.next().unwrap()) == "KP");
    }
    server.control(&json!({ "do": "fault", "name": "silent" })).unwrap();
    server.control(&json!({ "do": "disconnect-events" })).unwrap();
    while let Some(frame) = events.next() {
        assert_eq!(command(&frame), "KP", "no ST was asked for");
    }
}

#[test]
fn a_dead_session_has_no_stream() {
    let server = start(Form::V4r8);
    let client = Client::logged_in(&server, Form::V4r8);
    let mut events = client.events();
    server.control(&json!({ "do": "end-session" })).unwrap();
    let mut last = None;
    while let Some(frame) = events.next() {
        last = Some(frame);
    }
    assert_eq!(item(&last.unwrap(), "p_errno"), "2");
    let mut late = client.events();
    assert_eq!(command(&late.next().unwrap()), "ST");
    assert_eq!(late.next(), None);
    server.control(&json!({ "do": "fault", "name": "refuse-events" })).unwrap();
    assert!(Events::open(&client, 0).is_err());
}
