//! The ranking service without data, with its first data, and with a data folder that was made anew.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use domain::clock::wall_now;
use domain::{JstDate, holidays};
use serde_json::{Value, json};
use tests::built;
use tests::http::{self, Reply};
use tests::serving::Serving;
use tests::update_runs::{Market, UpdateRuns};
use update::Ending;

use crate::daily_market::{GrowingVendor, served};

/// Makes daily prices in a folder.
fn sample(folder: &Path, days: u32, seed: u32) {
    let mut command = Command::new(built::kumiki());
    command.args(["data", "sample", "--daily", "--issues", "6"]);
    command.args(["--days", &days.to_string(), "--seed", &seed.to_string()]);
    let output = command.arg("--prices").arg(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn health(serving: &Serving) -> (Reply, Value) {
    let reply = http::request(serving.address, "GET /health", &[], &[]);
    let told = serde_json::from_slice(&reply.body).unwrap();
    (reply, told)
}

/// Waits until the service has so many days.
fn wait_for_days(serving: &Serving, days: u32) -> Value {
    for _ in 0..6_000 {
        let (_, told) = health(serving);
        if told["days"] == days {
            return told;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{days} days never came: {}", health(serving).1);
}

const RANKING: &str = "{ stockRankingRange(fromDate: \"2000-01-01\", toDate: \"2030-01-01\", \
                       sortBy: \"Close\") { date code close rank } dataset { days lastDate } }";

/// Rows and days of a ranking over all days.
fn rows(serving: &Serving) -> (Value, Value) {
    let answer = serving.ask(RANKING);
    (answer["data"]["stockRankingRange"].clone(), answer["data"]["dataset"].clone())
}

#[test]
fn a_service_starts_without_data_and_takes_up_what_comes() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("not").join("there");
    let serving = Serving::start(&data, &[]);
    let (reply, told) = health(&serving);
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("10")));
    assert_eq!((&told["status"], &told["snapshot_last_date"]), (&json!("no data"), &Value::Null));
    let body = json!({ "query": RANKING }).to_string();
    let refused = http::graphql(serving.address, &body);
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("10")));
    for text in [told["message"].as_str().unwrap(), &refused.text()] {
        assert!(text.contains("`kumiki data update`"), "{text}");
    }
    assert!(refused.text().contains("\"NO_DATA\""), "{}", refused.text());
    // What needs no data is there.
    let dataset = serving.ask("{ schemaVersion dataset { days lastDate } formulas { name } }");
    assert_eq!(dataset["data"]["dataset"], json!({ "days": 0, "lastDate": null }));
    assert_eq!(http::request(serving.address, "GET /", &[], &[]).status, 200);
    let last_date = || serving.metric("kumiki_ranking_snapshot_last_date").unwrap();
    assert_eq!(last_date(), "0");

    sample(&data, 30, 1);
    let told = wait_for_days(&serving, 30);
    assert_eq!(told["status"], "ok");
    assert_eq!(told.get("message"), None);
    let (first, dataset) = rows(&serving);
    assert!(first.as_array().unwrap().len() > 100, "{first}");
    assert_eq!((&dataset["days"], &dataset["lastDate"]), (&json!(30), &told["snapshot_last_date"]));
    let seconds: i64 = last_date().parse().unwrap();
    // Midnight in Japan is 15:00 of the day before.
    assert_eq!(seconds % 86_400, 15 * 3_600);
}

#[cfg(unix)]
#[test]
fn a_data_folder_that_was_made_anew_is_taken_up() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    sample(&data, 30, 1);
    let serving = Serving::start(&data, &[]);
    let (old, _) = rows(&serving);
    fs::remove_dir_all(&data).unwrap();
    // What is gone from the disk is still answered.
    assert_eq!(rows(&serving).0, old);
    sample(&data, 30, 2);
    // The same number and the same days; only the prices are others.
    let mut new = rows(&serving).0;
    for _ in 0..6_000 {
        if new != old {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        new = rows(&serving).0;
    }
    assert_ne!(new, old, "the new prices were never taken up");
    let (_, told) = health(&serving);
    assert_eq!((&told["snapshot"], &told["days"]), (&json!(1), &json!(30)));
    let fresh = Serving::start(&data, &[]);
    assert_eq!(rows(&fresh).0, new);
}

/// Waits until the health has this status.
fn wait_for_status(serving: &Serving, status: &str) -> (Reply, Value) {
    for _ in 0..6_000 {
        let (reply, told) = health(serving);
        if told["status"] == status {
            return (reply, told);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it never was `{status}`: {}", health(serving).1);
}

/// Runs a command over a data folder; its exit code and standard error.
fn told(data: &Path, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(built::kumiki());
    let output = command.args(arguments).env("DATA_DIR", data).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_snapshot_that_cannot_be_used_is_told_and_the_one_before_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    sample(&data, 30, 1);
    let serving = Serving::start(&data, &[]);
    let (before, _) = rows(&serving);
    assert_eq!(health(&serving).1["refused"], Value::Null);
    fs::write(data.join("rank/rank-2.grid"), "nothing").unwrap();
    fs::write(data.join("rank/CURRENT"), "2\n").unwrap();
    let (reply, found) = wait_for_status(&serving, "refused");
    let why = "snapshot 2 is damaged (it has only 7 bytes); publish the data again";
    assert_eq!((reply.status, &found["refused"], &found["days"]), (200, &json!(why), &json!(30)));
    assert_eq!(serving.metric("kumiki_ranking_snapshot_refused").unwrap(), "1");
    assert_eq!(rows(&serving).0, before, "the one before is still served");
    // A service that starts now has none before: it says so, and waits.
    let errors = folder.path().join("errors");
    let mut command = Serving::command(&data, &[]);
    command.stderr(fs::File::create(&errors).unwrap());
    let fresh = Serving::of(command);
    let (reply, found) = health(&fresh);
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("10")));
    assert_eq!((&found["status"], &found["refused"]), (&json!("refused"), &json!(why)));
    let body = json!({ "query": RANKING }).to_string();
    let refused = http::graphql(fresh.address, &body);
    assert_eq!(refused.status, 503);
    for text in [found["message"].as_str().unwrap(), &refused.text()] {
        assert!(text.contains(why) && text.contains("`kumiki rank publish`"), "{text}");
    }
    let log = fs::read_to_string(&errors).unwrap();
    for part in [why, "all rankings are answered 503", &data.display().to_string()] {
        assert!(log.contains(part), "`{part}` is not in\n{log}");
    }
    // What it says to do helps, and both take it up.
    assert_eq!(told(&data, &["rank", "publish"]).0, 0);
    for serving in [&serving, &fresh] {
        let (_, found) = wait_for_status(serving, "ok");
        assert_eq!((&found["snapshot"], &found["refused"]), (&json!(3), &Value::Null));
        assert_eq!(rows(serving).0, before);
    }
}

#[test]
fn an_operator_is_told_why_data_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    sample(&data, 5, 1);
    let grid = data.join("rank/rank-1.grid");
    fs::remove_file(&grid).unwrap();
    let (code, missing) = told(&data, &["rank", "query"]);
    assert_eq!(code, 1);
    assert!(missing.contains("snapshot 1 is damaged (its grid is missing); publish"), "{missing}");
    // A folder can be opened, but not read as a file.
    fs::create_dir(&grid).unwrap();
    for arguments in [&["rank", "query"][..], &["data", "info"]] {
        let (code, errors) = told(&data, arguments);
        let words =
            "the ranking failed while opening the snapshot: the grid's file cannot be read: ";
        assert!(code == 1 && errors.contains(words), "{errors}");
        assert!(!errors.contains("log says why"), "{errors}");
    }
    let (_, errors) = told(&data, &["rank", "query"]);
    assert!(errors.contains(&data.display().to_string()), "{errors}");
    // Clients of a service are not told of the machine.
    let serving = Serving::start(&data, &[]);
    let (reply, found) = health(&serving);
    assert_eq!((reply.status, &found["status"]), (503, &json!("refused")));
    assert_eq!(found["refused"], "the ranking failed while opening the snapshot");
    fs::remove_dir(&grid).unwrap();
    assert_eq!(told(&data, &["rank", "publish"]).0, 0);
    wait_for_status(&serving, "ok");
}

#[test]
fn the_schema_states_the_limits_of_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ["--max-limit", "7", "--max-lag", "1300", "--timeout", "2s", "--max-aliases", "3"];
    let serving = Serving::start(folder.path(), &limits);
    let reply = http::request(serving.address, "GET /schema.graphql", &[], &[]);
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = flat(&reply.text());
    let introspection = "{ __schema { description queryType { description fields { description \
                         args { description } } } } t: __type(name: \"Query\") { description } }";
    let described = flat(&serving.ask(introspection).to_string().replace("\\n", " "));
    for part in ["1 to 7.", "N from 1 to 1,300", "2 seconds", "3 uses of stockRankingRange"] {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
        assert!(described.contains(part), "`{part}` is not in\n{described}");
    }
    assert!(!text.contains("{max-") && !described.contains("{max-"), "{described}");
}

#[test]
fn names_of_a_proxy_can_be_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(folder.path(), &["--allow-host", "rank.example"]);
    let status =
        |host: &str| http::request(serving.address, "GET /metrics", &[("Host", host)], &[]).status;
    assert_eq!((status("rank.example"), status("evil.example")), (200, 421));
}

/// Brackets are counted before fragments are checked, which takes seconds where they are thousands.
#[test]
fn a_document_of_a_thousand_fragments_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    sample(folder.path(), 5, 1);
    let serving = Serving::start(folder.path(), &[]);
    let next = |at: usize| (at + 1) % 1_500;
    let circle: String =
        (0..1_500).map(|at| format!(" fragment F{at} on Query {{ ...F{} }}", next(at))).collect();
    for query in [format!("{{ schemaVersion }}{circle}"), format!("{{ ...F0 }}{circle}")] {
        let reply = http::graphql(serving.address, &json!({ "query": query }).to_string());
        let expected = "the query opens more than 1000 brackets";
        assert!(reply.text().contains(expected), "{} {}", reply.status, reply.text());
    }
}

/// A job that is killed right after its snapshot leaves words on the one before.
#[test]
fn words_on_other_data_say_nothing_of_those_that_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let vendor = GrowingVendor::start();
    vendor.set(5);
    vendor.update(&data, 5);
    let dataset = data.join("update").join("dataset.json");
    let before = fs::read(&dataset).unwrap();
    vendor.set(6);
    vendor.update(&data, 2);
    fs::write(&dataset, before).unwrap();
    let serving = Serving::start(&data, &[]);
    let (reply, told) = health(&serving);
    assert_eq!((reply.status, &told["status"]), (200, &json!("unknown")), "{told}");
    assert_eq!((&told["incomplete"], &told["days_behind"]), (&Value::Null, &Value::Null));
    let message = told["message"].as_str().unwrap();
    assert!(message.contains("belongs to other data than the served ones"), "{message}");
    assert_eq!(served(serving.address).unwrap().0, 6);
    // The next run says how complete they are, and a service that runs takes it up.
    vendor.update(&data, 2);
    for _ in 0..6_000 {
        if health(&serving).1["status"] != "unknown" {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let (_, told) = health(&serving);
    assert_ne!(told["status"], "unknown", "{told}");
    assert_eq!((&told["incomplete"], told.get("message")), (&json!([]), None), "{told}");
    // Of what no job has made nobody waits for words.
    fs::remove_file(&dataset).unwrap();
    assert_eq!(health(&Serving::start(&data, &[])).1["status"], "ok");
}

/// Two days that the update job has published long ago.
fn old_days() -> UpdateRuns {
    let market = Market::of(&[("2025-12-15", 10), ("2025-12-16", 10)]).with_lists(10);
    let mut runs = UpdateRuns::on_disk(market);
    assert_eq!(runs.until("2025-12-16").days(2).run().ending(), Ending::Done);
    runs
}

/// A job that has not run for days is seen by who watches the service, and by who ranks.
#[test]
fn data_that_is_behind_says_so() {
    let runs = old_days();
    let data = runs.data();
    let today = wall_now().jst_date();
    let last: JstDate = "2025-12-16".parse().unwrap();
    let over = last.iter_days().skip(1).take_while(|date| *date < today);
    let over = over.filter(|date| !holidays::is_closed(*date)).count();
    let behind = |days: usize| {
        let serving = Serving::start(data.path(), &["--behind-days", &days.to_string()]);
        let (reply, told) = health(&serving);
        assert_eq!(reply.status, 200);
        told
    };
    for (allowed, status) in [(0, "behind"), (over - 1, "behind"), (over, "ok")] {
        let found = behind(allowed);
        assert_eq!((&found["status"], &found["days_behind"]), (&json!(status), &json!(over)));
    }
    let errors = |more: &[&str]| {
        let (code, errors) = told(data.path(), &[&["rank", "query"], more].concat());
        assert_eq!(code, 0, "{errors}");
        errors
    };
    let words = format!("{over} business day(s) are missing after the last one, 2025-12-16");
    assert!(errors(&[]).contains(&words), "{words}: {}", errors(&[]));
    assert!(errors(&["--from", "2025-12-16", "--to", "2025-12-18"]).contains(&words));
    // Who asks for an older day has it.
    assert_eq!(errors(&["--to", "2025-12-16"]), "");
    // What no job has made is no older than it shall be.
    fs::remove_file(data.update_folder().join("dataset.json")).unwrap();
    assert_eq!((errors(&[]).as_str(), &behind(0)["days_behind"]), ("", &Value::Null));
}

/// A disk that goes away takes no warning with it: what the job has told last stands, and that it is gone.
#[test]
fn health_does_not_forget_what_is_wrong_when_the_folder_goes() {
    let mut runs = old_days();
    runs.change(|market| market.day("2025-12-17", 3));
    assert_eq!(runs.until("2025-12-17").run().ending(), Ending::Incomplete);
    let data = runs.data();
    let serving = Serving::start(data.path(), &[]);
    let (_, before) = wait_for_status(&serving, "incomplete");
    let (there, away) = (data.update_folder(), data.path().join("away"));
    fs::rename(&there, &away).unwrap();
    let (_, lost) = wait_for_status(&serving, "lost");
    assert_eq!(lost["incomplete"], before["incomplete"]);
    let message = lost["message"].as_str().unwrap();
    assert!(message.contains("its file is gone; the last status is shown"), "{message}");
    assert_eq!(serving.metric("kumiki_ranking_incomplete_days").as_deref(), Some("1"));
    fs::rename(&away, &there).unwrap();
    assert_eq!(wait_for_status(&serving, "incomplete").1.get("message"), None);
    // The file is there and is none that a job wrote.
    let dataset = there.join("dataset.json");
    let written = fs::read(&dataset).unwrap();
    fs::write(&dataset, &written[..written.len() / 2]).unwrap();
    let (_, lost) = wait_for_status(&serving, "lost");
    assert_eq!(lost["incomplete"], before["incomplete"]);
    let message = lost["message"].as_str().unwrap();
    assert!(message.contains("dataset.json"), "{message}");
    fs::write(&dataset, written).unwrap();
    assert_eq!(wait_for_status(&serving, "incomplete").1.get("message"), None);
}

#[test]
fn an_answer_whose_fields_are_all_left_out_has_no_fields() {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(folder.path(), &[]);
    for query in
        ["{ dataset @skip(if: true) { days } }", "{ dataset @include(if: false) { days } }"]
    {
        let reply = http::graphql(serving.address, &json!({ "query": query }).to_string());
        assert_eq!((reply.status, reply.text().as_str()), (200, "{\"data\":{}}"), "{query}");
    }
}

/// The same command, with this said to the shell before.
#[cfg(target_os = "linux")]
fn after(limit: &str, serve: &Command, errors: &Path) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{limit} && exec \"$@\"")).arg("sh");
    command.arg(serve.get_program()).args(serve.get_args());
    for (name, value) in serve.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(std::process::Stdio::null()).stderr(fs::File::create(errors).unwrap());
    command
}

/// The files of a process that are sockets.
#[cfg(target_os = "linux")]
fn sockets(process: u32) -> usize {
    let files = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let targets = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
}

/// Waits until something holds.
#[cfg(target_os = "linux")]
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..6_000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it never came: {what}");
}

/// Clients that say nothing hold the files of a service that may have few, but not those that it needs.
#[cfg(target_os = "linux")]
#[test]
fn silent_clients_leave_the_service_its_files() {
    use std::io::Write;
    use std::net::TcpStream;

    let folder = tempfile::tempdir().unwrap();
    let (data, errors) = (folder.path().join("data"), folder.path().join("errors"));
    let vendor = GrowingVendor::start();
    vendor.set(5);
    vendor.update(&data, 5);
    let command = after("ulimit -n 64", &Serving::command(&data, &[]), &errors);
    let mut serving = Serving::of(command);
    let tells = |text: &str| fs::read_to_string(&errors).unwrap().contains(text);
    wait_until("fewer connections", || {
        tells("at most 8 connections, not the 1024 of --max-connections")
    });
    assert_eq!(served(serving.address).unwrap().0, 5);
    let (process, idle) = (serving.child.id(), 1);
    wait_until("no connection", || sockets(process) == idle);
    let silent = || {
        let mut client = TcpStream::connect(serving.address).unwrap();
        client.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n").unwrap();
        client
    };
    let clients: Vec<TcpStream> = (0..100).map(|_| silent()).collect();
    wait_until("all connections", || sockets(process) == idle + 8);
    // Databases are opened for it.
    vendor.set(6);
    vendor.update(&data, 2);
    wait_until("the newer snapshot", || tells("a newer snapshot is used"));
    assert_eq!(serving.child.try_wait().unwrap(), None);
    drop(clients);
    assert_eq!(served(serving.address).unwrap().0, 6);
    assert!(!tells("panicked"), "{}", fs::read_to_string(&errors).unwrap());
}

/// A service takes as many files as it may, up to what its connections need.
#[cfg(target_os = "linux")]
#[test]
fn the_limit_of_open_files_is_raised() {
    let folder = tempfile::tempdir().unwrap();
    let errors = folder.path().join("errors");
    let command = Serving::command(&folder.path().join("data"), &["--max-connections", "100"]);
    let serving = Serving::of(after("ulimit -S -n 64", &command, &errors));
    let limits = fs::read_to_string(format!("/proc/{}/limits", serving.child.id())).unwrap();
    let limits = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let limits: Vec<u64> = limits.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    // A connection may be a download too.
    let wanted = 100 + 100 + ranking::service::FILES_RESERVED;
    let most = limits.get(1).copied().unwrap_or(wanted);
    assert_eq!(limits.first(), Some(&wanted.min(most)));
    let told = fs::read_to_string(&errors).unwrap();
    assert!(!told.contains("--max-connections"), "{told}");
}
