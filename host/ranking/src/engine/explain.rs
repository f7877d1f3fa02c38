//! Shows how a query is answered.

use std::sync::Arc;
use std::time::Duration;

use super::RankEngine;
use crate::error::RankError;
use crate::query::{CancelToken, RankQuery};
use crate::store::ReferenceAnswer;

/// How a query is answered (`kumiki rank query --explain`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The canonical formula.
    pub formula: String,
    /// Whether values of earlier days are adjusted for splits.
    pub adjusted: bool,
    /// The formula's tree, one node a line.
    pub tree: String,
    /// The reference statement; empty where the range has no business day.
    pub sql: String,
    /// DuckDB's plan of the statement.
    pub plan: String,
    /// Rows of the answer.
    pub rows: usize,
    /// Time of the kernel, which answers queries.
    pub elapsed: Duration,
    /// Time of the reference statement, without that of making its tables.
    pub elapsed_sql: Duration,
    /// Whether both gave the same rows, bit for bit.
    pub agrees: bool,
}

pub(super) fn explain(
    engine: &RankEngine,
    query: &RankQuery,
    cancel: &CancelToken,
) -> Result<Explanation, RankError> {
    let formula = query.sort_by.statement_formula()?;
    let resolved = engine.resolve(query)?;
    let (ranking, elapsed) = engine.timed_on(Arc::clone(&resolved.snapshot), query, cancel)?;
    let statement = engine.statement(query, &resolved)?;
    let by_sql = match &statement {
        Some(statement) => resolved.snapshot.by_sql(statement, &engine.options, cancel)?,
        None => ReferenceAnswer::default(),
    };
    Ok(Explanation {
        formula: formula.to_string(),
        adjusted: query.adjusted,
        tree: formula.tree(),
        sql: statement.map(|statement| statement.sql()).unwrap_or_default(),
        plan: by_sql.plan,
        rows: ranking.rows.len(),
        elapsed,
        elapsed_sql: by_sql.elapsed,
        agrees: ranking == resolved.ranking(by_sql.rows),
    })
}
