//! The rows of a run's tables.

use domain::{
    Fill, InstrumentIx, Money, OrderCommand, OrderEvent, OrderSide, Origin, Price, Quantity,
    ShortText, TsNanos,
};

/// One fill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FillRow {
    /// Virtual time of the fill.
    pub ts_event: TsNanos,
    /// Its instrument, as an index in the run's list.
    pub instrument: InstrumentIx,
    /// Whose order it is.
    pub origin: Origin,
    /// The caller's id of the order; unique among the orders of one origin only.
    pub client_order_id: ShortText,
    /// The venue's number of the order.
    pub venue_order_id: ShortText,
    /// The fill's own number.
    pub trade_id: ShortText,
    /// Bought or sold.
    pub side: OrderSide,
    /// Yen per share.
    pub price: Price,
    /// Shares of this fill, above zero.
    pub quantity: Quantity,
    /// Shares of the order done so far.
    pub cumulative_quantity: Quantity,
    /// Shares of the order still open.
    pub leaves_quantity: Quantity,
    /// Fee in yen.
    pub commission: Money,
    /// Price of the market's trade that filled it, yen per share.
    pub market_price: Price,
    /// What it cost against the price of that trade, yen. Zero where a limit order was filled
    /// at its own limit: that price was asked for.
    pub slippage: Money,
}

impl FillRow {
    /// The row of an event that reports `fill`, with what it cost against the market.
    #[must_use]
    pub fn of(event: &OrderEvent, fill: &Fill, slippage: Money) -> Self {
        Self {
            ts_event: event.ts_event,
            instrument: event.instrument,
            origin: event.origin,
            client_order_id: event.client_order_id.clone(),
            venue_order_id: event.venue_order_id.clone().unwrap_or_default(),
            trade_id: fill.trade_id.clone(),
            side: fill.side,
            price: fill.last_price,
            quantity: fill.last_quantity,
            cumulative_quantity: fill.cumulative_quantity,
            leaves_quantity: fill.leaves_quantity,
            commission: fill.known_commission(),
            market_price: fill.market_price,
            slippage,
        }
    }
}

/// The account at the end of a minute in which any instrument had trades; a day's last such minute
/// is the end of the trading day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EquityRow {
    /// End of the minute.
    pub ts_event: TsNanos,
    /// Money in the account, yen.
    pub cash: Money,
    /// Money and the value of the shares at the last prices.
    pub equity: Money,
}

/// Cash and equity while a run goes on (specification 2, `ReplayBuyingPower`). The strategy's id is
/// known to whoever forwards it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuyingPowerRow {
    /// The virtual time.
    pub ts_event: TsNanos,
    /// Money in the account.
    pub cash: Money,
    /// Money to buy with; only cash is modelled, so it equals the cash.
    pub buying_power: Money,
    /// Cash and the value of what is held at the last prices.
    pub equity: Money,
}

/// What a client did to a run, and where the run was then: enough to do the same again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientCommand<'a> {
    /// Rows (trades or bars) that the strategy had seen.
    pub rows_done: u64,
    /// Whether a row came next; else it was the end of a day.
    pub is_before_row: bool,
    /// Virtual time.
    pub ts_event: TsNanos,
    /// What was done to the client's orders; none when the client ended the run.
    pub command: Option<&'a OrderCommand>,
}

/// One instrument at the end of a minute in which it had trades.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkRow {
    /// End of the minute.
    pub ts_event: TsNanos,
    /// Its instrument, as an index in the run's list.
    pub instrument: InstrumentIx,
    /// Its last price.
    pub price: Price,
    /// Shares held of the first instrument.
    pub quantity: i64,
}

/// A position was opened from flat, or went back to flat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PositionEvent {
    /// Virtual time of the fill that did it.
    pub ts_event: TsNanos,
    /// Its instrument, as an index in the run's list.
    pub instrument: InstrumentIx,
    /// Whether it was opened; else closed.
    pub opened: bool,
    /// Which way the position goes or went: bought first, or sold first.
    pub entry_side: OrderSide,
    /// Shares held after it: those of the fill, or 0.
    pub quantity: i64,
    /// Price of the fill.
    pub price: Price,
    /// Profit or loss of the whole position, fees taken off; known when it closes.
    pub realised_pnl: Option<Money>,
    /// The order whose fill did it.
    pub client_order_id: ShortText,
}

/// One way from flat to flat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundTrip {
    /// Its instrument, as an index in the run's list.
    pub instrument: InstrumentIx,
    /// Bought first (long), or sold first (short).
    pub entry_side: OrderSide,
    /// When the position was opened.
    pub ts_entry: TsNanos,
    /// When it was flat again.
    pub ts_exit: TsNanos,
    /// The order that opened it.
    pub entry_order: ShortText,
    /// The order that closed it.
    pub exit_order: ShortText,
    /// Shares bought, which are as many as were sold.
    pub quantity: u64,
    /// Most shares held at the same time, without sign.
    pub quantity_max: u64,
    /// Average price of what was bought, cut off at 1/10,000 yen.
    pub buy_price: Price,
    /// Average price of what was sold, cut off at 1/10,000 yen.
    pub sell_price: Price,
    /// Fills on the way.
    pub fills: u32,
    /// Fees of these fills, yen.
    pub commission: Money,
    /// Profit or loss, fees taken off.
    pub pnl: Money,
    /// Lowest profit or loss on the way, at the price of every trade between entry and exit, fees
    /// so far taken off; never above zero (maximum adverse excursion).
    pub mae: Money,
    /// The highest of the same; never below zero (maximum favourable excursion).
    pub mfe: Money,
}

/// One instrument when the run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PositionEnd {
    /// Its instrument, as an index in the run's list.
    pub instrument: InstrumentIx,
    /// Shares held.
    pub quantity: i64,
    /// What the shares held did cost, fees not counted.
    pub cost: Money,
    /// The last price; none when the instrument never traded.
    pub last_price: Option<Price>,
    /// Profit and loss of shares sold, fees not counted.
    pub realised_pnl: Money,
}

impl PositionEnd {
    /// Value of the shares at the last price.
    #[must_use]
    pub fn value(&self) -> Money {
        Money::from_units(self.quantity * self.last_price.unwrap_or_default().units())
    }

    /// Average cost of a share held, cut off at 1/10,000 yen.
    #[must_use]
    pub fn average_cost(&self) -> Option<Price> {
        (self.quantity != 0).then(|| Price::from_units(self.cost.units() / self.quantity))
    }

    /// Profit and loss that a sale at the last price would bring, fees not counted.
    #[must_use]
    pub fn unrealised_pnl(&self) -> Money {
        self.value() - self.cost
    }
}
