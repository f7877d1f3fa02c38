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
    /// The first message of a connection.
    #[serde(skip_serializing)]
    Hello(Hello),
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

/// Ends the engine after its last events are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Shutdown {
    /// The `request_id` of the command, 1 to 64 characters (specification 4, P9).
    pub request_id: RequestId,
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
