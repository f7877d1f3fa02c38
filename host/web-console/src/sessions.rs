//! One-time codes, the sessions that they begin, and one-time addresses of reports.
//!
//! - A code is good once, and for [`CODE_TIME`].
//! - A session ends by its sign-out, or [`SESSION_TIME`] after its last connection has ended.
//! - Of more than [`SESSIONS_MAX`] sessions the one goes that has been without a connection for longest.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::Secret;
use domain::clock::Stopwatch;
use serde::Serialize;

use crate::random::random_hex;

/// How long a code or an address of a report is good.
pub const CODE_TIME: Duration = Duration::from_secs(60);
/// How long a session stays without a connection.
const SESSION_TIME: Duration = Duration::from_secs(12 * 3_600);
/// Sessions at the same time.
pub const SESSIONS_MAX: usize = 8;
/// Connections of one session: tabs of a copied page, and those of a reload that are not gone yet.
const CONNECTIONS_MAX: usize = 4;
/// Codes, and addresses of reports, that are good at the same time; with more the oldest goes.
const CODES_MAX: usize = 64;

/// What a page may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// All that a client may do, but open another page or end the engine.
    Full,
    /// Look.
    ReadOnly,
}

/// What a page shows to the engine.
#[derive(Debug, Clone)]
pub struct SessionKey {
    /// Its name.
    pub session_id: String,
    /// The key of its proofs.
    pub key: Secret,
    /// What it may do.
    pub scope: Scope,
}

#[derive(Debug)]
struct Session {
    key: Secret,
    scope: Scope,
    connections: usize,
    /// When it was last connected, or began.
    seen: Duration,
}

#[derive(Debug, Default)]
struct State {
    /// By the code: when it was made, and what it opens.
    codes: BTreeMap<String, (Duration, Scope)>,
    reports: BTreeMap<String, (Duration, PathBuf)>,
    sessions: BTreeMap<String, Session>,
}

/// Who may come in.
#[derive(Debug)]
pub struct Sessions {
    clock: Stopwatch,
    state: Mutex<State>,
}

impl Default for Sessions {
    fn default() -> Self {
        Self { clock: Stopwatch::start(), state: Mutex::default() }
    }
}

/// Adds what is good once. Forgets what is no longer good, and the oldest where there are too many.
fn put<T>(all: &mut BTreeMap<String, (Duration, T)>, now: Duration, what: T) -> String {
    all.retain(|_, (made, _)| now.saturating_sub(*made) < CODE_TIME);
    while all.len() >= CODES_MAX
        && let Some(oldest) = all.iter().min_by_key(|(_, (made, _))| *made)
    {
        let oldest = oldest.0.clone();
        all.remove(&oldest);
    }
    let code = random_hex();
    all.insert(code.clone(), (now, what));
    code
}

/// Takes what is good once.
fn take<T>(all: &mut BTreeMap<String, (Duration, T)>, now: Duration, code: &str) -> Option<T> {
    let (made, what) = all.remove(code)?;
    (now.saturating_sub(made) < CODE_TIME).then_some(what)
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing is left half done under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A code that opens one page.
    pub fn code(&self, scope: Scope) -> String {
        self.code_at(scope, self.clock.elapsed())
    }

    fn code_at(&self, scope: Scope, now: Duration) -> String {
        put(&mut self.lock().codes, now, scope)
    }

    /// The last part of an address that shows a report once.
    pub fn report(&self, file: PathBuf) -> String {
        put(&mut self.lock().reports, self.clock.elapsed(), file)
    }

    /// The file of such an address, once.
    pub(crate) fn take_report(&self, code: &str) -> Option<PathBuf> {
        take(&mut self.lock().reports, self.clock.elapsed(), code)
    }

    /// Begins a session by its code, once.
    ///
    /// # Errors
    /// [`NoSession`]
    pub(crate) fn begin(&self, code: &str) -> Result<SessionKey, NoSession> {
        self.begin_at(code, self.clock.elapsed())
    }

    fn begin_at(&self, code: &str, now: Duration) -> Result<SessionKey, NoSession> {
        let mut state = self.lock();
        let scope = take(&mut state.codes, now, code).ok_or(NoSession::WrongCode)?;
        state.forget_old(now);
        if state.sessions.len() >= SESSIONS_MAX {
            let idle = state.sessions.iter().filter(|(_, session)| session.connections == 0);
            let longest = idle.min_by_key(|(_, session)| session.seen).map(|(id, _)| id.clone());
            let longest = longest.ok_or(NoSession::TooMany)?;
            state.sessions.remove(&longest);
        }
        let (session_id, key) = (random_hex(), Secret::from(random_hex()));
        let session = Session { key: key.clone(), scope, connections: 0, seen: now };
        state.sessions.insert(session_id.clone(), session);
        Ok(SessionKey { session_id, key, scope })
    }

    /// The key of a session that goes on.
    pub fn find(&self, session_id: &str) -> Option<SessionKey> {
        self.find_at(session_id, self.clock.elapsed())
    }

    fn find_at(&self, session_id: &str, now: Duration) -> Option<SessionKey> {
        let mut state = self.lock();
        state.forget_old(now);
        let Session { key, scope, .. } = state.sessions.get(session_id)?;
        Some(SessionKey { session_id: session_id.to_owned(), key: key.clone(), scope: *scope })
    }

    /// A connection of a session has begun. False: the session has ended meanwhile, or has enough of them.
    pub fn connected(&self, session_id: &str) -> bool {
        let mut state = self.lock();
        let Some(session) = state.sessions.get_mut(session_id) else { return false };
        if session.connections >= CONNECTIONS_MAX {
            return false;
        }
        session.connections += 1;
        true
    }

    /// A connection of a session has ended.
    pub fn disconnected(&self, session_id: &str) {
        let now = self.clock.elapsed();
        if let Some(session) = self.lock().sessions.get_mut(session_id) {
            session.connections = session.connections.saturating_sub(1);
            session.seen = now;
        }
    }

    /// Ends a session.
    pub fn sign_out(&self, session_id: &str) {
        self.lock().sessions.remove(session_id);
    }
}

impl State {
    fn forget_old(&mut self, now: Duration) {
        self.sessions.retain(|_, session| {
            session.connections > 0 || now.saturating_sub(session.seen) < SESSION_TIME
        });
    }
}

/// Why a session does not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoSession {
    /// The code is wrong, used, or too old.
    WrongCode,
    /// All sessions are connected.
    TooMany,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn c2_a_code_is_good_once_and_for_a_minute() {
        let sessions = Sessions::default();
        let code = sessions.code_at(Scope::Full, Duration::ZERO);
        assert_eq!(code.len(), 64);
        let begun = sessions.begin_at(&code, CODE_TIME - SECOND).unwrap();
        assert_eq!(sessions.begin_at(&code, SECOND).unwrap_err(), NoSession::WrongCode);
        assert_eq!(sessions.find(&begun.session_id).unwrap().key.expose(), begun.key.expose());
        let old = sessions.code_at(Scope::Full, Duration::ZERO);
        assert_eq!(sessions.begin_at(&old, CODE_TIME).unwrap_err(), NoSession::WrongCode);
        assert_eq!(sessions.begin_at("guess", SECOND).unwrap_err(), NoSession::WrongCode);
    }

    #[test]
    fn c2_the_ninth_session_ends_the_one_unconnected_longest() {
        let sessions = Sessions::default();
        let begin = |second: u32| {
            let code = sessions.code_at(Scope::ReadOnly, SECOND * second);
            sessions.begin_at(&code, SECOND * second)
        };
        let all: Vec<_> = (0..8).map(|second| begin(second).unwrap()).collect();
        assert!(sessions.connected(&all[0].session_id));
        begin(8).unwrap();
        let is_there = |number: usize| sessions.find_at(&all[number].session_id, SECOND).is_some();
        assert!(is_there(0) && !is_there(1) && is_there(2));
        assert_eq!(sessions.lock().sessions.len(), SESSIONS_MAX);
        let ids: Vec<String> = sessions.lock().sessions.keys().cloned().collect();
        for id in &ids {
            sessions.connected(id);
        }
        assert_eq!(begin(9).unwrap_err(), NoSession::TooMany);
    }

    #[test]
    fn a_session_ends_by_its_sign_out_and_after_twelve_hours_alone() {
        let sessions = Sessions::default();
        let begin = || {
            let code = sessions.code_at(Scope::Full, Duration::ZERO);
            sessions.begin_at(&code, Duration::ZERO).unwrap().session_id
        };
        let (one, two) = (begin(), begin());
        assert!(sessions.connected(&two));
        (1..CONNECTIONS_MAX).for_each(|_| assert!(sessions.connected(&two)));
        assert!(!sessions.connected(&two), "it has enough connections");
        (1..CONNECTIONS_MAX).for_each(|_| sessions.disconnected(&two));
        assert!(sessions.find_at(&one, SESSION_TIME - SECOND).is_some());
        assert!(sessions.find_at(&one, SESSION_TIME).is_none());
        assert!(sessions.find_at(&two, SESSION_TIME).is_some(), "it is connected");
        sessions.sign_out(&two);
        assert!(sessions.find(&two).is_none() && !sessions.connected(&two));
        sessions.disconnected(&two);
    }

    #[test]
    fn codes_that_nobody_uses_take_limited_memory() {
        let sessions = Sessions::default();
        let first = sessions.code_at(Scope::Full, Duration::ZERO);
        for _ in 0..CODES_MAX {
            sessions.code_at(Scope::Full, SECOND);
        }
        assert_eq!(sessions.lock().codes.len(), CODES_MAX);
        assert_eq!(sessions.begin_at(&first, SECOND).unwrap_err(), NoSession::WrongCode);
    }
}
