//! `cargo xtask bench replay`: from the vendor's file to the result.

use std::ops::ControlFlow;
use std::sync::mpsc::channel;

use domain::clock::Stopwatch;
use domain::strategy::StrategyRuntime;
use domain::{Instrument, Quantity, TickTable};
use kumiki_sdk::prelude::{ParamError, Params, Strategy};
use marketdata::{TradeFile, TradeStore};
use replay::driver::Paced;
use replay::{Multiplier, ReplayOptions, TradeSeries, TradingDay, Unpaced, replay};
use results::sink::TotalsOnly;
use results::{RunStatus, RunTotals};
use sandbox::{CallPath, Limits, Sandbox, SandboxConfig, StrategyModule};
use serde_json::json;
use tests::native::Native;
use tests::runs::NoWait;
use tests::{built, sample};

use crate::data::{BenchData, scratch};
use crate::measure::{Seconds, figure, rate, seconds};
use crate::memory;

/// Prints every figure.
pub(crate) fn run() {
    let data = BenchData::prepare();
    let series = loading(&data);
    components();
    bare_call();
    strict_and_windows("sample month", &series, "1");
    general_path("sample month", &series, "1");
    if let Some(real) = &data.real {
        let cache = scratch();
        let real = load_all(real, "13060", cache.path());
        strict_and_windows("real trades of 13060", &real, "0.1");
    }
    pacing(&series);
    orders(&series);
    whole_program(&data);
    year(&data);
}

fn load(file: &TradeFile, code: &str, cache: &std::path::Path) -> usize {
    let store = TradeStore::new(cache);
    let code = sample::vendor_code(code);
    let loaded = store.load(file, &[code], &mut |_| ControlFlow::Continue(()));
    loaded.unwrap_or_else(|error| panic!("{error}")).iter().map(|segment| segment.len()).sum()
}

fn load_all(file: &TradeFile, code: &str, cache: &std::path::Path) -> TradeSeries {
    let folder = file.path.parent().unwrap_or(std::path::Path::new("."));
    sample::load(folder, code, cache)
}

fn million(amount: usize) -> f64 {
    amount as f64 / 1e6
}

/// What inflating a file costs, without looking at the text: the baseline of every cold load.
fn inflate_only(file: &TradeFile) -> Seconds {
    let packed = std::fs::read(&file.path).unwrap_or_default();
    let mut buffer = vec![0; 256 << 10];
    seconds(|| {
        let mut text = flate2::read::MultiGzDecoder::new(packed.as_slice());
        while matches!(std::io::Read::read(&mut text, &mut buffer), Ok(bytes) if bytes > 0) {}
    })
}

/// What reading and checking the rows of a code costs, without keeping them.
fn read_only(file: &TradeFile, code: &str) -> (u64, Seconds) {
    let selection = marketdata::Selection::Codes(vec![sample::vendor_code(code)]);
    let mut rows = 0;
    let taken = seconds(|| {
        let mut sum = 0_i64;
        let read = marketdata::read_trades(
            file,
            &selection,
            &marketdata::ReadOptions::default(),
            &mut |_| ControlFlow::Continue(()),
            &mut |row: &marketdata::TradeRow| sum ^= row.price,
        );
        rows = read.map_or(0, |summary| summary.rows_scanned);
        sum
    });
    (rows, taken)
}

/// A file read and checked, beside the time that inflating alone takes.
fn reading(name: &str, file: &TradeFile, code: &str, goal: u32) {
    let inflate = inflate_only(file);
    let (rows, taken) = read_only(file, code);
    let more = json!({
        "rows": rows,
        "goal_min": goal,
        "inflate_only_m_rows_per_s": (rows as f64 / 1e5 / inflate.best).round() / 10.0,
        "times_inflate_only": (taken.best / inflate.best * 100.0).round() / 100.0,
    });
    rate(name, "M rows/s", rows as f64 / 1e6, taken, &more);
}

/// One call into a component that does nothing: what the engine alone costs on this machine.
fn bare_call() {
    const CALLS: u64 = 100_000;
    let Ok(mut instance) = module("empty").instantiate(Limits::default()) else { return };
    let started = instance.init("{}", &sample::options("{}", 1, "1").instruments);
    assert_eq!(started, Ok(()));
    let taken = seconds(|| {
        for number in 0..CALLS {
            let called = instance.stop(domain::TsNanos::from_nanos(number));
            assert!(called.is_ok());
        }
    });
    let each = |seconds: f64| seconds / CALLS as f64 * 1e9;
    figure(
        "a component call that does nothing",
        "ns",
        each(taken.median),
        each(taken.best),
        &json!({}),
    );
}

/// Cold and warm loads; gives the month back.
fn loading(data: &BenchData) -> TradeSeries {
    reading("read and check one code-month", &data.month, "72030", 8);
    reading("pick one code out of a file of all", &data.all_codes, "13010", 10);
    let mut rows = 0;
    let cold = seconds(|| {
        let cache = scratch();
        rows = load(&data.month, "72030", cache.path());
    });
    let more = json!({ "rows": rows, "includes": "hash, inflate, check, columns, cache file" });
    rate("cold load of one code-month", "M rows/s", million(rows), cold, &more);

    let cache = scratch();
    load(&data.month, "72030", cache.path());
    let warm = seconds(|| load(&data.month, "72030", cache.path()));
    let more = json!({ "rows": rows, "goal_max": 20 });
    figure("warm load of one code-month", "ms", warm.median * 1e3, warm.best * 1e3, &more);

    memory::report("peak memory of a cold load, one code-month", &data.month, "72030");
    memory::report("peak memory of a cold load, one code of all", &data.all_codes, "13010");
    load_all(&data.month, "72030", cache.path())
}

fn sandbox(cache: Option<&std::path::Path>) -> Sandbox {
    let cache_folder = cache.map(std::path::Path::to_owned);
    Sandbox::new(SandboxConfig { cache_folder, ..SandboxConfig::default() })
        .unwrap_or_else(|error| panic!("{error}"))
}

fn module(name: &str) -> StrategyModule {
    let path = if name == "sma-cross" { built::strategy(name) } else { built::test_guest(name) };
    sandbox(None).load(&path).unwrap_or_else(|error| panic!("{error}"))
}

/// Compiling, loading and instantiating.
fn components() {
    let path = built::strategy("sma-cross");
    let compiled = seconds(|| sandbox(None).load(&path).map(drop));
    figure("compile sma-cross", "ms", compiled.median * 1e3, compiled.best * 1e3, &json!({}));
    let cache = scratch();
    let keeper = sandbox(Some(cache.path()));
    let first = keeper.load(&path);
    assert!(first.is_ok(), "{:?}", first.err());
    let loaded = seconds(|| keeper.load(&path).map(drop));
    let more = json!({ "goal_max": 5 });
    figure("load sma-cross from the cache", "ms", loaded.median * 1e3, loaded.best * 1e3, &more);
    let module = module("sma-cross");
    let made = seconds(|| (0..100).for_each(|_| drop(module.instantiate(Limits::default()))));
    let more = json!({ "goal_max": 100 });
    figure("instantiate sma-cross", "us", made.median * 1e4, made.best * 1e4, &more);
}

/// Sees everything and does nothing, natively.
struct Empty;

impl Strategy for Empty {
    fn new(_: &mut Params) -> Result<Self, ParamError> {
        Ok(Self)
    }
}

/// One run whose rows go nowhere, as in `kumiki replay run` without `--out`.
fn run_once<'a>(
    days: impl IntoIterator<Item = TradingDay<'a>>,
    strategy: &mut dyn StrategyRuntime,
    options: &ReplayOptions,
) -> RunTotals {
    let totals = replay(days, strategy, options, &mut TotalsOnly, &mut Unpaced)
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(totals.status, RunStatus::Completed);
    totals
}

/// A strategy run over and over, with window 1 in batches as `kumiki replay run` does it: what that took, and
/// how it ended.
pub(crate) fn sandboxed(
    series: &TradeSeries,
    module: &StrategyModule,
    options: &ReplayOptions,
) -> (Seconds, RunTotals) {
    let mut last = None;
    let taken = seconds(|| {
        let made = if options.window == 1 {
            module.instantiate_quick(Limits::default(), true)
        } else {
            module.instantiate(Limits::default())
        };
        let mut instance = match made {
            Ok(instance) => instance,
            Err(error) => panic!("{error}"),
        };
        last = Some(run_once(series.days(), &mut instance, options));
    });
    match last {
        Some(result) => (taken, result),
        None => panic!("nothing was run"),
    }
}

fn native<S: Strategy>(series: &TradeSeries, options: &ReplayOptions) -> (Seconds, RunTotals) {
    let mut last = None;
    let taken =
        seconds(|| last = Some(run_once(series.days(), &mut Native::<S>::default(), options)));
    match last {
        Some(result) => (taken, result),
        None => panic!("nothing was run"),
    }
}

/// Trades per second, one call a trade and in windows, beside the same source without a sandbox.
fn strict_and_windows(what: &str, series: &TradeSeries, tick: &str) {
    let trades = series.len();
    for window in [1, 64, 1_024, 8_192] {
        let options = sample::options("{}", window, tick);
        for name in ["empty", "sma-cross"] {
            let (taken, result) = sandboxed(series, &module(name), &options);
            let (plain, native_result) = if name == "empty" {
                native::<Empty>(series, &options)
            } else {
                native::<sma_cross::SmaCross>(series, &options)
            };
            assert_eq!(result.digest, native_result.digest, "sandbox and native run must agree");
            let goal = match (window, name) {
                (1, _) => json!(5),
                (1_024, "empty") => json!(40),
                _ => json!(null),
            };
            let more = json!({
                "data": what,
                "trades": trades,
                "orders": result.order_counts.all,
                "ns_per_trade": (taken.best * 1e9 / trades as f64 * 10.0).round() / 10.0,
                "native_m_trades_per_s": (million(trades) / plain.best * 10.0).round() / 10.0,
                "times_native": (taken.best / plain.best * 100.0).round() / 100.0,
                "goal_min": goal,
                "goal_times_native_max": if window == 1_024 && name == "sma-cross" { json!(5) } else { json!(null) },
            });
            let figure = format!("{name}, window {window}");
            rate(&figure, "M trades/s", million(trades), taken, &more);
        }
    }
}

/// The same component called by the engine: what any component costs that is not called directly.
fn general_path(what: &str, series: &TradeSeries, tick: &str) {
    let config = SandboxConfig { call_path: Some(CallPath::General), ..SandboxConfig::default() };
    let loaded = Sandbox::new(config).and_then(|one| one.load(&built::strategy("sma-cross")));
    let general = loaded.unwrap_or_else(|error| panic!("{error}"));
    for window in [1, 1_024] {
        let options = sample::options("{}", window, tick);
        let (taken, result) = sandboxed(series, &general, &options);
        let (_, direct) = sandboxed(series, &module("sma-cross"), &options);
        assert_eq!(result.digest, direct.digest, "both paths must agree");
        let trades = series.len();
        let goal = if window == 1 { json!(1.5) } else { json!(null) };
        let more = json!({ "data": what, "trades": trades, "goal_min": goal });
        let figure = format!("sma-cross on the general path, window {window}");
        rate(&figure, "M trades/s", million(trades), taken, &more);
    }
}

/// A paced run at its highest speed beside an unpaced one, waits left out.
fn pacing(series: &TradeSeries) {
    let trades = series.len();
    let empty = module("empty");
    let options = sample::options("{}", 1, "1");
    // Trade by trade from outside, as a session gets them.
    let alone = seconds(|| {
        let Ok(mut instance) = empty.instantiate(Limits::default()) else { return };
        run_once(series.days(), &mut instance, &options);
    });
    let paced = seconds(|| {
        let Ok(mut instance) = empty.instantiate(Limits::default()) else { return };
        let (_sender, commands) = channel();
        let mut clock = NoWait;
        let mut driver = Paced::new(Multiplier::UNPACED, commands, &mut clock);
        let run = replay(series.days(), &mut instance, &options, &mut TotalsOnly, &mut driver);
        assert!(run.is_ok());
    });
    let more = json!({
        "times_self_running": (paced.best / alone.best * 1_000.0).round() / 1_000.0,
        "goal_times_max": 1.05,
    });
    rate("empty, streaming at the highest speed", "M trades/s", million(trades), paced, &more);
}

/// What an order costs, and that it costs the same when there are many.
fn orders(series: &TradeSeries) {
    let empty = module("empty");
    let orders = module("orders-every-tick");
    let mut options = sample::options("{}", 1, "1");
    for instrument in &mut options.instruments {
        *instrument =
            Instrument { lot: Quantity::new(1), ticks: TickTable::Normal, ..instrument.clone() };
    }
    for share in [100, 10, 1] {
        let days: Vec<_> = series.days().collect();
        let kept = (days.len() / share).max(1);
        let some = &days[..kept];
        let once = |module: &StrategyModule| {
            let mut count = 0;
            let taken = seconds(|| {
                let Ok(mut instance) = module.instantiate(Limits::default()) else { return };
                let totals = run_once(some.iter().cloned(), &mut instance, &options);
                count = totals.order_counts.all;
            });
            (taken, count)
        };
        let (base, _) = once(&empty);
        let (with_orders, count) = once(&orders);
        let each = |a: f64, b: f64| (a - b).max(0.0) / count.max(1) as f64 * 1e6;
        let more = json!({ "orders": count, "goal_max": 1.5 });
        let (median, best) =
            (each(with_orders.median, base.median), each(with_orders.best, base.best));
        figure("one order, strict", "us", median, best, &more);
    }
}

/// Parameters of `sma-cross` that send about as many orders as the peers' figures have: 13,000.
const SLOWER: [&str; 4] = ["--param", "fast=45", "--param", "slow=220"];

/// `kumiki replay run` as a process: from its own file, and on cached data.
fn whole_program(data: &BenchData) {
    let cache = scratch();
    let folder = data.month.path.parent().unwrap_or(std::path::Path::new("."));
    let once = |more: &[&str]| {
        let mut command = kumiki_run(folder, cache.path());
        let watch = Stopwatch::start();
        let output = command.args(more).output().unwrap_or_else(|error| panic!("{error}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (watch.elapsed().as_secs_f64() * 1e3, output.stdout)
    };
    let (cold, text) = once(&[&SLOWER[..], &["--format", "json"]].concat());
    let shown: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    let orders = &shown["summary"]["orders"];
    let more = json!({ "goal_max": 200, "orders": orders });
    figure("kumiki replay run, cold, slower averages", "ms", cold, cold, &more);
    let window = ["--window", "1024"];
    let slower_window = [&SLOWER[..], &window].concat();
    for (name, goal, more) in [
        ("kumiki replay run, cached", None, &[][..]),
        ("the same, window 1024", None, &window),
        ("kumiki replay run, cached, slower averages", Some(90), &SLOWER),
        ("the same, window 1024", Some(50), &slower_window),
    ] {
        let taken = seconds(|| once(more));
        let goal = json!({ "goal_max": goal });
        figure(name, "ms", taken.median * 1e3, taken.best * 1e3, &goal);
    }
    let out = cache.path().join("run");
    let out = out.to_string_lossy();
    let taken = seconds(|| once(&[&SLOWER[..], &["--out", &out]].concat()));
    figure("the same, with --out", "ms", taken.median * 1e3, taken.best * 1e3, &json!({}));
}

/// Peak memory of `kumiki replay run` over twelve months, cold and cached.
fn year(data: &BenchData) {
    let cache = scratch();
    let out = cache.path().join("run");
    for name in ["peak memory of a run over 12 months, cold", "the same, cached"] {
        let mut command = kumiki_run(&data.year, cache.path());
        // Enough money for a year of losses: without it the strategy sends refused orders for months.
        command.args(SLOWER).args(["--cash", "1000000000"]).arg("--out").arg(&out);
        let Some(peak) = memory::peak_of(command) else {
            eprintln!("{name}: this system does not tell a process's peak memory");
            return;
        };
        figure(name, "MB", peak / 1e6, peak / 1e6, &json!({ "goal_max": 64 }));
    }
}

fn kumiki_run(data: &std::path::Path, cache: &std::path::Path) -> std::process::Command {
    let mut command = std::process::Command::new(built::kumiki());
    command
        .args(["replay", "run", "sma-cross", "--instrument", "7203.TSE", "--quiet"])
        // The figures count orders, which a cash account's broker would reject.
        .args(["--same-day-round-trips", "allow", "--data"])
        .arg(data)
        .arg("--cache-dir")
        .arg(cache);
    command
}
