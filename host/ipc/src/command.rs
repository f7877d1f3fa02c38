//! What a client may ask for: one JSON object a frame, told apart by `op`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    CancelAllOrders, CancelOrder, EvictLru, ForgetSecondPassword, GetBoard, GetBuyingPower,
    GetOrderList, GetPositions, GetSession, GetVenueState, Hello, LoadReplayData, ModifyOrder,
    RequestId, RequestVenueLogin, SetReplaySpeed, SetSecondPassword, StartEngine, StopEngine,
    SubmitOrder, Subscribe, Unsubscribe,
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
    /// Gives market data up.
    Unsubscribe(Unsubscribe),
    /// Reads a board once.
    GetBoard(GetBoard),
    /// Makes room in a register set.
    EvictLru(EvictLru),
    /// Logs in at a venue.
    RequestVenueLogin(RequestVenueLogin),
    /// Asks where a venue stands.
    GetVenueState(GetVenueState),
    /// Asks for the buying power.
    GetBuyingPower(GetBuyingPower),
    /// Asks for the positions.
    GetPositions(GetPositions),
    /// Ends the engine.
    Shutdown(Shutdown),
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
}

/// What can be told of a message that is no valid [`Command`], for the answer to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct CommandHead {
    /// The command's name.
    #[serde(default)]
    pub op: Option<String>,
    /// Its id.
    #[serde(default)]
    pub request_id: Option<String>,
    /// The order that it is about.
    #[serde(default)]
    pub client_order_id: Option<String>,
    /// The order that it would send.
    #[serde(default)]
    order: Option<OrderHead>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
struct OrderHead {
    #[serde(default)]
    client_order_id: Option<String>,
}

impl CommandHead {
    /// The caller's id of the order that the command is about.
    #[must_use]
    pub fn order_id(&self) -> Option<&str> {
        let inner = self.order.as_ref().and_then(|order| order.client_order_id.as_deref());
        inner.or(self.client_order_id.as_deref())
    }
}
