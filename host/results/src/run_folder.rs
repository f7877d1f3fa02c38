//! A run's folder from its first row to its page.

use std::io;
use std::path::Path;

use domain::InstrumentId;

use crate::output::{FolderError, FolderWriter, Manifest, REPORT_FILE};
use crate::report;
use crate::sink::{Record, RunSink};
use crate::totals::RunTotals;

/// Writes a run's folder while the run goes on, so that it is never half there and never in memory.
/// Dropped before [`Self::finish`], it leaves nothing behind.
pub struct RunFolder(FolderWriter);

impl RunFolder {
    /// Begins the folder of a run that trades `instruments`. A folder that holds an earlier run will
    /// be replaced; one that holds anything else is left alone.
    ///
    /// # Errors
    /// [`FolderError`]; nothing has changed then.
    pub fn create(folder: &Path, instruments: &[InstrumentId]) -> Result<Self, FolderError> {
        FolderWriter::create(folder, instruments).map(Self)
    }

    /// Completes the folder: summary, positions, manifest, the tables in their other forms and the
    /// page; then puts it in place.
    ///
    /// # Errors
    /// [`FolderError`]; the folder is as it was before the run.
    pub fn finish(self, manifest: &Manifest, totals: &RunTotals) -> Result<(), FolderError> {
        let complete = self.0.complete(manifest, totals)?;
        report::write(complete.path(), &complete.path().join(REPORT_FILE))?;
        complete.put_in_place()
    }
}

impl RunSink for RunFolder {
    fn take(&mut self, record: Record<'_>) -> io::Result<()> {
        self.0.take(record)
    }
}
