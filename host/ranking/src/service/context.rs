//! What all requests of a service share, and the threads in which they may block.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tracing::Span;

use super::backend::Backend;
use super::failure::Failure;
use super::limits::ServiceLimits;
use super::memory::AnswerMemory;
use super::metrics::Metrics;
use crate::text::redacted;
use crate::{CancelToken, FormulaRegistry, RankError, RankQuery, Ranking, SnapshotInfo};

/// What all requests share: data, formula modules, limits and numbers.
pub(super) struct QueryContext {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) formulas: Option<Arc<FormulaRegistry>>,
    pub(super) limits: ServiceLimits,
    pub(super) metrics: Metrics,
    /// The memory of answers.
    pub(super) memory: AnswerMemory,
}

impl QueryContext {
    pub(super) fn new(
        backend: Arc<dyn Backend>,
        formulas: Option<Arc<FormulaRegistry>>,
        limits: ServiceLimits,
    ) -> Self {
        let metrics = Metrics::default();
        Self { memory: AnswerMemory::new(&limits, &metrics), backend, formulas, limits, metrics }
    }

    /// A context for printing the schema; it has no data.
    pub(super) fn without_data() -> Self {
        struct Nothing;
        impl Backend for Nothing {
            fn rank(&self, _: &RankQuery, _: &CancelToken) -> Result<Ranking, RankError> {
                Err(RankError::NoData("there is no data".to_owned()))
            }
            fn snapshot(&self) -> SnapshotInfo {
                SnapshotInfo::default()
            }
            fn pinned(self: Arc<Self>) -> Arc<dyn Backend> {
                self
            }
        }
        Self::new(Arc::new(Nothing), None, ServiceLimits::default())
    }
}

/// The data that one request sees, all of it from one snapshot.
#[derive(Clone)]
pub(super) struct RequestData(pub(super) Arc<dyn Backend>);

/// A time as events tell it.
pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Runs work that may block in a thread for such work; its events belong to the present span.
pub(super) fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let span = Span::current();
    tokio::task::spawn_blocking(move || span.in_scope(work))
}

/// Waits for the work of a query, in a thread that may block.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => {
            tracing::error!(cause = redacted(&error.to_string()), "a query failed inside");
            Err(Failure::new("INTERNAL", "the query failed; the service's log says why"))
        }
    }
}
