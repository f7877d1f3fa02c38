//! Arguments of `kumiki strategy`.

use clap::{Args, Subcommand};

use super::{FolderArgs, Format, LimitArgs, parse_param};

#[derive(Debug, Subcommand)]
pub(crate) enum StrategyCommand {
    /// Check a strategy: what it is, what it imports, whether it starts.
    Check(StrategyCheckArgs),
    /// List the built-in strategies.
    List(StrategyListArgs),
    /// List the limits of strategies and formula modules.
    Limits(StrategyLimitsArgs),
    /// Compile the built-in strategies ahead, for this program and this machine's processor.
    ///
    /// Part of an installation: runs then compile nothing, whatever the cache holds. The code goes into the
    /// folder of the strategies beside the program. It replaces what this command compiled before; other
    /// files stay.
    #[command(hide = true)]
    Compile(StrategyCompileArgs),
}

#[derive(Debug, Args)]
pub(crate) struct StrategyListArgs {
    #[command(flatten)]
    pub(crate) folders: FolderArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StrategyCompileArgs {
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StrategyLimitsArgs {
    /// Form of the list.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct StrategyCheckArgs {
    /// A built-in strategy (`kumiki strategy list`) or a .wasm file.
    #[arg(value_name = "STRATEGY")]
    pub(crate) strategy: String,

    /// A parameter of the strategy; may be given many times.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_param)]
    pub(crate) params: Vec<(String, serde_json::Value)>,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// Form of the report.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) folders: FolderArgs,
}
