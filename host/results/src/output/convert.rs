//! The other forms of a table, made from its CSV file a piece at a time: JSON, Parquet.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use domain::JstDate;
use marketdata::parquet::{self, Field, ParquetError, TableWriter, Values};
use serde_json::Value;

use super::folder::FolderError;
use super::read::{ReadError, Row, TableReader};
use super::tables::{Column, Kind, Table};

/// Writes the other forms of a table.
pub(super) fn other_forms(folder: &Path, table: &'static Table) -> Result<(), FolderError> {
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
        for (index, column) in table.columns.iter().enumerate() {
            group.push(index, column, &row)?;
        }
        group.rows += 1;
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
    let name = column.name;
    match column.kind {
        Kind::Text if column.optional => Field::optional(name, parquet::Kind::Text),
        Kind::Text => Field::required(name, parquet::Kind::Text),
        // A rejected order may ask for more shares than 63 bits hold.
        Kind::Whole => Field::optional(name, parquet::Kind::Int),
        Kind::Yen if column.optional => Field::optional(name, parquet::Kind::Yen),
        Kind::Yen => Field::required(name, parquet::Kind::Yen),
        Kind::Timestamp if column.optional => Field::optional(name, parquet::Kind::Timestamp),
        Kind::Timestamp => Field::required(name, parquet::Kind::Timestamp),
        Kind::Date => Field::required(name, parquet::Kind::Date),
    }
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

    fn push(&mut self, index: usize, column: &Column, row: &Row<'_>) -> Result<(), ReadError> {
        let text = row.cell(index);
        let there = !(column.optional && text.is_empty());
        match &mut self.columns[index] {
            Values::Text(texts) => {
                self.text_bytes += text.len();
                texts.push(there.then(|| text.to_owned()));
            }
            Values::Int(values) if there => values.push(whole_of(column.kind, row, text)?),
            Values::Int(values) => values.push(None),
            // No table of a run has such columns.
            Values::Double(values) => values.push(None),
            Values::Bool(values) => values.push(None),
        }
        Ok(())
    }
}

/// A cell as the integer of its kind; none where it does not fit.
fn whole_of(kind: Kind, row: &Row<'_>, text: &str) -> Result<Option<i64>, ReadError> {
    Ok(match kind {
        Kind::Whole | Kind::Timestamp => i64::try_from(row.parse_whole(text)?).ok(),
        Kind::Yen => Some(row.parse_units(text)?),
        Kind::Date => {
            let since = row.parse_date(text)?.signed_duration_since(JstDate::default());
            Some(since.num_days())
        }
        Kind::Text => None,
    })
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
    for (index, column) in table.columns.iter().enumerate() {
        line.push(if index == 0 { b'{' } else { b',' });
        json_text(line, column.name);
        line.push(b':');
        json_cell(line, column, row, row.cell(index))?;
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
        Kind::Whole | Kind::Timestamp => {
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
