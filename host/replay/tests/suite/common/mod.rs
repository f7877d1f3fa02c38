//! A scripted strategy and a market of a few trades, for tests of the rules.

pub(crate) mod feed;
pub(crate) mod folder;
pub(crate) mod paced;

use std::collections::BTreeMap;

use domain::OrderCommand;
use domain::account::PortfolioView;
use domain::fault::{Fault, Identity};
use domain::market::Window;
use domain::strategy::{Action, Capabilities, LogLine, Outcome, StrategyRuntime};
use domain::{
    AccountEvent, AccountEventKind, ExchangeCalendar, Instrument, InstrumentIx, JstDate, Money,
    OrderEvent, OrderEventKind, OrderModify, OrderRequest, OrderSide, OrderType, Price, Quantity,
    TickTable, TimeInForce, TsNanos,
};
use exchange::ExecutionModel;
use replay::{MarketDay, ReplayOptions, RunDriver, TradingDay, Unpaced, replay};
use results::RunResult;
use results::sink::InMemory;

/// One second.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// Trades of a market, times in seconds after 09:00 JST of a January day in 2025.
#[derive(Debug, Clone, Default)]
pub(crate) struct Market {
    pub(crate) ts: Vec<u64>,
    pub(crate) price: Vec<i64>,
    pub(crate) quantity: Vec<u64>,
}

/// Nanoseconds of `seconds` after 09:00 JST on a day of January 2025.
pub(crate) fn at(day: u32, seconds: f64) -> u64 {
    let date = JstDate::from_ymd_opt(2025, 1, day).unwrap();
    let open = TsNanos::from_jst(date, 9 * 3_600 * SECOND).unwrap().nanos();
    open + (seconds * 1e9) as u64
}

impl Market {
    /// Adds a trade.
    pub(crate) fn trade(mut self, day: u32, seconds: f64, price: &str, quantity: u64) -> Self {
        self.ts.push(at(day, seconds));
        self.price.push(price.parse::<Price>().unwrap().units());
        self.quantity.push(quantity);
        self
    }

    /// Trades of one day in January 2025, with times like `09:00:01.5`.
    pub(crate) fn at_times(mut self, day: u32, trades: &[(&str, &str, u64)]) -> Self {
        for (time, price, quantity) in trades {
            let parts: Vec<f64> = time.split(':').map(|part| part.parse().unwrap()).collect();
            let seconds = parts[0] * 3_600.0 + parts[1] * 60.0 + parts[2] - 9.0 * 3_600.0;
            self = self.trade(day, seconds, price, *quantity);
        }
        self
    }

    /// The eight trades that the peers were tried with.
    pub(crate) fn of_the_peers() -> Self {
        [
            (1.0, "1000", 300),
            (2.0, "1000.5", 200),
            (3.0, "1001", 100),
            (4.0, "1002", 500),
            (5.0, "1000", 400),
            (6.0, "998", 300),
            (7.0, "997", 1_000),
            (8.0, "1003", 700),
        ]
        .into_iter()
        .fold(Self::default(), |market, (second, price, quantity)| {
            market.trade(6, second, price, quantity)
        })
    }
}

/// Does what its script says: after the trade with a number (from 1), or at the start (0).
#[derive(Default)]
pub(crate) struct Script {
    pub(crate) steps: BTreeMap<u64, Vec<Action>>,
    /// Answers to fills, used up from the front.
    pub(crate) on_fill: Vec<Action>,
    /// What it asks for when it hears of the account.
    pub(crate) on_account: Vec<Action>,
    /// What it was told, in words.
    pub(crate) told: Vec<String>,
    /// Whether it asks for the account, and the cash that was held back whenever it saw a trade.
    pub(crate) asks: bool,
    pub(crate) reserved_seen: Vec<Money>,
    reserved: Money,
    seen: u64,
    in_window: u32,
}

impl Script {
    /// An action after the trade with a number.
    pub(crate) fn after(mut self, trade: u64, action: Action) -> Self {
        self.steps.entry(trade).or_default().push(action);
        self
    }
}

impl StrategyRuntime for Script {
    fn identity(&self) -> Identity {
        Identity { component: "script".into(), sha256: String::new() }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { portfolio: self.asks, ..Capabilities::default() }
    }

    fn init(&mut self, _: &str, _: &[Instrument]) -> Result<(), Box<Fault>> {
        Ok(())
    }

    fn start(&mut self, _: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        Ok(self.steps.remove(&0).unwrap_or_default())
    }

    fn advance(&mut self, window: Window<'_>, limit: u32) -> Result<Outcome, Box<Fault>> {
        if !matches!(window, Window::Resume) {
            self.in_window = 0;
        }
        while self.in_window < limit {
            self.in_window += 1;
            self.seen += 1;
            self.reserved_seen.push(self.reserved);
            if let Some(actions) = self.steps.remove(&self.seen) {
                return Ok(Outcome { reached: self.in_window, actions });
            }
        }
        Ok(Outcome { reached: self.in_window, actions: vec![] })
    }

    fn on_order_events(&mut self, events: &[OrderEvent]) -> Result<Vec<Action>, Box<Fault>> {
        let mut actions = vec![];
        for event in events {
            self.told.push(words(event));
            if matches!(event.kind, OrderEventKind::Filled(_)) && !self.on_fill.is_empty() {
                actions.push(self.on_fill.remove(0));
            }
        }
        Ok(actions)
    }

    fn on_account_events(&mut self, events: &[AccountEvent]) -> Result<Vec<Action>, Box<Fault>> {
        self.told.extend(events.iter().map(account_words));
        Ok(std::mem::take(&mut self.on_account))
    }

    fn stop(&mut self, _: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        Ok(self.steps.remove(&u64::MAX).unwrap_or_default())
    }

    fn set_portfolio(&mut self, view: &PortfolioView) {
        self.reserved = view.account.reserved;
    }

    fn take_log(&mut self) -> Vec<LogLine> {
        vec![]
    }
}

/// An event of the account in a few words: `SPLIT 2 for 1: 400 held, 0 paid, last 501 t=-32400`.
pub(crate) fn account_words(event: &AccountEvent) -> String {
    let AccountEventKind::Split(split) = &event.kind;
    let last = split.last_price.map_or("none".to_owned(), |price| price.to_string());
    let second = event.ts_event.jst_nanos_of_day() as f64 / 1e9 - 9.0 * 3_600.0;
    let (what, held, paid) = (split.adjustment, split.quantity, split.cash_paid);
    format!("SPLIT {what}: {held} held, {paid} paid, last {last} t={second}")
}

/// An event in a few words: `O-1 FILLED 100@1000.5 t=3`, the time in seconds after 09:00.
pub(crate) fn words(event: &OrderEvent) -> String {
    let second =
        TsNanos::from_nanos(event.ts_event.nanos()).jst_nanos_of_day() as f64 / 1e9 - 9.0 * 3_600.0;
    let what = match &event.kind {
        OrderEventKind::Filled(fill) => format!("{}@{}", fill.last_quantity, fill.last_price),
        OrderEventKind::Rejected(why) => why.to_string(),
        OrderEventKind::Expired(why) => (*why).to_owned(),
        OrderEventKind::Updated(_) => "updated".to_owned(),
        _ => String::new(),
    };
    let text = format!("{} {} {what}", event.client_order_id, event.status);
    format!("{} t={second}", text.trim_end())
}

/// An instrument with lot 100 and tick 0.5.
pub(crate) fn instrument(id: &str) -> Instrument {
    Instrument {
        id: id.parse().unwrap(),
        lot: Quantity::new(100),
        ticks: TickTable::Fixed(Price::from_units(5_000)),
    }
}

/// Options for the tests: 10 million yen, lot 100, tick 0.5, no slippage, a close of 1,000 yen on the day
/// before the first.
pub(crate) fn options() -> ReplayOptions {
    ReplayOptions {
        instruments: vec![instrument("7203.TSE")],
        cash: Money::from_yen(10_000_000),
        model: ExecutionModel { slippage_ticks: 0, ..ExecutionModel::default() },
        ex_rights: vec![],
        window: 1,
        config_json: "{}".to_owned(),
        warnings_max: domain::GuestLimit::Warnings.default_value(),
        rejected_bytes_max: domain::GuestLimit::Rejected.default_value(),
        folder_bytes_max: domain::GuestLimit::Folder.default_value(),
        folder_bytes_per_day: domain::GuestLimit::FolderDay.default_value(),
        base_prices: vec![Some(Price::from_yen(1_000)); 4],
        unit_changes: vec![],
        split_dates_known: vec![],
        calendar: ExchangeCalendar::default(),
        dates: None,
    }
}

/// A market order.
pub(crate) fn market(id: &str, side: OrderSide, quantity: u64) -> Action {
    Action::Order(OrderCommand::Submit(OrderRequest {
        client_order_id: id.into(),
        instrument: InstrumentIx(0),
        side,
        order_type: OrderType::Market,
        quantity: Quantity::new(quantity),
        price: None,
        trigger_price: None,
        trigger_type: None,
        time_in_force: TimeInForce::Day,
        expire_time: None,
        post_only: false,
        reduce_only: false,
        tags: vec![],
    }))
}

/// A limit order.
pub(crate) fn limit(id: &str, side: OrderSide, quantity: u64, price: &str) -> Action {
    match market(id, side, quantity) {
        Action::Order(OrderCommand::Submit(request)) => {
            Action::Order(OrderCommand::Submit(OrderRequest {
                order_type: OrderType::Limit,
                price: Some(price.parse().unwrap()),
                ..request
            }))
        }
        other => other,
    }
}

/// The options with a change.
pub(crate) fn changed(change: impl FnOnce(&mut ReplayOptions)) -> ReplayOptions {
    let mut options = options();
    change(&mut options);
    options
}

/// A change of the order `O-1`.
pub(crate) fn modify(change: OrderModify) -> Action {
    Action::Order(OrderCommand::Modify { client_order_id: "O-1".into(), change })
}

/// What the strategy hears of one order that is sent after the second trade of the peers' market.
pub(crate) fn after_two(action: Action) -> Vec<String> {
    told(&Market::of_the_peers(), Script::default().after(2, action), &options())
}

/// An order with other fields.
pub(crate) fn with(action: Action, change: impl FnOnce(&mut OrderRequest)) -> Action {
    match action {
        Action::Order(OrderCommand::Submit(mut request)) => {
            change(&mut request);
            Action::Order(OrderCommand::Submit(request))
        }
        other => other,
    }
}

/// A stop that becomes a market order.
pub(crate) fn stop(id: &str, side: OrderSide, quantity: u64, trigger: &str) -> Action {
    with(market(id, side, quantity), |order| {
        order.order_type = OrderType::StopMarket;
        order.trigger_price = Some(trigger.parse().unwrap());
    })
}

/// A stop that becomes a limit order.
pub(crate) fn stop_limit(
    id: &str,
    side: OrderSide,
    quantity: u64,
    trigger: &str,
    price: &str,
) -> Action {
    with(stop(id, side, quantity, trigger), |order| {
        order.order_type = OrderType::StopLimit;
        order.price = Some(price.parse().unwrap());
    })
}

/// An order with another time in force.
pub(crate) fn lives(life: TimeInForce, action: Action) -> Action {
    with(action, |order| order.time_in_force = life)
}

/// An order that lives to a day of January 2025.
pub(crate) fn until(day: u32, action: Action) -> Action {
    with(action, |order| {
        order.time_in_force = TimeInForce::Gtd;
        order.expire_time = Some(TsNanos::from_nanos(at(day, 0.0)));
    })
}

/// An order with tags.
pub(crate) fn tagged(action: Action, tags: &[&str]) -> Action {
    with(action, |order| order.tags = tags.iter().map(|tag| (*tag).to_owned()).collect())
}

/// Replays; tells the result and what the strategy was told.
pub(crate) fn run(
    market: &Market,
    script: Script,
    options: &ReplayOptions,
) -> (RunResult, Vec<String>) {
    let mut script = script;
    let days = TradingDay::split(&market.ts, &market.price, &market.quantity);
    let result = in_memory(days, &mut script, options, &mut Unpaced);
    (result, script.told)
}

/// Replays and keeps everything.
pub(crate) fn in_memory<'a, D: Into<MarketDay<'a>>>(
    days: impl IntoIterator<Item = D>,
    strategy: &mut dyn StrategyRuntime,
    options: &ReplayOptions,
    driver: &mut dyn RunDriver,
) -> RunResult {
    let mut rows = InMemory::default();
    let totals = replay(days, strategy, options, &mut rows, driver).unwrap();
    rows.into_result(totals)
}

/// What the strategy was told of fills and ends, without the sending.
pub(crate) fn told(market: &Market, script: Script, options: &ReplayOptions) -> Vec<String> {
    let quiet = [" SUBMITTED", " ACCEPTED t", " PENDING"];
    let (_, told) = run(market, script, options);
    told.into_iter().filter(|line| !quiet.iter().any(|word| line.contains(word))).collect()
}
