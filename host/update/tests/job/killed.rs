//! Runs that are killed: what the databases hold and what they say was fetched is always the same.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use pricestore::DataDir;
use update::store::WorkDatabase;
use update::{Ending, IssueCode, PriceStore, SourceKind, update_from_sources};

use crate::fixture::{Fixture, ScriptedSource, code, date, every_issue, row};

/// Issues of the run; more than are stored at a time.
const ISSUES: usize = 450;
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
    let rows: BTreeSet<IssueCode> = store.rows().known().unwrap().codes.into_iter().collect();
    let (state, note) = store.rows().fetch_state().unwrap();
    let claimed = state.pass.map(|pass| pass.codes).unwrap_or_default();
    assert_eq!(note, None);
    // One issue was there before.
    let before = BTreeSet::from([code("9999")]);
    assert_eq!(rows.difference(&before).copied().collect::<BTreeSet<_>>(), claimed);
    // Only a run that has come to its end lets readers see the days.
    assert_eq!(state.unpublished_from.is_some(), !state.forced.is_empty());
    claimed.len()
}

/// A data directory with one issue in it, published.
fn begun() -> Fixture {
    let mut fixture = Fixture::new(2);
    let codes = (1_000..1_000 + ISSUES).map(|number| code(&number.to_string()));
    fixture.options.codes = codes.collect();
    fixture.options.publish_incomplete = Some(Vec::new());
    let mut store = WorkDatabase::open(&fixture.options.data).unwrap();
    store.apply(&[row(date("2026-01-07"), code("9999"), SourceKind::Files)]).unwrap();
    store.publish(&mut |_, _, _| std::ops::ControlFlow::Continue(())).unwrap();
    fixture
}

/// Fetches issue by issue until the run is cancelled, or to its end; `look` is called before each.
fn run(fixture: &mut Fixture, mut look: impl FnMut(IssueCode) + 'static) -> Ending {
    let broker = ScriptedSource::by_issue(SourceKind::WebBroker, &fixture.asked, move |asked| {
        look(asked.0);
        every_issue(SourceKind::WebBroker)(asked)
    });
    let Fixture { options, cancel, seen, .. } = fixture;
    let mut store = WorkDatabase::open(&options.data).unwrap();
    let slots = vec![broker.slot()];
    update_from_sources(&mut store, slots, options, cancel, seen).unwrap().ending
}

#[test]
fn a_kill_at_any_time_leaves_rows_and_claims_alike() {
    let mut fixture = begun();
    let (data, killed) = (fixture.options.data.path().to_owned(), tempfile::tempdir().unwrap());
    let (cancel, copies) = (fixture.cancel.clone(), killed.path().to_owned());
    let ending = run(&mut fixture, move |issue| {
        let number: usize = issue.as_str().parse::<usize>().unwrap() - 1_000;
        if number.is_multiple_of(50) {
            copy(&data, &copies.join(number.to_string()));
        }
        if number == ISSUES - 1 {
            // All is in the log still; the database's end brings it into the file.
            copy(&data, &copies.join("last"));
            cancel.cancel();
        }
    });
    assert_eq!(ending, Ending::Interrupted);
    let limit = update::limits::BATCH_ISSUES;
    for number in (0..ISSUES).step_by(50) {
        let stored = checked(&killed.path().join(number.to_string()));
        assert_eq!(stored, number / limit * limit, "killed at issue {number}");
    }

    assert_eq!(checked(fixture.options.data.path()), ISSUES);

    // And a log that was cut off while it was written holds whole steps only.
    let whole = &killed.path().join("last");
    let length = fs::metadata(whole.join("work").join(FILES[1])).unwrap().len();
    let mut steps = BTreeSet::new();
    for cut in 0..=CUTS {
        let folder = killed.path().join(format!("cut-{cut}"));
        copy(whole, &folder);
        let log = fs::File::options().write(true).open(folder.join("work").join(FILES[1]));
        log.unwrap().set_len(length * cut / CUTS).unwrap();
        steps.insert(checked(&folder));
    }
    assert_eq!(steps, BTreeSet::from([0, limit, 2 * limit]));

    // The next run asks for nothing that is there.
    fixture.take_asked();
    fixture.cancel = http_client::CancellationToken::new();
    assert_eq!(run(&mut fixture, |_| {}), Ending::Incomplete);
    assert_eq!(fixture.take_asked(), [""; 0]);
    assert_eq!(checked_published(&fixture), ISSUES + 1);
}

/// The issues that are stored, once all is published and nothing is claimed for later.
fn checked_published(fixture: &Fixture) -> usize {
    let mut store = WorkDatabase::open(&fixture.options.data).unwrap();
    let (state, _) = store.rows().fetch_state().unwrap();
    assert_eq!((state.pass, state.unpublished_from, state.split), (None, None, true));
    assert!(store.is_published().unwrap());
    store.rows().known().unwrap().codes.len()
}
