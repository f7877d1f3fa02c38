//! What earlier runs of the job have done.

use std::collections::BTreeSet;

use domain::JstDate;

use crate::row::IssueCode;

/// What earlier runs have done. It is stored with the rows, in the same transactions; without it
/// nothing is lost, and days are fetched again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FetchState {
    /// Days of which all issues are stored.
    pub fetched: BTreeSet<JstDate>,
    /// Weekdays without trading.
    pub closed: BTreeSet<JstDate>,
    /// From this date on, rows may be stored that are not published yet.
    pub unpublished_from: Option<JstDate>,
    /// Whether the per-issue databases were all written once.
    pub split: bool,
    /// Fetching issue by issue that did not come to its end.
    pub pass: Option<IssuePass>,
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
