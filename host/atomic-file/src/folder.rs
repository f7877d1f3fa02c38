//! What files need of the folder they are in.

use std::fs::{self, File};
use std::io;
use std::path::{Component, Path};
use std::thread;
use std::time::Duration;

/// How often something is tried that another program keeps from happening, [`HELD_WAIT`] apart: for 5 s.
const HELD_TRIES_MAX: u32 = 250;
/// See [`HELD_TRIES_MAX`].
const HELD_WAIT: Duration = Duration::from_millis(20);

/// Does something to a file. On Windows a program that has the file open, as a virus scanner has each new one, may
/// keep it from happening: then it is tried again, for 5 s at most.
///
/// # Errors
/// What the system says, and what to do where another program may have the file open.
pub fn patiently<T>(mut act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..HELD_TRIES_MAX {
        match act() {
            Err(error) if is_held(&error) => thread::sleep(HELD_WAIT),
            other => return other,
        }
    }
    act().map_err(|error| match is_held(&error) {
        true => {
            let text =
                format!("{error}; another program may have it open: close that, and try again");
            io::Error::new(error.kind(), text)
        }
        false => error,
    })
}

/// Whether another program may have the file open.
fn is_held(error: &io::Error) -> bool {
    /// `ERROR_ACCESS_DENIED`, `ERROR_SHARING_VIOLATION`, `ERROR_LOCK_VIOLATION` of Windows.
    const HELD: [i32; 3] = [5, 32, 33];
    cfg!(windows) && error.raw_os_error().is_some_and(|code| HELD.contains(&code))
}

/// Renames a file or a folder; a file of the new name is replaced, and who has that open keeps it. Waits as
/// [`patiently`] does.
///
/// # Errors
/// What the system says; nothing has changed then.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    patiently(|| fs::rename(from, to))
}

/// Whether files and folders can have the names of a path. Windows refuses names of devices, and gives others another
/// meaning: `a:b` is a second content of `a`, and `a.` is `a`.
///
/// # Errors
/// What is wrong with the first such name, and what to do.
pub fn must_be_a_name(path: &Path) -> io::Result<()> {
    for part in path.components().filter(|_| cfg!(windows)) {
        let Component::Normal(name) = part else { continue };
        let name = name.to_string_lossy();
        if let Some(what) = wrong_name(&name) {
            let text = format!("Windows has no file or folder named {name}: {what}; name another");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
    }
    Ok(())
}

/// What Windows has against a name.
pub(crate) fn wrong_name(name: &str) -> Option<String> {
    if let Some(sign) =
        name.chars().find(|sign| sign.is_control() || r#"<>:"/\|?*"#.contains(*sign))
    {
        return Some(format!("it has a {sign:?}"));
    }
    if name.ends_with(['.', ' ']) {
        return Some("it ends with a dot or a blank".to_owned());
    }
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let is_numbered = |port: &str| {
        let number = stem.strip_prefix(port).unwrap_or_default();
        number.chars().count() == 1 && "123456789\u{b9}\u{b2}\u{b3}".contains(number)
    };
    let is_device = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"].contains(&stem.as_str());
    (is_device || is_numbered("COM") || is_numbered("LPT")).then(|| format!("{stem} is a device"))
}

/// The folder of a file; the current one for a bare name.
#[must_use]
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Brings a file to the disk.
///
/// # Errors
/// What the system says.
pub fn sync_file(path: &Path) -> io::Result<()> {
    // Some systems only flush a file that was opened for writing.
    patiently(|| File::options().write(true).open(path))?.sync_all()
}

/// Makes what was renamed in a folder last through a power cut, where the system does not do so by
/// itself.
///
/// # Errors
/// What the system says.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Opens a file to read it; never a pipe, which might take for ever.
///
/// # Errors
/// What the system says, or that it is no file.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    must_be_file(path)?;
    File::open(path)
}

/// Whether a name is that of a file, or of nothing yet, before somebody opens it who would wait for a pipe.
///
/// # Errors
/// What the system says, or that it is no file.
pub fn must_be_file(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            Err(io::Error::other(format!("{} is no file; move it away", path.display())))
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The same of a file that is written: one of its folder, never what a link leads to.
///
/// # Errors
/// What the system says, or [`io::ErrorKind::AlreadyExists`] where the name is taken by something else.
pub fn must_be_own(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => {
            let what = "it is no file of its own but a link or something else; remove it";
            Err(io::Error::new(io::ErrorKind::AlreadyExists, what))
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Opens a file to be locked, which is made where there is none: a file of its folder, never what a link leads
/// to, nor a pipe, which might take for ever.
///
/// # Errors
/// What the system says, or [`io::ErrorKind::AlreadyExists`] where the name is taken by something else.
pub fn open_own(path: &Path) -> io::Result<File> {
    must_be_own(path)?;
    let mut options = File::options();
    options.create(true).truncate(false).read(true).write(true);
    // Nobody else's business; on Windows the folder decides.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    patiently(|| options.open(path))
}

/// Removes a file, which need not be there.
///
/// # Errors
/// What the system says.
pub fn remove_if_there(path: &Path) -> io::Result<()> {
    match patiently(|| fs::remove_file(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
