//! Ranks issues by a formula, day by day (specification 3): formula language, formula modules,
//! and queries, and the service that answers them over GraphQL.

mod blocks;
pub mod console;
mod engine;
pub mod error;
pub mod export;
mod file_stamp;
pub mod formula;
mod kernel;
pub mod limits;
mod listed;
mod query;
mod registry;
pub mod replica;
mod rows;
pub mod service;
mod split_reach;
mod store;
mod text;

pub(crate) use engine::no_snapshot;
pub use engine::{
    DailyPrice, EngineOptions, Explanation, PinnedEngine, PriceQuery, RankEngine, SnapshotInfo,
    Verification,
};
pub use error::RankError;
pub use formula::{FORMULA_DEFAULT, Formula, FormulaError};
pub use listed::{ListedField, ListedInfo};
pub use query::{CancelOnDrop, CancelToken, RankOrder, RankQuery, RankRow, Ranking, SortBy};
pub use registry::{
    BoundFormula, FormulaDetails, FormulaListing, FormulaRegistry, LIST_FILE, ListedFormula,
    RegistryError,
};
pub use split_reach::SplitReach;
