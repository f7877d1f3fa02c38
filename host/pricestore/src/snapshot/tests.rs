//! Publishing, what is refused, and what is cleaned up.

use duckdb::Connection;

use super::*;
use crate::data_dir::DataDir;
use crate::grid::Splits;

const TABLE: &str = "CREATE TABLE daily (date DATE, code VARCHAR, open DOUBLE, high DOUBLE,
    low DOUBLE, close DOUBLE, volume DOUBLE);";

/// A data directory whose combined database was filled by `sql`.
fn data_with(sql: &str) -> (tempfile::TempDir, DataDir) {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::new(folder.path());
    let path = data.mother();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
    (folder, data)
}

/// 37 codes on 300 days.
fn market() -> String {
    format!(
        "{TABLE} INSERT INTO daily SELECT DATE '2023-01-02' + d::INTEGER, (1300 + c)::VARCHAR,
           10, 12, 9, 11, d * c FROM range(300) days(d), range(37) codes(c);"
    )
}

#[test]
fn snapshots_are_numbered_and_old_ones_removed() {
    let (_folder, data) = data_with(&market());
    for number in 1..=4 {
        let published = publish(&data).unwrap();
        assert_eq!((published.number, published.days, published.codes), (number, 300, 37));
        assert_eq!(published.range.0.to_string(), "2023-01-02");
        assert_eq!(data.current().unwrap(), Some(number));
    }
    assert_eq!(data.snapshots().unwrap(), [3, 4]);
    let mut names: Vec<String> = std::fs::read_dir(data.rank_folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        ["CURRENT", "LOCK", "WRITTEN", "rank-3.db", "rank-3.grid", "rank-4.db", "rank-4.grid"]
    );
    let written = std::fs::read_to_string(data.rank_folder().join("WRITTEN")).unwrap();
    assert_eq!(written, "3\n4\n");
}

#[test]
fn two_publications_do_not_meet() {
    let (_folder, data) = data_with(&market());
    publish(&data).unwrap();
    let file = std::fs::File::create(data.rank_folder().join("LOCK")).unwrap();
    file.lock().unwrap();
    assert!(matches!(publish(&data), Err(PublishError::Locked { .. })));
    file.unlock().unwrap();
    publish(&data).unwrap();
}

#[test]
fn a_source_that_cannot_be_ranked_is_refused_with_an_example() {
    let refused = |sql: &str| {
        let (_folder, data) = data_with(sql);
        let error = publish(&data).unwrap_err().to_string();
        assert_eq!(data.current().unwrap(), None);
        error.strip_prefix("the combined database cannot be published: ").unwrap().to_owned()
    };
    assert_eq!(refused(TABLE), "table daily has no rows");
    let row = "INSERT INTO daily VALUES ('2025-01-06', '1301', 1, 1, 1, 1, 1);";
    assert_eq!(
        refused(&format!("{TABLE}{row}{row}")),
        "code 1301 has 2 rows on 2025-01-06 instead of one"
    );
    assert_eq!(
        refused(&format!("{TABLE} INSERT INTO daily (code) VALUES ('1301');")),
        "1 rows have no date or no code"
    );
    assert_eq!(
        refused(&format!("{TABLE} INSERT INTO daily (date, code) VALUES ('2025-01-06', '1 2');")),
        "code `1 2` must have 1 to 16 printable ASCII characters"
    );
    assert!(
        refused("CREATE TABLE daily (date DATE, code INTEGER);").starts_with("table daily must")
    );
    let many = format!(
        "{TABLE} INSERT INTO daily (date, code) SELECT DATE '1900-01-01' + d::INTEGER, '1301'
         FROM range(10001) r(d);"
    );
    assert_eq!(refused(&many), "10001 days of 1 codes are more than a snapshot may hold");
    let folder = tempfile::tempdir().unwrap();
    let error = publish(&DataDir::new(folder.path())).unwrap_err();
    assert!(matches!(error, PublishError::NoSource(_)), "{error}");
}

#[test]
fn business_days_are_those_of_the_calendar_between_the_first_and_the_last_row() {
    let rows = "INSERT INTO daily SELECT date, '1301', 1, 1, 1, 1, 1
        FROM (VALUES (DATE '2025-01-06'), ('2025-01-08'), ('2025-01-11')) days(date);";
    let days = |calendar: &str| {
        let (_folder, data) = data_with(&format!("{TABLE} {rows} {calendar}"));
        let published = publish(&data).unwrap();
        let grid = crate::grid::Grid::open(&data.rank_grid(1), 1).unwrap();
        assert_eq!(published.days, grid.days().len());
        grid.days().iter().map(|day| day.to_string()[8..].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(days(""), ["06", "08", "11"]);
    // Days before, between and after; one that is closed; and one that is closed and has a row.
    let table = "CREATE TABLE calendar (date DATE, is_open BOOLEAN);";
    let calendar = "INSERT INTO calendar VALUES ('2025-01-03', true), ('2025-01-06', true),
        ('2025-01-07', true), ('2025-01-09', false), ('2025-01-10', true), ('2025-01-11', false),
        ('2025-01-13', true);";
    assert_eq!(days(&format!("{table} {calendar}")), ["06", "07", "08", "10", "11"]);
    assert_eq!(days(table), ["06", "08", "11"], "a calendar that knows nothing");
    // In any spelling, and beside other columns.
    let other = "CREATE TABLE Calendar (name VARCHAR, \"Is_Open\" BOOLEAN, \"Date\" DATE);
        INSERT INTO calendar VALUES ('Tuesday', true, '2025-01-07');";
    assert_eq!(days(other), ["06", "07", "08", "11"]);
}

#[test]
fn a_calendar_of_another_form_is_refused_in_words() {
    for (columns, found) in [
        ("day DATE", "day DATE"),
        ("date VARCHAR, is_open BOOLEAN", "date VARCHAR, is_open BOOLEAN"),
        ("date DATE, is_open INTEGER", "date DATE, is_open INTEGER"),
    ] {
        let table = format!("{} CREATE TABLE calendar ({columns});", market());
        let (_folder, data) = data_with(&table);
        let error = publish(&data).unwrap_err().to_string();
        let words = format!("columns date DATE and is_open BOOLEAN; it has {found}");
        assert!(error.contains(&words), "{error}");
    }
}

/// Changes the combined database.
fn change(data: &DataDir, sql: &str) {
    Connection::open(data.mother()).unwrap().execute_batch(sql).unwrap();
}

/// Everything that the current snapshot has: its tables, in their order, and its grid's cells.
fn content(data: &DataDir) -> Vec<String> {
    let number = data.current().unwrap().unwrap();
    let connection = Connection::open(data.rank_db(number)).unwrap();
    assert!(rows_are_in_order(&connection).unwrap());
    let tables = ["cal", "issue", "g", "split", "unknown_days", "gap"];
    let mut content = Vec::new();
    for table in tables {
        content.push(table.to_owned());
        let rows = format!("SELECT concat_ws('|', *COLUMNS(*)) FROM {table}");
        // Without splits their tables are not there.
        content.extend(crate::sql::column::<String>(&connection, &rows).unwrap_or_default());
    }
    let grid = crate::grid::Grid::open(&data.rank_grid(number), number).unwrap();
    grid.check_all(1).unwrap();
    for day in 0..grid.days().len() {
        let cells = domain::formula::Column::ALL.map(|column| {
            grid.stripe(day, column).iter().map(|cell| cell.to_bits()).collect::<Vec<_>>()
        });
        content.push(format!("{} {cells:?}", grid.days()[day]));
    }
    content.push(format!("{:?} {:?}", grid.codes(), grid.splits()));
    content
}

/// The table of rules of when a snapshot goes on from the one before, row by row; whatever it does, it
/// has what one that is made whole has.
#[test]
fn a_snapshot_goes_on_from_the_one_before_where_that_is_its_beginning() {
    let columns = "ALTER TABLE daily ADD COLUMN adjustment_factor DOUBLE;
        UPDATE daily SET adjustment_factor = 1;
        UPDATE daily SET adjustment_factor = 2 WHERE code = '1305' AND date = '2023-03-01';";
    let (_folder, data) = data_with(&format!("{}{columns}", market()));
    let new_days = |data: &DataDir, what: &str| {
        let published = publish(data).unwrap();
        // The same source in another folder, whose snapshots are all made whole.
        let whole = tempfile::tempdir().unwrap();
        let whole = DataDir::new(whole.path());
        std::fs::create_dir_all(whole.mother().parent().unwrap()).unwrap();
        std::fs::copy(data.mother(), whole.mother()).unwrap();
        let made_whole = publish(&whole).unwrap();
        assert_eq!(made_whole.new_days, made_whole.days);
        assert!(content(data) == content(&whole), "{what}");
        (published.new_days, published.days)
    };
    let day = |date: &str, code: &str| {
        format!(
            "INSERT INTO daily SELECT DATE '{date}', code, 10.5, 12, 9, NULL, 7, 1
               FROM (SELECT DISTINCT code FROM daily) WHERE code <> '{code}';"
        )
    };
    assert_eq!(new_days(&data, "the first one"), (300, 300));
    assert_eq!(new_days(&data, "nothing is new"), (0, 300));
    change(&data, &day("2023-10-29", "1301"));
    assert_eq!(new_days(&data, "one more day"), (1, 301));
    change(&data, &(day("2023-10-30", "") + &day("2023-10-31", "1300")));
    assert_eq!(new_days(&data, "two more days"), (2, 303));
    change(
        &data,
        "UPDATE daily SET adjustment_factor = 0.5 WHERE date = '2023-10-30' AND code = '1301'",
    );
    assert_eq!(new_days(&data, "a split on a day that is known"), (0, 303));
    change(&data, "UPDATE daily SET volume = 8 WHERE date = '2023-10-30' AND code = '1301'");
    assert_eq!(new_days(&data, "another value"), (303, 303));
    // Of an even number of rows the hashes of a value that all have take each other out.
    let even = |volume: u32| {
        format!("UPDATE daily SET volume = {volume} WHERE date = '2023-02-01' AND code <> '1300'")
    };
    change(&data, &even(44));
    assert_eq!(new_days(&data, "the same value in many rows"), (303, 303));
    change(&data, &even(54));
    assert_eq!(new_days(&data, "another value in many rows"), (303, 303));
    change(&data, "DELETE FROM daily WHERE date = '2023-01-04' AND code = '1301'");
    assert_eq!(new_days(&data, "one row less"), (303, 303));
    change(&data, "INSERT INTO daily VALUES ('2023-11-01', '9999', 1, 1, 1, 1, 1, 1)");
    assert_eq!(new_days(&data, "another issue"), (304, 304));
    change(&data, "DELETE FROM daily WHERE date = '2023-11-01'");
    assert_eq!(new_days(&data, "one day less"), (303, 303));
    change(
        &data,
        "CREATE TABLE calendar AS SELECT DATE '2023-10-30' AS date, true AS is_open;
         INSERT INTO daily VALUES ('2023-11-02', '1300', 1, 1, 1, 1, 1, 1)",
    );
    assert_eq!(new_days(&data, "a calendar that says nothing new"), (1, 304));
    change(&data, "INSERT INTO calendar VALUES ('2023-11-01', true)");
    assert_eq!(new_days(&data, "a business day between"), (305, 305));
    change(
        &data,
        "INSERT INTO daily VALUES ('2023-11-06', '1300', 1, 1, 1, 1, 1, 1);
        INSERT INTO calendar VALUES ('2023-11-03', true)",
    );
    assert_eq!(new_days(&data, "a gap among the new days"), (2, 307));
    change(&data, "ALTER TABLE daily DROP COLUMN adjustment_factor");
    assert_eq!(new_days(&data, "splits are not told any more"), (0, 307));
}

#[test]
fn a_snapshot_does_not_go_on_from_one_that_is_damaged_or_of_something_else() {
    let (_folder, data) = data_with(&market());
    let mut row = 0;
    let mut publish_more = || {
        row += 1;
        let more =
            format!("INSERT INTO daily VALUES (DATE '2023-11-01' + {row}, '1300', 1, 1, 1, 1, 1)");
        change(&data, &more);
        let published = publish(&data).unwrap();
        content(&data);
        (published.number, published.days - published.new_days)
    };
    assert_eq!(publish_more(), (1, 0));
    assert_eq!(publish_more(), (2, 301));
    let tables = |number, sql: &str| {
        Connection::open(data.rank_db(number)).unwrap().execute_batch(sql).unwrap();
    };
    tables(2, "UPDATE made SET form = 'of another version'");
    assert_eq!(publish_more(), (3, 0));
    tables(3, "UPDATE made SET content = content + 1");
    assert_eq!(publish_more(), (4, 0));
    tables(4, "DROP TABLE made");
    assert_eq!(publish_more(), (5, 0));
    assert_eq!(publish_more(), (6, 305));
    std::fs::write(data.rank_db(6), "no database").unwrap();
    assert_eq!(publish_more(), (7, 0));
    std::fs::remove_file(data.rank_db(7)).unwrap();
    assert_eq!(publish_more(), (8, 0));
    let mut grid = std::fs::read(data.rank_grid(8)).unwrap();
    grid[5_000] ^= 1;
    std::fs::write(data.rank_grid(8), grid).unwrap();
    assert_eq!(publish_more(), (9, 0));
    std::fs::remove_file(data.rank_grid(9)).unwrap();
    assert_eq!(publish_more(), (10, 0));
    while publish_more() != (19, 318) {}
    assert_eq!(publish_more(), (20, 0), "every now and then a snapshot is made whole");
    assert_eq!(publish_more(), (21, 320));
}

/// The rules of which rows are splits, each with the row that it decides.
#[test]
fn splits_are_those_of_the_table_of_rules() {
    let columns = "ALTER TABLE daily ADD COLUMN adjustment_factor DOUBLE;";
    let rows = "INSERT INTO daily SELECT DATE '2025-01-06' + d::INTEGER, (1300 + c)::VARCHAR,
        1, 1, 1, 1, 1, CASE WHEN c = 8 THEN NULL ELSE 1 END FROM range(8) days(d), range(9) codes(c);";
    let set = |day: u32, code: u32, factor: &str| {
        format!(
            "UPDATE daily SET adjustment_factor = {factor}
               WHERE date = DATE '2025-01-06' + {day} AND code = '{}';",
            1300 + code
        )
    };
    let some = [
        set(2, 0, "0.5"),
        set(5, 0, "10"),
        set(3, 1, "0"),
        set(4, 1, "-1"),
        set(5, 1, "'nan'"),
        set(6, 1, "'inf'"),
        set(3, 2, "2"),
    ]
    .concat();
    let published = |more: &str| {
        let (_folder, data) = data_with(&format!("{TABLE}{more}"));
        publish(&data).unwrap();
        let grid = crate::grid::Grid::open(&data.rank_grid(1), 1).unwrap();
        grid.splits().map(AsRef::as_ref).cloned()
    };
    assert_eq!(published("INSERT INTO daily VALUES ('2025-01-06', '1', 1, 1, 1, 1, 1);"), None);
    let splits = published(&format!("{columns}{rows}{some}")).unwrap();
    let found: Vec<_> =
        splits.between(0, 9).iter().map(|one| (one.day, one.code, one.factor)).collect();
    let expected = [
        (2, 0, Some(0.5)),
        (3, 1, None),
        (3, 2, Some(2.0)),
        (4, 1, None),
        (5, 0, Some(10.0)),
        (5, 1, None),
        (6, 1, None),
    ];
    assert_eq!(found, expected);
    assert!((0..8).all(|code| !splits.is_unknown(code, 0, 7)), "nothing tells a source");
    // S5.
    assert_eq!(unknown_days(&splits, 8), [0, 1, 2, 3, 4, 5, 6, 7]);

    // S4.
    let source = "ALTER TABLE daily ADD COLUMN source VARCHAR;
        UPDATE daily SET source = CASE WHEN code = '1301' THEN 'public' ELSE 'vendor' END;
        UPDATE daily SET source = 'public' WHERE date IN ('2025-01-06', '2025-01-07', '2025-01-10');
        UPDATE daily SET source = NULL WHERE date = '2025-01-09' AND code = '1302';";
    let splits = published(&format!("{columns}{rows}{some}{source}")).unwrap();
    let found: Vec<_> = splits.between(0, 9).iter().map(|one| (one.day, one.code)).collect();
    assert_eq!(found, [(2, 0), (3, 2), (5, 0)]);
    // U1: from and to such rows, and between them.
    for code in [0, 2, 3] {
        assert_eq!(unknown_days(&splits, code), [1, 2, 4, 5], "issue {code}");
    }
    assert_eq!(unknown_days(&splits, 1), [1, 2, 3, 4, 5, 6, 7]);
}

fn unknown_days(splits: &Splits, code: u32) -> Vec<u32> {
    (0..8).filter(|day| splits.is_unknown(code, *day, *day)).collect()
}

/// The rules of where nobody knows, beside U1.
#[test]
fn where_splits_may_be_missing_is_that_of_the_table_of_rules() {
    let rows = "ALTER TABLE daily ADD COLUMN adjustment_factor DOUBLE;
        ALTER TABLE daily ADD COLUMN source VARCHAR;
        INSERT INTO daily SELECT DATE '2025-01-06' + d::INTEGER, code, 1, 1, 1, 1, 1, 1, source
          FROM range(8) days(d), (VALUES ('1300', 'vendor'), ('1301', 'files'), ('1302', 'web_broker'),
            ('1303', NULL), ('1304', 'vendor'), ('1305', 'vendor'), ('1306', 'vendor'))
            issues(code, source);
        DELETE FROM daily WHERE date IN ('2025-01-09', '2025-01-10') AND code <> '1300';
        UPDATE daily SET source = 'files' WHERE date = '2025-01-11' AND code = '1301';
        UPDATE daily SET source = 'web_broker' WHERE date = '2025-01-11' AND code = '1304';
        DELETE FROM daily WHERE date < '2025-01-09' AND code = '1305';
        DELETE FROM daily WHERE date > '2025-01-09' AND code = '1306';";
    let published = |more: &str| {
        let (_folder, data) = data_with(&format!("{TABLE}{rows}{more}"));
        publish(&data).unwrap();
        let grid = crate::grid::Grid::open(&data.rank_grid(1), 1).unwrap();
        let splits = grid.splits().unwrap();
        assert!(splits.between(0, 9).is_empty());
        (0..7).map(|code| unknown_days(splits, code)).collect::<Vec<_>>()
    };
    // U3 of the second one, and of the fifth, of which one of two rows is the vendor's; U4 of those whose
    // source leaves days out, and of issues that begin or end there.
    let mut expected = vec![Vec::new(); 7];
    (expected[1], expected[4]) = (vec![3, 4, 5], vec![3, 4, 5]);
    assert_eq!(published(""), expected);
    // The same the other way round.
    let turned = "UPDATE daily SET source = CASE WHEN date < '2025-01-09' THEN 'web_broker' ELSE 'vendor' END
        WHERE code = '1304';";
    assert_eq!(published(turned), expected);
    // U2: without the row of the first issue one of the days is a gap, and counts for all.
    let gap = "DELETE FROM daily WHERE date = '2025-01-09';";
    let calendar = "CREATE TABLE calendar AS SELECT DATE '2025-01-09' AS date, true AS is_open;";
    let mut with_gap: Vec<_> = expected.iter().map(|days| [&days[..], &[3]].concat()).collect();
    (with_gap[1], with_gap[4]) = (vec![3, 4, 5], vec![3, 4, 5]);
    assert_eq!(published(&format!("{gap}{calendar}")), with_gap);
    // Without a calendar nobody knows of that day.
    (expected[1], expected[4]) = (vec![3, 4], vec![3, 4]);
    assert_eq!(published(gap), expected);
}

/// A row that does not tell its factor is none that says that there was no split, whoever wrote it.
#[test]
fn a_row_without_a_factor_says_nothing_of_its_day() {
    let published = |more: &str| {
        let (_folder, data) = data_with(&format!(
            "{TABLE} ALTER TABLE daily ADD COLUMN adjustment_factor DOUBLE;
             INSERT INTO daily SELECT DATE '2025-01-06' + d::INTEGER, (1300 + c)::VARCHAR,
               1, 1, 1, 1, 1, CASE WHEN d = 5 AND c = 0 THEN 0.5 ELSE 1 END
               FROM range(8) days(d), range(4) codes(c);
             UPDATE daily SET adjustment_factor = NULL WHERE (date, code) IN
               (('2025-01-09', '1300'), ('2025-01-10', '1300'), ('2025-01-06', '1301'));
             DELETE FROM daily WHERE date IN ('2025-01-08', '2025-01-09') AND code = '1302';
             UPDATE daily SET adjustment_factor = NULL WHERE date = '2025-01-10' AND code = '1302';{more}"
        ));
        publish(&data).unwrap();
        let grid = crate::grid::Grid::open(&data.rank_grid(1), 1).unwrap();
        let splits = grid.splits().unwrap();
        assert!(splits.has(0, 5, 5) && splits.between(0, 9).len() == 1);
        (0..4).map(|code| unknown_days(splits, code)).collect::<Vec<_>>()
    };
    // U5: from the day after the row before, and alone where there is none.
    let expected = [vec![3, 4], vec![0], vec![2, 3, 4], vec![]];
    assert_eq!(published(""), expected);
    for source in ["vendor", "files", "web_broker", "somebody"] {
        let more = format!("ALTER TABLE daily ADD COLUMN source VARCHAR DEFAULT '{source}';");
        assert_eq!(published(&more), expected, "{source}");
    }
}

#[test]
fn a_column_with_more_numbers_than_splits_are_allowed_tells_of_none() {
    let most = crate::limits::SNAPSHOT_SPLITS_MAX;
    let known = |count: usize| {
        let (_folder, data) = data_with(&format!(
            "{TABLE} ALTER TABLE daily ADD COLUMN adjustment_factor DOUBLE;
             INSERT INTO daily SELECT DATE '2000-01-01' + (n // 500)::INTEGER,
               (1000 + n % 500)::VARCHAR, 1, 1, 1, 1, 1, 2 FROM range({count}) r(n);"
        ));
        publish(&data).unwrap();
        let grid = crate::grid::Grid::open(&data.rank_grid(1), 1).unwrap();
        grid.splits().map(|splits| splits.between(0, u32::MAX).len())
    };
    assert_eq!((known(most), known(most + 1)), (Some(most), None));
}

#[test]
fn what_a_killed_publication_has_left_is_removed() {
    let (_folder, data) = data_with(&market());
    remove_leftovers(&data).unwrap();
    publish(&data).unwrap();
    let spill = data.rank_folder().join("spill");
    std::fs::create_dir(&spill).unwrap();
    let left = [
        data.rank_db(2).with_extension("db.new"),
        data.rank_db(2).with_extension("db.new.wal"),
        data.rank_db(2),
        data.rank_grid(3),
        data.rank_folder().join(".tmpAbCdEf"),
        data.rank_folder().join(".kumiki-AbCdEf"),
        spill.join("duckdb_temp_storage-0.tmp"),
    ];
    let write = || {
        left.iter().for_each(|path| std::fs::write(path, "half").unwrap());
        // It notes the number before it begins.
        std::fs::write(data.rank_folder().join("WRITTEN"), "1\n2\n3\n").unwrap();
    };
    write();
    remove_leftovers(&data).unwrap();
    assert!(left.iter().all(|path| !path.exists()) && !spill.exists());
    assert!(data.rank_db(1).is_file() && data.rank_grid(1).is_file());
    // A publication does the same before it begins, and takes the number that nobody has used.
    std::fs::create_dir(&spill).unwrap();
    write();
    assert_eq!(publish(&data).unwrap().number, 2);
    assert!([0, 1, 3, 4, 5, 6].iter().all(|place| !left[*place].exists()));
    // Somebody's own folder of this name stays, and what is in it.
    let own = spill.join("notes.txt");
    std::fs::create_dir(&spill).unwrap();
    write();
    std::fs::write(&own, "mine").unwrap();
    remove_leftovers(&data).unwrap();
    assert_eq!(publish(&data).unwrap().number, 3);
    assert!(own.is_file() && !left[6].exists());
}
