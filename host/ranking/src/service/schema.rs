//! The GraphQL types. Their descriptions are the contract that clients read, so they state the
//! meaning of formulas and every limit that a request can meet.

use std::sync::Arc;

use async_graphql::{
    Context, EmptyMutation, EmptySubscription, InputObject, Object, Schema, SimpleObject, Value,
};

use domain::JstDate;
use pricestore::{DayDoubt, SourceRows};

use super::context::{QueryContext, blocking};
use super::item::DailyRankingItem;
use super::limits::ServiceLimits;
use super::prices::PriceOfDay;
use super::resolve::RankingArguments;
use super::stated::stated;
use crate::{FORMULA_DEFAULT, Formula, FormulaListing, limits};

/// Version of the GraphQL schema. The first number changes when a client could break.
pub const SCHEMA_VERSION: &str = "1.0";

pub(super) type RankingSchema = Schema<Query, EmptyMutation, EmptySubscription>;

/// What the present snapshot of the daily prices holds.
#[derive(Debug, Clone, SimpleObject)]
pub(super) struct Dataset {
    /// Number of the snapshot; it grows with each publication.
    snapshot: String,
    /// Name of the generation, the published files that belong together; null while the publication of
    /// this snapshot has not ended. Answers and files have it in the header Kumiki-Generation.
    generation: Option<String>,
    /// Business days.
    days: u64,
    /// Issue codes.
    codes: u64,
    /// First business day, YYYY-MM-DD; null when there is none.
    first_date: Option<String>,
    /// Last business day, YYYY-MM-DD; null when there is none.
    last_date: Option<String>,
    /// Days that were due and are not complete, ascending. They are not in the data, unless the operator
    /// accepted them. Null if `kumiki data update` did not make the data.
    incomplete_dates: Option<Vec<String>>,
    /// Business days between the first and the last that are not in the data, ascending. A lag counts
    /// them. Null as above.
    missing_dates: Option<Vec<String>>,
    /// Doubts to check before you rely on the data: published days that differ oddly from others, and
    /// refused answers. Null as above.
    doubts: Option<Vec<DatasetDoubt>>,
    /// The sources of the rows. Null as above.
    sources: Option<Vec<DatasetSource>>,
}

/// A doubt about the data.
#[derive(Debug, Clone, SimpleObject)]
pub(super) struct DatasetDoubt {
    /// The day, YYYY-MM-DD.
    date: String,
    /// The kind of doubt, like refused, short, strange or closed.
    kind: String,
    /// What was found.
    what: String,
}

impl From<&DayDoubt> for DatasetDoubt {
    fn from(doubt: &DayDoubt) -> Self {
        let DayDoubt { date, kind, what } = doubt.clone();
        Self { date, kind, what }
    }
}

/// The rows of one source.
#[derive(Debug, Clone, SimpleObject)]
pub(super) struct DatasetSource {
    /// The source, like vendor, files, web_broker or public.
    name: String,
    /// How many rows it gave.
    rows: u64,
    /// Their first day, YYYY-MM-DD.
    first_date: String,
    /// Their last day, YYYY-MM-DD.
    last_date: String,
}

impl From<SourceRows> for DatasetSource {
    fn from(source: SourceRows) -> Self {
        let SourceRows { name, rows, first, last } = source;
        Self { name, rows, first_date: first, last_date: last }
    }
}

/// Whether a text is a formula, and what it says.
#[derive(Debug, Clone, Default, SimpleObject)]
pub(super) struct FormulaCheck {
    /// Whether sortBy would accept it.
    valid: bool,
    /// The same formula in its usual spelling; null when it is not valid.
    canonical: Option<String>,
    /// The lags that it uses, in business days, ascending.
    lags: Vec<u32>,
    /// What is wrong; null when it is valid.
    message: Option<String>,
    /// The character where that is, from 1; null when it is valid.
    position: Option<u64>,
}

/// A value for a parameter of a formula module.
#[derive(Debug, Clone, InputObject)]
pub(super) struct FormulaParam {
    /// The parameter's name.
    name: String,
    /// Its value; the parameter says which are allowed.
    value: f64,
}

/// A formula module that stockRankingRange can rank by.
#[derive(Debug, Clone, SimpleObject)]
pub(super) struct FormulaModule {
    /// What the argument `formula` calls it.
    name: String,
    /// SHA-256 of its file, in hexadecimal.
    sha256: String,
    /// The author's version; null when the module cannot be used.
    version: Option<String>,
    /// What it computes; null when the module cannot be used.
    description: Option<String>,
    /// Its parameters.
    parameters: Vec<FormulaParameter>,
    /// What it reads with the default parameters, like Close or Close[-1..-20].
    inputs: Vec<String>,
    /// Why it cannot be used; null when it can.
    refused: Option<String>,
}

/// A parameter of a formula module.
#[derive(Debug, Clone, SimpleObject)]
pub(super) struct FormulaParameter {
    /// What formulaParams call it.
    name: String,
    /// What it is.
    description: String,
    /// The default value.
    default: f64,
    /// The smallest value.
    minimum: f64,
    /// The largest value.
    maximum: f64,
}

impl From<FormulaListing> for FormulaModule {
    fn from(listing: FormulaListing) -> Self {
        let empty = Self {
            name: listing.listed.name,
            sha256: listing.listed.sha256,
            version: None,
            description: None,
            parameters: Vec::new(),
            inputs: Vec::new(),
            refused: None,
        };
        let details = match listing.details {
            Ok(details) => details,
            Err(why) => return Self { refused: Some(why), ..empty },
        };
        let parameter = |one: domain::formula::FormulaParameter| FormulaParameter {
            name: one.name,
            description: one.description,
            default: one.default,
            minimum: one.minimum,
            maximum: one.maximum,
        };
        Self {
            version: Some(details.description.version),
            description: Some(details.description.summary),
            parameters: details.description.parameters.into_iter().map(parameter).collect(),
            inputs: details.inputs.iter().map(ToString::to_string).collect(),
            ..empty
        }
    }
}

/// The root of every request.
pub(super) struct Query {
    pub(super) context: Arc<QueryContext>,
}

/// Rankings of the issues of the Tokyo market, day by day, by a formula of the client.
///
/// Errors come as GraphQL errors. A client that accepts `application/json` gets HTTP status 200. A client
/// that accepts `application/graphql-response+json` gets status 294 if a requested field failed: `data` is
/// null. If nothing ran, there is no `data`: the status is 503 with BUSY and TIMEOUT, 500 with INTERNAL,
/// else 400. `extensions.code` is one of
/// FORMULA_INVALID (with `extensions.position`), FORMULA_UNKNOWN, FORMULA_PARAMS_INVALID,
/// FORMULA_REFUSED, FORMULA_FAULT (with `extensions.formula`, and `extensions.date`, the first day of
/// the range on which the module failed), ARGUMENTS_CONFLICT, ORDER_INVALID, LIMIT_INVALID, RANGE_INVALID,
/// DATE_INVALID, CODES_INVALID, SPLITS_UNKNOWN, ALIASES_EXCEEDED, QUERY_TOO_DEEP, QUERY_TOO_LARGE, BODY_TOO_LARGE,
/// RESULT_TOO_LARGE, GRAPHQL_INVALID, REQUEST_INVALID, TIMEOUT, CANCELLED, BUSY, NO_DATA,
/// SNAPSHOT_DAMAGED or INTERNAL. For every client REQUEST_INVALID has status 400, UNAUTHORIZED 401,
/// FORBIDDEN 403, METHOD 405, BODY_TOO_LARGE 413, MEDIA_TYPE 415 and NO_DATA 503. A request with a wrong
/// Host header gets status 421 as text.
///
/// Send requests by POST as JSON, or by GET with the parameters query, operationName, variables and
/// extensions. One snapshot answers a whole request.
///
/// The port of /graphql also serves the stored files to GET and HEAD: `/jp/stocks_daily/mother.db`
/// (all issues), `/jp/stocks_daily/<code>.db`, `/jp/stocks_board/<code>.db` and `/jp/listed_info.db`,
/// with ETag, Range, and gzip, br or zstd on request. `/jp/generation.json` names the files that belong
/// together, with sizes and digests. Every other path there gets 404.
///
/// Limits: {max-aliases} uses of stockRankingRange and dailyPrices in a request, {max-depth} levels,
/// {max-fields} fields, a body of {max-body} bytes, {max-rows} rows in a ranking, {timeout} seconds. The rankings
/// of a request may together take {max-memory} MB of memory. The service estimates it before it ranks, from
/// days, `limit`, fields and the longest name. RESULT_TOO_LARGE states the estimate. Operators may change
/// limits; a service states its own, here and at /schema.graphql.
#[Object]
impl Query {
    /// For every trading day from fromDate to toDate, the first `limit` issues by a formula.
    ///
    /// The formula: columns Close, Open, High, Low and Volume; a lag `Name[-N]`, the value of the
    /// same issue N business days earlier (N from 1 to {max-lag}); `+ - * / ( )`, a sign before a
    /// factor, and numbers like 12, 12.5 or .5. At most {max-formula} characters, 200 tokens, 64 nested
    /// brackets or signs and 32 different lags.
    ///
    /// Its meaning: business days are the days of the exchange's calendar, if the data has it, and all
    /// days on which an issue has a row. A lag counts each of them, also before fromDate and without a
    /// row; without a row the value is null. A column's value of 0 is null, a division by 0 is null, and
    /// a result computed from null is null. A result of 0 is a value; an infinite result is null. Numbers
    /// are IEEE doubles, computed in the order of the formula.
    ///
    /// Instead of sortBy, `formula` names a module of `formulas`, with values for its parameters. Its
    /// values mean the same: null as above, 0 is a value, infinite is null. If a module fails, the answer
    /// is an error with its name and the day, never a ranking.
    ///
    /// Prices and volumes are raw: as traded. Rows of the public source are as that source adjusted them.
    /// A lag across a split compares prices from before and after it; `spansSplit` of the row shows it.
    ///
    /// With `adjusted: true` the service adjusts values of earlier days for the splits since then, up to
    /// the ranked day and never for later ones: it multiplies prices by the factors and divides volumes.
    /// Values of the ranked day stay raw. Modules get their columns in the same way. An adjusted value is
    /// null if a factor is unknown or a split may be missing: across an unpublished business day, across a
    /// missing row of the issue or one without a factor, and to or from a row of the public source, whose
    /// own adjustments are unknown. Data without splits gives the error SPLITS_UNKNOWN.
    ///
    /// The order: by the result, null last in both directions, equal results by code, ascending.
    /// Rows without a close do not take part. When toDate is before fromDate the list is empty.
    #[allow(clippy::too_many_arguments, reason = "each is an argument of the query")]
    async fn stock_ranking_range(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "First day, YYYY-MM-DD, included.")] from_date: String,
        #[graphql(
            desc = "Last day, YYYY-MM-DD, included; at most {max-years} years after fromDate."
        )]
        to_date: String,
        #[graphql(
            desc = "The formula to sort by. Not together with `formula`.",
            default_with = "Some(FORMULA_DEFAULT.to_owned())"
        )]
        sort_by: Option<String>,
        #[graphql(
            desc = "desc (largest first) or asc (smallest first).",
            default_with = "Some(String::from(\"desc\"))"
        )]
        order: Option<String>,
        #[graphql(
            desc = "Rows of each day, 1 to {max-limit}.",
            default_with = "Some(DEFAULT_LIMIT)"
        )]
        limit: Option<i32>,
        #[graphql(desc = "The formula module to sort by. Not together with `sortBy`.")]
        formula: Option<String>,
        #[graphql(desc = "Values for parameters of the module; the others have their defaults.")]
        formula_params: Option<Vec<FormulaParam>>,
        #[graphql(
            desc = "Whether values of earlier days are adjusted for the splits since then.",
            default_with = "Some(false)"
        )]
        adjusted: Option<bool>,
    ) -> async_graphql::Result<Vec<DailyRankingItem>> {
        // An explicit null means the default, as if nothing was said.
        let arguments = RankingArguments {
            from_date,
            to_date,
            // The library puts in the default; with a module only what was sent counts.
            sort_by: sort_by.filter(|_| formula.is_none() || is_sent(ctx, "sortBy")),
            formula,
            formula_params: formula_params
                .unwrap_or_default()
                .into_iter()
                .map(|param| (param.name, param.value))
                .collect(),
            order: order.unwrap_or_else(|| "desc".to_owned()),
            limit: limit.unwrap_or(DEFAULT_LIMIT),
            adjusted: adjusted.unwrap_or(false),
        };
        // The list stands for the rows, which are written already, until the answer is put together.
        let ranked = self.context.rank(ctx, &arguments).await;
        ranked.map(|()| Vec::new()).map_err(|failure| failure.into_error())
    }

    /// One issue's daily prices from fromDate to toDate, ascending, as stored: prices before a split are
    /// not adjusted. Days without a row of the issue are left out; values that are not stored are null.
    /// When toDate is before fromDate the list is empty.
    ///
    /// A code that is not in the data is CODES_INVALID, a period of more than {max-price-days} business
    /// days is RANGE_INVALID.
    async fn daily_prices(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Issue code, as in rankings.")] code: String,
        #[graphql(desc = "First day, YYYY-MM-DD, included.")] from_date: String,
        #[graphql(
            desc = "Last day, YYYY-MM-DD, included; at most {max-price-days} business days together."
        )]
        to_date: String,
    ) -> async_graphql::Result<Vec<PriceOfDay>> {
        let found = self.context.prices(ctx, code, &from_date, &to_date).await;
        found.map_err(|failure| failure.into_error())
    }

    /// Whether a text is a formula that sortBy accepts. Nothing is computed.
    async fn check_formula(
        &self,
        #[graphql(desc = "The text to look at.")] sort_by: String,
    ) -> FormulaCheck {
        match self.context.formula(&sort_by) {
            Ok(formula) => FormulaCheck {
                valid: true,
                canonical: Some(formula.to_string()),
                lags: Formula::lags(&formula).to_vec(),
                ..FormulaCheck::default()
            },
            Err(failure) => FormulaCheck {
                message: Some(failure.message),
                position: failure.position.map(|position| position as u64),
                ..FormulaCheck::default()
            },
        }
    }

    /// The formula modules that `formula` may name, by name.
    async fn formulas(&self) -> async_graphql::Result<Vec<FormulaModule>> {
        let context = Arc::clone(&self.context);
        let listed = blocking(move || context.modules()).await;
        let listed = listed.map_err(|failure| failure.into_error())?;
        Ok(listed.into_iter().map(FormulaModule::from).collect())
    }

    /// What the data holds now.
    async fn dataset(&self, ctx: &Context<'_>) -> Dataset {
        let data = self.context.data(ctx);
        let (snapshot, status) = (data.snapshot(), data.dataset());
        let day = |date: JstDate| (snapshot.days > 0).then(|| date.to_string());
        Dataset {
            snapshot: snapshot.number.to_string(),
            generation: data.generation(),
            days: snapshot.days as u64,
            codes: snapshot.codes as u64,
            first_date: day(snapshot.first),
            last_date: day(snapshot.last),
            incomplete_dates: status
                .as_ref()
                .map(|status| status.incomplete.iter().map(|day| day.date.clone()).collect()),
            missing_dates: status.as_ref().map(|status| status.gaps.clone()),
            doubts: status
                .as_ref()
                .map(|status| status.doubts.iter().map(DatasetDoubt::from).collect()),
            sources: status
                .map(|status| status.sources.into_iter().map(DatasetSource::from).collect()),
        }
    }

    /// Version of this schema.
    async fn schema_version(&self) -> &'static str {
        SCHEMA_VERSION
    }
}

/// Whether the request itself gives an argument, and not null.
fn is_sent(ctx: &Context<'_>, name: &str) -> bool {
    let arguments = ctx.field().arguments().unwrap_or_default();
    arguments.iter().any(|(known, value)| known == name && *value != Value::Null)
}

/// The default of `limit`.
const DEFAULT_LIMIT: i32 = limits::LIMIT_DEFAULT.cast_signed();

/// The schema with its resolvers.
pub(super) fn build(context: Arc<QueryContext>) -> RankingSchema {
    let depth = context.limits.depth;
    Schema::build(Query { context }, EmptyMutation, EmptySubscription)
        .limit_depth(depth)
        .disable_suggestions()
        .finish()
}

/// The schema as text, with the limits of a service (schemas/ranking.graphql: the usual ones).
#[must_use]
pub fn sdl(limits: &ServiceLimits) -> String {
    let types = Schema::build(
        Query { context: Arc::new(QueryContext::without_data()) },
        EmptyMutation,
        EmptySubscription,
    );
    let mut text = stated(&types.finish().sdl(), limits);
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_sdl_states_the_limits_that_hold() {
        let text = |limits: &ServiceLimits| -> String {
            sdl(limits).split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let usual = text(&ServiceLimits::default());
        let changed = text(&ServiceLimits {
            aliases: 2,
            depth: 9,
            fields: 77,
            body_bytes: 1_024,
            request_timeout: Duration::from_millis(1_500),
            answer_memory: 4_000 << 20,
            answer_rows: 5,
            rank_limit: 7,
            range_years: 3,
            lag: 10,
            formula_characters: 99,
            ..ServiceLimits::default()
        });
        for (of_usual, of_changed) in [
            ("4 uses of stockRankingRange and", "2 uses of stockRankingRange and"),
            ("20 levels", "9 levels"),
            ("1,000 fields", "77 fields"),
            ("65,536 bytes", "1,024 bytes"),
            ("1,500,000 rows", "5 rows"),
            ("30 seconds", "1.5 seconds"),
            ("together take 384 MB", "together take 3,000 MB"),
            ("Rows of each day, 1 to 500.", "Rows of each day, 1 to 7."),
            ("at most 30 years", "at most 3 years"),
            ("N from 1 to 2,600", "N from 1 to 10"),
            ("1,000 characters", "99 characters"),
        ] {
            assert!(usual.contains(of_usual), "`{of_usual}` is not in\n{usual}");
            assert!(changed.contains(of_changed), "`{of_changed}` is not in\n{changed}");
        }
        for stated in [
            format!("{} tokens", limits::FORMULA_TOKENS_MAX),
            "a period of more than 2,600 business days is RANGE_INVALID".to_owned(),
            format!("{} nested", limits::FORMULA_NESTING_MAX),
            format!("{} different lags", limits::FORMULA_LAGS_MAX),
        ] {
            assert!(usual.contains(&stated), "`{stated}` is not in\n{usual}");
        }
        assert!(!changed.contains("{max-") && !changed.contains("{timeout}"), "{changed}");
    }

    #[test]
    fn the_sdl_holds_the_arguments_and_defaults_of_the_specification() {
        let text = sdl(&ServiceLimits::default());
        let flat: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "fromDate: String!",
            "toDate: String!",
            "sortBy: String = \"(Close - Close[-1]) / Close[-1] * 100\"",
            "order: String = \"desc\"",
            "limit: Int = 20",
            "adjusted: Boolean = false",
            "formula: String,",
            "formulaParams: [FormulaParam!]",
            "formulas: [FormulaModule!]!",
            "): [DailyPrice!]!",
            "): [DailyRankingItem!]!",
            "prevClose: Float @deprecated",
            "sortValue: Float",
            "volume: Float",
            "close: Float!",
            "rank: Int!",
            "spansSplit: Boolean",
        ] {
            assert!(flat.contains(part), "`{part}` is not in\n{flat}");
        }
    }
}
