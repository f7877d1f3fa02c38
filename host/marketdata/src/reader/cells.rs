//! Splits one line into cells, with or without quotes (RFC 4180, but no line feed inside quotes:
//! none of the vendor's columns can hold one).

use memchr::{memchr, memchr_iter};

use crate::error::{LineProblem, shown};
use crate::limits::SHOWN_VALUE_CHARS;

/// The cells of one line; keeps its memory from line to line.
#[derive(Debug, Default)]
pub(super) struct Cells {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Cells {
    /// Takes the cells of `line`, which has no line end any more.
    pub(super) fn split(&mut self, line: &[u8]) -> Result<(), LineProblem> {
        self.text.clear();
        self.ends.clear();
        if memchr(b'"', line).is_some() {
            return self.split_quoted(line);
        }
        let mut start = 0;
        for comma in memchr_iter(b',', line) {
            self.text.extend_from_slice(&line[start..comma]);
            self.ends.push(self.text.len());
            start = comma + 1;
        }
        self.text.extend_from_slice(&line[start..]);
        self.ends.push(self.text.len());
        Ok(())
    }

    fn split_quoted(&mut self, line: &[u8]) -> Result<(), LineProblem> {
        let stray = || LineProblem::StrayQuote(shown(line, SHOWN_VALUE_CHARS));
        let mut rest = line;
        loop {
            rest = if let Some(quoted) = rest.strip_prefix(b"\"") {
                self.quoted_cell(quoted)
                    .ok_or_else(|| LineProblem::OpenQuote(shown(line, SHOWN_VALUE_CHARS)))?
            } else {
                let end = memchr(b',', rest).unwrap_or(rest.len());
                let (cell, after) = rest.split_at(end);
                if memchr(b'"', cell).is_some() {
                    return Err(stray());
                }
                self.text.extend_from_slice(cell);
                after
            };
            self.ends.push(self.text.len());
            match rest.split_first() {
                None => return Ok(()),
                Some((b',', after)) => rest = after,
                Some(_) => return Err(stray()),
            }
        }
    }

    /// Takes a cell whose opening quote is gone; gives what follows its closing quote.
    fn quoted_cell<'a>(&mut self, mut rest: &'a [u8]) -> Option<&'a [u8]> {
        loop {
            let quote = memchr(b'"', rest)?;
            self.text.extend_from_slice(&rest[..quote]);
            rest = &rest[quote + 1..];
            match rest.strip_prefix(b"\"") {
                Some(after) => {
                    self.text.push(b'"');
                    rest = after;
                }
                None => return Some(rest),
            }
        }
    }

    /// How many cells the line has, at least one.
    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    /// The cell at `index`; empty where the line has fewer.
    pub(super) fn get(&self, index: usize) -> &[u8] {
        let start = match index {
            0 => 0,
            _ => self.ends.get(index - 1).copied().unwrap_or(0),
        };
        let end = self.ends.get(index).copied().unwrap_or(start);
        &self.text[start..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &[&str]) {
        let mut cells = Cells::default();
        cells.split(b"left over,from the line before").unwrap();
        cells.split(line.as_bytes()).unwrap();
        let found: Vec<_> =
            (0..cells.count()).map(|index| str::from_utf8(cells.get(index)).unwrap()).collect();
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn cells_are_split_with_and_without_quotes() {
        check("a,b,c", &["a", "b", "c"]);
        check("", &[""]);
        check(",", &["", ""]);
        check("\"a\",b,\"c\"", &["a", "b", "c"]);
        check("\"a,b\",\"say \"\"so\"\"\"", &["a,b", "say \"so\""]);
        check("\"\",\"\"", &["", ""]);
        check("\"\"\"\",x,", &["\"", "x", ""]);
    }

    #[test]
    fn broken_quotes_are_refused() {
        let split = |line: &str| Cells::default().split(line.as_bytes()).unwrap_err();
        assert_eq!(split("a,\"b"), LineProblem::OpenQuote("a,\"b".into()));
        assert_eq!(split("a,b\""), LineProblem::StrayQuote("a,b\"".into()));
        assert_eq!(split("\"a\"b,c"), LineProblem::StrayQuote("\"a\"b,c".into()));
    }
}
