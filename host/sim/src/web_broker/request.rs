//! A decoded request: a flat object of texts, and lists of such.

use serde_json::{Map, Value, json};

use super::limits::REQUEST_FIELDS_MAX;

/// A request's fields.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    fields: Map<String, Value>,
}

impl Request {
    /// Reads the JSON of a query.
    ///
    /// # Errors
    /// What is wrong, without any value.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("not JSON: {}", at(&error)))?;
        let Value::Object(fields) = value else { return Err("not an object".to_owned()) };
        let mut count = 0;
        for (name, value) in &fields {
            count += 1;
            match value {
                Value::String(_) => {}
                Value::Array(rows) => {
                    for row in rows {
                        let Value::Object(row) = row else {
                            return Err(format!("{name} holds more than objects"));
                        };
                        count += row.len();
                        if !row.values().all(Value::is_string) {
                            return Err(format!("{name} holds more than texts"));
                        }
                    }
                }
                _ => return Err(format!("{name} is neither a text nor a list")),
            }
            if count > REQUEST_FIELDS_MAX {
                return Err("more fields than REQUEST_FIELDS_MAX".to_owned());
            }
        }
        Ok(Self { fields })
    }

    /// A field's text; empty where there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.fields.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether the request has the field.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// A field that must be there and not be empty.
    pub(crate) fn needed(&self, name: &str) -> Result<&str, String> {
        match self.text(name) {
            "" => Err(format!("{name} is missing")),
            text => Ok(text),
        }
    }

    /// The rows of a list.
    pub(crate) fn rows(&self, name: &str) -> Vec<&Map<String, Value>> {
        let rows = self.fields.get(name).and_then(Value::as_array);
        rows.into_iter().flatten().filter_map(Value::as_object).collect()
    }

    /// The broker's name of the request.
    pub(crate) fn id(&self) -> &str {
        self.text("sCLMID")
    }

    /// Every field; of those named in `secrets` only whether it was right.
    pub(crate) fn told(&self, secrets: &[(&str, bool)]) -> Value {
        let told = |(name, value): (&String, &Value)| {
            let secret = secrets.iter().find(|(secret, _)| secret == name);
            let value = secret.map_or_else(
                || value.clone(),
                |(_, right)| json!(if *right { "(right)" } else { "(wrong)" }),
            );
            (name.clone(), value)
        };
        Value::Object(self.fields.iter().map(told).collect())
    }
}

/// Where JSON is wrong; its text may hold a secret.
fn at(error: &serde_json::Error) -> String {
    format!("line {} column {}", error.line(), error.column())
}
