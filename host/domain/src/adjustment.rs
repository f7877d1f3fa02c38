//! Splits and reverse splits: how many shares become how many on an ex-rights date. The vendor's
//! factor of prices (`AdjFactor`) is read as a fraction, so that shares stay exact. There is one reading: of a
//! file's text, of a stored number, and in the statements of `pricestore::sql::fractions`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::instrument::{InstrumentIx, TickTable};
use crate::money::Money;
use crate::price::Price;
use crate::time::JstDate;

/// Each `old` shares become `new` ones. Both are 1 to [`Adjustment::TERM_MAX`] without a common
/// divisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "(u32, u32)", try_from = "(u32, u32)")]
pub struct Adjustment {
    new: u32,
    old: u32,
}

impl From<Adjustment> for (u32, u32) {
    fn from(adjustment: Adjustment) -> Self {
        adjustment.terms()
    }
}

impl TryFrom<(u32, u32)> for Adjustment {
    type Error = String;

    fn try_from((new, old): (u32, u32)) -> Result<Self, Self::Error> {
        Self::from_terms(new, old)
            .ok_or_else(|| format!("{new} new shares for {old} old ones are no adjustment"))
    }
}

/// What a number of shares becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdjustedShares {
    /// Whole shares.
    pub whole: i64,
    /// The part of a share beyond them, in units of one share divided by the adjustment's old shares.
    pub rest: i64,
}

impl Adjustment {
    /// The largest number of shares on either side.
    pub const TERM_MAX: u32 = 1_000;

    /// The fraction with terms of at most [`Self::TERM_MAX`] that is nearest to a vendor's factor of
    /// prices: `0.5` says that one share becomes two. None where the text is no decimal number, or one
    /// that no such fraction comes near (below 0.001 or above 1,000).
    #[must_use]
    pub fn of_price_factor(text: &str) -> Option<Self> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let digits = whole.len() + part.len();
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if digits == 0 || digits > 18 || !is_number(whole) || !is_number(part) {
            return None;
        }
        let scale = 10_i128.pow(u32::try_from(part.len()).ok()?);
        let value: i128 = format!("{whole}{part}").parse().ok()?;
        Self::nearest(value, scale)
    }

    /// The same of a number as databases have it, to the twelfth decimal: two such fractions are never nearer to
    /// each other than half of the sixth. None below 0.001 and above 1,000.
    #[must_use]
    pub fn of_factor(factor: f64) -> Option<Self> {
        const SCALE: f64 = 1e12;
        let most = f64::from(Self::TERM_MAX);
        if !(0.001..=most).contains(&factor) {
            return None;
        }
        Self::nearest((factor * SCALE).round() as i128, SCALE as i128)
    }

    /// What `value / scale` is nearest to.
    fn nearest(value: i128, scale: i128) -> Option<Self> {
        let most = i128::from(Self::TERM_MAX);
        if value * most < scale || value > scale * most {
            return None;
        }
        // Of two that are equally near the one with the smaller terms, which comes first.
        let mut best: Option<(i128, i128, i128)> = None;
        for new in 1..=most {
            let old = ((value * new * 2 + scale) / (scale * 2)).clamp(1, most);
            let off = (value * new - old * scale).abs();
            // off / (scale * new) is how far it is from the value.
            if best.is_none_or(|(nearest, of, _)| off * of < nearest * new) {
                best = Some((off, new, old));
            }
        }
        let (_, new, old) = best?;
        Some(Self { new: u32::try_from(new).ok()?, old: u32::try_from(old).ok()? })
    }

    /// Both terms: the new shares for so many old ones.
    #[must_use]
    pub const fn terms(self) -> (u32, u32) {
        (self.new, self.old)
    }

    /// The adjustment with these terms, as [`Self::terms`] gave them.
    #[must_use]
    pub fn from_terms(new: u32, old: u32) -> Option<Self> {
        let is_term = |term: u32| (1..=Self::TERM_MAX).contains(&term);
        (is_term(new) && is_term(old)).then_some(Self { new, old })
    }

    /// Whether nothing changes.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.new == self.old
    }

    /// The factor of prices: 0.5 where one share became two.
    #[must_use]
    pub fn factor(self) -> f64 {
        f64::from(self.old) / f64::from(self.new)
    }

    /// What `shares` become.
    #[must_use]
    pub fn shares(self, shares: i64) -> AdjustedShares {
        let (new, old) = (i128::from(self.new), i128::from(self.old));
        let all = i128::from(shares) * new;
        // A position of 64 bits that grows beyond them would be worth more than there is money.
        let whole = i64::try_from(all / old).unwrap_or(i64::MAX);
        AdjustedShares { whole, rest: (all % old) as i64 }
    }

    /// What a price becomes, to the nearest 1/10,000 yen, a half up; never 0.
    #[must_use]
    pub fn price(self, price: Price) -> Price {
        let (new, old) = (i128::from(self.new), i128::from(self.old));
        let units = (i128::from(price.units()) * old * 2 + new) / (new * 2);
        Price::from_units(i64::try_from(units).unwrap_or(i64::MAX).max(1))
    }

    /// What the rest of a position is worth at an adjusted price, cut off at 1/10,000 yen.
    #[must_use]
    pub fn worth_of_rest(self, shares: AdjustedShares, price: Price) -> Money {
        let worth = i128::from(shares.rest) * i128::from(price.units()) / i128::from(self.old);
        Money::from_units(i64::try_from(worth).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for Adjustment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", self.new, self.old)
    }
}

/// An adjustment of an instrument, with its ex-rights date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExRights {
    /// The first date in Japan on which the shares trade without the rights.
    pub date: JstDate,
    /// The instrument, by its position in the run's list.
    pub instrument: InstrumentIx,
    /// How many shares become how many.
    pub adjustment: Adjustment,
}

impl ExRights {
    /// What a price that an instrument had on `from` is on `to`, by the splits after the one date up
    /// to the other.
    #[must_use]
    pub fn adjusted(
        all: &[Self],
        instrument: InstrumentIx,
        price: Price,
        (from, to): (JstDate, JstDate),
    ) -> Price {
        all.iter()
            .filter(|ex_rights| ex_rights.instrument == instrument)
            .filter(|ex_rights| from < ex_rights.date && ex_rights.date <= to)
            .fold(price, |price, ex_rights| ex_rights.adjustment.price(price))
    }
}

impl TickTable {
    /// The price of the grid that is nearest to `price`, of two the higher; never 0.
    #[must_use]
    pub fn nearest(self, price: Price) -> Price {
        let tick = self.tick_at(price).units().max(1);
        let below = price.units() - price.units() % tick;
        let is_above = below == 0 || (price.units() - below) * 2 >= tick;
        let is_on_grid = below == price.units();
        Price::from_units(if is_above && !is_on_grid { below.saturating_add(tick) } else { below })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(factor: &str, terms: Option<(u32, u32)>) {
        assert_eq!(Adjustment::of_price_factor(factor).map(Adjustment::terms), terms, "{factor}");
    }

    #[test]
    fn a_factor_is_the_nearest_fraction() {
        check("1", Some((1, 1)));
        check("1.0", Some((1, 1)));
        check("0.5", Some((2, 1)));
        check("0.33333333", Some((3, 1)));
        check("0.3333", Some((3, 1)));
        check("0.6666667", Some((3, 2)));
        check("0.90909091", Some((11, 10)));
        check("10.0", Some((1, 10)));
        check("0.001", Some((1_000, 1)));
        check("1000", Some((1, 1_000)));
        for wrong in ["", "x", "-1", "0", "0.0", "0.0004", "1000.5", "1e3", "1.2.3", "0.5 "] {
            check(wrong, None);
        }
    }

    #[test]
    fn a_number_is_read_as_its_text_is() {
        for text in ["0.33333", "0.5", "0.6666667", "0.9995", "0.9996", "10", "0.001", "1000"] {
            let number: f64 = text.parse().unwrap();
            let read = Adjustment::of_factor(number);
            assert_eq!((read, read.is_some()), (Adjustment::of_price_factor(text), true), "{text}");
        }
        assert_eq!(Adjustment::of_factor(1.0 / 3.0).map(Adjustment::terms), Some((3, 1)));
        assert_eq!(Adjustment::of_factor(0.33333).unwrap().factor(), 1.0 / 3.0);
        for wrong in [0.0, -0.5, 0.000_999, 1_000.1, f64::NAN, f64::INFINITY, 1e-300, 1e300] {
            assert_eq!(Adjustment::of_factor(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn terms_of_up_to_a_thousand_are_found_at_their_edges() {
        check("0.001", Some((1_000, 1)));
        check("0.00100001", Some((1_000, 1)));
        check("0.00099999", None);
        check("1000.0", Some((1, 1_000)));
        check("1000.00000001", None);
        check("999.5", Some((1, 1_000)));
        check("0.999", Some((1_000, 999)));
        // Nearer to 1 than to 999 for 1,000.
        check("0.9996", Some((1, 1)));
        check("0.99899900", Some((999, 998)));
        check("1.00100100", Some((999, 1_000)));
    }

    #[test]
    fn every_fraction_of_such_terms_comes_back_from_eight_digits() {
        let divisor = |mut one: u64, mut other: u64| {
            while other > 0 {
                (one, other) = (other, one % other);
            }
            one
        };
        let mut random = crate::Random::new(&[8]);
        for _ in 0..2_000 {
            let (new, old) = (1 + random.below(1_000), 1 + random.below(1_000));
            let eighths = (old * 200_000_000 + new) / (new * 2);
            let text = format!("{}.{:08}", eighths / 100_000_000, eighths % 100_000_000);
            let common = divisor(new, old);
            let terms = ((new / common) as u32, (old / common) as u32);
            check(&text, Some(terms));
        }
    }

    #[test]
    fn no_fraction_is_nearer_than_the_one_that_is_read() {
        let mut random = crate::Random::new(&[9]);
        for _ in 0..12 {
            // Five digits, of which many are no fraction's.
            let (value, scale) = (101 + random.below(1_999_899), 100_000_u64);
            let text = format!("{}.{:05}", value / scale, value % scale);
            let (new, old) = Adjustment::of_price_factor(&text).unwrap().terms();
            // How far `old / new` is from the value, times scale and new.
            let off = |new: u64, old: u64| u128::from((value * new).abs_diff(old * scale));
            let (new, old) = (u64::from(new), u64::from(old));
            let read = off(new, old);
            let nearer = (1..=1_000).flat_map(|new| (1..=1_000).map(move |old| (new, old)));
            let mut nearer =
                nearer.filter(|(n, o)| off(*n, *o) * u128::from(new) < read * u128::from(*n));
            assert_eq!(nearer.next(), None, "{text} was read as {new} for {old}");
        }
    }

    #[test]
    fn shares_and_prices_are_exact() {
        let split = Adjustment::of_price_factor("0.66666667").unwrap();
        assert_eq!(split.to_string(), "3 for 2");
        assert_eq!(split.shares(100), AdjustedShares { whole: 150, rest: 0 });
        assert_eq!(split.shares(101), AdjustedShares { whole: 151, rest: 1 });
        assert_eq!(split.price(Price::from_yen(1_000)).to_string(), "666.6667");
        let reverse = Adjustment::of_price_factor("10").unwrap();
        assert_eq!(reverse.shares(105), AdjustedShares { whole: 10, rest: 5 });
        let price = reverse.price(Price::from_yen(123));
        assert_eq!(price, Price::from_yen(1_230));
        assert_eq!(reverse.worth_of_rest(reverse.shares(105), price), Money::from_yen(615));
    }

    #[test]
    fn a_base_price_goes_to_the_nearest_tick() {
        let nearest = |text: &str| TickTable::Normal.nearest(text.parse().unwrap()).to_string();
        assert_eq!((nearest("333.3333"), nearest("666.6667")), ("333".into(), "667".into()));
        assert_eq!((nearest("3002"), nearest("3002.5")), ("3000".into(), "3005".into()));
        assert_eq!((nearest("0.2"), nearest("50")), ("1".into(), "50".into()));
    }
}
