//! Small typed tables in Parquet files: exact decimals for yen, nanoseconds for times, nulls where a
//! column allows them.
//!
//! A [`TableWriter`] writes one row group for each call, a [`TableReader`] reads one row group at a
//! time, so both need memory for one row group only. The same tables give the same bytes: nothing in
//! a file tells when or where it was made.

mod read;
mod write;

use std::fmt;
use std::io;
use std::path::PathBuf;

use domain::ShortText;
use thiserror::Error;

use crate::limits::{ROW_GROUP_ROWS_MAX, TABLE_ROWS_MAX};

pub use read::{TableReader, read_table};
pub use write::TableWriter;

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Name of the column, unique in its table.
    pub name: String,
    /// What its values are.
    pub kind: Kind,
    /// Whether values may be missing.
    pub optional: bool,
}

impl Field {
    /// A column in which every row has a value.
    pub fn required(name: impl Into<String>, kind: Kind) -> Self {
        Self { name: name.into(), kind, optional: false }
    }

    /// A column in which values may be missing.
    pub fn optional(name: impl Into<String>, kind: Kind) -> Self {
        Self { name: name.into(), kind, optional: true }
    }
}

/// What the values of a column are, and how the file says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nanoseconds since 1970 in UTC; INT64 as timestamp(nanoseconds, UTC). In [`Values::Int`].
    Timestamp,
    /// 1/10,000 yen, exact; INT64 as decimal(18, 4). In [`Values::Int`].
    Yen,
    /// A whole number; INT64. In [`Values::Int`].
    Int,
    /// A ratio; DOUBLE. In [`Values::Double`].
    Double,
    /// UTF-8 text; BYTE_ARRAY as string. In [`Values::Text`].
    Text,
    /// True or false; BOOLEAN. In [`Values::Bool`].
    Bool,
    /// Days since 1970-01-01; INT32 as date. In [`Values::Int`].
    Date,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timestamp => "timestamp",
            Self::Yen => "yen",
            Self::Int => "integer",
            Self::Double => "double",
            Self::Text => "text",
            Self::Bool => "bool",
            Self::Date => "date",
        })
    }
}

/// The values of one column; `None` is a missing value.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Timestamps in nanoseconds UTC, yen in 1/10,000, whole numbers, dates in days since 1970.
    Int(Vec<Option<i64>>),
    /// Ratios, [`Kind::Double`].
    Double(Vec<Option<f64>>),
    /// Texts, [`Kind::Text`].
    Text(Vec<Option<ShortText>>),
    /// Truth values, [`Kind::Bool`].
    Bool(Vec<Option<bool>>),
}

impl Values {
    /// No values, of the variant that belongs to `kind`.
    #[must_use]
    pub const fn empty(kind: Kind) -> Self {
        match kind {
            Kind::Timestamp | Kind::Yen | Kind::Int | Kind::Date => Self::Int(Vec::new()),
            Kind::Double => Self::Double(Vec::new()),
            Kind::Text => Self::Text(Vec::new()),
            Kind::Bool => Self::Bool(Vec::new()),
        }
    }

    /// Number of values, missing ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Int(values) => values.len(),
            Self::Double(values) => values.len(),
            Self::Text(values) => values.len(),
            Self::Bool(values) => values.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the variant is the one that holds values of `kind`.
    #[must_use]
    pub const fn holds(&self, kind: Kind) -> bool {
        matches!(
            (self, kind),
            (Self::Int(_), Kind::Timestamp | Kind::Yen | Kind::Int | Kind::Date)
                | (Self::Double(_), Kind::Double)
                | (Self::Text(_), Kind::Text)
                | (Self::Bool(_), Kind::Bool)
        )
    }

    /// The row of the first missing value.
    fn first_null(&self) -> Option<usize> {
        match self {
            Self::Int(values) => values.iter().position(Option::is_none),
            Self::Double(values) => values.iter().position(Option::is_none),
            Self::Text(values) => values.iter().position(Option::is_none),
            Self::Bool(values) => values.iter().position(Option::is_none),
        }
    }

    /// What the variant is called in messages.
    const fn name(&self) -> &'static str {
        match self {
            Self::Int(_) => "integer",
            Self::Double(_) => "double",
            Self::Text(_) => "text",
            Self::Bool(_) => "bool",
        }
    }

    /// Adds the values of `more` behind; both are of the same variant.
    fn append(&mut self, more: Self) {
        match (self, more) {
            (Self::Int(all), Self::Int(mut more)) => all.append(&mut more),
            (Self::Double(all), Self::Double(mut more)) => all.append(&mut more),
            (Self::Text(all), Self::Text(mut more)) => all.append(&mut more),
            (Self::Bool(all), Self::Bool(mut more)) => all.append(&mut more),
            // The columns of one file have one kind in every row group.
            _ => {}
        }
    }
}

/// A whole table in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its columns in order.
    pub fields: Vec<Field>,
    /// Their values, in the same order, all of the same length.
    pub columns: Vec<Values>,
}

impl Table {
    /// Number of rows; every column has as many values.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, Values::len)
    }

    /// The column of that name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Values> {
        self.fields.iter().position(|field| field.name == name).map(|index| &self.columns[index])
    }
}

/// Why a table cannot be written or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ParquetError {
    /// A table needs columns.
    #[error("a table without columns was asked for; name at least one")]
    NoColumns,
    /// Two columns share a name.
    #[error("two columns are named `{0}`; each needs a name of its own")]
    NameTwice(String),
    /// More or fewer columns than fields.
    #[error("{found} columns given for a table of {expected}")]
    ColumnCount {
        /// Columns of the table.
        expected: usize,
        /// Columns that were given.
        found: usize,
    },
    /// A column is longer or shorter than the first.
    #[error("column `{column}` has {found} rows, the first column has {expected}")]
    ColumnLength {
        /// Name of the column.
        column: String,
        /// Rows of the first column.
        expected: usize,
        /// Rows of this one.
        found: usize,
    },
    /// A column's values are of another kind.
    #[error("column `{column}` holds {expected} values, {found} values were given")]
    WrongKind {
        /// Name of the column.
        column: String,
        /// Kind of the column, as its field says.
        expected: Kind,
        /// What was given.
        found: &'static str,
    },
    /// A value is missing where none may be.
    #[error("column `{column}` needs a value in every row, row {row} has none")]
    Null {
        /// Name of the column.
        column: String,
        /// The row in this row group, from 0.
        row: usize,
    },
    /// A day that INT32 does not hold.
    #[error("column `{column}`, row {row}: day {value} after 1970-01-01 is out of range")]
    DateRange {
        /// Name of the column.
        column: String,
        /// The row in this row group, from 0.
        row: usize,
        /// The day, counted from 1970-01-01.
        value: i64,
    },
    /// More rows than one row group may have.
    #[error(
        "{rows} rows in one row group, the limit is {}; write them in several calls",
        ROW_GROUP_ROWS_MAX
    )]
    GroupTooLarge {
        /// Rows asked for.
        rows: usize,
    },
    /// More rows than are read at once.
    #[error(
        "{path} has {rows} rows, at most {} are read at once; read it by row groups",
        TABLE_ROWS_MAX
    )]
    TableTooLarge {
        /// Path of the file, as it was asked for.
        path: PathBuf,
        /// Rows that the file says it has.
        rows: u64,
    },
    /// A column of a file that is none of [`Kind`].
    #[error(
        "{path}, column `{column}` is {found}; readable are INT64, timestamp(ns, UTC), decimal(18, 4) in INT64, DOUBLE, string, BOOLEAN and date"
    )]
    UnknownColumn {
        /// Path of the file, as it was asked for.
        path: PathBuf,
        /// Name of the column.
        column: String,
        /// What the file says it is.
        found: String,
    },
    /// The file is damaged or no Parquet file.
    #[error("{path} is no readable Parquet file: {reason}; make it again")]
    Damaged {
        /// Path of the file, as it was asked for.
        path: PathBuf,
        /// What the decoder said.
        reason: String,
    },
    /// The file cannot be opened.
    #[error("cannot read {path}: {source}; check that the file is there and may be read")]
    Unreadable {
        /// Path of the file, as it was asked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The table cannot be written.
    #[error("cannot write the table: {0}")]
    Write(String),
}

#[cfg(test)]
mod tests;
