//! One code's rows of one file as columns, from memory or straight from a mapped cache file.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use domain::{TsNanos, VendorCode};
use mmap_guard::{FileData, map_file};

use crate::reader::{TradeRow, TradeSink};
use crate::temporary::temporary_in;

use super::format::{self, ColumnBytes, Contents, HEADER_BYTES, Key};
use super::grid::PriceGrid;

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

/// Columns in memory.
#[derive(Debug, Default)]
pub(super) struct OwnedColumns {
    ts_event: Vec<u64>,
    price: Vec<i64>,
    quantity: Vec<u64>,
}

impl OwnedColumns {
    fn bytes(&self) -> ColumnBytes<'_> {
        ColumnBytes([
            bytemuck::cast_slice(&self.ts_event),
            bytemuck::cast_slice(&self.price),
            bytemuck::cast_slice(&self.quantity),
        ])
    }
}

/// Columns of several codes, filled by one pass over a file.
impl TradeSink for Vec<OwnedColumns> {
    #[inline(always)]
    fn trade(&mut self, row: &TradeRow) {
        if let Some(columns) = self.get_mut(row.code_index) {
            columns.ts_event.push(row.ts_event);
            columns.price.push(row.price);
            columns.quantity.push(row.quantity);
        }
    }
}

enum Columns {
    Owned(OwnedColumns),
    Mapped(FileData, Contents),
}

impl Columns {
    fn ts_event(&self) -> &[u64] {
        match self {
            Self::Owned(columns) => &columns.ts_event,
            Self::Mapped(map, contents) => cast(map, contents, 0),
        }
    }

    fn price(&self) -> &[i64] {
        match self {
            Self::Owned(columns) => &columns.price,
            Self::Mapped(map, contents) => cast(map, contents, 1),
        }
    }

    fn quantity(&self) -> &[u64] {
        match self {
            Self::Owned(columns) => &columns.quantity,
            Self::Mapped(map, contents) => cast(map, contents, 2),
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

/// One code's rows of one trades file, in time order: three columns of equal length. Cloning
/// shares them.
#[derive(Clone)]
pub struct TradeSegment {
    key: Key,
    columns: Arc<Columns>,
    grid: PriceGrid,
    outcome: CacheOutcome,
}

impl TradeSegment {
    pub(super) fn from_memory(key: Key, columns: OwnedColumns, outcome: CacheOutcome) -> Self {
        Self {
            key,
            grid: PriceGrid::of(&columns.price),
            columns: Arc::new(Columns::Owned(columns)),
            outcome,
        }
    }

    /// Maps the cache file of `key`; `Ok(None)` where there is none, the reason where it is
    /// unusable. Other processes replace cache files as a whole and never shorten them, so the
    /// mapped bytes stay as they were checked.
    pub(super) fn open(folder: &Path, key: Key) -> Result<Option<Self>, String> {
        let map = match map_file(folder.join(key.file_name())) {
            Ok(map) => map,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            // An empty file cannot be mapped at all.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                return Err("it has only 0 bytes".to_owned());
            }
            Err(error) => return Err(error.to_string()),
        };
        let contents = format::verify(&map, &key)?;
        let columns = Columns::Mapped(map, contents);
        if columns.ts_event().len() != contents.rows {
            return Err("its columns are not aligned".to_owned());
        }
        Ok(Some(Self {
            key,
            columns: Arc::new(columns),
            grid: contents.grid,
            outcome: CacheOutcome::Hit,
        }))
    }

    /// Writes the cache file beside its name and renames it, so that readers see all or nothing.
    pub(super) fn save(&self, folder: &Path) -> io::Result<()> {
        let Columns::Owned(columns) = &*self.columns else {
            return Ok(());
        };
        std::fs::create_dir_all(folder)?;
        let mut out = BufWriter::new(temporary_in(folder)?);
        format::write(&mut out, &self.key, self.grid, columns.bytes())?;
        out.flush()?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.persist(folder.join(self.key.file_name()))?;
        Ok(())
    }

    pub(super) fn with_outcome(self, outcome: CacheOutcome) -> Self {
        Self { outcome, ..self }
    }

    /// Moments in nanoseconds since 1970 in UTC, never falling.
    #[must_use]
    pub fn ts_event(&self) -> &[u64] {
        self.columns.ts_event()
    }

    /// Prices in 1/10,000 yen, above 0.
    #[must_use]
    pub fn price(&self) -> &[i64] {
        self.columns.price()
    }

    /// Shares, above 0.
    #[must_use]
    pub fn quantity(&self) -> &[u64] {
        self.columns.quantity()
    }

    /// Rows.
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

impl fmt::Debug for TradeSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TradeSegment")
            .field("code", &self.key.code)
            .field("rows", &self.len())
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}
