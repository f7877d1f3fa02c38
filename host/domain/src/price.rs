//! Exact prices and share counts. Never binary floating point.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Parts of one yen in one unit of [`Price`] and [`crate::Money`].
pub const UNITS_PER_YEN: i64 = 10_000;

/// Digits after the decimal point that a price or an amount may carry.
const FRACTION_DIGITS: usize = 4;

/// Why a decimal text is not an exact amount.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DecimalError {
    /// The text is empty or holds something else than digits, one sign and one point.
    #[error("`{0}` is not a decimal number")]
    NotDecimal(String),
    /// More than four digits after the point.
    #[error("`{0}` has more than 4 digits after the point")]
    TooFine(String),
    /// The value does not fit.
    #[error("`{0}` is out of range")]
    OutOfRange(String),
}

/// Reads a plain decimal (`-12.3456`) as an integer of 1/10,000.
///
/// # Errors
/// [`DecimalError`] when the text is no decimal number, too fine or too large.
pub(crate) fn parse_decimal(text: &str) -> Result<i64, DecimalError> {
    let not_decimal = || DecimalError::NotDecimal(text.to_owned());
    let out_of_range = || DecimalError::OutOfRange(text.to_owned());
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !all_digits(whole) || !all_digits(fraction) {
        return Err(not_decimal());
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > FRACTION_DIGITS {
        return Err(DecimalError::TooFine(text.to_owned()));
    }
    // Below zero there is one more than above.
    let mut units: i64 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        units = units
            .checked_mul(10)
            .and_then(|value| value.checked_sub(i64::from(digit - b'0')))
            .ok_or_else(out_of_range)?;
    }
    for _ in fraction.len()..FRACTION_DIGITS {
        units = units.checked_mul(10).ok_or_else(out_of_range)?;
    }
    if negative { Ok(units) } else { units.checked_neg().ok_or_else(out_of_range) }
}

/// Writes an integer of 1/10,000 as the shortest exact decimal.
pub(crate) fn write_decimal(units: i64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let magnitude = units.unsigned_abs();
    let whole = magnitude / UNITS_PER_YEN.unsigned_abs();
    let fraction = magnitude % UNITS_PER_YEN.unsigned_abs();
    let mut text = whole.to_string();
    if fraction != 0 {
        let digits = format!("{fraction:04}");
        text.push('.');
        text.push_str(digits.trim_end_matches('0'));
    }
    f.pad_integral(units >= 0, "", &text)
}

/// A price per share: an integer of 1/10,000 yen. `16_741_000` is 1,674.1 yen.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Price(i64);

impl Price {
    /// A price from its integer of 1/10,000 yen.
    #[must_use]
    pub const fn from_units(units: i64) -> Self {
        Self(units)
    }

    /// A whole number of yen.
    #[must_use]
    pub const fn from_yen(yen: i64) -> Self {
        Self(yen * UNITS_PER_YEN)
    }

    /// The integer of 1/10,000 yen.
    #[must_use]
    pub const fn units(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(self.0, f)
    }
}

impl FromStr for Price {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_decimal(text).map(Self)
    }
}

/// A number of shares.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Quantity(u64);

impl Quantity {
    /// No shares.
    pub const ZERO: Self = Self(0);

    /// A number of shares.
    #[must_use]
    pub const fn new(shares: u64) -> Self {
        Self(shares)
    }

    /// The number of shares.
    #[must_use]
    pub const fn shares(self) -> u64 {
        self.0
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The difference, or zero where `other` is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The largest multiple of `lot` that is not larger.
    #[must_use]
    pub const fn floor_to(self, lot: Self) -> Self {
        Self(self.0 - self.0 % lot.0)
    }
}

impl std::ops::Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl std::ops::AddAssign for Quantity {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

/// Reads a whole number of shares.
impl FromStr for Quantity {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_read_and_print_exactly() {
        for (text, units, printed) in [
            ("1674.1", 16_741_000, "1674.1"),
            ("0.0001", 1, "0.0001"),
            ("-922337203685477.5808", i64::MIN, "-922337203685477.5808"),
            ("922337203685477.5807", i64::MAX, "922337203685477.5807"),
            (".5", 5_000, "0.5"),
            ("12.", 120_000, "12"),
            ("-3.25", -32_500, "-3.25"),
            ("007", 70_000, "7"),
            ("1.50000", 15_000, "1.5"),
        ] {
            let price: Price = text.parse().unwrap();
            assert_eq!(price.units(), units, "{text}");
            assert_eq!(price.to_string(), printed, "{text}");
        }
    }

    #[test]
    fn other_text_is_refused_with_the_reason() {
        for (text, message) in [
            ("", "`` is not a decimal number"),
            (".", "`.` is not a decimal number"),
            ("NaN", "`NaN` is not a decimal number"),
            ("1e3", "`1e3` is not a decimal number"),
            ("1.2.3", "`1.2.3` is not a decimal number"),
            ("0.00001", "`0.00001` has more than 4 digits after the point"),
            ("9223372036854775807", "`9223372036854775807` is out of range"),
        ] {
            assert_eq!(text.parse::<Price>().unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn width_pads_like_an_integer() {
        assert_eq!(format!("{:>8}", Price::from_units(15_000)), "     1.5");
    }

    proptest::proptest! {
        #[test]
        fn every_price_survives_its_text(units in i64::MIN + 1..i64::MAX) {
            let text = Price::from_units(units).to_string();
            proptest::prop_assert_eq!(text.parse::<Price>().unwrap().units(), units);
        }
    }
}
