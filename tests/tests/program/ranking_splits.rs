//! Rankings over splits as users meet them: raw with a mark, and adjusted, as a command and as a
//! service.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use domain::JstDate;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::serving::Serving;
use tests::{built, daily_rows, http};
use update::{DailyRow, SourceKind};

/// The day that is ranked; ten days before it is the 5th.
const LAST: &str = "2025-01-15";

/// Twelve days of four issues: one that was split, one that never was, one that was merged and then
/// split, and one whose row of the 5th its source has adjusted already.
static DATA: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let first: JstDate = "2025-01-04".parse().unwrap();
    let mut rows: Vec<DailyRow> = Vec::new();
    for (day, date) in first.iter_days().take(12).enumerate() {
        let split = |on: &[(usize, f64)]| {
            let factor = on.iter().find(|(at, _)| *at == day);
            Some(factor.map_or(1.0, |(_, factor)| *factor))
        };
        let level = |yens: [i64; 3]| yens[usize::from(day >= 4) + usize::from(day >= 8)];
        rows.push(daily_rows::row("1301", date, level([1_000, 500, 500]), split(&[(4, 0.5)])));
        let merged = split(&[(4, 10.0), (8, 0.5)]);
        rows.push(daily_rows::row("130A", date, level([40, 400, 200]), merged));
        rows.push(daily_rows::row("7203", date, 500 + day as i64, split(&[])));
        let other = daily_rows::row("9984", date, level([300, 300, 100]), split(&[(8, 0.33333)]));
        let source = if day == 1 { SourceKind::Public } else { SourceKind::Vendor };
        rows.push(DailyRow { source, ..other });
    }
    daily_rows::publish(folder.path(), &rows);
    folder
});

fn rank(more: &[&str]) -> String {
    rank_by("Close / Close[-10]", more)
}

fn rank_by(formula: &str, more: &[&str]) -> String {
    let mut command = Command::new(built::kumiki());
    command.args(["rank", "query", "--sort-by", formula]).args(more);
    command.env("DATA_DIR", DATA.path()).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{more:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn served(serving: &Serving, arguments: &str, fields: &str) -> Value {
    let query = format!(
        "{{ stockRankingRange(fromDate: \"{LAST}\", toDate: \"{LAST}\", sortBy: \"Close / \
         Close[-10]\"{arguments}) {{ {fields} }} }}"
    );
    serving.ask(&query)["data"]["stockRankingRange"].clone()
}

/// The columns of a ranking as CSV.
const HEAD: &str = "date,code,close,sortValue,volume,rank,spansSplit,name,nameEn,market,sector33";

#[test]
fn raw_rows_are_marked_and_adjusted_ones_compare() {
    let up = 511.0 / 501.0;
    let raw = format!(
        "{HEAD}\n{LAST},130A,200,5,1000,1,true,,,,\n\
         {LAST},7203,511,{up},1000,2,false,,,,\n{LAST},1301,500,0.5,1000,3,true,,,,\n\
         {LAST},9984,100,{},1000,4,true,,,,\n",
        1.0 / 3.0
    );
    assert_eq!(rank(&["--format", "csv"]), raw);
    // Closes and volumes stay raw. What its source has adjusted does not compare: null.
    let adjusted = format!(
        "{HEAD}\n{LAST},7203,511,{up},1000,1,false,,,,\n\
         {LAST},1301,500,1,1000,2,true,,,,\n{LAST},130A,200,1,1000,3,true,,,,\n\
         {LAST},9984,100,,1000,4,true,,,,\n"
    );
    assert_eq!(rank(&["--format", "csv", "--adjusted"]), adjusted);
    let volumes = rank_by("Volume[-10]", &["--format", "csv", "--adjusted"]);
    let values: Vec<&str> = volumes.lines().skip(1).map(|line| cell(line, 3)).collect();
    assert_eq!(values, ["2000", "1000", "200", ""], "{volumes}");
    // The day before the split knows nothing of it.
    let before = rank(&["--from", "2025-01-07", "--to", "2025-01-07", "--adjusted"]);
    let ends = |mark: &str| before.lines().filter(|line| line.trim_end().ends_with(mark)).count();
    assert!(ends(" adjusted") == 0 && before.contains("2025-01-07"), "{before}");
    // Of the one whose row its source has adjusted nobody knows.
    assert_eq!(ends("not known"), 1, "{before}");
}

fn cell(line: &str, index: usize) -> &str {
    line.split(',').nth(index).unwrap()
}

#[test]
fn every_form_has_the_mark() {
    let table = rank(&[]);
    assert!(table.starts_with("by Close / Close[-10] (desc)\n"), "{table}");
    let marked = |table: &str, mark: &str| -> Vec<String> {
        let rows = table.lines().filter(|line| line.trim_end().ends_with(mark));
        let codes = ["130A", "1301", "7203", "9984"];
        rows.map(|row| codes.into_iter().find(|code| row.contains(code)).unwrap().to_owned())
            .collect()
    };
    assert_eq!(marked(&table, " not adjusted"), ["130A", "1301", "9984"]);
    let adjusted = rank(&["--adjusted"]);
    let title = "by Close / Close[-10] (desc, earlier values adjusted for splits)\n";
    assert!(adjusted.starts_with(title), "{adjusted}");
    assert_eq!(marked(&adjusted, " adjusted"), ["1301", "130A", "9984"]);
    // Where no row needs it there is no column.
    let plain = rank_by("Close", &[]);
    assert!(!plain.contains("split"), "{plain}");
    let lines = rank(&["--format", "jsonl", "--adjusted"]);
    let marks: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["spansSplit"].clone())
        .collect();
    assert_eq!(marks, [json!(false), json!(true), json!(true), json!(true)]);
}

#[test]
fn explaining_holds_the_adjusted_kernel_against_the_statement() {
    let text = rank(&["--adjusted", "--explain", "--from", "2025-01-01"]);
    for word in ["earlier values adjusted for splits", "f_10.shares_new", "rows  48", "bit for bit"]
    {
        assert!(text.contains(word), "{word} is missing in\n{text}");
    }
    assert!(!rank(&["--explain"]).contains("f_10"));
}

#[test]
fn the_service_adjusts_where_it_is_asked_to() {
    let serving = Serving::start(DATA.path(), &[]);
    let fields = "code close sortValue volume rank spansSplit";
    let row = |code: &str, close: u32, value: Value, rank: u32, spans: bool| {
        json!({ "code": code, "close": close, "sortValue": value, "volume": 1_000,
                "rank": rank, "spansSplit": spans })
    };
    let up = 511.0 / 501.0;
    let raw = json!([
        row("130A", 200, json!(5), 1, true),
        row("7203", 511, json!(up), 2, false),
        row("1301", 500, json!(0.5), 3, true),
        row("9984", 100, json!(1.0 / 3.0), 4, true),
    ]);
    let adjusted = json!([
        row("7203", 511, json!(up), 1, false),
        row("1301", 500, json!(1), 2, true),
        row("130A", 200, json!(1), 3, true),
        row("9984", 100, Value::Null, 4, true),
    ]);
    // Twice, so that the second answers come from the cache.
    for _ in 0..2 {
        for arguments in ["", ", adjusted: false", ", adjusted: null"] {
            assert_eq!(served(&serving, arguments, fields), raw, "{arguments}");
        }
        assert_eq!(served(&serving, ", adjusted: true", fields), adjusted);
    }
    // The library's way to the same rows: in two pieces, which it has to merge.
    let one =
        format!("stockRankingRange(fromDate: \"{LAST}\", toDate: \"{LAST}\", adjusted: true)");
    let pieces = serving.ask(&format!("{{ {one} {{ code rank }} {one} {{ spansSplit }} }}"));
    let whole = serving.ask(&format!("{{ {one} {{ code rank spansSplit }} }}"));
    assert_eq!(pieces, whole);
    let body = json!({ "query": "query($on: Boolean!) { stockRankingRange(fromDate: \"2025-01-15\", \
        toDate: \"2025-01-15\", sortBy: \"Close / Close[-10]\", adjusted: $on) { code } }",
        "variables": { "on": true } });
    let text = http::graphql(serving.address, &body.to_string()).text();
    assert!(text.starts_with("{\"data\":{\"stockRankingRange\":[{\"code\":\"7203\"}"), "{text}");
}

/// A snapshot of before splits were published with it still answers, and says why it cannot adjust.
#[test]
fn an_older_snapshot_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    copy(&DATA.path().join("rank"), &data.join("rank"));
    let grid = pricestore::DataDir::new(data).rank_grid(1);
    write_as_before(&grid);
    let run = |more: &[&str]| {
        let mut command = Command::new(built::kumiki());
        command.args(["rank", "query", "--format", "csv"]).args(more).env("DATA_DIR", data);
        command.stdin(Stdio::null()).output().unwrap()
    };
    let raw = String::from_utf8(run(&[]).stdout).unwrap();
    assert_eq!(raw.lines().nth(1).map(|line| cell(line, 6)), Some(""), "{raw}");
    let refused = run(&["--adjusted"]);
    let errors = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        errors.contains("adjustment_factor") && errors.contains("kumiki rank publish"),
        "{errors}"
    );
}

fn copy(from: &Path, to: &PathBuf) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Writes a grid's cells again, without splits.
fn write_as_before(path: &Path) {
    use pricestore::grid::{Grid, GridWriter};

    let grid = Grid::open(path, 1).unwrap();
    let (days, codes) = (grid.days().to_vec(), grid.codes().to_vec());
    let mut writer = GridWriter::new(path.parent().unwrap(), 1, days, codes).unwrap();
    for day in 0..grid.days().len() {
        writer.day(domain::formula::Column::ALL.map(|column| grid.stripe(day, column))).unwrap();
    }
    drop(grid);
    writer.finish(path).unwrap();
}
