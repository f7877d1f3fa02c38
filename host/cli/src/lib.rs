//! The kumiki command line: arguments in, one command, an exit code out.
//!
//! Exit codes: 0 done, 1 an error, 2 wrong arguments, 3 the strategy failed, daily prices are not
//! complete or an order needs the second password, 4 a run did not come out the same with window 1 or it is
//! not known what became of an order, 5 what a run was made from has changed,
//! 6 daily prices have a gap, 8 a run with real orders is over and orders of it still work, 10 to 22 the engine did not start, 130 interrupted.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line prints; results to standard output, all else to standard error"
)]
#![cfg_attr(
    not(feature = "database"),
    allow(
        dead_code,
        reason = "some of what commands share is asked for by those of the database or of live trading alone"
    )
)]

// First, because its macros stand in for those of the standard library in all modules after it.
#[macro_use]
mod output;

mod args;
mod completions;
mod configuration;
mod data;
mod data_check;
mod data_info;
#[cfg(feature = "database")]
mod data_info_prices;
#[cfg(feature = "database")]
mod data_listings;
#[cfg(feature = "database")]
mod database;
#[cfg(not(feature = "database"))]
#[path = "no_database.rs"]
mod database;
mod dialects;
mod engine_serve;
mod execution;
mod hidden;
mod interrupt;
mod key;
mod live;
mod live_run;
mod local_broker;
mod logging;
mod open_console;
mod order;
#[cfg(feature = "database")]
mod pages;
mod paths;
mod progress;
#[cfg(feature = "database")]
mod rank;
mod replay_compare_live;
mod replay_journal;
mod replay_results;
mod replay_run;
mod replay_sweep;
mod replay_sweep_merge;
mod replay_verify;
mod running_engine;
#[cfg(feature = "database")]
mod schemas;
mod settings;
mod sim;
mod sim_local_broker;
mod sim_market;
mod sim_web_broker;
#[cfg(feature = "database")]
mod sql;
mod standard_error;
mod strategy;
mod strategy_compile;
mod sweep_report;
mod table;
mod terminal;
#[cfg(feature = "database")]
mod update;
mod watch;
mod web_broker;

use std::fmt;
use std::process::ExitCode;

use domain::fault::Fault;
use domain::guest_limit::LimitError;
use replay::instruments::InstrumentsError;
use replay::{OptionsError, RequestError};

use args::{Command, DataCommand, ReplayCommand, StrategyCommand};
use logging::LogDefault;

/// The strategy failed; what it did before is in the results.
const STRATEGY_FAILED: u8 = 3;
/// The daily job could not fetch everything; a scheduler tries again.
const INCOMPLETE: u8 = 3;
/// From the same data and strategy something else came out: the strategy saw the future, or a file of the
/// run, the manifest's own words too, is not what was written.
const DIFFERENT: u8 = 4;
/// Data, tables of their folder or the strategy are not those whose hashes the manifest has, or a journal is
/// damaged; nothing was run to its end.
const INPUTS_CHANGED: u8 = 5;
/// A business day is missing between days that are published.
const GAP: u8 = 6;
/// The engine is busy; nothing was sent.
const BUSY: u8 = 2;
/// The second password is needed, and there is no terminal to ask at.
const NEEDS_PASSWORD: u8 = 3;
/// A command about an order was sent, and it is not known what became of it.
const UNKNOWN: u8 = 4;
/// A run is over, and real orders of it still work or are unknown at the broker.
const ORDERS_WORKING: u8 = 8;
/// The user stopped it.
const INTERRUPTED: u8 = 130;

/// How a command ended, other than by an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Done,
    Problems,
    StrategyFailed,
    Incomplete,
    Different,
    InputsChanged,
    Gap,
    Busy,
    NeedsPassword,
    Unknown,
    OrdersWorking,
    Interrupted,
}

/// An error with its causes, leaving out a cause that the text before it tells already.
fn told_once(error: &anyhow::Error) -> String {
    domain::text::with_causes(error.as_ref())
}

/// Whether an error is a fault of the strategy itself: one that could not be compiled within its limits.
fn is_strategys_own(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.is::<Box<Fault>>() || cause.is::<Fault>())
}

/// Arguments that are right one by one and cannot be meant together.
#[derive(Debug)]
struct WrongArguments(String);

impl fmt::Display for WrongArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongArguments {}

/// An error that ends the program as wrong arguments do.
fn wrong_arguments(text: impl Into<String>) -> anyhow::Error {
    WrongArguments(text.into()).into()
}

/// Whether an error is of the command line alone: it asks for what cannot be, whatever the data say.
fn is_wrong_arguments(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let instruments = cause.downcast_ref::<InstrumentsError>();
        cause.is::<LimitError>()
            || cause.is::<OptionsError>()
            || cause.is::<WrongArguments>()
            || database::is_wrong_arguments(cause)
            || instruments.is_some_and(InstrumentsError::is_wrong_arguments)
            || cause.downcast_ref::<RequestError>().is_some_and(RequestError::is_wrong_arguments)
    })
}

/// What a command logs when nobody says otherwise.
fn default_log(command: &Command) -> LogDefault {
    match command {
        Command::Database(command) => database::default_log(command),
        Command::Data(DataCommand::Listings(command)) => database::listings_log(command),
        Command::Live(command) => live::default_log(command),
        _ => LogDefault::Command,
    }
}

fn run(command: &Command) -> anyhow::Result<Ending> {
    match command {
        Command::Replay(ReplayCommand::Run(run)) => replay_run::run(run),
        Command::Replay(ReplayCommand::Report(report)) => replay_results::report(report),
        Command::Replay(ReplayCommand::Compare(compare)) => replay_results::compare(compare),
        Command::Replay(ReplayCommand::Narrative(narrative)) => {
            replay_results::narrative(narrative)
        }
        Command::Replay(ReplayCommand::Sweep(sweep)) => replay_sweep::run(sweep),
        Command::Replay(ReplayCommand::Merge(merge)) => replay_sweep_merge::run(merge),
        Command::Replay(ReplayCommand::Verify(verify)) => replay_verify::run(verify),
        Command::Replay(ReplayCommand::Journal(journal)) => replay_journal::run(journal),
        Command::Replay(ReplayCommand::CompareLive(compare)) => replay_compare_live::run(compare),
        Command::Live(command) => live::run(command),
        Command::Data(DataCommand::Sample(sample)) => data::sample(sample),
        Command::Data(DataCommand::Check(check)) => data_check::run(check),
        Command::Data(DataCommand::Convert(convert)) => data::convert(convert),
        Command::Data(DataCommand::Info(info)) => data_info::run(info),
        Command::Data(DataCommand::Listings(command)) => database::listings(command),
        Command::Database(command) => database::run(command),
        Command::Completions(completions) => completions::completions(completions),
        Command::Man(man) => completions::man(man),
        Command::Strategy(StrategyCommand::List(list)) => strategy::list(list),
        Command::Strategy(StrategyCommand::Check(check)) => strategy::check(check),
        Command::Strategy(StrategyCommand::Compile(args)) => strategy_compile::run(args),
        Command::Strategy(StrategyCommand::Limits(limits)) => strategy::limits(limits),
    }
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let cli = args::parse();
    let started = cli.log.start(default_log(&cli.command));
    #[cfg(unix)]
    let started = started.and_then(|()| interrupt::survive_full_files());
    let ended = started.and_then(|()| run(&cli.command));
    let printed = output::finish();
    let code = match ended {
        Ok(Ending::Done) if !printed => ExitCode::FAILURE,
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::Problems) => ExitCode::FAILURE,
        Ok(Ending::StrategyFailed) => ExitCode::from(STRATEGY_FAILED),
        Ok(Ending::Incomplete) => ExitCode::from(INCOMPLETE),
        Ok(Ending::Different) => ExitCode::from(DIFFERENT),
        Ok(Ending::InputsChanged) => ExitCode::from(INPUTS_CHANGED),
        Ok(Ending::Gap) => ExitCode::from(GAP),
        Ok(Ending::Busy) => ExitCode::from(BUSY),
        Ok(Ending::NeedsPassword) => ExitCode::from(NEEDS_PASSWORD),
        Ok(Ending::Unknown) => ExitCode::from(UNKNOWN),
        Ok(Ending::OrdersWorking) => ExitCode::from(ORDERS_WORKING),
        Ok(Ending::Interrupted) => ExitCode::from(INTERRUPTED),
        Err(error) if is_wrong_arguments(&error) => args::refuse(&told_once(&error)),
        Err(error) => {
            output::failure(&told_once(&error));
            match live::exit_code(&error) {
                Some(code) => ExitCode::from(code),
                None if is_strategys_own(&error) => ExitCode::from(STRATEGY_FAILED),
                None => ExitCode::FAILURE,
            }
        }
    };
    standard_error::drain();
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let told = |top: &'static str| told_once(&anyhow::anyhow!("no such file").context(top));
        assert_eq!(told("cannot read data"), "cannot read data: no such file");
        assert_eq!(told("cannot read data: no such file"), "cannot read data: no such file");
    }
}
