//! Which trades files a folder holds and which dates each covers.

use std::fmt;
use std::path::{Path, PathBuf};

use chrono::{Datelike, Months};
use domain::JstDate;
use domain::market::BarGranularity;

use crate::error::DataError;

const TRADES_START: &str = "equities_trades_";
const MINUTE_START: &str = "equities_bars_minute_";
const DAY_START: &str = "equities_bars_daily_";
const NAME_END: &str = ".csv.gz";

/// The dates that a file covers, as its name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Period {
    /// A whole month.
    Month {
        /// The year, four digits.
        year: i32,
        /// The month, 1 to 12.
        month: u32,
    },
    /// One day, a date in Japan.
    Day(JstDate),
}

impl Period {
    /// The period named by `YYYYMM` or `YYYYMMDD`, or `None` for anything else.
    #[must_use]
    pub fn parse(digits: &str) -> Option<Self> {
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let year = digits.get(..4)?.parse().ok()?;
        let month = digits.get(4..6)?.parse().ok()?;
        match digits.len() {
            6 => JstDate::from_ymd_opt(year, month, 1).map(|_| Self::Month { year, month }),
            8 => JstDate::from_ymd_opt(year, month, digits.get(6..)?.parse().ok()?).map(Self::Day),
            _ => None,
        }
    }

    /// The first date, inclusive.
    #[must_use]
    pub fn first(self) -> JstDate {
        match self {
            Self::Month { year, month } => {
                JstDate::from_ymd_opt(year, month, 1).unwrap_or(JstDate::MIN)
            }
            Self::Day(date) => date,
        }
    }

    /// The last date, inclusive.
    #[must_use]
    pub fn last(self) -> JstDate {
        match self {
            Self::Month { .. } => self
                .first()
                .checked_add_months(Months::new(1))
                .and_then(|next| next.pred_opt())
                .unwrap_or(JstDate::MAX),
            Self::Day(date) => date,
        }
    }

    /// Whether the two have a date in common.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.first() <= other.last() && other.first() <= self.last()
    }

    /// Whether `date` belongs to the period.
    #[must_use]
    pub fn contains(self, date: JstDate) -> bool {
        match self {
            Self::Month { year, month } => date.year() == year && date.month() == month,
            Self::Day(day) => date == day,
        }
    }
}

/// Prints `2025-01` or `2025-01-06`.
impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Month { year, month } => write!(f, "{year:04}-{month:02}"),
            Self::Day(date) => write!(f, "{date}"),
        }
    }
}

/// One trades file of the vendor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TradeFile {
    /// Where it is.
    pub path: PathBuf,
    /// Which dates its rows may have.
    pub period: Period,
}

impl TradeFile {
    /// The trades file at `path`, its period read from the name. The file is not opened.
    ///
    /// # Errors
    /// [`DataError::NotATradeFile`] when the name is not one that the vendor gives.
    pub fn from_path(path: impl Into<PathBuf>) -> Result<Self, DataError> {
        let path = path.into();
        match period_of(&path, TRADES_START) {
            Some(period) => Ok(Self { path, period }),
            None => Err(DataError::NotATradeFile { path }),
        }
    }
}

fn period_of(path: &Path, name_start: &str) -> Option<Period> {
    let name = path.file_name()?.to_str()?;
    Period::parse(name.strip_prefix(name_start)?.strip_suffix(NAME_END)?)
}

/// The name that the vendor gives to the trades file of a month.
pub(crate) fn month_file_name(year: i32, month: u32) -> String {
    format!("{TRADES_START}{year:04}{month:02}{NAME_END}")
}

/// The name that the vendor gives to the trades file of a day.
pub(crate) fn day_file_name(date: JstDate) -> String {
    format!("{TRADES_START}{}{NAME_END}", date.format("%Y%m%d"))
}

/// The name that the vendor gives to the bar file of a month.
pub(crate) fn month_bar_file_name(granularity: BarGranularity, year: i32, month: u32) -> String {
    format!("{}{year:04}{month:02}{NAME_END}", bar_name_start(granularity))
}

const fn bar_name_start(granularity: BarGranularity) -> &'static str {
    match granularity {
        BarGranularity::Minute => MINUTE_START,
        BarGranularity::Day => DAY_START,
    }
}

/// One bar file of the vendor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BarFile {
    /// Where it is.
    pub path: PathBuf,
    /// Which dates its rows may have.
    pub period: Period,
    /// The span of its bars.
    pub granularity: BarGranularity,
}

impl BarFile {
    /// The bar file at `path`, its period and its bars' span read from the name. The file is not
    /// opened.
    ///
    /// # Errors
    /// [`DataError::NotABarFile`] when the name is not one that the vendor gives.
    pub fn from_path(path: impl Into<PathBuf>) -> Result<Self, DataError> {
        let path = path.into();
        for granularity in [BarGranularity::Minute, BarGranularity::Day] {
            if let Some(period) = period_of(&path, bar_name_start(granularity)) {
                return Ok(Self { path, period, granularity });
            }
        }
        Err(DataError::NotABarFile { path })
    }

    /// The bar files of one span in `folder`, in time order, a month before its days; none where there are none.
    /// Of days that stand in two of them [`crate::TradeStore::is_in_month_file`] tells which counts.
    ///
    /// # Errors
    /// [`DataError::FolderUnreadable`] when the folder is missing or may not be listed.
    pub fn list(
        folder: impl AsRef<Path>,
        granularity: BarGranularity,
    ) -> Result<Vec<Self>, DataError> {
        let files = vendor_files(folder.as_ref(), bar_name_start(granularity))?.into_iter();
        Ok(files.map(|(path, period)| Self { path, period, granularity }).collect())
    }
}

/// The files in `folder` whose names start so, in time order, a month before its days.
pub(crate) fn vendor_files(
    folder: &Path,
    name_start: &str,
) -> Result<Vec<(PathBuf, Period)>, DataError> {
    let unreadable = |source| DataError::FolderUnreadable { path: folder.to_path_buf(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let Some(period) = period_of(&path, name_start) else { continue };
        // Without it a result on part of the data would look like one on all of it.
        if !path.is_file() {
            return Err(DataError::NotAFile { path });
        }
        files.push((path, period));
    }
    files.sort_by_key(|(_, period)| (period.first(), matches!(period, Period::Day(_))));
    Ok(files)
}

/// The file of the whole month beside a file of one of its days, where it is there.
pub(crate) fn month_path(path: &Path, period: Period) -> Option<(PathBuf, Period)> {
    let Period::Day(date) = period else { return None };
    let digits = date.format("%Y%m%d").to_string();
    let start = path.file_name()?.to_str()?.strip_suffix(NAME_END)?.strip_suffix(&digits)?;
    let month = Period::Month { year: date.year(), month: date.month() };
    let path = path.with_file_name(format!("{start}{}{NAME_END}", &digits[..6]));
    path.is_file().then_some((path, month))
}

/// The trades files of one folder, in time order, a month before its days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalog {
    files: Vec<TradeFile>,
}

impl Catalog {
    /// Lists the trades files in `folder`, not in folders below it; other files are ignored. Of
    /// days that stand in two of them [`crate::TradeStore::is_in_month_file`] tells which counts.
    ///
    /// # Errors
    /// [`DataError::FolderUnreadable`] when the folder is missing or may not be listed,
    /// [`DataError::NoTradeFiles`] when it holds no trades file.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, DataError> {
        let folder = folder.as_ref();
        let files = vendor_files(folder, TRADES_START)?.into_iter();
        let files: Vec<_> = files.map(|(path, period)| TradeFile { path, period }).collect();
        if files.is_empty() {
            return Err(DataError::NoTradeFiles { path: folder.to_path_buf() });
        }
        Ok(Self { files })
    }

    /// All files, in time order.
    #[must_use]
    pub fn files(&self) -> &[TradeFile] {
        &self.files
    }

    /// The files that may hold rows from `first` to `last`, both inclusive, in time order.
    pub fn overlapping(&self, first: JstDate, last: JstDate) -> impl Iterator<Item = &TradeFile> {
        self.files
            .iter()
            .filter(move |file| file.period.first() <= last && first <= file.period.last())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            std::fs::write(folder.path().join(name), b"").unwrap();
        }
        folder
    }

    fn periods<'a>(files: impl IntoIterator<Item = &'a TradeFile>) -> Vec<String> {
        let files = files.into_iter();
        files.map(|file| file.period.to_string()).collect()
    }

    fn date(text: &str) -> JstDate {
        text.parse().unwrap()
    }

    #[test]
    fn lists_months_and_days_in_time_order() {
        let folder = folder_with(&[
            "equities_trades_20250203.csv.gz",
            "equities_trades_202501.csv.gz",
            "equities_trades_20250106.csv.gz",
            "equities_trades_202412.csv.gz",
            "equities_trades_20250131.csv.gz",
            "equities_trades_20250201.csv.gz",
            "equities_trades_202513.csv.gz",
            "equities_trades_20250230.csv.gz",
            "equities_trades_2025.csv.gz",
            "equities_trades_202502.csv",
            "equities_bars_minute_20250203.csv.gz",
            "README.md",
        ]);
        let catalog = Catalog::open(folder.path()).unwrap();
        let all = ["2024-12", "2025-01", "2025-01-06", "2025-01-31", "2025-02-01", "2025-02-03"];
        assert_eq!(periods(catalog.files()), all);
        let between = |first, last| periods(catalog.overlapping(date(first), date(last)));
        assert_eq!(between("2024-12-31", "2025-01-01"), ["2024-12", "2025-01"]);
        assert_eq!(between("2025-01-31", "2025-02-02"), ["2025-01", "2025-01-31", "2025-02-01"]);
        assert_eq!(between("2025-02-02", "2025-02-02"), Vec::<String>::new());
    }

    #[test]
    fn a_folder_with_the_name_of_a_file_is_refused() {
        let folder = folder_with(&["equities_trades_202412.csv.gz"]);
        let taken = folder.path().join("equities_trades_202503.csv.gz");
        std::fs::create_dir(&taken).unwrap();
        let error = Catalog::open(folder.path()).unwrap_err();
        assert!(matches!(&error, DataError::NotAFile { path } if *path == taken), "{error}");
    }

    #[test]
    fn bar_files_are_listed_by_their_span() {
        let folder = folder_with(&[
            "equities_bars_minute_20250204.csv.gz",
            "equities_bars_minute_202501.csv.gz",
            "equities_bars_minute_20250106.csv.gz",
            "equities_bars_daily_202501.csv.gz",
            "equities_trades_202501.csv.gz",
        ]);
        let list = |granularity| -> Vec<String> {
            let files = BarFile::list(folder.path(), granularity).unwrap();
            files.iter().map(|file| file.period.to_string()).collect()
        };
        assert_eq!(list(BarGranularity::Minute), ["2025-01", "2025-01-06", "2025-02-04"]);
        assert_eq!(list(BarGranularity::Day), ["2025-01"]);
        let file = BarFile::from_path("x/equities_bars_daily_20250106.csv.gz").unwrap();
        assert_eq!(
            (file.granularity, file.period),
            (BarGranularity::Day, Period::Day(date("2025-01-06")))
        );
        let error = BarFile::from_path("equities_trades_202501.csv.gz").unwrap_err();
        assert!(matches!(error, DataError::NotABarFile { .. }));
    }

    #[test]
    fn missing_folders_and_files_say_what_to_do() {
        let folder = folder_with(&["notes.txt"]);
        let message = Catalog::open(folder.path()).unwrap_err().to_string();
        assert_eq!(
            message,
            format!(
                "no trades file in {}; looked for equities_trades_YYYYMM.csv.gz and \
                 equities_trades_YYYYMMDD.csv.gz; name the folder that holds the vendor's files",
                folder.path().display()
            )
        );
        let missing = folder.path().join("missing");
        let error = Catalog::open(&missing).unwrap_err();
        assert!(matches!(error, DataError::FolderUnreadable { path, .. } if path == missing));
        let error = TradeFile::from_path("trades.csv").unwrap_err();
        assert!(matches!(error, DataError::NotATradeFile { .. }));
    }

    #[test]
    fn periods_know_their_dates() {
        let february = Period::parse("202402").unwrap();
        assert_eq!(february.last(), date("2024-02-29"));
        assert!(february.contains(date("2024-02-01")) && !february.contains(date("2025-02-01")));
        let day = Period::parse("20240229").unwrap();
        assert!(day.contains(date("2024-02-29")) && !day.contains(date("2024-02-28")));
        assert_eq!(Period::parse("2024-2"), None);
    }
}
