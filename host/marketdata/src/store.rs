//! Loads single codes of trades files as columns and keeps them in a cache folder.
//!
//! A cache file belongs to a source file's content, not to its name: where the vendor replaces a
//! file, the old cache is simply not asked for any more. Every byte of a cache file is checked when
//! it is opened, and a damaged one is made again, so the cache can be deleted, copied or shared
//! between processes at any time.

mod days;
mod format;
mod grid;
mod memo;
mod segment;
mod spill;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use domain::{JstDate, VendorCode};

use crate::catalog::{BarFile, Period, TradeFile, month_path};
use crate::error::DataError;
use crate::limits::SELECTED_CODES_MAX;
use crate::reader::{
    ProgressFn, ReadOptions, ReadSummary, Selection, read_bars, read_days, read_factors,
    read_trades,
};

use format::{Key, Kind};
use spill::Spill;

pub use grid::PriceGrid;
pub use segment::{BarSegment, CacheOutcome, FactorSegment, Segment, TradeSegment};

/// How often a load starts again when the source file is replaced meanwhile.
const ATTEMPTS_MAX: usize = 3;

/// Decodes the selected codes of a file into columns.
type DecodeFn<'a, const N: usize> = dyn FnMut(&Selection, &mut ProgressFn<'_>, &mut Spill<N>) -> Result<ReadSummary, DataError>
    + 'a;

/// Loads codes of trades and bar files through a cache folder.
#[derive(Debug, Clone)]
pub struct TradeStore {
    folder: PathBuf,
}

/// A segment that has to be decoded, and why its cache file is unusable if there is one.
struct Wanted {
    key: Key,
    damage: Option<String>,
}

impl TradeStore {
    /// A store with its cache in `cache_folder`, which is made with the first cache file.
    #[must_use]
    pub fn new(cache_folder: impl Into<PathBuf>) -> Self {
        Self { folder: cache_folder.into() }
    }

    /// The cache folder.
    #[must_use]
    pub fn cache_folder(&self) -> &Path {
        &self.folder
    }

    /// The rows of `codes` in `file`, one segment for each code, in the order asked for. Codes
    /// that are not in the cache are decoded in one pass over the file; a code without rows gives
    /// an empty segment. Nothing is cached from a file with a fault or after a cancel.
    ///
    /// # Errors
    /// [`DataError`] when the file cannot be read or has a fault that [`Selection::Codes`] sees,
    /// when too many codes are asked for, or when `progress` asks to stop. Trouble with the cache
    /// is never an error, see [`CacheOutcome`].
    pub fn load(
        &self,
        file: &TradeFile,
        codes: &[VendorCode],
        progress: &mut ProgressFn<'_>,
    ) -> Result<Vec<TradeSegment>, DataError> {
        let options = ReadOptions::default();
        self.load_kind(
            Kind::Trades,
            (&file.path, file.period),
            codes,
            progress,
            &mut |selection, progress, columns| {
                read_trades(file, selection, &options, progress, columns)
            },
        )
    }

    /// The bars of `codes` in `file`, like [`TradeStore::load`].
    ///
    /// # Errors
    /// As for trades.
    pub fn load_bars(
        &self,
        file: &BarFile,
        codes: &[VendorCode],
        progress: &mut ProgressFn<'_>,
    ) -> Result<Vec<BarSegment>, DataError> {
        let options = ReadOptions::default();
        let kind = Kind::Bars(file.granularity);
        let from = (&*file.path, file.period);
        self.load_kind(kind, from, codes, progress, &mut |selection, progress, columns| {
            read_bars(file, selection, &options, progress, columns)
        })
    }

    /// The factors of `codes` by the daily bar file `file`, day by day, like [`TradeStore::load`].
    ///
    /// # Errors
    /// As for trades.
    pub fn load_factors(
        &self,
        file: &BarFile,
        codes: &[VendorCode],
        progress: &mut ProgressFn<'_>,
    ) -> Result<Vec<FactorSegment>, DataError> {
        let options = ReadOptions::default();
        let kind = Kind::Factors;
        let from = (&*file.path, file.period);
        self.load_kind(kind, from, codes, progress, &mut |selection, progress, columns| {
            read_factors(file, selection, &options, progress, &mut |row| columns.factor(row))
        })
    }

    /// Whether a day's file is not read, because the file of its whole month beside it has rows of the day: the one
    /// rule by which a day that stands in both counts once, and one that only its own file has is not lost.
    ///
    /// # Errors
    /// [`DataError`] when the month's file cannot be read, or when `progress` asks to stop.
    pub fn is_in_month_file(
        &self,
        path: &Path,
        period: Period,
        progress: &mut ProgressFn<'_>,
    ) -> Result<bool, DataError> {
        let Some((month_file, month)) = month_path(path, period) else { return Ok(false) };
        Ok(self.days_of(&month_file, month, progress)?.contains(&period.first()))
    }

    /// The days of which a month's file has rows.
    fn days_of(
        &self,
        path: &Path,
        month: Period,
        progress: &mut ProgressFn<'_>,
    ) -> Result<BTreeSet<JstDate>, DataError> {
        let unreadable = |source| DataError::Unreadable { path: path.to_path_buf(), source };
        let source = memo::content_hash(&self.folder, path).map_err(unreadable)?;
        if let Some(days) = days::known(&self.folder, source, month) {
            return Ok(days);
        }
        let (found, read) = read_days(path, month, progress)?;
        if read != source {
            memo::forget(&self.folder, path);
        }
        // Without them the file is read again the next time.
        if let Err(error) = days::keep(&self.folder, read, month, &found) {
            tracing::debug!("the days of {} are not kept: {error}", path.display());
        }
        Ok(found)
    }

    fn load_kind<const N: usize>(
        &self,
        kind: Kind,
        (path, period): (&Path, Period),
        codes: &[VendorCode],
        progress: &mut ProgressFn<'_>,
        decode: &mut DecodeFn<'_, N>,
    ) -> Result<Vec<Segment<N>>, DataError> {
        if codes.len() > SELECTED_CODES_MAX {
            return Err(DataError::TooManyCodes { asked: codes.len() });
        }
        let mut source = memo::content_hash(&self.folder, path)
            .map_err(|source| DataError::Unreadable { path: path.to_path_buf(), source })?;
        for _ in 0..ATTEMPTS_MAX {
            let (mut found, wanted) = self.open_cached(kind, source, codes, period);
            let read = match wanted.is_empty() {
                true => source,
                false => self.decode(wanted, &mut found, progress, decode)?,
            };
            if read == source {
                log_outcomes(path, &found);
                let in_order = codes.iter().filter_map(|&code| {
                    found.iter().find(|segment| segment.code() == code).cloned()
                });
                return Ok(in_order.collect());
            }
            // The file was replaced since it was hashed; segments of two contents must not mix.
            memo::forget(&self.folder, path);
            source = read;
        }
        Err(DataError::SourceChanged { path: path.to_path_buf() })
    }

    /// The codes of `file` that the cache holds, and their rows, in rising order of the codes. The file
    /// itself is not read; nothing is known of one that was never loaded or has changed since.
    #[must_use]
    pub fn cached_codes(&self, file: &TradeFile) -> Vec<(VendorCode, u64)> {
        let Some(source) = memo::known_hash(&self.folder, &file.path) else { return Vec::new() };
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut codes: Vec<(VendorCode, u64)> = entries
            .filter_map(|entry| {
                let key = Key::of_file_name(entry.file_name().to_str()?)?;
                let rows = format::rows_in_header(&entry.path(), &key)?;
                (key.source == source).then_some((key.code, rows))
            })
            .collect();
        codes.sort();
        codes
    }

    /// The segments that are in the cache, and those that have to be decoded; each code once.
    fn open_cached<const N: usize>(
        &self,
        kind: Kind,
        source: u128,
        codes: &[VendorCode],
        period: Period,
    ) -> (Vec<Segment<N>>, Vec<Wanted>) {
        let (mut found, mut wanted) = (Vec::new(), Vec::<Wanted>::new());
        for (index, &code) in codes.iter().enumerate() {
            if codes[..index].contains(&code) {
                continue;
            }
            let key = Key { kind, source, code };
            match Segment::open(&self.folder, key) {
                Ok(Some(segment)) if segment.is_within(period) => found.push(segment),
                // The same bytes under another name: reading them tells the line that is wrong there.
                Ok(_) => wanted.push(Wanted { key, damage: None }),
                Err(reason) => wanted.push(Wanted { key, damage: Some(reason) }),
            }
        }
        (found, wanted)
    }

    /// Decodes `wanted` in one pass, adds them to `found` and gives the hash of what was read.
    fn decode<const N: usize>(
        &self,
        wanted: Vec<Wanted>,
        found: &mut Vec<Segment<N>>,
        progress: &mut ProgressFn<'_>,
        decode: &mut DecodeFn<'_, N>,
    ) -> Result<u128, DataError> {
        let selection = Selection::Codes(wanted.iter().map(|wanted| wanted.key.code).collect());
        let mut rows = Spill::new(&self.folder, wanted.len());
        let summary = decode(&selection, progress, &mut rows)?;
        for (index, wanted) in wanted.into_iter().enumerate() {
            let key = Key { source: summary.content_hash, ..wanted.key };
            let outcome = wanted.damage.map_or(CacheOutcome::Built, CacheOutcome::Rebuilt);
            found.push(self.keep(key, outcome, &mut rows, index)?);
        }
        Ok(summary.content_hash)
    }

    /// The rows of one code, from its new cache file where one can be written.
    fn keep<const N: usize>(
        &self,
        key: Key,
        outcome: CacheOutcome,
        rows: &mut Spill<N>,
        index: usize,
    ) -> Result<Segment<N>, DataError> {
        let mut outcome = outcome;
        match rows.save(index, &key) {
            Ok(()) => {
                if let Some(segment) = Segment::of_saved(&self.folder, key, outcome.clone()) {
                    return Ok(segment);
                }
            }
            Err(error) => {
                // Another process may hold the same file open, which some systems do not replace.
                if let Ok(Some(segment)) = Segment::open(&self.folder, key) {
                    return Ok(segment.with_outcome(outcome));
                }
                outcome = CacheOutcome::Unwritable(format!("{}: {error}", self.folder.display()));
            }
        }
        let columns = rows
            .columns(index)
            .map_err(|source| DataError::Unreadable { path: self.folder.clone(), source })?;
        Ok(Segment::from_memory(key, columns, outcome))
    }
}

/// One event for the file: trouble with its cache, else how its codes came about.
fn log_outcomes<const N: usize>(path: &Path, segments: &[Segment<N>]) {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let mut outcomes = segments.iter().map(Segment::outcome);
    let is_trouble = |outcome: &&CacheOutcome| {
        matches!(outcome, CacheOutcome::Rebuilt(_) | CacheOutcome::Unwritable(_))
    };
    if let Some(outcome) = outcomes.clone().find(is_trouble) {
        tracing::warn!("{file}: {outcome}");
    } else if let Some(outcome) = outcomes.next() {
        tracing::debug!(codes = segments.len(), "{file}: {outcome}");
    }
}
