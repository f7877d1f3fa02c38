//! The text of a file, line by line, and the one pass over it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use memchr::memchr_iter;

use crate::error::{DataError, HeaderProblem, LineProblem};
use crate::limits::{LINE_BYTES_MAX, PROGRESS_BYTES};

use super::fault::Fault;
use super::gzip::GzipText;
use super::header::{ColumnSet, Layout};
use super::{LoadProgress, ProgressFn, ReadOptions, ReadSummary};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Takes the lines of a file after its header.
pub(super) trait Lines {
    /// Number of the line handled last; the header is line 1.
    fn line(&self) -> u64;

    /// Rows handed on.
    fn delivered(&self) -> u64;

    /// Codes asked for, or found when all were.
    fn code_count(&self) -> usize;

    /// Handles the next line, without its line feed.
    fn next_line(&mut self, line: &[u8]) -> Result<(), Fault>;

    /// Handles whole lines, each with its line feed.
    fn lines(&mut self, block: &[u8]) -> Result<(), Fault> {
        let mut start = 0;
        for end in memchr_iter(b'\n', block) {
            self.next_line(&block[start..end])?;
            start = end + 1;
        }
        Ok(())
    }
}

/// Reads a file once; `start` makes the reader of its lines once the header is known.
pub(super) fn scan<C: ColumnSet, L: Lines>(
    path: &Path,
    columns: &[C],
    options: &ReadOptions,
    progress: &mut ProgressFn<'_>,
    start: impl FnOnce(Layout<C>) -> L,
) -> Result<ReadSummary, DataError> {
    let unreadable = |source| DataError::Unreadable { path: path.to_path_buf(), source };
    let source = File::open(path).map_err(unreadable)?;
    let compressed_total = source.metadata().map_err(unreadable)?.len();
    let chunk_bytes = options.chunk_bytes.max(1);
    let mut text = Text {
        path,
        gzip: GzipText::new(path, source, options.text_bytes_max),
        buffer: vec![0; chunk_bytes + LINE_BYTES_MAX + 1],
        filled: 0,
        chunk_bytes,
    };
    let mut rows = start(text.header(columns)?);
    let mut next_report = PROGRESS_BYTES;
    loop {
        let more = text.step(&mut rows)?;
        if text.gzip.compressed_bytes() >= next_report {
            next_report = text.gzip.compressed_bytes() + PROGRESS_BYTES;
            let rows_scanned = rows.line() - 1;
            let report = LoadProgress {
                compressed_bytes: text.gzip.compressed_bytes(),
                compressed_total,
                rows_scanned,
            };
            if progress(report).is_break() {
                return Err(DataError::Cancelled { path: path.to_path_buf(), rows: rows_scanned });
            }
        }
        if !more {
            break;
        }
    }
    if rows.line() == 1 {
        return Err(text.header_fault(HeaderProblem::NoRows));
    }
    Ok(ReadSummary {
        rows_scanned: rows.line() - 1,
        rows_delivered: rows.delivered(),
        codes: rows.code_count(),
        compressed_bytes: text.gzip.compressed_bytes(),
        text_bytes: text.gzip.text_bytes(),
        content_hash: text.gzip.content_hash(),
    })
}

/// The text of a file in a buffer that always starts with the start of a line.
struct Text<'a, R> {
    path: &'a Path,
    gzip: GzipText<'a, R>,
    buffer: Vec<u8>,
    filled: usize,
    chunk_bytes: usize,
}

impl<R: Read> Text<'_, R> {
    /// Inflates at most one chunk more; `false` at the end.
    fn fill(&mut self) -> Result<bool, DataError> {
        let room = self.filled..self.filled + self.chunk_bytes;
        let produced = self.gzip.read(&mut self.buffer[room])?;
        self.filled += produced;
        Ok(produced > 0)
    }

    /// Takes the header line off the front.
    fn header<C: ColumnSet>(&mut self, columns: &[C]) -> Result<Layout<C>, DataError> {
        let (line_end, next) = loop {
            let filled = &self.buffer[..self.filled];
            if let Some(end) = memchr::memchr(b'\n', filled) {
                break (end, end + 1);
            }
            if self.filled > LINE_BYTES_MAX {
                return Err(self.header_fault(HeaderProblem::Line(LineProblem::TooLong)));
            }
            if !self.fill()? {
                break (self.filled, self.filled);
            }
        };
        if next == 0 {
            return Err(self.header_fault(HeaderProblem::NoText));
        }
        if line_end > LINE_BYTES_MAX {
            return Err(self.header_fault(HeaderProblem::Line(LineProblem::TooLong)));
        }
        let line = &self.buffer[..line_end];
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let layout = Layout::parse(line, columns).map_err(|problem| self.header_fault(problem))?;
        self.drop_front(next);
        Ok(layout)
    }

    /// Handles the whole lines in the buffer and inflates more; `false` when all is handled.
    fn step(&mut self, rows: &mut impl Lines) -> Result<bool, DataError> {
        if let Some(last) = memchr::memrchr(b'\n', &self.buffer[..self.filled]) {
            rows.lines(&self.buffer[..=last]).map_err(|fault| fault.at(self.path, rows.line()))?;
            self.drop_front(last + 1);
        }
        if self.filled > LINE_BYTES_MAX {
            return Err(DataError::Line {
                path: self.path.to_path_buf(),
                line: rows.line() + 1,
                problem: LineProblem::TooLong,
            });
        }
        if self.fill()? {
            return Ok(true);
        }
        if self.filled > 0 {
            rows.next_line(&self.buffer[..self.filled])
                .map_err(|fault| fault.at(self.path, rows.line()))?;
        }
        Ok(false)
    }

    fn drop_front(&mut self, length: usize) {
        self.buffer.copy_within(length..self.filled, 0);
        self.filled -= length;
    }

    fn header_fault(&self, problem: HeaderProblem) -> DataError {
        DataError::Header { path: self.path.to_path_buf(), problem }
    }
}
