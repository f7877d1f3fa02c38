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
    /// Shares; never negative on a cash account, below zero where more was sold on margin than bought.
    pub quantity: i64,
    /// What the shares held did cost, fees not counted; below zero what shares sold on margin brought.
    pub cost: Money,
    /// Profit and loss of shares sold, fees not counted.
    pub realised_pnl: Money,
}

impl Position {
    /// Takes a trade of `shares`, above zero bought and below zero sold, for `paid`, of the same sign. Gives the
    /// profit of the shares of the position that it ends, at their average cost, cut off at 1/10,000 yen.
    pub fn trade(&mut self, shares: i64, paid: Money) -> Money {
        let before = self.quantity;
        let ended = match before.signum() * shares.signum() {
            -1 => before.abs().min(shares.abs()) * before.signum(),
            _ => 0,
        };
        self.quantity += shares;
        if ended == 0 {
            self.cost += paid;
            return Money::ZERO;
        }
        let cost = self.cost.share_of(ended, before);
        let got = paid.share_of(-ended, shares);
        self.cost += paid - got - cost;
        let gained = Money::ZERO - got - cost;
        self.realised_pnl += gained;
        gained
    }
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
