//! `kumiki data`: sample data, and checks of vendor files.

use std::path::PathBuf;

use anyhow::Result;
use domain::VendorCode;
use marketdata::{
    Catalog, FileReport, SampleCodes, SampleSpec, TradeFile, check_file, write_sample,
    write_sample_with_bars,
};
use serde_json::json;

use crate::Ending;
use crate::args::{CheckArgs, Format, SampleArgs};
use crate::terminal::grouped;

/// Makes sample data.
pub(crate) fn sample(args: &SampleArgs) -> Result<Ending> {
    let default = ["7203.TSE".parse()?];
    let instruments =
        if args.instruments.is_empty() { &default[..] } else { args.instruments.as_slice() };
    let codes: Vec<VendorCode> =
        instruments.iter().map(domain::InstrumentId::vendor_code).collect::<Result<_, _>>()?;
    let spec = SampleSpec {
        seed: args.seed,
        start: args.start,
        days: args.days,
        codes: SampleCodes::These(codes),
        trades_per_code_day: args.trades_per_day,
    };
    let report = if args.bars {
        write_sample_with_bars(&args.out, &spec)?
    } else {
        write_sample(&args.out, &spec)?
    };
    println!(
        "{} trades in {} file(s) in {}",
        grouped(&report.rows.to_string()),
        report.files.len(),
        args.out.display()
    );
    if args.bars {
        println!("their bars in {} file(s) beside", report.bar_files.len());
    }
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
