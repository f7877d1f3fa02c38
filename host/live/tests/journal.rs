//! The journal: what it holds, what a crash leaves of it, and that a component decides the same over it again.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::account::PortfolioView;
use domain::clock::{Stopwatch, sleep};
use domain::fault::{Fault, FaultKind, Identity};
use domain::market::{Bar, BarGranularity, Trade, Window};
use domain::strategy::{
    Action, Capabilities, LogLevel, LogLine, NarrativeRecord, Outcome, StrategyRuntime,
};
use domain::{
    ExchangeCalendar, GuestLimit, Instrument, InstrumentIx, JstDate, Money, OrderEvent, OrderSide,
    Price, Quantity, TickTable, TsNanos,
};
use exchange::ExecutionModel;
use live::compare::compare;
use live::journal::{
    Header, HostRecord, JOURNAL_VERSION, JOURNAL_WAITING_BYTES_MAX, Journal, JournalError,
    JournalFile, JournalFiles, Journaled, JournaledStream, KnownDays, OutputKind, Record,
    ReproduceError, Row, RowKind, RunKind, STRATEGY_FILE, read, reproduce,
};
use replay::stream::{MarketStream, StreamStep};
use replay::{ReplayOptions, TradingDay, Unpaced, limit_values, replay};
use results::RunStatus;
use results::sink::TotalsOnly;
use sandbox::{Limits, Sandbox, SandboxConfig};
use trader::OrderLimits;
use xxhash_rust::xxh3::xxh3_64_with_seed;

const SECOND: u64 = 1_000_000_000;

/// A component that xtask has built.
fn component(folder: &str, name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let target = test.ancestors().find(|path| path.ends_with("release") || path.ends_with("debug"));
    let path = target.unwrap().parent().unwrap().join("release").join(folder);
    let path = path.join(format!("{name}.wasm"));
    assert!(path.exists(), "{} is missing; run `cargo xtask guests`", path.display());
    path
}

/// A day of January 2025.
fn day(day: u32) -> JstDate {
    JstDate::from_ymd_opt(2025, 1, day).unwrap()
}

/// So many nanoseconds after 09:00 JST on a day of January 2025.
fn at(of: u32, nanos: u64) -> TsNanos {
    TsNanos::from_jst(day(of), 9 * 3_600 * SECOND + nanos).unwrap()
}

fn instruments() -> Vec<Instrument> {
    let ticks = TickTable::Fixed(Price::from_units(5_000));
    vec![Instrument { id: "7203.TSE".parse().unwrap(), lot: Quantity::new(100), ticks }]
}

fn header(sha256: &str, parameters: &str) -> Header {
    Header {
        version: JOURNAL_VERSION,
        part: 0,
        after: 0,
        kumiki_version: "0.0.0".to_owned(),
        engine: sandbox::ENGINE.to_owned(),
        run_kind: RunKind::Paper,
        run_id: "run-1".to_owned(),
        strategy_id: "mine".to_owned(),
        component: "mine".to_owned(),
        sha256: sha256.to_owned(),
        parameters: parameters.to_owned(),
        instruments: instruments(),
        base_prices: vec![Some(Price::from_yen(1_000))],
        days: KnownDays::default(),
        granularity: RowKind::Trade,
        cash: Money::from_yen(10_000_000),
        model: Some(ExecutionModel::default()),
        order_limits: OrderLimits {
            max_qty: Some(Quantity::new(1_000)),
            max_notional: Some(Money::from_yen(5_000_000)),
            ..OrderLimits::default()
        },
        limits: limit_values(&Limits::default()),
    }
}

fn options(parameters: &str) -> ReplayOptions {
    ReplayOptions {
        instruments: instruments(),
        cash: Money::from_yen(10_000_000),
        model: ExecutionModel::default(),
        ex_rights: vec![],
        window: 1,
        config_json: parameters.to_owned(),
        warnings_max: GuestLimit::Warnings.default_value(),
        rejected_bytes_max: GuestLimit::Rejected.default_value(),
        folder_bytes_max: GuestLimit::Folder.default_value(),
        folder_bytes_per_day: GuestLimit::FolderDay.default_value(),
        base_prices: vec![Some(Price::from_yen(1_000))],
        unit_changes: vec![],
        split_dates_known: vec![],
        calendar: ExchangeCalendar::default(),
        dates: None,
    }
}

/// Runs a component over two days of trades with a journal in a new folder, and says how it ended.
fn recorded(file: &Path, parameters: &str) -> (tempfile::TempDir, RunStatus) {
    let folder = tempfile::tempdir().unwrap();
    let module = Sandbox::new(SandboxConfig::default()).unwrap().load(file).unwrap();
    let strategy = module.instantiate(Limits::default()).unwrap();
    let header = header(module.artefact().sha256(), parameters);
    let journal = Journal::create(folder.path(), header, day(6)).unwrap();
    fs::copy(file, folder.path().join(STRATEGY_FILE)).unwrap();
    let mut random = domain::Random::new(&[49]);
    let (mut ts, mut price, mut quantity) = (vec![], vec![], vec![]);
    for of in [6, 7] {
        for number in 0..400 {
            ts.push(at(of, number * 7 * SECOND).nanos());
            price.push(9_900_000 + 5_000 * (random.unit() * 40.0) as i64);
            quantity.push(100 * (1 + (random.unit() * 5.0) as u64));
        }
    }
    let mut journaled = Journaled::new(strategy, journal.clone());
    let days = TradingDay::split(&ts, &price, &quantity);
    let options = options(parameters);
    let totals = replay(days, &mut journaled, &options, &mut TotalsOnly, &mut Unpaced).unwrap();
    journal.host(HostRecord::Stop);
    journal.finish().unwrap();
    (folder, totals.status)
}

fn at_random() -> tempfile::TempDir {
    let file = component("test-guests", "trades-at-random");
    let (folder, status) = recorded(&file, r#"{"every":3,"seed":7}"#);
    assert_eq!(status, RunStatus::Completed);
    folder
}

fn journal_of(folder: &Path, day: &str) -> PathBuf {
    folder.join(format!("journal-{day}.jsonl"))
}

/// Lines of JSON with their checksums, each after the one before; 0 is before the first. Gives the last checksum too.
fn sealed<'a>(lines: impl IntoIterator<Item = &'a str>) -> (String, u64) {
    let mut checksum = 0;
    let mut text = String::new();
    for json in lines {
        checksum = xxh3_64_with_seed(json.as_bytes(), checksum);
        text.push_str(&format!("{checksum:016x} {json}\n"));
    }
    (text, checksum)
}

/// The JSON of each line of a file.
fn lines_of(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap().lines().map(|line| line[17..].to_owned()).collect()
}

/// Writes the files of a journal again with other lines, as a program would have written them.
fn rewrite(folder: &Path, change: impl Fn(&mut Vec<String>)) {
    let mut after = 0;
    for day in ["20250106", "20250107"] {
        let path = journal_of(folder, day);
        let mut lines = lines_of(&path);
        change(&mut lines);
        let (begin, rest) = lines[0].split_once(r#""after":"#).unwrap();
        let rest = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
        lines[0] = format!(r#"{begin}"after":{after}{rest}"#);
        let (text, checksum) = sealed(lines.iter().map(String::as_str));
        after = checksum;
        fs::write(path, text).unwrap();
    }
}

/// A manifest that says whether the run has ended, and with which fault.
fn manifest(folder: &Path, partial: bool, fault: Option<&str>) {
    let manifest = serde_json::json!({ "partial": partial, "fault": fault, "run_kind": "paper" });
    fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
}

fn all(path: &Path) -> (Vec<Record<'static>>, bool) {
    let mut records = read(path).unwrap();
    let all = records.by_ref().map(Result::unwrap).collect();
    (all, records.torn())
}

/// A strategy that answers as it is told to, and keeps what it hears.
#[derive(Default)]
struct Scripted {
    /// What each row is answered with.
    actions: Vec<Action>,
    lines: Vec<LogLine>,
    fault: Option<FaultKind>,
    sides: Arc<Mutex<Vec<Option<OrderSide>>>>,
}

impl StrategyRuntime for Scripted {
    fn identity(&self) -> Identity {
        Identity { component: "scripted".to_owned(), sha256: "00".to_owned() }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { portfolio: true, ..Capabilities::default() }
    }

    fn init(&mut self, _: &str, _: &[Instrument]) -> Result<(), Box<Fault>> {
        Ok(())
    }

    fn start(&mut self, _: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        Ok(vec![])
    }

    fn advance(&mut self, _: Window<'_>, _: u32) -> Result<Outcome, Box<Fault>> {
        match self.fault.take() {
            None => Ok(Outcome { reached: 1, actions: self.actions.clone() }),
            Some(kind) => Err(Box::new(Fault {
                component: "scripted".to_owned(),
                sha256: "00".to_owned(),
                export: "advance",
                ts_event: None,
                kind,
                backtrace: vec![],
            })),
        }
    }

    fn set_aggressor(&mut self, side: Option<OrderSide>) {
        self.sides.lock().unwrap().push(side);
    }

    fn on_order_events(&mut self, _: &[OrderEvent]) -> Result<Vec<Action>, Box<Fault>> {
        Ok(vec![])
    }

    fn stop(&mut self, _: TsNanos) -> Result<Vec<Action>, Box<Fault>> {
        Ok(vec![])
    }

    fn set_portfolio(&mut self, _: &PortfolioView) {}

    fn take_log(&mut self) -> Vec<LogLine> {
        std::mem::take(&mut self.lines)
    }
}

fn trade(number: u64) -> Trade {
    Trade {
        ts_event: at(6, number * SECOND),
        instrument: InstrumentIx(0),
        price: Price::from_yen(1_000),
        quantity: Quantity::new(100),
    }
}

fn narrative(bytes: usize) -> Action {
    let (title, body) = ("why".to_owned(), "x".repeat(bytes));
    Action::Narrative(NarrativeRecord { client_order_id: None, title, body })
}

#[test]
fn p112_the_journal_has_all_inputs_and_outputs_by_day() {
    let folder = at_random();
    let mut names: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["journal-20250106.jsonl", "journal-20250107.jsonl", STRATEGY_FILE]);
    let mut after = 0;
    for (part, name) in (1..).zip(&names[..2]) {
        let path = folder.path().join(name);
        let text = fs::read_to_string(&path).unwrap();
        let first = text.lines().next().unwrap();
        let begin = format!(r#"{{"header":{{"version":2,"part":{part},"after":{after},"#);
        assert!(first.contains(&begin), "{first}");
        let (chain, checksum) = sealed(lines_of(&path).iter().map(String::as_str));
        assert_eq!(text, chain);
        after = checksum;
        assert!(first.contains(r#""max_notional":50000000000"#), "{first}");
    }
    let (records, torn) = all(folder.path());
    assert!(!torn);
    let count = |is: fn(&Record<'_>) -> bool| records.iter().filter(|record| is(record)).count();
    assert_eq!(count(|record| matches!(record, Record::Row(Row::Trade { .. }))), 800);
    let calls = |name: &str| {
        let is = |record: &&Record<'_>| matches!(record, Record::Call(call) if call.input.name() == name);
        records.iter().filter(is).count()
    };
    assert_eq!((calls("init"), calls("start"), calls("row"), calls("stop")), (1, 1, 800, 1));
    assert!(calls("order_events") > 100);
    assert!(count(|record| matches!(record, Record::Portfolio(_))) > 100);
    let end = [HostRecord::Stop, HostRecord::End].map(Record::Host);
    assert_eq!(records[records.len() - 2..], end);
}

#[test]
fn p113_a_component_decides_the_same_again() {
    let folder = at_random();
    let found = reproduce(folder.path(), None, None).unwrap();
    assert!(found.identical, "{found:?}");
    assert!(found.outputs > 200, "{found:?}");
    assert_eq!((found.first_difference, found.torn), (None, false));
    // The first file is enough for its own day.
    let first = reproduce(&journal_of(folder.path(), "20250106"), None, None).unwrap();
    assert!(first.identical && first.outputs < found.outputs, "{first:?}");
    let second = reproduce(&journal_of(folder.path(), "20250107"), None, None).unwrap_err();
    let ReproduceError::Journal(JournalError::NotFirst { part: 2, .. }) = second else {
        panic!("{second}");
    };
}

#[test]
fn p113_the_first_difference_has_both_sides() {
    let folder = at_random();
    // An order of another size than the one that was sent.
    rewrite(folder.path(), |lines| {
        let order = lines.iter_mut().find(|json| json.contains(r#""submit""#)).unwrap();
        *order = order.replacen(r#""quantity":"#, r#""quantity":9"#, 1);
    });
    let before = reproduce(folder.path(), None, None).unwrap();
    assert!(!before.identical);
    let difference = before.first_difference.unwrap();
    let (recorded, again) = (difference.recorded.unwrap(), difference.reproduced.unwrap());
    assert_eq!((recorded.call, recorded.ts_event), (again.call, again.ts_event));
    assert_eq!(recorded.input, "row");
    assert_ne!(recorded.output, again.output);
    let json = serde_json::to_value(&recorded).unwrap();
    assert!(json["output"]["action"]["order"]["submit"]["quantity"].is_u64(), "{json}");
}

#[test]
fn p113_another_component_has_to_be_named() {
    let (folder, _) = recorded(&component("strategies", "sma-cross"), r#"{"fast":3,"slow":9}"#);
    let hold = component("strategies", "buy-and-hold");
    fs::copy(&hold, folder.path().join(STRATEGY_FILE)).unwrap();
    let refused = reproduce(folder.path(), None, None).unwrap_err();
    assert!(refused.is_damage(), "{refused}");
    assert!(refused.to_string().contains("--component"), "{refused}");
    let found = reproduce(folder.path(), Some(&component("strategies", "sma-cross")), None);
    assert!(found.unwrap().identical);
    // Parameters of another strategy are refused, or something else is decided: told either way.
    let found = reproduce(folder.path(), Some(&hold), None).unwrap();
    assert!(!found.identical && found.first_difference.is_some(), "{found:?}");
}

#[test]
fn p113_what_the_journal_does_not_have_is_not_invented() {
    let (folder, _) = recorded(&component("test-guests", "panics-in-event"), "{}");
    let asks = component("test-guests", "trades-at-random");
    let error = reproduce(folder.path(), Some(&asks), None).unwrap_err();
    assert!(matches!(error, ReproduceError::NotRecorded { .. }), "{error}");
    assert!(!error.is_damage());
}

#[test]
fn p113_faults_of_the_component_are_outputs() {
    for (name, kind) in [("panics-in-event", "panic"), ("loops-forever", "fuel")] {
        let (folder, status) = recorded(&component("test-guests", name), "{}");
        assert!(matches!(status, RunStatus::Failed(_)), "{status:?}");
        let (records, _) = all(folder.path());
        let faults: Vec<String> = records
            .iter()
            .filter_map(|record| match record {
                Record::Call(call) => call.answer.fault.clone(),
                _ => None,
            })
            .map(|fault| fault.kind)
            .collect();
        assert_eq!(faults, [kind]);
        let found = reproduce(folder.path(), None, None).unwrap();
        assert!(found.identical && found.outputs > 0, "{found:?}");
    }
}

#[test]
fn p113_a_fault_of_the_clock_is_no_output() {
    let file = component("test-guests", "loops-forever");
    let (folder, _) = recorded(&file, "{}");
    let path = journal_of(folder.path(), "20250106");
    let (fuel, watchdog) = (r#""kind":"fuel""#, r#""kind":"watchdog""#);
    let lines: Vec<_> = lines_of(&path).iter().map(|json| json.replace(fuel, watchdog)).collect();
    assert!(lines.iter().any(|json| json.contains(watchdog)));
    fs::write(&path, sealed(lines.iter().map(String::as_str)).0).unwrap();
    let found = reproduce(folder.path(), None, None).unwrap();
    assert!(found.identical, "{found:?}");
    assert_eq!(found.outputs, 0);
}

#[test]
fn p112_kill_9_leaves_the_start_of_what_happened() {
    let folder = at_random();
    let path = journal_of(folder.path(), "20250107");
    let bytes = fs::read(&path).unwrap();
    let (whole, _) = all(folder.path());
    let lines: Vec<usize> =
        (0..bytes.len()).filter(|at| bytes[*at] == b'\n').map(|at| at + 1).collect();
    manifest(folder.path(), true, None);
    let from = lines[lines.len() - 5];
    for cut in from..bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        let (left, torn) = all(folder.path());
        assert_eq!(torn, !lines.contains(&cut), "cut at {cut}");
        assert_eq!(left, whole[..left.len()]);
        let lost = lines.iter().filter(|end| **end > cut).count();
        assert_eq!(left.len(), whole.len() - lost);
    }
    // The file of a day may have been begun, and no more.
    for cut in [0, 5, 40] {
        fs::write(&path, &bytes[..cut]).unwrap();
        let (left, torn) = all(folder.path());
        assert!(torn && left == whole[..left.len()], "cut at {cut}");
    }
    fs::write(&path, &bytes[..lines[lines.len() - 2] + 30]).unwrap();
    let found = reproduce(folder.path(), None, None).unwrap();
    assert!(found.identical && found.torn, "{found:?}");
    // What power cuts leave: bytes that were never written.
    fs::write(&path, [&bytes[..from], &[0; 500]].concat()).unwrap();
    let found = reproduce(folder.path(), None, None).unwrap();
    assert!(found.identical && found.torn, "{found:?}");
}

#[test]
fn p113_damage_elsewhere_names_file_and_line() {
    let folder = at_random();
    let (first, second) =
        (journal_of(folder.path(), "20250106"), journal_of(folder.path(), "20250107"));
    let bytes = fs::read(&first).unwrap();
    let last_line = bytes.iter().filter(|byte| **byte == b'\n').count();
    let starts: Vec<usize> =
        (0..bytes.len()).filter(|at| bytes[*at] == b'\n').map(|at| at + 1).collect();
    let cases = [(2, starts[0] + 40), (3, starts[1] + 3), (last_line, bytes.len() - 4)];
    for (line, at) in cases {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        fs::write(&first, damaged).unwrap();
        let error = reproduce(folder.path(), None, None).unwrap_err();
        assert!(error.is_damage(), "{error}");
        let text = error.to_string();
        let name = "journal-20250106.jsonl is damaged at line";
        assert!(text.contains(&format!("{name} {line}:")), "{text}");
    }
    // A torn file that is not the last one.
    fs::write(&first, &bytes[..bytes.len() - 3]).unwrap();
    assert!(reproduce(folder.path(), None, None).unwrap_err().is_damage());
    // A file that is not there.
    fs::remove_file(&first).unwrap();
    let error = read(folder.path()).map(|_| ()).unwrap_err();
    assert!(matches!(error, JournalError::Missing { part: 1, .. }), "{error}");
    assert!(error.is_damage());
    // No journal at all is no damage.
    fs::remove_file(&second).unwrap();
    let error = reproduce(folder.path(), None, None).unwrap_err();
    assert!(!error.is_damage(), "{error}");
}

/// A journal of two days that needs no component.
fn plain() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(folder.path(), header("", "{}"), day(6)).unwrap();
    let mut strategy = Journaled::new(Scripted::default(), journal.clone());
    for of in [6, 7] {
        for number in 0..200 {
            let row = Trade { ts_event: at(of, number * SECOND), ..trade(0) };
            strategy.advance(Window::OneTrade(row), 1).unwrap();
        }
    }
    journal.host(HostRecord::Stop);
    journal.finish().unwrap();
    folder
}

/// How many records a journal has, whether it is torn, and whether it has an end.
fn whole(path: &Path) -> Result<(usize, bool, bool), JournalError> {
    let mut records = read(path)?;
    let mut count = 0;
    for record in &mut records {
        record?;
        count += 1;
    }
    Ok((count, records.torn(), records.has_end()))
}

/// Each line and each file covers the one before: what is taken out is noticed, wherever it was.
#[test]
fn p113_a_line_or_a_file_that_is_taken_out_is_damage() {
    let folder = plain();
    let (first, second) =
        (journal_of(folder.path(), "20250106"), journal_of(folder.path(), "20250107"));
    let damage = |what: &str| {
        let error = whole(folder.path()).unwrap_err();
        assert!(error.is_damage(), "{what}: {error}");
        assert!(ReproduceError::from(whole(folder.path()).unwrap_err()).is_damage());
        error
    };
    for path in [&first, &second] {
        let text = fs::read_to_string(path).unwrap();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for taken in [1, 2, lines.len() / 2, lines.len() - 3] {
            let left = [&lines[..taken], &lines[taken + 1..]].concat().concat();
            fs::write(path, left).unwrap();
            let JournalError::Damaged { line, .. } = damage("a line") else {
                panic!("line {taken} of {}", path.display())
            };
            assert_eq!(line as usize, taken + 1);
        }
        // Two lines that have changed their places.
        let mut other = lines.clone();
        other.swap(5, 6);
        fs::write(path, other.concat()).unwrap();
        damage("two lines");
        fs::write(path, text).unwrap();
    }
    // The last lines of a file that is not the last one: the next one says how it ended.
    let text = fs::read_to_string(&first).unwrap();
    let kept: String = text.split_inclusive('\n').take(300).collect();
    fs::write(&first, kept).unwrap();
    let error = damage("the end of the first file");
    assert!(matches!(error, JournalError::Unlinked { .. }), "{error}");
    fs::write(&first, text).unwrap();
    assert_eq!(whole(folder.path()).unwrap(), (802, false, true));
    // A whole file.
    fs::remove_file(&first).unwrap();
    damage("the first file");
}

/// A run that has ended has an end; one that was killed or goes on has none, and is read as far as it is written.
#[test]
fn p113_a_run_that_has_ended_has_an_end_in_its_journal() {
    let folder = plain();
    let second = journal_of(folder.path(), "20250107");
    let text = fs::read_to_string(&second).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    manifest(folder.path(), false, None);
    assert_eq!(whole(folder.path()).unwrap(), (802, false, true));
    let cuts = [lines[..lines.len() - 1].concat(), text[..text.len() - 3].to_owned()];
    for cut in cuts {
        fs::write(&second, &cut).unwrap();
        for fault in [None, Some("strategy `a` (00), in `advance`, JOURNAL: of its own")] {
            manifest(folder.path(), false, fault);
            let error = whole(folder.path()).unwrap_err();
            assert!(error.is_damage(), "{error}");
            assert!(error.to_string().contains("the end is missing"), "{error}");
        }
        // It goes on, it was killed, or its journal could not be written.
        for (partial, fault) in [(true, None), (false, Some("JOURNAL: cannot write to x: full"))] {
            manifest(folder.path(), partial, fault);
            let is_torn = !cut.ends_with('\n');
            assert_eq!(whole(folder.path()).unwrap(), (801, is_torn, false));
        }
    }
    // The last file as a whole.
    fs::remove_file(&second).unwrap();
    manifest(folder.path(), false, None);
    assert!(whole(folder.path()).unwrap_err().is_damage());
    // A manifest that nobody can read says nothing.
    fs::write(folder.path().join("manifest.json"), "{").unwrap();
    let error = whole(folder.path()).unwrap_err();
    assert!(!error.is_damage() && error.to_string().contains("manifest.json"), "{error}");
}

/// A kill while the first line is written leaves nothing to compare, and is no damage.
#[test]
fn p113_a_header_that_is_torn_as_the_only_line_is_torn() {
    let folder = plain();
    let (first, second) =
        (journal_of(folder.path(), "20250106"), journal_of(folder.path(), "20250107"));
    let text = fs::read_to_string(&first).unwrap();
    fs::remove_file(&second).unwrap();
    manifest(folder.path(), true, None);
    for cut in [0, 1, 17, 200, text.find('\n').unwrap()] {
        fs::write(&first, &text[..cut]).unwrap();
        for path in [folder.path(), first.as_path()] {
            let found = reproduce(path, None, None).unwrap();
            assert_eq!((found.outputs, found.identical, found.torn), (0, true, true), "{cut}");
            assert_eq!((found.first_difference, found.has_end), (None, false));
        }
        let error = compare(folder.path(), None, &[], None).unwrap_err();
        assert!(!error.is_damage() && error.to_string().contains("no whole line"), "{error}");
    }
    // Of a run that has ended it is damage.
    manifest(folder.path(), false, None);
    assert!(reproduce(folder.path(), None, None).unwrap_err().is_damage());
}

/// In version 1 no line was tied to the one before, and there was no end.
#[test]
fn p113_journals_of_version_1_are_read() {
    let folder = plain();
    for day in ["20250106", "20250107"] {
        let path = journal_of(folder.path(), day);
        let mut text = String::new();
        for json in lines_of(&path).iter().filter(|json| !json.contains(r#"{"host":"end"}"#)) {
            let mut json = json.clone();
            if let Some((begin, rest)) = json.split_once(r#""after":"#) {
                let (_, rest) = rest.split_once(',').unwrap();
                json = format!("{begin}{rest}").replace(r#""version":2"#, r#""version":1"#);
            }
            text.push_str(&sealed([&*json]).0);
        }
        fs::write(path, text).unwrap();
    }
    manifest(folder.path(), false, None);
    assert_eq!(whole(folder.path()).unwrap(), (801, false, false));
    // A later one is not guessed at.
    let path = journal_of(folder.path(), "20250106");
    let header = lines_of(&path)[0].replace(r#""version":1"#, r#""version":3"#);
    fs::write(path, sealed([&*header]).0).unwrap();
    let error = whole(folder.path()).unwrap_err();
    assert!(!error.is_damage() && error.to_string().contains("is of version 3"), "{error}");
}

/// A journal is read while another thread writes it: as far as it is written, and never as damaged.
#[test]
fn p113_a_journal_that_grows_is_read() {
    let folder = tempfile::tempdir().unwrap();
    manifest(folder.path(), true, None);
    let journal = Journal::create(folder.path(), header("", "{}"), day(6)).unwrap();
    let scripted = Scripted { actions: vec![narrative(300)], ..Scripted::default() };
    let mut strategy = Journaled::new(scripted, journal.clone());
    let enough = AtomicUsize::new(0);
    let (rows, seen) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut rows = 0;
            while enough.load(Ordering::SeqCst) == 0 {
                // Some hundred rows a day, so that there are many files.
                let ts_event = at(6 + (rows / 200 % 20) as u32, rows * SECOND / 1_000);
                let row = Trade { ts_event, ..trade(0) };
                strategy.advance(Window::OneTrade(row), 1).unwrap();
                rows += 1;
                sleep(Duration::from_micros(50));
            }
            rows
        });
        let mut seen = 0;
        for _ in 0..20 {
            let mut records = read(folder.path()).unwrap();
            let count = records.by_ref().map(Result::unwrap).count();
            assert!(count >= seen && !records.has_end(), "{count} after {seen}");
            seen = count;
            sleep(Duration::from_millis(10));
        }
        enough.store(1, Ordering::SeqCst);
        (writer.join().unwrap(), seen)
    });
    assert!(seen > 0);
    journal.finish().unwrap();
    let mut records = read(folder.path()).unwrap();
    assert_eq!(records.by_ref().map(Result::unwrap).count() as u64, 2 * rows + 1);
    assert!(records.has_end() && !records.torn());
}

/// Files that do with each write what a test says.
struct Files<F>(F);

impl<F> JournalFiles for Files<F>
where
    F: FnMut(JstDate) -> io::Result<Box<dyn JournalFile>> + Send + 'static,
{
    fn create(&mut self, day: JstDate) -> io::Result<Box<dyn JournalFile>> {
        (self.0)(day)
    }

    fn place(&self) -> String {
        "the test".to_owned()
    }
}

/// A file that waits, counts, or is full.
struct TestFile<W, S> {
    on_write: W,
    on_sync: S,
}

impl<W, S> Write for TestFile<W, S>
where
    W: FnMut(&[u8]) -> io::Result<()> + Send,
{
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.on_write)(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<W, S> JournalFile for TestFile<W, S>
where
    W: FnMut(&[u8]) -> io::Result<()> + Send,
    S: FnMut() + Send,
{
    fn sync(&mut self) -> io::Result<()> {
        (self.on_sync)();
        Ok(())
    }
}

/// Calls until the journal has failed; gives the text of the fault.
fn until_it_fails(strategy: &mut Journaled<Scripted>, mut rows: u64) -> String {
    loop {
        rows += 1;
        assert!(rows < 100_000, "the journal never fails");
        match strategy.advance(Window::OneTrade(trade(rows)), 1) {
            Ok(_) => sleep(Duration::from_micros(10)),
            Err(fault) => {
                assert_eq!(fault.component, "scripted");
                assert_eq!(fault.export, "advance");
                let FaultKind::Journal(text) = fault.kind else { panic!("{fault}") };
                return text;
            }
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn p112_a_full_disk_ends_the_strategy() {
    // The header fits, and nothing else.
    let full = |_| -> io::Result<Box<dyn JournalFile>> {
        let mut device = fs::OpenOptions::new().write(true).open("/dev/full")?;
        let mut is_header = true;
        let on_write = move |bytes: &[u8]| match std::mem::take(&mut is_header) {
            true => Ok(()),
            false => device.write_all(bytes),
        };
        Ok(Box::new(TestFile { on_write, on_sync: || () }))
    };
    let journal = Journal::create_in(Files(full), header("", "{}"), day(6)).unwrap();
    let mut strategy = Journaled::new(Scripted::default(), journal.clone());
    let text = until_it_fails(&mut strategy, 0);
    assert!(text.starts_with("cannot write to the test: No space left"), "{text}");
    assert_eq!(journal.failure(), Some(text.clone()));
    assert_eq!(journal.finish(), Err(text.clone()));
    // It is not called any more.
    let again = strategy.stop(at(6, SECOND)).unwrap_err();
    assert_eq!(again.kind.to_string(), format!("JOURNAL: {text}"));
    // And no journal begins on a full disk.
    let full = |_| -> io::Result<Box<dyn JournalFile>> {
        Ok(Box::new(fs::OpenOptions::new().write(true).open("/dev/full")?))
    };
    assert!(Journal::create_in(Files(full), header("", "{}"), day(6)).is_err());
}

#[test]
fn p112_the_caller_never_waits_for_the_disk() {
    let (written, open) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (written_in, gate) = (Arc::clone(&written), Arc::clone(&open));
    let stuck = move |_| -> io::Result<Box<dyn JournalFile>> {
        let (written, gate) = (Arc::clone(&written_in), Arc::clone(&gate));
        let on_write = move |bytes: &[u8]| {
            // The header is written at once.
            while written.load(Ordering::SeqCst) > 0 && gate.load(Ordering::SeqCst) == 0 {
                sleep(Duration::from_millis(1));
            }
            written.fetch_add(bytes.len(), Ordering::SeqCst);
            Ok(())
        };
        Ok(Box::new(TestFile { on_write, on_sync: || () }))
    };
    let journal = Journal::create_in(Files(stuck), header("", "{}"), day(6)).unwrap();
    let head = written.load(Ordering::SeqCst);
    let scripted = Scripted { actions: vec![narrative(1 << 20)], ..Scripted::default() };
    let mut strategy = Journaled::new(scripted, journal.clone());
    let mut slowest = Duration::ZERO;
    let mut rows = 0;
    let text = loop {
        rows += 1;
        let watch = Stopwatch::start();
        let given = strategy.advance(Window::OneTrade(trade(rows)), 1);
        slowest = slowest.max(watch.elapsed());
        if let Err(fault) = given {
            break fault.kind.to_string();
        }
    };
    // A line of a mebibyte and a little more each: the last one had no room.
    assert_eq!(rows, 64);
    assert!(text.starts_with("JOURNAL: 64 MiB wait to be written to the test"), "{text}");
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
    assert_eq!(written.load(Ordering::SeqCst), head, "nothing but the header is written");
    open.store(1, Ordering::SeqCst);
    assert!(journal.finish().is_err());
    let written = written.load(Ordering::SeqCst) - head;
    assert!(written > 63 << 20 && written <= JOURNAL_WAITING_BYTES_MAX, "{written}");
}

#[test]
fn p112_it_is_on_the_disk_within_a_second_and_is_left_alone_then() {
    let syncs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&syncs);
    let files = move |_| -> io::Result<Box<dyn JournalFile>> {
        let counted = Arc::clone(&counted);
        let on_sync = move || {
            counted.fetch_add(1, Ordering::SeqCst);
        };
        Ok(Box::new(TestFile { on_write: |_: &[u8]| Ok(()), on_sync }))
    };
    let journal = Journal::create_in(Files(files), header("", "{}"), day(6)).unwrap();
    let begun = syncs.load(Ordering::SeqCst);
    let mut strategy = Journaled::new(Scripted::default(), journal);
    for number in 0..1_000 {
        strategy.advance(Window::OneTrade(trade(number)), 1).unwrap();
    }
    sleep(Duration::from_millis(1_600));
    let synced = syncs.load(Ordering::SeqCst) - begun;
    assert!((1..=2).contains(&synced), "{synced}");
    sleep(Duration::from_millis(1_200));
    assert_eq!(syncs.load(Ordering::SeqCst) - begun, synced);
}

#[test]
fn p118_the_side_of_each_trade_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(folder.path(), header("", "{}"), day(6)).unwrap();
    let scripted = Scripted::default();
    let sides = Arc::clone(&scripted.sides);
    let mut strategy = Journaled::new(scripted, journal.clone());
    let given = [Some(OrderSide::Buy), None, Some(OrderSide::Sell)];
    for (number, side) in (0..).zip(given) {
        strategy.set_aggressor(side);
        strategy.advance(Window::OneTrade(trade(number)), 1).unwrap();
    }
    journal.finish().unwrap();
    assert_eq!(*sides.lock().unwrap(), given);
    let (records, _) = all(folder.path());
    let recorded: Vec<_> = records
        .iter()
        .filter_map(|record| match record {
            Record::Row(Row::Trade { aggressor, .. }) => Some(*aggressor),
            _ => None,
        })
        .collect();
    assert_eq!(recorded, given);
}

#[test]
fn a_row_is_recorded_once_and_one_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(folder.path(), header("", "{}"), day(6)).unwrap();
    let mut strategy = Journaled::new(Scripted::default(), journal.clone());
    // The stream has it first; two trades may be alike.
    for _ in 0..2 {
        journal.row(Row::Trade { trade: trade(1), aggressor: None });
        strategy.advance(Window::OneTrade(trade(1)), 1).unwrap();
    }
    let bar = Bar {
        ts_event: at(6, 60 * SECOND),
        instrument: InstrumentIx(0),
        granularity: BarGranularity::Minute,
        open: Price::from_yen(1),
        high: Price::from_yen(1),
        low: Price::from_yen(1),
        close: Price::from_yen(1),
        volume: Quantity::new(100),
    };
    strategy.advance(Window::Bars(&[bar]), 1).unwrap();
    let error = strategy.advance(Window::Bars(&[bar, bar]), 2).unwrap_err();
    assert!(matches!(error.kind, FaultKind::Journal(_)), "{error}");
    journal.finish().unwrap();
    let (records, _) = all(folder.path());
    let shapes: Vec<&str> = records
        .iter()
        .map(|record| match record {
            Record::Row(Row::Trade { .. }) => "trade",
            Record::Row(Row::Bar(_)) => "bar",
            Record::Call(_) => "call",
            _ => "other",
        })
        .collect();
    assert_eq!(shapes, ["trade", "call", "trade", "call", "bar", "call", "other"]);
}

/// Steps that are given one after the other.
struct Steps(std::vec::IntoIter<StreamStep>);

impl MarketStream for Steps {
    fn ready(&mut self) {}

    fn next(&mut self) -> StreamStep {
        self.0.next().unwrap_or(StreamStep::Stop)
    }
}

#[test]
fn p112_steps_of_the_market_are_recorded_before_what_they_cause() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(folder.path(), header("", "{}"), day(6)).unwrap();
    let steps = vec![
        StreamStep::Trade { trade: trade(1), aggressor: Some(OrderSide::Sell) },
        StreamStep::ReportBuyingPower,
        StreamStep::Note("GAP: 7203.TSE 100 shares".to_owned()),
        StreamStep::EndOfDay,
        StreamStep::Stop,
    ];
    let mut source = Steps(steps.clone().into_iter());
    let mut stream = JournaledStream::new(&mut source, journal.clone());
    stream.ready();
    for step in steps {
        assert_eq!(stream.next(), step);
    }
    journal.finish().unwrap();
    let (records, _) = all(folder.path());
    let expected = [
        Record::Row(Row::Trade { trade: trade(1), aggressor: Some(OrderSide::Sell) }),
        Record::Host(HostRecord::Note("GAP: 7203.TSE 100 shares".into())),
        Record::Host(HostRecord::EndOfDay),
        Record::Host(HostRecord::Stop),
        Record::Host(HostRecord::End),
    ];
    assert_eq!(records, expected);
}

#[test]
fn all_that_a_host_tells_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(folder.path(), header("", "{}"), day(6)).unwrap();
    let told = [
        HostRecord::Note("GAP: 7203.TSE 300 shares\nafter 09:30".into()),
        HostRecord::MarketDataLost(true),
        HostRecord::MarketDataLost(false),
        HostRecord::EndOfDay,
        HostRecord::Stop,
        HostRecord::Failed("TOO_SLOW: 11 s".into()),
    ];
    told.iter().for_each(|record| journal.host(record.clone()));
    let line = LogLine { ts_event: None, level: LogLevel::Warn, message: "日本".to_owned() };
    let scripted = Scripted {
        actions: vec![narrative(3)],
        lines: vec![line.clone()],
        fault: Some(FaultKind::Trap("no".to_owned())),
        ..Scripted::default()
    };
    let mut strategy = Journaled::new(scripted, journal.clone());
    strategy.set_portfolio(&PortfolioView::default());
    strategy.set_portfolio(&PortfolioView::default());
    strategy.advance(Window::OneTrade(trade(1)), 1).unwrap_err();
    assert_eq!(strategy.take_log(), std::slice::from_ref(&line));
    journal.finish().unwrap();
    let records = read(folder.path()).unwrap();
    let expected = Header { part: 1, ..header("", "{}") };
    assert_eq!(*records.header(), expected);
    let records: Vec<_> = records.map(Result::unwrap).collect();
    let hosts: Vec<_> = told.into_iter().map(Record::Host).collect();
    assert_eq!(records[..hosts.len()], hosts);
    assert_eq!(records.len(), hosts.len() + 4, "{records:?}");
    let [.., Record::Call(call), Record::Host(HostRecord::End)] = &records[..] else {
        panic!("{records:?}")
    };
    assert_eq!(*call.answer.log, [line]);
    assert!(call.answer.actions.is_empty());
    assert_eq!(call.answer.fault.as_ref().unwrap().kind, "trap");
}

#[test]
fn outputs_are_named_in_json() {
    let narrative = narrative(1);
    let json = serde_json::to_value(OutputKind::Action(narrative)).unwrap();
    let told: BTreeMap<String, serde_json::Value> = serde_json::from_value(json).unwrap();
    assert!(told.contains_key("action"));
}
