//! A record of an answer: its fields in order, numbers as the texts that were sent.

use std::fmt;

use domain::Price;
use domain::price::UNITS_PER_YEN;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::local_broker::limits::{ROW_DEPTH_MAX, ROW_FIELDS_MAX, ROWS_MAX};
use crate::local_broker::number::{self, NumberError};

/// Characters of the longest value that is quoted in an error.
const SHOWN_CHARS_MAX: usize = 40;

/// A record, each name once.
#[derive(Debug)]
pub(super) struct Row<'a>(Vec<(String, &'a RawValue)>);

/// A list.
#[derive(Debug)]
pub(super) struct List<'a>(pub(super) Vec<&'a RawValue>);

impl<'a> Row<'a> {
    pub(super) fn read(text: &'a str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("is not a record: {error}"))
    }

    /// Names and values, in their order.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.get()))
    }

    /// A field as it was sent; `None` where it is missing or null.
    pub(super) fn value(&self, name: &str) -> Option<&'a str> {
        let field = self.0.iter().find(|(known, _)| known == name);
        field.map(|(_, value)| value.get()).filter(|value| *value != "null")
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// A text; `None` where it is missing, null or empty.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, String> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let text: Result<String, _> = serde_json::from_str(value);
        let text = text.map_err(|_| wrong(name, value, "is not a text"))?;
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    /// A text that must be there.
    pub(super) fn required_text(&self, name: &str) -> Result<String, String> {
        self.text(name)?.ok_or_else(|| format!("{name} is missing"))
    }

    /// A code, sent as a text or as a number.
    pub(super) fn code(&self, name: &str) -> Result<String, String> {
        match self.value(name) {
            Some(text) if text.starts_with('"') => self.required_text(name),
            Some(_) => self.required_whole(name).map(|code| code.to_string()),
            None => Err(format!("{name} is missing")),
        }
    }

    /// An exact number, in 1/10,000.
    pub(super) fn units(&self, name: &str) -> Result<Option<i64>, String> {
        self.number(name, number::exact)
    }

    /// A number that the gateway has divided, in 1/10,000: rounded half to even.
    pub(super) fn average(&self, name: &str) -> Result<Option<i64>, String> {
        self.number(name, number::rounded)
    }

    /// A whole number.
    pub(super) fn whole(&self, name: &str) -> Result<Option<i64>, String> {
        let Some(units) = self.units(name)? else { return Ok(None) };
        if units % UNITS_PER_YEN != 0 {
            return Err(wrong(name, &decimal(units), "is not a whole number"));
        }
        Ok(Some(units / UNITS_PER_YEN))
    }

    /// A whole number that must be there.
    pub(super) fn required_whole(&self, name: &str) -> Result<i64, String> {
        self.whole(name)?.ok_or_else(|| format!("{name} is missing"))
    }

    /// Shares, which must be there.
    pub(super) fn shares(&self, name: &str) -> Result<u64, String> {
        let shares = self.required_whole(name)?;
        u64::try_from(shares).map_err(|_| wrong(name, &shares.to_string(), "is below 0"))
    }

    fn number(
        &self,
        name: &str,
        read: fn(&str) -> Result<i64, NumberError>,
    ) -> Result<Option<i64>, String> {
        let Some(value) = self.value(name) else { return Ok(None) };
        read(value).map(Some).map_err(|error| wrong(name, value, &error.to_string()))
    }
}

/// A number of 1/10,000 as its shortest decimal text.
fn decimal(units: i64) -> String {
    Price::from_units(units).to_string()
}

/// The error of a field. A value is quoted whole or not at all: a secret that is cut would no longer be
/// redacted.
pub(super) fn wrong(name: &str, value: &str, what: &str) -> String {
    if value.chars().nth(SHOWN_CHARS_MAX).is_some() {
        return format!("{name}, with {} characters, {what}", value.chars().count());
    }
    let shown = domain::text::on_one_line(value.trim_matches('"'));
    format!("{name} `{shown}` {what}")
}

/// A field as clients get it. Numbers in the fields of `is_decimal` become decimal texts, other whole numbers
/// stay numbers. All else stays the text that was sent.
pub(super) fn shown(
    name: &str,
    text: &str,
    is_decimal: fn(&str) -> bool,
    depth: usize,
) -> Result<Value, String> {
    if depth > ROW_DEPTH_MAX {
        return Err(format!("{name} is nested deeper than {ROW_DEPTH_MAX}"));
    }
    let read =
        |text| serde_json::from_str(text).map_err(|_| wrong(name, text, "is not a JSON value"));
    Ok(match text.as_bytes().first() {
        Some(b'{') => {
            let row = Row::read(text).map_err(|error| format!("{name} {error}"))?;
            let fields = row.fields().map(|(name, value)| {
                Ok((name.to_owned(), shown(name, value, is_decimal, depth + 1)?))
            });
            Value::Object(fields.collect::<Result<_, String>>()?)
        }
        Some(b'[') => {
            let list = List::read(text).map_err(|error| format!("{name} {error}"))?;
            let values = list.0.iter().map(|one| shown(name, one.get(), is_decimal, depth + 1));
            Value::Array(values.collect::<Result<_, _>>()?)
        }
        Some(b'-' | b'0'..=b'9') => {
            let whole: Result<i64, _> = text.parse();
            match (is_decimal(name), number::exact(text), whole) {
                (true, Ok(units), _) => Value::String(decimal(units)),
                (false, _, Ok(whole)) => Value::from(whole),
                _ => Value::String(text.to_owned()),
            }
        }
        _ => read(text)?,
    })
}

impl<'a> List<'a> {
    pub(super) fn read(text: &'a str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("is not a list: {error}"))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Row<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Row<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a record")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row<'de>, A::Error> {
                let mut row = Row(Vec::new());
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    if row.has(&name) {
                        let shown = domain::text::on_one_line(&name);
                        return Err(de::Error::custom(format_args!("{shown} is there twice")));
                    }
                    if row.0.len() == ROW_FIELDS_MAX {
                        let what = format_args!("it has more than {ROW_FIELDS_MAX} fields");
                        return Err(de::Error::custom(what));
                    }
                    row.0.push((name, value));
                }
                Ok(row)
            }
        }
        from.deserialize_map(Fields)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for List<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Rows;
        impl<'de> Visitor<'de> for Rows {
            type Value = List<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<List<'de>, A::Error> {
                let mut list = List(Vec::new());
                while let Some(row) = rows.next_element()? {
                    if list.0.len() == ROWS_MAX {
                        let what = format_args!("it has more than {ROWS_MAX} rows");
                        return Err(de::Error::custom(what));
                    }
                    list.0.push(row);
                }
                Ok(list)
            }
        }
        from.deserialize_seq(Rows)
    }
}
