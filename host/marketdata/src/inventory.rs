//! What a data folder holds: kinds of files, periods, sizes, and what is wrong with the whole.
//!
//! Names and sizes only; no file but a Parquet file's end is opened.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use chrono::{Datelike, Months};
use domain::JstDate;

use crate::catalog::Period;
use crate::error::DataError;
use crate::limits::INVENTORY_FILES_MAX;
use crate::parquet::TableReader;

/// What a file is, as its name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// `equities_trades_YYYYMM.csv.gz` or `_YYYYMMDD`.
    Trades,
    /// `equities_bars_minute_YYYYMM.csv.gz` or `_YYYYMMDD`.
    MinuteBars,
    /// `equities_bars_daily_YYYYMM.csv.gz` or `_YYYYMMDD`.
    DailyBars,
    /// `*.parquet`.
    Parquet,
    /// Named like a vendor's file, with a period that does not exist.
    BadName,
    /// A file of no kind above; it is counted and not read.
    Other,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Trades => "trades",
            Self::MinuteBars => "minute bars",
            Self::DailyBars => "daily bars",
            Self::Parquet => "parquet",
            Self::BadName => "bad name",
            Self::Other => "other",
        })
    }
}

/// The vendor's kinds and how their names start.
const VENDOR_KINDS: [(FileKind, &str); 3] = [
    (FileKind::Trades, "equities_trades_"),
    (FileKind::MinuteBars, "equities_bars_minute_"),
    (FileKind::DailyBars, "equities_bars_daily_"),
];

/// A file of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// Where it is.
    pub path: PathBuf,
    /// The file's name without its folder.
    pub name: String,
    /// What it is.
    pub kind: FileKind,
    /// Which dates it covers, as its name tells.
    pub period: Option<Period>,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its rows, where the file tells them without being read (Parquet).
    pub rows: Option<u64>,
}

/// A folder's files and what is wrong with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inventory {
    /// The files by kind, then by period and name.
    pub files: Vec<StoredFile>,
    /// What is wrong, one sentence each.
    pub problems: Vec<String>,
}

impl Inventory {
    /// Lists `folder`; folders below it are left out.
    ///
    /// # Errors
    /// [`DataError::FolderUnreadable`] when it cannot be listed, [`DataError::FolderTooLarge`] when
    /// it has more than [`INVENTORY_FILES_MAX`] files.
    pub fn of(folder: impl AsRef<Path>) -> Result<Self, DataError> {
        Self::up_to(folder.as_ref(), INVENTORY_FILES_MAX)
    }

    fn up_to(folder: &Path, files_max: usize) -> Result<Self, DataError> {
        let unreadable = |source| DataError::FolderUnreadable { path: folder.into(), source };
        let (mut files, mut problems) = (Vec::new(), Vec::new());
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if !path.is_file() {
                continue;
            }
            if files.len() == files_max {
                return Err(DataError::FolderTooLarge { path: folder.into(), limit: files_max });
            }
            files.push(StoredFile::at(path, &mut problems));
        }
        files.sort_by(|left, right| {
            let key = |file: &StoredFile| (file.kind, file.period.map(Period::first));
            key(left).cmp(&key(right)).then_with(|| left.name.cmp(&right.name))
        });
        problems.sort();
        for (kind, _) in VENDOR_KINDS {
            let periods: Vec<&StoredFile> = files.iter().filter(|file| file.kind == kind).collect();
            gaps(kind, &periods, &mut problems);
        }
        Ok(Self { files, problems })
    }

    /// The files of days beside the file of their month, and that. Only what is in them tells whether both have the day
    /// ([`crate::TradeStore::is_in_month_file`]).
    pub fn days_beside_months(&self) -> impl Iterator<Item = (&StoredFile, &StoredFile)> {
        self.files.iter().filter_map(|day| {
            let Some(Period::Day(date)) = day.period else { return None };
            let is_its = |file: &&StoredFile| {
                let is_month = matches!(file.period, Some(Period::Month { .. }));
                is_month && file.period.is_some_and(|period| period.contains(date))
            };
            Some((day, self.of_kind(day.kind).find(is_its)?))
        })
    }

    /// The files of a kind.
    pub fn of_kind(&self, kind: FileKind) -> impl Iterator<Item = &StoredFile> {
        self.files.iter().filter(move |file| file.kind == kind)
    }
}

impl StoredFile {
    fn at(path: PathBuf, problems: &mut Vec<String>) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (kind, period) = kind_of(&name);
        let bytes = path.metadata().map_or(0, |metadata| metadata.len());
        let mut rows = None;
        if kind == FileKind::BadName {
            problems.push(format!(
                "{name} is named like a vendor's file, but its name has no period; use \
                 equities_trades_YYYYMM.csv.gz or _YYYYMMDD"
            ));
        }
        if bytes == 0 && kind != FileKind::Other {
            problems.push(format!("{name} is empty; download it again"));
        } else if kind == FileKind::Parquet {
            match TableReader::open(&path) {
                Ok(table) => rows = Some(table.rows()),
                Err(error) => problems.push(error.to_string()),
            }
        }
        Self { path, name, kind, period, bytes, rows }
    }
}

fn kind_of(name: &str) -> (FileKind, Option<Period>) {
    for (kind, start) in VENDOR_KINDS {
        if let Some(rest) = name.strip_prefix(start) {
            let period = rest.strip_suffix(".csv.gz").and_then(Period::parse);
            return (period.map_or(FileKind::BadName, |_| kind), period);
        }
    }
    if name.ends_with(".parquet") {
        return (FileKind::Parquet, None);
    }
    (if name.starts_with("equities_") { FileKind::BadName } else { FileKind::Other }, None)
}

fn month_of(date: JstDate) -> JstDate {
    date.with_day(1).unwrap_or(date)
}

/// Months without any file between months with one.
fn gaps(kind: FileKind, files: &[&StoredFile], problems: &mut Vec<String>) {
    let months: BTreeSet<JstDate> =
        files.iter().filter_map(|file| Some(month_of(file.period?.first()))).collect();
    let mut before: Option<JstDate> = None;
    for &month in &months {
        let expected = before.and_then(|before| before.checked_add_months(Months::new(1)));
        if let Some(expected) = expected.filter(|expected| *expected != month) {
            let last = month.checked_sub_months(Months::new(1)).unwrap_or(month);
            let text = |date: JstDate| format!("{:04}-{:02}", date.year(), date.month());
            problems.push(if expected == last {
                format!("there is no file of {kind} for {}", text(expected))
            } else {
                format!("there is no file of {kind} from {} to {}", text(expected), text(last))
            });
        }
        before = Some(month);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            std::fs::write(folder.path().join(name), b"some bytes").unwrap();
        }
        folder
    }

    #[test]
    fn kinds_and_periods_come_from_names() {
        let folder = folder_with(&[
            "equities_trades_202501.csv.gz",
            "equities_bars_minute_20250203.csv.gz",
            "equities_bars_daily_202501.csv.gz",
            "equities_trades_202513.csv.gz",
            "equities_master.csv.gz",
            "notes.txt",
        ]);
        std::fs::create_dir(folder.path().join("below")).unwrap();
        let inventory = Inventory::of(folder.path()).unwrap();
        let found: Vec<_> = inventory
            .files
            .iter()
            .map(|file| (file.kind.to_string(), file.period.map(|period| period.to_string())))
            .collect();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            found,
            [
                ("trades".to_owned(), some("2025-01")),
                ("minute bars".to_owned(), some("2025-02-03")),
                ("daily bars".to_owned(), some("2025-01")),
                ("bad name".to_owned(), None),
                ("bad name".to_owned(), None),
                ("other".to_owned(), None),
            ]
        );
        assert_eq!(inventory.problems.len(), 2);
        assert!(inventory.problems[1].starts_with("equities_trades_202513.csv.gz is named like"));
    }

    #[test]
    fn gaps_are_told_and_days_beside_their_month_found() {
        let folder = folder_with(&[
            "equities_trades_202411.csv.gz",
            "equities_trades_202501.csv.gz",
            "equities_trades_20250106.csv.gz",
            "equities_trades_20250203.csv.gz",
            "equities_trades_202506.csv.gz",
            "equities_bars_daily_202412.csv.gz",
        ]);
        let inventory = Inventory::of(folder.path()).unwrap();
        let beside = inventory.days_beside_months();
        let beside: Vec<_> = beside.map(|(day, month)| (&*day.name, &*month.name)).collect();
        assert_eq!(beside, [("equities_trades_20250106.csv.gz", "equities_trades_202501.csv.gz")]);
        // Whether both have the day, their names do not tell.
        assert_eq!(
            inventory.problems,
            [
                "there is no file of trades for 2024-12",
                "there is no file of trades from 2025-03 to 2025-05",
            ]
        );
    }

    #[test]
    fn empty_and_damaged_files_are_told() {
        let folder = folder_with(&["table.parquet"]);
        std::fs::write(folder.path().join("equities_trades_202501.csv.gz"), b"").unwrap();
        let problems = Inventory::of(folder.path()).unwrap().problems;
        assert!(problems.iter().any(|text| text.contains("is empty; download it again")));
        assert!(problems.iter().any(|text| text.contains("is no readable Parquet file")));
    }

    #[test]
    fn the_number_of_files_is_limited() {
        let folder = folder_with(&["a", "b", "c"]);
        assert_eq!(Inventory::up_to(folder.path(), 3).unwrap().files.len(), 3);
        let error = Inventory::up_to(folder.path(), 2).unwrap_err().to_string();
        assert!(error.contains("has more than 2 files"), "{error}");
    }
}
