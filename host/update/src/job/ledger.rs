//! What earlier runs have done: `<data-dir>/update/days.json`. Without it nothing is lost; days are
//! then fetched again.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use domain::JstDate;
use marketdata::aside::write_whole;
use serde::{Deserialize, Serialize};

use crate::limits::LEDGER_BYTES_MAX;
use crate::row::IssueCode;

/// The version of the file's form.
const VERSION: u32 = 1;

/// What earlier runs have done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ledger {
    path: PathBuf,
    /// Days of which all issues are stored.
    pub(super) fetched: BTreeSet<JstDate>,
    /// Weekdays without trading.
    pub(super) closed: BTreeSet<JstDate>,
    /// From this date on, rows may be stored that are not published yet.
    pub(super) unpublished_from: Option<JstDate>,
    /// Whether the per-issue databases were all written once.
    pub(super) split: bool,
    /// Fetching issue by issue that did not come to its end.
    pub(super) pass: Option<Pass>,
}

/// Issues of which these dates were fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pass {
    /// The day on which that was.
    pub(super) made: JstDate,
    /// The dates.
    pub(super) dates: BTreeSet<JstDate>,
    /// The issues.
    pub(super) codes: BTreeSet<IssueCode>,
}

/// The file as text.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    version: u32,
    fetched: Vec<String>,
    closed: Vec<String>,
    unpublished_from: Option<String>,
    split: bool,
    pass: Option<PassText>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PassText {
    made: String,
    dates: Vec<String>,
    codes: Vec<String>,
}

impl Ledger {
    /// Reads the ledger in `folder`; an empty one, and why, where it cannot be used.
    pub(super) fn load(folder: &Path) -> (Self, Option<String>) {
        let path = folder.join("days.json");
        match read(&path) {
            Ok(Some(ledger)) => (ledger, None),
            Ok(None) => (Self::empty(path), None),
            Err(what) => {
                let note = format!("{} is not used: {what}; days are fetched anew", path.display());
                // It may have said that rows are not published.
                let unpublished_from = Some(JstDate::MIN);
                (Self { unpublished_from, ..Self::empty(path) }, Some(note))
            }
        }
    }

    fn empty(path: PathBuf) -> Self {
        Self {
            path,
            fetched: BTreeSet::new(),
            closed: BTreeSet::new(),
            unpublished_from: None,
            split: false,
            pass: None,
        }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the ledger.
    pub(super) fn save(&self) -> io::Result<()> {
        fn texts<T: ToString>(items: &BTreeSet<T>) -> Vec<String> {
            items.iter().map(ToString::to_string).collect()
        }
        let text = Text {
            version: VERSION,
            fetched: texts(&self.fetched),
            closed: texts(&self.closed),
            unpublished_from: self.unpublished_from.map(|date| date.to_string()),
            split: self.split,
            pass: self.pass.as_ref().map(|pass| PassText {
                made: pass.made.to_string(),
                dates: texts(&pass.dates),
                codes: texts(&pass.codes),
            }),
        };
        let mut bytes = serde_json::to_vec(&text).map_err(io::Error::other)?;
        bytes.push(b'\n');
        write_whole(&self.path, &bytes)
    }
}

fn read(path: &Path) -> Result<Option<Ledger>, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let mut bytes = Vec::new();
    let read = file.take(LEDGER_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LEDGER_BYTES_MAX {
        return Err(format!("it is larger than {LEDGER_BYTES_MAX} bytes"));
    }
    let text: Text = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    if text.version != VERSION {
        return Err(format!("it has version {}, not {VERSION}", text.version));
    }
    // A first date of all time is written with a sign and more digits than others.
    let date = |text: &String| -> Result<JstDate, String> {
        text.parse().map_err(|_| format!("`{text}` is no date"))
    };
    let dates = |texts: &[String]| texts.iter().map(date).collect::<Result<BTreeSet<_>, _>>();
    let pass = text.pass.as_ref().map(|pass| -> Result<Pass, String> {
        let code = |text: &String| text.parse().map_err(|_| format!("`{text}` is no code"));
        Ok(Pass {
            made: date(&pass.made)?,
            dates: dates(&pass.dates)?,
            codes: pass.codes.iter().map(code).collect::<Result<_, _>>()?,
        })
    });
    Ok(Some(Ledger {
        path: path.to_owned(),
        fetched: dates(&text.fetched)?,
        closed: dates(&text.closed)?,
        unpublished_from: text.unpublished_from.as_ref().map(date).transpose()?,
        split: text.split,
        pass: pass.transpose()?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(folder: &Path) -> Ledger {
        let dates = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Ledger {
            fetched: dates(&["2026-01-05", "2026-01-06"]),
            closed: dates(&["2026-01-01"]),
            unpublished_from: Some(JstDate::MIN),
            split: true,
            pass: Some(Pass {
                made: "2026-01-07".parse().unwrap(),
                dates: dates(&["2026-01-07"]),
                codes: ["7203", "130A", "25935"].map(|code| code.parse().unwrap()).into(),
            }),
            ..Ledger::empty(folder.join("days.json"))
        }
    }

    #[test]
    fn it_comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            Ledger::load(folder.path()),
            (Ledger::empty(folder.path().join("days.json")), None)
        );
        let ledger = full(folder.path());
        ledger.save().unwrap();
        assert_eq!(Ledger::load(folder.path()), (ledger, None));
    }

    #[test]
    fn a_damaged_one_is_told_and_not_used() {
        let folder = tempfile::tempdir().unwrap();
        full(folder.path()).save().unwrap();
        let path = folder.path().join("days.json");
        let whole = std::fs::read_to_string(&path).unwrap();
        let large = format!("{whole}{}", " ".repeat(LEDGER_BYTES_MAX as usize));
        for (wrong, part) in [
            (whole[..whole.len() / 2].to_owned(), "EOF"),
            (whole.replace("\"version\":1", "\"version\":2"), "version 2"),
            (whole.replace("2026-01-05", "2026-02-30"), "`2026-02-30` is no date"),
            (whole.replace("130A", "13-A"), "`13-A` is no code"),
            (whole.replace("closed", "open"), "unknown field"),
            (large, "larger than"),
        ] {
            std::fs::write(&path, wrong).unwrap();
            let (found, note) = Ledger::load(folder.path());
            let note = note.unwrap();
            assert!(note.contains(part), "{note}");
            assert_eq!(found.unpublished_from, Some(JstDate::MIN));
            assert!(found.fetched.is_empty() && found.pass.is_none() && !found.split);
        }
    }
}
