//! Folders that are there as a whole or not at all.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::{Builder, TempDir};

use crate::UNFINISHED_PREFIX;
use crate::folder::{folder_of, must_be_a_name, rename, sync_folder};

/// The file that says for which name a folder aside is; its writer has it locked.
const OWNER: &str = "owner";
/// The folder that is being filled.
const NEW: &str = "new";
/// The folder that had the name before.
const OLD: &str = "old";
/// Letters and digits of the name of a folder aside, behind [`UNFINISHED_PREFIX`].
const NAME_LETTERS: usize = 6;
/// Time after which an empty folder aside is nobody's any more: who makes one puts its owner into it at once.
const EMPTY_KEPT: Duration = Duration::from_secs(3_600);

/// A folder that is being filled in another one aside, beside the one that it will be. Dropped before
/// [`Self::commit`], it is removed with everything in it but for the files that are to be kept.
///
/// What a killed process has left aside is removed by the next folder of the same name. This is ours
/// to delete:
///
/// | what | when |
/// |---|---|
/// | a folder `.kumiki-*` beside the name | its `owner` holds the name, nobody has that locked, and besides there is nothing but `new` and `old` |
/// | the folder in it that had the name before | another one that is not empty has the name; else it gets its name back |
/// | an empty folder `.kumiki-` with six letters or digits beside the name, also of another one | nothing came into it for an hour (`EMPTY_KEPT`): its maker was killed before it had an owner |
/// | everything else | never |
#[derive(Debug)]
pub struct AtomicFolder {
    // Closed before the folder is removed; some systems want it so.
    owner: File,
    aside: Aside,
    path: PathBuf,
    unfinished: PathBuf,
}

/// The folder aside, which is removed when this is dropped.
#[derive(Debug)]
struct Aside {
    folder: TempDir,
    /// Names of files of the new folder that stay, and the name under which.
    kept: (&'static [&'static str], PathBuf),
    /// Whether it holds what is complete and got no name: nothing of it is removed.
    is_complete: bool,
}

impl Drop for Aside {
    fn drop(&mut self) {
        let (kept, path) = &self.kept;
        let aside = self.folder.path();
        // The owner goes last: where this fails or is killed, the next one knows whose the rest is, and tries
        // again.
        let remove = || keep_files(&aside.join(NEW), path, kept).and_then(|()| remove_parts(aside));
        if self.is_complete || remove().is_err() {
            self.folder.disable_cleanup(true);
        }
    }
}

impl AtomicFolder {
    /// A new, empty folder beside `path`, for which the folder around it is made where it is missing.
    /// A link is followed: what it points to will be replaced.
    ///
    /// # Errors
    /// What the system says when the folder cannot be made, that `path` has no name of its own, as `.`, `..` and `/`
    /// (nothing can take its place), or what [`must_be_a_name`] says.
    pub fn create_beside(path: &Path) -> io::Result<Self> {
        let path = if path.is_symlink() { fs::canonicalize(path)? } else { path.to_owned() };
        let Some(name) = path.file_name() else {
            let text = "it has no name, so it cannot be replaced; name a folder";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        };
        must_be_a_name(&path)?;
        let around = folder_of(&path);
        fs::create_dir_all(around)?;
        // A way through the folder itself, as in `run/../run`, leads nowhere once that is away.
        let leads_back = around.components().any(|part| part == Component::ParentDir);
        let around = if leads_back { fs::canonicalize(around)? } else { around.to_owned() };
        let around = around.as_path();
        // Without what may follow the name, as in `a/.`.
        let path = around.join(name);
        remove_leftovers(around, Some(name), &[])?;
        let aside =
            Builder::new().prefix(UNFINISHED_PREFIX).rand_bytes(NAME_LETTERS).tempdir_in(around)?;
        let mut owner = File::create_new(aside.path().join(OWNER))?;
        // It is empty until it is locked. Where the system has no locks it stays so, and is nobody's.
        if owner.lock().is_ok() {
            owner.write_all(name.as_encoded_bytes())?;
        }
        let unfinished = aside.path().join(NEW);
        fs::create_dir(&unfinished)?;
        // By the clock of the disk, which may be another machine's. What stays is in nobody's way.
        let _ = fs::metadata(&unfinished)
            .and_then(|made| made.modified())
            .and_then(|now| remove_empty(around, now));
        let aside = Aside { folder: aside, kept: (&[], path.clone()), is_complete: false };
        Ok(Self { owner, aside, path, unfinished })
    }

    /// Files of these names that hold something stay when this is dropped, in a folder of the name that the
    /// whole was for, where nothing has that name.
    #[must_use]
    pub fn keeping(mut self, names: &'static [&'static str]) -> Self {
        self.aside.kept.0 = names;
        self
    }

    /// Where the folder is before it has its name.
    #[must_use]
    pub fn unfinished_path(&self) -> &Path {
        &self.unfinished
    }

    /// Gives the folder the name beside which it was made, in the place of what has it, which is
    /// removed if `may_remove` agrees: it is asked once that is away, so nothing can come in later.
    /// Both change their names in one step on Linux and macOS; elsewhere the name is free for the instant
    /// between. What is in the folder is brought to the disk when the system likes.
    ///
    /// # Errors
    /// What the system or `may_remove` says, with the path at which the complete folder is left;
    /// what had the name keeps it then.
    pub fn commit(self, may_remove: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
        let Self { owner, mut aside, path, unfinished } = self;
        aside.kept.0 = &[];
        let replaced = replace_folder(&unfinished, &path, aside.folder.path(), may_remove);
        if let Err(error) = replaced {
            // What is complete is not removed, now or by the next one.
            drop(owner);
            aside.is_complete = true;
            let _ = fs::remove_file(aside.folder.path().join(OWNER));
            let text = format!("{error}; the complete files are in {}", unfinished.display());
            return Err(io::Error::new(error.kind(), text));
        }
        drop(owner);
        // What cannot be removed of the old folder is no harm to the new one.
        drop(aside);
        sync_folder(folder_of(&path))
    }
}

/// Removes what killed processes have left aside in a folder, whatever name it was for; the table at
/// [`AtomicFolder`] says what of it is ours. Files of the names in `kept` that hold something stay, in a folder
/// of the name that they were for, where nothing has that name.
///
/// # Errors
/// What the system says when the folder cannot be read.
pub fn remove_all_leftovers(around: &Path, kept: &[&str]) -> io::Result<()> {
    remove_leftovers(around, None, kept)
}

/// Gives files of a folder that was never finished the name that it was for.
fn keep_files(new: &Path, path: &Path, kept: &[&str]) -> io::Result<()> {
    let holds = |name: &&&str| {
        fs::symlink_metadata(new.join(name)).is_ok_and(|file| file.is_file() && file.len() > 0)
    };
    let found: Vec<&&str> = kept.iter().filter(holds).collect();
    if found.is_empty() || fs::symlink_metadata(path).is_ok() {
        return Ok(());
    }
    fs::create_dir(path)?;
    for name in found {
        rename(&new.join(name), &path.join(name))?;
    }
    sync_folder(path)?;
    sync_folder(folder_of(path))
}

/// Renames a folder to `path`; what has this name makes room first.
fn replace_folder(
    complete: &Path,
    path: &Path,
    aside: &Path,
    may_remove: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    if fs::symlink_metadata(path).is_err() {
        return rename(complete, path);
    }
    if exchange(complete, path).is_ok() {
        // What had the name is where the new one was.
        let agreed = may_remove(complete);
        if agreed.is_err() {
            exchange(complete, path)?;
        }
        return agreed;
    }
    replace_in_turn(complete, path, aside, may_remove)
}

/// Does so where two folders cannot change their names in one step.
pub(crate) fn replace_in_turn(
    complete: &Path,
    path: &Path,
    aside: &Path,
    may_remove: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let old = aside.join(OLD);
    rename(path, &old)?;
    if let Err(error) = may_remove(&old).and_then(|()| rename(complete, path)) {
        rename(&old, path)?;
        return Err(error);
    }
    // Under this name the next one removes what a kill leaves of it; under the other it would come back. Where
    // somebody holds a file of it, it keeps the other, and the new folder is in its place all the same.
    let _ = fs::rename(&old, complete);
    Ok(())
}

/// Gives two folders each other's name in one step, where system and disk can.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

/// Other systems cannot.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Removes what killed processes have left aside, of one name or of all; see [`AtomicFolder`].
fn remove_leftovers(around: &Path, only: Option<&OsStr>, kept: &[&str]) -> io::Result<()> {
    for entry in fs::read_dir(around)? {
        let entry = entry?;
        let begin = entry.file_name();
        let is_aside = begin.as_encoded_bytes().starts_with(UNFINISHED_PREFIX.as_bytes());
        if is_aside && entry.file_type()?.is_dir() {
            // What cannot be read or removed is left: it is in nobody's way.
            let _ = remove_leftover(&entry.path(), around, only, kept);
        }
    }
    Ok(())
}

/// Removes folders aside that were empty for [`EMPTY_KEPT`] by now, and nothing that there is something in.
fn remove_empty(around: &Path, now: SystemTime) -> io::Result<()> {
    for entry in fs::read_dir(around)? {
        let entry = entry?;
        let name = entry.file_name();
        let letters = name.as_encoded_bytes().strip_prefix(UNFINISHED_PREFIX.as_bytes());
        let is_aside = letters.is_some_and(|letters| {
            letters.len() == NAME_LETTERS && letters.iter().all(u8::is_ascii_alphanumeric)
        });
        let is_old = || {
            let changed = entry.metadata().and_then(|found| found.modified())?;
            let age = now.duration_since(changed).map_err(io::Error::other)?;
            io::Result::Ok(age > EMPTY_KEPT)
        };
        if is_aside && entry.file_type()?.is_dir() && is_old().unwrap_or_default() {
            // The system refuses it where there is something in it.
            let _ = fs::remove_dir(entry.path());
        }
    }
    Ok(())
}

fn remove_leftover(
    aside: &Path,
    around: &Path,
    only: Option<&OsStr>,
    kept: &[&str],
) -> io::Result<()> {
    let owner = aside.join(OWNER);
    if !fs::symlink_metadata(&owner)?.is_file() {
        return Ok(());
    }
    let mut lock = File::options().read(true).write(true).open(&owner)?;
    if lock.try_lock().is_err() {
        return Ok(());
    }
    // By who has the lock: on Windows nobody else can read the file.
    let mut found = Vec::new();
    lock.read_to_end(&mut found)?;
    let path = match only {
        Some(name) if found == name.as_encoded_bytes() => around.join(name),
        Some(_) => return Ok(()),
        None => {
            let name = String::from_utf8(found).map_err(io::Error::other)?;
            // A name and no path: nothing outside of the folder is touched.
            if Path::new(&name).file_name() != Some(OsStr::new(&name)) {
                return Ok(());
            }
            around.join(name)
        }
    };
    for entry in fs::read_dir(aside)? {
        if ![OWNER, NEW, OLD].map(OsStr::new).contains(&entry?.file_name().as_os_str()) {
            return Ok(());
        }
    }
    let old = aside.join(OLD);
    if old.is_dir() {
        // A folder that somebody has made since, as `mkdir -p` does, is in nobody's way while it is empty.
        let _ = fs::remove_dir(&path);
        if fs::symlink_metadata(&path).is_err() {
            rename(&old, &path)?;
        }
    }
    keep_files(&aside.join(NEW), &path, kept)?;
    remove_parts(aside)?;
    drop(lock);
    fs::remove_file(&owner)?;
    fs::remove_dir(aside)
}

/// Removes everything of a folder aside but its owner.
fn remove_parts(aside: &Path) -> io::Result<()> {
    for part in [NEW, OLD].map(|part| aside.join(part)) {
        if fs::symlink_metadata(&part).is_ok() {
            fs::remove_dir_all(&part)?;
        }
    }
    Ok(())
}
