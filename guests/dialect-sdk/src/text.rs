//! Texts of brokers: fields by name, decimals, dates and times, and lines for people.

use crate::Field;

/// Characters of a reason text (specification 2, "reason_text format").
const REASON_TEXT_MAX: usize = 512;
/// Digits after the point that a price may carry.
const FRACTION_DIGITS: usize = 4;
/// Digits before the point that a price may have.
const WHOLE_DIGITS: usize = 12;

/// A field.
#[must_use]
pub fn field(name: &str, value: impl Into<String>) -> Field {
    Field { name: name.to_owned(), value: value.into() }
}

/// The text of a field without the blanks around it; none where it is missing or blank, which is how the
/// broker says "not used".
#[must_use]
pub fn of<'a>(fields: &'a [Field], name: &str) -> Option<&'a str> {
    let found = fields.iter().find(|field| field.name == name)?;
    Some(found.value.trim()).filter(|text| !text.is_empty())
}

/// One line: what commands whatever shows it becomes blanks. That is control characters, separators of
/// lines, and what turns the direction of the text around it.
#[must_use]
pub fn line(text: &str) -> String {
    let steers = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let blank = |letter: char| if steers(letter) { ' ' } else { letter };
    text.chars().map(blank).collect::<String>().trim().to_owned()
}

/// A reason text: `<TAG>: <words>` on one line of at most 512 characters. What may not stand in the tag
/// becomes `_`.
#[must_use]
pub fn reason(tag: &str, words: &str) -> String {
    let letter = |letter: char| match letter.to_ascii_uppercase() {
        letter @ ('A'..='Z' | '0'..='9') => letter,
        _ => '_',
    };
    let tag: String = tag.chars().take(64).map(letter).collect();
    let tag = if tag.is_empty() { "NO_CODE" } else { &tag };
    let text = format!("{tag}: {}", line(words));
    text.chars().take(REASON_TEXT_MAX).collect::<String>().trim_end().to_owned()
}

/// A decimal in its shortest form: `2735.5000` is `2735.5`. None where the text is no decimal, negative,
/// or finer than a price can be.
#[must_use]
pub fn decimal(text: &str) -> Option<String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    if whole.len() > WHOLE_DIGITS || fraction.len() > FRACTION_DIGITS {
        return None;
    }
    let whole = if whole.is_empty() { "0" } else { whole };
    Some(if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") })
}

/// A price: a decimal above 0, in its shortest form.
#[must_use]
pub fn price(text: &str) -> Option<String> {
    decimal(text).filter(|price| price != "0")
}

/// A number of shares. The broker may write it with a fraction of zeros.
#[must_use]
pub fn shares(text: &str) -> Option<u64> {
    decimal(text)?.parse().ok()
}

/// A date `YYYYMMDD` that the calendar has.
#[must_use]
pub fn date(text: &str) -> Option<String> {
    let number = |part: &str| part.parse::<u32>().ok();
    if text.len() != 8 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (year, month, day) = (number(&text[..4])?, number(&text[4..6])?, number(&text[6..])?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => return None,
    };
    // The host counts time from 1970 on.
    ((1971..=2500).contains(&year) && (1..=days).contains(&day)).then(|| text.to_owned())
}

/// A time `YYYYMMDDHHMMSS`.
#[must_use]
pub fn time(text: &str) -> Option<String> {
    if text.len() != 14 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    date(&text[..8])?;
    let fits = |part: &str, end: u32| part.parse::<u32>().is_ok_and(|number| number < end);
    let fits = fits(&text[8..10], 24) && fits(&text[10..12], 60) && fits(&text[12..], 60);
    fits.then(|| text.to_owned())
}

/// A name that a broker gives: 1 to 64 letters, digits, `-`, `_` and `.`.
#[must_use]
pub fn name(text: &str) -> Option<&str> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    ((1..=64).contains(&text.len()) && text.bytes().all(fits)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_have_their_shortest_form() {
        for (text, expected) in [
            ("2735.5000", Some("2735.5")),
            ("2850.000000", Some("2850")),
            ("0.0000", Some("0")),
            ("0012.30", Some("12.3")),
            ("5.", Some("5")),
            (".5", None),
            ("-1", None),
            ("1e3", None),
            ("", None),
            ("*", None),
            ("1.23456", None),
            ("1,000", None),
            ("12345678901234567890", None),
        ] {
            assert_eq!(decimal(text).as_deref(), expected, "{text}");
        }
        assert_eq!((price("0.0"), price("0.1000").as_deref()), (None, Some("0.1")));
        assert_eq!(
            (shares("100"), shares("100.0000"), shares("1.5")),
            (Some(100), Some(100), None)
        );
    }

    #[test]
    fn dates_and_times_are_of_the_calendar() {
        assert_eq!(date("20240229").as_deref(), Some("20240229"));
        for text in
            ["20230229", "00000000", "20261301", "20260431", "2026051", "2026-5-1", "２０２６"]
        {
            assert_eq!(date(text), None, "{text}");
        }
        assert_eq!(time("20260511090001").as_deref(), Some("20260511090001"));
        for text in ["20260511240000", "20260511096000", "20260511", "2026051109000a"] {
            assert_eq!(time(text), None, "{text}");
        }
    }

    #[test]
    fn reasons_are_one_line_with_a_tag() {
        assert_eq!(reason("11304", "wrong\r\npassword\u{7}"), "11304: wrong  password");
        assert_eq!(reason("11304", "\u{202e}a\u{2028}b"), "11304: a b");
        assert_eq!(reason("p_errno", "a"), "P_ERRNO: a");
        assert_eq!(reason("", "a"), "NO_CODE: a");
        assert_eq!(reason("A", &"字".repeat(600)).chars().count(), 512);
    }

    #[test]
    fn a_blank_field_is_not_used() {
        let fields = [field("a", " "), field("b", " x ")];
        assert_eq!((of(&fields, "a"), of(&fields, "b"), of(&fields, "c")), (None, Some("x"), None));
    }
}
