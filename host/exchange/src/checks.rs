//! What is checked before an order or a change may work (F7).

use domain::limits::{GTD_BUSINESS_DAYS_MAX, WORKING_ORDERS_MAX};
use domain::tags::{AccountType, OrderTags};
use domain::{
    JstDate, Money, OrderModify, OrderRequest, OrderSide, OrderType, Price, Quantity, ReasonCode,
    Rejection, TickTable, TimeInForce, TsNanos,
};

use crate::Exchange;
use crate::order::{OrderIx, is_stop};
use crate::rejection::{Check, reject};
use crate::reserve::OpenPart;
use crate::round_trips::OrderMoney;

/// What an order is told whose id another order of its origin has.
pub(crate) const USED_BEFORE: &str = "CLIENT_ORDER_ID: was used before in this run";

/// Shares of one sell: as many orders as may work at the same time can be added up.
const SELL_SHARES_MAX: u64 = 1_000_000_000_000;

/// Moves prices off the grid onto it, away from the market (specification 2: "tick rounding is done
/// by the engine"): limits of buys and triggers of sells down, the others up.
pub(crate) fn round_to_tick(request: &mut OrderRequest, ticks: TickTable) {
    let is_buy = request.side == OrderSide::Buy;
    request.price = request.price.map(|price| rounded(price, !is_buy, ticks));
    request.trigger_price = request.trigger_price.map(|price| rounded(price, is_buy, ticks));
}

fn rounded(price: Price, up: bool, ticks: TickTable) -> Price {
    match price.units() {
        ..=0 => price,
        _ if up => ticks.ceil(price),
        _ => ticks.floor(price),
    }
}

impl Exchange {
    /// Checks an order that was just put down: the engine's own rejections, before anything is sent.
    /// Notes what its tags say.
    pub(crate) fn rejection_of(&mut self, number: OrderIx, now: TsNanos, is_new: bool) -> Check {
        let instrument = self.orders[number].record.request.instrument;
        let market = self.markets.get(usize::from(instrument.0));
        if self.closed || market.is_some_and(|market| market.closed) {
            return reject(ReasonCode::MarketClosed, "END_OF_DATA: the replay's data has ended");
        }
        let request = std::sync::Arc::clone(&self.orders[number].record.request);
        request.validate_shape()?;
        if !is_new {
            return reject(ReasonCode::ValidationError, USED_BEFORE);
        }
        let Some(market) = self.markets.get(usize::from(request.instrument.0)) else {
            let text = format!(
                "INSTRUMENT: index {} is unknown; this run has {}",
                request.instrument.0,
                self.markets.len()
            );
            return reject(ReasonCode::ValidationError, text);
        };
        supported(&request)?;
        check_lot(request.quantity, market.instrument.lot)?;
        if request.side == OrderSide::Sell && request.quantity.shares() > SELL_SHARES_MAX {
            let text = format!("QUANTITY: {SELL_SHARES_MAX} shares are the most of a sell");
            return reject(ReasonCode::ValidationError, text);
        }
        if let Some(end) = request.expire_time {
            self.check_expiry(end, now)?;
        }
        if !request.tags.is_empty() {
            self.take_tags(number, &request, now)?;
        }
        let worst = self.worst_prices(&request, self.orders[number].funari)?;
        self.orders[number].worst = worst;
        self.check_cash(OpenPart::of(&self.orders[number]), Money::ZERO)
    }

    fn take_tags(&mut self, number: OrderIx, request: &OrderRequest, now: TsNanos) -> Check {
        let tags = OrderTags::parse(&request.tags, request.time_in_force)?;
        check_tags(&tags, request, now)?;
        if let Some(text) = tags.unknown_text(&request.client_order_id) {
            self.warn(self.orders[number].record.origin, &request.client_order_id, text);
        }
        self.orders[number].funari = tags.funari;
        Ok(())
    }

    /// A GTD order ends on a business day that is not over yet and at most 10 business days ahead
    /// (specification 4, P36).
    fn check_expiry(&self, end: TsNanos, now: TsNanos) -> Check {
        let reject = |text: String| reject(ReasonCode::ValidationError, text);
        let (today, last) = (now.jst_date(), end.jst_date());
        let is_over = self.hours.is_some_and(|hours| last == hours.date && now >= hours.close);
        if last < today || is_over {
            return reject(format!("EXPIRE_TIME_NS: the trading day {last} is over"));
        }
        if !self.calendar.is_business_day(last) {
            return reject(format!("EXPIRE_TIME_NS: {last} is no business day of the exchange"));
        }
        let ahead = self.calendar.business_days_between(today, last, GTD_BUSINESS_DAYS_MAX);
        if ahead > GTD_BUSINESS_DAYS_MAX {
            return reject(format!(
                "EXPIRE_TIME_NS: {last} is more than {GTD_BUSINESS_DAYS_MAX} business days ahead"
            ));
        }
        Ok(())
    }

    /// The venue's rejections: the order was sent and is among the open ones.
    pub(crate) fn venue_rejection_of(&self, number: OrderIx) -> Check {
        let order = &self.orders[number];
        // The newest is among them already.
        let open = self.orders.open(order.record.origin);
        if open > WORKING_ORDERS_MAX {
            let text = format!("TOO_MANY_ORDERS: {open} orders are working");
            return reject(ReasonCode::VenueRejected, text);
        }
        self.check_range(&order.record.request)?;
        // The order's own shares are already among those being sold.
        let selling = self.market_of(number).selling;
        let others = selling.saturating_sub(order.record.leaves());
        self.check_short(&order.record.request, order.record.leaves(), others)
    }

    /// The same of same-day round trips (F11).
    pub(crate) fn round_trip_rejection_of(&self, number: OrderIx) -> Check {
        let order = &self.orders[number];
        // The order's own money is reserved already, and its shares are among those being sold.
        let money = OrderMoney { needed: order.reserved, left: self.account.free_cash() };
        let selling = self.market_of(number).selling;
        let request = &order.record.request;
        let is_for_today = self.may_trade_today(request.time_in_force, order.record.ts_submitted);
        self.check_round_trip(request, is_for_today, money, selling)
    }

    /// The same of an open order that needs more money than is reserved for it, because its worst prices
    /// have changed.
    pub(crate) fn round_trip_rejection_again(&self, number: OrderIx) -> Check {
        let order = &self.orders[number];
        let needed = self.money_needed(OpenPart::of(order)).unwrap_or_default();
        if needed <= order.reserved {
            return Ok(());
        }
        let left = self.account.free_cash() + order.reserved - needed;
        let selling = self.market_of(number).selling;
        let money = OrderMoney { needed, left };
        // An auction's own price comes when its time is over.
        self.check_round_trip(&order.record.request, !order.next_day, money, selling)
    }

    /// Limit and trigger price stand inside the day's range, where one is known.
    pub(crate) fn check_range(&self, request: &OrderRequest) -> Check {
        let range = &self.markets[usize::from(request.instrument.0)].range;
        let Some(limits) = range.limits() else { return Ok(()) };
        let prices = [request.price, request.trigger_price];
        let Some(outside) = prices.into_iter().flatten().find(|price| !limits.contains(*price))
        else {
            return Ok(());
        };
        let (low, high) = (limits.low, limits.high);
        let text = format!("PRICE_LIMIT: {outside} is outside the day's range {low} to {high}");
        reject(ReasonCode::VenueRejected, text)
    }

    /// `wanted` shares can be sold besides those of `others`' orders.
    fn check_short(&self, request: &OrderRequest, wanted: Quantity, others: Quantity) -> Check {
        let held = self.account.held(request.instrument).unsigned_abs();
        let total = wanted.shares().saturating_add(others.shares());
        if request.side == OrderSide::Buy || total <= held {
            return Ok(());
        }
        let text = format!(
            "SHORT_SALE: {wanted} to sell, {held} held, {others} of them in other sell orders"
        );
        reject(ReasonCode::VenueRejected, text)
    }

    /// A stop whose trigger the last price has reached already is no stop (F5).
    pub(crate) fn check_trigger(&self, request: &OrderRequest) -> Check {
        let market = &self.markets[usize::from(request.instrument.0)];
        // Before the first trade of a run that is the close before it.
        let last = market.last_price.or(market.range.base());
        let (Some(trigger), Some(last)) = (request.trigger_price, last) else { return Ok(()) };
        let is_reached = match request.side {
            OrderSide::Buy => last >= trigger,
            OrderSide::Sell => last <= trigger,
        };
        if !is_reached {
            return Ok(());
        }
        let wanted = if request.side == OrderSide::Buy { "above" } else { "below" };
        let text = format!(
            "STOP_TRIGGER: {trigger} is reached already, the last price is {last}; the trigger of \
             a {} must be {wanted} it",
            request.side
        );
        reject(ReasonCode::VenueRejected, text)
    }

    /// The request that an order has after a change, checked like a new one.
    pub(crate) fn changed_request(
        &self,
        number: OrderIx,
        now: TsNanos,
        change: OrderModify,
    ) -> Result<OrderRequest, Rejection> {
        let order = &self.orders[number];
        let market = self.market_of(number);
        let mut changed = change.applied_to(&order.record.request);
        round_to_tick(&mut changed, market.instrument.ticks);
        changed.validate_shape()?;
        check_lot(changed.quantity, market.instrument.lot)?;
        if changed.quantity <= order.record.filled {
            let text = format!("QUANTITY: {} of them are filled", order.record.filled);
            reject(ReasonCode::VenueRejected, text)?;
        }
        if let Some(end) = change.expire_time {
            self.check_expiry(end, now)?;
        }
        if change.trigger_price.is_some() {
            if order.record.ts_triggered.is_some() {
                let text = "STOP_TRIGGER: the stop was triggered, its trigger cannot change";
                reject(ReasonCode::VenueRejected, text)?;
            }
            self.check_trigger(&changed)?;
        }
        self.check_range(&changed)?;
        let leaves = changed.quantity.saturating_sub(order.record.filled);
        let worst = self.worst_prices(&changed, order.funari)?;
        let part = OpenPart { request: &changed, leaves, worst, ..OpenPart::of(order) };
        self.check_cash(part, order.reserved)?;
        let others = market.selling.saturating_sub(order.record.leaves());
        self.check_short(&changed, leaves, others)?;
        let needed = self.money_needed(part).unwrap_or_default();
        if needed > order.reserved || leaves > order.record.leaves() {
            let left = self.account.free_cash() + order.reserved - needed;
            let is_for_today = self.may_trade_today(changed.time_in_force, now);
            let money = OrderMoney { needed, left };
            self.check_round_trip(&changed, is_for_today, money, others + leaves)?;
        }
        Ok(changed)
    }
}

/// What of an order can be judged without the market: what this exchange does not model, and the lot.
///
/// # Errors
/// The [`Rejection`] that its sender is told.
pub fn check_order(request: &OrderRequest, lot: Quantity) -> Result<(), Rejection> {
    supported(request)?;
    check_lot(request.quantity, lot)
}

/// An order that asks for what this exchange does not model is rejected by name.
fn supported(request: &OrderRequest) -> Check {
    let unsupported = |text: String| reject(ReasonCode::VenueUnsupported, text);
    let kind = request.order_type;
    if matches!(kind, OrderType::MarketIfTouched | OrderType::LimitIfTouched) {
        return unsupported(format!(
            "{kind}: this exchange takes MARKET, LIMIT, STOP_MARKET and STOP_LIMIT"
        ));
    }
    let life = request.time_in_force;
    if matches!(life, TimeInForce::Gtc | TimeInForce::Ioc | TimeInForce::Fok) {
        return unsupported(format!(
            "{life}: this exchange takes DAY, GTD, AT_THE_OPEN and AT_THE_CLOSE"
        ));
    }
    let is_auction = matches!(life, TimeInForce::AtTheOpen | TimeInForce::AtTheClose);
    if is_stop(request) && is_auction {
        return unsupported(format!("{kind}: a stop cannot be {life}; it takes DAY or GTD"));
    }
    if !is_stop(request) && request.trigger_type.is_some() {
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

/// What the tags ask for can be done by a cash account.
fn check_tags(tags: &OrderTags, request: &OrderRequest, now: TsNanos) -> Check {
    let unsupported = |text: String| reject(ReasonCode::VenueUnsupported, text);
    let margin_key = |tag: &&String| {
        let key = tag.split('=').next().unwrap_or_default();
        matches!(key, "close_action" | "tategyoku") || tag.starts_with("cash_margin=margin_")
    };
    if let Some(tag) = request.tags.iter().filter(|_| tags.is_margin()).find(margin_key) {
        return unsupported(format!("MARGIN: `{tag}` needs a margin account; this one has cash"));
    }
    if tags.account_type == Some(AccountType::NisaGrowth) {
        return unsupported("ACCOUNT_TYPE: `nisa_growth` is not supported yet".to_owned());
    }
    let closed_for_buys = JstDate::from_ymd_opt(2024, 1, 1);
    let is_closed = closed_for_buys.is_some_and(|first| now.jst_date() >= first);
    let is_nisa_buy =
        tags.account_type == Some(AccountType::Nisa) && request.side == OrderSide::Buy;
    if is_nisa_buy && is_closed {
        return unsupported("ACCOUNT_TYPE: `nisa` only sells since 2024".to_owned());
    }
    if tags.funari && request.order_type != OrderType::Limit {
        return unsupported(
            "CONFLICTING_TAGS: `close_strategy=funari` needs a LIMIT order, which turns market"
                .to_owned(),
        );
    }
    Ok(())
}

fn check_lot(quantity: Quantity, lot: Quantity) -> Check {
    if quantity.floor_to(lot) == quantity {
        return Ok(());
    }
    let text = format!("QUANTITY: {quantity} is not a multiple of the lot {lot}");
    reject(ReasonCode::ValidationError, text)
}
