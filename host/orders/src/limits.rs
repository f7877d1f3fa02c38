//! Limits of the order desk, each with its reason.

use std::time::Duration;

use domain::Money;

/// Queued commands. The broker takes one request at a time, and a person has no use for more. Further ones are
/// refused.
pub const JOBS_WAITING_MAX: usize = 1_000;
/// Queued commands of one client. Reads and commands that change something count apart.
pub const JOBS_OF_CLIENT_MAX: usize = 250;

/// Time from the receipt of a command to its answer (specification 2, "Limits").
pub const ORDER_ANSWER_TIME: Duration = Duration::from_secs(30);
/// How long the wall clock must show a new date before the desk ends the day before.
pub const DAY_STANDS: Duration = Duration::from_secs(60);

/// Orders that the desk holds at once; brokers take some thousands a day.
pub const ORDERS_HELD_MAX: usize = 200_000;

/// Orders of the log with which the desk starts, the newest. The other places are for new ones.
pub const ORDERS_RESTORED_MAX: usize = 150_000;

/// Notices that are held for an order that is not known yet.
pub const NOTICES_HELD_MAX: usize = 10_000;

/// Notices that are known again when the broker resends them; a busy day of a large account has a tenth. Beyond
/// it, a list of orders replaces further ones.
pub const NOTICES_KNOWN_MAX: usize = 200_000;

/// Fills of the log that are known again after a restart, the newest. A large account makes them in some days.
pub const FILLS_RESTORED_MAX: usize = 200_000;

/// Fills of one order that are known by number; an order of the largest size has fewer.
pub const FILLS_PER_ORDER_MAX: usize = 100_000;

/// What one fill may be worth: more than any issue of the exchange is. Sums of such values fit into an amount.
pub const FILL_VALUE_MAX: Money = Money::from_yen(1_000_000_000_000);

/// Queued requests for details of orders. They run beside the requests of people; further orders follow with
/// the next list.
pub const DETAILS_WAITING_MAX: usize = 50;

/// The time limit for the answer with details. No client waits for it, and a client may wait for the order or
/// cancel behind it.
pub const DETAILS_TIME: Duration = Duration::from_secs(5);

/// The pause in requests for details after a failure.
pub const DETAILS_PAUSE: Duration = Duration::from_secs(60);

/// Requests for the details of an order before its missing fills are reported as missing.
pub const DETAILS_TRIES_MAX: u32 = 3;

/// Rows of one list of orders; a longer list is an error of the broker.
pub const LIST_ROWS_MAX: usize = 50_000;

/// Rows in one message about a list.
pub const LIST_ROWS_SENT_MAX: usize = 10_000;

/// Unreadable rows of one list that are reported one by one; the rest is reported as a count.
pub const UNREADABLE_ROWS_REPORTED_MAX: usize = 20;

/// Reasons that are reported for leaving out the row of one order. A broker's row has fewer fields that can be
/// wrong in turn.
pub const REASONS_PER_ORDER_MAX: usize = 20;

/// Discrepancies without an order of ours that are reported one by one in a minute; the rest is reported as a
/// count. Those of an order are reported once for each kind, or reason.
pub const DISCREPANCIES_PER_MINUTE_MAX: u32 = 100;

/// Presumed rejected orders that the desk looks for in later lists, the newest.
pub const PRESUMED_REJECTED_MAX: usize = 1_000;

/// Bytes of one line of the audit log; the longest line that is written has far fewer.
pub const AUDIT_LINE_BYTES_MAX: usize = 16 << 10;

/// Bytes of an audit log that the start reads: about 4 million orders.
pub const AUDIT_LOG_BYTES_MAX: u64 = 2 << 30;

/// The longest pause between two lists while an outcome is unknown. The first pause is the configured
/// `unknown_settle_secs`, each further one is twice as long.
pub const RESYNC_PAUSE_MAX: Duration = Duration::from_secs(60);

/// How long a cancel of many waits until all orders have ended (specification 4, P23b).
pub const CANCEL_ALL_TIME: Duration = Duration::from_secs(30);

/// Cancels of many that are under way at once. Each is a request at the broker, and a person repeats one that
/// seems to fail. Further ones are refused.
pub const CANCELS_UNDER_WAY_MAX: usize = 8;

/// The pause between the lists of cancels of many.
pub const CANCEL_ALL_LIST_PAUSE: Duration = Duration::from_secs(1);

/// How much earlier than its submit line an order's time at the broker may be. The broker's times have no
/// fractions of seconds and come from another clock (specification 4, P19).
pub const CLAIM_SLACK_MS: u64 = 2_000;

/// How much later than its submit line an order's time at the broker may be: no request waits longer.
pub const CLAIM_LATEST_MS: u64 = 600_000;

/// How much later than its submit line a row may be that is taken for an order that was reported as not at the
/// broker (specification 4, P121). The longest answer is awaited for 30 s; later rows are other orders.
pub const CAME_BACK_LATEST_MS: u64 = 30_000;

/// How long the start of a strategy waits for unknown orders and missing fills, and then once more for the ends
/// of its own orders (specification 4, P104, P105).
pub const TAKE_OVER_TIME: Duration = Duration::from_secs(30);

/// How long a cancel of a strategy's own orders waits until all have ended (specification 4, P86).
pub const CANCEL_OWN_TIME: Duration = Duration::from_secs(30);

/// The pause before a strategy's order whose cancel was refused is cancelled again.
pub const CANCEL_OWN_PAUSE: Duration = Duration::from_secs(2);

/// Cancels of own orders that are under way at once; one strategy runs at a time.
pub const CANCELS_OF_OWN_MAX: usize = 16;

/// The pause between the lists that a strategy's start, or the end of its orders, waits for.
pub const OWN_LIST_PAUSE: Duration = Duration::from_secs(1);

/// When positions are requested after a fill of somebody else's SELL, and again to confirm a shortage. An own
/// fill whose notice is under way looks like one. Both are within the 10 s of specification 4, P107.
pub const POSITIONS_CHECKED_AFTER: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(7)];

/// Fills of strategies that wait for a disk that can be written; a strategy sends no order while there is one.
pub const FILLS_UNWRITTEN_MAX: usize = 100_000;

/// Days of which the profit and loss of a strategy's sales is known. Only today's has a limit.
pub const REALISED_DAYS_MAX: usize = 8;

/// Corrections of what a strategy holds that are told to its next run, the newest.
pub const CORRECTIONS_MAX: usize = 100;

/// Characters of the reason for a correction.
pub const WHY_CHARS_MAX: usize = 200;

/// Characters of the broker's number of an order, and of the code of a warning.
pub const NUMBER_CHARS_MAX: usize = 16;

/// How long a login may take from the session to the first list and the stream, before a fault is reported.
pub const READY_TIME: Duration = Duration::from_secs(30);

/// Tags of an order.
pub const TAGS_MAX: usize = 32;

/// Characters of a wrong text that a rejection repeats.
pub const CHARS_SHOWN: usize = 32;

/// Characters of a strategy's name (P65).
pub const STRATEGY_ID_CHARS_MAX: usize = 64;
