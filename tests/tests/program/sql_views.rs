//! `kumiki sql` over what the other commands really write.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use tests::user_folder::{Said, UserFolder};
use tests::{built, daily_rows};

use crate::update_fixture::{command, texts};

fn said(user: &UserFolder, flags: &str, sql: &str) -> Said {
    let mut command = user.command(&format!("sql --format csv {flags}"));
    let output = command.arg(sql).env_remove("DATA_DIR").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said {
        code: output.status.code().unwrap_or(-1),
        out: text(output.stdout),
        errors: text(output.stderr),
    }
}

/// The rows of an answer, without its header.
fn rows(user: &UserFolder, flags: &str, sql: &str) -> Vec<String> {
    let said = said(user, flags, sql);
    assert_eq!(said.code, 0, "{sql}: {}", said.errors);
    said.out.lines().skip(1).map(str::to_owned).collect()
}

fn lines(path: &PathBuf) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    text.lines().map(str::to_owned).collect()
}

/// The numbers of a run, as its own file has them.
fn summary(user: &UserFolder, run: &str) -> BTreeMap<String, String> {
    let lines = lines(&user.path(run).join("summary.csv"));
    let pair = |line: &String| line.split_once(',').map(|(a, b)| (a.to_owned(), b.to_owned()));
    lines.iter().filter_map(pair).collect()
}

/// Two runs of sma-cross, one of the first example, and a sweep.
fn user() -> UserFolder {
    let user = UserFolder::with_sample(2, 1_500);
    let common = "--data data --instrument 7203.TSE --quiet --same-day-round-trips allow";
    user.good(&format!(
        "replay run sma-cross {common} --param fast=5 --param slow=20 --out runs/a"
    ));
    user.good(&format!(
        "replay run sma-cross {common} --param fast=9 --param slow=30 --out runs/b/c"
    ));
    let example = built::example("first-strategy").display().to_string();
    user.good(&format!("replay run {example} {common} --param below=100000 --out runs/told"));
    let sweep = "--grid fast=5:10:5 --grid slow=20:40:20 --out sweeps/first";
    user.good(&format!("replay sweep sma-cross --data data --instrument 7203.TSE --quiet {sweep}"));
    user
}

#[test]
fn runs_and_their_tables_are_views() {
    let user = user();
    let ask = |sql: &str| rows(&user, "--runs runs", sql);
    let number = |run: &str, name: &str| summary(&user, run)[name].parse::<f64>().unwrap();
    let expected = ["a", "b/c", "told"].map(|run| {
        let path = format!("runs/{run}");
        let strategy = if run == "told" { "first-strategy" } else { "sma-cross" };
        let (orders, profit) = (number(&path, "orders"), number(&path, "profit"));
        format!("{run},{strategy},7203.TSE,{orders},{profit:.4}")
    });
    let overview = "SELECT run, strategy, instrument_id, orders, profit FROM runs ORDER BY run";
    assert_eq!(ask(overview), expected);
    assert!(number("runs/a", "orders") > 50.0, "agreement means something");
    let effective = ask("SELECT parameters->>'fast' FROM runs WHERE run = 'b/c'");
    assert_eq!(effective, ["9"]);
    // Exact yen: what was bought and sold is the turnover that the run states.
    let turnover = "SELECT run, sum(price * quantity) = any_value(turnover) FROM fills \
                    JOIN runs USING (run) GROUP BY run ORDER BY run";
    assert_eq!(ask(turnover), ["a,true", "b/c,true", "told,true"]);
    for table in
        ["orders", "fills", "round_trips", "positions", "equity", "marks", "days", "signals", "log"]
    {
        let stored = lines(&user.path(&format!("runs/a/{table}.csv")));
        let sql = format!("SELECT count(*) FROM \"{table}\" WHERE run = 'a'");
        assert_eq!(ask(&sql), [(stored.len() - 1).to_string()], "{table}");
    }
    let told = lines(&user.path("runs/told/narrative.csv"));
    assert!(told.len() > 1, "the example tells why it orders");
    let found = ask("SELECT run, title, count(*) FROM narrative GROUP BY ALL ORDER BY ALL");
    assert!(found.iter().any(|row| row.starts_with("told,Buy the dip,")), "{found:?}");
    // The next one runs on one run alone, by its own name.
    let one = rows(&user, "--runs runs/b/c", "SELECT DISTINCT run FROM orders");
    assert_eq!(one, ["c"]);
}

#[test]
fn the_audit_logs_sweeps_and_vendor_files_are_views() {
    let user = user();
    let log = lines(&user.path("runs/a/web_broker_orders_replay.jsonl"));
    let phase = |name: &str| {
        let mark = format!("{{\"phase\":\"{name}\"");
        log.iter().filter(|line| line.starts_with(&mark)).count()
    };
    let flags = "--runs runs --sweeps sweeps --data data";
    let ask = |sql: &str| rows(&user, flags, sql);
    let phases = "SELECT phase, count(*) FROM audit WHERE run = 'a' AND phase IN ('accepted', 'submit') \
                  GROUP BY 1 ORDER BY 1";
    let expected =
        [format!("accepted,{}", phase("accepted")), format!("submit,{}", phase("submit"))];
    assert_eq!(ask(phases), expected);
    assert!(phase("submit") > 50, "agreement means something");
    // The log and the table tell of the same orders.
    let missing = "SELECT count(*) FROM orders o ANTI JOIN audit a ON a.run = o.run \
                   AND a.client_order_id = o.client_order_id AND a.phase = 'submit'";
    assert_eq!(ask(missing), ["0"]);
    let swept = ask("SELECT sweep, param_fast, param_slow, status FROM sweeps ORDER BY run");
    assert_eq!(
        swept,
        ["5,20", "5,40", "10,20", "10,40"].map(|params| format!("first,{params},completed"))
    );
    let trades = ask("SELECT Code, min(Date), sum(TradingVolume) > 0 FROM trades GROUP BY 1");
    assert_eq!(trades, ["72030,2025-01-06,true"]);
    let seen = ask("SELECT count(*) - any_value(trades_seen) FROM trades, runs WHERE run = 'a'");
    assert_eq!(seen, ["0"]);
    // Nothing else of the folder can be opened, and nothing is changed.
    let closed = said(&user, flags, "SELECT * FROM read_csv('runs/a/summary.csv')");
    assert!(closed.code == 1 && closed.errors.contains("disabled"), "{}", closed.errors);
}

#[test]
fn folders_that_hold_something_else_are_named() {
    let user = UserFolder::with_sample(1, 10);
    fs::create_dir(user.path("empty")).unwrap();
    for (flags, word) in [
        ("--runs empty", "it holds no run"),
        ("--runs data", "it holds no run"),
        ("--sweeps empty", "it holds no complete sweep"),
        ("--data empty", "equities_trades_*.csv.gz"),
        ("--runs missing", "cannot list missing"),
    ] {
        let said = said(&user, flags, "SELECT 1");
        assert!(said.code == 1 && said.errors.contains(word), "{flags}: {}", said.errors);
    }
    fs::create_dir(user.path("data/trades")).unwrap();
    fs::write(user.path("data/trades/own.csv"), "a\n1\n").unwrap();
    let said = said(&user, "--data data --prices data", "SELECT 1");
    assert!(said.errors.contains("two views would have the name trades"), "{}", said.errors);
}

/// A folder with one day of trades and its bars.
fn one_day() -> UserFolder {
    let user = UserFolder::empty();
    user.good("data sample --out data --days 1 --trades-per-day 300 --bars");
    user
}

#[test]
fn bars_are_views_that_agree_with_the_trades() {
    let user = one_day();
    let ask = |sql: &str| rows(&user, "--data data", sql);
    // A minute has one bar, whose prices and volume are those of its trades.
    let minutes =
        "SELECT count(*), count(DISTINCT Time), sum(Vo)::BIGINT, max(H), min(L) FROM minute_bars";
    let trades = "SELECT count(DISTINCT Time[:5]), count(DISTINCT Time[:5]), sum(TradingVolume), \
                  max(Price), min(Price) FROM trades";
    let expected = ask(trades);
    assert_eq!(ask(minutes), expected);
    assert!(!expected[0].starts_with("1,"), "agreement means something: {expected:?}");
    let busiest = "SELECT Time, sum(Vo) FROM minute_bars GROUP BY 1 ORDER BY 2 DESC LIMIT 1";
    assert!(ask(busiest)[0].as_bytes()[2] == b':', "a time is text: {:?}", ask(busiest));
    let days = "SELECT Date, Code, H >= L AND Vo > 0 FROM daily_bars";
    assert_eq!(ask(days), ["2025-01-06,72030,true"]);
}

#[test]
fn a_day_whose_month_has_a_file_counts_once() {
    let user = one_day();
    let counts = "SELECT (SELECT count(*) FROM trades), (SELECT count(*) FROM minute_bars), \
                  (SELECT count(*) FROM daily_bars)";
    let alone = rows(&user, "--data data", counts);
    assert!(!alone[0].starts_with("0,"), "{alone:?}");
    for kind in ["trades", "bars_minute", "bars_daily"] {
        let name = |period: &str| user.path(&format!("data/equities_{kind}_{period}.csv.gz"));
        fs::copy(name("202501"), name("20250106")).unwrap();
    }
    let said = said(&user, "--data data", counts);
    assert_eq!(said.out.lines().nth(1), Some(alone[0].as_str()));
    for kind in ["trades", "bars_minute", "bars_daily"] {
        let name = format!("equities_{kind}_20250106.csv.gz");
        assert!(said.errors.contains(&name), "{}", said.errors);
    }
    assert!(said.errors.contains("the file of its month has the day"), "{}", said.errors);
    // Alone it is read.
    for kind in ["trades", "bars_minute", "bars_daily"] {
        fs::remove_file(user.path(&format!("data/equities_{kind}_202501.csv.gz"))).unwrap();
    }
    assert_eq!(rows(&user, "--data data", counts), alone);
}

/// Copies the files of a folder into another one.
fn copy_run(user: &UserFolder, to: &str) {
    let to = user.path(to);
    fs::create_dir_all(&to).unwrap();
    for entry in fs::read_dir(user.path("runs/a")).unwrap().flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Puts `new` in the place of `old` in a file of a run.
fn change(user: &UserFolder, file: &str, old: &str, new: &str) {
    let text = fs::read_to_string(user.path(file)).unwrap();
    assert!(text.contains(old), "{old} is not in {text}");
    fs::write(user.path(file), text.replacen(old, new, 1)).unwrap();
}

#[test]
fn runs_that_are_none_are_told_and_do_not_refuse_the_others() {
    let user = UserFolder::with_sample(1, 1_500);
    let run = "replay run sma-cross --data data --instrument 7203.TSE --quiet --out runs/a \
               --same-day-round-trips allow --param fast=5 --param slow=20";
    user.good(run);
    for name in ["cut", "dated", "counted", "blank", "st[ar]", "x/y/z", "x/y/z/deep"] {
        copy_run(&user, &format!("runs/{name}"));
    }
    fs::write(user.path("runs/cut/manifest.json"), "{\"strategy\":").unwrap();
    change(
        &user,
        "runs/dated/manifest.json",
        "\"start\": \"2025-01-06\"",
        "\"start\": \"6 January\"",
    );
    let orders = format!("orders,{}\n", summary(&user, "runs/a")["orders"]);
    change(&user, "runs/counted/summary.csv", &orders, "orders,many\n");
    fs::remove_file(user.path("runs/blank/summary.csv")).unwrap();
    // A run is taken as a whole, so what is deeper lies beside it.
    fs::remove_file(user.path("runs/x/y/z/manifest.json")).unwrap();
    #[cfg(unix)]
    for (target, link) in [(".", "runs/again"), ("a", "runs/newest")] {
        std::os::unix::fs::symlink(target, user.path(link)).unwrap();
    }
    for sql in [
        "SELECT run FROM runs",
        "SELECT DISTINCT run FROM orders",
        "SELECT DISTINCT run FROM audit",
    ] {
        let said = said(&user, "--runs runs", sql);
        assert_eq!((said.code, said.out.as_str()), (0, "run\na\n"), "{sql}: {}", said.errors);
        let cut = "manifest.json, line 1: expected JSON, found `EOF while parsing a value at line 1 column 12`; \
                   run the replay again: cut\n";
        assert!(said.errors.contains(cut), "{}", said.errors);
        for part in [
            "its start_date in manifest.json is no date: `6 January`: dated\n",
            "its orders in summary.csv is no number: `many`: counted\n",
            "it has no summary.csv: blank\n",
            "its name has *, ? or [, which stand for other names: st[ar]\n",
            "it lies more than 3 folders below: x/y/z/deep\n",
        ] {
            let line = format!("note: left out, because {part}");
            assert!(said.errors.contains(&line), "`{line}` is not in\n{}", said.errors);
        }
        #[cfg(unix)]
        assert!(said.errors.contains("links are not followed: again, newest\n"), "{}", said.errors);
    }
    // Where nothing is left, that is an error, and the reason stands before it.
    let said = said(&user, "--runs runs/cut", "SELECT 1");
    assert_eq!(said.code, 1);
    assert!(said.errors.contains("EOF while parsing") && said.errors.contains("it holds no run"));
}

#[test]
fn a_value_that_cannot_be_is_told_with_its_file_and_line() {
    let user = one_day();
    let packed = user.path("data/equities_trades_202501.csv.gz");
    let mut text = String::new();
    MultiGzDecoder::new(fs::File::open(&packed).unwrap()).read_to_string(&mut text).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[6] = lines[6].replacen("2025-01-06", "06.01.2025", 1);
    let bad = user.path("data/equities_trades_202502.csv.gz");
    let mut encoder = GzEncoder::new(fs::File::create(&bad).unwrap(), Compression::fast());
    encoder.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
    encoder.finish().unwrap();
    let said = said(&user, "--data data", "SELECT max(Date) FROM trades");
    assert_eq!(said.code, 1);
    for part in [
        "equities_trades_202502.csv.gz, line 7: Date is `06.01.2025`, which is no date (YYYY-MM-DD)",
        "mend the file, or move it out of the folder",
    ] {
        assert!(said.errors.contains(part), "`{part}` is not in\n{}", said.errors);
    }
    // What is not asked for the date has its answer, and so have the other views.
    assert_eq!(rows(&user, "--data data", "SELECT count(*) > 0 FROM daily_bars"), ["true"]);
    fs::write(user.path("data/equities_bars_minute_202502.csv.gz"), "nothing").unwrap();
    assert_eq!(rows(&user, "--data data", "SELECT count(*) > 0 FROM daily_bars"), ["true"]);
    let minutes = self::said(&user, "--data data", "SELECT count(*) FROM minute_bars");
    assert_eq!(minutes.code, 1);
    let part = "the files of minute_bars cannot be read";
    assert!(minutes.errors.contains(part), "{}", minutes.errors);
    assert!(minutes.errors.contains("equities_bars_minute_202502.csv.gz"), "{}", minutes.errors);
}

#[test]
fn a_view_whose_files_are_missing_says_which() {
    let folder = tempfile::tempdir().unwrap();
    let row = daily_rows::row("7203", "2025-12-16".parse().unwrap(), 500, None);
    daily_rows::publish(folder.path(), &[row]);
    let errors = |sql: &str| {
        let output = command(folder.path(), &["sql", sql]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{:?}", texts(&output));
        texts(&output).1
    };
    for (name, words) in [
        (
            "listed_issue",
            "listed_info.db is not there; load daily prices with `kumiki data update`",
        ),
        ("minute", "minute is not there; put files there, as Parquet, CSV or JSON lines"),
        ("audit", "Parquet, CSV or JSON lines, or name a folder with --runs or --config-dir"),
        ("runs", "its folder is not there; name it with --runs"),
    ] {
        let told = errors(&format!("SELECT * FROM {name}"));
        assert!(
            told.contains(&format!("there is no view {name}: ")) && told.contains(words),
            "{told}"
        );
    }
    assert!(errors("SELECT * FROM nothing").contains("nothing does not exist"));
}

/// A view of somebody else's in the place of `daily` may wait for ever: it is not looked at.
#[cfg(unix)]
#[test]
fn a_view_over_a_pipe_holds_no_statement_up() {
    use std::process::{Command, Stdio};

    let folder = tempfile::tempdir().unwrap();
    let (data, pipe) = (pricestore::DataDir::new(folder.path()), folder.path().join("pipe.csv"));
    fs::create_dir_all(data.mother().parent().unwrap()).unwrap();
    fs::write(&pipe, "date,code\n2025-12-15,1301\n").unwrap();
    let view = format!(
        "CREATE VIEW daily AS SELECT * FROM read_csv('{}'); CREATE TABLE other AS SELECT 7 AS n",
        pipe.display()
    );
    duckdb::Connection::open(data.mother()).unwrap().execute_batch(&view).unwrap();
    fs::remove_file(&pipe).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let answer = |sql: &str| {
        let mut sql = command(folder.path(), &["sql", sql, "--format", "csv"]);
        let mut child = sql.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Who waits for the pipe is let go by its other end.
        let ended = (0..600).any(|_| {
            domain::clock::sleep(std::time::Duration::from_millis(100));
            child.try_wait().unwrap().is_some()
        });
        if !ended {
            child.kill().unwrap();
        }
        assert!(ended, "it waits for the pipe");
        texts(&child.wait_with_output().unwrap())
    };
    let (rows, errors) = answer("SELECT n FROM other");
    assert_eq!(rows, "n\n7\n", "{errors}");
    assert!(errors.contains("there is no view daily: daily cannot be read"), "{errors}");
    assert!(answer("SELECT * FROM daily").1.contains("daily cannot be read"));
}
