//! The present run: its events while it goes on, and the answers to commands about it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use domain::adjustment::ExRights;
use domain::market::{Bar, BarGranularity, Trade};
use domain::strategy::{LogLine, NarrativeRecord, Signal};
use domain::{
    InstrumentIx, JstDate, Money, OrderCommand, OrderEvent, OrderEventKind, OrderFilter,
    OrderRecord, OrderSide, OrderStatus, Origin, Price, Quantity, ReasonCode, Rejection, ShortText,
    TsNanos,
};
use exchange::{CashAccount, PositionChange};
use ipc::{ExecutionConfig, Kline, KlineInterval, Multiplier, TradeRow};
use live::feed::FeedSender;
use marketdata::GrowingBar;
use orders::event::DeskOrderEvent;
use replay::RunCommand;
use results::rows::{ClientCommand, EquityRow, FillRow, PositionEvent};
use results::sink::Record;

use crate::history::{Past, Reached, push_newest};
use crate::hub::Hub;
use crate::ledger::{Orders, PositionAverages, PositionLife, RequestContext};
use crate::limits::{
    EQUITY_POINTS_MAX, LIST_ROWS_MAX, LOG_LINES_MAX, LOG_LINES_TIME, NARRATIVE_BODY_CHARS_MAX,
    NARRATIVE_TITLE_CHARS_MAX, SESSION_BARS_MAX, SESSION_NARRATIVES_MAX, SESSION_SIGNALS_MAX,
    SIGNAL_NOTE_CHARS_MAX, SIGNAL_TAG_CHARS_MAX, UPDATE_EVERY,
};
use crate::outbox::{Newest, TradesHead};
use crate::present::orders::rejected;
use crate::present::{market as wire, session as present};
use crate::{ACCOUNT, VENUE};

/// The code of an order with tags that are not in the registry (P10).
const UNKNOWN_TAG: &str = "unknown_tag";

/// The venue of orders on paper, on the wire.
pub(crate) const PAPER: &str = "paper";

/// What a client wants done with its orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OrderAction {
    Submit,
    Modify,
    Cancel,
    CancelAll,
}

impl OrderAction {
    /// The command's name, as it was sent.
    pub(crate) const fn op(self) -> &'static str {
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
    pub(crate) request: RequestContext,
    pub(crate) action: OrderAction,
    /// What is odd about a new order, in words.
    pub(crate) warning: Option<String>,
}

/// A cancel of many that is not over.
#[derive(Debug)]
struct CancelAll {
    request: RequestContext,
    waiting: BTreeSet<ShortText>,
    all: BTreeSet<ShortText>,
    canceled: u64,
    failed: u64,
}

/// What a run trades.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunKind {
    /// Past data.
    Replay,
    /// The live market, at the simulated exchange (specification 4, P119).
    Paper,
    /// The live market, with orders at the web broker (specification 4, P91).
    Real,
}

impl RunKind {
    /// The venue of its orders, on the wire.
    pub(crate) const fn venue(self) -> &'static str {
        match self {
            Self::Replay => VENUE,
            Self::Paper => PAPER,
            Self::Real => crate::live::WEB_BROKER,
        }
    }

    /// The account of its orders, on the wire.
    pub(crate) const fn account(self) -> &'static str {
        match self {
            Self::Replay => ACCOUNT,
            Self::Paper => "PAPER",
            Self::Real => "LIVE",
        }
    }
}

/// How a run takes commands.
#[derive(Debug)]
pub(crate) enum RunControl {
    /// Between two rows of a replay.
    Replay(Sender<RunCommand>),
    /// By the live strategy's feed, which only knows an end.
    Live(FeedSender),
}

impl RunControl {
    /// Gives a replay a command. A run that is over takes no more.
    pub(crate) fn send(&self, command: RunCommand) {
        if let Self::Replay(commands) = self {
            let _ = commands.send(command);
        }
    }

    /// Ends the run.
    pub(crate) fn stop(&self) {
        match self {
            Self::Replay(_) => self.send(RunCommand::Stop),
            Self::Live(feed) => feed.stop(),
        }
    }
}

/// What a run is made of.
#[derive(Debug)]
pub(crate) struct RunSetup {
    pub(crate) kind: RunKind,
    pub(crate) run_id: String,
    pub(crate) strategy_id: String,
    pub(crate) request: RequestContext,
    pub(crate) multiplier: Multiplier,
    pub(crate) instruments: Vec<String>,
    pub(crate) dates: (JstDate, JstDate),
    pub(crate) cash: Money,
    /// Shares in a trading unit of each instrument.
    pub(crate) lots: Vec<Quantity>,
    pub(crate) rows_total: u64,
    /// Span of the bars that clients get.
    pub(crate) interval: KlineInterval,
    /// The strategy's parameters, as they were given.
    pub(crate) parameters: BTreeMap<String, serde_json::Value>,
    /// What a replay reads, by the instruments.
    pub(crate) past: Vec<Past>,
    pub(crate) control: RunControl,
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
    pub(crate) account: CashAccount,
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
    /// The order that the present fill has ended. What follows from its end goes out after all that belongs to the
    /// fill.
    ended_by_fill: Option<ShortText>,
    /// The newest fills and the newest marks of the strategy, for clients that come later.
    pub(crate) fills: VecDeque<FillRow>,
    pub(crate) signals: VecDeque<(TsNanos, Signal)>,
    pub(crate) narratives: VecDeque<(TsNanos, NarrativeRecord)>,
    /// The equity as clients were told it, and at the end of each minute: a replay knows the minutes of a day at the
    /// day's end.
    told_equity: EquityCurve,
    minutes: EquityCurve,
    log: LogGate,
    pub(crate) markets: Vec<Market>,
}

/// A fill that clients do not know yet. It comes in several records of the run. Clients get the order's event, the
/// marker, the position and the account as one. So no answer to another command comes between, and none knows a half
/// of it (specification 4, P78).
#[derive(Debug)]
struct Filled {
    event: OrderEvent,
    row: Option<FillRow>,
}

/// The first characters of a text.
fn cut(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(end, _)| &text[..end])
}

/// One instrument of a run.
#[derive(Debug)]
pub(crate) struct Market {
    pub(crate) head: Arc<TradesHead>,
    pub(crate) instrument_id: String,
    pub(crate) life: PositionLife,
    pub(crate) last_price: Option<Price>,
    /// The last price before the present day.
    pub(crate) base_price: Option<Price>,
    /// The present day, in days since 1970 in Japan.
    jst_day: Option<u64>,
    /// Rows so far.
    pub(crate) sequence: u64,
    pub(crate) bar: Option<GrowingBar>,
    bar_sent: Duration,
    /// The newest bars that are final.
    pub(crate) last_bars: VecDeque<Kline>,
    pub(crate) last_trade: Option<TradeRow>,
}

impl Market {
    /// Takes the price of the next row.
    fn take_price(&mut self, at: TsNanos, price: Price) {
        self.sequence += 1;
        let jst_day = at.jst_day();
        if self.jst_day != Some(jst_day) {
            self.base_price = self.last_price.or(self.base_price);
            self.jst_day = Some(jst_day);
        }
        self.last_price = Some(price);
    }

    /// Names the present position, or the last one.
    pub(crate) fn position_id(&self) -> String {
        format!("{}-{}", self.instrument_id, self.life.number)
    }
}

/// The account over the time of a run. Once there are [`EQUITY_POINTS_MAX`] points, every second one stays.
#[derive(Debug)]
pub(crate) struct EquityCurve {
    points: Vec<EquityRow>,
    /// Of so many rows one is a point.
    every: u64,
    seen: u64,
}

impl Default for EquityCurve {
    fn default() -> Self {
        Self { points: Vec::new(), every: 1, seen: 0 }
    }
}

impl EquityCurve {
    fn take(&mut self, row: &EquityRow) {
        if self.points.len() == EQUITY_POINTS_MAX {
            let mut at = 0;
            self.points.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.every *= 2;
        }
        if self.seen.is_multiple_of(self.every) {
            self.points.push(*row);
        }
        self.seen += 1;
    }
}

/// Which log lines of a strategy clients get: [`LOG_LINES_MAX`] within [`LOG_LINES_TIME`].
#[derive(Debug, Default)]
struct LogGate {
    since: Duration,
    sent: u64,
    left_out: u64,
}

impl LogGate {
    /// Whether a line is sent, and how many were not before it.
    fn pass(&mut self, wall: Duration) -> Option<u64> {
        if wall.saturating_sub(self.since) >= LOG_LINES_TIME {
            (self.since, self.sent) = (wall, 0);
        }
        if self.sent == LOG_LINES_MAX {
            self.left_out += 1;
            return None;
        }
        self.sent += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

impl Run {
    pub(crate) fn new(setup: RunSetup) -> Self {
        let bases = setup.past.iter().map(|past| past.base_price).chain(std::iter::repeat(None));
        let market = |(id, base_price): (&String, Option<Price>)| Market {
            head: Arc::new(TradesHead {
                venue: setup.kind.venue().to_owned(),
                exchange: "TSE".to_owned(),
                ticker: crate::ticker(id).to_owned(),
                instrument_id: Some(id.clone()),
                stream_session_id: setup.run_id.clone(),
            }),
            instrument_id: id.clone(),
            life: PositionLife::default(),
            last_price: None,
            base_price,
            jst_day: None,
            sequence: 0,
            bar: None,
            bar_sent: Duration::ZERO,
            last_bars: VecDeque::new(),
            last_trade: None,
        };
        let now = crate::ledger::midnight(setup.dates.0);
        Self {
            markets: setup.instruments.iter().zip(bases).map(market).collect(),
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
            narratives: VecDeque::new(),
            told_equity: EquityCurve::default(),
            minutes: EquityCurve::default(),
            log: LogGate::default(),
            setup,
        }
    }

    /// The id of an instrument, as it is in the run's list.
    pub(crate) fn instrument(&self, instrument: InstrumentIx) -> &str {
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
        hub.broadcast(&present::run_started(self, execution));
    }

    /// Tells clients a record of the run. `wall` is the time since the engine's start.
    pub(crate) fn take(&mut self, hub: &mut Hub, record: Record<'_>, wall: Duration) {
        match record {
            Record::Trade(trade) if self.setup.kind == RunKind::Real => {
                self.trade(hub, trade, wall)
            }
            Record::Bar(bar) if self.setup.kind == RunKind::Real => self.bar(hub, bar),
            Record::Signal(ts_event, signal) => self.signal(hub, ts_event, signal),
            Record::Narrative(ts_event, record) => self.narrative(hub, ts_event, record),
            Record::Log(line) => self.log_line(hub, line, wall),
            // Of its orders the desk tells clients (see `Self::broker_event`).
            _ if self.setup.kind == RunKind::Real => {}
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
                    self.send_fill(hub);
                }
            }
            Record::Position(event) => {
                self.send_fill(hub);
                self.position(hub, event);
            }
            Record::Split { ex_rights, price } => self.split(hub, ex_rights, price),
            Record::BuyingPower(row) => {
                debug_assert_eq!(row.cash, self.account.account().cash, "one account, two books");
                self.send_buying_power(hub);
            }
            Record::Equity(row) => self.minutes.take(row),
            Record::ClientRejection { client_order_id, rejection, .. } => {
                let Some(WaitingCommand { request, .. }) = self.current.clone() else { return };
                self.reject(hub, client_order_id, rejection, &request);
            }
            Record::ClientWarning { client_order_id, text, .. } => {
                self.client_warning(hub, client_order_id, text);
            }
            Record::Order(_)
            | Record::RoundTrip(_)
            | Record::Mark(_)
            | Record::Day(_)
            | Record::ClientCommand(_) => {}
        }
    }

    fn trade(&mut self, hub: &mut Hub, trade: &Trade, wall: Duration) {
        self.rows_done += 1;
        self.now = trade.ts_event;
        let Some(market) = self.markets.get_mut(usize::from(trade.instrument.0)) else { return };
        market.take_price(trade.ts_event, trade.price);
        if self.setup.kind != RunKind::Replay {
            // Clients have it from its venue.
            return;
        }
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
                let update = present::bar(market, KlineInterval::Minute, kline);
                hub.publish(&market.head.ticker, &update, None);
            }
            hub.publish_trade(&market.head, &row, wall);
            if let Some(bar) = market.bar
                && (is_first || wall.saturating_sub(market.bar_sent) >= UPDATE_EVERY)
            {
                market.bar_sent = wall;
                let newest = Some(Newest::GrowingBar(usize::from(trade.instrument.0)));
                let kline = wire::made_bar(&bar.so_far(), false);
                let update = present::bar(market, KlineInterval::Minute, kline);
                hub.publish(&market.head.ticker, &update, newest);
            }
        }
        market.last_trade = Some(row);
    }

    fn bar(&mut self, hub: &mut Hub, bar: &Bar) {
        self.rows_done += 1;
        self.now = bar.ts_event;
        let Some(market) = self.markets.get_mut(usize::from(bar.instrument.0)) else { return };
        market.take_price(bar.ts_event, bar.close);
        if self.setup.kind != RunKind::Replay {
            return;
        }
        let (interval, kline) = (wire::interval(bar.granularity), wire::file_bar(bar));
        push_newest(&mut market.last_bars, SESSION_BARS_MAX, kline.clone());
        hub.publish(&market.head.ticker, &present::bar(market, interval, kline), None);
    }

    fn order_event(&mut self, hub: &mut Hub, event: &OrderEvent) {
        self.now = self.now.max(event.ts_event);
        let is_of_client = event.origin == Origin::Client;
        let request = self.answered(event);
        let request_id = request.as_ref().map(|request| &*request.request_id);
        hub.broadcast(&present::order_event(self, event, request_id));
        if let (true, OrderEventKind::Accepted, Some(request)) =
            (is_of_client, &event.kind, &request)
            && let Some(order) = self.orders.get(event.origin, &event.client_order_id)
        {
            let warning = order.warning.as_ref();
            let created = present::order_created(&request.request_id, event, warning);
            hub.send(request.client, &created);
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

    /// The run with real orders begins with this position (specification 4, P103).
    pub(crate) fn carry(&mut self, instrument: InstrumentIx, quantity: i64, cost: Money) {
        self.account.carry(instrument, quantity, cost);
        if let Some(market) = self.markets.get_mut(usize::from(instrument.0)) {
            market.life.carry(quantity, cost);
        }
    }

    /// Takes an event of one of the strategy's orders at the broker, which clients have got. Tells them what a fill does
    /// to its position (specification 4, P102), and gives the fill.
    pub(crate) fn broker_event(
        &mut self,
        hub: &mut Hub,
        event: &DeskOrderEvent,
    ) -> Option<FillRow> {
        let is_it = |id: &String| **id == *event.instrument_id;
        let place = self.setup.instruments.iter().position(is_it)?;
        // A run has at most 4 instruments.
        let instrument = InstrumentIx(place as u16);
        let (_, mut of_order) = event.for_sender()?;
        of_order.instrument = instrument;
        if let OrderEventKind::Submitted(request) | OrderEventKind::Updated(request) =
            &mut of_order.kind
        {
            Arc::make_mut(request).instrument = instrument;
        }
        self.now = self.now.max(event.ts_event);
        let _ = self.orders.take(&of_order);
        let OrderEventKind::Filled(fill) = &of_order.kind else { return None };
        let row = FillRow::of(&of_order, fill, Money::ZERO);
        hub.broadcast(&present::execution(self, &row));
        push_newest(&mut self.fills, LIST_ROWS_MAX, row.clone());
        let realised_before = self.account.account().realised_pnl;
        let change =
            self.account.book(instrument, row.side, row.price, row.quantity, row.commission);
        let market = &mut self.markets[place];
        market.life.fill(&row, change == PositionChange::Opened);
        let market = &self.markets[place];
        let averages = market.life.averages();
        match change {
            PositionChange::Opened => {
                let event = PositionEvent {
                    ts_event: row.ts_event,
                    instrument,
                    opened: true,
                    entry_side: row.side,
                    quantity: self.account.held(instrument),
                    price: row.price,
                    realised_pnl: None,
                    client_order_id: row.client_order_id.clone(),
                };
                hub.broadcast(&present::position_opened(self, market, &event));
            }
            PositionChange::Closed => {
                let realised = market
                    .life
                    .result()
                    .unwrap_or_else(|| self.account.account().realised_pnl - realised_before);
                let event =
                    present::position_closed(self, market, averages, realised, row.ts_event);
                hub.broadcast(&event);
            }
            PositionChange::Changed => {}
        }
        Some(row)
    }

    /// Takes an event of an order. Gives the command that it answers.
    fn answered(&mut self, event: &OrderEvent) -> Option<RequestContext> {
        let current = self.current.clone().filter(|_| event.origin == Origin::Client);
        let Some(order) = self.orders.take(event) else {
            // Rejected before its first event.
            let submit = current.filter(|current| current.action == OrderAction::Submit);
            return submit.map(|current| current.request);
        };
        if let Some(WaitingCommand { request, action, warning }) = current {
            match (&event.kind, action) {
                (OrderEventKind::Submitted(_), OrderAction::Submit) => {
                    order.submit = Some(request);
                    order.warning = warning.map(|text| (UNKNOWN_TAG, text));
                }
                (OrderEventKind::PendingUpdate(_), OrderAction::Modify) => {
                    order.modify = Some(request);
                }
                (OrderEventKind::PendingCancel, _) => order.cancel = Some(request),
                // Events that another command or the market has led to.
                _ => {}
            }
        }
        let has_number = order.record.venue_order_id.is_some();
        match &event.kind {
            OrderEventKind::Submitted(_) | OrderEventKind::Accepted => order.submit.clone(),
            OrderEventKind::PendingUpdate(_) => order.modify.clone(),
            OrderEventKind::Updated(_) => order.modify.take(),
            OrderEventKind::PendingCancel => order.cancel.clone(),
            OrderEventKind::Canceled if has_number => order.cancel.clone(),
            OrderEventKind::Rejected(_) if has_number => order.modify.clone(),
            OrderEventKind::Expired(_) if has_number => None,
            // Of an order that never came to the venue it is the only answer.
            OrderEventKind::Canceled | OrderEventKind::Rejected(_) | OrderEventKind::Expired(_) => {
                order.submit.clone()
            }
            OrderEventKind::Filled(_) => None,
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
                if let Some(WaitingCommand { request, .. }) = self.current.clone() {
                    self.reject(hub, client_order_id, &rejection, &request);
                }
            }
            // It is answered with the end of the run.
            OrderCommand::CancelAll { .. } => {}
        }
    }

    /// The run has failed as such: rejects the commands that still wait for an answer.
    pub(crate) fn reject_unanswered(&mut self, hub: &mut Hub, why: &str) {
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
            for request in unanswered {
                self.reject(hub, &id, &rejection, &request);
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
        if let Some(request) = late
            && !self.cancel_alls.iter().any(|all| all.waiting.contains(client_order_id))
        {
            let text = format!("TOO_LATE: `{client_order_id}` is {status} already");
            let rejection = Rejection::new(ReasonCode::VenueRejected, text);
            self.reject(hub, client_order_id, &rejection, &request);
        }
        self.cancel_ended(hub, client_order_id, status);
    }

    /// Sends the fill that waits, without the position that it opens or closes. If the run failed in the middle of
    /// it, that is only a part.
    pub(crate) fn send_fill(&mut self, hub: &mut Hub) {
        let Some(Filled { event, row }) = self.filled.take() else { return };
        self.order_event(hub, &event);
        if let Some(row) = &row {
            self.fill(hub, row);
        }
    }

    fn fill(&mut self, hub: &mut Hub, fill: &FillRow) {
        hub.broadcast(&present::execution(self, fill));
        push_newest(&mut self.fills, LIST_ROWS_MAX, fill.clone());
        let FillRow { instrument, side, price, quantity, commission, .. } = *fill;
        let change = self.account.book(instrument, side, price, quantity, commission);
        if let Some(market) = self.markets.get_mut(usize::from(instrument.0)) {
            market.life.fill(fill, change == PositionChange::Opened);
        }
        if change == PositionChange::Changed {
            hub.broadcast(&present::positions(self, None));
            self.end_fill(hub);
        }
    }

    /// Sends the last event of a fill, and then what follows from the end of its order.
    fn end_fill(&mut self, hub: &mut Hub) {
        self.send_buying_power(hub);
        if let Some(id) = self.ended_by_fill.take() {
            self.answer_late(hub, &id, OrderStatus::Filled);
        }
    }

    fn send_buying_power(&mut self, hub: &mut Hub) {
        let (cash, equity) = (self.cash(), self.equity());
        self.told_equity.take(&EquityRow { ts_event: self.now, cash, equity });
        hub.broadcast_newest(&present::buying_power(self, None), Some(Newest::BuyingPower));
    }

    fn position(&mut self, hub: &mut Hub, event: &PositionEvent) {
        let Some(market) = self.markets.get(usize::from(event.instrument.0)) else { return };
        let event = if event.opened {
            present::position_opened(self, market, event)
        } else {
            let realized_pnl = event.realised_pnl.unwrap_or_default();
            let averages = market.life.averages();
            present::position_closed(self, market, averages, realized_pnl, event.ts_event)
        };
        hub.broadcast(&event);
        self.end_fill(hub);
    }

    /// Shares were split: what is held is another number, or nothing but money.
    fn split(&mut self, hub: &mut Hub, ex_rights: &ExRights, price: Price) {
        let at = ex_rights.instrument;
        let held = self.account.held(at);
        let paid = self.account.adjust(at, ex_rights.adjustment, price);
        let Some(market) = self.markets.get_mut(usize::from(at.0)) else { return };
        market.last_price = Some(price);
        let averages = market.life.averages();
        let closed = market.life.split(ex_rights.adjustment, paid);
        if held == 0 {
            return;
        }
        if self.account.held(at) == 0 {
            let market = &self.markets[usize::from(at.0)];
            let averages = PositionAverages { close: closed.average_close, ..averages };
            let realized_pnl = closed.realized_pnl;
            let event = present::position_closed(self, market, averages, realized_pnl, self.now);
            hub.broadcast(&event);
        } else {
            hub.broadcast(&present::positions(self, None));
        }
        self.send_buying_power(hub);
    }

    fn narrative(&mut self, hub: &mut Hub, ts_event: TsNanos, record: &NarrativeRecord) {
        let record = NarrativeRecord {
            client_order_id: record.client_order_id.clone(),
            title: cut(&record.title, NARRATIVE_TITLE_CHARS_MAX).to_owned(),
            body: cut(&record.body, NARRATIVE_BODY_CHARS_MAX).to_owned(),
        };
        hub.broadcast(&present::narrative(self, ts_event, &record));
        push_newest(&mut self.narratives, SESSION_NARRATIVES_MAX, (ts_event, record));
    }

    fn log_line(&mut self, hub: &mut Hub, line: &LogLine, wall: Duration) {
        if let Some(left_out) = self.log.pass(wall) {
            let message = cut(&line.message, NARRATIVE_BODY_CHARS_MAX);
            hub.broadcast(&present::log_line(self, line, message, left_out));
        }
    }

    fn signal(&mut self, hub: &mut Hub, ts_event: TsNanos, signal: &Signal) {
        let cut = |text: &Option<String>, most: usize| {
            text.as_deref().map(|text| cut(text, most).to_owned())
        };
        let signal = Signal {
            tag: cut(&signal.tag, SIGNAL_TAG_CHARS_MAX),
            note: cut(&signal.note, SIGNAL_NOTE_CHARS_MAX),
            ..signal.clone()
        };
        hub.broadcast(&present::signal(self, ts_event, &signal));
        push_newest(&mut self.signals, SESSION_SIGNALS_MAX, (ts_event, signal));
    }

    /// A command of a client had no effect, or a tag of its order has no meaning.
    fn client_warning(&mut self, hub: &mut Hub, client_order_id: &str, text: &str) {
        let Some(WaitingCommand { request, action, .. }) = self.current.clone() else { return };
        let order = self.orders.get(Origin::Client, client_order_id);
        let status = order.map(|order| order.record.status);
        match action {
            // The answer to the order has it.
            OrderAction::Submit => return,
            // The cancel that is under way ends the order, and its end is counted.
            OrderAction::CancelAll if status == Some(OrderStatus::PendingCancel) => return,
            OrderAction::Modify | OrderAction::Cancel | OrderAction::CancelAll => {}
        }
        let text = match text.split_once(": ") {
            Some(("ORDER_STATUS_UNKNOWN", rest)) => rest,
            _ => text,
        };
        let is_numbered = status.is_some_and(|status| status != OrderStatus::Submitted);
        let rejection = if is_numbered {
            Rejection::new(ReasonCode::VenueRejected, format!("TOO_LATE: {text}"))
        } else {
            Rejection::new(ReasonCode::OrderStatusUnknown, format!("CLIENT_ORDER_ID: {text}"))
        };
        self.reject(hub, client_order_id, &rejection, &request);
        if action == OrderAction::CancelAll {
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
        request: &RequestContext,
    ) {
        let order = self.orders.get(Origin::Client, client_order_id);
        let place = self.order_place(order.map(|order| &order.record));
        let context = present::of_client_order(Some(&request.request_id), place);
        let rejection = Cow::Borrowed(rejection);
        hub.broadcast(&rejected(Some(client_order_id), rejection, self.now, context));
    }

    /// The instrument and the side of an order.
    pub(crate) fn order_place(
        &self,
        order: Option<&OrderRecord>,
    ) -> (Option<&str>, Option<OrderSide>) {
        let request = order.map(|order| &order.request);
        let instrument = request.map(|request| self.instrument(request.instrument));
        (instrument, request.map(|request| request.side))
    }

    /// The run takes a client's command. Returns whether the exchange gets it.
    pub(crate) fn begin(&mut self, hub: &mut Hub, command: &OrderCommand) -> bool {
        self.current = self.waiting.pop_front();
        let Some(WaitingCommand { request, .. }) = self.current.clone() else { return true };
        match command {
            OrderCommand::Modify { client_order_id, change } => {
                let order = self.orders.get(Origin::Client, client_order_id);
                let filled = order.map(|order| order.record.filled).unwrap_or_default();
                let is_open = order.is_some_and(|order| !order.record.status.is_final());
                if is_open && change.quantity.is_some_and(|quantity| quantity <= filled) {
                    let text = format!("NEW_QUANTITY: {filled} shares are filled already");
                    let rejection = Rejection::new(ReasonCode::ValidationError, text);
                    self.reject(hub, client_order_id, &rejection, &request);
                    return false;
                }
            }
            OrderCommand::CancelAll { instrument, side } => {
                let all: BTreeSet<ShortText> =
                    self.orders.open_of_clients(*instrument, *side).into_iter().collect();
                let waiting = all.clone();
                let (canceled, failed) = (0, 0);
                self.cancel_alls.push(CancelAll { request, waiting, all, canceled, failed });
                self.end_cancel_alls(hub);
            }
            OrderCommand::Submit(_) | OrderCommand::Cancel { .. } => {}
        }
        true
    }

    /// An order of a cancel of many has ended.
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
        let filter = OrderFilter::default();
        for CancelAll { request, all, canceled, failed, .. } in ended {
            let records = all.iter().filter_map(|id| self.orders.get(Origin::Client, id));
            let rows = records
                .filter_map(|order| present::listed_order(&filter, self, &order.record))
                .take(LIST_ROWS_MAX);
            let RequestContext { client, request_id } = request;
            if !all.is_empty() {
                hub.send(client, &present::order_list(&request_id, rows.collect(), None, None));
            }
            hub.send(client, &present::all_canceled(&request_id, canceled, failed));
        }
    }

    /// The account over time: as clients were told it while a replay goes on, else by the minutes.
    pub(crate) fn equity_curve(&self, goes_on: bool) -> &[EquityRow] {
        match self.setup.kind {
            RunKind::Replay if goes_on => &self.told_equity.points,
            _ => &self.minutes.points,
        }
    }

    /// What a replay has read of a ticker, and how far it has come; nothing where it does not trade it.
    pub(crate) fn past(&self, ticker: &str) -> Option<(Past, Reached)> {
        let at = self.markets.iter().position(|market| market.head.ticker == ticker)?;
        let (past, market) = (self.setup.past.get(at)?, &self.markets[at]);
        let reached = Reached {
            run_id: self.setup.run_id.clone(),
            interval: self.setup.interval,
            rows: market.sequence,
            is_growing: market.bar.is_some(),
        };
        Some((past.clone(), reached))
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

    /// What the run came to: profit or loss in a live one (specification 4, P87), equity in a replay.
    pub(crate) fn result(&self) -> Money {
        match self.setup.kind {
            RunKind::Replay => self.equity(),
            RunKind::Paper => self.equity() - self.setup.cash + self.account.account().commission,
            // What was not traded yet is worth what it cost.
            RunKind::Real => {
                let open = self.markets.iter().zip(self.account.positions());
                let open = open.map(|(market, held)| match market.last_price {
                    Some(price) => Money::from_units(price.units() * held.quantity) - held.cost,
                    None => Money::ZERO,
                });
                self.account.account().realised_pnl + open.sum()
            }
        }
    }

    /// Sends the growing bars as final ones: no trade comes after them.
    pub(crate) fn end_bars(&mut self, hub: &mut Hub) {
        for market in &mut self.markets {
            if let Some(bar) = market.bar.take() {
                let kline = wire::made_bar(&bar.so_far(), true);
                push_newest(&mut market.last_bars, SESSION_BARS_MAX, kline.clone());
                let update = present::bar(market, KlineInterval::Minute, kline);
                hub.publish(&market.head.ticker, &update, None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A long run has as many points as a short one: every second, fourth and so on.
    #[test]
    fn an_equity_curve_has_a_limit() {
        let mut curve = EquityCurve::default();
        let minutes = 5 * EQUITY_POINTS_MAX as u64;
        for minute in 0..minutes {
            let equity = Money::from_yen(i64::try_from(minute).unwrap());
            let ts_event = TsNanos::from_nanos(minute);
            curve.take(&EquityRow { ts_event, cash: Money::ZERO, equity });
            assert!(curve.points.len() <= EQUITY_POINTS_MAX);
        }
        let times: Vec<u64> = curve.points.iter().map(|row| row.ts_event.nanos()).collect();
        let expected: Vec<u64> = (0..minutes).step_by(8).collect();
        assert_eq!(times, expected);
    }

    /// Within a second clients get so many lines; the next line says how many they did not get.
    #[test]
    fn log_lines_have_a_limit_and_are_counted() {
        let mut gate = LogGate::default();
        for at in 0..LOG_LINES_MAX + 7 {
            let sent = gate.pass(Duration::from_millis(at));
            assert_eq!(sent, (at < LOG_LINES_MAX).then_some(0), "{at}");
        }
        assert_eq!(gate.pass(LOG_LINES_TIME), Some(7));
        assert_eq!(gate.pass(LOG_LINES_TIME), Some(0));
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!((cut("日本語", 2), cut("日本", 2), cut("", 2)), ("日本", "日本", ""));
    }
}
