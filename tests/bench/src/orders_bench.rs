//! `cargo xtask bench orders`: what an order costs between a client's command and the broker's socket, how
//! many lines a second the audit log takes, and how long a long log takes at the start.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use domain::clock::{Stopwatch, wall_now};
use domain::order_mapping::{BrokerAnswer, BrokerOrder, Field, OrderMapping};
use domain::{OrderOrigin, OrderSide, OrderType, Price, Quantity, Secret, TimeInForce};
use ipc::{AuditContext, AuditLine, AuditSubmit, SubmitOrderRequest};
use orders::{
    AuditLog, AuditSink, Desk, DeskRules, InstrumentTable, LoginDone, NewOrder, Now, OrderPhase,
    Out, RequestContext, Restored,
};
use sandbox::{DialectInstance, Sandbox, SandboxConfig};
use serde_json::json;
use tests::built;
use venues::web_broker::{Answered, Called, Masters};

use crate::data::scratch;
use crate::measure::{figure, rate, seconds};
use crate::serve_mixed::at;

/// Orders of the measured day.
const ORDERS: u64 = 20_000;
/// Orders before these, which warm up.
const WARM: u64 = 2_000;
/// Microseconds of an order's path, for half of the orders and for 99 of 100.
const GOAL_US: (u32, u32) = (50, 200);
/// Lines that are written one way.
const LINES: u64 = 512;
/// Lines of a log that is restored, and the seconds that may take.
const RESTORED_LINES: u64 = 100_000;
const GOAL_RESTORE_S: u32 = 1;

/// Runs all of it.
pub(crate) fn run() {
    for name in ["web-broker-spec", "web-broker-v4r8"] {
        path(name);
    }
    log();
    restore();
}

fn dialect(name: &str) -> DialectInstance {
    let loaded = Sandbox::new(SandboxConfig::default())
        .and_then(|sandbox| sandbox.load_dialect(&built::dialect(name))?.instantiate());
    loaded.unwrap_or_else(|error| panic!("{error}"))
}

/// The log without the disk's own time, which is another figure.
struct Unsynced(AuditLog);

impl AuditSink for Unsynced {
    fn append(&mut self, lines: &[AuditLine<'_>], _: bool) -> io::Result<()> {
        self.0.append(lines, false)
    }
}

fn masters() -> Arc<Masters> {
    let text = r#"{"date":"2026-11-20","days":null,
        "issues":{"7203":{"symbol":"7203","name":"x","lot":100,"upper_limit":null,"lower_limit":null,"ticks":101}},
        "ticks":{"101":{"bands":[[30000000,10000],[9990000000000,50000]]}}}"#;
    Arc::new(serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}")))
}

fn order(number: u64) -> SubmitOrderRequest {
    SubmitOrderRequest {
        client_order_id: format!("2a9d1f3c-5b0e-4c8a-9f6d-{number:012}"),
        instrument_id: "7203.TSE".to_owned(),
        order_side: OrderSide::Buy,
        order_type: OrderType::Limit,
        quantity: "100".to_owned(),
        price: Some("2750.5".to_owned()),
        trigger_price: None,
        trigger_type: None,
        time_in_force: TimeInForce::Day,
        expire_time_ns: None,
        post_only: false,
        reduce_only: false,
        tags: Some(vec!["cash_margin=cash".to_owned(), "account_type=specific".to_owned()]),
    }
}

/// The order as the engine decodes it.
fn decoded(order: &SubmitOrderRequest, instruments: &InstrumentTable) -> NewOrder {
    let place = instruments.place(&order.instrument_id);
    let Some(place) = place else { panic!("the table of instruments is full") };
    NewOrder {
        origin: OrderOrigin::Person,
        client_order_id: order.client_order_id.as_str().into(),
        request_key: order.request_key(),
        request: order.to_request(place),
    }
}

fn now(watch: Stopwatch) -> Now {
    Now { mono: watch.elapsed(), wall: wall_now() }
}

fn asked(number: u64) -> RequestContext {
    RequestContext { client: 1, request_id: number.to_string() }
}

fn accepted(number: u64) -> Called {
    let fields = vec![
        Field::new("sResultCode", "0"),
        Field::new("sResultText", ""),
        Field::new("sWarningCode", "0"),
        Field::new("sWarningText", ""),
        Field::new("sOrderNumber", number.to_string()),
        Field::new("sEigyouDay", "20261120"),
    ];
    let answer = BrokerAnswer {
        id: "CLMKabuNewOrder".to_owned(),
        errno: String::new(),
        error_text: String::new(),
        fields,
    };
    Called { p_no: Some(number), result: Ok(Answered { answer, lists: Default::default() }) }
}

/// The ticket of what the desk asks the broker.
fn ticket(desk: &mut Desk) -> Option<u64> {
    desk.take_out().into_iter().find_map(|out| match out {
        Out::Send { ticket, .. } | Out::Login { ticket } => Some(ticket),
        Out::Emit(..) => None,
    })
}

/// An order from its command to its request, and from its answer to its events.
fn path(name: &str) {
    let folder = scratch();
    let (log, _) = AuditLog::open(folder.path()).unwrap_or_else(|error| panic!("{error}"));
    let rules = DeskRules { phase: OrderPhase::O2, ..DeskRules::default() };
    let watch = Stopwatch::start();
    let mapping = Box::new(dialect(name));
    let restored = Restored::default();
    let mut desk = Desk::new(rules, mapping, Box::new(Unsynced(log)), restored, now(watch));
    desk.login(None, now(watch));
    if let Some(ticket) = ticket(&mut desk) {
        let account = "1".to_owned();
        let (changed, masters) = (Vec::new(), Some(masters()));
        let done = LoginDone { account, has_margin: true, changed, is_open: None, masters };
        desk.login_ended(ticket, Ok(done), now(watch));
    }
    if let Some(ticket) = ticket(&mut desk) {
        desk.answered(ticket, accepted(1), now(watch));
    }
    desk.set_second_password(asked(0), Secret::from("0000".to_owned()), now(watch));
    desk.take_out();
    let mut taken = Vec::new();
    for number in 0..WARM + ORDERS {
        let order = order(number);
        let begun = Stopwatch::start();
        let order = decoded(&order, desk.instruments());
        desk.submit(asked(number), order, now(watch));
        let Some(ticket) = ticket(&mut desk) else { panic!("the order was not sent") };
        let submit = begun.elapsed();
        let called = accepted(1_000 + number);
        let begun = Stopwatch::start();
        desk.answered(ticket, called, now(watch));
        let told = desk.take_out().len();
        let answer = begun.elapsed();
        assert!(told >= 2, "OrderAccepted and its result");
        if number >= WARM {
            taken.push((submit + answer, submit, answer));
        }
    }
    let alone = mapping_alone(name);
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let mut whole: Vec<f64> = taken.iter().map(|(whole, ..)| us(*whole)).collect();
    let mut submit: Vec<f64> = taken.iter().map(|(_, submit, _)| us(*submit)).collect();
    let mut answer: Vec<f64> = taken.iter().map(|(.., answer)| us(*answer)).collect();
    for all in [&mut whole, &mut submit, &mut answer] {
        all.sort_by(f64::total_cmp);
    }
    let more = json!({
        "orders": ORDERS,
        "p99": at(&whole, 0.99),
        "to_request_p50": at(&submit, 0.5),
        "to_request_p99": at(&submit, 0.99),
        "from_answer_p50": at(&answer, 0.5),
        "from_answer_p99": at(&answer, 0.99),
        "dialect_alone_p50": alone,
        "times_dialect": at(&whole, 0.5) / alone,
        "goal_max": GOAL_US.0,
        "goal_p99_max": GOAL_US.1,
    });
    let best = whole.first().copied().unwrap_or_default();
    figure(&format!("order path, {name}"), "us", at(&whole, 0.5), best, &more);
}

/// The three calls of the dialect that an order takes, without a desk.
fn mapping_alone(name: &str) -> f64 {
    let mut mapping = dialect(name);
    let order = BrokerOrder {
        symbol: "7203".into(),
        side: OrderSide::Buy,
        order_type: OrderType::Limit,
        quantity: Quantity::new(100),
        price: Some(Price::from_yen(2_750)),
        trigger_price: None,
        time_in_force: TimeInForce::Day,
        expire_date: None,
        tags: vec!["cash_margin=cash".to_owned(), "account_type=specific".to_owned()],
    };
    let Called { result: Ok(Answered { answer, .. }), .. } = accepted(1) else { return 0.0 };
    let mut taken: Vec<f64> = (0..WARM + ORDERS)
        .map(|_| {
            let begun = Stopwatch::start();
            let plan = mapping.plan(&order).is_ok_and(|plan| plan.is_ok());
            let made = mapping.new_order(&order, "1", &[]).is_ok_and(|made| made.is_ok());
            assert!(plan && made && mapping.judge(&answer).is_ok());
            begun.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    taken.drain(..WARM as usize);
    taken.sort_by(f64::total_cmp);
    at(&taken, 0.5)
}

fn line(id: &str) -> AuditLine<'_> {
    AuditLine::Submit(AuditSubmit {
        ts: 1_795_134_600_000,
        client_order_id: id.into(),
        request_key: 7_510_393_563_690_655_009,
        instrument_id: "7203.TSE".into(),
        order_side: OrderSide::Buy,
        order_type: OrderType::Limit,
        quantity: Quantity::new(100).into(),
        price: Some(Price::from_yen(2_750).into()),
        trigger_price: None,
        time_in_force: Some(TimeInForce::Day),
        expire_time_ns: None,
        request_key_version: Some(1),
        margin: false,
        context: AuditContext::default(),
    })
}

/// Lines on the disk, one by one and several with one sync.
fn log() {
    let mut one_by_one = None;
    for group in [1, 8, 64] {
        let folder = scratch();
        let (mut log, _) = AuditLog::open(folder.path()).unwrap_or_else(|error| panic!("{error}"));
        let ids: Vec<String> = (0..group).map(|number| format!("order-{number:030}")).collect();
        let lines: Vec<AuditLine<'_>> = ids.iter().map(|id| line(id)).collect();
        let taken = seconds(|| {
            for _ in 0..LINES / group {
                let written = log.append(&lines, true);
                written.unwrap_or_else(|error| panic!("{error}"));
            }
        });
        let one = *one_by_one.get_or_insert(taken.median);
        let more = json!({ "lines_per_sync": group, "times_one_by_one": one / taken.median });
        let name = format!("audit log, {group} lines with one sync");
        rate(&name, "lines/s", LINES as f64, taken, &more);
    }
}

/// A long log at the start.
fn restore() {
    let folder = scratch();
    let (mut log, _) = AuditLog::open(folder.path()).unwrap_or_else(|error| panic!("{error}"));
    let ids: Vec<String> =
        (0..RESTORED_LINES).map(|number| format!("order-{number:030}")).collect();
    for part in ids.chunks(1_000) {
        let lines: Vec<AuditLine<'_>> = part.iter().map(|id| line(id)).collect();
        log.append(&lines, false).unwrap_or_else(|error| panic!("{error}"));
    }
    drop(log);
    let mut restored = 0;
    let taken = seconds(|| {
        let (_, found) = AuditLog::open(folder.path()).unwrap_or_else(|error| panic!("{error}"));
        restored = found.entries.len();
    });
    assert_eq!(restored as u64, RESTORED_LINES);
    let more = json!({ "lines": RESTORED_LINES, "goal_max": GOAL_RESTORE_S });
    figure("restore of the audit log", "s", taken.median, taken.best, &more);
}
