//! What the job needs from a store, and what the store answers.

use std::collections::{BTreeMap, BTreeSet};

use domain::{JstDate, TsNanos};
use pricestore::listed::ListedHistory;
use pricestore::{Published, SourceRows};

use crate::fetch_state::FetchState;
use crate::row::{DailyRow, IssueCode};
use crate::store::StoreError;

/// The exchange's calendar: dates, and whether it is open on each. What it does not have is not known.
pub type OpenDays = BTreeMap<JstDate, bool>;

/// The rows that the job fetched, and what it notes of them; only the job reads them.
pub trait PriceRows {
    /// Codes and the dates that are stored.
    ///
    /// # Errors
    /// When the database cannot be read.
    fn known(&mut self) -> Result<Known, StoreError>;

    /// The rows of a day, by code.
    ///
    /// # Errors
    /// When the database cannot be read.
    fn rows_of(&mut self, date: JstDate) -> Result<Vec<DailyRow>, StoreError>;

    /// The exchange's calendar as far as it is stored.
    ///
    /// # Errors
    /// When the database cannot be read.
    fn open_days(&mut self) -> Result<OpenDays, StoreError>;

    /// Puts a calendar in the place of the stored one. It is published with the rows.
    ///
    /// # Errors
    /// When it cannot be stored; then the one before is kept.
    fn store_open_days(&mut self, days: &OpenDays) -> Result<(), StoreError>;

    /// The lists of issues that are stored.
    ///
    /// # Errors
    /// When the database cannot be read.
    fn listed(&mut self) -> Result<ListedHistory, StoreError>;

    /// Puts lists in the place of the stored ones.
    ///
    /// # Errors
    /// When they cannot be stored; then those before are kept.
    fn store_listed(&mut self, lists: &ListedHistory) -> Result<(), StoreError>;

    /// What earlier runs have fetched; and why nothing is known of it, told once.
    ///
    /// # Errors
    /// When the database cannot be read.
    fn fetch_state(&mut self) -> Result<(FetchState, Option<String>), StoreError>;

    /// Inserts or replaces rows of whole days or issues, given in parts of one source each, removes those
    /// that are gone, and notes what has been fetched with them: all in one transaction, so that the state
    /// never claims rows that are not stored, nor the reverse. Which rows stay is said by the rules `better`, `factor`
    /// and `taken_back` of [`crate::RULES`]. Each value that changes is logged, with the time `at`. Tells what became
    /// of each part.
    ///
    /// # Errors
    /// When a row cannot be stored; then none is, and the state is the one before.
    fn commit(
        &mut self,
        parts: &[Part<'_>],
        state: &FetchState,
        at: TsNanos,
    ) -> Result<Vec<Applied>, StoreError>;

    /// Which sources the rows of the days that readers may see came from.
    ///
    /// # Errors
    /// When the database cannot be read.
    fn sources(&mut self) -> Result<Vec<SourceRows>, StoreError>;
}

/// Where the job keeps what it fetched, and what it publishes of that.
pub trait PriceStore {
    /// The rows, and what is noted of them.
    fn rows(&mut self) -> &mut dyn PriceRows;

    /// Whether a combined database is published.
    fn has_published(&self) -> bool;

    /// Publishes the stored lists as a database of their own, where they are not published yet; tells
    /// whether it did.
    ///
    /// # Errors
    /// When that fails, or a file of others is in the way; readers keep what was published before.
    fn publish_listed(&mut self) -> Result<bool, StoreError>;

    /// Publishes the combined database and the ranking's snapshot: the rows of all days that the
    /// state of fetching lets readers see.
    ///
    /// # Errors
    /// When that fails or was cancelled; readers keep what was published before.
    fn publish(&mut self, progress: &mut StoreProgress<'_>) -> Result<Published, StoreError>;

    /// Writes the per-issue databases: all, or what changed since a date.
    ///
    /// # Errors
    /// When that fails or was cancelled; each file is the old or the new one.
    fn split_to_individual(
        &mut self,
        from: Option<JstDate>,
        progress: &mut StoreProgress<'_>,
    ) -> Result<Split, StoreError>;

    /// What tells the ranking's snapshot of what this store published from any other; none where it is not
    /// known.
    ///
    /// # Errors
    /// When the database cannot be read.
    fn snapshot(&mut self) -> Result<Option<String>, StoreError> {
        Ok(None)
    }

    /// Holds every byte of what was published against what was written, and sees to it that the next
    /// publication makes again what is damaged or gone.
    ///
    /// # Errors
    /// When the database cannot be read or written.
    fn check_published(&mut self) -> Result<PublishedCheck, StoreError> {
        Ok(PublishedCheck::default())
    }

    /// Whether all that was published beside the combined database is still there, and nothing of it has to
    /// be made again.
    ///
    /// # Errors
    /// When the database cannot be read.
    fn is_whole(&mut self) -> Result<bool, StoreError> {
        Ok(true)
    }

    /// Ties what is published now, so that readers know what belongs together, and tells the name of
    /// the generation. Everything else that is published is in place. A store without readers has none.
    ///
    /// # Errors
    /// When that fails; readers have the generation before then.
    fn publish_generation(&mut self) -> Result<Option<String>, StoreError> {
        Ok(None)
    }
}

/// Gets how far a step is: what is done, of how much, and the step's name. `Break` ends it with
/// [`StoreError::Cancelled`].
pub type StoreProgress<'a> = dyn FnMut(u64, u64, &'static str) -> std::ops::ControlFlow<()> + 'a;

/// What is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// Every issue that has a row, ascending.
    pub codes: Vec<IssueCode>,
    /// Every date that has a row, and how many there are.
    pub dates: BTreeMap<JstDate, u64>,
}

/// Rows of one source that are stored together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Part<'a> {
    /// The rows that it gave.
    pub rows: &'a [DailyRow],
    /// Rows of the vendor or its files that it took back.
    pub gone: &'a [(JstDate, IssueCode)],
}

/// What became of rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Applied {
    /// Rows that were not there.
    pub inserted: u64,
    /// Rows that were there with other values.
    pub changed: u64,
    /// Rows that were there with the same values from a lesser source, and are of this one now.
    pub confirmed: u64,
    /// Rows that were there with the same values from the same or a better source.
    pub unchanged: u64,
    /// Rows that were there with other values from a better source, and stay.
    pub kept: u64,
    /// Rows that were there and are removed, because the vendor took them back.
    pub removed: u64,
    /// The first rows that were changed or removed, up to [`crate::limits::REPORT_CORRECTIONS_MAX`] of each.
    pub corrections: Vec<Correction>,
    /// The dates of rows that were inserted, changed, confirmed or removed.
    pub dates: BTreeSet<JstDate>,
}

/// A stored row that got other values, or was removed.
#[derive(Debug, Clone, PartialEq)]
pub struct Correction {
    /// Trading date (JST).
    pub date: JstDate,
    /// The issue.
    pub code: IssueCode,
    /// Where the row had come from, in the word that was stored with it; none where it did not tell.
    pub before: Option<String>,
    /// It was removed, because the vendor took it back.
    pub taken_back: bool,
    /// The columns that changed, with their old and new values.
    pub values: Vec<(&'static str, Option<f64>, Option<f64>)>,
}

impl Applied {
    /// The first of [`Self::dates`].
    #[must_use]
    pub fn first_changed(&self) -> Option<JstDate> {
        self.dates.first().copied()
    }
}

/// Published files that are not as they were written, by their paths below the data directory; they are made again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublishedCheck {
    /// They have other bytes.
    pub damaged: Vec<String>,
    /// They are no longer there.
    pub gone: Vec<String>,
}

/// What became of the per-issue databases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Split {
    /// Files that were written.
    pub written: u64,
    /// Files that were looked at and had the same content already.
    pub unchanged: u64,
    /// Files of issues that are no longer in the combined database.
    pub removed: u64,
}
