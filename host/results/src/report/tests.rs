//! Tests of the page as a whole.

use domain::fault::{Fault, FaultKind};
use domain::strategy::{LogLevel, LogLine, NarrativeRecord, Signal, SignalKind};
use domain::{
    InstrumentIx, Money, OrderSide, OrderStatus, OrderType, Quantity, TimeInForce, TsNanos,
};
use serde_json::Value;

use super::{
    COMPARE_PAGE, Comparison, LIVE_PAGE, POINTS_MAX, ROWS_MAX, RUN_PAGE, TEXT_BYTES_MAX, TEXTS,
    part, sample,
};
use crate::output::{Manifest, REPORT_FILE};
use crate::summary::DEFINITIONS;
use crate::totals::{RunResult, RunStatus};
use exchange::Preset;

fn page(result: &RunResult) -> String {
    page_with(&sample::manifest(result), result)
}

fn page_with(manifest: &Manifest, result: &RunResult) -> String {
    let folder = sample::folder(manifest, result);
    std::fs::read_to_string(folder.path().join("run").join(REPORT_FILE)).unwrap()
}

/// The text of the page's data element, as a browser cuts it out.
fn data_text(page: &str) -> &str {
    let start = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let length = page[start..].find("</script").unwrap();
    &page[start..start + length]
}

fn data_of(page: &str) -> Value {
    serde_json::from_str(data_text(page)).unwrap()
}

/// Text that would break out of a page that took it for markup.
const HOSTILE: &str = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> & \u{2028} \
                       @@data@@";

/// A run whose strategy says [`HOSTILE`] wherever it can.
fn hostile_run() -> (Manifest, RunResult) {
    let mut result = sample::run(1, 20);
    let hostile = HOSTILE;
    let timestamp = TsNanos::from_nanos(1_736_121_600_000_000_000);
    result.orders.push(sample::order("</script><b>"));
    result.signals.push((
        timestamp,
        Signal {
            instrument: InstrumentIx(0),
            kind: SignalKind::Annotate,
            side: None,
            price: None,
            tag: Some(hostile.to_owned()),
            note: Some(hostile.to_owned()),
        },
    ));
    result.narrative.push((
        timestamp,
        NarrativeRecord {
            client_order_id: Some(hostile.into()),
            title: hostile.to_owned(),
            body: hostile.to_owned(),
        },
    ));
    result.log.push(LogLine {
        ts_event: Some(timestamp),
        level: LogLevel::Info,
        message: hostile.to_owned(),
    });
    let mut manifest = sample::manifest(&result);
    manifest.component.name = hostile.to_owned();
    manifest.parameters = serde_json::json!({ hostile: hostile });
    (manifest, result)
}

#[test]
fn hostile_text_stays_text() {
    let (manifest, result) = hostile_run();
    let hostile = HOSTILE;
    let words = |column: &Value| column["words"].as_array().unwrap().clone();
    let page = page_with(&manifest, &result);

    let text = data_text(&page);
    assert!(!text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']));
    let data: Value = serde_json::from_str(text).unwrap();
    assert_eq!(data["manifest"]["component"]["name"], hostile);
    assert_eq!(data["manifest"]["parameters"][hostile], hostile);
    assert!(words(&data["signals"]["note"]).contains(&hostile.into()));
    assert!(words(&data["narrative"]["body"]).contains(&hostile.into()));
    assert!(words(&data["log"]["message"]).contains(&hostile.into()));
    let ids = data["orders"]["client_order_id"].as_array().unwrap();
    assert!(ids.contains(&"</script><b>".into()));
    // Around the data the page is the same as that of any other run.
    let benign = self::page(&sample::empty());
    assert_eq!(page.replace(text, ""), benign.replace(data_text(&benign), ""));
}

#[test]
fn the_same_run_gives_the_same_page() {
    assert_eq!(page(&sample::run(3, 5)), page(&sample::run(3, 5)));
}

#[test]
fn a_page_can_be_made_again() {
    let result = sample::run(2, 20);
    let folder = sample::folder(&sample::manifest(&result), &result);
    let run = folder.path().join("run");
    let again = folder.path().join("again.html");
    super::write(&run, &again).unwrap();
    assert!(std::fs::read(run.join(REPORT_FILE)).unwrap() == std::fs::read(again).unwrap());
}

#[test]
fn a_folder_without_a_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = super::write(folder.path(), &folder.path().join("x.html")).unwrap_err().to_string();
    assert!(error.contains("holds no run"), "{error}");
    let result = sample::run(1, 20);
    let parent = sample::folder(&sample::manifest(&result), &result);
    let run = parent.path().join("run");
    std::fs::write(run.join("days.csv"), "date,ts_event_ns,cash,equity\n2025-01-06,x,1,2\n")
        .unwrap();
    std::fs::write(run.join("fills.csv"), "other\n").unwrap();
    let error = super::write(&run, &run.join("x.html")).unwrap_err().to_string();
    assert!(error.contains("fills.csv, line 1: expected the columns ts_event_ns,"), "{error}");
}

#[test]
fn every_placeholder_has_its_part() {
    for template in [RUN_PAGE, COMPARE_PAGE, LIVE_PAGE] {
        for (index, name) in template.split("@@").enumerate() {
            assert!(index % 2 == 0 || name == "data" || !part(name).is_empty(), "{name}");
        }
        assert!(template.split("@@").count() % 2 == 1);
    }
    assert!(!page(&sample::empty()).contains("@@"));
}

const SCRIPTS: [&str; 12] = [
    "language.js",
    "format.js",
    "table.js",
    "axis.js",
    "charts.js",
    "markers.js",
    "run_charts.js",
    "statistics.js",
    "tables.js",
    "report.js",
    "compare.js",
    "live_compare.js",
];

#[test]
fn the_page_asks_the_network_for_nothing() {
    let page = page(&sample::empty());
    assert!(page.contains("content=\"default-src 'none'; script-src 'unsafe-inline';"));
    for loading in ["<iframe", " src=", "@import", "url(", "fetch(", "XMLHttpRequest", "import("] {
        assert!(!page.contains(loading), "{loading}");
    }
    assert_eq!(page.matches("<link ").count(), 1);
    assert!(page.contains("<link rel=\"icon\" href=\"data:,\">"));
    for name in SCRIPTS {
        assert!(!part(name).is_empty(), "{name}");
        for markup in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!part(name).contains(markup), "{name}: {markup}");
        }
    }
    for script in SCRIPTS.into_iter().chain(["uplot.js"]) {
        assert!(!part(script).contains("</script") && !part(script).contains("<!--"));
    }
}

#[test]
fn a_run_without_trades_has_a_page() {
    let data = data_of(&page(&sample::empty()));
    assert_eq!(data["curve"]["minutes"], 0);
    assert_eq!(data["fills"]["total"], 0);
    assert_eq!(data["summary"]["win_rate"], Value::Null);
    assert_eq!(data["manifest"]["fault"], Value::Null);
}

#[test]
fn a_failed_run_shows_the_fault_with_its_backtrace() {
    let mut result = sample::empty();
    result.totals.status = RunStatus::Failed(Box::new(Fault {
        component: "sma-cross".to_owned(),
        sha256: "ab".repeat(32),
        export: "on-trades",
        ts_event: None,
        kind: FaultKind::Panic("index <out> of bounds".to_owned()),
        backtrace: vec!["sma_cross::Strategy::step (lib.rs:42)".to_owned()],
    }));
    let data = data_of(&page(&result));
    assert_eq!(data["summary"]["status"], "failed");
    assert_eq!(data["manifest"]["partial"], true);
    let fault = data["manifest"]["fault"].as_str().unwrap();
    assert!(fault.contains("panicked: index <out> of bounds"), "{fault}");
    assert!(fault.contains("at sma_cross::Strategy::step (lib.rs:42)"), "{fault}");
}

#[test]
fn long_runs_are_thinned_out_and_say_so() {
    let mut result = sample::run(70, 1_000);
    assert!(result.equity.len() > POINTS_MAX);
    let data = data_of(&page(&result));
    assert_eq!(data["curve"]["step"], 2);
    assert_eq!(data["curve"]["minutes"], result.equity.len());
    assert!(data["curve"]["end"].as_array().unwrap().len() <= POINTS_MAX);

    let fill = result.fills[0].clone();
    result.fills = vec![fill; ROWS_MAX + 1];
    result.orders = vec![sample::order("O-1"); ROWS_MAX + 2];
    let data = data_of(&page(&result));
    assert_eq!(data["fills"]["total"], ROWS_MAX + 1);
    assert_eq!(data["fills"]["ts_event_ns"].as_array().unwrap().len(), ROWS_MAX);
    assert_eq!(data["fills"]["price"]["values"].as_array().unwrap().len(), ROWS_MAX);
    assert_eq!(data["orders"]["total"], ROWS_MAX + 2);
    assert_eq!(data["orders"]["client_order_id"].as_array().unwrap().len(), ROWS_MAX);
}

#[test]
fn free_text_is_limited() {
    let mut result = sample::empty();
    let line = LogLine { ts_event: None, level: LogLevel::Info, message: "x".repeat(1 << 20) };
    result.log = vec![line; 10];
    let data = data_of(&page(&result));
    assert_eq!(data["log"]["total"], 10);
    let held = data["log"]["ts_event_ns"].as_array().unwrap().len();
    assert_eq!(held, (TEXT_BYTES_MAX >> 20) - 1, "the level has some bytes of text too");
    assert_eq!(data["log"]["count"], held);
}

#[test]
fn money_stays_exact() {
    let mut result = sample::run(1, 5);
    result.totals.cash_start = Money::from_units(i64::MAX - 1);
    result.totals.market_volume = u128::from(u64::MAX) * 2;
    result.totals.equity_end = Money::from_units(i64::MAX);
    result.orders[0].filled = Quantity::new(u64::MAX);
    let data = data_of(&page(&result));
    assert_eq!(data["summary"]["equity_end"], "922337203685477.5807");
    assert_eq!(data["summary"]["market_volume"], "36893488147419103230");
    assert_eq!(data["orders"]["filled_quantity"][0], "18446744073709551615");
}

#[test]
fn markers_know_their_instrument() {
    let result = sample::run(2, 9);
    let data = data_of(&page(&result));
    let words = &data["fills"]["instrument_id"];
    assert_eq!(words["words"], serde_json::json!(["7203.TSE", "6758.TSE"]));
    assert_eq!(data["instruments"][1]["id"], "6758.TSE");
    let points = data["curve"]["end"].as_array().unwrap().len();
    assert_eq!(data["instruments"][1]["quantity"].as_array().unwrap().len(), points);
}

#[test]
fn runs_are_put_side_by_side() {
    let (one, other) = (sample::run(2, 9), sample::run(3, 30));
    let mut manifest = sample::manifest(&other);
    manifest.parameters["fast"] = 7.into();
    manifest.parameters_effective.insert("fast".to_owned(), 7.into());
    manifest.warning = Some(HOSTILE.to_owned());
    let folders =
        [sample::folder(&sample::manifest(&one), &one), sample::folder(&manifest, &other)];
    let paths = folders.each_ref().map(|folder| folder.path().join("run"));
    let comparison = Comparison::read(&[&paths[0], &paths[1]]).unwrap();
    assert_eq!(comparison.differences.len(), 1);
    assert_eq!(comparison.differences[0].name, "parameters.fast");
    let days = comparison.statistics.iter().find(|line| line.name == "days").unwrap();
    assert_eq!(days.values, [2, 3]);
    let page = folders[0].path().join("compare.html");
    comparison.write_page(&page).unwrap();
    comparison.write_page(&page).unwrap();
    let other = folders[0].path().join("mine.html");
    std::fs::write(&other, "<!doctype html>\nmine").unwrap();
    let error = comparison.write_page(&other).unwrap_err().to_string();
    assert!(error.contains("mine.html exists and is not a page of this command"), "{error}");
    assert!(comparison.write_page(folders[0].path()).is_err(), "a folder");
    let page = std::fs::read_to_string(page).unwrap();
    let data = data_of(&page);
    assert_eq!(data["comparison"]["runs"][1]["warning"], HOSTILE);
    assert_eq!(data["curves"][1]["minutes"], 3 * 330);
    assert!(!data_text(&page).contains(['<', '>', '&']));
}

/// P120: the page of a live run keeps hostile texts as texts, replaces itself, and nothing else.
#[test]
fn p120_a_live_run_has_a_page_beside_simulated_ones() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("compare.html");
    let data = serde_json::json!({ "component": HOSTILE });
    super::write_live_page(&page, &data).unwrap();
    super::write_live_page(&page, &data).unwrap();
    let text = std::fs::read_to_string(&page).unwrap();
    assert_eq!(data_of(&text), data);
    assert!(!data_text(&text).contains(['<', '>', '&']));
    assert!(text.contains("<title data-text=\"titleLive\">Kumiki live comparison</title>"));
    let (one, run) = (sample::run(1, 20), folder.path().join("both.html"));
    let other = sample::folder(&sample::manifest(&one), &one);
    let other = other.path().join("run");
    Comparison::read(&[&other, &other]).unwrap().write_page(&run).unwrap();
    let error = super::write_live_page(&run, &data).unwrap_err().to_string();
    assert!(error.contains("both.html exists and is not a page of this command"), "{error}");
}

#[test]
fn the_title_says_whether_a_run_was_live_paper_or_replay() {
    let texts: Value = serde_json::from_str(TEXTS).unwrap();
    for kind in ["replay", "paper", "live"] {
        let text = texts[format!("runKind.{kind}")]["en"].as_str().unwrap();
        assert!(text.contains(kind), "{text}");
    }
    assert!(part("report.js").contains(r#"known("runKind", manifest.run_kind ?? "replay")"#));
    let result = sample::run(1, 20);
    let manifest = Manifest { run_kind: Some("paper".to_owned()), ..sample::manifest(&result) };
    assert_eq!(data_of(&page_with(&manifest, &result))["manifest"]["run_kind"], "paper");
    assert_eq!(data_of(&page(&result))["manifest"]["run_kind"], Value::Null);
}

#[test]
fn the_table_has_every_word_of_the_data() {
    let texts: Value = serde_json::from_str(TEXTS).unwrap();
    assert!(!TEXTS.contains('<'), "a table cannot end its element");
    for one in DEFINITIONS {
        assert_eq!(texts[format!("statistic.{}", one.name)]["en"], one.title);
        assert_eq!(texts[format!("definition.{}", one.name)]["en"], one.text);
        assert!(texts[format!("group.{}", one.group)].is_object(), "{}", one.group);
    }
    // A rule is shown in the page's language where it is the one that was translated.
    for (name, text) in exchange::RULES {
        assert_eq!(texts[format!("rule.{name}")]["en"], text, "translate the rule {name} anew");
    }
    let known = |family: &str, word: &str| {
        assert!(texts[format!("{family}.{word}")].is_object(), "{family}.{word}");
    };
    OrderSide::ALL.iter().for_each(|one| known("side", one.as_str()));
    OrderType::ALL.iter().for_each(|one| known("type", one.as_str()));
    TimeInForce::ALL.iter().for_each(|one| known("life", one.as_str()));
    OrderStatus::ALL.iter().for_each(|one| known("state", one.as_str()));
    for kind in [SignalKind::EntryLong, SignalKind::EntryShort, SignalKind::Exit] {
        known("signal", kind.as_str());
    }
}

/// Writes pages to look at into the folder that `KUMIKI_REPORT_SAMPLES` names.
#[test]
fn pages_to_look_at() {
    let Some(folder) = std::env::var_os("KUMIKI_REPORT_SAMPLES").map(std::path::PathBuf::from)
    else {
        println!("skipped: KUMIKI_REPORT_SAMPLES names no folder to write pages into");
        return;
    };
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    let month = sample::run(20, 9);
    write("month.html", page(&month));
    let mut manifest = sample::manifest(&month);
    manifest.execution_model = Preset::Optimistic.model();
    manifest.warning = manifest.execution_model.warning();
    write("optimistic.html", page_with(&manifest, &month));
    write("busy.html", page(&sample::run(20, 1)));
    write("year.html", page(&sample::run(245, 40)));
    write("empty.html", page(&sample::empty()));
    let mut failed = sample::run(2, 15);
    failed.totals.status = RunStatus::Failed(Box::new(Fault {
        component: "sma-cross".to_owned(),
        sha256: "ab".repeat(32),
        export: "on-trades",
        ts_event: failed.totals.span.map(|span| span.1),
        kind: FaultKind::Panic("attempt to divide by zero".to_owned()),
        backtrace: vec![
            "core::panicking::panic_const::panic_const_div_by_zero".to_owned(),
            "sma_cross::Average::value (src/lib.rs:57:9)".to_owned(),
            "sma_cross::Strategy::on_trades (src/lib.rs:112:30)".to_owned(),
        ],
    }));
    write("failed.html", page(&failed));
    let (manifest, hostile) = hostile_run();
    write("hostile.html", page_with(&manifest, &hostile));
    let mut partial = sample::run(1, 15);
    partial.totals.status = RunStatus::Interrupted;
    write("interrupted.html", page(&partial));
    let runs = [sample::run(60, 9), sample::run(60, 40), sample::run(40, 200)];
    let folders = runs.each_ref().map(|run| {
        let mut manifest = sample::manifest(run);
        manifest.parameters_effective.insert("fast".to_owned(), run.totals.fill_count.into());
        manifest.warning = Preset::Optimistic.model().warning();
        sample::folder(&manifest, run)
    });
    let paths = folders.each_ref().map(|folder| folder.path().join("run"));
    let paths: Vec<&std::path::Path> = paths.iter().map(AsRef::as_ref).collect();
    let comparison = Comparison::read(&paths).unwrap();
    comparison.write_page(&folder.join("compare.html")).unwrap();
}
