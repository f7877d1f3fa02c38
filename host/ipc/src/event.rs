//! What the engine tells its clients: one JSON object a frame, told apart by `event`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    BuyingPowerUpdated, CancelAllResult, Challenge, ConsoleOpened, DataCatalog, DepthSnapshot,
    EngineStarted, EngineStopped, ExecutionMarker, History, Instrument, KlineUpdate, OrderAccepted,
    OrderCanceled, OrderDiscrepancy, OrderExpired, OrderFilled, OrderListUpdated,
    OrderPendingCancel, OrderPendingUpdate, OrderRejected, OrderSettled, OrderSubmitted,
    OrderUpdated, PositionClosed, PositionOpened, PositionsUpdated, ProgressKind, Ready,
    ReplayBuyingPower, ReplayDataLoaded, ReplaySpeedChanged, ReplayStopped, ReportOpened, Runs,
    SecondPasswordRequired, SecondPasswordSet, Session, SessionState, Strategies, StrategyLog,
    StrategyNarrative, StrategyParameters, StrategyPositionAdjusted, StrategyPositions,
    StrategySignal, SubmitOrderResult, Subscribed, SubscriptionEvicted, Text, Trades, Unsubscribed,
    VenueCredentialsRefreshed, VenueError, VenueLoginCancelled, VenueLoginStarted, VenueReady,
    VenueState,
};

/// An event or an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event")]
pub enum Event<'a> {
    /// The first message of a connection.
    Challenge(Challenge<'a>),
    /// The engine accepts the connection.
    Ready(Ready<'a>),
    /// Answers a [`crate::Ping`].
    Pong(Pong<'a>),
    /// The number of clients has changed.
    ClientConnected(ClientConnected),
    /// The engine refuses a command.
    Error(Error<'a>),
    /// Something failed in the engine, the strategy or the handshake.
    EngineError(EngineError<'a>),
    /// A command does not fit the state of the session.
    EngineBusy(EngineBusy<'a>),
    /// Progress of a load or a run.
    Progress(Progress<'a>),
    /// An order was taken.
    OrderSubmitted(OrderSubmitted<'a>),
    /// An order has a number.
    OrderAccepted(OrderAccepted<'a>),
    /// An order, a change or a cancel was rejected.
    OrderRejected(OrderRejected<'a>),
    /// A change was sent.
    OrderPendingUpdate(OrderPendingUpdate<'a>),
    /// A change was taken.
    OrderUpdated(OrderUpdated<'a>),
    /// A cancel was sent.
    OrderPendingCancel(OrderPendingCancel<'a>),
    /// An order is cancelled.
    OrderCanceled(OrderCanceled<'a>),
    /// An order's time ran out.
    OrderExpired(OrderExpired<'a>),
    /// An order was filled.
    OrderFilled(OrderFilled<'a>),
    /// Answers a submit.
    SubmitOrderResult(SubmitOrderResult<'a>),
    /// Answers `CancelAllOrders` at its end.
    CancelAllResult(CancelAllResult<'a>),
    /// Orders of a venue.
    OrderListUpdated(OrderListUpdated<'a>),
    /// The broker's data on an order do not fit.
    OrderDiscrepancy(OrderDiscrepancy<'a>),
    /// An order whose answer was lost is decided.
    OrderSettled(OrderSettled<'a>),
    /// What strategies hold.
    StrategyPositions(StrategyPositions<'a>),
    /// What a strategy holds is corrected.
    StrategyPositionAdjusted(StrategyPositionAdjusted<'a>),
    /// The second password is needed.
    SecondPasswordRequired(SecondPasswordRequired<'a>),
    /// The engine holds the second password.
    SecondPasswordSet(SecondPasswordSet<'a>),
    /// A fill, for charts.
    ExecutionMarker(ExecutionMarker<'a>),
    /// A mark of the strategy, for charts.
    StrategySignal(StrategySignal<'a>),
    /// A decision of the strategy.
    StrategyNarrative(StrategyNarrative<'a>),
    /// A line of the strategy's log.
    StrategyLog(StrategyLog<'a>),
    /// Money at a broker.
    BuyingPowerUpdated(BuyingPowerUpdated<'a>),
    /// Money in a replay.
    ReplayBuyingPower(ReplayBuyingPower<'a>),
    /// All positions.
    PositionsUpdated(PositionsUpdated<'a>),
    /// A position was opened.
    PositionOpened(PositionOpened<'a>),
    /// A position was closed.
    PositionClosed(PositionClosed<'a>),
    /// Data is loaded.
    ReplayDataLoaded(ReplayDataLoaded<'a>),
    /// A run begins.
    EngineStarted(EngineStarted<'a>),
    /// The speed has changed.
    ReplaySpeedChanged(ReplaySpeedChanged<'a>),
    /// A run was stopped.
    ReplayStopped(ReplayStopped<'a>),
    /// A run is over.
    EngineStopped(EngineStopped<'a>),
    /// The whole state of the session.
    Session(Box<Session<'a>>),
    /// Market data of a ticker begin.
    Subscribed(Subscribed<'a>),
    /// Market data of a ticker end.
    Unsubscribed(Unsubscribed<'a>),
    /// A ticker left a register set.
    SubscriptionEvicted(SubscriptionEvicted<'a>),
    /// Trades of one instrument, in their order.
    Trades(Trades<'a>),
    /// An order book.
    DepthSnapshot(DepthSnapshot<'a>),
    /// A bar of one instrument.
    KlineUpdate(KlineUpdate<'a>),
    /// A login begins.
    VenueLoginStarted(VenueLoginStarted<'a>),
    /// A login ended without a password.
    VenueLoginCancelled(VenueLoginCancelled<'a>),
    /// A venue can be used.
    VenueReady(VenueReady<'a>),
    /// A venue cannot be used.
    VenueError(VenueError<'a>),
    /// The state of a venue.
    VenueState(VenueState<'a>),
    /// A login at the web broker is done.
    VenueCredentialsRefreshed(VenueCredentialsRefreshed<'a>),
    /// The address of a page.
    ConsoleOpened(ConsoleOpened<'a>),
    /// Stored data.
    DataCatalog(DataCatalog<'a>),
    /// Strategies that can be started.
    Strategies(Strategies<'a>),
    /// Parameters of a strategy.
    StrategyParameters(StrategyParameters<'a>),
    /// Trading units of an instrument.
    Instrument(Instrument<'a>),
    /// What was traded so far.
    History(History<'a>),
    /// Runs whose folders are there.
    Runs(Runs<'a>),
    /// The address of a report.
    ReportOpened(ReportOpened<'a>),
}

/// A client came or went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ClientConnected {
    /// Clients that are connected.
    pub count: u32,
}

/// Answers a [`crate::Ping`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Pong<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: Text<'a>,
    /// The engine's own time in milliseconds since 1970 UTC.
    pub ts_ms: u64,
}

/// A command was refused, or its outcome is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Error<'a> {
    /// The command's id, where it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Text<'a>>,
    /// Why, as a code of [`error_code`] or of [`domain::ReasonCode`].
    pub code: Text<'a>,
    /// Why, in words.
    pub message: Text<'a>,
    /// The number of the order that has the id; with `conflict`, null while it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub venue_order_id: Option<Text<'a>>,
}

/// Something failed in the engine, the strategy or the handshake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EngineError<'a> {
    /// The command's id, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Text<'a>>,
    /// Why, as a code of [`error_code`].
    pub code: Text<'a>,
    /// Why, in words.
    pub message: Text<'a>,
    /// The strategy that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy_id: Option<Text<'a>>,
}

/// A command does not fit the state of the session. Told to its client only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EngineBusy<'a> {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Text<'a>>,
    /// State of the session.
    pub current_state: SessionState,
    /// The command's name.
    pub attempted_command: Text<'a>,
    /// Why they do not fit.
    pub reason: Text<'a>,
    /// The venue that the command named, as it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub venue: Option<Text<'a>>,
}

/// How far something is; at most 10 a second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Progress<'a> {
    /// The command that began it.
    pub request_id: Text<'a>,
    /// What is counted: the data that is loaded, or the rows of a run.
    pub kind: ProgressKind,
    /// Units done so far, at most `total`.
    pub done: u64,
    /// Units in all.
    pub total: u64,
    /// What is counted, like `rows`.
    pub unit: Text<'a>,
}

/// The codes of [`Error`], [`EngineError`] and [`VenueError`] beside the specification's reason codes.
pub mod error_code {
    /// This page may not ask that.
    pub const FORBIDDEN: &str = "forbidden";
    /// The console's port is taken.
    pub const CONSOLE_PORT_IN_USE: &str = "console_port_in_use";
    /// The id of the order is known with another content.
    pub const CONFLICT: &str = "conflict";
    /// The message breaks the schema.
    pub const VALIDATION_ERROR: &str = "validation_error";
    /// No data of that code in that range.
    pub const DATA_NOT_FOUND: &str = "data_not_found";
    /// More instruments than a replay takes.
    pub const TOO_MANY_INSTRUMENTS: &str = "too_many_instruments";
    /// The range of a run is not loaded.
    pub const NOT_LOADED: &str = "not_loaded";
    /// The engine that is asked for is not that of the process.
    pub const VALUE_ERROR: &str = "value_error";
    /// This engine runs no strategies live, or not in the way that was asked for.
    pub const LIVE_ENGINE_UNAVAILABLE: &str = "live_engine_unavailable";
    /// The strategy's file cannot be used.
    pub const STRATEGY_LOAD_FAILED: &str = "strategy_load_failed";
    /// The strategy failed at its start.
    pub const STRATEGY_INIT_FAILED: &str = "strategy_init_failed";
    /// The engine itself failed.
    pub const INTERNAL_ERROR: &str = "internal_error";
    /// The results of a run cannot be kept.
    pub const RESULTS_FAILED: &str = "results_failed";
    /// The strategy failed.
    pub const STRATEGY_FAULT: &str = "strategy_fault";
    /// Events wait long for the strategy.
    pub const STRATEGY_SLOW: &str = "strategy_slow";
    /// A live strategy gets no market data for now.
    pub const MARKET_DATA_LOST: &str = "market_data_lost";
    /// A venue that a live strategy needs is not ready.
    pub const VENUE_NOT_READY: &str = "venue_not_ready";
    /// A strategy cannot start: orders of it are open or unknown.
    pub const ORDERS_UNSETTLED: &str = "orders_unsettled";
    /// The account holds fewer shares than a strategy.
    pub const POSITION_MISMATCH: &str = "position_mismatch";
    /// An order that was judged as not at the broker is there after all.
    pub const ORDER_CAME_BACK: &str = "order_came_back";
    /// A strategy has a position or a working order, and the second password is gone.
    pub const SECOND_PASSWORD_NEEDED: &str = "second_password_needed";
    /// A run ends while orders of its strategy work or are unknown.
    pub const ORDERS_WORKING: &str = "orders_working";
    /// A venue is asked for that a replay has not.
    pub const NOT_IN_REPLAY_MODE: &str = "not_in_replay_mode";
    /// The venue is not there.
    pub const VENUE_NOT_AVAILABLE: &str = "venue_not_available";
    /// The vendor's files cannot be used.
    pub const DATA_UNREADABLE: &str = "data_unreadable";
    /// The register set is full.
    pub const REGISTER_FULL: &str = "register_full";
    /// The venue takes no more requests for now.
    pub const RATE_LIMITED: &str = "rate_limited";
    /// The venue's token is no longer taken.
    pub const TOKEN_EXPIRED: &str = "token_expired";
    /// The venue's program cannot be reached.
    pub const LOCAL_APP_DOWN: &str = "local_app_down";
    /// The venue answered an error, or nothing that can be read.
    pub const GATEWAY_ERROR: &str = "gateway_error";
    /// The venue refused the login.
    pub const LOGIN_FAILED: &str = "login_failed";
    /// Boards are not recorded any more.
    pub const RECORDING_STOPPED: &str = "recording_stopped";
    /// A recording lacks something, and goes on.
    pub const RECORDING_INCOMPLETE: &str = "recording_incomplete";
    /// The client showed no right token.
    pub const AUTH_FAILED: &str = "auth_failed";
    /// The client did not say in time that it may connect.
    pub const HANDSHAKE_TIMEOUT: &str = "handshake_timeout";
    /// The client wants another mode than that of the process.
    pub const MODE_MISMATCH: &str = "mode_mismatch";
    /// The client's messages have another major version.
    pub const SCHEMA_MISMATCH: &str = "schema_mismatch";
}
