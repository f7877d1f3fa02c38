//! Every limit of the simulated web broker. What is beyond one is refused with its name.

use std::time::Duration;

pub use crate::http::{HEAD_BYTES_MAX, HEADERS_MAX};

/// Connections at the same time; one more is closed at once.
pub const CONNECTIONS_MAX: usize = 256;
/// Bytes of a control request's body; more answer with status 413.
pub const CONTROL_BODY_BYTES_MAX: usize = 1024 * 1024;
/// Fields and records of one request; more are a parameter error.
pub const REQUEST_FIELDS_MAX: usize = 2_000;
/// Time that a client may take for a whole request once it has begun.
pub const REQUEST_TIME: Duration = Duration::from_secs(30);
/// Time after which a connection that asks nothing is closed.
pub const IDLE_TIME: Duration = Duration::from_secs(60);
/// Orders that are kept; one more is refused with 11352.
pub const ORDERS_KEPT_MAX: usize = 100_000;
/// Events that are kept; what happens after them is in lists only.
pub const EVENTS_KEPT_MAX: usize = 500_000;
/// Requests that the control view keeps; older ones are forgotten and counted.
pub const REQUESTS_KEPT_MAX: usize = 10_000;
/// Faults that wait at the same time.
pub const FAULTS_MAX: usize = 1_000;
/// The longest delay of a fault.
pub const DELAY_MAX: Duration = Duration::from_secs(600);
/// States that the fault `late-lists` keeps; with more, lists are later than asked for.
pub const LATE_BOOKS_MAX: usize = 1_000;
/// Issues that are traded.
pub const ISSUES_MAX: usize = 20;
/// Shares of one order; more are refused with 11352.
pub const ORDER_SHARES_MAX: u64 = 1_000_000;
/// Trades that one control request posts of one kind.
pub const TRADES_POSTED_MAX: u32 = 10_000;
/// Bytes of a message that a client sends on the stream of events.
pub const CLIENT_FRAME_BYTES_MAX: usize = 4 * 1024;
/// Rows of the price history of one issue.
pub const HISTORY_ROWS_MAX: usize = 6_000;
