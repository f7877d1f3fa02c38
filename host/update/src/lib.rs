//! Daily prices: fetched from sources, stored in the combined and the per-issue databases.
//!
//! What is fetched comes through [`source::DailySource`]. Keys are found by [`Key`] and never shown.

mod aside;
mod cache;
mod key;
pub mod limits;
mod row;
mod shelf;
pub mod source;
mod stop;
pub mod store;

pub use cache::{Cached, DayCache};
pub use key::{KEY_SERVICE, Key};
pub use row::{DailyRow, IssueCode, SourceKind};
pub use shelf::{Applied, Known, Shelf, Split, StoreProgress};
pub use stop::Stop;
