//! Columns as the page gets them: exact, and small enough for tens of thousands of rows.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::escape::write_script_json;

/// The largest integer that JavaScript's numbers hold exactly.
const JS_INTEGER_MAX: i128 = (1 << 53) - 1;

/// An integer that stays exact in JavaScript: a number where that is possible, else its digits as
/// text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exact(pub(super) i128);

impl Serialize for Exact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match i64::try_from(self.0) {
            Ok(small) if self.0.abs() <= JS_INTEGER_MAX => serializer.serialize_i64(small),
            _ => serializer.serialize_str(&self.0.to_string()),
        }
    }
}

/// Differences from one value to the next; the first from zero.
pub(super) fn differences(values: impl IntoIterator<Item = i64>) -> Vec<i64> {
    let mut last = 0;
    let difference = |value| value - std::mem::replace(&mut last, value);
    values.into_iter().map(difference).collect()
}

/// Amounts in 1/10,000 yen with the digits after the point that none of them uses cut off.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Amounts {
    /// Digits after the point that are left.
    decimals: u32,
    /// Yen times 10 to the power of `decimals`.
    values: Vec<Option<Exact>>,
}

impl Amounts {
    /// Amounts that may be missing.
    pub(super) fn new(units: &[Option<i64>]) -> Self {
        let (mut decimals, mut step) = (4, 1);
        let all_are = |step: i64| units.iter().flatten().all(|amount| amount % step == 0);
        while decimals > 0 && all_are(step * 10) {
            decimals -= 1;
            step *= 10;
        }
        let short = |amount: &Option<i64>| amount.map(|amount| Exact((amount / step).into()));
        Self { decimals, values: units.iter().map(short).collect() }
    }

    /// Amounts that are always there.
    pub(super) fn all(units: impl IntoIterator<Item = i64>) -> Self {
        Self::new(&units.into_iter().map(Some).collect::<Vec<_>>())
    }
}

/// Texts that repeat: each one once, and its index for every row.
#[derive(Debug, Default)]
pub(super) struct Words {
    indexes: BTreeMap<String, u32>,
    rows: Vec<Option<u32>>,
}

impl Words {
    pub(super) fn push(&mut self, text: Option<&str>) {
        let row = text.map(|text| match self.indexes.get(text) {
            Some(index) => *index,
            None => {
                // A page holds far fewer rows than fit.
                let index = self.indexes.len() as u32;
                self.indexes.insert(text.to_owned(), index);
                index
            }
        });
        self.rows.push(row);
    }
}

impl Serialize for Words {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut words: Vec<(&String, &u32)> = self.indexes.iter().collect();
        words.sort_unstable_by_key(|(_, index)| **index);
        let words: Vec<&String> = words.into_iter().map(|(word, _)| word).collect();
        #[derive(Serialize)]
        struct Form<'a> {
            words: Vec<&'a String>,
            rows: &'a [Option<u32>],
        }
        Form { words, rows: &self.rows }.serialize(serializer)
    }
}

/// A JSON array that is written while its values come.
#[derive(Debug)]
pub(super) struct JsonArray(Vec<u8>);

impl Default for JsonArray {
    fn default() -> Self {
        Self(vec![b'['])
    }
}

impl JsonArray {
    pub(super) fn push(&mut self, value: &impl Serialize) -> io::Result<()> {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        write_script_json(&mut self.0, value)
    }

    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.0)?;
        out.write_all(b"]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn integers_stay_exact() {
        let edge = (1_i128 << 53) - 1;
        assert_eq!(json!(Exact(edge)), json!(9_007_199_254_740_991_i64));
        assert_eq!(json!(Exact(edge + 1)), json!("9007199254740992"));
        assert_eq!(json!(Exact(-edge - 1)), json!("-9007199254740992"));
        assert_eq!(json!(Exact(u64::MAX.into())), json!("18446744073709551615"));
    }

    #[test]
    fn amounts_keep_the_digits_that_one_of_them_needs() {
        let column = |units: &[i64]| json!(Amounts::all(units.iter().copied()));
        assert_eq!(column(&[10_000, 25_000]), json!({ "decimals": 1, "values": [10, 25] }));
        assert_eq!(column(&[-10_000, 1]), json!({ "decimals": 4, "values": [-10_000, 1] }));
        assert_eq!(column(&[30_000]), json!({ "decimals": 0, "values": [3] }));
        assert_eq!(json!(Amounts::new(&[None])), json!({ "decimals": 0, "values": [null] }));
    }

    #[test]
    fn words_get_short() {
        let mut words = Words::default();
        for text in [Some("BUY"), None, Some("SELL"), Some("BUY")] {
            words.push(text);
        }
        assert_eq!(json!(words), json!({ "words": ["BUY", "SELL"], "rows": [0, null, 1, 0] }));
        assert_eq!(differences([5, 7, 6]), [5, 2, -1]);
    }
}
