//! An engine on one snapshot: several queries that belong together see the same data, whatever is
//! published in between.

use std::sync::Arc;

use pricestore::DatasetStatus;

use super::RankEngine;
use super::follow::no_snapshot;
use super::prices::{self, DailyPrice, PriceQuery};
use super::snapshot::{Snapshot, SnapshotInfo};
use crate::error::RankError;
use crate::listed::ListedInfo;
use crate::query::{CancelToken, RankQuery, Ranking};

/// An engine that stays with the snapshot that was current when this was made.
#[derive(Debug)]
pub struct PinnedEngine {
    engine: Arc<RankEngine>,
    snapshot: Option<Arc<Snapshot>>,
    info: SnapshotInfo,
    dataset: Option<DatasetStatus>,
    listed: Arc<ListedInfo>,
    generation: Option<String>,
}

impl PinnedEngine {
    /// Stays with the present snapshot.
    #[must_use]
    pub fn new(engine: Arc<RankEngine>) -> Self {
        let snapshot = engine.follower.current();
        let info = snapshot.as_ref().map(|snapshot| snapshot.info.clone()).unwrap_or_default();
        let info = SnapshotInfo { refused: engine.follower.refused(), ..info };
        let of = |snapshot: &Arc<Snapshot>| engine.follower.generation_of(snapshot);
        // First of all: the others are never older than the generation that is named.
        let generation = snapshot.as_ref().and_then(of);
        let dataset = engine.follower.dataset_of(snapshot.as_deref());
        let listed = engine.listed();
        Self { engine, snapshot, info, dataset, listed, generation }
    }

    /// Ranks on this snapshot.
    ///
    /// # Errors
    /// As [`RankEngine::rank`].
    pub fn rank(&self, query: &RankQuery, cancel: &CancelToken) -> Result<Ranking, RankError> {
        let snapshot = self.snapshot.clone().ok_or_else(|| self.no_snapshot())?;
        self.engine.rank_on(snapshot, query, cancel)
    }

    /// The daily prices of one issue on this snapshot.
    ///
    /// # Errors
    /// As [`RankEngine::prices`].
    pub fn prices(
        &self,
        query: &PriceQuery,
        cancel: &CancelToken,
    ) -> Result<Vec<DailyPrice>, RankError> {
        prices::read(self.snapshot.as_deref().ok_or_else(|| self.no_snapshot())?, query, cancel)
    }

    fn no_snapshot(&self) -> RankError {
        no_snapshot(self.info.refused.as_deref(), self.engine.options.is_replica)
    }

    /// How complete the data was when this began; none where that is not known.
    #[must_use]
    pub fn dataset(&self) -> Option<DatasetStatus> {
        self.dataset.clone()
    }

    /// What was known of the issues when this began.
    #[must_use]
    pub fn listed(&self) -> Arc<ListedInfo> {
        Arc::clone(&self.listed)
    }

    /// The generation that this snapshot belongs to; none where its publication had not ended.
    #[must_use]
    pub fn generation(&self) -> Option<String> {
        self.generation.clone()
    }

    /// What this snapshot holds.
    #[must_use]
    pub fn snapshot(&self) -> SnapshotInfo {
        self.info.clone()
    }
}
