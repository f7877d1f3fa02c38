//! A made-up run for tests, and for looking at the page.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::digest::Digest;
use domain::strategy::{LogLevel, LogLine, NarrativeRecord, Signal, SignalKind};
use domain::time::{NANOS_PER_DAY, NANOS_PER_MINUTE};
use domain::{
    Instrument, InstrumentIx, JstDate, Money, OrderRequest, OrderSide, OrderStatus, OrderType,
    Price, Quantity, ReasonCode, Rejection, TickTable, TimeInForce, TsNanos,
};

use crate::exchange::{Exchange, ExecutionModel, Order, RULES};
use crate::output::{ComponentIdentity, InputFile, MANIFEST_VERSION, Manifest};
use crate::record::{EquityRow, FillRow, RunResult, RunStatus};

const CASH: Money = Money::from_yen(10_000_000);

/// A small generator of numbers that look random and never change.
struct Dice(u64);

impl Dice {
    /// A number from 0 up to `sides`, without `sides`.
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// What a run without any trade leaves behind.
pub(super) fn empty() -> RunResult {
    RunResult {
        status: RunStatus::Completed,
        orders: Vec::new(),
        fills: Vec::new(),
        equity: Vec::new(),
        signals: Vec::new(),
        narrative: Vec::new(),
        log: Vec::new(),
        digest: Digest(0x1234_5678_9abc_def0),
        digest_records: 0,
        trades_seen: 0,
        market_volume: 0,
        our_volume: Quantity::ZERO,
        cash_start: CASH,
        cash_end: CASH,
        equity_end: CASH,
        position_end: 0,
        realised_pnl: Money::ZERO,
        commission: Money::ZERO,
        span: None,
    }
}

/// The manifest of a made-up run.
pub(super) fn manifest(result: &RunResult) -> Manifest {
    Manifest {
        manifest_version: MANIFEST_VERSION,
        kumiki_version: "0.1.0".to_owned(),
        status: result.status.as_str().to_owned(),
        fault: None,
        component: ComponentIdentity {
            name: "sma-cross".to_owned(),
            sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".to_owned(),
            imports: vec![
                "kumiki:strategy/types@0.1.0".to_owned(),
                "kumiki:strategy/orders@0.1.0".to_owned(),
                "kumiki:strategy/signals@0.1.0".to_owned(),
            ],
        },
        parameters: serde_json::json!({ "fast": 20, "slow": 120, "lots": 1, "cool_down": "5m" }),
        instrument_id: "7203.TSE".to_owned(),
        start: "2025-01-06".to_owned(),
        end: "2025-01-31".to_owned(),
        granularity: "trade".to_owned(),
        bars_from: None,
        cash: CASH.to_string(),
        lot: 100,
        ticks: "topix500".to_owned(),
        window: 1,
        execution_model: ExecutionModel::default(),
        rules: RULES
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect::<BTreeMap<_, _>>(),
        inputs: vec![InputFile {
            file: "equities_trades_202501.csv.gz".to_owned(),
            xxh3_128: "0f1e2d3c4b5a69788796a5b4c3d2e1f0".to_owned(),
            rows: 958_113,
        }],
        event_log_digest: result.digest.to_string(),
        event_log_records: result.digest_records,
    }
}

/// An order as the exchange takes it, for making others of it.
pub(super) fn order(id: &str) -> Order {
    let instrument = Instrument {
        id: "7203.TSE".parse().unwrap(),
        lot: Quantity::new(100),
        ticks: TickTable::Topix500,
    };
    let mut exchange = Exchange::new(ExecutionModel::default(), &[instrument], CASH);
    exchange.submit(TsNanos::default(), request(id, OrderSide::Buy));
    exchange.orders()[0].clone()
}

fn request(id: &str, side: OrderSide) -> OrderRequest {
    OrderRequest {
        client_order_id: id.into(),
        instrument: InstrumentIx(0),
        side,
        order_type: OrderType::Market,
        quantity: Quantity::new(100),
        price: None,
        trigger_price: None,
        trigger_type: None,
        time_in_force: TimeInForce::Day,
        expire_time: None,
        post_only: false,
        reduce_only: false,
        tags: Vec::new(),
    }
}

/// A run in the making.
struct Maker {
    dice: Dice,
    result: RunResult,
    model: Order,
    held: i64,
    cash: Money,
}

/// A run of `days` trading days in which about one minute in `every` sends an order.
pub(super) fn run(days: u64, every: u64) -> RunResult {
    let mut maker =
        Maker { dice: Dice(7), result: empty(), model: order("O-0"), held: 0, cash: CASH };
    let monday = TsNanos::from_jst(JstDate::from_ymd_opt(2025, 1, 6).unwrap(), 0).unwrap();
    let mut units = 26_500_000_i64;
    for day in 0..days {
        let midnight = monday.plus_nanos((day / 5 * 7 + day % 5) * NANOS_PER_DAY);
        for minute in (540..690).chain(750..930) {
            let open = midnight.plus_nanos(minute * NANOS_PER_MINUTE);
            let step = maker.dice.roll(11).cast_signed() - 5;
            units = (units + step * 5_000).max(10_000_000);
            if maker.dice.roll(every) == 0 {
                maker.send(open, Price::from_units(units));
            }
            maker.end_minute(open, Price::from_units(units));
        }
    }
    maker.finish(Price::from_units(units))
}

impl Maker {
    fn send(&mut self, open: TsNanos, price: Price) {
        let moment = open.plus_nanos(self.dice.roll(50_000_000) * 1_000);
        let number = self.result.orders.len() + 1;
        let side = if self.held > 0 { OrderSide::Sell } else { OrderSide::Buy };
        let mut wanted = request(&format!("O-{number}"), side);
        wanted.quantity = Quantity::new(300);
        if number.is_multiple_of(3) {
            (wanted.order_type, wanted.price) = (OrderType::Limit, Some(price));
        }
        let mut order = self.model.clone();
        order.request = Arc::new(wanted);
        order.venue_order_id = Some(format!("V-{number}").into());
        (order.ts_submitted, order.ts_last, order.status) = (moment, moment, OrderStatus::Filled);
        order.rejection = None;
        match number % 40 {
            7 => order.status = OrderStatus::Expired,
            19 => {
                order.status = OrderStatus::Rejected;
                order.venue_order_id = None;
                let text = "CASH: 795,000 yen are needed at the worst price; 512,300 are free";
                order.rejection = Some(Rejection::new(ReasonCode::InsufficientFunds, text));
            }
            _ => self.fill(&mut order, moment, price),
        }
        self.mark(moment, price, side, number);
        self.result.orders.push(order);
    }

    /// Fills an order in two or three parts.
    fn fill(&mut self, order: &mut Order, moment: TsNanos, price: Price) {
        let parts: &[u64] = if self.dice.roll(2) == 0 { &[100, 200] } else { &[100, 100, 100] };
        let side = order.request.side;
        for part in parts {
            order.ts_last = order.ts_last.plus_nanos(1_000 + self.dice.roll(900_000_000));
            let paid = Price::from_units(price.units() + side.sign() * 5_000);
            let value = Money::checked_notional(paid, Quantity::new(*part)).unwrap();
            order.filled += Quantity::new(*part);
            order.filled_value += value;
            let signed = Money::from_units(value.units() * side.sign());
            self.cash -= signed;
            self.held += part.cast_signed() * side.sign();
            self.result.our_volume += Quantity::new(*part);
            self.result.fills.push(FillRow {
                ts_event: order.ts_last.max(moment),
                instrument: InstrumentIx(0),
                client_order_id: Arc::clone(&order.request.client_order_id),
                venue_order_id: order.venue_order_id.clone().unwrap(),
                trade_id: format!("T-{}", self.result.fills.len() + 1).into(),
                side,
                price: paid,
                quantity: Quantity::new(*part),
                cumulative_quantity: order.filled,
                leaves_quantity: order.leaves(),
                commission: Money::ZERO,
            });
        }
    }

    fn mark(&mut self, moment: TsNanos, price: Price, side: OrderSide, number: usize) {
        if number.is_multiple_of(8) {
            let kind =
                if side == OrderSide::Buy { SignalKind::EntryLong } else { SignalKind::Exit };
            self.result.signals.push((
                moment,
                Signal {
                    instrument: InstrumentIx(0),
                    kind,
                    side: Some(side),
                    price: number.is_multiple_of(16).then_some(price),
                    tag: Some("cross".to_owned()),
                    note: Some(format!("the fast average crossed the slow one at {price}")),
                },
            ));
        }
        if number.is_multiple_of(50) {
            self.result.narrative.push((
                moment,
                NarrativeRecord {
                    client_order_id: Some(format!("O-{number}").into()),
                    title: "Trend turned".to_owned(),
                    body: "The short average left the long one behind. ".repeat(9),
                },
            ));
            self.result.log.push(LogLine {
                ts_event: Some(moment),
                level: if number.is_multiple_of(100) { LogLevel::Warn } else { LogLevel::Info },
                message: format!("order {number} sent at {price}"),
            });
        }
    }

    fn end_minute(&mut self, open: TsNanos, price: Price) {
        let value = Money::from_units(price.units() * self.held);
        self.result.equity.push(EquityRow {
            ts_event: open.plus_nanos(NANOS_PER_MINUTE),
            price,
            quantity: self.held,
            cash: self.cash,
            equity: self.cash + value,
        });
        let from = self.result.span.map_or(open, |span| span.0);
        self.result.span = Some((from, open));
        self.result.trades_seen += 145;
        self.result.market_volume += 38_700;
    }

    fn finish(mut self, price: Price) -> RunResult {
        self.result.position_end = self.held;
        self.result.cash_end = self.cash;
        self.result.equity_end = self.cash + Money::from_units(price.units() * self.held);
        self.result.realised_pnl = self.result.equity_end - CASH;
        self.result.digest_records =
            (self.result.orders.len() * 2 + self.result.fills.len()) as u64;
        self.result
    }
}
