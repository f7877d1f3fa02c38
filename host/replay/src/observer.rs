//! Who watches a request.

use std::time::Duration;

use crate::driver::RunPosition;

/// How often an observer is told of a run's progress at most.
pub const PROGRESS_EVERY: Duration = Duration::from_millis(50);

/// Is told how far a request is, and may end it. Every method does nothing unless it is written.
pub trait RunObserver {
    /// Files of so many bytes are about to be read for the range that was asked for; a few more may be looked
    /// at for what was before it.
    fn load_begins(&mut self, bytes: u64) {
        let _ = bytes;
    }

    /// A file is about to be read; its size in bytes.
    fn file_begins(&mut self, name: &str, bytes: u64) {
        let _ = (name, bytes);
    }

    /// So many bytes of the file are read, and so many rows of all codes.
    fn file_read(&mut self, bytes: u64, rows: u64) {
        let _ = (bytes, rows);
    }

    /// The file is done with.
    fn file_ends(&mut self) {}

    /// The run is about to begin over so many rows, or days where bars are replayed.
    fn run_begins(&mut self, total: u64, counts_days: bool) {
        let _ = (total, counts_days);
    }

    /// How far the run is; at most every few hundredths of a second, and at the end of each day.
    fn run_goes_on(&mut self, position: RunPosition) {
        let _ = position;
    }

    /// The strategy failed in a run with this window, and the run is made again with window 1, which tells where.
    /// With window 1 it failed in a batch, or where it was told of its orders in one step, and the run is made
    /// again without either.
    fn run_is_made_again(&mut self, window: u32) {
        let _ = window;
    }

    /// The run is over; its results may still be written.
    fn run_ends(&mut self) {}

    /// Whether the request should end; asked often.
    fn is_cancelled(&self) -> bool {
        false
    }
}
