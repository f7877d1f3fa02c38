//! Prices and splits that make an account worth more than is counted: the run ends with an error that names the day,
//! the instrument and the value.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use tests::user_folder::UserFolder;

/// A trade: date, time, price, shares.
type Row<'a> = (&'a str, &'a str, &'a str, u64);

fn write_packed(path: &Path, text: &str) {
    let mut packed = GzEncoder::new(File::create(path).unwrap(), Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap();
}

/// A folder with trades of 7203.TSE in January 2025, and with the factors of days.
fn folder(rows: &[Row<'_>], factors: &[(&str, &str)]) -> UserFolder {
    let user = UserFolder::empty();
    let data = user.path("data");
    fs::create_dir(&data).unwrap();
    let mut text =
        "Date,Code,Time,SessionDistinction,Price,TradingVolume,TransactionId\n".to_owned();
    for (number, (date, time, price, shares)) in (1..).zip(rows) {
        text.push_str(&format!("{date},72030,{time}.000000,01,{price},{shares},{number:012}\n"));
    }
    write_packed(&data.join("equities_trades_202501.csv.gz"), &text);
    if !factors.is_empty() {
        let mut text = "Date,Code,O,H,L,C,UL,LL,Vo,Va,AdjFactor\n".to_owned();
        for (date, factor) in factors {
            text.push_str(&format!("{date},72030,1.0,1.0,1.0,1.0,0,0,1,1,{factor}\n"));
        }
        write_packed(&data.join("equities_bars_daily_202501.csv.gz"), &text);
    }
    user
}

const RUN: &str = "replay run buy-and-hold --data data --instrument 7203.TSE --quiet --out run";

#[track_caller]
fn ends_with(user: &UserFolder, options: &str, expected: &[&str]) {
    // Not what a run before may have left.
    let _ = fs::remove_dir_all(user.path("run"));
    let said = user.said(&format!("{RUN} {options}"));
    assert_eq!(said.code, 1, "{said:?}");
    for expected in expected.iter().chain(&[" the prices of "]) {
        assert!(said.errors.contains(expected), "{expected} is missing in {}", said.errors);
    }
    assert!(!said.errors.contains("panicked"), "{}", said.errors);
}

#[test]
fn a_price_that_makes_a_position_too_large_ends_the_run() {
    let day: Vec<Row<'_>> = ["09:00:00", "09:01:00", "09:02:00", "09:03:00"]
        .map(|time| ("2025-01-06", time, "1", 10_000_000))
        .to_vec();
    let cash = "--cash 100000000 --param quantity=1000000 --slippage-ticks 0";
    let worth = "7203.TSE: 1000000 shares at 1000000000 yen are worth 1000000000000000 yen";
    // The day after, and the same day.
    for date in ["2025-01-07", "2025-01-06"] {
        let jump = [(date, "10:00:00", "1000000000", 100), (date, "10:01:00", "1000000000", 100)];
        let user = folder(&[&day[..], &jump].concat(), &[]);
        for granularity in ["trade", "minute"] {
            let options = format!("{cash} --granularity {granularity}");
            ends_with(&user, &options, &[&format!("{date}, {worth}")]);
        }
    }
    // Without the jump it is a run like any other.
    let user = folder(&day, &[]);
    user.good(&format!("{RUN} {cash}"));
}

#[test]
fn splits_that_make_a_position_too_large_end_the_run() {
    let days = [
        "2025-01-07",
        "2025-01-08",
        "2025-01-09",
        "2025-01-10",
        "2025-01-14",
        "2025-01-15",
        "2025-01-16",
        "2025-01-17",
        "2025-01-20",
        "2025-01-21",
        "2025-01-22",
        "2025-01-23",
        "2025-01-24",
        "2025-01-27",
    ];
    let first: Vec<Row<'_>> = ["09:00:00", "09:01:00", "09:02:00", "09:03:00"]
        .map(|time| ("2025-01-06", time, "1000", 100_000))
        .to_vec();
    let each = |days: &[&'static str]| -> Vec<Row<'static>> {
        days.iter().map(|date| (*date, "09:00:00", "1000", 100_000)).collect()
    };
    let factors = |factor: &'static str| days.map(|date| (date, factor));
    let options = "--param quantity=3000";
    // Prices that do not follow the splits.
    let user = folder(&[&first[..], &each(&days)].concat(), &factors("0.001"));
    let worth =
        "2025-01-09, 7203.TSE: 3000000000000 shares at 1000 yen are worth 3000000000000000 yen";
    ends_with(&user, options, &[worth]);
    // All of them before the next trade.
    let user = folder(&[&first[..], &each(&days[13..])].concat(), &factors("0.001"));
    ends_with(&user, options, &["2025-01-14, 7203.TSE: 3000000000000000000 shares at 0.0001 yen"]);
    // Reverse splits leave no share, and make the price of one too large.
    let user = folder(&[&first[..], &each(&days[13..])].concat(), &factors("1000"));
    ends_with(
        &user,
        options,
        &["2025-01-10, 7203.TSE: a share is worth more than 100000000000000 yen"],
    );
}
