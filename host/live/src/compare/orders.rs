//! The orders of a run, executed again one by one at the instants at which they were made (specification 4, P120).
//!
//! So a fill model is judged by the run's own orders, whatever the strategy would have decided after other fills. What the
//! run's side or its venue refused was never in the market, and is left out. What ended or changed an order without the
//! strategy, as a person does, is done again too.

use std::collections::{BTreeMap, VecDeque};
use std::iter::Take;

use domain::account::PortfolioView;
use domain::fault::{Fault, Identity};
use domain::market::Window;
use domain::strategy::{Action, Capabilities, LogLine, Outcome, StrategyRuntime};
use domain::{
    Instrument, InstrumentIx, JstDate, OrderCommand, OrderEvent, OrderEventKind, OrderModify,
    OrderRequest, OrderSide, OrderStatus, Quantity, ShortText, TsNanos,
};
use replay::stream::{MarketStream, StreamStep};

use super::told::{Tale, Told, ToldKind};
use crate::journal::{Call, HostRecord, Input, JournalError, Record, Records, Row};

/// The only tags that matter for a fill; others say which account pays.
const TAGS_OF_FILLS: &str = "close_strategy=";

/// What of a run is executed again.
#[derive(Debug, Default)]
pub(super) struct Orders {
    /// For each thing that was told of the run what is executed then.
    commands: Vec<Option<OrderCommand>>,
    /// Shares that all sells together may need.
    sells: BTreeMap<InstrumentIx, i64>,
    /// Orders that are executed.
    pub(super) executed: u64,
    /// Orders that the run's side or its venue refused.
    pub(super) left_out: u64,
}

/// An order that works in the run.
struct Working {
    instrument: InstrumentIx,
    side: OrderSide,
    /// The strategy has asked for a change that is not done yet.
    changes: bool,
    /// The strategy has asked for its cancel.
    cancels: bool,
}

/// What comes next of an order: whether it is refused; none where nothing comes.
#[derive(Debug, Default, Clone, Copy)]
struct NextAnswer {
    /// To the order.
    order: Option<bool>,
    /// To a change or a cancel of it.
    change: Option<bool>,
}

/// For each thing told whether it was refused; of a rejection whether it was the last that was heard of its order.
fn refused(told: &[Told]) -> Vec<bool> {
    let mut next: BTreeMap<&ShortText, NextAnswer> = BTreeMap::new();
    let mut refused = vec![false; told.len()];
    for (told, is_refused) in told.iter().zip(&mut refused).rev() {
        let of = |id: &ShortText| next.get(id).copied().unwrap_or_default();
        match &told.told {
            ToldKind::Command(OrderCommand::Submit(request)) => {
                *is_refused = of(&request.client_order_id).order == Some(true);
            }
            ToldKind::Command(
                OrderCommand::Modify { client_order_id, .. }
                | OrderCommand::Cancel { client_order_id },
            ) => *is_refused = of(client_order_id).change == Some(true),
            ToldKind::Command(OrderCommand::CancelAll { .. }) => {}
            ToldKind::Event(event) => {
                let next = next.entry(&event.client_order_id).or_default();
                match &event.kind {
                    OrderEventKind::Rejected(_) => {
                        *is_refused = next.order.is_none();
                        *next = NextAnswer { order: Some(true), change: Some(true) };
                    }
                    OrderEventKind::Accepted | OrderEventKind::Filled(_) => {
                        next.order = Some(false);
                    }
                    OrderEventKind::Updated(_)
                    | OrderEventKind::Canceled
                    | OrderEventKind::Expired(_) => {
                        *next = NextAnswer { order: Some(false), change: Some(false) };
                    }
                    OrderEventKind::Submitted(_)
                    | OrderEventKind::PendingUpdate(_)
                    | OrderEventKind::PendingCancel => {}
                }
            }
            ToldKind::Signal(_) | ToldKind::Fault(_) => {}
        }
    }
    refused
}

impl Orders {
    /// The orders of a run of which this was told.
    pub(super) fn of(told: &[Told]) -> Self {
        let (mut orders, mut working) = (Self::default(), BTreeMap::new());
        for (told, is_refused) in told.iter().zip(refused(told)) {
            let command = match &told.told {
                ToldKind::Command(command) if !is_refused => orders.command(command, &mut working),
                ToldKind::Command(OrderCommand::Submit(_)) => {
                    orders.left_out += 1;
                    None
                }
                ToldKind::Event(event) => orders.event(event, is_refused, &mut working),
                ToldKind::Command(_) | ToldKind::Signal(_) | ToldKind::Fault(_) => None,
            };
            orders.commands.push(command);
        }
        orders
    }

    /// For each thing that was told of the run what is executed then.
    pub(super) fn commands(&self) -> &[Option<OrderCommand>] {
        &self.commands
    }

    /// Shares of each instrument that an account must hold, so that no sell lacks them.
    pub(super) fn held(&self) -> Vec<(InstrumentIx, i64)> {
        self.sells.iter().map(|(instrument, shares)| (*instrument, *shares)).collect()
    }

    /// A sell may need so many shares more.
    fn sells(&mut self, instrument: InstrumentIx, side: OrderSide, shares: u64) {
        if side == OrderSide::Sell {
            let held = self.sells.entry(instrument).or_default();
            *held = held.saturating_add(shares.try_into().unwrap_or(i64::MAX));
        }
    }

    /// What the strategy wanted.
    fn command<'a>(
        &mut self,
        command: &'a OrderCommand,
        working: &mut BTreeMap<&'a ShortText, Working>,
    ) -> Option<OrderCommand> {
        match command {
            OrderCommand::Submit(request) => {
                let &OrderRequest { instrument, side, quantity, .. } = request;
                let order = Working { instrument, side, changes: false, cancels: false };
                working.insert(&request.client_order_id, order);
                self.executed += 1;
                self.sells(instrument, side, quantity.shares());
                let tags = request.tags.iter().filter(|tag| tag.starts_with(TAGS_OF_FILLS));
                let tags = tags.cloned().collect();
                return Some(OrderCommand::Submit(OrderRequest { tags, ..request.clone() }));
            }
            OrderCommand::Modify { client_order_id, change } => {
                let order = working.get_mut(client_order_id)?;
                order.changes = true;
                let shares = change.quantity.map_or(0, Quantity::shares);
                self.sells(order.instrument, order.side, shares);
            }
            OrderCommand::Cancel { client_order_id } => {
                working.get_mut(client_order_id)?.cancels = true;
            }
            OrderCommand::CancelAll { instrument, side } => {
                let is_meant = |order: &&mut Working| {
                    instrument.is_none_or(|only| order.instrument == only)
                        && side.is_none_or(|only| order.side == only)
                };
                working.values_mut().filter(is_meant).for_each(|order| order.cancels = true);
            }
        }
        Some(command.clone())
    }

    /// What became of an order: done again where the strategy has not asked for it.
    fn event(
        &mut self,
        event: &OrderEvent,
        is_last: bool,
        working: &mut BTreeMap<&ShortText, Working>,
    ) -> Option<OrderCommand> {
        let id = &event.client_order_id;
        let ends = match &event.kind {
            OrderEventKind::Updated(request) => {
                let order = working.get_mut(id)?;
                if std::mem::take(&mut order.changes) {
                    return None;
                }
                self.sells(order.instrument, order.side, request.quantity.shares());
                let change = OrderModify {
                    quantity: Some(request.quantity),
                    price: request.price,
                    trigger_price: request.trigger_price,
                    expire_time: request.expire_time,
                };
                return Some(OrderCommand::Modify { client_order_id: id.clone(), change });
            }
            OrderEventKind::Canceled => true,
            // A change that was refused has ended it.
            OrderEventKind::Rejected(_) => is_last && event.status == OrderStatus::Rejected,
            _ => false,
        };
        let order = if ends { working.remove(id)? } else { return None };
        let is_asked = order.cancels && event.kind == OrderEventKind::Canceled;
        (!is_asked).then(|| OrderCommand::Cancel { client_order_id: id.clone() })
    }
}

/// The rows of a journal with the orders that are executed again, each where the run made it.
pub(super) struct OrderRows<'a> {
    records: Take<Records>,
    commands: std::slice::Iter<'a, Option<OrderCommand>>,
    /// Steps that come before the next record.
    steps: VecDeque<StreamStep>,
    /// A row that the strategy has not got yet, with what follows it.
    row: Option<OpenRow>,
    /// The last row, and its day.
    last: Option<Row>,
    error: Option<JournalError>,
}

/// A row that the strategy has not got yet.
struct OpenRow {
    row: Row,
    /// Orders that were made before it and after it, as far as they are known.
    before: Vec<StreamStep>,
    after: Vec<StreamStep>,
    /// The strategy was called with its time, so it has met the orders.
    has_come: bool,
}

impl<'a> OrderRows<'a> {
    /// The rows of the first `count` records.
    pub(super) fn new(records: Records, count: usize, orders: &'a Orders) -> Self {
        Self {
            records: records.take(count),
            commands: orders.commands().iter(),
            steps: VecDeque::new(),
            row: None,
            last: None,
            error: None,
        }
    }

    /// Why it ended before the journal did.
    pub(super) fn into_error(self) -> Option<JournalError> {
        self.error
    }

    fn record(&mut self, record: &Record<'_>) {
        match record {
            // The same row again has the time at which it was given.
            Record::Row(row) => match &mut self.row {
                Some(open) => open.row = *row,
                None => {
                    let (before, after) = (Vec::new(), Vec::new());
                    self.row = Some(OpenRow { row: *row, before, after, has_come: false });
                }
            },
            Record::Call(call) => self.call(call),
            Record::Host(HostRecord::EndOfDay) => {
                self.close_row();
                self.steps.push_back(StreamStep::EndOfDay);
            }
            Record::Host(HostRecord::Stop | HostRecord::Failed(_) | HostRecord::End) => {
                self.close_row();
                self.steps.push_back(StreamStep::Stop);
            }
            Record::Host(HostRecord::Note(_) | HostRecord::MarketDataLost(_))
            | Record::Header(_)
            | Record::Portfolio(_) => {}
        }
    }

    fn call(&mut self, call: &Call<'_>) {
        let mut tale = Tale::default();
        let row = self.row.as_ref().map(|open| open.row).or(self.last);
        tale.call(call, row);
        // The plan was made from the same tale.
        let planned = tale.told.iter().zip(&mut self.commands);
        let steps = planned.filter_map(|(told, command)| {
            let ts_event = told.ts_event?;
            Some(StreamStep::Order { ts_event, command: command.clone()? })
        });
        let Some(open) = &mut self.row else { return self.steps.extend(steps) };
        let is_row = matches!(call.input, Input::Row);
        let has_its_time = |ts_event| ts_event >= open.row.ts_event();
        open.has_come |= is_row || call.input.ts_event().is_some_and(has_its_time);
        for step in steps {
            // What is due before a row, and the begin of its day.
            let is_before = matches!(&step, StreamStep::Order { ts_event, .. }
                if *ts_event < open.row.ts_event());
            let orders = if is_before { &mut open.before } else { &mut open.after };
            orders.push(step);
        }
        if is_row {
            self.close_row();
        }
    }

    /// Gives the open row with its orders. Where the journal ends before the row has met them, nobody knows what it did.
    fn close_row(&mut self) {
        let Some(open) = self.row.take().filter(|open| open.has_come) else { return };
        let date = |row: Row| -> JstDate { row.ts_event().jst_date() };
        if self.last.is_some_and(|last| date(last) < date(open.row)) {
            // The day before is over before anything of the new one.
            self.steps.push_back(StreamStep::EndOfDay);
        }
        self.last = Some(open.row);
        self.steps.extend(open.before);
        self.steps.push_back(match open.row {
            Row::Trade { trade, aggressor } => StreamStep::Trade { trade, aggressor },
            Row::Bar(bar) => StreamStep::Bar(bar),
        });
        self.steps.extend(open.after);
    }
}

impl MarketStream for OrderRows<'_> {
    fn ready(&mut self) {}

    fn next(&mut self) -> StreamStep {
        loop {
            if let Some(step) = self.steps.pop_front() {
                return step;
            }
            match self.records.next() {
                Some(Ok(record)) => self.record(&record),
                Some(Err(error)) => {
                    self.error = Some(error);
                    return StreamStep::Stop;
                }
                None => {
                    self.close_row();
                    self.steps.push_back(StreamStep::Stop);
                }
            }
        }
    }
}

/// Hears what becomes of orders that are executed again, and asks for nothing.
#[derive(Debug, Default)]
pub(super) struct Listener {
    pub(super) tale: Tale,
}

impl StrategyRuntime for Listener {
    fn identity(&self) -> Identity {
        Identity { component: "orders of a run".to_owned(), sha256: String::new() }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn init(&mut self, _: &str, _: &[Instrument]) -> Result<(), Box<Fault>> {
        Ok(())
    }

    fn start(&mut self, _: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        Ok(Vec::new())
    }

    fn advance(&mut self, _: Window<'_>, limit: u32) -> Result<Outcome, Box<Fault>> {
        Ok(Outcome { reached: limit, actions: Vec::new() })
    }

    fn on_order_events(&mut self, events: &[OrderEvent]) -> Result<Vec<Action>, Box<Fault>> {
        self.tale.events(events);
        Ok(Vec::new())
    }

    fn stop(&mut self, _: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        Ok(Vec::new())
    }

    fn set_portfolio(&mut self, _: &PortfolioView) {}

    fn take_log(&mut self) -> Vec<LogLine> {
        Vec::new()
    }
}
