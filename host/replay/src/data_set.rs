//! The market data of a run: trades, or bars from the vendor's bar files and, for days without one,
//! made from trades.

mod before;
mod live;
pub(crate) mod settings;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use domain::adjustment::ExRights;
use domain::market::BarGranularity;
use domain::time::NANOS_PER_DAY;
use domain::{
    ExchangeCalendar, Instrument, InstrumentId, InstrumentIx, JstDate, Price, TsNanos, VendorCode,
};
use marketdata::calendar_file::{CALENDAR_FILE, read_calendar};
use marketdata::{
    BarFile, Catalog, DataError, FactorSegment, HeaderProblem, InstrumentTable, LoadProgress,
    Period, ProgressFn, ReadOptions, Selection, TradeFile, TradeRow, TradeStore, read_trades,
};
use results::output::{InputFile, SettingsFile};

use crate::days::RunDays;
use crate::error::{NoData, RequestError};
use crate::instruments::{Finder, InstrumentChoices};
use crate::observer::RunObserver;
use crate::options::{UnitChange, check_instruments};
use crate::series::{BarSeries, MarketSeries, TradeSeries};
use before::{Before, Search};

pub(crate) use before::SeenPrices;

/// Codes that a message names.
const CODES_SHOWN: usize = 5;
/// Compressed bytes of a file in which they are looked for.
const LOOKED_AT_BYTES: u64 = 4 << 20;

/// What the strategy sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granularity {
    /// Every trade.
    Trade,
    /// Minute bars.
    Minute,
    /// Daily bars.
    Day,
}

impl Granularity {
    /// The span of the bars; none for trades.
    #[must_use]
    pub const fn bars(self) -> Option<BarGranularity> {
        match self {
            Self::Trade => None,
            Self::Minute => Some(BarGranularity::Minute),
            Self::Day => Some(BarGranularity::Day),
        }
    }

    /// The name in manifests.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trade => "trade",
            Self::Minute => "minute",
            Self::Day => "day",
        }
    }
}

/// Which market data a run wants.
#[derive(Debug, Clone)]
pub struct DataRequest {
    /// Folder with the vendor's files.
    pub folder: PathBuf,
    /// Folder of the cache for decoded data; made when it is missing.
    pub cache: PathBuf,
    /// What is traded, in the order in which the strategy counts them; 1 to 4, none twice.
    pub instruments: Vec<InstrumentId>,
    /// First date in Japan; `None` for the first of the data.
    pub start: Option<JstDate>,
    /// Last date in Japan, included; `None` for the last of the data.
    pub end: Option<JstDate>,
    /// What the strategy sees.
    pub granularity: Granularity,
    /// Lots and price steps that are not to be found.
    pub choices: InstrumentChoices,
}

/// The market data of a run.
#[derive(Debug)]
pub struct DataSet {
    /// The rows, day by day.
    pub series: MarketSeries,
    /// The files that rows came from, in time order.
    pub inputs: Vec<InputFile>,
    /// The folder's tables of instruments and of business days.
    pub settings: Vec<SettingsFile>,
    /// The instruments in the order of the request, as they are on the first day.
    pub instruments: Vec<Instrument>,
    /// Days on which lots or price steps change, in order.
    pub unit_changes: Vec<UnitChange>,
    /// Splits of the instruments by the daily bar files, in the order of their dates.
    pub ex_rights: Vec<ExRights>,
    /// Of each instrument the dates, in order, whose factor daily bar files tell; what looks like a
    /// split then is none.
    pub split_dates_known: Vec<Vec<JstDate>>,
    /// The last close of each instrument before the first day, where one was found.
    pub base_prices: Vec<Option<Price>>,
    /// The exchange's business days.
    pub calendar: ExchangeCalendar,
    /// Names of the instruments by their ids, as far as the instrument table has them.
    pub names: BTreeMap<String, String>,
    /// Where lots, price steps and base prices came from, in words.
    pub notes: Vec<String>,
    /// The days of the run, in order: business days, with and without rows, and dates with rows.
    pub days: Vec<JstDate>,
    /// The first and the last of them.
    pub range: (JstDate, JstDate),
    /// Trades, or days where bars are replayed: what progress counts.
    pub total: u64,
    /// Where bars came from: `vendor`, `trades` or both, or `live`; none for trades.
    pub bars_from: Option<&'static str>,
}

/// One file of a run.
#[derive(Debug)]
enum Source {
    /// A trades file, and the dates that are taken from it: each first and last, in time order.
    Trades(TradeFile, Vec<DateRange>),
    Bars(BarFile),
}

/// First and last date, both included.
type DateRange = (JstDate, JstDate);

impl Source {
    fn path(&self) -> &Path {
        match self {
            Self::Trades(file, _) => &file.path,
            Self::Bars(file) => &file.path,
        }
    }

    fn period(&self) -> Period {
        match self {
            Self::Trades(file, _) => file.period,
            Self::Bars(file) => file.period,
        }
    }
}

/// The series of each instrument.
enum Series {
    Trades(Vec<TradeSeries>),
    Bars(Vec<BarSeries>),
}

impl DataRequest {
    /// Reads the data asked for, through the cache.
    ///
    /// # Errors
    /// [`RequestError`]: dates in the wrong order, no such data, a defect in a file, or
    /// [`RequestError::Cancelled`] when the observer wants an end.
    pub fn load(&self, observer: &mut dyn RunObserver) -> Result<DataSet, RequestError> {
        check_instruments(&self.instruments)?;
        let codes: Vec<VendorCode> =
            self.instruments.iter().map(InstrumentId::vendor_code).collect::<Result<_, _>>()?;
        let (first, last) = (self.start.unwrap_or(JstDate::MIN), self.end.unwrap_or(JstDate::MAX));
        if first > last {
            return Err(RequestError::Dates { first, last });
        }
        let sources = self.sources(first, last)?;
        let mut loader = Loader {
            store: TradeStore::new(self.cache.join("trades")),
            codes: &codes,
            range: (day_start(first), day_end(last)),
            series: match self.granularity.bars() {
                None => Series::Trades(codes.iter().map(|_| TradeSeries::default()).collect()),
                Some(bars) => Series::Bars(codes.iter().map(|_| BarSeries::new(bars)).collect()),
            },
            has_rows: vec![false; codes.len()],
            inputs: Vec::new(),
            factor_inputs: Vec::new(),
            split_dates_known: vec![Vec::new(); codes.len()],
            not_read: Vec::new(),
        };
        observer.load_begins(sources.iter().map(|source| size_of(source.path())).sum());
        for source in &sources {
            loader.take(source, observer)?;
        }
        if let Some(first) = self.instruments.first().filter(|_| !loader.has_rows.contains(&true)) {
            return Err(self.no_data(first, &loader.not_read));
        }
        let bars_from = self.granularity.bars().map(|_| bars_from(&loader.inputs));
        let rows = loader.inputs.iter().map(|input| input.rows).sum();
        let series = std::mem::replace(&mut loader.series, Series::Trades(Vec::new()));
        let series = match series {
            Series::Trades(series) => MarketSeries::of_trades(series),
            Series::Bars(series) => MarketSeries::of_bars(series),
        };
        let calendar = read_calendar(&self.folder)?;
        let days = self.days(series.calendar().days(), &calendar);
        let range = (days.first().copied(), days.last().copied());
        let range = (range.0.unwrap_or_default(), range.1.unwrap_or_default());
        let total = if bars_from.is_some() { days.len() as u64 } else { rows };
        // Without a first date every row of a file that was read is inside the run.
        let read: Vec<&Path> = match self.start {
            None => sources.iter().map(Source::path).collect(),
            Some(_) => Vec::new(),
        };
        let search = Search { store: &loader.store, codes: &codes, first: range.0, read: &read };
        let (before, base_inputs) = self.before(&search, &calendar, observer)?;
        // One that was halted on all of these dates has an earlier price; a wrong name has none.
        for (index, instrument) in self.instruments.iter().enumerate() {
            if !loader.has_rows[index] && before[index].close().is_none() {
                return Err(self.no_data(instrument, &loader.not_read));
            }
        }
        // Splits between the last close and the first day count too.
        let closes = before.iter().filter_map(Before::close).map(|(date, _)| date);
        let splits_from = closes.min().map_or(first, |date| date.min(first));
        let ex_rights = loader.ex_rights(&self.folder, (splits_from, last), observer)?;
        // They are no rows of the run.
        let others = loader.factor_inputs.into_iter().chain(base_inputs);
        for input in others {
            if loader.inputs.iter().all(|known| known.file != input.file) {
                loader.inputs.push(input);
            }
        }
        let mut data = DataSet {
            series,
            inputs: loader.inputs,
            settings: settings::files(&self.folder)?,
            instruments: Vec::new(),
            unit_changes: Vec::new(),
            base_prices: before_first(&before, &ex_rights, range.0),
            split_dates_known: loader.split_dates_known,
            ex_rights,
            calendar,
            names: BTreeMap::new(),
            notes: Vec::new(),
            days,
            range,
            total,
            bars_from,
        };
        let table = InstrumentTable::read(&self.folder)?;
        self.find_instruments((&codes, table.as_ref()), &before, &loader.not_read, &mut data)?;
        Ok(data)
    }

    /// The days of a run over rows of these dates, from the first to the last date asked for, else of the rows.
    fn days(&self, with_rows: &[JstDate], calendar: &ExchangeCalendar) -> Vec<JstDate> {
        // Other dates have no time.
        let (earliest, latest) = (TsNanos::default().jst_date(), TsNanos::MAX.jst_date());
        let asked = |date: Option<JstDate>| date.map(|date| date.clamp(earliest, latest));
        let first = asked(self.start).or(with_rows.first().copied());
        let last = asked(self.end).or(with_rows.last().copied());
        let rows = with_rows.iter().map(|date| (*date, ()));
        RunDays::new(rows, first.zip(last), calendar).map(|(date, _)| date).collect()
    }

    /// Lots, price steps and base prices, with what is to be said of them.
    fn find_instruments(
        &self,
        (codes, table): (&[VendorCode], Option<&InstrumentTable>),
        before: &[Before],
        not_read: &[String],
        data: &mut DataSet,
    ) -> Result<(), RequestError> {
        let finder = Finder {
            choices: &self.choices,
            table,
            folder: &self.folder,
            first: data.range.0,
            last: data.range.1,
        };
        finder.check_names(&self.instruments)?;
        for (index, (id, code)) in self.instruments.iter().zip(codes).enumerate() {
            let before = &before[index];
            // A run has at most 4 instruments.
            let found = finder.find(InstrumentIx(index as u16), id, *code, before.prices)?;
            // A price that splits made is no price of the first day's grid.
            let ticks = found.instrument.ticks;
            let base = data.base_prices[index];
            if base != before.close().map(|(_, price)| price) {
                data.base_prices[index] = base.map(|base| ticks.nearest(base));
            }
            data.instruments.push(found.instrument);
            data.names.extend(finder.name(*code).map(|name| (id.to_string(), name)));
            data.unit_changes.extend(found.changes);
            data.notes.push(found.note);
            data.notes
                .push(format!("{id}: {}", before.words(data.range.0, data.base_prices[index])));
        }
        data.notes.push(calendar_words(&data.calendar, data.range));
        data.notes.extend(doubts(data, not_read));
        data.unit_changes.sort_by_key(|change| (change.date, change.instrument));
        Ok(())
    }

    fn no_data(&self, instrument: &InstrumentId, not_read: &[String]) -> RequestError {
        let not_read = files_not_read(not_read).map(|words| format!("; {words}"));
        RequestError::from(Box::new(NoData {
            folder: self.folder.clone(),
            what: match self.granularity {
                Granularity::Trade => "trades",
                _ => "bars (nor, on days that no bar file covers, trades)",
            },
            instrument: instrument.clone(),
            code: instrument.vendor_code().map_or_else(|_| String::new(), |code| code.to_string()),
            first: self.start.map_or("the beginning".to_owned(), |date| date.to_string()),
            last: self.end.map_or("the end".to_owned(), |date| date.to_string()),
            holds: self.holds().unwrap_or_default(),
            not_read: not_read.unwrap_or_default(),
        }))
    }

    /// The periods of the folder's trades files, and codes at the begin of the first, in words.
    fn holds(&self) -> Option<String> {
        let catalog = Catalog::open(&self.folder).ok()?;
        let (first, last) = (catalog.files().first()?, catalog.files().last()?);
        let codes = RefCell::new(BTreeSet::new());
        let mut watch = |progress: LoadProgress| {
            let is_enough = codes.borrow().len() > CODES_SHOWN;
            match is_enough || progress.compressed_bytes > LOOKED_AT_BYTES {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        // What is wrong further on in the file is not asked here.
        let _ = read_trades(
            first,
            &Selection::All,
            &ReadOptions::default(),
            &mut watch,
            &mut |row: &TradeRow| {
                codes.borrow_mut().insert(row.code);
            },
        );
        let codes = codes.into_inner();
        let shown: Vec<String> = codes.iter().take(CODES_SHOWN).map(ToString::to_string).collect();
        let more = if codes.len() > shown.len() { " and more" } else { "" };
        let (from, to) = (first.period, last.period);
        Some(format!(
            "; its trades files are of {from} to {to}, with the codes {}{more}",
            shown.join(", ")
        ))
        .filter(|_| !shown.is_empty())
    }

    /// The files of the run in time order. Bars of a day come from the bar file that covers it, and only
    /// without one from the day's trades.
    fn sources(&self, first: JstDate, last: JstDate) -> Result<Vec<Source>, DataError> {
        let Some(granularity) = self.granularity.bars() else {
            let catalog = Catalog::open(&self.folder)?;
            let files = catalog.overlapping(first, last).cloned();
            return Ok(files.map(|file| Source::Trades(file, vec![(first, last)])).collect());
        };
        let wanted = |period: Period| period.first() <= last && first <= period.last();
        let mut bars = BarFile::list(&self.folder, granularity)?;
        bars.retain(|file| wanted(file.period));
        let trades = match Catalog::open(&self.folder) {
            Ok(catalog) => catalog.files().to_vec(),
            Err(DataError::NoTradeFiles { .. }) if !bars.is_empty() => Vec::new(),
            Err(error) => return Err(error),
        };
        let covered: Vec<Period> = bars.iter().map(|file| file.period).collect();
        let mut sources: Vec<Source> = bars.into_iter().map(Source::Bars).collect();
        for file in trades {
            let dates = (file.period.first().max(first), file.period.last().min(last));
            let left = dates_left(dates, &covered);
            if !left.is_empty() {
                sources.push(Source::Trades(file, left));
            }
        }
        sources.sort_by_key(|source| source.period().first());
        Ok(sources)
    }
}

/// What notes say of files that no run reads.
const NOT_READ: &str = "not read, because the file of its month has the day: ";
/// What stands between the first of several and their number.
const AND: &str = " and ";
/// What stands after that number.
const MORE: &str = " more";

/// Whether a note is what [`doubts`] says of the vendor's files that no run reads: names of theirs,
/// and nothing else.
pub(crate) fn is_of_files_not_read(note: &str) -> bool {
    let Some(told) = note.strip_prefix(NOT_READ) else { return false };
    let (name, more) = match told.split_once(AND) {
        None => (told, 0),
        Some((name, more)) => {
            let more = more.strip_suffix(MORE).and_then(|more| more.parse::<usize>().ok());
            let Some(more) = more.filter(|more| *more > 0) else { return false };
            (name, more)
        }
    };
    let is_name = TradeFile::from_path(name).is_ok_and(|file| is_day(file.period))
        || BarFile::from_path(name).is_ok_and(|file| is_day(file.period));
    // A name has no folder, and a number is written in one way.
    is_name && !name.contains(['/', '\\']) && note == not_read_words(name, more)
}

const fn is_day(period: Period) -> bool {
    matches!(period, Period::Day(_))
}

/// What is said of files that were not read; nothing where all were.
fn files_not_read(names: &[String]) -> Option<String> {
    let (first, others) = names.split_first()?;
    Some(not_read_words(first, others.len()))
}

fn not_read_words(name: &str, more: usize) -> String {
    format!("{NOT_READ}{name}{}", more_words(more))
}

/// What of the folder was not read, and what of it should not exist.
fn doubts(data: &DataSet, not_read: &[String]) -> Vec<String> {
    let with_rows = data.series.calendar();
    let closed = data.days.iter().filter(|day| !data.calendar.is_business_day(**day));
    let closed: Vec<String> = closed.map(ToString::to_string).collect();
    let mut notes = Vec::new();
    notes.extend(files_not_read(not_read));
    if let [one, ..] = &closed[..] {
        let more = more_words(closed.len() - 1);
        notes.push(format!("rows of days on which the exchange is closed: {one}{more}"));
    }
    let mut missing = data.days.iter().filter(|day| !with_rows.is_business_day(**day));
    if let Some(one) = missing.next() {
        let more = more_words(missing.count());
        notes.push(format!("business days without any row: {one}{more}"));
    }
    notes
}

fn more_words(count: usize) -> String {
    if count == 0 { String::new() } else { format!("{AND}{count}{MORE}") }
}

/// Where business days come from.
fn calendar_words(calendar: &ExchangeCalendar, (first, last): DateRange) -> String {
    const BY_LAW: &str = "Japan's public holidays by law";
    match calendar.listed_range() {
        None => format!("business days: {BY_LAW}; there is no {CALENDAR_FILE}"),
        Some((from, to)) if from <= first && last <= to => {
            format!("business days: {CALENDAR_FILE}, and after {to} {BY_LAW}")
        }
        Some((from, to)) => {
            format!(
                "business days: {CALENDAR_FILE} from {from} to {to} only, on other days {BY_LAW}"
            )
        }
    }
}

/// The last close of each instrument as shares are counted on the first day.
fn before_first(before: &[Before], ex_rights: &[ExRights], first: JstDate) -> Vec<Option<Price>> {
    let adjusted = |(index, before): (usize, &Before)| {
        let (date, price) = before.close()?;
        // A run has at most 4 instruments.
        Some(ExRights::adjusted(ex_rights, InstrumentIx(index as u16), price, (date, first)))
    };
    before.iter().enumerate().map(adjusted).collect()
}

/// The dates that no period covers, in time order.
fn dates_left((first, last): DateRange, covered: &[Period]) -> Vec<DateRange> {
    let mut left: Vec<DateRange> = Vec::new();
    let dates = first.iter_days().take_while(|date| *date <= last);
    for date in dates.filter(|date| !covered.iter().any(|period| period.contains(*date))) {
        match left.last_mut() {
            Some((_, end)) if end.succ_opt() == Some(date) => *end = date,
            _ => left.push((date, date)),
        }
    }
    left
}

/// Where bars came from, told by the names of the files.
fn bars_from(inputs: &[InputFile]) -> &'static str {
    let is_bars = |input: &InputFile| BarFile::from_path(&input.file).is_ok();
    match (inputs.iter().any(is_bars), inputs.iter().all(is_bars)) {
        (_, true) => "vendor",
        (true, false) => "vendor and trades",
        (false, false) => "trades",
    }
}

/// Bytes of a file; reading it tells why there are none.
fn size_of(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}

struct Loader<'a> {
    store: TradeStore,
    codes: &'a [VendorCode],
    range: (TsNanos, TsNanos),
    series: Series,
    /// By instrument.
    has_rows: Vec<bool>,
    inputs: Vec<InputFile>,
    /// Daily files of which only the factors count.
    factor_inputs: Vec<InputFile>,
    /// By instrument the dates whose factor daily files tell, changes or not.
    split_dates_known: Vec<Vec<JstDate>>,
    /// Names of files of days that the file of their month has.
    not_read: Vec<String>,
}

impl Loader<'_> {
    /// Whether a file is not read, because it is of a day that the file of its month has; told once.
    fn is_twice(
        &mut self,
        path: &Path,
        period: Period,
        observer: &dyn RunObserver,
    ) -> Result<bool, RequestError> {
        let is_twice = is_in_month_file(&self.store, (path, period), observer)?;
        let name = name_of(path);
        if is_twice && !self.not_read.contains(&name) {
            self.not_read.push(name);
        }
        Ok(is_twice)
    }

    /// Takes the rows of one file.
    fn take(
        &mut self,
        source: &Source,
        observer: &mut dyn RunObserver,
    ) -> Result<(), RequestError> {
        if self.is_twice(source.path(), source.period(), observer)? {
            return Ok(());
        }
        let name = name_of(source.path());
        observer.file_begins(&name, size_of(source.path()));
        let taken = self.take_rows(source, &mut |progress| {
            observer.file_read(progress.compressed_bytes, progress.rows_scanned);
            if observer.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        observer.file_ends();
        let taken = match taken {
            Err(DataError::Cancelled { .. }) => return Err(RequestError::Cancelled { file: name }),
            other => other?,
        };
        if taken.rows > 0 {
            let xxh3_128 = format!("{:032x}", taken.source_hash);
            self.inputs.push(InputFile { file: name, xxh3_128, rows: taken.rows });
        }
        Ok(())
    }

    fn take_rows(
        &mut self,
        source: &Source,
        progress: &mut ProgressFn<'_>,
    ) -> Result<Taken, DataError> {
        let mut taken = Taken::default();
        match source {
            Source::Trades(file, dates) => {
                let segments = self.store.load(file, self.codes, progress)?;
                for (index, segment) in segments.into_iter().enumerate() {
                    let rows_of = |&(first, last): &DateRange| {
                        segment.row_range(day_start(first), day_end(last))
                    };
                    let ranges: Vec<Range<usize>> =
                        dates.iter().map(rows_of).filter(|rows| !rows.is_empty()).collect();
                    let rows = ranges.iter().map(ExactSizeIterator::len).sum();
                    taken.segment(segment.source_hash(), rows);
                    self.has_rows[index] |= rows > 0;
                    match &mut self.series {
                        Series::Trades(series) => {
                            for rows in ranges {
                                series[index].push(segment.clone(), rows);
                            }
                        }
                        Series::Bars(series) => series[index].push_trades(&segment, &ranges),
                    }
                }
            }
            Source::Bars(file) => {
                let segments = self.store.load_bars(file, self.codes, progress)?;
                for (index, segment) in segments.into_iter().enumerate() {
                    let rows = segment.row_range(self.range.0, self.range.1);
                    taken.segment(segment.source_hash(), rows.len());
                    self.has_rows[index] |= !rows.is_empty();
                    if let Series::Bars(series) = &mut self.series {
                        series[index].push(&segment, rows);
                    }
                }
            }
        }
        Ok(taken)
    }

    /// The splits between two dates, as far as daily bar files in the folder tell them.
    fn ex_rights(
        &mut self,
        folder: &Path,
        (first, last): DateRange,
        observer: &mut dyn RunObserver,
    ) -> Result<Vec<ExRights>, RequestError> {
        let mut found = Vec::new();
        for file in BarFile::list(folder, BarGranularity::Day)? {
            let is_outside = file.period.first() > last || first > file.period.last();
            if is_outside || self.is_twice(&file.path, file.period, observer)? {
                continue;
            }
            let name = name_of(&file.path);
            let loaded = self.store.load_factors(&file, self.codes, &mut |_| {
                if observer.is_cancelled() {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            let segments = match loaded {
                Err(DataError::Cancelled { .. }) => {
                    return Err(RequestError::Cancelled { file: name });
                }
                // Files of other years and sources may come without the column.
                Err(DataError::Header { problem: HeaderProblem::ColumnMissing { .. }, .. }) => {
                    continue;
                }
                other => other?,
            };
            for (index, segment) in segments.iter().enumerate() {
                let dates = segment.factors().map(|(ts_event, _)| ts_event.jst_date());
                self.split_dates_known[index].extend(dates);
                for (ts_event, adjustment) in segment.adjustments() {
                    // A run has at most 4 instruments.
                    let instrument = InstrumentIx(index as u16);
                    found.push(ExRights { date: ts_event.jst_date(), instrument, adjustment });
                }
            }
            self.note_factors(&name, &segments);
        }
        self.split_dates_known.iter_mut().for_each(|dates| dates.sort_unstable());
        found.sort_by_key(|ex_rights| (ex_rights.date, ex_rights.instrument));
        Ok(found)
    }

    /// A daily file that tells splits, or that there are none, belongs to what the run was made from.
    fn note_factors(&mut self, name: &str, segments: &[FactorSegment]) {
        let rows: usize = segments.iter().map(|segment| segment.adjustments().count()).sum();
        if let Some(segment) = segments.first() {
            let xxh3_128 = format!("{:032x}", segment.source_hash());
            self.factor_inputs.push(InputFile {
                file: name.to_owned(),
                xxh3_128,
                rows: rows as u64,
            });
        }
    }
}

/// What was taken from one file.
#[derive(Default)]
struct Taken {
    rows: u64,
    source_hash: u128,
}

impl Taken {
    fn segment(&mut self, source_hash: u128, rows: usize) {
        self.rows += rows as u64;
        self.source_hash = source_hash;
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// [`TradeStore::is_in_month_file`], unless the observer wants an end.
fn is_in_month_file(
    store: &TradeStore,
    (path, period): (&Path, Period),
    observer: &dyn RunObserver,
) -> Result<bool, RequestError> {
    let found = store.is_in_month_file(path, period, &mut |_| {
        if observer.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match found {
        Err(DataError::Cancelled { path, .. }) => {
            Err(RequestError::Cancelled { file: name_of(&path) })
        }
        other => Ok(other?),
    }
}

fn day_start(date: JstDate) -> TsNanos {
    TsNanos::from_jst(date, 0).unwrap_or_default()
}

fn day_end(date: JstDate) -> TsNanos {
    TsNanos::from_jst(date, NANOS_PER_DAY).unwrap_or(TsNanos::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> JstDate {
        text.parse().unwrap()
    }

    #[track_caller]
    fn check(first: &str, last: &str, covered: &[&str], expected: &[(&str, &str)]) {
        let periods: Vec<Period> =
            covered.iter().map(|digits| Period::parse(digits).unwrap()).collect();
        let expected: Vec<DateRange> =
            expected.iter().map(|(first, last)| (date(first), date(last))).collect();
        assert_eq!(dates_left((date(first), date(last)), &periods), expected, "{covered:?}");
    }

    #[test]
    fn trades_make_the_bars_of_the_days_without_a_bar_file() {
        let (first, last) = ("2025-01-01", "2025-01-31");
        check(first, last, &[], &[(first, last)]);
        check(first, last, &["202501"], &[]);
        check(first, last, &["202412", "202502"], &[(first, last)]);
        let parts = [(first, "2025-01-06"), ("2025-01-08", last)];
        check(first, last, &["20250107"], &parts);
        check(first, last, &["20250101", "20250131"], &[("2025-01-02", "2025-01-30")]);
        check("2025-01-07", "2025-01-07", &["20250107"], &[]);
        check("2025-01-08", "2025-01-07", &[], &[]);
    }
}
