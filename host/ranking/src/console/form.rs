//! The first line of a file of comma-separated values that has another number of columns than its head:
//! one pass over the bytes, whatever the file's size.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use csv::{ByteRecord, ReaderBuilder, Terminator};
use flate2::read::MultiGzDecoder;

/// A line behind the last one. It is a row of its own, but where a quote before it never ends.
const END: &[u8] = b"\n\0end of the file\n";

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

/// The first odd line of a file, packed with gzip where its name says so.
pub(super) fn odd_line(path: &Path) -> io::Result<Option<OddLine>> {
    let file = File::open(path)?;
    let is_packed = path.extension().is_some_and(|ending| ending == "gz");
    match is_packed {
        true => odd_line_of(MultiGzDecoder::new(file)),
        false => odd_line_of(file),
    }
}

fn odd_line_of(source: impl Read) -> io::Result<Option<OddLine>> {
    // Only `\n` ends a row, so that lines are counted right; a `\r` before it is part of the last value.
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .terminator(Terminator::Any(b'\n'))
        .from_reader(source.chain(END));
    let (mut row, mut head) = (ByteRecord::new(), None);
    while reader.read_byte_record(&mut row)? {
        if row.len() == 1 && &row[0] == b"\r" {
            continue;
        }
        if row.len() == 1 && &row[0] == END.trim_ascii() {
            break;
        }
        let columns = row.len() as u64;
        let wanted = *head.get_or_insert(columns);
        let is_open = row.iter().next_back().is_some_and(|last| last.ends_with(END));
        if is_open || columns != wanted {
            // From the place behind the row, because blank lines may stand before it.
            let inside = row.iter().flatten().filter(|byte| **byte == b'\n').count() as u64;
            let line = reader.position().line() - inside - u64::from(!is_open);
            let columns = (!is_open).then_some(columns);
            return Ok(Some(OddLine { line, columns, head: wanted }));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Option<String> {
        let odd = odd_line_of(text.as_bytes()).unwrap();
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
            ("a,b\n1,\"x", "line 2: a value begins with a quote that never ends"),
            ("a,b\r\n1,2\r\n3\r\n", "line 3: 1 columns where the head has 2"),
            ("a,b\n\n\n1,2\n\n3\n", "line 6: 1 columns where the head has 2"),
            ("a,b\n1,x\"y\n3", "line 3: 1 columns where the head has 2"),
        ] {
            assert_eq!(told(text).as_deref(), Some(expected), "{text}");
        }
    }
}
