//! Daily prices: fetched from sources, stored in the combined and the per-issue databases.
//!
//! [`update_from_sources`] and [`update_from_files`] are the update job of specification 3. What it
//! fetches comes through [`source::DailySource`] and goes into a [`PriceStore`], which is
//! [`store::WorkDatabase`] outside of tests: [`PriceRows`] and their publication. Its requests follow the rules of
//! `http_client`; its keys are found by `keys` and never shown.

mod cache;
mod checks;
mod fetch_state;
mod job;
mod key;
pub mod limits;
mod price_store;
mod row;
mod rules;
pub mod source;
pub mod store;

pub use cache::{Cached, DayCache};
pub use checks::{CHECKS, Check, Severity};
pub use fetch_state::{FetchState, IssuePass};
pub use job::{
    CorrectedValue, CorrectionReport, DayOutcome, DayReport, Ending, FailureReason, FindingReport,
    IssueReport, JobOptions, JobWatch, ListedReport, OddRowReport, Phase, PublishedReport, Report,
    SourceReport, SourceSlot, SourceState, SplitReport, UpdateError, WaitingDayReport,
    last_weekdays, report_schema, update_from_files, update_from_sources,
};
pub use key::{KEYS, PUBLIC_KEY, VENDOR_KEY};
pub use price_store::{
    Applied, Correction, Known, OpenDays, Part, PriceRows, PriceStore, PublishedCheck, Split,
    StoreProgress,
};
pub use row::{DailyRow, IssueCode, SourceKind};
pub use rules::{RULES, Rule, rules_as_markdown};
