//! One process at a time in a folder. The system frees the lock when the process ends, however it ends.
//! Who holds it stands in a file of its own, because some systems let nobody else read a locked file.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::limits::HOLDER_BYTES_MAX;

/// Who holds a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    /// Number of the process.
    pub process: u32,
    /// Since when, in Japan time, as people read it.
    pub since: String,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} since {}", self.process, self.since)
    }
}

/// The holder in words, also where nothing says who it is.
#[must_use]
pub fn holder_text(holder: Option<&LockHolder>) -> String {
    holder.map_or_else(|| "its process is unknown".to_owned(), ToString::to_string)
}

/// Why a folder was not taken.
#[derive(Debug)]
pub enum LockFault {
    /// Another process has it, and which, where that can be read.
    Held(Option<LockHolder>),
    /// The file could not be opened, locked or written.
    Io(PathBuf, io::Error),
}

/// A folder that is held.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
    holder: PathBuf,
}

impl FolderLock {
    /// Takes a folder, which must be there.
    ///
    /// # Errors
    /// Why it was not taken.
    pub fn take(folder: &Path) -> Result<Self, LockFault> {
        let path = folder.join("LOCK");
        let holder = folder.join("HOLDER");
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| LockFault::Io(path, source)
        };
        let file = atomic_file::open_own(&path).map_err(failed(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockFault::Held(read(&holder))),
            Err(TryLockError::Error(source)) => return Err(failed(&path)(source)),
        }
        let text = format!("{}\n{}\n", std::process::id(), domain::clock::wall_now());
        // A link of this name is replaced, and what it leads to left alone. No file is written aside: a
        // killed process would leave it.
        atomic_file::remove_if_there(&holder).map_err(failed(&holder))?;
        let named = OpenOptions::new().create_new(true).write(true).open(&holder);
        named.and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed(&holder))?;
        Ok(Self { _file: file, holder })
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // The lock is what counts; a name that stays behind is replaced by the next holder.
        let _ = fs::remove_file(&self.holder);
    }
}

fn read(path: &Path) -> Option<LockHolder> {
    let mut text = String::new();
    File::open(path).ok()?.take(HOLDER_BYTES_MAX).read_to_string(&mut text).ok()?;
    let (process, since) = text.split_once('\n')?;
    let since = since.strip_suffix('\n')?.to_owned();
    Some(LockHolder { process: process.parse().ok()?, since })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_of_a_holder_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("HOLDER");
        fs::write(&path, "7\n2026-01-05 10:00:00.000000 JST\n").unwrap();
        assert_eq!(read(&path).unwrap().process, 7);
        let long = format!("7\n{}\n", "x".repeat(usize::try_from(HOLDER_BYTES_MAX).unwrap()));
        fs::write(&path, long).unwrap();
        assert_eq!(read(&path), None);
        assert_eq!(holder_text(None), "its process is unknown");
    }

    #[cfg(unix)]
    #[test]
    fn what_links_lead_to_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let theirs = folder.path().join("theirs");
        fs::write(&theirs, "theirs").unwrap();
        let held = folder.path().join("held");
        fs::create_dir(&held).unwrap();
        std::os::unix::fs::symlink(&theirs, held.join("HOLDER")).unwrap();
        let lock = FolderLock::take(&held).unwrap();
        assert_eq!(read(&held.join("HOLDER")).unwrap().process, std::process::id());
        drop(lock);
        fs::remove_file(held.join("LOCK")).unwrap();
        for target in [theirs.clone(), folder.path().join("nothing")] {
            std::os::unix::fs::symlink(&target, held.join("LOCK")).unwrap();
            assert!(matches!(FolderLock::take(&held), Err(LockFault::Io(..))));
            fs::remove_file(held.join("LOCK")).unwrap();
        }
        assert_eq!(fs::read(&theirs).unwrap(), b"theirs");
        assert!(!folder.path().join("nothing").exists());
    }

    #[test]
    fn a_folder_has_one_holder_who_says_his_name() {
        let folder = tempfile::tempdir().unwrap();
        let first = FolderLock::take(folder.path()).unwrap();
        let Err(LockFault::Held(Some(holder))) = FolderLock::take(folder.path()) else { panic!() };
        assert_eq!(holder.process, std::process::id());
        drop(first);
        FolderLock::take(folder.path()).unwrap();
        let gone = folder.path().join("gone");
        assert!(
            matches!(FolderLock::take(&gone), Err(LockFault::Io(path, _)) if path == gone.join("LOCK"))
        );
    }
}
