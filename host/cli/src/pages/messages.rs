//! `docs/reference/messages.md`: every message between an engine and its clients, from its schema.

use serde_json::{Map, Value};

use super::cell;

const START: &str = "\
# Messages of the engine

A client and the engine exchange these messages over a WebSocket. Each message is one JSON object. The field `op` \
names a command, and the field `event` names an event. The engine refuses a command with an unknown field. A client \
must ignore an unknown field of an event.

The same in a form for programs is in [ipc.schema.json](../../schemas/ipc.schema.json). \
[ipc.md](../../schemas/ipc.md) shows a whole session.
";

/// Prices, amounts and the like; they are the same type everywhere.
const TYPES: &str = "/$defs/";

/// A kind of message: its form in the schema, the field with its name, and what readers are told.
const KINDS: [(&str, &str, &str, &str); 2] = [
    ("Command", "op", "Commands", "A client sends these messages to the engine."),
    ("Event", "event", "Events", "The engine sends these messages to its clients."),
];

/// The page.
pub(super) fn page(schema: &Value) -> String {
    let mut text = String::from(START);
    for (form, tag, title, who) in KINDS {
        text.push_str(&format!("\n## {title}\n\n{who}\n"));
        for message in list(&schema["$defs"][form]["oneOf"]) {
            let name = message["properties"][tag]["const"].as_str().unwrap_or_default();
            text.push_str(&format!("\n### {name}\n\n{}\n", cell(described(message))));
            fields(message, tag, &mut text);
        }
    }
    text.push_str("\n## Types\n\nFields of messages have these types.\n");
    let types = schema["$defs"].as_object().into_iter().flatten();
    for (name, form) in types.filter(|(name, _)| !KINDS.iter().any(|kind| kind.0 == *name)) {
        text.push_str(&format!("\n### Type {name}\n\n{}\n", cell(described(form))));
        type_of(form, &mut text);
    }
    text
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn described(form: &Value) -> &str {
    form["description"].as_str().unwrap_or_default()
}

/// The table of the fields of an object, if it has any besides the one with its name.
fn fields(form: &Value, tag: &str, text: &mut String) {
    let none = Map::new();
    let properties = form["properties"].as_object().unwrap_or(&none);
    if properties.keys().all(|name| name == tag) {
        return;
    }
    let required = list(&form["required"]);
    text.push_str("\n| field | type | required | meaning |\n|---|---|---|---|\n");
    for (name, field) in properties.iter().filter(|(name, _)| *name != tag) {
        let is_required = required.iter().any(|one| one == name);
        let mut meaning = cell(described(field));
        if let Some(default) = field.get("default").filter(|default| !default.is_null()) {
            meaning.push_str(&format!(" Default: `{default}`."));
        }
        text.push_str(&format!(
            "| `{name}` | {} | {} | {} |\n",
            shape(field),
            if is_required { "yes" } else { "no" },
            meaning.trim()
        ));
    }
}

/// What a type is: its fields, its values, or how it is written.
fn type_of(form: &Value, text: &mut String) {
    if form.get("properties").is_some() {
        return fields(form, "", text);
    }
    let values = list(&form["oneOf"]);
    if !values.is_empty() && values.iter().all(|value| value["const"].is_string()) {
        text.push_str("\n| value | meaning |\n|---|---|\n");
        for value in values {
            let name = value["const"].as_str().unwrap_or_default();
            text.push_str(&format!("| `{name}` | {} |\n", cell(described(value))));
        }
        return;
    }
    let mut said = format!("It is written as: {}", shape(form));
    if let Some(pattern) = form["pattern"].as_str() {
        said.push_str(&format!(" that fits `{pattern}`"));
    }
    let bounds = [("minLength", "minimum"), ("maxLength", "maximum")];
    for (of_text, of_number) in bounds {
        if let Some(bound) = form[of_text].as_u64() {
            said.push_str(&format!(", {of_number} {bound} characters"));
        }
    }
    text.push_str(&format!("\n{said}.\n"));
}

/// The type of a field in words.
fn shape(form: &Value) -> String {
    if let Some(name) = form["$ref"].as_str().and_then(|to| to.rsplit(TYPES).next()) {
        return format!("[{name}](#type-{})", name.to_lowercase());
    }
    if let Some(value) = form.get("const") {
        return format!("`{value}`");
    }
    for choices in ["anyOf", "oneOf"] {
        let choices = list(&form[choices]);
        if !choices.is_empty() {
            return choices.iter().map(shape).collect::<Vec<_>>().join(" or ");
        }
    }
    let values = list(&form["enum"]);
    if !values.is_empty() {
        return values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(" or ");
    }
    match &form["type"] {
        Value::String(kind) => word(kind, form),
        Value::Array(kinds) => {
            let kinds = kinds.iter().filter_map(Value::as_str).map(|kind| word(kind, form));
            kinds.collect::<Vec<_>>().join(" or ")
        }
        _ => "any value".to_owned(),
    }
}

fn word(kind: &str, form: &Value) -> String {
    match kind {
        "string" => "text".to_owned(),
        "integer" => "whole number".to_owned(),
        "boolean" => "true or false".to_owned(),
        "array" => match form.get("items") {
            Some(items) => format!("list of {}", shape(items)),
            None => "list".to_owned(),
        },
        "object" => match form.get("additionalProperties").filter(|of| of.is_object()) {
            Some(of) => format!("object with values of {} by name", shape(of)),
            None => "object".to_owned(),
        },
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_message_and_every_type_is_on_the_page() {
        let schema = ipc::schema::messages();
        let page = page(&schema);
        let mut messages = 0;
        for (form, tag, ..) in KINDS {
            for message in list(&schema["$defs"][form]["oneOf"]) {
                let name = message["properties"][tag]["const"].as_str();
                let name = name.unwrap_or_else(|| panic!("a {form} without a name: {message}"));
                assert!(page.contains(&format!("\n### {name}\n\n")), "{name}");
                messages += 1;
            }
        }
        assert!(messages > 60, "{messages}");
        for name in schema["$defs"].as_object().into_iter().flatten().map(|(name, _)| name) {
            let is_kind = KINDS.iter().any(|kind| kind.0 == name);
            assert!(is_kind || page.contains(&format!("\n### Type {name}\n")), "{name}");
        }
        assert!(!page.contains("any value"), "a field has a form that this page does not know");
    }

    #[test]
    fn types_are_told_in_words() {
        let told = |form: Value| shape(&form);
        assert_eq!(told(json!({"type": ["string", "null"]})), "text or null");
        assert_eq!(told(json!({"$ref": "#/$defs/Secret"})), "[Secret](#type-secret)");
        assert_eq!(
            told(json!({"type": "array", "items": {"type": "integer"}})),
            "list of whole number"
        );
        let nested = json!({"type": "object", "additionalProperties": {"$ref": "#/$defs/A"}});
        assert_eq!(told(nested), "object with values of [A](#type-a) by name");
        assert_eq!(
            told(json!({"anyOf": [{"type": "boolean"}, {"const": "max"}]})),
            "true or false or `\"max\"`"
        );
    }
}
