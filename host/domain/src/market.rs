//! Market data as strategies and the exchange see it: single trades and bars, columns of trades, and
//! the windows in which they are handed over. Times are UTC nanoseconds, prices 1/10,000 yen.

use serde::{Deserialize, Serialize};

use crate::instrument::InstrumentIx;
use crate::price::{Price, Quantity};
use crate::time::TsNanos;

/// One execution seen on the market.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trade {
    /// Time of the execution, UTC nanoseconds, as the market's data give it.
    pub ts_event: TsNanos,
    /// The instrument, by its position in the list given at init.
    pub instrument: InstrumentIx,
    /// Price in 1/10,000 yen.
    pub price: Price,
    /// Shares, at least 1.
    pub quantity: Quantity,
}

/// Prices and volume of one instrument over a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bar {
    /// End of the bar's span, UTC nanoseconds.
    pub ts_event: TsNanos,
    /// The instrument, by its position in the list given at init.
    pub instrument: InstrumentIx,
    /// The bar's span: a minute or a trading day.
    pub granularity: BarGranularity,
    /// First price in the span, 1/10,000 yen.
    pub open: Price,
    /// Highest price in the span, 1/10,000 yen.
    pub high: Price,
    /// Lowest price in the span, 1/10,000 yen.
    pub low: Price,
    /// Last price in the span, 1/10,000 yen.
    pub close: Price,
    /// Shares traded in the span.
    pub volume: Quantity,
}

impl Bar {
    /// The last nanosecond of its span: what is later is not in it.
    #[must_use]
    pub const fn last_nanosecond(&self) -> TsNanos {
        TsNanos::from_nanos(self.ts_event.nanos().saturating_sub(1))
    }
}

/// The span of a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    /// Shares, at least 1 each.
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
    /// A single bar.
    OneBar(Bar),
    /// Up to 65,536 trades in time order.
    Trades(TradeColumns<'a>),
    /// Up to 65,536 bars in the order of their ends.
    Bars(&'a [Bar]),
}
