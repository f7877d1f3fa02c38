//! What a strategy does wrong while it is made is its own fault, with its name and its limit.

use std::time::Duration;

use domain::GuestLimit;
use domain::clock::Stopwatch;
use domain::fault::{Fault, FaultKind};
use domain::limits::GUEST_STACK_MAX;
use domain::strategy::StrategyRuntime;
use sandbox::{Artefact, CallPath, Limits, StrategyModule};
use tests::{built, wat};
use wit_component::StringEncoding;

use crate::common::{guest, instrument, one, prepared};
use crate::mutations::sandbox;

/// Less work than by default: one endless loop takes seconds otherwise.
fn limits() -> Limits {
    Limits { fuel_per_lifecycle_call: 1_000_000, ..Limits::default() }
}

/// The fault of what uses up the fuel of [`limits`].
const SPENT: FaultKind =
    FaultKind::Fuel { budget: 1_000_000, per_event: GuestLimit::Fuel.default_value() };

fn init(module: &StrategyModule, limits: Limits) -> Result<(), Box<Fault>> {
    module.instantiate(limits).unwrap().init("{}", &[instrument()])
}

/// The fault of a guest that cannot be made.
fn fault(name: &str) -> Box<Fault> {
    let fault = init(&guest(name), limits()).unwrap_err();
    assert_eq!((fault.component.as_str(), fault.sha256.len()), (name, 64));
    fault
}

#[test]
fn a_strategy_in_text_that_behaves_runs() {
    let module = prepared("plain", wat::component(&wat::with_memory(1), StringEncoding::UTF8));
    let mut instance = module.unwrap().instantiate(limits()).unwrap();
    instance.init("{}", &[instrument()]).unwrap();
    assert_eq!(one(&mut instance, 1).unwrap().reached, 1);
}

#[test]
fn a_start_function_has_fuel() {
    let fault = fault("start-loops");
    assert_eq!((fault.export, &fault.kind), ("instantiation", &SPENT));
    let text = fault.to_string();
    assert!(text.starts_with("strategy `start-loops` ("), "{text}");
    assert!(text.contains(", in `instantiation`, used up its fuel of 1000000 units"), "{text}");
    assert!(text.contains("`--guest-limit lifecycle-fuel=2000000` allows more"), "{text}");
}

#[test]
fn a_start_function_that_traps_is_told() {
    let fault = fault("start-traps");
    assert_eq!(fault.export, "instantiation");
    assert!(matches!(&fault.kind, FaultKind::Trap(text) if text.contains("unreachable")));
    assert!(!fault.backtrace.is_empty());
}

#[test]
fn a_strategy_that_breaks_the_contract_while_it_is_made_is_told() {
    let text = wat::speaking(b"well", 4).replace("$log (i32.const 1)", "$log (i32.const 5)");
    for (path, told) in
        [(CallPath::Direct, "5 is no log level"), (CallPath::General, "unexpected discriminant: 5")]
    {
        let bytes = wat::component(&text, StringEncoding::UTF8);
        let module = sandbox(path).prepare(Artefact::from_bytes("speaks", bytes).unwrap()).unwrap();
        let fault = init(&module, limits()).unwrap_err();
        assert_eq!((fault.component.as_str(), fault.export), ("speaks", "instantiation"));
        assert_eq!(fault.kind, FaultKind::Protocol(told.to_owned()));
    }
}

#[test]
fn what_sets_a_strategy_up_has_limits() {
    let loops = fault("initialize-loops");
    assert_eq!((loops.export, loops.kind), ("_initialize", SPENT));
    let traps = fault("initialize-traps");
    assert!(matches!(traps.kind, FaultKind::Trap(_)), "{traps}");
    assert_eq!(traps.export, "_initialize");
    let deep = fault("initialize-recurses");
    let allowed = GUEST_STACK_MAX;
    assert_eq!((deep.export, deep.kind), ("_initialize", FaultKind::Stack { allowed }));
}

#[test]
fn a_start_function_ends_with_the_watchdog_in_live_use() {
    let live = Limits {
        watchdog: Some(Duration::from_millis(30)),
        fuel_per_lifecycle_call: u64::MAX,
        ..Limits::live()
    };
    for (name, export) in [("start-loops", "instantiation"), ("initialize-loops", "_initialize")] {
        let fault = init(&guest(name), live).unwrap_err();
        assert_eq!((fault.export, fault.kind), (export, FaultKind::Watchdog { allowed_ms: 30 }));
    }
}

#[test]
fn what_it_is_made_with_has_limits() {
    // 64 KiB each; the limit is 64 MiB.
    let made = |pages| {
        let bytes = wat::component(&wat::with_memory(pages), StringEncoding::UTF8);
        init(&prepared("large-memory", bytes).unwrap(), limits())
    };
    made(1_024).unwrap();
    let fault = made(1_025).unwrap_err();
    let (asked, allowed) = (1_025 << 16, limits().memory_bytes);
    assert_eq!((fault.export, fault.kind), ("instantiation", FaultKind::Memory { asked, allowed }));
    // 400 pages each, and one page of the strategy's own.
    let (asked, allowed) = (1_201 << 16, limits().memory_bytes);
    assert_eq!(self::fault("many-memories").kind, FaultKind::Memory { asked, allowed });
    let (limit, used, allowed) = (GuestLimit::TableEntries, 20_001, 20_000);
    assert_eq!(self::fault("large-table").kind, FaultKind::Budget { limit, used, allowed });
}

/// At the default limits: as many parts as no toolchain makes.
#[test]
fn the_parts_that_it_is_made_of_have_a_number() {
    let allowed = GuestLimit::Instances.default_value();
    // Called directly only the program itself is made, however many others the component has.
    let plain = wat::component(&wat::with_memory(1), StringEncoding::CompactUTF16);
    let of_parts = |count| prepared("many-parts", wat::with_instances(&plain, count)).unwrap();
    init(&of_parts(30), limits()).unwrap();
    let memories = "(memory 0)".repeat(64);
    let memories =
        wat::module("many-memories").replace("(memory 400) (memory 400) (memory 400)", &memories);
    let memories = wat::component(&memories, StringEncoding::UTF8);
    for (what, module) in
        [("instances", of_parts(65)), ("memories", prepared("many-parts", memories).unwrap())]
    {
        let fault = init(&module, limits()).expect_err(what);
        let FaultKind::Budget { limit: GuestLimit::Instances, used, .. } = fault.kind else {
            panic!("{what}: {fault}");
        };
        assert!(used > allowed, "{what}: {used}");
        assert!(fault.to_string().contains("`--guest-limit instances=128` allows more"), "{fault}");
        init(&module, Limits { instances: 128, ..limits() }).unwrap();
    }
}

#[test]
fn a_strategy_that_could_not_be_made_stays_dead() {
    let mut instance = guest("start-traps").instantiate(limits()).unwrap();
    instance.init("{}", &[instrument()]).unwrap_err();
    let fault = one(&mut instance, 1).unwrap_err();
    assert!(fault.to_string().contains("it was called after it had failed"), "{fault}");
}

/// Eight live strategies at once: each has its whole deadline, however many there are. That a call
/// takes at least that long holds on the slowest machine too.
#[test]
fn every_live_strategy_has_its_whole_deadline() {
    let allowed = Duration::from_millis(200);
    let limits = Limits { watchdog: Some(allowed), fuel_per_event: u64::MAX, ..Limits::live() };
    let sandbox = sandbox::Sandbox::new(sandbox::SandboxConfig::default()).unwrap();
    let module = sandbox.load(&built::test_guest("loops-forever")).unwrap();
    let run = || {
        let mut instance = module.instantiate(limits).unwrap();
        instance.init("{}", &[instrument()]).unwrap();
        instance.start(domain::TsNanos::from_nanos(1)).unwrap();
        (1..3).for_each(|number| drop(one(&mut instance, number).unwrap()));
        let watch = Stopwatch::start();
        let fault = one(&mut instance, 3).unwrap_err();
        (fault.kind, watch.elapsed())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(run)).collect();
        for thread in threads {
            let (kind, took) = thread.join().unwrap();
            assert_eq!(kind, FaultKind::Watchdog { allowed_ms: 200 });
            assert!(took >= allowed, "it was ended after {took:?}");
        }
    });
}
