//! Tables with aligned columns that fit a width.

use std::io::{self, Write};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Spaces between two columns.
const GAP: usize = 2;
/// Narrowest that a column of text may become.
const NARROWEST: usize = 6;

/// Where the cells of a column stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A column.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    name: String,
    align: Align,
}

impl Column {
    pub(crate) fn new(name: impl Into<String>, align: Align) -> Self {
        Self { name: name.into(), align }
    }
}

/// A table.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row with a cell for each column.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        // A line end or a control character in a cell would tear the table.
        let clean = |cell: String| {
            if cell.contains(char::is_control) {
                cell.chars().map(|c| if c.is_control() { '␣' } else { c }).collect()
            } else {
                cell
            }
        };
        self.rows.push(cells.into_iter().map(clean).collect());
    }

    /// Writes the table. With a width, columns of text are made narrower and the last ones left out
    /// until it fits; numbers are never cut.
    pub(crate) fn write(&self, width: Option<usize>, out: &mut impl Write) -> io::Result<()> {
        let (widths, left_out) = self.fit(width);
        let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        self.line(&names, &widths, out)?;
        let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
        writeln!(out, "{}", rule.join(&" ".repeat(GAP)))?;
        for row in &self.rows {
            let cells: Vec<&str> = row.iter().map(String::as_str).collect();
            self.line(&cells, &widths, out)?;
        }
        if left_out.is_empty() {
            return Ok(());
        }
        writeln!(out, "({} left out; the terminal is too narrow)", left_out.join(", "))
    }

    fn line(&self, cells: &[&str], widths: &[usize], out: &mut impl Write) -> io::Result<()> {
        let mut line = String::new();
        for (index, ((cell, column), width)) in
            cells.iter().zip(&self.columns).zip(widths).enumerate()
        {
            if index > 0 {
                line.push_str(&" ".repeat(GAP));
            }
            let cell = cut(cell, *width);
            let space = " ".repeat(width.saturating_sub(cell.width()));
            match column.align {
                Align::Left => line.extend([cell.as_str(), &space]),
                Align::Right => line.extend([space.as_str(), &cell]),
            }
        }
        writeln!(out, "{}", line.trim_end())
    }

    /// Widths of the columns that are shown, and the names of those that are not.
    fn fit(&self, width: Option<usize>) -> (Vec<usize>, Vec<&str>) {
        let cells = |index: usize| self.rows.iter().filter_map(move |row| row.get(index));
        let mut widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(index, column)| {
                let widest = cells(index).map(|cell| cell.width()).max().unwrap_or(0);
                widest.max(column.name.width())
            })
            .collect();
        let Some(most) = width else { return (widths, Vec::new()) };
        let total =
            |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        let mut left_out = Vec::new();
        while let Some(excess) = total(&widths).checked_sub(most).filter(|excess| *excess > 0) {
            let widest = (0..widths.len())
                .filter(|index| self.columns[*index].align == Align::Left)
                .filter(|index| widths[*index] > NARROWEST)
                .max_by_key(|index| widths[*index]);
            match widest {
                Some(index) => widths[index] = widths[index].saturating_sub(excess).max(NARROWEST),
                None if widths.len() > 1 => {
                    widths.pop();
                    left_out.insert(0, self.columns[widths.len()].name.as_str());
                }
                None => break,
            }
        }
        (widths, left_out)
    }
}

/// A text in at most `width` columns of a terminal; the cut is marked.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let mut short = String::new();
    for c in text.chars() {
        let Some(left) = room.checked_sub(c.width().unwrap_or(0)) else { break };
        room = left;
        short.push(c);
    }
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(width: Option<usize>) -> String {
        let mut table = Table::new(vec![
            Column::new("name", Align::Left),
            Column::new("n", Align::Right),
            Column::new("volume", Align::Right),
        ]);
        table.row(vec!["トヨタ自動車".into(), "1".into(), "300".into()]);
        table.row(vec!["a\nb".into(), "22".into(), "-".into()]);
        let mut out = Vec::new();
        table.write(width, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_aligned() {
        let expected = "name           n  volume\n\
                        ────────────  ──  ──────\n\
                        トヨタ自動車   1     300\n\
                        a␣b           22       -\n";
        assert_eq!(text(None), expected);
        assert_eq!(text(Some(24)), expected);
    }

    #[test]
    fn narrow_terminals_get_less() {
        let expected = "name         n  volume\n\
                        ──────────  ──  ──────\n\
                        トヨタ自…    1     300\n\
                        a␣b         22       -\n";
        assert_eq!(text(Some(22)), expected);
        let expected = "name     n\n\
                        ──────  ──\n\
                        トヨ…    1\n\
                        a␣b     22\n\
                        (volume left out; the terminal is too narrow)\n";
        assert_eq!(text(Some(12)), expected);
        assert!(text(Some(1)).starts_with("name"));
    }
}
