//! What the venue takes of the gateway and of its clients.

use std::time::Duration;

/// Order-type calls in a second, where the settings do not say another number (specification 1, "Limits"): the
/// gateway's number depends on its version. There are none in this phase.
pub const ORDER_CALLS_PER_SECOND: u32 = 5;
/// Balance calls in a second (specification 1, "Limits").
pub const BALANCE_CALLS_PER_SECOND: u32 = 10;
/// Information calls in a second, registrations among them (specification 1, "Limits").
pub const INFORMATION_CALLS_PER_SECOND: u32 = 10;
/// Times that a request is made again after it could not be made or answered (specification 4, P46).
pub const RETRIES: u32 = 3;
/// How late the gateway may still do what a request asked for that it has not answered.
pub const LATE_MAX: Duration = Duration::from_secs(60);
/// How long what may be registered late is looked for: the answer to the last look counts too.
pub const LATE_TIME: Duration = Duration::from_secs(90);
/// Pauses after an answer that says that there are too many requests (specification 4, P48).
pub const RATE_PAUSES: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
/// Tries to open the stream again before the gateway counts as down (specification 1, "Limits").
pub const RECONNECTS: u32 = 5;
/// How often the stream is pinged (specification 1, "Limits").
pub const PING_EVERY: Duration = Duration::from_secs(20);
/// How long a stream has been open that was no failed try, though no frame came: at night none comes for hours.
pub const STREAM_LASTS: Duration = Duration::from_secs(600);
/// How long the answer to a ping may take (specification 1, "Limits").
pub const PING_TIME: Duration = Duration::from_secs(10);
/// Symbols of one request for a registration: all that there can be.
pub const REGISTER_BATCH_MAX: usize = super::REGISTER_MAX;
/// Requests that wait for the gateway; a command that would add another is refused.
pub const CALLS_WAITING_MAX: usize = 256;
/// Of these, requests of one client.
pub const CLIENT_CALLS_WAITING_MAX: usize = 32;
/// Commands that wait for the venue's thread, which takes them in microseconds; one more is refused.
pub const COMMANDS_WAITING_MAX: usize = 4_096;
/// Frames that wait for the venue's thread; the stream waits when there are more.
pub const FRAMES_WAITING_MAX: usize = 1_024;
/// Commands that wait for a login that is under way.
pub const LOGINS_WAITING_MAX: usize = 64;
/// How long a subscription that is registered waits for the name. All 50 take five seconds.
pub const NAME_TIME: Duration = Duration::from_secs(10);
/// Commands that wait for one symbol's registration.
pub const SUBSCRIBERS_WAITING_MAX: usize = 64;
/// Bytes of a frame of the stream that are looked at; the vendor's have about 2,500.
pub const FRAME_BYTES_MAX: usize = 64 << 10;
/// Bytes of a frame that are received at all; a longer one ends the connection.
pub const FRAME_RECEIVED_BYTES_MAX: usize = 1 << 20;
/// Bytes of the head with which a server answers the request for a stream, the web broker's too.
pub const HANDSHAKE_BYTES_MAX: usize = 16 << 10;
/// Bytes of an answer to a request. A row of the list of orders has about 2,000.
pub const ANSWER_BYTES_MAX: usize = 16 << 20;
/// Bytes of an answer that is an error or a short one, and of what a dialect gets of it.
pub const SHORT_ANSWER_BYTES_MAX: usize = 64 << 10;
/// Characters of the gateway's words that are shown.
pub const WORDS_CHARS_MAX: usize = 200;
/// Characters of a token.
pub const TOKEN_CHARS_MAX: usize = 256;
/// Tokens that are redacted: the one in use and those before it. What comes late repeats one of
/// these; each costs time at every text of the gateway's.
pub const TOKENS_HIDDEN_MAX: usize = 8;
/// Passwords that are redacted, the refused ones too, likewise.
pub const PASSWORDS_HIDDEN_MAX: usize = 8;
/// Characters of a name of an issue that are shown.
pub const NAME_CHARS_MAX: usize = 100;
/// Rows in one message about a list of orders.
pub const LIST_ROWS_SENT_MAX: usize = 1_000;
/// How long the end waits for the gateway to take our symbols out (specification 4, P50).
pub const END_TIME: Duration = Duration::from_secs(1);
/// Issues whose place in the stream is kept. At most 50 are pushed at once; the others are those whose
/// board was read, or that were given up, since the session began.
pub const STREAMS_MAX: usize = 512;
/// Time between two lines of the log about things that come by the thousand (specification 4, P53).
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
/// Entries of the gateway's own list that are remembered; it keeps 50.
pub const LISTED_MAX: usize = 1_000;
/// Symbols that are known to be registered although nobody wants them any more, until the gateway's list
/// shows that they are not.
pub const RELEASED_MAX: usize = 1_000;
/// Symbols in the file of those that are registered: all that can be wanted or released.
pub const REGISTRATION_FILE_SYMBOLS_MAX: usize = super::REGISTER_MAX + RELEASED_MAX;
/// Bytes of the file of registered symbols that are read; it has at most 12 a symbol.
pub const REGISTRATION_FILE_BYTES_MAX: u64 = 64 << 10;
