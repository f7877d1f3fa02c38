//! Shows how a query is answered.

use std::time::Duration;

use domain::clock::Stopwatch;

use super::RankEngine;
use crate::error::RankError;
use crate::query::{CancelToken, RankQuery};

/// How a query is answered (`kumiki rank --explain`).
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
    /// Time of the reference statement.
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
    let (ranking, elapsed) = engine.timed(query, cancel)?;
    let resolved = engine.resolve(query)?;
    let (sql, plan) = match engine.statement(query, &resolved)? {
        Some(statement) => {
            let reference = resolved.snapshot.reference(&engine.options)?;
            (statement.sql(), reference.get(&resolved.snapshot.info)?.plan(&statement)?)
        }
        None => (String::new(), String::new()),
    };
    let watch = Stopwatch::start();
    let by_sql = engine.rank_by_sql(query, cancel)?;
    Ok(Explanation {
        formula: formula.to_string(),
        adjusted: query.adjusted,
        tree: formula.tree(),
        sql,
        plan,
        rows: ranking.rows.len(),
        elapsed,
        elapsed_sql: watch.elapsed(),
        agrees: ranking == by_sql,
    })
}
