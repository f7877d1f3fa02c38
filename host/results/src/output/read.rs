//! Reads the tables of a run's folder again, row by row: for their other forms, the page and queries.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use domain::{JstDate, Money};
use serde_json::Value;
use thiserror::Error;

use super::folder::{MANIFEST_FILE, csv_name};
use super::tables::Table;

/// Why a run's folder cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// It is no run's folder.
    #[error("{0} holds no run: it has no {MANIFEST_FILE}; give the folder of `replay run --out`")]
    NoRun(PathBuf),
    /// The disk says no.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The failure of the disk.
        source: std::io::Error,
    },
    /// A file is not what a run writes.
    #[error("{path}, line {line}: expected {expected}, found `{found}`; run the replay again")]
    Content {
        /// The file.
        path: PathBuf,
        /// The line, from 1; 0 for the file as a whole.
        line: u64,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },
}

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
        let path = folder.join(csv_name(table));
        let unreadable = |error: csv::Error| ReadError::Read {
            path: folder.join(csv_name(table)),
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
    /// The text of a column by its index; empty for none.
    pub(crate) fn cell(&self, index: usize) -> &'a str {
        self.0.record.get(index).unwrap_or_default()
    }

    /// The text of a column; empty for none.
    pub(crate) fn text(&self, column: &str) -> &'a str {
        let index = self.0.table.columns.iter().position(|one| one.name == column);
        index.map_or("", |index| self.cell(index))
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
    pub(crate) fn unreadable(&self, source: std::io::Error) -> ReadError {
        ReadError::Read { path: self.0.path.clone(), source }
    }

    /// A text as a whole number.
    pub(crate) fn parse_whole(&self, text: &str) -> Result<i128, ReadError> {
        text.parse().map_err(|_| self.0.wrong("a whole number", text))
    }

    /// A text as exact yen in 1/10,000.
    pub(crate) fn parse_units(&self, text: &str) -> Result<i64, ReadError> {
        let money = text.parse::<Money>().map_err(|_| self.0.wrong("an amount of yen", text))?;
        Ok(money.units())
    }

    /// A text as a date.
    pub(crate) fn parse_date(&self, text: &str) -> Result<JstDate, ReadError> {
        text.parse().map_err(|_| self.0.wrong("a date YYYY-MM-DD", text))
    }
}

/// A JSON file of a run's folder. A folder without a manifest is no run's.
///
/// # Errors
/// [`ReadError`] when it is none, or the file cannot be read or is no JSON.
pub fn read_json(folder: &Path, name: &str) -> Result<Value, ReadError> {
    if !folder.join(MANIFEST_FILE).is_file() {
        return Err(ReadError::NoRun(folder.to_owned()));
    }
    let path = folder.join(name);
    let text = fs::read_to_string(&path)
        .map_err(|source| ReadError::Read { path: path.clone(), source })?;
    serde_json::from_str(&text).map_err(|error| ReadError::Content {
        path,
        line: error.line() as u64,
        expected: "JSON".to_owned(),
        found: error.to_string(),
    })
}
