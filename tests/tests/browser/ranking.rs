//! The ranking page, as `kumiki rank serve` serves it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::Value;
use tests::browser::Browser;
use tests::user_folder::UserFolder;

use crate::common::{HOSTILE, browser, expect_japanese, expect_unharmed, latin_words, plain};

/// The service; ends with the test.
struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn start(user: &UserFolder) -> Self {
        let mut command = user.command("rank serve --listen 127.0.0.1:0 --prices data");
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

/// A service over a sample of so many issues and days, and its page with the first ranking: what the page asks
/// for by itself.
fn opened(browser: &mut Browser, codes: u32, days: u32) -> (UserFolder, Serving) {
    let user = UserFolder::empty();
    let sample = format!("--issues {codes} --days {days} --seed 7 --prices data");
    user.good(&format!("data sample --daily {sample}"));
    let serving = Serving::start(&user);
    browser.open(&serving.address);
    browser.wait_for("document.querySelectorAll('#rows tr[data-code]').length > 1");
    (user, serving)
}

/// The rows of the day that is shown: code and value.
fn shown(browser: &mut Browser) -> (String, Vec<(String, String)>) {
    let found = browser.value(
        "[...document.querySelectorAll('#rows tr')].map((row) => [row.dataset.code, \
         row.querySelector('.value').lastChild.textContent])",
    );
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let rows = found.as_array().unwrap().iter().map(|row| (text(&row[0]), text(&row[1]))).collect();
    (text(&browser.value("document.querySelector('#date').dataset.date")), rows)
}

/// The ranking of a day, as the program prints it.
fn ranked(user: &UserFolder, date: &str, formula: &str) -> Vec<(String, f64)> {
    let asked =
        format!("rank query --prices data --from {date} --to {date} --limit 20 --format json");
    let output = user.command(&asked).args(["--sort-by", formula]).output().unwrap();
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let row = |row: &Value| {
        (row["code"].as_str().unwrap().to_owned(), row["sortValue"].as_f64().unwrap())
    };
    rows.iter().map(row).collect()
}

/// Holds rows of the page against those of the program: the same, as far as the page writes digits.
fn expect_the_same(rows: &[(String, String)], wanted: &[(String, f64)]) {
    assert_eq!(rows.len(), wanted.len());
    for ((code, value), (wanted_code, number)) in rows.iter().zip(wanted) {
        assert_eq!(code, wanted_code);
        let shown: f64 = plain(value).parse().unwrap();
        assert!((shown - number).abs() <= 0.05 + number.abs() * 1e-4, "{value}, {number}");
    }
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
    let (user, serving) = opened(&mut browser, 40, 60);
    let about = browser.text("#dataset");
    assert!(about.starts_with("40 issues, 60 business days"), "{about}");
    let (first, last) = (&about[about.len() - 24..about.len() - 14], &about[about.len() - 10..]);
    let (date, rows) = shown(&mut browser);
    assert_eq!(date, last);
    expect_the_same(&rows, &ranked(&user, last, "(Close - Close[-1]) / Close[-1] * 100"));
    let sorted = "document.querySelector('#valuehead').getAttribute('aria-sort')";
    assert_eq!(browser.value(sorted), "descending");
    // A formula over all days, and Enter.
    browser.value(&format!("document.querySelector('#from').value = '{first}'"));
    formula(&mut browser, "Volume");
    browser.wait_for("document.querySelector('#check').className === 'good'");
    browser.press("Enter");
    browser.wait_for(
        "/Day (..) of \\1, by Volume/.test(document.querySelector('#caption').textContent)",
    );
    browser.picture("ranking");
    let (date, rows) = shown(&mut browser);
    expect_the_same(&rows, &ranked(&user, &date, "Volume"));
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
    assert_eq!(browser.value(sorted), "ascending");
    browser.expect_fits_a_phone("ranking");
    browser.expect_quiet(&serving.address);
}

#[test]
fn hostile_formulas_are_texts_on_the_ranking_page() {
    let Some(mut browser) = browser() else { return };
    let (_user, serving) = opened(&mut browser, 3, 10);
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

#[test]
fn the_chart_of_an_issue_is_opened_and_left_by_keys() {
    let Some(mut browser) = browser() else { return };
    let (user, serving) = opened(&mut browser, 6, 120);
    let (date, rows) = shown(&mut browser);
    browser.focus("#rows tr:first-child button");
    browser.press("Enter");
    browser.wait_for("document.querySelectorAll('#chart-host canvas').length === 2");
    assert_eq!(browser.value("document.querySelector('#chart').open"), true);
    assert!(browser.text("#chart-title").starts_with(&rows[0].0));
    for place in [1, 2] {
        let canvas = format!("#chart-host .uplot:nth-of-type({place}) canvas");
        let colours = browser.colours_of_canvas(&canvas);
        assert!(colours > 5, "chart {place}: {colours} colours");
    }
    browser.picture("ranking-chart");
    // The last day is told, and the arrow keys go back day by day.
    let readout = browser.text("#chart-readout");
    let close = ranked(&user, &date, "Close").into_iter().find(|row| row.0 == rows[0].0).unwrap().1;
    let close = format!("Close {}", shown_number(&mut browser, close));
    assert!(readout.starts_with(&date) && readout.contains(&close), "{readout}, {close}");
    browser.focus("#chart-host");
    browser.press("ArrowLeft");
    assert!(browser.text("#chart-readout") < readout);
    browser.press("End");
    assert_eq!(browser.text("#chart-readout"), readout);
    // Another period, then Escape: the focus is where it was.
    browser.value(
        "(() => { const pick = document.querySelector('#chart-span'); pick.value = '3'; \
         pick.dispatchEvent(new Event('change')); })()",
    );
    browser.wait_for("/ (6|5|7)\\d days/.test(document.querySelector('#chart-about').textContent)");
    browser.size(360, 740);
    browser.picture("ranking-chart-phone");
    let sticks_out = "document.documentElement.scrollWidth > 360 || \
                      document.querySelector('#chart').getBoundingClientRect().right > 360";
    assert_eq!(browser.value(sticks_out), false);
    browser.size(1_280, 900);
    browser.press("Escape");
    assert_eq!(browser.value("document.querySelector('#chart').open"), false);
    browser.wait_for(&format!("document.activeElement.textContent === '{}'", rows[0].0));
    // By a click, and away by a click beside it.
    browser.click("#rows tr:nth-child(2) button");
    browser.wait_for("document.querySelectorAll('#chart-host canvas').length === 2");
    assert!(browser.text("#chart-title").starts_with(&rows[1].0));
    browser.click("#chart-close");
    assert_eq!(browser.value("document.querySelector('#chart').open"), false);
    browser.expect_quiet(&serving.address);
}

/// A number as the browser writes it.
fn shown_number(browser: &mut Browser, number: f64) -> String {
    let written = format!("({number}).toLocaleString('en-US', {{ maximumFractionDigits: 4 }})");
    browser.value(&written).as_str().unwrap().to_owned()
}

#[test]
fn wrong_input_is_told_at_its_place() {
    let Some(mut browser) = browser() else { return };
    let (_user, serving) = opened(&mut browser, 3, 10);
    formula(&mut browser, "Close + Turnover");
    browser.press("Enter");
    browser.wait_for("document.querySelector('#status').className === 'bad'");
    browser.wait_for("document.querySelector('#check').className === 'bad'");
    let told = browser.text("#check");
    assert!(told.contains("Close + Turnover\n        ▲"), "{told}");
    assert!(
        told.contains("Turnover") && browser.text("#status").contains("marked above"),
        "{told}"
    );
    let formula_box = "[document.querySelector('#formula').getAttribute('aria-invalid'), \
                       document.activeElement.id].join(' ')";
    assert_eq!(browser.value(formula_box), "true formula");
    // What was found before is still there.
    assert_eq!(shown(&mut browser).1.len(), 3);
    // A range without days says what to do; one that is too long is told by the service.
    formula(&mut browser, "Close");
    // The check's words move what is below them, and a click goes to a place.
    browser.wait_for("document.querySelector('#check').className === 'good'");
    let set = |browser: &mut Browser, from: &str, to: &str| {
        browser.value(&format!(
            "(() => {{ document.querySelector('#from').value = '{from}'; \
             document.querySelector('#to').value = '{to}'; }})()"
        ));
        browser.click("#run");
    };
    set(&mut browser, "1999-01-04", "1999-01-05");
    browser.wait_for("document.querySelector('#rows').textContent.includes('Choose dates')");
    set(&mut browser, "1900-01-04", "2024-01-05");
    browser.wait_for("document.querySelector('#status').className === 'bad'");
    assert!(browser.text("#status").contains("more than 30 years; ask for a shorter range"));
    // Every field has a name, and what is told is read aloud.
    let unnamed = "[...document.querySelectorAll('input, select, textarea, button')] \
                   .filter((one) => !one.labels?.length && !one.getAttribute('aria-label') \
                     && !one.textContent.trim()).map((one) => one.id)";
    assert_eq!(browser.value(unnamed), serde_json::json!([]));
    for live in ["#status", "#check", "#chart-readout"] {
        let polite = format!("document.querySelector('{live}').getAttribute('aria-live')");
        assert_eq!(browser.value(&polite), "polite", "{live}");
    }
    browser.expect_quiet(&serving.address);
}

#[test]
fn an_older_answer_never_takes_the_place_of_a_newer_one() {
    let Some(mut browser) = browser() else { return };
    let (_user, serving) = opened(&mut browser, 3, 10);
    // Answers to `Open` are held back, and come even though nobody waits for them any more.
    browser.value(
        "(() => { const real = fetch; window.came = 0; \
         window.fetch = async (url, options) => { \
           const late = options.body.includes('stockRanking') && options.body.includes('\"Open\"'); \
           const answer = await real(url, late ? { ...options, signal: undefined } : options); \
           if (late) { await new Promise((go) => { window.release = go; }); window.came += 1; } \
           return answer; }; })()",
    );
    formula(&mut browser, "Open");
    browser.press("Enter");
    browser
        .wait_for("window.release && document.querySelector('#status').textContent === 'ranking…'");
    assert_eq!(browser.value("document.querySelector('#stop').hidden"), false);
    formula(&mut browser, "High");
    browser.press("Enter");
    browser.wait_for("document.querySelector('#caption').textContent.includes('by High')");
    let newer = (shown(&mut browser), browser.text("#status"));
    browser.value("window.release()");
    browser.wait_for("window.came === 1");
    browser.value("new Promise((go) => setTimeout(go, 0))");
    assert_eq!((shown(&mut browser), browser.text("#status")), newer);
    assert!(browser.text("#caption").contains("by High"));
    // One that is stopped says so, and leaves what was there.
    browser.value("window.release = null");
    formula(&mut browser, "Open");
    browser.press("Enter");
    browser.wait_for("window.release");
    browser.press("Escape");
    browser.value("window.release()");
    browser.wait_for("document.querySelector('#stop').hidden");
    assert!(browser.text("#caption").contains("by High"));
    browser.expect_quiet(&serving.address);
}

#[test]
fn a_service_without_data_says_what_to_do_and_ranks_when_there_is_some() {
    let Some(mut browser) = browser() else { return };
    let user = UserFolder::empty();
    let serving = Serving::start(&user);
    browser.open(&serving.address);
    browser
        .wait_for("document.querySelector('#status').textContent.includes('kumiki data update')");
    user.good("data sample --daily --issues 4 --days 10 --seed 7 --prices data");
    browser.wait_for("document.querySelectorAll('#rows tr').length === 4");
}

#[test]
fn the_ranking_page_speaks_japanese_where_people_do() {
    let Some(mut browser) = browser() else { return };
    browser.speak("ja,en");
    let (_user, serving) = opened(&mut browser, 40, 60);
    assert_eq!(browser.value("document.documentElement.lang"), "ja");
    assert_eq!(browser.text("h1"), "銘柄ランキング");
    assert!(browser.texts("thead th").contains(&"終値".to_owned()));
    let (date, rows) = shown(&mut browser);
    assert_eq!(browser.text("#date"), date.replace('-', "/"));
    browser.picture("ranking-ja");
    expect_japanese(&mut browser, "ranking", &[]);
    browser.click("#rows tr:first-child button");
    browser.wait_for("document.querySelectorAll('#chart-host canvas').length === 2");
    assert!(browser.text("#chart-readout").contains("出来高"));
    browser.picture("ranking-chart-ja");
    expect_japanese(&mut browser, "chart", &[]);
    browser.press("Escape");
    browser.expect_fits_a_phone("ranking-ja");
    // The switch, by a key; it is remembered, and what was asked is still there.
    browser.focus("#language");
    browser.press("Enter");
    assert_eq!(browser.text("h1"), "Ranking");
    assert_eq!(shown(&mut browser), (date, rows.clone()));
    browser.open(&serving.address);
    browser.wait_for("document.querySelectorAll('#rows tr').length === 20");
    assert_eq!(browser.value("document.documentElement.lang"), "en");
    assert_eq!(shown(&mut browser).1, rows);
    browser.expect_quiet(&serving.address);
}

/// What the program ranks for the question of the test of names, as JSON.
fn program(user: &UserFolder, date: &str, more: &[&str]) -> Vec<Value> {
    let asked =
        format!("rank query --prices data --from {date} --to {date} --order asc --limit 20");
    let mut command = user.command(&format!("{asked} --format json --sort-by"));
    let output = command.arg("Close / Close[-200]").args(more).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The rows of the page have names, places and marks as the program's rows.
fn expect_names_and_marks(browser: &mut Browser, rows: &[Value], name: &str) {
    let found = browser.value(
        "[...document.querySelectorAll('#rows tr')].map((row) => [row.dataset.code, \
         row.querySelector('.name bdi').textContent, row.querySelector('.name small').textContent, \
         row.querySelectorAll('.split').length])",
    );
    let text = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
    let wanted: Vec<Value> = rows
        .iter()
        .map(|row| {
            let place = format!("{} {}", text(row, "market"), text(row, "sector33"));
            let marks = u8::from(row["spansSplit"] == true);
            serde_json::json!([text(row, "code"), text(row, name), place.trim(), marks])
        })
        .collect();
    let found = found.as_array().unwrap();
    assert_eq!(found.len(), wanted.len());
    for (found, mut wanted) in found.iter().zip(wanted) {
        // The data has markets and sectors in Japanese; the page knows their English names.
        if name == "nameEn" {
            let place = found[2].as_str().unwrap();
            assert!(place.len() > 5 && place.is_ascii(), "{place}");
            wanted[2] = found[2].clone();
        }
        assert_eq!(*found, wanted);
    }
}

#[test]
fn names_and_marks_of_splits_are_those_of_the_program() {
    let Some(mut browser) = browser() else { return };
    let (user, serving) = opened(&mut browser, 40, 300);
    let question = "#sortBy=Close+%2F+Close%5B-200%5D&order=asc&limit=20";
    browser.open(&format!("{}{question}", serving.address));
    browser.wait_for("document.querySelectorAll('#rows tr[data-code]').length === 20");
    let (date, _) = shown(&mut browser);
    let raw = program(&user, &date, &[]);
    assert!(raw.iter().any(|row| row["spansSplit"] == true), "{raw:?}");
    assert!(raw.iter().all(|row| row["name"] != row["nameEn"]), "{raw:?}");
    expect_names_and_marks(&mut browser, &raw, "nameEn");
    let mark = "document.querySelector('.split').title";
    let title = browser.value(mark);
    assert!(title.as_str().unwrap().contains("compared as they were"), "{title}");
    browser.picture("ranking-splits");
    browser.expect_fits_a_phone("ranking-splits");
    // Adjusted, by the box; the address keeps it.
    assert_eq!(browser.value("document.querySelector('#adjusted-box').hidden"), false);
    browser.click("#adjusted");
    browser.wait_for("location.hash.includes('adjusted=true')");
    let adjusted = program(&user, &date, &["--adjusted"]);
    assert_ne!(adjusted, raw);
    expect_names_and_marks(&mut browser, &adjusted, "nameEn");
    let (_, rows) = shown(&mut browser);
    let values = adjusted
        .iter()
        .filter_map(|row| Some((row["code"].as_str()?.to_owned(), row["sortValue"].as_f64()?)));
    let values: Vec<(String, f64)> = values.collect();
    expect_the_same(&rows[..values.len()], &values);
    let address = browser.value("location.href");
    browser.open(address.as_str().unwrap());
    browser.wait_for("document.querySelectorAll('#rows tr[data-code]').length === 20");
    assert_eq!(browser.value("document.querySelector('#adjusted').checked"), true);
    expect_names_and_marks(&mut browser, &adjusted, "nameEn");
    // In Japanese too.
    browser.click("#language");
    expect_names_and_marks(&mut browser, &adjusted, "name");
    browser.expect_quiet(&serving.address);
}

/// Makes the next answers have names that somebody could have thought out.
const OTHER_NAMES: &str = r#"(() => { const real = fetch;
    window.fetch = async (...asked) => { const answer = await (await real(...asked)).json();
      const rows = answer.data?.stockRankingRange ?? [];
      if (rows.length > 2) { rows[0].name = rows[0].nameEn = '=HYPERLINK("https://example.com")';
        rows[1].name = rows[1].nameEn = '\u202eesrever\u200b'; rows[2].name = rows[2].nameEn = '-1'; }
      return new Response(JSON.stringify(answer)); }; })()"#;

#[test]
fn names_are_no_formulas_and_hide_nothing() {
    let Some(mut browser) = browser() else { return };
    let (_user, serving) = opened(&mut browser, 6, 10);
    browser.value(OTHER_NAMES);
    formula(&mut browser, "Close[-1] - Close");
    browser.press("Enter");
    browser.wait_for("document.querySelector('#rows bdi').textContent.startsWith('=HYPER')");
    let names = browser.texts("#rows bdi");
    assert_eq!(names[1], r"\u202eesrever\u200b");
    // What is downloaded, as bytes.
    let bytes = browser.value(
        "(async () => { const kept = []; const real = URL.createObjectURL; \
         URL.createObjectURL = (blob) => { kept.push(blob); return real.call(URL, blob); }; \
         HTMLAnchorElement.prototype.click = () => {}; \
         document.querySelector('#csv').click(); \
         return [...new Uint8Array(await kept[0].arrayBuffer())]; })()",
    );
    let bytes = bytes.as_array().unwrap().iter().map(|byte| byte.as_u64().unwrap() as u8);
    let text = String::from_utf8(bytes.collect()).unwrap();
    let text = text.strip_prefix('\u{feff}').unwrap_or_else(|| panic!("no mark: {text}"));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "date,code,close,volume,sortValue,rank,name,nameEn,market,sector33,spansSplit"
    );
    assert!(lines[1].contains(r#","'=HYPERLINK(""https://example.com"")","#), "{}", lines[1]);
    assert!(lines[2].contains(",\u{202e}esrever\u{200b},"), "{}", lines[2]);
    assert!(lines[3].contains(",-1,-1,"), "{}", lines[3]);
    let values: Vec<f64> =
        lines[1..].iter().map(|line| line.split(',').nth(4).unwrap().parse().unwrap()).collect();
    assert!(values.iter().any(|value| *value < 0.0), "{values:?}");
    browser.expect_quiet(&serving.address);
}

#[test]
fn errors_are_told_in_japanese() {
    let Some(mut browser) = browser() else { return };
    browser.speak("ja");
    let (_user, serving) = opened(&mut browser, 3, 10);
    let nested = "(".repeat(70);
    let long = "Close + ".repeat(300) + "Close";
    let many = (1..40).map(|lag| format!("Close[-{lag}]")).collect::<Vec<_>>().join("+");
    for wrong in [
        "Close +",
        "Close[1]",
        "Close[-0]",
        "Close[-99999]",
        "Close[-1.5]",
        "close",
        "Turnover",
        "PrevClose",
        "MAX(1)",
        "(Close",
        "Close[-1",
        "Close Close",
        ")",
        "Close[",
        "1e999",
        &nested,
        &long,
        &many,
    ] {
        let told = browser.value(&format!(
            "(async () => {{ document.querySelector('#formula').value = {}; await check(); \
             const told = document.querySelector('#check').cloneNode(true); \
             told.querySelector('pre')?.remove(); \
             return [document.querySelector('#check').className, told.textContent]; }})()",
            serde_json::json!(wrong)
        ));
        let text = told[1].as_str().unwrap();
        assert_eq!(told[0], "bad", "{wrong}");
        assert_eq!(latin_words(text, &[]), [""; 0], "{wrong}: {text}");
    }
    for (from, to, limit) in [
        ("1900-01-04", "2024-01-05", 20),
        ("2024-01-04", "2024-01-05", 0),
        ("2024-01-04", "2024-01-05", 501),
        ("", "2024-01-05", 20),
        ("2024-01-04", "tomorrow", 20),
    ] {
        // The form would not send some of these.
        browser.value(&format!(
            "for (const [id, value] of [['from', '{from}'], ['to', '{to}'], ['limit', '{limit}']]) \
             {{ const box = document.getElementById(id); box.type = 'text'; box.value = value; }}"
        ));
        browser.value("document.querySelector('#formula').value = 'Close'");
        browser.value("run()");
        let class = browser.value("document.querySelector('#status').className");
        let text = browser.text("#status");
        assert_eq!(class, "bad", "{text}");
        assert_eq!(latin_words(&text, &["tomorrow"]), [""; 0], "{text}");
        assert!(text.chars().any(|letter| letter > '\u{3000}'), "{text}");
    }
    browser.expect_quiet(&serving.address);
}
