//! One code's rows of one file as columns, from memory or straight from a mapped cache file.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::adjustment::Adjustment;
use domain::market::{Bar, BarGranularity};
use domain::{InstrumentIx, Price, Quantity, TsNanos, VendorCode};
use mmap_guard::{FileData, map_file};

use super::format::{self, Contents, HEADER_BYTES, Key, Kind};
use super::grid::PriceGrid;
use super::spill::OwnedColumns;
use crate::catalog::Period;

/// How a segment came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CacheOutcome {
    /// The cache file was there and intact.
    Hit,
    /// There was no cache file; the source was decoded and one was written.
    Built,
    /// The cache file was unusable for this reason; the source was decoded and a new one written.
    Rebuilt(String),
    /// The source was decoded, but no cache file could be written for this reason.
    Unwritable(String),
}

impl fmt::Display for CacheOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hit => f.write_str("read from the cache"),
            Self::Built => f.write_str("decoded and cached"),
            Self::Rebuilt(reason) => {
                write!(f, "decoded and cached again, the cache file was unusable: {reason}")
            }
            Self::Unwritable(reason) => write!(f, "decoded, not cached: {reason}"),
        }
    }
}

enum Columns<const N: usize> {
    Owned(OwnedColumns<N>),
    Mapped(FileData, Contents),
}

impl<const N: usize> Columns<N> {
    fn column<T: bytemuck::AnyBitPattern>(&self, index: usize) -> &[T] {
        match self {
            Self::Owned(columns) => bytemuck::try_cast_slice(&columns.0[index]).unwrap_or_default(),
            Self::Mapped(map, contents) => cast(map, contents, index),
        }
    }
}

/// The column at `index` of an intact cache file, without a copy.
fn cast<'a, T: bytemuck::AnyBitPattern>(
    map: &'a [u8],
    contents: &Contents,
    index: usize,
) -> &'a [T] {
    let start = HEADER_BYTES + index * contents.stride;
    map.get(start..start + contents.rows * size_of::<u64>())
        .and_then(|bytes| bytemuck::try_cast_slice(bytes).ok())
        .unwrap_or_default()
}

/// One code's rows of one file, in time order, as columns of equal length. Cloning shares them.
#[derive(Clone)]
pub struct Segment<const N: usize> {
    key: Key,
    columns: Arc<Columns<N>>,
    /// The cache file, where the rows are in one.
    path: Option<PathBuf>,
    grid: PriceGrid,
    outcome: CacheOutcome,
}

/// One code's rows of one trades file: timestamp, price, quantity.
pub type TradeSegment = Segment<3>;

/// One code's factors of one daily bar file: timestamp, new and old shares.
pub type FactorSegment = Segment<2>;

/// One code's rows of one bar file: timestamp, open, high, low, close, volume.
pub type BarSegment = Segment<6>;

impl<const N: usize> Segment<N> {
    pub(super) fn from_memory(key: Key, columns: OwnedColumns<N>, outcome: CacheOutcome) -> Self {
        let columns = Columns::Owned(columns);
        let grids = key.kind.prices().map(|index| PriceGrid::of(columns.column(index)));
        Self {
            key,
            grid: grids.reduce(PriceGrid::and).unwrap_or_else(|| PriceGrid::of(&[])),
            columns: Arc::new(columns),
            path: None,
            outcome,
        }
    }

    /// Checks and maps the cache file of `key`; `Ok(None)` where there is none, the reason where it
    /// is unusable. Other processes replace cache files as a whole and never shorten them, so the
    /// mapped bytes stay as they were checked.
    pub(super) fn open(folder: &Path, key: Key) -> Result<Option<Self>, String> {
        let path = folder.join(key.file_name());
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let length = file.metadata().map_err(|error| error.to_string())?.len();
        let contents = format::verify(file, length, &key)?;
        let columns = Arc::new(map(&path, &key)?);
        let outcome = CacheOutcome::Hit;
        Ok(Some(Self { key, columns, path: Some(path), grid: contents.grid, outcome }))
    }

    /// Whether all rows have dates of `period`: their file may have another name since they were read.
    pub(super) fn is_within(&self, period: Period) -> bool {
        let times: &[u64] = self.columns.column(0);
        let is_within = |ts: &u64| period.contains(TsNanos::from_nanos(*ts).jst_date());
        times.first().is_none_or(is_within) && times.last().is_none_or(is_within)
    }

    pub(super) fn with_outcome(self, outcome: CacheOutcome) -> Self {
        Self { outcome, ..self }
    }

    /// Maps the cache file of `key` that was just written.
    pub(super) fn of_saved(folder: &Path, key: Key, outcome: CacheOutcome) -> Option<Self> {
        let path = folder.join(key.file_name());
        let columns = map(&path, &key).ok()?;
        let Columns::Mapped(_, Contents { grid, .. }) = columns else { return None };
        Some(Self { key, columns: Arc::new(columns), path: Some(path), grid, outcome })
    }

    /// The same rows, mapped anew. Rows that were read through a mapping count as memory of this
    /// process until the mapping is dropped, so whoever reads a long segment part by part takes a
    /// renewed one for each part. Rows in memory, and those of a cache file that was deleted in the
    /// meantime, are shared instead.
    #[must_use]
    pub fn renewed(&self) -> Self {
        let columns = self.path.as_ref().and_then(|path| map(path, &self.key).ok());
        Self {
            columns: columns.map_or_else(|| Arc::clone(&self.columns), Arc::new),
            ..self.clone()
        }
    }

    /// The same rows without the memory that reading them has cost so far, to keep for later. Where
    /// the cache file was deleted in the meantime the rows are shared as they are.
    #[must_use]
    pub fn at_rest(&self) -> Self {
        let Columns::Mapped(_, contents) = &*self.columns else { return self.clone() };
        let path = self.path.as_ref();
        // Only the length is looked at: reading the header would cost a block of memory already.
        let unread = path
            .and_then(|path| map_file(path).ok())
            .filter(|map| map.len() == HEADER_BYTES + N * contents.stride);
        let columns = unread.map(|map| Arc::new(Columns::Mapped(map, *contents)));
        Self { columns: columns.unwrap_or_else(|| Arc::clone(&self.columns)), ..self.clone() }
    }

    /// Timestamps in nanoseconds since 1970 in UTC, never falling.
    #[must_use]
    pub fn ts_event(&self) -> &[u64] {
        self.columns.column(0)
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ts_event().len()
    }

    /// Whether the file has no row of the code.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The vendor's code.
    #[must_use]
    pub fn code(&self) -> VendorCode {
        self.key.code
    }

    /// The grid that all prices stand on.
    #[must_use]
    pub fn price_grid(&self) -> PriceGrid {
        self.grid
    }

    /// xxh3-128 of the compressed source file.
    #[must_use]
    pub fn source_hash(&self) -> u128 {
        self.key.source
    }

    /// How the segment came about.
    #[must_use]
    pub fn outcome(&self) -> &CacheOutcome {
        &self.outcome
    }

    /// The rows from `start` up to but not including `end_exclusive`.
    #[must_use]
    pub fn row_range(&self, start: TsNanos, end_exclusive: TsNanos) -> Range<usize> {
        let before = |limit: TsNanos| self.ts_event().partition_point(|&ts| ts < limit.nanos());
        let first = before(start);
        first..before(end_exclusive).max(first)
    }
}

impl Segment<3> {
    /// Prices in 1/10,000 yen, above 0.
    #[must_use]
    pub fn price(&self) -> &[i64] {
        self.columns.column(1)
    }

    /// Shares, above 0.
    #[must_use]
    pub fn quantity(&self) -> &[u64] {
        self.columns.column(2)
    }
}

impl Segment<2> {
    /// The days' closes and how many shares become how many, of each day that the file tells, also
    /// where nothing changes; in the file's order.
    pub fn factors(&self) -> impl Iterator<Item = (TsNanos, Adjustment)> {
        let terms = self.columns.column::<u64>(1).iter();
        self.ts_event().iter().zip(terms).filter_map(|(ts_event, terms)| {
            // Both halves are 32 bits.
            let (new, old) = ((terms >> 32) as u32, *terms as u32);
            Some((TsNanos::from_nanos(*ts_event), Adjustment::from_terms(new, old)?))
        })
    }

    /// Those of [`Self::factors`] that change something.
    pub fn adjustments(&self) -> impl Iterator<Item = (TsNanos, Adjustment)> {
        self.factors().filter(|(_, adjustment)| !adjustment.is_none())
    }
}

impl Segment<6> {
    /// The span of the bars.
    #[must_use]
    pub fn granularity(&self) -> BarGranularity {
        match self.key.kind {
            Kind::Bars(granularity) => granularity,
            // Only bar files are loaded as segments of six columns.
            Kind::Trades | Kind::Factors => BarGranularity::Minute,
        }
    }

    /// The bar at `row`, of the instrument at a position of the caller's list.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn bar(&self, row: usize, instrument: InstrumentIx) -> Bar {
        let price = |index| Price::from_units(self.columns.column::<i64>(index)[row]);
        Bar {
            ts_event: TsNanos::from_nanos(self.ts_event()[row]),
            instrument,
            granularity: self.granularity(),
            open: price(1),
            high: price(2),
            low: price(3),
            close: price(4),
            volume: Quantity::new(self.columns.column::<u64>(5)[row]),
        }
    }
}

/// Maps an intact cache file.
fn map<const N: usize>(path: &Path, key: &Key) -> Result<Columns<N>, String> {
    let map = map_file(path).map_err(|error| error.to_string())?;
    let header = map.first_chunk().ok_or("it was cut")?;
    let contents = format::check_header(header, map.len() as u64, key)?;
    let columns = Columns::Mapped(map, contents);
    if columns.column::<u64>(0).len() != contents.rows {
        return Err("its columns are not aligned".to_owned());
    }
    Ok(columns)
}

impl<const N: usize> fmt::Debug for Segment<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment")
            .field("code", &self.key.code)
            .field("rows", &self.len())
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}
