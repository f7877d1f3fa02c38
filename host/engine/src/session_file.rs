//! `engine-session.json`: where a program on this machine finds the engine (specification 2,
//! "Authentication").

use std::fs;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use atomic_file::AtomicFile;
use domain::clock;
use ipc::{Command, EngineMode, Event, Hello, SCHEMA_MAJOR, SCHEMA_MINOR, Secret, error_code};
#[cfg(unix)]
use rustix::process::{Pid, test_kill_process};
use serde::Deserialize;
use serde_json::json;
use tokio_tungstenite::tungstenite::{Message, client};

use crate::handshake::{Side, proof, random_hex};
use crate::server::TOO_MANY_CLIENTS;

/// The file's name in the config folder.
pub const SESSION_FILE: &str = "engine-session.json";
/// Bytes of such a file at most.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// How long another engine may take to answer.
const ANSWER_TIME: Duration = Duration::from_millis(500);
/// What of a file is needed to find its engine.
#[derive(Deserialize)]
struct Found {
    port: u16,
    token: Secret,
    pid: u32,
}

impl Found {
    /// Whether an engine with the token is at the port.
    fn answers(&self) -> bool {
        let mode = EngineMode::Replay.as_str();
        let said = || -> Option<Message> {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
            let stream = TcpStream::connect_timeout(&address, ANSWER_TIME).ok()?;
            stream.set_read_timeout(Some(ANSWER_TIME)).ok()?;
            stream.set_write_timeout(Some(ANSWER_TIME)).ok()?;
            let (mut socket, _) = client(format!("ws://{address}/"), stream).ok()?;
            let challenge = socket.read().ok()?.into_text().ok()?;
            let Ok(Event::Challenge(challenge)) = serde_json::from_str(&challenge) else {
                return None;
            };
            let client_nonce = random_hex();
            let hello = Command::Hello(Hello {
                schema_major: SCHEMA_MAJOR,
                schema_minor: SCHEMA_MINOR,
                client_version: "session file".to_owned(),
                mode: mode.to_owned(),
                proof: proof(
                    &self.token,
                    Side::Client,
                    &challenge.server_nonce,
                    &client_nonce,
                    mode,
                ),
                client_nonce,
            });
            socket.send(Message::text(serde_json::to_string(&hello).ok()?)).ok()?;
            socket.read().ok()
        };
        match said() {
            // An engine that trades says that the mode is another one, after it has taken the proof.
            Some(Message::Text(text)) => match serde_json::from_str(&text) {
                Ok(Event::Ready(_)) => true,
                Ok(Event::EngineError(error)) => error.code != error_code::AUTH_FAILED,
                _ => false,
            },
            // So does one that has no room for more clients.
            Some(Message::Close(Some(frame))) => frame.reason.as_str() == TOO_MANY_CLIENTS,
            _ => false,
        }
    }
}

/// Whether a process lives, where the system can be asked.
#[cfg(unix)]
fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // One of another user lives too.
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

#[cfg(not(unix))]
const fn is_alive(_: u32) -> bool {
    true
}

/// The file while the engine runs; removed when this is dropped, unless another engine has written
/// its own meanwhile.
#[derive(Debug)]
pub(crate) struct SessionFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl SessionFile {
    /// The port of an engine whose file is there and that answers: its process lives, and it knows the
    /// token of the file. One that was killed does not, nor does another program at its port.
    pub(crate) fn is_of_live_engine(folder: &Path) -> Option<u16> {
        let path = folder.join(SESSION_FILE);
        // Nothing but a small file is one of ours; reading others may never end.
        let is_ours =
            fs::metadata(&path).is_ok_and(|file| file.is_file() && file.len() <= FILE_BYTES_MAX);
        let bytes = is_ours.then(|| fs::read(&path).ok())??;
        let found: Found = serde_json::from_slice(&bytes).ok()?;
        (is_alive(found.pid) && found.answers()).then_some(found.port)
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
