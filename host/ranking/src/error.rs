//! What can go wrong with a query, with a code that clients may rely on. No message holds a path
//! or SQL text; where a cause has such text it is the error's source, for the operator's log only.

use std::error::Error;
use std::time::Duration;

use domain::JstDate;
use domain::formula::FormulaFault;

use crate::formula::FormulaError;

/// The cause of an internal failure; its text may name files and is not for clients.
pub type Cause = Box<dyn Error + Send + Sync>;

/// Why a query has no answer. Texts are for the client; [`RankError::code`] is stable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RankError {
    /// The formula is not one (specification 3, "sortBy formula").
    #[error("{0}")]
    Formula(#[from] FormulaError),
    /// No listed module has this name.
    #[error("{0}")]
    FormulaUnknown(String),
    /// A parameter of a module is unknown or out of its range.
    #[error("{0}")]
    FormulaParams(String),
    /// A module or the list of modules cannot be used.
    #[error("{0}")]
    FormulaRefused(String),
    /// A module failed.
    #[error("formula `{name}` failed{}: it {}", on(*date), source.kind)]
    FormulaFault {
        /// Its name in the list.
        name: String,
        /// The day that it was to compute; none while it was made.
        date: Option<JstDate>,
        /// What happened, with the module's frames.
        source: Box<FormulaFault>,
    },
    /// A module is no formula text, so there is no statement for it.
    #[error("a formula module has no statement; only a formula text has one")]
    NoStatement,
    /// The order is neither `desc` nor `asc`.
    #[error("order `{0}` is not known; use desc or asc")]
    Order(String),
    /// The limit is out of its range.
    #[error("limit {asked} is not allowed; it must be from 1 to {max}")]
    Limit {
        /// What was asked for.
        asked: u64,
        /// The largest that is allowed.
        max: u32,
    },
    /// The range of days cannot be used.
    #[error("{0}")]
    Range(String),
    /// A named code is not in the snapshot, or there are too many.
    #[error("{0}")]
    Codes(String),
    /// Adjusted values are asked for, and the data does not tell of splits.
    #[error(
        "the data has no splits, so prices cannot be adjusted; if its table daily has a column \
         adjustment_factor, run `kumiki rank publish`"
    )]
    SplitsUnknown,
    /// The answer would not fit into the memory that the engine may use.
    #[error(
        "the answer could have {rows} rows and at most {rows_max} fit into memory; ask for a \
         shorter range or a smaller limit"
    )]
    TooLarge {
        /// Rows that the answer could have.
        rows: u64,
        /// Rows that fit.
        rows_max: u64,
    },
    /// The time limit passed, waiting included.
    #[error(
        "the query did not end within {} ms; ask for a shorter range or try again later",
        limit.as_millis()
    )]
    Timeout {
        /// The time limit.
        limit: Duration,
    },
    /// The caller gave up.
    #[error("the query was cancelled")]
    Cancelled,
    /// Too many queries wait already.
    #[error("{waiting} queries are waiting already; try again later")]
    Busy {
        /// Queries in the queue.
        waiting: usize,
    },
    /// There is nothing to rank.
    #[error("{0}")]
    NoData(String),
    /// The snapshot on disk is not what its publisher wrote.
    #[error("snapshot {number} is damaged ({what}); publish the data again")]
    Damaged {
        /// The snapshot's number.
        number: u64,
        /// What does not fit, without paths.
        what: String,
    },
    /// The reference statement reads the combined database, and that is not the snapshot's any more.
    #[error(
        "the combined database changed after snapshot {0} was made of it; try again, and if that does not \
         help, run `kumiki rank publish`"
    )]
    Replaced(u64),
    /// A failure of the machine or of the program.
    #[error("the ranking failed while {doing}; the operator's log says why")]
    Internal {
        /// What was being done.
        doing: &'static str,
        /// What failed below; its text may name files, so it is for the operator only.
        source: Cause,
    },
}

impl RankError {
    /// The stable code of this error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Formula(_) => "FORMULA_INVALID",
            Self::FormulaUnknown(_) => "FORMULA_UNKNOWN",
            Self::FormulaParams(_) => "FORMULA_PARAMS_INVALID",
            Self::FormulaRefused(_) => "FORMULA_REFUSED",
            Self::FormulaFault { .. } => "FORMULA_FAULT",
            Self::NoStatement => "NO_STATEMENT",
            Self::Order(_) => "ORDER_INVALID",
            Self::Limit { .. } => "LIMIT_INVALID",
            Self::Range(_) => "RANGE_INVALID",
            Self::Codes(_) => "CODES_INVALID",
            Self::SplitsUnknown => "SPLITS_UNKNOWN",
            Self::TooLarge { .. } => "RESULT_TOO_LARGE",
            Self::Timeout { .. } => "TIMEOUT",
            Self::Cancelled => "CANCELLED",
            Self::Busy { .. } => "BUSY",
            Self::NoData(_) => "NO_DATA",
            Self::Damaged { .. } => "SNAPSHOT_DAMAGED",
            Self::Replaced(_) => "SNAPSHOT_REPLACED",
            Self::Internal { .. } => "INTERNAL",
        }
    }

    /// Whether what was asked for cannot be, whatever the data say.
    #[must_use]
    pub const fn is_wrong_arguments(&self) -> bool {
        matches!(
            self,
            Self::Formula(_)
                | Self::FormulaParams(_)
                | Self::NoStatement
                | Self::Order(_)
                | Self::Limit { .. }
                | Self::Range(_)
        )
    }

    /// The same text for the operator's own log and terminal, where the cause stands beside it.
    #[must_use]
    pub fn for_operator(&self) -> String {
        match self {
            Self::Internal { doing, .. } => format!("the ranking failed while {doing}"),
            other => other.to_string(),
        }
    }

    /// A failure of the machine or of the program.
    pub(crate) fn internal(doing: &'static str, source: impl Into<Cause>) -> Self {
        Self::Internal { doing, source: source.into() }
    }
}

fn on(date: Option<JstDate>) -> String {
    date.map(|date| format!(" on {date}")).unwrap_or_default()
}
