//! Arguments of `kumiki replay`.

use std::fmt::Display;
use std::path::PathBuf;

use clap::{Arg, Args, Subcommand, ValueEnum};
use domain::limits::SWEEP_JOBS_MAX;
use domain::{InstrumentId, JstDate, Money, Quantity};
use exchange::Preset;
use replay::Multiplier;
use replay::instruments::{
    Choices, InstrumentChoices, InstrumentName, InstrumentsError, TickChoice, choice_of,
};
use results::report::RUNS_COMPARED_MAX;
use sweep::{Axis, RowRange, Statistic, WalkForward};

use super::{FolderArgs, Format, LimitArgs, parse_date, parse_param};
use crate::execution::ExecutionArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum ReplayCommand {
    /// Run one strategy once.
    #[command(after_long_help = RUN_HELP, mut_args(of_a_run))]
    Run(Box<RunArgs>),
    /// Run one strategy over many combinations of its parameters.
    #[command(
        after_long_help = SWEEP_HELP,
        mut_args(of_a_sweep),
        mut_arg("out", |out| {
            out.help("Folder of the sweep; an interrupted one goes on").long_help(None::<&str>)
        })
    )]
    Sweep(Box<SweepArgs>),
    /// Put the parts of a sweep together.
    #[command(after_long_help = MERGE_HELP)]
    Merge(MergeArgs),
    /// Make a run again from its folder and compare the two.
    ///
    /// The run is made one trade at a time, and nothing comes from a cache.
    #[command(after_long_help = VERIFY_HELP)]
    Verify(VerifyArgs),
    /// Make every decision of a run on the live market again from its journal.
    ///
    /// The component gets what the journal has, in the same order. Its answers are compared with those of the run.
    #[command(after_long_help = JOURNAL_HELP)]
    Journal(JournalArgs),
    /// Put a run on the live market beside the simulated exchange.
    ///
    /// The strategy of a run on paper runs again over the trades of the journal. Orders, fills and signals are
    /// compared. With --execution the run's own orders are executed again one by one.
    #[command(after_long_help = COMPARE_LIVE_HELP)]
    CompareLive(CompareLiveArgs),
    /// Make the report of a run again.
    Report(ReportArgs),
    /// Compare runs: parameters, statistics, equity.
    Compare(CompareArgs),
    /// Show the decisions of a strategy with their orders.
    Narrative(NarrativeArgs),
}

/// Options of a run, with the rare ones only in the long help.
fn of_a_run(option: Arg) -> Arg {
    let is_rare = match (option.get_id().as_str(), option.get_help_heading()) {
        ("execution", _) => false,
        ("lots" | "ticks", _) => true,
        (_, heading) => {
            matches!(heading, Some("Execution" | "How it runs" | "Limits and folders"))
        }
    };
    if is_rare { option.hide_short_help(true) } else { option }
}

/// The same for a sweep, without the options that a sweep refuses.
fn of_a_sweep(option: Arg) -> Arg {
    match option.get_id().as_str() {
        "speed" | "commands" => option.hide(true),
        "execution" | "format" | "points" | "rows" | "random" | "seed" | "walk_forward"
        | "verify" | "unverified" => option.hide_short_help(true),
        _ => of_a_run(option),
    }
}

/// Its table of execution models is held to them by a test beside their options.
pub(crate) const RUN_HELP: &str = "\
The data folder holds the vendor's files equities_trades_YYYYMM.csv.gz or _YYYYMMDD.csv.gz. It may \
also hold equities_bars_minute_ and equities_bars_daily_ files.

--execution names a model. An option replaces one value of the model:
  option                  strict (default)  realistic        optimistic
  --latency               0ms               100ms            0ms
  --slippage-ticks        1                 1                0
  --participation         100               10               100
  --queue-ahead           endless           endless          0
  --commission            none              55 to 1,070 yen  none
  --same-day-round-trips  refuse            refuse           allow

Only realistic has latency and fees, those of a Tokyo online broker; strict has neither of them. \
Every result states the rules by which orders were filled: see `rules` in manifest.json, or the report.

Examples:
  kumiki data sample --out data --instrument 7203.TSE
  kumiki replay run sma-cross --data data --instrument 7203.TSE
  kumiki replay run sma-cross --data data --instrument 7203.TSE --param fast=5 --param slow=50 \\
      --out runs/5-50
  kumiki replay run sma-cross --data data --instrument 7203.TSE --instrument 9984.TSE \\
      --granularity minute
  kumiki replay run ./my_strategy.wasm --data data --instrument 1306.TSE --from 2013-10-07 \\
      --to 2013-10-11";

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A built-in strategy (`kumiki strategy list`) or a .wasm file.
    #[arg(value_name = "STRATEGY")]
    pub(crate) strategy: String,

    /// Folder with the market data.
    #[arg(long, value_name = "DIR", help_heading = "Market")]
    pub(crate) data: PathBuf,

    /// Instrument to trade, like 7203.TSE; up to 4.
    #[arg(long = "instrument", value_name = "ID", required = true, help_heading = "Market")]
    pub(crate) instruments: Vec<InstrumentId>,

    /// First date in Japan; default: the first of the data.
    #[arg(
        long, alias = "start", value_name = "YYYY-MM-DD", value_parser = parse_date,
        help_heading = "Market"
    )]
    pub(crate) from: Option<JstDate>,

    /// Last date, included; default: the last of the data.
    #[arg(
        long, alias = "end", value_name = "YYYY-MM-DD", value_parser = parse_date,
        help_heading = "Market"
    )]
    pub(crate) to: Option<JstDate>,

    /// What the strategy sees.
    ///
    /// Bars come from the vendor's bar files. Days without such a file get bars made from trades.
    #[arg(
        long, value_name = "KIND", value_enum, default_value_t = Granularity::Trade,
        help_heading = "Market"
    )]
    pub(crate) granularity: Granularity,

    /// Shares in a lot: 10, or 1306=10 for one instrument.
    ///
    /// May be given many times. Default: instruments.csv of the data folder, else 100.
    #[arg(
        long = "lot", value_name = "[ID=]SHARES", value_parser = parse_lot, help_heading = "Market"
    )]
    pub(crate) lots: Vec<(Option<InstrumentName>, Quantity)>,

    /// Price steps, like 1306=topix500.
    ///
    /// May be given many times. The tables are normal, topix500 (also ETFs with lots above 1), etf (with
    /// lots of 1), one step in yen like 0.1, and auto. With auto, the default, steps come from
    /// instruments.csv, else from the prices before the first day, else they are normal. The result
    /// states the table and the reason. A row of instruments.csv without ticks needs auto to take them
    /// from prices.
    #[arg(
        long = "ticks", value_name = "[ID=]TABLE", value_parser = parse_ticks, help_heading = "Market"
    )]
    pub(crate) ticks: Vec<(Option<InstrumentName>, TickChoice)>,

    /// Cash at the start, in yen.
    #[arg(long, value_name = "YEN", default_value = "10000000", allow_negative_numbers = true)]
    pub(crate) cash: Money,

    /// A parameter of the strategy; may be given many times.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_param)]
    pub(crate) params: Vec<(String, serde_json::Value)>,

    /// Folder of the run; it replaces an earlier run.
    ///
    /// The folder gets orders, fills, equity, the manifest and report.html.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Form of the summary.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) execution: ExecutionArgs,

    /// Pace the run: N times real time, or max; results are the same.
    ///
    /// The run goes row by row, and pauses between rows last at most 0.2 s. Without this option the run
    /// is as fast as it can be.
    #[arg(long, value_name = "N", help_heading = "How it runs")]
    pub(crate) speed: Option<Multiplier>,

    /// Repeat what clients did: commands.jsonl of a served run.
    #[arg(
        hide_short_help = true,
        long,
        value_name = "FILE",
        conflicts_with = "speed",
        help_heading = "How it runs"
    )]
    pub(crate) commands: Option<PathBuf>,

    /// Rows per call, 1 to 65536; default: 1, of sweeps 1024.
    ///
    /// More rows are faster. With 1, no trade is in the strategy's memory before its time. Only a strategy
    /// that reads ahead has other results with more rows. `kumiki replay verify` finds such a strategy, and
    /// so does a sweep for its best runs.
    #[arg(long, value_name = "ROWS", help_heading = "How it runs")]
    pub(crate) window: Option<u32>,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    #[command(flatten)]
    pub(crate) folders: FolderArgs,
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

const SWEEP_HELP: &str = "\
Examples:
  kumiki replay sweep sma-cross --data data --instrument 7203.TSE --grid fast=5:50:5 \\
      --grid slow=60:200:20 --out sweeps/first
  kumiki replay sweep sma-cross --data data --instrument 7203.TSE --grid fast=1:500:1 \\
      --grid slow=10:5000:10 --random 1000 --seed 7 --out sweeps/random
  kumiki replay sweep sma-cross --data data --instrument 7203.TSE --grid fast=5,10,20 \\
      --grid slow=50,100 --walk-forward 3m/1m --out sweeps/walk

The folder holds sweep.csv and sweep.parquet with one row for each run in grid order. It also holds \
sweep.html with a heat map, sweep.json and journal.jsonl. The same command into the same folder goes on \
after a crash or Ctrl-C. Another sweep into that folder is refused. A run whose strategy fails is a row \
with its error.

On several machines, each with the same data, or in Python with kumiki.ray.sweep:
  kumiki replay sweep sma-cross --data data --instrument 7203.TSE --points points.csv \\
      --rows 0..500 --out parts/a
  kumiki replay sweep sma-cross --data data --instrument 7203.TSE --points points.csv \\
      --rows 500..1000 --out parts/b
  kumiki replay merge parts/a parts/b --points points.csv --out sweeps/all

points.csv names the parameters in its first line and has a value for each in every other one:
  fast,slow
  5,50
  7,90

Rows are counted from 0, in the order of the table. A part makes its own best runs again \
(--verify), and those of the walk-forward windows whose rows it has as a whole.

Exit codes:
  0    done; a run whose strategy failed is a row with its error
  1    an error
  2    wrong arguments
  3    all runs failed
  4    a run saw the future: no other run is left to rank, or it is a test run of a walk forward
  130  interrupted; the same command goes on";

const MERGE_HELP: &str = "\
Examples:
  kumiki replay merge parts/a parts/b --out sweeps/all
  kumiki replay merge parts/* --points points.csv --out sweeps/all

Parts are folders that `kumiki replay sweep` wrote: with --rows, or interrupted. The command needs neither \
data nor strategy. It refuses parts of different sweeps (version, strategy, data, parameters, options, \
--rank-by, --verify) and names the difference. It also refuses parts that disagree about a row. The \
table, the manifest and the page are byte for byte those of one machine. An earlier result of the same \
sweep in the folder of --out counts as a part, so merging again changes nothing.

Exit codes:
  0  all rows are there
  3  rows are missing, or the best runs were not made again (--unverified): they are named, and
     nothing was written without --partial; or all runs failed
  others as of the sweep";

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Folders of the parts.
    #[arg(value_name = "DIR", required = true)]
    pub(crate) parts: Vec<PathBuf>,

    /// Folder of the merged sweep.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,

    /// The file of --points, if the parts were made from one.
    #[arg(long, value_name = "FILE")]
    pub(crate) points: Option<PathBuf>,

    /// Write the folder even if rows are missing.
    ///
    /// The sweep's own command without --rows goes on there. It makes the missing rows, and the best runs
    /// again.
    #[arg(long)]
    pub(crate) partial: bool,

    /// Form of the result.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// A parameter and its values: start:end:step or a list.
    ///
    /// A range includes its end. May be given many times; the last one changes fastest.
    #[arg(
        long = "grid",
        value_name = "NAME=VALUES",
        required_unless_present = "points",
        help_heading = "Sweep"
    )]
    pub(crate) grid: Vec<Axis>,

    /// Take the sets of parameters from this file instead of a grid.
    ///
    /// Each row is one run: CSV with the names in its first line, or JSON lines like
    /// {"fast": 5, "slow": 50}. Each row has a value for every name. At most 1000000 rows, 256 MB and 16
    /// names.
    #[arg(
        long, value_name = "FILE", conflicts_with_all = ["grid", "random"], help_heading = "Sweep"
    )]
    pub(crate) points: Option<PathBuf>,

    /// Make only these rows: a part, for `kumiki replay merge`.
    ///
    /// Rows are counted from 0, and the end is not included. 0..0 makes none and shows how many there are.
    #[arg(long, value_name = "FIRST..END", help_heading = "Sweep")]
    pub(crate) rows: Option<RowRange>,

    /// Draw N of the combinations instead of all.
    #[arg(long, value_name = "N", requires = "seed", help_heading = "Sweep")]
    pub(crate) random: Option<u64>,

    /// Seed of the drawing; the same seed draws the same ones.
    #[arg(long, value_name = "S", requires = "random", help_heading = "Sweep")]
    pub(crate) seed: Option<u64>,

    /// Test the best run of each window on the days after, like 3m/1m.
    ///
    /// 3m/1m counts calendar months, 20d/5d trading days.
    #[arg(long, value_name = "TRAIN/TEST", help_heading = "Sweep")]
    pub(crate) walk_forward: Option<WalkForward>,

    /// Runs at the same time; default: one for each core.
    #[arg(long, value_name = "N", value_parser = parse_jobs, help_heading = "Sweep")]
    pub(crate) jobs: Option<usize>,

    /// Statistic that makes a run good.
    ///
    /// sharpe, return, equity_end, max_drawdown (lower is better), win_rate, round_trips, fills, turnover
    /// or commission (lower is better).
    #[arg(
        long, value_name = "NUMBER", default_value_t = Statistic::Sharpe, help_heading = "Sweep"
    )]
    pub(crate) rank_by: Statistic,

    /// Best runs to print.
    #[arg(long, alias = "top", value_name = "N", default_value_t = 10, help_heading = "Sweep")]
    pub(crate) limit: usize,

    /// Best runs to make again with window 1; 0 for none.
    ///
    /// At least the printed ones are made again, and those of a walk forward. A run with another result
    /// then saw the future, and is not ranked.
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Sweep")]
    pub(crate) verify: usize,

    /// Leave that to the merged parts: for parts of few rows.
    ///
    /// The test runs of a walk forward are left too. The sweep's command over the merged folder makes them.
    #[arg(long, requires = "rows", help_heading = "Sweep")]
    pub(crate) unverified: bool,

    #[command(flatten)]
    pub(crate) run: RunArgs,
}

const VERIFY_HELP: &str = "\
Examples:
  kumiki replay verify runs/5-50 --data data
  kumiki replay verify runs/mine --data data --strategy ./my_strategy.wasm --format json

Files in the folder that the run does not write are named and not read; they change no exit code. The page report.html is not compared.

The strategy has the limits of the folder, except for those of --guest-limit. The command compares the results, not the limits. Without --guest-limit the compile limit is at least the default.

Exit codes:
  0  the same came out
  3  the strategy is too much to compile within the limits
  4  the result differs with window 1: the strategy saw the future, or a file of the run (its
     manifest too) was changed or made by another version
  5  the data, a table of its folder or the strategy is not what the run was made from, which is
     named, and nothing was run
  1 and 2 as everywhere";

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Folder of a run (`kumiki replay run --out DIR`).
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// Folder with the market data of the run.
    #[arg(long, value_name = "DIR", default_value = "data")]
    pub(crate) data: PathBuf,

    /// The strategy's file; default: the built-in one of the manifest.
    #[arg(long, value_name = "STRATEGY")]
    pub(crate) strategy: Option<String>,

    /// Form of the result.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// Folder of the built-in strategies.
    #[arg(long, value_name = "DIR", env = "KUMIKI_STRATEGIES")]
    pub(crate) strategies: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

const JOURNAL_HELP: &str = "\
Examples:
  kumiki replay journal runs/paper-1
  kumiki replay journal runs/paper-1 --component ./my_strategy.wasm --format json

The command needs the run's folder alone: journal-YYYYMMDD.jsonl and strategy.wasm. A single file is read where it is the first of its run. If a crash has cut off the end of the journal, the rest is compared, and the answer says so. So it is with a run that goes on: what its journal has so far is compared.

Outputs are orders, signals, narratives, lines of the log, and a fault of the component. A call that took too long on the clock is none. With --component you see what another version would have decided: the first output that differs, with both sides. It gets the order events of the run, whatever it decides.

Example of an answer:
  $ kumiki replay journal runs/paper-1
  identical: 214 outputs of `sma-cross` came out again

Exit codes:
  0  all outputs came out again, and nothing else
  4  something else came out; the first difference is shown
  5  the journal is damaged before its end, the end of a run that has ended is missing, or the
     component is another one and --component was not given
  1 and 2 as everywhere";

#[derive(Debug, Args)]
pub(crate) struct JournalArgs {
    /// Folder of a run on the live market, or its first journal file.
    #[arg(value_name = "RUN_DIR|FILE")]
    pub(crate) path: PathBuf,

    /// Another component in place of the run's own.
    #[arg(long, value_name = "FILE")]
    pub(crate) component: Option<PathBuf>,

    /// Form of the result.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// Folder of compiled strategies.
    #[arg(long, alias = "cache", value_name = "DIR", env = "KUMIKI_CACHE")]
    pub(crate) cache_dir: Option<PathBuf>,
}

const COMPARE_LIVE_HELP: &str = "\
Examples:
  kumiki replay compare-live runs/paper-1
  kumiki replay compare-live runs/paper-1 --execution strict --execution optimistic
  kumiki replay compare-live runs/paper-1 --component ./my_strategy.wasm --out other.html

The command needs the run's folder alone: journal-YYYYMMDD.jsonl and strategy.wasm. Parameters, cash, limits of orders and the execution model are those of the run. A run on paper gives the same orders, fills (price, quantity, millisecond) and signals.

--execution names fill models. Each executes the run's own orders, changes and cancels again one by one, at their instants. The strategy decides nothing then, so one other fill changes no later order. A run with real orders is compared with strict, realistic and optimistic that way. What was refused in the run is left out.

With --component the strategy of a run on paper decides again, with the model of the run or those of --execution.

A missed fill is one that the run has and the simulated exchange does not. An extra fill is the other way round. The cost is what the simulated fills of the same shares cost more than those of the run. The page has all fills side by side.

Example of an answer:
  $ kumiki replay compare-live runs/paper-1
  the same as the run: 12 orders, 12 fills and 3 signals of `sma-cross` (realistic)

Exit codes:
  0  orders, fills and signals are the same, or only fill models were compared
  4  something else came out; the first difference is shown
  5  the journal is damaged before its end, the end of a run that has ended is missing, or the
     component is another one and --component was not given
  1 and 2 as everywhere";

#[derive(Debug, Args)]
pub(crate) struct CompareLiveArgs {
    /// Folder of a run on the live market.
    #[arg(value_name = "RUN_DIR")]
    pub(crate) folder: PathBuf,

    /// Another component in place of the run's own.
    #[arg(long, value_name = "FILE")]
    pub(crate) component: Option<PathBuf>,

    /// Execute the run's orders again by this model: strict, realistic or optimistic.
    ///
    /// May be given many times.
    #[arg(long, value_name = "MODEL")]
    pub(crate) execution: Vec<Preset>,

    /// File of the page; default: compare.html in that folder.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Form of the result.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// Folder of compiled strategies.
    #[arg(long, alias = "cache", value_name = "DIR", env = "KUMIKI_CACHE")]
    pub(crate) cache_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Folder of a run (`kumiki replay run --out DIR`).
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// File of the page; default: report.html in that folder.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Folders of two runs or more.
    #[arg(value_name = "DIR", required = true, num_args = 2..=RUNS_COMPARED_MAX)]
    pub(crate) folders: Vec<PathBuf>,

    /// Write a page with the equity of all runs.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Form of the comparison.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct NarrativeArgs {
    /// Folder of a run (`kumiki replay run --out DIR`).
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// Show only the decisions on the order with this id.
    #[arg(long, alias = "order", value_name = "ID")]
    pub(crate) id: Option<String>,

    /// Form of the decisions.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
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

pub(super) fn parse_lot(text: &str) -> Result<(Option<InstrumentName>, Quantity), String> {
    let (id, shares) = choice_of(text)?;
    match shares.parse::<u64>() {
        Ok(shares) if shares > 0 => Ok((id, Quantity::new(shares))),
        _ => Err("write a number of shares above 0, like 10 or 1306=10".to_owned()),
    }
}

pub(super) fn parse_ticks(text: &str) -> Result<(Option<InstrumentName>, TickChoice), String> {
    let (id, table) = choice_of(text)?;
    Ok((id, table.parse()?))
}

fn parse_jobs(text: &str) -> Result<usize, String> {
    let jobs = text.parse().ok().filter(|jobs| (1..=SWEEP_JOBS_MAX).contains(jobs));
    jobs.ok_or_else(|| format!("`{text}` jobs asked for; ask for 1 to {SWEEP_JOBS_MAX}"))
}
