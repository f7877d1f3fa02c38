//! One day of the market: what the loop takes at a time.

use std::ops::Range;

use domain::market::{Bar, BarGranularity};
use domain::session::TradingHours;
use domain::{InstrumentIx, JstDate, Price, TsNanos};
use marketdata::TradeSegment;

use super::day_rows;

/// One day of the market, for all instruments of a run.
#[derive(Debug, Clone)]
pub enum MarketDay<'a> {
    /// Trades, one entry for each instrument in its order; an instrument without trades is empty.
    Trades(Vec<TradingDay<'a>>),
    /// Bars of all instruments, by end and then by the instrument's position.
    Bars(Vec<Bar>),
}

impl<'a> From<TradingDay<'a>> for MarketDay<'a> {
    fn from(day: TradingDay<'a>) -> Self {
        Self::Trades(vec![day])
    }
}

impl MarketDay<'_> {
    /// A day of bars, each instrument's own in time order.
    #[must_use]
    pub fn bars(mut bars: Vec<Bar>) -> Self {
        bars.sort_by_key(|bar| (bar.ts_event, bar.instrument));
        Self::Bars(bars)
    }

    /// Rows of all instruments together.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Trades(parts) => parts.iter().map(TradingDay::len).sum(),
            Self::Bars(bars) => bars.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The timestamp of the first row; none without rows.
    #[must_use]
    pub fn first_timestamp(&self) -> Option<TsNanos> {
        match self {
            Self::Trades(parts) => {
                let firsts = parts.iter().filter_map(|part| part.ts_event().first());
                firsts.min().copied().map(TsNanos::from_nanos)
            }
            Self::Bars(bars) => bars.first().map(|bar| bar.ts_event),
        }
    }

    /// The date in Japan; none without rows.
    #[must_use]
    pub fn date(&self) -> Option<JstDate> {
        self.first_timestamp().map(TsNanos::jst_date)
    }

    /// Whether the rows are daily bars, which all end with the day itself.
    #[must_use]
    pub fn is_of_daily_bars(&self) -> bool {
        let Self::Bars(bars) = self else { return false };
        bars.first().is_some_and(|bar| bar.granularity == BarGranularity::Day)
    }

    /// The last price of an instrument on this day, if it has one.
    #[must_use]
    pub fn last_price(&self, instrument: InstrumentIx) -> Option<Price> {
        match self {
            Self::Trades(parts) => {
                let part = parts.get(usize::from(instrument.0))?;
                part.price().last().copied().map(Price::from_units)
            }
            Self::Bars(bars) => {
                let mut latest_first = bars.iter().rev();
                latest_first.find(|bar| bar.instrument == instrument).map(|bar| bar.close)
            }
        }
    }

    /// The timestamp of the last row; none without rows.
    #[must_use]
    pub fn last_timestamp(&self) -> Option<TsNanos> {
        match self {
            Self::Trades(parts) => {
                let lasts = parts.iter().filter_map(|part| part.ts_event().last());
                lasts.max().copied().map(TsNanos::from_nanos)
            }
            Self::Bars(bars) => bars.last().map(|bar| bar.ts_event),
        }
    }

    /// The day's sessions (F6): the official ones, or today's where days before had `longer` ones; one
    /// session where the day is known as one bar. Nothing of the day's own rows is looked at.
    #[must_use]
    pub fn hours(&self, longer: bool) -> Option<TradingHours> {
        Some(hours_of(self.date()?, longer, self.is_of_daily_bars()))
    }

    /// When DAY orders of an instrument end on a day with these hours (F6): at its own last row, or at the
    /// close where that is later.
    #[must_use]
    pub fn end_of(&self, instrument: InstrumentIx, hours: TradingHours) -> TsNanos {
        let last = match self {
            Self::Trades(parts) => {
                let part = parts.get(usize::from(instrument.0));
                part.and_then(|part| part.ts_event().last().copied()).map(TsNanos::from_nanos)
            }
            Self::Bars(bars) => {
                let mut latest_first = bars.iter().rev();
                latest_first.find(|bar| bar.instrument == instrument).map(|bar| bar.ts_event)
            }
        };
        last.map_or(hours.close, |last| last.max(hours.close))
    }

    /// When a day with these hours ends: at the last row, or at the close where that is later.
    #[must_use]
    pub fn end(&self, hours: TradingHours) -> Option<TsNanos> {
        Some(self.last_timestamp()?.max(hours.close))
    }
}

/// The sessions of a day (F6), `longer` where days before had longer ones; `is_daily` where days are known as one
/// bar each.
pub(crate) fn hours_of(date: JstDate, longer: bool, is_daily: bool) -> TradingHours {
    let hours = if longer { TradingHours::longest_of(date) } else { TradingHours::of(date) };
    if is_daily { hours.in_one_session() } else { hours }
}

/// The trades of one instrument on one day, as columns of equal length.
#[derive(Debug, Clone)]
pub struct TradingDay<'a> {
    columns: DayColumns<'a>,
}

#[derive(Debug, Clone)]
enum DayColumns<'a> {
    Borrowed { ts_event: &'a [u64], price: &'a [i64], quantity: &'a [u64] },
    Piece { segment: TradeSegment, rows: Range<usize> },
}

impl<'a> TradingDay<'a> {
    /// The rows of a segment, which is mapped as long as the day lives.
    pub(super) fn of_segment(segment: TradeSegment, rows: Range<usize>) -> Self {
        Self { columns: DayColumns::Piece { segment, rows } }
    }

    /// A day without trades.
    #[must_use]
    pub const fn empty() -> Self {
        Self { columns: DayColumns::Borrowed { ts_event: &[], price: &[], quantity: &[] } }
    }

    /// Cuts columns of equal length at midnight in Japan.
    ///
    /// # Panics
    /// When the columns are not of equal length.
    pub fn split(
        ts_event: &'a [u64],
        price: &'a [i64],
        quantity: &'a [u64],
    ) -> impl Iterator<Item = Self> {
        assert!(ts_event.len() == price.len());
        assert!(ts_event.len() == quantity.len());
        day_rows(ts_event, 0..ts_event.len(), 0).into_iter().map(move |day| {
            let rows = day.rows;
            Self {
                columns: DayColumns::Borrowed {
                    ts_event: &ts_event[rows.clone()],
                    price: &price[rows.clone()],
                    quantity: &quantity[rows],
                },
            }
        })
    }

    /// Nanoseconds since 1970 in UTC.
    #[must_use]
    pub fn ts_event(&self) -> &[u64] {
        match &self.columns {
            DayColumns::Borrowed { ts_event, .. } => ts_event,
            DayColumns::Piece { segment, rows } => &segment.ts_event()[rows.clone()],
        }
    }

    /// 1/10,000 yen.
    #[must_use]
    pub fn price(&self) -> &[i64] {
        match &self.columns {
            DayColumns::Borrowed { price, .. } => price,
            DayColumns::Piece { segment, rows } => &segment.price()[rows.clone()],
        }
    }

    /// Shares of each trade.
    #[must_use]
    pub fn quantity(&self) -> &[u64] {
        match &self.columns {
            DayColumns::Borrowed { quantity, .. } => quantity,
            DayColumns::Piece { segment, rows } => &segment.quantity()[rows.clone()],
        }
    }

    /// The shares of the first `rows` trades together.
    pub(crate) fn volume(&self, rows: usize) -> u128 {
        sum(&self.quantity()[..rows])
    }

    /// Trades of the day.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ts_event().len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Time of a row.
    #[must_use]
    pub fn ts_at(&self, row: usize) -> TsNanos {
        TsNanos::from_nanos(self.ts_event()[row])
    }

    /// Price of a row.
    #[must_use]
    pub fn price_at(&self, row: usize) -> Price {
        Price::from_units(self.price()[row])
    }
}

/// The exact sum of numbers. Their halves are added up apart: sums of 128 bits would be made one number
/// at a time.
fn sum(numbers: &[u64]) -> u128 {
    // The halves of so many numbers fit 64 bits.
    let pieces = numbers.chunks(1 << 31).map(|piece| {
        let add = |(low, high): (u64, u64), number: &u64| {
            (low.wrapping_add(number & u64::from(u32::MAX)), high.wrapping_add(number >> 32))
        };
        let (low, high) = piece.iter().fold((0, 0), add);
        u128::from(low) + (u128::from(high) << 32)
    });
    pieces.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::time::NANOS_PER_MINUTE;

    fn at(day: u32, minute: u64) -> u64 {
        let date = JstDate::from_ymd_opt(2025, 1, day).unwrap();
        TsNanos::from_jst(date, minute * NANOS_PER_MINUTE).unwrap().nanos()
    }

    #[test]
    fn days_are_cut_at_midnight_in_japan() {
        let ts = [at(6, 9 * 60), at(6, 15 * 60 + 30), at(7, 9 * 60), at(9, 9 * 60)];
        let days: Vec<_> = TradingDay::split(&ts, &[1; 4], &[1; 4]).collect();
        assert_eq!(days.iter().map(TradingDay::len).collect::<Vec<_>>(), [2, 1, 1]);
        let days: Vec<_> = days.into_iter().map(MarketDay::from).collect();
        let end = |day: &MarketDay<'_>| day.end(day.hours(false).unwrap()).unwrap();
        assert_eq!(end(&days[0]).nanos(), ts[1]);
        assert_eq!(end(&days[1]).to_string(), "2025-01-07 15:30:00.000000 JST");
        assert_eq!(days[2].date().unwrap().to_string(), "2025-01-09");
        assert_eq!(MarketDay::from(TradingDay::empty()).hours(false), None);
    }

    #[test]
    fn bars_are_ordered_by_end_and_instrument() {
        let bar = |minute, instrument| Bar {
            ts_event: TsNanos::from_nanos(at(6, minute)),
            instrument: InstrumentIx(instrument),
            granularity: BarGranularity::Minute,
            open: Price::from_yen(1),
            high: Price::from_yen(1),
            low: Price::from_yen(1),
            close: Price::from_yen(1),
            volume: domain::Quantity::new(1),
        };
        let day = MarketDay::bars(vec![bar(541, 1), bar(543, 1), bar(541, 0), bar(542, 0)]);
        let MarketDay::Bars(bars) = &day else { panic!() };
        let order: Vec<_> = bars.iter().map(|bar| bar.instrument.0).collect();
        assert_eq!(order, [0, 1, 0, 1]);
        assert_eq!(day.first_timestamp().unwrap().nanos(), at(6, 541));
    }

    #[test]
    fn sums_are_exact() {
        let numbers = [u64::MAX, 1, u64::from(u32::MAX), 1 << 32, 100, u64::MAX];
        assert_eq!(sum(&numbers), numbers.iter().map(|number| u128::from(*number)).sum());
        assert_eq!(sum(&[]), 0);
    }
}
