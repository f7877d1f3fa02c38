//! The order desk of the web broker: every order command, safe against crashes, resends and lost answers
//! (specification 2; specification 4, P1 to P42).
//!
//! - [`desk`]: what becomes of each command, answer, list and notice. No input or output but the audit
//!   log's; time is given.
//! - [`audit`] and [`restore`]: the log that is written ahead, and what it says at the next start.
//! - [`phase`], [`password`], `check`, `book`, `reconcile`: rules without a desk.
//! - [`service`]: the thread that owns a desk and its connection.

pub mod audit;
mod book;
mod check;
pub mod command;
pub mod desk;
pub mod event;
mod heard;
mod instruments;
pub mod kill;
pub mod limits;
pub mod password;
pub mod phase;
mod reconcile;
pub mod restore;
pub mod service;
#[cfg(test)]
mod testing;

pub use audit::{AUDIT_FILE, AuditError, AuditLog, AuditSink};
pub use command::{CancelMany, DeskCommand, NamedOrder, NewOrder, OrderChange};
pub use desk::{Asked, Desk, DeskRules, LoginDone, LoginFailed, Now, Out, Recipient};
pub use event::DeskEvent;
pub use instruments::InstrumentTable;
pub use password::PasswordRules;
pub use phase::OrderPhase;
pub use restore::Restored;
pub use service::{Busy, FindCredentials, Service, ServiceError, Setup};
