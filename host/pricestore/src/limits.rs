//! Every limit of the price store, in one place. What exceeds one is refused with an error that
//! names it.

/// Characters of a code that a message repeats.
pub const SHOWN_CHARS_MAX: usize = 32;

/// Business days of a snapshot (forty years).
pub const SNAPSHOT_DAYS_MAX: usize = 10_000;
/// Issues of a snapshot.
pub const SNAPSHOT_CODES_MAX: usize = 20_000;
/// Cells of a snapshot, days times issues: 4.8 GB of columns.
pub const SNAPSHOT_CELLS_MAX: usize = 120_000_000;
/// Cells of a block of days, in which a snapshot is made: 140 MB of columns. One block is in memory at a
/// time, and the source is read once for each.
pub const SNAPSHOT_BLOCK_CELLS: usize = 3_500_000;
/// Splits of a snapshot: ten of each of the most issues, 3 MB. A source with more has something else in
/// its column.
pub const SNAPSHOT_SPLITS_MAX: usize = 200_000;
/// Spans of days of an issue on which it is not known whether it was split: some 200 outages of the
/// vendor, 12 MB.
pub const SNAPSHOT_UNKNOWN_MAX: usize = 1_000_000;
/// Bytes of one issue code.
pub const CODE_BYTES_MAX: usize = 16;
/// Snapshots that stay on disk: the current one and the one before, for queries that still run.
pub const SNAPSHOTS_KEPT: u64 = 2;
/// Bytes of the file that says how complete the data is; a day that is not complete takes 80.
pub const DATASET_BYTES_MAX: u64 = 4 << 20;
/// Bytes of the file that ties a generation: a file in it takes 140, and what [`DATASET_BYTES_MAX`]
/// allows comes on top.
pub const GENERATION_BYTES_MAX: u64 = 12 << 20;
/// Threads that make digests of files.
pub const DIGEST_THREADS_MAX: usize = 4;
/// Files that are worth a thread; most have some 80 KB.
pub const DIGEST_FILES_MIN: usize = 64;
/// The highest number of a snapshot: one each second for thirty million years. What has a higher one in its
/// name was not written by this program.
pub const SNAPSHOT_NUMBER_MAX: u64 = 1_000_000_000_000_000;
/// Bytes of the file that says who holds a folder.
pub const HOLDER_BYTES_MAX: u64 = 256;
/// Bytes of the file that names the current snapshot.
pub const CURRENT_BYTES_MAX: u64 = 64;
/// Bytes of a text of the list of issues; the longest English name has some 120 letters.
pub const LISTED_TEXT_BYTES_MAX: usize = 300;
/// Issues of all lists together; ten years have some 5,500.
pub const LISTED_CODES_MAX: usize = 20_000;
/// Spans in which lists say the same of an issue; ten years have some 30,000.
pub const LISTED_SPANS_MAX: usize = 200_000;
