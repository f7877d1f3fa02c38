//! The first line of a file of comma-separated values that has another number of columns than its head:
//! one pass over the bytes, whatever the file's size.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

/// A line that is not like the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OddLine {
    /// Its number, from 1.
    line: u64,
    /// Columns that it has; none for a value that begins with a quote and never ends.
    columns: Option<u64>,
    /// Columns of the first line.
    head: u64,
}

impl fmt::Display for OddLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, columns, head } = self;
        match columns {
            Some(columns) => write!(f, "line {line}: {columns} columns where the head has {head}"),
            None => write!(f, "line {line}: a value begins with a quote that never ends"),
        }
    }
}

/// What was read of a row.
#[derive(Default)]
struct Row {
    /// The line on which it began.
    line: u64,
    commas: u64,
    is_quoted: bool,
    has_bytes: bool,
}

/// The first odd line of a file, packed with gzip where its name says so.
pub(super) fn odd_line(path: &Path) -> io::Result<Option<OddLine>> {
    let file = File::open(path)?;
    let is_packed = path.extension().is_some_and(|ending| ending == "gz");
    match is_packed {
        true => odd_line_of(BufReader::new(MultiGzDecoder::new(file))),
        false => odd_line_of(BufReader::new(file)),
    }
}

fn odd_line_of(mut source: BufReader<impl Read>) -> io::Result<Option<OddLine>> {
    let (mut line, mut head) = (1, None);
    let mut row = Row { line, ..Row::default() };
    loop {
        let bytes = source.fill_buf()?;
        let length = bytes.len();
        for byte in bytes {
            match byte {
                b'\n' if row.is_quoted => line += 1,
                b'\n' => {
                    line += 1;
                    let ended = std::mem::replace(&mut row, Row { line, ..Row::default() });
                    if let Some(odd) = ended.odd(&mut head) {
                        return Ok(Some(odd));
                    }
                }
                b'\r' if !row.is_quoted => {}
                // Two quotes inside of quotes are one, and change nothing here.
                b'"' => (row.is_quoted, row.has_bytes) = (!row.is_quoted, true),
                b',' if !row.is_quoted => (row.commas, row.has_bytes) = (row.commas + 1, true),
                _ => row.has_bytes = true,
            }
        }
        if length == 0 {
            return Ok(row.odd(&mut head));
        }
        source.consume(length);
    }
}

impl Row {
    /// Holds a row that has ended against the head, which is the first.
    fn odd(self, head: &mut Option<u64>) -> Option<OddLine> {
        let columns = self.commas + 1;
        let wanted = *head.get_or_insert(columns);
        let odd = |columns| Some(OddLine { line: self.line, columns, head: wanted });
        match self {
            Self { has_bytes: false, .. } => None,
            Self { is_quoted: true, .. } => odd(None),
            _ if columns != wanted => odd(Some(columns)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Option<String> {
        let odd = odd_line_of(BufReader::with_capacity(3, text.as_bytes())).unwrap();
        odd.map(|odd| odd.to_string())
    }

    #[test]
    fn the_first_line_that_is_not_like_the_head_is_found() {
        for good in ["", "a\n", "a,b\n1,2\n", "a,b\r\n1,\"x, y\"\r\n", "a,b\n1,\"x\n\"\"y\"\n3,4"] {
            assert_eq!(told(good), None, "{good}");
        }
        for (text, expected) in [
            ("a,b\n1,2\n3\n", "line 3: 1 columns where the head has 2"),
            ("a,b\n1,\"x\ny\"\n3,4,5", "line 4: 3 columns where the head has 2"),
            ("a,b\n1,\"x\n3,4\n", "line 2: a value begins with a quote that never ends"),
        ] {
            assert_eq!(told(text).as_deref(), Some(expected), "{text}");
        }
    }
}
