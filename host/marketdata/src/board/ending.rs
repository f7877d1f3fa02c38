//! How far an end is, for work that the next start can do as well.

use std::sync::atomic::{AtomicBool, Ordering};

use super::writer::RecorderError;

/// Rows between two looks at whether work is to be given up: a few milliseconds.
const ROWS_BETWEEN_LOOKS: usize = 4_096;

/// What threads of a recorder are told of its end.
#[derive(Debug, Default)]
pub(super) struct Ending {
    has_begun: AtomicBool,
    is_over: AtomicBool,
}

impl Ending {
    pub(super) fn begin(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
    }

    /// Nothing is waited for any more.
    pub(super) fn give_up(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// Counts rows, and looks now and then whether they are to be given up.
pub(super) struct Looks<'a> {
    is_given_up: &'a dyn Fn() -> bool,
    rows: usize,
}

impl<'a> Looks<'a> {
    pub(super) const fn new(is_given_up: &'a dyn Fn() -> bool) -> Self {
        Self { is_given_up, rows: 0 }
    }

    /// Is called for each row.
    ///
    /// # Errors
    /// [`RecorderError::GivenUp`]
    pub(super) fn row(&mut self) -> Result<(), RecorderError> {
        let is_look = self.rows.is_multiple_of(ROWS_BETWEEN_LOOKS);
        self.rows += 1;
        if is_look && (self.is_given_up)() { Err(RecorderError::GivenUp) } else { Ok(()) }
    }
}
