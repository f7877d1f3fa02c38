//! Lists by date: what is shown follows the rules whatever order they come in, and a file gives back
//! what was written.

use std::collections::{BTreeMap, BTreeSet};

use domain::{JstDate, Random};
use duckdb::Connection;

use super::*;
use crate::limits::{CODE_BYTES_MAX, LISTED_CODES_MAX, LISTED_SPANS_MAX};
use crate::sql::quoted_path;

fn date(text: &str) -> JstDate {
    text.parse().unwrap()
}

fn named(name: &str) -> IssueInfo {
    IssueInfo::default().with(IssueField::Name, name)
}

fn list(issues: &[(&str, &str)]) -> BTreeMap<Box<str>, IssueInfo> {
    issues.iter().map(|(code, name)| ((*code).into(), named(name))).collect()
}

fn name(history: &ListedHistory, code: &str, on: &str) -> Option<String> {
    history.at(code, date(on))?.text(IssueField::Name).map(str::to_owned)
}

#[test]
fn what_was_known_on_a_date_is_shown_on_it() {
    let mut history = ListedHistory::default();
    // N4.
    assert_eq!(name(&history, "1301", "2025-01-06"), None);
    assert!(history.insert(date("2025-01-06"), list(&[("1301", "a"), ("1302", "b")])).unwrap());
    assert!(history.insert(date("2025-01-10"), list(&[("1301", "A"), ("1303", "c")])).unwrap());
    for (code, on, expected) in [
        ("1301", "2025-01-05", None),      // N3
        ("1301", "2025-01-06", Some("a")), // N1
        ("1301", "2025-01-09", Some("a")), // N1, between two lists
        ("1301", "2025-01-10", Some("A")), // N1, renamed
        ("1301", "2030-01-01", Some("A")), // N1, after the last list
        ("1302", "2025-01-09", Some("b")), // N1, delisted later
        ("1302", "2025-01-10", None),      // N2
        ("1303", "2025-01-09", None),      // N2, listed later
        ("1303", "2025-01-10", Some("c")), // N1
        ("9999", "2025-01-10", None),      // N2
    ] {
        assert_eq!(name(&history, code, on).as_deref(), expected, "{code} on {on}");
    }
    // The same once more is nothing new.
    assert!(!history.insert(date("2025-01-06"), list(&[("1301", "a"), ("1302", "b")])).unwrap());
    assert_eq!(history.lists().len(), 2);
    assert_eq!(history.lists()[&date("2025-01-06")], 2);
}

#[test]
fn texts_that_are_not_fit_to_be_shown_say_nothing() {
    let mut info = named("a name");
    let longest = "x".repeat(LISTED_TEXT_BYTES_MAX);
    assert_eq!(info.set(IssueField::Name, &longest), Ok(()));
    assert_eq!(info.text(IssueField::Name), Some(longest.as_str()));
    assert_eq!(info.set(IssueField::Name, &(longest + "x")), Err(TextFault::TooLong));
    assert_eq!(info.text(IssueField::Name), None);
    for hostile in ["a\u{1b}[2J", "a\nb", "a\u{202e}b", "\u{0}", "\u{9b}31m"] {
        assert_eq!(info.set(IssueField::Market, hostile), Err(TextFault::Steers), "{hostile:?}");
    }
    assert_eq!(info.set(IssueField::Size, ""), Ok(()));
    assert_eq!(info, IssueInfo::default());
}

/// Lists as they came, which the compact form is held against.
#[derive(Default)]
struct Plain(BTreeMap<JstDate, BTreeMap<Box<str>, IssueInfo>>);

impl Plain {
    fn at(&self, code: &str, date: JstDate) -> Option<&IssueInfo> {
        self.0.range(..=date).next_back()?.1.get(code)
    }
}

#[test]
fn any_order_of_lists_gives_the_same() {
    const CODES: [&str; 5] = ["1301", "1302", "1303", "130A", "25935"];
    for seed in 0..200 {
        let mut random = Random::new(&[seed]);
        let (mut plain, mut history) = (Plain::default(), ListedHistory::default());
        let first = date("2025-01-01");
        let days: Vec<JstDate> = first.iter_days().take(12).collect();
        for _ in 0..12 {
            let day = days[random.place(days.len())];
            let mut issues = BTreeMap::new();
            for code in CODES {
                if random.chance(0.7) {
                    let name = ["a", "b", "c"][random.place(3)];
                    issues.insert(code.into(), named(name));
                }
            }
            let before = history.clone();
            let is_new = history.insert(day, issues.clone()).unwrap();
            assert_eq!(is_new, before != history, "seed {seed}");
            plain.0.insert(day, issues);
            for code in CODES {
                for day in &days {
                    let (found, expected) = (history.at(code, *day), plain.at(code, *day));
                    assert_eq!(found, expected, "seed {seed}, {code} on {day}");
                }
            }
        }
        let spans: Vec<_> = history.spans().collect();
        let again =
            spans.iter().map(|span| (span.code, span.from, span.to, Arc::new(span.info.clone())));
        let again = ListedHistory::from_spans(history.lists().clone(), again).unwrap();
        assert_eq!(again, history, "seed {seed}");
        assert!(history.contains(&again), "seed {seed}");
        let (day, code) = (days[random.place(12)], CODES[random.place(CODES.len())]);
        let mut more = again.clone();
        let mut issues = plain.0.get(&day).cloned().unwrap_or_default();
        issues.insert(code.into(), named("another"));
        more.insert(day, issues).unwrap();
        assert!(!history.contains(&more), "seed {seed}, {code} on {day}");
        for span in spans {
            let end = span.to.unwrap_or(date("2025-02-01"));
            for day in span.from.iter_days().take_while(|day| *day <= end) {
                assert_eq!(plain.at(span.code, day), Some(span.info), "seed {seed}, {span:?}");
            }
        }
    }
}

#[test]
fn a_file_gives_back_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it's listed.db");
    assert!(read_file(&path).unwrap().is_none());
    let mut history = ListedHistory::default();
    let mut all = IssueInfo::default();
    for field in IssueField::ALL {
        all.set(field, &format!("{} \"極洋\" '1' \\", field.column())).unwrap();
    }
    let mut issues = list(&[("1302", "b")]);
    issues.insert("1301".into(), all);
    history.insert(date("2025-01-06"), issues).unwrap();
    history.insert(date("2025-01-07"), list(&[("1302", "c")])).unwrap();
    write_file(&path, &history).unwrap();
    assert_eq!(read_file(&path).unwrap().as_ref(), Some(&history));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no log beside it");
    // Nothing at all is a file too.
    let empty = folder.path().join("empty.db");
    write_file(&empty, &ListedHistory::default()).unwrap();
    assert_eq!(read_file(&empty).unwrap(), Some(ListedHistory::default()));
}

#[test]
fn what_others_wrote_is_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("listed_info.db");
    let mut history = ListedHistory::default();
    history.insert(date("2025-01-06"), list(&[("1301", "a")])).unwrap();
    history.insert(date("2025-01-07"), list(&[("1301", "b")])).unwrap();
    let changed = |change: &str| {
        let _ = std::fs::remove_file(&path);
        write_file(&path, &history).unwrap();
        let connection = Connection::open_in_memory().unwrap();
        let attach = format!("ATTACH {} AS listed; USE listed; {change}", quoted_path(&path));
        connection.execute_batch(&attach).unwrap();
        connection.execute_batch("USE memory; DETACH listed").unwrap();
        read_file(&path)
    };
    let hostile = changed("UPDATE listed_issue SET name = 'a' || chr(27) || '[2J', market = 'ok'");
    let hostile = hostile.unwrap().unwrap();
    let info = hostile.at("1301", date("2025-01-06")).unwrap();
    assert_eq!((info.text(IssueField::Name), info.text(IssueField::Market)), (None, Some("ok")));
    for (change, part) in [
        ("DROP TABLE list_date", "its table list_date has other columns, or is missing"),
        ("ALTER TABLE listed_issue DROP COLUMN size", "its table listed_issue has other columns"),
        ("ALTER TABLE listed_issue RENAME COLUMN name TO title", "its table listed_issue"),
        ("DELETE FROM list_date", "there is no list of this date"),
        ("UPDATE listed_issue SET to_date = NULL", "it begins before its previous span ends"),
        ("UPDATE listed_issue SET to_date = DATE '2025-01-05'", "it does not end before a list"),
        ("UPDATE listed_issue SET code = ''", "its code is not valid"),
        ("UPDATE listed_issue SET code = repeat('1', 17)", "its code is not valid"),
    ] {
        let error = changed(change).unwrap_err().to_string();
        assert!(error.contains(part), "{change}: {error}");
    }
    const { assert!(CODE_BYTES_MAX == 16) };
    std::fs::write(&path, "no database").unwrap();
    assert!(matches!(read_file(&path), Err(ListedError::Database(_))));
}

#[test]
fn lists_have_limits() {
    let days: BTreeSet<JstDate> =
        date("1900-01-01").iter_days().take(LISTED_SPANS_MAX + 1).collect();
    let lists: BTreeMap<JstDate, u64> = days.iter().map(|day| (*day, 1)).collect();
    let infos = [named("a"), named("b")].map(Arc::new);
    let spans = |count: usize| {
        let spans = days
            .iter()
            .take(count)
            .enumerate()
            .map(|(place, day)| ("1301", *day, Some(*day), Arc::clone(&infos[place % 2])));
        ListedHistory::from_spans(lists.clone(), spans).map(drop).map_err(|error| error.to_string())
    };
    // The end of the last one is a change too.
    assert_eq!(spans(1_000), Ok(()));
    assert_eq!(
        spans(LISTED_SPANS_MAX + 1),
        Err(format!("the lists of issues have more than {LISTED_SPANS_MAX} spans"))
    );
    let codes = |count: usize| {
        let issues = (0..count).map(|code| (code.to_string().into(), named("a"))).collect();
        ListedHistory::default()
            .insert(date("2025-01-06"), issues)
            .map_err(|error| error.to_string())
    };
    assert_eq!(codes(LISTED_CODES_MAX), Ok(true));
    assert_eq!(
        codes(LISTED_CODES_MAX + 1),
        Err(format!("the lists of issues have more than {LISTED_CODES_MAX} issues"))
    );
}
