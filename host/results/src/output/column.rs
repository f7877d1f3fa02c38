//! What a table of a run is: its columns with their names, kinds and meanings, and the JSON schema
//! that follows from them.

use serde_json::{Map, Value, json};

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number.
    Whole,
    /// Exact yen.
    Yen,
    /// A timestamp: nanoseconds since 1970, UTC.
    Timestamp,
    /// A date in Japan, `YYYY-MM-DD`.
    Date,
}

impl Kind {
    /// The word for the schemas.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Whole => "integer",
            Self::Yen => "decimal",
            Self::Timestamp => "timestamp",
            Self::Date => "date",
        }
    }
}

/// One column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether it may be empty.
    pub optional: bool,
    /// What it holds in words, with its unit.
    pub meaning: &'static str,
}

/// One table: `<name>.csv`, `<name>.json` and `<name>.parquet`.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// What a row is.
    pub row: &'static str,
    /// Its columns in order.
    pub columns: &'static [Column],
}

impl Table {
    /// The name of its CSV file.
    pub(crate) fn csv_name(&self) -> String {
        format!("{}.csv", self.name)
    }

    /// The JSON schema (2020-12) of `<name>.json`, made from the columns.
    #[must_use]
    pub fn json_schema(&self) -> Value {
        let property = |column: &Column| (column.name.to_owned(), column.json_schema());
        let names: Vec<&str> = self.columns.iter().map(|column| column.name).collect();
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": format!("{}.json of a run's folder", self.name),
            "type": "array",
            "items": {
                "type": "object",
                "description": format!("A row is {}.", self.row),
                "additionalProperties": false,
                "properties": self.columns.iter().map(property).collect::<Map<_, _>>(),
                "required": names,
            },
        })
    }
}

impl Column {
    fn json_schema(&self) -> Value {
        let (name, pattern) = match self.kind {
            Kind::Text => ("string", None),
            Kind::Whole | Kind::Timestamp => ("integer", None),
            Kind::Yen => ("string", Some(r"^-?[0-9]+(\.[0-9]{1,4})?$")),
            Kind::Date => ("string", Some("^[0-9]{4}-[0-9]{2}-[0-9]{2}$")),
        };
        let kind = if self.optional { json!([name, "null"]) } else { json!(name) };
        let mut schema = json!({ "type": kind, "description": self.meaning });
        if let Some(pattern) = pattern {
            schema["pattern"] = pattern.into();
        }
        schema
    }
}
