//! `kumiki replay sweep` as its users meet it: real processes, killed, interrupted, resumed.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use marketdata::parquet::{Values, read_table};
use tests::user_folder::UserFolder;
use tests::{built, schema};

/// What must succeed; gives standard output and standard error.
fn good(user: &UserFolder, arguments: &str) -> (String, String) {
    let said = user.said(arguments);
    assert!(said.code == 0, "{arguments}: {}", said.errors);
    (said.out, said.errors)
}

/// The files of a sweep's folder, the journal left out.
fn results(user: &UserFolder, folder: &str) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(user.path(folder)).unwrap().map(Result::unwrap);
    let pair = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, fs::read(entry.path()).unwrap())
    };
    entries.map(pair).filter(|(name, _)| name != "journal.jsonl").collect()
}

fn journal_lines(user: &UserFolder, folder: &str) -> usize {
    let journal = fs::read_to_string(user.path(folder).join("journal.jsonl"));
    journal.map_or(0, |text| text.lines().count())
}
const SWEEP: &str = "replay sweep sma-cross --data data --instrument 7203.TSE --quiet";
const SMALL: &str = "--grid fast=5:15:5 --grid slow=20:40:10 --param quantity=200";

#[test]
fn one_job_and_two_give_the_same_bytes_and_the_numbers_of_single_runs() {
    let user = UserFolder::with_sample(3, 2_000);
    let (table, _) = good(&user, &format!("{SWEEP} {SMALL} --jobs 1 --out one"));
    for word in ["9 of 9 runs done", "best by sharpe", "fast", "slow", "page: one"] {
        assert!(table.contains(word), "{word} is missing in\n{table}");
    }
    good(&user, &format!("{SWEEP} {SMALL} --jobs 2 --window 64 --out two"));
    let one = results(&user, "one");
    assert!(one == results(&user, "two"), "jobs or window changed the bytes");
    let names: Vec<&str> = one.keys().map(String::as_str).collect();
    assert_eq!(names, ["sweep.csv", "sweep.html", "sweep.json", "sweep.parquet"]);
    // The first line of the journal tells what the nine runs were made from; all nine were the best
    // ten, and made again with window 1.
    assert_eq!(schema::checked_values(&user.path("one/journal.jsonl"), "sweep-journal"), 19);
    assert!(table.contains("9 runs came out the same with window 1"), "{table}");
    assert!(table.contains("3 days; it is stated from 32 on"), "{table}");
    assert_eq!(schema::checked_values(&user.path("one/sweep.json"), "sweep-manifest"), 1);
    let defaults = |folder: &str| {
        let manifest = fs::read_to_string(user.path(folder).join("sweep.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        manifest["made_from"]["parameter_defaults"].clone()
    };
    assert_eq!(defaults("one"), serde_json::json!({}), "all three are given");
    good(&user, &format!("{SWEEP} --grid fast=5:15:5 --out others"));
    assert_eq!(defaults("others"), serde_json::json!({ "quantity": 100, "slow": 100 }));

    let table = read_table(user.path("one/sweep.parquet")).unwrap();
    assert_eq!(table.rows(), 9);
    let Some(Values::Text(digests)) = table.column("digest") else { panic!("no digests") };
    let single = "replay run sma-cross --data data --instrument 7203.TSE --quiet --format json";
    let parameters = "--param fast=10 --param slow=30 --param quantity=200";
    let (text, _) = good(&user, &format!("{single} {parameters}"));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    // The last parameter changes fastest: fast=10, slow=30 is the fifth run.
    assert_eq!(value["summary"]["event_log_digest"], digests[4].as_deref().unwrap());
    let different: std::collections::BTreeSet<_> = digests.iter().collect();
    assert_eq!(different.len(), 9);
}

#[test]
fn a_trapping_run_is_a_row_with_its_error() {
    let user = UserFolder::with_sample(1, 2_000);
    let guest = built::test_guest("panics-in-event");
    let output = user
        .command("replay sweep")
        .arg(guest)
        .args("--data data --instrument 7203.TSE --grid at=100,500,1000000000 --out out".split(' '))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("3 of 3 runs done, 2 failed") && text.contains("first failed run: 0"));
    let table = read_table(user.path("out/sweep.parquet")).unwrap();
    let Some(Values::Text(status)) = table.column("status") else { panic!("no status") };
    let status: Vec<&str> = status.iter().flatten().map(AsRef::as_ref).collect();
    assert_eq!(status, ["failed", "failed", "completed"]);
    let Some(Values::Text(errors)) = table.column("error") else { panic!("no errors") };
    assert!(errors[1].as_deref().unwrap().contains("was too much for me"), "{errors:?}");
    assert_eq!(errors[2], None);
    // Where in a window it failed is found out with window 1.
    let guest = built::test_guest("panics-in-event").display().to_string();
    let strict =
        "--data data --instrument 7203.TSE --grid at=100,500,1000000000 --window 1 --out strict";
    good(&user, &format!("replay sweep {guest} {strict}"));
    let table = read_table(user.path("strict/sweep.parquet")).unwrap();
    let Some(Values::Text(strict)) = table.column("error") else { panic!("no errors") };
    assert_eq!(errors, strict);
}

#[test]
fn another_sweep_into_the_same_folder_is_refused() {
    let user = UserFolder::with_sample(1, 1_000);
    good(&user, &format!("{SWEEP} --grid fast=5,6 --out out"));
    let before = results(&user, "out");
    for (arguments, wanted) in [
        ("--grid fast=5,7 --out out", "plan.grid[fast].values[1] is \"6\" there"),
        ("--grid fast=5,6 --cash 5000000 --out out", "options.cash is \"10000000\" there"),
        ("--grid fast=5,6 --slippage-ticks 0 --out out", "options.execution_model"),
        ("--grid fast=5,6 --param slow=50 --out out", "plan.parameters"),
        (
            "--grid fast=5,6 --window 1 --out out",
            "one_trade_at_a_time is false there and true here",
        ),
    ] {
        let (code, errors) = user.bad(&format!("{SWEEP} {arguments}"));
        assert_eq!(code, 1);
        assert!(errors.contains("holds another sweep"), "{errors}");
        assert!(errors.contains(wanted), "{wanted} is missing in {errors}");
    }
    let other = "replay sweep buy-and-hold --data data --instrument 7203.TSE --quiet";
    let (_, errors) = user.bad(&format!("{other} --grid quantity=100,200 --out out"));
    assert!(errors.contains("strategy.name is \"sma-cross\" there"), "{errors}");
    assert!(results(&user, "out") == before);
    // How many jobs, how large a window and what is shown are no part of a sweep.
    let again = format!("{SWEEP} --grid fast=5,6 --jobs 1 --window 64 --limit 1 --out out");
    let (_, notes) = good(&user, &again);
    assert!(notes.contains("2 of 2 runs are kept"), "{notes}");
    assert!(results(&user, "out") == before);
}

#[test]
fn a_folder_with_something_else_is_left_alone() {
    let user = UserFolder::with_sample(1, 500);
    fs::create_dir(user.path("mine")).unwrap();
    fs::write(user.path("mine/thesis.txt"), "years of work").unwrap();
    let (code, errors) = user.bad(&format!("{SWEEP} --grid fast=5,6 --out mine"));
    assert_eq!(code, 1);
    assert!(errors.contains("holds no sweep"), "{errors}");
    assert_eq!(results(&user, "mine").len(), 1);
}

#[test]
fn a_journal_of_something_else_is_left_alone() {
    let user = UserFolder::with_sample(1, 500);
    let arguments = format!("{SWEEP} --grid fast=5 --param slow=20 --out out");
    fs::create_dir(user.path("out")).unwrap();
    // No line, a line without an end, a whole one, and one that is cut like a sweep's.
    for journal in ["", "todo: nothing", "{\"day\":1}\n{\"day\":2}\n", "{\"sweep_"] {
        fs::write(user.path("out/journal.jsonl"), journal).unwrap();
        fs::write(user.path("out/sweep.csv"), "mine").unwrap();
        let said = user.said(&arguments);
        assert_eq!(said.code, 1, "{journal}: {}", said.errors);
        let advice = "does not belong to a sweep; choose another folder";
        assert!(said.errors.contains(advice), "{journal}: {}", said.errors);
        assert_eq!(fs::read_to_string(user.path("out/journal.jsonl")).unwrap(), journal);
        assert_eq!(fs::read_to_string(user.path("out/sweep.csv")).unwrap(), "mine");
    }
    // One that was killed while it wrote the first line goes on.
    fs::remove_file(user.path("out/sweep.csv")).unwrap();
    good(&user, &arguments);
}

#[test]
fn what_single_runs_warn_of_a_sweep_tells_too() {
    let user = UserFolder::with_sample(3, 2_000);
    // Too little money for a second round trip in a day: rule F11 rejects, and each run says how often.
    let poor = "--cash 600000 --same-day-round-trips refuse";
    let (text, _) = good(&user, &format!("{SWEEP} {SMALL} {poor} --out out"));
    let single = format!("replay run sma-cross --data data --instrument 7203.TSE --quiet {poor}");
    let single =
        format!("{single} --param fast=5 --param slow=20 --param quantity=200 --format json");
    let (single, _) = good(&user, &single);
    let single: serde_json::Value = serde_json::from_str(&single).unwrap();
    let note = single["manifest"]["notes"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|note| note.as_str().filter(|note| note.contains("F11")));
    let note = note.unwrap_or_else(|| panic!("no note of F11 in {single:#}"));
    assert!(text.contains("9 of 9 runs warn of something:") && text.contains(note), "{text}");
    let json = fs::read_to_string(user.path("out/sweep.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["runs_warned"], 9);
    assert!(json["warnings"].to_string().contains(note), "{}", json["warnings"]);
    // Of nothing they tell nothing.
    let rich = "--same-day-round-trips allow";
    let (quiet, _) = good(&user, &format!("{SWEEP} {SMALL} {rich} --out quiet"));
    assert!(!quiet.contains("warn of something"), "{quiet}");
    let table = read_table(user.path("out/sweep.parquet")).unwrap();
    let Some(Values::Text(warnings)) = table.column("warning") else { panic!("no warnings") };
    assert_eq!(warnings[0].as_deref(), Some(note));
}

#[test]
fn a_sweep_whose_strategy_refuses_all_configurations_writes_nothing() {
    let user = UserFolder::with_sample(1, 500);
    let (code, errors) = user.bad(&format!("{SWEEP} --grid fats=5,6 --out out"));
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("unknown parameter `fats`"), "{errors}");
    assert!(!errors.contains("note: ") && !user.path("out").exists(), "{errors}");
    good(&user, &format!("{SWEEP} --grid fast=5,6 --out out"));
}

#[test]
fn mistakes_get_an_answer_that_helps() {
    let user = UserFolder::with_sample(1, 500);
    for (arguments, code, wanted) in [
        ("--grid fast=5,6", 2, "give one with --out DIR"),
        ("--out out", 2, "--grid"),
        ("--grid fast=5:50 --out out", 2, "write start:end:step"),
        ("--grid fast=5,6 --param fast=7 --out out", 1, "`fast` is given twice"),
        ("--grid fast=5,6 --random 3 --out out", 2, "--seed"),
        ("--grid fast=1:1000000:1 --grid slow=1,2 --out out", 1, "the limit is 1000000"),
        ("--grid fast=5,6 --walk-forward 3m --out out", 2, "like 3m/1m or 20d/5d"),
        ("--grid fast=5,6 --walk-forward 3m/1m --out out", 1, "the data has 1 trading days"),
        ("--grid fast=5,6 --rank-by luck --out out", 2, "there are: sharpe, return"),
        ("--grid fast=5,6 --jobs 0 --out out", 2, "ask for 1 to 256"),
        ("--grid fast=5,6 --jobs 257 --out out", 2, "ask for 1 to 256"),
        ("--grid fast=5,6 --jobs many --out out", 2, "ask for 1 to 256"),
        ("--grid fast=5,6 --window 0 --out out", 2, "it must be 1 to 65536"),
        ("--grid fast=5,6 --verify few --out out", 2, "--verify"),
    ] {
        let (found, errors) = user.bad(&format!("{SWEEP} {arguments}"));
        assert_eq!(found, code, "{arguments}: {errors}");
        assert!(errors.contains(wanted), "{arguments}: {errors}");
        assert!(!errors.contains("panicked"), "{errors}");
    }
}

#[test]
fn random_sweeps_repeat_and_walk_forward_tests_out_of_sample() {
    let user = UserFolder::with_sample(8, 1_000);
    let random = "--grid fast=2:40:1 --grid slow=50:500:1 --random 6";
    good(&user, &format!("{SWEEP} {random} --seed 7 --out a"));
    good(&user, &format!("{SWEEP} {random} --seed 7 --jobs 1 --out b"));
    good(&user, &format!("{SWEEP} {random} --seed 8 --out c"));
    assert!(results(&user, "a") == results(&user, "b"));
    assert!(results(&user, "a")["sweep.csv"] != results(&user, "c")["sweep.csv"]);

    let walk = "--grid fast=5,10 --grid slow=20,40 --walk-forward 3d/2d --rank-by return";
    let (text, _) = good(&user, &format!("{SWEEP} {walk} --out walk --format json"));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["out_of_sample"].as_array().unwrap().len(), 3);
    assert!(value["sweep"]["out_of_sample_return"].is_f64());
    let csv = fs::read_to_string(user.path("walk/sweep.csv")).unwrap();
    let tests: Vec<Vec<&str>> = csv
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>())
        .filter(|cells| cells[1] == "test")
        .collect();
    let windows: Vec<_> = tests.iter().map(|cells| (cells[3], cells[4])).collect();
    assert_eq!(
        windows,
        [("2025-01-09", "2025-01-10"), ("2025-01-14", "2025-01-15"), ("2025-01-16", "2025-01-16")]
    );
    assert_eq!(csv.lines().count(), 1 + 3 * 5);
}

/// Waits until a sweep has finished so many runs; how long that takes does not matter.
fn wait_for_runs(user: &UserFolder, folder: &str, runs: usize, child: &mut std::process::Child) {
    while journal_lines(user, folder) < runs + 1 {
        assert!(child.try_wait().unwrap().is_none(), "the sweep ended before it could be stopped");
        std::thread::sleep(Duration::from_millis(5));
    }
}

const LONG: &str = "--grid fast=5:64:1 --grid slow=100:104:1";

#[test]
fn a_killed_sweep_goes_on_and_ends_with_the_same_bytes() {
    let user = UserFolder::with_sample(3, 6_000);
    good(&user, &format!("{SWEEP} {LONG} --out whole"));
    let mut kept_before = 0;
    for _ in 0..2 {
        let mut child = user
            .command(&format!("{SWEEP} {LONG} --out killed"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_for_runs(&user, "killed", kept_before + 20, &mut child);
        // On Unix this is SIGKILL: nothing of the program runs any more.
        child.kill().unwrap();
        child.wait().unwrap();
        kept_before = journal_lines(&user, "killed") - 1;
        assert!(kept_before < 300);
    }
    // As if the machine had stopped in the middle of a line.
    let path = user.path("killed/journal.jsonl");
    let journal = fs::read(&path).unwrap();
    fs::write(&path, &journal[..journal.len() - 7]).unwrap();
    let (table, notes) = good(&user, &format!("{SWEEP} {LONG} --out killed"));
    assert!(notes.contains("was cut off") && notes.contains("of 300 runs are kept"), "{notes}");
    assert!(table.contains("300 of 300 runs done"), "{table}");
    assert!(results(&user, "killed") == results(&user, "whole"));
    assert_eq!(journal_lines(&user, "killed"), 311, "and the best ten again");
}

/// Ctrl-C, as a terminal sends it.
#[cfg(unix)]
#[test]
fn an_interrupted_sweep_leaves_a_partial_table_and_goes_on() {
    let user = UserFolder::with_sample(3, 6_000);
    good(&user, &format!("{SWEEP} {LONG} --out whole"));
    let mut child = user
        .command(&format!("{SWEEP} {LONG} --out out"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for_runs(&user, "out", 10, &mut child);
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(child.wait().unwrap().code(), Some(130), "130 says that it was interrupted");
    let partial = results(&user, "out");
    let names: Vec<&str> = partial.keys().map(String::as_str).collect();
    let expected = ["csv", "html", "json", "parquet"].map(|end| format!("sweep.partial.{end}"));
    assert_eq!(names, expected);
    let manifest: serde_json::Value =
        serde_json::from_slice(&partial["sweep.partial.json"]).unwrap();
    assert_eq!(manifest["status"], "partial");
    let done = manifest["runs_done"].as_u64().unwrap();
    assert!((10..300).contains(&done), "{done}");
    let rows = String::from_utf8_lossy(&partial["sweep.partial.csv"]).lines().count() as u64;
    assert_eq!(rows, done + 1);
    good(&user, &format!("{SWEEP} {LONG} --out out"));
    assert!(results(&user, "out") == results(&user, "whole"));
}

#[test]
fn two_sweeps_at_once_into_one_folder_are_refused() {
    let user = UserFolder::with_sample(3, 6_000);
    let mut child = user
        .command(&format!("{SWEEP} {LONG} --out out"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for_runs(&user, "out", 1, &mut child);
    let (code, errors) = user.bad(&format!("{SWEEP} {LONG} --out out"));
    assert_eq!(code, 1);
    assert!(errors.contains("is in use by another sweep"), "{errors}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_strategy_that_reads_ahead_is_caught_and_not_ranked() {
    let user = UserFolder::with_sample(2, 4_000);
    let sweep = |more: &str| {
        let mut command = user.command("replay sweep");
        command.arg(built::test_guest("peeks-ahead"));
        command.args("--data data --instrument 7203.TSE --grid a=1,2,3 --quiet".split(' '));
        let output = command.args(more.split(' ')).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), text, String::from_utf8(output.stderr).unwrap())
    };
    let (code, _, errors) = sweep("--out trusting --verify 0");
    assert_eq!(code, Some(0), "{errors}");
    let trusting = read_table(user.path("trusting/sweep.parquet")).unwrap();
    let Some(Values::Int(fills)) = trusting.column("fills") else { panic!("no fills") };
    assert!(fills.iter().flatten().all(|fills| *fills > 2), "it has to trade to be caught");

    let (code, table, errors) = sweep("--out checked");
    assert_eq!(code, Some(4), "no run is left to be ranked: {errors}");
    assert!(table.contains("3 of 3 runs SAW THE FUTURE and are not ranked"), "{table}");
    assert!(!table.contains("best by"), "{table}");
    let checked = read_table(user.path("checked/sweep.parquet")).unwrap();
    let Some(Values::Text(verified)) = checked.column("verified") else { panic!("not verified") };
    assert!(verified.iter().all(|text| text.as_deref() == Some("saw the future")));
    let manifest = fs::read_to_string(user.path("checked/sweep.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["best_run"], serde_json::Value::Null);
    assert_eq!(manifest["runs_saw_the_future"], 3);
    assert_eq!(manifest["luck"]["trials"], 0);
    let page = fs::read_to_string(user.path("checked/sweep.html")).unwrap();
    assert!(page.contains("\"verified\":[false,false,false]"));

    // One trade at a time it sees nothing, and everything is the same.
    let (code, table, errors) = sweep("--out strict --window 1");
    assert_eq!(code, Some(0), "{errors}");
    assert!(table.contains("3 runs came out the same with window 1"), "{table}");
}

/// A sweep of the guest that reads ahead: its exit code and what it printed.
fn peeking(user: &UserFolder, more: &str) -> (i32, String) {
    let guest = built::test_guest("peeks-ahead");
    let said = user.said(&format!(
        "replay sweep {} --data data --instrument 7203.TSE --quiet {more}",
        guest.display()
    ));
    assert!(!said.errors.contains("panicked"), "{said:?}");
    (said.code, said.out)
}

/// Also from a journal that had no verified runs, as scripts read it, and where a walk forward chooses.
#[test]
fn runs_that_saw_the_future_are_caught_wherever_they_are_shown() {
    let user = UserFolder::with_sample(4, 2_000);
    let json = |more: &str| {
        let (code, text) = peeking(&user, &format!("--format json {more}"));
        (code, serde_json::from_str::<serde_json::Value>(&text).unwrap())
    };
    let (code, value) = json("--grid a=1:12:1 --verify 0 --out out");
    assert_eq!((code, value["top"][0]["verified"].as_str()), (0, None), "nobody has looked");
    // The runs are kept from before, and each that would be named is made again: all of them.
    let (code, value) = json("--grid a=1:12:1 --verify 3 --limit 2 --out out");
    assert_eq!((code, value["kept"].as_u64()), (4, Some(12)), "{value:#}");
    assert_eq!(value["top"], serde_json::json!([]));
    assert_eq!(value["sweep"]["runs_saw_the_future"], 12);
    assert_eq!(value["sweep"]["best_run"], serde_json::Value::Null);
    assert_eq!(value["sweep"]["luck"]["deflated_sharpe_missing"], "no run is ranked");

    let (code, value) = json("--grid a=1,2 --walk-forward 2d/1d --rank-by return --out walk");
    assert_eq!(code, 4, "{value:#}");
    let tests = value["out_of_sample"].as_array().unwrap();
    assert!(!tests.is_empty());
    for test in tests {
        let error = test["error"].as_str().unwrap();
        assert_eq!(error, "every run to choose from failed or saw the future");
    }
    assert_eq!(value["sweep"]["out_of_sample_return"], serde_json::Value::Null);
}

/// Whatever is printed as one of the best was made again, also when more are asked for than `--verify`
/// says.
#[test]
fn every_run_that_is_printed_was_verified() {
    let user = UserFolder::with_sample(2, 1_000);
    let (text, _) =
        good(&user, &format!("{SWEEP} {SMALL} --verify 1 --limit 7 --format json --out out"));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let top = value["top"].as_array().unwrap();
    assert_eq!(top.len(), 7);
    assert!(top.iter().all(|run| run["verified"] == "yes"), "{top:#?}");
}

#[test]
fn sweeps_with_little_to_compare_say_what_is_missing() {
    let user = UserFolder::with_sample(33, 100);
    let luck = |more: &str, runs: usize, failed: usize| {
        let said = user.said(&format!("{SWEEP} {more} --format json --out out"));
        assert!(!said.errors.contains("panicked"), "{said:?}");
        let value: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(value["sweep"]["runs_done"], runs, "{value:#}");
        assert_eq!(value["sweep"]["runs_failed"], failed, "{value:#}");
        let page = fs::read_to_string(user.path("out/sweep.html")).unwrap();
        fs::remove_dir_all(user.path("out")).unwrap();
        assert!(!page.contains("NaN") && !page.contains("Infinity"));
        let luck = value["sweep"]["luck"].clone();
        assert!(!luck.to_string().contains("NaN"), "{luck}");
        (said.code, luck)
    };
    // One run is no choice.
    let (code, one) = luck("--grid fast=5 --grid slow=20", 1, 0);
    assert_eq!((code, one["trials"].as_u64()), (0, Some(1)));
    assert_eq!(one["overfitting_missing"], "it needs two runs to choose from");
    // Runs that never trade: every return is 0 and all are equal.
    let (code, equal) = luck("--grid fast=5,6,7 --param slow=90000", 3, 0);
    assert_eq!((code, equal["trials"].as_u64()), (0, Some(0)), "without a Sharpe ratio");
    assert_eq!(equal["deflated_sharpe_missing"], "the daily returns of the best run do not differ");
    assert!(equal["overfitting_probability"].is_null(), "{equal}");
    assert_eq!(equal["overfitting_missing"], "all runs have the same returns");
    // Some fail, and then all.
    let (_, some) = luck("--grid fast=0,5,6 --param slow=20", 3, 1);
    assert_eq!(some["overfitting_runs"], 2);
    let (code, none) = luck("--grid fast=5,6 --param slow=20 --guest-limit fuel=10", 2, 2);
    assert_eq!((code, none["deflated_sharpe_missing"].as_str()), (3, Some("no run is ranked")));
    assert_eq!(none["overfitting_missing"], "it needs two runs to choose from");
    // A strategy that refuses each configuration ends the sweep before anything is written.
    let (code, errors) = user.bad(&format!("{SWEEP} --grid fast=0 --grid slow=20,30 --out out"));
    assert!(code == 1 && errors.contains("fast"), "{errors}");
    assert!(!user.path("out").exists());
}

#[test]
fn a_sweep_over_enough_days_says_how_much_may_be_luck() {
    let user = UserFolder::with_sample(32, 500);
    let (text, _) = good(&user, &format!("{SWEEP} {SMALL} --out out --format json"));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let luck = &value["sweep"]["luck"];
    assert_eq!((luck["trials"].as_u64(), luck["overfitting_runs"].as_u64()), (Some(9), Some(9)));
    for name in ["deflated_sharpe", "overfitting_probability"] {
        let share = luck[name].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&share), "{name}: {share}");
    }
    assert_eq!(value["top"][0]["verified"], "yes");
    let (table, _) = good(&user, &format!("{SWEEP} {SMALL} --out out"));
    for word in ["deflated Sharpe ratio", "in 9 trials", "probability of overfitting"] {
        assert!(table.contains(word), "{word} is missing in\n{table}");
    }
}
