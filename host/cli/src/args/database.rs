//! The commands that stand on DuckDB.

use clap::Subcommand;

use super::SchemasArgs;
use super::listings::{CALENDAR_HELP, CalendarArgs, INSTRUMENTS_HELP, InstrumentsArgs};
use super::rank::RankCommand;
use super::sql::{SQL_HELP, SqlArgs};
use super::update::{BOARDS_HELP, BoardsArgs, UPDATE_HELP, UpdateArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum DatabaseCommand {
    /// Rank issues by a formula.
    #[command(subcommand)]
    Rank(RankCommand),
    /// Ask all stored data with SQL, read-only.
    #[command(after_long_help = SQL_HELP)]
    Sql(SqlArgs),
    /// Write or check the schemas of the files that kumiki writes.
    #[command(hide = true)]
    Schemas(SchemasArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ListingsCommand {
    /// Fetch the lists of issues and make instruments.csv.
    ///
    /// The table has lot and tick table of each issue by date.
    #[command(after_long_help = INSTRUMENTS_HELP)]
    Instruments(InstrumentsArgs),
    /// Fetch the exchange's calendar of open days.
    #[command(after_long_help = CALENDAR_HELP)]
    Calendar(CalendarArgs),
    /// Fetch daily prices and publish them.
    ///
    /// The job publishes the combined database, a file of each issue, and the snapshot of rankings.
    #[command(after_long_help = UPDATE_HELP)]
    Update(Box<UpdateArgs>),
    /// Publish boards and trades that an engine recorded.
    ///
    /// Each issue gets a database of its own.
    #[command(after_long_help = BOARDS_HELP)]
    Boards(BoardsArgs),
}
