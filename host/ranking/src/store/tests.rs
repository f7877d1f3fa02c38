//! Snapshots as the kernel and statements read them, and the guard of the positional join.

use duckdb::Connection;
use pricestore::generation::publish_generation_of;
use pricestore::{DataDir, Published, sql};

use super::*;
use crate::engine::{EngineOptions, RankEngine};
use crate::formula::Formula;
use crate::query::{CancelToken, RankOrder, RankQuery};

const TABLE: &str = "CREATE TABLE daily (date DATE, code VARCHAR, open DOUBLE, high DOUBLE,
    low DOUBLE, close DOUBLE, volume DOUBLE);";

/// A data directory whose combined database was filled by `sql`.
fn data_with(sql: &str) -> (tempfile::TempDir, DataDir) {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::new(folder.path());
    std::fs::create_dir_all(data.mother().parent().unwrap()).unwrap();
    let connection = Connection::open(data.mother()).unwrap();
    connection.execute_batch(sql).unwrap();
    connection.close().map_err(|(_, error)| error).unwrap();
    (folder, data)
}

/// 37 codes on 300 days with one row in seven missing, so that vectors of DuckDB (2,048 rows) and
/// days do not end together.
fn gaps() -> String {
    format!(
        "{TABLE} INSERT INTO daily SELECT DATE '2023-01-02' + d::INTEGER, (1300 + c)::VARCHAR,
           100 + (d * 31 + c * 17) % 50, 160 + d % 7, 90 + c % 5,
           CASE WHEN (d + c) % 41 = 0 THEN NULL WHEN (d + c) % 43 = 0 THEN 0
                ELSE 100 + (d * 37 + c * 11) % 53 END,
           CASE WHEN (d * c) % 13 = 0 THEN 0 ELSE (d * 7 + c) % 1000 END
         FROM range(300) days(d), range(37) codes(c) WHERE (d * 5 + c * 3) % 7 <> 0;"
    )
}

fn publish(data: &DataDir) -> Published {
    let published = pricestore::publish(data).unwrap();
    publish_generation_of(data, &published).unwrap();
    published
}

fn open(data: &DataDir) -> RankEngine {
    let options = EngineOptions { threads: 2, follow: false, ..EngineOptions::default() };
    RankEngine::open(data.path(), options).unwrap()
}

fn query(formula: &str) -> RankQuery {
    RankQuery {
        from: "2023-01-01".parse().unwrap(),
        to: "2023-12-31".parse().unwrap(),
        sort_by: Formula::parse(formula).unwrap().into(),
        order: RankOrder::Desc,
        limit: 20,
        codes: None,
        adjusted: false,
    }
}

/// The positional join has had bugs in DuckDB, above all with filters above it. On the version in
/// use it must give what a plain join over day and code gives, for every shape of statement that
/// is ever made from it.
#[test]
fn the_positional_join_equals_a_plain_join() {
    let (_folder, data) = data_with(&gaps());
    let connection = reference::open(2).unwrap();
    reference::prepare(&connection, &data, (0, 299)).unwrap();
    for lag in [1, 2, 3, 5, 55, 56, 111, 250, 299] {
        for (first, last) in [(lag, 299), (lag, lag), ((lag + 299) / 2, 299)] {
            let sql = format!(
                "WITH lined_up AS (SELECT day_no, code_id, c, c_lag, v_lag
                   FROM (SELECT day_no, code_id, present, c FROM g
                         WHERE day_no BETWEEN {first} AND {last})
                   POSITIONAL JOIN (SELECT c c_lag FROM g
                         WHERE day_no BETWEEN {} AND {})
                   POSITIONAL JOIN (SELECT volume v_lag FROM g
                         WHERE day_no BETWEEN {} AND {}) WHERE present),
                 plain AS (SELECT a.day_no, a.code_id, a.c, b.c c_lag, b.volume v_lag
                   FROM g a JOIN g b ON b.day_no = a.day_no - {lag} AND b.code_id = a.code_id
                   WHERE a.day_no BETWEEN {first} AND {last} AND a.present)
                 SELECT (SELECT count(*) FROM plain),
                   (SELECT count(*) FROM (FROM lined_up EXCEPT ALL FROM plain)),
                   (SELECT count(*) FROM (FROM plain EXCEPT ALL FROM lined_up))",
                first - lag,
                last - lag,
                first - lag,
                last - lag
            );
            let counts: (i64, i64, i64) = connection
                .query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .unwrap();
            assert!(counts.0 > 0, "lag {lag}: nothing was compared");
            assert_eq!((counts.1, counts.2), (0, 0), "lag {lag}, days {first} to {last}");
        }
    }
}

/// A lag counts the days that the calendar calls open, those of which nobody has a row too, and closed
/// days with rows. Held against a plain numbering of days by the database engine.
#[test]
fn a_lag_counts_the_business_days_of_the_calendar() {
    let holes = format!(
        "{} DELETE FROM daily WHERE (date - DATE '2023-01-02') % 11 IN (4, 5);
         CREATE TABLE calendar AS SELECT DATE '2022-12-01' + d::INTEGER AS date, d % 13 <> 6 AS is_open
           FROM range(400) days(d);",
        gaps()
    );
    let (_folder, data) = data_with(&holes);
    let published = publish(&data);
    let source = Connection::open(data.mother()).unwrap();
    let engine = open(&data);
    for lag in [1, 2, 5, 20] {
        let plain = format!(
            "WITH ends AS (SELECT min(date) AS first, max(date) AS last FROM daily),
               numbered AS (SELECT date, row_number() OVER (ORDER BY date) AS number
                 FROM (SELECT date FROM daily UNION SELECT date FROM calendar, ends
                       WHERE is_open AND date BETWEEN first AND last)),
               priced AS (SELECT number, date, code, nullif(close, 0) AS close
                 FROM daily JOIN numbered USING (date))
             SELECT concat_ws(' ', now.date, now.code, coalesce((now.close - old.close)::VARCHAR, '-'))
               FROM priced now LEFT JOIN priced old
                 ON old.code = now.code AND old.number = now.number - {lag}
               WHERE now.close IS NOT NULL ORDER BY 1"
        );
        let expected: Vec<String> = sql::column(&source, &plain).unwrap();
        let query = RankQuery { limit: 37, ..query(&format!("Close - Close[-{lag}]")) };
        let ranking = engine.rank(&query, &CancelToken::new()).unwrap();
        assert!(published.days == ranking.days.len() && published.days > 270);
        let value = |row: &crate::query::RankRow| match row.sort_value {
            Some(value) => format!("{value:?}"),
            None => "-".to_owned(),
        };
        let text = |row: &crate::query::RankRow| {
            let crate::query::RankRow { day, code, .. } = *row;
            let (day, code) = (ranking.days[day as usize], &ranking.codes[code as usize]);
            format!("{day} {code} {}", value(row))
        };
        let mut found: Vec<String> = ranking.rows.iter().map(text).collect();
        found.sort();
        assert_eq!(found, expected, "lag {lag}");
        assert_eq!(engine.rank_by_sql(&query, &CancelToken::new()).unwrap(), ranking);
    }
}

#[test]
fn kernel_and_statement_agree_bit_for_bit() {
    let (_folder, data) = data_with(&gaps());
    publish(&data);
    let engine = open(&data);
    let huge = format!("1{}", "0".repeat(300));
    let formulas = [
        "(Close - Close[-5]) / Close[-5] * 100".to_owned(),
        "(High - Low) / Close * 100".to_owned(),
        "Volume / Volume[-1]".to_owned(),
        "Open - Close[-1] + High[-20] * 0.1 - Low[-299]".to_owned(),
        "-(Close - Close[-1])".to_owned(),
        "Open / (Close - Open)".to_owned(),
        "Close[-2600]".to_owned(),
        "1 / 3".to_owned(),
        "1 / 0".to_owned(),
        format!("Close * {huge} * {huge} - Close"),
        format!("1 / (Close * {huge} * {huge})"),
        "Close * 0.1234567890123456789 + 9007199254740993".to_owned(),
    ];
    for text in &formulas {
        for (order, limit) in [(RankOrder::Desc, 20), (RankOrder::Asc, 500), (RankOrder::Asc, 1)] {
            for codes in [None, Some(vec!["1310".to_owned(), "1302".to_owned()])] {
                let query = RankQuery { order, limit, codes, ..query(text) };
                let fast = engine.rank(&query, &CancelToken::new()).unwrap();
                let reference = engine.rank_by_sql(&query, &CancelToken::new()).unwrap();
                let bits = |ranking: &crate::Ranking| {
                    let values = ranking.rows.iter().map(|row| row.sort_value.map(f64::to_bits));
                    values.collect::<Vec<_>>()
                };
                assert!(!fast.rows.is_empty());
                assert_eq!(fast, reference, "{text} {order} {limit}");
                assert_eq!(bits(&fast), bits(&reference), "{text} {order} {limit}");
            }
        }
    }
}

/// Every row of the table at [`RankQuery::adjusted`], by the kernel and by the statement.
#[test]
fn values_across_splits_follow_the_table_of_rules() {
    // Seven days of one issue for each rule; every close is 100 and every volume 1,000.
    let factors = "INSERT INTO daily SELECT DATE '2025-01-06' + d::INTEGER, code, 100, 100, 100, 100,
          1000, CASE WHEN d = ex_day THEN factor ELSE 1 END, CASE WHEN d = 1 THEN early ELSE 'vendor' END
        FROM range(7) days(d), (VALUES ('1301', 9, 1.0, 'vendor'), ('1302', 4, 0.5, 'vendor'),
          ('1303', 3, 10.0, 'vendor'), ('1304', 4, 0.0, 'vendor'), ('1305', 4, 0.5, 'public'),
          ('1306', 6, 0.5, 'vendor'), ('1307', 1, 0.5, 'vendor'), ('1308', 4, 1e307, 'vendor'),
          ('1309', 4, NULL, 'vendor'), ('1310', 9, 1.0, 'public'), ('1311', 9, 1.0, 'vendor'),
          ('1312', 4, 0.5, 'vendor'), ('1313', 9, 1.0, 'vendor'), ('1314', 9, 1.0, NULL))
          issues(code, ex_day, factor, early);
        UPDATE daily SET source = 'public' WHERE code = '1311' AND date = '2025-01-09';
        DELETE FROM daily WHERE code IN ('1312', '1313', '1314') AND date = '2025-01-09';
        UPDATE daily SET source = NULL WHERE code = '1314';
        UPDATE daily SET adjustment_factor = 0.2 WHERE code = '1302' AND date = '2025-01-09';";
    let columns = "ALTER TABLE daily ADD COLUMN adjustment_factor DOUBLE;
        ALTER TABLE daily ADD COLUMN source VARCHAR;";
    let (_folder, data) = data_with(&format!("{TABLE}{columns}{factors}"));
    publish(&data);
    let engine = open(&data);
    // Ranked is the day with number 5, the lag goes to that with number 1.
    let values = |formula: &str, adjusted: bool| -> Vec<Option<f64>> {
        let day = "2025-01-11".parse().unwrap();
        let query = RankQuery { from: day, to: day, adjusted, ..query(formula) };
        let mut ranking = engine.rank(&query, &CancelToken::new()).unwrap();
        assert_eq!(engine.rank_by_sql(&query, &CancelToken::new()).unwrap(), ranking, "{formula}");
        assert!(ranking.rows.iter().all(|row| (row.close, row.volume) == (100.0, Some(1_000.0))));
        ranking.rows.sort_by_key(|row| row.code);
        let spans: Vec<_> = ranking.rows.iter().map(|row| ranking.spans_split(row)).collect();
        let with = |is: Option<bool>| -> Vec<usize> {
            (0..14).filter(|code| spans[*code] == is).collect()
        };
        let (known, unknown) = match formula.contains('[') {
            true => (&[1, 2, 3, 4, 7, 11][..], &[8, 9, 10, 12][..]),
            false => (&[][..], &[][..]),
        };
        assert_eq!((with(Some(true)), with(None)), (known.to_vec(), unknown.to_vec()));
        ranking.rows.iter().map(|row| row.sort_value).collect()
    };
    assert_eq!(values("Close[-4]", false), [Some(100.0); 14]);
    let prices = [
        Some(100.0), // no split
        Some(10.0),  // two of them, 0.2 and 0.5
        Some(1_000.0),
        None,        // of an unknown factor
        None,        // the earlier row was adjusted by its source
        Some(100.0), // a split after the ranked day
        Some(100.0), // one on the day of the value itself
        None,        // of a number that is no factor
        None,        // a row does not tell its factor
        None,        // the earlier row was adjusted by its source, and no split is known
        None,        // one in between was
        None,        // a split, and a row of the vendor is missing in between
        None,        // the same without a split
        Some(100.0), // a row is missing of a source that may leave out days
    ];
    assert_eq!(values("Close[-4]", true), prices);
    assert_eq!(values("High[-4]", true), prices);
    let volumes = prices.map(|price| price.map(|price| 1_000.0 / (price / 100.0)));
    let found = values("Volume[-4]", true);
    assert_eq!(found[..7], volumes[..7]);
    assert_eq!((found[7], found[8]), (None, None));
    assert_eq!(found[9..13], [None; 4]);
    for formula in ["Close", "Volume", "Close + 0 * Close"] {
        assert_eq!(values(formula, true), values(formula, false), "{formula}");
    }
}

/// Of a factor with five digits the fraction is meant: a price that did not move is the same number, and a volume is
/// of whole shares.
#[test]
fn a_ratio_over_a_split_that_changed_nothing_is_exactly_one() {
    // One share became three; three became one; ten became eleven; and one that is no split.
    let rows = "ALTER TABLE daily ADD COLUMN adjustment_factor DOUBLE;
        INSERT INTO daily SELECT DATE '2025-01-06' + d, code, close, close, close, close, volume, told
        FROM (VALUES ('1301', 0, 300.3, 700, 1), ('1301', 1, 100.1, 2100, 0.33333),
          ('1302', 0, 33.4, 1000, 1), ('1302', 1, 100.2, 333, 3.0), ('1303', 0, 110.11, 700, 1),
          ('1303', 1, 100.1, 770, 0.90909), ('1304', 0, 100.1, 700, 1), ('1304', 1, 100.1, 700, 0.9999))
          rows(code, d, close, volume, told);";
    let (_folder, data) = data_with(&format!("{TABLE}{rows}"));
    publish(&data);
    let engine = open(&data);
    let day = "2025-01-07".parse().unwrap();
    for formula in ["Close / Close[-1]", "Open[-1] / Open", "Volume / Volume[-1]"] {
        let query = RankQuery { from: day, to: day, adjusted: true, ..query(formula) };
        let mut ranking = engine.rank(&query, &CancelToken::new()).unwrap();
        assert_eq!(engine.rank_by_sql(&query, &CancelToken::new()).unwrap(), ranking, "{formula}");
        ranking.rows.sort_by_key(|row| row.code);
        let values: Vec<_> = ranking.rows.iter().map(|row| row.sort_value).collect();
        assert_eq!(values, [Some(1.0); 4], "{formula}");
        let spans: Vec<_> = ranking.rows.iter().map(|row| ranking.spans_split(row)).collect();
        assert_eq!(spans, [Some(true), Some(true), Some(true), Some(false)], "{formula}");
    }
}

#[test]
fn data_that_does_not_tell_of_splits_is_refused_where_they_matter() {
    let (_folder, data) = data_with(&gaps());
    publish(&data);
    let engine = open(&data);
    let raw = engine.rank(&query("Close[-1]"), &CancelToken::new()).unwrap();
    assert_eq!(raw.spans_split(&raw.rows[0]), None);
    let adjusted = RankQuery { adjusted: true, ..query("Close[-1]") };
    for outcome in [
        engine.rank(&adjusted, &CancelToken::new()),
        engine.rank_by_sql(&adjusted, &CancelToken::new()),
        engine.timed(&adjusted, &CancelToken::new()).map(|(ranking, _)| ranking),
    ] {
        assert_eq!(outcome.unwrap_err().code(), "SPLITS_UNKNOWN");
    }
}

#[test]
fn explaining_shows_tree_statement_and_plan() {
    let (_folder, data) = data_with(&gaps());
    publish(&data);
    let engine = open(&data);
    let explanation = engine.explain(&query("Close/Close[-5]"), &CancelToken::new()).unwrap();
    assert_eq!(explanation.formula, "Close / Close[-5]");
    assert_eq!(explanation.tree, "/\n  Close\n  Close, 5 business days earlier\n");
    assert!(explanation.sql.contains("(c / c_5)"), "{}", explanation.sql);
    assert!(explanation.plan.contains("POSITIONAL_SCAN"), "{}", explanation.plan);
    assert!(explanation.agrees && explanation.rows > 4_000);
    let empty = RankQuery { to: "2022-01-01".parse().unwrap(), ..query("Close") };
    assert_eq!(engine.explain(&empty, &CancelToken::new()).unwrap().sql, "");
}

#[test]
fn explaining_can_be_cancelled() {
    let (_folder, data) = data_with(&gaps());
    publish(&data);
    let engine = open(&data);
    let cancel = CancelToken::new();
    cancel.cancel();
    assert_eq!(engine.explain(&query("Close"), &cancel).unwrap_err().code(), "CANCELLED");
    assert_eq!(engine.rank_by_sql(&query("Close"), &cancel).unwrap_err().code(), "CANCELLED");
}

#[test]
fn the_statement_can_be_cancelled_and_takes_no_other_files() {
    let (_folder, data) = data_with(&gaps());
    publish(&data);
    let engine = open(&data);
    let cancel = CancelToken::new();
    cancel.cancel();
    assert_eq!(engine.rank_by_sql(&query("Close"), &cancel).unwrap_err().code(), "CANCELLED");
    let connection = reference::open(1).unwrap();
    reference::prepare(&connection, &data, (0, 9)).unwrap();
    let limit = "SELECT current_setting('memory_limit')";
    let limit: String = connection.query_row(limit, [], |row| row.get(0)).unwrap();
    assert_eq!(limit.replace(".0 ", ""), crate::limits::REFERENCE_MEMORY);
    for sql in [
        "ATTACH 'other.db' AS other",
        "SELECT * FROM read_csv('/etc/hostname')",
        "SET threads = 8",
        "SELECT * FROM mother.daily",
    ] {
        assert!(connection.execute_batch(sql).is_err(), "{sql}");
    }
}

/// The statement reads the very database that the snapshot was made of, or says that it is another one.
#[test]
fn another_combined_database_than_the_snapshots_is_told() {
    let (_folder, data) = data_with(&gaps());
    publish(&data);
    let engine = open(&data);
    let by_sql = |engine: &RankEngine| {
        let ranking = engine.rank(&query("Close"), &CancelToken::new()).unwrap();
        engine.rank_by_sql(&query("Close"), &CancelToken::new()).map(|found| found == ranking)
    };
    assert!(by_sql(&engine).unwrap());
    let told = |what: &str| {
        let error = by_sql(&engine).unwrap_err();
        assert_eq!(error.code(), "SNAPSHOT_REPLACED", "{what}");
        assert!(error.to_string().contains("snapshot 1 was made of"), "{what}: {error}");
        let explained = engine.explain(&query("Close"), &CancelToken::new()).unwrap_err();
        assert_eq!(explained.code(), "SNAPSHOT_REPLACED", "{what}");
    };
    let before = std::fs::read(data.mother()).unwrap();
    let source = Connection::open(data.mother()).unwrap();
    source.execute_batch("UPDATE daily SET close = close + 1").unwrap();
    drop(source);
    told("changed");
    let next = publish(&data);
    told("published anew");
    assert!(by_sql(&open(&data)).unwrap());
    // Its source under the newer generation.
    std::fs::write(data.mother(), before).unwrap();
    told("put back");
    std::fs::remove_file(data.mother()).unwrap();
    told("gone");
    assert_eq!(next.number, 2);
}

#[test]
fn what_is_not_finite_is_no_value() {
    let (_folder, data) = data_with(&format!(
        "{TABLE} INSERT INTO daily VALUES
           ('2025-01-06', '1301', 'nan', 'inf', '-inf', 5, 'nan'),
           ('2025-01-06', '1302', 1, 1, 1, 'inf', 1), ('2025-01-06', '1303', 1, 1, 1, 0, 1);"
    ));
    publish(&data);
    let engine = open(&data);
    let year = RankQuery { to: "2025-12-31".parse().unwrap(), ..query("Open") };
    let ranking = engine.rank(&year, &CancelToken::new()).unwrap();
    // Neither an infinite close nor one of 0 is a close.
    assert_eq!(ranking.rows.len(), 1);
    let row = ranking.rows[0];
    assert_eq!((row.close, row.volume, row.sort_value, row.rank), (5.0, None, None, 1));
    assert_eq!(engine.rank_by_sql(&year, &CancelToken::new()).unwrap(), ranking);
}
