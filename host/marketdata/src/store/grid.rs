//! On which grid a code's prices stand, so that its tick table can be guessed from its data.

use domain::{Price, TickTable};

/// Entries of the table of prices seen lately; a code trades at far fewer prices in a month.
const SEEN_ENTRIES: usize = 1_024;

/// The grid that all prices of a segment stand on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriceGrid {
    step: i64,
    aligned: [bool; TickTable::OFFICIAL.len()],
}

impl PriceGrid {
    /// The grid of prices in 1/10,000 yen, all above 0.
    #[must_use]
    pub fn of(prices: &[i64]) -> Self {
        let mut finder = GridFinder::default();
        finder.take(prices);
        finder.grid
    }

    fn take(&mut self, price: i64) {
        self.step = greatest_common_divisor(self.step, price);
        for (aligned, table) in self.aligned.iter_mut().zip(TickTable::OFFICIAL) {
            *aligned = *aligned && table.is_aligned(Price::from_units(price));
        }
    }

    /// The largest step that divides all prices; `None` without prices.
    #[must_use]
    pub fn step(self) -> Option<Price> {
        (self.step != 0).then_some(Price::from_units(self.step))
    }

    /// Whether all prices stand on the grid of `table`; true without prices.
    #[must_use]
    pub fn is_aligned(self, table: TickTable) -> bool {
        if let TickTable::Fixed(tick) = table {
            return tick.units() != 0 && self.step % tick.units() == 0;
        }
        TickTable::OFFICIAL
            .iter()
            .zip(self.aligned)
            .any(|(official, aligned)| *official == table && aligned)
    }

    /// The exchange's tables whose grid holds all prices, coarsest first.
    pub fn official_tables(self) -> impl Iterator<Item = TickTable> {
        TickTable::OFFICIAL.into_iter().filter(move |&table| self.is_aligned(table))
    }

    /// The grid that the prices of both stand on.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let mut both = self;
        both.step = greatest_common_divisor(self.step, other.step);
        for (aligned, also) in both.aligned.iter_mut().zip(other.aligned) {
            *aligned = *aligned && also;
        }
        both
    }

    /// The coarsest of the exchange's tables that holds all prices, else one step that does.
    #[must_use]
    pub fn tick_table(self) -> TickTable {
        let official = self.official_tables().next();
        official.unwrap_or(TickTable::Fixed(Price::from_units(self.step)))
    }

    /// The step and one bit for each official table, for the cache file.
    pub(super) fn to_parts(self) -> (i64, u64) {
        let bits = self.aligned.iter().rev();
        let bits = bits.fold(0, |bits, &aligned| bits << 1 | u64::from(aligned));
        (self.step, bits)
    }

    pub(super) fn from_parts(step: i64, bits: u64) -> Self {
        let mut aligned = [false; TickTable::OFFICIAL.len()];
        for (index, aligned) in aligned.iter_mut().enumerate() {
            *aligned = bits >> index & 1 == 1;
        }
        Self { step, aligned }
    }
}

/// Finds the grid of prices that come part by part.
pub(super) struct GridFinder {
    grid: PriceGrid,
    seen: [i64; SEEN_ENTRIES],
}

impl Default for GridFinder {
    fn default() -> Self {
        let grid = PriceGrid { step: 0, aligned: [true; TickTable::OFFICIAL.len()] };
        Self { grid, seen: [0; SEEN_ENTRIES] }
    }
}

impl GridFinder {
    /// Takes prices in 1/10,000 yen, all above 0.
    pub(super) fn take(&mut self, prices: &[i64]) {
        for &price in prices {
            // Ticks are multiples of 1,000 units, so this spreads neighbours over the table.
            let slot = usize::try_from(price / 1_000).unwrap_or(0) % SEEN_ENTRIES;
            if self.seen[slot] != price {
                self.seen[slot] = price;
                self.grid.take(price);
            }
        }
    }

    /// The grid of all prices taken.
    pub(super) const fn grid(&self) -> PriceGrid {
        self.grid
    }
}

fn greatest_common_divisor(mut left: i64, mut right: i64) -> i64 {
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(prices: &[&str], step: &str, tables: &[TickTable]) {
        let units: Vec<i64> =
            prices.iter().map(|price| price.parse::<Price>().unwrap().units()).collect();
        let grid = PriceGrid::of(&units);
        assert_eq!(grid.step(), step.parse().ok(), "{prices:?}");
        assert_eq!(grid.official_tables().collect::<Vec<_>>(), tables);
        let (step, bits) = grid.to_parts();
        assert_eq!(PriceGrid::from_parts(step, bits), grid);
    }

    #[test]
    fn grids_follow_the_prices() {
        use TickTable::{Etf, Normal, Topix500};
        check(&["1527", "1530", "1527"], "3", &[Normal, Etf, Topix500]);
        check(&["4000", "4005"], "5", &[Normal, Etf, Topix500]);
        check(&["4001", "4003"], "1", &[Etf, Topix500]);
        check(&["1527.5", "1528"], "0.5", &[Topix500]);
        check(&["1674.1", "1674.2"], "0.1", &[]);
        check(&[], "", &[Normal, Etf, Topix500]);
    }

    #[test]
    fn grids_of_two_files_join() {
        let grid = |prices: &[&str]| {
            let units = prices.iter().map(|price| price.parse::<Price>().unwrap().units());
            PriceGrid::of(&units.collect::<Vec<_>>())
        };
        let (whole, half) = (grid(&["1527", "1530"]), grid(&["1527.5"]));
        assert_eq!(whole.tick_table(), TickTable::Normal);
        assert_eq!(whole.and(half).tick_table(), TickTable::Topix500);
        let tenth = TickTable::Fixed(Price::from_units(1_000));
        assert_eq!(whole.and(grid(&["1674.1"])).tick_table(), tenth);
        assert_eq!(whole.and(half), grid(&["1527", "1530", "1527.5"]));
    }

    #[test]
    fn a_fixed_tick_has_to_divide_the_step() {
        let grid = PriceGrid::of(&[16_741_000, 16_745_000]);
        let fixed = |units| TickTable::Fixed(Price::from_units(units));
        assert!(grid.is_aligned(fixed(1_000)));
        assert!(!grid.is_aligned(fixed(5_000)));
        assert!(!grid.is_aligned(fixed(0)));
    }
}
