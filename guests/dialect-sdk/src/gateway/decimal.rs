//! Decimal numbers of JSON as integers of 1/10,000, exactly or not at all.

/// Decimals that 1/10,000 has.
const DECIMALS: usize = 4;
/// So many digits fit 64 bits in 1/10,000 too.
const PLAIN_DIGITS_MAX: usize = 14;
const POWERS: [u64; 20] = {
    let mut powers = [1; 20];
    let mut index = 1;
    while index < powers.len() {
        powers[index] = powers[index - 1] * 10;
        index += 1;
    }
    powers
};

/// Why a text is no number in 1/10,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoDecimal {
    /// It needs more than four decimals.
    TooFine,
    /// It does not fit 64 bits.
    TooLarge,
}

impl NoDecimal {
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::TooFine => "has more than 4 decimals",
            Self::TooLarge => "is too large",
        }
    }
}

/// The number that begins at `start` in 1/10,000, and where it ends, if it is written in the plain way of almost
/// all: some digits, and up to four behind a point. None says nothing.
#[inline]
pub(super) fn plain(bytes: &[u8], start: usize) -> Option<(i64, usize)> {
    let (mut at, mut value) = digits(bytes, start, 0);
    let mut decimals = 0;
    if bytes.get(at) == Some(&b'.') {
        let from = at + 1;
        (at, value) = digits(bytes, from, value);
        decimals = at - from;
        if decimals == 0 || decimals > DECIMALS {
            return None;
        }
    }
    let is_plain = at > start
        && at - start <= PLAIN_DIGITS_MAX
        && !(bytes[start] == b'0' && at > start + 1 && bytes[start + 1] != b'.')
        && bytes[start] != b'.'
        && !matches!(bytes.get(at), Some(b'e' | b'E'));
    let units = value.wrapping_mul(POWERS[DECIMALS - decimals]);
    is_plain.then_some((units.cast_signed(), at))
}

/// A number of JSON, taken apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number {
    /// Where its digits begin, behind the sign.
    whole_at: usize,
    /// Digits before the point.
    whole: usize,
    /// Digits behind it.
    fraction: usize,
    /// All digits as a number, if there are few enough.
    value: u64,
    exponent: i64,
    is_negative: bool,
    /// Where it ends.
    pub(super) end: usize,
}

impl Number {
    /// The number that begins at `start`, or nothing where it is none.
    pub(super) fn find(bytes: &[u8], start: usize) -> Option<Self> {
        let is_negative = bytes.get(start) == Some(&b'-');
        let whole_at = start + usize::from(is_negative);
        let (mut end, mut value) = digits(bytes, whole_at, 0);
        let whole = end - whole_at;
        if whole == 0 || (whole > 1 && bytes[whole_at] == b'0') {
            return None;
        }
        let mut fraction = 0;
        if bytes.get(end) == Some(&b'.') {
            let from = end + 1;
            (end, value) = digits(bytes, from, value);
            fraction = end - from;
            if fraction == 0 {
                return None;
            }
        }
        let mut exponent = 0;
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            (exponent, end) = self::exponent(bytes, end + 1)?;
        }
        Some(Self { whole_at, whole, fraction, value, exponent, is_negative, end })
    }

    /// It in 1/10,000.
    pub(super) fn units(&self, bytes: &[u8]) -> Result<i64, NoDecimal> {
        let &Self { whole_at, whole, fraction, value, exponent, is_negative, .. } = self;
        if exponent != 0 || whole + fraction > PLAIN_DIGITS_MAX {
            let end = whole_at + whole + if fraction > 0 { fraction + 1 } else { 0 };
            return scaled(&bytes[whole_at..end], fraction, exponent, is_negative);
        }
        match fraction.checked_sub(DECIMALS) {
            None => signed(value * POWERS[DECIMALS - fraction], is_negative),
            Some(more) if value.is_multiple_of(POWERS[more]) => {
                signed(value / POWERS[more], is_negative)
            }
            Some(_) => Err(NoDecimal::TooFine),
        }
    }
}

/// Goes on with a number over the digits from `at` on. Beyond 19 digits it is not the number.
#[inline]
fn digits(bytes: &[u8], mut at: usize, mut value: u64) -> (usize, u64) {
    while let Some(byte) = bytes.get(at) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    (at, value)
}

/// The exponent from `at` on, if there is one, and where it ends. A huge one stays huge.
fn exponent(bytes: &[u8], mut at: usize) -> Option<(i64, usize)> {
    let sign = bytes.get(at);
    at += usize::from(matches!(sign, Some(b'+' | b'-')));
    let from = at;
    let mut value: i64 = 0;
    while let Some(digit) = bytes.get(at).filter(|byte| byte.is_ascii_digit()) {
        value = value.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
        at += 1;
    }
    let value = if sign == Some(&b'-') { -value } else { value };
    (at > from).then_some((value, at))
}

/// Digits with a point among them, `fraction` of them behind it, times a power of ten.
fn scaled(
    mantissa: &[u8],
    fraction: usize,
    exponent: i64,
    is_negative: bool,
) -> Result<i64, NoDecimal> {
    let is_zero = |byte: &u8| matches!(byte, b'0' | b'.');
    let Some(first) = mantissa.iter().position(|byte| !is_zero(byte)) else { return Ok(0) };
    let end = mantissa.iter().rposition(|byte| !is_zero(byte)).map_or(first, |last| last + 1);
    let digits_in = |bytes: &[u8]| bytes.iter().filter(|byte| **byte != b'.').count();
    let (significant, zeros) = (digits_in(&mantissa[first..end]), digits_in(&mantissa[end..]));
    let length = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let shift = exponent
        .saturating_add(length(zeros))
        .saturating_sub(length(fraction))
        .saturating_add(length(DECIMALS));
    if shift < 0 {
        return Err(NoDecimal::TooFine);
    }
    if length(significant).saturating_add(shift) >= length(POWERS.len()) {
        return Err(NoDecimal::TooLarge);
    }
    let digits = mantissa[first..end].iter().filter(|byte| **byte != b'.');
    // At most 19 digits.
    let value = digits.fold(0_u64, |value, byte| value * 10 + u64::from(byte - b'0'));
    let power = usize::try_from(shift).map_or(0, |shift| POWERS[shift]);
    signed(value.checked_mul(power).ok_or(NoDecimal::TooLarge)?, is_negative)
}

fn signed(units: u64, is_negative: bool) -> Result<i64, NoDecimal> {
    let units = i64::try_from(units).map_err(|_| NoDecimal::TooLarge)?;
    Ok(if is_negative { -units } else { units })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<i64, NoDecimal> {
        let number = Number::find(text.as_bytes(), 0).unwrap_or_else(|| panic!("{text} is none"));
        assert_eq!(number.end, text.len(), "{text}");
        let found = number.units(text.as_bytes());
        if let Some(plain) = plain(text.as_bytes(), 0) {
            assert_eq!((Ok(plain.0), plain.1), (found, number.end), "{text}");
        }
        found
    }

    #[test]
    fn numbers_are_exact_in_every_form() {
        for (text, units) in [
            ("0", 0),
            ("-0", 0),
            ("0.0", 0),
            ("0e99999999999999999999999", 0),
            ("500", 5_000_000),
            ("100.0", 1_000_000),
            ("2408.5", 24_085_000),
            ("2408.50000000000000000000000", 24_085_000),
            ("0.0001", 1),
            ("0.00010", 1),
            ("1e3", 10_000_000),
            ("1E+3", 10_000_000),
            ("1e-4", 1),
            ("12000e-4", 12_000),
            ("0.00000000000000000000012e22", 12_000),
            ("2.4085e3", 24_085_000),
            ("100000000000000000000000e-20", 10_000_000),
            ("-12.5", -125_000),
            ("922337203685477.5807", i64::MAX),
            ("9223372036854775807e-4", i64::MAX),
            ("10946119350.0", 109_461_193_500_000),
        ] {
            assert_eq!(of(text), Ok(units), "{text}");
        }
    }

    #[test]
    fn the_plain_way_is_taken_where_it_is_plain() {
        for (text, units) in [("0", 0), ("0.0", 0), ("2408.5", 24_085_000), ("0.0001", 1)] {
            assert_eq!(plain(text.as_bytes(), 0), Some((units, text.len())));
        }
        assert_eq!(plain(b"[12.5,", 1), Some((125_000, 5)));
        assert_eq!(plain(b"10000000000000", 0), Some((100_000_000_000_000_000, 14)));
        for text in
            ["", "-1", "01", "00.5", ".5", "5.", "1.00000", "1e3", "1.5E3", "100000000000000"]
        {
            assert_eq!(plain(text.as_bytes(), 0), None, "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_is_told_apart() {
        for text in
            ["1.23456", "0.00001", "1e-5", "12345e-9", "1e-99999999999999999999", "129.770001"]
        {
            assert_eq!(of(text), Err(NoDecimal::TooFine), "{text}");
        }
        for text in [
            "922337203685477.5808",
            "1e15",
            "1e99999999999999999999",
            "12345678901234567890",
            "-99999999999999999999",
        ] {
            assert_eq!(of(text), Err(NoDecimal::TooLarge), "{text}");
        }
        for text in ["", "-", "01", "00", "-01", ".5", "5.", "5.e1", "1e", "1e+", "+1", "e3", "NaN"]
        {
            assert!(Number::find(text.as_bytes(), 0).is_none(), "{text}");
        }
    }

    /// Over every number of up to six digits with up to five behind the point, against plain arithmetic.
    #[test]
    fn digits_mean_what_they_do_on_paper() {
        for value in (0_u64..1_000_000).step_by(37) {
            for decimals in 0..=5_u32 {
                let ten = 10_u64.pow(decimals);
                let text = match decimals {
                    0 => value.to_string(),
                    _ => format!(
                        "{}.{:0width$}",
                        value / ten,
                        value % ten,
                        width = decimals as usize
                    ),
                };
                let expected = match value * 10_000 {
                    units if units % ten == 0 => Ok((units / ten) as i64),
                    _ => Err(NoDecimal::TooFine),
                };
                assert_eq!(of(&text), expected, "{text}");
                assert_eq!(of(&format!("{value}e-{decimals}")), expected, "{value}e-{decimals}");
            }
        }
    }
}
