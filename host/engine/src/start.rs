//! Starts a run, drives it on a thread of its own, and ends it (specification 2, `StartEngine`; pins
//! P65 to P67).

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::Duration;
use std::{fs, io, thread};

use domain::fault::FaultKind;
use domain::text::with_causes;
use domain::{InstrumentId, JstDate, Money, Quantity};
use exchange::{Commission, ExecutionModel, Preset, SameDayRoundTrips};
use ipc::{
    Decimal, EngineKind, EngineMode, EngineStartConfig, ExecutionConfig, Granularity,
    KlineInterval, Multiplier, RunEnd, SessionState, StartEngine, error_code,
};
use live::journal::STRATEGY_FILE;
use live::notify::{Notice, NoticeFill, NoticeKind};
use replay::data_set::DataRequest;
use replay::driver::{Paced, SystemClock};
use replay::instruments::{Choices, InstrumentChoices, TickChoice};
use replay::request::{RequestOutcome, RunRequest};
use replay::{RequestError, RunCommand, RunDriver, RunPosition};
use results::rows::FillRow;
use results::sink::{LiveRecords, Record, RunSink};
use results::{RunFolder, RunStatus};
use uuid::Uuid;

use crate::hub::ClientId;
use crate::ledger::RequestContext;
use crate::limits::{
    BESIDE_OTHERS_MAX, READER_PATIENCE, READERS_WAIT_MAX, READERS_WAIT_STEP, ROWS_BETWEEN_LOOKS,
    STRATEGY_ID_CHARS_MAX,
};
use crate::load::{ProgressReport, Refusal, dates, granularity, instruments, internal, invalid};
use crate::present::session as present;
use crate::run::{Run, RunControl, RunKind, RunSetup, WaitingCommand};
use crate::session::{CommandContext, Core, EndedRun, Shared, UnderWay};

/// Trades handed to the strategy at once: one, so that a command of a person acts before the next.
const WINDOW: u32 = 1;
/// The folder of the runs inside the cache folder.
pub(crate) const RUNS: &str = "runs";

/// Money at the start of a run.
pub(crate) fn positive_cash(cash: Decimal) -> Result<Money, Refusal> {
    let cash = Money::from(cash);
    if cash <= Money::ZERO {
        return Err(invalid(format!("INITIAL_CASH: {cash} yen; it must be more than 0")));
    }
    Ok(cash)
}

/// The parameters that a command gives the strategy.
pub(crate) fn parameters(config: &EngineStartConfig) -> BTreeMap<String, serde_json::Value> {
    config.strategy_init_kwargs.clone().unwrap_or_default().into_iter().collect()
}

/// The strategy that a command names.
pub(crate) fn strategy_file(config: &EngineStartConfig) -> Result<String, Refusal> {
    let given = config.strategy_file.as_deref().filter(|file| !file.trim().is_empty());
    let missing = || invalid("STRATEGY_FILE: a run needs it: the path of a strategy");
    given.map(str::to_owned).ok_or_else(missing)
}

/// The run that a command wants.
struct Wanted {
    strategy_id: String,
    data: DataRequest,
    wire: Granularity,
    dates: (JstDate, JstDate),
    strategy: String,
    parameters: BTreeMap<String, serde_json::Value>,
    cash: Money,
    model: ExecutionModel,
    model_name: Preset,
    multiplier: Multiplier,
}

impl Shared {
    /// Starts a run. The first check that fails gives the refusal (specification 4, P65).
    pub(crate) fn start(self: &Arc<Self>, to: &CommandContext<'_>, start: &StartEngine) {
        let mut core = self.lock();
        let (id, config) = (&start.strategy_id, &start.config);
        let is_name =
            |id: &str| !id.trim().is_empty() && id.chars().nth(STRATEGY_ID_CHARS_MAX).is_none();
        if !is_name(id) || config.strategy_id.as_ref().is_some_and(|other| other != id) {
            let text = format!(
                "STRATEGY_ID: write 1 to {STRATEGY_ID_CHARS_MAX} characters, and the same in the \
                 config"
            );
            return core.error(to, error_code::VALIDATION_ERROR, &text);
        }
        match (start.engine, self.config.mode) {
            (EngineKind::Backtest, EngineMode::Replay) => {}
            (EngineKind::Live, EngineMode::Live) => {
                drop(core);
                return self.start_live(to, start);
            }
            (EngineKind::Live, EngineMode::Replay) => {
                let text = "the command names the engine Live; this one runs with --mode replay \
                            and takes Backtest";
                return core.engine_error(to, error_code::VALUE_ERROR, text, Some(id));
            }
            (EngineKind::Backtest, EngineMode::Live) => {
                let text = "the command names the engine Backtest; this one runs with --mode live; \
                            start one with --mode replay";
                return core.engine_error(to, error_code::VALUE_ERROR, text, Some(id));
            }
        }
        let wanted = match self.wanted(id, config) {
            Ok(wanted) => wanted,
            Err((code, why)) => return core.error(to, code, &why),
        };
        if let Some(reason) = core.not_free() {
            return core.busy(to, reason);
        }
        if let Err((code, why)) = core.is_loaded(&wanted) {
            return core.error(to, code, &why);
        }
        if let Err(error) = self.config.strategies.find(&wanted.strategy) {
            let (code, why) = (error_code::STRATEGY_LOAD_FAILED, with_causes(&error));
            return core.engine_error(to, code, &why, Some(id));
        }
        core.under_way = Some(UnderWay::Start);
        drop(core);
        self.spawn_run(to, |shared, request, place| shared.run(request, wanted, place));
    }

    /// Makes a run on a thread of its own, and sends its end, whatever that is. `run` gets the command, and the name and
    /// the folder of the run.
    pub(crate) fn spawn_run(
        self: &Arc<Self>,
        to: &CommandContext<'_>,
        run: impl FnOnce(&Arc<Self>, &RequestContext, (&str, &Path)) -> End + Send + 'static,
    ) {
        let (shared, request) = (Arc::clone(self), to.request());
        let run_id = run_id(domain::clock::wall_now());
        let run_dir = self.config.cache_dir.join(RUNS).join(&run_id);
        thread::spawn(move || {
            let run = AssertUnwindSafe(|| run(&shared, &request, (&run_id, &run_dir)));
            let end = catch_unwind(run).unwrap_or_else(|_| End::nothing(internal()));
            shared.live.release_strategy();
            shared.ended(&request, &end, (run_id, run_dir));
        });
    }

    /// Reads the run that a command wants.
    fn wanted(&self, strategy_id: &str, config: &EngineStartConfig) -> Result<Wanted, Refusal> {
        let of_live = [
            ("MAX_QTY", config.max_qty.is_some()),
            ("MAX_NOTIONAL_JPY", config.max_notional_jpy.is_some()),
            ("MAX_ORDERS_PER_MINUTE", config.max_orders_per_minute.is_some()),
            ("MAX_OPEN_ORDERS", config.max_open_orders.is_some()),
            ("MAX_DAILY_LOSS_JPY", config.max_daily_loss_jpy.is_some()),
            ("MAX_POSITION_QTY", config.max_position_qty.is_some()),
            ("PAPER", config.paper.is_some()),
        ];
        if let Some((field, _)) = of_live.into_iter().find(|(_, is_given)| *is_given) {
            return Err(invalid(format!("{field}: it is of live trading; leave it out")));
        }
        let missing = |field: &str| invalid(format!("{field}: a replay needs it"));
        let start = config.start_date.as_deref().ok_or_else(|| missing("START_DATE"))?;
        let end = config.end_date.as_deref().ok_or_else(|| missing("END_DATE"))?;
        let wire = config.granularity.ok_or_else(|| missing("GRANULARITY"))?;
        let cash = config.initial_cash.ok_or_else(|| missing("INITIAL_CASH"))?;
        let strategy = strategy_file(config)?;
        let cash = positive_cash(cash)?;
        let ids = instruments("a replay", &config.instrument_id, config.instrument_ids.as_deref())?;
        let dates = dates(start, end)?;
        let (model_name, model, choices) = execution(config.execution.as_ref(), Preset::Strict)?;
        Ok(Wanted {
            strategy_id: strategy_id.to_owned(),
            data: DataRequest {
                folder: self.config.data.clone().unwrap_or_default(),
                cache: self.config.strategies.cache.clone(),
                instruments: ids,
                start: Some(dates.0),
                end: Some(dates.1),
                granularity: granularity(wire),
                choices,
            },
            wire,
            dates,
            strategy,
            parameters: parameters(config),
            cash,
            model,
            model_name,
            multiplier: config.multiplier.unwrap_or(Multiplier::Times(1)),
        })
    }

    /// The run from its begin to its end.
    fn run(
        self: &Arc<Self>,
        client_request: &RequestContext,
        wanted: Wanted,
        (run_id, run_dir): (&str, &Path),
    ) -> End {
        let (commands, receiver) = channel();
        let choices = wanted.data.choices.clone();
        let request = RunRequest {
            data: wanted.data,
            strategy: wanted.strategy,
            strategies: self.config.strategies.clone(),
            parameters: wanted.parameters,
            cash: wanted.cash,
            model: wanted.model,
            limits: self.config.limits,
            window: WINDOW,
            out: Some(run_dir.to_owned()),
            wall_clock: Some(domain::clock::wall_now),
        };
        let ids: Vec<String> = request.data.instruments.iter().map(ToString::to_string).collect();
        {
            let mut core = self.lock();
            let rows_total = core
                .loaded
                .iter()
                .filter(|loaded| request.data.instruments.contains(&loaded.id))
                .map(|loaded| loaded.rows_between(wanted.dates.0, wanted.dates.1))
                .sum();
            let lot_of = |id: &InstrumentId| {
                let of_data = core.loaded.iter().find(|loaded| loaded.id == *id);
                choices.lots.of(id).or(of_data.map(|loaded| loaded.lot)).unwrap_or(Quantity::new(1))
            };
            let lots = request.data.instruments.iter().map(lot_of).collect();
            let past_of = |id: &InstrumentId| {
                let loaded = core.loaded.iter().find(|loaded| loaded.id == *id)?;
                Some(loaded.past(wanted.dates))
            };
            let past = request.data.instruments.iter().filter_map(past_of).collect();
            let mut run = Run::new(RunSetup {
                kind: RunKind::Replay,
                parameters: request.parameters.clone(),
                past,
                lots,
                run_id: run_id.to_owned(),
                strategy_id: wanted.strategy_id,
                request: client_request.clone(),
                multiplier: wanted.multiplier,
                instruments: ids,
                dates: wanted.dates,
                cash: wanted.cash,
                rows_total,
                interval: match wanted.wire {
                    Granularity::Trade | Granularity::Minute => KlineInterval::Minute,
                    Granularity::Daily => KlineInterval::Day,
                },
                control: RunControl::Replay(commands),
            });
            run.execution =
                Some(present::execution_config(wanted.model_name, &request.model, &choices));
            core.run = Some(run);
        }
        let mut clock = SystemClock::default();
        let paced = Paced::new(crate::multiplier(wanted.multiplier), receiver, &mut clock);
        let mut driver = ClientDriver { shared: self, paced, has_begun: false };
        let mut sink = ClientSink::new(self);
        let request_id = client_request.request_id.clone();
        let mut observer = ProgressReport::new(Arc::clone(self), request_id);
        observer.ends_with_run = true;
        let outcome = request.run(&mut driver, Some(&mut sink), &mut observer);
        if let Ok(RequestOutcome::Finished(finished)) = &outcome
            && finished.totals.status == RunStatus::Completed
        {
            observer.end_run();
        }
        let runs = self.config.cache_dir.join(RUNS);
        if let Err(error) = remove_oldest(&runs, self.config.runs_kept, run_id) {
            tracing::warn!(error = %error, "cannot list older runs");
        }
        End::of(outcome)
    }

    /// Sends the end of a run.
    fn ended(&self, request: &RequestContext, end: &End, (run_id, run_dir): (String, PathBuf)) {
        let mut guard = self.lock();
        let core = &mut *guard;
        core.under_way = None;
        let now = self.started.elapsed();
        let to = request.command_context("StartEngine", now);
        let has_started = core.run.as_ref().is_some_and(|run| run.has_started);
        if let (false, End::Nothing { code, why }) = (has_started, end) {
            let id = core.run.take().map(|run| run.setup.strategy_id);
            let is_of_venue = matches!(
                *code,
                error_code::VENUE_NOT_READY
                    | error_code::REGISTER_FULL
                    | error_code::VALIDATION_ERROR
            );
            return match is_of_venue {
                true => core.error(&to, code, why),
                false => core.engine_error(&to, code, why, id.as_deref()),
            };
        }
        let Core { hub, run: Some(run), .. } = core else { return };
        run.start(hub);
        run.send_fill(hub);
        run.end_bars(hub);
        let (status, fault) = match end {
            End::Run { equity, status, fault } => {
                debug_assert!(
                    run.setup.kind == RunKind::Real || *equity == run.equity(),
                    "one account, two books"
                );
                (*status, fault.clone())
            }
            End::Nothing { code, why } => {
                run.reject_unanswered(hub, why);
                (RunEnd::Fault, Some((*code, why.clone())))
            }
        };
        if run.setup.kind != RunKind::Real {
            hub.broadcast(&present::buying_power(run, None));
        }
        if let Some((code, message)) = &fault {
            let code =
                if *code == error_code::RESULTS_FAILED { code } else { error_code::STRATEGY_FAULT };
            let id = Some(&*run.setup.strategy_id);
            hub.broadcast(&present::engine_error(None, code, message, id));
        }
        let left: Vec<_> = run.waiting.drain(..).collect();
        let stop = run.stop.take();
        let final_equity = run.result();
        core.state = SessionState::Idle;
        core.forget_past();
        self.is_stopping.store(false, Ordering::Relaxed);
        core.loaded.clear();
        for WaitingCommand { request, action, .. } in left {
            let to = CommandContext {
                venue: Some(crate::VENUE),
                ..request.command_context(action.op(), now)
            };
            // It was right when it was sent, so it is no error of the client.
            core.busy(&to, "the run has ended");
        }
        let Core { hub, run: Some(run), .. } = core else { return };
        let ended = EndedRun { run_id, run_dir, final_equity, status, fault };
        let is_replay = run.setup.kind == RunKind::Replay;
        if let Some(stop) = stop.as_ref().filter(|_| is_replay) {
            hub.broadcast(&present::run_stopped(&stop.request_id, &ended));
        }
        let (run_id, rows_done) = (&ended.run_id, run.rows_done);
        tracing::info!(run_id, status = ?status, rows_done, "a run has ended");
        if !is_replay {
            let id = &run.setup.strategy_id;
            self.notifier.tell(end_notice(id, &ended));
        }
        let stop = stop.as_ref().filter(|_| !is_replay).map(|stop| &*stop.request_id);
        hub.broadcast(&present::run_ended(run, &ended, stop));
        core.last_run = Some(ended);
    }
}

/// Tells a person that a live run has ended.
fn end_notice(strategy_id: &str, ended: &EndedRun) -> Notice {
    let (kind, message) = match &ended.fault {
        Some((_, fault)) => (NoticeKind::Fault, fault.clone()),
        None => {
            let result = ended.final_equity;
            (NoticeKind::RunEnd, format!("the run has ended; profit or loss {result} yen"))
        }
    };
    let strategy_id = Some(strategy_id.to_owned());
    Notice { kind, ts: domain::clock::wall_now(), strategy_id, message, fill: None }
}

/// Tells a person of a fill.
pub(crate) fn fill_notice(run: &Run, fill: &FillRow) -> Notice {
    let id = run.instrument(fill.instrument);
    let (side, quantity, price) = (fill.side, fill.quantity, fill.price);
    let instrument = id.parse().ok();
    Notice {
        kind: NoticeKind::Fill,
        ts: fill.ts_event,
        strategy_id: Some(run.setup.strategy_id.clone()),
        message: format!("{side} {quantity} {id} at {price}"),
        fill: instrument.map(|instrument| NoticeFill { instrument, side, quantity, price }),
    }
}

/// How a run ended.
pub(crate) enum End {
    /// It did not begin, or has no results.
    Nothing { code: &'static str, why: String },
    /// There are results.
    Run { equity: Money, status: RunEnd, fault: Option<(&'static str, String)> },
}

impl End {
    pub(crate) fn nothing((code, why): Refusal) -> Self {
        Self::Nothing { code, why }
    }

    fn of(outcome: Result<RequestOutcome, RequestError>) -> Self {
        let nothing = |code, why| Self::Nothing { code, why };
        match outcome {
            Ok(RequestOutcome::Finished(finished)) => {
                let (status, fault) = match &finished.totals.status {
                    RunStatus::Completed => (RunEnd::Completed, None),
                    RunStatus::Interrupted => (RunEnd::Stopped, None),
                    RunStatus::Failed(fault) if fault.export == "init" => {
                        return nothing(error_code::STRATEGY_INIT_FAILED, fault.to_string());
                    }
                    RunStatus::Failed(fault) => {
                        (RunEnd::Fault, Some((fault_code(&fault.kind), fault.to_string())))
                    }
                };
                Self::Run { equity: finished.totals.equity_end, status, fault }
            }
            Ok(RequestOutcome::Refused(fault)) => {
                nothing(error_code::STRATEGY_INIT_FAILED, fault.to_string())
            }
            Ok(RequestOutcome::Interrupted) => nothing(
                error_code::STRATEGY_LOAD_FAILED,
                "the run ended before its first row".into(),
            ),
            Err(error @ (RequestError::Replay(_) | RequestError::Folder(_))) => {
                nothing(error_code::RESULTS_FAILED, with_causes(&error))
            }
            Err(
                error @ (RequestError::Strategy(_)
                | RequestError::Sandbox(_)
                | RequestError::Stopped),
            ) => nothing(error_code::STRATEGY_LOAD_FAILED, with_causes(&error)),
            Err(error) => nothing(error_code::DATA_UNREADABLE, with_causes(&error)),
        }
    }
}

/// What went wrong in a strategy, as a word.
const fn fault_code(kind: &FaultKind) -> &'static str {
    match kind {
        FaultKind::Panic(_) => "panic",
        FaultKind::Trap(_) => "trap",
        FaultKind::Fuel { .. } => "fuel",
        FaultKind::Memory { .. } => "memory",
        FaultKind::Stack { .. } => "stack",
        _ => "limit",
    }
}

impl Core {
    /// Whether a run's range is loaded.
    fn is_loaded(&self, wanted: &Wanted) -> Result<(), Refusal> {
        let (first, last) = wanted.dates;
        for id in &wanted.data.instruments {
            let loaded = self.loaded.iter().find(|loaded| loaded.id == *id);
            let fits = loaded.is_some_and(|loaded| {
                loaded.granularity == wanted.wire && loaded.start <= first && last <= loaded.end
            });
            if !fits {
                let what = match loaded {
                    None => "nothing of it is loaded".to_owned(),
                    Some(loaded) => format!(
                        "{:?} from {} to {} is loaded",
                        loaded.granularity, loaded.start, loaded.end
                    ),
                };
                let text = format!(
                    "{id} from {first} to {last} at granularity {:?} is not loaded ({what}); send \
                     LoadReplayData first",
                    wanted.wire
                );
                return Err((error_code::NOT_LOADED, text));
            }
        }
        Ok(())
    }
}

/// How orders are filled, and what is said of lots and price steps.
pub(crate) fn execution(
    config: Option<&ExecutionConfig>,
    default: Preset,
) -> Result<(Preset, ExecutionModel, InstrumentChoices), Refusal> {
    let mut choices = InstrumentChoices::default();
    let Some(config) = config else {
        return Ok((default, default.model(), choices));
    };
    let wrong = |field: &str, why: &dyn std::fmt::Display| invalid(format!("{field}: {why}"));
    let preset: Preset = config.model.parse().map_err(|why| wrong("MODEL", &why))?;
    let mut model = preset.model();
    if let Some(latency) = config.latency_ns {
        model.latency_ns = latency;
    }
    if let Some(ticks) = config.slippage_ticks {
        model.slippage_ticks = ticks;
    }
    if let Some(percent) = config.participation_percent {
        model.participation_percent = percent;
    }
    if let Some(shares) = config.queue_ahead {
        model.queue_ahead = Some(shares);
    }
    if let Some(fees) = &config.commission {
        model.commission = fees.parse::<Commission>().map_err(|why| wrong("COMMISSION", &why))?;
    }
    if let Some(allowed) = config.same_day_round_trips {
        model.same_day_round_trips =
            if allowed { SameDayRoundTrips::Allow } else { SameDayRoundTrips::Refuse };
    }
    model.check().map_err(|why| wrong("EXECUTION", &why))?;
    if let Some(lot) = config.lot {
        if !(1..=domain::limits::LOT_MAX).contains(&lot) {
            let text = format!("LOT: {lot} shares; write 1 to {}", domain::limits::LOT_MAX);
            return Err(invalid(text));
        }
        choices.lots = Choices::all(Quantity::new(lot));
    }
    if let Some(ticks) = &config.ticks {
        let ticks: TickChoice = ticks.parse().map_err(|why| wrong("TICKS", &why))?;
        choices.ticks = Choices::all(ticks);
    }
    Ok((preset, model, choices))
}

/// Drives a run by the wall clock and the commands of clients.
struct ClientDriver<'a, 'c> {
    shared: &'a Arc<Shared>,
    paced: Paced<'c>,
    has_begun: bool,
}

impl RunDriver for ClientDriver<'_, '_> {
    fn poll(&mut self, at: RunPosition) -> Option<RunCommand> {
        if !self.has_begun {
            self.has_begun = true;
            self.shared.begin_run();
        }
        loop {
            let command = self.paced.poll(at)?;
            let RunCommand::Order(order) = &command else { return Some(command) };
            let mut core = self.shared.lock();
            let Core { hub, run: Some(run), .. } = &mut *core else { return Some(command) };
            if run.begin(hub, order) {
                return Some(command);
            }
        }
    }

    fn rows_until_poll(&self, at: RunPosition) -> u64 {
        self.paced.rows_until_poll(at)
    }
}

impl Shared {
    /// The strategy has started: clients get the run's begin, once.
    pub(crate) fn begin_run(&self) {
        self.begin_run_with(());
    }

    /// The same; `opening` is dropped before anything else can happen.
    pub(crate) fn begin_run_with<T>(&self, opening: T) {
        let mut core = self.lock();
        if core.under_way == Some(UnderWay::Start) {
            core.under_way = None;
            core.state = SessionState::Running;
            // Nothing ran that could have been ended before.
            let is_abandoned = !self.config.standalone && core.is_abandoned(self.started.elapsed());
            if self.shutdown.is_cancelled() || is_abandoned {
                core.stop_run(None);
            }
        }
        let Core { hub, run: Some(run), .. } = &mut *core else { return };
        // What comes from here on is told to clients after the start.
        drop(opening);
        run.start(hub);
    }
}

/// Sends clients the records of a run.
pub(crate) struct ClientSink<'a> {
    shared: &'a Arc<Shared>,
    /// Trades, bars and events of orders since the last look at who is behind.
    since_look: u64,
    /// The client that is waited for, what it was written so far, and for how long that has not changed.
    waited_for: Option<((ClientId, u64), Duration)>,
    /// For how long each client was waited for while others were there.
    beside_others: BTreeMap<ClientId, Duration>,
}

impl<'a> ClientSink<'a> {
    pub(crate) fn new(shared: &'a Arc<Shared>) -> Self {
        let (since_look, waited_for, beside_others) = (0, None, BTreeMap::new());
        Self { shared, since_look, waited_for, beside_others }
    }

    /// A run without pace waits for a client that reads slower than the run goes, so that it is not disconnected
    /// for that alone. It does not wait for a client that reads nothing. With more than one client it waits a few
    /// seconds in the whole run. A command ends the wait.
    fn wait_for_reader(&mut self) {
        self.since_look += 1;
        if self.since_look < ROWS_BETWEEN_LOOKS {
            return;
        }
        self.since_look = 0;
        let mut waited = Duration::ZERO;
        while waited < READERS_WAIT_MAX && !self.shared.is_stopping.load(Ordering::Relaxed) {
            let mut core = self.shared.lock();
            let Core { hub, run: Some(run), .. } = &mut *core else { return };
            if run.setup.multiplier != Multiplier::Max || !run.waiting.is_empty() {
                return;
            }
            let Some(behind) = hub.most_behind() else { return };
            if hub.count() > 1 {
                let so_far = self.beside_others.entry(behind.0).or_default();
                *so_far += READERS_WAIT_STEP;
                if *so_far > BESIDE_OTHERS_MAX {
                    hub.end_backpressure(behind.0);
                    continue;
                }
            }
            match &mut self.waited_for {
                Some((same, so_far)) if *same == behind => {
                    *so_far += READERS_WAIT_STEP;
                    if *so_far > READER_PATIENCE {
                        hub.end_backpressure(behind.0);
                    }
                }
                other => *other = Some((behind, Duration::ZERO)),
            }
            drop(core);
            domain::clock::sleep(READERS_WAIT_STEP);
            waited += READERS_WAIT_STEP;
        }
    }
}

impl RunSink for ClientSink<'_> {
    fn take(&mut self, record: Record<'_>) -> io::Result<()> {
        let is_told = matches!(
            record,
            Record::Trade(_)
                | Record::Bar(_)
                | Record::OrderEvent { .. }
                | Record::Signal(..)
                | Record::Narrative(..)
        );
        if is_told {
            self.wait_for_reader();
        }
        let mut core = self.shared.lock();
        if core.under_way == Some(UnderWay::Start) {
            if matches!(record, Record::Log(_)) {
                // What is written in `init` begins no run: the strategy may still refuse.
                return Ok(());
            }
            drop(core);
            self.shared.begin_run();
            core = self.shared.lock();
        }
        let wall = self.shared.started.elapsed();
        if let Core { hub, run: Some(run), .. } = &mut *core {
            run.take(hub, record, wall);
            if let (RunKind::Paper, Record::Fill(fill)) = (run.setup.kind, record) {
                self.shared.notifier.tell(fill_notice(run, fill));
            }
        }
        Ok(())
    }

    fn record_failed(&mut self, record: Record<'_>, error: &io::Error) {
        let mut core = self.shared.lock();
        if let Core { hub, run: Some(run), .. } = &mut *core {
            run.record_failed(hub, record, error);
        }
    }

    fn live_records(&self) -> LiveRecords {
        // The account after each fill is known here; the loop records it once an instant.
        LiveRecords { market: true, buying_power: false }
    }
}

/// A name for a run that sorts by its time: `20251123T094501250Z-1f3a9c2b`.
fn run_id(now: domain::TsNanos) -> String {
    let millis = now.millis() % 1_000;
    let digits = crate::utc(now).replace(['-', ':', 'Z'], "");
    let unique = Uuid::new_v4().simple().to_string();
    format!("{digits}{millis:03}Z-{}", &unique[..8])
}

/// Whether a folder has the name of a run.
fn is_run_id(name: &str) -> bool {
    let shape = |(index, letter): (usize, char)| match index {
        8 => letter == 'T',
        18 => letter == 'Z',
        19 => letter == '-',
        _ => letter.is_ascii_hexdigit(),
    };
    name.len() == 28 && name.chars().enumerate().all(shape)
}

/// Removes the oldest runs, never the `present` one. Ours are folders with the name of a run that hold
/// what a run writes and nothing else.
fn remove_oldest(runs: &Path, runs_max: usize, present: &str) -> io::Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(runs)? {
        let name = entry?.file_name();
        // Runs on the live market stay, and do not count (P111).
        let is_replay = |name: &str| !runs.join(name).join(STRATEGY_FILE).exists();
        let others = name.to_str().filter(|name| is_run_id(name) && *name != present);
        let others = others.filter(|name| is_replay(name));
        names.extend(others.map(str::to_owned));
    }
    names.sort();
    let old = names.len().saturating_sub(runs_max.saturating_sub(1));
    for name in &names[..old] {
        let folder = runs.join(name);
        if let Err(error) = RunFolder::remove(&folder) {
            tracing::warn!(folder = %folder.display(), %error, "cannot remove an older run");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use domain::strategy::{LogLevel, LogLine};

    use super::*;
    use crate::live::tests::shared;

    /// A strategy that writes a line and then refuses to start is told as one that did not start.
    #[test]
    fn a_line_of_the_log_begins_no_run() {
        let shared = shared();
        shared.lock().under_way = Some(UnderWay::Start);
        let line = LogLine { ts_event: None, level: LogLevel::Info, message: "here".to_owned() };
        ClientSink::new(&shared).take(Record::Log(&line)).unwrap();
        assert_eq!(shared.lock().under_way, Some(UnderWay::Start));
    }

    #[test]
    fn only_the_oldest_runs_are_removed_and_only_runs() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, file: &str, text: &str| {
            let run = folder.path().join(name);
            fs::create_dir_all(&run).unwrap();
            fs::write(run.join(file), text).unwrap();
        };
        let names: Vec<String> =
            (1..=5).map(|day| format!("2025010{day}T090000000Z-0123abcd")).collect();
        fs::create_dir(folder.path().join("20240101T090000000Z-0123abcd")).unwrap();
        for name in &names {
            make(name, "manifest.json", r#"{"manifest_version":1,"event_log_digest":"00"}"#);
        }
        make(&names[0], "thesis.txt", "mine");
        // On the live market: it stays and does not count.
        let live = "20250101T080000000Z-0123abcd";
        make(live, "manifest.json", r#"{"manifest_version":1,"event_log_digest":"00"}"#);
        make(live, STRATEGY_FILE, "");
        make("20240101T090000000Z-nothexxx", "manifest.json", "{}");
        make("other", "file", "");
        remove_oldest(folder.path(), 2, &names[2]).unwrap();
        let is_there = |name: &String| folder.path().join(name).exists();
        let left: Vec<bool> = names.iter().map(is_there).collect();
        assert_eq!(left, [true, false, true, false, true]);
        assert!(folder.path().join(live).exists());
        assert!(folder.path().join("other").exists());
        assert!(folder.path().join("20240101T090000000Z-0123abcd").exists(), "no run made it");
        assert!(is_run_id(&run_id(domain::TsNanos::from_nanos(1_736_121_600_123_456_000))));
    }
}
