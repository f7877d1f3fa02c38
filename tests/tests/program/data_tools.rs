//! `kumiki data check`, `convert` and `info` as their users meet them: real processes, real files.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use tests::user_folder::UserFolder;

const FILE: &str = "data/equities_trades_202501.csv.gz";

/// A folder with two days of sample data of 7203.TSE.
fn user() -> UserFolder {
    UserFolder::with_sample(2, 2_000)
}

/// What must fail; gives its exit code, standard output and standard error.
fn bad(user: &UserFolder, arguments: &str) -> (i32, String, String) {
    let said = user.said(arguments);
    assert!(said.code != 0, "{arguments} succeeded");
    (said.code, said.out, said.errors)
}

fn text_of(path: &Path) -> String {
    let mut text = String::new();
    let file = fs::File::open(path).unwrap();
    flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

fn write_gzip(path: &Path, text: &str) {
    let file = fs::File::create(path).unwrap();
    let mut out = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap();
}

#[test]
fn a_check_counts_and_goes_on() {
    let user = user();
    let text = text_of(&user.path(FILE));
    let good_rows = text.lines().count() - 1;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.insert(10, lines[9].clone());
    lines.insert(100, lines[5].clone());
    lines.insert(200, "damaged".to_owned());
    write_gzip(&user.path(FILE), &(lines.join("\n") + "\n"));
    let (code, table, _) = bad(&user, "data check data --per-code");
    assert_eq!(code, 1);
    assert!(table.starts_with("wrong data/"), "{table}");
    assert!(table.contains("3 bad rows: 1 duplicate, 1 out of order, 1 bad layout"), "{table}");
    assert!(table.contains("line 11, column TransactionId"), "{table}");
    assert!(table.lines().any(|line| line.trim_start().starts_with("72030")), "{table}");
    let (_, json, _) = bad(&user, "data check data --per-code --format json");
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value[0]["ok"], false);
    assert_eq!(value[0]["rows"], good_rows);
    assert_eq!(value[0]["defects"]["duplicate"], 1);
    assert_eq!(value[0]["per_code"][0]["defects"]["out_of_order"], 1);
    assert_eq!(value[0]["per_code"][0]["days"], 2);
}

#[test]
fn a_conversion_comes_back_byte_for_byte() {
    let user = user();
    let before = text_of(&user.path(FILE));
    let rows = before.lines().count() - 1;
    let said = user.good(&format!("data convert {FILE} table.parquet"));
    assert_eq!(said.replace(',', ""), format!("{rows} rows in table.parquet\n"));
    fs::create_dir(user.path("back")).unwrap();
    user.good("data convert table.parquet back/equities_trades_202501.csv.gz");
    assert!(text_of(&user.path("back/equities_trades_202501.csv.gz")) == before);

    let (code, _, errors) = bad(&user, &format!("data convert {FILE} table.parquet"));
    assert_eq!(code, 1);
    assert!(errors.contains("replace it with --force"), "{errors}");
    user.good(&format!("data convert {FILE} table.parquet --force --instrument 7203.TSE"));
    let (_, _, errors) =
        bad(&user, &format!("data convert {FILE} other.parquet --instrument 1301.TSE"));
    assert!(errors.contains("has no rows of code 13010"), "{errors}");
    let (code, _, errors) =
        bad(&user, &format!("data convert {FILE} other.parquet --instrument 1301"));
    assert_eq!(code, 2);
    assert!(errors.contains("five places, like 13060"), "{errors}");
}

#[test]
fn a_folder_is_described() {
    let user = user();
    let table = user.good("data info data");
    assert!(table.contains("1 files") && table.contains("2025-01"), "{table}");
    assert!(table.contains("--scan reads the trades files"), "{table}");
    let rows = text_of(&user.path(FILE)).lines().count() - 1;
    let json: serde_json::Value =
        serde_json::from_str(&user.good("data info data --scan --format json")).unwrap();
    assert_eq!(json["files"][0]["rows"], rows);
    assert_eq!(json["files"][0]["codes"][0], "72030");
    assert_eq!(json["files"][0]["known_from"], "scan");
    assert_eq!(json["files"][0]["last_day"], "2025-01-31");
    // After a replay the cache knows the code's rows without reading the file.
    let file = fs::File::options().append(true).open(user.path(FILE)).unwrap();
    let settled = file.metadata().unwrap().modified().unwrap() - Duration::from_secs(60);
    file.set_modified(settled).unwrap();
    user.good("replay run buy-and-hold --data data --instrument 7203.TSE --quiet");
    let json: serde_json::Value =
        serde_json::from_str(&user.good("data info data --format json")).unwrap();
    assert_eq!(
        (&json["files"][0]["rows"], &json["files"][0]["known_from"]),
        (&rows.into(), &"cache".into())
    );

    fs::copy(user.path(FILE), user.path("data/equities_trades_20250106.csv.gz")).unwrap();
    fs::write(user.path("data/equities_trades_2025.csv.gz"), b"x").unwrap();
    fs::write(user.path("data/notes.txt"), b"x").unwrap();
    let (code, table, _) = bad(&user, "data info data");
    assert_eq!(code, 1);
    assert!(table.contains("overlap; a day that both have counts once"), "{table}");
    assert!(table.contains("equities_trades_2025.csv.gz is named like a vendor's file"), "{table}");
    let (_, _, errors) = bad(&user, "data info nowhere");
    assert!(errors.contains("cannot list the data folder nowhere"), "{errors}");
    let (code, _, errors) = bad(&user, "data check nowhere");
    assert!(code == 1 && errors.contains("cannot read nowhere: No such file"), "{errors}");
}

#[test]
fn bar_files_are_checked_and_converted_too() {
    let user = user();
    user.good("data sample --out bars --bars --days 2 --trades-per-day 500");
    let table = user.good("data check bars --per-code");
    for what in [" trades, 1 codes", " minute bars, 1 codes", " 2 daily bars, 1 codes"] {
        assert!(table.contains(what), "{table}");
    }
    let name = "bars/equities_bars_minute_202501.csv.gz";
    let before = text_of(&user.path(name));
    user.good(&format!("data convert {name} minutes.parquet"));
    user.good(&format!("data convert minutes.parquet {name} --force"));
    assert!(text_of(&user.path(name)) == before);
    let mut lines: Vec<&str> = before.lines().collect();
    lines.insert(2, lines[1]);
    write_gzip(&user.path(name), &(lines.join("\n") + "\n"));
    let (code, json, _) = bad(&user, "data check bars --format json");
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &value[1]["kind"]), (1, &serde_json::json!("minute_bars")));
    assert_eq!(value[1]["defects"]["duplicate"], 1);
}

#[test]
fn days_that_are_missing_between_files_are_told() {
    let user = user();
    fs::create_dir(user.path("days")).unwrap();
    for date in ["2025-01-06", "2025-01-07", "2025-01-09", "2025-01-10"] {
        user.good(&format!("data sample --out one --from {date} --days 1 --trades-per-day 50"));
        let name = format!("days/equities_trades_{}.csv.gz", date.replace('-', ""));
        fs::rename(user.path("one/equities_trades_202501.csv.gz"), user.path(&name)).unwrap();
        fs::remove_dir_all(user.path("one")).unwrap();
    }
    let table = user.good("data check days");
    let told = "1 business days after the file before have no rows (2025-01-08)";
    assert_eq!(table.matches("after the file before").count(), 1, "{table}");
    assert!(table.contains(told), "{table}");
    let listed: serde_json::Value =
        serde_json::from_str(&user.good("data check days --format json")).unwrap();
    let gaps = [0, 1, 2, 3].map(|file| listed[file]["empty_days_after_file_before"].clone());
    assert_eq!(serde_json::json!(gaps), serde_json::json!([[], [], ["2025-01-08"], []]));
}

/// A command whose output nobody reads, as with `kumiki ... | head` after its last line.
fn unread(user: &UserFolder, arguments: &str, errors: Stdio) -> Output {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = user.command(arguments);
    command.stdout(writer).stderr(errors).spawn().unwrap().wait_with_output().unwrap()
}

#[test]
fn commands_end_quietly_when_nobody_reads_their_output() {
    let user = user();
    let run = "replay run sma-cross --data data --instrument 7203.TSE --param fast=5 \
               --param slow=20 --quiet --out run";
    for arguments in
        ["strategy list", "data check data --per-code", "data info data", run, "replay report run"]
    {
        let output = unread(&user, arguments, Stdio::piped());
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), errors.as_str()), (Some(0), ""), "{arguments}");
    }
    // What it was for is there.
    assert!(user.path("run/manifest.json").exists());
    // An error stays an error, even if nobody can be told.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = unread(&user, "data check missing", writer.into());
    assert_eq!(output.status.code(), Some(1));
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_an_error() {
    let user = user();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = user.command("strategy list");
    command.stdout(full).stderr(Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(errors.starts_with("error: cannot print to standard output: "), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
}
