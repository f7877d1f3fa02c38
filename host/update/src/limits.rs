//! Every limit of the update job. What exceeds one is refused with an error that names it.

/// Weekdays that a first run looks back by default.
pub const DAYS_DEFAULT: u32 = 7;
/// Weekdays that a first run should look back (specification 3, "First run on a new environment").
pub const DAYS_FIRST_RUN: u32 = 1_000;
/// Weekdays, about a month, back to which published days are asked for again that the vendor has not given whole.
pub const AGAIN_DAYS_MAX: u32 = 20;
/// Complete days that each run asks the vendor again for, by default: it corrects what it gave by then.
pub const RECHECK_DAYS_DEFAULT: u32 = 3;
/// Most of these.
pub const RECHECK_DAYS_MAX: u32 = 20;
/// Weekdays that a run may look back: forty years.
pub const DAYS_MAX: u32 = 10_400;
/// The first day of the exchange that there is today, 1949-05-16: year, month and day. No day before it is asked
/// for.
pub const FIRST_DAY: (i32, u32, u32) = (1949, 5, 16);
/// Codes that a user may name. Tokyo lists about 4,400.
pub const CODES_MAX: usize = 20_000;

/// Pages of one answer.
pub const PAGES_MAX: usize = 100;
/// Characters of the key that leads to the next page.
pub const PAGE_KEY_CHARS_MAX: usize = 4_096;
/// Rows of one answer: a day of all issues, or one issue over eighty years.
pub const ANSWER_ROWS_MAX: usize = 20_000;
/// Highest price in yen, as in the vendor's files.
pub const PRICE_YEN_MAX: i64 = 1_000_000_000;
/// Most shares traded in an issue on a day.
pub const VOLUME_MAX: u64 = 1_000_000_000_000;
/// Highest adjustment factor; splits and reverse splits stay far inside.
pub const FACTOR_MAX: f64 = 100_000.0;

/// Percent of the issues that a day should have from which on it is complete.
pub const COMPLETE_PERCENT: u64 = 99;
/// The same beside a complete day that is years away: issues come and go.
pub const COMPLETE_PERCENT_MIN: u64 = 50;
/// Issues of a published day that must lose values at once before its answer is refused: a vendor may correct one
/// or two of a small day.
pub const LOST_ISSUES_MIN: usize = 3;
/// Complete days before a day whose prices and volume it is compared with.
pub const REPEATED_DAYS: usize = 10;
/// Days to the complete day before, up to which prices are compared.
pub const CHECKED_DAYS_MAX: u64 = 90;
/// How far a close is from that of the day before, in percent, before it counts as a jump. In this century half of
/// the market did so on about ten days.
pub const JUMP_PERCENT: i64 = 8;
/// How many times a price may be the last close, or the other way round, splits counted in: no day of the exchange
/// ever took one so far,
pub const FAR_TIMES: f64 = 10.0;
/// but for cheap issues, whose limits are wide: up to so many yen.
pub const FAR_YEN_MIN: i64 = 60;
/// Rows that show a finding.
pub const FINDING_ROWS_MAX: usize = 3;
/// Issues that a message names; more are counted.
pub const NAMED_ISSUES_MAX: usize = 5;
/// Percent of the rows of an answer that may be unusable and are left out; with more it is refused.
pub const ODD_PERCENT_MAX: usize = 1;
/// Days of a run up to which the list of issues of each is asked for; a longer run, which loads history, asks for
/// that of the first day of each week.
pub const DAILY_LISTS_MAX: usize = 60;
/// Changed values that are kept in the log of corrections; the oldest go first.
pub const CORRECTIONS_KEPT: u64 = 1_000_000;
/// Keys of a row of the vendor's answers; it documents some twenty.
pub const ROW_KEYS_MAX: usize = 128;
/// Bytes of an old report that are read: twice what one with all its corrections has.
pub const REPORT_BYTES_MAX: u64 = 16 << 20;
/// Rows that were left out that a report names; all are counted.
pub const REPORT_ROWS_MAX: usize = 100;
/// Rows that got other values, or were taken back, that a report names with old and new values: two days of
/// the whole market. More are counted.
pub const REPORT_CORRECTIONS_MAX: usize = 10_000;
/// Published files that a report names because they were damaged; more are counted.
pub const REPORT_FILES_MAX: usize = 10;
/// Bytes of the text of a row that was left out, in a report; a row of the vendor has about 300.
pub const ODD_ROW_BYTES_MAX: usize = 1_024;
/// Characters of a cell in the name of such a row.
pub const ODD_CELL_CHARS_MAX: usize = 20;
/// Rows of one local file that the reader of market data does not take, after which the file is
/// refused: more than four days of all issues.
pub const FILE_ODD_ROWS_MAX: usize = 20_000;

/// Failures of one source in a row after which it is not asked any more in this run.
pub const FAILURES_IN_A_ROW_MAX: u32 = 5;
/// Requests a minute to the vendor by default; its cheapest paid plan allows as many.
pub const VENDOR_RATE: u32 = 60;
/// Requests a minute to the web broker. One a second, so that request numbers taken from the clock
/// rise even when a run starts right after another.
pub const WEB_BROKER_RATE: u32 = 60;
/// Requests a minute to the public source by default.
pub const PUBLIC_RATE: u32 = 30;
/// The highest rate that can be set.
pub const RATE_MAX: u32 = 60_000;

/// Bytes of one cached answer, packed; a day has about 100 KB.
pub const CACHE_FILE_BYTES_MAX: u64 = 16 << 20;
/// Bytes of a header line of the vendor's files.
pub const HEADER_BYTES_MAX: usize = 4 << 10;
/// Rows of one local file; a month has about 100,000.
pub const FILE_ROWS_MAX: usize = 1_000_000;

/// Rows that are collected before they go to the store; about 20 days of all issues.
pub const BATCH_ROWS: usize = 100_000;
/// Issues that are collected before they go to the store, so that an interrupted run keeps them.
pub const BATCH_ISSUES: usize = 200;
/// Reports that are kept.
pub const REPORTS_KEPT: usize = 30;
/// Issues that a report names as failed; all are counted.
pub const REPORT_ISSUES_MAX: usize = 100;
/// Different reasons that a report gives for a day or an issue: one for each source.
pub const REASON_CHARS_MAX: usize = 500;
