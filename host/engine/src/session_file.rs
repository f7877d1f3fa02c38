//! `engine-session.json`: where a program on this machine finds the engine (specification 2,
//! "Authentication").

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use atomic_file::AtomicFile;
use domain::Secret;
use domain::clock;
use ipc::{SCHEMA_MAJOR, SCHEMA_MINOR};
use serde::Deserialize;
use serde_json::json;

/// The file's name in the config folder.
pub const SESSION_FILE: &str = "engine-session.json";
/// Bytes of such a file at most.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// The empty file that an engine has locked as long as it lives; it stays.
const LOCK_FILE: &str = "engine.lock";
/// How often an engine tries to lock it, and the wait between two tries: [`is_taken`] holds it for an instant.
const LOCK_TRIES: u32 = 5;
const LOCK_WAIT: Duration = Duration::from_millis(20);

/// A config folder that is this engine's: of two engines one has it, whether the other answers or is
/// suspended. The system gives the lock back when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct ConfigFolder {
    path: PathBuf,
    _lock: File,
}

/// Why a config folder cannot be had.
#[derive(Debug)]
pub(crate) enum NotOurs {
    /// Another engine has it; its port, if its file has one.
    Running(Option<u16>),
    /// The system says something else.
    System(io::Error),
}

/// What of a file is needed to find its engine.
#[derive(Debug, Clone, Deserialize)]
pub struct EngineAddress {
    /// Its port on this machine.
    pub port: u16,
    /// What both sides of a connection have to know.
    pub token: Secret,
}

/// The engine that a config folder's session file names; none where there is no such file, or none that
/// can be read.
#[must_use]
pub fn find(folder: &Path) -> Option<EngineAddress> {
    let path = folder.join(SESSION_FILE);
    // Nothing but a small file is one of ours; reading others may never end.
    let is_ours =
        fs::metadata(&path).is_ok_and(|file| file.is_file() && file.len() <= FILE_BYTES_MAX);
    let bytes = is_ours.then(|| fs::read(&path).ok())??;
    serde_json::from_slice(&bytes).ok()
}

/// Whether a config folder is an engine's: of one that serves, starts or ends. Where the system has no locks, or the
/// folder cannot be read, it is nobody's.
#[must_use]
pub fn is_taken(folder: &Path) -> bool {
    let lock = File::open(folder.join(LOCK_FILE));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

impl ConfigFolder {
    /// Takes a folder that is there. Where the system has no locks, the engine that starts last has it.
    pub(crate) fn take(path: &Path) -> Result<Self, NotOurs> {
        let lock = atomic_file::open_own(&path.join(LOCK_FILE)).map_err(|error| {
            NotOurs::System(match error.kind() {
                io::ErrorKind::AlreadyExists => {
                    io::Error::other(format!("{LOCK_FILE} in it is not a file"))
                }
                _ => error,
            })
        })?;
        let mut locked = lock.try_lock();
        for _ in 1..LOCK_TRIES {
            if !matches!(locked, Err(TryLockError::WouldBlock)) {
                break;
            }
            clock::sleep(LOCK_WAIT);
            locked = lock.try_lock();
        }
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(NotOurs::Running(find(path).map(|engine| engine.port)));
            }
            Err(TryLockError::Error(error)) => {
                let folder = path.display();
                tracing::warn!(
                    %folder, %error,
                    "the file system of the folder has no locks; make sure that no other engine uses it"
                );
            }
        }
        Ok(Self { path: path.to_owned(), _lock: lock })
    }
}

/// The file while the engine runs; removed when this is dropped, unless another engine has written
/// its own meanwhile.
#[derive(Debug)]
pub(crate) struct SessionFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl SessionFile {
    /// Writes the file. What is there is of an engine that was killed.
    pub(crate) fn write(folder: &ConfigFolder, port: u16, token: &Secret) -> io::Result<Self> {
        let mut bytes = serde_json::to_vec(&json!({
            "port": port,
            "token": token.expose(),
            "pid": std::process::id(),
            "schema_major": SCHEMA_MAJOR,
            "schema_minor": SCHEMA_MINOR,
            "started_at": crate::utc(clock::wall_now()),
        }))?;
        bytes.push(b'\n');
        let path = folder.path.join(SESSION_FILE);
        let mut file = AtomicFile::create_private_in(&folder.path)?;
        file.write_all(&bytes)?;
        file.commit(&path)?;
        Ok(Self { path, bytes })
    }
}

impl Drop for SessionFile {
    fn drop(&mut self) {
        if fs::read(&self.path).is_ok_and(|found| found == self.bytes)
            && let Err(error) = atomic_file::remove_if_there(&self.path)
        {
            tracing::warn!(error = %error, "cannot remove the session file");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_of_one_engine_and_only_ones_own_file_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SESSION_FILE);
        let token = Secret::from("0123456789abcdef".to_owned());
        assert!(!is_taken(folder.path()), "there is no file yet");
        let ours = ConfigFolder::take(folder.path()).unwrap();
        assert!(is_taken(folder.path()), "its engine starts");
        let first = SessionFile::write(&ours, 1, &token).unwrap();
        let other = ConfigFolder::take(folder.path());
        assert!(matches!(other, Err(NotOurs::Running(Some(1)))), "{other:?}");
        // As where the system has no locks.
        let second = SessionFile::write(&ours, 2, &token).unwrap();
        drop(first);
        let found: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(found["port"], 2);
        assert_eq!(found["pid"], std::process::id());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        drop(second);
        assert!(!path.exists());
        drop(ours);
        assert!(!is_taken(folder.path()));
        // Whoever looks holds the lock for an instant, which keeps no engine from starting.
        let looks = File::open(folder.path().join(LOCK_FILE)).unwrap();
        looks.try_lock_shared().unwrap();
        let looked = std::thread::spawn(move || {
            clock::sleep(LOCK_WAIT);
            drop(looks);
        });
        ConfigFolder::take(folder.path()).unwrap();
        looked.join().unwrap();
    }
}
