//! What the engine takes of its clients and of its starter.

use std::time::Duration;

/// The port where no other is given.
pub const DEFAULT_PORT: u16 = 19_876;
/// The port of pages in the browser where no other is given.
pub const DEFAULT_CONSOLE_PORT: u16 = 19_875;
/// The value of an order in yen above which a page asks for its quantity again, where no other is given.
pub const DEFAULT_CONFIRM_ABOVE_JPY: u64 = 3_000_000;
/// Questions of forms that are answered at the same time: they read files, or run a guest.
pub const FORMS_AT_ONCE: usize = 4;
/// Bytes of the line on standard input that starts the engine.
pub const START_LINE_BYTES_MAX: u64 = 65_536;
/// How long the engine waits for that line.
pub const START_LINE_TIME: Duration = Duration::from_secs(10);
/// Characters of a token.
pub const TOKEN_CHARS: std::ops::RangeInclusive<usize> = 16..=1_024;
/// Characters of a client's nonce.
pub const NONCE_CHARS: std::ops::RangeInclusive<usize> = 16..=256;
/// Programs that are connected at the same time, and as many pages.
pub const CLIENTS_MAX: usize = 8;
/// Connections that have not shown yet that they may connect; one more takes the place of the oldest.
pub const HANDSHAKES_MAX: usize = 64;
/// How long a client may take to show that it may connect.
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// How often the engine asks a client whether it is still there.
pub const PING_EVERY: Duration = Duration::from_secs(15);
/// A client of which nothing came for so long, not even the answer to a ping, is gone.
pub const SILENCE_MAX: Duration = Duration::from_secs(30);
/// A client of which nothing came for that long, and that took more than so many bytes meanwhile, reads slowly and is
/// there. Less than that the system may hold for a client that is not.
pub const SYSTEM_HOLDS_BYTES: u64 = 4 << 20;
/// Bytes of a message of a client (specification 4, P62).
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// How deep the JSON of a message may be nested (P62).
pub const JSON_DEPTH_MAX: usize = 32;
/// Refused commands of one client within [`ERRORS_WITHIN`]: the last of them ends the connection (P62).
pub const ERRORS_MAX: usize = 100;
/// See [`ERRORS_MAX`].
pub const ERRORS_WITHIN: Duration = Duration::from_secs(10);
/// Bytes that wait for one client; with more it is too slow (P62).
pub const OUTBOX_BYTES_MAX: usize = 64 << 20;
/// Messages that wait for one client; with more it is too slow (P62).
pub const OUTBOX_FRAMES_MAX: usize = 65_536;
/// From so many waiting messages on a client is behind, and gets the newest buying power and the newest board
/// of each symbol only.
pub const BEHIND_FRAMES: usize = 256;
/// Parts of a thousand of what may wait for a client (P62), from which on a run without pace waits for it.
pub const READERS_BEHIND: usize = 250;
/// For how long a run waits for one client in total while others are connected, which would notice.
pub const BESIDE_OTHERS_MAX: Duration = Duration::from_secs(5);
/// Trades, bars and events of orders of a run without pace between two looks at who is behind.
pub const ROWS_BETWEEN_LOOKS: u64 = 256;
/// How long such a run waits at each of these looks at most, and in which steps.
pub const READERS_WAIT_MAX: Duration = Duration::from_millis(200);
/// See [`READERS_WAIT_MAX`].
pub const READERS_WAIT_STEP: Duration = Duration::from_millis(1);
/// If a client has read nothing for so long of such waits, the run no longer waits, until it has read all.
pub const READER_PATIENCE: Duration = Duration::from_secs(1);
/// Trades of one message, for a client that is behind.
pub const TRADES_PER_FRAME_MAX: usize = 4_096;
/// Wall time that the trades of one message span at most.
pub const TRADES_PER_FRAME_TIME: Duration = Duration::from_millis(50);
/// Messages of trades that a client is sent at once, in a row; [`TRADES_PER_REST`] more may be sent for each
/// [`TRADES_REST`] that goes by. A client that would get more is behind, and gets its trades in groups.
pub const TRADES_AT_ONCE: u32 = 256;
/// See [`TRADES_AT_ONCE`]: 8,000 messages a second.
pub const TRADES_PER_REST: u32 = 8;
/// How long the writer of such a client rests after it has written trades, where nothing else waits: trades that
/// come within that time go out together. A write costs more than the trade in it, and a dense stream would
/// take a core for each client. The rest is a fifth of what may lie between queue and socket (5 ms).
pub const TRADES_REST: Duration = Duration::from_millis(1);
/// How often a growing bar and the progress of a request are sent at most.
pub const UPDATE_EVERY: Duration = Duration::from_millis(100);
/// Orders of one message of a list, and orders and fills of a session (P74).
pub const LIST_ROWS_MAX: usize = 10_000;
/// Bars of each instrument in a session: more than a day of minutes.
pub const SESSION_BARS_MAX: usize = 400;
/// Marks of the strategy in a session.
pub const SESSION_SIGNALS_MAX: usize = 1_000;
/// Decisions of the strategy in a session, as many as signals.
pub const SESSION_NARRATIVES_MAX: usize = 1_000;
/// Characters of a decision's title on the wire.
pub const NARRATIVE_TITLE_CHARS_MAX: usize = 256;
/// Characters of a decision's body, and of a strategy's log line, on the wire.
pub const NARRATIVE_BODY_CHARS_MAX: usize = 2_048;
/// Points of the equity curve in a session.
pub const EQUITY_POINTS_MAX: usize = 2_000;
/// Log lines of a strategy that clients get within [`LOG_LINES_TIME`].
pub const LOG_LINES_MAX: u64 = 100;
/// See [`LOG_LINES_MAX`].
pub const LOG_LINES_TIME: Duration = Duration::from_secs(1);
/// Trades of one answer about the past.
pub const HISTORY_TRADES_MAX: usize = 10_000;
/// Bars of one answer about the past.
pub const HISTORY_BARS_MAX: usize = 5_000;
/// Trades of a ticker of the live market that are kept for clients that come late.
pub const LIVE_TRADES_KEPT: usize = 2_000;
/// Bars of such a ticker: more than a day of minutes.
pub const LIVE_BARS_KEPT: usize = 400;
/// Lists of one client of which messages are left: each is made when the messages before it are written.
pub const LISTS_WAITING_MAX: usize = 16;
/// Bytes that wait for a client up to which the next message of its lists is made.
pub const LIST_AHEAD_BYTES: usize = 1 << 20;
/// Commands of clients that wait for the run.
pub const COMMANDS_WAITING_MAX: usize = 8_192;
/// How long a run goes on after the last client has left, other than with `--standalone` (P69).
pub const ABANDONED_AFTER: Duration = Duration::from_secs(10);
/// Folders of runs that stay where no other number is given (P79).
pub const RUNS_KEPT: usize = 20;
/// How long the end waits for a run and for the venues to end; all of it takes at most 5 seconds (P80). The
/// gateway may take one second of it, and the recorder 2.4 after that
/// ([`RECORDER_END_TIME`](marketdata::limits::RECORDER_END_TIME)).
pub const RUN_END_TIME: Duration = Duration::from_millis(3_500);
/// How long a client may take to read what is left for it when its connection ends.
pub const CLOSE_TIME: Duration = Duration::from_secs(1);
/// How long the start of a live strategy waits for the state of the venue.
pub const VENUE_STATE_TIME: Duration = Duration::from_secs(5);
/// How long it waits until its instruments are registered: a gateway that pauses requests takes up to 7 s.
pub const REGISTRATION_TIME: Duration = Duration::from_secs(20);
/// How long the start of a live strategy waits for the stream of market data; without it the run begins with
/// `market_data_lost` (P115).
pub const STREAM_TIME: Duration = Duration::from_secs(3);
/// How long the engine's end waits for the cancels of a strategy's orders, of [`RUN_END_TIME`].
pub const ORDERS_END_TIME: Duration = Duration::from_secs(2);
/// How long a run may take after that to tell which of its orders still work.
pub const ORDERS_TOLD_TIME: Duration = Duration::from_secs(1);
/// How often the engine's end looks.
pub const ORDERS_END_LOOK: Duration = Duration::from_millis(10);
/// How long a start waits for the order desk to take over: 30 s for unknown orders and fills, 30 s for the ends of
/// working orders (P104, P105), and what the broker takes beside.
pub const TAKEOVER_TIME: Duration = Duration::from_secs(75);
/// How long the end of a run waits for the ends of its orders: the desk's 30 s (P86), and what the broker takes beside.
pub const ENDS_TIME: Duration = Duration::from_secs(35);
pub use orders::limits::STRATEGY_ID_CHARS_MAX;
/// Characters of a signal's tag and note on the wire (P78).
pub const SIGNAL_TAG_CHARS_MAX: usize = 64;
/// See [`SIGNAL_TAG_CHARS_MAX`].
pub const SIGNAL_NOTE_CHARS_MAX: usize = 512;
/// Tickers that one connection subscribes.
pub const SUBSCRIPTIONS_MAX: usize = 256;
/// Bytes of a symbol of which only the newest board waits; the venue's have nine.
pub const TICKER_BYTES_MAX: usize = 16;
/// Symbols whose trades of the present session are known as such; with more all of them are made anew. The venue
/// pushes 50 at once, others were subscribed before.
pub const STREAM_HEADS_MAX: usize = 256;
/// Characters of a wrong instrument that a rejection repeats.
pub const ID_CHARS_SHOWN: usize = 64;
/// Tags of an order, each of at most 128 characters: a line of the run's
/// journal holds them.
pub const TAGS_MAX: usize = 64;
/// Pings of a client within [`ERRORS_WITHIN`]: each is answered, and unread answers take memory.
pub const PINGS_MAX: u32 = 1_000;
/// Pings before the client's `Hello`.
pub const EARLY_PINGS_MAX: u32 = 16;
/// Errors that last until the engine ends. Each client that joins gets the newest.
pub const LASTING_ERRORS_MAX: usize = 16;
