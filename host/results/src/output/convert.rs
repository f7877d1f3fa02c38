//! The other forms of a table, made from its CSV file a piece at a time: JSON, Parquet.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use marketdata::parquet::{self, Field, ParquetError, TableWriter, Values};
use serde::Serializer as _;

use super::column::{Column, Kind, Table};
use super::files::FolderError;
use super::read::{CellValue, TableReader};

/// Writes the other forms of a table.
pub(crate) fn other_forms(folder: &Path, table: &'static Table) -> Result<(), FolderError> {
    json_form(folder, table)?;
    parquet_form(folder, table)
}

/// Row groups of at most [`GROUP_ROWS`] rows, fewer where texts are long.
fn parquet_form(folder: &Path, table: &'static Table) -> Result<(), FolderError> {
    let path = folder.join(format!("{}.parquet", table.name));
    let failed = |source| FolderError::Write { path: path.clone(), source };
    let wrong = |error: ParquetError| failed(io::Error::other(error));
    let fields: Vec<Field> = table.columns.iter().map(field).collect();
    let file = BufWriter::new(File::create(&path).map_err(failed)?);
    let mut writer = TableWriter::new(file, &fields).map_err(wrong)?;
    let mut reader = TableReader::open(folder, table)?;
    let mut group = Group::new(&fields);
    while let Some(row) = reader.next_row()? {
        group.push(&row.cells()?);
        if group.rows == GROUP_ROWS || group.text_bytes >= GROUP_TEXT_BYTES {
            writer.write(&group.columns).map_err(wrong)?;
            group = Group::new(&fields);
        }
    }
    if group.rows > 0 {
        writer.write(&group.columns).map_err(wrong)?;
    }
    let mut file = writer.finish().map_err(wrong)?;
    file.flush().map_err(failed)
}

/// Rows in one row group of a Parquet file; they are in memory at once.
const GROUP_ROWS: usize = 16_384;
/// Bytes of text in one row group from which on it ends.
const GROUP_TEXT_BYTES: usize = 1 << 20;

fn field(column: &Column) -> Field {
    let kind = match column.kind {
        Kind::Text => parquet::Kind::Text,
        Kind::Whole => parquet::Kind::Int,
        Kind::Yen => parquet::Kind::Yen,
        Kind::Timestamp => parquet::Kind::Timestamp,
        Kind::Date => parquet::Kind::Date,
    };
    // A rejected order may ask for more shares than 63 bits hold.
    let optional = column.optional || column.kind == Kind::Whole;
    Field { name: column.name.to_owned(), kind, optional }
}

/// Rows of one row group.
struct Group {
    columns: Vec<Values>,
    rows: usize,
    text_bytes: usize,
}

impl Group {
    fn new(fields: &[Field]) -> Self {
        let columns = fields.iter().map(|field| Values::empty(field.kind)).collect();
        Self { columns, rows: 0, text_bytes: 0 }
    }

    fn push(&mut self, cells: &[CellValue<'_>]) {
        for (cell, values) in cells.iter().zip(&mut self.columns) {
            match values {
                Values::Text(texts) => {
                    let text = cell.text().map(str::to_owned);
                    self.text_bytes += text.as_ref().map_or(0, String::len);
                    texts.push(text);
                }
                Values::Int(values) => values.push(cell.integer()),
                // No table of a run has such columns.
                Values::Double(values) => values.push(None),
                Values::Bool(values) => values.push(None),
            }
        }
        self.rows += 1;
    }
}

/// An array with one object a line.
fn json_form(folder: &Path, table: &'static Table) -> Result<(), FolderError> {
    let path = folder.join(format!("{}.json", table.name));
    let failed = |source| FolderError::Write { path: path.clone(), source };
    let mut out = BufWriter::new(File::create(&path).map_err(failed)?);
    let mut reader = TableReader::open(folder, table)?;
    let mut before: &[u8] = b"[\n";
    while let Some(row) = reader.next_row()? {
        let cells = row.cells()?;
        out.write_all(before).map_err(failed)?;
        let named = table.columns.iter().map(|column| column.name).zip(&cells);
        let written = serde_json::Serializer::new(&mut out).collect_map(named);
        written.map_err(|error| failed(error.into()))?;
        before = b",\n";
    }
    let end: &[u8] = if before == b"[\n" { b"[]\n" } else { b"\n]\n" };
    out.write_all(end).and_then(|()| out.flush()).map_err(failed)
}
