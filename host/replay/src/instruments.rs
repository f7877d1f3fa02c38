//! Lot and tick table of the instruments of a run, without a look at the run's own days: what the user
//! says, else the folder's instrument table, else the prices before the run's first day.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use domain::{Instrument, InstrumentId, InstrumentIx, JstDate, Quantity, TickTable, VendorCode};
use marketdata::instruments::{INSTRUMENTS_FILE, parse_ticks, topix500_from};
use marketdata::{InstrumentRow, InstrumentTable, PriceGrid};
use thiserror::Error;

use crate::options::TickChange;

/// Shares in a trading unit where nothing else is known: that of every Tokyo share since October 2018.
const USUAL_LOT: Quantity = Quantity::new(100);

/// Which price steps a run uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TickChoice {
    /// Those of the instrument table, else of the prices before the run, else the normal table.
    Auto,
    /// This one.
    Table(TickTable),
}

/// Reads `auto`, `normal`, `topix500`, `etf`, or one step in yen like `0.1`.
impl FromStr for TickChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            other => parse_ticks(other).map(Self::Table).map_err(|_| {
                "write auto, normal, topix500, etf, or a step in yen like 0.1".to_owned()
            }),
        }
    }
}

/// As it is read.
impl fmt::Display for TickChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Table(TickTable::Fixed(step)) => step.fmt(f),
            Self::Table(table) => table.fmt(f),
        }
    }
}

/// A value for all instruments of a run, and others for single ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choices<T> {
    all: Option<T>,
    each: Vec<(InstrumentId, T)>,
}

impl<T> Default for Choices<T> {
    fn default() -> Self {
        Self { all: None, each: Vec::new() }
    }
}

impl<T: Copy> Choices<T> {
    /// One value for every instrument.
    #[must_use]
    pub const fn all(value: T) -> Self {
        Self { all: Some(value), each: Vec::new() }
    }

    /// Adds a value: of one instrument, or of all. The last one given counts.
    pub fn add(&mut self, instrument: Option<InstrumentId>, value: T) {
        match instrument {
            Some(id) => self.each.push((id, value)),
            None => self.all = Some(value),
        }
    }

    /// The value of an instrument.
    #[must_use]
    pub fn of(&self, id: &InstrumentId) -> Option<T> {
        let own = self.each.iter().rev().find(|(of, _)| of == id);
        own.map(|(_, value)| *value).or(self.all)
    }

    /// The instruments with values of their own.
    pub fn named(&self) -> impl Iterator<Item = &InstrumentId> {
        self.each.iter().map(|(id, _)| id)
    }
}

/// `VALUE` for all instruments and `ID=VALUE` for one, separated by commas; empty where nothing is said.
impl<T: fmt::Display> fmt::Display for Choices<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.all.iter().map(ToString::to_string);
        let each = self.each.iter().map(|(id, value)| format!("{id}={value}"));
        f.write_str(&all.chain(each).collect::<Vec<_>>().join(","))
    }
}

/// As it is displayed.
impl<T: Copy + FromStr> FromStr for Choices<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut choices = Self::default();
        for one in text.split(',').filter(|one| !one.is_empty()) {
            let (id, value) = choice_of(one)?;
            choices.add(id, value.parse().map_err(|_| format!("`{one}` is no such value"))?);
        }
        Ok(choices)
    }
}

/// The instrument of `ID=VALUE`, none of `VALUE`; and the value.
///
/// # Errors
/// When the instrument's id is none, in words.
pub fn choice_of(text: &str) -> Result<(Option<InstrumentId>, &str), String> {
    match text.split_once('=') {
        None => Ok((None, text)),
        Some((id, value)) => match id.parse() {
            Ok(id) => Ok((Some(id), value)),
            Err(error) => Err(format!("{error}")),
        },
    }
}

/// What a run is told of its instruments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstrumentChoices {
    /// Shares in one trading unit.
    pub lots: Choices<Quantity>,
    /// Price steps.
    pub ticks: Choices<TickChoice>,
}

/// What the instrument table leaves open and nobody has said.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InstrumentsError {
    /// Lot or tick table of an issue is empty in the table.
    #[error(
        "{instrument} has no {what} in {file} on {date} (market {market}); say it with {flags}, or fill \
         in its row"
    )]
    Incomplete {
        /// The issue.
        instrument: InstrumentId,
        /// `lot`, `tick table` or both.
        what: &'static str,
        /// The table.
        file: String,
        /// First date of the run.
        date: JstDate,
        /// The market's code.
        market: String,
        /// What to say on the command line.
        flags: String,
    },
    /// A choice names an instrument that the run does not trade.
    #[error("{flag} names {instrument}, which is not among the instruments of this run")]
    NotTraded {
        /// The option.
        flag: &'static str,
        /// The instrument.
        instrument: InstrumentId,
    },
}

/// An instrument of a run, and how it was found.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) instrument: Instrument,
    pub(crate) changes: Vec<TickChange>,
    pub(crate) note: String,
}

/// What finds the instruments of a run from `first` to `last`.
pub(crate) struct Finder<'a> {
    pub(crate) choices: &'a InstrumentChoices,
    pub(crate) table: Option<&'a InstrumentTable>,
    pub(crate) folder: &'a Path,
    pub(crate) first: JstDate,
    pub(crate) last: JstDate,
}

impl Finder<'_> {
    /// Every choice belongs to an instrument of the run.
    pub(crate) fn check_names(&self, traded: &[InstrumentId]) -> Result<(), InstrumentsError> {
        let lots = self.choices.lots.named().map(|id| ("--lot", id));
        let ticks = self.choices.ticks.named().map(|id| ("--ticks", id));
        match lots.chain(ticks).find(|(_, id)| !traded.contains(id)) {
            Some((flag, id)) => Err(InstrumentsError::NotTraded { flag, instrument: id.clone() }),
            None => Ok(()),
        }
    }

    /// Lot and tick table of an instrument; `before` is the grid of its prices before the run.
    pub(crate) fn find(
        &self,
        index: InstrumentIx,
        id: &InstrumentId,
        code: VendorCode,
        before: Option<PriceGrid>,
    ) -> Result<Found, InstrumentsError> {
        let row = self.table.and_then(|table| table.row(code, self.first));
        let said_lot = self.choices.lots.of(id);
        let said_ticks = match self.choices.ticks.of(id) {
            Some(TickChoice::Table(table)) => Some(table),
            Some(TickChoice::Auto) | None => None,
        };
        if let Some(row) = row {
            self.check_complete(id, row, said_lot, said_ticks)?;
        }
        for later in self.later_rows(code) {
            self.check_complete(id, later, said_lot, said_ticks)?;
        }
        let (lot, lot_from) = match (said_lot, row.and_then(|row| row.lot)) {
            (Some(lot), _) => (lot, "as asked for"),
            (None, Some(lot)) => (lot, "from instruments.csv"),
            (None, None) => (USUAL_LOT, "the usual one"),
        };
        let (ticks, ticks_from) = match (said_ticks, row.and_then(|row| row.ticks), before) {
            (Some(table), ..) => (table, "as asked for".to_owned()),
            (None, Some(table), _) => (table, "from instruments.csv".to_owned()),
            (None, None, Some(grid)) => {
                let why = self.why_no_row();
                (grid.tick_table(), format!("which fit the prices before {}; {why}", self.first))
            }
            (None, None, None) => {
                let why = self.why_no_row();
                let text = format!("because no price before {} is known; {why}", self.first);
                (TickTable::Normal, text)
            }
        };
        let is_of_table = said_ticks.is_none() && row.is_some();
        let changes = if is_of_table { self.changes(index, code, ticks) } else { Vec::new() };
        let mut note = format!("{id}: lot {lot}, {lot_from}; ticks {ticks}, {ticks_from}");
        if is_of_table && self.first < topix500_from() {
            note.push_str(" (before ");
            note.push_str(&topix500_from().to_string());
            note.push_str(" the finer steps of TOPIX100 are not known)");
        }
        for change in &changes {
            note.push_str(&format!("; ticks {} from {} on", change.ticks, change.date));
        }
        if said_lot.is_none() {
            for later in self.later_rows(code).filter(|row| row.lot.is_some_and(|its| its != lot)) {
                let (lot, from) = later.lot.zip(later.from).unwrap_or_default();
                note.push_str(&format!(
                    "; from {from} on the lot is {lot}, which a run does not follow"
                ));
            }
        }
        let instrument = Instrument { id: id.clone(), lot, ticks };
        Ok(Found { instrument, changes, note })
    }

    /// Rows of the table that begin inside the run.
    fn later_rows(&self, code: VendorCode) -> impl Iterator<Item = &InstrumentRow> {
        let rows = self.table.into_iter().flat_map(move |table| table.rows(code));
        let (first, last) = (self.first, self.last);
        rows.filter(move |row| row.from.is_some_and(|from| first < from && from <= last))
    }

    fn why_no_row(&self) -> String {
        match self.table {
            None => format!("there is no {INSTRUMENTS_FILE}"),
            Some(_) => format!("{INSTRUMENTS_FILE} has no row of it on that day"),
        }
    }

    fn check_complete(
        &self,
        id: &InstrumentId,
        row: &InstrumentRow,
        lot: Option<Quantity>,
        ticks: Option<TickTable>,
    ) -> Result<(), InstrumentsError> {
        let no_lot = lot.is_none() && row.lot.is_none();
        let no_ticks = ticks.is_none() && row.ticks.is_none();
        let (what, flags) = match (no_lot, no_ticks) {
            (false, false) => return Ok(()),
            (true, false) => ("lot", format!("--lot {id}=10")),
            (false, true) => ("tick table", format!("--ticks {id}=etf")),
            (true, true) => ("lot and tick table", format!("--lot {id}=10 --ticks {id}=etf")),
        };
        Err(InstrumentsError::Incomplete {
            instrument: id.clone(),
            what,
            file: self.folder.join(INSTRUMENTS_FILE).display().to_string(),
            date: row.from.map_or(self.first, |from| from.max(self.first)),
            market: if row.market.is_empty() { "unknown".to_owned() } else { row.market.clone() },
            flags,
        })
    }

    /// Days of the run on which the table has other steps than on the day before.
    fn changes(&self, index: InstrumentIx, code: VendorCode, ticks: TickTable) -> Vec<TickChange> {
        let mut changes: Vec<TickChange> = Vec::new();
        let mut present = ticks;
        for row in self.table.into_iter().flat_map(|table| table.rows(code)) {
            let Some((date, ticks)) = row.from.zip(row.ticks) else { continue };
            if date > self.first && date <= self.last && ticks != present {
                changes.push(TickChange { date, instrument: index, ticks });
                present = ticks;
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> InstrumentId {
        text.parse().unwrap()
    }

    fn find(
        table: Option<&str>,
        choices: &InstrumentChoices,
        before: Option<&[i64]>,
    ) -> Result<Found, InstrumentsError> {
        let folder = tempfile::tempdir().unwrap();
        if let Some(rows) = table {
            let text = format!("code,name,market,lot,ticks,from,to\n{rows}");
            std::fs::write(folder.path().join(INSTRUMENTS_FILE), text).unwrap();
        }
        let table = InstrumentTable::read(folder.path()).unwrap();
        let finder = Finder {
            choices,
            table: table.as_ref(),
            folder: Path::new("data"),
            first: "2025-01-06".parse().unwrap(),
            last: "2025-03-31".parse().unwrap(),
        };
        let id = id("1306.TSE");
        finder.find(InstrumentIx(0), &id, id.vendor_code().unwrap(), before.map(PriceGrid::of))
    }

    #[test]
    fn rows_that_begin_inside_the_run_are_looked_at() {
        let none = InstrumentChoices::default();
        let empty = "1306,T,0109,10,etf,,2025-01-07\n1306,T,0109,,,2025-01-08,\n";
        let Err(InstrumentsError::Incomplete { date, .. }) = find(Some(empty), &none, None) else {
            panic!("lot and ticks are not known from 8 January on");
        };
        assert_eq!(date.to_string(), "2025-01-08");
        let lots = "1306,T,0111,100,normal,,2025-01-07\n1306,T,0111,1000,normal,2025-01-08,\n";
        let told = note(Some(lots), &none, None);
        assert!(told.contains("from 2025-01-08 on the lot is 1000"), "{told}");
    }

    fn note(table: Option<&str>, choices: &InstrumentChoices, before: Option<&[i64]>) -> String {
        find(table, choices, before).unwrap().note
    }

    #[test]
    fn the_user_goes_before_the_table_and_the_table_before_prices() {
        let none = InstrumentChoices::default();
        assert_eq!(
            note(None, &none, None),
            "1306.TSE: lot 100, the usual one; ticks normal, because no price before 2025-01-06 is \
             known; there is no instruments.csv"
        );
        let half_yen = [27_405_000, 27_410_000];
        assert_eq!(
            note(None, &none, Some(&half_yen)),
            "1306.TSE: lot 100, the usual one; ticks topix500, which fit the prices before \
             2025-01-06; there is no instruments.csv"
        );
        let later = "1306,,,10,etf,2025-01-07,\n";
        assert!(note(Some(later), &none, None).contains(
            "instruments.csv has no row of it on that day; from 2025-01-07 on the lot is 10"
        ));
        let rows = "1306,,0109,10,etf,2025-01-01,2025-01-31\n1306,,0109,10,normal,2025-02-01,\n";
        let found = find(Some(rows), &none, Some(&half_yen)).unwrap();
        assert_eq!(
            found.note,
            "1306.TSE: lot 10, from instruments.csv; ticks etf, from instruments.csv; ticks normal \
             from 2025-02-01 on"
        );
        let mut choices = InstrumentChoices::default();
        choices.lots.add(None, Quantity::new(1));
        choices.ticks.add(Some(id("1306.TSE")), TickChoice::Table(TickTable::Normal));
        let found = find(Some(rows), &choices, None).unwrap();
        assert_eq!(found.note, "1306.TSE: lot 1, as asked for; ticks normal, as asked for");
        assert!(found.changes.is_empty());
    }

    #[test]
    fn an_issue_whose_lot_and_ticks_nobody_knows_is_not_run() {
        let message = |row: &str, choices: &InstrumentChoices| {
            find(Some(row), choices, None).unwrap_err().to_string()
        };
        let none = InstrumentChoices::default();
        assert_eq!(
            message("1306,Fund,0109,,,,\n", &none),
            "1306.TSE has no lot and tick table in data/instruments.csv on 2025-01-06 (market 0109); \
             say it with --lot 1306.TSE=10 --ticks 1306.TSE=etf, or fill in its row"
        );
        let lot = InstrumentChoices { lots: Choices::all(Quantity::new(10)), ..none.clone() };
        assert!(message("1306,Fund,0109,,,,\n", &lot).contains("has no tick table in"));
        assert!(message("1306,Fund,0109,,etf,,\n", &none).contains("has no lot in"));
        assert!(find(Some("1306,Fund,0109,10,etf,,\n"), &none, None).is_ok());
    }
}
