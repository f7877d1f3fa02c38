//! The state of the connection to the gateway, and every step from there.
//!
//! Specification 1, "States and transitions"; specification 4, P45 to P49.

use std::fmt;

use domain::TsNanos;

use super::event::ErrorCode;
use super::limits::RECONNECTS;

/// State of the stream of boards after a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Push {
    /// It is opened for the first time.
    Connecting,
    /// It is open.
    Streaming,
    /// It is to be opened again; the number of the try.
    Reconnecting(u32),
}

impl fmt::Display for Push {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting => f.write_str("Connecting"),
            Self::Streaming => f.write_str("Streaming"),
            Self::Reconnecting(attempt) => write!(f, "Reconnecting {attempt}"),
        }
    }
}

/// State of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// There was no login yet.
    Disconnected,
    /// A login is under way, with the state in which it began.
    LoggingIn(Origin),
    /// There is a token.
    Ready(Push),
    /// The gateway refuses the token, and gave no new one.
    TokenExpired,
    /// The gateway cannot be reached.
    AppDown,
}

/// The state in which a login began: a cancelled login returns to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// [`State::Disconnected`]
    Disconnected,
    /// [`State::TokenExpired`]
    TokenExpired,
    /// [`State::AppDown`]
    AppDown,
}

impl Origin {
    const fn state(self) -> State {
        match self {
            Self::Disconnected => State::Disconnected,
            Self::TokenExpired => State::TokenExpired,
            Self::AppDown => State::AppDown,
        }
    }
}

/// An event of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// A login begins.
    LoginRequested,
    /// There is no password.
    LoginCancelled,
    /// The gateway refuses the password.
    LoginRefused,
    /// A login has given a token.
    TokenObtained,
    /// The gateway accepts no token, and gives none.
    TokenRefused,
    /// The gateway cannot be reached after all tries.
    Unreachable,
    /// The stream is open.
    PushOpened,
    /// The stream has ended, or could not be opened. The number counts failed tries in a row; 0 after a valid
    /// frame.
    PushLost(u32),
}

impl State {
    /// The state after a trigger; `None` if it means nothing in this state.
    #[must_use]
    pub const fn after(self, trigger: Trigger) -> Option<Self> {
        use Trigger as T;
        match (self, trigger) {
            (Self::Disconnected, T::LoginRequested) => Some(Self::LoggingIn(Origin::Disconnected)),
            (Self::TokenExpired, T::LoginRequested) => Some(Self::LoggingIn(Origin::TokenExpired)),
            (Self::AppDown, T::LoginRequested) => Some(Self::LoggingIn(Origin::AppDown)),
            (Self::LoggingIn(origin), T::LoginCancelled) => Some(origin.state()),
            (Self::LoggingIn(_), T::LoginRefused) => Some(Self::Disconnected),
            (Self::LoggingIn(_), T::TokenObtained) => Some(Self::Ready(Push::Connecting)),
            (Self::LoggingIn(_) | Self::Ready(_) | Self::AppDown, T::TokenRefused) => {
                Some(Self::TokenExpired)
            }
            (Self::LoggingIn(_) | Self::Ready(_), T::Unreachable) => Some(Self::AppDown),
            (Self::Ready(_) | Self::AppDown, T::PushOpened) => Some(Self::Ready(Push::Streaming)),
            (Self::Ready(_), T::PushLost(failures)) => Some(if failures >= RECONNECTS {
                Self::AppDown
            } else {
                Self::Ready(Push::Reconnecting(failures + 1))
            }),
            _ => None,
        }
    }

    /// Whether there is a token.
    #[must_use]
    pub const fn is_ready(self) -> bool {
        matches!(self, Self::Ready(_))
    }

    /// State of the stream, if there is a token.
    #[must_use]
    pub const fn push(self) -> Option<Push> {
        match self {
            Self::Ready(push) => Some(push),
            _ => None,
        }
    }
}

/// The state, its beginning, and the last error.
#[derive(Debug, Clone, Copy)]
pub struct Lifecycle {
    state: State,
    since: TsNanos,
    code: Option<ErrorCode>,
}

impl Lifecycle {
    /// There was no login yet.
    #[must_use]
    pub const fn new(now: TsNanos) -> Self {
        Self { state: State::Disconnected, since: now, code: None }
    }

    /// State of the connection.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// When the state began.
    #[must_use]
    pub const fn since(&self) -> TsNanos {
        self.since
    }

    /// The code of the last error; `None` if all is well.
    #[must_use]
    pub const fn code(&self) -> Option<ErrorCode> {
        self.code
    }

    /// Takes a trigger. Returns whether it means something in the present state.
    pub fn step(&mut self, trigger: Trigger, now: TsNanos) -> bool {
        let Some(next) = self.state.after(trigger) else { return false };
        if next != self.state {
            tracing::debug!(from = ?self.state, to = ?next, ?trigger, "the local broker's state");
            (self.state, self.since) = (next, now);
        }
        if next.is_ready() {
            self.code = None;
        }
        true
    }

    /// Notes an error.
    pub const fn fail(&mut self, code: ErrorCode) {
        self.code = Some(code);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIGGERS: [Trigger; 9] = [
        Trigger::LoginRequested,
        Trigger::LoginCancelled,
        Trigger::LoginRefused,
        Trigger::TokenObtained,
        Trigger::TokenRefused,
        Trigger::Unreachable,
        Trigger::PushOpened,
        Trigger::PushLost(0),
        Trigger::PushLost(5),
    ];

    /// The whole table, written a second time as the states that follow; `.` is no step.
    #[test]
    fn every_state_and_trigger() {
        let table = [
            (State::Disconnected, "LoggingIn . . . . . . . ."),
            (
                State::LoggingIn(Origin::Disconnected),
                ". Disconnected Disconnected Connecting TokenExpired AppDown . . .",
            ),
            (
                State::LoggingIn(Origin::TokenExpired),
                ". TokenExpired Disconnected Connecting TokenExpired AppDown . . .",
            ),
            (
                State::LoggingIn(Origin::AppDown),
                ". AppDown Disconnected Connecting TokenExpired AppDown . . .",
            ),
            (
                State::Ready(Push::Connecting),
                ". . . . TokenExpired AppDown Streaming Reconnecting1 AppDown",
            ),
            (
                State::Ready(Push::Streaming),
                ". . . . TokenExpired AppDown Streaming Reconnecting1 AppDown",
            ),
            (
                State::Ready(Push::Reconnecting(3)),
                ". . . . TokenExpired AppDown Streaming Reconnecting1 AppDown",
            ),
            (State::TokenExpired, "LoggingIn . . . . . . . ."),
            (State::AppDown, "LoggingIn . . . TokenExpired . Streaming . ."),
        ];
        for (state, expected) in table {
            let found = TRIGGERS.map(|trigger| match state.after(trigger) {
                None => ".".to_owned(),
                Some(State::Ready(Push::Reconnecting(attempt))) => format!("Reconnecting{attempt}"),
                Some(State::Ready(push)) => format!("{push:?}"),
                Some(State::LoggingIn(_)) => "LoggingIn".to_owned(),
                Some(other) => format!("{other:?}"),
            });
            assert_eq!(found.join(" "), expected, "{state:?}");
        }
    }

    /// P45: the state that a late client gets.
    #[test]
    fn p45_the_state_has_a_time_and_a_code_until_it_is_ready_again() {
        let at = |seconds: u64| TsNanos::from_nanos(seconds * 1_000_000_000);
        let mut life = Lifecycle::new(at(1));
        assert!(
            life.step(Trigger::LoginRequested, at(2)) && !life.step(Trigger::PushOpened, at(3))
        );
        assert!(life.step(Trigger::Unreachable, at(4)));
        life.fail(ErrorCode::LocalAppDown);
        assert_eq!((life.since(), life.code()), (at(4), Some(ErrorCode::LocalAppDown)));
        assert!(life.step(Trigger::LoginRequested, at(5)));
        assert_eq!(life.code(), Some(ErrorCode::LocalAppDown), "until it is ready");
        assert!(life.step(Trigger::TokenObtained, at(6)));
        assert_eq!((life.code(), life.state().push()), (None, Some(Push::Connecting)));
        assert!(life.step(Trigger::PushLost(2), at(7)));
        assert_eq!(life.state().push().unwrap().to_string(), "Reconnecting 3");
    }
}
