//! Every limit of our requests. What exceeds one is refused with an error that names it.

use std::time::Duration;

/// Bytes of one answer, after unpacking. A day of all issues has about 2 MB.
pub const BODY_BYTES_MAX: usize = 64 << 20;
/// Bytes of an answer that says what went wrong.
pub const ERROR_BODY_BYTES_MAX: usize = 64 << 10;
/// Characters of a server's words that a message shows.
pub const SHOWN_CHARS: usize = 300;

/// How often a request that failed for the moment is sent.
pub const TRIES: u32 = 3;
/// How often a request is sent that was too many at its time.
pub const TRIES_TOO_MANY: u32 = 5;
/// The first pause before a request is sent again; each further one is twice as long.
pub const BACK_OFF: Duration = Duration::from_secs(1);
/// The first pause after too many requests where the server does not say how long: the vendor never does, asks for
/// one to two minutes, and blocks for about five when the rate stays too high.
pub const BACK_OFF_TOO_MANY: Duration = Duration::from_secs(60);
/// The longest time between two requests after too many; the rate that the user set may be slower.
pub const INTERVAL_MAX: Duration = Duration::from_secs(60);
/// Answers after which requests may follow each other a little faster again.
pub const RECOVERY_ANSWERS: u32 = 20;
/// By how many percent the time between two requests gets shorter then.
pub const RECOVERY_PERCENT: u32 = 10;
/// The longest pause that a server may ask for.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(600);
/// Time for one answer, from the connection to the last byte.
pub const REQUEST_TIME: Duration = Duration::from_secs(120);
/// Time to reach a server.
pub const CONNECT_TIME: Duration = Duration::from_secs(15);
