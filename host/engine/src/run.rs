//! The present run: its events while it goes on, and the answers to commands about it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use domain::account::Position;
use domain::adjustment::ExRights;
use domain::market::{Bar, BarGranularity, Trade};
use domain::strategy::Signal;
use domain::{
    JstDate, Money, OrderCommand, OrderEvent, OrderEventKind, OrderSide, OrderStatus, Origin,
    Price, Quantity, ReasonCode, Rejection, ShortText, TsNanos,
};
use exchange::{CashAccount, PositionChange};
use ipc::{
    CancelAllResult, Decimal, EngineStarted, Event, ExecutionConfig, ExecutionMarker, Kline,
    KlineInterval, KlineUpdate, Multiplier, OrderContext, OrderListUpdated, PositionClosed,
    PositionOpened, PositionsUpdated, ReplayBuyingPower, ShareCount, StrategySignal,
    SubmitOrderResult, SubmitOutcome, Text, TradeRow,
};
use marketdata::GrowingBar;
use replay::RunCommand;
use results::rows::{ClientCommand, FillRow, PositionEvent};
use results::sink::Record;

use crate::hub::Hub;
use crate::ledger::{ListFilter, Orders, PositionLife, RequestContext, position_row};
use crate::limits::{
    LIST_ROWS_MAX, SESSION_BARS_MAX, SESSION_SIGNALS_MAX, SIGNAL_NOTE_CHARS_MAX,
    SIGNAL_TAG_CHARS_MAX, TELL_EVERY,
};
use crate::outbox::{Newest, TradesHead};
use crate::present::market as wire;
use crate::present::orders::rejected;
use crate::{ACCOUNT, VENUE};

/// The code of an order with tags that are not in the registry (P10).
const UNKNOWN_TAG: &str = "unknown_tag";

/// What a client wants done with its orders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OrderAsk {
    Submit,
    Modify,
    Cancel,
    CancelAll,
}

impl OrderAsk {
    /// The command's name, as it was sent.
    pub(crate) const fn op(&self) -> &'static str {
        match self {
            Self::Submit => "SubmitOrder",
            Self::Modify => "ModifyOrder",
            Self::Cancel => "CancelOrder",
            Self::CancelAll => "CancelAllOrders",
        }
    }
}

/// A command that was handed to the run.
#[derive(Debug, Clone)]
pub(crate) struct WaitingCommand {
    pub(crate) asked: RequestContext,
    pub(crate) ask: OrderAsk,
    /// What is odd about a new order, in words.
    pub(crate) warning: Option<String>,
}

/// A cancel of many that is not over.
#[derive(Debug)]
struct CancelAll {
    asked: RequestContext,
    waiting: BTreeSet<ShortText>,
    all: BTreeSet<ShortText>,
    canceled: u64,
    failed: u64,
}

/// What a run is made of.
#[derive(Debug)]
pub(crate) struct RunSetup {
    pub(crate) run_id: String,
    pub(crate) strategy_id: String,
    pub(crate) asked: RequestContext,
    pub(crate) multiplier: Multiplier,
    pub(crate) instruments: Vec<String>,
    pub(crate) dates: (JstDate, JstDate),
    pub(crate) cash: Money,
    /// Shares in a trading unit of each instrument.
    pub(crate) lots: Vec<Quantity>,
    pub(crate) rows_total: u64,
    /// Span of the bars that are told.
    pub(crate) interval: KlineInterval,
    pub(crate) commands: Sender<RunCommand>,
}

/// One run, also after its end, until other data are loaded.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) setup: RunSetup,
    /// How orders are filled; known once the data are there.
    pub(crate) execution: Option<ExecutionConfig>,
    pub(crate) has_started: bool,
    pub(crate) stop: Option<RequestContext>,
    pub(crate) rows_done: u64,
    pub(crate) now: TsNanos,
    account: CashAccount,
    pub(crate) orders: Orders,
    /// The shape of each order that a client has sent, by its id.
    pub(crate) request_keys: BTreeMap<String, u64>,
    /// Commands that the run has not taken yet.
    pub(crate) waiting: VecDeque<WaitingCommand>,
    /// The command that the run has taken last.
    current: Option<WaitingCommand>,
    cancel_alls: Vec<CancelAll>,
    /// The fill of which the run has not said everything yet.
    filled: Option<Filled>,
    /// The order of the fill that is being told, and how it ended, if it did: what hangs on its end is
    /// told after what belongs to the fill.
    ended_by_fill: Option<ShortText>,
    /// The newest fills and the newest marks of the strategy, for clients that come later.
    fills: VecDeque<FillRow>,
    signals: VecDeque<(TsNanos, Signal)>,
    markets: Vec<Market>,
}

/// A fill that clients do not know yet. The run tells it in several records; clients are told the
/// order's event, the marker, the position and the account as one, so that neither an answer to another
/// command comes between nor one that knows a half of it (specification 4, P78).
#[derive(Debug)]
struct Filled {
    event: OrderEvent,
    row: Option<FillRow>,
}

/// One instrument of a run.
#[derive(Debug)]
struct Market {
    head: Arc<TradesHead>,
    instrument_id: String,
    life: PositionLife,
    last_price: Option<Price>,
    sequence: u64,
    bar: Option<GrowingBar>,
    bar_told: Duration,
    /// The newest bars that are final.
    last_bars: VecDeque<Kline>,
    last_trade: Option<TradeRow>,
}

impl Market {
    /// Names the present position, or the last one.
    fn position_id(&self) -> String {
        format!("{}-{}", self.instrument_id, self.life.number)
    }

    fn kline(&self, interval: KlineInterval, klines: Vec<Kline>) -> KlineUpdate<'_> {
        KlineUpdate {
            venue: VENUE.into(),
            ticker: Text::Borrowed(&self.head.ticker),
            instrument_id: Text::Borrowed(&self.instrument_id),
            interval,
            klines,
        }
    }
}

/// Adds to a list of the newest.
fn push_newest<T>(newest: &mut VecDeque<T>, most: usize, one: T) {
    if newest.len() >= most {
        newest.pop_front();
    }
    newest.push_back(one);
}

impl Run {
    pub(crate) fn new(setup: RunSetup) -> Self {
        let market = |id: &String| Market {
            head: Arc::new(TradesHead {
                venue: VENUE.to_owned(),
                exchange: "TSE".to_owned(),
                ticker: crate::ticker(id).to_owned(),
                instrument_id: Some(id.clone()),
                stream_session_id: setup.run_id.clone(),
            }),
            instrument_id: id.clone(),
            life: PositionLife::default(),
            last_price: None,
            sequence: 0,
            bar: None,
            bar_told: Duration::ZERO,
            last_bars: VecDeque::new(),
            last_trade: None,
        };
        let now = crate::ledger::midnight(setup.dates.0);
        Self {
            markets: setup.instruments.iter().map(market).collect(),
            execution: None,
            has_started: false,
            stop: None,
            rows_done: 0,
            now,
            account: CashAccount::new(setup.cash, setup.instruments.len()),
            orders: Orders::default(),
            request_keys: BTreeMap::new(),
            waiting: VecDeque::new(),
            current: None,
            cancel_alls: Vec::new(),
            filled: None,
            ended_by_fill: None,
            fills: VecDeque::new(),
            signals: VecDeque::new(),
            setup,
        }
    }

    /// The id of an instrument, as it is in the run's list.
    pub(crate) fn instrument(&self, instrument: domain::InstrumentIx) -> &str {
        let id = self.setup.instruments.get(usize::from(instrument.0));
        id.map_or("unknown", String::as_str)
    }

    /// Tells once that the run has begun.
    pub(crate) fn start(&mut self, hub: &mut Hub) {
        if self.has_started {
            return;
        }
        self.has_started = true;
        let Some(execution) = self.execution.clone() else { return };
        hub.tell_all(&Event::EngineStarted(EngineStarted {
            request_id: Some(Text::Borrowed(&self.setup.asked.request_id)),
            strategy_id: Text::Borrowed(&self.setup.strategy_id),
            account_id: ACCOUNT.into(),
            run_id: Text::Borrowed(&self.setup.run_id),
            multiplier: self.setup.multiplier,
            execution,
            ts_event_ms: self.now.millis(),
        }));
    }

    /// Tells clients a record of the run. `wall` is the time since the engine's start.
    pub(crate) fn take(&mut self, hub: &mut Hub, record: Record<'_>, wall: Duration) {
        match record {
            Record::Trade(trade) => self.trade(hub, trade, wall),
            Record::Bar(bar) => self.bar(hub, bar),
            Record::OrderEvent { event, .. } if matches!(event.kind, OrderEventKind::Filled(_)) => {
                self.filled = Some(Filled { event: event.clone(), row: None });
            }
            Record::OrderEvent { event, .. } => self.order_event(hub, event),
            Record::Fill(fill) => {
                let change = self.account.change(fill.instrument, fill.side, fill.quantity);
                if let Some(filled) = &mut self.filled {
                    filled.row = Some(fill.clone());
                }
                if change == PositionChange::Changed {
                    self.tell_filled(hub);
                }
            }
            Record::Position(event) => {
                self.tell_filled(hub);
                self.position(hub, event);
            }
            Record::Split { ex_rights, price } => self.split(hub, ex_rights, price),
            Record::BuyingPower(row) => {
                debug_assert_eq!(row.cash, self.account.account().cash, "one account, two books");
                self.tell_buying_power(hub);
            }
            Record::Signal(ts_event, signal) => self.signal(hub, ts_event, signal),
            Record::ClientRejection { client_order_id, rejection, .. } => {
                let Some(WaitingCommand { asked, .. }) = self.current.clone() else { return };
                self.reject(hub, client_order_id, rejection, &asked);
            }
            Record::ClientWarning { client_order_id, text, .. } => {
                self.client_warning(hub, client_order_id, text);
            }
            _ => {}
        }
    }

    fn trade(&mut self, hub: &mut Hub, trade: &Trade, wall: Duration) {
        self.rows_done += 1;
        self.now = trade.ts_event;
        let Some(market) = self.markets.get_mut(usize::from(trade.instrument.0)) else { return };
        market.sequence += 1;
        market.last_price = Some(trade.price);
        let row = wire::replay_trade(trade, market.sequence);
        let is_wanted = hub.is_wanted(&market.head.ticker);
        let ended = GrowingBar::take(&mut market.bar, BarGranularity::Minute, trade);
        let ended = ended.map(|made| wire::made_bar(&made, true));
        if let Some(kline) = &ended {
            push_newest(&mut market.last_bars, SESSION_BARS_MAX, kline.clone());
        }
        if is_wanted {
            let is_first = ended.is_some();
            if let Some(kline) = ended {
                let update = market.kline(KlineInterval::Minute, vec![kline]);
                hub.tell_ticker(&market.head.ticker, &Event::KlineUpdate(update), None);
            }
            hub.tell_trade(&market.head, &row, wall);
            if let Some(bar) = market.bar
                && (is_first || wall.saturating_sub(market.bar_told) >= TELL_EVERY)
            {
                market.bar_told = wall;
                let index = usize::from(trade.instrument.0);
                let update =
                    market.kline(KlineInterval::Minute, vec![wire::made_bar(&bar.so_far(), false)]);
                let newest = Some(Newest::GrowingBar(index));
                hub.tell_ticker(&market.head.ticker, &Event::KlineUpdate(update), newest);
            }
        }
        market.last_trade = Some(row);
    }

    fn bar(&mut self, hub: &mut Hub, bar: &Bar) {
        self.rows_done += 1;
        self.now = bar.ts_event;
        let Some(market) = self.markets.get_mut(usize::from(bar.instrument.0)) else { return };
        market.last_price = Some(bar.close);
        let (interval, kline) = (wire::interval(bar.granularity), wire::file_bar(bar));
        push_newest(&mut market.last_bars, SESSION_BARS_MAX, kline.clone());
        let update = Event::KlineUpdate(market.kline(interval, vec![kline]));
        hub.tell_ticker(&market.head.ticker, &update, None);
    }

    fn order_event(&mut self, hub: &mut Hub, event: &OrderEvent) {
        self.now = self.now.max(event.ts_event);
        let is_of_client = event.origin == Origin::Client;
        let asked_now = self.current.clone().filter(|_| is_of_client);
        let order = self.orders.take(event);
        let mut request = None;
        if let Some(order) = order {
            if let Some(WaitingCommand { asked, ask, warning, .. }) = asked_now {
                match (&event.kind, ask) {
                    (OrderEventKind::Submitted(_), OrderAsk::Submit) => {
                        order.submit = Some(asked);
                        order.warning = warning.map(|text| (UNKNOWN_TAG, text));
                    }
                    (OrderEventKind::PendingUpdate(_), OrderAsk::Modify) => {
                        order.modify = Some(asked);
                    }
                    (OrderEventKind::PendingCancel, _) => order.cancel = Some(asked),
                    _ => {}
                }
            }
            request = match &event.kind {
                OrderEventKind::Submitted(_) | OrderEventKind::Accepted => order.submit.clone(),
                OrderEventKind::PendingUpdate(_) => order.modify.clone(),
                OrderEventKind::Updated(_) => order.modify.take(),
                OrderEventKind::PendingCancel => order.cancel.clone(),
                // Of an order that never came to the venue it is the only answer.
                OrderEventKind::Canceled | OrderEventKind::Expired(_)
                    if order.record.venue_order_id.is_none() =>
                {
                    order.submit.clone()
                }
                OrderEventKind::Canceled => order.cancel.clone(),
                OrderEventKind::Rejected(_) if order.record.venue_order_id.is_some() => {
                    order.modify.clone()
                }
                OrderEventKind::Rejected(_) => order.submit.clone(),
                OrderEventKind::Expired(_) | OrderEventKind::Filled(_) => None,
            };
        } else if let Some(WaitingCommand { asked, ask: OrderAsk::Submit, .. }) = asked_now {
            // Rejected before its first event.
            request = Some(asked);
        }
        let is_strategys = event.origin == Origin::Strategy;
        let instrument_id = self.instrument(event.instrument).to_owned();
        let order = self.orders.get(event.origin, &event.client_order_id);
        let context = OrderContext {
            request_id: request.as_ref().map(|asked| Text::Borrowed(&*asked.request_id)),
            venue: Some(VENUE.into()),
            origin: Some(event.origin),
            strategy_id: is_strategys.then(|| Text::Borrowed(&*self.setup.strategy_id)),
            instrument_id: Some(Text::Borrowed(&instrument_id)),
            order_side: Some(event.side),
        };
        hub.tell_all(&Event::of_order(event, context));
        if let (true, OrderEventKind::Accepted, Some(asked)) = (is_of_client, &event.kind, &request)
            && let Some(order) = order
        {
            let warning = order.warning.as_ref();
            let result = SubmitOrderResult {
                request_id: Text::Borrowed(&asked.request_id),
                client_order_id: Text::Borrowed(&event.client_order_id),
                outcome: SubmitOutcome::Created,
                status: event.status,
                venue_order_id: event.venue_order_id.as_deref().map(Text::Borrowed),
                warning_code: warning.map(|(code, _)| Text::Borrowed(*code)),
                warning_text: warning.map(|(_, text)| Text::Borrowed(text)),
            };
            hub.tell(asked.client, &Event::SubmitOrderResult(result));
        }
        if is_of_client {
            let never_accepted = event.venue_order_id.is_none();
            if event.status == OrderStatus::Rejected && never_accepted {
                // The id may be sent again (specification 2, "Audit log", rule 5).
                self.request_keys.remove(&*event.client_order_id);
            }
            if event.status.is_final() {
                if matches!(event.kind, OrderEventKind::Filled(_)) {
                    self.ended_by_fill = Some(event.client_order_id.clone());
                } else {
                    self.answer_late(hub, &event.client_order_id, event.status);
                }
            }
        }
    }

    /// The run's files cannot take a record, with which the run ends. An order of a client whose line is not on
    /// the disk is not sent (specification 2, "Audit log", rule 1), nor is a change of one.
    pub(crate) fn record_failed(&mut self, hub: &mut Hub, record: Record<'_>, error: &io::Error) {
        let text = format!("NOT_SENT: the engine cannot write the run's files: {error}");
        let rejection = Rejection::new(ReasonCode::InternalError, text);
        let command = match record {
            Record::OrderEvent { event, .. }
                if event.origin == Origin::Client
                    && matches!(event.kind, OrderEventKind::Submitted(_)) =>
            {
                let event = OrderEvent {
                    kind: OrderEventKind::Rejected(rejection),
                    status: OrderStatus::Rejected,
                    ..event.clone()
                };
                return self.order_event(hub, &event);
            }
            Record::ClientCommand(ClientCommand { command: Some(command), .. }) => *command,
            _ => return,
        };
        match command {
            OrderCommand::Submit(request) => {
                let event = OrderEvent {
                    ts_event: self.now,
                    origin: Origin::Client,
                    client_order_id: request.client_order_id.clone(),
                    venue_order_id: None,
                    instrument: request.instrument,
                    side: request.side,
                    kind: OrderEventKind::Rejected(rejection),
                    status: OrderStatus::Rejected,
                };
                self.order_event(hub, &event);
            }
            OrderCommand::Modify { client_order_id, .. }
            | OrderCommand::Cancel { client_order_id } => {
                if let Some(WaitingCommand { asked, .. }) = self.current.clone() {
                    self.reject(hub, client_order_id, &rejection, &asked);
                }
            }
            // It is answered with the end of the run.
            OrderCommand::CancelAll { .. } => {}
        }
    }

    /// The run has failed as such: what clients wait for of it does not come any more.
    pub(crate) fn give_up(&mut self, hub: &mut Hub, why: &str) {
        let rejection = Rejection::new(ReasonCode::InternalError, format!("RUN_FAILED: {why}"));
        let mut counted = BTreeSet::new();
        for all in &mut self.cancel_alls {
            all.failed += all.waiting.len() as u64;
            counted.append(&mut all.waiting);
        }
        self.end_cancel_alls(hub);
        for id in self.orders.open_of_clients(None, None) {
            let Some(order) = self.orders.get_mut(Origin::Client, &id) else { continue };
            let is_at_venue = order.record.venue_order_id.is_some();
            let submit = order.submit.take().filter(|_| !is_at_venue);
            let cancel = order.cancel.take().filter(|_| !counted.contains(&id));
            let unanswered: Vec<RequestContext> =
                [submit, order.modify.take(), cancel].into_iter().flatten().collect();
            for asked in unanswered {
                self.reject(hub, &id, &rejection, &asked);
            }
        }
    }

    /// An order of a client has ended: a cancel of many counts it, and a change or a cancel that came too
    /// late for it is answered.
    fn answer_late(&mut self, hub: &mut Hub, client_order_id: &str, status: OrderStatus) {
        let order = self.orders.get_mut(Origin::Client, client_order_id);
        let late = order.and_then(|order| match status {
            OrderStatus::Canceled | OrderStatus::Rejected => None,
            _ => order.cancel.take().or_else(|| order.modify.take()),
        });
        if let Some(asked) = late
            && !self.cancel_alls.iter().any(|all| all.waiting.contains(client_order_id))
        {
            let text = format!("TOO_LATE: `{client_order_id}` is {status} already");
            let rejection = Rejection::new(ReasonCode::VenueRejected, text);
            self.reject(hub, client_order_id, &rejection, &asked);
        }
        self.cancel_ended(hub, client_order_id, status);
    }

    /// Tells the fill that waits: all of it, but for a position that it opens or closes; what there is of
    /// it, where the run failed in the middle of it.
    pub(crate) fn tell_filled(&mut self, hub: &mut Hub) {
        let Some(Filled { event, row }) = self.filled.take() else { return };
        self.order_event(hub, &event);
        if let Some(row) = &row {
            self.fill(hub, row);
        }
    }

    fn fill(&mut self, hub: &mut Hub, fill: &FillRow) {
        hub.tell_all(&Event::ExecutionMarker(self.marker(fill)));
        push_newest(&mut self.fills, LIST_ROWS_MAX, fill.clone());
        let FillRow { instrument, side, price, quantity, commission, .. } = *fill;
        let change = self.account.book(instrument, side, price, quantity, commission);
        if let Some(market) = self.markets.get_mut(usize::from(instrument.0)) {
            market.life.fill(fill, change == PositionChange::Opened);
        }
        if change == PositionChange::Changed {
            hub.tell_all(&Event::PositionsUpdated(self.positions(None)));
            self.end_fill(hub);
        }
    }

    fn marker<'a>(&'a self, fill: &'a FillRow) -> ExecutionMarker<'a> {
        ExecutionMarker {
            strategy_id: Text::Borrowed(&self.setup.strategy_id),
            origin: fill.origin,
            client_order_id: Text::Borrowed(&fill.client_order_id),
            trade_id: Text::Borrowed(&fill.trade_id),
            instrument_id: Text::Borrowed(self.instrument(fill.instrument)),
            side: fill.side,
            price: fill.price.into(),
            qty: fill.quantity.into(),
            ts_event_ms: fill.ts_event.millis(),
        }
    }

    /// The newest fills, as clients got them.
    pub(crate) fn executions(&self) -> Vec<ExecutionMarker<'_>> {
        self.fills.iter().map(|fill| self.marker(fill)).collect()
    }

    /// The last of what belongs to a fill, and then what hangs on it.
    fn end_fill(&mut self, hub: &mut Hub) {
        self.tell_buying_power(hub);
        if let Some(id) = self.ended_by_fill.take() {
            self.answer_late(hub, &id, OrderStatus::Filled);
        }
    }

    fn tell_buying_power(&self, hub: &mut Hub) {
        let event = Event::ReplayBuyingPower(self.buying_power(None));
        hub.tell_newest(&event, Some(Newest::BuyingPower));
    }

    fn position(&mut self, hub: &mut Hub, event: &PositionEvent) {
        let Some(market) = self.markets.get(usize::from(event.instrument.0)) else { return };
        let told = market.life.averages();
        let event = if event.opened {
            let (opened_qty, avg_open_price, _) = told;
            Event::PositionOpened(PositionOpened {
                strategy_id: Text::Borrowed(&self.setup.strategy_id),
                venue: VENUE.into(),
                instrument_id: Text::Borrowed(&market.instrument_id),
                position_id: Text::Owned(market.position_id()),
                side: event.entry_side,
                opened_qty,
                avg_open_price,
                ts_event_ms: event.ts_event.millis(),
            })
        } else {
            let realized_pnl = event.realised_pnl.unwrap_or_default();
            self.position_closed(market, told, realized_pnl, event.ts_event)
        };
        hub.tell_all(&event);
        self.end_fill(hub);
    }

    /// The end of a position: shares opened over its life, average prices, and what it came to. A cash account only
    /// buys to open.
    fn position_closed<'a>(
        &'a self,
        market: &'a Market,
        (opened_qty, avg_open_price, avg_close_price): (ShareCount, Decimal, Decimal),
        realized_pnl: Money,
        ts_event: TsNanos,
    ) -> Event<'a> {
        Event::PositionClosed(PositionClosed {
            strategy_id: Text::Borrowed(&self.setup.strategy_id),
            venue: VENUE.into(),
            instrument_id: Text::Borrowed(&market.instrument_id),
            position_id: Text::Owned(market.position_id()),
            side: OrderSide::Buy,
            opened_qty,
            avg_open_price,
            avg_close_price,
            realized_pnl: realized_pnl.into(),
            ts_event_ms: ts_event.millis(),
        })
    }

    /// Shares were split: what is held is another number, or nothing but money.
    fn split(&mut self, hub: &mut Hub, ex_rights: &ExRights, price: Price) {
        let at = ex_rights.instrument;
        let held = self.account.held(at);
        let paid = self.account.adjust(at, ex_rights.adjustment, price);
        let Some(market) = self.markets.get_mut(usize::from(at.0)) else { return };
        market.last_price = Some(price);
        let (opened_qty, avg_open_price, _) = market.life.averages();
        let closed = market.life.split(ex_rights.adjustment, paid);
        if held == 0 {
            return;
        }
        if self.account.held(at) == 0 {
            let market = &self.markets[usize::from(at.0)];
            let told = (opened_qty, avg_open_price, closed.avg_close_price);
            hub.tell_all(&self.position_closed(market, told, closed.realized_pnl, self.now));
        } else {
            hub.tell_all(&Event::PositionsUpdated(self.positions(None)));
        }
        self.tell_buying_power(hub);
    }

    fn signal(&mut self, hub: &mut Hub, ts_event: TsNanos, signal: &Signal) {
        let cut = |text: &Option<String>, most: usize| {
            text.as_ref().map(|text| text.chars().take(most).collect())
        };
        let signal = Signal {
            tag: cut(&signal.tag, SIGNAL_TAG_CHARS_MAX),
            note: cut(&signal.note, SIGNAL_NOTE_CHARS_MAX),
            ..signal.clone()
        };
        hub.tell_all(&Event::StrategySignal(self.strategy_signal(ts_event, &signal)));
        push_newest(&mut self.signals, SESSION_SIGNALS_MAX, (ts_event, signal));
    }

    fn strategy_signal<'a>(&'a self, ts_event: TsNanos, signal: &'a Signal) -> StrategySignal<'a> {
        StrategySignal {
            strategy_id: Some(Text::Borrowed(&self.setup.strategy_id)),
            instrument_id: Text::Borrowed(self.instrument(signal.instrument)),
            signal_kind: signal.kind,
            side: signal.side,
            price: signal.price.map(Into::into),
            tag: signal.tag.as_deref().map(Text::Borrowed),
            note: signal.note.as_deref().map(Text::Borrowed),
            ts_event_ms: ts_event.millis(),
        }
    }

    /// The newest marks of the strategy, as clients got them.
    pub(crate) fn signals(&self) -> Vec<StrategySignal<'_>> {
        self.signals
            .iter()
            .map(|(ts_event, signal)| self.strategy_signal(*ts_event, signal))
            .collect()
    }

    /// A command of a client came to nothing, or a tag of its order means nothing.
    fn client_warning(&mut self, hub: &mut Hub, client_order_id: &str, text: &str) {
        let Some(WaitingCommand { asked, ask, .. }) = self.current.clone() else { return };
        if ask == OrderAsk::Submit {
            // It was told with the order.
            return;
        }
        let status = self.orders.get(Origin::Client, client_order_id);
        let is_being_cancelled =
            status.is_some_and(|order| order.record.status == OrderStatus::PendingCancel);
        if ask == OrderAsk::CancelAll && is_being_cancelled {
            // It ends as was asked for; the end is counted.
            return;
        }
        let text = match text.split_once(": ") {
            Some(("ORDER_STATUS_UNKNOWN", rest)) => rest,
            _ => text,
        };
        let status = status.map(|order| order.record.status);
        let is_numbered = status.is_some_and(|status| status != OrderStatus::Submitted);
        let rejection = if is_numbered {
            Rejection::new(ReasonCode::VenueRejected, format!("TOO_LATE: {text}"))
        } else {
            Rejection::new(ReasonCode::OrderStatusUnknown, format!("CLIENT_ORDER_ID: {text}"))
        };
        self.reject(hub, client_order_id, &rejection, &asked);
        if ask == OrderAsk::CancelAll {
            // Only the present one has failed at it; others may have it under way.
            if let Some(all) = self.cancel_alls.last_mut()
                && all.waiting.remove(client_order_id)
            {
                all.failed += 1;
            }
            self.end_cancel_alls(hub);
        }
    }

    /// Tells that a change or a cancel of a client is rejected.
    fn reject(
        &self,
        hub: &mut Hub,
        client_order_id: &str,
        rejection: &Rejection,
        asked: &RequestContext,
    ) {
        let order = self.orders.get(Origin::Client, client_order_id);
        let context = OrderContext {
            request_id: Some(Text::Borrowed(&asked.request_id)),
            ..self.context(order.map(|order| &order.record))
        };
        let rejection = Cow::Borrowed(rejection);
        hub.tell_all(&rejected(Some(client_order_id), rejection, self.now, context));
    }

    /// Which order an event is about: its venue, origin, instrument and side.
    pub(crate) fn context(&self, order: Option<&domain::OrderRecord>) -> OrderContext<'_> {
        let instrument = order.map(|order| self.instrument(order.request.instrument));
        OrderContext {
            venue: Some(VENUE.into()),
            origin: Some(Origin::Client),
            instrument_id: instrument.map(Text::Borrowed),
            order_side: order.map(|order| order.request.side),
            ..OrderContext::default()
        }
    }

    /// The run takes a client's command. Tells whether the exchange is to hear of it.
    pub(crate) fn begin(&mut self, hub: &mut Hub, command: &OrderCommand) -> bool {
        self.current = self.waiting.pop_front();
        let Some(WaitingCommand { asked, .. }) = self.current.clone() else { return true };
        match command {
            OrderCommand::Modify { client_order_id, change } => {
                let order = self.orders.get(Origin::Client, client_order_id);
                let filled = order.map(|order| order.record.filled).unwrap_or_default();
                let is_open = order.is_some_and(|order| !order.record.status.is_final());
                if is_open && change.quantity.is_some_and(|quantity| quantity <= filled) {
                    let text = format!("NEW_QUANTITY: {filled} shares are filled already");
                    let rejection = Rejection::new(ReasonCode::ValidationError, text);
                    self.reject(hub, client_order_id, &rejection, &asked);
                    return false;
                }
            }
            OrderCommand::CancelAll { instrument, side } => {
                let all: BTreeSet<ShortText> =
                    self.orders.open_of_clients(*instrument, *side).into_iter().collect();
                let waiting = all.clone();
                let (canceled, failed) = (0, 0);
                self.cancel_alls.push(CancelAll { asked, waiting, all, canceled, failed });
                self.end_cancel_alls(hub);
            }
            OrderCommand::Submit(_) | OrderCommand::Cancel { .. } => {}
        }
        true
    }

    /// An order that a cancel of many meant has ended, or cannot be cancelled.
    fn cancel_ended(&mut self, hub: &mut Hub, client_order_id: &str, status: OrderStatus) {
        for all in &mut self.cancel_alls {
            if all.waiting.remove(client_order_id) {
                let counted = match status {
                    OrderStatus::Canceled => &mut all.canceled,
                    _ => &mut all.failed,
                };
                *counted += 1;
            }
        }
        self.end_cancel_alls(hub);
    }

    fn end_cancel_alls(&mut self, hub: &mut Hub) {
        let (ended, waiting): (Vec<_>, Vec<_>) =
            self.cancel_alls.drain(..).partition(|all| all.waiting.is_empty());
        self.cancel_alls = waiting;
        for CancelAll { asked, all, canceled, failed, .. } in ended {
            let records = all.iter().filter_map(|id| self.orders.get(Origin::Client, id));
            let filter = ListFilter::default();
            let rows = records
                .filter_map(|order| {
                    let record = &order.record;
                    filter.row(record, self.instrument(record.request.instrument))
                })
                .take(LIST_ROWS_MAX);
            let request_id = Text::Borrowed(&*asked.request_id);
            if !all.is_empty() {
                let orders = rows.collect();
                let (request_id, more, next) = (request_id.clone(), None, None);
                let list = OrderListUpdated { request_id, orders, more, next };
                hub.tell(asked.client, &Event::OrderListUpdated(list));
            }
            let (canceled_count, failed_count) = (canceled, failed);
            let result = CancelAllResult { request_id, canceled_count, failed_count };
            hub.tell(asked.client, &Event::CancelAllResult(result));
        }
    }

    /// The account, as clients get it.
    pub(crate) fn buying_power<'a>(&'a self, request_id: Option<&'a str>) -> ReplayBuyingPower<'a> {
        ReplayBuyingPower {
            request_id: request_id.map(Text::Borrowed),
            strategy_id: Text::Borrowed(&self.setup.strategy_id),
            venue: VENUE.into(),
            cash: self.cash().into(),
            buying_power: self.cash().into(),
            equity: self.equity().into(),
            ts_event_ms: self.now.millis(),
        }
    }

    /// Money in the account.
    pub(crate) fn cash(&self) -> Money {
        self.account.account().cash
    }

    /// Money and what is held at the last prices.
    pub(crate) fn equity(&self) -> Money {
        let prices: Vec<Price> =
            self.markets.iter().map(|market| market.last_price.unwrap_or_default()).collect();
        self.account.equity(&prices)
    }

    /// The positions, as clients get them.
    pub(crate) fn positions<'a>(&'a self, request_id: Option<&'a str>) -> PositionsUpdated<'a> {
        let held = self.markets.iter().zip(self.account.positions());
        let row = |(market, position): (&'a Market, &Position)| {
            position_row(&market.instrument_id, position, market.last_price)
        };
        PositionsUpdated {
            request_id: request_id.map(Text::Borrowed),
            venue: VENUE.into(),
            positions: held.filter_map(row).collect(),
            ts_ms: self.now.millis(),
        }
    }

    /// The newest bars of each instrument; the last one may still grow.
    pub(crate) fn last_bars(&self) -> Vec<KlineUpdate<'_>> {
        let told = |market: &'_ Market| {
            let growing = market.bar.map(|bar| wire::made_bar(&bar.so_far(), false));
            let klines: Vec<Kline> = market.last_bars.iter().cloned().chain(growing).collect();
            (!klines.is_empty()).then_some(klines)
        };
        let markets = self.markets.iter();
        let with_bars = markets.filter_map(|market| Some((market, told(market)?)));
        with_bars.map(|(market, klines)| market.kline(self.setup.interval, klines)).collect()
    }

    /// The last trade of each instrument.
    pub(crate) fn last_trades(&self) -> Vec<ipc::Trades<'_>> {
        let markets = self.markets.iter();
        let last = markets.filter_map(|market| Some((market, market.last_trade.clone()?)));
        last.map(|(market, row)| market.head.trades(vec![row])).collect()
    }

    /// Tells the bars that grow as final: nothing comes after them.
    pub(crate) fn end_bars(&mut self, hub: &mut Hub) {
        for market in &mut self.markets {
            if let Some(bar) = market.bar.take() {
                let kline = wire::made_bar(&bar.so_far(), true);
                push_newest(&mut market.last_bars, SESSION_BARS_MAX, kline.clone());
                let update = Event::KlineUpdate(market.kline(KlineInterval::Minute, vec![kline]));
                hub.tell_ticker(&market.head.ticker, &update, None);
            }
        }
    }
}
