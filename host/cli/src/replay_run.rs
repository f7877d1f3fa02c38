//! `kumiki replay run`: load the data, load the strategy, replay, show, write.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, Result, bail};
use domain::clock::Stopwatch;
use domain::time::NANOS_PER_DAY;
use domain::{Instrument, JstDate, Quantity, TickTable, TsNanos, VendorCode};
use marketdata::{CacheOutcome, Catalog, PriceGrid, TradeFile, TradeSegment, TradeStore};
use replay::output::{ComponentIdentity, InputFile, Manifest, Summary, write_run};
use replay::{Control, ExecutionModel, ReplayOptions, RunResult, RunStatus, TradeSeries, replay};
use sandbox::{Limits, StrategyModule};

use crate::Ending;
use crate::args::{Format, RunArgs, TickChoice};
use crate::interrupt::Interrupt;
use crate::paths;
use crate::progress::ProgressLine;
use crate::strategy;
use crate::terminal::{grouped, pairs, percent};

/// Trades handed to the strategy at once unless the user says otherwise.
const RUN_WINDOW: u32 = 1;

/// The data of a run.
pub(crate) struct Loaded {
    pub(crate) series: TradeSeries,
    pub(crate) inputs: Vec<InputFile>,
    pub(crate) ticks: TickTable,
    range: (JstDate, JstDate),
}

/// Runs the command.
pub(crate) fn run(args: &RunArgs) -> Result<Ending> {
    let interrupt = Interrupt::listen()?;
    let watch = Stopwatch::start();
    // The strategy first: it is quick, and its errors should not wait for the data.
    let module = strategy::load(&args.strategy, &args.folders)?;
    let Some(loaded) = load_data(args, &interrupt)? else { return Ok(Ending::Interrupted) };
    let loading_s = watch.elapsed().as_secs_f64();
    let options = options(args, loaded.ticks);
    let watch = Stopwatch::start();
    let result = run_strategy(args, &module, &loaded, &options, &interrupt)?;
    let running_s = watch.elapsed().as_secs_f64();
    let manifest = manifest(&options, &result, &module, &loaded);
    if let Some(folder) = &args.out {
        write_run(folder, &manifest, &result)?;
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

/// The trades asked for; `None` when the user stopped it.
pub(crate) fn load_data(args: &RunArgs, interrupt: &Interrupt) -> Result<Option<Loaded>> {
    let code = args.instrument.vendor_code()?;
    let catalog = Catalog::open(&args.data)?;
    let (first, last) = (args.start.unwrap_or(JstDate::MIN), args.end.unwrap_or(JstDate::MAX));
    if first > last {
        bail!("--start {first} is after --end {last}");
    }
    let files = catalog.overlapping(first, last);
    let store = TradeStore::new(paths::cache_folder(&args.folders)?.join("trades"));
    let mut series = TradeSeries::default();
    let mut inputs = Vec::new();
    let mut grid: Option<PriceGrid> = None;
    for file in files {
        let Some(segment) = load_file(&store, file, code, args.quiet, interrupt)? else {
            return Ok(None);
        };
        let rows = segment.row_range(day_start(first), day_end(last));
        if rows.is_empty() {
            continue;
        }
        let found = segment.price_grid();
        grid = Some(grid.map_or(found, |grid| grid.and(found)));
        inputs.push(InputFile {
            file: name_of(file),
            xxh3_128: format!("{:032x}", segment.source_hash()),
            rows: rows.len() as u64,
        });
        series.push(segment, rows);
    }
    let days = series.days().map(|day| day.ts_at(0).jst_date());
    let (Some(range), Some(grid)) = (first_and_last(days), grid) else {
        bail!(
            "{} has no trades of {} (vendor code {code}) from {} to {}; look at the names of its \
             files and at the dates",
            args.data.display(),
            args.instrument,
            args.start.map_or("the beginning".to_owned(), |date| date.to_string()),
            args.end.map_or("the end".to_owned(), |date| date.to_string()),
        );
    };
    let ticks = match args.ticks {
        TickChoice::Table(table) => table,
        TickChoice::Auto => grid.tick_table(),
    };
    Ok(Some(Loaded { series, inputs, ticks, range }))
}

fn name_of(file: &TradeFile) -> String {
    file.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn first_and_last(mut dates: impl Iterator<Item = JstDate>) -> Option<(JstDate, JstDate)> {
    let first = dates.next()?;
    Some((first, dates.last().unwrap_or(first)))
}

fn day_start(date: JstDate) -> TsNanos {
    TsNanos::from_jst(date, 0).unwrap_or_default()
}

fn day_end(date: JstDate) -> TsNanos {
    TsNanos::from_jst(date, NANOS_PER_DAY).unwrap_or(TsNanos::MAX)
}

fn load_file(
    store: &TradeStore,
    file: &TradeFile,
    code: VendorCode,
    quiet: bool,
    interrupt: &Interrupt,
) -> Result<Option<TradeSegment>> {
    let bytes = file.path.metadata().map_or(0, |metadata| metadata.len());
    let mut line = ProgressLine::start(&format!("reading {}", name_of(file)), bytes, true, quiet);
    let loaded = store.load(file, &[code], &mut |progress| {
        line.update(progress.compressed_bytes, || format!("{} rows", progress.rows_scanned));
        if interrupt.is_wanted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    line.finish();
    let segment = match loaded {
        Err(marketdata::DataError::Cancelled { .. }) => {
            eprintln!("interrupted while reading {}; nothing was run", name_of(file));
            return Ok(None);
        }
        other => other?.pop().context("the reader gave no rows for the code")?,
    };
    match segment.outcome() {
        CacheOutcome::Rebuilt(reason) => {
            eprintln!("note: the cache of {} was made again: {reason}", name_of(file));
        }
        CacheOutcome::Unwritable(reason) => {
            eprintln!("note: {} could not be cached: {reason}", name_of(file));
        }
        _ => {}
    }
    Ok(Some(segment))
}

/// The options that the arguments ask for.
pub(crate) fn options(args: &RunArgs, ticks: TickTable) -> ReplayOptions {
    ReplayOptions {
        instrument: Instrument { id: args.instrument.clone(), lot: Quantity::new(args.lot), ticks },
        cash: args.cash,
        model: ExecutionModel {
            latency_ns: args.latency,
            slippage_ticks: args.slippage_ticks,
            participation_percent: args.participation,
        },
        window: args.window.unwrap_or(RUN_WINDOW),
        config_json: strategy::config_json(&args.params),
    }
}

fn run_strategy(
    args: &RunArgs,
    module: &StrategyModule,
    loaded: &Loaded,
    options: &ReplayOptions,
    interrupt: &Interrupt,
) -> Result<RunResult> {
    let mut instance = module.instantiate(Limits::default())?;
    let total = loaded.series.len() as u64;
    let mut line = ProgressLine::start("replaying", total, false, args.quiet);
    let result = replay(loaded.series.days(), &mut instance, options, &mut |progress| {
        line.update(progress.trades_seen, || progress.now.jst_date().to_string());
        if interrupt.is_wanted() { Control::Stop } else { Control::Continue }
    });
    line.finish();
    Ok(result?)
}

fn manifest(
    options: &ReplayOptions,
    result: &RunResult,
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
    Manifest::new(options, result, component, loaded.inputs.clone(), range)
}

fn last_seen(result: &RunResult) -> String {
    result.span.map_or("before the first trade".to_owned(), |(_, last)| last.to_string())
}

fn print_table(args: &RunArgs, manifest: &Manifest, result: &RunResult, timing: &Timing) {
    let summary = Summary::new(result);
    let model = manifest.execution_model;
    println!(
        "{} on {}, {} to {}: {}\n",
        manifest.component.name,
        manifest.instrument_id,
        manifest.start,
        manifest.end,
        summary.status
    );
    let yen = |text: &str| format!("{} yen", grouped(text));
    let count = |number: u64| grouped(&number.to_string());
    let ratio = |ratio: Option<f64>| ratio.map_or("-".to_owned(), percent);
    print!(
        "{}",
        pairs(&[
            ("trades seen", count(summary.trades_seen)),
            (
                "orders",
                format!(
                    "{} ({} filled, {} rejected, {} expired, {} canceled)",
                    count(summary.orders),
                    count(summary.orders_filled),
                    count(summary.orders_rejected),
                    count(summary.orders_expired),
                    count(summary.orders_canceled)
                )
            ),
            ("fills", count(summary.fills)),
            (
                "round trips",
                format!("{} ({} won)", count(summary.round_trips), ratio(summary.win_rate))
            ),
            ("cash at start", yen(&summary.cash_start)),
            ("equity at end", yen(&summary.equity_end)),
            ("position at end", format!("{} shares", summary.position_end)),
            ("profit", format!("{} ({})", yen(&summary.profit), ratio(summary.return_ratio))),
            (
                "max drawdown",
                format!("{} ({})", yen(&summary.max_drawdown), percent(summary.max_drawdown_ratio))
            ),
            ("turnover", yen(&summary.turnover)),
            ("our share of volume", percent(summary.participation)),
            (
                "fill model",
                format!(
                    "latency {} ns, slippage {} ticks ({}), participation {} %, lot {}",
                    model.latency_ns,
                    model.slippage_ticks,
                    manifest.ticks,
                    model.participation_percent,
                    manifest.lot
                )
            ),
            (
                "event log",
                format!("{} ({} records)", summary.event_log_digest, manifest.event_log_records)
            ),
            ("time", speed(summary.trades_seen, timing)),
        ])
    );
    match &args.out {
        Some(folder) => println!("\nreport: {}", folder.join("report.html").display()),
        None => println!("\n--out DIR keeps orders, fills, equity and a report."),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn speed(trades: u64, timing: &Timing) -> String {
    let rate = trades as f64 / timing.running_s.max(1e-9) / 1e6;
    format!(
        "{:.3} s loading, {:.3} s running ({rate:.1} million trades/s)",
        timing.loading_s, timing.running_s
    )
}

fn print_json(args: &RunArgs, manifest: &Manifest, result: &RunResult, timing: &Timing) {
    let whole = serde_json::json!({
        "summary": Summary::new(result),
        "manifest": manifest,
        "out": args.out.as_deref().map(Path::display).map(|path| path.to_string()),
        "timing": { "loading_s": timing.loading_s, "running_s": timing.running_s },
    });
    println!("{whole:#}");
}
