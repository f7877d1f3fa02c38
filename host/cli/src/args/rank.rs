//! Arguments of `kumiki rank`, but for those of the service.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use domain::JstDate;
use ranking::{FORMULA_DEFAULT, Formula, RankOrder, limits};

use super::rank_serve::{SERVE_HELP, ServeArgs};
use super::{Format, LimitArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum RankCommand {
    /// Rank issues by a formula, day by day.
    #[command(after_long_help = QUERY_HELP)]
    Query(Box<QueryArgs>),
    /// Serve rankings: a page, GraphQL and the stored files.
    #[command(after_long_help = SERVE_HELP)]
    Serve(Box<ServeArgs>),
    /// Make the snapshot that rankings read.
    ///
    /// For prices that another program put into the combined database; `kumiki data update` makes the
    /// snapshot by itself.
    Publish(PublishArgs),
    /// List the formula modules, or add one.
    #[command(after_long_help = FORMULAS_HELP)]
    Formulas(FormulasArgs),
}

const QUERY_HELP: &str = "\
Examples:
  kumiki data sample --daily --prices data
  kumiki rank query --prices data
  kumiki rank query --prices data --from 2024-01-04 --to 2024-01-31 --sort-by 'Close * Volume' \\
      --limit 5
  kumiki rank query --prices data --from 2020-01-01 --sort-by 'Close / Close[-250]' \\
      --out year.parquet
  kumiki rank query --prices data --codes 1301,7203 --order asc --format jsonl
  kumiki rank query --prices data --sort-by 'Volume / Volume[-1]' --explain
  kumiki rank query --prices data --sort-by 'Close / Close[-250]' --adjusted
  kumiki rank formulas --prices data --add risk-adjusted-momentum.wasm
  kumiki rank query --prices data --formula risk-adjusted-momentum --param lookback=20
  kumiki rank serve --prices data

A formula has the columns Close Open High Low Volume, lags like Close[-5] (5 business days \
before), + - * / ( ) and numbers. 0 and missing values count as null; null comes last.

Prices are raw. A value whose lag reaches across a split compares prices from before and after the \
split, and is marked (spansSplit). --adjusted multiplies earlier prices by the factors of the splits since, and \
divides earlier volumes by them. If one of those splits may be missing from the data, there is no value.";

#[derive(Debug, Args)]
pub(crate) struct QueryArgs {
    /// First day; default: the last day.
    #[arg(long, value_name = "YYYY-MM-DD", help_heading = "Question")]
    pub(crate) from: Option<JstDate>,

    /// Last day, included; default: the last of the data.
    #[arg(long, value_name = "YYYY-MM-DD", help_heading = "Question")]
    pub(crate) to: Option<JstDate>,

    /// Formula to sort by.
    #[arg(
        long, value_name = "FORMULA", default_value = FORMULA_DEFAULT, value_parser = parse_formula,
        allow_hyphen_values = true, help_heading = "Question"
    )]
    pub(crate) sort_by: Formula,

    /// Formula module to sort by (`kumiki rank formulas`).
    #[arg(long, value_name = "NAME", conflicts_with = "sort_by", help_heading = "Question")]
    pub(crate) formula: Option<String>,

    /// A parameter of the module; may be given many times.
    #[arg(
        long = "param", value_name = "NAME=VALUE", requires = "formula", value_parser = parse_param,
        allow_hyphen_values = true, help_heading = "Question"
    )]
    pub(crate) params: Vec<(String, f64)>,

    /// desc (largest first) or asc (smallest first).
    #[arg(
        long, value_name = "ORDER", default_value = "desc", value_parser = parse_order,
        help_heading = "Question"
    )]
    pub(crate) order: RankOrder,

    /// Rows of each day, 1 to 500.
    #[arg(
        long, value_name = "N", default_value_t = limits::LIMIT_DEFAULT, value_parser = parse_limit,
        help_heading = "Question"
    )]
    pub(crate) limit: u32,

    /// Adjust earlier values for splits.
    ///
    /// A lag across a split then compares like with like. Without this, prices are raw and such rows are
    /// marked.
    #[arg(long, help_heading = "Question")]
    pub(crate) adjusted: bool,

    /// Rank only these issues, like 1301,7203.
    #[arg(long, value_name = "CODE", value_delimiter = ',', help_heading = "Question")]
    pub(crate) codes: Vec<String>,

    /// Form of the rows; default: by the ending of --out.
    #[arg(long, value_enum)]
    pub(crate) format: Option<RowFormat>,

    /// Write the rows to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Show how the answer is made.
    ///
    /// Of a formula: the tree, the SQL, the plan and times. Of a module: inputs, parameters, hash and time.
    #[arg(long, conflicts_with_all = ["format", "out"])]
    pub(crate) explain: bool,

    /// Threads that rank; default: one for each core.
    #[arg(long, alias = "threads", value_name = "N")]
    pub(crate) jobs: Option<usize>,

    /// Longest time of the query.
    #[arg(hide_short_help = true,
        long, value_name = "DURATION", default_value = "60s",
        value_parser = humantime::parse_duration
    )]
    pub(crate) timeout: Duration,

    #[command(flatten)]
    pub(crate) data: DataArgs,

    #[command(flatten)]
    pub(crate) registry: RegistryArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

fn parse_limit(text: &str) -> Result<u32, String> {
    let rows = text.parse().ok().filter(|rows| (1..=limits::LIMIT_MAX).contains(rows));
    rows.ok_or_else(|| {
        let instead =
            if text.contains('=') { "; --guest-limit takes limits of the module" } else { "" };
        format!("`{text}` is no number of rows from 1 to {}{instead}", limits::LIMIT_MAX)
    })
}

/// Where formula modules are.
#[derive(Debug, Args)]
pub(crate) struct RegistryArgs {
    /// Folder of formula modules.
    ///
    /// Default: formulas in the folder of the prices.
    #[arg(long, value_name = "DIR", env = "KUMIKI_FORMULAS", help_heading = "Limits and folders")]
    pub(crate) formulas: Option<PathBuf>,

    /// Folder of compiled modules.
    #[arg(
        hide_short_help = true,
        long,
        alias = "cache",
        value_name = "DIR",
        env = "KUMIKI_CACHE",
        help_heading = "Limits and folders"
    )]
    pub(crate) cache_dir: Option<PathBuf>,
}

const FORMULAS_HELP: &str = "\
Examples:
  kumiki rank formulas --prices data --add target/release/formulas/limit-distance.wasm
  kumiki rank formulas --prices data
  kumiki rank formulas --prices data --format json

Rankings load only modules that formulas.toml of the folder lists with their SHA-256. --add copies a file \
into the folder and lists it under the name that the module gives itself.";

#[derive(Debug, Args)]
pub(crate) struct FormulasArgs {
    /// Copy this component into the folder and list it.
    #[arg(long, value_name = "FILE")]
    pub(crate) add: Option<PathBuf>,

    /// Form of the list.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) data: DataArgs,

    #[command(flatten)]
    pub(crate) registry: RegistryArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    /// Folder with the daily prices.
    ///
    /// It has jp/stocks_daily/mother.db and what is made of it.
    #[arg(
        long, alias = "data-dir", value_name = "DIR", env = "DATA_DIR", default_value = "data",
        value_parser = super::parse_data_dir
    )]
    pub(crate) prices: PathBuf,
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowFormat {
    /// For people.
    Table,
    /// Comma-separated values with a header; null is empty.
    Csv,
    /// One JSON list.
    Json,
    /// One JSON object a line, with the field names of GraphQL.
    Jsonl,
    /// A Parquet file (needs --out).
    Parquet,
    /// An Arrow stream.
    Arrow,
}

#[derive(Debug, Args)]
pub(crate) struct PublishArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// Shows where a formula is wrong.
fn parse_formula(text: &str) -> Result<Formula, String> {
    Formula::parse(text).map_err(|error| {
        // Tabs and line ends would move the mark away from its place.
        let line: String = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
        let mark = " ".repeat(error.position.saturating_sub(1));
        format!("{}\n\n  {line}\n  {mark}^", error.message)
    })
}

/// `name=value`, with a number as value.
fn parse_param(text: &str) -> Result<(String, f64), String> {
    let (name, value) =
        text.split_once('=').ok_or_else(|| format!("`{text}` is not NAME=VALUE"))?;
    let number = value.parse::<f64>().ok().filter(|number| number.is_finite());
    number
        .map(|number| (name.to_owned(), number))
        .ok_or_else(|| format!("`{value}` is not a number"))
}

fn parse_order(text: &str) -> Result<RankOrder, String> {
    text.parse().map_err(|error: ranking::RankError| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_formula_is_pointed_at() {
        let message = parse_formula("Close\t+ ; 2").unwrap_err();
        assert!(message.ends_with("\n\n  Close + ; 2\n          ^"), "{message}");
        assert!(parse_formula("-Close").is_ok());
    }

    #[test]
    fn parameters_are_names_and_numbers() {
        assert_eq!(parse_param("a=-1.5"), Ok(("a".to_owned(), -1.5)));
        assert_eq!(parse_param("a=b"), Err("`b` is not a number".to_owned()));
        assert_eq!(parse_param("a=inf"), Err("`inf` is not a number".to_owned()));
        assert_eq!(parse_param("a"), Err("`a` is not NAME=VALUE".to_owned()));
    }

    #[test]
    fn orders_are_words() {
        assert_eq!(parse_order("asc"), Ok(RankOrder::Asc));
        assert!(parse_order("up").unwrap_err().contains("use desc or asc"));
    }
}
