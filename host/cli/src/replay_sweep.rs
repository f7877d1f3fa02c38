//! `kumiki replay sweep`: load once, run many times, show the best, write the folder.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::num::NonZero;

use anyhow::{Context, Result, bail};
use domain::Instrument;
use domain::clock::Stopwatch;
use domain::strategy::StrategyRuntime;
use replay::ReplayOptions;
use replay::data_set::DataSet;
use replay::request::RunRequest;
use replay::{json_values, limit_values};
use sandbox::StrategyModule;
use serde_json::{Value, json};
use sweep::{
    Asked, Attempt, Choice, Grid, Journal, Kept, Plan, Points, ReplayRunner, Results, Statistic,
    Sweep, SweepFolder, SweepManifest, SweepProgress, header,
};
use trader::component_identity;
use trader::trial::reported_parameters;

use crate::Ending;
use crate::args::{SweepArgs, refuse};
use crate::interrupt::Interrupt;
use crate::progress::ProgressLine;
use crate::replay_run::{self, Screen};
use crate::strategy;
use crate::sweep_report::{Report, parameters};

/// Trades handed to the strategy at once unless the user says otherwise; several times faster than
/// one, with the same results.
const SWEEP_WINDOW: u32 = 1_024;

/// Configurations that are tried before a sweep; they take less than a second.
const TRIED_MAX: usize = 1_000;

/// Runs the command.
pub(crate) fn run(args: &SweepArgs) -> Result<Ending> {
    let Some(out) = &args.run.out else {
        refuse("a sweep needs a folder for its results; give one with --out DIR");
    };
    if args.run.speed.is_some() {
        refuse("--speed paces a single run, and a sweep goes as fast as it can; leave it out");
    }
    if args.run.commands.is_some() {
        refuse("--commands belong to one run, and a sweep makes many; leave it out");
    }
    let fixed = strategy::parameters(&args.run.params);
    let grid = match &args.points {
        Some(file) => Grid::of_points(Points::read(file).context("--points")?, fixed)?,
        None => Grid::new(args.grid.clone(), fixed)?,
    };
    let interrupt = Interrupt::listen()?;
    let request = replay_run::request(&args.run, SWEEP_WINDOW)?;
    let (module, loaded) = match request.load(&mut Screen::new(&interrupt)) {
        Ok(loaded) => loaded,
        Err(error) => return replay_run::ended(error),
    };
    let options = request.options(&loaded);
    options.check()?;
    let plan = plan(args, grid, &loaded)?;
    let header = sweep_header(args, &request, &module, &loaded, &options, &plan)?;
    let rows = plan.rows_of(args.rows)?;
    check_starts(&plan, &request, &module, &options.instruments_on(loaded.range.0))?;
    let folder = SweepFolder::prepare(out)?;
    let (mut journal, kept) = Journal::open(folder.path(), &header)?;
    for note in &loaded.notes {
        eprintln!("note: {note}");
    }
    if let Some(warning) = &kept.warning {
        eprintln!("note: {warning}");
    }
    if !kept.runs.is_empty() {
        let (kept, all) = (kept.runs.len(), plan.rows());
        eprintln!("going on in {}: {kept} of {all} runs are kept", folder.path().display());
    }
    let limits = args.run.limits.of_strategy()?;
    let instantiate = |attempt| -> Result<Box<dyn StrategyRuntime>, String> {
        let made = match attempt {
            Attempt::First { is_strict } => module.instantiate_quick(limits, is_strict),
            Attempt::Again => module.instantiate(limits),
        };
        match made {
            Ok(instance) => Ok(Box::new(instance)),
            Err(error) => Err(error.to_string()),
        }
    };
    let runner = ReplayRunner::new(loaded.series.days(), &options, &instantiate);
    let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
    let sweep = Sweep {
        plan: &plan,
        rank_by: args.rank_by,
        runner: &runner,
        rows,
        verify: verify(args),
        leaves_verifying: args.unverified,
        jobs: args.jobs.unwrap_or_else(cores),
        stop: interrupt.flag(),
    };
    let watch = Stopwatch::start();
    let results = swept(args, &sweep, &mut journal, kept)?;
    let running_s = watch.elapsed().as_secs_f64();
    let rules = options.model.rules().into_iter().map(|(name, text)| (name.into(), text)).collect();
    let asked = Asked { rank_by: args.rank_by, verify: verify(args) };
    let manifest = SweepManifest::new(&plan, &results, asked, rules, header);
    let files = folder.write(&plan, &results, args.rank_by, &manifest)?;
    let report = Report {
        format: args.run.format,
        plan: &plan,
        results: &results,
        rank_by: args.rank_by,
        top: args.limit,
        manifest,
        files,
        running_s,
    };
    report.print();
    let (done, all) = (results.done(), plan.rows());
    if results.is_complete() {
        Ok(complete(&report.manifest))
    } else if sweep.is_done(&results) {
        eprintln!(
            "a part: {done} of {all} runs are done; put the parts together with \
             `kumiki replay merge`"
        );
        Ok(Ending::Done)
    } else {
        eprintln!(
            "interrupted: {done} of {all} runs are done; the same command goes on from there"
        );
        Ok(Ending::Interrupted)
    }
}

/// Refuses a sweep whose strategy refuses each configuration, as with a misspelt parameter: each run would
/// only say the same. A sweep of more than [`TRIED_MAX`] configurations is not tried.
fn check_starts(
    plan: &Plan,
    request: &RunRequest,
    module: &StrategyModule,
    instruments: &[Instrument],
) -> Result<()> {
    let chosen: BTreeSet<u64> =
        (0..plan.rows()).map_while(|row| plan.run(row).combination).take(TRIED_MAX + 1).collect();
    if chosen.len() > TRIED_MAX {
        return Ok(());
    }
    let mut refusals = BTreeMap::<String, usize>::new();
    for combination in chosen {
        let mut instance = module.instantiate(request.limits)?;
        match instance.init(&plan.grid().config_json(combination), instruments) {
            Ok(()) => return Ok(()),
            Err(fault) => *refusals.entry(fault.to_string()).or_default() += 1,
        }
    }
    match refusals.into_iter().max_by_key(|(_, count)| *count) {
        Some((refusal, _)) => bail!("{refusal} (in all runs of the sweep; nothing was run)"),
        None => Ok(()),
    }
}

/// How a sweep that has all its runs ended.
pub(crate) fn complete(manifest: &SweepManifest) -> Ending {
    match manifest {
        manifest if manifest.runs_failed == manifest.runs_total => Ending::StrategyFailed,
        SweepManifest { best_run: None, runs_saw_the_future: 1.., .. } => Ending::Different,
        // What the sweep was made for is not there.
        SweepManifest { test_runs_saw_the_future: 1.., .. } => Ending::Different,
        _ => Ending::Done,
    }
}

/// How many of the best runs are made again: every run that is printed as one of them was.
fn verify(args: &SweepArgs) -> usize {
    if args.verify == 0 { 0 } else { args.verify.max(args.limit) }
}

fn plan(args: &SweepArgs, grid: Grid, loaded: &DataSet) -> Result<Plan> {
    let days = loaded.days.clone();
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
) -> Result<Value> {
    let strategy = component_identity(module);
    let config_json = plan.run(0).combination.map(|first| plan.grid().config_json(first));
    let instruments = options.instruments_on(loaded.range.0);
    let in_effect = reported_parameters(
        module,
        request.limits,
        config_json.as_deref().unwrap_or("{}"),
        &instruments,
    )?;
    let in_effect = in_effect.as_ref().map(json_values);
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
    let strategy = (&strategy, in_effect);
    Ok(header(strategy, sandbox::ENGINE, loaded, options, &shown, plan, rank))
}

fn swept(
    args: &SweepArgs,
    sweep: &Sweep<'_>,
    journal: &mut Journal,
    kept: Kept,
) -> Result<Results> {
    let mut line = ProgressLine::start("sweeping", sweep.rows.len() as u64, false);
    let results = sweep.run(journal, kept, &mut |progress| {
        line.update(progress.done as u64, || so_far(args.rank_by, sweep.plan, progress));
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
