//! The session: where it stands, what is loaded, and the present run. Every event goes out
//! under one lock, in the order in which it happened.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::clock::Stopwatch;
use domain::{InstrumentId, JstDate, Money, Price, Quantity, TickTable, TsNanos};
use ipc::{Event, Granularity, RunEnd, SessionState};
use live::notify::Notifier;
use replay::MarketSeries;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::console::{Page, Pages};
use crate::history::{LivePast, Past};
use crate::hub::{ClientId, Hub};
use crate::ledger::RequestContext;
use crate::limits::{ABANDONED_AFTER, FORMS_AT_ONCE, LASTING_ERRORS_MAX};
use crate::live::Venues;
use crate::outbox::Outbox;
use crate::present::session as present;
use crate::run::{Run, RunKind};
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
    /// The present run is to end. The run checks it before every row, before all commands that wait.
    pub(crate) is_stopping: Arc<AtomicBool>,
    /// The venues, in live mode.
    pub(crate) live: Venues,
    /// Passes on what a person has to know.
    pub(crate) notifier: Notifier,
    /// Pages in the browser.
    pub(crate) pages: Pages,
    /// Places for questions of forms that are answered on threads of their own.
    pub(crate) form_places: Arc<Semaphore>,
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
    /// Its price steps on the first day.
    pub(crate) ticks: TickTable,
    /// The last price before the first day, where one was found.
    pub(crate) base_price: Option<Price>,
    /// Trades or bars of each date that has any.
    pub(crate) rows: Vec<(JstDate, u64)>,
    /// The rows, in the cache.
    pub(crate) series: Arc<MarketSeries>,
}

impl Loaded {
    /// Trades or bars between two dates.
    pub(crate) fn rows_between(&self, first: JstDate, last: JstDate) -> u64 {
        let inside = self.rows.iter().filter(|(date, _)| (first..=last).contains(date));
        inside.map(|(_, rows)| rows).sum()
    }

    /// The rows of a run over these dates.
    pub(crate) fn past(&self, (first, last): (JstDate, JstDate)) -> Past {
        let inside = self.rows.iter().filter(|(date, _)| (first..=last).contains(date));
        Past {
            series: Arc::clone(&self.series),
            rows: inside.copied().collect(),
            base_price: self.base_price.filter(|_| self.start == first),
        }
    }

    /// Trades and bars.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let rows = self.rows_between(self.start, self.end);
        if self.granularity == Granularity::Trade { (rows, 0) } else { (0, rows) }
    }

    /// Trades and bars of several instruments.
    pub(crate) fn counts_of(all: &[Self]) -> (u64, u64) {
        let counts = all.iter().map(Self::counts);
        counts.fold((0, 0), |(trades, bars), (more, other)| (trades + more, bars + other))
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
    /// What was traded on the live market of the tickers that clients want.
    pub(crate) live_past: LivePast,
    /// How the last run ended. It stays when other data are loaded.
    pub(crate) last_run: Option<EndedRun>,
    /// Errors that last: all clients got them, and each client that joins gets them too. The newest
    /// [`LASTING_ERRORS_MAX`].
    lasting: VecDeque<Event<'static>>,
}

impl Shared {
    pub(crate) fn new(
        config: EngineConfig,
        notifier: Notifier,
        shutdown: CancellationToken,
    ) -> Self {
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
            live_past: LivePast::default(),
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
            notifier,
            pages: Pages::default(),
            form_places: Arc::new(Semaphore::new(FORMS_AT_ONCE)),
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
        page: Option<Page>,
        welcome: impl FnOnce(SessionState) -> Event<'static>,
    ) -> Option<ClientId> {
        let mut core = self.lock();
        // Pages leave room for programs: one of these may have to stop a strategy.
        if core.hub.count_of(page.is_some()) >= crate::limits::CLIENTS_MAX {
            return None;
        }
        let id = core.hub.join(Arc::clone(outbox), page);
        let ready = welcome(core.state);
        core.hub.send(id, &ready);
        for error in &core.lasting {
            core.hub.send(id, error);
        }
        core.broadcast_count();
        Some(id)
    }

    /// A client is gone.
    pub(crate) fn leave(self: &Arc<Self>, id: ClientId) {
        let mut core = self.lock();
        if !core.hub.leave(id) {
            return;
        }
        core.broadcast_count();
        core.forget_past();
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
    fn broadcast_count(&mut self) {
        self.hub.broadcast(&present::client_count(self.hub.count()));
    }

    /// Sends an error that lasts until the engine ends to all clients, also to those that come later.
    pub(crate) fn broadcast_lasting(&mut self, error: Event<'static>) {
        self.hub.broadcast(&error);
        if self.lasting.len() == LASTING_ERRORS_MAX {
            self.lasting.pop_front();
        }
        self.lasting.push_back(error);
    }

    /// The session's state as clients see it.
    pub(crate) const fn state(&self) -> SessionState {
        self.state
    }

    /// Whether a run is under way, be it that it is being ended.
    pub(crate) const fn is_live(&self) -> bool {
        matches!(self.state, SessionState::Running | SessionState::Stopping)
    }

    /// The strategy of the run that is under way, be it that it is being ended.
    pub(crate) fn running_strategy(&self) -> Option<&str> {
        self.run.as_ref().filter(|_| self.is_live()).map(|run| &*run.setup.strategy_id)
    }

    /// Whether a run with real orders is under way.
    pub(crate) fn is_trading(&self) -> bool {
        self.is_live() && self.run.as_ref().is_some_and(|run| run.setup.kind == RunKind::Real)
    }

    /// Whether the engine has been without a client for so long that no run is to go on.
    pub(crate) fn is_abandoned(&self, now: std::time::Duration) -> bool {
        let left = self.left_alone.filter(|_| self.hub.count() == 0);
        left.is_some_and(|left| now.saturating_sub(left) >= ABANDONED_AFTER)
    }

    /// Whether anybody wants market data of a ticker: a client, or the strategy that runs.
    pub(crate) fn wants(&self, ticker: &str) -> bool {
        let is_traded = |run: &Run| run.markets.iter().any(|market| market.head.ticker == ticker);
        self.hub.is_wanted(ticker) || (self.is_live() && self.run.as_ref().is_some_and(is_traded))
    }

    /// Forgets what was traded of tickers that nobody wants any more: no later row would join it.
    pub(crate) fn forget_past(&mut self) {
        let mut past = std::mem::take(&mut self.live_past);
        past.retain(|ticker| self.wants(ticker));
        self.live_past = past;
    }

    /// Ends the run, if one runs. Tells whether one did.
    pub(crate) fn stop_run(&mut self, request: Option<RequestContext>) -> bool {
        if self.state != SessionState::Running {
            return false;
        }
        let Some(run) = &mut self.run else { return false };
        run.stop = request;
        run.setup.control.stop();
        self.state = SessionState::Stopping;
        self.is_stopping.store(true, Ordering::Relaxed);
        true
    }

    /// Whether nothing runs or is being read.
    pub(crate) fn is_quiet(&self) -> bool {
        !self.is_live() && self.under_way.is_none()
    }

    /// Refuses a command as one that does not fit the state.
    pub(crate) fn busy(&self, to: &CommandContext<'_>, reason: &str) {
        // It was right but for the time, so it is no error of the client.
        self.hub.send(to.client, &self.busy_event(to, reason));
    }

    /// The same as an event.
    pub(crate) fn busy_event<'a>(&self, to: &CommandContext<'a>, reason: &'a str) -> Event<'a> {
        present::busy(to, self.state(), reason)
    }

    /// Refuses a command with a code.
    pub(crate) fn error(&mut self, to: &CommandContext<'_>, code: &str, message: &str) {
        let event = present::error(to.request_id, code, message, None);
        self.hub.refuse(to.client, &event, to.now);
    }

    /// The same for what is the engine's or the strategy's.
    pub(crate) fn engine_error(
        &mut self,
        to: &CommandContext<'_>,
        code: &str,
        message: &str,
        strategy_id: Option<&str>,
    ) {
        let event = present::engine_error(to.request_id, code, message, strategy_id);
        self.hub.refuse(to.client, &event, to.now);
    }

    /// The virtual time: that of the run, or of the first day that is loaded; zero before that.
    pub(crate) fn now(&self) -> TsNanos {
        let first = self.loaded.iter().map(|loaded| loaded.start).min();
        let loaded = first.map(crate::ledger::midnight).unwrap_or_default();
        self.run.as_ref().map_or(loaded, |run| run.now)
    }
}

/// The command that is being answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandContext<'a> {
    pub(crate) client: ClientId,
    pub(crate) op: &'static str,
    pub(crate) request_id: Option<&'a str>,
    /// The venue that it names.
    pub(crate) venue: Option<&'a str>,
    /// Time since the engine's start.
    pub(crate) now: std::time::Duration,
}

impl CommandContext<'_> {
    /// The command and its client, for answers that come later.
    pub(crate) fn request(&self) -> RequestContext {
        let request_id = self.request_id.unwrap_or_default().to_owned();
        RequestContext { client: self.client, request_id }
    }

    /// The same for a venue.
    pub(crate) fn venue_request(&self) -> venues::RequestContext {
        let RequestContext { client, request_id } = self.request();
        venues::RequestContext { client: client.number(), request_id }
    }
}
