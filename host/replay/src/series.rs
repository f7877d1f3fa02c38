//! The trades of one instrument over a range of dates, cut into trading days.

use std::ops::Range;

use domain::session::TradingHours;
use domain::time::{JST_OFFSET_NANOS, NANOS_PER_DAY};
use domain::{Price, TsNanos};
use marketdata::TradeSegment;

/// Trades of one instrument in time order, in pieces that stay where the cache has them.
#[derive(Debug, Default)]
pub struct TradeSeries {
    pieces: Vec<(TradeSegment, Range<usize>)>,
}

/// The trades of one day, as columns.
#[derive(Debug, Clone, Copy)]
pub struct TradingDay<'a> {
    /// Nanoseconds since 1970 in UTC.
    pub ts_event: &'a [u64],
    /// 1/10,000 yen.
    pub price: &'a [i64],
    /// Shares.
    pub quantity: &'a [u64],
}

/// The rows of one instrument that a strategy has seen of a day, for valuing the account. May be empty.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DaySlice<'a> {
    /// Nanoseconds since 1970 in UTC.
    pub(crate) ts_event: &'a [u64],
    /// 1/10,000 yen.
    pub(crate) price: &'a [i64],
}

impl TradeSeries {
    /// Adds the rows `range` of a segment. Segments come in time order.
    pub fn push(&mut self, segment: TradeSegment, range: Range<usize>) {
        if !range.is_empty() {
            self.pieces.push((segment, range));
        }
    }

    /// Trades in all pieces.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pieces.iter().map(|(_, range)| range.len()).sum()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The pieces' segments, with the rows taken from each.
    pub fn segments(&self) -> impl Iterator<Item = (&TradeSegment, &Range<usize>)> {
        self.pieces.iter().map(|(segment, range)| (segment, range))
    }

    /// The trading days with trades, in order. No day spans two pieces: vendor files are cut at
    /// the end of a day or month.
    pub fn days(&self) -> impl Iterator<Item = TradingDay<'_>> {
        self.pieces.iter().flat_map(|(segment, range)| {
            TradingDay::split(
                &segment.ts_event()[range.clone()],
                &segment.price()[range.clone()],
                &segment.quantity()[range.clone()],
            )
        })
    }
}

impl<'a> TradingDay<'a> {
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
        let mut from = 0;
        std::iter::from_fn(move || {
            let first = TsNanos::from_nanos(*ts_event.get(from)?);
            let midnight = (first.jst_day() + 1) * NANOS_PER_DAY - JST_OFFSET_NANOS;
            let to = from + ts_event[from..].partition_point(|ts| *ts < midnight);
            let day = Self {
                ts_event: &ts_event[from..to],
                price: &price[from..to],
                quantity: &quantity[from..to],
            };
            from = to;
            Some(day)
        })
    }

    /// Trades of the day; at least one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ts_event.len()
    }

    /// Whether there are none, which never happens to a day that was cut out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ts_event.is_empty()
    }

    /// Time of a row.
    #[must_use]
    pub fn ts_at(&self, row: usize) -> TsNanos {
        TsNanos::from_nanos(self.ts_event[row])
    }

    /// Price of a row.
    #[must_use]
    pub fn price_at(&self, row: usize) -> Price {
        Price::from_units(self.price[row])
    }

    /// The day's sessions (F6); longer than the official ones where trades say so.
    #[must_use]
    pub fn hours(&self) -> TradingHours {
        TradingHours::of_data(self.ts_at(self.len() - 1))
    }

    /// When DAY orders end (F6): at the last trade, or at the close where that is later.
    #[must_use]
    pub fn end(&self) -> TsNanos {
        self.ts_at(self.len() - 1).max(self.hours().close)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::JstDate;
    use domain::time::NANOS_PER_MINUTE;

    #[test]
    fn days_are_cut_at_midnight_in_japan() {
        let at = |day, minute| {
            let date = JstDate::from_ymd_opt(2025, 1, day).unwrap();
            TsNanos::from_jst(date, minute * NANOS_PER_MINUTE).unwrap().nanos()
        };
        let ts = [at(6, 9 * 60), at(6, 15 * 60 + 30), at(7, 9 * 60), at(9, 9 * 60)];
        let days: Vec<_> = TradingDay::split(&ts, &[1; 4], &[1; 4]).collect();
        assert_eq!(days.iter().map(TradingDay::len).collect::<Vec<_>>(), [2, 1, 1]);
        assert_eq!(days[0].end().nanos(), ts[1]);
        assert_eq!(days[1].end().to_string(), "2025-01-07 15:30:00.000000 JST");
    }
}
