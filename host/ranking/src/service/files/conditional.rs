//! Conditional and range requests: whether the client wants the file at all, and which part (RFC
//! 9110, 13 and 14). A library reads the headers.

use std::ops::{Bound, Range};
use std::time::SystemTime;

use axum::http::HeaderMap;
use axum::http::header::IF_RANGE;
use headers::{
    ETag, HeaderMapExt, IfMatch, IfModifiedSince, IfNoneMatch, IfRange, IfUnmodifiedSince,
};

/// What tells states of a file apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Validators {
    /// The strong entity tag of the bytes on disk.
    pub(super) tag: ETag,
    /// Last change. None where it is not to be told: before 1970, or later than now, which no server may
    /// say (RFC 9110, 8.8.2.1).
    pub(super) modified: Option<SystemTime>,
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

/// Decides in the order of RFC 9110, 13.2.2. `length` is the file's; `ranges` whether parts are given.
pub(super) fn evaluate(
    headers: &HeaderMap,
    Validators { tag, modified }: &Validators,
    length: u64,
    ranges: bool,
) -> Evaluation {
    let is_expected = match (headers.typed_get::<IfMatch>(), modified) {
        (Some(tags), _) => tags.precondition_passes(tag),
        (None, Some(modified)) => headers
            .typed_get::<IfUnmodifiedSince>()
            .is_none_or(|then| then.precondition_passes(*modified)),
        (None, None) => true,
    };
    let is_new = match (headers.typed_get::<IfNoneMatch>(), modified) {
        (Some(tags), _) => tags.precondition_passes(tag),
        (None, Some(modified)) => {
            headers.typed_get::<IfModifiedSince>().is_none_or(|then| then.is_modified(*modified))
        }
        (None, None) => true,
    };
    // A date cannot tell that a file has not changed within its second, so it never goes with a part.
    let goes_with_part = !headers.contains_key(IF_RANGE)
        || headers.typed_get::<IfRange>().is_some_and(|known| !known.is_modified(Some(tag), None));
    match headers.typed_get::<headers::Range>() {
        _ if !is_expected => Evaluation::PreconditionFailed,
        _ if !is_new => Evaluation::NotModified,
        Some(range) if ranges && goes_with_part => part(&range, length),
        _ => Evaluation::Whole,
    }
}

/// The one range of a Range header. Several ranges, and what cannot be read, are answered with the whole file,
/// as the RFC allows (14.2): nobody needs two pieces of a database.
fn part(range: &headers::Range, length: u64) -> Evaluation {
    use Bound::{Included, Unbounded};
    let mut ranges = range.satisfiable_ranges(length);
    match (ranges.next(), ranges.next()) {
        (Some((Included(first), _)), None) if first >= length => Evaluation::RangeNotSatisfiable,
        (Some((Included(first), Included(last))), None) if first <= last => {
            Evaluation::Part(first..last.saturating_add(1).min(length))
        }
        (Some((Included(first), Unbounded)), None) => Evaluation::Part(first..length),
        _ => Evaluation::Whole,
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use axum::http::header::{
        IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE, RANGE,
    };
    use axum::http::{HeaderName, HeaderValue};
    use proptest::prelude::*;

    use super::*;

    const SAME: &str = "Tue, 14 Nov 2023 22:13:20 GMT";
    const BEFORE: &str = "Tue, 14 Nov 2023 22:13:19 GMT";

    fn asked(headers: &[(HeaderName, &str)]) -> Evaluation {
        let modified = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        asked_of(headers, 1_000, Some(modified))
    }

    fn asked_of(
        headers: &[(HeaderName, &str)],
        length: u64,
        modified: Option<SystemTime>,
    ) -> Evaluation {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name.clone(), HeaderValue::from_str(value).unwrap());
        }
        let validators = Validators { tag: "\"ab\"".parse().unwrap(), modified };
        evaluate(&map, &validators, length, true)
    }

    #[test]
    fn tags_decide_before_dates() {
        use Evaluation::{NotModified, PreconditionFailed, Whole};
        for (name, value, expected) in [
            (IF_NONE_MATCH, "\"x\", \"a,b\" ,W/\"y\",\"ab\"", NotModified),
            (IF_NONE_MATCH, "W/\"ab\"", NotModified),
            (IF_NONE_MATCH, "*", NotModified),
            (IF_NONE_MATCH, "\"abc\"", Whole),
            (IF_NONE_MATCH, "ab", Whole),
            (IF_MATCH, "\"ab\"", Whole),
            (IF_MATCH, "W/\"ab\"", PreconditionFailed),
            (IF_MATCH, "\"other\"", PreconditionFailed),
            (IF_MODIFIED_SINCE, SAME, NotModified),
            (IF_MODIFIED_SINCE, BEFORE, Whole),
            (IF_MODIFIED_SINCE, "yesterday", Whole),
            (IF_UNMODIFIED_SINCE, SAME, Whole),
            (IF_UNMODIFIED_SINCE, BEFORE, PreconditionFailed),
        ] {
            assert_eq!(asked(&[(name.clone(), value)]), expected, "{name}: {value}");
        }
        assert_eq!(asked(&[(IF_NONE_MATCH, "\"x\""), (IF_MODIFIED_SINCE, SAME)]), Whole);
        assert_eq!(asked(&[(IF_MATCH, "\"ab\""), (IF_UNMODIFIED_SINCE, BEFORE)]), Whole);
        // Without a date to tell, dates say nothing.
        assert_eq!(asked_of(&[(IF_MODIFIED_SINCE, SAME)], 1, None), Whole);
        assert_eq!(asked_of(&[(IF_UNMODIFIED_SINCE, BEFORE)], 1, None), Whole);
    }

    #[test]
    fn one_range_is_a_part_and_the_rest_is_the_whole() {
        use Evaluation::{Part, RangeNotSatisfiable, Whole};
        for (text, expected) in [
            ("bytes=0-0", Part(0..1)),
            ("bytes=999-", Part(999..1_000)),
            ("bytes=10-5000", Part(10..1_000)),
            ("bytes=-1", Part(999..1_000)),
            ("bytes=1000-", RangeNotSatisfiable),
            ("bytes=-0", RangeNotSatisfiable),
            ("bytes=-5000", Whole),
            ("bytes=20-10", Whole),
            ("bytes=0-1,5-6", Whole),
            ("bytes=-", Whole),
            ("bytes=1-x", Whole),
            ("lines=1-2", Whole),
            ("", Whole),
        ] {
            assert_eq!(asked(&[(RANGE, text)]), expected, "{text}");
        }
        let given = [(RANGE, "bytes=1-2"), (IF_NONE_MATCH, "*")];
        assert_eq!(asked(&given), Evaluation::NotModified);
    }

    #[test]
    fn a_part_must_go_with_what_the_client_has() {
        for value in ["W/\"ab\"", "\"abc\"", SAME, "yesterday"] {
            let whole = asked(&[(RANGE, "bytes=1-2"), (IF_RANGE, value)]);
            assert_eq!(whole, Evaluation::Whole, "{value}");
        }
        let same = asked(&[(RANGE, "bytes=1-2"), (IF_RANGE, "\"ab\"")]);
        assert_eq!(same, Evaluation::Part(1..3));
    }

    proptest! {
        #[test]
        fn a_part_is_never_empty_and_never_outside(text in "bytes=[0-9, -]{0,12}", length in 0_u64..50) {
            if let Evaluation::Part(range) = asked_of(&[(RANGE, &text)], length, None) {
                prop_assert!(range.start < range.end && range.end <= length, "{text}: {range:?}");
            }
        }
    }
}
