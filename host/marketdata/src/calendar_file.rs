//! The exchange's own calendar as a data folder keeps it: `markets_calendar.csv`, as the vendor tells it.
//!
//! The vendor's sources disagree on what its division 0 and 1 mean, so the data decides: what most
//! weekdays have is "open". Half days (2) are open; holidays with trading of derivatives (3) are closed.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use domain::session::is_weekday;
use domain::{ExchangeCalendar, JstDate};

use crate::instruments::{TableError, read_text};

/// Its name in a data folder.
pub const CALENDAR_FILE: &str = "markets_calendar.csv";
const COLUMNS: [&str; 2] = ["Date", "HolDiv"];
const HALF_DAY: &str = "2";

/// Dates with the vendor's division of each.
pub type CalendarRows = BTreeMap<JstDate, String>;

/// The rows of a data folder's calendar; none where it has none.
///
/// # Errors
/// [`TableError`]: it cannot be read, or a row is wrong.
pub fn read_rows(folder: &Path) -> Result<Option<CalendarRows>, TableError> {
    let path = folder.join(CALENDAR_FILE);
    let Some(bytes) = read_text(&path)? else { return Ok(None) };
    let wrong = |line, problem: String| TableError::Line { path: path.clone(), line, problem };
    let mut reader = csv::Reader::from_reader(&*bytes);
    let header = reader.headers().map_err(|error| wrong(1, error.to_string()))?.clone();
    if !header.iter().take(2).eq(COLUMNS) {
        return Err(wrong(1, format!("the columns must be {}", COLUMNS.join(","))));
    }
    let mut rows = CalendarRows::new();
    for record in reader.records() {
        let record = record.map_err(|error| {
            wrong(error.position().map_or(0, csv::Position::line), error.to_string())
        })?;
        let line = record.position().map_or(0, csv::Position::line);
        let (date, division) = (&record[0], &record[1]);
        let date: JstDate =
            date.parse().map_err(|_| wrong(line, format!("Date: `{date}` is no date")))?;
        if !matches!(division, "0" | "1" | "2" | "3") {
            return Err(wrong(line, format!("HolDiv: `{division}` is not 0, 1, 2 or 3")));
        }
        if rows.insert(date, division.to_owned()).is_some() {
            return Err(wrong(line, format!("Date: {date} comes twice")));
        }
    }
    Ok(Some(rows))
}

/// Writes a data folder's calendar, in the place of the one that is there.
///
/// # Errors
/// [`TableError::File`].
pub fn write_rows(folder: &Path, rows: &CalendarRows) -> Result<(), TableError> {
    let path = folder.join(CALENDAR_FILE);
    let mut text = format!("{}\n", COLUMNS.join(","));
    for (date, division) in rows {
        text.push_str(&format!("{date},{division}\n"));
    }
    let failed = |source: io::Error| TableError::File { path: path.clone(), source };
    atomic_file::write(&path, text.as_bytes()).map_err(failed)
}

/// The business days that such rows tell.
///
/// # Errors
/// Why they tell none, in words.
pub fn calendar_of(rows: &CalendarRows) -> Result<ExchangeCalendar, String> {
    let mut weekdays: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, division) in rows.iter().filter(|(date, _)| is_weekday(**date)) {
        *weekdays.entry(division).or_default() += 1;
    }
    let open = weekdays.iter().max_by_key(|(_, count)| **count).map(|(division, _)| *division);
    let open = open.ok_or("the calendar has no weekday")?;
    let is_open = |division: &str| division == open || division == HALF_DAY;
    ExchangeCalendar::listed(rows.iter().map(|(date, division)| (*date, is_open(division))))
        .map_err(|error| error.to_string())
}

/// The calendar of a data folder; by rule where it has none.
///
/// # Errors
/// [`TableError`]: its calendar cannot be used.
pub fn read_calendar(folder: &Path) -> Result<ExchangeCalendar, TableError> {
    let Some(rows) = read_rows(folder)? else { return Ok(ExchangeCalendar::default()) };
    let path = folder.join(CALENDAR_FILE);
    calendar_of(&rows).map_err(|problem| TableError::Line { path, line: 0, problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> JstDate {
        text.parse().unwrap()
    }

    /// January 2025 with these divisions for open and closed days, and one half day.
    fn january(open: &str, closed: &str) -> CalendarRows {
        let rule = ExchangeCalendar::default();
        let days = date("2025-01-01").iter_days().take(31);
        let row = |day: JstDate| {
            let division = match day.to_string().as_str() {
                "2025-01-30" => "2",
                "2025-01-13" => "3",
                _ if rule.is_business_day(day) => open,
                _ => closed,
            };
            (day, division.to_owned())
        };
        days.map(row).collect()
    }

    #[test]
    fn most_weekdays_say_which_division_is_open() {
        for (open, closed) in [("1", "0"), ("0", "1")] {
            let folder = tempfile::tempdir().unwrap();
            assert_eq!(read_calendar(folder.path()).unwrap(), ExchangeCalendar::default());
            write_rows(folder.path(), &january(open, closed)).unwrap();
            let calendar = read_calendar(folder.path()).unwrap();
            assert_eq!(calendar.listed_range(), Some((date("2025-01-01"), date("2025-01-31"))));
            assert!(calendar.is_business_day(date("2025-01-06")));
            assert!(calendar.is_business_day(date("2025-01-30")), "a half day");
            assert!(!calendar.is_business_day(date("2025-01-13")), "derivatives only");
            assert!(!calendar.is_business_day(date("2025-01-03")));
        }
    }

    #[test]
    fn a_damaged_calendar_says_what_is_wrong() {
        let message = |text: &str| {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join(CALENDAR_FILE), text).unwrap();
            read_calendar(folder.path()).unwrap_err().to_string()
        };
        assert!(
            message("Date,HolDiv\n2025-01-06,x\n")
                .ends_with("line 2: HolDiv: `x` is not 0, 1, 2 or 3")
        );
        assert!(message("Date,HolDiv\n2025-01-06,1\n2025-01-06,1\n").contains("comes twice"));
        assert!(
            message("Date,HolDiv\n2025-01-06,1\n2025-01-08,1\n").contains("no row of 2025-01-07")
        );
        assert!(message("Day,Open\n").contains("the columns must be Date,HolDiv"));
        assert!(message("Date,HolDiv\n").contains("no weekday"));
    }
}
