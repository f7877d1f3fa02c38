//! The end of a day: the account valued at the end of each minute, and how far each round trip went
//! against and for us on its way.

use domain::time::NANOS_PER_MINUTE;
use domain::{Money, Price, TsNanos};

use super::Notes;
use super::ledger::{Booked, Change, instrument_at};
use crate::rows::{EquityRow, MarkRow, RoundTrip};
use crate::sink::Record;
use crate::statistics::Performance;

/// What the times of rows, and of the fills that come from them, say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowTimes {
    /// When an event was: a trade at 09:01:00 is the first of the minute that ends at 09:02.
    Events,
    /// The end of a span: a bar at 09:01:00 is the minute that ends then.
    SpanEnds,
}

impl RowTimes {
    /// The end of the minute that a row is in.
    #[must_use]
    pub fn minute_end(self, ts_event: u64) -> u64 {
        match self {
            Self::Events => (ts_event / NANOS_PER_MINUTE + 1) * NANOS_PER_MINUTE,
            Self::SpanEnds => ts_event.div_ceil(NANOS_PER_MINUTE) * NANOS_PER_MINUTE,
        }
    }

    fn is_in_minute(self, ts_event: u64, minute_end: u64) -> bool {
        match self {
            Self::Events => ts_event < minute_end,
            Self::SpanEnds => ts_event <= minute_end,
        }
    }
}

/// The rows of one instrument on one day, as far as the strategy has seen them.
#[derive(Debug, Clone, Copy)]
pub struct DaySlice<'a> {
    /// Nanoseconds since 1970 in UTC, in time order.
    pub ts_event: &'a [u64],
    /// 1/10,000 yen: of each trade, or at the end of each bar.
    pub price: &'a [i64],
}

/// The account at the end of the last valued minute, and what has changed since.
#[derive(Debug)]
pub(super) struct Minutes {
    cash: Money,
    held: Vec<i64>,
    last_prices: Vec<Option<Price>>,
    excursions: Vec<Excursion>,
    /// Fills of the present day, in order.
    changes: Vec<Noted>,
    /// The round trips that they ended, in order.
    trips: Vec<RoundTrip>,
    /// The last minute of the present day that was valued.
    last: Option<EquityRow>,
}

/// A fill or a split of the present day.
#[derive(Debug)]
struct Noted {
    change: Change,
    /// Whether it ended the next one of the round trips.
    ends_trip: bool,
}

/// How far a position that is not closed went on its way.
#[derive(Debug, Clone, Copy, Default)]
struct Excursion {
    /// Shares held since the last change.
    held: i64,
    /// Money of the way up to the last change.
    money: Money,
    lowest: Money,
    highest: Money,
}

impl Minutes {
    pub(super) fn new(cash: Money, instruments: usize) -> Self {
        Self {
            cash,
            held: vec![0; instruments],
            last_prices: vec![None; instruments],
            excursions: vec![Excursion::default(); instruments],
            changes: Vec::new(),
            trips: Vec::new(),
            last: None,
        }
    }

    /// Notes a fill of the present day.
    pub(super) fn note(&mut self, (change, ended): Booked) {
        self.changes.push(Noted { change, ends_trip: ended.is_some() });
        self.trips.extend(ended);
    }

    /// Takes in a split before the day's first row, with the adjusted last price.
    pub(super) fn adjust(&mut self, booked: Booked, price: Price) {
        if let Some(last) = &mut self.last_prices[booked.0.instrument] {
            *last = price;
        }
        self.note(booked);
    }

    /// The last price of each instrument.
    pub(super) fn last_prices(&self) -> &[Option<Price>] {
        &self.last_prices
    }

    /// Takes in fills that no day's end has covered.
    pub(super) fn flush(&mut self, performance: &mut Performance, sink: &mut Notes<'_>) {
        let instruments = self.held.len();
        self.end_trips(
            &vec![DaySlice { ts_event: &[], price: &[] }; instruments],
            performance,
            sink,
        );
        self.changes.clear();
    }

    /// Values a day without rows: at the last prices there are.
    pub(super) fn end_day_without_rows(
        &mut self,
        ts_event: TsNanos,
        performance: &mut Performance,
        sink: &mut Notes<'_>,
    ) {
        let changes = std::mem::take(&mut self.changes);
        changes.iter().for_each(|noted| self.apply(&noted.change));
        let row = EquityRow { ts_event, cash: self.cash, equity: self.equity() };
        self.changes = changes;
        self.flush(performance, sink);
        performance.day(&row);
        sink.take(Record::Day(&row));
    }

    /// Values a day, or what is left of it. Excursions first: round trips come before the minutes.
    pub(super) fn end_day(
        &mut self,
        day: &[DaySlice<'_>],
        times: RowTimes,
        performance: &mut Performance,
        sink: &mut Notes<'_>,
    ) {
        self.value(day, times, performance, sink);
        if let Some(row) = self.last.take() {
            performance.day(&row);
            sink.take(Record::Day(&row));
        }
    }

    /// Values whole minutes of a day that goes on.
    pub(super) fn value(
        &mut self,
        part: &[DaySlice<'_>],
        times: RowTimes,
        performance: &mut Performance,
        sink: &mut Notes<'_>,
    ) {
        self.end_trips(part, performance, sink);
        let mut changes = std::mem::take(&mut self.changes);
        self.value_minutes(part, times, &changes, performance, sink);
        // The memory is kept for the next day.
        changes.clear();
        self.changes = changes;
    }

    fn value_minutes(
        &mut self,
        day: &[DaySlice<'_>],
        times: RowTimes,
        changes: &[Noted],
        performance: &mut Performance,
        sink: &mut Notes<'_>,
    ) {
        let mut rows = vec![0; day.len()];
        let mut changes = changes.iter().map(|noted| &noted.change).peekable();
        while let Some(minute_end) = next_minute_end(day, &rows, times) {
            let is_in = |ts_event: u64| times.is_in_minute(ts_event, minute_end);
            while let Some(change) = changes.next_if(|change| is_in(change.ts_event)) {
                self.apply(change);
            }
            let ts_event = TsNanos::from_nanos(minute_end);
            for (index, slice) in day.iter().enumerate() {
                let from = rows[index];
                rows[index] += rows_while(&slice.ts_event[from..], is_in);
                if rows[index] > from {
                    let price = Price::from_units(slice.price[rows[index] - 1]);
                    self.last_prices[index] = Some(price);
                    let quantity = self.held[index];
                    let instrument = instrument_at(index);
                    sink.take(Record::Mark(&MarkRow { ts_event, instrument, price, quantity }));
                }
            }
            let row = EquityRow { ts_event, cash: self.cash, equity: self.equity() };
            performance.minute(&row, self.held.iter().any(|held| *held != 0));
            sink.take(Record::Equity(&row));
            self.last = Some(row);
        }
        changes.for_each(|change| self.apply(change));
    }

    fn apply(&mut self, change: &Change) {
        self.cash = change.cash;
        self.held[change.instrument] = change.held;
    }

    fn equity(&self) -> Money {
        let value = |(held, price): (&i64, &Option<Price>)| {
            Money::from_units(held * price.unwrap_or_default().units())
        };
        self.cash + self.held.iter().zip(&self.last_prices).map(value).sum()
    }

    /// Follows every position through the day's prices; tells the round trips that ended, in the
    /// order of their ends.
    fn end_trips(
        &mut self,
        day: &[DaySlice<'_>],
        performance: &mut Performance,
        sink: &mut Notes<'_>,
    ) {
        let mut rows = vec![0; day.len()];
        let mut trips = self.trips.iter_mut();
        for Noted { change, ends_trip } in &self.changes {
            let (index, slice) = (change.instrument, day[change.instrument]);
            let excursion = &mut self.excursions[index];
            // Up to the trade that filled it, which counts for what was held before and after.
            let from = rows[index];
            let to = from + rows_while(&slice.ts_event[from..], |ts| ts <= change.ts_event);
            excursion.follow(&slice.price[from..to]);
            let at_fill = slice.ts_event[from..to].iter().rev();
            rows[index] = to - at_fill.take_while(|ts| **ts == change.ts_event).count();
            excursion.held = change.held;
            excursion.money = change.trip_money;
            if let Some(trip) = ends_trip.then(|| trips.next()).flatten() {
                trip.mae = excursion.lowest.min(trip.pnl);
                trip.mfe = excursion.highest.max(trip.pnl);
                *excursion = Excursion::default();
                performance.round_trip(trip);
                sink.take(Record::RoundTrip(trip));
            }
        }
        // The memory is kept for the next day.
        self.trips.clear();
        for (index, slice) in day.iter().enumerate() {
            self.excursions[index].follow(&slice.price[rows[index]..]);
        }
    }
}

/// Rows that are passed by a look at the last of them: the times of one line of the processor's cache.
const PASSED_AT_ONCE: usize = 64 / size_of::<u64>();

/// How many rows there are before the first whose time is not as asked; those before it all are. The way is
/// short where fills and minutes follow each other, and the next look does not wait for the one before, as it
/// would in a search.
fn rows_while(ts_event: &[u64], is_so: impl Fn(u64) -> bool) -> usize {
    let lines = ts_event.chunks_exact(PASSED_AT_ONCE);
    let from = PASSED_AT_ONCE * lines.take_while(|line| is_so(line[PASSED_AT_ONCE - 1])).count();
    from + ts_event[from..].iter().take_while(|ts| is_so(**ts)).count()
}

impl Excursion {
    /// Takes in prices at which the position could have been sold.
    fn follow(&mut self, prices: &[i64]) {
        if self.held == 0 || prices.is_empty() {
            return;
        }
        let ends = |(low, high): (i64, i64), price: &i64| (low.min(*price), high.max(*price));
        let (low, high) = prices.iter().fold((i64::MAX, i64::MIN), ends);
        for price in [low, high] {
            let worth = self.money + Money::from_units(self.held * price);
            self.lowest = self.lowest.min(worth);
            self.highest = self.highest.max(worth);
        }
    }
}

/// The end of the minute of the earliest row that is left. Minutes are the same in every zone that
/// differs by whole minutes.
fn next_minute_end(day: &[DaySlice<'_>], rows: &[usize], times: RowTimes) -> Option<u64> {
    let first = |(slice, row): (&DaySlice<'_>, &usize)| slice.ts_event.get(*row).copied();
    let earliest = day.iter().zip(rows).filter_map(first).min()?;
    Some(times.minute_end(earliest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_as_by_looking_at_each() {
        for rows in 0..70_u64 {
            // Three rows share a time.
            let times: Vec<u64> = (0..rows).map(|row| row / 3).collect();
            for end in 0..30 {
                let wanted = times.iter().take_while(|ts| **ts < end).count();
                assert_eq!(rows_while(&times, |ts| ts < end), wanted, "{rows} rows up to {end}");
            }
        }
    }
}
