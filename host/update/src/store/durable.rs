//! Files that are there as a whole or not at all, also after a power cut.

use std::fs;
use std::path::Path;

use pricestore::sql::log_of;

use super::error::StoreError;
use super::paths::UNFINISHED;
use crate::row::IssueCode;

/// Brings a finished file to the disk and gives it its name. Readers that have the old one open
/// keep it. The folder still has to be brought to the disk, see [`sync_folder`].
pub(super) fn put_in_place(unfinished: &Path, path: &Path) -> Result<(), StoreError> {
    sync_file(unfinished)?;
    give_name(unfinished, path)
}

/// Brings a finished file to the disk.
pub(super) fn sync_file(unfinished: &Path) -> Result<(), StoreError> {
    atomic_file::sync_file(unfinished).map_err(StoreError::io("bring to the disk", unfinished))
}

/// Gives a file its name that is on the disk already.
pub(super) fn give_name(unfinished: &Path, path: &Path) -> Result<(), StoreError> {
    atomic_file::rename(unfinished, path).map_err(StoreError::io("replace", path))
}

/// Makes renames in a folder last, where the system can.
pub(super) fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    atomic_file::sync_folder(folder).map_err(StoreError::io("bring to the disk", folder))
}

/// Removes a file; it need not be there.
pub(super) fn remove(path: &Path) -> Result<(), StoreError> {
    atomic_file::remove_if_there(path).map_err(StoreError::io("remove", path))
}

/// Makes room for a database that is to be written aside.
pub(super) fn clear(unfinished: &Path) -> Result<(), StoreError> {
    remove(&log_of(unfinished))?;
    remove(unfinished)
}

/// Removes what a killed job has left in a folder: files that were not finished, with names that it gives.
pub(super) fn remove_unfinished(folder: &Path) -> Result<(), StoreError> {
    let listed = |error| StoreError::io("list", folder)(error);
    let logs = format!(".{UNFINISHED}.wal");
    let files = format!(".{UNFINISHED}");
    for entry in fs::read_dir(folder).map_err(listed)? {
        let entry = entry.map_err(listed)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let whole = name.strip_suffix(&logs).or_else(|| name.strip_suffix(&files));
        if whole.is_some_and(is_own_name) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Whether the job gives a database such a name: that of an issue, of all together or of the lists.
fn is_own_name(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".db") else { return false };
    let is_issue = stem.parse::<IssueCode>().is_ok_and(|code| code.as_str() == stem);
    is_issue || matches!(stem, "mother" | "listed_info")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unfinished_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let names = [
            "7203.db",
            "7203.db.kumiki-new",
            "mother.db.kumiki-new.wal",
            "mother.db.wal",
            "1.db.new",
            "notes.txt.kumiki-new",
            "old 7203.db.kumiki-new",
        ];
        for name in names {
            fs::write(folder.path().join(name), name).unwrap();
        }
        remove_unfinished(folder.path()).unwrap();
        let left: Vec<bool> = names.iter().map(|name| folder.path().join(name).exists()).collect();
        assert_eq!(left, [true, false, false, true, true, true, true]);
        remove_unfinished(&folder.path().join("none")).unwrap_err();
    }

    #[test]
    fn a_file_takes_the_place_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("a"), folder.path().join("a.new"));
        fs::write(&old, "old").unwrap();
        fs::write(&new, "new").unwrap();
        put_in_place(&new, &old).unwrap();
        sync_folder(folder.path()).unwrap();
        assert_eq!((fs::read(&old).unwrap(), new.exists()), (b"new".to_vec(), false));
        let error = put_in_place(&new, &old).unwrap_err().to_string();
        assert!(error.starts_with("cannot bring to the disk ") && error.ends_with("a.new"));
    }
}
