//! What tells one state of a file from another without reading it: for files that are opened anew, or
//! handed out again, where they are others than before.

use std::fs::{self, Metadata};
use std::io;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use xxhash_rust::xxh3::xxh3_128;

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp {
    /// Size of the file, in bytes.
    pub(crate) length: u64,
    /// Time of the last change, in nanoseconds since 1970; negative before.
    modified_ns: i128,
    /// Which file of the file system it is, where the system tells.
    identity: (u64, u64),
}

impl FileStamp {
    pub(crate) fn of(meta: &Metadata) -> io::Result<Self> {
        let modified = meta.modified()?;
        let nanos = |time: Duration| i128::try_from(time.as_nanos()).unwrap_or(i128::MAX);
        let modified_ns = match modified.duration_since(UNIX_EPOCH) {
            Ok(after) => nanos(after),
            Err(before) => -nanos(before.duration()),
        };
        Ok(Self { length: meta.len(), modified_ns, identity: identity(meta) })
    }

    /// Of the file that has the name now.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        Self::of(&fs::metadata(path)?)
    }

    /// Whether it is the same file of the file system, changed or not.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    /// A text that differs for every state of every file on this disk, for a strong validator (RFC 9110,
    /// 8.8.1) of a file whose content nobody has noted.
    pub(crate) fn tag(&self) -> String {
        let mut bytes = Vec::with_capacity(48);
        bytes.extend_from_slice(&self.length.to_le_bytes());
        bytes.extend_from_slice(&self.modified_ns.to_le_bytes());
        bytes.extend_from_slice(&self.identity.0.to_le_bytes());
        bytes.extend_from_slice(&self.identity.1.to_le_bytes());
        format!("{:032x}", xxh3_128(&bytes))
    }

    /// Time of the last change in microseconds since 1970; none before.
    pub(crate) fn modified_us(&self) -> Option<u64> {
        u64::try_from(self.modified_ns.div_euclid(1_000)).ok()
    }

    /// Time of the last change in whole seconds since 1970; none before.
    pub(crate) fn modified_seconds(&self) -> Option<u64> {
        u64::try_from(self.modified_ns.div_euclid(1_000_000_000)).ok()
    }
}

#[cfg(unix)]
fn identity(meta: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (meta.dev(), meta.ino())
}

/// Where the system tells no number of a file, its time of birth and its size stand for it.
#[cfg(not(unix))]
fn identity(meta: &Metadata) -> (u64, u64) {
    let born = meta.created().unwrap_or(UNIX_EPOCH);
    let born = born.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    (u64::try_from(born).unwrap_or(u64::MAX), meta.len())
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn file() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("7203.db");
        fs::write(&path, "seven").unwrap();
        (folder, path)
    }

    #[test]
    fn another_state_has_another_tag() {
        let (_folder, path) = file();
        let tag = || FileStamp::at(&path).unwrap().tag();
        let first = tag();
        assert_eq!((tag() == first, first.len()), (true, 32));
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::new(5, 7)).unwrap();
        let second = tag();
        file.set_len(6).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::new(5, 7)).unwrap();
        let third = tag();
        let before = FileStamp::at(&path).unwrap();
        // A copy of the same size and time is another file.
        let aside = path.with_extension("new");
        fs::copy(&path, &aside).unwrap();
        let copied = File::options().write(true).open(&aside).unwrap();
        copied.set_modified(UNIX_EPOCH + Duration::new(5, 7)).unwrap();
        fs::rename(&aside, &path).unwrap();
        assert!(!before.is_same_file(&FileStamp::at(&path).unwrap()));
        let fourth = tag();
        let mut tags = vec![first, second, third, fourth];
        tags.sort();
        tags.dedup();
        assert_eq!(tags.len(), 4);
    }

    #[test]
    fn times_before_1970_have_no_seconds() {
        let (_folder, path) = file();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(UNIX_EPOCH - Duration::from_millis(1)).unwrap();
        let stamp = FileStamp::at(&path).unwrap();
        assert_eq!((stamp.modified_seconds(), stamp.modified_ns), (None, -1_000_000));
    }
}
