//! The update job (specification 3, "Update job"): which days are wanted, where they come from, and what happens
//! with them. Its rules are in [`RULES`](crate::RULES) and [`CHECKS`](crate::CHECKS).
//!
//! What was fetched is stored after every few days or issues, so that a run that ends early is gone on with by the
//! next.

mod fetch;
mod files;
mod finish;
mod judge;
mod plan;
mod report;
mod slots;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use domain::clock::Stopwatch;
use domain::{JstDate, TsNanos};
use http_client::CancellationToken;
use pricestore::DataDir;
use pricestore::listed::ListedHistory;

use crate::checks::Day;
use crate::fetch_state::FetchState;
use crate::limits::{BATCH_ISSUES, BATCH_ROWS};
use crate::price_store::{Applied, Known, OpenDays, Part, PriceStore};
use crate::row::{DailyRow, IssueCode, SourceKind};
use crate::source::IssueList;
use crate::store::StoreError;

use report::Reason;
use slots::{KeyTrouble, Slots};

pub use plan::last_weekdays;
pub use report::{
    CorrectedValue, CorrectionReport, DayOutcome, DayReport, Ending, FindingReport, IssueReport,
    ListedReport, OddRowReport, PublishedReport, Reason as FailureReason, Report, SourceReport,
    SourceState, SplitReport, WaitingDayReport, report_schema,
};
pub use slots::SourceSlot;

/// What a run shall do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOptions {
    /// The data directory.
    pub data: DataDir,
    /// The time, which says what today is.
    pub now: TsNanos,
    /// The run begins here at the latest; without it, after the last complete day, and with local files where
    /// they do.
    pub from: Option<JstDate>,
    /// Last date that is wanted.
    pub to: JstDate,
    /// The issues; all where none is named.
    pub codes: Vec<IssueCode>,
    /// Whether days from `from` on are fetched again that earlier runs have fetched.
    pub refetch: bool,
    /// Complete days of which the vendor is asked again (rule `again`).
    pub recheck: usize,
    /// Days that are taken as they come (rule `accept`); they are always asked for.
    pub accept: Vec<JstDate>,
}

/// What a run is busy with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Fetching whole days.
    Days,
    /// Fetching issue by issue.
    Issues,
    /// Reading local files; counted in bytes.
    Files,
    /// Publishing the combined database.
    Publish,
    /// Writing the per-issue databases.
    Split,
}

/// Is told how a run goes on. What is worth knowing besides is an event of [`tracing`].
pub trait JobWatch {
    /// So much is done of a phase, and a word on where.
    fn progress(&mut self, phase: Phase, done: u64, of: u64, what: &str);
}

/// Why a run could not do its work. What was stored and published before stays as it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// The databases could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file of the job itself.
    #[error("cannot write {}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The folder with local files cannot be used.
    #[error("{0}")]
    Files(String),
}

/// Runs the job with the sources of the network.
///
/// # Errors
/// [`UpdateError`] when the databases cannot be written. That sources fail is no error but part of
/// the report.
pub fn update_from_sources(
    store: &mut dyn PriceStore,
    sources: Vec<SourceSlot>,
    options: &JobOptions,
    cancel: &CancellationToken,
    watch: &mut dyn JobWatch,
) -> Result<Report, UpdateError> {
    run(store, options, cancel, watch, |job| {
        let mut slots = Slots::new(sources);
        let fetched = job.fetch(&mut slots);
        job.report.notes.extend(slots.take_notes());
        slots.report(&mut job.report);
        job.key_trouble = slots.key_trouble();
        fetched
    })
}

/// Runs the job with the vendor's files in a folder, and no network.
///
/// # Errors
/// As [`update_from_sources`], and when the folder has no such file.
pub fn update_from_files(
    store: &mut dyn PriceStore,
    folder: &Path,
    options: &JobOptions,
    cancel: &CancellationToken,
    watch: &mut dyn JobWatch,
) -> Result<Report, UpdateError> {
    run(store, options, cancel, watch, |job| {
        job.read_files(folder)?;
        job.judge_stored(None)
    })
}

fn run(
    store: &mut dyn PriceStore,
    options: &JobOptions,
    cancel: &CancellationToken,
    watch: &mut dyn JobWatch,
    fetch: impl FnOnce(&mut Job<'_>) -> Result<(), UpdateError>,
) -> Result<Report, UpdateError> {
    let clock = Stopwatch::start();
    let (from, to, codes) = (options.from, options.to, options.codes.len());
    let from = from.map(tracing::field::display);
    let span = tracing::info_span!("update", from, %to, codes);
    let _entered = span.enter();
    let mut job = Job::new(store, options, cancel, watch);
    let done = job.prepare().and_then(|()| {
        fetch(&mut job)?;
        job.finish()
    });
    let mut report = job.into_report();
    if let Err(error) = &done {
        report.ending = Ending::Failed;
        report.error = Some(error.to_string());
    }
    report.seconds = clock.elapsed().as_secs_f64();
    let folder = options.data.update_folder();
    let stored = report.store(&folder);
    let (number, seconds, fetched) = (report.number, report.seconds, report.rows_fetched());
    tracing::info!(number, ending = ?report.ending, fetched, seconds, "the run has ended");
    done?;
    stored.map_err(|source| UpdateError::Io { path: folder, source })?;
    Ok(report)
}

/// A run at work.
struct Job<'a> {
    store: &'a mut dyn PriceStore,
    options: &'a JobOptions,
    cancel: &'a CancellationToken,
    watch: &'a mut dyn JobWatch,
    /// What earlier runs and this one have fetched.
    state: FetchState,
    known: Known,
    report: Report,
    /// What happened to each day so far.
    days: BTreeMap<JstDate, DayState>,
    /// Every issue of which this run has seen a row.
    seen: BTreeSet<IssueCode>,
    batch: Batch,
    /// Rows that tell no factor, of sources that should.
    silent: u64,
    /// The first date of those that readers may see which was unpublished before this run, or changed
    /// by it.
    changed_from: Option<JstDate>,
    /// The exchange's calendar, as far as it is known, and as it is stored.
    calendar: OpenDays,
    stored_calendar: OpenDays,
    /// The calendar has other business days between published ones than it had.
    calendar_is_new: bool,
    /// First and last date that the vendor says the subscription covers.
    covered: Option<(JstDate, JstDate)>,
    /// The rows of the last complete days that were looked at.
    recent: BTreeMap<JstDate, Rc<Day>>,
    /// The lists of issues that this run has asked for, by date; none where the vendor has none.
    lists_of_run: BTreeMap<JstDate, Option<IssueList>>,
    /// All lists that are stored, with those of this run.
    lists: ListedHistory,
    /// Some of them are not stored yet.
    lists_are_new: bool,
    /// The user's wish to end left something undone that no day tells.
    cut_short: bool,
    /// What is wrong with the vendor's key.
    key_trouble: Option<KeyTrouble>,
}

/// What happened to a day so far.
#[derive(Debug, Default)]
struct DayState {
    outcome: Option<DayOutcome>,
    rows: u64,
    /// Rows that it should have.
    expected: Option<u64>,
    /// Why it is not complete.
    why: Option<String>,
    /// A whole answer was judged.
    is_judged: bool,
    /// An answer was refused.
    is_refused: bool,
    sources: BTreeSet<SourceKind>,
    reasons: Vec<Reason>,
}

/// Rows on their way to the store.
#[derive(Debug, Default)]
struct Batch {
    rows: BTreeMap<SourceKind, Vec<DailyRow>>,
    count: usize,
    /// Rows that the vendor took back.
    gone: Vec<(JstDate, IssueCode)>,
    /// Issues that are done once the rows are stored.
    issues: Vec<IssueCode>,
}

impl<'a> Job<'a> {
    fn new(
        store: &'a mut dyn PriceStore,
        options: &'a JobOptions,
        cancel: &'a CancellationToken,
        watch: &'a mut dyn JobWatch,
    ) -> Self {
        let mut report = Report::new(options.now.to_string());
        (report.from, report.to) = (options.from, Some(options.to));
        Self {
            store,
            options,
            cancel,
            watch,
            state: FetchState::default(),
            known: Known::default(),
            report,
            days: BTreeMap::new(),
            seen: BTreeSet::new(),
            batch: Batch::default(),
            silent: 0,
            changed_from: None,
            calendar: OpenDays::new(),
            stored_calendar: OpenDays::new(),
            calendar_is_new: false,
            covered: None,
            recent: BTreeMap::new(),
            lists_of_run: BTreeMap::new(),
            lists: ListedHistory::default(),
            lists_are_new: false,
            cut_short: false,
            key_trouble: None,
        }
    }

    fn prepare(&mut self) -> Result<(), UpdateError> {
        // Without a place for the report nothing is begun.
        let folder = self.options.data.update_folder();
        fs::create_dir_all(&folder).map_err(|source| UpdateError::Io { path: folder, source })?;
        let rows = self.store.rows();
        self.known = rows.known()?;
        let (state, note) = rows.fetch_state()?;
        self.calendar = rows.open_days()?;
        self.lists = rows.listed()?;
        self.stored_calendar = self.calendar.clone();
        self.changed_from = state.unpublished_from;
        self.state = state;
        note.into_iter().for_each(|note| self.note(note));
        Ok(())
    }

    /// Something worth knowing at once and later.
    fn note(&mut self, line: String) {
        tracing::warn!("{line}");
        self.report.notes.push(line);
    }

    /// Whether the user takes a day as it comes (rule `accept`).
    fn is_named(&self, date: JstDate) -> bool {
        self.options.accept.contains(&date)
    }

    fn day(&mut self, date: JstDate) -> &mut DayState {
        self.days.entry(date).or_default()
    }

    /// Readers may see the rows of a day from now on.
    fn release(&mut self, date: JstDate) {
        for first in [&mut self.changed_from, &mut self.state.unpublished_from] {
            *first = Some(first.map_or(date, |first| first.min(date)));
        }
    }

    /// Takes rows of one source.
    fn collect(&mut self, source: SourceKind, rows: Vec<DailyRow>) {
        self.report.source(source).fetched += rows.len() as u64;
        for row in &rows {
            let day = self.days.entry(row.date).or_default();
            day.rows += 1;
            day.sources.insert(source);
            self.seen.insert(row.code);
            self.silent += u64::from(row.adjustment_factor.is_none() && !source.is_adjusted());
        }
        self.batch.count += rows.len();
        self.batch.rows.entry(source).or_default().extend(rows);
    }

    /// Stores what was collected once it is enough.
    fn flush_if_full(&mut self) -> Result<(), UpdateError> {
        if self.batch.count >= BATCH_ROWS || self.batch.issues.len() >= BATCH_ISSUES {
            self.flush()?;
        }
        Ok(())
    }

    /// Stores what was collected and, in the same transaction, what is known of the days.
    fn flush(&mut self) -> Result<(), UpdateError> {
        if std::mem::take(&mut self.lists_are_new) {
            // Before the rows of their dates, so that a complete day has the list that it was held against.
            self.store.rows().store_listed(&self.lists)?;
        }
        let batch = std::mem::take(&mut self.batch);
        let dates = batch.rows.values().flatten().map(|row| row.date);
        let dates = dates.chain(batch.gone.iter().map(|(date, _)| *date));
        if let Some(first) = dates.filter(|date| self.state.is_published(*date)).min() {
            let unpublished = &mut self.state.unpublished_from;
            *unpublished = Some(unpublished.map_or(first, |known| known.min(first)));
        }
        if let Some(pass) = &mut self.state.pass {
            pass.codes.extend(batch.issues);
        }
        let parts = batch.rows.iter().flat_map(|(source, rows)| {
            rows.chunks(BATCH_ROWS).map(move |rows| (*source, Part { rows, ..Part::default() }))
        });
        let gone = Part { gone: &batch.gone, ..Part::default() };
        let gone = (!batch.gone.is_empty()).then_some((SourceKind::Vendor, gone));
        let (sources, parts): (Vec<SourceKind>, Vec<Part<'_>>) = parts.chain(gone).unzip();
        let applied = self.store.rows().commit(&parts, &self.state, self.options.now)?;
        for (source, applied) in sources.into_iter().zip(applied) {
            let Applied { inserted, changed, unchanged, .. } = applied;
            tracing::debug!(%source, inserted, changed, unchanged, "rows are stored");
            self.report.source(source).add(&applied);
            let mut dates = applied.dates.iter().copied();
            let first = dates.find(|date| self.state.is_published(*date));
            self.changed_from = [self.changed_from, first].into_iter().flatten().min();
            self.report.corrected(source, applied.corrections);
        }
        Ok(())
    }

    /// The report, with the days in order.
    fn into_report(self) -> Report {
        let mut report = self.report;
        let days = self.days.into_iter().map(|(date, day)| DayReport {
            date,
            outcome: day.outcome.unwrap_or(DayOutcome::NotReached),
            rows: day.rows,
            expected: day.expected,
            complete: self.state.complete.contains(&date),
            sources: day.sources.into_iter().collect(),
            reasons: day.reasons,
        });
        report.days = days.collect();
        report
    }
}
