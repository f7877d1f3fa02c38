//! Columns as the page gets them: exact, and small enough for tens of thousands of rows.

use std::collections::BTreeMap;

use domain::TsNanos;
use serde::{Serialize, Serializer};

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

/// Share counts.
pub(super) fn counts<T: Into<i128>>(values: impl IntoIterator<Item = T>) -> Vec<Exact> {
    values.into_iter().map(|value| Exact(value.into())).collect()
}

/// Differences from one value to the next; the first from zero.
pub(super) fn differences(values: impl IntoIterator<Item = i64>) -> Vec<i64> {
    let mut last = 0;
    let difference = |value| value - std::mem::replace(&mut last, value);
    values.into_iter().map(difference).collect()
}

/// Microseconds since 1970, each as the difference from the one before.
pub(super) fn times<'a>(values: impl IntoIterator<Item = &'a TsNanos>) -> Vec<i64> {
    differences(values.into_iter().map(|moment| (moment.nanos() / 1_000).cast_signed()))
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
    pub(super) fn new(units: impl IntoIterator<Item = Option<i64>>) -> Self {
        let units: Vec<Option<i64>> = units.into_iter().collect();
        let (mut decimals, mut step) = (4, 1);
        let all_are = |step: i64| units.iter().flatten().all(|amount| amount % step == 0);
        while decimals > 0 && all_are(step * 10) {
            decimals -= 1;
            step *= 10;
        }
        let short = |amount: Option<i64>| amount.map(|amount| Exact((amount / step).into()));
        Self { decimals, values: units.into_iter().map(short).collect() }
    }

    /// Amounts that are always there.
    pub(super) fn all(units: impl IntoIterator<Item = i64>) -> Self {
        Self::new(units.into_iter().map(Some))
    }
}

/// Texts that repeat: each one once, and its place for every row.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Words<'a> {
    words: Vec<&'a str>,
    rows: Vec<Option<usize>>,
}

impl<'a> Words<'a> {
    /// Texts that may be missing.
    pub(super) fn new(texts: impl IntoIterator<Item = Option<&'a str>>) -> Self {
        let (mut column, mut places) = (Self::default(), BTreeMap::new());
        for text in texts {
            let row = text.map(|text| {
                *places.entry(text).or_insert_with(|| {
                    column.words.push(text);
                    column.words.len() - 1
                })
            });
            column.rows.push(row);
        }
        column
    }

    /// Texts that are always there.
    pub(super) fn all(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self::new(texts.into_iter().map(Some))
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
        assert_eq!(json!(Amounts::new([None])), json!({ "decimals": 0, "values": [null] }));
    }

    #[test]
    fn times_and_words_get_short() {
        let moments = [5_000_000, 7_000_999].map(TsNanos::from_nanos);
        assert_eq!(times(&moments), [5_000, 2_000]);
        assert_eq!(
            json!(Words::new([Some("BUY"), None, Some("SELL"), Some("BUY")])),
            json!({ "words": ["BUY", "SELL"], "rows": [0, null, 1, 0] })
        );
    }
}
