//! Limits of the order desk. Each has a reason and a test that hits it.

use std::time::Duration;

/// Commands that wait for the broker: one is asked after the other, and a person can have no use for
/// more. Further ones are refused.
pub const JOBS_WAITING_MAX: usize = 1_000;
/// Those of one client. Questions and what changes something are counted apart.
pub const JOBS_OF_CLIENT_MAX: usize = 250;

/// Time from the receipt of a command to its answer (specification 2, "Limits").
pub const ORDER_ANSWER_TIME: Duration = Duration::from_secs(30);
/// How long the wall clock shows a new date before the day before is over for the desk.
pub const DAY_STANDS: Duration = Duration::from_secs(60);

/// Orders that the desk holds at once; brokers take some thousands a day.
pub const ORDERS_HELD_MAX: usize = 200_000;

/// Orders of the log that the desk begins with, the newest; the rest of what it holds is for new ones.
pub const ORDERS_RESTORED_MAX: usize = 150_000;

/// Notices that wait for an order that is not known yet.
pub const NOTICES_HELD_MAX: usize = 10_000;

/// Notices that are known again when the broker sends them once more; a busy day of a large account has a
/// tenth. Past it, a list of orders tells what further ones would.
pub const NOTICES_KNOWN_MAX: usize = 200_000;

/// Fills of the log that are known again after a restart, the newest: of a large account those of some days.
pub const FILLS_RESTORED_MAX: usize = 200_000;

/// Fills of one order that are told apart; an order of the largest size has fewer.
pub const FILLS_PER_ORDER_MAX: usize = 100_000;

/// Orders whose details wait for the broker at once: details are asked for beside what people ask, and those of
/// further orders with the next list.
pub const DETAILS_WAITING_MAX: usize = 50;

/// How long the answer to a question for details is waited for: nobody waits for them, and behind them may come an
/// order or a cancel for which somebody does.
pub const DETAILS_TIME: Duration = Duration::from_secs(5);

/// How long no details are asked for after some could not be had.
pub const DETAILS_PAUSE: Duration = Duration::from_secs(60);

/// How often the details of an order are asked for before its missing fills are told as missing.
pub const DETAILS_TRIES_MAX: u32 = 3;

/// Rows of one list of orders; more are an error of the broker.
pub const LIST_ROWS_MAX: usize = 50_000;

/// Rows in one message about a list.
pub const LIST_ROWS_SENT_MAX: usize = 10_000;

/// Rows of one list that are told one by one because they cannot be read; the rest is told as a count.
pub const UNREADABLE_ROWS_REPORTED_MAX: usize = 20;

/// Reasons for which the row of one order was left out of lists and that are told; a broker's row has fewer
/// fields that can be wrong in turn.
pub const REASONS_PER_ORDER_MAX: usize = 20;

/// Discrepancies without an order of ours that are told one by one in a minute; the rest is told as a count.
/// Those of an order are told once for each kind, or reason.
pub const DISCREPANCIES_PER_MINUTE_MAX: u32 = 100;

/// Orders that were told as not at the broker and are looked for in later lists all the same, the newest.
pub const PRESUMED_REJECTED_MAX: usize = 1_000;

/// Bytes of one line of the audit log; the longest that is written has far fewer.
pub const AUDIT_LINE_BYTES_MAX: usize = 16 << 10;

/// Bytes of an audit log that is read at the start: about 4 million orders.
pub const AUDIT_LOG_BYTES_MAX: u64 = 2 << 30;

/// The longest pause between two lists that are asked for because something is unknown; the first is
/// the configured `unknown_settle_secs`, each further one twice as long.
pub const RESYNC_PAUSE_MAX: Duration = Duration::from_secs(60);

/// How long a cancel of many waits until all orders have ended (specification 4, P23b).
pub const CANCEL_ALL_TIME: Duration = Duration::from_secs(30);

/// Cancels of many that are under way at once: each is a request of its own at the broker, and a second
/// one is sent by a person who does not believe the first. Further ones are refused.
pub const CANCELS_UNDER_WAY_MAX: usize = 8;

/// Pause between the lists that cancels of many ask for.
pub const CANCEL_ALL_LIST_PAUSE: Duration = Duration::from_secs(1);

/// How much earlier than its submit line an order may seem to be at the broker, whose times have no
/// fractions of seconds and another clock (specification 4, P19).
pub const CLAIM_SLACK_MS: u64 = 2_000;

/// How much later than its submit line an order may be at the broker: its request waited no longer.
pub const CLAIM_LATEST_MS: u64 = 600_000;

/// Characters of the broker's number of an order, and of the code of a warning.
pub const NUMBER_CHARS_MAX: usize = 16;

/// How long a login may take from the session to the first list and the stream, before it is told that
/// they do not come.
pub const READY_TIME: Duration = Duration::from_secs(30);

/// Tags of an order.
pub const TAGS_MAX: usize = 32;

/// Characters of a wrong text that a rejection repeats.
pub const CHARS_SHOWN: usize = 32;
