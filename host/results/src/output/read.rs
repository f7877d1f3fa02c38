//! Reads the tables of a run's folder again, row by row: for the page and for queries.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use domain::csv_cell::unguarded;
use domain::limits::RUN_JSON_BYTES_MAX;
use domain::{JstDate, Money};
use ipc::Decimal;
use serde_json::Value;

use super::cells::CellValue;
use super::column::{Kind, Table};
use super::files::{MANIFEST_FILE, ReadError};

/// A table of a run's folder.
pub(crate) struct TableReader {
    table: &'static Table,
    path: PathBuf,
    reader: csv::Reader<File>,
    record: csv::StringRecord,
}

/// A row of a table.
pub(crate) struct Row<'a>(&'a TableReader);

impl TableReader {
    /// Opens a table of a folder.
    pub(crate) fn open(folder: &Path, table: &'static Table) -> Result<Self, ReadError> {
        let path = folder.join(table.csv_name());
        let unreadable = |error: csv::Error| ReadError::Read {
            path: folder.join(table.csv_name()),
            source: error.into(),
        };
        let mut reader = csv::Reader::from_path(&path).map_err(unreadable)?;
        let found = reader.headers().map_err(unreadable)?;
        if !found.iter().eq(table.columns.iter().map(|column| column.name)) {
            let names: Vec<_> = table.columns.iter().map(|column| column.name).collect();
            return Err(ReadError::Content {
                line: 1,
                expected: format!("the columns {}", names.join(",")),
                found: found.iter().collect::<Vec<_>>().join(","),
                path,
            });
        }
        Ok(Self { table, path, reader, record: csv::StringRecord::new() })
    }

    /// The next row; none at the end.
    pub(crate) fn next_row(&mut self) -> Result<Option<Row<'_>>, ReadError> {
        match self.reader.read_record(&mut self.record) {
            Ok(true) => Ok(Some(Row(self))),
            Ok(false) => Ok(None),
            Err(error) => Err(ReadError::Read { path: self.path.clone(), source: error.into() }),
        }
    }

    fn wrong(&self, expected: &str, found: &str) -> ReadError {
        ReadError::Content {
            path: self.path.clone(),
            line: self.record.position().map_or(0, csv::Position::line),
            expected: expected.to_owned(),
            found: found.chars().take(80).collect(),
        }
    }
}

impl<'a> Row<'a> {
    /// All cells, in the order of the columns.
    pub(crate) fn cells(&self) -> Result<Vec<CellValue<'a>>, ReadError> {
        let texts = self.0.record.iter().zip(self.0.table.columns);
        texts
            .map(|(text, column)| {
                Ok(match column.kind {
                    _ if column.optional && text.is_empty() => CellValue::Empty,
                    Kind::Text => CellValue::Text(unguarded(text)),
                    Kind::Whole | Kind::Timestamp => CellValue::Whole(self.parse_whole(text)?),
                    Kind::Yen => CellValue::Yen(Decimal::from_units(self.parse_units(text)?)),
                    Kind::Date => CellValue::Date(self.parse_date(text)?),
                })
            })
            .collect()
    }

    /// The text of a column; empty for none.
    pub(crate) fn text(&self, column: &str) -> &'a str {
        let index = self.0.table.columns.iter().position(|one| one.name == column);
        // A number is no text that is guarded, so this changes none.
        index.and_then(|index| self.0.record.get(index)).map(unguarded).unwrap_or_default()
    }

    /// The text of a column that may be empty.
    pub(crate) fn optional_text(&self, column: &str) -> Option<&'a str> {
        Some(self.text(column)).filter(|text| !text.is_empty())
    }

    /// A whole number.
    pub(crate) fn whole(&self, column: &str) -> Result<i128, ReadError> {
        self.parse_whole(self.text(column))
    }

    /// A timestamp in nanoseconds since 1970, UTC.
    pub(crate) fn timestamp(&self, column: &str) -> Result<u64, ReadError> {
        let text = self.text(column);
        text.parse().map_err(|_| self.0.wrong("nanoseconds since 1970", text))
    }

    /// Exact yen in 1/10,000.
    pub(crate) fn units(&self, column: &str) -> Result<i64, ReadError> {
        self.parse_units(self.text(column))
    }

    /// The failure of a use of this row that has nothing to do with its content.
    pub(crate) fn unreadable(&self, source: io::Error) -> ReadError {
        ReadError::Read { path: self.0.path.clone(), source }
    }

    /// A text as a whole number.
    fn parse_whole(&self, text: &str) -> Result<i128, ReadError> {
        text.parse().map_err(|_| self.0.wrong("a whole number", text))
    }

    /// A text as exact yen in 1/10,000.
    fn parse_units(&self, text: &str) -> Result<i64, ReadError> {
        let money = text.parse::<Money>().map_err(|_| self.0.wrong("an amount of yen", text))?;
        Ok(money.units())
    }

    /// A date in Japan.
    pub(crate) fn date(&self, column: &str) -> Result<JstDate, ReadError> {
        self.parse_date(self.text(column))
    }

    /// A text as a date.
    fn parse_date(&self, text: &str) -> Result<JstDate, ReadError> {
        text.parse().map_err(|_| self.0.wrong("a date YYYY-MM-DD", text))
    }
}

/// A JSON file of a run's folder. A folder without a manifest is no run's.
///
/// # Errors
/// [`ReadError`] when it is none, or the file cannot be read or is no JSON.
pub fn read_json(folder: &Path, name: &str) -> Result<Value, ReadError> {
    Ok(read_json_text(folder, name)?.1)
}

/// Why a file is missing that the end of a run makes.
fn missing(folder: &Path, path: PathBuf, source: io::Error) -> Result<ReadError, ReadError> {
    let manifest = read_json(folder, MANIFEST_FILE)?;
    let folder = folder.to_owned();
    Ok(match (manifest.get("run_kind"), manifest["fault"].as_str()) {
        (Some(_), _) if manifest["partial"] == true => ReadError::NotEnded(folder),
        (Some(_), Some(fault)) => ReadError::NotComplete { folder, fault: fault.to_owned() },
        _ => ReadError::Read { path, source },
    })
}

/// As [`read_json`], with the text that the value was read from.
///
/// # Errors
/// As [`read_json`].
pub fn read_json_text(folder: &Path, name: &str) -> Result<(String, Value), ReadError> {
    let manifest = folder.join(MANIFEST_FILE);
    if !manifest.is_file() {
        return Err(match manifest.symlink_metadata() {
            // Who opens a pipe may wait for ever.
            Ok(_) => ReadError::Read {
                path: manifest,
                source: io::Error::other("it is a folder, a pipe or a broken link, not a file"),
            },
            Err(_) => ReadError::NoRun(folder.to_owned()),
        });
    }
    let path = folder.join(name);
    let mut text = String::new();
    let read = File::open(&path)
        .and_then(|file| file.take(RUN_JSON_BYTES_MAX + 1).read_to_string(&mut text));
    match read {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound && name != MANIFEST_FILE => {
            return Err(missing(folder, path, error)?);
        }
        Err(source) => return Err(ReadError::Read { path, source }),
    }
    if text.len() as u64 > RUN_JSON_BYTES_MAX {
        return Err(ReadError::TooLarge { path });
    }
    match serde_json::from_str(&text) {
        Ok(value) => Ok((text, value)),
        Err(error) => Err(ReadError::Content {
            path,
            line: error.line() as u64,
            expected: "JSON".to_owned(),
            found: error.to_string(),
        }),
    }
}
