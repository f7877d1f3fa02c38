//! What a request would cost, before anything of it runs: how deep, how wide, which rankings.

use std::collections::{BTreeMap, BTreeSet};

use async_graphql::parser::types::{
    ExecutableDocument, Field, OperationDefinition, Selection, SelectionSet,
};
use async_graphql::{Name, Positioned, Value, Variables};

use super::estimate::RankingUse;
use super::failure::Failure;
use super::limits::{INTROSPECTION_LISTS, ServiceLimits, TEXT_NESTING};

/// The name of the ranking field.
pub(super) const RANKING_FIELD: &str = "stockRankingRange";
/// The name of the field of one issue's prices.
pub(super) const PRICES_FIELD: &str = "dailyPrices";
/// Fields of the root that describe the schema.
const INTROSPECTION_FIELDS: [&str; 2] = ["__schema", "__type"];
/// Fields of the introspection whose values are lists of things that have lists themselves.
const INTROSPECTION_LIST_FIELDS: [&str; 8] = [
    "types",
    "fields",
    "inputFields",
    "args",
    "interfaces",
    "possibleTypes",
    "enumValues",
    "directives",
];

/// What a request asks for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RequestAnalysis {
    /// Response keys of the root, in the order asked.
    pub(super) keys: Vec<Name>,
    /// Those of them that describe the schema.
    pub(super) introspection: Vec<Name>,
    /// Uses of the ranking field.
    pub(super) uses: Vec<RankingUse>,
    /// Uses of the field of one issue's prices.
    pub(super) prices: usize,
    /// A ranking is asked for in pieces under one key; their fields have to be merged.
    pub(super) merges: bool,
}

/// Refuses text whose brackets are nested too deeply to be parsed.
pub(super) fn check_nesting(text: &str) -> Result<(), Failure> {
    let (mut rest, mut depth) = (text.as_bytes(), 0_usize);
    while let Some(&byte) = rest.first() {
        let length = match byte {
            b'"' => string_length(rest),
            b'#' => line_length(rest),
            b'{' | b'(' | b'[' => {
                depth += 1;
                1
            }
            b'}' | b')' | b']' => {
                depth = depth.saturating_sub(1);
                1
            }
            _ => 1,
        };
        if depth > TEXT_NESTING {
            return Err(Failure::new(
                "QUERY_TOO_LARGE",
                format!("the query nests more than {TEXT_NESTING} brackets"),
            ));
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(())
}

/// Bytes of the string that starts here. One that does not end counts as its first quotes only, so
/// that nothing hides behind it.
fn string_length(text: &[u8]) -> usize {
    const BLOCK: &[u8] = b"\"\"\"";
    if let Some(inside) = text.strip_prefix(BLOCK) {
        let mut at = 0;
        while at < inside.len() {
            if inside[at..].starts_with(b"\\\"\"\"") {
                at += 4;
            } else if inside[at..].starts_with(BLOCK) {
                return at + 2 * BLOCK.len();
            } else {
                at += 1;
            }
        }
        return 2;
    }
    let mut at = 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            b'\n' | b'\r' => return 1,
            _ => at += 1,
        }
    }
    1
}

fn line_length(text: &[u8]) -> usize {
    text.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(text.len())
}

/// Analyzes the operation that will run. One that cannot be found is left to the library.
pub(super) fn analyze(
    document: &ExecutableDocument,
    operation_name: Option<&str>,
    limits: &ServiceLimits,
) -> Result<RequestAnalysis, Failure> {
    check_document(document, limits)?;
    let mut walk = Walk::new(document, limits);
    let mut seen = BTreeMap::new();
    for operation in operations(document, operation_name) {
        walk.root(&operation.selection_set.node, 1, &mut seen)?;
    }
    let (rankings, prices) = (walk.analysis.uses.len(), walk.analysis.prices);
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
    Ok(walk.analysis)
}

/// Refuses what the library would check for seconds: operations of all together more than so many fields, and
/// fragments that none of them uses (GraphQL 5.5.1.4), however many there are.
fn check_document(document: &ExecutableDocument, limits: &ServiceLimits) -> Result<(), Failure> {
    let mut walk = Walk::new(document, limits);
    for operation in operations(document, None) {
        walk.root(&operation.selection_set.node, 1, &mut BTreeMap::new())?;
    }
    match document.fragments.keys().find(|name| !walk.used.contains(name.as_str())) {
        Some(name) => {
            let message = format!("the fragment {name} is not used; leave it out");
            Err(Failure::new("GRAPHQL_INVALID", message))
        }
        None => Ok(()),
    }
}

/// The operations that may run.
pub(super) fn operations<'a>(
    document: &'a ExecutableDocument,
    wanted: Option<&str>,
) -> Vec<&'a OperationDefinition> {
    let fits = |name: Option<&Name>| wanted.is_none_or(|wanted| name.is_some_and(|n| n == wanted));
    let all = document.operations.iter();
    all.filter(|(name, _)| fits(*name)).map(|(_, operation)| &operation.node).collect()
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

struct Walk<'a> {
    document: &'a ExecutableDocument,
    limits: &'a ServiceLimits,
    fields_left: usize,
    analysis: RequestAnalysis,
    /// The fragments that were come to.
    used: BTreeSet<&'a str>,
}

impl<'a> Walk<'a> {
    fn new(document: &'a ExecutableDocument, limits: &'a ServiceLimits) -> Self {
        let (fields_left, analysis) = (limits.fields, RequestAnalysis::default());
        Self { document, limits, fields_left, analysis, used: BTreeSet::new() }
    }

    fn root(
        &mut self,
        set: &'a SelectionSet,
        depth: usize,
        seen: &mut BTreeMap<&'a str, usize>,
    ) -> Result<(), Failure> {
        for selection in &set.items {
            self.step(depth)?;
            match &selection.node {
                Selection::Field(field) => self.root_field(field, depth, seen)?,
                other => {
                    self.note_use(other);
                    if let Some(inner) = self.inner(other) {
                        self.root(inner, depth + 1, seen)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn root_field(
        &mut self,
        field: &'a Positioned<Field>,
        depth: usize,
        seen: &mut BTreeMap<&'a str, usize>,
    ) -> Result<(), Failure> {
        let key = &field.node.response_key().node;
        let times = seen.entry(key.as_str()).or_default();
        *times += 1;
        if *times == 1 {
            self.analysis.keys.push(key.clone());
        }
        if INTROSPECTION_FIELDS.contains(&field.node.name.node.as_str()) {
            self.analysis.introspection.push(key.clone());
        }
        let merges = *times > 1;
        self.below(&field.node.selection_set.node, depth + 1, 0)?;
        if field.node.name.node == RANKING_FIELD {
            let mut selected = Vec::new();
            self.selected(&field.node.selection_set.node, &mut selected);
            self.analysis.uses.push(RankingUse::new(&field.node, selected.into_iter()));
            self.analysis.merges |= merges;
        }
        self.analysis.prices += usize::from(field.node.name.node == PRICES_FIELD);
        Ok(())
    }

    fn below(&mut self, set: &'a SelectionSet, depth: usize, lists: usize) -> Result<(), Failure> {
        for selection in &set.items {
            self.step(depth)?;
            match &selection.node {
                Selection::Field(field) => {
                    let name = field.node.name.node.as_str();
                    let lists = lists + usize::from(INTROSPECTION_LIST_FIELDS.contains(&name));
                    if lists > INTROSPECTION_LISTS {
                        return Err(Failure::new(
                            "QUERY_TOO_LARGE",
                            format!(
                                "the introspection goes through more than {INTROSPECTION_LISTS} \
                                 lists inside each other"
                            ),
                        ));
                    }
                    self.below(&field.node.selection_set.node, depth + 1, lists)?;
                }
                other => {
                    self.note_use(other);
                    if let Some(inner) = self.inner(other) {
                        self.below(inner, depth + 1, lists)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The fields of a selection, those of its fragments too. It was walked through before, so it
    /// has an end.
    fn selected(&self, set: &'a SelectionSet, found: &mut Vec<&'a Positioned<Field>>) {
        for selection in &set.items {
            match &selection.node {
                Selection::Field(field) => found.push(field),
                other => {
                    if let Some(inner) = self.inner(other) {
                        self.selected(inner, found);
                    }
                }
            }
        }
    }

    fn note_use(&mut self, selection: &'a Selection) {
        if let Selection::FragmentSpread(spread) = selection {
            self.used.insert(spread.node.fragment_name.node.as_str());
        }
    }

    /// What a fragment stands for. An unknown one is left to the library.
    fn inner(&self, selection: &'a Selection) -> Option<&'a SelectionSet> {
        match selection {
            Selection::Field(_) => None,
            Selection::InlineFragment(fragment) => Some(&fragment.node.selection_set.node),
            Selection::FragmentSpread(spread) => {
                let name = &spread.node.fragment_name.node;
                Some(&self.document.fragments.get(name)?.node.selection_set.node)
            }
        }
    }

    /// Counts one selection. A circle of fragments ends here too.
    fn step(&mut self, depth: usize) -> Result<(), Failure> {
        if depth > self.limits.depth {
            return Err(Failure::new(
                "QUERY_TOO_DEEP",
                format!("the query is deeper than {} levels", self.limits.depth),
            ));
        }
        self.fields_left = self.fields_left.checked_sub(1).ok_or_else(|| {
            Failure::new(
                "QUERY_TOO_LARGE",
                format!("the query selects more than {} fields", self.limits.fields),
            )
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use async_graphql::parser::parse_query;

    use super::*;

    fn look(text: &str) -> Result<RequestAnalysis, &'static str> {
        let document = parse_query(text).unwrap();
        analyze(&document, None, &ServiceLimits::default()).map_err(|failure| failure.code)
    }

    #[test]
    fn keys_keep_their_order_and_rankings_are_counted() {
        let found =
            look("{ b: stockRankingRange { date } schemaVersion a: stockRankingRange { code } }");
        let found = found.unwrap();
        assert_eq!(found.keys, ["b", "schemaVersion", "a"].map(Name::new));
        assert_eq!((found.uses.len(), found.merges), (2, false));
    }

    #[test]
    fn a_fragment_counts_where_it_is_used() {
        let text = "{ ...F ...F } fragment F on Query { stockRankingRange { date } }";
        let found = look(text).unwrap();
        assert_eq!((found.uses.len(), found.merges), (2, true));
    }

    #[test]
    fn the_fifth_alias_is_refused() {
        let uses = |count: usize| {
            let fields: Vec<String> =
                (0..count).map(|index| format!("a{index}: stockRankingRange {{ date }}")).collect();
            look(&format!("{{ {} }}", fields.join(" "))).map(|found| found.uses.len())
        };
        assert_eq!(uses(4), Ok(4));
        assert_eq!(uses(5), Err("ALIASES_EXCEEDED"));
        // One issue's prices count like a ranking.
        let mixed = |prices: usize| {
            let fields: String =
                (0..prices).map(|index| format!("p{index}: dailyPrices {{ date }} ")).collect();
            let found = look(&format!("{{ r: stockRankingRange {{ date }} {fields} }}"))?;
            Ok((found.uses.len(), found.prices))
        };
        assert_eq!(mixed(3), Ok((1, 3)));
        assert_eq!(mixed(4), Err("ALIASES_EXCEEDED"));
    }

    #[test]
    fn fragments_that_multiply_or_turn_in_circles_are_refused() {
        let mut text = String::from("{ stockRankingRange { ...F0 } }");
        for level in 0..12 {
            let next = level + 1;
            text += &format!(" fragment F{level} on DailyRankingItem {{ ...F{next} ...F{next} }}");
        }
        text += " fragment F12 on DailyRankingItem { date }";
        assert_eq!(look(&text), Err("QUERY_TOO_LARGE"));
        let circle = "{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }";
        assert_eq!(look(circle), Err("QUERY_TOO_DEEP"));
    }

    /// The library checks fragments that nobody uses as well, for seconds where they are thousands.
    #[test]
    fn what_no_operation_uses_is_refused() {
        let chain: String = (0..2_000)
            .map(|at| format!(" fragment F{at} on Query {{ ...F{} }}", (at + 1) % 2_000))
            .collect();
        assert_eq!(look(&format!("{{ schemaVersion }}{chain}")), Err("GRAPHQL_INVALID"));
        let used = format!("{{ ...F0 }}{chain}");
        assert_eq!(look(&used), Err("QUERY_TOO_DEEP"));
        // Another operation than the one that runs counts too.
        let others: String = (0..300).map(|at| format!(" query Q{at} {{ a b c d }}")).collect();
        let text = format!("query Q {{ schemaVersion }}{others}");
        let document = parse_query(text).unwrap();
        let found = analyze(&document, Some("Q"), &ServiceLimits::default());
        assert_eq!(found.map_err(|failure| failure.code), Err("QUERY_TOO_LARGE"));
        let two =
            "query A { ...F } query B { schemaVersion } fragment F on Query { schemaVersion }";
        let document = parse_query(two).unwrap();
        assert!(analyze(&document, Some("B"), &ServiceLimits::default()).is_ok());
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
    fn deep_text_is_refused_before_it_is_parsed() {
        let deep = |count: usize| check_nesting(&"[".repeat(count)).map_err(|failure| failure.code);
        assert_eq!(deep(TEXT_NESTING), Ok(()));
        assert_eq!(deep(TEXT_NESTING + 1), Err("QUERY_TOO_LARGE"));
        let deeper = "[".repeat(TEXT_NESTING + 1);
        for harmless in [
            format!("(sortBy: \"{deeper} \\\" {deeper}\")"),
            format!("(sortBy: \"\"\"\n{deeper} \\\"\"\" \"\n\"\"\")"),
            format!("# {deeper}\n{{"),
        ] {
            assert_eq!(check_nesting(&harmless), Ok(()), "{harmless}");
        }
        for hidden in ["\"\n", "\"\"\"\n\"\"\"", "\"\"\"abc\" ", "# \"\n", "\"\\"] {
            assert!(check_nesting(&format!("{hidden}{deeper}")).is_err(), "{hidden}");
        }
    }
}
