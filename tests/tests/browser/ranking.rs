//! The ranking page, as `kumiki rank serve` serves it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::Value;
use tests::browser::Browser;
use tests::user_folder::UserFolder;

use crate::common::{HOSTILE, browser, digits, expect_unharmed, plain};

/// The service; ends with the test.
struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn start(user: &UserFolder) -> Self {
        let mut command = user.command("rank serve --listen 127.0.0.1:0 --data-dir data");
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let place = line.find("http://").unwrap_or_else(|| panic!("{line}"));
        Self { child, address: line[place..].trim().trim_end_matches('/').to_owned() + "/" }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The rows of the day that is shown: code and value.
fn shown(browser: &mut Browser) -> (String, Vec<(String, String)>) {
    let rows = browser.rows("table").into_iter().map(|row| (row[1].clone(), row[2].clone()));
    let rows = rows.collect();
    (browser.text("#date"), rows)
}

/// Types a formula in the place of the one that is there.
fn formula(browser: &mut Browser, text: &str) {
    browser.focus("#formula");
    browser.value("document.querySelector('#formula').select()");
    browser.type_text(text);
}

#[test]
fn the_ranking_page_ranks_as_the_program_does() {
    let Some(mut browser) = browser() else { return };
    let user = UserFolder::empty();
    user.good("data sample --daily --codes 40 --days 60 --seed 7 --data-dir data");
    let serving = Serving::start(&user);
    browser.open(&serving.address);
    browser.wait_for("document.querySelector('#dataset').textContent.includes('issues')");
    assert!(browser.text("#dataset").starts_with("40 issues, 60 business days"));
    // A formula, and Enter.
    formula(&mut browser, "Volume");
    browser.wait_for("document.querySelector('#check').className === 'good'");
    browser.press("Enter");
    browser.wait_for("document.querySelectorAll('#rows tr').length === 20");
    browser.picture("ranking");
    let (date, rows) = shown(&mut browser);
    let asked = format!("rank --data-dir data --from {date} --to {date} --limit 20 --format json");
    let mut command = user.command(&asked);
    let output = command.args(["--sort-by", "Volume"]).output().unwrap();
    let wanted: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(rows.len(), wanted.len());
    for ((code, value), row) in rows.iter().zip(&wanted) {
        assert_eq!(*code, row["code"].as_str().unwrap());
        let number: f64 = plain(value).parse().unwrap();
        assert_eq!(number, row["sortValue"].as_f64().unwrap(), "{}", digits(&row["sortValue"]));
    }
    assert!(
        browser.value("document.querySelectorAll('#rows svg rect').length").as_u64() > Some(20)
    );
    // The day before, by a click and by a key.
    browser.click("#back");
    let (before, _) = shown(&mut browser);
    assert!(before < date, "{before}, {date}");
    browser.focus("#slider");
    browser.press("ArrowRight");
    assert_eq!(shown(&mut browser), (date, rows));
    // The other way around.
    browser.value(
        "(() => { const order = document.querySelector('#order'); order.value = 'asc'; })()",
    );
    browser.click("#run");
    browser.wait_for("document.querySelector('#caption').textContent.includes('smallest')");
    browser.expect_fits_a_phone("ranking");
    browser.expect_quiet(&serving.address);
}

#[test]
fn hostile_formulas_are_texts_on_the_ranking_page() {
    let Some(mut browser) = browser() else { return };
    let user = UserFolder::empty();
    user.good("data sample --daily --codes 3 --days 10 --seed 7 --data-dir data");
    let serving = Serving::start(&user);
    browser.open(&serving.address);
    browser.wait_for("document.querySelector('#dataset').textContent.includes('issues')");
    formula(&mut browser, HOSTILE);
    browser.wait_for("document.querySelector('#check').className === 'bad'");
    browser.click("#run");
    browser.wait_for("document.querySelector('#status').className === 'bad'");
    expect_unharmed(&mut browser);
    // An address is a question that somebody sent.
    let sent: String = HOSTILE.bytes().map(|byte| format!("%{byte:02X}")).collect();
    browser.open(&format!("{}#sortBy={sent}&order=asc&limit=5", serving.address));
    browser.wait_for("document.querySelector('#status').className === 'bad'");
    assert_eq!(browser.value("document.querySelector('#formula').value"), HOSTILE);
    expect_unharmed(&mut browser);
    browser.expect_quiet(&serving.address);
}
