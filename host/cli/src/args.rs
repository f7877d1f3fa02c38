//! The arguments, and the help that teaches them.

#[cfg(feature = "database")]
mod database;
#[cfg(not(feature = "database"))]
#[path = "args/no_database.rs"]
mod database;
mod engine;
mod key;
#[cfg(feature = "database")]
mod listings;
mod live;
mod order;
#[cfg(feature = "database")]
mod rank;
mod secret;
mod sim;
mod sim_local_broker;
#[cfg(feature = "database")]
mod update;
mod watch;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use domain::guest_limit::{LimitChange, LimitError};
use domain::limits::SWEEP_JOBS_MAX;
use domain::{InstrumentId, JstDate, Money, Quantity, VendorCode};
use replay::Multiplier;
use replay::instruments::{
    Choices, InstrumentChoices, InstrumentName, InstrumentsError, TickChoice, choice_of,
};
use results::report::RUNS_COMPARED_MAX;
use sandbox::Limits;
use sweep::{Axis, RowRange, Statistic, WalkForward};
use tracing::Level;

use crate::execution::ExecutionArgs;
use crate::logging::{self, LogArgs};
use crate::standard_error;

pub(crate) use self::live::LiveCommand;
pub(crate) use database::{DatabaseCommand, ListingsCommand};
pub(crate) use {
    self::engine::{EngineArgs, EngineMode},
    self::key::{KeyCommand, KeyListArgs, KeyRemoveArgs, KeySetArgs, StoreArgs},
    self::order::{
        AttachArgs, ConfirmArgs, OrderCancelAllArgs, OrderCancelArgs, OrderCommand, OrderListArgs,
        OrderModifyArgs, OrderSubmitArgs, WhichArgs,
    },
    self::sim::{SimCommand, TaxAccount, Traded, WebBrokerArgs},
    self::sim_local_broker::LocalBrokerArgs,
    self::watch::{WATCH_TICKERS_MAX, WatchArgs},
};
#[cfg(feature = "database")]
pub(crate) use {
    self::update::{UpdateArgs, UpdateBoardArgs, UpdateCommand, first_day},
    listings::{CalendarArgs, Every, InstrumentsArgs, VendorArgs, address},
    rank::{
        FormulasArgs, PublishArgs, QueryArgs, RankArgs, RankCommand, RegistryArgs, RowFormat,
        ServeArgs, SqlArgs, SqlFormat,
    },
};

const START: &str = "\
Start:
  kumiki data sample --out data --instrument 7203.TSE
  kumiki replay run sma-cross --data data --instrument 7203.TSE --out runs/first
      a month of made-up trades, and a strategy over it; open runs/first/report.html
  kumiki data sample --daily --data-dir prices
  kumiki rank serve --data-dir prices
      made-up daily prices, and a page with rankings of them

Exit codes:
  0    done
  1    an error
  2    wrong arguments
  3    the strategy failed, or update: days that are due are not complete, run it again later
  4    a verified run or its manifest is not what comes out again
  5    the data or the strategy of a verified run changed
  6    update: a business day is missing between published ones
  10 to 22  serve: it did not start, see kumiki serve --help
  130  interrupted

Each command has a help of its own, with examples: kumiki replay run --help.";

/// Columns of a line of help, wherever it is shown.
const HELP_COLUMNS_MAX: usize = 96;

/// Kumiki: a trading engine for the Tokyo market with sandboxed strategies.
#[derive(Debug, Parser)]
#[command(
    name = "kumiki", version, max_term_width = HELP_COLUMNS_MAX, arg_required_else_help = true,
    after_help = START
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run strategies over past market data.
    #[command(subcommand)]
    Replay(ReplayCommand),
    #[command(flatten)]
    Live(LiveCommand),
    /// Make and check market data files.
    #[command(subcommand)]
    Data(DataCommand),
    /// Look at strategies.
    #[command(subcommand)]
    Strategy(StrategyCommand),
    #[command(flatten)]
    Database(DatabaseCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReplayCommand {
    /// Run one strategy once.
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunArgs>),
    /// Make the report of a run's folder again.
    Report(ReportArgs),
    /// Put runs side by side: parameters, statistics, equity.
    Compare(CompareArgs),
    /// Show a strategy's decisions with the orders they explain and what became of them.
    Narrative(NarrativeArgs),
    /// Make a run again from its folder, one trade at a time and with nothing cached, and compare.
    #[command(after_help = VERIFY_HELP)]
    Verify(VerifyArgs),
    /// Run one strategy over many combinations of its parameters, on all cores.
    #[command(
        after_help = SWEEP_EXAMPLES,
        mut_arg("out", |out| out.help(
            "The sweep's folder; a sweep that was interrupted goes on there"
        ))
    )]
    Sweep(SweepCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// Make realistic sample data, the same for the same seed.
    Sample(SampleArgs),
    /// Check every row of trades and bar files, and count what is wrong or odd.
    Check(CheckArgs),
    /// Turn a file of trades or bars into a Parquet table, or such a table back into the file.
    #[command(after_help = CONVERT_EXAMPLES)]
    Convert(ConvertArgs),
    /// Show what a data folder holds and what is wrong with it.
    Info(InfoArgs),
    #[command(flatten)]
    Listings(ListingsCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum StrategyCommand {
    /// List the built-in strategies.
    List(StrategyListArgs),
    /// Show what a strategy is, what it imports, and whether it starts.
    Check(StrategyCheckArgs),
    /// Compile the built-in strategies ahead, for this program and this machine's processor.
    ///
    /// Part of an installation: runs then compile nothing, whatever is in the cache. The code goes into
    /// the folder of the strategies beside the program, in place of what this command compiled before;
    /// files of others stay.
    Compile(StrategyCompileArgs),
    /// List the limits of strategies and formula modules, which `--limit` changes.
    Limits(StrategyLimitsArgs),
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// For scripts: one JSON object.
    Json,
}

/// Its table of execution models is held to them by a test beside their options.
pub(crate) const RUN_EXAMPLES: &str = "\
Examples:
  kumiki data sample --out data --instrument 7203.TSE
  kumiki replay run sma-cross --data data --instrument 7203.TSE
  kumiki replay run sma-cross --data data --instrument 7203.TSE --param fast=5 --param slow=50 \\
      --out runs/5-50
  kumiki replay run sma-cross --data data --instrument 7203.TSE --instrument 9984.TSE \\
      --granularity minute
  kumiki replay run ./my_strategy.wasm --data data --instrument 1306.TSE --start 2013-10-07 \\
      --end 2013-10-11

The data folder holds the vendor's files equities_trades_YYYYMM.csv.gz or _YYYYMMDD.csv.gz, and \
equities_bars_minute_ and equities_bars_daily_ files where there are any.

What --execution assumes; an option replaces its value:
  option                  strict (default)  realistic        optimistic
  --latency               0ms               100ms            0ms
  --slippage-ticks        1                 1                0
  --participation         100               10               100
  --queue-ahead           endless           endless          0
  --commission            none              55 to 1,070 yen  none
  --same-day-round-trips  refuse            refuse           allow
Only realistic has latency and fees, those of a Tokyo online broker; strict has neither of them. \
How orders are filled \
is printed in every result: see `rules` in manifest.json, or the report.";

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A built-in strategy's name (`kumiki strategy list`), or the path of a .wasm file.
    #[arg(value_name = "STRATEGY")]
    pub(crate) strategy: String,

    /// Folder with the vendor's files.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,

    /// What to trade, like 7203.TSE; may be given up to 4 times.
    #[arg(long = "instrument", value_name = "ID", required = true)]
    pub(crate) instruments: Vec<InstrumentId>,

    /// First date (JST); default: the first that the data holds.
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = parse_date)]
    pub(crate) start: Option<JstDate>,

    /// Last date (JST), included; default: the last that the data holds.
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = parse_date)]
    pub(crate) end: Option<JstDate>,

    /// What the strategy sees. Bars come from the vendor's bar files; those of days without one are
    /// made from trades.
    #[arg(long, value_enum, default_value_t = Granularity::Trade)]
    pub(crate) granularity: Granularity,

    /// Replay so many times faster than the market, or `max`: row by row, with pauses between rows,
    /// none longer than 0.2 s. Without it the run is as fast as it can be. Results are the same.
    #[arg(long, value_name = "N")]
    pub(crate) speed: Option<Multiplier>,

    /// Do again what clients did to a run of `kumiki serve`: the commands.jsonl of its folder.
    #[arg(long, value_name = "FILE", conflicts_with = "speed")]
    pub(crate) commands: Option<PathBuf>,

    /// Money in the account at the start, in yen.
    #[arg(long, value_name = "YEN", default_value = "10000000", allow_negative_numbers = true)]
    pub(crate) cash: Money,

    /// A parameter of the strategy; may be given many times.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_param)]
    pub(crate) params: Vec<(String, serde_json::Value)>,

    /// Write orders, fills, equity, manifest and report.html into this folder; it takes the place of
    /// an earlier run there.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// How the summary is printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) execution: ExecutionArgs,

    /// Shares in one trading unit, of all instruments or of one: 10, or 1306=10; may be given many
    /// times. Default: from instruments.csv in the data folder, else 100.
    #[arg(long = "lot", value_name = "[ID=]SHARES", value_parser = parse_lot)]
    pub(crate) lots: Vec<(Option<InstrumentName>, Quantity)>,

    /// Price steps, of all instruments or of one, like 1306=topix500: normal, topix500 (also of ETFs with lots
    /// above 1), etf (with lots of 1), one step in yen like 0.1, or auto; may be given many times. auto, the
    /// default: from instruments.csv, else from the prices before the first day, else normal. The result says which
    /// and why. A row of instruments.csv without ticks has them from prices only where auto is said.
    #[arg(long = "ticks", value_name = "[ID=]TABLE", value_parser = parse_ticks)]
    pub(crate) ticks: Vec<(Option<InstrumentName>, TickChoice)>,

    /// Trades or bars handed to the strategy at once, 1 to 65536. More is faster; 1 never lets a trade into
    /// the strategy's memory before its time. Only a strategy that reads ahead there has other results with
    /// more: `kumiki replay verify` finds it, and a sweep does for its best runs. Default: 1, for a sweep
    /// 1024.
    #[arg(long, value_name = "TRADES")]
    pub(crate) window: Option<u32>,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    #[command(flatten)]
    pub(crate) folders: FolderArgs,

    /// No progress line.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl RunArgs {
    /// Lots and price steps that were said, each of an instrument that is traded.
    pub(crate) fn choices(&self) -> Result<InstrumentChoices, InstrumentsError> {
        fn of<T: Copy + Display>(
            flag: &'static str,
            given: &[(Option<InstrumentName>, T)],
            traded: &[InstrumentId],
        ) -> Result<Choices<T>, InstrumentsError> {
            let mut choices = Choices::default();
            for (name, value) in given {
                let id = name.as_ref().map(|name| name.among(flag, traded)).transpose()?;
                if let Some(first) = choices.add(id.clone(), *value) {
                    return Err(InstrumentsError::twice(flag, id.as_ref(), &first, value));
                }
            }
            Ok(choices)
        }
        Ok(InstrumentChoices {
            lots: of("--lot", &self.lots, &self.instruments)?,
            ticks: of("--ticks", &self.ticks, &self.instruments)?,
        })
    }
}

const SWEEP_EXAMPLES: &str = "\
Examples:
  kumiki replay sweep sma-cross --data data --instrument 7203.TSE --grid fast=5:50:5 \\
      --grid slow=60:200:20 --out sweeps/first
  kumiki replay sweep sma-cross --data data --instrument 7203.TSE --grid fast=1:500:1 \\
      --grid slow=10:5000:10 --random 1000 --seed 7 --out sweeps/random
  kumiki replay sweep sma-cross --data data --instrument 7203.TSE --grid fast=5,10,20 \\
      --grid slow=50,100 --walk-forward 3m/1m --out sweeps/walk

The folder holds sweep.csv and sweep.parquet (one row for each run, in grid order), sweep.html \
with a heat map, sweep.json, and journal.jsonl. The same command into the same folder goes on \
after a crash or Ctrl-C; another sweep into it is refused. A run whose strategy fails is a row \
with its error.

On several machines, each with the same data, or in Python with kumiki.ray.sweep:
  kumiki replay sweep sma-cross --data data --instrument 7203.TSE --points points.csv \\
      --rows 0..500 --out parts/a
  kumiki replay sweep sma-cross --data data --instrument 7203.TSE --points points.csv \\
      --rows 500..1000 --out parts/b
  kumiki replay sweep merge parts/a parts/b --points points.csv --out sweeps/all

points.csv names the parameters in its first line and has a value for each in every other one:
  fast,slow
  5,50
  7,90

Rows are counted from 0, in the order of the table. A part makes its own best runs again \
(--verify), and those of the walk-forward windows whose rows it has as a whole.";

/// `kumiki replay sweep`: a sweep or a part of one, or parts put together.
#[derive(Debug)]
pub(crate) enum SweepCommand {
    Make(Box<SweepArgs>),
    Merge(SweepMergeArgs),
}

/// The name of the command below `sweep`, whose own arguments stand where it may stand.
const MERGE: &str = "merge";

impl FromArgMatches for SweepCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        match matches.subcommand() {
            Some((MERGE, merge)) => Ok(Self::Merge(SweepMergeArgs::from_arg_matches(merge)?)),
            _ => Ok(Self::Make(Box::new(SweepArgs::from_arg_matches(matches)?))),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        Self::from_arg_matches(matches).map(|read| *self = read)
    }
}

impl Args for SweepCommand {
    fn augment_args(sweep: clap::Command) -> clap::Command {
        let merge = SweepMergeArgs::augment_args(clap::Command::new(MERGE))
            .about("Put parts of a sweep together, as if one machine had made it")
            .after_help(MERGE_HELP);
        SweepArgs::augment_args(sweep)
            .args_conflicts_with_subcommands(true)
            .subcommand_negates_reqs(true)
            .subcommand_value_name(MERGE)
            .subcommand(merge)
    }

    fn augment_args_for_update(sweep: clap::Command) -> clap::Command {
        Self::augment_args(sweep)
    }
}

const MERGE_HELP: &str = "\
Examples:
  kumiki replay sweep merge parts/a parts/b --out sweeps/all
  kumiki replay sweep merge parts/* --points points.csv --out sweeps/all

Parts are folders that `kumiki replay sweep` wrote: with --rows, or interrupted. It needs neither \
data nor strategy. Parts of different sweeps (version, strategy, data, parameters, options, \
--rank-by, --verify) are refused with what is different, and so are parts that have a row in \
common and not the same. The table, the manifest and the page are byte for byte those of one \
machine. What is already in the folder of --out of the same sweep counts as a part, so merging \
again changes nothing.

Exit codes:
  0  all rows are there
  3  rows are missing, or the best were not made again (--unverified): they are named, and
     nothing was written unless --partial said so; or all runs failed
  others as of the sweep";

#[derive(Debug, Args)]
pub(crate) struct SweepMergeArgs {
    /// Folders of the parts.
    #[arg(value_name = "DIR", required = true)]
    pub(crate) parts: Vec<PathBuf>,

    /// The merged sweep's folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,

    /// The file that the parts were made from, if they had --points.
    #[arg(long, value_name = "FILE")]
    pub(crate) points: Option<PathBuf>,

    /// Write the folder though rows are missing. The sweep's own command, without --rows, goes on
    /// there and makes them, and makes the best runs again.
    #[arg(long)]
    pub(crate) partial: bool,

    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,

    /// A parameter and its values: a range start:end:step with its end, or a list. May be given
    /// many times; the last one changes fastest.
    #[arg(long = "grid", value_name = "NAME=VALUES", required_unless_present = "points")]
    pub(crate) grid: Vec<Axis>,

    /// Run the sets of parameters of this file instead of a grid, one run for each row: CSV with the
    /// names in its first line, or JSON lines like {"fast": 5, "slow": 50}. Each row has a value for
    /// every name. At most 1000000 rows, 256 MB and 16 names.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["grid", "random"])]
    pub(crate) points: Option<PathBuf>,

    /// Make only these rows of the table, counted from 0, from the first to one before the end: the
    /// folder is a part, for `kumiki replay sweep merge`. 0..0 makes none and tells how many there are.
    #[arg(long, value_name = "FIRST..END")]
    pub(crate) rows: Option<RowRange>,

    /// Draw so many of the combinations instead of running all.
    #[arg(long, value_name = "N", requires = "seed")]
    pub(crate) random: Option<u64>,

    /// Seed of the drawing; the same seed draws the same combinations.
    #[arg(long, value_name = "S", requires = "random")]
    pub(crate) seed: Option<u64>,

    /// Choose the best run of each window and run it on the days after: 3m/1m in calendar months,
    /// 20d/5d in trading days.
    #[arg(long, value_name = "TRAIN/TEST")]
    pub(crate) walk_forward: Option<WalkForward>,

    /// Runs at the same time. Results do not depend on it. Default: one for each core.
    #[arg(long, value_name = "N", value_parser = parse_jobs)]
    pub(crate) jobs: Option<usize>,

    /// What makes a run good: sharpe, return, equity_end, max_drawdown (lower is better), win_rate,
    /// round_trips, fills, turnover, commission (lower is better).
    #[arg(long, value_name = "NUMBER", default_value_t = Statistic::Sharpe)]
    pub(crate) rank_by: Statistic,

    /// How many of the best runs are printed.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,

    /// Make so many of the best runs again with window 1, never fewer than are printed, and those
    /// chosen and tested in a walk forward: a run in which something else happens then saw the future
    /// and is not ranked. 0 for none.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) verify: usize,

    /// Leave that, and the test runs of a walk forward, to whoever goes on with the merged parts: for
    /// parts of few rows.
    #[arg(long, requires = "rows")]
    pub(crate) unverified: bool,
}

const VERIFY_HELP: &str = "\
Examples:
  kumiki replay verify runs/5-50 --data data
  kumiki replay verify runs/mine --data data --strategy ./my_strategy.wasm --format json

Files in the folder that the run does not write are named, not looked at, and change no exit code. The page report.html is not compared.

The strategy has the limits that the folder says, unless --limit says another: that limit is not compared, what comes out is. Without one the compile limit is at least the default.

Exit codes:
  0  the same came out
  3  the strategy is too much to compile within the limits
  4  something else came out with window 1: the strategy saw the future, or a file of the run,
     its manifest too, was made by another version or changed
  5  the data, a table of its folder or the strategy is not what the run was made from, which is
     named, and nothing was run
  1 and 2 as everywhere";

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Folder of a run (`kumiki replay run --out DIR`).
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// Folder with the vendor's files that the run was made from.
    #[arg(long, value_name = "DIR", default_value = "data")]
    pub(crate) data: PathBuf,

    /// The strategy's file; default: the built-in strategy of the name in the run's manifest.
    #[arg(long, value_name = "STRATEGY")]
    pub(crate) strategy: Option<String>,

    /// Where the built-in strategies are.
    #[arg(long, value_name = "DIR", env = "KUMIKI_STRATEGIES")]
    pub(crate) strategies: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// No progress line.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Folder of a run (`kumiki replay run --out DIR`).
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// Where the page goes; default: report.html in that folder.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Folders of two runs or more.
    #[arg(value_name = "DIR", required = true, num_args = 2..=RUNS_COMPARED_MAX)]
    pub(crate) folders: Vec<PathBuf>,

    /// Write a page that overlays the equity of the runs.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// How the comparison is printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct NarrativeArgs {
    /// Folder of a run (`kumiki replay run --out DIR`).
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// Only decisions that explain this order.
    #[arg(long, value_name = "ID")]
    pub(crate) order: Option<String>,

    /// How the decisions are printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
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
    /// Minute bars.
    Minute,
    /// Daily bars.
    Day,
}

impl From<Granularity> for replay::data_set::Granularity {
    fn from(granularity: Granularity) -> Self {
        match granularity {
            Granularity::Trade => Self::Trade,
            Granularity::Minute => Self::Minute,
            Granularity::Day => Self::Day,
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
    #[arg(long, conflicts_with_all = ["out", "instruments", "trades_per_day", "bars"])]
    pub(crate) daily: bool,

    /// Folder of the daily prices.
    #[arg(long, value_name = "DIR", env = "DATA_DIR", default_value = "data", value_parser = parse_data_dir)]
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
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = parse_date)]
    pub(crate) start: Option<JstDate>,

    /// Trades of an instrument in a day, on average.
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    pub(crate) trades_per_day: u32,

    /// Write minute and daily bar files of the same trades too.
    #[arg(long)]
    pub(crate) bars: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Trades and bar files, or folders with such files.
    #[arg(required = true, value_name = "FILE|DIR")]
    pub(crate) paths: Vec<PathBuf>,

    /// Show each code too.
    #[arg(long)]
    pub(crate) per_code: bool,

    /// From how many minutes without a trade inside a session on a stretch of a code counts as quiet.
    #[arg(long, value_name = "MINUTES", default_value_t = 30)]
    pub(crate) quiet_minutes: u64,

    /// How the report is printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// No progress line.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

const CONVERT_EXAMPLES: &str = "\
Examples:
  kumiki data convert data/equities_trades_202501.csv.gz january.parquet
  kumiki data convert data/equities_trades_202501.csv.gz topix.parquet --code 13060
  kumiki data convert january.parquet back/equities_trades_202501.csv.gz
  kumiki data convert data/equities_bars_daily_202501.csv.gz days.parquet

The text that comes back is the same, byte for byte; a file of which that cannot be is refused with its line: one \
with another header or a byte order mark, or without a line feed at its end. The columns are ts_event (nanoseconds, \
UTC), code, price (decimal), quantity, transaction_id; price_digits and text only of rows in an \
unusual spelling. A table of bars has ts_event, open, high, low, close, volume, text, and every \
column of the file as text.";

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// The file to read: a trades or bar file (.csv.gz) or a table (.parquet).
    #[arg(value_name = "IN")]
    pub(crate) from: PathBuf,

    /// The file to write, of the other kind.
    #[arg(value_name = "OUT")]
    pub(crate) to: PathBuf,

    /// Only rows of this vendor code, like 13060.
    #[arg(long, value_name = "CODE", value_parser = parse_code)]
    pub(crate) code: Option<VendorCode>,

    /// Replace the file to write if it exists.
    #[arg(long)]
    pub(crate) force: bool,

    /// No progress line.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// The folder: vendor files, result tables, daily prices (jp/stocks_daily) or several of these.
    #[arg(value_name = "DIR", env = "DATA_DIR", default_value = "data")]
    pub(crate) folder: PathBuf,

    /// Read the trades files to count rows and codes; without it only what the cache knows is shown, and the
    /// file of a month is read where files of its days lie beside it, to see which has a day.
    #[arg(long)]
    pub(crate) scan: bool,

    /// Where decoded data is kept.
    #[arg(long, value_name = "DIR", env = "KUMIKI_CACHE")]
    pub(crate) cache: Option<PathBuf>,

    /// How the report is printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// No progress line.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StrategyListArgs {
    #[command(flatten)]
    pub(crate) folders: FolderArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StrategyCompileArgs {
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// What guests may use and cause.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LimitArgs {
    /// Another limit for strategies or formula modules, like memory=128MiB,log=8MiB; may be given many
    /// times. `kumiki strategy limits` lists them.
    #[arg(long = "limit", value_name = "NAME=VALUE", value_delimiter = ',')]
    changes: Vec<LimitChange>,
}

impl LimitArgs {
    /// The limits that were asked for.
    pub(crate) fn changes(&self) -> &[LimitChange] {
        &self.changes
    }

    /// The limits of a strategy.
    pub(crate) fn of_strategy(&self) -> Result<Limits, LimitError> {
        Limits::default().changed(&self.changes)
    }

    /// The limits of a formula module.
    pub(crate) fn of_formula(&self) -> Result<Limits, LimitError> {
        Limits::formula().changed(&self.changes)
    }
}

#[derive(Debug, Args)]
pub(crate) struct StrategyLimitsArgs {
    /// How the list is printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct StrategyCheckArgs {
    /// A built-in strategy's name, or the path of a .wasm file.
    #[arg(value_name = "STRATEGY")]
    pub(crate) strategy: String,

    /// A parameter of the strategy; may be given many times.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_param)]
    pub(crate) params: Vec<(String, serde_json::Value)>,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// How the report is printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) folders: FolderArgs,
}

/// Whatever the whole program would take.
#[cfg(not(feature = "database"))]
#[derive(Debug, Args)]
pub(crate) struct AnyArgs {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _all: Vec<OsString>,
}

#[cfg(feature = "database")]
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
    let read = match serde_json::from_str(value) {
        Ok(serde_json::Value::Number(number)) => {
            check_number(value, number.as_f64().filter(|_| number.is_f64()))?;
            serde_json::Value::Number(number)
        }
        Ok(truth @ serde_json::Value::Bool(_)) => truth,
        _ => {
            let is_written_as_number =
                value.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
            let fraction = value.parse::<f64>().ok().filter(|_| is_written_as_number);
            check_number(value, fraction.filter(|fraction| !fraction.is_finite()))?;
            serde_json::Value::String(value.to_owned())
        }
    };
    Ok((name.to_owned(), read))
}

/// A number that was read as a fraction is one, and not the nearest that there is to something out of reach.
fn check_number(text: &str, fraction: Option<f64>) -> Result<(), String> {
    let Some(fraction) = fraction else { return Ok(()) };
    let digits = text.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = !digits.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    if !fraction.is_finite() {
        return Err(format!(
            "`{text}` is beyond the largest fraction of 64 bits, about 1.8e308; write a smaller number"
        ));
    }
    if fraction == 0.0 && !is_zero {
        return Err(format!(
            "`{text}` is nearer to 0 than any fraction of 64 bits; write 0, or a number of at least 5e-324"
        ));
    }
    if !is_zero && !text.contains(['.', 'e', 'E']) {
        return Err(format!(
            "`{text}` is an integer beyond 64 bits; write one from {} to {}, or a fraction, like {text}.0, which \
             is rounded",
            i64::MIN,
            u64::MAX
        ));
    }
    Ok(())
}

fn parse_lot(text: &str) -> Result<(Option<InstrumentName>, Quantity), String> {
    let (id, shares) = choice_of(text)?;
    match shares.parse::<u64>() {
        Ok(shares) if shares > 0 => Ok((id, Quantity::new(shares))),
        _ => Err("write a number of shares above 0, like 10 or 1306=10".to_owned()),
    }
}

fn parse_ticks(text: &str) -> Result<(Option<InstrumentName>, TickChoice), String> {
    let (id, table) = choice_of(text)?;
    Ok((id, table.parse()?))
}

fn parse_jobs(text: &str) -> Result<usize, String> {
    let jobs = text.parse().ok().filter(|jobs| (1..=SWEEP_JOBS_MAX).contains(jobs));
    jobs.ok_or_else(|| format!("`{text}` jobs asked for; ask for 1 to {SWEEP_JOBS_MAX}"))
}

fn parse_code(text: &str) -> Result<VendorCode, String> {
    VendorCode::new(text)
        .map_err(|error| format!("{error}; write the vendor's five places, like 13060"))
}

/// The folder of the daily prices. The database engine takes what follows a ? for options, and would write its
/// files beside the folder.
pub(crate) fn parse_data_dir(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let whole = std::path::absolute(&path).unwrap_or_else(|_| path.clone());
    match whole.to_string_lossy().contains('?') {
        true => Err(format!(
            "{} has a ? in its name, which the database engine takes for the begin of options; use a \
             folder with another name",
            whole.display()
        )),
        false => Ok(path),
    }
}

fn parse_date(text: &str) -> Result<JstDate, String> {
    text.parse().map_err(|_| format!("`{text}` is no date; write YYYY-MM-DD, like 2025-01-31"))
}

/// Ends the program as wrong arguments do, for what only shows when they are looked at together.
pub(crate) fn refuse(problem: &str) -> ! {
    end(&asked_for(env::args_os()).error(ErrorKind::ValueValidation, problem))
}

/// The command that arguments ask for, whose usage is shown beside what is wrong; the program's own where they
/// cannot be read.
fn asked_for(arguments: impl IntoIterator<Item = OsString>) -> clap::Command {
    let mut command = command();
    command.build();
    let matches = command.clone().try_get_matches_from(arguments);
    let mut below = matches.as_ref().ok().and_then(ArgMatches::subcommand);
    while let Some((name, matches)) = below {
        let Some(found) = command.find_subcommand(name).cloned() else { break };
        (command, below) = (found, matches.subcommand());
    }
    command
}

/// All arguments, as this process takes them.
fn command() -> clap::Command {
    // A variable of the log that is empty is one that is not set.
    let is_empty = |name: &OsStr| env::var_os(name).is_some_and(|value| value.is_empty());
    Cli::command().mut_args(|argument| match argument.get_env() {
        Some(name) if is_empty(name) => argument.env(None::<&'static str>),
        _ => argument,
    })
}

/// The arguments of this process. Wrong ones end it, and so do wishes for help.
pub(crate) fn parse() -> Cli {
    standard_error::set_json(logging::asks_for_json(env::args_os().skip(1)));
    let mut command = command();
    let matches = command.try_get_matches_from_mut(env::args_os());
    let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    cli.unwrap_or_else(|error| end(&secret::without(error.format(&mut command))))
}

fn end(error: &clap::Error) -> ! {
    if !error.use_stderr() || !standard_error::is_json() {
        error.exit()
    }
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
    standard_error::write_json(Level::ERROR, format_args!("{text}"));
    std::process::exit(error.exit_code())
}

#[cfg(test)]
mod tests;
