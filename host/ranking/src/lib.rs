//! Ranks issues by a formula, day by day (specification 3): formula language, store and queries.

pub mod error;
pub mod formula;
pub mod limits;
mod query;

pub use error::RankError;
pub use formula::{FORMULA_DEFAULT, Formula, FormulaError};
pub use query::{CancelOnDrop, CancelToken, RankOrder, RankQuery, RankRow, Ranking};
