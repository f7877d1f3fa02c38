//! When the rows of a paced replay are to come (specification 2, "Speed pacing in the streaming loop"),
//! worked out here once more.

use std::path::Path;

use domain::TsNanos;
use domain::calendar::next_pause_end;
use tests::sample;

/// Seconds between two rows at least, before they are divided by the speed.
const TICK_MIN: f64 = 0.001;
/// Seconds between two rows at most.
const SLEEP_MAX: f64 = 0.2;
/// The highest speed.
const SPEED_MAX: u32 = 1_000_000;

/// The gaps of a market before each of its rows, in seconds; none over a pause.
pub(crate) struct Pace {
    gaps: Vec<Option<f64>>,
}

impl Pace {
    /// That of a folder's trades of one code.
    pub(crate) fn of(folder: &Path, code: &str, cache: &Path) -> Self {
        let series = sample::load(folder, code, cache);
        let mut gaps = Vec::with_capacity(series.len());
        let mut before: Option<u64> = None;
        for day in series.days() {
            for &row in day.ts_event() {
                gaps.push(before.and_then(|before| gap(before, row)));
                before = Some(row);
            }
        }
        Self { gaps }
    }

    /// Rows of the market.
    pub(crate) fn rows(&self) -> usize {
        self.gaps.len()
    }

    /// Seconds from the first row to each at a speed.
    pub(crate) fn schedule(&self, speed: u32) -> Vec<f64> {
        let mut turn = 0.0;
        let turns = self.gaps.iter().map(|gap| {
            turn += gap.map_or(0.0, |gap| (gap.max(TICK_MIN) / f64::from(speed)).min(SLEEP_MAX));
            turn
        });
        turns.collect()
    }

    /// The speed at which so many rows come in a second, over all.
    pub(crate) fn speed_of(&self, rows_per_second: f64) -> u32 {
        let wanted = self.rows() as f64 / rows_per_second;
        let takes = |speed: u32| self.schedule(speed).last().copied().unwrap_or_default();
        let (mut low, mut high) = (1, SPEED_MAX);
        while low < high {
            let middle = low.midpoint(high);
            if takes(middle) > wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

fn gap(before: u64, row: u64) -> Option<f64> {
    let is_pause = row >= next_pause_end(TsNanos::from_nanos(before)).nanos();
    (!is_pause).then(|| (row - before) as f64 / 1e9)
}
