//! Small files in the vendor's layout and short ways to read them.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use domain::VendorCode;
use flate2::Compression;
use flate2::write::GzEncoder;
use marketdata::{
    DataError, LoadProgress, ReadOptions, ReadSummary, Selection, TradeFile, TradeRow, read_trades,
};
use tempfile::TempDir;

/// The vendor's header line.
pub(crate) const HEADER: &str =
    "Date,Code,Time,SessionDistinction,Price,TradingVolume,TransactionId";

/// A sound file: several rows at one instant, a decimal price, a letter in a code, a share class,
/// two days.
pub(crate) const TEXT: &str = "\
Date,Code,Time,SessionDistinction,Price,TradingVolume,TransactionId
2025-01-06,13010,09:00:00.067558,01,4810,2200,000000000021
2025-01-06,13010,09:00:00.067558,01,4815,300,000000000022
2025-01-06,13010,11:30:00.000123,01,4812.5,300,000000000188
2025-01-06,130A0,12:30:00.004211,02,1234,100,000000000001
2025-01-06,25935,15:30:00.000001,02,3000,1500,000000000340
2025-01-07,13010,09:00:01.500000,01,4820,100,000000000007
2025-01-07,13010,09:00:01.500001,01,4821,100,000000000008
";

/// A row without its code index: code, timestamp, price, quantity, id.
pub(crate) type Row = (String, u64, i64, u64, u64);

/// What every legal spelling of [`TEXT`] holds.
pub(crate) fn text_rows() -> Vec<Row> {
    let row = |code: &str, ts, price, quantity, id| (code.to_owned(), ts, price, quantity, id);
    vec![
        row("13010", 1_736_121_600_067_558_000, 48_100_000, 2_200, 21),
        row("13010", 1_736_121_600_067_558_000, 48_150_000, 300, 22),
        row("13010", 1_736_130_600_000_123_000, 48_125_000, 300, 188),
        row("130A0", 1_736_134_200_004_211_000, 12_340_000, 100, 1),
        row("25935", 1_736_145_000_000_001_000, 30_000_000, 1_500, 340),
        row("13010", 1_736_208_001_500_000_000, 48_200_000, 100, 7),
        row("13010", 1_736_208_001_500_001_000, 48_210_000, 100, 8),
    ]
}

pub(crate) fn code(text: &str) -> VendorCode {
    VendorCode::new(text).unwrap()
}

pub(crate) fn gzip(text: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_ref()).unwrap();
    encoder.finish().unwrap()
}

/// The trades file of January 2025 in `folder`, with these bytes.
pub(crate) fn write_file(folder: &Path, bytes: &[u8]) -> TradeFile {
    let path = folder.join("equities_trades_202501.csv.gz");
    std::fs::write(&path, bytes).unwrap();
    TradeFile::from_path(path).unwrap()
}

/// A trades file in a folder of its own, which lives as long as the first value.
pub(crate) fn file_with(bytes: &[u8]) -> (TempDir, TradeFile) {
    let folder = tempfile::tempdir().unwrap();
    let file = write_file(folder.path(), bytes);
    (folder, file)
}

pub(crate) fn go_on(_: LoadProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

pub(crate) fn read(
    file: &TradeFile,
    selection: &Selection,
    chunk_bytes: usize,
) -> Result<(Vec<Row>, ReadSummary), DataError> {
    let mut rows = Vec::new();
    let options = ReadOptions { chunk_bytes, ..ReadOptions::default() };
    let summary = read_trades(file, selection, &options, &mut go_on, &mut |row: &TradeRow| {
        rows.push((
            row.code.to_string(),
            row.ts_event,
            row.price,
            row.quantity,
            row.transaction_id,
        ));
    })?;
    assert_eq!(summary.rows_delivered, rows.len() as u64);
    Ok((rows, summary))
}

/// Reads gzip bytes with all rules; an error's text has `F` for the path.
pub(crate) fn read_bytes(
    bytes: &[u8],
    selection: &Selection,
    chunk_bytes: usize,
) -> Result<Vec<Row>, String> {
    let (_folder, file) = file_with(bytes);
    match read(&file, selection, chunk_bytes) {
        Ok((rows, _)) => Ok(rows),
        Err(error) => {
            let path = file.path.display().to_string();
            let message = error.to_string();
            assert!(message.starts_with(&path) || message.contains(&path), "{message}");
            Err(message.replace(&path, "F"))
        }
    }
}
