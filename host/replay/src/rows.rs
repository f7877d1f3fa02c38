//! The rows that the loop goes through: trades as columns, or bars.

use std::ops::Range;

use domain::adjustment::ExRights;
use domain::limits::INSTRUMENTS_MAX;
use domain::market::{Bar, TradeColumns, Window};
use domain::{InstrumentIx, JstDate, Price, TsNanos};

use exchange::Exchange;
use results::recorder::Recorder;
use results::sink::Record;

/// The last price of each instrument that has traded, and its time.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct LastPrices {
    prices: [Option<Price>; INSTRUMENTS_MAX],
    /// Until when the trades of each are over.
    over: [TsNanos; INSTRUMENTS_MAX],
    /// Instruments of the run.
    count: usize,
}

impl LastPrices {
    /// No price yet, for so many instruments.
    pub(crate) fn new(count: usize) -> Self {
        Self { prices: [None; INSTRUMENTS_MAX], over: [TsNanos::default(); INSTRUMENTS_MAX], count }
    }

    /// The last price of an instrument.
    pub(crate) fn of(&self, instrument: InstrumentIx) -> Option<Price> {
        self.prices[usize::from(instrument.0)]
    }

    /// The date of the last price of an instrument.
    pub(crate) fn date_of(&self, instrument: InstrumentIx) -> Option<JstDate> {
        let index = usize::from(instrument.0);
        self.prices[index].map(|_| self.over[index].jst_date())
    }

    /// The last price of an instrument changes with a split; tells it.
    pub(crate) fn adjust(&mut self, ex_rights: &ExRights) -> Option<Price> {
        let last = &mut self.prices[usize::from(ex_rights.instrument.0)];
        *last = last.map(|price| ex_rights.adjustment.price(price));
        *last
    }

    /// By instrument; zero where nothing has traded, and nothing is held.
    pub(crate) fn or_zero(&self) -> [Price; INSTRUMENTS_MAX] {
        self.prices.map(Option::unwrap_or_default)
    }

    /// Tells the exchange.
    #[inline]
    pub(crate) fn tell(&self, exchange: &mut Exchange) {
        let prices = self.prices.iter().zip(&self.over).take(self.count);
        for (index, (price, over)) in prices.enumerate() {
            if let Some(price) = price {
                // There are at most 4 instruments.
                exchange.set_last_price(InstrumentIx(index as u16), *price, *over);
            }
        }
    }

    /// Takes the prices of rows and when they are over, given from the last to the first.
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

/// Rows in time order that can be handed to a strategy and to the exchange.
pub(crate) trait Rows<'w>: Copy {
    fn len(self) -> usize;

    /// Nanoseconds since 1970 in UTC.
    fn timestamp(self, row: usize) -> u64;

    fn part(self, rows: Range<usize>) -> Self;

    /// As the strategy gets them; `one` where there is only one row.
    fn window(self, one: bool) -> Window<'w>;

    /// The first row of `from..to` at which the exchange may act; `calm` begins with 0 on each day.
    fn next_stop(self, exchange: &Exchange, from: usize, to: usize, calm: &mut usize) -> usize;

    /// Lets our orders match the row.
    fn match_row(self, exchange: &mut Exchange, row: usize);

    /// Takes the last prices of `rows`, at least one.
    fn note_last(self, rows: Range<usize>, last: &mut LastPrices);

    /// Tells a row to subscribers.
    fn tell(self, row: usize, recorder: &mut Recorder<'_>);
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
    fn next_stop(self, exchange: &Exchange, from: usize, to: usize, calm: &mut usize) -> usize {
        exchange.next_stop_past(self, from, to, calm)
    }

    fn match_row(self, exchange: &mut Exchange, row: usize) {
        exchange.take_trade(&self.trade(row));
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

    fn tell(self, row: usize, recorder: &mut Recorder<'_>) {
        recorder.tell(Record::Trade(&self.trade(row)));
    }
}

/// Bars, and whether they were told and our orders matched against them before the strategy sees
/// the first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BarRows<'w> {
    pub(crate) bars: &'w [Bar],
    pub(crate) matched: bool,
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

    fn next_stop(self, exchange: &Exchange, from: usize, to: usize, _calm: &mut usize) -> usize {
        if self.matched { to } else { exchange.next_bar_stop(self.bars, from, to) }
    }

    fn match_row(self, exchange: &mut Exchange, row: usize) {
        if !self.matched {
            exchange.take_bar(self.bars[row].instrument, &self.bars[row]);
        }
    }

    fn note_last(self, rows: Range<usize>, last: &mut LastPrices) {
        let latest_first = self.bars[rows].iter().rev();
        last.take(latest_first.map(|bar| (bar.instrument.0, bar.close, bar.last_nanosecond())));
    }

    fn tell(self, row: usize, recorder: &mut Recorder<'_>) {
        if !self.matched {
            recorder.tell(Record::Bar(&self.bars[row]));
        }
    }
}
