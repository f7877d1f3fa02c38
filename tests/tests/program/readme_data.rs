//! The commands of README.md on daily data, word for word: only addresses are other ones, because nothing here
//! talks to a vendor or takes a fixed port.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use domain::{JstDate, clock, holidays};
use pricestore::DataDir;
use serde_json::{Value, json};
use tests::http;
use tests::serving::Serving;
use tests::user_folder::UserFolder;

use crate::update_fixture::{Server, VENDOR_KEY, daily_files, query, texts, vendor_row};

const README: &str = include_str!("../../../README.md");
/// What README's addresses stand for.
const PRIMARY: &str = "127.0.0.1:8080";
/// Issues that the vendor has.
const CODES: [&str; 3] = ["130A0", "13010", "72030"];
/// Commands that fetch lists of the vendor.
const LISTS: [&str; 2] = ["kumiki data calendar ", "kumiki data instruments "];
/// Commands of which others have the tests, because they need what other sections make, a person at a terminal or a
/// compiler.
const ELSEWHERE: [&str; 7] = [
    "kumiki sql --runs",
    "kumiki sql --sweeps",
    "kumiki sql --market-data",
    "kumiki key ",
    "kumiki rank formulas",
    "kumiki rank --data-dir data --formula",
    "cp -r ",
];

/// The commands of a section, a command a text, however many lines it has. Of one in another (`#`), only its own.
fn commands(section: &str) -> Vec<String> {
    let text = README.split(&format!("\n##{section}\n")).nth(1).unwrap();
    let end = if section.starts_with('#') { "\n##" } else { "\n## " };
    let text = text.split(end).next().unwrap();
    let mut found = Vec::new();
    for block in text.split("\n```\n").skip(1).step_by(2) {
        let mut open = false;
        for line in block.lines() {
            match found.last_mut().filter(|_| open) {
                Some(command) => *command = format!("{command}\n{line}"),
                None => found.push(line.to_owned()),
            }
            open ^= line.matches('\'').count() % 2 == 1;
        }
    }
    found.retain(|command| {
        let is_elsewhere = ELSEWHERE.iter().any(|begin| command.starts_with(begin));
        !is_elsewhere && !command.starts_with("cargo ")
    });
    found
}

fn close(date: JstDate) -> u32 {
    u32::try_from(1_000 + date.to_epoch_days().rem_euclid(97)).unwrap()
}

/// A vendor that has three issues on every business day.
fn vendor() -> Server {
    Server::start(|path: &str| {
        let date = |name| -> Option<JstDate> {
            let text = query(path, name)?;
            format!("{}-{}-{}", &text[..4], &text[4..6], &text[6..]).parse().ok()
        };
        if path.contains("/markets/calendar") {
            let (first, last) = (date("from").unwrap(), date("to").unwrap());
            let days = first.iter_days().take_while(|day| *day <= last).map(|day| {
                let division = if holidays::is_closed(day) { "0" } else { "1" };
                json!({ "Date": day.to_string(), "HolDiv": division })
            });
            return Some((200, json!({ "data": days.collect::<Vec<_>>() }).to_string()));
        }
        let Some(date) = date("date") else {
            return Some((200, json!({ "data": [] }).to_string()));
        };
        let rows = CODES.map(|code| match path.contains("/equities/master") {
            true => {
                json!({ "Date": date.to_string(), "Code": code, "CoName": "Name", "ScaleCat": "-",
                            "Mkt": "0111" })
            }
            false => vendor_row(&date.to_string(), code, close(date)),
        });
        let rows = if holidays::is_closed(date) { Vec::new() } else { rows.to_vec() };
        Some((200, json!({ "data": rows }).to_string()))
    })
}

/// A shell in a folder in which `kumiki` is the program.
struct Shell<'a> {
    folder: &'a Path,
    /// What commands that ask the vendor are given besides, and `kumiki update` alone.
    vendor: String,
    public: String,
    /// The services that were started, the first of which is the primary.
    services: Vec<Serving>,
}

impl<'a> Shell<'a> {
    fn new(folder: &'a Path, vendor: &Server) -> Self {
        let bin = folder.join("bin");
        fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(tests::built::kumiki(), bin.join("kumiki")).unwrap();
        let address = vendor.address;
        let vendor = format!(" --vendor-url http://{address}/v2 --vendor-rate 60000");
        let public = format!(" --public-url http://{address}/q/");
        Self { folder, vendor, public, services: Vec::new() }
    }

    fn command(&self, text: &str) -> Command {
        let mut command = Command::new("sh");
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", self.folder.join("bin").display());
        command.args(["-c", text]).current_dir(self.folder).env("PATH", path).stdin(Stdio::null());
        for name in
            ["DATA_DIR", "STOCKDATA_CACHE_DIR", "KUMIKI_RANK_TOKEN", "CREDENTIALS_DIRECTORY"]
        {
            command.env_remove(name);
        }
        command.env("KUMIKI_KEY_STORE", "off").env("KUMIKI_JQUANTS_API_KEY", VENDOR_KEY);
        command
    }

    /// Runs a command of README.
    fn run(&mut self, text: &str) {
        let primary = self.services.first().map(|service| service.address.to_string());
        if text.starts_with("kumiki rank serve") {
            let text = match primary {
                // A replica, at an address of its own.
                Some(primary) if text.contains("--follow") => {
                    text.replace(PRIMARY, &primary).replace("127.0.0.1:8081", "127.0.0.1:0")
                }
                _ => format!("{text} --listen 127.0.0.1:0"),
            };
            // The shell would stay alive behind the service.
            self.services.push(Serving::of(self.command(&format!("exec {text}"))));
            return;
        }
        let text = match text {
            key if key.starts_with("export ") => {
                assert!(key.ends_with("=..."), "{key}");
                return;
            }
            update
                if update.starts_with("kumiki update ")
                    || update.starts_with("kumiki data update ") =>
            {
                format!("{update}{}{}", self.vendor, self.public)
            }
            // Fewer issues than 4,000: what is done with them is the same.
            sample
                if sample.starts_with("kumiki data sample --daily")
                    && !sample.contains("--codes") =>
            {
                format!("{sample} --codes 300")
            }
            lists if LISTS.iter().any(|begin| lists.starts_with(begin)) => {
                format!("{lists}{}", self.vendor)
            }
            other => other.replace(PRIMARY, &primary.unwrap_or_default()),
        };
        let output = self.command(&text).output().unwrap();
        let (out, errors) = texts(&output);
        assert_eq!(output.status.code(), Some(0), "{text}\n{out}\n{errors}");
        assert!(!out.contains("\"errors\""), "{text}\n{out}");
    }
}

/// What is missing from README is seen by what the commands begin with.
fn begins(commands: &[String]) -> BTreeSet<String> {
    let words = |command: &String| command.split(' ').take(2).collect::<Vec<_>>().join(" ");
    commands.iter().map(words).collect()
}

#[test]
fn the_commands_that_keep_data_fresh_and_hand_it_out_do_what_they_say() {
    let commands = [" Keep the data fresh", " Serve files and replicas"].map(commands).concat();
    let expected =
        ["curl --fail", "export KUMIKI_JQUANTS_API_KEY=...", "kumiki rank", "kumiki update"];
    assert!(begins(&commands).iter().eq(expected), "{commands:?}");
    let (folder, vendor) = (tempfile::tempdir().unwrap(), vendor());
    let files = folder.path().join("jquants");
    fs::create_dir(&files).unwrap();
    // What the vendor's files have is what it answers.
    let today = clock::wall_now().jst_date();
    let before = std::iter::successors(today.pred_opt(), JstDate::pred_opt);
    let date = before.skip(30).find(|date| !holidays::is_closed(*date)).unwrap();
    let rows = CODES.map(|code| {
        let c = close(date);
        format!("{date},{code},{c},{},{},{c},0,0,{},1000.5,1.0\n", c + 2, c - 1, 100 * c)
    });
    let name = format!("equities_bars_daily_{}.csv.gz", date.to_string().replace('-', ""));
    daily_files(&files, &[(&name, &rows.concat())]);
    let mut shell = Shell::new(folder.path(), &vendor);
    commands.iter().for_each(|command| shell.run(command));

    let data = DataDir::new(folder.path().join("prices"));
    for name in ["mother.db", "7203.db"] {
        let stored = data.mother().with_file_name(name);
        let loaded = folder.path().join(name);
        assert!(fs::read(stored).unwrap() == fs::read(loaded).unwrap(), "{name}");
    }
    // The first run had all days, and the second asked for the last ones again.
    let days = vendor.take_asked().iter().filter(|path| path.contains("bars/daily")).count();
    assert!((900..1_010).contains(&days), "{days}");
    let replica = shell.services.last().unwrap();
    let health = || -> Value {
        let reply = http::request(replica.address, "GET /health", &[], &[]);
        serde_json::from_str(&reply.text()).unwrap()
    };
    while health()["days"] == 0 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let found = health();
    assert_eq!((&found["status"], &found["codes"]), (&json!("ok"), &json!(3)), "{found}");
}

#[test]
fn the_commands_that_fetch_lists_do_what_they_say() {
    let commands = commands("# Data");
    let (folder, vendor) = (tempfile::tempdir().unwrap(), vendor());
    let mut shell = Shell::new(folder.path(), &vendor);
    let expected = ["kumiki data calendar vendor", "kumiki data instruments vendor"];
    assert_eq!(commands, expected);
    commands.iter().for_each(|command| shell.run(command));
    for (file, rows) in [("markets_calendar.csv", 365), ("instruments.csv", CODES.len())] {
        let text = fs::read_to_string(folder.path().join("vendor").join(file)).unwrap();
        assert!(text.lines().count() > rows, "{file}: {text}");
    }
}

#[test]
fn the_commands_that_rank_and_ask_do_what_they_say() {
    let commands = commands(" Ranking");
    let expected = ["curl --compressed", "kumiki data", "kumiki rank", "kumiki sql"];
    assert!(begins(&commands).iter().eq(expected), "{commands:?}");
    let (folder, vendor) = (tempfile::tempdir().unwrap(), vendor());
    let mut shell = Shell::new(folder.path(), &vendor);
    for command in &commands {
        shell.run(command);
    }
    // And the one that stands in the text.
    let inline =
        "`kumiki sql --data-dir data \"SELECT code,\n  max(close) FROM daily GROUP BY code\"`";
    assert!(README.contains(inline));
    shell.run(inline.trim_matches('`'));
    assert!(folder.path().join("range.parquet").is_file());
}

/// The statements on runs, sweeps and trades, with what the commands of the section on replays leave.
#[test]
fn the_statements_on_what_other_commands_wrote_give_rows() {
    let text = README.split("\n## Ranking\n").nth(1).unwrap();
    let wanted = ["kumiki sql --runs", "kumiki sql --sweeps", "kumiki sql --market-data"];
    let asks = |line: &&str| wanted.iter().any(|begin| line.starts_with(begin));
    let statements: Vec<&str> = text.split("\n## ").next().unwrap().lines().filter(asks).collect();
    assert_eq!(statements.len(), 6, "{statements:?}");
    let (user, vendor) = (UserFolder::empty(), vendor());
    user.good("data sample --out data --days 1 --trades-per-day 400 --bars --instrument 7203.TSE");
    let run = "sma-cross --param fast=20 --data data --instrument 7203.TSE --quiet";
    user.good(&format!("replay run {run} --out runs/one"));
    let grid = run.replace("--param fast=20", "--grid fast=5,10");
    user.good(&format!("replay sweep {grid} --out sweeps/one"));
    let shell = Shell::new(user.folder(), &vendor);
    for statement in statements {
        let output = shell.command(&format!("{statement} --format csv")).output().unwrap();
        let (out, errors) = texts(&output);
        assert_eq!(output.status.code(), Some(0), "{statement}\n{out}\n{errors}");
        // This run tells no stories.
        let is_empty = statement.contains("narrative");
        assert_eq!(out.lines().count() > 1, !is_empty, "{statement}\n{out}");
    }
}

/// Every sentence of README's sections on data, by its first words, and the tests that walk through it.
const SENTENCES: [(&str, &[&str]); 14] = [
    (
        "`kumiki data check data` counts",
        &[
            "a_check_counts_and_goes_on",
            "a_conversion_comes_back_byte_for_byte",
            "a_folder_is_described",
        ],
    ),
    (
        "A day that the file of its month has",
        &["a_replay_reads_a_day_that_only_its_own_file_has_and_one_in_both_once"],
    ),
    ("fetch the exchange's calendar", &["the_commands_that_fetch_lists_do_what_they_say"]),
    (
        "Lists are fetched of the first",
        &[
            "lists_are_asked_for_around_each_day_of_change",
            "lists_of_issues_say_lots_and_price_steps_to_runs",
        ],
    ),
    (
        "No list tells the lots of ETFs",
        &["every_choice_that_an_error_names_is_a_pair_of_the_exchange_and_is_taken"],
    ),
    (
        "Without them Japan's holidays",
        &["the_user_goes_before_the_table_and_the_table_before_prices"],
    ),
    (
        "`kumiki update` fetches the daily prices",
        &["the_commands_that_keep_data_fresh_and_hand_it_out_do_what_they_say"],
    ),
    (
        "Readers see the old state",
        &["a_killed_update_leaves_whole_states_and_the_next_one_ends_it"],
    ),
    (
        "The first run loads four years",
        &["the_commands_that_keep_data_fresh_and_hand_it_out_do_what_they_say"],
    ),
    ("Without network, history comes", &["files"]),
    ("A day is published when", &["complete", "wait"]),
    ("A better source corrects", &["better"]),
    ("A strange day waits", &["accept", "files_are_accepted_as_answers_are"]),
    ("[All about it]", &["the_page_has_these_rules"]),
];

/// Where these tests are.
const SOURCES: [&str; 9] = [
    include_str!("readme_data.rs"),
    include_str!("data_tools.rs"),
    include_str!("day_files.rs"),
    include_str!("instrument_table.rs"),
    include_str!("update_kills.rs"),
    include_str!("../update_rules.rs"),
    include_str!("../../../host/marketdata/src/master.rs"),
    include_str!("../../../host/replay/src/instruments.rs"),
    include_str!("../../../host/update/src/rules.rs"),
];

#[test]
fn every_sentence_on_data_has_a_test() {
    let section = |title: &str, end: &str| {
        let text = README.split(&format!("\n{title}\n")).nth(1).unwrap().split(end).next().unwrap();
        // Without the commands, which have a test of their own.
        text.split("\n```\n").step_by(2).collect::<Vec<_>>().join("\n\n")
    };
    let text =
        [section("### Data", "\n## "), section("## Keep the data fresh", "\n## ")].join("\n\n");
    let paragraphs =
        text.split("\n\n").map(|one| one.split_whitespace().collect::<Vec<_>>().join(" "));
    let sentences: Vec<String> = paragraphs
        .flat_map(|one| one.split(". ").map(str::to_owned).collect::<Vec<_>>())
        .filter(|one| !one.is_empty())
        .collect();
    let begins: Vec<&str> = SENTENCES.iter().map(|(begin, _)| *begin).collect();
    assert_eq!(sentences.len(), begins.len(), "{sentences:#?}");
    for (sentence, (begin, tests)) in sentences.iter().zip(SENTENCES) {
        assert!(sentence.starts_with(begin), "{sentence:?} has no test; {begin:?} was next");
        for test in tests {
            let name = format!("fn {test}()");
            assert!(SOURCES.iter().any(|source| source.contains(&name)), "{test}");
        }
    }
}
