//! `kumiki sql` over what the other commands really write.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use tests::built;
use tests::user_folder::{Said, UserFolder};

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
    let flags = "--runs runs --sweeps sweeps --market-data data";
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
        ("--market-data empty", "equities_trades_*.csv.gz"),
        ("--runs missing", "cannot list missing"),
    ] {
        let said = said(&user, flags, "SELECT 1");
        assert!(said.code == 1 && said.errors.contains(word), "{flags}: {}", said.errors);
    }
    fs::create_dir(user.path("data/trades")).unwrap();
    fs::write(user.path("data/trades/own.csv"), "a\n1\n").unwrap();
    let said = said(&user, "--market-data data --data-dir data", "SELECT 1");
    assert!(said.errors.contains("two views of the name trades"), "{}", said.errors);
}
