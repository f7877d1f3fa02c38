//! `engine-session.json`: where a program on this machine finds the engine (specification 2,
//! "Authentication").

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use atomic_file::AtomicFile;
use domain::clock;
use ipc::{SCHEMA_MAJOR, SCHEMA_MINOR, Secret};
use serde_json::json;

/// The file's name in the config folder.
pub const SESSION_FILE: &str = "engine-session.json";

/// The file while the engine runs; removed when this is dropped, unless another engine has written
/// its own meanwhile.
#[derive(Debug)]
pub(crate) struct SessionFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl SessionFile {
    /// Writes the file. What is there is of an engine that was killed, or of an older one: the newest
    /// is the one to attach to.
    pub(crate) fn write(folder: &Path, port: u16, token: &Secret) -> io::Result<Self> {
        let mut bytes = serde_json::to_vec(&json!({
            "port": port,
            "token": token.expose(),
            "pid": std::process::id(),
            "schema_major": SCHEMA_MAJOR,
            "schema_minor": SCHEMA_MINOR,
            "started_at": crate::utc(clock::wall_now()),
        }))?;
        bytes.push(b'\n');
        let path = folder.join(SESSION_FILE);
        let mut file = AtomicFile::create_private_in(folder)?;
        file.write_all(&bytes)?;
        file.commit(&path)?;
        Ok(Self { path, bytes })
    }
}

impl Drop for SessionFile {
    fn drop(&mut self) {
        if fs::read(&self.path).is_ok_and(|found| found == self.bytes)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(error = %error, "the session file stays");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ones_own_file_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SESSION_FILE);
        let token = Secret::from("0123456789abcdef".to_owned());
        let first = SessionFile::write(folder.path(), 1, &token).unwrap();
        let second = SessionFile::write(folder.path(), 2, &token).unwrap();
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
    }
}
