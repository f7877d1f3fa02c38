//! A query, its answer, and the token that cancels it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::JstDate;

use crate::error::RankError;
use crate::formula::Formula;
use crate::registry::BoundFormula;
use crate::split_reach::SplitReach;
use crate::text::excerpt;

/// Which end of the values comes first (specification 3, argument `order`). Rows without a sort
/// value come last in both orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RankOrder {
    /// Largest first.
    #[default]
    Desc,
    /// Smallest first.
    Asc,
}

impl RankOrder {
    /// The word of the contract.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Desc => "desc",
            Self::Asc => "asc",
        }
    }
}

impl fmt::Display for RankOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for RankOrder {
    type Err = RankError;

    fn from_str(text: &str) -> Result<Self, RankError> {
        match text {
            "desc" => Ok(Self::Desc),
            "asc" => Ok(Self::Asc),
            other => Err(RankError::Order(excerpt(other))),
        }
    }
}

/// What a query sorts by.
#[derive(Debug, Clone)]
pub enum SortBy {
    /// A formula of the client (specification 3, "sortBy formula").
    Formula(Formula),
    /// A sandboxed module with its parameters.
    Module(Arc<BoundFormula>),
}

impl SortBy {
    /// The formula; none for a module.
    #[must_use]
    pub fn formula(&self) -> Option<&Formula> {
        match self {
            Self::Formula(formula) => Some(formula),
            Self::Module(_) => None,
        }
    }

    /// The largest lag that is read, in business days; 0 where only the day itself is.
    #[must_use]
    pub fn reach(&self) -> u32 {
        match self {
            Self::Formula(formula) => formula.lags().last().copied().unwrap_or(0),
            Self::Module(bound) => bound.reach(),
        }
    }

    /// The formula, where a statement is asked for.
    pub(crate) fn statement_formula(&self) -> Result<&Formula, RankError> {
        self.formula().ok_or(RankError::NoStatement)
    }

    /// The same text for the same values.
    pub(crate) fn key(&self) -> String {
        match self {
            Self::Formula(formula) => formula.to_string(),
            Self::Module(bound) => bound.key(),
        }
    }
}

impl From<Formula> for SortBy {
    fn from(formula: Formula) -> Self {
        Self::Formula(formula)
    }
}

impl From<BoundFormula> for SortBy {
    fn from(bound: BoundFormula) -> Self {
        Self::Module(Arc::new(bound))
    }
}

impl fmt::Display for SortBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Formula(formula) => formula.fmt(f),
            Self::Module(bound) => bound.fmt(f),
        }
    }
}

/// A query: the top rows of each day of a range, by a formula or a module.
#[derive(Debug, Clone)]
pub struct RankQuery {
    /// First calendar date, included.
    pub from: JstDate,
    /// Last calendar date, included. Before `from` the answer is empty.
    pub to: JstDate,
    /// What to sort by.
    pub sort_by: SortBy,
    /// Which end comes first.
    pub order: RankOrder,
    /// Rows of each day, 1 to [`crate::limits::LIMIT_MAX`].
    pub limit: u32,
    /// Only these issues take part; all of them when `None`.
    pub codes: Option<Vec<String>>,
    /// Whether values of earlier days are adjusted for the splits between their day and the ranked
    /// one, so that a lag across a split compares what can be compared. Data that does not tell of
    /// splits is refused then ([`RankError::SplitsUnknown`]). Nothing later than the ranked day
    /// counts, so a result never knows the future. For a value `lag` business days before day D:
    ///
    /// | splits with an ex-date after the value's day and up to D | the value |
    /// |---|---|
    /// | none, as always with lag 0 | as stored |
    /// | some, all with a factor that is one | a price times the product of the factors, a volume divided by it |
    /// | some, one of an unknown factor | null |
    /// | it is not known whether there are some | null |
    ///
    /// A factor is the nearest fraction, as replay reads it: 1/3 of 0.33333 (`domain::adjustment`). So a price that
    /// did not move is exactly the same number, and volumes are whole shares.
    ///
    /// Nobody knows that across a business day that is not published, across a row that was left out or
    /// lost, where a row was adjusted by its source, and where one does not tell its factor; each case is a
    /// rule (U1 to U5) of the snapshot's splits, in `pricestore`.
    /// Closes and volumes of the answer are those of the ranked day, as stored.
    pub adjusted: bool,
}

/// One row of the answer (specification 3, `DailyRankingItem`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankRow {
    /// Index into [`Ranking::days`].
    pub day: u32,
    /// Index into [`Ranking::codes`].
    pub code: u32,
    /// Closing price in yen, as stored.
    pub close: f64,
    /// Volume in shares, as stored: a stored 0 is 0 here, though it is null in formulas.
    pub volume: Option<f64>,
    /// The value of the formula or module, not rounded.
    pub sort_value: Option<f64>,
    /// 1 to the query's limit within the day.
    pub rank: u32,
}

/// The answer to a query: rows by day, within a day by rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// The business days of the range, those without rows too.
    pub days: Vec<JstDate>,
    /// All codes of the snapshot in ascending order; rows hold indices into it.
    pub codes: Arc<[Box<str>]>,
    /// By day, within a day by rank; at most the query's limit for each day.
    pub rows: Vec<RankRow>,
    /// Number of the snapshot that the answer was read from.
    pub snapshot: u64,
    /// What tells which rows look back across a split; none where the data does not tell of splits.
    pub splits: Option<SplitReach>,
}

impl Ranking {
    /// Whether a lag of the formula or module reaches across a split of the row's issue, whether it
    /// was adjusted for that or not; none where the data does not tell of splits, or not of those days.
    #[must_use]
    pub fn spans_split(&self, row: &RankRow) -> Option<bool> {
        self.splits.as_ref().and_then(|splits| splits.spans(row))
    }
}

/// Cancels queries from another thread. Clones are the same token.
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A token that nobody has cancelled yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the queries that run with this token; they answer [`RankError::Cancelled`].
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether somebody cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// A guard that cancels when it is dropped, for the owner of a connection.
    #[must_use]
    pub fn cancel_on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }
}

/// Cancels its token when it is dropped.
#[derive(Debug)]
pub struct CancelOnDrop(CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[cfg(test)]
mod tests {
    use pricestore::limits::SHOWN_CHARS_MAX;

    use super::*;

    #[test]
    fn orders_are_the_two_words_of_the_contract() {
        for order in [RankOrder::Desc, RankOrder::Asc] {
            assert_eq!(order.to_string().parse::<RankOrder>().unwrap(), order);
        }
        let error = "DESC\n".parse::<RankOrder>().unwrap_err();
        assert_eq!(error.code(), "ORDER_INVALID");
        assert_eq!(error.to_string(), "order `DESC\u{fffd}` is not known; use desc or asc");
        let error = "x".repeat(40).parse::<RankOrder>().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("order `{}…` is not known; use desc or asc", "x".repeat(SHOWN_CHARS_MAX))
        );
    }

    #[test]
    fn a_dropped_guard_cancels() {
        let token = CancelToken::new();
        let other = token.clone();
        drop(token.cancel_on_drop());
        assert!(other.is_cancelled());
    }
}
