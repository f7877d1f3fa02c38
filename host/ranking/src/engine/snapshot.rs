//! One snapshot in use.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::JstDate;
use pricestore::DataDir;
use pricestore::generation::Generation;
use pricestore::grid::{Grid, GridFault, content_text};

use super::options::{EngineOptions, Verification};
use crate::error::RankError;
use crate::file_stamp::FileStamp;
use crate::store::Reference;

/// What a snapshot holds; nothing at all where none was published yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// Its number; a newer snapshot has a higher one.
    pub number: u64,
    /// Business days of the calendar.
    pub days: usize,
    /// Issue codes.
    pub codes: usize,
    /// First business day.
    pub first: JstDate,
    /// Last business day.
    pub last: JstDate,
    /// Why the published snapshot is not used, where it cannot be; nothing that a client may not read.
    pub refused: Option<String>,
}

/// A snapshot: its grid, and its tables in DuckDB once somebody asks for them.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) info: SnapshotInfo,
    /// Which one this process opened: a data folder that was made anew counts from 1 again.
    pub(super) opened: u64,
    /// What it holds, as a digest.
    pub(super) content: u64,
    pub(super) grid: Grid,
    /// The state of the grid's file when it was opened.
    pub(super) stamp: Option<FileStamp>,
    /// The last generation that it belongs to, once one is known.
    generation: Mutex<Option<String>>,
    data: DataDir,
    reference: Mutex<Option<Reference>>,
}

impl Snapshot {
    /// Opens snapshot `number`.
    pub(super) fn open(
        data: &DataDir,
        number: u64,
        options: &EngineOptions,
    ) -> Result<Self, RankError> {
        let refuse = |fault| snapshot_error(number, fault);
        let path = data.rank_grid(number);
        // First, so that a file that takes its place in between is seen to be another one.
        let stamp = FileStamp::at(&path).ok();
        let grid = Grid::open(&path, number).map_err(refuse)?;
        let (Some(first), Some(last)) = (grid.days().first().copied(), grid.days().last().copied())
        else {
            return Err(RankError::NoData(format!("snapshot {number} has no days")));
        };
        let info = SnapshotInfo {
            number,
            days: grid.days().len(),
            codes: grid.codes().len(),
            first,
            last,
            refused: None,
        };
        static OPENED: AtomicU64 = AtomicU64::new(1);
        let opened = OPENED.fetch_add(1, Ordering::Relaxed);
        let (content, data, reference) = (grid.content(), data.clone(), Mutex::new(None));
        let generation = Mutex::default();
        let snapshot = Self { info, opened, content, grid, stamp, generation, data, reference };
        if options.verification == Verification::Full {
            snapshot.grid.check_all(options.threads).map_err(refuse)?;
            drop(snapshot.reference(options)?);
        }
        Ok(snapshot)
    }

    /// The generation that it belongs to; none while its publication has not ended.
    pub(super) fn generation(&self) -> Option<String> {
        self.generation.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes the name of a generation that has this content. A later one may have the same prices, and
    /// other lists of issues.
    pub(super) fn take_name(&self, generation: &Generation) {
        if generation.snapshot_content == content_text(self.content) {
            let mut known = self.generation.lock().unwrap_or_else(PoisonError::into_inner);
            *known = Some(generation.generation.clone());
        }
    }

    /// The snapshot in DuckDB, opened and checked at its first use. One query at a time.
    pub(super) fn reference(
        &self,
        options: &EngineOptions,
    ) -> Result<ReferenceGuard<'_>, RankError> {
        let mut guard = self.reference.lock().unwrap_or_else(PoisonError::into_inner);
        if guard.is_none() {
            let number = self.info.number;
            let path = self.data.rank_db(number);
            *guard = Some(Reference::open(&path, number, options.threads)?);
        }
        Ok(ReferenceGuard(guard))
    }
}

/// A snapshot's tables in DuckDB, held by one query.
pub(super) struct ReferenceGuard<'a>(MutexGuard<'a, Option<Reference>>);

impl ReferenceGuard<'_> {
    pub(super) fn get(&self, info: &SnapshotInfo) -> Result<&Reference, RankError> {
        self.0.as_ref().ok_or_else(|| RankError::Damaged {
            number: info.number,
            what: "its tables are not open".to_owned(),
        })
    }
}

/// The error for a grid that cannot be used.
pub(super) fn snapshot_error(number: u64, fault: GridFault) -> RankError {
    match fault {
        GridFault::Damaged(what) => RankError::Damaged { number, what },
        GridFault::Unreadable(error) if error.kind() == io::ErrorKind::NotFound => {
            RankError::Damaged { number, what: "its grid is missing".to_owned() }
        }
        GridFault::Unreadable(_) => RankError::internal("opening the snapshot", fault),
    }
}
