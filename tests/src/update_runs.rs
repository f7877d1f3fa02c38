//! The update job in this process: rules of days and rows without a program or a server, and without published files
//! unless a test wants them.
//!
//! ```
//! use tests::update_runs::{Market, UpdateRuns};
//! let mut runs = UpdateRuns::new(Market::of(&[("2025-12-15", 100), ("2025-12-16", 100)]));
//! runs.until("2025-12-15").days(1).run();
//! runs.change(|market| market.alter("2025-12-16", 51, |row| row.adjustment_factor = Some(0.5)));
//! let found = runs.until("2025-12-16").run().findings();
//! assert!(found.contains(&"2025-12-16 factors refuse".to_owned()));
//! assert_eq!(runs.published(), ["2025-12-15 100"]);
//! ```

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

use domain::time::NANOS_PER_MINUTE;
use domain::{JstDate, Money, Price, TsNanos, holidays};
use http_client::{CancellationToken, HttpError};
use marketdata::calendar_file::CalendarRows;
use pricestore::{DataDir, Published};
use ranking::CancelToken;
use ranking::console::{Console, ConsoleOptions};
use update::source::{Answer, DailySource, IssueList, SourceError};
use update::store::{StoreError, WorkDatabase, WorkRows};
use update::{
    DailyRow, Ending, FetchState, IssueCode, JobOptions, JobWatch, Phase, PriceRows, PriceStore,
    Report, SourceKind, SourceSlot, Split, StoreProgress, UpdateError, last_weekdays,
    update_from_files, update_from_sources,
};

/// The day whose prices are the lowest: a yen more each day after it, and each day before it, because no
/// market falls by a fifth in a day.
pub const CHEAPEST_DAY: &str = "2025-12-01";
/// When runs take place: after the day's end of trading.
const RUN_AT: &str = "18:00";

type Change = Box<dyn Fn(&mut DailyRow)>;

/// What a source has. The issues of a day, and of a list, are the first so many from 1300 on.
#[derive(Default)]
pub struct Market {
    days: BTreeMap<JstDate, usize>,
    /// Issues that the list of each date has; without it there is no list.
    pub listed: Option<usize>,
    /// The same of some dates.
    pub lists: BTreeMap<JstDate, usize>,
    /// Divisions of days that are not as the law has them; without it there is no calendar.
    pub divisions: Option<BTreeMap<JstDate, &'static str>>,
    /// It fails for these days, whether they are asked for as a whole or issue by issue.
    pub down: BTreeSet<JstDate>,
    /// It fails for these days as a whole.
    pub not_whole: BTreeSet<JstDate>,
    /// First and last date of the subscription, where it ends.
    pub covered: Option<(JstDate, JstDate)>,
    /// It does not take the key.
    pub refuses_key: bool,
    /// Why it cannot be asked at all.
    pub not_configured: Option<&'static str>,
    /// Yen that its prices are above those of other sources.
    pub dearer: i64,
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

    /// With a list of so many issues for each date.
    #[must_use]
    pub fn with_lists(self, issues: usize) -> Self {
        Self { listed: Some(issues), ..self }
    }

    /// With other prices than those of other sources.
    #[must_use]
    pub fn dearer(self, yen: i64) -> Self {
        Self { dearer: yen, ..self }
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

    fn rows(&self, kind: SourceKind, day: JstDate) -> Vec<DailyRow> {
        let count = self.days.get(&day).copied().unwrap_or(0);
        let row = |issue| usual_row(kind, day, issue, self.dearer);
        let mut rows: Vec<DailyRow> = (0..count).map(row).collect();
        for (_, issues, change) in self.changes.iter().filter(|change| change.0 == day) {
            rows.iter_mut().take(*issues).for_each(change);
        }
        rows
    }

    /// Why it has nothing for these dates, whatever it is asked.
    fn refusal(&self, first: JstDate, last: JstDate) -> Option<SourceError> {
        if self.refuses_key {
            return Some(HttpError::Key { status: 401, message: "who are you".to_owned() }.into());
        }
        let (begin, end) = self.covered?;
        let is_outside = first < begin || last > end;
        is_outside.then_some(SourceError::NotCovered { first: begin, last: end })
    }

    /// Why it does not answer for these dates, as a whole or for one issue.
    fn failure(&self, first: JstDate, last: JstDate, is_whole: bool) -> Option<SourceError> {
        let mut down = self.down.iter().chain(self.not_whole.iter().filter(|_| is_whole));
        let is_down = down.any(|day| (first..=last).contains(day));
        let unavailable = || HttpError::Unavailable { what: "out of order".to_owned(), tries: 1 };
        is_down.then(|| unavailable().into())
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
///
/// # Panics
/// When there are not so many.
#[must_use]
pub fn code(issue: usize) -> IssueCode {
    (1_300 + issue).to_string().parse().unwrap()
}

/// Sets the four prices around a close, as rows of the market have them.
pub fn set_prices(row: &mut DailyRow, close: i64) {
    let prices = [close, close + 2, close - 1, close].map(|yen| Some(Price::from_yen(yen)));
    [row.open, row.high, row.low, row.close] = prices;
}

/// A row with a volume that no other issue of the day has, and prices that no other day has. The public source tells
/// no factor.
fn usual_row(kind: SourceKind, day: JstDate, issue: usize, dearer: i64) -> DailyRow {
    let since = day.to_epoch_days() - date(CHEAPEST_DAY).to_epoch_days();
    let close = 101 + i64::from(since.unsigned_abs()) + dearer;
    let mut row = DailyRow::bare(day, code(issue), kind);
    set_prices(&mut row, close);
    if since < 0 {
        row.high = Some(Price::from_yen(close + 3));
    }
    let volume = 100 * close + i64::try_from(issue).unwrap();
    row.volume = Some(volume.unsigned_abs());
    row.turnover = Some(Money::from_yen(close * volume));
    row.adjustment_factor = (!kind.is_adjusted()).then_some(1.0);
    row
}

type Markets = BTreeMap<SourceKind, Rc<RefCell<Market>>>;

/// A market as a source gives it, and what was asked of it.
struct MarketSource {
    kind: SourceKind,
    market: Rc<RefCell<Market>>,
    asked: Rc<RefCell<Vec<String>>>,
}

impl MarketSource {
    fn ask(&self, what: impl ToString) {
        let what = what.to_string();
        let is_vendor = self.kind == SourceKind::Vendor;
        self.asked.borrow_mut().push(if is_vendor {
            what
        } else {
            format!("{} {what}", self.kind)
        });
    }

    fn answer(&self, first: JstDate, last: JstDate, is_whole: bool) -> Result<Answer, SourceError> {
        let market = self.market.borrow();
        let problem = market.refusal(first, last);
        if let Some(problem) = problem.or_else(|| market.failure(first, last, is_whole)) {
            return Err(problem);
        }
        let days = first.iter_days().take_while(|day| *day <= last);
        let rows = days.flat_map(|day| market.rows(self.kind, day)).collect();
        Ok(Answer { rows, ..Answer::default() })
    }
}

impl DailySource for MarketSource {
    fn kind(&self) -> SourceKind {
        self.kind
    }

    fn has_days(&self) -> bool {
        self.kind == SourceKind::Vendor
    }

    fn day(&mut self, date: JstDate) -> Result<Answer, SourceError> {
        self.ask(date);
        self.answer(date, date, true)
    }

    fn issue(
        &mut self,
        code: IssueCode,
        from: JstDate,
        to: JstDate,
    ) -> Result<Answer, SourceError> {
        self.ask(code);
        let mut answer = self.answer(from, to, false)?;
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
        if let Some(problem) = market.refusal(from, to) {
            return Err(problem);
        }
        let days = from.iter_days().take_while(|day| *day <= to).map(|day| {
            let by_law = if holidays::is_closed(day) { "0" } else { "1" };
            (day, divisions.get(&day).copied().unwrap_or(by_law).to_owned())
        });
        Ok(days.collect())
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
        let days = known.dates.keys().filter(|date| state.is_published(**date)).count();
        Ok(Published {
            number: self.publications,
            days,
            codes: known.codes.len(),
            range: state.published_range().unwrap(),
            file: None,
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

/// A data directory, sources, and runs of the job one after the other. The vendor is there, the web broker is not, and
/// the public source answers that it has nothing, until a test says otherwise.
pub struct UpdateRuns {
    folder: tempfile::TempDir,
    markets: Markets,
    asked: Rc<RefCell<Vec<String>>>,
    /// Rows in memory; without them the store is a real one.
    memory: Option<Unpublished>,
}

impl UpdateRuns {
    /// Runs over this market of the vendor's; nothing is stored yet, and nothing is published in files.
    ///
    /// # Panics
    /// When there is no place for a data directory.
    #[must_use]
    pub fn new(market: Market) -> Self {
        let mut runs = Self::on_disk(market);
        let rows = WorkRows::in_memory(&runs.data()).unwrap();
        runs.memory = Some(Unpublished { rows, publications: 0 });
        runs
    }

    /// The same, with the store of the program and all the files that it publishes.
    ///
    /// # Panics
    /// When there is no place for a data directory.
    #[must_use]
    pub fn on_disk(market: Market) -> Self {
        let no_broker = Market { not_configured: Some("there is none"), ..Market::default() };
        let markets = [
            (SourceKind::Vendor, market),
            (SourceKind::WebBroker, no_broker),
            (SourceKind::Public, Market::default()),
        ];
        let markets = markets.map(|(kind, market)| (kind, Rc::new(RefCell::new(market))));
        Self {
            folder: tempfile::tempdir().unwrap(),
            markets: markets.into(),
            asked: Rc::default(),
            memory: None,
        }
    }

    /// The data directory.
    #[must_use]
    pub fn data(&self) -> DataDir {
        DataDir::new(self.folder.path())
    }

    /// Changes what the vendor has.
    pub fn change(&self, change: impl FnOnce(&mut Market)) {
        change(&mut self.markets[&SourceKind::Vendor].borrow_mut());
    }

    /// Gives a source this market.
    pub fn put(&self, kind: SourceKind, market: Market) {
        *self.markets[&kind].borrow_mut() = market;
    }

    /// A run at 18:00 of a day, for the days up to it that are not complete.
    #[must_use]
    pub fn until(&mut self, day: &str) -> NextRun<'_> {
        let to = date(day);
        let options = JobOptions {
            data: self.data(),
            now: TsNanos::from_nanos(0),
            from: None,
            to,
            codes: Vec::new(),
            refetch: false,
            recheck: 0,
            accept: Vec::new(),
        };
        NextRun { runs: self, options }.at(RUN_AT)
    }

    fn with_store<T>(
        &mut self,
        act: impl FnOnce(&mut dyn PriceStore) -> Result<T, UpdateError>,
    ) -> Result<T, UpdateError> {
        match &mut self.memory {
            Some(store) => act(store),
            None => act(&mut WorkDatabase::open(&self.data())?),
        }
    }

    /// What the job has noted of days.
    ///
    /// # Panics
    /// When it cannot be read.
    pub fn state(&mut self) -> FetchState {
        self.with_store(|store| Ok(store.rows().fetch_state()?.0)).unwrap()
    }

    /// The days that readers would see, and how many rows each has, like `2025-12-15 100`.
    ///
    /// # Panics
    /// When the rows cannot be read.
    pub fn published(&mut self) -> Vec<String> {
        let state = self.state();
        let known = self.with_store(|store| Ok(store.rows().known()?)).unwrap();
        let days = known.dates.into_iter().filter(|(date, _)| state.is_published(*date));
        days.map(|(date, rows)| format!("{date} {rows}")).collect()
    }

    /// The stored rows of a day, by code.
    ///
    /// # Panics
    /// When they cannot be read.
    pub fn rows(&mut self, day: &str) -> Vec<DailyRow> {
        self.with_store(|store| Ok(store.rows().rows_of(date(day))?)).unwrap()
    }

    /// Which days the job counts as open, of those that it knows.
    ///
    /// # Panics
    /// When they cannot be read.
    pub fn is_open(&mut self, day: &str) -> Option<bool> {
        let days = self.with_store(|store| Ok(store.rows().open_days()?)).unwrap();
        days.get(&date(day)).copied()
    }

    /// Rows of a statement over what is published, their values apart by blanks; `-` is nothing.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn sql(&self, statement: &str) -> Vec<String> {
        let console = Console::open(&self.data(), &ConsoleOptions::default()).unwrap();
        let table = console.query(statement, &CancelToken::new()).unwrap();
        let cell = |cell: &Option<String>| cell.clone().unwrap_or_else(|| "-".to_owned());
        let row = |row: &Vec<Option<String>>| row.iter().map(cell).collect::<Vec<_>>().join(" ");
        table.rows.iter().map(row).collect()
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

    /// It takes what comes for a day.
    #[must_use]
    pub fn accept(mut self, day: &str) -> Self {
        self.options.accept.push(date(day));
        self
    }

    /// It is for the first so many issues alone.
    #[must_use]
    pub fn codes(mut self, issues: usize) -> Self {
        self.options.codes = (0..issues).map(code).collect();
        self
    }

    /// It takes place at this time, like `16:30`, of its last day.
    ///
    /// # Panics
    /// When it is no time.
    #[must_use]
    pub fn at(mut self, time: &str) -> Self {
        let (hour, minute) = time.split_once(':').unwrap();
        let minutes: u64 = hour.parse::<u64>().unwrap() * 60 + minute.parse::<u64>().unwrap();
        self.options.now = TsNanos::from_jst(self.options.to, minutes * NANOS_PER_MINUTE).unwrap();
        self
    }

    /// Runs the job to its end.
    ///
    /// # Panics
    /// When it cannot do its work.
    pub fn run(self) -> Ran {
        self.try_run().unwrap()
    }

    /// Runs the job.
    ///
    /// # Errors
    /// When it cannot do its work.
    pub fn try_run(self) -> Result<Ran, UpdateError> {
        let Self { runs, options } = self;
        let slots =
            runs.markets.iter().map(|(kind, market)| match market.borrow().not_configured {
                Some(why) => SourceSlot::NotConfigured(*kind, why.to_owned()),
                None => SourceSlot::Ready(Box::new(MarketSource {
                    kind: *kind,
                    market: Rc::clone(market),
                    asked: Rc::clone(&runs.asked),
                })),
            });
        let (slots, cancel) = (slots.collect(), CancellationToken::new());
        let report = runs.with_store(|store| {
            update_from_sources(store, slots, &options, &cancel, &mut NobodyWatches)
        })?;
        Ok(Ran { report, asked: runs.asked.take() })
    }

    /// Runs the job with the vendor's files in a folder.
    ///
    /// # Panics
    /// When it cannot do its work.
    pub fn run_files(self, folder: &Path) -> Ran {
        let Self { runs, options } = self;
        let cancel = CancellationToken::new();
        let report = runs.with_store(|store| {
            update_from_files(store, folder, &options, &cancel, &mut NobodyWatches)
        });
        Ran { report: report.unwrap(), asked: Vec::new() }
    }
}

/// What a run did.
#[derive(Debug)]
pub struct Ran {
    /// Its report.
    pub report: Report,
    /// The days and issues that the vendor was asked for; those of others with the name of the source before.
    pub asked: Vec<String>,
}

impl Ran {
    /// How it ended.
    #[must_use]
    pub fn ending(&self) -> Ending {
        self.report.ending
    }

    /// What was found strange, like `2025-12-16 factors refuse`.
    #[must_use]
    pub fn findings(&self) -> Vec<String> {
        let findings = self.report.findings.iter();
        let line = |finding: &update::FindingReport| {
            assert!(finding.what.starts_with(&format!("{}: ", finding.check)), "{finding:?}");
            let severity = format!("{:?}", finding.severity).to_lowercase();
            format!("{} {} {severity}", finding.date, finding.check)
        };
        findings.map(line).collect()
    }

    /// The days that wait, with their rows and those that they should have, like `2025-12-17 98 of 100`.
    #[must_use]
    pub fn waiting(&self) -> Vec<String> {
        let days = self.report.waiting.iter();
        let expected = |expected: Option<u64>| expected.map_or("?".to_owned(), |n| n.to_string());
        days.map(|day| format!("{} {} of {}", day.date, day.rows, expected(day.expected))).collect()
    }

    /// What became of each day that was asked for, like `2025-12-17 Fetched`.
    #[must_use]
    pub fn days(&self) -> Vec<String> {
        self.report.days.iter().map(|day| format!("{} {:?}", day.date, day.outcome)).collect()
    }

    /// The rows that a source gave: new, changed, kept, removed.
    #[must_use]
    pub fn rows_of(&self, kind: SourceKind) -> [u64; 4] {
        let source = self.report.sources.iter().find(|source| source.source == kind);
        source.map_or([0; 4], |of| [of.inserted, of.changed, of.kept, of.removed])
    }

    /// All notes.
    #[must_use]
    pub fn notes(&self) -> String {
        self.report.notes.join("\n")
    }
}
