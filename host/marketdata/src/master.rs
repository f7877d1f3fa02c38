//! The vendor's listed-issue masters as a data folder keeps them: `equities_master_YYYYMMDD.csv.gz`, one for
//! each date that was fetched.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use domain::{JstDate, Quantity, TickTable, VendorCode};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::catalog::{Period, vendor_files};
use crate::error::DataError;
use crate::instruments::{TableError, line_of, read_text, topix500_from};
use crate::limits::{FILE_CODES_MAX, TABLE_BYTES_MAX};

const NAME_START: &str = "equities_master_";
const COLUMNS: [&str; 5] = ["Date", "Code", "CoName", "ScaleCat", "Mkt"];
/// Markets whose trading unit is 100 shares: prime, standard and growth.
const MARKETS_OF_100: [&str; 3] = ["0111", "0112", "0113"];
/// Parts of TOPIX500.
const TOPIX500: [&str; 3] = ["TOPIX Core30", "TOPIX Large70", "TOPIX Mid400"];

/// An issue as a master lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedIssue {
    /// The vendor's code.
    pub code: VendorCode,
    /// Its name.
    pub name: String,
    /// Its size class, as `TOPIX Core30`; `-` where it has none.
    pub scale: String,
    /// The market's code.
    pub market: String,
}

impl ListedIssue {
    /// Shares in a trading unit, where the market tells.
    #[must_use]
    pub fn lot(&self) -> Option<Quantity> {
        MARKETS_OF_100.contains(&self.market.as_str()).then_some(Quantity::new(100))
    }

    /// Price steps on a date, where the market tells: until 2023-06-04 every issue has the normal ones,
    /// because the fine steps of TOPIX100 of those days are not known here.
    #[must_use]
    pub fn ticks(&self, date: JstDate) -> Option<TickTable> {
        self.lot()?;
        let is_fine = date >= topix500_from() && TOPIX500.contains(&self.scale.as_str());
        Some(if is_fine { TickTable::Topix500 } else { TickTable::Normal })
    }
}

/// The issues that were listed on a date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Master {
    /// The date, which the vendor's rows carry.
    pub date: JstDate,
    /// Its issues.
    pub issues: Vec<ListedIssue>,
}

/// Where the master of a date is.
#[must_use]
pub fn master_path(folder: &Path, date: JstDate) -> PathBuf {
    folder.join(format!("{NAME_START}{}.csv.gz", date.format("%Y%m%d")))
}

impl Master {
    /// The dates whose masters a folder has, in order.
    ///
    /// # Errors
    /// [`DataError::FolderUnreadable`].
    pub fn list(folder: &Path) -> Result<Vec<JstDate>, DataError> {
        let files = vendor_files(folder, NAME_START)?.into_iter();
        Ok(files
            .filter_map(|(_, period)| matches!(period, Period::Day(_)).then(|| period.first()))
            .collect())
    }

    /// Reads the master of a date.
    ///
    /// # Errors
    /// [`TableError`]: it is missing, unreadable, or no master of that date.
    pub fn read(folder: &Path, date: JstDate) -> Result<Self, TableError> {
        let path = master_path(folder, date);
        let failed = |source| TableError::File { path: path.clone(), source };
        let missing = || failed(std::io::Error::from(std::io::ErrorKind::NotFound));
        let packed = read_text(&path)?.ok_or_else(missing)?;
        let mut text = Vec::new();
        let limit = TABLE_BYTES_MAX + 1;
        MultiGzDecoder::new(&*packed).take(limit).read_to_end(&mut text).map_err(failed)?;
        if text.len() as u64 == limit {
            return Err(TableError::TooLarge { path, what: "bytes", limit: TABLE_BYTES_MAX });
        }
        let wrong = |line, problem: String| TableError::Line { path: path.clone(), line, problem };
        let mut reader = csv::Reader::from_reader(&*text);
        let header = reader.headers().map_err(|error| wrong(1, error.to_string()))?.clone();
        let mut places = [0; COLUMNS.len()];
        for (place, name) in places.iter_mut().zip(COLUMNS) {
            let found = header.iter().position(|column| column == name);
            *place = found.ok_or_else(|| wrong(1, format!("the column {name} is missing")))?;
        }
        let mut issues = Vec::new();
        for record in reader.records() {
            let record =
                record.map_err(|error| wrong(line_of(&error, issues.len()), error.to_string()))?;
            let line = record.position().map_or(issues.len() as u64 + 2, csv::Position::line);
            let cell = |column: usize| record.get(places[column]).unwrap_or_default();
            if cell(0) != date.to_string() && cell(0) != date.format("%Y%m%d").to_string() {
                return Err(wrong(line, format!("Date: `{}` is not {date}", cell(0))));
            }
            let code =
                VendorCode::new(cell(1)).map_err(|error| wrong(line, format!("Code: {error}")))?;
            if issues.len() == FILE_CODES_MAX {
                let limit = FILE_CODES_MAX as u64;
                return Err(TableError::TooLarge { path, what: "issues", limit });
            }
            let text = |column| cell(column).to_owned();
            issues.push(ListedIssue { code, name: text(2), scale: text(3), market: text(4) });
        }
        Ok(Self { date, issues })
    }

    /// Keeps the master in a data folder.
    ///
    /// # Errors
    /// [`TableError::File`].
    pub fn write(&self, folder: &Path) -> Result<(), TableError> {
        let path = master_path(folder, self.date);
        let failed = |source| TableError::File { path: path.clone(), source };
        let mut writer = csv::Writer::from_writer(Vec::new());
        let mut put = |cells: [&str; 5]| writer.write_record(cells).map_err(std::io::Error::from);
        put(COLUMNS).map_err(failed)?;
        let date = self.date.to_string();
        for issue in &self.issues {
            let ListedIssue { code, name, scale, market } = issue;
            put([&date, code.as_str(), name, scale, market]).map_err(failed)?;
        }
        let text = writer.into_inner().map_err(|error| failed(error.into_error()))?;
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(&text).map_err(failed)?;
        let packed = packed.finish().map_err(failed)?;
        atomic_file::write(&path, &packed).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_master_is_kept_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let date: JstDate = "2025-01-06".parse().unwrap();
        let issue = |code: &str, scale: &str, market: &str| ListedIssue {
            code: VendorCode::new(code).unwrap(),
            name: "A \"name\", with commas".to_owned(),
            scale: scale.to_owned(),
            market: market.to_owned(),
        };
        let issues = vec![issue("72030", "TOPIX Core30", "0111"), issue("13060", "-", "0109")];
        let master = Master { date, issues };
        master.write(folder.path()).unwrap();
        assert_eq!(Master::list(folder.path()).unwrap(), [date]);
        assert_eq!(Master::read(folder.path(), date).unwrap(), master);
        let other = date.succ_opt().unwrap();
        assert!(Master::read(folder.path(), other).is_err());
        std::fs::rename(master_path(folder.path(), date), master_path(folder.path(), other))
            .unwrap();
        let message = Master::read(folder.path(), other).unwrap_err().to_string();
        assert!(message.ends_with("line 2: Date: `2025-01-06` is not 2025-01-07"), "{message}");
    }

    #[test]
    fn the_scale_decides_the_steps_since_june_2023() {
        let issue = |scale: &str, market: &str| ListedIssue {
            code: VendorCode::new("72030").unwrap(),
            name: String::new(),
            scale: scale.to_owned(),
            market: market.to_owned(),
        };
        let ticks = |scale, market, date: &str| issue(scale, market).ticks(date.parse().unwrap());
        for scale in ["TOPIX Core30", "TOPIX Large70", "TOPIX Mid400"] {
            assert_eq!(ticks(scale, "0111", "2023-06-05"), Some(TickTable::Topix500));
            assert_eq!(ticks(scale, "0111", "2023-06-04"), Some(TickTable::Normal));
        }
        assert_eq!(ticks("TOPIX Small 1", "0112", "2025-01-06"), Some(TickTable::Normal));
        assert_eq!(ticks("-", "0109", "2025-01-06"), None);
        assert_eq!(issue("-", "0113").lot(), Some(Quantity::new(100)));
    }
}
