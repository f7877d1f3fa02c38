//! Loads what a run replays: trades, or bars from the vendor's bar files and, for days without one,
//! made from trades.

use std::ops::{ControlFlow, Range};
use std::path::Path;

use anyhow::{Result, bail};
use domain::strategy::BarGranularity;
use domain::time::NANOS_PER_DAY;
use domain::{InstrumentId, JstDate, TickTable, TsNanos, VendorCode};
use marketdata::{
    BarFile, Catalog, DataError, Period, PriceGrid, ProgressFn, TradeFile, TradeStore,
};
use replay::output::InputFile;
use replay::{BarSeries, MarketSeries, TradeSeries, check_instruments};

use crate::args::{Granularity, RunArgs, TickChoice};
use crate::interrupt::Interrupt;
use crate::paths;
use crate::progress::ProgressLine;

/// The data of a run.
pub(crate) struct Loaded {
    pub(crate) series: MarketSeries,
    pub(crate) inputs: Vec<InputFile>,
    /// By instrument.
    pub(crate) ticks: Vec<TickTable>,
    /// First and last date with rows.
    pub(crate) range: (JstDate, JstDate),
    /// Trades, or days where bars are replayed: what progress counts.
    pub(crate) total: u64,
    /// Where bars came from.
    pub(crate) bars_from: Option<&'static str>,
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

/// The data asked for; `None` when the user stopped it.
pub(crate) fn load(args: &RunArgs, interrupt: &Interrupt) -> Result<Option<Loaded>> {
    check_instruments(&args.instruments)?;
    let codes: Vec<VendorCode> =
        args.instruments.iter().map(InstrumentId::vendor_code).collect::<Result<_, _>>()?;
    let (first, last) = (args.start.unwrap_or(JstDate::MIN), args.end.unwrap_or(JstDate::MAX));
    if first > last {
        bail!("--start {first} is after --end {last}");
    }
    let sources = sources(args, first, last)?;
    let mut loader = Loader {
        store: TradeStore::new(paths::cache_folder(&args.folders)?.join("trades")),
        codes: &codes,
        range: (day_start(first), day_end(last)),
        series: match args.granularity.bars() {
            None => Series::Trades(codes.iter().map(|_| TradeSeries::default()).collect()),
            Some(bars) => Series::Bars(codes.iter().map(|_| BarSeries::new(bars)).collect()),
        },
        grids: vec![None; codes.len()],
        inputs: Vec::new(),
    };
    for source in &sources {
        if !loader.take(source, args.quiet, interrupt)? {
            return Ok(None);
        }
    }
    let mut ticks = Vec::new();
    for (instrument, grid) in args.instruments.iter().zip(&loader.grids) {
        let Some(grid) = grid else { bail!(no_data(args, instrument)) };
        ticks.push(match args.ticks {
            TickChoice::Table(table) => table,
            TickChoice::Auto => grid.tick_table(),
        });
    }
    let bars_from = args.granularity.bars().map(|_| bars_from(&loader.inputs));
    let rows = loader.inputs.iter().map(|input| input.rows).sum();
    let series = match loader.series {
        Series::Trades(series) => MarketSeries::of_trades(series),
        Series::Bars(series) => MarketSeries::of_bars(series),
    };
    let calendar = series.calendar();
    let days = calendar.days();
    let range = (days.first().copied(), days.last().copied());
    let range = (range.0.unwrap_or_default(), range.1.unwrap_or_default());
    let total = if bars_from.is_some() { series.day_count() as u64 } else { rows };
    Ok(Some(Loaded { series, inputs: loader.inputs, ticks, range, total, bars_from }))
}

/// The files of the run in time order. Bars of a day come from the bar file that covers it, and only
/// without one from the day's trades.
fn sources(args: &RunArgs, first: JstDate, last: JstDate) -> Result<Vec<Source>> {
    let Some(granularity) = args.granularity.bars() else {
        let catalog = Catalog::open(&args.data)?;
        let files = catalog.overlapping(first, last).cloned();
        return Ok(files.map(|file| Source::Trades(file, vec![(first, last)])).collect());
    };
    let wanted = |period: Period| period.first() <= last && first <= period.last();
    let mut bars = BarFile::list(&args.data, granularity)?;
    bars.retain(|file| wanted(file.period));
    let trades = match Catalog::open(&args.data) {
        Ok(catalog) => catalog.files().to_vec(),
        Err(DataError::NoTradeFiles { .. }) if !bars.is_empty() => Vec::new(),
        Err(error) => return Err(error.into()),
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

fn no_data(args: &RunArgs, instrument: &InstrumentId) -> String {
    let code = instrument.vendor_code().map_or_else(|_| String::new(), |code| code.to_string());
    format!(
        "{} has no {} of {instrument} (vendor code {code}) from {} to {}; look at the names of its \
         files and at the dates",
        args.data.display(),
        if args.granularity == Granularity::Trade { "trades" } else { "bars or trades" },
        args.start.map_or("the beginning".to_owned(), |date| date.to_string()),
        args.end.map_or("the end".to_owned(), |date| date.to_string()),
    )
}

struct Loader<'a> {
    store: TradeStore,
    codes: &'a [VendorCode],
    range: (TsNanos, TsNanos),
    series: Series,
    grids: Vec<Option<PriceGrid>>,
    inputs: Vec<InputFile>,
}

impl Loader<'_> {
    /// Takes the rows of one file; `false` when the user stopped it.
    fn take(&mut self, source: &Source, quiet: bool, interrupt: &Interrupt) -> Result<bool> {
        let name = name_of(source.path());
        let bytes = source.path().metadata().map_or(0, |metadata| metadata.len());
        let mut line = ProgressLine::start(&format!("reading {name}"), bytes, true, quiet);
        let taken = self.take_rows(source, &mut |progress| {
            line.update(progress.compressed_bytes, || format!("{} rows", progress.rows_scanned));
            if interrupt.is_wanted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        line.finish();
        let taken = match taken {
            Err(DataError::Cancelled { .. }) => {
                eprintln!("interrupted while reading {name}; nothing was run");
                return Ok(false);
            }
            other => other?,
        };
        if taken.rows > 0 {
            let xxh3_128 = format!("{:032x}", taken.source_hash);
            self.inputs.push(InputFile { file: name, xxh3_128, rows: taken.rows });
        }
        Ok(true)
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
                    self.join_grid(index, segment.price_grid(), rows == 0);
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
                    self.join_grid(index, segment.price_grid(), rows.is_empty());
                    if let Series::Bars(series) = &mut self.series {
                        series[index].push(&segment, rows);
                    }
                }
            }
        }
        Ok(taken)
    }

    fn join_grid(&mut self, index: usize, found: PriceGrid, is_empty: bool) {
        if !is_empty {
            let grid = &mut self.grids[index];
            *grid = Some(grid.map_or(found, |grid| grid.and(found)));
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

fn day_start(date: JstDate) -> TsNanos {
    TsNanos::from_jst(date, 0).unwrap_or_default()
}

fn day_end(date: JstDate) -> TsNanos {
    TsNanos::from_jst(date, NANOS_PER_DAY).unwrap_or(TsNanos::MAX)
}

impl Granularity {
    /// The span of the bars; none for trades.
    pub(crate) const fn bars(self) -> Option<BarGranularity> {
        match self {
            Self::Trade => None,
            Self::Minute => Some(BarGranularity::Minute),
            Self::Day => Some(BarGranularity::Day),
        }
    }

    /// The name in manifests.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Trade => "trade",
            Self::Minute => "minute",
            Self::Day => "day",
        }
    }
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
