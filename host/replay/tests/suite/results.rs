//! What a run leaves behind, by hand: round trips, minutes, days, events, the audit log, and that
//! nothing is lost when a strategy fails or the disk does.

use std::fs;
use std::path::Path;

use crate::common::folder::{buy_and_sell, lines, two_days, write};
use crate::common::{Market, Script, at, limit, market, options, run};
use domain::OrderCommand;
use domain::order::OrderModify;
use domain::request_key::request_key;
use domain::strategy::{Action, NarrativeRecord, Signal, SignalKind};
use domain::{InstrumentIx, Money, OrderSide, Price};
use marketdata::parquet::{Values, read_table};
use proptest::prelude::*;
use results::output::narrative::decisions;
use results::output::{Kind, Table};
use results::summary::Summary;
use serde_json::Value;

fn yen(amount: &str) -> Money {
    amount.parse().unwrap()
}

fn price(text: &str) -> Price {
    text.parse().unwrap()
}

#[test]
fn a_round_trip_over_two_days_by_hand() {
    let (result, _) = run(&two_days(), buy_and_sell(), &options());
    let [trip] = &result.round_trips[..] else { panic!("{:?}", result.round_trips) };
    assert_eq!((trip.buy_price, trip.sell_price), (price("1000"), price("1005")));
    assert_eq!((trip.ts_entry.nanos(), trip.ts_exit.nanos()), (at(6, 2.0), at(7, 2.0)));
    assert_eq!((&*trip.entry_order, &*trip.exit_order), ("B", "S"));
    assert_eq!((trip.quantity, trip.quantity_max, trip.fills), (200, 200, 2));
    // 200 shares: 5 yen each at the end, -10 at worst, +10 at best; 1,020 came after it.
    assert_eq!((trip.pnl, trip.mae, trip.mfe), (yen("1000"), yen("-2000"), yen("2000")));
    let summary = Summary::new(&result.totals);
    assert_eq!((summary.round_trips, summary.win_rate), (1, Some(1.0)));
    assert_eq!((summary.profit_factor, summary.average_loss), (None, None));
    assert_eq!(summary.expectancy.as_deref(), Some("1000"));
    assert_eq!(summary.turnover, "401000");
}

#[test]
fn minutes_and_days_by_hand() {
    let (result, _) = run(&two_days(), buy_and_sell(), &options());
    let minutes: Vec<_> =
        result.equity.iter().map(|row| (row.ts_event.nanos(), row.cash, row.equity)).collect();
    assert_eq!(
        minutes,
        [
            (at(6, 60.0), yen("9800000"), yen("10000000")),
            (at(6, 120.0), yen("9800000"), yen("10002000")),
            (at(6, 180.0), yen("9800000"), yen("9998000")),
            (at(7, 60.0), yen("10001000"), yen("10001000")),
        ]
    );
    let marks: Vec<_> = result.marks.iter().map(|row| (row.price, row.quantity)).collect();
    let wanted = [("1000", 200), ("1010", 200), ("990", 200), ("1020", 0)];
    assert_eq!(marks, wanted.map(|(text, held)| (price(text), held)));
    let days: Vec<_> = result.days.iter().map(|row| row.equity).collect();
    assert_eq!(days, [yen("9998000"), yen("10001000")]);
    let summary = Summary::new(&result.totals);
    // The peak is 10,002,000, the low 9,998,000.
    assert_eq!(summary.max_drawdown, "4000");
    assert!((summary.max_drawdown_ratio - 4_000.0 / 10_002_000.0).abs() < 1e-15);
    assert!(summary.max_drawdown_recovery.is_none());
    assert_eq!(summary.exposure, Some(0.75));
    assert_eq!((summary.days, summary.position_end), (2, 0));
}

#[test]
fn a_position_at_the_end_is_valued_and_told_by_instrument() {
    let script = Script::default().after(1, market("B", OrderSide::Buy, 200));
    let (result, _) = run(&two_days(), script, &options());
    let [position] = &result.totals.positions[..] else { panic!("{:?}", result.totals.positions) };
    assert_eq!((position.quantity, position.cost), (200, yen("200000")));
    assert_eq!(position.average_cost(), Some(price("1000")));
    assert_eq!((position.value(), position.unrealised_pnl()), (yen("204000"), yen("4000")));
    let summary = Summary::new(&result.totals);
    assert_eq!((summary.unrealised_pnl.as_str(), summary.realised_pnl.as_str()), ("4000", "0"));
    assert_eq!((summary.round_trips, summary.win_rate), (0, None));
    assert_eq!(summary.equity_end, "10004000");
}

#[test]
fn slippage_is_what_takers_paid_and_makers_did_not() {
    let mut options = options();
    options.model.slippage_ticks = 2;
    let script = Script::default()
        .after(1, market("B", OrderSide::Buy, 200))
        .after(3, limit("L", OrderSide::Buy, 100, "1000"));
    let (result, _) = run(&two_days(), script, &options);
    let fills: Vec<_> = result
        .fills
        .iter()
        .map(|fill| (&*fill.client_order_id, fill.price, fill.market_price, fill.slippage))
        .collect();
    assert_eq!(
        fills,
        [
            ("B", price("1001"), price("1000"), yen("200")),
            ("L", price("1000"), price("990"), Money::ZERO),
        ]
    );
    assert_eq!(Summary::new(&result.totals).slippage, "200");
}

proptest! {
    #[test]
    fn profits_lie_between_the_worst_and_the_best_and_add_up(
        steps in prop::collection::vec((-4_i64..5, 1_u64..4), 30..120),
        orders in prop::collection::vec(any::<bool>(), 30),
    ) {
        let mut units = 1_000;
        let mut market_data = Market::default();
        for (place, (step, lots)) in steps.iter().enumerate() {
            units = (units + step).max(900);
            let second = place as f64 * 37.0;
            market_data = market_data.trade(6, second, &units.to_string(), lots * 100);
        }
        let mut script = Script::default();
        for (place, buys) in orders.iter().enumerate() {
            let side = if *buys { OrderSide::Buy } else { OrderSide::Sell };
            script = script.after(place as u64 + 1, market(&format!("O-{place}"), side, 100));
        }
        let (result, _) = run(&market_data, script, &options());
        let summary = Summary::new(&result.totals);
        for trip in &result.round_trips {
            prop_assert!(trip.mae <= trip.pnl && trip.pnl <= trip.mfe, "{trip:?}");
            prop_assert!(trip.mae <= Money::ZERO && trip.mfe >= Money::ZERO, "{trip:?}");
        }
        // With all shares sold, the round trips are the whole profit.
        if result.totals.position_end == 0 {
            let sum: Money = result.round_trips.iter().map(|trip| trip.pnl).sum();
            prop_assert_eq!(sum.to_string(), summary.profit);
        }
        let last = result.equity.last().unwrap();
        prop_assert_eq!(last.equity, result.totals.equity_end);
    }
}

fn rich_script() -> Script {
    let moved = OrderModify { price: Some(price("980")), ..OrderModify::default() };
    Script::default()
        .after(1, market("B", OrderSide::Buy, 200))
        .after(
            1,
            Action::Signal(Signal {
                instrument: InstrumentIx(0),
                kind: SignalKind::EntryLong,
                side: Some(OrderSide::Buy),
                price: Some(price("1000")),
                tag: Some("first".to_owned()),
                note: None,
            }),
        )
        .after(
            1,
            Action::Narrative(NarrativeRecord {
                client_order_id: Some("B".into()),
                title: "Enter".to_owned(),
                body: "line one\nline \"two\", with a comma".to_owned(),
            }),
        )
        .after(2, limit("L", OrderSide::Buy, 100, "985"))
        .after(
            3,
            Action::Order(OrderCommand::Modify { client_order_id: "L".into(), change: moved }),
        )
        .after(4, Action::Order(OrderCommand::Cancel { client_order_id: "L".into() }))
        .after(4, market("ODD", OrderSide::Buy, 150))
        .after(5, market("S", OrderSide::Sell, 200))
}

#[test]
fn events_have_the_specifications_names_and_fields() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    write(&folder, &mut rich_script(), &options());
    let events = lines(&folder, "events.jsonl");
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    let bought = ["OrderSubmitted", "OrderAccepted", "StrategySignal"];
    assert!(bought.iter().all(|name| names[..3].contains(name)), "{names:?}");
    for name in ["OrderPendingUpdate", "OrderPendingCancel", "OrderCanceled", "OrderRejected"] {
        assert_eq!(names.iter().filter(|one| **one == name).count(), 1, "{name}: {names:?}");
    }
    let filled = names.iter().position(|name| *name == "OrderFilled").unwrap();
    assert_eq!(names[filled + 1..filled + 3], ["ExecutionMarker", "PositionOpened"]);
    assert_eq!(names[names.len() - 3..], ["OrderFilled", "ExecutionMarker", "PositionClosed"]);
    let written = fs::read_to_string(folder.join("events.jsonl")).unwrap();
    assert_eq!(written, include_str!("golden/events.jsonl"));
    for line in written.lines() {
        let read: ipc::EventLine<'_> = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), line);
    }
    let fill = &events[filled];
    assert_eq!(fill["last_price"], "1000");
    assert_eq!((&fill["last_qty"], &fill["leaves_qty"]), (&"200".into(), &"0".into()));
    assert_eq!(fill["ts_event_ms"], at(6, 2.0) / 1_000_000);
    assert_eq!(events.last().unwrap()["realised_pnl"], "1000");
}

#[test]
fn the_audit_log_has_the_specifications_phases() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    write(&folder, &mut rich_script(), &options());
    let log = lines(&folder, "web_broker_orders_replay.jsonl");
    let phases: Vec<_> = log
        .iter()
        .map(|line| (line["phase"].as_str().unwrap(), line["client_order_id"].as_str().unwrap()))
        .collect();
    // ODD is no whole lot; it was refused before it was sent, so the log does not know it.
    assert_eq!(
        phases,
        [
            ("submit", "B"),
            ("accepted", "B"),
            ("submit", "L"),
            ("accepted", "L"),
            ("submit", "S"),
            ("accepted", "S"),
        ]
    );
    let written = fs::read_to_string(folder.join("web_broker_orders_replay.jsonl")).unwrap();
    assert_eq!(written, include_str!("golden/web_broker_orders_replay.jsonl"));
    for line in written.lines() {
        let read: ipc::AuditLine<'_> = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), line);
    }
    let Action::Order(OrderCommand::Submit(request)) = market("B", OrderSide::Buy, 200) else {
        panic!("an order")
    };
    assert_eq!(log[0]["request_key"], request_key(&request, "7203.TSE"));
    assert_eq!(log[0]["ts"], at(6, 1.0) / 1_000_000);
    // The change and the cancel of L took numbers 3 and 4.
    let numbers: Vec<_> = log.iter().filter_map(|line| line["p_no"].as_u64()).collect();
    assert_eq!(numbers, [1, 2, 5]);
}

#[test]
fn a_refusal_after_sending_is_in_the_audit_log() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    let mut options = options();
    options.cash = Money::from_yen(1_000);
    write(&folder, &mut buy_and_sell(), &options);
    let log = lines(&folder, "web_broker_orders_replay.jsonl");
    let events = lines(&folder, "events.jsonl");
    let refused = events.iter().filter(|event| event["event"] == "OrderRejected").count();
    let sent = events.iter().filter(|event| event["event"] == "OrderSubmitted").count();
    assert_eq!(refused, 2);
    assert_eq!(log.iter().filter(|line| line["phase"] == "submit").count(), sent);
    assert_eq!(log.iter().filter(|line| line["phase"] == "rejected").count(), sent);
}

#[test]
fn decisions_lead_to_orders_and_fills() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    write(&folder, &mut rich_script(), &options());
    let found = decisions(&folder, Some("B")).unwrap();
    let [decision] = &found[..] else { panic!("{found:?}") };
    assert_eq!(decision.body, "line one\nline \"two\", with a comma");
    let order = decision.order.as_ref().unwrap();
    assert_eq!((order.side.as_str(), order.status.as_str()), ("BUY", "FILLED"));
    assert_eq!(order.fills.len(), 1);
    assert_eq!(order.fills[0].price, "1000");
    assert!(decisions(&folder, Some("S")).unwrap().is_empty());
    assert_eq!(decisions(&folder, None).unwrap().len(), 1);
    let error = decisions(parent.path(), None).unwrap_err().to_string();
    assert!(error.contains("holds no run"), "{error}");
}

#[test]
fn every_table_has_its_forms_and_they_agree() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    write(&folder, &mut rich_script(), &options());
    for table in results::output::TABLES {
        let mut csv = csv::Reader::from_path(folder.join(format!("{}.csv", table.name))).unwrap();
        let rows: Vec<csv::StringRecord> = csv.records().map(Result::unwrap).collect();
        let json = fs::read_to_string(folder.join(format!("{}.json", table.name))).unwrap();
        let json: Value = serde_json::from_str(&json).unwrap();
        let count = json.as_array().map_or_else(|| json.as_object().unwrap().len(), Vec::len);
        assert_eq!(count, rows.len(), "{}", table.name);
        if table.name != "summary" {
            parquet_agrees(&folder, table, &rows);
        }
        for (row, object) in rows.iter().zip(json.as_array().into_iter().flatten()) {
            for (cell, column) in row.iter().zip(table.columns) {
                let text = match &object[column.name] {
                    Value::Null => String::new(),
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                assert_eq!(cell, text, "{} {}", table.name, column.name);
            }
        }
    }
}

/// The Parquet form of a table holds the same values as its CSV form.
fn parquet_agrees(folder: &Path, table: &Table, rows: &[csv::StringRecord]) {
    let found = read_table(folder.join(format!("{}.parquet", table.name))).unwrap();
    assert_eq!(found.rows(), rows.len(), "{}", table.name);
    for (place, column) in table.columns.iter().enumerate() {
        let name = format!("{} {}", table.name, column.name);
        match found.column(column.name).unwrap() {
            Values::Text(texts) => {
                let wanted: Vec<_> = rows.iter().map(|row| row[place].to_owned()).collect();
                let texts: Vec<_> =
                    texts.iter().map(|text| text.clone().unwrap_or_default()).collect();
                assert_eq!(texts, wanted, "{name}");
            }
            Values::Int(values) => {
                for (value, row) in values.iter().zip(rows) {
                    let text = match (value, column.kind) {
                        (None, _) => String::new(),
                        (Some(units), Kind::Yen) => Money::from_units(*units).to_string(),
                        (Some(days), Kind::Date) => {
                            let days = usize::try_from(*days).unwrap();
                            domain::JstDate::default().iter_days().nth(days).unwrap().to_string()
                        }
                        (Some(number), _) => number.to_string(),
                    };
                    assert_eq!(text, row[place], "{name}");
                }
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}
