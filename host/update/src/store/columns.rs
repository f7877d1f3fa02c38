//! Rows as columns, in the form in which the database engine takes many of them at once.

use std::sync::Arc;

use domain::price::UNITS_PER_YEN;
use duckdb::arrow::array::{ArrayRef, Date32Builder, Float64Builder, RecordBatch, StringBuilder};
use pricestore::sql;

use super::schema::COLUMNS;
use crate::row::DailyRow;

/// Bytes of a code or of a source's word, nearly always.
const CODE_BYTES: usize = 6;

/// Rows that are read for one column after the other: as many as a processor keeps near.
const NEAR_ROWS: usize = 4_096;

/// The columns of [`COLUMNS`] for these rows.
pub(super) fn columns(rows: &[DailyRow]) -> duckdb::Result<RecordBatch> {
    let mut dates = Date32Builder::with_capacity(rows.len());
    let mut codes = StringBuilder::with_capacity(rows.len(), rows.len() * CODE_BYTES);
    let mut sources = StringBuilder::with_capacity(rows.len(), rows.len() * CODE_BYTES);
    let mut numbers = NUMBERS.map(|_| Float64Builder::with_capacity(rows.len()));
    for rows in rows.chunks(NEAR_ROWS) {
        dates.extend(rows.iter().map(|row| Some(row.date.to_epoch_days())));
        codes.extend(rows.iter().map(|row| Some(row.code.as_str())));
        sources.extend(rows.iter().map(|row| Some(row.source.as_str())));
        for (of, column) in NUMBERS.iter().zip(&mut numbers) {
            column.extend(rows.iter().map(of));
        }
    }
    let [open, high, low, close, volume, turnover, adjustment_factor] =
        numbers.map(|mut column| -> ArrayRef { Arc::new(column.finish()) });
    let values: [ArrayRef; COLUMNS.len()] = [
        Arc::new(dates.finish()),
        Arc::new(codes.finish()),
        open,
        high,
        low,
        close,
        volume,
        turnover,
        adjustment_factor,
        Arc::new(sources.finish()),
    ];
    sql::rows(COLUMNS.iter().map(|(name, _)| *name).zip(values))
}

/// The columns of numbers, in their order.
const NUMBERS: [fn(&DailyRow) -> Option<f64>; 7] = [
    |row| row.open.map(|price| yen(price.units())),
    |row| row.high.map(|price| yen(price.units())),
    |row| row.low.map(|price| yen(price.units())),
    |row| row.close.map(|price| yen(price.units())),
    |row| row.volume.map(shares),
    |row| row.turnover.map(|money| yen(money.units())),
    |row| row.adjustment_factor,
];

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
