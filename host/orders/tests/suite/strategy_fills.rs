//! Fills of strategies' orders: each counts once, and is in the log before anybody is told.

use std::time::Duration;

use domain::{Money, OrderStatus};
use ipc::OrderListFilter;
use orders::event::StrategyEvent;
use orders::kill::FILL_POINTS;
use orders::{AuditLog, DeskCommand, DeskRules, OrderPhase, Restored};

use crate::reconciliation::permutations;
use crate::strategy_orders::{ID, held, holding, limit_sell, rules, strategy, submit};
use crate::world::{World, limit_buy};

fn fills(world: &World) -> usize {
    world.reported.iter().filter(|(_, event)| matches!(event, ipc::Event::OrderFilled(_))).count()
}

/// What the log alone says that the strategy holds.
fn logged(world: &World) -> i64 {
    let restored = Restored::read(&world.log.bytes.lock().unwrap());
    restored.holdings.of(ID, "7203.TSE").quantity
}

fn with_details() -> World {
    let mut world = World::with_details(rules());
    submit(&mut world, &limit_buy("a", 300, "2600"));
    world.settle(20);
    world.reported.clear();
    world
}

/// P101: the same fill in a notice, a list and the details of its order, in every order, with reconnects and
/// resends between them.
#[test]
fn p101_a_fill_counts_once_whatever_reports_it_first() {
    for order in permutations(3) {
        let mut world = with_details();
        world.broker.fill("1000", 100);
        world.pump();
        let notice = world.stream.pop_back().unwrap();
        for step in order {
            match step {
                0 => {
                    world.stream.push_back(notice.clone());
                    world.deliver(0);
                }
                1 => {
                    world.list(OrderListFilter::default());
                    world.answer_all();
                    for _ in 0..100 {
                        world.pass(Duration::from_millis(200));
                        world.answer_all();
                    }
                }
                _ => {
                    world.disconnect();
                    world.connect();
                    world.deliver_all();
                }
            }
        }
        assert_eq!((fills(&world), held(&mut world), logged(&world)), (1, 100, 100));
        // Over a restart, too.
        world.reported.clear();
        world.restart(false);
        world.log_in();
        world.deliver_all();
        world.settle(20);
        assert_eq!((fills(&world), held(&mut world)), (0, 100));
    }
}

/// P101, P25: fills after the end of an order, and during its cancel, count.
#[test]
fn p101_a_fill_during_a_cancel_and_one_after_the_end_count() {
    let mut world = World::ready(rules(), false);
    submit(&mut world, &limit_buy("a", 300, "2600"));
    world.events();
    world.cancel_of_strategy("a");
    // The broker fills a part before the cancel reaches it, and the notice of another part is late.
    world.broker.fill("1000", 100);
    world.broker.fill("1000", 100);
    world.pump();
    let late = world.stream.pop_back().unwrap();
    world.answer_all();
    world.deliver_all();
    let reported = world.events();
    assert_eq!(reported[0], "OrderPendingCancel a");
    assert!(reported.contains(&"OrderCanceled a 1000".to_owned()), "{reported:?}");
    assert_eq!(held(&mut world), 100);
    world.stream.push_back(late);
    world.deliver(0);
    assert_eq!(world.events(), ["OrderFilled a 1000"]);
    assert_eq!((held(&mut world), logged(&world)), (200, 200));
    world.settle(20);
    world.submit_of(strategy(), &limit_sell("s", 200, "2500"));
    world.answer_all();
    assert!(world.events().contains(&"OrderAccepted s 1001".to_owned()));
}

/// Lines of a strategy's fills have what the fold needs, and those of people do not change.
#[test]
fn p101_the_line_of_a_fill_says_whose_side_it_is() {
    let mut world = holding(100);
    world.submit(&limit_buy("p", 100, "2600"));
    world.answer_all();
    world.broker.fill("1001", 100);
    world.deliver_all();
    let lines = world.log.lines("filled");
    assert!(
        lines[0].contains(r#""order_side":"BUY","origin":"strategy","strategy_id":"sma-cross""#),
        "{lines:?}"
    );
    assert!(!lines[1].contains("order_side") && !lines[1].contains("origin"), "{lines:?}");
}

/// P128: a fill that cannot be written is told to clients, no order leaves, and it is written once the disk can.
#[test]
fn p128_a_fill_that_cannot_be_written_stops_orders_until_it_is() {
    let mut world = World::ready(rules(), false);
    world.tell(DeskCommand::StrategyRuns(Some(ID.into())));
    submit(&mut world, &limit_buy("a", 200, "2600"));
    world.broker.fill("1000", 100);
    world.deliver_all();
    world.answer_all();
    world.told.clear();
    world.events();
    *world.log.fails.lock().unwrap() = true;
    world.broker.fill("1000", 100);
    world.deliver_all();
    assert_eq!(world.unwritten, ["a"], "its event says so");
    assert_eq!(world.events(), ["OrderFilled a 1000"]);
    let is_told = |event: &StrategyEvent| matches!(event, StrategyEvent::FillNotWritten { strategy_id, .. } if strategy_id == ID);
    assert!(world.told.iter().any(is_told), "{:?}", world.told);
    assert_eq!(held(&mut world), 100);
    world.settle(1);
    world.events();
    submit(&mut world, &limit_sell("s", 100, "2500"));
    let event = world.json("OrderRejected");
    assert!(event["reason_text"].as_str().unwrap().starts_with("POSITION_FILE: "), "{event}");
    world.sent.clear();
    world.tell(DeskCommand::StrategyRuns(None));
    world.told.clear();
    world.tell(DeskCommand::TakeOver(ID.into()));
    match world.told.pop() {
        Some(StrategyEvent::TakenOver { taken: Err(why), .. }) => {
            assert!(why.message.starts_with("POSITION_FILE: "), "{why:?}");
        }
        other => panic!("{other:?}"),
    }
    assert!(world.sent.is_empty());
    *world.log.fails.lock().unwrap() = false;
    world.settle(1);
    assert_eq!((held(&mut world), logged(&world)), (200, 200), "it was written by itself");
    submit(&mut world, &limit_sell("s", 200, "2500"));
    assert!(world.sent.contains(&"new".to_owned()));
}

/// A kill before a fill was written tells it after the restart; a kill after that does not (P130).
#[test]
fn p130_a_fill_is_told_again_only_where_it_was_not_written() {
    for is_written in [true, false] {
        let mut world = World::ready(rules(), false);
        submit(&mut world, &limit_buy("a", 200, "2600"));
        *world.log.fails.lock().unwrap() = !is_written;
        world.broker.fill("1000", 100);
        world.deliver_all();
        *world.log.fails.lock().unwrap() = false;
        world.reported.clear();
        world.restart(false);
        world.log_in();
        world.deliver_all();
        world.settle(10);
        assert_eq!(
            (fills(&world), held(&mut world)),
            (usize::from(!is_written), 100),
            "{is_written}"
        );
    }
}

/// What the broker reports beyond the shares of an order does not count for its strategy.
#[test]
fn a_fill_beyond_the_order_does_not_count() {
    let mut world = World::ready(rules(), false);
    submit(&mut world, &limit_buy("a", 200, "2600"));
    world.broker.fill("1000", 100);
    world.deliver_all();
    world.events();
    let more = |trade: &str, quantity: &str| {
        [
            ("kind", "filled"),
            ("number", "1000"),
            ("event", trade),
            ("trade", trade),
            ("quantity", quantity),
            ("price", "2500"),
        ]
        .map(|(name, value)| domain::order_mapping::Field::new(name, value))
        .to_vec()
    };
    world.stream.push_back(more("91", "300"));
    world.deliver(0);
    let event = world.json("OrderFilled");
    assert_eq!((&event["last_qty"], &event["leaves_qty"]), (&"100".into(), &"0".into()));
    assert_eq!(world.json("OrderDiscrepancy")["discrepancy"], "overfilled");
    world.events();
    world.stream.push_back(more("92", "300"));
    world.deliver(0);
    assert!(!world.events().iter().any(|event| event.starts_with("OrderFilled")));
    assert_eq!((held(&mut world), logged(&world)), (200, 200));
    assert_eq!(world.log.lines("filled").len(), 3, "each is known again after a restart");
}

/// P100: what is held follows the strategy's id, over runs, and fills while nothing runs count.
#[test]
fn p100_fills_count_while_nothing_runs_and_for_the_next_run() {
    let mut world = holding(100);
    submit(&mut world, &limit_buy("more", 100, "2600"));
    world.tell(DeskCommand::StrategyRuns(None));
    world.broker.fill("1001", 100);
    world.deliver_all();
    assert_eq!(held(&mut world), 200);
    world.broker.held = vec![("7203".to_owned(), 200)];
    world.told.clear();
    world.tell(DeskCommand::TakeOver(ID.into()));
    world.settle(2);
    match world.told.pop() {
        Some(StrategyEvent::TakenOver { taken: Ok(standing), .. }) => {
            assert_eq!(standing.held[0].quantity, 200);
            assert_eq!(standing.held[0].cost, Money::from_yen(500_100));
            assert_eq!(standing.shortfalls, []);
        }
        other => panic!("{other:?}"),
    }
}

/// The end of a strategy's order is in the log: after a restart it is not told again.
#[test]
fn an_end_that_was_told_is_not_told_again_after_a_restart() {
    let mut world = World::ready(rules(), false);
    submit(&mut world, &limit_buy("a", 200, "2600"));
    world.broker.end("1000", OrderStatus::Canceled);
    world.deliver_all();
    assert_eq!(world.log.lines("ended").len(), 1);
    world.restart(false);
    world.log_in();
    world.reported.clear();
    world.deliver_all();
    world.settle(10);
    let reported = world.events();
    assert!(!reported.iter().any(|event| event.starts_with("OrderCanceled")), "{reported:?}");
    assert!(!reported.iter().any(|event| event.starts_with("OrderDiscrepancy")), "{reported:?}");
}

/// The variable with the folder of the log, for the program that is killed.
const FOLDER: &str = "KUMIKI_TEST_LOG_FOLDER";

/// The part of the test below that is killed: a strategy's order is filled, with its log on the disk.
#[test]
#[ignore = "the test below runs it in a process of its own"]
fn killed_around_a_fill() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let (log, _) = AuditLog::open(folder.as_ref()).unwrap();
    let mut world = World::ready(rules(), false);
    *world.log.file.lock().unwrap() = Some(log);
    submit(&mut world, &limit_buy("a", 200, "2600"));
    world.broker.fill("1000", 100);
    world.deliver_all();
    panic!("it was not killed");
}

/// P101, P130: killed at each point around a fill's line, the log has all of it or nothing of it.
#[test]
fn p101_p130_a_kill_around_a_fill_leaves_all_of_it_or_nothing() {
    let expected = [("fill_line_half", 0), ("fill_line_unsynced", 100), ("fill_line_synced", 100)];
    for (place, (point, shares)) in expected.into_iter().enumerate() {
        assert_eq!(FILL_POINTS[place], point);
        let folder = tempfile::tempdir().unwrap();
        let ended = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "strategy_fills::killed_around_a_fill", "--ignored"])
            .env(orders::kill::VARIABLE, point)
            .env(FOLDER, folder.path())
            .output()
            .unwrap();
        assert!(!ended.status.success(), "{point}");
        let text = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert!(!text.contains("it was not killed"), "{point}: {text}");
        let (_, restored) = AuditLog::open(folder.path()).unwrap();
        assert_eq!(restored.entries.len(), 1, "{point}");
        assert_eq!(restored.holdings.of(ID, "7203.TSE").quantity, shares, "{point}");
        assert_eq!(restored.fills.len() as i64 * 100, shares, "{point}");
        assert_eq!(restored.unreadable, 0, "{point}");
    }
}

/// P100, P114: shares of orders on margin are apart from those bought with cash, also after a restart.
#[test]
fn p100_p114_margin_shares_are_apart() {
    let rules = DeskRules { phase: OrderPhase::O3, ..DeskRules::default() };
    let mut world = World::ready(rules, false);
    let mut order = limit_buy("m", 100, "2500");
    order.tags = Some(vec!["cash_margin=margin_credit_new".to_owned()]);
    submit(&mut world, &order);
    world.broker.fill("1000", 100);
    world.deliver_all();
    for _ in 0..2 {
        world.told.clear();
        world.tell(DeskCommand::Holdings);
        match world.told.pop() {
            Some(StrategyEvent::Holdings { held, .. }) => {
                assert_eq!((held.len(), held[0].quantity, held[0].margin), (1, 0, 100));
            }
            other => panic!("{other:?}"),
        }
        world.restart(false);
        world.log_in();
        world.password("0000");
    }
    world.events();
    submit(&mut world, &limit_sell("s", 100, "2500"));
    assert_eq!(world.events(), ["OrderRejected s VALIDATION_ERROR"]);
    for phase in ["submit", "filled"] {
        assert!(world.log.lines(phase)[0].contains(r#""margin":true"#), "{phase}");
    }
}
