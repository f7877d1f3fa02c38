//! The page of a run and the page that compares runs.

use serde_json::Value;
use tests::browser::{Browser, file_address};
use tests::user_folder::UserFolder;

use crate::common::{
    HOSTILE, browser, digits, expect_japanese, expect_unharmed, hostile_strategy, json, plain, run,
};

const RUN: &str =
    "replay run --data data --instrument 7203.TSE --quiet --same-day-round-trips allow";

/// The cards of the page, by name.
fn card(browser: &mut Browser, name: &str) -> String {
    let cards = browser.value(
        "Object.fromEntries([...document.querySelectorAll('#cards .card')].map((card) => \
         [card.querySelector('dt').textContent, card.querySelector('dd').textContent]))",
    );
    cards[name].as_str().unwrap_or_else(|| panic!("no card {name}: {cards}")).to_owned()
}

/// A column of a table of the page, by its head.
fn column(browser: &mut Browser, table: &str, head: &str) -> Vec<String> {
    let heads = browser.texts(&format!("{table} thead th"));
    let place = heads.iter().position(|one| one == head);
    let place = place.unwrap_or_else(|| panic!("no {head} in {heads:?}"));
    browser.rows(table).into_iter().map(|row| row[place].clone()).collect()
}

/// How many rows a table says that it shows: `1–50 of 120`.
fn shown(browser: &mut Browser, section: &str) -> u64 {
    let state = browser.text(&format!("{section} .state"));
    let count = state.split(" of ").nth(1).unwrap().split(' ').next().unwrap();
    plain(count).parse().unwrap()
}

#[test]
fn a_run_is_shown_as_its_files_say() {
    let Some(mut browser) = browser() else { return };
    let user = UserFolder::with_sample(3, 2_000);
    user.good(&format!("{RUN} sma-cross --param fast=5 --param slow=20 --out run"));
    let page = user.path("run/report.html");
    browser.open_file(&page);
    browser.picture("report");
    let summary = &json(&user, "run/summary.json");
    for (name, key) in [
        ("Profit", "profit"),
        ("Final equity", "equity_end"),
        ("Orders", "orders"),
        ("Fills", "fills"),
        ("Round trips", "round_trips"),
        ("Max drawdown", "max_drawdown"),
    ] {
        assert_eq!(plain(&card(&mut browser, name)), digits(&summary[key]), "{name}");
    }
    assert_eq!(browser.text("#status"), summary["status"].as_str().unwrap());
    let fills = json(&user, "run/fills.json");
    let fills = fills.as_array().unwrap();
    assert_eq!(shown(&mut browser, "#fills"), fills.len() as u64);
    for (head, key) in
        [("Price", "price"), ("Shares", "quantity"), ("Order done", "cumulative_quantity")]
    {
        let cells = column(&mut browser, "#fills", head);
        assert!(cells.len() > 20, "{head}: {} rows", cells.len());
        for (cell, fill) in cells.iter().zip(fills) {
            assert_eq!(plain(cell), digits(&fill[key]), "{head}");
        }
    }
    for chart in ["equity", "drawdown", "price"] {
        let colours = browser.colours_of_canvas(&format!("#{chart}-chart canvas"));
        assert!(colours > 5, "{chart}: {colours} colours");
    }
    assert!(browser.texts("#statistics-groups dd").len() > 30);
    browser.expect_fits_a_phone("report");
    browser.expect_quiet(&file_address(&page));
}

#[test]
fn a_run_is_used_by_mouse_and_by_keys() {
    let Some(mut browser) = browser() else { return };
    let user = UserFolder::with_sample(2, 2_000);
    user.good(&format!("{RUN} sma-cross --param fast=5 --param slow=20 --out run"));
    let page = user.path("run/report.html");
    browser.open_file(&page);
    let fills = json(&user, "run/fills.json");
    let all = fills.as_array().unwrap().len() as u64;
    let buys = fills.as_array().unwrap().iter().filter(|fill| fill["side"] == "BUY").count();
    // Typed, not set.
    browser.focus("#fills-filter");
    browser.type_text("buy");
    browser.wait_for("document.querySelector('#fills .state').textContent.includes('in all')");
    assert_eq!(shown(&mut browser, "#fills"), buys as u64);
    assert!(column(&mut browser, "#fills", "Side").iter().all(|side| side == "BUY"));
    browser.value("document.querySelector('#fills-filter').select()");
    browser.type_text("");
    browser.value(
        "(() => { const box = document.querySelector('#fills-filter'); box.value = ''; \
         box.dispatchEvent(new Event('input')); })()",
    );
    browser.wait_for("!document.querySelector('#fills .state').textContent.includes('in all')");
    // Pages, by a click and by Enter on what has the focus.
    let first = browser.rows("#fills");
    browser.click("#fills .pager button:nth-child(3)");
    assert_ne!(browser.rows("#fills"), first);
    browser.focus("#fills .pager button:nth-child(2)");
    browser.press("Enter");
    assert_eq!(browser.rows("#fills"), first);
    assert_eq!(shown(&mut browser, "#fills"), all);
    // From a fill to its order, and back to all orders.
    let order = column(&mut browser, "#fills", "Order")[0].clone();
    browser.click("#fills tbody tr td:nth-child(2) button");
    assert_eq!(column(&mut browser, "#orders", "Order"), [order]);
    browser.focus("#orders .chip");
    browser.press("Enter");
    assert!(shown(&mut browser, "#orders") > 1);
    // Zoom: the whole run is what it was.
    browser.click("#zoom button:nth-child(2)");
    assert_eq!(browser.value("document.querySelector('#zoom button').disabled"), false);
    browser.click("#zoom button:nth-child(1)");
    assert_eq!(browser.value("document.querySelector('#zoom button').disabled"), true);
    browser.expect_quiet(&file_address(&page));
}

#[test]
fn hostile_texts_are_texts_on_the_page_of_a_run() {
    let Some(mut browser) = browser() else { return };
    let user = UserFolder::with_sample(2, 1_500);
    let component = hostile_strategy(&user);
    run(&user, &format!("{RUN} --out run"), &component);
    let page = user.path("run/report.html");
    browser.open_file(&page);
    browser.picture("report-hostile");
    let name = component.file_stem().unwrap().to_string_lossy().into_owned();
    assert_eq!(browser.text("#strategy"), name);
    for (section, head) in [
        ("#signals", "Tag"),
        ("#signals", "Note"),
        ("#narrative", "Decision"),
        ("#narrative", "Why"),
        ("#log", "Message"),
    ] {
        let cells = column(&mut browser, section, head);
        assert!(!cells.is_empty() && cells.iter().all(|cell| cell == HOSTILE), "{cells:?}");
    }
    expect_unharmed(&mut browser);
    browser.expect_fits_a_phone("report-hostile");
    browser.expect_quiet(&file_address(&page));
}

#[test]
fn runs_are_compared_as_the_program_says() {
    let Some(mut browser) = browser() else { return };
    let user = UserFolder::with_sample(3, 2_000);
    user.good(&format!("{RUN} sma-cross --param fast=5 --param slow=20 --out one"));
    run(&user, &format!("{RUN} --out two"), &hostile_strategy(&user));
    let said = user.good("replay compare one two --out compare.html --format json");
    let said: Value = serde_json::from_str(&said).unwrap();
    let page = user.path("compare.html");
    browser.open_file(&page);
    browser.picture("compare");
    let colours = browser.colours_of_canvas("#equity-chart canvas");
    assert!(colours > 5, "{colours} colours");
    let lines = said["statistics"].as_array().unwrap();
    let rows = browser.rows("#statistics");
    assert_eq!(rows.len(), lines.len());
    let mut compared = 0;
    for (row, line) in rows.iter().zip(lines) {
        for (cell, value) in row[1..].iter().zip(line["values"].as_array().unwrap()) {
            // Ratios are rounded on the page; whole numbers and amounts are not.
            let exact = value.is_u64() || value.as_str().is_some_and(|text| text == plain(text));
            if exact {
                assert_eq!(plain(cell), digits(value), "{row:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 20, "{compared} numbers");
    expect_unharmed(&mut browser);
    browser.expect_fits_a_phone("compare");
    browser.expect_quiet(&file_address(&page));
}

#[test]
fn a_run_and_a_comparison_speak_japanese_and_stay_so() {
    let Some(mut browser) = browser() else { return };
    let user = UserFolder::with_sample(3, 2_000);
    user.good(&format!("{RUN} sma-cross --param fast=5 --param slow=20 --out one"));
    user.good(&format!("{RUN} sma-cross --param fast=8 --param slow=20 --out two"));
    user.good("replay compare one two --out compare.html");
    browser.speak("fr,ja,en");
    let page = user.path("one/report.html");
    browser.open_file(&page);
    assert_eq!(browser.value("document.documentElement.lang"), "ja");
    browser.picture("report-ja");
    let summary = json(&user, "one/summary.json");
    assert_eq!(plain(&card(&mut browser, "損益")), digits(&summary["profit"]));
    assert!(card(&mut browser, "最終資産").ends_with('円'));
    assert_eq!(browser.text("#status"), "完了");
    let sides = column(&mut browser, "#fills", "売買");
    assert!(sides.len() > 20 && sides.iter().all(|side| side == "買" || side == "売"), "{sides:?}");
    assert!(column(&mut browser, "#orders", "注文種別").iter().all(|kind| kind == "成行"));
    assert!(browser.text("#rules dd").starts_with("注文は、"));
    assert!(browser.text("#subtitle").contains('/'), "{}", browser.text("#subtitle"));
    expect_japanese(&mut browser, "report");
    browser.expect_fits_a_phone("report-ja");
    // The switch draws everything anew, in English, with as many charts and rows; it is remembered by
    // the other pages too.
    let rows = browser.rows("#fills").len();
    browser.click("#language");
    assert_eq!(browser.value("document.documentElement.lang"), "en");
    assert_eq!(plain(&card(&mut browser, "Profit")), digits(&summary["profit"]));
    assert_eq!(
        (browser.rows("#fills").len(), browser.text("#status")),
        (rows, "completed".to_owned())
    );
    assert_eq!(browser.value("document.querySelectorAll('.uplot').length"), 3);
    assert_eq!(browser.value("document.activeElement.id"), "language");
    assert!(browser.colours_of_canvas("#price-chart canvas") > 5);
    browser.expect_quiet(&file_address(&page));
    browser.open_file(&user.path("compare.html"));
    assert_eq!(browser.text("h1"), "Comparison");
    browser.click("#language");
    assert_eq!(browser.text("h1"), "リプレイ結果の比較");
    assert!(browser.colours_of_canvas("#equity-chart canvas") > 5);
    browser.picture("compare-ja");
    expect_japanese(&mut browser, "compare");
    browser.expect_fits_a_phone("compare-ja");
    browser.open_file(&page);
    assert_eq!(browser.text("#status"), "完了");
}

#[test]
fn pages_can_be_read_without_scripts() {
    let Some(mut browser) = browser() else { return };
    let user = UserFolder::with_sample(1, 500);
    user.good(&format!("{RUN} sma-cross --out run"));
    browser.call("Emulation.setScriptExecutionDisabled", serde_json::json!({ "value": true }));
    browser.open_file(&user.path("run/report.html"));
    browser.call("Emulation.setScriptExecutionDisabled", serde_json::json!({ "value": false }));
    let said = browser.texts("noscript p");
    assert!(said[0].contains("The CSV and JSON files beside it"), "{said:?}");
    assert!(said[1].contains("CSV・JSON ファイル"), "{said:?}");
    assert_eq!(browser.text("#orders-title"), "Orders");
}
