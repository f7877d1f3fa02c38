//! Events of a replay session and of its runs (pins P64, P66 to P70).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Decimal, ExecutionConfig, ExecutionMarker, Granularity, KlineUpdate, Multiplier,
    OrderRecordWire, PositionRow, StrategyNarrative, StrategySignal, SubmittedOrder, Text, Trades,
};

/// State of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SessionState {
    /// Nothing is loaded.
    Idle,
    /// Data is loaded.
    Loaded,
    /// A strategy runs.
    Running,
    /// A run is ending.
    Stopping,
}

/// Answers a [`crate::LoadReplayData`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ReplayDataLoaded<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: Text<'a>,
    /// The first instrument of the command.
    pub instrument_id: Text<'a>,
    /// All instruments that are loaded now.
    pub instrument_ids: Vec<Text<'a>>,
    /// What was loaded.
    pub granularity: Granularity,
    /// First date in Japan, `YYYY-MM-DD`.
    pub start_date: Text<'a>,
    /// Last date in Japan, `YYYY-MM-DD`.
    pub end_date: Text<'a>,
    /// Trades in the range.
    pub trades_loaded: u64,
    /// Bars in the range.
    pub bars_loaded: u64,
    /// Dates in Japan with data.
    pub days: u64,
    /// Business days in the range without data.
    pub days_missing: u64,
    /// Number of loads in this session.
    pub session_epoch: u64,
    /// Time of the event in milliseconds since 1970 UTC; virtual in a replay.
    pub ts_event_ms: u64,
}

/// What a [`crate::Progress`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProgressKind {
    /// The engine reads data.
    Load,
    /// A strategy runs.
    Run,
}

/// A run begins; the first event of every run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EngineStarted<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: Option<Text<'a>>,
    /// Name of the run's strategy, as it was started.
    pub strategy_id: Text<'a>,
    /// `REPLAY`, or the broker's account.
    pub account_id: Text<'a>,
    /// The run's name, that of its folder.
    pub run_id: Text<'a>,
    /// Its speed in times real time, or `max`.
    pub multiplier: Multiplier,
    /// How orders are filled, with the values that are used.
    pub execution: ExecutionConfig,
    /// The strategy's parameters, as they were given.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// Time of the event in milliseconds since 1970 UTC; virtual in a replay.
    pub ts_event_ms: u64,
}

/// Answers a [`crate::StopEngine`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ReplayStopped<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: Text<'a>,
    /// Name of the run.
    pub run_id: Text<'a>,
    /// Equity at the end in yen.
    pub final_equity: Decimal,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunEnd {
    /// At the end of its data.
    Completed,
    /// By a command.
    Stopped,
    /// The strategy failed.
    Fault,
}

/// Why a strategy failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RunFault<'a> {
    /// What failed, as a code.
    pub code: Text<'a>,
    /// What failed, in words.
    pub message: Text<'a>,
}

/// A run is over; the last event of every run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EngineStopped<'a> {
    /// The `request_id` of the command that stopped a live run; missing in a replay and without a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Text<'a>>,
    /// Name of the run's strategy, as it was started.
    pub strategy_id: Text<'a>,
    /// Name of the run.
    pub run_id: Text<'a>,
    /// Equity at the end in yen.
    pub final_equity: Decimal,
    /// How it ended.
    pub status: RunEnd,
    /// Why the strategy failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<RunFault<'a>>,
    /// Path of the folder of the run's results.
    pub run_dir: Text<'a>,
    /// Trades or bars that were handled.
    pub rows_done: u64,
    /// Time of the event in milliseconds since 1970 UTC; virtual in a replay.
    pub ts_event_ms: u64,
}

/// The speed has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ReplaySpeedChanged<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: Text<'a>,
    /// The new speed in times real time, or `max`.
    pub multiplier: Multiplier,
}

/// The whole state of a session: every later event of the connection comes after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Session<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: Text<'a>,
    /// Its state.
    pub state: SessionState,
    /// Name of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<Text<'a>>,
    /// Name of the run's strategy, as it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy_id: Option<Text<'a>>,
    /// `REPLAY`, or the broker's account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_id: Option<Text<'a>>,
    /// What to load: trades, minute bars or daily bars.
    pub instruments: Vec<LoadedInstrument<'a>>,
    /// The speed in times real time, or `max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiplier: Option<Multiplier>,
    /// Time of the last row, in milliseconds UTC. This field and the next ones describe the run,
    /// also after its end, until a client loads other data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ts_event_ms: Option<u64>,
    /// Trades or bars handled so far.
    pub rows_done: u64,
    /// Trades or bars of the whole run.
    pub rows_total: u64,
    /// First date of the run in Japan, `YYYY-MM-DD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_date: Option<Text<'a>>,
    /// Last date of the run in Japan, `YYYY-MM-DD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_date: Option<Text<'a>>,
    /// How orders are filled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ExecutionConfig>,
    /// Cash before the first row in yen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_cash: Option<Decimal>,
    /// Cash in yen, exact to 1/10,000; money reserved for open orders is part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cash: Option<Decimal>,
    /// The same: only cash is modelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buying_power: Option<Decimal>,
    /// Cash and positions in yen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equity: Option<Decimal>,
    /// Orders of the run, the newest 10,000.
    pub orders: Vec<OrderRecordWire<'a>>,
    /// The newest 10,000 orders without a number of the venue, in the order of sending. They are on
    /// their way, or ended on it.
    #[serde(default)]
    pub orders_submitted: Vec<SubmittedOrder<'a>>,
    /// Fills, the newest 10,000.
    #[serde(default)]
    pub executions: Vec<ExecutionMarker<'a>>,
    /// Marks of the strategy, the newest 1,000.
    #[serde(default)]
    pub signals: Vec<StrategySignal<'a>>,
    /// Decisions of the strategy, the newest 1,000.
    #[serde(default)]
    pub narratives: Vec<StrategyNarrative<'a>>,
    /// The strategy's parameters, as they were given.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// The account over time: while a replay goes on as it was told by `ReplayBuyingPower`, else at the end of each
    /// minute. At most 2,000 points; of more every second, fourth and so on.
    #[serde(default)]
    pub equity_curve: Vec<EquityPoint>,
    /// Positions at the last row.
    pub positions: Vec<PositionRow<'a>>,
    /// The newest bars of each instrument, up to 400; the last one may still grow.
    pub last_bars: Vec<KlineUpdate<'a>>,
    /// The last trade of each instrument.
    pub last_trades: Vec<Trades<'a>>,
    /// The run before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun<'a>>,
    /// Number of the last event before this.
    pub sequence: u64,
}

/// The account at a time of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EquityPoint {
    /// The time in milliseconds UTC.
    pub ts_event_ms: u64,
    /// Cash and positions in yen.
    pub equity: Decimal,
}

/// What is loaded of one instrument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LoadedInstrument<'a> {
    /// The instrument as `<symbol>.<venue>`, like `7203.TSE`.
    pub instrument_id: Text<'a>,
    /// First date in Japan, `YYYY-MM-DD`.
    pub start_date: Text<'a>,
    /// Last date in Japan, `YYYY-MM-DD`.
    pub end_date: Text<'a>,
    /// What was loaded.
    pub granularity: Granularity,
    /// Trades in the range.
    pub trades_loaded: u64,
    /// Bars in the range.
    pub bars_loaded: u64,
}

/// A run that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LastRun<'a> {
    /// Name of the run.
    pub run_id: Text<'a>,
    /// Path of the folder of its results.
    pub run_dir: Text<'a>,
    /// Equity at its end in yen.
    pub final_equity: Decimal,
    /// How it ended.
    pub status: RunEnd,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<RunFault<'a>>,
}
