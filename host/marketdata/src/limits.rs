//! Every limit of this crate. A file that exceeds one is refused with an error that names it.

use std::time::Duration;

/// Bytes of one line of text without its line feed. The vendor's lines have about 60.
pub const LINE_BYTES_MAX: usize = 4 << 10;
/// Bytes of text that are inflated and parsed at a time; stays inside the second-level cache.
pub const CHUNK_BYTES: usize = 256 << 10;
/// Bytes of the compressed file that are read at a time.
pub const INPUT_BYTES: usize = 256 << 10;
/// Bytes of text in one file. A month of the whole market has about 5 GB, so this is far away.
pub const TEXT_BYTES_MAX: u64 = 64 << 30;
/// Bytes of text that one compressed byte may grow to on average. Real files reach about 6; one
/// code repeated without end reaches 1,000.
pub const TEXT_PER_COMPRESSED_BYTE_MAX: u64 = 200;
/// Bytes of text that are free of that ratio, so that small files of repeated rows are readable.
pub const TEXT_RATIO_FREE_BYTES: u64 = 64 << 20;
/// Codes that can be picked out of one file in one pass; they are compared one after the other.
pub const SELECTED_CODES_MAX: usize = 64;
/// Codes in one file. Tokyo lists about 4,400.
pub const FILE_CODES_MAX: usize = 20_000;
/// Transaction ids that are remembered to find duplicates, over all codes of the running day:
/// 32 MiB. Only ids that do not rise need them.
pub const REMEMBERED_IDS_MAX: usize = 4 << 20;
/// Rows of all codes together that decoding a file keeps in memory before they go to a temporary
/// file: 3 MiB of trades, 6 MiB of bars. A month of most codes has fewer.
pub const SPILL_ROWS: usize = 1 << 17;
/// Highest price in yen. No share in Tokyo ever traded above 100 million.
pub const PRICE_YEN_MAX: i64 = 1_000_000_000;
/// Most shares in one row. No company has issued a tenth of this.
pub const ROW_QUANTITY_MAX: u64 = 1_000_000_000_000;
/// Characters of a damaged value that an error message shows.
pub const SHOWN_VALUE_CHARS: usize = 40;
/// Characters of a header line that an error message shows.
pub const SHOWN_HEADER_CHARS: usize = 160;
/// Compressed bytes between two progress reports.
pub const PROGRESS_BYTES: u64 = 2 << 20;
/// Codes in one sample.
pub const SAMPLE_CODES_MAX: usize = 4_000;
/// Trading days in one sample.
pub const SAMPLE_DAYS_MAX: u32 = 2_500;
/// Rows of one code on one day in a sample; three times the busiest real code.
pub const SAMPLE_TRADES_MAX: u32 = 1_000_000;
/// Rows of one row group of a Parquet file; all of them are in memory at once.
pub const ROW_GROUP_ROWS_MAX: usize = 1 << 20;
/// Rows of a Parquet file that is read as a whole; larger ones are read by row groups.
pub const TABLE_ROWS_MAX: u64 = 16 << 20;
/// Messages of bad rows that an audit keeps for each file; all are counted.
pub const AUDIT_EXAMPLES_MAX: usize = 10;
/// Rows of one row group of converted trades; what a conversion holds in memory.
pub const CONVERT_GROUP_ROWS: usize = 65_536;
/// The same of converted bars, which have up to 29 columns of text.
pub const CONVERT_BAR_GROUP_ROWS: usize = 8_192;
/// Bytes of an instrument table, a calendar or a master; a master of the whole market has 1.5 MB.
pub const TABLE_BYTES_MAX: u64 = 64 << 20;
/// Rows of an instrument table: every issue of Tokyo, listed otherwise every month for five years.
pub const INSTRUMENT_ROWS_MAX: usize = 300_000;
/// Files of one folder that are listed.
pub const INVENTORY_FILES_MAX: usize = 100_000;
/// Levels of each side of a recorded order book (specification 1, "DepthSnapshot mapping").
pub const BOARD_LEVELS_MAX: usize = 10;
/// Largest price or quantity of a recording in 1/10,000: what a decimal of 18 digits holds.
pub const BOARD_VALUE_MAX: i64 = 999_999_999_999_999_999;
/// Bytes of the name of a stream's session.
pub const SESSION_ID_BYTES_MAX: usize = 64;
/// Rows that wait for the recorder's thread: 13 seconds of 5,000 rows, about 30 MB of full order books.
/// A row that comes while so many wait is not kept, which is counted and told.
pub const RECORDER_QUEUE_ROWS: usize = 65_536;
/// Time between two events about rows that are not kept.
pub const RECORDER_TELL_TIME: Duration = Duration::from_secs(60);
/// How long the end of a recorder waits for files that the next start can make as well. The engine waits for
/// 3.5 seconds, of which the gateway may have taken one before.
pub const RECORDER_END_TIME: Duration = Duration::from_secs(2);
/// How long it waits for its threads after that; rows that are not on the disk then are counted as lost.
pub const RECORDER_GIVE_UP_TIME: Duration = Duration::from_millis(400);
/// How long a row may wait until it is on the disk.
pub const SYNC_TIME: Duration = Duration::from_secs(1);
/// Rows after which they are brought to the disk sooner.
pub const SYNC_ROWS: usize = 8_192;
/// Bytes of a block of a journal: [`SYNC_ROWS`] of the longest rows have 4 MB.
pub const JOURNAL_BLOCK_BYTES_MAX: usize = 8 << 20;
/// Rows of a journal, after which it becomes Parquet files: about two seconds of work.
pub const JOURNAL_ROWS_MAX: u64 = 131_072;
/// Age at which it does, however few rows it has.
pub const JOURNAL_TIME_MAX: Duration = Duration::from_secs(15 * 60);
/// Rows of a row group of recorded order books or trades: 6 MB in memory.
pub const BOARD_GROUP_ROWS: usize = 8_192;
/// Bytes that a recorder writes and removes again before it begins: without room for the longest block of a
/// journal ([`JOURNAL_BLOCK_BYTES_MAX`]) it does not.
pub const RECORDER_ROOM_BYTES: usize = JOURNAL_BLOCK_BYTES_MAX;
/// Journals of one number that are set aside because they cannot be read; each start finds one at most.
pub const SET_ASIDE_MAX: u32 = 99;
/// Journals and finished segments of a day: 1,300 million rows, or one for every 9 seconds.
pub const DAY_SEGMENTS_MAX: u32 = 9_999;
/// Days of a folder with recordings: eight years of business days.
pub const RECORDED_DAYS_MAX: usize = 2_000;
/// How far the venue's time of a trade may be from its receipt: the clocks of two machines differ by seconds.
/// A time further away is not that of the trade, and every later one of its symbol would be moved behind it.
pub const TRADE_CLOCK_OFF_MAX: Duration = Duration::from_secs(5 * 60);
/// Damaged segments of a day that are named; all are counted.
pub const DAMAGED_NAMED_MAX: usize = 10;
/// Symbols whose trades go into one file of the vendor's layout; a gateway pushes 50 at once.
pub const DAY_SYMBOLS_MAX: usize = 4_096;
