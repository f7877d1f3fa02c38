//! A strategy that sends all kinds of orders.

use domain::account::PortfolioView;
use domain::fault::{Fault, Identity};
use domain::market::Window;
use domain::strategy::{Action, Capabilities, LogLine, Outcome, StrategyRuntime};
use domain::{
    Instrument, InstrumentIx, OrderCommand, OrderEvent, OrderModify, OrderRequest, OrderSide,
    OrderType, Price, Quantity, Random, TimeInForce, TsNanos,
};

/// Sends all kinds of orders, as a seeded generator and what it has seen tell it.
pub(crate) struct AtRandom {
    random: Random,
    instruments: Vec<Instrument>,
    /// Rows of the window, and how many of them it has seen.
    window: Vec<(TsNanos, InstrumentIx, Price)>,
    seen: usize,
    sent: u64,
}

impl AtRandom {
    pub(crate) fn new(seed: u64) -> Self {
        let random = Random::new(&[seed, 93]);
        Self { random, instruments: Vec::new(), window: Vec::new(), seen: 0, sent: 0 }
    }

    fn order(&mut self, now: TsNanos, instrument: InstrumentIx, last: Price) -> Action {
        self.sent += 1;
        let random = &mut self.random;
        let near = |random: &mut Random| {
            let ticks = random.below(41) as i64 - 20;
            Price::from_units((last.units() + ticks * 5_000).max(5_000))
        };
        let order_type = [
            OrderType::Market,
            OrderType::Market,
            OrderType::Limit,
            OrderType::Limit,
            OrderType::StopMarket,
            OrderType::StopLimit,
        ][random.below(6) as usize];
        let has_limit = matches!(order_type, OrderType::Limit | OrderType::StopLimit);
        let is_stop = matches!(order_type, OrderType::StopMarket | OrderType::StopLimit);
        let lives = if is_stop { 2 } else { 4 };
        let time_in_force =
            [TimeInForce::Day, TimeInForce::Gtd, TimeInForce::AtTheOpen, TimeInForce::AtTheClose]
                [random.below(lives) as usize];
        // Up to and beyond the 10 business days that a GTD order may have.
        let days = if random.chance(0.3) { 20 } else { 4 };
        let ahead = random.below(days) * domain::time::NANOS_PER_DAY;
        // Far outside now and then, so that the day's range shows in the rejection.
        let far = if random.chance(0.1) { 3 } else { 1 };
        let price = has_limit.then(|| Price::from_units(near(random).units() * far));
        let funari = order_type == OrderType::Limit && time_in_force == TimeInForce::AtTheClose;
        let tags =
            if funari && random.chance(0.5) { vec!["close_strategy=funari"] } else { vec![] };
        Action::Order(OrderCommand::Submit(OrderRequest {
            client_order_id: format!("O-{}", self.sent).into(),
            instrument,
            side: if random.chance(0.6) { OrderSide::Buy } else { OrderSide::Sell },
            order_type,
            quantity: self.instruments[usize::from(instrument.0)].lot,
            price,
            trigger_price: is_stop.then(|| near(random)),
            trigger_type: None,
            time_in_force,
            expire_time: (time_in_force == TimeInForce::Gtd).then(|| now.plus_nanos(ahead)),
            post_only: false,
            reduce_only: false,
            tags: tags.into_iter().map(str::to_owned).collect(),
        }))
    }

    fn decide(&mut self, now: TsNanos, instrument: InstrumentIx, last: Price) -> Vec<Action> {
        if !self.random.chance(0.15) {
            return vec![];
        }
        if self.random.chance(0.2) && self.sent > 0 {
            let client_order_id = format!("O-{}", 1 + self.random.below(self.sent)).into();
            let change = OrderModify { price: Some(last), ..OrderModify::default() };
            let quantity = Some(Quantity::new(200));
            let change =
                if self.random.chance(0.5) { change } else { OrderModify { quantity, ..change } };
            return vec![Action::Order(OrderCommand::Modify { client_order_id, change })];
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

    fn on_order_events(&mut self, _: &[OrderEvent]) -> Result<Vec<Action>, Box<Fault>> {
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
