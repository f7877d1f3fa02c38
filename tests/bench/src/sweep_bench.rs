//! `cargo xtask bench sweep [--runs N]`: many runs over one code-month, on one thread and on two.
//!
//! 100 runs by default; `--runs 1000` is the figure of the goal.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use domain::JstDate;
use domain::clock::Stopwatch;
use domain::strategy::StrategyRuntime;
use replay::{ReplayOptions, TradeSeries};
use sandbox::{Limits, Sandbox, SandboxConfig, StrategyModule};
use serde_json::json;
use sweep::{
    Attempt, Choice, Grid, Journal, Kept, Outcome, Plan, ReplayRunner, Results, Runner, Statistic,
    Sweep,
};
use tests::{built, sample};

use crate::data::{BenchData, scratch};
use crate::measure::{figure, seconds};

/// Trades handed to the strategy at once, as `kumiki replay sweep` does.
const WINDOW: u32 = 1_024;
/// Sweeps with each number of jobs.
const ROUNDS: usize = 3;
/// The numbers of jobs that are compared.
const JOBS: [usize; 2] = [1, 2];
/// Values of `fast`; those of `slow` are as many as the runs need.
const FAST: u64 = 10;

/// Prints every figure.
pub(crate) fn run() {
    let runs = asked_runs();
    let data = BenchData::prepare();
    let cache = scratch();
    let folder = data.month.path.parent().unwrap_or(std::path::Path::new("."));
    let series = sample::load(folder, "72030", cache.path());
    let module = Sandbox::new(SandboxConfig::default())
        .and_then(|sandbox| sandbox.load(&built::strategy("sma-cross")))
        .unwrap_or_else(|error| panic!("{error}"));
    let options = sample::options("{}", WINDOW, "1");
    let plan = plan(&series, runs);
    let alone = alone(&series, &module, &options, &plan);
    let more = json!({ "trades": series.len() });
    figure("the middle run of the sweep alone", "ms", alone.0 * 1e3, alone.1 * 1e3, &more);
    let mut taken = [const { Vec::new() }; 2];
    let mut rows: Option<Vec<_>> = None;
    for _ in 0..ROUNDS {
        // Turn by turn, so that a busy minute of the machine meets both.
        for (taken, jobs) in taken.iter_mut().zip(JOBS) {
            let (time, results) = sweep(&series, &module, &options, &plan, jobs);
            assert!(results.is_complete() && results.failed() == 0, "every run has to end well");
            taken.push(time);
            match &rows {
                Some(rows) => assert!(*rows == results.rows, "{jobs} jobs gave other results"),
                None => rows = Some(results.rows),
            }
        }
    }
    for (taken, jobs) in taken.iter_mut().zip(JOBS) {
        taken.sort_by(|one, other| one.wall.total_cmp(&other.wall));
        let rate = |time: &Taken| runs as f64 / time.wall;
        let (best, median) = (taken[0], taken[ROUNDS / 2]);
        let more = json!({
            "runs": runs, "jobs": jobs, "cpu_ms_per_run": best.cpu.map(|cpu| (cpu * 1e3 / runs as f64).round()),
            "m_trades_per_s": (series.len() as f64 * rate(&best) / 1e5).round() / 10.0,
            "goal_min": (jobs == 2).then_some(40),
        });
        figure("sweep of one code-month", "runs/s", rate(&median), rate(&best), &more);
    }
    let ratio = |at: usize| taken[0][at].wall / taken[1][at].wall;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let more = json!({ "cores": cores, "goal_min": 1.9 });
    let name = "throughput of two jobs per one job";
    figure(name, "times", ratio(ROUNDS / 2), ratio(0), &more);
    if let (Some(one), Some(two)) = (taken[0][0].cpu, taken[1][0].cpu) {
        // Says the same on a machine that is busy with other things.
        let name = "processor time of a run with two jobs per one job";
        figure(name, "times", two / one, two / one, &json!({ "goal_max": 1.05 }));
    }
    share_of_alone(&series, &module, &options, &plan, taken[0][0].wall / runs as f64);
}

/// Seconds of the wall clock and, where the system tells it, of the processors.
#[derive(Debug, Clone, Copy)]
struct Taken {
    wall: f64,
    cpu: Option<f64>,
}

/// Seconds that all threads of this process have been on a processor.
fn cpu_seconds() -> Option<f64> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name before the last bracket may hold blanks; user and system time are 12th and 13th after.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

/// `--runs N`, else 100.
fn asked_runs() -> u64 {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    match arguments.as_slice() {
        [] => 100,
        [flag, number] if flag == "--runs" => number
            .parse()
            .ok()
            .filter(|runs| *runs >= FAST && runs % FAST == 0)
            .unwrap_or_else(|| panic!("--runs {number}: write a multiple of {FAST}")),
        other => panic!("unknown arguments {other:?}; there is: --runs N"),
    }
}

fn plan(series: &TradeSeries, runs: u64) -> Plan {
    let axes = [format!("fast=5:{}:5", 5 * FAST), format!("slow=60:{}:10", 50 + runs / FAST * 10)];
    let axes = axes.iter().map(|axis| axis.parse()).collect::<Result<_, _>>();
    let grid = axes.and_then(|axes| Grid::new(axes, BTreeMap::new()));
    let days: Vec<JstDate> = series.days().map(|day| day.ts_at(0).jst_date()).collect();
    let plan = grid.and_then(|grid| Plan::new(grid, Choice::All, None, days));
    let plan = plan.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plan.rows() as u64, runs);
    plan
}

fn instance(module: &StrategyModule, attempt: Attempt) -> Result<Box<dyn StrategyRuntime>, String> {
    let limits = Limits::default();
    let made = match attempt {
        Attempt::First { is_strict } => module.instantiate_quick(limits, is_strict),
        Attempt::Again => module.instantiate(limits),
    };
    match made {
        Ok(instance) => Ok(Box::new(instance)),
        Err(error) => Err(error.to_string()),
    }
}

/// Median and best seconds of the run in the middle of the plan, by itself.
fn alone(
    series: &TradeSeries,
    module: &StrategyModule,
    options: &ReplayOptions,
    plan: &Plan,
) -> (f64, f64) {
    let make = |attempt| instance(module, attempt);
    let runner = ReplayRunner::new(series.days(), options, &make);
    let config = plan.grid().config_json(plan.grid().combinations() / 2);
    let taken = seconds(|| one(&runner, &config, plan));
    (taken.median, taken.best)
}

fn one(runner: &dyn Runner, config: &str, plan: &Plan) {
    let outcome = runner.run(config, 0..plan.days().len(), &AtomicBool::new(false));
    assert!(matches!(outcome, Ok(Outcome::Scored(_))), "{outcome:?}");
}

fn sweep(
    series: &TradeSeries,
    module: &StrategyModule,
    options: &ReplayOptions,
    plan: &Plan,
    jobs: usize,
) -> (Taken, Results) {
    let make = |attempt| instance(module, attempt);
    let runner = ReplayRunner::new(series.days(), options, &make);
    let (folder, stop) = (scratch(), AtomicBool::new(false));
    let opened = Journal::open(folder.path(), &json!({}));
    let (mut journal, _) = opened.unwrap_or_else(|error| panic!("{error}"));
    let rank_by = Statistic::Sharpe;
    let (rows, leaves_verifying) = (0..plan.rows(), false);
    let sweep = Sweep {
        plan,
        rank_by,
        runner: &runner,
        rows,
        verify: 0,
        leaves_verifying,
        jobs,
        stop: &stop,
    };
    let (watch, before) = (Stopwatch::start(), cpu_seconds());
    let results = sweep.run(&mut journal, Kept::default(), &mut |_| {});
    let wall = watch.elapsed().as_secs_f64();
    let cpu = cpu_seconds().zip(before).map(|(now, before)| now - before);
    (Taken { wall, cpu }, results.unwrap_or_else(|error| panic!("{error}")))
}

/// What a run of the sweep takes on one thread, per the same runs one after the other without it.
fn share_of_alone(
    series: &TradeSeries,
    module: &StrategyModule,
    options: &ReplayOptions,
    plan: &Plan,
    per_run: f64,
) {
    let make = |attempt| instance(module, attempt);
    let runner = ReplayRunner::new(series.days(), options, &make);
    let watch = Stopwatch::start();
    for combination in 0..plan.grid().combinations() {
        one(&runner, &plan.grid().config_json(combination), plan);
    }
    let plain = watch.elapsed().as_secs_f64() / plan.rows() as f64;
    let ratio = per_run / plain;
    let more = json!({ "sweep_ms": per_run * 1e3, "plain_ms": plain * 1e3 });
    figure("a run inside the sweep per the same run alone", "times", ratio, ratio, &more);
}
