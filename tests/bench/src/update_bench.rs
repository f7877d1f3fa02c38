//! `cargo xtask bench update`: 4,000 issues on 2,450 days into the job's database, published, split
//! into one database for each issue, and then one more day.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use domain::clock::Stopwatch;
use domain::price::UNITS_PER_YEN;
use domain::{JstDate, Money, Price, TsNanos};
use marketdata::sample::daily::{DailySample, DailySampleRow, try_each_row};
use pricestore::DataDir;
use ranking::{EngineOptions, RankEngine};
use serde_json::json;
use update::limits::AGAIN_DAYS_MAX;
use update::store::WorkDatabase;
use update::store::limits::ROWS_AT_ONCE_MAX;
use update::{DailyRow, PriceStore, SourceKind};

use crate::baselines::{plain_copy, plain_split};
use crate::data::scratch;
use crate::measure::figure;
use crate::rank_bench::or_stop;
use crate::update_day;

/// Issues that the baseline writes.
const BASELINE_ISSUES: usize = 100;
/// Seconds that loading and publishing the combined database may take.
const GOAL_COMBINED_S: f64 = 6.0;
/// Seconds that writing all per-issue databases may take.
const GOAL_SPLIT_S: f64 = 15.0;
/// Megabytes that they may have.
const GOAL_SPLIT_MB: f64 = 300.0;
/// Days that the second part holds back and stores one after the other.
const MORE_DAYS: usize = 3;
/// Days before those that the vendor is asked for again, as the program does it.
const EARLIER_DAYS: usize = AGAIN_DAYS_MAX as usize;

/// Runs the bench: with the columns that the sample has, and with the turnover that a vendor adds.
pub(crate) fn run() {
    for (name, has_turnover) in [("update", false), ("update.with_turnover", true)] {
        let sample = DailySample { codes: asked_codes(), ..DailySample::default() };
        Bench { name, has_turnover, sample }.run();
    }
}

/// `--codes N` for a quick look with fewer issues, else all of them.
fn asked_codes() -> usize {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    match arguments.as_slice() {
        [] => DailySample::default().codes,
        [flag, number] if flag == "--codes" => number
            .parse()
            .ok()
            .filter(|codes| *codes >= BASELINE_ISSUES)
            .unwrap_or_else(|| panic!("--codes {number}: write {BASELINE_ISSUES} or more")),
        other => panic!("unknown arguments {other:?}; there is: --codes N"),
    }
}

struct Bench {
    name: &'static str,
    has_turnover: bool,
    sample: DailySample,
}

fn go_on(_: u64, _: u64, _: &'static str) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn taken<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let watch = Stopwatch::start();
    let outcome = work();
    (watch.elapsed().as_secs_f64(), outcome)
}

fn megabytes(path: &Path) -> f64 {
    or_stop(fs::metadata(path)).len() as f64 / 1e6
}

impl Bench {
    fn run(&self) {
        let folder = scratch();
        let data = DataDir::new(folder.path());
        let mut store = or_stop(WorkDatabase::open(&data));
        let held_back = self.load(&mut store, &data);
        self.split(&mut store, &data);
        self.more_days(&mut store, &data, &held_back);
        self.open_again(store, &data);
    }

    fn figure(&self, what: &str, unit: &str, value: f64, more: &serde_json::Value) {
        figure(&format!("{}.{what}", self.name), unit, value, value, more);
    }

    /// Stores and publishes all days but the last ones, which are given back after the earlier ones.
    fn load(&self, store: &mut WorkDatabase, data: &DataDir) -> Vec<Vec<DailyRow>> {
        let last: Vec<JstDate> = self.last_days();
        let mut held_back = vec![Vec::new(); EARLIER_DAYS + MORE_DAYS];
        let (mut part, mut load, mut count) = (Vec::new(), 0.0, 0);
        let mut apply = |part: &mut Vec<DailyRow>| {
            load += taken(|| or_stop(store.apply(part))).0;
            count += part.len();
            part.clear();
        };
        let outcome: Result<(), String> = try_each_row(&self.sample, |row| {
            let place = last.iter().position(|day| *day == row.date);
            let row = self.row(&row)?;
            // A part holds whole issues, as one that is fetched holds whole days.
            let is_next = part.last().is_some_and(|last: &DailyRow| last.code != row.code);
            if is_next && part.len() + self.sample.days > ROWS_AT_ONCE_MAX {
                apply(&mut part);
            }
            if let Some(place) = place {
                held_back[place].push(row);
            }
            if place.is_none_or(|place| place < EARLIER_DAYS) {
                part.push(row);
            }
            Ok(())
        });
        or_stop(outcome);
        apply(&mut part);
        let watch = Stopwatch::start();
        let mut combined = 0.0;
        or_stop(store.publish(&mut |done, _, _| {
            if done == 1 {
                combined = watch.elapsed().as_secs_f64();
            }
            ControlFlow::Continue(())
        }));
        let snapshot = watch.elapsed().as_secs_f64() - combined;
        let copy = data.path().join("plain.db");
        let plain = taken(|| or_stop(plain_copy(&data.mother(), &copy))).0;
        or_stop(fs::remove_file(copy));
        let size = megabytes(&data.mother());
        let more = json!({
            "rows": count, "load_s": load, "rows_per_s": count as f64 / load,
            "publish_s": combined, "mb": size, "plain_copy_s": plain,
            "publish_x_plain_copy": combined / plain, "goal_max": GOAL_COMBINED_S,
        });
        self.figure("load_and_publish", "s", load + combined, &more);
        let size = megabytes(&data.rank_grid(1));
        self.figure("snapshot", "s", snapshot, &json!({ "mb": size }));
        held_back
    }

    fn split(&self, store: &mut WorkDatabase, data: &DataDir) {
        let (seconds, split) = taken(|| or_stop(store.split_to_individual(None, &mut go_on)));
        let daily = data.path().join("jp").join("stocks_daily");
        let known = or_stop(store.rows().known()).codes;
        let codes: Vec<&str> = known.iter().map(update::IssueCode::as_str).collect();
        let size: f64 = codes.iter().map(|code| megabytes(&daily.join(format!("{code}.db")))).sum();
        let plain_folder = scratch();
        let some: Vec<&str> =
            codes.iter().copied().step_by((codes.len() / BASELINE_ISSUES).max(1)).collect();
        let (plain, bytes) =
            taken(|| or_stop(plain_split(&data.mother(), plain_folder.path(), &some)));
        let (each, plain_each) = (seconds / split.written as f64, plain / some.len() as f64);
        let plain_kb = bytes as f64 / 1e3 / some.len() as f64;
        let more = json!({
            "files": split.written, "mb": size, "goal_mb_max": GOAL_SPLIT_MB, "ms_each": each * 1e3,
            "plain_ms_each": plain_each * 1e3, "x_plain": each / plain_each,
            "kb_each": size * 1e3 / split.written as f64, "plain_kb_each": plain_kb,
            "goal_max": GOAL_SPLIT_S,
        });
        self.figure("split_all", "s", seconds, &more);
        let (seconds, split) = taken(|| or_stop(store.split_to_individual(None, &mut go_on)));
        let more = json!({ "written": split.written, "unchanged": split.unchanged });
        self.figure("split_again", "s", seconds, &more);
    }

    /// One more day after the other, each by the whole job; and taken up by a service.
    fn more_days(&self, store: &mut WorkDatabase, data: &DataDir, days: &[Vec<DailyRow>]) {
        // As an earlier run would have left it.
        let (mut state, _) = or_stop(store.rows().fetch_state());
        state.split = true;
        or_stop(store.rows().commit(&[], &state, TsNanos::from_nanos(0)));
        or_stop(store.publish_generation());
        let options = EngineOptions { threads: 1, ..EngineOptions::default() };
        let engine = or_stop(RankEngine::open(data.path(), options));
        for known in EARLIER_DAYS + 1..=days.len() {
            update_day::run(self.name, store, data, &engine, &days[..known]);
        }
    }

    /// A job that finds nothing new.
    fn open_again(&self, store: WorkDatabase, data: &DataDir) {
        drop(store);
        let (seconds, files) = taken(|| {
            let mut store = or_stop(WorkDatabase::open(data));
            or_stop(store.publish(&mut go_on));
            let files = or_stop(store.split_to_individual(None, &mut go_on));
            or_stop(store.publish_generation());
            files
        });
        let more = json!({ "written": files.written, "unchanged": files.unchanged });
        self.figure("nothing_new", "s", seconds, &more);
    }

    /// The last business days of the sample, in order.
    fn last_days(&self) -> Vec<JstDate> {
        let mut days = std::collections::BTreeSet::new();
        let one = DailySample { codes: 1, ..self.sample.clone() };
        let outcome: Result<(), String> = try_each_row(&one, |row| {
            days.insert(row.date);
            Ok(())
        });
        or_stop(outcome);
        days.into_iter().skip(self.sample.days - MORE_DAYS - EARLIER_DAYS).collect()
    }

    fn row(&self, row: &DailySampleRow<'_>) -> Result<DailyRow, String> {
        let units = |yen: f64| (yen * UNITS_PER_YEN as f64).round() as i64;
        let [open, high, low, close] = row.prices.map(|yen| yen.map(units).map(Price::from_units));
        let code = row.code.parse().map_err(|error| format!("{error}"))?;
        let volume = row.volume.map(|shares| shares as u64);
        let turnover = close.zip(volume).map(|(price, shares)| {
            Money::from_units(price.units() * i64::try_from(shares).unwrap_or(0))
        });
        Ok(DailyRow {
            date: row.date,
            code,
            open,
            high,
            low,
            close,
            volume,
            turnover: turnover.filter(|_| self.has_turnover),
            adjustment_factor: Some(1.0),
            source: SourceKind::Vendor,
        })
    }
}
