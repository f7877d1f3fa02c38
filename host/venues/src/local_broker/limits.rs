//! Limits of what the venue takes from the gateway and from its clients.

use std::time::Duration;

/// Order-type calls in a second, if the settings have no other number (specification 1, "Limits"). The
/// gateway's number depends on its version. There are none in this phase.
pub const ORDER_CALLS_PER_SECOND: u32 = 5;
/// Balance calls in a second (specification 1, "Limits").
pub const BALANCE_CALLS_PER_SECOND: u32 = 10;
/// Information calls in a second, registrations among them (specification 1, "Limits").
pub const INFORMATION_CALLS_PER_SECOND: u32 = 10;
/// Repeats of a request that could not be sent or was not answered (specification 4, P46).
pub const RETRIES: u32 = 3;
/// How late the gateway may still execute a request that it has not answered.
pub const LATE_MAX: Duration = Duration::from_secs(60);
/// How long the venue looks for symbols that may be registered late; the answer to the last look counts, too.
pub const LATE_TIME: Duration = Duration::from_secs(90);
/// Pauses after an answer that there are too many requests (specification 4, P48).
pub const RATE_PAUSES: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
/// Tries to open the stream again before the gateway counts as down (specification 1, "Limits").
pub const RECONNECTS: u32 = 5;
/// How often the stream is pinged (specification 1, "Limits").
pub const PING_EVERY: Duration = Duration::from_secs(20);
/// How long a stream must have been open to be no failed try, although no frame came: at night none comes for
/// hours.
pub const STREAM_LASTS: Duration = Duration::from_secs(600);
/// How long the answer to a ping may take (specification 1, "Limits").
pub const PING_TIME: Duration = Duration::from_secs(10);
/// Symbols of one request for a registration: as many as there can be.
pub const REGISTER_BATCH_MAX: usize = super::REGISTER_MAX;
/// Queued requests to the gateway; a command that would add another is refused.
pub const CALLS_WAITING_MAX: usize = 256;
/// Queued requests of one client among these.
pub const CLIENT_CALLS_WAITING_MAX: usize = 32;
/// Commands queued for the venue's thread, which takes them in microseconds; further ones are refused.
pub const COMMANDS_WAITING_MAX: usize = 4_096;
/// Frames queued for the venue's thread; the stream waits if there are more.
pub const FRAMES_WAITING_MAX: usize = 1_024;
/// Commands that wait for a login that is under way.
pub const LOGINS_WAITING_MAX: usize = 64;
/// How long a registered subscription waits for the name. All 50 take five seconds.
pub const NAME_TIME: Duration = Duration::from_secs(10);
/// Commands that wait for one symbol's registration.
pub const SUBSCRIBERS_WAITING_MAX: usize = 64;
/// Bytes of a frame of the stream that are read; the vendor's have about 2,500.
pub const FRAME_BYTES_MAX: usize = 64 << 10;
/// Bytes of a frame that are received; a longer one ends the connection.
pub const FRAME_RECEIVED_BYTES_MAX: usize = 1 << 20;
/// Bytes of the head with which a server answers the request for a stream, also the web broker's.
pub const HANDSHAKE_BYTES_MAX: usize = 16 << 10;
/// Bytes of an answer to a request. A row of the list of orders has about 2,000.
pub const ANSWER_BYTES_MAX: usize = 16 << 20;
/// Bytes of an error or a short answer, and of a dialect's input from one.
pub const SHORT_ANSWER_BYTES_MAX: usize = 64 << 10;
/// Characters of the gateway's texts that are shown.
pub const WORDS_CHARS_MAX: usize = 200;
/// Characters of a token.
pub const TOKEN_CHARS_MAX: usize = 256;
/// Tokens that are redacted: the present one and those before it. Late texts may repeat one of these. Each
/// costs time for every text of the gateway's.
pub const TOKENS_HIDDEN_MAX: usize = 8;
/// Passwords that are redacted, also refused ones.
pub const PASSWORDS_HIDDEN_MAX: usize = 8;
/// Characters of a name of an issue that are shown.
pub const NAME_CHARS_MAX: usize = 100;
/// Rows in one message about a list of orders.
pub const LIST_ROWS_SENT_MAX: usize = 1_000;
/// How long the end waits for the gateway to take our symbols out (specification 4, P50).
pub const END_TIME: Duration = Duration::from_secs(1);
/// Issues with state in the stream. At most 50 are pushed at once. The others had their board read, or were
/// unsubscribed, since the session began.
pub const STREAMS_MAX: usize = 512;
/// Time between two log lines about frequent things (specification 4, P53).
pub const REPORT_EVERY: Duration = Duration::from_secs(60);

/// Rows of a list of orders or positions; no account has as many in a day.
pub const ROWS_MAX: usize = 20_000;
/// Fields of one row; the official ones have 22.
pub const ROW_FIELDS_MAX: usize = 64;
/// How deep a row may be nested; the official ones go to 2.
pub const ROW_DEPTH_MAX: usize = 4;
/// Rows in the history of one order (`Details`).
pub const DETAILS_MAX: usize = 1_000;
/// Characters of a number as it is sent.
pub const NUMBER_CHARS_MAX: usize = 64;
/// Entries of the gateway's own list that are remembered; it has 50.
pub const LISTED_MAX: usize = 1_000;
/// Symbols that are registered although no client wants them, until the gateway's list shows that they are
/// gone.
pub const RELEASED_MAX: usize = 1_000;
/// Symbols in the registration file: all that can be wanted or released.
pub const REGISTRATION_FILE_SYMBOLS_MAX: usize = super::REGISTER_MAX + RELEASED_MAX;
/// Bytes of the registration file that are read; it has at most 12 for each symbol.
pub const REGISTRATION_FILE_BYTES_MAX: u64 = 64 << 10;
