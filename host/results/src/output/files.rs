//! The names of the files of a run's folder, and why they cannot be written or read.

use std::io;
use std::path::{Path, PathBuf};

use domain::limits::RUN_JSON_BYTES_MAX;
use thiserror::Error;

/// The file that makes a folder a run's folder.
pub const MANIFEST_FILE: &str = "manifest.json";
/// The events of the run, one JSON object a line.
pub const EVENTS_FILE: &str = "events.jsonl";
/// The audit log of a replay (specification 2).
pub const AUDIT_FILE: &str = "web_broker_orders_replay.jsonl";
/// What clients did to the run, one JSON object a line; only where they did something.
pub const COMMANDS_FILE: &str = "commands.jsonl";
/// Keeps room for the last manifest of a run on the live market, where the disk gets full. It goes with the run's end.
pub(crate) const ROOM_FILE: &str = "room-for-manifest";
/// The page.
pub const REPORT_FILE: &str = "report.html";
/// The key numbers.
pub const SUMMARY_FILE: &str = "summary.json";

/// Why a run's folder cannot be written.
#[derive(Debug, Error)]
pub enum FolderError {
    /// There is something that is not ours to remove.
    #[error("{folder} {what}; choose another folder")]
    Occupied {
        /// The folder.
        folder: PathBuf,
        /// What is there.
        what: NotOurs,
    },
    /// A page would replace a file that is no such page.
    #[error("{path} exists and is not a page of this command; choose another name, or remove it")]
    NoPage {
        /// The file.
        path: PathBuf,
    },
    /// The disk says no.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The failure of the disk.
        source: io::Error,
    },
    /// What was just written cannot be read again.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why something is not removed for a run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NotOurs {
    /// It is no folder.
    #[error("is no folder")]
    NoFolder,
    /// No run has made it.
    #[error("is not empty and holds no earlier run (no {MANIFEST_FILE} of a run)")]
    NoRun,
    /// Something in it was made by nobody of us.
    #[error("holds `{0}` beside an earlier run, and a run would remove it")]
    Besides(String),
}

impl FolderError {
    /// What a failure of the disk at a file or folder is.
    pub(crate) fn at(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        move |source| Self::Write { path: path.to_owned(), source }
    }
}

/// Why a run's folder cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// It is no run's folder.
    #[error("{0} holds no run: it has no {MANIFEST_FILE}; give the folder of `replay run --out`")]
    NoRun(PathBuf),
    /// A run on the live market that goes on, or was killed: what is made at its end is not there.
    #[error(
        "the run in {0} has not ended: it still runs, or it was killed; `kumiki replay journal` and \
         `kumiki replay compare-live` read its folder as it is"
    )]
    NotEnded(PathBuf),
    /// A run on the live market whose tables could not be completed.
    #[error(
        "the run in {folder} has no complete tables; it ended with: {fault}. `kumiki replay journal` \
         and `kumiki replay compare-live` read its folder as it is"
    )]
    NotComplete {
        /// The run's folder.
        folder: PathBuf,
        /// Why the run ended.
        fault: String,
    },
    /// The disk says no.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The failure of the disk.
        source: io::Error,
    },
    /// More than a run writes.
    #[error(
        "{path} has more than {RUN_JSON_BYTES_MAX} bytes, which no run writes; run the replay again"
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A file is not what a run writes.
    #[error("{path}, line {line}: expected {expected}, found `{found}`; run the replay again")]
    Content {
        /// The file.
        path: PathBuf,
        /// The line, from 1; 0 for the file as a whole.
        line: u64,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },
}
