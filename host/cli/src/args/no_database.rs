//! The commands of `database.rs` in a program without DuckDB: they are known, so that each can say
//! what is missing.

use clap::Subcommand;

use super::AnyArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum DatabaseCommand {
    /// Not in this program (built without its database): rank issues by a formula.
    Rank(AnyArgs),
    /// Not in this program (built without its database): ask with SQL.
    Sql(AnyArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ListingsCommand {
    /// Not in this program (built without its database): fetch the lists of issues.
    Instruments(AnyArgs),
    /// Not in this program (built without its database): fetch the exchange's calendar.
    Calendar(AnyArgs),
    /// Not in this program (built without its database): fetch daily prices.
    Update(AnyArgs),
    /// Not in this program (built without its database): publish recorded boards.
    Boards(AnyArgs),
}
