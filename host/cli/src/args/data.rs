//! Arguments of `kumiki data`, but for those of commands that stand on DuckDB.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use domain::{InstrumentId, JstDate, VendorCode};

use super::{Format, ListingsCommand, parse_data_dir, parse_date};

#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// Make sample data; the same seed makes the same data.
    Sample(SampleArgs),
    /// Check every row of market data files and count problems.
    Check(CheckArgs),
    /// Convert a file of trades or bars to Parquet, or back.
    #[command(after_long_help = CONVERT_HELP)]
    Convert(ConvertArgs),
    /// Show what a data folder holds and its problems.
    Info(InfoArgs),
    #[command(flatten)]
    Listings(ListingsCommand),
}

#[derive(Debug, Args)]
pub(crate) struct SampleArgs {
    /// Folder to write trades to.
    #[arg(long, value_name = "DIR", required_unless_present = "daily")]
    pub(crate) out: Option<PathBuf>,

    /// Seed of the sample.
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub(crate) seed: u64,

    /// Trading days; default: 20 of trades, 2450 of daily prices.
    #[arg(long, value_name = "N")]
    pub(crate) days: Option<u32>,

    /// First date; default: 2025-01-06 of trades, 2016-01-04 of prices.
    #[arg(long, alias = "start", value_name = "YYYY-MM-DD", value_parser = parse_date)]
    pub(crate) from: Option<JstDate>,

    /// An instrument; may be given many times. Default: 7203.TSE.
    #[arg(long = "instrument", value_name = "ID", help_heading = "Trades")]
    pub(crate) instruments: Vec<InstrumentId>,

    /// Mean trades of an instrument in a day.
    #[arg(long, value_name = "N", default_value_t = 5_000, help_heading = "Trades")]
    pub(crate) trades_per_day: u32,

    /// Write minute and daily bars of the trades too.
    #[arg(long, help_heading = "Trades")]
    pub(crate) bars: bool,

    /// Make daily prices for rankings instead of trades.
    #[arg(
        long, conflicts_with_all = ["out", "instruments", "trades_per_day", "bars"],
        help_heading = "Daily prices"
    )]
    pub(crate) daily: bool,

    /// Folder of the daily prices.
    #[arg(
        long, alias = "data-dir", value_name = "DIR", env = "DATA_DIR", default_value = "data",
        value_parser = parse_data_dir, help_heading = "Daily prices"
    )]
    pub(crate) prices: PathBuf,

    /// Number of issues; default: 4000.
    #[arg(long, value_name = "N", requires = "daily", help_heading = "Daily prices")]
    pub(crate) issues: Option<usize>,

    /// A list of codes elsewhere. Here it is refused, with the flag to write.
    #[arg(long = "codes", hide = true, value_parser = no_codes)]
    _codes: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Trades and bar files, or folders with such files.
    #[arg(required = true, value_name = "FILE|DIR")]
    pub(crate) paths: Vec<PathBuf>,

    /// Show each code.
    #[arg(long)]
    pub(crate) per_code: bool,

    /// Minutes without a trade in a session that count as quiet.
    #[arg(long, value_name = "MINUTES", default_value_t = 30)]
    pub(crate) quiet_minutes: u64,

    /// Form of the report.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

const CONVERT_HELP: &str = "\
Examples:
  kumiki data convert data/equities_trades_202501.csv.gz january.parquet
  kumiki data convert data/equities_trades_202501.csv.gz topix.parquet --instrument 1306.TSE
  kumiki data convert january.parquet back/equities_trades_202501.csv.gz
  kumiki data convert data/equities_bars_daily_202501.csv.gz days.parquet

The way back gives the same text, byte for byte. A file that cannot come back so is refused with its \
line: one with another header or a byte order mark, or without a line feed at its end.

A table of trades has ts_event (nanoseconds, UTC), code, price (decimal), quantity and transaction_id. \
Rows in an unusual spelling also have price_digits and text. A table of bars has ts_event, open, high, \
low, close, volume, text, and every column of the file as text.";

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// File to read: trades or bars (.csv.gz), or a table (.parquet).
    #[arg(value_name = "IN")]
    pub(crate) from: PathBuf,

    /// File to write, of the other kind.
    #[arg(value_name = "OUT")]
    pub(crate) to: PathBuf,

    /// Only rows of this instrument, like 1306.TSE.
    ///
    /// Or its code in the vendor's files, like 13060.
    #[arg(long, alias = "code", value_name = "ID", value_parser = parse_instrument)]
    pub(crate) instrument: Option<VendorCode>,

    /// Replace the file to write.
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// Folder with market data, results or daily prices.
    #[arg(value_name = "DIR", env = "DATA_DIR", default_value = "data")]
    pub(crate) folder: PathBuf,

    /// Read the trades files to count rows and codes.
    ///
    /// Without it the command shows what the cache knows.
    #[arg(long)]
    pub(crate) scan: bool,

    /// Folder of decoded data.
    #[arg(long, alias = "cache", value_name = "DIR", env = "KUMIKI_CACHE")]
    pub(crate) cache_dir: Option<PathBuf>,

    /// Form of the report.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

fn no_codes(_: &str) -> Result<String, String> {
    Err("the sample takes a number of issues; write --issues N, like --issues 200".to_owned())
}

/// An instrument, or its five places in the vendor's files.
fn parse_instrument(text: &str) -> Result<VendorCode, String> {
    let of_id = || text.parse::<InstrumentId>()?.vendor_code();
    VendorCode::new(text)
        .or_else(|_| of_id())
        .map_err(|error| format!("{error}, or the vendor's five places, like 13060"))
}
