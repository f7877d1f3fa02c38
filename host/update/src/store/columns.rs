//! Rows as columns, in the form in which the database engine takes many of them at once.

use std::sync::Arc;

use chrono::Datelike;
use domain::Price;
use domain::price::UNITS_PER_YEN;
use duckdb::arrow::array::{ArrayRef, Date32Array, Float64Array, RecordBatch, StringArray};

use super::schema::COLUMNS;
use crate::row::DailyRow;

/// Days from 0001-01-01 to 1970-01-01.
const UNIX_EPOCH_DAY: i32 = 719_163;

/// The columns of [`COLUMNS`] for these rows.
pub(super) fn columns(rows: &[DailyRow]) -> duckdb::Result<RecordBatch> {
    let prices = |of: fn(&DailyRow) -> Option<Price>| {
        numbers(rows.iter().map(move |row| of(row).map(|price| yen(price.units()))))
    };
    let dates = rows.iter().map(|row| row.date.num_days_from_ce() - UNIX_EPOCH_DAY);
    let values: [ArrayRef; COLUMNS.len()] = [
        Arc::new(Date32Array::from_iter_values(dates)),
        texts(rows.iter().map(|row| row.code.as_str())),
        prices(|row| row.open),
        prices(|row| row.high),
        prices(|row| row.low),
        prices(|row| row.close),
        numbers(rows.iter().map(|row| row.volume.map(shares))),
        numbers(rows.iter().map(|row| row.turnover.map(|money| yen(money.units())))),
        numbers(rows.iter().map(|row| row.adjustment_factor)),
        texts(rows.iter().map(|row| row.source.as_str())),
    ];
    RecordBatch::try_from_iter(COLUMNS.iter().map(|(name, _)| *name).zip(values))
        .map_err(|error| duckdb::Error::ToSqlConversionFailure(Box::new(error)))
}

fn numbers(values: impl Iterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(values.collect::<Float64Array>())
}

fn texts<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// Yen as the databases hold them.
#[expect(clippy::cast_precision_loss, reason = "the database's edge: columns are DOUBLE")]
fn yen(units: i64) -> f64 {
    units as f64 / UNITS_PER_YEN as f64
}

/// Shares as the databases hold them.
#[expect(clippy::cast_precision_loss, reason = "the database's edge: columns are DOUBLE")]
fn shares(count: u64) -> f64 {
    count as f64
}
