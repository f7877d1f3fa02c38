//! Every limit of the update job. What exceeds one is refused with an error that names it.

/// Weekdays that a first run looks back by default.
pub const DAYS_DEFAULT: u32 = 7;
/// Weekdays that a first run should look back (specification 3, "First run on a new environment").
pub const DAYS_FIRST_RUN: u32 = 1_000;
/// Weekdays, about a month, back to which a run asks the vendor again for days that a lesser source gave
/// while it was down, and for those of which an odd row was left out: one question for each.
pub const BETTER_DAYS_MAX: u32 = 20;
/// Days one after the other for which the vendor may fail before no more are asked for again.
pub const BETTER_FAILURES_MAX: u32 = 2;
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

/// Percent of the rows that a day should have from which on it is complete.
pub const COMPLETE_PERCENT: u64 = 99;
/// Complete days before a day among which one must have as many rows as the last, where there is no list of
/// issues, and whose most rows tell of a slow sinking.
pub const COMPLETE_DAYS_COMPARED: usize = 20;
/// Business days in a row that the vendor's calendar alone closes from which on they are a gap: no holiday that the
/// law does not know was ever so long.
pub const CLOSED_ROW_MIN: usize = 3;
/// Rows of published days that came issue by issue and wait to be judged together; about 200 days of all issues.
pub const HELD_ROWS_MAX: usize = 1_000_000;
/// Percent of the most rows of these days below which the last complete day is told as a doubt.
pub const SUNK_PERCENT: u64 = 95;
/// Complete days after a day that it is held against, where there is none before it or it is published
/// all the same: a week.
pub const DAYS_AFTER_COMPARED: usize = 5;
/// Days beyond which complete days or a list say nothing of a day: issues come and go.
pub const NEAR_DAYS_MAX: u64 = 300;
/// First days of all that wait for those after them before they are complete.
pub const FIRST_DAYS_MAX: usize = 5;
/// Percent of the rows that it should have which a day must have so that the standard of later ones
/// begins anew with it once the user has published it; a day with fewer is that of an outage.
pub const BEGIN_PERCENT: u64 = 90;
/// Percent of the issues by which a list may shrink and be believed by its own day's rows or a later list; with
/// more the user has to accept it. No exchange ever removed so many at once.
pub const LIST_SHRINK_PERCENT_MAX: u64 = 5;
/// Percent of a list's issues of which rows may be there that the list does not have; with more the day is odd.
pub const UNLISTED_PERCENT_MAX: u64 = 1;
/// Issues that must be odd in the same way before their day is: fewer are no market.
pub const ODD_DAY_ISSUES_MIN: u64 = 30;
/// Percent of the priced issues that must have a volume; with fewer the day is odd: who has a price was traded.
pub const VOLUME_PERCENT_MIN: u64 = 90;
/// The least share of a day's rows with a price, in percent of that share on the complete day before it; with
/// less the day is strange.
pub const PRICED_PERCENT_MIN: u64 = 95;
/// The same from which on the day is odd.
pub const ODD_PRICED_PERCENT_MIN: u64 = 50;
/// Percent of the issues whose close may be beyond any price limit from that of the complete day before; with more
/// the day is odd. Each of them makes it strange.
pub const JUMPS_PERCENT_MAX: u64 = 20;
/// How far a close may be from that of the day before, splits counted in, in percent of the width of the daily limits:
/// most splits in two that no factor tells are further, and a day whose limits are wider, as after days without a
/// trade, is worth a look.
pub const JUMP_WIDTH_PERCENT: i64 = 150;
/// How many times a price of one day may be the last close before it, or the other way round, splits counted in: no
/// day of the exchange ever took one so far,
pub const FAR_TIMES: f64 = 10.0;
/// but for cheap issues, whose limits are wide: up to so many yen.
pub const FAR_YEN_MIN: i64 = 60;
/// Percent of the issues that may have a price beyond the daily limits on one day before it is told as a doubt: those
/// whose limits the exchange has widened, and splits that are not told yet.
pub const BEYOND_PERCENT_MAX: u64 = 1;
/// Percent of the known issues that may be new in the lists of days that come issue by issue: more are no new
/// listings, and a question for each is too much.
pub const NEW_ISSUES_PERCENT_MAX: usize = 5;
/// How many times a volume may be another one, where those of single issues are held against each other, or those of
/// a correction.
pub const VOLUME_TIMES: u64 = 100;
/// Percent of the traded issues whose volumes may be so far from those of the day before; with more the day is odd,
pub const FAR_VOLUMES_PERCENT_MAX: u64 = 20;
/// and with more than these it is told as a doubt. Issues that trade a few times a day do it by chance.
pub const STRANGE_VOLUMES_PERCENT_MAX: u64 = 5;
/// How many times a volume may be another one, of half of all traded issues.
pub const MARKET_VOLUME_TIMES: u64 = 10;
/// Calendar days to the complete day before, up to which closes and prices are held against it. A vendor that is wrong
/// for weeks does not become right by waiting.
pub const BESIDE_DAYS_MAX: u64 = 92;
/// Days in a row that were odd and that the user has accepted, from which on the market is so: later days are held
/// against them.
pub const ACCEPTED_ODD_DAYS: usize = 5;
/// Complete days before a day whose prices and volume it is held against.
pub const REPEATED_DAYS: usize = 10;
/// Issues of a day whose four prices are looked for in all days that are stored,
pub const LOOKED_FOR_ISSUES: usize = 50;
/// and how many of them a day must have before the whole of it is held against.
pub const LOOKED_FOR_FOUND_MIN: u64 = 3;
/// Percent of the traded issues that may have prices and volume of another day; with more the day is odd. Issues
/// that trade a few times a day do it by chance.
pub const REPEATED_PERCENT_MAX: u64 = 10;
/// Percent of the traded issues that may have the close of the day before; with more the day is odd. On quiet days of
/// low prices a sixth of the market has.
pub const SAME_CLOSES_PERCENT_MAX: u64 = 40;
/// Percent of the traded issues whose turnover may not fit to their prices and volume; with more the day is odd.
pub const TURNOVERS_PERCENT_MAX: u64 = 20;
/// How many times a turnover may be further away than the lowest and highest price allow: it is counted of the same
/// trades, and some sources round it.
pub const TURNOVER_TIMES: f64 = 1.25;
/// Percent of the priced issues whose prices may be on no tick of the exchange; with more the day is odd.
pub const OFF_TICK_PERCENT_MAX: u64 = 20;
/// Percent of the traded issues that may have the volume of the day before; with more the day is odd. Issues that
/// trade a few times a day do it by chance.
pub const SAME_VOLUMES_PERCENT_MAX: u64 = 40;
/// The least share of the traded issues whose prices moved, or that have a turnover, in percent of that share on the
/// complete day before; with less the day is odd.
pub const TRADED_SHARE_PERCENT_MIN: u64 = 50;
/// Percent of the issues of the day before that may have no row; with more the day is odd,
pub const REPLACED_PERCENT_MAX: u64 = 10;
/// and with more than these it is told as a doubt: hundreds of issues are never delisted at once.
pub const GONE_PERCENT_MAX: u64 = 2;
/// Percent of the issues whose prices moved that may close at their open, high or low; with more, and twice the share
/// of the day before, the day is odd.
pub const EQUAL_PRICES_PERCENT_MAX: u64 = 60;
/// How far the closes of half of all issues may be from those of the day before, in percent, before it is told as a
/// doubt: in this century the market fell or rose by more on about ten days.
pub const MARKET_MOVE_PERCENT_MAX: u64 = 8;
/// The same beside a day that is further away.
pub const FAR_MARKET_MOVE_PERCENT_MAX: u64 = 20;
/// Percent of the traded issues that may have the prices and the volume of another one; with more the day is odd.
/// Issues that trade once or twice a day do it by chance.
pub const ALIKE_PERCENT_MAX: u64 = 20;
/// Percent of the issues that may split on one day; with more the day is odd.
pub const SPLITS_PERCENT_MAX: u64 = 20;
/// Issues of a day that a doubt names; more are counted.
pub const NAMED_ISSUES_MAX: usize = 5;
/// Lists that were not believed of which a job remembers how many issues they had.
pub const DOUBTED_LISTS_MAX: usize = 20;
/// Percent of a day's rows that may be odd and are left out; with more the day is refused.
pub const ODD_PERCENT_MAX: usize = 1;
/// Percent of the vendor's rows of a day that it may take back at once; more stay, which is told.
pub const TAKEN_BACK_PERCENT_MAX: usize = 1;
/// Issues of a published day that must lose values at once before its answer is refused, beside the percent
/// above: a vendor may correct one or two of a small day.
pub const LOST_ISSUES_MIN: usize = 3;
/// Days of a run up to which the list of issues of each is asked for; a longer run, which loads
/// history, asks for the first of each week and the last, and holds the others against the nearest of these and the
/// day before.
pub const MASTER_DAYS_MAX: usize = 60;
/// Keys of a row of the vendor's answers; it documents some twenty.
pub const ROW_KEYS_MAX: usize = 128;
/// Bytes of an old report that are read: twice what one with all its corrections has.
pub const REPORT_BYTES_MAX: u64 = 16 << 20;
/// Percent of a published day's issues that may get other prices, volumes or turnovers in 20 weekdays without a word.
pub const REWRITTEN_PERCENT_MAX: u64 = 20;
/// Rows that were left out, and doubts, that a report names; all are counted.
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
/// Calendar days after which an empty day stays empty: nobody publishes prices that late.
pub const EMPTY_FINAL_DAYS: u64 = 7;
/// Bytes of the file of fetched days that earlier versions wrote; forty years take 130 KB, an open
/// pass 100 KB.
pub const OLD_STATE_BYTES_MAX: u64 = 4 << 20;
/// Reports that are kept.
pub const REPORTS_KEPT: usize = 30;
/// Issues that a report names as failed; all are counted.
pub const REPORT_ISSUES_MAX: usize = 100;
/// Different reasons that a report gives for a day or an issue: one for each source.
pub const REASON_CHARS_MAX: usize = 500;
