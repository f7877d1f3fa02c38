//! Arguments of `kumiki update`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use domain::JstDate;
use update::IssueCode;
use update::limits::{
    CODES_MAX, DAYS_MAX, FIRST_DAY, PUBLIC_RATE, RATE_MAX, RECHECK_DAYS_DEFAULT, RECHECK_DAYS_MAX,
};
use update::source::PUBLIC_URL;

use super::rank::DataArgs;
use super::{Format, VendorArgs, parse_date};

const EXAMPLES: &str = "\
Examples:
  kumiki update --data-dir data --days 1000
      the first run: about four years, then a file of each issue
  kumiki update --data-dir data
      every evening: what is new since the last complete day
  kumiki update --data-dir data --from-files jquants
      history from the vendor's files in the folder jquants, without network
  kumiki update --data-dir data --codes 7203 130A --days 250
  kumiki update --data-dir data --as-of 2025-12-30 --format json

Days come from the market-data vendor, all issues in one call; what it does not give comes issue \
by issue from the vendor, else the web broker, else the public source. The first that succeeds \
is used. A worse source adds rows that are missing and never changes one of a better source; \
each value that changes is in the report and in the table correction of mother.db. Rows of the public source, which adjusts \
prices itself, are marked (column adjusted).

Keys come from the environment, else from systemd's credentials, else from the system's key \
store; `kumiki key list` shows them, `kumiki key set` keeps them:
  jquants-api-key       KUMIKI_JQUANTS_API_KEY or JQUANTS_API_KEY: the vendor; else it is left
                        out, which is an error where days are missing then
  web-broker-auth-id    KUMIKI_WEB_BROKER_AUTH_ID, and web-broker-private-key: the login at the
                        web broker; for dialects without keys web-broker-user and
                        web-broker-password
  public-api-key        KUMIKI_PUBLIC_API_KEY: the public source, where it wants one

The web broker is asked only with --web-broker daily_history=true, or so in [web_broker] of the \
settings. A login ends every other session of the same user. While an engine with the same config \
folder runs (`kumiki serve --mode live`), it holds the account: the web broker is skipped then, \
which the report says. So give the job the engine's --config-dir, if that is not the usual one.

A day is published when it is complete: when 99 % of the issues that are listed for it have rows, or without a \
list 99 % of those of the last complete day. Other days wait in the folder work, are named in the report, and are \
asked for again by each run. A strange day, like one with all prices at 1 yen, waits for a person: \
--accept DATE takes it as the vendor has it. Today is due from 16:30 in Japan on. All rules: docs/daily-data.md. \
Ctrl-C ends a run between two days; the next run goes on from there. A report of each run is in the folder update \
of the data folder.

Exit codes:
  0    all days that are due are published
  3    days wait, a source failed, or an answer was refused; see the report, run it again later
  6    a business day is missing between published ones
  1    an error; also where the vendor refuses the key, or there is none and days are missing
  2    wrong arguments
  130  Ctrl-C";

const BOARD_EXAMPLES: &str = "\
Examples:
  kumiki update board --recordings recordings --data-dir data
      after the close: what the engine recorded since the last run
  kumiki sql --data-dir data \"SELECT code, sum(qty) FROM board_trades GROUP BY code\"

Each issue with recorded rows gets jp/stocks_board/<code>.db with the tables depth and trades; times \
are numbers of nanoseconds (received_ns) and milliseconds (timestamp_ms) since 1970 UTC, prices and \
quantities exact decimals. Rows of new segments are added to a copy, which takes the old file's place \
when it is on the disk, so readers see the old or the new file. Only finished segments are read, so an \
engine may go on recording. A run that ends early is gone on with by the next; a file that is damaged \
or gone is made again where its recordings are there; one that this job did not write is left alone, \
and the run fails. Nothing is removed, also where recordings were moved away. A recorded segment that \
cannot be read is left out and named, and the rest is published: put a copy of its file back, or move \
the segment's files away, and run it again. One job at a time works in a data folder, as with \
`kumiki update`. The form of the report in JSON: schemas/update-board.json.

Exit codes:
  0    all finished recordings are published
  3    some are not, because a file of them cannot be read; the report names them
  1    an error; what was published before is there
  2    wrong arguments
  130  Ctrl-C";

/// A part of the job that is run by itself.
#[derive(Debug, Subcommand)]
pub(crate) enum UpdateCommand {
    /// Publish order books and trades that a live engine recorded, one database for each issue.
    Board(UpdateBoardArgs),
}

#[derive(Debug, Args)]
#[command(after_help = BOARD_EXAMPLES)]
pub(crate) struct UpdateBoardArgs {
    /// The folder into which the engine records (`record_dir` of [local_broker]).
    #[arg(long, value_name = "DIR")]
    pub(crate) recordings: PathBuf,

    #[command(flatten)]
    pub(crate) data: DataArgs,

    /// How the report is printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// No progress and no notes, as with --log error.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct UpdateArgs {
    #[command(subcommand)]
    pub(crate) command: Option<UpdateCommand>,

    /// Only these issues, like 7203 130A 25935; default: all.
    #[arg(long, value_name = "CODE", num_args = 1.., value_delimiter = ',', value_parser = parse_code)]
    pub(crate) codes: Vec<IssueCode>,

    /// Weekdays to look back at least; days that are there already are not fetched again. Default: all
    /// after the last complete day, 7 on a first run, with --from-files all that the files have.
    #[arg(
        long, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(DAYS_MAX))
    )]
    pub(crate) days: Option<u32>,

    /// The last day; default: today in Japan.
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = parse_date)]
    pub(crate) as_of: Option<JstDate>,

    #[command(flatten)]
    pub(crate) data: DataArgs,

    /// Where fetched days are kept; default: the folder cache in the data folder.
    #[arg(long, value_name = "DIR", env = "STOCKDATA_CACHE_DIR")]
    pub(crate) cache_dir: Option<PathBuf>,

    /// Take days from the vendor's files equities_bars_daily_YYYYMM.csv.gz and _YYYYMMDD.csv.gz in
    /// this folder, by its markets_calendar.csv or else Japan's holidays, and use no network.
    #[arg(long, value_name = "DIR")]
    pub(crate) from_files: Option<PathBuf>,

    /// Fetch the days of --days again that are there already.
    #[arg(long)]
    pub(crate) refetch: bool,

    /// Take what the vendor, or with --from-files its files, says of this day as it is: strange, not complete, or
    /// less than what is published. A day without any row is closed from then on, unless it is published: then it
    /// stays. May be given many times; such days are asked for again.
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = parse_date)]
    pub(crate) accept: Vec<JstDate>,

    /// Complete days before the new ones that the vendor is asked again for, because it corrects factors
    /// and prices for some days: one call each.
    #[arg(
        long, value_name = "N", default_value_t = RECHECK_DAYS_DEFAULT,
        value_parser = clap::value_parser!(u32).range(..=i64::from(RECHECK_DAYS_MAX))
    )]
    pub(crate) recheck: u32,

    /// Remove the files of issues that are no longer in the combined database even when they are more
    /// than 1 % of all.
    #[arg(long)]
    pub(crate) remove_issues: bool,

    #[command(flatten)]
    pub(crate) vendor: VendorArgs,

    /// Where the public source is.
    #[arg(long, value_name = "URL", default_value = PUBLIC_URL)]
    pub(crate) public_url: String,

    /// Requests a minute to the public source.
    #[arg(
        long, value_name = "N", default_value_t = PUBLIC_RATE,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(RATE_MAX))
    )]
    pub(crate) public_rate: u32,

    /// A setting of the web broker, like daily_history=true or environment=prod; may be given many times.
    /// The same as of `kumiki serve`.
    #[arg(long = "web-broker", value_name = "NAME=VALUE")]
    pub(crate) web_broker: Vec<String>,

    /// Read settings from this file, as `kumiki serve --config` does.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// The config folder of the engine that trades at the web broker. Default: where the system keeps
    /// settings. Environment: KUMIKI_CONFIG_DIR.
    #[arg(long, value_name = "DIR")]
    pub(crate) config_dir: Option<PathBuf>,

    /// How the report is printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// No progress and no notes, as with --log error.
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Was for skipping an upload that is no longer done.
    #[arg(long, hide = true)]
    pub(crate) dry_run: bool,
}

impl UpdateArgs {
    /// What is wrong with the arguments together.
    pub(crate) fn problem(&self, today: JstDate) -> Option<String> {
        if self.dry_run {
            return Some(
                "--dry-run no longer exists: nothing is uploaded any more, so there is nothing to \
                 skip; leave it out"
                    .to_owned(),
            );
        }
        if self.codes.len() > CODES_MAX {
            return Some(format!("--codes: more than {CODES_MAX} issues"));
        }
        let first = first_day();
        if let Some(as_of) = self.as_of.filter(|date| *date < first) {
            return Some(format!(
                "--as-of {as_of} is before {first}, the first day of the exchange"
            ));
        }
        let as_of = self.as_of.filter(|date| *date > today)?;
        Some(format!("--as-of {as_of} is in the future; today is {today} in Japan"))
    }
}

/// No day before is asked for.
pub(crate) fn first_day() -> JstDate {
    let (year, month, day) = FIRST_DAY;
    JstDate::from_ymd_opt(year, month, day).unwrap_or(JstDate::MIN)
}

fn parse_code(text: &str) -> Result<IssueCode, String> {
    text.parse().map_err(|_| {
        format!(
            "`{text}` is no issue code; write 4 or 5 digits and letters, like 7203, 130A or 25935"
        )
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use update::KEYS;

    use super::*;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        update: UpdateArgs,
    }

    fn parse(arguments: &[&str]) -> Result<UpdateArgs, clap::Error> {
        Only::try_parse_from(std::iter::once(&"x").chain(arguments)).map(|only| only.update)
    }

    #[test]
    fn codes_are_given_as_one_likes() {
        for arguments in [
            &["--codes", "7203", "130a", "25935"][..],
            &["--codes", "7203,130A", "--codes", "25935", "--quiet"],
        ] {
            let codes = parse(arguments).unwrap().codes;
            let codes: Vec<&str> = codes.iter().map(IssueCode::as_str).collect();
            assert_eq!(codes, ["7203", "130A", "25935"]);
        }
        let message = parse(&["--codes", "72-3"]).unwrap_err().to_string();
        assert!(message.contains("`72-3` is no issue code; write 4 or 5"), "{message}");
        assert!(parse(&["--codes"]).is_err());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let today = "2026-01-09".parse().unwrap();
        let problem = |arguments: &[&str]| parse(arguments).unwrap().problem(today);
        assert_eq!(problem(&["--as-of", "2026-01-09"]), None);
        assert!(problem(&["--as-of", "2026-01-10"]).unwrap().contains("in the future"));
        assert_eq!(problem(&["--as-of", "1949-05-16"]), None);
        let before = problem(&["--as-of", "0001-01-04", "--days", "10400"]).unwrap();
        assert!(before.contains("before 1949-05-16, the first day of the exchange"), "{before}");
        assert!(problem(&["--dry-run"]).unwrap().contains("no longer exists"));
        for wrong in [["--days", "0"], ["--days", "10401"], ["--vendor-rate", "0"]] {
            assert!(parse(&wrong).is_err(), "{wrong:?}");
        }
        let mut many = parse(&["--codes", "7203"]).unwrap();
        many.codes = vec![many.codes[0]; CODES_MAX + 1];
        assert!(many.problem(today).unwrap().contains("more than 20000 issues"));
    }

    #[test]
    fn the_help_names_every_key() {
        for key in KEYS {
            assert!(EXAMPLES.contains(key.variable()), "{key:?}");
            assert!(EXAMPLES.contains(key.entry()), "{key:?}");
            let other = key.other_variable().map(|other| format!(" or {other}:"));
            assert!(other.is_none_or(|other| EXAMPLES.contains(&other)), "{key:?}");
        }
    }
}
