//! A run with real orders over a desk that is played by the test. Needs the built-in strategies beside the test program;
//! without them the tests say so and pass.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use domain::market::Trade;
use domain::{
    Fill, Money, OrderEventKind, OrderRequest, OrderSide, OrderStatus, Origin, Quantity, Random,
    ReasonCode,
};
use orders::NewOrder;
use orders::event::StrategyHolding;
use results::RunStatus;
use results::sink::TotalsOnly;
use serde_json::json;
use trader::OrderLimits;

use super::*;
use crate::feed::tests::trade as live_trade;
use crate::feed::{FeedLimits, FeedObserver, FeedRows, FeedSender, Opening, feed};
use crate::journal::{RunKind, reproduce};
use crate::paper::PaperRun;
use crate::paper::tests::{Nobody, built_in, day, manifest_in, paper};

const DATE: &str = "2025-01-07";

/// What the test's desk saw.
#[derive(Debug, Default)]
struct Seen {
    sent: Vec<OrderRequest>,
    refused: Vec<OrderEvent>,
    cancels: u32,
}

/// A desk that fills each order at once at its price for whole shares, or leaves it working.
struct Played {
    feed: FeedSender,
    price: Arc<Mutex<Price>>,
    fills: bool,
    seen: Arc<Mutex<Seen>>,
}

impl Played {
    fn report(&self, order: &OrderRequest, status: OrderStatus, kind: OrderEventKind) {
        self.feed.broker(BrokerNews::Order(OrderEvent {
            ts_event: TsNanos::from_nanos(1),
            origin: Origin::Strategy,
            client_order_id: order.client_order_id.clone(),
            venue_order_id: (status != OrderStatus::Submitted).then(|| "17".into()),
            instrument: order.instrument,
            side: order.side,
            status,
            kind,
        }));
    }
}

impl Broker for Played {
    fn place(&self, _: &InstrumentId) -> Option<InstrumentIx> {
        Some(InstrumentIx(7))
    }

    fn upper_limit(&self, _: &InstrumentId) -> Option<Price> {
        Some(Price::from_yen(3_000))
    }

    fn send(&mut self, command: DeskCommand) -> Result<(), Rejection> {
        let DeskCommand::Submit(NewOrder { request: Ok(order), client_order_id, .. }) = command
        else {
            return Ok(());
        };
        assert_eq!(order.client_order_id, client_order_id);
        let submitted = OrderEventKind::Submitted(order.clone().into());
        self.report(&order, OrderStatus::Submitted, submitted);
        self.report(&order, OrderStatus::Accepted, OrderEventKind::Accepted);
        if self.fills {
            let price = *self.price.lock().unwrap();
            let fill = Fill {
                side: order.side,
                trade_id: "1".into(),
                last_quantity: order.quantity,
                last_price: price,
                market_price: price,
                cumulative_quantity: order.quantity,
                leaves_quantity: Quantity::ZERO,
                commission: None,
            };
            self.report(&order, OrderStatus::Filled, OrderEventKind::Filled(fill));
        }
        self.seen.lock().unwrap().sent.push(order);
        Ok(())
    }

    fn refused(&mut self, event: &OrderEvent) {
        self.seen.lock().unwrap().refused.push(event.clone());
    }

    fn end_own(&mut self) -> bool {
        self.seen.lock().unwrap().cancels += 1;
        self.feed.broker(BrokerNews::Left(Vec::new()));
        true
    }
}

/// Hands over the position, and opens the feed.
struct Begins {
    feed: FeedSender,
    standing: Standing,
    ready: std::sync::mpsc::Sender<()>,
}

impl FeedObserver for Begins {
    fn ready(&mut self, opening: Opening) {
        self.feed.broker(BrokerNews::Standing(std::mem::take(&mut self.standing)));
        drop(opening);
        self.ready.send(()).unwrap();
    }

    fn slow(&mut self, _: bool) {}
}

/// Passes an observer on that needs the feed it observes.
struct Later(Arc<Mutex<Option<Begins>>>);

impl FeedObserver for Later {
    fn ready(&mut self, opening: Opening) {
        if let Some(begins) = self.0.lock().unwrap().as_mut() {
            begins.ready(opening);
        }
    }

    fn slow(&mut self, _: bool) {}
}

struct Case {
    run: PaperRun,
    standing: Standing,
    fills: bool,
    trades: Vec<Trade>,
    /// News after the last trade.
    last: Option<FaultKind>,
}

/// Runs a case to its stop.
fn play(case: Case) -> (PaperOutcome, Seen, PathBuf) {
    let folder = case.run.folder.clone();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let begins = Arc::new(Mutex::new(None));
    let observer = Box::new(Later(Arc::clone(&begins)));
    let (sender, mut receiver) =
        feed(&case.run.instruments, FeedRows::Trades, FeedLimits::default(), observer);
    let (ready, is_ready) = channel();
    *begins.lock().unwrap() = Some(Begins { feed: sender.clone(), standing: case.standing, ready });
    let price = Arc::new(Mutex::new(Price::from_yen(2_400)));
    let broker = Played {
        feed: sender.clone(),
        price: Arc::clone(&price),
        fills: case.fills,
        seen: Arc::clone(&seen),
    };
    let orders = RealOrders {
        broker,
        strategy_id: "s-1".into(),
        run_id: "20250107T090000000Z-00000001".to_owned(),
        clock: domain::clock::wall_now,
    };
    let run = case.run.prepare(&mut Nobody).unwrap();
    let outcome = std::thread::scope(|scope| {
        let (trades, last) = (&case.trades, case.last);
        scope.spawn(move || {
            is_ready.recv().unwrap();
            for trade in trades {
                *price.lock().unwrap() = trade.price;
                let (ms, yen) = (trade.ts_event.millis(), trade.price.units() / 10_000);
                let shares = trade.quantity.shares() as i64;
                sender.update(&live_trade("7203", ms, yen, shares));
                while sender.waiting() > 0 {
                    std::thread::yield_now();
                }
            }
            match last {
                Some(kind) => sender.broker(BrokerNews::Fail(kind)),
                None => sender.stop(),
            }
        });
        run.run_real(&mut receiver, orders, &mut TotalsOnly).unwrap()
    });
    drop(begins);
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (outcome, seen, folder)
}

fn real(strategies: PathBuf, home: &Path) -> PaperRun {
    PaperRun { kind: RunKind::Live, cash: Money::ZERO, data: None, ..paper(strategies, home) }
}

/// The test guest that does nothing.
fn empty(strategies: &Path) -> String {
    let guests = strategies.parent().unwrap().join("test-guests");
    guests.join("empty.wasm").to_str().unwrap().to_owned()
}

fn trades() -> Vec<Trade> {
    day(&mut Random::new(&[5]), DATE, &mut 2_400)
}

fn ended(outcome: PaperOutcome) -> crate::paper::EndedRun {
    match outcome {
        PaperOutcome::Ended(ended) => *ended,
        PaperOutcome::Refused(fault) => panic!("{fault}"),
    }
}

/// P92: ids on the wire are of the run, each once, and short enough. P86: the stop cancels, and the guest stops. P113:
/// the journal makes it again.
#[test]
fn p86_p92_p113_orders_have_ids_of_the_run_and_its_journal_makes_it_again() {
    let Some(strategies) = built_in() else { return };
    let home = tempfile::tempdir().unwrap();
    let case = Case {
        run: real(strategies, home.path()),
        standing: Standing { cash: Some(Money::from_yen(10_000_000)), ..Standing::default() },
        fills: true,
        trades: trades(),
        last: None,
    };
    let (outcome, seen, folder) = play(case);
    let ended = ended(outcome);
    assert_eq!(ended.totals.status, RunStatus::Interrupted);
    assert!(seen.sent.len() > 3, "{} orders", seen.sent.len());
    for (number, order) in seen.sent.iter().enumerate() {
        let id = format!("20250107T090000000Z-00000001-{}", number + 1);
        assert_eq!((&*order.client_order_id, order.instrument), (&*id, InstrumentIx(7)));
        assert!(id.len() <= 36);
    }
    assert_eq!(seen.cancels, 1);
    let manifest = manifest_in(&folder);
    assert_eq!((&manifest["run_kind"], &manifest["partial"]), (&json!("live"), &json!(false)));
    let reproduced = reproduce(&folder, None, Some(&home.path().join("cache"))).unwrap();
    assert!(reproduced.identical && !reproduced.torn && reproduced.outputs > 0, "{reproduced:?}");
    // Every fill is in the tables, by the strategy's own ids.
    let fills = fs::read_to_string(folder.join("fills.csv")).unwrap();
    assert_eq!(fills.lines().count() as u64, ended.totals.fill_count + 1);
}

/// P103 and P87: a carried position is the strategy's from the start, and the result counts from what it cost.
#[test]
fn p87_p103_a_carried_position_counts_from_its_average_price() {
    let Some(strategies) = built_in() else { return };
    let home = tempfile::tempdir().unwrap();
    let held = StrategyHolding {
        strategy_id: "s-1".into(),
        instrument_id: "7203.TSE".into(),
        quantity: 100,
        cost: Money::from_yen(240_000),
        margin: 0,
        margin_cost: Money::ZERO,
    };
    let run = PaperRun {
        strategy: empty(&strategies),
        parameters: BTreeMap::new(),
        ..real(strategies, home.path())
    };
    let trades = trades();
    let last = trades.last().unwrap().price;
    let standing = Standing { held: vec![held], ..Standing::default() };
    let case = Case { run, standing: standing.clone(), fills: true, trades, last: None };
    let totals = ended(play(case).0).totals;
    let worth = Money::from_units(last.units() * 100);
    assert_eq!((totals.position_end, totals.equity_end), (100, worth - Money::from_yen(240_000)));
    assert_eq!(totals.fill_count, 0);

    // Without a trade it is worth what it cost.
    let home = tempfile::tempdir().unwrap();
    let strategies = built_in().unwrap();
    let run = PaperRun {
        strategy: empty(&strategies),
        parameters: BTreeMap::new(),
        ..real(strategies, home.path())
    };
    let case = Case { run, standing, fills: true, trades: Vec::new(), last: None };
    assert_eq!(ended(play(case).0).totals.equity_end, Money::ZERO);
}

/// P95 and P96: a guard refuses before anything leaves; clients hear of it by the id on the wire.
#[test]
fn p95_p96_refused_orders_do_not_leave() {
    let Some(strategies) = built_in() else { return };
    for (limits, tag) in [
        (OrderLimits { max_qty: Some(Quantity::new(1)), ..OrderLimits::default() }, "MAX_QTY: "),
        (
            OrderLimits { max_notional: Some(Money::from_yen(1)), ..OrderLimits::default() },
            "MAX_NOTIONAL_JPY: ",
        ),
    ] {
        let home = tempfile::tempdir().unwrap();
        let run = PaperRun { orders: limits, ..real(strategies.clone(), home.path()) };
        let case =
            Case { run, standing: Standing::default(), fills: true, trades: trades(), last: None };
        let (outcome, seen, _) = play(case);
        assert_eq!(ended(outcome).totals.status, RunStatus::Interrupted, "{tag}");
        assert!(seen.sent.is_empty() && !seen.refused.is_empty(), "{tag}");
        for event in &seen.refused {
            let OrderEventKind::Rejected(rejection) = &event.kind else { panic!("{event:?}") };
            assert_eq!(rejection.code, ReasonCode::ValidationError);
            assert!(rejection.text.starts_with(tag), "{rejection}");
            assert!(event.client_order_id.starts_with("20250107T"), "{event:?}");
        }
    }
}

/// P114: shares of the account that the strategy does not hold are never sold. P98: an order that works stays with it.
#[test]
fn p98_p114_nothing_is_sold_that_it_does_not_hold() {
    let Some(strategies) = built_in() else { return };
    let home = tempfile::tempdir().unwrap();
    let case = Case {
        run: real(strategies, home.path()),
        standing: Standing::default(),
        fills: false,
        trades: trades(),
        last: None,
    };
    let (outcome, seen, _) = play(case);
    assert!(seen.sent.iter().all(|order| order.side == OrderSide::Buy), "{:?}", seen.sent);
    for event in &seen.refused {
        let OrderEventKind::Rejected(rejection) = &event.kind else { panic!("{event:?}") };
        assert!(rejection.text.starts_with("POSITION: "), "{rejection}");
    }
    assert_eq!(ended(outcome).totals.fill_count, 0);
}

/// P107, P121, P128: the host ends a run with a fault that names why.
#[test]
fn p107_p121_p128_a_halted_run_ends_with_its_fault() {
    let Some(strategies) = built_in() else { return };
    let home = tempfile::tempdir().unwrap();
    let kind = FaultKind::Halt("POSITION_FILE: of a test".to_owned());
    let case = Case {
        run: real(strategies, home.path()),
        standing: Standing::default(),
        fills: true,
        trades: trades().into_iter().take(50).collect(),
        last: Some(kind.clone()),
    };
    let (outcome, seen, folder) = play(case);
    let totals = ended(outcome).totals;
    assert!(matches!(&totals.status, RunStatus::Failed(fault) if fault.kind == kind));
    assert_eq!(seen.cancels, 0, "what becomes of its orders the engine decides");
    let manifest = manifest_in(&folder);
    assert!(manifest["fault"].as_str().unwrap().contains("POSITION_FILE: of a test"));
}
