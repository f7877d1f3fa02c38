//! The made-up market of one code: a walk on the tick grid inside the daily limits, with phases of
//! trend and of return to the mean, so that a strategy finds something to trade.

use domain::instrument::DailyLimits;
use domain::price::UNITS_PER_YEN;
use domain::{Price, TickTable};

use super::clock::{DayShape, TradeTime};
use domain::Random;

const TICKS: TickTable = TickTable::Normal;
/// Moves of the bid on an average day; their square root is the day's range in ticks.
const MOVES_PER_DAY: u64 = 700;
/// At most every third row moves the bid.
const MOVE_PERMILLE_MAX: u64 = 333;
/// Rows of 1,000 that start a sweep through several prices at one instant.
const SWEEP_PERMILLE: u64 = 90;
/// How much likelier a trending or returning phase makes one direction.
const LEAN_PERMILLE: u64 = 140;
const LOT: u64 = 100;

/// One row of the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Print {
    pub(super) micros: u64,
    pub(super) price: Price,
    pub(super) quantity: u64,
    pub(super) transaction_id: u64,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Rise,
    Fall,
    Return,
}

/// What a code carries from day to day: its last price.
#[derive(Debug)]
pub(super) struct Market {
    close: Price,
}

impl Market {
    /// A market that starts between 500 and 2,900 yen.
    pub(super) fn new(random: &mut Random) -> Self {
        let yen = 500 + random.below(2_400).cast_signed();
        Self { close: Price::from_yen(yen) }
    }

    /// The rows of one day, about `trades_mean` of them, in time order.
    pub(super) fn day(
        &mut self,
        random: &mut Random,
        shape: &DayShape,
        trades_mean: u32,
    ) -> Vec<Print> {
        let count = u64::from(trades_mean) * (880 + random.below(240)) / 1_000;
        let count = usize::try_from(count.max(1)).unwrap_or(1);
        let times = shape.times(random, count);
        let mut day = Day {
            random,
            limits: DailyLimits::around(self.close),
            bid: self.close,
            anchor: self.close,
            move_permille: (MOVES_PER_DAY * 1_000 / count as u64).min(MOVE_PERMILLE_MAX),
            phase: Phase::Return,
            phase_rows: 0,
            sweep: None,
            rows: count as u64,
            last_micros: 0,
            transaction_id: 0,
        };
        let prints: Vec<Print> = times.into_iter().map(|time| day.print(time)).collect();
        if let Some(last) = prints.last() {
            self.close = last.price;
        }
        prints
    }
}

/// A sweep in progress: the price before, its direction and how many rows are left.
#[derive(Debug, Clone, Copy)]
struct Sweep {
    price: Price,
    upwards: bool,
    rows_left: u64,
}

struct Day<'a> {
    random: &'a mut Random,
    limits: DailyLimits,
    bid: Price,
    anchor: Price,
    move_permille: u64,
    phase: Phase,
    phase_rows: u64,
    sweep: Option<Sweep>,
    rows: u64,
    last_micros: u64,
    transaction_id: u64,
}

impl Day<'_> {
    fn print(&mut self, time: TradeTime) -> Print {
        self.transaction_id += 1 + self.random.below(29);
        let swept = if time.auction { None } else { self.sweep_on() };
        let micros = match swept {
            Some(_) => self.last_micros,
            // One instant and one price make one row, so rows that meet by chance are moved apart.
            None => time.micros.max(self.last_micros + 1),
        };
        self.last_micros = micros;
        let price = match swept {
            Some(price) => price,
            None if time.auction => self.auction(),
            None => self.trade(),
        };
        Print {
            micros,
            price,
            quantity: LOT * self.lots(time.auction),
            transaction_id: self.transaction_id,
        }
    }

    fn lots(&mut self, auction: bool) -> u64 {
        if auction {
            return 20 + self.rows / 25 + self.random.below(self.rows / 12 + 40);
        }
        let largest = 1 << self.random.halvings().min(9);
        1 + self.random.below(largest)
    }

    fn auction(&mut self) -> Price {
        self.sweep = None;
        let upwards = self.random.permille(500);
        for _ in 0..self.random.below(5) {
            self.move_bid(upwards);
        }
        self.bid
    }

    fn trade(&mut self) -> Price {
        self.advance_phase();
        if self.random.permille(self.move_permille) {
            let upwards = match self.phase {
                Phase::Rise => self.random.permille(500 + LEAN_PERMILLE),
                Phase::Fall => self.random.permille(500 - LEAN_PERMILLE),
                Phase::Return if self.bid < self.anchor => {
                    self.random.permille(500 + LEAN_PERMILLE)
                }
                Phase::Return => self.random.permille(500 - LEAN_PERMILLE),
            };
            self.move_bid(upwards);
        }
        let buys = self.random.permille(500);
        let price = match self.neighbour(self.bid, true) {
            Some(ask) if buys => ask,
            _ => self.bid,
        };
        if self.random.permille(SWEEP_PERMILLE) {
            self.sweep = Some(Sweep { price, upwards: buys, rows_left: 1 + self.random.below(3) });
        }
        price
    }

    fn advance_phase(&mut self) {
        if self.phase_rows > 0 {
            self.phase_rows -= 1;
            return;
        }
        self.phase_rows = self.rows / 16 + self.random.below(self.rows / 6 + 1);
        self.anchor = self.bid;
        self.phase = match self.random.below(3) {
            0 => Phase::Rise,
            1 => Phase::Fall,
            _ => Phase::Return,
        };
    }

    fn move_bid(&mut self, upwards: bool) {
        if let Some(next) = self.neighbour(self.bid, upwards) {
            self.bid = next;
        }
    }

    fn sweep_on(&mut self) -> Option<Price> {
        let sweep = self.sweep.take()?;
        let price = self.neighbour(sweep.price, sweep.upwards)?;
        if sweep.rows_left > 1 {
            self.sweep = Some(Sweep { price, rows_left: sweep.rows_left - 1, ..sweep });
        }
        Some(price)
    }

    /// The next price of the grid, if the day may trade at it.
    fn neighbour(&self, price: Price, upwards: bool) -> Option<Price> {
        next_on_grid(price, upwards).filter(|next| self.limits.contains(*next))
    }
}

/// The next price of the grid above or below; `None` below one yen.
fn next_on_grid(price: Price, upwards: bool) -> Option<Price> {
    let tick = TICKS.tick_at(price).units();
    let next = if upwards {
        // Above a band's upper edge the wider tick of the next band holds.
        let beyond = Price::from_units(price.units() + tick);
        let wide = TICKS.tick_at(beyond).units();
        (beyond.units() + wide - 1) / wide * wide
    } else {
        price.units() - tick
    };
    (next >= UNITS_PER_YEN).then_some(Price::from_units(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_has_no_gaps_at_band_edges() {
        let next = |yen, upwards| next_on_grid(Price::from_yen(yen), upwards);
        assert_eq!(next(2_999, true), Some(Price::from_yen(3_000)));
        assert_eq!(next(3_000, true), Some(Price::from_yen(3_005)));
        assert_eq!(next(3_005, false), Some(Price::from_yen(3_000)));
        assert_eq!(next(3_000, false), Some(Price::from_yen(2_999)));
        assert_eq!(next(1, false), None);
    }

    #[test]
    fn days_keep_the_exchanges_rules() {
        let shape = DayShape::of("2025-01-06".parse().unwrap());
        let random = &mut Random::new(&[3]);
        let mut market = Market::new(random);
        for _ in 0..50 {
            let limits = DailyLimits::around(market.close);
            let prints = market.day(random, &shape, 2_000);
            for pair in prints.windows(2) {
                let (before, after) = (pair[0], pair[1]);
                assert!(before.micros <= after.micros);
                assert!(before.transaction_id < after.transaction_id);
                assert_ne!((before.micros, before.price), (after.micros, after.price));
            }
            for print in &prints {
                assert!(limits.contains(print.price) && TICKS.is_aligned(print.price));
                assert!(print.quantity >= LOT && print.quantity % LOT == 0);
            }
            let met = prints.windows(2).filter(|pair| pair[0].micros == pair[1].micros);
            assert!(met.count() > 50);
        }
    }

    #[test]
    fn the_limits_of_a_day_hold_even_in_a_long_fall() {
        let random = &mut Random::new(&[1]);
        let mut day = Day {
            random,
            limits: DailyLimits::around(Price::from_yen(90)),
            bid: Price::from_yen(90),
            anchor: Price::from_yen(90),
            move_permille: 1_000,
            phase: Phase::Fall,
            phase_rows: u64::MAX,
            sweep: None,
            rows: 1,
            last_micros: 0,
            transaction_id: 0,
        };
        let lowest = (0..2_000).map(|_| day.trade()).min();
        assert_eq!(lowest, Some(Price::from_yen(60)));
    }
}
