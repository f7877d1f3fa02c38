//! The arguments, and the help that teaches them.

mod rank;

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};
use domain::{InstrumentId, JstDate, Money, Price, TickTable};

pub(crate) use rank::{
    DataArgs, PublishArgs, QueryArgs, RankArgs, RankCommand, RowFormat, ServeArgs, SqlArgs,
    SqlFormat,
};

/// Kumiki: a trading engine for the Tokyo market with sandboxed strategies.
#[derive(Debug, Parser)]
#[command(name = "kumiki", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run strategies over past market data.
    #[command(subcommand)]
    Replay(ReplayCommand),
    /// Make and check market data files.
    #[command(subcommand)]
    Data(DataCommand),
    /// Look at strategies.
    #[command(subcommand)]
    Strategy(StrategyCommand),
    /// Rank issues by a formula, day by day; `rank serve` answers over GraphQL.
    Rank(Box<RankArgs>),
    /// Ask with SQL; everything that is stored, read-only.
    Sql(SqlArgs),
    /// Write or check the schemas of the files that kumiki writes.
    #[command(hide = true)]
    Schemas(SchemasArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReplayCommand {
    /// Run one strategy once.
    Run(Box<RunArgs>),
}

#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// Make realistic sample data, the same for the same seed.
    Sample(SampleArgs),
    /// Check every row of trades files against the rules of the vendor's format.
    Check(CheckArgs),
    /// Show what a data folder holds.
    Info(InfoArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum StrategyCommand {
    /// List the built-in strategies.
    List(StrategyListArgs),
    /// Show what a strategy is, what it imports, and whether it starts.
    Check(StrategyCheckArgs),
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// For scripts: one JSON object.
    Json,
}

const RUN_EXAMPLES: &str = "\
Examples:
  kumiki data sample --out data --instrument 7203.TSE
  kumiki replay run sma-cross --data data --instrument 7203.TSE
  kumiki replay run sma-cross --data data --instrument 7203.TSE --param fast=5 --param slow=50 --out runs/5-50
  kumiki replay run ./my_strategy.wasm --data data --instrument 1306.TSE --start 2013-10-07 --end 2013-10-11

The data folder holds the vendor's files equities_trades_YYYYMM.csv.gz or _YYYYMMDD.csv.gz.
How orders are filled is printed in every result: see `rules` in manifest.json, or the report.";

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArgs {
    /// A built-in strategy's name (`kumiki strategy list`), or the path of a .wasm file.
    #[arg(value_name = "STRATEGY")]
    pub(crate) strategy: String,

    /// Folder with the vendor's trades files.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,

    /// What to trade, like 7203.TSE.
    #[arg(long, value_name = "ID")]
    pub(crate) instrument: InstrumentId,

    /// First date (JST); default: the first that the data holds.
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(crate) start: Option<JstDate>,

    /// Last date (JST), included; default: the last that the data holds.
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(crate) end: Option<JstDate>,

    /// What the strategy sees.
    #[arg(long, value_enum, default_value_t = Granularity::Trade)]
    pub(crate) granularity: Granularity,

    /// Money in the account at the start, in yen.
    #[arg(long, value_name = "YEN", default_value = "10000000")]
    pub(crate) cash: Money,

    /// A parameter of the strategy; may be given many times.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_param)]
    pub(crate) params: Vec<(String, serde_json::Value)>,

    /// Write orders, fills, equity, manifest and report.html into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// How the summary is printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// Time from an order's sending to its arrival at the exchange.
    #[arg(long, value_name = "DURATION", default_value = "0ms", value_parser = parse_latency)]
    pub(crate) latency: u64,

    /// Ticks paid on top of a trade's price by orders that take liquidity.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) slippage_ticks: u32,

    /// Share of each trade's volume that our orders may take, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 100)]
    pub(crate) participation: u32,

    /// Shares in one trading unit.
    #[arg(long, value_name = "SHARES", default_value_t = 100)]
    pub(crate) lot: u64,

    /// Price steps: auto (from the data), normal, topix500, etf, or one step in yen like 0.1.
    #[arg(long, value_name = "TABLE", default_value = "auto")]
    pub(crate) ticks: TickChoice,

    /// Trades handed to the strategy at once, 1 to 65536. Results do not depend on it; more is
    /// faster, 1 never lets a trade into the strategy's memory before its time.
    #[arg(long, value_name = "TRADES", default_value_t = 1)]
    pub(crate) window: u32,

    #[command(flatten)]
    pub(crate) folders: FolderArgs,

    /// No progress line.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FolderArgs {
    /// Where decoded data and compiled strategies are kept.
    #[arg(long, value_name = "DIR", env = "KUMIKI_CACHE")]
    pub(crate) cache: Option<PathBuf>,

    /// Where the built-in strategies are.
    #[arg(long, value_name = "DIR", env = "KUMIKI_STRATEGIES")]
    pub(crate) strategies: Option<PathBuf>,
}

/// What the strategy sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Granularity {
    /// Every trade.
    Trade,
}

/// Which price steps a run uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TickChoice {
    /// The coarsest of the exchange's tables that fits every price of the data.
    Auto,
    /// This one.
    Table(TickTable),
}

impl FromStr for TickChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "normal" => Ok(Self::Table(TickTable::Normal)),
            "topix500" => Ok(Self::Table(TickTable::Topix500)),
            "etf" => Ok(Self::Table(TickTable::Etf)),
            other => match other.parse::<Price>() {
                Ok(step) if step.units() > 0 => Ok(Self::Table(TickTable::Fixed(step))),
                _ => Err("write auto, normal, topix500, etf, or a step in yen like 0.1".to_owned()),
            },
        }
    }
}

const SAMPLE_EXAMPLES: &str = "\
Examples:
  kumiki data sample --out data --instrument 7203.TSE
  kumiki data sample --daily --data-dir data
  kumiki data sample --daily --codes 200 --days 500 --seed 1 --data-dir small";

#[derive(Debug, Args)]
#[command(after_help = SAMPLE_EXAMPLES)]
pub(crate) struct SampleArgs {
    /// Folder to write trades to.
    #[arg(long, value_name = "DIR", required_unless_present = "daily")]
    pub(crate) out: Option<PathBuf>,

    /// Make a combined database of daily prices for rankings instead of trades.
    #[arg(long, conflicts_with_all = ["out", "instruments", "trades_per_day"])]
    pub(crate) daily: bool,

    /// Folder of the daily prices.
    #[arg(long, value_name = "DIR", env = "DATA_DIR", default_value = "data")]
    pub(crate) data_dir: PathBuf,

    /// Issues of the daily prices. Default: 4000.
    #[arg(long, value_name = "N", requires = "daily")]
    pub(crate) codes: Option<usize>,

    /// Instruments; may be given many times. Default: 7203.TSE.
    #[arg(long = "instrument", value_name = "ID")]
    pub(crate) instruments: Vec<InstrumentId>,

    /// Seed; the same seed makes the same bytes.
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub(crate) seed: u64,

    /// Trading days. Default: 20 of trades, 2450 of daily prices.
    #[arg(long, value_name = "N")]
    pub(crate) days: Option<u32>,

    /// First date (JST). Default: 2025-01-06 of trades, 2016-01-04 of daily prices.
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(crate) start: Option<JstDate>,

    /// Trades of an instrument in a day, on average.
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    pub(crate) trades_per_day: u32,
}

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,

    /// How it is printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Trades files, or folders with such files.
    #[arg(required = true, value_name = "FILE|DIR")]
    pub(crate) paths: Vec<PathBuf>,

    /// How the report is printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct StrategyListArgs {
    #[command(flatten)]
    pub(crate) folders: FolderArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StrategyCheckArgs {
    /// A built-in strategy's name, or the path of a .wasm file.
    #[arg(value_name = "STRATEGY")]
    pub(crate) strategy: String,

    /// A parameter of the strategy; may be given many times.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_param)]
    pub(crate) params: Vec<(String, serde_json::Value)>,

    /// How the report is printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) folders: FolderArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct SchemasArgs {
    /// Write the schemas into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Option<PathBuf>,

    /// Compare this folder with what would be written; fails when they differ.
    #[arg(long, value_name = "DIR")]
    pub(crate) check: Option<PathBuf>,
}

/// `name=value`; the value is a JSON number or truth value, else a text.
fn parse_param(text: &str) -> Result<(String, serde_json::Value), String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or("write NAME=VALUE, like fast=20")?;
    let value = match serde_json::from_str(value) {
        Ok(number @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_))) => number,
        _ => serde_json::Value::String(value.to_owned()),
    };
    Ok((name.to_owned(), value))
}

fn parse_latency(text: &str) -> Result<u64, String> {
    let duration = humantime::parse_duration(text)
        .map_err(|error| format!("{error}; write a duration like 0ms, 250us or 1s"))?;
    let one_day = std::time::Duration::from_secs(86_400);
    if duration > one_day {
        return Err("more than one day".to_owned());
    }
    u64::try_from(duration.as_nanos()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_fit_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn parameters_keep_their_kind() {
        let value = |text: &str| parse_param(text).unwrap().1.to_string();
        assert_eq!(value("fast=20"), "20");
        assert_eq!(value("on=true"), "true");
        assert_eq!(value("price=1674.1"), "1674.1");
        assert_eq!(value("name=x y"), "\"x y\"");
        assert_eq!(value("list=[1]"), "\"[1]\"");
        assert!(parse_param("fast").is_err() && parse_param("=1").is_err());
    }

    #[test]
    fn latencies_are_durations() {
        assert_eq!(parse_latency("250us"), Ok(250_000));
        assert!(parse_latency("5").unwrap_err().contains("write a duration like"));
        assert_eq!(parse_latency("2days"), Err("more than one day".to_owned()));
    }

    #[test]
    fn ticks_are_tables_or_steps() {
        assert_eq!("auto".parse(), Ok(TickChoice::Auto));
        let step = TickTable::Fixed(Price::from_units(1_000));
        assert_eq!("0.1".parse(), Ok(TickChoice::Table(step)));
        assert!("0".parse::<TickChoice>().is_err() && "fine".parse::<TickChoice>().is_err());
    }
}
