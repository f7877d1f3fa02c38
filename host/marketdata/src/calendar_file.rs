//! The exchange's own calendar as a data folder keeps it: `markets_calendar.csv`, as the vendor tells it.
//!
//! The vendor's sources disagree on what its division 0 and 1 mean, so the data decides: what most
//! weekdays have is "open". Half days (2) are open; holidays with trading of derivatives (3) are closed.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use domain::session::is_weekday;
use domain::{ExchangeCalendar, JstDate, holidays};

use crate::instruments::{TableError, read_text};

/// Its name in a data folder.
pub const CALENDAR_FILE: &str = "markets_calendar.csv";
const COLUMNS: [&str; 2] = ["Date", "HolDiv"];
const HALF_DAY: &str = "2";
/// What to do about a calendar that cannot be used.
const ADVICE: &str =
    "remove the file and fetch it again with `kumiki data calendar`, or correct it";
/// Characters of a wrong text that a message shows.
const SHOWN_CHARS: usize = 60;

/// Dates with the vendor's division of each.
pub type CalendarRows = BTreeMap<JstDate, String>;

/// The rows of a data folder's calendar; none where it has none.
///
/// # Errors
/// [`TableError`]: it cannot be read, or a row is wrong.
pub fn read_rows(folder: &Path) -> Result<Option<CalendarRows>, TableError> {
    let rows = read_lines(folder)?;
    Ok(rows.map(|rows| rows.into_iter().map(|(date, row)| (date, row.division)).collect()))
}

/// A row of the file.
struct Row {
    division: String,
    /// Its line, from 1.
    line: u64,
}

type Rows = BTreeMap<JstDate, Row>;

fn read_lines(folder: &Path) -> Result<Option<Rows>, TableError> {
    let path = folder.join(CALENDAR_FILE);
    let Some(bytes) = read_text(&path)? else { return Ok(None) };
    let parsed = parse(&bytes).and_then(|rows| check_no_gap(&rows).map(|()| rows));
    let advised = |problem| format!("{problem}; {ADVICE}");
    parsed.map(Some).map_err(|(line, problem)| TableError::Line {
        path,
        line,
        problem: advised(problem),
    })
}

/// A line and what is wrong with it.
type Wrong = (u64, String);

/// Reads lines of text; every one has an end, so that a file that was cut off is known.
fn parse(bytes: &[u8]) -> Result<Rows, Wrong> {
    // A spreadsheet may put a mark of its encoding in front.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut columns = 0;
    let mut rows = Rows::new();
    for (line, text) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
        let text =
            std::str::from_utf8(text).map_err(|_| (line, "it is not UTF-8 text".to_owned()))?;
        let Some(text) = text.strip_suffix('\n') else {
            let problem = format!("the file ends inside the line, after `{}`", shown(text));
            return Err((line, problem));
        };
        let text = text.strip_suffix('\r').unwrap_or(text);
        let cells: Vec<&str> = text.split(',').map(|cell| cell.trim().trim_matches('"')).collect();
        if line == 1 {
            if !cells.iter().take(2).eq(COLUMNS.iter()) {
                let problem =
                    format!("the columns must be {}, found `{}`", COLUMNS.join(","), shown(text));
                return Err((1, problem));
            }
            columns = cells.len();
            continue;
        }
        if cells.len() != columns {
            let problem =
                format!("found {} cells, expected {columns}: `{}`", cells.len(), shown(text));
            return Err((line, problem));
        }
        let (date, division) = row_of(cells[0], cells[1]).map_err(|problem| (line, problem))?;
        if let Some(before) = rows.insert(date, Row { division, line }) {
            return Err((line, format!("Date: {date} is already in line {}", before.line)));
        }
    }
    if columns == 0 {
        return Err((1, format!("the file is empty; it must begin with {}", COLUMNS.join(","))));
    }
    if rows.is_empty() {
        return Err((1, "there are no rows below the header line".to_owned()));
    }
    Ok(rows)
}

fn row_of(date: &str, division: &str) -> Result<(JstDate, String), String> {
    let parsed = date.parse::<JstDate>().ok();
    // Another spelling may be a date that was cut off.
    let Some(day) = parsed.filter(|day| day.to_string() == date) else {
        return Err(format!("Date: `{}` is not a date; write one like 2025-01-06", shown(date)));
    };
    if !matches!(division, "0" | "1" | "2" | "3") {
        return Err(format!("HolDiv: `{}` is not 0, 1, 2 or 3", shown(division)));
    }
    Ok((day, division.to_owned()))
}

/// What a message shows of a text.
fn shown(text: &str) -> String {
    text.chars().take(SHOWN_CHARS).collect()
}

fn check_no_gap(rows: &Rows) -> Result<(), Wrong> {
    let Some((first, _)) = rows.first_key_value() else { return Ok(()) };
    match first.iter_days().zip(rows).find(|(expected, (date, _))| expected != *date) {
        Some((expected, (date, row))) => {
            Err((row.line, format!("Date: found {date}, expected a row of {expected} before it")))
        }
        None => Ok(()),
    }
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
    let open = open.ok_or("the calendar has no weekdays")?;
    let is_open = |division: &str| division == open || division == HALF_DAY;
    // A few days around a year's turn have more closed ones than open ones.
    let all: usize = weekdays.values().sum();
    let as_by_law = |(date, division): &(&JstDate, &String)| {
        is_weekday(**date) && is_open(division) != holidays::is_closed(**date)
    };
    let agreed = rows.iter().filter(as_by_law).count();
    if agreed * 4 < all * 3 {
        return Err(format!(
            "most weekdays have HolDiv {open}, but as open days {} of {all} weekdays would \
             contradict Japan's holidays: there are too few days to tell",
            all - agreed
        ));
    }
    ExchangeCalendar::listed(rows.iter().map(|(date, division)| (*date, is_open(division))))
        .map_err(|error| error.to_string())
}

/// The calendar of a data folder; by rule where it has none.
///
/// # Errors
/// [`TableError`]: its calendar cannot be used.
pub fn read_calendar(folder: &Path) -> Result<ExchangeCalendar, TableError> {
    let Some(rows) = read_rows(folder)? else { return Ok(ExchangeCalendar::default()) };
    calendar_of(&rows).map_err(|problem| TableError::Content {
        path: folder.join(CALENDAR_FILE),
        problem: format!("{problem}; {ADVICE}"),
    })
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

    #[track_caller]
    fn check(text: &[u8], wanted: &str) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(CALENDAR_FILE);
        std::fs::write(&path, text).unwrap();
        let message = read_calendar(folder.path()).unwrap_err().to_string();
        assert_eq!(message, format!("{}{wanted}; {ADVICE}", path.display()));
    }

    #[test]
    fn a_damaged_calendar_says_where_what_and_what_to_do() {
        let day = "Date,HolDiv\n2025-01-06,1\n";
        let check = |rows: &str, wanted: &str| check(format!("{day}{rows}").as_bytes(), wanted);
        check("2025-01-07,x\n", ", line 3: HolDiv: `x` is not 0, 1, 2 or 3");
        check("2025-01-07,\n", ", line 3: HolDiv: `` is not 0, 1, 2 or 3");
        check(
            "01/07/2025,1\n",
            ", line 3: Date: `01/07/2025` is not a date; write one like 2025-01-06",
        );
        check(
            "2025-1-7,1\n",
            ", line 3: Date: `2025-1-7` is not a date; write one like 2025-01-06",
        );
        check("2025-01-06,1\n", ", line 3: Date: 2025-01-06 is already in line 2");
        check(
            "2025-01-08,1\n",
            ", line 3: Date: found 2025-01-08, expected a row of 2025-01-07 before it",
        );
        check("2025-01-07\n", ", line 3: found 1 cells, expected 2: `2025-01-07`");
        check("2025-01-07,1,1\n", ", line 3: found 3 cells, expected 2: `2025-01-07,1,1`");
        check("\n", ", line 3: found 1 cells, expected 2: ``");
        check("2025-01-0", ", line 3: the file ends inside the line, after `2025-01-0`");
        check("2025-01-07,1", ", line 3: the file ends inside the line, after `2025-01-07,1`");
    }

    #[test]
    fn a_file_that_is_no_calendar_is_none() {
        check(b"", ", line 1: the file is empty; it must begin with Date,HolDiv");
        check(b"Day,Open\n", ", line 1: the columns must be Date,HolDiv, found `Day,Open`");
        check(b"Date,HolDiv\n", ", line 1: there are no rows below the header line");
        check(b"Date,HolDiv\n2025-01-11,0\n", ": the calendar has no weekdays");
        check(b"Date,HolDiv\n\xff\n", ", line 2: it is not UTF-8 text");
        check(
            b"Date,HolDiv\n2025-01-10,1\n2025-01-11,1\n",
            ": the calendar says that the exchange is open on 2025-01-11, a weekend day",
        );
        // Two of these five days are open.
        let turn =
            b"Date,HolDiv\n2025-12-29,1\n2025-12-30,1\n2025-12-31,0\n2026-01-01,0\n2026-01-02,0\n";
        check(
            turn,
            ": most weekdays have HolDiv 0, but as open days 5 of 5 weekdays would contradict \
             Japan's holidays: there are too few days to tell",
        );
    }

    #[test]
    fn a_spreadsheet_s_spelling_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let text = "\u{feff}Date,HolDiv\r\n\"2025-01-07\",1\r\n2025-01-06, 1\r\n";
        std::fs::write(folder.path().join(CALENDAR_FILE), text).unwrap();
        let calendar = read_calendar(folder.path()).unwrap();
        assert_eq!(calendar.listed_range(), Some((date("2025-01-06"), date("2025-01-07"))));
    }
}
