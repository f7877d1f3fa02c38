//! The start of a strategy's run, the end of its orders, and orders that come back.

use std::time::Duration;

use domain::{Money, OrderSide, OrderStatus};
use ipc::OrderListFilter;
use orders::DeskCommand;
use orders::event::{OwnOrder, Shortfall, Standing, StrategyEvent, Unsettled};

use crate::broker::refused;
use crate::settle::adjustment;
use crate::strategy_orders::{ID, elsewhere, held, holding, limit_sell, rules, strategy, submit};
use crate::world::{InFlight, World, limit_buy};

/// Begins a takeover and lets time pass until it ends.
fn take_over(world: &mut World) -> Result<Standing, Unsettled> {
    world.told.clear();
    world.tell(DeskCommand::TakeOver(ID.into()));
    for _ in 0..70 {
        world.settle(1);
        if let Some(taken) = taken(world) {
            return taken;
        }
    }
    panic!("{:?}", world.told)
}

fn taken(world: &World) -> Option<Result<Standing, Unsettled>> {
    world.told.iter().find_map(|event| match event {
        StrategyEvent::TakenOver { taken, .. } => Some(taken.clone()),
        _ => None,
    })
}

fn own(world: &World) -> Option<(Vec<OwnOrder>, Option<String>)> {
    world.told.iter().find_map(|event| match event {
        StrategyEvent::OwnOrders { orders, refused, .. } => {
            Some((orders.clone(), refused.as_ref().map(|refused| refused.text.clone())))
        }
        _ => None,
    })
}

fn restarted(mut world: World) -> World {
    world.restart(false);
    world.log_in();
    world.password("0000");
    world.settle(1);
    world.events();
    world.sent.clear();
    world
}

/// P103, P104, P96: it starts with what its fills say, the cash, and the day's profit.
#[test]
fn p104_a_start_takes_over_what_the_log_says() {
    let mut world = holding(300);
    submit(&mut world, &limit_sell("s", 100, "2400"));
    world.broker.fill_at("1001", 100, "2600.5");
    world.settle(1);
    let mut world = restarted(world);
    world.broker.held = vec![("7203".to_owned(), 200), ("6758".to_owned(), 900)];
    world.broker.cash = 123_456;
    let standing = take_over(&mut world).unwrap();
    assert_eq!((standing.held.len(), standing.held[0].quantity), (1, 200));
    assert_eq!(standing.realised_today, Money::from_yen(10_000));
    assert_eq!(standing.cash, Some(Money::from_yen(123_456)));
    assert_eq!((standing.shortfalls, standing.corrections), (Vec::new(), Vec::new()));
    assert!(!world.sent.iter().any(|id| id == "new" || id == "cancel"), "{:?}", world.sent);
}

/// P105: its working orders are cancelled first; what they are filled meanwhile counts.
#[test]
fn p105_leftovers_are_cancelled_and_their_last_fills_count() {
    let mut world = World::with_details(rules());
    submit(&mut world, &limit_buy("a", 300, "2600"));
    submit(&mut world, &limit_buy("b", 100, "2500"));
    world.submit(&limit_buy("p", 100, "2500"));
    world.answer_all();
    let mut world = restarted(world);
    world.settle(30);
    assert!(!world.sent.contains(&"cancel".to_owned()), "P106: nothing before a start");
    world.told.clear();
    world.tell(DeskCommand::TakeOver(ID.into()));
    for _ in 0..200 {
        let is_cancel = matches!(&world.in_flight, Some(InFlight::Request { request, .. }) if request.id == "cancel");
        if is_cancel {
            break;
        }
        world.answer();
        world.pass(Duration::from_millis(200));
    }
    // Filled before the cancel gets there; the stream loses the notice.
    world.broker.fill("1000", 100);
    world.broker.notices.pop();
    world.answer();
    for _ in 0..40 {
        world.settle(1);
        if taken(&world).is_some() {
            break;
        }
    }
    let standing = taken(&world).unwrap().unwrap();
    assert_eq!(standing.held[0].quantity, 100, "the details tell it");
    assert_eq!(world.sent.iter().filter(|id| *id == "cancel").count(), 2);
    let open = world.broker.orders.values().filter(|order| order.is_open()).count();
    assert_eq!(open, 1, "the person's order works on");
}

/// P105: leftovers that cannot be cancelled: no start, with the reason.
#[test]
fn p105_a_leftover_that_cannot_be_cancelled_refuses_the_start() {
    let mut world = World::ready(rules(), false);
    submit(&mut world, &limit_buy("a", 300, "2600"));
    world.restart(false);
    world.log_in();
    let why = take_over(&mut world).unwrap_err();
    assert!(
        why.message.contains("1000") && why.message.contains("SECOND_PASSWORD_REQUIRED"),
        "{}",
        why.message
    );
    assert_eq!(&*why.orders[0].client_order_id, "a");
    world.password("0000");
    world.told.clear();
    world.tell(DeskCommand::TakeOver(ID.into()));
    let begun = world.mono;
    while taken(&world).is_none() && world.mono < begun + Duration::from_secs(90) {
        let is_cancel = matches!(&world.in_flight, Some(InFlight::Request { request, .. }) if request.id == "cancel");
        match is_cancel {
            true => world.answer_with(|id| refused(id, "busy")),
            false => world.answer(),
        }
        world.pass(Duration::from_millis(200));
    }
    let why = taken(&world).unwrap().unwrap_err();
    assert!(why.message.contains("VENUE_REJECTED: "), "{}", why.message);
    assert!(world.sent.iter().filter(|id| *id == "cancel").count() > 5, "it was tried again");
    assert!(world.mono - begun < Duration::from_secs(65));
}

/// P104, P124: an order whose outcome stays unknown refuses the start, and its id and the command are named.
#[test]
fn p104_an_order_that_nobody_knows_of_refuses_the_start() {
    let mut world = World::ready(rules(), false);
    world.submit_of(strategy(), &limit_buy("lost", 300, "2600"));
    world.lose(false);
    // The list has a row that may be it, twice.
    elsewhere_like(&mut world);
    elsewhere_like(&mut world);
    let begun = world.mono;
    let why = take_over(&mut world).unwrap_err();
    assert!(
        why.message.contains("lost") && why.message.contains("kumiki order settle"),
        "{}",
        why.message
    );
    assert_eq!((why.orders.len(), why.orders[0].venue_order_id.clone()), (1, None));
    assert!(world.mono - begun < Duration::from_secs(33), "30 s together");
}

fn elsewhere_like(world: &mut World) {
    let number = elsewhere(world, OrderSide::Buy, 300);
    let order = world.broker.orders.get_mut(&number).unwrap();
    order.order.price = "2600".parse().ok();
}

/// P104: an unknown order that a later list does not have is decided, and the start goes on.
#[test]
fn p104_a_lost_order_is_decided_before_the_start() {
    let mut world = World::ready(rules(), false);
    world.submit_of(strategy(), &limit_buy("lost", 300, "2600"));
    world.lose(false);
    world.events();
    take_over(&mut world).unwrap();
    assert!(world.events().contains(&"OrderRejected lost INTERNAL_ERROR".to_owned()));
}

/// P104: fills that only the list has are waited for, and refuse the start where nobody tells them.
#[test]
fn p104_fills_that_nobody_tells_refuse_the_start() {
    let mut world = World::ready(rules(), false);
    submit(&mut world, &limit_buy("a", 300, "2600"));
    world.broker.fill("1000", 100);
    world.broker.notices.clear();
    world.streamed = 0;
    world.broker.end("1000", OrderStatus::Canceled);
    let why = take_over(&mut world).unwrap_err();
    assert!(why.message.contains("1000 (100 listed, 0 known)"), "{}", why.message);
}

/// P107: fewer shares in the account than strategies hold together; a list of shares with a row left out proves
/// nothing (P129).
#[test]
fn p107_p129_fewer_shares_than_strategies_hold_are_told() {
    let mut world = holding(300);
    world.submit_of(domain::OrderOrigin::Strategy("other".into()), &limit_buy("o", 100, "2600"));
    world.answer_all();
    world.broker.fill("1001", 100);
    world.settle(1);
    world.tell(DeskCommand::StrategyRuns(None));
    for (account, is_short) in [(400, false), (399, true)] {
        world.broker.held = vec![("7203".to_owned(), account)];
        let standing = take_over(&mut world).unwrap();
        let instrument_id = "7203.TSE".into();
        let account = account as i64;
        let short = Shortfall { instrument_id, strategy: 300, together: 400, account };
        assert_eq!(standing.shortfalls, if is_short { vec![short] } else { Vec::new() });
    }
    world.broker.held = vec![("7203".to_owned(), 100), (String::new(), 1)];
    assert_eq!(take_over(&mut world).unwrap().shortfalls, []);
}

/// P129: a list of orders with a row left out starts nothing.
#[test]
fn p129_a_list_with_a_row_left_out_starts_nothing() {
    let mut world = World::ready(rules(), false);
    let number = elsewhere(&mut world, OrderSide::Buy, 100);
    world.pass(Duration::from_secs(1));
    world.answer_all();
    world.told.clear();
    world.tell(DeskCommand::TakeOver(ID.into()));
    for _ in 0..200 {
        while let Some(InFlight::Request { request, .. }) = &world.in_flight {
            match request.id.as_str() {
                "list" => {
                    let mut answered = crate::broker::answer("list", "", Vec::new());
                    let row = vec![domain::order_mapping::Field::new("number", number.as_str())];
                    answered.lists.insert("rows".to_owned(), vec![row]);
                    world.answer_with(|_| answered);
                }
                _ => world.answer(),
            }
        }
        world.pass(Duration::from_millis(200));
    }
    let why = taken(&world).unwrap().unwrap_err();
    assert!(why.message.contains("cannot read"), "{}", why.message);
}

/// A desk on the day after one on which an order `a`, number 1000, was sent and filled by so many shares while no
/// desk was there. Lists do not have it any more, and details have it if the broker `tells` them.
fn on_the_next_day(filled: u64, tells: bool) -> World {
    let mut world = World::with_details(rules());
    submit(&mut world, &limit_buy("a", 300, "2600"));
    world.broker.fill("1000", filled);
    world.broker.held = vec![("7203".to_owned(), filled)];
    world.broker.end_day();
    if !tells {
        world.broker.past.clear();
    }
    world.broker.notices.clear();
    world.streamed = 0;
    world.mono += Duration::from_secs(24 * 3_600);
    world.wall = world.wall.plus_nanos(24 * 3_600 * 1_000_000_000);
    restarted(world)
}

/// P100, P104: the broker's details tell what an order of an earlier day was filled, and nothing of it works.
#[test]
fn p100_p104_what_yesterday_s_orders_were_filled_counts() {
    for filled in [0, 100, 300] {
        let mut world = on_the_next_day(filled, true);
        let standing = take_over(&mut world).unwrap();
        let held: Vec<i64> = standing.held.iter().map(|one| one.quantity).collect();
        assert_eq!(held, if filled == 0 { vec![] } else { vec![filled as i64] });
        assert!(!world.sent.contains(&"cancel".to_owned()));
        // The log knows it, so the next process does not ask again.
        world.sent.clear();
        let mut world = restarted(world);
        assert_eq!(take_over(&mut world).unwrap().held.len(), usize::from(filled > 0));
        assert!(!world.sent.contains(&"detail".to_owned()), "{:?}", world.sent);
    }
}

/// P104: where the broker does not tell it, nothing starts before a person has looked.
#[test]
fn p104_an_order_of_yesterday_whose_end_nobody_tells_refuses_the_start() {
    let mut world = on_the_next_day(300, false);
    let why = take_over(&mut world).unwrap_err();
    assert!(why.message.starts_with("ENDS: ") && why.message.contains("1000"), "{}", why.message);
    world.tell(DeskCommand::StrategyRuns(None));
    world.tell(DeskCommand::Adjust(adjustment(300, 2_600)));
    assert_eq!(take_over(&mut world).unwrap().held[0].quantity, 300);
}

/// P86: all own orders are cancelled, and the answer comes when they have ended.
#[test]
fn p86_a_cancel_of_own_orders_ends_with_them() {
    let mut world = World::ready(rules(), false);
    submit(&mut world, &limit_buy("a", 300, "2600"));
    submit(&mut world, &limit_buy("b", 300, "2600"));
    world.submit(&limit_buy("p", 300, "2600"));
    world.answer_all();
    world.told.clear();
    world.events();
    world.tell(DeskCommand::CancelOwn(ID.into()));
    assert!(own(&world).is_none());
    world.settle(3);
    assert_eq!(own(&world), Some((Vec::new(), None)));
    let reported = world.events();
    assert!(reported.contains(&"OrderCanceled a 1000".to_owned()), "{reported:?}");
    assert!(reported.contains(&"OrderCanceled b 1001".to_owned()), "{reported:?}");
    assert!(!reported.iter().any(|event| event.contains(" p")), "{reported:?}");
    // Nothing works: the answer comes at once.
    world.told.clear();
    world.tell(DeskCommand::CancelOwn(ID.into()));
    assert_eq!(own(&world), Some((Vec::new(), None)));
}

/// P86: a new order that waits is not sent, one whose answer is under way is cancelled when it has its number, and
/// a cancel that is refused is tried again.
#[test]
fn p86_it_waits_for_orders_that_are_busy() {
    let mut world = World::ready(rules(), false);
    world.submit_of(strategy(), &limit_buy("sent", 300, "2600"));
    world.submit_of(strategy(), &limit_buy("waits", 300, "2600"));
    world.told.clear();
    world.events();
    world.tell(DeskCommand::CancelOwn(ID.into()));
    assert_eq!(world.events(), ["OrderRejected waits INTERNAL_ERROR"]);
    world.answer();
    world.pass(Duration::from_millis(200));
    while !matches!(&world.in_flight, Some(InFlight::Request { request, .. }) if request.id == "cancel")
    {
        world.answer();
        world.pass(Duration::from_millis(200));
    }
    world.answer_with(|id| refused(id, "being accepted"));
    assert!(own(&world).is_none());
    world.settle(5);
    assert_eq!(own(&world), Some((Vec::new(), None)));
}

/// P86, P127: after 30 s the answer names what is left, and why.
#[test]
fn p127_what_cannot_be_cancelled_is_named() {
    let mut world = World::ready(rules(), false);
    submit(&mut world, &limit_buy("a", 300, "2600"));
    let now = world.now();
    world.desk.forget_second_password(now);
    world.told.clear();
    world.tell(DeskCommand::CancelOwn(ID.into()));
    let (orders, refused) = own(&world).unwrap();
    assert_eq!((orders[0].leaves, orders[0].venue_order_id.as_deref()), (300, Some("1000")));
    assert!(refused.unwrap().starts_with("NO_PASSWORD: "));
    world.told.clear();
    world.tell(DeskCommand::OwnOrders(ID.into()));
    assert_eq!(own(&world), Some((orders, None)));
}

/// P121: an order that was told as not at the broker and is there after all is cancelled at once, and what it was
/// filled counts.
#[test]
fn p121_an_order_that_comes_back_is_cancelled_and_its_fills_count() {
    let mut world = World::ready(rules(), false);
    world.tell(DeskCommand::StrategyRuns(Some(ID.into())));
    let number = lagging(&mut world);
    world.told.clear();
    world.events();
    world.broker.fill(&number, 100);
    world.settle(3);
    let back = StrategyEvent::CameBack {
        strategy_id: ID.into(),
        client_order_id: "lost".into(),
        venue_order_id: number.as_str().into(),
        is_left: false,
    };
    assert!(world.told.contains(&back), "{:?}", world.told);
    assert_eq!(world.broker.orders[&number].status, OrderStatus::Canceled);
    assert_eq!(held(&mut world), 100);
    let reported = world.events();
    assert!(reported.contains(&format!("OrderFilled lost {number}")), "{reported:?}");
}

/// An order that reached the broker, of which an early list knew nothing: told as not at the broker. Its row
/// is in later lists.
fn lagging(world: &mut World) -> String {
    world.submit_of(strategy(), &limit_buy("lost", 300, "2600"));
    world.lose(true);
    let number = "1000".to_owned();
    let order = world.broker.orders.remove(&number).unwrap();
    world.broker.notices.clear();
    world.streamed = 0;
    for _ in 0..60 {
        world.pass(Duration::from_millis(200));
        world.answer_all();
    }
    let rejected = world.json("OrderRejected");
    assert!(rejected["reason_text"].as_str().unwrap().starts_with("NOT_AT_BROKER: "), "{rejected}");
    world.broker.orders.insert(number.clone(), order);
    number
}

/// P121, P106: after a restart it is the strategy's again, and nothing is sent before a start.
#[test]
fn p121_an_order_that_comes_back_after_a_restart_waits_for_the_start() {
    let mut world = World::ready(rules(), false);
    let number = lagging(&mut world);
    world.broker.fill(&number, 100);
    world.restart(false);
    world.log_in();
    world.password("0000");
    world.sent.clear();
    world.settle(3);
    assert_eq!(held(&mut world), 100);
    assert!(!world.sent.contains(&"cancel".to_owned()), "{:?}", world.sent);
    world.broker.held = vec![("7203".to_owned(), 100)];
    assert_eq!(take_over(&mut world).unwrap().held[0].quantity, 100);
    assert_eq!(world.broker.orders[&number].status, OrderStatus::Canceled);
    // The log has it for the next process, too.
    world.restart(false);
    world.log_in();
    world.list(OrderListFilter::default());
    world.answer_all();
    assert_eq!(world.json("OrderListUpdated")["orders"][0]["client_order_id"], "lost");
}

/// P121: once its strategy runs again, an order of an earlier process that comes back is cancelled at once.
#[test]
fn p121_an_order_of_an_earlier_process_that_comes_back_in_a_run_is_cancelled() {
    let mut world = World::ready(rules(), false);
    let number = lagging(&mut world);
    let order = world.broker.orders.remove(&number).unwrap();
    world.restart(false);
    world.log_in();
    world.password("0000");
    take_over(&mut world).unwrap();
    world.tell(DeskCommand::StrategyRuns(Some(ID.into())));
    world.broker.orders.insert(number.clone(), order);
    world.told.clear();
    world.list(OrderListFilter::default());
    world.settle(3);
    let is_back =
        |event: &StrategyEvent| matches!(event, StrategyEvent::CameBack { is_left: false, .. });
    assert!(world.told.iter().any(is_back), "{:?}", world.told);
    assert_eq!(world.broker.orders[&number].status, OrderStatus::Canceled);
}

/// P121: an equal order that a person placed later, or one of two equal ones, is not taken for it.
#[test]
fn p121_a_person_s_equal_order_is_not_taken_for_it() {
    for (later, orders) in [(Duration::from_secs(60), 1), (Duration::ZERO, 2)] {
        let mut world = World::ready(rules(), false);
        let number = lagging(&mut world);
        let placed = world.broker.orders.remove(&number);
        drop(placed);
        let wall = world.wall;
        let sent = world.log.lines("submit");
        assert_eq!(sent.len(), 1);
        // The broker's time of a person's order: of the lost one's submit, or a minute later.
        let submitted = wall.nanos() - 12_000_000_000;
        for _ in 0..orders {
            world.wall = domain::TsNanos::from_nanos(submitted + later.as_nanos() as u64);
            elsewhere_like(&mut world);
        }
        world.wall = wall;
        world.told.clear();
        world.settle(20);
        let is_back = |event: &StrategyEvent| matches!(event, StrategyEvent::CameBack { .. });
        assert!(!world.told.iter().any(is_back), "{later:?} {orders}: {:?}", world.told);
        assert!(world.broker.orders.values().all(|order| order.is_open()));
    }
}

/// Two runs one after the other under one id.
#[test]
fn two_runs_of_one_id_follow_each_other() {
    let mut world = holding(300);
    world.tell(DeskCommand::CancelOwn(ID.into()));
    world.tell(DeskCommand::StrategyRuns(None));
    let first = take_over(&mut world).unwrap();
    world.tell(DeskCommand::StrategyRuns(Some(ID.into())));
    submit(&mut world, &limit_sell("second", 300, "2500"));
    world.broker.fill("1001", 300);
    world.broker.held.clear();
    world.settle(1);
    world.tell(DeskCommand::StrategyRuns(None));
    let second = take_over(&mut world).unwrap();
    assert_eq!((first.held[0].quantity, second.held.len()), (300, 0));
}
