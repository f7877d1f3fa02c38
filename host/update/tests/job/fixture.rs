//! A store in memory, sources that answer as they are told, and a run over both.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::rc::Rc;

use domain::{JstDate, Money, Price, TsNanos};
use http_client::{CancellationToken, HttpError};
use pricestore::listed::ListedHistory;
use pricestore::{DataDir, Published, SourceRows};
use update::source::{Answer, DailySource, SourceError};
use update::store::StoreError;
use update::{
    Applied, DailyRow, FetchState, IssueCode, JobOptions, JobWatch, Known, OpenDays, Part, Phase,
    PriceRows, PriceStore, Report, SourceKind, SourceSlot, Split, StoreProgress, UpdateError,
    last_weekdays, update_from_sources,
};

pub(crate) fn date(text: &str) -> JstDate {
    text.parse().unwrap()
}

pub(crate) fn code(text: &str) -> IssueCode {
    text.parse().unwrap()
}

pub(crate) fn row(date: JstDate, code: IssueCode, source: SourceKind) -> DailyRow {
    let price = Some(Price::from_yen(1_000));
    DailyRow {
        date,
        code,
        open: price,
        high: price,
        low: price,
        close: price,
        volume: Some(100),
        turnover: Some(Money::from_yen(100_000)),
        adjustment_factor: Some(1.0),
        source,
    }
}

/// The same with a volume that no other issue and no day beside it has, and a price that these days do not have.
pub(crate) fn traded(row: DailyRow) -> DailyRow {
    let day = row.date.to_epoch_days().unsigned_abs();
    let yen = 1_000 + i64::from(day % 97);
    let price = Some(Price::from_yen(yen));
    let number = row.code.as_str().bytes().fold(0, |number, byte| number * 10 + u32::from(byte));
    let volume = day + number;
    DailyRow {
        open: price,
        high: price,
        low: price,
        close: price,
        volume: Some(u64::from(volume)),
        turnover: Some(Money::from_yen(yen * i64::from(volume))),
        ..row
    }
}

/// A store in memory.
#[derive(Default)]
pub(crate) struct MemoryStore {
    pub(crate) rows: BTreeMap<(JstDate, IssueCode), DailyRow>,
    pub(crate) published: u64,
    pub(crate) splits: Vec<Option<JstDate>>,
    /// How many rows each call stored.
    pub(crate) applied: Vec<usize>,
    /// The published file.
    mother: PathBuf,
    /// What was fetched; before anything was, all rows are of complete days.
    pub(crate) state: Option<FetchState>,
    /// The exchange's calendar.
    pub(crate) open_days: OpenDays,
    /// The lists of issues.
    pub(crate) lists: ListedHistory,
    /// The next publication fails.
    pub(crate) cannot_publish: bool,
}

impl MemoryStore {
    fn apply(&mut self, rows: &[DailyRow]) -> Applied {
        self.applied.push(rows.len());
        let mut applied = Applied::default();
        for row in rows {
            let old = self.rows.get(&(row.date, row.code));
            let is_same = old.is_some_and(|old| DailyRow { source: row.source, ..*old } == *row);
            let stays = old.is_some_and(|old| match old.source.rank().cmp(&row.source.rank()) {
                Ordering::Less => false,
                Ordering::Equal => is_same,
                Ordering::Greater => true,
            });
            let count = match (old, stays) {
                (None, _) => &mut applied.inserted,
                (_, true) if is_same => &mut applied.unchanged,
                (_, true) => &mut applied.kept,
                (_, false) if is_same => &mut applied.confirmed,
                _ => &mut applied.changed,
            };
            *count += 1;
            if !stays {
                self.rows.insert((row.date, row.code), *row);
                applied.dates.insert(row.date);
            }
        }
        applied
    }
}

impl PriceRows for MemoryStore {
    fn known(&mut self) -> Result<Known, StoreError> {
        let mut dates = BTreeMap::new();
        self.rows.keys().for_each(|(date, _)| *dates.entry(*date).or_default() += 1);
        let codes: BTreeSet<_> = self.rows.keys().map(|(_, code)| *code).collect();
        Ok(Known { codes: codes.into_iter().collect(), dates })
    }

    fn codes_of(&mut self, date: JstDate) -> Result<BTreeSet<IssueCode>, StoreError> {
        let of_day = self.rows.keys().filter(|(of, _)| *of == date);
        Ok(of_day.map(|(_, code)| *code).collect())
    }

    fn vendor_codes_of(&mut self, date: JstDate) -> Result<BTreeSet<IssueCode>, StoreError> {
        let is_vendor = |row: &&DailyRow| row.source.rank() == SourceKind::Vendor.rank();
        let of_day = self.rows.values().filter(is_vendor).filter(|row| row.date == date);
        Ok(of_day.map(|row| row.code).collect())
    }

    fn losing(
        &mut self,
        rows: &[DailyRow],
    ) -> Result<BTreeMap<JstDate, BTreeSet<IssueCode>>, StoreError> {
        let mut losing: BTreeMap<JstDate, BTreeSet<IssueCode>> = BTreeMap::new();
        for row in rows.iter().filter(|row| !row.is_full()) {
            if self.rows.get(&(row.date, row.code)).is_some_and(DailyRow::is_full) {
                losing.entry(row.date).or_default().insert(row.code);
            }
        }
        Ok(losing)
    }

    fn rows_of(&mut self, date: JstDate) -> Result<Vec<DailyRow>, StoreError> {
        Ok(self.rows.values().filter(|row| row.date == date).copied().collect())
    }

    fn rows_between(
        &mut self,
        first: JstDate,
        last: JstDate,
    ) -> Result<BTreeMap<JstDate, Vec<DailyRow>>, StoreError> {
        let mut days: BTreeMap<JstDate, Vec<DailyRow>> = BTreeMap::new();
        for row in self.rows.values().filter(|row| (first..=last).contains(&row.date)) {
            days.entry(row.date).or_default().push(*row);
        }
        Ok(days)
    }

    fn has_trades(&mut self, date: JstDate) -> Result<bool, StoreError> {
        Ok(self.rows.values().any(|row| row.date == date && row.volume > Some(0)))
    }

    fn days_of_lesser_sources(&mut self, from: JstDate) -> Result<BTreeSet<JstDate>, StoreError> {
        let is_lesser = |row: &&DailyRow| row.source.rank() < SourceKind::Vendor.rank();
        let rows = self.rows.values().filter(is_lesser).filter(|row| row.date >= from);
        Ok(rows.map(|row| row.date).collect())
    }

    fn silent_days(&mut self, from: JstDate) -> Result<BTreeSet<JstDate>, StoreError> {
        let is_silent = |row: &&DailyRow| {
            row.source.rank() == SourceKind::Vendor.rank() && row.adjustment_factor.is_none()
        };
        let rows = self.rows.values().filter(is_silent).filter(|row| row.date >= from);
        Ok(rows.map(|row| row.date).collect())
    }

    fn days_with(&mut self, rows: &[DailyRow], count_min: u64) -> Result<Vec<JstDate>, StoreError> {
        let mut days: BTreeMap<JstDate, u64> = BTreeMap::new();
        for row in self.rows.values() {
            let is_wanted =
                |wanted: &DailyRow| wanted.code == row.code && wanted.prices() == row.prices();
            *days.entry(row.date).or_default() += u64::from(rows.iter().any(is_wanted));
        }
        Ok(days.into_iter().filter(|(_, count)| *count >= count_min).map(|(day, _)| day).collect())
    }

    fn open_days(&mut self) -> Result<OpenDays, StoreError> {
        Ok(self.open_days.clone())
    }

    fn store_open_days(&mut self, days: &OpenDays) -> Result<(), StoreError> {
        self.open_days.clone_from(days);
        Ok(())
    }

    fn listed(&mut self) -> Result<ListedHistory, StoreError> {
        Ok(self.lists.clone())
    }

    fn store_listed(&mut self, lists: &ListedHistory) -> Result<(), StoreError> {
        self.lists.clone_from(lists);
        Ok(())
    }

    fn sources(&mut self) -> Result<Vec<SourceRows>, StoreError> {
        Ok(Vec::new())
    }

    fn fetch_state(&mut self) -> Result<(FetchState, Option<String>), StoreError> {
        let complete = self.rows.keys().map(|(date, _)| *date).collect();
        let begun = FetchState { complete, ..FetchState::default() };
        Ok((self.state.clone().unwrap_or(begun), None))
    }

    fn commit(
        &mut self,
        parts: &[Part<'_>],
        state: &FetchState,
    ) -> Result<Vec<Applied>, StoreError> {
        assert!(parts.iter().all(|part| part.gone.is_empty()), "nobody lists issues here");
        let applied = parts.iter().map(|part| self.apply(part.rows)).collect();
        self.state = Some(state.clone());
        Ok(applied)
    }
}

impl PriceStore for MemoryStore {
    fn rows(&mut self) -> &mut dyn PriceRows {
        self
    }

    fn has_published(&self) -> bool {
        self.mother.is_file()
    }

    fn publish_listed(&mut self) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn publish(&mut self, progress: &mut StoreProgress<'_>) -> Result<Published, StoreError> {
        if self.cannot_publish {
            return Err(StoreError::NotPublished(self.mother.clone()));
        }
        if progress(0, 1, "publishing").is_break() {
            return Err(StoreError::Cancelled);
        }
        std::fs::create_dir_all(self.mother.parent().unwrap()).unwrap();
        std::fs::write(&self.mother, "").unwrap();
        self.published += 1;
        let known = self.known()?;
        let ends = (known.dates.first_key_value(), known.dates.last_key_value());
        let range = (*ends.0.unwrap().0, *ends.1.unwrap().0);
        let (days, codes) = (known.dates.len(), known.codes.len());
        let number = self.published;
        Ok(Published {
            number,
            days,
            new_days: days,
            codes,
            range,
            base_fault: None,
            files: Vec::new(),
        })
    }

    fn split_to_individual(
        &mut self,
        from: Option<JstDate>,
        progress: &mut StoreProgress<'_>,
    ) -> Result<Split, StoreError> {
        if let ControlFlow::Break(()) = progress(0, 1, "splitting") {
            return Err(StoreError::Cancelled);
        }
        self.splits.push(from);
        Ok(Split { written: self.known()?.codes.len() as u64, ..Split::default() })
    }
}

type Reply<Q> = Box<dyn FnMut(Q) -> Result<Vec<DailyRow>, SourceError>>;

/// A source that answers as it is told, and what it was asked.
pub(crate) struct ScriptedSource {
    kind: SourceKind,
    day: Option<Reply<JstDate>>,
    issue: Reply<(IssueCode, JstDate, JstDate)>,
    asked: Asked,
}

/// Questions in the order in which they came, like `vendor 2026-01-05` and `public 7203 a..b`.
pub(crate) type Asked = Rc<RefCell<Vec<String>>>;

impl ScriptedSource {
    /// A source that has no whole days.
    pub(crate) fn by_issue(
        kind: SourceKind,
        asked: &Asked,
        issue: impl FnMut((IssueCode, JstDate, JstDate)) -> Result<Vec<DailyRow>, SourceError> + 'static,
    ) -> Self {
        Self { kind, day: None, issue: Box::new(issue), asked: Rc::clone(asked) }
    }

    /// With an answer to questions for whole days.
    pub(crate) fn with_days(
        self,
        day: impl FnMut(JstDate) -> Result<Vec<DailyRow>, SourceError> + 'static,
    ) -> Self {
        Self { day: Some(Box::new(day)), ..self }
    }

    pub(crate) fn slot(self) -> SourceSlot {
        SourceSlot::Ready(Box::new(self))
    }
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
        let rows = (self.day.as_mut().unwrap())(date)?;
        Ok(Answer { rows, ..Answer::default() })
    }

    fn issue(
        &mut self,
        code: IssueCode,
        from: JstDate,
        to: JstDate,
    ) -> Result<Answer, SourceError> {
        self.asked.borrow_mut().push(format!("{} {code} {from}..{to}", self.kind));
        let rows = (self.issue)((code, from, to))?;
        Ok(Answer { rows, ..Answer::default() })
    }
}

pub(crate) fn failing<Q>() -> impl FnMut(Q) -> Result<Vec<DailyRow>, SourceError> {
    |_| Err(HttpError::Unavailable { what: "no route".to_owned(), tries: 3 }.into())
}

pub(crate) fn nothing<Q>() -> impl FnMut(Q) -> Result<Vec<DailyRow>, SourceError> {
    |_| Ok(Vec::new())
}

/// Rows of these issues on every weekday that was asked for.
pub(crate) fn every_day(
    kind: SourceKind,
    codes: &'static [&'static str],
) -> impl FnMut(JstDate) -> Result<Vec<DailyRow>, SourceError> {
    move |date| Ok(codes.iter().map(|text| row(date, code(text), kind)).collect())
}

/// Rows of the issue on every weekday that was asked for.
pub(crate) fn every_issue(
    kind: SourceKind,
) -> impl FnMut((IssueCode, JstDate, JstDate)) -> Result<Vec<DailyRow>, SourceError> {
    move |(code, from, to)| {
        let days = last_weekdays(to, 1_000).into_iter().filter(|date| *date >= from);
        Ok(days.map(|date| traded(row(date, code, kind))).collect())
    }
}

/// Watches and remembers.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) phases: Vec<Phase>,
}

impl JobWatch for Seen {
    fn progress(&mut self, phase: Phase, done: u64, of: u64, _: &str) {
        assert!(done <= of, "{phase:?} {done} of {of}");
        if self.phases.last() != Some(&phase) {
            self.phases.push(phase);
        }
    }
}

/// A data directory, a store and the time: Friday, 2026-01-09, 17:00.
pub(crate) struct Fixture {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) store: MemoryStore,
    pub(crate) options: JobOptions,
    pub(crate) cancel: CancellationToken,
    pub(crate) asked: Asked,
    pub(crate) seen: Seen,
}

impl Fixture {
    pub(crate) fn new(days: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::new(folder.path());
        let today = date("2026-01-09");
        let from = Some(last_weekdays(today, days)[0]);
        let now = TsNanos::from_jst(today, 17 * 3_600 * 1_000_000_000).unwrap();
        let store = MemoryStore { mother: data.mother(), ..MemoryStore::default() };
        let options = JobOptions {
            data,
            now,
            from,
            to: today,
            codes: Vec::new(),
            refetch: false,
            publish_incomplete: None,
            recheck: 0,
            accept: Vec::new(),
        };
        Self {
            folder,
            store,
            options,
            cancel: CancellationToken::new(),
            asked: Asked::default(),
            seen: Seen::default(),
        }
    }

    /// Makes tomorrow today, and looks as many days back.
    pub(crate) fn sleep_until(&mut self, today: &str, days: u32) {
        let today = date(today);
        self.options.now = TsNanos::from_jst(today, 17 * 3_600 * 1_000_000_000).unwrap();
        (self.options.from, self.options.to) = (Some(last_weekdays(today, days)[0]), today);
    }

    pub(crate) fn run(&mut self, sources: Vec<SourceSlot>) -> Result<Report, UpdateError> {
        let Self { store, options, cancel, seen, .. } = self;
        update_from_sources(store, sources, options, cancel, seen)
    }

    /// The questions since the last look.
    pub(crate) fn take_asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.borrow_mut())
    }

    /// Sources of all stored rows by date and code.
    pub(crate) fn stored(&self) -> Vec<String> {
        let text = |row: &DailyRow| format!("{} {} {}", row.date, row.code, row.source);
        self.store.rows.values().map(text).collect()
    }

    /// The newest report as it was stored.
    pub(crate) fn stored_report(&self, number: u64) -> serde_json::Value {
        let path = self.folder.path().join("update").join(format!("report-{number}.json"));
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }
}
