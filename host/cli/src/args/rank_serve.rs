//! Arguments of `kumiki rank serve`, and its settings: what a service is tuned with stands in the table `[rank]` of
//! the file of `--config`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args};
use ranking::limits;
use toml::Value;

use super::rank::{DataArgs, RankCommand, RegistryArgs};
use super::{Cli, Command, DatabaseCommand, LimitArgs, refuse};
use crate::configuration::read_table;

/// The table of the file.
const SECTION: &str = "rank";

pub(super) const SERVE_HELP: &str = "\
Examples:
  kumiki rank serve --prices data
  kumiki rank serve --prices data --listen 127.0.0.1:0 --graphiql
  kumiki rank serve --prices data --listen 0.0.0.0:8080 --token-file token.txt
  kumiki rank serve --prices copy --listen 127.0.0.1:8081 --follow http://127.0.0.1:8080
      a replica: copies what the other server publishes, and answers from that

Paths: / the ranking page, /graphql (POST, or GET with ?query=), /schema.graphql, /jp/<path> the \
stored files, /health, /metrics (Prometheus). Each request is a line of the log; --log warn \
leaves them out.

Stored files, for GET and HEAD, with ETag, Range and gzip, br or zstd when asked for:
  /jp/stocks_daily/mother.db     daily prices of all issues
  /jp/stocks_daily/<code>.db     daily prices of one issue, like 7203 or 130A
  /jp/stocks_board/<code>.db     board data of one issue
  /jp/listed_info.db             the listed issues
  /jp/generation.json            which of them belong together, with sizes and digests

A token may also come from the environment variable KUMIKI_RANK_TOKEN, and that of the followed server \
from KUMIKI_FOLLOW_TOKEN.

The table [rank] of the file of --config has limits, times and memory, like timeout = \"30s\". \
docs/reference/configuration.md lists them. Each is also an option, like --timeout 30s, which comes before the file.";

/// Where the service is and who may use it; below that, the settings, which only the file shows.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address and port; port 0 lets the system choose.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,

    #[command(flatten)]
    pub(crate) data: DataArgs,

    /// File of settings; its table [rank] tunes the service.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Threads that rank; default: one for each core.
    #[arg(long, alias = "threads", value_name = "N")]
    pub(crate) jobs: Option<usize>,

    /// Show a page for trying queries at GET /graphql.
    #[arg(long)]
    pub(crate) graphiql: bool,

    /// File with the bearer token that clients must send.
    #[arg(long, value_name = "FILE", help_heading = "Access")]
    pub(crate) token_file: Option<PathBuf>,

    /// Let web pages of this origin ask, like https://example.com.
    ///
    /// May be given many times (CORS).
    #[arg(
        long = "allow-origin",
        alias = "cors-origin",
        value_name = "ORIGIN",
        help_heading = "Access"
    )]
    pub(crate) allow_origins: Vec<String>,

    /// Answer under this host name too, as behind a proxy.
    ///
    /// May be given many times. A service at an address of this machine refuses other names than localhost,
    /// because any page's name can be made to point here. Give the name that a proxy hands on.
    #[arg(long, value_name = "NAME", help_heading = "Access")]
    pub(crate) allow_host: Vec<String>,

    /// Copy what this server publishes, and answer from the copy.
    ///
    /// The address has https, or http to this machine. The folder of --prices belongs to the copy.
    #[arg(
        long, value_name = "URL", value_parser = http_client::checked_address,
        help_heading = "Replica"
    )]
    pub(crate) follow: Option<http_client::Url>,

    /// File with the bearer token of the followed server.
    #[arg(long, value_name = "FILE", requires = "follow", help_heading = "Replica")]
    pub(crate) follow_token_file: Option<PathBuf>,

    /// Copy the databases of single issues too.
    #[arg(long, requires = "follow", help_heading = "Replica")]
    pub(crate) follow_issues: bool,

    #[command(flatten)]
    pub(crate) registry: RegistryArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    #[command(flatten)]
    pub(crate) settings: ServeSettings,
}

/// What the file sets.
#[derive(Debug, Args)]
pub(crate) struct ServeSettings {
    /// stored files sent at the same time; small ones have as many places of their own
    #[arg(long, hide = true, value_name = "N", default_value_t = 64)]
    pub(crate) max_downloads: usize,

    /// drop a client that takes nothing of its answer for so long
    #[arg(long, hide = true, value_name = "DURATION", default_value = "60s", value_parser = humantime::parse_duration)]
    pub(crate) send_timeout: Duration,

    /// time for a client to take a whole answer of GraphQL
    #[arg(long, hide = true, value_name = "DURATION", default_value = "10m", value_parser = humantime::parse_duration)]
    pub(crate) answer_timeout: Duration,

    /// megabytes for all answers of GraphQL; the rankings of one request take at most three quarters
    #[arg(long, hide = true, value_name = "MB", default_value_t = 512, value_parser = megabytes(1))]
    pub(crate) answer_memory: u64,

    /// business days that may be missing before /health says `behind`; data without an update job is never behind
    #[arg(long, hide = true, value_name = "DAYS", default_value_t = 0)]
    pub(crate) behind_days: usize,

    /// time between two looks at the followed server; longer after failures
    #[arg(long, hide = true, value_name = "DURATION", default_value = "5s", requires = "follow", value_parser = humantime::parse_duration)]
    pub(crate) follow_interval: Duration,

    /// megabytes of disk for the copy, and for the next one while it is fetched
    #[arg(long, hide = true, value_name = "MB", default_value_t = 20_480, requires = "follow", value_parser = megabytes(1))]
    pub(crate) follow_disk: u64,

    /// time without a copy after which /health says `stale`
    #[arg(long, hide = true, value_name = "DURATION", default_value = "10m", requires = "follow", value_parser = humantime::parse_duration)]
    pub(crate) follow_stale: Duration,

    /// time in which a download must bring 1 MiB; a slower one is given up, and goes on later
    #[arg(long, hide = true, value_name = "DURATION", default_value = "60s", requires = "follow", value_parser = humantime::parse_duration)]
    pub(crate) follow_patience: Duration,

    /// megabytes for the rows of rankings that are being made
    #[arg(long, hide = true, value_name = "MB", default_value_t = 1_024, value_parser = megabytes(1))]
    pub(crate) memory: u64,

    /// megabytes for answers that are kept; 0 keeps none
    #[arg(long, hide = true, value_name = "MB", default_value_t = 64, value_parser = megabytes(0))]
    pub(crate) cache_memory: u64,

    /// longest time of a request, waiting included
    #[arg(long, hide = true, value_name = "DURATION", default_value = "30s", value_parser = humantime::parse_duration)]
    pub(crate) timeout: Duration,

    /// large requests at the same time; those that need at most a 64th of answer_memory are small, and wait for no large one
    #[arg(long, hide = true, value_name = "N", default_value_t = 4)]
    pub(crate) concurrent: usize,

    /// requests that may wait; one more is answered BUSY
    #[arg(long, hide = true, value_name = "N", default_value_t = 512)]
    pub(crate) queue: usize,

    /// open connections; fewer if the system allows fewer open files
    #[arg(long, hide = true, value_name = "N", default_value_t = 1_024)]
    pub(crate) max_connections: usize,

    /// highest `limit` of a request
    #[arg(
        long, hide = true, value_name = "N", default_value_t = limits::LIMIT_MAX,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(limits::LIMIT_MAX))
    )]
    pub(crate) max_limit: u32,

    /// highest lag of a formula, in business days
    #[arg(
        long, hide = true, value_name = "N", default_value_t = limits::LAG_MAX,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(limits::LAG_MAX))
    )]
    pub(crate) max_lag: u32,

    /// longest range of a request, in years
    #[arg(
        long, hide = true, value_name = "N", default_value_t = limits::RANGE_YEARS_MAX,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(limits::RANGE_YEARS_MAX))
    )]
    pub(crate) max_years: u32,

    /// longest formula, in characters; at most 1000
    #[arg(long, hide = true, value_name = "N", default_value_t = limits::FORMULA_CHARS_MAX)]
    pub(crate) max_formula: usize,

    /// rankings in one request
    #[arg(long, hide = true, value_name = "N", default_value_t = 4)]
    pub(crate) max_aliases: usize,

    /// levels of a request
    #[arg(long, hide = true, value_name = "N", default_value_t = 20)]
    pub(crate) max_depth: usize,

    /// largest body of a request, in bytes
    #[arg(long, hide = true, value_name = "BYTES", default_value_t = 65_536)]
    pub(crate) max_body: usize,

    /// most rows of one ranking
    #[arg(long, hide = true, value_name = "N", default_value_t = 1_500_000)]
    pub(crate) max_rows: usize,
}

/// Megabytes, at least so many; more than a terabyte is a slip.
pub(super) fn megabytes(least: u64) -> RangedU64ValueParser<u64> {
    RangedU64ValueParser::new().range(least..=1_048_576)
}

/// The settings, as clap knows them.
fn settings() -> clap::Command {
    ServeSettings::augment_args(clap::Command::new(SECTION))
}

/// The words of the command line with those that the file of `--config` stands for; none without a file. A file
/// that is wrong ends the program as wrong arguments do.
pub(super) fn with_settings(
    cli: &Cli,
    matches: &ArgMatches,
    mut words: Vec<OsString>,
) -> Option<Vec<OsString>> {
    let Command::Database(DatabaseCommand::Rank(RankCommand::Serve(serve))) = &cli.command else {
        return None;
    };
    let path = serve.config.as_ref()?;
    let given = matches.subcommand()?.1.subcommand()?.1;
    let table = read_table(path).unwrap_or_else(|error| refuse(&crate::told_once(&error)));
    let Some(Value::Table(table)) = table.get(SECTION) else { return Some(words) };
    let known = settings();
    for (name, value) in table {
        let wrong =
            |why: &str| -> ! { refuse(&format!("{}: {SECTION}.{name} {why}", path.display())) };
        let Some(setting) = known.get_arguments().find(|setting| setting.get_id() == name.as_str())
        else {
            wrong("is no setting; docs/reference/configuration.md lists them")
        };
        let is_from_line = |source| source != ValueSource::DefaultValue;
        if given.value_source(name).is_some_and(is_from_line) {
            continue;
        }
        let flag = setting.get_long().unwrap_or_default();
        let value = match value {
            Value::Integer(number) => number.to_string(),
            Value::String(text) => text.clone(),
            other => wrong(&format!("is {other}; it takes a {}", kind(setting))),
        };
        words.push(format!("--{flag}={value}").into());
    }
    Some(words)
}

/// What a setting takes.
fn kind(setting: &Arg) -> &'static str {
    let of_duration =
        |names: &[clap::builder::Str]| names.iter().any(|name| name.as_str() == "DURATION");
    if setting.get_value_names().is_some_and(of_duration) { "text" } else { "whole number" }
}

/// The table of all settings, for people.
pub(crate) fn settings_markdown() -> String {
    let mut text = String::from(
        "\n## Settings of `kumiki rank serve`\n\nThe same file may have a table `[rank]`, which `kumiki rank serve --config kumiki.toml` \
         reads. Flags come before the file; `--help` does not show these flags.\n\n\
         | key | value | default | flag | meaning |\n|---|---|---|---|---|\n",
    );
    let known = settings();
    for setting in known.get_arguments().filter(|one| matches!(one.get_action(), ArgAction::Set)) {
        let default: Vec<_> =
            setting.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        text.push_str(&format!(
            "| `{SECTION}.{}` | {} | {} | `--{}` | {} |\n",
            setting.get_id(),
            kind(setting),
            default.concat(),
            setting.get_long().unwrap_or_default(),
            setting.get_help().map(ToString::to_string).unwrap_or_default()
        ));
    }
    text
}
