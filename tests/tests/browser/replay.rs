//! The page of a run and the page that compares runs.

use serde_json::Value;
use tests::browser::{Browser, file_address};
use tests::user_folder::UserFolder;

use crate::common::{
    HOSTILE, browser, digits, expect_japanese, expect_unharmed, hostile_strategy, json,
    latin_words, plain, run,
};

const RUN: &str =
    "replay run --data data --instrument 7203.TSE --quiet --same-day-round-trips allow";

/// Names of the test's own strategies, parameters and folders.
const OWN: [&str; 6] = ["sma-cross", "fast", "slow", "quantity", "one", "two"];

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
    let sides = column(&mut browser, "#fills", "売買区分");
    assert!(sides.len() > 20 && sides.iter().all(|side| side == "買" || side == "売"), "{sides:?}");
    assert!(column(&mut browser, "#orders", "注文種別").iter().all(|kind| kind == "成行"));
    assert!(browser.text("#rules dd").starts_with("注文は、"));
    assert!(browser.text("#subtitle").contains('/'), "{}", browser.text("#subtitle"));
    expect_japanese(&mut browser, "report", &OWN);
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
    expect_japanese(&mut browser, "compare", &OWN);
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

/// Sentences of results that the runs of these tests do not have.
const SENTENCES: [&str; 25] = [
    "CASH: needs up to 145800 yen at 1458 a share and the fee, 100000 yen are free",
    "QUANTITY: 100 is not a multiple of the lot 1000",
    "SHORT_SALE: 200 to sell, 100 held, 0 of them in other sell orders",
    "PRICE_LIMIT: 2000 is outside the day's range 1200 to 1500",
    "Commission: none.",
    "7203.TSE: lot 100, as asked for; ticks fixed 0.1, as asked for",
    "7203.TSE: lot 100, the usual one; ticks topix500, which fit the prices before 2025-01-06; instruments.csv \
     has no row of it on that day",
    "7203.TSE: lot 100, the usual one; ticks normal, which fit the only 3 prices known before 2025-01-06; there \
     is no instruments.csv",
    "7203.TSE: lot 10, from instruments.csv; ticks topix500, which fit the prices before 2025-01-06; its row in \
     instruments.csv has no ticks; from 2023-01-05 on instruments.csv has no row of it: they stay",
    "7203.TSE: base price of 2025-01-06: 2890.5, of 2024-12-30 in equities_trades_202412.csv.gz",
    "7203.TSE: base price of 2025-01-06: 1445, which is 2890 of 2024-12-30 in a.csv.gz after splits",
    "business days: markets_calendar.csv, and after 2025-12-31 Japan's public holidays by law",
    "business days: markets_calendar.csv from 2025-01-01 to 2025-01-10 only, on other days Japan's public \
     holidays by law",
    "not read, because the file of its month has the day: equities_trades_20250106.csv.gz",
    "not read, because the file of its month has the day: equities_trades_20250106.csv.gz and 2 more",
    "rows of days on which the exchange is closed: 2025-01-01",
    "rows of days on which the exchange is closed: 2025-01-01 and 1 more",
    "business days without any row: 2025-01-07",
    "business days without any row: 2025-01-07 and 3 more",
    "same-day round trips (F11): 1 order was rejected",
    "and 3 more ranges were left",
    "7203.TSE, 2025-01-07 09:00:00.000000 JST: a trade at 1501 lies outside 1200 to 1500: the range is 900 to \
     2400 from then on",
    "PRICE GAP: 7203.TSE, 2025-01-07 09:00:00.000000 JST: a trade at 500 lies outside 1200 to 1500 and outside \
     4 times that range: 1350 is no base price, no range is checked from then on; 100 shares were held \
     over night. A split that is missing from the vendor's daily files looks like this; profit and loss are \
     then wrong",
    "SPLIT FACTOR: 7203.TSE, 2025-01-07 09:00:00.000000 JST: a trade at 500 lies outside 1200 to 1500 and \
     outside 4 times that range: 1350 is no base price, no range is checked from then on; the vendor's factor \
     of that day, 2 for 1 shares, does not fit these prices; if it is wrong, profit and loss are wrong too",
    "OPTIMISTIC EXECUTION: orders that take liquidity pay no slippage; real fills will be worse. PRICE GAP: \
     7203.TSE, 2025-01-07 09:00:00.000000 JST: a trade at 1501 lies outside 1200 to 1500: the range is 900 to \
     2400 from then on; 100 shares were held \
     over night. A split that is missing from the vendor's daily files looks like this; profit and loss are \
     then wrong",
];

#[test]
fn notes_warnings_and_names_are_japanese() {
    let Some(mut browser) = browser() else { return };
    let user = UserFolder::with_sample(4, 1_500);
    let table = "code,name,market,lot,ticks,from,to\n\
                 72030,トヨタ\u{202e}自動車,0111,1000,normal,,2025-01-07\n\
                 72030,トヨタ自動車,0111,100,topix500,2025-01-08,\n";
    std::fs::write(user.path("data/instruments.csv"), table).unwrap();
    let run = RUN.replace("--same-day-round-trips allow", "--execution optimistic");
    user.good(&format!("{run} sma-cross --param fast=5 --param slow=20 --cash 100000 --out one"));
    user.good(&format!("{run} sma-cross --param fast=8 --cash 90000000 --out two"));
    user.good("replay compare one two --out compare.html");
    let manifest = json(&user, "one/manifest.json");
    assert_eq!(manifest["names"]["7203.TSE"], "トヨタ\u{202e}自動車");
    assert!(manifest["notes"].as_array().unwrap().len() > 2, "{}", manifest["notes"]);
    browser.speak("ja");
    let page = user.path("one/report.html");
    browser.open_file(&page);
    browser.picture("report-notes-ja");
    let shown = r"7203.TSE トヨタ\u202e自動車";
    assert!(browser.text("#subtitle").starts_with(shown), "{}", browser.text("#subtitle"));
    assert!(browser.text("#verdict").contains("楽観的な約定条件"));
    // An order without the money for it says why.
    let reasons = column(&mut browser, "#orders", "理由");
    assert!(reasons.iter().any(|reason| reason.starts_with("資金不足(")), "{reasons:?}");
    // Nothing of the program's own is left in English, but the texts of rejected orders, which the events
    // and the audit log have in the same words.
    let english = "[...document.querySelectorAll('main [lang=en], header span[lang=en]')] \
                   .filter((one) => !one.closest('#orders')).map((one) => one.textContent)";
    assert_eq!(browser.value(english), serde_json::json!([]));
    for sentence in SENTENCES {
        let told = browser.value(&format!("retold({})", serde_json::json!(sentence)));
        let told = told.as_str().unwrap_or_else(|| panic!("not told: {sentence}"));
        // Names of tables of price steps are values of an option.
        assert_eq!(latin_words(told, &["topix500"]), [""; 0], "{told}");
    }
    assert_eq!(browser.value("retold('something else; there is no instruments.csv')"), Value::Null);
    browser.open_file(&user.path("compare.html"));
    assert_eq!(browser.value(english), serde_json::json!([]));
    let rows = browser.rows("#differences");
    let issues = rows.iter().find(|row| row[0] == "銘柄").unwrap();
    assert_eq!(issues[1], shown);
    // As it was written, in English.
    browser.click("#language");
    assert!(browser.text("#verdict").contains("OPTIMISTIC EXECUTION"));
    browser.expect_quiet(&file_address(&user.path("compare.html")));
}
