//! The page of a sweep.

use tests::browser::{Browser, file_address};
use tests::user_folder::UserFolder;

use crate::common::{browser, expect_japanese, expect_unharmed, hostile_strategy, plain, run};

const SWEEP: &str = "replay sweep --data data --instrument 7203.TSE --quiet";
/// Of a run that was not held against window 1.
const NOT_AGAIN: &str = "not made again";

/// A column of the table of runs, by the start of its head, and how it is sorted.
fn column(browser: &mut Browser, head: &str) -> (Vec<String>, String) {
    let heads = browser.texts("#top-table thead th");
    let place = heads.iter().position(|one| one.starts_with(head));
    let place = place.unwrap_or_else(|| panic!("no {head} in {heads:?}"));
    let sorted = browser.value(&format!(
        "document.querySelectorAll('#top-table thead th')[{place}].getAttribute('aria-sort') ?? ''"
    ));
    let cells = browser.rows("#top-table").into_iter().map(|row| row[place].clone()).collect();
    (cells, sorted.as_str().unwrap().to_owned())
}

/// The selector of the button in the head of a column.
fn button(browser: &mut Browser, head: &str) -> String {
    let heads = browser.texts("#top-table thead th");
    let place = heads.iter().position(|one| one.starts_with(head)).unwrap();
    format!("#top-table thead th:nth-child({}) button", place + 1)
}

#[test]
fn a_sweep_is_shown_and_sorted_as_its_table_says() {
    let Some(mut browser) = browser() else { return };
    let user = UserFolder::with_sample(2, 1_500);
    let grid = "sma-cross --grid fast=5:15:5 --grid slow=20:40:10 --same-day-round-trips allow";
    user.good(&format!("{SWEEP} {grid} --out sweep"));
    let page = user.path("sweep/sweep.html");
    browser.open_file(&page);
    browser.picture("sweep");
    let table = std::fs::read_to_string(user.path("sweep/sweep.csv")).unwrap();
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let heads = lines.next().unwrap();
    let rows: Vec<Vec<&str>> = lines.collect();
    let place = |name: &str| heads.iter().position(|one| *one == name).unwrap();
    let (run_ids, _) = column(&mut browser, "Run");
    assert_eq!((run_ids.len(), rows.len()), (9, 9));
    for (head, key) in [
        ("fast", "param_fast"),
        ("slow", "param_slow"),
        ("Fills", "fills"),
        ("Round trips", "round_trips"),
    ] {
        let (cells, _) = column(&mut browser, head);
        for (id, cell) in run_ids.iter().zip(cells) {
            let row = rows.iter().find(|row| row[place("run")] == id).unwrap();
            assert_eq!(plain(&cell), row[place(key)], "{head} of run {id}");
        }
    }
    assert!(browser.colours_of_canvas("#heat canvas") > 5);
    // By a click, and by a key once more: the other way around.
    let fills = button(&mut browser, "Fills");
    browser.click(&fills);
    let (once, first) = column(&mut browser, "Fills");
    browser.focus(&fills);
    browser.press("Enter");
    let (again, second) = column(&mut browser, "Fills");
    let numbers = |cells: &[String]| -> Vec<u64> {
        cells.iter().map(|cell| plain(cell).parse().unwrap()).collect()
    };
    let (once, again) = (numbers(&once), numbers(&again));
    assert!(once.is_sorted() || once.iter().rev().is_sorted(), "{once:?}");
    let mut reversed = again.clone();
    reversed.reverse();
    assert_eq!(once, reversed);
    assert_ne!(first, second);
    browser.expect_fits_a_phone("sweep");
    // The heat map is read by keys.
    browser.focus("#heat");
    browser.press("ArrowRight");
    let here = browser.text("#heat-readout");
    browser.press("ArrowUp");
    assert_ne!(browser.text("#heat-readout"), here);
    browser.expect_quiet(&file_address(&page));
}

/// The runs that the page opens with are those that were made again with window 1; it says of the others
/// that they were not.
#[test]
fn a_sweep_opens_with_the_runs_that_were_made_again() {
    let Some(mut browser) = browser() else { return };
    let user = UserFolder::with_sample(2, 1_500);
    let grid = "sma-cross --grid fast=5:15:5 --grid slow=20:40:10 --same-day-round-trips allow";
    for (verified, at_first) in [(0, [NOT_AGAIN; 9].as_slice()), (4, &["yes"; 4])] {
        user.good(&format!("{SWEEP} {grid} --verify {verified} --limit 4 --out best-{verified}"));
        browser.open_file(&user.path(&format!("best-{verified}/sweep.html")));
        assert_eq!(column(&mut browser, "Verified").0, at_first);
    }
    assert!(browser.text("#top-hint").starts_with("4 of 9 runs"));
    browser.click("#more");
    let expected = [["yes"; 4].as_slice(), &[NOT_AGAIN; 5]].concat();
    assert_eq!(column(&mut browser, "Verified").0, expected);
}

/// Also where most runs failed and none has a number to rank by.
#[test]
fn a_sweep_opens_with_its_own_ranking() {
    let Some(mut browser) = browser() else { return };
    let user = UserFolder::with_sample(1, 1_500);
    let grid = "sma-cross --grid fast=150:250:50 --grid slow=10:300:10";
    user.good(&format!("{SWEEP} {grid} --out sweep"));
    browser.open_file(&user.path("sweep/sweep.html"));
    assert_eq!(column(&mut browser, "Verified").0, ["yes"; 10]);
    // Amounts are those of the table, to the yen.
    let table = std::fs::read_to_string(user.path("sweep/sweep.csv")).unwrap();
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let heads = lines.next().unwrap();
    let place = |name: &str| heads.iter().position(|one| *one == name).unwrap();
    let rows: Vec<Vec<&str>> = lines.collect();
    let shown = column(&mut browser, "Run").0.into_iter().zip(column(&mut browser, "Equity").0);
    for (id, equity) in shown {
        let row = rows.iter().find(|row| row[place("run")] == id).unwrap();
        let exact: f64 = row[place("equity_end")].parse().unwrap();
        assert_eq!(plain(&equity), format!("{exact:.0}"), "run {id}");
    }
}

#[test]
fn hostile_texts_are_texts_on_the_page_of_a_sweep() {
    let Some(mut browser) = browser() else { return };
    let user = UserFolder::with_sample(1, 600);
    let component = hostile_strategy(&user);
    // It takes every parameter and looks at none.
    run(&user, &format!("{SWEEP} --grid <b>=1:2:1 --out sweep"), &component);
    let page = user.path("sweep/sweep.html");
    browser.open_file(&page);
    let name = component.file_stem().unwrap().to_string_lossy().into_owned();
    assert_eq!(browser.text("#strategy"), name);
    assert!(browser.texts("#top-table thead th").iter().any(|head| head.starts_with("<b>")));
    expect_unharmed(&mut browser);
    browser.expect_fits_a_phone("sweep-hostile");
    browser.expect_quiet(&file_address(&page));
}

#[test]
fn a_sweep_speaks_japanese() {
    let Some(mut browser) = browser() else { return };
    let user = UserFolder::with_sample(2, 1_500);
    let table = "code,name,market,lot,ticks,from,to\n72030,トヨタ自動車,0111,100,normal,,\n";
    std::fs::write(user.path("data/instruments.csv"), table).unwrap();
    let grid = "sma-cross --grid fast=5:15:5 --grid slow=20:40:10 --execution optimistic";
    user.good(&format!("{SWEEP} {grid} --out sweep"));
    let page = user.path("sweep/sweep.html");
    browser.speak("ja");
    browser.open_file(&page);
    assert_eq!(browser.value("document.documentElement.lang"), "ja");
    assert!(browser.text("#subtitle").starts_with("7203.TSE トヨタ自動車 · "));
    assert!(browser.text("#notices").contains("楽観的な約定条件"));
    assert!(browser.text("#rules dd").starts_with("注文は、"));
    browser.picture("sweep-ja");
    let (fills, _) = column(&mut browser, "約定数");
    assert_eq!(fills.len(), 9);
    browser.expect_fits_a_phone("sweep-ja");
    browser.focus("#heat");
    browser.press("ArrowRight");
    assert!(browser.text("#heat-readout").contains("シャープレシオ"));
    expect_japanese(&mut browser, "sweep", &["sma-cross", "fast", "slow"]);
    browser.click("#language");
    assert_eq!(column(&mut browser, "Fills").0, fills);
    assert!(browser.colours_of_canvas("#heat canvas") > 5);
    browser.expect_quiet(&file_address(&page));
}
