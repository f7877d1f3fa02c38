//! `kumiki replay verify` as its users meet it: runs that come out the same, one that read ahead,
//! and folders, data and strategies that were changed.

use std::collections::BTreeSet;
use std::fs;

use domain::limits::VERIFY_OTHERS_MAX;
use results::output::json;
use serde_json::{Map, Value, json};
use tests::user_folder::{Said, UserFolder};
use tests::{built, sample};

const RUN: &str = "replay run sma-cross --data data --instrument 7203.TSE --quiet";
/// Of a strategy that does nothing: each look at a run compiles its strategy anew.
const QUIET_RUN: &str = "replay run quiet --data data --instrument 7203.TSE --quiet";
const SMALL: &str = "--param fast=5 --param slow=20";

fn verified(user: &UserFolder, arguments: &str) -> (Said, Value) {
    let said = user.said(&format!("replay verify {arguments} --quiet --format json"));
    let value = serde_json::from_str(&said.out).unwrap_or(Value::Null);
    (said, value)
}

#[test]
fn runs_of_every_kind_come_out_the_same() {
    let user = UserFolder::empty();
    user.good("data sample --out data --instrument 7203.TSE --instrument 9984.TSE --days 3 --trades-per-day 2000");
    for (number, options) in [
        format!("{SMALL} --window 1024"),
        format!("{SMALL} --execution realistic --ticks 0.5 --cash 1234567.5"),
        format!("{SMALL} --granularity minute --from 2025-01-07"),
        format!("{SMALL} --instrument 9984.TSE --lot 50 --window 64 --ticks normal"),
    ]
    .into_iter()
    .enumerate()
    {
        let folder = format!("run-{number}");
        user.good(&format!("{RUN} {options} --out {folder}"));
        let before = fs::read(user.path(&folder).join("manifest.json")).unwrap();
        let (said, value) = verified(&user, &folder);
        assert_eq!((said.code, value["verdict"].as_str()), (0, Some("same")), "{said:?}");
        for (run, path) in [(0, "direct"), (1, "general")] {
            let run = &value["found"]["runs"][run];
            assert_eq!(run["path"], path);
            assert_eq!(run["event_log_digest"], value["found"]["event_log_digest"]);
        }
        let said = user.said(&format!("replay verify {folder} --quiet"));
        assert!(said.code == 0 && said.out.contains("window 1: the same"), "{said:?}");
        assert!(said.out.contains("report.html is made from the other files"), "{said:?}");
        assert_eq!(value["not_compared"], serde_json::json!(["report.html"]));
        assert_eq!(fs::read(user.path(&folder).join("manifest.json")).unwrap(), before);
    }
}

/// A run that failed is told again as it was, on both paths, where the fault was the guest's own or a limit.
#[test]
fn runs_that_failed_come_out_the_same() {
    let user = UserFolder::with_sample(2, 2_000);
    let guest = |name: &str| built::test_guest(name).display().to_string();
    for (strategy, options) in [
        (guest("floods-output"), "--param flood=lines --param count=100"),
        (guest("floods-output"), "--param flood=note --param bytes=4000 --param count=100"),
        (guest("returns-huge-lists"), "--param count=257"),
        (guest("floods-log"), "--param line_bytes=20000"),
        // More than one call may hand over, too.
        (guest("floods-log"), "--param line_bytes=20000000"),
        (guest("loops-forever"), "--window 1024 --guest-limit fuel=1000000"),
        (guest("panics-in-event"), "--param at=700"),
        ("sma-cross".to_owned(), "--guest-limit lifecycle-fuel=18000"),
        ("sma-cross".to_owned(), "--guest-limit instances=1"),
    ] {
        let run = format!("replay run {strategy} --data data --instrument 7203.TSE --quiet");
        // Not the run before.
        let _ = fs::remove_dir_all(user.path("failed"));
        let said = user.said(&format!("{run} {options} --out failed"));
        assert_eq!(said.code, 3, "{options}: {said:?}");
        let file =
            if strategy == "sma-cross" { String::new() } else { format!("--strategy {strategy}") };
        let (said, value) = verified(&user, &format!("failed {file}"));
        assert_eq!(
            (said.code, value["verdict"].as_str()),
            (0, Some("same")),
            "{options}: {said:?}"
        );
        assert_eq!(value["found"]["runs"].as_array().unwrap().len(), 2, "{options}");
    }
}

#[test]
fn a_run_that_read_ahead_does_not_come_out_the_same() {
    let user = UserFolder::with_sample(2, 4_000);
    let guest = built::test_guest("peeks-ahead");
    let run = |window: &str, out: &str| {
        let mut command = user.command("replay run");
        command.arg(&guest).args("--data data --instrument 7203.TSE --quiet".split(' '));
        let output = command.args(["--window", window, "--out", out]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run("1024", "cheat");
    run("1", "honest");
    let strategy = format!("--strategy {}", guest.display());
    let (said, value) = verified(&user, &format!("cheat {strategy}"));
    assert_eq!((said.code, value["verdict"].as_str()), (4, Some("different")), "{said:?}");
    let differences = value["found"]["runs"][0]["differences"].as_array().unwrap();
    assert!(differences.iter().any(|one| one["what"] == "event_log_digest"), "{differences:?}");
    let said = user.said(&format!("replay verify cheat {strategy} --quiet"));
    assert!(said.out.contains("NOT THE SAME"), "{said:?}");
    assert!(said.out.contains("it may have seen the future"), "{said:?}");
    let (said, _) = verified(&user, &format!("honest {strategy}"));
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn what_changed_is_named() {
    let user = UserFolder::with_sample(2, 1_000);
    user.good(&format!("{RUN} {SMALL} --out run"));
    sample::write(&user.path("other"), "72030", 2, 1_000, 8);
    let (said, value) = verified(&user, "run --data other");
    assert_eq!((said.code, value["verdict"].as_str()), (5, Some("inputs changed")), "{said:?}");
    let changed = value["found"]["inputs_changed"][0]["what"].as_str().unwrap();
    assert_eq!(changed, "xxh3_128 of the data file equities_trades_202501.csv.gz");
    assert_eq!(value["found"]["runs"], serde_json::json!([]), "nothing was run");

    let (said, value) = verified(&user, "run --strategy buy-and-hold");
    assert_eq!(said.code, 5, "{said:?}");
    let changed = value["found"]["inputs_changed"][0]["what"].as_str().unwrap();
    assert_eq!(changed, "sha256 of the strategy sma-cross");

    let path = user.path("run/manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    let mut manifest: Value = serde_json::from_str(&text).unwrap();
    manifest["event_log_digest"] = "0".repeat(32).into();
    fs::write(&path, manifest.to_string()).unwrap();
    let said = user.said("replay verify run --quiet");
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.out.contains(&format!("event_log_digest: was {}", "0".repeat(32))), "{said:?}");
}

/// The file of a day is not read where that of its whole month is: what it says, and whether it is there, changes
/// nothing.
#[test]
fn data_files_that_no_run_reads_are_left_out() {
    let user = UserFolder::with_sample(1, 500).with_quiet_strategy();
    let (month, day) = ("equities_trades_202501.csv.gz", "equities_trades_20250106.csv.gz");
    let notes = |folder: &str| {
        let manifest = fs::read(user.path(folder).join("manifest.json")).unwrap();
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        manifest["notes"].to_string()
    };
    let note = format!("not read, because the file of its month has the day: {day}");
    let day = user.path("data").join(day);
    user.good(&format!("{QUIET_RUN} --out without"));
    for text in ["no archive", "none either"] {
        fs::write(&day, text).unwrap();
        let (said, value) = verified(&user, "without");
        assert_eq!((said.code, value["verdict"].as_str()), (0, Some("same")), "{text}: {said:?}");
    }
    user.good(&format!("{QUIET_RUN} --out with"));
    assert!(!notes("without").contains(&note) && notes("with").contains(&note));
    fs::write(&day, "changed").unwrap();
    for is_there in [true, false] {
        if !is_there {
            fs::remove_file(&day).unwrap();
        }
        let (said, value) = verified(&user, "with");
        assert_eq!((said.code, value["verdict"].as_str()), (0, Some("same")), "{said:?}");
    }
    // What is read counts, and what is read once the whole month is gone.
    sample::write(&user.path("other"), "72030", 1, 500, 8);
    fs::copy(user.path("other").join(month), user.path("data").join(month)).unwrap();
    let changed = |what: &str| {
        for folder in ["without", "with"] {
            let (said, value) = verified(&user, folder);
            assert_eq!(
                (said.code, value["verdict"].as_str()),
                (5, Some("inputs changed")),
                "{said:?}"
            );
            let changed = value["found"]["inputs_changed"].to_string();
            assert!(changed.contains(&format!("the data file {what}\"")), "{changed}");
        }
    };
    changed(month);
    fs::rename(user.path("data").join(month), &day).unwrap();
    changed("equities_trades_20250106.csv.gz");
}

/// Only the note of files that no run reads may be another one, and only as the program writes it.
#[test]
fn a_note_that_the_program_does_not_write_is_a_difference() {
    let user = UserFolder::with_sample(1, 500).with_quiet_strategy();
    user.good(&format!("{QUIET_RUN} --out run"));
    let path = user.path("run/manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    let start = "not read, because the file of its month has the day";
    let (trades, bars) = ("equities_trades_20250106.csv.gz", "equities_bars_daily_20250106.csv.gz");
    let with = |notes: &[String]| {
        let mut manifest: Value = serde_json::from_str(&text).unwrap();
        let all = manifest["notes"].as_array_mut().unwrap();
        notes.iter().for_each(|note| all.insert(0, note.as_str().into()));
        fs::write(&path, json::text(&manifest)).unwrap();
        let (said, value) = verified(&user, "run");
        (said.code, value["found"]["runs"][0]["differences"].to_string())
    };
    for note in [format!("{start}: {trades}"), format!("{start}: {bars} and 12 more")] {
        assert_eq!(with(&[note]).0, 0);
    }
    for forged in [
        start.to_owned(),
        format!("{start}: nothing; audited by the exchange"),
        format!("{start}: {trades}; audited by the exchange"),
        format!("{start}: {trades} and 2 more; audited by the exchange"),
        format!("{start}: {trades} and many more"),
        format!("{start}: {trades} and 0 more"),
        format!("{start}: {trades} and +2 more"),
        format!("{start}: audited/{trades}"),
        format!("{start}: audited {trades}"),
        format!("{start}: equities_trades_202501.csv.gz"),
        format!("{start}, audited: {trades}"),
    ] {
        let (code, differences) = with(std::slice::from_ref(&forged));
        assert_eq!(code, 4, "{forged}");
        assert!(differences.contains("\"what\":\"notes\""), "{forged}: {differences}");
    }
    let twice = [format!("{start}: {trades}"), format!("{start}: {bars}")];
    assert_eq!(with(&twice).0, 4, "the program writes one");
}

#[test]
fn every_file_is_compared() {
    let user = UserFolder::with_sample(1, 500);
    user.good(&format!("{RUN} {SMALL} --out run"));
    let fills = user.path("run/fills.csv");
    let text = fs::read_to_string(&fills).unwrap();
    fs::write(&fills, text.replacen("7203.TSE", "9984.TSE", 1)).unwrap();
    fs::remove_file(user.path("run/orders.json")).unwrap();
    let (said, value) = verified(&user, "run");
    assert_eq!((said.code, value["verdict"].as_str()), (4, Some("different")), "{said:?}");
    let told = value["found"]["runs"][0]["differences"].to_string();
    assert!(told.contains("the file fills.csv") && told.contains("the file orders.json"), "{told}");
}

#[test]
fn what_no_run_writes_is_told() {
    let user = UserFolder::with_sample(1, 500).with_quiet_strategy();
    user.good(&format!("{QUIET_RUN} --out run"));
    let others = |value: &Value| value["found"]["others"].clone();
    let (said, value) = verified(&user, "run");
    assert_eq!((said.code, others(&value)), (0, json!({ "names": [], "more": 0 })), "{said:?}");
    fs::write(user.path("run/more, and \u{1b}[31m fills.csv"), "1\n").unwrap();
    fs::create_dir(user.path("run/charts")).unwrap();
    let (said, value) = verified(&user, "run");
    let names = ["charts", "more, and \u{1b}[31m fills.csv"];
    assert_eq!(others(&value), json!({ "names": names, "more": 0 }));
    assert_eq!((said.code, value["verdict"].as_str()), (0, Some("same")));
    let told = user.good("replay verify run --quiet");
    let line = "not written by the run, and not looked at: \"charts\", \"more, and \\u{1b}[31m fills.csv\"\n";
    assert!(told.contains(line), "{told}");
    for number in 0..VERIFY_OTHERS_MAX + 3 {
        fs::write(user.path(&format!("run/a{number:03}")), "").unwrap();
    }
    let (_, value) = verified(&user, "run");
    assert_eq!(others(&value)["names"].as_array().unwrap().len(), VERIFY_OTHERS_MAX);
    assert_eq!(others(&value)["more"], 5);
    assert!(user.good("replay verify run --quiet").contains(", \"a099\" and 5 more\n"));
    // Nothing was run, so nothing is said of them.
    fs::write(user.path("data/markets_calendar.csv"), "Date,HolDiv\n2025-01-06,1\n").unwrap();
    let (said, value) = verified(&user, "run");
    assert_eq!((said.code, others(&value)), (5, Value::Null), "{said:?}");
}

#[test]
fn what_the_folder_says_of_instruments_is_no_strategy_s_fault() {
    let user = UserFolder::with_sample(1, 500).with_quiet_strategy();
    user.good(&format!("{QUIET_RUN} --out run"));
    let table = "code,name,market,lot,ticks,from,to\n7203,T,0111,100,topix500,,\n";
    fs::write(user.path("data/instruments.csv"), table).unwrap();
    let (said, value) = verified(&user, "run");
    assert_eq!((said.code, value["verdict"].as_str()), (5, Some("inputs changed")), "{said:?}");
    assert_eq!(value["found"]["inputs_changed"][0]["what"], "instruments.csv");
    assert_eq!(value["found"]["runs"], serde_json::json!([]), "nothing was run");
    let told = |text: &str| {
        let said = user.said("replay verify run --quiet");
        assert!(said.code == 5 && said.out.contains(text), "{text}: {said:?}");
    };
    told("instruments.csv changed since the run: was none, is sha256 ");

    // With the table that it was made with it is the same again, and then the calendar is another one.
    user.good(&format!("{QUIET_RUN} --out run"));
    let manifest = fs::read_to_string(user.path("run/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let settings = &manifest["settings"][0];
    assert_eq!(settings["file"], "instruments.csv");
    assert_eq!(settings["bytes"], 62);
    assert_eq!(user.said("replay verify run --quiet").code, 0);
    // The run's own day is closed in it: there would be no data.
    fs::write(user.path("data/markets_calendar.csv"), "Date,HolDiv\n2025-01-06,0\n2025-01-07,1\n")
        .unwrap();
    told("markets_calendar.csv changed since the run: was none, is sha256 ");
    fs::remove_file(user.path("data/markets_calendar.csv")).unwrap();
    fs::remove_file(user.path("data/instruments.csv")).unwrap();
    told(", 62 bytes, is none");
}

#[test]
fn files_that_gave_only_a_base_price_count() {
    let user = UserFolder::empty().with_quiet_strategy();
    let sample = |start: &str, seed: u32| {
        user.good(&format!(
            "data sample --out data --instrument 7203.TSE --from {start} --days 2 --seed {seed} \
             --trades-per-day 300"
        ));
    };
    sample("2024-12-26", 1);
    sample("2025-01-06", 1);
    user.good(&format!("{QUIET_RUN} --from 2025-01-01 --out run"));
    let manifest = fs::read_to_string(user.path("run/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let inputs = manifest["inputs"].as_array().unwrap();
    assert_eq!(inputs.len(), 2, "{inputs:?}");
    assert_eq!(inputs[1]["file"], "equities_trades_202412.csv.gz");
    assert_eq!(inputs[1]["rows"], 0);
    assert_eq!(user.said("replay verify run --quiet").code, 0);
    fs::remove_file(user.path("data/equities_trades_202412.csv.gz")).unwrap();
    let said = user.said("replay verify run --quiet");
    assert_eq!(said.code, 5, "{said:?}");
    let expected =
        "xxh3_128 of the data file equities_trades_202412.csv.gz changed since the run: was ";
    assert!(said.out.contains(expected) && said.out.contains(", is none"), "{said:?}");
}

/// A manifest is a text that anybody may have written.
#[test]
fn a_forged_manifest_asks_for_no_more_than_a_user_may() {
    let user = UserFolder::with_sample(1, 200).with_quiet_strategy();
    user.good(&format!("{QUIET_RUN} --out run"));
    let path = user.path("run/manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    let forged = |change: &dyn Fn(&mut Value), expected: &str| {
        let mut manifest: Value = serde_json::from_str(&text).unwrap();
        change(&mut manifest);
        fs::write(&path, manifest.to_string()).unwrap();
        let (code, errors) = user.bad("replay verify run --quiet");
        assert!(code == 1 && errors.contains(expected), "{expected}: {errors}");
    };
    for limit in domain::GuestLimit::ALL {
        let expected = format!("is too much for the limit {limit}; give at most ");
        forged(&|manifest| manifest["limits"][limit.name()] = (limit.most() + 1).into(), &expected);
        forged(&|manifest| manifest["limits"][limit.name()] = u64::MAX.into(), &expected);
    }
    forged(&|manifest| manifest["window"] = 0.into(), "window 0, which is 1 to 65536");
    forged(&|manifest| manifest["window"] = 65_537.into(), "window 65537, which is 1 to 65536");
    let manifest = user.path("run/manifest.json");
    let written = fs::read(&manifest).unwrap();
    fs::File::options().write(true).open(&manifest).unwrap().set_len(1 << 30).unwrap();
    for command in ["replay verify run --quiet", "replay report run", "replay compare run run"] {
        let (_, errors) = user.bad(command);
        assert!(errors.contains("has more than 16777216 bytes"), "{command}: {errors}");
    }
    fs::write(&manifest, written).unwrap();
    forged(&|manifest| manifest["lot_asked"] = "1000001".into(), "it must be at most 1000000");
    forged(
        &|manifest| manifest["manifest_version"] = 3.into(),
        "is a manifest of version 3; this program makes runs again from version 4",
    );
}

/// The folder says what a strategy may use, and somebody else may have written it: the user's own limits
/// come before it. Only what comes out is compared then.
#[test]
fn a_limit_of_the_user_stands_in_place_of_that_of_the_run() {
    let user = UserFolder::with_sample(1, 500);
    user.good(&format!("{RUN} {SMALL} --out run --guest-limit memory=1GiB,log=1MiB"));
    let (said, value) = verified(&user, "run --guest-limit orders=1700000");
    assert_eq!((said.code, value["verdict"].as_str()), (0, Some("same")), "{said:?}");
    let (said, value) = verified(&user, "run --guest-limit memory=32MiB,compile=200000");
    assert_eq!((said.code, value["verdict"].as_str()), (0, Some("same")), "{said:?}");
    let expected = json!([
        { "what": "memory", "was": "1073741824", "is": "33554432" },
        { "what": "compile", "was": "300000", "is": "200000" },
    ]);
    assert_eq!(value["found"]["limits_changed"], expected);
    let said = user.said("replay verify run --quiet --guest-limit memory=32MiB");
    assert!(
        said.out.contains("limit memory: 33554432 in place of the run's 1073741824"),
        "{said:?}"
    );
    // Where the strategy needs more, something else comes out.
    let (said, value) = verified(&user, "run --guest-limit memory=64KiB");
    assert_eq!((said.code, value["verdict"].as_str()), (4, Some("different")), "{said:?}");
    let told = value["found"]["runs"][0]["differences"].to_string();
    assert!(told.contains("`--guest-limit memory=128KiB` allows more"), "{told}");
    assert!(!told.contains("limits"), "{told}");
    let said = user.said("replay verify run --quiet --guest-limit memory=64KiB");
    assert!(said.out.contains("with other limits than the run's something else may"), "{said:?}");
    // The user's fuel is no other on the general path, whose adapters use some of it.
    let (said, value) = verified(&user, "run --guest-limit fuel=20");
    assert_eq!(said.code, 4, "{said:?}");
    let told = |path: usize| {
        let differences = value["found"]["runs"][path]["differences"].to_string();
        let advice = differences.split('`').find(|part| part.starts_with("--guest-limit fuel="));
        advice.unwrap_or_else(|| panic!("{differences}")).to_owned()
    };
    assert_eq!(
        (told(0), told(1)),
        ("--guest-limit fuel=40".to_owned(), "--guest-limit fuel=40".to_owned())
    );
    let (said, _) = verified(&user, "run --guest-limit compile=1");
    assert!(said.code == 3 && said.errors.contains("--guest-limit compile="), "{said:?}");
    for (limits, expected) in [
        ("memory=1MiB,memory=2MiB", "the limit memory is given twice"),
        ("memory=2GiB", "is too much for the limit memory"),
        ("memroy=1MiB", "memroy"),
    ] {
        let (_, errors) = user.bad(&format!("replay verify run --quiet --guest-limit {limits}"));
        assert!(errors.contains(expected), "{limits}: {errors}");
    }
}

/// What was changed in the manifest is not what the run was made from: the data are the same.
#[test]
fn a_manifest_whose_words_were_forged_is_different() {
    let user = UserFolder::with_sample(1, 500).with_quiet_strategy();
    user.good(&format!("{QUIET_RUN} --out run"));
    let path = user.path("run/manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    for (field, forged, differs) in [
        ("notes", serde_json::json!(["all is well"]), "notes"),
        // Both runs are asked for it now, and only one had it.
        ("lot_asked", "200".into(), "lot"),
        ("ticks_asked", "etf".into(), "ticks"),
        ("lot", "1".into(), "lot"),
        ("ticks", "etf".into(), "ticks"),
    ] {
        let mut manifest: Value = serde_json::from_str(&text).unwrap();
        manifest[field] = forged;
        fs::write(&path, manifest.to_string()).unwrap();
        let (said, value) = verified(&user, "run");
        assert_eq!((said.code, value["verdict"].as_str()), (4, Some("different")), "{field}");
        let told = value["found"]["runs"][0]["differences"].to_string();
        assert!(told.contains(&format!("\"what\":\"{differs}\"")), "{field}: {told}");
    }
}

/// What a manifest does not say was not found to be the same. What the run is made from is missed before anything
/// runs, by its name; the rest is different.
#[test]
fn a_manifest_without_a_field_is_not_the_same() {
    let user = UserFolder::with_sample(1, 500).with_quiet_strategy();
    let table = "code,name,market,lot,ticks,from,to\n7203,T,0111,100,topix500,,\n";
    fs::write(user.path("data/instruments.csv"), table).unwrap();
    user.good(&format!("{QUIET_RUN} --granularity minute --out run"));
    let path = user.path("run/manifest.json");
    let whole: Map<String, Value> = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let write = |is_there: &dyn Fn(&str) -> bool| {
        let fields = whole.iter().filter(|(name, _)| is_there(name));
        let fields: Map<String, Value> =
            fields.map(|(name, value)| (name.clone(), value.clone())).collect();
        fs::write(&path, json::text(&Value::Object(fields))).unwrap();
    };
    let mut needed = BTreeSet::new();
    let found = loop {
        write(&|name| needed.contains(name));
        let (said, value) = verified(&user, "run");
        if said.code == 4 {
            break value;
        }
        let missed =
            said.errors.split_once("missing field `").and_then(|(_, more)| more.split_once('`'));
        let Some((name, _)) = missed.filter(|_| said.code == 1) else { panic!("{said:?}") };
        assert!(needed.insert(name.to_owned()), "{said:?}");
    };
    let differences = found["found"]["runs"][0]["differences"].as_array().unwrap();
    let told: BTreeSet<&str> = differences
        .iter()
        .filter(|one| one["was"] == "")
        .map(|one| one["what"].as_str().unwrap())
        .collect();
    for name in whole.keys() {
        assert_ne!(needed.contains(name), told.contains(name.as_str()), "{name}: {differences:?}");
    }
    for (name, is) in [
        ("names", r#"{"7203.TSE":"T"}"#),
        ("bars_from", "trades"),
        ("kumiki_version", env!("CARGO_PKG_VERSION")),
        ("manifest_version", "4"),
    ] {
        write(&|other| other != name);
        let said = user.said("replay verify run --quiet");
        let told = format!("NOT THE SAME\n  {name}: was none, is {is}\nagain");
        assert!(said.code == 4 && said.out.contains(&told), "{told}: {said:?}");
    }
    write(&|_| true);
    assert_eq!(user.said("replay verify run --quiet").code, 0);
}

/// A reader of the text may take the first of two fields, the program the last.
#[test]
fn a_manifest_with_a_field_twice_or_spaces_is_different() {
    let user = UserFolder::with_sample(1, 500).with_quiet_strategy();
    user.good(&format!("{QUIET_RUN} --out run"));
    let path = user.path("run/manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    let cash = "  \"cash\": ";
    assert!(text.contains(cash));
    for changed in [text.replace(cash, &format!("  \"cash\": \"5\",\n{cash}")), format!("{text} ")]
    {
        fs::write(&path, changed).unwrap();
        let (said, value) = verified(&user, "run");
        assert_eq!((said.code, value["verdict"].as_str()), (4, Some("different")));
        let told = value["found"]["runs"][0]["differences"].to_string();
        assert!(told.contains("the text of manifest.json"), "{told}");
    }
}

#[test]
fn folders_that_cannot_be_verified_say_why() {
    let user = UserFolder::with_sample(1, 500);
    user.good(&format!("{RUN} {SMALL} --out run"));
    let text = fs::read_to_string(user.path("run/manifest.json")).unwrap();
    for (change, wanted) in [
        (
            ("\"status\": \"completed\"", "\"status\": \"interrupted\""),
            "was interrupted and has no record of where",
        ),
        (("\"granularity\": \"trade\"", "\"granularity\": \"week\""), "granularity week"),
        (("\"name\": \"sma-cross\"", "\"name\": \"../sma-cross\""), "is no built-in one"),
        (("\"lot_asked\": \"\",", ""), "missing field `lot_asked`"),
    ] {
        assert!(text.contains(change.0), "{}", change.0);
        fs::write(user.path("run/manifest.json"), text.replace(change.0, change.1)).unwrap();
        let (code, errors) = user.bad("replay verify run --quiet");
        assert!(code == 1 && errors.contains(wanted), "{wanted}: {errors}");
    }
    fs::write(user.path("run/manifest.json"), text).unwrap();
    for (arguments, wanted) in [
        ("replay verify data", "holds no run"),
        ("replay verify run --data nowhere", "nowhere"),
        ("replay verify run --strategy sma-crss", "there is no built-in strategy"),
    ] {
        let (code, errors) = user.bad(arguments);
        assert!(code == 1 && errors.contains(wanted), "{wanted}: {errors}");
    }
}

/// Commands for rows that the data do not have are not passed over in silence.
#[test]
fn commands_that_a_run_never_comes_to_are_told() {
    let user = UserFolder::with_sample(1, 200);
    let order = json!({
        "client_order_id": "a", "instrument_id": "7203.TSE", "order_side": "BUY", "order_type": "MARKET",
        "quantity": "100", "time_in_force": "DAY", "post_only": false, "reduce_only": false,
    });
    let line = json!({
        "rows_done": 99_999_999, "at": "row", "ts_event_ms": 1_736_121_600_000_u64,
        "command": { "op": "SubmitOrder", "order": order },
    });
    fs::write(user.path("late.jsonl"), format!("{line}\n")).unwrap();
    let said = user.said(&format!("{RUN} {SMALL} --commands late.jsonl"));
    let words = "1 commands of late.jsonl come after the last row of this run, and were not given";
    assert!(said.code == 0 && said.errors.contains(words), "{said:?}");
}
