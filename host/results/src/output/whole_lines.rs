//! A file of lines of which each is there as a whole or not at all, as soon as it was written: for what people did.

use std::fs::File;
use std::io::{self, Write};

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
