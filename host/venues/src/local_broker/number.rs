//! Reads numbers of JSON as exact integers of 1/10,000, without binary floating point.

use thiserror::Error;

use crate::local_broker::limits::NUMBER_CHARS_MAX;

/// Digits after the point of an exact number.
const FRACTION_DIGITS: i64 = 4;
/// Digits of the largest number that fits.
const DIGITS_MAX: i64 = 19;

/// Why a text is no exact number of 1/10,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum NumberError {
    #[error("is not a number")]
    NotNumber,
    #[error("has more than 4 digits after the point")]
    TooFine,
    #[error("is too large")]
    TooLarge,
}

/// Reads a number of JSON (`-12.5`, `1.2E+3`) exactly.
pub(crate) fn exact(text: &str) -> Result<i64, NumberError> {
    Digits::of(text)?.units(|_| Err(NumberError::TooFine))
}

/// Reads a number of JSON; more than 4 digits after the point are rounded half to even.
pub(crate) fn rounded(text: &str) -> Result<i64, NumberError> {
    Digits::of(text)?.units(Ok)
}

/// A number as its digits: their whole number, times ten to the power of minus `scale`.
#[derive(Debug)]
struct Digits {
    is_negative: bool,
    /// Without zeros at either end; empty for zero.
    digits: Vec<u8>,
    scale: i64,
}

impl Digits {
    fn of(text: &str) -> Result<Self, NumberError> {
        use NumberError::NotNumber;
        if text.len() > NUMBER_CHARS_MAX {
            return Err(NumberError::TooLarge);
        }
        let (is_negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => {
                let sign = exponent.strip_prefix('-').map_or(1, |_| -1);
                let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
                all_digits(digits).ok_or(NotNumber)?;
                // Beyond this every number except zero is too large, or too fine.
                (mantissa, sign * digits.parse::<i64>().unwrap_or(i64::MAX).min(1_000_000))
            }
            None => (rest, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, all_digits(fraction).ok_or(NotNumber)?),
            None => (mantissa, ""),
        };
        let all = [all_digits(whole).ok_or(NotNumber)?, fraction].concat();
        let kept = all.trim_end_matches('0');
        let cut = i64::try_from(all.len() - kept.len()).map_err(|_| NumberError::TooLarge)?;
        let scale = i64::try_from(fraction.len()).map_err(|_| NumberError::TooLarge)?;
        let digits = kept.trim_start_matches('0').bytes().map(|byte| byte - b'0').collect();
        Ok(Self { is_negative, digits, scale: scale - exponent - cut })
    }

    /// The number in 1/10,000; `fine` decides about a number that must be rounded, and gets it rounded.
    fn units(
        &self,
        fine: impl FnOnce(i128) -> Result<i128, NumberError>,
    ) -> Result<i64, NumberError> {
        if self.digits.is_empty() {
            return Ok(0);
        }
        let length = i64::try_from(self.digits.len()).map_err(|_| NumberError::TooLarge)?;
        // How many of the digits are before the end of 1/10,000.
        let kept = length - self.scale + FRACTION_DIGITS;
        if kept > DIGITS_MAX {
            return Err(NumberError::TooLarge);
        }
        let digit = |at: i64| usize::try_from(at).ok().and_then(|at| self.digits.get(at).copied());
        let mut units = 0_i128;
        for at in 0..kept {
            units = units * 10 + i128::from(digit(at).unwrap_or(0));
        }
        if kept < length {
            let rounds_up = match digit(kept) {
                Some(5) if kept + 1 == length => units % 2 == 1,
                Some(first) => first >= 5,
                // This digit is a zero.
                None => false,
            };
            units = fine(units + i128::from(rounds_up))?;
        }
        let signed = if self.is_negative { -units } else { units };
        i64::try_from(signed).map_err(|_| NumberError::TooLarge)
    }
}

/// The text, if it has digits only.
fn all_digits(text: &str) -> Option<&str> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(text)
}

#[cfg(test)]
mod tests {
    use domain::Price;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_read_to_the_last_digit() {
        for (text, units) in [
            ("0", 0),
            ("-0.0", 0),
            ("0e999999999999999999999", 0),
            ("1234567.0", 12_345_670_000),
            ("704.5", 7_045_000),
            ("-207250", -2_072_500_000),
            ("0.0001", 1),
            ("0.00010000", 1),
            ("1E+3", 10_000_000),
            ("1.5e-3", 15),
            ("12e0", 120_000),
            ("922337203685477.5807", i64::MAX),
            ("-922337203685477.5808", i64::MIN),
            ("9007199254740993", -1),
        ] {
            // The last is a number that binary floating point cannot hold, and it is too large.
            let expected = if units == -1 { Err(NumberError::TooLarge) } else { Ok(units) };
            assert_eq!(exact(text), expected, "{text}");
        }
        assert_eq!(exact("900719925474099.3"), Ok(9_007_199_254_740_993_000));
        assert_eq!(exact("900719925474.0993"), Ok(9_007_199_254_740_993));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (text, why) in [
            ("0.00001", NumberError::TooFine),
            ("1e-5", NumberError::TooFine),
            ("1e-999999999999999999999", NumberError::TooFine),
            ("1e999999999999999999999", NumberError::TooLarge),
            ("922337203685477.5808", NumberError::TooLarge),
            ("1e15", NumberError::TooLarge),
        ] {
            assert_eq!(exact(text), Err(why), "{text}");
        }
        for text in
            ["", "-", "+1", ".5", "1.", "1e", "1e+", "e5", "NaN", "1.2.3", "0x1", "1_0", "１"]
        {
            assert_eq!(exact(text), Err(NumberError::NotNumber), "{text}");
        }
        assert_eq!(exact(&"0".repeat(NUMBER_CHARS_MAX)), Ok(0));
        assert_eq!(exact(&"0".repeat(NUMBER_CHARS_MAX + 1)), Err(NumberError::TooLarge));
    }

    #[test]
    fn averages_are_rounded_half_to_even() {
        for (text, units) in [
            ("704.333333333333", 7_043_333),
            ("704.666666666666", 7_046_667),
            ("0.00005", 0),
            ("0.00015", 2),
            ("0.00025", 2),
            ("0.000250000001", 3),
            ("-0.00015", -2),
            ("0.000001", 0),
            ("0.00009", 1),
            ("9e-5", 1),
            ("1.25", 12_500),
            ("99.99995", 1_000_000),
        ] {
            assert_eq!(rounded(text), Ok(units), "{text}");
        }
        assert_eq!(rounded("922337203685477.58075"), Err(NumberError::TooLarge));
    }

    proptest! {
        #[test]
        fn every_number_survives_its_text(units: i64) {
            let text = Price::from_units(units).to_string();
            prop_assert_eq!(exact(&text), Ok(units));
            prop_assert_eq!(rounded(&text), Ok(units));
            prop_assert_eq!(exact(&format!("{units}e-4")), Ok(units));
        }
    }
}
