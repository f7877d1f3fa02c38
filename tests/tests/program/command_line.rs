//! The `kumiki` program as its users meet it: real processes, real files.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;
use tests::user_folder::{Said, UserFolder, files_in};
use tests::{built, sample, schema};

/// A folder with two days of sample data of 7203.TSE.
fn user() -> UserFolder {
    UserFolder::with_sample(2, 3_000)
}

const RUN: &str = "replay run sma-cross --data data --instrument 7203.TSE --param fast=5 \
                   --param slow=20";

#[test]
fn a_run_leaves_a_folder_and_two_runs_leave_the_same_bytes() {
    let user = user();
    let table = user.good(&format!("{RUN} --out a"));
    for word in ["sma-cross on 7203.TSE", "completed", "orders", "max drawdown", "report: a"] {
        assert!(table.contains(word), "{word} is missing in\n{table}");
    }
    let first = files_in(&user.path("a"));
    let names: Vec<&str> = first.keys().map(String::as_str).collect();
    for table in results::output::TABLES {
        for form in ["csv", "json", "parquet"] {
            let there = names.contains(&format!("{}.{form}", table.name).as_str());
            assert_eq!(there, (table.name, form) != ("summary", "parquet"), "{names:?}");
        }
    }
    for file in ["manifest.json", "report.html", "events.jsonl", "web_broker_orders_replay.jsonl"] {
        assert!(names.contains(&file), "{names:?}");
    }

    user.good(&format!("{RUN} --out b"));
    assert!(files_in(&user.path("b")) == first, "the same run wrote other bytes");
    user.good(&format!("{RUN} --out a"));
    assert!(files_in(&user.path("a")) == first, "an earlier run is replaced");

    let fills = String::from_utf8(first["fills.csv"].clone()).unwrap();
    let mut lines = fills.lines();
    assert_eq!(
        lines.next().unwrap(),
        "ts_event_ns,instrument_id,client_order_id,venue_order_id,trade_id,side,price,quantity,\
         cumulative_quantity,leaves_quantity,commission,market_price,slippage,origin"
    );
    assert!(lines.next().unwrap().contains(",7203.TSE,O-1,R1,1,BUY,"), "{fills}");
}

#[test]
fn what_a_run_leaves_fits_the_schemas() {
    let user = user();
    user.good(&format!("{RUN} --out a"));
    for (file, schema) in [
        ("a/manifest.json", "run-manifest"),
        ("a/summary.json", "run-summary"),
        ("a/narrative.json", "run-narrative"),
        ("a/events.jsonl", "run-events"),
        ("a/web_broker_orders_replay.jsonl", "audit-log"),
    ] {
        assert!(schema::checked_values(&user.path(file), schema) > 0, "{file} is empty");
    }
}

#[test]
fn every_table_of_a_run_fits_its_schema() {
    let user = user();
    let guest = built::test_guest("trades-at-random");
    user.good(&format!(
        "replay run {} --data data --instrument 7203.TSE --param every=17 --param seed=3 --out a",
        guest.display()
    ));
    for table in results::output::TABLES {
        let file = user.path(&format!("a/{}.json", table.name));
        assert_eq!(schema::checked_values(&file, &format!("run-{}", table.name)), 1);
        let rows: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        assert!(rows.as_array().is_none_or(|rows| !rows.is_empty()), "{} is empty", table.name);
    }
}

#[test]
fn a_report_can_be_made_again_from_the_folder() {
    let user = user();
    user.good(&format!("{RUN} --out a"));
    let first = files_in(&user.path("a"));
    fs::remove_file(user.path("a/report.html")).unwrap();
    assert!(user.good("replay report a").starts_with("report: a"));
    assert!(files_in(&user.path("a")) == first);
    user.good("replay report a --out elsewhere.html");
    assert!(fs::read(user.path("elsewhere.html")).unwrap() == first["report.html"]);
    let (code, errors) = user.bad("replay report data");
    assert_eq!(code, 1);
    assert!(errors.contains("holds no run"), "{errors}");
}

#[test]
fn runs_are_compared() {
    let user = user();
    user.good(&format!("{RUN} --out a"));
    let slower = RUN.replace("slow=20", "slow=40");
    user.good(&format!("{slower} --slippage-ticks 0 --out b"));
    let table = user.good("replay compare a b --out both.html");
    for word in ["parameters.slow", "Sharpe ratio", "b: OPTIMISTIC EXECUTION", "page: both.html"] {
        assert!(table.contains(word), "{word} is missing in\n{table}");
    }
    assert!(!table.contains("parameters.fast"), "only what differs is told: {table}");
    let json = user.good("replay compare a b --format json");
    let json: Value = serde_json::from_str(&json).unwrap();
    let slow = json["differences"].as_array().unwrap().iter();
    let slow = slow.clone().find(|line| line["name"] == "parameters.slow").unwrap();
    assert_eq!(slow["values"], serde_json::json!([20, 40]));
    assert!(fs::read_to_string(user.path("both.html")).unwrap().contains("<title>Kumiki"));
    let (code, _) = user.bad("replay compare a");
    assert_eq!(code, 2);
    let (code, errors) = user.bad("replay compare a a a a a a a a a");
    assert_eq!(code, 2, "{errors}");
}

#[test]
fn a_run_without_decisions_says_so() {
    let user = user();
    user.good(&format!("{RUN} --out a"));
    assert!(user.good("replay narrative a").contains("no decisions"));
    assert!(user.good("replay narrative a --id O-1").contains("no decision explains"));
    assert_eq!(user.good("replay narrative a --format json"), "[]\n");
    let (code, errors) = user.bad("replay narrative a --order X-9");
    assert!(code == 1 && errors.contains("the run has no order `X-9`; it has"), "{errors}");
}

#[test]
fn a_run_without_round_trips_says_so() {
    let user = user();
    let table = user.good("replay run buy-and-hold --data data --instrument 7203.TSE");
    assert!(table.contains("none: no position went back to flat"), "{table}");
}

#[test]
fn json_is_for_scripts() {
    let user = user();
    let text = user.good(&format!("{RUN} --format json --cash 5000000 --latency 250us"));
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["summary"]["status"], "completed");
    assert_eq!(value["summary"]["cash_start"], "5000000");
    assert!(value["summary"]["orders"].as_u64().unwrap() > 10);
    assert_eq!(value["manifest"]["execution_model"]["latency_ns"], 250_000);
    assert_eq!(value["manifest"]["parameters"]["fast"], 5);
    assert_eq!(value["manifest"]["inputs"][0]["file"], "equities_trades_202501.csv.gz");
}

#[test]
fn a_range_of_dates_is_respected() {
    let user = user();
    let rows = |range: &str| {
        let text = user.good(&format!("{RUN} --format json {range}"));
        let value: Value = serde_json::from_str(&text).unwrap();
        value["summary"]["trades_seen"].as_u64().unwrap()
    };
    let all = rows("");
    let (first, second) = (rows("--to 2025-01-06"), rows("--from 2025-01-07"));
    assert!(first > 1_000 && second > 1_000);
    assert_eq!(first + second, all);
    let (code, errors) = user.bad(&format!("{RUN} --from 2025-02-01"));
    assert_eq!(code, 1);
    assert!(errors.contains("has no trades"), "{errors}");
}

#[test]
fn wrong_words_get_an_answer_that_helps() {
    let user = user();
    for (arguments, code, wanted) in [
        (
            "replay run smacross --data data --instrument 7203.TSE",
            1,
            "there are: buy-and-hold, sma-cross",
        ),
        (
            "replay run ./x.wasm --data data --instrument 7203.TSE",
            1,
            "there is no strategy file ./x.wasm",
        ),
        ("replay run sma-cross --data nowhere --instrument 7203.TSE", 1, "nowhere"),
        ("replay run sma-cross --data data --instrument 7203", 2, "like `7203.TSE`"),
        ("replay run sma-cross --data data --instrument 9999.TSE", 1, "has no trades of 9999.TSE"),
        ("replay run sma-cross --data data --instrument 7203.TSE --param fast", 2, "NAME=VALUE"),
        (
            "replay run sma-cross --data data --instrument 7203.TSE --window 0",
            2,
            "it must be 1 to 65536",
        ),
        ("replay run sma-cross --data data --instrument 7203.TSE --latency soon", 2, "like 0ms"),
        ("replay run sma-cross --data data --instrument 7203.TSE --lot 0", 2, "above 0"),
        (
            "replay run sma-cross --data data --instrument 7203.TSE --lot 10 --lot 20",
            2,
            "--lot gives both 10 and 20 for all instruments; give one of them",
        ),
        (
            "replay run sma-cross --data data --instrument 7203.TSE --ticks 7203=etf --ticks \
             7203.TSE=normal",
            2,
            "--ticks gives both etf and normal for 7203.TSE; give one of them",
        ),
        (
            "replay run sma-cross --data data --instrument 7203.TSE --param fats=1",
            3,
            "unknown parameter `fats`; this strategy has: fast, slow, quantity",
        ),
        ("replay run sma-cross --instrument 7203.TSE", 2, "--data"),
        (
            "replay run sma-cross --data data --instrument 7203.TSE --param fast=5 --param fast=6",
            2,
            "`fast` is given twice",
        ),
        (
            "replay run sma-cross --data data --instrument 7203.TSE --from 2025-13-01",
            2,
            "write YYYY-MM-DD",
        ),
        (
            "replay run sma-cross --data data --instrument 7203.TSE --lot 9999.TSE=100",
            2,
            "not among the instruments of this run (7203.TSE)",
        ),
        (
            "replay run sma-cross --data data --instrument 7203.TSE --from 2025-02-02 --to \
             2025-01-01",
            2,
            "--from 2025-02-02 is after --to 2025-01-01",
        ),
        ("replay run sma-cross --data data --instrument 7203.TSE --guest-limit fuel=0", 2, "fuel"),
        ("replay sweep sma-cross --data data --instrument 7203.TSE --grid fast=5", 2, "--out DIR"),
    ] {
        let (found, errors) = user.bad(arguments);
        assert_eq!(found, code, "{arguments}: {errors}");
        assert!(errors.contains(wanted), "{arguments}: {errors}");
        assert!(!errors.contains("panicked"), "{errors}");
    }
}

#[test]
fn a_folder_with_something_else_is_left_alone() {
    let user = user();
    fs::create_dir(user.path("mine")).unwrap();
    fs::write(user.path("mine/thesis.txt"), "years of work").unwrap();
    let (code, errors) = user.bad(&format!("{RUN} --out mine"));
    assert_eq!(code, 1);
    assert!(errors.contains("holds no earlier run"), "{errors}");
    assert_eq!(files_in(&user.path("mine")).len(), 1);
}

#[test]
fn a_run_removes_an_earlier_run_and_nothing_else() {
    let user = user();
    user.good(&format!("{RUN} --out a"));
    user.good(&format!("{RUN} --out a"));
    fs::write(user.path("a/thesis.txt"), "years of work").unwrap();
    let before = files_in(&user.path("a"));
    let (code, errors) = user.bad(&format!("{RUN} --out a"));
    assert_eq!(code, 1);
    assert!(errors.contains("a holds `thesis.txt` beside an earlier run"), "{errors}");
    assert!(files_in(&user.path("a")) == before);

    fs::write(user.path("file"), "mine").unwrap();
    let (_, errors) = user.bad(&format!("{RUN} --out file"));
    assert!(errors.contains("file is no folder"), "{errors}");
    assert_eq!(fs::read(user.path("file")).unwrap(), b"mine");

    fs::create_dir(user.path("extension")).unwrap();
    fs::write(user.path("extension/manifest.json"), r#"{"manifest_version": 3}"#).unwrap();
    let (_, errors) = user.bad(&format!("{RUN} --out extension"));
    assert!(errors.contains("holds no earlier run"), "{errors}");
    assert_eq!(files_in(&user.path("extension")).len(), 1);
}

#[test]
fn a_run_leaves_nothing_aside() {
    let user = user();
    let aside = |folder: &str| {
        let names = fs::read_dir(user.path(folder)).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with(".kumiki-")).count()
    };
    fs::create_dir(user.path("here")).unwrap();
    let arguments = RUN.replace("--data data", "--data ../data --out .");
    let mut command = user.command(&arguments);
    let output = command.current_dir(user.path("here")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("it has no name"));
    assert_eq!(fs::read_dir(user.path("here")).unwrap().count(), 0);

    // A killed run cannot take its folder away; the next one of the same name does.
    let run = format!("{RUN} --speed 1 --quiet --out a");
    let mut child = user.command(&run).stdout(Stdio::null()).spawn().unwrap();
    while aside(".") == 0 {
        assert!(child.try_wait().unwrap().is_none(), "the run ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // One that runs keeps its folder.
    user.good(&format!("{RUN} --out a"));
    assert_eq!(aside("."), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(aside("."), 1);
    user.good(&format!("{RUN} --out b"));
    assert_eq!(aside("."), 1, "another name");
    user.good(&format!("{RUN} --out a"));
    assert_eq!(aside("."), 0);
}

#[test]
fn a_refused_configuration_leaves_the_earlier_run() {
    let user = user();
    user.good(&format!("{RUN} --out a"));
    let before = files_in(&user.path("a"));
    let (code, errors) = user.bad(&format!("{RUN} --param fats=1 --out a"));
    assert_eq!(code, 3);
    assert!(errors.contains("unknown parameter `fats`"), "{errors}");
    assert!(files_in(&user.path("a")) == before);
}

#[test]
fn a_strategy_that_fails_leaves_what_happened_before() {
    let user = user();
    let guest = built::test_guest("panics-in-event");
    let arguments = "--data data --instrument 7203.TSE --param at=500 --out out";
    let output = user.command("replay run").arg(guest).args(arguments.split(' ')).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("strategy `panics-in-event`"), "{errors}");
    assert!(errors.contains("was too much for me"), "{errors}");
    let manifest = fs::read_to_string(user.path("out/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["status"], "failed");
    let fills = fs::read_to_string(user.path("out/fills.csv")).unwrap();
    assert_eq!(fills.lines().count(), 2, "the order before the fault is filled: {fills}");
}

#[test]
fn the_example_of_the_readme_trades() {
    let user = user();
    let arguments = "--data data --instrument 7203.TSE --format json --param below=1000000000";
    let output = user
        .command("replay run")
        .arg(built::example("first-strategy"))
        .args(arguments.split(' '))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(value["summary"]["fills"].as_u64().unwrap() > 0, "{value}");
}

#[test]
fn strategies_can_be_looked_at() {
    let user = user();
    assert_eq!(user.good("strategy list"), "buy-and-hold\nsma-cross\n");
    let text = user.good("strategy check sma-cross --format json");
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["aggressor_side"], "not imported");
    let asks = user.good(&format!(
        "strategy check {} --format json",
        built::test_guest("asks-aggressor").display()
    ));
    let asks: Value = serde_json::from_str(&asks).unwrap();
    assert_eq!(asks["aggressor_side"], "used", "one program that calls it");
    assert_eq!(value["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(value["call_path"], "direct");
    assert_eq!(value["call_path_reason"], "one program, its texts in UTF-8");
    assert!(value["event_ns"].as_u64() > Some(0) && value["event_fuel"].as_u64() > Some(0));
    let text = user.good("strategy check sma-cross");
    assert!(text.contains("direct: one program, its texts in UTF-8"), "{text}");
    assert!(text.contains("the mean of ") && text.contains(" units of fuel"), "{text}");
    let (code, _) = user.bad("strategy check sma-cross --param fast=0");
    assert_eq!(code, 3);
}

#[test]
fn data_is_made_and_checked() {
    let user = user();
    let sample = "data sample --out more --days 1 --trades-per-day 500 --instrument 130A.TSE";
    user.good(sample);
    let first = files_in(&user.path("more"));
    user.good(sample);
    assert!(files_in(&user.path("more")) == first);
    assert!(user.good("data check more data").lines().all(|line| line.starts_with("ok ")));
    let (name, bytes) = first.iter().next().unwrap();
    fs::write(user.path("more").join(name), &bytes[..bytes.len() / 2]).unwrap();
    let output = user.run("data check more");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("the gzip data ends too early"), "{text}");
}

#[test]
fn help_teaches() {
    let user = user();
    let help = user.good("replay run --help");
    for word in ["Examples:", "--execution <MODEL>", "default: 1", "--color <WHEN>"] {
        assert!(help.contains(word), "{word} is missing in\n{help}");
    }
    let help = user.good("help replay run");
    for word in
        ["equities_trades_YYYYMM.csv.gz", "--slippage-ticks <N>", "same-day-round-trips  refuse"]
    {
        assert!(help.contains(word), "{word} is missing in\n{help}");
    }
}

/// What packages have for shells and manuals.
#[test]
fn completions_and_manual_pages_are_made() {
    let user = UserFolder::empty();
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = user.good(&format!("completions {shell}"));
        assert!(script.contains("sweep") && script.contains("cancel-all"), "{shell}");
    }
    assert!(user.good("man").contains(".TH kumiki 1"));
    user.good("man --out pages");
    let pages = files_in(&user.path("pages"));
    assert!(pages.len() >= 45, "{}", pages.len());
    let page = fs::read_to_string(user.path("pages/kumiki-replay-run.1")).unwrap();
    assert!(page.contains("granularity") && page.contains("1,070 yen"), "{page}");
    assert!(page.contains("\n.SH EXAMPLES\n") && !page.contains(".SH EXTRA"), "{page}");
    assert!(!user.path("pages/kumiki-schemas.1").exists());
}

/// A command that has to compile its strategy: the built-in ones may have come compiled.
const CHECK: &str = "strategy check first-strategy.wasm";

fn owner_of_a_strategy() -> UserFolder {
    let user = UserFolder::compiling();
    fs::copy(built::example("first-strategy"), user.path("first-strategy.wasm")).unwrap();
    user
}

/// A command that warns: its cache is a file, so nothing can be kept there.
fn check_without_cache(user: &UserFolder) -> Command {
    fs::write(user.path("file"), "no folder").unwrap();
    user.command(&format!("{CHECK} --cache-dir file"))
}

fn warning(user: &UserFolder, log: &[&str], variable: Option<&str>) -> Said {
    let mut command = check_without_cache(user);
    command.args(log).envs(variable.map(|level| ("KUMIKI_LOG", level)));
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    Said { code, out: text(output.stdout), errors: text(output.stderr) }
}

/// What `strategy check` prints, but for the line that tells how long an event takes.
fn untimed(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with("  an event")).collect()
}

#[test]
fn the_log_has_a_level() {
    let user = owner_of_a_strategy();
    let usual = warning(&user, &[], None);
    assert!(usual.errors.starts_with("warning: the compiled strategy could not be kept: "));
    assert_eq!(usual.errors.lines().count(), 1, "{}", usual.errors);
    for (log, variable, lines) in [
        (&[][..], Some("error"), 0),
        (&["--log", "off"], None, 0),
        (&["--log", "warn"], Some("off"), 1),
        (&["--log=info"], None, 1),
    ] {
        let said = warning(&user, log, variable);
        assert_eq!(said.errors.lines().count(), lines, "{log:?} {variable:?}: {}", said.errors);
        assert_eq!(
            (said.code, untimed(&said.out)),
            (0, untimed(&usual.out)),
            "the log changes nothing"
        );
    }
    let debug = user.said(&format!("--log debug {CHECK}")).errors;
    assert_eq!(debug, "debug: the strategy was compiled name=\"first-strategy\"\n");
    let debug = user.said(&format!("{CHECK} --log debug")).errors;
    assert_eq!(debug, "debug: the compiled strategy came from the cache name=\"first-strategy\"\n");
}

#[test]
fn the_log_can_be_json_lines() {
    let user = owner_of_a_strategy();
    let lines = |said: &Said| -> Vec<Value> {
        said.errors.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let said = warning(&user, &["--log-format", "json"], None);
    let [line] = &lines(&said)[..] else { panic!("{}", said.errors) };
    assert_eq!((&line["level"], &line["target"]), (&"WARN".into(), &"sandbox::engine".into()));
    assert_eq!(line["name"], "first-strategy");
    assert!(line["message"].as_str().unwrap().starts_with("the compiled strategy could not be"));
    assert!(line["timestamp"].as_str().unwrap().ends_with('Z'), "{line}");

    // What the command itself says is JSON too, whatever the level.
    let said = user.said("data check nowhere --log-format json --log off");
    let [line] = &lines(&said)[..] else { panic!("{}", said.errors) };
    assert_eq!((said.code, &line["level"]), (1, &"ERROR".into()));
    assert!(line["message"].as_str().unwrap().contains("nowhere"), "{line}");
}

#[test]
fn failures_are_json_where_the_log_is() {
    let user = user();
    let line = |said: Said| -> Value {
        let [line] = said.errors.lines().collect::<Vec<_>>()[..] else { panic!("{}", said.errors) };
        serde_json::from_str(line).unwrap()
    };
    for (arguments, wanted) in [
        ("replay run --log-format json", "required arguments were not provided"),
        ("--log-format=json data check --nonsense", "unexpected argument '--nonsense'"),
        ("data update --from-files a --days 0 --log-format json", "--days"),
        ("--log-format json --log loud strategy list", "invalid value 'loud'"),
    ] {
        let said = user.said(arguments);
        assert_eq!(said.code, 2, "{arguments}");
        let line = line(said);
        assert_eq!((&line["level"], &line["target"]), (&"ERROR".into(), &"cli".into()));
        let message = line["message"].as_str().unwrap();
        assert!(message.contains(wanted) && !message.starts_with("error"), "{message}");
    }
    let output = user.command("data").env("KUMIKI_LOG_FORMAT", "json").output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(serde_json::from_str::<Value>(text.trim_end()).is_ok(), "{text}");
    assert!(user.good("data --help --log-format json").starts_with("Make, check"));

    let failed = user.said(&format!("{RUN} --param fats=1 --log-format json"));
    assert_eq!(failed.code, 3);
    let line = line(failed);
    assert_eq!(line["level"], "ERROR");
    assert!(line["message"].as_str().unwrap().contains("unknown parameter"), "{line}");
}

#[test]
fn an_empty_variable_of_the_log_is_not_set() {
    let user = owner_of_a_strategy();
    let mut command = check_without_cache(&user);
    let output = command.env("KUMIKI_LOG", "").env("KUMIKI_LOG_FORMAT", "").output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(errors.starts_with("warning: the compiled strategy could not be kept"), "{errors}");
}

#[test]
fn a_wrong_level_of_the_log_is_a_wrong_argument() {
    let user = UserFolder::empty();
    let by_variable = warning(&user, &[], Some("loud"));
    let by_argument = warning(&user, &["--log", "loud"], None);
    for said in [by_variable, by_argument] {
        assert_eq!(said.code, 2);
        let message = "invalid value 'loud' for '--log <LEVEL>'";
        assert!(said.errors.contains(message), "{}", said.errors);
        assert!(said.errors.contains("off, error, warn, info, debug, trace"), "{}", said.errors);
    }
    let (code, errors) = user.bad("strategy list --log-format xml");
    assert_eq!(code, 2);
    assert!(errors.contains("human, json"), "{errors}");
    assert!(user.good("help rank serve").contains("KUMIKI_LOG"));
}

/// Begins a run of minutes into the folder `out` and ends it with Ctrl-C, as a terminal sends it; gives what it
/// said.
#[cfg(unix)]
fn interrupted_run(user: &UserFolder) -> String {
    let guest = built::test_guest("orders-every-tick");
    let mut command = user.command("replay run");
    command.arg(guest).args("--data long --instrument 7203.TSE --quiet --out out".split(' '));
    // Most of its orders are rejected, which would end it first.
    command.args(["--guest-limit", "rejected=1GiB,folder=1GiB"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // Once the folder of the run is begun the data are loaded; how far it is does not matter.
    let is_begun = || {
        let names = fs::read_dir(user.path(".")).unwrap().map(|entry| entry.unwrap().file_name());
        names.into_iter().any(|name| name.to_string_lossy().starts_with(".kumiki-"))
    };
    while !is_begun() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it began");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // The first row is not far away then.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let said = child.wait_with_output().unwrap();
    assert_eq!(said.status.code(), Some(130), "130 says that it was interrupted");
    String::from_utf8(said.stderr).unwrap()
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_keeps_what_it_has() {
    let user = user();
    sample::write(&user.path("long"), "72030", 60, 30_000, 7);
    let manifest = || -> Value {
        serde_json::from_str(&fs::read_to_string(user.path("out/manifest.json")).unwrap()).unwrap()
    };
    for _ in 0..2 {
        // The second takes the place of the first, which has not ended either.
        let said = interrupted_run(&user);
        assert!(said.starts_with("interrupted: the results go up to "), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert_eq!(manifest()["status"], "interrupted");
    }
    // A run that has ended stays.
    user.good("replay run sma-cross --data data --instrument 7203.TSE --quiet --out out");
    let ended = manifest();
    let said = interrupted_run(&user);
    let told = "the results were not written: out keeps the earlier run, which has ended\n";
    assert!(said.ends_with(told), "{said}");
    assert_eq!(manifest(), ended);
}

#[test]
fn a_folder_whose_name_the_engine_misreads_is_refused() {
    let user = UserFolder::empty();
    for begin in ["data update", "rank query", "data sample --daily"] {
        let (code, errors) = user.bad(&format!("{begin} --prices what?"));
        assert_eq!(code, 2, "{begin}: {errors}");
        assert!(errors.contains("what? has a ? in its name"), "{begin}: {errors}");
    }
    assert!(!user.path("what?").exists());
}

/// An engine for a real host ends before anything is prepared where the dialect is not made for that host: the host is
/// judged first, so no name is resolved and nothing is sent.
#[test]
fn serve_ends_with_22_where_the_dialect_is_not_for_the_host() {
    let user = UserFolder::empty();
    for (settings, host) in [
        (&["environment=demo"][..], "demo-kabuka.e-shiten.jp"),
        (&["base_url=https://demo-kabuka.e-shiten.jp/e_api_v4r8/"], "demo-kabuka.e-shiten.jp"),
        (&["environment=prod"], "kabuka.e-shiten.jp"),
    ] {
        let mut command = Command::new(built::kumiki());
        command.args(["serve", "--mode", "live", "--standalone", "--port", "0"]);
        command.arg("--config-dir").arg(user.path("config"));
        command.arg("--cache-dir").arg(user.path("cache"));
        command.args(["--web-broker", "dialect=web-broker-spec"]);
        for setting in settings {
            command.args(["--web-broker", setting]);
        }
        command.env("WEBBROKER_ALLOW_PROD", "1").env("KUMIKI_KEY_STORE", "off");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut engine = command.spawn().unwrap();
        // One that goes on is ended.
        for _ in 0..3_000 {
            if engine.try_wait().unwrap().is_some() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let _ = engine.kill();
        let output = engine.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(22), "{settings:?}: {errors}");
        let words = format!("the dialect web-broker-spec is not made for {host}");
        assert!(errors.contains(&words), "{errors}");
        let numbers = user.path("config").join(venues::web_broker::NUMBERS_FILE);
        assert!(!numbers.exists(), "no request was prepared");
    }
}
