//! From the text of a message to a command, or to the event that refuses it (specification 4, P15, P62).

use std::borrow::Cow;

use domain::{Origin, ReasonCode, Rejection, TsNanos};
use ipc::{Command, CommandHead, Event, error_code};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

use crate::limits::JSON_DEPTH_MAX;
use crate::present::orders::{of_command, rejected};
use crate::present::session::error;

/// Commands about one order: an error in one is a rejection of the order.
const ORDER_COMMANDS: [&str; 3] = ["SubmitOrder", "ModifyOrder", "CancelOrder"];

/// Characters of the parser's words; the names of all commands fit.
const WHY_CHARS_MAX: usize = 480;

/// Why a message is no command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoCommand {
    head: CommandHead,
    why: String,
    /// The field with a value of a wrong type or kind, in a command about one order.
    field: Option<String>,
}

/// Reads a command.
pub(crate) fn decode(text: &str) -> Result<Command, Box<NoCommand>> {
    if is_deeper_than(text, JSON_DEPTH_MAX) {
        let why = format!("the JSON is nested deeper than {JSON_DEPTH_MAX}");
        return Err(Box::new(NoCommand { head: CommandHead::default(), why, field: None }));
    }
    serde_json::from_str(text).map_err(|error| {
        let head = CommandHead::read(text);
        let field = head.op.as_deref().and_then(|op| wrong_field(op, text));
        Box::new(NoCommand { head, why: why(&error), field })
    })
}

/// The field of a command that has a value of a wrong type or kind. The parser of tagged messages does not
/// say it.
fn wrong_field(op: &str, text: &str) -> Option<String> {
    macro_rules! field_of {
        ($($name:ident)*) => {
            match op {
                $(stringify!($name) => wrong_field_of::<ipc::$name>,)*
                _ => return None,
            }
        };
    }
    let field_of = field_of!(
        Hello Ping SetSecondPassword ForgetSecondPassword SubmitOrder ModifyOrder CancelOrder
        CancelAllOrders GetOrderList LoadReplayData StartEngine StopEngine SetReplaySpeed GetSession
        Subscribe Unsubscribe GetBoard EvictLru RequestVenueLogin GetVenueState GetBuyingPower
        GetPositions Shutdown SettleOrder GetStrategyPositions AdjustStrategyPosition OpenConsole
        SignOut GetDataCatalog GetStrategies GetStrategyParameters GetInstrument GetHistory GetRuns
        OpenReport
    );
    let mut command: Value = serde_json::from_str(text).ok()?;
    command.as_object_mut()?.remove("op");
    field_of(command)
}

fn wrong_field_of<T: DeserializeOwned>(command: Value) -> Option<String> {
    let error = serde_path_to_error::deserialize::<_, T>(command).err()?;
    error.path().iter().rev().find_map(|segment| match segment {
        Segment::Map { key } => Some(key.clone()),
        _ => None,
    })
}

/// The parser's words. A value that it found is not repeated: it may be a password.
fn why(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let value = text.find("invalid type: ").or_else(|| text.find("invalid value: "));
    let plain = match (value, text.find(", expected ")) {
        (Some(from), Some(to)) if from < to => {
            format!("{}wrong type or value{}", &text[..from], &text[to..])
        }
        _ => text,
    };
    plain.chars().take(WHY_CHARS_MAX).collect()
}

impl NoCommand {
    /// The event for the sender, at a time of the session, about an order at its venue.
    pub(crate) fn event(
        &self,
        now: TsNanos,
        venue: &'static str,
        origin: Option<Origin>,
    ) -> Event<'_> {
        let request_id = self.head.request_id.as_deref();
        let is_of_order = self.head.op.as_deref().is_some_and(|op| ORDER_COMMANDS.contains(&op));
        if let (true, Some(id)) = (is_of_order, self.head.client_order_id.as_deref()) {
            let text = format!("{}: {}", self.field().as_deref().unwrap_or("ORDER"), self.why);
            let rejection = Rejection::new(ReasonCode::ValidationError, text);
            let context = of_command(request_id, Some(venue), origin);
            return rejected(Some(id), Cow::Owned(rejection), now, context);
        }
        error(request_id, error_code::VALIDATION_ERROR, self.message(), None)
    }

    /// The venue that the message names.
    pub(crate) fn venue(&self) -> Option<&str> {
        self.head.venue.as_deref()
    }

    /// The field that is wrong, where it is known, and the parser's words.
    pub(crate) fn message(&self) -> String {
        match self.field() {
            Some(field) => format!("{field}: {}", self.why),
            None => self.why.clone(),
        }
    }

    /// The field that is wrong, in capitals; none where the parser names none.
    fn field(&self) -> Option<String> {
        let named = ["unknown field `", "missing field `", "duplicate field `"]
            .iter()
            .find_map(|start| self.why.split_once(start)?.1.split_once('`'));
        let name = named.map(|(name, _)| name).or(self.field.as_deref())?;
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_plain.then(|| name.to_ascii_uppercase())
    }
}

/// Whether objects and arrays of a JSON text are nested deeper than `most`.
fn is_deeper_than(text: &str, most: usize) -> bool {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => {
                depth += 1;
                if depth > most {
                    return true;
                }
            }
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Value {
        let now = TsNanos::from_nanos(7_000_000);
        let wrong = decode(text).unwrap_err();
        serde_json::to_value(wrong.event(now, "replay", Some(Origin::Client))).unwrap()
    }

    #[test]
    fn deep_is_what_is_nested_not_what_is_text() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(!is_deeper_than(&nested(32), 32));
        assert!(is_deeper_than(&nested(33), 32));
        assert!(!is_deeper_than(&format!("\"{}\\\"{}\"", nested(40), "[".repeat(40)), 32));
        let ping = |value: &str| format!(r#"{{"op":"Ping","request_id":{value}}}"#);
        assert!(
            refused(&ping(&nested(40)))["message"].as_str().unwrap().contains("deeper than 32")
        );
    }

    /// P124, P125: what is wrong in a person's decision names its field, and no order is rejected by it.
    #[test]
    fn p124_p125_a_wrong_decision_is_an_error_that_names_the_field() {
        let settle = |fields: &str| {
            refused(&format!(
                r#"{{"op":"SettleOrder","request_id":"r","client_order_id":"c"{fields}}}"#
            ))
        };
        let adjust = |quantity: &str, price: &str| {
            refused(&format!(
                r#"{{"op":"AdjustStrategyPosition","request_id":"r","strategy_id":"s","instrument_id":"7203.TSE",
                    "quantity":{quantity},"average_price":{price},"why":"split"}}"#
            ))
        };
        for (refused, field) in [
            (settle(r#","origin":"strategy""#), "VENUE_ORDER_ID: "),
            (settle(r#","origin":"machine","venue_order_id":null"#), "ORIGIN: "),
            (settle(r#","venue_order_id":null"#), "ORIGIN: "),
            (settle(r#","origin":"person","venue_order_id":12345"#), "VENUE_ORDER_ID: "),
            (adjust("100", "\"2650\""), "QUANTITY: "),
            (adjust("\"-100\"", "\"2650\""), "QUANTITY: "),
            (adjust("\"100\"", "\"2650.00001\""), "AVERAGE_PRICE: "),
        ] {
            assert_eq!(
                (&refused["event"], &refused["code"]),
                (&"Error".into(), &"validation_error".into())
            );
            let message = refused["message"].as_str().unwrap();
            assert!(message.starts_with(field), "{field}: {message}");
        }
    }

    #[test]
    fn wrong_orders_are_rejected_and_other_commands_are_errors() {
        let wrong = r#"{"op":"SubmitOrder","request_id":"r","venue":"replay",
            "order":{"client_order_id":"c","quantity":"1","speed":2}}"#;
        let rejected = refused(wrong);
        assert_eq!(rejected["event"], "OrderRejected");
        assert_eq!(rejected["client_order_id"], "c");
        assert_eq!(rejected["request_id"], "r");
        assert_eq!((&rejected["ts_event_ms"], &rejected["origin"]), (&7.into(), &"person".into()));
        assert!(rejected["reason_text"].as_str().unwrap().starts_with("SPEED: unknown field"));
        for (wrong, field) in [
            (r#""order_type":"market""#, "ORDER_TYPE"),
            (r#""order_side":"buy""#, "ORDER_SIDE"),
            (r#""order_side":1"#, "ORDER_SIDE"),
            (r#""time_in_force":"NEVER""#, "TIME_IN_FORCE"),
            (r#""quantity":100"#, "QUANTITY"),
            (r#""post_only":"no""#, "POST_ONLY"),
            (r#""tags":["a=b",1]"#, "TAGS"),
            (r#""price":{}"#, "PRICE"),
        ] {
            let (name, _) = wrong.split_once(':').unwrap();
            let right: String = [
                r#""instrument_id":"7203.TSE""#,
                r#""order_side":"BUY""#,
                r#""order_type":"MARKET""#,
                r#""quantity":"100""#,
                r#""time_in_force":"DAY""#,
                r#""post_only":false"#,
                r#""reduce_only":false"#,
            ]
            .iter()
            .filter(|field| !field.starts_with(&format!("{name}:")))
            .map(|field| format!(",{field}"))
            .collect();
            let rejected = refused(&format!(
                r#"{{"op":"SubmitOrder","request_id":"r","venue":"replay","order":{{"client_order_id":"c",{wrong}{right}}}}}"#
            ));
            let text = rejected["reason_text"].as_str().unwrap();
            assert!(text.starts_with(&format!("{field}: ")), "{wrong}: {text}");
        }
        let change = r#"{"op":"ModifyOrder","request_id":"r","venue":"replay","client_order_id":"c",
            "change":{"new_price":1}}"#;
        assert!(refused(change)["reason_text"].as_str().unwrap().starts_with("NEW_PRICE: "));
        let error = refused(r#"{"op":"GetSession","request_id":"r","more":1}"#);
        assert_eq!(
            (&error["event"], &error["code"]),
            (&"Error".into(), &"validation_error".into())
        );
        assert_eq!(error["request_id"], "r");
        assert_eq!(refused("hello")["event"], "Error");
        let secret = r#"{"op":"SetSecondPassword","request_id":"r","value":1234}"#;
        assert!(!refused(secret).to_string().contains("1234"));
        let number = r#"{"op":"StopEngine","request_id":"r","strategy_id":1234}"#;
        let number = refused(number).to_string();
        assert!(number.contains("wrong type or value") && !number.contains("1234"), "{number}");
    }
}
