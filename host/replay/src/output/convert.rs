//! The other forms of a table, made from its CSV file a piece at a time: JSON, Parquet.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use serde_json::Value;

use super::folder::FolderError;
use super::read::{ReadError, Row, TableReader};
use super::tables::{Column, Kind, Table};

/// Writes the other forms of a table.
pub(super) fn other_forms(folder: &Path, table: &'static Table) -> Result<(), FolderError> {
    json_form(folder, table)
}

/// An array with one object a line. Exact amounts are texts, because JSON's numbers are not exact.
fn json_form(folder: &Path, table: &'static Table) -> Result<(), FolderError> {
    let path = folder.join(format!("{}.json", table.name));
    let failed = |source| FolderError::Write { path: path.clone(), source };
    let mut out = BufWriter::new(File::create(&path).map_err(failed)?);
    let mut reader = TableReader::open(folder, table)?;
    let mut line = Vec::new();
    let mut before: &[u8] = b"[\n";
    while let Some(row) = reader.next_row()? {
        line.clear();
        json_row(&mut line, table, &row)?;
        out.write_all(before).and_then(|()| out.write_all(&line)).map_err(failed)?;
        before = b",\n";
    }
    let end: &[u8] = if before == b"[\n" { b"[]\n" } else { b"\n]\n" };
    out.write_all(end).and_then(|()| out.flush()).map_err(failed)
}

fn json_row(line: &mut Vec<u8>, table: &Table, row: &Row<'_>) -> Result<(), FolderError> {
    for (place, column) in table.columns.iter().enumerate() {
        line.push(if place == 0 { b'{' } else { b',' });
        json_text(line, column.name);
        line.push(b':');
        json_cell(line, column, row, row.cell(place))?;
    }
    line.push(b'}');
    Ok(())
}

fn json_cell(
    line: &mut Vec<u8>,
    column: &Column,
    row: &Row<'_>,
    text: &str,
) -> Result<(), ReadError> {
    if column.optional && text.is_empty() {
        line.extend_from_slice(b"null");
        return Ok(());
    }
    match column.kind {
        Kind::Whole | Kind::Moment => {
            row.parse_whole(text)?;
            line.extend_from_slice(text.as_bytes());
        }
        Kind::Yen => {
            row.parse_units(text)?;
            json_text(line, text);
        }
        Kind::Date => {
            row.parse_date(text)?;
            json_text(line, text);
        }
        Kind::Text => json_text(line, text),
    }
    Ok(())
}

fn json_text(line: &mut Vec<u8>, text: &str) {
    line.extend_from_slice(Value::from(text).to_string().as_bytes());
}
