//! Fills that a list has and no notice reported: the order's details have their prices.
//!
//! Each fill counts once, whatever reports it first.

use std::time::Duration;

use domain::order_mapping::Field;
use domain::{OrderSide, OrderStatus, OrderType};
use ipc::OrderListFilter;
use orders::limits::{DETAILS_PAUSE, DETAILS_TRIES_MAX};
use orders::{DeskRules, OrderPhase};
use venues::web_broker::Answered;

use crate::broker::{answer, refused};
use crate::reconciliation::permutations;
use crate::world::{InFlight, MORNING, World, limit_buy};

/// Without balance guards, so that the order itself is the first request.
fn rules() -> DeskRules {
    DeskRules { phase: OrderPhase::O2, ..DeskRules::default() }
}

/// A desk with an order `a` for so many shares, number 1000, whose notices were delivered.
fn placed(shares: u64) -> World {
    let mut world = World::with_details(rules());
    world.submit(&limit_buy("a", shares, "2600"));
    world.answer_all();
    world.deliver_all();
    settle(&mut world);
    world.reported.clear();
    world.sent.clear();
    world
}

/// Passes time and answers all requests; notices stay in the stream.
fn settle(world: &mut World) {
    for _ in 0..100 {
        world.pass(Duration::from_millis(200));
        world.answer_all();
    }
}

/// Requests a list, and handles everything that follows.
fn look(world: &mut World) {
    world.list(OrderListFilter::default());
    world.answer_all();
    settle(world);
}

/// The stream loses the broker's notices so far.
fn lose_notices(world: &mut World) {
    world.broker.notices.clear();
    world.streamed = 0;
}

/// The fills that were reported: shares, price, sum of all so far, shares left.
fn fills(world: &World) -> Vec<[String; 4]> {
    let all = world.reported.iter().map(|(_, event)| serde_json::to_value(event).unwrap());
    all.filter(|event| event["event"] == "OrderFilled")
        .map(|event| {
            ["last_qty", "last_price", "cumulative_qty", "leaves_qty"]
                .map(|name| event[name].as_str().unwrap().to_owned())
        })
        .collect()
}

fn fills_reported(world: &World) -> usize {
    fills(world).len()
}

fn fill(of: [&str; 4]) -> [String; 4] {
    of.map(str::to_owned)
}

fn count(world: &World, name: &str) -> usize {
    world.sent.iter().filter(|id| *id == name).count()
}

fn missing(world: &mut World) -> usize {
    let reported = world.events();
    reported.iter().filter(|event| event.contains("fills_missing")).count()
}

#[test]
fn fills_that_the_stream_lost_are_reported_with_their_prices() {
    let mut world = placed(300);
    world.broker.fill_at("1000", 100, "2501");
    world.broker.fill_at("1000", 200, "2502.5");
    lose_notices(&mut world);
    look(&mut world);
    assert_eq!(
        fills(&world),
        [fill(["100", "2501", "100", "200"]), fill(["200", "2502.5", "300", "0"])]
    );
    assert_eq!(count(&world, "detail"), 1);
    let reported = world.json("OrderFilled");
    assert_eq!((&reported["client_order_id"], &reported["trade_id"]), (&"a".into(), &"D2".into()));
    assert_eq!(missing(&mut world), 0);
    // It is filled: nothing more is requested.
    world.submit(&limit_buy("a", 300, "2600"));
    assert_eq!(world.json("SubmitOrderResult")["status"], "FILLED");
    world.sent.clear();
    look(&mut world);
    assert_eq!((count(&world, "detail"), fills(&world).len()), (0, 0));
}

/// A list that arrives before the notice requests no details.
#[test]
fn details_are_requested_only_after_the_notice_has_had_its_time() {
    let mut world = placed(300);
    world.broker.fill_at("1000", 100, "2501");
    world.list(OrderListFilter::default());
    world.answer_all();
    world.pass(Duration::from_secs(1));
    world.answer_all();
    world.deliver_all();
    settle(&mut world);
    assert_eq!((fills(&world).len(), count(&world, "detail")), (1, 0));
}

/// A notice that arrives after the details is of a fill that was reported.
#[test]
fn a_late_notice_is_the_fill_that_the_details_reported() {
    let mut world = placed(400);
    for price in ["2501", "2501", "2502"] {
        world.broker.fill_at("1000", 100, price);
    }
    look(&mut world);
    assert_eq!(fills(&world).len(), 3);
    world.deliver_all();
    world.disconnect();
    world.connect();
    world.deliver_all();
    assert_eq!(fills(&world).len(), 3, "each once");
    // A fill like the others is reported by its own notice.
    world.broker.fill_at("1000", 100, "2501");
    world.deliver_all();
    settle(&mut world);
    assert_eq!(fills(&world).last().unwrap(), &fill(["100", "2501", "400", "0"]));
    assert_eq!((fills(&world).len(), missing(&mut world)), (4, 0));
}

/// Details have no numbers: if a notice is taken for the wrong fill, a later list shows it.
#[test]
fn equal_fills_of_which_one_notice_is_lost_come_to_their_number() {
    let mut world = placed(300);
    world.broker.fill_at("1000", 100, "2501");
    lose_notices(&mut world);
    look(&mut world);
    world.broker.fill_at("1000", 100, "2501");
    world.deliver_all();
    assert_eq!(fills(&world).len(), 1, "it may be the notice of the first one");
    look(&mut world);
    assert_eq!(fills(&world).last().unwrap(), &fill(["100", "2501", "200", "100"]));
    assert_eq!((fills(&world).len(), missing(&mut world)), (2, 0));
}

/// Stream, lists and details report the fills in every order.
#[test]
fn each_fill_counts_once_in_every_order_of_notices_and_lists() {
    let prices = ["2501", "2501", "2502"];
    for lost in [None, Some(0), Some(2)] {
        for order in permutations(prices.len() + 1) {
            let mut world = placed(300);
            for price in prices {
                world.broker.fill_at("1000", 100, price);
            }
            world.pump();
            let notices: Vec<_> = world.stream.drain(..).collect();
            assert_eq!(notices.len(), prices.len());
            if let Some(lost) = lost {
                // The broker does not send the notice again either.
                world.broker.notices.remove(world.broker.notices.len() - prices.len() + lost);
                world.streamed = world.broker.notices.len();
            }
            for step in &order {
                match notices.get(*step) {
                    Some(_) if lost == Some(*step) => {}
                    Some(notice) => {
                        world.stream.push_back(notice.clone());
                        world.deliver(0);
                    }
                    None => look(&mut world),
                }
            }
            look(&mut world);
            let mut reported: Vec<String> =
                fills(&world).into_iter().map(|one| one[1].clone()).collect();
            reported.sort();
            assert_eq!(reported, prices, "{lost:?} {order:?}");
            assert_eq!(missing(&mut world), 0, "{lost:?} {order:?}");
        }
    }
}

/// Only fills that the details lack, too, are missing, after some requests.
#[test]
fn what_the_details_do_not_have_is_missing() {
    for fails in ["short", "refused", "lost", "other order", "no rows"] {
        let mut world = placed(300);
        world.broker.fill_at("1000", 100, "2501");
        lose_notices(&mut world);
        if fails == "short" {
            world.broker.orders.get_mut("1000").unwrap().fills.clear();
        }
        for _ in 0..500 {
            world.pass(Duration::from_millis(500));
            while let Some(InFlight::Request { request, .. }) = &world.in_flight {
                match (request.id.as_str(), fails) {
                    ("detail", "refused") => world.answer_with(|id| refused(id, "no")),
                    ("detail", "lost") => world.lose(false),
                    ("detail", "other order") => {
                        world.answer_with(|id| answer(id, "", vec![Field::new("number", "7")]));
                    }
                    ("detail", "no rows") => {
                        let number = vec![Field::new("number", "1000")];
                        world.answer_with(|id| answer(id, "", number));
                    }
                    _ => world.answer(),
                }
            }
            if world.mono.as_millis().is_multiple_of(5_000) {
                world.list(OrderListFilter::default());
            }
        }
        // Details that contradict the request are not requested again.
        let tries = if fails == "other order" { 1 } else { DETAILS_TRIES_MAX as usize };
        assert_eq!(count(&world, "detail"), tries, "{fails}");
        let reported = world.json("OrderDiscrepancy");
        let text = reported["message"].as_str().unwrap();
        assert!(
            text.starts_with("the list has 100 shares filled, the engine has reported 0; "),
            "{fails}: {text}"
        );
        assert_eq!((missing(&mut world), fills(&world).len()), (1, 0), "{fails}");
    }
}

/// Details that a broker may send: of an order, with more fields, and with fills of shares, price and time.
fn details(number: Option<&str>, more: &[(&str, &str)], fills: &[(&str, &str, u64)]) -> Answered {
    let fields = number.into_iter().map(|number| Field::new("number", number));
    let more = more.iter().map(|(name, value)| Field::new(*name, *value));
    let mut answered = answer("detail", "", fields.chain(more).collect());
    let row = |(shares, price, at): &(&str, &str, u64)| {
        let at = Field::new("at", at.to_string());
        vec![Field::new("quantity", *shares), Field::new("price", *price), at]
    };
    answered.lists.insert("fills".to_owned(), fills.iter().map(row).collect());
    answered
}

/// Requests lists, and answers requests for details with `answered`.
fn look_with(world: &mut World, looks: usize, answered: &Answered) {
    for _ in 0..looks {
        world.list(OrderListFilter::default());
        for _ in 0..40 {
            while let Some(InFlight::Request { request, .. }) = &world.in_flight {
                match request.id.as_str() {
                    "detail" => world.answer_with(|_| answered.clone()),
                    _ => world.answer(),
                }
            }
            world.pass(Duration::from_millis(500));
        }
    }
}

/// Details that do not fit report no fill; the missing shares are reported once, with the reason.
#[test]
fn details_that_do_not_fit_their_order_report_nothing() {
    let own = Some("1000");
    let at = MORNING.nanos();
    let fills = |price| vec![("100", price, at)];
    let of = [("sIssueCode", "7203"), ("sOrderBaibaiKubun", "3"), ("sYakuzyouSuryou", "100")];
    let with = |name: &str, value: &'static str| {
        let named = of.iter().map(|one| if one.0 == name { (one.0, value) } else { *one });
        named.collect::<Vec<_>>()
    };
    let lies = [
        ("about another order", None, of.to_vec(), fills("2501")),
        ("about another order", Some("1001"), of.to_vec(), fills("2501")),
        ("about another issue", own, with("sIssueCode", "9984"), fills("2501")),
        ("about the other side", own, with("sOrderBaibaiKubun", "1"), fills("2501")),
        ("no shares, no price", own, of.to_vec(), vec![("100", "2501", at), ("0", "2501", at)]),
        ("no shares, no price", own, of.to_vec(), fills("0")),
        ("it says 200", own, with("sYakuzyouSuryou", "200"), fills("2501")),
        ("is not a number", own, with("sYakuzyouSuryou", "x"), fills("2501")),
        ("worse than the limit", own, of.to_vec(), fills("2600.5")),
        ("the order has 300", own, vec![], vec![("400", "2501", at)]),
        ("more than the list has", own, vec![], vec![("200", "2501", at)]),
    ];
    for (why, number, more, lie) in lies {
        let mut world = placed(300);
        world.broker.fill_at("1000", 100, "2501");
        lose_notices(&mut world);
        look_with(&mut world, 12, &details(number, &more, &lie));
        let reported = world.json("OrderDiscrepancy");
        let text = reported["message"].as_str().unwrap_or_default().to_owned();
        assert!(text.contains(why), "{why}: {text}");
        assert_eq!((fills_reported(&world), missing(&mut world)), (0, 1), "{why}");
    }
    // The same without a contradiction; blanks mean nothing.
    for more in [of.to_vec(), vec![("sIssueCode", " "), ("sYakuzyouSuryou", "")], Vec::new()] {
        let mut world = placed(300);
        world.broker.fill_at("1000", 100, "2501");
        lose_notices(&mut world);
        // A time in the future is replaced by the time of the receipt.
        let day = 86_400_000_000_000;
        look_with(&mut world, 2, &details(own, &more, &[("100", "2600", at + day)]));
        let reported = world.json("OrderFilled");
        assert_eq!(
            (&reported["last_price"], &reported["cumulative_qty"]),
            (&"2600".into(), &"100".into())
        );
        let (ts, now) = (reported["ts_event_ms"].as_u64().unwrap(), world.wall.millis());
        assert!((MORNING.millis()..=now).contains(&ts), "{ts}");
        assert_eq!(missing(&mut world), 0);
    }
}

/// Fills from before a change were within the limit that the order had then.
#[test]
fn a_fill_at_the_limit_of_before_a_change_is_none_that_is_worse() {
    let mut world = placed(300);
    world.broker.fill_at("1000", 100, "2600");
    lose_notices(&mut world);
    world.modify("a", None, Some("2500"));
    look(&mut world);
    assert_eq!(fills(&world), [fill(["100", "2600", "100", "200"])]);
    assert_eq!(missing(&mut world), 0);
}

/// A sell order is filled at its limit or above, and one without a limit anywhere.
#[test]
fn what_is_worse_depends_on_side_and_type() {
    for (side, order_type, price, is_reported) in [
        (OrderSide::Sell, OrderType::Limit, "2499.5", false),
        (OrderSide::Sell, OrderType::Limit, "2500", true),
        (OrderSide::Buy, OrderType::Market, "9000", true),
    ] {
        let mut world = World::with_details(rules());
        let mut order = limit_buy("a", 300, "2500");
        (order.order_side, order.order_type) = (side, order_type);
        order.price = order.price.filter(|_| order_type == OrderType::Limit);
        world.submit(&order);
        world.answer_all();
        world.deliver_all();
        settle(&mut world);
        world.broker.fill_at("1000", 100, price);
        lose_notices(&mut world);
        look(&mut world);
        assert_eq!(
            fills(&world).len(),
            usize::from(is_reported),
            "{side:?} {order_type:?} {price}"
        );
    }
}

/// Shares that details reported count once, whatever price and parts a later notice has.
#[test]
fn shares_that_details_reported_are_those_of_later_notices() {
    for (parts, notices, conflicts) in [
        (vec![("50", "2501"), ("50", "2501")], vec![(100, "2505")], 1),
        (vec![("100", "2501")], vec![(50, "2501"), (50, "2501")], 0),
        (vec![("100", "2501")], vec![(40, "2505"), (60, "2501")], 1),
    ] {
        let mut world = placed(300);
        for (shares, price) in &notices {
            world.broker.fill_at("1000", *shares, price);
        }
        let parts: Vec<_> = parts.iter().map(|one| (one.0, one.1, MORNING.nanos())).collect();
        look_with(&mut world, 1, &details(Some("1000"), &[], &parts));
        assert_eq!(fills(&world).len(), parts.len());
        for _ in 0..2 {
            world.deliver_all();
            look_with(&mut world, 1, &details(Some("1000"), &[], &parts));
            // The broker sends all notices once more.
            world.disconnect();
            world.connect();
        }
        assert_eq!(fills(&world).len(), parts.len(), "{notices:?}");
        assert_eq!(fills(&world).last().unwrap()[2], "100", "{notices:?}");
        let reported = world.events().into_iter().filter(|one| one.contains("fill_conflict"));
        assert_eq!(reported.count(), conflicts, "{notices:?}");
        // All are matched: the next one is reported by its own notice.
        world.broker.fill_at("1000", 200, "2502");
        world.deliver_all();
        assert_eq!(fills(&world), [fill(["200", "2502", "300", "0"])], "{notices:?}");
    }
}

/// A notice of another fill than the lost one: the list has more shares, and the details show whose they are.
#[test]
fn a_fill_that_was_taken_for_a_lost_one_comes_by_the_details() {
    let mut world = placed(1_000);
    world.broker.fill_at("1000", 100, "2501");
    lose_notices(&mut world);
    look(&mut world);
    world.broker.fill_at("1000", 300, "2502");
    world.deliver_all();
    assert_eq!(fills(&world).len(), 1);
    look(&mut world);
    assert_eq!(fills(&world).last().unwrap(), &fill(["300", "2502", "400", "600"]));
    // From now on notices are reported at once.
    world.broker.fill_at("1000", 200, "2503");
    world.deliver_all();
    assert_eq!(fills(&world).last().unwrap(), &fill(["200", "2503", "600", "400"]));
    look(&mut world);
    let reported = world.events();
    assert!(!reported.iter().any(|one| one.starts_with("OrderDiscrepancy")), "{reported:?}");
}

/// No client waits for details: all else goes first, and after a failure none are requested for a while.
#[test]
fn details_never_stand_before_what_somebody_waits_for() {
    let mut world = placed(300);
    for id in ["b", "c"] {
        world.submit(&limit_buy(id, 300, "2600"));
        world.answer_all();
    }
    world.deliver_all();
    settle(&mut world);
    for number in ["1000", "1001", "1002"] {
        world.broker.fill_at(number, 100, "2501");
    }
    lose_notices(&mut world);
    world.list(OrderListFilter::default());
    let is_detail = |world: &World| matches!(&world.in_flight, Some(InFlight::Request { request, .. }) if request.id == "detail");
    for _ in 0..200 {
        world.pass(Duration::from_millis(200));
        if is_detail(&world) {
            break;
        }
        world.answer();
    }
    assert!(is_detail(&world));
    // Two more are queued; new requests go before them.
    world.list(OrderListFilter::default());
    world.balances(true);
    world.cancel(Some("c"), None);
    world.sent.clear();
    world.lose(false);
    while world.in_flight.is_some() {
        world.answer();
    }
    let sent = world.sent.clone();
    assert_eq!(sent[..2], ["cancel", "list"], "{sent:?}");
    assert_eq!(count(&world, "detail"), 0, "{sent:?}");
    let mut before = world.mono;
    world.sent.clear();
    while count(&world, "detail") == 0 && world.mono < before + 4 * DETAILS_PAUSE {
        world.list(OrderListFilter::default());
        world.pass(Duration::from_millis(500));
        while world.in_flight.is_some() && !is_detail(&world) {
            world.answer();
        }
    }
    before += DETAILS_PAUSE;
    assert!((before..before + Duration::from_secs(5)).contains(&world.mono), "{:?}", world.mono);
    settle(&mut world);
    look(&mut world);
    assert_eq!((fills(&world).len(), missing(&mut world)), (3, 0));
}

/// While a cancel of many waits for its lists no details are requested.
#[test]
fn details_wait_for_cancels_of_many() {
    let mut world = placed(300);
    world.broker.fill_at("1000", 100, "2501");
    lose_notices(&mut world);
    world.cancel_all(None);
    for _ in 0..60 {
        while world.in_flight.is_some() {
            let is_cancel = matches!(&world.in_flight,
                Some(InFlight::Request { request, .. }) if request.id.starts_with("cancel"));
            match is_cancel {
                // Its answer is lost, so that the order works on.
                true => world.lose(false),
                false => world.answer(),
            }
        }
        world.pass(Duration::from_millis(400));
        assert_eq!(count(&world, "detail"), 0);
    }
}

/// Details that contradict a notice report nothing.
#[test]
fn details_without_a_fill_that_a_notice_reported_are_not_taken() {
    let mut world = placed(300);
    world.broker.fill_at("1000", 100, "2501");
    world.deliver_all();
    world.broker.fill_at("1000", 100, "2502");
    lose_notices(&mut world);
    world.broker.orders.get_mut("1000").unwrap().fills = vec![(200, "2501.5")];
    for _ in 0..10 {
        look(&mut world);
    }
    assert_eq!((fills(&world).len(), missing(&mut world)), (1, 1));
}

/// A fill that is found after its order has ended is reported, and the order stays as it is.
#[test]
fn a_lost_fill_of_a_cancelled_order_is_reported() {
    let mut world = placed(300);
    world.broker.fill_at("1000", 100, "2501");
    world.broker.end("1000", OrderStatus::Canceled);
    lose_notices(&mut world);
    look(&mut world);
    assert_eq!(fills(&world), [fill(["100", "2501", "100", "200"])]);
    world.submit(&limit_buy("a", 300, "2600"));
    assert_eq!(world.json("SubmitOrderResult")["status"], "CANCELED");
}

/// Queued requests go before details, and a session that ends drops the details.
#[test]
fn details_end_with_the_session_and_are_requested_in_the_next() {
    let mut world = placed(300);
    world.broker.fill_at("1000", 100, "2501");
    lose_notices(&mut world);
    for _ in 0..200 {
        world.pass(Duration::from_millis(200));
        let in_flight = &world.in_flight;
        if matches!(in_flight, Some(InFlight::Request { request, .. }) if request.id == "detail") {
            break;
        }
        world.answer();
        if world.mono.as_millis().is_multiple_of(1_000) && world.in_flight.is_none() {
            world.list(OrderListFilter::default());
        }
    }
    world.answer_with(|id| answer(id, "2", Vec::new()));
    assert!(world.events().contains(&"VenueError session_expired".to_owned()));
    world.log_in();
    look(&mut world);
    assert_eq!(fills(&world), [fill(["100", "2501", "100", "200"])]);
    assert_eq!(missing(&mut world), 0);
}

/// P130: fills that details reported before a kill are not reported again, neither by a late notice nor by
/// details.
#[test]
fn p130_fills_that_details_reported_before_a_kill_are_not_reported_again() {
    for is_lost in [true, false] {
        let mut world = placed(300);
        world.broker.fill_at("1000", 100, "2501");
        if is_lost {
            lose_notices(&mut world);
        }
        look(&mut world);
        assert_eq!(fills(&world).len(), 1, "{is_lost}");
        world.reported.clear();
        world.restart(false);
        world.log_in();
        settle(&mut world);
        world.deliver_all();
        look(&mut world);
        assert_eq!((fills(&world).len(), missing(&mut world)), (0, 0), "{is_lost}");
        // The next one is reported, under a number of its own.
        world.broker.fill_at("1000", 200, "2502");
        lose_notices(&mut world);
        look(&mut world);
        assert_eq!(fills(&world), [fill(["200", "2502", "300", "0"])], "{is_lost}");
        assert_eq!(world.json("OrderFilled")["trade_id"], "D2", "{is_lost}");
    }
}
