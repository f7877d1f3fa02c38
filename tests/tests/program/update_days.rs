//! Which days `kumiki update` asks for, holds for complete and publishes: each rule with the program
//! itself against a vendor on this machine. That today is due from 16:30 on is seen from the side of that time on
//! which the test runs; both sides are held beside the rules.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use domain::time::NANOS_PER_MINUTE;
use domain::{JstDate, TsNanos, clock, holidays};
use pricestore::DataDir;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::http;
use tests::serving::Serving;
use update::PriceStore;
use update::store::WorkDatabase;

use crate::update_program::{
    Server, VENDOR_KEY, checked_reports, command, query, sql, texts, vendor_row,
};

/// What the vendor has. Days are like 20251215; the issues of a day are the first so many.
#[derive(Default)]
pub(crate) struct Market {
    pub(crate) days: BTreeMap<&'static str, usize>,
    /// Issues that the list of every date has.
    pub(crate) listed: Option<usize>,
    /// The same of the lists of some dates.
    pub(crate) lists: BTreeMap<&'static str, usize>,
    /// Changes an issue of a list before it is sent.
    pub(crate) alter_list: Option<fn(&mut Value)>,
    /// Nobody answers to questions for lists.
    pub(crate) lists_down: bool,
    /// Days on which the exchange is closed, or open for a half, against the law's calendar; none
    /// where the vendor has no calendar.
    pub(crate) divisions: Option<BTreeMap<&'static str, &'static str>>,
    /// The dates of the subscription.
    pub(crate) covered: Option<(&'static str, &'static str)>,
    /// The dates of the subscription to calendars.
    pub(crate) calendar_covered: Option<(&'static str, &'static str)>,
    /// It fails.
    pub(crate) down: BTreeSet<&'static str>,
    /// It fails for every question about prices.
    pub(crate) gone: bool,
    /// Its answers for these days as a whole are no JSON.
    pub(crate) broken: BTreeSet<&'static str>,
    /// It refuses these days, and says nothing of a subscription.
    pub(crate) refused: BTreeSet<&'static str>,
    /// What it says to that.
    pub(crate) refusal: &'static str,
    /// What is added to every price.
    pub(crate) more: u32,
    /// Changes a row of prices before it is sent.
    pub(crate) alter: Option<fn(&mut Value)>,
    /// So many requests for prices are too many.
    pub(crate) too_many: usize,
    /// What the other sources answer; they have nothing where this is not set.
    pub(crate) others: Option<fn(&str) -> String>,
}

/// The code of an issue.
fn issue(number: usize) -> String {
    format!("{}0", 1_300 + number)
}

pub(crate) fn dashed(day: &str) -> String {
    format!("{}-{}-{}", &day[..4], &day[4..6], &day[6..])
}

/// The refusal of what a subscription does not cover.
fn not_covered(covered: Option<(&str, &str)>, first: &str, last: &str) -> Option<(u16, String)> {
    let (begin, end) = covered.filter(|(begin, end)| first < *begin || last > *end)?;
    let (begin, end) = (dashed(begin), dashed(end));
    let words = format!("Your subscription covers the following dates: {begin} ~ {end}. Upgrade.");
    Some((400, json!({ "message": words }).to_string()))
}

impl Market {
    fn answer(&mut self, path: &str) -> Option<(u16, String)> {
        if path.starts_with("/v2/markets/calendar") {
            return Some(self.calendar(path));
        }
        if !path.starts_with("/v2") {
            return Some((200, self.others.map_or("No data".to_owned(), |answer| answer(path))));
        }
        let date = query(path, "date");
        if path.starts_with("/v2/equities/master") {
            if self.lists_down {
                return Some((503, "{}".to_owned()));
            }
            let count = self.lists.get(date.unwrap()).copied().or(self.listed);
            let date = dashed(date.unwrap());
            let alter = self.alter_list.unwrap_or(|_| ());
            let issue = |number| {
                let mut issue = json!({ "Date": date, "Code": issue(number), "CoName": "Name",
                                        "ScaleCat": "-", "Mkt": "0111" });
                alter(&mut issue);
                issue
            };
            let issues: Vec<Value> = (0..count.unwrap_or(0)).map(issue).collect();
            return Some((200, json!({ "data": issues }).to_string()));
        }
        if self.too_many > 0 {
            self.too_many -= 1;
            return Some((429, json!({ "message": "slow down" }).to_string()));
        }
        let (first, last) = match date {
            Some(date) => (date, date),
            None => (query(path, "from").unwrap(), query(path, "to").unwrap()),
        };
        if let Some(answer) = not_covered(self.covered, first, last) {
            return Some(answer);
        }
        if date.is_some_and(|date| self.refused.contains(date)) {
            return Some((400, json!({ "message": self.refusal }).to_string()));
        }
        if date.is_some_and(|date| self.broken.contains(date)) {
            return Some((200, "{\"data\": [{\"C\": NaN}]}".to_owned()));
        }
        if self.gone || date.is_some_and(|date| self.down.contains(date)) {
            return Some((500, json!({ "message": "out of order" }).to_string()));
        }
        let code = query(path, "code");
        let rows = self.days.range(first..=last).flat_map(|(day, count)| {
            let codes = (0..*count).map(issue);
            let codes = codes.filter(|found| code.is_none_or(|code| code == found));
            // A yen more each day after one day, and each day before it: no market falls by a fifth in a day.
            let date: JstDate = dashed(day).parse().unwrap();
            let since =
                date.to_epoch_days() - CHEAPEST_DAY.parse::<JstDate>().unwrap().to_epoch_days();
            let close = 101 + self.more + since.unsigned_abs();
            let alter = self.alter.unwrap_or(|_| ());
            codes.map(move |code| {
                let mut row = vendor_row(&dashed(day), &code, close);
                // No day has the prices of another.
                row["H"] = (close + if since >= 0 { 2 } else { 3 }).into();
                alter(&mut row);
                row
            })
        });
        Some((200, json!({ "data": rows.collect::<Vec<_>>() }).to_string()))
    }

    fn calendar(&self, path: &str) -> (u16, String) {
        let Some(divisions) = &self.divisions else { return (403, "{}".to_owned()) };
        let [from, to] = ["from", "to"].map(|name| query(path, name).unwrap());
        if let Some(answer) = not_covered(self.calendar_covered, from, to) {
            return answer;
        }
        let [first, last] = ["from", "to"]
            .map(|name| dashed(query(path, name).unwrap()).parse::<JstDate>().unwrap());
        let days = first.iter_days().take_while(|day| *day <= last).map(|day| {
            let by_law = if holidays::is_closed(day) { "0" } else { "1" };
            let compact = day.to_string().replace('-', "");
            let division = divisions.get(compact.as_str()).copied().unwrap_or(by_law);
            json!({ "Date": day.to_string(), "HolDiv": division })
        });
        (200, json!({ "data": days.collect::<Vec<_>>() }).to_string())
    }
}

/// A data directory and a vendor.
pub(crate) struct Fixture {
    folder: TempDir,
    market: Arc<Mutex<Market>>,
    pub(crate) server: Server,
}

/// What a run of the program did.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) report: Value,
    /// What it told while it ran.
    pub(crate) told: String,
    /// Days and issues that the vendor was asked for, without lists and calendars.
    pub(crate) asked: Vec<String>,
    /// Questions to other sources.
    others: usize,
}

impl Run {
    /// The days of the report, like `15 fetched`.
    pub(crate) fn days(&self) -> Vec<String> {
        let days = self.report["days"].as_array().unwrap().iter();
        days.map(|day| format!("{} {}", &text(&day["date"])[8..], text(&day["outcome"]))).collect()
    }

    /// The days that are not complete, like `17 98 of 100`.
    pub(crate) fn incomplete(&self) -> Vec<String> {
        let days = self.report["incomplete"].as_array().unwrap().iter();
        let line = |day: &Value| {
            let published = if day["published"] == true { " published" } else { "" };
            format!(
                "{} {} of {}{published}",
                &text(&day["date"])[8..],
                day["rows"],
                day["expected"]
            )
        };
        days.map(line).collect()
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

impl Fixture {
    pub(crate) fn new(market: Market) -> Self {
        let market = Arc::new(Mutex::new(market));
        let asked = Arc::clone(&market);
        let server = Server::start(move |path: &str| asked.lock().unwrap().answer(path));
        Self { folder: tempfile::tempdir().unwrap(), market, server }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Market)) {
        change(&mut self.market.lock().unwrap());
    }

    pub(crate) fn command(&self, arguments: &str) -> Command {
        let address = self.server.address;
        let (vendor, public) = (format!("http://{address}/v2"), format!("http://{address}/q/"));
        let fixed =
            ["update", "--format", "json", "--vendor-rate", "60000", "--public-rate", "60000"];
        let mut command = command(self.path(), &fixed);
        command.args(["--vendor-url", &vendor, "--public-url", &public]);
        command.args(arguments.split(' '));
        // What is asked again by the way has tests of its own.
        if !arguments.contains("--recheck") {
            command.args(["--recheck", "0"]);
        }
        command
    }

    /// `kumiki update` with these arguments.
    pub(crate) fn update(&self, arguments: &str) -> Run {
        self.run(&mut self.command(arguments))
    }

    pub(crate) fn run(&self, command: &mut Command) -> Run {
        self.server.take_asked();
        let output = command.output().unwrap();
        let (report, errors) = texts(&output);
        let report =
            serde_json::from_str(&report).unwrap_or_else(|error| panic!("{error}: {errors}"));
        let asked = self.server.take_asked();
        let others = asked.iter().filter(|path| !path.starts_with("/v2")).count();
        let asked = asked.into_iter().filter(|path| path.contains("bars/daily"));
        let asked = asked.map(|path| match (query(&path, "date"), query(&path, "code")) {
            (Some(date), _) => date[6..].to_owned(),
            (None, code) => code.unwrap().to_owned(),
        });
        checked_reports(self.path());
        let (code, asked) = (output.status.code().unwrap(), asked.collect());
        Run { code, report, told: errors, asked, others }
    }

    /// Rows of each published day, like `15:100`.
    pub(crate) fn published(&self) -> Vec<String> {
        if !DataDir::new(self.path()).mother().is_file() {
            return Vec::new();
        }
        let rows = sql(
            self.path(),
            "SELECT concat(strftime(date, '%d'), ':', count(*)) FROM daily GROUP BY date ORDER BY date",
        );
        rows.lines().skip(1).map(|line| line.trim_matches('"').to_owned()).collect()
    }

    /// Rows of each day in the job's own database.
    fn kept(&self) -> Vec<u64> {
        let mut store = WorkDatabase::open(&DataDir::new(self.path())).unwrap();
        store.rows().known().unwrap().dates.into_values().collect()
    }

    pub(crate) fn serve(&self) -> Serving {
        Serving::start(self.path(), &[])
    }
}

pub(crate) fn days<const N: usize>(
    days: [(&'static str, usize); N],
) -> BTreeMap<&'static str, usize> {
    days.into()
}

#[test]
fn days_that_are_not_due_are_asked_of_nobody() {
    let week = ["20251215", "20251217", "20251218", "20251219"].map(|day| (day, 10));
    let fixture = Fixture::new(Market {
        days: week.into(),
        // Derivatives only on Tuesday, a half day on Wednesday.
        divisions: Some([("20251216", "3"), ("20251217", "2")].into()),
        ..Market::default()
    });
    // D1: nothing after the last day that is wanted. D2: nothing on a closed day, but whether there are rows where the
    // law has it open (D9).
    let run = fixture.update("--as-of 2025-12-18 --days 4");
    assert_eq!((run.code, run.asked.join(" ")), (0, "15 17 18 16".to_owned()));
    assert_eq!((&run.report["days_known"], &run.report["days_closed"]), (&0.into(), &1.into()));
    assert_eq!(fixture.published(), ["15:10", "17:10", "18:10"]);

    // D4: the subscription ends on Friday; Monday is asked for once, and not of others.
    fixture.change(|market| market.covered = Some(("20250101", "20251219")));
    let run = fixture.update("--as-of 2025-12-24");
    assert_eq!(
        (run.code, run.days().join(", ")),
        (0, "19 fetched, 22 not_due, 23 not_due, 24 not_due".to_owned())
    );
    assert_eq!((run.asked.join(" "), run.others), ("19 22 16".to_owned(), 0));
    let notes = run.report["notes"].to_string();
    assert!(notes.contains("covers 2025-01-01 to 2025-12-19; other days are not due"), "{notes}");
    assert_eq!(run.report["sources"][0]["failed"], 0);
    assert_eq!(fixture.published().len(), 4);
    // Named issues over a range that reaches out of it.
    let run = fixture.update("--as-of 2025-12-24 --days 8 --refetch --codes 1300");
    assert_eq!((run.code, run.others), (0, 0), "{run:?}");
    assert_eq!(run.days()[4..], ["22 not_due", "23 not_due", "24 not_due"]);
}

/// D3.
#[test]
fn today_is_due_from_half_past_four_on() {
    let name = |date: JstDate| &*date.to_string().replace('-', "").leak();
    let is_due = |now: TsNanos, today| {
        let hours = now.jst_nanos_of_day() as f64 / (60.0 * NANOS_PER_MINUTE as f64);
        now.jst_date() > today || hours >= 16.5
    };
    // Begun again where it was half past four, or midnight, in the middle of it.
    let (run, due, today) = loop {
        let begin = clock::wall_now();
        let today = begin.jst_date();
        let is_weekday = today.format("%u").to_string().as_str() < "6";
        let fixture = Fixture::new(Market {
            days: [(name(today), 10)].into(),
            // Open also where it is a holiday by law.
            divisions: Some(is_weekday.then_some((name(today), "1")).into_iter().collect()),
            ..Market::default()
        });
        let run = fixture.update(&format!("--as-of {today} --days 3"));
        let due = is_due(begin, today) && is_weekday;
        if is_due(begin, today) == is_due(clock::wall_now(), today) {
            break (run, due, today);
        }
    };
    assert_eq!(run.asked.contains(&name(today)[6..].to_owned()), due, "{today}: {run:?}");
    let told = |outcome: &str| run.days().contains(&format!("{} {outcome}", &name(today)[6..]));
    assert!(if due { told("fetched") } else { !told("fetched") && !told("incomplete") }, "{run:?}");
}

#[test]
fn with_a_list_of_issues_a_day_needs_rows_of_99_in_100() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100), ("20251216", 98)]),
        listed: Some(100),
        divisions: Some(BTreeMap::new()),
        ..Market::default()
    });
    // C1, P1, P2.
    let run = fixture.update("--as-of 2025-12-16 --days 2");
    assert_eq!((run.code, text(&run.report["ending"])), (3, "incomplete".to_owned()));
    assert_eq!(run.days(), ["15 fetched", "16 incomplete"]);
    assert_eq!(run.incomplete(), ["16 98 of 100"]);
    assert_eq!((fixture.published(), fixture.kept()), (vec!["15:100".to_owned()], vec![100, 98]));
    // It is asked for again, though nobody says so, and neither it nor its cache changes anything.
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, run.asked.join(" ")), (3, "16".to_owned()));
    assert_eq!(run.report["published"], Value::Null);
    fixture.change(|market| _ = market.days.insert("20251216", 99));
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!(
        (run.code, run.incomplete(), fixture.published()),
        (0, Vec::new(), ["15:100", "16:99"].map(str::to_owned).to_vec())
    );
    // C5: it stays complete, whatever the vendor gives later, and C12 as it is.
    fixture.change(|market| _ = market.days.insert("20251216", 1));
    let run = fixture.update("--as-of 2025-12-16 --days 1 --refetch");
    assert_eq!((run.code, fixture.published().join(" ")), (3, "15:100 16:99".to_owned()));
    let why = text(&run.report["doubts"][0]["what"]);
    assert!(why.contains("1 of the 100 issues that the vendor lists for this date"), "{why}");
}

#[test]
fn a_first_day_that_is_short_is_known_by_the_list() {
    // C1 on a first run: the list says that 68 of 100 are missing.
    let fixture = Fixture::new(Market {
        days: days([("20251215", 32)]),
        listed: Some(100),
        ..Market::default()
    });
    let run = fixture.update("--as-of 2025-12-15 --days 1");
    assert_eq!((run.code, run.incomplete()), (3, vec!["15 32 of 100".to_owned()]));
    assert_eq!(fixture.published(), Vec::<String>::new());
}

#[test]
fn without_a_list_a_day_is_held_against_the_day_before() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 200), ("20251216", 198), ("20251217", 196)]),
        ..Market::default()
    });
    // C3 for the first, C2 for the others: 198 of 200 are enough, and 196 of 198 are not.
    let run = fixture.update("--as-of 2025-12-17 --days 3");
    assert_eq!(
        (run.code, run.days()),
        (3, ["15 fetched", "16 fetched", "17 incomplete"].map(str::to_owned).to_vec())
    );
    assert_eq!(run.incomplete(), ["17 196 of 198"]);
    // 197 are 99 % of what the last complete day has, though not of the first.
    fixture.change(|market| _ = market.days.insert("20251217", 197));
    assert_eq!(fixture.update("--as-of 2025-12-17").code, 0);
    assert_eq!(fixture.published(), ["15:200", "16:198", "17:197"]);
}

/// S3: each day has 99 % of the one before it, and the last of them 94 % of the first.
#[test]
fn a_slow_sinking_is_published_and_told() {
    let all = ["08", "09", "10", "11", "12", "15", "16", "17"];
    let sinking = all.iter().zip([200, 198, 197, 196, 195, 194, 193, 190]);
    let sinking = sinking.map(|(day, rows)| (leaked(format!("202512{day}")), rows));
    let fixture = Fixture::new(Market { days: sinking.collect(), ..Market::default() });
    let sunk = |run: &Run| {
        let doubts = run.report["doubts"].as_array().unwrap().iter();
        doubts.filter(|doubt| doubt["kind"] == "sunk").map(|doubt| text(&doubt["what"])).collect()
    };
    let run = fixture.update("--as-of 2025-12-16 --days 7");
    assert_eq!((run.code, sunk(&run)), (0, Vec::<String>::new()), "{run:?}");
    fixture.change(|market| _ = market.days.insert("20251217", 192));
    assert_eq!(fixture.update("--as-of 2025-12-17").code, 0);
    let lower = [("20251218", 191), ("20251219", 190), ("20251222", 189)];
    fixture.change(|market| market.days.extend(lower));
    let run = fixture.update("--as-of 2025-12-22");
    let what = "it is published with 189 rows, and complete days of the last 20 before it have 200";
    assert_eq!((run.code, sunk(&run)), (0, vec![what.to_owned()]), "{run:?}");
    assert!(run.told.contains("2025-12-22 is published with 189 rows"), "{}", run.told);
    assert_eq!(fixture.published().last().unwrap(), "22:189");
    let serving = fixture.serve();
    let health = http::request(serving.address, "GET /health", &[], &[]).text();
    let health: Value = serde_json::from_str(&health).unwrap();
    let told = health["doubts"].as_array().unwrap();
    let expected = json!({ "date": "2025-12-22", "kind": "sunk", "what": what });
    assert!(told.contains(&expected), "{health}");
}

/// The day before which prices fall and after which they rise.
const CHEAPEST_DAY: &str = "2025-12-01";

/// A text that lives as long as the test's process.
pub(crate) fn leaked(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// C2: a run that asks for a list a month asks for that of a day which is not complete without it.
#[test]
fn a_long_first_run_asks_for_the_list_of_a_day_that_would_be_short() {
    let first: JstDate = "2025-09-01".parse().unwrap();
    let all = first.iter_days().take(110).filter(|day| !holidays::is_closed(*day));
    let all: Vec<&str> = all.map(|day| leaked(day.to_string().replace('-', ""))).collect();
    let issues = |day: &str| if day < "20251112" { 100 } else { 97 };
    let rows: BTreeMap<&str, usize> = all.iter().map(|day| (*day, issues(day))).collect();
    let fixture = Fixture::new(Market { days: rows.clone(), lists: rows, ..Market::default() });
    let run = fixture.update("--as-of 2025-12-19 --days 80");
    assert_eq!((run.code, run.report["gaps"].to_string()), (0, "[]".to_owned()), "{run:?}");
    // The first of each week and the last, and the day on which three were delisted.
    assert_eq!(run.report["listed"]["lists"], 18, "{run:?}");
    assert_eq!(fixture.published().len(), all.len());
}

#[test]
fn an_outage_in_which_three_of_32_issues_come_is_no_day() {
    let fixture = Fixture::new(Market { days: days([("20251215", 32)]), ..Market::default() });
    assert_eq!(fixture.update("--as-of 2025-12-15 --days 1").code, 0);
    // The day does not come whole, and the vendor knows three issues.
    fixture.change(|market| {
        market.days.insert("20251216", 3);
        market.down.insert("20251216");
    });
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, run.asked.len()), (3, 3 + 32), "three tries, then each issue");
    assert_eq!(run.incomplete(), ["16 3 of 32"]);
    assert_eq!((fixture.published(), fixture.kept()), (vec!["15:32".to_owned()], vec![32, 3]));
    // Issue by issue a day can become complete as well.
    fixture.change(|market| _ = market.days.insert("20251216", 32));
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, run.days()), (0, vec!["16 fetched_by_issue".to_owned()]));
    assert_eq!(fixture.published(), ["15:32", "16:32"]);
}

#[test]
fn named_issues_make_no_day_and_are_added_to_one_that_is_there() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100), ("20251216", 100)]),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-15 --days 1").code, 0);
    // C4, though the answer has all issues.
    let run = fixture.update("--as-of 2025-12-16 --codes 1300 1301 1302");
    assert_eq!((run.code, run.incomplete().len()), (3, 1));
    assert_eq!((fixture.published(), fixture.kept()), (vec!["15:100".to_owned()], vec![100, 3]));
    // No flag changes that.
    let mut both = fixture.command("--as-of 2025-12-16 --codes 1300 --publish-incomplete");
    let refused = both.output().unwrap();
    let errors = texts(&refused).1;
    assert!(refused.status.code() == Some(2) && errors.contains("cannot be used with"), "{errors}");
    // What is there is not asked for again, and that is told.
    let run = fixture.update("--as-of 2025-12-15 --codes 1300");
    assert!(run.code == 0 && run.asked.is_empty(), "{run:?}");
    assert!(run.told.contains("nothing was asked for the issues that are named"), "{}", run.told);
    fixture.change(|market| market.more = 1);
    let run = fixture.update("--as-of 2025-12-15 --days 1 --refetch --codes 1300");
    assert!(!run.told.contains("nothing is known of"), "{}", run.told);
    assert_eq!(run.report["sources"][0]["changed"], 1, "{run:?}");
    let run = fixture.update("--as-of 2025-12-15 --days 1 --refetch --codes 1300 9999");
    let none = "nothing is known of 9999, and no source gave anything";
    assert!(run.told.contains(none), "{}", run.told);
    let closes = sql(fixture.path(), "SELECT count(*) FROM daily WHERE close = 116");
    assert_eq!(closes.lines().last(), Some("1"), "{closes}");
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, fixture.published().len()), (0, 2));
}

#[test]
fn what_is_not_complete_is_published_where_the_user_says_so() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100), ("20251216", 50)]),
        ..Market::default()
    });
    // P3; it is still not complete, and still asked for.
    let run = fixture.update("--as-of 2025-12-16 --days 2 --publish-incomplete");
    assert_eq!((run.code, run.incomplete()), (3, vec!["16 50 of 100 published".to_owned()]));
    assert_eq!(fixture.published(), ["15:100", "16:50"]);
    // Who ranks it, or a day whose lag reads it, is told.
    let rank = |more: &[&str]| {
        let output = command(fixture.path(), &[&["rank", "--limit", "1"], more].concat()).output();
        let (_, errors) = texts(&output.unwrap());
        errors.lines().filter(|line| line.contains("not complete")).collect::<Vec<_>>().join("\n")
    };
    let note = "note: 1 published day(s) of this period or read by its lags are not complete: 2025-12-16 (50 of 100 rows)";
    assert_eq!(rank(&[]), note);
    assert_eq!(rank(&["--from", "2025-12-15", "--to", "2025-12-15"]), "");
    fixture.change(|market| _ = market.days.insert("20251216", 100));
    let run = fixture.update("--as-of 2025-12-16");
    assert_eq!((run.code, run.asked.join(" "), run.incomplete()), (0, "16".to_owned(), Vec::new()));
    assert_eq!(fixture.published(), ["15:100", "16:100"]);
}

/// P3, of named days.
#[test]
fn only_the_days_that_the_user_names_are_published_all_the_same() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100), ("20251216", 50), ("20251217", 60), ("20251218", 70)]),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-18 --days 4").code, 3);
    let run = fixture.update(
        "--as-of 2025-12-18 --publish-incomplete 2025-12-16,2025-12-18,2025-12-15,2025-12-22",
    );
    let waiting = ["16 50 of 100 published", "17 60 of 100", "18 70 of 100 published"];
    assert_eq!((run.code, run.incomplete()), (6, waiting.map(str::to_owned).to_vec()), "{run:?}");
    assert_eq!(fixture.published(), ["15:100", "16:50", "18:70"]);
    for words in
        ["2025-12-15 changes nothing: it is complete", "2025-12-22 changes nothing: no row"]
    {
        assert!(run.told.contains(words), "{}", run.told);
    }
    assert_eq!(fixture.update("--as-of 2025-12-18 --publish-incomplete").code, 3);
    assert_eq!(fixture.published(), ["15:100", "16:50", "17:60", "18:70"]);
}

/// B4: what the vendor corrects a day later arrives, and costs a question for each of three days.
#[test]
fn the_last_complete_days_are_asked_for_again() {
    let all = ["20251211", "20251212", "20251215", "20251216", "20251217"].map(|day| (day, 100));
    let fixture = Fixture::new(Market { days: all.into(), ..Market::default() });
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 4 --recheck 3").code, 0);
    let recheck = |as_of: &str| {
        let mut arguments = fixture.command(&format!("--as-of {as_of} --recheck 3"));
        fixture.run(&mut arguments)
    };
    // Three is what it is without the option.
    let help = texts(&command(fixture.path(), &["update", "--help"]).output().unwrap()).0;
    assert!(help.contains("--recheck <N>") && help.contains("[default: 3]"), "{help}");
    let run = recheck("2025-12-17");
    assert_eq!((run.code, run.asked.join(" ")), (0, "17 12 15 16".to_owned()), "{run:?}");
    // A split of Tuesday is told on Wednesday.
    fixture.change(|market| {
        market.alter = Some(|row| {
            if row["Date"] == "2025-12-16" && row["Code"] == "13000" {
                row["AdjFactor"] = json!(0.5);
            }
        });
    });
    let run = recheck("2025-12-17");
    assert_eq!((run.code, run.asked.join(" ")), (0, "15 16 17".to_owned()), "{run:?}");
    let value = &run.report["corrections"][0]["values"][0];
    assert_eq!(value, &json!({ "column": "adjustment_factor", "old": 1.0, "new": 0.5 }));
    let closes = "SELECT strftime(date, '%d:') || close FROM adjusted WHERE code = '1300'
        ORDER BY date";
    let closes = sql(fixture.path(), closes);
    assert!(closes.contains("15:57.5") && closes.contains("16:116"), "{closes}");
    // A vendor that is down takes nothing away and ends no run badly.
    fixture.change(|market| market.down.extend(["20251215", "20251216", "20251217"]));
    let run = recheck("2025-12-17");
    let words = "2025-12-15 stays as it was: ";
    assert!(run.code == 0 && run.told.contains(words) && run.others == 0, "{run:?}");
    assert_eq!(run.report["published"], Value::Null);
}

#[test]
fn readers_are_told_what_is_missing() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100), ("20251216", 100), ("20251217", 40)]),
        divisions: Some(BTreeMap::new()),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-17 --days 3").code, 3);
    let serving = fixture.serve();
    let health = || -> Value {
        serde_json::from_str(&http::request(serving.address, "GET /health", &[], &[]).text())
            .unwrap()
    };
    let day = json!({ "date": "2025-12-17", "rows": 40, "expected": 100, "published": false });
    let found = health();
    assert_eq!((&found["status"], &found["incomplete"]), (&json!("incomplete"), &json!([day])));
    assert_eq!(found["snapshot_last_date"], "2025-12-16");
    let dataset = "{ dataset { lastDate incompleteDates missingDates
        sources { name rows firstDate lastDate } } }";
    let source = json!({ "name": "vendor", "rows": 200, "firstDate": "2025-12-15",
                         "lastDate": "2025-12-16" });
    let expected = json!({ "lastDate": "2025-12-16", "incompleteDates": ["2025-12-17"],
                           "missingDates": [], "sources": [source] });
    assert_eq!(serving.ask(dataset)["data"]["dataset"], expected);
    // A service that runs takes it up.
    fixture.change(|market| _ = market.days.insert("20251218", 100));
    assert_eq!(fixture.update("--as-of 2025-12-18").code, 6);
    while health()["status"] != "gap" {
        std::thread::yield_now();
    }
    assert_eq!(health()["gaps"], json!(["2025-12-17"]));
    assert_eq!(serving.ask(dataset)["data"]["dataset"]["missingDates"], json!(["2025-12-17"]));
}

/// A job that has not run for days is seen by who watches the service, and by who ranks.
#[test]
fn data_that_is_behind_says_so() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 10), ("20251216", 10)]),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 2").code, 0);
    let today = clock::wall_now().jst_date();
    let last: JstDate = "2025-12-16".parse().unwrap();
    let over = last.iter_days().skip(1).take_while(|date| *date < today);
    let over = over.filter(|date| !holidays::is_closed(*date)).count();
    let health = |behind_days: usize| -> Value {
        let days = behind_days.to_string();
        let serving = Serving::start(fixture.path(), &["--behind-days", &days]);
        let health = http::request(serving.address, "GET /health", &[], &[]);
        assert_eq!(health.status, 200);
        serde_json::from_str(&health.text()).unwrap()
    };
    for (allowed, status) in [(0, "behind"), (over - 1, "behind"), (over, "ok")] {
        let found = health(allowed);
        assert_eq!((&found["status"], &found["days_behind"]), (&json!(status), &json!(over)));
    }
    let errors = |more: &[&str]| {
        let output = command(fixture.path(), &["rank"]).args(more).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        texts(&output).1
    };
    let words = format!("{over} business day(s) are missing after the last one, 2025-12-16");
    assert!(errors(&[]).contains(&words), "{words}: {}", errors(&[]));
    assert!(errors(&["--from", "2025-12-16", "--to", "2025-12-18"]).contains(&words));
    // Who asks for an older day has it.
    assert_eq!(errors(&["--to", "2025-12-16"]), "");
    // What no job has made is no older than it shall be.
    std::fs::remove_file(fixture.path().join("update").join("dataset.json")).unwrap();
    assert_eq!((errors(&[]).as_str(), &health(0)["days_behind"]), ("", &Value::Null));
}

#[test]
fn a_hole_is_an_ending_of_its_own_and_is_counted_by_lags() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 100), ("20251216", 3), ("20251217", 100)]),
        divisions: Some(BTreeMap::new()),
        ..Market::default()
    });
    // G1.
    let run = fixture.update("--as-of 2025-12-17 --days 3");
    assert_eq!((run.code, text(&run.report["ending"])), (6, "gap".to_owned()));
    assert_eq!(run.report["gaps"], json!(["2025-12-16"]));
    assert_eq!(fixture.published(), ["15:100", "17:100"]);
    let ranked = |formula: &str| -> Vec<Value> {
        let arguments = ["rank", "--from", "2025-12-17", "--limit", "1", "--format", "jsonl"];
        let output =
            command(fixture.path(), &arguments).args(["--sort-by", formula]).output().unwrap();
        texts(&output).0.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let values = |formula: &str| ranked(formula).first().map(|row| row["sortValue"].clone());
    assert_eq!(values("Close[-1]"), Some(Value::Null), "nobody has a row of the day before");
    assert_eq!(values("Close[-2]"), Some(json!(115)));

    // Without --days the run begins at the hole, not after the last complete day.
    fixture.change(|market| {
        market.days.insert("20251216", 100);
        market.days.insert("20251218", 100);
    });
    let run = fixture.update("--as-of 2025-12-18");
    assert_eq!((run.code, run.asked.join(" ")), (0, "16 18".to_owned()));
    assert_eq!(values("Close[-1]"), Some(json!(116)));
    assert_eq!(fixture.published().len(), 4);
}

#[test]
fn a_run_begins_after_the_last_complete_day_or_earlier() {
    let all = [
        "20251201", "20251202", "20251203", "20251204", "20251205", "20251208", "20251209",
        "20251210", "20251211", "20251212", "20251215", "20251216", "20251217", "20251218",
        "20251219", "20251222",
    ];
    let fixture =
        Fixture::new(Market { days: all.map(|day| (day, 10)).into(), ..Market::default() });
    assert_eq!(fixture.update("--as-of 2025-12-01 --days 1").code, 0);
    assert_eq!(fixture.update("--as-of 2025-12-02").asked, ["02"]);
    // Two weeks without a run: --days says from where on at the latest.
    let run = fixture.update("--as-of 2025-12-17 --days 1");
    assert_eq!(run.asked[..3], ["03", "04", "05"]);
    assert!(run.asked.contains(&"17".to_owned()) && run.code == 0, "{run:?}");
    // And looks back over what is there; that is not fetched again.
    let run = fixture.update("--as-of 2025-12-18 --days 30");
    let days: Vec<String> =
        run.report["days"].as_array().unwrap().iter().map(|day| text(&day["date"])).collect();
    assert!(!days.contains(&"2025-12-17".to_owned()), "{days:?}");
    assert_eq!(
        (days.first().unwrap().as_str(), days.last().unwrap().as_str()),
        ("2025-11-07", "2025-12-18")
    );
    assert_eq!(text(&run.report["from"]), "2025-11-07");
    assert_eq!(fixture.update("--as-of 2025-12-22").asked, ["19", "22"]);
}

#[test]
fn the_calendar_is_published_in_a_table_of_its_own_and_must_fit_the_rows() {
    let fixture = Fixture::new(Market {
        days: days([("20251215", 10), ("20251216", 10)]),
        divisions: Some(BTreeMap::new()),
        ..Market::default()
    });
    assert_eq!(fixture.update("--as-of 2025-12-16 --days 2").code, 0);
    let open_2025 = "2025-01-01".parse::<JstDate>().unwrap().iter_days().take(365);
    let open_2025 = open_2025.filter(|day| !holidays::is_closed(*day)).count();
    let calendar =
        || sql(fixture.path(), "SELECT count(*), count(*) FILTER (is_open) FROM calendar");
    assert_eq!(calendar().lines().last(), Some(format!("365,{open_2025}").as_str()));
    // The job's own database, made anew from what is published, has it again.
    std::fs::remove_dir_all(fixture.path().join("work")).unwrap();
    let known =
        WorkDatabase::open(&DataDir::new(fixture.path())).unwrap().rows().open_days().unwrap();
    assert_eq!((known.len(), known.values().filter(|open| **open).count()), (365, open_2025));
    // A calendar that calls a day closed of which there are rows is not used.
    fixture.change(|market| {
        market.divisions = Some([("20251215", "0"), ("20251217", "0")].into());
        market.days.insert("20251217", 10);
    });
    let run = fixture.update("--as-of 2025-12-17");
    let notes = run.report["notes"].to_string();
    assert!(notes.contains("it says closed on 2025-12-15, of which there are rows"), "{notes}");
    assert_eq!((run.code, run.asked.join(" ")), (0, "17".to_owned()));
    assert!(!run.report.to_string().contains(VENDOR_KEY));
    let doubt = &run.report["doubts"][0];
    assert_eq!((&doubt["kind"], &doubt["date"]), (&json!("closed"), &json!("2025-12-15")));
    assert_eq!(fixture.published(), ["15:10", "16:10", "17:10"]);
    // D8: only who says so closes it.
    fixture.change(|market| market.divisions = Some([("20251215", "0")].into()));
    let run = fixture.update("--as-of 2025-12-17 --accept 2025-12-15");
    assert_eq!((run.code, run.report["gaps"].to_string()), (0, "[]".to_owned()), "{run:?}");
    assert_eq!(fixture.published(), ["16:10", "17:10"]);
    let run = fixture.update("--as-of 2025-12-17");
    assert_eq!((run.code, fixture.published().join(" ")), (0, "16:10 17:10".to_owned()), "{run:?}");
}
