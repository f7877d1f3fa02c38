//! Arguments of `kumiki data instruments` and `kumiki data calendar`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use domain::JstDate;
use http_client::{Url, checked_address};
use update::limits::{RATE_MAX, VENDOR_RATE};
use update::source::VENDOR_URL;

use super::{parse_date, refuse};

pub(super) const INSTRUMENTS_HELP: &str = "\
Examples:
  kumiki data instruments data
  kumiki data instruments data --every day
  kumiki data instruments data --date 2025-10-31 --date 2025-11-04
  kumiki data instruments data --offline

The vendor's lists go into the folder as equities_master_YYYYMMDD.csv.gz, one for each date. The command \
fetches no list twice. Where two lists differ it asks for days between them, so the table is right on each \
day. It makes instruments.csv from all lists: code,name,market,lot,ticks,from,to,made. An issue has its lot \
and tick table from the first list that has it.

Fill in empty cells of lot and ticks yourself: no list has the lots of ETFs. An ETF with lots of 1 has the \
ticks etf, one with larger lots topix500. A row that the command made ends with a checksum of its cells. A \
row without a fitting checksum was edited by hand, and survives a refresh.

The key comes from KUMIKI_JQUANTS_API_KEY or JQUANTS_API_KEY, else from systemd or the system's key store: \
see `kumiki help key`.";

pub(super) const CALENDAR_HELP: &str = "\
Example:
  kumiki data calendar data

The key comes from KUMIKI_JQUANTS_API_KEY or JQUANTS_API_KEY, else from systemd or the system's key \
store: see `kumiki help key`.";

/// Of which of a folder's days lists are fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Every {
    /// The first and last business day of each month of the files, and days around a change.
    Change,
    /// Every business day.
    Day,
}

/// The market-data vendor; the same under every command that asks it.
#[derive(Debug, Args)]
pub(crate) struct VendorArgs {
    /// Address of the market-data vendor.
    #[arg(hide_short_help = true, long, value_name = "URL", default_value = VENDOR_URL, help_heading = "Sources")]
    pub(crate) vendor_url: String,

    /// Requests a minute to the vendor: 5, 60, 120 or 500 by plan.
    #[arg(hide_short_help = true,
        long, value_name = "N", default_value_t = VENDOR_RATE, help_heading = "Sources",
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
    /// The data folder; the command makes it if needed.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// Fetch the list of this date, or of the next business day; may be given many times.
    ///
    /// Default: the dates of the folder's files, or without files the last business day before today.
    #[arg(long = "date", value_name = "YYYY-MM-DD", value_parser = parse_date)]
    pub(crate) dates: Vec<JstDate>,

    /// Days of the folder whose lists are fetched.
    #[arg(long, value_enum, default_value_t = Every::Change, conflicts_with = "dates")]
    pub(crate) every: Every,

    /// Use the stored lists and no network.
    #[arg(long, conflicts_with_all = ["dates", "every"])]
    pub(crate) offline: bool,

    #[command(flatten)]
    pub(crate) vendor: VendorArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CalendarArgs {
    /// The data folder; its markets_calendar.csv is made or extended.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// First date; default: the year's first of the oldest file.
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = parse_date)]
    pub(crate) from: Option<JstDate>,

    /// Last date; default: the end of next year, if the vendor has it.
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = parse_date)]
    pub(crate) to: Option<JstDate>,

    #[command(flatten)]
    pub(crate) vendor: VendorArgs,
}
