//! JSON schemas (draft 2020-12) of the messages and of the lines of the logs, made from their types.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::{
    AuditLine, Command, CommandLine, Event, EventLine, NarrativeRow, SCHEMA_MAJOR, SCHEMA_MINOR,
};

/// Every message of a connection, one object a frame: `$defs` has a form for what a client sends, `Command`,
/// and one for what the engine sends, `Event`. Commands with fields that are none are refused; clients are to
/// ignore fields of events that they do not know, so these forms take more than they name.
#[must_use]
pub fn messages() -> Value {
    let read = SchemaSettings::draft2020_12().for_deserialize();
    let commands = read.into_generator().into_root_schema_for::<Command>().to_value();
    let mut forms = Map::new();
    take_root(&mut forms, "Command", commands);
    let mut events = written::<Event<'_>>();
    open(&mut events);
    take_root(&mut forms, "Event", events);
    json!({
        "$schema": DRAFT,
        "title": format!("Messages between an engine and its clients, version {SCHEMA_MAJOR}.{SCHEMA_MINOR}"),
        "oneOf": [{ "$ref": "#/$defs/Command" }, { "$ref": "#/$defs/Event" }],
        "$defs": forms,
    })
}

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Puts the schema of a type beside others, and those that it uses. One that is there in another form gets
/// the root's name before its own.
fn take_root(forms: &mut Map<String, Value>, root: &str, mut schema: Value) {
    let used = schema.as_object_mut().and_then(|schema| {
        schema.remove("$schema");
        schema.remove("$defs")
    });
    let Some(Value::Object(mut used)) = used else { return };
    let others: Vec<String> = used
        .keys()
        .filter(|name| forms.get(*name).is_some_and(|form| *form != used[*name]))
        .cloned()
        .collect();
    for name in &others {
        let (from, to) = (format!("#/$defs/{name}"), format!("#/$defs/{root}{name}"));
        refer(&mut schema, &from, &to);
        used.values_mut().for_each(|form| refer(form, &from, &to));
    }
    for (name, form) in used {
        let name = if others.contains(&name) { format!("{root}{name}") } else { name };
        forms.insert(name, form);
    }
    forms.insert(root.to_owned(), schema);
}

/// Lets a schema name another one in place of one.
fn refer(schema: &mut Value, from: &str, to: &str) {
    match schema {
        Value::String(text) if text == from => to.clone_into(text),
        Value::Object(fields) => fields.values_mut().for_each(|field| refer(field, from, to)),
        Value::Array(items) => items.iter_mut().for_each(|item| refer(item, from, to)),
        _ => {}
    }
}

/// Lets every object of a schema have more fields.
fn open(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.retain(|name, value| name != "additionalProperties" || *value != false);
            fields.values_mut().for_each(open);
        }
        Value::Array(items) => items.iter_mut().for_each(open),
        _ => {}
    }
}

/// One line of `events.jsonl`.
#[must_use]
pub fn event_line() -> Value {
    written::<EventLine<'_>>()
}

/// One line of the audit log.
#[must_use]
pub fn audit_line() -> Value {
    written::<AuditLine<'_>>()
}

/// One line of `commands.jsonl`.
#[must_use]
pub fn command_line() -> Value {
    written::<CommandLine>()
}

/// `narrative.json`.
#[must_use]
pub fn narrative() -> Value {
    written::<Vec<NarrativeRow<'_>>>()
}

/// The schema of what is written of a type.
pub fn written<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<T>().to_value()
}
