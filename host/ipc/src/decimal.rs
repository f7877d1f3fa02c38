//! Exact numbers as the texts in which they travel: JSON's own numbers are binary floating point to
//! most of its readers.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use domain::{Money, Price, Quantity};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Bytes of the longest text: a sign, 19 digits and a point.
const TEXT_MAX: usize = 21;
/// Digits after the point, see [`domain::price::UNITS_PER_YEN`].
const FRACTION_DIGITS: usize = 4;

/// A price, an amount or a quantity in 1/10,000. Written as its shortest decimal text (`141.5`), read
/// in any exact decimal form that [`Price`] reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal(i64);

impl Decimal {
    /// A number of 1/10,000.
    #[must_use]
    pub const fn from_units(units: i64) -> Self {
        Self(units)
    }

    /// The number of 1/10,000.
    #[must_use]
    pub const fn units(self) -> i64 {
        self.0
    }

    /// A whole number of shares; none where it does not fit.
    #[must_use]
    pub fn from_shares(shares: Quantity) -> Option<Self> {
        let units =
            i64::try_from(shares.shares()).ok()?.checked_mul(domain::price::UNITS_PER_YEN)?;
        Some(Self(units))
    }

    /// Writes the text to the end of `buffer` and returns it.
    fn write(self, buffer: &mut [u8; TEXT_MAX]) -> &str {
        let magnitude = self.0.unsigned_abs();
        let mut start = TEXT_MAX;
        let mut put = |digit: u8| {
            start -= 1;
            buffer[start] = digit;
        };
        let per_one = domain::price::UNITS_PER_YEN.unsigned_abs();
        let mut fraction = magnitude % per_one;
        if fraction != 0 {
            let mut shown = false;
            for _ in 0..FRACTION_DIGITS {
                let digit = (fraction % 10) as u8;
                fraction /= 10;
                shown |= digit != 0;
                if shown {
                    put(b'0' + digit);
                }
            }
            put(b'.');
        }
        write_whole(magnitude / per_one, &mut put);
        if self.0 < 0 {
            put(b'-');
        }
        std::str::from_utf8(&buffer[start..]).unwrap_or_default()
    }
}

/// The digits of a whole number, the last one first.
fn write_whole(mut value: u64, put: &mut impl FnMut(u8)) {
    loop {
        put(b'0' + (value % 10) as u8);
        value /= 10;
        if value == 0 {
            return;
        }
    }
}

impl From<Price> for Decimal {
    fn from(price: Price) -> Self {
        Self(price.units())
    }
}

impl From<Money> for Decimal {
    fn from(money: Money) -> Self {
        Self(money.units())
    }
}

impl From<Decimal> for Price {
    fn from(decimal: Decimal) -> Self {
        Self::from_units(decimal.0)
    }
}

impl From<Decimal> for Money {
    fn from(decimal: Decimal) -> Self {
        Self::from_units(decimal.0)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.write(&mut [0; TEXT_MAX]))
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.write(&mut [0; TEXT_MAX]))
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        parse::<Price, D>(from).map(Self::from)
    }
}

/// A whole number of shares, as its decimal text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShareCount(u64);

impl From<Quantity> for ShareCount {
    fn from(quantity: Quantity) -> Self {
        Self(quantity.shares())
    }
}

impl From<ShareCount> for Quantity {
    fn from(count: ShareCount) -> Self {
        Self::new(count.0)
    }
}

impl Serialize for ShareCount {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut buffer = [0; TEXT_MAX];
        let mut start = TEXT_MAX;
        write_whole(self.0, &mut |digit| {
            start -= 1;
            buffer[start] = digit;
        });
        to.serialize_str(std::str::from_utf8(&buffer[start..]).unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for ShareCount {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        parse::<u64, D>(from).map(Self)
    }
}

/// A whole number with a sign, as its decimal text.
pub(crate) mod whole_text {
    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(value: &i64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
        super::parse::<i64, D>(from)
    }
}

/// A value out of a text; numbers of JSON are refused.
fn parse<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: FromStr<Err: fmt::Display>,
    D: Deserializer<'de>,
{
    let text = Cow::<str>::deserialize(from)?;
    text.parse().map_err(|error| de::Error::custom(format_args!("`{text}`: {error}")))
}

impl JsonSchema for Decimal {
    fn schema_name() -> Cow<'static, str> {
        "Decimal".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An exact decimal number as text, in its shortest form: `2440`, `141.5`.",
            "type": "string",
            "pattern": r"^-?[0-9]+(\.[0-9]{1,4})?$",
        })
    }
}

impl JsonSchema for ShareCount {
    fn schema_name() -> Cow<'static, str> {
        "ShareCount".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A whole number of shares as text.",
            "type": "string",
            "pattern": "^[0-9]+$",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_text_is_that_of_the_domain(units: i64, shares: u64) {
            let decimal = Decimal::from_units(units);
            let text = serde_json::to_string(&decimal).unwrap();
            prop_assert_eq!(&text, &format!("\"{}\"", Price::from_units(units)));
            if units != i64::MIN {
                prop_assert_eq!(serde_json::from_str::<Decimal>(&text).unwrap(), decimal);
            }
            let count = ShareCount::from(Quantity::new(shares));
            let text = serde_json::to_string(&count).unwrap();
            prop_assert_eq!(&text, &format!("\"{shares}\""));
            prop_assert_eq!(serde_json::from_str::<ShareCount>(&text).unwrap(), count);
        }
    }

    #[test]
    fn the_ends_of_the_range_are_written() {
        for units in [i64::MIN, i64::MAX, 0, -1, 10_000, -10_000, 1_415_000] {
            let decimal = Decimal::from_units(units);
            assert_eq!(decimal.to_string(), Price::from_units(units).to_string());
        }
        assert_eq!(Decimal::from_shares(Quantity::new(300)), Some(Decimal::from_units(3_000_000)));
        assert_eq!(Decimal::from_shares(Quantity::new(u64::MAX)), None);
    }

    #[test]
    fn numbers_of_json_are_refused() {
        for wrong in ["12", "1.5", "null", "\"\"", "\"1e3\"", "\"1.00001\""] {
            assert!(serde_json::from_str::<Decimal>(wrong).is_err(), "{wrong}");
        }
        for wrong in ["12", "\"1.5\"", "\"-1\""] {
            assert!(serde_json::from_str::<ShareCount>(wrong).is_err(), "{wrong}");
        }
    }
}
