//! What a run did, for people and programs.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use domain::JstDate;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::checks::Severity;
use crate::limits::{
    ODD_ROW_BYTES_MAX, REASON_CHARS_MAX, REPORT_BYTES_MAX, REPORT_CORRECTIONS_MAX,
    REPORT_ISSUES_MAX, REPORT_ROWS_MAX, REPORTS_KEPT,
};
use crate::price_store::{Applied, Correction};
use crate::row::{IssueCode, SourceKind};
use crate::source::OddRow;

/// The version of the report's form.
const VERSION: u32 = 3;
const NAME_START: &str = "report-";
const NAME_END: &str = ".json";

fn as_text<T: std::fmt::Display, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

fn as_text_or_null<T: std::fmt::Display, S: Serializer>(
    value: &Option<T>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => to.collect_str(value),
        None => to.serialize_none(),
    }
}

fn as_texts<T: std::fmt::Display, S: Serializer>(values: &[T], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(values.iter().map(ToString::to_string))
}

/// How a run ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Everything that was asked for is stored and published.
    #[default]
    Done,
    /// Days wait, or a source failed, or an answer was refused; the rest is stored and published.
    Incomplete,
    /// A business day is missing between published ones, whatever else happened.
    Gap,
    /// The user ended it; what was stored stays, and the next run goes on from there.
    Interrupted,
    /// The databases or files could not be written, or the vendor's key is refused, or it is missing and
    /// so are days; the error says which.
    Failed,
}

/// What a run did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Report {
    /// Version of this form.
    pub version: u32,
    /// Number of the run in its data directory; 0 until it is stored.
    pub number: u64,
    /// When it started, in Japan time.
    pub started: String,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// How it ended.
    pub ending: Ending,
    /// Why it failed.
    pub error: Option<String>,
    /// First date that was looked at; none where all were.
    #[serde(serialize_with = "as_text_or_null")]
    #[schemars(with = "Option<String>", extend("format" = "date"))]
    pub from: Option<JstDate>,
    /// Last date that was looked at.
    #[serde(serialize_with = "as_text_or_null")]
    #[schemars(with = "Option<String>", extend("format" = "date"))]
    pub to: Option<JstDate>,
    /// Days of these that earlier runs had fetched, or that they found to have no data at any source.
    pub days_known: u64,
    /// Weekdays of these, not fetched by earlier runs, on which the exchange is closed by its calendar.
    pub days_closed: u64,
    /// Each source, in the order in which they are asked.
    pub sources: Vec<SourceReport>,
    /// Each day that was asked for, ascending.
    pub days: Vec<DayReport>,
    /// The days that wait, ascending.
    pub waiting: Vec<WaitingDayReport>,
    /// Business days between published ones that are not published themselves, ascending.
    #[serde(serialize_with = "as_texts")]
    #[schemars(with = "Vec<String>")]
    pub gaps: Vec<JstDate>,
    /// What this run found strange in days that it was given.
    pub findings: Vec<FindingReport>,
    /// The first of the rows that got other values or were taken back, in the order in which they were
    /// stored; the sources count all.
    pub corrections: Vec<CorrectionReport>,
    /// Rows of whole days that could not be used and were left out.
    pub odd_rows: u64,
    /// The first of these.
    pub odd: Vec<OddRowReport>,
    /// Issues of which no source gave anything because all failed.
    pub issues_failed: u64,
    /// The first of these.
    pub issues: Vec<IssueReport>,
    /// What was published; none where nothing had changed.
    pub published: Option<PublishedReport>,
    /// What became of the per-issue databases.
    pub split: Option<SplitReport>,
    /// What became of the lists of issues.
    pub listed: ListedReport,
    /// What is worth knowing besides.
    pub notes: Vec<String>,
}

/// What became of the lists of issues, which say names and markets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ListedReport {
    /// Lists that the vendor gave.
    pub lists: u64,
    /// Whether they were published.
    pub published: bool,
}

/// The JSON schema of a report, as it is printed and stored.
#[must_use]
pub fn report_schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<Report>().to_value()
}

/// What one source gave.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SourceReport {
    /// The source, as rows name it in their column `source`.
    pub source: SourceKind,
    /// Whether it was asked.
    pub state: SourceState,
    /// Why it is not configured or was given up.
    pub reason: Option<String>,
    /// Questions: days and issues.
    pub asked: u64,
    /// Days that were kept on this machine already.
    pub cached: u64,
    /// Questions without an answer that can be used.
    pub failed: u64,
    /// Rows that were fetched.
    pub fetched: u64,
    /// Rows of these that were new.
    pub inserted: u64,
    /// Rows that were there with other values.
    pub changed: u64,
    /// Rows that were there with the same values from a lesser source; they are of this one now.
    pub confirmed: u64,
    /// Rows that were there with the same values.
    pub unchanged: u64,
    /// Rows that were there with other values from a better source, and stay.
    pub kept: u64,
    /// Rows that were there and were removed, because this source, the vendor, took them back.
    pub removed: u64,
}

/// Whether a source was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceState {
    /// It was not needed.
    NotNeeded,
    /// It was asked.
    Asked,
    /// It cannot be asked.
    NotConfigured,
    /// It was asked until it was clear that it is of no use now.
    GivenUp,
}

/// What became of a day.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DayReport {
    /// Trading date (JST), as YYYY-MM-DD.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "String", extend("format" = "date"))]
    pub date: JstDate,
    /// What became of it.
    pub outcome: DayOutcome,
    /// Rows that were fetched.
    pub rows: u64,
    /// Rows that it should have; none where that was not looked at or is not known.
    pub expected: Option<u64>,
    /// Whether it is complete, so that readers see it.
    pub complete: bool,
    /// Where they came from, in the order in which sources are asked.
    pub sources: Vec<SourceKind>,
    /// Why sources gave nothing.
    pub reasons: Vec<Reason>,
}

/// What became of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DayOutcome {
    /// All issues in one piece.
    Fetched,
    /// Issue by issue.
    FetchedByIssue,
    /// No source has data: no trading, or not yet.
    NoData,
    /// Rows came, or were due, but not enough to make it complete.
    Incomplete,
    /// Its answer was refused, so it waits, or stays as it was.
    Refused,
    /// It need not be there: today before 16:30, outside of the subscription, or closed by the user's word.
    NotDue,
    /// It was not fetched, or not all of it.
    Failed,
    /// The run ended before.
    NotReached,
}

/// A day that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WaitingDayReport {
    /// Trading date (JST), as YYYY-MM-DD.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "String", extend("format" = "date"))]
    pub date: JstDate,
    /// Rows that are stored of it.
    pub rows: u64,
    /// Rows that it should have; none where that was not looked at or is not known.
    pub expected: Option<u64>,
    /// Why it is not complete: what was found, and what it is held against.
    pub why: String,
    /// What happens next, and what the user can do.
    pub advice: String,
}

/// What a check, or another rule, has found in a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FindingReport {
    /// Trading date (JST), as YYYY-MM-DD.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "String", extend("format" = "date"))]
    pub date: JstDate,
    /// The name of the check, or of the rule `first_day`, `published_stays` or `unusable`.
    pub check: String,
    /// What happens to the day.
    pub severity: Severity,
    /// Issues that are so.
    pub issues: u64,
    /// What was found, in words.
    pub what: String,
    /// The first rows that show it, at most three.
    pub rows: Vec<String>,
    /// What the user can do.
    pub advice: String,
}

/// A row that got other values, or was taken back.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CorrectionReport {
    /// Trading date (JST), as YYYY-MM-DD.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "String", extend("format" = "date"))]
    pub date: JstDate,
    /// The issue's code as it is stored, four or five characters.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "String")]
    pub code: IssueCode,
    /// The source of the new values.
    pub source: SourceKind,
    /// The source of the old ones; none where the row did not tell.
    pub before: Option<String>,
    /// Whether the row was removed, because the vendor took it back; then nothing is new.
    pub taken_back: bool,
    /// The columns that changed.
    pub values: Vec<CorrectedValue>,
}

/// A value of a row that changed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CorrectedValue {
    /// The column, as the databases name it.
    pub column: String,
    /// What was there: yen, shares or a factor; none for nothing.
    pub old: Option<f64>,
    /// What is there now.
    pub new: Option<f64>,
}

/// A row that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OddRowReport {
    /// The source that gave it.
    pub source: SourceKind,
    /// The issue and date as the source wrote them, and its place in the answer.
    pub row: String,
    /// The row's values as the source gave them; at most 1,024 bytes, free of keys.
    pub text: String,
    /// What is wrong with it; at most 500 characters, free of keys.
    pub reason: String,
}

/// Why a source gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Reason {
    /// The source that gave nothing, as rows name it in their column `source`.
    pub source: SourceKind,
    /// In words, for people; at most 500 characters, free of keys.
    pub reason: String,
}

impl Reason {
    /// A reason, not longer than a report takes.
    pub(super) fn new(source: SourceKind, reason: &str) -> Self {
        Self { source, reason: reason.chars().take(REASON_CHARS_MAX).collect() }
    }
}

/// An issue that no source gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct IssueReport {
    /// The issue's code as it is stored, four or five characters.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "String")]
    pub code: IssueCode,
    /// Why each source that was asked gave nothing.
    pub reasons: Vec<Reason>,
}

/// What readers see since this run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PublishedReport {
    /// Number of the ranking's snapshot.
    pub snapshot: u64,
    /// Business days in it.
    pub days: u64,
    /// Issues in it.
    pub codes: u64,
    /// First business day.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "String", extend("format" = "date"))]
    pub first: JstDate,
    /// Last business day.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "String", extend("format" = "date"))]
    pub last: JstDate,
}

/// What became of the per-issue databases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SplitReport {
    /// From which date on changes were looked for; all issues were written where none is given.
    #[serde(serialize_with = "as_text_or_null")]
    #[schemars(with = "Option<String>", extend("format" = "date"))]
    pub from: Option<JstDate>,
    /// Files that were written.
    pub written: u64,
    /// Files that were right already.
    pub unchanged: u64,
    /// Files of issues that are gone.
    pub removed: u64,
}

impl Report {
    /// An empty report.
    pub(super) fn new(started: String) -> Self {
        Self { version: VERSION, started, ..Self::default() }
    }

    /// The part about a source.
    pub(super) fn source(&mut self, kind: SourceKind) -> &mut SourceReport {
        let place = self.sources.iter().position(|part| part.source >= kind);
        let place = place.unwrap_or(self.sources.len());
        if self.sources.get(place).is_none_or(|part| part.source != kind) {
            self.sources.insert(place, SourceReport::new(kind));
        }
        &mut self.sources[place]
    }

    /// Names rows that got other values or were taken back, as far as there is room.
    pub(super) fn corrected(&mut self, source: SourceKind, corrections: Vec<Correction>) {
        let room = REPORT_CORRECTIONS_MAX.saturating_sub(self.corrections.len());
        let value = |(column, old, new): (&str, _, _)| CorrectedValue {
            column: column.to_owned(),
            old,
            new,
        };
        let named = corrections.into_iter().take(room).map(|row| {
            let Correction { date, code, before, taken_back, values } = row;
            let values = values.into_iter().map(value).collect();
            CorrectionReport { date, code, source, before, taken_back, values }
        });
        self.corrections.extend(named);
    }

    /// Counts rows that were left out, and names them as far as there is room.
    pub(super) fn left_out(&mut self, source: SourceKind, odd: Vec<OddRow>) {
        self.odd_rows += odd.len() as u64;
        let room = REPORT_ROWS_MAX - self.odd.len().min(REPORT_ROWS_MAX);
        let short = |text: String| text.chars().take(REASON_CHARS_MAX).collect();
        let named = odd.into_iter().take(room).map(|OddRow { row, mut text, reason }| {
            tracing::warn!(%source, row, reason, "a row is left out");
            text.truncate(text.floor_char_boundary(ODD_ROW_BYTES_MAX));
            OddRowReport { source, row: short(row), text, reason: short(reason) }
        });
        self.odd.extend(named);
    }

    /// Counts an issue that no source gave.
    pub(super) fn issue_failed(&mut self, code: IssueCode, reasons: Vec<Reason>) {
        self.issues_failed += 1;
        if self.issues.len() < REPORT_ISSUES_MAX {
            self.issues.push(IssueReport { code, reasons });
        }
    }

    /// The sum over all sources.
    #[must_use]
    pub fn rows_fetched(&self) -> u64 {
        self.sources.iter().map(|part| part.fetched).sum()
    }

    /// Days with each outcome.
    #[must_use]
    pub fn days_with(&self, outcome: DayOutcome) -> u64 {
        self.days.iter().filter(|day| day.outcome == outcome).count() as u64
    }

    /// The report as JSON, with a line end.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Only keys that are no texts could fail.
        serde_json::to_string_pretty(self).map(|text| text + "\n").unwrap_or_default()
    }

    /// Stores the report as the newest in `folder` and removes the oldest ones.
    pub(super) fn store(&mut self, folder: &Path) -> io::Result<PathBuf> {
        fs::create_dir_all(folder)?;
        let mut reports = stored(folder)?;
        self.number = next_number(&reports, folder)?;
        let path = folder.join(format!("{NAME_START}{}{NAME_END}", self.number));
        atomic_file::write(&path, self.to_json().as_bytes())?;
        reports.insert(self.number, path.clone());
        let too_many = reports.len().saturating_sub(REPORTS_KEPT);
        // Where others have put files with such names, fewer of the job's own are removed.
        for (number, oldest) in reports.iter().take(too_many) {
            if is_report(oldest, *number) {
                fs::remove_file(oldest)?;
            }
        }
        Ok(path)
    }
}

impl SourceReport {
    fn new(source: SourceKind) -> Self {
        Self {
            source,
            state: SourceState::NotNeeded,
            reason: None,
            asked: 0,
            cached: 0,
            failed: 0,
            fetched: 0,
            inserted: 0,
            changed: 0,
            confirmed: 0,
            unchanged: 0,
            kept: 0,
            removed: 0,
        }
    }

    /// Adds what became of rows.
    pub(super) fn add(&mut self, applied: &Applied) {
        self.inserted += applied.inserted;
        self.changed += applied.changed;
        self.confirmed += applied.confirmed;
        self.unchanged += applied.unchanged;
        self.kept += applied.kept;
        self.removed += applied.removed;
    }
}

/// The number after that of the last report that a job has written, which no file has: files of others with such
/// names are passed over.
fn next_number(reports: &BTreeMap<u64, PathBuf>, folder: &Path) -> io::Result<u64> {
    let mut own = reports.iter().rev().filter(|(number, path)| is_report(path, **number));
    let last = own.next().map_or(0, |(number, _)| *number);
    let mut after = (last..u64::MAX).map(|number| number + 1);
    after.find(|number| !reports.contains_key(number)).ok_or_else(|| {
        let folder = folder.display();
        io::Error::other(format!(
            "no number is left after {NAME_START}{last}{NAME_END} in {folder}: move that report away"
        ))
    })
}

/// Whether a job has written a file as its report with a number.
fn is_report(path: &Path, number: u64) -> bool {
    let file = atomic_file::open_to_read(path).ok();
    let known = file.and_then(|file| {
        serde_json::from_reader::<_, Value>(BufReader::new(file.take(REPORT_BYTES_MAX))).ok()
    });
    known.is_some_and(|known| known["number"] == number && known["ending"].is_string())
}

fn stored(folder: &Path) -> io::Result<BTreeMap<u64, PathBuf>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_prefix(NAME_START)?.strip_suffix(NAME_END));
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            found.insert(number, path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_reports_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        for number in 1..=REPORTS_KEPT as u64 + 3 {
            let path = Report::new(String::new()).store(folder.path()).unwrap();
            assert!(path.ends_with(format!("report-{number}.json")));
        }
        let numbers: Vec<u64> = stored(folder.path()).unwrap().into_keys().collect();
        assert_eq!(numbers, (4..=REPORTS_KEPT as u64 + 3).collect::<Vec<_>>());
    }

    #[test]
    fn sources_stand_in_order_and_issues_are_limited() {
        let mut report = Report::new(String::new());
        for kind in
            [SourceKind::Public, SourceKind::Vendor, SourceKind::WebBroker, SourceKind::Vendor]
        {
            report.source(kind).asked += 1;
        }
        let found: Vec<_> = report.sources.iter().map(|part| (part.source, part.asked)).collect();
        assert_eq!(
            found,
            [(SourceKind::Vendor, 2), (SourceKind::WebBroker, 1), (SourceKind::Public, 1)]
        );
        for _ in 0..=REPORT_ISSUES_MAX {
            let reason = Reason::new(SourceKind::Vendor, &"x".repeat(REASON_CHARS_MAX + 1));
            assert_eq!(reason.reason.len(), REASON_CHARS_MAX);
            report.issue_failed("7203".parse().unwrap(), vec![reason]);
        }
        assert_eq!(report.issues.len(), REPORT_ISSUES_MAX);
        assert_eq!(report.issues_failed, REPORT_ISSUES_MAX as u64 + 1);
    }

    #[test]
    fn rows_are_named_as_far_as_there_is_room() {
        let mut report = Report::new(String::new());
        let odd = OddRow {
            row: "7203 on 2026-01-05".to_owned(),
            text: "あ".repeat(ODD_ROW_BYTES_MAX),
            reason: "x".repeat(REASON_CHARS_MAX + 1),
        };
        let values = vec![("close", Some(1.0), None)];
        let correction = Correction {
            date: "2026-01-05".parse().unwrap(),
            code: "7203".parse().unwrap(),
            before: None,
            taken_back: false,
            values,
        };
        for count in [REPORT_ROWS_MAX - 1, 2, 1] {
            report.left_out(SourceKind::Vendor, vec![odd.clone(); count]);
            report.corrected(SourceKind::Files, vec![correction.clone(); count * 100]);
        }
        assert_eq!(report.odd_rows, REPORT_ROWS_MAX as u64 + 2);
        assert_eq!(
            (report.odd.len(), report.corrections.len()),
            (REPORT_ROWS_MAX, REPORT_CORRECTIONS_MAX)
        );
        let named = &report.odd[0];
        // Three bytes each, and none is cut.
        assert_eq!(named.text, "あ".repeat(ODD_ROW_BYTES_MAX / 3));
        assert_eq!(named.reason.len(), REASON_CHARS_MAX);
        assert_eq!(report.corrections[0].source, SourceKind::Files);
    }
}
