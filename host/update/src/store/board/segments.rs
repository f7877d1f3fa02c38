//! Recorded segments: which of them can be read, and what symbols they have.

use std::collections::BTreeSet;
use std::path::Path;

use domain::JstDate;
use domain::market_update::Symbol;
use domain::text::{on_one_line, with_causes};
use duckdb::Connection;
use marketdata::board::{FinishedSegment, read_depth, read_trade_prints};
use marketdata::parquet::ParquetError;
use pricestore::sql::quoted_path;
use schemars::JsonSchema;
use serde::Serialize;

use super::files::PLAIN;
use crate::store::limits::BOARD_WHY_CHARS_MAX;

/// A segment and its day.
#[derive(Debug, Clone)]
pub(super) struct Dated {
    pub(super) date: JstDate,
    pub(super) segment: FinishedSegment,
}

/// A recorded segment of which a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DamagedSegment {
    /// Its day in Japan.
    #[schemars(with = "String", extend("format" = "date"))]
    pub date: JstDate,
    /// Its number on that day.
    pub segment: u32,
    /// The file that cannot be read.
    pub file: String,
    /// Why, in one line.
    pub why: String,
}

/// What was found in some segments.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// Those that can be read, in their order.
    pub(super) sound: Vec<Dated>,
    /// Their symbols.
    pub(super) symbols: BTreeSet<String>,
    pub(super) damaged: Vec<DamagedSegment>,
}

/// Reads all rows of some segments, with the recorder's reader, which knows what a row is, and with the
/// database engine, which is to read them afterwards.
pub(super) fn read(connection: &Connection, segments: &[Dated]) -> Read {
    let mut read = Read::default();
    for one in segments {
        match symbols_of(connection, &one.segment) {
            Ok(symbols) => {
                read.symbols.extend(symbols.iter().map(ToString::to_string));
                read.sound.push(one.clone());
            }
            Err((file, why)) => {
                let why = on_one_line(&why).chars().take(BOARD_WHY_CHARS_MAX).collect();
                let (date, segment) = (one.date, one.segment.number);
                read.damaged.push(DamagedSegment { date, segment, file, why });
            }
        }
    }
    read
}

/// The symbols of a segment, or its file that cannot be read and why.
fn symbols_of(
    connection: &Connection,
    segment: &FinishedSegment,
) -> Result<BTreeSet<Symbol>, (String, String)> {
    let mut symbols = BTreeSet::new();
    if let Some(path) = &segment.depth {
        let read = read_depth(path, |row| -> Result<(), ParquetError> {
            symbols.insert(row.symbol);
            Ok(())
        });
        check(connection, path, read)?;
    }
    if let Some(path) = &segment.trades {
        let read = read_trade_prints(path, |row| -> Result<(), ParquetError> {
            symbols.insert(row.symbol);
            Ok(())
        });
        check(connection, path, read)?;
    }
    Ok(symbols)
}

fn check(
    connection: &Connection,
    path: &Path,
    read: Result<(), ParquetError>,
) -> Result<(), (String, String)> {
    let failed = |why: String| (path.display().to_string(), why);
    read.map_err(|error| failed(with_causes(&error)))?;
    // Every value of every column has to be decoded for it.
    let counts =
        format!("SELECT count(COLUMNS(*)) FROM read_parquet({}, {PLAIN})", quoted_path(path));
    let counted = connection.query_row(&counts, [], |_| Ok(()));
    counted.map_err(|error| failed(error.to_string()))
}
