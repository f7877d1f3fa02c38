//! Needs the built-in strategies beside the test program; without them the tests say so and pass.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use domain::market::Trade;
use domain::time::NANOS_PER_SECOND;
use domain::{InstrumentIx, Price, Quantity, Random, session};
use flate2::Compression;
use flate2::write::GzEncoder;
use replay::Unpaced;
use replay::request::RequestOutcome;
use replay::stream::StreamStep;
use results::sink::{Record, TotalsOnly};
use serde_json::json;

use super::*;
use crate::compare::compare;
use crate::feed::tests::trade as live_trade;
use crate::feed::{FeedLimits, FeedObserver, Opening, feed};
use crate::journal::reproduce;

pub(crate) struct Nobody;

impl RunObserver for Nobody {}

/// Steps that were written down, then a stop. Looks at the run's folder when the first one is taken.
struct Script {
    steps: VecDeque<StreamStep>,
    folder: PathBuf,
    seen: Option<Value>,
}

impl MarketStream for Script {
    fn ready(&mut self) {
        assert!(self.seen.is_none());
        self.seen = Some(manifest_in(&self.folder));
    }

    fn next(&mut self) -> StreamStep {
        assert!(self.seen.is_some(), "it was ready before");
        self.steps.pop_front().unwrap_or(StreamStep::Stop)
    }
}

pub(crate) fn manifest_in(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("manifest.json")).unwrap()).unwrap()
}

/// The folder of the built-in strategies; none where they are not built.
pub(crate) fn built_in() -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let release = test.ancestors().find(|folder| folder.ends_with("release")).unwrap();
    let folder = release.join("strategies");
    let is_there = folder.join("sma-cross.wasm").is_file();
    if !is_there {
        eprintln!("skipped: {} has no strategies; run `cargo xtask guests`", folder.display());
    }
    is_there.then_some(folder)
}

/// Trades of one day, a few per minute in both sessions, on whole yen.
pub(crate) fn day(random: &mut Random, date: &str, price: &mut i64) -> Vec<Trade> {
    let hours = session::TradingHours::of(date.parse().unwrap());
    let mut trades = Vec::new();
    for (open, close) in
        [(hours.morning_open, hours.morning_close), (hours.afternoon_open, hours.close)]
    {
        let mut ts_event = open;
        while ts_event < close {
            *price = (*price + random.below(7) as i64 - 3).clamp(2_300, 2_500);
            trades.push(Trade {
                ts_event,
                instrument: InstrumentIx(0),
                price: Price::from_yen(*price),
                quantity: Quantity::new(1_000 * (1 + random.below(9))),
            });
            ts_event = ts_event.plus_nanos((1 + random.below(20)) * NANOS_PER_SECOND);
        }
    }
    trades
}

/// Writes days as the vendor does.
fn write_day(folder: &Path, date: &str, trades: &[Trade]) {
    let mut text =
        "Date,Code,Time,SessionDistinction,Price,TradingVolume,TransactionId\n".to_owned();
    for (number, trade) in trades.iter().enumerate() {
        let seconds = trade.ts_event.jst_nanos_of_day() / NANOS_PER_SECOND;
        let session = if seconds < 12 * 3_600 { "01" } else { "02" };
        text.push_str(&format!(
            "{date},72030,{:02}:{:02}:{:02}.000000,{session},{},{},{:012}\n",
            seconds / 3_600,
            seconds / 60 % 60,
            seconds % 60,
            trade.price,
            trade.quantity,
            number + 1,
        ));
    }
    let name = format!("equities_trades_{}.csv.gz", date.replace('-', ""));
    let mut out = GzEncoder::new(File::create(folder.join(name)).unwrap(), Compression::fast());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap();
}

pub(crate) fn paper(strategies: PathBuf, home: &Path) -> PaperRun {
    PaperRun {
        kind: RunKind::Paper,
        run_id: "r-1".to_owned(),
        strategy_id: "s-1".to_owned(),
        strategy: "sma-cross".to_owned(),
        strategies: Strategies { folder: strategies, cache: home.join("cache"), shipped: None },
        parameters: BTreeMap::from([("fast".to_owned(), json!(5)), ("slow".to_owned(), json!(40))]),
        instruments: vec!["7203.TSE".parse().unwrap()],
        data: Some(home.join("data")),
        choices: InstrumentChoices::default(),
        rows: FeedRows::Trades,
        first: "2025-01-07".parse().unwrap(),
        cash: Money::from_yen(10_000_000),
        model: exchange::Preset::Realistic.model(),
        limits: Limits::default(),
        orders: OrderLimits::default(),
        folder: home.join("runs").join("r-1"),
    }
}

fn run(run: PaperRun, steps: Vec<StreamStep>) -> (Result<PaperOutcome, PaperError>, Script) {
    let mut script = Script { steps: steps.into(), folder: run.folder.clone(), seen: None };
    let ready = run.prepare(&mut Nobody).unwrap();
    let outcome = ready.run(&mut script, &mut TotalsOnly);
    (outcome, script)
}

fn of_trade(trade: &Trade) -> StreamStep {
    StreamStep::Trade { trade: *trade, aggressor: None }
}

const DATES: [&str; 4] = ["2025-01-06", "2025-01-07", "2025-01-08", "2025-01-09"];

/// P119 and P120: the rows of a trade file one by one give the same orders, fills and signals as a replay over the
/// file. P111: the folder is partial until the end, and complete then.
#[test]
fn p111_p119_p120_a_paper_run_leaves_what_a_replay_over_the_same_rows_does() {
    let Some(strategies) = built_in() else { return };
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    fs::create_dir_all(&data).unwrap();
    let (mut random, mut price) = (Random::new(&[49]), 2_400);
    let days = DATES.map(|date| (date, day(&mut random, date, &mut price)));
    let (base, days) = days.split_first().unwrap();
    write_day(&data, base.0, &base.1);
    let paper = paper(strategies, home.path());
    let folder = paper.folder.clone();
    let rows = days.iter().flat_map(|(_, trades)| trades.iter().map(of_trade));
    let steps = rows.chain([StreamStep::EndOfDay]).collect();
    let (outcome, script) = run(paper.clone(), steps);
    let Ok(PaperOutcome::Ended(ended)) = outcome else { panic!("{outcome:?}") };
    let begun = script.seen.unwrap();
    assert_eq!((&begun["partial"], &begun["status"]), (&json!(true), &json!("running")));
    assert_eq!((&begun["run_kind"], &begun["start"]), (&json!("paper"), &json!("2025-01-07")));
    let manifest = manifest_in(&folder);
    assert_eq!((&manifest["partial"], &manifest["run_kind"]), (&json!(false), &json!("paper")));
    assert_eq!(manifest["end"], json!("2025-01-09"));
    assert!(ended.totals.fill_count > 20, "{} fills", ended.totals.fill_count);
    let sha256 = sandbox::sha256(&fs::read(folder.join(STRATEGY_FILE)).unwrap());
    assert_eq!(json!(sha256), manifest["component"]["sha256"]);
    for date in ["20250107", "20250108", "20250109"] {
        assert!(folder.join(format!("journal-{date}.jsonl")).is_file(), "{date}");
    }
    assert!(folder.join("report.html").is_file());
    // P113: every decision comes out again.
    let reproduced = reproduce(&folder, None, Some(&home.path().join("cache"))).unwrap();
    assert!(reproduced.identical && !reproduced.torn, "{reproduced:?}");
    assert!(reproduced.outputs > 40, "{} outputs", reproduced.outputs);
    // P120: over the trades of the journal too, and another component does something else.
    let cache = home.path().join("cache");
    let compared = compare(&folder, None, &[], Some(&cache)).unwrap();
    assert_eq!(compared.identical, Some(true), "{:?}", compared.replays[0].first_difference);
    assert_eq!(compared.replays[0].model, "realistic");
    assert_eq!(compared.replays[0].fills.recorded, ended.totals.fill_count);
    // The orders one by one, by the run's own model and by another one.
    let presets = [exchange::Preset::Realistic, exchange::Preset::Optimistic];
    let compared = compare(&folder, None, &presets, Some(&cache)).unwrap();
    let [own, other] = &compared.models[..] else { panic!("{compared:?}") };
    assert!(own.pairs.iter().all(|pair| pair.recorded == pair.simulated), "{:?}", own.fills);
    assert_eq!((own.fills.recorded, own.fills.missed), (ended.totals.fill_count, 0));
    assert!(other.fills.slippage < Money::ZERO, "{:?}", other.fills);
    let other = built_in().unwrap().join("buy-and-hold.wasm");
    let compared = compare(&folder, Some(&other), &[], Some(&cache)).unwrap();
    assert_eq!((compared.identical, &*compared.component), (Some(false), "buy-and-hold"));
    assert!(compared.models.is_empty());

    days.iter().for_each(|(date, trades)| write_day(&data, date, trades));
    let out = home.path().join("replay");
    let request = RunRequest {
        data: DataRequest {
            folder: data,
            cache: home.path().join("cache"),
            instruments: paper.instruments,
            start: Some(paper.first),
            end: None,
            granularity: Granularity::Trade,
            choices: paper.choices,
        },
        strategy: paper.strategy,
        strategies: paper.strategies,
        parameters: paper.parameters,
        cash: paper.cash,
        model: paper.model,
        limits: paper.limits,
        window: WINDOW,
        out: Some(out.clone()),
        wall_clock: None,
    };
    let replayed = request.run(&mut Unpaced, None, &mut Nobody).unwrap();
    let RequestOutcome::Finished(replayed) = replayed else { panic!("{replayed:?}") };
    for table in ["orders", "fills", "signals", "round_trips", "narrative", "days", "log"] {
        let name = format!("{table}.csv");
        let read = |folder: &Path| fs::read_to_string(folder.join(&name)).unwrap();
        assert_eq!(read(&folder), read(&out), "{name}");
    }
    assert_eq!(ended.totals.equity_end, replayed.totals.equity_end);
}

/// Says when trades count.
struct Ready(Sender<()>);

impl FeedObserver for Ready {
    fn ready(&mut self, opening: Opening) {
        drop(opening);
        self.0.send(()).unwrap();
    }

    fn slow(&mut self, _: bool) {}
}

/// The whole way: frames on a thread of their own, the feed, the strategy, the exchange, the journal.
#[test]
fn p88_p90_a_feed_drives_a_paper_run_from_another_thread() {
    let Some(strategies) = built_in() else { return };
    let trades = day(&mut Random::new(&[2]), DATES[1], &mut 2_400);
    for rows in [FeedRows::Trades, FeedRows::Minutes] {
        let home = tempfile::tempdir().unwrap();
        let paper = PaperRun { rows, data: None, ..paper(strategies.clone(), home.path()) };
        let folder = paper.folder.clone();
        let (ready, is_ready) = channel();
        let observer = Box::new(Ready(ready));
        let (sender, mut receiver) =
            feed(&paper.instruments, rows, FeedLimits::default(), observer);
        let run = paper.prepare(&mut Nobody).unwrap();
        let outcome = thread::scope(|scope| {
            let trades = &trades;
            scope.spawn(move || {
                is_ready.recv().unwrap();
                for trade in trades {
                    let (ms, yen) = (trade.ts_event.millis(), trade.price.units() / 10_000);
                    sender.update(&live_trade("7203", ms, yen, trade.quantity.shares() as i64));
                    sender.clock(trade.ts_event);
                }
                sender.clock(session::TradingHours::of(DATES[1].parse().unwrap()).close);
                sender.end_of_day();
                while sender.waiting() > 0 {
                    thread::yield_now();
                }
            });
            run.run(&mut receiver, &mut TotalsOnly)
        });
        let Ok(PaperOutcome::Ended(ended)) = outcome else { panic!("{outcome:?}") };
        let minutes = |trade: &Trade| trade.ts_event.nanos() / (60 * NANOS_PER_SECOND);
        let mut spans: Vec<u64> = trades.iter().map(minutes).collect();
        spans.dedup();
        let expected = match rows {
            FeedRows::Trades => trades.len(),
            FeedRows::Minutes => spans.len(),
        };
        assert_eq!(ended.totals.trades_seen, expected as u64, "{rows:?}");
        let volume: u64 = trades.iter().map(|trade| trade.quantity.shares()).sum();
        assert_eq!(ended.totals.market_volume, u128::from(volume), "{rows:?}");
        let reproduced = reproduce(&folder, None, Some(&home.path().join("cache"))).unwrap();
        assert!(reproduced.identical && !reproduced.torn, "{reproduced:?}");
    }
}

#[test]
fn p116_a_stream_that_fails_ends_the_run_with_its_fault_and_a_complete_folder() {
    let Some(strategies) = built_in() else { return };
    let home = tempfile::tempdir().unwrap();
    let paper = PaperRun { data: None, ..paper(strategies, home.path()) };
    let folder = paper.folder.clone();
    let trades = day(&mut Random::new(&[1]), DATES[1], &mut 2_400);
    let mut steps: Vec<StreamStep> = trades.iter().take(100).map(of_trade).collect();
    steps.push(StreamStep::Note("GAP: 7203.TSE of a test".to_owned()));
    steps.push(StreamStep::Fail(FaultKind::TooSlow("of a test".to_owned())));
    let (outcome, _) = run(paper, steps);
    let Ok(PaperOutcome::Ended(ended)) = outcome else { panic!("{outcome:?}") };
    assert!(matches!(&ended.totals.status, RunStatus::Failed(fault)
        if fault.kind == FaultKind::TooSlow("of a test".to_owned())));
    let manifest = manifest_in(&folder);
    assert_eq!((&manifest["partial"], &manifest["status"]), (&json!(false), &json!("failed")));
    assert!(manifest["fault"].as_str().unwrap().contains("TOO_SLOW: of a test"));
    let log = fs::read_to_string(folder.join("log.csv")).unwrap();
    assert!(log.contains("GAP: 7203.TSE of a test"), "{log}");
}

/// Says that the disk is full from a record on.
struct FullDisk {
    records: u32,
}

impl RunSink for FullDisk {
    fn take(&mut self, _: Record<'_>) -> io::Result<()> {
        self.records += 1;
        match self.records {
            ..=20 => Ok(()),
            _ => Err(io::ErrorKind::StorageFull.into()),
        }
    }
}

/// P128: what cannot be recorded ends the run with a fault `JOURNAL`, and the manifest says so.
#[test]
fn p128_a_record_that_cannot_be_kept_ends_the_run_with_a_journal_fault() {
    let Some(strategies) = built_in() else { return };
    let home = tempfile::tempdir().unwrap();
    let paper = PaperRun { data: None, ..paper(strategies, home.path()) };
    let folder = paper.folder.clone();
    let trades = day(&mut Random::new(&[1]), DATES[1], &mut 2_400);
    let steps = trades.iter().map(of_trade).collect();
    let mut script = Script { steps, folder: folder.clone(), seen: None };
    let ready = paper.prepare(&mut Nobody).unwrap();
    let outcome = ready.run(&mut script, &mut FullDisk { records: 0 });
    let Ok(PaperOutcome::Ended(ended)) = outcome else { panic!("{outcome:?}") };
    let RunStatus::Failed(fault) = &ended.totals.status else { panic!("{ended:?}") };
    assert!(matches!(fault.kind, FaultKind::Journal(_)), "{fault}");
    let manifest = manifest_in(&folder);
    assert_eq!((&manifest["partial"], &manifest["status"]), (&json!(false), &json!("failed")));
    let text = manifest["fault"].as_str().unwrap();
    assert!(text.starts_with("JOURNAL: cannot write the results: "), "{text}");
    let reproduced = reproduce(&folder, None, Some(&home.path().join("cache"))).unwrap();
    assert!(reproduced.identical && reproduced.has_end, "{reproduced:?}");
}

/// P128: a disk that is really full. Only root may mount one.
#[cfg(target_os = "linux")]
#[test]
fn p128_a_full_disk_ends_the_run_and_the_manifest_says_so() {
    let Some(strategies) = built_in() else { return };
    let home = tempfile::tempdir().unwrap();
    let disk = home.path().join("runs");
    fs::create_dir(&disk).unwrap();
    let Some(_mounted) = SmallDisk::mount(&disk) else {
        eprintln!("no small disk can be mounted here; nothing was tested");
        return;
    };
    let paper = PaperRun { data: None, ..paper(strategies, home.path()) };
    let folder = paper.folder.clone();
    let trades = day(&mut Random::new(&[1]), DATES[1], &mut 2_400);
    let mut steps: Vec<StreamStep> = trades.iter().take(40).map(of_trade).collect();
    // More than the disk has, whatever else is on it.
    let line = "x".repeat(1 << 16);
    steps.extend((0..200).map(|_| StreamStep::Note(line.clone())));
    steps.extend(trades.iter().skip(40).map(of_trade));
    let mut script = Script { steps: steps.into(), folder: folder.clone(), seen: None };
    let outcome = paper.prepare(&mut Nobody).unwrap().run(&mut script, &mut TotalsOnly);
    let Ok(PaperOutcome::Ended(ended)) = outcome else { panic!("{outcome:?}") };
    let RunStatus::Failed(fault) = &ended.totals.status else { panic!("{ended:?}") };
    assert!(matches!(fault.kind, FaultKind::Journal(_)), "{fault}");
    let manifest = manifest_in(&folder);
    assert_eq!((&manifest["partial"], &manifest["status"]), (&json!(false), &json!("failed")));
    let text = manifest["fault"].as_str().unwrap();
    assert!(text.starts_with("JOURNAL: ") && text.contains("No space left"), "{text}");
    // What was written can be made again, and is no damaged journal.
    let reproduced = reproduce(&folder, None, Some(&home.path().join("cache"))).unwrap();
    assert!(reproduced.identical, "{reproduced:?}");
    let report = results::report::write(&folder, &home.path().join("page.html")).unwrap_err();
    assert!(report.to_string().contains("it ended with: JOURNAL: "), "{report}");
}

/// A disk of four mebibytes, as long as it lives.
#[cfg(target_os = "linux")]
struct SmallDisk(PathBuf);

#[cfg(target_os = "linux")]
impl SmallDisk {
    fn mount(folder: &Path) -> Option<Self> {
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=4m", "kumiki-test"]).arg(folder);
        let is_mounted = mount.output().is_ok_and(|ended| ended.status.success());
        is_mounted.then(|| Self(folder.to_owned()))
    }
}

#[cfg(target_os = "linux")]
impl Drop for SmallDisk {
    fn drop(&mut self) {
        let ended = std::process::Command::new("umount").arg(&self.0).output();
        assert!(ended.is_ok_and(|ended| ended.status.success()), "the disk stays mounted");
    }
}

/// P110 and P116: whatever a strategy does, its run ends, and what it did until then can be made again.
#[test]
fn p110_p116_a_strategy_that_misbehaves_ends_its_own_run() {
    let Some(strategies) = built_in() else { return };
    let guests = strategies.parent().unwrap().join("test-guests");
    let trades = day(&mut Random::new(&[3]), DATES[1], &mut 2_400);
    let fuel = domain::GuestLimit::Fuel;
    let patient = Limits::default().with(fuel, fuel.most()).unwrap();
    let deadline = Limits { watchdog: Some(Duration::from_millis(200)), ..patient };
    for (name, limits) in [
        ("loops-forever", Limits::default()),
        ("loops-forever", deadline),
        ("grows-memory", Limits::default()),
        ("panics-in-event", Limits::default()),
        ("recurses", Limits::default()),
        ("returns-huge-lists", Limits::default()),
    ] {
        let home = tempfile::tempdir().unwrap();
        let strategy = guests.join(format!("{name}.wasm")).to_str().unwrap().to_owned();
        let parameters = BTreeMap::new();
        let of_home = paper(strategies.clone(), home.path());
        let paper = PaperRun { strategy, parameters, limits, data: None, ..of_home };
        let folder = paper.folder.clone();
        let (outcome, _) = run(paper, trades.iter().map(of_trade).collect());
        let Ok(PaperOutcome::Ended(ended)) = outcome else { panic!("{name}: {outcome:?}") };
        let RunStatus::Failed(fault) = &ended.totals.status else { panic!("{name} goes on") };
        let is_late = matches!(fault.kind, FaultKind::Watchdog { allowed_ms: 200 });
        assert_eq!(is_late, limits.watchdog.is_some(), "{name}: {fault}");
        let manifest = manifest_in(&folder);
        assert_eq!((&manifest["partial"], &manifest["status"]), (&json!(false), &json!("failed")));
        let reproduced = reproduce(&folder, None, Some(&home.path().join("cache"))).unwrap();
        assert!(reproduced.identical && !reproduced.torn, "{name}: {reproduced:?}");
    }
}

#[test]
fn p84_a_strategy_that_refuses_its_configuration_leaves_nothing_behind() {
    let Some(strategies) = built_in() else { return };
    let home = tempfile::tempdir().unwrap();
    let wrong = BTreeMap::from([("fast".to_owned(), json!("many"))]);
    let paper = PaperRun { parameters: wrong, data: None, ..paper(strategies, home.path()) };
    let folder = paper.folder.clone();
    let (outcome, script) = run(paper, Vec::new());
    let Ok(PaperOutcome::Refused(fault)) = outcome else { panic!("{outcome:?}") };
    assert!(matches!(fault.kind, FaultKind::Refused(_)), "{fault}");
    assert!(script.seen.is_none(), "it was never ready");
    assert!(!folder.exists());
}

#[test]
fn a_folder_that_is_there_or_a_file_that_has_changed_starts_no_run() {
    let Some(built) = built_in() else { return };
    let home = tempfile::tempdir().unwrap();
    let strategies = home.path().join("strategies");
    fs::create_dir(&strategies).unwrap();
    let file = strategies.join("sma-cross.wasm");
    fs::copy(built.join("sma-cross.wasm"), &file).unwrap();
    let paper = PaperRun { data: None, ..paper(strategies, home.path()) };
    let (folder, runs) = (paper.folder.clone(), home.path().join("runs"));
    let ready = paper.prepare(&mut Nobody).unwrap();
    let mut script = Script { steps: VecDeque::new(), folder: folder.clone(), seen: None };
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("mine"), "").unwrap();
    let occupied = ready.run(&mut script, &mut TotalsOnly);
    assert!(matches!(&occupied, Err(PaperError::Request(RequestError::Folder(_)))), "{occupied:?}");
    assert!(folder.join("mine").is_file());
    fs::remove_dir_all(&runs).unwrap();
    let mut other = fs::read(&file).unwrap();
    other.push(0);
    fs::write(&file, other).unwrap();
    let changed = ready.run(&mut script, &mut TotalsOnly).unwrap_err();
    assert!(changed.to_string().contains("has changed since it was loaded"), "{changed}");
    assert!(!folder.exists());
}

#[test]
fn p119_without_a_data_folder_lots_are_100_and_no_base_price_is_known() {
    let Some(strategies) = built_in() else { return };
    let home = tempfile::tempdir().unwrap();
    let paper = PaperRun { data: None, ..paper(strategies, home.path()) };
    let ready = paper.prepare(&mut Nobody).unwrap();
    assert_eq!(ready.options().instruments[0].lot, Quantity::new(100));
    assert_eq!(ready.options().base_prices, [None]);
    assert_eq!(ready.options().window, 1);
    assert!(
        ready.notes()[0].starts_with("7203.TSE: lot 100, the usual one"),
        "{:?}",
        ready.notes()
    );
    let manifest = ready.manifest(None);
    assert_eq!((manifest.start, manifest.end), ("2025-01-07".to_owned(), "2025-01-07".to_owned()));
}
