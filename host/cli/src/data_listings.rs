//! `kumiki data instruments` and `kumiki data calendar`: what the vendor lists, kept in a data folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use domain::clock::wall_now;
use domain::{ExchangeCalendar, JstDate};
use http_client::{CancellationToken, Network, RequestPolicy};
use marketdata::calendar_file::{CALENDAR_FILE, calendar_of, read_calendar, read_rows, write_rows};
use marketdata::instruments::{INSTRUMENTS_FILE, topix500_from};
use marketdata::{InstrumentTable, Inventory, Master, Period};
use update::VENDOR_KEY;
use update::source::VendorSource;

use crate::Ending;
use crate::args::{CalendarArgs, Every, InstrumentsArgs, VendorArgs, address};
use crate::interrupt::Interrupt;
use crate::progress::ProgressLine;
use crate::terminal::grouped;

/// Fetches the lists that are missing and makes the instrument table.
pub(crate) fn instruments(args: &InstrumentsArgs) -> Result<Ending> {
    let folder = args.folder.as_path();
    if !args.offline {
        make(folder)?;
    }
    let stored: BTreeSet<JstDate> = Master::list(folder)?.into_iter().collect();
    if !args.offline {
        let mut wanted =
            if args.dates.is_empty() { days_of_files(args)? } else { args.dates.clone() };
        wanted.retain(|date| !stored.contains(date));
        if !wanted.is_empty() && !fetch(args, &wanted)? {
            eprintln!("interrupted; the lists that were fetched are kept, run it again to go on");
            return Ok(Ending::Interrupted);
        }
    }
    let dates = Master::list(folder)?;
    if dates.is_empty() {
        bail!("{} has no list of issues; leave out --offline to fetch some", folder.display());
    }
    let masters: Vec<Master> =
        dates.iter().map(|date| Master::read(folder, *date)).collect::<Result<_, _>>()?;
    let before = InstrumentTable::read(folder)?.unwrap_or_default();
    let table = before.refreshed(&masters);
    table.write(folder)?;
    let (rows, by_hand) = table.counts();
    println!(
        "{} rows from {} lists in {}; {} edited by hand",
        grouped(&rows.to_string()),
        grouped(&dates.len().to_string()),
        folder.join(INSTRUMENTS_FILE).display(),
        grouped(&by_hand.to_string()),
    );
    let change = topix500_from();
    if dates.iter().any(|date| *date < change) {
        eprintln!(
            "note: before {change} every issue has the tick table `normal` here; TOPIX100 had finer \
             steps in those days, which the lists do not tell"
        );
    }
    Ok(Ending::Done)
}

/// Makes the folder for what is fetched, where there is none yet.
fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// The days of the folder's files of which lists are wanted, up to today; the last business day before
/// today in a folder without files.
fn days_of_files(args: &InstrumentsArgs) -> Result<Vec<JstDate>> {
    let calendar = read_calendar(&args.folder)?;
    let today = wall_now().jst_date();
    let mut days = BTreeSet::new();
    for period in periods(&args.folder)? {
        let all = period.first().iter_days().take_while(|date| *date <= period.last());
        let mut open = all.filter(|date| calendar.is_business_day(*date) && *date <= today);
        match args.every {
            Every::Day => days.extend(open),
            Every::Month => days.extend(open.next()),
        }
    }
    if days.is_empty() {
        let last = calendar.business_day_before(today);
        let last = last.context("the calendar has no business day before today")?;
        eprintln!(
            "note: {} has no files of the vendor, so the list of {last} is fetched; --date names others",
            args.folder.display()
        );
        return Ok(vec![last]);
    }
    let mut days: Vec<JstDate> = days.into_iter().collect();
    if args.every == Every::Month {
        let month = |date: &JstDate| date.format("%Y%m").to_string();
        days.dedup_by(|later, earlier| month(later) == month(earlier));
    }
    Ok(days)
}

fn periods(folder: &Path) -> Result<Vec<Period>> {
    Ok(Inventory::of(folder)?.files.into_iter().filter_map(|file| file.period).collect())
}

fn vendor(args: &VendorArgs, cancel: &CancellationToken) -> Result<VendorSource> {
    let url = address("--vendor-url", &args.vendor_url);
    let key = VENDOR_KEY.find()?;
    let network = Network::new(cancel.clone()).context("cannot prepare for the network")?;
    let (policy, today) = (RequestPolicy::default(), wall_now().jst_date());
    VendorSource::new(&network, &url, &key, args.vendor_rate, policy, None, today)
        .map_err(anyhow::Error::msg)
}

/// Fetches lists into the folder; false when the user wanted an end.
fn fetch(args: &InstrumentsArgs, dates: &[JstDate]) -> Result<bool> {
    let cancel = CancellationToken::new();
    let wanted = cancel.clone();
    let interrupt = Interrupt::listen_and(move || wanted.cancel())?;
    let mut source = vendor(&args.vendor, &cancel)?;
    let mut line = ProgressLine::start("fetching lists", dates.len() as u64, false, args.quiet);
    for (done, date) in dates.iter().enumerate() {
        line.update(done as u64, || date.to_string());
        let listed = source.listed_issues(*date);
        if interrupt.is_wanted() {
            line.finish();
            return Ok(false);
        }
        match listed.with_context(|| format!("the list of {date}"))? {
            Some(master) => master.write(&args.folder)?,
            None => eprintln!("note: the vendor has no list of {date}"),
        }
    }
    line.finish();
    Ok(true)
}

/// Fetches the exchange's calendar.
pub(crate) fn calendar(args: &CalendarArgs) -> Result<Ending> {
    let folder = args.folder.as_path();
    make(folder)?;
    let periods = periods(folder)?;
    let year = |date: JstDate| date.format("%Y").to_string().parse::<i32>().unwrap_or_default();
    let today = wall_now().jst_date();
    let earliest = periods.iter().map(|period| period.first()).min().unwrap_or(today);
    let from = args.from.or_else(|| JstDate::from_ymd_opt(year(earliest), 1, 1));
    let to = args.to.or_else(|| JstDate::from_ymd_opt(year(today) + 1, 12, 31));
    let (from, to) = (from.unwrap_or(earliest), to.unwrap_or(today));
    let cancel = CancellationToken::new();
    let wanted = cancel.clone();
    let _interrupt = Interrupt::listen_and(move || wanted.cancel())?;
    let fetched = vendor(&args.vendor, &cancel)?.calendar(from, to)?;
    if fetched.is_empty() {
        bail!("the vendor has no calendar from {from} to {to}");
    }
    let mut rows = read_rows(folder)?.unwrap_or_default();
    rows.extend(fetched);
    let calendar = calendar_of(&rows).map_err(anyhow::Error::msg)?;
    check_against_files(&calendar, &periods)?;
    write_rows(folder, &rows)?;
    let range = calendar.listed_range().context("the calendar has no dates")?;
    let open = range.0.iter_days().take_while(|date| *date <= range.1);
    let open = open.filter(|date| calendar.is_business_day(*date)).count();
    println!(
        "{} business days from {} to {} in {}",
        grouped(&open.to_string()),
        range.0,
        range.1,
        folder.join(CALENDAR_FILE).display()
    );
    Ok(Ending::Done)
}

/// A calendar that has the exchange closed on a day with a file of its own is not kept.
fn check_against_files(calendar: &ExchangeCalendar, periods: &[Period]) -> Result<()> {
    let days = periods.iter().filter_map(|period| match period {
        Period::Day(date) => Some(*date),
        Period::Month { .. } => None,
    });
    for date in days {
        if !calendar.is_business_day(date) {
            bail!(
                "the vendor's calendar has the exchange closed on {date}, but the folder has a file of \
                 that day; nothing was written"
            );
        }
    }
    Ok(())
}
