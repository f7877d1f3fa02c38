//! Days that were fetched before, so that a run that was interrupted or a database that is made
//! anew does not ask for them again. A damaged file is never used and never an error.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use csv::{ReaderBuilder, StringRecord, Writer};
use domain::{JstDate, Money, Price, TsNanos};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use xxhash_rust::xxh3::xxh3_128;

use crate::limits::{ANSWER_ROWS_MAX, CACHE_FILE_BYTES_MAX};
use crate::row::{DailyRow, SourceKind};

/// First words of a file, with the version of its form.
const FORM: &str = "kumiki-day 1";
/// Bytes of one row's text at most: a code, four prices, a volume, a turnover, a factor.
const ROW_BYTES_MAX: usize = 256;
/// No file is written for so long.
const LEFTOVER_AGE: Duration = Duration::from_secs(3_600);
/// Bytes of the first line at most.
const FIRST_LINE_BYTES_MAX: usize = 200;

/// Whole days of one source, a file for each.
#[derive(Debug, Clone)]
pub struct DayCache {
    folder: PathBuf,
    source: SourceKind,
}

/// What the cache has.
#[derive(Debug)]
pub enum Cached {
    /// All rows of the day, as they came from the source.
    Rows(Vec<DailyRow>),
    /// No file of the day.
    Missing,
    /// A file that cannot be used, and why.
    Damaged(String),
}

impl DayCache {
    /// The cache of a source below a cache folder; nothing needs to be there yet.
    #[must_use]
    pub fn new(cache_folder: &Path, source: SourceKind) -> Self {
        Self { folder: cache_folder.join(format!("{source}-daily")), source }
    }

    /// The same of another server than the source's own: what it says is kept apart, and never taken for what
    /// another one has said.
    #[must_use]
    pub fn of_server(mut self, address: &str, own: &str) -> Self {
        let address = address.trim_end_matches('/');
        if address != own.trim_end_matches('/') {
            let digest = xxh3_128(address.as_bytes()) as u64;
            self.folder.set_file_name(format!("{}-daily-{digest:016x}", self.source));
        }
        self
    }

    /// The file of a day.
    #[must_use]
    pub fn path(&self, date: JstDate) -> PathBuf {
        self.folder.join(format!("{}.day", date.format("%Y%m%d")))
    }

    /// Looks a day up.
    #[must_use]
    pub fn load(&self, date: JstDate) -> Cached {
        let path = self.path(date);
        let file = match atomic_file::open_to_read(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Cached::Missing,
            Err(error) => return Cached::Damaged(format!("{}: {error}", path.display())),
        };
        match self.read(file, date) {
            Ok(rows) => Cached::Rows(rows),
            Err(what) => Cached::Damaged(format!("{}: {what}", path.display())),
        }
    }

    fn read(&self, file: File, date: JstDate) -> Result<Vec<DailyRow>, String> {
        let mut bytes = Vec::new();
        let told = |error: io::Error| error.to_string();
        file.take(CACHE_FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(told)?;
        if bytes.len() as u64 > CACHE_FILE_BYTES_MAX {
            return Err(format!("larger than {CACHE_FILE_BYTES_MAX} bytes"));
        }
        let end = bytes.iter().take(FIRST_LINE_BYTES_MAX).position(|&byte| byte == b'\n');
        let (first, packed) = bytes.split_at(end.ok_or("no first line")?);
        let packed = &packed[1..];
        let first = str::from_utf8(first).map_err(|_| "no first line")?;
        let (head, digest) = first.rsplit_once(' ').ok_or("no digest")?;
        let rest = head.strip_prefix(&format!("{FORM} {} {date} ", self.source));
        let count: usize =
            rest.and_then(|count| count.parse().ok()).ok_or("of another form or day")?;
        if count > ANSWER_ROWS_MAX {
            return Err(format!("more than {ANSWER_ROWS_MAX} rows"));
        }
        if digest != digest_of(head, packed) {
            return Err("its checksum does not match".to_owned());
        }
        let limit = (count * ROW_BYTES_MAX) as u64;
        let text = GzDecoder::new(packed).take(limit);
        let mut lines = ReaderBuilder::new().has_headers(false).from_reader(text);
        let rows = lines.records().map(|record| {
            let record = record.map_err(|error| error.to_string())?;
            self.row(&record, date).ok_or_else(|| format!("`{}` is no row", record.as_slice()))
        });
        let rows: Vec<DailyRow> = rows.collect::<Result<_, String>>()?;
        (rows.len() == count).then_some(rows).ok_or_else(|| "rows are missing".to_owned())
    }

    fn row(&self, record: &StringRecord, date: JstDate) -> Option<DailyRow> {
        let cells: Vec<&str> = record.iter().collect();
        let &[code, open, high, low, close, volume, turnover, factor] = cells.as_slice() else {
            return None;
        };
        fn cell<T: std::str::FromStr>(text: &str) -> Option<Option<T>> {
            if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) }
        }
        Some(DailyRow {
            date,
            code: code.parse().ok()?,
            open: cell::<Price>(open)?,
            high: cell::<Price>(high)?,
            low: cell::<Price>(low)?,
            close: cell::<Price>(close)?,
            volume: cell(volume)?,
            turnover: cell::<Money>(turnover)?,
            adjustment_factor: cell(factor)?,
            source: self.source,
        })
    }

    /// Removes what a killed job has left half written. Files that are not old may be another job's, which keeps
    /// its days in the same folder.
    ///
    /// # Errors
    /// What the system says.
    pub fn remove_leftovers(&self, now: TsNanos) -> io::Result<()> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            if !name.to_string_lossy().starts_with(atomic_file::UNFINISHED_PREFIX) {
                continue;
            }
            let written = entry.metadata()?.modified()?.duration_since(UNIX_EPOCH);
            let age = Duration::from_nanos(now.nanos()).checked_sub(written.unwrap_or_default());
            if age.is_some_and(|age| age > LEFTOVER_AGE) {
                atomic_file::remove_if_there(&entry.path())?;
            }
        }
        Ok(())
    }

    /// Forgets a day.
    ///
    /// # Errors
    /// What the system says.
    pub fn forget(&self, date: JstDate) -> io::Result<()> {
        atomic_file::remove_if_there(&self.path(date))
    }

    /// Keeps a day. All rows must be of the day and the cache's source.
    ///
    /// # Errors
    /// What the system says; the day is then simply not kept.
    pub fn store(&self, date: JstDate, rows: &[DailyRow]) -> io::Result<()> {
        let mut lines = Writer::from_writer(GzEncoder::new(Vec::new(), Compression::fast()));
        for row in rows {
            lines.write_record([
                row.code.as_str(),
                &text(row.open),
                &text(row.high),
                &text(row.low),
                &text(row.close),
                &text(row.volume),
                &text(row.turnover),
                &text(row.adjustment_factor),
            ])?;
        }
        let packed = lines.into_inner().map_err(|error| error.into_error())?.finish()?;
        let head = format!("{FORM} {} {date} {}", self.source, rows.len());
        let mut bytes = format!("{head} {}\n", digest_of(&head, &packed)).into_bytes();
        bytes.extend_from_slice(&packed);
        atomic_file::write(&self.path(date), &bytes)
    }
}

fn text(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn digest_of(head: &str, packed: &[u8]) -> String {
    let mut bytes = head.as_bytes().to_vec();
    bytes.extend_from_slice(packed);
    format!("{:032x}", xxh3_128(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date() -> JstDate {
        "2026-01-05".parse().unwrap()
    }

    fn rows() -> Vec<DailyRow> {
        let price = |text: &str| Some(text.parse().unwrap());
        let traded = DailyRow {
            date: date(),
            code: "130A".parse().unwrap(),
            open: price("100.1"),
            high: price("110"),
            low: price("99.9999"),
            close: price("105"),
            volume: Some(1_200),
            turnover: Some("123456.5".parse().unwrap()),
            adjustment_factor: Some(0.5),
            source: SourceKind::Vendor,
        };
        let quiet = DailyRow::bare(date(), "25935".parse().unwrap(), SourceKind::Vendor);
        vec![traded, quiet]
    }

    fn stored() -> (tempfile::TempDir, DayCache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = DayCache::new(folder.path(), SourceKind::Vendor);
        cache.store(date(), &rows()).unwrap();
        (folder, cache)
    }

    #[test]
    fn a_day_comes_back_as_it_was() {
        let (folder, cache) = stored();
        assert!(matches!(cache.load(date()), Cached::Rows(found) if found == rows()));
        let other = date().succ_opt().unwrap();
        assert!(matches!(cache.load(other), Cached::Missing));
        // Under another day's name it is no day's.
        fs::rename(cache.path(date()), cache.path(other)).unwrap();
        assert!(
            matches!(cache.load(other), Cached::Damaged(what) if what.contains("another form or day"))
        );
        let names: Vec<_> = fs::read_dir(folder.path().join("vendor-daily")).unwrap().collect();
        assert_eq!(names.len(), 1, "nothing is left beside");
    }

    #[test]
    fn servers_do_not_share_their_days() {
        let (folder, cache) = stored();
        let of = |address: &str| cache.clone().of_server(address, "https://vendor.example/v2");
        assert!(matches!(of("https://vendor.example/v2/").load(date()), Cached::Rows(_)));
        let (one, other) = (of("http://127.0.0.1:1/v2"), of("http://127.0.0.1:2/v2"));
        one.store(date(), &rows()).unwrap();
        assert!(matches!(one.load(date()), Cached::Rows(_)));
        assert!(matches!(other.load(date()), Cached::Missing));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn no_damage_goes_unseen() {
        let (_folder, cache) = stored();
        let whole = fs::read(cache.path(date())).unwrap();
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 1;
            fs::write(cache.path(date()), &damaged).unwrap();
            assert!(matches!(cache.load(date()), Cached::Damaged(_)), "byte {place}");
            fs::write(cache.path(date()), &whole[..place]).unwrap();
            assert!(matches!(cache.load(date()), Cached::Damaged(_)), "cut at {place}");
        }
    }

    #[test]
    fn a_large_file_is_not_read() {
        let (_folder, cache) = stored();
        let file = File::options().write(true).open(cache.path(date())).unwrap();
        file.set_len(CACHE_FILE_BYTES_MAX + 1).unwrap();
        assert!(
            matches!(cache.load(date()), Cached::Damaged(what) if what.contains("larger than"))
        );
    }
}
