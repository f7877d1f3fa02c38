//! An audit log in memory.

use std::io;
use std::sync::{Arc, Mutex};

use ipc::AuditLine;
use orders::{AuditLog, AuditSink};

/// The log's bytes, which outlive a desk, and whether it can be written.
#[derive(Clone, Default)]
pub(crate) struct Log {
    pub(crate) bytes: Arc<Mutex<Vec<u8>>>,
    pub(crate) fails: Arc<Mutex<bool>>,
    /// A log on the disk that gets each line first.
    pub(crate) file: Arc<Mutex<Option<AuditLog>>>,
}

impl AuditSink for Log {
    fn append(&mut self, lines: &[AuditLine<'_>], sync: bool) -> io::Result<()> {
        if *self.fails.lock().unwrap() {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "full"));
        }
        if let Some(file) = self.file.lock().unwrap().as_mut() {
            file.append(lines, sync)?;
        }
        let mut bytes = self.bytes.lock().unwrap();
        for line in lines {
            serde_json::to_writer(&mut *bytes, line)?;
            bytes.push(b'\n');
        }
        Ok(())
    }
}

impl Log {
    /// Lines of a phase, as their text.
    pub(crate) fn lines(&self, phase: &str) -> Vec<String> {
        let bytes = self.bytes.lock().unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        let wanted = format!("\"phase\":\"{phase}\"");
        text.lines().filter(|line| line.contains(&wanted)).map(str::to_owned).collect()
    }
}
