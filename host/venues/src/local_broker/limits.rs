//! Every limit of what the gateway sends and of what is kept of it. What exceeds one is refused with an
//! error that names it, or dropped and counted.

use std::time::Duration;

/// Issues whose place in the stream is kept. At most 50 are pushed at once; the others are those whose
/// board was read, or that were given up, since the session began.
pub const STREAMS_MAX: usize = 512;
/// Time between two lines of the log about things that come by the thousand (specification 4, P53).
pub const REPORT_EVERY: Duration = Duration::from_secs(60);

/// Rows of a list of orders or positions; nobody has as many in a day.
pub const ROWS_MAX: usize = 20_000;
/// Fields of one row; the official ones have 22.
pub const ROW_FIELDS_MAX: usize = 64;
/// How deep a row may be nested; the official ones go to 2.
pub const ROW_DEPTH_MAX: usize = 4;
/// Rows in the history of one order (`Details`).
pub const DETAILS_MAX: usize = 1_000;
/// Characters of a number as it is sent.
pub const NUMBER_CHARS_MAX: usize = 64;
/// Rows in one message about a list of orders.
pub const LIST_ROWS_TOLD_MAX: usize = 1_000;

/// Symbols in one request to register; the gateway takes no more than it keeps.
pub const REGISTER_BATCH_MAX: usize = 50;
/// Entries of the gateway's own list that are remembered; it keeps 50.
pub const LISTED_MAX: usize = 1_000;
/// Symbols that are known to be registered although nobody wants them any more, until the gateway's list
/// shows that they are not.
pub const RELEASED_MAX: usize = 1_000;
