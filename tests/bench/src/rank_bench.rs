//! `cargo xtask bench rank`: ten years, one year and one day over 4,000 issues, against baselines of
//! the same run: a0, the naive window query in DuckDB; P, Polars over a dense frame; numpy over
//! dense matrices; and K, the bare kernel.

use std::path::Path;

use domain::clock::Stopwatch;
use marketdata::sample::daily::DailySample;
use pricestore::DataDir;
use pricestore::sample::make_daily_sample;
use ranking::{
    CancelToken, EngineOptions, Formula, FormulaRegistry, RankEngine, RankOrder, RankQuery, Ranking,
};
use serde_json::{Value, json};

use crate::baselines::{Matrices, NaiveSql};
use crate::measure::figure;
use crate::rank_kernel::{self, CASES, Case};
use crate::rank_memory;
use crate::rank_python::Python;

/// Rounds; in each, all engines take turns, so that a busy moment hits all of them.
const ROUNDS: usize = 5;
/// Threads of every engine.
const THREADS: usize = 2;

struct Bench {
    engine: RankEngine,
    naive: NaiveSql,
    matrices: Matrices,
    python: Option<Python>,
}

/// What is to be reached, as ratios to the baselines.
#[derive(Clone, Copy)]
struct Goal {
    a0: f64,
    polars: f64,
    numpy: Option<f64>,
}

impl Goal {
    const SHORT_POLARS: f64 = 0.6;

    fn ten_years(a0: f64) -> Self {
        Self { a0, polars: 0.5, numpy: Some(1.5) }
    }

    fn short(a0: f64) -> Self {
        Self { a0, polars: Self::SHORT_POLARS, numpy: None }
    }
}

/// Median and best of one engine's rounds, in milliseconds.
#[derive(Clone, Copy)]
struct Millis {
    median: f64,
    best: f64,
}

impl Millis {
    fn of(mut all: Vec<f64>) -> Self {
        all.sort_by(f64::total_cmp);
        Self { median: all[all.len() / 2], best: all[0] }
    }
}

/// Runs the bench; the sample is made below `folder` once and kept.
pub(crate) fn run(folder: &Path) {
    let folder = folder.join("daily-4000x2450-3");
    let data = DataDir::new(&folder);
    if data.current().ok().flatten().is_none() {
        let watch = Stopwatch::start();
        let made = or_stop(make_daily_sample(&data, &DailySample::default()));
        let seconds = watch.elapsed().as_secs_f64();
        figure("rank.sample", "s", seconds, seconds, &json!({ "rows": made.rows }));
    }
    restart(&folder);
    let matrices = or_stop(Matrices::open(&folder));
    let mut bench = Bench {
        engine: or_stop(RankEngine::open(&folder, options())),
        naive: or_stop(NaiveSql::open(&folder, THREADS)),
        python: Python::start(&folder, &matrices),
        matrices,
    };
    if let Some(python) = &bench.python {
        eprintln!("baselines in Python: {}", python.versions);
    }
    let days = bench.matrices.days;
    for case in &CASES {
        let goal = Goal::ten_years(if case.lagged { 0.08 } else { 0.12 });
        bench.compare(case, "10y", 0..days, 20, goal);
    }
    bench.compare(&CASES[0], "10y.limit50", 0..days, 50, Goal::ten_years(0.08));
    bench.compare(&CASES[0], "1y", days - 245..days, 20, Goal::short(0.10));
    bench.compare(&CASES[0], "1d", days - 1..days, 20, Goal::short(0.20));
    bench.module();
    rank_memory::report(&folder);
    bench.reference(&CASES[0]);
}

pub(crate) fn options() -> EngineOptions {
    EngineOptions { threads: THREADS, cache_bytes: 0, ..EngineOptions::default() }
}

pub(crate) fn or_stop<T, E: std::fmt::Display>(outcome: Result<T, E>) -> T {
    outcome.unwrap_or_else(|error| panic!("{error}"))
}

fn millis<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let watch = Stopwatch::start();
    let answer = std::hint::black_box(work());
    (watch.elapsed().as_secs_f64() * 1e3, answer)
}

/// The first query of a new process against the same query again.
fn restart(folder: &Path) {
    let mut firsts = Vec::new();
    let mut warms = Vec::new();
    for _ in 0..ROUNDS {
        let (first, (engine, query)) = millis(|| {
            let engine = or_stop(RankEngine::open(folder, options()));
            let info = engine.snapshot();
            let query = query(CASES[0].formula, (info.first, info.last), 20);
            or_stop(engine.rank(&query, &CancelToken::new()));
            (engine, query)
        });
        firsts.push(first);
        warms.push(millis(|| or_stop(engine.rank(&query, &CancelToken::new()))).0);
    }
    let (first, warm) = (Millis::of(firsts), Millis::of(warms));
    let more =
        json!({ "warm_ms": warm.median, "x_warm": first.median / warm.median, "goal_x_warm": 10 });
    figure("rank.open_and_first_query", "ms", first.median, first.best, &more);
}

pub(crate) fn query(
    formula: &str,
    (from, to): (domain::JstDate, domain::JstDate),
    limit: u32,
) -> RankQuery {
    let formula = or_stop(Formula::parse(formula));
    let (sort_by, order) = (formula.into(), RankOrder::Desc);
    RankQuery { from, to, sort_by, order, limit, codes: None, adjusted: false }
}

impl Bench {
    fn query(&self, case: &Case, days: &std::ops::Range<usize>, limit: usize) -> RankQuery {
        let calendar = self.calendar();
        let range = (calendar[days.start], calendar[days.end - 1]);
        query(case.formula, range, u32::try_from(limit).unwrap_or(u32::MAX))
    }

    fn calendar(&self) -> Vec<domain::JstDate> {
        let info = self.engine.snapshot();
        let all = query("Close", (info.first, info.last), 1);
        or_stop(self.engine.rank(&all, &CancelToken::new())).days
    }

    fn compare(
        &mut self,
        case: &Case,
        range: &str,
        days: std::ops::Range<usize>,
        limit: usize,
        goal: Goal,
    ) {
        let query = self.query(case, &days, limit);
        let formula = or_stop(Formula::parse(case.formula));
        let reach = formula.lags().last().map_or(0, |lag| *lag as usize);
        let history = self.calendar()[days.start.saturating_sub(reach)];
        let range_text = [history, query.from, query.to].map(|day| day.to_string());
        let (mut own, mut naive, mut one, mut two) = (vec![], vec![], vec![], vec![]);
        let (mut polars, mut numpy) = (vec![], vec![]);
        for _ in 0..ROUNDS {
            let naive_rows = || {
                let range = range_text.each_ref().map(String::as_str);
                or_stop(self.naive.rows(&formula, query.order, query.limit, range))
            };
            naive.push(millis(naive_rows).0);
            let kernel =
                |threads| rank_kernel::run(case, &self.matrices, days.clone(), limit, threads);
            one.push(millis(|| kernel(1)).0);
            let (taken, bare) = millis(|| kernel(THREADS));
            two.push(taken);
            let (taken, ranking) =
                millis(|| or_stop(self.engine.rank(&query, &CancelToken::new())));
            own.push(taken);
            same(&ranking, &bare, case);
            if let Some(python) = &mut self.python {
                polars.push(python.millis("polars", case, &days, limit, &bare));
                numpy.push(python.millis("numpy", case, &days, limit, &bare));
            }
        }
        let [own, naive, one, two] = [own, naive, one, two].map(Millis::of);
        let mut more = json!({
            "a0_ms": naive.median, "k1_ms": one.median, "k2_ms": two.median,
            "x_a0": own.median / naive.median, "goal_x_a0": goal.a0,
            "x_k2": own.median / two.median, "goal_x_k2": Value::from(3),
        });
        if self.python.is_some() {
            let [polars, numpy] = [polars, numpy].map(Millis::of);
            more["p_ms"] = json!(polars.median);
            more["x_p"] = json!(own.median / polars.median);
            more["goal_x_p"] = json!(goal.polars);
            more["numpy_ms"] = json!(numpy.median);
            more["x_numpy"] = json!(own.median / numpy.median);
            more["goal_x_numpy"] = json!(goal.numpy);
        }
        figure(&format!("rank.{range}.{}", case.name), "ms", own.median, own.best, &more);
    }

    /// Ten years by a formula module, against the formula that it mirrors.
    fn module(&self) {
        let folder = crate::data::scratch();
        let registry = or_stop(FormulaRegistry::open(folder.path(), None));
        or_stop(registry.add(&tests::built::test_guest("formula-mirror")));
        let by_formula = self.query(&CASES[0], &(0..self.matrices.days), 20);
        let bound = or_stop(registry.bind("mirror", &[("lag".to_owned(), 5.0)]));
        let by_module = RankQuery { sort_by: bound.into(), ..by_formula.clone() };
        let rank = |query| or_stop(self.engine.rank(query, &CancelToken::new()));
        assert_eq!(rank(&by_module), rank(&by_formula), "the module and the formula differ");
        let (mut own, mut formula) = (vec![], vec![]);
        for _ in 0..3 * ROUNDS {
            own.push(millis(|| rank(&by_module)).0);
            formula.push(millis(|| rank(&by_formula)).0);
        }
        let (own, formula) = (Millis::of(own), Millis::of(formula));
        let more = json!({
            "formula_ms": formula.median, "x_formula": own.median / formula.median,
            "x_formula_best": own.best / formula.best, "goal_x_formula": 1.3,
        });
        figure("rank.10y.1lag.module", "ms", own.median, own.best, &more);
    }

    /// The reference statement, with the time in which its tables are made from the combined database.
    fn reference(&self, case: &Case) {
        let query = self.query(case, &(0..self.matrices.days), 20);
        let (mut all, mut statement, mut same) = (vec![], vec![], true);
        for _ in 0..ROUNDS {
            let (taken, found) =
                millis(|| or_stop(self.engine.explain(&query, &CancelToken::new())));
            all.push(taken);
            statement.push(found.elapsed_sql.as_secs_f64() * 1e3);
            same &= found.agrees;
        }
        let (all, statement) = (Millis::of(all), Millis::of(statement));
        let more = json!({ "same_rows": same, "explain_ms": all.median });
        figure("rank.10y.1lag.reference_statement", "ms", statement.median, statement.best, &more);
    }
}

/// The engine's rows with a value are those of the bare kernel.
fn same(ranking: &Ranking, bare: &[(u32, f64)], case: &Case) {
    let own = ranking.rows.iter().filter_map(|row| Some((row.code, row.sort_value?)));
    assert!(own.eq(bare.iter().copied()), "{}: the engine and the bare kernel differ", case.name);
}
