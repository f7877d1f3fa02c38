//! `kumiki data check`: what is wrong or odd in trades and bar files.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use domain::market::BarGranularity;
use domain::{ExchangeCalendar, JstDate, TsNanos};
use marketdata::audit::DefectCounts;
use marketdata::calendar_file::read_calendar;
use marketdata::{
    AuditOptions, BarFile, Catalog, CodeAudit, DataError, Defect, FileAudit, Period, ProgressFn,
    TradeFile, audit_bar_file, audit_file,
};
use serde_json::{Map, Value, json};

use crate::Ending;
use crate::args::{CheckArgs, Format};
use crate::interrupt::Interrupt;
use crate::progress::ProgressLine;
use crate::terminal::{columns, grouped};

/// Dates that one line shows at most.
const DATES_SHOWN: usize = 5;

/// A file to check.
enum Checked {
    Trades(TradeFile),
    Bars(BarFile),
}

impl Checked {
    fn from_path(path: &Path) -> Result<Self, DataError> {
        match BarFile::from_path(path) {
            Ok(file) => Ok(Self::Bars(file)),
            Err(_) => Ok(Self::Trades(TradeFile::from_path(path)?)),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Trades(file) => &file.path,
            Self::Bars(file) => &file.path,
        }
    }

    const fn period(&self) -> Period {
        match self {
            Self::Trades(file) => file.period,
            Self::Bars(file) => file.period,
        }
    }

    /// What its rows are.
    const fn rows(&self) -> &'static str {
        match self {
            Self::Trades(_) => "trades",
            Self::Bars(BarFile { granularity: BarGranularity::Minute, .. }) => "minute bars",
            Self::Bars(BarFile { granularity: BarGranularity::Day, .. }) => "daily bars",
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &CheckArgs) -> Result<Ending> {
    let interrupt = Interrupt::listen()?;
    let mut reports = Vec::new();
    let mut all_good = true;
    let mut before = FilesBefore::default();
    let mut months = MonthDays::default();
    for file in files(args)? {
        let folder = file.path().parent().unwrap_or(Path::new("."));
        let calendar = read_calendar(folder)?;
        let options = AuditOptions { quiet_minutes: args.quiet_minutes, calendar };
        let Some(audit) = audited(&file, &options, &interrupt)? else {
            eprintln!("interrupted while reading {}", file.path().display());
            return Ok(Ending::Interrupted);
        };
        all_good &= audit.is_sound();
        let gap = before.days_to(&file, &audit, &options.calendar);
        let is_twice = months.have(&file, &audit);
        match args.format {
            Format::Table => print(args, &file, &audit, (&gap[..], is_twice)),
            Format::Json => reports.push(report(args, &file, &audit, (&gap[..], is_twice))),
        }
    }
    if args.format == Format::Json {
        println!("{:#}", json!(reports));
    }
    Ok(if all_good { Ending::Done } else { Ending::Problems })
}

/// The last date with rows in the files so far, by their folder and kind.
#[derive(Default)]
struct FilesBefore(BTreeMap<(PathBuf, &'static str), JstDate>);

impl FilesBefore {
    /// The business days between the rows of the file before and those of this one.
    fn days_to(
        &mut self,
        file: &Checked,
        audit: &FileAudit,
        calendar: &ExchangeCalendar,
    ) -> Vec<JstDate> {
        let (Some(first), Some(last)) = (audit.first, audit.last) else { return Vec::new() };
        let folder = file.path().parent().unwrap_or(Path::new("")).to_owned();
        let last = last.jst_date();
        let before = self.0.entry((folder, file.rows())).or_insert(last);
        let days = before.iter_days().skip(1).take_while(|date| *date < first.jst_date());
        let days = days.filter(|date| calendar.is_business_day(*date)).collect();
        *before = last.max(*before);
        days
    }
}

/// The days with rows in the files of whole months so far, by their folder and kind.
#[derive(Default)]
struct MonthDays(BTreeSet<(PathBuf, &'static str, JstDate)>);

impl MonthDays {
    /// Whether a file is of a day that the file of its month has, so that a replay does not read it.
    fn have(&mut self, file: &Checked, audit: &FileAudit) -> bool {
        let folder = file.path().parent().unwrap_or(Path::new("")).to_owned();
        let day = |date: JstDate| (folder.clone(), file.rows(), date);
        match file.period() {
            Period::Day(date) => self.0.contains(&day(date)),
            Period::Month { .. } => {
                self.0.extend(audit.days.iter().copied().map(day));
                false
            }
        }
    }
}

fn files(args: &CheckArgs) -> Result<Vec<Checked>> {
    let mut files = Vec::new();
    for path in &args.paths {
        if path.is_dir() {
            files.extend(files_of(path)?);
        } else {
            // The name of what is not there is not what is wrong with it.
            if let Err(error) = path.metadata() {
                bail!(
                    "cannot read {}: {error}; give trades or bar files, or a folder with them",
                    path.display()
                );
            }
            files.push(Checked::from_path(path)?);
        }
    }
    Ok(files)
}

/// The trades files of a folder, then its minute and its daily bar files.
fn files_of(folder: &Path) -> Result<Vec<Checked>, DataError> {
    let mut bars = BarFile::list(folder, BarGranularity::Minute)?;
    bars.extend(BarFile::list(folder, BarGranularity::Day)?);
    let trades = match Catalog::open(folder) {
        Err(DataError::NoTradeFiles { .. }) if !bars.is_empty() => Vec::new(),
        other => other?.files().to_vec(),
    };
    Ok(trades.into_iter().map(Checked::Trades).chain(bars.into_iter().map(Checked::Bars)).collect())
}

/// The audit of a file; `None` when the user stopped it.
fn audited(
    file: &Checked,
    options: &AuditOptions,
    interrupt: &Interrupt,
) -> Result<Option<FileAudit>> {
    let bytes = file.path().metadata().map_or(0, |metadata| metadata.len());
    let name = file.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut line = ProgressLine::start(&format!("checking {name}"), bytes, true);
    let progress: &mut ProgressFn<'_> = &mut |progress| {
        line.update(progress.compressed_bytes, || format!("{} rows", progress.rows_scanned));
        if interrupt.is_wanted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let audit = match file {
        Checked::Trades(file) => audit_file(file, options, progress),
        Checked::Bars(file) => audit_bar_file(file, options, progress),
    };
    line.finish();
    match audit {
        Err(DataError::Cancelled { .. }) => Ok(None),
        other => Ok(Some(other?)),
    }
}

fn count(number: u64) -> String {
    grouped(&number.to_string())
}

fn quiet(audit: &FileAudit) -> u64 {
    audit.codes.iter().map(|code| code.quiet).sum()
}

/// `ok`, `wrong` where rows break a rule, and `odd` where each could be but some should not exist.
fn verdict(audit: &FileAudit) -> &'static str {
    match (audit.is_sound(), audit.closed_days.is_empty()) {
        (true, true) => "ok   ",
        (true, false) => "odd  ",
        (false, _) => "wrong",
    }
}

fn print(args: &CheckArgs, file: &Checked, audit: &FileAudit, (gap, is_twice): (&[JstDate], bool)) {
    let timestamp = |timestamp: Option<TsNanos>| {
        timestamp.map_or("none".to_owned(), |timestamp| timestamp.to_string())
    };
    println!(
        "{} {}: {} {}, {} codes, {} to {}; {} business days without rows{}, {} quiet stretches",
        verdict(audit),
        file.path().display(),
        count(audit.rows),
        file.rows(),
        audit.codes.len(),
        timestamp(audit.first),
        timestamp(audit.last),
        audit.empty_days.len(),
        dates(&audit.empty_days),
        count(quiet(audit)),
    );
    if !gap.is_empty() {
        let (count, dates) = (gap.len(), dates(gap));
        println!("      {count} business days after the file before have no rows{dates}");
    }
    if is_twice {
        println!("      not read by a replay, because the file of its month has the day");
    }
    if !audit.closed_days.is_empty() {
        let (count, dates) = (audit.closed_days.len(), dates(&audit.closed_days));
        println!("      {count} days with rows on which the exchange is closed{dates}");
    }
    if let Some(error) = &audit.stopped {
        println!("      stopped: {error}");
    }
    if audit.defects.total() > 0 {
        let kinds: Vec<String> = named(&audit.defects)
            .map(|(name, rows)| format!("{} {}", count(rows), name.replace('_', " ")))
            .collect();
        println!("      {} bad rows: {}", count(audit.defects.total()), kinds.join(", "));
        for example in &audit.examples {
            println!("      {example}");
        }
        let more = audit.defects.total().saturating_sub(audit.examples.len() as u64);
        if more > 0 {
            println!("      and {} more", count(more));
        }
    }
    if args.per_code && !audit.codes.is_empty() {
        print!("{}", columns(&code_rows(&audit.codes)));
    }
}

/// ` (2025-01-07, 2025-01-08, ...)`.
fn dates(dates: &[JstDate]) -> String {
    if dates.is_empty() {
        return String::new();
    }
    let mut shown: Vec<String> = dates.iter().take(DATES_SHOWN).map(ToString::to_string).collect();
    if dates.len() > DATES_SHOWN {
        shown.push("...".to_owned());
    }
    format!(" ({})", shown.join(", "))
}

fn named(defects: &DefectCounts) -> impl Iterator<Item = (&'static str, u64)> {
    let pairs = Defect::ALL.map(|defect| (defect.name(), defects.of(defect)));
    pairs.into_iter().filter(|(_, rows)| *rows > 0)
}

fn code_rows(codes: &[CodeAudit]) -> Vec<Vec<String>> {
    let head = [
        "code",
        "rows",
        "shares",
        "days",
        "missing",
        "quiet",
        "longest",
        "repeated",
        "duplicate",
        "disorder",
        "off session",
        "bad range",
        "other bad",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for code in codes {
        let of = |defect| code.defects.of(defect);
        let known =
            [Defect::Duplicate, Defect::OutOfOrder, Defect::OffSession, Defect::Range].map(of);
        let others = code.defects.total() - known.iter().sum::<u64>();
        let mut row = vec![
            code.code.to_string(),
            count(code.rows),
            grouped(&code.volume.to_string()),
            code.days.to_string(),
            code.missing_days.len().to_string(),
            count(code.quiet),
            format!("{} min", code.longest_quiet_minutes),
            count(code.same_timestamp_and_price),
        ];
        row.extend(known.map(count));
        row.push(count(others));
        rows.push(row);
    }
    rows
}

fn report(
    args: &CheckArgs,
    file: &Checked,
    audit: &FileAudit,
    (gap, is_twice): (&[JstDate], bool),
) -> Value {
    let texts = |dates: &[JstDate]| dates.iter().map(ToString::to_string).collect::<Vec<_>>();
    let defects = |counts: &DefectCounts| -> Map<String, Value> {
        let pair = |defect: Defect| (defect.name().to_owned(), json!(counts.of(defect)));
        Defect::ALL.into_iter().map(pair).collect()
    };
    let code = |code: &CodeAudit| {
        json!({
            "code": code.code.as_str(),
            "rows": code.rows,
            "rows_without_trade": code.rows_without_trade,
            "volume": code.volume.to_string(),
            "days": code.days,
            "missing_days": texts(&code.missing_days),
            "first_ns": code.first,
            "last_ns": code.last,
            "quiet_stretches": code.quiet,
            "longest_quiet_minutes": code.longest_quiet_minutes,
            "same_moment_and_price": code.same_timestamp_and_price,
            "bad_rows": code.defects.total(),
            "defects": defects(&code.defects),
        })
    };
    let error = audit.stopped.as_ref().map(ToString::to_string);
    let mut whole = json!({
        "file": file.path().display().to_string(),
        "kind": file.rows().replace(' ', "_"),
        "ok": audit.is_sound(),
        "rows": audit.rows,
        "codes": audit.codes.len(),
        "first_ns": audit.first,
        "last_ns": audit.last,
        "error": error.or_else(|| audit.examples.first().cloned()),
        "bad_rows": audit.defects.total(),
        "defects": defects(&audit.defects),
        "examples": audit.examples,
        "empty_days": texts(&audit.empty_days),
        "empty_days_after_file_before": texts(gap),
        "closed_days": texts(&audit.closed_days),
        "in_month_file": is_twice,
        "quiet_minutes": args.quiet_minutes,
        "quiet_stretches": quiet(audit),
    });
    if args.per_code {
        whole["per_code"] = audit.codes.iter().map(code).collect();
    }
    whole
}
