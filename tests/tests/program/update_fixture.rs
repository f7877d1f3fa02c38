//! A vendor on this machine, and `kumiki data update` against it: what the tests of the program share.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use domain::{JstDate, holidays};
use flate2::Compression;
use flate2::write::GzEncoder;
use pricestore::DataDir;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::serving::Serving;
use tests::update_runs::CHEAPEST_DAY;
use tests::{built, schema};

pub(crate) const VENDOR_KEY: &str = "program-vendor-key-5711";
pub(crate) const PUBLIC_KEY: &str = "program-public-key-6822";

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
        let problems = schema::problems(&described, &report);
        assert_eq!(problems, Vec::<String>::new(), "{}", path.display());
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

pub(crate) fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

/// An error with its causes.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(known) = cause {
        told = format!("{told}: {known}");
        cause = known.source();
    }
    told
}

pub(crate) fn sql(folder: &Path, statement: &str) -> String {
    let output = command(folder, &["sql", statement, "--format", "csv"]).output().unwrap();
    let (rows, errors) = texts(&output);
    assert!(output.status.success(), "{errors}");
    rows
}

/// Everything that a run printed and left must be free of keys.
pub(crate) fn no_key_in(folder: &Path, output: &Output) {
    for key in [VENDOR_KEY, PUBLIC_KEY] {
        let (rows, errors) = texts(output);
        assert!(!rows.contains(key) && !errors.contains(key), "{rows}\n{errors}");
        no_key_below(folder, key);
    }
}

/// No file of a folder holds a key.
pub(crate) fn no_key_below(folder: &Path, key: &str) {
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

/// Writes files of daily bars of the vendor.
pub(crate) fn daily_files(folder: &Path, files: &[(&str, &str)]) {
    for (name, rows) in files {
        let file = fs::File::create(folder.join(name)).unwrap();
        let mut packed = GzEncoder::new(file, Compression::fast());
        write!(packed, "Date,Code,O,H,L,C,UL,LL,Vo,Va,AdjFactor\n{rows}").unwrap();
        packed.finish().unwrap();
    }
}

/// What the vendor has. Days are like 20251215; the issues of a day are the first so many from 1300 on.
#[derive(Default)]
pub(crate) struct Market {
    pub(crate) days: BTreeMap<&'static str, usize>,
    /// Issues that the list of every date has.
    pub(crate) listed: Option<usize>,
    /// What they are called.
    pub(crate) name: &'static str,
    /// Days on which the exchange is closed, or open for a half, against the law's calendar; none
    /// where the vendor has no calendar.
    pub(crate) divisions: Option<BTreeMap<&'static str, &'static str>>,
    /// It fails.
    pub(crate) down: BTreeSet<&'static str>,
    /// It refuses these days with these words.
    pub(crate) refused: BTreeMap<&'static str, &'static str>,
    /// What is added to every price.
    pub(crate) more: u32,
    /// Changes a row of prices before it is sent.
    pub(crate) alter: Option<fn(&mut Value)>,
    /// What the other sources answer; they have nothing where this is not set.
    pub(crate) others: Option<fn(&str) -> String>,
}

pub(crate) fn dashed(day: &str) -> String {
    format!("{}-{}-{}", &day[..4], &day[4..6], &day[6..])
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The number of a row's issue, from 0.
pub(crate) fn number(row: &Value) -> usize {
    text(&row["Code"])[..4].parse::<usize>().unwrap() - 1_300
}

impl Market {
    fn answer(&self, path: &str) -> Option<(u16, String)> {
        if path.starts_with("/v2/markets/calendar") {
            return Some(self.calendar(path));
        }
        if !path.starts_with("/v2") {
            return Some((200, self.others.map_or("No data".to_owned(), |answer| answer(path))));
        }
        let date = query(path, "date");
        let vendor_code = |number: usize| format!("{}0", 1_300 + number);
        if path.starts_with("/v2/equities/master") {
            let date = dashed(date.unwrap());
            let issue = |number| {
                json!({ "Date": date, "Code": vendor_code(number), "CoName": self.name,
                        "ScaleCat": "-", "Mkt": "0111" })
            };
            let issues: Vec<Value> = (0..self.listed.unwrap_or(0)).map(issue).collect();
            return Some((200, json!({ "data": issues }).to_string()));
        }
        let (first, last) = match date {
            Some(date) => (date, date),
            None => (query(path, "from").unwrap(), query(path, "to").unwrap()),
        };
        if let Some(words) = date.and_then(|date| self.refused.get(date)) {
            return Some((400, json!({ "message": words }).to_string()));
        }
        if date.is_some_and(|date| self.down.contains(date)) {
            return Some((500, json!({ "message": "out of order" }).to_string()));
        }
        let code = query(path, "code");
        let rows = self.days.range(first..=last).flat_map(|(day, count)| {
            let codes = (0..*count).map(vendor_code);
            let codes = codes.filter(|found| code.is_none_or(|code| code == found));
            // A yen more each day after one day, and each day before it: no market falls by a fifth in a day.
            let date: JstDate = dashed(day).parse().unwrap();
            let since =
                date.to_epoch_days() - CHEAPEST_DAY.parse::<JstDate>().unwrap().to_epoch_days();
            let close = 101 + self.more + since.unsigned_abs();
            let alter = self.alter.unwrap_or(|_| ());
            codes.map(move |code| {
                let mut row = vendor_row(&dashed(day), &code, close);
                // No day has the prices of another.
                row["H"] = (close + if since >= 0 { 2 } else { 3 }).into();
                alter(&mut row);
                row
            })
        });
        Some((200, json!({ "data": rows.collect::<Vec<_>>() }).to_string()))
    }

    fn calendar(&self, path: &str) -> (u16, String) {
        let Some(divisions) = &self.divisions else { return (403, "{}".to_owned()) };
        let [first, last] = ["from", "to"]
            .map(|name| dashed(query(path, name).unwrap()).parse::<JstDate>().unwrap());
        let days = first.iter_days().take_while(|day| *day <= last).map(|day| {
            let by_law = if holidays::is_closed(day) { "0" } else { "1" };
            let compact = day.to_string().replace('-', "");
            let division = divisions.get(compact.as_str()).copied().unwrap_or(by_law);
            json!({ "Date": day.to_string(), "HolDiv": division })
        });
        (200, json!({ "data": days.collect::<Vec<_>>() }).to_string())
    }
}

/// A data directory and a vendor.
pub(crate) struct Fixture {
    folder: TempDir,
    market: Arc<Mutex<Market>>,
    pub(crate) server: Server,
}

/// What a run of the program did.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) report: Value,
    /// What it told while it ran.
    pub(crate) told: String,
    /// Days and issues that the vendor was asked for, without lists and calendars.
    pub(crate) asked: Vec<String>,
}

impl Run {
    /// The days of the report, like `15 fetched`.
    pub(crate) fn days(&self) -> Vec<String> {
        let days = self.report["days"].as_array().unwrap().iter();
        days.map(|day| format!("{} {}", &text(&day["date"])[8..], text(&day["outcome"]))).collect()
    }

    /// The days that wait, like `17 98 of 100`.
    pub(crate) fn waiting(&self) -> Vec<String> {
        let days = self.report["waiting"].as_array().unwrap().iter();
        let line = |day: &Value| {
            format!("{} {} of {}", &text(&day["date"])[8..], day["rows"], day["expected"])
        };
        days.map(line).collect()
    }

    /// What was found strange, like `16 factors refuse`.
    pub(crate) fn findings(&self) -> Vec<String> {
        let findings = self.report["findings"].as_array().unwrap().iter();
        let line = |finding: &Value| {
            let [date, check, severity] =
                ["date", "check", "severity"].map(|name| text(&finding[name]));
            format!("{} {check} {severity}", &date[8..])
        };
        findings.map(line).collect()
    }

    /// The part of the report about a source.
    pub(crate) fn source(&self, name: &str) -> &Value {
        let sources = self.report["sources"].as_array().unwrap();
        sources.iter().find(|part| part["source"] == name).unwrap()
    }

    /// Numbers of that part.
    pub(crate) fn counts<const N: usize>(&self, of: &str, names: [&str; N]) -> [u64; N] {
        names.map(|name| self.source(of)[name].as_u64().unwrap())
    }
}

impl Fixture {
    pub(crate) fn new(market: Market) -> Self {
        let market = Arc::new(Mutex::new(market));
        let asked = Arc::clone(&market);
        let server = Server::start(move |path: &str| asked.lock().unwrap().answer(path));
        Self { folder: tempfile::tempdir().unwrap(), market, server }
    }

    /// Days with so many issues, and the law's calendar.
    pub(crate) fn of<const N: usize>(days: [(&'static str, usize); N]) -> Self {
        let divisions = Some(BTreeMap::new());
        Self::new(Market { days: days.into(), divisions, ..Market::default() })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn data(&self) -> DataDir {
        DataDir::new(self.path())
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Market)) {
        change(&mut self.market.lock().unwrap());
    }

    /// `kumiki data update` with these arguments, which prints for people.
    pub(crate) fn shown(&self, arguments: &str) -> Command {
        let address = self.server.address;
        let (vendor, public) = (format!("http://{address}/v2"), format!("http://{address}/q/"));
        let fixed = ["data", "update", "--vendor-rate", "60000", "--public-rate", "60000"];
        let mut command = command(self.path(), &fixed);
        command.args(["--vendor-url", &vendor, "--public-url", &public]);
        command.args(arguments.split(' '));
        // What is asked again by the way has tests of its own.
        if !arguments.contains("--recheck") {
            command.args(["--recheck", "0"]);
        }
        command
    }

    /// The same, which prints JSON.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = self.shown(arguments);
        command.args(["--format", "json"]);
        command
    }

    pub(crate) fn update(&self, arguments: &str) -> Run {
        self.run(&mut self.command(arguments))
    }

    pub(crate) fn run(&self, command: &mut Command) -> Run {
        self.server.take_asked();
        let output = command.output().unwrap();
        let (report, errors) = texts(&output);
        let report =
            serde_json::from_str(&report).unwrap_or_else(|error| panic!("{error}: {errors}"));
        let asked = self.server.take_asked().into_iter();
        let asked = asked.filter(|path| path.contains("bars/daily")).map(|path| {
            match (query(&path, "date"), query(&path, "code")) {
                (Some(date), _) => date[6..].to_owned(),
                (None, code) => code.unwrap().to_owned(),
            }
        });
        checked_reports(self.path());
        let (code, asked) = (output.status.code().unwrap(), asked.collect());
        Run { code, report, told: errors, asked }
    }

    /// What `kumiki data update` says that ends with an error.
    pub(crate) fn failing(&self, arguments: &str) -> String {
        let output = self.command(arguments).output().unwrap();
        let (_, errors) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        errors
    }

    /// The rows of an answer, without the heads.
    pub(crate) fn rows(&self, statement: &str) -> Vec<String> {
        sql(self.path(), statement).lines().skip(1).map(|line| line.replace('"', "")).collect()
    }

    /// Rows of each published day, like `15:100`.
    pub(crate) fn published(&self) -> Vec<String> {
        if !self.data().mother().is_file() {
            return Vec::new();
        }
        let days = "SELECT concat(strftime(date, '%d'), ':', count(*)) FROM daily GROUP BY date ORDER BY date";
        self.rows(days)
    }

    pub(crate) fn serve(&self) -> Serving {
        Serving::start(self.path(), &[])
    }
}
