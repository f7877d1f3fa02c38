//! One snapshot in use.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{fs, io};

use domain::JstDate;
use pricestore::DataDir;
use pricestore::generation::{Generation, GenerationFileName};
use pricestore::grid::{Grid, GridFault, content_text};

use super::options::{EngineOptions, Verification};
use crate::error::RankError;
use crate::file_stamp::FileStamp;
use crate::query::CancelToken;
use crate::store::{ReferenceAnswer, Statement, answer};

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

/// A snapshot: its grid, and where the combined database is that it was made of.
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
        if options.verification == Verification::Full {
            grid.check_all(options.threads).map_err(refuse)?;
        }
        let (content, data, generation) = (grid.content(), data.clone(), Mutex::default());
        Ok(Self { info, opened, content, grid, stamp, generation, data })
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

    /// Keeps the name that the same content had in `before`, where its file was replaced.
    pub(super) fn keep_name(&self, before: &Self) {
        if self.content == before.content {
            *self.generation.lock().unwrap_or_else(PoisonError::into_inner) = before.generation();
        }
    }

    /// The answer of the reference statement, from the combined database that this snapshot was made of.
    pub(super) fn by_sql(
        &self,
        statement: &Statement<'_>,
        options: &EngineOptions,
        cancel: &CancelToken,
    ) -> Result<ReferenceAnswer, RankError> {
        let replaced = || RankError::Replaced(self.info.number);
        self.has_source().then_some(()).ok_or_else(replaced)?;
        let answer = answer(statement, &self.data, options.threads, cancel, options.timeout);
        // One that was put in its place meanwhile may have been opened.
        self.has_source().then_some(answer).ok_or_else(replaced)?
    }

    /// Whether the combined database is the file of the generation that this snapshot belongs to.
    fn has_source(&self) -> bool {
        let name = GenerationFileName::Combined;
        let generation = Generation::load(&self.data).ok().flatten();
        let tied = generation.filter(|one| one.snapshot_content == content_text(self.content));
        let known = tied.as_ref().and_then(|one| one.file(&name.path()));
        let found = fs::metadata(name.on_disk(&self.data)).ok();
        known.zip(found).is_some_and(|(known, found)| known.is_file(&found))
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
