//! Which file has a day, by one rule for replays, checks, SQL and the update job: a day that the file of its month has
//! is read from there, and one that only its own file has from that.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;
use tests::user_folder::UserFolder;

const KINDS: [&str; 3] = ["trades", "bars_minute", "bars_daily"];
const RUN: &str =
    "replay run sma-cross --param fast=3 --param slow=9 --instrument 7203.TSE --quiet";

fn text_of(path: &Path) -> String {
    let mut text = String::new();
    MultiGzDecoder::new(fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text
}

fn write(path: &Path, text: &str) {
    let mut out = GzEncoder::new(fs::File::create(path).unwrap(), Compression::fast());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap();
}

/// Data of three days in files of a month in `whole`. In `split` the file of the month lacks the second day, which has
/// a file of its own; so has the third, with one row of many, which does not count.
fn user() -> UserFolder {
    let user = UserFolder::empty();
    user.good("data sample --out whole --bars --days 3 --trades-per-day 400 --instrument 7203.TSE");
    fs::create_dir(user.path("split")).unwrap();
    for kind in KINDS {
        let name = |period: &str| format!("equities_{kind}_{period}.csv.gz");
        let text = text_of(&user.path("whole").join(name("202501")));
        let (header, rows) = text.split_once('\n').unwrap();
        let of = |days: &[&str], most: usize| {
            let rows = rows.lines().filter(|row| days.iter().any(|day| row.starts_with(day)));
            let rows: String = rows.take(most).map(|row| format!("{row}\n")).collect();
            assert!(!rows.is_empty(), "{kind} {days:?}");
            format!("{header}\n{rows}")
        };
        let put = |period: &str, text: String| write(&user.path("split").join(name(period)), &text);
        put("202501", of(&["2025-01-06", "2025-01-08"], usize::MAX));
        put("20250107", of(&["2025-01-07"], usize::MAX));
        put("20250108", of(&["2025-01-08"], 1).replace(",100,", ",200,"));
    }
    user
}

/// Only what two files have is a problem: a day that only its own file has is as it should be.
#[test]
fn data_info_tells_the_days_that_two_files_have() {
    let user = user();
    let said = user.said("data info split");
    assert_eq!(said.code, 1, "{said:?}");
    for kind in KINDS {
        let both =
            format!("equities_{kind}_20250108.csv.gz and equities_{kind}_202501.csv.gz overlap");
        assert!(said.out.contains(&both), "{said:?}");
        fs::remove_file(user.path(&format!("split/equities_{kind}_20250108.csv.gz"))).unwrap();
    }
    let table = user.good("data info split");
    assert!(table.contains("20250107") && !table.contains("problem"), "{table}");
}

fn manifest(user: &UserFolder, out: &str) -> Value {
    serde_json::from_slice(&fs::read(user.path(out).join("manifest.json")).unwrap()).unwrap()
}

#[test]
fn a_replay_reads_a_day_that_only_its_own_file_has_and_one_in_both_once() {
    let user = user();
    for granularity in ["trade", "minute", "day"] {
        let flag = match granularity {
            "trade" => String::new(),
            bars => format!("--granularity {bars}"),
        };
        for data in ["whole", "split"] {
            user.good(
                &format!("{RUN} {flag} --data {data} --out {data}-{granularity}")
                    .replace("  ", " "),
            );
        }
        let [whole, split] =
            ["whole", "split"].map(|data| manifest(&user, &format!("{data}-{granularity}")));
        assert_eq!(whole["event_log_digest"], split["event_log_digest"], "{granularity}");
        assert_eq!(whole["end"], split["end"], "{granularity}");
        let kind =
            KINDS[["trade", "minute", "day"].iter().position(|one| *one == granularity).unwrap()];
        let inputs = split["inputs"].to_string();
        assert!(inputs.contains(&format!("equities_{kind}_20250107.csv.gz")), "{inputs}");
        assert!(!inputs.contains("20250108"), "{inputs}");
        let notes = split["notes"].to_string();
        let told = "not read, because the file of its month has the day: equities_";
        assert!(notes.contains(told) && notes.contains("20250108"), "{notes}");
        assert!(!whole["notes"].to_string().contains("not read"), "{whole}");
    }
    // The close before the second day is the first day's, and that before the third is of the second day's own file.
    let begin = |data: &str| {
        user.good(&format!("{RUN} --data {data} --from 2025-01-08 --out {data}-begun"));
        let notes = manifest(&user, &format!("{data}-begun"))["notes"].to_string();
        let base = notes.split("base price of 2025-01-08: ").nth(1).unwrap();
        base.split(" in ").next().unwrap().to_owned()
    };
    let bases = ["whole", "split"].map(begin);
    assert!(bases[0] == bases[1] && bases[0].contains("2025-01-07"), "{bases:?}");
    // Where a code is not found, the error says which file was set aside: it may be there.
    let said = user.said(&format!("{RUN} --data split --out none").replace("7203.TSE", "6758.TSE"));
    let told =
        "not read, because the file of its month has the day: equities_trades_20250108.csv.gz";
    assert!(said.code == 1 && said.errors.contains(told), "{said:?}");
    // What the run was made from is found again.
    user.good("replay verify split-trade --data split --quiet");
}

#[test]
fn sql_and_checks_count_a_day_once() {
    let user = user();
    let counts = "SELECT (SELECT count(*) FROM trades), (SELECT count(*) FROM minute_bars), \
                  (SELECT sum(Vo) FROM daily_bars), (SELECT count(DISTINCT Date) FROM trades)";
    let answers = ["whole", "split"].map(|data| {
        let mut command = user.command(&format!("sql --format csv --data {data}"));
        let output = command.arg(counts).env_remove("DATA_DIR").output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{errors}");
        (String::from_utf8(output.stdout).unwrap(), errors)
    });
    assert_eq!(answers[0].0, answers[1].0);
    assert!(answers[0].0.contains(",3"), "{answers:?}");
    let told = &answers[1].1;
    assert!(told.contains("the file of its month has the day"), "{told}");
    for kind in KINDS {
        assert!(told.contains(&format!("equities_{kind}_20250108.csv.gz")), "{told}");
        assert!(!told.contains(&format!("equities_{kind}_20250107.csv.gz")), "{told}");
    }
    let checked: Value =
        serde_json::from_str(&user.good("data check split --format json")).unwrap();
    let checked = checked.as_array().unwrap();
    assert_eq!(checked.len(), 9);
    for file in checked {
        let is_twice = file["file"].as_str().unwrap().contains("20250108");
        assert_eq!(file["in_month_file"], is_twice, "{file}");
    }
    let table = user.good("data check split");
    let line = "not read by a replay, because the file of its month has the day";
    assert_eq!(table.matches(line).count(), 3, "{table}");
}
