//! What a run may remove to take its place: an earlier run, and nothing else.
//!
//! | what is there | what becomes of it |
//! |---|---|
//! | nothing, or an empty folder | the run's folder gets the name |
//! | a folder with the manifest of a run, and besides only files that a run or its report makes | removed when the new run is complete |
//! | the same of a run that has ended, and the new one was interrupted by Ctrl-C | left alone, which is told |
//! | a folder with the same and one file or folder more | left alone; the run is refused |
//! | any other folder, also with a `manifest.json` of somebody else | left alone; the run is refused |
//! | a file | left alone; the run is refused |

use std::fs::{self, DirEntry, File};
use std::io::{self, BufReader, ErrorKind};
use std::path::Path;

use serde::Deserialize;

use super::files::{AUDIT_FILE, COMMANDS_FILE, EVENTS_FILE, MANIFEST_FILE, NotOurs, REPORT_FILE};
use super::tables::TABLES;

/// What every manifest of a run has had since the first version.
#[derive(Deserialize)]
#[expect(dead_code, reason = "that they are there is all that counts")]
struct OfRun {
    manifest_version: u32,
    event_log_digest: String,
}

/// Whether a run may take the place of what is there.
///
/// # Errors
/// What the system says when it cannot be looked at.
pub(crate) fn check(folder: &Path) -> io::Result<Result<(), NotOurs>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries.collect::<io::Result<Vec<DirEntry>>>()?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Ok(())),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            return Ok(Err(NotOurs::NoFolder));
        }
        Err(error) => return Err(error),
    };
    if entries.is_empty() {
        return Ok(Ok(()));
    }
    if !is_of_run(&folder.join(MANIFEST_FILE)) {
        return Ok(Err(NotOurs::NoRun));
    }
    // The first by name, so that the same folder gives the same message.
    let mut others = Vec::new();
    for entry in entries {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(is_file_of_run) && entry.file_type()?.is_file();
        if !is_ours {
            others.push(name.to_string_lossy().escape_debug().to_string());
        }
    }
    Ok(others.into_iter().min().map_or(Ok(()), |name| Err(NotOurs::Besides(name))))
}

fn is_of_run(manifest: &Path) -> bool {
    // A pipe could keep its reader waiting.
    if !manifest.is_file() {
        return false;
    }
    let Ok(file) = File::open(manifest) else { return false };
    serde_json::from_reader::<_, OfRun>(BufReader::new(file)).is_ok()
}

/// Whether a run or its report makes a file of this name.
fn is_file_of_run(name: &str) -> bool {
    let is_table = |(stem, form): (&str, &str)| {
        TABLES.iter().any(|table| table.name == stem) && ["csv", "json", "parquet"].contains(&form)
    };
    [MANIFEST_FILE, EVENTS_FILE, AUDIT_FILE, COMMANDS_FILE, REPORT_FILE].contains(&name)
        || name.split_once('.').is_some_and(is_table)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with an earlier run in two files, and what is put beside it.
    fn seen(manifest: &str, besides: &[&str]) -> Result<(), NotOurs> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(MANIFEST_FILE), manifest).unwrap();
        fs::write(folder.path().join("orders.csv"), "").unwrap();
        for name in besides {
            match name.strip_suffix('/') {
                Some(name) => fs::create_dir(folder.path().join(name)).unwrap(),
                None => fs::write(folder.path().join(name), "").unwrap(),
            }
        }
        check(folder.path()).unwrap()
    }

    /// The table at the head of this file.
    #[test]
    fn only_an_earlier_run_is_ours_to_remove() {
        const RUN: &str = r#"{"manifest_version":1,"event_log_digest":"00","later":true}"#;
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(check(folder.path()).unwrap(), Ok(()));
        assert_eq!(check(&folder.path().join("none")).unwrap(), Ok(()));
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(check(&file).unwrap(), Err(NotOurs::NoFolder));
        assert_eq!(check(folder.path()).unwrap(), Err(NotOurs::NoRun));

        let besides = |name: &str| Err(NotOurs::Besides(name.to_owned()));
        assert_eq!(seen(RUN, &["report.html", "summary.json", "days.parquet"]), Ok(()));
        assert_eq!(seen(RUN, &["thesis.txt", "notes.md"]), besides("notes.md"));
        assert_eq!(seen(RUN, &["orders.csv.bak"]), besides("orders.csv.bak"));
        assert_eq!(seen(RUN, &["mine.csv"]), besides("mine.csv"));
        assert_eq!(seen(RUN, &["fills.csv/"]), besides("fills.csv"));
        assert_eq!(seen(RUN, &[".git/"]), besides(".git"));
        for manifest in ["", "{}", "[]", r#"{"manifest_version":3,"name":"extension"}"#] {
            assert_eq!(seen(manifest, &[]), Err(NotOurs::NoRun), "{manifest}");
        }
    }
}
