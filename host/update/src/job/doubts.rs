//! Days that are published and look short beside others: told with each run, because nobody asks for them
//! again by itself (rules S1 to S3 of the job).

use std::collections::BTreeMap;

use domain::{JstDate, holidays};

use super::Job;
use super::plan::{last_weekdays, weekdays};
use super::report::{DoubtKind, DoubtReport};
use super::rules::{NotDue, days_between, is_enough};
use crate::limits::{
    BETTER_DAYS_MAX, CLOSED_ROW_MIN, COMPLETE_DAYS_COMPARED, DAYS_AFTER_COMPARED, REPORT_ROWS_MAX,
    SUNK_PERCENT,
};

const SHORT: &str = "it may have come short; ask for it again with --days and --refetch";
const SHRUNK: &str =
    "where not so many issues were delisted then, ask for it again with --days and --refetch";

const SUNK: &str =
    "rows were lost day by day; where not so many issues were delisted, ask the vendor";

/// A day that looks short: its rows, and those of the longest day that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Short {
    kind: DoubtKind,
    rows: u64,
    of: u64,
}

/// The complete days that look short, by the rows of all; those that shrank from a date on.
fn short_days(complete: &[(JstDate, u64)], shrunk_from: JstDate) -> BTreeMap<JstDate, Short> {
    let mut found = BTreeMap::new();
    let (mut is_first, mut was_shorter) = (true, false);
    for (place, (date, rows)) in complete.iter().copied().enumerate() {
        let longest = |days: &[(JstDate, u64)]| {
            let longer =
                days.iter().filter(|(day, of)| !is_enough(rows, *of, days_between(date, *day)));
            longer.map(|(_, of)| *of).max()
        };
        let before = longest(&complete[place.saturating_sub(DAYS_AFTER_COMPARED)..place]);
        let last = complete.len().min(place + 1 + DAYS_AFTER_COMPARED);
        let after = longest(&complete[place + 1..last]);
        is_first &= after.is_some();
        let (kind, of) = match (before, after) {
            (_, Some(of)) if is_first => (DoubtKind::Short, of),
            (Some(one), Some(other)) => (DoubtKind::Short, one.min(other)),
            // Of days that stay so, the first is told.
            (Some(of), None) if !was_shorter && date >= shrunk_from => (DoubtKind::Shrunk, of),
            _ => {
                was_shorter = before.is_some();
                continue;
            }
        };
        was_shorter = before.is_some();
        found.insert(date, Short { kind, rows, of });
    }
    found
}

/// The last complete day, where it has sunk, and the most rows of the days before it.
fn sunk_day(complete: &[(JstDate, u64)]) -> Option<(JstDate, Short)> {
    let ((date, rows), before) = complete.split_last()?;
    let before = &before[before.len().saturating_sub(COMPLETE_DAYS_COMPARED)..];
    let of = before.iter().map(|(_, of)| *of).max()?;
    let short = Short { kind: DoubtKind::Sunk, rows: *rows, of };
    (*rows * 100 < of * SUNK_PERCENT).then_some((*date, short))
}

const CLOSED_ALONE: &str = "it counts as closed, and of the last 20 weekdays it is asked for; where the exchange was open, ask the vendor, and \
                            where it was closed, say so with --accept and the date";

impl Job<'_> {
    /// The days that the vendor's calendar alone has closed, and of which there are no rows (rule D9).
    pub(super) fn days_closed_by_the_vendor(&self) -> Vec<JstDate> {
        let back = last_weekdays(self.options.to, BETTER_DAYS_MAX).first().copied();
        let published = self.published_range().map(|(first, _)| first);
        // The law's calendar begins there.
        let by_law = JstDate::from_ymd_opt(holidays::FIRST_YEAR, 1, 1);
        let from = [back, published, self.report.from].into_iter().flatten().min();
        let Some(from) = from.max(by_law) else { return Vec::new() };
        let mut days: Vec<JstDate> = weekdays(from, self.options.to).collect();
        days.retain(|date| {
            let is_closed = !holidays::is_closed(*date) && self.calendar.get(date) == Some(&false);
            is_closed && !self.known.dates.contains_key(date)
        });
        days
    }

    /// Notes these days (rules D9 and D10): without that nobody would see that they are missing.
    pub(super) fn tell_days_closed_by_the_vendor(&mut self) {
        let days = self.days_closed_by_the_vendor();
        let is_next = |day: &JstDate, date: &JstDate| {
            let between = weekdays(*day, *date).filter(|one| !holidays::is_closed(*one));
            between.count() == 2
        };
        for row in days.chunk_by(is_next) {
            // Whoever accepts one day of a row has looked at it.
            if row.iter().any(|date| self.accept(*date)) {
                self.state.settled.extend(row);
            }
            let mut row = row.to_vec();
            row.retain(|date| !self.state.settled.contains(date));
            self.tell_closed_row(&row);
        }
    }

    fn tell_closed_row(&mut self, row: &[JstDate]) {
        let is_gap = row.len() >= CLOSED_ROW_MIN;
        self.is_closed_in_a_row |= is_gap;
        let ends = row.first().zip(row.last()).filter(|_| is_gap);
        let more = ends.map_or(String::new(), |(first, last)| {
            format!("; that is a gap of {} business days in a row, {first} to {last}", row.len())
        });
        for date in row.iter().copied() {
            let what = format!(
                "the vendor's calendar says closed, and by Japan's holidays it is open{more}"
            );
            self.note(format!("of {date} {what}"));
            if self.report.doubts.len() < REPORT_ROWS_MAX {
                let (kind, advice) = (DoubtKind::Closed, CLOSED_ALONE.to_owned());
                self.report.doubts.push(DoubtReport { date, kind, what, advice });
            }
        }
    }

    /// Notes that days after the last complete one are over and outside of the subscription (rule D4): readers would
    /// take the last one for the newest.
    pub(super) fn tell_days_not_covered(&mut self) {
        let last = self.state.complete.last().copied();
        let due = self.due_days();
        let mut days = self.days.keys().filter(|date| {
            last.is_none_or(|last| **date > last) && due.check(**date) == Err(NotDue::NotCovered)
        });
        let (Some(date), more) = (days.next().copied(), days.count()) else { return };
        let Some((first, last)) = self.covered else { return };
        let more = if more > 0 { format!(", nor {more} after it") } else { String::new() };
        let what =
            format!("the vendor's subscription covers {first} to {last} and not this day{more}");
        let advice = "nobody is asked for it; look at the dates of the subscription".to_owned();
        self.report.doubts.push(DoubtReport { date, kind: DoubtKind::NotCovered, what, advice });
    }

    /// Notes the days that look short for the report.
    pub(super) fn tell_short_days(&mut self, stored: &BTreeMap<JstDate, u64>) {
        let complete = self.state.complete.iter();
        let complete: Vec<(JstDate, u64)> =
            complete.filter_map(|date| Some((*date, *stored.get(date)?))).collect();
        let mut found = short_days(&complete, self.last_weeks_begin());
        if let Some((date, short)) = sunk_day(&complete) {
            tracing::warn!(
                "{date} is published with {} rows, and one of the {COMPLETE_DAYS_COMPARED} complete days \
                 before it has {}",
                short.rows,
                short.of
            );
            found.entry(date).or_insert(short);
        }
        // Whoever accepts a day has looked at it.
        found.retain(|date, short| short.kind == DoubtKind::Sunk || !self.accept_for_good(*date));
        let doubts = found.into_iter().map(|(date, short)| {
            let Short { kind, rows, of } = short;
            let (beside, advice) = match kind {
                DoubtKind::Shrunk => ("before it", SHRUNK),
                DoubtKind::Sunk => ("of the last 20 before it", SUNK),
                _ => ("beside it", SHORT),
            };
            let what =
                format!("it is published with {rows} rows, and complete days {beside} have {of}");
            DoubtReport { date, kind, what, advice: advice.to_owned() }
        });
        let room = REPORT_ROWS_MAX.saturating_sub(self.report.doubts.len());
        self.report.doubts.extend(doubts.take(room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_short_beside_others() {
        let first: JstDate = "2026-01-05".parse().unwrap();
        let check = |rows: &[u64]| -> String {
            let days: Vec<_> = first.iter_days().zip(rows.iter().copied()).collect();
            let found = short_days(&days, first);
            let found = days.iter().map(|(day, _)| match found.get(day).map(|short| short.kind) {
                Some(DoubtKind::Short) => 's',
                Some(_) => 'k',
                None => '.',
            });
            found.collect()
        };
        // S1: first days, and a dip.
        assert_eq!(check(&[32, 40, 100, 100]), "ss..");
        assert_eq!(check(&[100, 99, 100, 98, 100]), "...s.");
        assert_eq!(check(&[100, 90, 90, 90, 90, 90, 90, 100]), ".kssss..");
        // S2: once.
        assert_eq!(check(&[100, 95, 95, 95, 95]), ".k...");
        assert_eq!(check(&[100, 99, 98, 97]), "..k.");
        assert_eq!(check(&[100]), ".");
        let days: Vec<_> = first.iter_days().zip([100, 95, 95]).collect();
        assert!(short_days(&days, days[2].0).is_empty(), "an old step is told no more");
        // S3: of the last 20 alone.
        assert_eq!(sunk_day(&days), None);
        let sunk = |rows: Vec<u64>| {
            let days: Vec<_> = first.iter_days().zip(rows).collect();
            sunk_day(&days).map(|(_, short)| (short.rows, short.of))
        };
        let sinking: Vec<u64> = (94..=100).rev().collect();
        assert_eq!(sunk(sinking.clone()), Some((94, 100)));
        assert_eq!(sunk([sinking, vec![94; 20]].concat()), None);
        assert_eq!(sunk(vec![100]), None);
    }
}
