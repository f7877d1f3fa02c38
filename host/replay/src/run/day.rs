//! One day of a run: the rows of all instruments, window by window.

use std::ops::Range;

use domain::TsNanos;
use domain::fault::Fault;
use domain::limits::WINDOW_ROWS_MAX;
use domain::market::{Bar, TradeColumns, Window};

use super::{Control, Run, Seen};
use crate::rows::{BarRows, Rows};
use crate::series::{MarketDay, TradingDay};

/// The instrument column of the largest window of a run with one instrument.
static ONLY_COLUMN: [u16; WINDOW_ROWS_MAX as usize] = [0; WINDOW_ROWS_MAX as usize];

impl Run<'_> {
    /// Replays one day.
    pub(super) fn day(&mut self, day: &MarketDay<'_>) -> Seen {
        let parts = match day {
            MarketDay::Bars(bars) => {
                assert!(bars.iter().all(|bar| usize::from(bar.instrument.0) < self.instruments));
                if day.is_of_daily_bars() {
                    return self.daily_bars(bars);
                }
                return self.rows(BarRows { bars, matched: false }, self.windows.bars);
            }
            MarketDay::Trades(parts) => parts.as_slice(),
        };
        assert!(parts.len() <= self.instruments, "a day has trades of more than the instruments");
        if let ([only], 1) = (parts, self.instruments) {
            return self.only_instrument(only);
        }
        // Out of the run while its rows are read.
        let mut merge = std::mem::take(&mut self.merge);
        merge.start();
        let mut seen = 0;
        let mut ended = Ok(Control::Continue);
        while let (Ok(Control::Continue), Some(rows)) = (&ended, merge.block(parts)) {
            let (rows_seen, block_ended) = self.rows(rows, self.windows.trades);
            seen += rows_seen;
            ended = block_ended;
        }
        self.merge = merge;
        (seen, ended)
    }

    /// A day of daily bars. They end with the day itself, so the day's orders meet them and expire
    /// first, and what the strategy sends when it sees them is for the next day. They are one step:
    /// the driver is asked before it and not between the instruments, so a stop never parts the
    /// fills of a date from its rows.
    fn daily_bars(&mut self, bars: &[Bar]) -> Seen {
        let Some(end) = bars.first().map(|bar| bar.ts_event) else {
            return (0, Ok(Control::Continue));
        };
        match self.poll(Some(end)) {
            Ok(Control::Continue) => {}
            ended => return (0, ended),
        }
        self.rows_until_poll = self.rows_until_poll.max(bars.len() as u64);
        if let Err(fault) = self.match_daily_bars(bars, end) {
            return (0, Err(fault));
        }
        self.rows(BarRows { bars, matched: true }, self.windows.bars)
    }

    fn match_daily_bars(&mut self, bars: &[Bar], end: TsNanos) -> Result<(), Box<Fault>> {
        self.last_prices.tell(&mut self.exchange);
        self.run_due(end)?;
        self.now = end;
        self.tell_market(BarRows { bars, matched: false }, 0..bars.len());
        for bar in bars {
            self.exchange.take_bar(bar.instrument, bar);
        }
        self.exchange.end_day(end);
        self.deliver()
    }

    /// The day of a run with one instrument, straight from where its rows are.
    fn only_instrument(&mut self, day: &TradingDay<'_>) -> Seen {
        let (ts_event, price, quantity) = (day.ts_event(), day.price(), day.quantity());
        let mut from = 0;
        while from < ts_event.len() {
            let to = ts_event.len().min(from + ONLY_COLUMN.len());
            let rows = TradeColumns {
                ts_event: &ts_event[from..to],
                instrument: &ONLY_COLUMN[..to - from],
                price: &price[from..to],
                quantity: &quantity[from..to],
            };
            let (seen, ended) = self.rows(rows, self.windows.trades);
            from += seen;
            if !matches!(ended, Ok(Control::Continue)) {
                return (from, ended);
            }
        }
        (from, Ok(Control::Continue))
    }

    /// Replays rows, window by window. A window ends where the driver is to be asked.
    fn rows<'w>(&mut self, rows: impl Rows<'w>, window: usize) -> Seen {
        let (mut from, mut calm) = (0, 0);
        while from < rows.len() {
            if self.rows_until_poll == 0 {
                match self.poll(Some(TsNanos::from_nanos(rows.timestamp(from)))) {
                    Ok(Control::Continue) => {}
                    ended => return (from, ended),
                }
            }
            // At most 16,384 rows.
            let to = rows.len().min(from + window.min(self.rows_until_poll as usize));
            let mut reached = from;
            if let Err(fault) = self.window(rows, from..to, &mut reached, &mut calm) {
                return (reached, Err(fault));
            }
            self.rows_until_poll -= (to - from) as u64;
            self.rows_done += (to - from) as u64;
            from = to;
        }
        (from, Ok(Control::Continue))
    }

    /// Lets the strategy handle the rows of one window, with stops wherever the exchange acts.
    #[inline]
    fn window<'w>(
        &mut self,
        rows: impl Rows<'w>,
        window: Range<usize>,
        reached: &mut usize,
        calm: &mut usize,
    ) -> Result<(), Box<Fault>> {
        let Range { start, end } = window;
        let mut next = rows.part(start..end).window(end - start == 1);
        let mut told = start;
        while *reached < end {
            let from = *reached;
            let mut stop = rows.next_stop(&self.exchange, from, end, calm);
            if stop == from {
                self.at_row(rows, from)?;
                told = from + 1;
                stop = rows.next_stop(&self.exchange, from + 1, end, calm);
            }
            // A window has at most 65,536 rows.
            let outcome = self.strategy.advance(next, (stop - start) as u32)?;
            next = Window::Resume;
            *reached = start + outcome.reached as usize;
            self.now = TsNanos::from_nanos(rows.timestamp(*reached - 1));
            rows.note_last(from..*reached, &mut self.last_prices);
            self.tell_market(rows, told..*reached);
            told = *reached;
            if !outcome.actions.is_empty() {
                self.last_prices.tell(&mut self.exchange);
                self.execute(outcome.actions);
                self.deliver()?;
            }
        }
        Ok(())
    }

    /// Tells rows of the market to a sink that wants them. The rule: what is due before a row, then
    /// the row, then what it does to orders, then what the strategy does on seeing it.
    #[inline]
    fn tell_market<'w>(&mut self, rows: impl Rows<'w>, which: Range<usize>) {
        if self.live.market {
            which.for_each(|row| rows.tell(row, &mut self.recorder));
        }
    }

    /// What is due by itself up to a row, and the row against our orders.
    fn at_row<'w>(&mut self, rows: impl Rows<'w>, row: usize) -> Result<(), Box<Fault>> {
        let timestamp = TsNanos::from_nanos(rows.timestamp(row));
        self.last_prices.tell(&mut self.exchange);
        self.run_due(timestamp)?;
        self.now = timestamp;
        self.tell_market(rows, row..row + 1);
        rows.match_row(&mut self.exchange, row);
        self.deliver()
    }
}
