//! A ranking as a table for people.

use std::io::{self, Write};

use ranking::{ListedField, ListedInfo, RankQuery, RankRow, Ranking};

use crate::table::{Align, Column, Table};
use crate::terminal::grouped;

/// Columns of names, which are there where a row has one: with the name after the code, and what is left
/// out first on narrow terminals at the end.
const NAMES: [ListedField; 3] = [ListedField::Name, ListedField::Market, ListedField::Sector33];

/// Writes the table. A date stands on the first row of its day. Where an issue has only an English name
/// that stands for its name.
pub(super) fn table(
    ranking: &Ranking,
    listed: &ListedInfo,
    query: &RankQuery,
    width: Option<usize>,
    out: &mut impl Write,
) -> io::Result<()> {
    if ranking.rows.is_empty() {
        let (from, to) = (query.from, query.to);
        let what = if ranking.days.is_empty() { "business day" } else { "price" };
        return writeln!(out, "no rows: the data has no {what} from {from} to {to}");
    }
    let values = digits(ranking.rows.iter().filter_map(|row| row.sort_value));
    let closes = digits(ranking.rows.iter().map(|row| row.close));
    let volumes = digits(ranking.rows.iter().filter_map(|row| row.volume));
    let shown = |row: &RankRow, field| name(ranking, listed, row, field);
    let [has_name, has_market, has_sector] =
        NAMES.map(|field| ranking.rows.iter().any(|row| shown(row, field).is_some()));
    let known = if query.adjusted { "adjusted" } else { "not adjusted" };
    let mark = |row: &RankRow| match ranking.spans_split(row) {
        Some(true) => known,
        None if ranking.splits.is_some() => "not known",
        Some(false) | None => "",
    };
    let has_mark = ranking.rows.iter().any(|row| !mark(row).is_empty());
    let columns = [
        ("date", Align::Left, true),
        ("#", Align::Right, true),
        ("code", Align::Left, true),
        ("name", Align::Left, has_name),
        ("value", Align::Right, true),
        ("close", Align::Right, true),
        ("volume", Align::Right, true),
        ("split", Align::Left, has_mark),
        ("market", Align::Left, has_market),
        ("sector", Align::Left, has_sector),
    ];
    let heads = columns.iter().filter(|(_, _, is_there)| *is_there);
    let mut table = Table::new(heads.map(|(name, align, _)| Column::new(*name, *align)).collect());
    let mut day = None;
    for row in &ranking.rows {
        let first = day.replace(row.day) != Some(row.day);
        let [name, market, sector] = NAMES.map(|field| shown(row, field).unwrap_or("-"));
        let texts = [name, mark(row), market, sector];
        let cells = cells(ranking, row, first, [values, closes, volumes], texts);
        let cells = cells.into_iter().zip(columns).filter(|(_, (_, _, is_there))| *is_there);
        table.row(cells.map(|(cell, _)| cell).collect());
    }
    let adjusted = if query.adjusted { ", earlier values adjusted for splits" } else { "" };
    writeln!(out, "by {} ({}{adjusted})", query.sort_by, query.order)?;
    table.write(width, out)
}

fn name<'a>(
    ranking: &Ranking,
    listed: &'a ListedInfo,
    row: &RankRow,
    field: ListedField,
) -> Option<&'a str> {
    let (code, day) = (&ranking.codes[row.code as usize], ranking.days[row.day as usize]);
    let english = || listed.text(code, day, ListedField::NameEn);
    let is_name = field == ListedField::Name;
    listed.text(code, day, field).or_else(|| english().filter(|_| is_name))
}

fn cells(
    ranking: &Ranking,
    row: &RankRow,
    first: bool,
    digits: [usize; 3],
    [name, split, market, sector]: [&str; 4],
) -> [String; 10] {
    let [values, closes, volumes] = digits;
    let optional = |value: Option<f64>, digits| {
        value.map_or_else(|| "-".to_owned(), |value| number(value, digits))
    };
    let date = if first { ranking.days[row.day as usize].to_string() } else { String::new() };
    [
        date,
        row.rank.to_string(),
        ranking.codes[row.code as usize].to_string(),
        name.to_owned(),
        optional(row.sort_value, values),
        number(row.close, closes),
        optional(row.volume, volumes),
        split.to_owned(),
        market.to_owned(),
        sector.to_owned(),
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
