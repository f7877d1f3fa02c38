//! The sample holds what it promises.

use duckdb::Connection;

use super::*;
use crate::listed::IssueField;

fn small() -> DailySample {
    DailySample { codes: 450, days: 300, seed: 3, ..DailySample::default() }
}

fn made() -> (tempfile::TempDir, DataDir, SampleMade) {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::new(folder.path());
    let made = make_daily_sample(&data, &small()).unwrap();
    (folder, data, made)
}

fn count(data: &DataDir, sql: &str) -> i64 {
    let connection = Connection::open(data.mother()).unwrap();
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn the_sample_has_everything_that_makes_real_data_hard() {
    let (_folder, data, made) = made();
    assert_eq!((made.published.days, made.published.codes), (300, 450));
    assert_eq!(count(&data, "SELECT count(*) FROM daily"), made.rows as i64);
    let found = |sql: &str| count(&data, &format!("SELECT count(*) FROM daily WHERE {sql}"));
    assert!(found("close IS NULL AND volume = 0") > 400);
    assert!(found("close IS NULL AND volume IS NULL") > 10);
    assert!(found("volume = 0 AND close IS NOT NULL") > 0);
    assert!(found("close = 0 OR open = 0") > 0);
    assert_eq!(found("high < greatest(open, close) AND open > 0 AND close > 0"), 0);
    assert_eq!(found("low > least(nullif(open, 0), nullif(close, 0))"), 0);
    assert_eq!(found("code LIKE '130A'"), found("code = '130A'"));
    assert!(found("code = '130A'") > 0);
    let lives = "SELECT count(*) FROM (SELECT code FROM daily GROUP BY code HAVING
                 min(date) > (SELECT min(date) FROM daily)";
    assert!(count(&data, &format!("{lives})")) > 20);
    let gone = "SELECT count(*) FROM (SELECT code FROM daily GROUP BY code HAVING
                max(date) < (SELECT max(date) FROM daily))";
    assert!(count(&data, gone) > 10);
    let thin = "SELECT min(n) FROM (SELECT count(*) n FROM daily GROUP BY date)";
    assert!((1..20).contains(&count(&data, thin)));
    assert!(!std::path::Path::new(&data.mother()).with_extension("db.wal").exists());
}

#[test]
fn every_row_has_a_name_and_the_future_is_not_known() {
    let (_folder, data, _) = made();
    let lists = crate::listed::read_file(&data.listed_info()).unwrap().unwrap();
    let connection = Connection::open(data.mother()).unwrap();
    let rows = "SELECT code, (date - DATE '1970-01-01')::INTEGER FROM daily";
    let mut rows = connection.prepare(rows).unwrap();
    let rows = rows.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?))).unwrap();
    let mut names = std::collections::BTreeSet::new();
    for row in rows {
        let (code, date) = row.unwrap();
        let date = JstDate::from_epoch_days(date).unwrap();
        let info = lists.at(&code, date).unwrap_or_else(|| panic!("{code} on {date}"));
        for field in IssueField::ALL {
            assert!(info.text(field).is_some(), "{field:?} of {code} on {date}");
        }
        names.insert((info.text(IssueField::Name).unwrap().to_owned(), code));
    }
    assert!(names.len() > 450, "some have another name later");
    let ends =
        "SELECT (min(date) - DATE '1970-01-01')::INTEGER, (max(date) - DATE '1970-01-01')::INTEGER
        FROM daily WHERE code = (SELECT DISTINCT code FROM daily ORDER BY 1 LIMIT 1 OFFSET ?)";
    let days: Vec<JstDate> = lists.lists().keys().copied().collect();
    assert_eq!(days.len(), 300);
    let code = |place: u32| -> String {
        let code = "SELECT DISTINCT code FROM daily ORDER BY 1 LIMIT 1 OFFSET ?";
        connection.query_row(code, [place], |row| row.get(0)).unwrap()
    };
    for (place, is_gone, is_late) in [(1, true, false), (2, false, true), (3, false, false)] {
        let end = |which: usize| -> JstDate {
            let days: i32 = connection.query_row(ends, [place], |row| row.get(which)).unwrap();
            JstDate::from_epoch_days(days).unwrap()
        };
        let code = code(place);
        assert_eq!(lists.at(&code, days[299]).is_none(), is_gone, "{code}");
        assert_eq!(lists.at(&code, days[0]).is_none(), is_late, "{code}");
        assert!(lists.at(&code, end(0).pred_opt().unwrap()).is_none());
        assert!(lists.at(&code, end(1)).is_some());
    }
    let counted = lists.lists()[&days[150]];
    assert_eq!(
        counted,
        lists.issues().filter(|(code, _)| lists.at(code, days[150]).is_some()).count() as u64
    );
    assert!(count(&data, "SELECT count(*) FROM daily WHERE adjustment_factor = 0.5") > 5);
    assert!(count(&data, "SELECT count(*) FROM daily WHERE adjustment_factor = 10") > 0);
}

#[test]
fn sizes_and_existing_data_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::new(folder.path());
    let refused = |sample| make_daily_sample(&data, &sample).unwrap_err().to_string();
    assert_eq!(refused(DailySample { codes: 0, ..small() }), "codes must be from 1 to 9000, not 0");
    let days = SNAPSHOT_DAYS_MAX + 1;
    assert_eq!(refused(DailySample { days, ..small() }), "days must be from 1 to 10000, not 10001");
    let tiny = DailySample { codes: 1, days: 1, ..small() };
    assert_eq!(make_daily_sample(&data, &tiny).unwrap().rows, 1);
    assert!(refused(tiny).contains("is there already"));
}
