//! What the broker holds: session, orders, account, market, events. Everything is behind one lock, and
//! nothing here waits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use domain::execution::ExecutionClient;
use domain::instrument::DailyLimits;
use domain::market::Trade;
use domain::session::TradingHours;
use domain::{
    ExchangeCalendar, Fill, Instrument, InstrumentId, InstrumentIx, JstDate, Money, OrderCommand,
    OrderEventKind, OrderRequest, OrderSide, OrderType, Origin, Price, Quantity, ShortText,
    TimeInForce, TsNanos, clock,
};
use exchange::{Exchange, ExecutionModel, Preset};
use secrecy::ExposeSecret as _;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use super::ServerError;
use super::config::{Config, Issue};
use super::days::{STANDING_TIME, moved_hours};
use super::event_log::EventLog;
use super::faults::Faults;
use super::late_lists::LateBooks;
use super::ledger::{Ledger, value};
use super::limits::{ISSUES_MAX, REQUESTS_KEPT_MAX};
use super::login_key::LoginKey;
use super::order::{FillRow, Order, State};
use super::times;

/// Shares of each issue that the house holds, so that margin sales find a seller: the account's own
/// limits are kept by the ledger.
const HOUSE_SHARES: u64 = 50_000_000;
/// Cash of the house: the exchange never refuses for money.
const HOUSE_CASH: Money = Money::from_yen(800_000_000_000_000);
/// The highest base price: the house can pay for its shares of every issue.
const BASE_PRICE_MAX: Price = Price::from_yen(200_000);

/// The session of the last login.
pub(crate) struct Session {
    /// The part of the virtual addresses that nobody can guess.
    pub(crate) token: String,
    pub(crate) last_p_no: u64,
}

/// Without the part that is secret.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("last_p_no", &self.last_p_no).finish_non_exhaustive()
    }
}

/// What is told to the connection of the stream of events.
#[derive(Debug)]
pub(crate) enum ToStream {
    /// End it; with a frame ST and this number where there is one.
    End(Option<i32>),
    /// Send this text as a frame.
    Raw(String),
}

/// The connection of the stream of events.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: u64,
    pub(crate) sender: UnboundedSender<ToStream>,
}

/// A request as it was seen.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) number: u64,
    pub(crate) at: String,
    /// `auth`, `request`, `master`, `price`, `event`.
    pub(crate) door: &'static str,
    pub(crate) fields: Value,
    /// ASCII characters that the broker's function would have encoded.
    pub(crate) left_plain: String,
    /// Another request of the session was being answered.
    pub(crate) overlaps: bool,
    pub(crate) outcome: String,
}

/// What is counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) requests: u64,
    pub(crate) overlaps: u64,
    pub(crate) in_flight: u64,
    pub(crate) logins: u64,
    pub(crate) stale_addresses: u64,
    pub(crate) p_no_refused: u64,
    pub(crate) streams: u64,
    pub(crate) streams_displaced: u64,
    pub(crate) client_frames: u64,
    pub(crate) client_pings: u64,
    pub(crate) trades: u64,
}

/// One day of an issue, for the price history.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DayPrices {
    pub(crate) date: JstDate,
    pub(crate) open: Price,
    pub(crate) high: Price,
    pub(crate) low: Price,
    pub(crate) close: Price,
    pub(crate) volume: u64,
}

/// The broker.
#[derive(Debug)]
pub(crate) struct Broker {
    pub(crate) config: Arc<Config>,
    /// `http://127.0.0.1:PORT`, and the same for WebSockets.
    pub(crate) port: u16,
    pub(crate) exchange: Exchange,
    pub(crate) calendar: ExchangeCalendar,
    pub(crate) issues: Vec<Issue>,
    pub(crate) last: Vec<Price>,
    pub(crate) limits: Vec<DailyLimits>,
    pub(crate) history: Vec<Vec<DayPrices>>,
    pub(crate) day: JstDate,
    pub(crate) hours: TradingHours,
    /// The market's own time: that of the trade or the command handled last.
    pub(crate) market_time: TsNanos,
    /// How far the broker's clock is ahead of the machine's.
    pub(crate) ahead_nanos: u64,
    /// Trading is over: of the day, or of the last file.
    pub(crate) is_over: bool,
    /// Its market, and its days, are those of a gateway.
    pub(crate) follows: bool,
    /// Trades of files may go on.
    pub(crate) market_runs: bool,
    pub(crate) orders: Vec<Order>,
    pub(crate) open: BTreeSet<usize>,
    pub(crate) ledger: Ledger,
    pub(super) late: LateBooks,
    pub(crate) log: EventLog,
    pub(crate) changed: watch::Sender<u64>,
    pub(crate) faults: Faults,
    pub(crate) session: Option<Session>,
    pub(crate) last_login: String,
    /// Of a login with a key.
    pub(crate) login_key: Option<LoginKey>,
    pub(crate) stream: Option<Stream>,
    pub(crate) seen: VecDeque<Seen>,
    pub(crate) counts: Counts,
    /// Answers of a `p_errno`, a `sResultCode`, by their text.
    pub(crate) told: BTreeMap<String, u64>,
}

impl Broker {
    pub(crate) fn new(
        config: Arc<Config>,
        port: u16,
        calendar: ExchangeCalendar,
        changed: watch::Sender<u64>,
        hours_of: Option<JstDate>,
    ) -> Result<Self, ServerError> {
        let login_key = config.private_key.as_ref().map(|key| LoginKey::of(key.expose_secret()));
        let login_key = login_key.transpose()?;
        let issues = config.issues.clone();
        check_issues(&issues)?;
        let instruments: Vec<Instrument> =
            issues.iter().map(instrument).collect::<Result<_, _>>()?;
        let model = ExecutionModel { latency_ns: 0, ..Preset::Optimistic.model() };
        let exchange =
            Exchange::new(model, &instruments, HOUSE_CASH).with_calendar(calendar.clone());
        let today = clock::wall_now().jst_date();
        let day = config
            .business_day
            .unwrap_or_else(|| calendar.business_day_from(today).unwrap_or(today));
        let mut ledger = Ledger::new(config.cash, config.margin_capacity);
        for (symbol, shares) in &config.holdings {
            let found = issues.iter().position(|issue| issue.symbol == *symbol);
            let issue = found.ok_or_else(|| {
                ServerError::Config(format!("{symbol} is held, but is not one of the issues"))
            })?;
            let cost = value(issues[issue].base, *shares);
            ledger.move_shares((issue, config.tax_account), Some(cost), *shares);
        }
        let mut faults = Faults::default();
        for fault in &config.faults {
            faults.add(fault.clone()).map_err(ServerError::Config)?;
        }
        let mut broker = Self {
            port,
            exchange,
            calendar,
            last: issues.iter().map(|issue| issue.base).collect(),
            limits: Vec::new(),
            history: vec![Vec::new(); issues.len()],
            issues,
            day,
            hours: moved_hours(day, hours_of),
            market_time: TsNanos::default(),
            ahead_nanos: 0,
            is_over: false,
            follows: false,
            market_runs: false,
            orders: Vec::new(),
            open: BTreeSet::new(),
            ledger,
            late: LateBooks::new(),
            log: EventLog::default(),
            changed,
            faults,
            session: None,
            last_login: String::new(),
            login_key,
            stream: None,
            seen: VecDeque::new(),
            counts: Counts::default(),
            told: BTreeMap::new(),
            config,
        };
        broker.start_day(broker.hours);
        broker.fill_house();
        if hours_of.is_none() {
            broker.stand_at(STANDING_TIME);
        }
        broker.keep_books();
        Ok(broker)
    }

    /// The house buys its shares, before anything of the first day.
    fn fill_house(&mut self) {
        for index in 0..self.issues.len() {
            let instrument = ix(index);
            let id = format!("house-{index}");
            let request = OrderRequest {
                client_order_id: ShortText::from(id.as_str()),
                instrument,
                side: OrderSide::Buy,
                order_type: OrderType::Market,
                quantity: Quantity::new(HOUSE_SHARES),
                price: None,
                trigger_price: None,
                trigger_type: None,
                time_in_force: TimeInForce::Day,
                expire_time: None,
                post_only: false,
                reduce_only: false,
                tags: Vec::new(),
            };
            self.exchange.execute(self.market_time, Origin::Client, OrderCommand::Submit(request));
            self.market_time = self.market_time.plus_nanos(1_000);
            let (price, quantity) = (self.issues[index].base, Quantity::new(HOUSE_SHARES));
            let ts_event = self.market_time;
            self.exchange.take_trade(&Trade { ts_event, instrument, price, quantity });
        }
        self.exchange.take_events();
    }

    /// Gives the exchange a command at an instant of its own, so that no trade shares it.
    pub(crate) fn execute(&mut self, command: OrderCommand) {
        self.market_time = self.market_time.plus_nanos(1_000);
        self.run_due(self.market_time);
        self.exchange.execute(self.market_time, Origin::Client, command);
    }

    /// Does what events of the exchange mean for orders, the account and the stream. Tells whether there
    /// were any.
    pub(crate) fn take_events(&mut self) -> bool {
        self.exchange.take_warnings();
        let events = self.exchange.take_events();
        let any = !events.is_empty();
        for event in events {
            let Some(index) = self.index_of(&event.client_order_id) else { continue };
            match event.kind {
                OrderEventKind::Filled(fill) => self.filled(index, &fill),
                // One that has lapsed is taken from the exchange and has its notice.
                OrderEventKind::Canceled if self.orders[index].state.is_final() => {}
                OrderEventKind::Canceled => self.ended(index, State::Canceled, "11"),
                OrderEventKind::Expired(_) => self.ended(index, State::Lapsed, "13"),
                OrderEventKind::Updated(request) => self.updated(index, &request),
                OrderEventKind::Rejected(_) => self.refuse(index),
                OrderEventKind::Submitted(_)
                | OrderEventKind::Accepted
                | OrderEventKind::PendingUpdate(_)
                | OrderEventKind::PendingCancel => {}
            }
        }
        self.exchange.take_done(|_| ());
        any
    }

    fn index_of(&self, id: &str) -> Option<usize> {
        let number: u64 = id.parse().ok()?;
        let index = usize::try_from(number.checked_sub(super::order::FIRST_NUMBER)?).ok()?;
        (index < self.orders.len()).then_some(index)
    }

    fn filled(&mut self, index: usize, fill: &Fill) {
        let (price, shares) = (fill.last_price, fill.last_quantity.shares());
        self.book_fill(index, price, shares);
    }

    /// Books a fill and tells it.
    pub(crate) fn book_fill(&mut self, index: usize, price: Price, shares: u64) {
        let time = times::second(self.clock());
        let order = &mut self.orders[index];
        let before = order.filled;
        order.filled += shares;
        order.filled_value += value(price, shares);
        order.fills.push(FillRow { price, quantity: shares, time });
        if order.filled >= order.terms.quantity {
            order.state = State::Filled;
            self.open.remove(&index);
        }
        self.ledger.book(&self.orders[index].terms, before, price, shares, self.day);
        self.notice(index, "12", Some((price, shares)));
    }

    fn ended(&mut self, index: usize, state: State, notice: &'static str) {
        self.orders[index].state = state;
        self.open.remove(&index);
        self.notice(index, notice, None);
    }

    /// An open order lapses before its time.
    pub(super) fn lapse(&mut self, index: usize) {
        self.ended(index, State::Lapsed, "13");
        let id = self.orders[index].number.to_string();
        self.execute(OrderCommand::Cancel { client_order_id: ShortText::from(id.as_str()) });
        self.take_events();
    }

    /// The exchange refuses an order that the broker has taken.
    pub(crate) fn refuse(&mut self, index: usize) {
        self.ended(index, State::Refused, "7");
    }

    fn updated(&mut self, index: usize, request: &OrderRequest) {
        let order = &mut self.orders[index];
        order.terms.quantity = request.quantity.shares();
        (order.terms.price, order.terms.trigger) = (request.price, request.trigger_price);
        order.terms.expires = request.expire_time.map(TsNanos::jst_date);
        order.state = State::Changed;
        self.notice(index, "10", None);
    }

    /// Lets the stream have every event so far.
    pub(crate) fn release(&mut self) {
        self.log.visible = self.log.events.len();
        self.changed.send_modify(|count| *count += 1);
    }

    /// Ends the stream's connection.
    pub(crate) fn end_stream(&mut self, told: Option<i32>) -> bool {
        let Some(stream) = self.stream.take() else { return false };
        stream.sender.send(ToStream::End(told)).is_ok()
    }

    /// Ends the session; its addresses are worth nothing from then on.
    pub(crate) fn end_session(&mut self) {
        self.session = None;
        self.end_stream(Some(2));
    }

    /// Puts down a request; tells its number.
    pub(crate) fn see(&mut self, mut seen: Seen) -> u64 {
        self.counts.requests += 1;
        seen.number = self.counts.requests;
        if self.seen.len() == REQUESTS_KEPT_MAX {
            self.seen.pop_front();
        }
        let number = seen.number;
        self.seen.push_back(seen);
        number
    }

    /// Notes what became of a request.
    pub(crate) fn outcome(&mut self, number: u64, outcome: impl Into<String>) {
        let outcome = outcome.into();
        *self.told.entry(outcome.clone()).or_default() += 1;
        let Some(seen) = self.seen.iter_mut().rev().find(|seen| seen.number == number) else {
            return;
        };
        if seen.outcome.is_empty() {
            seen.outcome = outcome;
        } else {
            seen.outcome = format!("{}; {outcome}", seen.outcome);
        }
    }

    pub(crate) fn issue_index(&self, symbol: &str) -> Option<usize> {
        self.issues.iter().position(|issue| issue.symbol == symbol)
    }
}

/// An instrument's number: there are few.
pub(crate) fn ix(index: usize) -> InstrumentIx {
    InstrumentIx(u16::try_from(index).unwrap_or(u16::MAX))
}

fn instrument(issue: &Issue) -> Result<Instrument, ServerError> {
    let id: InstrumentId = format!("{}.TSE", issue.symbol)
        .parse()
        .map_err(|error| ServerError::Config(format!("{}: {error}", issue.symbol)))?;
    Ok(Instrument { id, lot: issue.lot, ticks: issue.ticks })
}

fn check_issues(issues: &[Issue]) -> Result<(), ServerError> {
    let wrong = |text: String| Err(ServerError::Config(text));
    if issues.is_empty() || issues.len() > ISSUES_MAX {
        return wrong(format!(
            "there are {} issues; 1 to {ISSUES_MAX} can be traded",
            issues.len()
        ));
    }
    for (index, issue) in issues.iter().enumerate() {
        let symbol = &issue.symbol;
        if issues[..index].iter().any(|other| other.symbol == *symbol) {
            return wrong(format!("the list names {symbol} twice"));
        }
        if issue.lot.is_zero() {
            return wrong(format!("{symbol}: a lot has at least one share"));
        }
        let base = issue.base;
        if base <= Price::default() || base > BASE_PRICE_MAX {
            return wrong(format!(
                "{symbol}: the base price {base} is not 0.1 to {BASE_PRICE_MAX}"
            ));
        }
    }
    Ok(())
}
