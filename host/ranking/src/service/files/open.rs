//! Opens a file of the data layout once, and only a true one: what stands behind a link, inside a
//! linked folder or outside of the folder is not there.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::allow::StoredFile;
use crate::file_stamp::FileStamp;

/// How often a file is opened again that was replaced while it was opened. A publication replaces
/// each file once.
const TRIES: usize = 4;

/// A file that was opened. Whoever replaces it on disk does not change what is read from here.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) stamp: FileStamp,
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
    let stamp = FileStamp::of(&opened)?;
    let standing = look(folder, path)?;
    let is_same = FileStamp::of(&standing)?.is_same_file(&stamp);
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
}
