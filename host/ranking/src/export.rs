//! Rankings as files for other programs: Parquet and Arrow. The text forms are in `rows`.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_ipc::writer::StreamWriter;
use duckdb::arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Float64Array, RecordBatch, StringArray, UInt32Array,
};
use duckdb::arrow::error::ArrowError;
use duckdb::params;
use pricestore::sql::quoted_path;
use thiserror::Error;

use crate::{ListedField, ListedInfo, RankRow, Ranking};

pub use crate::rows::{row_schema, rows_schema, write_csv, write_json, write_jsonl};

/// Rows of one batch of an Arrow stream: a few megabytes.
const BATCH_ROWS: usize = 65_536;
/// Memory of the database engine while it writes Parquet.
const MEMORY: &str = "512MB";

/// Why a file was not written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The file cannot be written.
    #[error("the rows cannot be written")]
    Io(#[from] io::Error),
    /// Arrow refused something.
    #[error("the rows cannot be written as Arrow")]
    Arrow(#[from] ArrowError),
    /// The database engine refused something.
    #[error("the rows cannot be written as Parquet")]
    Parquet(#[from] duckdb::Error),
}

/// Writes an Arrow stream (IPC) with the columns date, code, close, sortValue, volume, rank, spansSplit,
/// name, nameEn, market and sector33.
///
/// # Errors
/// What `out` says.
pub fn write_arrow(
    ranking: &Ranking,
    listed: &ListedInfo,
    out: &mut impl Write,
) -> Result<(), ExportError> {
    let empty = batch(ranking, listed, &[])?;
    let mut writer = StreamWriter::try_new(out, &empty.schema())?;
    for rows in ranking.rows.chunks(BATCH_ROWS) {
        writer.write(&batch(ranking, listed, rows)?)?;
    }
    writer.finish()?;
    Ok(())
}

fn batch(
    ranking: &Ranking,
    listed: &ListedInfo,
    rows: &[RankRow],
) -> Result<RecordBatch, ArrowError> {
    let days: Vec<i32> = ranking.days.iter().map(|day| day.to_epoch_days()).collect();
    let dates: Date32Array = rows.iter().map(|row| Some(days[row.day as usize])).collect();
    let codes: StringArray =
        rows.iter().map(|row| Some(ranking.codes[row.code as usize].as_ref())).collect();
    let closes: Float64Array = rows.iter().map(|row| Some(row.close)).collect();
    let values: Float64Array = rows.iter().map(|row| row.sort_value).collect();
    let volumes: Float64Array = rows.iter().map(|row| row.volume).collect();
    let ranks: UInt32Array = rows.iter().map(|row| Some(row.rank)).collect();
    let spans: BooleanArray = rows.iter().map(|row| ranking.spans_split(row)).collect();
    let mut columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("date", Arc::new(dates), false),
        ("code", Arc::new(codes), false),
        ("close", Arc::new(closes), false),
        ("sortValue", Arc::new(values), true),
        ("volume", Arc::new(volumes), true),
        ("rank", Arc::new(ranks), false),
        ("spansSplit", Arc::new(spans), true),
    ];
    for field in ListedField::ALL {
        let texts: StringArray = rows.iter().map(|row| text(ranking, listed, row, field)).collect();
        columns.push((field.name(), Arc::new(texts), true));
    }
    RecordBatch::try_from_iter_with_nullable(columns)
}

/// What the lists say of the issue of a row.
fn text<'a>(
    ranking: &Ranking,
    listed: &'a ListedInfo,
    row: &RankRow,
    field: ListedField,
) -> Option<&'a str> {
    listed.text(&ranking.codes[row.code as usize], ranking.days[row.day as usize], field)
}

/// Writes a Parquet file with the columns of [`write_arrow`]. The file must not be there yet, or is
/// written over.
///
/// # Errors
/// When the folder cannot be written to.
pub fn write_parquet(
    ranking: &Ranking,
    listed: &ListedInfo,
    path: &Path,
) -> Result<(), ExportError> {
    let config = duckdb::Config::default().max_memory(MEMORY)?;
    let connection = pricestore::sql::open(config)?;
    connection.execute_batch(
        "SET temp_directory = ''; CREATE TABLE ranking (date DATE NOT NULL, code VARCHAR NOT NULL, \
         close DOUBLE NOT NULL, \"sortValue\" DOUBLE, volume DOUBLE, rank UINTEGER NOT NULL, \
         \"spansSplit\" BOOLEAN, name VARCHAR, \"nameEn\" VARCHAR, market VARCHAR, \
         sector33 VARCHAR)",
    )?;
    let days: Vec<String> = ranking.days.iter().map(ToString::to_string).collect();
    let mut appender = connection.appender("ranking")?;
    for row in &ranking.rows {
        let code: &str = &ranking.codes[row.code as usize];
        let (day, value, volume) = (&days[row.day as usize], row.sort_value, row.volume);
        let spans = ranking.spans_split(row);
        let [name, name_en, market, sector] =
            ListedField::ALL.map(|field| text(ranking, listed, row, field));
        let close = row.close;
        appender.append_row(params![
            day, code, close, value, volume, row.rank, spans, name, name_en, market, sector
        ])?;
    }
    appender.flush()?;
    drop(appender);
    let path = quoted_path(path);
    // Not by a file of DuckDB's own, which it could not rename over this one on Windows.
    connection.execute_batch(&format!(
        "COPY ranking TO {path} (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)"
    ))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use duckdb::Connection;
    use pricestore::listed::{IssueField, IssueInfo, ListedHistory};

    use super::*;

    fn ranking() -> Ranking {
        let row = |rank: u32| RankRow {
            day: rank % 2,
            code: 1,
            close: 10.25 * f64::from(rank),
            volume: (rank != 3).then_some(100.0),
            sort_value: (rank != 2).then_some(0.1 + 0.2),
            rank,
        };
        let day = |text: &str| text.parse().unwrap();
        Ranking {
            days: vec![day("1969-12-31"), day("2024-02-29")],
            codes: ["1301", "130A"].map(Box::from).into(),
            rows: (1..=3).map(row).collect(),
            snapshot: 1,
            splits: None,
        }
    }

    /// A list between the two days.
    fn listed() -> ListedInfo {
        let info = IssueInfo::default().with(IssueField::NameEn, "A");
        let mut history = ListedHistory::default();
        let date = "2024-01-04".parse().unwrap();
        history.insert(date, [(Box::from("130A"), info)].into()).unwrap();
        ListedInfo::new(&history)
    }

    #[test]
    fn parquet_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("it's.parquet");
        write_parquet(&ranking(), &listed(), &path).unwrap();
        let path = path.to_string_lossy().replace('\'', "''");
        let connection = Connection::open_in_memory().unwrap();
        let sql = format!(
            "SELECT date::VARCHAR || code || \"sortValue\"::VARCHAR || coalesce(\"nameEn\", 'none') \
               || coalesce(market, '-'), close, volume, rank \
             FROM '{path}' ORDER BY rank"
        );
        let mut statement = connection.prepare(&sql).unwrap();
        let rows: Vec<(Option<String>, f64, Option<f64>, u32)> = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let text = Some("2024-02-29130A0.30000000000000004A-".to_owned());
        assert_eq!(rows[0], (text.clone(), 10.25, Some(100.0), 1));
        assert_eq!(rows[1], (None, 20.5, Some(100.0), 2));
        assert_eq!(rows[2], (text, 30.75, None, 3));
    }

    #[test]
    fn arrow_reads_back() {
        let mut bytes = Vec::new();
        write_arrow(&ranking(), &listed(), &mut bytes).unwrap();
        let reader = arrow_ipc::reader::StreamReader::try_new(&bytes[..], None).unwrap();
        let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
        assert_eq!(batches, [batch(&ranking(), &listed(), &ranking().rows).unwrap()]);
        let dates: Date32Array = vec![19_782, -1, 19_782].into();
        assert_eq!(batches[0].column(0).as_ref(), &dates as &dyn duckdb::arrow::array::Array);
        let names: StringArray = vec![Some("A"), None, Some("A")].into();
        assert_eq!(batches[0].column(8).as_ref(), &names as &dyn duckdb::arrow::array::Array);
    }
}
