//! The simulated exchange and the broker's checks in front of it. What it does and why is stated in
//! [`RULES`]; each rule has tests that carry its name.

mod bars;
mod book;
mod checks;
mod matching;
mod model;
mod order;

use std::collections::{BTreeMap, BTreeSet, HashMap}; // lookup only: the map of ids
use std::sync::Arc;

use domain::instrument::DailyLimits;
use domain::limits::WORKING_ORDERS_MAX;
use domain::order::OrderTrigger;
use domain::strategy::WorkingOrder;
use domain::{
    Instrument, InstrumentIx, Money, OrderEvent, OrderEventKind, OrderModify, OrderRequest,
    OrderStatus, Price, Quantity, ReasonCode, Rejection, TsNanos,
};

pub use model::{ExecutionModel, RULES};
pub use order::Order;

use crate::account::CashAccount;
use book::Book;
use order::OrderIx;

/// What becomes due at a time of its own.
#[derive(Debug, Clone, Copy)]
enum Timed {
    Arrival,
    Cancel,
    Modify(OrderModify),
}

/// One instrument at the exchange.
#[derive(Debug)]
struct Market {
    instrument: Instrument,
    limits: DailyLimits,
    last_price: Option<Price>,
    book: Book,
    /// Shares that open sell orders want to sell.
    selling: Quantity,
}

/// The exchange: takes commands, takes trades of the market, tells what happened.
#[derive(Debug)]
pub struct Exchange {
    model: ExecutionModel,
    markets: Vec<Market>,
    account: CashAccount,
    orders: Vec<Order>,
    /// Orders by the caller's id. Lookup only: its order is never seen.
    ids: HashMap<Arc<str>, OrderIx>, // lookup only
    /// Orders that are not done, in the order in which they were sent.
    open: BTreeSet<OrderIx>,
    timed: BTreeMap<(TsNanos, u64), (OrderIx, Timed)>,
    events: Vec<OrderEvent>,
    warnings: Vec<String>,
    closed: bool,
    sequence: u64,
    venue_numbers: u64,
    trade_numbers: u64,
    our_volume: Quantity,
}

impl Exchange {
    /// An exchange for `instruments`, with an account that holds `cash`.
    #[must_use]
    pub fn new(model: ExecutionModel, instruments: &[Instrument], cash: Money) -> Self {
        let market = |instrument: &Instrument| Market {
            instrument: instrument.clone(),
            limits: DailyLimits { low: Price::from_units(1), high: Price::from_units(i64::MAX) },
            last_price: None,
            book: Book::default(),
            selling: Quantity::ZERO,
        };
        Self {
            model,
            markets: instruments.iter().map(market).collect(),
            account: CashAccount::new(cash, instruments.len()),
            orders: Vec::new(),
            ids: HashMap::new(), // lookup only
            open: BTreeSet::new(),
            timed: BTreeMap::new(),
            events: Vec::new(),
            warnings: Vec::new(),
            closed: false,
            sequence: 0,
            venue_numbers: 0,
            trade_numbers: 0,
            our_volume: Quantity::ZERO,
        }
    }

    /// The account.
    #[must_use]
    pub const fn account(&self) -> &CashAccount {
        &self.account
    }

    /// Every order, in the order in which it was sent.
    #[must_use]
    pub fn orders(&self) -> &[Order] {
        &self.orders
    }

    /// Shares that our orders traded.
    #[must_use]
    pub const fn our_volume(&self) -> Quantity {
        self.our_volume
    }

    /// What happened since the last call, in order and all at one instant.
    pub fn take_events(&mut self) -> Vec<OrderEvent> {
        std::mem::take(&mut self.events)
    }

    /// Commands that came to nothing since the last call, in words.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Orders that are not done, for portfolio queries.
    #[must_use]
    pub fn working_orders(&self) -> Vec<WorkingOrder> {
        let working = |index: &OrderIx| {
            let order = &self.orders[*index];
            WorkingOrder {
                request: Arc::clone(&order.request),
                venue_order_id: order.venue_order_id.clone(),
                status: order.status,
                filled_quantity: order.filled,
                ts_submitted: order.ts_submitted,
            }
        };
        self.open.iter().map(working).collect()
    }

    /// A trading day begins: `base` is the previous close (F7).
    pub fn begin_day(&mut self, instrument: InstrumentIx, base: Price) {
        self.markets[usize::from(instrument.0)].limits = DailyLimits::around(base);
    }

    /// The last price that was printed before the commands that follow.
    #[inline]
    pub fn set_last_price(&mut self, instrument: InstrumentIx, price: Price) {
        self.markets[usize::from(instrument.0)].last_price = Some(price);
    }

    /// Takes an order. What becomes of it is told as events.
    pub fn submit(&mut self, now: TsNanos, mut request: OrderRequest) {
        if let Some(market) = self.markets.get(usize::from(request.instrument.0)) {
            checks::round_to_tick(&mut request, market.instrument.ticks);
        }
        let index = self.orders.len();
        // The first order with an id keeps it.
        let holder = *self.ids.entry(Arc::clone(&request.client_order_id)).or_insert(index);
        let refusal = self.refusal_of(&request, holder != index);
        self.sequence += 1;
        self.orders.push(Order {
            request: Arc::new(request),
            venue_order_id: None,
            status: OrderStatus::Initialized,
            filled: Quantity::ZERO,
            filled_value: Money::ZERO,
            ts_submitted: now,
            ts_last: now,
            rejection: None,
            after: now,
            arrival: now.plus_nanos(self.model.latency_ns),
            reserved: Money::ZERO,
            worst_price: Price::default(),
            sequence: self.sequence,
        });
        if let Err(rejection) = refusal {
            self.reject(index, now, rejection);
            return;
        }
        self.open.insert(index);
        self.hold_back(index);
        self.happen(index, OrderTrigger::Send, now, |order| {
            OrderEventKind::Submitted(Arc::clone(&order.request))
        });
        if let Err(rejection) = self.venue_refusal_of(index) {
            self.reject(index, now, rejection);
        } else {
            self.after_latency(now, index, Timed::Arrival);
        }
    }

    /// Takes a cancel.
    pub fn cancel(&mut self, now: TsNanos, client_order_id: &str) {
        match self.ids.get(client_order_id).copied() {
            Some(index) => self.cancel_order(now, index),
            None => self.warn_unknown("cancel", client_order_id),
        }
    }

    /// Cancels every open order, of one instrument or of all, in the order of their sending.
    pub fn cancel_all(&mut self, now: TsNanos, instrument: Option<InstrumentIx>) {
        let wanted = |index: &OrderIx| {
            instrument.is_none_or(|only| self.orders[*index].request.instrument == only)
        };
        let all: Vec<OrderIx> = self.open.iter().copied().filter(wanted).collect();
        for index in all {
            self.cancel_order(now, index);
        }
    }

    /// Takes a change.
    pub fn modify(&mut self, now: TsNanos, client_order_id: &str, change: OrderModify) {
        let Some(index) = self.ids.get(client_order_id).copied() else {
            self.warn_unknown("modify", client_order_id);
            return;
        };
        if !self.can_take(index, OrderTrigger::SendModify, "modify") {
            return;
        }
        self.happen(index, OrderTrigger::SendModify, now, |_| {
            OrderEventKind::PendingUpdate(change)
        });
        self.after_latency(now, index, Timed::Modify(change));
    }

    /// When the next thing becomes due by itself, if anything does.
    #[must_use]
    pub fn next_due(&self) -> Option<TsNanos> {
        self.timed.first_key_value().map(|((due, _), _)| *due)
    }

    /// Does what is due first, and all else that is due at the same instant.
    pub fn run_due(&mut self) {
        let Some(now) = self.next_due() else { return };
        while self.next_due() == Some(now) {
            if let Some((_, (index, timed))) = self.timed.pop_first() {
                self.do_timed(now, index, timed);
            }
        }
    }

    /// The trading day ends: DAY orders expire (F6).
    pub fn end_day(&mut self, now: TsNanos) {
        self.expire_all(now, "DAY");
    }

    /// The data ends: open orders expire, and no order is taken any more (F8).
    pub fn end_of_data(&mut self, now: TsNanos) {
        self.expire_all(now, "END_OF_DATA");
        self.closed = true;
    }

    fn expire_all(&mut self, now: TsNanos, reason: &'static str) {
        for index in std::mem::take(&mut self.open) {
            self.happen(index, OrderTrigger::Expire, now, |_| OrderEventKind::Expired(reason));
            self.leave_market(index);
        }
    }

    fn cancel_order(&mut self, now: TsNanos, index: OrderIx) {
        if !self.can_take(index, OrderTrigger::SendCancel, "cancel") {
            return;
        }
        self.happen(index, OrderTrigger::SendCancel, now, |_| OrderEventKind::PendingCancel);
        self.after_latency(now, index, Timed::Cancel);
    }

    fn finish_cancel(&mut self, index: OrderIx, now: TsNanos) {
        // A fill or the end of the day may have come first.
        if self.orders[index].status == OrderStatus::PendingCancel {
            self.happen(index, OrderTrigger::CancelDone, now, |_| OrderEventKind::Canceled);
            self.close(index);
        }
    }

    fn finish_modify(&mut self, index: OrderIx, now: TsNanos, change: OrderModify) {
        if self.orders[index].status != OrderStatus::PendingUpdate {
            return;
        }
        let changed = match self.changed_request(index, change) {
            Ok(changed) => changed,
            Err(rejection) => return self.reject(index, now, rejection),
        };
        self.let_go(index);
        let order = &mut self.orders[index];
        // More shares or another price lose the place in time; fewer shares keep it.
        let keeps_place =
            changed.price == order.request.price && changed.quantity <= order.request.quantity;
        order.request = Arc::new(changed);
        order.after = now;
        let partly_filled = !order.filled.is_zero();
        if !keeps_place {
            self.sequence += 1;
            order.sequence = self.sequence;
        }
        self.hold_back(index);
        self.happen(index, OrderTrigger::ModifyDone { partly_filled }, now, |_| {
            OrderEventKind::Updated
        });
        if !keeps_place {
            let market = self.orders[index].request.instrument;
            self.markets[usize::from(market.0)].book.remove(index);
            self.enter_book(index);
        }
    }

    fn arrive(&mut self, index: OrderIx, now: TsNanos) {
        // The day may have ended while the order was on its way.
        if self.orders[index].status != OrderStatus::Submitted {
            return;
        }
        self.venue_numbers += 1;
        self.orders[index].venue_order_id = Some(Arc::from(format!("V-{}", self.venue_numbers)));
        self.happen(index, OrderTrigger::VenueAccepts, now, |_| OrderEventKind::Accepted);
        self.enter_book(index);
    }

    /// Lets something happen when it arrives at the exchange: now, or later where there is latency.
    fn after_latency(&mut self, now: TsNanos, index: OrderIx, timed: Timed) {
        if self.model.latency_ns == 0 {
            self.do_timed(now, index, timed);
            return;
        }
        self.sequence += 1;
        let due = now.plus_nanos(self.model.latency_ns);
        self.timed.insert((due, self.sequence), (index, timed));
    }

    fn do_timed(&mut self, now: TsNanos, index: OrderIx, timed: Timed) {
        match timed {
            Timed::Arrival => self.arrive(index, now),
            Timed::Cancel => self.finish_cancel(index, now),
            Timed::Modify(change) => self.finish_modify(index, now, change),
        }
    }

    fn reject(&mut self, index: OrderIx, now: TsNanos, rejection: Rejection) {
        self.orders[index].rejection = Some(rejection.clone());
        self.happen(index, OrderTrigger::Refuse, now, |_| OrderEventKind::Rejected(rejection));
        self.close(index);
    }

    /// Takes a finished order out of everything.
    fn close(&mut self, index: OrderIx) {
        if self.open.remove(&index) {
            self.leave_market(index);
        }
    }

    fn leave_market(&mut self, index: OrderIx) {
        self.let_go(index);
        let instrument = self.orders[index].request.instrument;
        self.markets[usize::from(instrument.0)].book.remove(index);
    }

    /// Whether the order can take a command; a command that comes too late is only a warning,
    /// because a fill may always come first.
    fn can_take(&mut self, index: OrderIx, trigger: OrderTrigger, command: &str) -> bool {
        let order = &self.orders[index];
        let possible = order.status.next(trigger).is_ok();
        if !possible {
            let (id, status) = (&order.request.client_order_id, order.status);
            self.warnings.push(format!("{command} of `{id}` came to nothing: it is {status}"));
        }
        possible
    }

    fn warn_unknown(&mut self, command: &str, client_order_id: &str) {
        let code = ReasonCode::OrderStatusUnknown;
        let shown: String = client_order_id.chars().take(40).collect();
        self.warnings.push(format!("{code}: {command} of `{shown}`, which was never sent"));
    }

    /// Moves an order to its next state and tells it.
    fn happen(
        &mut self,
        index: OrderIx,
        trigger: OrderTrigger,
        now: TsNanos,
        kind: impl FnOnce(&Order) -> OrderEventKind,
    ) {
        let order = &mut self.orders[index];
        let taken = order.take(trigger, now);
        assert!(taken.is_ok(), "{taken:?} for {}", order.request.client_order_id);
        self.events.push(OrderEvent {
            ts_event: now,
            client_order_id: Arc::clone(&order.request.client_order_id),
            venue_order_id: order.venue_order_id.clone(),
            instrument: order.request.instrument,
            status: order.status,
            kind: kind(order),
        });
    }

    /// Whether one order too many is open; the newest is among them already.
    fn is_full(&self) -> bool {
        self.open.len() > WORKING_ORDERS_MAX
    }
}

impl Exchange {
    /// Gives up the orders.
    #[must_use]
    pub fn into_orders(self) -> Vec<Order> {
        self.orders
    }
}
