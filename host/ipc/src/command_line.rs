//! Lines of a run's `commands.jsonl`: what clients did to a replay and where it was then, so that
//! `kumiki replay run --commands` can do the same again (specification 4, P79).

use domain::{
    InstrumentIx, OrderCommand, OrderModify, OrderRequest, OrderSide, Rejection, TsNanos,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command_mapping::instrument;
use crate::{OrderModifyChange, OrderNames, SubmitOrderRequest};

/// One command of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandLine {
    /// Trades or bars that the strategy had seen.
    pub rows_done: u64,
    /// What came next.
    pub at: CommandPosition,
    /// Virtual time in milliseconds since 1970 UTC; for people, the rows decide.
    pub ts_event_ms: u64,
    /// What was done.
    pub command: LoggedCommand,
}

/// What comes next in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandPosition {
    /// The end of a day.
    DayEnd,
    /// A trade or a bar.
    Row,
}

/// A command as the exchange took it: texts are exact numbers, and numbers of the venue are ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", deny_unknown_fields)]
pub enum LoggedCommand {
    /// An order was sent.
    SubmitOrder {
        /// The order.
        order: Box<SubmitOrderRequest>,
    },
    /// An order was changed.
    ModifyOrder {
        /// The caller's id of the order.
        client_order_id: String,
        /// The fields that change.
        change: OrderModifyChange,
    },
    /// An order was cancelled.
    CancelOrder {
        /// The caller's id of the order.
        client_order_id: String,
    },
    /// Many orders were cancelled.
    CancelAllOrders {
        /// Only orders of this instrument (`7203.TSE`); null for all.
        instrument_id: Option<String>,
        /// Only orders of this side; null for both.
        order_side: Option<OrderSide>,
    },
    /// The run was ended.
    StopEngine,
}

impl LoggedCommand {
    /// A command as it is kept; none is the end of the run. `name` gives an instrument's id.
    pub fn new<'n>(command: Option<&OrderCommand>, name: impl Fn(InstrumentIx) -> &'n str) -> Self {
        match command {
            None => Self::StopEngine,
            Some(OrderCommand::Submit(request)) => {
                let order = SubmitOrderRequest::of_request(request, name(request.instrument));
                Self::SubmitOrder { order: Box::new(order) }
            }
            Some(OrderCommand::Modify { client_order_id, change }) => Self::ModifyOrder {
                client_order_id: client_order_id.to_string(),
                change: OrderModifyChange::of_modify(change),
            },
            Some(OrderCommand::Cancel { client_order_id }) => {
                Self::CancelOrder { client_order_id: client_order_id.to_string() }
            }
            Some(OrderCommand::CancelAll { instrument, side }) => Self::CancelAllOrders {
                instrument_id: instrument.map(|instrument| name(instrument).to_owned()),
                order_side: *side,
            },
        }
    }

    /// The command for the exchange; none for the end of the run.
    ///
    /// # Errors
    /// A [`Rejection`] that names the field which is none of an order.
    pub fn order_command(
        &self,
        names: &impl OrderNames,
    ) -> Result<Option<OrderCommand>, Rejection> {
        Ok(Some(match self {
            Self::StopEngine => return Ok(None),
            Self::SubmitOrder { order } => {
                OrderCommand::Submit(order.to_request(instrument(&order.instrument_id, names)?)?)
            }
            Self::ModifyOrder { client_order_id, change } => OrderCommand::Modify {
                client_order_id: client_order_id.as_str().into(),
                change: change.to_modify()?,
            },
            Self::CancelOrder { client_order_id } => {
                OrderCommand::Cancel { client_order_id: client_order_id.as_str().into() }
            }
            Self::CancelAllOrders { instrument_id, order_side } => {
                let only = instrument_id.as_deref().map(|id| instrument(id, names)).transpose()?;
                OrderCommand::CancelAll { instrument: only, side: *order_side }
            }
        }))
    }
}

impl SubmitOrderRequest {
    /// An order of the host as a client would send it.
    #[must_use]
    pub fn of_request(request: &OrderRequest, instrument_id: &str) -> Self {
        Self {
            client_order_id: request.client_order_id.to_string(),
            instrument_id: instrument_id.to_owned(),
            order_side: request.side,
            order_type: request.order_type,
            quantity: request.quantity.to_string(),
            price: request.price.map(|price| price.to_string()),
            trigger_price: request.trigger_price.map(|price| price.to_string()),
            trigger_type: request.trigger_type.map(|trigger| trigger.as_str().to_owned()),
            time_in_force: request.time_in_force,
            expire_time_ns: request.expire_time.map(TsNanos::nanos),
            post_only: request.post_only,
            reduce_only: request.reduce_only,
            tags: Some(request.tags.clone()).filter(|tags| !tags.is_empty()),
        }
    }
}

impl OrderModifyChange {
    /// A change of the host as a client would send it.
    #[must_use]
    pub fn of_modify(change: &OrderModify) -> Self {
        Self {
            new_quantity: change.quantity.map(|quantity| quantity.to_string()),
            new_price: change.price.map(|price| price.to_string()),
            new_trigger_price: change.trigger_price.map(|price| price.to_string()),
            new_expire_time_ns: change.expire_time.map(TsNanos::nanos),
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::{Price, Quantity, ShortText};

    use super::*;

    struct OneInstrument;

    impl OrderNames for OneInstrument {
        fn instrument(&self, instrument_id: &str) -> Option<InstrumentIx> {
            (instrument_id == "7203.TSE").then_some(InstrumentIx(0))
        }

        fn client_order_id(&self, _: &str) -> Result<ShortText, Rejection> {
            unreachable!("lines name orders by the caller's id")
        }
    }

    #[test]
    fn a_line_does_the_same_again() {
        let id: ShortText = "O-1".into();
        let order = r#"{"client_order_id":"O-1","instrument_id":"7203.TSE","order_side":"SELL",
            "order_type":"STOP_LIMIT","quantity":"300","price":"1674.5","trigger_price":"1680",
            "trigger_type":"LAST","time_in_force":"GTD","expire_time_ns":1736121600000000000,
            "post_only":false,"reduce_only":true,"tags":["cash_margin=cash"]}"#;
        let order: SubmitOrderRequest = serde_json::from_str(order).unwrap();
        let change = OrderModify {
            quantity: Some(Quantity::new(200)),
            price: Some(Price::from_units(16_741_000)),
            ..OrderModify::default()
        };
        let only = Some(InstrumentIx(0));
        for command in [
            Some(OrderCommand::Submit(order.to_request(InstrumentIx(0)).unwrap())),
            Some(OrderCommand::Modify { client_order_id: id.clone(), change }),
            Some(OrderCommand::Cancel { client_order_id: id }),
            Some(OrderCommand::CancelAll { instrument: only, side: Some(OrderSide::Buy) }),
            Some(OrderCommand::CancelAll { instrument: None, side: None }),
            None,
        ] {
            let line = CommandLine {
                rows_done: 7,
                at: CommandPosition::Row,
                ts_event_ms: 1_736_121_600_000,
                command: LoggedCommand::new(command.as_ref(), |_| "7203.TSE"),
            };
            let text = serde_json::to_string(&line).unwrap();
            let read: CommandLine = serde_json::from_str(&text).unwrap();
            assert_eq!(read, line, "{text}");
            assert_eq!(read.command.order_command(&OneInstrument), Ok(command), "{text}");
        }
    }

    #[test]
    fn a_line_of_something_else_is_refused() {
        for wrong in [
            r#"{"rows_done":7,"at":"row","ts_event_ms":1,"command":{"op":"Fly"}}"#,
            r#"{"rows_done":7,"at":"later","ts_event_ms":1,"command":{"op":"StopEngine"}}"#,
            r#"{"rows_done":7,"at":"row","ts_event_ms":1,"command":{"op":"StopEngine"},"more":1}"#,
        ] {
            assert!(serde_json::from_str::<CommandLine>(wrong).is_err(), "{wrong}");
        }
    }
}
