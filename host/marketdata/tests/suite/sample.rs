//! Samples are sound, the same everywhere, and worth trading on.

use std::fs;

use marketdata::{
    Catalog, SampleCodes, SampleSpec, Selection, TradeStore, check_file, write_sample,
};

use crate::common::{code, go_on, read};

fn spec() -> SampleSpec {
    SampleSpec {
        seed: 7,
        start: "2024-10-30".parse().unwrap(),
        days: 6,
        codes: SampleCodes::These(vec![code("72030"), code("130A0"), code("13010")]),
        trades_per_code_day: 500,
    }
}

#[test]
fn samples_pass_every_rule() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let report = write_sample(&data, &spec()).unwrap();
    assert_eq!(Catalog::open(&data).unwrap().files(), report.files);
    let names: Vec<_> = report.files.iter().map(|file| file.period.to_string()).collect();
    assert_eq!(names, ["2024-10", "2024-11"]);
    let reports: Vec<_> = report.files.iter().map(|file| check_file(file).unwrap()).collect();
    assert_eq!(reports.iter().map(|report| report.rows).sum::<u64>(), report.rows);
    assert!(reports.iter().all(|report| report.codes == 3));
    // The day got longer on 2024-11-05; the day before was a holiday.
    assert!(reports[0].last.to_string().starts_with("2024-10-31 15:00:00"));
    assert!(reports[1].last.to_string().starts_with("2024-11-07 15:30:00"));
}

#[test]
fn samples_are_the_same_bytes_everywhere() {
    let bytes = |spec: &SampleSpec| {
        let folder = tempfile::tempdir().unwrap();
        let report = write_sample(folder.path(), spec).unwrap();
        fs::read(&report.files[0].path).unwrap()
    };
    let first = bytes(&spec());
    assert_eq!(first, bytes(&spec()));
    let other_seed = SampleSpec { seed: 8, ..spec() };
    assert_ne!(first, bytes(&other_seed));
    // Time 0 and no name in the gzip header.
    assert_eq!(first[..9], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0]);
    assert_eq!(xxhash_rust::xxh3::xxh3_64(&first), PINNED_HASH);
}

/// Changes with every change of the generator or of the compressor; then look at both and pin anew.
const PINNED_HASH: u64 = 253_241_694_902_993_437;

#[test]
fn a_code_is_the_same_whatever_else_is_in_the_sample() {
    let rows = |codes: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let codes = SampleCodes::These(codes.iter().map(|text| code(text)).collect());
        let report = write_sample(folder.path(), &SampleSpec { codes, ..spec() }).unwrap();
        let selection = Selection::Codes(vec![code("72030")]);
        read(&report.files[0], &selection, 1 << 18).unwrap().0
    };
    assert_eq!(rows(&["72030"]), rows(&["13010", "72030", "99840"]));
}

#[test]
fn other_files_are_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let first = write_sample(folder.path(), &spec()).unwrap();
    assert_eq!(write_sample(folder.path(), &spec()).unwrap(), first);
    let before = fs::read(&first.files[0].path).unwrap();
    let error = write_sample(folder.path(), &SampleSpec { seed: 8, ..spec() }).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "cannot make sample data: {} exists and holds other data; name another folder or move \
             the file away",
            first.files[0].path.display()
        )
    );
    assert_eq!(fs::read(&first.files[0].path).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_moving_average_would_trade_now_and_then() {
    let folder = tempfile::tempdir().unwrap();
    let one_day =
        SampleSpec { days: 1, codes: SampleCodes::Count(1), trades_per_code_day: 20_000, ..spec() };
    let report = write_sample(folder.path(), &one_day).unwrap();
    let store = TradeStore::new(folder.path().join("cache"));
    let segments = store.load(&report.files[0], &[code("13010")], &mut go_on).unwrap();
    let prices = segments[0].price();
    let mean = |at: usize, length: usize| -> i64 {
        prices[at - length..at].iter().sum::<i64>() * 1_000 / length.cast_signed() as i64
    };
    let above: Vec<bool> =
        (2_000..prices.len()).map(|at| mean(at, 500) > mean(at, 2_000)).collect();
    let crossings = above.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!((5..500).contains(&crossings), "{crossings}");
    let (low, high) = (prices.iter().min().unwrap(), prices.iter().max().unwrap());
    assert!((high - low) * 200 > *low, "the day moves by more than half a percent");
}
