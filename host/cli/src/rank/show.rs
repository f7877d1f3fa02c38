//! A ranking as a table for people.

use std::io::{self, Write};

use ranking::{RankQuery, RankRow, Ranking};

use crate::table::{Align, Column, Table};
use crate::terminal::grouped;

/// The width to fit a table into; none where nobody looks at it.
pub(crate) fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0))
}

/// Writes the table. A date stands on the first row of its day.
pub(super) fn table(
    ranking: &Ranking,
    query: &RankQuery,
    width: Option<usize>,
    out: &mut impl Write,
) -> io::Result<()> {
    if ranking.rows.is_empty() {
        let (from, to) = (query.from, query.to);
        return writeln!(out, "no rows: the data has no business day from {from} to {to}");
    }
    let values = digits(ranking.rows.iter().filter_map(|row| row.sort_value));
    let closes = digits(ranking.rows.iter().map(|row| row.close));
    let volumes = digits(ranking.rows.iter().filter_map(|row| row.volume));
    let spans = ranking.rows.iter().any(|row| ranking.spans_split(row) == Some(true));
    let mut columns = vec![
        Column::new("date", Align::Left),
        Column::new("#", Align::Right),
        Column::new("code", Align::Left),
        Column::new("value", Align::Right),
        Column::new("close", Align::Right),
        Column::new("volume", Align::Right),
    ];
    if spans {
        columns.push(Column::new("split", Align::Left));
    }
    let mut table = Table::new(columns);
    let mark = if query.adjusted { "adjusted" } else { "not adjusted" };
    let mut day = None;
    for row in &ranking.rows {
        let first = day.replace(row.day) != Some(row.day);
        let mut cells = cells(ranking, row, first, [values, closes, volumes]);
        if spans {
            let spans = ranking.spans_split(row) == Some(true);
            cells.push(if spans { mark.to_owned() } else { String::new() });
        }
        table.row(cells);
    }
    let adjusted = if query.adjusted { ", earlier values adjusted for splits" } else { "" };
    writeln!(out, "by {} ({}{adjusted})", query.sort_by, query.order)?;
    table.write(width, out)
}

fn cells(ranking: &Ranking, row: &RankRow, first: bool, digits: [usize; 3]) -> Vec<String> {
    let [values, closes, volumes] = digits;
    let optional = |value: Option<f64>, digits| {
        value.map_or_else(|| "-".to_owned(), |value| number(value, digits))
    };
    let date = if first { ranking.days[row.day as usize].to_string() } else { String::new() };
    vec![
        date,
        row.rank.to_string(),
        ranking.codes[row.code as usize].to_string(),
        optional(row.sort_value, values),
        number(row.close, closes),
        optional(row.volume, volumes),
    ]
}

/// Digits after the point that suit a whole column, so that points stand below each other.
fn digits(values: impl Iterator<Item = f64>) -> usize {
    let (mut largest, mut whole) = (0.0_f64, true);
    for value in values {
        largest = largest.max(value.abs());
        whole &= value.fract() == 0.0;
    }
    match largest {
        _ if whole => 0,
        size if size >= 1e6 => 0,
        size if size >= 1e3 => 1,
        size if size >= 0.01 => 4,
        _ => 8,
    }
}

fn number(value: f64, digits: usize) -> String {
    if value.abs() >= 1e15 {
        return format!("{value:.6e}");
    }
    grouped(&format!("{value:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_column_have_the_same_digits() {
        assert_eq!(digits([1.0, 2.5e6].into_iter()), 0);
        assert_eq!(digits([1.5, 1_500.25].into_iter()), 1);
        assert_eq!(digits([0.015, -0.5].into_iter()), 4);
        assert_eq!(digits([0.0001].into_iter()), 8);
        assert_eq!(number(-1_234_567.891, 1), "-1,234,567.9");
        assert_eq!(number(1e300, 0), "1.000000e300");
    }
}
