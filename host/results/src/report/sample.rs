//! A made-up run for tests, and for looking at the page.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::digest::Digest;
use domain::strategy::{LogLevel, LogLine, NarrativeRecord, Signal, SignalKind};
use domain::time::{NANOS_PER_DAY, NANOS_PER_MINUTE};
use domain::{
    Fill, GuestLimit, InstrumentId, InstrumentIx, JstDate, Money, OrderEvent, OrderEventKind,
    OrderRecord, OrderRequest, OrderSide, OrderStatus, OrderType, Origin, Price, Quantity,
    ReasonCode, Rejection, TimeInForce, TsNanos,
};
use tempfile::TempDir;

use crate::output::{ComponentIdentity, InputFile, MANIFEST_VERSION, Manifest};
use crate::recorder::DaySlice;
use crate::recorder::{Recorder, RowTimes};
use crate::run_folder::RunFolder;
use crate::sink::{InMemory, Record, RunSink};
use crate::statistics::Performance;
use crate::totals::{OrderCounts, RunResult, RunStatus, RunTotals};
use exchange::ExecutionModel;

const CASH: Money = Money::from_yen(10_000_000);

/// What the made-up runs trade.
pub(crate) fn instruments() -> [InstrumentId; 2] {
    ["7203.TSE", "6758.TSE"].map(|id| id.parse().unwrap())
}

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
pub(crate) fn empty() -> RunResult {
    let totals = RunTotals {
        status: RunStatus::Completed,
        digest: Digest(0x1234_5678_9abc_def0),
        digest_records: 0,
        order_counts: OrderCounts::default(),
        fill_count: 0,
        trades_seen: 0,
        market_volume: 0,
        our_volume: Quantity::ZERO,
        cash_start: CASH,
        cash_end: CASH,
        equity_end: CASH,
        position_end: 0,
        positions: Vec::new(),
        realised_pnl: Money::ZERO,
        commission: Money::ZERO,
        notes: Vec::new(),
        span: None,
        warnings: vec![],
        performance: Performance::new(CASH),
        parameters: BTreeMap::new(),
    };
    InMemory::default().into_result(totals)
}

/// The folder of a run.
pub(crate) fn folder(manifest: &Manifest, result: &RunResult) -> TempDir {
    let parent = tempfile::tempdir().unwrap();
    let mut writer = RunFolder::create(&parent.path().join("run"), &instruments()).unwrap();
    feed(result, &mut writer);
    writer.finish(manifest, &result.totals).unwrap();
    parent
}

/// Hands the rows of a run to a sink.
fn feed(result: &RunResult, sink: &mut dyn RunSink) {
    let mut take = |record: Record<'_>| sink.take(record).unwrap();
    result.order_events.iter().for_each(|event| take(Record::OrderEvent { event, sent: true }));
    result.orders.iter().for_each(|order| take(Record::Order(order)));
    result.fills.iter().for_each(|fill| take(Record::Fill(fill)));
    result.position_events.iter().for_each(|event| take(Record::Position(event)));
    result.round_trips.iter().for_each(|trip| take(Record::RoundTrip(trip)));
    result.equity.iter().for_each(|row| take(Record::Equity(row)));
    result.marks.iter().for_each(|row| take(Record::Mark(row)));
    result.days.iter().for_each(|row| take(Record::Day(row)));
    result.signals.iter().for_each(|(ts_event, signal)| take(Record::Signal(*ts_event, signal)));
    for (ts_event, record) in &result.narrative {
        take(Record::Narrative(*ts_event, record));
    }
    result.log.iter().for_each(|line| take(Record::Log(line)));
}

/// The manifest of a made-up run.
pub(crate) fn manifest(result: &RunResult) -> Manifest {
    Manifest {
        manifest_version: MANIFEST_VERSION,
        kumiki_version: "0.1.0".to_owned(),
        run_kind: None,
        status: result.totals.status.as_str().to_owned(),
        partial: result.totals.status != RunStatus::Completed,
        fault: match &result.totals.status {
            RunStatus::Failed(fault) => Some(fault.to_string()),
            RunStatus::Completed | RunStatus::Interrupted => None,
        },
        warning: None,
        component: ComponentIdentity {
            name: "sma-cross".to_owned(),
            sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".to_owned(),
            imports: vec![
                "kumiki:strategy/types@0.1.0".to_owned(),
                "kumiki:strategy/orders@0.1.0".to_owned(),
                "kumiki:strategy/signals@0.1.0".to_owned(),
            ],
        },
        engine: "wasmtime 48.0.8".to_owned(),
        limits: GuestLimit::ALL
            .iter()
            .map(|limit| (limit.name().to_owned(), limit.default_value()))
            .collect(),
        parameters: serde_json::json!({ "fast": 20, "slow": 120, "lots": 1, "cool_down": "5m" }),
        parameters_effective: BTreeMap::from([
            ("cool_down".to_owned(), "5m".into()),
            ("fast".to_owned(), 20.into()),
            ("lots".to_owned(), 1.into()),
            ("slow".to_owned(), 120.into()),
            ("stop_ticks".to_owned(), 0.into()),
        ]),
        instrument_id: "7203.TSE".to_owned(),
        names: None,
        start: "2025-01-06".to_owned(),
        end: "2025-01-31".to_owned(),
        granularity: "trade".to_owned(),
        bars_from: None,
        cash: CASH.to_string(),
        lot: "100".to_owned(),
        ticks: "topix500".to_owned(),
        lot_asked: String::new(),
        ticks_asked: "topix500".to_owned(),
        window: 1,
        execution_model: ExecutionModel::default(),
        rules: ExecutionModel::default()
            .rules()
            .into_iter()
            .map(|(name, text)| (name.to_owned(), text))
            .collect::<BTreeMap<_, _>>(),
        settings: Vec::new(),
        inputs: vec![InputFile {
            file: "equities_trades_202501.csv.gz".to_owned(),
            xxh3_128: "0f1e2d3c4b5a69788796a5b4c3d2e1f0".to_owned(),
            rows: 958_113,
        }],
        notes: vec!["7203.TSE: lot 100, the usual one; ticks topix500, as asked for".to_owned()],
        event_log_digest: result.totals.digest.to_string(),
        event_log_records: result.totals.digest_records,
    }
}

/// An accepted order, for making others of it.
pub(crate) fn order(id: &str) -> OrderRecord {
    let request = request(id, OrderSide::Buy);
    OrderRecord {
        status: OrderStatus::Accepted,
        venue_order_id: Some("R1".into()),
        ..OrderRecord::new(Origin::Strategy, 0, request, TsNanos::default())
    }
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

/// A run of some days of two instruments, with an order in every `every`-th minute on average.
pub(crate) fn run(days: u64, every: u64) -> RunResult {
    let mut rows = InMemory::default();
    let mut maker = Maker {
        dice: Dice(11),
        model: order("model"),
        recorder: Recorder::new(&mut rows, CASH, 2),
        orders: 0,
        held: [0; 2],
        cash: CASH,
        our_volume: Quantity::ZERO,
    };
    let monday = TsNanos::from_jst(JstDate::from_ymd_opt(2025, 1, 6).unwrap(), 0).unwrap();
    let mut units = [26_500_000_i64, 31_000_000];
    let mut span = None;
    for day in 0..days {
        let midnight = monday.plus_nanos((day / 5 * 7 + day % 5) * NANOS_PER_DAY);
        let (mut ts, mut prices) = (Vec::new(), [Vec::new(), Vec::new()]);
        for minute in (540..690).chain(750..930) {
            let open = midnight.plus_nanos(minute * NANOS_PER_MINUTE);
            for (units, prices) in units.iter_mut().zip(&mut prices) {
                let step = maker.dice.roll(11).cast_signed() - 5;
                *units = (*units + step * 5_000).max(10_000_000);
                prices.push(*units);
            }
            ts.push(open.nanos());
            if maker.dice.roll(every) == 0 {
                let instrument = usize::from(maker.dice.roll(3) == 0);
                maker.send(open, instrument, Price::from_units(units[instrument]));
            }
        }
        maker.recorder.end_day(
            &[0, 1].map(|index: usize| DaySlice { ts_event: &ts, price: &prices[index] }),
            RowTimes::Events,
        );
        let first = span.map_or(ts[0], |(first, _)| first);
        span = Some((first, *ts.last().unwrap()));
    }
    let prices = units.map(Price::from_units);
    let totals = maker.finish(days, span, prices);
    rows.into_result(totals)
}

struct Maker<'s> {
    dice: Dice,
    model: OrderRecord,
    recorder: Recorder<'s>,
    orders: usize,
    held: [i64; 2],
    cash: Money,
    our_volume: Quantity,
}

impl Maker<'_> {
    fn send(&mut self, open: TsNanos, instrument: usize, price: Price) {
        let ts_event = open.plus_nanos(self.dice.roll(50_000_000) * 1_000);
        self.orders += 1;
        let number = self.orders;
        let side = if self.held[instrument] > 0 { OrderSide::Sell } else { OrderSide::Buy };
        let mut wanted = request(&format!("O-{number}"), side);
        wanted.instrument = InstrumentIx(instrument as u16);
        wanted.quantity = Quantity::new(300);
        if number.is_multiple_of(3) {
            (wanted.order_type, wanted.price) = (OrderType::Limit, Some(price));
        }
        let mut order = self.model.clone();
        order.request = Arc::new(wanted);
        order.venue_order_id = Some(format!("R{number}").into());
        (order.ts_submitted, order.ts_last, order.status) =
            (ts_event, ts_event, OrderStatus::Filled);
        order.rejection = None;
        self.tell(&order, OrderStatus::Submitted, OrderEventKind::Submitted(order.request.clone()));
        match number % 40 {
            7 => {
                order.status = OrderStatus::Expired;
                self.tell(&order, order.status, OrderEventKind::Expired("DAY"));
            }
            19 => {
                order.status = OrderStatus::Rejected;
                order.venue_order_id = None;
                let text = "CASH: 795,000 yen are needed at the worst price; 512,300 are free";
                let why = Rejection::new(ReasonCode::InsufficientFunds, text);
                order.rejection = Some(why.clone());
                self.tell(&order, order.status, OrderEventKind::Rejected(why));
            }
            _ => self.fill(&mut order, price),
        }
        self.mark(ts_event, price, side, number, instrument);
        self.recorder.order(&order);
    }

    fn tell(&mut self, order: &OrderRecord, status: OrderStatus, kind: OrderEventKind) {
        self.recorder.order_event(&OrderEvent {
            origin: Origin::Strategy,
            ts_event: order.ts_last,
            client_order_id: order.request.client_order_id.clone(),
            venue_order_id: order.venue_order_id.clone(),
            instrument: order.request.instrument,
            side: order.request.side,
            status,
            kind,
        });
    }

    /// Fills an order in two or three parts.
    fn fill(&mut self, order: &mut OrderRecord, price: Price) {
        let parts: &[u64] = if self.dice.roll(2) == 0 { &[100, 200] } else { &[100, 100, 100] };
        let side = order.request.side;
        let instrument = usize::from(order.request.instrument.0);
        self.tell(order, OrderStatus::Accepted, OrderEventKind::Accepted);
        for (index, part) in parts.iter().enumerate() {
            order.ts_last = order.ts_last.plus_nanos(1_000 + self.dice.roll(90_000_000));
            let paid = Price::from_units(price.units() + side.sign() * 5_000);
            let value = Money::checked_notional(paid, Quantity::new(*part)).unwrap();
            order.filled += Quantity::new(*part);
            order.filled_value += value;
            self.cash -= Money::from_units(value.units() * side.sign());
            self.held[instrument] += part.cast_signed() * side.sign();
            self.our_volume += Quantity::new(*part);
            let fill = Fill {
                side,
                trade_id: format!("{}-{index}", self.orders).into(),
                last_quantity: Quantity::new(*part),
                last_price: paid,
                market_price: price,
                cumulative_quantity: order.filled,
                leaves_quantity: order.leaves(),
                commission: Some(Money::ZERO),
            };
            let done = index + 1 == parts.len();
            let status = if done { OrderStatus::Filled } else { OrderStatus::PartiallyFilled };
            self.tell(order, status, OrderEventKind::Filled(fill));
        }
    }

    fn mark(
        &mut self,
        ts_event: TsNanos,
        price: Price,
        side: OrderSide,
        number: usize,
        instrument: usize,
    ) {
        if number.is_multiple_of(8) {
            let kind =
                if side == OrderSide::Buy { SignalKind::EntryLong } else { SignalKind::Exit };
            let signal = Signal {
                instrument: InstrumentIx(instrument as u16),
                kind,
                side: Some(side),
                price: number.is_multiple_of(16).then_some(price),
                tag: Some("cross".to_owned()),
                note: Some(format!("the fast average crossed the slow one at {price}")),
            };
            self.recorder.signal(ts_event, &signal);
        }
        if number.is_multiple_of(50) {
            let record = NarrativeRecord {
                client_order_id: Some(format!("O-{number}").into()),
                title: "Trend turned".to_owned(),
                body: "The short average left the long one behind. ".repeat(9),
            };
            self.recorder.narrative(ts_event, &record);
            self.recorder.log([LogLine {
                ts_event: Some(ts_event),
                level: if number.is_multiple_of(100) { LogLevel::Warn } else { LogLevel::Info },
                message: format!("order {number} sent at {price}"),
            }]);
        }
    }

    fn finish(self, days: u64, span: Option<(u64, u64)>, prices: [Price; 2]) -> RunTotals {
        let value = |(held, price): (&i64, &Price)| Money::from_units(held * price.units());
        let equity_end = self.cash + self.held.iter().zip(&prices).map(value).sum();
        let notes = self.recorder.finish();
        let digest_records = notes.order_counts.all * 2 + notes.fill_count;
        RunTotals {
            order_counts: notes.order_counts,
            fill_count: notes.fill_count,
            trades_seen: days * 330 * 145,
            market_volume: u128::from(days) * 330 * 38_700,
            our_volume: self.our_volume,
            cash_end: self.cash,
            equity_end,
            position_end: self.held.iter().sum(),
            realised_pnl: notes.positions.iter().map(|one| one.realised_pnl).sum(),
            positions: notes.positions,
            span: span.map(|(from, to)| (TsNanos::from_nanos(from), TsNanos::from_nanos(to))),
            warnings: vec![],
            performance: notes.performance,
            digest_records,
            ..empty().totals
        }
    }
}
