//! The two ways of calling a guest give the same: the strongest test of the layouts that the direct
//! path knows by hand.

use std::path::PathBuf;
use std::time::Duration;

use domain::adjustment::{Adjustment, ExRights};
use domain::fault::FaultKind;
use domain::formula::FormulaRuntime;
use domain::strategy::StrategyRuntime;
use domain::{GuestLimit, InstrumentIx, JstDate};
use results::{RunResult, RunStatus};
use sandbox::{
    Artefact, CallPath, Limits, Sandbox, SandboxConfig, StrategyInstance, StrategyModule,
};
use tests::{built, runs, sample, wat};
use wit_component::StringEncoding;

use crate::common::{instrument, one};

fn sandbox(call_path: Option<CallPath>) -> Sandbox {
    Sandbox::new(SandboxConfig { call_path, ..SandboxConfig::default() }).unwrap()
}

/// Every component in a folder of what `cargo xtask guests` has built.
fn components(folder: &str) -> Vec<PathBuf> {
    let folder = built::release_folder().join(folder);
    let files = folder.read_dir().unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|ending| ending == "wasm"));
    found.sort();
    assert!(!found.is_empty());
    found
}

fn is_formula(path: &std::path::Path) -> bool {
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    name.contains("formula") || path.parent().unwrap().ends_with("formulas")
}

/// Dialects have the general path alone.
fn is_dialect(path: &std::path::Path) -> bool {
    let name = path.file_stem().unwrap().to_string_lossy();
    ["dialect-", "gateway-"].iter().any(|begin| name.starts_with(begin))
}

/// All Rust guests of one kind.
fn guests(formulas: bool) -> Vec<PathBuf> {
    let folders = ["strategies", "formulas", "test-guests", "examples"];
    let all = folders.into_iter().flat_map(components);
    all.filter(|path| !is_dialect(path) && is_formula(path) == formulas).collect()
}

/// What makes a guest act on the sample data.
fn config(name: &str) -> &'static str {
    match name {
        "sma-cross" => r#"{"fast": 5, "slow": 20}"#,
        "trades-at-random" => r#"{"every": 20, "seed": 7}"#,
        "returns-huge-lists" => r#"{"count": 200}"#,
        "floods-log" => r#"{"line_bytes": 100}"#,
        "panics-in-event" => r#"{"at": 700}"#,
        _ => "{}",
    }
}

fn run(
    module: &StrategyModule,
    series: &replay::TradeSeries,
    window: u32,
    config: &str,
) -> RunResult {
    let instance = |limits| module.instantiate(limits).unwrap();
    run_of(instance, series, window, config)
}

/// A strict run whose trades are handed over in batches.
fn run_in_batches(
    module: &StrategyModule,
    series: &replay::TradeSeries,
    config: &str,
) -> RunResult {
    run_quickly(module, series, 1, config)
}

/// A run that could be made again: what happens to orders is told in one step, and with window 1 trades are handed
/// over in batches.
fn run_quickly(
    module: &StrategyModule,
    series: &replay::TradeSeries,
    window: u32,
    config: &str,
) -> RunResult {
    let instance = |limits| {
        let instance = module.instantiate_quick(limits, window == 1).unwrap();
        assert_eq!(instance.batch_rows() > 1, window == 1);
        instance
    };
    run_of(instance, series, window, config)
}

fn run_of(
    instantiate: impl FnOnce(Limits) -> StrategyInstance,
    series: &replay::TradeSeries,
    window: u32,
    config: &str,
) -> RunResult {
    let mut options = sample::options(config, window, "1");
    options.model.participation_percent = 30;
    // Everyone hears of a split on the second day.
    let adjustment = Adjustment::from_terms(11, 10).unwrap();
    let date = JstDate::from_ymd_opt(2025, 1, 7).unwrap();
    options.ex_rights = vec![ExRights { date, instrument: InstrumentIx(0), adjustment }];
    // An endless loop may use the fuel of every row of its window.
    let limits = Limits { fuel_per_event: 200_000, ..Limits::default() };
    let mut instance = instantiate(limits);
    runs::unpaced(series.days(), &mut instance, &options)
}

/// How a run ended: nothing, or the call, the event and the kind of the fault. Words of the engine
/// about a trap are the same; what a guest says is its own.
fn ending(status: &RunStatus) -> Option<(String, String, String)> {
    match status {
        RunStatus::Failed(fault) => Some((
            fault.export.to_owned(),
            format!("{:?}", fault.ts_event),
            match &fault.kind {
                FaultKind::Memory { allowed, .. } => format!("memory beyond {allowed}"),
                kind => kind.to_string(),
            } + &fault.backtrace.join(" < "),
        )),
        _ => None,
    }
}

#[test]
fn all_strategies_agree_on_both_paths() {
    let folder = tempfile::tempdir().unwrap();
    sample::write(folder.path(), "72030", 2, 1_500, 23);
    let series = sample::load(folder.path(), "72030", &folder.path().join("cache"));
    let (automatic, general) = (sandbox(None), sandbox(Some(CallPath::General)));
    let mut orders = 0;
    for path in guests(false) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let (direct, general) = (automatic.load(&path).unwrap(), general.load(&path).unwrap());
        assert_eq!(direct.call_path(), CallPath::Direct, "{name}: {}", direct.call_path_reason());
        assert_eq!(general.call_path(), CallPath::General);
        assert_eq!(direct.capabilities(), general.capabilities(), "{name}");
        for window in [1, 1_024] {
            let config = config(&name);
            let one = run(&direct, &series, window, config);
            let other = run(&general, &series, window, config);
            let what = format!("{name}, window {window}");
            assert_eq!(one.totals.digest, other.totals.digest, "{what}");
            assert_eq!(one.fills, other.fills, "{what}");
            assert_eq!(one.log, other.log, "{what}");
            assert_eq!(ending(&one.totals.status), ending(&other.totals.status), "{what}");
            orders += one.orders.len();
        }
    }
    assert!(orders > 2_000, "agreement means something: {orders} orders");
}

/// Trades that are handed over in batches reach a strategy one by one all the same. What fails without
/// batches fails with them, so that a run which fails can be made again without.
#[test]
fn batches_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // More than a batch a day.
    sample::write(folder.path(), "72030", 2, 5_000, 23);
    let series = sample::load(folder.path(), "72030", &folder.path().join("cache"));
    let sandbox = sandbox(None);
    let (mut orders, mut completed) = (0, 0);
    for path in guests(false) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let module = sandbox.load(&path).unwrap();
        let strict = run(&module, &series, 1, config(&name));
        let batches = run_in_batches(&module, &series, config(&name));
        if matches!(batches.totals.status, RunStatus::Failed(_)) {
            // With 200,000 units of fuel for a batch some fail that would not alone.
            continue;
        }
        assert_eq!(strict.totals.status, batches.totals.status, "{name}");
        assert_eq!(strict.totals.digest, batches.totals.digest, "{name}");
        assert_eq!((&strict.fills, &strict.log), (&batches.fills, &batches.log), "{name}");
        orders += strict.orders.len();
        completed += 1;
    }
    assert!(orders > 2_000 && completed > 8, "{orders} orders of {completed} strategies");
    // One that writes with every trade, and asks for its working orders.
    let bytes = wat::component(&wat::noting_allocations(), StringEncoding::UTF8);
    let module = sandbox.prepare(Artefact::from_bytes("notes", bytes).unwrap()).unwrap();
    let (strict, batches) =
        (run(&module, &series, 1, "{}"), run_in_batches(&module, &series, "{}"));
    assert_eq!(batches.totals.status, RunStatus::Completed);
    assert_eq!((strict.totals.digest, strict.log), (batches.totals.digest, batches.log));
}

/// The same of larger windows, where only what happens to orders is told in another way.
#[test]
fn one_step_tells_of_orders_as_many_do() {
    let folder = tempfile::tempdir().unwrap();
    sample::write(folder.path(), "72030", 2, 1_500, 23);
    let series = sample::load(folder.path(), "72030", &folder.path().join("cache"));
    let sandbox = sandbox(None);
    let mut orders = 0;
    let guests = guests(false).into_iter().map(|path| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let config = config(&name).to_owned();
        (name, sandbox.load(&path).unwrap(), config)
    });
    // Their ids and the list of their events have no room: 60 orders at one instant, with ids of 36 bytes.
    let floods = [r#"{"flood": "orders", "count": 60}"#, r#"{"flood": "changes", "count": 40}"#];
    let floods = floods.map(|config| {
        let path = built::test_guest("floods-orders");
        (format!("floods-orders {config}"), sandbox.load(&path).unwrap(), config.to_owned())
    });
    for (name, module, config) in guests.chain(floods) {
        for window in [1, 7, 1_024] {
            let many = run(&module, &series, window, &config);
            let one = run_quickly(&module, &series, window, &config);
            if matches!(one.totals.status, RunStatus::Failed(_)) {
                continue;
            }
            let what = format!("{name}, window {window}");
            assert_eq!(many.totals.status, one.totals.status, "{what}");
            assert_eq!(many.totals.digest, one.totals.digest, "{what}");
            assert_eq!((&many.fills, &many.log), (&one.fills, &one.log), "{what}");
            orders += one.orders.len();
        }
    }
    assert!(orders > 5_000, "agreement means something: {orders} orders");
    let bytes = wat::component(&wat::noting_allocations(), StringEncoding::UTF8);
    let module = sandbox.prepare(Artefact::from_bytes("notes", bytes).unwrap()).unwrap();
    let (many, one) = (run(&module, &series, 64, "{}"), run_quickly(&module, &series, 64, "{}"));
    assert_eq!((many.totals.digest, many.log), (one.totals.digest, one.log));
}

/// Where a strategy is told of its orders in one step its allocator is trusted as little, and may call the host as
/// little: what fails in many steps fails in one. It may call the host once it is told.
#[test]
fn an_allocator_is_not_trusted_where_orders_are_told_in_one_step() {
    let folder = tempfile::tempdir().unwrap();
    sample::write(folder.path(), "72030", 2, 1_000, 23);
    let series = sample::load(folder.path(), "72030", &folder.path().join("cache"));
    let log = "(call $log (i32.const 1) (i64.const 0) (i32.const 512) (i32.const 7))";
    let after = |then: &str| format!("(if (global.get $orders) (then {then}))");
    let (allocate, told) =
        ("(param i32 i32 i32 i32) (result i32)", "#on-order-events\") (param i32 i32)");
    let late = "(if (i32.eq (local.get 2) (i32.const 8)) (then (return (i32.const 262144))))
        (drop (memory.grow (i32.const 1)))";
    let cases = [
        (allocate, after(log), Some("from inside its allocator")),
        (allocate, after("(return (i32.const 12))"), Some("at a multiple of 8 and gave 12")),
        (allocate, after("(return (i32.const -8))"), Some("which is outside its memory")),
        (allocate, after("(return (i32.const 262144))"), Some("which is outside its memory")),
        (allocate, after(late), Some("which is outside its memory")),
        (allocate, after("unreachable"), Some("unreachable")),
        (allocate, after("(loop $l (br $l))"), Some("fuel")),
        (told, "unreachable".to_owned(), Some("unreachable")),
        (told, log.to_owned(), None),
    ];
    for (place, more, refused) in cases {
        let text = wat::acting("", |text| text.as_bytes().to_vec(), 1, 0);
        assert!(text.contains(place), "{place}");
        let text = text.replacen(place, &format!("{place} {more}"), 1);
        let bytes = wat::component(&text, StringEncoding::UTF8);
        let module = sandbox(None).prepare(Artefact::from_bytes("tells", bytes).unwrap()).unwrap();
        for window in [1, 64] {
            let (many, one) =
                (run(&module, &series, window, "{}"), run_quickly(&module, &series, window, "{}"));
            match (refused, &many.totals.status, &one.totals.status) {
                (None, RunStatus::Completed, RunStatus::Completed) => {
                    assert!(many.log.len() > 10);
                    assert_eq!((many.totals.digest, many.log), (one.totals.digest, one.log));
                }
                (Some(words), RunStatus::Failed(fault), RunStatus::Failed(_)) => {
                    assert!(fault.kind.to_string().contains(words), "{more}: {}", fault.kind);
                    // So that the run is made again.
                    let last = ending(&one.totals.status).unwrap();
                    assert_eq!(last.0, "on-order-events", "{more}");
                }
                (_, many, one) => panic!("{place} {more}, window {window}: {many:?}, {one:?}"),
            }
        }
    }
}

/// Batches are for directly called strategies in a replay: a watchdog counts the time of one event, and what is to
/// be called after an answer is called by the host.
#[test]
fn batches_are_handed_over_where_nothing_is_lost_by_it() {
    let rows = |module: &StrategyModule, limits| {
        module.instantiate_quick(limits, true).unwrap().batch_rows()
    };
    let of = |text: &str, path| {
        let artefact = Artefact::from_bytes("one", wat::component(text, StringEncoding::UTF8));
        sandbox(path).prepare(artefact.unwrap()).unwrap()
    };
    let (plain, limits) = (wat::with_fields(""), Limits::default());
    assert!(rows(&of(&plain, None), limits) > 1);
    let watched = Limits { watchdog: Some(Duration::from_secs(5)), ..limits };
    assert_eq!(rows(&of(&plain, None), watched), 1);
    assert_eq!(rows(&of(&plain, Some(CallPath::General)), limits), 1);
    let freed = r#"(func (export "cabi_post_kumiki:strategy/guest@1.0.0#advance") (param i32))"#;
    assert_eq!(rows(&of(&wat::with_fields(freed), None), limits), 1);
    // The limits are the guest's: the host's own instances and memory take nothing of them. Its component makes
    // three instances.
    let tight = Limits { instances: 3, memory_bytes: 65_536, ..limits };
    assert!(rows(&of(&plain, None), tight) > 1);
}

/// In a batch as without: the allocator may not call the host, and the position goes where it can be.
#[test]
fn a_batch_answers_nothing_that_the_host_refuses() {
    let portfolio = r#"(import "kumiki:strategy/portfolio@1.0.0" "get-position" (func $position (param i32 i32)))
        (import "kumiki:strategy/portfolio@1.0.0" "working-orders" (func $orders (param i32)))
        (memory (export "memory") 1)"#;
    let with = |advance: &str, allocate: &str| {
        let text = wat::with_memory(1).replace("(memory (export \"memory\") 1)", portfolio);
        let text = text.replace("local.get 9)", &format!("{advance} local.get 9)"));
        text.replace(
            "global.get $free\n    (global.set $free (i32.add",
            &format!("{allocate} global.get $free\n    (global.set $free (i32.add"),
        )
    };
    let folder = tempfile::tempdir().unwrap();
    sample::write(folder.path(), "72030", 2, 1_000, 23);
    let series = sample::load(folder.path(), "72030", &folder.path().join("cache"));
    let ask = |instrument: i64, place: i64| {
        format!("(call $position (i32.const {instrument}) (i32.const {place}))")
    };
    let inside = format!("(if (global.get $asking) (then {}))", ask(0, 64));
    let early = format!("(func $early {}) (start $early)", ask(0, 64));
    let stop = |text: &str, more: &str| {
        text.replace("#stop\") (param i64))", &format!("#stop\") (param i64) {more})"))
    };
    for (more, refused) in [(ask(0, 64), None), (ask(3, 64), Some("there are 1"))] {
        let text = stop(&with("", ""), &more);
        let bytes = wat::component(&text, StringEncoding::UTF8);
        let module = sandbox(None).prepare(Artefact::from_bytes("asks", bytes).unwrap()).unwrap();
        let ends = [run(&module, &series, 1, "{}"), run_in_batches(&module, &series, "{}")]
            .map(|run| ending(&run.totals.status));
        assert_eq!(ends[0], ends[1], "a question between batches");
        assert_eq!(ends[0].is_some(), refused.is_some(), "{ends:?}");
    }
    let text = with("", "").replace(";; MORE", &early);
    let bytes = wat::component(&text, StringEncoding::UTF8);
    let module = sandbox(None).prepare(Artefact::from_bytes("asks", bytes).unwrap()).unwrap();
    let born = module.instantiate_quick(Limits::default(), true).unwrap();
    assert_eq!(born.batch_rows(), 1, "what cannot be made is made as without batches");
    let whole = ending(&run(&module, &series, 1, "{}").totals.status);
    assert!(whole.unwrap().2.contains("while it was made"));
    let cases = [
        (ask(0, 64), String::new(), None),
        (ask(1, 64), String::new(), Some("there are 1")),
        (ask(-1, 64), String::new(), Some("there are 1")),
        (ask(65_536, 64), String::new(), None),
        (ask(0, 68), String::new(), Some("outside its memory or not aligned")),
        (ask(0, 65_512), String::new(), Some("outside its memory or not aligned")),
        (ask(0, -8), String::new(), Some("outside its memory or not aligned")),
        (
            "(global.set $asking (i32.const 1)) (call $orders (i32.const 64)) \
             (global.set $asking (i32.const 0))"
                .to_owned(),
            inside,
            Some("from inside its allocator"),
        ),
    ];
    for (advance, allocate, refused) in cases {
        let text = with(&advance, &allocate)
            .replace("(global $free", "(global $asking (mut i32) (i32.const 0)) (global $free");
        let bytes = wat::component(&text, StringEncoding::UTF8);
        let module = sandbox(None).prepare(Artefact::from_bytes("asks", bytes).unwrap()).unwrap();
        let statuses = [run(&module, &series, 1, "{}"), run_in_batches(&module, &series, "{}")]
            .map(|run| run.totals.status);
        match (refused, statuses) {
            (None, [RunStatus::Completed, RunStatus::Completed]) => {}
            (Some(words), [RunStatus::Failed(fault), RunStatus::Failed(_)]) => {
                assert!(fault.kind.to_string().contains(words), "{}", fault.kind);
            }
            (_, statuses) => panic!("{advance} {allocate}: {statuses:?}"),
        }
    }
}

/// What a guest sees of its own memory is the same too: which blocks it is asked for, and in which order.
#[test]
fn the_allocator_is_called_alike_on_both_paths() {
    let folder = tempfile::tempdir().unwrap();
    sample::write(folder.path(), "72030", 2, 1_500, 23);
    let series = sample::load(folder.path(), "72030", &folder.path().join("cache"));
    let bytes = wat::component(&wat::noting_allocations(), StringEncoding::UTF8);
    for window in [1, 64] {
        let [direct, general] = [CallPath::Direct, CallPath::General].map(|path| {
            let artefact = Artefact::from_bytes("notes", bytes.clone()).unwrap();
            let module = sandbox(Some(path)).prepare(artefact).unwrap();
            let run = run(&module, &series, window, "{}");
            assert_eq!(run.totals.status, RunStatus::Completed);
            run.log.last().unwrap().message.clone()
        });
        assert_eq!(direct, general, "window {window}");
        // Lists before their texts, and lists of nothing.
        for block in ["80176 10007 10007", "80128 10007 40000", "80000 "] {
            assert!(direct.contains(block), "{block}: {}", &direct[..600]);
        }
        assert!(direct.split(' ').count() > 300);
    }
}

#[test]
fn all_formulas_agree_on_both_paths() {
    let rows = 50_u32;
    for path in guests(true) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let outcome = |wanted| {
            let module = sandbox(Some(wanted)).load_formula(&path).unwrap();
            assert_eq!(module.call_path(), wanted);
            let description = module.description().clone();
            let values: Vec<f64> = description.parameters.iter().map(|one| one.default).collect();
            let mut instance = module.instantiate(Limits::formula()).unwrap();
            let inputs = instance.configure(&values).map_err(|fault| fault.kind.clone());
            let lags = inputs.as_ref().map_or(0, |inputs| {
                inputs.iter().map(|input| input.last_lag - input.first_lag + 1).sum()
            });
            let column = |lag: u32| {
                (0..rows).map(|row| f64::from(row * 37 % 11 + lag * 5 % 7 + 1)).collect::<Vec<_>>()
            };
            let columns: Vec<Vec<f64>> = (0..lags).map(column).collect();
            let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
            let mut out = vec![0.0; rows as usize];
            let evaluated =
                instance.evaluate(&columns, &mut out).map_err(|fault| match fault.kind {
                    FaultKind::Memory { allowed, .. } => FaultKind::Memory { asked: 0, allowed },
                    other => other,
                });
            let bits: Vec<u64> = out.iter().map(|value| value.to_bits()).collect();
            (description, inputs, evaluated, bits)
        };
        assert_eq!(outcome(CallPath::Direct), outcome(CallPath::General), "{name}");
    }
}

#[test]
fn each_path_keeps_its_own_code() {
    let folder = tempfile::tempdir().unwrap();
    let load = |call_path| {
        let cache_folder = Some(folder.path().to_owned());
        let config = SandboxConfig { cache_folder, call_path, ..SandboxConfig::default() };
        let module = Sandbox::new(config).unwrap().load(&built::strategy("buy-and-hold")).unwrap();
        (module.call_path(), module.cache_outcome().clone())
    };
    use sandbox::CacheOutcome::{Compiled, Hit};
    assert_eq!(load(None), (CallPath::Direct, Compiled));
    assert_eq!(load(Some(CallPath::General)), (CallPath::General, Compiled));
    assert_eq!(load(Some(CallPath::General)), (CallPath::General, Hit));
    assert_eq!(load(Some(CallPath::Direct)), (CallPath::Direct, Hit));
    assert_eq!(folder.path().read_dir().unwrap().count(), 2);
}

#[test]
fn limits_hold_on_both_paths() {
    let small = Limits::default();
    let cases = [
        ("returns-huge-lists", r#"{"count": 257}"#, small),
        (
            "returns-huge-lists",
            r#"{"count": 1000}"#,
            Limits { actions_per_call: 100_000, result_bytes: 50_000, ..small },
        ),
        ("orders-every-tick", "{}", Limits { client_order_id_bytes: 2, ..small }),
        ("orders-every-tick", "{}", Limits { commands: 2, ..small }),
        ("orders-every-tick", "{}", Limits { records_per_event: 0, ..small }),
        ("floods-log", r#"{"line_bytes": 16385}"#, small),
        ("floods-log", r#"{"line_bytes": 100}"#, Limits { log_bytes: 1_000, ..small }),
        (
            "floods-log",
            r#"{"narrative_bytes": 400}"#,
            Limits { narrative_body_bytes: 300, ..small },
        ),
        ("floods-log", r#"{"narrative_bytes": 400}"#, Limits { output_bytes: 1_000, ..small }),
        ("grows-memory", "{}", Limits { memory_bytes: 4 << 20, ..small }),
        ("loops-forever", "{}", Limits { fuel_per_event: 100_000, ..small }),
        ("empty", "{}", Limits { instances: 0, ..small }),
    ];
    for (name, config, limits) in cases {
        let fault = |path| {
            let module = sandbox(Some(path)).load(&built::test_guest(name)).unwrap();
            let mut instance = module.instantiate(limits).unwrap();
            let mut run = || {
                instance.init(config, &[instrument()])?;
                instance.set_portfolio(&domain::account::PortfolioView {
                    positions: vec![domain::account::Position::default()],
                    ..Default::default()
                });
                instance.start(domain::TsNanos::from_nanos(1))?;
                (1..1_000).try_for_each(|number| one(&mut instance, number).map(drop))
            };
            let fault = run().unwrap_err();
            // The engine has wiring of its own, and asks for a component's instances at once.
            let kind = match fault.kind {
                FaultKind::Memory { allowed, .. } => FaultKind::Memory { asked: 0, allowed },
                FaultKind::Budget { limit: GuestLimit::Instances, allowed, .. } => {
                    FaultKind::Budget { limit: GuestLimit::Instances, used: 0, allowed }
                }
                kind => kind,
            };
            (fault.export, fault.ts_event, kind)
        };
        assert_eq!(fault(CallPath::Direct), fault(CallPath::General), "{name}");
    }
}
