//! Which cell of a line is which column, as the header line tells.

use std::marker::PhantomData;

use crate::error::{HeaderProblem, shown};
use crate::limits::SHOWN_HEADER_CHARS;

use super::cells::Cells;

/// A set of columns that a kind of file has.
pub(super) trait ColumnSet: Copy + 'static {
    /// The vendor's name.
    fn name(self) -> &'static str;

    /// The column's own index in the set, from 0.
    fn index(self) -> usize;
}

/// The columns of trades files. The order is the vendor's standard order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Date,
    Code,
    Time,
    Session,
    Price,
    Quantity,
    TransactionId,
}

impl Column {
    pub(super) const ALL: [Self; 7] = [
        Self::Date,
        Self::Code,
        Self::Time,
        Self::Session,
        Self::Price,
        Self::Quantity,
        Self::TransactionId,
    ];
}

impl ColumnSet for Column {
    fn name(self) -> &'static str {
        match self {
            Self::Date => "Date",
            Self::Code => "Code",
            Self::Time => "Time",
            Self::Session => "SessionDistinction",
            Self::Price => "Price",
            Self::Quantity => "TradingVolume",
            Self::TransactionId => "TransactionId",
        }
    }

    fn index(self) -> usize {
        self as usize
    }
}

/// Where each column stands.
#[derive(Debug)]
pub(super) struct Layout<C> {
    names: Vec<String>,
    /// By the column's own index.
    positions: Vec<usize>,
    standard: bool,
    columns: PhantomData<C>,
}

impl<C: ColumnSet> Layout<C> {
    /// Finds `columns` in the header line, which has no line end and no byte order mark any more.
    pub(super) fn parse(line: &[u8], columns: &[C]) -> Result<Self, HeaderProblem> {
        let mut cells = Cells::default();
        cells.split(line).map_err(HeaderProblem::Line)?;
        let found = || shown(line, SHOWN_HEADER_CHARS);
        let cells = &cells;
        let all_at = |column: C| {
            (0..cells.count()).filter(move |&index| cells.get(index) == column.name().as_bytes())
        };
        if columns.iter().all(|&column| all_at(column).next().is_none()) {
            let expected: Vec<_> = columns.iter().map(|column| column.name()).collect();
            return Err(HeaderProblem::NoHeader { expected: expected.join(","), found: found() });
        }
        let last = columns.iter().map(|column| column.index()).max().unwrap_or(0);
        let mut positions = vec![usize::MAX; last + 1];
        for &column in columns {
            let mut found_at = all_at(column);
            positions[column.index()] = found_at.next().ok_or_else(|| {
                HeaderProblem::ColumnMissing { column: column.name(), found: found() }
            })?;
            if found_at.next().is_some() {
                return Err(HeaderProblem::ColumnTwice { column: column.name(), found: found() });
            }
        }
        let names =
            (0..cells.count()).map(|index| shown(cells.get(index), SHOWN_HEADER_CHARS)).collect();
        Ok(Self {
            names,
            standard: positions.iter().copied().eq(0..columns.len())
                && cells.count() == columns.len(),
            positions,
            columns: PhantomData,
        })
    }

    /// Whether the columns are exactly the vendor's, in the vendor's order.
    pub(super) fn is_standard(&self) -> bool {
        self.standard
    }

    /// Cells in every line.
    pub(super) fn width(&self) -> usize {
        self.names.len()
    }

    /// The name of the column at `index`.
    pub(super) fn name_at(&self, index: usize) -> &str {
        self.names.get(index).map_or("", String::as_str)
    }

    /// The position of `column`.
    pub(super) fn position(&self, column: C) -> usize {
        self.positions[column.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANDARD: &str = "Date,Code,Time,SessionDistinction,Price,TradingVolume,TransactionId";

    #[test]
    fn columns_are_found_by_name() {
        let layout = Layout::parse(STANDARD.as_bytes(), &Column::ALL).unwrap();
        assert!(layout.is_standard());
        let other = b"\"TransactionId\",Note,TradingVolume,Price,SessionDistinction,Time,Code,Date";
        let layout = Layout::parse(other, &Column::ALL).unwrap();
        assert!(!layout.is_standard());
        assert_eq!((layout.position(Column::Date), layout.width()), (7, 8));
        assert_eq!(layout.name_at(1), "Note");
        let longer = format!("{STANDARD},Extra");
        assert!(!Layout::parse(longer.as_bytes(), &Column::ALL).unwrap().is_standard());
    }

    #[test]
    fn wrong_headers_are_told_apart() {
        let parse = |text: &str| Layout::parse(text.as_bytes(), &Column::ALL).unwrap_err();
        assert!(matches!(parse("a,b"), HeaderProblem::NoHeader { found, .. } if found == "a,b"));
        let twice = format!("{STANDARD},Price");
        assert!(matches!(parse(&twice), HeaderProblem::ColumnTwice { column: "Price", .. }));
        let renamed = STANDARD.replace("Price", "P");
        assert!(matches!(parse(&renamed), HeaderProblem::ColumnMissing { column: "Price", .. }));
        assert!(matches!(parse("\"Date"), HeaderProblem::Line(_)));
    }
}
