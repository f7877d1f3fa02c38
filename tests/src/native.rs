//! Runs a strategy's own Rust source natively behind the interface that the sandbox implements, to
//! compare the two: the same results, and what the sandbox costs.

use domain::account::PortfolioView;
use domain::fault::{Fault, FaultKind, Identity};
use domain::market::{Bar, BarGranularity, TradeColumns, Window};
use domain::strategy::{
    Action, Capabilities, LogLine, NarrativeRecord, Outcome, Signal, SignalKind, StrategyRuntime,
};
use domain::{
    AccountEvent, AccountEventKind, Instrument, InstrumentIx, OrderCommand, OrderEvent,
    OrderEventKind, OrderModify, OrderRequest, OrderSide, OrderStatus, OrderType, Price, Quantity,
    ShortText, TimeInForce, TsNanos,
};
use kumiki_sdk as sdk;
use kumiki_sdk::testing::native;

/// A strategy that runs without a sandbox.
pub struct Native<S> {
    runner: Option<sdk::Runner<S>>,
    /// The window, copied as a component would get it.
    window: Columns,
    /// The window where it has bars.
    bars: Vec<sdk::Bar>,
    reached: u32,
}

#[derive(Default)]
struct Columns {
    ts_event: Vec<u64>,
    instrument: Vec<u16>,
    price: Vec<i64>,
    quantity: Vec<u64>,
}

impl Columns {
    fn fill(&mut self, rows: TradeColumns<'_>) {
        self.ts_event.clear();
        self.ts_event.extend_from_slice(rows.ts_event);
        self.instrument.clear();
        self.instrument.extend_from_slice(rows.instrument);
        self.price.clear();
        self.price.extend_from_slice(rows.price);
        self.quantity.clear();
        self.quantity.extend_from_slice(rows.quantity);
    }

    fn slices(&self) -> sdk::TradeSlices<'_> {
        sdk::TradeSlices {
            ts_event: &self.ts_event,
            instrument: &self.instrument,
            price: &self.price,
            quantity: &self.quantity,
        }
    }
}

impl<S> Default for Native<S> {
    fn default() -> Self {
        Self { runner: None, window: Columns::default(), bars: Vec::new(), reached: 0 }
    }
}

fn fault(export: &'static str, text: String) -> Box<Fault> {
    Box::new(Fault {
        component: "native".to_owned(),
        sha256: String::new(),
        export,
        ts_event: None,
        kind: FaultKind::Refused(text),
        backtrace: Vec::new(),
    })
}

impl<S: sdk::Strategy> Native<S> {
    fn runner(&mut self) -> &mut sdk::Runner<S> {
        match &mut self.runner {
            Some(runner) => runner,
            None => panic!("a native strategy was called before its init"),
        }
    }

    fn actions(&mut self) -> Vec<Action> {
        self.runner().take_actions().into_iter().map(action).collect()
    }
}

impl<S: sdk::Strategy> StrategyRuntime for Native<S> {
    fn identity(&self) -> Identity {
        Identity { component: "native".to_owned(), sha256: String::new() }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { portfolio: true, working_orders: false, aggressor: false }
    }

    fn init(&mut self, config_json: &str, instruments: &[Instrument]) -> Result<(), Box<Fault>> {
        let instruments = instruments.iter().map(instrument).collect();
        let made = sdk::Runner::new(config_json, instruments);
        self.runner = Some(made.map_err(|error| fault("init", error.to_string()))?);
        Ok(())
    }

    fn start(&mut self, now: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        self.runner().start(sdk::Timestamp(now.nanos()));
        Ok(self.actions())
    }

    fn advance(&mut self, window: Window<'_>, limit: u32) -> Result<Outcome, Box<Fault>> {
        match window {
            Window::Resume => {}
            Window::Trades(rows) => {
                self.window.fill(rows);
                self.reached = 0;
            }
            Window::OneTrade(trade) => {
                self.window.fill(TradeColumns {
                    ts_event: &[trade.ts_event.nanos()],
                    instrument: &[trade.instrument.0],
                    price: &[trade.price.units()],
                    quantity: &[trade.quantity.shares()],
                });
                self.reached = 0;
            }
            Window::OneBar(one) => {
                self.bars = vec![bar(&one)];
                self.reached = 0;
            }
            Window::Bars(bars) => {
                self.bars = bars.iter().map(bar).collect();
                self.reached = 0;
            }
        }
        match window {
            Window::Trades(_) | Window::OneTrade(_) => self.bars.clear(),
            Window::Resume | Window::OneBar(_) | Window::Bars(_) => {}
        }
        let Some(runner) = &mut self.runner else { panic!("called before init") };
        self.reached = if self.bars.is_empty() {
            runner.trades(self.window.slices(), self.reached, limit)
        } else {
            runner.bars(&self.bars, self.reached, limit)
        };
        Ok(Outcome { reached: self.reached, actions: self.actions() })
    }

    fn on_order_events(&mut self, events: &[OrderEvent]) -> Result<Vec<Action>, Box<Fault>> {
        self.runner().order_events(events.iter().map(order_event));
        Ok(self.actions())
    }

    fn on_account_events(&mut self, events: &[AccountEvent]) -> Result<Vec<Action>, Box<Fault>> {
        self.runner().account_events(events.iter().map(account_event));
        Ok(self.actions())
    }

    fn stop(&mut self, now: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        self.runner().stop(sdk::Timestamp(now.nanos()));
        Ok(self.actions())
    }

    fn set_portfolio(&mut self, view: &PortfolioView) {
        native::with(|answers| {
            answers.account = sdk::Account {
                cash: sdk::Money::from_units(view.account.cash.units()),
                reserved: sdk::Money::from_units(view.account.reserved.units()),
                realised_pnl: sdk::Money::from_units(view.account.realised_pnl.units()),
                commission: sdk::Money::from_units(view.account.commission.units()),
            };
            answers.positions.clear();
            answers.positions.extend(view.positions.iter().map(|position| sdk::Position {
                quantity: position.quantity,
                cost: sdk::Money::from_units(position.cost.units()),
                realised_pnl: sdk::Money::from_units(position.realised_pnl.units()),
            }));
        });
    }

    fn take_log(&mut self) -> Vec<LogLine> {
        Vec::new()
    }
}

fn bar(bar: &Bar) -> sdk::Bar {
    let price = |price: Price| sdk::Price::from_units(price.units());
    sdk::Bar {
        ts_event: sdk::Timestamp(bar.ts_event.nanos()),
        instrument: sdk::InstrumentIx(bar.instrument.0),
        granularity: match bar.granularity {
            BarGranularity::Minute => sdk::Granularity::Minute,
            BarGranularity::Day => sdk::Granularity::Day,
        },
        open: price(bar.open),
        high: price(bar.high),
        low: price(bar.low),
        close: price(bar.close),
        volume: sdk::Quantity::new(bar.volume.shares()),
    }
}

fn instrument(instrument: &Instrument) -> sdk::Instrument {
    let ticks = instrument.ticks.bands().map(|(up_to, tick)| sdk::TickBand {
        up_to: sdk::Price::from_units(up_to.units()),
        tick: sdk::Price::from_units(tick.units()),
    });
    sdk::Instrument {
        id: instrument.id.to_string(),
        lot: sdk::Quantity::new(instrument.lot.shares()),
        ticks: ticks.collect(),
    }
}

fn side(side: sdk::Side) -> OrderSide {
    match side {
        sdk::Side::Buy => OrderSide::Buy,
        sdk::Side::Sell => OrderSide::Sell,
    }
}

fn price(price: sdk::Price) -> Price {
    Price::from_units(price.units())
}

fn action(action: sdk::Action) -> Action {
    match action {
        sdk::Action::Submit(order) => Action::Order(OrderCommand::Submit(request(order))),
        sdk::Action::Modify { client_order_id, change } => Action::Order(OrderCommand::Modify {
            client_order_id: ShortText::from(client_order_id),
            change: OrderModify {
                quantity: change.quantity.map(|quantity| Quantity::new(quantity.shares())),
                price: change.price.map(price),
                trigger_price: change.trigger_price.map(price),
                expire_time: change.expire_time.map(|moment| TsNanos::from_nanos(moment.0)),
            },
        }),
        sdk::Action::Cancel { client_order_id } => Action::Order(OrderCommand::Cancel {
            client_order_id: ShortText::from(client_order_id),
        }),
        sdk::Action::CancelAll { instrument } => Action::Order(OrderCommand::CancelAll {
            instrument: instrument.map(|index| InstrumentIx(index.0)),
            side: None,
        }),
        sdk::Action::EmitSignal(signal) => Action::Signal(Signal {
            instrument: InstrumentIx(signal.instrument.0),
            kind: match signal.kind {
                sdk::SignalKind::EntryLong => SignalKind::EntryLong,
                sdk::SignalKind::EntryShort => SignalKind::EntryShort,
                sdk::SignalKind::Exit => SignalKind::Exit,
                sdk::SignalKind::Annotate => SignalKind::Annotate,
            },
            side: signal.side.map(side),
            price: signal.price.map(price),
            tag: signal.tag,
            note: signal.note,
        }),
        sdk::Action::Narrate(record) => Action::Narrative(NarrativeRecord {
            client_order_id: record.client_order_id.map(ShortText::from),
            title: record.title,
            body: record.body,
        }),
    }
}

fn request(order: sdk::Order) -> OrderRequest {
    let (time_in_force, expire_time) = match order.time_in_force {
        sdk::TimeInForce::Day => (TimeInForce::Day, None),
        sdk::TimeInForce::Gtd(moment) => (TimeInForce::Gtd, Some(TsNanos::from_nanos(moment.0))),
        sdk::TimeInForce::AtTheOpen => (TimeInForce::AtTheOpen, None),
        sdk::TimeInForce::AtTheClose => (TimeInForce::AtTheClose, None),
    };
    OrderRequest {
        client_order_id: ShortText::from(order.client_order_id.unwrap_or_default()),
        instrument: InstrumentIx(order.instrument.0),
        side: side(order.side),
        order_type: match order.order_type {
            sdk::OrderType::Market => OrderType::Market,
            sdk::OrderType::Limit => OrderType::Limit,
            sdk::OrderType::StopMarket => OrderType::StopMarket,
            sdk::OrderType::StopLimit => OrderType::StopLimit,
        },
        quantity: Quantity::new(order.quantity.shares()),
        price: order.price.map(price),
        trigger_price: order.trigger_price.map(price),
        trigger_type: None,
        time_in_force,
        expire_time,
        post_only: order.post_only,
        reduce_only: order.reduce_only,
        tags: order.tags,
    }
}

fn order_event(event: &OrderEvent) -> sdk::OrderEvent {
    use sdk::OrderEventKind as Out;
    let kind = match &event.kind {
        OrderEventKind::Submitted(_) => Out::Submitted,
        OrderEventKind::Accepted => Out::Accepted,
        OrderEventKind::Rejected(why) => Out::Rejected(sdk::Rejection {
            reason_code: why.code.as_str().to_owned(),
            reason_text: why.text.clone(),
        }),
        OrderEventKind::PendingUpdate(_) => Out::PendingUpdate,
        OrderEventKind::Updated(_) => Out::Updated,
        OrderEventKind::PendingCancel => Out::PendingCancel,
        OrderEventKind::Canceled => Out::Canceled,
        OrderEventKind::Expired(why) => Out::Expired((*why).to_owned()),
        OrderEventKind::Filled(fill) => Out::Filled(sdk::Fill {
            trade_id: fill.trade_id.to_string(),
            last_quantity: sdk::Quantity::new(fill.last_quantity.shares()),
            last_price: sdk::Price::from_units(fill.last_price.units()),
            cumulative_quantity: sdk::Quantity::new(fill.cumulative_quantity.shares()),
            leaves_quantity: sdk::Quantity::new(fill.leaves_quantity.shares()),
            commission: sdk::Money::from_units(fill.known_commission().units()),
        }),
    };
    sdk::OrderEvent {
        ts_event: sdk::Timestamp(event.ts_event.nanos()),
        client_order_id: event.client_order_id.to_string(),
        venue_order_id: event.venue_order_id.as_deref().map(str::to_owned),
        instrument: sdk::InstrumentIx(event.instrument.0),
        status: status(event.status),
        kind,
    }
}

fn account_event(event: &AccountEvent) -> sdk::AccountEvent {
    let AccountEventKind::Split(split) = &event.kind;
    let (new_shares, old_shares) = split.adjustment.terms();
    sdk::AccountEvent {
        ts_event: sdk::Timestamp(event.ts_event.nanos()),
        instrument: sdk::InstrumentIx(event.instrument.0),
        kind: sdk::AccountEventKind::Split(sdk::Split {
            old_shares,
            new_shares,
            quantity: split.quantity,
            cash_paid: sdk::Money::from_units(split.cash_paid.units()),
            last_price: split.last_price.map(|price| sdk::Price::from_units(price.units())),
        }),
    }
}

fn status(status: OrderStatus) -> sdk::OrderStatus {
    match status {
        OrderStatus::Initialized => sdk::OrderStatus::Initialized,
        OrderStatus::Submitted => sdk::OrderStatus::Submitted,
        OrderStatus::Accepted => sdk::OrderStatus::Accepted,
        OrderStatus::PartiallyFilled => sdk::OrderStatus::PartiallyFilled,
        OrderStatus::Filled => sdk::OrderStatus::Filled,
        OrderStatus::PendingUpdate => sdk::OrderStatus::PendingUpdate,
        OrderStatus::PendingCancel => sdk::OrderStatus::PendingCancel,
        OrderStatus::Canceled => sdk::OrderStatus::Canceled,
        OrderStatus::Expired => sdk::OrderStatus::Expired,
        OrderStatus::Rejected => sdk::OrderStatus::Rejected,
    }
}
