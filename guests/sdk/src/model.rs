//! What a strategy sees and does. `wit/strategy` has the contract itself.

use crate::number::{Money, Price, Quantity};

/// Nanoseconds since 1970-01-01T00:00:00 UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

/// Position of an instrument in the list given at init.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstrumentIx(pub u16);

/// A band of a tick table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickBand {
    /// Highest price of the band.
    pub up_to: Price,
    /// Price step inside the band.
    pub tick: Price,
}

/// What a strategy may trade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instrument {
    /// `<symbol>.<venue>`.
    pub id: String,
    /// Shares in one trading unit.
    pub lot: Quantity,
    /// Price steps, lowest band first.
    pub ticks: Vec<TickBand>,
}

impl Instrument {
    /// The price step at `price`.
    pub fn tick_at(&self, price: Price) -> Price {
        let band = self.ticks.iter().find(|band| price <= band.up_to).or(self.ticks.last());
        band.map_or(Price::from_yen(1), |band| band.tick)
    }

    /// `price`, moved down to the grid.
    pub fn floor_to_tick(&self, price: Price) -> Price {
        let tick = self.tick_at(price).units();
        Price::from_units(price.units() - price.units().rem_euclid(tick))
    }
}

/// One execution seen on the market.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trade {
    /// When it happened.
    pub ts_event: Timestamp,
    /// What traded.
    pub instrument: InstrumentIx,
    /// At which price.
    pub price: Price,
    /// How many shares.
    pub quantity: Quantity,
    /// Row in the present window, for [`crate::Context::aggressor_side`].
    pub(crate) row: u32,
}

/// The span of a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granularity {
    /// One minute.
    Minute,
    /// One trading day.
    Day,
}

/// Prices and volume of a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    /// The end of the span.
    pub ts_event: Timestamp,
    /// What traded.
    pub instrument: InstrumentIx,
    /// The span.
    pub granularity: Granularity,
    /// First price.
    pub open: Price,
    /// Highest price.
    pub high: Price,
    /// Lowest price.
    pub low: Price,
    /// Last price.
    pub close: Price,
    /// Shares traded.
    pub volume: Quantity,
}

/// Which way an order goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// BUY.
    Buy,
    /// SELL.
    Sell,
}

/// How an order finds its price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderType {
    /// At the market's price.
    Market,
    /// At the limit price or better.
    Limit,
    /// A market order once the trigger price has traded.
    StopMarket,
    /// A limit order once the trigger price has traded.
    StopLimit,
}

/// How long an order lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeInForce {
    /// To the end of the trading day.
    Day,
    /// To the end of the Japanese date of this time.
    Gtd(Timestamp),
    /// In the opening auction only.
    AtTheOpen,
    /// In the closing auction only.
    AtTheClose,
}

/// Where an order stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderStatus {
    /// Made, not sent.
    Initialized,
    /// Sent, not answered.
    Submitted,
    /// The venue has given it a number.
    Accepted,
    /// Some of it is done.
    PartiallyFilled,
    /// All of it is done.
    Filled,
    /// A change is under way.
    PendingUpdate,
    /// A cancel is under way.
    PendingCancel,
    /// Ended by a cancel.
    Canceled,
    /// Its time ran out.
    Expired,
    /// Rejected, by the engine or by the venue.
    Rejected,
}

impl OrderStatus {
    /// Whether the order has ended.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Filled | Self::Canceled | Self::Expired | Self::Rejected)
    }
}

/// An order to send. [`Order::market`] and the functions beside it make one; it is DAY by default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The strategy's own id; if it is `None` the SDK chooses one (`O-1`, `O-2`, ...).
    pub client_order_id: Option<String>,
    /// What to trade.
    pub instrument: InstrumentIx,
    /// Which way.
    pub side: Side,
    /// How it finds its price.
    pub order_type: OrderType,
    /// Shares, a multiple of the lot.
    pub quantity: Quantity,
    /// Limit price.
    pub price: Option<Price>,
    /// Trigger price.
    pub trigger_price: Option<Price>,
    /// How long it lives.
    pub time_in_force: TimeInForce,
    /// Reject instead of taking liquidity.
    pub post_only: bool,
    /// Reject instead of opening or turning a position.
    pub reduce_only: bool,
    /// Texts `key=value` for the venue.
    pub tags: Vec<String>,
}

impl Order {
    /// An order at the market's price.
    pub fn market(instrument: InstrumentIx, side: Side, quantity: Quantity) -> Self {
        Self {
            client_order_id: None,
            instrument,
            side,
            order_type: OrderType::Market,
            quantity,
            price: None,
            trigger_price: None,
            time_in_force: TimeInForce::Day,
            post_only: false,
            reduce_only: false,
            tags: Vec::new(),
        }
    }

    /// An order at `price` or better.
    pub fn limit(instrument: InstrumentIx, side: Side, quantity: Quantity, price: Price) -> Self {
        Self {
            order_type: OrderType::Limit,
            price: Some(price),
            ..Self::market(instrument, side, quantity)
        }
    }

    /// A market order once `trigger` has traded.
    pub fn stop_market(
        instrument: InstrumentIx,
        side: Side,
        quantity: Quantity,
        trigger: Price,
    ) -> Self {
        Self {
            order_type: OrderType::StopMarket,
            trigger_price: Some(trigger),
            ..Self::market(instrument, side, quantity)
        }
    }

    /// A limit order at `price` once `trigger` has traded.
    pub fn stop_limit(
        instrument: InstrumentIx,
        side: Side,
        quantity: Quantity,
        trigger: Price,
        price: Price,
    ) -> Self {
        Self {
            order_type: OrderType::StopLimit,
            trigger_price: Some(trigger),
            ..Self::limit(instrument, side, quantity, price)
        }
    }

    /// With an id of the strategy's own: 1 to 36 printable ASCII characters, never used twice.
    pub fn with_id(self, client_order_id: impl Into<String>) -> Self {
        Self { client_order_id: Some(client_order_id.into()), ..self }
    }

    /// With another time in force.
    pub fn with_time_in_force(self, time_in_force: TimeInForce) -> Self {
        Self { time_in_force, ..self }
    }

    /// With one more tag for the venue.
    pub fn with_tag(mut self, key: &str, value: &str) -> Self {
        self.tags.push(format!("{key}={value}"));
        self
    }
}

/// A change of a working order; `None` means unchanged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OrderChange {
    /// New total quantity.
    pub quantity: Option<Quantity>,
    /// New limit price.
    pub price: Option<Price>,
    /// New trigger price.
    pub trigger_price: Option<Price>,
    /// New end of life.
    pub expire_time: Option<Timestamp>,
}

/// A fill of an order, or of a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fill {
    /// Unique together with the venue's order number.
    pub trade_id: String,
    /// Shares of this fill.
    pub last_quantity: Quantity,
    /// Price of this fill.
    pub last_price: Price,
    /// Shares done so far.
    pub cumulative_quantity: Quantity,
    /// Shares still open.
    pub leaves_quantity: Quantity,
    /// Fee of this fill.
    pub commission: Money,
}

/// Why an order was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// A code of the closed list (`INSUFFICIENT_FUNDS`, ...).
    pub reason_code: String,
    /// One line for people.
    pub reason_text: String,
}

/// What happened to an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderEventKind {
    /// Taken by the engine and sent.
    Submitted,
    /// The venue gave it a number.
    Accepted,
    /// Rejected, by the engine or by the venue.
    Rejected(Rejection),
    /// A change was sent.
    PendingUpdate,
    /// The change is done.
    Updated,
    /// A cancel was sent.
    PendingCancel,
    /// It ended by a cancel.
    Canceled,
    /// Its time ran out; why.
    Expired(String),
    /// Filled, wholly or partly.
    Filled(Fill),
}

/// One event of one order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderEvent {
    /// When it happened.
    pub ts_event: Timestamp,
    /// The strategy's id of the order.
    pub client_order_id: String,
    /// The venue's number, once there is one.
    pub venue_order_id: Option<String>,
    /// The instrument of the order.
    pub instrument: InstrumentIx,
    /// The state after the event.
    pub status: OrderStatus,
    /// What happened.
    pub kind: OrderEventKind,
}

/// /// A split or a reverse split of the shares of an instrument. Its orders have expired before, and
/// [`crate::Context::position`] counts the new shares already. The strategy adjusts prices and numbers of shares that
/// it remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// Old shares that become [`Self::new_shares`]; 1 to 1,000, without a common divisor.
    pub old_shares: u32,
    /// Shares after the split for the old shares; 1 to 1,000.
    pub new_shares: u32,
    /// Shares held afterwards.
    pub quantity: i64,
    /// Cash paid for fractions of a share.
    pub cash_paid: Money,
    /// The last price before the split, as a price of the new shares; `None` while nothing has
    /// traded in this run.
    pub last_price: Option<Price>,
}

impl Split {
    /// /// A price from before the split as a price of the new shares, to the nearest 1/10,000 yen, a half up; at
    /// least 1/10,000 yen.
    pub fn price(&self, before: Price) -> Price {
        let (new, old) = (i128::from(self.new_shares), i128::from(self.old_shares));
        let units = (i128::from(before.units()) * old * 2 + new).div_euclid(new * 2);
        Price::from_units(i64::try_from(units).unwrap_or(i64::MAX).max(1))
    }
}

/// What happened to the account without an order. There may be more kinds in later versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccountEventKind {
    /// Shares were split on their ex-rights date.
    Split(Split),
}

/// Something that happened to the account without an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountEvent {
    /// When it happened: the first time of the day, before its first trade.
    pub ts_event: Timestamp,
    /// The instrument that it is about.
    pub instrument: InstrumentIx,
    /// What happened.
    pub kind: AccountEventKind,
}

/// A working order, as the host sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkingOrder {
    /// The strategy's id of the order.
    pub client_order_id: String,
    /// The venue's number, once there is one.
    pub venue_order_id: Option<String>,
    /// What to trade.
    pub instrument: InstrumentIx,
    /// Which way.
    pub side: Side,
    /// Shares asked for.
    pub quantity: Quantity,
    /// Shares done.
    pub filled_quantity: Quantity,
    /// Limit price.
    pub price: Option<Price>,
    /// Trigger price.
    pub trigger_price: Option<Price>,
    /// Where it stands.
    pub status: OrderStatus,
    /// When it was sent.
    pub ts_submitted: Timestamp,
}

/// The position in one instrument.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// Shares held; negative when short.
    pub quantity: i64,
    /// Their cost.
    pub cost: Money,
    /// Profit and loss of shares sold.
    pub realised_pnl: Money,
}

impl Position {
    /// Whether the position is 0.
    pub const fn is_flat(&self) -> bool {
        self.quantity == 0
    }

    /// Whether shares are held.
    pub const fn is_long(&self) -> bool {
        self.quantity > 0
    }

    /// Shares held or owed.
    pub const fn shares(&self) -> Quantity {
        Quantity::new(self.quantity.unsigned_abs())
    }

    /// Average price of the shares held, cut off at 1/10,000 yen; `None` when flat.
    pub fn average_price(&self) -> Option<Price> {
        (self.quantity != 0).then(|| Price::from_units(self.cost.units() / self.quantity))
    }
}

/// The cash account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Account {
    /// Money in the account.
    pub cash: Money,
    /// Money reserved for working buy orders.
    pub reserved: Money,
    /// Profit and loss of all shares sold.
    pub realised_pnl: Money,
    /// Fees paid.
    pub commission: Money,
}

impl Account {
    /// Money that a new order may use.
    pub fn free_cash(&self) -> Money {
        self.cash - self.reserved
    }
}

/// What a signal says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalKind {
    /// A long entry.
    EntryLong,
    /// A short entry.
    EntryShort,
    /// An exit.
    Exit,
    /// A remark.
    Annotate,
}

/// A mark beside the price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// The instrument it belongs to.
    pub instrument: InstrumentIx,
    /// What it says.
    pub kind: SignalKind,
    /// Which way.
    pub side: Option<Side>,
    /// At which price.
    pub price: Option<Price>,
    /// A short name to group by.
    pub tag: Option<String>,
    /// Free text.
    pub note: Option<String>,
}

/// A decision with its reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Narrative {
    /// The order that it explains.
    pub client_order_id: Option<String>,
    /// What was decided.
    pub title: String,
    /// Why it was decided, for people.
    pub body: String,
}

/// Who took the liquidity of a trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AggressorSide {
    /// Unknown; always so in replay.
    NoAggressor,
    /// A buyer took an offer.
    Buyer,
    /// A seller hit a bid.
    Seller,
}

/// How serious a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// Details for the author.
    Debug,
    /// What happens in the ordinary course.
    Info,
    /// Something odd.
    Warn,
    /// Something failed.
    Error,
}
