//! Market data as strategies and the exchange see it: single trades and bars, columns of trades, and
//! the windows in which they are handed over. Times are UTC nanoseconds, prices 1/10,000 yen.

use crate::instrument::InstrumentIx;
use crate::price::{Price, Quantity};
use crate::time::TsNanos;

/// One execution seen on the market.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trade {
    /// When it happened.
    pub ts_event: TsNanos,
    /// What traded.
    pub instrument: InstrumentIx,
    /// At which price.
    pub price: Price,
    /// How many shares.
    pub quantity: Quantity,
}

/// One bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    /// The end of the bar's span.
    pub ts_event: TsNanos,
    /// What traded.
    pub instrument: InstrumentIx,
    /// The bar's span.
    pub granularity: BarGranularity,
    /// First price.
    pub open: Price,
    /// Highest price.
    pub high: Price,
    /// Lowest price.
    pub low: Price,
    /// Last price.
    pub close: Price,
    /// Shares traded.
    pub volume: Quantity,
}

/// The span of a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BarGranularity {
    /// One minute.
    Minute,
    /// One trading day.
    Day,
}

/// Trades as columns of equal length, in time order.
#[derive(Debug, Clone, Copy)]
pub struct TradeColumns<'a> {
    /// Nanoseconds since 1970 in UTC.
    pub ts_event: &'a [u64],
    /// Position in the list given at init.
    pub instrument: &'a [u16],
    /// 1/10,000 yen.
    pub price: &'a [i64],
    /// Shares.
    pub quantity: &'a [u64],
}

impl TradeColumns<'_> {
    /// The trade in a row.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    #[inline(always)]
    pub const fn trade(&self, row: usize) -> Trade {
        Trade {
            ts_event: TsNanos::from_nanos(self.ts_event[row]),
            instrument: InstrumentIx(self.instrument[row]),
            price: Price::from_units(self.price[row]),
            quantity: Quantity::new(self.quantity[row]),
        }
    }
}

/// Market events handed to a strategy.
#[derive(Debug, Clone, Copy)]
pub enum Window<'a> {
    /// Go on with the window that is already there.
    Resume,
    /// One trade; live trading and the strict replay use nothing else.
    OneTrade(Trade),
    /// One bar.
    OneBar(Bar),
    /// Many trades.
    Trades(TradeColumns<'a>),
    /// Many bars.
    Bars(&'a [Bar]),
}
