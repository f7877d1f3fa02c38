//! Names of folders in which `kumiki sql` finds files: none of them changes what is in the files.

use std::fs;
use std::path::Path;

use tests::user_folder::{Said, UserFolder};

/// Names that the database engine would take for columns, patterns, homes or servers.
const NAMES: [&str; 9] =
    ["quantity=200", "side=x", "price=1", "it's", "~", "a b", "日本", "x:y", "%41"];

fn said(user: &UserFolder, flags: &[&str], sql: &str) -> Said {
    let mut command = user.command("sql --format csv");
    let output = command.args(flags).arg(sql).env_remove("DATA_DIR").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said {
        code: output.status.code().unwrap_or(-1),
        out: text(output.stdout),
        errors: text(output.stderr),
    }
}

/// The rows of an answer, without its header.
fn rows(user: &UserFolder, flags: &[&str], sql: &str) -> Vec<String> {
    let said = said(user, flags, sql);
    assert_eq!(said.code, 0, "{flags:?} {sql}: {}", said.errors);
    assert_eq!(said.errors, "", "{flags:?} {sql}");
    said.out.lines().skip(1).map(str::to_owned).collect()
}

/// Copies the files of a folder into another one.
fn copied(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn names_of_runs_change_nothing_in_them() {
    let user = UserFolder::with_sample(1, 1_500);
    user.good(
        "replay run sma-cross --data data --instrument 7203.TSE --quiet --out runs/plain \
         --same-day-round-trips allow --param fast=5 --param slow=20",
    );
    let sum = "SELECT sum(price * quantity), sum(quantity), count(DISTINCT side), count(*), \
               (SELECT count(DISTINCT phase) FROM audit) FROM fills";
    let plain = rows(&user, &["--runs", "runs"], sum);
    assert!(!plain[0].ends_with(",0") && plain[0].contains(",2,"), "{plain:?}");
    for name in NAMES {
        copied(&user.path("runs/plain"), &user.path("runs").join(name));
        // Alone, below another folder, and as the folder that is given.
        copied(&user.path("runs/plain"), &user.path(name).join(name));
        for flags in [["--runs", name], ["--runs", &format!("{name}/{name}")]] {
            assert_eq!(rows(&user, &flags, sum), plain, "{flags:?}");
        }
    }
    let each = "SELECT run, sum(price * quantity), sum(quantity), count(DISTINCT side), count(*), \
                (SELECT count(DISTINCT phase) FROM audit) FROM fills GROUP BY 1 ORDER BY 1";
    let mut expected: Vec<String> =
        NAMES.iter().chain(&["plain"]).map(|name| format!("{name},{}", plain[0])).collect();
    expected.sort();
    let mut found = rows(&user, &["--runs", "runs"], each);
    found.sort();
    assert_eq!(found, expected);
}

/// Runs on the live market are in the views as replays are. One that goes on or was killed is left out, and that is told.
#[test]
fn live_runs_are_views_with_their_kind() {
    let user = UserFolder::with_sample(1, 300);
    user.good("replay run sma-cross --data data --instrument 7203.TSE --quiet --out runs/a");
    for (name, kind) in [("b", "paper"), ("c", "live"), ("d", "paper")] {
        let folder = user.path("runs").join(name);
        copied(&user.path("runs/a"), &folder);
        let file = folder.join("manifest.json");
        let mut manifest: serde_json::Value =
            serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        manifest["run_kind"] = kind.into();
        // P111: until the run's end; some tables may be there.
        manifest["partial"] = (name == "d").into();
        fs::write(&file, manifest.to_string()).unwrap();
        fs::write(folder.join("strategy.wasm"), "").unwrap();
        fs::write(folder.join("journal-20250106.jsonl"), "").unwrap();
    }
    let told = said(&user, &["--runs", "runs"], "SELECT run, run_kind FROM runs ORDER BY 1");
    assert_eq!(told.out, "run,run_kind\na,replay\nb,paper\nc,live\n", "{}", told.errors);
    let left_out = "it is running, or was killed before its end; its journal has what it did: d\n";
    assert!(told.errors.contains(left_out), "{}", told.errors);
}

#[test]
fn names_of_sweeps_and_of_folders_of_vendor_files_change_nothing_in_them() {
    let user = UserFolder::with_sample(1, 300);
    user.good(
        "replay sweep sma-cross --data data --instrument 7203.TSE --quiet --grid fast=5,10 \
         --grid slow=20 --out sweeps/plain",
    );
    let swept = "SELECT run, param_fast, param_slow, equity_end FROM sweeps ORDER BY run";
    let plain = rows(&user, &["--sweeps", "sweeps"], swept);
    let trades = "SELECT count(*), sum(Price * TradingVolume), min(Code) FROM trades";
    let plain_trades = rows(&user, &["--data", "data"], trades);
    for name in ["param_fast=7", "equity_end=0", "~", "x:y"] {
        copied(&user.path("sweeps/plain"), &user.path("other").join(name).join(name));
        let folder = format!("other/{name}");
        assert_eq!(rows(&user, &["--sweeps", &folder], swept), plain, "{name}");
    }
    for name in ["Price=7", "Code=1", "~", "x:y"] {
        copied(&user.path("data"), &user.path(name));
        assert_eq!(rows(&user, &["--data", name], trades), plain_trades, "{name}");
    }
}

/// A folder with files of each kind in folders of this name.
fn data_folder(user: &UserFolder, data: &str, name: &str) {
    let put = |kind: &str, file: &str, text: &str| {
        let folder = user.path(data).join(kind).join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(file), text).unwrap();
    };
    put("narrative", "n.csv", "title,price\nup,5\n'=A1,6\n");
    put("trades", "t.csv", "Code,Price\n0130,1\n130A,2\n");
    put("audit", "a.jsonl", "{\"title\":\"up\",\"price\":5}\n");
    let minute = user.path(data).join("minute").join(name);
    fs::create_dir_all(&minute).unwrap();
    let file = minute.join("m.parquet").display().to_string().replace('\'', "''");
    let table = format!("COPY (SELECT 'up' AS title, 5 AS price) TO '{file}' (FORMAT parquet)");
    duckdb::Connection::open_in_memory().unwrap().execute_batch(&table).unwrap();
}

const OF_DATA: &str = "SELECT (SELECT string_agg(title, '|' ORDER BY price) FROM narrative), \
                       (SELECT sum(price) FROM narrative), (SELECT title || price FROM audit), \
                       (SELECT title || price FROM minute), \
                       (SELECT string_agg(Code, '|' ORDER BY Price) FROM trades)";

#[test]
fn names_of_folders_with_data_change_nothing_in_them() {
    let user = UserFolder::empty();
    data_folder(&user, "plain", "plain");
    // A code is text, and what a mark kept from being a formula comes back.
    let plain = rows(&user, &["--prices", "plain"], OF_DATA);
    assert_eq!(plain, ["up|=A1,11,up5,up5,0130|130A"]);
    for name in ["title=x", "price=7", "Code=9", "it's", "~", "x:y"] {
        data_folder(&user, name, name);
        assert_eq!(rows(&user, &["--prices", name], OF_DATA), plain, "{name}");
    }
    // The same of the combined database.
    for name in ["sample", "~", "x:y", "date=2020-01-01"] {
        let made =
            user.command("data sample --daily --issues 5 --days 3 --prices").arg(name).output();
        assert!(made.unwrap().status.success(), "{name}");
        let count = rows(&user, &["--prices", name], "SELECT count(*) FROM daily");
        assert_eq!(count, ["10"], "{name}");
    }
}

/// One such folder would be read as all that its name fits.
#[test]
fn a_name_that_is_a_pattern_is_told_and_takes_nothing_away() {
    let user = UserFolder::empty();
    for name in ["*", "[a]", "a?"] {
        let data = format!("data-{}", name.len());
        data_folder(&user, &data, "ab");
        data_folder(&user, &data, name);
        let said = said(&user, &["--prices", &data], "SELECT count(*) FROM narrative");
        assert_eq!(said.code, 1, "{name}: {}", said.out);
        assert!(said.errors.contains("has *, ? or [ in its name"), "{}", said.errors);
        // The others are there.
        fs::remove_dir_all(user.path(&data).join("audit").join(name)).unwrap();
        let others = self::said(&user, &["--prices", &data], "SELECT title FROM audit");
        assert_eq!((others.code, others.out.as_str()), (0, "title\nup\n"), "{}", others.errors);
    }
}
