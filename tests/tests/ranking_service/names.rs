//! Names, markets and sectors in answers: by date, whole, counted, and only where they are asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use pricestore::limits::LISTED_TEXT_BYTES_MAX;
use pricestore::listed::{IssueField, IssueInfo, ListedHistory};
use ranking::service::{Backend, ServiceOptions};
use ranking::{CancelToken, ListedInfo, RankError, RankQuery, Ranking, SnapshotInfo};
use serde_json::{Value, json};

use crate::common::{RANGE, Served, Steady, day, known, ranking};

/// An issue's code; its name, English name and market.
type Issue<'a> = (&'a str, [&'a str; 3]);

/// [`Steady`], with lists of the issues.
struct Named(Arc<ListedInfo>);

impl Named {
    /// Lists of a date each; an issue has a name, an English one and a market.
    fn new(lists: &[(&str, &[Issue<'_>])]) -> Self {
        let mut history = ListedHistory::default();
        for (date, issues) in lists {
            let issues = issues.iter().map(|(code, [name, name_en, market])| {
                let info = IssueInfo::default().with(IssueField::Name, name);
                let info = info.with(IssueField::NameEn, name_en);
                (Box::from(*code), info.with(IssueField::Market, market))
            });
            history.insert(day(date), issues.collect::<BTreeMap<_, _>>()).unwrap();
        }
        Self(Arc::new(ListedInfo::new(&history)))
    }
}

impl Backend for Named {
    fn rank(&self, query: &RankQuery, cancel: &CancelToken) -> Result<Ranking, RankError> {
        Steady.rank(query, cancel)
    }

    fn snapshot(&self) -> SnapshotInfo {
        known()
    }

    fn listed(&self) -> Arc<ListedInfo> {
        Arc::clone(&self.0)
    }

    fn pinned(self: Arc<Self>) -> Arc<dyn Backend> {
        self
    }
}

const FIELDS: &str = "date code name nameEn market sector33";

fn rows(answer: &Value) -> Vec<Value> {
    answer["data"]["stockRankingRange"].as_array().unwrap().clone()
}

#[test]
fn a_row_has_what_was_known_on_its_day() {
    let served = Served::start(
        Named::new(&[
            ("2024-01-04", &[("130A", ["ベリタス", "Veritas", "グロース"])]),
            (
                "2024-01-05",
                &[("130A", ["ベリタス", "", "プライム"]), ("7203", ["トヨタ自動車", "", ""])],
            ),
            ("2024-01-09", &[("1301", ["極洋", "", ""])]),
        ]),
        ServiceOptions::default(),
    );
    let row = |date: &str,
               code: &str,
               name: Option<&str>,
               name_en: Option<&str>,
               market: Option<&str>| {
        json!({ "date": date, "code": code, "name": name, "nameEn": name_en, "market": market,
                "sector33": null })
    };
    let expected = [
        row("2024-01-04", "130A", Some("ベリタス"), Some("Veritas"), Some("グロース")),
        // Listed later, and much later.
        row("2024-01-04", "7203", None, None, None),
        row("2024-01-04", "1301", None, None, None),
        row("2024-01-05", "130A", Some("ベリタス"), None, Some("プライム")),
        row("2024-01-05", "7203", Some("トヨタ自動車"), None, None),
        row("2024-01-05", "1301", None, None, None),
    ];
    assert_eq!(rows(&served.ask(&ranking(", limit: 3", FIELDS))), expected);
    // In two pieces the library puts the rows together.
    let pieces = format!(
        "{{ stockRankingRange({RANGE}, limit: 3) {{ date code name }} \
         stockRankingRange({RANGE}, limit: 3) {{ nameEn market sector33 }} }}"
    );
    assert_eq!(rows(&served.ask(&pieces)), expected);
    let aliased = served.ask(&ranking(", limit: 1", "a: market b: market c: rank"));
    assert_eq!(rows(&aliased)[1], json!({ "a": "プライム", "b": "プライム", "c": 1 }));
}

#[test]
fn without_lists_they_are_null() {
    let served = Served::start(Steady, ServiceOptions::default());
    let row = &rows(&served.ask(&ranking(", limit: 1", "name nameEn market sector33 rank")))[0];
    let expected =
        json!({ "name": null, "nameEn": null, "market": null, "sector33": null, "rank": 1 });
    assert_eq!(*row, expected);
}

#[test]
fn hostile_names_stay_texts_or_are_left_out() {
    let quotes = "\"}]} \\ </script> {{name}}";
    let served = Served::start(
        Named::new(&[(
            "2024-01-04",
            &[
                ("130A", [quotes, "\u{1b}[2J", "a\u{202e}b"]),
                ("7203", [&"x".repeat(LISTED_TEXT_BYTES_MAX), "", ""]),
                ("1301", [&"x".repeat(LISTED_TEXT_BYTES_MAX + 1), "", "a\nb"]),
            ],
        )]),
        ServiceOptions::default(),
    );
    let found = rows(&served.ask(&ranking(", limit: 3", "name nameEn market")));
    assert_eq!(found[0], json!({ "name": quotes, "nameEn": null, "market": null }));
    assert_eq!(found[1]["name"].as_str().unwrap().len(), LISTED_TEXT_BYTES_MAX);
    assert_eq!(found[2], json!({ "name": null, "nameEn": null, "market": null }));
}

#[test]
fn the_memory_of_names_is_reserved() {
    let long = "\"".repeat(LISTED_TEXT_BYTES_MAX);
    let issues: [(&str, [&str; 3]); 1] = [("130A", [&long, &long, &long])];
    // 500 texts of 602 bytes in each of 6 rows are 1.8 MB; 500 codes are 0.1 MB.
    let served = Served::limited(Named::new(&[("2024-01-04", &issues)]), |limits| {
        limits.answer_memory = 2 << 20;
    });
    let asked = |field: &str| {
        let fields: Vec<String> = (0..500).map(|place| format!("a{place}: {field}")).collect();
        ranking(", limit: 3", &fields.join(" "))
    };
    assert_eq!(rows(&served.ask(&asked("code"))).len(), 6);
    assert_eq!(served.code(&asked("nameEn")), "RESULT_TOO_LARGE");
}
