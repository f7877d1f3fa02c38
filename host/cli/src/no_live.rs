//! The commands of `live.rs` in a program that was built for replays alone: each says so, and how to get it.

use anyhow::{Result, bail};

use crate::Ending;
use crate::args::LiveCommand;
use crate::logging::LogDefault;

/// What a command logs when nobody says otherwise.
pub(crate) const fn default_log(_: &LiveCommand) -> LogDefault {
    LogDefault::Command
}

/// Says that a command is not here.
pub(crate) fn run(command: &LiveCommand) -> Result<Ending> {
    let command = match command {
        LiveCommand::Serve(_) => "kumiki serve",
        LiveCommand::Order(_) => "kumiki order",
        LiveCommand::Watch(_) => "kumiki watch",
        LiveCommand::Sim(_) => "kumiki sim",
        LiveCommand::Key(_) => "kumiki key",
    };
    bail!(
        "`{command}` is not in this program: it was built for replays alone, as `cargo xtask demo` does at \
         first. `cargo build --release -p cli --no-default-features --features live` adds the engine, which \
         trades live and is driven by programs, in some minutes; `cargo build --release -p cli` builds all of \
         it, whose DuckDB takes about an hour on two cores, once"
    )
}

/// No engine starts here.
pub(crate) const fn exit_code(_: &anyhow::Error) -> Option<u8> {
    None
}
