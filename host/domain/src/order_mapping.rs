//! The dialect of a broker: the words between the order desk and a sandboxed component that knows the
//! broker's names and codes (`wit/order-mapping`; specification 2, "Order type mapping" and on).

use crate::fault::{FaultKind, Identity};
use crate::order::{OrderSide, OrderStatus, OrderType, Rejection, TimeInForce};
use crate::price::{Price, Quantity};
use crate::text::{ShortText, on_one_line};
use crate::time::{JstDate, TsNanos};

/// A named text of the broker's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Field {
    /// The broker's name of it.
    pub name: String,
    /// Its text.
    pub value: String,
}

impl Field {
    /// A field.
    #[must_use]
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

/// The text of a field, where a record has it.
#[must_use]
pub fn field<'a>(fields: &'a [Field], name: &str) -> Option<&'a str> {
    fields.iter().find(|field| field.name == name).map(|field| field.value.as_str())
}

/// A named list of records in a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldList {
    /// The broker's name of it.
    pub name: String,
    /// The records.
    pub rows: Vec<Vec<Field>>,
}

/// A request to the broker, without what belongs to the session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BrokerRequest {
    /// The broker's name of the request, like `CLMKabuNewOrder`.
    pub id: String,
    /// Its fields, in the order in which they are sent.
    pub fields: Vec<Field>,
    /// Lists of records, sent after the fields.
    pub lists: Vec<FieldList>,
    /// The field that takes the second password; `None` where the request needs none.
    pub password_field: Option<String>,
}

/// What a dialect says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DialectDescription {
    /// What users call it.
    pub name: String,
    /// The author's version.
    pub version: String,
    /// What it speaks, for people.
    pub summary: String,
    /// Whether answers are decoded from percent-encoding before they are read (specification 4, P5).
    pub decodes_answers: bool,
    /// Whether an order whose change was refused counts as rejected until a list tells of it
    /// (specification 4, P26).
    pub refused_change_rejects: bool,
    /// Field of an answer that holds the rows of the list of orders.
    pub order_rows: String,
    /// The hosts it is made for; none: this machine alone (specification 4, P1).
    pub hosts: Vec<String>,
    /// Field of an answer that holds the rows of the fills of an order; `None`: it has no such request.
    pub fill_rows: Option<String>,
}

impl DialectDescription {
    /// Whether orders may go to a host: every one to this machine, else only to hosts that it is made for.
    #[must_use]
    pub fn is_made_for(&self, host: &str, is_this_machine: bool) -> bool {
        is_this_machine || self.hosts.iter().any(|made_for| made_for == host)
    }
}

/// A new order as it goes to the broker: prices rounded to the tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerOrder {
    /// `7203`.
    pub symbol: ShortText,
    /// Buy or sell.
    pub side: OrderSide,
    /// One of the four types that brokers take.
    pub order_type: OrderType,
    /// Shares.
    pub quantity: Quantity,
    /// Limit price.
    pub price: Option<Price>,
    /// Trigger price.
    pub trigger_price: Option<Price>,
    /// One of `DAY`, `GTD`, `AT_THE_OPEN` and `AT_THE_CLOSE`.
    pub time_in_force: TimeInForce,
    /// Japanese date on which it ends, for `GTD`.
    pub expire_date: Option<JstDate>,
    /// `key=value` texts.
    pub tags: Vec<String>,
}

/// How an order is paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Funding {
    /// With cash, or shares that are held.
    Cash,
    /// By a new margin position.
    MarginNew,
    /// By closing one.
    MarginRepay,
}

/// Which tax account an order belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaxAccount {
    /// `specific`
    Specific,
    /// `general`
    General,
    /// `nisa`
    Nisa,
    /// `nisa_growth`
    NisaGrowth,
}

/// What an order needs before it can be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderPlan {
    /// Which balance must suffice.
    pub funding: Funding,
    /// The account that its tags name; `None`: that of the login.
    pub account: Option<TaxAccount>,
    /// Numbers of the margin positions that it closes.
    pub positions: Vec<String>,
    /// Whether a repayment is paid with cash.
    pub needs_cash: bool,
    /// Tags that mean nothing to the dialect.
    pub unknown_tags: Vec<String>,
}

/// Shares of a margin position that an order closes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// The broker's number of the position.
    pub position: String,
    /// Shares.
    pub quantity: Quantity,
}

/// A change of a working order; `None` means unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerChange {
    /// The broker's number of the order.
    pub venue_order_id: ShortText,
    /// Its business day as `YYYYMMDD`, where it is known.
    pub business_day: Option<ShortText>,
    /// What the order is.
    pub order_type: OrderType,
    /// New quantity, what is filled included.
    pub quantity: Option<Quantity>,
    /// New limit price.
    pub price: Option<Price>,
    /// New trigger price.
    pub trigger_price: Option<Price>,
    /// New last date.
    pub expire_date: Option<JstDate>,
}

/// An answer to a request, without what belongs to the session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BrokerAnswer {
    /// The broker's name of the request.
    pub id: String,
    /// Number of a failure of session or transport; empty where there is none.
    pub errno: String,
    /// Its text.
    pub error_text: String,
    /// Every text of the answer.
    pub fields: Vec<Field>,
}

/// What an accepted request tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BrokerAccepted {
    /// The broker's number of the order.
    pub venue_order_id: Option<ShortText>,
    /// Its business day as `YYYYMMDD`.
    pub business_day: Option<ShortText>,
    /// A warning.
    pub warning_code: Option<String>,
    /// The warning in words.
    pub warning_text: Option<String>,
}

/// What an answer means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The broker did it.
    Accepted(BrokerAccepted),
    /// There is nothing to tell.
    NoData,
    /// The broker refuses it, and surely did not do it.
    Refused(Rejection),
    /// The second password is wrong.
    WrongPassword {
        /// Whether that counts toward the lock (specification 4, P42).
        counts: bool,
        /// The broker's words, in the form of a reason text.
        text: String,
    },
    /// The session is gone.
    SessionExpired,
    /// Nobody can tell whether the broker did it.
    Unknown(String),
}

/// What an answer means, for the request and for the venue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerOutcome {
    /// What it means for the request.
    pub verdict: Verdict,
    /// Whether it says that the venue is closed (specification 4, P2).
    pub venue_closed: bool,
}

/// An order in the broker's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerRow {
    /// The broker's number of the order.
    pub venue_order_id: ShortText,
    /// Its business day as `YYYYMMDD`.
    pub business_day: Option<ShortText>,
    /// `7203`.
    pub symbol: ShortText,
    /// Buy or sell.
    pub side: OrderSide,
    /// How it finds its price.
    pub order_type: OrderType,
    /// Shares asked for now, what is filled included.
    pub quantity: Quantity,
    /// Shares filled.
    pub filled: Quantity,
    /// Shares still open.
    pub leaves: Quantity,
    /// Limit price.
    pub price: Option<Price>,
    /// Trigger price.
    pub trigger_price: Option<Price>,
    /// How long it lives.
    pub time_in_force: TimeInForce,
    /// Japanese date on which it ends, for `GTD`.
    pub expire_date: Option<JstDate>,
    /// Where it stands; a partial fill is [`OrderStatus::PartiallyFilled`].
    pub status: OrderStatus,
    /// When it was placed, to the second.
    pub time: TsNanos,
    /// Tags that mean what the row says.
    pub tags: Vec<String>,
}

/// What a notice tells of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeKind {
    /// The broker has taken the order.
    Accepted,
    /// It has taken a change.
    UpdateAccepted,
    /// It has taken a cancel.
    CancelAccepted,
    /// It refuses the order.
    Rejected,
    /// It refuses a change.
    UpdateRefused,
    /// It refuses a cancel.
    CancelRefused,
    /// A change is done.
    Updated,
    /// A cancel is done.
    Canceled,
    /// Some of it, or all, is filled.
    Filled,
    /// Its time ran out.
    Expired,
    /// A fill was taken back.
    FillCanceled,
    /// Something else changed: the list tells what.
    Changed,
}

/// A fill that a notice tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerFill {
    /// Number of the fill, unique together with that of the order.
    pub trade_id: ShortText,
    /// Shares.
    pub quantity: Quantity,
    /// Yen per share.
    pub price: Price,
}

/// A fill in the broker's details of an order, which give it no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedFill {
    /// Shares.
    pub quantity: Quantity,
    /// Yen per share.
    pub price: Price,
    /// When it happened, to the second, where the broker says so.
    pub time: Option<TsNanos>,
}

/// A notice about an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerNotice {
    /// What it tells.
    pub kind: NoticeKind,
    /// The broker's number of the order.
    pub venue_order_id: ShortText,
    /// Its business day as `YYYYMMDD`.
    pub business_day: Option<ShortText>,
    /// `7203`.
    pub symbol: ShortText,
    /// Buy or sell, where it says so.
    pub side: Option<OrderSide>,
    /// Shares asked for now, where it says so.
    pub quantity: Option<Quantity>,
    /// The fill, of [`NoticeKind::Filled`] only.
    pub fill: Option<BrokerFill>,
    /// When it happened, to the second, where it says so.
    pub time: Option<TsNanos>,
    /// Why, in the form of a reason text.
    pub reason: Option<String>,
}

/// Whether orders are taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum VenuePhase {
    /// They are.
    Open,
    /// They are not.
    Closed,
    /// They are not, and the session ends with the night.
    NightClosing,
    /// Nobody has said so.
    #[default]
    Unknown,
}

/// What a frame of the stream of events means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrokerFrame {
    /// The connection lives.
    KeepAlive,
    /// The broker ends the connection; with the number that it gives.
    Ended(String),
    /// An order.
    Order(BrokerNotice),
    /// Whether orders are taken.
    Venue(VenuePhase),
    /// Nothing that matters here.
    Other,
}

/// A dialect failed: which, where, and how it got there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingFault {
    /// Name of the component.
    pub component: String,
    /// Its identity, in hexadecimal.
    pub sha256: String,
    /// The call that failed.
    pub export: &'static str,
    /// What went wrong.
    pub kind: FaultKind,
    /// The component's own frames, innermost first.
    pub backtrace: Vec<String>,
}

impl std::error::Error for MappingFault {}

impl std::fmt::Display for MappingFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let short_hash = self.sha256.get(..12).unwrap_or(&self.sha256);
        let Self { component, export, kind, .. } = self;
        write!(f, "dialect {} ({short_hash}) {kind}, in `{export}`", on_one_line(component))
    }
}

/// What a dialect's call gives: what it says, or that it failed.
pub type Mapped<T> = Result<T, Box<MappingFault>>;

/// One running dialect. Each answer depends on what it is asked alone; a failed call leaves it usable,
/// because the host makes it anew.
pub trait OrderMapping: Send {
    /// Name and SHA-256 of the component.
    fn identity(&self) -> Identity;

    /// What it says of itself.
    fn description(&self) -> &DialectDescription;

    /// Judges a new order and says what it needs.
    ///
    /// # Errors
    /// [`MappingFault`]; the inner error is the dialect's refusal.
    fn plan(&mut self, order: &BrokerOrder) -> Mapped<Result<OrderPlan, Rejection>>;

    /// The request for a new order; `account` is the login's own account in the broker's code.
    ///
    /// # Errors
    /// As [`Self::plan`].
    fn new_order(
        &mut self,
        order: &BrokerOrder,
        account: &str,
        allocations: &[Allocation],
    ) -> Mapped<Result<BrokerRequest, Rejection>>;

    /// The request for a change.
    ///
    /// # Errors
    /// As [`Self::plan`].
    fn modify_order(&mut self, change: &BrokerChange) -> Mapped<Result<BrokerRequest, Rejection>>;

    /// The request for a cancel.
    ///
    /// # Errors
    /// As [`Self::plan`].
    fn cancel_order(
        &mut self,
        venue_order_id: &str,
        business_day: Option<&str>,
    ) -> Mapped<Result<BrokerRequest, Rejection>>;

    /// The request that cancels every open order of the account.
    ///
    /// # Errors
    /// [`MappingFault`].
    fn cancel_all(&mut self) -> Mapped<BrokerRequest>;

    /// The request for the list of orders.
    ///
    /// # Errors
    /// [`MappingFault`].
    fn list_orders(&mut self) -> Mapped<BrokerRequest>;

    /// The request for the fills of an order, where the description has a field for their rows.
    ///
    /// # Errors
    /// As [`Self::plan`].
    fn list_fills(
        &mut self,
        venue_order_id: &str,
        business_day: Option<&str>,
    ) -> Mapped<Result<BrokerRequest, Rejection>>;

    /// Says what an answer means.
    ///
    /// # Errors
    /// [`MappingFault`].
    fn judge(&mut self, answer: &BrokerAnswer) -> Mapped<BrokerOutcome>;

    /// Reads rows of the list of orders, each by itself: the row, or why it is none.
    ///
    /// # Errors
    /// [`MappingFault`].
    fn read_orders(&mut self, rows: &[Vec<Field>]) -> Mapped<Vec<Result<BrokerRow, String>>>;

    /// Reads rows of the fills of an order, each by itself: the fill, or why it is none.
    ///
    /// # Errors
    /// [`MappingFault`].
    fn read_fills(&mut self, rows: &[Vec<Field>]) -> Mapped<Vec<Result<ListedFill, String>>>;

    /// Reads a frame of the stream of events: what it means, or why it is none.
    ///
    /// # Errors
    /// [`MappingFault`].
    fn read_frame(&mut self, fields: &[Field]) -> Mapped<Result<BrokerFrame, String>>;
}
