//! The commands that stand on DuckDB.

use clap::Subcommand;

use super::SchemasArgs;
use super::listings::{CALENDAR_HELP, CalendarArgs, INSTRUMENTS_EXAMPLES, InstrumentsArgs};
use super::rank::{RankArgs, SqlArgs};
use super::update::UpdateArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum DatabaseCommand {
    /// Rank issues by a formula, day by day; `rank serve` answers over GraphQL.
    Rank(Box<RankArgs>),
    /// Ask with SQL; everything that is stored, read-only.
    Sql(SqlArgs),
    /// Fetch daily prices and publish them: the combined database, a file of each issue, rankings.
    Update(Box<UpdateArgs>),
    /// Write or check the schemas of the files that kumiki writes.
    #[command(hide = true)]
    Schemas(SchemasArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ListingsCommand {
    /// Fetch the vendor's lists of issues and make instruments.csv: lot and tick table by date.
    #[command(after_help = INSTRUMENTS_EXAMPLES)]
    Instruments(InstrumentsArgs),
    /// Fetch the exchange's calendar: which days are open.
    #[command(after_help = CALENDAR_HELP)]
    Calendar(CalendarArgs),
}
