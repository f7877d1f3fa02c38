//! What a live engine received, kept in a folder: order books and trades of each day in Japan.
//!
//! ```text
//! <folder>/recorder.lock                            one recorder at a time
//! <folder>/board/<YYYYMMDD>/000001.journal          rows as they came, in blocks with checksums
//! <folder>/board/<YYYYMMDD>/000002.journal.unread   one that cannot be read, or not all of it, as it was
//! <folder>/board/<YYYYMMDD>/depth-000001.parquet    the order books of a journal that is full or old
//! <folder>/board/<YYYYMMDD>/trades-000001.parquet   its trades
//! <folder>/trades/equities_trades_<YYYYMMDD>.csv.gz the trades of a day in the vendor's layout
//! ```
//!
//! A day is that of the time of receipt. Rows are in the journal and on the disk a second after they came
//! at the latest ([`SYNC_TIME`](crate::limits::SYNC_TIME)). A journal becomes Parquet files, which are
//! written aside and renamed, and is removed after that; so a recorder that starts after a crash makes the
//! files of every journal that is left, and each row that was on the disk is there once. A segment counts
//! as finished when its journal is gone.
//!
//! [`Recorder`] is what an engine has: one thread that brings rows to the disk and makes the Parquet files, and
//! one that writes the trades of days, which may take long and keeps no row from the disk. [`Writer`] is what
//! the first of them does, [`Journal`] and [`read_journal`] the
//! journal, [`days`] and [`DayFolder`] are for those who read.

mod day_files;
mod encode;
mod ending;
mod folder;
mod journal;
mod recorder;
mod row;
mod same_file;
mod segment;
mod table;
mod trades_file;
mod writer;

pub use folder::{BoardFolder, DayFolder, FinishedSegment, days};
pub use journal::{Journal, JournalError, JournalSummary, read_journal};
pub use recorder::{NotRecorded, Recorder, RecorderCounts};
pub use row::BoardRow;
pub use segment::SealReport;
pub use table::{depth_fields, read_depth, read_trade_prints, trade_print_fields};
pub use trades_file::{TradesFileReport, make_trades_file};
pub use writer::{RecorderError, RecorderEvent, Writer};

#[cfg(test)]
mod tests;
