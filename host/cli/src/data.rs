//! `kumiki data`: sample data, checks of vendor files, and what a data folder holds.

use std::path::PathBuf;

use anyhow::{Context, Result};
use domain::VendorCode;
use domain::clock::Stopwatch;
use marketdata::{
    Catalog, FileReport, SampleCodes, SampleSpec, TradeFile, check_file, write_sample,
};
use ranking::console::{Console, ConsoleOptions};
use ranking::sample::{DailySample, make_daily_sample};
use ranking::store::DataDir;
use ranking::{CancelToken, EngineOptions, RankEngine, RankError};
use serde_json::json;

use crate::Ending;
use crate::args::{CheckArgs, Format, InfoArgs, SampleArgs};
use crate::terminal::{grouped, pairs};

/// Days of sample trades.
const TRADE_DAYS: u32 = 20;

/// Makes sample data.
pub(crate) fn sample(args: &SampleArgs) -> Result<Ending> {
    if args.daily {
        return daily_sample(args);
    }
    let out = args.out.as_deref().context("--out DIR is missing")?;
    let default = ["7203.TSE".parse()?];
    let instruments =
        if args.instruments.is_empty() { &default[..] } else { args.instruments.as_slice() };
    let codes: Vec<VendorCode> =
        instruments.iter().map(domain::InstrumentId::vendor_code).collect::<Result<_, _>>()?;
    let report = write_sample(
        out,
        &SampleSpec {
            seed: args.seed,
            start: args.start.map_or_else(|| "2025-01-06".parse(), Ok)?,
            days: args.days.unwrap_or(TRADE_DAYS),
            codes: SampleCodes::These(codes),
            trades_per_code_day: args.trades_per_day,
        },
    )?;
    println!(
        "{} trades in {} file(s) in {}",
        grouped(&report.rows.to_string()),
        report.files.len(),
        out.display()
    );
    Ok(Ending::Done)
}

/// Makes a combined database of daily prices and the snapshot that rankings read.
fn daily_sample(args: &SampleArgs) -> Result<Ending> {
    let watch = Stopwatch::start();
    let usual = DailySample::default();
    let sample = DailySample {
        codes: args.codes.unwrap_or(usual.codes),
        days: args.days.map_or(Ok(usual.days), usize::try_from)?,
        seed: args.seed,
        first: args.start.unwrap_or(usual.first),
    };
    let made = make_daily_sample(&DataDir::new(&args.data_dir), &sample)?;
    println!(
        "{} rows of {} issues on {} business days, {} to {}, in {} ({:.1} s)",
        grouped(&made.rows.to_string()),
        grouped(&made.published.codes.to_string()),
        grouped(&made.published.days.to_string()),
        made.published.range.0,
        made.published.range.1,
        args.data_dir.display(),
        watch.elapsed().as_secs_f64()
    );
    Ok(Ending::Done)
}

/// Shows what a data folder holds: the snapshot of rankings, and the views of `kumiki sql`.
pub(crate) fn info(args: &InfoArgs) -> Result<Ending> {
    let data = DataDir::new(&args.data.data_dir);
    let snapshot = match RankEngine::open(data.path(), EngineOptions::single_query()) {
        Ok(engine) => Some(engine.snapshot()),
        Err(RankError::NoData(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let console = Console::open(&data, &ConsoleOptions::default())?;
    let mut views = Vec::new();
    for view in console.views() {
        let sql = format!("SELECT count(*) FROM \"{}\"", view.name);
        let counted = console.query(&sql, &CancelToken::new())?;
        let rows = counted.rows.into_iter().flatten().flatten().next().unwrap_or_default();
        views.push((view, rows));
    }
    if args.format == Format::Json {
        let views: Vec<_> = views
            .iter()
            .map(|(view, rows)| {
                let columns =
                    view.columns.iter().map(|(name, kind)| json!({ "name": name, "type": kind }));
                let rows = rows.parse::<u64>().ok();
                json!({ "name": view.name, "rows": rows, "columns": columns.collect::<Vec<_>>() })
            })
            .collect();
        let snapshot = snapshot.map(|found| {
            json!({
                "number": found.number, "issues": found.codes, "business_days": found.days,
                "first": found.first.to_string(), "last": found.last.to_string(),
            })
        });
        println!("{:#}", json!({ "snapshot": snapshot, "views": views }));
        return Ok(Ending::Done);
    }
    match snapshot {
        Some(found) => println!(
            "snapshot {} of rankings: {} issues, {} business days, {} to {}",
            found.number,
            grouped(&found.codes.to_string()),
            grouped(&found.days.to_string()),
            found.first,
            found.last
        ),
        None => println!("no snapshot of rankings yet; `kumiki rank publish` makes one"),
    }
    let names = views.iter().map(|(view, rows)| {
        let columns: Vec<&str> = view.columns.iter().map(|(name, _)| name.as_str()).collect();
        (view.name.as_str(), format!("{} rows: {}", grouped(rows), columns.join(", ")))
    });
    print!("{}", pairs(&names.collect::<Vec<_>>()));
    Ok(Ending::Done)
}

/// Checks every row of trades files.
pub(crate) fn check(args: &CheckArgs) -> Result<Ending> {
    let mut files = Vec::new();
    for path in &args.paths {
        if path.is_dir() {
            files.extend(Catalog::open(path)?.files().iter().cloned());
        } else {
            files.push(TradeFile::from_path(path)?);
        }
    }
    let mut reports = Vec::new();
    let mut all_good = true;
    for file in &files {
        let checked = check_file(file).map_err(|error| error.to_string());
        all_good &= checked.is_ok();
        match args.format {
            Format::Table => print_report(file, &checked),
            Format::Json => reports.push(json_report(file.path.clone(), &checked)),
        }
    }
    if args.format == Format::Json {
        println!("{:#}", json!(reports));
    }
    Ok(if all_good { Ending::Done } else { Ending::Problems })
}

fn print_report(file: &TradeFile, checked: &Result<FileReport, String>) {
    match checked {
        Ok(report) => println!(
            "ok    {}: {} rows, {} codes, {} to {}",
            file.path.display(),
            grouped(&report.rows.to_string()),
            report.codes,
            report.first,
            report.last
        ),
        Err(error) => println!("wrong {error}"),
    }
}

fn json_report(path: PathBuf, checked: &Result<FileReport, String>) -> serde_json::Value {
    let report = checked.as_ref().ok();
    json!({
        "file": path.display().to_string(),
        "ok": report.is_some(),
        "rows": report.map(|report| report.rows),
        "codes": report.map(|report| report.codes),
        "error": checked.as_ref().err(),
    })
}
