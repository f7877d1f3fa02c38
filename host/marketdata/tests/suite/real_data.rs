//! Real trades, where they are at hand; the test says that it is skipped without them.

use std::path::Path;

use marketdata::{Catalog, Selection, TradeStore, check_file};

use crate::common::{code, go_on, read};

#[test]
fn real_trades_are_read_completely() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/trades_retimed");
    let Ok(catalog) = Catalog::open(&data) else {
        println!("skipped: no real data at {}", data.display());
        return;
    };
    let [file] = catalog.files() else {
        panic!("{:?}", catalog.files());
    };
    let counts = [("13060", 1_426_654), ("67020", 96_165)];
    let report = check_file(file).unwrap();
    assert_eq!((report.rows, report.codes), (1_522_819, 2));
    assert_eq!(report.first.to_string(), "2013-10-07 09:00:00.007835 JST");
    assert_eq!(report.last.to_string(), "2013-10-11 15:29:57.221965 JST");
    let cache = tempfile::tempdir().unwrap();
    let store = TradeStore::new(cache.path());
    let codes = counts.map(|(text, _)| code(text));
    for _ in 0..2 {
        let segments = store.load(file, &codes, &mut go_on).unwrap();
        for (segment, (text, rows)) in segments.iter().zip(counts) {
            assert_eq!((segment.code(), segment.len()), (code(text), rows));
            assert_eq!(segment.price_grid().step(), Some("0.1".parse().unwrap()));
            assert!(segment.ts_event().is_sorted());
        }
    }
    let (all, _) = read(file, &Selection::All, 1 << 18).unwrap();
    let segments = store.load(file, &codes, &mut go_on).unwrap();
    for segment in segments {
        let rows = all.iter().filter(|row| row.0 == segment.code().as_str());
        let columns = segment.ts_event().iter().zip(segment.price()).zip(segment.quantity());
        assert!(rows.map(|row| ((&row.1, &row.2), &row.3)).eq(columns));
    }
}
