//! The update job as users meet it: the `kumiki` program against a server on this machine, and what
//! it leaves for rankings, SQL and the next run.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use flate2::Compression;
use flate2::write::GzEncoder;
use pricestore::DataDir;
use serde_json::{Value, json};
use tests::{built, schema};

pub(crate) const VENDOR_KEY: &str = "program-vendor-key-5711";
const PUBLIC_KEY: &str = "program-public-key-6822";

/// Answers to path and query: a status and a body; `None` never answers.
type Rules = dyn Fn(&str) -> Option<(u16, String)> + Send + Sync;

/// A small HTTP server; it ends with the test's process.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) fn start(
        rules: impl Fn(&str) -> Option<(u16, String)> + Send + Sync + 'static,
    ) -> Self {
        let rules: Arc<Rules> = Arc::new(rules);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, rules) = (Arc::clone(&seen), Arc::clone(&rules));
                thread::spawn(move || serve(stream.unwrap(), &*rules, &seen));
            }
        });
        Self { address, asked }
    }

    pub(crate) fn take_asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn serve(stream: TcpStream, rules: &Rules, seen: &Mutex<Vec<String>>) {
    let mut stream = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        if line == "\r\n" {
            break;
        }
        lines.push(line.trim_end().to_owned());
    }
    let path = lines[0].split(' ').nth(1).unwrap().to_owned();
    let has_key = lines.contains(&format!("x-api-key: {VENDOR_KEY}"));
    seen.lock().unwrap().push(path.clone());
    let (status, body) = match rules(&path) {
        // A server that repeats keys, to see where they go.
        Some(_) if path.starts_with("/v2") && !has_key => (401, lines.join(" ")),
        Some(answer) => answer,
        None => {
            let mut rest = String::new();
            let _ = stream.read_line(&mut rest);
            return;
        }
    };
    let length = body.len();
    // Nobody waits in a test.
    let later = if status == 429 { "Retry-After: 0\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status} x\r\n{later}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    // The client may have gone away.
    let _ = stream.get_mut().write_all((head + &body).as_bytes());
}

pub(crate) fn query<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    let pairs = path.split_once('?')?.1.split('&');
    pairs
        .filter_map(|pair| pair.split_once('='))
        .find(|(found, _)| *found == name)
        .map(|pair| pair.1)
}

/// Holds every report that the folder keeps against the schema, and tells how many there are.
pub(crate) fn checked_reports(folder: &Path) -> usize {
    let described = update::report_schema();
    let files = fs::read_dir(folder.join("update")).unwrap().map(|entry| entry.unwrap().path());
    let reports = files.filter(|path| path.to_string_lossy().contains("report-"));
    let checked = reports.map(|path| {
        let report: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(
            schema::problems(&described, &report),
            Vec::<String>::new(),
            "{}",
            path.display()
        );
    });
    checked.count()
}

/// A number that no other code of so many letters has, as long as they are near each other.
pub(crate) fn own_number(code: &str) -> u32 {
    code.bytes().fold(0, |number, byte| (number * 10 + u32::from(byte)) % 997)
}

/// A row of the vendor's, with a volume that no other issue of the day has.
pub(crate) fn vendor_row(date: &str, code: &str, close: u32) -> Value {
    json!({ "Date": date, "Code": code, "O": close, "H": close + 2, "L": close - 1, "C": close,
            "Vo": 100 * close + own_number(code), "Va": f64::from(100 * close * close) + 0.5, "AdjFactor": 1.0 })
}

/// Three days of two issues, a holiday on Thursday, and a public source for the rest.
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

pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(built::kumiki());
    command.args(arguments).env("DATA_DIR", folder).stdin(Stdio::null());
    for name in ["STOCKDATA_CACHE_DIR", "KUMIKI_WEB_BROKER_USER", "JQUANTS_API_KEY"] {
        command.env_remove(name);
    }
    // Whose machine this is may have keys of their own.
    command.env_remove("CREDENTIALS_DIRECTORY").env("KUMIKI_KEY_STORE", "off");
    command.env("KUMIKI_JQUANTS_API_KEY", VENDOR_KEY).env("KUMIKI_PUBLIC_API_KEY", PUBLIC_KEY);
    command
}

/// `kumiki update` over the week of 2025-12-22 against the server.
fn update(folder: &Path, server: &Server, more: &[&str]) -> Command {
    let (vendor, public) =
        (format!("http://{}/v2", server.address), format!("http://{}/q/", server.address));
    let mut arguments = vec!["update", "--as-of", "2025-12-26", "--days", "5"];
    arguments.extend(["--vendor-url", &vendor, "--vendor-rate", "60000"]);
    arguments.extend(["--public-url", &public, "--public-rate", "60000"]);
    arguments.extend(more);
    command(folder, &arguments)
}

pub(crate) fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

pub(crate) fn sql(folder: &Path, statement: &str) -> String {
    let output = command(folder, &["sql", statement, "--format", "csv"]).output().unwrap();
    let (rows, errors) = texts(&output);
    assert!(output.status.success(), "{errors}");
    rows
}

/// Everything that a run printed and left must be free of keys.
fn no_key_in(folder: &Path, output: &Output) {
    for key in [VENDOR_KEY, PUBLIC_KEY] {
        let (rows, errors) = texts(output);
        assert!(!rows.contains(key) && !errors.contains(key), "{rows}\n{errors}");
        no_key_below(folder, key);
    }
}

fn no_key_below(folder: &Path, key: &str) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            no_key_below(&path, key);
        } else {
            let bytes = fs::read(&path).unwrap();
            let found = bytes.windows(key.len()).any(|window| window == key.as_bytes());
            assert!(!found, "{} holds a key", path.display());
        }
    }
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
    assert_eq!(report["ending"], "incomplete");
    assert_eq!(report["published"]["days"], 3);
    let outcomes: Vec<&str> = report["days"]
        .as_array()
        .unwrap()
        .iter()
        .map(|day| day["outcome"].as_str().unwrap())
        .collect();
    // An empty answer is no holiday: by law the fourth is a business day.
    assert_eq!(outcomes, ["fetched", "fetched", "fetched", "incomplete", "incomplete"]);
    let stored = fs::read(folder.path().join("update").join("report-1.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&stored).unwrap(), report);

    let rows = sql(
        folder.path(),
        "SELECT date::VARCHAR d, code, close, volume, source FROM daily ORDER BY date, code",
    );
    let rows: Vec<&str> = rows.lines().collect();
    assert_eq!(rows.len(), 7, "{rows:?}");
    assert!(rows[1].starts_with("2025-12-22,130A,400") && rows[1].ends_with("vendor"), "{rows:?}");
    for file in ["mother.db", "7203.db", "130A.db"] {
        assert!(folder.path().join("jp").join("stocks_daily").join(file).is_file(), "{file}");
    }
    let mut ranking =
        command(folder.path(), &["rank", "--from", "2025-12-24", "--format", "jsonl"]);
    let ranked = ranking.output().unwrap();
    let (ranked, errors) = texts(&ranked);
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
    let asked = server.take_asked();
    let bars = asked.iter().filter(|path| path.contains("bars"));
    let days: Vec<&str> = bars.filter_map(|path| query(path, "date")).collect();
    // B4 of the job's rules: the last three complete days too.
    let expected = ["20251225", "20251226", "20251222", "20251223", "20251224"];
    assert_eq!(days, expected, "{asked:?}");
    assert_eq!(checked_reports(folder.path()), 2);
}

#[test]
fn what_cannot_be_fetched_is_told_with_reasons() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(|_| Some((500, format!("{VENDOR_KEY} {PUBLIC_KEY}"))));
    let mut command = update(folder.path(), &server, &["--codes", "7203"]);
    let output = command.env_remove("KUMIKI_JQUANTS_API_KEY").output().unwrap();
    let (table, errors) = texts(&output);
    // K2.
    assert_eq!(output.status.code(), Some(1), "{table}{errors}");
    for words in ["update 1 failed", "KUMIKI_JQUANTS_API_KEY is not set", "HTTP 500", "7203  "] {
        assert!(table.contains(words), "{words}: {table}");
    }
    let words =
        "error: days are missing, and the vendor cannot be asked: no key: KUMIKI_JQUANTS_API_KEY";
    assert!(errors.contains(words), "{errors}");
    assert!(
        !table.contains(PUBLIC_KEY)
            && !folder.path().join("jp").join("stocks_daily").join("7203.db").exists()
    );
    assert_eq!(checked_reports(folder.path()), 1);
}

#[test]
fn a_key_of_the_public_source_that_cannot_be_used_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(|_| Some((200, "No data".to_owned())));
    let mut command = update(folder.path(), &server, &["--codes", "7203"]);
    let output = command.env("KUMIKI_PUBLIC_API_KEY", "two words").output().unwrap();
    let (table, errors) = texts(&output);
    let wanted = "KUMIKI_PUBLIC_API_KEY: not one word";
    assert!(table.contains(wanted), "{table}{errors}");
    assert!(!table.contains("two words") && !errors.contains("two words"), "{table}{errors}");
}

/// Writes files of daily bars of the vendor.
pub(crate) fn daily_files(folder: &Path, files: &[(&str, &str)]) {
    for (name, rows) in files {
        let file = fs::File::create(folder.join(name)).unwrap();
        let mut packed = GzEncoder::new(file, Compression::fast());
        write!(packed, "Date,Code,O,H,L,C,UL,LL,Vo,Va,AdjFactor\n{rows}").unwrap();
        packed.finish().unwrap();
    }
}

#[test]
fn files_of_others_survive_an_update_of_one_issue() {
    let folder = tempfile::tempdir().unwrap();
    let files = tempfile::tempdir().unwrap();
    let rows = "2025-11-28,72030,10,12,9,11,0,0,100,1100,1.0\n\
                2025-11-28,99840,10,12,9,11,0,0,100,1100,1.0\n";
    daily_files(files.path(), &[("equities_bars_daily_202511.csv.gz", rows)]);
    let from = files.path().to_str().unwrap();
    let output = command(folder.path(), &["update", "--from-files", from]).output().unwrap();
    assert!(output.status.success(), "{}", texts(&output).1);
    // What another program leaves: files of issues, and no combined one.
    let data = DataDir::new(folder.path());
    fs::remove_file(data.mother()).unwrap();
    fs::remove_dir_all(folder.path().join("work")).unwrap();
    let of = |code: &str| data.mother().with_file_name(code).with_extension("db");
    let before = ["7203", "9984"].map(|code| fs::read(of(code)).unwrap());

    let server = Server::start(|path| {
        let is_asked = path.contains("bars/daily") && query(path, "date") == Some("20251224");
        let rows = is_asked.then(|| vendor_row("2025-12-24", "72030", 100));
        Some((200, json!({ "data": rows.as_slice() }).to_string()))
    });
    let output = update(folder.path(), &server, &[]).output().unwrap();
    let (table, errors) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{table}{errors}");
    assert!(
        errors.contains("not written by this job: 7203; they were left as they are"),
        "{errors}"
    );
    assert!(before == ["7203", "9984"].map(|code| fs::read(of(code)).unwrap()));
}

/// A result on part of the files would look like one on all of them.
#[cfg(unix)]
#[test]
fn what_has_the_name_of_a_file_and_is_none_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let files = tempfile::tempdir().unwrap();
    let rows = "2025-11-28,72030,10,12,9,11,0,0,100,1100,1.0\n";
    daily_files(files.path(), &[("equities_bars_daily_202511.csv.gz", rows)]);
    let path = files.path().join("equities_bars_daily_202512.csv.gz");
    let pipe = || assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let makes: [&dyn Fn(); 3] = [
        &|| std::os::unix::fs::symlink("nowhere", &path).unwrap(),
        &|| fs::create_dir(&path).unwrap(),
        &pipe,
    ];
    for make in makes {
        make();
        let from = files.path().to_str().unwrap();
        let output = command(folder.path(), &["update", "--from-files", from]).output().unwrap();
        let (_, errors) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        let words =
            "equities_bars_daily_202512.csv.gz has the name of the vendor's files and is no file";
        assert!(errors.contains(words), "{errors}");
        if path.is_dir() { fs::remove_dir(&path) } else { fs::remove_file(&path) }.unwrap();
    }
    let from = files.path().to_str().unwrap();
    let output = command(folder.path(), &["update", "--from-files", from]).output().unwrap();
    assert!(output.status.success(), "{}", texts(&output).1);
}

#[test]
fn history_comes_from_files_without_network() {
    let folder = tempfile::tempdir().unwrap();
    let files = tempfile::tempdir().unwrap();
    let november = "2025-11-28,72030,10,12,9,11,0,0,100,1100,1.0\n";
    let december = "2025-12-01,72030,5,6,5,5.5,0,0,200,1100,0.5\n";
    let monthly = ("equities_bars_daily_202511.csv.gz", november);
    daily_files(files.path(), &[monthly, ("equities_bars_daily_20251201.csv.gz", december)]);
    let from = files.path().to_str().unwrap();
    let output = command(folder.path(), &["update", "--from-files", from]).output().unwrap();
    let (table, errors) = texts(&output);
    assert!(output.status.success(), "{table}{errors}");
    assert!(table.contains("2 fetched"), "{table}");
    let rows = sql(folder.path(), "SELECT count(*), min(source) FROM daily");
    assert!(rows.contains("2,files"), "{rows}");
    assert_eq!(checked_reports(folder.path()), 1);
    let empty = tempfile::tempdir().unwrap();
    let from = empty.path().to_str().unwrap();
    let output = command(folder.path(), &["update", "--from-files", from]).output().unwrap();
    let (_, errors) = texts(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(errors.contains("looked for equities_bars_daily_YYYYMM.csv.gz"), "{errors}");
}

#[test]
fn wrong_arguments_are_refused_and_the_help_teaches() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str]| {
        let mut all = vec!["update"];
        all.extend(arguments);
        let output = command(folder.path(), &all).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        texts(&output).1
    };
    assert!(refused(&["--dry-run"]).contains("--dry-run no longer exists"));
    assert!(refused(&["--codes", "x"]).contains("no issue code"));
    assert!(refused(&["--as-of", "2999-01-01"]).contains("in the future"));
    assert!(refused(&["--vendor-url", "http://example.com"]).contains("https://"));
    assert!(refused(&["--days", "0"]).contains("--days"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was written");
    let output = command(folder.path(), &["update", "--help"]).output().unwrap();
    let (help, _) = texts(&output);
    assert!(output.status.success());
    for words in ["--days 1000", "--from-files", "KUMIKI_JQUANTS_API_KEY", "STOCKDATA_CACHE_DIR"] {
        assert!(help.contains(words), "{words}: {help}");
    }
    assert!(!help.contains("dry-run"));
}

/// The first Ctrl-C ends the run between two days, and the next run goes on.
#[cfg(unix)]
#[test]
fn ctrl_c_ends_cleanly() {
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
    let kill = Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let output = running.wait_with_output().unwrap();
    let (table, errors) = texts(&output);
    assert_eq!(output.status.code(), Some(130), "{table}{errors}");
    assert!(table.contains("2 fetched, 3 not reached"), "{table}");
    assert!(errors.contains("run it again to go on"), "{errors}");
    assert_eq!(checked_reports(folder.path()), 1);
    assert!(!folder.path().join("jp").join("stocks_daily").join("mother.db").exists());

    is_silent.store(false, Ordering::SeqCst);
    server.take_asked();
    let output = update(folder.path(), &server, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{:?}", texts(&output));
    let asked = server.take_asked();
    let bars = asked.iter().filter(|path| path.contains("bars"));
    let days: Vec<&str> = bars.filter_map(|path| query(path, "date")).collect();
    assert_eq!(days, ["20251224", "20251225", "20251226"], "{asked:?}");
    let count = sql(folder.path(), "SELECT count(*) FROM daily");
    assert_eq!(count.lines().last(), Some("6"), "{count}");
}

/// Lists of issues of two dates, and a calendar in which 0 means open.
fn listings(path: &str) -> Option<(u16, String)> {
    let issue = |date: &str, code: &str, scale: &str, market: &str| json!({ "Date": date, "Code": code, "CoName": "Name", "ScaleCat": scale, "Mkt": market });
    if path.starts_with("/v2/markets/calendar") {
        let day = |day: u32| {
            // On the 9th it stays closed, which no law of holidays tells.
            let is_open = !matches!(day, 1..=5 | 9 | 11..=13 | 18 | 19 | 25 | 26);
            let division = if is_open { "0" } else { "1" };
            json!({ "Date": format!("2025-01-{day:02}"), "HolDiv": division })
        };
        let days: Vec<Value> = (1..=31).map(day).collect();
        return Some((200, json!({ "data": days }).to_string()));
    }
    let scale = match query(path, "date") {
        Some("20250106") => ("2025-01-06", "TOPIX Mid400"),
        Some("20250108") => ("2025-01-08", "TOPIX Small 1"),
        _ => return Some((210, String::new())),
    };
    let rows = [issue(scale.0, "72030", scale.1, "0111"), issue(scale.0, "13060", "-", "0109")];
    Some((200, json!({ "data": rows }).to_string()))
}

#[test]
fn lists_of_issues_say_lots_and_price_steps_to_runs() {
    let server = Server::start(listings);
    let user = tests::user_folder::UserFolder::empty();
    user.good(
        "data sample --out data --instrument 7203.TSE --instrument 1306.TSE --days 4 --trades-per-day 200",
    );
    let said = |arguments: &str| {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let mut command = command(user.folder(), &arguments);
        command.current_dir(user.folder()).env("KUMIKI_CACHE", user.path("cache"));
        let output = command.output().unwrap();
        no_key_in(user.folder(), &output);
        (output.status.code().unwrap(), texts(&output))
    };
    let vendor = format!("--vendor-url http://{}/v2 --vendor-rate 60000", server.address);
    let (code, (text, errors)) = said(&format!(
        "data instruments data --date 2025-01-06 --date 2025-01-08 --date 2025-01-09 {vendor}"
    ));
    assert_eq!(code, 0, "{errors}");
    assert!(text.starts_with("3 rows from 2 lists in data/instruments.csv; 0 edited"), "{text}");
    assert!(errors.contains("the vendor has no list of 2025-01-09"), "{errors}");
    assert_eq!(server.take_asked().len(), 3);
    // January's first business day is there already, so nothing is asked for.
    let (code, (text, _)) = said(&format!("data instruments data {vendor}"));
    assert!(code == 0 && text.starts_with("3 rows"), "{text}");
    assert_eq!(server.take_asked(), Vec::<String>::new());

    let run = "replay run buy-and-hold --data data --quiet --instrument";
    let (code, (text, errors)) = said(&format!("{run} 7203.TSE"));
    assert_eq!(code, 0, "{errors}");
    let wanted = "note: 7203.TSE: lot 100, from instruments.csv; ticks topix500, from instruments.csv; \
                  lot 100 and ticks normal from 2025-01-08 on";
    assert!(text.contains(wanted), "{text}");
    let (code, (_, errors)) = said(&format!("{run} 1306.TSE"));
    assert_eq!(code, 1);
    assert!(
        errors.contains("1306.TSE has no lot and tick table in data/instruments.csv"),
        "{errors}"
    );
    let (code, (text, errors)) =
        said(&format!("{run} 1306.TSE --lot 1306.TSE=10 --ticks 1306.TSE=etf"));
    assert_eq!(code, 0, "{errors}");
    assert!(text.contains("1306.TSE: lot 10, as asked for; ticks etf, as asked for"), "{text}");
    let (code, (_, errors)) = said(&format!("{run} 7203.TSE --lot 1306.TSE=10"));
    assert_eq!(code, 2);
    assert!(errors.contains("--lot names 1306.TSE, which is not among"), "{errors}");
    let (code, (text, errors)) = said(&format!("{run} 1306.TSE --lot 1306=10 --ticks 13060=etf"));
    assert_eq!(code, 0, "{errors}");
    assert!(text.contains("1306.TSE: lot 10, as asked for; ticks etf, as asked for"), "{text}");
    let (code, (_, errors)) = said(&format!("{run} 7203.TSE --ticks 1306=etf"));
    assert_eq!(code, 2);
    let unknown = "--ticks names 1306, which is not among the instruments of this run (7203.TSE)";
    assert!(errors.contains(unknown), "{errors}");
    let (code, (_, errors)) = said(&format!("{run} 7203.TSE --lot 130=10"));
    assert!(code == 2 && errors.contains("130"), "{errors}");
    let path = user.path("data/instruments.csv");
    let table = fs::read_to_string(&path).unwrap();
    fs::write(&path, table.replace("0109,,,", "0109,10,etf,")).unwrap();
    let (code, (text, errors)) = said("data instruments data --offline");
    assert!(code == 0 && text.contains("1 edited by hand"), "{text}{errors}");
    let (code, (text, _)) = said(&format!("{run} 1306.TSE"));
    assert!(code == 0 && text.contains("lot 10, from instruments.csv; ticks etf"), "{text}");
}

#[test]
fn the_exchange_s_calendar_is_kept_and_held_against_the_data() {
    let server = Server::start(listings);
    let user = tests::user_folder::UserFolder::empty();
    user.good("data sample --out data --instrument 7203.TSE --days 8 --trades-per-day 200");
    let table = user.good("data check data");
    assert!(!table.contains("on which the exchange is closed"), "samples know holidays: {table}");
    let vendor = format!("http://{}/v2", server.address);
    let arguments = ["data", "calendar", "data", "--vendor-url", &vendor];
    let output = command(user.folder(), &arguments).current_dir(user.folder()).output().unwrap();
    let (text, errors) = texts(&output);
    assert!(output.status.success(), "{errors}");
    assert!(text.starts_with("18 business days from 2025-01-01 to 2025-01-31"), "{text}");
    let run = "replay run buy-and-hold --data data --instrument 7203.TSE --quiet";
    let (code, errors) = user.bad(run);
    assert_eq!(code, 1);
    assert!(errors.contains("closed on 2025-01-09, but there are rows of that day"), "{errors}");
    let table = user.good("data check data");
    assert!(
        table.contains("1 days with rows on which the exchange is closed (2025-01-09)"),
        "{table}"
    );
    assert!(table.lines().any(|line| line.starts_with("odd ")), "{table}");
    user.good(&format!("{run} --end 2025-01-08"));
}
