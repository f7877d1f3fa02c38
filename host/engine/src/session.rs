//! The session: where it stands, what is loaded, and the present run. Every event goes out
//! under one lock, in the order in which it happened.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::clock::Stopwatch;
use domain::{InstrumentId, JstDate, Money, OrderRecord, Quantity, TsNanos};
use ipc::{
    ClientConnected, EngineBusy, EngineError, Error, Event, Granularity, LastRun, LoadedInstrument,
    RunEnd, Session, SessionState, SubmittedOrder, Text,
};
use replay::RunCommand;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::ACCOUNT;
use crate::hub::{ClientId, Hub};
use crate::ledger::{ListFilter, RequestContext};
use crate::limits::{ABANDONED_AFTER, LASTING_ERRORS_MAX, LIST_ROWS_MAX};
use crate::live::Venues;
use crate::outbox::Outbox;
use crate::run::Run;
use crate::startup::EngineConfig;

/// What the threads of the engine share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: EngineConfig,
    /// Name of this process.
    pub(crate) engine_session_id: String,
    pub(crate) started: Stopwatch,
    /// The engine is to end.
    pub(crate) shutdown: CancellationToken,
    /// The present run is being ended: heard before every row, whatever else waits for the run.
    pub(crate) is_stopping: Arc<AtomicBool>,
    /// The venues, in live mode.
    pub(crate) live: Venues,
    core: Mutex<Core>,
}

/// What is under way beside the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnderWay {
    /// Data are being read.
    Load,
    /// A strategy is being compiled and started.
    Start,
}

/// What is loaded of one instrument.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    pub(crate) id: InstrumentId,
    pub(crate) name: String,
    pub(crate) start: JstDate,
    pub(crate) end: JstDate,
    pub(crate) granularity: Granularity,
    /// Shares in a trading unit on the first day.
    pub(crate) lot: Quantity,
    /// Trades or bars of each date that has any.
    pub(crate) rows: Vec<(JstDate, u64)>,
}

impl Loaded {
    /// Trades or bars between two dates.
    pub(crate) fn rows_between(&self, first: JstDate, last: JstDate) -> u64 {
        let inside = self.rows.iter().filter(|(date, _)| (first..=last).contains(date));
        inside.map(|(_, rows)| rows).sum()
    }

    /// Trades and bars.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let rows = self.rows_between(self.start, self.end);
        if self.granularity == Granularity::Trade { (rows, 0) } else { (0, rows) }
    }
}

/// A run that is over.
#[derive(Debug, Clone)]
pub(crate) struct EndedRun {
    pub(crate) run_id: String,
    pub(crate) run_dir: PathBuf,
    pub(crate) final_equity: Money,
    pub(crate) status: RunEnd,
    /// The code and the words of what went wrong.
    pub(crate) fault: Option<(&'static str, String)>,
}

/// What is behind the lock.
#[derive(Debug)]
pub(crate) struct Core {
    is_stopping: Arc<AtomicBool>,
    pub(crate) hub: Hub,
    pub(crate) state: SessionState,
    pub(crate) under_way: Option<UnderWay>,
    pub(crate) loaded: Vec<Loaded>,
    /// Loads so far.
    pub(crate) epoch: u64,
    /// When the last client left, as time since the engine's start; a later one may have come.
    left_alone: Option<std::time::Duration>,
    /// The present run, or the one that ended last until other data are loaded.
    pub(crate) run: Option<Run>,
    /// How the last run ended. It stays when other data are loaded.
    pub(crate) last_run: Option<EndedRun>,
    /// Errors that last: all clients got them, and each client that joins gets them too. The newest
    /// [`LASTING_ERRORS_MAX`].
    lasting: VecDeque<EngineError<'static>>,
}

impl Shared {
    pub(crate) fn new(config: EngineConfig, shutdown: CancellationToken) -> Self {
        let is_stopping = Arc::new(AtomicBool::new(false));
        let core = Core {
            is_stopping: Arc::clone(&is_stopping),
            hub: Hub::default(),
            state: SessionState::Idle,
            under_way: None,
            loaded: Vec::new(),
            epoch: 0,
            left_alone: None,
            run: None,
            last_run: None,
            lasting: VecDeque::new(),
        };
        Self {
            config,
            engine_session_id: Uuid::new_v4().to_string(),
            started: Stopwatch::start(),
            shutdown,
            is_stopping,
            live: Venues::default(),
            core: Mutex::new(core),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client has shown that it may connect; `welcome` makes the first message for it.
    pub(crate) fn join(
        &self,
        outbox: &Arc<Outbox>,
        welcome: impl FnOnce(SessionState) -> Event<'static>,
    ) -> Option<ClientId> {
        let mut core = self.lock();
        if core.hub.count() >= crate::limits::CLIENTS_MAX {
            return None;
        }
        let id = core.hub.join(Arc::clone(outbox));
        let ready = welcome(core.state);
        core.hub.tell(id, &ready);
        for error in &core.lasting {
            core.hub.tell(id, &Event::EngineError(error.clone()));
        }
        core.tell_count();
        Some(id)
    }

    /// A client is gone.
    pub(crate) fn leave(self: &Arc<Self>, id: ClientId) {
        let mut core = self.lock();
        if !core.hub.leave(id) {
            return;
        }
        core.tell_count();
        self.live.client_left(id);
        if core.hub.count() > 0 || self.config.standalone {
            return;
        }
        let joined = core.hub.joined();
        core.left_alone = Some(self.started.elapsed());
        drop(core);
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(ABANDONED_AFTER).await;
            let mut core = shared.lock();
            if core.hub.count() == 0 && core.hub.joined() == joined {
                core.stop_run(None);
            }
        });
    }
}

impl Core {
    fn tell_count(&mut self) {
        let count = u32::try_from(self.hub.count()).unwrap_or(u32::MAX);
        self.hub.tell_all(&Event::ClientConnected(ClientConnected { count }));
    }

    /// Tells every client what went wrong and stays so until the engine ends, also those that come later.
    pub(crate) fn tell_lasting(&mut self, error: EngineError<'static>) {
        self.hub.tell_all(&Event::EngineError(error.clone()));
        if self.lasting.len() == LASTING_ERRORS_MAX {
            self.lasting.pop_front();
        }
        self.lasting.push_back(error);
    }

    /// Tells every client that is there what went wrong.
    pub(crate) fn tell_error(&mut self, error: EngineError<'static>) {
        self.hub.tell_all(&Event::EngineError(error));
    }

    /// The session's state as clients see it.
    pub(crate) const fn state(&self) -> SessionState {
        self.state
    }

    /// Whether a run is under way, be it that it is being ended.
    pub(crate) const fn is_live(&self) -> bool {
        matches!(self.state, SessionState::Running | SessionState::Stopping)
    }

    /// Whether the engine has been without a client for so long that no run is to go on.
    pub(crate) fn is_abandoned(&self, now: std::time::Duration) -> bool {
        let left = self.left_alone.filter(|_| self.hub.count() == 0);
        left.is_some_and(|left| now.saturating_sub(left) >= ABANDONED_AFTER)
    }

    /// Ends the run, if one runs. Tells whether one did.
    pub(crate) fn stop_run(&mut self, asked: Option<RequestContext>) -> bool {
        if self.state != SessionState::Running {
            return false;
        }
        let Some(run) = &mut self.run else { return false };
        run.stop = asked;
        // A run that is over takes no more.
        let _ = run.setup.commands.send(RunCommand::Stop);
        self.state = SessionState::Stopping;
        self.is_stopping.store(true, Ordering::Relaxed);
        true
    }

    /// Whether nothing runs or is being read.
    pub(crate) fn is_quiet(&self) -> bool {
        !self.is_live() && self.under_way.is_none()
    }

    /// Refuses a command as one that does not fit the state.
    pub(crate) fn busy(&self, to: &Refusing<'_>, reason: &str) {
        // It was right but for the time, so it is no error of the client.
        self.hub.tell(to.client, &self.busy_event(to, reason));
    }

    /// The same as an event.
    pub(crate) fn busy_event<'a>(&self, to: &Refusing<'a>, reason: &'a str) -> Event<'a> {
        Event::EngineBusy(EngineBusy {
            request_id: to.request_id.map(Text::Borrowed),
            current_state: self.state(),
            attempted_command: Text::Borrowed(to.op),
            reason: Text::Borrowed(reason),
            venue: to.venue.map(Text::Borrowed),
        })
    }

    /// Refuses a command with a code.
    pub(crate) fn error(&mut self, to: &Refusing<'_>, code: &str, message: &str) {
        let event = Event::Error(Error {
            request_id: to.request_id.map(Text::Borrowed),
            code: Text::Borrowed(code),
            message: Text::Borrowed(message),
            venue_order_id: None,
        });
        self.hub.refuse(to.client, &event, to.now);
    }

    /// The same for what is the engine's or the strategy's.
    pub(crate) fn engine_error(
        &mut self,
        to: &Refusing<'_>,
        code: &str,
        message: &str,
        strategy_id: Option<&str>,
    ) {
        let event = Event::EngineError(EngineError {
            request_id: to.request_id.map(Text::Borrowed),
            code: Text::Borrowed(code),
            message: Text::Borrowed(message),
            strategy_id: strategy_id.map(Text::Borrowed),
        });
        self.hub.refuse(to.client, &event, to.now);
    }

    /// Everything that a client has to know.
    pub(crate) fn session<'a>(&'a self, request_id: &'a str) -> Session<'a> {
        let run = self.run.as_ref();
        let live = run.filter(|_| self.is_live());
        let text = |text: fn(&Run) -> &str| live.map(|run| Text::Borrowed(text(run)));
        let money = |amount: fn(&Run) -> Money| run.map(|run| amount(run).into());
        let orders = run.map(|run| {
            let filter = ListFilter::default();
            newest(run.orders.numbered(), |record| {
                filter.row(record, run.instrument(record.request.instrument))
            })
        });
        let orders_submitted = run.map(|run| {
            newest(run.orders.unnumbered(), |record| {
                SubmittedOrder::of_record(record, run.instrument(record.request.instrument))
            })
        });
        Session {
            request_id: Text::Borrowed(request_id),
            state: self.state(),
            run_id: text(|run| &run.setup.run_id),
            strategy_id: text(|run| &run.setup.strategy_id),
            account_id: live.map(|_| ACCOUNT.into()),
            instruments: self.loaded.iter().map(Loaded::instrument).collect(),
            multiplier: live.map(|run| run.setup.multiplier),
            ts_event_ms: run.map(|run| run.now.millis()),
            rows_done: run.map_or(0, |run| run.rows_done),
            rows_total: run.map_or(0, |run| run.setup.rows_total),
            start_date: run.map(|run| Text::Owned(run.setup.dates.0.to_string())),
            end_date: run.map(|run| Text::Owned(run.setup.dates.1.to_string())),
            execution: run.and_then(|run| run.execution.clone()),
            initial_cash: money(|run| run.setup.cash),
            cash: money(Run::cash),
            buying_power: money(Run::cash),
            equity: money(Run::equity),
            orders: orders.unwrap_or_default(),
            orders_submitted: orders_submitted.unwrap_or_default(),
            executions: run.map(Run::executions).unwrap_or_default(),
            signals: run.map(Run::signals).unwrap_or_default(),
            positions: run.map(|run| run.positions(None).positions).unwrap_or_default(),
            last_bars: run.map(Run::last_bars).unwrap_or_default(),
            last_trades: run.map(Run::last_trades).unwrap_or_default(),
            last_run: self.last_run.as_ref().map(|run| LastRun {
                run_id: Text::Borrowed(&run.run_id),
                run_dir: run.run_dir.to_string_lossy(),
                final_equity: run.final_equity.into(),
                status: run.status,
                fault: run.fault.as_ref().map(crate::start::run_fault),
            }),
            sequence: self.hub.sequence(),
        }
    }

    /// The virtual time: that of the run, or of the first day that is loaded; zero before that.
    pub(crate) fn now(&self) -> TsNanos {
        let first = self.loaded.iter().map(|loaded| loaded.start).min();
        let loaded = first.map(crate::ledger::midnight).unwrap_or_default();
        self.run.as_ref().map_or(loaded, |run| run.now)
    }
}

/// The rows of the newest orders, the oldest of them first.
fn newest<'a, R>(
    records: impl DoubleEndedIterator<Item = &'a OrderRecord>,
    row: impl Fn(&'a OrderRecord) -> Option<R>,
) -> Vec<R> {
    let mut rows: Vec<R> = records.rev().take(LIST_ROWS_MAX).filter_map(row).collect();
    rows.reverse();
    rows
}

impl Loaded {
    fn instrument(&self) -> LoadedInstrument<'_> {
        let (trades_loaded, bars_loaded) = self.counts();
        LoadedInstrument {
            instrument_id: Text::Borrowed(&self.name),
            start_date: Text::Owned(self.start.to_string()),
            end_date: Text::Owned(self.end.to_string()),
            granularity: self.granularity,
            trades_loaded,
            bars_loaded,
        }
    }
}

/// The command that is being answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refusing<'a> {
    pub(crate) client: ClientId,
    pub(crate) op: &'a str,
    pub(crate) request_id: Option<&'a str>,
    /// The venue that it names.
    pub(crate) venue: Option<&'a str>,
    /// Time since the engine's start.
    pub(crate) now: std::time::Duration,
}
