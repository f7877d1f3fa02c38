//! The component's side of the contract: generated bindings and the conversions around them. The two ways that
//! each order takes are in `raw`.

mod raw;

use crate::model::{
    AccountEvent, AccountEventKind, Bar, Granularity, Instrument, InstrumentIx, Order, OrderChange,
    OrderStatus, OrderType, Side, Signal, SignalKind, Split, TickBand, TimeInForce, Timestamp,
    Trade,
};
use crate::number::{Money, Price, Quantity};
use crate::runner::{Action, Runner, TradeSlices};
use crate::strategy::Strategy;

#[expect(missing_docs, reason = "generated; the contract in wit/strategy documents every item")]
#[expect(clippy::allow_attributes_without_reason, reason = "generated")]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit/strategy",
        world: "strategy",
        pub_export_macro: true,
        export_macro_name: "export",
        // It is in `raw`.
        skip: ["on-order-events"],
        // Rust has no constructors that run before a call, and the question whether they have run
        // is one for each call.
        disable_run_ctors_once_workaround: true,
        default_bindings_module: "kumiki_sdk::wasm::bindings",
    });
}

pub use bindings::export;
#[doc(hidden)]
pub use raw::{RawOrderEvent, on_order_events};

use bindings::exports::kumiki::strategy::guest::{Guest, Window};
use bindings::kumiki::strategy::types as wit;

/// Where a component keeps its strategy; [`crate::register!`] implements it.
pub trait Slot {
    /// The strategy.
    type Strategy: Strategy;

    /// Gives access to the one strategy of the component.
    fn with<R>(act: impl FnOnce(&mut Option<Machine<Self::Strategy>>) -> R) -> R;
}

/// A strategy with the window that it is working on.
pub struct Machine<S> {
    runner: Runner<S>,
    window: Rows,
    reached: u32,
}

enum Rows {
    None,
    Trades(wit::TradeColumns),
    Bars(Vec<Bar>),
}

impl<S: Strategy> Machine<S> {
    #[inline(always)]
    fn one_trade(&mut self, trade: wit::Trade) -> u32 {
        self.runner.one_trade(&Trade {
            ts_event: Timestamp(trade.ts_event),
            instrument: InstrumentIx(trade.instrument),
            price: Price::from_units(trade.price),
            quantity: Quantity::new(trade.quantity),
            row: 0,
        });
        1
    }

    fn advance(&mut self, window: Window, limit: u32) -> u32 {
        match window {
            Window::OneTrade(trade) => return self.one_trade(trade),
            Window::OneBar(bar) => {
                self.runner.one_bar(&bar.into());
                return 1;
            }
            Window::Resume => {}
            Window::Trades(columns) => self.take(Rows::Trades(columns)),
            Window::Bars(bars) => {
                self.take(Rows::Bars(bars.into_iter().map(Bar::from).collect()));
            }
        }
        self.go_on(limit)
    }

    /// A window begins.
    fn take(&mut self, window: Rows) {
        self.window = window;
        self.reached = 0;
    }

    /// Goes on with the window; not part of the path of a single trade.
    #[inline(never)]
    fn go_on(&mut self, limit: u32) -> u32 {
        self.reached = match &self.window {
            Rows::Trades(columns) => {
                let rows = TradeSlices {
                    ts_event: &columns.ts_event,
                    instrument: &columns.instrument,
                    price: &columns.price,
                    quantity: &columns.quantity,
                };
                self.runner.trades(rows, self.reached, limit)
            }
            Rows::Bars(bars) => self.runner.bars(bars, self.reached, limit),
            Rows::None => panic!("the host resumed a window that it never handed over"),
        };
        self.reached
    }

    /// Hands over what the strategy asked for in this call: almost always nothing.
    #[inline]
    fn act(&mut self) {
        if self.runner.has_actions() {
            self.hand_over();
        }
    }

    #[cold]
    #[inline(never)]
    fn hand_over(&mut self) {
        if self.runner.hand_over_one(raw::submit) {
            return;
        }
        let actions: Vec<wit::Action> = self.runner.drain_actions().map(Into::into).collect();
        bindings::kumiki::strategy::actions::act(&actions);
    }
}

fn machine<T: Slot, R>(act: impl FnOnce(&mut Machine<T::Strategy>) -> R) -> R {
    T::with(|slot| act(slot.as_mut().expect("the host called a strategy before its init")))
}

#[cold]
#[inline(never)]
fn advance_any<T: Slot>(window: Window, limit: u32) -> u32 {
    machine::<T, _>(|machine| {
        let reached = machine.advance(window, limit);
        machine.act();
        reached
    })
}

impl<T: Slot> Guest for T {
    fn init(config: String, instruments: Vec<wit::Instrument>) -> Result<(), String> {
        // Without this a panic reaches the host as a bare trap.
        std::panic::set_hook(Box::new(|panic| imports::last_words(&panic.to_string())));
        let instruments = instruments.into_iter().map(Into::into).collect();
        let runner = Runner::new(&config, instruments).map_err(|error| error.to_string())?;
        T::with(|slot| *slot = Some(Machine { runner, window: Rows::None, reached: 0 }));
        Ok(())
    }

    fn start(now: u64) {
        machine::<T, _>(|machine| {
            machine.runner.start(Timestamp(now));
            machine.act();
        });
    }

    /// A trade by itself, which a strict replay hands over millions of times, is told from everything else before
    /// anything is done, so that the compiler makes a short way of its own for it.
    #[inline(always)]
    fn advance(window: Window, limit: u32) -> u32 {
        match window {
            Window::OneTrade(trade) => machine::<T, _>(|machine| {
                let reached = machine.one_trade(trade);
                machine.act();
                reached
            }),
            other => advance_any::<T>(other, limit),
        }
    }

    fn on_account_events(events: Vec<wit::AccountEvent>) {
        machine::<T, _>(|machine| {
            machine.runner.account_events(events.into_iter().map(Into::into));
            machine.act();
        });
    }

    fn stop(now: u64) {
        machine::<T, _>(|machine| {
            machine.runner.stop(Timestamp(now));
            machine.act();
        });
    }
}

/// The contract's imports, in the SDK's words.
pub(crate) mod imports {
    use super::bindings::kumiki::strategy::{aggressor, log as wit_log, parameters, portfolio};
    use super::{InstrumentIx, Money, Price, Quantity, Timestamp};
    use crate::model::{Account, AggressorSide, LogLevel, Position, WorkingOrder};
    use std::sync::atomic::{AtomicU64, Ordering};

    /// The time of the event being handled. A panic can read it when it can reach nothing else.
    static NOW: AtomicU64 = AtomicU64::new(0);

    #[inline]
    pub(crate) fn set_now(now: Timestamp) {
        NOW.store(now.0, Ordering::Relaxed);
    }

    pub(crate) fn log(level: LogLevel, now: Timestamp, message: &str) {
        let level = match level {
            LogLevel::Debug => wit_log::Level::Debug,
            LogLevel::Info => wit_log::Level::Info,
            LogLevel::Warn => wit_log::Level::Warn,
            LogLevel::Error => wit_log::Level::Error,
        };
        wit_log::write(level, now.0, message);
    }

    pub(crate) fn report(name: &str, value: &str) {
        parameters::report(name, value);
    }

    pub(super) fn last_words(message: &str) {
        wit_log::write(wit_log::Level::Panic, NOW.load(Ordering::Relaxed), message);
    }

    pub(crate) fn account() -> Account {
        let account = portfolio::get_account();
        Account {
            cash: Money::from_units(account.cash),
            reserved: Money::from_units(account.reserved),
            realised_pnl: Money::from_units(account.realised_pnl),
            commission: Money::from_units(account.commission),
        }
    }

    pub(crate) fn position(instrument: InstrumentIx) -> Position {
        let position = portfolio::get_position(instrument.0);
        Position {
            quantity: position.quantity,
            cost: Money::from_units(position.cost),
            realised_pnl: Money::from_units(position.realised_pnl),
        }
    }

    pub(crate) fn working_orders() -> Vec<WorkingOrder> {
        let orders = portfolio::working_orders();
        orders
            .into_iter()
            .map(|order| WorkingOrder {
                client_order_id: order.request.client_order_id,
                venue_order_id: order.venue_order_id,
                instrument: InstrumentIx(order.request.instrument),
                side: order.request.side.into(),
                quantity: Quantity::new(order.request.quantity),
                filled_quantity: Quantity::new(order.filled_quantity),
                price: order.request.price.map(Price::from_units),
                trigger_price: order.request.trigger_price.map(Price::from_units),
                status: order.status.into(),
                ts_submitted: Timestamp(order.ts_submitted),
            })
            .collect()
    }

    pub(crate) fn aggressor_side(row: u32) -> AggressorSide {
        match aggressor::of_trade(row) {
            aggressor::Side::NoAggressor => AggressorSide::NoAggressor,
            aggressor::Side::Buyer => AggressorSide::Buyer,
            aggressor::Side::Seller => AggressorSide::Seller,
        }
    }
}

/// Maps enums with the same cases in both directions or one.
macro_rules! same_cases {
    ($from:ty => $to:ty { $($case:ident),+ }) => {
        impl From<$from> for $to {
            fn from(value: $from) -> Self {
                match value { $(<$from>::$case => Self::$case,)+ }
            }
        }
    };
}

same_cases!(wit::OrderSide => Side { Buy, Sell });
same_cases!(Side => wit::OrderSide { Buy, Sell });
same_cases!(wit::Granularity => Granularity { Minute, Day });
same_cases!(OrderType => wit::OrderType { Market, Limit, StopMarket, StopLimit });
same_cases!(SignalKind => wit::SignalKind { EntryLong, EntryShort, Exit, Annotate });
same_cases!(wit::OrderStatus => OrderStatus {
    Initialized, Submitted, Accepted, PartiallyFilled, Filled, PendingUpdate, PendingCancel,
    Canceled, Expired, Rejected
});

impl From<wit::Instrument> for Instrument {
    fn from(instrument: wit::Instrument) -> Self {
        let ticks = instrument.ticks.iter().map(|band| TickBand {
            up_to: Price::from_units(band.up_to),
            tick: Price::from_units(band.tick),
        });
        Self { id: instrument.id, lot: Quantity::new(instrument.lot), ticks: ticks.collect() }
    }
}

impl From<wit::Bar> for Bar {
    fn from(bar: wit::Bar) -> Self {
        Self {
            ts_event: Timestamp(bar.ts_event),
            instrument: InstrumentIx(bar.instrument),
            granularity: bar.granularity.into(),
            open: Price::from_units(bar.open),
            high: Price::from_units(bar.high),
            low: Price::from_units(bar.low),
            close: Price::from_units(bar.close),
            volume: Quantity::new(bar.volume),
        }
    }
}

impl From<wit::AccountEvent> for AccountEvent {
    fn from(event: wit::AccountEvent) -> Self {
        let wit::AccountEventKind::Split(split) = event.kind;
        Self {
            ts_event: Timestamp(event.ts_event),
            instrument: InstrumentIx(event.instrument),
            kind: AccountEventKind::Split(Split {
                old_shares: split.old_shares,
                new_shares: split.new_shares,
                quantity: split.quantity,
                cash_paid: Money::from_units(split.cash_paid),
                last_price: split.last_price.map(Price::from_units),
            }),
        }
    }
}

impl From<Order> for wit::OrderRequest {
    fn from(order: Order) -> Self {
        let (time_in_force, expire_time) = match order.time_in_force {
            TimeInForce::Day => (wit::TimeInForce::Day, None),
            TimeInForce::Gtd(expiry) => (wit::TimeInForce::Gtd, Some(expiry.0)),
            TimeInForce::AtTheOpen => (wit::TimeInForce::AtTheOpen, None),
            TimeInForce::AtTheClose => (wit::TimeInForce::AtTheClose, None),
        };
        Self {
            client_order_id: order.client_order_id.unwrap_or_default(),
            instrument: order.instrument.0,
            side: order.side.into(),
            order_type: order.order_type.into(),
            quantity: order.quantity.shares(),
            price: order.price.map(Price::units),
            trigger_price: order.trigger_price.map(Price::units),
            trigger_type: None,
            time_in_force,
            expire_time,
            post_only: order.post_only,
            reduce_only: order.reduce_only,
            tags: order.tags,
        }
    }
}

fn change(client_order_id: String, change: OrderChange) -> wit::OrderChange {
    wit::OrderChange {
        client_order_id,
        quantity: change.quantity.map(Quantity::shares),
        price: change.price.map(Price::units),
        trigger_price: change.trigger_price.map(Price::units),
        expire_time: change.expire_time.map(|expiry| expiry.0),
    }
}

impl From<Signal> for wit::Signal {
    fn from(signal: Signal) -> Self {
        Self {
            instrument: signal.instrument.0,
            kind: signal.kind.into(),
            side: signal.side.map(Into::into),
            price: signal.price.map(Price::units),
            tag: signal.tag,
            note: signal.note,
        }
    }
}

impl From<Action> for wit::Action {
    fn from(action: Action) -> Self {
        match action {
            Action::Submit(order) => Self::Submit(order.into()),
            Action::Modify { client_order_id, change: wanted } => {
                Self::Modify(change(client_order_id, wanted))
            }
            Action::Cancel { client_order_id } => Self::Cancel(client_order_id),
            Action::CancelAll { instrument } => Self::CancelAll(instrument.map(|index| index.0)),
            Action::EmitSignal(signal) => Self::EmitSignal(signal.into()),
            Action::Narrate(narrative) => Self::Narrate(wit::Narrative {
                client_order_id: narrative.client_order_id,
                title: narrative.title,
                body: narrative.body,
            }),
        }
    }
}
