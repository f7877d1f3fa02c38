//! What a snapshot knows of splits. They are few beside its cells, so they are lists and no column: a
//! ranking that does not ask for them reads nothing of them.

use std::collections::HashMap;
use std::ops::Range;

use domain::adjustment::Adjustment;

use crate::limits::{SNAPSHOT_SPLITS_MAX, SNAPSHOT_UNKNOWN_MAX};

/// A split or reverse split.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// The business day on which it takes effect (ex-date), an index into the calendar.
    pub day: u32,
    /// The issue, an index into the codes.
    pub code: u32,
    /// How many shares became how many. None where the source has something that can be no factor.
    pub adjustment: Option<Adjustment>,
}

/// Days in a row for which nobody can say whether a split of an issue took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownDays {
    /// The issue, an index into the codes.
    pub code: u32,
    /// The first of these business days.
    pub first_day: u32,
    /// The last one.
    pub last_day: u32,
}

/// What a snapshot knows of splits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Splits {
    by_day: Vec<Split>,
    /// Code and day of each, ascending.
    by_code: Vec<(u32, u32)>,
    unknown: Vec<UnknownDays>,
    /// The part of `unknown` that is of one issue, for each that has one.
    by_issue: Vec<Range<usize>>,
    /// First and last of the days of `unknown` of any issue, together: they do not meet, ascending.
    any_issue: Vec<(u32, u32)>,
    /// Business days on which no issue has a row, ascending.
    gaps: Vec<u32>,
}

/// Bytes before the lists: how many splits, spans of unknown days and gaps there are.
const COUNTS_BYTES: usize = 3 * size_of::<u64>();
/// Bytes of a split: day and code, factor.
const SPLIT_BYTES: usize = 2 * size_of::<u32>() + size_of::<f64>();
/// Bytes of a span of unknown days.
const SPAN_BYTES: usize = 3 * size_of::<u32>();
/// Bytes of a gap.
const GAP_BYTES: usize = size_of::<u32>();
/// What stands for a factor that is none.
const NO_FACTOR: f64 = 0.0;

impl Splits {
    /// Takes splits by day and code, days of which nothing is known by code and day, which do not meet,
    /// and business days without any row, ascending.
    ///
    /// # Errors
    /// When they are too many or not in order.
    pub fn new(
        by_day: Vec<Split>,
        unknown: Vec<UnknownDays>,
        gaps: Vec<u32>,
    ) -> Result<Self, String> {
        let counts = [
            (by_day.len(), SNAPSHOT_SPLITS_MAX, "splits"),
            (unknown.len(), SNAPSHOT_UNKNOWN_MAX, "spans of days without known splits"),
        ];
        for (count, most, what) in counts {
            if count > most {
                return Err(format!("it has {count} {what}; at most {most} are allowed"));
            }
        }
        let in_order = by_day.is_sorted_by(|a, b| (a.day, a.code) < (b.day, b.code))
            && unknown.is_sorted_by(|a, b| (a.code, a.last_day) < (b.code, b.first_day))
            && unknown.iter().all(|span| span.first_day <= span.last_day)
            && gaps.is_sorted_by(|a, b| a < b);
        if !in_order {
            return Err("its splits are not in order".to_owned());
        }
        let mut by_code: Vec<_> = by_day.iter().map(|split| (split.code, split.day)).collect();
        by_code.sort_unstable();
        let (by_issue, any_issue) = (by_issue(&unknown), together(&unknown));
        Ok(Self { by_day, by_code, unknown, by_issue, any_issue, gaps })
    }

    /// The splits that take effect from one day to another, both included, by day and code.
    #[must_use]
    pub fn between(&self, first_day: u32, last_day: u32) -> &[Split] {
        let start = self.by_day.partition_point(|split| split.day < first_day);
        let end = self.by_day.partition_point(|split| split.day <= last_day);
        self.by_day.get(start..end).unwrap_or_default()
    }

    /// Whether a split of an issue takes effect from one day to another, both included.
    #[must_use]
    pub fn has(&self, code: u32, first_day: u32, last_day: u32) -> bool {
        let next = self.by_code.partition_point(|split| *split < (code, first_day));
        self.by_code.get(next).is_some_and(|split| *split <= (code, last_day))
    }

    /// Whether no issue has a row on one of these business days, both included: what took effect then
    /// is not known of any.
    #[must_use]
    pub fn has_gap(&self, first_day: u32, last_day: u32) -> bool {
        let next = self.gaps.partition_point(|gap| *gap < first_day);
        self.gaps.get(next).is_some_and(|gap| *gap <= last_day)
    }

    /// Whether a split of an issue may have taken effect from one day to another, both included, of
    /// which nothing is known.
    #[must_use]
    pub fn is_unknown(&self, code: u32, first_day: u32, last_day: u32) -> bool {
        let next =
            self.unknown.partition_point(|span| (span.code, span.last_day) < (code, first_day));
        let span = self.unknown.get(next).filter(|span| span.code == code);
        self.has_gap(first_day, last_day)
            || span.is_some_and(|span| meets(span, first_day, last_day))
    }

    /// The issues of which that is so beside the gaps, ascending.
    pub fn unknown_codes(&self, first_day: u32, last_day: u32) -> impl Iterator<Item = u32> {
        // Of most days everything is known.
        let next = self.any_issue.partition_point(|(_, last)| *last < first_day);
        let is_any = self.any_issue.get(next).is_some_and(|(first, _)| *first <= last_day);
        let issues = if is_any { self.by_issue.as_slice() } else { &[] };
        issues.iter().filter_map(move |issue| {
            let spans = self.unknown.get(issue.clone())?;
            let next = spans.partition_point(|span| span.last_day < first_day);
            spans.get(next).filter(|span| meets(span, first_day, last_day)).map(|span| span.code)
        })
    }

    /// All of it as bytes.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let counts = [self.by_day.len(), self.unknown.len(), self.gaps.len()];
        let mut bytes: Vec<u8> =
            counts.iter().flat_map(|count| (*count as u64).to_ne_bytes()).collect();
        for split in &self.by_day {
            bytes.extend(split.day.to_ne_bytes());
            bytes.extend(split.code.to_ne_bytes());
            let factor = split.adjustment.map_or(NO_FACTOR, Adjustment::factor);
            bytes.extend(factor.to_ne_bytes());
        }
        for UnknownDays { code, first_day, last_day } in &self.unknown {
            bytes.extend([code, first_day, last_day].into_iter().flat_map(|one| one.to_ne_bytes()));
        }
        bytes.extend(self.gaps.iter().flat_map(|gap| gap.to_ne_bytes()));
        bytes
    }

    /// Reads what [`Splits::bytes`] has written, of a grid of so many days and codes.
    pub(super) fn read(bytes: &[u8], days: usize, codes: usize) -> Result<Self, String> {
        let unreadable = || "its splits cannot be read".to_owned();
        let (counts, lists) = bytes.split_at_checked(COUNTS_BYTES).ok_or_else(unreadable)?;
        let (counts, _) = counts.as_chunks::<8>();
        let counts: Vec<_> =
            counts.iter().map(|count| usize::try_from(u64::from_ne_bytes(*count))).collect();
        let [Ok(splits), Ok(spans), Ok(gaps)] = counts[..] else { return Err(unreadable()) };
        if splits > SNAPSHOT_SPLITS_MAX
            || spans > SNAPSHOT_UNKNOWN_MAX
            || gaps > days
            || lists.len() != splits * SPLIT_BYTES + spans * SPAN_BYTES + gaps * GAP_BYTES
        {
            return Err(unreadable());
        }
        let (splits, lists) = lists.split_at(splits * SPLIT_BYTES);
        let (spans, gaps) = lists.split_at(spans * SPAN_BYTES);
        // Of thousands of splits a few dozen factors are different.
        let mut read = HashMap::new();
        let mut splits: Vec<Split> = splits
            .as_chunks::<SPLIT_BYTES>()
            .0
            .iter()
            .map(|bytes| split(bytes, &mut read))
            .collect();
        let spans: Vec<UnknownDays> = spans.as_chunks::<SPAN_BYTES>().0.iter().map(span).collect();
        let gaps = gaps.as_chunks().0.iter().map(|gap| u32::from_ne_bytes(*gap));
        let gaps: Vec<u32> = gaps.collect();
        let is_day = |day: u32| (day as usize) < days;
        let is_inside = |code: u32, day: u32| (code as usize) < codes && is_day(day);
        if !splits.iter().all(|split| is_inside(split.code, split.day))
            || !spans.iter().all(|span| is_inside(span.code, span.last_day))
            || !gaps.iter().all(|gap| is_day(*gap))
        {
            return Err(unreadable());
        }
        // An earlier version has written what is nothing but 1, read as everywhere.
        splits.retain(|split| split.adjustment.is_none_or(|adjustment| !adjustment.is_none()));
        Self::new(splits, spans, gaps)
    }
}

/// Whether one of these days is in a span that does not end before the first of them.
fn meets(span: &UnknownDays, first_day: u32, last_day: u32) -> bool {
    first_day <= last_day && span.first_day <= last_day
}

/// The part of each issue in spans by code.
fn by_issue(unknown: &[UnknownDays]) -> Vec<Range<usize>> {
    let mut end = 0;
    let issues = unknown.chunk_by(|one, next| one.code == next.code).map(|issue| {
        let start = end;
        end += issue.len();
        start..end
    });
    issues.collect()
}

/// The days of all issues together, as spans that do not meet, ascending.
fn together(unknown: &[UnknownDays]) -> Vec<(u32, u32)> {
    let mut spans: Vec<_> = unknown.iter().map(|span| (span.first_day, span.last_day)).collect();
    spans.sort_unstable();
    spans.dedup_by(|next, span| {
        let meets = next.0 <= span.1;
        if meets {
            span.1 = span.1.max(next.1);
        }
        meets
    });
    spans
}

fn number<const N: usize>(bytes: &[u8], index: usize) -> [u8; N] {
    bytes.as_chunks().0.get(index).copied().unwrap_or([0; N])
}

fn split(bytes: &[u8; SPLIT_BYTES], read: &mut HashMap<u64, Option<Adjustment>>) -> Split {
    let bits = u64::from_ne_bytes(number(bytes, 1));
    let adjustment =
        read.entry(bits).or_insert_with(|| Adjustment::of_factor(f64::from_bits(bits)));
    Split {
        day: u32::from_ne_bytes(number(bytes, 0)),
        code: u32::from_ne_bytes(number(bytes, 1)),
        adjustment: *adjustment,
    }
}

fn span(bytes: &[u8; SPAN_BYTES]) -> UnknownDays {
    let [code, first_day, last_day] =
        [0, 1, 2].map(|index| u32::from_ne_bytes(number(bytes, index)));
    UnknownDays { code, first_day, last_day }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(day: u32, code: u32, factor: f64) -> Split {
        Split { day, code, adjustment: Adjustment::of_factor(factor) }
    }

    fn unknown(code: u32, first_day: u32, last_day: u32) -> UnknownDays {
        UnknownDays { code, first_day, last_day }
    }

    fn some() -> Splits {
        let splits = vec![split(0, 3, 2.0), split(4, 1, 0.5), split(4, 3, 0.0), split(9, 1, 10.0)];
        let unknown = vec![unknown(1, 0, 2), unknown(1, 4, 4), unknown(3, 1, 6)];
        Splits::new(splits, unknown, vec![8]).unwrap()
    }

    #[test]
    fn splits_are_found_by_day_and_by_issue() {
        let splits = some();
        let days = |first, last| -> Vec<(u32, u32)> {
            splits.between(first, last).iter().map(|split| (split.day, split.code)).collect()
        };
        assert_eq!(days(0, 3), [(0, 3)]);
        assert_eq!(days(4, 4), [(4, 1), (4, 3)]);
        assert_eq!(days(5, 8), []);
        assert_eq!(days(9, 4), []);
        for (code, first, last, expected) in
            [(1, 4, 4, true), (1, 5, 8, false), (1, 5, 9, true), (2, 0, 9, false), (3, 1, 3, false)]
        {
            assert_eq!(splits.has(code, first, last), expected, "{code} {first} {last}");
        }
    }

    #[test]
    fn days_of_which_nothing_is_known_are_found_by_day_and_by_issue() {
        let splits = some();
        for (code, first, last, is_unknown) in [
            (1, 0, 2, true),
            (1, 2, 3, true),
            (1, 3, 3, false),
            (1, 3, 4, true),
            (1, 5, 7, false),
            (1, 5, 8, true),
            (2, 0, 7, false),
            (2, 8, 8, true),
            (3, 0, 0, false),
            (3, 6, 7, true),
            (3, 7, 7, false),
            (3, 3, 2, false),
            (4, 9, 9, false),
        ] {
            let about = format!("{code} {first} {last}");
            assert_eq!(splits.is_unknown(code, first, last), is_unknown, "{about}");
            assert_eq!(splits.has_gap(first, last), (first..=last).contains(&8), "{about}");
            let listed = splits.unknown_codes(first, last).any(|one| one == code);
            assert_eq!(listed || splits.has_gap(first, last), is_unknown, "{about}");
        }
        assert_eq!(splits.unknown_codes(0, 9).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(splits.any_issue, [(0, 6)], "of all issues together");
        assert_eq!(splits.unknown_codes(7, 9).count(), 0);
    }

    #[test]
    fn what_was_written_is_read_and_nothing_else() {
        for splits in [some(), Splits::default()] {
            let bytes = splits.bytes();
            assert_eq!(Splits::read(&bytes, 10, 4).unwrap(), splits);
            assert!(Splits::read(&bytes[..bytes.len() - 1], 10, 4).is_err());
        }
        assert!(Splits::read(&some().bytes(), 9, 4).is_err(), "a day outside");
        assert!(Splits::read(&some().bytes(), 10, 3).is_err(), "a code outside");
        let gap = Splits::new(Vec::new(), Vec::new(), vec![3]).unwrap().bytes();
        assert!(Splits::read(&gap, 4, 1).is_ok() && Splits::read(&gap, 3, 1).is_err());
    }

    #[test]
    fn a_factor_on_the_disk_is_read_as_everywhere() {
        let splits = vec![split(1, 0, 0.5), split(2, 0, 0.5)];
        let mut bytes = Splits::new(splits, Vec::new(), Vec::new()).unwrap().bytes();
        let mut factor = |place: usize, factor: f64| {
            let end = COUNTS_BYTES + (place + 1) * SPLIT_BYTES;
            bytes[end - size_of::<f64>()..end].copy_from_slice(&factor.to_ne_bytes());
            let read = Splits::read(&bytes, 10, 4).unwrap();
            read.between(0, 9).iter().map(|one| one.adjustment).collect::<Vec<_>>()
        };
        let (halved, third) = (Adjustment::from_terms(2, 1), Adjustment::from_terms(3, 1));
        assert_eq!(factor(0, 0.33333), [third, halved]);
        assert_eq!(factor(1, 1e300), [third, None]);
        assert_eq!(factor(0, 0.9999), [None], "no split at all");
    }

    #[test]
    fn order_and_number_are_held() {
        let new = |splits: &[Split], spans: &[UnknownDays], gaps: &[u32]| {
            Splits::new(splits.to_vec(), spans.to_vec(), gaps.to_vec()).map(drop)
        };
        let one = split(1, 1, 2.0);
        assert!(new(&[one, one], &[], &[]).is_err());
        assert!(new(&[one, split(0, 1, 2.0)], &[], &[]).is_err());
        assert!(new(&[], &[unknown(1, 2, 1)], &[]).is_err());
        assert!(new(&[], &[unknown(1, 1, 3), unknown(1, 3, 4)], &[]).is_err());
        assert!(new(&[], &[], &[2, 1]).is_err());
        let many = |count: usize| (0..count).map(|day| split(day as u32, 0, 2.0)).collect();
        assert!(Splits::new(many(SNAPSHOT_SPLITS_MAX), Vec::new(), Vec::new()).is_ok());
        let error = Splits::new(many(SNAPSHOT_SPLITS_MAX + 1), Vec::new(), Vec::new()).unwrap_err();
        assert_eq!(error, "it has 200001 splits; at most 200000 are allowed");
        let many = (0..=SNAPSHOT_UNKNOWN_MAX as u32).map(|code| unknown(code, 0, 0)).collect();
        let error = Splits::new(Vec::new(), many, Vec::new()).unwrap_err();
        let part = "1000001 spans of days without known splits; at most 1000000";
        assert!(error.contains(part), "{error}");
    }
}
