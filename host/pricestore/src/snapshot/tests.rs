//! Publishing, what is refused, and what is cleaned up.

use domain::adjustment::Adjustment;
use domain::formula::Column;
use duckdb::Connection;

use super::*;
use crate::data_dir::DataDir;
use crate::grid::{COLUMNS, Grid, Splits, cell};

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
    assert_eq!(names, ["CURRENT", "LOCK", "WRITTEN", "rank-3.grid", "rank-4.grid"]);
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
        let grid = Grid::open(&data.rank_grid(1), 1).unwrap();
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

/// The grid holds what a join of calendar, issues and rows gives, and so does the table of statements, whatever
/// order the source has and however many days are in memory at a time.
#[test]
fn the_grid_is_what_a_join_gives() {
    let odd = format!(
        "{} DELETE FROM daily WHERE hash(date, code) % 7 = 0;
         UPDATE daily SET close = 0 WHERE volume % 11 = 3; UPDATE daily SET open = 'inf' WHERE volume % 13 = 5;
         UPDATE daily SET low = NULL WHERE volume % 17 = 1; UPDATE daily SET volume = 'nan' WHERE volume = 8;",
        market()
    );
    let shuffled = format!(
        "{odd} CREATE TABLE other AS FROM daily ORDER BY hash(date, code); DROP TABLE daily;
         ALTER TABLE other RENAME TO daily;"
    );
    for (source, block_cells) in
        [(&odd, usize::MAX), (&odd, 37 * 7 + 5), (&shuffled, usize::MAX), (&shuffled, 1)]
    {
        let (_folder, data) = data_with(source);
        std::fs::create_dir_all(data.rank_folder()).unwrap();
        publish::publish_held(&data, block_cells).unwrap();
        let grid = Grid::open(&data.rank_grid(1), 1).unwrap();
        grid.check_all(1).unwrap();
        let joined = "SELECT s.open, s.high, s.low, s.close, s.volume
            FROM (SELECT DISTINCT date FROM daily) d CROSS JOIN (SELECT DISTINCT code FROM daily) c
            LEFT JOIN daily s ON s.date = d.date AND s.code = c.code ORDER BY d.date, c.code";
        let tables = Connection::open_in_memory().unwrap();
        make_tables(&tables, &data, (0, 299)).unwrap();
        let dense = "SELECT o, h, l, c, volume FROM g";
        let rows = |connection: &Connection, sql: &str| -> Vec<[Option<f64>; COLUMNS]> {
            let mut statement = connection.prepare(sql).unwrap();
            let row = |row: &duckdb::Row<'_>| {
                Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?])
            };
            statement.query_map([], row).unwrap().map(Result::unwrap).collect()
        };
        let (joined, dense) =
            (rows(&Connection::open(data.mother()).unwrap(), joined), rows(&tables, dense));
        assert_eq!((joined.len(), dense.len()), (300 * 37, 300 * 37));
        for (place, (joined, dense)) in joined.iter().zip(&dense).enumerate() {
            let of_grid = Column::ALL.map(|column| grid.stripe(place / 37, column)[place % 37]);
            let about = format!("{block_cells} cells at a time, {place}: {joined:?}");
            assert_eq!(of_grid.map(f64::to_bits), joined.map(|one| cell(one).to_bits()), "{about}");
            let prices = |cells: [Option<f64>; COLUMNS]| {
                cells.map(|one| one.filter(|one| one.is_finite() && *one != 0.0))
            };
            assert_eq!(dense[..4], prices(*joined)[..4], "{about}");
            assert_eq!(dense[4], joined[4].filter(|volume| volume.is_finite()), "{about}");
        }
        let order = "SELECT bool_and(rowid = day_no::BIGINT * 37 + code_id)
            AND bool_and(present = (c IS NOT NULL)) FROM g";
        assert!(tables.query_row(order, [], |row| row.get::<_, bool>(0)).unwrap());
    }
}

#[test]
fn the_table_of_statements_has_the_days_that_are_asked_for() {
    let (_folder, data) = data_with(&market());
    let tables = Connection::open_in_memory().unwrap();
    make_tables(&tables, &data, (7, 9)).unwrap();
    let rows = "SELECT count(*), min(day_no), max(day_no), sum(volume) FROM g";
    let rows: (i64, i64, i64, f64) = tables
        .query_row(rows, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .unwrap();
    assert_eq!(rows, (3 * 37, 7, 9, (7 + 8 + 9) as f64 * (36.0 * 37.0 / 2.0)));
    assert!(tables.execute_batch("FROM mother.daily").is_err(), "it is not open any more");
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
        // The nearest fraction, no factor at all, and what is nothing but 1.
        set(3, 4, "0.33333"),
        set(4, 4, "1001"),
        set(5, 4, "0.9999"),
    ]
    .concat();
    let published = |more: &str| {
        let (_folder, data) = data_with(&format!("{TABLE}{more}"));
        publish(&data).unwrap();
        let grid = Grid::open(&data.rank_grid(1), 1).unwrap();
        grid.splits().map(AsRef::as_ref).cloned()
    };
    assert_eq!(published("INSERT INTO daily VALUES ('2025-01-06', '1', 1, 1, 1, 1, 1);"), None);
    let splits = published(&format!("{columns}{rows}{some}")).unwrap();
    let found: Vec<_> =
        splits.between(0, 9).iter().map(|one| (one.day, one.code, one.adjustment)).collect();
    let terms = Adjustment::from_terms;
    let expected = [
        (2, 0, terms(2, 1)),
        (3, 1, None),
        (3, 2, terms(1, 2)),
        (3, 4, terms(3, 1)),
        (4, 1, None),
        (4, 4, None),
        (5, 0, terms(1, 10)),
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
    assert_eq!(found, [(2, 0), (3, 2), (3, 4), (5, 0)]);
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
        let grid = Grid::open(&data.rank_grid(1), 1).unwrap();
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
        let grid = Grid::open(&data.rank_grid(1), 1).unwrap();
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
        let grid = Grid::open(&data.rank_grid(1), 1).unwrap();
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
        data.rank_grid(2),
        data.rank_grid(3),
        // As earlier versions wrote it.
        data.rank_grid(3).with_extension("db"),
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
    assert!(data.rank_grid(1).is_file());
    // A publication does the same before it begins, and takes the number that nobody has used.
    std::fs::create_dir(&spill).unwrap();
    write();
    assert_eq!(publish(&data).unwrap().number, 2);
    assert!(left[1..].iter().all(|path| !path.exists()));
    // Somebody's own folder of this name stays, and what is in it.
    let own = spill.join("notes.txt");
    std::fs::create_dir(&spill).unwrap();
    write();
    std::fs::write(&own, "mine").unwrap();
    remove_leftovers(&data).unwrap();
    assert_eq!(publish(&data).unwrap().number, 3);
    assert!(own.is_file() && !left[5].exists());
}
