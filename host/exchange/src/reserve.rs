//! Money and shares that are reserved for open orders, so that cash never goes below zero.

use domain::instrument::DailyLimits;
use domain::tags::OrderTags;
use domain::{Money, OrderRequest, OrderSide, Price, Quantity, ReasonCode, Rejection};

use crate::Exchange;
use crate::checks::round_to_tick;
use crate::order::{Order, OrderIx};
use crate::rejection::{Check, reject};

/// What is still open of an order, for counting what it may cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenPart<'a> {
    pub(crate) request: &'a OrderRequest,
    pub(crate) leaves: Quantity,
    /// Value of the fills so far.
    pub(crate) done: Money,
    /// Fee of the fills so far.
    pub(crate) paid: Money,
    /// Turns market at the close.
    pub(crate) funari: bool,
    /// The lowest and the highest price that it may fill at.
    pub(crate) worst: DailyLimits,
}

impl<'a> OpenPart<'a> {
    pub(crate) fn of(order: &'a Order) -> Self {
        Self {
            request: &order.record.request,
            leaves: order.record.leaves(),
            done: order.record.filled_value,
            paid: order.record.commission,
            funari: order.funari,
            worst: order.worst,
        }
    }

    fn worst_price(self) -> Price {
        worst_price(self.request, self.funari, self.worst)
    }
}

/// The most that a share can cost: the limit, or the highest price that can be expected for orders that
/// are market orders sooner or later.
fn worst_price(request: &OrderRequest, funari: bool, worst: DailyLimits) -> Price {
    request.price.filter(|_| !funari).unwrap_or(worst.high)
}

impl Exchange {
    /// Money that may be needed at worst, fees included; `None` where it cannot be counted.
    pub(crate) fn money_needed(&self, part: OpenPart<'_>) -> Option<Money> {
        let fees = &self.model.commission;
        match part.request.side {
            OrderSide::Buy => {
                let value = Money::checked_notional(part.worst_price(), part.leaves)?;
                let fee = fees.fee(part.done.checked_add(value)?) - part.paid;
                value.checked_add(fee)
            }
            OrderSide::Sell if fees == &super::Commission::None => Some(Money::ZERO),
            OrderSide::Sell => {
                let market = &self.markets[usize::from(part.request.instrument.0)];
                let lot = market.instrument.lot.min(part.leaves);
                let next = Money::checked_notional(part.worst.low, lot)?;
                let rest = Money::checked_notional(part.worst.high, part.leaves)?;
                Some(fees.sale_shortfall(part.done, part.paid, next, part.done.checked_add(rest)?))
            }
        }
    }

    /// What an order of an instrument that there is may be worth: at the price that money is reserved at, without
    /// the fee.
    pub(crate) fn value_of(&self, request: &OrderRequest) -> Result<Money, Rejection> {
        let funari = OrderTags::parse(&request.tags, request.time_in_force)?.funari;
        let ticks = self.ticks(request.instrument);
        let mut request = request.clone();
        round_to_tick(&mut request, ticks);
        let worst = self.worst_prices(&request, funari)?;
        let price = worst_price(&request, funari, worst);
        Money::checked_notional(price, request.quantity).ok_or_else(|| {
            let text = format!("QUANTITY: {} shares are worth too much", request.quantity);
            Rejection::new(ReasonCode::ValidationError, text)
        })
    }

    /// Money that may be needed at worst, against the money that is free and `released`.
    pub(crate) fn check_cash(&self, part: OpenPart<'_>, released: Money) -> Check {
        let free = self.account.free_cash() + released;
        let needed = self.money_needed(part);
        if needed.is_some_and(|needed| needed <= free || needed == Money::ZERO) {
            return Ok(());
        }
        let needed = needed
            .map_or("more than can be counted".to_owned(), |needed| format!("up to {needed} yen"));
        let text = match part.request.side {
            OrderSide::Buy => {
                let has_fee = self.model.commission != super::Commission::None;
                let fee = if has_fee { " and the fee" } else { "" };
                let worst = part.worst_price();
                format!("CASH: needs {needed} at {worst} a share{fee}, {free} yen are free")
            }
            OrderSide::Sell => format!(
                "CASH: the fee may be {needed} more than the sale brings, {free} yen are free"
            ),
        };
        reject(ReasonCode::InsufficientFunds, text)
    }

    /// The cash check of an open order, after its worst prices have changed.
    pub(crate) fn check_cash_again(&self, number: OrderIx) -> Result<(), Rejection> {
        let order = &self.orders[number];
        self.check_cash(OpenPart::of(order), order.reserved)
    }

    /// Reserves money or shares for an open order.
    pub(crate) fn reserve(&mut self, number: OrderIx) {
        let part = OpenPart::of(&self.orders[number]);
        // The cash check has shown that it can be counted.
        let amount = self.money_needed(part).unwrap_or_default();
        let leaves = part.leaves;
        let order = &mut self.orders[number];
        order.reserved = amount;
        let is_sell = !order.is_buy();
        self.account.reserve(amount);
        if is_sell {
            self.market_mut(number).selling += leaves;
        }
        self.watch_worst(number);
    }

    /// Releases everything that is still reserved for an order.
    pub(crate) fn release(&mut self, number: OrderIx) {
        let order = &mut self.orders[number];
        let leaves = order.record.leaves();
        let is_sell = !order.is_buy();
        self.account.release(std::mem::take(&mut order.reserved));
        if is_sell {
            let market = self.market_mut(number);
            assert!(market.selling >= leaves, "more shares were released than reserved");
            market.selling = market.selling.saturating_sub(leaves);
        }
    }

    /// Releases what was reserved for `quantity` shares that are done now.
    pub(crate) fn release_filled(&mut self, number: OrderIx, quantity: Quantity) {
        let amount = self.money_needed(OpenPart::of(&self.orders[number])).unwrap_or_default();
        let order = &mut self.orders[number];
        let before = std::mem::replace(&mut order.reserved, amount);
        let is_sell = !order.is_buy();
        self.account.release(before);
        self.account.reserve(amount);
        if is_sell {
            let market = self.market_mut(number);
            market.selling = market.selling.saturating_sub(quantity);
        }
    }
}
