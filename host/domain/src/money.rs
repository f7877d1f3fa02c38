//! Exact amounts of yen.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::price::{DecimalError, Price, Quantity, UNITS_PER_YEN, parse_decimal, write_decimal};

/// An amount of money: an integer of 1/10,000 yen, negative for a loss or a debt.
/// The range is about ±922 trillion yen; arithmetic beyond it panics instead of wrapping.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Money(i64);

impl Money {
    /// No money.
    pub const ZERO: Self = Self(0);

    /// An amount from its integer of 1/10,000 yen.
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

    /// The value of `quantity` shares at `price`, or `None` where it does not fit.
    #[must_use]
    pub fn checked_notional(price: Price, quantity: Quantity) -> Option<Self> {
        let shares = i64::try_from(quantity.shares()).ok()?;
        price.units().checked_mul(shares).map(Self)
    }

    /// The part of this amount that `part` of `whole` shares have, cut off; all of it for all of them.
    ///
    /// # Panics
    /// When `whole` is zero.
    #[must_use]
    pub fn share_of(self, part: impl Into<i128>, whole: impl Into<i128>) -> Self {
        let share = i128::from(self.0) * part.into() / whole.into();
        // A part of a value of 64 bits has 64 bits.
        Self(share as i64)
    }

    /// The sum, or `None` where it does not fit.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// The value in yen for statistics and charts, where rounding is harmless.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "statistics only; exact value stays in units")]
    pub fn approximate_yen(self) -> f64 {
        self.0 as f64 / UNITS_PER_YEN as f64
    }
}

impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Money {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Neg for Money {
    type Output = Self;

    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Money {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(self.0, f)
    }
}

impl FromStr for Money {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_decimal(text).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notional_is_exact_and_checked() {
        let price: Price = "1674.1".parse().unwrap();
        let value = Money::checked_notional(price, Quantity::new(300)).unwrap();
        assert_eq!(value.to_string(), "502230");
        assert_eq!(Money::checked_notional(price, Quantity::new(u64::MAX)), None);
        assert_eq!(Money::checked_notional(Price::from_yen(1 << 40), Quantity::new(1 << 20)), None);
    }

    #[test]
    fn sums_and_signs() {
        let total: Money = [Money::from_yen(5), -Money::from_yen(7)].into_iter().sum();
        assert_eq!(total.to_string(), "-2");
    }
}
