//! Typed values of single cells, exact and without floating point.

use domain::price::UNITS_PER_YEN;
use domain::session::{AFTERNOON_OPEN, AUCTION_SLACK, CLOSE, MORNING_CLOSE, MORNING_OPEN};
use domain::time::NANOS_PER_SECOND;

use crate::error::CellProblem;
use crate::limits::{PRICE_YEN_MAX, ROW_QUANTITY_MAX};

/// Digits of a fraction of a second.
const SECOND_DIGITS_MAX: usize = 9;
/// Digits after the point of a price.
const PRICE_DIGITS: usize = 4;
/// Digits that always fit 64 bits.
const WHOLE_DIGITS_MAX: usize = 19;

/// A trading session of the vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Session {
    Morning,
    Afternoon,
}

impl Session {
    pub(super) fn parse(cell: &[u8]) -> Option<Self> {
        match cell {
            b"01" => Some(Self::Morning),
            b"02" => Some(Self::Afternoon),
            _ => None,
        }
    }

    /// Whether a trade of this session may be stamped so many nanoseconds after midnight. The same
    /// hours hold for all dates: files from before 2024-11-05 simply have no later rows.
    #[inline(always)]
    pub(super) fn contains(self, nanos_of_day: u64) -> bool {
        match self {
            Self::Morning => (MORNING_OPEN..=MORNING_CLOSE + AUCTION_SLACK).contains(&nanos_of_day),
            Self::Afternoon => (AFTERNOON_OPEN..=CLOSE + AUCTION_SLACK).contains(&nanos_of_day),
        }
    }

    /// The error for a time outside the session.
    pub(super) fn hours_problem(self) -> CellProblem {
        match self {
            Self::Morning => CellProblem::Hours { from: "09:00:00", to: "11:35:00", session: "01" },
            Self::Afternoon => {
                CellProblem::Hours { from: "12:30:00", to: "15:35:00", session: "02" }
            }
        }
    }
}

/// A whole number of at most 19 digits.
pub(super) fn whole(cell: &[u8]) -> Option<u64> {
    if cell.is_empty() || cell.len() > WHOLE_DIGITS_MAX {
        return None;
    }
    cell.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit <= 9).then_some(())?;
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// A number of shares within the limits.
pub(super) fn quantity(cell: &[u8]) -> Option<u64> {
    whole(cell).filter(|&shares| is_quantity(shares))
}

#[inline(always)]
pub(super) fn is_quantity(shares: u64) -> bool {
    (1..=ROW_QUANTITY_MAX).contains(&shares)
}

/// A price within the limits, in 1/10,000 yen.
pub(super) fn price(cell: &[u8]) -> Option<i64> {
    let (yen, fraction) = match memchr::memchr(b'.', cell) {
        Some(point) => (&cell[..point], &cell[point + 1..]),
        None => (cell, b"0".as_slice()),
    };
    let mut units = whole(yen)?.checked_mul(UNITS_PER_YEN.unsigned_abs())?;
    if fraction.is_empty() {
        return None;
    }
    let mut weight = UNITS_PER_YEN.unsigned_abs() / 10;
    for (index, byte) in fraction.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        // Zeros below the smallest unit change nothing; other digits there cannot be kept.
        if digit > 9 || (index >= PRICE_DIGITS && digit != 0) {
            return None;
        }
        units = units.checked_add(u64::from(digit) * weight)?;
        weight /= 10;
    }
    i64::try_from(units).ok().filter(|&units| is_price(units))
}

#[inline(always)]
pub(super) fn is_price(units: i64) -> bool {
    (1..=PRICE_YEN_MAX * UNITS_PER_YEN).contains(&units)
}

/// A bar's number of shares; other programs write whole numbers with decimals of zero.
pub(super) fn volume(cell: &[u8]) -> Option<u64> {
    let whole = match memchr::memchr(b'.', cell) {
        Some(point) if cell[point + 1..].iter().all(|&digit| digit == b'0') => &cell[..point],
        _ => cell,
    };
    quantity(whole)
}

/// Whether a cell is an amount of money from 0; its value is not used.
pub(super) fn is_amount(cell: &[u8]) -> bool {
    let (yen, decimals) = match memchr::memchr(b'.', cell) {
        Some(point) => (&cell[..point], &cell[point + 1..]),
        None => (cell, b"0".as_slice()),
    };
    let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    digits(yen) && digits(decimals)
}

/// Nanoseconds after midnight of `HH:MM`.
pub(super) fn minute_of_day(cell: &[u8]) -> Option<u64> {
    let &[h1, h2, b':', m1, m2] = cell else { return None };
    let (hour, minute) = (whole(&[h1, h2])?, whole(&[m1, m2])?);
    (hour <= 23 && minute <= 59).then_some((hour * 60 + minute) * 60 * NANOS_PER_SECOND)
}

/// Nanoseconds after midnight of `HH:MM:SS` with up to nine digits of fraction.
pub(super) fn time_of_day(cell: &[u8]) -> Option<u64> {
    let (clock, fraction) = cell.split_first_chunk::<8>()?;
    let [h1, h2, b':', m1, m2, b':', s1, s2] = *clock else {
        return None;
    };
    let pair = |tens: u8, ones: u8| whole(&[tens, ones]);
    let (hour, minute, second) = (pair(h1, h2)?, pair(m1, m2)?, pair(s1, s2)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let nanos = match fraction {
        [] => 0,
        [b'.', digits @ ..] if (1..=SECOND_DIGITS_MAX).contains(&digits.len()) => {
            let missing = u32::try_from(SECOND_DIGITS_MAX - digits.len()).ok()?;
            whole(digits)? * 10_u64.pow(missing)
        }
        _ => return None,
    };
    Some((hour * 3_600 + minute * 60 + second) * NANOS_PER_SECOND + nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_exact_or_refused() {
        let check = |text: &str, expected| assert_eq!(price(text.as_bytes()), expected, "{text}");
        check("1", Some(10_000));
        check("1674.2", Some(16_742_000));
        check("0.0001", Some(1));
        check("0012.50000", Some(125_000));
        check("1000000000", Some(10_000_000_000_000));
        for refused in [
            "",
            "0",
            "0.0",
            "-5",
            "+5",
            "abc",
            "NaN",
            "inf",
            "1e3",
            "1.",
            ".5",
            "1.00001",
            "1,000",
            "1.2.3",
            " 1",
            "1 ",
            "1000000000.0001",
            "99999999999999999999",
            "12\x0034",
        ] {
            check(refused, None);
        }
    }

    #[test]
    fn quantities_and_ids_are_whole() {
        assert_eq!(quantity(b"100"), Some(100));
        assert_eq!(quantity(b"1000000000000"), Some(ROW_QUANTITY_MAX));
        for refused in ["0", "-100", "100.5", "1000000000001", "99999999999999999999", ""] {
            assert_eq!(quantity(refused.as_bytes()), None, "{refused}");
        }
        assert_eq!(whole(b"9999999999999999999"), Some(9_999_999_999_999_999_999));
        assert_eq!(whole(b"000000000000000000021"), None);
    }

    #[test]
    fn times_take_any_usual_fraction() {
        let check = |text: &str, expected| {
            assert_eq!(time_of_day(text.as_bytes()), expected, "{text}");
        };
        let nine = 9 * 3_600 * NANOS_PER_SECOND;
        check("09:00:00", Some(nine));
        check("09:00:00.5", Some(nine + 500_000_000));
        check("09:00:00.067558", Some(nine + 67_558_000));
        check("09:00:00.000000001", Some(nine + 1));
        check("23:59:59.999999999", Some(86_400 * NANOS_PER_SECOND - 1));
        for refused in [
            "",
            "9:00:00",
            "09:00",
            "25:61:00.000000",
            "24:00:00",
            "09:60:00",
            "09:00:60",
            "09:00:00.",
            "09:00:00.0000000001",
            "09:00:00,5",
            "09-00-00",
            "0a:00:00",
            "09:00:00.x",
        ] {
            check(refused, None);
        }
    }

    #[test]
    fn bars_have_minutes_volumes_and_amounts() {
        assert_eq!(minute_of_day(b"09:01"), Some((9 * 60 + 1) * 60 * NANOS_PER_SECOND));
        for refused in ["9:01", "09:60", "24:00", "09:01:00", "0901", ""] {
            assert_eq!(minute_of_day(refused.as_bytes()), None, "{refused}");
        }
        assert_eq!(
            (volume(b"2500"), volume(b"2500.0"), volume(b"2500.")),
            (Some(2_500), Some(2_500), Some(2_500))
        );
        for refused in ["0", "0.0", "2500.5", "-1", "", ".0"] {
            assert_eq!(volume(refused.as_bytes()), None, "{refused}");
        }
        assert!(is_amount(b"12027500") && is_amount(b"99954013130.35") && is_amount(b"0"));
        for refused in ["", ".5", "1.", "-1", "1e9", "1,0"] {
            assert!(!is_amount(refused.as_bytes()), "{refused}");
        }
    }

    #[test]
    fn sessions_have_their_hours() {
        let at = |text: &str| time_of_day(text.as_bytes()).unwrap();
        let check = |session: Session, text: &str, inside| {
            assert_eq!(session.contains(at(text)), inside, "{session:?} {text}");
        };
        check(Session::Morning, "08:59:59.999999", false);
        check(Session::Morning, "09:00:00", true);
        check(Session::Morning, "11:35:00", true);
        check(Session::Morning, "11:35:00.000001", false);
        check(Session::Afternoon, "12:29:59.999999", false);
        check(Session::Afternoon, "12:30:00", true);
        check(Session::Afternoon, "15:35:00", true);
        check(Session::Afternoon, "15:35:00.000000001", false);
        assert_eq!(Session::parse(b"03"), None);
    }
}
