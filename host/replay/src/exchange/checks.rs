//! What is checked before an order may work (F7), and what is held back for it.

use std::sync::Arc;

use domain::limits::ORDERS_MAX;
use domain::{
    Money, OrderModify, OrderRequest, OrderSide, OrderType, Price, Quantity, ReasonCode, Rejection,
    TickTable, TimeInForce,
};

use super::Exchange;
use super::order::OrderIx;

type Check = Result<(), Rejection>;

fn refuse(code: ReasonCode, text: impl AsRef<str>) -> Check {
    Err(Rejection::new(code, text))
}

/// Moves a limit price off the grid onto it, away from the market (specification 2: "tick rounding
/// is done by the engine").
pub(super) fn round_to_tick(request: &mut OrderRequest, ticks: TickTable) {
    let Some(price) = request.price.filter(|price| price.units() > 0) else { return };
    let tick = ticks.tick_at(price).units();
    let below = price.units() - price.units() % tick;
    let rounded = match request.side {
        OrderSide::Sell if below < price.units() => below + tick,
        _ => below,
    };
    request.price = Some(Price::from_units(rounded));
}

impl Exchange {
    /// The engine's own refusals: the order never reaches the venue.
    pub(super) fn refusal_of(&self, request: &OrderRequest, id_is_taken: bool) -> Check {
        if self.closed {
            return refuse(ReasonCode::MarketClosed, "END_OF_DATA: the replay's data has ended");
        }
        request.validate_shape()?;
        if id_is_taken {
            return refuse(
                ReasonCode::ValidationError,
                "CLIENT_ORDER_ID: was used before in this run",
            );
        }
        if self.orders.len() >= ORDERS_MAX {
            let text = format!("ORDERS: this run has sent {ORDERS_MAX}, which is the limit");
            return refuse(ReasonCode::InternalError, text);
        }
        let Some(market) = self.markets.get(usize::from(request.instrument.0)) else {
            let text = format!(
                "INSTRUMENT: index {} is unknown; this run has {}",
                request.instrument.0,
                self.markets.len()
            );
            return refuse(ReasonCode::ValidationError, text);
        };
        Self::supported(request)?;
        check_lot(request.quantity, market.instrument.lot)?;
        self.check_cash(request, Money::ZERO)
    }

    /// What this exchange does not model is refused by name.
    fn supported(request: &OrderRequest) -> Check {
        let unsupported = |text: String| refuse(ReasonCode::VenueUnsupported, text);
        if !matches!(request.order_type, OrderType::Market | OrderType::Limit) {
            let kind = request.order_type;
            return unsupported(format!("{kind}: this exchange takes MARKET and LIMIT"));
        }
        if request.time_in_force != TimeInForce::Day {
            let kind = request.time_in_force;
            return unsupported(format!("{kind}: this exchange takes DAY"));
        }
        if request.trigger_type.is_some() {
            return unsupported("TRIGGER_TYPE: only stop orders have one".to_owned());
        }
        if request.post_only {
            return unsupported("POST_ONLY: the Tokyo market has no such orders".to_owned());
        }
        if request.reduce_only && request.side == OrderSide::Buy {
            return unsupported("REDUCE_ONLY: a buy cannot reduce on a cash account".to_owned());
        }
        Ok(())
    }

    /// The venue's refusals: the order was sent.
    pub(super) fn venue_refusal_of(&self, index: OrderIx) -> Check {
        let request = &self.orders[index].request;
        let market = &self.markets[usize::from(request.instrument.0)];
        if self.is_full() {
            return refuse(
                ReasonCode::VenueRejected,
                format!("TOO_MANY_ORDERS: {} orders are working", self.open.len()),
            );
        }
        if let Some(price) = request.price.filter(|price| !market.limits.contains(*price)) {
            let (low, high) = (market.limits.low, market.limits.high);
            let text = format!("PRICE_LIMIT: {price} is outside the day's range {low} to {high}");
            return refuse(ReasonCode::VenueRejected, text);
        }
        // The order's own shares are already among those being sold.
        let held = self.account.held(request.instrument).unsigned_abs();
        if request.side == OrderSide::Sell && market.selling.shares() > held {
            let others = market.selling.saturating_sub(request.quantity);
            let text = format!(
                "SHORT_SALE: {} to sell, {held} held, {others} of them in other sell orders",
                request.quantity
            );
            return refuse(ReasonCode::VenueRejected, text);
        }
        Ok(())
    }

    /// Money that may be needed at worst, against the money that is free.
    fn check_cash(&self, request: &OrderRequest, released: Money) -> Check {
        if request.side == OrderSide::Sell {
            return Ok(());
        }
        let worst = self.worst_price(request);
        let free = self.account.free_cash() + released;
        match Money::checked_notional(worst, request.quantity) {
            Some(needed) if needed <= free => Ok(()),
            needed => {
                let needed = needed.map_or("more than can be counted".to_owned(), |needed| {
                    format!("up to {needed} yen")
                });
                let text = format!("CASH: needs {needed} at {worst} a share, {free} yen are free");
                refuse(ReasonCode::InsufficientFunds, text)
            }
        }
    }

    /// The most that a share can cost: the limit, or the day's highest price for a market order.
    fn worst_price(&self, request: &OrderRequest) -> Price {
        request.price.unwrap_or(self.markets[usize::from(request.instrument.0)].limits.high)
    }

    /// Holds back money or shares for an open order.
    pub(super) fn hold_back(&mut self, index: OrderIx) {
        let request = Arc::clone(&self.orders[index].request);
        let leaves = self.orders[index].leaves();
        match request.side {
            OrderSide::Buy => {
                let worst = self.worst_price(&request);
                // The cash check has shown that the value fits.
                let amount = Money::checked_notional(worst, leaves).unwrap_or_default();
                let order = &mut self.orders[index];
                order.worst_price = worst;
                order.reserved = amount;
                self.account.reserve(amount);
            }
            OrderSide::Sell => {
                self.markets[usize::from(request.instrument.0)].selling += leaves;
            }
        }
    }

    /// Lets go of everything that is still held back for an order.
    pub(super) fn let_go(&mut self, index: OrderIx) {
        let order = &mut self.orders[index];
        let leaves = order.leaves();
        self.account.release(std::mem::take(&mut order.reserved));
        if order.request.side == OrderSide::Sell {
            let market = &mut self.markets[usize::from(order.request.instrument.0)];
            assert!(market.selling >= leaves, "more shares were let go than held back");
            market.selling = market.selling.saturating_sub(leaves);
        }
    }

    /// The request that an order has after a change, checked like a new one.
    pub(super) fn changed_request(
        &self,
        index: OrderIx,
        change: OrderModify,
    ) -> Result<OrderRequest, Rejection> {
        let order = &self.orders[index];
        let market = &self.markets[usize::from(order.request.instrument.0)];
        let mut changed = OrderRequest::clone(&order.request);
        if change.trigger_price.is_some() || change.expire_time.is_some() {
            let text = "MODIFY: only quantity and price of an order can be changed here";
            return Err(Rejection::new(ReasonCode::VenueUnsupported, text));
        }
        changed.quantity = change.quantity.unwrap_or(changed.quantity);
        changed.price = change.price.or(changed.price);
        round_to_tick(&mut changed, market.instrument.ticks);
        changed.validate_shape()?;
        check_lot(changed.quantity, market.instrument.lot)?;
        if changed.quantity <= order.filled {
            let text = format!("QUANTITY: {} of them are filled", order.filled);
            return Err(Rejection::new(ReasonCode::VenueRejected, text));
        }
        if changed.price.is_some_and(|price| !market.limits.contains(price)) {
            let text = "PRICE_LIMIT: the new price is outside the day's range";
            return Err(Rejection::new(ReasonCode::VenueRejected, text));
        }
        let mut open_part = changed.clone();
        open_part.quantity = changed.quantity.saturating_sub(order.filled);
        self.check_cash(&open_part, order.reserved)?;
        let others = market.selling.saturating_sub(order.leaves());
        let held = self.account.held(changed.instrument).unsigned_abs();
        let wanted = others + open_part.quantity;
        if changed.side == OrderSide::Sell && wanted.shares() > held {
            let text = format!("SHORT_SALE: {wanted} to sell, {held} held");
            return Err(Rejection::new(ReasonCode::VenueRejected, text));
        }
        Ok(changed)
    }
}

fn check_lot(quantity: Quantity, lot: Quantity) -> Check {
    if quantity.floor_to(lot) == quantity {
        return Ok(());
    }
    let text = format!("QUANTITY: {quantity} is not a multiple of the lot {lot}");
    refuse(ReasonCode::ValidationError, text)
}
