//! A strategy on the live market, on paper or with real orders (`super::real`): from the command that starts it to its last event (specification 4, P81 to
//! P89, P108 to P110, P115, P116, P119).
//!
//! A command is checked where it comes in, as far as that needs no waiting. A thread of its own does the rest in the
//! order of P84: the venue's state, the strategy's file, its init, the registration of its instruments. Only what passes
//! all of that becomes a run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use domain::clock::{Stopwatch, wall_now};
use domain::fault::FaultKind;
use domain::market_update::MarketUpdate;
use domain::text::with_causes;
use domain::{InstrumentId, InstrumentIx, Money, Quantity};
use exchange::{ExecutionModel, Preset};
use ipc::{
    EngineStartConfig, Granularity, KlineInterval, Multiplier, RunEnd, StartEngine, error_code,
};
use live::feed::{FeedLimits, FeedObserver, FeedRows, FeedSender, Opening, feed};
use live::journal::RunKind as JournalKind;
use live::notify::{Notice, NoticeKind};
use live::paper::{PaperError, PaperOutcome, PaperRun, fault_text, remove_folder};
use live::real::{BrokerNews, RealOrders};
use orders::event::{Standing, StrategyHolding};
use replay::driver::BUYING_POWER_EVERY;
use replay::instruments::InstrumentChoices;
use replay::{RequestError, RunObserver};
use results::RunStatus;
use trader::OrderLimits;
use venues::RequestContext as VenueRequest;
use venues::local_broker::{Command, ErrorCode, STRATEGY, VenueEvent};

use super::LOCAL_BROKER;
use super::real::{EngineBroker, units_of};
use crate::ledger::RequestContext;
use crate::limits::{REGISTRATION_TIME, STREAM_TIME, VENUE_STATE_TIME};
use crate::load::{Refusal, instruments, invalid};
use crate::present::session as present;
use crate::run::{Run, RunControl, RunKind, RunSetup};
use crate::session::{CommandContext, Shared, UnderWay};
use crate::start::{ClientSink, End, execution, parameters, positive_cash, strategy_file};

/// How often the start looks for the stream of market data.
const STREAM_LOOK: Duration = Duration::from_millis(10);
/// How often the feed gets the engine's time.
const CLOCK_EVERY: Duration = Duration::from_millis(250);

/// The live strategy's end of the local broker's venue: the way of market data to it, and of the venue's answers.
#[derive(Debug, Default)]
pub(crate) struct StrategyFeed(Mutex<Ends>);

#[derive(Debug, Default)]
struct Ends {
    /// There while a strategy runs or starts.
    feed: Option<FeedSender>,
    /// There while an answer of the venue is waited for.
    answers: Option<Sender<VenueEvent>>,
    /// The venue's stream brings market data.
    is_streaming: bool,
}

impl StrategyFeed {
    fn lock(&self) -> MutexGuard<'_, Ends> {
        // Nothing is left half done under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the strategy what a frame says.
    pub(super) fn update(&self, update: &MarketUpdate) {
        if let Some(feed) = &self.lock().feed {
            feed.update(update);
        }
    }

    /// Takes an event that the venue sends to the strategy's subscription.
    pub(super) fn answer(&self, event: &VenueEvent) {
        if let Some(answers) = &self.lock().answers {
            // Who has waited too long is gone.
            let _ = answers.send(event.clone());
        }
    }

    /// Notes whether the venue's stream brings market data. Says whether a strategy has just lost them.
    pub(super) fn streaming(&self, is_streaming: bool) -> bool {
        let mut ends = self.lock();
        ends.is_streaming = is_streaming;
        let Some(feed) = &ends.feed else { return false };
        // It ends with the first frame (P115).
        if !is_streaming {
            feed.lost();
        }
        !is_streaming
    }

    /// Waits until market data come, at most so long; tells the strategy where they do not (P115).
    fn wait_for_stream(&self, at_most: Duration) -> bool {
        let watch = Stopwatch::start();
        while !self.lock().is_streaming {
            if watch.elapsed() >= at_most {
                if let Some(feed) = &self.lock().feed {
                    feed.lost();
                }
                return false;
            }
            domain::clock::sleep(STREAM_LOOK);
        }
        true
    }

    fn answers(&self) -> Receiver<VenueEvent> {
        let (sender, receiver) = channel();
        self.lock().answers = Some(sender);
        receiver
    }
}

/// The run that a command wants.
struct Wanted {
    strategy_id: String,
    strategy: String,
    parameters: BTreeMap<String, serde_json::Value>,
    instruments: Vec<InstrumentId>,
    rows: FeedRows,
    cash: Money,
    model: ExecutionModel,
    preset: Preset,
    choices: InstrumentChoices,
    orders: OrderLimits,
    /// Where its orders go.
    kind: JournalKind,
}

impl Wanted {
    /// Reads a command's configuration (specification 4, P82, P83, P119).
    fn read(strategy_id: &str, config: &EngineStartConfig) -> Result<Self, Refusal> {
        let is_past = [
            ("START_DATE", config.start_date.is_some()),
            ("END_DATE", config.end_date.is_some()),
            ("MULTIPLIER", config.multiplier.is_some()),
        ];
        if let Some((field, _)) = is_past.into_iter().find(|(_, is_given)| *is_given) {
            return Err(invalid(format!("{field}: a live run has none; leave it out")));
        }
        let strategy = strategy_file(config)?;
        let instruments =
            instruments("a live run", &config.instrument_id, config.instrument_ids.as_deref())?;
        let rows = match config.granularity {
            None | Some(Granularity::Trade) => FeedRows::Trades,
            Some(Granularity::Minute) => FeedRows::Minutes,
            Some(Granularity::Daily) => {
                let text = "GRANULARITY: a live run gives Trade or Minute, not Daily";
                return Err(invalid(text));
            }
        };
        let at_least_one = |field: &str, value: Option<u64>| match value {
            Some(0) => Err(invalid(format!("{field}: it is 0; it must be at least 1"))),
            value => Ok(value),
        };
        let needed = |field: &str, value| {
            at_least_one(field, value)?.ok_or_else(|| {
                invalid(format!("{field}: a live run needs this limit of each order"))
            })
        };
        let yen = |field: &str, value: u64| {
            let yen = i64::try_from(value).ok().filter(|yen| *yen <= i64::MAX / 10_000);
            yen.map(Money::from_yen).ok_or_else(|| invalid(format!("{field}: {value} is too much")))
        };
        let count = |field: &str, value| {
            let value = at_least_one(field, value)?;
            Ok(value.map(|value| u32::try_from(value).unwrap_or(u32::MAX)))
        };
        let max_qty = Quantity::new(needed("MAX_QTY", config.max_qty)?);
        let notional = needed("MAX_NOTIONAL_JPY", config.max_notional_jpy)?;
        let orders = OrderLimits {
            max_qty: Some(max_qty),
            max_notional: Some(yen("MAX_NOTIONAL_JPY", notional)?),
            max_orders_per_minute: count("MAX_ORDERS_PER_MINUTE", config.max_orders_per_minute)?,
            max_open_orders: count("MAX_OPEN_ORDERS", config.max_open_orders)?,
            max_daily_loss: at_least_one("MAX_DAILY_LOSS_JPY", config.max_daily_loss_jpy)?
                .map(|value| yen("MAX_DAILY_LOSS_JPY", value))
                .transpose()?,
            max_position_qty: at_least_one("MAX_POSITION_QTY", config.max_position_qty)?
                .map(Quantity::new),
        };
        let kind = match config.paper {
            Some(true) => JournalKind::Paper,
            _ => JournalKind::Live,
        };
        let cash = match (kind, config.initial_cash) {
            (JournalKind::Paper, Some(cash)) => positive_cash(cash)?,
            (JournalKind::Paper, None) => {
                return Err(invalid(
                    "INITIAL_CASH: a paper run needs it: money at the start in yen",
                ));
            }
            (JournalKind::Live, None) => Money::ZERO,
            (JournalKind::Live, Some(_)) => {
                return Err(invalid(
                    "INITIAL_CASH: with real orders the broker has the cash; leave it out, or say \
                     paper: true",
                ));
            }
        };
        if kind == JournalKind::Live && config.execution.is_some() {
            let text = "EXECUTION: the broker fills real orders; leave it out, or say paper: true";
            return Err(invalid(text));
        }
        let (preset, model, choices) = execution(config.execution.as_ref(), Preset::Realistic)?;
        Ok(Self {
            strategy_id: strategy_id.to_owned(),
            strategy,
            parameters: parameters(config),
            instruments,
            rows,
            cash,
            model,
            preset,
            choices,
            orders,
            kind,
        })
    }
}

impl Shared {
    /// Starts a live run. The first check that fails gives the refusal (specification 4, P84).
    pub(crate) fn start_live(self: &Arc<Self>, to: &CommandContext<'_>, start: &StartEngine) {
        let (id, config) = (&start.strategy_id, &start.config);
        let mut core = self.lock();
        if !self.config.live_engine {
            let text = "this engine runs no strategies; set live_engine = true in [engine]";
            return core.engine_error(to, error_code::LIVE_ENGINE_UNAVAILABLE, text, Some(id));
        }
        let wanted = match Wanted::read(id, config) {
            Ok(wanted) => wanted,
            Err((code, why)) => return core.error(to, code, &why),
        };
        if let Some(reason) = core.not_free() {
            return core.busy(to, reason);
        }
        core.under_way = Some(UnderWay::Start);
        // The run before is over; how it ended is in `last_run`.
        core.run = None;
        drop(core);
        self.spawn_run(to, |shared, request, place| shared.live_run(request, wanted, place));
    }

    /// Lots and price steps as the broker has them (P85).
    fn units_of(&self, instruments: &[InstrumentId]) -> Result<InstrumentChoices, Refusal> {
        let masters = self.live.web_broker.get().and_then(super::OrderDesk::masters);
        let masters = masters.ok_or_else(|| {
            let text = "web_broker: the broker's list of issues is missing; log in again";
            (error_code::VENUE_NOT_READY, text.to_owned())
        })?;
        units_of(&masters, instruments)
    }

    /// The run from its begin to its end.
    fn live_run(
        self: &Arc<Self>,
        request: &RequestContext,
        wanted: Wanted,
        (run_id, run_dir): (&str, &Path),
    ) -> End {
        let is_real = wanted.kind == JournalKind::Live;
        let checked = match is_real {
            true => self.check_order_desk(),
            false => Ok(()),
        };
        if let Err(refusal) = checked.and_then(|()| self.live.check_market_data()) {
            return End::nothing(refusal);
        }
        // A file that cannot be used is told first (P84).
        let (choices, unlisted) = match is_real.then(|| self.units_of(&wanted.instruments)) {
            None => (wanted.choices.clone(), None),
            Some(Ok(choices)) => (choices, None),
            Some(Err(refusal)) => (wanted.choices.clone(), Some(refusal)),
        };
        let config = &self.config;
        let run = PaperRun {
            kind: wanted.kind,
            run_id: run_id.to_owned(),
            strategy_id: wanted.strategy_id.clone(),
            strategy: wanted.strategy,
            strategies: config.strategies.clone(),
            parameters: wanted.parameters.clone(),
            instruments: wanted.instruments.clone(),
            data: config.data.clone(),
            choices,
            rows: wanted.rows,
            first: wall_now().jst_date(),
            cash: wanted.cash,
            model: wanted.model,
            limits: config.limits,
            orders: wanted.orders,
            folder: run_dir.to_owned(),
        };
        let ready = match run.prepare(&mut UntilShutdown(Arc::clone(self))) {
            Ok(ready) => ready,
            Err(error) => return not_prepared(&error),
        };
        if let Some(refusal) = unlisted {
            return End::nothing(refusal);
        }
        if ready.module().capabilities().aggressor {
            tracing::warn!(
                strategy_id = wanted.strategy_id,
                "the strategy asks for the aggressor side of trades; a replay knows none, so there it decides otherwise"
            );
        }
        let refusal = Arc::new(Mutex::new(None));
        let observer = Observer {
            shared: Arc::clone(self),
            strategy_id: wanted.strategy_id.clone(),
            instruments: wanted.instruments.clone(),
            is_real,
            refusal: Arc::clone(&refusal),
        };
        let limits = FeedLimits::default();
        let (sender, mut source) =
            feed(&wanted.instruments, wanted.rows, limits, Box::new(observer));
        self.live.strategy.lock().feed = Some(sender.clone());
        let lots = ready.options().instruments.iter().map(|instrument| instrument.lot).collect();
        let today = wall_now().jst_date();
        let mut run = Run::new(RunSetup {
            kind: if is_real { RunKind::Real } else { RunKind::Paper },
            lots,
            run_id: run_id.to_owned(),
            strategy_id: wanted.strategy_id,
            request: request.clone(),
            multiplier: Multiplier::Times(1),
            instruments: wanted.instruments.iter().map(ToString::to_string).collect(),
            dates: (today, today),
            cash: wanted.cash,
            rows_total: 0,
            interval: KlineInterval::Minute,
            parameters: wanted.parameters,
            // What is traded is kept beside the run.
            past: Vec::new(),
            control: RunControl::Live(sender.clone()),
        });
        run.execution = Some(match is_real {
            true => present::at_broker(),
            false => present::execution_config(wanted.preset, &wanted.model, &wanted.choices),
        });
        let strategy_id = run.setup.strategy_id.clone();
        let broker = EngineBroker::new(self, &strategy_id, &wanted.instruments);
        run.now = wall_now();
        self.lock().run = Some(run);
        let clock = EngineClock::start(sender);
        let mut sink = ClientSink::new(self);
        // Also where this thread panics.
        let mut end = is_real.then(|| OrdersEnd {
            shared: self,
            strategy_id: &strategy_id,
            has_failed: true,
        });
        let outcome = match is_real {
            false => ready.run(&mut source, &mut sink),
            true => {
                let orders = RealOrders {
                    broker,
                    strategy_id: strategy_id.as_str().into(),
                    run_id: run_id.to_owned(),
                    clock: wall_now,
                };
                ready.run_real(&mut source, orders, &mut sink)
            }
        };
        drop(clock);
        let refusal = refusal.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(end) = &mut end {
            let has_failed = !matches!(&outcome, Ok(PaperOutcome::Ended(run))
                if !matches!(run.totals.status, RunStatus::Failed(_)));
            end.has_failed = has_failed && refusal.is_none();
        }
        drop(end);
        match refusal {
            // It has begun nothing, so nothing is left behind.
            Some(refusal) => {
                remove_folder(run_dir);
                End::nothing(refusal)
            }
            None => ended(outcome),
        }
    }
}

/// The end of a run with real orders: where it is dropped, its orders are ended and the desk hears of it.
struct OrdersEnd<'a> {
    shared: &'a Shared,
    strategy_id: &'a str,
    has_failed: bool,
}

impl Drop for OrdersEnd<'_> {
    fn drop(&mut self) {
        self.shared.end_orders(self.strategy_id, self.has_failed);
    }
}

/// How a run ended that came so far.
fn ended(outcome: Result<PaperOutcome, PaperError>) -> End {
    match outcome {
        Ok(PaperOutcome::Ended(run)) => {
            let (status, fault) = match &run.totals.status {
                RunStatus::Completed | RunStatus::Interrupted => (RunEnd::Stopped, None),
                // Clients were not told what could not be written, so they know another equity.
                RunStatus::Failed(fault) if matches!(fault.kind, FaultKind::Journal(_)) => {
                    return End::nothing((error_code::STRATEGY_FAULT, fault_text(fault)));
                }
                RunStatus::Failed(fault) => {
                    (RunEnd::Fault, Some((error_code::STRATEGY_FAULT, fault_text(fault))))
                }
            };
            End::Run { equity: run.totals.equity_end, status, fault }
        }
        Ok(PaperOutcome::Refused(fault)) => {
            End::nothing((error_code::STRATEGY_INIT_FAILED, fault.to_string()))
        }
        Err(error) => End::nothing((error_code::RESULTS_FAILED, with_causes(&error))),
    }
}

fn not_prepared(error: &RequestError) -> End {
    let code = match error {
        RequestError::Strategy(_) | RequestError::Sandbox(_) | RequestError::Stopped => {
            error_code::STRATEGY_LOAD_FAILED
        }
        RequestError::Options(_) => error_code::VALIDATION_ERROR,
        _ => error_code::DATA_UNREADABLE,
    };
    End::nothing((code, with_causes(error)))
}

/// Ends the loading of a strategy with the engine.
struct UntilShutdown(Arc<Shared>);

impl RunObserver for UntilShutdown {
    fn is_cancelled(&self) -> bool {
        self.0.shutdown.is_cancelled()
    }
}

/// What the strategy's thread has the engine do.
struct Observer {
    shared: Arc<Shared>,
    strategy_id: String,
    instruments: Vec<InstrumentId>,
    /// Whether its orders go to the broker.
    is_real: bool,
    /// Why the run does not begin.
    refusal: Arc<Mutex<Option<Refusal>>>,
}

impl Observer {
    /// What is left of a start after the strategy's init (P84).
    fn begin(&self, opening: Opening) -> Result<(), Refusal> {
        let shared = &self.shared;
        shared.live.subscribe_strategy(&self.instruments)?;
        let is_streaming = shared.live.strategy.wait_for_stream(STREAM_TIME);
        let standing = match self.is_real {
            true => self.take_over()?,
            false => Standing::default(),
        };
        shared.begin_run_with(opening);
        shared.warn_of_shortfalls(&self.strategy_id, &standing);
        if !is_streaming {
            shared.market_data_lost();
        }
        Ok(())
    }

    /// Takes over what an earlier run has left (P104 to P107).
    fn take_over(&self) -> Result<Standing, Refusal> {
        let shared = &self.shared;
        let feed = shared.live.strategy.lock().feed.clone();
        let Some(feed) = feed else { return Ok(Standing::default()) };
        let standing = shared.take_over(&self.strategy_id, &self.instruments, feed)?;
        if let Some(run) = &mut shared.lock().run {
            for (index, id) in self.instruments.iter().enumerate() {
                let id = id.to_string();
                let held = standing.held.iter();
                let held = held.filter(|held| *held.instrument_id == *id);
                for (quantity, cost) in held.filter_map(StrategyHolding::position) {
                    // A run has at most 4 instruments.
                    run.carry(InstrumentIx(index as u16), quantity, cost);
                }
            }
        }
        Ok(standing)
    }
}

impl FeedObserver for Observer {
    fn ready(&mut self, opening: Opening) {
        let begun = self.begin(opening);
        let Err(refusal) = begun else { return };
        let why = refusal.1.clone();
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
        if let Some(feed) = &self.shared.live.strategy.lock().feed {
            match self.is_real {
                // Nothing has begun, so nothing is cancelled and the strategy is not called.
                true => feed.broker(BrokerNews::Fail(FaultKind::Halt(why))),
                false => feed.stop(),
            }
        }
    }

    fn slow(&mut self, is_slow: bool) {
        if is_slow {
            let text = "events wait more than 2 s for the strategy; after 10 s its run ends";
            self.shared.strategy_error(error_code::STRATEGY_SLOW, text);
            tracing::warn!(strategy_id = self.strategy_id, "a live strategy is slow");
        }
    }
}

impl Shared {
    /// Sends clients what is wrong with the strategy that runs. Says whether one does.
    pub(super) fn strategy_error(&self, code: &str, text: &str) -> bool {
        let mut core = self.lock();
        let Some(id) = core.running_strategy().map(str::to_owned) else { return false };
        core.hub.broadcast(&present::engine_error(None, code, text, Some(&id)));
        true
    }

    /// Market data are lost (specification 4, P115).
    pub(super) fn market_data_lost(&self) {
        let text = "the local broker's stream is down; the strategy gets no trades and buys nothing \
                    until it is back";
        if self.strategy_error(error_code::MARKET_DATA_LOST, text) {
            self.notice(NoticeKind::MarketDataLost, text);
        }
    }

    /// Has the user's program told something, with the name of the strategy that runs, if one does.
    pub(crate) fn notice(&self, kind: NoticeKind, message: &str) {
        let strategy_id = self.lock().running_strategy().map(str::to_owned);
        let (ts, message, fill) = (wall_now(), message.to_owned(), None);
        self.notifier.tell(Notice { kind, ts, strategy_id, message, fill });
    }
}

impl super::Venues {
    /// The local broker can bring market data (specification 4, P84).
    fn check_market_data(&self) -> Result<(), Refusal> {
        let not_ready =
            |why: String| (error_code::VENUE_NOT_READY, format!("{LOCAL_BROKER}: {why}"));
        let Some(gateway) = self.local_broker.get() else {
            let why = "this engine has no such venue; start it with one, see `kumiki help serve`";
            return Err(not_ready(why.to_owned()));
        };
        let answers = self.strategy.answers();
        let to = VenueRequest { client: STRATEGY, request_id: "state".to_owned() };
        if gateway.strategy_command(to, Command::ReadState).is_err() {
            return Err(not_ready("it takes no commands; try again".to_owned()));
        }
        match answers.recv_timeout(VENUE_STATE_TIME) {
            Ok(VenueEvent::State { state, .. }) if state.is_ready() => Ok(()),
            Ok(VenueEvent::State { state, code, .. }) => {
                let code = code.map_or(String::new(), |code| format!(" ({code})"));
                Err(not_ready(format!(
                    "it is {state:?}{code}; log in first with RequestVenueLogin"
                )))
            }
            _ => Err(not_ready("it does not answer; try again".to_owned())),
        }
    }

    /// Registers the strategy's instruments, as one more subscriber (specification 4, P89).
    fn subscribe_strategy(&self, instruments: &[InstrumentId]) -> Result<(), Refusal> {
        let not_ready = |why: &str| (error_code::VENUE_NOT_READY, format!("{LOCAL_BROKER}: {why}"));
        let Some(gateway) = self.local_broker.get() else { return Err(not_ready("it has ended")) };
        let answers = self.strategy.answers();
        for id in instruments {
            let request_id = id.to_string();
            let to = VenueRequest { client: STRATEGY, request_id };
            if gateway.strategy_command(to, Command::Subscribe(id.symbol().to_owned())).is_err() {
                return Err(not_ready("it takes no commands; try again"));
            }
        }
        let watch = Stopwatch::start();
        let mut left = instruments.len();
        while left > 0 {
            match answers.recv_timeout(REGISTRATION_TIME.saturating_sub(watch.elapsed())) {
                Ok(VenueEvent::Subscribed { .. }) => left -= 1,
                Ok(VenueEvent::Error { code: ErrorCode::RegisterFull, message, .. }) => {
                    return Err((error_code::REGISTER_FULL, message));
                }
                Ok(VenueEvent::Error { request_id, message, .. }) => {
                    let id = request_id.unwrap_or_default();
                    return Err(not_ready(&format!("it does not register {id}: {message}")));
                }
                Ok(_) => {}
                Err(_) => return Err(not_ready("it does not register the instruments; try again")),
            }
        }
        Ok(())
    }

    /// No strategy wants market data any more.
    pub(crate) fn release_strategy(&self) {
        let mut ends = self.strategy.lock();
        (ends.feed, ends.answers) = (None, None);
        drop(ends);
        if let Some(gateway) = self.local_broker.get() {
            gateway.client_left(crate::hub::ClientId::of(STRATEGY));
        }
    }
}

/// Gives a feed the engine's time, and has cash and equity reported each second, until it is dropped.
struct EngineClock(#[expect(dead_code, reason = "its end stops the thread")] Sender<()>);

impl EngineClock {
    fn start(feed: FeedSender) -> Self {
        let (sender, ended) = channel::<()>();
        thread::spawn(move || {
            let mut reported = Stopwatch::start();
            while ended.recv_timeout(CLOCK_EVERY) == Err(RecvTimeoutError::Timeout) {
                feed.clock(wall_now());
                if reported.elapsed() >= BUYING_POWER_EVERY {
                    reported = Stopwatch::start();
                    feed.report_buying_power();
                }
            }
        });
        Self(sender)
    }
}
