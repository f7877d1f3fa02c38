//! Ranges of a sweep's rows, as people write them and as files tell them: `0..100` are the first 100.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Some rows next to each other, from the first to one before the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowRange {
    start: usize,
    end: usize,
}

impl RowRange {
    /// The row after the last.
    #[must_use]
    pub const fn end(self) -> usize {
        self.end
    }

    /// The same as a range.
    #[must_use]
    pub const fn range(self) -> Range<usize> {
        self.start..self.end
    }

    /// These rows, which are in rising order, in as few ranges as there can be.
    #[must_use]
    pub fn of(rows: impl Iterator<Item = usize>) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for row in rows {
            match all.last_mut() {
                Some(last) if last.end == row => last.end = row + 1,
                _ => all.push(Self { start: row, end: row + 1 }),
            }
        }
        all
    }

    /// Some of them in words; of many only the first few.
    #[must_use]
    pub fn in_words(all: &[Self]) -> String {
        const SHOWN: usize = 8;
        let mut words: Vec<String> = all.iter().take(SHOWN).map(ToString::to_string).collect();
        if all.len() > SHOWN {
            words.push(format!("and {} more ranges", all.len() - SHOWN));
        }
        words.join(", ")
    }
}

impl fmt::Display for RowRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

impl FromStr for RowRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |part: &str| -> Option<usize> {
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse().ok().filter(|_| digits)
        };
        let pair = text.split_once("..").and_then(|(a, b)| Some((number(a)?, number(b)?)));
        match pair {
            Some((start, end)) if start <= end => Ok(Self { start, end }),
            _ => Err(format!(
                "`{text}` are no rows; write FIRST..END, like 0..100 for the first 100 rows"
            )),
        }
    }
}

impl Serialize for RowRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RowRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for RowRange {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RowRange".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": r"^[0-9]+\.\.[0-9]+$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_written() {
        let range: RowRange = "5..12".parse().unwrap();
        assert_eq!((range.range(), range.to_string()), (5..12, "5..12".to_owned()));
        assert_eq!("0..0".parse::<RowRange>().unwrap().range(), 0..0);
        for wrong in ["", "5", "5..", "..5", "6..5", "5-6", "+5..6", "5..=6", "a..b", "1..2..3"] {
            let error = wrong.parse::<RowRange>().unwrap_err();
            assert!(error.contains("write FIRST..END, like 0..100"), "{wrong}: {error}");
        }
    }

    #[test]
    fn rows_make_few_ranges() {
        let ranges = RowRange::of([0, 1, 2, 5, 7, 8].into_iter());
        assert_eq!(RowRange::in_words(&ranges), "0..3, 5..6, 7..9");
        let many = RowRange::of((0..40).step_by(2));
        assert!(RowRange::in_words(&many).ends_with("14..15, and 12 more ranges"));
    }
}
