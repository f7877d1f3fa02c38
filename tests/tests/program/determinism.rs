//! The same data, strategy and options give the same event log: across runs, sizes of the window,
//! cold and warm caches, fresh and cached compilation, and with or without the sandbox.

use std::path::Path;

use domain::digest::Digest;
use domain::strategy::StrategyRuntime;
use replay::{ReplayOptions, TradeSeries};
use results::{RunResult, RunStatus};
use sandbox::{Artefact, CacheOutcome, CallPath, Limits, Sandbox, SandboxConfig, StrategyModule};
use tests::native::Native;
use tests::user_folder::{UserFolder, files_in};
use tests::{built, runs, sample};

const CODE: &str = "72030";

fn sandbox(cache: Option<&Path>) -> Sandbox {
    let cache_folder = cache.map(Path::to_owned);
    Sandbox::new(SandboxConfig { cache_folder, ..SandboxConfig::default() }).unwrap()
}

fn run_with(
    series: &TradeSeries,
    strategy: &mut dyn StrategyRuntime,
    options: &ReplayOptions,
) -> RunResult {
    let result = runs::unpaced(series.days(), strategy, options);
    assert_eq!(result.totals.status, RunStatus::Completed);
    result
}

fn run(series: &TradeSeries, module: &StrategyModule, options: &ReplayOptions) -> RunResult {
    run_with(series, &mut module.instantiate(Limits::default()).unwrap(), options)
}

/// A strategy with its parameters and how many orders it must at least send on the sample data, so
/// that agreement means something.
const STRATEGIES: [(&str, &str, usize); 4] = [
    ("sma-cross", r#"{"fast": 5, "slow": 20}"#, 200),
    ("buy-and-hold", "{}", 1),
    ("trades-at-random", r#"{"every": 20, "seed": 7}"#, 200),
    ("orders-every-tick", "{}", 2_000),
];

fn component(name: &str) -> std::path::PathBuf {
    if name == "sma-cross" || name == "buy-and-hold" {
        built::strategy(name)
    } else {
        built::test_guest(name)
    }
}

#[test]
fn runs_windows_and_caches_agree() {
    let folder = tempfile::tempdir().unwrap();
    let (data, cache) = (folder.path().join("data"), folder.path().join("cache"));
    sample::write(&data, CODE, 3, 3_000, 11);
    let cold = sample::load(&data, CODE, &cache);
    let warm = sample::load(&data, CODE, &cache);
    assert!(cold.len() > 5_000);
    for (name, config, orders_min) in STRATEGIES {
        let fresh = sandbox(None).load(&component(name)).unwrap();
        let first = run(&cold, &fresh, &sample::options(config, 1, "1"));
        assert!(first.orders.len() >= orders_min, "{name} sent {}", first.orders.len());
        let agree = |what: &str, other: &RunResult| {
            assert_eq!(first.totals.digest, other.totals.digest, "{name}: {what}");
            assert_eq!(first.fills, other.fills, "{name}: {what}");
            assert_eq!(first.equity, other.equity, "{name}: {what}");
            assert_eq!(first.log, other.log, "{name}: {what}");
        };
        agree("a second run", &run(&cold, &fresh, &sample::options(config, 1, "1")));
        agree("a warm data cache", &run(&warm, &fresh, &sample::options(config, 1, "1")));
        for window in [64, 1_024, 8_192] {
            let options = sample::options(config, window, "1");
            agree(&format!("window {window}"), &run(&cold, &fresh, &options));
        }
        let components = folder.path().join("components");
        for wanted in [CacheOutcome::Compiled, CacheOutcome::Hit] {
            let module = sandbox(Some(&components)).load(&component(name)).unwrap();
            assert_eq!(*module.cache_outcome(), wanted);
            agree("compiled or cached", &run(&cold, &module, &sample::options(config, 1_024, "1")));
        }
    }
}

#[test]
fn windows_agree_with_latency_slippage_and_participation() {
    let folder = tempfile::tempdir().unwrap();
    sample::write(folder.path(), CODE, 2, 3_000, 5);
    let series = sample::load(folder.path(), CODE, &folder.path().join("cache"));
    let module = sandbox(None).load(&component("trades-at-random")).unwrap();
    for seed in 1..=6 {
        for (latency_ns, participation_percent) in [(0, 10), (40_000_000, 100), (3_000_000_000, 35)]
        {
            let digest = |window| -> Digest {
                let config = format!(r#"{{"every": 15, "seed": {seed}}}"#);
                let mut options = sample::options(&config, window, "1");
                options.model.latency_ns = latency_ns;
                options.model.participation_percent = participation_percent;
                options.model.slippage_ticks = 2;
                run(&series, &module, &options).totals.digest
            };
            let strict = digest(1);
            for window in [7, 64, 1_024, 8_192] {
                assert_eq!(strict, digest(window), "seed {seed}, window {window}, {latency_ns} ns");
            }
        }
    }
}

#[test]
fn what_matters_changes_the_digest() {
    let folder = tempfile::tempdir().unwrap();
    sample::write(folder.path(), CODE, 1, 3_000, 5);
    let series = sample::load(folder.path(), CODE, &folder.path().join("cache"));
    let module = sandbox(None).load(&component("sma-cross")).unwrap();
    let digest = |change: fn(&mut ReplayOptions)| {
        let mut options = sample::options(r#"{"fast": 5, "slow": 20}"#, 1, "1");
        change(&mut options);
        run(&series, &module, &options).totals.digest
    };
    let base = digest(|_| {});
    assert_ne!(base, digest(|options| options.model.slippage_ticks = 0));
    assert_ne!(base, digest(|options| options.model.latency_ns = 1_000_000_000));
    assert_ne!(base, digest(|options| options.config_json = "{}".to_owned()));
}

#[test]
fn the_sandbox_and_plain_rust_agree() {
    let folder = tempfile::tempdir().unwrap();
    sample::write(folder.path(), CODE, 2, 3_000, 3);
    let series = sample::load(folder.path(), CODE, &folder.path().join("cache"));
    let module = sandbox(None).load(&component("sma-cross")).unwrap();
    for window in [1, 1_024] {
        let options = sample::options(r#"{"fast": 5, "slow": 20}"#, window, "1");
        let native = run_with(&series, &mut Native::<sma_cross::SmaCross>::default(), &options);
        assert_eq!(native.totals.digest, run(&series, &module, &options).totals.digest);
    }
}

#[test]
fn a_damaged_compile_cache_is_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let path = component("buy-and-hold");
    let artefact = Artefact::read(&path, u64::MAX).unwrap();
    let outcome = || sandbox(Some(folder.path())).load(&path).unwrap().cache_outcome().clone();
    assert_eq!(outcome(), CacheOutcome::Compiled);
    let kept = sandbox(Some(folder.path())).cache().unwrap().path_of(&artefact, CallPath::Direct);
    let good = std::fs::read(&kept).unwrap();
    for damage in [&good[..good.len() / 2], &good[..8], b""] {
        std::fs::write(&kept, damage).unwrap();
        assert_eq!(outcome(), CacheOutcome::Repaired);
        assert_eq!(outcome(), CacheOutcome::Hit);
    }
    let mut flipped = good.clone();
    flipped[good.len() / 3] ^= 1;
    std::fs::write(&kept, flipped).unwrap();
    assert_eq!(outcome(), CacheOutcome::Repaired);
    // The whole code of another strategy.
    let other = component("sma-cross");
    drop(sandbox(Some(folder.path())).load(&other).unwrap());
    let other = Artefact::read(&other, u64::MAX).unwrap();
    let other = sandbox(Some(folder.path())).cache().unwrap().path_of(&other, CallPath::Direct);
    std::fs::copy(&other, &kept).unwrap();
    assert_eq!(outcome(), CacheOutcome::Repaired);
    assert!(std::fs::read(&kept).unwrap() == good);
    // What is no file keeps nobody waiting.
    #[cfg(unix)]
    {
        std::fs::remove_file(&kept).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&kept).status().unwrap();
        assert!(made.success());
        assert_eq!(outcome(), CacheOutcome::Repaired);
        assert_eq!(outcome(), CacheOutcome::Hit);
    }
}

#[test]
fn what_came_with_the_program_is_used_and_left_as_it_is() {
    let [shipped, cache] = [(), ()].map(|()| tempfile::tempdir().unwrap());
    let path = component("buy-and-hold");
    let artefact = Artefact::read(&path, u64::MAX).unwrap();
    drop(sandbox(Some(shipped.path())).load(&path).unwrap());
    let config = SandboxConfig {
        cache_folder: Some(cache.path().to_owned()),
        shipped_folder: Some(shipped.path().to_owned()),
        ..SandboxConfig::default()
    };
    let outcome = || {
        let sandbox = Sandbox::new(config.clone()).unwrap();
        sandbox.load(&path).unwrap().cache_outcome().clone()
    };
    assert_eq!(outcome(), CacheOutcome::Shipped);
    assert_eq!(std::fs::read_dir(cache.path()).unwrap().count(), 0, "there was nothing to keep");
    let kept = sandbox(Some(shipped.path())).cache().unwrap().path_of(&artefact, CallPath::Direct);
    std::fs::write(&kept, b"damaged").unwrap();
    assert_eq!(outcome(), CacheOutcome::Compiled);
    assert_eq!(std::fs::read(&kept).unwrap(), b"damaged", "it is not ours to write");
    assert_eq!(outcome(), CacheOutcome::Hit);
}

/// At which row of a window a strategy has failed is not known, so the run is made again with window 1:
/// everything in its folder is what window 1 gives, the fault and its time too.
#[test]
fn a_strategy_that_fails_leaves_the_same_folder_with_every_window() {
    let user = UserFolder::with_sample(2, 20_000);
    for (guest, parameters) in [
        ("panics-in-event", "--param at=1"),
        ("panics-in-event", "--param at=9000"),
        ("panics-in-event", "--param at=21500"),
        ("grows-memory", ""),
        // Too much at one trade is too much, however many others are quiet.
        ("floods-output", "--param at=9000 --param count=5000 --param bytes=20"),
        ("floods-output", "--param at=9000 --param count=4000 --param bytes=400"),
    ] {
        let guest = built::test_guest(guest).display().to_string();
        let run = |window: u32, out: &str| {
            user.said(&format!(
                "replay run {guest} {parameters} --data data --instrument 7203.TSE --window {window} --out {out}"
            ))
        };
        let strict = run(1, "strict");
        assert_eq!(strict.code, 3, "{}", strict.errors);
        assert!(!strict.errors.contains("made again"), "{}", strict.errors);
        let expected = files_in(&user.path("strict"));
        for window in [7, 1_024, 8_192] {
            let wide = run(window, "wide");
            assert_eq!(wide.code, 3, "{}", wide.errors);
            let told = format!("in a window of {window}; the run is made again with window 1");
            assert!(wide.errors.contains(&told), "{}", wide.errors);
            assert!(
                files_in(&user.path("wide")) == expected,
                "{guest} {parameters}: window {window}"
            );
        }
        let verify = format!("replay verify wide --strategy {guest} --quiet");
        assert_eq!(user.said(&verify).code, 0, "{guest} {parameters}");
    }
}

/// Windows are handed over in parts that fit into what one event may leave.
#[test]
fn a_strategy_that_writes_at_each_trade_goes_through_in_every_window() {
    let user = UserFolder::with_sample(1, 3_000);
    let guest = built::test_guest("floods-output").display().to_string();
    let run = |window: u32, out: &str| {
        user.said(&format!(
            "replay run {guest} --param bytes=600 --data data --instrument 7203.TSE --window {window} --out {out}"
        ))
    };
    let strict = run(1, "strict");
    assert_eq!(strict.code, 0, "{}", strict.errors);
    for window in [64, 2_048, 65_536] {
        let wide = run(window, "wide");
        assert_eq!((wide.code, wide.errors.as_str()), (0, strict.errors.as_str()), "{window}");
        let log = |folder: &str| std::fs::read(user.path(folder).join("log.csv")).unwrap();
        assert!(log("wide") == log("strict"), "{window}");
    }
}

/// A batch of trades has the fuel of one of them, and a run that wants more is made again without batches:
/// nothing of it is seen, and what a trade may use by itself is the limit as it was, to the unit.
#[test]
fn the_fuel_of_a_trade_does_not_depend_on_batches() {
    let user = UserFolder::with_sample(2, 4_000);
    let run = |fuel: &str, out: &str| {
        user.said(&format!(
            "replay run sma-cross --param fast=5 --param slow=20 {fuel} --data data --instrument 7203.TSE \
             --out {out}"
        ))
    };
    let rows = |out: &str| {
        let mut files = files_in(&user.path(out));
        files.retain(|name, _| name.ends_with(".csv") || name.ends_with(".jsonl"));
        assert!(files.len() > 5);
        files
    };
    let plain = run("", "plain");
    assert_eq!(plain.code, 0, "{}", plain.errors);
    // The least fuel with which it comes to its end: its dearest trade has none left then.
    let (mut too_little, mut enough) = (100, 100_000);
    while enough - too_little > 1 {
        let middle = (too_little + enough) / 2;
        match run(&format!("--guest-limit fuel={middle}"), "searched").code {
            0 => enough = middle,
            3 => too_little = middle,
            code => panic!("{middle}: {code}"),
        }
    }
    for fuel in [enough, enough + 1, enough * 2] {
        let scarce = run(&format!("--guest-limit fuel={fuel}"), "scarce");
        assert_eq!((scarce.code, scarce.errors.as_str()), (0, plain.errors.as_str()), "{fuel}");
        assert!(rows("scarce") == rows("plain"), "{fuel}");
        assert_eq!(user.said("replay verify scarce --quiet").code, 0, "{fuel}");
    }
    // Nor on the window, of which many trades together need less than that many times the limit.
    for window in [2, 16, 1_024] {
        let scarce = run(&format!("--window {window} --guest-limit fuel={enough}"), "scarce");
        assert_eq!(scarce.code, 0, "{window}: {}", scarce.errors);
        assert!(rows("scarce") == rows("plain"), "{window}");
        let failed = run(&format!("--window {window} --guest-limit fuel={too_little}"), "failed");
        assert_eq!(failed.code, 3, "{window}: {}", failed.errors);
    }
    let failed = run(&format!("--guest-limit fuel={too_little}"), "failed");
    let told = format!("used up its fuel of {too_little} units in one call");
    assert!(failed.code == 3 && failed.errors.contains(&told), "{}", failed.errors);
    assert_eq!(user.said("replay verify failed --quiet").code, 0);
}

/// Positions and trades of each instrument are its own in a batch too.
#[test]
fn a_strict_run_of_several_instruments_is_that_of_every_window() {
    let user = UserFolder::empty();
    let instruments = ["7203.TSE", "9984.TSE", "8306.TSE"];
    let listed: Vec<String> = instruments.iter().map(|id| format!("--instrument {id}")).collect();
    let listed = listed.join(" ");
    user.good(&format!("data sample --out data {listed} --days 2 --seed 3 --trades-per-day 3000"));
    let guest = built::test_guest("trades-at-random").display().to_string();
    let run = |more: &str, out: &str| {
        user.good(&format!(
            "replay run {guest} --param every=20 --data data {listed} --quiet --cash 1000000000 {more} --out {out}"
        ));
        let mut files = files_in(&user.path(out));
        files.retain(|name, _| name.ends_with(".csv") || name.ends_with(".jsonl"));
        files
    };
    let strict = run("", "strict");
    assert!(strict["orders.csv"].iter().filter(|byte| **byte == b'\n').count() > 500);
    assert!(strict == run("--window 64", "wide"));
    assert_eq!(user.said(&format!("replay verify strict --strategy {guest} --quiet")).code, 0);
}

/// The memory of a batch wants address space of its own; where there is none left the run needs none.
#[cfg(target_os = "linux")]
#[test]
fn a_strict_run_needs_no_more_address_space_than_another() {
    use std::process::Command;
    let user = UserFolder::with_sample(1, 2_000);
    let run = |kilobytes: u64, window: u32, out: &str| {
        let line = format!(
            "ulimit -v {kilobytes} && exec \"$0\" replay run sma-cross --param fast=3 --param slow=9 --data data \
             --instrument 7203.TSE --quiet --window {window} --out {out}"
        );
        let program = user.command("");
        let mut command = Command::new("sh");
        command.arg("-c").arg(line).arg(program.get_program()).current_dir(user.folder());
        for (name, value) in program.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        command.output().unwrap().status.code()
    };
    // The least with which a larger window runs, to half a gigabyte.
    let least = (4..40).map(|half| half * 500_000).find(|most| run(*most, 64, "wide") == Some(0));
    let least = least.expect("it runs in 20 GB");
    assert_eq!(run(least, 1, "strict"), Some(0), "with {least} kB of address space");
    let rows = |out: &str| files_in(&user.path(out)).remove("fills.csv").unwrap();
    assert!(rows("strict") == rows("wide"));
}
