//! Sweeps made in parts, as on several machines, and put together: the same bytes as of one machine.

use std::collections::BTreeMap;
use std::fs;

use tests::built;
use tests::schema;
use tests::user_folder::{UserFolder, files_in};

const SWEEP: &str = "replay sweep sma-cross --data data --instrument 7203.TSE --quiet";
const MERGE: &str = "replay merge";
const SMALL: &str = "--grid fast=5:20:5 --grid slow=30:50:10 --param quantity=200";

/// The files of a sweep's folder, the journal left out: its lines are in the order in which runs ended.
fn results(user: &UserFolder, folder: &str) -> BTreeMap<String, Vec<u8>> {
    let mut files = files_in(&user.path(folder));
    files.remove("journal.jsonl");
    files
}

#[test]
fn parts_give_the_bytes_of_one_machine() {
    let user = UserFolder::with_sample(3, 2_000);
    user.good(&format!("{SWEEP} {SMALL} --verify 3 --limit 3 --out whole"));
    for (name, rows) in [("a", "0..5"), ("b", "5..6"), ("c", "6..12")] {
        let part = format!("{SWEEP} {SMALL} --verify 3 --limit 3 --rows {rows} --out {name}");
        let said = user.said(&part);
        assert_eq!(said.code, 0, "{said:?}");
        assert!(said.errors.contains("of 12 runs are done; put the parts together"), "{said:?}");
        assert_eq!(
            schema::checked_values(&user.path(name).join("sweep.partial.json"), "sweep-manifest"),
            1
        );
    }
    // What is missing is named, and nothing is written.
    let (code, errors) = user.bad(&format!("{MERGE} a c --out merged"));
    assert_eq!(code, 3, "{errors}");
    assert!(errors.contains("have 11 of 12 rows and miss 5..6; nothing was written"), "{errors}");
    assert!(!user.path("merged").exists());

    let table = user.good(&format!("{MERGE} c a b --out merged"));
    assert!(table.contains("12 of 12 runs done") && table.contains("best by sharpe"), "{table}");
    let whole = results(&user, "whole");
    assert!(results(&user, "merged") == whole, "the parts gave something else");
    assert_eq!(schema::checked_values(&user.path("merged/journal.jsonl"), "sweep-journal"), 16);
    // Again, over a broken end, and from itself.
    let journal = fs::read(user.path("merged/journal.jsonl")).unwrap();
    fs::remove_file(user.path("merged/sweep.json")).unwrap();
    fs::write(user.path("merged/sweep.csv"), "half").unwrap();
    user.good(&format!("{MERGE} a b c --out merged"));
    user.good(&format!("{MERGE} merged --out merged"));
    assert!(results(&user, "merged") == whole);
    assert!(fs::read(user.path("merged/journal.jsonl")).unwrap() == journal);
    // It is a sweep like another: the same command has nothing to do.
    let said = user.said(&format!("{SWEEP} {SMALL} --verify 3 --limit 3 --out merged"));
    assert!(said.out.contains("12 kept from before; 0 in"), "{said:?}");
    assert!(results(&user, "merged") == whole);
}

#[test]
fn what_parts_leave_is_made_where_they_were_merged() {
    let user = UserFolder::with_sample(8, 1_000);
    let walk = "--grid fast=5,10 --grid slow=20,40 --walk-forward 3d/2d --rank-by return";
    user.good(&format!("{SWEEP} {walk} --out whole"));
    // Three folds of four runs and a test run: the second is cut in two, and has no test run.
    user.good(&format!("{SWEEP} {walk} --rows 0..7 --out a"));
    user.good(&format!("{SWEEP} {walk} --rows 7..15 --out b"));
    let (code, errors) = user.bad(&format!("{MERGE} a b --out merged"));
    assert_eq!(code, 3);
    assert!(errors.contains("have 14 of 15 rows and miss 9..10"), "{errors}");
    let (code, errors) = user.bad(&format!("{MERGE} a b --partial --out merged"));
    assert_eq!(code, 3);
    assert!(errors.contains("`kumiki replay sweep` goes on in merged"), "{errors}");
    assert!(results(&user, "merged").contains_key("sweep.partial.csv"));
    user.good(&format!("{SWEEP} {walk} --out merged"));
    assert!(results(&user, "merged") == results(&user, "whole"));

    // Nothing was made again in these: the test runs are left too.
    for (name, rows) in [("c", "0..5"), ("d", "5..15")] {
        user.good(&format!("{SWEEP} {walk} --rows {rows} --unverified --out {name}"));
    }
    let (_, errors) = user.bad(&format!("{MERGE} c d --partial --out later"));
    assert!(errors.contains("have 12 of 15 rows and miss 4..5, 9..10, 14..15"), "{errors}");
    user.good(&format!("{SWEEP} {walk} --out later"));
    assert!(results(&user, "later") == results(&user, "whole"));

    let grid = "--grid fast=5,10 --grid slow=20,40";
    user.good(&format!("{SWEEP} {grid} --out plain"));
    user.good(&format!("{SWEEP} {grid} --rows 0..4 --unverified --out e"));
    let (code, errors) = user.bad(&format!("{MERGE} e --out plainly"));
    assert_eq!(code, 3);
    assert!(errors.contains("not all of the best runs were made again"), "{errors}");
    let (code, _) = user.bad(&format!("{MERGE} e --partial --out plainly"));
    assert_eq!(code, 3);
    user.good(&format!("{SWEEP} {grid} --out plainly"));
    assert!(results(&user, "plainly") == results(&user, "plain"));
}

/// What a part has found out of a run is so whatever other parts are missing.
#[test]
fn a_merge_of_some_parts_keeps_which_runs_saw_the_future() {
    let user = UserFolder::with_sample(2, 4_000);
    let guest = built::test_guest("peeks-ahead");
    let sweep = format!(
        "replay sweep {} --data data --instrument 7203.TSE --grid a=1:6:1 --quiet",
        guest.display()
    );
    let said = user.said(&format!("{sweep} --rows 0..3 --out a"));
    assert!(said.out.contains("3 of 3 runs SAW THE FUTURE"), "{said:?}");
    let (code, _) = user.bad(&format!("{MERGE} a --partial --out merged"));
    assert_eq!(code, 3);
    let manifest = fs::read_to_string(user.path("merged/sweep.partial.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["runs_saw_the_future"], 3);
    assert_eq!(manifest["best_run"], serde_json::Value::Null);
    // And whoever goes on there has what one machine has.
    for out in ["merged", "whole"] {
        let said = user.said(&format!("{sweep} --out {out}"));
        assert_eq!(said.code, 4, "{said:?}");
    }
    assert!(results(&user, "merged") == results(&user, "whole"));
}

#[test]
fn points_are_run_in_their_order_and_in_parts() {
    let user = UserFolder::with_sample(2, 1_000);
    fs::write(user.path("points.csv"), "fast,slow\n10,40\n5,20.0\n7,30\n").unwrap();
    let lines = "{\"fast\":10,\"slow\":40}\n{\"slow\":20.0,\"fast\":5}\n{\"fast\":7,\"slow\":30}\n";
    fs::write(user.path("points.jsonl"), lines).unwrap();
    user.good(&format!("{SWEEP} --points points.csv --out csv"));
    user.good(&format!("{SWEEP} --points points.jsonl --jobs 1 --out json"));
    assert!(results(&user, "csv") == results(&user, "json"), "the form of the file counts");
    let table = fs::read_to_string(user.path("csv/sweep.csv")).unwrap();
    let cells = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    let found: Vec<_> =
        table.lines().map(cells).map(|row| (row[5].clone(), row[6].clone())).collect();
    let wanted = [("param_fast", "param_slow"), ("10", "40"), ("5", "20"), ("7", "30")];
    assert_eq!(found, wanted.map(|(a, b)| (a.to_owned(), b.to_owned())));
    // The same numbers as from a grid that has the point.
    user.good(&format!("{SWEEP} --grid fast=10 --grid slow=40 --out grid"));
    let digest =
        |text: &str, row: usize| cells(text.lines().nth(row).unwrap()).iter().rev().nth(1).cloned();
    let grid = fs::read_to_string(user.path("grid/sweep.csv")).unwrap();
    assert_eq!(digest(&table, 1), digest(&grid, 1));

    user.good(&format!("{SWEEP} --points points.csv --rows 0..1 --out a"));
    user.good(&format!("{SWEEP} --points points.jsonl --rows 1..3 --out b"));
    let (code, errors) = user.bad(&format!("{MERGE} a b --out merged"));
    assert!(code == 1 && errors.contains("name their file with --points FILE"), "{errors}");
    fs::write(user.path("other.csv"), "fast,slow\n10,40\n5,20\n8,30\n").unwrap();
    let (code, errors) = user.bad(&format!("{MERGE} a b --points other.csv --out merged"));
    assert!(code == 1 && errors.contains("--points is not the file of the parts"), "{errors}");
    user.good(&format!("{MERGE} a b --points points.jsonl --out merged"));
    assert!(results(&user, "merged") == results(&user, "csv"));
    let (_, errors) = user.bad(&format!("{MERGE} grid --points points.csv --out x"));
    assert!(errors.contains("the parts are of a grid; leave --points out"), "{errors}");
    // Other points are another sweep.
    let (_, errors) = user.bad(&format!("{SWEEP} --points other.csv --out csv"));
    assert!(errors.contains("holds another sweep: plan.combinations.xxh3_128"), "{errors}");
}

#[test]
fn parts_of_different_sweeps_are_refused_with_what_is_different() {
    let user = UserFolder::with_sample(1, 1_000);
    user.good(&format!("{SWEEP} --grid fast=5,6 --rows 0..1 --out a"));
    let other = "replay sweep buy-and-hold --data data --instrument 7203.TSE --quiet";
    user.good(&format!("{other} --grid quantity=100,200 --rows 1..2 --out strategy"));
    for (name, arguments, wanted) in [
        ("cash", "--grid fast=5,6 --cash 5000000", "made_from.options.cash is \"10000000\" there"),
        ("grid", "--grid fast=5,7", "made_from.plan.grid[fast].values[1] is \"6\" there"),
        ("params", "--grid fast=5,6 --param slow=50", "made_from.plan.parameters"),
        ("rank", "--grid fast=5,6 --rank-by return", "rank_by is \"sharpe\" there and \"return\""),
        ("verify", "--grid fast=5,6 --verify 0", "verify is 10 there and 0 here"),
        ("window", "--grid fast=5,6 --window 1", "made_from.one_trade_at_a_time"),
        ("strategy", "", "made_from.strategy.name is \"sma-cross\" there"),
    ] {
        if !arguments.is_empty() {
            user.good(&format!("{SWEEP} {arguments} --rows 1..2 --out {name}"));
        }
        let (code, errors) = user.bad(&format!("{MERGE} a {name} --partial --out merged"));
        assert_eq!(code, 1, "{errors}");
        assert!(
            errors.contains("not parts of the same sweep") && errors.contains(wanted),
            "{errors}"
        );
    }
    assert!(!user.path("merged").exists());
    // A folder of another sweep, and one that is none.
    user.good(&format!("{SWEEP} --grid fast=5,6 --rows 1..2 --out b"));
    let (_, errors) = user.bad(&format!("{MERGE} a b --out cash"));
    assert!(errors.contains("made_from.options.cash"), "{errors}");
    let (_, errors) = user.bad(&format!("{MERGE} a b --out data"));
    assert!(errors.contains("holds no sweep"), "{errors}");
    let (_, errors) = user.bad(&format!("{MERGE} a data --out merged"));
    assert!(errors.contains("data is no part of a sweep: it has no journal.jsonl"), "{errors}");
}

#[test]
fn mistakes_with_parts_get_an_answer_that_helps() {
    let user = UserFolder::with_sample(1, 500);
    fs::write(user.path("wrong.csv"), "fast,slow\n5,50\n6\n").unwrap();
    fs::write(user.path("empty.csv"), "\n").unwrap();
    for (arguments, code, wanted) in [
        ("--grid fast=5,6 --rows 1..3 --out out", 1, "the sweep has 2 rows, from 0; ask for 0..2"),
        ("--grid fast=5,6 --rows 1 --out out", 2, "write FIRST..END, like 0..100"),
        ("--grid fast=5,6 --unverified --out out", 2, "--rows"),
        ("--grid fast=5,6 --points wrong.csv --out out", 2, "cannot be used with"),
        ("--out out", 2, "--grid"),
        ("--points wrong.csv --out out", 1, "wrong.csv, line 3: 1 values, the first line names 2"),
        ("--points empty.csv --out out", 1, "empty.csv has no points; write CSV with"),
        ("--points none.csv --out out", 1, "cannot read none.csv"),
        ("--points wrong.csv --random 3 --seed 1 --out out", 2, "cannot be used with"),
    ] {
        let (found, errors) = user.bad(&format!("{SWEEP} {arguments}"));
        assert_eq!(found, code, "{arguments}: {errors}");
        assert!(errors.contains(wanted), "{arguments}: {errors}");
        assert!(!errors.contains("panicked"), "{errors}");
    }
    let (code, errors) = user.bad(&format!("{MERGE} --out out"));
    assert!(code == 2 && errors.contains("<DIR>"), "{errors}");
    let (code, errors) = user.bad(MERGE);
    assert!(code == 2 && errors.contains("--out"), "{errors}");
    // A part without rows tells how many there are.
    let said =
        user.said(&format!("{SWEEP} --grid fast=5:50:5 --rows 0..0 --format json --out part"));
    let value: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, value["sweep"]["runs_total"].as_u64()), (0, Some(10)));
}
