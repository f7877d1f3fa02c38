//! The session and its run as clients know them: connections, refusals, loads, and all that happens in a run
//! (specification 2, "Events").

use domain::account::Position;
use domain::strategy::{LogLevel, LogLine, NarrativeRecord, Signal};
use domain::{
    Money, OrderEvent, OrderFilter, OrderRecord, OrderSide, OrderStatus, Origin, Quantity, TsNanos,
};
use exchange::{ExecutionModel, Preset, SameDayRoundTrips};
use ipc::{
    BuyingPowerUpdated, CancelAllResult, Capabilities, Challenge, ClientConnected, EngineBusy,
    EngineError, EngineMode, EngineStarted, EngineStopped, EquityPoint, Error, Event,
    ExecutionConfig, ExecutionMarker, Kline, KlineInterval, KlineUpdate, LastRun, LoadedInstrument,
    Multiplier, OrderContext, OrderListUpdated, OrderRecordWire, Pong, PositionClosed,
    PositionOpened, PositionRow, PositionsUpdated, Progress, ProgressKind, Ready,
    ReplayBuyingPower, ReplayDataLoaded, ReplaySpeedChanged, ReplayStopped, RunFault, SCHEMA_MAJOR,
    SCHEMA_MINOR, Session, SessionState, StrategyEngineCapabilities, StrategyLevel, StrategyLog,
    StrategyNarrative, StrategySignal, SubmitOrderResult, SubmitOutcome, SubmittedOrder, Text,
};
use replay::instruments::InstrumentChoices;
use results::rows::{FillRow, PositionEvent};

use super::orders::of_command;
use super::{market, optional, text};
use crate::VENUE;
use crate::console::Page;
use crate::ledger::{PositionAverages, average_cost, midnight};
use crate::limits::LIST_ROWS_MAX;
use crate::run::{Market, Run, RunKind};
use crate::session::{CommandContext, Core, EndedRun, Loaded, Shared};

/// The first message of a connection.
pub(crate) fn challenge(server_nonce: &str) -> Event<'_> {
    Event::Challenge(Challenge {
        server_nonce: text(server_nonce),
        schema_major: SCHEMA_MAJOR,
        schema_minor: SCHEMA_MINOR,
    })
}

/// The answer to a client that may connect, with the engine's proof.
pub(crate) fn ready(
    shared: &Shared,
    proof: String,
    page: Option<&Page>,
    session_state: SessionState,
) -> Event<'static> {
    let replay = shared.config.mode == EngineMode::Replay;
    Event::Ready(Ready {
        schema_major: SCHEMA_MAJOR,
        schema_minor: SCHEMA_MINOR,
        engine_version: env!("CARGO_PKG_VERSION").into(),
        engine_session_id: shared.engine_session_id.clone().into(),
        capabilities: Capabilities {
            strategy_engine: StrategyEngineCapabilities {
                live: !replay && shared.config.live_engine,
                replay,
            },
        },
        venue_capabilities: shared.live.capabilities(),
        dialects: shared.live.dialects(),
        simulators: shared.live.simulators(),
        session_state,
        proof: proof.into(),
        scope: page.map(|page| page.scope),
        confirm_above_jpy: page.map(|_| shared.config.confirm_above_jpy),
    })
}

pub(crate) fn client_count(count: usize) -> Event<'static> {
    Event::ClientConnected(ClientConnected { count: u32::try_from(count).unwrap_or(u32::MAX) })
}

pub(crate) fn pong<'a>(to: &CommandContext<'a>, now: TsNanos) -> Event<'a> {
    Event::Pong(Pong { request_id: answered(to), ts_ms: now.millis() })
}

/// The id of the command that is answered.
fn answered<'a>(to: &CommandContext<'a>) -> Text<'a> {
    text(to.request_id.unwrap_or_default())
}

/// Market data of a ticker of the replay begin, or end.
pub(crate) fn subscription<'a>(
    to: &CommandContext<'a>,
    ticker: &'a str,
    begins: bool,
) -> Event<'a> {
    if begins {
        market::subscribed(answered(to), (VENUE, "TSE"), ticker, None)
    } else {
        market::unsubscribed(answered(to), VENUE, ticker)
    }
}

/// A refusal of a command, with a code.
pub(crate) fn error<'a>(
    request_id: Option<&'a str>,
    code: &'a str,
    message: impl Into<Text<'a>>,
    venue_order_id: Option<&'a str>,
) -> Event<'a> {
    Event::Error(Error {
        request_id: request_id.map(text),
        code: text(code),
        message: message.into(),
        venue_order_id: venue_order_id.map(text),
    })
}

/// A failure of the engine, the strategy or the handshake.
pub(crate) fn engine_error<'a>(
    request_id: Option<&'a str>,
    code: &'a str,
    message: impl Into<Text<'a>>,
    strategy_id: Option<&'a str>,
) -> Event<'a> {
    Event::EngineError(EngineError {
        request_id: request_id.map(text),
        code: text(code),
        message: message.into(),
        strategy_id: strategy_id.map(text),
    })
}

/// A refusal of a command that does not fit the state.
pub(crate) fn busy<'a>(to: &CommandContext<'a>, state: SessionState, reason: &'a str) -> Event<'a> {
    Event::EngineBusy(EngineBusy {
        request_id: to.request_id.map(text),
        current_state: state,
        attempted_command: text(to.op),
        reason: text(reason),
        venue: to.venue.map(text),
    })
}

/// Data are loaded: `new` by the command, which had rows on `days` dates and none on `days_missing`; `all` by now.
pub(crate) fn data_loaded<'a>(
    request_id: &'a str,
    (all, new): (&'a [Loaded], &'a [Loaded]),
    (days, days_missing): (u64, u64),
    session_epoch: u64,
) -> Option<Event<'a>> {
    let first = new.first()?;
    let (trades_loaded, bars_loaded) = Loaded::counts_of(new);
    Some(Event::ReplayDataLoaded(ReplayDataLoaded {
        request_id: text(request_id),
        instrument_id: text(&first.name),
        instrument_ids: all.iter().map(|one| text(&one.name)).collect(),
        granularity: first.granularity,
        start_date: first.start.to_string().into(),
        end_date: first.end.to_string().into(),
        trades_loaded,
        bars_loaded,
        days,
        days_missing,
        session_epoch,
        ts_event_ms: midnight(first.start).millis(),
    }))
}

/// Progress of a load or a run.
pub(crate) fn progress<'a>(
    request_id: &'a str,
    kind: ProgressKind,
    (done, total): (u64, u64),
    unit: &'a str,
) -> Event<'a> {
    let request_id = text(request_id);
    Event::Progress(Progress { request_id, kind, done: done.min(total), total, unit: text(unit) })
}

/// Everything that a client has to know.
pub(crate) fn session<'a>(core: &'a Core, to: &CommandContext<'a>) -> Event<'a> {
    let run = core.run.as_ref();
    let live = run.filter(|_| core.is_live());
    // A live run has a profit or loss and no account (P108).
    let replay = run.filter(|run| run.setup.kind == RunKind::Replay);
    let money = |amount: fn(&Run) -> Money| replay.map(|run| amount(run).into());
    let cash = money(Run::cash);
    Event::Session(Box::new(Session {
        request_id: answered(to),
        state: core.state(),
        run_id: live.map(|run| text(&run.setup.run_id)),
        strategy_id: live.map(|run| text(&run.setup.strategy_id)),
        account_id: live.map(|run| run.setup.kind.account().into()),
        instruments: core.loaded.iter().map(loaded_instrument).collect(),
        multiplier: live.filter(|_| replay.is_some()).map(|run| run.setup.multiplier),
        ts_event_ms: run.map(|run| run.now.millis()),
        rows_done: run.map_or(0, |run| run.rows_done),
        rows_total: run.map_or(0, |run| run.setup.rows_total),
        start_date: run.map(|run| run.setup.dates.0.to_string().into()),
        end_date: run.map(|run| run.setup.dates.1.to_string().into()),
        execution: run.and_then(|run| run.execution.clone()),
        initial_cash: money(|run| run.setup.cash),
        cash,
        buying_power: cash,
        equity: money(Run::equity),
        orders: of_run(run, |run| {
            let filter = OrderFilter::default();
            newest(run.orders.numbered(), |record| listed_order(&filter, run, record))
        }),
        orders_submitted: of_run(run, |run| {
            newest(run.orders.unnumbered(), |record| {
                SubmittedOrder::of_record(record, run.instrument(record.request.instrument))
            })
        }),
        executions: of_run(run, |run| run.fills.iter().map(|fill| marker(run, fill)).collect()),
        signals: of_run(run, |run| {
            run.signals.iter().map(|(at, signal)| strategy_signal(run, *at, signal)).collect()
        }),
        narratives: of_run(run, |run| {
            let all = run.narratives.iter();
            all.map(|(at, record)| strategy_narrative(run, *at, record)).collect()
        }),
        parameters: run.map(parameters).unwrap_or_default(),
        equity_curve: of_run(run, |run| {
            let points = run.equity_curve(core.is_live()).iter();
            points
                .map(|row| EquityPoint {
                    ts_event_ms: row.ts_event.millis(),
                    equity: row.equity.into(),
                })
                .collect()
        }),
        positions: of_run(run, position_rows),
        last_bars: of_run(run, last_bars),
        last_trades: of_run(run, |run| {
            let last = run.markets.iter();
            let last = last.filter_map(|market| Some((market, market.last_trade.clone()?)));
            last.map(|(market, row)| market::trades(&market.head, vec![row])).collect()
        }),
        last_run: core.last_run.as_ref().map(|run| LastRun {
            run_id: text(&run.run_id),
            run_dir: run.run_dir.to_string_lossy(),
            final_equity: run.final_equity.into(),
            status: run.status,
            fault: run_fault(run),
        }),
        sequence: core.hub.sequence(),
    }))
}

/// A list of a run; an empty one where there is no run.
fn of_run<'a, R>(run: Option<&'a Run>, list: impl FnOnce(&'a Run) -> Vec<R>) -> Vec<R> {
    run.map(list).unwrap_or_default()
}

/// The rows of the newest orders, the oldest of them first.
fn newest<'a, R>(
    records: impl DoubleEndedIterator<Item = &'a OrderRecord>,
    row: impl Fn(&'a OrderRecord) -> Option<R>,
) -> Vec<R> {
    let mut rows: Vec<R> = records.rev().take(LIST_ROWS_MAX).filter_map(row).collect();
    rows.reverse();
    rows
}

fn loaded_instrument(loaded: &Loaded) -> LoadedInstrument<'_> {
    let (trades_loaded, bars_loaded) = loaded.counts();
    LoadedInstrument {
        instrument_id: text(&loaded.name),
        start_date: loaded.start.to_string().into(),
        end_date: loaded.end.to_string().into(),
        granularity: loaded.granularity,
        trades_loaded,
        bars_loaded,
    }
}

/// The newest bars of each instrument; the last one may still grow.
fn last_bars(run: &Run) -> Vec<KlineUpdate<'_>> {
    let of_market = |market: &'_ Market| {
        let growing = market.bar.map(|bar| market::made_bar(&bar.so_far(), false));
        let klines: Vec<Kline> = market.last_bars.iter().cloned().chain(growing).collect();
        (!klines.is_empty()).then_some(klines)
    };
    let with_bars = run.markets.iter().filter_map(|market| Some((market, of_market(market)?)));
    with_bars.map(|(market, klines)| kline_update(market, run.setup.interval, klines)).collect()
}

fn kline_update(market: &Market, interval: KlineInterval, klines: Vec<Kline>) -> KlineUpdate<'_> {
    KlineUpdate {
        venue: text(&market.head.venue),
        ticker: text(&market.head.ticker),
        instrument_id: text(&market.instrument_id),
        interval,
        klines,
    }
}

/// A bar of an instrument.
pub(crate) fn bar(market: &Market, interval: KlineInterval, kline: Kline) -> Event<'_> {
    Event::KlineUpdate(kline_update(market, interval, vec![kline]))
}

/// A run begins; `execution` is how its orders are filled.
pub(crate) fn run_started(run: &Run, execution: ExecutionConfig) -> Event<'_> {
    Event::EngineStarted(EngineStarted {
        request_id: Some(text(&run.setup.request.request_id)),
        strategy_id: text(&run.setup.strategy_id),
        account_id: run.setup.kind.account().into(),
        run_id: text(&run.setup.run_id),
        multiplier: run.setup.multiplier,
        execution,
        parameters: parameters(run),
        ts_event_ms: run.now.millis(),
    })
}

fn parameters(run: &Run) -> serde_json::Map<String, serde_json::Value> {
    run.setup.parameters.clone().into_iter().collect()
}

/// How orders are filled, with all values that are used.
pub(crate) fn execution_config(
    preset: Preset,
    model: &ExecutionModel,
    choices: &InstrumentChoices,
) -> ExecutionConfig {
    ExecutionConfig {
        model: preset.as_str().to_owned(),
        latency_ns: Some(model.latency_ns),
        slippage_ticks: Some(model.slippage_ticks),
        participation_percent: Some(model.participation_percent),
        queue_ahead: model.queue_ahead,
        commission: Some(model.commission.to_string()),
        lot: choices.lots.to_string().parse().ok(),
        ticks: Some(choices.ticks.to_string()).filter(|text| !text.is_empty()),
        same_day_round_trips: Some(model.same_day_round_trips == SameDayRoundTrips::Allow),
    }
}

/// How orders are filled that go to a broker (specification 4, P85).
pub(crate) fn at_broker() -> ExecutionConfig {
    ExecutionConfig {
        model: "live".to_owned(),
        latency_ns: None,
        slippage_ticks: None,
        participation_percent: None,
        queue_ahead: None,
        commission: None,
        lot: None,
        ticks: None,
        same_day_round_trips: None,
    }
}

pub(crate) fn speed_changed<'a>(to: &CommandContext<'a>, multiplier: Multiplier) -> Event<'a> {
    Event::ReplaySpeedChanged(ReplaySpeedChanged { request_id: answered(to), multiplier })
}

/// Answers the command that has stopped a run.
pub(crate) fn run_stopped<'a>(request_id: &'a str, ended: &'a EndedRun) -> Event<'a> {
    Event::ReplayStopped(ReplayStopped {
        request_id: text(request_id),
        run_id: text(&ended.run_id),
        final_equity: ended.final_equity.into(),
    })
}

/// The last event of a run.
pub(crate) fn run_ended<'a>(
    run: &'a Run,
    ended: &'a EndedRun,
    request_id: Option<&'a str>,
) -> Event<'a> {
    Event::EngineStopped(EngineStopped {
        request_id: request_id.map(text),
        strategy_id: text(&run.setup.strategy_id),
        run_id: text(&ended.run_id),
        final_equity: ended.final_equity.into(),
        status: ended.status,
        fault: run_fault(ended),
        run_dir: ended.run_dir.to_string_lossy(),
        rows_done: run.rows_done,
        ts_event_ms: run.now.millis(),
    })
}

fn run_fault(ended: &EndedRun) -> Option<RunFault<'_>> {
    let fault = ended.fault.as_ref();
    fault.map(|(code, message)| RunFault { code: text(code), message: text(message) })
}

/// An event of an order; `request_id` is that of the command which it answers.
pub(crate) fn order_event<'a>(
    run: &'a Run,
    event: &'a OrderEvent,
    request_id: Option<&'a str>,
) -> Event<'a> {
    let is_strategys = event.origin == Origin::Strategy;
    let context = OrderContext {
        strategy_id: is_strategys.then(|| text(&run.setup.strategy_id)),
        instrument_id: Some(text(run.instrument(event.instrument))),
        order_side: Some(event.side),
        ..of_command(request_id, Some(run.setup.kind.venue()), Some(event.origin))
    };
    Event::of_order(event, context)
}

/// Which command an event answers, and which order of a client it is about.
pub(crate) fn of_client_order<'a>(
    request_id: Option<&'a str>,
    (instrument_id, order_side): (Option<&'a str>, Option<OrderSide>),
) -> OrderContext<'a> {
    OrderContext {
        instrument_id: instrument_id.map(text),
        order_side,
        ..of_command(request_id, Some(VENUE), Some(Origin::Client))
    }
}

/// Answers a submit whose order has its number; `warning` has a code and words.
pub(crate) fn order_created<'a>(
    request_id: &'a str,
    event: &'a OrderEvent,
    warning: Option<&'a (&'static str, String)>,
) -> Event<'a> {
    Event::SubmitOrderResult(SubmitOrderResult {
        request_id: text(request_id),
        client_order_id: text(&event.client_order_id),
        outcome: SubmitOutcome::Created,
        status: event.status,
        venue_order_id: optional(&event.venue_order_id),
        warning_code: warning.map(|(code, _)| text(code)),
        warning_text: warning.map(|(_, words)| text(words)),
    })
}

/// Answers a submit of an order that was sent before; none of it is known until the run takes it.
pub(crate) fn order_repeated<'a>(
    request_id: &'a str,
    client_order_id: &'a str,
    record: Option<&'a OrderRecord>,
) -> Event<'a> {
    let venue_order_id = record.and_then(|record| optional(&record.venue_order_id));
    let is_unknown = venue_order_id.is_none();
    let warning = "the order was sent before, and the venue has not answered; read the order list";
    Event::SubmitOrderResult(SubmitOrderResult {
        request_id: text(request_id),
        client_order_id: text(client_order_id),
        outcome: SubmitOutcome::IdempotentReplay,
        status: record.map_or(OrderStatus::Submitted, |record| record.status),
        venue_order_id,
        warning_code: is_unknown.then(|| "order_status_unknown".into()),
        warning_text: is_unknown.then(|| warning.into()),
    })
}

/// The row of an order, if the list holds it.
pub(crate) fn listed_order<'a>(
    filter: &OrderFilter,
    run: &'a Run,
    record: &'a OrderRecord,
) -> Option<OrderRecordWire<'a>> {
    let instrument_id = run.instrument(record.request.instrument);
    let row = OrderRecordWire::of_record(record, instrument_id)?;
    filter.takes(row.status, instrument_id, record.ts_submitted).then_some(row)
}

pub(crate) fn order_list<'a>(
    request_id: &'a str,
    orders: Vec<OrderRecordWire<'a>>,
    more: Option<bool>,
    next: Option<u64>,
) -> Event<'a> {
    Event::OrderListUpdated(OrderListUpdated { request_id: text(request_id), orders, more, next })
}

pub(crate) fn all_canceled(request_id: &str, canceled: u64, failed: u64) -> Event<'_> {
    Event::CancelAllResult(CancelAllResult {
        request_id: text(request_id),
        canceled_count: canceled,
        failed_count: failed,
    })
}

/// A fill, for charts.
pub(crate) fn execution<'a>(run: &'a Run, fill: &'a FillRow) -> Event<'a> {
    Event::ExecutionMarker(marker(run, fill))
}

fn marker<'a>(run: &'a Run, fill: &'a FillRow) -> ExecutionMarker<'a> {
    ExecutionMarker {
        strategy_id: text(&run.setup.strategy_id),
        origin: fill.origin,
        client_order_id: text(&fill.client_order_id),
        trade_id: text(&fill.trade_id),
        instrument_id: text(run.instrument(fill.instrument)),
        side: fill.side,
        price: fill.price.into(),
        qty: fill.quantity.into(),
        ts_event_ms: fill.ts_event.millis(),
    }
}

/// A mark of the strategy, for charts.
pub(crate) fn signal<'a>(run: &'a Run, ts_event: TsNanos, signal: &'a Signal) -> Event<'a> {
    Event::StrategySignal(strategy_signal(run, ts_event, signal))
}

fn strategy_signal<'a>(run: &'a Run, ts_event: TsNanos, signal: &'a Signal) -> StrategySignal<'a> {
    StrategySignal {
        strategy_id: Some(text(&run.setup.strategy_id)),
        instrument_id: text(run.instrument(signal.instrument)),
        signal_kind: signal.kind,
        side: signal.side,
        price: signal.price.map(Into::into),
        tag: optional(&signal.tag),
        note: optional(&signal.note),
        ts_event_ms: ts_event.millis(),
    }
}

/// A decision of the strategy.
pub(crate) fn narrative<'a>(
    run: &'a Run,
    ts_event: TsNanos,
    record: &'a NarrativeRecord,
) -> Event<'a> {
    Event::StrategyNarrative(strategy_narrative(run, ts_event, record))
}

fn strategy_narrative<'a>(
    run: &'a Run,
    ts_event: TsNanos,
    record: &'a NarrativeRecord,
) -> StrategyNarrative<'a> {
    StrategyNarrative {
        strategy_id: text(&run.setup.strategy_id),
        ts_event_ms: ts_event.millis(),
        client_order_id: record.client_order_id.as_deref().map(text),
        title: text(&record.title),
        body: text(&record.body),
    }
}

/// A line of the strategy's log; `left_out` lines before it were not sent.
pub(crate) fn log_line<'a>(
    run: &'a Run,
    line: &LogLine,
    message: &'a str,
    left_out: u64,
) -> Event<'a> {
    Event::StrategyLog(StrategyLog {
        strategy_id: text(&run.setup.strategy_id),
        ts_event_ms: line.ts_event.map(TsNanos::millis),
        level: match line.level {
            LogLevel::Debug => StrategyLevel::Debug,
            LogLevel::Info => StrategyLevel::Info,
            LogLevel::Warn => StrategyLevel::Warn,
            LogLevel::Error | LogLevel::Panic => StrategyLevel::Error,
        },
        message: text(message),
        left_out,
    })
}

pub(crate) fn position_opened<'a>(
    run: &'a Run,
    market: &'a Market,
    event: &PositionEvent,
) -> Event<'a> {
    let PositionAverages { shares, open, .. } = market.life.averages();
    Event::PositionOpened(PositionOpened {
        strategy_id: text(&run.setup.strategy_id),
        venue: run.setup.kind.venue().into(),
        instrument_id: text(&market.instrument_id),
        position_id: market.position_id().into(),
        side: event.entry_side,
        opened_qty: shares.into(),
        avg_open_price: open.into(),
        ts_event_ms: event.ts_event.millis(),
    })
}

/// The end of a position: shares opened over its life, average prices, and its result. A cash account only buys to
/// open.
pub(crate) fn position_closed<'a>(
    run: &'a Run,
    market: &'a Market,
    averages: PositionAverages,
    realized_pnl: Money,
    ts_event: TsNanos,
) -> Event<'a> {
    Event::PositionClosed(PositionClosed {
        strategy_id: text(&run.setup.strategy_id),
        venue: run.setup.kind.venue().into(),
        instrument_id: text(&market.instrument_id),
        position_id: market.position_id().into(),
        side: OrderSide::Buy,
        opened_qty: averages.shares.into(),
        avg_open_price: averages.open.into(),
        avg_close_price: averages.close.into(),
        realized_pnl: realized_pnl.into(),
        ts_event_ms: ts_event.millis(),
    })
}

pub(crate) fn buying_power<'a>(run: &'a Run, request_id: Option<&'a str>) -> Event<'a> {
    if run.setup.kind == RunKind::Paper {
        return Event::BuyingPowerUpdated(BuyingPowerUpdated {
            request_id: request_id.map(text),
            venue: run.setup.kind.venue().into(),
            cash_available: Some(run.cash().into()),
            cash_shortfall: None,
            credit_available: None,
            ts_ms: run.now.millis(),
        });
    }
    Event::ReplayBuyingPower(ReplayBuyingPower {
        request_id: request_id.map(text),
        strategy_id: text(&run.setup.strategy_id),
        venue: run.setup.kind.venue().into(),
        cash: run.cash().into(),
        buying_power: run.cash().into(),
        equity: run.equity().into(),
        ts_event_ms: run.now.millis(),
    })
}

pub(crate) fn positions<'a>(run: &'a Run, request_id: Option<&'a str>) -> Event<'a> {
    Event::PositionsUpdated(PositionsUpdated {
        request_id: request_id.map(text),
        venue: run.setup.kind.venue().into(),
        positions: position_rows(run),
        ts_ms: run.now.millis(),
    })
}

fn position_rows(run: &Run) -> Vec<PositionRow<'_>> {
    let held = run.markets.iter().zip(run.account.positions());
    held.filter_map(|(market, held)| position(market, held)).collect()
}

/// What is held of an instrument; none where nothing is.
fn position<'a>(market: &'a Market, held: &Position) -> Option<PositionRow<'a>> {
    let shares = u64::try_from(held.quantity).ok().filter(|shares| *shares > 0)?;
    let value = market.last_price.map(|price| Money::from_units(price.units() * held.quantity));
    Some(PositionRow {
        instrument_id: text(&market.instrument_id),
        qty: Quantity::new(shares).into(),
        avg_open_price: Some(average_cost(held).into()),
        market_value: value.map(Into::into),
        unrealized_pnl: value.map(|value| (value - held.cost).into()),
        side: OrderSide::Buy,
        position_type: "cash".into(),
        tategyoku_id: None,
        venue: text(&market.head.venue),
    })
}
