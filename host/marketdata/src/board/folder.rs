//! Where recordings are.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use domain::JstDate;

use crate::catalog::{Period, day_file_name};
use crate::limits::{DAY_SEGMENTS_MAX, RECORDED_DAYS_MAX, SET_ASIDE_MAX};

/// Name of the file whose lock says that a recorder writes.
pub(super) const LOCK_FILE: &str = "recorder.lock";
const DAYS: &str = "board";
const TRADES: &str = "trades";
const JOURNAL_END: &str = ".journal";
/// What follows the name of a journal that was set aside; a number from 2 on where there are more.
const SET_ASIDE_END: &str = ".unread";
const DEPTH_START: &str = "depth-";
const TRADES_START: &str = "trades-";
const TABLE_END: &str = ".parquet";
/// Digits of the number of a segment.
const DIGITS: usize = 6;

/// A folder with recordings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardFolder {
    path: PathBuf,
}

impl BoardFolder {
    /// The folder at `path`, which need not be there.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The folder itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder with one folder for each day.
    #[must_use]
    pub fn days_folder(&self) -> PathBuf {
        self.path.join(DAYS)
    }

    /// The folder with the trades in the vendor's layout: `kumiki replay run --data` reads it.
    #[must_use]
    pub fn trades_folder(&self) -> PathBuf {
        self.path.join(TRADES)
    }

    /// The folder of a day, which need not be there.
    #[must_use]
    pub fn day(&self, date: JstDate) -> DayFolder {
        let path = self.days_folder().join(date.format("%Y%m%d").to_string());
        DayFolder { date, path }
    }

    /// The trades of a day in the vendor's layout.
    #[must_use]
    pub fn trades_file(&self, date: JstDate) -> PathBuf {
        self.trades_folder().join(day_file_name(date))
    }

    pub(super) fn lock_file(&self) -> PathBuf {
        self.path.join(LOCK_FILE)
    }
}

/// The recordings of a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayFolder {
    date: JstDate,
    path: PathBuf,
}

impl DayFolder {
    /// The day in Japan on which the rows were received.
    #[must_use]
    pub const fn date(&self) -> JstDate {
        self.date
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The journal of a segment.
    #[must_use]
    pub fn journal(&self, segment: u32) -> PathBuf {
        self.path.join(format!("{segment:0DIGITS$}{JOURNAL_END}"))
    }

    /// The order books of a segment; not there where it has none.
    #[must_use]
    pub fn depth(&self, segment: u32) -> PathBuf {
        self.path.join(format!("{DEPTH_START}{segment:0DIGITS$}{TABLE_END}"))
    }

    /// The trades of a segment; not there where it has none.
    #[must_use]
    pub fn trades(&self, segment: u32) -> PathBuf {
        self.path.join(format!("{TRADES_START}{segment:0DIGITS$}{TABLE_END}"))
    }

    /// Gives what has the name of a segment's journal and cannot be read another name, which it tells.
    ///
    /// # Errors
    /// What the system says, also that [`SET_ASIDE_MAX`] were set aside.
    pub(super) fn set_aside(&self, segment: u32) -> io::Result<PathBuf> {
        let journal = self.journal(segment);
        let name = |number: u32| {
            let mut name = journal.clone().into_os_string();
            name.push(SET_ASIDE_END);
            if number > 1 {
                name.push(format!("-{number}"));
            }
            PathBuf::from(name)
        };
        // Only one recorder is here, so a name that is free stays free.
        let is_free = |path: &PathBuf| matches!(fs::symlink_metadata(path), Err(error) if error.kind() == io::ErrorKind::NotFound);
        let Some(aside) = (1..=SET_ASIDE_MAX).map(name).find(is_free) else {
            let what = format!("{SET_ASIDE_MAX} files of this name are set aside; move them away");
            return Err(io::Error::other(what));
        };
        atomic_file::rename(&journal, &aside)?;
        atomic_file::sync_folder(&self.path)?;
        Ok(aside)
    }

    /// What is in the folder.
    ///
    /// # Errors
    /// What the system says; nothing is wrong where there is no folder.
    pub(super) fn list(&self) -> io::Result<Listed> {
        let mut listed = Listed::default();
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(listed),
            other => other?,
        };
        for entry in entries {
            let name = entry?.file_name();
            let Some(name) = name.to_str() else { continue };
            let segment =
                |start: &str, end: &str| number(name.strip_prefix(start)?.strip_suffix(end)?);
            // Its number is not given again, so its rows have a place should it be read after all.
            let aside = name.split_once(SET_ASIDE_END).map(|(journal, _)| journal);
            let aside = aside.and_then(|journal| journal.strip_suffix(JOURNAL_END));
            if let Some(number) = aside.and_then(number) {
                listed.set_aside.push(number);
            } else if let Some(number) = segment("", JOURNAL_END) {
                listed.journals.push(number);
            } else if let Some(number) = segment(DEPTH_START, TABLE_END) {
                listed.depth.push(number);
            } else if let Some(number) = segment(TRADES_START, TABLE_END) {
                listed.trades.push(number);
            }
        }
        let Listed { journals, set_aside, depth, trades } = &mut listed;
        for numbers in [journals, set_aside, depth, trades] {
            numbers.sort_unstable();
        }
        Ok(listed)
    }

    /// The finished segments, in the order in which they were recorded.
    ///
    /// # Errors
    /// What the system says.
    pub fn finished(&self) -> io::Result<Vec<FinishedSegment>> {
        let listed = self.list()?;
        let mut numbers: Vec<u32> =
            listed.finished(&listed.depth).chain(listed.finished(&listed.trades)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let has = |numbers: &[u32], number: &u32| numbers.binary_search(number).is_ok();
        let segment = |number: &u32| FinishedSegment {
            number: *number,
            depth: has(&listed.depth, number).then(|| self.depth(*number)),
            trades: has(&listed.trades, number).then(|| self.trades(*number)),
        };
        Ok(numbers.iter().map(segment).collect())
    }
}

/// The number of a segment in a file's name.
fn number(digits: &str) -> Option<u32> {
    let is_number = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse::<u32>().ok()?;
    (is_number && (1..=DAY_SEGMENTS_MAX).contains(&number)).then_some(number)
}

/// A segment whose files are finished: nobody changes them any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedSegment {
    /// Its number on its day, from 1.
    pub number: u32,
    /// Its order books, where it has some.
    pub depth: Option<PathBuf>,
    /// Its trades, where it has some.
    pub trades: Option<PathBuf>,
}

/// Numbers of the segments in a day's folder, rising.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) journals: Vec<u32>,
    /// Of journals that could not be read.
    pub(super) set_aside: Vec<u32>,
    pub(super) depth: Vec<u32>,
    pub(super) trades: Vec<u32>,
}

impl Listed {
    /// Those whose journal is gone.
    pub(super) fn finished<'a>(&'a self, numbers: &'a [u32]) -> impl Iterator<Item = u32> + 'a {
        let is_open = |number: &u32| self.journals.binary_search(number).is_ok();
        numbers.iter().copied().filter(move |number| !is_open(number))
    }

    /// The highest number in use, 0 where there is none.
    pub(super) fn last(&self) -> u32 {
        let lists = [&self.journals, &self.set_aside, &self.depth, &self.trades];
        lists.into_iter().filter_map(|numbers| numbers.last().copied()).max().unwrap_or(0)
    }
}

/// The days of a folder that have a folder of their own, in time order. A link to a folder, as to another disk,
/// is one: a recorder writes where it leads to.
///
/// # Errors
/// What the system says, also that there are more than [`RECORDED_DAYS_MAX`]. Nothing is wrong where there
/// are none.
pub fn days(folder: &BoardFolder) -> io::Result<Vec<DayFolder>> {
    let path = folder.days_folder();
    let entries = match fs::read_dir(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let Some(Period::Day(date)) = name.to_str().and_then(Period::parse) else { continue };
        match fs::metadata(entry.path()) {
            Ok(found) if found.is_dir() => {}
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => continue,
        }
        if found.len() == RECORDED_DAYS_MAX {
            return Err(io::Error::other(format!(
                "{} has more than {RECORDED_DAYS_MAX} days; move old ones away",
                path.display()
            )));
        }
        found.push(folder.day(date));
    }
    found.sort_by_key(DayFolder::date);
    Ok(found)
}
