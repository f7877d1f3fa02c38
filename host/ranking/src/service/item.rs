//! The rows of a ranking as the schema describes them. They are written as JSON (`crate::rows`), so the library
//! resolves none of them.

use std::borrow::Cow;

use async_graphql::parser::types::Field;
use async_graphql::registry::Registry;
use async_graphql::{
    ContextSelectionSet, OutputType, Positioned, ServerResult, SimpleObject, Value,
};

/// One issue in the ranking of one day.
#[derive(SimpleObject)]
pub(super) struct DailyRankingItem {
    /// Trading day, YYYY-MM-DD.
    date: String,
    /// Issue code.
    code: String,
    /// Closing price in yen, raw: as it was traded, where the source gives it so (the public one does
    /// not). Rows without one are not ranked.
    close: f64,
    /// Always null.
    #[graphql(deprecation = "always null; write Close[-1] in the formula instead")]
    prev_close: Option<f64>,
    /// Result of the formula or module, not rounded. Rows where it is null come last, in both orders.
    sort_value: Option<f64>,
    /// Volume in shares, raw.
    volume: Option<f64>,
    /// 1 to limit within each day.
    rank: i32,
    /// Whether a lag of the formula or module reaches across a split of the issue: its value compares
    /// prices from before and after the split, unless `adjusted` was asked for. Null where the data does
    /// not tell of splits, or where none is known but one may be missing (see `adjusted`).
    spans_split: Option<bool>,
    /// Name in Japanese, by the last list of issues of the day or before; null where that list does not
    /// have the issue, and on days before the first list. Later lists never count.
    name: Option<String>,
    /// Name in English, by the same list.
    name_en: Option<String>,
    /// Market by the same list, in Japanese.
    market: Option<String>,
    /// Sector of 33 by the same list, in Japanese.
    sector33: Option<String>,
}

/// The value of stockRankingRange, to the schema a list of DailyRankingItem: it stands for the rows until
/// the answer is put together.
pub(super) struct RankedRows;

impl OutputType for RankedRows {
    fn type_name() -> Cow<'static, str> {
        <Vec<DailyRankingItem> as OutputType>::type_name()
    }

    fn qualified_type_name() -> String {
        <Vec<DailyRankingItem> as OutputType>::qualified_type_name()
    }

    fn create_type_info(registry: &mut Registry) -> String {
        <Vec<DailyRankingItem> as OutputType>::create_type_info(registry)
    }

    async fn resolve(
        &self,
        _: &ContextSelectionSet<'_>,
        _: &Positioned<Field>,
    ) -> ServerResult<Value> {
        Ok(Value::Null)
    }
}
