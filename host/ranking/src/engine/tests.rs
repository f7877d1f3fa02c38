//! The engine over small grids: limits, turns, cancellation, cache, new snapshots.

use std::fs;
use std::time::Duration;

use pricestore::grid::{COLUMNS, GridWriter, cell};
use tempfile::TempDir;

use super::*;
use crate::formula::Formula;
use crate::limits::SLICE_DAYS;
use crate::query::{RankOrder, RankRow};

/// Business days of the test grids: several slices.
const DAYS: usize = SLICE_DAYS * 3 + 5;
const CODES: usize = 9;

/// Publishes a grid in which the close of code `c` on day `d` is `base + d * 10 + c`; code 4 has
/// no row on every fifth day and code 7 no volume.
fn put_grid(data: &DataDir, number: u64, base: f64) {
    fs::create_dir_all(data.rank_folder()).unwrap();
    let first: JstDate = "2024-01-01".parse().unwrap();
    let days = first.iter_days().take(DAYS).collect();
    let codes = (0..CODES).map(|code| format!("13{code:02}").into()).collect();
    let mut writer = GridWriter::new(&data.rank_folder(), number, days, codes).unwrap();
    for day in 0..DAYS {
        let value = |column: usize, code: usize| match (column, code) {
            (_, 4) if day % 5 == 0 => None,
            (4, 7) => None,
            (4, _) => Some(0.0),
            _ => Some(base + (day * 10 + code) as f64),
        };
        let columns: [Vec<f64>; COLUMNS] = std::array::from_fn(|column| {
            (0..CODES).map(|code| cell(value(column, code))).collect()
        });
        writer.day(columns.each_ref().map(Vec::as_slice)).unwrap();
    }
    writer.finish(&data.rank_grid(number)).unwrap();
}

fn make_current(data: &DataDir, number: u64) {
    atomic_file::write(&data.current_file(), format!("{number}\n").as_bytes()).unwrap();
}

fn options() -> EngineOptions {
    EngineOptions { threads: 2, verification: Verification::OnFirstUse, ..EngineOptions::default() }
}

fn open(options: EngineOptions) -> (TempDir, DataDir, RankEngine) {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::new(folder.path());
    put_grid(&data, 1, 100.0);
    make_current(&data, 1);
    let engine = RankEngine::open(folder.path(), options).unwrap();
    (folder, data, engine)
}

fn query(formula: &str) -> RankQuery {
    RankQuery {
        from: "2024-01-01".parse().unwrap(),
        to: "2024-12-31".parse().unwrap(),
        sort_by: Formula::parse(formula).unwrap().into(),
        order: RankOrder::Desc,
        limit: 3,
        codes: None,
        adjusted: false,
    }
}

fn rank(engine: &RankEngine, query: &RankQuery) -> Result<Ranking, RankError> {
    engine.rank(query, &CancelToken::new())
}

fn codes_of(rows: &[RankRow], day: u32) -> Vec<u32> {
    rows.iter().filter(|row| row.day == day).map(|row| row.code).collect()
}

/// The answer is there a moment before the workers have put the query away; a query that is never
/// put away hangs here.
fn wait_until_idle(engine: &RankEngine) {
    while engine.load() != (0, 0) {
        std::thread::yield_now();
    }
}

#[test]
fn every_day_of_the_range_is_ranked_in_order() {
    let (_folder, _, engine) = open(options());
    let ranking = rank(&engine, &query("Close")).unwrap();
    assert_eq!((ranking.days.len(), ranking.codes.len(), ranking.snapshot), (DAYS, CODES, 1));
    assert_eq!(ranking.rows.len(), DAYS * 3);
    assert!(ranking.rows.is_sorted_by_key(|row| (row.day, row.rank)));
    assert_eq!(codes_of(&ranking.rows, 50), [8, 7, 6]);
    let first = ranking.rows[0];
    assert_eq!((first.close, first.volume, first.sort_value), (108.0, Some(0.0), Some(108.0)));
    assert_eq!(ranking.rows[1].volume, None);
}

#[test]
fn rows_without_a_close_take_no_part_and_those_without_a_value_come_last() {
    let (_folder, _, engine) = open(options());
    let all = RankQuery { limit: 20, ..query("Close[-1]") };
    let ranking = rank(&engine, &all).unwrap();
    // Nothing is known before the first day, so codes decide; code 4 has no row that day.
    assert_eq!(codes_of(&ranking.rows, 0), [0, 1, 2, 3, 5, 6, 7, 8]);
    assert!(ranking.rows[0].sort_value.is_none());
    // On the next day code 4 has no value, because it had no row the day before.
    assert_eq!(codes_of(&ranking.rows, 1), [8, 7, 6, 5, 3, 2, 1, 0, 4]);
    let ascending = RankQuery { order: RankOrder::Asc, ..all };
    assert_eq!(codes_of(&rank(&engine, &ascending).unwrap().rows, 1), [0, 1, 2, 3, 5, 6, 7, 8, 4]);
    // A stored volume of 0 is null in formulas.
    let volumes = rank(&engine, &query("Volume")).unwrap();
    assert!(volumes.rows.iter().all(|row| row.sort_value.is_none()));
}

#[test]
fn ranges_and_codes_narrow_the_answer() {
    let (_folder, _, engine) = open(options());
    let codes = Some(vec!["1308".to_owned(), "1304".to_owned(), "1308".to_owned()]);
    let narrow = RankQuery {
        from: "2024-02-10".parse().unwrap(),
        to: "2024-02-12".parse().unwrap(),
        codes,
        ..query("Open - Close[-30]")
    };
    let ranking = rank(&engine, &narrow).unwrap();
    assert_eq!(ranking.days.len(), 3);
    // 2024-02-10 is day 40, without a row of code 4.
    assert_eq!(codes_of(&ranking.rows, 0), [8]);
    // Equal values: codes ascending. On day 41 the lag reaches day 11.
    assert_eq!(codes_of(&ranking.rows, 1), [4, 8]);
    assert_eq!(ranking.rows[1].sort_value, Some(300.0));
    let none = RankQuery { codes: Some(Vec::new()), ..narrow.clone() };
    assert!(rank(&engine, &none).unwrap().rows.is_empty());
    let backwards = RankQuery { to: "2024-01-05".parse().unwrap(), ..narrow.clone() };
    let ranking = rank(&engine, &backwards).unwrap();
    assert!(ranking.rows.is_empty() && ranking.days.is_empty());
    let unknown = RankQuery { codes: Some(vec!["9999".to_owned()]), ..narrow };
    let error = rank(&engine, &unknown).unwrap_err();
    assert_eq!(error.code(), "CODES_INVALID");
    assert!(error.to_string().starts_with("code `9999` is not in the data"), "{error}");
}

#[test]
fn limits_of_the_query_hold() {
    let (_folder, _, engine) = open(options());
    let error = |query: RankQuery| rank(&engine, &query).unwrap_err();
    for limit in [0, LIMIT_MAX + 1] {
        assert_eq!(error(RankQuery { limit, ..query("Close") }).code(), "LIMIT_INVALID");
    }
    assert!(rank(&engine, &RankQuery { limit: LIMIT_MAX, ..query("Close") }).is_ok());
    let long = RankQuery { to: "2054-01-02".parse().unwrap(), ..query("Close") };
    assert_eq!(error(long.clone()).code(), "RANGE_INVALID");
    assert!(rank(&engine, &RankQuery { to: "2054-01-01".parse().unwrap(), ..long }).is_ok());
    let many = Some(vec!["1301".to_owned(); CODES_MAX + 1]);
    assert_eq!(error(RankQuery { codes: many, ..query("Close") }).code(), "CODES_INVALID");
}

#[test]
fn an_answer_that_does_not_fit_into_memory_is_refused() {
    let row = 2 * size_of::<RankRow>() as u64;
    let fitting = DAYS as u64 * 3 * row;
    let (_folder, _, engine) = open(EngineOptions { memory_bytes: fitting, ..options() });
    assert!(rank(&engine, &query("Close")).is_ok());
    let error = rank(&engine, &RankQuery { limit: 4, ..query("Close") }).unwrap_err();
    assert_eq!(error.code(), "RESULT_TOO_LARGE");
}

#[test]
fn cancelled_and_late_queries_end() {
    let (_folder, _, engine) = open(options());
    let cancel = CancelToken::new();
    cancel.cancel();
    assert_eq!(engine.rank(&query("Close"), &cancel).unwrap_err().code(), "CANCELLED");
    let (_folder, _, engine) = open(EngineOptions { timeout: Duration::ZERO, ..options() });
    assert_eq!(rank(&engine, &query("Close")).unwrap_err().code(), "TIMEOUT");
}

#[test]
fn one_query_more_than_the_queue_holds_is_refused() {
    let (_folder, _, engine) = open(options());
    let job = |cancel: &CancelToken| {
        let resolved = engine.resolve(&query("Close")).unwrap();
        let plan = engine.plan(&query("Close"), &resolved);
        Arc::new(Job::new(plan, resolved, cancel, &engine.options).unwrap())
    };
    // Without workers the first query stays and the second one waits.
    let idle = EngineOptions { threads: 0, concurrent_queries: 1, queue: 1, ..options() };
    let pool = WorkerPool::start(&idle).unwrap();
    let tokens = [CancelToken::new(), CancelToken::new()];
    std::thread::scope(|scope| {
        let (pool, job) = (&pool, &job);
        let waiters: Vec<_> = tokens
            .iter()
            .map(|token| {
                let before = pool.load();
                let waiter = scope.spawn(move || pool.run(job(token)));
                while pool.load() == before {
                    std::thread::yield_now();
                }
                waiter
            })
            .collect();
        assert_eq!(pool.load(), (1, 1));
        let error = pool.run(job(&CancelToken::new())).unwrap_err();
        assert_eq!(
            (error.code(), error.to_string().as_str()),
            ("BUSY", "1 queries are waiting already; try again later")
        );
        tokens.iter().for_each(CancelToken::cancel);
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap().unwrap_err().code(), "CANCELLED");
        }
        assert_eq!(pool.load().1, 0);
    });
}

#[test]
fn many_threads_get_the_answers_of_one() {
    let (_folder, _, engine) =
        open(EngineOptions { cache_bytes: 0, concurrent_queries: 3, ..options() });
    let formulas = ["Close", "Close - Open[-3]", "High / Low[-40]", "-Close * 2"];
    let alone: Vec<Ranking> = formulas.map(|text| rank(&engine, &query(text)).unwrap()).to_vec();
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let (engine, alone) = (&engine, &alone);
            scope.spawn(move || {
                for turn in 0..20 {
                    let index = (thread + turn) % formulas.len();
                    let ranking = rank(engine, &query(formulas[index])).unwrap();
                    assert_eq!(&ranking, &alone[index], "{}", formulas[index]);
                }
            });
        }
    });
    wait_until_idle(&engine);
}

#[test]
fn the_cache_keeps_the_last_answers_within_its_room() {
    let (_folder, _, engine) = open(options());
    let first = rank(&engine, &query("Close + 1")).unwrap();
    assert_eq!(engine.cache.len(), 1);
    // The same tree is the same query, however it is written.
    assert_eq!(rank(&engine, &query(" (Close)+1.0")).unwrap(), first);
    assert_eq!(engine.cache.len(), 1);
    let cached = Key::new(&query("Close"), &engine.resolve(&query("Close")).unwrap());
    let adjusted = RankQuery { adjusted: true, ..query("Close") };
    let adjusted = Key::new(&adjusted, &engine.resolve(&query("Close")).unwrap());
    assert_ne!(cached, adjusted, "an adjusted answer is another one");
    for number in 0..100 {
        rank(&engine, &query(&format!("Close + {number}"))).unwrap();
    }
    assert_eq!(engine.cache.len(), crate::limits::CACHE_ENTRIES_MAX);
    let (_folder, _, engine) = open(EngineOptions { cache_bytes: 1_000, ..options() });
    rank(&engine, &query("Close")).unwrap();
    assert_eq!(engine.cache.len(), 0);
}

#[test]
fn a_new_snapshot_is_taken_up_while_the_engine_runs() {
    let (_folder, data, engine) = open(options());
    let before = rank(&engine, &query("Close")).unwrap();
    let old = engine.resolve(&query("Close")).unwrap().snapshot;
    put_grid(&data, 2, 5_000.0);
    make_current(&data, 2);
    while engine.snapshot().number != 2 {
        std::thread::yield_now();
    }
    // A query that runs keeps its snapshot, even when the files are gone.
    fs::remove_file(data.rank_grid(1)).unwrap();
    assert_eq!(old.grid.stripe(0, crate::formula::Column::Close)[0], 100.0);
    let after = rank(&engine, &query("Close")).unwrap();
    assert_eq!((before.snapshot, after.snapshot), (1, 2));
    assert_eq!(after.rows[0].close, 5_008.0);
    assert_eq!(Arc::strong_count(&old), 1);
}

#[test]
fn another_content_under_the_same_number_is_taken_up() {
    let (_folder, data, engine) = open(options());
    assert_eq!(rank(&engine, &query("Close")).unwrap().rows[0].close, 108.0);
    fs::remove_dir_all(data.rank_folder()).unwrap();
    put_grid(&data, 1, 7_000.0);
    make_current(&data, 1);
    // The cache does not give the answer of the other one either.
    while rank(&engine, &query("Close")).unwrap().rows[0].close != 7_008.0 {
        std::thread::yield_now();
    }
    assert_eq!(engine.snapshot().number, 1);
}

#[test]
fn an_engine_may_wait_for_the_first_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::new(folder.path().join("later"));
    let waiting = EngineOptions { wait_for_data: true, ..options() };
    let single = EngineOptions { follow: false, ..waiting.clone() };
    assert_eq!(RankEngine::open(data.path(), single).unwrap_err().code(), "NO_DATA");
    let engine = Arc::new(RankEngine::open(data.path(), waiting).unwrap());
    let error = rank(&engine, &query("Close")).unwrap_err();
    assert!(
        error.code() == "NO_DATA" && error.to_string().contains("kumiki data update"),
        "{error}"
    );
    assert_eq!((engine.snapshot().days, engine.snapshot().refused), (0, None));
    let before = PinnedEngine::new(Arc::clone(&engine));
    put_grid(&data, 4, 100.0);
    make_current(&data, 4);
    while engine.snapshot().days == 0 {
        std::thread::yield_now();
    }
    assert_eq!(rank(&engine, &query("Close")).unwrap().snapshot, 4);
    assert_eq!(before.rank(&query("Close"), &CancelToken::new()).unwrap_err().code(), "NO_DATA");
}

#[test]
fn an_engine_may_wait_for_a_snapshot_that_can_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::new(folder.path());
    put_grid(&data, 1, 100.0);
    make_current(&data, 1);
    let good = fs::read(data.rank_grid(1)).unwrap();
    // Its header is as before; what is behind it is gone.
    fs::write(data.rank_grid(1), &good[..good.len() / 2]).unwrap();
    assert_eq!(RankEngine::open(data.path(), options()).unwrap_err().code(), "SNAPSHOT_DAMAGED");
    let waiting = EngineOptions { wait_for_data: true, ..options() };
    let engine = Arc::new(RankEngine::open(data.path(), waiting).unwrap());
    let refused = engine.snapshot().refused.unwrap();
    assert!(refused.starts_with("snapshot 1 is damaged"), "{refused}");
    let pinned = PinnedEngine::new(Arc::clone(&engine));
    let prices =
        PriceQuery { code: "1301".to_owned(), from: JstDate::default(), to: JstDate::default() };
    for error in [
        rank(&engine, &query("Close")).unwrap_err(),
        pinned.rank(&query("Close"), &CancelToken::new()).unwrap_err(),
        pinned.prices(&prices, &CancelToken::new()).unwrap_err(),
    ] {
        let text = error.to_string();
        assert_eq!(error.code(), "NO_DATA");
        assert!(text.contains(&refused) && text.contains("`kumiki rank publish`"), "{text}");
    }
    atomic_file::write(&data.rank_grid(1), &good).unwrap();
    while engine.snapshot().days == 0 {
        std::thread::yield_now();
    }
    assert_eq!(engine.snapshot().refused, None);
    assert_eq!(rank(&engine, &query("Close")).unwrap().snapshot, 1);
}

#[test]
fn a_pinned_engine_stays_with_its_snapshot() {
    let (_folder, data, engine) = open(options());
    let engine = Arc::new(engine);
    let pinned = PinnedEngine::new(Arc::clone(&engine));
    put_grid(&data, 2, 5_000.0);
    make_current(&data, 2);
    while engine.snapshot().number != 2 {
        std::thread::yield_now();
    }
    let old = pinned.rank(&query("Close"), &CancelToken::new()).unwrap();
    assert_eq!((old.snapshot, old.rows[0].close, pinned.snapshot().number), (1, 108.0, 1));
    assert_eq!(rank(&engine, &query("Close")).unwrap().rows[0].close, 5_008.0);
}

#[test]
fn a_damaged_new_snapshot_is_refused_and_the_old_one_stays() {
    let everything = EngineOptions { verification: Verification::OnFirstUse, ..options() };
    let (_folder, data, engine) = open(everything);
    fs::write(data.rank_grid(2), b"nothing").unwrap();
    make_current(&data, 2);
    let refused = loop {
        if let Some(refused) = engine.snapshot().refused {
            break refused;
        }
        std::thread::yield_now();
    };
    assert_eq!(refused, "snapshot 2 is damaged (it has only 7 bytes); publish the data again");
    assert_eq!(rank(&engine, &query("Close")).unwrap().snapshot, 1);
    put_grid(&data, 3, 1.0);
    make_current(&data, 3);
    while engine.snapshot().number != 3 {
        std::thread::yield_now();
    }
    assert_eq!(engine.snapshot().refused, None);
}

#[test]
fn a_snapshot_that_is_changed_in_its_place_is_answered_from_no_more() {
    use std::io::{Seek, SeekFrom, Write};
    let waiting = EngineOptions { wait_for_data: true, ..options() };
    let (_folder, data, engine) = open(waiting);
    let path = data.rank_grid(1);
    let good = fs::read(&path).unwrap();
    // Not shortened: the memory that is read is this file.
    let mut file = fs::File::options().write(true).open(&path).unwrap();
    file.seek(SeekFrom::Start(16)).unwrap();
    file.write_all(&[!good[16]]).unwrap();
    drop(file);
    while engine.snapshot().days > 0 {
        std::thread::yield_now();
    }
    let refused = engine.snapshot().refused.unwrap();
    assert!(refused.starts_with("snapshot 1 is damaged"), "{refused}");
    assert_eq!(rank(&engine, &query("Close")).unwrap_err().code(), "NO_DATA");
    atomic_file::write(&path, &good).unwrap();
    while engine.snapshot().days == 0 {
        std::thread::yield_now();
    }
    // A file that is only gone takes nothing away.
    fs::remove_file(&path).unwrap();
    while engine.snapshot().refused.is_none() {
        std::thread::yield_now();
    }
    assert_eq!(rank(&engine, &query("Close")).unwrap().rows[0].close, 108.0);
}

#[test]
fn a_damaged_day_is_found_when_a_query_needs_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::new(folder.path());
    put_grid(&data, 1, 100.0);
    make_current(&data, 1);
    let mut bytes = fs::read(data.rank_grid(1)).unwrap();
    // The close of the first code on day 40.
    bytes[4_096 + (40 * 5 + 3) * 16 * 8] ^= 1;
    fs::write(data.rank_grid(1), bytes).unwrap();
    let engine = RankEngine::open(folder.path(), options()).unwrap();
    let early = RankQuery { to: "2024-02-09".parse().unwrap(), ..query("Close") };
    assert!(rank(&engine, &early).is_ok());
    let error = rank(&engine, &query("Close")).unwrap_err();
    assert_eq!(error.code(), "SNAPSHOT_DAMAGED");
    assert!(error.to_string().contains("Close of 2024-02-10"), "{error}");
    wait_until_idle(&engine);
}

#[test]
fn nothing_published_is_said_without_paths() {
    let folder = tempfile::tempdir().unwrap();
    let error = RankEngine::open(folder.path(), options()).unwrap_err();
    assert_eq!(error.code(), "NO_DATA");
    assert!(!error.to_string().contains('/'), "{error}");
    let data = DataDir::new(folder.path());
    fs::create_dir_all(data.rank_folder()).unwrap();
    make_current(&data, 9);
    let error = RankEngine::open(folder.path(), options()).unwrap_err();
    assert_eq!(error.code(), "SNAPSHOT_DAMAGED");
    assert!(error.to_string().contains("snapshot 9 is damaged (its grid is missing)"), "{error}");
    fs::write(data.current_file(), "x".repeat(1_000)).unwrap();
    assert_eq!(RankEngine::open(folder.path(), options()).unwrap_err().code(), "INTERNAL");
}

#[test]
fn the_prices_of_an_issue_are_those_of_the_grid() {
    let (_folder, _, engine) = open(options());
    let asked = |code: &str, from: &str, to: &str| {
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        engine.prices(&PriceQuery { code: code.to_owned(), from, to }, &CancelToken::new())
    };
    let prices = asked("1303", "2024-01-02", "2024-01-03").unwrap();
    let day = |day: u32, value: f64| DailyPrice {
        date: JstDate::from_ymd_opt(2024, 1, day).unwrap(),
        open: Some(value),
        high: Some(value),
        low: Some(value),
        close: Some(value),
        volume: Some(0.0),
    };
    assert_eq!(prices, [day(2, 113.0), day(3, 123.0)]);
    // What is not stored is missing, and so is a day without a row.
    assert_eq!(asked("1307", "2024-01-02", "2024-01-02").unwrap()[0].volume, None);
    assert_eq!(asked("1304", "2024-01-01", "2024-12-31").unwrap().len(), DAYS - DAYS.div_ceil(5));
    assert_eq!(asked("1303", "2024-01-03", "2024-01-02").unwrap(), []);
    let error = asked("9999", "2024-01-01", "2024-01-02").unwrap_err();
    assert_eq!(error.code(), "CODES_INVALID");
    assert!(error.to_string().contains("code `9999` is not in the data"), "{error}");
    let cancelled = CancelToken::new();
    cancelled.cancel();
    let query = PriceQuery {
        code: "1303".to_owned(),
        from: "2024-01-01".parse().unwrap(),
        to: "2024-12-31".parse().unwrap(),
    };
    assert!(matches!(engine.prices(&query, &cancelled), Err(RankError::Cancelled)));
    assert!(matches!(
        PinnedEngine::new(Arc::new(engine)).prices(&query, &CancelToken::new()),
        Ok(prices) if prices.len() == DAYS
    ));
}
