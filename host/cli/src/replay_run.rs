//! `kumiki replay run`: load the data, load the strategy, replay, show, write.

use std::path::Path;

use anyhow::Result;
use domain::clock::Stopwatch;
use domain::strategy::FaultKind;
use domain::{Instrument, InstrumentId, Quantity, TickTable};
use replay::output::{ComponentIdentity, FolderWriter, Manifest, REPORT_FILE, Summary};
use replay::sink::{RunSink, TotalsOnly};
use replay::streaming::SystemClock;
use replay::{
    Control, Progress, ReplayOptions, RunStatus, RunTotals, SpeedDial, replay_into, stream_into,
};
use sandbox::{Limits, StrategyModule};

use crate::Ending;
use crate::args::{Format, RunArgs};
use crate::data_set::{self, Loaded};
use crate::execution;
use crate::interrupt::Interrupt;
use crate::progress::ProgressLine;
use crate::strategy;
use crate::terminal::{grouped, pairs, percent};

/// Rows handed to the strategy at once unless the user says otherwise.
const RUN_WINDOW: u32 = 1;

/// Runs the command.
pub(crate) fn run(args: &RunArgs) -> Result<Ending> {
    let interrupt = Interrupt::listen()?;
    let watch = Stopwatch::start();
    // The strategy first: it is quick, and its errors should not wait for the data.
    strategy::parameters(&args.params)?;
    let module = strategy::load(&args.strategy, &args.folders)?;
    let Some(loaded) = data_set::load(args, &interrupt)? else { return Ok(Ending::Interrupted) };
    let loading_s = watch.elapsed().as_secs_f64();
    let options = options(args, &loaded.ticks)?;
    let mut folder =
        args.out.as_deref().map(|out| FolderWriter::create(out, &args.instruments)).transpose()?;
    let sink: &mut dyn RunSink = match &mut folder {
        Some(folder) => folder,
        None => &mut TotalsOnly,
    };
    let watch = Stopwatch::start();
    let result = run_strategy(args, &module, &loaded, &options, sink, &interrupt)?;
    let running_s = watch.elapsed().as_secs_f64();
    if let RunStatus::Failed(fault) = &result.status
        && matches!(fault.kind, FaultKind::Refused(_))
    {
        // Nothing was replayed, and an earlier run in the folder is worth more than an empty one.
        eprintln!("error: {fault}");
        return Ok(Ending::StrategyFailed);
    }
    let manifest = manifest(args, &options, &result, &module, &loaded);
    if let Some(folder) = folder {
        folder.finish(&manifest, &result)?;
    }
    let timing = Timing { loading_s, running_s };
    match args.format {
        Format::Table => print_table(args, &manifest, &result, &timing),
        Format::Json => print_json(args, &manifest, &result, &timing),
    }
    Ok(match &result.status {
        RunStatus::Completed => Ending::Done,
        RunStatus::Interrupted => {
            eprintln!("interrupted: the results go up to {}", last_seen(&result));
            Ending::Interrupted
        }
        RunStatus::Failed(fault) => {
            eprintln!("error: {fault}");
            Ending::StrategyFailed
        }
    })
}

/// Seconds of the wall clock; printed, never written into the run's folder.
struct Timing {
    loading_s: f64,
    running_s: f64,
}

/// The options that the arguments ask for, with the tick tables of the instruments.
pub(crate) fn options(args: &RunArgs, ticks: &[TickTable]) -> Result<ReplayOptions> {
    let instrument = |(id, ticks): (&InstrumentId, &TickTable)| Instrument {
        id: id.clone(),
        lot: Quantity::new(args.lot),
        ticks: *ticks,
    };
    Ok(ReplayOptions {
        instruments: args.instruments.iter().zip(ticks).map(instrument).collect(),
        cash: args.cash,
        model: args.execution.model(),
        window: args.window.unwrap_or(RUN_WINDOW),
        config_json: strategy::config_json(&args.params)?,
    })
}

fn run_strategy(
    args: &RunArgs,
    module: &StrategyModule,
    loaded: &Loaded,
    options: &ReplayOptions,
    sink: &mut dyn RunSink,
    interrupt: &Interrupt,
) -> Result<RunTotals> {
    let mut instance = module.instantiate(Limits::default())?;
    let mut line = ProgressLine::start("replaying", loaded.total, false, args.quiet);
    let by_days = loaded.bars_from.is_some();
    let mut look = |progress: Progress| {
        let done = if by_days { progress.days_done } else { progress.trades_seen };
        line.update(done, || progress.now.jst_date().to_string());
        if interrupt.is_wanted() { Control::Stop } else { Control::Continue }
    };
    let days = loaded.series.days();
    let result = match args.speed {
        None => replay_into(days, &mut instance, options, sink, &mut look),
        Some(multiplier) => {
            let dial = SpeedDial::new(multiplier);
            let clock = &mut SystemClock::default();
            stream_into(days, &mut instance, options, sink, &mut look, &dial, clock, &mut ())
        }
    };
    line.finish();
    Ok(result?)
}

fn manifest(
    args: &RunArgs,
    options: &ReplayOptions,
    result: &RunTotals,
    module: &StrategyModule,
    loaded: &Loaded,
) -> Manifest {
    let artefact = module.artefact();
    let component = ComponentIdentity {
        name: artefact.name().to_owned(),
        sha256: artefact.sha256().to_owned(),
        imports: artefact.imports().to_vec(),
    };
    let range = (loaded.range.0.to_string(), loaded.range.1.to_string());
    let manifest = Manifest::new(options, result, component, loaded.inputs.clone(), range);
    Manifest {
        granularity: args.granularity.as_str().to_owned(),
        bars_from: loaded.bars_from.map(str::to_owned),
        ..manifest
    }
}

fn last_seen(result: &RunTotals) -> String {
    result.span.map_or("before the first trade".to_owned(), |(_, last)| last.to_string())
}

fn print_table(args: &RunArgs, manifest: &Manifest, result: &RunTotals, timing: &Timing) {
    let summary = Summary::new(result);
    println!(
        "{} on {}, {} to {}: {}\n",
        manifest.component.name,
        manifest.instrument_id,
        manifest.start,
        manifest.end,
        summary.status
    );
    print!("{}", pairs(&rows(&summary, manifest, timing)));
    if let Some(warning) = &manifest.warning {
        println!("\n{warning}");
    }
    if summary.orders_rejected > 0 {
        println!("\nwhy orders were rejected: `reason_text` in orders.csv, and the report");
    }
    match &args.out {
        Some(folder) => println!("\nreport: {}", folder.join(REPORT_FILE).display()),
        None => println!("\n--out DIR keeps orders, fills, equity and a report."),
    }
}

/// The lines of the summary for people.
fn rows(summary: &Summary, manifest: &Manifest, timing: &Timing) -> Vec<(&'static str, String)> {
    let yen = |text: &str| format!("{} yen", grouped(text));
    let count = |number: u64| grouped(&number.to_string());
    let ratio = |ratio: Option<f64>| ratio.map_or("-".to_owned(), percent);
    let plain =
        |number: Option<f64>| number.map_or("-".to_owned(), |number| format!("{number:.2}"));
    let mut rows = vec![
        (
            if manifest.bars_from.is_some() { "bars seen" } else { "trades seen" },
            format!("{} on {} days{}", count(summary.trades_seen), summary.days, source(manifest)),
        ),
        (
            "orders",
            format!(
                "{} ({} filled, {} rejected, {} expired, {} canceled)",
                count(summary.orders),
                count(summary.orders_filled),
                count(summary.orders_rejected),
                count(summary.orders_expired),
                count(summary.orders_canceled)
            ),
        ),
        ("fills", count(summary.fills)),
        ("round trips", round_trips(summary)),
        ("cash at start", yen(&summary.cash_start)),
        ("equity at end", yen(&summary.equity_end)),
        ("position at end", format!("{} shares", grouped(&summary.position_end.to_string()))),
        ("profit", format!("{} ({})", yen(&summary.profit), ratio(summary.return_ratio))),
        (
            "max drawdown",
            format!("{} ({})", yen(&summary.max_drawdown), percent(summary.max_drawdown_ratio)),
        ),
    ];
    rows.extend([
        ("return per year", ratio(summary.cagr)),
        ("volatility", ratio(summary.volatility)),
        (
            "ratios",
            format!(
                "Sharpe {}, Sortino {}, Calmar {}",
                plain(summary.sharpe),
                plain(summary.sortino),
                plain(summary.calmar)
            ),
        ),
        ("exposure", ratio(summary.exposure)),
        ("turnover", yen(&summary.turnover)),
        (
            "costs",
            format!("{} fees, {} slippage", yen(&summary.commission), yen(&summary.slippage)),
        ),
        ("our share of volume", percent(summary.participation)),
        ("fill model", fill_model(manifest)),
        (
            "event log",
            format!("{} ({} records)", summary.event_log_digest, manifest.event_log_records),
        ),
        ("time", speed(summary.trades_seen, timing)),
    ]);
    rows
}

/// Where bars came from, in words.
fn source(manifest: &Manifest) -> String {
    match &manifest.bars_from {
        Some(from) => format!(" ({} bars from {from} files)", manifest.granularity),
        None => String::new(),
    }
}

/// Round trips in words; with none there is no rate to tell.
fn round_trips(summary: &Summary) -> String {
    let Some(win_rate) = summary.win_rate else {
        return "none: no position went back to flat".to_owned();
    };
    let average = |amount: &Option<String>| amount.as_deref().map_or("-".to_owned(), grouped);
    let factor = summary.profit_factor.map_or("-".to_owned(), |factor| format!("{factor:.2}"));
    format!(
        "{} ({} won; average win {} yen, loss {} yen; profit factor {factor})",
        grouped(&summary.round_trips.to_string()),
        percent(win_rate),
        average(&summary.average_win),
        average(&summary.average_loss),
    )
}

fn fill_model(manifest: &Manifest) -> String {
    let model = execution::in_words(&manifest.execution_model);
    format!("{model}, ticks {}, lot {}", manifest.ticks, manifest.lot)
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn speed(trades: u64, timing: &Timing) -> String {
    let rate = trades as f64 / timing.running_s.max(1e-9) / 1e6;
    format!(
        "{:.3} s loading, {:.3} s running ({rate:.1} million rows/s)",
        timing.loading_s, timing.running_s
    )
}

fn print_json(args: &RunArgs, manifest: &Manifest, result: &RunTotals, timing: &Timing) {
    let whole = serde_json::json!({
        "summary": Summary::new(result),
        "manifest": manifest,
        "out": args.out.as_deref().map(Path::display).map(|path| path.to_string()),
        "timing": { "loading_s": timing.loading_s, "running_s": timing.running_s },
    });
    println!("{whole:#}");
}
