//! The published combined database and the snapshot made of it.

use std::fs;

use pricestore::Published;
use ranking::{CancelToken, EngineOptions, Formula, RankEngine, RankOrder, RankQuery};

use super::*;
use crate::store::StoreError;

#[test]
fn readers_see_what_was_published() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    let january = days(3);
    store.apply(&market(&["7203", "1301", "130A"], &january)).unwrap();
    assert!(!store.is_published().unwrap());
    let published = store.publish(&mut go_on).unwrap();
    assert_eq!((published.number, published.days, published.codes), (1, 3, 3));
    assert_eq!(published.range, (january[0], january[2]));
    let old = reader(&fixture.data.mother());
    let order = "SELECT code, date FROM daily";
    let ordered = lines(&old, order);
    let mut sorted = ordered.clone();
    sorted.sort();
    assert_eq!((ordered.len(), &ordered), (9, &sorted), "by issue and date");
    assert!(!fixture.data.mother().with_extension("db.wal").exists());

    store.apply(&[row("1301", days(4)[3], 700)]).unwrap();
    assert_eq!(store.publish(&mut go_on).unwrap().number, 2);
    assert_eq!(lines(&old, order).len(), 9, "an open reader keeps what it has opened");
    assert_eq!(lines(&reader(&fixture.data.mother()), order).len(), 10);

    let options = EngineOptions { threads: 1, follow: false, ..EngineOptions::default() };
    let engine = RankEngine::open(fixture.data.path(), options).unwrap();
    let query = RankQuery {
        from: january[0],
        to: day("2025-12-31"),
        sort_by: Formula::parse("Close").unwrap().into(),
        order: RankOrder::Desc,
        limit: 20,
        codes: None,
        adjusted: false,
    };
    assert_eq!(engine.rank(&query, &CancelToken::new()).unwrap().rows.len(), 10);
}

#[test]
fn what_is_published_already_is_not_written_again() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    let rows = market(&["1301"], &days(2));
    store.apply(&rows).unwrap();
    let first = store.publish(&mut go_on).unwrap();
    store.apply(&rows).unwrap();
    let mut asked = 0;
    let again = store.publish(&mut |_, _, _| {
        asked += 1;
        ControlFlow::Continue(())
    });
    let standing = Published { file: None, ..first };
    assert_eq!((again.unwrap(), asked), (standing.clone(), 0));
    drop(store);
    assert_eq!(fixture.open().publish(&mut go_on).unwrap(), standing, "the next job knows it too");

    // What others did to the files is put right.
    fs::copy(fixture.data.mother(), fixture.data.mother().with_extension("copy")).unwrap();
    fs::rename(fixture.data.mother().with_extension("copy"), fixture.data.mother()).unwrap();
    assert_eq!(fixture.open().publish(&mut go_on).unwrap().number, 2);
    fs::remove_file(fixture.data.mother()).unwrap();
    assert_eq!(fixture.open().publish(&mut go_on).unwrap().number, 3);
    fs::remove_file(fixture.data.rank_grid(3)).unwrap();
    assert_eq!(fixture.open().publish(&mut go_on).unwrap().number, 4);
}

#[test]
fn what_has_an_older_form_is_published_anew() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    store.apply(&market(&["1301"], &days(2))).unwrap();
    store.publish(&mut go_on).unwrap();
    assert!(store.is_published().unwrap());
    // As versions before the first change of the form have noted it.
    store.execute(
        "UPDATE work.state SET published_file =
           regexp_replace(published_file, '^form [0-9]+, ', '')",
    );
    assert!(!store.is_published().unwrap());
    assert_eq!(store.publish(&mut go_on).unwrap().number, 2);
    assert!(store.is_published().unwrap());
}

#[test]
fn a_stopped_publication_leaves_the_old_one() {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    let error = store.publish(&mut go_on).unwrap_err().to_string();
    assert!(error.starts_with("no daily prices are stored for "), "{error}");
    store.apply(&market(&["1301"], &days(2))).unwrap();
    store.publish(&mut go_on).unwrap();
    let before = fs::read(fixture.data.mother()).unwrap();
    store.apply(&[row("1301", days(3)[2], 700)]).unwrap();
    for step in 0..2 {
        let error = store.publish(&mut |done, of, _| match (done, of) {
            (done, 2) if done == step => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        assert!(matches!(error, Err(StoreError::Cancelled)), "step {step}: {error:?}");
        assert_eq!(fs::read(fixture.data.mother()).unwrap(), before);
        assert_eq!(fixture.data.current().unwrap(), Some(1));
        assert!(!fixture.data.mother().with_extension("db.kumiki-new").exists());
    }
    let published = store.publish(&mut |done, of, _| match done {
        done if done == of => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    assert_eq!(published.unwrap().number, 2, "at the end there is nothing to stop");
}
