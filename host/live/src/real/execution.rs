//! Gives a strategy's commands to the order desk, and takes what the desk reports of its orders.
//!
//! The strategy's own id of an order and the id on the wire differ: strategies begin again with `O-1` in each run
//! (P92). Nobody outside of this file knows the strategy's id.

use std::collections::HashMap;
use std::sync::Arc;

use domain::account::{PortfolioView, WorkingOrder};
use domain::execution::{ExecutionClient, Warning};
use domain::tags::OrderTags;
use domain::{
    InstrumentId, InstrumentIx, Money, OrderCommand, OrderEvent, OrderEventKind, OrderModify,
    OrderOrigin, OrderRecord, OrderRequest, OrderStatus, OrderType, Origin, Quantity, ReasonCode,
    Rejection, ShortText, TsNanos,
};
use exchange::CashAccount;
use orders::event::Standing;
use orders::{DeskCommand, NamedOrder, NewOrder, OrderChange};
use xxhash_rust::xxh3::xxh3_64;

use super::{Broker, RealOrders};

/// The orders of a strategy at a broker: commands go to the order desk, its reports come back by `take`.
#[derive(Debug)]
pub struct BrokerExecution<B> {
    orders: RealOrders<B>,
    instruments: Vec<InstrumentId>,
    /// Orders that the strategy may send in the run.
    orders_max: u32,
    /// Fills for cash and on margin as one position of each instrument.
    account: CashAccount,
    /// Shares of each instrument that fills for cash have left.
    cash_shares: Vec<i64>,
    /// The broker's cash to buy with.
    cash: Money,
    /// All orders of the run, as they were sent.
    all: Vec<RealOrder>,
    /// Their numbers by the strategy's ids, and by those on the wire.
    by_id: HashMap<ShortText, usize>,
    by_wire: HashMap<ShortText, usize>,
    /// Numbers of the orders that have not ended.
    open: Vec<usize>,
    /// Numbers of ended orders that were not taken out yet.
    done: Vec<usize>,
    events: Vec<OrderEvent>,
    warnings: Vec<Warning>,
    is_exhausted: bool,
    rejected_bytes: u64,
    /// The run ends: nothing new is sent.
    is_closed: bool,
    shares_traded: u128,
}

/// An order of the run.
#[derive(Debug)]
struct RealOrder {
    wire: ShortText,
    record: OrderRecord,
    /// The most shares that changes under way ask for, and how many commands are under way.
    asked: Quantity,
    under_way: u32,
}

/// Bytes that a rejection leaves in the results, besides its text.
const REJECTION_BYTES: u64 = 256;

impl<B: Broker> BrokerExecution<B> {
    pub(super) fn new(
        orders: RealOrders<B>,
        instruments: Vec<InstrumentId>,
        orders_max: u32,
    ) -> Self {
        Self {
            account: CashAccount::new(Money::ZERO, instruments.len()),
            cash_shares: vec![0; instruments.len()],
            orders,
            instruments,
            orders_max,
            cash: Money::ZERO,
            all: Vec::new(),
            by_id: HashMap::new(),
            by_wire: HashMap::new(),
            open: Vec::new(),
            done: Vec::new(),
            events: Vec::new(),
            warnings: Vec::new(),
            is_exhausted: false,
            rejected_bytes: 0,
            is_closed: false,
            shares_traded: 0,
        }
    }

    /// Takes over what the strategy holds (P103). Gives each position: instrument, shares, and what they cost.
    pub(super) fn take_over(&mut self, standing: &Standing) -> Vec<(InstrumentIx, i64, Money)> {
        self.cash = standing.cash.unwrap_or_default();
        let mut carried = Vec::new();
        for held in &standing.held {
            let Some(instrument) = self.instrument(&held.instrument_id) else { continue };
            self.cash_shares[usize::from(instrument.0)] = held.quantity;
            if let Some((quantity, cost)) = held.position() {
                self.account.carry(instrument, quantity, cost);
                carried.push((instrument, quantity, cost));
            }
        }
        carried
    }

    fn instrument(&self, instrument_id: &str) -> Option<InstrumentIx> {
        let place = self.instruments.iter().position(|id| id.to_string() == instrument_id)?;
        // A run has at most 4 instruments.
        Some(InstrumentIx(place as u16))
    }

    /// Takes the broker's cash to buy with.
    pub(super) const fn set_cash(&mut self, cash: Money) {
        self.cash = cash;
    }

    /// The account by the fills of the strategy's orders. Its cash began with nothing and is no money of the broker's.
    pub(super) const fn account(&self) -> &CashAccount {
        &self.account
    }

    /// Shares that its orders traded.
    pub(super) const fn shares_traded(&self) -> u128 {
        self.shares_traded
    }

    /// From now on nothing new is sent.
    pub(super) const fn close(&mut self) {
        self.is_closed = true;
    }

    /// Cancels the strategy's orders, or leaves them; false: no answer will come.
    pub(super) fn end_own(&mut self) -> bool {
        self.orders.broker.end_own()
    }

    /// Takes an event of an order of the strategy from the desk, at the market's time `now`: the strategy's time is
    /// that of the market (P117).
    ///
    /// An order of an earlier run keeps its id on the wire. Its fills change the position all the same.
    pub(super) fn take(&mut self, now: TsNanos, event: OrderEvent) {
        let number = self.by_wire.get(&event.client_order_id).copied();
        let mut event = OrderEvent { ts_event: now.max(TsNanos::from_nanos(1)), ..event };
        match number {
            Some(number) => {
                let record = &mut self.all[number].record;
                event.client_order_id = record.request.client_order_id.clone();
                event.instrument = record.request.instrument;
                match &mut event.kind {
                    OrderEventKind::Submitted(request) | OrderEventKind::Updated(request) => {
                        let own = Arc::new(OrderRequest {
                            client_order_id: event.client_order_id.clone(),
                            instrument: event.instrument,
                            tags: record.request.tags.clone(),
                            ..request.as_ref().clone()
                        });
                        record.request = Arc::clone(&own);
                        *request = own;
                    }
                    OrderEventKind::Filled(fill) => {
                        record.filled = fill.cumulative_quantity;
                        let value = Money::checked_notional(fill.last_price, fill.last_quantity);
                        record.filled_value += value.unwrap_or_default();
                    }
                    OrderEventKind::Rejected(rejection) if event.status.is_final() => {
                        record.rejection = Some(rejection.clone());
                    }
                    _ => {}
                }
                if matches!(event.kind, OrderEventKind::Updated(_) | OrderEventKind::Rejected(_)) {
                    let order = &mut self.all[number];
                    order.under_way = order.under_way.saturating_sub(1);
                    if order.under_way == 0 {
                        order.asked = Quantity::ZERO;
                    }
                }
                let record = &mut self.all[number].record;
                let was_final = record.status.is_final();
                record.status = event.status;
                record.ts_last = event.ts_event;
                if event.venue_order_id.is_some() {
                    record.venue_order_id.clone_from(&event.venue_order_id);
                }
                if event.status.is_final() && !was_final {
                    self.end(number);
                } else if was_final && !event.status.is_final() {
                    self.open.push(number);
                    self.done.retain(|done| *done != number);
                }
            }
            None => {
                let of_desk = |id: &InstrumentId| self.orders.broker.place(id);
                let place =
                    self.instruments.iter().position(|id| of_desk(id) == Some(event.instrument));
                let Some(place) = place else { return };
                // A run has at most 4 instruments.
                event.instrument = InstrumentIx(place as u16);
                if !matches!(event.kind, OrderEventKind::Filled(_)) {
                    return;
                }
            }
        }
        if let OrderEventKind::Rejected(rejection) = &event.kind {
            self.rejected_bytes += REJECTION_BYTES + rejection.text.len() as u64;
        }
        if let OrderEventKind::Filled(fill) = &event.kind {
            self.shares_traded += u128::from(fill.last_quantity.shares());
            let request = number.map(|number| &self.all[number].record.request);
            let tags = request
                .and_then(|request| OrderTags::parse(&request.tags, request.time_in_force).ok());
            if !tags.is_some_and(|tags| tags.is_margin()) {
                self.cash_shares[usize::from(event.instrument.0)] +=
                    fill.last_quantity.shares().cast_signed() * fill.side.sign();
            }
            self.account.book(
                event.instrument,
                fill.side,
                fill.last_price,
                fill.last_quantity,
                fill.known_commission(),
            );
        }
        self.events.push(event);
    }

    fn end(&mut self, number: usize) {
        self.open.retain(|open| *open != number);
        self.done.push(number);
    }

    /// Orders that have not ended, as they were sent.
    pub(super) fn take_open(&self) -> impl Iterator<Item = &OrderRecord> {
        self.open.iter().map(|number| &self.all[*number].record)
    }

    fn submit(&mut self, now: TsNanos, request: OrderRequest) {
        let invalid = |text: &str| Rejection::new(ReasonCode::ValidationError, text);
        if self.by_id.contains_key(&request.client_order_id) {
            let rejection = invalid("CLIENT_ORDER_ID: was used before in this run");
            let event = rejected(now, &request, rejection);
            return self.refused(None, event);
        }
        if self.all.len() >= self.orders_max as usize {
            self.is_exhausted = true;
            return;
        }
        let number = self.add(now, request);
        let RealOrder { wire, record, .. } = &self.all[number];
        let request = &record.request;
        let placed = self
            .instruments
            .get(usize::from(request.instrument.0))
            .ok_or_else(|| invalid("INSTRUMENT: the run has no such instrument"))
            .and_then(|id| {
                self.orders.broker.place(id).ok_or_else(|| {
                    let text = "TOO_MANY_INSTRUMENTS: the order desk knows too many instruments";
                    Rejection::new(ReasonCode::InternalError, text)
                })
            });
        let sent = match placed {
            _ if self.is_closed => Err(run_ends()),
            Err(rejection) => Err(rejection),
            Ok(instrument) => {
                let order = OrderRequest {
                    client_order_id: wire.clone(),
                    instrument,
                    ..request.as_ref().clone()
                };
                self.orders.broker.send(DeskCommand::Submit(NewOrder {
                    origin: OrderOrigin::Strategy(self.orders.strategy_id.clone()),
                    client_order_id: wire.clone(),
                    request_key: xxh3_64(format!("{order:?}").as_bytes()),
                    request: Ok(order),
                }))
            }
        };
        if let Err(rejection) = sent {
            self.refuse_new(now, number, rejection);
        }
    }

    /// Adds an order that is about to be sent.
    fn add(&mut self, now: TsNanos, request: OrderRequest) -> usize {
        let number = self.all.len();
        let wire = ShortText::from(format!("{}-{}", self.orders.run_id, number + 1));
        self.by_id.insert(request.client_order_id.clone(), number);
        self.by_wire.insert(wire.clone(), number);
        self.open.push(number);
        // Orders of a run are limited far below 2^32.
        let record = OrderRecord::new(Origin::Strategy, number as u32, request, now);
        self.all.push(RealOrder { wire, record, asked: Quantity::ZERO, under_way: 0 });
        number
    }

    /// Rejects an order that was not sent.
    fn refuse_new(&mut self, now: TsNanos, number: usize, rejection: Rejection) {
        let record = &mut self.all[number].record;
        record.status = OrderStatus::Rejected;
        record.rejection = Some(rejection.clone());
        record.ts_last = now;
        let event = rejected(now, &record.request, rejection);
        self.end(number);
        self.refused(Some(number), event);
    }

    /// Refuses a change; the order works on.
    fn refuse_change(&mut self, now: TsNanos, number: usize, rejection: Rejection) {
        let record = &self.all[number].record;
        let event = OrderEvent {
            venue_order_id: record.venue_order_id.clone(),
            status: record.status,
            ..rejected(now, &record.request, rejection)
        };
        self.refused(Some(number), event);
    }

    /// Reports what was refused before it was sent: to the strategy by its id, to clients by the id on the wire.
    fn refused(&mut self, number: Option<usize>, event: OrderEvent) {
        if let OrderEventKind::Rejected(rejection) = &event.kind {
            self.rejected_bytes += REJECTION_BYTES + rejection.text.len() as u64;
        }
        let wire = number.map(|number| self.all[number].wire.clone());
        let client_order_id = wire.unwrap_or_else(|| event.client_order_id.clone());
        self.orders.broker.refused(&OrderEvent { client_order_id, ..event.clone() });
        self.events.push(event);
    }

    /// An open order by the strategy's id. What names another one has no effect, and the log says so.
    fn find(&mut self, id: &ShortText, command: &str) -> Option<usize> {
        let number = self.by_id.get(id).copied();
        let text = match number {
            Some(number) if !self.all[number].record.status.is_final() => return Some(number),
            Some(number) => {
                let status = self.all[number].record.status;
                format!("{command} of `{id}`: it is {status} already")
            }
            None => format!("ORDER_STATUS_UNKNOWN: {command} of `{id}`: there is no such order"),
        };
        let client_order_id = id.clone();
        self.warnings.push(Warning { origin: Origin::Strategy, client_order_id, text });
        None
    }

    fn named(&self, number: usize) -> NamedOrder {
        NamedOrder {
            origin: Origin::Strategy,
            client_order_id: Some(self.all[number].wire.to_string()),
            venue_order_id: None,
        }
    }

    fn modify(&mut self, now: TsNanos, id: &ShortText, change: OrderModify) {
        let Some(number) = self.find(id, "modify") else { return };
        let order = self.named(number);
        let asked = change.quantity.unwrap_or_default();
        let sent = match self.is_closed {
            true => Err(run_ends()),
            false => {
                let change = OrderChange { order, change: Ok(change) };
                self.orders.broker.send(DeskCommand::Modify(change))
            }
        };
        match sent {
            Ok(()) => {
                let order = &mut self.all[number];
                order.asked = order.asked.max(asked);
                order.under_way += 1;
            }
            Err(rejection) => self.refuse_change(now, number, rejection),
        }
    }

    fn cancel(&mut self, now: TsNanos, number: usize) {
        let order = self.named(number);
        match self.orders.broker.send(DeskCommand::Cancel(order)) {
            Ok(()) => self.all[number].under_way += 1,
            Err(rejection) => self.refuse_change(now, number, rejection),
        }
    }
}

fn run_ends() -> Rejection {
    Rejection::new(ReasonCode::VenueRejected, "RUN_ENDS: the run ends, so nothing new is sent")
}

/// The event of an order that was not sent.
fn rejected(now: TsNanos, request: &OrderRequest, rejection: Rejection) -> OrderEvent {
    OrderEvent {
        ts_event: now,
        origin: Origin::Strategy,
        client_order_id: request.client_order_id.clone(),
        venue_order_id: None,
        instrument: request.instrument,
        side: request.side,
        status: OrderStatus::Rejected,
        kind: OrderEventKind::Rejected(rejection),
    }
}

impl<B: Broker> ExecutionClient for BrokerExecution<B> {
    fn execute(&mut self, now: TsNanos, _: Origin, command: OrderCommand) {
        match command {
            OrderCommand::Submit(request) => self.submit(now, request),
            OrderCommand::Modify { client_order_id, change } => {
                self.modify(now, &client_order_id, change);
            }
            OrderCommand::Cancel { client_order_id } => {
                if let Some(number) = self.find(&client_order_id, "cancel") {
                    self.cancel(now, number);
                }
            }
            OrderCommand::CancelAll { instrument, side } => {
                let is_meant = |number: &usize| {
                    let record = &self.all[*number].record;
                    record.status != OrderStatus::PendingCancel
                        && instrument.is_none_or(|only| record.request.instrument == only)
                        && side.is_none_or(|only| record.request.side == only)
                };
                let all: Vec<usize> = self.open.iter().copied().filter(is_meant).collect();
                all.into_iter().for_each(|number| self.cancel(now, number));
            }
        }
    }

    fn refuse(&mut self, now: TsNanos, command: OrderCommand, rejection: Rejection) {
        match command {
            OrderCommand::Submit(request) if self.by_id.contains_key(&request.client_order_id) => {
                self.refused(None, rejected(now, &request, rejection));
            }
            OrderCommand::Submit(_) if self.all.len() >= self.orders_max as usize => {
                self.is_exhausted = true;
            }
            OrderCommand::Submit(request) => {
                let number = self.add(now, request);
                self.refuse_new(now, number, rejection);
            }
            OrderCommand::Modify { client_order_id, .. } => {
                if let Some(number) = self.find(&client_order_id, "modify") {
                    self.refuse_change(now, number, rejection);
                }
            }
            OrderCommand::Cancel { .. } | OrderCommand::CancelAll { .. } => {}
        }
    }

    /// At its limit, else at the day's upper limit (P40, P95).
    fn order_value(&self, request: &OrderRequest) -> Result<Money, Rejection> {
        let has_limit = matches!(request.order_type, OrderType::Limit | OrderType::StopLimit);
        let id = self.instruments.get(usize::from(request.instrument.0));
        let upper = || id.and_then(|id| self.orders.broker.upper_limit(id));
        let price = request.price.filter(|_| has_limit).or_else(upper);
        let value = price.and_then(|price| Money::checked_notional(price, request.quantity));
        value.ok_or_else(|| {
            let text = "MAX_NOTIONAL_JPY: what the order is worth is not known: the day's upper \
                        limit is missing; send it with a limit price";
            Rejection::new(ReasonCode::ValidationError, text)
        })
    }

    fn swap_events(&mut self, events: &mut Vec<OrderEvent>) {
        events.clear();
        std::mem::swap(&mut self.events, events);
    }

    fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    /// The broker's cash, the strategy's own profit and positions (P103).
    fn view_portfolio(&self, view: &mut PortfolioView, working_orders: bool) {
        view.account = domain::account::Account { cash: self.cash, ..*self.account.account() };
        view.account.commission = Money::ZERO;
        view.positions.clear();
        view.positions.extend_from_slice(self.account.positions());
        if working_orders {
            let open = self.open.iter().map(|number| &self.all[*number]);
            let working = open.map(|RealOrder { record, asked, .. }| WorkingOrder {
                // A change under way counts with the most that it may make of the order (P95, P123).
                request: match *asked > record.request.quantity {
                    true => Arc::new(OrderRequest {
                        quantity: *asked,
                        ..record.request.as_ref().clone()
                    }),
                    false => Arc::clone(&record.request),
                },
                venue_order_id: record.venue_order_id.clone(),
                status: record.status,
                filled_quantity: record.filled,
                ts_submitted: record.ts_submitted,
            });
            view.working_orders.clear();
            view.working_orders.extend(working);
        }
    }

    fn cash_shares(&self, instrument: InstrumentIx) -> Option<i64> {
        self.cash_shares.get(usize::from(instrument.0)).copied()
    }

    fn done(&self) -> usize {
        self.done.len()
    }

    fn take_done(&mut self, mut take: impl FnMut(&OrderRecord)) {
        let mut done = std::mem::take(&mut self.done);
        done.sort_unstable();
        for number in done {
            take(&self.all[number].record);
        }
    }

    fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    fn rejected_bytes(&self) -> u64 {
        self.rejected_bytes
    }
}
