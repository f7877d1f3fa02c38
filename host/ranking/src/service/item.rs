//! The rows of a ranking as the schema describes them. They are written as JSON (`crate::rows`), so the library
//! resolves none of them.

use async_graphql::SimpleObject;

/// One issue in the ranking of one day.
#[derive(SimpleObject)]
pub(super) struct DailyRankingItem {
    /// Trading day, YYYY-MM-DD.
    date: String,
    /// Issue code.
    code: String,
    /// Closing price in yen, raw: as traded, but in rows of the public source as that source adjusted it.
    /// Rows without a close have no rank.
    close: f64,
    /// Always null.
    #[graphql(deprecation = "always null; write Close[-1] in the formula instead")]
    prev_close: Option<f64>,
    /// Result of the formula or module, not rounded. Rows with null come last, in both orders.
    sort_value: Option<f64>,
    /// Volume in shares, raw.
    volume: Option<f64>,
    /// 1 to limit within each day.
    rank: i32,
    /// Whether a lag of the formula or module reaches across a split of the issue: its value compares
    /// prices from before and after the split, unless the request has `adjusted`. Null if the data has no
    /// splits, or if none is known but one may be missing (see `adjusted`).
    spans_split: Option<bool>,
    /// Name in Japanese, by the last list of issues up to the day. Null if that list lacks the issue, and
    /// on days before the first list. Later lists never count.
    name: Option<String>,
    /// Name in English, by the same list.
    name_en: Option<String>,
    /// Market by the same list, in Japanese.
    market: Option<String>,
    /// Sector of 33 by the same list, in Japanese.
    sector33: Option<String>,
}
