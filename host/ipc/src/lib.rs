//! Every message between the engine and its clients, and every line of a run's logs, as types: what
//! a JSON object is called, which fields it has and in which order stands here and nowhere else
//! (specification 2, "Endpoints", "Events" and "Audit log"; specification 4, pins P9 to P79).
//!
//! Types only: no sockets, no files, no decisions. What comes in refuses unknown fields; what goes
//! out borrows its texts, so that a hot writer copies none. How orders of the host map onto them stands
//! in `command_mapping` and `order_mapping`. [`schema`] makes JSON schemas of all.

mod account;
mod audit;
mod command;
mod command_line;
mod command_mapping;
mod console;
mod credentials_record;
mod decimal;
mod event;
mod event_log;
mod handshake;
mod market;
mod narrative;
mod order_commands;
mod order_events;
mod order_mapping;
mod order_record;
mod replay_commands;
mod replay_events;
mod request;
pub mod schema;
mod strategy_orders;
mod venue;

pub use account::{
    BuyingPowerUpdated, GetBuyingPower, GetPositions, PositionClosed, PositionOpened, PositionRow,
    PositionsUpdated, ReplayBuyingPower,
};
pub use audit::{
    AuditAccepted, AuditAdjusted, AuditContext, AuditEnded, AuditFilled, AuditLine, AuditRejected,
    AuditSessionExpired, AuditSubmit,
};
pub use command::{Command, CommandHead, Ping, Shutdown};
pub use command_line::{CommandLine, CommandPosition, LoggedCommand};
pub use command_mapping::OrderNames;
pub use console::{
    ConsoleOpened, ConsoleScope, DataCatalog, DataSpan, GetDataCatalog, GetHistory, GetInstrument,
    GetRuns, GetStrategies, GetStrategyParameters, History, HistoryKind, Instrument,
    NamedInstrument, OpenConsole, OpenReport, ParameterKind, ReportOpened, RunRow, Runs, SignOut,
    Strategies, StrategyFile, StrategyParameter, StrategyParameters, TickBand,
};
pub use credentials_record::CredentialsRecord;
pub use decimal::{Decimal, ShareCount};
pub use domain::{Discrepancy, Origin};
pub use event::{
    ClientConnected, EngineBusy, EngineError, Error, Event, Pong, Progress, error_code,
};
pub use event_log::{EventLine, ExecutionMarkerLine, PositionClosedLine, PositionOpenedLine};
pub use handshake::{
    Capabilities, Challenge, Dialect, EngineMode, Hello, Ready, StrategyEngineCapabilities,
    VenueCapabilities,
};
pub use market::{
    BookLevel, DepthSnapshot, EvictLru, GetBoard, Kline, KlineInterval, KlineUpdate, SideRule,
    Subscribe, Subscribed, SubscriptionEvicted, TickerInfo, TimestampSource, TradeRow, TradeSide,
    Trades, Unsubscribe, Unsubscribed,
};
pub use narrative::{NarrativeRow, StrategyLevel, StrategyLog, StrategyNarrative};
pub use order_commands::{
    CancelAllOrders, CancelOrder, ForgetSecondPassword, GetOrderList, ModifyOrder, OrderListFilter,
    OrderModifyChange, SetSecondPassword, SubmitOrder, SubmitOrderRequest,
};
pub use order_events::{
    CancelAllResult, ExecutionMarker, OrderAccepted, OrderCanceled, OrderContext, OrderDiscrepancy,
    OrderExpired, OrderFilled, OrderListUpdated, OrderPendingCancel, OrderPendingUpdate,
    OrderRejected, OrderSubmitted, OrderUpdated, SecondPasswordRequired, SecondPasswordSet,
    StrategySignal, SubmitOrderResult, SubmitOutcome,
};
pub use order_mapping::OrderEventParts;
pub use order_record::{OrderRecordWire, SubmittedOrder};
pub use replay_commands::{
    EngineKind, EngineStartConfig, ExecutionConfig, GetSession, Granularity, LoadReplayData,
    Multiplier, SetReplaySpeed, StartEngine, StopEngine,
};
pub use replay_events::{
    EngineStarted, EngineStopped, EquityPoint, LastRun, LoadedInstrument, ProgressKind,
    ReplayDataLoaded, ReplaySpeedChanged, ReplayStopped, RunEnd, RunFault, Session, SessionState,
};
pub use request::RequestId;
pub use strategy_orders::{
    AdjustStrategyPosition, GetStrategyPositions, OrderSettled, SettleOrder, StrategyPosition,
    StrategyPositionAdjusted, StrategyPositions,
};

pub use venue::{
    GetVenueState, RequestVenueLogin, SecondPasswordState, VenueCredentialsRefreshed, VenueError,
    VenueLifecycle, VenueLoginCancelled, VenueLoginStarted, VenueReady, VenueState,
};

/// A text of a message that goes out: borrowed from whoever tells it.
pub type Text<'a> = std::borrow::Cow<'a, str>;

/// Version of the messages (specification 2, "Versioning"): another major version is refused, a
/// higher minor version only adds.
pub const SCHEMA_MAJOR: u32 = 1;
/// See [`SCHEMA_MAJOR`].
pub const SCHEMA_MINOR: u32 = 4;

#[cfg(test)]
mod tests;
