//! A split that the vendor's daily file tells reaches a run of the program, cold and cached, and its
//! strategy: with windows of every size, on both call paths.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;
use tests::built;
use tests::user_folder::UserFolder;

/// The days of the data.
const FIRST: &str = "2025-01-06";
const SECOND: &str = "2025-01-07";
const TRADES: &str = "equities_trades_202501.csv.gz";

fn write_packed(path: &Path, text: &str) {
    let mut packed = GzEncoder::new(File::create(path).unwrap(), Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap();
}

/// Sample data of two days in `data`, with prices of the second that are half of what they were.
fn halved(user: &UserFolder) {
    user.good(
        "data sample --out data --instrument 7203.TSE --days 2 --seed 5 --trades-per-day 3000",
    );
    let path = user.path("data").join(TRADES);
    let mut text = String::new();
    GzDecoder::new(File::open(&path).unwrap()).read_to_string(&mut text).unwrap();
    let line = |line: &str| {
        let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
        if cells[0] == SECOND {
            let price: u32 = cells[4].parse().unwrap();
            cells[4] = format!("{}", f64::from(price) / 2.0);
        }
        cells.join(",") + "\n"
    };
    std::fs::create_dir(user.path("halved")).unwrap();
    write_packed(&user.path("halved").join(TRADES), &text.lines().map(line).collect::<String>());
}

/// A daily file that tells of the split on the second day.
fn tell(user: &UserFolder, folder: &str) {
    tell_of(user, folder, "202501", &[(FIRST, "1.0"), (SECOND, "0.5")]);
}

/// A daily file of a month or a day that tells the factors of days.
fn tell_of(user: &UserFolder, folder: &str, period: &str, days: &[(&str, &str)]) {
    let path = user.path(folder).join(format!("equities_bars_daily_{period}.csv.gz"));
    let mut text = "Date,Code,O,H,L,C,UL,LL,Vo,Va,AdjFactor\n".to_owned();
    for (date, factor) in days {
        text.push_str(&format!("{date},72030,1.0,1.0,1.0,1.0,0,0,1,1,{factor}\n"));
    }
    write_packed(&path, &text);
}

const RUN: &str = "replay run buy-and-hold --data data --instrument 7203.TSE --quiet --format json";

fn run(user: &UserFolder) -> Value {
    let said = user.said(RUN);
    assert_eq!(said.code, 0, "{}", said.errors);
    serde_json::from_str(&said.out).unwrap()
}

#[test]
fn a_split_of_the_daily_file_reaches_the_run() {
    let user = UserFolder::empty();
    user.good(
        "data sample --out data --instrument 7203.TSE --days 2 --seed 5 --trades-per-day 300",
    );
    let plain = run(&user);
    let held = plain["summary"]["position_end"].as_i64().unwrap();
    assert!(held > 0, "{}", plain["summary"]);
    let (first, second) = (&plain["manifest"]["start"], &plain["manifest"]["end"]);
    let (first, second) = (first.as_str().unwrap(), second.as_str().unwrap());
    assert_eq!(first[..7], second[..7], "one month");
    let month = first[..7].replace('-', "");
    let path = user.path(&format!("data/equities_bars_daily_{month}.csv.gz"));
    let mut packed = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
    write!(
        packed,
        "Date,Code,O,H,L,C,UL,LL,Vo,Va,AdjFactor\n\
         {first},72030,1.0,1.0,1.0,1.0,0,0,100,100,1.0\n\
         {second},72030,1.0,1.0,1.0,1.0,0,0,100,100,0.5\n\
         {second},99840,1.0,1.0,1.0,1.0,0,0,100,100,0.1\n"
    )
    .unwrap();
    packed.finish().unwrap();
    let split = run(&user);
    assert_eq!(split["summary"]["position_end"].as_i64().unwrap(), held * 2);
    let inputs = split["manifest"]["inputs"].as_array().unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(inputs.iter().any(|input| input["file"] == name), "{inputs:?}");
    let digest = |run: &Value| run["manifest"]["event_log_digest"].clone();
    assert_ne!(digest(&plain), digest(&split));
    assert_eq!(digest(&run(&user)), digest(&split), "from the cache");
    // The prices are not halved, so the factor is wrong: the summary and the page say it.
    let said = user.good(&format!("{} --out run", RUN.replace(" --format json", "")));
    let page = std::fs::read_to_string(user.path("run/report.html")).unwrap();
    for text in [said, page] {
        assert!(text.contains("SPLIT FACTOR: 7203.TSE, "), "{text:.3000}");
    }
}

#[test]
fn a_strategy_is_told_whatever_the_window_and_the_call_path() {
    let user = UserFolder::empty();
    halved(&user);
    tell(&user, "halved");
    let guest = built::test_guest("hears-splits");
    let run = |window: &str, out: &str| -> Value {
        let text = user.good(&format!(
            "replay run {} --data halved --instrument 7203.TSE --quiet --format json --ticks 0.5 \
             --window {window} --out {out}",
            guest.display()
        ));
        serde_json::from_str(&text).unwrap()
    };
    let strict = run("1", "run");
    for window in ["64", "1024"] {
        let wide = run(window, "wide");
        let digest = |run: &Value| run["manifest"]["event_log_digest"].clone();
        assert_eq!(digest(&wide), digest(&strict), "window {window}");
    }
    let told: Value =
        serde_json::from_slice(&std::fs::read(user.path("run/narrative.json")).unwrap()).unwrap();
    let [expired, split] = &told.as_array().unwrap()[..] else { panic!("{told:#}") };
    // 2025-01-07 00:00 JST, before the open.
    for one in [expired, split] {
        assert_eq!(one["ts_event_ns"], 1_736_175_600_000_000_000_u64, "{told:#}");
    }
    assert_eq!(
        (&expired["title"], &expired["client_order_id"]),
        (&"expired".into(), &"patient".into())
    );
    assert_eq!(expired["body"], "EX_RIGHTS, 200 held", "the portfolio has changed before");
    let body = split["body"].as_str().unwrap();
    let (begin, end) = body.split_once(", last price ").unwrap();
    assert_eq!(begin, "2 for 1, 200 shares and 0 yen");
    let (price, end) = end.split_once("; ").unwrap();
    assert_eq!(end, "200 held, 0 working");
    assert!(price.parse::<f64>().unwrap() < 900.0, "{price} is a price of the new shares");
    let orders: Vec<Value> =
        serde_json::from_slice(&std::fs::read(user.path("run/orders.json")).unwrap()).unwrap();
    let of = |id: &str| orders.iter().find(|order| order["client_order_id"] == id).unwrap();
    assert_eq!(
        (&of("patient")["status"], &of("patient")["reason_code"]),
        (&"EXPIRED".into(), &"EX_RIGHTS".into())
    );
    let after = of("after");
    assert_eq!(after["ts_submitted_ns"], split["ts_event_ns"]);
    assert_ne!(after["status"], "REJECTED", "it was sent for the new day: {after:#}");

    let said = user.said(&format!(
        "replay verify run --strategy {} --data halved --quiet --format json",
        guest.display()
    ));
    let found: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, found["verdict"].as_str()), (0, Some("same")), "{found:#}");
    let paths: Vec<_> =
        found["found"]["runs"].as_array().unwrap().iter().map(|run| run["path"].clone()).collect();
    assert_eq!(paths, ["direct", "general"]);
}

/// When the crossover traded and which way.
fn trades_of(user: &UserFolder, data: &str) -> Vec<(u64, String)> {
    user.good(&format!(
        "replay run sma-cross --param fast=20 --param slow=100 --data {data} --instrument 7203.TSE \
         --quiet --execution optimistic --same-day-round-trips allow --slippage-ticks 0 --ticks 0.5 \
         --out of-{data}"
    ));
    let path = user.path(&format!("of-{data}")).join("orders.json");
    let orders: Vec<Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let one = |order: &Value| {
        assert_eq!(order["status"], "FILLED", "{order:#}");
        (order["ts_submitted_ns"].as_u64().unwrap(), order["side"].as_str().unwrap().to_owned())
    };
    orders.iter().map(one).collect()
}

#[test]
fn a_split_is_no_reason_for_the_crossover_to_trade() {
    let user = UserFolder::empty();
    halved(&user);
    let plain = trades_of(&user, "data");
    assert!(plain.len() > 20, "{plain:?}");
    let untold = trades_of(&user, "halved");
    assert_ne!(untold, plain, "prices that fall to their half look like a crash");
    tell(&user, "halved");
    assert_eq!(trades_of(&user, "halved"), plain, "the same orders as without a split");
}

#[test]
fn a_price_gap_that_may_be_a_split_is_told_in_every_form_of_the_result() {
    let user = UserFolder::empty();
    halved(&user);
    let run =
        "replay run buy-and-hold --data halved --instrument 7203.TSE --quiet --ticks 0.5 --out run";
    let gap = "PRICE GAP: 7203.TSE, 2025-01-07 09:00";
    let tells = || {
        let table = user.good(run).contains(gap);
        let json: Value =
            serde_json::from_str(&user.good(&format!("{run} --format json"))).unwrap();
        let of_json = json["manifest"]["warning"].as_str().is_some_and(|text| text.contains(gap));
        let file = |name: &str| std::fs::read_to_string(user.path("run").join(name)).unwrap();
        let others = [
            of_json,
            file("manifest.json").contains(gap),
            file("report.html").contains(gap),
            user.good("replay compare run run").contains(gap),
        ];
        assert_eq!(others, [table; 4], "{json:#}");
        table
    };
    assert!(tells(), "no daily file");
    tell_of(&user, "halved", "20250106", &[(FIRST, "1.0")]);
    assert!(tells(), "a file of the day before tells nothing of the next");
    // As a month's file is before the month is over.
    tell_of(&user, "halved", "202501", &[(FIRST, "1.0")]);
    assert!(tells(), "nor does one that ends before");
    // Beside a month's file those of its days are left out.
    std::fs::remove_file(user.path("halved/equities_bars_daily_202501.csv.gz")).unwrap();
    tell_of(&user, "halved", "20250107", &[(SECOND, "1.0")]);
    assert!(!tells(), "a fall of prices, and no split");
    tell_of(&user, "halved", "20250107", &[(SECOND, "0.5")]);
    assert!(!tells(), "a split that was told");
}

#[test]
fn the_base_price_of_the_first_day_is_found_in_daily_files_of_the_days_before() {
    let user = UserFolder::empty();
    user.good(
        "data sample --out data --instrument 7203.TSE --days 3 --seed 5 --trades-per-day 300",
    );
    let closed_at = |date: &str, close: &str| {
        let path =
            user.path("data").join(format!("equities_bars_daily_{}.csv.gz", date.replace('-', "")));
        let row = format!("{date},72030,{close},{close},{close},{close},0,0,100,100,1.0\n");
        write_packed(&path, &format!("Date,Code,O,H,L,C,UL,LL,Vo,Va,AdjFactor\n{row}"));
    };
    // Far from the sample's prices, so that it is seen which one counts.
    closed_at(FIRST, "5000");
    closed_at(SECOND, "6000");
    let run = |start: &str| {
        user.good(&format!(
            "replay run buy-and-hold --data data --instrument 7203.TSE --quiet --from {start}"
        ))
    };
    let text = run(SECOND);
    let base =
        "base price of 2025-01-07: 5000, of 2025-01-06 in equities_bars_daily_20250106.csv.gz";
    assert!(text.contains(base), "{text}");
    assert!(text.contains("lies outside 4000 to 6000"), "{text}");
    let text = run("2025-01-08");
    let base =
        "base price of 2025-01-08: 6000, of 2025-01-07 in equities_bars_daily_20250107.csv.gz";
    assert!(text.contains(base) && text.contains("lies outside 5000 to 7000"), "{text}");
    // Without the later one the day's trades know the close.
    std::fs::remove_file(user.path("data/equities_bars_daily_20250107.csv.gz")).unwrap();
    let text = run("2025-01-08");
    assert!(text.contains("of 2025-01-07 in equities_trades_202501.csv.gz"), "{text}");
}

/// The month that the run begins in may have nothing before it; the file of an earlier month is read then, however
/// old, and counts as data of the run.
#[test]
fn the_base_price_may_be_that_of_an_old_file() {
    let user = UserFolder::empty();
    for start in ["2025-01-06", "2025-06-02"] {
        user.good(&format!(
            "data sample --out data --instrument 7203.TSE --days 2 --seed 5 --trades-per-day 300 --from {start}"
        ));
    }
    let run = "replay run buy-and-hold --data data --instrument 7203.TSE --quiet --out run";
    let text = user.good(&format!("{run} --from 2025-06-02"));
    let base = |text: &str| {
        let at = text.find("base price of 2025-06-02: ").unwrap_or_else(|| panic!("{text}"));
        text[at..].lines().next().unwrap().to_owned()
    };
    let told = base(&text);
    assert!(told.ends_with(", of 2025-01-07 in equities_trades_202501.csv.gz"), "{told}");
    let manifest = std::fs::read_to_string(user.path("run/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let inputs: Vec<&str> = manifest["inputs"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["file"].as_str())
        .collect();
    assert_eq!(inputs, ["equities_trades_202506.csv.gz", TRADES]);
    assert_eq!(user.said("replay verify run --quiet").code, 0);
    // A day later the month itself knows a close, and the old file is left alone.
    let text = user.good(&format!("{run} --from 2025-06-03"));
    assert!(text.contains("of 2025-06-02 in equities_trades_202506.csv.gz"), "{text}");
}

/// An issue that did not trade for months: later files know nothing of it, and the search goes on behind them.
#[test]
fn the_base_price_is_found_behind_files_without_the_issue() {
    let user = UserFolder::empty();
    for (start, id) in [
        ("2024-01-09", "7203.TSE"),
        ("2025-03-03", "8306.TSE"),
        ("2025-05-28", "8306.TSE"),
        ("2025-06-02", "7203.TSE"),
    ] {
        user.good(&format!(
            "data sample --out data --instrument {id} --days 2 --seed 5 --trades-per-day 300 --from {start}"
        ));
    }
    let day =
        "Date,Code,O,H,L,C,UL,LL,Vo,Va,AdjFactor\n2025-05-30,83060,1.0,1.0,1.0,1.0,0,0,1,1,1.0\n";
    write_packed(&user.path("data/equities_bars_daily_20250530.csv.gz"), day);
    let run = "replay run buy-and-hold --data data --quiet --from 2025-06-02 --instrument";
    let text = user.good(&format!("{run} 7203.TSE"));
    let base = text.lines().find(|line| line.contains("base price of 2025-06-02: "));
    let base = base.unwrap_or_else(|| panic!("{text}"));
    assert!(base.ends_with(", of 2024-01-10 in equities_trades_202401.csv.gz"), "{base}");
    // The daily file of the day before has it.
    let day = day.replace("83060,1.0,1.0,1.0,1.0", "72030,2500.0,2500.0,2500.0,2500.0");
    write_packed(&user.path("data/equities_bars_daily_20250530.csv.gz"), &day);
    let text = user.good(&format!("{run} 7203.TSE"));
    assert!(text.contains("2500, of 2025-05-30 in equities_bars_daily_20250530.csv.gz"), "{text}");
    // Nothing knows it.
    for file in ["trades_202401", "bars_daily_20250530"] {
        std::fs::remove_file(user.path("data").join(format!("equities_{file}.csv.gz"))).unwrap();
    }
    let text = user.good(&format!("{run} 7203.TSE"));
    assert!(text.contains("no file of earlier days has one"), "{text}");
}

/// An old file that is read for the close of one issue changes no steps of another, whose prices shortly before
/// the run tell them.
#[test]
fn an_old_file_gives_closes_alone() {
    let user = UserFolder::empty();
    for (start, ids) in [
        ("2025-05-28", "--instrument 8306.TSE"),
        ("2025-06-02", "--instrument 7203.TSE --instrument 8306.TSE"),
    ] {
        user.good(&format!(
            "data sample --out data {ids} --days 2 --seed 5 --trades-per-day 300 --from {start}"
        ));
    }
    let told = |close: &str| {
        let rows = ["72030,2500", &format!("83060,{close}")].map(|row| {
            let (code, close) = row.split_once(',').unwrap();
            format!("2024-01-10,{code},{close},{close},{close},{close},0,0,1,1,1.0\n")
        });
        let text = format!("Date,Code,O,H,L,C,UL,LL,Vo,Va,AdjFactor\n{}", rows.concat());
        write_packed(&user.path("data/equities_bars_daily_20240110.csv.gz"), &text);
        let run = "replay run buy-and-hold --data data --quiet --from 2025-06-02";
        let text = user.good(&format!("{run} --instrument 7203.TSE --instrument 8306.TSE"));
        assert!(text.contains("2500, of 2024-01-10 in equities_bars_daily_20240110"), "{text}");
        let steps = text.lines().find(|line| line.contains("8306.TSE: lot 100"));
        steps.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    assert_eq!(told("2500.3"), told("2500"));
}

/// A hole in the data is told: returns of a year are worked out from the days that there are.
#[test]
fn business_days_without_rows_are_told() {
    let user = UserFolder::empty();
    for start in ["2025-01-30", "2025-02-05"] {
        user.good(&format!(
            "data sample --out data --instrument 7203.TSE --days 2 --seed 5 --trades-per-day 300 --from {start}"
        ));
    }
    let run = "replay run buy-and-hold --data data --instrument 7203.TSE --quiet";
    let text = user.good(&format!("{run} --out run"));
    assert!(text.contains("business days without any row: 2025-02-03 and 1 more"), "{text}");
    assert_eq!(user.said("replay verify run --quiet").code, 0);
    let text = user.good(&format!("{run} --from 2025-02-05"));
    assert!(!text.contains("without any row"), "{text}");
    // Dates asked for make days too, and a run over them is made again.
    let asked = format!("{run} --from 2025-01-25 --to 2025-02-12 --out asked");
    let text = user.good(&asked);
    assert!(text.contains("business days without any row: 2025-01-27 and 7 more"), "{text}");
    let days = std::fs::read_to_string(user.path("asked/days.csv")).unwrap();
    assert_eq!(days.lines().count(), 1 + 12, "{days}");
    assert_eq!(user.said("replay verify asked --quiet").code, 0);
    // Windows of a sweep count the same days.
    user.good(
        "replay sweep sma-cross --data data --instrument 7203.TSE --quiet --grid fast=2,3 --grid slow=10 \
         --from 2025-01-27 --to 2025-02-07 --walk-forward 5d/5d --rank-by return --out sweep",
    );
    let csv = std::fs::read_to_string(user.path("sweep/sweep.csv")).unwrap();
    let tests: Vec<Vec<&str>> = csv
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>())
        .filter(|cells| cells[1] == "test")
        .collect();
    let windows: Vec<_> = tests.iter().map(|cells| (cells[3], cells[4])).collect();
    assert_eq!(windows, [("2025-02-03", "2025-02-07")], "{csv}");
}
