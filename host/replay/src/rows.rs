//! Where the loop stops in its rows: at rows at which the exchange may act.

use domain::market::TradeColumns;
use exchange::Exchange;
use trader::{BarRows, Rows};

/// Rows that the exchange can look ahead in and match.
pub(crate) trait MarketRows<'w>: Rows<'w> {
    /// The first row of `from..to` at which the exchange may act; `calm` begins with 0 on each day.
    fn next_stop(self, exchange: &Exchange, from: usize, to: usize, calm: &mut usize) -> usize;

    /// Lets our orders match the row.
    fn match_row(self, exchange: &mut Exchange, row: usize);
}

impl<'w> MarketRows<'w> for TradeColumns<'w> {
    #[inline(always)]
    fn next_stop(self, exchange: &Exchange, from: usize, to: usize, calm: &mut usize) -> usize {
        exchange.next_stop_past(self, from, to, calm)
    }

    fn match_row(self, exchange: &mut Exchange, row: usize) {
        exchange.take_trade(&self.trade(row));
    }
}

impl<'w> MarketRows<'w> for BarRows<'w> {
    fn next_stop(self, exchange: &Exchange, from: usize, to: usize, _calm: &mut usize) -> usize {
        if self.matched { to } else { exchange.next_bar_stop(self.bars, from, to) }
    }

    fn match_row(self, exchange: &mut Exchange, row: usize) {
        if !self.matched {
            exchange.take_bar(self.bars[row].instrument, &self.bars[row]);
        }
    }
}
