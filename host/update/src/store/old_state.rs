//! The file in which earlier versions kept what they had fetched: `<data-dir>/update/days.json`. It is
//! taken over into the job's own database once.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::Path;

use domain::JstDate;
use serde::Deserialize;

use crate::fetch_state::{FetchState, IssuePass};
use crate::limits::OLD_STATE_BYTES_MAX;

/// The version of the file's form.
const VERSION: u32 = 1;

/// The file as text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    version: u32,
    fetched: Vec<String>,
    closed: Vec<String>,
    unpublished_from: Option<String>,
    split: bool,
    pass: Option<PassText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PassText {
    made: String,
    dates: Vec<String>,
    codes: Vec<String>,
}

/// Reads the file; `None` where there is none.
///
/// # Errors
/// Why it cannot be used.
pub(super) fn read(path: &Path) -> Result<Option<FetchState>, String> {
    let file = match atomic_file::open_to_read(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let mut bytes = Vec::new();
    let read = file.take(OLD_STATE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > OLD_STATE_BYTES_MAX {
        return Err(format!("it is larger than {OLD_STATE_BYTES_MAX} bytes"));
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
    let pass = text.pass.as_ref().map(|pass| -> Result<IssuePass, String> {
        let code = |text: &String| text.parse().map_err(|_| format!("`{text}` is no code"));
        Ok(IssuePass {
            made: date(&pass.made)?,
            dates: dates(&pass.dates)?,
            codes: pass.codes.iter().map(code).collect::<Result<_, _>>()?,
        })
    });
    Ok(Some(FetchState {
        fetched: dates(&text.fetched)?,
        closed: dates(&text.closed)?,
        unpublished_from: text.unpublished_from.as_ref().map(date).transpose()?,
        split: text.split,
        pass: pass.transpose()?,
        ..FetchState::default()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"{"version":1,"fetched":["2026-01-05","2026-01-06"],"closed":["2026-01-01"],
        "unpublished_from":"-262143-01-01","split":true,
        "pass":{"made":"2026-01-07","dates":["2026-01-07"],"codes":["130A","25935","7203"]}}"#;

    #[test]
    fn the_file_of_an_earlier_version_is_understood() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("days.json");
        assert_eq!(read(&path), Ok(None));
        std::fs::write(&path, WHOLE).unwrap();
        let dates = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let expected = FetchState {
            fetched: dates(&["2026-01-05", "2026-01-06"]),
            closed: dates(&["2026-01-01"]),
            unpublished_from: Some(JstDate::MIN),
            split: true,
            pass: Some(IssuePass {
                made: "2026-01-07".parse().unwrap(),
                dates: dates(&["2026-01-07"]),
                codes: ["7203", "130A", "25935"].map(|code| code.parse().unwrap()).into(),
            }),
            ..FetchState::default()
        };
        assert_eq!(read(&path), Ok(Some(expected)));
    }

    #[test]
    fn a_damaged_file_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("days.json");
        let large = format!("{WHOLE}{}", " ".repeat(OLD_STATE_BYTES_MAX as usize));
        for (wrong, part) in [
            (WHOLE[..WHOLE.len() / 2].to_owned(), "EOF"),
            (WHOLE.replace("\"version\":1", "\"version\":2"), "version 2"),
            (WHOLE.replace("2026-01-05", "2026-02-30"), "`2026-02-30` is no date"),
            (WHOLE.replace("130A", "13-A"), "`13-A` is no code"),
            (WHOLE.replace("closed", "open"), "unknown field"),
            (large, "larger than"),
        ] {
            std::fs::write(&path, wrong).unwrap();
            let note = read(&path).unwrap_err();
            assert!(note.contains(part), "{note}");
        }
    }
}
