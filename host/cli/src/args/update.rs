//! Arguments of `kumiki data update` and `kumiki data boards`.

use std::path::PathBuf;

use clap::Args;
use domain::JstDate;
use update::IssueCode;
use update::limits::{
    CODES_MAX, DAYS_MAX, FIRST_DAY, PUBLIC_RATE, RATE_MAX, RECHECK_DAYS_DEFAULT, RECHECK_DAYS_MAX,
};
use update::source::PUBLIC_URL;

use super::rank::DataArgs;
use super::{Format, VendorArgs, parse_date};

pub(super) const UPDATE_HELP: &str = "\
Examples:
  kumiki data update --prices data --days 1000
      the first run: about four years, then a file of each issue
  kumiki data update --prices data
      every evening: what is new since the last complete day
  kumiki data update --prices data --from-files jquants
      history from the vendor's files in the folder jquants, without network
  kumiki data update --prices data --codes 7203 130A --days 250
  kumiki data update --prices data --to 2025-12-30 --format json

Days come from the market-data vendor, all issues in one call. The rest comes issue by issue from the \
vendor, else the web broker, else the public source. The job uses the first source that succeeds. A worse \
source adds missing rows and never changes a row of a better source. Each changed value is in the report \
and in the table correction of mother.db. The public source adjusts prices itself; its rows are marked \
(column adjusted).

Keys come from the environment, else from systemd's credentials, else from the system's key \
store; `kumiki key list` shows them, `kumiki key set` keeps them:
  jquants-api-key       KUMIKI_JQUANTS_API_KEY or JQUANTS_API_KEY: the vendor; without a key the
                        job skips the vendor, and fails if days are missing then
  web-broker-auth-id    KUMIKI_WEB_BROKER_AUTH_ID, and web-broker-private-key: the login at the
                        web broker; for dialects without keys web-broker-user and
                        web-broker-password
  public-api-key        KUMIKI_PUBLIC_API_KEY: the public source, if it needs one

The job asks the web broker only with --web-broker daily_history=true, or with that setting in \
[web_broker] of the file. A login ends every other session of the same user. A running engine with the same \
config folder (`kumiki serve --mode live`) holds the account: the job skips the web broker then, and the \
report says so. So give the job the engine's --config-dir, unless it is the usual one.

The job publishes a day when it is complete: 99 % of its listed issues have rows. Without a list, 99 % of \
the issues of the last complete day count. Other days wait in the folder work; the report names them, and \
each run asks for them again. A strange day, like one with all prices at 1 yen, waits for a person: --accept \
DATE takes it as the vendor has it. Today is due from 16:30 in Japan on. All rules: docs/reference/update-rules.md. \
Ctrl-C ends a run between two days; the next run goes on from there. The folder update of the prices folder \
has a report of each run.

Exit codes:
  0    all due days are published
  3    days wait, a source failed, or an answer was refused; see the report, run it again later
  6    a business day is missing between published ones
  1    an error; also if the vendor refuses the key, or days are missing without a key
  2    wrong arguments
  130  Ctrl-C";

pub(super) const BOARDS_HELP: &str = "\
Examples:
  kumiki data boards --recordings recordings --prices data
      after the close: what the engine recorded since the last run
  kumiki sql --prices data \"SELECT code, sum(qty) FROM board_trades GROUP BY code\"

Each issue with recorded rows gets jp/stocks_board/<code>.db with the tables depth and trades. Times \
are nanoseconds (received_ns) and milliseconds (timestamp_ms) since 1970 UTC; prices and quantities are \
exact decimals. The job adds new segments to a copy, which then replaces the old file, so readers see the old \
or the new file. It reads only finished segments, so an engine may go on recording. The next run goes on after \
an interrupted one. It makes a damaged or missing file again if the recordings are there. A file that this job \
did not write stays, and the run fails. The job removes nothing, even if recordings were moved away.

A segment that cannot be read is left out and named; the rest is published. Put a copy of its file back, or \
move the segment's files away, and run the job again. One job at a time works in a prices folder, as with \
`kumiki data update`. The form of the report in JSON: schemas/update-board.json.

Exit codes:
  0    all finished recordings are published
  3    some recordings cannot be read; the report names them
  1    an error; earlier publications stay
  2    wrong arguments
  130  Ctrl-C";

#[derive(Debug, Args)]
pub(crate) struct BoardsArgs {
    /// Folder into which the engine records (`record_dir`).
    #[arg(long, value_name = "DIR")]
    pub(crate) recordings: PathBuf,

    #[command(flatten)]
    pub(crate) data: DataArgs,

    /// Form of the report.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,

    /// Update only these issues, like 7203 130A 25935.
    #[arg(long, value_name = "CODE", num_args = 1.., value_delimiter = ',', value_parser = parse_code, help_heading = "What to fetch")]
    pub(crate) codes: Vec<IssueCode>,

    /// Weekdays to look back; default: since the last complete day.
    ///
    /// The job does not fetch days again that it has. A first run looks back 7 days, and with --from-files as
    /// far as the files go.
    #[arg(
        long, value_name = "N", help_heading = "What to fetch",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(DAYS_MAX))
    )]
    pub(crate) days: Option<u32>,

    /// Last day, included; default: today in Japan.
    #[arg(
        long, alias = "as-of", value_name = "YYYY-MM-DD", value_parser = parse_date,
        help_heading = "What to fetch"
    )]
    pub(crate) to: Option<JstDate>,

    /// Accept this strange day as the source has it.
    ///
    /// Also a day that is incomplete, or has less than what is published. A day without any row counts as
    /// closed from then on. A published day stays. May be given many times; the job asks for such days again.
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = parse_date, help_heading = "What to fetch")]
    pub(crate) accept: Vec<JstDate>,

    /// Fetch the days of --days again.
    #[arg(long, help_heading = "What to fetch")]
    pub(crate) refetch: bool,

    /// Complete days to ask for again.
    ///
    /// The vendor corrects factors and prices for some days. Each day is one call.
    #[arg(
        long, value_name = "N", default_value_t = RECHECK_DAYS_DEFAULT, help_heading = "What to fetch",
        value_parser = clap::value_parser!(u32).range(..=i64::from(RECHECK_DAYS_MAX))
    )]
    pub(crate) recheck: u32,

    /// Remove files of issues that left, even if they are many.
    ///
    /// Without this the job removes at most 1 % of all files.
    #[arg(long, help_heading = "What to fetch")]
    pub(crate) remove_issues: bool,

    /// Take days from the vendor's files in this folder, offline.
    ///
    /// The files are equities_bars_daily_YYYYMM.csv.gz and _YYYYMMDD.csv.gz. The calendar is the folder's
    /// markets_calendar.csv, else Japan's holidays.
    #[arg(long, value_name = "DIR", help_heading = "Sources")]
    pub(crate) from_files: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) vendor: VendorArgs,

    /// Address of the public source.
    #[arg(hide_short_help = true, long, value_name = "URL", default_value = PUBLIC_URL, help_heading = "Sources")]
    pub(crate) public_url: String,

    /// Requests a minute to the public source.
    #[arg(hide_short_help = true,
        long, value_name = "N", default_value_t = PUBLIC_RATE, help_heading = "Sources",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(RATE_MAX))
    )]
    pub(crate) public_rate: u32,

    /// A setting of the web broker, like daily_history=true.
    ///
    /// May be given many times. The settings are those of `kumiki serve`.
    #[arg(long = "web-broker", value_name = "NAME=VALUE", help_heading = "Sources")]
    pub(crate) web_broker: Vec<String>,

    /// File of settings, as of `kumiki serve --config`.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Config folder of the engine that trades at the web broker.
    ///
    /// Default: where the system keeps settings. Environment: KUMIKI_CONFIG_DIR.
    #[arg(long, value_name = "DIR")]
    pub(crate) config_dir: Option<PathBuf>,

    /// Folder of fetched days; default: cache in the prices folder.
    #[arg(hide_short_help = true, long, value_name = "DIR", env = "STOCKDATA_CACHE_DIR")]
    pub(crate) cache_dir: Option<PathBuf>,

    /// Form of the report.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// Was for skipping an upload that is no longer done.
    #[arg(long, hide = true)]
    pub(crate) dry_run: bool,
}

impl UpdateArgs {
    /// What is wrong with the arguments together.
    pub(crate) fn problem(&self, today: JstDate) -> Option<String> {
        if self.dry_run {
            return Some(
                "--dry-run no longer exists, because the job uploads nothing any more; leave it out"
                    .to_owned(),
            );
        }
        if self.codes.len() > CODES_MAX {
            return Some(format!(
                "--codes names more than {CODES_MAX} issues; name fewer, or leave it out for all"
            ));
        }
        let first = first_day();
        if let Some(to) = self.to.filter(|date| *date < first) {
            return Some(format!(
                "--to {to} is before {first}, the first day of the exchange; give a later day"
            ));
        }
        let to = self.to.filter(|date| *date > today)?;
        Some(format!(
            "--to {to} is in the future; today is {today} in Japan; give that day or an earlier one"
        ))
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
            &["--codes", "7203,130A", "--codes", "25935", "--refetch"],
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
        assert_eq!(problem(&["--to", "2026-01-09"]), None);
        assert!(problem(&["--to", "2026-01-10"]).unwrap().contains("in the future"));
        assert_eq!(problem(&["--to", "1949-05-16"]), None);
        let before = problem(&["--to", "0001-01-04", "--days", "10400"]).unwrap();
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
            assert!(UPDATE_HELP.contains(key.variable()), "{key:?}");
            assert!(UPDATE_HELP.contains(key.entry()), "{key:?}");
            let other = key.other_variable().map(|other| format!(" or {other}:"));
            assert!(other.is_none_or(|other| UPDATE_HELP.contains(&other)), "{key:?}");
        }
    }
}
