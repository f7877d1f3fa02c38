//! `kumiki replay run`: ask for a replay, show how far it is and what came out.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::mpsc::channel;

use anyhow::{Context, Result};
use exchange::NOT_MODELLED;
use replay::data_set::DataRequest;
use replay::driver::{Paced, RunDriver, Scripted, SystemClock, Unpaced};
use replay::request::{FinishedRun, RequestOutcome, RunRequest};
use replay::{RequestError, RunCommand, RunObserver, RunPosition};
use results::output::json;
use results::output::{MANIFEST_FILE, Manifest, REPORT_FILE, commands, read_json};
use results::{RunStatus, RunTotals, Summary};

use crate::Ending;
use crate::args::{Format, Granularity, RunArgs, refuse};
use crate::execution;
use crate::interrupt::Interrupt;
use crate::output;
use crate::paths;
use crate::progress::{self, ProgressLine};
use crate::strategy;
use crate::terminal::{grouped, not_modelled, pairs, percent};

/// Rows handed to the strategy at once unless the user says otherwise.
const RUN_WINDOW: u32 = 1;

/// Runs the command.
pub(crate) fn run(args: &RunArgs) -> Result<Ending> {
    // A wait between two rows ends at once when the user wants an end.
    let (sender, commands) = channel();
    let interrupt = Interrupt::listen_and(move || {
        // Nobody listens any more once the run is over.
        let _ = sender.send(RunCommand::Stop);
    })?;
    if args.speed.is_some() && args.granularity == Granularity::Day {
        refuse("--speed paces trades and minutes, and daily bars have no pace; leave it out");
    }
    let request = request(args, RUN_WINDOW)?;
    let mut clock = SystemClock::default();
    let mut script = match &args.commands {
        Some(file) => {
            let read = commands::read(file, &args.instruments);
            Some(Scripted::from(read.context("--commands")?))
        }
        None => None,
    };
    let mut driver: Box<dyn RunDriver + '_> = match (args.speed, &mut script) {
        (Some(multiplier), _) => Box::new(Paced::new(multiplier, commands, &mut clock)),
        (None, Some(script)) => Box::new(script),
        (None, None) => Box::new(Unpaced),
    };
    let mut screen = Screen::new(&interrupt);
    let outcome = request.run(driver.as_mut(), None, &mut screen);
    drop(driver);
    let finished = match outcome {
        Ok(RequestOutcome::Finished(finished)) => finished,
        Ok(RequestOutcome::Refused(fault)) => {
            output::failure(&fault.to_string());
            return Ok(Ending::StrategyFailed);
        }
        Ok(RequestOutcome::Interrupted) => {
            eprintln!("interrupted before the first row; nothing was written");
            return Ok(Ending::Interrupted);
        }
        Err(error) => return ended(error),
    };
    match args.format {
        Format::Table => print_table(args, &finished),
        Format::Json => print_json(args, &finished),
    }
    if let Some(file) = &args.commands {
        tell_if_another(file, &finished.totals.digest.to_string());
    }
    Ok(match &finished.totals.status {
        RunStatus::Completed => {
            if let (Some(script), Some(file)) = (&script, &args.commands)
                && script.left() > 0
            {
                let (left, file) = (script.left(), file.display());
                eprintln!(
                    "{left} commands of {file} come after the last row of this run, and were not given"
                );
            }
            Ending::Done
        }
        // The commands themselves end the run where a person did.
        RunStatus::Interrupted if args.commands.is_some() && !interrupt.is_wanted() => Ending::Done,
        RunStatus::Interrupted => {
            eprintln!("interrupted: the results go up to {}", last_seen(&finished.totals));
            if let Some(folder) = args.out.as_deref().filter(|_| finished.is_earlier_kept) {
                let folder = folder.display();
                eprintln!(
                    "the results were not written: {folder} keeps the earlier run, which has ended"
                );
            }
            Ending::Interrupted
        }
        RunStatus::Failed(fault) => {
            output::failure(&fault.to_string());
            Ending::StrategyFailed
        }
    })
}

/// Says so where commands lie beside the run that they are of, and this one came out another way.
fn tell_if_another(commands: &Path, digest: &str) {
    let Some(folder) = commands.parent() else { return };
    // Commands by themselves are of no run that is known.
    let Ok(manifest) = read_json(folder, MANIFEST_FILE) else { return };
    if manifest["event_log_digest"] != digest {
        let folder = folder.display();
        eprintln!(
            "this run differs from that in {folder}: the strategy, its parameters, the dates, the cash or the execution \
             are others; `kumiki replay verify {folder}` makes the run there again"
        );
    }
}

/// A request that came to nothing; an end that the user asked for is no error.
pub(crate) fn ended(error: RequestError) -> Result<Ending> {
    match error {
        RequestError::Cancelled { .. } | RequestError::Stopped => {
            eprintln!("{error}");
            Ok(Ending::Interrupted)
        }
        error => Err(error.into()),
    }
}

/// What the arguments ask for.
pub(crate) fn request(args: &RunArgs, window: u32) -> Result<RunRequest> {
    let strategies = paths::strategies(&args.folders)?;
    Ok(RunRequest {
        data: DataRequest {
            folder: args.data.clone(),
            cache: strategies.cache.clone(),
            instruments: args.instruments.clone(),
            start: args.from,
            end: args.to,
            granularity: args.granularity.into(),
            choices: args.choices()?,
        },
        strategy: args.strategy.clone(),
        strategies,
        parameters: strategy::parameters(&args.params),
        cash: args.cash,
        model: args.execution.model(),
        limits: args.limits.of_strategy()?,
        window: args.window.unwrap_or(window),
        out: args.out.clone(),
        wall_clock: None,
    })
}

/// Shows how far a request is, and passes the user's wish for an end on.
pub(crate) struct Screen<'a> {
    interrupt: &'a Interrupt,
    line: Option<ProgressLine>,
    /// Whether progress counts days, not rows.
    by_days: bool,
}

impl<'a> Screen<'a> {
    pub(crate) const fn new(interrupt: &'a Interrupt) -> Self {
        Self { interrupt, line: None, by_days: false }
    }

    fn end_line(&mut self) {
        if let Some(line) = self.line.take() {
            line.finish();
        }
    }
}

impl RunObserver for Screen<'_> {
    fn file_begins(&mut self, name: &str, bytes: u64) {
        let what = format!("reading {name}");
        self.line = Some(ProgressLine::start(&what, bytes, true));
    }

    fn file_read(&mut self, bytes: u64, rows: u64) {
        if let Some(line) = &mut self.line {
            line.update(bytes, || format!("{rows} rows"));
        }
    }

    fn file_ends(&mut self) {
        self.end_line();
    }

    fn run_begins(&mut self, total: u64, counts_days: bool) {
        self.by_days = counts_days;
        self.line = Some(ProgressLine::start("replaying", total, false));
    }

    fn run_goes_on(&mut self, position: RunPosition) {
        let done = if self.by_days { position.days_done } else { position.rows_done };
        if let Some(line) = &mut self.line {
            line.update(done, || position.now.jst_date().to_string());
        }
    }

    fn run_ends(&mut self) {
        self.end_line();
    }

    fn run_is_made_again(&mut self, window: u32) {
        if progress::is_quiet() {
            return;
        }
        if window > 1 {
            eprintln!(
                "the strategy failed, or used more than one event may, in a window of {window}; the run is made again with window 1, \
                 to find the place"
            );
        } else if io::stderr().is_terminal() {
            // Only who sees the progress begin anew needs to know.
            eprintln!("the strategy failed; the run is made again step by step, to find the place");
        }
    }

    fn is_cancelled(&self) -> bool {
        self.interrupt.is_wanted()
    }
}

fn last_seen(result: &RunTotals) -> String {
    result.span.map_or("before the first trade".to_owned(), |(_, last)| last.to_string())
}

fn print_table(args: &RunArgs, finished: &FinishedRun) {
    let manifest = &finished.manifest;
    let summary = Summary::new(&finished.totals);
    println!(
        "{} on {}, {} to {}: {}\n",
        manifest.component.name,
        manifest.instrument_id,
        manifest.start,
        manifest.end,
        summary.status
    );
    print!("{}", pairs(&rows(&summary, finished)));
    if let Some(warning) = &manifest.warning {
        println!("\n{warning}");
    }
    let notes: String = manifest.notes.iter().map(|note| format!("\nnote: {note}")).collect();
    println!("{notes}\n\n{}", not_modelled(NOT_MODELLED));
    if manifest.window > 1 {
        println!(
            "\nwindow {}: a strategy that reads ahead in its memory gains by that; `kumiki replay verify` makes \
             the run again with 1",
            manifest.window
        );
    }
    if summary.orders_rejected > 0 {
        println!("\nwhy orders were rejected: `reason_text` in orders.csv, and the report");
    }
    match &args.out {
        Some(_) if finished.is_earlier_kept => {}
        Some(folder) => println!("\nreport: {}", folder.join(REPORT_FILE).display()),
        None => println!("\n--out DIR keeps orders, fills, equity and a report."),
    }
}

/// The lines of the summary for people.
fn rows(summary: &Summary, finished: &FinishedRun) -> Vec<(&'static str, String)> {
    let manifest = &finished.manifest;
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
        ("time", speed(finished)),
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
    let each = |values: &str| of_instruments(&manifest.instrument_id, values);
    format!("{model}, ticks {}, lot {}", each(&manifest.ticks), each(&manifest.lot))
}

/// Values of instruments in words, both lists with commas between: `100 (1306.TSE: 10)`.
fn of_instruments(ids: &str, values: &str) -> String {
    let first = values.split(',').next().unwrap_or_default();
    let others: Vec<String> = ids
        .split(',')
        .zip(values.split(','))
        .filter(|(_, value)| *value != first)
        .map(|(id, value)| format!("{id}: {value}"))
        .collect();
    match others.is_empty() {
        true => first.to_owned(),
        false => format!("{first} ({})", others.join(", ")),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn speed(finished: &FinishedRun) -> String {
    let (loading_s, running_s) = (finished.loading.as_secs_f64(), finished.running.as_secs_f64());
    let rate = finished.totals.trades_seen as f64 / running_s.max(1e-9) / 1e6;
    format!("{loading_s:.3} s loading, {running_s:.3} s running ({rate:.1} million rows/s)")
}

fn print_json(args: &RunArgs, finished: &FinishedRun) {
    let whole = serde_json::json!({
        "summary": Summary::new(&finished.totals),
        "manifest": finished.manifest,
        "out": args
            .out
            .as_deref()
            .filter(|_| !finished.is_earlier_kept)
            .map(|path| path.display().to_string()),
        "timing": {
            "loading_s": finished.loading.as_secs_f64(),
            "running_s": finished.running.as_secs_f64(),
        },
    });
    print!("{}", json::text(&whole));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lots_that_differ_are_named_with_their_instruments() {
        assert_eq!(of_instruments("7203.TSE", "100"), "100");
        assert_eq!(of_instruments("7203.TSE,9984.TSE", "100,100"), "100");
        let ids = "7203.TSE,1306.TSE,9984.TSE";
        assert_eq!(of_instruments(ids, "100,10,1"), "100 (1306.TSE: 10, 9984.TSE: 1)");
    }
}
