//! The update job as users meet it: the `kumiki` program against a server on this machine, how it ends, what it says,
//! and what it leaves for rankings, SQL, the service and the next run.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use domain::clock::sleep;
use pricestore::DataDir;
use serde_json::{Value, json};
use tests::http;
use tests::serving::Serving;

use crate::update_fixture::{
    Fixture, Market, PUBLIC_KEY, Server, VENDOR_KEY, checked_reports, command, daily_files,
    no_key_in, number, query, sql, text, texts, vendor_row,
};

/// Three days of two issues, two without a whole answer, and a public source for the rest.
fn market(path: &str) -> Option<(u16, String)> {
    let day = |date: &str, close| {
        let rows = [vendor_row(date, "72030", close), vendor_row(date, "130A0", 500 - close)];
        Some((200, json!({ "data": rows }).to_string()))
    };
    if path.contains("/equities/master") {
        return Some((210, String::new()));
    }
    match query(path, "date") {
        Some("20251222") => day("2025-12-22", 100),
        Some("20251223") => day("2025-12-23", 101),
        Some("20251224") => day("2025-12-24", 103),
        Some("20251226") => {
            let message = format!("not yours, {VENDOR_KEY}");
            Some((400, json!({ "message": message }).to_string()))
        }
        Some(_) => Some((210, String::new())),
        None if path.starts_with("/v2") => Some((200, json!({ "data": [] }).to_string())),
        None if query(path, "s") == Some("7203.jp") && query(path, "d1") == Some("20251226") => {
            let csv = "Date,Open,High,Low,Close,Volume\r\n2025-12-26,104,106,103,105,7777\r\n";
            Some((200, csv.to_owned()))
        }
        None => Some((200, "No data".to_owned())),
    }
}

/// `kumiki data update` over the week of 2025-12-22 against the server.
fn update(folder: &std::path::Path, server: &Server, more: &[&str]) -> Command {
    let (vendor, public) =
        (format!("http://{}/v2", server.address), format!("http://{}/q/", server.address));
    let mut arguments = vec!["data", "update", "--to", "2025-12-26", "--days", "5"];
    arguments.extend(["--vendor-url", &vendor, "--vendor-rate", "60000"]);
    arguments.extend(["--public-url", &public, "--public-rate", "60000"]);
    arguments.extend(more);
    command(folder, &arguments)
}

/// The days that were asked for as a whole.
fn days_asked(server: &Server) -> Vec<String> {
    let asked = server.take_asked().into_iter().filter(|path| path.contains("bars"));
    asked.filter_map(|path| Some(query(&path, "date")?.to_owned())).collect()
}

#[test]
fn a_week_is_fetched_stored_and_published_and_the_next_run_has_little_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(market);
    let output = update(folder.path(), &server, &["--format", "json"]).output().unwrap();
    let (report, errors) = texts(&output);
    // Of the last day one of two rows could be had.
    assert_eq!(output.status.code(), Some(3), "{report}\n{errors}");
    no_key_in(folder.path(), &output);
    for words in
        ["fetching days", "fetching issue by issue", "publishing", "writing a file of each"]
    {
        assert!(errors.contains(words), "{errors}");
    }
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(
        (&report["ending"], &report["published"]["days"]),
        (&json!("incomplete"), &json!(3))
    );
    let days = report["days"].as_array().unwrap();
    let outcomes: Vec<String> = days.iter().map(|day| text(&day["outcome"])).collect();
    // An empty answer is no holiday: by law the fourth is a business day.
    assert_eq!(outcomes, ["fetched", "fetched", "fetched", "incomplete", "incomplete"]);
    let stored = fs::read(folder.path().join("update").join("report-1.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&stored).unwrap(), report);

    let rows = "SELECT date::VARCHAR d, code, close, volume, source FROM daily ORDER BY date, code";
    let rows = sql(folder.path(), rows);
    let rows: Vec<&str> = rows.lines().collect();
    assert_eq!(rows.len(), 7, "{rows:?}");
    assert!(rows[1].starts_with("2025-12-22,130A,400") && rows[1].ends_with("vendor"), "{rows:?}");
    for file in ["mother.db", "7203.db", "130A.db"] {
        assert!(folder.path().join("jp").join("stocks_daily").join(file).is_file(), "{file}");
    }
    let ranked =
        command(folder.path(), &["rank", "query", "--from", "2025-12-24", "--format", "jsonl"]);
    let (ranked, errors) = texts(&{ ranked }.output().unwrap());
    assert_eq!(ranked.lines().count(), 2, "{ranked}{errors}");

    server.take_asked();
    let output = update(folder.path(), &server, &[]).output().unwrap();
    let (table, errors) = texts(&output);
    assert_eq!(output.status.code(), Some(3), "{errors}");
    no_key_in(folder.path(), &output);
    for words in
        ["update 2 incomplete", "nothing new", "3 known before", "not configured", "1 of 2 rows"]
    {
        assert!(table.contains(words), "{words}: {table}");
    }
    // What waits, and the last three complete days.
    let asked = ["20251225", "20251226", "20251224", "20251223", "20251222"];
    assert_eq!(days_asked(&server), asked);
    assert_eq!(checked_reports(folder.path()), 2);
}

#[test]
fn without_a_good_key_a_run_fails_and_says_which() {
    let folder = tempfile::tempdir().unwrap();
    // Only a key that the program has can be taken out of texts.
    let server = Server::start(|_| Some((500, PUBLIC_KEY.to_owned())));
    let run = |name: &str, key: Option<&str>| {
        let mut command = update(folder.path(), &server, &["--codes", "7203"]);
        match key {
            Some(key) => command.env(name, key),
            None => command.env_remove(name),
        };
        let output = command.output().unwrap();
        no_key_in(folder.path(), &output);
        let (table, errors) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{table}{errors}");
        table + &errors
    };
    let told = run("KUMIKI_JQUANTS_API_KEY", None);
    let none =
        "error: days are missing, and the vendor cannot be asked: no key: KUMIKI_JQUANTS_API_KEY";
    for words in ["update 1 failed", "the stored report names each day", none] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(!told.contains("days that"), "the cause stands alone: {told}");
    let server = Server::start(|path| {
        let is_vendor = path.starts_with("/v2");
        Some(if is_vendor { (401, "{}".to_owned()) } else { (200, "No data".to_owned()) })
    });
    let mut command = update(folder.path(), &server, &["--codes", "7203"]);
    command.env("KUMIKI_JQUANTS_API_KEY", "another").env("KUMIKI_PUBLIC_API_KEY", "two words");
    let output = command.output().unwrap();
    let told = texts(&output).0 + &texts(&output).1;
    assert_eq!(output.status.code(), Some(1), "{told}");
    let refused = "error: the vendor refuses the requests";
    for words in [
        refused,
        "(HTTP 401): the vendor does not accept the key, `kumiki key list`",
        "KUMIKI_PUBLIC_API_KEY: not one word",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(!told.contains("two words"), "{told}");
    assert!(!DataDir::new(folder.path()).mother().exists());
    assert_eq!(checked_reports(folder.path()), 2);
}

/// In words of a server, as references of a page, in base64, and where names are.
#[test]
fn the_key_appears_nowhere() {
    let name = format!("Name {VENDOR_KEY} Holdings");
    let plain = format!("no {VENDOR_KEY} here");
    // `user:` and the key, as in a header of basic authorization that a vendor repeats.
    let basic = "dXNlcjpwcm9ncmFtLXZlbmRvci1rZXktNTcxMQ==";
    let page = "<p>no &#x70;rogram&#45;vendor&#X2D;key-571&#49; there</p>";
    let refused = [("20251216", &*plain.leak()), ("20251217", page), ("20251218", basic)];
    let fixture = Fixture::new(Market {
        days: [("20251215", 20)].into(),
        listed: Some(20),
        name: name.leak(),
        refused: refused.into(),
        ..Market::default()
    });
    let mut run = fixture.command("--to 2025-12-18 --days 4 --log debug");
    let output = run.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{:?}", texts(&output));
    no_key_in(fixture.path(), &output);
    let said = texts(&output).0 + &texts(&output).1;
    assert!(said.contains("no *** here") && said.contains("no *** there"), "{said}");
    assert!(!said.contains("rogram&#45;") && !said.contains("ncmFtLXZlbm"), "{said}");
    for file in ["jp/listed_info.db", "work/mother.db"] {
        let bytes = fs::read(fixture.path().join(file)).unwrap();
        let hidden = b"Name *** Holdings";
        assert!(bytes.windows(hidden.len()).any(|part| part == hidden), "{file}");
    }
}

#[test]
fn wrong_arguments_are_refused_and_the_help_teaches() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str]| {
        let all = [&["data", "update"], arguments].concat();
        let output = command(folder.path(), &all).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        texts(&output).1
    };
    assert!(refused(&["--dry-run"]).contains("--dry-run no longer exists"));
    assert!(refused(&["--codes", "x"]).contains("no issue code"));
    assert!(refused(&["--to", "2999-01-01"]).contains("in the future"));
    assert!(refused(&["--to", "0001-01-04"]).contains("before 1949-05-16, the first day"));
    assert!(refused(&["--vendor-url", "http://example.com"]).contains("https://"));
    assert!(refused(&["--days", "0"]).contains("--days"));
    assert!(refused(&["--publish-incomplete"]).contains("--publish-incomplete"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was written");
    let (help, _) = texts(&command(folder.path(), &["help", "data", "update"]).output().unwrap());
    for words in [
        "--days 1000",
        "--from-files",
        "--recheck <N>",
        "[default: 3]",
        "--accept DATE",
        "KUMIKI_JQUANTS_API_KEY",
        "KUMIKI_WEB_BROKER_AUTH_ID",
        "STOCKDATA_CACHE_DIR",
        "1    an error; also if the vendor refuses the key",
    ] {
        assert!(help.contains(words), "{words}: {help}");
    }
    assert!(!help.contains("dry-run") && !help.contains("publish-incomplete"));
}

/// The first Ctrl-C ends the run between two days, and the next run goes on. Until then no other job works there.
#[cfg(unix)]
#[test]
fn one_job_runs_at_a_time_and_ctrl_c_ends_it_cleanly() {
    let folder = tempfile::tempdir().unwrap();
    let is_silent = Arc::new(AtomicBool::new(true));
    let silent = Arc::clone(&is_silent);
    let server = Server::start(move |path| match query(path, "date") {
        Some("20251224") if silent.load(Ordering::SeqCst) => None,
        _ => market(path),
    });
    let mut running = update(folder.path(), &server, &[]);
    let running = running.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !server.asked.lock().unwrap().iter().any(|path| path.contains("20251224")) {
        thread::yield_now();
    }
    let second = update(folder.path(), &server, &[]).output().unwrap();
    let errors = texts(&second).1;
    assert_eq!(second.status.code(), Some(1), "{errors}");
    assert!(errors.contains(&format!("process {}", running.id())), "{errors}");

    let kill = Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let output = running.wait_with_output().unwrap();
    let (table, errors) = texts(&output);
    assert_eq!(output.status.code(), Some(130), "{table}{errors}");
    assert!(table.contains("2 fetched, 3 not reached"), "{table}");
    assert!(errors.contains("run it again to go on"), "{errors}");
    assert_eq!(checked_reports(folder.path()), 1);
    assert!(!DataDir::new(folder.path()).mother().exists());

    is_silent.store(false, Ordering::SeqCst);
    server.take_asked();
    let output = update(folder.path(), &server, &["--recheck", "0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{:?}", texts(&output));
    assert_eq!(days_asked(&server), ["20251224", "20251225", "20251226"]);
    let count = sql(folder.path(), "SELECT count(*) FROM daily");
    assert_eq!(count.lines().last(), Some("6"), "{count}");
}

/// Files may have few blocks only, as on a disk that is full: readers keep what they have, and the next run goes on.
#[cfg(unix)]
#[test]
fn a_full_disk_takes_nothing_away() {
    let fixture = Fixture::of([("20251215", 20), ("20251216", 20)]);
    assert_eq!(fixture.update("--to 2025-12-16 --days 2").code, 0);
    let published = |name: &str| fs::read(fixture.path().join("jp").join(name)).unwrap();
    let names = ["stocks_daily/mother.db", "stocks_daily/1300.db", "generation.json"];
    let before = names.map(published);
    fixture.change(|market| _ = market.days.insert("20251217", 20));
    // Its log of changes cannot grow; then the job's own database itself cannot.
    for blocks in [4, 64] {
        let run = fixture.command("--to 2025-12-17");
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let mut limited = Command::new("sh");
        limited.args(["-c", &script]).arg(run.get_program()).args(run.get_args());
        limited.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = limited.env("KUMIKI_KEY_STORE", "off").output().unwrap();
        let errors = texts(&output).1;
        assert_eq!(output.status.code(), Some(1), "{blocks}: {errors}");
        assert!(errors.contains("error: "), "{blocks}: {errors}");
        assert!(names.map(published) == before, "{blocks}");
    }
    assert_eq!(fixture.update("--to 2025-12-17").code, 0);
    assert_eq!(fixture.published(), ["15:20", "16:20", "17:20"]);
}

#[test]
fn history_comes_from_files_without_network() {
    let folder = tempfile::tempdir().unwrap();
    let files = tempfile::tempdir().unwrap();
    let from = files.path().to_str().unwrap();
    let run = || {
        let output =
            command(folder.path(), &["data", "update", "--from-files", from]).output().unwrap();
        let (table, errors) = texts(&output);
        (output.status.code().unwrap(), table + &errors)
    };
    let (code, told) = run();
    assert_eq!(code, 1);
    assert!(told.contains("looked for equities_bars_daily_YYYYMM.csv.gz"), "{told}");
    let november = "2025-11-28,72030,10,12,9,11,0,0,100,1100,1.0\n";
    let december = "2025-12-01,72030,5,6,5,5.5,0,0,200,1100,0.5\n";
    let month = ("equities_bars_daily_202511.csv.gz", november);
    daily_files(files.path(), &[month, ("equities_bars_daily_20251201.csv.gz", december)]);
    // A result on part of the files would look like one on all of them.
    let odd = files.path().join("equities_bars_daily_202512.csv.gz");
    fs::create_dir(&odd).unwrap();
    let (code, told) = run();
    assert_eq!(code, 1, "{told}");
    let words = "202512.csv.gz has the name of a vendor's file but is not a readable file";
    assert!(told.contains(words), "{told}");
    fs::remove_dir(&odd).unwrap();
    let (code, told) = run();
    assert!(code == 0 && told.contains("2 fetched"), "{told}");
    let rows = sql(folder.path(), "SELECT count(*), min(source) FROM daily");
    assert!(rows.contains("2,files"), "{rows}");
    assert_eq!(checked_reports(folder.path()), 3);
    // Days that are named and in no file are missing, by the calendar beside the files.
    let calendar = "Date,HolDiv\n2025-12-01,1\n2025-12-02,1\n2025-12-03,0\n";
    fs::write(files.path().join("markets_calendar.csv"), calendar).unwrap();
    let arguments = ["data", "update", "--from-files", from, "--to", "2025-12-02", "--days", "3"];
    let output = command(folder.path(), &arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{:?}", texts(&output));
    assert!(texts(&output).0.contains("2025-12-02  0 rows: no source gave a row of it"));
}

#[test]
fn named_issues_change_their_rows_alone() {
    let fixture = Fixture::of([("20251215", 10), ("20251216", 10)]);
    assert_eq!(fixture.update("--to 2025-12-15 --days 1").code, 0);
    fixture.change(|market| market.more = 1);
    let run = fixture.update("--to 2025-12-15 --days 1 --refetch --codes 1300 9999");
    assert_eq!((run.code, run.counts("vendor", ["changed"])), (0, [1]), "{run:?}");
    assert!(run.told.contains("no source has data of 9999"), "{}", run.told);
    assert_eq!(fixture.rows("SELECT code FROM daily WHERE close = 116"), ["1300"]);
    // No number of them makes a day.
    let codes: Vec<String> = (1_300..1_310).map(|code: u32| code.to_string()).collect();
    let run = fixture.update(&format!("--to 2025-12-16 --codes {}", codes.join(",")));
    assert_eq!((run.code, run.waiting()), (3, vec!["16 10 of null".to_owned()]), "{run:?}");
    assert_eq!(fixture.published(), ["15:10"]);
    let run = fixture.update("--to 2025-12-15 --codes 1300");
    assert!(
        run.asked.is_empty() && run.told.contains("the run did not ask for the issues"),
        "{run:?}"
    );
    assert_eq!(fixture.update("--to 2025-12-16").code, 0);
    assert_eq!(fixture.published(), ["15:10", "16:10"]);
}

fn health(serving: &Serving) -> Value {
    let reply = http::request(serving.address, "GET /health", &[], &[]);
    serde_json::from_slice(&reply.body).unwrap()
}

/// Waits until the service says this of its data.
fn wait_for(serving: &Serving, status: &str) -> Value {
    for _ in 0..6_000 {
        let found = health(serving);
        if found["status"] == status {
            return found;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("{status} never came: {}", health(serving));
}

/// Three rows are not a day: it waits, everybody is told, and the exit code says so, until a person accepts it.
#[test]
fn a_day_that_is_not_complete_waits_for_its_rows_or_a_person() {
    let fixture = Fixture::of([("20251215", 100), ("20251216", 3)]);
    assert_eq!(fixture.update("--to 2025-12-15 --days 1").code, 0);
    let run = fixture.update("--to 2025-12-16");
    assert_eq!(
        (run.code, run.days(), run.waiting()),
        (3, vec!["16 incomplete".into()], vec!["16 3 of 100".into()])
    );
    assert_eq!(fixture.published(), ["15:100"]);
    let output = fixture.shown("--to 2025-12-16").output().unwrap();
    let table = texts(&output).0;
    for words in [
        "2025-12-16  3 of 100 rows: 3 of the 100 issues of 2025-12-15, the nearest complete day, have rows",
        "publish it with --accept and the date",
    ] {
        assert!(table.contains(words), "{words}: {table}");
    }
    let serving = fixture.serve();
    let found = wait_for(&serving, "incomplete");
    let day = &found["incomplete"][0];
    assert_eq!(
        (&day["date"], &day["rows"], &day["expected"]),
        (&json!("2025-12-16"), &json!(3), &json!(100))
    );
    let dataset = "{ dataset { lastDate incompleteDates missingDates sources { name rows } } }";
    let expected = json!({ "lastDate": "2025-12-15", "incompleteDates": ["2025-12-16"], "missingDates": [],
                           "sources": [{ "name": "vendor", "rows": 100 }] });
    assert_eq!(serving.ask(dataset)["data"]["dataset"], expected);
    // A day after it makes a hole of it, which has an exit code of its own and is counted by lags.
    fixture.change(|market| _ = market.days.insert("20251217", 100));
    let run = fixture.update("--to 2025-12-17");
    assert_eq!((run.code, &run.report["gaps"]), (6, &json!(["2025-12-16"])));
    assert_eq!(wait_for(&serving, "gap")["gaps"], json!(["2025-12-16"]));
    assert_eq!(serving.ask(dataset)["data"]["dataset"]["missingDates"], json!(["2025-12-16"]));
    let lagged = |formula: &str| {
        let arguments =
            ["rank", "query", "--from", "2025-12-17", "--limit", "1", "--format", "jsonl"];
        let output = command(fixture.path(), &arguments).args(["--sort-by", formula]).output();
        let row: Value = serde_json::from_str(texts(&output.unwrap()).0.trim()).unwrap();
        row["sortValue"].clone()
    };
    assert_eq!([lagged("Close[-1]"), lagged("Close[-2]")], [Value::Null, json!(115)]);
    // The rows come, or a person takes the day as it is.
    fixture.change(|market| _ = market.days.insert("20251216", 50));
    let run = fixture.update("--to 2025-12-17 --accept 2025-12-16");
    assert_eq!((run.code, run.waiting(), fixture.published()[1].as_str()), (0, vec![], "16:50"));
    wait_for(&serving, "ok");
    fixture.change(|market| _ = market.days.insert("20251216", 100));
    assert_eq!(fixture.update("--to 2025-12-17").code, 0);
    assert_eq!(fixture.published(), ["15:100", "16:100", "17:100"]);
    assert_eq!(lagged("Close[-1]"), json!(116));
}

fn split_of<const ISSUES: usize>(row: &mut Value) {
    if row["Date"] == "2025-12-16" && number(row) < ISSUES {
        row["AdjFactor"] = json!(0.5);
    }
}

/// A wrong answer does not become right by waiting, and it is no end of the evening's work.
#[test]
fn a_strange_day_waits_for_a_person() {
    let fixture = Fixture::of([("20251215", 100), ("20251216", 100), ("20251217", 100)]);
    assert_eq!(fixture.update("--to 2025-12-15 --days 1").code, 0);
    fixture.change(|market| market.alter = Some(split_of::<30>));
    for (day, code) in [("16", 3), ("16", 3), ("17", 6)] {
        let run = fixture.update(&format!("--to 2025-12-{day}"));
        assert_eq!((run.code, run.asked[0].as_str()), (code, "16"), "{run:?}");
        assert!(run.findings().contains(&"16 factors refuse".to_owned()), "{run:?}");
        let of_it = |finding: &&Value| finding["check"] == "factors";
        let finding = run.report["findings"].as_array().unwrap().iter().find(of_it).unwrap();
        let what = "factors: 30 of 100 are issues with an adjustment factor other than 1; at most 10 % is allowed";
        assert_eq!((&finding["what"], &finding["issues"]), (&json!(what), &json!(30)));
        assert_eq!(
            finding["rows"],
            json!(["1300: factor 0.5", "1301: factor 0.5", "1302: factor 0.5"])
        );
        assert!(run.told.contains(what), "{}", run.told);
        assert!(!fixture.published().contains(&"16:100".to_owned()));
    }
    let output = fixture.shown("--to 2025-12-17").output().unwrap();
    let table = texts(&output).0;
    for words in [
        "days that need a look",
        "2025-12-16  factors: 30 of 100",
        "1300: factor 0.5",
        "--accept",
        "1 refused",
    ] {
        assert!(table.contains(words), "{words}: {table}");
    }
    // The day waits for the check, not for rows.
    assert!(table.contains("the check holds it back"), "{table}");
    assert!(!table.contains("0 of 100 rows"), "{table}");
    let serving = fixture.serve();
    let found = wait_for(&serving, "gap");
    assert!(
        found["doubts"].as_array().unwrap().iter().any(|doubt| doubt["kind"] == "factors"),
        "{found}"
    );
    let run = fixture.update("--to 2025-12-17 --accept 2025-12-16");
    assert_eq!((run.code, run.findings(), fixture.published().len()), (0, vec![], 3), "{run:?}");
    assert!(
        run.told.contains("2025-12-16 is accepted as it is: factors: 30 of 100"),
        "{}",
        run.told
    );
    wait_for(&serving, "ok");
    // A published day is not replaced by another strange answer.
    fixture.change(|market| market.alter = Some(split_of::<60>));
    let run = fixture.update("--to 2025-12-17 --recheck 3");
    assert!(run.code == 3 && run.findings().contains(&"16 factors refuse".to_owned()), "{run:?}");
    assert_eq!(fixture.rows("SELECT count(*) FROM daily WHERE adjustment_factor = 0.5"), ["30"]);
    wait_for(&serving, "doubts");
    fixture.change(|market| market.alter = None);
    assert_eq!(fixture.update("--to 2025-12-17").code, 0);
    wait_for(&serving, "ok");
}

#[test]
fn a_day_that_only_looks_strange_is_published_and_told_once() {
    let fixture = Fixture::of([("20251215", 100), ("20251216", 100)]);
    assert_eq!(fixture.update("--to 2025-12-15 --days 1").code, 0);
    fixture.change(|market| {
        market.alter = Some(|row| {
            if row["Date"] == "2025-12-16" {
                ["O", "H", "L", "C"].iter().for_each(|name| row[*name] = json!(126));
            }
        });
    });
    let output = fixture.shown("--to 2025-12-16").output().unwrap();
    let (table, errors) = texts(&output);
    assert_eq!(output.status.code(), Some(0), "{table}{errors}");
    let what = "jump: 100 of 100 are issues with a close over 8 %";
    assert!(table.contains(what) && table.contains("this alone holds no day back"), "{table}");
    assert!(errors.contains(what), "{errors}");
    assert_eq!((fixture.published().len(), checked_reports(fixture.path())), (2, 2));
    let serving = fixture.serve();
    wait_for(&serving, "doubts");
    let asked = serving.ask("{ dataset { doubts { date kind what } } }");
    let doubt = &asked["data"]["dataset"]["doubts"][0];
    assert_eq!((&doubt["date"], &doubt["kind"]), (&json!("2025-12-16"), &json!("jump")));
    assert_eq!(serving.metric("kumiki_ranking_doubts").as_deref(), Some("1"));
    let run = fixture.update("--to 2025-12-16 --recheck 3");
    assert_eq!((run.code, run.findings()), (0, vec![]), "{run:?}");
    wait_for(&serving, "ok");
}
