//! The session at the broker: its state, its login's data, and whether the broker takes orders.
//!
//! It also has what a login waits for before the venue is ready (specification 2, "Session and password
//! states"; specification 4, P2 and P3).

use std::sync::Arc;
use std::time::Duration;

use domain::order_mapping::VenuePhase;
use domain::{ReasonCode, Rejection};
use venues::Now;
use venues::web_broker::Masters;

use crate::event::{SessionFault, VenueStage};
use crate::limits::READY_TIME;

/// State of the session at the broker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SessionState {
    /// No login yet.
    #[default]
    LoggedOut,
    /// Orders can be sent.
    Active,
    /// The broker has ended it; a login is needed.
    Frozen,
}

/// A login that the broker has accepted.
#[derive(Debug)]
pub struct LoginDone {
    /// The account's tax code.
    pub account: String,
    /// Whether it has a margin account.
    pub has_margin: bool,
    /// Names of what changed since the login before, never values.
    pub changed: Vec<&'static str>,
    /// Whether the broker's masters say that it is open; `None` if they do not say.
    pub is_open: Option<bool>,
    /// The day's masters; `None` if they could not be loaded.
    pub masters: Option<Arc<Masters>>,
}

/// A login that failed.
#[derive(Debug)]
pub enum LoginFailed {
    /// There are no credentials.
    NoCredentials(String),
    /// The broker refuses it, or cannot be reached.
    Failed {
        /// Why, in one line.
        why: String,
        /// Whether the earlier session goes on.
        has_session: bool,
    },
}

/// The session of one account.
#[derive(Debug)]
pub(crate) struct Session {
    state: SessionState,
    /// Logins in this process.
    epoch: u64,
    phase: VenuePhase,
    /// An answer said that the venue is closed, which holds until another one shows that it is not.
    is_closed_by_answer: bool,
    /// The login's own account, in the broker's code.
    account: String,
    has_margin: bool,
    masters: Option<Arc<Masters>>,
    /// The commands that wait for a login; empty where none is under way.
    waiting_logins: Vec<Option<String>>,
    /// The masters are loaded; a list and the stream are awaited.
    is_waiting: bool,
    has_list: bool,
    since_ms: u64,
    /// When the session began; `None` once a missing list or stream was reported.
    begun: Option<Duration>,
    fault: Option<SessionFault>,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            state: SessionState::default(),
            epoch: 0,
            phase: VenuePhase::Unknown,
            is_closed_by_answer: false,
            account: String::new(),
            has_margin: true,
            masters: None,
            waiting_logins: Vec::new(),
            is_waiting: false,
            has_list: false,
            since_ms: 0,
            begun: None,
            fault: None,
        }
    }
}

impl Session {
    pub(crate) const fn state(&self) -> SessionState {
        self.state
    }

    /// The broker's masters, once a login has loaded them.
    pub(crate) fn masters(&self) -> Option<&Masters> {
        self.masters.as_deref()
    }

    /// The login's own account, in the broker's code.
    pub(crate) fn account(&self) -> &str {
        &self.account
    }

    /// Whether the login has a margin account.
    pub(crate) const fn has_margin(&self) -> bool {
        self.has_margin
    }

    pub(crate) const fn since_ms(&self) -> u64 {
        self.since_ms
    }

    pub(crate) const fn last_fault(&self) -> Option<SessionFault> {
        self.fault
    }

    /// Checks that orders can be sent (specification 4, P23b).
    pub(crate) fn check_active(&self) -> Result<(), Rejection> {
        let text = match self.state {
            SessionState::Active => return Ok(()),
            SessionState::LoggedOut => "NOT_LOGGED_IN: log in at web_broker first",
            SessionState::Frozen => "FROZEN: the broker has ended the session; log in again",
        };
        Err(Rejection::new(ReasonCode::SessionExpired, text))
    }

    /// Checks that the broker's masters are loaded: without them lots and price steps are unknown.
    pub(crate) fn check_masters(&self) -> Result<(), Rejection> {
        if self.masters.is_some() {
            return Ok(());
        }
        let text = "MASTER_MISSING: the engine got no masters from the broker; log in again";
        Err(Rejection::new(ReasonCode::InternalError, text))
    }

    /// Checks that the broker takes orders (specification 4, P2).
    pub(crate) fn check_open(&self) -> Result<(), Rejection> {
        let is_closed = matches!(self.phase, VenuePhase::Closed | VenuePhase::NightClosing);
        if is_closed || self.is_closed_by_answer {
            let text = "VENUE_CLOSED: the broker says that it takes no orders now";
            return Err(Rejection::new(ReasonCode::MarketClosed, text));
        }
        Ok(())
    }

    /// The broker's stream says whether it takes orders.
    pub(crate) fn set_phase(&mut self, phase: VenuePhase) {
        if phase != self.phase {
            tracing::info!(?phase, "the broker says whether it takes orders");
        }
        self.phase = phase;
        self.is_closed_by_answer = false;
    }

    /// An answer says that the venue is closed, or shows that it is not.
    pub(crate) const fn set_closed_by_answer(&mut self, is_closed: bool) {
        self.is_closed_by_answer = is_closed;
    }

    pub(crate) const fn is_closed_by_answer(&self) -> bool {
        self.is_closed_by_answer
    }

    /// Adds a command that waits for a login.
    pub(crate) fn wait_for_login(&mut self, request_id: Option<String>) {
        self.waiting_logins.push(request_id);
    }

    /// Takes the commands that waited for a login.
    pub(crate) fn take_waiting_logins(&mut self) -> Vec<Option<String>> {
        std::mem::take(&mut self.waiting_logins)
    }

    /// A login begins, or ends.
    pub(crate) const fn login_moves(&mut self, now: Now) {
        self.since_ms = now.wall.millis();
    }

    /// Begins the session of an accepted login; returns its number.
    pub(crate) fn begin(&mut self, done: &mut LoginDone) -> u64 {
        self.epoch += 1;
        self.state = SessionState::Active;
        // The newest information: later frames and answers replace it (P2).
        self.phase = match done.is_open {
            Some(true) => VenuePhase::Open,
            Some(false) => VenuePhase::Closed,
            None => VenuePhase::Unknown,
        };
        self.is_closed_by_answer = false;
        self.account = std::mem::take(&mut done.account);
        self.has_margin = done.has_margin;
        if done.masters.is_some() {
            self.masters = done.masters.take();
        }
        self.fault = None;
        self.has_list = false;
        self.epoch
    }

    /// Awaits a list and the stream from now on.
    pub(crate) const fn wait_for_ready(&mut self, now: Now) {
        self.is_waiting = true;
        self.begun = Some(now.mono);
    }

    /// Ends the session after a login that failed; returns whether there was one.
    pub(crate) fn log_out(&mut self) -> bool {
        let was_active = self.state == SessionState::Active;
        if was_active {
            self.state = SessionState::LoggedOut;
        }
        was_active
    }

    /// The broker has ended the session; returns false if that is known already.
    pub(crate) fn freeze(&mut self, now: Now) -> bool {
        if self.state == SessionState::Frozen {
            return false;
        }
        self.state = SessionState::Frozen;
        self.since_ms = now.wall.millis();
        true
    }

    /// Notes why the venue cannot be used.
    pub(crate) const fn set_fault(&mut self, fault: SessionFault) {
        self.fault = Some(fault);
        self.is_waiting = false;
    }

    /// Notes that a list of orders has arrived.
    pub(crate) const fn list_came(&mut self) {
        self.has_list = true;
    }

    /// What is still missing after too long, once for each login; the session goes on waiting.
    pub(crate) fn take_lateness(&mut self, now: Now) -> Option<&'static str> {
        let begun = self.begun.filter(|_| self.is_waiting)?;
        if now.mono.saturating_sub(begun) < READY_TIME {
            return None;
        }
        self.begun = None;
        self.waiting_logins.clear();
        Some(if self.has_list { "stream of events" } else { "list of orders" })
    }

    /// Goes on waiting after a fault was reported.
    pub(crate) const fn wait_on(&mut self) {
        self.is_waiting = true;
    }

    /// Once a list has arrived and the stream is up, returns the commands that waited. If there was none, it
    /// returns one without an id.
    pub(crate) fn take_readiness(
        &mut self,
        has_stream: bool,
        now: Now,
    ) -> Option<Vec<Option<String>>> {
        if !self.is_waiting || !self.has_list || !has_stream {
            return None;
        }
        self.is_waiting = false;
        self.since_ms = now.wall.millis();
        self.fault = None;
        let waiting = self.take_waiting_logins();
        Some(if waiting.is_empty() { vec![None] } else { waiting })
    }

    /// How far the login is.
    pub(crate) const fn stage(&self) -> VenueStage {
        match self.state {
            _ if !self.waiting_logins.is_empty() => VenueStage::LoggingIn,
            SessionState::Active if self.is_waiting => VenueStage::LoggingIn,
            SessionState::LoggedOut => VenueStage::LoggedOut,
            SessionState::Active => VenueStage::Ready,
            SessionState::Frozen => VenueStage::Expired,
        }
    }
}
