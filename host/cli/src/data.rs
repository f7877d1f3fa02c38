//! `kumiki data sample` and `kumiki data convert`.

use std::ops::ControlFlow;

use anyhow::{Context, Result};
use domain::VendorCode;
use marketdata::{
    ConvertError, DataError, SampleCodes, SampleSpec, write_sample, write_sample_with_bars,
};

use crate::args::{ConvertArgs, SampleArgs};
use crate::interrupt::Interrupt;
use crate::progress::ProgressLine;
use crate::terminal::grouped;
use crate::{Ending, database};

/// Days of sample trades.
const TRADE_DAYS: u32 = 20;

/// Makes sample data.
pub(crate) fn sample(args: &SampleArgs) -> Result<Ending> {
    if args.daily {
        return database::sample(args);
    }
    let out = args.out.as_deref().context("the trades need a folder; give one with --out DIR")?;
    let default = ["7203.TSE".parse()?];
    let instruments =
        if args.instruments.is_empty() { &default[..] } else { args.instruments.as_slice() };
    let codes: Vec<VendorCode> =
        instruments.iter().map(domain::InstrumentId::vendor_code).collect::<Result<_, _>>()?;
    let spec = SampleSpec {
        seed: args.seed,
        start: args.from.map_or_else(|| "2025-01-06".parse(), Ok)?,
        days: args.days.unwrap_or(TRADE_DAYS),
        codes: SampleCodes::These(codes),
        trades_per_code_day: args.trades_per_day,
    };
    let report =
        if args.bars { write_sample_with_bars(out, &spec)? } else { write_sample(out, &spec)? };
    println!(
        "{} trades in {} file(s) in {}",
        grouped(&report.rows.to_string()),
        report.files.len(),
        out.display()
    );
    if args.bars {
        println!("their bars in {} file(s) beside", report.bar_files.len());
    }
    Ok(Ending::Done)
}

/// Turns a trades file into a table, or back.
pub(crate) fn convert(args: &ConvertArgs) -> Result<Ending> {
    let interrupt = Interrupt::listen()?;
    let bytes = args.from.metadata().map_or(0, |metadata| metadata.len());
    let mut line = ProgressLine::start("converting", bytes, true);
    let converted =
        marketdata::convert(&args.from, &args.to, args.instrument, args.force, &mut |progress| {
            line.update(progress.compressed_bytes, || format!("{} rows", progress.rows_scanned));
            if interrupt.is_wanted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    line.finish();
    let report = match converted {
        Err(ConvertError::Cancelled(_) | ConvertError::Data(DataError::Cancelled { .. })) => {
            eprintln!("interrupted; {} was not written", args.to.display());
            return Ok(Ending::Interrupted);
        }
        other => other?,
    };
    let count = |number: u64| grouped(&number.to_string());
    println!("{} rows in {}", count(report.rows), args.to.display());
    if report.rows_with_text > 0 {
        println!("{} of them in an unusual spelling, which is kept", count(report.rows_with_text));
    }
    Ok(Ending::Done)
}
