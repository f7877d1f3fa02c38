//! The text-book query, as a first attempt would write it.

use std::path::Path;

use duckdb::{Config, Connection};
use pricestore::DataDir;
use pricestore::sql::quoted_path;
use ranking::formula::{Column, Node, Operator};
use ranking::{Formula, RankOrder};

/// The query over the combined database: `LAG` for each code and `row_number` for each
/// date, with text keys. It counts rows instead of business days, so with gaps in the data it is
/// wrong on many days; it is here for its speed only.
#[derive(Debug)]
pub(crate) struct NaiveSql {
    connection: Connection,
}

impl NaiveSql {
    /// Opens the combined database of a data directory read-only.
    pub(crate) fn open(data_dir: &Path, threads: usize) -> duckdb::Result<Self> {
        let config = Config::default().threads(i64::try_from(threads).unwrap_or(1))?;
        let connection = Connection::open_in_memory_with_flags(config)?;
        let path = DataDir::new(data_dir).mother();
        connection.execute_batch(&format!(
            "ATTACH {} AS mother (READ_ONLY); USE mother;",
            quoted_path(&path)
        ))?;
        Ok(Self { connection })
    }

    /// Runs the query for the days `from` to `to` (texts as 2025-01-06) and counts its rows. It
    /// reads from `history` on, the day that the largest lag reaches.
    pub(crate) fn rows(
        &self,
        formula: &Formula,
        order: RankOrder,
        limit: u32,
        [history, from, to]: [&str; 3],
    ) -> duckdb::Result<usize> {
        let sql = statement(formula.root(), order, limit);
        let mut prepared = self.connection.prepare(&sql)?;
        let mut rows = prepared.query([history, to, from])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            std::hint::black_box(row.get::<_, Option<f64>>(3)?);
            count += 1;
        }
        Ok(count)
    }
}

fn statement(root: &Node, order: RankOrder, limit: u32) -> String {
    let lagged: String = root
        .values()
        .into_iter()
        .filter(|(_, lag)| *lag > 0)
        .map(|(column, lag)| {
            let name = alias(column, 0);
            let lagged = alias(column, lag);
            format!(", lag({name}, {lag}) OVER (PARTITION BY code ORDER BY date) {lagged}")
        })
        .collect();
    format!(
        "WITH s AS (SELECT date, code, nullif(open, 0) o, nullif(high, 0) h, nullif(low, 0) l,
             nullif(close, 0) c, nullif(volume, 0) v, volume FROM daily
             WHERE date BETWEEN ?::DATE AND ?::DATE),
           x AS (SELECT *{lagged} FROM s),
           y AS (SELECT date, code, c AS close, volume, {} AS value FROM x
             WHERE c IS NOT NULL AND date >= ?::DATE),
           z AS (SELECT *, row_number() OVER (PARTITION BY date
             ORDER BY value {order} NULLS LAST, code) rk FROM y)
         SELECT date::VARCHAR, rk, code, value, close, volume FROM z WHERE rk <= {limit}
         ORDER BY date, rk",
        value(root)
    )
}

fn alias(column: Column, lag: u32) -> String {
    let letter = match column {
        Column::Open => 'o',
        Column::High => 'h',
        Column::Low => 'l',
        Column::Close => 'c',
        Column::Volume => 'v',
    };
    if lag == 0 { letter.to_string() } else { format!("{letter}_{lag}") }
}

/// The formula over the columns named by [`alias`]; a divisor of 0 gives null.
fn value(node: &Node) -> String {
    match node {
        Node::Number(number) => format!("({number:e}::DOUBLE)"),
        Node::Value { column, lag } => alias(*column, *lag),
        Node::Negate(inner) => format!("(-{})", value(inner)),
        Node::Binary { operator: Operator::Divide, left, right } => {
            format!("({} / nullif({}, 0.0::DOUBLE))", value(left), value(right))
        }
        Node::Binary { operator, left, right } => {
            format!("({} {} {})", value(left), operator.symbol(), value(right))
        }
    }
}
