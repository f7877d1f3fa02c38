//! The last answers, keyed by snapshot and canonical query.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::ResolvedQuery;
use crate::limits::CACHE_ENTRIES_MAX;
use crate::query::{RankOrder, RankQuery, RankRow, Ranking};

/// What makes two queries the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    /// Which opened snapshot; its number does not tell two of them apart.
    opened: u64,
    sort_by: String,
    first_day: usize,
    end_day: usize,
    order: RankOrder,
    limit: u32,
    codes: Option<Vec<u32>>,
    adjusted: bool,
}

impl Key {
    pub(super) fn new(query: &RankQuery, resolved: &ResolvedQuery) -> Self {
        Self {
            opened: resolved.snapshot.opened,
            sort_by: query.sort_by.key(),
            first_day: resolved.days.start,
            end_day: resolved.days.end,
            order: query.order,
            limit: query.limit,
            codes: resolved.codes.clone(),
            adjusted: query.adjusted,
        }
    }
}

/// Answers, the last used one at the front.
#[derive(Debug)]
pub(super) struct ResultCache {
    bytes_max: u64,
    entries: Mutex<VecDeque<(Key, Arc<Ranking>)>>,
}

impl ResultCache {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, entries: Mutex::new(VecDeque::new()) }
    }

    pub(super) fn get(&self, key: &Key) -> Option<Arc<Ranking>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let index = entries.iter().position(|(known, _)| known == key)?;
        let entry = entries.remove(index)?;
        let ranking = Arc::clone(&entry.1);
        entries.push_front(entry);
        Some(ranking)
    }

    /// Keeps an answer, and drops those that no longer fit and those of older snapshots. An answer
    /// above a quarter of the room is not kept.
    pub(super) fn put(&self, key: Key, ranking: &Ranking) {
        if bytes(ranking) > self.bytes_max / 4 {
            return;
        }
        let kept = Arc::new(ranking.clone());
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|(known, _)| *known != key && known.opened >= key.opened);
        entries.push_front((key, kept));
        let mut total = 0;
        let fitting = entries.iter().take(CACHE_ENTRIES_MAX).take_while(|(_, ranking)| {
            total += bytes(ranking);
            total <= self.bytes_max
        });
        let fitting = fitting.count();
        entries.truncate(fitting);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

fn bytes(ranking: &Ranking) -> u64 {
    (ranking.rows.len() * size_of::<RankRow>() + ranking.days.len() * 4 + 512) as u64
}
