//! The vendor's own words, row by row, as the dialect writes and reads them.

use kumiki_dialect_sdk::prelude::*;
use kumiki_dialect_sdk::testing::{answer, fields, order, shown};

use super::*;

const REPAY: [&str; 3] = ["cash_margin=margin_credit_repay", "tategyoku=201", "tategyoku=202"];

fn request(order: &Order) -> String {
    shown(&WebBrokerV4r8::new_order(order, "1", &[]).unwrap())
}

fn tag(order: &Order) -> String {
    let refusal = WebBrokerV4r8::plan(order).unwrap_err();
    assert_eq!(Err(refusal.clone()), WebBrokerV4r8::new_order(order, "1", &[]));
    refusal.text.split(':').next().unwrap().to_owned()
}

#[test]
fn an_order_has_exactly_the_fields_of_the_official_samples() {
    let market = request(&order(Side::Buy, OrderType::Market, &[]));
    assert_eq!(
        market,
        "sZyoutoekiKazeiC=1 sIssueCode=7203 sSizyouC=00 sBaibaiKubun=3 sCondition=0 sOrderPrice=0 \
         sOrderSuryou=100 sGenkinShinyouKubun=0 sOrderExpireDay=0 sGyakusasiOrderType=0 \
         sGyakusasiZyouken=0 sGyakusasiPrice=* sTatebiType=* sTategyokuZyoutoekiKazeiC=*"
    );
    let made =
        WebBrokerV4r8::new_order(&order(Side::Sell, OrderType::Market, &[]), "3", &[]).unwrap();
    assert_eq!((made.id.as_str(), made.lists.len()), ("CLMKabuNewOrder", 0));
    assert_eq!(made.password_field.as_deref(), Some("sSecondPassword"));
    assert!(
        shown(&made).starts_with("sZyoutoekiKazeiC=3 sIssueCode=7203 sSizyouC=00 sBaibaiKubun=1 ")
    );
}

#[test]
fn every_order_type() {
    for (order_type, price, kind, trigger, stop) in [
        (OrderType::Market, "0", "0", "0", "*"),
        (OrderType::Limit, "2440", "0", "0", "*"),
        (OrderType::StopMarket, "*", "1", "2450", "0"),
        (OrderType::StopLimit, "*", "1", "2450", "2440"),
    ] {
        let shown = request(&order(Side::Buy, order_type, &[]));
        assert!(shown.contains(&format!(" sOrderPrice={price} ")), "{shown}");
        let expected = format!(
            "sGyakusasiOrderType={kind} sGyakusasiZyouken={trigger} sGyakusasiPrice={stop} "
        );
        assert!(shown.contains(&expected), "{shown}");
    }
}

/// P1
#[test]
fn it_is_made_for_the_vendors_hosts_and_knows_the_fills_of_an_order() {
    let scope = WebBrokerV4r8::scope();
    assert_eq!(scope.hosts, ["demo-kabuka.e-shiten.jp", "kabuka.e-shiten.jp"]);
    assert_eq!(scope.fill_rows.as_deref(), Some("aYakuzyouSikkouList"));
    let made = WebBrokerV4r8::list_fills("11000021", Some("20260511")).unwrap();
    assert_eq!(shown(&made), "sOrderNumber=11000021 sEigyouDay=20260511");
}

/// P37
#[test]
fn what_cannot_be_combined_is_refused_early() {
    for time_in_force in [TimeInForce::AtTheOpen, TimeInForce::AtTheClose] {
        let stop = Order { time_in_force, ..order(Side::Buy, OrderType::StopMarket, &[]) };
        assert_eq!(tag(&stop), "CONDITION_WITH_STOP");
    }
    let funari = order(Side::Buy, OrderType::Market, &["close_strategy=funari"]);
    let funari = Order { time_in_force: TimeInForce::AtTheClose, ..funari };
    assert_eq!(tag(&funari), "FUNARI_WITH_MARKET");
}

/// P39
#[test]
fn repayments_name_their_positions() {
    assert_eq!(tag(&order(Side::Sell, OrderType::Market, &REPAY[..1])), "TATEGYOKU_REQUIRED");
    let repay = order(Side::Sell, OrderType::Market, &REPAY);
    let allocation =
        |position: &str, quantity| Allocation { position: position.to_owned(), quantity };
    let made =
        WebBrokerV4r8::new_order(&repay, "1", &[allocation("201", 40), allocation("202", 60)]);
    let made = made.unwrap();
    assert!(
        shown(&made).contains("sGenkinShinyouKubun=4 ") && shown(&made).contains("sTatebiType=1 ")
    );
    assert_eq!(made.lists[0].name, "aCLMKabuHensaiData");
    let second =
        fields(&[("sTategyokuNumber", "202"), ("sTatebiZyuni", "2"), ("sOrderSuryou", "60")]);
    assert_eq!(made.lists[0].rows[1], second);
    for wrong in [&[][..], &[allocation("201", 99)], &[allocation("999", 100)]] {
        assert!(WebBrokerV4r8::new_order(&repay, "1", wrong).is_err(), "{wrong:?}");
    }
    let tags =
        ["cash_margin=margin_credit_repay", "tategyoku=201", "close_action=physical_settle_buy"];
    let settle = order(Side::Sell, OrderType::Market, &tags);
    let made = shown(&WebBrokerV4r8::new_order(&settle, "1", &[allocation("201", 100)]).unwrap());
    for part in ["sBaibaiKubun=7 ", "sOrderPrice=* ", "sTategyokuZyoutoekiKazeiC=1"] {
        assert!(made.contains(part), "{made}");
    }
}

/// A change and a cancel need the business day.
#[test]
fn changes_and_cancels_have_the_fields_of_the_samples() {
    let change = Change {
        venue_order_id: "11000021".to_owned(),
        business_day: Some("20260511".to_owned()),
        order_type: OrderType::StopLimit,
        quantity: None,
        price: Some("2441".to_owned()),
        trigger_price: None,
        expire_date: None,
    };
    assert_eq!(
        shown(&WebBrokerV4r8::modify_order(&change).unwrap()),
        "sOrderNumber=11000021 sEigyouDay=20260511 sCondition=* sOrderPrice=* sOrderSuryou=* \
         sOrderExpireDay=* sGyakusasiZyouken=* sGyakusasiPrice=2441"
    );
    let limit = Change { order_type: OrderType::Limit, ..change.clone() };
    assert!(shown(&WebBrokerV4r8::modify_order(&limit).unwrap()).contains("sOrderPrice=2441 "));
    let market = Change { order_type: OrderType::Market, ..change.clone() };
    assert!(WebBrokerV4r8::modify_order(&market).is_err());
    assert!(WebBrokerV4r8::modify_order(&Change { price: None, ..change.clone() }).is_err());
    let unknown =
        WebBrokerV4r8::modify_order(&Change { business_day: None, ..change }).unwrap_err();
    assert!(unknown.text.starts_with("BUSINESS_DAY_UNKNOWN: "), "{unknown:?}");
    assert_eq!(WebBrokerV4r8::cancel_order("1", None).unwrap_err().code, ReasonCode::InternalError);
    let cancel = WebBrokerV4r8::cancel_order("1", Some("20260511")).unwrap();
    assert_eq!(shown(&cancel), "sOrderNumber=1 sEigyouDay=20260511");
}

fn judged(errno: &str, code: &str) -> Verdict {
    let told = answer("CLMKabuNewOrder", errno, &[("sResultCode", code), ("sResultText", "理由")]);
    WebBrokerV4r8::judge(&told).verdict
}

/// P18, P23b, P2
#[test]
fn failures_of_the_session() {
    for errno in ["-2", "-3", "9", "4", "77", "x"] {
        assert!(matches!(judged(errno, ""), Verdict::Unknown(_)), "{errno}");
    }
    assert_eq!(judged("2", ""), Verdict::SessionExpired);
    for (errno, code, text) in [
        ("-12", ReasonCode::MarketClosed, "P_ERRNO_MINUS_12: "),
        ("-62", ReasonCode::MarketClosed, "P_ERRNO_MINUS_62: "),
        ("1", ReasonCode::VenueRejected, "P_ERRNO_1: "),
        ("6", ReasonCode::VenueRejected, "P_ERRNO_6: "),
        ("8", ReasonCode::VenueRejected, "P_ERRNO_8: "),
        ("-1", ReasonCode::VenueRejected, "P_ERRNO_MINUS_1: "),
    ] {
        let Verdict::Refused(refusal) = judged(errno, "") else { panic!("{errno}") };
        assert!(refusal.code == code && refusal.text.starts_with(text), "{refusal:?}");
    }
    for (errno, closed) in [("9", true), ("-12", true), ("-62", true), ("-2", false), ("", false)] {
        assert_eq!(WebBrokerV4r8::judge(&answer("", errno, &[])).venue_closed, closed, "{errno}");
    }
    let list = WebBrokerV4r8::judge(&answer("CLMOrderList", "1", &[]));
    assert_eq!(list.verdict, Verdict::NoData);
}

/// P42: a malformed password does not count.
#[test]
fn result_codes_have_families() {
    for (code, counts) in [("11304", true), ("13304", true), ("11030", false), ("12023", false)] {
        assert_eq!(judged("", code), Verdict::WrongPassword((counts, format!("{code}: 理由"))));
    }
    for (code, reason) in [
        ("11102", ReasonCode::MarketClosed),
        ("13703", ReasonCode::MarketClosed),
        ("11420", ReasonCode::InsufficientFunds),
        ("12170", ReasonCode::VenueRejected),
    ] {
        let text = format!("{code}: 理由");
        assert_eq!(judged("0", code), Verdict::Refused(Refusal { code: reason, text }));
    }
    assert!(matches!(judged("", ""), Verdict::Unknown(_)), "no result code is no clear answer");
    let silent = WebBrokerV4r8::judge(&answer("CLMKabuNewOrder", "", &[("sResultCode", "12298")]));
    let Verdict::Refused(refusal) = silent.verdict else { panic!("{silent:?}") };
    assert_eq!(refusal.text, "12298: the broker gave no reason");
}

fn row(change: &[(&str, &str)]) -> Result<OrderRow, String> {
    let usual = [
        ("sOrderOrderNumber", "11000021"),
        ("sOrderIssueCode", "7203"),
        ("sGenkinSinyouKubun", "0"),
        ("sOrderBaibaiKubun", "3"),
        ("sOrderOrderSuryou", "200"),
        ("sOrderCurrentSuryou", "200"),
        ("sOrderOrderPrice", "2735.5000"),
        ("sOrderCondition", "0"),
        ("sOrderOrderPriceKubun", "2"),
        ("sOrderGyakusasiOrderType", "0"),
        ("sOrderGyakusasiZyouken", "0.0000"),
        ("sOrderGyakusasiKubun", " "),
        ("sOrderGyakusasiPrice", "0.0000"),
        ("sOrderYakuzyouSuryo", "0"),
        ("sOrderSikkouDay", "20260511"),
        ("sOrderStatusCode", "1"),
        ("sOrderOrderDateTime", "20260511090001"),
        ("sOrderOrderExpireDay", "00000000"),
    ];
    let kept = usual.iter().filter(|(name, _)| change.iter().all(|(other, _)| other != name));
    WebBrokerV4r8::read_order(&fields(&kept.chain(change).copied().collect::<Vec<_>>()))
}

#[test]
fn every_status_code_has_a_status() {
    use OrderStatus as Status;
    for (codes, expected) in [
        (&["0"][..], Status::Submitted),
        (&["1", "4", "5", "8", "13", "50", "15", "16"], Status::Accepted),
        (&["2", "17", "20", "21"], Status::Rejected),
        (&["3"], Status::PendingUpdate),
        (&["6"], Status::PendingCancel),
        (&["7"], Status::Canceled),
        (&["10"], Status::Filled),
        (&["11", "12", "14", "19"], Status::Expired),
    ] {
        for code in codes {
            assert_eq!(row(&[("sOrderStatusCode", code)]).unwrap().status, expected, "{code}");
        }
    }
    let part =
        [("sOrderStatusCode", "9"), ("sOrderYakuzyouSuryo", "50"), ("sOrderCurrentSuryou", "150")];
    assert_eq!(row(&part).unwrap().status, Status::PartiallyFilled);
    assert!(row(&[("sOrderStatusCode", "18")]).is_err());
}

/// P26: a refused change leaves the order live.
#[test]
fn a_refused_change_leaves_the_order_live() {
    assert!(!WebBrokerV4r8::describe().refused_change_rejects);
    assert!(!WebBrokerV4r8::describe().decodes_answers, "P5");
    assert_eq!(row(&[("sOrderStatusCode", "5")]).unwrap().status, OrderStatus::Accepted);
}

#[test]
fn rows_say_type_times_and_side() {
    let stop = |kind: &str, price: &str| {
        row(&[
            ("sOrderGyakusasiOrderType", "1"),
            ("sOrderGyakusasiZyouken", "1260.0000"),
            ("sOrderGyakusasiKubun", kind),
            ("sOrderGyakusasiPrice", price),
            ("sOrderOrderPrice", "0"),
            ("sOrderOrderPriceKubun", " "),
        ])
        .unwrap()
    };
    assert_eq!(stop("0", "0.0000").order_type, OrderType::StopMarket);
    let limit = stop("1", "1265.0000");
    assert_eq!((limit.order_type, limit.price.as_deref()), (OrderType::StopLimit, Some("1265")));
    assert_eq!(limit.trigger_price.as_deref(), Some("1260"));
    let market = row(&[("sOrderOrderPriceKubun", "1"), ("sOrderOrderPrice", "0.0000")]).unwrap();
    assert_eq!((market.order_type, market.price), (OrderType::Market, None));
    for (condition, expiry, expected) in [
        ("0", "00000000", TimeInForce::Day),
        ("0", "20260522", TimeInForce::Gtd),
        ("2", "00000000", TimeInForce::AtTheOpen),
        ("4", "00000000", TimeInForce::AtTheClose),
        ("6", "00000000", TimeInForce::AtTheClose),
    ] {
        let row = row(&[("sOrderCondition", condition), ("sOrderOrderExpireDay", expiry)]).unwrap();
        assert_eq!(row.time_in_force, expected);
        assert_eq!(row.expire_date.is_some(), expected == TimeInForce::Gtd);
        assert_eq!(row.tags.contains(&"close_strategy=funari".to_owned()), condition == "6");
    }
    for (name, value) in [
        ("sOrderOrderNumber", ""),
        ("sOrderBaibaiKubun", "9"),
        ("sOrderCondition", "3"),
        ("sOrderOrderSuryou", "x"),
        ("sOrderOrderDateTime", ""),
        ("sOrderSikkouDay", "2026"),
    ] {
        let told = row(&[(name, value)]).unwrap_err();
        assert!(told.contains(name), "{name}={value}: {told}");
        assert!(name == "sOrderOrderNumber" || told.starts_with("order 11000021: "), "{told}");
    }
}

/// What is merely unusual is believed.
#[test]
fn orders_that_are_over_may_have_a_quantity_of_0() {
    let over = |status: &'static str, ordered: &'static str, filled: &'static str| {
        row(&[
            ("sOrderStatusCode", status),
            ("sOrderOrderSuryou", ordered),
            ("sOrderYakuzyouSuryo", filled),
            ("sOrderCurrentSuryou", " "),
        ])
    };
    for (status, ordered, filled, quantity) in [
        ("10", "0", "200", 200),
        ("7", "0", "100", 100),
        ("7", "0", "0", 0),
        ("7", "200", "0", 200),
    ] {
        let row = over(status, ordered, filled).unwrap();
        let shares = (row.quantity, row.filled.to_string(), row.leaves);
        assert_eq!(shares, (quantity, filled.to_owned(), 0), "{status} {ordered}");
    }
    for (status, ordered, filled) in [("10", "0", "0"), ("10", "100", "200"), ("1", "0", "0")] {
        assert!(over(status, ordered, filled).is_err(), "{status} {ordered} {filled}");
    }
}
