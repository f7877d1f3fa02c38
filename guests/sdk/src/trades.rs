//! Many trades, as a strategy takes them one after the other.

use crate::context::Context;
use crate::host;
use crate::model::{InstrumentIx, Timestamp, Trade};
use crate::number::{Price, Quantity};
use crate::runner::TradeSlices;

/// Trades that a strategy may take one after the other, for [`crate::Strategy::on_trade_ticks`]. There
/// is no next one once it has asked for something: that is done before it sees more.
#[derive(Debug)]
pub struct Trades<'a> {
    /// Columns of equal length.
    rows: TradeSlices<'a>,
    /// The row of the next trade.
    next: usize,
}

impl<'a> Trades<'a> {
    /// The rows of a window from `from` up to `limit`.
    pub(crate) fn new(rows: TradeSlices<'a>, from: u32, limit: u32) -> Self {
        Self { rows: rows.up_to(limit as usize), next: from as usize }
    }

    /// The row of the next trade; that of the limit after the last one.
    pub(crate) fn row(&self) -> u32 {
        // A window has at most 65,536 rows.
        self.next as u32
    }

    /// The instrument of the next trade; `None` after the last one.
    pub fn instrument(&self) -> Option<InstrumentIx> {
        self.rows.instrument.get(self.next).copied().map(InstrumentIx)
    }

    /// The next trade. Its time is the context's from now on.
    #[inline]
    pub fn next(&mut self, context: &mut Context) -> Option<Trade> {
        if self.next >= self.rows.ts_event.len() || !context.actions.is_empty() {
            return None;
        }
        let trade = self.rows.trade(self.next);
        self.next += 1;
        context.set_now(trade.ts_event);
        Some(trade)
    }

    /// Takes trades of an instrument up to the first that is wanted, which it gives: the loop for a
    /// strategy that does little for each trade and seldom asks for something. `None` where the trades,
    /// or those of this instrument, end before.
    #[inline]
    pub fn find(
        &mut self,
        context: &mut Context,
        instrument: InstrumentIx,
        mut is_wanted: impl FnMut(&Trade) -> bool,
    ) -> Option<Trade> {
        if !context.actions.is_empty() {
            return None;
        }
        // Cut once more, so that the loop needs no bounds checks; and the place is kept in it.
        let rows = self.rows.up_to(self.rows.ts_event.len());
        let mut next = self.next;
        let mut found = None;
        while next < rows.ts_event.len() && rows.instrument[next] == instrument.0 {
            let trade = rows.trade(next);
            next += 1;
            // A panic tells it.
            host::set_now(trade.ts_event);
            if is_wanted(&trade) {
                found = Some(trade);
                break;
            }
        }
        if next > self.next {
            context.set_now(Timestamp(rows.ts_event[next - 1]));
        }
        self.next = next;
        found
    }
}

impl<'a> TradeSlices<'a> {
    /// The rows before `end`.
    #[inline]
    fn up_to(self, end: usize) -> Self {
        Self {
            ts_event: &self.ts_event[..end],
            instrument: &self.instrument[..end],
            price: &self.price[..end],
            quantity: &self.quantity[..end],
        }
    }

    #[inline]
    fn trade(self, row: usize) -> Trade {
        Trade {
            ts_event: Timestamp(self.ts_event[row]),
            instrument: InstrumentIx(self.instrument[row]),
            price: Price::from_units(self.price[row]),
            quantity: Quantity::new(self.quantity[row]),
            row: row as u32,
        }
    }
}
