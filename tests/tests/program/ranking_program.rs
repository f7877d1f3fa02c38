//! Rankings as users meet them: the `kumiki` program over a sample database, as a command, as a
//! service and as SQL.

use std::fs;
use std::io::sink;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use serde_json::Value;
use tests::serving::Serving;
use tests::{built, http, schema, signals};

/// One sample for all tests: 40 issues on 300 days. It is only read.
static DATA: LazyLock<PathBuf> = LazyLock::new(|| {
    built::made_once("ranking-sample", |folder| {
        let sizes = ["--issues", "40", "--days", "300", "--seed", "7"];
        let mut command = Command::new(built::kumiki());
        command.args(["data", "sample", "--daily"]).args(sizes).arg("--prices").arg(folder);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    })
});

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(built::kumiki());
    command.args(arguments).env("DATA_DIR", &*DATA).env_remove("KUMIKI_RANK_TOKEN");
    command.stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn good(arguments: &[&str]) -> String {
    let output = run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn bad(arguments: &[&str]) -> (i32, String) {
    let output = run(arguments);
    assert!(!output.status.success(), "{arguments:?} succeeded");
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn serving(more: &[&str]) -> Serving {
    Serving::start(&DATA, more)
}

/// All rows of a formula, as objects.
fn rows(sort_by: &str) -> Vec<Value> {
    let text = good(&[
        "rank",
        "query",
        "--from",
        "2016-01-01",
        "--sort-by",
        sort_by,
        "--limit",
        "5",
        "--format",
        "jsonl",
    ]);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_form_holds_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let base = [
        "rank",
        "query",
        "--from",
        "2016-02-01",
        "--to",
        "2016-03-31",
        "--sort-by",
        "Close / Open[-3]",
    ];
    let with = |more: &[&str]| good(&[&base[..], more].concat());
    let lines: Vec<Value> = with(&["--format", "jsonl"])
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(lines.len() > 500, "{} rows", lines.len());
    let names: Vec<&String> = lines[0].as_object().unwrap().keys().collect();
    let of_prices = ["date", "code", "close", "prevClose", "sortValue", "volume", "rank"];
    let others = ["spansSplit", "name", "nameEn", "market", "sector33"];
    assert_eq!(names, [&of_prices[..], &others].concat());
    assert!(lines.iter().all(|row| row["name"].is_string()), "the sample has lists");
    let list: Vec<Value> = serde_json::from_str(&with(&["--format", "json"])).unwrap();
    assert_eq!(list, lines);
    let csv = with(&["--format", "csv"]);
    assert_eq!(csv.lines().count(), lines.len() + 1);
    let head =
        "date,code,close,sortValue,volume,rank,spansSplit,name,nameEn,market,sector33\n2016-";
    assert!(csv.starts_with(head));
    let table = with(&[]);
    assert!(table.starts_with("by Close / Open[-3] (desc)\n"), "{table}");
    for name in ["rows.parquet", "rows.arrow", "rows.csv", "rows.json", "rows.jsonl"] {
        let path = folder.path().join(name);
        with(&["--out", &path.display().to_string()]);
        let bytes = fs::read(&path).unwrap();
        match name {
            "rows.json" => assert_eq!(schema::checked_values(&path, "ranking-rows"), 1),
            "rows.jsonl" => {
                assert_eq!(schema::checked_values(&path, "ranking-row"), lines.len());
            }
            "rows.parquet" => assert_eq!((&bytes[..4], bytes.len() > 2_000), (&b"PAR1"[..], true)),
            "rows.csv" => assert_eq!(bytes, csv.as_bytes()),
            _ => assert_eq!(bytes[..4], [0xff; 4], "an Arrow stream starts with a mark"),
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5, "nothing is left beside");
}

#[test]
fn the_service_and_the_command_give_the_same_rows() {
    let serving = serving(&[]);
    for formula in ["(Close - Close[-1]) / Close[-1] * 100", "Volume", "(High - Low) / Close * 100"]
    {
        let query = format!(
            "{{ stockRankingRange(fromDate: \"2016-01-01\", toDate: \"2030-01-01\", sortBy: \
             \"{formula}\", limit: 5) {{ date code close prevClose sortValue volume rank spansSplit \
             name nameEn market sector33 }} }}"
        );
        let answer = serving.ask(&query);
        let found = answer["data"]["stockRankingRange"].as_array().unwrap();
        assert_eq!(*found, rows(formula), "{formula}");
        assert!(found.len() > 1_000);
    }
    let health = http::request(serving.address, "GET /health", &[], &[]);
    assert_eq!((health.status, health.text().contains("\"days\":300")), (200, true));
    let metrics = http::request(serving.address, "GET /metrics", &[], &[]).text();
    assert!(metrics.contains("kumiki_ranking_requests_total{code=\"OK\"} 3\n"), "{metrics}");
    assert!(
        http::request(serving.address, "GET /", &[], &[])
            .text()
            .contains(">Kumiki ranking</title>")
    );
}

#[test]
fn limits_of_the_service_can_be_set() {
    let serving = serving(&["--max-limit", "7", "--max-lag", "10", "--max-aliases", "1"]);
    let page = http::request(serving.address, "GET /", &[], &[]).text();
    assert!(page.contains(r#"max="7" value="7""#), "the page offers what is answered: {page}");
    let code = |arguments: &str| {
        let query = format!(
            "{{ stockRankingRange(fromDate: \"2016-01-01\", toDate: \"2016-12-31\"{arguments}) \
             {{ rank }} }}"
        );
        serving.ask(&query)["errors"][0]["extensions"]["code"].clone()
    };
    assert_eq!(code(", limit: 7, sortBy: \"Close[-10]\""), Value::Null);
    assert_eq!(code(", limit: 8"), "LIMIT_INVALID");
    assert_eq!(code(", limit: 7, sortBy: \"Close[-11]\""), "FORMULA_INVALID");
}

#[cfg(unix)]
#[test]
fn the_service_ends_cleanly_when_told_to() {
    let mut serving = serving(&[]);
    let id = serving.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(serving.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_large_file_is_sent_in_little_memory() {
    const BYTES: u64 = 1 << 28;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    good(&["data", "sample", "--daily", "--issues", "3", "--days", "5", "--prices", &data]);
    fs::create_dir_all(folder.path().join("jp/stocks_board")).unwrap();
    let file = fs::File::create(folder.path().join("jp/stocks_board/7203.db")).unwrap();
    file.set_len(BYTES).unwrap();
    let serving = serving(&["--prices", &data]);
    let mother = http::request(serving.address, "GET /jp/stocks_daily/mother.db", &[], &[]);
    assert!(mother.body == fs::read(folder.path().join("jp/stocks_daily/mother.db")).unwrap());
    let before = serving.peak_memory();
    for packing in ["identity", "zstd", "gzip"] {
        let mut connection = http::Connection::open(serving.address).unwrap();
        let accepted = [("Accept-Encoding", packing)];
        connection.send("GET /jp/stocks_board/7203.db", &accepted, &[]).unwrap();
        if packing != "identity" {
            let reply = connection.receive().unwrap();
            let packed = &reply.body[..];
            let unpacked = match packing {
                "zstd" => std::io::copy(&mut zstd::Decoder::new(packed).unwrap(), &mut sink()),
                _ => std::io::copy(&mut flate2::read::GzDecoder::new(packed), &mut sink()),
            };
            assert_eq!((unpacked.unwrap(), packed.len() < 4_000_000), (BYTES, true), "{packing}");
            continue;
        }
        assert_eq!(
            connection.receive_head().unwrap().header("content-length"),
            Some(BYTES.to_string().as_str())
        );
        let (mut bytes, mut left) = (vec![0; 64 * 1024], BYTES);
        while left > 0 {
            let count = connection.read(&mut bytes).unwrap() as u64;
            assert!(count > 0, "{left} bytes are missing");
            left -= count;
        }
    }
    if let (Some(before), Some(after)) = (before, serving.peak_memory()) {
        let more = after.saturating_sub(before);
        assert!(more < 32_000_000, "{more} bytes more than for a small file");
    }
}

#[cfg(unix)]
#[test]
fn a_token_that_is_no_text_is_not_shown() {
    use std::os::unix::ffi::OsStrExt;

    let token = std::ffi::OsStr::from_bytes(b"a-secret-for-tests-only\xff");
    let mut command = command(&["rank", "serve", "--listen", "127.0.0.1:0"]);
    let output = command.env("KUMIKI_RANK_TOKEN", token).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("KUMIKI_RANK_TOKEN") && errors.contains("other characters"),
        "{errors}"
    );
    assert!(!errors.contains("a-secret"), "{errors}");
}

#[test]
fn tokens_are_asked_for_and_never_shown() {
    let secret = "a-secret-for-tests-only";
    let mut command = Serving::command(&DATA, &[]);
    command.env("KUMIKI_RANK_TOKEN", secret);
    let serving = Serving::of(command);
    let body = "{\"query\":\"{schemaVersion}\"}";
    assert_eq!(http::graphql(serving.address, body).status, 401);
    let bearer = format!("Bearer {secret}");
    let headers = [http::JSON, ("Authorization", bearer.as_str())];
    let reply = http::request(serving.address, "POST /graphql", &headers, body.as_bytes());
    assert_eq!(reply.status, 200);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    fs::write(&path, "short-secret").unwrap();
    let (code, errors) = bad(&["rank", "serve", "--token-file", &path.display().to_string()]);
    assert!(
        code == 1 && errors.contains("16 to 1024") && !errors.contains("short-secret"),
        "{errors}"
    );
}

/// What cannot be, whatever the data say, ends with 2; what the data do not have, with 1.
#[test]
fn wrong_arguments_are_explained() {
    let turned = "--from 2016-03-01 is after --to 2016-02-01";
    for (arguments, code, wanted) in [
        (&["rank", "query", "--sort-by", "Close / Turnover"][..], 2, "`Turnover` is not a column"),
        (&["rank", "query", "--sort-by", "Close / Turnover"], 2, "  Close / Turnover\n          ^"),
        (&["rank", "query", "--sort-by", "Close[-2601]"], 2, "2600"),
        (&["rank", "query", "--order", "up"], 2, "use desc or asc"),
        (&["rank", "query", "--limit", "501"], 2, "from 1 to 500"),
        (&["rank", "query", "--limit", "0"], 2, "from 1 to 500"),
        (&["rank", "query", "--from", "today"], 2, "--from"),
        (&["rank", "query", "--from", "2016-03-01", "--to", "2016-02-01"], 2, turned),
        (
            &["rank", "query", "--from", "1980-01-01", "--to", "2016-02-01"],
            2,
            "longer than 30 years",
        ),
        (&["rank", "query", "--format", "parquet"], 2, "--out"),
        (&["rank", "query", "--out", "ranks.bin"], 2, "say what it is with --format"),
        (&["rank", "query", "--param", "days=1"], 2, "--formula"),
        (&["rank", "serve", "--concurrent", "0"], 2, "must be at least 1"),
        (&["rank", "serve", "--max-formula", "5000"], 2, "at most 1000"),
        (&["rank", "serve", "--send-timeout", "0s"], 2, "longer than nothing"),
        (&["rank", "query", "--codes", "9x9"], 1, "9x9"),
        (&["rank", "query", "--from", "2099-01-04"], 1, "after the last day of the data"),
        (&["rank", "query", "--formula", "none"], 1, "formulas"),
        (&["rank", "query", "--prices", "there/is/none"], 1, "there is no folder there/is/none"),
        (&["rank", "query", "--prices", "tests"], 1, "tests: no daily prices were published yet"),
        (&["rank", "serve", "--follow-interval", "1s"], 2, "--follow <URL>"),
        (&["rank", "serve", "--follow-disk", "5"], 2, "--follow <URL>"),
        (&["rank", "serve", "--follow-stale", "1s"], 2, "--follow <URL>"),
        (&["rank", "serve", "--follow-patience", "1s"], 2, "--follow <URL>"),
        (&["rank", "serve", "--memory", "0"], 2, "--memory <MB>"),
        (&["data", "sample", "--daily", "--issues", "2", "--days", "2"], 1, "is there already"),
    ] {
        let (found, errors) = bad(arguments);
        assert_eq!(found, code, "{arguments:?}: {errors}");
        assert!(errors.contains(wanted), "{arguments:?}: {errors}");
    }
    // Before anything is looked at, a folder of a copy begun or a port opened.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    for wrong in
        [&["--follow-patience", "0s"], &["--follow-interval", "0s"], &["--concurrent", "0"]]
    {
        let mut command = command(&["rank", "serve", "--follow", "http://127.0.0.1:9"]);
        let output = command.args(wrong).env("DATA_DIR", &copy).output().unwrap();
        assert_eq!((output.status.code(), copy.exists()), (Some(2), false), "{wrong:?}");
    }
}

#[test]
fn explain_shows_tree_statement_and_plan() {
    let text = good(&["rank", "query", "--sort-by", "Close / Close[-1]", "--explain"]);
    for word in ["formula\n  Close / Close[-1]", "tree", "POSITIONAL JOIN", "plan", "bit for bit"] {
        assert!(text.contains(word), "{word} is missing in\n{text}");
    }
}

#[test]
fn codes_take_part_alone() {
    let all = rows("Close");
    let code = all[0]["code"].as_str().unwrap();
    let text = good(&["rank", "query", "--codes", code, "--format", "csv", "--from", "2016-01-01"]);
    assert!(text.lines().skip(1).all(|line| line.split(',').nth(1) == Some(code)), "{text}");
}

#[test]
fn sql_reads_and_never_writes() {
    let count = good(&["sql", "SELECT count(DISTINCT date) AS days FROM daily"]);
    assert_eq!(count, "days\n────\n 300\n");
    let csv =
        good(&["sql", "--format", "csv", "SELECT code FROM daily GROUP BY 1 ORDER BY 1 LIMIT 2"]);
    assert_eq!(csv.lines().count(), 3);
    let json = good(&["sql", "--format", "jsonl", "SELECT 1.5 AS a, 'x' AS b, NULL AS c"]);
    assert_eq!(json, "{\"a\":1.5,\"b\":\"x\",\"c\":null}\n");
    let (code, errors) = bad(&["sql", "DROP VIEW daily"]);
    assert!(code == 1 && errors.contains("read-only"), "{errors}");
    let (_, errors) = bad(&["sql", "SELECT * FROM read_csv('Cargo.toml')"]);
    assert!(errors.contains("disabled"), "{errors}");
    let (_, errors) = bad(&["sql", "SELECT nothing FROM daily"]);
    assert!(errors.contains("nothing"), "{errors}");
    let cut = run(&["sql", "--limit", "3", "SELECT * FROM daily"]);
    assert!(String::from_utf8_lossy(&cut.stderr).contains("more than these 3 rows"));
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_statement() {
    let endless =
        "SELECT count(*) FROM range(100000000000) a, range(1000) b WHERE a.range % 7 = b.range";
    let mut child = command(&["sql", endless]).stderr(Stdio::piped()).spawn().unwrap();
    let id = child.id().to_string();
    signals::wait_for_handler(child.id(), signals::INT);
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn info_tells_what_is_there() {
    let text = good(&["data", "info"]);
    assert!(text.contains("40 issues, 300 business days") && text.contains("daily"), "{text}");
    let value: Value = serde_json::from_str(&good(&["data", "info", "--format", "json"])).unwrap();
    assert_eq!(value["snapshot"]["business_days"], 300);
    assert!(value["views"][0]["rows"].as_u64().unwrap() > 5_000, "{value}");
}
