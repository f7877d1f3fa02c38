//! Values as cells of a table, and a table's CSV file that takes them row by row.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use domain::csv_cell;
use domain::{InstrumentId, InstrumentIx, JstDate, Money, Price, Quantity, TsNanos};

use super::column::{Kind, Table};
use super::files::FolderError;

/// Names of the instruments of a run, by their index.
#[derive(Debug, Clone)]
pub(crate) struct Names(Vec<String>);

impl Names {
    pub(crate) fn new(ids: &[InstrumentId]) -> Self {
        Self(ids.iter().map(ToString::to_string).collect())
    }

    /// The name of an instrument. An order for an index that does not exist was rejected; `unknown`
    /// stands for it.
    pub(super) fn of(&self, instrument: InstrumentIx) -> &str {
        self.0.get(usize::from(instrument.0)).map_or("unknown", String::as_str)
    }
}

/// A type of value that a column can hold.
pub(crate) trait Cell {
    /// What a column of such values holds.
    const KIND: Kind;
    /// Whether a column of such values may be empty.
    const OPTIONAL: bool = false;

    /// The value as the files show it; none for an empty cell.
    fn shown(&self) -> Option<impl fmt::Display>;
}

macro_rules! cells {
    ($($value:ty: $kind:ident, $shown:expr;)+) => {
        $(impl Cell for $value {
            const KIND: Kind = Kind::$kind;

            fn shown(&self) -> Option<impl fmt::Display> {
                let shown: fn(&Self) -> _ = $shown;
                Some(shown(self))
            }
        })+
    };
}

cells! {
    u32: Whole, |number| *number;
    u64: Whole, |number| *number;
    i64: Whole, |number| *number;
    Quantity: Whole, |quantity| quantity.shares();
    TsNanos: Timestamp, |timestamp| timestamp.nanos();
    JstDate: Date, |date| *date;
    Money: Yen, |money| *money;
    Price: Yen, |price| *price;
}

impl Cell for &str {
    const KIND: Kind = Kind::Text;

    fn shown(&self) -> Option<impl fmt::Display> {
        Some(*self)
    }
}

impl<C: Cell> Cell for Option<C> {
    const KIND: Kind = C::KIND;
    const OPTIONAL: bool = true;

    fn shown(&self) -> Option<impl fmt::Display> {
        self.as_ref().and_then(Cell::shown)
    }
}

/// A table whose rows a run writes.
pub(crate) trait Rows {
    /// One row.
    type Row<'a>;
    /// Its columns.
    const TABLE: Table;

    /// Writes the cells of a row in the order of the columns.
    fn write(row: Self::Row<'_>, names: &Names, cells: &mut CellWriter) -> io::Result<()>;
}

/// Writes cells as CSV; all of them go through one piece of memory.
pub(crate) struct CellWriter {
    csv: csv::Writer<File>,
    text: String,
}

impl CellWriter {
    pub(super) fn cell<C: Cell>(&mut self, value: &C) -> io::Result<()> {
        self.text.clear();
        if let Some(shown) = value.shown() {
            write!(self.text, "{shown}").map_err(io::Error::other)?;
        }
        // The schemas say which columns hold texts; a number with a sign is none.
        let cell = if C::KIND == Kind::Text {
            csv_cell::guarded(&self.text)
        } else {
            Cow::Borrowed(&*self.text)
        };
        Ok(self.csv.write_field(&*cell)?)
    }
}

/// The CSV file of a table.
pub(crate) struct TableFile<T> {
    path: PathBuf,
    cells: CellWriter,
    rows: PhantomData<T>,
}

impl<T: Rows> TableFile<T> {
    /// Begins the file with its header line.
    pub(super) fn create(folder: &Path) -> Result<Self, FolderError> {
        let path = folder.join(T::TABLE.csv_name());
        let begin = || -> io::Result<_> {
            let mut writer = csv::Writer::from_path(&path)?;
            writer.write_record(T::TABLE.columns.iter().map(|column| column.name))?;
            Ok(writer)
        };
        let csv = begin().map_err(FolderError::at(&path))?;
        Ok(Self { path, cells: CellWriter { csv, text: String::new() }, rows: PhantomData })
    }

    /// Adds a row.
    pub(super) fn write(&mut self, row: T::Row<'_>, names: &Names) -> io::Result<()> {
        T::write(row, names, &mut self.cells)?;
        Ok(self.cells.csv.write_record(None::<&[u8]>)?)
    }

    /// Completes the file.
    pub(super) fn finish(mut self) -> Result<(), FolderError> {
        self.cells.csv.flush().map_err(FolderError::at(&self.path))
    }

    /// Writes the whole table.
    pub(crate) fn write_all<'a>(
        folder: &Path,
        rows: impl IntoIterator<Item = T::Row<'a>>,
        names: &Names,
    ) -> Result<(), FolderError> {
        let mut file = Self::create(folder)?;
        for row in rows {
            file.write(row, names).map_err(FolderError::at(&file.path))?;
        }
        file.finish()
    }
}
