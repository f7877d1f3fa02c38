//! What computes the rankings that the service answers with.

use std::sync::Arc;

use pricestore::DatasetStatus;

use crate::{
    CancelToken, DailyPrice, ListedInfo, PinnedEngine, PriceQuery, RankEngine, RankError,
    RankQuery, Ranking, SnapshotInfo, no_snapshot,
};

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

    /// The daily prices of one issue; an engine without them has no data.
    ///
    /// # Errors
    /// As [`RankEngine::prices`].
    fn prices(&self, _: &PriceQuery, _: &CancelToken) -> Result<Vec<DailyPrice>, RankError> {
        Err(no_snapshot(None, false))
    }

    /// What the present snapshot holds.
    fn snapshot(&self) -> SnapshotInfo;

    /// How complete the data is, as the update job has told; none where that is not known.
    fn dataset(&self) -> Option<DatasetStatus> {
        None
    }

    /// Why that is old: the update job's word is gone or cannot be read.
    fn lost_dataset(&self) -> Option<String> {
        None
    }

    /// Whether the update job tells how complete data are, but not those of the present snapshot.
    fn is_dataset_of_another(&self) -> bool {
        false
    }

    /// What is known of the issues; nothing where there are no lists.
    fn listed(&self) -> Arc<ListedInfo> {
        Arc::default()
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

    fn prices(
        &self,
        query: &PriceQuery,
        cancel: &CancelToken,
    ) -> Result<Vec<DailyPrice>, RankError> {
        Self::prices(self, query, cancel)
    }

    fn snapshot(&self) -> SnapshotInfo {
        Self::snapshot(self)
    }

    fn lost_dataset(&self) -> Option<String> {
        Self::lost_dataset(self)
    }

    fn is_dataset_of_another(&self) -> bool {
        Self::is_dataset_of_another(self)
    }

    fn dataset(&self) -> Option<DatasetStatus> {
        Self::dataset(self)
    }

    fn listed(&self) -> Arc<ListedInfo> {
        Self::listed(self)
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

    fn prices(
        &self,
        query: &PriceQuery,
        cancel: &CancelToken,
    ) -> Result<Vec<DailyPrice>, RankError> {
        Self::prices(self, query, cancel)
    }

    fn snapshot(&self) -> SnapshotInfo {
        Self::snapshot(self)
    }

    fn dataset(&self) -> Option<DatasetStatus> {
        Self::dataset(self)
    }

    fn listed(&self) -> Arc<ListedInfo> {
        Self::listed(self)
    }

    fn generation(&self) -> Option<String> {
        Self::generation(self)
    }

    fn pinned(self: Arc<Self>) -> Arc<dyn Backend> {
        self
    }
}
