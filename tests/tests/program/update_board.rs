//! What a live engine recorded, as its users go on with it: replayed, published as a database of each issue,
//! asked with SQL, handed out by the ranking service; and `kumiki data boards` killed in its midst.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use domain::clock::sleep;
use domain::market_update::{
    AggressorSide, Board, Level, SideRule, Symbol, TimeSource, TradePrint,
};
use domain::session::MORNING_OPEN;
use domain::{JstDate, TsNanos};
use duckdb::Connection;
use marketdata::board::{BoardFolder, BoardRow, Writer};
use serde_json::Value;
use tests::serving::Serving;
use tests::user_folder::UserFolder;
use tests::{http, schema};

const SYMBOLS: [&str; 2] = ["7203", "130A"];
/// Trades of a symbol in a segment; as many order books are beside them.
const TRADES: u64 = 300;
/// Kills of the job.
const KILLS: u64 = 8;

fn date(text: &str) -> JstDate {
    text.parse().unwrap()
}

/// A segment of a day: of each symbol an order book and a trade every two seconds from the open on.
fn record(folder: &Path, date: JstDate) {
    let open = TsNanos::from_jst(date, MORNING_OPEN).unwrap();
    let mut writer = Writer::open(folder).unwrap();
    writer.recover(&mut |_| {}).unwrap();
    for number in 0..TRADES {
        let received = open.plus_nanos(number * 2_000_000_000);
        let price = 10_000 * (2_850 + i64::try_from(number * 7 % 60).unwrap());
        for symbol in SYMBOLS.map(|symbol| Symbol::new(symbol).unwrap()) {
            let stream_session_id: Arc<str> = Arc::from("session");
            let depth = Board {
                symbol,
                stream_session_id: Arc::clone(&stream_session_id),
                sequence_id: 2 * number,
                received,
                timestamp_ms: received.millis(),
                timestamp_source: TimeSource::Venue,
                last_price: Some(price),
                bids: vec![Level { price: price - 10_000, quantity: 5_000_000 }],
                asks: vec![Level { price: price + 10_000, quantity: 5_000_000 }],
            };
            let trade = TradePrint {
                symbol,
                stream_session_id,
                sequence_id: 2 * number + 1,
                received,
                timestamp_ms: received.millis(),
                price,
                quantity: 1_000_000,
                side: AggressorSide::Buy,
                side_rule: Some(SideRule::AtAsk),
                after_gap: false,
            };
            for row in [BoardRow::Depth(depth), BoardRow::Trade(trade)] {
                writer.push(&row, Duration::ZERO, &mut |_| {}).unwrap();
            }
        }
    }
    writer.finish(&mut |_| {}).unwrap();
}

/// The rows of an answer of `kumiki sql`, without its header.
fn rows(user: &UserFolder, flags: &str, sql: &str) -> Vec<String> {
    let mut command = user.command(&format!("sql --format csv {flags}"));
    let output = command.arg(sql).env_remove("DATA_DIR").output().unwrap();
    assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().skip(1).map(str::to_owned).collect()
}

/// The report of a run that ends with this exit code, held against its schema.
fn publish(user: &UserFolder, code: i32) -> Value {
    let said = user.said("data boards --recordings recordings --prices prices --format json");
    assert_eq!(said.code, code, "{}{}", said.out, said.errors);
    let report = serde_json::from_str(&said.out).unwrap();
    let described = update::store::board_report_schema();
    assert_eq!(schema::problems(&described, &report), Vec::<String>::new());
    report
}

fn published(user: &UserFolder, code: &str) -> PathBuf {
    user.path("prices").join(format!("jp/stocks_board/{code}.db"))
}

/// Trades and order books of a file.
fn counts(path: &Path, aside: &Path) -> (u64, u64) {
    // A copy: who has it open would be in the way of nobody, but leaves files beside it on some systems.
    fs::copy(path, aside).unwrap();
    let file = Connection::open(aside).unwrap();
    let count = |table: &str| {
        let sql = format!("SELECT count(*) FROM {table}");
        file.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    (count("trades"), count("depth"))
}

#[test]
fn a_recording_is_replayed_published_asked_and_handed_out() {
    let user = UserFolder::empty();
    let recordings = user.path("recordings");
    for day in ["2026-01-05", "2026-01-06"] {
        record(&recordings, date(day));
    }
    // The trades in the vendor's layout: for the checks, for SQL, and for a replay.
    user.good("data check recordings/trades");
    let count = "SELECT Code, count(*), min(TransactionId), max(TransactionId) FROM trades GROUP BY 1 ORDER BY 1";
    assert_eq!(
        rows(&user, "--data recordings/trades", count),
        ["130A0,600,000000000002,000000000600", "72030,600,000000000001,000000000599"]
    );
    user.good(
        "replay run sma-cross --data recordings/trades --instrument 7203.TSE --from 2026-01-05 \
         --to 2026-01-06 --param fast=5 --param slow=20 --same-day-round-trips allow --quiet --out runs/a",
    );
    let summary = fs::read_to_string(user.path("runs/a/summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["trades_seen"], 600, "{summary}");
    // A database of each issue.
    let report = publish(&user, 0);
    let told = ["days", "new_segments", "depth", "trades", "written"].map(|name| &report[name]);
    assert_eq!(told, [2, 2, 1_200, 1_200, 2], "{report}");
    let sum = "SELECT code, count(*), sum(qty), min(price), max(price) FROM board_trades GROUP BY 1 ORDER BY 1";
    let expected = SYMBOLS.map(|code| format!("{code},600,60000.0000,2850.0000,2909.0000"));
    let mut expected: Vec<_> = expected.into();
    expected.sort();
    assert_eq!(rows(&user, "--prices prices", sum), expected);
    let depth = "SELECT code, count(*), count(bid_price_1), count(bid_price_2) FROM board_depth GROUP BY 1 ORDER BY 1";
    assert_eq!(rows(&user, "--prices prices", depth), ["130A,600,600,0", "7203,600,600,0"]);
    // And over HTTP, byte for byte.
    let serving = Serving::start(&user.path("prices"), &[]);
    for code in SYMBOLS {
        let get = format!("GET /jp/stocks_board/{code}.db");
        let reply = http::request(serving.address, &get, &[], &[]);
        assert_eq!(reply.status, 200);
        assert!(reply.body == fs::read(published(&user, code)).unwrap(), "{code}");
    }
    assert_eq!(publish(&user, 0)["unchanged"], 2);
}

#[test]
fn a_damaged_segment_ends_with_3_and_somebody_else_s_file_with_1() {
    let user = UserFolder::empty();
    let recordings = user.path("recordings");
    for day in ["2026-01-05", "2026-01-06"] {
        record(&recordings, date(day));
    }
    let damaged = BoardFolder::new(&recordings).day(date("2026-01-05")).depth(1);
    let whole = fs::read(&damaged).unwrap();
    fs::write(&damaged, &whole[..whole.len() / 2]).unwrap();
    let report = publish(&user, 3);
    assert_eq!((&report["new_segments"], &report["written"]), (&1.into(), &2.into()), "{report}");
    assert_eq!(
        report["damaged"][0]["file"],
        Path::new("recordings/board/20260105/depth-000001.parquet").display().to_string()
    );
    let shown = user.said("data boards --recordings recordings --prices prices");
    assert_eq!(shown.code, 3, "{}", shown.errors);
    assert!(shown.out.contains("segment 1 of 2026-01-05: "), "{}", shown.out);
    fs::write(&damaged, whole).unwrap();
    publish(&user, 0);
    let path = published(&user, "7203");
    assert_eq!(counts(&path, &user.path("copy.db")), (2 * TRADES, 2 * TRADES));
    // A database of another program in the place of the job's own one.
    let theirs = b"SQLite format 3\0 theirs";
    fs::write(&path, theirs).unwrap();
    let said = user.said("data boards --recordings recordings --prices prices");
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.errors.contains("7203.db in it were not written by this job"), "{}", said.errors);
    assert_eq!(fs::read(&path).unwrap(), theirs);
}

/// A job that is killed at any moment leaves each file as it was or as it is to be, and the next one
/// finishes it; who downloads gets one of the two.
#[test]
fn a_job_that_is_killed_leaves_the_old_or_the_new_file() {
    let user = UserFolder::empty();
    let (recordings, aside) = (user.path("recordings"), user.path("copy.db"));
    record(&recordings, date("2026-01-05"));
    publish(&user, 0);
    let serving = Serving::start(&user.path("prices"), &[]);
    let mut killed = 0;
    let days = date("2026-01-06").iter_days();
    for (kill, day) in (0..KILLS).zip(days) {
        let old = TRADES * (kill + 1);
        record(&recordings, day);
        let mut command =
            user.command("data boards --recordings recordings --prices prices --quiet");
        let mut job: Child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // A run takes about 200 ms; later kills come later.
        sleep(Duration::from_millis(20 + 25 * kill));
        let _ = job.kill();
        killed += u64::from(!job.wait().unwrap().success());
        for code in SYMBOLS {
            let found = counts(&published(&user, code), &aside);
            let expected = [(old, old), (old + TRADES, old + TRADES)];
            assert!(expected.contains(&found), "kill {kill}, {code}: {found:?} of {expected:?}");
            let get = format!("GET /jp/stocks_board/{code}.db");
            let reply = http::request(serving.address, &get, &[], &[]);
            assert_eq!(reply.status, 200, "kill {kill}, {code}");
            fs::write(user.path("downloaded.db"), &reply.body).unwrap();
            assert_eq!(counts(&user.path("downloaded.db"), &aside), found, "kill {kill}, {code}");
        }
        assert_eq!(publish(&user, 0)["damaged"], serde_json::json!([]));
        for code in SYMBOLS {
            let new = old + TRADES;
            assert_eq!(counts(&published(&user, code), &aside), (new, new), "kill {kill}, {code}");
        }
    }
    assert!(killed > 0, "no run was killed");
    let left = fs::read_dir(user.path("prices/jp/stocks_board")).unwrap();
    assert_eq!(left.count(), SYMBOLS.len(), "nothing is left beside the files");
}
