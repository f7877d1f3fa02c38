//! Dates and times as the broker writes them.

use chrono::Datelike as _;
use domain::{JstDate, TsNanos};

const NANOS_PER_MILLI: u64 = 1_000_000;

/// Hour, minute, second and millisecond in Japan.
fn of_day(time: TsNanos) -> (u64, u64, u64, u64) {
    let millis = time.jst_nanos_of_day() / NANOS_PER_MILLI;
    (millis / 3_600_000, millis / 60_000 % 60, millis / 1_000 % 60, millis % 1_000)
}

/// `YYYYMMDD`.
pub(crate) fn day(date: JstDate) -> String {
    format!("{:04}{:02}{:02}", date.year(), date.month(), date.day())
}

/// `YYYYMMDDHHMMSS` in Japan.
pub(crate) fn second(time: TsNanos) -> String {
    let (hour, minute, second, _) = of_day(time);
    format!("{}{hour:02}{minute:02}{second:02}", day(time.jst_date()))
}

/// `YYYY.MM.DD-HH:MM:SS.TTT` in Japan.
pub(crate) fn milli(time: TsNanos) -> String {
    let (hour, minute, second, milli) = of_day(time);
    let date = time.jst_date();
    format!(
        "{:04}.{:02}.{:02}-{hour:02}:{minute:02}:{second:02}.{milli:03}",
        date.year(),
        date.month(),
        date.day()
    )
}

/// Reads `YYYYMMDD`.
pub(crate) fn parse_day(text: &str) -> Option<JstDate> {
    let is_digits = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u32>().ok();
    let year = i32::try_from(number(0..4)?).ok()?;
    is_digits.then(|| JstDate::from_ymd_opt(year, number(4..6)?, number(6..8)?)).flatten()
}

/// Reads `YYYY.MM.DD-HH:MM:SS.TTT`, a time in Japan.
pub(crate) fn parse_milli(text: &str) -> Option<TsNanos> {
    let shape = b"0000.00.00-00:00:00.000";
    let fits = |(byte, of_shape): (u8, &u8)| match of_shape {
        b'0' => byte.is_ascii_digit(),
        other => byte == *other,
    };
    if text.len() != shape.len() || !text.bytes().zip(shape).all(fits) {
        return None;
    }
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let date = JstDate::from_ymd_opt(
        i32::try_from(number(0, 4)?).ok()?,
        u32::try_from(number(5, 7)?).ok()?,
        u32::try_from(number(8, 10)?).ok()?,
    )?;
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let millis = ((hour * 60 + minute) * 60 + second) * 1_000 + number(20, 23)?;
    TsNanos::from_jst(date, millis * NANOS_PER_MILLI)
}

/// Reads `HH:MM:SS` with any decimals of a second, as nanoseconds of a day.
pub(crate) fn parse_of_day(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = whole.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let digits = decimals.bytes().all(|byte| byte.is_ascii_digit()) && decimals.len() <= 9;
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 || !digits {
        return None;
    }
    let nanos: u64 = format!("{decimals:0<9}").parse().ok()?;
    Some(((hour * 60 + minute) * 60 + second) * 1_000_000_000 + nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read() {
        let time = parse_milli("2026.05.11-09:00:05.250").unwrap();
        assert_eq!(milli(time), "2026.05.11-09:00:05.250");
        assert_eq!(second(time), "20260511090005");
        assert_eq!(day(parse_day("20260511").unwrap()), "20260511");
        assert_eq!(parse_of_day("09:00:00.5"), Some(32_400_500_000_000));
        for wrong in
            ["2026.05.11 09:00:05.250", "2026.13.11-09:00:05.250", "2026.05.11-24:00:00.000"]
        {
            assert_eq!(parse_milli(wrong), None, "{wrong}");
        }
        assert_eq!(parse_day("2026051"), None);
        assert_eq!(parse_of_day("9:00"), None);
    }
}
