//! Limits of what the web broker sends and gets.
//!
//! If one is exceeded, the error names it.

use std::time::Duration;

/// Bytes of an answer, after unpacking. A full list of a day's orders has less than 2 MB, 20 years of
/// daily prices about the same.
pub const ANSWER_BYTES_MAX: usize = 16 << 20;
/// How deep an answer may be nested; the broker's own go to 4.
pub const JSON_DEPTH_MAX: usize = 8;
/// Bytes of a request's address, encoded. Servers refuse longer ones.
pub const REQUEST_BYTES_MAX: usize = 16 << 10;
/// Bytes of an address that a login gives.
pub const VIRTUAL_URL_BYTES_MAX: usize = 2 << 10;
/// The highest request number that the broker takes.
pub const REQUEST_NUMBER_MAX: u64 = 9_999_999_999;

/// Bytes of all masters; the broker says about 21 MB.
pub const MASTERS_BYTES_MAX: usize = 64 << 20;
/// Bytes of one record of the masters.
pub const MASTER_RECORD_BYTES_MAX: usize = 64 << 10;
/// Time for all masters.
pub const MASTERS_TIME: Duration = Duration::from_secs(180);
/// Issues that masters may hold; the market has about 4,500.
pub const ISSUES_MAX: usize = 100_000;
/// Tables of price steps that masters may hold; there are about 30.
pub const TICK_TABLES_MAX: usize = 1_000;

/// Characters of a broker's code that are shown; its own have up to six.
pub const CODE_CHARS_MAX: usize = 12;

/// Bytes of a frame of the stream of events.
pub const FRAME_BYTES_MAX: usize = 256 << 10;
/// Fields of a frame. One of 120 issues has about 7,000.
pub const FRAME_FIELDS_MAX: usize = 32_768;
