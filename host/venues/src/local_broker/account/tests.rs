//! Answers about the account, the vendor's own samples among them where they are at hand.

use domain::JstDate;
use serde_json::{Value, json};

use super::*;
use crate::local_broker::limits::{DETAILS_MAX, ROW_DEPTH_MAX, ROW_FIELDS_MAX, ROWS_MAX};

fn sample(name: &str) -> Option<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/assets/kabu/samples");
    let path = std::path::Path::new(folder).join(name);
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        println!("skipped: the vendor's sample {name} is not at hand");
    }
    text
}

/// A row of `/orders` with some of its fields changed; null takes one away.
fn order(changes: Value) -> String {
    let mut row = json!({
        "ID": "20261124A02N04738436", "State": 3, "OrderState": 3, "OrdType": 1,
        "RecvTime": "2026-11-24T09:00:51.763683+09:00", "Symbol": "130A", "SymbolName": "n",
        "Exchange": 9, "ExchangeName": "SOR", "Price": 704.5, "OrderQty": 300.0, "CumQty": 100,
        "Side": "2", "AccountType": 4, "DelivType": 2, "ExpireDay": 20_261_124, "Details": []
    });
    let fields = row.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        fields.insert(name.clone(), value.clone());
    }
    row.to_string()
}

fn orders(changes: Value) -> Result<AccountOrder, String> {
    let read = read_orders(&format!("[{}]", order(changes))).map_err(|error| error.to_string())?;
    assert_eq!(read.rows.len() + read.left_out.len(), 1);
    Ok(read.whole()?.remove(0))
}

/// The positions, or why one is left out.
fn positions(body: &str) -> Result<Vec<AccountPosition>, String> {
    read_positions(body).map_err(|error| error.to_string())?.whole()
}

fn position_row(changes: Value) -> String {
    let mut row = json!({
        "ExecutionID": null, "AccountType": 4, "Symbol": "8306", "Exchange": 1, "Price": 704,
        "LeavesQty": 500, "HoldQty": 0, "Side": "2", "MarginTradeType": null
    });
    let fields = row.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        fields.insert(name.clone(), value.clone());
    }
    format!("[{row}]")
}

/// Regression: at the gateway 2 buys and 1 sells. The web broker's 3 for a buy would sell there, so it is an
/// error.
#[test]
fn p57_buy_is_2_and_sell_is_1_at_the_gateway_and_the_web_brokers_3_is_neither() {
    for (code, side) in [
        (json!("2"), OrderSide::Buy),
        (json!("1"), OrderSide::Sell),
        (json!(2), OrderSide::Buy),
        (json!(1), OrderSide::Sell),
    ] {
        assert_eq!(orders(json!({ "Side": code })).unwrap().side, side, "{code}");
        let rows = positions(&position_row(json!({ "Side": code }))).unwrap();
        assert_eq!(rows[0].side, side, "{code}");
    }
    for code in [json!("3"), json!(3), json!("0"), json!("BUY"), json!(""), json!(null), json!(1.5)]
    {
        let reported = orders(json!({ "Side": code })).unwrap_err();
        assert!(reported.starts_with("20261124A02N04738436: GET /orders: Side "), "{reported}");
        let reported = positions(&position_row(json!({ "Side": code }))).unwrap_err();
        assert!(reported.starts_with("8306: GET /positions: Side "), "{reported}");
    }
    let reported = orders(json!({ "Side": "3" })).unwrap_err();
    assert!(
        reported.ends_with("GET /orders: Side `3` is neither 1 (sell) nor 2 (buy)"),
        "{reported}"
    );
}

#[test]
fn p57_balances_are_exact_and_null_stays_null() {
    let yen = Money::from_units;
    let cash =
        read_cash(r#"{"StockAccountWallet": 900719925474.0993, "AuKCStockAccountWallet": 1}"#);
    assert_eq!(cash, Ok(Ok(Some(yen(9_007_199_254_740_993)))));
    let margin = read_margin(r#"{"MarginAccountWallet": null, "DepositkeepRate": 0.1234567}"#);
    assert_eq!(margin, Ok(Ok(None)));
    for (body, what) in [
        ("{}", "StockAccountWallet is missing"),
        (
            r#"{"StockAccountWallet": 1, "StockAccountWallet": 2}"#,
            "StockAccountWallet is there twice",
        ),
        ("[]", "is not a record"),
        ("", "is not a record"),
        ("<html>", "is not a record"),
        (r#"{"StockAccountWallet": 1} x"#, "is not a record"),
    ] {
        let reported = read_cash(body).unwrap_err().to_string();
        assert!(
            reported
                .starts_with("the engine cannot read the gateway's answer to GET /wallet/cash "),
            "{reported}"
        );
        assert!(reported.contains(what), "{body}: {reported}");
    }
    for (value, what) in [
        ("\"1\"", "StockAccountWallet `1` is not a number"),
        ("1.00001", "has more than 4 digits after the point"),
        ("1e15", "StockAccountWallet `1e15` is too large"),
    ] {
        // The amount cannot be read, but the answer can.
        let reported =
            read_cash(&format!("{{\"StockAccountWallet\": {value}}}")).unwrap().unwrap_err();
        assert!(
            reported.starts_with("GET /wallet/cash: ") && reported.contains(what),
            "{value}: {reported}"
        );
    }
    assert!(read_margin("{}").unwrap_err().to_string().contains("MarginAccountWallet is missing"));
}

#[test]
fn the_vendors_samples_are_read() {
    let (Some(orders), Some(held)) =
        (sample("orders_response.json"), sample("positions_response.json"))
    else {
        return;
    };
    let extra = json!({
        "State": 5, "OrderState": 5, "OrdType": 1,
        "RecvTime": "2022-04-04T18:00:51.763683+09:00",
        "SymbolName": "三菱ＵＦＪフィナンシャル・グループ", "Exchange": 27,
        "ExchangeName": "東証＋プ", "TimeInForce": 1, "CashMargin": 2, "AccountType": 4,
        "DelivType": 2, "ExpireDay": 20_220_404, "MarginTradeType": 1,
        "MarginPremium": null,
        "Details": [{
            "SeqNum": 1, "ID": "20220404A02N04738436", "RecType": 1,
            "ExchangeID": "00000000-0000-0000-0000-00000000", "State": 3,
            "TransactTime": "2022-04-04T18:00:51.763683+09:00", "OrdType": 1,
            "Price": "704.5", "Qty": "1500", "ExecutionID": "",
            "ExecutionDay": "2022-04-04T18:02:00+09:00", "DelivDay": 20_220_406,
            "Commission": "0", "CommissionTax": "0",
        }],
    });
    let rows = read_orders(&orders).unwrap().whole().unwrap();
    let expected = AccountOrder {
        venue_order_id: "20220404A02N04738436".to_owned(),
        instrument_id: "8306.TSE".to_owned(),
        side: OrderSide::Sell,
        order_type: OrderType::Limit,
        quantity: Quantity::new(1_500),
        filled: Quantity::new(1_500),
        leaves: Quantity::ZERO,
        price: Some(Price::from_units(7_045_000)),
        time_in_force: TimeInForce::Day,
        expires: None,
        status: OrderStatus::Filled,
        received: TsNanos::from_nanos(1_649_062_851_763_683_000),
        extra: extra.as_object().unwrap().clone(),
    };
    assert_eq!(rows, [expected]);
    let rows = read_positions(&held).unwrap().whole().unwrap();
    let expected = AccountPosition {
        instrument_id: "8306.TSE".to_owned(),
        quantity: Quantity::new(500),
        average_price: Some(Price::from_yen(704)),
        market_value: Some(Money::from_yen(207_250)),
        unrealized: Some(Money::from_yen(144_750)),
        side: OrderSide::Sell,
        kind: PositionKind::SystemMargin,
        number: Some("E20220404xxxxx".to_owned()),
    };
    assert_eq!(rows, [expected]);
    let (Some(cash), Some(margin)) =
        (sample("wallet_cash_response.json"), sample("wallet_margin_response.json"))
    else {
        return;
    };
    assert_eq!(read_cash(&cash), Ok(Ok(Some(Money::from_units(12_345_670_000)))));
    assert_eq!(read_margin(&margin), Ok(Ok(Some(Money::from_units(30_000_000_000)))));
}

#[test]
fn p57_an_order_row_is_read_whole() {
    let row = orders(json!({"CashMargin": 2, "MarginPremium": 0.30, "New": [1.50, {"a": true}]}));
    let extra = json!({
        "State": 3, "OrderState": 3, "OrdType": 1,
        "RecvTime": "2026-11-24T09:00:51.763683+09:00", "SymbolName": "n", "Exchange": 9,
        "ExchangeName": "SOR", "AccountType": 4, "DelivType": 2, "ExpireDay": 20_261_124,
        "Details": [], "CashMargin": 2, "MarginPremium": "0.3",
        "New": ["1.5", {"a": true}],
    });
    let expected = AccountOrder {
        venue_order_id: "20261124A02N04738436".to_owned(),
        instrument_id: "130A.TSE".to_owned(),
        side: OrderSide::Buy,
        order_type: OrderType::Limit,
        quantity: Quantity::new(300),
        filled: Quantity::new(100),
        leaves: Quantity::new(200),
        price: Some(Price::from_units(7_045_000)),
        time_in_force: TimeInForce::Day,
        expires: None,
        // It is partly filled; lists show such an order as accepted.
        status: OrderStatus::Accepted,
        received: TsNanos::from_nanos(1_795_478_451_763_683_000),
        extra: extra.as_object().unwrap().clone(),
    };
    assert_eq!(row.unwrap(), expected);
}

#[test]
fn p57_the_instruments_suffix_is_that_of_the_market() {
    for (exchange, suffix) in [
        (1, "TSE"),
        (9, "TSE"),
        (27, "TSE"),
        (3, "NSE"),
        (5, "FSE"),
        (6, "SSE"),
        (2, "OSE"),
        (23, "OSE"),
        (24, "OSE"),
    ] {
        let row = orders(json!({"Exchange": exchange, "TimeInForce": 1})).unwrap();
        assert_eq!(row.instrument_id, format!("130A.{suffix}"), "{exchange}");
    }
    for (exchange, what) in [
        (json!(4), "Exchange `4` is not a known market"),
        (json!(1.5), "Exchange `1.5` is not a whole number"),
        (json!(null), "Exchange is missing"),
    ] {
        let reported = orders(json!({ "Exchange": exchange })).unwrap_err();
        assert!(reported.contains(what), "{reported}");
    }
}

/// A history of these kinds and states, with numbers that have gaps and are out of order.
fn history(steps: &[(i64, i64)]) -> Value {
    let steps = steps.iter().enumerate().map(|(index, (kind, state))| {
        json!({"SeqNum": 1 + 3 * index, "RecType": kind, "State": state, "Price": 704.5})
    });
    Value::Array(steps.rev().collect())
}

#[test]
fn p57_the_status_comes_from_the_state_and_the_history() {
    use OrderStatus::{
        Accepted, Canceled, Expired, Filled, PendingCancel, PendingUpdate, Rejected, Submitted,
    };
    for (state, filled, steps, status) in [
        (1, 0, &[(1, 1)][..], Submitted),
        (2, 0, &[(1, 3), (4, 2)], Submitted),
        (3, 0, &[(1, 3), (4, 3)], Accepted),
        (3, 100, &[(1, 3), (4, 3), (8, 3)], Accepted),
        (4, 0, &[(1, 3), (4, 3), (5, 2)], PendingUpdate),
        (4, 0, &[(1, 3), (4, 3), (5, 3), (6, 2)], PendingCancel),
        (4, 0, &[(1, 3), (6, 4), (5, 2)], PendingUpdate),
        (4, 100, &[(1, 3), (6, 2), (8, 3)], PendingCancel),
        (4, 0, &[], PendingUpdate),
        (5, 300, &[(1, 3), (4, 3), (8, 3)], Filled),
        (5, 300, &[], Filled),
        // A cancel that came too late.
        (5, 300, &[(1, 3), (6, 4), (8, 3)], Filled),
        (5, 0, &[(1, 3), (4, 3), (6, 3)], Canceled),
        (5, 100, &[(1, 3), (8, 3), (6, 3)], Canceled),
        (5, 100, &[(1, 3), (8, 3), (6, 2)], Canceled),
        (5, 0, &[(1, 3), (4, 3), (3, 3)], Expired),
        (5, 100, &[(1, 3), (8, 3), (7, 3)], Expired),
        // The cancel failed; the day ended later.
        (5, 100, &[(1, 3), (6, 4), (7, 3)], Expired),
        (5, 0, &[(1, 3), (4, 4)], Rejected),
        (5, 0, &[(1, 4)], Rejected),
    ] {
        let row = json!({"State": state, "CumQty": filled, "Details": history(steps)});
        let row = orders(row).unwrap();
        assert_eq!(row.status, status, "{state} {filled} {steps:?}");
        let leaves = if state == 5 { 0 } else { 300 - filled };
        assert_eq!(row.leaves, Quantity::new(leaves), "{state} {filled} {steps:?}");
    }
    // A cancel that reduces the quantity to the filled shares is no fill.
    let cancelled = json!({
        "State": 5, "OrderQty": 100, "CumQty": 100, "Details": history(&[(1, 3), (8, 3), (6, 3)]),
    });
    assert_eq!(orders(cancelled).unwrap().status, Canceled);
    let only_order_state = json!({"State": null, "OrderState": 2});
    assert_eq!(orders(only_order_state).unwrap().status, Submitted);
}

#[test]
fn p57_types_and_times_in_force() {
    use OrderType::{Limit, Market};
    use TimeInForce::{AtTheClose, AtTheOpen, Day, Fok, Gtd, Ioc};
    for (change, order_type, time_in_force) in [
        (json!({"Price": 0}), Market, Day),
        (json!({"Price": 0.0, "OrdType": 2}), Market, AtTheOpen),
        (json!({"Price": null, "OrdType": 3}), Market, AtTheClose),
        (json!({"OrdType": 4}), Limit, Day),
        (json!({"OrdType": 5, "Price": 0}), Limit, Day),
        (json!({"OrdType": 6}), Limit, Ioc),
        (json!({"ExpireDay": 20_261_126}), Limit, Gtd),
        (json!({"ExpireDay": 0}), Limit, Day),
        (json!({"ExpireDay": null}), Limit, Day),
        (json!({"Exchange": 23, "TimeInForce": 2}), Limit, Ioc),
        (json!({"Exchange": 23, "TimeInForce": 3}), Limit, Fok),
    ] {
        let row = orders(change.clone()).unwrap();
        assert_eq!((row.order_type, row.time_in_force), (order_type, time_in_force), "{change}");
        assert_eq!(row.price.is_some(), change.get("Price").is_none(), "{change}");
    }
    // Monday the 23rd is a holiday, after the weekend: all these belong to Tuesday.
    for received in
        ["2026-11-20T15:30:00+09:00", "2026-11-22T12:00:00Z", "2026-11-24T00:00:00+09:00"]
    {
        let row = orders(json!({ "RecvTime": received })).unwrap();
        assert_eq!((row.time_in_force, row.expires), (Day, None), "{received}");
    }
    let row = orders(json!({"RecvTime": "2026-11-20T15:29:59+09:00"})).unwrap();
    let midnight = TsNanos::from_jst(JstDate::from_ymd_opt(2026, 11, 25).unwrap(), 0).unwrap();
    assert_eq!(
        (row.time_in_force, row.expires),
        (Gtd, Some(TsNanos::from_nanos(midnight.nanos() - 1)))
    );
}

#[test]
fn p57_an_unreadable_field_is_named() {
    for (change, what) in [
        (json!({"ID": ""}), "ID is missing"),
        (json!({"ID": 5}), "ID `5` is not a text"),
        (json!({"State": 6}), "State `6` is not 1 to 5"),
        (json!({"State": null, "OrderState": null}), "OrderState is missing"),
        (json!({"State": 4, "Details": [{"RecType": 5}]}), "Details: SeqNum is missing"),
        (json!({"State": 4, "Details": [5]}), "Details: is not a record"),
        (json!({"State": 4, "Details": {}}), "Details is not a list"),
        (json!({"OrdType": 7}), "OrdType `7` is not 1 to 6"),
        (json!({"RecvTime": "yesterday"}), "RecvTime `yesterday` is not a time like 2022"),
        (json!({"RecvTime": "1969-12-31T00:00:00Z"}), "RecvTime `1969"),
        (json!({"Symbol": "130a"}), "Symbol `130a` is not 4 to 9 digits"),
        (json!({"Symbol": null}), "Symbol is missing"),
        (json!({"Price": -1}), "Price `-1` is below 0"),
        (json!({"Price": "704.5"}), "Price `704.5` is not a number"),
        (json!({"OrderQty": 100.5}), "OrderQty `100.5` is not a whole number"),
        (json!({"OrderQty": null}), "OrderQty is missing"),
        (json!({"CumQty": -100}), "CumQty `-100` is below 0"),
        (json!({"CumQty": 301}), "CumQty `301` is more than OrderQty `300`"),
        (json!({"ExpireDay": 20_261_131}), "ExpireDay `20261131` is not a date"),
        (json!({"Exchange": 24, "TimeInForce": 4}), "TimeInForce `4` is not 1 to 3"),
        (json!({"Symbol": "\u{1b}[2J"}), "Symbol `\\u001b[2J`"),
    ] {
        let reported = orders(change.clone()).unwrap_err();
        assert!(reported.contains(&format!("GET /orders: {what}")), "{change}: {reported}");
    }
    // An unreadable row hides no other one.
    let odd = order(json!({"ID": "odd", "Exchange": 4}));
    let body = format!("[{},{odd},5,{}]", order(json!({})), order(json!({"ID": "last"})));
    let read = read_orders(&body).unwrap();
    let ids: Vec<&str> = read.rows.iter().map(|row| &*row.venue_order_id).collect();
    assert_eq!(ids, ["20261124A02N04738436", "last"]);
    let reported: Vec<_> = read.left_out.iter().map(|odd| (odd.id.as_deref(), &*odd.why)).collect();
    assert_eq!(reported[0].0, Some("odd"));
    assert_eq!(reported[0].1, "odd: GET /orders: Exchange `4` is not a known market");
    assert!(reported[1].1.starts_with("row 3 of 4: GET /orders: is not a record"), "{reported:?}");
    assert_eq!(read_orders("[]").unwrap().whole(), Ok(Vec::new()));
    assert_eq!(read_positions(" [ ] ").unwrap().whole(), Ok(Vec::new()));
    for body in ["", "{}", "null", "[", "{\"Code\":4001009,\"Message\":\"\"}"] {
        assert!(read_orders(body).unwrap_err().to_string().contains("is not a list"), "{body}");
    }
}

#[test]
fn every_limit_of_a_list_is_one() {
    let list = |rows: usize| format!("[{}]", vec!["1"; rows].join(","));
    assert_eq!(List::read(&list(ROWS_MAX)).unwrap().0.len(), ROWS_MAX);
    let reported = read_orders(&list(ROWS_MAX + 1)).unwrap_err().to_string();
    assert!(reported.contains("more than 20000 rows"), "{reported}");

    let row = order(json!({}));
    let known = serde_json::from_str::<Value>(&row).unwrap().as_object().unwrap().len();
    let with = |fields: usize| {
        let more = (0..fields).map(|field| (format!("x{field}"), json!(1)));
        orders(Value::Object(more.collect()))
    };
    assert!(with(ROW_FIELDS_MAX - known).is_ok());
    assert!(with(ROW_FIELDS_MAX - known + 1).unwrap_err().contains("more than 64 fields"));

    let nested = |depth: usize| {
        let value = (1..depth).fold(json!([]), |inner, _| json!([inner]));
        orders(json!({ "Deep": value }))
    };
    assert!(nested(ROW_DEPTH_MAX).is_ok());
    assert!(nested(ROW_DEPTH_MAX + 1).unwrap_err().contains("Deep is nested deeper than 4"));

    let long = |steps: usize| orders(json!({"State": 4, "Details": history(&vec![(5, 2); steps])}));
    assert!(long(DETAILS_MAX).is_ok());
    assert!(long(DETAILS_MAX + 1).unwrap_err().contains("Details has more than 1000 rows"));
}

#[test]
fn p57_positions_have_a_side_and_a_kind() {
    for (kind, exchange, expected) in [
        (json!(null), 1, PositionKind::Cash),
        (json!(0), 1, PositionKind::Cash),
        (json!(1), 1, PositionKind::SystemMargin),
        (json!(2), 1, PositionKind::GeneralMargin),
        (json!(3), 1, PositionKind::GeneralMargin),
        (json!(null), 23, PositionKind::Derivative),
    ] {
        let body = position_row(json!({"MarginTradeType": kind, "Exchange": exchange}));
        let rows = positions(&body).unwrap();
        assert_eq!(rows[0].kind, expected, "{kind}");
        // Without `addinfo` there is no value.
        assert_eq!((rows[0].market_value, rows[0].unrealized), (None, None));
        assert_eq!(rows[0].number, None);
    }
    let reported = positions(&position_row(json!({"MarginTradeType": 4}))).unwrap_err();
    assert!(reported.contains("8306: GET /positions: MarginTradeType `4` is not 1"), "{reported}");
    // Numbers that the gateway divided are rounded, half to even.
    let body = position_row(json!({"LeavesQty": 300.0})).replace("704", "704.333333333333333333");
    let rows = positions(&body).unwrap();
    assert_eq!(rows[0].average_price, Some(Price::from_units(7_043_333)));
    assert_eq!(rows[0].quantity, Quantity::new(300));
    let reported = positions(&position_row(json!({"LeavesQty": 0.5}))).unwrap_err();
    assert!(reported.contains("LeavesQty `0.5` is not a whole number"), "{reported}");
}

/// Unusual rows are accepted.
#[test]
fn unusual_rows_are_shown() {
    use OrderStatus::{Canceled, Expired, Filled, Rejected};
    for (quantity, filled, steps, status) in [
        (0, 100, &[][..], Filled),
        (0, 100, &[(1, 3), (6, 3)], Canceled),
        (0, 100, &[(1, 3), (7, 3)], Expired),
        (300, 100, &[], Canceled),
        (300, 0, &[], Rejected),
        (300, 300, &[], Filled),
    ] {
        let row = json!({
            "State": 5, "OrderQty": quantity, "CumQty": filled, "Details": history(steps),
        });
        let row = orders(row).unwrap();
        let shares = (row.quantity, row.filled, row.leaves);
        let name = format!("{quantity} {filled} {steps:?}");
        assert_eq!(
            shares,
            (Quantity::new(quantity), Quantity::new(filled), Quantity::new(0)),
            "{name}"
        );
        assert_eq!(row.status, status, "{name}");
    }
    let row = orders(json!({"OrdType": null})).unwrap();
    assert_eq!((row.order_type, row.time_in_force), (OrderType::Limit, TimeInForce::Day));
    let row = orders(json!({"OrdType": null, "Price": 0})).unwrap();
    assert_eq!(row.order_type, OrderType::Market);
    let zoned = orders(json!({})).unwrap().received;
    let row = orders(json!({"RecvTime": "2026-11-24T09:00:51.763683"})).unwrap();
    assert_eq!(row.received, zoned);
    let closed = positions(&position_row(json!({"LeavesQty": 0, "Price": null}))).unwrap();
    assert_eq!((closed[0].quantity, closed[0].average_price), (Quantity::new(0), None));
}

/// A later redaction of an error must find a secret whole, or nothing of it.
#[test]
fn a_value_in_an_error_is_quoted_whole_or_not_at_all() {
    let secret = "canary-word-of-16";
    for letters in 0..60 {
        let before = "x".repeat(letters);
        for (field, value) in [
            ("Symbol", json!(format!("{before}{secret}"))),
            ("RecvTime", json!(format!("{before}{secret}"))),
            ("Price", json!({ before.clone(): secret })),
            ("ID", json!([before, secret])),
        ] {
            let reported = orders(json!({ field: value })).unwrap_err();
            assert_eq!(reported.contains("cana"), reported.contains(secret), "{reported}");
            assert!(reported.contains(field) && reported.len() < 300, "{reported}");
        }
    }
}
