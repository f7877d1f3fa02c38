//! Reads tables: as a whole or row group by row group.

use std::fs::File;
use std::path::{Path, PathBuf};

use ::parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::{ByteArray, DataType};
use ::parquet::errors::ParquetError as Inner;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::schema::types::ColumnDescriptor;
use domain::ShortText;

use super::write::{YEN_PRECISION, YEN_SCALE};
use super::{Field, Kind, ParquetError, Table, Values};
use crate::limits::{ROW_GROUP_ROWS_MAX, TABLE_ROWS_MAX};

/// Reads a table row group by row group.
pub struct TableReader {
    path: PathBuf,
    reader: SerializedFileReader<File>,
    fields: Vec<Field>,
    rows: u64,
}

impl TableReader {
    /// Opens the file at `path` and reads its columns' names and kinds.
    ///
    /// # Errors
    /// [`ParquetError`] when it cannot be read, is no Parquet file, or has a column of a kind that
    /// is not one of [`Kind`].
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, ParquetError> {
        let path = path.into();
        let unreadable = |source| ParquetError::Unreadable { path: path.clone(), source };
        // A pipe of this name would be waited for.
        if !std::fs::metadata(&path).map_err(unreadable)?.is_file() {
            return Err(ParquetError::Damaged { path, reason: "it is no file".to_owned() });
        }
        let file = File::open(&path).map_err(unreadable)?;
        let reader = SerializedFileReader::new(file).map_err(|error| damaged(&path, &error))?;
        let schema = reader.metadata().file_metadata().schema_descr();
        let fields = schema.columns().iter().map(|column| field_of(&path, column));
        let fields = fields.collect::<Result<Vec<_>, _>>()?;
        let rows = u64::try_from(reader.metadata().file_metadata().num_rows()).unwrap_or(0);
        Ok(Self { path, reader, fields, rows })
    }

    /// The columns in order.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Rows in all row groups together.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Number of row groups in the file.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.reader.num_row_groups()
    }

    /// The values of one row group, column by column.
    ///
    /// # Errors
    /// [`ParquetError::Damaged`] when it cannot be decoded or is larger than this crate writes.
    pub fn group(&self, index: usize) -> Result<Vec<Values>, ParquetError> {
        let failed = |error: Inner| damaged(&self.path, &error);
        let wrong = |reason: String| ParquetError::Damaged { path: self.path.clone(), reason };
        if index >= self.groups() {
            return Err(wrong(format!("it has {} row groups, not {}", self.groups(), index + 1)));
        }
        let group = self.reader.get_row_group(index).map_err(failed)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(usize::MAX);
        if rows > ROW_GROUP_ROWS_MAX {
            return Err(wrong(format!(
                "row group {index} has {rows} rows, the limit is {ROW_GROUP_ROWS_MAX}"
            )));
        }
        let mut columns = Vec::with_capacity(self.fields.len());
        for (index, field) in self.fields.iter().enumerate() {
            let column = group.get_column_reader(index).map_err(failed)?;
            let values = values_of(column, field, rows).map_err(failed)?;
            if values.len() != rows {
                let found = values.len();
                return Err(wrong(format!(
                    "column `{}` has {found} of {rows} rows in row group {index}",
                    field.name
                )));
            }
            columns.push(values);
        }
        Ok(columns)
    }
}

/// Reads a whole table of at most [`TABLE_ROWS_MAX`] rows.
///
/// # Errors
/// [`ParquetError`] when it cannot be read or is too large.
pub fn read_table(path: impl AsRef<Path>) -> Result<Table, ParquetError> {
    read_up_to(path.as_ref(), TABLE_ROWS_MAX)
}

pub(super) fn read_up_to(path: &Path, rows_max: u64) -> Result<Table, ParquetError> {
    let reader = TableReader::open(path)?;
    if reader.rows > rows_max {
        return Err(ParquetError::TableTooLarge { path: path.to_path_buf(), rows: reader.rows });
    }
    let mut columns: Vec<Values> =
        reader.fields.iter().map(|field| Values::empty(field.kind)).collect();
    for index in 0..reader.groups() {
        for (all, more) in columns.iter_mut().zip(reader.group(index)?) {
            all.append(more);
        }
    }
    Ok(Table { fields: reader.fields, columns })
}

fn damaged(path: &Path, error: &Inner) -> ParquetError {
    ParquetError::Damaged { path: path.to_path_buf(), reason: error.to_string() }
}

fn field_of(path: &Path, column: &ColumnDescriptor) -> Result<Field, ParquetError> {
    let nested = column.max_rep_level() > 0 || column.path().parts().len() > 1;
    match kind_of(column).filter(|_| !nested) {
        Some(kind) => {
            Ok(Field { name: column.name().to_owned(), kind, optional: column.max_def_level() > 0 })
        }
        None => Err(ParquetError::UnknownColumn {
            path: path.to_path_buf(),
            column: column.path().string(),
            found: described(column),
        }),
    }
}

fn described(column: &ColumnDescriptor) -> String {
    let physical = column.physical_type();
    match column.logical_type_ref() {
        Some(logical) => format!("{physical} as {logical:?}"),
        None => physical.to_string(),
    }
}

fn kind_of(column: &ColumnDescriptor) -> Option<Kind> {
    let is_nanos = |unit: &TimeUnit| matches!(unit, TimeUnit::NANOS);
    match (column.physical_type(), column.logical_type_ref()) {
        (Physical::INT64, Some(LogicalType::Timestamp(kind)))
            if kind.is_adjusted_to_u_t_c && is_nanos(&kind.unit) =>
        {
            Some(Kind::Timestamp)
        }
        (Physical::INT64, Some(LogicalType::Decimal(kind)))
            if (kind.scale, kind.precision) == (YEN_SCALE, YEN_PRECISION) =>
        {
            Some(Kind::Yen)
        }
        (Physical::INT64, Some(LogicalType::Integer(kind))) if kind.is_signed => Some(Kind::Int),
        (Physical::INT64, None) if column.converted_type() == ConvertedType::NONE => {
            Some(Kind::Int)
        }
        (Physical::DOUBLE, None) => Some(Kind::Double),
        (Physical::BYTE_ARRAY, Some(LogicalType::String)) => Some(Kind::Text),
        (Physical::BOOLEAN, None) => Some(Kind::Bool),
        (Physical::INT32, Some(LogicalType::Date)) => Some(Kind::Date),
        _ => None,
    }
}

fn values_of(column: ColumnReader, field: &Field, rows: usize) -> Result<Values, Inner> {
    Ok(match column {
        ColumnReader::Int64ColumnReader(reader) => {
            Values::Int(read_values(reader, field, rows, Ok)?)
        }
        ColumnReader::Int32ColumnReader(reader) => {
            Values::Int(read_values(reader, field, rows, |day| Ok(i64::from(day)))?)
        }
        ColumnReader::DoubleColumnReader(reader) => {
            Values::Double(read_values(reader, field, rows, Ok)?)
        }
        ColumnReader::BoolColumnReader(reader) => {
            Values::Bool(read_values(reader, field, rows, Ok)?)
        }
        ColumnReader::ByteArrayColumnReader(reader) => {
            let text = |bytes: ByteArray| {
                bytes.as_utf8().map(ShortText::from).map_err(|error| {
                    Inner::General(format!("column `{}` is not UTF-8: {error}", field.name))
                })
            };
            Values::Text(read_values(reader, field, rows, text)?)
        }
        // Columns of other types were refused when the file was opened.
        _ => return Err(Inner::General(format!("column `{}` changed its type", field.name))),
    })
}

fn read_values<T: DataType, V>(
    mut reader: ColumnReaderImpl<T>,
    field: &Field,
    rows: usize,
    convert: impl Fn(T::T) -> Result<V, Inner>,
) -> Result<Vec<Option<V>>, Inner> {
    let mut present = Vec::with_capacity(rows);
    let mut levels = Vec::with_capacity(if field.optional { rows } else { 0 });
    let wanted_levels = field.optional.then_some(&mut levels);
    reader.read_records(rows, wanted_levels, None, &mut present)?;
    if !field.optional {
        return present.into_iter().map(|value| convert(value).map(Some)).collect();
    }
    let mut present = present.into_iter();
    levels
        .into_iter()
        .map(|level| if level > 0 { present.next().map(&convert).transpose() } else { Ok(None) })
        .collect()
}
