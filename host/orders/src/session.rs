//! The session at the broker: where it stands, what its login said, whether the broker takes orders, and what
//! a login waits for before the venue is ready (specification 2, "Session and password states";
//! specification 4, P2, P3).

use std::sync::Arc;
use std::time::Duration;

use domain::order_mapping::VenuePhase;
use domain::{ReasonCode, Rejection};
use venues::Now;
use venues::web_broker::Masters;

use crate::event::{SessionFault, VenueStage};
use crate::limits::READY_TIME;

/// Where the session at the broker stands.
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

/// A login that the broker has taken.
#[derive(Debug)]
pub struct LoginDone {
    /// The account's tax code.
    pub account: String,
    /// Whether it has a margin account.
    pub has_margin: bool,
    /// Names of what changed against the login before, never values.
    pub changed: Vec<&'static str>,
    /// Whether the broker says in its masters that it is open; none where it does not say.
    pub is_open: Option<bool>,
    /// The day's masters; none where they could not be had.
    pub masters: Option<Arc<Masters>>,
}

/// A login that came to nothing.
#[derive(Debug)]
pub enum LoginFailed {
    /// There are no credentials.
    NoCredentials(String),
    /// The broker refuses, or cannot be reached.
    Failed {
        /// Why, in one line.
        why: String,
        /// Whether the session before goes on.
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
    /// The masters are there, and a list and the stream are waited for.
    is_waiting: bool,
    has_list: bool,
    since_ms: u64,
    /// The session began, and no fault has reported yet that list or stream do not come.
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

    /// The broker's masters, once a login gave them.
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

    /// Whether orders can be sent (specification 4, P23b).
    pub(crate) fn check_active(&self) -> Result<(), Rejection> {
        let text = match self.state {
            SessionState::Active => return Ok(()),
            SessionState::LoggedOut => "NOT_LOGGED_IN: log in at web_broker first",
            SessionState::Frozen => "FROZEN: the broker has ended the session; log in again",
        };
        Err(Rejection::new(ReasonCode::SessionExpired, text))
    }

    /// Whether the broker's masters are here, without which lots and price steps are unknown.
    pub(crate) fn check_masters(&self) -> Result<(), Rejection> {
        if self.masters.is_some() {
            return Ok(());
        }
        let text = "MASTER_MISSING: the engine got no masters from the broker; log in again";
        Err(Rejection::new(ReasonCode::InternalError, text))
    }

    /// Whether the broker says that it takes no orders (specification 4, P2).
    pub(crate) fn check_open(&self) -> Result<(), Rejection> {
        let is_closed = matches!(self.phase, VenuePhase::Closed | VenuePhase::NightClosing);
        if is_closed || self.is_closed_by_answer {
            let text = "VENUE_CLOSED: the broker says that it takes no orders now";
            return Err(Rejection::new(ReasonCode::MarketClosed, text));
        }
        Ok(())
    }

    /// The broker says by its stream whether it takes orders.
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

    /// A command waits for a login.
    pub(crate) fn wait_for_login(&mut self, request_id: Option<String>) {
        self.waiting_logins.push(request_id);
    }

    /// The commands that waited for a login, which wait no more.
    pub(crate) fn take_waiting_logins(&mut self) -> Vec<Option<String>> {
        std::mem::take(&mut self.waiting_logins)
    }

    /// A login begins, or ends.
    pub(crate) const fn login_moves(&mut self, now: Now) {
        self.since_ms = now.wall.millis();
    }

    /// The broker has taken a login; gives its number.
    pub(crate) fn begin(&mut self, done: &mut LoginDone) -> u64 {
        self.epoch += 1;
        self.state = SessionState::Active;
        // The newest word: frames and answers that come later take its place (P2).
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

    /// A list and the stream are waited for now.
    pub(crate) const fn wait_for_ready(&mut self, now: Now) {
        self.is_waiting = true;
        self.begun = Some(now.mono);
    }

    /// A login failed after which no session goes on; tells whether there was one.
    pub(crate) fn log_out(&mut self) -> bool {
        let was_active = self.state == SessionState::Active;
        if was_active {
            self.state = SessionState::LoggedOut;
        }
        was_active
    }

    /// The broker has ended the session; false where that is known.
    pub(crate) fn freeze(&mut self, now: Now) -> bool {
        if self.state == SessionState::Frozen {
            return false;
        }
        self.state = SessionState::Frozen;
        self.since_ms = now.wall.millis();
        true
    }

    /// The venue cannot be used.
    pub(crate) const fn set_fault(&mut self, fault: SessionFault) {
        self.fault = Some(fault);
        self.is_waiting = false;
    }

    /// A list of orders has come.
    pub(crate) const fn list_came(&mut self) {
        self.has_list = true;
    }

    /// What has not come for so long that it is reported, once for each login; the session keeps waiting.
    pub(crate) fn take_lateness(&mut self, now: Now) -> Option<&'static str> {
        let begun = self.begun.filter(|_| self.is_waiting)?;
        if now.mono.saturating_sub(begun) < READY_TIME {
            return None;
        }
        self.begun = None;
        self.waiting_logins.clear();
        Some(if self.has_list { "stream of events" } else { "list of orders" })
    }

    /// The session keeps waiting although a fault was reported.
    pub(crate) const fn wait_on(&mut self) {
        self.is_waiting = true;
    }

    /// The venue is ready once a list has come and the stream is up: gives the commands that waited for it,
    /// one without an id where there was none.
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
