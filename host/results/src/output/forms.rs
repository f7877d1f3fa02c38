//! The forms of a table: CSV, JSON and Parquet, and its part of the page. Each takes the same rows as they come.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use domain::csv_cell;
use marketdata::parquet::{self, Field, TableWriter, Values};

use super::cells::CellValue;
use super::column::{Column, Kind, Table};
use super::files::FolderError;
use crate::report::PageTable;

/// Bytes of a file that are written at once.
const BUFFER_BYTES: usize = 1 << 16;
/// Rows in one row group of a Parquet file; they are in memory at once.
const GROUP_ROWS: usize = 16_384;
/// Bytes of text in one row group from which on it ends.
const GROUP_TEXT_BYTES: usize = 1 << 20;

/// A table in all its forms.
pub(crate) struct TableForms {
    csv: CsvForm,
    json: JsonForm,
    parquet: ParquetForm,
    page: Option<PageTable>,
}

impl TableForms {
    /// Begins the files in a folder.
    pub(crate) fn create(folder: &Path, table: &'static Table) -> Result<Self, FolderError> {
        Ok(Self {
            csv: CsvForm::create(folder, table)?,
            json: JsonForm::create(folder, table)?,
            parquet: ParquetForm::create(folder, table)?,
            page: PageTable::of(table),
        })
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, cells: &[CellValue<'_>]) -> io::Result<()> {
        self.csv.push(cells)?;
        self.json.push(cells)?;
        self.parquet.push(cells)?;
        self.page.as_mut().map_or(Ok(()), |page| page.push(cells))
    }

    /// Completes the files, and gives what the page shows of the table.
    pub(crate) fn finish(self) -> Result<Option<PageTable>, FolderError> {
        self.csv.finish()?;
        self.json.finish()?;
        self.parquet.finish()?;
        Ok(self.page)
    }
}

/// A table as CSV.
pub(crate) struct CsvForm {
    path: PathBuf,
    csv: csv::Writer<File>,
    /// The cell that is written.
    text: Vec<u8>,
}

impl CsvForm {
    /// Begins the file with its header line.
    pub(crate) fn create(folder: &Path, table: &Table) -> Result<Self, FolderError> {
        let path = folder.join(table.csv_name());
        let file = File::create(&path).map_err(FolderError::at(&path))?;
        let mut csv = csv::WriterBuilder::new().buffer_capacity(BUFFER_BYTES).from_writer(file);
        let header = csv.write_record(table.columns.iter().map(|column| column.name));
        header.map_err(|error| FolderError::at(&path)(error.into()))?;
        Ok(Self { path, csv, text: Vec::new() })
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, cells: &[CellValue<'_>]) -> io::Result<()> {
        for cell in cells {
            match cell {
                // The schemas say which columns hold texts; a number with a sign is none.
                CellValue::Text(text) => self.csv.write_field(&*csv_cell::guarded(text))?,
                CellValue::Empty => self.csv.write_field("")?,
                CellValue::Whole(_) | CellValue::Yen(_) | CellValue::Date(_) => {
                    // As JSON has it, without quotation marks.
                    self.text.clear();
                    serde_json::to_writer(&mut self.text, cell)?;
                    self.csv.write_field(bare(&self.text))?;
                }
            }
        }
        Ok(self.csv.write_record(None::<&[u8]>)?)
    }

    /// Completes the file.
    pub(crate) fn finish(mut self) -> Result<(), FolderError> {
        self.csv.flush().map_err(FolderError::at(&self.path))
    }
}

/// The JSON of a number, an amount or a date without quotation marks.
fn bare(json: &[u8]) -> &[u8] {
    json.strip_prefix(b"\"").and_then(|json| json.strip_suffix(b"\"")).unwrap_or(json)
}

/// A table as a JSON array with one object a line.
struct JsonForm {
    path: PathBuf,
    file: BufWriter<File>,
    /// What stands before the value of each column.
    keys: Vec<String>,
    is_empty: bool,
}

impl JsonForm {
    fn create(folder: &Path, table: &Table) -> Result<Self, FolderError> {
        let path = folder.join(format!("{}.json", table.name));
        let file = File::create(&path).map_err(FolderError::at(&path))?;
        let key = |(index, column): (usize, &Column)| {
            format!("{}\"{}\":", if index == 0 { '{' } else { ',' }, column.name)
        };
        let keys = table.columns.iter().enumerate().map(key).collect();
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(Self { path, file, keys, is_empty: true })
    }

    fn push(&mut self, cells: &[CellValue<'_>]) -> io::Result<()> {
        let before: &[u8] = if std::mem::take(&mut self.is_empty) { b"[\n" } else { b",\n" };
        self.file.write_all(before)?;
        for (key, cell) in self.keys.iter().zip(cells) {
            self.file.write_all(key.as_bytes())?;
            serde_json::to_writer(&mut self.file, cell)?;
        }
        self.file.write_all(b"}")
    }

    fn finish(mut self) -> Result<(), FolderError> {
        let end: &[u8] = if self.is_empty { b"[]\n" } else { b"\n]\n" };
        let ended = self.file.write_all(end).and_then(|()| self.file.flush());
        ended.map_err(FolderError::at(&self.path))
    }
}

/// A table as Parquet: row groups of at most [`GROUP_ROWS`] rows, fewer where texts are long.
struct ParquetForm {
    path: PathBuf,
    writer: TableWriter<BufWriter<File>>,
    fields: Vec<Field>,
    /// The row group that is not written yet.
    group: Vec<Values>,
    rows: usize,
    text_bytes: usize,
}

impl ParquetForm {
    fn create(folder: &Path, table: &Table) -> Result<Self, FolderError> {
        let path = folder.join(format!("{}.parquet", table.name));
        let file = File::create(&path).map_err(FolderError::at(&path))?;
        let fields: Vec<Field> = table.columns.iter().map(field).collect();
        let writer = TableWriter::new(BufWriter::new(file), &fields)
            .map_err(|error| FolderError::at(&path)(io::Error::other(error)))?;
        let group = empty_group(&fields);
        Ok(Self { path, writer, fields, group, rows: 0, text_bytes: 0 })
    }

    fn push(&mut self, cells: &[CellValue<'_>]) -> io::Result<()> {
        for (cell, values) in cells.iter().zip(&mut self.group) {
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
        match self.rows == GROUP_ROWS || self.text_bytes >= GROUP_TEXT_BYTES {
            true => self.end_group(),
            false => Ok(()),
        }
    }

    fn end_group(&mut self) -> io::Result<()> {
        let group = std::mem::replace(&mut self.group, empty_group(&self.fields));
        (self.rows, self.text_bytes) = (0, 0);
        self.writer.write(&group).map_err(io::Error::other)
    }

    fn finish(mut self) -> Result<(), FolderError> {
        // A group without rows is none.
        let ended =
            self.end_group().and_then(|()| self.writer.finish().map_err(io::Error::other)?.flush());
        ended.map_err(FolderError::at(&self.path))
    }
}

fn empty_group(fields: &[Field]) -> Vec<Values> {
    fields.iter().map(|field| Values::empty(field.kind)).collect()
}

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
