//! Runs on paper with strategies of plain Rust, and their comparison; that of components is tested beside `paper`.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use domain::account::PortfolioView;
use domain::fault::{Fault, Identity};
use domain::market::{Trade, Window};
use domain::strategy::{Action, Capabilities, LogLine, Outcome, Signal, SignalKind};
use domain::time::NANOS_PER_SECOND;
use domain::{
    Fill, Instrument, InstrumentIx, JstDate, Money, OrderEvent, OrderEventKind, OrderModify,
    OrderRequest, OrderSide, OrderStatus, OrderType, Origin, Price, Quantity, TickTable,
    TimeInForce, TsNanos,
};
use replay::limit_values;
use replay::stream::{MarketStream, StreamStep};
use results::RunStatus;
use tempfile::TempDir;
use trader::OrderLimits;

use super::*;
use crate::journal::{
    JOURNAL_VERSION, Journal, Journaled, JournaledStream, KnownDays, Row, RowKind,
};

/// Buys and sells in turn, with a market order or a limit two yen away, and marks it.
struct InTurn {
    shares: u64,
    rows: u64,
    orders: u64,
    /// It also sends orders when it starts, and answers events of orders with changes, cancels and other orders.
    reacts: bool,
}

impl InTurn {
    const fn of(shares: u64) -> Self {
        Self { shares, rows: 0, orders: 0, reacts: false }
    }

    const fn reacting() -> Self {
        Self { shares: 100, rows: 0, orders: 0, reacts: true }
    }

    /// Another order because of one.
    fn more(&self, id: String, side: OrderSide, price: Option<Price>) -> Action {
        Action::Order(OrderCommand::Submit(OrderRequest {
            client_order_id: id.into(),
            instrument: InstrumentIx(0),
            side,
            order_type: if price.is_some() { OrderType::Limit } else { OrderType::Market },
            quantity: Quantity::new(self.shares),
            price,
            trigger_price: None,
            trigger_type: None,
            time_in_force: TimeInForce::Day,
            expire_time: None,
            post_only: false,
            reduce_only: false,
            tags: vec![],
        }))
    }

    /// What it answers an event with.
    fn answer(&self, event: &OrderEvent) -> Option<Action> {
        let id = event.client_order_id.clone();
        let number: u64 = id.strip_prefix("O-")?.parse().ok()?;
        match &event.kind {
            OrderEventKind::Accepted if number.is_multiple_of(9) => {
                Some(Action::Order(OrderCommand::Cancel { client_order_id: id }))
            }
            OrderEventKind::Accepted if number.is_multiple_of(6) => {
                let price = Some(Price::from_yen(997));
                let change = OrderModify { price, ..OrderModify::default() };
                Some(Action::Order(OrderCommand::Modify { client_order_id: id, change }))
            }
            OrderEventKind::Filled(fill) if number.is_multiple_of(4) => {
                Some(self.more(format!("F-{number}-{}", fill.trade_id), OrderSide::Buy, None))
            }
            OrderEventKind::Expired(_) => {
                let price = Some(Price::from_yen(1_001));
                Some(self.more(format!("E-{number}"), OrderSide::Buy, price))
            }
            _ => None,
        }
    }

    fn order(&mut self, trade: Trade) -> Vec<Action> {
        self.orders += 1;
        let buys = self.orders % 2 == 1;
        let side = if buys { OrderSide::Buy } else { OrderSide::Sell };
        let is_limit = self.orders.is_multiple_of(3);
        let away = Price::from_yen(2).units() * if buys { -1 } else { 1 };
        let request = OrderRequest {
            client_order_id: format!("O-{}", self.orders).into(),
            instrument: trade.instrument,
            side,
            order_type: if is_limit { OrderType::Limit } else { OrderType::Market },
            quantity: Quantity::new(self.shares),
            price: is_limit.then(|| Price::from_units(trade.price.units() + away)),
            trigger_price: None,
            trigger_type: None,
            time_in_force: TimeInForce::Day,
            expire_time: None,
            post_only: false,
            reduce_only: false,
            tags: vec![],
        };
        let signal = Signal {
            instrument: trade.instrument,
            kind: SignalKind::Annotate,
            side: Some(side),
            price: Some(trade.price),
            tag: None,
            note: None,
        };
        vec![Action::Order(OrderCommand::Submit(request)), Action::Signal(signal)]
    }
}

impl StrategyRuntime for InTurn {
    fn identity(&self) -> Identity {
        Identity { component: "in-turn".to_owned(), sha256: String::new() }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn init(&mut self, _: &str, _: &[Instrument]) -> Result<(), Box<Fault>> {
        Ok(())
    }

    fn start(&mut self, _: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        let order = || self.more("S-1".to_owned(), OrderSide::Buy, None);
        Ok(if self.reacts { vec![order()] } else { vec![] })
    }

    fn advance(&mut self, window: Window<'_>, _: u32) -> Result<Outcome, Box<Fault>> {
        self.rows += 1;
        let trade = match window {
            Window::OneTrade(trade) => trade,
            Window::Trades(columns) => columns.trade(0),
            other => panic!("{other:?}"),
        };
        let actions = if self.rows.is_multiple_of(20) { self.order(trade) } else { vec![] };
        Ok(Outcome { reached: 1, actions })
    }

    fn on_order_events(&mut self, events: &[OrderEvent]) -> Result<Vec<Action>, Box<Fault>> {
        let answers = events.iter().filter(|_| self.reacts).filter_map(|event| self.answer(event));
        Ok(answers.collect())
    }

    fn stop(&mut self, _: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        Ok(vec![])
    }

    fn set_portfolio(&mut self, _: &PortfolioView) {}

    fn take_log(&mut self) -> Vec<LogLine> {
        vec![]
    }
}

/// Steps that were written down, then a stop.
struct Script(std::vec::IntoIter<StreamStep>);

impl MarketStream for Script {
    fn ready(&mut self) {}

    fn next(&mut self) -> StreamStep {
        self.0.next().unwrap_or(StreamStep::Stop)
    }
}

fn date(day: u32) -> JstDate {
    JstDate::from_ymd_opt(2025, 1, day).unwrap()
}

/// So many seconds after 09:00 on a day of January 2025.
fn at(day: u32, seconds: u64) -> TsNanos {
    TsNanos::from_jst(date(day), (9 * 3_600 + seconds) * NANOS_PER_SECOND).unwrap()
}

fn trade(ts_event: TsNanos, yen: i64) -> StreamStep {
    let (instrument, price) = (InstrumentIx(0), Price::from_yen(yen));
    let trade = Trade { ts_event, instrument, price, quantity: Quantity::new(1_000) };
    StreamStep::Trade { trade, aggressor: Some(OrderSide::Buy) }
}

/// Two days with a gap, lost data, and rows that come after the end of their day.
fn steps() -> Vec<StreamStep> {
    let mut random = domain::Random::new(&[120]);
    let mut steps = Vec::new();
    for day in [6, 7] {
        for number in 0..400 {
            steps.push(trade(at(day, number * 20), 995 + random.below(11) as i64));
            match number {
                100 => steps.push(StreamStep::Note("GAP: 7203.TSE of a test".to_owned())),
                150 => steps.push(StreamStep::MarketDataLost(true)),
                220 => steps.push(StreamStep::MarketDataLost(false)),
                _ => {}
            }
        }
        steps.push(StreamStep::EndOfDay);
        // They get the time of the orders' end, and the journal has them with both times.
        (0..21).for_each(|number| steps.push(trade(at(day, 8_000 + number), 1_000)));
    }
    steps
}

fn header(model: Option<ExecutionModel>) -> Header {
    let ticks = TickTable::Fixed(Price::from_units(5_000));
    Header {
        version: JOURNAL_VERSION,
        part: 0,
        after: 0,
        kumiki_version: "0.0.0".to_owned(),
        engine: sandbox::ENGINE.to_owned(),
        run_kind: if model.is_some() { RunKind::Paper } else { RunKind::Live },
        run_id: "run-1".to_owned(),
        strategy_id: "mine".to_owned(),
        component: "in-turn".to_owned(),
        sha256: String::new(),
        parameters: "{}".to_owned(),
        instruments: vec![Instrument {
            id: "7203.TSE".parse().unwrap(),
            lot: Quantity::new(100),
            ticks,
        }],
        base_prices: vec![Some(Price::from_yen(1_000))],
        days: KnownDays::default(),
        granularity: RowKind::Trade,
        cash: Money::from_yen(10_000_000),
        model,
        order_limits: OrderLimits { max_orders_per_minute: Some(30), ..OrderLimits::default() },
        limits: limit_values(&Limits::default()),
    }
}

/// A run over the steps with a journal in a new folder, in an exchange with `model`; the journal says another one.
fn recorded(model: ExecutionModel, told: Option<ExecutionModel>) -> TempDir {
    recorded_with(InTurn::of(100), model, told)
}

fn recorded_with(strategy: InTurn, model: ExecutionModel, told: Option<ExecutionModel>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(folder.path(), header(told), date(6)).unwrap();
    let mut script = Script(steps().into_iter());
    let mut source = JournaledStream::new(&mut script, journal.clone());
    let mut strategy = Journaled::new(strategy, journal.clone());
    let header = header(Some(model));
    let options = options(&header, model, &Limits::default());
    let (limits, sink) = (header.order_limits, &mut TotalsOnly);
    let totals =
        replay::stream::stream(&mut source, &mut strategy, &options, limits, sink).unwrap();
    assert_eq!(totals.status, RunStatus::Interrupted);
    assert!(totals.fill_count > 20, "{} fills", totals.fill_count);
    journal.finish().unwrap();
    folder
}

/// Compares with a strategy that asks for so many shares.
fn compared(folder: &TempDir, shares: u64) -> ComparedLive {
    compared_with(folder, &[], shares)
}

fn compared_with(folder: &TempDir, presets: &[Preset], shares: u64) -> ComparedLive {
    compared_by(folder, presets, &|| InTurn::of(shares))
}

fn compared_by(
    folder: &TempDir,
    presets: &[Preset],
    strategy: &dyn Fn() -> InTurn,
) -> ComparedLive {
    let limits = Limits::default();
    compare_with(folder.path(), presets, false, &limits, &mut |run| run(&mut strategy())).unwrap()
}

/// All fills are the same, with price and time.
fn assert_same_fills(fills: FillCounts, pairs: &[FillPair], what: Preset) {
    assert_eq!(fills.recorded, fills.simulated, "{what}");
    assert!(fills.recorded > 20 && fills.shares_matched > 0, "{what}: {fills:?}");
    let other = pairs.iter().find(|pair| pair.recorded != pair.simulated);
    assert!(other.is_none(), "{what}: {other:?}");
    let none = (fills.missed, fills.extra, fills.slippage, fills.later_ms);
    assert_eq!(none, (0, 0, Money::ZERO, Some(0)), "{what}");
}

#[test]
fn p120_a_paper_run_and_its_comparison_have_the_same_orders_fills_and_signals() {
    for preset in Preset::ALL {
        let folder = recorded(preset.model(), Some(preset.model()));
        let found = compared(&folder, 100);
        assert!(!found.torn && found.ended && found.models.is_empty());
        assert_eq!(found.identical, Some(true), "{preset}: {:?}", found.replays);
        let [one] = &found.replays[..] else { panic!("{} replays", found.replays.len()) };
        assert_eq!(one.model, preset.as_str());
        assert_eq!(one.orders, Counts { recorded: 42, simulated: 42 });
        assert_eq!(one.signals, one.orders);
        assert_same_fills(one.fills, &one.pairs, preset);
    }
}

#[test]
fn p120_another_strategy_is_different_and_the_first_difference_has_both_sides() {
    let model = Preset::Realistic.model();
    let folder = recorded(model, Some(model));
    let found = compared(&folder, 200);
    assert_eq!(found.identical, Some(false));
    let first = found.replays[0].first_difference.as_ref().unwrap();
    let command = |told: &Option<Told>| match &told.as_ref().unwrap().told {
        ToldKind::Command(OrderCommand::Submit(order)) => order.quantity,
        other => panic!("{other:?}"),
    };
    assert_eq!(first.index, 0);
    assert_eq!(command(&first.recorded), Quantity::new(100));
    assert_eq!(command(&first.simulated), Quantity::new(200));
    assert!(found.replays[0].fills.extra > 0, "{:?}", found.replays[0].fills);
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["identical"], false);
    assert_eq!(json["replays"][0]["fills"]["slippage"].as_str().map(str::is_empty), Some(false));
    assert!(json["replays"][0].get("pairs").is_none());

    let page = folder.path().join(COMPARE_FILE);
    found.write_page(&page).unwrap();
    found.write_page(&page).unwrap();
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("\"run_kind\":\"paper\"") && text.contains("\"7203.TSE\""));
    assert!(text.contains("\"kind\":\"replay\""));
}

/// What a run with real orders is compared with: here the market is the optimistic model.
#[test]
fn p120_a_run_with_real_orders_is_compared_with_each_fill_model() {
    let folder = recorded(Preset::Optimistic.model(), None);
    let found = compared(&folder, 100);
    assert_eq!((found.run_kind, found.identical), (RunKind::Live, None));
    assert!(found.replays.is_empty());
    let names: Vec<&str> = found.models.iter().map(|model| model.model.as_str()).collect();
    assert_eq!(names, ["strict", "realistic", "optimistic"]);
    let [strict, realistic, optimistic] = &found.models[..] else { panic!("{names:?}") };
    assert_same_fills(optimistic.fills, &optimistic.pairs, Preset::Optimistic);
    // A market order pays a tick of 0.5 yen a share more, and comes later with latency.
    assert!(strict.fills.slippage > Money::ZERO, "{:?}", strict.fills);
    assert!(realistic.fills.later_ms.unwrap() > 0, "{:?}", realistic.fills);
    let page = folder.path().join(COMPARE_FILE);
    found.write_page(&page).unwrap();
    assert!(fs::read_to_string(&page).unwrap().contains("\"kind\":\"model\""));
}

/// The run's own orders are executed one by one, with all that the strategy has answered events with: by the model of a
/// paper run the same fills come out.
#[test]
fn p120_the_orders_of_a_run_fill_the_same_by_its_own_model() {
    for preset in Preset::ALL {
        let folder = recorded_with(InTurn::reacting(), preset.model(), Some(preset.model()));
        let found = compared_by(&folder, &[preset], &InTurn::reacting);
        assert_eq!(found.identical, Some(true), "{preset}: {:?}", found.replays[0]);
        let [one] = &found.models[..] else { panic!("{} models", found.models.len()) };
        assert_eq!(one.model, preset.as_str());
        assert_same_fills(one.fills, &one.pairs, preset);
        assert_eq!(one.orders + one.left_out, found.replays[0].orders.recorded, "{preset}");
        assert!(one.left_out > 0, "market data were lost: {one:?}");
        assert_eq!(one.rejected, 0, "{preset}");
        assert_eq!(one.fills, found.replays[0].fills);
    }
}

/// One fill that is missing makes no later order another one: a strategy that decides again would go its own way.
#[test]
fn p120_other_fills_change_no_later_order() {
    let model = Preset::Optimistic.model();
    let decides_again = |told: Option<ExecutionModel>| {
        let folder = recorded_with(InTurn::reacting(), model, told);
        let limits = Limits::default();
        compare_with(folder.path(), &[Preset::Strict], true, &limits, &mut |run| {
            run(&mut InTurn::reacting())
        })
    };
    let again = decides_again(Some(model)).unwrap();
    // The account of a run with real orders is the broker's: nothing to decide with.
    assert!(matches!(decides_again(None), Err(CompareError::RealOrders)));
    let folder = recorded_with(InTurn::reacting(), model, None);
    let found = compared_by(&folder, &[Preset::Strict, Preset::Optimistic], &InTurn::reacting);
    let [strict, optimistic] = &found.models[..] else { panic!("{found:?}") };
    assert_eq!(again.identical, Some(false));
    assert!(again.models.is_empty());
    assert_eq!((strict.orders, strict.left_out), (optimistic.orders, optimistic.left_out));
    assert!(strict.fills.slippage > Money::ZERO, "{:?}", strict.fills);
    assert_eq!(strict.rejected, 0, "a sell whose buy is missing is sent all the same");
    assert_same_fills(optimistic.fills, &optimistic.pairs, Preset::Optimistic);
}

/// A paper run may be held against other models than its own: what would another model have filled?
#[test]
fn p120_a_paper_run_can_be_compared_with_other_models() {
    let model = Preset::Realistic.model();
    let folder = recorded(model, Some(model));
    let found = compared_with(&folder, &[Preset::Optimistic, Preset::Realistic], 100);
    assert_eq!(found.identical, Some(true));
    let [optimistic, realistic] = &found.models[..] else { panic!("{found:?}") };
    assert_same_fills(realistic.fills, &realistic.pairs, Preset::Realistic);
    assert!(optimistic.fills.slippage < Money::ZERO, "{:?}", optimistic.fills);
}

/// A broker tells of orders between the rows of the market, and fills at prices of its own.
#[test]
fn p120_fills_of_a_broker_stand_beside_those_of_the_models() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(folder.path(), header(None), date(6)).unwrap();
    let mut strategy = Journaled::new(InTurn::of(100), journal.clone());
    strategy.init("{}", &[]).unwrap();
    strategy.start(at(6, 0)).unwrap();
    for number in 1..=25 {
        let StreamStep::Trade { trade, aggressor } = trade(at(6, number), 1_000) else {
            panic!("a trade")
        };
        journal.row(Row::Trade { trade, aggressor });
        strategy.advance(Window::OneTrade(trade), 1).unwrap();
        if number == 20 {
            let Told { told: ToldKind::Event(filled), .. } =
                fill("O-1", OrderSide::Buy, 100, 1_001, 20)
            else {
                panic!("a fill")
            };
            let status = OrderStatus::Accepted;
            let accepted = OrderEvent { status, kind: OrderEventKind::Accepted, ..filled.clone() };
            strategy.on_order_events(&[accepted]).unwrap();
            strategy.on_order_events(&[filled]).unwrap();
        }
    }
    journal.finish().unwrap();
    let found = compared(&folder, 100);
    assert!(found.ended && found.replays.is_empty());
    let numbers: Vec<_> = found
        .models
        .iter()
        .map(|one| (one.orders, one.rejected, one.fills.slippage, one.fills.later_ms))
        .collect();
    // A second later the next trade of 1,000 yen, with a tick of 0.5 yen or without.
    let with_tick = (1, 0, Money::from_yen(-50), Some(1_000));
    assert_eq!(numbers, [with_tick, with_tick, (1, 0, Money::from_yen(-100), Some(1_000))]);
}

#[test]
fn p120_what_ended_an_order_without_the_strategy_ends_it_again() {
    let submit = |id: &str| {
        let action = InTurn::of(100).more(id.to_owned(), OrderSide::Sell, None);
        let Action::Order(command) = action else { panic!("{action:?}") };
        Told { ts_event: Some(at(6, 1)), told: ToldKind::Command(command) }
    };
    let command =
        |command: OrderCommand| Told { ts_event: Some(at(6, 2)), told: ToldKind::Command(command) };
    let event = |id: &str, status: OrderStatus, kind: OrderEventKind| {
        let Told { ts_event, told: ToldKind::Event(event) } = fill(id, OrderSide::Sell, 1, 1, 3)
        else {
            panic!("a fill")
        };
        Told { ts_event, told: ToldKind::Event(OrderEvent { status, kind, ..event }) }
    };
    let rejection = || {
        let reason = domain::Rejection::new(domain::ReasonCode::VenueRejected, "no");
        OrderEventKind::Rejected(reason)
    };
    let updated = || match submit("A").told {
        ToldKind::Command(OrderCommand::Submit(request)) => {
            OrderEventKind::Updated(Arc::new(request))
        }
        other => panic!("{other:?}"),
    };
    let (accepted, canceled) = (OrderStatus::Accepted, OrderStatus::Canceled);
    let change = OrderModify { price: Some(Price::from_yen(1)), ..OrderModify::default() };
    let modify = |id: &str| command(OrderCommand::Modify { client_order_id: id.into(), change });
    let cancel = |id: &str| command(OrderCommand::Cancel { client_order_id: id.into() });
    let told = [
        submit("A"),
        submit("B"),
        event("A", accepted, OrderEventKind::Accepted),
        event("B", OrderStatus::Rejected, rejection()),
        // A change that was refused, and one that was not.
        modify("A"),
        event("A", accepted, rejection()),
        modify("A"),
        event("A", accepted, updated()),
        // A person changes it, and cancels it.
        event("A", accepted, updated()),
        event("A", canceled, OrderEventKind::Canceled),
        // The strategy cancels its own.
        submit("C"),
        cancel("C"),
        event("C", canceled, OrderEventKind::Canceled),
        // The venue ends one with the change that it refuses.
        submit("D"),
        event("D", accepted, OrderEventKind::Accepted),
        modify("D"),
        event("D", OrderStatus::Rejected, rejection()),
        // Nothing was heard of the last one.
        submit("E"),
    ];
    let orders = Orders::of(&told);
    let shown: Vec<&str> = orders
        .commands()
        .iter()
        .map(|command| match command {
            None => "",
            Some(OrderCommand::Submit(_)) => "submit",
            Some(OrderCommand::Modify { .. }) => "modify",
            Some(OrderCommand::Cancel { .. }) => "cancel",
            Some(OrderCommand::CancelAll { .. }) => "cancel all",
        })
        .collect();
    let expected = [
        "submit", "", "", "", "", "", "modify", "", "modify", "cancel", "submit", "cancel", "",
        "submit", "", "", "cancel", "submit",
    ];
    assert_eq!(shown, expected);
    assert_eq!((orders.executed, orders.left_out), (4, 1));
    assert_eq!(orders.held(), [(InstrumentIx(0), 500)]);
}

/// The last file of a journal.
fn last_file(folder: &TempDir) -> PathBuf {
    folder.path().join("journal-20250107.jsonl")
}

#[test]
fn p120_what_a_crash_has_cut_off_is_no_difference() {
    let model = Preset::Realistic.model();
    let folder = recorded(model, Some(model));
    let whole = fs::read(last_file(&folder)).unwrap();
    for part in 1..20 {
        fs::write(last_file(&folder), &whole[..whole.len() * part / 20]).unwrap();
        let found = compared_with(&folder, &[Preset::Realistic], 100);
        assert_eq!((found.identical, found.ended), (Some(true), false), "{part}");
        for fills in [found.replays[0].fills, found.models[0].fills] {
            assert_eq!((fills.missed, fills.extra), (0, 0), "{part}: {fills:?}");
        }
        assert_eq!(compared(&folder, 200).identical, Some(false), "{part}");
    }
}

#[test]
fn p120_damage_before_the_end_is_told() {
    let model = Preset::Realistic.model();
    let folder = recorded(model, Some(model));
    let mut bytes = fs::read(last_file(&folder)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(last_file(&folder), bytes).unwrap();
    let mut never =
        |_: &mut RunOnce<'_>| -> Result<(), CompareError> { panic!("it is read first") };
    let error =
        compare_with(folder.path(), &[], false, &Limits::default(), &mut never).unwrap_err();
    assert!(error.is_damage(), "{error}");
}

fn fill(id: &str, side: OrderSide, shares: u64, yen: i64, seconds: u64) -> Told {
    let ts_event = at(6, seconds);
    let event = OrderEvent {
        ts_event,
        origin: Origin::Strategy,
        client_order_id: id.into(),
        venue_order_id: None,
        instrument: InstrumentIx(0),
        side,
        status: OrderStatus::PartiallyFilled,
        kind: OrderEventKind::Filled(Fill {
            side,
            trade_id: "T".into(),
            last_quantity: Quantity::new(shares),
            last_price: Price::from_yen(yen),
            market_price: Price::from_yen(yen),
            cumulative_quantity: Quantity::new(shares),
            leaves_quantity: Quantity::new(0),
            commission: None,
        }),
    };
    Told { ts_event: Some(ts_event), told: ToldKind::Event(event) }
}

#[test]
fn fills_are_paired_share_by_share() {
    use OrderSide::{Buy, Sell};
    let run = [
        fill("A", Buy, 300, 1_000, 1),
        fill("B", Sell, 100, 1_010, 2),
        fill("C", Buy, 100, 990, 3),
    ];
    let simulated = [
        fill("A", Buy, 100, 1_001, 1),
        fill("A", Buy, 100, 1_002, 5),
        fill("B", Sell, 200, 1_008, 2),
        fill("D", Sell, 100, 1_000, 9),
    ];
    let (pairs, counts) = fills::paired(&run, &simulated);
    let shown: Vec<(&str, u64, bool, bool)> = pairs
        .iter()
        .map(|pair| {
            let (id, shares) = (&*pair.client_order_id, pair.quantity.shares());
            (id, shares, pair.recorded.is_some(), pair.simulated.is_some())
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("A", 100, true, true),
            ("A", 100, true, true),
            ("A", 100, true, false),
            ("B", 100, true, true),
            ("B", 100, false, true),
            ("C", 100, true, false),
            ("D", 100, false, true),
        ]
    );
    let expected = FillCounts {
        recorded: 3,
        simulated: 4,
        shares_matched: 300,
        missed: 2,
        shares_missed: 200,
        extra: 2,
        shares_extra: 200,
        // 100 and 200 yen more for the buys, 200 yen less of the sale.
        slippage: Money::from_yen(500),
        // Of the three hundreds one came 4 s later.
        later_ms: Some(1_333),
    };
    assert_eq!(counts, expected);
}

#[test]
fn the_days_that_a_run_knows_come_back_from_its_header() {
    use domain::adjustment::{Adjustment, ExRights};
    let days = date(1).iter_days().take(31);
    let is_open = |day: &JstDate| domain::session::is_weekday(*day) && *day != date(15);
    let calendar = ExchangeCalendar::listed(days.map(|day| (day, is_open(&day)))).unwrap();
    let header = header(None);
    let known = ReplayOptions {
        ex_rights: vec![ExRights {
            date: date(9),
            instrument: InstrumentIx(0),
            adjustment: Adjustment::from_terms(3, 1).unwrap(),
        }],
        unit_changes: vec![replay::UnitChange {
            date: date(10),
            instrument: InstrumentIx(0),
            lot: Quantity::new(10),
            ticks: TickTable::Topix500,
        }],
        split_dates_known: vec![vec![date(8), date(9)]],
        calendar,
        ..options(&header, ExecutionModel::default(), &Limits::default())
    };
    let json = serde_json::to_string(&KnownDays::of(&known, date(6))).unwrap();
    let read: KnownDays = serde_json::from_str(&json).unwrap();
    let again = read.set_in(options(&header, ExecutionModel::default(), &Limits::default()));
    assert_eq!(again.ex_rights, known.ex_rights);
    assert_eq!(again.unit_changes, known.unit_changes);
    assert_eq!(again.split_dates_known, known.split_dates_known);
    assert_eq!(again.calendar, known.calendar);
    // A header of a run that knows nothing has nothing.
    assert_eq!(serde_json::to_value(KnownDays::default()).unwrap(), serde_json::json!({}));
    let empty: KnownDays = serde_json::from_str("{}").unwrap();
    assert_eq!(empty, KnownDays::default());
}
