//! Events of orders (specification 2, "Events"), and of the account without an order.

use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::adjustment::Adjustment;
use crate::instrument::InstrumentIx;
use crate::money::Money;
use crate::order::{
    OrderModify, OrderRequest, OrderSide, OrderStatus, Origin, Rejection, TimeInForce,
    shared_request,
};
use crate::price::{Price, Quantity};
use crate::text::ShortText;
use crate::time::TsNanos;

/// A fill of an order, or of a part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fill {
    /// Which way the order goes.
    pub side: OrderSide,
    /// Unique together with the venue's order number.
    pub trade_id: ShortText,
    /// Shares of this fill, at least 1.
    pub last_quantity: Quantity,
    /// Price of this fill, 1/10,000 yen.
    pub last_price: Price,
    /// Price of the market's trade (in a bar: of the part of it) that the fill comes from, before
    /// slippage; where it is not known, the price of this fill.
    pub market_price: Price,
    /// Shares done so far, this fill included.
    pub cumulative_quantity: Quantity,
    /// Shares still open.
    pub leaves_quantity: Quantity,
    /// Fee of this fill, 1/10,000 yen; none where the venue does not tell it.
    pub commission: Option<Money>,
}

impl Fill {
    /// The fee of this fill, as far as it is known.
    #[must_use]
    pub fn known_commission(&self) -> Money {
        self.commission.unwrap_or_default()
    }
}

/// Why the time of an order ran out; one of a closed list.
type ExpiryText = &'static str;

/// Why the time of an order ran out, besides its time in force.
const EXPIRY_TEXTS: [&str; 5] =
    ["PRICE_LIMIT", "EX_RIGHTS", "LOT_CHANGE", "TICK_CHANGE", "END_OF_DATA"];

/// Reads why the time of an order ran out.
fn expiry_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ExpiryText, D::Error> {
    let text = String::deserialize(deserializer)?;
    let in_force = TimeInForce::ALL.iter().map(|kind| kind.as_str());
    let mut known = in_force.chain(EXPIRY_TEXTS);
    known.find(|known| *known == text).ok_or_else(|| {
        D::Error::custom(format!("`{text}` is no reason for which the time of an order runs out"))
    })
}

/// The kinds of an order's events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderEventKind {
    /// Taken by the engine and sent; carries the whole request.
    Submitted(#[serde(with = "shared_request")] Arc<OrderRequest>),
    /// The venue gave it a number.
    Accepted,
    /// Rejected, by the engine or by the venue.
    Rejected(Rejection),
    /// A change was sent.
    PendingUpdate(OrderModify),
    /// The change is done; carries the request as it is now.
    Updated(#[serde(with = "shared_request")] Arc<OrderRequest>),
    /// A cancel was sent.
    PendingCancel,
    /// The venue has cancelled it.
    Canceled,
    /// Its time ran out; the text says why: its time in force (`DAY`, `GTD`, `AT_THE_OPEN`,
    /// `AT_THE_CLOSE`), `PRICE_LIMIT` (outside a new day's range), `EX_RIGHTS` (a split on the new
    /// day), `LOT_CHANGE` or `TICK_CHANGE` (the new day has another lot or other price steps), or
    /// `END_OF_DATA`.
    Expired(#[serde(deserialize_with = "expiry_text")] ExpiryText),
    /// Filled, wholly or partly.
    Filled(Fill),
}

/// One event of one order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderEvent {
    /// Time of the event, UTC nanoseconds; virtual in a replay.
    pub ts_event: TsNanos,
    /// Who the order belongs to.
    pub origin: Origin,
    /// The caller's id of the order.
    pub client_order_id: ShortText,
    /// The venue's number, once there is one.
    pub venue_order_id: Option<ShortText>,
    /// The instrument of the order.
    pub instrument: InstrumentIx,
    /// The side of the order.
    pub side: OrderSide,
    /// The state after the event.
    pub status: OrderStatus,
    /// The kind of event with what belongs to it.
    pub kind: OrderEventKind,
}

/// A split or reverse split of the shares of an instrument, as its strategy is told (rule F12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// How many shares become how many.
    pub adjustment: Adjustment,
    /// Shares held afterwards.
    pub quantity: i64,
    /// Cash paid for what was no whole share, 1/10,000 yen, from 0.
    pub cash_paid: Money,
    /// The last price, adjusted, 1/10,000 yen; none while the instrument has not traded.
    pub last_price: Option<Price>,
}

/// The kinds of events of the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccountEventKind {
    /// Shares were split on their ex-rights date.
    Split(Split),
}

/// Something that happened to the account without an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountEvent {
    /// Time of the event, UTC nanoseconds: the first of its day.
    pub ts_event: TsNanos,
    /// The instrument that it is about.
    pub instrument: InstrumentIx,
    /// What happened.
    pub kind: AccountEventKind,
}
