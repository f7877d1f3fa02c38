//! The update job in this process: rules of days and rows without a program, a server or a published file.
//!
//! ```
//! use tests::update_runs::{Market, UpdateRuns};
//! let mut runs = UpdateRuns::new(Market::of(&[("2025-12-15", 100), ("2025-12-16", 100)]));
//! runs.until("2025-12-15").days(1).run();
//! runs.change(|market| market.alter("2025-12-16", 51, |row| row.adjustment_factor = Some(0.5)));
//! assert_eq!(runs.until("2025-12-16").run().odd(), ["2025-12-16 splits"]);
//! assert_eq!(runs.published(), ["2025-12-15 100"]);
//! ```

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use domain::time::NANOS_PER_MINUTE;
use domain::{JstDate, Money, Price, TsNanos, holidays};
use http_client::{CancellationToken, HttpError};
use marketdata::calendar_file::CalendarRows;
use pricestore::{DataDir, Published};
use update::source::{Answer, DailySource, IssueList, SourceError};
use update::store::{StoreError, WorkRows};
use update::{
    DailyRow, DoubtKind, Ending, IssueCode, JobOptions, JobWatch, Phase, PriceRows, PriceStore,
    Report, SourceKind, SourceSlot, Split, StoreProgress, last_weekdays, update_from_sources,
};

/// The day whose prices are the lowest: a yen more each day after it, and each day before it, because no
/// market falls by a fifth in a day.
pub const CHEAPEST_DAY: &str = "2025-12-01";
/// When runs take place: after the day's end of trading.
const RUN_AT_MINUTES: u64 = 18 * 60;

type Change = Box<dyn Fn(&mut DailyRow)>;

/// What the vendor has. The issues of a day, and of a list, are the first so many from 1300 on.
#[derive(Default)]
pub struct Market {
    days: BTreeMap<JstDate, usize>,
    /// Issues that the list of each date has; without it there is no list.
    pub listed: Option<usize>,
    /// The same of some dates.
    pub lists: BTreeMap<JstDate, usize>,
    /// Divisions of days that are not as the law has them; without it there is no calendar.
    pub divisions: Option<BTreeMap<JstDate, &'static str>>,
    /// Days for which it fails.
    pub down: BTreeSet<JstDate>,
    changes: Vec<(JstDate, usize, Change)>,
}

impl Market {
    /// These days with so many issues each.
    #[must_use]
    pub fn of(days: &[(&str, usize)]) -> Self {
        let mut market = Self::default();
        days.iter().for_each(|(day, issues)| market.day(day, *issues));
        market
    }

    /// With the calendar of the law.
    #[must_use]
    pub fn with_calendar(self) -> Self {
        Self { divisions: Some(BTreeMap::new()), ..self }
    }

    /// Puts a day there, or gives it another number of issues.
    pub fn day(&mut self, day: &str, issues: usize) {
        self.days.insert(date(day), issues);
    }

    /// Changes the rows of a day's first issues whenever they are asked for.
    pub fn alter(&mut self, day: &str, issues: usize, change: impl Fn(&mut DailyRow) + 'static) {
        self.changes.push((date(day), issues, Box::new(change)));
    }

    /// Takes all such changes back.
    pub fn restore(&mut self) {
        self.changes.clear();
    }

    fn rows(&self, day: JstDate) -> Vec<DailyRow> {
        let count = self.days.get(&day).copied().unwrap_or(0);
        let mut rows: Vec<DailyRow> = (0..count).map(|issue| usual_row(day, issue)).collect();
        for (_, issues, change) in self.changes.iter().filter(|change| change.0 == day) {
            rows.iter_mut().take(*issues).for_each(change);
        }
        rows
    }
}

/// A date from its text.
///
/// # Panics
/// When it is none.
#[must_use]
pub fn date(text: &str) -> JstDate {
    text.parse().unwrap()
}

/// The code of an issue by its number.
fn code(issue: usize) -> IssueCode {
    (1_300 + issue).to_string().parse().unwrap()
}

/// Sets the four prices around a close, as rows of the market have them.
pub fn set_prices(row: &mut DailyRow, close: i64) {
    let prices = [close, close + 2, close - 1, close].map(|yen| Some(Price::from_yen(yen)));
    [row.open, row.high, row.low, row.close] = prices;
}

/// A row with a volume that no other issue of the day has, and prices that no other day has.
fn usual_row(day: JstDate, issue: usize) -> DailyRow {
    let since = day.to_epoch_days() - date(CHEAPEST_DAY).to_epoch_days();
    let close = 101 + i64::from(since.unsigned_abs());
    let mut row = DailyRow::bare(day, code(issue), SourceKind::Vendor);
    set_prices(&mut row, close);
    if since < 0 {
        row.high = Some(Price::from_yen(close + 3));
    }
    let volume = 100 * close + i64::try_from(issue).unwrap();
    row.volume = Some(volume.unsigned_abs());
    row.turnover = Some(Money::from_yen(close * volume));
    row.adjustment_factor = Some(1.0);
    row
}

/// The market as the vendor gives it, and what was asked of it.
struct VendorOf {
    market: Rc<RefCell<Market>>,
    asked: Rc<RefCell<Vec<String>>>,
}

impl VendorOf {
    fn answer(&self, days: impl Iterator<Item = JstDate>) -> Result<Answer, SourceError> {
        let market = self.market.borrow();
        let mut rows = Vec::new();
        for day in days {
            if market.down.contains(&day) {
                let what = "out of order".to_owned();
                return Err(HttpError::Unavailable { what, tries: 1 }.into());
            }
            rows.extend(market.rows(day));
        }
        Ok(Answer { rows, ..Answer::default() })
    }
}

impl DailySource for VendorOf {
    fn kind(&self) -> SourceKind {
        SourceKind::Vendor
    }

    fn has_days(&self) -> bool {
        true
    }

    fn day(&mut self, date: JstDate) -> Result<Answer, SourceError> {
        self.asked.borrow_mut().push(date.to_string());
        self.answer([date].into_iter())
    }

    fn issue(
        &mut self,
        code: IssueCode,
        from: JstDate,
        to: JstDate,
    ) -> Result<Answer, SourceError> {
        self.asked.borrow_mut().push(code.to_string());
        let mut answer = self.answer(from.iter_days().take_while(|day| *day <= to))?;
        answer.rows.retain(|row| row.code == code);
        Ok(answer)
    }

    fn issue_list(&mut self, on: JstDate) -> Result<Option<IssueList>, SourceError> {
        let market = self.market.borrow();
        let count = market.lists.get(&on).copied().or(market.listed);
        Ok(count.map(|count| (0..count).map(|issue| (code(issue), Default::default())).collect()))
    }

    fn exchange_calendar(
        &mut self,
        from: JstDate,
        to: JstDate,
    ) -> Result<CalendarRows, SourceError> {
        let market = self.market.borrow();
        let Some(divisions) = &market.divisions else {
            return Err(SourceError::NoSuchCall("calendar"));
        };
        let days = from.iter_days().take_while(|day| *day <= to).map(|day| {
            let by_law = if holidays::is_closed(day) { "0" } else { "1" };
            (day, divisions.get(&day).copied().unwrap_or(by_law).to_owned())
        });
        Ok(days.collect())
    }
}

/// A source that answers and has nothing.
struct EmptySource;

impl DailySource for EmptySource {
    fn kind(&self) -> SourceKind {
        SourceKind::Public
    }

    fn issue(&mut self, _: IssueCode, _: JstDate, _: JstDate) -> Result<Answer, SourceError> {
        Ok(Answer::default())
    }
}

/// The job's real rows in memory, of which nothing is published.
struct Unpublished {
    rows: WorkRows,
    /// How often there was something to publish.
    publications: u64,
}

impl PriceStore for Unpublished {
    fn rows(&mut self) -> &mut dyn PriceRows {
        &mut self.rows
    }

    fn has_published(&self) -> bool {
        self.publications > 0
    }

    fn publish_listed(&mut self) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn publish(&mut self, _: &mut StoreProgress<'_>) -> Result<Published, StoreError> {
        self.publications += 1;
        let known = self.rows.known()?;
        let (state, _) = self.rows.fetch_state()?;
        let days: Vec<JstDate> =
            known.dates.into_keys().filter(|date| state.is_publishable(*date)).collect();
        Ok(Published {
            number: self.publications,
            days: days.len(),
            new_days: days.len(),
            codes: known.codes.len(),
            range: (*days.first().unwrap(), *days.last().unwrap()),
            base_fault: None,
            files: Vec::new(),
        })
    }

    fn split_to_individual(
        &mut self,
        _: Option<JstDate>,
        _: &mut StoreProgress<'_>,
    ) -> Result<Split, StoreError> {
        Ok(Split::default())
    }
}

struct NobodyWatches;

impl JobWatch for NobodyWatches {
    fn progress(&mut self, _: Phase, _: u64, _: u64, _: &str) {}
}

/// A data directory, a vendor, and runs of the job one after the other.
pub struct UpdateRuns {
    folder: tempfile::TempDir,
    market: Rc<RefCell<Market>>,
    asked: Rc<RefCell<Vec<String>>>,
    store: Unpublished,
}

impl UpdateRuns {
    /// Runs over this market; nothing is stored yet.
    ///
    /// # Panics
    /// When there is no place for a data directory.
    #[must_use]
    pub fn new(market: Market) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let rows = WorkRows::in_memory(&DataDir::new(folder.path())).unwrap();
        let store = Unpublished { rows, publications: 0 };
        Self { folder, market: Rc::new(RefCell::new(market)), asked: Rc::default(), store }
    }

    /// Changes what the vendor has.
    pub fn change(&self, change: impl FnOnce(&mut Market)) {
        change(&mut self.market.borrow_mut());
    }

    /// A run at 18:00 of a day, for the days up to it that are not complete.
    #[must_use]
    pub fn until(&mut self, day: &str) -> NextRun<'_> {
        let to = date(day);
        let options = JobOptions {
            data: DataDir::new(self.folder.path()),
            now: TsNanos::from_jst(to, RUN_AT_MINUTES * NANOS_PER_MINUTE).unwrap(),
            from: None,
            to,
            codes: Vec::new(),
            refetch: false,
            publish_incomplete: None,
            recheck: 0,
            accept: Vec::new(),
        };
        NextRun { runs: self, options }
    }

    /// The days that readers would see, and how many rows each has, like `2025-12-15 100`.
    ///
    /// # Panics
    /// When the rows cannot be read.
    pub fn published(&mut self) -> Vec<String> {
        let (state, _) = self.store.rows.fetch_state().unwrap();
        let days = self.store.rows.known().unwrap().dates.into_iter();
        let days = days.filter(|(date, _)| state.is_publishable(*date));
        days.map(|(date, rows)| format!("{date} {rows}")).collect()
    }

    /// The stored rows of a day, by code.
    ///
    /// # Panics
    /// When they cannot be read.
    pub fn rows(&mut self, day: &str) -> Vec<DailyRow> {
        self.store.rows.rows_of(date(day)).unwrap()
    }
}

/// A run that is about to begin.
pub struct NextRun<'a> {
    runs: &'a mut UpdateRuns,
    /// What it shall do.
    pub options: JobOptions,
}

impl NextRun<'_> {
    /// It looks at so many weekdays at least.
    #[must_use]
    pub fn days(mut self, days: u32) -> Self {
        self.options.from = last_weekdays(self.options.to, days).first().copied();
        self
    }

    /// It asks again for what is there.
    #[must_use]
    pub fn refetch(mut self) -> Self {
        self.options.refetch = true;
        self
    }

    /// It asks again for the last complete days.
    #[must_use]
    pub fn recheck(mut self, days: usize) -> Self {
        self.options.recheck = days;
        self
    }

    /// It takes what comes for a day, and so asks for it again.
    #[must_use]
    pub fn accept(mut self, day: &str) -> Self {
        self.options.accept.push(date(day));
        self.refetch()
    }

    /// It publishes days that are not complete.
    #[must_use]
    pub fn publish_incomplete(mut self) -> Self {
        self.options.publish_incomplete = Some(Vec::new());
        self
    }

    /// Runs the job to its end.
    ///
    /// # Panics
    /// When it cannot do its work.
    pub fn run(self) -> Ran {
        let Self { runs, options } = self;
        let vendor = VendorOf { market: Rc::clone(&runs.market), asked: Rc::clone(&runs.asked) };
        let absent = SourceSlot::NotConfigured(SourceKind::WebBroker, "there is none".to_owned());
        let sources = vec![
            SourceSlot::Ready(Box::new(vendor)),
            absent,
            SourceSlot::Ready(Box::new(EmptySource)),
        ];
        let cancel = CancellationToken::new();
        let report =
            update_from_sources(&mut runs.store, sources, &options, &cancel, &mut NobodyWatches);
        Ran { report: report.unwrap(), asked: runs.asked.take() }
    }
}

/// What a run did.
#[derive(Debug)]
pub struct Ran {
    /// Its report.
    pub report: Report,
    /// The days and issues that the vendor was asked for.
    pub asked: Vec<String>,
}

impl Ran {
    /// How it ended.
    #[must_use]
    pub fn ending(&self) -> Ending {
        self.report.ending
    }

    /// The days that need a look, like `2025-12-16 odd`.
    #[must_use]
    pub fn doubts(&self) -> Vec<String> {
        let doubts = self.report.doubts.iter();
        doubts.map(|doubt| format!("{} {}", doubt.date, doubt.kind.as_str())).collect()
    }

    /// The days that are odd by a rule, like `2025-12-16 one yen`.
    #[must_use]
    pub fn odd(&self) -> Vec<String> {
        self.rules_of(DoubtKind::Odd)
    }

    /// The days that are strange by a rule, like `2025-12-16 jump`.
    #[must_use]
    pub fn strange(&self) -> Vec<String> {
        self.rules_of(DoubtKind::Strange)
    }

    /// Doubts of a kind with the names of their rules, which the words begin with.
    fn rules_of(&self, kind: DoubtKind) -> Vec<String> {
        let doubts = self.report.doubts.iter().filter(|doubt| doubt.kind == kind);
        let rule = |what: &str| what.split_once(':').map_or(what, |(rule, _)| rule).to_owned();
        doubts.map(|doubt| format!("{} {}", doubt.date, rule(&doubt.what))).collect()
    }

    /// The days that are not complete, with their rows and those that they should have, like
    /// `2025-12-17 98 of 100`.
    #[must_use]
    pub fn incomplete(&self) -> Vec<String> {
        let days = self.report.incomplete.iter();
        let expected = |expected: Option<u64>| expected.map_or("?".to_owned(), |n| n.to_string());
        days.map(|day| format!("{} {} of {}", day.date, day.rows, expected(day.expected))).collect()
    }

    /// The rows that the vendor gave: new, changed, removed.
    ///
    /// # Panics
    /// When it was not there.
    #[must_use]
    pub fn vendor_rows(&self) -> [u64; 3] {
        let mut sources = self.report.sources.iter();
        let vendor = sources.find(|source| source.source == SourceKind::Vendor).unwrap();
        [vendor.inserted, vendor.changed, vendor.removed]
    }
}
