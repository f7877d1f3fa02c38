//! A test for each rule and each check of the update job, by its name: with the job in this process, real rows, and
//! sources that have what a test gives them. Each fails where its rule is taken out.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use domain::{Money, Price};
use duckdb::Connection;
use flate2::Compression;
use flate2::write::GzEncoder;
use pricestore::DatasetStatus;
use tests::update_runs::{Market, Ran, UpdateRuns, code, date, set_prices};
use update::{CHECKS, DailyRow, Ending, RULES, SourceKind};

const MONDAY: &str = "2025-12-15";
const TUESDAY: &str = "2025-12-16";
const WEDNESDAY: &str = "2025-12-17";
const THURSDAY: &str = "2025-12-18";
const FRIDAY: &str = "2025-12-19";
const WEEK: [&str; 5] = [MONDAY, TUESDAY, WEDNESDAY, THURSDAY, FRIDAY];

#[test]
fn every_rule_and_every_check_has_a_test() {
    let source = include_str!("update_rules.rs");
    let tests: BTreeSet<&str> = source
        .split("#[test]\nfn ")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once('(')?.0))
        .collect();
    let names = RULES.iter().map(|rule| rule.name).chain(CHECKS.iter().map(|check| check.name));
    let without: Vec<&str> = names.filter(|name| !tests.contains(name)).collect();
    assert!(without.is_empty(), "without a test: {without:?}");
}

/// A week of days with so many issues.
fn week(issues: usize) -> Market {
    Market::of(&WEEK.map(|day| (day, issues))).with_calendar()
}

/// Runs of which Monday is published.
fn monday_of(market: Market) -> UpdateRuns {
    then_monday(UpdateRuns::new(market))
}

fn then_monday(mut runs: UpdateRuns) -> UpdateRuns {
    assert_eq!(runs.until(MONDAY).days(1).run().ending(), Ending::Done);
    runs
}

fn monday(issues: usize) -> UpdateRuns {
    monday_of(week(issues))
}

/// The days that the vendor was asked for as a whole.
fn days_asked(ran: &Ran) -> Vec<&str> {
    ran.asked.iter().map(String::as_str).filter(|asked| asked.starts_with("20")).collect()
}

fn status(runs: &UpdateRuns) -> DatasetStatus {
    DatasetStatus::load(&runs.data()).unwrap().unwrap()
}

fn gaps(ran: &Ran) -> Vec<String> {
    ran.report.gaps.iter().map(ToString::to_string).collect()
}

fn quiet(row: &mut DailyRow) {
    let factor = row.adjustment_factor;
    *row = DailyRow { adjustment_factor: factor, ..DailyRow::bare(row.date, row.code, row.source) };
}

#[test]
fn business_day() {
    // The law opens Tuesday: a calendar alone closes nothing.
    let mut market = week(10);
    market.day(TUESDAY, 0);
    market.divisions = Some([(date(TUESDAY), "0")].into());
    let ran = UpdateRuns::new(market).until(WEDNESDAY).days(3).run();
    assert_eq!((ran.ending(), gaps(&ran)), (Ending::Gap, vec![TUESDAY.to_owned()]));
    // A holiday is asked for where the calendar opens it.
    let holiday = "2025-11-24";
    let market = Market::of(&[("2025-11-21", 10), ("2025-11-25", 10)]).with_calendar();
    let mut runs = UpdateRuns::new(market);
    let ran = runs.until("2025-11-25").days(3).run();
    assert_eq!((ran.ending(), days_asked(&ran)), (Ending::Done, vec!["2025-11-21", "2025-11-25"]));
    assert_eq!((ran.report.days_closed, runs.is_open(holiday)), (1, Some(false)));
    runs.change(|market| market.divisions = Some([(date(holiday), "1")].into()));
    let ran = runs.until("2025-11-25").run();
    assert_eq!((ran.ending(), days_asked(&ran)), (Ending::Gap, vec![holiday]));
    // Whatever both say, a day with rows is one.
    runs.change(|market| {
        market.divisions = Some([].into());
        market.day(holiday, 10);
    });
    assert_eq!(runs.until("2025-11-25").accept(holiday).run().ending(), Ending::Done);
    assert_eq!((runs.published().len(), runs.is_open(holiday)), (3, Some(true)));
    // No calendar opens a Saturday.
    let mut market = Market::of(&[("2025-12-12", 10), ("2025-12-13", 10), (MONDAY, 10)]);
    market.divisions = Some([(date("2025-12-13"), "1")].into());
    let ran = UpdateRuns::new(market).until(MONDAY).days(2).run();
    assert_eq!((ran.ending(), days_asked(&ran)), (Ending::Done, vec!["2025-12-12", MONDAY]));
    assert!(ran.notes().contains("the vendor's calendar is not used"), "{ran:?}");
}

#[test]
fn due() {
    let mut runs = monday(10);
    let ran = runs.until(TUESDAY).at("16:29").run();
    assert_eq!((ran.ending(), ran.asked.len(), ran.waiting().len()), (Ending::Done, 0, 0));
    assert_eq!(ran.days(), ["2025-12-16 NotDue"]);
    let ran = runs.until(TUESDAY).at("16:30").run();
    assert_eq!((ran.ending(), days_asked(&ran)), (Ending::Done, vec![TUESDAY]));
    // The subscription ends, also in the midst of the calendar: one question tells it.
    let covered = |market: &mut Market| market.covered = Some((date(MONDAY), date(TUESDAY)));
    runs.change(covered);
    let ran = runs.until(FRIDAY).run();
    assert_eq!((ran.ending(), ran.waiting().len()), (Ending::Done, 0), "{ran:?}");
    assert_eq!(days_asked(&ran), [WEDNESDAY]);
    assert!(ran.days().iter().all(|day| day.ends_with("NotDue")), "{ran:?}");
    assert!(!ran.notes().contains("calendar"), "{ran:?}");
    // What has left it is told as a gap, and nobody can fill it.
    let mut runs = monday(10);
    runs.change(|market| market.day(TUESDAY, 0));
    assert_eq!(runs.until(WEDNESDAY).run().ending(), Ending::Gap);
    runs.change(|market| market.covered = Some((date(WEDNESDAY), date(FRIDAY))));
    let ran = runs.until(WEDNESDAY).run();
    assert_eq!((ran.ending(), gaps(&ran)), (Ending::Done, vec![TUESDAY.to_owned()]), "{ran:?}");
}

#[test]
fn complete() {
    for has_list in [true, false] {
        let market = if has_list { week(100).with_lists(100) } else { week(100) };
        let mut runs = monday_of(market);
        runs.change(|market| market.day(TUESDAY, 98));
        let ran = runs.until(TUESDAY).run();
        assert_eq!(
            (ran.ending(), ran.waiting()),
            (Ending::Incomplete, vec!["2025-12-16 98 of 100".into()])
        );
        runs.change(|market| market.day(TUESDAY, 99));
        assert_eq!(runs.until(TUESDAY).run().ending(), Ending::Done);
        assert_eq!(runs.published(), ["2025-12-15 100", "2025-12-16 99"]);
        // The issues count, not the rows.
        runs.change(|market| {
            market.alter(WEDNESDAY, 3, |row| {
                row.code = row.code.as_str().replacen("13", "99", 1).parse().unwrap();
            });
        });
        assert_eq!(runs.until(WEDNESDAY).run().ending(), Ending::Incomplete);
        assert_eq!(runs.published().len(), 2);
    }
    // A day before all others is held against the one after it.
    let mut runs = UpdateRuns::new(week(100));
    assert_eq!(runs.until(TUESDAY).days(1).run().ending(), Ending::Done);
    runs.change(|market| market.day(MONDAY, 98));
    assert_eq!(runs.until(TUESDAY).days(2).run().waiting(), ["2025-12-15 98 of 100"]);
    // A month later one issue in a hundred more may be gone.
    for (issues, days) in [(98, 2), (97, 1)] {
        let mut runs = UpdateRuns::new(Market::of(&[("2025-11-14", 100), (MONDAY, issues)]));
        assert_eq!(runs.until("2025-11-14").days(1).run().ending(), Ending::Done);
        runs.until(MONDAY).run();
        assert_eq!(runs.published().len(), days, "{issues}");
    }
}

#[test]
fn first_day() {
    let mut runs = UpdateRuns::new(week(3));
    let ran = runs.until(MONDAY).days(1).run();
    assert_eq!(
        (ran.ending(), ran.findings()),
        (Ending::Done, vec!["2025-12-15 first_day warn".into()])
    );
    // It is told once, and the days after it are proved by it.
    let ran = runs.until(TUESDAY).recheck(1).run();
    assert_eq!((ran.findings(), runs.published().len()), (vec![], 2), "{ran:?}");
    let ran = UpdateRuns::new(week(3).with_lists(3)).until(MONDAY).days(1).run();
    assert_eq!((ran.ending(), ran.findings()), (Ending::Done, vec![]));
    // Piece by piece nothing tells whether all is there.
    let mut runs = UpdateRuns::new(week(3));
    runs.until(MONDAY).days(1).codes(3).run();
    runs.change(|market| _ = market.down.insert(date(MONDAY)));
    runs.put(SourceKind::Public, week(3));
    let ran = runs.until(MONDAY).days(1).run();
    assert_eq!((ran.ending(), runs.published().len()), (Ending::Incomplete, 0), "{ran:?}");
    assert!(ran.report.waiting[0].why.contains("came in several answers"), "{ran:?}");
}

#[test]
fn wait() {
    let mut runs = monday(100);
    runs.change(|market| market.day(TUESDAY, 3));
    for day in [TUESDAY, TUESDAY, WEDNESDAY] {
        let ran = runs.until(day).run();
        let waiting = &ran.report.waiting[0];
        assert_eq!(
            (ran.waiting(), days_asked(&ran)[0]),
            (vec!["2025-12-16 3 of 100".into()], TUESDAY)
        );
        assert!(waiting.why.starts_with("3 of the 100 issues of 2025-12-15"), "{waiting:?}");
        assert!(waiting.advice.contains("--accept"), "{waiting:?}");
        let told =
            status(&runs).incomplete.into_iter().map(|day| (day.date, day.rows, day.expected));
        assert_eq!(told.collect::<Vec<_>>(), [(TUESDAY.to_owned(), 3, Some(100))]);
        assert!(!runs.published().iter().any(|day| day.starts_with(TUESDAY)));
    }
    runs.change(|market| market.day(TUESDAY, 100));
    let ran = runs.until(WEDNESDAY).run();
    assert_eq!((ran.ending(), ran.waiting().len(), runs.published().len()), (Ending::Done, 0, 3));
    assert!(status(&runs).incomplete.is_empty());
}

#[test]
fn gap() {
    let mut runs = monday(10);
    runs.change(|market| market.day(TUESDAY, 0));
    assert_eq!(runs.until(TUESDAY).run().ending(), Ending::Incomplete, "there is none after it");
    let ran = runs.until(WEDNESDAY).run();
    assert_eq!((ran.ending(), gaps(&ran)), (Ending::Gap, vec![TUESDAY.to_owned()]));
    assert_eq!((status(&runs).gaps, runs.published().len()), (vec![TUESDAY.to_owned()], 2));
    // It is after the last day that is wanted.
    assert_eq!(runs.until(MONDAY).run().ending(), Ending::Done);
    runs.change(|market| market.day(TUESDAY, 10));
    let ran = runs.until(WEDNESDAY).run();
    assert_eq!((ran.ending(), gaps(&ran).len(), runs.published().len()), (Ending::Done, 0, 3));
}

#[test]
fn accept() {
    let mut runs = monday(100);
    runs.change(|market| market.day(TUESDAY, 50));
    let ran = runs.until(TUESDAY).accept(MONDAY).run();
    assert_eq!((ran.ending(), runs.published().len()), (Ending::Incomplete, 1), "another day");
    let ran = runs.until(TUESDAY).accept(TUESDAY).run();
    assert_eq!((ran.ending(), ran.waiting().len()), (Ending::Done, 0), "{ran:?}");
    // It stays published and is not complete, and the vendor is asked for more.
    for _ in 0..2 {
        assert_eq!(runs.published(), ["2025-12-15 100", "2025-12-16 50"]);
        let ran = runs.until(TUESDAY).run();
        assert_eq!((ran.ending(), days_asked(&ran)), (Ending::Done, vec![TUESDAY]), "{ran:?}");
        assert!(ran.findings().is_empty() && !runs.state().complete.contains(&date(TUESDAY)));
    }
    runs.change(|market| market.day(TUESDAY, 100));
    assert_eq!(runs.until(TUESDAY).run().ending(), Ending::Done);
    assert!(runs.state().complete.contains(&date(TUESDAY)) && runs.state().accepted.is_empty());
    // A day without rows is closed, until it is accepted with some.
    runs.change(|market| market.day(WEDNESDAY, 0));
    assert_eq!(runs.until(THURSDAY).run().ending(), Ending::Gap);
    let ran = runs.until(THURSDAY).accept(WEDNESDAY).run();
    assert_eq!(
        (ran.ending(), gaps(&ran).len(), runs.is_open(WEDNESDAY)),
        (Ending::Done, 0, Some(false))
    );
    runs.change(|market| market.day(WEDNESDAY, 100));
    let ran = runs.until(THURSDAY).run();
    assert_eq!((ran.ending(), ran.asked.len(), runs.published().len()), (Ending::Done, 0, 3));
    let ran = runs.until(THURSDAY).accept(WEDNESDAY).run();
    assert_eq!(
        (ran.ending(), runs.published().len(), runs.is_open(WEDNESDAY)),
        (Ending::Done, 4, Some(true))
    );
    // While a source fails, nobody knows that there are none.
    runs.change(|market| market.day(FRIDAY, 0));
    let mut public = Market::default();
    public.down.insert(date(FRIDAY));
    runs.put(SourceKind::Public, public);
    let ran = runs.until(FRIDAY).accept(FRIDAY).run();
    assert_eq!((ran.ending(), runs.state().closed.len()), (Ending::Incomplete, 0), "{ran:?}");
    let ran = runs.until(FRIDAY).at("16:00").accept(FRIDAY).run();
    assert!(ran.notes().contains("--accept 2025-12-19 changes nothing"), "{ran:?}");
    // An answer without rows takes no published day away, whatever a person says; and that is what the advice says.
    let mut runs = monday(100);
    runs.change(|market| market.day(MONDAY, 0));
    let ran = runs.until(MONDAY).accept(MONDAY).run();
    assert_eq!(
        (ran.ending(), ran.findings()),
        (Ending::Incomplete, vec!["2025-12-15 published_stays refuse".into()]),
        "{ran:?}"
    );
    let advice = &ran.report.findings[0].advice;
    assert!(advice.contains("stays unchanged, also with --accept"), "{advice}");
    assert_eq!((runs.published(), runs.state().closed.len()), (vec!["2025-12-15 100".into()], 0));
}

/// `--accept` with the vendor's files, which say what the vendor says, and without `--days`.
#[test]
fn files_are_accepted_as_answers_are() {
    let folder = tempfile::tempdir().unwrap();
    bars(folder.path(), "20251215", &[15], 10, 120);
    bars(folder.path(), "20251216", &[16], 5, 121);
    bars(folder.path(), "20251218", &[18], 10, 122);
    let mut runs = UpdateRuns::new(Market::default());
    let ran = runs.until(THURSDAY).run_files(folder.path());
    assert_eq!((ran.ending(), runs.published().len()), (Ending::Gap, 2), "{ran:?}");
    // A day that is not complete.
    let ran = runs.until(THURSDAY).accept(TUESDAY).run_files(folder.path());
    assert_eq!(gaps(&ran), [WEDNESDAY], "{ran:?}");
    assert_eq!(runs.published(), ["2025-12-15 10", "2025-12-16 5", "2025-12-18 10"]);
    // A day of which no file has a row; but not while a file cannot be read, which may have some.
    let broken = folder.path().join("equities_bars_daily_20251219.csv.gz");
    fs::write(&broken, "no gzip").unwrap();
    let ran = runs.until(FRIDAY).accept(WEDNESDAY).run_files(folder.path());
    assert_eq!((ran.ending(), runs.state().closed.len()), (Ending::Gap, 0), "{ran:?}");
    fs::remove_file(&broken).unwrap();
    let ran = runs.until(THURSDAY).accept(WEDNESDAY).run_files(folder.path());
    assert_eq!(
        (ran.ending(), gaps(&ran).len(), runs.is_open(WEDNESDAY)),
        (Ending::Done, 0, Some(false)),
        "{ran:?}"
    );
    // What the files take back, of a day before those that --days names; days between stay as they are.
    bars(folder.path(), "20251215", &[15], 9, 120);
    bars(folder.path(), "20251216", &[16], 5, 131);
    let ran = runs.until(THURSDAY).run_files(folder.path());
    assert_eq!((ran.ending(), runs.rows(MONDAY).len()), (Ending::Incomplete, 10), "{ran:?}");
    let closes = |runs: &mut UpdateRuns| runs.rows(TUESDAY)[0].close;
    let before = closes(&mut runs);
    bars(folder.path(), "20251216", &[16], 5, 133);
    let ran = runs.until(THURSDAY).days(1).accept(MONDAY).run_files(folder.path());
    assert_eq!((ran.ending(), runs.rows(MONDAY).len()), (Ending::Done, 9), "{ran:?}");
    assert_eq!(closes(&mut runs), before);
}

#[test]
fn codes() {
    let mut runs = monday(10);
    runs.change(|market| market.dearer = 4);
    let ran = runs.until(MONDAY).days(1).refetch().codes(3).run();
    assert_eq!((ran.ending(), ran.rows_of(SourceKind::Vendor)), (Ending::Done, [0, 3, 0, 0]));
    let ran = runs.until(TUESDAY).codes(10).run();
    assert_eq!((ran.ending(), ran.waiting().len()), (Ending::Incomplete, 1), "{ran:?}");
    assert_eq!(
        (runs.rows(TUESDAY).len(), runs.published()),
        (10, vec!["2025-12-15 10".to_owned()])
    );
    assert_eq!(runs.until(TUESDAY).run().ending(), Ending::Done);
    // What cannot be right is left out here too.
    let before = runs.rows(TUESDAY);
    runs.change(|market| market.alter(TUESDAY, 1, |row| set_prices(row, 2_000)));
    let ran = runs.until(TUESDAY).days(1).refetch().codes(3).run();
    assert_eq!((ran.report.odd_rows, runs.rows(TUESDAY) == before), (1, true), "{ran:?}");
    // Only where a source answered it has nothing of an issue.
    let told = "no source has data of 1300";
    let mut runs = UpdateRuns::new(Market::default());
    let ran = runs.until(MONDAY).days(1).codes(1).run();
    assert!(ran.notes().contains(told), "{ran:?}");
    let down = || {
        let mut market = Market::default();
        market.down.insert(date(MONDAY));
        market
    };
    let mut runs = UpdateRuns::new(down());
    runs.put(SourceKind::Public, down());
    let ran = runs.until(MONDAY).days(1).codes(1).run();
    assert!(!ran.asked.is_empty() && !ran.notes().contains(told), "{ran:?}");
}

#[test]
fn asked() {
    let all = [1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 15, 16, 17].map(|day| format!("2025-12-{day:02}"));
    let days: Vec<(&str, usize)> = all.iter().map(|day| (day.as_str(), 10)).collect();
    let mut runs = UpdateRuns::new(Market::of(&days));
    assert_eq!(days_asked(&runs.until("2025-12-10").run()), all[1..8], "a first run");
    assert_eq!(days_asked(&runs.until("2025-12-12").run()), all[8..10], "since the last one");
    assert_eq!(days_asked(&runs.until("2025-12-12").run()), [""; 0]);
    runs.change(|market| market.day(MONDAY, 0));
    assert_eq!(days_asked(&runs.until(TUESDAY).run()), all[10..12]);
    assert_eq!(days_asked(&runs.until(WEDNESDAY).run()), [MONDAY, WEDNESDAY], "it waits");
    let ran = runs.until(WEDNESDAY).days(13).run();
    assert_eq!(days_asked(&ran), [all[0].as_str(), MONDAY], "--days begins earlier");
    assert_eq!(days_asked(&runs.until(WEDNESDAY).days(1).run()), [MONDAY], "and never later");
    assert_eq!(
        days_asked(&runs.until(WEDNESDAY).days(2).refetch().run()),
        [MONDAY, TUESDAY, WEDNESDAY]
    );
}

/// Where the rows of a day came from.
fn sources(runs: &mut UpdateRuns, day: &str) -> Vec<SourceKind> {
    runs.rows(day).iter().map(|row| row.source).collect()
}

#[test]
fn order() {
    use SourceKind::{Public, Vendor, WebBroker};
    let lesser = |runs: &UpdateRuns| {
        runs.put(WebBroker, Market::of(&[(TUESDAY, 1)]));
        runs.put(Public, Market::of(&[(TUESDAY, 3)]));
    };
    let mut runs = monday(3);
    lesser(&runs);
    runs.change(|market| _ = market.down.insert(date(TUESDAY)));
    let asked = [
        TUESDAY,
        "1300",
        "web_broker 1300",
        "1301",
        "web_broker 1301",
        "public 1301",
        "1302",
        "web_broker 1302",
        "public 1302",
    ];
    assert_eq!(runs.until(TUESDAY).run().asked, asked);
    assert_eq!(sources(&mut runs, TUESDAY), [WebBroker, Public, Public]);
    // The vendor has none, and one issue that trades on every day says that others have.
    let mut runs = monday(3);
    lesser(&runs);
    runs.change(|market| market.day(TUESDAY, 0));
    runs.until(TUESDAY).run();
    assert_eq!(sources(&mut runs, TUESDAY), [WebBroker, Public, Public]);
    // It answers for issues, if not for days.
    let mut runs = monday(3);
    lesser(&runs);
    runs.change(|market| _ = market.not_whole.insert(date(TUESDAY)));
    assert_eq!(runs.until(TUESDAY).run().asked, [TUESDAY, "1300", "1301", "1302"]);
    assert_eq!(sources(&mut runs, TUESDAY), [Vendor; 3]);
}

#[test]
fn again() {
    let mut runs = UpdateRuns::new(week(10));
    assert_eq!(runs.until(THURSDAY).days(4).run().ending(), Ending::Done);
    runs.change(|market| market.alter(WEDNESDAY, 1, |row| row.adjustment_factor = Some(0.5)));
    let ran = runs.until(FRIDAY).recheck(3).run();
    assert_eq!(days_asked(&ran), [FRIDAY, THURSDAY, WEDNESDAY, TUESDAY]);
    assert_eq!((ran.ending(), ran.rows_of(SourceKind::Vendor)), (Ending::Done, [10, 1, 0, 0]));
    // A vendor that is down takes nothing away.
    runs.change(|market| market.down.extend(WEEK.map(date)));
    let ran = runs.until(FRIDAY).recheck(3).run();
    assert_eq!((ran.ending(), ran.days().len()), (Ending::Incomplete, 1), "{ran:?}");
    assert!(ran.notes().contains("2025-12-19 stays as it is"), "{ran:?}");
    // What a lesser source has filled is asked for until the vendor has given it, for 20 weekdays.
    let mut runs = monday(10);
    runs.change(|market| _ = market.down.insert(date(TUESDAY)));
    runs.put(SourceKind::Public, week(10));
    assert_eq!(
        (runs.until(TUESDAY).run().ending(), runs.published().len()),
        (Ending::Incomplete, 2)
    );
    assert_eq!(days_asked(&runs.until(TUESDAY).run()), [TUESDAY]);
    runs.change(|market| market.down.clear());
    let is_asked = |ran: &Ran| days_asked(ran).contains(&TUESDAY);
    assert!(
        !is_asked(&runs.until("2026-01-13").run()) && is_asked(&runs.until("2026-01-12").run())
    );
    assert_eq!(sources(&mut runs, TUESDAY), [SourceKind::Vendor; 10]);
    assert!(!is_asked(&runs.until("2026-01-12").run()));
}

#[test]
fn outage() {
    let mut runs = monday(3);
    runs.change(|market| _ = market.down.insert(date(TUESDAY)));
    runs.put(SourceKind::Public, week(3));
    let ran = runs.until(TUESDAY).run();
    assert_eq!((ran.ending(), runs.published().len()), (Ending::Incomplete, 2), "{ran:?}");
    assert!(ran.report.days[0].reasons[0].reason.contains("out of order"), "{ran:?}");
    assert_eq!(runs.until(TUESDAY).run().ending(), Ending::Incomplete, "as long as it fails");
    // What a lesser source lacks may be there all the same.
    runs.change(|market| market.down.extend([WEDNESDAY, THURSDAY].map(date)));
    runs.put(SourceKind::Public, Market::of(&[(WEDNESDAY, 2)]));
    let ran = runs.until(WEDNESDAY).run();
    assert_eq!((ran.ending(), ran.report.issues_failed), (Ending::Incomplete, 1), "{ran:?}");
    assert_eq!(ran.waiting(), ["2025-12-17 2 of 3"]);
    runs.change(|market| market.down.clear());
    let ran = runs.until(WEDNESDAY).run();
    assert_eq!((ran.ending(), runs.published().len()), (Ending::Done, 3), "{ran:?}");
    assert_eq!(sources(&mut runs, TUESDAY), [SourceKind::Vendor; 3]);
}

/// A file of daily bars of the vendor, with so many issues on each of these days of December 2025, at this price.
fn bars(folder: &Path, name: &str, of_days: &[u32], issues: usize, close: i64) {
    let file = File::create(folder.join(format!("equities_bars_daily_{name}.csv.gz"))).unwrap();
    let mut packed = GzEncoder::new(file, Compression::fast());
    writeln!(packed, "Date,Code,O,H,L,C,UL,LL,Vo,Va,AdjFactor").unwrap();
    for (day, issue) in of_days.iter().flat_map(|day| (0..issues).map(move |issue| (day, issue))) {
        let (code, prices) =
            (code(issue).vendor_code().to_string(), format!("{close},{close},{close},{close}"));
        writeln!(packed, "2025-12-{day:02},{code},{prices},0,0,100,1100,1.0").unwrap();
    }
    packed.finish().unwrap();
}

#[test]
fn files() {
    let folder = tempfile::tempdir().unwrap();
    bars(folder.path(), "202512", &[15, 16], 10, 120);
    bars(folder.path(), "20251216", &[16], 10, 121);
    bars(folder.path(), "20251217", &[17], 10, 121);
    let mut runs = UpdateRuns::new(week(10));
    let ran = runs.until(FRIDAY).run_files(folder.path());
    let days = ["2025-12-15 10", "2025-12-16 10", "2025-12-17 10"];
    assert_eq!(
        (ran.ending(), runs.published()),
        (Ending::Done, days.map(str::to_owned).to_vec()),
        "{ran:?}"
    );
    let not_read =
        "not read, because the file of its month has the day: equities_bars_daily_20251216.csv.gz";
    assert!(ran.notes().contains(not_read), "{ran:?}");
    assert_eq!(runs.rows(TUESDAY)[0].close, Some(Price::from_yen(120)));
    // Its rows are the vendor's.
    let ran = runs.until(TUESDAY).days(1).refetch().run();
    assert_eq!(ran.rows_of(SourceKind::Vendor), [0, 10, 0, 0], "{ran:?}");
    let ran = runs.until(FRIDAY).run_files(folder.path());
    assert_eq!(ran.rows_of(SourceKind::Files), [0, 10, 0, 0], "{ran:?}");
    // A day with few of them is not taken, and nor is one of a closed day.
    bars(folder.path(), "202512", &[15, 16], 5, 130);
    bars(folder.path(), "20251220", &[20], 10, 121);
    let ran = runs.until("2025-12-22").run_files(folder.path());
    assert_eq!((ran.ending(), ran.findings().len()), (Ending::Incomplete, 2), "{ran:?}");
    assert_eq!((runs.published().len(), ran.report.odd_rows), (3, 1), "{ran:?}");
    assert_eq!(runs.rows(TUESDAY)[0].close, Some(Price::from_yen(120)));
    // One of a closed day that the user accepts is taken.
    let ran = runs.until("2025-12-22").accept("2025-12-20").run_files(folder.path());
    assert_eq!((runs.rows("2025-12-20").len(), ran.report.odd_rows), (10, 0), "{ran:?}");
    // A month that cannot be read costs neither the days beside it, nor is it forgotten.
    fs::write(folder.path().join("equities_bars_daily_202512.csv.gz"), "no gzip").unwrap();
    let mut runs = UpdateRuns::new(Market::default());
    let ran = runs.until(FRIDAY).run_files(folder.path());
    assert_eq!((ran.ending(), runs.published().len()), (Ending::Incomplete, 2), "{ran:?}");
}

#[test]
fn better() {
    use SourceKind::{Public, Vendor, WebBroker};
    let mut runs = monday(3);
    runs.change(|market| _ = market.down.insert(date(TUESDAY)));
    runs.put(Public, week(3).dearer(5));
    runs.until(TUESDAY).run();
    assert_eq!(sources(&mut runs, TUESDAY), [Public; 3]);
    // Issue by issue a published day changes only where issues are named.
    let named = |runs: &mut UpdateRuns| runs.until(TUESDAY).days(1).refetch().codes(3).run();
    let mut broker = Market::of(&[(TUESDAY, 2)]).dearer(7);
    broker.alter(TUESDAY, 1, |row| row.turnover = None);
    runs.put(WebBroker, broker);
    assert_eq!(named(&mut runs).rows_of(WebBroker), [0, 2, 0, 0]);
    assert_eq!(sources(&mut runs, TUESDAY), [WebBroker, WebBroker, Public]);
    // As a whole: nothing of the row before is left.
    assert_eq!(runs.rows(TUESDAY)[0].turnover, None);
    runs.put(WebBroker, Market::default());
    runs.put(Public, week(4).dearer(9));
    assert_eq!(named(&mut runs).rows_of(Public), [0, 1, 2, 0]);
    // The vendor corrects them all, and has one without a trade; nobody fills that, only the one that it lacks.
    runs.change(|market| {
        market.down.clear();
        market.alter(TUESDAY, 1, quiet);
    });
    assert_eq!(runs.until(TUESDAY).run().rows_of(Vendor), [0, 3, 0, 0]);
    runs.change(|market| _ = market.down.insert(date(TUESDAY)));
    let ran = runs.until(TUESDAY).days(1).refetch().codes(4).run();
    assert_eq!(ran.rows_of(Public), [1, 0, 3, 0]);
    assert_eq!(sources(&mut runs, TUESDAY), [Vendor, Vendor, Vendor, Public]);
    assert_eq!(runs.rows(TUESDAY)[0].close, None);
}

#[test]
fn corrections() {
    let mut runs = then_monday(UpdateRuns::on_disk(week(3)));
    runs.change(|market| _ = market.down.insert(date(TUESDAY)));
    runs.put(SourceKind::Public, week(3).dearer(5));
    runs.until(TUESDAY).run();
    runs.change(|market| market.down.clear());
    let ran = runs.until(TUESDAY).run();
    let first = &ran.report.corrections[0];
    assert_eq!((ran.report.corrections.len(), first.code, first.date), (3, code(0), date(TUESDAY)));
    assert_eq!((first.before.as_deref(), first.source), (Some("public"), SourceKind::Vendor));
    let close = first.values.iter().find(|value| value.column == "close").unwrap();
    assert_eq!((close.old, close.new), (Some(121.0), Some(116.0)));
    // A value that is taken back is logged too.
    runs.change(|market| market.day(TUESDAY, 2));
    runs.until(TUESDAY).accept(TUESDAY).run();
    let log = Connection::open(runs.data().work_folder().join("mother.db")).unwrap();
    let all = "SELECT concat_ws(' ', code, column_name, old_value, coalesce(new_value::VARCHAR, '-'), old_source,
        new_source) FROM correction WHERE column_name = 'close' ORDER BY logged_at, code";
    let lines: Vec<String> = pricestore::sql::column(&log, all).unwrap();
    let line = |code: u32| format!("{code} close 121.0 116.0 public vendor");
    let gone = "1302 close 116.0 - vendor vendor".to_owned();
    assert_eq!(lines, [line(1300), line(1301), line(1302), gone]);
}

#[test]
fn factor() {
    let mut runs = monday(3);
    runs.change(|market| market.alter(TUESDAY, 1, |row| row.adjustment_factor = Some(0.5)));
    assert_eq!(runs.until(TUESDAY).run().ending(), Ending::Done);
    runs.change(|market| {
        for day in [TUESDAY, WEDNESDAY] {
            market.alter(day, 3, |row| row.adjustment_factor = None);
        }
    });
    let ran = runs.until(WEDNESDAY).days(2).refetch().run();
    assert_eq!((ran.ending(), ran.rows_of(SourceKind::Vendor)), (Ending::Done, [3, 0, 0, 0]));
    assert!(ran.notes().contains("6 rows have no adjustment factor"), "{ran:?}");
    let mut factors =
        |day| runs.rows(day).iter().map(|row| row.adjustment_factor).collect::<Vec<_>>();
    assert_eq!(factors(TUESDAY), [Some(0.5), Some(1.0), Some(1.0)]);
    assert_eq!(factors(WEDNESDAY), [None; 3]);
    // They are asked for until they are told.
    runs.change(Market::restore);
    assert_eq!(days_asked(&runs.until(WEDNESDAY).run()), [TUESDAY, WEDNESDAY]);
    assert_eq!(days_asked(&runs.until(WEDNESDAY).run()), [""; 0]);
}

#[test]
fn taken_back() {
    let again = |runs: &mut UpdateRuns| runs.until(MONDAY).days(1).refetch().run();
    // Without a list, and with one that has the issue, the row was forgotten.
    for market in [week(100), week(100).with_lists(100)] {
        let mut runs = monday_of(market);
        runs.change(|market| market.day(MONDAY, 99));
        let ran = again(&mut runs);
        assert_eq!((ran.ending(), ran.rows_of(SourceKind::Vendor)), (Ending::Done, [0; 4]));
        assert!(ran.notes().contains("the vendor no longer has 1 rows of 2025-12-15"), "{ran:?}");
        assert_eq!(runs.published(), ["2025-12-15 100"]);
        // Nor do rows of named issues say anything of others.
        assert_eq!(runs.until(MONDAY).days(1).refetch().codes(3).run().ending(), Ending::Done);
        runs.change(|market| market.listed = Some(99));
        let ran = again(&mut runs);
        assert_eq!(
            (ran.ending(), ran.rows_of(SourceKind::Vendor)),
            (Ending::Done, [0, 0, 0, 1]),
            "{ran:?}"
        );
        assert!(ran.report.corrections[0].taken_back && ran.report.corrections[0].code == code(99));
        assert_eq!(runs.published(), ["2025-12-15 99"]);
    }
    // What an evening left of issues that are not listed is not published with its day.
    let mut runs = monday(100);
    runs.change(|market| market.day(TUESDAY, 98));
    assert_eq!(runs.until(TUESDAY).run().ending(), Ending::Incomplete);
    runs.change(|market| {
        market.lists.insert(date(TUESDAY), 99);
        market.day(TUESDAY, 99);
        market.alter(TUESDAY, 1, |row| row.code = code(98));
        market.alter(TUESDAY, 99, |row| {
            if row.volume == Some(11_698) {
                row.code = code(0)
            }
        });
    });
    assert_eq!(runs.until(TUESDAY).run().ending(), Ending::Done);
    assert_eq!(runs.published()[1], "2025-12-16 99");
}

#[test]
fn published_stays() {
    let before = |row: &mut DailyRow| set_prices(row, 120);
    type Case = (&'static str, usize, fn(&mut Market));
    let cases: [Case; 5] = [
        ("", 200, |market| market.alter(MONDAY, 2, quiet)),
        ("of 3 of 200 issues", 200, |market| market.alter(MONDAY, 3, quiet)),
        ("of 3 of 200 issues", 200, |market| market.alter(MONDAY, 3, |row| row.volume = Some(0))),
        ("100 of the 200 issues", 100, |_| {}),
        ("none of the 200 rows", 0, |_| {}),
    ];
    for (why, issues, change) in cases {
        let mut runs = monday(200);
        runs.change(|market| {
            market.day(MONDAY, issues);
            market.alter(MONDAY, 200, before);
            change(market);
        });
        let stored = runs.rows(MONDAY);
        let ran = runs.until(MONDAY).recheck(1).run();
        if why.is_empty() {
            assert_eq!((ran.ending(), ran.findings()), (Ending::Done, vec![]), "{ran:?}");
            assert!(runs.rows(MONDAY) != stored, "a vendor may correct a few");
            continue;
        }
        assert_eq!(ran.findings(), ["2025-12-15 published_stays refuse"], "{why}");
        assert_eq!((ran.ending(), runs.rows(MONDAY) == stored), (Ending::Incomplete, true));
        assert!(ran.report.findings[0].what.contains(why), "{ran:?}");
        assert_eq!(status(&runs).doubts[0].kind, "published_stays");
        // It is asked for until an answer is taken.
        runs.change(|market| {
            market.restore();
            market.day(MONDAY, 200);
        });
        let ran = runs.until(MONDAY).run();
        assert_eq!((ran.ending(), days_asked(&ran)), (Ending::Done, vec![MONDAY]), "{why}");
    }
}

#[test]
fn unusable() {
    let dear = |issues| {
        move |market: &mut Market| market.alter(TUESDAY, issues, |row| set_prices(row, 2_000))
    };
    let mut runs = monday(200);
    runs.change(dear(2));
    let ran = runs.until(TUESDAY).run();
    assert_eq!((ran.ending(), ran.report.odd_rows), (Ending::Done, 2), "{ran:?}");
    let odd = &ran.report.odd[0];
    assert_eq!(odd.row, "1300 on 2025-12-16");
    assert!(odd.reason.starts_with("a price of 2000 yen, over 10 times"), "{odd:?}");
    assert_eq!(runs.published()[1], "2025-12-16 198");
    // The day after is held against the last price that there is.
    runs.change(|market| market.alter(WEDNESDAY, 2, |row| set_prices(row, 2_000)));
    assert_eq!(runs.until(WEDNESDAY).run().report.odd_rows, 4, "and the vendor is asked again");
    let ran = runs.until(WEDNESDAY).accept(TUESDAY).run();
    assert_eq!((ran.ending(), runs.published()[1].as_str()), (Ending::Done, "2025-12-16 200"));
    // More of them are no mistake of a row.
    let mut runs = monday(200);
    runs.change(dear(3));
    let ran = runs.until(TUESDAY).run();
    assert_eq!(
        (ran.ending(), ran.findings()),
        (Ending::Incomplete, vec!["2025-12-16 unusable refuse".into()])
    );
    assert_eq!(runs.published().len(), 1);
    assert_eq!(runs.until(TUESDAY).accept(TUESDAY).run().ending(), Ending::Done);
    // What is published so is not refused for it, and what is right is taken.
    let ran = runs.until(TUESDAY).recheck(1).run();
    assert_eq!((ran.ending(), ran.findings().len()), (Ending::Done, 0), "{ran:?}");
    runs.change(Market::restore);
    assert_eq!(runs.until(TUESDAY).recheck(1).run().rows_of(SourceKind::Vendor), [0, 3, 0, 0]);
}

#[test]
fn adjusted() {
    let closes = |change: fn(&mut UpdateRuns), accepted: &str| {
        let mut market = week(3);
        market.alter(TUESDAY, 3, |row| row.adjustment_factor = Some(0.5));
        let mut runs = then_monday(UpdateRuns::on_disk(market));
        change(&mut runs);
        runs.until(WEDNESDAY).accept(accepted).run();
        let view =
            "SELECT strftime(date, '%d') || coalesce(format(' {:g}', close), ' null') FROM adjusted
            WHERE code = '1302' ORDER BY date";
        let of_all = runs.sql(view).join(", ");
        let path = runs.data().mother().with_file_name("1302.db");
        let of_issue: Vec<String> =
            pricestore::sql::column(&Connection::open(path).unwrap(), view).unwrap();
        assert_eq!(of_issue.join(", "), of_all);
        of_all
    };
    assert_eq!(closes(|_| {}, FRIDAY), "15 57.5, 16 116, 17 117");
    let lacks = |runs: &mut UpdateRuns| runs.change(|market| market.day(TUESDAY, 2));
    assert_eq!(closes(lacks, TUESDAY), "15 null, 17 117");
    let is_gone = |runs: &mut UpdateRuns| runs.change(|market| market.day(TUESDAY, 0));
    assert_eq!(closes(is_gone, FRIDAY), "15 null, 17 117");
    let silent = |runs: &mut UpdateRuns| {
        runs.change(|market| market.alter(TUESDAY, 3, |row| row.adjustment_factor = None));
    };
    assert_eq!(closes(silent, FRIDAY), "15 null, 16 116, 17 117");
    let public = |runs: &mut UpdateRuns| {
        runs.change(|market| _ = market.down.insert(date(TUESDAY)));
        runs.put(SourceKind::Public, week(3));
    };
    assert_eq!(closes(public, FRIDAY), "15 null, 16 null, 17 117");
}

#[test]
fn key() {
    let mut runs = monday(3);
    runs.change(|market| market.refuses_key = true);
    runs.put(SourceKind::Public, Market::of(&[(TUESDAY, 3)]));
    let ran = runs.until(TUESDAY).run();
    assert_eq!((ran.ending(), runs.published().len()), (Ending::Failed, 2), "{ran:?}");
    assert!(ran.report.error.unwrap().contains("the vendor refuses the requests"));
    // Without a key only missing days are an error.
    let none = |market: &mut Market| market.not_configured = Some("no key: it is not set");
    let mut runs = monday(3);
    runs.change(none);
    runs.put(SourceKind::Public, Market::of(&[(TUESDAY, 3)]));
    let ran = runs.until(TUESDAY).run();
    assert_eq!((ran.ending(), runs.published().len()), (Ending::Done, 2), "{ran:?}");
    let ran = runs.until(WEDNESDAY).run();
    let error = ran.report.error.clone().unwrap();
    assert_eq!(ran.ending(), Ending::Failed);
    assert!(error.contains("days are missing, and the vendor cannot be asked: no key"), "{error}");
}

#[test]
fn own_files() {
    let mut runs = then_monday(UpdateRuns::on_disk(week(3).with_lists(3)));
    let data = runs.data();
    let file = |name: &str| data.mother().with_file_name(name);
    let closes = |runs: &UpdateRuns| runs.sql("SELECT sum(close) FROM daily");
    let before = closes(&runs);
    let mut bytes = fs::read(data.mother()).unwrap();
    let half = bytes.len() / 2;
    bytes[half] ^= 1;
    fs::write(data.mother(), bytes).unwrap();
    fs::remove_file(file("1301.db")).unwrap();
    let ran = runs.until(MONDAY).run();
    for words in [
        "damaged or changed; the job makes them again: jp/stocks_daily/mother.db;",
        "gone; the job makes them again: jp/stocks_daily/1301.db;",
    ] {
        assert!(ran.notes().contains(words), "{words}: {}", ran.notes());
    }
    assert_eq!(
        (ran.ending(), closes(&runs), file("1301.db").is_file()),
        (Ending::Done, before, true)
    );
    // A table of somebody else's, with something new to publish.
    for path in [data.mother(), file("1300.db"), data.listed_info()] {
        let ours = fs::read(&path).unwrap();
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE notes AS SELECT 7").unwrap();
        let theirs = fs::read(&path).unwrap();
        runs.change(|market| market.dearer += 1);
        let error = runs.until(MONDAY).days(1).refetch().try_run().unwrap_err().to_string();
        assert!(error.contains("not written by this job"), "{error}");
        assert!(fs::read(&path).unwrap() == theirs, "{}", path.display());
        fs::write(&path, ours).unwrap();
        assert_eq!(runs.until(MONDAY).run().ending(), Ending::Done);
    }
}

/// The day waits for as many runs as one likes, and later days do not make it right; a right answer is taken as any
/// other, and the wrong one if a person says so; a published day is not replaced by it.
fn refused(check: &str, change: impl Fn(&mut Market) + Copy) {
    let found = format!("{TUESDAY} {check} refuse");
    let mut runs = monday_of(week(100).with_lists(100));
    runs.change(change);
    for (day, ending) in [
        (TUESDAY, Ending::Incomplete),
        (TUESDAY, Ending::Incomplete),
        (WEDNESDAY, Ending::Gap),
        (THURSDAY, Ending::Gap),
    ] {
        let ran = runs.until(day).run();
        assert_eq!((ran.ending(), days_asked(&ran)[0]), (ending, TUESDAY), "{check}: {ran:?}");
        assert!(ran.findings().contains(&found), "{check}: {:?}", ran.report.findings);
        let finding = ran.report.findings.iter().find(|finding| finding.check == check).unwrap();
        assert_eq!((finding.rows.len(), ran.report.waiting[0].date), (3, date(TUESDAY)));
        assert!(finding.advice.contains("--accept"), "{finding:?}");
        // It says nothing of a closed exchange: whoever follows it publishes the strange rows.
        let advice = &ran.report.waiting[0].advice;
        assert!(
            advice.contains("the check holds it back") && advice.contains("as it is"),
            "{advice}"
        );
        assert!(!runs.published().iter().any(|day| day.starts_with(TUESDAY)), "{check}");
    }
    let ran = runs.until(THURSDAY).accept(TUESDAY).run();
    assert_eq!((ran.ending(), runs.published().len()), (Ending::Done, 4), "{check}: {ran:?}");
    // Whoever has looked is not asked again.
    let ran = runs.until(THURSDAY).recheck(3).run();
    assert_eq!((ran.ending(), ran.findings()), (Ending::Done, vec![]), "{check}: {ran:?}");
    assert!(days_asked(&ran).contains(&TUESDAY));

    let mut runs = monday_of(week(100).with_lists(100));
    runs.change(change);
    assert_eq!(runs.until(TUESDAY).run().ending(), Ending::Incomplete);
    runs.change(|market| {
        market.restore();
        market.lists.clear();
        market.day(TUESDAY, 100);
    });
    let ran = runs.until(TUESDAY).run();
    assert_eq!(
        (ran.ending(), ran.findings(), runs.published().len()),
        (Ending::Done, vec![], 2),
        "{check}"
    );
    let stored = runs.rows(TUESDAY);
    runs.change(change);
    let ran = runs.until(TUESDAY).recheck(1).run();
    assert_eq!(ran.ending(), Ending::Incomplete, "{check}: {ran:?}");
    assert!(ran.findings().contains(&found), "{check}: {:?}", ran.report.findings);
    assert!(runs.rows(TUESDAY) == stored, "{check}: a published day is replaced");
    runs.change(|market| {
        market.restore();
        market.lists.clear();
        market.day(TUESDAY, 100);
    });
    let ran = runs.until(TUESDAY).run();
    assert_eq!((ran.ending(), days_asked(&ran)), (Ending::Done, vec![TUESDAY]), "{check}: {ran:?}");
}

#[test]
fn unlisted() {
    refused("unlisted", |market| market.day(TUESDAY, 103));
    let mut runs = monday_of(week(100).with_lists(100));
    runs.change(|market| market.day(TUESDAY, 102));
    assert_eq!(runs.until(TUESDAY).run().ending(), Ending::Done);
}

#[test]
fn list() {
    for issues in [50, 97] {
        refused("list", |market| {
            market.lists.insert(date(TUESDAY), issues);
            market.day(TUESDAY, issues);
        });
    }
    let mut runs = monday_of(week(100).with_lists(100));
    runs.change(|market| {
        market.lists.insert(date(TUESDAY), 98);
        market.day(TUESDAY, 98);
    });
    assert_eq!(runs.until(TUESDAY).run().ending(), Ending::Done);
}

#[test]
fn repeated() {
    refused("repeated", |market| {
        market.alter(TUESDAY, 30, |row| {
            set_prices(row, 115);
            row.volume = Some(11_500);
        });
    });
    // Not only the day before, nor only the days before.
    let mut runs = monday_of(week(100));
    assert_eq!(runs.until(THURSDAY).run().ending(), Ending::Done);
    runs.change(|market| {
        market.alter(FRIDAY, 100, |row| set_prices(row, 116));
        market.alter(WEDNESDAY, 100, |row| set_prices(row, 118));
    });
    let ran = runs.until(FRIDAY).recheck(2).run();
    assert_eq!(ran.findings(), ["2025-12-19 repeated refuse", "2025-12-17 repeated refuse"]);
    for (finding, day) in ran.report.findings.iter().zip([TUESDAY, THURSDAY]) {
        assert_eq!(finding.rows[0], format!("1300 as on {day}"));
    }
}

#[test]
fn limits() {
    refused("limits", |market| market.alter(TUESDAY, 30, |row| set_prices(row, 170)));
    // Splits are counted in, and two days have room for two limits.
    let mut runs = monday_of(week(100));
    runs.change(|market| {
        market.alter(TUESDAY, 9, |row| {
            set_prices(row, 58);
            row.adjustment_factor = Some(0.5);
        });
        market.day(WEDNESDAY, 0);
        market.alter(THURSDAY, 30, |row| set_prices(row, 190));
    });
    let ran = runs.until(THURSDAY).run();
    assert_eq!((ran.findings(), runs.published().len()), (vec![], 3), "{ran:?}");
    // A fault that stays does not become right by waiting: a refused day between gives no room.
    let mut runs = monday_of(week(100));
    runs.change(|market| {
        for day in [TUESDAY, WEDNESDAY, THURSDAY] {
            market.alter(day, 100, |row| set_prices(row, 170));
        }
    });
    for day in [TUESDAY, WEDNESDAY, THURSDAY] {
        let ran = runs.until(day).run();
        assert_eq!((ran.ending(), runs.published().len()), (Ending::Incomplete, 1), "{ran:?}");
    }
}

#[test]
fn no_volume() {
    refused("no_volume", |market| market.alter(TUESDAY, 30, |row| row.volume = Some(0)));
    refused("no_volume", |market| market.alter(TUESDAY, 100, quiet));
    // On one day the exchange's system failed.
    let days = ["2020-09-30", "2020-10-01", "2020-10-02"];
    let mut market = Market::of(&days.map(|day| (day, 100)));
    market.alter("2020-10-01", 100, quiet);
    let ran = UpdateRuns::new(market).until("2020-10-02").days(3).run();
    assert_eq!(
        (ran.ending(), ran.findings()),
        (Ending::Done, vec!["2020-09-30 first_day warn".into()])
    );
}

#[test]
fn one_yen() {
    let a_yen = |row: &mut DailyRow| {
        [row.open, row.high, row.low, row.close] = [Some(Price::from_yen(1)); 4];
        row.turnover = Some(Money::from_yen(1));
    };
    refused("one_yen", |market| market.alter(TUESDAY, 51, a_yen));
    // Also where there is nothing to compare with.
    let mut market = week(100);
    market.alter(MONDAY, 51, a_yen);
    let mut runs = UpdateRuns::new(market);
    assert_eq!(runs.until(MONDAY).days(1).run().ending(), Ending::Incomplete);
    assert!(runs.published().is_empty());
}

#[test]
fn factors() {
    refused("factors", |market| {
        market.alter(TUESDAY, 30, |row| {
            set_prices(row, 58);
            row.adjustment_factor = Some(0.5);
        });
    });
}

/// A warning beside a check that refuses the day does not say that it is published.
#[test]
fn a_warning_of_a_refused_day_fits_it() {
    let mut runs = monday(100);
    runs.change(|market| {
        market.alter(TUESDAY, 100, |row| {
            set_prices(row, 126);
            row.volume = Some(0);
        });
    });
    let ran = runs.until(TUESDAY).run();
    let found = ["2025-12-16 jump warn", "2025-12-16 no_volume refuse"];
    assert!(found.iter().all(|found| ran.findings().contains(&(*found).to_owned())), "{ran:?}");
    assert_eq!((ran.waiting().len(), runs.published().len()), (1, 1), "{ran:?}");
    assert!(ran.report.findings.iter().all(|found| !found.advice.contains("published")), "{ran:?}");
}

#[test]
fn jump() {
    for (close, issues, is_told) in [(126, 51, true), (104, 51, true), (126, 50, false)] {
        let mut runs = monday(100);
        runs.change(|market| market.alter(TUESDAY, issues, move |row| set_prices(row, close)));
        let ran = runs.until(TUESDAY).run();
        let told = is_told.then(|| "2025-12-16 jump warn".to_owned());
        assert_eq!((ran.ending(), ran.findings()), (Ending::Done, Vec::from_iter(told)), "{close}");
        assert_eq!((runs.published().len(), status(&runs).doubts.len()), (2, usize::from(is_told)));
        // Once.
        let ran = runs.until(TUESDAY).recheck(1).run();
        assert_eq!((ran.findings(), status(&runs).doubts.len()), (vec![], 0), "{close}");
    }
}
