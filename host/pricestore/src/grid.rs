//! The dense grid of one snapshot: every column of every issue on every business day, in one
//! memory-mapped file. A lag on the calendar is a fixed distance in it, whatever rows the source
//! lacks. How a snapshot is made: [`crate::publish`].

mod format;
mod splits;
mod writer;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::JstDate;
use domain::formula::Column;
use domain::threads::in_parallel;
use mmap_guard::{FileData, map_file};
use xxhash_rust::xxh3::xxh3_64;

use format::{Layout, Tail};

pub use splits::{Split, Splits, UnknownDays};
pub use writer::GridWriter;

/// Columns of the grid.
pub const COLUMNS: usize = Column::ALL.len();

/// Bits of a cell without a value.
const NULL_BITS: u64 = 0x7ff8_0000_0000_0000;
/// Bits of a cell whose stored value is 0. In formulas that is null (specification 3, formula
/// rule 4), and as arithmetic sees both as "not a number" no formula has to look; only
/// [`stored_value`] tells them apart.
const ZERO_BITS: u64 = NULL_BITS | 1;

/// A value as a cell holds it. Only finite values are values.
pub fn cell(value: Option<f64>) -> f64 {
    match value {
        Some(0.0) => f64::from_bits(ZERO_BITS),
        Some(value) if value.is_finite() => value,
        Some(_) | None => f64::from_bits(NULL_BITS),
    }
}

/// The value that was stored in a cell, a 0 included.
pub fn stored_value(cell: f64) -> Option<f64> {
    match cell.to_bits() {
        ZERO_BITS => Some(0.0),
        _ => (!cell.is_nan()).then_some(cell),
    }
}

/// The grid of one snapshot, mapped into memory. Its file is written once, renamed into place and
/// never changed, so the mapped bytes stay as they were checked.
///
/// That holds for us. Whoever else writes into the file in its place (`cp` or `rsync --inplace` over it)
/// changes the memory of every program that has mapped it, and whoever shortens it ends them: the system
/// sends SIGBUS to who reads a page that the file does not have any more, and no program can answer for
/// that. To put another file there, write it beside and rename it, as all of ours do: then the mapped one
/// stays as it is until its last reader has gone.
pub struct Grid {
    map: FileData,
    layout: Layout,
    days: Vec<JstDate>,
    codes: Arc<[Box<str>]>,
    splits: Option<Arc<Splits>>,
    digests: Vec<u64>,
    /// One flag for each stripe: its digest was found right.
    checked: Vec<AtomicBool>,
}

impl Grid {
    /// Maps the file of snapshot `number` and reads its calendar and codes. Stripes are checked
    /// when they are first used, or all at once by [`Grid::check_all`].
    pub fn open(path: &Path, number: u64) -> Result<Self, GridFault> {
        // Whoever shortens this file later ends the process; see above.
        let map = atomic_file::must_be_file(path).and_then(|()| map_file(path));
        let map = map.map_err(GridFault::Unreadable)?;
        let layout = Layout::read(&map, number).map_err(GridFault::Damaged)?;
        let Tail { days, codes, digests, splits } =
            Tail::read(&map, &layout).map_err(GridFault::Damaged)?;
        let checked = std::iter::repeat_with(AtomicBool::default).take(digests.len()).collect();
        let (codes, splits) = (codes.into(), splits.map(Arc::new));
        Ok(Self { map, layout, days, codes, splits, digests, checked })
    }

    /// What tells this content from any other: see [`content_of`].
    pub fn content(&self) -> u64 {
        format::digest_of(&self.map).unwrap_or_default()
    }

    /// The calendar: the distinct dates of the source, ascending.
    pub fn days(&self) -> &[JstDate] {
        &self.days
    }

    /// The codes, ascending by their bytes.
    pub fn codes(&self) -> &Arc<[Box<str>]> {
        &self.codes
    }

    /// The splits; none where the source does not tell of them, or the snapshot is older than that.
    pub fn splits(&self) -> Option<&Arc<Splits>> {
        self.splits.as_ref()
    }

    /// One column of all codes on one day; empty for days outside the calendar.
    pub fn stripe(&self, day: usize, column: Column) -> &[f64] {
        if day >= self.days.len() {
            return &[];
        }
        let start = self.layout.stripe_start(day, column.index());
        let bytes = self.map.get(start..start + self.layout.codes * size_of::<f64>());
        bytes.and_then(|bytes| bytemuck::try_cast_slice(bytes).ok()).unwrap_or_default()
    }

    /// Holds a stripe against its digest, once.
    pub fn check(&self, day: usize, column: Column) -> Result<(), GridFault> {
        let index = day * COLUMNS + column.index();
        let (Some(flag), Some(&digest)) = (self.checked.get(index), self.digests.get(index)) else {
            return Err(GridFault::Damaged(format!("it has no business day {day}")));
        };
        if flag.load(Ordering::Relaxed) {
            return Ok(());
        }
        if xxh3_64(bytemuck::cast_slice(self.stripe(day, column))) != digest {
            let date = self.days.get(day).copied().unwrap_or_default();
            return Err(GridFault::Damaged(format!(
                "{column} of {date} was changed after it was written"
            )));
        }
        flag.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Holds every stripe against its digest, with so many threads.
    pub fn check_all(&self, threads: usize) -> Result<(), GridFault> {
        let days = self.days.len();
        let part = days.div_ceil(threads.max(1)).max(1);
        let parts = (0..days).step_by(part).map(|start| {
            let days = start..(start + part).min(days);
            move || self.check_days(days)
        });
        in_parallel(parts).into_iter().try_for_each(|part| match part {
            Ok(outcome) => outcome,
            Err(_) => Err(GridFault::Damaged("checking it failed".to_owned())),
        })
    }

    fn check_days(&self, mut days: std::ops::Range<usize>) -> Result<(), GridFault> {
        days.try_for_each(|day| {
            Column::ALL.into_iter().try_for_each(|column| self.check(day, column))
        })
    }
}

impl std::fmt::Debug for Grid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grid")
            .field("days", &self.days.len())
            .field("codes", &self.codes.len())
            .finish_non_exhaustive()
    }
}

/// What tells the content of a grid's file from that of any other: the digest that its header ends
/// with, which covers its number, its calendar, its codes and the digests of all its cells. Only the
/// header is read.
pub fn content_of(path: &Path) -> Result<u64, GridFault> {
    let mut header = Vec::new();
    let file = atomic_file::open_to_read(path).map_err(GridFault::Unreadable)?;
    let most = format::HEADER_BYTES as u64;
    file.take(most).read_to_end(&mut header).map_err(GridFault::Unreadable)?;
    let short = || GridFault::Damaged(format!("it has only {} bytes", header.len()));
    format::digest_of(&header).ok_or_else(short)
}

/// How a content is written wherever a file names it: 16 digits of base 16.
#[must_use]
pub fn content_text(content: u64) -> String {
    format!("{content:016x}")
}

/// Why a grid cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GridFault {
    /// The file cannot be opened or mapped.
    #[error("the grid's file cannot be read: {0}")]
    Unreadable(std::io::Error),
    /// The file is not what its writer wrote.
    #[error("{0}")]
    Damaged(String),
}

#[cfg(test)]
mod tests;
