//! The memory that a request's rankings may take, known before any of them runs: from its arguments,
//! its fields and what the snapshot holds.

use std::collections::BTreeMap;

use async_graphql::parser::types::{Field, OperationDefinition};
use async_graphql::{Name, Positioned, Value, Variables};
use domain::JstDate;

use super::limits::{LIBRARY_ROW_BYTES, LIBRARY_ROWS, LIBRARY_TEXT_BYTES, ServiceLimits};
use crate::limits::{LIMIT_DEFAULT, PRICE_DAYS_MAX};
use crate::listed::LISTED_FIELDS;
use crate::rows::ItemField;
use crate::{RankRow, SnapshotInfo};

/// What every answer takes besides its rows.
const ENVELOPE_BYTES: u64 = 16 * 1024;
/// Bytes of a key beside its letters, as in `,"key":`.
const KEY_BYTES: u64 = 4;
/// Bytes of a row beside its keys and values, as in `,{}`.
const ROW_BYTES: u64 = 3;

/// An argument as written.
#[derive(Debug, Clone, PartialEq)]
enum Argument {
    Value(Value),
    Variable(Name),
}

/// A use of the ranking field.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RankingUse {
    arguments: Vec<(Name, Argument)>,
    /// Bytes that a row of it takes at most as JSON, without names, markets and sectors.
    row_bytes: u64,
    /// How often a row has each of these.
    listed: [u64; LISTED_FIELDS],
}

impl RankingUse {
    pub(super) fn new<'a>(
        field: &Field,
        selected: impl Iterator<Item = &'a Positioned<Field>>,
    ) -> Self {
        let arguments = field.arguments.iter().map(|(name, value)| {
            let mut variable = None;
            let value = value.node.clone().into_const_with(|name| {
                variable = Some(name);
                Err(())
            });
            // A list or an object with a variable inside is no argument that counts here.
            let argument = match variable {
                Some(variable) => Argument::Variable(variable),
                None => Argument::Value(value.unwrap_or_default()),
            };
            (name.node.clone(), argument)
        });
        let (mut row_bytes, mut listed) = (ROW_BYTES, [0; LISTED_FIELDS]);
        for field in selected {
            let value = match ItemField::named(&field.node.name.node) {
                Some(ItemField::Listed(text)) => {
                    listed[text as usize] += 1;
                    0
                }
                Some(other) => other.bytes_max(),
                None => 0,
            };
            row_bytes += field.node.response_key().node.len() as u64 + KEY_BYTES + value;
        }
        Self { arguments: arguments.collect(), row_bytes, listed }
    }
}

/// Values of variables: those that were sent, else their defaults.
pub(super) struct VariableValues<'a> {
    sent: &'a Variables,
    defaults: BTreeMap<&'a str, &'a Value>,
}

impl<'a> VariableValues<'a> {
    pub(super) fn new(
        sent: &'a Variables,
        operations: impl Iterator<Item = &'a OperationDefinition>,
    ) -> Self {
        let definitions = operations.flat_map(|operation| &operation.variable_definitions);
        let defaults = definitions.filter_map(|definition| {
            let value = definition.node.default_value.as_ref()?;
            Some((definition.node.name.node.as_str(), &value.node))
        });
        Self { sent, defaults: defaults.collect() }
    }

    /// An argument's value; null where nothing is said.
    fn of(&self, arguments: &[(Name, Argument)], name: &str) -> Value {
        let argument = arguments.iter().find(|(known, _)| known == name);
        match argument {
            None => Value::Null,
            Some((_, Argument::Value(value))) => value.clone(),
            Some((_, Argument::Variable(variable))) => {
                let default = || self.defaults.get(variable.as_str()).copied();
                self.sent.get(variable).or_else(default).cloned().unwrap_or_default()
            }
        }
    }
}

/// Bytes that the prices of one issue take at most, so many times: the library resolves them.
pub(super) fn price_bytes(uses: usize, snapshot: &SnapshotInfo) -> u64 {
    let days = snapshot.days.min(PRICE_DAYS_MAX) as u64;
    (uses as u64).saturating_mul(days).saturating_mul(LIBRARY_ROW_BYTES)
}

/// Bytes that the answer to these uses takes at most, while it is made and until it is sent. `longest` are
/// the bytes of the longest name, market and sector.
pub(super) fn bytes(
    uses: &[RankingUse],
    merges: bool,
    values: &VariableValues<'_>,
    snapshot: &SnapshotInfo,
    longest: [u64; LISTED_FIELDS],
    limits: &ServiceLimits,
) -> u64 {
    let one = |ranking: &RankingUse| {
        let rows = rows(ranking, values, snapshot, limits);
        // The engine holds each row twice for a moment; afterwards it is held beside its text.
        let row = size_of::<RankRow>() as u64;
        let texts = ranking.listed.iter().zip(longest).map(|(times, bytes)| times * bytes);
        let texts: u64 = texts.sum();
        let text = if merges {
            let texts = texts + ranking.listed.iter().sum::<u64>() * LIBRARY_TEXT_BYTES;
            rows.min(LIBRARY_ROWS as u64).saturating_mul(LIBRARY_ROW_BYTES + texts)
        } else {
            rows.saturating_mul(ranking.row_bytes + texts)
        };
        rows.saturating_mul(row).saturating_add(text.max(rows.saturating_mul(row)))
    };
    uses.iter().map(one).fold(ENVELOPE_BYTES, u64::saturating_add)
}

/// Rows of a ranking at most. Where its arguments are wrong it will be refused, so there are none.
fn rows(
    ranking: &RankingUse,
    values: &VariableValues<'_>,
    snapshot: &SnapshotInfo,
    limits: &ServiceLimits,
) -> u64 {
    let day = |name| match values.of(&ranking.arguments, name) {
        Value::String(text) => text.parse::<JstDate>().ok(),
        _ => None,
    };
    let (Some(from), Some(to)) = (day("fromDate"), day("toDate")) else { return 0 };
    let (from, to) = (from.max(snapshot.first), to.min(snapshot.last));
    let days = to.signed_duration_since(from).num_days().saturating_add(1);
    let days = u64::try_from(days).unwrap_or(0).min(snapshot.days as u64);
    let limit = match values.of(&ranking.arguments, "limit") {
        Value::Null => u64::from(LIMIT_DEFAULT),
        Value::Number(number) => match number.as_u64() {
            Some(limit) if limit <= u64::from(limits.rank_limit) => limit,
            _ => 0,
        },
        _ => 0,
    };
    days.saturating_mul(limit.min(snapshot.codes as u64))
}

#[cfg(test)]
mod tests {
    use async_graphql::parser::parse_query;

    use super::super::analysis::analyze;
    use super::*;

    /// Bytes of the longest name, English name, market and sector.
    const LONGEST: [u64; LISTED_FIELDS] = [100, 200, 30, 4];

    fn estimated(text: &str, variables: serde_json::Value) -> u64 {
        let document = parse_query(text).unwrap();
        let limits = ServiceLimits::default();
        let analysis = analyze(&document, None, &limits).unwrap();
        let sent = Variables::from_json(variables);
        let operations = document.operations.iter().map(|(_, operation)| &operation.node);
        let values = VariableValues::new(&sent, operations);
        let (first, last) = ("2024-01-04".parse().unwrap(), "2024-03-29".parse().unwrap());
        let snapshot =
            SnapshotInfo { number: 1, days: 58, codes: 1_000, first, last, refused: None };
        bytes(&analysis.uses, analysis.merges, &values, &snapshot, LONGEST, &limits)
            - ENVELOPE_BYTES
    }

    #[test]
    fn prices_of_an_issue_count_too() {
        let day = "2024-01-04".parse().unwrap();
        let known =
            |days| SnapshotInfo { number: 1, days, codes: 9, first: day, last: day, refused: None };
        assert_eq!(price_bytes(0, &known(9)), 0);
        assert_eq!(price_bytes(2, &known(10)), 20 * LIBRARY_ROW_BYTES);
        assert_eq!(price_bytes(1, &known(9_999)), PRICE_DAYS_MAX as u64 * LIBRARY_ROW_BYTES);
    }

    #[test]
    fn days_limits_and_fields_count() {
        const RANK: u64 = ROW_BYTES + 4 + KEY_BYTES + 10;
        let row = size_of::<RankRow>() as u64;
        let none = serde_json::json!({});
        let rows = |arguments: &str| {
            let query = format!("{{ stockRankingRange({arguments}) {{ rank }} }}");
            estimated(&query, none.clone()) / (row + RANK.max(row))
        };
        let all = "fromDate: \"2000-01-01\", toDate: \"2030-01-01\"";
        assert_eq!(rows(all), 58 * 20);
        assert_eq!(rows(&format!("{all}, limit: 500")), 58 * 500);
        assert_eq!(rows(&format!("{all}, limit: 501")), 0, "it will be refused");
        assert_eq!(rows("fromDate: \"2024-02-01\", toDate: \"2024-02-02\", limit: 3"), 6);
        assert_eq!(rows("fromDate: \"2024-02-02\", toDate: \"2024-02-01\""), 0);
        assert_eq!(rows("fromDate: \"2024-02-02\", toDate: 5"), 0);
        let query = "query($n: Int = 7, $from: String!) { stockRankingRange(fromDate: $from, \
                     toDate: \"2024-02-01\", limit: $n) { a23456789012345678901234567890: sortValue } }";
        let text = ROW_BYTES + 30 + KEY_BYTES + 24;
        let sent = serde_json::json!({ "from": "2024-02-01" });
        assert_eq!(estimated(query, sent), 7 * (row + text));
        let sent = serde_json::json!({ "from": "2024-02-01", "n": 9 });
        assert_eq!(estimated(query, sent), 9 * (row + text));
        let marked = query.replace("sortValue", "sortValue spansSplit");
        let sent = serde_json::json!({ "from": "2024-02-01" });
        assert_eq!(estimated(&marked, sent), 7 * (row + text + 10 + KEY_BYTES + 5));
        let two = format!(
            "{{ a: stockRankingRange({all}) {{ ...F }} b: stockRankingRange({all}) {{ rank }} }} \
             fragment F on DailyRankingItem {{ rank }}"
        );
        assert_eq!(estimated(&two, none), 2 * 58 * 20 * 2 * row);
    }

    #[test]
    fn names_count_as_long_as_the_longest() {
        let row = size_of::<RankRow>() as u64;
        let none = serde_json::json!({});
        let day = "fromDate: \"2024-02-01\", toDate: \"2024-02-01\", limit: 10";
        let asked = |fields: &str| {
            estimated(&format!("{{ stockRankingRange({day}) {{ {fields} }} }}"), none.clone())
        };
        let text = |keys: u64, values: u64| 10 * (row + (ROW_BYTES + keys + values).max(row));
        assert_eq!(asked("name"), text(4 + KEY_BYTES, 100));
        assert_eq!(asked("name other: name"), text(4 + 5 + 2 * KEY_BYTES, 200));
        let all = text(4 + 6 + 6 + 8 + 4 * KEY_BYTES, 334);
        assert_eq!(asked("name nameEn market sector33"), all);
        let pieces = format!(
            "{{ stockRankingRange({day}) {{ rank }} stockRankingRange({day}) {{ nameEn }} }}"
        );
        let library = 20 * (row + LIBRARY_ROW_BYTES) + 10 * (200 + LIBRARY_TEXT_BYTES);
        assert_eq!(estimated(&pieces, none.clone()), library);
    }
}
