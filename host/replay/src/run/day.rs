//! One day of a run: the rows of all instruments, window by window.

use domain::TsNanos;
use domain::fault::Fault;
use domain::limits::WINDOW_ROWS_MAX;
use domain::market::{Bar, TradeColumns};

use trader::{BarRows, Pass};

use super::{Control, Run, Seen};
use crate::rows::MarketRows;
use crate::series::{MarketDay, TradingDay};

/// The instrument column of the largest window of a run with one instrument.
static ONLY_COLUMN: [u16; WINDOW_ROWS_MAX as usize] = [0; WINDOW_ROWS_MAX as usize];

impl Run<'_> {
    /// Replays one day.
    pub(super) fn day(&mut self, day: &MarketDay<'_>) -> Seen {
        let parts = match day {
            MarketDay::Bars(bars) => {
                assert!(bars.iter().all(|bar| usize::from(bar.instrument.0) < self.listed.len()));
                if day.is_of_daily_bars() {
                    return self.daily_bars(bars);
                }
                return self.rows(BarRows { bars, matched: false }, self.windows.bars);
            }
            MarketDay::Trades(parts) => parts.as_slice(),
        };
        assert!(parts.len() <= self.listed.len(), "a day has trades of more than the instruments");
        if let ([only], 1) = (parts, self.listed.len()) {
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
    /// the driver is polled before it and not between the instruments, so a stop never parts the
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
        self.hand_prices();
        self.run_due(end)?;
        self.session.now = end;
        self.session.record_market(BarRows { bars, matched: false }, 0..bars.len());
        let exchange = &mut self.session.execution;
        for bar in bars {
            exchange.take_bar(bar.instrument, bar);
        }
        exchange.end_day(end);
        self.session.deliver()
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

    /// Replays rows, window by window. A window ends where the driver is to be polled.
    pub(super) fn rows<'w>(&mut self, rows: impl MarketRows<'w>, window: usize) -> Seen {
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
            let mut pass = Pass::new(rows, from..to);
            if let Err(fault) = self.window(rows, &mut pass, &mut calm) {
                return (pass.reached(), Err(fault));
            }
            self.rows_until_poll -= (to - from) as u64;
            self.rows_done += (to - from) as u64;
            from = to;
        }
        (from, Ok(Control::Continue))
    }

    /// Lets the strategy handle the rows of one window, with stops wherever the exchange acts.
    #[inline]
    fn window<'w, R: MarketRows<'w>>(
        &mut self,
        rows: R,
        pass: &mut Pass<'w, R>,
        calm: &mut usize,
    ) -> Result<(), Box<Fault>> {
        while !pass.is_done() {
            let (from, to) = (pass.reached(), pass.end());
            let mut stop = rows.next_stop(&self.session.execution, from, to, calm);
            if stop == from {
                self.at_row(rows, from)?;
                pass.set_recorded(from + 1);
                stop = rows.next_stop(&self.session.execution, from + 1, to, calm);
            }
            self.session.advance(pass, stop)?;
        }
        Ok(())
    }

    /// What is due by itself up to a row, and the row against our orders.
    pub(super) fn at_row<'w>(
        &mut self,
        rows: impl MarketRows<'w>,
        row: usize,
    ) -> Result<(), Box<Fault>> {
        let timestamp = TsNanos::from_nanos(rows.timestamp(row));
        self.hand_prices();
        self.run_due(timestamp)?;
        self.session.now = timestamp;
        self.session.record_market(rows, row..row + 1);
        rows.match_row(&mut self.session.execution, row);
        self.session.deliver()
    }
}
