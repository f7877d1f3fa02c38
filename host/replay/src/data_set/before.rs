//! What the data folder knows of instruments before a run's first day: the last close, which is that day's
//! base price, and the grid of the prices.

use std::ops::ControlFlow;
use std::path::Path;

use domain::market::BarGranularity;
use domain::{ExchangeCalendar, InstrumentIx, JstDate, Price, TsNanos, VendorCode};
use marketdata::{BarFile, Catalog, DataError, Period, PriceGrid, TradeFile, TradeStore};

use super::{DataRequest, day_start, is_in_month_file, name_of};
use crate::error::RequestError;
use crate::observer::RunObserver;
use results::output::InputFile;

/// How many days before a run files of trades and minutes are searched for prices that tell the grid, and with
/// them the last one before the run, however old. Most issues trade every day; such a file of an earlier month
/// costs a minute to read the first time. For an issue without any close in them all older files are searched,
/// the latest first.
const SEARCH_DAYS: usize = 31;
/// The same of daily files, which are small: some issues do not trade for months.
const DAILY_SEARCH_DAYS: usize = 366;
/// Prices from which a grid is believed. That so many prices of half yen are all whole ones by chance does
/// not happen; of the four of a day it does once in sixteen days.
const GRID_PRICES_MIN: usize = 64;

/// Prices before a run and the grid they stand on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeenPrices {
    /// That grid.
    pub(crate) grid: PriceGrid,
    count: usize,
}

impl SeenPrices {
    /// Prices in 1/10,000 yen.
    pub(crate) fn of(prices: &[i64]) -> Self {
        Self { grid: PriceGrid::of(prices), count: prices.len() }
    }

    fn and(self, other: Self) -> Self {
        Self { grid: self.grid.and(other.grid), count: self.count + other.count }
    }

    const fn is_enough(self) -> bool {
        self.count >= GRID_PRICES_MIN
    }

    /// What a guess rests on: `the prices`, or how few there are.
    pub(crate) fn words(self) -> String {
        if self.is_enough() {
            "the prices".to_owned()
        } else {
            format!("the only {} prices known", self.count)
        }
    }
}

/// What is known of an instrument before a date.
#[derive(Debug, Clone, Default)]
pub(super) struct Before {
    close: Option<Close>,
    pub(super) prices: Option<SeenPrices>,
}

#[derive(Debug, Clone)]
struct Close {
    at: TsNanos,
    price: Price,
    file: String,
}

impl Before {
    /// Its last close and the date of that.
    pub(super) fn close(&self) -> Option<(JstDate, Price)> {
        self.close.as_ref().map(|close| (close.at.jst_date(), close.price))
    }

    /// The base price of the first day, in words; `base` is it as shares are counted on that day.
    pub(super) fn words(&self, first: JstDate, base: Option<Price>) -> String {
        match &self.close {
            Some(Close { at, price, file }) if base.is_some_and(|base| base != *price) => {
                let base = base.unwrap_or(*price);
                let date = at.jst_date();
                format!(
                    "base price of {first}: {base}, which is {price} of {date} in {file} after splits"
                )
            }
            Some(Close { at, price, file }) => {
                format!("base price of {first}: {price}, of {} in {file}", at.jst_date())
            }
            None => format!(
                "base price of {first}: no file of earlier days has one; that day has no price \
                 range, and market orders sent before its first trade are rejected"
            ),
        }
    }

    /// Whether its close is of `date` or later.
    fn closes_by(&self, date: JstDate) -> bool {
        self.close.as_ref().is_some_and(|close| close.at.jst_date() >= date)
    }

    /// Whether a file that may know days up to `date` can add nothing.
    fn is_complete(&self, date: JstDate) -> bool {
        self.closes_by(date) && self.prices.is_some_and(SeenPrices::is_enough)
    }

    /// Takes rows in time order, the last one's close, and their prices: those of an old file only where there are
    /// no others.
    fn take(&mut self, at: TsNanos, price: Price, prices: &[i64], (file, is_near): (&str, bool)) {
        if is_near || self.prices.is_none() {
            let prices = SeenPrices::of(prices);
            self.prices = Some(self.prices.map_or(prices, |known| known.and(prices)));
        }
        // Of two files that know the same day the first one read counts.
        if self.close.as_ref().is_none_or(|close| close.at.jst_date() < at.jst_date()) {
            self.close = Some(Close { at, price, file: file.to_owned() });
        }
    }
}

/// A file that may know a close; those that are read fastest come first.
enum Candidate {
    Bars(BarFile),
    Trades(TradeFile),
}

impl Candidate {
    fn is_daily(&self) -> bool {
        matches!(self, Self::Bars(file) if file.granularity == BarGranularity::Day)
    }

    fn period(&self) -> Period {
        match self {
            Self::Bars(file) => file.period,
            Self::Trades(file) => file.period,
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Bars(file) => &file.path,
            Self::Trades(file) => &file.path,
        }
    }
}

/// What is searched for closes before a run.
pub(super) struct Search<'a> {
    pub(super) store: &'a TradeStore,
    pub(super) codes: &'a [VendorCode],
    /// First date of the run.
    pub(super) first: JstDate,
    /// Files that have nothing before it.
    pub(super) read: &'a [&'a Path],
}

impl DataRequest {
    /// What the folder knows of each instrument before a run, and the files that were read for it.
    pub(super) fn before(
        &self,
        search: &Search<'_>,
        calendar: &ExchangeCalendar,
        observer: &mut dyn RunObserver,
    ) -> Result<(Vec<Before>, Vec<InputFile>), RequestError> {
        let first = search.first;
        let mut found = vec![Before::default(); search.codes.len()];
        let mut inputs = Vec::new();
        let (near, old) = self.candidates(first)?;
        let near = near.into_iter().map(|candidate| (candidate, true));
        let candidates = near.chain(old.into_iter().map(|candidate| (candidate, false)));
        for (candidate, is_near) in candidates {
            if search.read.contains(&candidate.path()) {
                continue;
            }
            let last = candidate.period().last().min(first.pred_opt().unwrap_or(first));
            // The latest day that the file can know.
            let latest = calendar.business_day_until(last).unwrap_or(last);
            let adds_nothing = |before: &Before| match is_near {
                true => before.is_complete(latest),
                false => before.closes_by(latest),
            };
            if found.iter().all(adds_nothing) {
                continue;
            }
            let file = (candidate.path(), candidate.period());
            if is_in_month_file(search.store, file, observer)? {
                continue;
            }
            if let Some(hash) = take_file(search, (&candidate, is_near), &mut found, observer)? {
                let file = name_of(candidate.path());
                inputs.push(InputFile { file, xxh3_128: format!("{hash:032x}"), rows: 0 });
            }
        }
        Ok((found, inputs))
    }

    /// The files with days shortly before `first`, or the last days that there are: daily bars, minute bars,
    /// trades, the latest first; and all older ones, the latest first.
    fn candidates(&self, first: JstDate) -> Result<(Vec<Candidate>, Vec<Candidate>), DataError> {
        let back = |days| {
            std::iter::successors(Some(first), JstDate::pred_opt).nth(days).unwrap_or(JstDate::MIN)
        };
        let mut all = Vec::new();
        for granularity in [BarGranularity::Day, BarGranularity::Minute] {
            let files = BarFile::list(&self.folder, granularity)?.into_iter().rev();
            all.extend(files.map(Candidate::Bars));
        }
        match Catalog::open(&self.folder) {
            Ok(catalog) => {
                all.extend(catalog.files().iter().rev().cloned().map(Candidate::Trades));
            }
            Err(DataError::NoTradeFiles { .. }) => {}
            Err(error) => return Err(error),
        }
        all.retain(|candidate: &Candidate| candidate.period().first() < first);
        // The file that the run itself begins in may know nothing before it.
        let ends = all.iter().map(|candidate| candidate.period().last());
        let last = ends.filter(|last| *last < first).max().unwrap_or(first);
        let (daily, others) = (last.min(back(DAILY_SEARCH_DAYS)), last.min(back(SEARCH_DAYS)));
        let is_near = |candidate: &Candidate| {
            candidate.period().last() >= if candidate.is_daily() { daily } else { others }
        };
        // What a daily file does not have of its days was not traded.
        let dailies = all.iter().filter(|one| one.is_daily()).map(Candidate::period);
        let dailies: Vec<Period> = dailies.collect();
        let (near, mut old): (Vec<_>, Vec<_>) = all.into_iter().partition(is_near);
        let is_covered = |period: Period| {
            dailies.iter().any(|day| day.first() <= period.first() && period.last() <= day.last())
        };
        old.retain(|candidate| candidate.is_daily() || !is_covered(candidate.period()));
        // Of files that end on the same day daily bars stay first.
        old.sort_by_key(|candidate| std::cmp::Reverse(candidate.period().last()));
        Ok((near, old))
    }
}

/// Takes what a file knows of days before `first`; gives the hash of its bytes.
fn take_file(
    search: &Search<'_>,
    (candidate, is_near): (&Candidate, bool),
    found: &mut [Before],
    observer: &mut dyn RunObserver,
) -> Result<Option<u128>, RequestError> {
    let Search { store, codes, first, .. } = *search;
    let name = name_of(candidate.path());
    let bytes = candidate.path().metadata().map_or(0, |metadata| metadata.len());
    observer.file_begins(&name, bytes);
    let progress = &mut |progress: marketdata::LoadProgress| {
        observer.file_read(progress.compressed_bytes, progress.rows_scanned);
        if observer.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let taken = match candidate {
        Candidate::Trades(file) => store.load(file, codes, progress).map(|segments| {
            for (segment, before) in segments.iter().zip(&mut *found) {
                let rows = segment.row_range(TsNanos::default(), day_start(first));
                let Some(last) = rows.clone().last() else { continue };
                let at = TsNanos::from_nanos(segment.ts_event()[last]);
                let prices = &segment.price()[rows];
                before.take(
                    at,
                    Price::from_units(prices[prices.len() - 1]),
                    prices,
                    (&name, is_near),
                );
            }
            segments.first().map(|segment| segment.source_hash())
        }),
        Candidate::Bars(file) => store.load_bars(file, codes, progress).map(|segments| {
            for (segment, before) in segments.iter().zip(&mut *found) {
                let rows = segment.row_range(TsNanos::default(), day_start(first));
                let bars = rows.map(|row| segment.bar(row, InstrumentIx(0)));
                let bars: Vec<_> = bars.collect();
                let Some(last) = bars.last() else { continue };
                let prices = bars.iter().flat_map(|bar| [bar.open, bar.high, bar.low, bar.close]);
                let prices: Vec<i64> = prices.map(Price::units).collect();
                before.take(last.ts_event, last.close, &prices, (&name, is_near));
            }
            segments.first().map(|segment| segment.source_hash())
        }),
    };
    observer.file_ends();
    match taken {
        Err(DataError::Cancelled { .. }) => Err(RequestError::Cancelled { file: name }),
        other => Ok(other?),
    }
}
