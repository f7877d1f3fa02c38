//! `kumiki replay merge`: parts of a sweep, made on several machines, put together.

use anyhow::{Context, Result};
use domain::clock::Stopwatch;
use sweep::{Merged, PartFolder, Points, RowRange, SweepFolder};

use crate::Ending;
use crate::args::MergeArgs;
use crate::replay_sweep::complete;
use crate::sweep_report::Report;

/// Of how many of the best runs the report tells, where so many were made again.
const TOP: usize = 10;

/// Runs the command.
pub(crate) fn run(args: &MergeArgs) -> Result<Ending> {
    let watch = Stopwatch::start();
    let points = args.points.as_deref().map(Points::read).transpose().context("--points")?;
    let mut parts: Vec<PartFolder> = args.parts.iter().cloned().map(PartFolder).collect();
    // What is there of the same sweep stays.
    parts.extend(SweepFolder::has_manifest(&args.out).then(|| PartFolder(args.out.clone())));
    let merged = Merged::read(&parts, points)?;
    for warning in &merged.warnings {
        eprintln!("note: {warning}");
    }
    let missing = missing(&merged);
    if let Some(missing) = missing.as_ref().filter(|_| !args.partial) {
        eprintln!("{missing}; nothing was written: --partial writes what there is");
        return Ok(Ending::Incomplete);
    }
    let folder = SweepFolder::prepare(&args.out)?;
    let files = merged.write(&folder)?;
    let verify = merged.asked.verify;
    let report = Report {
        format: args.format,
        plan: &merged.plan,
        results: &merged.results,
        rank_by: merged.asked.rank_by,
        top: if verify == 0 { TOP } else { verify.min(TOP) },
        manifest: merged.manifest,
        files,
        running_s: watch.elapsed().as_secs_f64(),
    };
    report.print();
    match missing {
        None => Ok(complete(&report.manifest)),
        Some(missing) => {
            eprintln!("{missing}; `kumiki replay sweep` goes on in {}", args.out.display());
            Ok(Ending::Incomplete)
        }
    }
}

/// What the parts do not have, in words.
fn missing(merged: &Merged) -> Option<String> {
    let rows = merged.missing();
    let (done, all) = (merged.results.done(), merged.plan.rows());
    if !rows.is_empty() {
        let rows = RowRange::in_words(&rows);
        return Some(format!("the parts have {done} of {all} rows and miss {rows}"));
    }
    merged.results.is_unverified.then(|| {
        "the parts have all rows, but not all of the best runs were made again with window 1"
            .to_owned()
    })
}
