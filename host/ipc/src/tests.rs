//! Every message and line in its golden form: read, written again, equal to the byte.

use std::collections::BTreeSet;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::*;

/// Commands without a secret, one of each at least.
const COMMANDS: &str = include_str!("../tests/golden/commands.jsonl");
/// Events of a connection, one of each at least.
const EVENTS: &str = include_str!("../tests/golden/events.jsonl");
/// Lines of `events.jsonl` as a replay writes them, one of each.
const EVENT_LINES: &str = include_str!("../tests/golden/event_lines.jsonl");
/// Lines of audit logs: those of a replay, and those with every field.
const AUDIT_LINES: &str = include_str!("../tests/golden/audit_lines.jsonl");
/// Commands that can only be read.
const SECRET_COMMANDS: [&str; 1] =
    [r#"{"op":"SetSecondPassword","request_id":"r-1","value":"hunter2"}"#];

/// Reads each line and writes it again.
fn round_trips<T: Serialize + DeserializeOwned>(golden: &str) -> Vec<T> {
    let read = |line: &str| {
        let value: T = serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"));
        assert_eq!(serde_json::to_string(&value).unwrap(), line);
        value
    };
    golden.lines().map(read).collect()
}

/// The names of the kinds that a schema lists, by its tag.
fn kinds(schema: &Value, tag: &str) -> BTreeSet<String> {
    let variants = schema["oneOf"].as_array().unwrap();
    let name = |variant: &Value| variant["properties"][tag]["const"].as_str().unwrap().to_owned();
    variants.iter().map(name).collect()
}

fn names<'a>(lines: impl Iterator<Item = &'a str>, tag: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        value[tag].as_str().unwrap().to_owned()
    };
    lines.map(name).collect()
}

#[test]
fn commands_round_trip_and_each_is_here() {
    round_trips::<Command>(COMMANDS);
    let lines = COMMANDS.lines().chain(SECRET_COMMANDS);
    assert_eq!(names(lines, "op"), kinds(&schema::messages()["$defs"]["Command"], "op"));
}

#[test]
fn events_round_trip_and_each_is_here() {
    round_trips::<Event<'_>>(EVENTS);
    assert_eq!(
        names(EVENTS.lines(), "event"),
        kinds(&schema::messages()["$defs"]["Event"], "event")
    );
}

#[test]
fn lines_of_logs_round_trip_and_each_is_here() {
    round_trips::<EventLine<'_>>(EVENT_LINES);
    assert_eq!(names(EVENT_LINES.lines(), "event"), kinds(&schema::event_line(), "event"));
    round_trips::<AuditLine<'_>>(AUDIT_LINES);
    assert_eq!(names(AUDIT_LINES.lines(), "phase"), kinds(&schema::audit_line(), "phase"));
    round_trips::<NarrativeRow<'_>>(
        r#"{"ts_event_ns":1735862400000000000,"client_order_id":null,"title":"寄り付き","body":"a \"dip\""}"#,
    );
}

/// The line with a field more in the object at `path`.
fn with_more(line: &str, path: &str) -> Option<String> {
    let mut value: Value = serde_json::from_str(line).unwrap();
    value.pointer_mut(path)?.as_object_mut()?.insert("unheard_of".to_owned(), 1.into());
    Some(value.to_string())
}

#[test]
fn unknown_fields_of_commands_are_refused_at_every_depth() {
    let mut deeper = 0;
    for line in COMMANDS.lines().chain(SECRET_COMMANDS) {
        for path in ["", "/order", "/change", "/filter", "/config", "/config/execution"] {
            let Some(more) = with_more(line, path) else { continue };
            let refusal = serde_json::from_str::<Command>(&more).unwrap_err().to_string();
            assert!(refusal.contains("unknown field `unheard_of`"), "{refusal}: {more}");
            deeper += u32::from(!path.is_empty());
        }
    }
    assert!(deeper >= 5);
}

#[test]
fn commands_are_refused_that_say_too_much_or_too_little() {
    for (wrong, why) in [
        (r#"{"op":"Fly","request_id":"r"}"#, "unknown variant `Fly`"),
        (r#"{"request_id":"r"}"#, "missing field `op`"),
        (r#"{"op":"GetSession"}"#, "missing field `request_id`"),
        (r#"{"op":"GetSession","request_id":7}"#, "invalid type"),
        (r#"{"op":"GetSession","request_id":""}"#, "1 to 64 characters"),
        (r#"{"op":"GetSession","request_id":"r","request_id":"s"}"#, "duplicate field"),
        (r#"{"op":"SetReplaySpeed","request_id":"r","multiplier":0}"#, "from 1 to 1000000"),
        (r#"{"op":"SetReplaySpeed","request_id":"r","multiplier":1000001}"#, "from 1 to 1000000"),
        (r#"{"op":"SetReplaySpeed","request_id":"r","multiplier":1.5}"#, "from 1 to 1000000"),
        (r#"{"op":"SetReplaySpeed","request_id":"r","multiplier":"fast"}"#, "\"max\""),
    ] {
        let refusal = serde_json::from_str::<Command>(wrong).unwrap_err().to_string();
        assert!(refusal.contains(why), "{refusal}: {wrong}");
    }
    let long = "あ".repeat(64);
    let session = |id: &str| format!(r#"{{"op":"GetSession","request_id":"{id}"}}"#);
    assert!(serde_json::from_str::<Command>(&session(&long)).is_ok());
    assert!(serde_json::from_str::<Command>(&session(&(long + "あ"))).is_err());
}

#[test]
fn optional_fields_may_be_null_or_missing() {
    let short = r#"{"op":"SubmitOrder","request_id":"r","venue":"replay","order":{"client_order_id":"c","instrument_id":"7203.TSE","order_side":"BUY","order_type":"MARKET","quantity":"100","time_in_force":"DAY","post_only":false,"reduce_only":false}}"#;
    let Command::SubmitOrder(submit) = serde_json::from_str(short).unwrap() else {
        panic!("another command");
    };
    assert_eq!(submit.order.tags, None);
    let long = serde_json::to_string(&Command::SubmitOrder(submit.clone())).unwrap();
    assert!(long.contains(r#""price":null"#));
    let Command::SubmitOrder(again) = serde_json::from_str(&long).unwrap() else {
        panic!("another command");
    };
    assert_eq!(again, submit);
    // The first golden key: see `domain::request_key`.
    assert_eq!(format!("{:016x}", submit.order.request_key()), "a90cb77675134622");
}

#[test]
fn secrets_are_masked_and_cannot_be_written() {
    for line in SECRET_COMMANDS {
        let command: Command = serde_json::from_str(line).unwrap();
        let shown = format!("{command:?} {command:#?}");
        assert!(shown.contains("[REDACTED]") && !shown.contains("hunter2"), "{shown}");
        assert!(serde_json::to_string(&command).is_err(), "{line}");
    }
    let Ok(Command::SetSecondPassword(command)) = serde_json::from_str(SECRET_COMMANDS[0]) else {
        panic!("another command");
    };
    assert_eq!(
        format!("{command:?}"),
        "SetSecondPassword { request_id: RequestId(\"r-1\"), value: [REDACTED] }"
    );
    assert_eq!(command.value.expose(), "hunter2");
}

#[test]
fn what_is_no_command_still_tells_whom_to_answer() {
    let head = CommandHead::read;
    let submit =
        r#"{"op":"SubmitOrder","request_id":"r","order":{"client_order_id":"c","more":1}}"#;
    assert!(serde_json::from_str::<Command>(submit).is_err());
    assert_eq!(head(submit).client_order_id.as_deref(), Some("c"));
    assert_eq!(head(submit).request_id.as_deref(), Some("r"));
    let cancel = head(r#"{"op":"CancelOrder","client_order_id":"d","request_id":7}"#);
    assert_eq!((cancel.client_order_id.as_deref(), cancel.request_id), (Some("d"), None));
    assert_eq!(cancel.op.as_deref(), Some("CancelOrder"));
    // What is too long to be an id is not sent back as one.
    let long = "x".repeat(65);
    let cancel = head(&format!(r#"{{"client_order_id":"{long}","request_id":"{long}"}}"#));
    assert_eq!(cancel.client_order_id.as_deref(), Some(&long[..64]));
    assert_eq!(cancel.request_id, None);
    for nothing in [r#"{"more":1}"#, "[]", "{"] {
        assert_eq!(head(nothing), CommandHead::default(), "{nothing}");
    }
}

#[test]
fn events_borrow_their_texts() {
    let id = String::from("O-1");
    let line = EventLine::OrderSubmitted(OrderSubmitted {
        client_order_id: Some(Text::Borrowed(&id)),
        ts_event_ms: 1,
        context: OrderContext::default(),
    });
    let text = serde_json::to_string(&line).unwrap();
    assert_eq!(text, r#"{"event":"OrderSubmitted","client_order_id":"O-1","ts_event_ms":1}"#);
}

#[test]
fn schemas_describe_no_field_twice_and_close_every_object() {
    for schema in
        [schema::event_line(), schema::audit_line(), schema::command_line(), schema::narrative()]
    {
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        let mut objects = Vec::new();
        collect_objects(&schema, &mut objects);
        assert!(!objects.is_empty());
        for object in objects {
            let closed = object.get("additionalProperties").is_some()
                || object.get("unevaluatedProperties").is_some();
            assert!(closed, "{object:#}");
        }
    }
}

/// Every part of a schema that lists properties.
fn collect_objects<'a>(schema: &'a Value, found: &mut Vec<&'a Value>) {
    if schema.get("properties").is_some_and(Value::is_object) {
        found.push(schema);
    }
    match schema {
        Value::Object(parts) => parts.values().for_each(|part| collect_objects(part, found)),
        Value::Array(parts) => parts.iter().for_each(|part| collect_objects(part, found)),
        _ => {}
    }
}

#[test]
fn a_secret_that_is_no_text_is_not_shown() {
    for value in ["4711081", "-4711081", "4711081.5", "[4711081]", r#"{"a":4711081}"#, "true"] {
        let line = format!(r#"{{"op":"SetSecondPassword","request_id":"r-1","value":{value}}}"#);
        let error = serde_json::from_str::<Command>(&line).unwrap_err().to_string();
        assert!(error.contains("a secret must be a text"), "{error}");
        assert!(!error.contains("4711081") && !error.contains("true"), "{error}");
    }
}

/// Commands are closed, events open: a client that checks an event against its form goes on when the engine
/// says more.
#[test]
fn what_a_client_says_is_closed_and_what_it_hears_is_open() {
    fn closed(forms: &Value, form: &Value) -> usize {
        match form {
            Value::Object(fields) => {
                let here = fields.get("additionalProperties") == Some(&Value::Bool(false));
                let used = fields.get("$ref").and_then(Value::as_str);
                let used =
                    used.map_or(0, |name| closed(forms, &forms[name.rsplit('/').next().unwrap()]));
                usize::from(here)
                    + used
                    + fields.values().map(|field| closed(forms, field)).sum::<usize>()
            }
            Value::Array(items) => items.iter().map(|item| closed(forms, item)).sum(),
            _ => 0,
        }
    }
    let messages = schema::messages();
    let forms = &messages["$defs"];
    assert!(
        closed(forms, &forms["Command"]) >= forms["Command"]["oneOf"].as_array().unwrap().len()
    );
    assert_eq!(closed(forms, &forms["Event"]), 0);
    assert_ne!(forms["ExecutionConfig"], forms["EventExecutionConfig"]);
}

/// P124: null lets an order be sent again, so it is not enough to leave the number out; and the form says so.
#[test]
fn p124_whether_the_broker_has_an_order_is_always_said() {
    let told = r#"{"op":"SettleOrder","request_id":"r","client_order_id":"c","origin":"person"}"#;
    let refusal = serde_json::from_str::<Command>(told).unwrap_err().to_string();
    assert!(refusal.contains("missing field `venue_order_id`"), "{refusal}");
    let messages = schema::messages();
    let forms = messages["$defs"]["Command"]["oneOf"].as_array().unwrap();
    let is_it = |form: &&Value| form["properties"]["op"]["const"] == "SettleOrder";
    let form = forms.iter().find(is_it).unwrap();
    let required = form["required"].as_array().unwrap();
    for field in ["op", "origin", "venue_order_id"] {
        assert!(required.contains(&field.into()), "{form:#}");
    }
    assert_eq!(form["properties"]["venue_order_id"]["type"], serde_json::json!(["string", "null"]));
}

/// P93: rows of strategies' orders tell who sent them, all others have the fields that they always had.
#[test]
fn p93_a_row_of_an_order_of_a_strategy_tells_its_strategy() {
    let rows: Vec<Value> = EVENTS
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|event| event["event"] == "OrderListUpdated")
        .flat_map(|event| event["orders"].as_array().unwrap().clone())
        .collect();
    let of_strategy = rows.iter().find(|row| row["strategy_id"] == "live-strategy").unwrap();
    assert_eq!(
        (&of_strategy["origin"], of_strategy.as_object().unwrap().len()),
        (&"strategy".into(), 16)
    );
    assert!(rows.iter().any(|row| row.as_object().unwrap().len() == 14));
}

/// P60: the venue of the local gateway added messages without raising the version; the rule `auction` of trades raised
/// it, and with it the second password left the record of credentials.
#[test]
fn p60_the_version_is_raised_once() {
    assert_eq!((SCHEMA_MAJOR, SCHEMA_MINOR), (1, 4));
}
