//! Writes tables: one row group for each call, compressed with Snappy.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;

use ::parquet::basic::{
    Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical,
};
use ::parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use ::parquet::errors::ParquetError as Inner;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::file::writer::{
    SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter,
};
use ::parquet::schema::types::{ColumnPath, Type, TypePtr};
use domain::ShortText;

use super::{Field, Kind, ParquetError, Values};
use crate::limits::ROW_GROUP_ROWS_MAX;

/// What files say about who made them; fixed, so that the same table gives the same bytes.
const CREATED_BY: &str = "kumiki version 1";
/// Digits of a yen amount in 64 bits, and those after the point.
pub(super) const YEN_PRECISION: i32 = 18;
/// Digits after the point of a yen amount.
pub(super) const YEN_SCALE: i32 = 4;

/// Writes a table to `sink`, row group by row group.
pub struct TableWriter<W: Write + Send> {
    fields: Vec<Field>,
    writer: SerializedFileWriter<W>,
}

impl<W: Write + Send> TableWriter<W> {
    /// Starts a table with these columns.
    ///
    /// # Errors
    /// [`ParquetError`] when there is no column, when two share a name, or when the sink fails.
    pub fn new(sink: W, fields: &[Field]) -> Result<Self, ParquetError> {
        if fields.is_empty() {
            return Err(ParquetError::NoColumns);
        }
        let mut names = BTreeSet::new();
        for field in fields {
            if !names.insert(field.name.as_str()) {
                return Err(ParquetError::NameTwice(field.name.clone()));
            }
        }
        let columns = fields.iter().map(column_type).collect::<Result<Vec<_>, _>>();
        let schema = columns
            .and_then(|columns| Type::group_type_builder("table").with_fields(columns).build())
            .map_err(failed)?;
        let mut properties = WriterProperties::builder()
            .set_created_by(CREATED_BY.to_owned())
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk);
        for field in fields.iter().filter(|field| field.kind == Kind::Timestamp) {
            // Times hardly repeat but grow slowly; their differences take a quarter of the room.
            let column = ColumnPath::from(vec![field.name.clone()]);
            properties = properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
        }
        let properties = properties.build();
        let writer = SerializedFileWriter::new(sink, Arc::new(schema), Arc::new(properties));
        Ok(Self { fields: fields.to_vec(), writer: writer.map_err(failed)? })
    }

    /// Writes rows as one row group; nothing when there are no rows. A refused call writes nothing.
    ///
    /// # Errors
    /// [`ParquetError`] when the columns do not fit the table or each other, or when the sink fails.
    pub fn write(&mut self, columns: &[Values]) -> Result<(), ParquetError> {
        if check(&self.fields, columns)? == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group().map_err(failed)?;
        for (field, values) in self.fields.iter().zip(columns) {
            write_column(&mut group, field, values)?;
        }
        group.close().map(drop).map_err(failed)
    }

    /// Writes the end of the file and gives the sink back.
    ///
    /// # Errors
    /// [`ParquetError::Write`] when the sink fails.
    pub fn finish(self) -> Result<W, ParquetError> {
        self.writer.into_inner().map_err(failed)
    }
}

fn failed(error: Inner) -> ParquetError {
    ParquetError::Write(error.to_string())
}

fn column_type(field: &Field) -> Result<TypePtr, Inner> {
    let (physical, logical) = match field.kind {
        Kind::Timestamp => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
        Kind::Yen => (Physical::INT64, Some(LogicalType::decimal(YEN_SCALE, YEN_PRECISION))),
        Kind::Int => (Physical::INT64, None),
        Kind::Double => (Physical::DOUBLE, None),
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Bool => (Physical::BOOLEAN, None),
        Kind::Date => (Physical::INT32, Some(LogicalType::Date)),
    };
    let repetition = if field.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let mut builder = Type::primitive_type_builder(&field.name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical);
    if field.kind == Kind::Yen {
        builder = builder.with_precision(YEN_PRECISION).with_scale(YEN_SCALE);
    }
    builder.build().map(Arc::new)
}

/// Whether the columns fit the table; gives their rows.
fn check(fields: &[Field], columns: &[Values]) -> Result<usize, ParquetError> {
    if fields.len() != columns.len() {
        return Err(ParquetError::ColumnCount { expected: fields.len(), found: columns.len() });
    }
    let rows = columns.first().map_or(0, Values::len);
    if rows > ROW_GROUP_ROWS_MAX {
        return Err(ParquetError::GroupTooLarge { rows });
    }
    for (field, values) in fields.iter().zip(columns) {
        let column = || field.name.clone();
        if !values.holds(field.kind) {
            let found = values.name();
            return Err(ParquetError::WrongKind { column: column(), expected: field.kind, found });
        }
        if values.len() != rows {
            let found = values.len();
            return Err(ParquetError::ColumnLength { column: column(), expected: rows, found });
        }
        if !field.optional
            && let Some(row) = values.first_null()
        {
            return Err(ParquetError::Null { column: column(), row });
        }
        if let (Kind::Date, Values::Int(days)) = (field.kind, values)
            && let Some((row, value)) = first_bad_day(days)
        {
            return Err(ParquetError::DateRange { column: column(), row, value });
        }
    }
    Ok(rows)
}

fn first_bad_day(days: &[Option<i64>]) -> Option<(usize, i64)> {
    let known = days.iter().enumerate().filter_map(|(row, day)| Some((row, (*day)?)));
    known.into_iter().find(|(_, day)| i32::try_from(*day).is_err())
}

fn write_column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    field: &Field,
    values: &Values,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column().map_err(failed)? else {
        return Err(ParquetError::Write(format!("no room for column `{}`", field.name)));
    };
    let written = match (values, field.kind) {
        (Values::Int(values), Kind::Date) => {
            // Checked before: every day fits.
            let day = |day: &i64| i32::try_from(*day).unwrap_or_default();
            write_values::<Int32Type, _>(&mut column, field, values, day)
        }
        (Values::Int(values), _) => {
            write_values::<Int64Type, _>(&mut column, field, values, |value| *value)
        }
        (Values::Double(values), _) => {
            write_values::<DoubleType, _>(&mut column, field, values, |value| *value)
        }
        (Values::Bool(values), _) => {
            write_values::<BoolType, _>(&mut column, field, values, |value| *value)
        }
        (Values::Text(values), _) => {
            // All texts are parts of one piece of memory.
            let all = ByteArray::from(
                values.iter().flatten().map(ShortText::as_str).collect::<String>().into_bytes(),
            );
            let mut start = 0;
            let part = |text: &ShortText| {
                let part = all.slice(start, text.len());
                start += text.len();
                part
            };
            write_values::<ByteArrayType, _>(&mut column, field, values, part)
        }
    };
    written.map_err(failed)?;
    column.close().map_err(failed)
}

fn write_values<T: DataType, V>(
    column: &mut SerializedColumnWriter<'_>,
    field: &Field,
    values: &[Option<V>],
    convert: impl FnMut(&V) -> T::T,
) -> Result<usize, Inner> {
    let present: Vec<T::T> = values.iter().flatten().map(convert).collect();
    let levels: Option<Vec<i16>> =
        field.optional.then(|| values.iter().map(|value| i16::from(value.is_some())).collect());
    column.typed::<T>().write_batch(&present, levels.as_deref(), None)
}
