//! One running strategy.

use std::collections::BTreeMap;

use domain::account::PortfolioView;
use domain::fault::{Fault, FaultKind, Identity};
use domain::limits::{FUEL_EVENTS_MAX, WINDOW_ROWS_MAX};
use domain::market::Window;
use domain::strategy::{Action, Capabilities, LogLine, Outcome, StrategyRuntime};
use domain::{AccountEvent, Instrument, OrderEvent, OrderSide, TsNanos};
use wasmtime::{Result, Store};

use crate::artefact::Artefact;
use crate::calls::{Either, StrategyCalls};
use crate::exports::Exports;
use crate::fault::Failure;
use crate::feeder::{BATCH_ROWS_MAX, Feeder};
use crate::general;
use crate::running::Running;
use crate::state::State;

/// The two ways of calling a strategy.
type Calls = Either<Exports, general::Strategy>;

/// One running strategy, with its own memory. After a fault it refuses every further call.
pub struct StrategyInstance {
    running: Running<Calls>,
    capabilities: Capabilities,
    /// Rows of the present window that are handled.
    reached: u32,
    /// Whether the present window is a single row.
    is_single: bool,
    /// Rows of a larger window that it is given in one call.
    window_rows: u32,
    /// Times of the rows of the present window, to name the event of a fault.
    window_start: Option<TsNanos>,
    ts_event: Option<TsNanos>,
    /// What tells the strategy of its orders, and gives it the trades of a window one by one in a strict replay.
    feeder: Option<Feeder>,
    /// Whether windows are batches: the strategy gets their trades one by one.
    is_strict: bool,
    /// Whether it has the present window, and whether it ever handed something over.
    is_fed: bool,
    has_fed: bool,
    /// Trades that it is told to hand over at a time.
    feed_rows: u32,
    /// The aggressor of the trade that comes next as a window of its own, where it is known.
    aggressor: Option<OrderSide>,
}

/// Trades that are handed over at a time at first, and at most. With so many the way in and out costs next to
/// nothing, and a strategy that suddenly needs a thousand times more has the fuel for it.
const FEED_ROWS_FIRST: u32 = 16;
const FEED_ROWS_MAX: u64 = 256;
/// So many trades are handed over at a time that this part of the fuel of one is expected to do for all.
const FEED_FUEL_PART: u64 = 16;
/// At most so many times more than the last time.
const FEED_GROWTH: u64 = 4;
/// This part of the fuel of one row of the market is what a call that handles some has for all of them: where it does,
/// each of them has enough with window 1 too, whatever its calls cost by themselves.
const WINDOW_FUEL_PART: u64 = 2;

/// So many rows are expected to need a part of the fuel of one, by what some have used.
fn rows_at_once(per_event: u64, used: u64, rows: u32, most: u64) -> u32 {
    let each = (used / u64::from(rows).max(1)).max(1);
    let most = most.min(u64::from(WINDOW_ROWS_MAX));
    // At most 65,536.
    (per_event / FEED_FUEL_PART / each).clamp(1, most) as u32
}

impl StrategyInstance {
    pub(crate) fn new(
        running: Running<Calls>,
        capabilities: Capabilities,
        feeder: Option<Feeder>,
        is_strict: bool,
    ) -> Self {
        Self {
            running,
            capabilities,
            reached: 0,
            is_single: true,
            window_rows: FEED_ROWS_FIRST,
            window_start: None,
            ts_event: None,
            feeder,
            is_strict,
            is_fed: false,
            has_fed: false,
            feed_rows: FEED_ROWS_FIRST,
            aggressor: None,
        }
    }

    /// Name and identity.
    #[must_use]
    pub fn artefact(&self) -> &Artefact {
        self.running.artefact()
    }

    /// Fuel used so far by all calls, the feeder's own too; the same on every machine and every run.
    #[must_use]
    pub const fn fuel_used(&self) -> u64 {
        self.running.fuel_used()
    }

    /// Whether a fault of this instance may be another one without batches: trades were handed over in some, or
    /// what ran out was used by the feeder too.
    #[must_use]
    pub fn is_rough(&self, fault: &Fault) -> bool {
        let is_used = matches!(fault.kind, FaultKind::Fuel { .. } | FaultKind::Stack { .. });
        self.feeder.is_some() && (self.has_fed || (self.capabilities.portfolio && is_used))
    }

    /// Makes one call, and turns its errors into faults.
    #[inline]
    fn call<R>(
        &mut self,
        export: &'static str,
        fuel: u64,
        act: impl FnOnce(&Calls, &mut Store<State>) -> Result<R>,
    ) -> Result<R, Box<Fault>> {
        let outcome = self.running.call(fuel, act);
        outcome.map_err(|failure| self.fault_of(export, *failure))
    }

    #[cold]
    fn fault_of(&self, export: &'static str, failure: Failure) -> Box<Fault> {
        let Identity { component, sha256 } = self.running.identity();
        // Among many rows only the guest knows at which one it was; of all other calls the host does.
        let is_among = export == "advance" && (self.is_fed || !self.is_single);
        let told = failure.ts_event.filter(|told| is_among && Some(*told) >= self.window_start);
        Box::new(Fault {
            component,
            sha256,
            export: failure.export.unwrap_or(export),
            ts_event: told.or(self.ts_event),
            kind: failure.kind,
            backtrace: failure.backtrace,
        })
    }

    #[cold]
    fn breach(&mut self, export: &'static str, kind: FaultKind) -> Box<Fault> {
        let failure = self.running.breach(kind);
        self.fault_of(export, *failure)
    }

    /// What the strategy asked for in the call that has just returned.
    #[inline]
    fn take_actions(&mut self) -> Vec<Action> {
        let actions = &mut self.running.store.data_mut().actions;
        // Without any it is memory alone, which stays for the next ones.
        if actions.is_empty() { Vec::new() } else { std::mem::take(actions) }
    }

    /// Lets the feeder hand over the rows of a batch below `limit`, and stops early where something was asked for
    /// with `act`.
    fn feed(&mut self, limit: u32) -> Result<Outcome, Box<Fault>> {
        let per_event = self.running.store.data().limits.fuel_per_event;
        while self.reached < limit {
            let row = self.reached;
            let end = limit.min(row.saturating_add(self.feed_rows));
            // What one event may do, all of them may.
            self.running.store.data_mut().begin_event();
            let used_before = self.running.fuel_used();
            let Self { running, feeder, .. } = &mut *self;
            let fed = running.call(per_event, |_, store| match feeder {
                Some(feeder) => feeder.feed(store, row, end),
                None => Ok(None),
            });
            let reached = match fed.map_err(|failure| self.fault_of("advance", *failure))? {
                Some(reached) => reached,
                None => {
                    let text = "it reported another number of handled rows than one".to_owned();
                    return Err(self.breach("advance", FaultKind::Protocol(text)));
                }
            };
            self.reached = reached;
            let fuel = self.running.fuel_used() - used_before;
            let most = (u64::from(self.feed_rows) * FEED_GROWTH).min(FEED_ROWS_MAX);
            self.feed_rows = rows_at_once(per_event, fuel, reached - row, most);
            if !self.running.store.data().actions.is_empty() {
                break;
            }
        }
        Ok(Outcome { reached: self.reached, actions: self.take_actions() })
    }

    fn lifecycle_fuel(&self) -> u64 {
        self.running.store.data().limits.fuel_per_lifecycle_call
    }

    /// Fuel of a call that tells of so many events: of many together that of [`FUEL_EVENTS_MAX`], so that an
    /// endless loop ends soon there too.
    fn events_fuel(&self, events: usize) -> u64 {
        let events = events.clamp(1, FUEL_EVENTS_MAX) as u64;
        self.running.store.data().limits.fuel_per_event.saturating_mul(events)
    }
}

impl StrategyRuntime for StrategyInstance {
    fn identity(&self) -> Identity {
        self.running.identity()
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn batch_rows(&self) -> u32 {
        // 2,048 fit.
        if self.is_strict && self.feeder.is_some() { BATCH_ROWS_MAX as u32 } else { 1 }
    }

    fn init(&mut self, config_json: &str, instruments: &[Instrument]) -> Result<(), Box<Fault>> {
        let allowed = domain::limits::INIT_CONFIG_BYTES_MAX;
        if config_json.len() > allowed {
            let (used, allowed) = (config_json.len() as u64, allowed as u64);
            let kind = FaultKind::Limit { what: "bytes of configuration", used, allowed };
            return Err(self.breach("init", kind));
        }
        self.running.store.data_mut().in_init = true;
        let refusal = self.call("init", self.lifecycle_fuel(), |calls, store| {
            calls.init(store, config_json, instruments)
        });
        self.running.store.data_mut().in_init = false;
        let refusal = refusal?;
        refusal.map_or(Ok(()), |message| Err(self.breach("init", FaultKind::Refused(message))))
    }

    fn start(&mut self, now: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        self.ts_event = Some(now);
        let fuel = self.lifecycle_fuel();
        self.running.store.data_mut().begin_event();
        self.call("start", fuel, |calls, store| calls.start(store, now.nanos()))?;
        Ok(self.take_actions())
    }

    #[inline]
    fn advance(&mut self, window: Window<'_>, limit: u32) -> Result<Outcome, Box<Fault>> {
        let first = match window {
            Window::Resume => None,
            Window::OneTrade(trade) => Some(trade.ts_event),
            Window::OneBar(bar) => Some(bar.ts_event),
            Window::Trades(columns) => columns.ts_event.first().copied().map(TsNanos::from_nanos),
            Window::Bars(bars) => bars.first().map(|bar| bar.ts_event),
        };
        if first.is_some() {
            self.reached = 0;
            self.window_start = first;
        }
        match window {
            Window::Resume => {}
            Window::OneTrade(_) | Window::OneBar(_) => self.is_single = true,
            Window::Trades(_) | Window::Bars(_) => self.is_single = false,
        }
        match (window, &self.feeder) {
            (Window::Trades(columns), Some(feeder)) if self.is_strict => {
                feeder.fill(&mut self.running.store, columns);
                (self.is_fed, self.has_fed) = (true, true);
            }
            (Window::Resume, _) => {}
            _ => self.is_fed = false,
        }
        if self.is_fed {
            return self.feed(limit);
        }
        // Where inside a window a trap happens is known only to the strategy; the SDK tells it
        // with its message. Otherwise the window's first row stands for it.
        self.ts_event = self.window_start;
        let before = self.reached;
        let per_event = self.running.store.data().limits.fuel_per_event;
        let (limit, fuel) = match self.is_single {
            true => (limit, per_event),
            false => {
                let limit = limit.min(before.saturating_add(self.window_rows));
                (limit, per_event / WINDOW_FUEL_PART)
            }
        };
        self.running.store.data_mut().begin_event();
        let used_before = self.running.fuel_used();
        if let Window::OneTrade(_) = window {
            self.running.store.data_mut().aggressor = self.aggressor.take();
        }
        let reached =
            self.call("advance", fuel, |calls, store| calls.advance(store, window, limit))?;
        // What comes in between is no trade.
        self.running.store.data_mut().aggressor = None;
        if reached <= before || reached > limit {
            return Err(self.breach(
                "advance",
                FaultKind::Protocol(format!(
                    "it reported {reached} handled rows; there were {before} before the call and \
                     the limit is {limit}"
                )),
            ));
        }
        self.reached = reached;
        if !self.is_single {
            let fuel = self.running.fuel_used() - used_before;
            let fits = self.running.store.data().rows_for_output(reached - before);
            let most = (u64::from(self.window_rows) * FEED_GROWTH).min(fits.max(1));
            self.window_rows = rows_at_once(per_event, fuel, reached - before, most);
        }
        Ok(Outcome { reached, actions: self.take_actions() })
    }

    fn set_aggressor(&mut self, side: Option<OrderSide>) {
        self.aggressor = side;
    }

    fn on_order_events(&mut self, events: &[OrderEvent]) -> Result<Vec<Action>, Box<Fault>> {
        let Some(first) = events.first() else { return Ok(Vec::new()) };
        self.ts_event = Some(first.ts_event);
        let fuel = self.events_fuel(events.len());
        self.running.store.data_mut().begin_answers(first.ts_event);
        let Self { running, feeder, .. } = &mut *self;
        let told = running.call(fuel, |calls, store| match feeder {
            Some(feeder) if feeder.deliver(store, events)? => Ok(()),
            _ => calls.on_order_events(store, events),
        });
        self.has_fed |= self.feeder.is_some();
        told.map_err(|failure| self.fault_of("on-order-events", *failure))?;
        Ok(self.take_actions())
    }

    fn on_account_events(&mut self, events: &[AccountEvent]) -> Result<Vec<Action>, Box<Fault>> {
        let Some(first) = events.first() else { return Ok(Vec::new()) };
        self.ts_event = Some(first.ts_event);
        let fuel = self.events_fuel(events.len());
        self.running.store.data_mut().begin_answers(first.ts_event);
        let export = "on-account-events";
        self.call(export, fuel, |calls, store| calls.on_account_events(store, events))?;
        Ok(self.take_actions())
    }

    fn take_back(&mut self, actions: Vec<Action>) {
        let held = &mut self.running.store.data_mut().actions;
        if actions.capacity() > held.capacity() {
            *held = actions;
        }
    }

    fn stop(&mut self, now: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        self.ts_event = Some(now);
        let fuel = self.lifecycle_fuel();
        self.running.store.data_mut().begin_event();
        self.call("stop", fuel, |calls, store| calls.stop(store, now.nanos()))?;
        Ok(self.take_actions())
    }

    fn take_parameters(&mut self) -> BTreeMap<String, String> {
        std::mem::take(&mut self.running.store.data_mut().parameters)
    }

    fn set_portfolio(&mut self, view: &PortfolioView) {
        let PortfolioView { account, positions, working_orders } = view;
        let kept = &mut self.running.store.data_mut().portfolio;
        kept.account = *account;
        // Into the memory that is there: this comes with every event of an order.
        kept.positions.clone_from(positions);
        kept.working_orders.clone_from(working_orders);
    }

    fn take_log(&mut self) -> Vec<LogLine> {
        std::mem::take(&mut self.running.store.data_mut().log)
    }
}
