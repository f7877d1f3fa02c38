//! `engine-session.json`: where a program on this machine finds the engine (specification 2,
//! "Authentication").

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use atomic_file::AtomicFile;
use domain::clock;
use ipc::{SCHEMA_MAJOR, SCHEMA_MINOR, Secret};
use serde_json::json;

/// The file's name in the config folder.
pub const SESSION_FILE: &str = "engine-session.json";

/// How long another engine may take to answer.
const ANSWER_TIME: Duration = Duration::from_millis(500);
/// The beginning of a WebSocket, which every engine answers.
const UPGRADE: &[u8] =
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";

/// The file while the engine runs; removed when this is dropped, unless another engine has written
/// its own meanwhile.
#[derive(Debug)]
pub(crate) struct SessionFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl SessionFile {
    /// The port of an engine whose file is there and that still answers: one that was killed does not.
    pub(crate) fn is_of_live_engine(folder: &Path) -> Option<u16> {
        let bytes = fs::read(folder.join(SESSION_FILE)).ok()?;
        let found: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
        let port = u16::try_from(found.get("port")?.as_u64()?).ok()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut stream = TcpStream::connect_timeout(&address, ANSWER_TIME).ok()?;
        // Something else may have the port by now; an engine answers the beginning of a WebSocket.
        stream.set_read_timeout(Some(ANSWER_TIME)).ok()?;
        stream.write_all(UPGRADE).ok()?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).ok()?;
        (&answer == b"HTTP/1.1 101").then_some(port)
    }

    /// Writes the file. What is there is of an engine that was killed.
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
