//! Answers of statements: every value as the text that the database engine writes for it, row by row, so
//! that whoever writes them on holds one row. What an answer may have:
//!
//! | what | at most | what happens with more |
//! |---|---|---|
//! | rows | `ConsoleOptions::rows`, up to [`ROWS_MAX`], where that is said | they are left out, which is told |
//! | a row | [`ROW_BYTES_MAX`] | the statement fails, and says so |
//! | rows that are collected | [`ANSWER_BYTES_MAX`] | they are left out, which is told |

use std::io;
use std::ops::ControlFlow;

use duckdb::Connection;
use duckdb::arrow::array::{Array, RecordBatch, StringArray};

use super::identifier;

/// Rows of an answer that is held, where nobody says how many.
pub const ROWS_HELD: usize = 10_000;
/// Most rows of an answer that may be asked for by their number.
pub const ROWS_MAX: usize = 1_000_000;
/// Bytes of the values of one row.
pub const ROW_BYTES_MAX: usize = 16 << 20;
/// Bytes of an answer that is held as a whole, as a table for people is, with [`CELL_BYTES`] for each value.
pub const ANSWER_BYTES_MAX: usize = 128 << 20;
/// What a value that is held costs besides its text.
pub const CELL_BYTES: usize = 256;

/// A column of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The name in the answer; the statement may give one name twice.
    pub name: String,
    /// Whether it holds numbers, which people want aligned at the right.
    pub numeric: bool,
}

/// Takes an answer as it comes.
pub trait AnswerSink {
    /// Takes the columns, once and before any row.
    ///
    /// # Errors
    /// When they cannot be written.
    fn columns(&mut self, columns: &[Column]) -> io::Result<()>;

    /// Takes a row; `None` is null. Break where it takes no more: this row is left out then.
    ///
    /// # Errors
    /// When it cannot be written.
    fn row(&mut self, cells: &[Option<&str>]) -> io::Result<ControlFlow<()>>;
}

/// An answer that is held as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// The columns, in the order of the statement.
    pub columns: Vec<Column>,
    /// The rows; `None` is null.
    pub rows: Vec<Vec<Option<String>>>,
    /// Whether there were more rows than asked for, or than can be held.
    pub cut: bool,
    held: Held,
}

/// How much of [`ANSWER_BYTES_MAX`] is held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held(usize);

impl Held {
    /// Whether a row can be held too; it counts then.
    pub fn takes(&mut self, cells: &[Option<&str>]) -> bool {
        let bytes = self.0 + cells.iter().flatten().map(|cell| cell.len()).sum::<usize>();
        let bytes = bytes + CELL_BYTES * cells.len();
        let fits = bytes <= ANSWER_BYTES_MAX;
        self.0 = if fits { bytes } else { self.0 };
        fits
    }
}

impl AnswerSink for Table {
    fn columns(&mut self, columns: &[Column]) -> io::Result<()> {
        self.columns = columns.to_vec();
        Ok(())
    }

    fn row(&mut self, cells: &[Option<&str>]) -> io::Result<ControlFlow<()>> {
        if !self.held.takes(cells) {
            return Ok(ControlFlow::Break(()));
        }
        self.rows.push(cells.iter().map(|cell| cell.map(str::to_owned)).collect());
        Ok(ControlFlow::Continue(()))
    }
}

/// How much of an answer was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Given {
    /// Rows that were taken.
    pub rows: usize,
    /// Why there are no more of them, where there were.
    pub cut: Option<Cut>,
}

/// Why an answer ends before its last row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It has more rows than asked for.
    Rows,
    /// It is larger than its taker can hold.
    Bytes,
}

/// A statement whose answer is text, and its columns.
pub(super) struct AsText {
    pub(super) sql: String,
    pub(super) columns: Vec<Column>,
}

impl AsText {
    /// The first `rows` rows of a SELECT, or all. The engine itself makes the texts: it knows all its types, which
    /// what it hands over does not.
    pub(super) fn of(
        connection: &Connection,
        select: &str,
        rows: Option<usize>,
    ) -> duckdb::Result<Self> {
        let mut statement =
            connection.prepare(&format!("DESCRIBE SELECT * FROM (\n{select}\n)"))?;
        let columns = statement.query_map([], |row| {
            Ok(Column { name: row.get(0)?, numeric: is_numeric(&row.get::<_, String>(1)?) })
        })?;
        let columns = columns.collect::<duckdb::Result<Vec<Column>>>()?;
        let names: Vec<String> = (0..columns.len()).map(|index| format!("c{index}")).collect();
        let texts = columns.iter().zip(&names).map(|(column, name)| {
            format!("CAST({name} AS VARCHAR) AS {}", identifier(&column.name))
        });
        let sql = format!(
            "SELECT {} FROM (\n{select}\n) AS t({}){}",
            texts.collect::<Vec<_>>().join(", "),
            names.join(", "),
            rows.map_or(String::new(), |rows| format!(" LIMIT {rows}"))
        );
        Ok(Self { sql, columns })
    }

    /// A plan, which is text already.
    pub(super) fn of_plan(sql: &str) -> Self {
        let columns = ["explain_key", "explain_value"];
        let column = |name: &str| Column { name: name.to_owned(), numeric: false };
        Self { sql: sql.to_owned(), columns: columns.map(column).to_vec() }
    }
}

fn is_numeric(kind: &str) -> bool {
    let name = kind.split('(').next().unwrap_or_default();
    let is_integer = name.ends_with("INT") || name.ends_with("INTEGER");
    (is_integer || matches!(name, "FLOAT" | "DOUBLE" | "DECIMAL" | "BIGNUM")) && !kind.contains('[')
}

/// The columns of a batch; none where one of them holds something else than texts.
pub(super) fn texts(batch: &RecordBatch) -> Option<Vec<&StringArray>> {
    batch.columns().iter().map(|column| column.as_any().downcast_ref()).collect()
}

/// A row of texts.
pub(super) fn row<'a>(columns: &[&'a StringArray], index: usize) -> Vec<Option<&'a str>> {
    let cell = |column: &&'a StringArray| (!column.is_null(index)).then(|| column.value(index));
    columns.iter().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_by_their_types() {
        for kind in
            ["TINYINT", "HUGEINT", "UBIGINT", "INTEGER", "UINTEGER", "DOUBLE", "DECIMAL(38,4)"]
        {
            assert!(is_numeric(kind), "{kind}");
        }
        for kind in ["VARCHAR", "INTEGER[]", "DECIMAL(1,0)[3]", "STRUCT(a INTEGER)", "INTERVAL"] {
            assert!(!is_numeric(kind), "{kind}");
        }
    }

    #[test]
    fn what_is_held_has_a_limit() {
        let mut held = Held::default();
        let half = "x".repeat(ANSWER_BYTES_MAX / 2 - CELL_BYTES);
        assert!(held.takes(&[Some(&half)]) && held.takes(&[Some(&half)]));
        assert!(!held.takes(&[None]), "a value that is null costs too");
        assert!(held.takes(&[]));
    }
}
