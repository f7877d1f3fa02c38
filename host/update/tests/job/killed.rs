//! Runs that are killed while they fetch issue by issue: what the databases hold and what they say was fetched is
//! always the same.

use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use http_client::CancellationToken;
use pricestore::DataDir;
use update::limits::BATCH_ISSUES;
use update::store::WorkDatabase;
use update::{Ending, IssueCode, PriceStore, SourceKind, update_from_sources};

use crate::fixture::{Fixture, code, date, issues_of, row};

/// Issues of the run; more than are stored at a time.
const ISSUES: usize = 450;
/// The issue at which the run is cancelled.
const CANCELLED_AT: usize = 420;
/// How many torn logs are looked at.
const CUTS: u64 = 60;

/// The job's own database and its log.
const FILES: [&str; 2] = ["mother.db", "mother.db.wal"];

/// Copies the job's own database as a kill at this instant leaves it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.join("work")).unwrap();
    for name in FILES {
        let from = from.join("work").join(name);
        if from.exists() {
            fs::copy(from, to.join("work").join(name)).unwrap();
        }
    }
}

/// Opens what a kill has left and holds what was fetched against the rows; tells how many issues
/// there are.
fn checked(folder: &Path) -> usize {
    let mut store = WorkDatabase::open(&DataDir::new(folder)).unwrap();
    let rows = store.rows().rows_of(date("2026-01-08")).unwrap();
    let rows: BTreeSet<IssueCode> = rows.iter().map(|row| row.code).collect();
    let (state, note) = store.rows().fetch_state().unwrap();
    assert_eq!((note, state.published_range().unwrap().1), (None, date("2026-01-07")));
    assert_eq!(rows, state.pass.map(|pass| pass.codes).unwrap_or_default());
    rows.len()
}

/// Fetches issue by issue until the run is cancelled, or to its end; `look` is called before each.
fn run(fixture: &mut Fixture, mut look: impl FnMut(usize) + 'static) -> Ending {
    let broker = fixture.source(SourceKind::WebBroker, move |span| {
        look(span.0.as_str().parse::<usize>().unwrap() - 1_000);
        issues_of(SourceKind::WebBroker)(span)
    });
    let Fixture { options, cancel, seen, .. } = fixture;
    let mut store = WorkDatabase::open(&options.data).unwrap();
    update_from_sources(&mut store, vec![broker], options, cancel, seen).unwrap().ending
}

#[test]
fn a_kill_at_any_time_leaves_rows_and_claims_alike() {
    let mut fixture = Fixture::new(2);
    let codes = (1_000..1_000 + ISSUES).map(|number| code(&number.to_string()));
    let rows: Vec<_> = codes.map(|code| row(date("2026-01-07"), code, SourceKind::Files)).collect();
    let mut store = WorkDatabase::open(&fixture.options.data).unwrap();
    store.apply(&rows).unwrap();
    store.publish(&mut |_, _, _| ControlFlow::Continue(())).unwrap();
    drop(store);
    let (data, killed) = (fixture.options.data.path().to_owned(), tempfile::tempdir().unwrap());
    let (cancel, copies) = (fixture.cancel.clone(), killed.path().to_owned());
    let ending = run(&mut fixture, move |number| {
        if number == CANCELLED_AT {
            // All is in the log still; the database's end brings it into the file.
            copy(&data, &copies.join("whole"));
            cancel.cancel();
        }
    });
    assert_eq!(ending, Ending::Interrupted);
    assert_eq!(checked(fixture.options.data.path()), CANCELLED_AT + 1);

    // A log that was cut off while it was written holds whole steps only.
    let whole = &killed.path().join("whole");
    let length = fs::metadata(whole.join("work").join(FILES[1])).unwrap().len();
    let mut steps = BTreeSet::new();
    for cut in 0..=CUTS {
        let folder = killed.path().join(format!("cut-{cut}"));
        copy(whole, &folder);
        let log = fs::File::options().write(true).open(folder.join("work").join(FILES[1]));
        log.unwrap().set_len(length * cut / CUTS).unwrap();
        steps.insert(checked(&folder));
    }
    assert_eq!(steps, BTreeSet::from([0, BATCH_ISSUES, 2 * BATCH_ISSUES]));

    // The next run asks for what is missing only, and publishes all.
    fixture.take_asked();
    fixture.cancel = CancellationToken::new();
    assert_eq!(run(&mut fixture, |_| {}), Ending::Done);
    let asked = fixture.take_asked();
    let first = format!("web_broker {} 2026-01-08..2026-01-09", 1_000 + CANCELLED_AT + 1);
    assert_eq!((asked.len(), &asked[0]), (ISSUES - CANCELLED_AT - 1, &first));
    let mut store = WorkDatabase::open(&fixture.options.data).unwrap();
    let (state, _) = store.rows().fetch_state().unwrap();
    assert_eq!((state.pass, state.unpublished_from, state.split), (None, None, true));
    assert!(store.is_published().unwrap() && state.complete.contains(&date("2026-01-09")));
}
