//! How complete the published daily prices are, as the update job tells those who read them.

use std::collections::BTreeMap;
use std::io::{self, Read};

use domain::{JstDate, holidays};
use serde::{Deserialize, Serialize};

use crate::data_dir::DataDir;
use crate::grid::content_text;
use crate::limits::DATASET_BYTES_MAX;

/// Its name in the folder of the update job's reports.
const NAME: &str = "dataset.json";
/// The version of its form.
const VERSION: u32 = 1;

/// How complete the published daily prices are. Dates are `YYYY-MM-DD`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatasetStatus {
    /// Version of this form.
    pub version: u32,
    /// The content of the ranking's snapshot that this speaks of, in the form that a generation has it;
    /// of another snapshot it says nothing. None where it does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// The last day that is complete.
    pub last_complete: Option<String>,
    /// Days that were due and are not complete, ascending.
    pub incomplete: Vec<IncompleteDay>,
    /// Business days between published ones that are not published themselves, ascending.
    pub gaps: Vec<String>,
    /// Published days that need a look, and answers that were refused, as the update's report has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<DayDoubt>,
    /// Days after the last one that is complete on which the exchange's calendar says something else than the
    /// law's: whether it is open.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub other_days: BTreeMap<String, bool>,
    /// The sources of the published rows.
    pub sources: Vec<SourceRows>,
}

/// A day that was due and is not complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncompleteDay {
    /// The day.
    pub date: String,
    /// Rows that are stored of it.
    pub rows: u64,
    /// Rows that it should have; none where that is not known.
    pub expected: Option<u64>,
}

/// What needs a look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayDoubt {
    /// The day.
    pub date: String,
    /// What kind of doubt it is, as the report of the update names it.
    pub kind: String,
    /// What was found.
    pub what: String,
}

/// The published rows of one source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRows {
    /// The source, as the column `source` names it; empty where a row does not tell.
    pub name: String,
    /// How many rows.
    pub rows: u64,
    /// Their first day.
    pub first: String,
    /// Their last day.
    pub last: String,
}

impl DatasetStatus {
    /// Whether this speaks of the snapshot with a content.
    #[must_use]
    pub fn is_of(&self, content: u64) -> bool {
        self.snapshot.as_ref().is_none_or(|snapshot| *snapshot == content_text(content))
    }

    /// Business days that are over and of which there is nothing, after the last one that is published; those
    /// that are told as not complete are none of them. `today` is not over.
    #[must_use]
    pub fn days_behind(&self, last: JstDate, today: JstDate) -> usize {
        let is_missing = |date: &JstDate| {
            let text = date.to_string();
            let is_told = self.incomplete.iter().any(|day| day.date == text);
            let is_open = self.other_days.get(&text).copied();
            is_open.unwrap_or_else(|| !holidays::is_closed(*date)) && !is_told
        };
        let after = last.iter_days().skip(1).take_while(|date| *date < today);
        after.filter(is_missing).count()
    }

    /// What the update job has told last; none where none has run.
    ///
    /// # Errors
    /// When the file cannot be read or is not what a job of this version writes.
    pub fn load(data: &DataDir) -> io::Result<Option<Self>> {
        let file = match atomic_file::open_to_read(&data.update_folder().join(NAME)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.take(DATASET_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        let wrong = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        if bytes.len() as u64 > DATASET_BYTES_MAX {
            return Err(wrong(format!("{NAME} is larger than {DATASET_BYTES_MAX} bytes")));
        }
        let status: Self =
            serde_json::from_slice(&bytes).map_err(|error| wrong(format!("{NAME}: {error}")))?;
        if status.version != VERSION {
            return Err(wrong(format!("{NAME} has version {}, not {VERSION}", status.version)));
        }
        Ok(Some(status))
    }

    /// Puts it in the place of the one before.
    ///
    /// # Errors
    /// What the system says; the one before is still there then.
    pub fn store(mut self, data: &DataDir) -> io::Result<()> {
        self.version = VERSION;
        let bytes = serde_json::to_vec_pretty(&self).map_err(io::Error::other)?;
        atomic_file::write(&data.update_folder().join(NAME), &bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn business_days_after_the_last_one_are_missing_once_they_are_over() {
        let date = |text: &str| text.parse().unwrap();
        let mut status = DatasetStatus::default();
        let behind =
            |status: &DatasetStatus, today| status.days_behind(date("2025-12-26"), date(today));
        // A Friday; Wednesday to Friday of the week after are holidays.
        assert_eq!(
            ["2025-12-26", "2025-12-29", "2025-12-30"].map(|day| behind(&status, day)),
            [0, 0, 1]
        );
        assert_eq!(["2026-01-05", "2026-01-06"].map(|day| behind(&status, day)), [2, 3]);
        status.other_days.insert("2025-12-30".into(), false);
        status.other_days.insert("2026-01-02".into(), true);
        assert_eq!(behind(&status, "2026-01-05"), 2);
        let day = IncompleteDay { date: "2025-12-29".into(), rows: 1, expected: None };
        status.incomplete.push(day);
        assert_eq!(behind(&status, "2026-01-05"), 1);
    }

    #[test]
    fn it_comes_back_as_it_was_and_damage_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::new(folder.path());
        assert_eq!(DatasetStatus::load(&data).unwrap(), None);
        std::fs::create_dir_all(data.update_folder()).unwrap();
        let day = IncompleteDay { date: "2026-01-09".into(), rows: 3, expected: Some(9) };
        let status = DatasetStatus { incomplete: vec![day], ..DatasetStatus::default() };
        status.clone().store(&data).unwrap();
        let found = DatasetStatus::load(&data).unwrap().unwrap();
        assert_eq!(found, DatasetStatus { version: VERSION, ..status });
        let path = data.update_folder().join(NAME);
        let text = std::fs::read_to_string(&path).unwrap();
        let large = " ".repeat(usize::try_from(DATASET_BYTES_MAX).unwrap() + 1);
        let newer = text.replace("\"version\": 1", "\"version\": 2");
        for (wrong, part) in [(&text[..9], "EOF"), (&newer, "version 2"), (&large, "larger than")] {
            std::fs::write(&path, wrong).unwrap();
            let error = DatasetStatus::load(&data).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
