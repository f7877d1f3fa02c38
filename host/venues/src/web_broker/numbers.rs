//! Request numbers, which rise across logins, restarts, `kill -9` and clocks that are set back.
//!
//! Specification 4, P6. The file has two places of 32 bytes that are written in turn, each with a checksum.
//! Each number is on the disk before it is used. A write that was cut damages its own place, whose number was
//! then never used, and leaves the other place.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use atomic_file::{AtomicFile, CommitNewError};
use domain::clock::wall_now;
use xxhash_rust::xxh3::xxh3_64;

use crate::web_broker::limits::REQUEST_NUMBER_MAX;

/// Bytes of one place: `p_no `, ten digits, a blank, fifteen digits of the checksum, a line end.
const PLACE_BYTES: usize = 32;
/// How far numbers jump if one of the places is damaged. It is more than a day's seconds. So they rise even if
/// it was the newer place and the clock was set back since.
const DAMAGE_GAP: u64 = 100_000;

/// Why there is no request number.
#[derive(Debug, thiserror::Error)]
pub enum NumbersError {
    /// The file cannot be opened, read or written.
    #[error("cannot use the file of the request numbers, {}: {cause}", .path.display())]
    File {
        /// Where it is.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// Another process has it.
    #[error(
        "the account is in use: another engine, or a run of `kumiki data update`, holds the file \
         of the request numbers, {}; wait for its end, or end it",
        .0.display()
    )]
    Taken(PathBuf),
    /// It belongs to another user.
    #[error("the file of the request numbers, {}, belongs to another user; run kumiki as that user", .0.display())]
    NotOwn(PathBuf),
    /// Its content is not request numbers.
    #[error(
        "the file of the request numbers, {}, is damaged, and the broker refuses numbers that do \
         not rise; check that the clock is right, then remove the file; numbers begin at the \
         clock's seconds again",
        .0.display()
    )]
    Damaged(PathBuf),
    /// There are no more.
    #[error("the broker takes no request numbers above {REQUEST_NUMBER_MAX}")]
    NoMore,
}

/// The numbers of an account's requests.
pub struct RequestNumbers {
    file: File,
    path: PathBuf,
    last: u64,
    /// The place for the next write.
    next_place: usize,
}

impl RequestNumbers {
    /// Opens the file, or makes it, and locks out other processes.
    ///
    /// # Errors
    /// [`NumbersError`]; a file that is not ours is never written.
    pub fn open(path: &Path) -> Result<Self, NumbersError> {
        let failed = |cause| NumbersError::File { path: path.to_owned(), cause };
        fs::create_dir_all(atomic_file::folder_of(path)).map_err(failed)?;
        begin(path).map_err(failed)?;
        let lock = atomic_file::open_own(path).map_err(failed)?;
        if !is_own(&lock).map_err(failed)? {
            return Err(NumbersError::NotOwn(path.to_owned()));
        }
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                return Err(NumbersError::Taken(path.to_owned()));
            }
            Err(fs::TryLockError::Error(cause)) => return Err(failed(cause)),
        }
        let mut bytes = Vec::new();
        let most = PLACE_BYTES as u64 * 2 + 1;
        (&lock).take(most).read_to_end(&mut bytes).map_err(failed)?;
        let damaged = || NumbersError::Damaged(path.to_owned());
        let (last, next_place) = recovered(&bytes).ok_or_else(damaged)?;
        Ok(Self { file: lock, path: path.to_owned(), last, next_place })
    }

    /// The next number: above all numbers before it, and not below the seconds since 1970. It is on the disk
    /// when this returns.
    ///
    /// # Errors
    /// [`NumbersError`]; the number is not used then.
    pub fn take(&mut self) -> Result<u64, NumbersError> {
        self.take_at(wall_now().millis() / 1_000)
    }

    fn take_at(&mut self, now_s: u64) -> Result<u64, NumbersError> {
        let number = self.last.saturating_add(1).max(now_s);
        if number > REQUEST_NUMBER_MAX {
            return Err(NumbersError::NoMore);
        }
        // This number is spent, even if the write fails.
        self.last = number;
        let at = (self.next_place * PLACE_BYTES) as u64;
        let place = written(number);
        let write = || -> io::Result<()> {
            let mut file = &self.file;
            file.seek(SeekFrom::Start(at))?;
            file.write_all(&place)?;
            file.sync_data()
        };
        write().map_err(|cause| NumbersError::File { path: self.path.clone(), cause })?;
        self.next_place = 1 - self.next_place;
        Ok(number)
    }
}

/// Shows no number.
impl fmt::Debug for RequestNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestNumbers").field("path", &self.path).finish_non_exhaustive()
    }
}

fn written(number: u64) -> [u8; PLACE_BYTES] {
    let digits = format!("p_no {number:010}");
    let sum = xxh3_64(digits.as_bytes()) >> 4;
    let mut place = [b' '; PLACE_BYTES];
    for (to, from) in place.iter_mut().zip(format!("{digits} {sum:015x}\n").bytes()) {
        *to = from;
    }
    place
}

fn read(place: &[u8]) -> Option<u64> {
    let digits = str::from_utf8(place.get(5..15)?).ok()?;
    let number = digits.parse().ok()?;
    (written(number) == place).then_some(number)
}

/// Makes the file if there is none. The file is complete or absent, so a short file is damaged.
fn begin(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        _ => return Ok(()),
    }
    let mut file = AtomicFile::create_private_in(atomic_file::folder_of(path))?;
    file.write_all(&[written(0), written(0)].concat())?;
    match file.commit_new(path) {
        // Another process was quicker.
        Ok(()) | Err(CommitNewError::Exists(_)) => Ok(()),
        Err(CommitNewError::Io(error)) => Err(error),
    }
}

/// The last number of a file, and the place for the next one.
fn recovered(bytes: &[u8]) -> Option<(u64, usize)> {
    let (first, second) = bytes.split_at_checked(PLACE_BYTES).unwrap_or((bytes, &[]));
    match (read(first), read(second)) {
        (Some(first), Some(second)) if first > second => Some((first, 1)),
        (Some(_), Some(second)) => Some((second, 0)),
        (Some(number), None) => Some((number + DAMAGE_GAP, 1)),
        (None, Some(number)) => Some((number + DAMAGE_GAP, 0)),
        (None, None) => None,
    }
}

#[cfg(unix)]
fn is_own(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    Ok(file.metadata()?.uid() == rustix::process::geteuid().as_raw())
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same as on other systems")]
fn is_own(_: &File) -> io::Result<bool> {
    Ok(true)
}

#[cfg(test)]
mod tests;
