//! Checks of an order or a change that need neither the broker nor the time.
//!
//! They are its shape, what the venue and its phase take, lots, ticks and dates (specification 2,
//! "SubmitOrderRequest"; specification 4, P30 to P37).

use domain::order_mapping::BrokerOrder;
use domain::order_rules::{check_texts, stock_symbol};
use domain::{
    OrderRequest, OrderSide, OrderType, Price, Quantity, ReasonCode, Rejection, ShortText,
    TimeInForce, TsNanos,
};
use venues::web_broker::{Issue, Masters};

use crate::limits::{CHARS_SHOWN, TAGS_MAX};
use crate::phase::OrderPhase;

/// An order that passed its checks.
#[derive(Debug, Clone)]
pub(crate) struct Checked {
    pub(crate) order: BrokerOrder,
    pub(crate) expire_time: Option<TsNanos>,
}

fn invalid(text: impl AsRef<str>) -> Rejection {
    Rejection::new(ReasonCode::ValidationError, text)
}

fn unsupported(text: impl AsRef<str>) -> Rejection {
    Rejection::new(ReasonCode::VenueUnsupported, text)
}

fn no_master(what: &str) -> Rejection {
    let text = format!("MASTER_MISSING: the broker's {what} is missing; log in again");
    Rejection::new(ReasonCode::InternalError, text)
}

/// Checks a new order: first shape, then phase and venue, then lot, ticks and dates by the masters. Before the
/// first login there are no masters. These checks are left out then, and nothing is sent.
pub(crate) fn check_order(
    request: OrderRequest,
    instrument_id: &ShortText,
    phase: OrderPhase,
    masters: Option<&Masters>,
    now: TsNanos,
) -> Result<Checked, Rejection> {
    check_texts(&request.client_order_id, &request.tags, TAGS_MAX)?;
    let symbol = symbol_of(instrument_id)?;
    request.validate_shape()?;
    phase.check(&request)?;
    check_venue(&request)?;
    let issue = masters.map(|masters| issue_of(masters, &symbol)).transpose()?;
    let mut made = BrokerOrder {
        symbol,
        side: request.side,
        order_type: request.order_type,
        quantity: request.quantity,
        price: request.price,
        trigger_price: request.trigger_price,
        time_in_force: request.time_in_force,
        expire_date: request.expire_time.map(TsNanos::jst_date),
        tags: request.tags,
    };
    if let Some((masters, issue)) = masters.zip(issue) {
        check_lot("QUANTITY", made.quantity, issue)?;
        let side = made.side;
        made.price = made
            .price
            .map(|price| limit_on_tick("PRICE", masters, issue, side, price))
            .transpose()?;
        let trigger = made.trigger_price;
        made.trigger_price = trigger
            .map(|price| trigger_on_tick("TRIGGER_PRICE", masters, issue, side, price))
            .transpose()?;
    }
    if let Some((masters, expire)) = masters.zip(request.expire_time) {
        check_expiry("EXPIRE_TIME_NS", masters, expire, now)?;
    }
    Ok(Checked { order: made, expire_time: request.expire_time })
}

/// The symbol of an instrument of Tokyo (specification 4, P32).
pub(crate) fn symbol_of(instrument_id: &str) -> Result<ShortText, Rejection> {
    stock_symbol(instrument_id, CHARS_SHOWN)
}

/// Refuses what no broker of this kind takes in any phase (specification 2, "Order type mapping").
fn check_venue(request: &OrderRequest) -> Result<(), Rejection> {
    let order_type = request.order_type;
    if matches!(order_type, OrderType::MarketIfTouched | OrderType::LimitIfTouched) {
        return Err(unsupported(format!("{order_type}: the broker does not take this order type")));
    }
    let time = request.time_in_force;
    if matches!(time, TimeInForce::Gtc | TimeInForce::Ioc | TimeInForce::Fok) {
        return Err(unsupported(format!("{time}: the broker does not take this time in force")));
    }
    for (is_requested, name) in
        [(request.post_only, "POST_ONLY"), (request.reduce_only, "REDUCE_ONLY")]
    {
        if is_requested {
            return Err(unsupported(format!("{name}: the broker does not take it; write false")));
        }
    }
    Ok(())
}

/// An issue of the master.
pub(crate) fn issue_of<'m>(masters: &'m Masters, symbol: &str) -> Result<&'m Issue, Rejection> {
    if !masters.has_issues() {
        return Err(no_master("list of issues"));
    }
    masters.issue(symbol).ok_or_else(|| {
        invalid(format!("INSTRUMENT_ID: the broker's list of issues has no `{symbol}`"))
    })
}

pub(crate) fn check_lot(field: &str, quantity: Quantity, issue: &Issue) -> Result<(), Rejection> {
    let lot = issue.lot.shares();
    if lot == 0 {
        return Err(no_master("trading unit of the issue"));
    }
    if quantity.shares().is_multiple_of(lot) {
        return Ok(());
    }
    Err(invalid(format!(
        "{field}: {} shares are not a multiple of the lot of {lot}",
        quantity.shares()
    )))
}

/// Moves a limit price onto the grid, to the side that is never worse than the requested price (P35).
pub(crate) fn limit_on_tick(
    field: &str,
    masters: &Masters,
    issue: &Issue,
    side: OrderSide,
    price: Price,
) -> Result<Price, Rejection> {
    on_tick(field, masters, issue, price, side == OrderSide::Buy)
}

/// Moves a trigger price onto the grid, away from the market (P35).
pub(crate) fn trigger_on_tick(
    field: &str,
    masters: &Masters,
    issue: &Issue,
    side: OrderSide,
    price: Price,
) -> Result<Price, Rejection> {
    on_tick(field, masters, issue, price, side == OrderSide::Sell)
}

fn on_tick(
    field: &str,
    masters: &Masters,
    issue: &Issue,
    price: Price,
    down: bool,
) -> Result<Price, Rejection> {
    let ticks = masters.ticks(issue).ok_or_else(|| no_master("table of price steps"))?;
    let moved = if down { ticks.floor(price) } else { ticks.ceil(price) };
    if moved.units() <= 0 {
        let tick = ticks.tick_at(price);
        return Err(invalid(format!("{field}: {price} is below the lowest step of {tick} yen")));
    }
    Ok(moved)
}

/// Checks that the broker takes an order with this expiry date (specification 4, P36).
pub(crate) fn check_expiry(
    field: &str,
    masters: &Masters,
    expire: TsNanos,
    now: TsNanos,
) -> Result<(), Rejection> {
    let days = masters.days.as_ref().ok_or_else(|| no_master("calendar"))?;
    let date = expire.jst_date();
    if expire <= now {
        return Err(invalid(format!("{field}: {date} is past")));
    }
    let last = days.next.last().copied().unwrap_or(days.today);
    if date > last {
        let text = format!("{field}: {date} is later than {last}, the broker's last day");
        return Err(invalid(text));
    }
    if date != days.today && !days.next.contains(&date) {
        return Err(invalid(format!("{field}: the exchange is closed on {date}")));
    }
    Ok(())
}
