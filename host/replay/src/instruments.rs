//! Lot and tick table of the instruments of a run, without a look at the run's own days: what the user
//! says, else the folder's instrument table, else the prices before the run's first day.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use domain::instrument::InstrumentError;
use domain::{Instrument, InstrumentId, InstrumentIx, JstDate, Quantity, TickTable, VendorCode};
use marketdata::instruments::{INSTRUMENTS_FILE, parse_ticks};
use marketdata::{InstrumentRow, InstrumentTable};
use thiserror::Error;

use crate::data_set::SeenPrices;
use crate::options::UnitChange;

/// Shares in a trading unit where nothing else is known: that of every Tokyo share since October 2018.
const USUAL_LOT: Quantity = Quantity::new(100);

/// Characters of an issue's name that results hold: the longest of the exchange has about half as many.
const NAME_CHARS_MAX: usize = 100;

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

    /// Adds a value: of one instrument, or of all. Where there is one already, that one stays and is
    /// given back.
    #[must_use]
    pub fn add(&mut self, instrument: Option<InstrumentId>, value: T) -> Option<T> {
        let Some(id) = instrument else {
            let first = self.all;
            self.all = first.or(Some(value));
            return first;
        };
        let first = self.each.iter().find(|(of, _)| *of == id).map(|(_, first)| *first);
        if first.is_none() {
            self.each.push((id, value));
        }
        first
    }

    /// The value of an instrument.
    #[must_use]
    pub fn of(&self, id: &InstrumentId) -> Option<T> {
        let own = self.each.iter().find(|(of, _)| of == id);
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
            let value =
                value.parse().map_err(|_| format!("`{one}` has a value that cannot be read"))?;
            if choices.add(id, value).is_some() {
                return Err(format!("`{one}` is a second value for the same instrument; give one"));
            }
        }
        Ok(choices)
    }
}

/// The instrument of `ID=VALUE`, none of `VALUE`; and the value.
///
/// # Errors
/// When the instrument's id or name is none, in words.
pub fn choice_of<N>(text: &str) -> Result<(Option<N>, &str), String>
where
    N: FromStr<Err: fmt::Display>,
{
    match text.split_once('=') {
        None => Ok((None, text)),
        Some((id, value)) => match id.parse() {
            Ok(id) => Ok((Some(id), value)),
            Err(error) => Err(format!("{error}")),
        },
    }
}

/// An instrument as people name it in a choice: by its id, like `1306.TSE`, or by its code alone, `1306`
/// or the vendor's `13060`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstrumentName(String);

/// An id, or a code without a venue.
impl FromStr for InstrumentName {
    type Err = InstrumentError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A code stands for itself at the only venue there is.
        let id = if text.contains('.') { text.to_owned() } else { format!("{text}.TSE") };
        id.parse::<InstrumentId>().map(|_| Self(text.to_owned()))
    }
}

impl InstrumentName {
    /// The instrument of a run that has this name.
    ///
    /// # Errors
    /// [`InstrumentsError::NotTraded`] where none has it, and [`InstrumentsError::Ambiguous`] where a
    /// code fits several; `flag` is what the name was given with.
    pub fn among(
        &self,
        flag: &'static str,
        traded: &[InstrumentId],
    ) -> Result<InstrumentId, InstrumentsError> {
        let has_code =
            |id: &InstrumentId| id.vendor_code().is_ok_and(|code| code.as_str() == self.0);
        let exactly = traded.iter().find(|id| id.as_str() == self.0 || id.symbol() == self.0);
        let mut by_code = traded.iter().filter(|id| has_code(id));
        match (exactly, by_code.next(), by_code.next()) {
            (Some(id), ..) | (None, Some(id), None) => Ok(id.clone()),
            (None, None, _) => Err(InstrumentsError::not_traded(flag, &self.0, traded)),
            (None, Some(_), Some(_)) => {
                Err(InstrumentsError::Ambiguous { flag, name: self.0.clone() })
            }
        }
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
        "{instrument} has no {what} in {file} on {date} (market {market}); fill in its row, or \
         give it: {flags}"
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
    #[error("{flag} names {name}, which is not among the instruments of this run ({traded})")]
    NotTraded {
        /// The option.
        flag: &'static str,
        /// The instrument, as it was named.
        name: String,
        /// The instruments of the run.
        traded: String,
    },
    /// A choice is made twice for the same instrument, or for all.
    #[error("{flag} gives both {first} and {second} for {whom}; give one of them")]
    Twice {
        /// The option.
        flag: &'static str,
        /// The instrument's id, or `all instruments`.
        whom: String,
        /// What was said first.
        first: String,
        /// What was said then.
        second: String,
    },
    /// A choice names a code that several instruments of the run have.
    #[error("{flag} names {name}, which fits several instruments of this run; write the whole id")]
    Ambiguous {
        /// The option.
        flag: &'static str,
        /// The code.
        name: String,
    },
}

impl InstrumentsError {
    /// Whether the choices contradict each other or the run, whatever the data say.
    #[must_use]
    pub const fn is_wrong_arguments(&self) -> bool {
        matches!(self, Self::NotTraded { .. } | Self::Twice { .. } | Self::Ambiguous { .. })
    }

    /// Two values for an instrument, or for all of them.
    #[must_use]
    pub fn twice(
        flag: &'static str,
        instrument: Option<&InstrumentId>,
        first: &impl fmt::Display,
        second: &impl fmt::Display,
    ) -> Self {
        let whom = instrument.map_or("all instruments".to_owned(), ToString::to_string);
        Self::Twice { flag, whom, first: first.to_string(), second: second.to_string() }
    }

    fn not_traded(flag: &'static str, name: &str, traded: &[InstrumentId]) -> Self {
        let traded: Vec<&str> = traded.iter().map(InstrumentId::as_str).collect();
        Self::NotTraded { flag, name: name.to_owned(), traded: traded.join(", ") }
    }
}

/// An instrument of a run, and how it was found.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) instrument: Instrument,
    pub(crate) changes: Vec<UnitChange>,
    pub(crate) note: String,
}

/// What is known of an issue beside its rows.
#[derive(Debug, Clone, Copy)]
struct Open {
    said_lot: Option<Quantity>,
    said_ticks: Option<TickTable>,
    /// The table that prices before the run fit, and whether it was asked for.
    guess: Option<TickTable>,
    wants_guess: bool,
}

/// The exchange's kinds of issues with other lots or steps than the usual share: one for each pair that exists.
const FUNDS: [(u64, TickTable, &str); 3] = [
    (1, TickTable::Etf, "an ETF with lots of 1"),
    (10, TickTable::Topix500, "an ETF with larger lots"),
    (1, TickTable::Normal, "a REIT"),
];
const SHARES: [(u64, TickTable, &str); 2] =
    [(100, TickTable::Normal, "a share"), (100, TickTable::Topix500, "a share of TOPIX500")];
/// The market of funds, and of whatever is in no other one.
const FUNDS_MARKET: &str = "0109";

/// What to say on the command line of an issue whose lot or ticks are open: each choice fits what is known, and the
/// exchange's rules.
fn flags(
    id: &InstrumentId,
    market: &str,
    lot: Option<Quantity>,
    ticks: Option<TickTable>,
) -> String {
    let kinds = || FUNDS.into_iter().chain(SHARES.into_iter().filter(|_| market != FUNDS_MARKET));
    let has_lot = |shares: u64, table: TickTable| match lot.map(Quantity::shares) {
        None => true,
        // Lots of ETFs are larger than 1 where they are not 1.
        Some(lot) if table == TickTable::Topix500 && shares == 10 => lot > 1,
        Some(lot) => lot == shares,
    };
    let fits = |(shares, table, _): &(u64, TickTable, &str)| {
        has_lot(*shares, *table) && ticks.is_none_or(|ticks| ticks == *table)
    };
    let mut fitting: Vec<_> = kinds().filter(fits).collect();
    if fitting.is_empty() {
        // Somebody knows better than these rules.
        fitting = kinds().collect();
    }
    let mut texts: Vec<(String, Vec<&str>)> = Vec::new();
    for (shares, table, kind) in fitting {
        let mut said = Vec::new();
        if lot.is_none() {
            said.push(format!("--lot {id}={shares}"));
        }
        if ticks.is_none() {
            said.push(format!("--ticks {id}={table}"));
        }
        let said = said.join(" ");
        match texts.iter_mut().find(|(known, _)| *known == said) {
            Some((_, kinds)) => kinds.push(kind),
            None => texts.push((said, vec![kind])),
        }
    }
    let texts = texts.into_iter().map(|(said, kinds)| format!("{said} ({})", kinds.join(", ")));
    texts.collect::<Vec<_>>().join(", or ")
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
            Some((flag, id)) => Err(InstrumentsError::not_traded(flag, id.as_str(), traded)),
            None => Ok(()),
        }
    }

    /// Lot and tick table of an instrument; `before` is the grid of its prices before the run.
    pub(crate) fn find(
        &self,
        index: InstrumentIx,
        id: &InstrumentId,
        code: VendorCode,
        before: Option<SeenPrices>,
    ) -> Result<Found, InstrumentsError> {
        let row = self.table.and_then(|table| table.row(code, self.first));
        let said_lot = self.choices.lots.of(id);
        let said_ticks = match self.choices.ticks.of(id) {
            Some(TickChoice::Table(table)) => Some(table),
            Some(TickChoice::Auto) | None => None,
        };
        let guess = before.map(|prices| prices.grid.tick_table());
        let wants_guess = self.choices.ticks.of(id) == Some(TickChoice::Auto);
        let open = Open { said_lot, said_ticks, guess, wants_guess };
        // What another date's row leaves open is no usual issue's on this day either.
        if let Some(row) = row.or_else(|| self.nearest_row(code)) {
            self.check_complete(id, row, open)?;
        }
        for later in self.later_rows(code) {
            self.check_complete(id, later, open)?;
        }
        let (lot, lot_from) = match (said_lot, row.and_then(|row| row.lot)) {
            (Some(lot), _) => (lot, "as asked for"),
            (None, Some(lot)) => (lot, "from instruments.csv"),
            (None, None) => (USUAL_LOT, "the usual one"),
        };
        let (ticks, ticks_from) = match (said_ticks, row.and_then(|row| row.ticks), before) {
            (Some(table), ..) => (table, "as asked for".to_owned()),
            (None, Some(table), _) => (table, "from instruments.csv".to_owned()),
            (None, None, Some(prices)) => {
                let (why, first) = (self.why_no_ticks(row), self.first);
                let text = format!("which fit {} before {first}; {why}", prices.words());
                (prices.grid.tick_table(), text)
            }
            (None, None, None) => {
                let why = self.why_no_ticks(row);
                let text = format!("because no price before {} is known; {why}", self.first);
                (TickTable::Normal, text)
            }
        };
        let instrument = Instrument { id: id.clone(), lot, ticks };
        let changes = self.changes(index, code, &instrument, (said_lot, said_ticks));
        let mut note = format!("{id}: lot {lot}, {lot_from}; ticks {ticks}, {ticks_from}");
        for UnitChange { date, lot, ticks, .. } in &changes {
            note.push_str(&format!("; lot {lot} and ticks {ticks} from {date} on"));
        }
        for date in self.ends(code) {
            note.push_str(&format!(
                "; from {date} on {INSTRUMENTS_FILE} has no row of it: they stay"
            ));
        }
        Ok(Found { instrument, changes, note })
    }

    /// The name of an issue, at most [`NAME_CHARS_MAX`] characters of it: of the first day's row, else of
    /// the first one later in the run that has one.
    pub(crate) fn name(&self, code: VendorCode) -> Option<String> {
        let first = self.table.and_then(|table| table.row(code, self.first));
        let mut named = first.into_iter().chain(self.later_rows(code));
        let row = named.find(|row| !row.name.trim().is_empty())?;
        Some(row.name.trim().chars().take(NAME_CHARS_MAX).collect())
    }

    /// Days inside the run from which on the table tells nothing any more.
    fn ends(&self, code: VendorCode) -> Vec<JstDate> {
        let Some(table) = self.table else { return Vec::new() };
        let ends = table.rows(code).filter_map(|row| row.to?.succ_opt());
        let inside = ends.filter(|date| self.first < *date && *date <= self.last);
        inside.filter(|date| table.row(code, *date).is_none()).collect()
    }

    /// Rows of the table that begin inside the run.
    fn later_rows(&self, code: VendorCode) -> impl Iterator<Item = &InstrumentRow> {
        let rows = self.table.into_iter().flat_map(move |table| table.rows(code));
        let (first, last) = (self.first, self.last);
        rows.filter(move |row| row.from.is_some_and(|from| first < from && from <= last))
    }

    /// The first row that begins after the run's first day, else the last one before it.
    fn nearest_row(&self, code: VendorCode) -> Option<&InstrumentRow> {
        let rows = || self.table.into_iter().flat_map(move |table| table.rows(code));
        let later = rows().filter(|row| row.from.is_some_and(|from| from > self.first));
        later.min_by_key(|row| row.from).or_else(|| rows().max_by_key(|row| row.from))
    }

    fn why_no_ticks(&self, row: Option<&InstrumentRow>) -> String {
        match (self.table, row) {
            (None, _) => format!("there is no {INSTRUMENTS_FILE}"),
            (Some(_), None) => format!("{INSTRUMENTS_FILE} has no row of it on that day"),
            (Some(_), Some(_)) => format!("its row in {INSTRUMENTS_FILE} has no ticks"),
        }
    }

    fn check_complete(
        &self,
        id: &InstrumentId,
        row: &InstrumentRow,
        open: Open,
    ) -> Result<(), InstrumentsError> {
        let lot = open.said_lot.or(row.lot);
        let ticks = open.said_ticks.or(row.ticks);
        let is_guessed = open.wants_guess && open.guess.is_some();
        let what = match (lot, ticks) {
            (Some(_), Some(_)) => return Ok(()),
            (Some(_), None) if is_guessed => return Ok(()),
            (None, Some(_)) => "lot",
            (None, None) if is_guessed => "lot",
            (Some(_), None) => "tick table",
            (None, None) => "lot and tick table",
        };
        let ticks = ticks.or(open.guess.filter(|_| is_guessed));
        let mut flags = flags(id, &row.market, lot, ticks);
        if ticks.is_none() && lot.is_some() && open.guess.is_some() {
            flags.push_str(&format!(", or --ticks {id}=auto (by its prices before the run)"));
        }
        Err(InstrumentsError::Incomplete {
            instrument: id.clone(),
            what,
            file: self.folder.join(INSTRUMENTS_FILE).display().to_string(),
            date: row.from.map_or(self.first, |from| from.max(self.first)),
            market: if row.market.is_empty() { "unknown".to_owned() } else { row.market.clone() },
            flags,
        })
    }

    /// Days of the run on which the table has another lot or other steps than on the day before; what
    /// was said stays as it is.
    fn changes(
        &self,
        index: InstrumentIx,
        code: VendorCode,
        first: &Instrument,
        (said_lot, said_ticks): (Option<Quantity>, Option<TickTable>),
    ) -> Vec<UnitChange> {
        let mut changes: Vec<UnitChange> = Vec::new();
        let mut present = (first.lot, first.ticks);
        for row in self.later_rows(code) {
            let Some(date) = row.from else { continue };
            let lot = said_lot.or(row.lot).unwrap_or(present.0);
            let ticks = said_ticks.or(row.ticks).unwrap_or(present.1);
            if (lot, ticks) != present {
                changes.push(UnitChange { date, instrument: index, lot, ticks });
                present = (lot, ticks);
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
        finder.find(InstrumentIx(0), &id, id.vendor_code().unwrap(), before.map(SeenPrices::of))
    }

    #[test]
    fn rows_that_begin_inside_the_run_are_looked_at() {
        let none = InstrumentChoices::default();
        let empty = "1306,T,0109,10,etf,,2025-01-07\n1306,T,0109,,,2025-01-08,\n";
        let Err(InstrumentsError::Incomplete { date, .. }) = find(Some(empty), &none, None) else {
            panic!("lot and ticks are not known from 8 January on");
        };
        assert_eq!(date.to_string(), "2025-01-08");
        let lots = "1306,T,0111,1000,normal,,2025-01-07\n1306,T,0111,100,normal,2025-01-08,\n";
        let found = find(Some(lots), &none, None).unwrap();
        assert!(found.note.ends_with("; lot 100 and ticks normal from 2025-01-08 on"));
        let [change] = &found.changes[..] else { panic!("{:?}", found.changes) };
        let lot = Quantity::new(100);
        assert_eq!((change.date.to_string(), change.lot), ("2025-01-08".to_owned(), lot));
        // What was said counts on every day.
        let said = InstrumentChoices { lots: Choices::all(Quantity::new(1)), ..none };
        assert!(find(Some(lots), &said, None).unwrap().changes.is_empty());
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
            "1306.TSE: lot 100, the usual one; ticks topix500, which fit the only 2 prices \
             known before 2025-01-06; there is no instruments.csv"
        );
        let later = "1306,,,10,etf,2025-01-07,\n";
        assert!(note(Some(later), &none, None).contains(
            "instruments.csv has no row of it on that day; lot 10 and ticks etf from 2025-01-07 on"
        ));
        let rows = "1306,,0109,10,etf,2025-01-01,2025-01-31\n1306,,0109,10,normal,2025-02-01,\n";
        let found = find(Some(rows), &none, Some(&half_yen)).unwrap();
        assert_eq!(
            found.note,
            "1306.TSE: lot 10, from instruments.csv; ticks etf, from instruments.csv; lot 10 and \
             ticks normal from 2025-02-01 on"
        );
        let mut choices = InstrumentChoices::default();
        assert_eq!(choices.lots.add(None, Quantity::new(1)), None);
        let normal = TickChoice::Table(TickTable::Normal);
        assert_eq!(choices.ticks.add(Some(id("1306.TSE")), normal), None);
        let found = find(Some(rows), &choices, None).unwrap();
        assert_eq!(found.note, "1306.TSE: lot 1, as asked for; ticks normal, as asked for");
        assert!(found.changes.is_empty());
    }

    #[test]
    fn the_first_of_two_choices_stays_and_is_told() {
        let mut lots = Choices::default();
        let one = || Some(id("1306.TSE"));
        assert_eq!([lots.add(None, 1), lots.add(one(), 2)], [None, None]);
        assert_eq!([lots.add(None, 3), lots.add(one(), 4)], [Some(1), Some(2)]);
        assert_eq!((lots.of(&id("1306.TSE")), lots.of(&id("7203.TSE"))), (Some(2), Some(1)));
        let twice = "100,1306.TSE=10,1306.TSE=1".parse::<Choices<u32>>();
        assert_eq!(
            twice.unwrap_err(),
            "`1306.TSE=1` is a second value for the same instrument; give one"
        );
    }

    #[test]
    fn a_choice_names_an_instrument_by_its_id_or_its_code() {
        let traded = [id("7203.TSE"), id("130A.TSE"), id("25935.TSE")];
        let of = |text: &str| {
            let name: InstrumentName = text.parse().map_err(|error| format!("{error}"))?;
            name.among("--lot", &traded).map(|id| id.to_string()).map_err(|error| error.to_string())
        };
        for (text, wanted) in [
            ("7203.TSE", "7203.TSE"),
            ("7203", "7203.TSE"),
            ("72030", "7203.TSE"),
            ("130A", "130A.TSE"),
            ("25935", "25935.TSE"),
        ] {
            assert_eq!(of(text), Ok(wanted.to_owned()));
        }
        let unknown = "--lot names 1306, which is not among the instruments of this run (7203.TSE, \
                       130A.TSE, 25935.TSE)";
        assert_eq!(of("1306"), Err(unknown.to_owned()));
        assert!(of("7203.NYSE").is_err() && of("72").is_err() && of("").is_err());
        let twins = [id("7203.TSE"), id("72030.TSE")];
        let name = |text: &str| text.parse::<InstrumentName>().unwrap().among("--ticks", &twins);
        assert_eq!(name("7203").unwrap(), twins[0]);
        assert_eq!(name("72030").unwrap(), twins[1]);
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
             fill in its row, or give it: --lot 1306.TSE=1 --ticks 1306.TSE=etf (an ETF with lots of 1), or \
             --lot 1306.TSE=10 --ticks 1306.TSE=topix500 (an ETF with larger lots), or \
             --lot 1306.TSE=1 --ticks 1306.TSE=normal (a REIT)"
        );
        let lot = InstrumentChoices { lots: Choices::all(Quantity::new(10)), ..none.clone() };
        assert!(message("1306,Fund,0109,,,,\n", &lot).contains("has no tick table in"));
        assert!(message("1306,Fund,0109,,etf,,\n", &none).contains("has no lot in"));
        assert!(find(Some("1306,Fund,0109,10,etf,,\n"), &none, None).is_ok());
        // Its row of another time leaves them open too.
        assert!(message("1306,Fund,0109,,,,2024-12-31\n", &none).contains("on 2025-01-06 (market"));
        assert!(message("1306,Fund,0109,,,2025-06-01,\n", &none).contains("on 2025-06-01 (market"));
        assert!(find(Some("1306,,0111,100,normal,2025-06-01,\n"), &none, None).is_ok());
    }

    /// The choices of an error: each is followed, and none fits a lot that the exchange has with other steps.
    #[test]
    fn every_choice_that_an_error_names_is_a_pair_of_the_exchange_and_is_taken() {
        let (one, larger) = (Quantity::new(1), Quantity::new(10));
        let fixed = TickTable::Fixed("0.5".parse().unwrap());
        let lots =
            [None, Some(one), Some(larger), Some(Quantity::new(100)), Some(Quantity::new(7))];
        let tables = [None, Some(TickTable::Etf), Some(TickTable::Topix500), Some(fixed)];
        let mut followed = 0;
        for market in ["0109", "", "0111"] {
            for (lot, ticks) in lots.into_iter().flat_map(|lot| tables.map(|ticks| (lot, ticks))) {
                let lot_text = lot.map_or(String::new(), |lot| lot.to_string());
                let ticks_text = match ticks {
                    Some(TickTable::Fixed(step)) => step.to_string(),
                    table => table.map_or(String::new(), |table| table.to_string()),
                };
                let row = format!("1306,T,{market},{lot_text},{ticks_text},,\n");
                let found = find(Some(&row), &InstrumentChoices::default(), Some(&[27_405_000]));
                if lot.is_some() && ticks.is_some() {
                    assert!(found.is_ok(), "{row}");
                    continue;
                }
                let Err(InstrumentsError::Incomplete { flags, .. }) = found else {
                    panic!("{row} is complete");
                };
                for choice in flags.split(", or ") {
                    let said = choice.split(" (").next().unwrap();
                    let mut choices = InstrumentChoices::default();
                    for pair in said.split("--").skip(1) {
                        let (flag, value) = pair.trim().split_once(' ').unwrap();
                        match flag {
                            "lot" => choices.lots = value.parse().unwrap(),
                            "ticks" => choices.ticks = value.parse().unwrap(),
                            other => panic!("{other} in {flags}"),
                        }
                    }
                    let found = find(Some(&row), &choices, Some(&[27_405_000])).unwrap();
                    let Instrument { lot: shares, ticks: table, .. } = found.instrument;
                    if lot.is_none() && ticks.is_none() {
                        assert!(table != TickTable::Etf || shares == one, "{choice} of {flags}");
                        assert!(shares == one || market != "0109" || table == TickTable::Topix500);
                    }
                    if lot == Some(larger) {
                        assert_ne!(table, TickTable::Etf, "{choice} of {flags}");
                    }
                    followed += 1;
                }
            }
        }
        assert!(followed > 40, "{followed}");
    }

    #[test]
    fn prices_before_the_run_tell_the_ticks_of_an_incomplete_row_where_that_is_asked_for() {
        let mut auto = InstrumentChoices::default();
        assert_eq!(auto.ticks.add(None, TickChoice::Auto), None);
        let row = "1306,Fund,0109,10,,,\n";
        let half_yen = [27_405_000, 27_410_000];
        assert_eq!(
            note(Some(row), &auto, Some(&half_yen)),
            "1306.TSE: lot 10, from instruments.csv; ticks topix500, which fit the only 2 prices known before \
             2025-01-06; its row in instruments.csv has no ticks"
        );
        // Without a price nothing is guessed, and without the word for it neither.
        for (choices, prices) in
            [(&auto, None), (&InstrumentChoices::default(), Some(&half_yen[..]))]
        {
            let error = find(Some(row), choices, prices).unwrap_err().to_string();
            assert!(error.contains("has no tick table in"), "{error}");
            assert_eq!(error.contains("--ticks 1306.TSE=auto"), prices.is_some(), "{error}");
        }
        // The lot is not told by prices.
        let error = find(Some("1306,Fund,0109,,,,\n"), &auto, Some(&half_yen)).unwrap_err();
        assert!(error.to_string().contains("has no lot in"), "{error}");
    }
}
