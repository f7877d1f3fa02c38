//! What computes the rankings that the service answers with.

use std::sync::Arc;

use pricestore::DatasetStatus;

use crate::{CancelToken, PinnedEngine, RankEngine, RankError, RankQuery, Ranking, SnapshotInfo};

/// What the service needs of an engine.
///
/// [`RankEngine`] is the one that people use; tests put in others, to hold a query for as long as
/// they need.
pub trait Backend: Send + Sync + 'static {
    /// Ranks; blocks until done, cancelled or out of time.
    ///
    /// # Errors
    /// As [`RankEngine::rank`].
    fn rank(&self, query: &RankQuery, cancel: &CancelToken) -> Result<Ranking, RankError>;

    /// What the present snapshot holds.
    fn snapshot(&self) -> SnapshotInfo;

    /// How complete the data is, as the update job has told; none where that is not known.
    fn dataset(&self) -> Option<DatasetStatus> {
        None
    }

    /// The generation that the present snapshot belongs to; none while its publication has not ended.
    fn generation(&self) -> Option<String> {
        None
    }

    /// The same, on the present snapshot only, for all of one request.
    fn pinned(self: Arc<Self>) -> Arc<dyn Backend>;
}

impl Backend for RankEngine {
    fn rank(&self, query: &RankQuery, cancel: &CancelToken) -> Result<Ranking, RankError> {
        Self::rank(self, query, cancel)
    }

    fn snapshot(&self) -> SnapshotInfo {
        Self::snapshot(self)
    }

    fn dataset(&self) -> Option<DatasetStatus> {
        Self::dataset(self)
    }

    fn generation(&self) -> Option<String> {
        Self::generation(self)
    }

    fn pinned(self: Arc<Self>) -> Arc<dyn Backend> {
        Arc::new(PinnedEngine::new(self))
    }
}

impl Backend for PinnedEngine {
    fn rank(&self, query: &RankQuery, cancel: &CancelToken) -> Result<Ranking, RankError> {
        Self::rank(self, query, cancel)
    }

    fn snapshot(&self) -> SnapshotInfo {
        Self::snapshot(self)
    }

    fn dataset(&self) -> Option<DatasetStatus> {
        Self::dataset(self)
    }

    fn generation(&self) -> Option<String> {
        Self::generation(self)
    }

    fn pinned(self: Arc<Self>) -> Arc<dyn Backend> {
        self
    }
}
