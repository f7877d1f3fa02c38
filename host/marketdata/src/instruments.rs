//! The instrument table `instruments.csv` of a data folder: lot and tick table of each issue by date, made
//! from the vendor's listed-issue masters and open to be edited by hand.
//!
//! How an edited row is known: a row that was made ends with a checksum of its own cells. A row without
//! one, or whose cells do not fit it, was edited by hand; a refresh keeps it and lets nothing overlap it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use domain::csv_cell::{guarded, unguarded};
use domain::{JstDate, Price, Quantity, TickTable, VendorCode};
use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64;

use crate::limits::{INSTRUMENT_ROWS_MAX, TABLE_BYTES_MAX};
use crate::master::Master;

/// Its name in a data folder.
pub const INSTRUMENTS_FILE: &str = "instruments.csv";

const COLUMNS: [&str; 8] = ["code", "name", "market", "lot", "ticks", "from", "to", "made"];
/// A day from which on the exchange's rule gives some issues other price steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepChange {
    year: i32,
    month: u32,
    day: u32,
}

impl StepChange {
    /// The first day of the new rule.
    #[must_use]
    pub fn date(self) -> JstDate {
        JstDate::from_ymd_opt(self.year, self.month, self.day).unwrap_or_default()
    }
}

/// TOPIX100 has the steps of today's table `topix500` since the first of these days, all of TOPIX500 since the
/// second.
pub const STEP_CHANGES: [StepChange; 2] =
    [StepChange { year: 2015, month: 9, day: 24 }, StepChange { year: 2023, month: 6, day: 5 }];

/// An issue from one date to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstrumentRow {
    /// The vendor's code.
    pub code: VendorCode,
    /// Its name, for people.
    pub name: String,
    /// The market's code, as the vendor writes it: `0111` prime, `0112` standard, `0113` growth, others.
    pub market: String,
    /// Shares in a trading unit; empty where the master does not tell.
    pub lot: Option<Quantity>,
    /// Price steps; empty where the master does not tell.
    pub ticks: Option<TickTable>,
    /// First date; empty for always.
    pub from: Option<JstDate>,
    /// Last date, included; empty where no end is known.
    pub to: Option<JstDate>,
}

impl InstrumentRow {
    fn covers(&self, date: JstDate) -> bool {
        self.from.is_none_or(|from| from <= date) && self.to.is_none_or(|to| date <= to)
    }

    fn overlaps(&self, other: &Self) -> bool {
        let begins_in_time = |one: &Self, other: &Self| {
            one.from.is_none_or(|from| other.to.is_none_or(|to| from <= to))
        };
        self.code == other.code && begins_in_time(self, other) && begins_in_time(other, self)
    }

    /// The cells without the checksum.
    fn cells(&self) -> [String; 7] {
        let date = |date: Option<JstDate>| date.map_or(String::new(), |date| date.to_string());
        let ticks = self.ticks.map(|ticks| match ticks {
            TickTable::Fixed(step) => step.to_string(),
            table => table.to_string(),
        });
        [
            self.code.to_string(),
            // A name of the vendor goes into a file that people open with a spreadsheet.
            guarded(&self.name).into_owned(),
            self.market.clone(),
            self.lot.map_or(String::new(), |lot| lot.to_string()),
            ticks.unwrap_or_default(),
            date(self.from),
            date(self.to),
        ]
    }

    fn checksum(&self) -> String {
        format!("{:016x}", xxh3_64(self.cells().join("\n").as_bytes()))
    }
}

/// Reads `normal`, `topix500`, `etf`, or one step in yen like `0.1`.
///
/// # Errors
/// What to write, in words.
pub fn parse_ticks(text: &str) -> Result<TickTable, String> {
    match text {
        "normal" => Ok(TickTable::Normal),
        "topix500" => Ok(TickTable::Topix500),
        "etf" => Ok(TickTable::Etf),
        other => match other.parse::<Price>() {
            Ok(step) if step.units() > 0 => Ok(TickTable::Fixed(step)),
            _ => Err("write normal, topix500, etf, or a step in yen like 0.1".to_owned()),
        },
    }
}

/// A row with where it is from.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    row: InstrumentRow,
    by_hand: bool,
}

/// Which line a fault of the reader is about; it may know none, then the one after those read so far.
pub(crate) fn line_of(error: &csv::Error, read: usize) -> u64 {
    error.position().map_or(read as u64 + 2, csv::Position::line)
}

/// The table of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstrumentTable {
    entries: Vec<Entry>,
}

/// Why a table cannot be used.
#[derive(Debug, Error)]
pub enum TableError {
    /// It cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A line says something that cannot be.
    #[error("{path}, line {line}: {problem}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: u64,
        /// What is wrong and what to write.
        problem: String,
    },
    /// Its lines are right, but together they cannot be.
    #[error("{path}: {problem}")]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        problem: String,
    },
    /// It is larger than any real one.
    #[error("{path} has more than {limit} {what}")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
}

/// Reads a table of a data folder as text, at most [`TABLE_BYTES_MAX`]; none where it is not there.
///
/// # Errors
/// [`TableError::File`] where it cannot be read or is no ordinary file, [`TableError::TooLarge`].
pub fn read_text(path: &Path) -> Result<Option<Vec<u8>>, TableError> {
    let failed = |source| TableError::File { path: path.to_owned(), source };
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
        Ok(metadata) if metadata.len() > TABLE_BYTES_MAX => {
            let (path, what) = (path.to_owned(), "bytes");
            return Err(TableError::TooLarge { path, what, limit: TABLE_BYTES_MAX });
        }
        Ok(metadata) if !metadata.is_file() => {
            return Err(failed(io::Error::other("it is no ordinary file")));
        }
        Ok(_) => {}
    }
    std::fs::read(path).map(Some).map_err(failed)
}

impl InstrumentTable {
    /// The table of a data folder; none where it has none.
    ///
    /// # Errors
    /// [`TableError`]: it cannot be read, or a row is wrong.
    pub fn read(folder: &Path) -> Result<Option<Self>, TableError> {
        let path = folder.join(INSTRUMENTS_FILE);
        let Some(bytes) = read_text(&path)? else { return Ok(None) };
        let wrong = |line, problem: String| TableError::Line { path: path.clone(), line, problem };
        // A spreadsheet may put a mark of its encoding in front.
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bytes);
        let header = reader.headers().map_err(|error| wrong(1, error.to_string()))?;
        if !header.iter().take(7).eq(COLUMNS[..7].iter().copied()) {
            return Err(wrong(1, format!("the columns must be {}", COLUMNS.join(","))));
        }
        let mut entries: Vec<Entry> = Vec::new();
        for record in reader.records() {
            let record =
                record.map_err(|error| wrong(line_of(&error, entries.len()), error.to_string()))?;
            let line = record.position().map_or(entries.len() as u64 + 2, csv::Position::line);
            let entry = entry_of(&record).map_err(|problem| wrong(line, problem))?;
            if entries.len() == INSTRUMENT_ROWS_MAX {
                let (limit, what) = (INSTRUMENT_ROWS_MAX as u64, "rows");
                return Err(TableError::TooLarge { path, what, limit });
            }
            entries.push(entry);
        }
        entries.sort_by_key(|entry| (entry.row.code, entry.row.from));
        let neighbours = entries.windows(2).find(|pair| pair[0].row.overlaps(&pair[1].row));
        if let Some([one, other]) = neighbours {
            let date = other.row.from.map_or("the beginning".to_owned(), |date| date.to_string());
            let problem = format!("two rows of {} are valid on {date}", one.row.code);
            return Err(TableError::Content { path, problem });
        }
        Ok(Some(Self { entries }))
    }

    /// Writes the table into a data folder, in the place of the one that is there.
    ///
    /// # Errors
    /// [`TableError::File`].
    pub fn write(&self, folder: &Path) -> Result<(), TableError> {
        let path = folder.join(INSTRUMENTS_FILE);
        let failed = |source| TableError::File { path: path.clone(), source };
        let mut writer = csv::Writer::from_writer(Vec::new());
        let mut put = |cells: &[String]| writer.write_record(cells).map_err(io::Error::from);
        put(&COLUMNS.map(str::to_owned)).map_err(failed)?;
        for Entry { row, by_hand } in &self.entries {
            let made = if *by_hand { String::new() } else { row.checksum() };
            let cells: Vec<String> = row.cells().into_iter().chain([made]).collect();
            put(&cells).map_err(failed)?;
        }
        let bytes = writer.into_inner().map_err(|error| failed(error.into_error()))?;
        atomic_file::write(&path, &bytes).map_err(failed)
    }

    /// All rows, by code and date.
    pub fn all(&self) -> impl Iterator<Item = &InstrumentRow> {
        self.entries.iter().map(|entry| &entry.row)
    }

    /// The row of an issue on a date.
    #[must_use]
    pub fn row(&self, code: VendorCode, date: JstDate) -> Option<&InstrumentRow> {
        self.rows(code).find(|row| row.covers(date))
    }

    /// The rows of an issue, by date.
    pub fn rows(&self, code: VendorCode) -> impl Iterator<Item = &InstrumentRow> {
        let rows = self.entries.iter().map(|entry| &entry.row);
        rows.filter(move |row| row.code == code)
    }

    /// Rows, and how many of them were edited by hand.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.entries.len(), self.entries.iter().filter(|entry| entry.by_hand).count())
    }

    /// The table of these masters, which are in time order, with the rows of this one that were edited
    /// by hand.
    #[must_use]
    pub fn refreshed(&self, masters: &[Master]) -> Self {
        let by_hand: Vec<Entry> =
            self.entries.iter().filter(|entry| entry.by_hand).cloned().collect();
        let mut entries = by_hand.clone();
        for row in rows_of(masters) {
            let theirs =
                by_hand.iter().map(|entry| &entry.row).filter(|row_| row_.code == row.code);
            let mut parts = vec![row.clone()];
            for hand in theirs {
                parts = parts.into_iter().flat_map(|part| without(part, hand)).collect();
            }
            entries.extend(parts.into_iter().map(|row| Entry { row, by_hand: false }));
        }
        entries.sort_by_key(|entry| (entry.row.code, entry.row.from));
        Self { entries }
    }
}

/// What is left of a row's dates outside of those of another.
fn without(row: InstrumentRow, taken: &InstrumentRow) -> Vec<InstrumentRow> {
    if !row.overlaps(taken) {
        return vec![row];
    }
    let day_before = taken.from.and_then(|from| from.pred_opt());
    let day_after = taken.to.and_then(|to| to.succ_opt());
    let head = day_before
        .filter(|before| row.from.is_none_or(|from| from <= *before))
        .map(|before| InstrumentRow { to: Some(before), ..row.clone() });
    let tail = day_after
        .filter(|after| row.to.is_none_or(|to| *after <= to))
        .map(|after| InstrumentRow { from: Some(after), ..row });
    head.into_iter().chain(tail).collect()
}

/// The rows that masters in time order make. An issue is known from the first master that lists it, until
/// the day before one that lists it otherwise or not at all.
fn rows_of(masters: &[Master]) -> Vec<InstrumentRow> {
    let mut rows: Vec<InstrumentRow> = Vec::new();
    let mut open: std::collections::BTreeMap<VendorCode, InstrumentRow> =
        std::collections::BTreeMap::new();
    for (index, master) in masters.iter().enumerate() {
        let next = masters.get(index + 1).map(|next| next.date);
        // A day of the rule's change counts as a master of its own.
        let changes = STEP_CHANGES.map(StepChange::date).into_iter();
        let inside = changes
            .filter(|change| master.date < *change && next.is_none_or(|next| next > *change));
        for date in [master.date].into_iter().chain(inside) {
            let mut still: std::collections::BTreeMap<_, _> = std::collections::BTreeMap::new();
            for issue in &master.issues {
                let row = InstrumentRow {
                    code: issue.code,
                    name: issue.name.clone(),
                    market: issue.market.clone(),
                    lot: issue.lot(),
                    ticks: issue.ticks(date),
                    from: Some(date),
                    to: None,
                };
                let row = match open.remove(&issue.code) {
                    Some(before) if InstrumentRow { from: row.from, ..before.clone() } == row => {
                        before
                    }
                    Some(before) => {
                        rows.push(InstrumentRow { to: date.pred_opt(), ..before });
                        row
                    }
                    None => row,
                };
                still.insert(issue.code, row);
            }
            let gone = std::mem::replace(&mut open, still).into_values();
            rows.extend(gone.map(|row| InstrumentRow { to: date.pred_opt(), ..row }));
        }
    }
    rows.extend(open.into_values());
    rows
}

fn entry_of(record: &csv::StringRecord) -> Result<Entry, String> {
    let cell = |index: usize| record.get(index).unwrap_or_default().trim();
    let optional_date = |index: usize| match cell(index) {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| {
            format!("{}: `{text}` is no date; write YYYY-MM-DD or nothing", COLUMNS[index])
        }),
    };
    let code = cell(0);
    let code = if code.len() == 4 { format!("{code}0") } else { code.to_owned() };
    let lot = match cell(3) {
        "" => None,
        text => match text.parse::<u64>() {
            Ok(shares) if shares > 0 => Some(Quantity::new(shares)),
            _ => return Err(format!("lot: `{text}` is no number of shares above 0")),
        },
    };
    let ticks = match cell(4) {
        "" => None,
        text => Some(parse_ticks(text).map_err(|what| format!("ticks: `{text}`: {what}"))?),
    };
    let row = InstrumentRow {
        code: VendorCode::new(&code).map_err(|error| format!("code: {error}"))?,
        name: unguarded(cell(1)).to_owned(),
        market: cell(2).to_owned(),
        lot,
        ticks,
        from: optional_date(5)?,
        to: optional_date(6)?,
    };
    if row.from.zip(row.to).is_some_and(|(from, to)| from > to) {
        return Err("from is after to".to_owned());
    }
    let by_hand = cell(7) != row.checksum();
    Ok(Entry { row, by_hand })
}

impl fmt::Display for InstrumentRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cells().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::master::ListedIssue;

    fn date(text: &str) -> JstDate {
        text.parse().unwrap()
    }

    fn code(text: &str) -> VendorCode {
        VendorCode::new(text).unwrap()
    }

    fn master(day: &str, issues: &[(&str, &str, &str)]) -> Master {
        let issue = |(of, scale, market): &(&str, &str, &str)| ListedIssue {
            code: code(of),
            name: format!("Company, {of}"),
            scale: (*scale).to_owned(),
            market: (*market).to_owned(),
            product: String::new(),
        };
        Master { date: date(day), issues: issues.iter().map(issue).collect() }
    }

    fn texts(table: &InstrumentTable, of: &str) -> Vec<String> {
        let row = |row: &InstrumentRow| row.cells()[2..].join(",");
        table.rows(code(of)).map(row).collect()
    }

    fn masters() -> Vec<Master> {
        let core = ("72030", "TOPIX Core30", "0111");
        vec![
            master("2023-05-01", &[core, ("13060", "-", "0109")]),
            master(
                "2024-10-01",
                &[core, ("13060", "-", "0109"), ("13010", "TOPIX Mid400", "0111")],
            ),
            master("2024-11-01", &[core, ("13010", "TOPIX Small 1", "0111")]),
        ]
    }

    #[test]
    fn masters_make_rows_by_date() {
        let table = InstrumentTable::default().refreshed(&masters());
        assert_eq!(
            texts(&table, "72030"),
            ["0111,100,topix500,2023-05-01,"],
            "TOPIX100 had the fine steps before"
        );
        let mid = master("2023-05-01", &[("13010", "TOPIX Mid400", "0111")]);
        let old = master("2015-09-01", &[("72030", "TOPIX Large70", "0111")]);
        let since = InstrumentTable::default().refreshed(&[old, mid]);
        assert_eq!(
            texts(&since, "13010"),
            ["0111,100,normal,2023-05-01,2023-06-04", "0111,100,topix500,2023-06-05,"]
        );
        assert_eq!(
            texts(&since, "72030"),
            ["0111,100,,2015-09-01,2015-09-23", "0111,100,topix500,2015-09-24,2023-04-30"]
        );
        assert_eq!(texts(&table, "13060"), ["0109,,,2023-05-01,2024-10-31"]);
        assert_eq!(
            texts(&table, "13010"),
            ["0111,100,topix500,2024-10-01,2024-10-31", "0111,100,normal,2024-11-01,"]
        );
        let ticks = |day: &str| table.row(code("13010"), date(day)).map(|row| row.ticks);
        assert_eq!(ticks("2024-09-30"), None, "before the first master that lists it");
        assert_eq!(ticks("2024-10-31"), Some(Some(TickTable::Topix500)));
        assert_eq!(ticks("2030-01-04"), Some(Some(TickTable::Normal)));
    }

    #[test]
    fn rows_that_were_edited_by_hand_survive_a_refresh() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(InstrumentTable::read(folder.path()).unwrap(), None);
        InstrumentTable::default().refreshed(&masters()[..2]).write(folder.path()).unwrap();
        let path = folder.path().join(INSTRUMENTS_FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        // The lot and tick table of the fund, and an issue that the vendor does not have.
        let edited = text.replace("0109,,,2023-05-01", "0109,10,etf,2023-05-01");
        assert!(edited != text);
        std::fs::write(&path, edited + "9999,Mine,,1,0.5,,2024-01-31,\n").unwrap();
        let read = InstrumentTable::read(folder.path()).unwrap().unwrap();
        assert_eq!(read.counts(), (4, 2));
        read.refreshed(&masters()).write(folder.path()).unwrap();
        let again = InstrumentTable::read(folder.path()).unwrap().unwrap();
        assert_eq!(again.counts().1, 2, "still known as edited");
        assert_eq!(texts(&again, "13060"), ["0109,10,etf,2023-05-01,"]);
        assert_eq!(texts(&again, "99990"), [",1,0.5,,2024-01-31"]);
        assert_eq!(texts(&again, "13010").len(), 2, "the others are made anew");
        assert_eq!(again.refreshed(&masters()), again);
    }

    #[test]
    fn a_row_by_hand_takes_its_dates_from_made_ones() {
        let row = |from: &str, to: &str| InstrumentRow {
            code: code("72030"),
            name: String::new(),
            market: String::new(),
            lot: None,
            ticks: None,
            from: (!from.is_empty()).then(|| date(from)),
            to: (!to.is_empty()).then(|| date(to)),
        };
        let left = |made: InstrumentRow, hand: InstrumentRow| -> Vec<String> {
            without(made, &hand).iter().map(|row| row.cells()[5..].join("/")).collect()
        };
        let made = || row("2024-01-04", "");
        assert_eq!(left(made(), row("2025-01-06", "")), ["2024-01-04/2025-01-05"]);
        assert_eq!(
            left(made(), row("2025-01-06", "2025-01-31")),
            ["2024-01-04/2025-01-05", "2025-02-01/"]
        );
        assert_eq!(left(made(), row("", "2024-01-04")), ["2024-01-05/"]);
        assert_eq!(left(made(), row("", "2023-01-04")), ["2024-01-04/"]);
        assert_eq!(left(made(), row("", "")), Vec::<String>::new());
    }

    #[test]
    fn a_wrong_row_is_named() {
        let message = |rows: &str| {
            let folder = tempfile::tempdir().unwrap();
            let text = format!("{}\n{rows}", COLUMNS.join(","));
            std::fs::write(folder.path().join(INSTRUMENTS_FILE), text).unwrap();
            InstrumentTable::read(folder.path()).unwrap_err().to_string()
        };
        assert!(
            message("7203,,,0,,,,\n").ends_with("line 2: lot: `0` is no number of shares above 0")
        );
        assert!(message("7203,,,,fine,,,\n").contains("ticks: `fine`: write normal, topix500"));
        assert!(message("72,,,,,,,\n").contains("code: "));
        assert!(message("7203,,,,,01/06,,\n").contains("from: `01/06` is no date"));
        let twice = message("7203,,,100,,,,\n7203,,,1,,2025-01-06,,\n");
        assert!(twice.contains("two rows of 72030 are valid on 2025-01-06"), "{twice}");
    }
}
