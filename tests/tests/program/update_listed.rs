//! The lists of issues: `kumiki data update` keeps the vendor's by date and publishes them, and rankings show
//! the names, markets and sectors that were known on a day.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::JstDate;
use domain::clock::sleep;
use pricestore::DataDir;
use pricestore::limits::LISTED_TEXT_BYTES_MAX;
use pricestore::listed::{ListedHistory, read_file};
use serde_json::{Value, json};
use tests::serving::Serving;

use crate::update_fixture::{Server, checked_reports, command, query, sql, texts, vendor_row};

/// The vendor's lists, by day like 20251215.
type Lists = BTreeMap<String, Vec<Value>>;

/// An issue of a list.
fn issue(code: &str, name: &str, name_en: &str, market: &str) -> Value {
    json!({ "Code": code, "CoName": name, "CoNameEn": name_en, "S17": "6", "S17Nm": "自動車・輸送機",
            "S33": "3700", "S33Nm": "輸送用機器", "ScaleCat": "-", "Mkt": "0111", "MktNm": market,
            "Mrgn": "1", "MrgnNm": "信用" })
}

/// A data directory, and a vendor who has three issues on every day.
struct Fixture {
    folder: tempfile::TempDir,
    lists: Arc<Mutex<Lists>>,
    server: Server,
}

impl Fixture {
    fn new(lists: Lists) -> Self {
        let lists = Arc::new(Mutex::new(lists));
        let asked = Arc::clone(&lists);
        let server = Server::start(move |path: &str| Some(answer(&asked.lock().unwrap(), path)));
        Self { folder: tempfile::tempdir().unwrap(), lists, server }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn set(&self, day: &str, issues: Vec<Value>) {
        self.lists.lock().unwrap().insert(day.to_owned(), issues);
    }

    /// The exit code and the report of a run.
    fn update(&self, arguments: &str) -> (i32, Value) {
        let vendor = format!("http://{}/v2", self.server.address);
        let public = format!("http://{}/q/", self.server.address);
        let fixed = ["data", "update", "--format", "json", "--vendor-rate", "60000"];
        let mut command = command(self.path(), &fixed);
        command.args(["--vendor-url", &vendor, "--public-url", &public]);
        let output = command.args(arguments.split(' ')).output().unwrap();
        let (report, errors) = texts(&output);
        checked_reports(self.path());
        let code = output.status.code().unwrap();
        if report.is_empty() {
            return (code, Value::String(errors));
        }
        (code, serde_json::from_str(&report).unwrap_or_else(|error| panic!("{error}: {errors}")))
    }

    fn published(&self) -> Option<ListedHistory> {
        read_file(&DataDir::new(self.path()).listed_info()).unwrap()
    }

    fn rank(&self, arguments: &[&str]) -> String {
        let all = [&["rank", "query", "--sort-by", "Close", "--order", "asc"], arguments].concat();
        let output = command(self.path(), &all).output().unwrap();
        let (rows, errors) = texts(&output);
        assert!(output.status.success(), "{errors}");
        rows
    }

    /// Code and name of each issue of a day, cheapest first.
    fn names(&self, day: &str) -> Vec<String> {
        let rows = self.rank(&["--from", day, "--to", day, "--format", "jsonl"]);
        let line = |line: &str| {
            let row: Value = serde_json::from_str(line).unwrap();
            let [code, name, market] = ["code", "name", "market"]
                .map(|name| row[name].as_str().unwrap_or("null").to_owned());
            format!("{code} {name} {market}")
        };
        rows.lines().map(line).collect()
    }
}

fn answer(lists: &Lists, path: &str) -> (u16, String) {
    let Some(date) = query(path, "date").filter(|_| path.starts_with("/v2")) else {
        return (if path.starts_with("/v2") { 403 } else { 200 }, "No data".to_owned());
    };
    let dashed = format!("{}-{}-{}", &date[..4], &date[4..6], &date[6..]);
    if path.starts_with("/v2/equities/master") {
        let Some(issues) = lists.get(date) else { return (210, String::new()) };
        let mut issues = issues.clone();
        issues.iter_mut().for_each(|issue| issue["Date"] = dashed.as_str().into());
        return (200, json!({ "data": issues }).to_string());
    }
    let rows = [("72030", 100), ("99840", 200), ("130A0", 300)]
        .map(|(code, close)| vendor_row(&dashed, code, close));
    (200, json!({ "data": rows }).to_string())
}

/// Lists of three days: a new name and market, an issue that goes and one that comes.
fn three_days() -> Lists {
    let softbank = || issue("99840", "ソフトバンクグループ", "SoftBank Group Corp.", "プライム");
    let toyota = |name: &str, market: &str| issue("72030", name, "TOYOTA MOTOR", market);
    let veritas = || issue("130A0", "ベリタス・イン・シリコ", "", "グロース");
    [
        ("20251215", vec![toyota("トヨタ自動車", "プライム"), softbank()]),
        ("20251216", vec![toyota("新トヨタ", "スタンダード"), softbank()]),
        ("20251217", vec![toyota("新トヨタ", "スタンダード"), veritas()]),
    ]
    .map(|(day, issues)| (day.to_owned(), issues))
    .into()
}

/// Columns of a terminal that a text takes.
fn width(text: &str) -> usize {
    text.chars().map(|letter| if letter > '\u{2e7f}' { 2 } else { 1 }).sum()
}

#[test]
fn a_day_has_the_names_of_its_list() {
    let fixture = Fixture::new(three_days());
    let (code, report) = fixture.update("--to 2025-12-17 --days 3");
    assert_eq!(
        (code, &report["listed"]),
        (0, &json!({ "lists": 3, "published": true })),
        "{report}"
    );
    assert_eq!(
        fixture.names("2025-12-15"),
        ["7203 トヨタ自動車 プライム", "9984 ソフトバンクグループ プライム", "130A null null"]
    );
    assert_eq!(fixture.names("2025-12-16")[0], "7203 新トヨタ スタンダード");
    assert_eq!(
        fixture.names("2025-12-17"),
        ["7203 新トヨタ スタンダード", "9984 null null", "130A ベリタス・イン・シリコ グロース"]
    );
    // A day without a list of its own has the one before; nothing new is published then.
    let (code, report) = fixture.update("--to 2025-12-18");
    assert_eq!((code, &report["listed"]), (0, &json!({ "lists": 0, "published": false })));
    assert_eq!(fixture.names("2025-12-18"), fixture.names("2025-12-17"));

    // Every form.
    let day = ["--from", "2025-12-15", "--to", "2025-12-15"];
    let csv = fixture.rank(&[&day[..], &["--format", "csv"]].concat());
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(
        lines[0],
        "date,code,close,sortValue,volume,rank,spansSplit,name,nameEn,market,sector33"
    );
    assert!(lines[1].ends_with(",1,false,トヨタ自動車,TOYOTA MOTOR,プライム,輸送用機器"), "{csv}");
    assert!(lines[3].ends_with(",3,false,,,,"), "{csv}");
    let table = fixture.rank(&day);
    let lines: Vec<&str> = table.lines().collect();
    let heads: Vec<&str> = lines[1].split_whitespace().collect();
    let expected = ["date", "#", "code", "name", "value", "close", "volume", "market", "sector"];
    assert_eq!(heads, expected, "{table}");
    let market = lines[1].find("market").unwrap();
    for line in &lines[3..5] {
        let found = line.find("プライム").unwrap();
        assert_eq!(width(&line[..found]), market, "a wide letter counts two:\n{table}");
    }

    // The database says the same, and the job's own one, made anew from it, has all of it.
    let before = fixture.published().unwrap();
    assert_eq!(before.lists().len(), 3);
    assert_eq!(before.spans().count(), 4);
    fs::remove_dir_all(fixture.path().join("work")).unwrap();
    fixture.set("20251219", three_days()["20251217"].clone());
    assert_eq!(fixture.update("--to 2025-12-19").0, 0);
    let after = fixture.published().unwrap();
    assert_eq!(after.lists().len(), 4);
    assert!(after.contains(&before) && !before.contains(&after));
}

#[test]
fn a_running_service_shows_new_lists() {
    let fixture = Fixture::new(three_days());
    assert_eq!(fixture.update("--to 2025-12-15 --days 1").0, 0);
    let serving = Serving::start(fixture.path(), &[]);
    let ask = |day: &str| -> Vec<Value> {
        let answer = serving.ask(&format!(
            "{{ stockRankingRange(fromDate: \"{day}\", toDate: \"{day}\", sortBy: \"Close\", order: \"asc\") \
             {{ code name nameEn market sector33 }} }}"
        ));
        answer["data"]["stockRankingRange"].as_array().unwrap().clone()
    };
    let toyota = |name: &str, market: &str| {
        json!({ "code": "7203", "name": name, "nameEn": "TOYOTA MOTOR", "market": market,
                "sector33": "輸送用機器" })
    };
    assert_eq!(ask("2025-12-15")[0], toyota("トヨタ自動車", "プライム"));
    assert_eq!(fixture.update("--to 2025-12-16").0, 0);
    let new = toyota("新トヨタ", "スタンダード");
    let wait_for = |what: &Value| {
        let look = || {
            sleep(Duration::from_millis(50));
            ask("2025-12-16").first() == Some(what)
        };
        assert!((0..1_200).any(|_| look()), "{what} never comes");
    };
    wait_for(&new);
    assert_eq!(ask("2025-12-15")[0], toyota("トヨタ自動車", "プライム"), "the past stays");
    // The file can be fetched, and is what a reader on this machine reads.
    let reply = tests::http::request(serving.address, "GET /jp/listed_info.db", &[], &[]);
    let file = fs::read(DataDir::new(fixture.path()).listed_info()).unwrap();
    assert!(reply.status == 200 && reply.body == file);
    // A folder without the file works as before.
    fs::remove_file(DataDir::new(fixture.path()).listed_info()).unwrap();
    let null = json!({ "code": "7203", "name": null, "nameEn": null, "market": null,
                       "sector33": null });
    wait_for(&null);
    let table = fixture.rank(&["--from", "2025-12-15", "--to", "2025-12-15"]);
    assert!(!table.contains("name") && !table.contains("market"), "{table}");
}

#[test]
fn a_hostile_name_costs_itself_only() {
    let long = "x".repeat(LISTED_TEXT_BYTES_MAX + 1);
    let fixture = Fixture::new(
        [(
            "20251215".to_owned(),
            vec![
                issue("72030", "a\u{1b}[2Jb", "Good, \"quoted\"\\", "プライム"),
                issue("99840", &long, "", "a\nb"),
                issue("130A0", "", "English only", "グロース"),
            ],
        )]
        .into(),
    );
    let (code, report) = fixture.update("--to 2025-12-15 --days 1");
    assert_eq!((code, &report["listed"]["published"]), (0, &json!(true)), "{report}");
    let notes = report["notes"].to_string();
    let told = "2 issues have a text that is left out; the first is the name of 72030: it has control \
                characters";
    assert!(notes.contains(told), "{notes}");
    assert_eq!(
        fixture.names("2025-12-15"),
        ["7203 null プライム", "9984 null null", "130A null グロース"]
    );
    let table = fixture.rank(&["--from", "2025-12-15"]);
    assert!(!table.contains('\u{1b}') && table.contains("English only"), "{table}");
    let csv = fixture.rank(&["--from", "2025-12-15", "--format", "csv"]);
    assert!(csv.contains(",\"Good, \"\"quoted\"\"\\\","), "{csv}");
}

#[test]
fn a_sample_has_names_splits_and_issues_that_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["data", "sample", "--daily", "--issues", "60", "--days", "120"];
    let output = command(folder.path(), &arguments).arg("--prices").arg(folder.path()).output();
    assert!(output.unwrap().status.success());
    let lists = read_file(&DataDir::new(folder.path()).listed_info()).unwrap().unwrap();
    let days: Vec<JstDate> = lists.lists().keys().copied().collect();
    let is_listed = |code: &str, day: usize| lists.at(code, days[day]).is_some();
    let codes: Vec<&str> = lists.issues().map(|(code, _)| code).collect();
    assert_eq!((days.len(), codes.len()), (120, 60));
    assert!(is_listed(codes[1], 0) && !is_listed(codes[1], 119), "delisted");
    assert!(!is_listed(codes[2], 0) && is_listed(codes[2], 119), "listed");
    let split = format!(
        "SELECT adjustment_factor, close / before BETWEEN 0.3 AND 0.7 FROM (SELECT *, lag(close) OVER \
         (ORDER BY date) AS before FROM daily WHERE code = '{}') WHERE adjustment_factor <> 1",
        codes[3]
    );
    assert_eq!(sql(folder.path(), &split).lines().last(), Some("0.5,true"));
    let rows =
        command(folder.path(), &["rank", "query", "--format", "jsonl", "--limit", "60"]).output();
    for line in texts(&rows.unwrap()).0.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        assert!(row["name"].is_string() && row["sector33"].is_string(), "{line}");
    }
}
