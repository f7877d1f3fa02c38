//! The tables of the specification, row by row, as the dialect writes and reads them.

use kumiki_dialect_sdk::testing::{answer, fields, order, shown};
use kumiki_dialect_sdk::web_broker::Situation;

use super::*;

fn request(order: &Order) -> String {
    shown(&WebBrokerSpec::new_order(order, "1", &[]).unwrap())
}

/// Every row of "Order type mapping".
#[test]
fn every_order_type() {
    for (order_type, expected) in [
        (OrderType::Market, "sOrderPrice=0 sOrderSuryou"),
        (OrderType::Limit, "sOrderPrice=2440 sOrderSuryou"),
        (
            OrderType::StopMarket,
            "sOrderPrice=* sGyakusasiZyouken=2450 sGyakusasiPrice=0 sOrderSuryou",
        ),
        (
            OrderType::StopLimit,
            "sOrderPrice=2440 sGyakusasiZyouken=2450 sGyakusasiPrice=2440 sOrderSuryou",
        ),
    ] {
        let shown = request(&order(Side::Buy, order_type, &[]));
        assert!(shown.contains(&format!("sCondition=0 {expected}")), "{shown}");
        assert!(!shown.contains("sGyakusasiOrderType"), "the specification has no such field");
    }
}

/// Every row of "Time in force mapping" and its reverse; P38.
#[test]
fn every_time_in_force() {
    let day = || Some("20260522".to_owned());
    for (time_in_force, date, tags, condition, expiry) in [
        (TimeInForce::Day, None, &[][..], "0", "0"),
        (TimeInForce::Gtd, day(), &[], "0", "20260522"),
        (TimeInForce::AtTheOpen, None, &[], "2", "0"),
        (TimeInForce::AtTheClose, None, &[], "4", "0"),
        (TimeInForce::AtTheClose, None, &["close_strategy=funari"], "6", "0"),
    ] {
        let asked = Order {
            time_in_force,
            expire_date: date.clone(),
            ..order(Side::Buy, OrderType::Limit, tags)
        };
        let shown = request(&asked);
        assert!(shown.contains(&format!("sCondition={condition} ")), "{shown}");
        assert!(shown.ends_with(&format!("sOrderExpireDay={expiry}")), "{shown}");
        let row = row(&[("sCondition", condition), ("sOrderExpireDay", expiry)]).unwrap();
        assert_eq!((row.time_in_force, row.expire_date), (time_in_force, date));
        assert_eq!(row.tags, tags);
    }
}

/// "Side mapping", and P39.
#[test]
fn sides_and_repayments() {
    for (side, code) in [(Side::Buy, "3"), (Side::Sell, "1")] {
        assert!(
            request(&order(side, OrderType::Market, &[]))
                .contains(&format!("sBaibaiKubun={code} "))
        );
    }
    let repay = order(Side::Sell, OrderType::Market, &["cash_margin=margin_general_repay"]);
    assert!(request(&repay).ends_with("sGenkinShinyouKubun=8 sOrderExpireDay=0 sTatebiType=*"));
}

/// P1: a host that reads a STOP_LIMIT of these tables in another way is none that it is made for.
#[test]
fn it_is_for_this_machine_alone() {
    let scope = WebBrokerSpec::scope();
    assert!(scope.hosts.is_empty(), "{scope:?}");
    assert_eq!(scope.fill_rows.as_deref(), Some("aYakuzyouSikkouList"));
    let row = fields(&[("sYakuzyouSuryou", "100"), ("sYakuzyouPrice", "2300.0000")]);
    assert_eq!(WebBrokerSpec::read_fill(&row).unwrap().price, "2300");
}

/// P37: the broker judges these, the specification does not.
#[test]
fn conditions_with_stops_are_sent() {
    let stop = order(Side::Buy, OrderType::StopMarket, &[]);
    let stop = Order { time_in_force: TimeInForce::AtTheOpen, ..stop };
    assert!(request(&stop).contains("sCondition=2 "));
    let funari = order(Side::Buy, OrderType::Market, &["close_strategy=funari"]);
    let funari = Order { time_in_force: TimeInForce::AtTheClose, ..funari };
    assert!(request(&funari).contains("sCondition=6 "));
}

#[test]
fn cancels_need_the_number_alone() {
    let cancel = WebBrokerSpec::cancel_order("11000021", None).unwrap();
    assert_eq!(
        (cancel.id.as_str(), shown(&cancel).as_str()),
        ("CLMKabuCancelOrder", "sOrderNumber=11000021")
    );
    assert_eq!(cancel.password_field.as_deref(), Some("sSecondPassword"));
    assert_eq!(WebBrokerSpec::cancel_all().id, "CLMKabuCancelOrderAll");
    assert_eq!(WebBrokerSpec::list_orders().password_field, None);
}

fn judged(errno: &str, code: &str) -> Verdict {
    let told = answer("CLMKabuNewOrder", errno, &[("sResultCode", code), ("sResultText", "why")]);
    WebBrokerSpec::judge(&told).verdict
}

/// P18, P23b
#[test]
fn answers_as_the_specification_has_them() {
    assert!(matches!(judged("4", ""), Verdict::WrongPassword((true, _))));
    assert_eq!(judged("2", ""), Verdict::SessionExpired);
    for errno in ["-2", "-3", "9", "x"] {
        assert!(matches!(judged(errno, ""), Verdict::Unknown(_)), "{errno}");
    }
    for (errno, code, expected) in [
        ("", "11304", ReasonCode::VenueRejected),
        ("", "11420", ReasonCode::VenueRejected),
        ("", "11102", ReasonCode::MarketClosed),
        ("-12", "", ReasonCode::MarketClosed),
        ("6", "", ReasonCode::VenueRejected),
        ("77", "", ReasonCode::VenueRejected),
    ] {
        let Verdict::Refused(refusal) = judged(errno, code) else { panic!("{errno} {code}") };
        assert_eq!(refusal.code, expected, "{refusal:?}");
    }
    let told = answer(
        "CLMKabuNewOrder",
        "",
        &[
            ("sResultCode", "0"),
            ("sOrderNumber", "1"),
            ("sEigyouDay", "20260511"),
            ("sWarningCode", "0"),
        ],
    );
    let Verdict::Accepted(accepted) = WebBrokerSpec::judge(&told).verdict else { panic!() };
    assert_eq!((accepted.venue_order_id.as_deref(), accepted.warning_code), (Some("1"), None));
}

/// P5, P26
#[test]
fn it_decodes_answers_and_a_refused_change_rejects() {
    let own = WebBrokerSpec::describe();
    assert!(own.decodes_answers && own.refused_change_rejects);
}

fn row(change: &[(&str, &str)]) -> Result<OrderRow, String> {
    let usual = [
        ("sOrderNumber", "1"),
        ("sIssueCode", "7203"),
        ("sBaibaiKubun", "3"),
        ("sOrderSuryou", "200"),
        ("sOrderCurrentSuryou", "200"),
        ("sOrderPrice", "2735.5"),
        ("sCondition", "0"),
        ("sOrderYakuzyouSuryo", "0"),
        ("sOrderExpireDay", "0"),
        ("sOrderOrderDateTime", "20260511090001"),
    ];
    let kept = usual.iter().filter(|(name, _)| change.iter().all(|(other, _)| other != name));
    WebBrokerSpec::read_order(&fields(&kept.chain(change).copied().collect::<Vec<_>>()))
}

/// Every row of "Order status mapping" that a list can show.
#[test]
fn every_status() {
    for (situation, filled, leaves, expected) in [
        (Situation::Sent, 0, 1, OrderStatus::Submitted),
        (Situation::Working, 0, 1, OrderStatus::Accepted),
        (Situation::Changing, 0, 1, OrderStatus::PendingUpdate),
        (Situation::Canceling, 0, 1, OrderStatus::PendingCancel),
        (Situation::Working, 1, 1, OrderStatus::PartiallyFilled),
        (Situation::Working, 2, 0, OrderStatus::Filled),
        (Situation::Filled, 2, 0, OrderStatus::Filled),
        (Situation::Canceled, 0, 0, OrderStatus::Canceled),
        (Situation::Lapsed, 0, 0, OrderStatus::Expired),
        (Situation::Refused, 0, 0, OrderStatus::Rejected),
    ] {
        assert_eq!(broker::status_of(situation, filled, leaves), expected, "{situation:?}");
    }
}

/// P28
#[test]
fn the_specifications_names_come_first() {
    let named = row(&[("sOrderOrderNumber", "2"), ("sOrderIssueCode", "9999")]).unwrap();
    assert_eq!((named.venue_order_id.as_str(), named.symbol.as_str()), ("1", "7203"));
    let vendors = row(&[("sOrderNumber", ""), ("sOrderOrderNumber", "2")]).unwrap();
    assert_eq!(vendors.venue_order_id, "2");
    let stop = row(&[("sGyakusasiZyouken", "2700"), ("sGyakusasiPrice", "2735.5")]).unwrap();
    assert_eq!(stop.order_type, OrderType::StopLimit);
    let frame = fields(&[
        ("p_evt_cmd", "EC"),
        ("p_NT", "12"),
        ("p_eda_no", "3"),
        ("p_ON", "1"),
        ("p_IC", "7203"),
        ("p_ED", "20261120"),
        ("p_ENO", "9"),
        ("p_EXSR", "100"),
        ("p_EXPR", "2849.5"),
    ]);
    let Ok(Frame::Order(notice)) = WebBrokerSpec::read_frame(&frame) else { panic!() };
    assert_eq!(notice.fill.unwrap().trade_id, "3");
}
