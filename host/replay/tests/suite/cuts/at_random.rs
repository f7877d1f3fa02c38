//! A strategy that sends all kinds of orders, changes them and cancels them.

use std::collections::BTreeMap;

use domain::account::PortfolioView;
use domain::fault::{Fault, Identity};
use domain::market::Window;
use domain::strategy::{Action, Capabilities, LogLine, Outcome, StrategyRuntime};
use domain::{
    Instrument, InstrumentIx, OrderCommand, OrderEvent, OrderModify, OrderRequest, OrderSide,
    OrderType, Price, Quantity, Random, TimeInForce, TsNanos,
};

/// Sends all kinds of orders, changes and cancels them, as a seeded generator and what it has seen tell it.
pub(crate) struct AtRandom {
    random: Random,
    instruments: Vec<Instrument>,
    /// Rows of the window, and how many of them it has seen.
    window: Vec<(TsNanos, InstrumentIx, Price)>,
    seen: usize,
    /// The last price of each instrument that it has seen.
    last: BTreeMap<InstrumentIx, Price>,
    sent: Vec<OrderRequest>,
    /// Those of them of which it was not told that they are done.
    open: Vec<OrderRequest>,
}

impl AtRandom {
    pub(crate) fn new(seed: u64) -> Self {
        let random = Random::new(&[seed, 93]);
        Self {
            random,
            instruments: Vec::new(),
            window: Vec::new(),
            seen: 0,
            last: BTreeMap::new(),
            sent: Vec::new(),
            open: Vec::new(),
        }
    }

    /// Up to 20 steps of half a yen around a price.
    fn near(&mut self, last: Price) -> Price {
        let ticks = self.random.below(41) as i64 - 20;
        Price::from_units((last.units() + ticks * 5_000).max(5_000))
    }

    /// An end of life up to and beyond the 10 business days that a GTD order may have.
    fn end(&mut self, now: TsNanos) -> TsNanos {
        let days = if self.random.chance(0.3) { 20 } else { 4 };
        now.plus_nanos(self.random.below(days) * domain::time::NANOS_PER_DAY)
    }

    fn order(&mut self, now: TsNanos, instrument: InstrumentIx, last: Price) -> Action {
        let order_type = [
            OrderType::Market,
            OrderType::Market,
            OrderType::Limit,
            OrderType::Limit,
            OrderType::StopMarket,
            OrderType::StopLimit,
        ][self.random.below(6) as usize];
        let has_limit = matches!(order_type, OrderType::Limit | OrderType::StopLimit);
        let is_stop = matches!(order_type, OrderType::StopMarket | OrderType::StopLimit);
        let lives = if is_stop { 2 } else { 4 };
        let time_in_force =
            [TimeInForce::Day, TimeInForce::Gtd, TimeInForce::AtTheOpen, TimeInForce::AtTheClose]
                [self.random.below(lives) as usize];
        let end = self.end(now);
        // Far outside now and then, so that the day's range shows in the rejection.
        let far = if self.random.chance(0.1) { 3 } else { 1 };
        let price = has_limit.then(|| Price::from_units(self.near(last).units() * far));
        let funari = order_type == OrderType::Limit && time_in_force == TimeInForce::AtTheClose;
        let tags =
            if funari && self.random.chance(0.5) { vec!["close_strategy=funari"] } else { vec![] };
        let request = OrderRequest {
            client_order_id: format!("O-{}", self.sent.len() + 1).into(),
            instrument,
            side: if self.random.chance(0.6) { OrderSide::Buy } else { OrderSide::Sell },
            order_type,
            quantity: self.instruments[usize::from(instrument.0)].lot,
            price,
            trigger_price: is_stop.then(|| self.near(last)),
            trigger_type: None,
            time_in_force,
            expire_time: (time_in_force == TimeInForce::Gtd).then_some(end),
            post_only: false,
            reduce_only: false,
            tags: tags.into_iter().map(str::to_owned).collect(),
        };
        self.sent.push(request.clone());
        self.open.push(request.clone());
        Action::Order(OrderCommand::Submit(request))
    }

    /// Another price, trigger, date or number of shares for an order that has been sent, whether or not there is
    /// something of it left.
    fn change(&mut self, now: TsNanos, order: &OrderRequest) -> OrderModify {
        let last = self.last.get(&order.instrument).copied().unwrap_or(Price::from_yen(1_000));
        let mut change = OrderModify::default();
        // Now and then what such an order does not have, for which it is rejected.
        let has = |of_it: bool, random: &mut Random| random.chance(if of_it { 0.5 } else { 0.02 });
        if has(order.price.is_some(), &mut self.random) {
            change.price = Some(self.near(last));
        }
        if has(order.trigger_price.is_some(), &mut self.random) {
            change.trigger_price = Some(self.near(last));
        }
        if has(order.expire_time.is_some(), &mut self.random) {
            change.expire_time = Some(self.end(now));
        }
        if self.random.chance(0.3) {
            change.quantity = Some(Quantity::new(200));
        }
        change
    }

    /// A change or a cancel of orders that have been sent, mostly of those that are open.
    fn command(&mut self, now: TsNanos, instrument: InstrumentIx) -> OrderCommand {
        let is_open = !self.open.is_empty() && self.random.chance(0.9);
        let orders = if is_open { &self.open } else { &self.sent };
        let order = orders[self.random.place(orders.len())].clone();
        let client_order_id = order.client_order_id.clone();
        match self.random.below(12) {
            0..=2 => OrderCommand::Cancel { client_order_id },
            3 => OrderCommand::CancelAll {
                instrument: self.random.chance(0.5).then_some(instrument),
                side: self.random.chance(0.5).then_some(order.side),
            },
            _ => OrderCommand::Modify { client_order_id, change: self.change(now, &order) },
        }
    }

    fn decide(&mut self, now: TsNanos, instrument: InstrumentIx, last: Price) -> Vec<Action> {
        self.last.insert(instrument, last);
        if !self.random.chance(0.2) {
            return vec![];
        }
        if self.random.chance(0.3) && !self.sent.is_empty() {
            return vec![Action::Order(self.command(now, instrument))];
        }
        vec![self.order(now, instrument, last)]
    }
}

impl StrategyRuntime for AtRandom {
    fn identity(&self) -> Identity {
        Identity { component: "at random".into(), sha256: String::new() }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn init(&mut self, _: &str, instruments: &[Instrument]) -> Result<(), Box<Fault>> {
        self.instruments = instruments.to_vec();
        Ok(())
    }

    fn start(&mut self, now: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        // Before any trade: market orders need a close of the days before.
        let last = Price::from_yen(1_000);
        Ok((0..4).map(|number| self.order(now, InstrumentIx(number % 2), last)).collect())
    }

    fn advance(&mut self, window: Window<'_>, limit: u32) -> Result<Outcome, Box<Fault>> {
        let rows: Vec<_> = match window {
            Window::Resume => std::mem::take(&mut self.window),
            Window::OneTrade(trade) => vec![(trade.ts_event, trade.instrument, trade.price)],
            Window::Trades(rows) => (0..rows.ts_event.len())
                .map(|row| rows.trade(row))
                .map(|trade| (trade.ts_event, trade.instrument, trade.price))
                .collect(),
            Window::OneBar(bar) => vec![(bar.ts_event, bar.instrument, bar.close)],
            Window::Bars(bars) => {
                bars.iter().map(|bar| (bar.ts_event, bar.instrument, bar.close)).collect()
            }
        };
        if !matches!(window, Window::Resume) {
            self.seen = 0;
        }
        let mut actions = vec![];
        while self.seen < limit as usize && actions.is_empty() {
            let (now, instrument, last) = rows[self.seen];
            self.seen += 1;
            actions = self.decide(now, instrument, last);
        }
        self.window = rows;
        // At most the window's rows.
        Ok(Outcome { reached: self.seen as u32, actions })
    }

    fn on_order_events(&mut self, events: &[OrderEvent]) -> Result<Vec<Action>, Box<Fault>> {
        let is_done = |order: &OrderRequest| {
            let mut own =
                events.iter().filter(|event| event.client_order_id == order.client_order_id);
            own.any(|event| event.status.is_final())
        };
        self.open.retain(|order| !is_done(order));
        Ok(vec![])
    }

    fn stop(&mut self, _: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        Ok(vec![])
    }

    fn set_portfolio(&mut self, _: &PortfolioView) {}

    fn take_log(&mut self) -> Vec<LogLine> {
        vec![]
    }
}
