//! What a client may ask for: one JSON object a frame, told apart by `op`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    AdjustStrategyPosition, CancelAllOrders, CancelOrder, EvictLru, ForgetSecondPassword, GetBoard,
    GetBuyingPower, GetDataCatalog, GetHistory, GetInstrument, GetOrderList, GetPositions, GetRuns,
    GetSession, GetStrategies, GetStrategyParameters, GetStrategyPositions, GetVenueState, Hello,
    LoadReplayData, ModifyOrder, OpenConsole, OpenReport, RequestId, RequestVenueLogin,
    SetReplaySpeed, SetSecondPassword, SettleOrder, SignOut, StartEngine, StopEngine, SubmitOrder,
    Subscribe, Unsubscribe,
};

/// A command. Those with a secret can be read but not written.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op")]
pub enum Command {
    /// The first message of a client.
    Hello(Hello),
    /// Asks whether the engine is there.
    Ping(Ping),
    /// Holds the second password.
    #[serde(skip_serializing)]
    SetSecondPassword(SetSecondPassword),
    /// Forgets the second password.
    ForgetSecondPassword(ForgetSecondPassword),
    /// Sends an order.
    SubmitOrder(SubmitOrder),
    /// Changes an order.
    ModifyOrder(ModifyOrder),
    /// Cancels an order.
    CancelOrder(CancelOrder),
    /// Cancels many orders.
    CancelAllOrders(CancelAllOrders),
    /// Asks for orders.
    GetOrderList(GetOrderList),
    /// Decides an order whose answer was lost.
    SettleOrder(SettleOrder),
    /// Asks what strategies hold.
    GetStrategyPositions(GetStrategyPositions),
    /// Corrects what a strategy holds.
    AdjustStrategyPosition(AdjustStrategyPosition),
    /// Loads data for a replay.
    LoadReplayData(LoadReplayData),
    /// Starts a strategy.
    StartEngine(Box<StartEngine>),
    /// Ends a run.
    StopEngine(StopEngine),
    /// Changes the speed of a replay.
    SetReplaySpeed(SetReplaySpeed),
    /// Asks for the state of the session.
    GetSession(GetSession),
    /// Asks for market data.
    Subscribe(Subscribe),
    /// Ends market data of a ticker.
    Unsubscribe(Unsubscribe),
    /// Reads a board once.
    GetBoard(GetBoard),
    /// Makes room in a register set.
    EvictLru(EvictLru),
    /// Logs in at a venue.
    RequestVenueLogin(RequestVenueLogin),
    /// Asks for the state of a venue.
    GetVenueState(GetVenueState),
    /// Asks for the buying power.
    GetBuyingPower(GetBuyingPower),
    /// Asks for the positions.
    GetPositions(GetPositions),
    /// Ends the engine.
    Shutdown(Shutdown),
    /// Opens a page in the browser.
    OpenConsole(OpenConsole),
    /// Ends the session of a page.
    SignOut(SignOut),
    /// Asks which data there are.
    GetDataCatalog(GetDataCatalog),
    /// Asks which strategies there are.
    GetStrategies(GetStrategies),
    /// Asks for the parameters of a strategy.
    GetStrategyParameters(GetStrategyParameters),
    /// Asks for the trading units of an instrument.
    GetInstrument(GetInstrument),
    /// Asks what was traded so far.
    GetHistory(GetHistory),
    /// Asks which runs there are.
    GetRuns(GetRuns),
    /// Asks for the report of a run.
    OpenReport(OpenReport),
}

/// Asks whether the engine is there; answered by a [`crate::Pong`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ping {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
}

/// Ends the engine after its last events are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Shutdown {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
}

/// Writes what each command is called, and where its id and its venue are.
macro_rules! command_fields {
    ($($name:ident: $id:expr, $venue:expr;)*) => {
        impl Command {
            /// The command's name, as it is sent.
            #[must_use]
            pub const fn op(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => stringify!($name),)*
                }
            }

            /// The command's id; a [`Hello`] has none.
            #[must_use]
            pub fn request_id(&self) -> Option<&RequestId> {
                match self {
                    $(Self::$name(command) => field($id, command),)*
                }
            }

            /// The venue that the command names, as it was sent.
            #[must_use]
            pub fn venue(&self) -> Option<&str> {
                match self {
                    $(Self::$name(command) => field($venue, command),)*
                }
            }
        }
    };
}

/// A field of a command, if it has it.
fn field<'c, C, F: ?Sized>(of: fn(&'c C) -> Option<&'c F>, command: &'c C) -> Option<&'c F> {
    of(command)
}

command_fields! {
    Hello: |_| None, |_| None;
    Ping: |command| Some(&command.request_id), |_| None;
    SetSecondPassword: |command| Some(&command.request_id), |_| None;
    ForgetSecondPassword: |command| command.request_id.as_ref(), |_| None;
    SubmitOrder: |command| Some(&command.request_id), |command| Some(command.venue.as_str());
    ModifyOrder: |command| Some(&command.request_id), |command| Some(command.venue.as_str());
    CancelOrder: |command| Some(&command.request_id), |command| Some(command.venue.as_str());
    CancelAllOrders: |command| Some(&command.request_id), |command| Some(command.venue.as_str());
    GetOrderList: |command| Some(&command.request_id), |command| Some(command.venue.as_str());
    SettleOrder: |command| Some(&command.request_id), |_| None;
    GetStrategyPositions: |command| Some(&command.request_id), |_| None;
    AdjustStrategyPosition: |command| Some(&command.request_id), |_| None;
    LoadReplayData: |command| Some(&command.request_id), |_| None;
    StartEngine: |command| Some(&command.request_id), |_| None;
    StopEngine: |command| Some(&command.request_id), |_| None;
    SetReplaySpeed: |command| Some(&command.request_id), |_| None;
    GetSession: |command| Some(&command.request_id), |_| None;
    Subscribe: |command| Some(&command.request_id), |command| Some(command.venue.as_str());
    Unsubscribe: |command| Some(&command.request_id), |command| Some(command.venue.as_str());
    GetBoard: |command| Some(&command.request_id), |command| Some(command.venue.as_str());
    EvictLru: |command| Some(&command.request_id), |command| Some(command.venue.as_str());
    RequestVenueLogin: |command| command.request_id.as_ref(), |command| Some(command.venue.as_str());
    GetVenueState: |command| Some(&command.request_id), |command| command.venue.as_deref();
    GetBuyingPower: |command| Some(&command.request_id), |command| Some(command.venue.as_str());
    GetPositions: |command| Some(&command.request_id), |command| Some(command.venue.as_str());
    Shutdown: |command| Some(&command.request_id), |_| None;
    OpenConsole: |command| Some(&command.request_id), |_| None;
    SignOut: |command| Some(&command.request_id), |_| None;
    GetDataCatalog: |command| Some(&command.request_id), |_| None;
    GetStrategies: |command| Some(&command.request_id), |_| None;
    GetStrategyParameters: |command| Some(&command.request_id), |_| None;
    GetInstrument: |command| Some(&command.request_id), |command| Some(command.venue.as_str());
    GetHistory: |command| Some(&command.request_id), |command| Some(command.venue.as_str());
    GetRuns: |command| Some(&command.request_id), |_| None;
    OpenReport: |command| Some(&command.request_id), |_| None;
}

/// Characters of an order's id that are told where it is too long to be one.
const ORDER_ID_CHARS_TOLD: usize = 64;

/// What can be told of a message that is no valid [`Command`], for the answer to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandHead {
    /// The command's name.
    pub op: Option<String>,
    /// Its id, where that is one.
    pub request_id: Option<String>,
    /// The caller's id of the order that it is about, or the begin of it.
    pub client_order_id: Option<String>,
    /// The venue that it names.
    pub venue: Option<String>,
}

impl CommandHead {
    /// Reads what there is of it, also where other fields are wrong.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let Ok(Value::Object(fields)) = serde_json::from_str(text) else { return Self::default() };
        let text = |fields: &Map<String, Value>, name: &str| {
            fields.get(name).and_then(Value::as_str).map(str::to_owned)
        };
        let order = fields.get("order").and_then(Value::as_object);
        let order_id = order.and_then(|order| text(order, "client_order_id"));
        let order_id = order_id.or_else(|| text(&fields, "client_order_id"));
        Self {
            op: text(&fields, "op"),
            request_id: text(&fields, "request_id")
                .filter(|id| RequestId::try_from(id.clone()).is_ok()),
            client_order_id: order_id.map(|id| id.chars().take(ORDER_ID_CHARS_TOLD).collect()),
            venue: text(&fields, "venue"),
        }
    }
}
