//! The rows of one issue.

use std::ops::Range;

use domain::Random;
use domain::instrument::{DailyLimits, TickTable};
use domain::price::{Price, UNITS_PER_YEN};

/// Shares are traded in hundreds.
const LOT: f64 = 100.0;
/// Rows of the day on which hardly any arrived.
const THIN_ROWS: usize = 7;

/// What good news adds to a price; bad news takes the same ratio away.
const NEWS: f64 = 0.35;

/// What all issues of a sample have in common.
#[derive(Debug)]
pub(super) struct Market {
    seed: u64,
    codes: usize,
    /// The market's own return on each day.
    returns: Vec<f64>,
    /// The day on which nothing traded.
    outage: usize,
    /// The day on which hardly any row arrived.
    thin: usize,
}

impl Market {
    pub(super) fn new(seed: u64, days: usize, codes: usize) -> Self {
        let mut random = Random::new(&[seed, 0]);
        let returns = (0..days).map(|_| 0.000_2 + 0.008 * random.normal()).collect();
        // Samples of a few days have no such days.
        let special = |share: usize| if days < 20 { usize::MAX } else { days * share / 100 };
        Self { seed, codes, returns, outage: special(47), thin: special(31) }
    }

    fn days(&self) -> usize {
        self.returns.len()
    }

    /// Whether there is room for what happens halfway.
    fn is_long(&self) -> bool {
        self.days() >= 20
    }

    /// The split of an issue; one in ten of them is a reverse one.
    fn split(&self, place: usize) -> Option<Split> {
        let splits = self.is_long() && place % 40 == 3;
        let factor = if place % 400 == 43 { 10.0 } else { 0.5 };
        let percent = 50 + place / 40 % 30;
        splits.then(|| Split { day: self.days() * percent / 100, factor })
    }
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) day: usize,
    /// Open, high, low and close in yen.
    pub(super) prices: [Option<f64>; 4],
    pub(super) volume: Option<f64>,
    /// The adjustment factor of the day.
    pub(super) factor: f64,
}

/// A split or its reverse.
#[derive(Debug, Clone, Copy)]
struct Split {
    /// The first day on which it may be; it is on the first one with a trade.
    day: usize,
    factor: f64,
}

/// The rows of one issue, day by day.
#[derive(Debug)]
pub(super) struct Series<'a> {
    market: &'a Market,
    random: Random,
    day: usize,
    life: Range<usize>,
    suspended: Vec<Range<usize>>,
    split: Option<Split>,
    /// Whether it has a row on the day on which hardly any arrived.
    is_on_thin_day: bool,
    /// Whether it has a row on every day, so that every day has one.
    is_complete: bool,
    table: TickTable,
    close: Price,
    volatility: f64,
    volume: f64,
    no_trade: f64,
}

impl<'a> Series<'a> {
    /// The issue at this place of the sample. One in 400 is the twin of the one before it, so that
    /// values tie on every day. One in 40 splits. The first ones are there for who looks for them: one that
    /// is always there, one that is delisted, one that is listed, and one that splits, each halfway.
    pub(super) fn new(market: &'a Market, place: usize) -> Self {
        let stream = if place % 400 == 399 { place - 1 } else { place };
        let mut random = Random::new(&[market.seed, 1, stream as u64]);
        let days = market.days();
        let is_complete = place == 0;
        let first = if random.chance(0.14) { random.place(days * 17 / 20 + 1) } else { 0 };
        let gone = random.chance(0.08);
        let end = if gone { (first + 21 + random.place(days)).min(days) } else { days };
        let suspensions = if random.chance(0.3) { 1 + random.place(3) } else { 0 };
        let suspended = (0..suspensions)
            .map(|_| {
                let start = random.place(days);
                start..start + 3 + random.place(58)
            })
            .collect();
        let life = match place {
            0 => 0..days,
            1 if market.is_long() => 0..days * 45 / 100,
            2 if market.is_long() => days * 55 / 100..days,
            3 if market.is_long() => 0..days,
            _ => first..end,
        };
        let is_quiet = random.chance(0.07);
        let size = random.unit();
        Self {
            market,
            day: 0,
            life,
            suspended: if place < 4 { Vec::new() } else { suspended },
            split: market.split(place),
            is_on_thin_day: place.is_multiple_of(market.codes.div_ceil(THIN_ROWS)),
            is_complete,
            table: if random.chance(0.12) { TickTable::Topix500 } else { TickTable::Normal },
            // Few are dear: the cube spreads prices from 80 to about 20,000 yen.
            close: Price::from_yen(80 + (20_000.0 * size * size * size) as i64),
            volatility: 0.006 + 0.03 * random.unit() * random.unit(),
            volume: if is_quiet { 300.0 } else { 5_000.0 + 2_000_000.0 * random.unit() * size },
            no_trade: if is_quiet { 0.02 + 0.3 * random.unit() } else { 0.000_5 },
            random,
        }
    }

    fn has_row(&mut self) -> bool {
        let day = self.day;
        let lost = self.random.chance(0.000_2);
        if self.is_complete {
            return true;
        }
        if day == self.market.thin && !self.is_on_thin_day {
            return false;
        }
        self.life.contains(&day) && !lost && !self.suspended.iter().any(|gap| gap.contains(&day))
    }

    /// What the day is split by.
    fn split_on(&mut self, day: usize) -> f64 {
        let Some(Split { factor, .. }) = self.split.take_if(|split| split.day <= day) else {
            return 1.0;
        };
        let split = Price::from_units((self.close.units() as f64 * factor) as i64);
        let tick = self.table.tick_at(split).units().max(1);
        self.close = Price::from_units((split.units() / tick).max(1) * tick);
        self.volume /= factor;
        factor
    }

    fn trade(&mut self) -> ([Option<f64>; 4], Option<f64>) {
        let random = &mut self.random;
        let has_news = random.chance(0.004);
        let news = if !has_news {
            0.0
        } else if random.chance(0.5) {
            NEWS
        } else {
            1.0 / (1.0 + NEWS) - 1.0
        };
        let market = self.market.returns.get(self.day).copied().unwrap_or_default();
        let change = market + self.volatility * random.normal() + news;
        let limits = DailyLimits::around(self.close);
        let before = yen(self.close);
        let on_grid = |price: f64| grid(self.table, limits, price);
        let close = on_grid(before * (1.0 + change));
        let open =
            on_grid(before * (1.0 + 0.35 * change + 0.3 * self.volatility * random.normal()));
        let reach = before * self.volatility * 0.6;
        let high = on_grid(yen(open.max(close)) + reach * random.unit()).max(open).max(close);
        let low = on_grid(yen(open.min(close)) - reach * random.unit()).min(open).min(close);
        let busy = if has_news { 6.0 } else { 1.0 };
        let lots = self.volume * busy * (0.3 + 1.4 * random.unit()) / LOT;
        self.close = close;
        let mut prices = [open, high, low, close].map(|price| Some(yen(price)));
        // A vendor's zero in place of a price.
        for place in [0, 3] {
            if self.random.chance(0.000_02) {
                prices[place] = Some(0.0);
            }
        }
        // A zero volume beside prices, as after a correction.
        let volume = if self.random.chance(0.000_05) { 0.0 } else { lots.ceil().max(1.0) * LOT };
        (prices, Some(volume))
    }
}

impl Iterator for Series<'_> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        while self.day < self.market.days() {
            let has_row = self.has_row();
            let is_silent = self.random.chance(self.no_trade) || self.day == self.market.outage;
            let is_unknown = self.random.chance(0.25) && self.day != self.market.outage;
            let factor = if has_row && !is_silent { self.split_on(self.day) } else { 1.0 };
            let (prices, volume) = if is_silent {
                ([None; 4], if is_unknown { None } else { Some(0.0) })
            } else {
                self.trade()
            };
            self.day += 1;
            if has_row {
                return Some(Row { day: self.day - 1, prices, volume, factor });
            }
        }
        None
    }
}

/// Yen with one decimal at most, exactly as its text would be read.
fn yen(price: Price) -> f64 {
    (price.units() * 10 / UNITS_PER_YEN) as f64 / 10.0
}

/// The nearest price of the tick grid within the day's limits, at least one tick. Rounding down
/// would pull cheap issues to one yen over the years.
fn grid(table: TickTable, limits: DailyLimits, price: f64) -> Price {
    let wanted = limits.clamp(Price::from_units((price * UNITS_PER_YEN as f64) as i64));
    let tick = table.tick_at(wanted).units().max(1);
    let on_grid = Price::from_units(((wanted.units() + tick / 2) / tick).max(1) * tick);
    if limits.contains(on_grid) {
        on_grid
    } else if on_grid > wanted {
        Price::from_units(on_grid.units() - tick)
    } else {
        Price::from_units(on_grid.units() + tick)
    }
}
