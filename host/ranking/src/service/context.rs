//! What all requests of a service share.

use std::sync::Arc;

use domain::JstDate;

use super::Backend;
use super::failure::Failure;
use super::limits::ServiceLimits;
use super::metrics::Metrics;
use crate::{CancelToken, FormulaRegistry, RankError, RankQuery, Ranking, SnapshotInfo};

/// Takes a line for the operator's log: causes that clients are not told.
pub(super) type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// What all requests share: data, formula modules, limits and numbers.
pub(super) struct QueryContext {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) formulas: Option<Arc<FormulaRegistry>>,
    pub(super) limits: ServiceLimits,
    pub(super) metrics: Metrics,
    pub(super) log: Log,
}

impl QueryContext {
    /// A context for printing the schema; it has no data.
    pub(super) fn without_data() -> Self {
        struct Nothing;
        impl Backend for Nothing {
            fn rank(&self, _: &RankQuery, _: &CancelToken) -> Result<Ranking, RankError> {
                Err(RankError::NoData("there is no data".to_owned()))
            }
            fn snapshot(&self) -> SnapshotInfo {
                let day = JstDate::default();
                SnapshotInfo { number: 0, days: 0, codes: 0, first: day, last: day, refused: None }
            }
        }
        Self {
            backend: Arc::new(Nothing),
            formulas: None,
            limits: ServiceLimits::default(),
            metrics: Metrics::default(),
            log: Arc::new(|_| {}),
        }
    }

    /// The error for the client; its cause goes to the operator's log.
    pub(super) fn report(&self, error: RankError) -> Failure {
        if let Some(cause) = std::error::Error::source(&error) {
            (self.log)(&format!("{}: {error}: {cause}", error.code()));
        }
        error.into()
    }

    /// Works in a thread that may block.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        match tokio::task::spawn_blocking(work).await {
            Ok(outcome) => outcome,
            Err(error) => {
                (self.log)(&format!("a query ended by itself: {error}"));
                Err(Failure::new("INTERNAL", "the query failed inside; it is in the service's log"))
            }
        }
    }
}
