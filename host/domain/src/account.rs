//! The account as strategies and results see it: cash, positions and working orders.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::instrument::InstrumentIx;
use crate::money::Money;
use crate::order::{OrderRequest, OrderStatus, shared_request};
use crate::price::{Price, Quantity};
use crate::text::ShortText;
use crate::time::TsNanos;

/// Cash and results of the account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Money in the account, 1/10,000 yen.
    pub cash: Money,
    /// Money reserved for working orders, 1/10,000 yen; part of the cash.
    pub reserved: Money,
    /// Profit and loss of shares sold, 1/10,000 yen, before fees.
    pub realised_pnl: Money,
    /// Fees paid so far, 1/10,000 yen.
    pub commission: Money,
}

/// What is held of one instrument.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The instrument, by its position in the list given at init.
    pub instrument: InstrumentIx,
    /// Shares; never negative on a cash account.
    pub quantity: i64,
    /// What the shares held did cost, fees not counted.
    pub cost: Money,
    /// Profit and loss of shares sold, fees not counted.
    pub realised_pnl: Money,
}

/// A working order, as a portfolio query reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkingOrder {
    /// The request as it stands after changes.
    #[serde(with = "shared_request")]
    pub request: Arc<OrderRequest>,
    /// The venue's number, once there is one.
    pub venue_order_id: Option<ShortText>,
    /// Its state; never a final one.
    pub status: OrderStatus,
    /// Shares filled so far.
    pub filled_quantity: Quantity,
    /// Time of its sending, UTC nanoseconds.
    pub ts_submitted: TsNanos,
}

/// What the portfolio queries of a strategy answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortfolioView {
    /// Cash, what of it is reserved, and results.
    pub account: Account,
    /// One entry for each instrument, by its position in the list.
    pub positions: Vec<Position>,
    /// Working orders in the order in which they were sent; filled only for strategies that ask.
    pub working_orders: Vec<WorkingOrder>,
}

impl PortfolioView {
    /// Money and value of shares at `prices`, by instrument.
    #[must_use]
    pub fn equity(&self, prices: &[Price]) -> Money {
        equity(self.account.cash, &self.positions, prices)
    }
}

/// `cash` and the value of `positions` at `prices`, by instrument.
#[must_use]
pub fn equity(cash: Money, positions: &[Position], prices: &[Price]) -> Money {
    let value = |(position, price): (&Position, &Price)| {
        Money::from_units(position.quantity * price.units())
    };
    cash + positions.iter().zip(prices).map(value).sum()
}
