//! Days from the vendor's files on disk.

use std::ops::ControlFlow;
use std::path::Path;

use domain::JstDate;
use domain::market::BarGranularity;
use marketdata::calendar_file::read_rows;
use marketdata::{BarFile, Period};

use super::report::{DayOutcome, Reason, SourceState};
use super::rules::is_open;
use super::{Job, Phase, UpdateError};
use crate::row::{DailyRow, SourceKind};
use crate::source::{FileRows, OddRow, read_daily_file};

impl Job<'_> {
    /// Reads every file of daily bars that has wanted dates.
    pub(super) fn read_files(&mut self, folder: &Path) -> Result<(), UpdateError> {
        let files = BarFile::list(folder, BarGranularity::Day)
            .map_err(|error| UpdateError::Files(error.to_string()))?;
        let calendar = read_rows(folder).map_err(|error| UpdateError::Files(error.to_string()))?;
        let (from, to) = (self.first_of_files(), self.options.to);
        let files: Vec<BarFile> = files
            .into_iter()
            .filter(|file| file.period.first() <= to && from <= file.period.last())
            .collect();
        if files.is_empty() {
            let dates = self.report.from.map_or(String::new(), |from| format!(" from {from}"));
            return Err(UpdateError::Files(format!(
                "no file of daily bars{dates} up to {to} in {}; looked for \
                 equities_bars_daily_YYYYMM.csv.gz and equities_bars_daily_YYYYMMDD.csv.gz",
                folder.display()
            )));
        }
        self.take_calendar(&calendar.unwrap_or_default())?;
        let size = |file: &BarFile| file.path.metadata().map_or(0, |data| data.len());
        let of: u64 = files.iter().map(size).sum();
        let mut done = 0;
        self.report.source(SourceKind::Files).state = SourceState::Asked;
        for file in &files {
            if self.cancel.is_cancelled() {
                self.cut_short = true;
                break;
            }
            self.read_file(file, done, of)?;
            done += size(file);
        }
        self.watch.progress(Phase::Files, of, of, "");
        Ok(())
    }

    fn read_file(&mut self, file: &BarFile, done: u64, of: u64) -> Result<(), UpdateError> {
        let from = self.first_of_files();
        let (watch, cancel) = (&mut *self.watch, self.cancel);
        let read = read_daily_file(file, from, self.options.to, &mut |progress| {
            let what = file.period.to_string();
            watch.progress(Phase::Files, done + progress.compressed_bytes, of, &what);
            if cancel.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if self.cancel.is_cancelled() {
            self.cut_short = true;
            return Ok(());
        }
        self.report.source(SourceKind::Files).asked += 1;
        match read {
            Ok(found) => self.take_file(found),
            Err(what) => self.file_failed(file, &what),
        }
        self.flush()
    }

    /// The first date that is taken from files: all that they have unless the user wants less.
    fn first_of_files(&self) -> JstDate {
        self.options.from.unwrap_or(JstDate::MIN)
    }

    fn take_file(&mut self, found: FileRows) {
        let FileRows { mut rows, mut dates, odd, refused } = found;
        self.leave_closed_out(&mut rows);
        dates.retain(|date| self.is_open(*date));
        let codes = &self.options.codes;
        if !codes.is_empty() {
            rows.retain(|row| codes.contains(&row.code));
        }
        let (short, odd): (Vec<Option<JstDate>>, Vec<OddRow>) = odd.into_iter().unzip();
        // The rows are by date.
        for day in rows.chunk_by(|one, next| one.date == next.date) {
            let date = day[0].date;
            if self.options.codes.is_empty() && self.is_complete(None, date, day) {
                self.batch.days.push((date, !short.contains(&Some(date))));
            }
        }
        for date in dates {
            self.day(date).outcome = Some(DayOutcome::Fetched);
        }
        self.report.left_out(SourceKind::Files, odd);
        for (date, what) in refused {
            self.failed(date, &what);
        }
        self.collect(SourceKind::Files, rows);
    }

    /// Leaves rows of closed days out (rule F1), by name.
    fn leave_closed_out(&mut self, rows: &mut Vec<DailyRow>) {
        let mut closed = Vec::new();
        for day in rows.chunk_by(|one, next| one.date == next.date) {
            let (date, first) = (day[0].date, day[0].code);
            if !self.is_open(date) {
                closed.push(OddRow {
                    row: format!("{first} on {date}, and {} more of the day", day.len() - 1),
                    text: String::new(),
                    reason: "the exchange is closed on this day".to_owned(),
                });
            }
        }
        rows.retain(|row| is_open(&self.calendar, row.date));
        self.report.left_out(SourceKind::Files, closed);
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

    fn file_failed(&mut self, file: &BarFile, what: &str) {
        let first = match file.period {
            Period::Day(date) => date,
            Period::Month { .. } => file.period.first().max(self.first_of_files()),
        };
        self.failed(first, what);
        self.note(format!("a file is left out: {what}"));
    }
}
