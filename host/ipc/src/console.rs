//! What the page in the browser asks beside what every client asks: pages, forms, runs and their reports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Decimal, Granularity, Kline, KlineInterval, RequestId, Text, TradeRow};

/// Opens a page of the engine in the browser; answered by a [`ConsoleOpened`]. A page may not send it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenConsole {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
    /// Whether the page may only look; false when it is missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

/// Ends the session of the page that sends it. All connections of the session are closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignOut {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
}

/// Asks which data there are to load; answered by a [`DataCatalog`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetDataCatalog {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
}

/// Asks which strategies there are; answered by [`Strategies`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetStrategies {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
}

/// Asks for the parameters of a strategy; answered by [`StrategyParameters`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetStrategyParameters {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
    /// The strategy, as `StartEngine` takes it.
    pub strategy_file: String,
}

/// Asks for the trading units of an instrument; answered by an [`Instrument`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetInstrument {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
    /// The venue: `web_broker`, `local_broker` or `replay` (specification 2, "Endpoints").
    pub venue: String,
    /// The instrument as `<symbol>.<venue>`, like `7203.TSE`.
    pub instrument_id: String,
}

/// What a [`GetHistory`] asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HistoryKind {
    /// Trades.
    Trades,
    /// Bars of the session's length: of a minute, or of a day where daily bars are replayed.
    Bars,
}

/// Asks what was traded so far; answered by a [`History`]. In a replay that is the run up to its last row, on the live
/// market what came since the ticker is subscribed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetHistory {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
    /// The venue: `local_broker` or `replay` (specification 2, "Endpoints").
    pub venue: String,
    /// The exchange's code without a suffix, like `7203`.
    pub ticker: String,
    /// Trades or bars.
    pub kind: HistoryKind,
    /// Rows before this one only: the `sequence_id` of a trade, or the `open_time_ms` of a bar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// Rows of the answer at most; never more than 10,000 trades or 5,000 bars.
    pub limit: u32,
}

/// Asks for the runs whose folders are there; answered by [`Runs`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetRuns {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
}

/// Asks for an address that shows a run's report once; answered by a [`ReportOpened`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenReport {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
    /// Name of the run.
    pub run_id: String,
}

/// What a page may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConsoleScope {
    /// All that a client may do, but open another page or end the engine.
    Full,
    /// Look.
    ReadOnly,
}

/// Answers an [`OpenConsole`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ConsoleOpened<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: Text<'a>,
    /// The page's address; its fragment is a code that is good once.
    pub url: Text<'a>,
    /// Until when the code is good, in milliseconds since 1970 UTC.
    pub expires_ms: u64,
}

/// Days that have stored data of one kind, by the names of the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DataSpan<'a> {
    /// Trades, minute bars or daily bars.
    pub granularity: Granularity,
    /// First date in Japan, `YYYY-MM-DD`.
    pub start_date: Text<'a>,
    /// Last date in Japan, `YYYY-MM-DD`. A file of a month has all of its days.
    pub end_date: Text<'a>,
}

/// An instrument that can be named in a form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct NamedInstrument<'a> {
    /// The instrument as `<symbol>.<venue>`, like `7203.TSE`.
    pub instrument_id: Text<'a>,
    /// Its name, where it is known.
    pub name: Option<Text<'a>>,
}

/// Answers a [`GetDataCatalog`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DataCatalog<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: Text<'a>,
    /// Stored data, by granularity and date; none in live mode.
    pub files: Vec<DataSpan<'a>>,
    /// Known instruments, by their names on the wire; others may be there.
    pub instruments: Vec<NamedInstrument<'a>>,
}

/// A strategy that can be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StrategyFile<'a> {
    /// What `StartEngine` takes.
    pub strategy_file: Text<'a>,
    /// Its name.
    pub name: Text<'a>,
}

/// Answers a [`GetStrategies`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Strategies<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: Text<'a>,
    /// The strategies, by name.
    pub strategies: Vec<StrategyFile<'a>>,
}

/// The kind of a parameter's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ParameterKind {
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// A text.
    Text,
    /// True or false.
    Boolean,
}

/// A parameter of a strategy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StrategyParameter<'a> {
    /// Its name.
    pub name: Text<'a>,
    /// Its value where none is given.
    #[schemars(extend("type" = ["number", "string", "boolean", "null"]))]
    pub default: Value,
    /// The kind of its value.
    pub kind: ParameterKind,
}

/// Answers a [`GetStrategyParameters`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StrategyParameters<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: Text<'a>,
    /// The strategy, as it was asked for.
    pub strategy_file: Text<'a>,
    /// Its parameters, by name.
    pub parameters: Vec<StrategyParameter<'a>>,
}

/// The price step up to a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TickBand {
    /// The highest price with this step in yen; null in the last band.
    pub up_to: Option<Decimal>,
    /// The step in yen.
    pub tick: Decimal,
}

/// Answers a [`GetInstrument`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Instrument<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: Text<'a>,
    /// The venue, as it was asked for.
    pub venue: Text<'a>,
    /// The instrument as `<symbol>.<venue>`, like `7203.TSE`.
    pub instrument_id: Text<'a>,
    /// Its name, where it is known.
    pub name: Option<Text<'a>>,
    /// Shares in a trading unit.
    pub lot: u64,
    /// Price steps, ascending.
    pub ticks: Vec<TickBand>,
    /// The price from which the day's limits are counted, in yen, where it is known.
    pub base_price: Option<Decimal>,
    /// The lowest price of the day in yen, where it is known.
    pub lower_limit: Option<Decimal>,
    /// The highest price of the day in yen, where it is known.
    pub upper_limit: Option<Decimal>,
}

/// Answers a [`GetHistory`]: the newest of the rows asked for, the oldest of them first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct History<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: Text<'a>,
    /// The venue, as it was asked for.
    pub venue: Text<'a>,
    /// The exchange's code without a suffix, like `7203`.
    pub ticker: Text<'a>,
    /// Trades or bars.
    pub kind: HistoryKind,
    /// The session that numbers the trades, where there is one.
    pub stream_session_id: Option<Text<'a>>,
    /// The trades; none where bars were asked for.
    pub trades: Vec<TradeRow>,
    /// How long each bar is.
    pub interval: KlineInterval,
    /// The bars; none where trades were asked for. The last one may still grow.
    pub klines: Vec<Kline>,
    /// Whether there are older rows.
    pub more: bool,
}

/// A run whose folder is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RunRow<'a> {
    /// Name of the run.
    pub run_id: Text<'a>,
    /// `replay`, `paper` or `live`.
    pub run_kind: Text<'a>,
    /// Name of the strategy, as it was started.
    pub strategy_id: Option<Text<'a>>,
    /// Its instruments.
    pub instrument_ids: Vec<Text<'a>>,
    /// First date in Japan, `YYYY-MM-DD`.
    pub start_date: Option<Text<'a>>,
    /// Last date in Japan, `YYYY-MM-DD`.
    pub end_date: Option<Text<'a>>,
    /// How it ended, as its manifest says.
    pub status: Text<'a>,
    /// Cash and positions at its end in yen.
    pub final_equity: Option<Decimal>,
    /// Whether it has a report to open.
    pub report: bool,
}

/// Answers a [`GetRuns`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Runs<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: Text<'a>,
    /// The newest 200 runs, newest first.
    pub runs: Vec<RunRow<'a>>,
}

/// Answers an [`OpenReport`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ReportOpened<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: Text<'a>,
    /// Name of the run.
    pub run_id: Text<'a>,
    /// The report's address; it is good once, and for 60 s.
    pub url: Text<'a>,
}
