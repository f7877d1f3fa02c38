//! Several instruments, bars and paced runs, through the sandbox and through the program:
//! whatever way a run takes, the same happens.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use domain::digest::Digest;
use domain::market::BarGranularity;
use domain::strategy::StrategyRuntime;
use domain::{Instrument, InstrumentId};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use marketdata::{
    BarFile, Catalog, SampleCodes, SampleSpec, TradeStore, write_sample, write_sample_with_bars,
};
use replay::{BarSeries, MarketSeries, ReplayOptions, TradeSeries};
use results::{RunResult, RunStatus};
use sandbox::{Limits, Sandbox, StrategyModule};
use tests::native::Native;
use tests::user_folder::UserFolder;
use tests::{built, runs, sample};

const CODES: [&str; 3] = ["72030", "130A0", "99840"];

fn spec(days: u32, trades_per_code_day: u32) -> SampleSpec {
    SampleSpec {
        seed: 7,
        start: "2024-10-30".parse().unwrap(),
        days,
        codes: SampleCodes::These(CODES.map(sample::vendor_code).to_vec()),
        trades_per_code_day,
    }
}

fn trades(folder: &Path, codes: usize) -> MarketSeries {
    let cache = folder.join("cache");
    let load = |code: &&str| sample::load(folder, code, &cache);
    MarketSeries::of_trades(CODES[..codes].iter().map(load).collect())
}

/// Bars from the bar files, or made from the trades.
fn bars(folder: &Path, granularity: BarGranularity, made: bool) -> MarketSeries {
    let store = TradeStore::new(folder.join("cache"));
    let codes = CODES.map(sample::vendor_code);
    let go_on = &mut |_| std::ops::ControlFlow::Continue(());
    let mut series: Vec<BarSeries> = codes.iter().map(|_| BarSeries::new(granularity)).collect();
    if made {
        for file in Catalog::open(folder).unwrap().files() {
            let segments = store.load(file, &codes, go_on).unwrap();
            for (series, segment) in series.iter_mut().zip(&segments) {
                let all = 0..segment.len();
                series.push_trades(segment, std::slice::from_ref(&all));
            }
        }
    } else {
        for file in BarFile::list(folder, granularity).unwrap() {
            let segments = store.load_bars(&file, &codes, go_on).unwrap();
            for (series, segment) in series.iter_mut().zip(&segments) {
                series.push(segment, 0..segment.len());
            }
        }
    }
    MarketSeries::of_bars(series)
}

fn options(config: &str, codes: usize, window: u32) -> ReplayOptions {
    let options = sample::options(config, window, "1");
    let of_code = |code: &&str| Instrument {
        id: sample::vendor_code(code).instrument_id(),
        ..options.instruments[0].clone()
    };
    ReplayOptions { instruments: CODES[..codes].iter().map(of_code).collect(), ..options }
}

fn module(name: &str) -> StrategyModule {
    let path = match name {
        "sma-cross" => built::strategy(name),
        _ => built::test_guest(name),
    };
    Sandbox::new(built::keeping_sandbox()).unwrap().load(&path).unwrap()
}

fn run_with(
    series: &MarketSeries,
    strategy: &mut dyn StrategyRuntime,
    options: &ReplayOptions,
) -> RunResult {
    let result = runs::unpaced(series.days(), strategy, options);
    assert_eq!(result.totals.status, RunStatus::Completed);
    result
}

fn run(series: &MarketSeries, module: &StrategyModule, options: &ReplayOptions) -> RunResult {
    run_with(series, &mut module.instantiate(Limits::default()).unwrap(), options)
}

#[track_caller]
fn check_all_ways(series: &MarketSeries, name: &str, config: &str, codes: usize) -> RunResult {
    let module = module(name);
    let first = run(series, &module, &options(config, codes, 1));
    for window in [2, 64, 1_024, 65_536] {
        let other = run(series, &module, &options(config, codes, window));
        assert_eq!(first.totals.digest, other.totals.digest, "{name}, window {window}");
        assert_eq!(first.equity, other.equity, "{name}, window {window}");
    }
    let mut instance = module.instantiate(Limits::default()).unwrap();
    let paced = runs::paced(series.days(), &mut instance, &options(config, codes, 1_024));
    assert_eq!(first.totals.digest, paced.totals.digest, "{name}, paced");
    first
}

#[test]
fn windows_and_paths_agree_over_several_instruments() {
    let folder = tempfile::tempdir().unwrap();
    write_sample(folder.path(), &spec(4, 2_000)).unwrap();
    for codes in [2, 3] {
        let series = trades(folder.path(), codes);
        let config = r#"{"every": 20, "seed": 5}"#;
        let random = check_all_ways(&series, "trades-at-random", config, codes);
        for index in 0..codes {
            let of_index =
                random.fills.iter().filter(|fill| usize::from(fill.instrument.0) == index);
            assert!(of_index.count() > 20, "instrument {index} was traded");
        }
        check_all_ways(&series, "sma-cross", r#"{"fast": 5, "slow": 20}"#, codes);
    }
}

#[test]
fn an_instrument_trades_alone_as_in_company() {
    let folder = tempfile::tempdir().unwrap();
    write_sample(folder.path(), &spec(2, 2_000)).unwrap();
    let (one, three) = (trades(folder.path(), 1), trades(folder.path(), 3));
    let module = module("sma-cross");
    let config = r#"{"fast": 5, "slow": 20}"#;
    // Enough cash that no instrument takes it from another.
    let rich = |codes| ReplayOptions {
        cash: domain::Money::from_yen(1_000_000_000),
        ..options(config, codes, 1_024)
    };
    let prices = |result: &RunResult| -> Vec<_> {
        let first = result.fills.iter().filter(|fill| fill.instrument.0 == 0);
        first.map(|fill| (fill.ts_event, fill.side, fill.price, fill.quantity)).collect()
    };
    let alone = prices(&run(&one, &module, &rich(1)));
    assert!(alone.len() > 50);
    assert_eq!(alone, prices(&run(&three, &module, &rich(3))));
}

#[test]
fn bars_of_files_and_bars_of_trades_give_the_same_run() {
    let folder = tempfile::tempdir().unwrap();
    write_sample_with_bars(folder.path(), &spec(12, 1_500)).unwrap();
    for (granularity, fills_min) in [(BarGranularity::Minute, 60), (BarGranularity::Day, 3)] {
        let vendor = bars(folder.path(), granularity, false);
        let made = bars(folder.path(), granularity, true);
        assert_eq!(vendor.calendar(), made.calendar());
        assert_eq!(vendor.day_count(), 12);
        let config = r#"{"every": 3, "seed": 2}"#;
        let first = check_all_ways(&vendor, "trades-at-random", config, 3);
        assert!(first.fills.len() >= fills_min, "{}", first.fills.len());
        let second = check_all_ways(&made, "trades-at-random", config, 3);
        assert_eq!(first.totals.digest, second.totals.digest);
        assert_eq!(
            (first.totals.trades_seen, first.totals.span),
            (second.totals.trades_seen, second.totals.span)
        );
        let config = r#"{"fast": 1, "slow": 2}"#;
        let sandboxed = check_all_ways(&vendor, "sma-cross", config, 3);
        let mut native = Native::<sma_cross::SmaCross>::default();
        let native = run_with(&vendor, &mut native, &options(config, 3, 1));
        assert!(!sandboxed.fills.is_empty());
        assert_eq!(sandboxed.totals.digest, native.totals.digest);
    }
}

#[test]
fn the_calendar_is_the_datas() {
    let folder = tempfile::tempdir().unwrap();
    write_sample(folder.path(), &spec(4, 100)).unwrap();
    let calendar = trades(folder.path(), 1).calendar();
    let days: Vec<_> = calendar.days().iter().map(ToString::to_string).collect();
    // A weekend, and a holiday for the one that fell on the Sunday.
    assert_eq!(days, ["2024-10-30", "2024-10-31", "2024-11-01", "2024-11-05"]);
}

#[test]
fn a_deleted_cache_does_not_disturb_a_run() {
    let folder = tempfile::tempdir().unwrap();
    write_sample(folder.path(), &spec(4, 500)).unwrap();
    let series = trades(folder.path(), 2);
    let module = module("sma-cross");
    let options = options(r#"{"fast": 5, "slow": 20}"#, 2, 1);
    let before: Digest = run(&series, &module, &options).totals.digest;
    std::fs::remove_dir_all(folder.path().join("cache")).unwrap();
    assert_eq!(run(&series, &module, &options).totals.digest, before);
    assert_eq!(TradeSeries::default().len(), 0);
}

/// A folder with sample trades and bars.
fn user() -> UserFolder {
    let user = UserFolder::empty();
    let report = write_sample_with_bars(user.path("data"), &spec(3, 600)).unwrap();
    assert_eq!(report.bar_files.len(), 4);
    user
}

/// The JSON summary of a run that must succeed.
fn summary(user: &UserFolder, arguments: &str) -> serde_json::Value {
    let common = "replay run sma-cross --data data --param fast=2 --param slow=5 --quiet";
    let text = user.good(&format!("{common} --format json {arguments}"));
    serde_json::from_str(&text).unwrap()
}

fn refused(user: &UserFolder, arguments: &str) -> String {
    user.bad(&format!("replay run sma-cross --data data {arguments}")).1
}

fn ids(count: usize) -> String {
    let ids = CODES[..count].iter().map(|code| sample::vendor_code(code).instrument_id());
    ids.map(|id: InstrumentId| format!("--instrument {id} ")).collect()
}

#[test]
fn the_program_replays_several_instruments_and_bars() {
    let user = user();
    let both = summary(&user, &ids(2));
    assert_eq!(both["manifest"]["instrument_id"], "7203.TSE,130A.TSE");
    assert_eq!(both["manifest"]["granularity"], "trade");
    assert!(both["manifest"].get("bars_from").is_none());
    for (granularity, bars) in [("minute", 1_000), ("day", 6)] {
        let arguments = format!("{} --granularity {granularity}", ids(2));
        let vendor = summary(&user, &arguments);
        assert_eq!(vendor["manifest"]["granularity"], granularity);
        assert_eq!(vendor["manifest"]["bars_from"], "vendor");
        assert!(vendor["summary"]["trades_seen"].as_u64().unwrap() >= bars, "{vendor}");
        let digest = &vendor["summary"]["event_log_digest"];
        // Without the bar files of one month, then of both.
        let data = user.path("data");
        let kind = if granularity == "day" { "daily" } else { "minute" };
        for (month, from) in [("202410", "vendor and trades"), ("202411", "trades")] {
            let name = format!("equities_bars_{kind}_{month}.csv.gz");
            std::fs::remove_file(data.join(name)).unwrap();
            let made = summary(&user, &arguments);
            assert_eq!(made["manifest"]["bars_from"], from);
            assert_eq!(&made["summary"]["event_log_digest"], digest, "{granularity}");
        }
    }
}

/// Puts one day of a monthly minute file into a file of its own, and removes the monthly files.
fn keep_minutes_of(data: &Path, day: &str) -> String {
    let month = data.join(format!("equities_bars_minute_{}.csv.gz", day[..7].replace('-', "")));
    let mut text = String::new();
    MultiGzDecoder::new(File::open(&month).unwrap()).read_to_string(&mut text).unwrap();
    let is_kept = |line: &&str| line.starts_with("Date,") || line.starts_with(day);
    let kept: String = text.split_inclusive('\n').filter(is_kept).collect();
    let name = format!("equities_bars_minute_{}.csv.gz", day.replace('-', ""));
    let mut out = GzEncoder::new(File::create(data.join(&name)).unwrap(), Compression::fast());
    out.write_all(kept.as_bytes()).unwrap();
    out.finish().unwrap();
    for month in ["202410", "202411"] {
        let path = data.join(format!("equities_bars_minute_{month}.csv.gz"));
        std::fs::remove_file(path).unwrap();
    }
    name
}

#[test]
fn days_without_a_bar_file_are_made_from_trades() {
    for day in ["2024-10-30", "2024-10-31", "2024-11-01"] {
        let user = user();
        let arguments = format!("{} --granularity minute", ids(2));
        let vendor = summary(&user, &arguments);
        let name = keep_minutes_of(&user.path("data"), day);
        let mixed = summary(&user, &arguments);
        assert_eq!(mixed["summary"], vendor["summary"], "{day}");
        assert_eq!(mixed["manifest"]["bars_from"], "vendor and trades");
        let inputs = mixed["manifest"]["inputs"].as_array().unwrap();
        assert!(inputs.iter().any(|input| input["file"] == name.as_str()), "{inputs:?}");
        let only = summary(&user, &format!("{arguments} --from {day} --to {day}"));
        assert_eq!(only["manifest"]["bars_from"], "vendor");
    }
}

#[test]
fn the_program_streams_with_the_same_result() {
    let user = user();
    let arguments = format!("{} --to 2024-10-30", ids(2));
    let at_once = summary(&user, &arguments);
    let streamed = summary(&user, &format!("{arguments} --speed max"));
    assert_eq!(at_once["summary"], streamed["summary"]);
    assert_eq!(at_once["manifest"], streamed["manifest"]);
    let message = refused(&user, &format!("{arguments} --speed 0"));
    assert!(message.contains("how many times faster than the market"), "{message}");
}

#[test]
fn the_program_refuses_a_fifth_instrument_and_names_the_one_without_data() {
    let user = user();
    let five = format!("{} --instrument 6758.TSE --instrument 6501.TSE", ids(3));
    let message = refused(&user, &five);
    assert!(message.starts_with("error: 5 instruments asked for; one replay takes 1 to 4\n"));
    let twice = refused(&user, &format!("{} --instrument 7203.TSE", ids(2)));
    assert!(twice.contains("7203.TSE is given twice"), "{twice}");
    // The vendor's code of the same issue.
    let twice = refused(&user, &format!("{} --instrument 72030.TSE", ids(2)));
    assert!(twice.contains("72030.TSE is given twice"), "{twice}");
    let missing = refused(&user, &format!("{} --instrument 25935.TSE -q", ids(1)));
    assert!(missing.contains("has no trades of 25935.TSE (vendor code 25935)"), "{missing}");
    let missing = refused(&user, "--instrument 25935.TSE -q --granularity day");
    assert!(
        missing.contains("has no bars (nor, on days that no bar file covers, trades) of 25935.TSE"),
        "{missing}"
    );
}
