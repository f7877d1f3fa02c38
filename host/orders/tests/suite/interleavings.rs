//! Random crossings of commands, answers, notices, lists, disconnects and kills, in every phase.
//!
//! The state of the broker is known. A failure shows its seed; `KUMIKI_SOAK_ORDER_SEEDS` sets the number of
//! seeds. `watch` checks each request that leaves, `truth` the end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::order_mapping::Field;
use domain::{OrderSide, OrderStatus, Random};
use ipc::{OrderListFilter, SubmitOrderRequest};
use orders::{DeskRules, OrderPhase};
use venues::web_broker::CallFailure;

use crate::any_order;
use crate::broker::{answer, refused};
use crate::dialect::named;
use crate::truth::{Seen, check_ids, check_states};
use crate::world::{InFlight, World};

/// A twentieth of what the soak command runs.
const SEEDS: u64 = 500;

/// One run of steps.
struct Run {
    world: World,
    random: Random,
    seen: Seen,
    phase: OrderPhase,
    ids: Vec<String>,
    /// Notices of one order come in order, and orders are changed elsewhere. Out of order, a fill that ends an
    /// order would look like one before a change to more shares.
    is_in_turn: bool,
    /// The orders that were sent under each id.
    requests: BTreeMap<String, Vec<SubmitOrderRequest>>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(&[seed, 15]);
        let phase = match random.below(20) {
            0 => OrderPhase::O0,
            1..=3 => OrderPhase::O1,
            4..=8 => OrderPhase::O2,
            _ => OrderPhase::O3,
        };
        let rules = DeskRules { phase, ..DeskRules::default() };
        let mut world = World::ready(rules, random.permille(500));
        // In half of the runs the cash is too little for all orders.
        if random.permille(500) {
            world.broker.cash = 1_000_000 * random.below(6);
            world.broker.account.margin = 1_000_000 * random.below(6);
            world.broker.account.shares = 100 * random.below(12);
        }
        for _ in 0..random.below(5) {
            world.broker.account.open(100 * (1 + random.below(8)));
        }
        let is_in_turn = random.permille(300);
        let (seen, ids, requests) = (Seen::default(), Vec::new(), BTreeMap::new());
        Self { world, random, seen, phase, ids, is_in_turn, requests }
    }

    fn submit(&mut self, id: &str) {
        let positions: Vec<String> = self.world.broker.account.positions.keys().cloned().collect();
        let order = any_order::order(&mut self.random, id, self.phase, &positions);
        self.seen.take(&mut self.world);
        self.world.submit(&order);
        if !any_order::is_taken(&order, self.phase) {
            let code = match self.phase {
                OrderPhase::O0 => "UNSUPPORTED_IN_PHASE_O0",
                _ => "VENUE_UNSUPPORTED",
            };
            let reported = self.world.json("OrderRejected");
            assert_eq!(reported["reason_code"], code, "{order:?}");
            assert!(reported["reason_text"].as_str().unwrap().starts_with("PHASE: "), "{reported}");
        }
        self.requests.entry(id.to_owned()).or_default().push(order);
    }

    fn some_id(&mut self) -> Option<String> {
        self.ids.get(self.random.place(self.ids.len())).cloned()
    }

    fn some_number(&mut self) -> Option<String> {
        let numbers: Vec<&String> = self.world.broker.orders.keys().collect();
        numbers.get(self.random.place(numbers.len())).map(|number| (*number).clone())
    }

    fn step(&mut self) {
        match self.random.below(33) {
            0..=3 => {
                let id = format!("o{}", self.ids.len());
                self.ids.push(id.clone());
                self.submit(&id);
            }
            4 => {
                // The same id again, mostly with another content.
                if let Some(id) = self.some_id() {
                    self.submit(&id);
                }
            }
            5 => {
                if let Some(id) = self.some_id() {
                    let change = any_order::change(&mut self.random, self.phase);
                    self.world.change(&id, change);
                }
            }
            6 => {
                if let Some(id) = self.some_id() {
                    self.world.cancel(Some(&id), None);
                }
            }
            7 => {
                if self.random.permille(200) {
                    let side = self.random.permille(500).then_some(OrderSide::Buy);
                    self.world.cancel_all(side);
                }
            }
            8 => _ = self.world.list(OrderListFilter::default()),
            9..=13 => self.fate(),
            14 => self.world.reach(),
            15..=18 => self.notice(),
            19..=21 => {
                if let Some(number) = self.some_number() {
                    let shares = (1 + self.random.below(5)) * 100;
                    self.world.broker.fill(&number, shares);
                }
            }
            22 => {
                if let Some(number) = self.some_number() {
                    let status = [OrderStatus::Canceled, OrderStatus::Expired];
                    self.world.broker.end(&number, status[self.random.place(2)]);
                }
            }
            23 => self.elsewhere(),
            24 => {
                if self.world.is_streaming {
                    self.world.disconnect();
                } else {
                    // In every phase: the desk decides whether it reads the stream.
                    self.world.connect();
                }
            }
            25 => self.world.password("0000"),
            26 => self.world.login_again(),
            27 if self.random.permille(300) => {
                self.seen.take(&mut self.world);
                self.world.restart(self.random.permille(500));
                self.seen.restart();
            }
            28 => {
                if self.random.permille(300) {
                    self.world.balances(self.random.permille(500));
                }
            }
            29 => {
                if let Some(number) = self.some_number()
                    && self.is_in_turn
                {
                    // Brokers take fewer shares, and never more. Orders placed elsewhere stay larger than those
                    // of the desk.
                    let order = &self.world.broker.orders[&number];
                    let shares = order.order.quantity.shares();
                    let fewer = (1 + self.random.below(5)) * 100;
                    if order.by_desk {
                        self.world.broker.change_elsewhere(&number, fewer.min(shares));
                    }
                }
            }
            _ => self.world.pass(Duration::from_millis(1 + self.random.below(3_000))),
        }
    }

    /// Delivers a notice, not always in order.
    fn notice(&mut self) {
        let world = &mut self.world;
        world.pump();
        let mut place = self.random.place(world.stream.len());
        if self.is_in_turn
            && let Some(fields) = world.stream.get(place)
        {
            let number = named(fields, "number");
            let is_same = |other: &Vec<Field>| named(other, "number") == number;
            place = world.stream.iter().position(is_same).unwrap_or(place);
        }
        // Sometimes twice.
        if self.random.permille(100)
            && let Some(again) = world.stream.get(place).cloned()
        {
            world.stream.push_back(again);
        }
        world.deliver(place);
    }

    /// An order is placed elsewhere with the same account.
    fn elsewhere(&mut self) {
        let world = &mut self.world;
        let order = world.broker.orders.values().next().map(|one| one.order.clone());
        if let Some(mut order) = order {
            // No order of the desk is that large: equal orders cannot be distinguished (P19).
            order.quantity = domain::Quantity::new(900);
            order.side = OrderSide::Buy;
            order.price = (2_400 + self.random.below(40)).to_string().parse().ok();
            let wall = world.wall;
            world.broker.place_elsewhere(order, wall);
        }
    }

    /// Decides the outcome of the request that is under way.
    fn fate(&mut self) {
        let world = &mut self.world;
        match self.random.below(13) {
            0..=5 => world.answer(),
            6 => world.lose(true),
            7 => world.lose(false),
            8 => world.answer_with(|id| refused(id, "no")),
            9 => world.answer_with(|id| answer(id, "9", vec![])),
            10 => {
                // Nothing left this machine, unless the broker has it.
                if world.reached.is_some() {
                    world.answer();
                } else if let Some(InFlight::Request { ticket, sent_p_no, .. }) = world.in_flight {
                    world.in_flight = None;
                    let refused = CallFailure::Refused("no connection".to_owned());
                    world.give(ticket, sent_p_no, Err(refused));
                } else {
                    world.login_fails();
                }
            }
            11 => world.answer_with(|id| refused(id, "funds")),
            _ => world.answer_with(|id| answer(id, "2", vec![])),
        }
    }

    fn play(&mut self) {
        let steps = 40 + self.random.below(160);
        for _ in 0..steps {
            self.step();
            self.seen.take(&mut self.world);
            let world = &self.world;
            let submits = world.log.lines("submit").len();
            let rejected = world.log.lines("rejected").len();
            let placed = usize::try_from(world.broker.placed).unwrap();
            // Orders at the broker were written down and not reported as rejected: in these runs it never
            // rejects an order that it has accepted.
            assert!(
                placed + rejected <= submits,
                "{placed} placed, {rejected} rejected of {submits}"
            );
        }
        self.settle();
        check_ids(&self.world);
        let has_notices = self.phase.takes_notices();
        for (number, order) in &self.world.broker.orders {
            let reported = self.seen.filled.get(number).copied().unwrap_or_default();
            let expected = if has_notices { order.filled } else { 0 };
            assert_eq!(reported, expected, "fills of {number}; {:?}", self.seen.discrepancies);
        }
        check_states(&mut self.world, &mut self.seen, &self.requests);
        self.cancel_the_rest();
        self.seen.take(&mut self.world);
        // Nothing more must happen.
        let before = self.world.sent.len();
        for _ in 0..50 {
            self.world.answer_all();
            self.world.pass(Duration::from_millis(200));
        }
        self.seen.take(&mut self.world);
        let sent = &self.world.sent[before..];
        assert!(sent.iter().all(|id| id == "list"), "{sent:?}");
        check_states(&mut self.world, &mut self.seen, &self.requests);
    }

    /// After all answers, notices and lists, the desk must have reported the broker's real state.
    fn settle(&mut self) {
        let world = &mut self.world;
        world.answer_all();
        world.disconnect();
        world.log_in();
        for _ in 0..400 {
            world.pump();
            world.deliver_all();
            world.answer_all();
            world.pass(Duration::from_millis(200));
        }
        world.list(OrderListFilter::default());
        world.answer_all();
        self.seen.take(world);
    }

    /// No order is stuck in a change or a cancel: each working order can be cancelled.
    fn cancel_the_rest(&mut self) {
        if !self.phase.takes_changes() {
            return;
        }
        let world = &mut self.world;
        world.pass(Duration::from_secs(1_801));
        world.answer_all();
        world.password("0000");
        let open = world.broker.orders.iter().filter(|(_, order)| order.is_open());
        let open: Vec<String> = open.map(|(number, _)| number.clone()).collect();
        for number in &open {
            world.cancel(None, Some(number));
            world.answer_all();
        }
        world.deliver_all();
        // Without notices a list shows it.
        for _ in 0..10 {
            world.pass(Duration::from_millis(200));
            world.answer_all();
        }
        self.seen.take(world);
        for number in &open {
            assert!(!world.broker.orders[number].is_open(), "{number} could not be cancelled");
            assert!(self.seen.canceled.contains(number), "the end of {number} was not told");
        }
    }
}

/// Cases that all runs together must have reached; else they show nothing.
fn check_reach(refusals: &BTreeSet<String>, placed: &BTreeMap<String, u64>) {
    let refused = [
        "INSUFFICIENT_FUNDS CASH",
        "INSUFFICIENT_FUNDS MARGIN",
        "INSUFFICIENT_FUNDS SELLABLE",
        "INSUFFICIENT_FUNDS TATEGYOKU",
        "INTERNAL_ERROR GUARD",
        "INTERNAL_ERROR NOT_AT_BROKER",
        "UNSUPPORTED_IN_PHASE_O0 PHASE",
        "VENUE_UNSUPPORTED PHASE",
        "SESSION_EXPIRED SESSION_EXPIRED",
    ];
    for reason in refused {
        assert!(refusals.contains(reason), "nothing was refused by {reason}: {refusals:?}");
    }
    let kinds = [
        "O0",
        "O1",
        "O2",
        "O3",
        "MARKET",
        "LIMIT",
        "STOP_MARKET",
        "STOP_LIMIT",
        "DAY",
        "GTD",
        "AT_THE_OPEN",
        "AT_THE_CLOSE",
        "BUY",
        "SELL",
        "cash",
        "margin-new",
        "repay of none",
        "repay of one",
        "repay of several",
    ];
    for kind in kinds {
        assert!(placed.contains_key(kind), "no order of {kind} was placed: {placed:?}");
    }
}

#[test]
fn no_crossing_loses_doubles_or_makes_up() {
    let count = std::env::var("KUMIKI_SOAK_ORDER_SEEDS").ok();
    let count = count.map_or(SEEDS, |text| text.parse().expect("a number of seeds"));
    let only = std::env::var("KUMIKI_ORDER_SEED").ok().map(|text| text.parse().unwrap());
    let seeds = only.map_or(0..count, |seed: u64| seed..seed + 1);
    let (mut refusals, mut placed) = (BTreeSet::new(), BTreeMap::new());
    for seed in seeds.clone() {
        let played = std::panic::catch_unwind(|| {
            let mut run = Run::new(seed);
            run.play();
            run
        });
        match played {
            Ok(run) => {
                refusals.extend(run.seen.refusals);
                for kind in run.world.kinds_sent {
                    *placed.entry(kind).or_default() += 1;
                }
            }
            Err(why) => {
                eprintln!("seed {seed}: KUMIKI_ORDER_SEED={seed} plays it alone");
                std::panic::resume_unwind(why);
            }
        }
    }
    if seeds.end - seeds.start >= SEEDS {
        check_reach(&refusals, &placed);
    }
}
