//! JSON schemas (draft 2020-12) of the messages and of the lines of the logs, made from their types.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::{AuditLine, Command, CommandLine, Event, EventLine, NarrativeRow};

/// What a client sends over a connection, one object a frame.
#[must_use]
pub fn commands() -> Value {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    settings.into_generator().into_root_schema_for::<Command>().to_value()
}

/// What the engine sends over a connection, one object a frame.
#[must_use]
pub fn events() -> Value {
    written::<Event<'_>>()
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
