//! The forms of a table: CSV, JSON and Parquet, and its part of the page. Each takes the same rows as they come.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use domain::{ShortText, csv_cell};
use marketdata::parquet::{self, Field, TableWriter, Values};

use super::cells::CellValue;
use super::column::{Column, Kind, Table};
use super::files::FolderError;
use super::whole_lines::HeldLines;
use crate::report::PageTable;

/// Rows in one row group of a Parquet file; they are in memory at once.
const GROUP_ROWS: usize = 16_384;
/// Bytes of text in one row group from which on it ends.
const GROUP_TEXT_BYTES: usize = 1 << 20;

/// A table in all its forms.
pub(crate) struct TableForms {
    texts: TextForms,
    parquet: ParquetForm,
    page: Option<PageTable>,
}

impl TableForms {
    /// Begins the files in a folder.
    pub(crate) fn create(folder: &Path, table: &'static Table) -> Result<Self, FolderError> {
        Ok(Self {
            texts: TextForms::create(folder, table)?,
            parquet: ParquetForm::create(folder, table)?,
            page: PageTable::of(table),
        })
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, cells: &[CellValue<'_>]) -> io::Result<()> {
        self.texts.push(cells)?;
        self.parquet.push(cells)?;
        self.page.as_mut().map_or(Ok(()), |page| page.push(cells))
    }

    /// Completes the files, and gives what the page shows of the table.
    pub(crate) fn finish(self) -> Result<Option<PageTable>, FolderError> {
        self.texts.finish()?;
        self.parquet.finish()?;
        Ok(self.page)
    }
}

/// A table as CSV, and as a JSON array with one object a line. Each cell is made a text once.
struct TextForms {
    csv: TextFile,
    json: TextFile,
    /// What stands before the value of each column.
    keys: Vec<String>,
    is_empty: bool,
}

/// A file of lines with its path.
struct TextFile {
    path: PathBuf,
    lines: HeldLines<File>,
}

impl TextFile {
    fn create(folder: &Path, table: &Table, form: &str) -> Result<Self, FolderError> {
        let path = folder.join(format!("{}.{form}", table.name));
        let file = File::create(&path).map_err(FolderError::at(&path))?;
        Ok(Self { path, lines: HeldLines::new(file) })
    }

    fn finish(mut self) -> Result<(), FolderError> {
        self.lines.flush().map_err(FolderError::at(&self.path))
    }
}

impl TextForms {
    fn create(folder: &Path, table: &Table) -> Result<Self, FolderError> {
        let mut csv = TextFile::create(folder, table, "csv")?;
        let names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        csv.lines.bytes.extend_from_slice(names.join(",").as_bytes());
        csv.lines.bytes.push(b'\n');
        let json = TextFile::create(folder, table, "json")?;
        let key = |(index, name)| format!("{}\"{name}\":", if index == 0 { '{' } else { ',' });
        let keys = names.iter().enumerate().map(key).collect();
        Ok(Self { csv, json, keys, is_empty: true })
    }

    fn push(&mut self, cells: &[CellValue<'_>]) -> io::Result<()> {
        let (csv, json) = (&mut self.csv.lines, &mut self.json.lines);
        let before: &[u8] = if std::mem::take(&mut self.is_empty) { b"[\n" } else { b",\n" };
        json.bytes.extend_from_slice(before);
        for (index, (key, cell)) in self.keys.iter().zip(cells).enumerate() {
            if index > 0 {
                csv.bytes.push(b',');
            }
            json.bytes.extend_from_slice(key.as_bytes());
            let start = json.bytes.len();
            match cell {
                CellValue::Text(text) if !is_plain(text) => {
                    serde_json::to_writer(&mut json.bytes, text)?;
                    let cell = csv_cell::quoted(csv_cell::guarded(text));
                    csv.bytes.extend_from_slice(cell.as_bytes());
                    continue;
                }
                CellValue::Text(text) => {
                    json.bytes.push(b'"');
                    json.bytes.extend_from_slice(text.as_bytes());
                    json.bytes.push(b'"');
                }
                CellValue::Empty => {
                    json.bytes.extend_from_slice(b"null");
                    continue;
                }
                cell => serde_json::to_writer(&mut json.bytes, cell)?,
            }
            let text = &json.bytes[start..];
            let bare = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\""));
            csv.bytes.extend_from_slice(bare.unwrap_or(text));
        }
        csv.bytes.push(b'\n');
        json.bytes.push(b'}');
        csv.end_line()?;
        json.end_line()
    }

    fn finish(mut self) -> Result<(), FolderError> {
        let end: &[u8] = if self.is_empty { b"[]\n" } else { b"\n]\n" };
        self.json.lines.bytes.extend_from_slice(end);
        self.csv.finish()?;
        self.json.finish()
    }
}

/// Whether a text stands the same in JSON and in CSV, as ids and words of ours do.
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(byte))
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
                    let text = cell.text().map(ShortText::from);
                    self.text_bytes += text.as_ref().map_or(0, ShortText::len);
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

#[cfg(test)]
mod tests {
    use std::fs;

    use domain::TsNanos;
    use domain::strategy::{LogLevel, LogLine};
    use marketdata::parquet::TableReader;
    use serde_json::Value;

    use super::*;
    use crate::output::cells::Names;
    use crate::output::tables::Log;

    /// A folder with the log of these lines.
    fn folder(lines: &[LogLine]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut forms = TableForms::create(folder.path(), &Log::TABLE).unwrap();
        for line in lines {
            Log::push(line, &Names::new(&[]), |cells| forms.push(cells)).unwrap();
        }
        forms.finish().unwrap();
        folder
    }

    fn line(index: usize, message: &str) -> LogLine {
        let ts_event = (!index.is_multiple_of(3)).then(|| TsNanos::from_nanos(index as u64));
        LogLine { ts_event, level: LogLevel::Warn, message: message.to_owned() }
    }

    #[test]
    fn csv_is_as_its_library_writes_it_and_json_holds_the_same() {
        let texts = [
            "",
            "O-1",
            "a.b_c",
            "-5",
            "=1+1",
            "a,b",
            "\"q\"",
            "a\nb",
            "\r",
            " x",
            "組",
            "<\u{2028}>",
            "\\",
        ];
        let lines: Vec<_> =
            texts.iter().enumerate().map(|(index, text)| line(index, text)).collect();
        let folder = folder(&lines);
        let mut wanted = csv::Writer::from_writer(Vec::new());
        wanted.write_record(["ts_event_ns", "level", "message"]).unwrap();
        for line in &lines {
            let ts_event = line.ts_event.map_or(String::new(), |at| at.nanos().to_string());
            let message = csv_cell::guarded(&line.message);
            wanted.write_record([ts_event.as_str(), "WARN", &message]).unwrap();
        }
        let csv = fs::read_to_string(folder.path().join("log.csv")).unwrap();
        assert_eq!(csv, String::from_utf8(wanted.into_inner().unwrap()).unwrap());
        let json = fs::read_to_string(folder.path().join("log.json")).unwrap();
        let json: Value = serde_json::from_str(&json).unwrap();
        let told = json.as_array().unwrap().iter().map(|row| row["message"].as_str().unwrap());
        assert!(told.eq(texts));
    }

    #[test]
    fn row_groups_end_by_rows_and_by_bytes_of_text() {
        let groups = |lines: &[LogLine]| {
            let folder = folder(lines);
            let table = TableReader::open(folder.path().join("log.parquet")).unwrap();
            (table.groups(), table.rows())
        };
        let rows = GROUP_ROWS + 1;
        assert_eq!(groups(&vec![line(1, "x"); rows]), (2, rows as u64));
        assert_eq!(groups(&vec![line(1, &"x".repeat(GROUP_TEXT_BYTES)); 3]), (3, 3));
        assert_eq!(groups(&[]), (0, 0));
    }
}
