//! Every limit of the store, in one place.

/// Rows that one transaction takes: a market of 4,000 issues for a year. They are all in memory
/// before the first is stored; a longer history is stored in parts.
pub const ROWS_AT_ONCE_MAX: usize = 1_000_000;
/// Threads that turn rows into columns and bring these into the database engine.
pub const LOAD_THREADS: usize = 2;
/// Rows that are worth a thread.
pub const LOAD_ROWS_MIN: usize = 50_000;
/// Rows that stand behind those by issue and date in the combined database, before it is written whole again:
/// a block of the engine's, which is read for each issue beside its own blocks.
pub const COMBINED_LATER_ROWS_MAX: u64 = 122_880;
/// Days of which these rows are: each leaves some free blocks in the file, a tenth of it in a month.
pub const COMBINED_LATER_DAYS_MAX: u64 = 20;
/// Threads that write per-issue databases. More than cores, because each waits for the disk.
pub const SPLIT_THREADS_MAX: usize = 8;
/// Per-issue files after which they get their names and it is noted what is in them. As many more wait
/// meanwhile, so a job that is killed writes at most twice so many again, and what its threads had begun.
pub const SPLIT_NOTE_EVERY: usize = 256;
/// Bytes of the notes of published boards: 4,400 issues and eight years of days take 1 MB.
pub(super) const BOARD_NOTES_BYTES_MAX: u64 = 16 << 20;
/// Characters of the report about a segment that cannot be read.
pub(super) const BOARD_WHY_CHARS_MAX: usize = 500;
/// Memory of DuckDB while it sorts the combined database, as DuckDB writes it; ten years of 4,000
/// issues need about a half. The rest goes to `work/spill`.
pub const ENGINE_MEMORY: &str = "2GB";
/// Seconds that a job waits for another publication into its data directory; one of ten years takes about
/// 30.
pub const PUBLICATION_WAIT_S: u64 = 300;
/// Milliseconds after which it looks again.
pub const PUBLICATION_WAIT_STEP_MS: u64 = 250;
/// Percent of the per-issue databases that a job removes at once without being told that it may.
pub(super) const REMOVED_PERCENT_MAX: usize = 1;
