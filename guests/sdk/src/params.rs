//! A strategy's parameters: the JSON object `strategy_init_kwargs`, read with good messages.

use std::fmt;
use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::number::{Money, Price, Quantity};

/// A parameter that a strategy cannot use; the host shows the text to the user unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamError(String);

impl ParamError {
    /// A message of the strategy's own, for example about two parameters together.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParamError {}

/// The parameters. Each is read by name, with a default if the user gives none.
#[derive(Debug, Clone, Default)]
pub struct Params {
    given: Map<String, Value>,
    /// In the order of reading: each name once, with the value that the strategy got.
    read: Vec<(String, Value)>,
}

impl Params {
    /// Reads a JSON object; an empty text is an empty object.
    ///
    /// # Errors
    /// When the text is no JSON object.
    pub fn from_json(text: &str) -> Result<Self, ParamError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(given)) => Ok(Self { given, read: Vec::new() }),
            Ok(other) => {
                Err(ParamError(format!("the parameters must be a JSON object, not {other}")))
            }
            Err(error) => Err(ParamError(format!("the parameters are not JSON: {error}"))),
        }
    }

    /// A whole number inside `range`.
    ///
    /// # Errors
    /// When it is given and is something else.
    pub fn integer(
        &mut self,
        name: &str,
        default: i64,
        range: RangeInclusive<i64>,
    ) -> Result<i64, ParamError> {
        let (low, high) = (*range.start(), *range.end());
        let wanted = format!("a whole number from {low} to {high}");
        self.read(name, default, &wanted, Value::from, |value| {
            value.as_i64().filter(|number| range.contains(number))
        })
    }

    /// A whole number inside `range`, as a count of things.
    ///
    /// # Errors
    /// When it is given and is something else.
    pub fn count(
        &mut self,
        name: &str,
        default: usize,
        range: RangeInclusive<usize>,
    ) -> Result<usize, ParamError> {
        let (low, high) = (*range.start(), *range.end());
        let wanted = format!("a whole number from {low} to {high}");
        self.read(name, default, &wanted, Value::from, |value| {
            let count = usize::try_from(value.as_u64()?).ok()?;
            range.contains(&count).then_some(count)
        })
    }

    /// A number of shares, from 1.
    ///
    /// # Errors
    /// When it is given and is something else.
    pub fn quantity(&mut self, name: &str, default: Quantity) -> Result<Quantity, ParamError> {
        let json = |quantity: Quantity| Value::from(quantity.shares());
        self.read(name, default, "a number of shares from 1", json, |value| {
            value.as_u64().filter(|shares| *shares > 0).map(Quantity::new)
        })
    }

    /// A price above zero, in yen.
    ///
    /// # Errors
    /// When it is given and is something else.
    pub fn price(&mut self, name: &str, default: Price) -> Result<Price, ParamError> {
        let json = |price: Price| Value::from(price.to_string());
        self.read(name, default, "a price in yen above zero", json, |value| {
            decimal_text(value)?.parse().ok().filter(|price| *price > Price::ZERO)
        })
    }

    /// An amount of money in yen.
    ///
    /// # Errors
    /// When it is given and is something else.
    pub fn money(&mut self, name: &str, default: Money) -> Result<Money, ParamError> {
        let json = |amount: Money| Value::from(amount.to_string());
        self.read(name, default, "an amount in yen", json, |value| {
            decimal_text(value)?.parse().ok()
        })
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// When it is given and is something else.
    pub fn boolean(&mut self, name: &str, default: bool) -> Result<bool, ParamError> {
        self.read(name, default, "true or false", Value::from, Value::as_bool)
    }

    /// A text.
    ///
    /// # Errors
    /// When it is given and is something else.
    pub fn text(&mut self, name: &str, default: &str) -> Result<String, ParamError> {
        self.read(name, default.to_owned(), "a text", Value::from, |value| {
            value.as_str().map(str::to_owned)
        })
    }

    /// Refuses parameters that the strategy has not read; the SDK calls it after [`crate::Strategy::new`].
    ///
    /// # Errors
    /// When there are some; names them and the known ones.
    pub fn finish(&self) -> Result<(), ParamError> {
        let Some(unknown) = self.given.keys().find(|name| !self.is_read(name)) else {
            return Ok(());
        };
        let names: Vec<&str> = self.in_effect().map(|(name, _)| name).collect();
        let known = match names.as_slice() {
            [] => "this strategy has no parameters".to_owned(),
            names => format!("this strategy has: {}", names.join(", ")),
        };
        Err(ParamError(format!("unknown parameter `{unknown}`; {known}")))
    }

    /// The parameters that were read, given or default, in the order of their first reading; prices
    /// and money as decimal texts in yen.
    pub fn in_effect(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.read.iter().map(|(name, value)| (name.as_str(), value))
    }

    fn is_read(&self, name: &str) -> bool {
        self.read.iter().any(|(read, _)| read == name)
    }

    fn read<T: Clone>(
        &mut self,
        name: &str,
        default: T,
        wanted: &str,
        json: impl FnOnce(T) -> Value,
        convert: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T, ParamError> {
        let value = match self.given.get(name) {
            None => default,
            Some(value) => convert(value).ok_or_else(|| {
                ParamError(format!("parameter `{name}` is {value}; it must be {wanted}"))
            })?,
        };
        if !self.is_read(name) {
            self.read.push((name.to_owned(), json(value.clone())));
        }
        Ok(value)
    }
}

/// A number or a text as decimal text. Whole JSON numbers are exact; others must be texts.
fn decimal_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_with_defaults() {
        let mut params =
            Params::from_json(r#"{"fast": 5, "limit": "1674.1", "on": true, "name": "x"}"#)
                .unwrap();
        assert_eq!(params.count("fast", 20, 1..=100), Ok(5));
        assert_eq!(params.count("slow", 100, 1..=100), Ok(100));
        assert_eq!(params.price("limit", Price::ZERO).unwrap().to_string(), "1674.1");
        assert_eq!(params.boolean("on", false), Ok(true));
        assert_eq!(params.text("name", ""), Ok("x".to_owned()));
        assert_eq!(params.finish(), Ok(()));
    }

    #[test]
    fn what_is_in_effect_is_told_once_with_defaults() {
        let mut params = Params::from_json(r#"{"limit": 1674, "fast": 5}"#).unwrap();
        params.count("slow", 100, 1..=100).unwrap();
        params.count("fast", 20, 1..=100).unwrap();
        params.price("limit", Price::ZERO).unwrap();
        params.money("cash", Money::from_yen(-3)).unwrap();
        params.quantity("shares", Quantity::new(7)).unwrap();
        params.boolean("on", true).unwrap();
        params.text("name", "a\"b").unwrap();
        params.count("slow", 50, 1..=100).unwrap();
        let told: Vec<_> =
            params.in_effect().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            told,
            [
                "slow=100",
                "fast=5",
                "limit=\"1674\"",
                "cash=\"-3\"",
                "shares=7",
                "on=true",
                r#"name="a\"b""#
            ]
        );
    }

    #[test]
    fn messages_say_what_was_found_and_what_is_wanted() {
        let message = |json: &str, read: fn(&mut Params) -> Result<(), ParamError>| {
            let result = Params::from_json(json).and_then(|mut params| {
                read(&mut params)?;
                params.finish()
            });
            result.unwrap_err().to_string()
        };
        let count: fn(&mut Params) -> Result<(), ParamError> =
            |params| params.count("fast", 20, 1..=100).map(drop);
        assert_eq!(
            message(r#"{"fast": "x"}"#, count),
            r#"parameter `fast` is "x"; it must be a whole number from 1 to 100"#
        );
        assert_eq!(
            message(r#"{"fast": 0}"#, count),
            "parameter `fast` is 0; it must be a whole number from 1 to 100"
        );
        assert_eq!(
            message(r#"{"fats": 1}"#, count),
            "unknown parameter `fats`; this strategy has: fast"
        );
        assert_eq!(
            message(r#"{"x": 1}"#, |_| Ok(())),
            "unknown parameter `x`; this strategy has no parameters"
        );
        assert_eq!(message("[1]", count), "the parameters must be a JSON object, not [1]");
        assert!(message("{", count).starts_with("the parameters are not JSON: "));
    }
}
