//! Arguments of `kumiki rank` and `kumiki sql`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand, ValueEnum};
use domain::JstDate;
use domain::guest_limit::{LimitChange, LimitError};
use ranking::console::MEMORY_BYTES_MIN;
use ranking::{FORMULA_DEFAULT, Formula, RankOrder, limits};
use sandbox::Limits;

const RANK_EXAMPLES: &str = "\
Examples:
  kumiki data sample --daily --data-dir data
  kumiki rank --data-dir data
  kumiki rank --data-dir data --from 2024-01-04 --to 2024-01-31 --sort-by 'Close * Volume' \\
      --limit 5
  kumiki rank --data-dir data --from 2020-01-01 --sort-by 'Close / Close[-250]' \\
      --out year.parquet
  kumiki rank --data-dir data --codes 1301,7203 --order asc --format jsonl
  kumiki rank --data-dir data --sort-by 'Volume / Volume[-1]' --explain
  kumiki rank --data-dir data --sort-by 'Close / Close[-250]' --adjusted
  kumiki rank formulas --data-dir data --add risk-adjusted-momentum.wasm
  kumiki rank --data-dir data --formula risk-adjusted-momentum --param lookback=20
  kumiki rank serve --data-dir data

A formula has the columns Close Open High Low Volume, lags like Close[-5] (5 business days \
before), + - * / ( ) and numbers. 0 and missing values count as null; null comes last. Prices \
are raw: a value whose lag reaches across a split compares prices from before and after it and \
is marked (spansSplit). --adjusted multiplies earlier prices, and divides earlier volumes, by \
the factors of the splits since; where one of those may be missing from the data there is no \
value.";

#[derive(Debug, Args)]
#[command(after_help = RANK_EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct RankArgs {
    #[command(subcommand)]
    pub(crate) command: Option<RankCommand>,

    #[command(flatten)]
    pub(crate) query: QueryArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RankCommand {
    /// Answer rankings over GraphQL, with a page for people and the stored files at the same address.
    Serve(Box<ServeArgs>),
    /// Make a snapshot of the combined database, for rankings to read: of prices that another program put
    /// there; `kumiki update` does it by itself.
    Publish(PublishArgs),
    /// List the formula modules that rankings may use, or add one.
    Formulas(FormulasArgs),
}

#[derive(Debug, Args)]
pub(crate) struct QueryArgs {
    /// First day; default: the last day asked for.
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(crate) from: Option<JstDate>,

    /// Last day, included; default: the last day of the data.
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(crate) to: Option<JstDate>,

    /// What to sort by.
    #[arg(
        long, value_name = "FORMULA", default_value = FORMULA_DEFAULT, value_parser = parse_formula,
        allow_hyphen_values = true
    )]
    pub(crate) sort_by: Formula,

    /// Sort by a formula module instead; `kumiki rank formulas` lists them.
    #[arg(long, value_name = "NAME", conflicts_with = "sort_by")]
    pub(crate) formula: Option<String>,

    /// A parameter of the module, like lookback=20; may be given many times.
    #[arg(long = "param", value_name = "NAME=VALUE", requires = "formula", value_parser = parse_param, allow_hyphen_values = true)]
    pub(crate) params: Vec<(String, f64)>,

    #[command(flatten)]
    pub(crate) registry: RegistryArgs,

    /// desc (largest first) or asc (smallest first).
    #[arg(long, value_name = "ORDER", default_value = "desc", value_parser = parse_order)]
    pub(crate) order: RankOrder,

    /// Rows of each day, 1 to 500; default: 20. Or a limit of the formula module, like
    /// memory=128MiB; may be given many times. `kumiki strategy limits` lists them.
    #[arg(long, value_name = "N|NAME=VALUE", value_delimiter = ',', value_parser = parse_limit)]
    limit: Vec<RankLimit>,

    /// Adjust values of earlier days for the splits since then, so that a lag across a split compares
    /// what can be compared. Prices are raw otherwise, and such rows are marked.
    #[arg(long)]
    pub(crate) adjusted: bool,

    /// Only these issues take part, like 1301,7203.
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    pub(crate) codes: Vec<String>,

    /// How rows are written; default: by the ending of --out, else a table.
    #[arg(long, value_enum)]
    pub(crate) format: Option<RowFormat>,

    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Show how the query is answered: formula tree, SQL, plan, times; for a module its inputs,
    /// parameters, hash and time.
    #[arg(long, conflicts_with_all = ["format", "out"])]
    pub(crate) explain: bool,

    /// Threads that rank; default: one for each core.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,

    /// Time that the query may take.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = humantime::parse_duration)]
    pub(crate) timeout: Duration,

    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// What `--limit` means in a query: a number is not a name with a value.
#[derive(Debug, Clone, Copy)]
enum RankLimit {
    /// Rows of each day.
    Rows(u32),
    /// A limit of the formula module.
    Module(LimitChange),
}

fn parse_limit(text: &str) -> Result<RankLimit, String> {
    if text.contains('=') {
        let change: Result<LimitChange, LimitError> = text.parse();
        return change.map(RankLimit::Module).map_err(|error| error.to_string());
    }
    match text.parse() {
        Ok(rows) if (1..=limits::LIMIT_MAX).contains(&rows) => Ok(RankLimit::Rows(rows)),
        _ => Err(format!(
            "`{text}` is neither a number of rows from 1 to {} nor a limit like memory=128MiB",
            limits::LIMIT_MAX
        )),
    }
}

impl QueryArgs {
    /// Rows of each day; the last that was given.
    pub(crate) fn rows(&self) -> u32 {
        let mut rows = self.limit.iter().rev().filter_map(|limit| match limit {
            RankLimit::Rows(rows) => Some(*rows),
            RankLimit::Module(_) => None,
        });
        rows.next().unwrap_or(limits::LIMIT_DEFAULT)
    }

    /// The limits of the formula module.
    pub(crate) fn module_limits(&self) -> Result<Limits, LimitError> {
        let changes = self.limit.iter().filter_map(|limit| match limit {
            RankLimit::Rows(_) => None,
            RankLimit::Module(change) => Some(*change),
        });
        Limits::formula().changed(&changes.collect::<Vec<_>>())
    }
}

/// Where formula modules are.
#[derive(Debug, Args)]
pub(crate) struct RegistryArgs {
    /// Folder with formula modules and their list; default: formulas in the data folder.
    #[arg(long, value_name = "DIR", env = "KUMIKI_FORMULAS")]
    pub(crate) formulas: Option<PathBuf>,

    /// Where compiled modules are kept.
    #[arg(long, value_name = "DIR", env = "KUMIKI_CACHE")]
    pub(crate) cache: Option<PathBuf>,
}

const FORMULAS_EXAMPLES: &str = "\
Examples:
  kumiki rank formulas --data-dir data --add target/release/formulas/limit-distance.wasm
  kumiki rank formulas --data-dir data
  kumiki rank formulas --data-dir data --format json

Only modules that formulas.toml in the folder lists with their SHA-256 are ever loaded. --add \
copies a file into the folder and lists it under the name that the module gives itself.";

#[derive(Debug, Args)]
#[command(after_help = FORMULAS_EXAMPLES)]
pub(crate) struct FormulasArgs {
    /// Copy this component into the folder and list it.
    #[arg(long, value_name = "FILE")]
    pub(crate) add: Option<PathBuf>,

    /// Table or JSON.
    #[arg(long, value_enum, default_value_t = super::Format::Table)]
    pub(crate) format: super::Format,

    #[command(flatten)]
    pub(crate) registry: RegistryArgs,

    #[command(flatten)]
    pub(crate) limits: super::LimitArgs,

    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    /// Folder with the daily prices (jp/stocks_daily/mother.db) and what is made of them.
    #[arg(long, value_name = "DIR", env = "DATA_DIR", default_value = "data", value_parser = super::parse_data_dir)]
    pub(crate) data_dir: PathBuf,
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowFormat {
    /// For people.
    Table,
    /// Comma-separated values with a header; null is empty.
    Csv,
    /// One JSON list.
    Json,
    /// One JSON object a line, with the field names of GraphQL.
    Jsonl,
    /// A Parquet file (needs --out).
    Parquet,
    /// An Arrow stream.
    Arrow,
}

const SERVE_EXAMPLES: &str = "\
Examples:
  kumiki rank serve --data-dir data
  kumiki rank serve --data-dir data --listen 127.0.0.1:0 --graphiql
  kumiki rank serve --data-dir data --listen 0.0.0.0:8080 --token-file token.txt
  kumiki rank serve --data-dir copy --listen 127.0.0.1:8081 --follow http://127.0.0.1:8080
      a replica: copies what the other server publishes, and answers from that

Paths: / the ranking page, /graphql (POST, or GET with ?query=), /schema.graphql, /jp/<path> the \
stored files, /health, /metrics (Prometheus). Each request is a line of the log; --log warn \
leaves them out.

Stored files, for GET and HEAD, with ETag, Range and gzip, br or zstd when asked for:
  /jp/stocks_daily/mother.db     daily prices of all issues
  /jp/stocks_daily/<code>.db     daily prices of one issue, like 7203 or 130A
  /jp/stocks_board/<code>.db     board data of one issue
  /jp/listed_info.db             the listed issues
  /jp/generation.json            which of them belong together, with sizes and digests

A token may also come from the environment variable KUMIKI_RANK_TOKEN, that of the server which \
is followed from KUMIKI_FOLLOW_TOKEN.";

#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Address and port; port 0 lets the system choose.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,

    #[command(flatten)]
    pub(crate) data: DataArgs,

    #[command(flatten)]
    pub(crate) registry: RegistryArgs,

    #[command(flatten)]
    pub(crate) limits: super::LimitArgs,

    /// Ask clients for the bearer token in this file, for rankings and for stored files.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Let pages of this origin ask (CORS), like https://example.com; may be given many times.
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) cors_origin: Vec<String>,

    /// Let clients call the service by this name of a host too; may be given many times. On an
    /// address of this machine only, other names than localhost are refused, because any page's name
    /// can be made to point here. Behind a proxy that hands on the name, give that.
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,

    /// Stored files that are sent at the same time; one more is told to come again. Small ones have as
    /// many places of their own.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) max_downloads: usize,

    /// Drop a client that takes nothing of its answer for so long.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = humantime::parse_duration)]
    pub(crate) send_timeout: Duration,

    /// Time for a client to take a whole answer of GraphQL.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = humantime::parse_duration)]
    pub(crate) answer_timeout: Duration,

    /// Memory for all answers of GraphQL that are made or sent, in megabytes. The rankings of one
    /// request may take three quarters of it, the rest is for small ones alone.
    #[arg(long, value_name = "MB", default_value_t = 512, value_parser = megabytes(1))]
    pub(crate) answer_memory: u64,

    /// Say `behind` in /health once more business days than these are over after the last one of the
    /// data, so that an update that does not run is seen. Data without an update job is never behind.
    #[arg(long, value_name = "DAYS", default_value_t = 0)]
    pub(crate) behind_days: usize,

    /// Copy what the server at this address publishes (https, or http to this machine), and answer from
    /// the copy. The data folder is the copy's own.
    #[arg(long, value_name = "URL", value_parser = http_client::checked_address)]
    pub(crate) follow: Option<http_client::Url>,

    /// The bearer token of the server that is followed is in this file.
    #[arg(long, value_name = "FILE", requires = "follow")]
    pub(crate) follow_token_file: Option<PathBuf>,

    /// Look so often whether the server that is followed has published; longer after failures.
    #[arg(long, value_name = "DURATION", default_value = "5s", requires = "follow", value_parser = humantime::parse_duration)]
    pub(crate) follow_interval: Duration,

    /// Disk for the copy, and the next one while it is fetched, in megabytes.
    #[arg(long, value_name = "MB", default_value_t = 20_480, requires = "follow", value_parser = megabytes(1))]
    pub(crate) follow_disk: u64,

    /// Copy the databases of single issues too.
    #[arg(long, requires = "follow")]
    pub(crate) follow_issues: bool,

    /// Say in /health that the copy is stale where nothing could be copied for so long.
    #[arg(long, value_name = "DURATION", default_value = "10m", requires = "follow", value_parser = humantime::parse_duration)]
    pub(crate) follow_stale: Duration,

    /// Give up a download that brings less than 1 MiB in so long; what came is kept and gone on with.
    #[arg(long, value_name = "DURATION", default_value = "60s", requires = "follow", value_parser = humantime::parse_duration)]
    pub(crate) follow_patience: Duration,

    /// Show a page for trying queries at GET /graphql.
    #[arg(long)]
    pub(crate) graphiql: bool,

    /// Threads that rank; default: one for each core.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,

    /// Memory for the rows of rankings that are being made, in megabytes.
    #[arg(long, value_name = "MB", default_value_t = 1_024, value_parser = megabytes(1))]
    pub(crate) memory: u64,

    /// Memory for answers that are kept, in megabytes; 0 keeps none.
    #[arg(long, value_name = "MB", default_value_t = 64, value_parser = megabytes(0))]
    pub(crate) cache_memory: u64,

    /// Time that a request may take, waiting included.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = humantime::parse_duration)]
    pub(crate) timeout: Duration,

    /// Large requests that are worked on at the same time; the rest waits in turn. Those that need at
    /// most a 64th of --answer-memory are small, and wait for no large one.
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) concurrent: usize,

    /// Requests that may wait; one more is answered BUSY.
    #[arg(long, value_name = "N", default_value_t = 512)]
    pub(crate) queue: usize,

    /// Open connections; fewer where the system lets the service have too few files open.
    #[arg(long, value_name = "N", default_value_t = 1_024)]
    pub(crate) max_connections: usize,

    /// Highest `limit` of a request.
    #[arg(
        long, value_name = "N", default_value_t = limits::LIMIT_MAX,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(limits::LIMIT_MAX))
    )]
    pub(crate) max_limit: u32,

    /// Highest lag of a formula, in business days.
    #[arg(
        long, value_name = "N", default_value_t = limits::LAG_MAX,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(limits::LAG_MAX))
    )]
    pub(crate) max_lag: u32,

    /// Longest range of a request, in years.
    #[arg(
        long, value_name = "N", default_value_t = limits::RANGE_YEARS_MAX,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(limits::RANGE_YEARS_MAX))
    )]
    pub(crate) max_years: u32,

    /// Longest formula, in characters; at most 1000.
    #[arg(long, value_name = "N", default_value_t = limits::FORMULA_CHARS_MAX)]
    pub(crate) max_formula: usize,

    /// Rankings in one request.
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) max_aliases: usize,

    /// Levels of a request.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) max_depth: usize,

    /// Largest body of a request, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 65_536)]
    pub(crate) max_body: usize,

    /// Most rows of one ranking.
    #[arg(long, value_name = "N", default_value_t = 1_500_000)]
    pub(crate) max_rows: usize,
}

#[derive(Debug, Args)]
pub(crate) struct PublishArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

const SQL_EXAMPLES: &str = "\
Examples:
  kumiki sql --data-dir data
  kumiki sql --data-dir data \"SELECT code, avg(close) FROM daily GROUP BY 1 ORDER BY 2 DESC\"
  kumiki sql --data-dir data \"DESCRIBE daily\"
  echo \"SELECT count(*) FROM daily\" | kumiki sql --data-dir data --format csv

  kumiki sql --runs runs \"SELECT run, strategy, return_ratio FROM runs ORDER BY 3 DESC\"
  kumiki sql --runs runs \"SELECT client_order_id, title FROM narrative WHERE run = 'gain-5'\"
  kumiki sql --config-dir config \"SELECT phase, count(*) FROM audit GROUP BY 1\"
  kumiki sql --sweeps sweeps \"SELECT param_fast, max(sharpe) FROM sweeps GROUP BY 1 ORDER BY 1\"
  kumiki sql --market-data data \"SELECT Code, count(*) FROM trades GROUP BY 1\"
  kumiki sql --market-data data \"SELECT Time, sum(Vo) FROM minute_bars GROUP BY 1 ORDER BY 1\"

Views, of what there is:
  --data-dir     daily, and adjusted where it is stored (jp/stocks_daily/mother.db);
                 listed_issue and list_date (jp/listed_info.db); board_depth and board_trades
                 (jp/stocks_board); minute, trades, narrative and audit: files of one form
                 (Parquet, CSV with a header or JSON lines) in a folder of this name
  --runs         runs, their tables orders, fills, round_trips, positions, equity, marks, days,
                 signals, narrative and log, and audit
  --config-dir   audit: what an engine wrote of live orders (its run is `live`)
  --sweeps       sweeps
  --market-data  trades, minute_bars and daily_bars, without the files of days whose month has a
                 file

What is left out is told on standard error. Everything is read-only; nothing outside of these files \
can be opened. A row has at most 16 MB; a statement ends with Ctrl-C or SIGTERM.";

#[derive(Debug, Args)]
#[command(after_help = SQL_EXAMPLES)]
pub(crate) struct SqlArgs {
    /// One SELECT; without it a prompt opens, or standard input is read.
    #[arg(value_name = "SQL")]
    pub(crate) sql: Option<String>,

    /// How rows are written.
    #[arg(long, value_enum, default_value_t = SqlFormat::Table)]
    pub(crate) format: SqlFormat,

    /// Most rows of an answer; what is more is left out, and told. Default: 10,000 of a table, all as
    /// csv and jsonl.
    #[arg(
        long, value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=ranking::console::ROWS_MAX as u64)
    )]
    pub(crate) rows: Option<u64>,

    /// Memory of the database engine, in megabytes.
    #[arg(long, value_name = "MB", default_value_t = 1_024, value_parser = megabytes(MEMORY_BYTES_MIN >> 20))]
    pub(crate) memory: u64,

    /// Threads of the database engine; default: one for each core.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,

    /// A run of `kumiki replay run`, or a folder with many: runs, orders, fills, narrative, audit, ...
    #[arg(long, value_name = "DIR")]
    pub(crate) runs: Option<PathBuf>,

    /// The folder of an engine's configuration, which has the log of its live orders: audit.
    #[arg(long, value_name = "DIR")]
    pub(crate) config_dir: Option<PathBuf>,

    /// A sweep of `kumiki replay sweep`, or a folder with many: sweeps.
    #[arg(long, value_name = "DIR")]
    pub(crate) sweeps: Option<PathBuf>,

    /// The vendor's files: trades, minute_bars, daily_bars.
    #[arg(long, value_name = "DIR")]
    pub(crate) market_data: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) data: DataArgs,
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

/// Megabytes, at least so many; more than a terabyte is a slip.
fn megabytes(least: u64) -> RangedU64ValueParser<u64> {
    RangedU64ValueParser::new().range(least..=1_048_576)
}

/// Shows where a formula is wrong.
fn parse_formula(text: &str) -> Result<Formula, String> {
    Formula::parse(text).map_err(|error| {
        // Tabs and line ends would move the mark away from its place.
        let line: String = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
        let mark = " ".repeat(error.position.saturating_sub(1));
        format!("{}\n\n  {line}\n  {mark}^", error.message)
    })
}

/// `name=value`, with a number as value.
fn parse_param(text: &str) -> Result<(String, f64), String> {
    let (name, value) =
        text.split_once('=').ok_or_else(|| format!("`{text}` is not NAME=VALUE"))?;
    let number = value.parse::<f64>().ok().filter(|number| number.is_finite());
    number
        .map(|number| (name.to_owned(), number))
        .ok_or_else(|| format!("`{value}` is not a number"))
}

fn parse_order(text: &str) -> Result<RankOrder, String> {
    text.parse().map_err(|error: ranking::RankError| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_formula_is_pointed_at() {
        let message = parse_formula("Close\t+ ; 2").unwrap_err();
        assert!(message.ends_with("\n\n  Close + ; 2\n          ^"), "{message}");
        assert!(parse_formula("-Close").is_ok());
    }

    #[test]
    fn parameters_are_names_and_numbers() {
        assert_eq!(parse_param("a=-1.5"), Ok(("a".to_owned(), -1.5)));
        assert_eq!(parse_param("a=b"), Err("`b` is not a number".to_owned()));
        assert_eq!(parse_param("a=inf"), Err("`inf` is not a number".to_owned()));
        assert_eq!(parse_param("a"), Err("`a` is not NAME=VALUE".to_owned()));
    }

    #[test]
    fn orders_are_words() {
        assert_eq!(parse_order("asc"), Ok(RankOrder::Asc));
        assert!(parse_order("up").unwrap_err().contains("use desc or asc"));
    }
}
