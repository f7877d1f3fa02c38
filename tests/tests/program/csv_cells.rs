//! What strategies and users write is text in every CSV file, whatever a spreadsheet would make of it; the
//! other forms of a table hold it as it was written.

use std::fs;

use serde_json::Value;
use tests::user_folder::UserFolder;
use tests::wat;
use wit_component::StringEncoding;

/// A cell that a spreadsheet would follow.
const FORMULA: &str = "=HYPERLINK(\"https://example.com\",\"7203\")";

/// A strategy that says it everywhere.
fn strategy(user: &UserFolder) {
    let text = wat::acting(FORMULA, |text| text.as_bytes().to_vec(), 1, 0);
    let component = wat::component(&text, StringEncoding::UTF8);
    fs::write(user.path("says.wasm"), component).unwrap();
}

/// The cells of a column of a CSV file whose cells hold no commas.
fn column(user: &UserFolder, file: &str, name: &str) -> Vec<String> {
    let text = fs::read_to_string(user.path(file)).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let place = lines.next().unwrap().iter().position(|one| *one == name).unwrap();
    lines.map(|line| line[place].to_owned()).collect()
}

#[test]
fn texts_of_a_strategy_are_no_formulas_in_csv() {
    let user = UserFolder::with_sample(1, 500);
    strategy(&user);
    user.good("replay run says.wasm --data data --instrument 7203.TSE --quiet --out runs/says");
    let quoted = format!("\"'{}\"", FORMULA.replace('"', "\"\""));
    for (table, names) in [
        ("signals", &["tag", "note"][..]),
        ("narrative", &["title", "body"]),
        ("log", &["message"]),
    ] {
        let csv = fs::read_to_string(user.path(&format!("runs/says/{table}.csv"))).unwrap();
        let text = fs::read(user.path(&format!("runs/says/{table}.json"))).unwrap();
        let rows: Vec<Value> = serde_json::from_slice(&text).unwrap();
        let cells: Vec<&Value> =
            rows.iter().flat_map(|row| names.iter().map(move |name| &row[name])).collect();
        assert!(!cells.is_empty() && cells.iter().all(|cell| **cell == FORMULA), "{cells:?}");
        assert_eq!(csv.matches(&quoted).count(), cells.len(), "{csv}");
    }
    // Numbers with a sign are numbers, and the run comes out again.
    let profits = column(&user, "runs/says/equity.csv", "equity");
    assert!(profits.iter().all(|cell| cell.parse::<f64>().is_ok()), "{profits:?}");
    user.good("replay verify runs/says --strategy says.wasm --data data");
    let sql = "SELECT DISTINCT title FROM narrative";
    let said = |format: &str| {
        let mut command = user.command(&format!("sql --runs runs --format {format}"));
        let output = command.arg(sql).env_remove("DATA_DIR").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let line: Value = serde_json::from_str(&said("jsonl")).unwrap();
    assert_eq!(line["title"], FORMULA);
    assert_eq!(said("csv"), format!("title\n{quoted}\n"));
}

#[test]
fn parameters_of_a_sweep_are_no_formulas_in_csv() {
    let user = UserFolder::with_sample(1, 300);
    strategy(&user);
    user.good(
        "replay sweep says.wasm --data data --instrument 7203.TSE --quiet --grid mode==1+1,-5,plain \
         --out sweep",
    );
    assert_eq!(column(&user, "sweep/sweep.csv", "param_mode"), ["'=1+1", "-5", "plain"]);
    let mut command = user.command("sql --sweeps sweep --format jsonl");
    let output =
        command.arg("SELECT param_mode FROM sweeps ORDER BY run").env_remove("DATA_DIR").output();
    let rows = String::from_utf8(output.unwrap().stdout).unwrap();
    let modes = rows.lines().map(|line| {
        let row: Value = serde_json::from_str(line).unwrap();
        row["param_mode"].as_str().unwrap_or_default().to_owned()
    });
    assert_eq!(modes.collect::<Vec<_>>(), ["=1+1", "-5", "plain"]);
}

#[test]
fn a_name_in_the_table_of_instruments_is_text() {
    let user = UserFolder::with_sample(1, 500);
    let table = "code,name,market,lot,ticks,from,to\n72030,'=1+1,0111,100,normal,,\n";
    fs::write(user.path("data/instruments.csv"), table).unwrap();
    user.good("replay run sma-cross --data data --instrument 7203.TSE --quiet --out run");
    let manifest: Value =
        serde_json::from_slice(&fs::read(user.path("run/manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["names"]["7203.TSE"], "=1+1");
    user.good("replay verify run --data data");
}
