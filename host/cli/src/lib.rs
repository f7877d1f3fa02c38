//! The kumiki command line: arguments in, one command, an exit code out.
//!
//! Exit codes: 0 done, 1 an error, 2 wrong arguments, 3 the strategy failed, 130 interrupted.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line prints; results to standard output, all else to standard error"
)]

mod args;
mod data;
mod interrupt;
mod paths;
mod progress;
mod rank;
mod replay_run;
mod schemas;
mod sql;
mod strategy;
mod table;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command, DataCommand, ReplayCommand, StrategyCommand};

/// The strategy failed; what it did before is in the results.
const STRATEGY_FAILED: u8 = 3;
/// The user stopped it.
const INTERRUPTED: u8 = 130;

/// How a command ended, other than by an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Done,
    Problems,
    StrategyFailed,
    Interrupted,
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let ended = match cli.command {
        Command::Replay(ReplayCommand::Run(run)) => replay_run::run(&run),
        Command::Data(DataCommand::Sample(sample)) => data::sample(&sample),
        Command::Data(DataCommand::Check(check)) => data::check(&check),
        Command::Data(DataCommand::Info(info)) => data::info(&info),
        Command::Rank(rank) => rank::run(&rank),
        Command::Sql(sql) => sql::run(&sql),
        Command::Strategy(StrategyCommand::List(list)) => strategy::list(&list),
        Command::Strategy(StrategyCommand::Check(check)) => strategy::check(&check),
        Command::Schemas(schemas) => schemas::run(&schemas),
    };
    match ended {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::Problems) => ExitCode::FAILURE,
        Ok(Ending::StrategyFailed) => ExitCode::from(STRATEGY_FAILED),
        Ok(Ending::Interrupted) => ExitCode::from(INTERRUPTED),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
