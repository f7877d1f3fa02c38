//! `kumiki data instruments` and `kumiki data calendar`: what the vendor lists, kept in a data folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use domain::clock::wall_now;
use domain::{ExchangeCalendar, JstDate};
use http_client::{CancellationToken, Network, RequestPolicy};
use marketdata::calendar_file::{CALENDAR_FILE, calendar_of, read_calendar, read_rows, write_rows};
use marketdata::instruments::{INSTRUMENTS_FILE, STEP_CHANGES, StepChange};
use marketdata::master::next_list;
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
    if !args.offline && !fetch(args)? {
        eprintln!("interrupted; the lists that were fetched are kept, run it again to go on");
        return Ok(Ending::Interrupted);
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
    let [topix100_from, _] = STEP_CHANGES.map(StepChange::date);
    if dates.iter().any(|date| *date < topix100_from) {
        eprintln!(
            "note: the price steps of TOPIX100 before {topix100_from} are unknown, so its ticks are empty; \
             fill them in"
        );
    }
    Ok(Ending::Done)
}

/// Makes the folder for what is fetched, where there is none yet.
fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// The business days of the folder's files up to today, month by month; the last business day before today in
/// a folder without files.
fn days_of_files(args: &InstrumentsArgs) -> Result<Vec<Vec<JstDate>>> {
    let calendar = read_calendar(&args.folder)?;
    let today = wall_now().jst_date();
    let mut days = BTreeSet::new();
    for period in periods(&args.folder)? {
        let all = period.first().iter_days().take_while(|date| *date <= period.last());
        days.extend(all.filter(|date| calendar.is_business_day(*date) && *date <= today));
    }
    if days.is_empty() {
        let last = calendar.business_day_before(today);
        let last = last.context("the calendar has no business day before today")?;
        eprintln!(
            "note: {} has no files of the vendor, so this fetches the list of {last}; --date names other days",
            args.folder.display()
        );
        return Ok(vec![vec![last]]);
    }
    let days: Vec<JstDate> = days.into_iter().collect();
    let month = |date: &JstDate| date.format("%Y%m").to_string();
    let months = days.chunk_by(|one, next| month(one) == month(next));
    Ok(months.map(<[JstDate]>::to_vec).collect())
}

/// The dates that are asked for. Of a day on which the exchange is closed there is no list: in its place comes the next
/// business day, whose list the vendor answers.
fn open_days(args: &InstrumentsArgs) -> Result<BTreeSet<JstDate>> {
    let calendar = read_calendar(&args.folder)?;
    let mut days = BTreeSet::new();
    for date in &args.dates {
        let day = calendar.business_day_from(*date).unwrap_or(*date);
        if day != *date {
            eprintln!("note: the exchange is closed on {date}, so the list of {day} is fetched");
        }
        days.insert(day);
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

/// Fetches the lists that are missing; false when the user wanted an end.
fn fetch(args: &InstrumentsArgs) -> Result<bool> {
    let cancel = CancellationToken::new();
    let wanted = cancel.clone();
    let interrupt = Interrupt::listen_and(move || wanted.cancel())?;
    let stored: BTreeSet<JstDate> = Master::list(&args.folder)?.into_iter().collect();
    let mut lists = Lists { args, cancel, source: None, stored };
    let parts = match (args.dates.is_empty(), args.every) {
        (false, _) => open_days(args)?.into_iter().map(|date| vec![date]).collect(),
        (true, Every::Day) => {
            days_of_files(args)?.concat().into_iter().map(|date| vec![date]).collect()
        }
        (true, Every::Change) => days_of_files(args)?,
    };
    let mut line = ProgressLine::start("fetching lists", parts.len() as u64, false);
    for (done, days) in parts.iter().enumerate() {
        let mut known = BTreeMap::new();
        // What is there already tells of changes too.
        for date in days.iter().filter(|date| lists.stored.contains(date)) {
            known.insert(*date, Some(Master::read(&args.folder, *date)?.facts()));
        }
        while let Some(date) = next_list(days, &known) {
            line.update(done as u64, || date.to_string());
            let facts = lists.fetch(date);
            if interrupt.is_wanted() {
                line.finish();
                return Ok(false);
            }
            known.insert(date, facts?);
        }
    }
    line.finish();
    Ok(true)
}

/// Asks for lists; the vendor, and with it a key, is wanted only where one is missing.
struct Lists<'a> {
    args: &'a InstrumentsArgs,
    cancel: CancellationToken,
    source: Option<VendorSource>,
    stored: BTreeSet<JstDate>,
}

impl Lists<'_> {
    /// Fetches a list into the folder; gives its facts, none where the vendor has no list.
    fn fetch(&mut self, date: JstDate) -> Result<Option<u64>> {
        let source = match &mut self.source {
            Some(source) => source,
            none => none.insert(vendor(&self.args.vendor, &self.cancel)?),
        };
        let listed = source.listed_issues(date).with_context(|| format!("the list of {date}"))?;
        let Some(master) = listed else {
            eprintln!("note: the vendor has no list of {date}");
            return Ok(None);
        };
        master.write(&self.args.folder)?;
        Ok(Some(master.facts()))
    }
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
        bail!("the vendor has no calendar from {from} to {to}; give other dates");
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
