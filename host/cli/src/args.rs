//! The arguments, and the help that teaches them.

mod data;
#[cfg(feature = "database")]
mod database;
#[cfg(not(feature = "database"))]
#[path = "args/no_database.rs"]
mod database;
mod engine;
mod examples;
mod key;
#[cfg(feature = "database")]
mod listings;
mod live;
mod live_run;
mod open_console;
mod order;
#[cfg(feature = "database")]
mod rank;
#[cfg(feature = "database")]
mod rank_serve;
mod replay;
mod secret;
mod sim;
mod sim_local_broker;
mod sim_market;
#[cfg(feature = "database")]
mod sql;
mod strategy;
#[cfg(feature = "database")]
mod update;
mod watch;
mod words;

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use domain::JstDate;
use domain::guest_limit::{LimitChange, LimitError};
use sandbox::Limits;
use tracing::Level;

use crate::logging::LogArgs;
use crate::standard_error;

#[cfg(test)]
pub(crate) use self::replay::RUN_HELP;
pub(crate) use {
    self::data::{CheckArgs, ConvertArgs, DataCommand, InfoArgs, SampleArgs},
    self::engine::{EngineArgs, EngineMode},
    self::key::{KeyCommand, KeyListArgs, KeyRemoveArgs, KeySetArgs, StoreArgs},
    self::live::LiveCommand,
    self::live_run::{
        EngineToStartArgs, LiveAdjustArgs, LivePositionsArgs, LiveRunArgs, LiveRunCommand,
        LiveStatusArgs, LiveStopArgs,
    },
    self::open_console::ConsoleArgs,
    self::order::{
        AttachArgs, ConfirmArgs, EngineFolderArgs, Lasting, OrderCancelAllArgs, OrderCancelArgs,
        OrderCommand, OrderListArgs, OrderModifyArgs, OrderPasswordArgs, OrderSettleArgs,
        OrderSubmitArgs, WhichArgs,
    },
    self::replay::{
        CompareArgs, CompareLiveArgs, Granularity, JournalArgs, MergeArgs, NarrativeArgs,
        ReplayCommand, ReportArgs, RunArgs, SweepArgs, VerifyArgs,
    },
    self::sim::{SimCommand, TaxAccount, Traded, WebBrokerArgs},
    self::sim_local_broker::{FeedArgs, LocalBrokerArgs},
    self::sim_market::MarketArgs,
    self::strategy::{
        StrategyCheckArgs, StrategyCommand, StrategyCompileArgs, StrategyLimitsArgs,
        StrategyListArgs,
    },
    self::watch::{WATCH_TICKERS_MAX, WatchArgs},
    database::{DatabaseCommand, ListingsCommand},
};
#[cfg(feature = "database")]
pub(crate) use {
    self::update::{BoardsArgs, UpdateArgs, first_day},
    listings::{CalendarArgs, Every, InstrumentsArgs, VendorArgs, address},
    rank::{FormulasArgs, PublishArgs, QueryArgs, RankCommand, RegistryArgs, RowFormat},
    rank_serve::{ServeArgs, settings_markdown},
    sql::{SqlArgs, SqlFormat},
};

const START: &str = "\
Examples:
  kumiki data sample --out data --instrument 7203.TSE
  kumiki replay run sma-cross --data data --instrument 7203.TSE --out runs/first

`kumiki COMMAND --help` shows the help of a command, `kumiki help COMMAND` all of it.";

const MORE: &str = "\
Start:
  kumiki data sample --out data --instrument 7203.TSE
  kumiki replay run sma-cross --data data --instrument 7203.TSE --out runs/first
      a month of made-up trades, and a strategy over it; open runs/first/report.html
  kumiki data sample --daily --prices prices
  kumiki rank serve --prices prices
      made-up daily prices, and a page with rankings of them

Exit codes:
  0    done
  1    an error
  2    wrong arguments
  3    the strategy failed, or data update: due days are incomplete, run it again later
  4    replay verify, journal, compare-live: something else came out; replay sweep: a run saw
       the future
  5    the data, journal or strategy of a verified run changed
  6    data update: a business day is missing between published ones
  8    live run, live stop: the run is over, and orders of it still work at the broker
  10 to 22  serve: it did not start, see kumiki help serve
  130  interrupted";

/// Columns of a line of help, wherever it is shown.
const HELP_COLUMNS_MAX: usize = 96;

/// Kumiki: a trading engine for the Tokyo market with sandboxed strategies.
#[derive(Debug, Parser)]
#[command(
    name = "kumiki", version, max_term_width = HELP_COLUMNS_MAX, arg_required_else_help = true,
    disable_help_flag = true, after_help = START, after_long_help = MORE
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
    /// Make, check, fetch and publish market data.
    #[command(subcommand)]
    Data(DataCommand),
    /// Check and list strategies.
    #[command(subcommand)]
    Strategy(StrategyCommand),
    #[command(flatten)]
    Database(DatabaseCommand),
    #[command(flatten)]
    Live(LiveCommand),
    /// Print the completions of a shell.
    Completions(CompletionsArgs),
    /// Print the manual page, or write the pages of all commands.
    Man(ManArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write a page for each command into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// For scripts: one JSON object.
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct FolderArgs {
    /// Folder of decoded data and compiled strategies.
    #[arg(
        long,
        alias = "cache",
        value_name = "DIR",
        env = "KUMIKI_CACHE",
        help_heading = "Limits and folders"
    )]
    pub(crate) cache_dir: Option<PathBuf>,

    /// Folder of the built-in strategies.
    #[arg(
        long,
        value_name = "DIR",
        env = "KUMIKI_STRATEGIES",
        help_heading = "Limits and folders"
    )]
    pub(crate) strategies: Option<PathBuf>,
}

/// What guests may use and cause.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LimitArgs {
    /// Limits of guests, like memory=128MiB,log=8MiB.
    ///
    /// Guests are strategies and formula modules. May be given many times. `kumiki strategy limits` lists
    /// all limits.
    #[arg(
        long = "guest-limit",
        value_name = "NAME=VALUE",
        value_delimiter = ',',
        help_heading = "Limits and folders"
    )]
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

    /// Write the generated pages of docs/reference into this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) write_pages: Option<PathBuf>,

    /// Compare these pages in this folder with what would be written; fails when they differ.
    #[arg(long, value_name = "DIR")]
    pub(crate) check_pages: Option<PathBuf>,
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
    end(&asked_for(words::current(env::args_os())).error(ErrorKind::ValueValidation, problem))
}

/// The command that arguments ask for, whose usage is shown beside what is wrong; the program's own where they
/// cannot be read.
fn asked_for(arguments: Vec<OsString>) -> clap::Command {
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
pub(crate) fn command() -> clap::Command {
    // A variable of the log that is empty is one that is not set.
    let is_empty = |name: &OsStr| env::var_os(name).is_some_and(|value| value.is_empty());
    let command = Cli::command().mut_args(|argument| match argument.get_env() {
        Some(name) if is_empty(name) => argument.env(None::<&'static str>),
        _ => argument,
    });
    examples::add(command)
}

/// Reads words of a command line, in which commands may have earlier names. Those of the file of `rank serve
/// --config` come in where the words do not say the same.
fn read(command: &mut clap::Command, words: Vec<OsString>) -> Result<Cli, clap::Error> {
    let words = words::current(words);
    let matches = command.try_get_matches_from_mut(&words)?;
    let cli = Cli::from_arg_matches(&matches)?;
    #[cfg(feature = "database")]
    if let Some(words) = rank_serve::with_settings(&cli, &matches, words) {
        let matches = command.try_get_matches_from_mut(words)?;
        return Cli::from_arg_matches(&matches);
    }
    Ok(cli)
}

/// The arguments of this process. Wrong ones end it, and so do wishes for help.
pub(crate) fn parse() -> Cli {
    let words: Vec<OsString> = env::args_os().collect();
    standard_error::set_json(words::asks_for_json(&words));
    let mut command = command().color(words::color(&words));
    let cli = read(&mut command, words);
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
