//! The simulated exchange and the broker's checks in front of it. What it does and why is stated in
//! [`RULES`]; each rule has tests that carry its name. Replay and the simulated broker use it alike.
//!
//! A command goes through `commands`, is checked in `checks`, reserves money and shares in `reserve`, and
//! stands in a `book`. Trades go through `matching` and `auction`, bars through `bars`.

mod account;
mod auction;
mod bars;
mod book;
mod checks;
mod client;
mod commands;
mod commission;
mod days;
mod matching;
mod model;
mod order;
mod price_range;
mod rejection;
mod reserve;
mod round_trips;
mod rules;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::account::WorkingOrder;
use domain::adjustment::Adjustment;
use domain::calendar::ExchangeCalendar;
use domain::execution::Warning;
use domain::order::OrderTrigger;
use domain::session::TradingHours;
use domain::{
    Instrument, InstrumentIx, Money, OrderEvent, OrderEventKind, OrderModify, OrderRecord, Origin,
    Price, Quantity, ShortText, TickTable, TsNanos,
};

pub use account::{CashAccount, PositionChange};
pub use checks::check_order;
pub use commission::{Commission, CommissionError, Tier, TierTable};
pub use model::{ExecutionModel, ModelError, Preset, SameDayRoundTrips};
pub use round_trips::round_trips_words;
pub use rules::{NOT_MODELLED, RULES};

use book::Book;
use matching::OffGrid;
use order::{OrderIx, ScheduleKey};
use price_range::{PriceRange, RangeNotes};
use round_trips::RoundTrips;
use store::Orders;

/// What becomes due at a time of its own.
#[derive(Debug, Clone, Copy)]
enum Scheduled {
    Arrival(OrderIx),
    Cancel(OrderIx),
    Modify(OrderIx, OrderModify),
    /// The order's own end.
    Expiry(OrderIx),
    /// Orders go on into a new trading day.
    CarryOver,
    /// An instrument's day ends, and with a reason its data too.
    DayEnd(InstrumentIx, Option<&'static str>),
}

/// One instrument at the exchange.
#[derive(Debug, Clone)]
struct Market {
    instrument: Instrument,
    range: PriceRange,
    last_price: Option<Price>,
    /// The first trade from here on is an auction's.
    auction_from: TsNanos,
    book: Book,
    /// Shares that open sell orders want to sell.
    selling: Quantity,
    /// What was bought and sold today (F11).
    round_trips: RoundTrips,
    /// Trades of fewer shares fill nothing.
    smallest_print: u64,
    /// Until when trades are over, as far as is known.
    over: TsNanos,
    /// The data of the instrument has ended.
    closed: bool,
    /// The splits since the last close are known, so a gap over night is none.
    splits_known: bool,
    /// The last split, and when it was taken in.
    split: Option<(TsNanos, Adjustment)>,
    /// Fills of market prices that are off the grid.
    off_grid: OffGrid,
}

/// The exchange: takes commands, takes trades of the market, tells the events of orders.
#[derive(Debug, Clone)]
pub struct Exchange {
    model: ExecutionModel,
    calendar: ExchangeCalendar,
    markets: Vec<Market>,
    account: CashAccount,
    orders: Orders,
    /// Orders that are not done: the strategy's in the order in which they were sent, then clients'.
    open: BTreeSet<OrderIx>,
    /// At most one command under way and one end for each open order, and what was under way for
    /// orders that ended meanwhile.
    schedule: BTreeMap<ScheduleKey, Scheduled>,
    /// The present trading day, or the last one.
    hours: Option<TradingHours>,
    events: Vec<OrderEvent>,
    warnings: Vec<Warning>,
    closed: bool,
    exhausted: bool,
    sequence: u64,
    venue_numbers: u64,
    trade_numbers: u64,
    our_volume: Quantity,
    /// What the strategy's rejected orders leave in a run's folder, in bytes.
    rejected_bytes: u64,
    range_notes: RangeNotes,
    /// Whether cash was reserved anew for open orders, of which there is no event.
    has_reserved_again: bool,
    gap_warnings: RangeNotes,
    /// Orders that F11 has rejected.
    round_trips_rejected: u64,
}

impl Exchange {
    /// An exchange for `instruments`, with an account that holds `cash`.
    #[must_use]
    pub fn new(model: ExecutionModel, instruments: &[Instrument], cash: Money) -> Self {
        let market = |instrument: &Instrument| Market {
            instrument: instrument.clone(),
            range: PriceRange::UNKNOWN,
            last_price: None,
            auction_from: TsNanos::MAX,
            book: Book::default(),
            selling: Quantity::ZERO,
            round_trips: RoundTrips::default(),
            smallest_print: model.smallest_print(instrument.lot),
            over: TsNanos::default(),
            closed: false,
            splits_known: false,
            split: None,
            off_grid: OffGrid::default(),
        };
        Self {
            model,
            calendar: ExchangeCalendar::default(),
            markets: instruments.iter().map(market).collect(),
            account: CashAccount::new(cash, instruments.len()),
            orders: Orders::default(),
            open: BTreeSet::new(),
            schedule: BTreeMap::new(),
            hours: None,
            events: Vec::new(),
            warnings: Vec::new(),
            closed: false,
            exhausted: false,
            sequence: 0,
            venue_numbers: 0,
            trade_numbers: 0,
            our_volume: Quantity::ZERO,
            rejected_bytes: 0,
            range_notes: RangeNotes::default(),
            has_reserved_again: false,
            gap_warnings: RangeNotes::default(),
            round_trips_rejected: 0,
        }
    }

    /// The exchange with other business days than the usual holidays leave.
    #[must_use]
    pub fn with_calendar(self, calendar: ExchangeCalendar) -> Self {
        Self { calendar, ..self }
    }

    /// Adds shares that the account holds from before the run; they have cost nothing. To be called before the first day.
    pub fn hold(&mut self, instrument: InstrumentIx, shares: i64) {
        self.account.carry(instrument, shares, Money::ZERO);
    }

    /// The price steps of an instrument on the present day.
    #[must_use]
    pub fn ticks(&self, instrument: InstrumentIx) -> TickTable {
        self.markets[usize::from(instrument.0)].instrument.ticks
    }

    /// Instruments with fills of market prices that their tick table does not have, each in a line: where the
    /// table does not fit the data, neither do slippage, limits and the day's range.
    #[must_use]
    pub fn tick_warnings(&self) -> Vec<String> {
        let line = |market: &Market| market.off_grid.line(&market.instrument);
        self.markets.iter().filter_map(line).collect()
    }

    /// The days whose price range a trade has left so far, each in a line.
    #[must_use]
    pub fn range_notes(&self) -> Vec<String> {
        self.range_notes.lines()
    }

    /// Those of them that a day began with, each in a line: where shares were held and splits were not
    /// known, because a split that no daily file has told looks so; and after a split, because a wrong
    /// factor looks so. Profit and loss are then wrong.
    #[must_use]
    pub fn gap_warnings(&self) -> Vec<String> {
        self.gap_warnings.lines()
    }

    /// The account.
    #[must_use]
    pub const fn account(&self) -> &CashAccount {
        &self.account
    }

    /// Shares that our orders traded.
    #[must_use]
    pub const fn our_volume(&self) -> Quantity {
        self.our_volume
    }

    /// Events since the last call, in order and all at one instant.
    pub fn take_events(&mut self) -> Vec<OrderEvent> {
        std::mem::take(&mut self.events)
    }

    /// Gives up the orders that were not taken out, by origin and in the order of their sending.
    #[must_use]
    pub fn into_orders(self) -> Vec<OrderRecord> {
        self.orders.into_records()
    }

    /// Orders of the strategy that are not done, for its portfolio queries.
    #[must_use]
    pub fn working_orders(&self) -> Vec<WorkingOrder> {
        let records = self.open.iter().map(|number| &self.orders[*number].record);
        let working = |record: &OrderRecord| WorkingOrder {
            request: Arc::clone(&record.request),
            venue_order_id: record.venue_order_id.clone(),
            status: record.status,
            filled_quantity: record.filled,
            ts_submitted: record.ts_submitted,
        };
        records.filter(|record| record.origin == Origin::Strategy).map(working).collect()
    }

    /// Trades of an instrument up to `over` are over. Tells whether an auction was among them that was
    /// not known before.
    #[inline]
    fn pass_auction(&mut self, instrument: InstrumentIx, over: TsNanos) -> bool {
        let market = &mut self.markets[usize::from(instrument.0)];
        market.over = over;
        let has_auction = over >= market.auction_from;
        if has_auction {
            let next = self.hours.and_then(|hours| hours.next_auction(over));
            market.auction_from = next.unwrap_or(TsNanos::MAX);
        }
        has_auction
    }

    /// When the next scheduled thing is due, if anything is: before the first row that is not earlier. Days
    /// of instruments end after the rows of their time, so one nanosecond later.
    #[must_use]
    pub fn next_due(&self) -> Option<TsNanos> {
        let (due, after_rows, _) = *self.schedule.first_key_value()?.0;
        Some(due.plus_nanos(u64::from(after_rows)))
    }

    fn market_of(&self, number: OrderIx) -> &Market {
        &self.markets[usize::from(self.orders[number].record.request.instrument.0)]
    }

    fn market_mut(&mut self, number: OrderIx) -> &mut Market {
        &mut self.markets[usize::from(self.orders[number].record.request.instrument.0)]
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Puts down what becomes due.
    fn schedule_at(&mut self, when: TsNanos, event: Scheduled) -> ScheduleKey {
        let key = (when, matches!(event, Scheduled::DayEnd(..)), self.next_sequence());
        self.schedule.insert(key, event);
        key
    }

    /// Moves an order to its next state and tells it.
    fn transition(
        &mut self,
        number: OrderIx,
        trigger: OrderTrigger,
        now: TsNanos,
        kind: impl FnOnce(&OrderRecord) -> OrderEventKind,
    ) {
        let order = &mut self.orders[number];
        let taken = order.take(trigger, now);
        let record = &order.record;
        assert!(taken.is_ok(), "{taken:?} for {}", record.request.client_order_id);
        let kind = kind(record);
        self.tell(number, now, kind);
    }

    /// Tells an event of an order in its present state.
    fn tell(&mut self, number: OrderIx, now: TsNanos, kind: OrderEventKind) {
        let record = &self.orders[number].record;
        self.events.push(OrderEvent {
            ts_event: now,
            origin: record.origin,
            client_order_id: record.request.client_order_id.clone(),
            venue_order_id: record.venue_order_id.clone(),
            instrument: record.request.instrument,
            side: record.request.side,
            status: record.status,
            kind,
        });
    }
}

/// A number of the venue: `R1`, `R2`, and so on for orders, 1, 2, and so on for fills, over the orders of
/// all origins (specification 4, P71).
fn numbered(letter: Option<u8>, number: u64) -> ShortText {
    let mut text = [0_u8; 21];
    let mut from = text.len();
    let mut rest = number;
    loop {
        from -= 1;
        text[from] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if let Some(letter) = letter {
        from -= 1;
        text[from] = letter;
    }
    // Digits and a letter are always text.
    ShortText::from(std::str::from_utf8(&text[from..]).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::numbered;

    #[test]
    fn numbers_are_written_out() {
        assert_eq!(&*numbered(Some(b'R'), 0), "R0");
        assert_eq!(&*numbered(None, 1_200_340), "1200340");
        assert_eq!(&*numbered(Some(b'R'), u64::MAX), "R18446744073709551615");
    }
}
