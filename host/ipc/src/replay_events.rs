//! Events of a replay session and of its runs (pins P64, P66 to P70).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Decimal, ExecutionConfig, Granularity, KlineUpdate, Multiplier, OrderRecordWire, PositionRow,
    Text, Trades,
};

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SessionState {
    /// Nothing is loaded.
    Idle,
    /// Data is loaded.
    Loaded,
    /// A strategy runs.
    Running,
    /// A run is being ended.
    Stopping,
}

/// Answers a [`crate::LoadReplayData`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ReplayDataLoaded<'a> {
    /// The command's id.
    pub request_id: Text<'a>,
    /// The first instrument that was asked for.
    pub instrument_id: Text<'a>,
    /// All instruments that are loaded now.
    pub instrument_ids: Vec<Text<'a>>,
    /// What was loaded.
    pub granularity: Granularity,
    /// First date in Japan.
    pub start_date: Text<'a>,
    /// Last date in Japan.
    pub end_date: Text<'a>,
    /// Trades in the range.
    pub trades_loaded: u64,
    /// Bars in the range.
    pub bars_loaded: u64,
    /// Days with data.
    pub days: u64,
    /// Business days without.
    pub days_missing: u64,
    /// Number of loads in this session.
    pub session_epoch: u64,
    /// When, in milliseconds UTC.
    pub ts_event_ms: u64,
}

/// What a [`crate::Progress`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProgressKind {
    /// Data is read.
    Load,
    /// A strategy runs.
    Run,
}

/// A run begins; the first event of every run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EngineStarted<'a> {
    /// The command's id.
    pub request_id: Option<Text<'a>>,
    /// The strategy.
    pub strategy_id: Text<'a>,
    /// `REPLAY`, or the broker's account.
    pub account_id: Text<'a>,
    /// The run's name, that of its folder.
    pub run_id: Text<'a>,
    /// Its speed.
    pub multiplier: Multiplier,
    /// How orders are filled, with the values that are used.
    pub execution: ExecutionConfig,
    /// When, in milliseconds UTC.
    pub ts_event_ms: u64,
}

/// Answers a [`crate::StopEngine`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ReplayStopped<'a> {
    /// The command's id.
    pub request_id: Text<'a>,
    /// The run.
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
    /// As a code.
    pub code: Text<'a>,
    /// In words.
    pub message: Text<'a>,
}

/// A run is over; the last event of every run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EngineStopped<'a> {
    /// The strategy.
    pub strategy_id: Text<'a>,
    /// The run.
    pub run_id: Text<'a>,
    /// Equity at the end in yen.
    pub final_equity: Decimal,
    /// How it ended.
    pub status: RunEnd,
    /// Why the strategy failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<RunFault<'a>>,
    /// The run's folder.
    pub run_dir: Text<'a>,
    /// Rows that were handled.
    pub rows_done: u64,
    /// When, in milliseconds UTC.
    pub ts_event_ms: u64,
}

/// The speed has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ReplaySpeedChanged<'a> {
    /// The command's id.
    pub request_id: Text<'a>,
    /// The new speed.
    pub multiplier: Multiplier,
}

/// The whole state of a session: every later event of the connection happened after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Session<'a> {
    /// The command's id.
    pub request_id: Text<'a>,
    /// Where it stands.
    pub state: SessionState,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<Text<'a>>,
    /// The strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy_id: Option<Text<'a>>,
    /// The account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_id: Option<Text<'a>>,
    /// What is loaded.
    pub instruments: Vec<LoadedInstrument<'a>>,
    /// The speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiplier: Option<Multiplier>,
    /// Time of the row handled last, in milliseconds UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ts_event_ms: Option<u64>,
    /// Rows handled.
    pub rows_done: u64,
    /// Rows of the run.
    pub rows_total: u64,
    /// Cash in yen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cash: Option<Decimal>,
    /// The same: only cash is modelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buying_power: Option<Decimal>,
    /// Cash and positions in yen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equity: Option<Decimal>,
    /// Orders of the run.
    pub orders: Vec<OrderRecordWire<'a>>,
    /// Positions.
    pub positions: Vec<PositionRow<'a>>,
    /// The last bar of each instrument.
    pub last_bars: Vec<KlineUpdate<'a>>,
    /// The last trade of each instrument.
    pub last_trades: Vec<Trades<'a>>,
    /// The run before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun<'a>>,
    /// Number of the last event before this.
    pub sequence: u64,
}

/// What is loaded of one instrument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LoadedInstrument<'a> {
    /// The instrument.
    pub instrument_id: Text<'a>,
    /// First date in Japan.
    pub start_date: Text<'a>,
    /// Last date in Japan.
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
    /// Its name.
    pub run_id: Text<'a>,
    /// Its folder.
    pub run_dir: Text<'a>,
    /// Equity at its end in yen.
    pub final_equity: Decimal,
    /// How it ended.
    pub status: RunEnd,
}
