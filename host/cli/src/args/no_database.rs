//! The commands of `database.rs` in a program without DuckDB: they are known, so that each can say
//! what is missing.

use clap::Subcommand;

use super::AnyArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum DatabaseCommand {
    /// Not in this program, which was built without its database: rank issues by a formula.
    #[command(disable_help_flag = true)]
    Rank(AnyArgs),
    /// Not in this program, which was built without its database: ask with SQL.
    #[command(disable_help_flag = true)]
    Sql(AnyArgs),
    /// Not in this program, which was built without its database: fetch daily prices.
    #[command(disable_help_flag = true)]
    Update(AnyArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ListingsCommand {
    /// Not in this program, which was built without its database: fetch the vendor's lists of issues.
    #[command(disable_help_flag = true)]
    Instruments(AnyArgs),
    /// Not in this program, which was built without its database: fetch the exchange's calendar.
    #[command(disable_help_flag = true)]
    Calendar(AnyArgs),
}
