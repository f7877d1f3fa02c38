//! What earlier runs of the job have done.

use std::collections::{BTreeMap, BTreeSet};

use domain::JstDate;

use crate::row::IssueCode;

/// What readers are told of a day of which an earlier run refused an answer (rule Z4 of the job).
pub(crate) const REFUSED_BEFORE: &str =
    "an earlier run refused an answer for it, and none was taken since";

/// What earlier runs have done. It is stored with the rows, in the same transactions; without it
/// nothing is lost, and days are fetched again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FetchState {
    /// Days of which all issues came in one piece; they are not asked for again.
    pub fetched: BTreeSet<JstDate>,
    /// Days of which rows were left out because they are odd (rule Q1 of [`crate::SourceKind`]); the
    /// vendor is asked for them again (rule B2 of the job).
    pub left_out: BTreeSet<JstDate>,
    /// Days of which nobody has anything, found out by asking; before all that are published, they need
    /// not be there (rule D6 of the job).
    pub closed: BTreeSet<JstDate>,
    /// Days that the user has accepted as the vendor has them: closed by its calendar alone, or withdrawn (rules D9,
    /// D10 and C12 of the job).
    pub settled: BTreeSet<JstDate>,
    /// Days that the user has accepted by their date, whatever is strange about them; and days
    /// without rows that are closed by the user's word (rules D12, E13, S1, S2, Z1 to Z4, Z6 to Z9 of the job).
    pub accepted: BTreeSet<JstDate>,
    /// Published days that are odd and were accepted so; others are not held against them (rule E13 of the job).
    pub odd: BTreeSet<JstDate>,
    /// Published days of the last weeks of which an answer was refused, and none was taken since (rule Z4 of the job).
    pub refused: BTreeSet<JstDate>,
    /// Complete days of the last weeks of which over a fifth of the issues got other prices, volumes or turnovers (rule Z7 of the
    /// job).
    pub rewritten: BTreeSet<JstDate>,
    /// How many issues of days of the last weeks got other prices, volumes or turnovers, all runs together (rule Z7 of the
    /// job).
    pub rewritten_issues: BTreeMap<JstDate, u64>,
    /// Days that are complete; they are published.
    pub complete: BTreeSet<JstDate>,
    /// Days that are published though they are not complete, because the user said so.
    pub forced: BTreeSet<JstDate>,
    /// Days where the standard of later ones begins anew, because the user has published them with few
    /// rows less than they should have (rule C10 of the job); they stay so once they are complete.
    pub begins: BTreeSet<JstDate>,
    /// Days that were due and are not complete, and how many rows each should have; 0 where that is
    /// not known.
    pub incomplete: BTreeMap<JstDate, u64>,
    /// Lists of issues that were not believed, by date, and how many issues each had; one of them may be
    /// stored for its names (rules L4 and L5 of the job).
    pub doubted: BTreeMap<JstDate, u64>,
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
    pub fn is_publishable(&self, date: JstDate) -> bool {
        self.complete.contains(&date) || self.forced.contains(&date)
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
