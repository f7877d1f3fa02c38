//! Arguments of `kumiki data instruments` and `kumiki data calendar`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use domain::JstDate;
use http_client::{Url, checked_address};
use update::limits::{RATE_MAX, VENDOR_RATE};
use update::source::VENDOR_URL;

use super::{parse_date, refuse};

pub(super) const INSTRUMENTS_EXAMPLES: &str = "\
Examples:
  kumiki data instruments data
  kumiki data instruments data --every day
  kumiki data instruments data --date 2025-10-31 --date 2025-11-04
  kumiki data instruments data --offline

The vendor's lists go into the folder as equities_master_YYYYMMDD.csv.gz, one for each date, and \
are not fetched again. A list that changes inside a month is found by asking for days in its \
midst, so the table is right on each day. instruments.csv is made from all of them: \
code,name,market,lot,ticks,from,to,made. An issue has lot and tick table from the first list \
that has it on, so a list tells nothing of days before it. Empty cells of lot and ticks are yours to \
fill in: no list tells the lots of ETFs. One with lots of 1 has the ticks etf, one with larger lots \
topix500. A row that was made ends with a checksum of its cells; a row \
without one, or that no longer fits it, was edited by hand and survives a refresh. The key comes \
from KUMIKI_JQUANTS_API_KEY or JQUANTS_API_KEY, else from systemd or the system's key store: see \
`kumiki key --help`.";

pub(super) const CALENDAR_HELP: &str = "\
Example:
  kumiki data calendar data

The key comes from KUMIKI_JQUANTS_API_KEY or JQUANTS_API_KEY, else from systemd or the system's key \
store: see `kumiki key --help`.";

/// Of which of a folder's days lists are fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Every {
    /// Of the first and the last business day of each month that the folder has files of, and where they differ of
    /// the days around each change between them.
    Change,
    /// On every business day.
    Day,
}

/// The market-data vendor; the same under every command that asks it.
#[derive(Debug, Args)]
pub(crate) struct VendorArgs {
    /// Where the market-data vendor is.
    #[arg(long, value_name = "URL", default_value = VENDOR_URL)]
    pub(crate) vendor_url: String,

    /// Requests a minute to the vendor; its plans allow 5, 60, 120 or 500.
    #[arg(
        long, value_name = "N", default_value_t = VENDOR_RATE,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(RATE_MAX))
    )]
    pub(crate) vendor_rate: u32,
}

/// The address in the argument `name`. A wrong one ends the program as wrong arguments do.
pub(crate) fn address(name: &str, text: &str) -> Url {
    checked_address(text).unwrap_or_else(|problem| refuse(&format!("{name}: {problem}")))
}

#[derive(Debug, Args)]
pub(crate) struct InstrumentsArgs {
    /// The data folder; it is made where there is none.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// A date to fetch the list of, in place of those of the folder's files (without any, the last business
    /// day before today); the next business day where the exchange is closed; may be given many times.
    #[arg(long = "date", value_name = "YYYY-MM-DD", value_parser = parse_date)]
    pub(crate) dates: Vec<JstDate>,

    /// Of which of the folder's days lists are fetched.
    #[arg(long, value_enum, default_value_t = Every::Change, conflicts_with = "dates")]
    pub(crate) every: Every,

    /// Use the lists that are there and no network.
    #[arg(long, conflicts_with_all = ["dates", "every"])]
    pub(crate) offline: bool,

    #[command(flatten)]
    pub(crate) vendor: VendorArgs,

    /// No progress line.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CalendarArgs {
    /// The data folder, made where there is none; its markets_calendar.csv is made, or made longer.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// First date; default: the first of the year of the folder's first file.
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = parse_date)]
    pub(crate) from: Option<JstDate>,

    /// Last date; default: the end of next year, as far as the vendor has it.
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = parse_date)]
    pub(crate) to: Option<JstDate>,

    #[command(flatten)]
    pub(crate) vendor: VendorArgs,
}
