//! Answers of `kumiki sql`: a table for people, which is held and has a limit, or lines for programs, which
//! are written as they come.

use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;

use anyhow::Result;
use domain::csv_cell::guarded;
use ranking::CancelToken;
use ranking::console::{AnswerSink, Column, Console, Cut, Held};

use crate::args::SqlFormat;
use crate::table::{self, Align, Table};
use crate::terminal::terminal_width;

/// Runs a statement and prints its answer.
pub(super) fn answer(
    console: &Console,
    sql: &str,
    cancel: &CancelToken,
    format: SqlFormat,
) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let given = match format {
        SqlFormat::Table => {
            let mut shown = Shown::default();
            let given = console.answer(sql, cancel, &mut shown)?;
            shown.write(&mut out)?;
            given
        }
        SqlFormat::Csv => {
            let mut lines =
                CsvLines { writer: csv::Writer::from_writer(&mut out), numeric: vec![] };
            let given = console.answer(sql, cancel, &mut lines)?;
            lines.writer.flush()?;
            given
        }
        SqlFormat::Jsonl => {
            console.answer(sql, cancel, &mut JsonLines { out: &mut out, columns: vec![] })?
        }
    };
    out.flush()?;
    let rows = given.rows;
    match given.cut {
        Some(Cut::Rows) => {
            eprintln!(
                "note: there are more than these {rows} rows; --limit N shows more, --format csv or jsonl \
                 writes all"
            );
        }
        Some(Cut::Bytes) => eprintln!(
            "note: there are more than these {rows} rows, and a table cannot hold them; --format csv or \
             jsonl writes them as they come"
        ),
        None => {}
    }
    Ok(())
}

/// A table for people, or a plan, which is a drawing of many lines.
#[derive(Default)]
struct Shown {
    table: Option<Table>,
    /// The column of a plan's text.
    plan: Option<usize>,
    lines: Vec<String>,
    held: Held,
}

impl Shown {
    fn write(self, out: &mut impl Write) -> io::Result<()> {
        if self.plan.is_some() {
            return self.lines.iter().try_for_each(|text| writeln!(out, "{text}"));
        }
        self.table.map_or(Ok(()), |table| table.write(terminal_width(), out))
    }
}

impl AnswerSink for Shown {
    fn columns(&mut self, columns: &[Column]) -> io::Result<()> {
        self.plan = columns.iter().position(|column| column.name == "explain_value");
        let head = columns.iter().map(|column| {
            let align = if column.numeric { Align::Right } else { Align::Left };
            table::Column::new(column.name.clone(), align)
        });
        self.table = Some(Table::new(head.collect()));
        Ok(())
    }

    fn row(&mut self, cells: &[Option<&str>]) -> io::Result<ControlFlow<()>> {
        if !self.held.takes(cells) {
            return Ok(ControlFlow::Break(()));
        }
        if let Some(column) = self.plan {
            self.lines.extend(cells.get(column).copied().flatten().map(str::to_owned));
        } else if let Some(table) = &mut self.table {
            table.row(cells.iter().map(|cell| cell.unwrap_or("-").to_owned()).collect());
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Comma-separated values; null is empty.
struct CsvLines<W: Write> {
    writer: csv::Writer<W>,
    numeric: Vec<bool>,
}

impl<W: Write> AnswerSink for CsvLines<W> {
    fn columns(&mut self, columns: &[Column]) -> io::Result<()> {
        self.numeric = columns.iter().map(|column| column.numeric).collect();
        self.writer
            .write_record(columns.iter().map(|column| column.name.as_str()))
            .map_err(io_error)
    }

    fn row(&mut self, cells: &[Option<&str>]) -> io::Result<ControlFlow<()>> {
        for (cell, numeric) in cells.iter().zip(&self.numeric) {
            let text = cell.unwrap_or_default();
            match numeric {
                true => self.writer.write_field(text),
                false => self.writer.write_field(guarded(text).as_ref()),
            }
            .map_err(io_error)?;
        }
        self.writer.write_record(None::<&[u8]>).map_err(io_error)?;
        Ok(ControlFlow::Continue(()))
    }
}

/// The system's own error, by which a reader that went away is known.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

fn is_json_number(text: &str) -> bool {
    serde_json::from_str::<serde_json::Number>(text).is_ok()
}

/// A JSON object a line.
struct JsonLines<W: Write> {
    out: W,
    columns: Vec<Column>,
}

impl<W: Write> AnswerSink for JsonLines<W> {
    fn columns(&mut self, columns: &[Column]) -> io::Result<()> {
        self.columns = columns.to_vec();
        Ok(())
    }

    fn row(&mut self, cells: &[Option<&str>]) -> io::Result<ControlFlow<()>> {
        for (index, (cell, column)) in cells.iter().zip(&self.columns).enumerate() {
            self.out.write_all(if index == 0 { b"{" } else { b"," })?;
            serde_json::to_writer(&mut self.out, &column.name)?;
            self.out.write_all(b":")?;
            match cell {
                None => self.out.write_all(b"null")?,
                // A number keeps its digits; what JSON cannot hold stays text.
                Some(text) if column.numeric && is_json_number(text) => {
                    self.out.write_all(text.as_bytes())?;
                }
                Some(text) => serde_json::to_writer(&mut self.out, text)?,
            }
        }
        self.out.write_all(b"}")?;
        self.out.write_all(b"\n")?;
        Ok(ControlFlow::Continue(()))
    }
}
