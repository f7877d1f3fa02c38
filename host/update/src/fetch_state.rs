//! What earlier runs of the job have done.

use std::collections::BTreeSet;

use domain::JstDate;

use crate::row::IssueCode;

/// What earlier runs have done. It is stored with the rows, in the same transactions; without it
/// nothing is lost, and days are fetched again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FetchState {
    /// Days that the vendor or its files gave whole, with each row and factor.
    pub fetched: BTreeSet<JstDate>,
    /// Days that are complete; they are published.
    pub complete: BTreeSet<JstDate>,
    /// Days that are published though they are not complete, because the user accepted them.
    pub accepted: BTreeSet<JstDate>,
    /// Days without rows that the user accepted: they are closed.
    pub closed: BTreeSet<JstDate>,
    /// From this date on, rows of published days may be stored that are not published yet.
    pub unpublished_from: Option<JstDate>,
    /// Whether the per-issue databases were all written once.
    pub split: bool,
    /// Fetching issue by issue that did not come to its end.
    pub pass: Option<IssuePass>,
}

impl FetchState {
    /// Whether readers may see the rows of a day.
    #[must_use]
    pub fn is_published(&self, date: JstDate) -> bool {
        self.complete.contains(&date) || self.accepted.contains(&date)
    }

    /// First and last day that readers may see.
    #[must_use]
    pub fn published_range(&self) -> Option<(JstDate, JstDate)> {
        let days = [&self.complete, &self.accepted];
        let first = days.iter().filter_map(|days| days.first()).min()?;
        let last = days.iter().filter_map(|days| days.last()).max()?;
        Some((*first, *last))
    }
}

/// Issues of which these dates were fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuePass {
    /// The day (JST) of the run; on another day everything is asked for again.
    pub made: JstDate,
    /// Trading dates (JST) that each issue is asked for.
    pub dates: BTreeSet<JstDate>,
    /// The issues that are done.
    pub codes: BTreeSet<IssueCode>,
}
