//! The rows that a session takes: trades as columns, or bars.

use std::ops::Range;

use domain::adjustment::ExRights;
use domain::execution::ExecutionClient;
use domain::limits::INSTRUMENTS_MAX;
use domain::market::{Bar, TradeColumns, Window};
use domain::{InstrumentIx, JstDate, Price, TsNanos};
use results::recorder::Recorder;
use results::sink::Record;

/// The last price of each instrument that has traded, and its time.
#[derive(Debug, Default, Clone, Copy)]
pub struct LastPrices {
    prices: [Option<Price>; INSTRUMENTS_MAX],
    /// Times of the last prices: of a trade its own, of a bar its end.
    over: [TsNanos; INSTRUMENTS_MAX],
    /// The last close of each before the first day, as shares are counted now.
    base: [Option<Price>; INSTRUMENTS_MAX],
    /// Instruments of the session.
    count: usize,
}

impl LastPrices {
    /// No trade yet, for so many instruments; `base` has the last close of each before the first day.
    #[must_use]
    pub fn new(count: usize, base: &[Option<Price>]) -> Self {
        let base = std::array::from_fn(|index| base.get(index).copied().flatten());
        Self { base, count, ..Self::default() }
    }

    /// Instruments of the session.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// The last price of an instrument, or the close before the first day.
    #[must_use]
    pub fn known(&self, instrument: InstrumentIx) -> Option<Price> {
        let index = usize::from(instrument.0);
        self.prices[index].or(self.base[index])
    }

    /// The date of the last price of an instrument.
    #[must_use]
    pub fn date_of(&self, instrument: InstrumentIx) -> Option<JstDate> {
        let index = usize::from(instrument.0);
        self.prices[index].map(|_| self.over[index].jst_date())
    }

    /// The prices of an instrument change with a split. Gives the last one, where it has traded.
    pub fn adjust(&mut self, ex_rights: &ExRights) -> Option<Price> {
        let index = usize::from(ex_rights.instrument.0);
        for price in [&mut self.prices[index], &mut self.base[index]] {
            *price = price.map(|price| ex_rights.adjustment.price(price));
        }
        self.prices[index]
    }

    /// The last prices by instrument; zero if an instrument has not traded, so that its position has no value.
    #[must_use]
    pub fn or_zero(&self) -> [Price; INSTRUMENTS_MAX] {
        self.prices.map(Option::unwrap_or_default)
    }

    /// Hands the prices to what executes the next commands.
    #[inline]
    pub fn hand_to(&self, execution: &mut impl ExecutionClient) {
        let prices = self.prices.iter().zip(&self.over).take(self.count);
        for (index, (price, over)) in prices.enumerate() {
            if let Some(price) = price {
                // There are at most 4 instruments.
                execution.set_last_price(InstrumentIx(index as u16), *price, *over);
            }
        }
    }

    /// Takes prices and their times from rows, the last row first.
    #[inline]
    fn take(&mut self, latest_first: impl Iterator<Item = (u16, Price, TsNanos)>) {
        let mut missing = self.count;
        let mut found = [false; INSTRUMENTS_MAX];
        for (index, price, over) in latest_first {
            let index = usize::from(index);
            if !found[index] {
                found[index] = true;
                self.prices[index] = Some(price);
                self.over[index] = over;
                missing -= 1;
                if missing == 0 {
                    return;
                }
            }
        }
    }
}

/// Rows in time order that can be handed to a strategy.
#[expect(clippy::len_without_is_empty, reason = "there is always a row")]
pub trait Rows<'w>: Copy {
    /// How many there are.
    fn len(self) -> usize;

    /// Nanoseconds since 1970 in UTC.
    fn timestamp(self, row: usize) -> u64;

    /// Only these of the rows.
    #[must_use]
    fn part(self, rows: Range<usize>) -> Self;

    /// The window that the strategy gets; `one` if it is a single row.
    fn window(self, one: bool) -> Window<'w>;

    /// Takes the last prices of `rows`, at least one.
    fn note_last(self, rows: Range<usize>, last: &mut LastPrices);

    /// Records a row, for a sink that takes market data.
    fn record(self, row: usize, recorder: &mut Recorder<'_>);
}

impl<'w> Rows<'w> for TradeColumns<'w> {
    #[inline(always)]
    fn len(self) -> usize {
        self.ts_event.len()
    }

    #[inline(always)]
    fn timestamp(self, row: usize) -> u64 {
        self.ts_event[row]
    }

    #[inline(always)]
    fn part(self, rows: Range<usize>) -> Self {
        Self {
            ts_event: &self.ts_event[rows.clone()],
            instrument: &self.instrument[rows.clone()],
            price: &self.price[rows.clone()],
            quantity: &self.quantity[rows],
        }
    }

    #[inline(always)]
    fn window(self, one: bool) -> Window<'w> {
        if one { Window::OneTrade(self.trade(0)) } else { Window::Trades(self) }
    }

    #[inline(always)]
    fn note_last(self, rows: Range<usize>, last: &mut LastPrices) {
        if last.count == 1 {
            last.prices[0] = Some(Price::from_units(self.price[rows.end - 1]));
            last.over[0] = TsNanos::from_nanos(self.ts_event[rows.end - 1]);
            return;
        }
        last.take(rows.rev().map(|row| {
            let (price, over) = (self.price[row], self.ts_event[row]);
            (self.instrument[row], Price::from_units(price), TsNanos::from_nanos(over))
        }));
    }

    fn record(self, row: usize, recorder: &mut Recorder<'_>) {
        recorder.tell(Record::Trade(&self.trade(row)));
    }
}

/// Bars, and whether they were recorded and our orders matched against them before the strategy sees the first.
#[derive(Debug, Clone, Copy)]
pub struct BarRows<'w> {
    /// The bars.
    pub bars: &'w [Bar],
    /// Whether they were recorded and matched.
    pub matched: bool,
}

impl<'w> Rows<'w> for BarRows<'w> {
    fn len(self) -> usize {
        self.bars.len()
    }

    fn timestamp(self, row: usize) -> u64 {
        self.bars[row].ts_event.nanos()
    }

    fn part(self, rows: Range<usize>) -> Self {
        Self { bars: &self.bars[rows], ..self }
    }

    fn window(self, one: bool) -> Window<'w> {
        if one { Window::OneBar(self.bars[0]) } else { Window::Bars(self.bars) }
    }

    fn note_last(self, rows: Range<usize>, last: &mut LastPrices) {
        let latest_first = self.bars[rows].iter().rev();
        last.take(latest_first.map(|bar| (bar.instrument.0, bar.close, bar.last_nanosecond())));
    }

    fn record(self, row: usize, recorder: &mut Recorder<'_>) {
        if !self.matched {
            recorder.tell(Record::Bar(&self.bars[row]));
        }
    }
}

/// How far the strategy has read one window of rows.
#[derive(Debug)]
pub struct Pass<'w, R> {
    pub(crate) rows: R,
    pub(crate) start: usize,
    end: usize,
    /// The first row that the strategy has not read.
    pub(crate) reached: usize,
    /// The first row that is not recorded yet.
    pub(crate) recorded: usize,
    /// The window that the strategy gets next.
    pub(crate) next: Window<'w>,
}

impl<'w, R: Rows<'w>> Pass<'w, R> {
    /// A pass over the rows of `window`.
    #[inline]
    pub fn new(rows: R, window: Range<usize>) -> Self {
        let Range { start, end } = window;
        let next = rows.part(start..end).window(end - start == 1);
        Self { rows, start, end, reached: start, recorded: start, next }
    }

    /// The first row that the strategy has not read.
    #[inline]
    pub const fn reached(&self) -> usize {
        self.reached
    }

    /// The end of the window.
    #[inline]
    pub const fn end(&self) -> usize {
        self.end
    }

    /// Whether the strategy has read all rows.
    #[inline]
    pub const fn is_done(&self) -> bool {
        self.reached >= self.end
    }

    /// Notes that the rows before `row` are recorded.
    #[inline]
    pub const fn set_recorded(&mut self, row: usize) {
        self.recorded = row;
    }
}
