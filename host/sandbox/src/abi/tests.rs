//! Holds the layouts against the contract's text: a decoder and an encoder that know nothing but
//! the text of `wit/` read what is written and write what is read.

mod formula;
mod text;

use std::sync::Arc;

use domain::account::{Account, Position, WorkingOrder};
use domain::adjustment::Adjustment;
use domain::fault::FaultKind;
use domain::market::{Bar, BarGranularity};
use domain::strategy::{Action, NarrativeRecord, Signal, SignalKind};
use domain::{
    AccountEvent, AccountEventKind, Fill, Instrument, InstrumentIx, Money, OrderCommand,
    OrderEvent, OrderEventKind, OrderModify, OrderRequest, OrderSide, OrderStatus, OrderType,
    Origin, Price, Quantity, ReasonCode, Rejection, ShortText, Split, TickTable, TimeInForce,
    TriggerType, TsNanos,
};
use wasmtime::{Engine, Instance, Module, Store};
use wit_parser::TypeDefKind;

use super::from_guest::ACTION_BYTES;
use super::{Lift, Lower, to_guest};
use crate::config::Limits;
use crate::contract::STRATEGY;
use crate::state::{Guest, State};
use text::{Contract, Value, case, enumerated};

/// A module with a memory and an allocator that never frees.
const PROGRAM: &str = r#"(module
    (memory (export "memory") 2)
    (global $next (mut i32) (i32.const 1024))
    (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
        (local $pointer i32)
        (local.set $pointer (i32.and
            (i32.add (global.get $next) (i32.sub (local.get 2) (i32.const 1)))
            (i32.sub (i32.const 0) (local.get 2))))
        (global.set $next (i32.add (local.get $pointer) (local.get 3)))
        (local.get $pointer)))"#;

fn program() -> (Store<State>, Guest) {
    let engine = Engine::default();
    let module = Module::new(&engine, wat::parse_str(PROGRAM).unwrap()).unwrap();
    let mut store = Store::new(&engine, State::new(Limits::default()));
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    let guest = Guest {
        memory: instance.get_memory(&mut store, "memory").unwrap(),
        realloc: instance.get_typed_func(&mut store, "cabi_realloc").unwrap(),
    };
    (store, guest)
}

/// Lowers something and decodes it as a named type of the contract.
fn lowered(name: &str, lower: impl Fn(&mut Lower<'_>)) -> String {
    let (mut store, guest) = program();
    let contract = Contract::new(&STRATEGY);
    let of = contract.named(name);
    // Twice, so that a wrong size shows in the second.
    let each = |to: &mut Lower<'_>, (): &()| {
        lower(to);
        Ok(())
    };
    let buffer = Lower::new(&mut store, &guest);
    let pointer = buffer.argument(&[(), ()], (contract.size(&of), 8), each).unwrap() as usize;
    let memory = guest.memory.data(&store);
    let first = contract.decode(&of, memory, pointer);
    assert_eq!(first, contract.decode(&of, memory, pointer + contract.size(&of)));
    first
}

/// Encodes a list of actions and lifts it.
fn lifted(values: Vec<Value>) -> Result<Vec<Action>, FaultKind> {
    let contract = Contract::new(&STRATEGY);
    let action = contract.named("action");
    assert_eq!(contract.size(&action), ACTION_BYTES);
    let mut memory = vec![0xEE; 16];
    let count = values.len() as u32;
    let pointer = memory.len();
    memory.resize(pointer + values.len() * ACTION_BYTES, 0xEE);
    for (index, value) in values.iter().enumerate() {
        contract.encode(&action, value, &mut memory, pointer + index * ACTION_BYTES);
    }
    actions_at(&memory, pointer as u32, count)
}

/// The actions that lie in a memory.
fn actions_at(memory: &[u8], pointer: u32, count: u32) -> Result<Vec<Action>, FaultKind> {
    let mut lift = Lift::new(memory, 1 << 20, 1 << 20);
    let mut actions = Vec::new();
    super::actions(&mut lift, &Limits::default(), (pointer, count), &mut actions)?;
    Ok(actions)
}

fn request() -> OrderRequest {
    OrderRequest {
        client_order_id: ShortText::from("O-1"),
        instrument: InstrumentIx(3),
        side: OrderSide::Sell,
        order_type: OrderType::StopLimit,
        quantity: Quantity::new(100),
        price: Some(Price::from_units(7)),
        trigger_price: None,
        trigger_type: Some(TriggerType::Last),
        time_in_force: TimeInForce::AtTheClose,
        expire_time: Some(TsNanos::from_nanos(9)),
        post_only: true,
        reduce_only: false,
        tags: vec!["a=b".to_owned(), "c=d".to_owned()],
    }
}

fn event(kind: OrderEventKind) -> OrderEvent {
    OrderEvent {
        origin: Origin::Strategy,
        ts_event: TsNanos::from_nanos(5),
        client_order_id: ShortText::from("O-1"),
        venue_order_id: Some(ShortText::from("R12")),
        instrument: InstrumentIx(2),
        side: OrderSide::Buy,
        status: OrderStatus::PendingCancel,
        kind,
    }
}

#[test]
fn order_events_are_written_as_the_contract_says() {
    let start = "{ts-event: 5, client-order-id: 'O-1', venue-order-id: 'R12', instrument: 2, \
                 status: pending-cancel, kind: ";
    let shown = |kind| {
        lowered("order-event", |to| {
            to_guest::order_event(to, &event(Clone::clone(&kind))).unwrap();
        })
    };
    let rejection = Rejection::new(ReasonCode::VenueRejected, "X: y");
    let fill = Fill {
        trade_id: ShortText::from("1"),
        side: OrderSide::Buy,
        last_quantity: Quantity::new(1),
        last_price: Price::from_units(2),
        market_price: Price::from_units(9),
        cumulative_quantity: Quantity::new(3),
        leaves_quantity: Quantity::new(4),
        commission: Some(Money::from_units(-5)),
    };
    for (kind, words) in [
        (OrderEventKind::Submitted(Arc::new(request())), "submitted()"),
        (OrderEventKind::Accepted, "accepted()"),
        (
            OrderEventKind::Rejected(rejection),
            "rejected({reason-code: 'VENUE_REJECTED', reason-text: 'X: y'})",
        ),
        (OrderEventKind::PendingUpdate(OrderModify::default()), "pending-update()"),
        (OrderEventKind::Updated(Arc::new(request())), "updated()"),
        (OrderEventKind::PendingCancel, "pending-cancel()"),
        (OrderEventKind::Canceled, "canceled()"),
        (OrderEventKind::Expired("DAY"), "expired('DAY')"),
        (
            OrderEventKind::Filled(fill),
            "filled({trade-id: '1', last-quantity: 1, last-price: 2, cumulative-quantity: 3, \
             leaves-quantity: 4, commission: -5})",
        ),
    ] {
        assert_eq!(shown(kind), format!("{start}{words}}}"));
    }
    let without = OrderEvent { venue_order_id: None, ..event(OrderEventKind::PendingCancel) };
    let shown = lowered("order-event", |to| to_guest::order_event(to, &without).unwrap());
    assert!(shown.contains("venue-order-id: none, instrument: 2"), "{shown}");
}

#[test]
fn account_events_are_written_as_the_contract_says() {
    let split = Split {
        adjustment: Adjustment::from_terms(3, 2).unwrap(),
        quantity: -4,
        cash_paid: Money::from_units(5),
        last_price: Some(Price::from_units(6)),
    };
    let shown = |split| {
        let kind = AccountEventKind::Split(split);
        let ts_event = TsNanos::from_nanos(7);
        let event = AccountEvent { ts_event, instrument: InstrumentIx(1), kind };
        lowered("account-event", |to| to_guest::account_event(to, &event).unwrap())
    };
    assert_eq!(
        shown(split),
        "{ts-event: 7, instrument: 1, kind: split({old-shares: 2, new-shares: 3, quantity: -4, \
         cash-paid: 5, last-price: 6})}"
    );
    let without = shown(Split { last_price: None, ..split });
    assert!(without.ends_with("cash-paid: 5, last-price: none})}"), "{without}");
}

#[test]
fn instruments_bars_and_the_account_are_written_as_the_contract_says() {
    let ticks = TickTable::Fixed(Price::from_units(10));
    let one = Instrument { id: "130A.TSE".parse().unwrap(), lot: Quantity::new(100), ticks };
    let shown = lowered("instrument", |to| to_guest::instrument(to, &one).unwrap());
    let up_to = i64::MAX;
    assert_eq!(
        shown,
        format!("{{id: '130A.TSE', lot: 100, ticks: [{{up-to: {up_to}, tick: 10}}]}}")
    );
    let bar = Bar {
        ts_event: TsNanos::from_nanos(1),
        instrument: InstrumentIx(2),
        granularity: BarGranularity::Day,
        open: Price::from_units(3),
        high: Price::from_units(4),
        low: Price::from_units(5),
        close: Price::from_units(6),
        volume: Quantity::new(7),
    };
    assert_eq!(
        lowered("bar", |to| to_guest::bar(to, &bar)),
        "{ts-event: 1, instrument: 2, granularity: day, open: 3, high: 4, low: 5, close: 6, \
         volume: 7}"
    );
    let units = Money::from_units;
    let account = Account {
        cash: units(1),
        reserved: units(2),
        realised_pnl: units(-3),
        commission: units(4),
    };
    assert_eq!(
        lowered("account", |to| to_guest::account(&account).iter().for_each(|word| to.u64(*word))),
        "{cash: 1, reserved: 2, realised-pnl: -3, commission: 4}"
    );
    let position = Position {
        instrument: InstrumentIx(1),
        quantity: -2,
        cost: units(3),
        realised_pnl: units(4),
    };
    assert_eq!(
        lowered("position", |to| to_guest::position(&position)
            .iter()
            .for_each(|word| to.u64(*word))),
        "{instrument: 1, quantity: -2, cost: 3, realised-pnl: 4}"
    );
}

#[test]
fn working_orders_are_written_as_the_contract_says() {
    let order = WorkingOrder {
        request: Arc::new(request()),
        venue_order_id: None,
        status: OrderStatus::PartiallyFilled,
        filled_quantity: Quantity::new(8),
        ts_submitted: TsNanos::from_nanos(6),
    };
    let (mut store, guest) = program();
    let mut buffer = Lower::new(&mut store, &guest);
    to_guest::working_orders(&mut buffer, &[order.clone(), order]).unwrap();
    let pointer = 512;
    buffer.finish_at(4, pointer).unwrap();
    let pointer = pointer as usize;
    let contract = Contract::new(&STRATEGY);
    let one = "{request: {client-order-id: 'O-1', instrument: 3, side: sell, order-type: \
               stop-limit, quantity: 100, price: 7, trigger-price: none, trigger-type: last, \
               time-in-force: at-the-close, expire-time: 9, post-only: 1, reduce-only: 0, tags: \
               ['a=b', 'c=d']}, venue-order-id: none, status: partially-filled, filled-quantity: \
               8, ts-submitted: 6}";
    let shown = contract.list(&contract.named("order"), guest.memory.data(&store), pointer);
    assert_eq!(shown, format!("[{one}, {one}]"));
}

#[test]
fn actions_are_read_as_the_contract_says() {
    use Value::{Fields, List, None, Number, Text};
    let sent = Fields(vec![
        Text("O-1"),
        Number(3),
        enumerated("sell"),
        enumerated("stop-limit"),
        Number(100),
        Number(7),
        None,
        enumerated("last"),
        enumerated("at-the-close"),
        Number(9),
        Number(1),
        Number(0),
        List(vec![Text("a=b"), Text("c=d")]),
    ]);
    let changed = Fields(vec![Text("O-2"), Number(1), Number(2), None, Number(4)]);
    let marked = Fields(vec![
        Number(1),
        enumerated("annotate"),
        enumerated("sell"),
        Number(-2),
        Text("tag"),
        None,
    ]);
    let told = Fields(vec![Text("O-3"), Text("why"), Text("because")]);
    let actions = lifted(vec![
        case("submit", sent),
        case("modify", changed),
        case("cancel", Text("O-4")),
        case("cancel-all", None),
        case("cancel-all", Number(2)),
        case("emit-signal", marked),
        case("narrate", told),
    ]);
    let expected = vec![
        Action::Order(OrderCommand::Submit(request())),
        Action::Order(OrderCommand::Modify {
            client_order_id: ShortText::from("O-2"),
            change: OrderModify {
                quantity: Some(Quantity::new(1)),
                price: Some(Price::from_units(2)),
                trigger_price: Option::None,
                expire_time: Some(TsNanos::from_nanos(4)),
            },
        }),
        Action::Order(OrderCommand::Cancel { client_order_id: ShortText::from("O-4") }),
        Action::Order(OrderCommand::CancelAll { instrument: Option::None, side: Option::None }),
        Action::Order(OrderCommand::CancelAll {
            instrument: Some(InstrumentIx(2)),
            side: Option::None,
        }),
        Action::Signal(Signal {
            instrument: InstrumentIx(1),
            kind: SignalKind::Annotate,
            side: Some(OrderSide::Sell),
            price: Some(Price::from_units(-2)),
            tag: Some("tag".to_owned()),
            note: Option::None,
        }),
        Action::Narrative(NarrativeRecord {
            client_order_id: Some(ShortText::from("O-3")),
            title: "why".to_owned(),
            body: "because".to_owned(),
        }),
    ];
    assert_eq!(actions, Ok(expected));
}

#[test]
fn enumerations_have_the_numbers_of_the_contract() {
    fn check<E: super::Enumeration + std::fmt::Debug>(contract: &Contract, name: &str) {
        let of = contract.named(name);
        let Some(TypeDefKind::Enum(cases)) = contract.kind(&of) else { panic!("{name}") };
        let plain = |name: &str| name.replace('-', "").to_lowercase();
        let ours: Vec<_> = E::CASES.iter().map(|case| plain(&format!("{case:?}"))).collect();
        let theirs: Vec<_> = cases.cases.iter().map(|case| plain(&case.name)).collect();
        assert_eq!(ours, theirs);
        for (code, case) in E::CASES.iter().enumerate() {
            assert_eq!(usize::from(case.code()), code);
        }
        assert!(E::of_code(u8::try_from(E::CASES.len()).unwrap()).is_none());
    }
    let contract = Contract::new(&STRATEGY);
    check::<OrderSide>(&contract, "order-side");
    check::<OrderType>(&contract, "order-type");
    check::<TimeInForce>(&contract, "time-in-force");
    check::<TriggerType>(&contract, "trigger-type");
    check::<OrderStatus>(&contract, "order-status");
    check::<SignalKind>(&contract, "signal-kind");
    check::<BarGranularity>(&contract, "granularity");
    check::<domain::strategy::LogLevel>(&contract, "level");
}

#[test]
fn nothing_outside_the_memory_is_read() {
    let memory = [0_u8; 256];
    let read = |pointer, length| actions_at(&memory, pointer, length).unwrap_err();
    let words = |kind: FaultKind| kind.to_string();
    assert!(words(read(8, 3)).contains("312 bytes at 8 are outside its memory"));
    assert!(words(read(u32::MAX - 7, 1)).contains("are outside its memory"));
    assert!(words(read(4, 1)).contains("the place 4 is not a multiple of 8"));
    let too_many = read(0, u32::MAX);
    assert!(matches!(too_many, FaultKind::Budget { allowed: 1_048_576, .. }), "{too_many:?}");
}

#[test]
fn bad_cases_and_texts_are_refused() {
    let mut memory = vec![0_u8; 256];
    let read = |memory: &[u8]| actions_at(memory, 0, 1).unwrap_err().to_string();
    memory[0] = 6;
    assert!(read(&memory).contains("6 is no case of an action"));
    // A cancel whose id lies at 200 and is no text.
    memory[0] = 2;
    memory[8] = 200;
    memory[12] = 1;
    memory[200] = 0xFF;
    assert!(read(&memory).contains("a text is not UTF-8"));
    // An order whose side is 9.
    memory[200] = b'a';
    memory[0] = 0;
    memory[18] = 9;
    assert!(read(&memory).contains("9 is no case of OrderSide"));
}
