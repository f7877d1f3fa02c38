//! Every limit of the simulated gateway. What is beyond one is refused with its name.

use std::time::Duration;

/// Symbols that are registered at the same time, by registrations and by board reads together.
pub const REGISTERED_MAX: usize = 50;
/// Calls of a second about orders.
pub const ORDER_CALLS_PER_SECOND: u32 = 5;
/// Calls of a second about balances.
pub const WALLET_CALLS_PER_SECOND: u32 = 10;
/// Calls of a second for information, registrations included.
pub const INFORMATION_CALLS_PER_SECOND: u32 = 10;
/// Calls beyond a class's number that are still let through: the vendor says "about", and what a client
/// spaces out evenly arrives unevenly.
pub const RATE_SLACK_CALLS: u32 = 2;
/// Connections at the same time; one more is closed at once.
pub const CONNECTIONS_MAX: usize = 256;
/// Bytes of a request's body; more answer with status 413.
pub const BODY_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a control request's body; more answer with status 413.
pub const CONTROL_BODY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Commands of one control request; nothing else is done meanwhile.
pub const COMMANDS_MAX: usize = 4_000;
/// Trades and changes of books that the commands of one control request post together.
pub const REQUEST_COUNT_MAX: u64 = 50_000;
/// Time that a client may take for a whole request once it has begun.
pub const REQUEST_TIME: Duration = Duration::from_secs(30);
/// Time after which a connection that asks nothing is closed.
pub const IDLE_TIME: Duration = Duration::from_secs(60);
/// Frames that wait for the client of the push; the market waits while it is full.
pub const QUEUE_FRAMES_MAX: usize = 4_096;
/// Time after which a client of the push that takes nothing is closed; the market and commands wait for it that
/// long.
pub const PUSH_STALL_TIME: Duration = Duration::from_secs(5);
/// Bytes of a message that a client sends on the push.
pub const CLIENT_FRAME_BYTES_MAX: usize = 4 * 1024;
/// Bytes of the biggest frame that the fault `giant-frames` makes.
pub const GIANT_FRAME_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Issues that are traded.
pub const ISSUES_MAX: usize = 200;
/// Rows of orders, and of positions.
pub const ACCOUNT_ROWS_MAX: usize = 10_000;
/// Faults that wait at the same time.
pub const FAULTS_MAX: usize = 1_000;
/// The longest delay of a fault, and the longest time without a listener.
pub const DELAY_MAX: Duration = Duration::from_secs(600);
/// Requests that the control view keeps; older ones are forgotten and counted.
pub const REQUESTS_KEPT_MAX: usize = 1_000;
/// Tokens that are remembered after their death, so that they are told apart from ones never issued.
pub const DEAD_TOKENS_KEPT_MAX: usize = 1_000;
/// Stretches of counting volume that are kept for each symbol; older ones are joined into one sum.
pub const STRETCHES_KEPT_MAX: usize = 1_000;
/// Trades that one control command posts.
pub const TRADES_POSTED_MAX: u32 = 10_000;
/// Shares of one trade that a control command posts.
pub const TRADE_SHARES_MAX: u64 = 1_000_000_000_000;
/// Shares of an issue that are traded, of all days together, with what control commands post: clients count them in
/// 1/10,000.
pub const VOLUME_MAX: u64 = 900_000_000_000_000;
/// The first year of days that are given.
pub const YEAR_MIN: i32 = 1990;
/// The last year of days that are given: times of a few centuries later do not fit their integers.
pub const YEAR_MAX: i32 = 2200;
/// Days that a walk of prices goes on for.
pub const DAYS_MAX: u32 = 10_000;
