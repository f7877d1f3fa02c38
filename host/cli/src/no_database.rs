//! The commands of `database.rs` in a program that was built without DuckDB: each says so, and how to
//! get it.

use std::error::Error;
use std::path::Path;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::Ending;
use crate::args::{DatabaseCommand, ListingsCommand, SampleArgs};
use crate::logging::LogDefault;

/// What a command logs when nobody says otherwise.
pub(crate) const fn default_log(_: &DatabaseCommand) -> LogDefault {
    LogDefault::Command
}

/// What a command of `kumiki data` logs when nobody says otherwise.
pub(crate) const fn listings_log(_: &ListingsCommand) -> LogDefault {
    LogDefault::Command
}

/// Whether an error of these commands is of the command line alone: here they are refused as they are.
pub(crate) fn is_wrong_arguments(_: &(dyn Error + 'static)) -> bool {
    false
}

/// The keys that these commands would look for: none.
pub(crate) fn keys() -> impl Iterator<Item = keys::Key> {
    std::iter::empty()
}

/// Says that a command is not here.
pub(crate) fn run(command: &DatabaseCommand) -> Result<Ending> {
    absent(match command {
        DatabaseCommand::Rank(_) => "kumiki rank",
        DatabaseCommand::Sql(_) => "kumiki sql",
    })
}

/// Says that a command is not here.
pub(crate) fn listings(command: &ListingsCommand) -> Result<Ending> {
    absent(match command {
        ListingsCommand::Instruments(_) => "kumiki data instruments",
        ListingsCommand::Calendar(_) => "kumiki data calendar",
        ListingsCommand::Update(_) => "kumiki data update",
        ListingsCommand::Boards(_) => "kumiki data boards",
    })
}

/// Says that daily prices cannot be made here.
pub(crate) fn sample(_: &SampleArgs) -> Result<Ending> {
    absent("kumiki data sample --daily")
}

fn absent(command: &str) -> Result<Ending> {
    bail!(
        "`{command}` is not in this program, which was built without its database, as by `cargo xtask demo`. \
         `cargo xtask setup` and then `cargo build --release -p cli` build the whole program, in minutes"
    )
}

/// What a folder holds for rankings and `kumiki sql`: this program does not look.
pub(crate) struct Prices;

impl Prices {
    pub(crate) fn of(_: &Path) -> Result<Self> {
        Ok(Self)
    }

    pub(crate) fn print(&self) {
        println!("\ndaily prices: unknown, because this program was built without its database");
    }

    pub(crate) fn snapshot_json(&self) -> Value {
        Value::Null
    }

    /// `null`, where the whole program has a list: it is not known what is there.
    pub(crate) fn views_json(&self) -> Value {
        Value::Null
    }
}
