//! Many trades, which a strategy takes one after the other.

use crate::context::Context;
use crate::host;
use crate::model::{InstrumentIx, Timestamp, Trade};
use crate::number::{Price, Quantity};
use crate::runner::TradeSlices;

/// Prices that [`Trades::prices`] gives at most in a run with many instruments: it looks whose they are, and
/// again at those after the one at which a strategy asks for something.
pub const PRICES_AHEAD_MAX: usize = 64;

/// /// Trades that a strategy may take one after the other, for [`crate::Strategy::on_trade_ticks`]. After an action
/// of the strategy there is no next trade: the host does the action first.
#[derive(Debug)]
pub struct Trades<'a> {
    /// Columns of equal length.
    rows: TradeSlices<'a>,
    /// The row of the next trade.
    next: usize,
    /// Whether the run has one instrument, so that all trades are of the same.
    one_instrument: bool,
}

impl<'a> Trades<'a> {
    /// The rows of a window from `from` up to `limit`.
    pub(crate) fn new(rows: TradeSlices<'a>, from: u32, limit: u32, context: &Context) -> Self {
        let one_instrument = context.instruments().len() == 1;
        Self { rows: rows.up_to(limit as usize), next: from as usize, one_instrument }
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

    /// /// Prices of the next trades of one instrument, in 1/10,000 yen, for a strategy that does little for each
    /// price. In a run with several instruments at most [`PRICES_AHEAD_MAX`]. The strategy says with [`Trades::take`]
    /// how many it has handled. Empty if there is no next trade.
    #[inline]
    pub fn prices(&self) -> &'a [i64] {
        let Some(now) = self.rows.ts_event.get(self.next) else { return &[] };
        // A panic tells the time of the first of them.
        host::set_now(Timestamp(*now));
        if self.one_instrument { &self.rows.price[self.next..] } else { self.prices_of_one() }
    }

    fn prices_of_one(&self) -> &'a [i64] {
        let rows = self.next..self.rows.price.len().min(self.next + PRICES_AHEAD_MAX);
        let (prices, instruments) = (&self.rows.price[rows.clone()], &self.rows.instrument[rows]);
        let Some(first) = instruments.first() else { return prices };
        // Often all are of one instrument: that is seen without a branch for each.
        let differ = instruments.iter().fold(0, |differ, one| differ | (one ^ first));
        if differ == 0 {
            return prices;
        }
        let same = instruments.iter().take_while(|one| *one == first).count();
        &prices[..same]
    }

    /// Takes the next `count` trades, of which [`Trades::prices`] gave the prices. The time of the last
    /// one is the context's from now on.
    ///
    /// # Panics
    /// When there are fewer trades, or after an action.
    pub fn take(&mut self, context: &mut Context, count: usize) {
        assert!(context.actions.is_empty(), "trades after an action are taken later");
        let end = self.next + count;
        if let Some(last) = self.rows.ts_event[self.next..end].last() {
            context.set_now(Timestamp(*last));
        }
        self.next = end;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Order, Side};

    /// One hundred trades at rising times and prices; those from the 80th on are of another instrument.
    fn with_trades(act: impl FnOnce(&mut Context, &mut Trades<'_>)) {
        let ts_event: Vec<u64> = (0..100).map(|row| 1_000 + row).collect();
        let instrument: Vec<u16> = (0..100).map(|row| u16::from(row >= 80)).collect();
        let price: Vec<i64> = (0..100).collect();
        let quantity = vec![100; 100];
        let rows = TradeSlices {
            ts_event: &ts_event,
            instrument: &instrument,
            price: &price,
            quantity: &quantity,
        };
        let instruments = ["A.TSE", "B.TSE"].map(|id| crate::Instrument {
            id: id.to_owned(),
            lot: Quantity::new(100),
            ticks: Vec::new(),
        });
        let mut context = Context::new(instruments.into());
        let mut trades = Trades::new(rows, 10, 90, &context);
        act(&mut context, &mut trades);
    }

    #[test]
    fn prices_end_with_their_instrument_and_with_the_limit() {
        with_trades(|context, trades| {
            assert_eq!(trades.prices(), (10..10 + PRICES_AHEAD_MAX as i64).collect::<Vec<_>>());
            trades.take(context, 30);
            assert_eq!((trades.row(), context.now()), (40, Timestamp(1_039)));
            assert_eq!(trades.prices(), (40..80).collect::<Vec<_>>());
            trades.take(context, 40);
            assert_eq!(trades.instrument(), Some(InstrumentIx(1)));
            assert_eq!(trades.prices(), (80..90).collect::<Vec<_>>());
            trades.take(context, 10);
            assert_eq!((trades.instrument(), trades.prices().len()), (None, 0));
            assert_eq!(trades.next(context), None);
        });
    }

    #[test]
    fn nothing_follows_what_was_asked_for() {
        with_trades(|context, trades| {
            let first = trades.next(context).unwrap();
            assert_eq!(
                (first.row, first.ts_event, context.now()),
                (10, Timestamp(1_010), Timestamp(1_010))
            );
            let order = Order::market(InstrumentIx(0), Side::Buy, Quantity::new(100));
            context.submit(order);
            assert_eq!(trades.next(context), None);
            assert_eq!(trades.row(), 11);
        });
    }
}
