//! The vendor's listed-issue masters as a data folder keeps them: `equities_master_YYYYMMDD.csv.gz`, one for
//! each date that was fetched.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use domain::{JstDate, Quantity, TickTable, VendorCode};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use xxhash_rust::xxh3::xxh3_64;

use crate::catalog::{Period, vendor_files};
use crate::error::DataError;
use crate::instruments::{STEP_CHANGES, TableError, line_of, read_text};
use crate::limits::{FILE_CODES_MAX, TABLE_BYTES_MAX};

const NAME_START: &str = "equities_master_";
const COLUMNS: [&str; 6] = ["Date", "Code", "CoName", "ScaleCat", "Mkt", "ProdCat"];
/// Columns that every list has; older ones do not tell the product.
const COLUMNS_NEEDED: usize = 5;
/// Markets whose trading unit is 100 shares: prime, standard and growth.
const MARKETS_OF_100: [&str; 3] = ["0111", "0112", "0113"];
/// The product of domestic shares, whose trading unit is 100.
const SHARE: &str = "011";
/// The product of REITs: they trade one by one, with the price steps of shares.
const REIT: &str = "013";
/// Parts of TOPIX100.
const TOPIX100: [&str; 2] = ["TOPIX Core30", "TOPIX Large70"];
/// The rest of TOPIX500.
const MID400: &str = "TOPIX Mid400";

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
    /// The product's code, as `014` for ETFs; empty where the list does not tell it.
    pub product: String,
}

impl ListedIssue {
    /// Shares in a trading unit, where the product or else the market tells.
    #[must_use]
    pub fn lot(&self) -> Option<Quantity> {
        match self.product.as_str() {
            REIT => Some(Quantity::new(1)),
            SHARE => Some(Quantity::new(100)),
            "" if MARKETS_OF_100.contains(&self.market.as_str()) => Some(Quantity::new(100)),
            _ => None,
        }
    }

    /// Price steps on a date, where the list tells. TOPIX500 has the fine ones since 2023-06-05, before
    /// only TOPIX100; whose steps before 2015-09-24 are in no table here, so they stay open.
    #[must_use]
    pub fn ticks(&self, date: JstDate) -> Option<TickTable> {
        self.lot()?;
        let [topix100_from, topix500_from] = STEP_CHANGES.map(|change| change.date());
        let is_topix100 = TOPIX100.contains(&self.scale.as_str());
        let is_fine = is_topix100 || (date >= topix500_from && self.scale == MID400);
        match is_fine {
            true if date < topix100_from => None,
            true => Some(TickTable::Topix500),
            false => Some(TickTable::Normal),
        }
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
        let mut places = [usize::MAX; COLUMNS.len()];
        for (index, (place, name)) in places.iter_mut().zip(COLUMNS).enumerate() {
            match header.iter().position(|column| column == name) {
                Some(found) => *place = found,
                None if index >= COLUMNS_NEEDED => {}
                None => return Err(wrong(1, format!("the column {name} is missing"))),
            }
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
            let (name, scale, market, product) = (text(2), text(3), text(4), text(5));
            issues.push(ListedIssue { code, name, scale, market, product });
        }
        Ok(Self { date, issues })
    }

    /// A number that is another one where lots or price steps may be others: names do not count.
    #[must_use]
    pub fn facts(&self) -> u64 {
        let mut facts: Vec<[&str; 4]> = self
            .issues
            .iter()
            .map(|issue| [issue.code.as_str(), &issue.scale, &issue.market, &issue.product])
            .collect();
        facts.sort_unstable();
        xxh3_64(
            facts.iter().map(|cells| cells.join("\n")).collect::<Vec<_>>().join("\n\n").as_bytes(),
        )
    }

    /// Keeps the master in a data folder.
    ///
    /// # Errors
    /// [`TableError::File`].
    pub fn write(&self, folder: &Path) -> Result<(), TableError> {
        let path = master_path(folder, self.date);
        let failed = |source| TableError::File { path: path.clone(), source };
        let mut writer = csv::Writer::from_writer(Vec::new());
        let mut put = |cells: [&str; 6]| writer.write_record(cells).map_err(std::io::Error::from);
        put(COLUMNS).map_err(failed)?;
        let date = self.date.to_string();
        for issue in &self.issues {
            let ListedIssue { code, name, scale, market, product } = issue;
            put([&date, code.as_str(), name, scale, market, product]).map_err(failed)?;
        }
        let text = writer.into_inner().map_err(|error| failed(error.into_error()))?;
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(&text).map_err(failed)?;
        let packed = packed.finish().map_err(failed)?;
        atomic_file::write(&path, &packed).map_err(failed)
    }
}

/// Which list to ask for next, so that of the business days `days`, in order, each day on which the lists change
/// is known: the first and the last one, then those in the midst of two that differ. `known` has what is known of
/// days: [`Master::facts`], or that the vendor has no list. None once nothing is open.
///
/// Lists that are equal at both ends count as equal between them.
#[must_use]
pub fn next_list(days: &[JstDate], known: &BTreeMap<JstDate, Option<u64>>) -> Option<JstDate> {
    let ends = [days.first(), days.last()].into_iter().flatten();
    if let Some(end) = ends.copied().find(|day| !known.contains_key(day)) {
        return Some(end);
    }
    let mut before: Option<u64> = None;
    // Days between the last list and the next.
    let mut open: Vec<JstDate> = Vec::new();
    for day in days {
        match known.get(day) {
            None => open.push(*day),
            // A day without a list tells nothing.
            Some(None) => {}
            Some(Some(facts)) => {
                let differs = before.is_some_and(|before| before != *facts);
                if differs && !open.is_empty() {
                    return Some(open[open.len() / 2]);
                }
                open.clear();
                before = Some(*facts);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_master_is_kept_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let date: JstDate = "2025-01-06".parse().unwrap();
        let issue = |code: &str, scale: &str, market: &str, product: &str| ListedIssue {
            code: VendorCode::new(code).unwrap(),
            name: "A \"name\", with commas".to_owned(),
            scale: scale.to_owned(),
            market: market.to_owned(),
            product: product.to_owned(),
        };
        let issues =
            vec![issue("72030", "TOPIX Core30", "0111", "011"), issue("13060", "-", "0109", "014")];
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
    fn a_list_without_products_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let date: JstDate = "2025-01-06".parse().unwrap();
        let text = "Date,Code,CoName,ScaleCat,Mkt\n2025-01-06,13060,Fund,-,0109\n";
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(text.as_bytes()).unwrap();
        std::fs::write(master_path(folder.path(), date), packed.finish().unwrap()).unwrap();
        let master = Master::read(folder.path(), date).unwrap();
        assert_eq!((master.issues[0].product.as_str(), master.issues[0].lot()), ("", None));
    }

    /// Asks until nothing is open; gives the days in the order in which they were asked for.
    fn asked(days: &[JstDate], list: impl Fn(usize) -> Option<u64>) -> Vec<usize> {
        let (mut known, mut asked) = (BTreeMap::new(), Vec::new());
        while let Some(day) = next_list(days, &known) {
            let index = days.iter().position(|one| *one == day).unwrap();
            assert_eq!(known.insert(day, list(index)), None, "nothing is asked for twice");
            asked.push(index);
        }
        asked
    }

    #[test]
    fn lists_are_asked_for_around_each_day_of_change() {
        let first: JstDate = "2025-10-01".parse().unwrap();
        let days: Vec<JstDate> = first.iter_days().take(21).collect();
        assert_eq!(asked(&days, |_| Some(7)), [0, 20], "nothing changes");
        for change in 1..21 {
            let asked = asked(&days, |day| Some(u64::from(day >= change)));
            assert!(
                asked.contains(&change) && asked.contains(&(change - 1)),
                "{change}: {asked:?}"
            );
            assert!(asked.len() <= 8, "{change}: {asked:?}");
        }
        let twice = asked(&days, |day| Some(u64::from(day >= 5) + u64::from(day >= 17)));
        assert!([4, 5, 16, 17].iter().all(|day| twice.contains(day)), "{twice:?}");
        // A day without a list is asked for once, and others take its place.
        let hole = asked(&days, |day| (day != 10).then(|| u64::from(day >= 12)));
        assert!([11, 12].iter().all(|day| hole.contains(day)), "{hole:?}");
        assert_eq!(asked(&days[..1], |_| Some(1)), [0]);
        assert_eq!(asked(&[], |_| Some(1)), Vec::<usize>::new());
    }

    #[test]
    fn names_are_no_facts() {
        let master = |name: &str, scale: &str| Master {
            date: "2025-01-06".parse().unwrap(),
            issues: vec![ListedIssue {
                code: VendorCode::new("72030").unwrap(),
                name: name.to_owned(),
                scale: scale.to_owned(),
                market: "0111".to_owned(),
                product: "011".to_owned(),
            }],
        };
        assert_eq!(master("a", "x").facts(), master("b", "x").facts());
        assert_ne!(master("a", "x").facts(), master("a", "y").facts());
    }

    #[test]
    fn scale_and_product_decide_lot_and_steps_by_date() {
        let of = |scale: &str, market: &str, product: &str| ListedIssue {
            code: VendorCode::new("72030").unwrap(),
            name: String::new(),
            scale: scale.to_owned(),
            market: market.to_owned(),
            product: product.to_owned(),
        };
        let issue = |scale: &str, market: &str| of(scale, market, "");
        let ticks = |scale, market, date: &str| issue(scale, market).ticks(date.parse().unwrap());
        for scale in ["TOPIX Core30", "TOPIX Large70", "TOPIX Mid400"] {
            assert_eq!(ticks(scale, "0111", "2023-06-05"), Some(TickTable::Topix500));
        }
        for scale in ["TOPIX Core30", "TOPIX Large70"] {
            assert_eq!(ticks(scale, "0111", "2023-06-04"), Some(TickTable::Topix500));
            assert_eq!(ticks(scale, "0111", "2015-09-24"), Some(TickTable::Topix500));
            assert_eq!(ticks(scale, "0111", "2015-09-18"), None, "steps that no table here has");
        }
        for date in ["2023-06-04", "2015-09-18"] {
            assert_eq!(ticks("TOPIX Mid400", "0111", date), Some(TickTable::Normal));
        }
        assert_eq!(ticks("TOPIX Small 1", "0112", "2025-01-06"), Some(TickTable::Normal));
        assert_eq!(ticks("-", "0109", "2025-01-06"), None);
        assert_eq!(issue("-", "0113").lot(), Some(Quantity::new(100)));
        let date = "2025-01-06".parse().unwrap();
        for (product, lot, ticks) in [
            ("011", Some(100), Some(TickTable::Normal)),
            ("013", Some(1), Some(TickTable::Normal)),
            ("012", None, None),
            ("014", None, None),
            ("021", None, None),
        ] {
            let issue = of("-", "0109", product);
            assert_eq!(
                (issue.lot(), issue.ticks(date)),
                (lot.map(Quantity::new), ticks),
                "{product}"
            );
        }
    }
}
