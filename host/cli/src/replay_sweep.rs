//! `kumiki replay sweep`: load once, run many times, show the best, write the folder.

use std::io::IsTerminal;
use std::num::NonZero;
use std::path::{Path, PathBuf};

use anyhow::Result;
use domain::clock::Stopwatch;
use domain::strategy::StrategyRuntime;
use domain::{JstDate, Money};
use exchange::NOT_MODELLED;
use replay::ReplayOptions;
use replay::data_set::DataSet;
use replay::limit_values;
use replay::request::{RunRequest, component_identity};
use sandbox::StrategyModule;
use serde_json::{Value, json};
use sweep::{
    Choice, Grid, Journal, Kept, Phase, Plan, ReplayRunner, Results, Score, Statistic, Sweep,
    SweepFolder, SweepManifest, SweepProgress, header, verify::Verdict,
};

use crate::Ending;
use crate::args::{Format, SweepArgs, refuse};
use crate::interrupt::Interrupt;
use crate::progress::ProgressLine;
use crate::replay_run::{self, Screen};
use crate::strategy;
use crate::terminal::{columns, grouped, not_modelled, pairs, percent};

/// Trades handed to the strategy at once unless the user says otherwise; several times faster than
/// one, with the same results.
const SWEEP_WINDOW: u32 = 1_024;

/// Runs the command.
pub(crate) fn run(args: &SweepArgs) -> Result<Ending> {
    let Some(out) = &args.run.out else {
        refuse("a sweep needs a folder for its results; give one with --out DIR");
    };
    if args.run.speed.is_some() {
        refuse("--speed paces a single run; a sweep goes as fast as it can: leave it out");
    }
    if args.run.commands.is_some() {
        refuse("--commands are those of one run; a sweep makes many: leave it out");
    }
    let grid = Grid::new(args.grid.clone(), strategy::parameters(&args.run.params))?;
    let interrupt = Interrupt::listen()?;
    let request = replay_run::request(&args.run, SWEEP_WINDOW)?;
    let module = match request.load_strategy(None, &|| interrupt.is_wanted()) {
        Ok(module) => module,
        Err(error) => return replay_run::ended(error),
    };
    let loaded = match request.data.load(&mut Screen::new(&interrupt, args.run.quiet)) {
        Ok(loaded) => loaded,
        Err(error) => return replay_run::ended(error),
    };
    let options = request.options(&loaded);
    options.check()?;
    for note in &loaded.notes {
        eprintln!("note: {note}");
    }
    let plan = plan(args, grid, &loaded)?;
    let header = sweep_header(args, &request, &module, &loaded, &options, &plan);
    let folder = SweepFolder::prepare(out)?;
    let (mut journal, kept) = Journal::open(folder.path(), &header)?;
    if let Some(warning) = &kept.warning {
        eprintln!("note: {warning}");
    }
    if !kept.runs.is_empty() {
        let (kept, all) = (kept.runs.len(), plan.rows());
        eprintln!("going on in {}: {kept} of {all} runs are kept", folder.path().display());
    }
    let watch = Stopwatch::start();
    let results = sweep(args, &module, &loaded, &options, &plan, &mut journal, kept, &interrupt)?;
    let running_s = watch.elapsed().as_secs_f64();
    let rules = options.model.rules().into_iter().map(|(name, text)| (name.into(), text)).collect();
    let manifest = SweepManifest::new(&plan, &results, args.rank_by, rules, header);
    let files = folder.write(&plan, &results, args.rank_by, &manifest)?;
    let report = Report { args, plan: &plan, results: &results, manifest, files, running_s };
    report.print();
    Ok(if results.is_complete() {
        match &report.manifest {
            manifest if manifest.runs_failed == plan.rows() => Ending::StrategyFailed,
            SweepManifest { best_run: None, runs_saw_the_future: 1.., .. } => Ending::Different,
            _ => Ending::Done,
        }
    } else {
        let (done, all) = (results.done(), plan.rows());
        eprintln!(
            "interrupted: {done} of {all} runs are done; the same command goes on from there"
        );
        Ending::Interrupted
    })
}

fn plan(args: &SweepArgs, grid: Grid, loaded: &DataSet) -> Result<Plan> {
    let days: Vec<JstDate> = loaded.series.calendar().days().to_vec();
    let choice = match (args.random, args.seed) {
        (Some(runs), Some(seed)) => Choice::Random { runs, seed },
        _ => Choice::All,
    };
    let walk_forward =
        args.walk_forward.map(|asked| Ok::<_, anyhow::Error>((asked, asked.folds(&days)?)));
    Ok(Plan::new(grid, choice, walk_forward.transpose()?, days)?)
}

/// Everything that results depend on. The window is not among it.
fn sweep_header(
    args: &SweepArgs,
    request: &RunRequest,
    module: &StrategyModule,
    loaded: &DataSet,
    options: &ReplayOptions,
    plan: &Plan,
) -> Value {
    let strategy = component_identity(module);
    let granularity = replay::data_set::Granularity::from(args.run.granularity);
    let shown = json!({
        "instrument_id": options.of_each(|instrument| instrument.id.to_string()),
        "granularity": granularity.as_str(),
        "bars_from": loaded.bars_from,
        "cash": options.cash.to_string(),
        "lot": options.of_each(|instrument| instrument.lot.to_string()),
        "ticks": options.of_each(|instrument| instrument.ticks.to_string()),
        "execution_model": options.model,
        "warning": options.model.warning(),
        "limits": limit_values(&request.limits),
    });
    let rank = (args.rank_by, args.verify > 0);
    header(&strategy, sandbox::ENGINE, loaded, options, &shown, plan, rank)
}

#[expect(clippy::too_many_arguments, reason = "everything that one sweep needs, named once")]
fn sweep(
    args: &SweepArgs,
    module: &StrategyModule,
    loaded: &DataSet,
    options: &ReplayOptions,
    plan: &Plan,
    journal: &mut Journal,
    kept: Kept,
    interrupt: &Interrupt,
) -> Result<Results> {
    let limits = args.run.limits.of_strategy()?;
    let instantiate = || -> Result<Box<dyn StrategyRuntime>, String> {
        match module.instantiate(limits) {
            Ok(instance) => Ok(Box::new(instance)),
            Err(error) => Err(error.to_string()),
        }
    };
    let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
    let runner = ReplayRunner::new(loaded.series.days(), options, &instantiate);
    let sweep = Sweep {
        plan,
        rank_by: args.rank_by,
        runner: &runner,
        // Every run that is printed as one of the best was made again.
        verify: if args.verify == 0 { 0 } else { args.verify.max(args.top) },
        jobs: args.jobs.unwrap_or_else(cores),
        stop: interrupt.flag(),
    };
    let mut line = ProgressLine::start("sweeping", plan.rows() as u64, false, args.run.quiet);
    let results = sweep.run(journal, kept, &mut |progress| {
        line.update(progress.done as u64, || so_far(args.rank_by, plan, progress));
    });
    line.finish();
    Ok(results?)
}

fn so_far(rank_by: Statistic, plan: &Plan, progress: SweepProgress) -> String {
    let best = progress.best.and_then(|(row, number)| {
        let values = parameters(plan, plan.run(row).combination?);
        Some(format!("best {rank_by} {number:.3} at {values}"))
    });
    let failed = (progress.failed > 0).then(|| format!("{} failed", progress.failed));
    let verified = (progress.verified > 0).then(|| format!("{} verified", progress.verified));
    let plain = (!std::io::stderr().is_terminal())
        .then(|| format!("{} of {} runs", progress.done, progress.total));
    let parts = [plain, best, failed, verified].into_iter().flatten();
    let parts: Vec<String> = parts.collect();
    parts.join(", ")
}

/// `fast=5 slow=50`.
fn parameters(plan: &Plan, combination: u64) -> String {
    let axes = plan.grid().axes().iter();
    let pairs = axes.zip(plan.grid().values(combination));
    let pairs: Vec<String> = pairs.map(|(axis, value)| format!("{}={value}", axis.name)).collect();
    pairs.join(" ")
}

/// What is printed at the end.
struct Report<'a> {
    args: &'a SweepArgs,
    plan: &'a Plan,
    results: &'a Results,
    manifest: SweepManifest,
    files: Vec<PathBuf>,
    running_s: f64,
}

impl Report<'_> {
    fn print(&self) {
        match self.args.run.format {
            Format::Table => self.table(),
            Format::Json => self.json(),
        }
    }

    /// The best runs, out-of-sample ones left out.
    fn top(&self) -> Vec<usize> {
        let chosen = (0..self.plan.rows()).filter(|row| self.plan.run(*row).phase != Phase::Test);
        let mut ranked = self.results.ranked(chosen, self.args.rank_by);
        ranked.truncate(self.args.top);
        ranked
    }

    fn table(&self) {
        let manifest = &self.manifest;
        let made = self.results.done() - self.results.kept;
        println!(
            "{} of {} runs done, {} failed, {} kept from before; {} in {:.1} s ({:.1} runs/s)",
            manifest.runs_done,
            manifest.runs_total,
            manifest.runs_failed,
            self.results.kept,
            made,
            self.running_s,
            rate(made, self.running_s)
        );
        let top = self.top();
        if !top.is_empty() {
            println!("\nbest by {}:\n", self.args.rank_by);
            print!("{}", columns(&self.rows(&top)));
        }
        if !self.plan.folds().is_empty() {
            println!("\nout of sample:\n");
            print!("{}", columns(&self.test_rows()));
            if let Some(all) = manifest.out_of_sample_return {
                println!("\nreturn of the test windows one after the other: {}", percent(all));
            }
        }
        print!("\n{}", pairs(&self.luck()));
        if let Some(error) = self.first_error() {
            println!("\nfirst failed run: {error}");
        }
        if let Some(warning) = self.manifest.made_from["options"]["warning"].as_str() {
            println!("\n{warning}");
        }
        println!("\n{}", not_modelled(NOT_MODELLED));
        let page = self.files.iter().find(|path| path.extension().is_some_and(|end| end == "html"));
        if let Some(page) = page {
            println!("\npage: {}", page.display());
        }
    }

    /// What the best run may owe to luck, and which runs saw the future.
    fn luck(&self) -> Vec<(&'static str, String)> {
        let (manifest, luck) = (&self.manifest, &self.manifest.luck);
        let or_why = |share: Option<f64>, why: &Option<String>| match share {
            Some(share) => percent(share),
            None => format!("- ({})", why.as_deref().unwrap_or("unknown")),
        };
        let deflated = match (luck.deflated_sharpe, luck.expected_max_sharpe) {
            (Some(share), Some(chance)) => format!(
                "{} (luck alone shows a Sharpe ratio of {chance:.3} in {} trials)",
                percent(share),
                luck.trials
            ),
            (share, _) => or_why(share, &luck.deflated_sharpe_missing),
        };
        let overfitting = or_why(luck.overfitting_probability, &luck.overfitting_missing);
        let verified = match (manifest.runs_verified, manifest.runs_saw_the_future) {
            (0, _) => "none".to_owned(),
            (runs, 0) => format!("{runs} runs came out the same with window 1"),
            (runs, seen) => format!("{seen} of {runs} runs SAW THE FUTURE and are not ranked"),
        };
        vec![
            ("deflated Sharpe ratio", deflated),
            ("probability of overfitting", overfitting),
            ("verified", verified),
        ]
    }

    fn rows(&self, rows: &[usize]) -> Vec<Vec<String>> {
        let axes = self.plan.grid().axes().iter().map(|axis| axis.name.clone());
        let has_folds = !self.plan.folds().is_empty();
        let mut head = vec!["run".to_owned()];
        head.extend(has_folds.then(|| "days".to_owned()));
        head.extend(axes);
        head.extend(NUMBERS.map(str::to_owned));
        head.push("verified".to_owned());
        let mut table = vec![head];
        for row in rows {
            let Some(run) = self.results.rows.get(*row).and_then(Option::as_ref) else { continue };
            let mut line = vec![row.to_string()];
            line.extend(has_folds.then(|| self.days(*row)));
            line.extend(self.values(run.combination));
            if let Some(score) = &run.score {
                line.extend(numbers(score));
                line.push(self.results.verdict(*row).map_or("-", Verdict::as_str).to_owned());
            }
            table.push(line);
        }
        table
    }

    fn test_rows(&self) -> Vec<Vec<String>> {
        let folds = 0..self.plan.folds().len();
        self.rows(&folds.map(|fold| self.plan.test_row(fold)).collect::<Vec<_>>())
    }

    fn values(&self, combination: Option<u64>) -> Vec<String> {
        match combination {
            Some(number) => {
                self.plan.grid().values(number).into_iter().map(str::to_owned).collect()
            }
            None => self.plan.grid().axes().iter().map(|_| "-".to_owned()).collect(),
        }
    }

    fn days(&self, row: usize) -> String {
        let period = self.plan.period(&self.plan.run(row).days);
        period.map_or("-".to_owned(), |(first, last)| format!("{first}..{last}"))
    }

    fn first_error(&self) -> Option<String> {
        self.results.rows.iter().flatten().find_map(|run| {
            let error = run.error.as_ref()?.lines().next().unwrap_or_default().to_owned();
            let values = run.combination.map(|number| parameters(self.plan, number));
            Some(format!("{} ({}): {error}", run.row, values.unwrap_or_default()))
        })
    }

    fn json(&self) {
        let run = |row: &usize| {
            let run = self.results.rows[*row].as_ref();
            let combination = run.and_then(|run| run.combination);
            let config = combination.map(|number| self.plan.grid().config_json(number));
            json!({
                "run": row,
                "days": self.days(*row),
                "parameters": config.and_then(|text| serde_json::from_str::<Value>(&text).ok()),
                "numbers": run.and_then(|run| run.score.as_ref()).map(json_numbers),
                "error": run.and_then(|run| run.error.as_ref()),
                "verified": self.results.verdict(*row).map(Verdict::as_str),
            })
        };
        let tests = (0..self.plan.folds().len()).map(|fold| self.plan.test_row(fold));
        let files: Vec<String> = self.files.iter().map(|path| name(path)).collect();
        let whole = json!({
            "sweep": self.manifest,
            "kept": self.results.kept,
            "top": self.top().iter().map(run).collect::<Vec<_>>(),
            "out_of_sample": tests.map(|row| run(&row)).collect::<Vec<_>>(),
            "files": files,
            "timing": { "running_s": self.running_s },
        });
        println!("{whole:#}");
    }
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

const NUMBERS: [&str; 7] =
    ["sharpe", "return", "max drawdown", "equity at end", "trips", "fills", "commission"];

fn numbers(score: &Score) -> Vec<String> {
    let ratio = |ratio: Option<f64>| ratio.map_or("-".to_owned(), percent);
    let money = |money: Money| grouped(&money.to_string());
    vec![
        score.sharpe.map_or("-".to_owned(), |sharpe| format!("{sharpe:.3}")),
        ratio(score.return_ratio),
        ratio(score.max_drawdown_ratio),
        money(score.equity_end),
        grouped(&score.round_trips.to_string()),
        grouped(&score.fills.to_string()),
        money(score.commission),
    ]
}

fn json_numbers(score: &Score) -> Value {
    let pair = |one: Statistic| (one.name().to_owned(), json!(one.of(score)));
    let mut all: serde_json::Map<String, Value> = Statistic::ALL.into_iter().map(pair).collect();
    all.insert("equity_end".to_owned(), json!(score.equity_end.to_string()));
    all.insert("turnover".to_owned(), json!(score.turnover.to_string()));
    all.insert("commission".to_owned(), json!(score.commission.to_string()));
    all.insert("orders".to_owned(), json!(score.orders));
    all.insert("digest".to_owned(), json!(score.digest));
    Value::Object(all)
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn rate(runs: usize, seconds: f64) -> f64 {
    runs as f64 / seconds.max(1e-9)
}
