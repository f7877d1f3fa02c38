//! Files of lines. Of what people did each line is there as a whole or not at all, as soon as it was written; all
//! others wait until there are enough of them.

use std::fs::File;
use std::io::{self, Write};

use serde::Serialize;

/// Bytes that are written at once: whole pages, which the system takes fastest.
pub(crate) const HELD_BYTES: usize = 1 << 17;

/// Lines that wait in memory until there are enough of them.
#[derive(Debug)]
pub(crate) struct HeldLines<W> {
    pub(super) out: W,
    /// What is not written yet; lines are added at its end.
    pub(super) bytes: Vec<u8>,
    held: usize,
}

impl<W: Write> HeldLines<W> {
    pub(crate) const fn new(out: W) -> Self {
        Self { out, bytes: Vec::new(), held: HELD_BYTES }
    }

    /// The same where no line waits.
    pub(crate) fn at_once(out: W) -> Self {
        Self { held: 0, ..Self::new(out) }
    }

    /// A line is complete.
    pub(super) fn end_line(&mut self) -> io::Result<()> {
        if self.held == 0 {
            return self.flush();
        }
        while self.bytes.len() > self.held {
            self.out.write_all(&self.bytes[..self.held])?;
            self.bytes.drain(..self.held);
        }
        Ok(())
    }

    /// Adds a value as a line of JSON.
    pub(super) fn json(&mut self, line: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.bytes, line)?;
        self.bytes.push(b'\n');
        self.end_line()
    }

    /// Writes what waits.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let written = self.out.write_all(&self.bytes);
        self.bytes.clear();
        written
    }
}

/// Writes each line at once. A line that finds no room is cut back.
#[derive(Debug)]
pub(crate) struct WholeLines {
    file: File,
    /// Bytes of the whole lines, and of those before the last one.
    bytes: u64,
    bytes_before: u64,
}

impl WholeLines {
    /// Takes an empty file.
    pub(crate) const fn new(file: File) -> Self {
        Self { file, bytes: 0, bytes_before: 0 }
    }

    /// Brings the lines to the disk.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Cuts the last line back: what it says has not been done.
    pub(crate) fn take_back(&mut self) {
        self.bytes = self.bytes_before;
        self.cut();
    }

    fn cut(&mut self) {
        // Nothing is left to try where a file cannot even be made shorter: a reader skips half a line.
        let _ = self.file.set_len(self.bytes).and_then(|()| {
            io::Seek::seek(&mut self.file, io::SeekFrom::Start(self.bytes)).map(drop)
        });
    }
}

impl Write for WholeLines {
    /// Takes one line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let written = self.file.write_all(line);
        match written {
            Ok(()) => {
                self.bytes_before = self.bytes;
                self.bytes += line.len() as u64;
                Ok(line.len())
            }
            Err(error) => {
                self.cut();
                Err(error)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_line_is_taken_back_and_the_next_one_comes_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let mut lines = WholeLines::new(File::create(&path).unwrap());
        for line in ["one\n", "two\n"] {
            lines.write_all(line.as_bytes()).unwrap();
            assert!(fs::read_to_string(&path).unwrap().ends_with(line), "it is there at once");
        }
        lines.take_back();
        lines.write_all(b"three\n").unwrap();
        lines.sync().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\nthree\n");
    }
}
