//! What a request asks for, before anything of it runs: its rankings, and the memory that its answer may
//! take, by its arguments, its fields and what the snapshot holds.
//!
//! The library checks types and depth. It walks through a fragment wherever it is used, before it compares
//! anything with its limits, so what multiplies is counted here first.

use std::collections::HashMap;

use async_graphql::parser::types::{
    ExecutableDocument, Field, FragmentDefinition, OperationDefinition, Selection, SelectionSet,
    VariableDefinition,
};
use async_graphql::{Name, Positioned, Value, Variables};
use domain::JstDate;

use super::backend::Backend;
use super::failure::Failure;
use super::limits::{BRACKETS, FRAGMENTS, INTROSPECTION_LISTS, PRICE_DAY_BYTES, ServiceLimits};
use crate::limits::{LIMIT_DEFAULT, PRICE_DAYS_MAX};
use crate::listed::LISTED_FIELDS;
use crate::rows::ItemField;
use crate::{RankRow, SnapshotInfo};

/// The name of the ranking field.
const RANKING_FIELD: &str = "stockRankingRange";
/// The name of the field of one issue's prices.
const PRICES_FIELD: &str = "dailyPrices";
/// What every answer takes besides its rows.
const ENVELOPE_BYTES: u64 = 16 * 1024;
/// Bytes of a key beside its letters, as in `,"key":`.
const KEY_BYTES: u64 = 4;
/// Bytes of a row beside its keys and values, as in `,{}`.
const ROW_BYTES: u64 = 3;

/// What a request asks for.
#[derive(Debug, Default, PartialEq)]
pub(super) struct RequestAnalysis {
    /// Response keys of the root, in the order asked.
    pub(super) keys: Vec<Name>,
    /// Those of them that describe the schema.
    pub(super) introspection: Vec<Name>,
    rankings: usize,
    prices: usize,
    /// Bytes that its answer takes at most while it is made and until it is sent.
    pub(super) bytes: u64,
}

impl RequestAnalysis {
    /// Whether prices have to be read for it.
    pub(super) const fn reads_prices(&self) -> bool {
        self.rankings + self.prices > 0
    }
}

/// The fragments of a request by their names.
pub(super) type Fragments = HashMap<Name, Positioned<FragmentDefinition>>;

/// The operations that may run.
pub(super) fn operations<'a>(
    document: &'a ExecutableDocument,
    wanted: Option<&str>,
) -> Vec<&'a OperationDefinition> {
    let fits = |name: Option<&Name>| wanted.is_none_or(|wanted| name.is_some_and(|n| n == wanted));
    let all = document.operations.iter();
    all.filter(|(name, _)| fits(*name)).map(|(_, operation)| &operation.node).collect()
}

/// Refuses text that the parser could nest too deeply.
pub(super) fn check_brackets(text: &str) -> Result<(), Failure> {
    let open = text.bytes().filter(|byte| matches!(byte, b'{' | b'(' | b'['));
    if open.count() > BRACKETS {
        return Err(too_large("opens", BRACKETS, "brackets"));
    }
    Ok(())
}

/// Refuses a request that leaves out a variable which must have a value (GraphQL 6.1.2). The library
/// would notice that where the variable is used, when the request already runs.
pub(super) fn check_variables(
    operation: &OperationDefinition,
    sent: &Variables,
) -> Result<(), Failure> {
    for definition in &operation.variable_definitions {
        let name = &definition.node.name.node;
        let is_missing = sent.get(name).is_none_or(|value| *value == Value::Null);
        if is_missing && definition.node.default_value().is_none() {
            let message = format!("the variable ${name} must have a value, and none was sent");
            return Err(Failure::new("GRAPHQL_INVALID", message));
        }
    }
    Ok(())
}

/// Analyzes the operations that may run. The others have to keep to the limits too, because the library
/// checks all of them.
pub(super) fn analyze(
    document: &ExecutableDocument,
    operation_name: Option<&str>,
    sent: &Variables,
    data: &dyn Backend,
    limits: &ServiceLimits,
) -> Result<RequestAnalysis, Failure> {
    let fragments = &document.fragments;
    if fragments.len() > FRAGMENTS {
        return Err(too_large("has", FRAGMENTS, "fragments"));
    }
    let mut count = Count { fragments, most: limits.fields, left: limits.fields };
    for operation in operations(document, None) {
        count.add(&operation.selection_set.node, 0)?;
    }
    let (snapshot, longest) = (data.snapshot(), data.listed().longest());
    let mut analysis = RequestAnalysis { bytes: ENVELOPE_BYTES, ..RequestAnalysis::default() };
    for operation in operations(document, operation_name) {
        for field in fields(fragments, &operation.selection_set.node) {
            let (field, key) = (&field.node, &field.node.response_key().node);
            if !analysis.keys.contains(key) {
                analysis.keys.push(key.clone());
            }
            let bytes = match field.name.node.as_str() {
                RANKING_FIELD => {
                    analysis.rankings += 1;
                    let argument = |name: &str| argument(field, name, operation, sent);
                    // The engine holds each row twice for a moment; afterwards it is held beside its text.
                    let row = size_of::<RankRow>() as u64;
                    let text = text_bytes(&fields(fragments, &field.selection_set.node), longest);
                    rows(argument, &snapshot, limits).saturating_mul(row + text.max(row))
                }
                PRICES_FIELD => {
                    analysis.prices += 1;
                    snapshot.days.min(PRICE_DAYS_MAX) as u64 * PRICE_DAY_BYTES
                }
                "__schema" | "__type" => {
                    analysis.introspection.push(key.clone());
                    0
                }
                _ => 0,
            };
            analysis.bytes = analysis.bytes.saturating_add(bytes);
        }
    }
    let RequestAnalysis { rankings, prices, .. } = analysis;
    if rankings + prices > limits.aliases {
        return Err(Failure::new(
            "ALIASES_EXCEEDED",
            format!(
                "the query uses {RANKING_FIELD} {rankings} times and {PRICES_FIELD} {prices} times; \
                 together at most {} in one request, send the rest in another",
                limits.aliases
            ),
        ));
    }
    Ok(analysis)
}

fn too_large(does: &str, most: usize, what: &str) -> Failure {
    Failure::new("QUERY_TOO_LARGE", format!("the query {does} more than {most} {what}"))
}

/// Counts each selection wherever it is used. So a circle of fragments has an end too.
struct Count<'a> {
    fragments: &'a Fragments,
    most: usize,
    left: usize,
}

impl Count<'_> {
    /// Counts what is inside so many lists of the introspection.
    fn add(&mut self, set: &SelectionSet, lists: usize) -> Result<(), Failure> {
        for selection in &set.items {
            self.left = match self.left.checked_sub(1) {
                Some(left) => left,
                None => return Err(too_large("selects", self.most, "fields")),
            };
            let is_list = matches!(&selection.node, Selection::Field(field)
                if is_introspection_list(&field.node.name.node));
            let lists = lists + usize::from(is_list);
            if lists > INTROSPECTION_LISTS {
                return Err(too_large("nests", INTROSPECTION_LISTS, "lists of the introspection"));
            }
            if let Some(inner) = inner(self.fragments, selection) {
                self.add(inner, lists)?;
            }
        }
        Ok(())
    }
}

/// Whether this is a field of the introspection whose values are lists of things that have lists themselves.
fn is_introspection_list(name: &str) -> bool {
    matches!(name, "types" | "fields" | "inputFields" | "args" | "interfaces" | "possibleTypes")
        || matches!(name, "enumValues" | "directives")
}

/// What a selection selects of its value. Unknown fragments are left to the library.
fn inner<'a>(
    fragments: &'a Fragments,
    selection: &'a Positioned<Selection>,
) -> Option<&'a SelectionSet> {
    let set = match &selection.node {
        Selection::Field(field) => &field.node.selection_set,
        Selection::InlineFragment(fragment) => &fragment.node.selection_set,
        Selection::FragmentSpread(spread) => {
            &fragments.get(&spread.node.fragment_name.node)?.node.selection_set
        }
    };
    Some(&set.node)
}

/// The fields of a selection, those of its fragments too. It was counted before, so it has an end.
pub(super) fn fields<'a>(
    fragments: &'a Fragments,
    set: &'a SelectionSet,
) -> Vec<&'a Positioned<Field>> {
    let of = |selection: &'a Positioned<Selection>| match &selection.node {
        Selection::Field(field) => vec![field],
        _ => inner(fragments, selection).map_or_else(Vec::new, |inner| fields(fragments, inner)),
    };
    set.items.iter().flat_map(of).collect()
}

/// An argument's value: as written, as sent, or the variable's default; none where nothing is said.
fn argument(
    field: &Field,
    name: &str,
    operation: &OperationDefinition,
    sent: &Variables,
) -> Option<Value> {
    let value = field.get_argument(name)?.node.clone();
    let variable = |name: Name| {
        let is_it =
            |definition: &&Positioned<VariableDefinition>| definition.node.name.node == name;
        let defined = operation.variable_definitions.iter().find(is_it);
        let default = defined.and_then(|definition| definition.node.default_value());
        sent.get(&name).or(default).cloned().ok_or(())
    };
    value.into_const_with(variable).ok().filter(|value| *value != Value::Null)
}

/// Rows of a ranking at most. Where its arguments are wrong it will be refused, so there are none.
fn rows(
    argument: impl Fn(&str) -> Option<Value>,
    snapshot: &SnapshotInfo,
    limits: &ServiceLimits,
) -> u64 {
    let day = |name| match argument(name) {
        Some(Value::String(text)) => text.parse::<JstDate>().ok(),
        _ => None,
    };
    let (Some(from), Some(to)) = (day("fromDate"), day("toDate")) else { return 0 };
    let (from, to) = (from.max(snapshot.first), to.min(snapshot.last));
    let days = to.signed_duration_since(from).num_days().saturating_add(1);
    let days = u64::try_from(days).unwrap_or(0).min(snapshot.days as u64);
    let limit = match argument("limit") {
        None => Some(u64::from(LIMIT_DEFAULT)),
        Some(Value::Number(number)) => number.as_u64(),
        Some(_) => None,
    };
    let limit = limit.filter(|limit| *limit <= u64::from(limits.rank_limit)).unwrap_or(0);
    days.saturating_mul(limit.min(snapshot.codes as u64))
}

/// Bytes that a row takes at most as JSON. `longest` are those of the longest name, market and sector.
fn text_bytes(selected: &[&Positioned<Field>], longest: [u64; LISTED_FIELDS]) -> u64 {
    let bytes = |field: &&Positioned<Field>| {
        let value = match ItemField::named(&field.node.name.node) {
            Some(ItemField::Listed(text)) => longest[text as usize],
            Some(other) => other.bytes_max(),
            None => 0,
        };
        field.node.response_key().node.len() as u64 + KEY_BYTES + value
    };
    ROW_BYTES + selected.iter().map(bytes).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_graphql::parser::parse_query;
    use serde_json::{Value as Json, json};

    use super::super::limits::STACK_BYTES;
    use super::*;
    use crate::{CancelToken, RankError, RankQuery, Ranking};

    /// A quarter of a year of a thousand issues.
    struct Known;

    impl Backend for Known {
        fn rank(&self, _: &RankQuery, _: &CancelToken) -> Result<Ranking, RankError> {
            Err(RankError::Cancelled)
        }

        fn snapshot(&self) -> SnapshotInfo {
            let (first, last) = ("2024-01-04".parse().unwrap(), "2024-03-29".parse().unwrap());
            SnapshotInfo { number: 1, days: 58, codes: 1_000, first, last, refused: None }
        }

        fn pinned(self: Arc<Self>) -> Arc<dyn Backend> {
            self
        }
    }

    fn analyzed(
        text: &str,
        name: Option<&str>,
        variables: Json,
    ) -> Result<RequestAnalysis, &'static str> {
        let document = parse_query(text).unwrap();
        let (sent, limits) = (Variables::from_json(variables), ServiceLimits::default());
        analyze(&document, name, &sent, &Known, &limits).map_err(|failure| failure.code)
    }

    fn look(text: &str) -> Result<RequestAnalysis, &'static str> {
        analyzed(text, None, json!({}))
    }

    fn bytes(text: &str, variables: Json) -> u64 {
        analyzed(text, None, variables).unwrap().bytes - ENVELOPE_BYTES
    }

    #[test]
    fn keys_keep_their_order_and_rankings_are_counted() {
        let found = look(
            "{ b: stockRankingRange { date } s: __schema { a } ...F ...F } fragment F on Query { \
             stockRankingRange { date } }",
        );
        let found = found.unwrap();
        assert_eq!(found.keys, ["b", "s", "stockRankingRange"].map(Name::new));
        assert_eq!((found.introspection, found.rankings), (vec![Name::new("s")], 3));
    }

    #[test]
    fn the_fifth_ranking_is_refused() {
        let uses = |rankings: usize, prices: usize| {
            let ranking = |index| format!("a{index}: stockRankingRange {{ date }} ");
            let price = |index| format!("p{index}: dailyPrices {{ date }} ");
            let fields: String = (0..rankings).map(ranking).chain((0..prices).map(price)).collect();
            look(&format!("{{ {fields} }}")).map(|found| (found.rankings, found.prices))
        };
        assert_eq!((uses(4, 0), uses(1, 3)), (Ok((4, 0)), Ok((1, 3))));
        assert_eq!((uses(5, 0), uses(1, 4)), (Err("ALIASES_EXCEEDED"), Err("ALIASES_EXCEEDED")));
    }

    #[test]
    fn what_multiplies_or_turns_in_circles_is_refused() {
        let mut text = String::from("{ stockRankingRange { ...F0 } }");
        for level in 0..12 {
            let next = level + 1;
            text += &format!(" fragment F{level} on DailyRankingItem {{ ...F{next} ...F{next} }}");
        }
        text += " fragment F12 on DailyRankingItem { date }";
        assert_eq!(look(&text), Err("QUERY_TOO_LARGE"));
        let circle = "{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }";
        assert_eq!(look(circle), Err("QUERY_TOO_LARGE"));
        let many: String =
            (0..=FRAGMENTS).map(|at| format!(" fragment F{at} on Query {{ a }}")).collect();
        assert_eq!(look(&format!("{{ a }}{many}")), Err("QUERY_TOO_LARGE"));
        // Another operation than the one that runs counts too.
        let others: String = (0..300).map(|at| format!(" query Q{at} {{ a b c d }}")).collect();
        let text = format!("query Q {{ schemaVersion }}{others}");
        assert_eq!(analyzed(&text, Some("Q"), json!({})), Err("QUERY_TOO_LARGE"));
        assert_eq!(check_brackets(&"[".repeat(BRACKETS)), Ok(()));
        assert!(check_brackets(&"{(".repeat(BRACKETS)).is_err());
    }

    #[test]
    fn a_thread_has_the_stack_for_so_many_brackets() {
        let parse = || {
            for (open, close) in [("{ a", "}"), ("[", "]"), ("{ a: ", "}")] {
                let (open, close) = (open.repeat(BRACKETS - 2), close.repeat(BRACKETS - 2));
                for text in [
                    format!("{open}{close}"),
                    format!("{{ a(b: {open}1{close}) }}"),
                    format!("query($a: {open}Int{close}) {{ a }}"),
                    format!("{{ a(b: {open}"),
                ] {
                    assert_eq!(check_brackets(&text), Ok(()));
                    // Whether it is a query does not matter, only that the parser comes back.
                    drop(parse_query(&text));
                }
            }
        };
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(parse).unwrap();
        thread.join().unwrap();
    }

    #[test]
    fn introspection_is_not_a_lever() {
        let lists = |count: usize| {
            let open = "fields { type { ".repeat(count);
            look(&format!(
                "{{ __type(name: \"Query\") {{ {open} name {} }} }}",
                "} }".repeat(count)
            ))
        };
        assert!(lists(4).is_ok());
        assert_eq!(lists(5), Err("QUERY_TOO_LARGE"));
    }

    #[test]
    fn days_limits_and_fields_count() {
        const RANK: u64 = ROW_BYTES + 4 + KEY_BYTES + 10;
        let row = size_of::<RankRow>() as u64;
        let rows = |arguments: &str| {
            let query = format!("{{ stockRankingRange({arguments}) {{ rank }} }}");
            bytes(&query, json!({})) / (row + RANK.max(row))
        };
        let all = "fromDate: \"2000-01-01\", toDate: \"2030-01-01\"";
        assert_eq!((rows(all), rows(&format!("{all}, limit: 500"))), (58 * 20, 58 * 500));
        assert_eq!(rows(&format!("{all}, limit: 501")), 0, "it will be refused");
        assert_eq!(rows("fromDate: \"2024-02-01\", toDate: \"2024-02-02\", limit: 3"), 6);
        assert_eq!(rows("fromDate: \"2024-02-02\", toDate: \"2024-02-01\""), 0);
        assert_eq!(rows("fromDate: \"2024-02-02\", toDate: 5"), 0);
        let query = "query($n: Int = 7, $from: String!) { stockRankingRange(fromDate: $from, \
                     toDate: \"2024-02-01\", limit: $n) { a23456789012345678901234567890: sortValue } }";
        let text = ROW_BYTES + 30 + KEY_BYTES + 24;
        assert_eq!(bytes(query, json!({ "from": "2024-02-01" })), 7 * (row + text));
        assert_eq!(bytes(query, json!({ "from": "2024-02-01", "n": 9 })), 9 * (row + text));
        let two = format!(
            "{{ a: stockRankingRange({all}) {{ ...F }} b: stockRankingRange({all}) {{ rank }} }} \
             fragment F on DailyRankingItem {{ rank }}"
        );
        assert_eq!(bytes(&two, json!({})), 2 * 58 * 20 * 2 * row);
        assert_eq!(bytes("{ dailyPrices { date } }", json!({})), 58 * PRICE_DAY_BYTES);
    }

    #[test]
    fn names_count_as_long_as_the_longest() {
        let document = parse_query("{ name other: name market sector33 rank }").unwrap();
        let set = &operations(&document, None)[0].selection_set.node;
        let keys = (4 + 5 + 6 + 8 + 4) + 5 * KEY_BYTES;
        let longest = [100, 200, 30, 4];
        let selected = fields(&document.fragments, set);
        assert_eq!(text_bytes(&selected, longest), ROW_BYTES + keys + 2 * 100 + 30 + 4 + 10);
    }
}
