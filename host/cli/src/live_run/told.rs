//! What a run's events say to the person who follows it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use domain::text::on_one_line;
use domain::{JstDate, OrderSide, Quantity, TsNanos};
use ipc::{
    Decimal, EngineError, EngineStopped, Event, OrderContext, OrderFilled, PositionRow, RunEnd,
    Session, ShareCount, StrategySignal, error_code,
};
use results::output::read_json;

use super::{PAPER, VENUE};
use crate::order;
use crate::terminal::{grouped, pairs};

/// Nanoseconds of a millisecond.
const NANOS_PER_MILLI: u64 = 1_000_000;
/// Warnings of the run's log that the end shows; the file has all.
const WARNINGS_SHOWN: usize = 5;

/// Shares of one instrument that the run's fills have left, and what they cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Held {
    shares: i128,
    /// In 1/10,000 yen.
    cost: i128,
}

impl Held {
    /// Takes in a fill at a price in 1/10,000 yen. A sell takes its part of the cost away.
    fn take(&mut self, side: OrderSide, shares: i128, price: i128) {
        match side {
            OrderSide::Buy => {
                self.shares += shares;
                self.cost += shares * price;
            }
            OrderSide::Sell => {
                let left = (self.shares - shares).max(0);
                self.cost = if self.shares > 0 { self.cost * left / self.shares } else { 0 };
                self.shares = left;
            }
        }
    }

    fn in_words(&self) -> String {
        if self.shares == 0 {
            return "flat".to_owned();
        }
        let average = decimal(self.cost / self.shares);
        format!("{} at {}", grouped(&self.shares.to_string()), grouped(&average.to_string()))
    }
}

/// What is known of a run from its events.
#[derive(Debug)]
pub(super) struct Told {
    strategy_id: String,
    run_id: String,
    /// By instrument.
    held: BTreeMap<String, Held>,
    /// What sells have brought less what buys have cost, in 1/10,000 yen.
    flow: i128,
    sent: u64,
    rejected: u64,
    fills: u64,
    /// The day of the last line, in Japan.
    day: Option<JstDate>,
    /// The last state without its time: the same is told once.
    state: String,
    /// Its orders go to the broker.
    is_real: bool,
    /// What it held at its start is in `held`; none: it is not known yet.
    carried_in: Option<CarriedIn>,
    /// Orders work, or are unknown, at its end.
    leaves_orders: bool,
}

/// What is known of what a run held at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CarriedIn {
    Known,
    /// Fills came before it was known.
    Unknown,
}

impl Told {
    pub(super) fn new(strategy_id: &str, run_id: &str, is_real: bool) -> Self {
        Self {
            strategy_id: strategy_id.to_owned(),
            run_id: run_id.to_owned(),
            held: BTreeMap::new(),
            flow: 0,
            sent: 0,
            rejected: 0,
            fills: 0,
            day: None,
            state: String::new(),
            is_real,
            // On paper every run begins flat (specification 4, P119).
            carried_in: (!is_real).then_some(CarriedIn::Known),
            leaves_orders: false,
        }
    }

    /// Whether orders of the run work, or are unknown, at its end (specification 4, P127).
    pub(super) const fn leaves_orders(&self) -> bool {
        self.leaves_orders
    }

    /// Takes what the engine says that the run holds, the first time (specification 4, P103).
    pub(super) fn carry_in(&mut self, positions: &[PositionRow<'_>]) {
        if self.carried_in.is_some() {
            return;
        }
        self.carried_in = Some(if self.fills == 0 { CarriedIn::Known } else { CarriedIn::Unknown });
        self.held = positions
            .iter()
            .map(|row| {
                let shares = i128::from(Quantity::from(row.qty).shares());
                let price = row.avg_open_price.map_or(0, |price| i128::from(price.units()));
                let cost = shares * price;
                // It counts from its average price (specification 4, P87).
                self.flow -= cost;
                (row.instrument_id.to_string(), Held { shares, cost })
            })
            .collect();
    }

    /// Whether an event is of the run, or of the market data that it needs.
    pub(super) fn is_ours(&self, event: &Event<'_>) -> bool {
        let is_strategy = |id: &str| id == self.strategy_id;
        let is_order =
            |context: &OrderContext<'_>| context.strategy_id.as_deref().is_some_and(is_strategy);
        match event {
            Event::OrderSubmitted(order) => is_order(&order.context),
            Event::OrderAccepted(order) => is_order(&order.context),
            Event::OrderRejected(order) => is_order(&order.context),
            Event::OrderPendingUpdate(order) => is_order(&order.context),
            Event::OrderUpdated(order) => is_order(&order.context),
            Event::OrderPendingCancel(order) => is_order(&order.context),
            Event::OrderCanceled(order) => is_order(&order.context),
            Event::OrderExpired(order) => is_order(&order.context),
            Event::OrderFilled(order) => is_order(&order.context),
            Event::ExecutionMarker(marker) => is_strategy(&marker.strategy_id),
            Event::StrategySignal(signal) => signal.strategy_id.as_deref().is_some_and(is_strategy),
            Event::PositionOpened(position) => is_strategy(&position.strategy_id),
            Event::PositionClosed(position) => is_strategy(&position.strategy_id),
            Event::PositionsUpdated(positions) => positions.venue == PAPER,
            Event::BuyingPowerUpdated(power) => power.venue == PAPER,
            Event::EngineError(error) => error.strategy_id.as_deref().is_none_or(is_strategy),
            Event::EngineStarted(started) => started.run_id == self.run_id,
            Event::EngineStopped(stopped) => stopped.run_id == self.run_id,
            Event::VenueReady(venue) => self.needs(&venue.venue),
            Event::VenueError(venue) => self.needs(&venue.venue),
            Event::VenueLoginStarted(venue) => self.needs(&venue.venue),
            Event::VenueLoginCancelled(venue) => self.needs(&venue.venue),
            Event::SecondPasswordRequired(_) | Event::SecondPasswordSet(_) => self.is_real,
            Event::SubscriptionEvicted(_) => true,
            _ => false,
        }
    }

    /// Whether the run needs a venue.
    fn needs(&self, venue: &str) -> bool {
        venue == VENUE || (self.is_real && venue == order::VENUE)
    }

    /// Takes an event of the run, and says what a person wants to know of it: a line, whatever a guest or a venue says
    /// in it.
    pub(super) fn line(&mut self, event: &Event<'_>) -> Option<String> {
        let (ts_event_ms, text) = self.words(event)?;
        let text = on_one_line(&text);
        Some(match ts_event_ms {
            Some(ts_event_ms) => self.stamped(ts_event_ms, &text),
            None => text.into_owned(),
        })
    }

    /// What is told of an event, and the market's time of it where it has one.
    fn words(&mut self, event: &Event<'_>) -> Option<(Option<u64>, String)> {
        let (ts_event_ms, text) = match event {
            Event::OrderSubmitted(order) => {
                self.sent += 1;
                (order.ts_event_ms, of_order(&order.client_order_id, &order.context, "sent"))
            }
            Event::OrderAccepted(order) => {
                let number = order.venue_order_id.as_deref();
                let what =
                    number.map_or("accepted".into(), |number| format!("accepted, number {number}"));
                (order.ts_event_ms, of_order(&order.client_order_id, &order.context, &what))
            }
            Event::OrderRejected(order) => {
                self.rejected += 1;
                let what = format!("rejected: {}: {}", order.reason_code, order.reason_text);
                (order.ts_event_ms, of_order(&order.client_order_id, &order.context, &what))
            }
            Event::OrderUpdated(order) => {
                let mut what = format!("changed: {} shares", shares(order.quantity));
                if let Some(price) = order.price {
                    let _ = write!(what, ", limit {}", price_of(price));
                }
                if let Some(trigger) = order.trigger_price {
                    let _ = write!(what, ", trigger {}", price_of(trigger));
                }
                (order.ts_event_ms, of_order(&order.client_order_id, &order.context, &what))
            }
            Event::OrderCanceled(order) => {
                (order.ts_event_ms, of_order(&order.client_order_id, &order.context, "cancelled"))
            }
            Event::OrderExpired(order) => {
                (order.ts_event_ms, of_order(&order.client_order_id, &order.context, "expired"))
            }
            Event::OrderFilled(fill) => (fill.ts_event_ms, self.fill(fill)),
            Event::PositionClosed(closed) => {
                let text = format!(
                    "{}: position closed, {} shares from {} to {} yen, profit or loss {} yen",
                    closed.instrument_id,
                    shares(closed.opened_qty),
                    price_of(closed.avg_open_price),
                    price_of(closed.avg_close_price),
                    signed(closed.realized_pnl)
                );
                (closed.ts_event_ms, text)
            }
            Event::StrategySignal(signal) => (signal.ts_event_ms, of_signal(signal)),
            Event::EngineError(error) => {
                self.leaves_orders |= error.code == error_code::ORDERS_WORKING;
                return Some((None, of_error(error)));
            }
            Event::SecondPasswordRequired(_) => {
                let text = "warning: the engine holds no second password, and orders are rejected until you give it \
                            with `kumiki order password`";
                return Some((None, text.to_owned()));
            }
            Event::VenueError(error) => {
                let text = format!("warning: {}: {}: {}", error.venue, error.code, error.message);
                return Some((None, text));
            }
            Event::VenueReady(venue) => {
                return Some((None, format!("{} is ready", venue.venue)));
            }
            Event::VenueLoginStarted(venue) => {
                let text = format!(
                    "a login at {} is under way; the engine may ask for the password",
                    venue.venue
                );
                return Some((None, text));
            }
            Event::VenueLoginCancelled(venue) => {
                let text = format!(
                    "warning: the login at {} was given up; the log of the engine says why",
                    venue.venue
                );
                return Some((None, text));
            }
            Event::SubscriptionEvicted(evicted) => {
                let text = format!(
                    "warning: {} had to make room; no market data of it come any more",
                    evicted.symbol
                );
                return Some((None, text));
            }
            _ => return None,
        };
        Some((Some(ts_event_ms), text))
    }

    fn fill(&mut self, fill: &OrderFilled<'_>) -> String {
        self.fills += 1;
        let mut what = format!(
            "filled {} at {} yen, {} open",
            shares(fill.last_qty),
            price_of(fill.last_price),
            shares(fill.leaves_qty)
        );
        if let (Some(id), Some(side)) = (&fill.context.instrument_id, fill.context.order_side) {
            let quantity = i128::from(Quantity::from(fill.last_qty).shares());
            let price = i128::from(fill.last_price.units());
            self.flow += match side {
                OrderSide::Buy => -(quantity * price),
                OrderSide::Sell => quantity * price,
            };
            let held = self.held.entry(id.clone().into_owned()).or_default();
            held.take(side, quantity, price);
            let _ = write!(what, "; position {}", held.in_words());
        }
        of_order(&fill.client_order_id, &fill.context, &what)
    }

    /// The state of the run in a line; none where it is as it was.
    pub(super) fn state(&mut self, session: &Session<'_>) -> Option<String> {
        let working = session.orders.iter().filter(|order| !order.status.is_final()).count()
            + session.orders_submitted.iter().filter(|order| !order.status.is_final()).count();
        let mut text = format!(
            "{} rows seen, {} orders ({working} working), {} fills; ",
            grouped(&session.rows_done.to_string()),
            grouped(&self.sent.to_string()),
            grouped(&self.fills.to_string())
        );
        text.push_str(&positions_in_words(&session.positions));
        let profit = self.profit(&session.positions);
        if let Some(profit) = profit.filter(|_| self.carried_in == Some(CarriedIn::Known)) {
            let _ = write!(text, "; profit or loss before fees {} yen", signed(profit));
        }
        if text == self.state {
            return None;
        }
        let line = self.stamped(session.ts_event_ms.unwrap_or_default(), &text);
        self.state = text;
        Some(line)
    }

    /// What the fills have brought and what is held is worth; none where that is not known.
    fn profit(&self, positions: &[PositionRow<'_>]) -> Option<Decimal> {
        let worth: Option<i128> = positions
            .iter()
            .map(|position| position.market_value.map(|value| i128::from(value.units())))
            .sum();
        let profit = self.flow + worth?;
        i64::try_from(profit).ok().map(Decimal::from_units)
    }

    /// A text behind its time in Japan; a new day stands on a line before it.
    fn stamped(&mut self, ts_event_ms: u64, text: &str) -> String {
        let time = TsNanos::from_nanos(ts_event_ms.saturating_mul(NANOS_PER_MILLI));
        if ts_event_ms == 0 {
            // Before the first row there is no time of the market.
            return format!("{:8}  {text}", "-");
        }
        let seconds = time.jst_nanos_of_day() / domain::time::NANOS_PER_SECOND;
        let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
        let line = format!("{hours:02}:{minutes:02}:{:02}  {text}", seconds % 60);
        let day = time.jst_date();
        match self.day.replace(day) {
            Some(before) if before == day => line,
            _ => format!("{day}\n{line}"),
        }
    }

    /// What the run did, by its events.
    fn rows(&self) -> [(&'static str, String); 3] {
        let count = |number: u64| grouped(&number.to_string());
        let held: Vec<String> = self
            .held
            .iter()
            .filter(|(_, held)| held.shares != 0)
            .map(|(id, held)| format!("{id} {}", held.in_words()))
            .collect();
        let held = if held.is_empty() { "flat".to_owned() } else { held.join(", ") };
        [
            ("orders", format!("{} sent, {} rejected", count(self.sent), count(self.rejected))),
            ("fills", count(self.fills)),
            ("position", held),
        ]
    }
}

/// The end of a run, what it did where that was followed, and what to do next.
pub(super) fn end(stopped: &EngineStopped<'_>, told: Option<&Told>) -> String {
    let kept = Kept::read(Path::new(&*stopped.run_dir));
    let mut rows = vec![("rows seen", grouped(&stopped.rows_done.to_string()))];
    rows.extend(told.into_iter().flat_map(Told::rows));
    match &kept.profit {
        Some((profit, fees)) => {
            let fees = grouped(fees);
            rows.push((
                "profit or loss",
                format!("{} yen, {fees} yen fees taken off", signed(*profit)),
            ));
        }
        // Of a replay it would be another number.
        None if told.is_some() => {
            rows.push((
                "profit or loss",
                format!("{} yen before fees", signed(stopped.final_equity)),
            ));
        }
        None => {}
    }
    for (index, warning) in kept.warnings.iter().take(WARNINGS_SHOWN).enumerate() {
        rows.push((if index == 0 { "warnings" } else { "" }, warning.clone()));
    }
    if let Some(more) = kept.warnings.len().checked_sub(WARNINGS_SHOWN).filter(|more| *more > 0) {
        rows.push(("", format!("{more} more in log.csv")));
    }
    let (run_id, strategy_id, run_dir) =
        (&stopped.run_id, on_one_line(&stopped.strategy_id), on_one_line(&stopped.run_dir));
    format!(
        "\nrun {run_id} of {strategy_id}: {}\n\n{}\nfolder: {run_dir}\n\nnext:\n  \
         kumiki replay report {run_dir}\n  kumiki replay journal {run_dir}\n  \
         kumiki replay compare-live {run_dir}\n",
        how(stopped.status),
        pairs(&rows)
    )
}

/// How a run ended.
pub(super) const fn how(status: RunEnd) -> &'static str {
    match status {
        RunEnd::Completed => "completed",
        RunEnd::Stopped => "stopped",
        RunEnd::Fault => "failed",
    }
}

/// What the folder of a run that has ended says of it; nothing where it cannot be read.
#[derive(Debug, Default, PartialEq, Eq)]
struct Kept {
    /// Profit after fees, and the fees, in yen.
    profit: Option<(Decimal, String)>,
    /// Warnings and errors of its log.
    warnings: Vec<String>,
}

impl Kept {
    fn read(folder: &Path) -> Self {
        let summary = read_json(folder, "summary.json").unwrap_or_default();
        let number = |name: &str| summary.get(name)?.as_str().map(str::to_owned);
        let profit = number("profit").and_then(|profit| profit.parse::<domain::Money>().ok());
        let log = read_json(folder, "log.json").unwrap_or_default();
        let is_warning =
            |line: &&serde_json::Value| matches!(line["level"].as_str(), Some("WARN" | "ERROR"));
        let lines = log.as_array().into_iter().flatten().filter(is_warning);
        Self {
            profit: profit.zip(number("commission")).map(|(profit, fees)| (profit.into(), fees)),
            warnings: lines
                .filter_map(|line| line["message"].as_str().map(str::to_owned))
                .collect(),
        }
    }
}

/// Positions on a line.
pub(super) fn positions_in_words(positions: &[PositionRow<'_>]) -> String {
    let one = |position: &PositionRow<'_>| {
        let mut text = format!("{} {}", position.instrument_id, shares(position.qty));
        if let Some(average) = position.avg_open_price {
            let _ = write!(text, " at {}", price_of(average));
        }
        if let Some(profit) = position.unrealized_pnl {
            let _ = write!(text, " ({} yen)", signed(profit));
        }
        text
    };
    let rows: Vec<String> = positions
        .iter()
        .filter(|position| Quantity::from(position.qty) != Quantity::new(0))
        .map(one)
        .collect();
    if rows.is_empty() { "flat".to_owned() } else { rows.join(", ") }
}

fn of_order(id: &Option<ipc::Text<'_>>, context: &OrderContext<'_>, what: &str) -> String {
    let id = id.as_deref().unwrap_or("-");
    let side = context.order_side.map_or("", OrderSide::as_str);
    let instrument = context.instrument_id.as_deref().unwrap_or_default();
    let words: Vec<&str> =
        [id, side, instrument].into_iter().filter(|word| !word.is_empty()).collect();
    format!("{}: {what}", words.join(" "))
}

fn of_signal(signal: &StrategySignal<'_>) -> String {
    let mut text = format!("signal {} {}", signal.signal_kind.as_str(), signal.instrument_id);
    if let Some(side) = signal.side {
        let _ = write!(text, " {}", side.as_str());
    }
    if let Some(price) = signal.price {
        let _ = write!(text, " at {} yen", price_of(price));
    }
    for words in [&signal.tag, &signal.note].into_iter().flatten() {
        let _ = write!(text, ": {words}");
    }
    text
}

/// Slow events and lost data are warnings: the run goes on.
fn of_error(error: &EngineError<'_>) -> String {
    let goes_on = [
        error_code::STRATEGY_SLOW,
        error_code::MARKET_DATA_LOST,
        error_code::SECOND_PASSWORD_NEEDED,
        error_code::POSITION_MISMATCH,
    ];
    let kind = if goes_on.contains(&&*error.code) { "warning" } else { "error" };
    format!("{kind}: {}: {}", error.code, error.message)
}

fn shares(count: ShareCount) -> String {
    grouped(&Quantity::from(count).to_string())
}

fn price_of(price: Decimal) -> String {
    grouped(&price.to_string())
}

/// An amount that says by a sign which way it goes.
fn signed(amount: Decimal) -> String {
    let sign = if amount.units() > 0 { "+" } else { "" };
    format!("{sign}{}", grouped(&amount.to_string()))
}

/// Of 1/10,000; what is beyond 64 bits is the most that fits.
fn decimal(units: i128) -> Decimal {
    Decimal::from_units(i64::try_from(units).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn event(text: &str) -> Event<'static> {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// An event of an order of the strategy at 09:31:05 of 2026-11-30 in Japan.
    fn of_strategy(name: &str, fields: &str) -> Event<'static> {
        event(&format!(
            r#"{{"event":"{name}","client_order_id":"O-1",{fields}"ts_event_ms":1795998665000,"venue":"paper",
                "origin":"strategy","strategy_id":"mine","instrument_id":"7203.TSE","order_side":"BUY"}}"#
        ))
    }

    fn filled(side: &str, quantity: u64, price: &str) -> Event<'static> {
        event(&format!(
            r#"{{"event":"OrderFilled","client_order_id":"O-1","venue_order_id":"P1","trade_id":"1",
                "last_qty":"{quantity}","last_price":"{price}","cumulative_qty":"{quantity}","leaves_qty":"0",
                "ts_event_ms":1795998665000,"strategy_id":"mine","instrument_id":"7203.TSE",
                "order_side":"{side}"}}"#
        ))
    }

    fn told() -> Told {
        Told::new("mine", "r1", false)
    }

    #[test]
    fn orders_are_told_with_their_times() {
        let mut told = told();
        let mut line = |event: &Event<'_>| told.line(event).unwrap();
        assert_eq!(
            line(&of_strategy("OrderSubmitted", "")),
            "2026-11-30\n09:31:05  O-1 BUY 7203.TSE: sent"
        );
        assert_eq!(
            line(&of_strategy("OrderAccepted", r#""venue_order_id":"P1","#)),
            "09:31:05  O-1 BUY 7203.TSE: accepted, number P1"
        );
        assert_eq!(
            line(&of_strategy(
                "OrderRejected",
                r#""reason_code":"VALIDATION_ERROR","reason_text":"MAX_QTY: 200 shares","#
            )),
            "09:31:05  O-1 BUY 7203.TSE: rejected: VALIDATION_ERROR: MAX_QTY: 200 shares"
        );
        assert_eq!(
            line(&of_strategy(
                "OrderUpdated",
                r#""venue_order_id":"P1","quantity":"1200","price":"2850.5","trigger_price":null,
                   "expire_time_ns":null,"#
            )),
            "09:31:05  O-1 BUY 7203.TSE: changed: 1,200 shares, limit 2,850.5"
        );
        for (name, what) in [("OrderCanceled", "cancelled"), ("OrderExpired", "expired")] {
            let told = line(&of_strategy(name, r#""venue_order_id":"P1","#));
            assert_eq!(told, format!("09:31:05  O-1 BUY 7203.TSE: {what}"));
        }
        assert_eq!(told.line(&of_strategy("OrderPendingCancel", "")), None);
        assert_eq!((told.sent, told.rejected), (1, 1));
    }

    #[test]
    fn fills_make_the_position() {
        let mut told = told();
        let mut line = |side, quantity, price| {
            let line = told.line(&filled(side, quantity, price)).unwrap();
            line.rsplit("TSE: ").next().unwrap().to_owned()
        };
        assert_eq!(
            line("BUY", 100, "2850"),
            "filled 100 at 2,850 yen, 0 open; position 100 at 2,850"
        );
        assert_eq!(
            line("BUY", 300, "2852"),
            "filled 300 at 2,852 yen, 0 open; position 400 at 2,851.5"
        );
        assert_eq!(
            line("SELL", 100, "2860"),
            "filled 100 at 2,860 yen, 0 open; position 300 at 2,851.5"
        );
        assert_eq!(line("SELL", 300, "2840"), "filled 300 at 2,840 yen, 0 open; position flat");
        assert_eq!(told.profit(&[]).unwrap().to_string(), "-2600");
        let closed = event(
            r#"{"event":"PositionClosed","strategy_id":"mine","venue":"paper","instrument_id":"7203.TSE",
                "position_id":"7203.TSE-1","side":"BUY","opened_qty":"400","avg_open_price":"2851.5",
                "avg_close_price":"2845","realized_pnl":"-2600","ts_event_ms":1795998665000}"#,
        );
        assert_eq!(
            told.line(&closed).unwrap(),
            "09:31:05  7203.TSE: position closed, 400 shares from 2,851.5 to 2,845 yen, profit or loss -2,600 yen"
        );
    }

    #[test]
    fn the_state_is_told_when_it_has_changed() {
        let mut told = told();
        told.line(&filled("BUY", 100, "2850"));
        let session = |worth: &str| {
            let text = format!(
                r#"{{"event":"Session","request_id":"a","state":"Running","instruments":[],"rows_done":12345,
                    "rows_total":0,"ts_event_ms":1795998665000,"orders":[],"positions":[{{"instrument_id":"7203.TSE",
                    "qty":"100","avg_open_price":"2850","market_value":{worth},"side":"BUY","position_type":"cash",
                    "venue":"paper"}}],"last_bars":[],"last_trades":[],"sequence":7}}"#
            );
            let Event::Session(session) = event(&text) else { panic!() };
            session
        };
        assert_eq!(
            told.state(&session(r#""286000""#)).unwrap(),
            "09:31:05  12,345 rows seen, 0 orders (0 working), 1 fills; 7203.TSE 100 at 2,850; \
             profit or loss before fees +1,000 yen"
        );
        assert_eq!(told.state(&session(r#""286000""#)), None);
        let unknown = told.state(&session("null")).unwrap();
        assert!(unknown.ends_with("7203.TSE 100 at 2,850"), "{unknown}");
    }

    /// P103, P87: what a run takes over is part of its position, and counts from its average price.
    #[test]
    fn p87_p103_what_a_run_takes_over_counts_from_its_average_price() {
        let session = |worth: &str, shares: &str| {
            let text = format!(
                r#"{{"event":"Session","request_id":"a","state":"Running","instruments":[],"rows_done":5,
                    "rows_total":0,"ts_event_ms":1795998665000,"orders":[],"positions":[{{"instrument_id":"7203.TSE",
                    "qty":"{shares}","avg_open_price":"2800","market_value":"{worth}","side":"BUY",
                    "position_type":"cash","venue":"web_broker"}}],"last_bars":[],"last_trades":[],"sequence":7}}"#
            );
            let Event::Session(session) = event(&text) else { panic!() };
            session
        };
        let mut told = Told::new("mine", "r1", true);
        told.carry_in(&session("281000", "100").positions);
        // Only the first one counts.
        told.carry_in(&session("0", "700").positions);
        let line = told.state(&session("281000", "100")).unwrap();
        assert!(
            line.ends_with("7203.TSE 100 at 2,800; profit or loss before fees +1,000 yen"),
            "{line}"
        );
        let sold = told.line(&filled("SELL", 100, "2850")).unwrap();
        assert!(sold.ends_with("position flat"), "{sold}");
        assert_eq!(told.profit(&[]).unwrap().to_string(), "5000");
        // A fill that was told before: nobody knows what was held at the start.
        let mut told = Told::new("mine", "r1", true);
        told.line(&filled("BUY", 100, "2850"));
        told.carry_in(&session("281000", "100").positions);
        let line = told.state(&session("281000", "100")).unwrap();
        assert!(line.ends_with("7203.TSE 100 at 2,800"), "{line}");
    }

    /// P97, P121, P122, P127: what happens to real orders is told, also what stays behind.
    #[test]
    fn p97_p127_a_run_with_real_orders_hears_of_the_broker() {
        let mut told = Told::new("mine", "r1", true);
        let broker =
            r#"{"event":"VenueError","venue":"web_broker","code":"session_expired","message":"m"}"#;
        let password = r#"{"event":"SecondPasswordRequired","request_id":"w-1"}"#;
        for line in [broker, password] {
            assert!(told.is_ours(&event(line)), "{line}");
            assert!(told.line(&event(line)).unwrap().starts_with("warning: "), "{line}");
        }
        let account = r#"{"event":"PositionsUpdated","request_id":null,"venue":"web_broker","positions":[],"ts_ms":1}"#;
        assert!(!told.is_ours(&event(account)), "they are the account's");
        let error = |code: &str| {
            event(&format!(
                r#"{{"event":"EngineError","code":"{code}","message":"m","strategy_id":"mine"}}"#
            ))
        };
        for (code, line) in [
            ("second_password_needed", "warning: second_password_needed: m"),
            ("order_came_back", "error: order_came_back: m"),
        ] {
            assert_eq!(told.line(&error(code)).unwrap(), line);
        }
        assert!(!told.leaves_orders());
        assert_eq!(told.line(&error("orders_working")).unwrap(), "error: orders_working: m");
        assert!(told.leaves_orders());
    }

    #[test]
    fn what_goes_wrong_is_told_and_that_of_others_is_not() {
        let mut told = told();
        let error = |code: &str, strategy: &str| {
            event(&format!(
                r#"{{"event":"EngineError","code":"{code}","message":"m","strategy_id":"{strategy}"}}"#
            ))
        };
        for (code, line) in [
            ("strategy_slow", "warning: strategy_slow: m"),
            ("market_data_lost", "warning: market_data_lost: m"),
            ("strategy_fault", "error: strategy_fault: m"),
        ] {
            assert!(told.is_ours(&error(code, "mine")));
            assert_eq!(told.line(&error(code, "mine")).unwrap(), line);
        }
        assert!(!told.is_ours(&error("strategy_fault", "another")));
        assert!(told.is_ours(&of_strategy("OrderSubmitted", "")));
        let person = r#"{"event":"OrderSubmitted","client_order_id":"O-1","ts_event_ms":1,"venue":"web_broker"}"#;
        assert!(!told.is_ours(&event(person)));
        let venue = |name: &str| {
            event(&format!(r#"{{"event":"VenueError","venue":"{name}","code":"c","message":"m"}}"#))
        };
        assert!(told.is_ours(&venue("local_broker")) && !told.is_ours(&venue("web_broker")));
        let power = r#"{"event":"BuyingPowerUpdated","request_id":null,"venue":"paper","cash_available":"1",
                       "cash_shortfall":null,"credit_available":null,"ts_ms":1}"#;
        assert!(told.is_ours(&event(power)));
        assert_eq!(told.line(&event(power)), None, "it comes every second");
    }

    /// P102, P110: nothing that a strategy says looks like a line of ours.
    #[test]
    fn texts_of_a_guest_stay_on_their_line() {
        let mut told = told();
        let forged = r"x\n09:31:06  O-2 BUY 7203.TSE: filled\u001b[2J\u2028\u202e";
        let events = [
            of_strategy(
                "OrderRejected",
                &format!(r#""reason_code":"VALIDATION_ERROR","reason_text":"TAGS: {forged}","#),
            ),
            event(&format!(
                r#"{{"event":"StrategySignal","strategy_id":"mine","instrument_id":"7203.TSE","signal_kind":"EntryLong",
                    "tag":"{forged}","note":"{forged}","ts_event_ms":1795998665000}}"#
            )),
            event(&format!(
                r#"{{"event":"EngineError","code":"strategy_fault","message":"panicked: {forged}","strategy_id":"mine"}}"#
            )),
            event(&format!(
                r#"{{"event":"VenueError","venue":"local_broker","code":"c","message":"{forged}"}}"#
            )),
        ];
        for (event, lines) in events.iter().zip([2, 1, 1, 1]) {
            let line = told.line(event).unwrap();
            // Of the first the day stands above it.
            assert_eq!(line.lines().count(), lines, "{line}");
            let last = line.lines().last().unwrap();
            assert!(
                last.contains(r"x\u000a09:31:06  O-2 BUY 7203.TSE: filled\u001b[2J\u2028\u202e"),
                "{line}"
            );
        }
    }

    #[test]
    fn the_end_says_what_came_out_and_what_to_do_next() {
        let folder = std::env::temp_dir().join(format!("kumiki-live-end-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let run_dir = folder.display().to_string();
        let stopped = EngineStopped {
            request_id: None,
            strategy_id: "mine".into(),
            run_id: "r1".into(),
            final_equity: Decimal::from_units(-12_000_000),
            status: RunEnd::Stopped,
            fault: None,
            run_dir: run_dir.as_str().into(),
            rows_done: 12_345,
            ts_event_ms: 0,
        };
        let mut told = told();
        told.line(&filled("BUY", 100, "2850"));
        let end = end(&stopped, Some(&told));
        let wanted = "
run r1 of mine: stopped

  rows seen       12,345
  orders          0 sent, 0 rejected
  fills           1
  position        7203.TSE 100 at 2,850
  profit or loss  -1,200 yen before fees
";
        assert!(end.starts_with(wanted), "{end}");
        assert!(end.ends_with(&format!("  kumiki replay compare-live {run_dir}\n")), "{end}");
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write("manifest.json", "{}");
        write("summary.json", r#"{"profit":"-1234.5","commission":"1070"}"#);
        let line = |level: &str, text: &str| serde_json::json!({"ts_event_ns": null, "level": level, "message": text});
        let mut lines = vec![line("INFO", "no warning")];
        lines.extend((0..7).map(|number| line("WARN", &format!("GAP: 7203.TSE {number}"))));
        write("log.json", &serde_json::Value::from(lines).to_string());
        let end = super::end(&stopped, Some(&told));
        fs::remove_dir_all(&folder).unwrap();
        assert!(end.contains("profit or loss  -1,234.5 yen, 1,070 yen fees taken off\n"), "{end}");
        assert!(end.contains("  warnings        GAP: 7203.TSE 0\n"), "{end}");
        assert!(end.contains("2 more in log.csv\n") && !end.contains("no warning"), "{end}");
    }
}
