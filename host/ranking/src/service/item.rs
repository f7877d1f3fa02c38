//! The rows of a ranking as GraphQL sees them: written as JSON already, or to be resolved by the
//! library field by field.

use std::borrow::Cow;
use std::sync::Arc;

use async_graphql::parser::types::Field;
use async_graphql::registry::Registry;
use async_graphql::{
    ComplexObject, ContextSelectionSet, OutputType, Positioned, ServerResult, SimpleObject, Value,
};
use domain::JstDate;

use crate::{ListedField, ListedInfo, RankRow, Ranking};

/// One issue in the ranking of one day.
#[derive(Debug, Clone, SimpleObject)]
#[graphql(complex)]
pub(super) struct DailyRankingItem {
    /// Trading day, YYYY-MM-DD.
    pub(super) date: String,
    /// Issue code.
    pub(super) code: String,
    /// Closing price in yen, raw: as it was traded, where the source gives it so (the public one does
    /// not). Rows without one are not ranked.
    pub(super) close: f64,
    /// Always null.
    #[graphql(deprecation = "always null; write Close[-1] in the formula instead")]
    pub(super) prev_close: Option<f64>,
    /// Result of the formula or module, not rounded. Rows where it is null come last, in both orders.
    pub(super) sort_value: Option<f64>,
    /// Volume in shares, raw.
    pub(super) volume: Option<f64>,
    /// 1 to limit within each day.
    pub(super) rank: i32,
    /// Whether a lag of the formula or module reaches across a split of the issue: its value compares
    /// prices from before and after the split, unless `adjusted` was asked for. Null where the data does
    /// not tell of splits, or where none is known but one may be missing (see `adjusted`).
    pub(super) spans_split: Option<bool>,
    #[graphql(skip)]
    day: JstDate,
    #[graphql(skip)]
    listed: Arc<ListedInfo>,
}

/// What was known of the issue on the day; looked up where it is asked for.
#[ComplexObject]
impl DailyRankingItem {
    /// Name in Japanese, by the last list of issues of the day or before; null where that list does not
    /// have the issue, and on days before the first list. Later lists never count.
    async fn name(&self) -> Option<&str> {
        self.text(ListedField::Name)
    }

    /// Name in English, by the same list.
    async fn name_en(&self) -> Option<&str> {
        self.text(ListedField::NameEn)
    }

    /// Market by the same list, in Japanese.
    async fn market(&self) -> Option<&str> {
        self.text(ListedField::Market)
    }

    /// Sector of 33 by the same list, in Japanese.
    async fn sector33(&self) -> Option<&str> {
        self.text(ListedField::Sector33)
    }
}

impl DailyRankingItem {
    fn text(&self, field: ListedField) -> Option<&str> {
        self.listed.text(&self.code, self.day, field)
    }
}

/// The value of stockRankingRange; to the schema it is a list of DailyRankingItem.
pub(super) enum RankedRows {
    /// What stands for rows that are written already, until the answer is put together.
    Written(Value),
    /// Rows that the library resolves field by field.
    Library(Vec<DailyRankingItem>),
}

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
        ctx: &ContextSelectionSet<'_>,
        field: &Positioned<Field>,
    ) -> ServerResult<Value> {
        match self {
            Self::Written(value) => Ok(value.clone()),
            Self::Library(items) => OutputType::resolve(items, ctx, field).await,
        }
    }
}

/// The rows for the library.
pub(super) fn items(ranking: &Ranking, listed: &Arc<ListedInfo>) -> Vec<DailyRankingItem> {
    let item = |row: &RankRow| DailyRankingItem {
        date: ranking.days[row.day as usize].to_string(),
        code: ranking.codes[row.code as usize].to_string(),
        close: row.close,
        prev_close: None,
        sort_value: row.sort_value,
        volume: row.volume,
        rank: row.rank.cast_signed(),
        spans_split: ranking.spans_split(row),
        day: ranking.days[row.day as usize],
        listed: Arc::clone(listed),
    };
    ranking.rows.iter().map(item).collect()
}
