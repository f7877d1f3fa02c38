//! Arguments of `kumiki sql`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ranking::console::MEMORY_BYTES_MIN;

use super::rank::DataArgs;
use super::rank_serve::megabytes;

pub(super) const SQL_HELP: &str = "\
Examples:
  kumiki sql --prices data
  kumiki sql --prices data \"SELECT code, avg(close) FROM daily GROUP BY 1 ORDER BY 2 DESC\"
  kumiki sql --prices data \"DESCRIBE daily\"
  echo \"SELECT count(*) FROM daily\" | kumiki sql --prices data --format csv

  kumiki sql --runs runs \"SELECT run, strategy, return_ratio FROM runs ORDER BY 3 DESC\"
  kumiki sql --runs cache/runs \"SELECT run, profit FROM runs WHERE run_kind = 'paper'\"
  kumiki sql --runs runs \"SELECT client_order_id, title FROM narrative WHERE run = 'gain-5'\"
  kumiki sql --config-dir config \"SELECT phase, count(*) FROM audit GROUP BY 1\"
  kumiki sql --sweeps sweeps \"SELECT param_fast, max(sharpe) FROM sweeps GROUP BY 1 ORDER BY 1\"
  kumiki sql --data data \"SELECT Code, count(*) FROM trades GROUP BY 1\"
  kumiki sql --data data \"SELECT Time, sum(Vo) FROM minute_bars GROUP BY 1 ORDER BY 1\"

Views, as far as there are files:
  --prices       daily, and adjusted where it is stored (jp/stocks_daily/mother.db);
                 listed_issue and list_date (jp/listed_info.db); board_depth and board_trades
                 (jp/stocks_board); minute, trades, narrative and audit: files of one form
                 (Parquet, CSV with a header or JSON lines) in a folder of this name
  --runs         runs (run_kind is replay, paper or live), their tables orders, fills,
                 round_trips, positions, equity, marks, days, signals, narrative and log, and
                 audit
  --config-dir   audit: what an engine wrote of live orders (its run is `live`)
  --sweeps       sweeps
  --data         trades, minute_bars and daily_bars, without the files of days whose month has a
                 file

The command names on standard error what it leaves out. Everything is read-only; a statement opens no \
other file. A row has at most 16 MB; Ctrl-C or SIGTERM ends a statement.";

#[derive(Debug, Args)]
pub(crate) struct SqlArgs {
    /// One SELECT; without it a prompt opens, or standard input is read.
    #[arg(value_name = "SQL")]
    pub(crate) sql: Option<String>,

    /// Form of the rows.
    #[arg(long, value_enum, default_value_t = SqlFormat::Table)]
    pub(crate) format: SqlFormat,

    /// Most rows of an answer; default: 10,000 of a table, else all.
    ///
    /// The command leaves out more rows, and says so.
    #[arg(
        long, alias = "rows", value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=ranking::console::ROWS_MAX as u64)
    )]
    pub(crate) limit: Option<u64>,

    /// Memory of the database engine, in megabytes.
    #[arg(long, value_name = "MB", default_value_t = 1_024, value_parser = megabytes(MEMORY_BYTES_MIN >> 20))]
    pub(crate) memory: u64,

    /// Threads of the database engine; default: one for each core.
    #[arg(long, alias = "threads", value_name = "N")]
    pub(crate) jobs: Option<usize>,

    #[command(flatten)]
    pub(crate) prices: DataArgs,

    /// Market data: trades, minute_bars, daily_bars.
    #[arg(long, alias = "market-data", value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// A run, or a folder with many: runs, orders, fills and others.
    #[arg(long, value_name = "DIR")]
    pub(crate) runs: Option<PathBuf>,

    /// A sweep, or a folder with many: sweeps.
    #[arg(long, value_name = "DIR")]
    pub(crate) sweeps: Option<PathBuf>,

    /// Config folder of an engine, with the log of its orders: audit.
    #[arg(long, value_name = "DIR")]
    pub(crate) config_dir: Option<PathBuf>,
}

/// How rows of SQL are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SqlFormat {
    /// For people; it is held as a whole, up to 128 MB.
    Table,
    /// Comma-separated values with a header, written as they come; null is empty.
    Csv,
    /// One JSON object a line, written as they come; numbers are numbers.
    Jsonl,
}
