//! Orders: the request, the closed lists of the specification, and the one state machine that live
//! trading and replay share (specification 2, "States and transitions").

mod origin;
mod record;

use std::fmt;

use crate::text::ShortText;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::instrument::InstrumentIx;
use crate::limits::{CLIENT_ORDER_ID_MAX, REASON_TEXT_MAX};
use crate::price::{Price, Quantity};
use crate::time::TsNanos;

pub use origin::{Discrepancy, OrderOrigin};
pub use record::OrderRecord;

/// Declares an enum whose names on the wire are the specification's, never other forms.
macro_rules! wire_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $wire:literal,)+ }) => {
        $(#[$meta])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash,
            Serialize, Deserialize, JsonSchema,
        )]
        pub enum $name {
            $($(#[$variant_meta])* #[serde(rename = $wire)] $variant,)+
        }

        impl $name {
            /// Every value, in the order of the specification.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $wire,)+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

wire_enum! {
    /// Which way an order goes.
    OrderSide {
        /// Buy.
        Buy = "BUY",
        /// Sell.
        Sell = "SELL",
    }
}

wire_enum! {
    /// How an order finds its price. The venue decides which of them it takes.
    OrderType {
        /// At whatever the market pays.
        Market = "MARKET",
        /// At the limit price or better.
        Limit = "LIMIT",
        /// A market order once the trigger price has traded.
        StopMarket = "STOP_MARKET",
        /// A limit order once the trigger price has traded.
        StopLimit = "STOP_LIMIT",
        /// No venue takes it; kept so that it can be rejected by name.
        MarketIfTouched = "MARKET_IF_TOUCHED",
        /// No venue takes it; kept so that it can be rejected by name.
        LimitIfTouched = "LIMIT_IF_TOUCHED",
    }
}

wire_enum! {
    /// How long an order lives.
    TimeInForce {
        /// To the end of the trading day.
        Day = "DAY",
        /// Until cancelled; no venue takes it.
        Gtc = "GTC",
        /// To the end of a given Japanese date.
        Gtd = "GTD",
        /// Immediate or cancel; no venue takes it.
        Ioc = "IOC",
        /// Fill or kill; no venue takes it.
        Fok = "FOK",
        /// In the opening auction only.
        AtTheOpen = "AT_THE_OPEN",
        /// In the closing auction only.
        AtTheClose = "AT_THE_CLOSE",
    }
}

wire_enum! {
    /// Who an order belongs to. Ids of orders are unique in one origin only.
    Origin {
        /// The strategy of the run.
        Strategy = "strategy",
        /// A client of the engine: a person at the GUI, or a script for one.
        Client = "person",
    }
}

wire_enum! {
    /// Which price triggers a stop.
    TriggerType {
        /// The last trade.
        Last = "LAST",
    }
}

wire_enum! {
    /// Where an order stands.
    OrderStatus {
        /// Made, not sent.
        Initialized = "INITIALIZED",
        /// Sent, not answered.
        Submitted = "SUBMITTED",
        /// The venue has given it a number.
        Accepted = "ACCEPTED",
        /// Some of it is done; lists report it as `ACCEPTED`.
        PartiallyFilled = "PARTIALLY_FILLED",
        /// All of it is done.
        Filled = "FILLED",
        /// A change is under way.
        PendingUpdate = "PENDING_UPDATE",
        /// A cancel is under way.
        PendingCancel = "PENDING_CANCEL",
        /// Cancelled by its owner.
        Canceled = "CANCELED",
        /// Its time ran out.
        Expired = "EXPIRED",
        /// Rejected by the engine or the venue.
        Rejected = "REJECTED",
    }
}

wire_enum! {
    /// Why an order was rejected. A new code needs a change of the specification.
    ReasonCode {
        /// The request breaks the schema.
        ValidationError = "VALIDATION_ERROR",
        /// Outside phase O0.
        UnsupportedInPhaseO0 = "UNSUPPORTED_IN_PHASE_O0",
        /// The venue cannot do this combination.
        VenueUnsupported = "VENUE_UNSUPPORTED",
        /// No second password is held.
        SecondPasswordRequired = "SECOND_PASSWORD_REQUIRED",
        /// The broker refused the second password.
        SecondPasswordInvalid = "SECOND_PASSWORD_INVALID",
        /// Too many wrong second passwords.
        SecondPasswordLocked = "SECOND_PASSWORD_LOCKED",
        /// The broker session is gone.
        SessionExpired = "SESSION_EXPIRED",
        /// Futures or options at a stock venue.
        UnsupportedInstrument = "UNSUPPORTED_INSTRUMENT",
        /// The local gateway cannot be reached.
        ConnectionError = "CONNECTION_ERROR",
        /// Outside the venue's hours.
        MarketClosed = "MARKET_CLOSED",
        /// Not enough money.
        InsufficientFunds = "INSUFFICIENT_FUNDS",
        /// The broker rejected it for a business reason.
        VenueRejected = "VENUE_REJECTED",
        /// The venue's number of the order is unknown.
        OrderStatusUnknown = "ORDER_STATUS_UNKNOWN",
        /// Our own failure.
        InternalError = "INTERNAL_ERROR",
    }
}

impl OrderSide {
    /// `+1` for a buy, `-1` for a sell.
    #[must_use]
    pub const fn sign(self) -> i64 {
        match self {
            Self::Buy => 1,
            Self::Sell => -1,
        }
    }
}

impl OrderStatus {
    /// Whether the state is final: no transition leads out of it.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Filled | Self::Canceled | Self::Expired | Self::Rejected)
    }
}

/// A rejection: a code of the closed list and one line of text for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// Why, from the closed list of the specification.
    pub code: ReasonCode,
    /// One line, at most 512 characters, in the specification's form `<TAG or field>: <reason>`.
    pub text: String,
}

impl Rejection {
    /// A rejection. Line breaks and whatever else steers a line become spaces; longer text is cut off.
    #[must_use]
    pub fn new(code: ReasonCode, text: impl AsRef<str>) -> Self {
        let text = text
            .as_ref()
            .chars()
            .map(|letter| if crate::text::steers(letter) { ' ' } else { letter })
            .take(REASON_TEXT_MAX)
            .collect();
        Self { code, text }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.text)
    }
}

/// An order as a strategy or a client asks for it (specification 2, `SubmitOrderRequest`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderRequest {
    /// Chosen by the caller: 1 to 36 printable ASCII characters, unique in one strategy run.
    pub client_order_id: ShortText,
    /// What to trade.
    pub instrument: InstrumentIx,
    /// Buy or sell.
    pub side: OrderSide,
    /// How it finds its price.
    pub order_type: OrderType,
    /// Shares; a multiple of the lot.
    pub quantity: Quantity,
    /// Limit price, for `LIMIT` and `STOP_LIMIT`.
    pub price: Option<Price>,
    /// Trigger price, for `STOP_MARKET` and `STOP_LIMIT`.
    pub trigger_price: Option<Price>,
    /// Which price triggers.
    pub trigger_type: Option<TriggerType>,
    /// How long it lives.
    pub time_in_force: TimeInForce,
    /// End of life, for `GTD`.
    pub expire_time: Option<TsNanos>,
    /// Reject it instead of taking liquidity.
    pub post_only: bool,
    /// Reject it instead of opening or turning a position.
    pub reduce_only: bool,
    /// `key=value` texts for the venue.
    pub tags: Vec<String>,
}

/// A request that several hold, as JSON has it: each reader gets one of its own.
pub(crate) mod shared_request {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::OrderRequest;

    pub(crate) fn serialize<S: Serializer>(
        request: &Arc<OrderRequest>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        request.as_ref().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<OrderRequest>, D::Error> {
        OrderRequest::deserialize(deserializer).map(Arc::new)
    }
}

impl OrderRequest {
    /// Checks the shape of the request: the part of the rules that holds at every venue.
    ///
    /// # Errors
    /// A [`Rejection`] with `VALIDATION_ERROR` whose text names the field.
    pub fn validate_shape(&self) -> Result<(), Rejection> {
        let reject = |text: &str| Err(Rejection::new(ReasonCode::ValidationError, text));
        let id = self.client_order_id.as_bytes();
        let printable = id.iter().all(|byte| (0x20..0x7f).contains(byte));
        if id.is_empty() || id.len() > CLIENT_ORDER_ID_MAX || !printable {
            return reject("CLIENT_ORDER_ID: must be 1 to 36 printable ASCII characters");
        }
        if self.quantity.is_zero() {
            return reject("QUANTITY: must be a positive number of shares");
        }
        // Of the types that no venue takes nothing else is asked: they are refused as such.
        let is_touched =
            matches!(self.order_type, OrderType::MarketIfTouched | OrderType::LimitIfTouched);
        let wants_price = matches!(self.order_type, OrderType::Limit | OrderType::StopLimit);
        if !is_touched && wants_price != self.price.is_some() {
            return reject("PRICE: is needed for LIMIT and STOP_LIMIT and for nothing else");
        }
        let wants_trigger = matches!(self.order_type, OrderType::StopMarket | OrderType::StopLimit);
        if !is_touched && wants_trigger != self.trigger_price.is_some() {
            return reject("TRIGGER_PRICE: is needed for stop orders and for nothing else");
        }
        if [self.price, self.trigger_price].iter().flatten().any(|price| price.units() <= 0) {
            return reject("PRICE: must be above zero");
        }
        if (self.time_in_force == TimeInForce::Gtd) != self.expire_time.is_some() {
            return reject("EXPIRE_TIME_NS: is needed for GTD and for nothing else");
        }
        for tag in &self.tags {
            let printable = tag.bytes().all(|byte| (0x20..0x7f).contains(&byte));
            if !printable || tag.matches('=').count() != 1 {
                return reject("TAGS: each must be `key=value` in printable ASCII");
            }
        }
        Ok(())
    }
}

/// A change of a working order (specification 2, `OrderModifyChange`); `None` means unchanged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderModify {
    /// New total quantity in shares.
    pub quantity: Option<Quantity>,
    /// New limit price.
    pub price: Option<Price>,
    /// New trigger price.
    pub trigger_price: Option<Price>,
    /// New end of life.
    pub expire_time: Option<TsNanos>,
}

impl OrderModify {
    /// The order as it is after the change.
    #[must_use]
    pub fn applied_to(self, request: &OrderRequest) -> OrderRequest {
        OrderRequest {
            quantity: self.quantity.unwrap_or(request.quantity),
            price: self.price.or(request.price),
            trigger_price: self.trigger_price.or(request.trigger_price),
            expire_time: self.expire_time.or(request.expire_time),
            ..request.clone()
        }
    }
}

/// What moves an order to its next state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderTrigger {
    /// The engine takes the order and is about to send it.
    Send,
    /// The venue gives it a number.
    VenueAccepts,
    /// The venue or the engine rejects it.
    Reject,
    /// Some of it is done; `done` when nothing is left.
    Fill {
        /// Whether nothing is left.
        done: bool,
    },
    /// A change goes out.
    SendModify,
    /// The change is done; `partly_filled` when some shares were done before.
    ModifyDone {
        /// Whether some shares were done before.
        partly_filled: bool,
    },
    /// The change is refused, and the order works on as it was.
    ModifyRefused {
        /// Whether some shares were done before.
        partly_filled: bool,
    },
    /// A cancel goes out.
    SendCancel,
    /// The cancel is done.
    CancelDone,
    /// The cancel is refused, and the order works on.
    CancelRefused {
        /// Whether some shares were done before.
        partly_filled: bool,
    },
    /// Its time runs out.
    Expire,
    /// The venue's list has an order working that counted as rejected, because a change of it was
    /// refused.
    FoundWorking {
        /// Whether some shares were done before.
        partly_filled: bool,
    },
}

/// What a transition is told as (specification 2, "Events").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderEffect {
    /// `OrderSubmitted`
    Submitted,
    /// `OrderAccepted`
    Accepted,
    /// `OrderRejected`: of the order, or of the change or cancel that was asked for.
    Rejected,
    /// `OrderFilled`
    Filled,
    /// `OrderPendingUpdate`
    PendingUpdate,
    /// `OrderUpdated`
    Updated,
    /// `OrderPendingCancel`
    PendingCancel,
    /// `OrderCanceled`
    Canceled,
    /// `OrderExpired`
    Expired,
}

/// A trigger that the state does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("an order that is {from} cannot take {trigger:?}")]
pub struct IllegalTransition {
    /// The order's state before it.
    pub from: OrderStatus,
    /// The trigger that was not taken.
    pub trigger: OrderTrigger,
}

impl OrderStatus {
    /// The next state, and the event that tells it. This is the only place that decides it, for live
    /// trading and for replay.
    ///
    /// Beyond the specification's table (specification 4, P25, P26): a fill may come before the venue's
    /// answer, and may cross a change or a cancel under way (the state stays pending until nothing is
    /// left); a fill that comes late, after the order ended otherwise, leaves the state; a refused
    /// change or cancel leaves a working order; and an order may expire, be rejected or be cancelled
    /// by the venue from every state that is not final.
    ///
    /// # Errors
    /// [`IllegalTransition`] when the state does not take the trigger; the order is unchanged.
    pub fn transition(
        self,
        trigger: OrderTrigger,
    ) -> Result<(Self, OrderEffect), IllegalTransition> {
        use OrderEffect as E;
        use OrderTrigger as T;
        let working = matches!(self, Self::Accepted | Self::PartiallyFilled);
        let pending = matches!(self, Self::PendingUpdate | Self::PendingCancel);
        let sent = working || pending || self == Self::Submitted;
        let works = |partly_filled| {
            if partly_filled { Self::PartiallyFilled } else { Self::Accepted }
        };
        Ok(match trigger {
            T::Send if self == Self::Initialized => (Self::Submitted, E::Submitted),
            T::VenueAccepts if self == Self::Submitted => (Self::Accepted, E::Accepted),
            T::Reject if !self.is_final() => (Self::Rejected, E::Rejected),
            T::Fill { done: true } if sent => (Self::Filled, E::Filled),
            T::Fill { done: false } if pending => (self, E::Filled),
            T::Fill { done: false } if sent => (Self::PartiallyFilled, E::Filled),
            T::Fill { .. } if self.is_final() && self != Self::Filled => (self, E::Filled),
            T::SendModify if working => (Self::PendingUpdate, E::PendingUpdate),
            T::ModifyDone { partly_filled } if self == Self::PendingUpdate => {
                (works(partly_filled), E::Updated)
            }
            T::ModifyRefused { partly_filled } if self == Self::PendingUpdate => {
                (works(partly_filled), E::Rejected)
            }
            T::SendCancel if working => (Self::PendingCancel, E::PendingCancel),
            T::CancelDone if sent => (Self::Canceled, E::Canceled),
            T::CancelRefused { partly_filled } if self == Self::PendingCancel => {
                (works(partly_filled), E::Rejected)
            }
            T::Expire if sent => (Self::Expired, E::Expired),
            T::FoundWorking { partly_filled } if self == Self::Rejected => {
                (works(partly_filled), E::Accepted)
            }
            _ => return Err(IllegalTransition { from: self, trigger }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use OrderStatus as S;
    use OrderTrigger as T;

    fn market_buy() -> OrderRequest {
        OrderRequest {
            client_order_id: "O-1".into(),
            instrument: InstrumentIx(0),
            side: OrderSide::Buy,
            order_type: OrderType::Market,
            quantity: Quantity::new(100),
            price: None,
            trigger_price: None,
            trigger_type: None,
            time_in_force: TimeInForce::Day,
            expire_time: None,
            post_only: false,
            reduce_only: false,
            tags: vec![],
        }
    }

    #[test]
    fn every_row_of_the_specification_holds() {
        use OrderEffect as E;
        for (from, trigger, to, effect) in [
            (S::Initialized, T::Send, S::Submitted, E::Submitted),
            (S::Submitted, T::Reject, S::Rejected, E::Rejected),
            (S::Submitted, T::VenueAccepts, S::Accepted, E::Accepted),
            (S::Accepted, T::Fill { done: true }, S::Filled, E::Filled),
            (S::Accepted, T::Fill { done: false }, S::PartiallyFilled, E::Filled),
            (S::PartiallyFilled, T::Fill { done: true }, S::Filled, E::Filled),
            (S::Accepted, T::SendModify, S::PendingUpdate, E::PendingUpdate),
            (S::PendingUpdate, T::ModifyDone { partly_filled: false }, S::Accepted, E::Updated),
            (S::PendingUpdate, T::Reject, S::Rejected, E::Rejected),
            (S::Accepted, T::SendCancel, S::PendingCancel, E::PendingCancel),
            (S::PendingCancel, T::CancelDone, S::Canceled, E::Canceled),
            (S::Accepted, T::Expire, S::Expired, E::Expired),
            (S::Accepted, T::Reject, S::Rejected, E::Rejected),
        ] {
            assert_eq!(from.transition(trigger), Ok((to, effect)), "{from} {trigger:?}");
        }
    }

    /// Specification 4, P25 and P26.
    #[test]
    fn what_brokers_do_beyond_the_table_is_legal() {
        use OrderEffect as E;
        let (none, some) = (false, true);
        for (from, trigger, to, effect) in [
            (S::Submitted, T::Fill { done: true }, S::Filled, E::Filled),
            (S::Submitted, T::Fill { done: false }, S::PartiallyFilled, E::Filled),
            (S::PendingUpdate, T::Fill { done: true }, S::Filled, E::Filled),
            (S::PendingUpdate, T::Fill { done: false }, S::PendingUpdate, E::Filled),
            (S::PendingCancel, T::Fill { done: true }, S::Filled, E::Filled),
            (S::PendingCancel, T::Fill { done: false }, S::PendingCancel, E::Filled),
            (S::PartiallyFilled, T::SendModify, S::PendingUpdate, E::PendingUpdate),
            (S::PartiallyFilled, T::SendCancel, S::PendingCancel, E::PendingCancel),
            (S::PartiallyFilled, T::Expire, S::Expired, E::Expired),
            (S::Canceled, T::Fill { done: false }, S::Canceled, E::Filled),
            (S::Rejected, T::Fill { done: true }, S::Rejected, E::Filled),
            (S::Expired, T::Fill { done: true }, S::Expired, E::Filled),
            (S::PendingCancel, T::CancelRefused { partly_filled: none }, S::Accepted, E::Rejected),
            (
                S::PendingCancel,
                T::CancelRefused { partly_filled: some },
                S::PartiallyFilled,
                E::Rejected,
            ),
            (S::PendingUpdate, T::ModifyRefused { partly_filled: none }, S::Accepted, E::Rejected),
            (
                S::PendingUpdate,
                T::ModifyRefused { partly_filled: some },
                S::PartiallyFilled,
                E::Rejected,
            ),
            (S::Rejected, T::FoundWorking { partly_filled: none }, S::Accepted, E::Accepted),
            (S::Rejected, T::FoundWorking { partly_filled: some }, S::PartiallyFilled, E::Accepted),
        ] {
            assert_eq!(from.transition(trigger), Ok((to, effect)), "{from} {trigger:?}");
        }
        for from in [S::Filled, S::Canceled, S::Expired, S::Accepted] {
            assert!(from.transition(T::FoundWorking { partly_filled: none }).is_err(), "{from}");
        }
    }

    #[test]
    fn nothing_leaves_a_final_state() {
        let triggers = [
            T::Send,
            T::VenueAccepts,
            T::Reject,
            T::SendModify,
            T::ModifyDone { partly_filled: true },
            T::ModifyRefused { partly_filled: true },
            T::SendCancel,
            T::CancelDone,
            T::CancelRefused { partly_filled: true },
            T::Expire,
        ];
        for status in OrderStatus::ALL.iter().filter(|status| status.is_final()) {
            for trigger in triggers {
                assert!(status.transition(trigger).is_err(), "{status} {trigger:?}");
            }
        }
        for done in [false, true] {
            assert!(S::Filled.transition(T::Fill { done }).is_err());
            assert!(S::Initialized.transition(T::Fill { done }).is_err());
        }
        assert_eq!(
            S::Filled.transition(T::SendCancel).unwrap_err().to_string(),
            "an order that is FILLED cannot take SendCancel"
        );
    }

    #[test]
    fn names_on_the_wire_are_the_specification_s() {
        assert_eq!(OrderType::StopLimit.to_string(), "STOP_LIMIT");
        assert_eq!(ReasonCode::UnsupportedInPhaseO0.as_str(), "UNSUPPORTED_IN_PHASE_O0");
        assert_eq!(OrderStatus::ALL.len(), 10);
        assert_eq!(ReasonCode::ALL.len(), 14);
    }

    #[test]
    fn shape_errors_name_the_field() {
        let check = |change: fn(&mut OrderRequest), field: &str| {
            let mut request = market_buy();
            change(&mut request);
            let rejection = request.validate_shape().unwrap_err();
            assert_eq!(rejection.code, ReasonCode::ValidationError);
            assert!(rejection.text.starts_with(field), "{rejection}");
        };
        assert_eq!(market_buy().validate_shape(), Ok(()));
        check(|order| order.client_order_id = "".into(), "CLIENT_ORDER_ID");
        check(|order| order.client_order_id = "x".repeat(37).into(), "CLIENT_ORDER_ID");
        check(|order| order.client_order_id = "日".into(), "CLIENT_ORDER_ID");
        check(|order| order.quantity = Quantity::ZERO, "QUANTITY");
        check(|order| order.price = Some(Price::from_yen(1)), "PRICE");
        check(|order| order.trigger_price = Some(Price::from_yen(1)), "TRIGGER_PRICE");
        check(|order| order.time_in_force = TimeInForce::Gtd, "EXPIRE_TIME_NS");
        check(|order| order.tags = vec!["a=b=c".into()], "TAGS");
        check(
            |order| {
                order.order_type = OrderType::Limit;
                order.price = Some(Price::from_units(-1));
            },
            "PRICE",
        );
    }

    #[test]
    fn rejection_text_is_one_short_line() {
        let rejection = Rejection::new(ReasonCode::InternalError, "a\nb".repeat(400));
        assert_eq!(rejection.text.chars().count(), REASON_TEXT_MAX);
        assert!(!rejection.text.contains('\n'));
    }
}
