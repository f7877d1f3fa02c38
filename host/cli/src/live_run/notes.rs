//! Notes of the host in the journal of a run, like `GAP: 7203.TSE ...` (specification 4, P88): no event tells them. They
//! are read while the journal grows.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// How the files of a journal are called.
const FILES: (&str, &str) = ("journal-", ".jsonl");
/// Bytes of a line before its JSON: a checksum and a space.
const HEAD: usize = 17;
/// How the JSON of a note begins.
const NOTE: &[u8] = br#"{"host":{"note":"#;
/// Bytes that are read at a time.
const CHUNK: u64 = 1 << 20;

/// A journal, as far as it was read.
#[derive(Debug)]
pub(super) struct Notes {
    folder: PathBuf,
    file: Option<PathBuf>,
    offset: u64,
    /// The begin of a line whose end is not there yet.
    begun: Vec<u8>,
}

impl Notes {
    pub(super) fn of(folder: PathBuf) -> Self {
        Self { folder, file: None, offset: 0, begun: Vec::new() }
    }

    /// The notes since the last call. A journal that cannot be read has none: the run itself ends by that, not this
    /// program.
    pub(super) fn next(&mut self) -> Vec<String> {
        let mut found = Vec::new();
        loop {
            let read = match &self.file {
                Some(file) => self.read(file).unwrap_or_default(),
                None => Vec::new(),
            };
            if read.is_empty() {
                match self.next_file() {
                    Some(file) => self.file = Some(file),
                    None => return found,
                }
                (self.offset, self.begun) = (0, Vec::new());
                continue;
            }
            self.offset += read.len() as u64;
            self.begun.extend_from_slice(&read);
            let whole = self.begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let rest = self.begun.split_off(whole);
            let lines = std::mem::replace(&mut self.begun, rest);
            found.extend(lines.split(|byte| *byte == b'\n').filter_map(note));
        }
    }

    fn read(&self, file: &Path) -> io::Result<Vec<u8>> {
        let mut file = File::open(file)?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut read = Vec::new();
        file.take(CHUNK).read_to_end(&mut read)?;
        Ok(read)
    }

    /// The first file of the journal, or the one after the present one.
    fn next_file(&self) -> Option<PathBuf> {
        let is_journal = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with(FILES.0) && name.ends_with(FILES.1)
        };
        let entries = fs::read_dir(&self.folder).ok()?.flatten();
        let later = entries.map(|entry| entry.path()).filter(is_journal);
        later.filter(|path| self.file.as_ref().is_none_or(|file| path > file)).min()
    }
}

/// The note in a line, if it has one.
fn note(line: &[u8]) -> Option<String> {
    let json = line.get(HEAD..).filter(|json| json.starts_with(NOTE))?;
    let record: serde_json::Value = serde_json::from_slice(json).ok()?;
    record["host"]["note"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn p88_gaps_are_told_while_the_journal_grows() {
        let folder = std::env::temp_dir().join(format!("kumiki-notes-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut notes = Notes::of(folder.clone());
        assert!(notes.next().is_empty(), "there is no journal yet");
        let add = |name: &str, text: &str| {
            let path = folder.join(name);
            let mut file = File::options().create(true).append(true).open(path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        let line = |json: &str| format!("0123456789abcdef {json}\n");
        let gap = line(r#"{"host":{"note":"GAP: 7203.TSE 300 shares"}}"#);
        let first = "journal-20261130.jsonl";
        add(first, &line(r#"{"header":{"note":"GAP: of a strategy"}}"#));
        add(first, &gap);
        assert_eq!(notes.next(), ["GAP: 7203.TSE 300 shares"]);
        let (begin, end) = gap.split_at(40);
        add(first, begin);
        assert!(notes.next().is_empty(), "the line has no end yet");
        add(first, end);
        assert_eq!(notes.next().len(), 1);
        add(first, &gap);
        add("journal-20261201.jsonl", &line(r#"{"host":"stop"}"#));
        add("journal-20261201.jsonl", &gap.repeat(2));
        assert_eq!(notes.next().len(), 3);
        assert!(notes.next().is_empty());
        fs::remove_dir_all(folder).unwrap();
        assert!(notes.next().is_empty());
    }
}
