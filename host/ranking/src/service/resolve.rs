//! What a ranking field is answered with: arguments checked, the engine asked, rows written.

use std::sync::Arc;

use async_graphql::Context;
use domain::JstDate;

use super::analysis::fields;
use super::backend::Backend;
use super::body::WrittenRows;
use super::context::{QueryContext, RequestData, blocking};
use super::failure::Failure;
use super::memory::Reservation;
use super::metrics::GaugeGuard;
use crate::blocks::Blocks;
use crate::formula::FORMULA_DEFAULT;
use crate::rows::{self, ItemField, Selection};
use crate::{BoundFormula, CancelToken, Formula, FormulaListing, RankOrder, RankQuery, SortBy};

/// The arguments of stockRankingRange, as sent.
#[derive(Clone)]
pub(super) struct RankingArguments {
    pub(super) from_date: String,
    pub(super) to_date: String,
    /// A formula's text; the default when nothing is said.
    pub(super) sort_by: Option<String>,
    /// A module's name.
    pub(super) formula: Option<String>,
    /// Values for the module's parameters.
    pub(super) formula_params: Vec<(String, f64)>,
    pub(super) order: String,
    pub(super) limit: i32,
    pub(super) adjusted: bool,
}

impl QueryContext {
    /// The formula of a text, within the limits of the service.
    pub(super) fn formula(&self, text: &str) -> Result<Formula, Failure> {
        let limits = &self.limits;
        let too_much = |position, message: String| Failure {
            position: Some(position),
            ..Failure::new("FORMULA_INVALID", message)
        };
        if text.chars().nth(limits.formula_characters).is_some() {
            let most = limits.formula_characters;
            return Err(too_much(most + 1, format!("the formula has more than {most} characters")));
        }
        let formula = Formula::parse(text)?;
        match formula.lags().last() {
            Some(&lag) if lag > limits.lag => {
                let message = format!("lag {lag} is too large; it may be at most {}", limits.lag);
                Err(too_much(1, message))
            }
            _ => Ok(formula),
        }
    }

    /// A module with its parameters, within the limits of the service.
    fn module(&self, name: &str, params: &[(String, f64)]) -> Result<BoundFormula, Failure> {
        let registry = self.formulas.as_ref().ok_or_else(|| {
            Failure::new("FORMULA_UNKNOWN", "this service has no formula modules; use sortBy")
        })?;
        let bound = registry.bind(name, params).map_err(Failure::report)?;
        let (reach, most) = (bound.reach(), self.limits.lag);
        if reach > most {
            let message =
                format!("formula `{name}` would look back {reach} days; it may be at most {most}");
            return Err(Failure::new("FORMULA_PARAMS_INVALID", message));
        }
        Ok(bound)
    }

    /// The modules that clients may rank by.
    pub(super) fn modules(&self) -> Result<Vec<FormulaListing>, Failure> {
        let registry = self.formulas.as_ref();
        registry.map_or(Ok(Vec::new()), |registry| registry.list().map_err(Failure::report))
    }

    /// What to sort by: a formula's text or a module, never both.
    fn sort_by(&self, arguments: &RankingArguments) -> Result<SortBy, Failure> {
        let conflict = |message: &str| Err(Failure::new("ARGUMENTS_CONFLICT", message));
        match (&arguments.formula, &arguments.sort_by) {
            (Some(_), Some(_)) => conflict("sortBy and formula are both given; use one"),
            (Some(name), None) => Ok(self.module(name, &arguments.formula_params)?.into()),
            (None, _) if !arguments.formula_params.is_empty() => {
                conflict("formulaParams are given without formula; name a formula module")
            }
            (None, text) => Ok(self.formula(text.as_deref().unwrap_or(FORMULA_DEFAULT))?.into()),
        }
    }

    fn query(&self, arguments: &RankingArguments) -> Result<RankQuery, Failure> {
        let (from, to) =
            (date("fromDate", &arguments.from_date)?, date("toDate", &arguments.to_date)?);
        let years = self.limits.range_years;
        if let Some(last) = from.checked_add_months(chrono::Months::new(12 * years))
            && to > last
        {
            return Err(Failure::new(
                "RANGE_INVALID",
                format!("{from} to {to} is more than {years} years; ask for a shorter range"),
            ));
        }
        let most = self.limits.rank_limit;
        let limit = u32::try_from(arguments.limit).ok().filter(|limit| (1..=most).contains(limit));
        let limit = limit.ok_or_else(|| {
            let found = arguments.limit;
            Failure::new("LIMIT_INVALID", format!("limit is {found}; write 1 to {most}"))
        })?;
        let order: RankOrder = arguments.order.parse()?;
        let sort_by = self.sort_by(arguments)?;
        let adjusted = arguments.adjusted;
        Ok(RankQuery { from, to, sort_by, order, limit, codes: None, adjusted })
    }

    /// Ranks in a thread that may block. Who drops the future ends the query.
    pub(super) async fn rank(
        self: &Arc<Self>,
        ctx: &Context<'_>,
        arguments: &RankingArguments,
    ) -> Result<(), Failure> {
        let query = match &arguments.formula {
            None => self.query(arguments)?,
            // A module may have to be read and compiled first.
            Some(_) => {
                let (context, arguments) = (Arc::clone(self), arguments.clone());
                blocking(move || context.query(&arguments)).await?
            }
        };
        let Some(selection) = selection(ctx)? else { return Ok(()) };
        let cancel = CancelToken::new();
        let _guard = cancel.cancel_on_drop();
        let (context, data) = (Arc::clone(self), self.data(ctx));
        // The work goes on for a moment when its client goes away, and so long it holds its memory.
        let memory = ctx.data_opt::<Arc<Reservation>>().cloned();
        let work = move || {
            let _memory = memory;
            context.rank_blocking(&*data, &query, &cancel, &selection)
        };
        let rows = blocking(work).await?;
        let written = ctx.data::<Arc<WrittenRows>>();
        let written = written
            .map_err(|_| Failure::new("INTERNAL", "the request has no place for its rows"))?;
        written.put(ctx.item.node.response_key().node.clone(), rows);
        Ok(())
    }

    /// The data that a request sees.
    pub(super) fn data(&self, ctx: &Context<'_>) -> Arc<dyn Backend> {
        let pinned = ctx.data_opt::<RequestData>();
        pinned.map_or_else(|| Arc::clone(&self.backend), |data| Arc::clone(&data.0))
    }

    fn rank_blocking(
        &self,
        data: &dyn Backend,
        query: &RankQuery,
        cancel: &CancelToken,
        selection: &Selection,
    ) -> Result<Blocks, Failure> {
        let _active = GaugeGuard::new(&self.metrics.active);
        let ranking = data.rank(query, cancel).map_err(Failure::report)?;
        let (found, most) = (ranking.rows.len(), self.limits.answer_rows);
        if found > most {
            return Err(Failure::new(
                "RESULT_TOO_LARGE",
                format!(
                    "the ranking has {found} rows and an answer may have {most}; ask for fewer \
                     days or a lower limit"
                ),
            ));
        }
        self.metrics.rows.inc_by(found as u64);
        Ok(rows::json(&ranking, &data.listed(), selection))
    }
}

/// A day of an argument.
pub(super) fn date(name: &str, text: &str) -> Result<JstDate, Failure> {
    // The library reads other forms of a day too; only one of them is written back the same.
    let parsed = text.parse::<JstDate>().ok().filter(|day| day.to_string() == text);
    parsed.ok_or_else(|| {
        let found = crate::text::excerpt(text);
        Failure::new(
            "DATE_INVALID",
            format!("{name} is `{found}`; write a day as YYYY-MM-DD, like 2024-01-31"),
        )
    })
}

/// The fields of the rows, each name once. A ranking may be asked for in pieces under one key (GraphQL 6.3.2):
/// the first piece has the fields of all, and the others have none.
fn selection(ctx: &Context<'_>) -> Result<Option<Selection>, Failure> {
    let fragments = &ctx.query_env.fragments;
    let key = &ctx.item.node.response_key().node;
    let mut pieces = fields(fragments, &ctx.query_env.operation.node.selection_set.node);
    pieces.retain(|piece| piece.node.response_key().node == *key);
    if pieces.first().is_none_or(|first| first.pos != ctx.item.pos) {
        return Ok(None);
    }
    let mut selection = Selection::new();
    for field in pieces.iter().flat_map(|piece| fields(fragments, &piece.node.selection_set.node)) {
        let name = field.node.response_key().node.as_str();
        // Twice the same name is the same field: validation saw to that (GraphQL 5.3.2).
        if !selection.iter().any(|(known, _)| known == name) {
            let known = ItemField::named(&field.node.name.node);
            let unknown = || Failure::new("INTERNAL", "a field of the rows cannot be written");
            selection.push((name.to_owned(), known.ok_or_else(unknown)?));
        }
    }
    Ok(Some(selection))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments() -> RankingArguments {
        RankingArguments {
            from_date: "2000-01-01".to_owned(),
            to_date: "2030-01-01".to_owned(),
            sort_by: Some("Close".to_owned()),
            formula: None,
            formula_params: Vec::new(),
            order: "desc".to_owned(),
            limit: 500,
            adjusted: false,
        }
    }

    #[test]
    fn dates_have_one_form() {
        assert_eq!(date("fromDate", "2024-02-29").unwrap().to_string(), "2024-02-29");
        for wrong in ["", "2024-2-9", "2023-02-29", "2024-01-01x", "２024-01", "+024-01-01"] {
            let failure = date("fromDate", wrong).unwrap_err();
            assert_eq!(failure.code, "DATE_INVALID", "{wrong}");
            assert!(failure.message.starts_with("fromDate is `"), "{}", failure.message);
        }
    }

    #[test]
    fn arguments_have_limits() {
        let context = QueryContext::without_data();
        let check = |change: fn(&mut RankingArguments)| {
            let mut arguments = arguments();
            change(&mut arguments);
            context.query(&arguments).map(|query| query.limit).map_err(|failure| failure.code)
        };
        assert_eq!(check(|_| {}), Ok(500));
        assert_eq!(check(|arguments| arguments.limit = 501), Err("LIMIT_INVALID"));
        assert_eq!(check(|arguments| arguments.limit = 0), Err("LIMIT_INVALID"));
        assert_eq!(check(|arguments| arguments.limit = -1), Err("LIMIT_INVALID"));
        assert_eq!(check(|arguments| arguments.order = "DESC".to_owned()), Err("ORDER_INVALID"));
        assert_eq!(
            check(|arguments| arguments.to_date = "2030-01-02".to_owned()),
            Err("RANGE_INVALID")
        );
        assert_eq!(
            check(|arguments| arguments.sort_by = Some("Close;".to_owned())),
            Err("FORMULA_INVALID")
        );
        assert_eq!(check(|arguments| arguments.sort_by = Some("Close[-2600]".to_owned())), Ok(500));
        assert_eq!(
            check(|arguments| arguments.sort_by = Some("Close[-2601]".to_owned())),
            Err("FORMULA_INVALID")
        );
        assert_eq!(
            check(|arguments| arguments.sort_by = Some(format!("Close{}", " ".repeat(995)))),
            Ok(500)
        );
        assert_eq!(
            check(|arguments| arguments.sort_by = Some(format!("Close{}", " ".repeat(996)))),
            Err("FORMULA_INVALID")
        );
    }

    #[test]
    fn a_formula_and_a_module_exclude_each_other() {
        let context = QueryContext::without_data();
        let code = |sort_by: Option<&str>, formula: Option<&str>, params: &[(&str, f64)]| {
            let arguments = RankingArguments {
                sort_by: sort_by.map(str::to_owned),
                formula: formula.map(str::to_owned),
                formula_params: params.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect(),
                ..arguments()
            };
            context
                .query(&arguments)
                .map(|query| query.sort_by.to_string())
                .map_err(|failure| failure.code)
        };
        assert_eq!(code(None, None, &[]), Ok(FORMULA_DEFAULT.to_owned()));
        assert_eq!(code(Some("Close"), Some("mine"), &[]), Err("ARGUMENTS_CONFLICT"));
        assert_eq!(code(None, None, &[("a", 1.0)]), Err("ARGUMENTS_CONFLICT"));
        assert_eq!(code(None, Some("mine"), &[]), Err("FORMULA_UNKNOWN"));
    }
}
