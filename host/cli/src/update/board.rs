//! `kumiki data boards`: publishes what a live engine recorded.

use std::ops::ControlFlow;

use anyhow::Result;
use http_client::CancellationToken;
use pricestore::DataDir;
use update::store::{BoardReport, DamagedSegment, StoreError, publish_board};

use crate::Ending;
use crate::args::{BoardsArgs, Format};
use crate::interrupt::Interrupt;
use crate::progress::ProgressLine;
use crate::terminal::{grouped, pairs};

/// Symbols that the report for people names.
const SHOWN_MAX: usize = 10;

/// Runs the command.
pub(crate) fn run(args: &BoardsArgs) -> Result<Ending> {
    let cancel = CancellationToken::new();
    let wanted = cancel.clone();
    let _interrupt = Interrupt::listen_and(move || wanted.cancel())?;
    let data = DataDir::new(&args.data.prices);
    let mut line: Option<ProgressLine> = None;
    let published = publish_board(&data, &args.recordings, &mut |done, of, what| {
        let line = line.get_or_insert_with(|| ProgressLine::start(what, of, false));
        line.update(done, String::new);
        if cancel.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if let Some(line) = line {
        line.finish();
    }
    let report = match published {
        Err(StoreError::Cancelled) => {
            eprintln!("interrupted; what was published is kept, run it again to go on");
            return Ok(Ending::Interrupted);
        }
        other => other?,
    };
    match args.format {
        Format::Json => println!("{}", serde_json::to_string_pretty(&report)?),
        Format::Table => print!("{}", pairs(&summary(&report, &data))),
    }
    Ok(if report.damaged.is_empty() { Ending::Done } else { Ending::Incomplete })
}

fn summary(report: &BoardReport, data: &DataDir) -> Vec<(&'static str, String)> {
    let number = |value: u64| grouped(&value.to_string());
    let mut lines = vec![
        ("recorded days", number(report.days)),
        ("new segments", number(report.new_segments)),
        ("order books added", number(report.depth)),
        ("trades added", number(report.trades)),
        ("files written", number(report.written)),
        ("files unchanged", number(report.unchanged)),
        ("folder", data.jp_folder().join("stocks_board").display().to_string()),
    ];
    let named = |symbols: &[String]| {
        let mut named = symbols[..symbols.len().min(SHOWN_MAX)].join(", ");
        if symbols.len() > SHOWN_MAX {
            named.push_str(&format!(" and {} more", symbols.len() - SHOWN_MAX));
        }
        named
    };
    if !report.made_again.is_empty() {
        lines.push(("damaged, made again", named(&report.made_again)));
    }
    if !report.left_out.is_empty() {
        lines.push(("no code of an issue, left out", named(&report.left_out)));
    }
    for DamagedSegment { date, segment, file, why } in report.damaged.iter().take(SHOWN_MAX) {
        let what = format!("segment {segment} of {date}: {file} cannot be read: {why}");
        lines.push(("not published", what));
    }
    if report.damaged.len() > SHOWN_MAX {
        let more = format!("{} more segments", report.damaged.len() - SHOWN_MAX);
        lines.push(("not published", more));
    }
    lines
}
