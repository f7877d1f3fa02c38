//! The audit log `web_broker_orders.jsonl`: every submit, acceptance, rejection and fill of an order.
//!
//! It has one line for each (specification 2, "Audit log"; specification 4, P22). A line is written before the
//! event that it records is broadcast.
//!
//! | what is written | when | to the disk at once |
//! |---|---|---|
//! | submit | before the request leaves | yes; where that fails nothing is sent |
//! | accepted, rejected | after the broker's answer | no |
//! | filled | before a fill is reported | of strategies yes: [`holdings`] counts them; of others no |
//! | ended | when an order of a strategy has ended | no |
//! | adjusted | before a correction of what a strategy holds counts | yes |
//! | session_expired | when the session freezes, before the rejections | no |
//!
//! A lock on `web_broker_orders.lock` gives the log to one program, also while that program is suspended.

pub mod holdings;
mod lines;
pub mod restore;
#[cfg(test)]
mod testing;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ipc::AuditLine;
use thiserror::Error;

pub(crate) use lines::{
    FillLine, FillSource, accepted, adjusted, ended, filled, note_filled, rejected,
    session_expired, submit, sync_filled,
};

pub use restore::Restored;

use crate::limits::{AUDIT_LINE_BYTES_MAX, AUDIT_LOG_BYTES_MAX};

/// Name of the log in the folder of settings.
pub const AUDIT_FILE: &str = "web_broker_orders.jsonl";
/// Name of the file whose lock says that a host writes the log.
pub const LOCK_FILE: &str = "web_broker_orders.lock";

/// Why a log cannot be used.
#[derive(Debug, Error)]
pub enum AuditError {
    /// Another host writes it.
    #[error(
        "another program writes {}; end that one, or use another config folder",
        .0.display()
    )]
    Locked(PathBuf),
    /// It has more bytes than a log can have.
    #[error(
        "{} has {bytes} bytes; the engine reads at most {AUDIT_LOG_BYTES_MAX}; when no order in it \
         is open, move the file away",
        path.display()
    )]
    TooLarge {
        /// The log.
        path: PathBuf,
        /// Its bytes.
        bytes: u64,
    },
    /// An I/O error.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Where the desk writes what it is about to do and the outcome.
pub trait AuditSink: Send {
    /// Appends lines; with `sync` they are on the disk when this returns. Either all of them are in
    /// the log afterwards, or none.
    ///
    /// # Errors
    /// What the system says; nothing was added then.
    fn append(&mut self, lines: &[AuditLine<'_>], sync: bool) -> io::Result<()>;
}

/// The log in a file.
#[derive(Debug)]
pub struct AuditLog {
    file: File,
    path: PathBuf,
    /// Bytes of whole lines.
    length: u64,
    buffer: Vec<u8>,
    /// A failed write could not be cut back. It must be cut back before the next line.
    is_torn: bool,
    /// Keeps other hosts away.
    _lock: File,
}

impl AuditLog {
    /// Opens the log of a folder, or makes it, and reads what it says. A last line without an end is
    /// cut off.
    ///
    /// # Errors
    /// [`AuditError`].
    pub fn open(folder: &Path) -> Result<(Self, Restored), AuditError> {
        let lock_path = folder.join(LOCK_FILE);
        let path = folder.join(AUDIT_FILE);
        let of = |path: &Path| {
            let path = path.to_owned();
            move |source| AuditError::Io { path, source }
        };
        let lock = atomic_file::open_own(&lock_path).map_err(of(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(AuditError::Locked(path)),
            Err(std::fs::TryLockError::Error(source)) => return Err(of(&lock_path)(source)),
        }
        let mut file = atomic_file::open_own(&path).map_err(of(&path))?;
        let bytes = file.metadata().map_err(of(&path))?.len();
        if bytes > AUDIT_LOG_BYTES_MAX {
            return Err(AuditError::TooLarge { path, bytes });
        }
        file.seek(SeekFrom::Start(0)).map_err(of(&path))?;
        let mut text = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
        (&mut file).take(AUDIT_LOG_BYTES_MAX).read_to_end(&mut text).map_err(of(&path))?;
        let restored = Restored::read(&text);
        if restored.whole_bytes < bytes {
            tracing::warn!(
                bytes = bytes - restored.whole_bytes,
                "the audit log ends inside a line; the engine cuts that line off"
            );
            file.set_len(restored.whole_bytes).map_err(of(&path))?;
        }
        // The file's length and its entry in the folder are on the disk now, so that both survive a power cut.
        file.sync_all().map_err(of(&path))?;
        atomic_file::sync_folder(folder).map_err(of(folder))?;
        let length = restored.whole_bytes;
        let log = Self { file, path, length, buffer: Vec::new(), is_torn: false, _lock: lock };
        Ok((log, restored))
    }

    /// The log's file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the buffer; `points` names the crash points of its line.
    fn write(&mut self, sync: bool, points: Option<&LinePoints>) -> io::Result<()> {
        if self.is_torn {
            self.cut_back()?;
        }
        self.file.seek(SeekFrom::Start(self.length))?;
        if let Some(points) = points.filter(|points| crate::kill::is_at(points.half)) {
            self.file.write_all(&self.buffer[..self.buffer.len() / 2])?;
            crate::kill::here(points.half);
        }
        self.file.write_all(&self.buffer)?;
        if sync {
            if let Some(points) = points {
                crate::kill::here(points.unsynced);
            }
            self.file.sync_data()?;
        }
        self.length += self.buffer.len() as u64;
        Ok(())
    }

    /// Takes away what a failed write has left.
    fn cut_back(&mut self) -> io::Result<()> {
        self.file.set_len(self.length)?;
        self.is_torn = false;
        Ok(())
    }
}

impl AuditSink for AuditLog {
    fn append(&mut self, lines: &[AuditLine<'_>], sync: bool) -> io::Result<()> {
        self.buffer.clear();
        for line in lines {
            let start = self.buffer.len();
            write_line(&mut self.buffer, line)?;
            if self.buffer.len() - start > AUDIT_LINE_BYTES_MAX {
                return Err(io::Error::other("a line of the audit log is too long"));
            }
        }
        let points = lines.first().filter(|_| sync).and_then(LinePoints::of);
        let written = self.write(sync, points.as_ref());
        if written.is_err() {
            self.is_torn = true;
            // If this fails, too, it is tried again before the next line.
            let _ = self.cut_back();
        }
        written
    }
}

/// The crash points of a line that is on the disk before anything follows from it.
struct LinePoints {
    half: &'static str,
    unsynced: &'static str,
}

impl LinePoints {
    fn of(line: &AuditLine<'_>) -> Option<Self> {
        match line {
            AuditLine::Submit(_) => {
                Some(Self { half: "submit_line_half", unsynced: "submit_line_unsynced" })
            }
            AuditLine::Filled(_) => {
                Some(Self { half: "fill_line_half", unsynced: "fill_line_unsynced" })
            }
            _ => None,
        }
    }
}

/// Writes a line with its end. JSON escapes control characters and newlines; `plain` has removed the others.
fn write_line(buffer: &mut Vec<u8>, line: &AuditLine<'_>) -> io::Result<()> {
    serde_json::to_writer(&mut *buffer, line)?;
    buffer.push(b'\n');
    Ok(())
}

/// A text for the log: without control characters.
#[must_use]
pub(crate) fn plain(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::testing::{accepted_line, rejected_line, submit_line};
    use super::*;

    fn open(folder: &Path) -> (AuditLog, Restored) {
        AuditLog::open(folder).unwrap()
    }

    #[test]
    fn what_was_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let (mut log, restored) = open(folder.path());
        assert_eq!(restored.entries.len(), 0, "a missing file is an empty map");
        log.append(&[submit_line("a", 1)], true).unwrap();
        log.append(&[accepted_line("a", Some("R1"))], false).unwrap();
        log.append(&[submit_line("b", 2), submit_line("c", 3)], true).unwrap();
        log.append(&[rejected_line("c")], false).unwrap();
        drop(log);
        let (_, restored) = open(folder.path());
        let ids: Vec<&str> = restored.entries.iter().map(|entry| &*entry.client_order_id).collect();
        assert_eq!(ids, ["a", "b"]);
    }

    #[test]
    fn a_second_host_is_refused_while_the_first_lives() {
        let folder = tempfile::tempdir().unwrap();
        let first = open(folder.path());
        assert!(matches!(AuditLog::open(folder.path()), Err(AuditError::Locked(_))));
        drop(first);
        open(folder.path());
    }

    #[test]
    fn a_torn_tail_is_cut_off_physically() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(AUDIT_FILE);
        let (mut log, _) = open(folder.path());
        log.append(&[submit_line("a", 1)], true).unwrap();
        drop(log);
        let whole = std::fs::read(&path).unwrap();
        let mut torn = whole.clone();
        torn.extend_from_slice(b"{\"phase\":\"acc");
        std::fs::write(&path, torn).unwrap();
        let (mut log, restored) = open(folder.path());
        assert_eq!(restored.entries.len(), 1);
        assert_eq!(std::fs::read(&path).unwrap(), whole);
        log.append(&[submit_line("b", 1)], true).unwrap();
        drop(log);
        assert_eq!(open(folder.path()).1.entries.len(), 2);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_the_place_of_the_log_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("elsewhere");
        std::fs::write(&elsewhere, "precious").unwrap();
        std::os::unix::fs::symlink(&elsewhere, folder.path().join(AUDIT_FILE)).unwrap();
        assert!(AuditLog::open(folder.path()).is_err());
        assert_eq!(std::fs::read(elsewhere).unwrap(), b"precious");
    }

    #[test]
    fn a_text_has_no_control_characters() {
        assert_eq!(plain("a\u{1}b\r\nc\u{7f}\u{85}日"), "abc日");
    }
}
