//! Conditional and range requests: whether the client wants the file at all, and which part (RFC
//! 9110, 13 and 14).

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::header::{
    IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};
use axum::http::{HeaderMap, HeaderName};

/// What tells states of a file apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Validators {
    /// The strong entity tag of the bytes as they are sent, without its quotes.
    pub(super) tag: String,
    /// Last change, in whole seconds since 1970. None where it is not to be told: before 1970, or
    /// later than now, which no server may say (RFC 9110, 8.8.2.1).
    pub(super) modified: Option<u64>,
}

/// What a request gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Evaluation {
    /// All of it.
    Whole,
    /// These bytes; never none of them.
    Part(Range<u64>),
    /// Nothing: the client has it already.
    NotModified,
    /// Nothing: the file is not what the client takes it for.
    PreconditionFailed,
    /// Nothing: the file has no such bytes.
    RangeNotSatisfiable,
}

/// Decides in the order of RFC 9110, 13.2.2. `length` is the file's; `now` in seconds since 1970.
pub(super) fn evaluate(
    headers: &HeaderMap,
    validators: &Validators,
    length: u64,
    ranges: bool,
    now: u64,
) -> Evaluation {
    if fails(headers, validators) {
        return Evaluation::PreconditionFailed;
    }
    if is_known(headers, validators) {
        return Evaluation::NotModified;
    }
    if !ranges || !same_as_before(headers, validators, now) {
        return Evaluation::Whole;
    }
    match texts(headers, RANGE)[..] {
        [range] => part(range, length),
        // Lines that contradict each other say nothing.
        _ => Evaluation::Whole,
    }
}

/// If-Match, else If-Unmodified-Since.
fn fails(headers: &HeaderMap, validators: &Validators) -> bool {
    let tags = texts(headers, IF_MATCH);
    if !tags.is_empty() {
        return !has_tag(&tags, &validators.tag, false);
    }
    match (date(headers, IF_UNMODIFIED_SINCE), validators.modified) {
        (Some(then), Some(modified)) => modified > then,
        _ => false,
    }
}

/// If-None-Match, else If-Modified-Since.
fn is_known(headers: &HeaderMap, validators: &Validators) -> bool {
    let tags = texts(headers, IF_NONE_MATCH);
    if !tags.is_empty() {
        return has_tag(&tags, &validators.tag, true);
    }
    match (date(headers, IF_MODIFIED_SINCE), validators.modified) {
        (Some(then), Some(modified)) => modified <= then,
        _ => false,
    }
}

/// If-Range: whether the part asked for goes with what the client has. A date only tells that when
/// the file has not changed in this very second (RFC 9110, 13.1.5 and 8.8.2.2).
fn same_as_before(headers: &HeaderMap, validators: &Validators, now: u64) -> bool {
    match texts(headers, IF_RANGE)[..] {
        [] => true,
        [text] if text.contains('"') => has_tag(&[text], &validators.tag, false),
        [_] => {
            let then = date(headers, IF_RANGE);
            then.is_some() && then == validators.modified && then < Some(now)
        }
        _ => false,
    }
}

/// The one range of a Range header. Several ranges, other units and what cannot be read are
/// answered with the whole file, as the RFC allows (14.2): nobody needs two pieces of a database.
fn part(text: &str, length: u64) -> Evaluation {
    let text = text.trim();
    let Some(set) = text.get(..6).filter(|unit| unit.eq_ignore_ascii_case("bytes=")) else {
        return Evaluation::Whole;
    };
    let mut ranges = text[set.len()..].split(',').map(str::trim).filter(|one| !one.is_empty());
    let (Some(range), None) = (ranges.next(), ranges.next()) else {
        return Evaluation::Whole;
    };
    let Some((first, last)) = range.split_once('-') else {
        return Evaluation::Whole;
    };
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first > last => Evaluation::Whole,
        (Some(first), last) if last.is_some() || range.ends_with('-') => {
            if first >= length {
                return Evaluation::RangeNotSatisfiable;
            }
            Evaluation::Part(first..last.map_or(length, |last| last.saturating_add(1).min(length)))
        }
        (None, Some(count)) if first.is_empty() => match count {
            0 => Evaluation::RangeNotSatisfiable,
            // The last bytes of an empty file are the whole of it.
            _ if length == 0 => Evaluation::Whole,
            _ => Evaluation::Part(length.saturating_sub(count)..length),
        },
        _ => Evaluation::Whole,
    }
}

/// Digits as a number; one that is too large for us is larger than every file.
fn number(digits: &str) -> Option<u64> {
    let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// The lines of a header that are text; one that is not becomes empty, and so matches nothing.
fn texts(headers: &HeaderMap, name: HeaderName) -> Vec<&str> {
    headers.get_all(name).iter().map(|value| value.to_str().unwrap_or_default()).collect()
}

/// The date of a header, in seconds since 1970. One that cannot be read counts as absent.
fn date(headers: &HeaderMap, name: HeaderName) -> Option<u64> {
    let time = match texts(headers, name)[..] {
        [text] => httpdate::parse_http_date(text.trim()).ok()?,
        _ => return None,
    };
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

/// A time as headers carry it.
pub(super) fn date_text(seconds: u64) -> String {
    let time = UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    httpdate::fmt_http_date(time.unwrap_or(SystemTime::UNIX_EPOCH))
}

/// Whether a list of entity tags has `own`, or is the star. A weak tag only counts where `weak`
/// says so, because it promises less than equal bytes.
fn has_tag(lists: &[&str], own: &str, weak: bool) -> bool {
    lists.iter().any(|list| {
        if list.trim() == "*" {
            return true;
        }
        let mut rest = *list;
        loop {
            rest = rest.trim_start_matches([' ', '\t', ',']);
            let (is_weak, quoted) = match rest.strip_prefix("W/") {
                Some(quoted) => (true, quoted),
                None => (false, rest),
            };
            let inner = quoted.strip_prefix('"').and_then(|inner| inner.split_once('"'));
            let Some((tag, after)) = inner else {
                return false;
            };
            if tag == own && (weak || !is_weak) {
                return true;
            }
            rest = after;
        }
    })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    const NOW: u64 = 1_800_000_000;
    const MODIFIED: u64 = 1_700_000_000;
    const SAME: &str = "Tue, 14 Nov 2023 22:13:20 GMT";
    const BEFORE: &str = "Tue, 14 Nov 2023 22:13:19 GMT";
    const AFTER: &str = "Tue, 14 Nov 2023 22:13:21 GMT";

    fn asked(headers: &[(HeaderName, &str)]) -> Evaluation {
        asked_of(headers, 1_000, Some(MODIFIED))
    }

    fn asked_of(headers: &[(HeaderName, &str)], length: u64, modified: Option<u64>) -> Evaluation {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name.clone(), HeaderValue::from_str(value).unwrap());
        }
        let validators = Validators { tag: "ab-gzip".to_owned(), modified };
        evaluate(&map, &validators, length, true, NOW)
    }

    #[test]
    fn dates_are_written_as_they_are_read() {
        assert_eq!(date_text(MODIFIED), SAME);
        assert_eq!(date_text(u64::MAX), "Thu, 01 Jan 1970 00:00:00 GMT");
    }

    #[test]
    fn tags_decide_before_dates() {
        use Evaluation::{NotModified, PreconditionFailed, Whole};
        for (name, value, expected) in [
            (IF_NONE_MATCH, "\"ab-gzip\"", NotModified),
            (IF_NONE_MATCH, "W/\"ab-gzip\"", NotModified),
            (IF_NONE_MATCH, "\"x\", \"a,b\" ,W/\"y\",\"ab-gzip\"", NotModified),
            (IF_NONE_MATCH, "*", NotModified),
            (IF_NONE_MATCH, "\"ab\"", Whole),
            (IF_NONE_MATCH, "ab-gzip", Whole),
            (IF_NONE_MATCH, "\"ab-gzip", Whole),
            (IF_NONE_MATCH, "", Whole),
            (IF_MATCH, "\"ab-gzip\"", Whole),
            (IF_MATCH, "*", Whole),
            (IF_MATCH, "W/\"ab-gzip\"", PreconditionFailed),
            (IF_MATCH, "\"other\"", PreconditionFailed),
            (IF_MODIFIED_SINCE, SAME, NotModified),
            (IF_MODIFIED_SINCE, AFTER, NotModified),
            (IF_MODIFIED_SINCE, BEFORE, Whole),
            (IF_MODIFIED_SINCE, "Tuesday, 14-Nov-23 22:13:20 GMT", NotModified),
            (IF_MODIFIED_SINCE, "Tue Nov 14 22:13:20 2023", NotModified),
            (IF_MODIFIED_SINCE, "yesterday", Whole),
            (IF_UNMODIFIED_SINCE, SAME, Whole),
            (IF_UNMODIFIED_SINCE, BEFORE, PreconditionFailed),
            (IF_UNMODIFIED_SINCE, "yesterday", Whole),
        ] {
            assert_eq!(asked(&[(name.clone(), value)]), expected, "{name}: {value}");
        }
        let both = [(IF_NONE_MATCH, "\"x\""), (IF_MODIFIED_SINCE, AFTER)];
        assert_eq!(asked(&both), Whole);
        assert_eq!(asked(&[(IF_MATCH, "\"ab-gzip\""), (IF_UNMODIFIED_SINCE, BEFORE)]), Whole);
        assert_eq!(asked(&[(IF_NONE_MATCH, "\"x\""), (IF_NONE_MATCH, "\"ab-gzip\"")]), NotModified);
        // Without a date to tell, dates say nothing.
        assert_eq!(asked_of(&[(IF_MODIFIED_SINCE, AFTER)], 1, None), Whole);
        assert_eq!(asked_of(&[(IF_UNMODIFIED_SINCE, BEFORE)], 1, None), Whole);
    }

    #[test]
    fn one_range_is_a_part_and_the_rest_is_the_whole() {
        use Evaluation::{Part, RangeNotSatisfiable, Whole};
        for (text, expected) in [
            ("bytes=0-0", Part(0..1)),
            ("bytes=0-", Part(0..1_000)),
            ("bytes=999-", Part(999..1_000)),
            ("Bytes= 10-19 ", Part(10..20)),
            ("bytes=10-99999999999999999999999", Part(10..1_000)),
            ("bytes=-1", Part(999..1_000)),
            ("bytes=-5000", Part(0..1_000)),
            ("bytes=,5-6,", Part(5..7)),
            ("bytes=1000-", RangeNotSatisfiable),
            ("bytes=99999999999999999999999-", RangeNotSatisfiable),
            ("bytes=-0", RangeNotSatisfiable),
            ("bytes=20-10", Whole),
            ("bytes=0-1,5-6", Whole),
            ("bytes=-", Whole),
            ("bytes=1", Whole),
            ("bytes=1-x", Whole),
            ("bytes=x-1", Whole),
            ("bytes=+1-2", Whole),
            ("bytes=1--2", Whole),
            ("bytes", Whole),
            ("lines=1-2", Whole),
            ("", Whole),
        ] {
            assert_eq!(asked(&[(RANGE, text)]), expected, "{text}");
        }
        assert_eq!(asked(&[(RANGE, "bytes=0-1"), (RANGE, "bytes=0-1")]), Whole);
        assert_eq!(asked_of(&[(RANGE, "bytes=-1")], 0, None), Whole);
        assert_eq!(asked_of(&[(RANGE, "bytes=0-")], 0, None), RangeNotSatisfiable);
    }

    #[test]
    fn a_part_must_go_with_what_the_client_has() {
        let range = (RANGE, "bytes=1-2");
        for (value, is_part) in [
            ("\"ab-gzip\"", true),
            ("W/\"ab-gzip\"", false),
            ("\"ab\"", false),
            (SAME, true),
            (BEFORE, false),
            (AFTER, false),
            ("yesterday", false),
        ] {
            let expected = if is_part { Evaluation::Part(1..3) } else { Evaluation::Whole };
            assert_eq!(asked(&[range.clone(), (IF_RANGE, value)]), expected, "{value}");
        }
        // A file of this second may change again within it.
        let fresh = [range.clone(), (IF_RANGE, &*date_text(NOW))];
        assert_eq!(asked_of(&fresh, 10, Some(NOW)), Evaluation::Whole);
        assert_eq!(asked(&[range.clone(), (IF_NONE_MATCH, "*")]), Evaluation::NotModified);
        let mut map = HeaderMap::new();
        map.insert(RANGE, HeaderValue::from_static("bytes=1-2"));
        let validators = Validators { tag: String::new(), modified: None };
        assert_eq!(evaluate(&map, &validators, 10, false, NOW), Evaluation::Whole);
    }

    proptest! {
        #[test]
        fn a_part_is_never_empty_and_never_outside(text in "bytes=[0-9, -]{0,12}", length in 0_u64..50) {
            if let Evaluation::Part(range) = part(&text, length) {
                prop_assert!(range.start < range.end && range.end <= length, "{text}: {range:?}");
            }
        }
    }
}
