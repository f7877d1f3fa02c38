//! Tables for people: aligned in any script, fitted to the terminal.

use std::io::{self, Write};

use comfy_table::presets::NOTHING;
use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, ContentLineStyle, LineStyle, Row,
    TableStyle,
};
use domain::text::on_one_line;

/// Spaces between two columns: the padding of a column and the junction after it.
const GAP: usize = 2;
/// Narrowest that a column of text may become.
const NARROWEST: usize = 6;
/// No borders; a rule below the names.
const STYLE: TableStyle = TableStyle::new()
    .header_lines(ContentLineStyle::none().junction(' '))
    .header_separator(LineStyle::none().fill('─').junction(' '))
    .content_lines(ContentLineStyle::none().junction(' '));

/// Where the cells of a column stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Text, which may be cut.
    Left,
    /// Numbers, which are never cut.
    Right,
}

/// The head of a column.
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

/// Rows below a head.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    columns: Vec<Column>,
    cells: comfy_table::Table,
}

impl Table {
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        let mut cells = comfy_table::Table::new();
        cells.load_style(STYLE).set_truncation_indicator("…");
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        cells.set_header(one_line(&names));
        for (column, style) in columns.iter().zip(cells.column_iter_mut()) {
            style.set_padding((0, 1)).set_cell_alignment(column.align.into());
        }
        Self { columns, cells }
    }

    /// Adds a row with a cell for each column.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.cells.add_row(one_line(&cells));
    }

    /// Writes the table. With a width, columns of text are made narrower and the last ones left out
    /// until it fits; numbers are never cut.
    pub(crate) fn write(mut self, width: Option<usize>, out: &mut impl Write) -> io::Result<()> {
        let left_out = width.map_or(0, |width| self.fit(width));
        for (index, line) in self.cells.lines().enumerate() {
            if index == 1 {
                // The library draws the rule below the padding of the columns too.
                let rule = line.replace("─ ", "  ");
                writeln!(out, "{}", rule.strip_suffix('─').unwrap_or(&rule))?;
            } else {
                writeln!(out, "{}", line.trim_end())?;
            }
        }
        let shown = self.columns.len() - left_out;
        let names: Vec<&str> =
            self.columns[shown..].iter().map(|column| column.name.as_str()).collect();
        if names.is_empty() {
            return Ok(());
        }
        writeln!(out, "({} left out; the terminal is too narrow)", names.join(", "))
    }

    /// Arranges the columns for a width and gives the number of those that are left out.
    fn fit(&mut self, width: usize) -> usize {
        let narrowest: Vec<usize> = self
            .cells
            .column_max_content_widths()
            .into_iter()
            .zip(&self.columns)
            .map(|(widest, column)| match column.align {
                Align::Left => usize::from(widest).min(NARROWEST),
                Align::Right => usize::from(widest),
            })
            .collect();
        // The first column is always there.
        let width = width.max(narrowest.first().copied().unwrap_or(0));
        // The padding after the last column is trimmed.
        let whole = u16::try_from(width + 1).unwrap_or(u16::MAX);
        self.cells.set_content_arrangement(ContentArrangement::Dynamic).set_width(whole);
        let count = self.columns.len();
        let ends = narrowest.iter().scan(0, |end, column| {
            *end += column + GAP;
            Some(*end - GAP)
        });
        let shown = ends.take_while(|end| *end <= width).count().max(1);
        let styles = self.cells.column_iter_mut().zip(&self.columns).enumerate();
        for (index, (style, column)) in styles {
            if index >= shown {
                style.set_constraint(ColumnConstraint::Hidden);
            } else if column.align == Align::Right {
                style.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        count.saturating_sub(shown)
    }
}

impl From<Align> for CellAlignment {
    fn from(align: Align) -> Self {
        match align {
            Align::Left => Self::Left,
            Align::Right => Self::Right,
        }
    }
}

/// Cells of one line each: a line end or a control character would tear the table.
fn clean(cells: &[String]) -> Row {
    let clean = |cell: &String| on_one_line(cell).into_owned();
    Row::from(cells.iter().map(clean).collect::<Vec<String>>())
}

/// The same, cut off where the column is narrower.
fn one_line(cells: &[String]) -> Row {
    let mut row = clean(cells);
    row.max_height(1);
    row
}

/// Rows without a head, two spaces before each cell: the first column to the left, the others as
/// told. An empty row is an empty line.
pub(crate) fn plain(rows: impl Iterator<Item = Vec<String>>, others: Align) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(NOTHING).add_rows(rows.map(|cells| clean(&cells)));
    for (index, style) in table.column_iter_mut().enumerate() {
        let align = if index == 0 { Align::Left } else { others };
        style.set_padding((2, 0)).set_cell_alignment(align.into());
    }
    let mut text = table.trim_fmt();
    if !text.is_empty() {
        text.push('\n');
    }
    text
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
                        a\\u000ab      22       -\n";
        assert_eq!(text(None), expected);
        assert_eq!(text(Some(24)), expected);
    }

    #[test]
    fn narrow_terminals_get_less() {
        let expected = "name         n  volume\n\
                        ──────────  ──  ──────\n\
                        トヨタ自…    1     300\n\
                        a\\u000ab    22       -\n";
        assert_eq!(text(Some(22)), expected);
        let expected = "name       n\n\
                        ────────  ──\n\
                        トヨタ…    1\n\
                        a\\u000ab  22\n\
                        (volume left out; the terminal is too narrow)\n";
        assert_eq!(text(Some(12)), expected);
        assert!(text(Some(1)).starts_with("name"));
    }
}
