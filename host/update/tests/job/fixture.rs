//! The job's real rows in memory, sources that answer as they are told, and runs over both.

use std::cell::RefCell;
use std::rc::Rc;

use domain::time::NANOS_PER_MINUTE;
use domain::{JstDate, Money, Price, TsNanos};
use http_client::{CancellationToken, HttpError};
use pricestore::{DataDir, Published};
use update::source::{Answer, DailySource, SourceError};
use update::store::{StoreError, WorkRows};
use update::{
    DailyRow, FetchState, IssueCode, JobOptions, JobWatch, Part, Phase, PriceRows, PriceStore,
    Report, SourceKind, SourceSlot, Split, StoreProgress, UpdateError, last_weekdays,
    update_from_sources,
};

pub(crate) fn date(text: &str) -> JstDate {
    text.parse().unwrap()
}

pub(crate) fn code(text: &str) -> IssueCode {
    text.parse().unwrap()
}

/// A row with a volume that no other issue and no day beside it has, and a price that these days do not have.
pub(crate) fn row(date: JstDate, code: IssueCode, source: SourceKind) -> DailyRow {
    let day = date.to_epoch_days();
    let (yen, price) = (1_000 + i64::from(day % 97), |yen| Some(Price::from_yen(yen)));
    let number = code.as_str().bytes().fold(0, |number, byte| number * 10 + u32::from(byte));
    let volume = day.unsigned_abs() + number;
    DailyRow {
        open: price(yen),
        high: price(yen),
        low: price(yen),
        close: price(yen),
        volume: Some(u64::from(volume)),
        turnover: Some(Money::from_yen(yen * i64::from(volume))),
        adjustment_factor: Some(1.0),
        ..DailyRow::bare(date, code, source)
    }
}

/// The job's real rows in memory, of which nothing is published.
pub(crate) struct Unpublished {
    pub(crate) rows: WorkRows,
    pub(crate) published: u64,
    pub(crate) splits: Vec<Option<JstDate>>,
}

impl Unpublished {
    pub(crate) fn new(data: &DataDir) -> Self {
        let rows = WorkRows::in_memory(data).unwrap();
        Self { rows, published: 0, splits: Vec::new() }
    }
}

impl PriceStore for Unpublished {
    fn rows(&mut self) -> &mut dyn PriceRows {
        &mut self.rows
    }

    fn has_published(&self) -> bool {
        self.published > 0
    }

    fn publish_listed(&mut self) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn publish(&mut self, progress: &mut StoreProgress<'_>) -> Result<Published, StoreError> {
        if progress(0, 1, "publishing").is_break() {
            return Err(StoreError::Cancelled);
        }
        self.published += 1;
        let (known, (state, _)) = (self.rows.known()?, self.rows.fetch_state()?);
        let days = known.dates.keys().filter(|date| state.is_published(**date)).count();
        let (codes, range) = (known.codes.len(), state.published_range().unwrap());
        Ok(Published { number: self.published, days, codes, range, file: None })
    }

    fn split_to_individual(
        &mut self,
        from: Option<JstDate>,
        progress: &mut StoreProgress<'_>,
    ) -> Result<Split, StoreError> {
        if progress(0, 1, "splitting").is_break() {
            return Err(StoreError::Cancelled);
        }
        self.splits.push(from);
        Ok(Split::default())
    }
}

pub(crate) type Given = Result<Vec<DailyRow>, SourceError>;
/// An issue, and from which date to which other.
pub(crate) type Span = (IssueCode, JstDate, JstDate);

/// A source that answers by a script, and notes each request.
struct ScriptedSource {
    kind: SourceKind,
    day: Option<Box<dyn FnMut(JstDate) -> Given>>,
    issue: Box<dyn FnMut(Span) -> Given>,
    asked: Rc<RefCell<Vec<String>>>,
}

impl DailySource for ScriptedSource {
    fn kind(&self) -> SourceKind {
        self.kind
    }

    fn has_days(&self) -> bool {
        self.day.is_some()
    }

    fn day(&mut self, date: JstDate) -> Result<Answer, SourceError> {
        self.asked.borrow_mut().push(format!("{} {date}", self.kind));
        Ok(Answer { rows: (self.day.as_mut().unwrap())(date)?, ..Answer::default() })
    }

    fn issue(
        &mut self,
        code: IssueCode,
        from: JstDate,
        to: JstDate,
    ) -> Result<Answer, SourceError> {
        self.asked.borrow_mut().push(format!("{} {code} {from}..{to}", self.kind));
        Ok(Answer { rows: (self.issue)((code, from, to))?, ..Answer::default() })
    }
}

pub(crate) fn failing<Q>(_: Q) -> Given {
    Err(HttpError::Unavailable { what: "no route".to_owned(), tries: 3 }.into())
}

pub(crate) fn nothing<Q>(_: Q) -> Given {
    Ok(Vec::new())
}

/// The vendor's rows of these issues on any day that is asked for.
pub(crate) fn days_of(codes: &'static [&'static str]) -> impl FnMut(JstDate) -> Given {
    |date| Ok(codes.iter().map(|text| row(date, code(text), SourceKind::Vendor)).collect())
}

/// Rows of any issue on every weekday that is asked for.
pub(crate) fn issues_of(kind: SourceKind) -> impl FnMut(Span) -> Given {
    move |(code, from, to)| {
        let days = last_weekdays(to, 1_000).into_iter().filter(|date| *date >= from);
        Ok(days.map(|date| row(date, code, kind)).collect())
    }
}

/// Remembers the phases of a run, and may end it.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) phases: Vec<Phase>,
    pub(crate) cancel_at: Option<(Phase, CancellationToken)>,
}

impl JobWatch for Seen {
    fn progress(&mut self, phase: Phase, done: u64, of: u64, _: &str) {
        assert!(done <= of, "{phase:?} {done} of {of}");
        if self.phases.last() != Some(&phase) {
            self.phases.push(phase);
        }
        if let Some((_, cancel)) = self.cancel_at.take_if(|(at, _)| *at == phase) {
            cancel.cancel();
        }
    }
}

/// A data directory, rows, and the time: Friday, 2026-01-09, 17:00.
pub(crate) struct Fixture {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) store: Unpublished,
    pub(crate) options: JobOptions,
    pub(crate) cancel: CancellationToken,
    pub(crate) seen: Seen,
    asked: Rc<RefCell<Vec<String>>>,
}

impl Fixture {
    /// Runs that look so many weekdays back.
    pub(crate) fn new(days: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::new(folder.path());
        let store = Unpublished::new(&data);
        let options = JobOptions {
            data,
            now: TsNanos::from_nanos(0),
            from: None,
            to: JstDate::MIN,
            codes: Vec::new(),
            refetch: false,
            recheck: 0,
            accept: Vec::new(),
        };
        let (cancel, seen, asked) = (CancellationToken::new(), Seen::default(), Rc::default());
        let mut fixture = Self { folder, store, options, cancel, seen, asked };
        fixture.sleep_until("2026-01-09", days);
        fixture
    }

    /// The same, with a complete day of these issues right before the days that are looked at.
    pub(crate) fn after_a_day(days: u32, codes: &[&str]) -> Self {
        let mut fixture = Self::new(days);
        let before = last_weekdays(fixture.options.to, days + 1)[0];
        let rows = codes.iter().map(|text| row(before, code(text), SourceKind::Files));
        let rows: Vec<DailyRow> = rows.collect();
        let (fetched, complete) = ([before].into(), [before].into());
        let state = FetchState { fetched, complete, ..FetchState::default() };
        let part = Part { rows: &rows, ..Part::default() };
        fixture.store.rows.commit(&[part], &state, fixture.options.now).unwrap();
        fixture
    }

    /// Makes a later day today, and looks as many days back.
    pub(crate) fn sleep_until(&mut self, today: &str, days: u32) {
        let today = date(today);
        self.options.now = TsNanos::from_jst(today, 17 * 60 * NANOS_PER_MINUTE).unwrap();
        (self.options.from, self.options.to) = (Some(last_weekdays(today, days)[0]), today);
    }

    /// The vendor, with whole days.
    pub(crate) fn vendor(
        &self,
        day: impl FnMut(JstDate) -> Given + 'static,
        issue: impl FnMut(Span) -> Given + 'static,
    ) -> SourceSlot {
        self.slot(SourceKind::Vendor, Some(Box::new(day)), issue)
    }

    /// A source that has no whole days.
    pub(crate) fn source(
        &self,
        kind: SourceKind,
        issue: impl FnMut(Span) -> Given + 'static,
    ) -> SourceSlot {
        self.slot(kind, None, issue)
    }

    fn slot(
        &self,
        kind: SourceKind,
        day: Option<Box<dyn FnMut(JstDate) -> Given>>,
        issue: impl FnMut(Span) -> Given + 'static,
    ) -> SourceSlot {
        let (issue, asked) = (Box::new(issue), Rc::clone(&self.asked));
        SourceSlot::Ready(Box::new(ScriptedSource { kind, day, issue, asked }))
    }

    pub(crate) fn try_run(&mut self, sources: Vec<SourceSlot>) -> Result<Report, UpdateError> {
        let Self { store, options, cancel, seen, .. } = self;
        update_from_sources(store, sources, options, cancel, seen)
    }

    pub(crate) fn run(&mut self, sources: Vec<SourceSlot>) -> Report {
        self.try_run(sources).unwrap()
    }

    /// The questions since the last look, like `vendor 2026-01-05` and `public 7203 2026-01-05..2026-01-06`.
    pub(crate) fn take_asked(&self) -> Vec<String> {
        self.asked.take()
    }

    /// Sources of all stored rows by date and code.
    pub(crate) fn stored(&mut self) -> Vec<String> {
        let dates = self.store.rows.known().unwrap().dates.into_keys();
        let rows = dates.flat_map(|date| self.store.rows.rows_of(date).unwrap());
        rows.map(|row| format!("{} {} {}", row.date, row.code, row.source)).collect()
    }

    /// A report as it was stored.
    pub(crate) fn stored_report(&self, number: u64) -> serde_json::Value {
        let path = self.folder.path().join("update").join(format!("report-{number}.json"));
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }
}
