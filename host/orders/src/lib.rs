//! The order desk of the web broker, safe against crashes, resends and lost answers.
//!
//! Specification 2; specification 4, P1 to P42.
//!
//! - [`command`] is its input, [`event`] its output, both in types of `domain`.
//! - [`desk`]: handles each command, answer, list and notice. Its only input and output is the audit log; each
//!   call gives it the time.
//! - [`audit`]: the log that is written ahead, and what it says at the next start. Only its lines use types of
//!   the wire.
//! - [`phase`], [`password`], `session`, `check`, `book`, `reconcile`: state and rules without a desk.
//! - [`service`]: the thread that owns a desk and its connection.

pub mod audit;
mod book;
mod check;
pub mod command;
pub mod desk;
pub mod event;
mod instruments;
pub mod kill;
pub mod limits;
pub mod password;
pub mod phase;
mod reconcile;
mod seen_notices;
pub mod service;
mod session;
#[cfg(test)]
mod testing;

pub use audit::{AUDIT_FILE, AuditError, AuditLog, AuditSink, Restored};
pub use command::{
    Adjustment, CancelMany, DeskCommand, NamedOrder, NewOrder, OrderChange, SettleOrder,
};
pub use desk::{Desk, DeskRules, LoginDone, LoginFailed, Now, Out, Recipient, RequestContext};
pub use event::DeskEvent;
pub use instruments::InstrumentTable;
pub use password::{PasswordRules, PasswordStage};
pub use phase::OrderPhase;
pub use service::{FindCredentials, Service, ServiceError, Setup};
pub use venues::Busy;
