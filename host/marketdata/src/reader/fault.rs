//! A fault inside one line, before the path and the line's number are known.

use std::path::Path;

use crate::error::{CellProblem, DataError, LineProblem, shown};
use crate::limits::SHOWN_VALUE_CHARS;

/// What is wrong with a line; boxed so that the good path moves one word.
pub(super) type Fault = Box<LineFault>;

#[derive(Debug)]
pub(super) enum LineFault {
    Line(LineProblem),
    Cell { column: String, value: Vec<u8>, problem: CellProblem },
}

impl LineFault {
    pub(super) fn line(problem: LineProblem) -> Fault {
        Box::new(Self::Line(problem))
    }

    pub(super) fn cell(column: &str, value: &[u8], problem: CellProblem) -> Fault {
        Box::new(Self::Cell { column: column.to_owned(), value: value.to_vec(), problem })
    }

    pub(super) fn is_of_a_cell(&self) -> bool {
        matches!(self, Self::Cell { .. })
    }

    pub(super) fn at(self, path: &Path, line: u64) -> DataError {
        let path = path.to_path_buf();
        match self {
            Self::Line(problem) => DataError::Line { path, line, problem },
            Self::Cell { column, value, problem } => DataError::Cell {
                path,
                line,
                column,
                value: shown(&value, SHOWN_VALUE_CHARS),
                problem: Box::new(problem),
            },
        }
    }
}
