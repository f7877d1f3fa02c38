//! Opens a file of the data layout once, and only a true one: what stands behind a link, inside a
//! linked folder or outside of the folder is not there.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use thiserror::Error;
use xxhash_rust::xxh3::xxh3_128;

use super::allow::StoredFile;

/// How often a file is opened again that was replaced while it was opened. A publication replaces
/// each file once.
const TRIES: usize = 4;

/// A file that was opened. Whoever replaces it on disk does not change what is read from here.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) stamp: Stamp,
}

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Size of the file, in bytes.
    pub(super) length: u64,
    /// Time of the last change, in nanoseconds since 1970; negative before.
    modified_ns: i128,
    /// Which file of the file system it is, where the system tells.
    identity: (u64, u64),
}

impl Stamp {
    pub(super) fn of(meta: &Metadata) -> io::Result<Self> {
        let modified = meta.modified()?;
        let nanos = |time: Duration| i128::try_from(time.as_nanos()).unwrap_or(i128::MAX);
        let modified_ns = match modified.duration_since(UNIX_EPOCH) {
            Ok(after) => nanos(after),
            Err(before) => -nanos(before.duration()),
        };
        Ok(Self { length: meta.len(), modified_ns, identity: identity(meta) })
    }

    /// A text that differs for every state of every file, for a strong validator (RFC 9110, 8.8.1).
    pub(super) fn tag(&self) -> String {
        let mut bytes = Vec::with_capacity(48);
        bytes.extend_from_slice(&self.length.to_le_bytes());
        bytes.extend_from_slice(&self.modified_ns.to_le_bytes());
        bytes.extend_from_slice(&self.identity.0.to_le_bytes());
        bytes.extend_from_slice(&self.identity.1.to_le_bytes());
        format!("{:032x}", xxh3_128(&bytes))
    }

    /// Time of the last change in microseconds since 1970; none before.
    pub(super) fn modified_us(&self) -> Option<u64> {
        u64::try_from(self.modified_ns.div_euclid(1_000)).ok()
    }

    /// Time of the last change in whole seconds since 1970; none before.
    pub(super) fn modified_seconds(&self) -> Option<u64> {
        u64::try_from(self.modified_ns.div_euclid(1_000_000_000)).ok()
    }
}

/// Why something that is there is not opened.
#[derive(Debug, Error)]
pub(super) enum OpenError {
    /// A link, a folder, a device, or a file behind a linked folder.
    #[error("it is a link, or no plain file in plain folders")]
    NotPlain,
    /// The system refuses.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Opens a file below `folder` (`DATA_DIR/jp`); none where it is not there. The folder itself may be
/// a link, what is in it may not.
///
/// # Errors
/// When there is something else than a plain file, or the system refuses to read it.
pub(super) fn open(folder: &Path, stored: &StoredFile) -> Result<Option<Opened>, OpenError> {
    let mut inside = folder.to_path_buf();
    inside.extend(stored.folder());
    for name in stored.names() {
        let path = inside.join(name);
        for _ in 0..TRIES {
            match open_once(folder, &path) {
                Ok(Some(opened)) => return Ok(Some(opened)),
                // Replaced between two looks: look again.
                Ok(None) => {}
                Err(OpenError::System(error)) if is_missing(&error) => break,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(None)
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Opens, then looks again whether what was opened is what stands at the path without any link.
/// Links that come and go in between are thus seen as well. None when it is not.
fn open_once(folder: &Path, path: &Path) -> Result<Option<Opened>, OpenError> {
    // First, because opening something else than a file may wait or have effects.
    look(folder, path)?;
    let file = options().open(path)?;
    let opened = file.metadata()?;
    if !opened.is_file() {
        return Err(OpenError::NotPlain);
    }
    let stamp = Stamp::of(&opened)?;
    let standing = look(folder, path)?;
    let is_same = Stamp::of(&standing)?.identity == stamp.identity;
    let is_inside = fs::canonicalize(path)?.starts_with(fs::canonicalize(folder)?);
    Ok((is_same && is_inside).then_some(Opened { file, stamp }))
}

/// What stands at `path`, when it is a file and every step from `folder` to it is a true folder.
fn look(folder: &Path, path: &Path) -> Result<Metadata, OpenError> {
    let steps = path.strip_prefix(folder).map_err(|_| OpenError::NotPlain)?;
    let mut step = PathBuf::from(folder);
    let mut found = fs::metadata(folder)?;
    for part in steps {
        if !found.is_dir() {
            return Err(OpenError::NotPlain);
        }
        step.push(part);
        found = fs::symlink_metadata(&step)?;
    }
    if found.is_file() { Ok(found) } else { Err(OpenError::NotPlain) }
}

#[cfg(not(windows))]
fn options() -> fs::OpenOptions {
    let mut options = File::options();
    options.read(true);
    options
}

/// A link is opened as itself, so that it is seen to be none of ours.
#[cfg(windows)]
fn options() -> fs::OpenOptions {
    use std::os::windows::fs::OpenOptionsExt;
    /// `FILE_FLAG_OPEN_REPARSE_POINT` of the system.
    const AS_ITSELF: u32 = 0x0020_0000;
    let mut options = File::options();
    options.read(true).custom_flags(AS_ITSELF);
    options
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
    use super::*;

    struct Folder {
        _all: tempfile::TempDir,
        jp: PathBuf,
    }

    fn folder() -> Folder {
        let all = tempfile::tempdir().unwrap();
        let jp = all.path().join("jp");
        fs::create_dir_all(jp.join("stocks_daily")).unwrap();
        fs::write(jp.join("stocks_daily").join("7203.db"), "seven").unwrap();
        fs::write(all.path().join("secret.db"), "secret").unwrap();
        Folder { jp, _all: all }
    }

    fn daily(code: &str) -> StoredFile {
        StoredFile::Daily(code.to_owned())
    }

    #[test]
    fn a_file_is_opened_and_a_missing_one_is_missing() {
        let folder = folder();
        let opened = open(&folder.jp, &daily("7203")).unwrap().unwrap();
        assert_eq!(io::read_to_string(&opened.file).unwrap(), "seven");
        assert_eq!(opened.stamp.length, 5);
        for missing in [
            daily("7204"),
            StoredFile::Combined,
            StoredFile::Listed,
            StoredFile::Board("7203".into()),
        ] {
            assert!(open(&folder.jp, &missing).unwrap().is_none(), "{missing:?}");
        }
        assert!(open(&folder.jp.join("none"), &daily("7203")).unwrap().is_none());
        // A file where a folder should be hides nothing and breaks nothing.
        fs::write(folder.jp.join("stocks_board"), "").unwrap();
        assert!(open(&folder.jp, &StoredFile::Board("7203".into())).is_err());
    }

    #[test]
    fn small_letters_on_disk_are_found() {
        let folder = folder();
        fs::write(folder.jp.join("stocks_daily").join("130a.db"), "letters").unwrap();
        let opened = open(&folder.jp, &daily("130A")).unwrap().unwrap();
        assert_eq!(io::read_to_string(&opened.file).unwrap(), "letters");
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_nowhere() {
        use std::os::unix::fs::symlink;
        let folder = folder();
        let secret = folder.jp.with_file_name("secret.db");
        symlink(&secret, folder.jp.join("listed_info.db")).unwrap();
        symlink("7203.db", folder.jp.join("stocks_daily").join("7204.db")).unwrap();
        fs::create_dir(folder.jp.with_file_name("boards")).unwrap();
        fs::copy(&secret, folder.jp.with_file_name("boards").join("7203.db")).unwrap();
        symlink("../boards", folder.jp.join("stocks_board")).unwrap();
        for linked in [StoredFile::Listed, daily("7204"), StoredFile::Board("7203".into())] {
            let refused = open(&folder.jp, &linked);
            assert!(matches!(refused, Err(OpenError::NotPlain)), "{linked:?}: {refused:?}");
        }
        // A folder is no file either.
        fs::create_dir(folder.jp.join("stocks_daily").join("7205.db")).unwrap();
        assert!(open(&folder.jp, &daily("7205")).is_err());
        // The data folder itself may be a link: that is for its owner to say.
        let link = folder.jp.with_file_name("link");
        symlink(&folder.jp, &link).unwrap();
        assert!(open(&link, &daily("7203")).unwrap().is_some());
    }

    #[test]
    fn another_state_has_another_tag() {
        let folder = folder();
        let path = folder.jp.join("stocks_daily").join("7203.db");
        let tag = || open(&folder.jp, &daily("7203")).unwrap().unwrap().stamp.tag();
        let first = tag();
        assert_eq!((tag() == first, first.len()), (true, 32));
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::new(5, 7)).unwrap();
        let second = tag();
        file.set_len(6).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::new(5, 7)).unwrap();
        let third = tag();
        // A copy of the same size and time is another file.
        let aside = path.with_extension("new");
        fs::copy(&path, &aside).unwrap();
        let copied = File::options().write(true).open(&aside).unwrap();
        copied.set_modified(UNIX_EPOCH + Duration::new(5, 7)).unwrap();
        fs::rename(&aside, &path).unwrap();
        let fourth = tag();
        let mut tags = vec![first, second, third, fourth];
        tags.sort();
        tags.dedup();
        assert_eq!(tags.len(), 4);
    }

    #[test]
    fn times_before_1970_have_no_seconds() {
        let folder = folder();
        let path = folder.jp.join("stocks_daily").join("7203.db");
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(UNIX_EPOCH - Duration::from_millis(1)).unwrap();
        let stamp = open(&folder.jp, &daily("7203")).unwrap().unwrap().stamp;
        assert_eq!((stamp.modified_seconds(), stamp.modified_ns), (None, -1_000_000));
    }
}
