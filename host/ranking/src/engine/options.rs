//! What an engine may use.

use std::num::NonZero;
use std::time::Duration;

use crate::limits::{CONCURRENT_QUERIES_MAX, QUEUE_MAX, THREADS_MAX};

/// When the digests of a snapshot are verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verification {
    /// All before the snapshot is used: for a service, where every query is to be warm.
    #[default]
    Full,
    /// Each part when a query first reads it: for a single query.
    OnFirstUse,
}

/// What an engine may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineOptions {
    /// Worker threads for all queries together; 1 to [`THREADS_MAX`].
    pub threads: usize,
    /// Bytes for answers that are being made; the snapshot's memory-mapped file comes on top.
    pub memory_bytes: u64,
    /// Queries that run at the same time, in turns of [`crate::limits::SLICE_DAYS`] days.
    pub concurrent_queries: usize,
    /// Queries that may wait; one more is answered BUSY.
    pub queue: usize,
    /// Longest time of one query, waiting included.
    pub timeout: Duration,
    /// Bytes of the result cache; 0 caches nothing.
    pub cache_bytes: u64,
    /// When a snapshot's digests are verified.
    pub verification: Verification,
    /// Whether an engine may start where nothing was published yet, or nothing that can be used, and take
    /// up the first snapshot that can; until then queries are answered [`crate::RankError::NoData`]. Only
    /// with `follow`.
    pub wait_for_data: bool,
    /// Whether the data directory is filled with what another server publishes; only says so where it is
    /// still empty.
    pub is_replica: bool,
    /// Whether a newer snapshot is taken up while the engine runs; looked for every
    /// [`crate::limits::SNAPSHOT_POLL_INTERVAL_MS`].
    pub follow: bool,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().map_or(1, NonZero::get),
            memory_bytes: 1 << 30,
            concurrent_queries: 16,
            queue: 1_024,
            timeout: Duration::from_secs(30),
            cache_bytes: 64 << 20,
            verification: Verification::Full,
            wait_for_data: false,
            is_replica: false,
            follow: true,
        }
    }
}

impl EngineOptions {
    /// Options for one query of a program that ends afterwards.
    #[must_use]
    pub fn single_query() -> Self {
        Self {
            cache_bytes: 0,
            verification: Verification::OnFirstUse,
            follow: false,
            ..Self::default()
        }
    }

    pub(super) fn within_limits(self) -> Self {
        Self {
            threads: self.threads.clamp(1, THREADS_MAX),
            concurrent_queries: self.concurrent_queries.clamp(1, CONCURRENT_QUERIES_MAX),
            queue: self.queue.min(QUEUE_MAX),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_kept_within_the_limits() {
        let most = EngineOptions {
            threads: usize::MAX,
            concurrent_queries: usize::MAX,
            queue: usize::MAX,
            ..EngineOptions::default()
        };
        let most = most.within_limits();
        assert_eq!(
            (most.threads, most.concurrent_queries, most.queue),
            (THREADS_MAX, CONCURRENT_QUERIES_MAX, QUEUE_MAX)
        );
        let least = EngineOptions { threads: 0, concurrent_queries: 0, queue: 0, ..most };
        let least = least.within_limits();
        assert_eq!((least.threads, least.concurrent_queries, least.queue), (1, 1, 0));
    }
}
