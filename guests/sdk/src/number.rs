//! Exact prices, share counts and amounts of money, with the arithmetic that makes sense between
//! them. Overflow panics; it never wraps.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Rem, Sub, SubAssign};
use std::str::FromStr;

/// Parts of one yen in one unit of [`Price`] and [`Money`].
const UNITS_PER_YEN: i64 = 10_000;
/// Digits after the decimal point.
const FRACTION_DIGITS: usize = 4;

/// A text that is no exact number of 1/10,000.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberError(String);

impl fmt::Display for NumberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a number of yen with at most 4 digits after the point", self.0)
    }
}

impl std::error::Error for NumberError {}

fn parse_units(text: &str) -> Result<i64, NumberError> {
    let error = || NumberError(text.to_owned());
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !all_digits(whole) || !all_digits(fraction) {
        return Err(error());
    }
    let fraction = fraction.trim_end_matches('0');
    let padding = FRACTION_DIGITS.checked_sub(fraction.len()).ok_or_else(error)?;
    let mut units: i64 = 0;
    for digit in whole.bytes().chain(fraction.bytes()).chain(std::iter::repeat_n(b'0', padding)) {
        units = units
            .checked_mul(10)
            .and_then(|value| value.checked_add(i64::from(digit - b'0')))
            .ok_or_else(error)?;
    }
    Ok(if negative { -units } else { units })
}

fn write_units(units: i64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let magnitude = units.unsigned_abs();
    let fraction = magnitude % UNITS_PER_YEN.unsigned_abs();
    let mut text = (magnitude / UNITS_PER_YEN.unsigned_abs()).to_string();
    if fraction != 0 {
        text.push('.');
        text.push_str(format!("{fraction:04}").trim_end_matches('0'));
    }
    f.pad_integral(units >= 0, "", &text)
}

/// What prices and amounts of money have in common.
macro_rules! yen_type {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(i64);

        impl $name {
            /// Zero.
            pub const ZERO: Self = Self(0);

            /// From an integer of 1/10,000 yen.
            pub const fn from_units(units: i64) -> Self {
                Self(units)
            }

            /// A whole number of yen.
            pub const fn from_yen(yen: i64) -> Self {
                Self(yen * UNITS_PER_YEN)
            }

            /// The integer of 1/10,000 yen.
            pub const fn units(self) -> i64 {
                self.0
            }
        }

        impl Add for $name {
            type Output = Self;

            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl Sub for $name {
            type Output = Self;

            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl SubAssign for $name {
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }

        impl Neg for $name {
            type Output = Self;

            fn neg(self) -> Self {
                Self(-self.0)
            }
        }

        impl Mul<i64> for $name {
            type Output = Self;

            fn mul(self, times: i64) -> Self {
                Self(self.0 * times)
            }
        }

        /// Division cuts off towards zero, at 1/10,000 yen.
        impl Div<i64> for $name {
            type Output = Self;

            fn div(self, parts: i64) -> Self {
                Self(self.0 / parts)
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
                values.fold(Self::ZERO, Add::add)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_units(self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = NumberError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                parse_units(text).map(Self)
            }
        }
    };
}

yen_type! {
    /// A price per share, exact to 1/10,000 yen. Price times [`Quantity`] is [`Money`].
    Price
}

yen_type! {
    /// An amount of money, exact to 1/10,000 yen.
    Money
}

/// A number of shares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity(u64);

impl Quantity {
    /// No shares.
    pub const ZERO: Self = Self(0);

    /// A number of shares.
    pub const fn new(shares: u64) -> Self {
        Self(shares)
    }

    /// The number of shares.
    pub const fn shares(self) -> u64 {
        self.0
    }

    /// The largest multiple of `lot` that is not larger.
    pub const fn floor_to(self, lot: Self) -> Self {
        Self(self.0 - self.0 % lot.0)
    }
}

impl Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Quantity {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Quantity {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Rem for Quantity {
    type Output = Self;

    fn rem(self, lot: Self) -> Self {
        Self(self.0 % lot.0)
    }
}

impl Mul<u64> for Quantity {
    type Output = Self;

    fn mul(self, times: u64) -> Self {
        Self(self.0 * times)
    }
}

impl Mul<Quantity> for Price {
    type Output = Money;

    fn mul(self, quantity: Quantity) -> Money {
        let shares = i64::try_from(quantity.0).expect("more shares than fit 63 bits");
        Money(self.0 * shares)
    }
}

/// How many shares the money buys, cut off; no price at or below zero.
impl Div<Price> for Money {
    type Output = Quantity;

    fn div(self, price: Price) -> Quantity {
        Quantity(u64::try_from(self.0 / price.0).unwrap_or(0))
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
    fn arithmetic_is_exact_across_the_types() {
        let price: Price = "1674.1".parse().unwrap();
        assert_eq!(price * Quantity::new(300), Money::from_yen(502_230));
        assert_eq!(Money::from_yen(1_000_000) / price, Quantity::new(597));
        assert_eq!((price + price) / 2, price);
        assert_eq!(Quantity::new(597).floor_to(Quantity::new(100)), Quantity::new(500));
        assert_eq!([price, -price].into_iter().sum::<Price>(), Price::ZERO);
    }

    #[test]
    fn numbers_read_and_print() {
        assert_eq!("-0.5".parse::<Money>().unwrap().to_string(), "-0.5");
        assert_eq!(format!("{:>6}", Price::from_yen(12)), "    12");
        for text in ["", ".", "1,5", "0.00001", "1e3", "99999999999999999999"] {
            let error = text.parse::<Price>().unwrap_err();
            assert!(error.to_string().starts_with(&format!("`{text}` is not a number")), "{error}");
        }
    }

    #[test]
    #[should_panic(expected = "overflow")]
    fn overflow_panics() {
        let _ = Price::from_units(i64::MAX) * Quantity::new(2);
    }
}
