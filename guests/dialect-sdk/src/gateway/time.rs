//! Times of ISO 8601 with an offset.

const DAY_SECONDS: i64 = 86_400;
/// Years that are read: what counts nanoseconds ends with the next century.
const YEARS: std::ops::RangeInclusive<i64> = 1970..=2500;

/// Milliseconds since 1970 UTC of a time like `2022-04-04T15:00:00+09:00`. A fraction of the second may follow
/// it, cut off to the millisecond, and `Z` may stand for the offset. None where it is no such time, has no
/// offset, or is not of the years 1970 to 2500.
pub(super) fn epoch_ms(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let form = |at: usize, sign: u8| bytes.get(at) == Some(&sign);
    if !(form(4, b'-') && form(7, b'-') && form(10, b'T') && form(13, b':') && form(16, b':')) {
        return None;
    }
    let number = |at: usize, digits: usize| number(bytes.get(at..at + digits)?);
    let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
    let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut rest = &bytes[19..];
    let mut millis = 0;
    if let Some(fraction) = rest.strip_prefix(b".") {
        let length = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length == 0 {
            return None;
        }
        for place in 0..3 {
            let digit = fraction[..length].get(place).map_or(0, |byte| i64::from(byte - b'0'));
            millis = millis * 10 + digit;
        }
        rest = &fraction[length..];
    }
    let seconds = days(year, month, day)? * DAY_SECONDS + (hour * 60 + minute) * 60 + second;
    let seconds = seconds - offset(rest)?;
    u64::try_from(seconds * 1_000 + millis).ok()
}

/// Seconds that a place's clock is ahead.
fn offset(text: &[u8]) -> Option<i64> {
    let (sign, hours, minutes) = match text {
        b"Z" => return Some(0),
        [b'+', h1, h2, b':', m1, m2] => (1, [*h1, *h2], [*m1, *m2]),
        [b'-', h1, h2, b':', m1, m2] => (-1, [*h1, *h2], [*m1, *m2]),
        _ => return None,
    };
    let (hours, minutes) = (number(&hours)?, number(&minutes)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60)
}

fn number(digits: &[u8]) -> Option<i64> {
    let add =
        |value: i64, byte: &u8| byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0'));
    digits.iter().try_fold(0, add)
}

/// Days from 1970 to a date that the calendar has.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let in_month = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => return None,
    };
    if !(1..=in_month).contains(&day) || !YEARS.contains(&year) {
        return None;
    }
    // A year that begins in March ends with its leap day.
    let year = if month > 2 { year } else { year - 1 };
    let month = (month + 9) % 12;
    let leap_days = year / 4 - year / 100 + year / 400;
    Some(year * 365 + leap_days + (153 * month + 2) / 5 + day - 719_469)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_of_their_offset() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T09:00:00+09:00", 0),
            ("2022-04-04T15:00:00+09:00", 1_649_052_000_000),
            ("2022-04-04T06:00:00Z", 1_649_052_000_000),
            ("2022-04-04T06:00:00-00:00", 1_649_052_000_000),
            ("2022-04-04T01:30:00-04:30", 1_649_052_000_000),
            ("2022-04-04T15:00:00.5+09:00", 1_649_052_000_500),
            ("2022-04-04T15:00:00.123987654321+09:00", 1_649_052_000_123),
            ("2022-04-04T15:00:00.04Z", 1_649_084_400_040),
            ("2024-02-29T00:00:00Z", 1_709_164_800_000),
            ("2000-03-01T00:00:00Z", 951_868_800_000),
            ("2500-12-31T23:59:59Z", 16_756_761_599_000),
        ] {
            assert_eq!(epoch_ms(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "2022-04-04",
            "2022-04-04T15:00:00",
            "2022-04-04 15:00:00+09:00",
            "2022-04-04T15:00+09:00",
            "2022-04-04T15:00:00+0900",
            "2022-04-04T15:00:00+9:00",
            "2022-04-04T15:00:00+24:00",
            "2022-04-04T15:00:00+09:60",
            "2022-04-04T15:00:00.+09:00",
            "2022-04-04T15:00:00+09:00 ",
            "2022-04-04T24:00:00Z",
            "2022-04-04T15:60:00Z",
            "2022-04-04T15:00:60Z",
            "2022-02-29T15:00:00Z",
            "2022-13-01T15:00:00Z",
            "2022-00-01T15:00:00Z",
            "2022-01-00T15:00:00Z",
            "0001-01-01T00:00:00Z",
            "2501-01-01T00:00:00Z",
            "1970-01-01T00:00:00+09:00",
            "2022-04-04T15:00:0a+09:00",
            "２０22-04-04T15:00:00Z",
        ] {
            assert_eq!(epoch_ms(text), None, "{text}");
        }
    }
}
