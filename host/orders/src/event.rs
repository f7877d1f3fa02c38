//! Output of the order desk: events of orders, replies to commands, discrepancies, and the session.

use domain::account::Position;
use domain::order_mapping::BrokerRow;
use domain::{
    Discrepancy, InstrumentIx, Money, OrderEvent, OrderEventKind, OrderOrigin, OrderSide,
    OrderStatus, ReasonCode, Rejection, ShortText, TsNanos,
};
use venues::web_broker::account::{Holding, MarginPosition};

use crate::password::PasswordStage;

/// An event of the desk.
#[derive(Debug, Clone, PartialEq)]
pub enum DeskEvent {
    /// Something happened to an order.
    Order(DeskOrderEvent),
    /// A command is answered.
    Reply(Reply),
    /// The broker's data differ from the desk's.
    Discrepancy(DiscrepancyReport),
    /// The session at the broker has changed.
    Session(SessionEvent),
    /// Something that concerns a strategy with real orders.
    Strategy(StrategyEvent),
}

/// What concerns a strategy with real orders.
#[derive(Debug, Clone, PartialEq)]
pub enum StrategyEvent {
    /// The answer to a takeover.
    TakenOver {
        /// The command's id.
        request_id: String,
        /// What the strategy starts with, or why it cannot start (specification 4, P104, P105).
        taken: Result<Standing, Unsettled>,
    },
    /// A strategy's orders that work or whose outcome is unknown.
    OwnOrders {
        /// The command's id.
        request_id: String,
        /// The orders.
        orders: Vec<OwnOrder>,
        /// Why the last cancel of one of them was refused, if one was.
        refused: Option<Rejection>,
    },
    /// An order that was judged as not at the broker is there after all, and is being cancelled (specification 4,
    /// P121).
    CameBack {
        /// The strategy.
        strategy_id: ShortText,
        /// The order's id on the wire.
        client_order_id: ShortText,
        /// The broker's number.
        venue_order_id: ShortText,
        /// It is of an earlier process and its strategy does not run: it is not cancelled yet (specification 4, P106).
        is_left: bool,
    },
    /// The answer to a request about an order was lost, or did not come in time. The order keeps working for its
    /// strategy until a list decides (specification 4, P18, P98).
    OutcomeUnknown {
        /// The strategy.
        strategy_id: ShortText,
        /// The order's id on the wire.
        client_order_id: ShortText,
        /// Why, in words.
        why: String,
    },
    /// The second password is gone while the strategy that runs holds shares or has a working order; once until
    /// one is set (specification 4, P122).
    SecondPasswordNeeded {
        /// The strategy.
        strategy_id: ShortText,
    },
    /// The broker does not tell how an order of an earlier day ended, so what the strategy holds is not known.
    EndUnknown {
        /// The strategy.
        strategy_id: ShortText,
        /// The order in words.
        order: String,
    },
    /// A fill of the strategy that runs cannot be written to the log (specification 4, P128). It is reported to
    /// clients, and written before the next start.
    FillNotWritten {
        /// The strategy.
        strategy_id: ShortText,
        /// What the system says.
        why: String,
    },
    /// The broker's cash to buy with, asked after each fill of the strategy that runs (specification 4, P103).
    Cash(Money),
    /// The account holds fewer shares than the strategy that runs (specification 4, P107).
    Mismatch(Shortfall),
    /// What strategies hold.
    Holdings {
        /// The command's id.
        request_id: String,
        /// One entry for each strategy and instrument of which shares are held.
        held: Vec<StrategyHolding>,
    },
    /// An order whose answer was lost is decided.
    Settled {
        /// The command's id.
        request_id: String,
        /// The order's id.
        client_order_id: ShortText,
    },
    /// What a strategy holds is corrected.
    Adjusted {
        /// The command's id.
        request_id: String,
        /// What it holds now.
        held: StrategyHolding,
    },
}

/// What a strategy starts with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Standing {
    /// What it holds, by the fills of its orders.
    pub held: Vec<StrategyHolding>,
    /// Profit and loss of what it sold on this day in Japan, fees not counted (specification 4, P96).
    pub realised_today: Money,
    /// The broker's cash to buy with.
    pub cash: Option<Money>,
    /// Instruments of which the account holds fewer shares than the strategy (specification 4, P107).
    pub shortfalls: Vec<Shortfall>,
    /// Corrections of what it holds since a run of it sent an order, in words, for the run's log (specification 4,
    /// P125).
    pub corrections: Vec<String>,
}

/// Shares of one instrument that a strategy holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrategyHolding {
    /// The strategy.
    pub strategy_id: ShortText,
    /// Like `7203.TSE`.
    pub instrument_id: ShortText,
    /// Shares bought with cash; never negative.
    pub quantity: i64,
    /// What they cost, fees not counted.
    pub cost: Money,
    /// Shares of its orders with margin tags, bought less sold.
    pub margin: i64,
    /// What these cost; below zero what they were sold for.
    pub margin_cost: Money,
}

impl StrategyHolding {
    /// All shares as one position, as the strategy sees it (specification 4, P100); none where they add up to none.
    #[must_use]
    pub fn position(&self) -> Option<(i64, Money)> {
        let mut position =
            Position { quantity: self.quantity, cost: self.cost, ..Position::default() };
        position.trade(self.margin, self.margin_cost);
        (position.quantity != 0).then_some((position.quantity, position.cost))
    }
}

/// An instrument of which the account holds fewer shares than a strategy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortfall {
    /// Like `7203.TSE`.
    pub instrument_id: ShortText,
    /// Shares that the strategy holds.
    pub strategy: i64,
    /// Shares that all strategies hold.
    pub together: i64,
    /// Shares that the account holds.
    pub account: i64,
}

/// Why a strategy cannot start (specification 4, P104, P105).
#[derive(Debug, Clone, PartialEq)]
pub struct Unsettled {
    /// Why, in words, with ids and what to do.
    pub message: String,
    /// Its orders that stand in the way.
    pub orders: Vec<OwnOrder>,
}

/// An order of a strategy that works or whose outcome is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnOrder {
    /// Its id on the wire.
    pub client_order_id: ShortText,
    /// The broker's number; none: the outcome is unknown.
    pub venue_order_id: Option<ShortText>,
    /// Like `7203.TSE`.
    pub instrument_id: ShortText,
    /// Its side.
    pub side: OrderSide,
    /// Shares that are still to trade.
    pub leaves: u64,
}

/// One event of one order of the account, also of one that was placed elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct DeskOrderEvent {
    /// The command that led to it.
    pub request_id: Option<String>,
    /// Who sent the order; none: it was placed elsewhere.
    pub origin: Option<OrderOrigin>,
    /// The caller's id of the order; none: it was placed elsewhere.
    pub client_order_id: Option<ShortText>,
    /// The broker's number, once it is known.
    pub venue_order_id: Option<ShortText>,
    /// The order's instrument, by its place in the desk's table.
    pub instrument: InstrumentIx,
    /// The same by its name, like `7203.TSE`.
    pub instrument_id: ShortText,
    /// Side of the order.
    pub side: OrderSide,
    /// Time of the event.
    pub ts_event: TsNanos,
    /// State of the order after it. A late fill leaves an order that has ended as it is.
    pub status: OrderStatus,
    /// False for a fill of a strategy that could not be written to the log: clients get it, the strategy does not
    /// (specification 4, P128).
    pub is_written: bool,
    /// What happened.
    pub kind: OrderEventKind,
}

impl DeskOrderEvent {
    /// The event in the form that any venue gives to the sender of the order; `None` for an order placed
    /// elsewhere.
    #[must_use]
    pub fn for_sender(&self) -> Option<(&OrderOrigin, OrderEvent)> {
        let origin = self.origin.as_ref()?;
        let event = OrderEvent {
            ts_event: self.ts_event,
            origin: origin.kind(),
            client_order_id: self.client_order_id.clone()?,
            venue_order_id: self.venue_order_id.clone(),
            instrument: self.instrument,
            side: self.side,
            status: self.status,
            kind: self.kind.clone(),
        };
        Some((origin, event))
    }
}

/// The answer to a command.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// A command about orders is refused; an order that it names stays as it is.
    Refused(CommandRefused),
    /// A command is refused, or its outcome is unknown.
    Failed(CommandFailed),
    /// An order is at the broker, or was sent before.
    Submitted(SubmitReply),
    /// A cancel of many has ended.
    CanceledMany {
        /// The command's id.
        request_id: String,
        /// Orders that were cancelled.
        canceled: u64,
        /// Orders that were not.
        failed: u64,
    },
    /// Orders of the broker's list.
    OrderList(OrderListPart),
    /// The buying power.
    BuyingPower {
        /// The command's id.
        request_id: String,
        /// Yen that cash orders may spend; none where the broker has no amount.
        cash: Option<Money>,
        /// Yen that margin orders may spend.
        margin: Option<Money>,
        /// Time of the answer.
        ts: TsNanos,
    },
    /// The positions.
    Positions {
        /// The command's id.
        request_id: String,
        /// Shares.
        held: Vec<Holding>,
        /// Margin positions.
        margin: Vec<MarginPosition>,
        /// Time of the answer.
        ts: TsNanos,
    },
    /// A command needs the second password, and none is held.
    SecondPasswordRequired {
        /// The command's id.
        request_id: String,
    },
    /// The desk holds the second password.
    SecondPasswordSet {
        /// The command's id.
        request_id: String,
    },
    /// The state of the venue.
    VenueState(VenueStanding),
}

/// A command about orders that is refused.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandRefused {
    /// The command's id.
    pub request_id: Option<String>,
    /// The caller's id of the order that it names.
    pub client_order_id: Option<String>,
    /// Instrument of that order, where it is known.
    pub instrument_id: Option<ShortText>,
    /// Its side.
    pub side: Option<OrderSide>,
    /// Who sent that order.
    pub origin: Option<OrderOrigin>,
    /// Why.
    pub rejection: Rejection,
    /// Time of the refusal.
    pub ts: TsNanos,
}

/// A command that is refused, or whose outcome is unknown.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandFailed {
    /// The command's id.
    pub request_id: String,
    /// Why, as a code.
    pub code: FailureCode,
    /// Why, in words.
    pub message: String,
    /// Number of the order that has the id.
    pub venue_order_id: Option<ShortText>,
}

/// Why a command failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureCode {
    /// By a code of orders.
    Reason(ReasonCode),
    /// The command itself is wrong.
    Invalid,
    /// Another order has the id.
    Conflict,
}

impl From<ReasonCode> for FailureCode {
    fn from(code: ReasonCode) -> Self {
        Self::Reason(code)
    }
}

/// The reply to a new order.
#[derive(Debug, Clone, PartialEq)]
pub struct SubmitReply {
    /// The command's id.
    pub request_id: String,
    /// The caller's id of the order.
    pub client_order_id: ShortText,
    /// Whether the order is a new one.
    pub is_new: bool,
    /// Its state.
    pub status: OrderStatus,
    /// The broker's number, where it is known.
    pub venue_order_id: Option<ShortText>,
    /// A warning, as a code and in words.
    pub warning: Option<(String, String)>,
}

/// Some rows of the broker's list, or all.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderListPart {
    /// The command's id.
    pub request_id: String,
    /// The rows.
    pub orders: Vec<ListedOrder>,
    /// Whether another part follows; none where all are in this one.
    pub more: Option<bool>,
    /// Number of the first order of the next part.
    pub next: Option<u64>,
}

/// A row of the broker's list, with what the desk knows of its order.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedOrder {
    /// Who sent it; none: it was placed elsewhere.
    pub origin: Option<OrderOrigin>,
    /// The caller's id.
    pub client_order_id: Option<ShortText>,
    /// Its instrument.
    pub instrument_id: ShortText,
    /// When it ends.
    pub expire_time: Option<TsNanos>,
    /// The row; a partial fill counts as accepted (specification 2, "Order status mapping").
    pub row: BrokerRow,
}

/// A difference between the broker's data and the desk's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscrepancyReport {
    /// The caller's id of the order, where it is one of the desk's.
    pub client_order_id: Option<ShortText>,
    /// The broker's number, where it is known.
    pub venue_order_id: Option<ShortText>,
    /// The kind of the difference.
    pub discrepancy: Discrepancy,
    /// The difference in words, with its numbers.
    pub message: String,
    /// Time of the message.
    pub ts: TsNanos,
}

/// A step of the session at the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionEvent {
    /// A login begins.
    LoginStarted {
        /// The command's id.
        request_id: Option<String>,
    },
    /// A login ended because credentials are missing.
    LoginCancelled {
        /// The command's id.
        request_id: Option<String>,
    },
    /// A login is done.
    LoggedIn {
        /// Number of the login in this process.
        epoch: u64,
        /// Names of what changed, never values.
        changed: Vec<&'static str>,
        /// When.
        ts: TsNanos,
    },
    /// The venue can be used.
    Ready {
        /// The command's id.
        request_id: Option<String>,
    },
    /// The venue cannot be used, or no longer.
    Fault {
        /// Why.
        fault: SessionFault,
        /// Why, in words.
        message: String,
    },
}

/// Why a venue cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionFault {
    /// A login failed.
    LoginFailed,
    /// A login got no masters.
    MastersMissing,
    /// A list or the stream is missing.
    NotReady,
    /// The broker has ended the session.
    Expired,
}

impl SessionFault {
    /// The code of it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LoginFailed => "login_failed",
            Self::MastersMissing => "masters_missing",
            Self::NotReady => "not_ready",
            Self::Expired => "session_expired",
        }
    }
}

/// The state of a venue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VenueStanding {
    /// The command's id; none where it is told because it has changed.
    pub request_id: Option<String>,
    /// How far the login is.
    pub stage: VenueStage,
    /// Whether its stream is up; `None` if it has none now.
    pub stream_is_up: Option<bool>,
    /// The last fault.
    pub fault: Option<SessionFault>,
    /// Since when, in milliseconds UTC.
    pub since_ms: u64,
    /// Where the second password stands (specification 4, P122).
    pub password: PasswordStage,
    /// Until when it is locked, in milliseconds UTC.
    pub locked_until_ms: Option<u64>,
}

/// How far the login at a venue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VenueStage {
    /// No login yet.
    LoggedOut,
    /// A login is under way.
    LoggingIn,
    /// Orders can be sent.
    Ready,
    /// The broker has ended the session.
    Expired,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_fill_and_an_order_placed_elsewhere_lose_nothing() {
        let fill = domain::Fill {
            side: OrderSide::Buy,
            trade_id: "7".into(),
            last_quantity: domain::Quantity::new(100),
            last_price: domain::Price::from_yen(2_500),
            market_price: domain::Price::from_yen(2_500),
            cumulative_quantity: domain::Quantity::new(100),
            leaves_quantity: domain::Quantity::ZERO,
            commission: None,
        };
        let late = DeskOrderEvent {
            request_id: None,
            origin: Some(OrderOrigin::Strategy("s".into())),
            client_order_id: Some("a".into()),
            venue_order_id: Some("1000".into()),
            instrument: InstrumentIx(3),
            instrument_id: "7203.TSE".into(),
            side: OrderSide::Buy,
            ts_event: TsNanos::from_nanos(1),
            status: OrderStatus::Canceled,
            is_written: true,
            kind: OrderEventKind::Filled(fill),
        };
        let (origin, event) = late.for_sender().unwrap();
        assert_eq!(origin.strategy_id(), Some("s"));
        assert_eq!((&*event.client_order_id, event.status), ("a", OrderStatus::Canceled));
        assert_eq!((event.kind, event.instrument), (late.kind.clone(), InstrumentIx(3)));
        let elsewhere = DeskOrderEvent { origin: None, client_order_id: None, ..late };
        assert_eq!(elsewhere.for_sender(), None);
    }
}
