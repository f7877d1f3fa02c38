//! Days from the vendor's files on disk (rule `files`).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use domain::JstDate;
use domain::market::BarGranularity;
use marketdata::calendar_file::read_rows;
use marketdata::{BarFile, Period};

use super::plan::weekdays;
use super::report::{DayOutcome, Reason, SourceState};
use super::{Job, Phase, UpdateError};
use crate::row::{DailyRow, SourceKind};
use crate::source::{Answer, FileRows, OddRow, read_daily_file};

/// Bytes of a file; one that is gone has none.
fn size(file: &BarFile) -> u64 {
    file.path.metadata().map_or(0, |data| data.len())
}

impl Job<'_> {
    /// Reads every file of daily bars that has wanted dates; of days whose month has a file, those that it
    /// does not have: the rule of [`marketdata::TradeStore::is_in_month_file`].
    pub(super) fn read_files(&mut self, folder: &Path) -> Result<(), UpdateError> {
        let mut files = BarFile::list(folder, BarGranularity::Day)
            .map_err(|error| UpdateError::Files(error.to_string()))?;
        let calendar = read_rows(folder).map_err(|error| UpdateError::Files(error.to_string()))?;
        let (from, to) = (self.first_of_files(), self.options.to);
        files.retain(|file| file.period.first() <= to && from <= file.period.last());
        if files.is_empty() {
            let dates = self.report.from.map_or(String::new(), |from| format!(" from {from}"));
            return Err(UpdateError::Files(format!(
                "no file of daily bars{dates} up to {to} in {}; looked for \
                 equities_bars_daily_YYYYMM.csv.gz and equities_bars_daily_YYYYMMDD.csv.gz",
                folder.display()
            )));
        }
        self.take_calendar(&calendar.unwrap_or_default())?;
        let of: u64 = files.iter().map(size).sum();
        let (mut done, mut not_read) = (0, Vec::new());
        self.report.source(SourceKind::Files).state = SourceState::Asked;
        let is_month = |file: &&BarFile| matches!(file.period, Period::Month { .. });
        // The days of the month read last: it comes before the files of its days.
        let mut of_month = BTreeSet::new();
        for file in &files {
            if is_month(&file) {
                of_month = self.read_file(file, &files, (done, of))?;
            } else if of_month.contains(&file.period.first()) {
                not_read.push(file);
            } else {
                self.read_file(file, &[], (done, of))?;
            }
            done += size(file);
        }
        self.tell_not_read(&not_read);
        self.note_missing_days();
        self.watch.progress(Phase::Files, of, of, "");
        Ok(())
    }

    /// Of days that are due in the span that the user has named, and of those that are accepted, nobody has anything,
    /// where no file has a row.
    fn note_missing_days(&mut self) {
        if !self.options.codes.is_empty() {
            return;
        }
        let mut named: BTreeSet<JstDate> = self.options.accept.iter().copied().collect();
        let from = self.options.from.into_iter();
        named.extend(from.flat_map(|from| weekdays(from, self.options.to)));
        for date in named {
            let is_there = self.state.is_published(date) || self.days.contains_key(&date);
            if !is_there && !self.cut_short && self.is_due(date) {
                self.day(date).outcome = Some(DayOutcome::NoData);
            }
        }
    }

    /// Names files of days that the file of their month has.
    fn tell_not_read(&mut self, files: &[&BarFile]) {
        let [one, ..] = files else { return };
        let name = one.path.file_name().unwrap_or_default().display().to_string();
        let more = match files.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        self.note(format!("not read, because the file of its month has the day: {name}{more}"));
    }

    /// Reads a file, unless the user wants the run to end, and tells which days it gave. So many bytes are
    /// done; other files are there beside it.
    fn read_file(
        &mut self,
        file: &BarFile,
        beside: &[BarFile],
        (done, of): (u64, u64),
    ) -> Result<BTreeSet<JstDate>, UpdateError> {
        let from = self.first_of_files();
        if self.cancel.is_cancelled() {
            self.cut_short = true;
            return Ok(BTreeSet::new());
        }
        let (watch, cancel) = (&mut *self.watch, self.cancel);
        let read = read_daily_file(file, from, self.options.to, &mut |progress| {
            let what = file.period.to_string();
            watch.progress(Phase::Files, done + progress.compressed_bytes, of, &what);
            if cancel.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if self.cancel.is_cancelled() {
            self.cut_short = true;
            return Ok(BTreeSet::new());
        }
        self.report.source(SourceKind::Files).asked += 1;
        let mut dates = BTreeSet::new();
        match read {
            Ok(mut found) => {
                dates.extend(&found.dates);
                let is_taken = |date: &JstDate| self.is_taken_from_files(*date);
                found.rows.retain(|row| is_taken(&row.date));
                found.odd.retain(|(date, _)| date.as_ref().is_none_or(is_taken));
                found.refused.retain(|date, _| is_taken(date));
                self.take_file(found)?;
            }
            Err(what) => self.file_failed(file, beside, &what),
        }
        self.flush()?;
        Ok(dates)
    }

    /// The first date that is looked for in files: all that they have unless the user wants less.
    fn first_of_files(&self) -> JstDate {
        let from = self.options.from.unwrap_or(JstDate::MIN);
        self.options.accept.iter().copied().fold(from, JstDate::min)
    }

    /// Whether a day is taken from files: days that are accepted are, however long ago they were.
    fn is_taken_from_files(&self, date: JstDate) -> bool {
        self.options.from.is_none_or(|from| date >= from) || self.is_named(date)
    }

    fn take_file(&mut self, found: FileRows) -> Result<(), UpdateError> {
        let FileRows { mut rows, odd, refused, .. } = found;
        self.leave_closed_out(&mut rows);
        let mut odd_of: BTreeMap<Option<JstDate>, Vec<OddRow>> = BTreeMap::new();
        for (date, row) in odd {
            odd_of.entry(date).or_default().push(row);
        }
        // The rows are by date.
        for day in rows.chunk_by(|one, next| one.date == next.date) {
            let date = day[0].date;
            if !self.options.codes.is_empty() {
                let codes = &self.options.codes;
                let rows = day.iter().filter(|row| codes.contains(&row.code)).copied();
                let rows: Vec<DailyRow> = rows.collect();
                self.collect_named(SourceKind::Files, date, &rows)?;
                continue;
            }
            let odd = odd_of.remove(&Some(date)).unwrap_or_default();
            let mut answer = Answer { rows: day.to_vec(), odd, cached: true };
            self.leave_far_rows_out(date, &mut answer)?;
            let verdict = self.judge(None, date, &answer.rows, true)?;
            self.take_day(SourceKind::Files, date, answer, verdict)?;
        }
        self.report.left_out(SourceKind::Files, odd_of.into_values().flatten().collect());
        for (date, what) in refused {
            self.failed(date, &what);
        }
        Ok(())
    }

    /// Leaves rows of closed days out, by name.
    fn leave_closed_out(&mut self, rows: &mut Vec<DailyRow>) {
        let mut closed = Vec::new();
        for day in rows.chunk_by(|one, next| one.date == next.date) {
            let (date, first) = (day[0].date, day[0].code);
            if !self.takes(date) {
                closed.push(OddRow {
                    row: format!("{first} on {date}, and {} more of the day", day.len() - 1),
                    text: String::new(),
                    reason: "the exchange is closed on this day".to_owned(),
                });
            }
        }
        rows.retain(|row| self.takes(row.date));
        self.report.left_out(SourceKind::Files, closed);
    }

    /// Whether rows of a day are taken: of a business day, and of one that the user accepts.
    fn takes(&self, date: JstDate) -> bool {
        self.is_business_day(date) || self.is_named(date)
    }

    /// A day of the files cannot be used.
    fn failed(&mut self, date: JstDate, what: &str) {
        let part = self.report.source(SourceKind::Files);
        part.failed += 1;
        part.reason.get_or_insert_with(|| what.to_owned());
        let day = self.day(date);
        day.outcome = Some(DayOutcome::Failed);
        day.reasons.push(Reason::new(SourceKind::Files, what));
    }

    /// A file cannot be used: told of its first day that no file of a day has.
    fn file_failed(&mut self, file: &BarFile, beside: &[BarFile], what: &str) {
        let begin = match file.period {
            Period::Day(date) => date,
            Period::Month { .. } => file.period.first().max(self.first_of_files()),
        };
        let has_file = |date| beside.iter().any(|day| day.period == Period::Day(date));
        let mut days = begin.iter_days().take_while(|date| file.period.contains(*date));
        let first = days.find(|date| self.is_open(*date) && !has_file(*date)).unwrap_or(begin);
        self.failed(first, what);
        self.note(format!("a file is left out: {what}"));
    }
}
