//! A page of the vendor's answer, read so that no answer takes much more memory than its bytes: at most so
//! many rows, and of a row texts, numbers and the like, but nothing that is nested.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::limits::{ANSWER_ROWS_MAX, ROW_KEYS_MAX};

/// What stands for a value that is nested.
const NESTED: &str = "(a list or an object)";
/// What stands for values of a key that a row has more than once.
const TWICE: &str = "(given twice)";

/// A page as the vendor writes it. Keys that are not named here are of no use to us.
#[derive(Debug, Deserialize)]
pub(super) struct Page {
    pub(super) data: Rows,
    #[serde(default)]
    pub(super) pagination_key: Option<String>,
}

/// The rows of a page; one more than an answer may have ends the reading.
#[derive(Debug)]
pub(super) struct Rows {
    /// Objects without anything nested.
    pub(super) rows: Vec<Value>,
    /// There are more of them.
    pub(super) is_too_large: bool,
}

impl<'de> Deserialize<'de> for Rows {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(RowsVisitor)
    }
}

struct RowsVisitor;

impl<'de> Visitor<'de> for RowsVisitor {
    type Value = Rows;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Rows, A::Error> {
        let mut rows = Vec::new();
        while rows.len() < ANSWER_ROWS_MAX {
            match from.next_element::<Flat>()? {
                Some(Flat(row)) => rows.push(row),
                None => return Ok(Rows { rows, is_too_large: false }),
            }
        }
        let mut is_too_large = false;
        while from.next_element::<IgnoredAny>()?.is_some() {
            is_too_large = true;
        }
        Ok(Rows { rows, is_too_large })
    }
}

/// A row.
struct Flat(Value);

impl<'de> Deserialize<'de> for Flat {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(FlatVisitor { may_be_object: true }).map(Self)
    }
}

/// A value of a row.
struct Cell(Value);

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(FlatVisitor { may_be_object: false }).map(Self)
    }
}

struct FlatVisitor {
    may_be_object: bool,
}

impl<'de> Visitor<'de> for FlatVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row or a value of one")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number is none"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        while from.next_element::<IgnoredAny>()?.is_some() {}
        Ok(NESTED.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut row = Map::new();
        while let Some(key) = from.next_key::<String>()? {
            if !self.may_be_object {
                from.next_value::<IgnoredAny>()?;
                continue;
            }
            let Cell(value) = from.next_value()?;
            if row.len() >= ROW_KEYS_MAX && !row.contains_key(&key) {
                return Err(A::Error::custom(format!("a row has more than {ROW_KEYS_MAX} keys")));
            }
            // Nobody can tell which of two values is right.
            let value = if row.contains_key(&key) { TWICE.into() } else { value };
            row.insert(key, value);
        }
        Ok(if self.may_be_object { Value::Object(row) } else { NESTED.into() })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Page {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn rows_are_flat() {
        let page = read(
            r#"{"data":[{"a":1,"b":-2,"c":1.5,"d":"x","e":null,"f":true,"g":[1,[2]],"h":{"i":[3]}},
                {"a":1,"b":2,"a":3}, 7], "pagination_key":"k","more":{"x":[]}}"#,
        );
        let [first, second, third] = &page.data.rows[..] else { panic!("{page:?}") };
        assert_eq!(
            *first,
            json!({"a":1,"b":-2,"c":1.5,"d":"x","e":null,"f":true,"g":NESTED,"h":NESTED})
        );
        assert_eq!((second, third), (&json!({"a":TWICE,"b":2}), &json!(7)));
        assert_eq!((page.pagination_key.as_deref(), page.data.is_too_large), (Some("k"), false));
    }

    #[test]
    fn an_answer_has_so_many_rows_and_a_row_so_many_keys() {
        let rows = |count: usize| format!(r#"{{"data":[{}]}}"#, vec!["{}"; count].join(","));
        let page = read(&rows(ANSWER_ROWS_MAX));
        assert_eq!((page.data.rows.len(), page.data.is_too_large), (ANSWER_ROWS_MAX, false));
        let page = read(&rows(ANSWER_ROWS_MAX + 9));
        assert_eq!((page.data.rows.len(), page.data.is_too_large), (ANSWER_ROWS_MAX, true));
        let keys = |count: usize| {
            let keys: Vec<String> = (0..count).map(|key| format!("\"k{key}\":1")).collect();
            serde_json::from_str::<Page>(&format!(r#"{{"data":[{{{}}}]}}"#, keys.join(",")))
        };
        assert!(keys(ROW_KEYS_MAX).is_ok());
        assert!(keys(ROW_KEYS_MAX + 1).unwrap_err().to_string().contains("more than"));
    }
}
