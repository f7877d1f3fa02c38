//! The splits of a snapshot. They are few beside its cells, so they are a list and no column: a
//! ranking that does not ask for them reads nothing of them.

use crate::limits::SNAPSHOT_SPLITS_MAX;

/// A split or reverse split.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// The business day on which it takes effect (ex-date), an index into the calendar.
    pub day: u32,
    /// The issue, an index into the codes.
    pub code: u32,
    /// Earlier prices times this compare with later ones: 0.5 where one share became two. None where
    /// the source has something that is no finite number above 0.
    pub factor: Option<f64>,
}

/// Days in a row on which an issue's rows were adjusted by their source, which does not say for which
/// splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdjustedRows {
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
    adjusted_rows: Vec<AdjustedRows>,
}

/// Bytes before the lists: how many splits and how many spans of adjusted rows there are.
const COUNTS_BYTES: usize = 2 * size_of::<u64>();
/// Bytes of a split: day and code, factor.
const SPLIT_BYTES: usize = 2 * size_of::<u32>() + size_of::<f64>();
/// Bytes of a span of adjusted rows.
const SPAN_BYTES: usize = 3 * size_of::<u32>();
/// What stands for a factor that is none.
const NO_FACTOR: f64 = 0.0;

impl Splits {
    /// Takes splits by day and code, and spans of adjusted rows by code and day, which do not meet.
    ///
    /// # Errors
    /// When they are too many or not in order.
    pub fn new(by_day: Vec<Split>, adjusted_rows: Vec<AdjustedRows>) -> Result<Self, String> {
        let count = by_day.len().max(adjusted_rows.len());
        if count > SNAPSHOT_SPLITS_MAX {
            return Err(format!(
                "it has {count} splits; at most {SNAPSHOT_SPLITS_MAX} are allowed"
            ));
        }
        let in_order = by_day.is_sorted_by(|a, b| (a.day, a.code) < (b.day, b.code))
            && adjusted_rows.is_sorted_by(|a, b| (a.code, a.last_day) < (b.code, b.first_day))
            && adjusted_rows.iter().all(|span| span.first_day <= span.last_day);
        if !in_order {
            return Err("its splits are not in order".to_owned());
        }
        let mut by_code: Vec<_> = by_day.iter().map(|split| (split.code, split.day)).collect();
        by_code.sort_unstable();
        Ok(Self { by_day, by_code, adjusted_rows })
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

    /// Whether the row of an issue on a day was adjusted by its source. Known of issues that have a
    /// split; of others it makes no difference.
    #[must_use]
    pub fn is_adjusted(&self, code: u32, day: u32) -> bool {
        let next =
            self.adjusted_rows.partition_point(|span| (span.code, span.last_day) < (code, day));
        let span = self.adjusted_rows.get(next);
        span.is_some_and(|span| span.code == code && span.first_day <= day)
    }

    /// All of it as bytes.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let counts = [self.by_day.len() as u64, self.adjusted_rows.len() as u64];
        let mut bytes: Vec<u8> = counts.iter().flat_map(|count| count.to_ne_bytes()).collect();
        for split in &self.by_day {
            bytes.extend(split.day.to_ne_bytes());
            bytes.extend(split.code.to_ne_bytes());
            bytes.extend(split.factor.unwrap_or(NO_FACTOR).to_ne_bytes());
        }
        for AdjustedRows { code, first_day, last_day } in &self.adjusted_rows {
            bytes.extend([code, first_day, last_day].into_iter().flat_map(|one| one.to_ne_bytes()));
        }
        bytes
    }

    /// Reads what [`Splits::bytes`] has written, of a grid of so many days and codes.
    pub(super) fn read(bytes: &[u8], days: usize, codes: usize) -> Result<Self, String> {
        let unreadable = || "its splits cannot be read".to_owned();
        let (counts, lists) = bytes.split_at_checked(COUNTS_BYTES).ok_or_else(unreadable)?;
        let (counts, _) = counts.as_chunks::<8>();
        let counts: Vec<_> =
            counts.iter().map(|count| usize::try_from(u64::from_ne_bytes(*count))).collect();
        let [Ok(splits), Ok(spans)] = counts[..] else { return Err(unreadable()) };
        if splits.max(spans) > SNAPSHOT_SPLITS_MAX
            || lists.len() != splits * SPLIT_BYTES + spans * SPAN_BYTES
        {
            return Err(unreadable());
        }
        let (splits, spans) = lists.split_at(splits * SPLIT_BYTES);
        let splits: Vec<Split> = splits.as_chunks::<SPLIT_BYTES>().0.iter().map(split).collect();
        let spans: Vec<AdjustedRows> = spans.as_chunks::<SPAN_BYTES>().0.iter().map(span).collect();
        let is_inside = |code: u32, day: u32| (code as usize) < codes && (day as usize) < days;
        if !splits.iter().all(|split| is_inside(split.code, split.day))
            || !spans.iter().all(|span| is_inside(span.code, span.last_day))
        {
            return Err(unreadable());
        }
        Self::new(splits, spans)
    }
}

fn number<const N: usize>(bytes: &[u8], index: usize) -> [u8; N] {
    bytes.as_chunks().0.get(index).copied().unwrap_or([0; N])
}

fn split(bytes: &[u8; SPLIT_BYTES]) -> Split {
    let factor = f64::from_ne_bytes(number(bytes, 1));
    Split {
        day: u32::from_ne_bytes(number(bytes, 0)),
        code: u32::from_ne_bytes(number(bytes, 1)),
        factor: (factor != NO_FACTOR).then_some(factor),
    }
}

fn span(bytes: &[u8; SPAN_BYTES]) -> AdjustedRows {
    let [code, first_day, last_day] =
        [0, 1, 2].map(|index| u32::from_ne_bytes(number(bytes, index)));
    AdjustedRows { code, first_day, last_day }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(day: u32, code: u32, factor: f64) -> Split {
        Split { day, code, factor: (factor > 0.0).then_some(factor) }
    }

    fn rows(code: u32, first_day: u32, last_day: u32) -> AdjustedRows {
        AdjustedRows { code, first_day, last_day }
    }

    fn some() -> Splits {
        let splits = vec![split(0, 3, 2.0), split(4, 1, 0.5), split(4, 3, 0.0), split(9, 1, 10.0)];
        Splits::new(splits, vec![rows(1, 0, 2), rows(1, 4, 4), rows(3, 1, 9)]).unwrap()
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
    fn rows_that_their_source_adjusted_are_known() {
        let splits = some();
        for (code, first, last, expected) in
            [(1, 0, 2, true), (1, 3, 3, false), (1, 4, 4, true), (1, 5, 9, false), (2, 0, 9, false)]
        {
            for day in first..=last {
                assert_eq!(splits.is_adjusted(code, day), expected, "{code} {day}");
            }
        }
        assert!(!splits.is_adjusted(3, 0) && splits.is_adjusted(3, 9));
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
    }

    #[test]
    fn order_and_number_are_held() {
        let new = |splits: &[Split], spans: &[AdjustedRows]| {
            Splits::new(splits.to_vec(), spans.to_vec()).map(drop)
        };
        let one = split(1, 1, 2.0);
        assert!(new(&[one, one], &[]).is_err());
        assert!(new(&[one, split(0, 1, 2.0)], &[]).is_err());
        assert!(new(&[], &[rows(1, 2, 1)]).is_err());
        assert!(new(&[], &[rows(1, 1, 3), rows(1, 3, 4)]).is_err());
        let many = |count: usize| (0..count).map(|day| split(day as u32, 0, 2.0)).collect();
        assert!(Splits::new(many(SNAPSHOT_SPLITS_MAX), Vec::new()).is_ok());
        let error = Splits::new(many(SNAPSHOT_SPLITS_MAX + 1), Vec::new()).unwrap_err();
        assert_eq!(error, "it has 200001 splits; at most 200000 are allowed");
    }
}
