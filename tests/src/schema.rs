//! Holds a value against a generated JSON schema: the part of the language that our schemas use.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::workspace_root;

/// Holds a file against `schemas/<schema>.schema.json`, each line of it where its name says that it
/// has JSON lines, and tells how many values it has.
///
/// # Panics
/// When it does not fit, or cannot be read.
#[must_use]
pub fn checked_values(path: &Path, schema: &str) -> usize {
    let read = |path: &Path| {
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let parse = |text: &str| -> Value {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    let described = workspace_root().join("schemas").join(format!("{schema}.schema.json"));
    let described = parse(&read(&described));
    let text = read(path);
    let values: Vec<Value> = if path.extension().is_some_and(|ending| ending == "jsonl") {
        text.lines().map(parse).collect()
    } else {
        vec![parse(&text)]
    };
    for value in &values {
        let found = problems(&described, value);
        assert!(found.is_empty(), "{}: {found:?} in {value}", path.display());
    }
    values.len()
}

/// What is wrong with `value`, and where.
///
/// # Panics
/// When the schema says something that this does not know, so that nothing is passed over.
#[must_use]
pub fn problems(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, schema, value, "", &mut found);
    found
}

/// Words of a schema that only explain.
const WORDS: [&str; 7] =
    ["$schema", "$defs", "title", "description", "format", "minimum", "default"];

fn check(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    for (word, rule) in schema.as_object().into_iter().flatten() {
        let mut wrong = |what: String| found.push(format!("{at}: {what}"));
        match word.as_str() {
            "$ref" => {
                let path = rule.as_str().unwrap_or_default().trim_start_matches('#');
                let part = root.pointer(path);
                check(root, part.unwrap_or_else(|| panic!("no {path}")), value, at, found);
            }
            "type" => {
                let kinds = rule.as_array().map_or(std::slice::from_ref(rule), Vec::as_slice);
                if !kinds.iter().any(|kind| is_of(kind, value)) {
                    wrong(format!("{value} is not of type {rule}"));
                }
            }
            "const" if rule != value => wrong(format!("{value} is not {rule}")),
            "enum" if !rule.as_array().is_some_and(|all| all.contains(value)) => {
                wrong(format!("{value} is none of {rule}"));
            }
            "anyOf" | "oneOf" => {
                let is_right = |one: &Value| {
                    let mut found = Vec::new();
                    check(root, one, value, at, &mut found);
                    found.is_empty()
                };
                if !rule.as_array().is_some_and(|all| all.iter().any(is_right)) {
                    wrong(format!("{value} fits none of {rule}"));
                }
            }
            "required" => {
                for name in rule.as_array().into_iter().flatten().filter_map(Value::as_str) {
                    if value.get(name).is_none() {
                        wrong(format!("{name} is missing"));
                    }
                }
            }
            "additionalProperties" => {
                let known = schema.get("properties");
                for (name, part) in value.as_object().into_iter().flatten() {
                    if known.is_some_and(|known| known.get(name).is_some()) {
                        continue;
                    }
                    if rule == &Value::Bool(false) {
                        found.push(format!("{at}: {name} is not described"));
                    } else {
                        check(root, rule, part, &format!("{at}/{name}"), found);
                    }
                }
            }
            "pattern" => {
                if value.as_str().is_some_and(|text| !fits(rule, text)) {
                    wrong(format!("{value} does not fit {rule}"));
                }
            }
            "properties" => {
                for (name, part) in rule.as_object().into_iter().flatten() {
                    if let Some(value) = value.get(name) {
                        check(root, part, value, &format!("{at}/{name}"), found);
                    }
                }
            }
            "items" => {
                for (place, value) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, rule, value, &format!("{at}/{place}"), found);
                }
            }
            "const" | "enum" => {}
            word => assert!(WORDS.contains(&word), "the schema's `{word}` is not known"),
        }
    }
}

/// Whether a text fits a pattern: those of numbers, of dates and of ranges of rows, which are all that there are.
fn fits(pattern: &Value, text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    match pattern.as_str() {
        Some("^[0-9]+$") => digits(text),
        Some("^-?[0-9]+$") => digits(unsigned),
        Some(r"^-?[0-9]+(\.[0-9]{1,4})?$") => match unsigned.split_once('.') {
            Some((whole, fraction)) => digits(whole) && digits(fraction) && fraction.len() <= 4,
            None => digits(unsigned),
        },
        Some("^[0-9]{4}-[0-9]{2}-[0-9]{2}$") => {
            let lengths = text.split('-').map(|part| if digits(part) { part.len() } else { 0 });
            lengths.eq([4, 2, 2])
        }
        Some(r"^[0-9]+\.\.[0-9]+$") => {
            text.split_once("..").is_some_and(|(first, end)| digits(first) && digits(end))
        }
        _ => panic!("the pattern {pattern} is not known"),
    }
}

fn is_of(kind: &Value, value: &Value) -> bool {
    match kind.as_str() {
        Some("null") => value.is_null(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => panic!("the type {kind} is not known"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_deviation_is_found() {
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["days", "end"],
            "properties": {
                "days": { "type": "array", "items": { "$ref": "#/$defs/Day" } },
                "end": { "oneOf": [{ "type": "string", "const": "done" }] },
                "why": { "type": ["string", "null"] },
                "yen": { "type": "string", "pattern": r"^-?[0-9]+(\.[0-9]{1,4})?$" },
                "date": { "type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$" },
                "words": { "type": "object", "additionalProperties": { "type": "string" } },
            },
            "$defs": { "Day": { "type": "object", "required": ["rows"],
                "properties": { "rows": { "type": "integer", "minimum": 0 } } } },
        });
        let right = json!({ "days": [{ "rows": 3 }], "end": "done", "why": null,
            "yen": "-1.05", "date": "2025-01-06", "words": { "F1": "a rule" } });
        assert_eq!(problems(&schema, &right), Vec::<String>::new());
        for (wrong, part) in [
            (json!({ "end": "done" }), "days is missing"),
            (json!({ "days": [], "end": "over" }), "/end: \"over\" fits none"),
            (json!({ "days": [{ "rows": 1 }, {}], "end": "done" }), "/days/1: rows is missing"),
            (json!({ "days": [{ "rows": 1.5 }], "end": "done" }), "/days/0/rows: 1.5"),
            (json!({ "days": [], "end": "done", "why": 3 }), "/why: 3 is not of type"),
            (json!({ "days": [], "end": "done", "more": 3 }), "more is not described"),
            (
                json!({ "days": [], "end": "done", "yen": "1.00001" }),
                "/yen: \"1.00001\" does not fit",
            ),
            (json!({ "days": [], "end": "done", "yen": "1." }), "does not fit"),
            (json!({ "days": [], "end": "done", "date": "2025-1-06" }), "does not fit"),
            (json!({ "days": [], "end": "done", "words": { "F1": 1 } }), "/words/F1: 1 is not"),
            (json!([]), "is not of type"),
        ] {
            let found = problems(&schema, &wrong).join("; ");
            assert!(found.contains(part), "{part}: {found}");
        }
    }
}
