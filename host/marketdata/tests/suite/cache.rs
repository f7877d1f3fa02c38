//! The cache is quick or absent, never wrong.

use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use domain::TsNanos;
use marketdata::{CacheOutcome, DataError, TradeFile, TradeSegment, TradeStore};
use tempfile::TempDir;

use crate::common::{TEXT, code, file_with, go_on, gzip, text_rows, write_file};

/// What is done to a cache file's bytes.
type Damage = fn(&mut Vec<u8>);

struct Setup {
    _data: TempDir,
    cache: TempDir,
    file: TradeFile,
    store: TradeStore,
}

impl Setup {
    fn new() -> Self {
        let (data, file) = file_with(&gzip(TEXT));
        let cache = tempfile::tempdir().unwrap();
        let store = TradeStore::new(cache.path().join("columns"));
        Self { _data: data, cache, file, store }
    }

    fn load(&self) -> TradeSegment {
        let segments = self.store.load(&self.file, &[code("13010")], &mut go_on);
        let segment = segments.unwrap().remove(0);
        check_rows(&segment);
        segment
    }

    fn cached(&self, ending: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.cache.path().join("columns")).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.to_str().unwrap().ends_with(ending));
        paths
    }

    fn cached_columns(&self) -> PathBuf {
        let paths = self.cached(".columns");
        assert_eq!(paths.len(), 1);
        paths[0].clone()
    }
}

fn check_rows(segment: &TradeSegment) {
    let expected: Vec<_> =
        text_rows().into_iter().filter(|row| row.0 == segment.code().as_str()).collect();
    assert_eq!(segment.len(), expected.len());
    assert_eq!(segment.is_empty(), expected.is_empty());
    for (at, (_, ts, price, quantity, _)) in expected.into_iter().enumerate() {
        let found = (segment.ts_event()[at], segment.price()[at], segment.quantity()[at]);
        assert_eq!(found, (ts, price, quantity));
    }
}

/// Moves a file's time of change into the past, where it has settled, or into the future, where it
/// has not, however slow the machine is.
fn change_time(path: &Path, seconds: i64) -> SystemTime {
    let file = File::options().append(true).open(path).unwrap();
    let now = file.metadata().unwrap().modified().unwrap();
    let shift = Duration::from_secs(seconds.unsigned_abs());
    let changed = if seconds < 0 { now - shift } else { now + shift };
    file.set_modified(changed).unwrap();
    changed
}

#[test]
fn a_cached_file_under_another_name_is_as_wrong_as_without_a_cache() {
    let setup = Setup::new();
    setup.load();
    let renamed = setup.file.path.with_file_name("equities_trades_202502.csv.gz");
    fs::copy(&setup.file.path, &renamed).unwrap();
    let renamed = TradeFile::from_path(renamed).unwrap();
    let message = |store: &TradeStore| {
        store.load(&renamed, &[code("13010")], &mut go_on).unwrap_err().to_string()
    };
    let warm = message(&setup.store);
    assert!(warm.contains("expected a date in 2025-02, the period in the file's name"), "{warm}");
    let cold = TradeStore::new(setup.cache.path().join("empty"));
    assert_eq!(warm, message(&cold));
}

#[test]
fn the_second_load_is_a_hit() {
    let setup = Setup::new();
    let built = setup.load();
    assert_eq!(*built.outcome(), CacheOutcome::Built);
    let hit = setup.load();
    assert_eq!(*hit.outcome(), CacheOutcome::Hit);
    assert_eq!(hit.price_grid(), built.price_grid());
    assert_eq!(hit.price_grid().step(), Some("0.5".parse().unwrap()));
    assert_eq!(hit.source_hash(), built.source_hash());
    for column in [hit.ts_event().as_ptr() as usize, hit.price().as_ptr() as usize] {
        assert_eq!(column % 64, 0);
    }
}

#[test]
fn several_codes_share_one_pass_and_keep_their_order() {
    use CacheOutcome::{Built, Hit};
    let setup = Setup::new();
    let asked = ["25935", "99999", "13010", "25935"].map(code);
    let outcomes = |codes: &[_]| -> Vec<CacheOutcome> {
        let segments = setup.store.load(&setup.file, codes, &mut go_on).unwrap();
        assert_eq!(segments.iter().map(TradeSegment::code).collect::<Vec<_>>(), codes);
        segments.iter().for_each(check_rows);
        segments.iter().map(|segment| segment.outcome().clone()).collect()
    };
    assert_eq!(outcomes(&asked[..1]), [Built]);
    assert_eq!(outcomes(&asked), [Hit, Built, Built, Hit]);
    // The code without rows is remembered as such.
    assert_eq!(outcomes(&asked), [Hit, Hit, Hit, Hit]);
    assert_eq!(outcomes(&[]), []);
}

#[test]
fn a_damaged_cache_file_is_made_again() {
    let setup = Setup::new();
    setup.load();
    let path = setup.cached_columns();
    let whole = fs::read(&path).unwrap();
    let damages: [(&str, Damage, &str); 9] = [
        ("magic", |bytes| bytes[0] ^= 1, "it is no cache file"),
        ("version", |bytes| bytes[8] ^= 1, "its header is damaged"),
        ("rows", |bytes| bytes[40] ^= 1, "its header is damaged"),
        ("timestamps", |bytes| bytes[128] ^= 1, "its columns are damaged"),
        ("prices", |bytes| bytes[192] ^= 1, "its columns are damaged"),
        ("padding", |bytes| bytes[319] ^= 1, "its columns are damaged"),
        ("cut", |bytes| bytes.truncate(319), "it has 319 bytes instead of 320"),
        ("cut header", |bytes| bytes.truncate(5), "it has only 5 bytes"),
        ("emptied", |bytes| bytes.clear(), "it has only 0 bytes"),
    ];
    assert_eq!(whole.len(), 320);
    for (kind, damage, reason) in damages {
        let mut bytes = whole.clone();
        damage(&mut bytes);
        fs::write(&path, bytes).unwrap();
        let rebuilt = setup.load();
        assert_eq!(*rebuilt.outcome(), CacheOutcome::Rebuilt(reason.to_owned()), "{kind}");
        assert_eq!(fs::read(&path).unwrap(), whole, "{kind}");
        assert_eq!(*setup.load().outcome(), CacheOutcome::Hit, "{kind}");
    }
}

#[test]
fn a_changed_source_is_decoded_again() {
    let setup = Setup::new();
    let before = setup.load();
    let text = TEXT.replace(",4810,", ",4811,");
    write_file(setup.file.path.parent().unwrap(), &gzip(text));
    let segments = setup.store.load(&setup.file, &[code("13010")], &mut go_on).unwrap();
    assert_eq!(*segments[0].outcome(), CacheOutcome::Built);
    assert_eq!(segments[0].price()[0], 48_110_000);
    assert_ne!(segments[0].source_hash(), before.source_hash());
    // The old columns stay valid for whoever holds them.
    check_rows(&before);
    assert_eq!(setup.cached(".columns").len(), 2);
}

#[test]
fn a_change_that_keeps_length_and_time_is_seen_until_the_file_has_settled() {
    let other = gzip(TEXT.replace(",4810,", ",4811,"));
    assert_eq!(other.len(), gzip(TEXT).len());
    for (seconds, noticed) in [(60, true), (-60, false)] {
        let setup = Setup::new();
        let changed = change_time(&setup.file.path, seconds);
        setup.load();
        write_file(setup.file.path.parent().unwrap(), &other);
        let file = File::options().append(true).open(&setup.file.path).unwrap();
        file.set_modified(changed).unwrap();
        let segments = setup.store.load(&setup.file, &[code("13010")], &mut go_on).unwrap();
        assert_eq!(segments[0].price()[0] == 48_110_000, noticed, "{seconds} s");
    }
}

#[test]
fn a_damaged_or_wrong_memo_costs_time_only() {
    let setup = Setup::new();
    change_time(&setup.file.path, -60);
    setup.load();
    let memo = setup.cached(".memo").remove(0);
    for bytes in [b"".as_slice(), b"KMKMEMO1", &[0xff; 64]] {
        fs::write(&memo, bytes).unwrap();
        assert_eq!(*setup.load().outcome(), CacheOutcome::Hit);
    }
    // A memo that names another content: the columns of that content are missing, the file is
    // decoded, and its true content is found out.
    let other = Setup::new();
    write_file(other.file.path.parent().unwrap(), &gzip(TEXT.replace(",4810,", ",4811,")));
    change_time(&other.file.path, -60);
    let changed = change_time(&setup.file.path, 0);
    File::options().append(true).open(&other.file.path).unwrap().set_modified(changed).unwrap();
    other.store.load(&other.file, &[code("25935")], &mut go_on).unwrap();
    fs::write(&memo, fs::read(other.cached(".memo").remove(0)).unwrap()).unwrap();
    assert_eq!(*setup.load().outcome(), CacheOutcome::Hit);
    assert!(setup.cached(".memo").is_empty());
}

#[test]
fn an_unwritable_folder_is_reported_and_does_no_harm() {
    let (data, file) = file_with(&gzip(TEXT));
    // A file where the folder should be cannot be written by any user on any system.
    let blocked = data.path().join("blocked");
    fs::write(&blocked, b"").unwrap();
    let store = TradeStore::new(&blocked);
    for _ in 0..2 {
        let segments = store.load(&file, &[code("13010"), code("25935")], &mut go_on).unwrap();
        for segment in &segments {
            check_rows(segment);
            let CacheOutcome::Unwritable(reason) = segment.outcome() else {
                panic!("{:?}", segment.outcome());
            };
            assert!(reason.contains("blocked"), "{reason}");
        }
    }
}

#[test]
fn nothing_is_cached_from_a_damaged_or_missing_file() {
    let setup = Setup::new();
    let damaged = gzip(TEXT.replace(",4821,", ",x,"));
    write_file(setup.file.path.parent().unwrap(), &damaged);
    let error = setup.store.load(&setup.file, &[code("13010")], &mut go_on).unwrap_err();
    assert!(matches!(error, DataError::Cell { line: 8, .. }), "{error}");
    assert!(setup.cached(".columns").is_empty());
    fs::remove_file(&setup.file.path).unwrap();
    let error = setup.store.load(&setup.file, &[code("13010")], &mut go_on).unwrap_err();
    assert!(matches!(error, DataError::Unreadable { .. }), "{error}");
    let mut stop = |_| ControlFlow::Break(());
    let too_many = vec![code("13010"); 65];
    let error = setup.store.load(&setup.file, &too_many, &mut stop).unwrap_err();
    assert!(matches!(error, DataError::TooManyCodes { asked: 65 }), "{error}");
}

#[test]
fn ranges_are_half_open() {
    let segment = Setup::new().load();
    let range =
        |start, end| segment.row_range(TsNanos::from_nanos(start), TsNanos::from_nanos(end));
    let first = segment.ts_event()[0];
    let third = segment.ts_event()[2];
    assert_eq!(range(0, u64::MAX), 0..5);
    assert_eq!(range(first, third), 0..2);
    assert_eq!(range(first + 1, third + 1), 2..3);
    assert_eq!(range(third, first), 2..2);
    assert_eq!(range(u64::MAX, u64::MAX), 5..5);
}

#[test]
fn concurrent_writers_are_harmless() {
    let setup = Setup::new();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    setup.load();
                    // Deleting the cache while others use it must not matter either.
                    let _ = fs::remove_dir_all(setup.cache.path().join("columns"));
                }
            });
        }
    });
}

#[test]
fn the_cache_tells_which_codes_it_holds() {
    let setup = Setup::new();
    assert!(setup.store.cached_codes(&setup.file).is_empty());
    change_time(&setup.file.path, -10);
    let asked = [code("25935"), code("13010"), code("99990")];
    setup.store.load(&setup.file, &asked, &mut go_on).unwrap();
    let rows = |text: &str, rows| (code(text), rows);
    let known = [rows("13010", 5), rows("25935", 1), rows("99990", 0)];
    assert_eq!(setup.store.cached_codes(&setup.file), known);
    // A damaged header is not believed, and a changed file is another file.
    let damaged =
        setup.cached(".columns").into_iter().find(|path| path.to_str().unwrap().contains("25935"));
    let damaged = damaged.unwrap();
    let mut bytes = fs::read(&damaged).unwrap();
    bytes[40] ^= 1;
    fs::write(&damaged, bytes).unwrap();
    assert_eq!(setup.store.cached_codes(&setup.file), [rows("13010", 5), rows("99990", 0)]);
    fs::write(&setup.file.path, gzip(&TEXT[..TEXT.len() - 59])).unwrap();
    assert!(setup.store.cached_codes(&setup.file).is_empty());
}
