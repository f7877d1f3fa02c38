//! The first rows of one day without sorting all of them.
//!
//! Two passes of plain comparisons. The first takes the largest key of each of many lanes; the
//! N-th largest of those is a threshold that at least N keys reach, and in practice few more. The
//! second collects the keys that reach it, and only those are sorted.

/// Lanes for each wanted row: more lanes make the threshold sharper.
const LANES_PER_ROW: usize = 4;
/// Fewest and most lanes; powers of two.
const LANES_MIN: usize = 64;
const LANES_MAX: usize = 2_048;
/// Keys compared at a time in the second pass.
const BLOCK: usize = 32;

/// Finds the largest keys; keeps its memory between days.
#[derive(Debug, Default)]
pub(super) struct Top {
    lanes: Vec<f64>,
    found: Vec<(f64, u32)>,
}

impl Top {
    /// The `limit` largest keys with their indices: largest first, equal ones by index. Keys are
    /// finite or "not a number"; the latter are left out.
    pub(super) fn of(&mut self, keys: &[f64], limit: usize) -> &[(f64, u32)] {
        let threshold = self.threshold(keys, limit);
        self.found.clear();
        let mut index = 0_u32;
        let (blocks, rest) = keys.as_chunks::<BLOCK>();
        for block in blocks {
            if block.iter().fold(false, |hit, key| hit | (*key >= threshold)) {
                self.collect(block, index, threshold);
            }
            index += BLOCK as u32;
        }
        self.collect(rest, index, threshold);
        let order = |a: &(f64, u32), b: &(f64, u32)| {
            // No key is "not a number", and both zeros are equal.
            b.0.partial_cmp(&a.0).unwrap_or(std::cmp::Ordering::Equal).then(a.1.cmp(&b.1))
        };
        if self.found.len() > limit {
            if let Some(last) = limit.checked_sub(1) {
                self.found.select_nth_unstable_by(last, order);
            }
            self.found.truncate(limit);
        }
        self.found.sort_unstable_by(order);
        &self.found
    }

    fn collect(&mut self, keys: &[f64], start: u32, threshold: f64) {
        for (key, index) in keys.iter().zip(start..) {
            if *key >= threshold {
                self.found.push((*key, index));
            }
        }
    }

    /// A key that at least `limit` keys reach, or the lowest of all where that is not known.
    fn threshold(&mut self, keys: &[f64], limit: usize) -> f64 {
        let lanes = (limit * LANES_PER_ROW).next_power_of_two().clamp(LANES_MIN, LANES_MAX);
        if limit == 0 || limit > lanes || keys.len() < lanes {
            return f64::NEG_INFINITY;
        }
        self.lanes.clear();
        self.lanes.resize(lanes, f64::NEG_INFINITY);
        for row in keys.chunks(lanes) {
            for (lane, key) in self.lanes.iter_mut().zip(row) {
                *lane = if *key > *lane { *key } else { *lane };
            }
        }
        let (_, threshold, _) = self.lanes.select_nth_unstable_by(limit - 1, |a, b| b.total_cmp(a));
        *threshold
    }
}
