//! What is replayed: the trades or bars of up to four instruments, day by day.
//!
//! Rows stay in the cache files until their day comes. Each day maps its file anew and unmaps it
//! afterwards, so the memory of a run does not grow with its period.

mod day;

use std::ops::Range;

use domain::market::{Bar, BarGranularity};
use domain::time::{JST_OFFSET_NANOS, NANOS_PER_DAY};
use domain::{InstrumentIx, JstDate, TradingCalendar, TsNanos};
use marketdata::{BarSegment, TradeSegment, make_bars};

pub(crate) use day::hours_of;
pub use day::{MarketDay, TradingDay};

/// The rows of one date inside a piece.
#[derive(Debug, Clone)]
struct DayRows {
    /// Days since 1970-01-01 of the date in Japan.
    jst_day: u64,
    piece: usize,
    rows: Range<usize>,
}

/// The dates of the rows `range` of timestamps in time order.
fn day_rows(ts_event: &[u64], range: Range<usize>, piece: usize) -> Vec<DayRows> {
    let mut days = Vec::new();
    let mut from = range.start;
    while from < range.end {
        let jst_day = TsNanos::from_nanos(ts_event[from]).jst_day();
        let midnight = (jst_day + 1) * NANOS_PER_DAY - JST_OFFSET_NANOS;
        let to = from + ts_event[from..range.end].partition_point(|ts| *ts < midnight);
        days.push(DayRows { jst_day, piece, rows: from..to });
        from = to;
    }
    days
}

/// Rows of one day among `days`, which are in time order.
fn find_day(days: &[DayRows], jst_day: u64) -> Option<&DayRows> {
    days.binary_search_by_key(&jst_day, |day| day.jst_day).ok().map(|index| &days[index])
}

/// Trades of one instrument in time order, in pieces that stay where the cache has them.
#[derive(Debug, Default)]
pub struct TradeSeries {
    pieces: Vec<(TradeSegment, Range<usize>)>,
    days: Vec<DayRows>,
}

impl TradeSeries {
    /// Adds the rows `range` of a segment. Segments may come in any order; no day spans two of them.
    pub fn push(&mut self, segment: TradeSegment, range: Range<usize>) {
        if !range.is_empty() {
            self.days.extend(day_rows(segment.ts_event(), range.clone(), self.pieces.len()));
            self.pieces.push((segment.at_rest(), range));
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

    /// The trading days with trades, in order.
    pub fn days(&self) -> impl Iterator<Item = TradingDay<'_>> {
        self.days.iter().map(|day| self.day(day))
    }

    fn day(&self, day: &DayRows) -> TradingDay<'static> {
        let segment = self.pieces[day.piece].0.renewed();
        TradingDay::of_segment(segment, day.rows.clone())
    }
}

/// Where the bars of a piece come from.
#[derive(Debug)]
enum BarPiece {
    /// The vendor's bar file.
    Vendor(BarSegment),
    /// The vendor's trades; bars are made when their day comes.
    Trades(TradeSegment),
}

/// Bars of one instrument, each day from one piece.
#[derive(Debug)]
pub struct BarSeries {
    granularity: BarGranularity,
    pieces: Vec<BarPiece>,
    days: Vec<DayRows>,
}

impl BarSeries {
    /// No bars yet, of this span.
    #[must_use]
    pub const fn new(granularity: BarGranularity) -> Self {
        Self { granularity, pieces: Vec::new(), days: Vec::new() }
    }

    /// Adds the bars `range` of a segment. Segments may come in any order; no day spans two of them.
    pub fn push(&mut self, segment: &BarSegment, range: Range<usize>) {
        self.days.extend(day_rows(segment.ts_event(), range, self.pieces.len()));
        self.pieces.push(BarPiece::Vendor(segment.at_rest()));
    }

    /// Adds the bars that the trades `ranges` of a segment make, each of whole days.
    pub fn push_trades(&mut self, segment: &TradeSegment, ranges: &[Range<usize>]) {
        for range in ranges {
            self.days.extend(day_rows(segment.ts_event(), range.clone(), self.pieces.len()));
        }
        self.pieces.push(BarPiece::Trades(segment.at_rest()));
    }

    /// Adds the bars of one day to `out`.
    fn day(&self, day: &DayRows, instrument: InstrumentIx, out: &mut Vec<Bar>) {
        match &self.pieces[day.piece] {
            BarPiece::Vendor(segment) => {
                let segment = segment.renewed();
                out.extend(day.rows.clone().map(|row| segment.bar(row, instrument)));
            }
            BarPiece::Trades(segment) => {
                let segment = segment.renewed();
                let rows = day.rows.clone();
                let mut made = Vec::new();
                make_bars(
                    self.granularity,
                    instrument,
                    &segment.ts_event()[rows.clone()],
                    &segment.price()[rows.clone()],
                    &segment.quantity()[rows],
                    &mut made,
                );
                out.extend(made.into_iter().map(|made| made.bar));
            }
        }
    }
}

/// What a run replays: trades or bars of its instruments, in their order.
#[derive(Debug)]
pub struct MarketSeries {
    rows: SeriesOf,
    /// Days since 1970-01-01 on which any instrument has rows, in order.
    days: Vec<u64>,
}

#[derive(Debug)]
enum SeriesOf {
    Trades(Vec<TradeSeries>),
    Bars(Vec<BarSeries>),
}

fn all_days<'a>(series: impl Iterator<Item = &'a Vec<DayRows>>) -> Vec<u64> {
    let mut days: Vec<u64> = series.flatten().map(|day| day.jst_day).collect();
    days.sort_unstable();
    days.dedup();
    days
}

impl MarketSeries {
    /// Trades of instruments, in the order of the run's list of instruments.
    #[must_use]
    pub fn of_trades(mut series: Vec<TradeSeries>) -> Self {
        for series in &mut series {
            // A day with a file of its own may lie between days of its month's file.
            series.days.sort_by_key(|day| day.jst_day);
        }
        let days = all_days(series.iter().map(|series| &series.days));
        Self { rows: SeriesOf::Trades(series), days }
    }

    /// Bars of instruments, in the order of the run's list of instruments.
    #[must_use]
    pub fn of_bars(mut series: Vec<BarSeries>) -> Self {
        for series in &mut series {
            // Days of a bar file may lie between days whose bars are made from trades.
            series.days.sort_by_key(|day| day.jst_day);
        }
        let days = all_days(series.iter().map(|series| &series.days));
        Self { rows: SeriesOf::Bars(series), days }
    }

    /// The days on which any of the instruments has rows.
    #[must_use]
    pub fn calendar(&self) -> TradingCalendar {
        let date = |day: &u64| TsNanos::from_nanos(day * NANOS_PER_DAY).jst_date();
        TradingCalendar::from_dates(self.days.iter().map(date))
    }

    /// How many days have rows.
    #[must_use]
    pub fn day_count(&self) -> usize {
        self.days.len()
    }

    /// The days in order; each reads its rows when it is taken.
    pub fn days(&self) -> impl Iterator<Item = MarketDay<'_>> {
        self.days.iter().map(|&jst_day| self.rows_of(jst_day))
    }

    /// The rows of one date, read now; none where it has none.
    #[must_use]
    pub fn day(&self, date: JstDate) -> MarketDay<'_> {
        let midnight = TsNanos::from_jst(date, 0).unwrap_or_default();
        self.rows_of(midnight.jst_day())
    }

    fn rows_of(&self, jst_day: u64) -> MarketDay<'_> {
        match &self.rows {
            SeriesOf::Trades(series) => MarketDay::Trades(
                series
                    .iter()
                    .map(|series| match find_day(&series.days, jst_day) {
                        Some(day) => series.day(day),
                        None => TradingDay::empty(),
                    })
                    .collect(),
            ),
            SeriesOf::Bars(series) => {
                let mut bars = Vec::new();
                for (index, series) in series.iter().enumerate() {
                    if let Some(day) = find_day(&series.days, jst_day) {
                        // A run has at most 4 instruments.
                        series.day(day, InstrumentIx(index as u16), &mut bars);
                    }
                }
                MarketDay::bars(bars)
            }
        }
    }
}
