//! Which file, which line and which value a statement failed on, and what to do about it. The database
//! engine reads all files of a view as one, and names a column at best.

use std::path::Path;

use duckdb::Connection;

use super::form::odd_line;
use super::stored::{FileView, names_of};
use super::{identifier, text_literal};
use crate::text::excerpt;

/// What the engine says where a value is not of its column's type.
const CONVERSION: &str = "Conversion Error";
/// What it says where it makes no table of a file, with the file's path behind it, or nothing.
const SNIFFING: &str = "Error when sniffing file \"";
/// What it says where a line has another form, with the number of the line behind it.
const LINE: &str = "CSV Error on Line: ";
/// What stands before the path of the file then.
const FILE: &str = "file = ";

/// What to do about a file.
const WHAT_TO_DO: &str = "mend the file, or move it out of the folder";

/// Why a file is not read whose path the engine would take for a pattern.
pub(super) fn wildcard(path: &Path) -> String {
    format!("{} has *, ? or [ in its name; give it another one", path.display())
}

/// Why these files of a view cannot be read, from the engine's words.
pub(super) fn unreadable<'a>(error: &str, files: impl IntoIterator<Item = &'a Path>) -> String {
    if let Some(why) = of_form(error, files) {
        return why;
    }
    // Below its words it shows our statement.
    let words = error.split("\n\nLINE ").next().unwrap_or_default().trim();
    let words = super::first_lines(words);
    format!("{}; {WHAT_TO_DO}", words.trim_end_matches('.'))
}

/// What is wrong in which file, where the failure of a statement was of one.
pub(super) fn explain(
    connection: &Connection,
    views: &[&FileView],
    sql: &str,
    error: &str,
) -> Option<String> {
    let sql = sql.to_lowercase();
    let mut named = views.iter().filter(|view| sql.contains(&view.name.to_lowercase()));
    let is_value = error.contains(CONVERSION);
    let value = if is_value { named.find_map(|view| of_value(connection, view)) } else { None };
    let files = views.iter().flat_map(|view| &view.files).map(|file| file.path.as_path());
    value.or_else(|| of_form(error, files))
}

/// A file that is no table: the one that the engine names, else the first of these that has an odd line.
fn of_form<'a>(error: &str, files: impl IntoIterator<Item = &'a Path>) -> Option<String> {
    let sniffed = error.split(SNIFFING).nth(1).and_then(|rest| rest.split('"').next());
    if sniffed == Some("") {
        return files.into_iter().find_map(|file| {
            let odd = odd_line(file).ok()??;
            Some(format!("{}, {odd}; {WHAT_TO_DO}", file.display()))
        });
    }
    let read = || error.lines().find_map(|line| line.trim().strip_prefix(FILE));
    let file = sniffed.or_else(read)?;
    if let Ok(Some(odd)) = odd_line(file.as_ref()) {
        return Some(format!("{file}, {odd}; {WHAT_TO_DO}"));
    }
    if sniffed.is_some() {
        return Some(format!("{file} is no table of comma-separated values; {WHAT_TO_DO}"));
    }
    let line: String = error.split(LINE).nth(1)?.chars().take_while(char::is_ascii_digit).collect();
    let what = error.lines().skip_while(|line| !line.contains(LINE)).nth(2).unwrap_or_default();
    let what = excerpt(what.trim().trim_end_matches('.'));
    Some(format!("{file}, line {line}: {what}; {WHAT_TO_DO}"))
}

/// The first value of the view that is not of its column's type.
fn of_value(connection: &Connection, view: &FileView) -> Option<String> {
    let names = names_of(connection, &view.reader()).ok()?;
    let typed = names.iter().filter_map(|name| Some((name, *view.types.get(name)?)));
    typed.into_iter().find_map(|(name, kind)| {
        let column = identifier(name);
        let wrong = format!("{column} IS NOT NULL AND TRY_CAST({column} AS {kind}) IS NULL");
        let first =
            format!("SELECT filename, {column} FROM {} WHERE {wrong} LIMIT 1", view.reader());
        let found = connection
            .query_row(&first, [], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)));
        let (file, value) = found.ok()?;
        let line = line_of(connection, view, &file, &wrong);
        let line = line.map(|line| format!(", line {line}")).unwrap_or_default();
        let what = if kind == "DATE" { "date (YYYY-MM-DD)" } else { "number" };
        let value = excerpt(&value);
        Some(format!("{file}{line}: {name} is `{value}`, which is no {what}; {WHAT_TO_DO}"))
    })
}

/// The line with the first row for which this holds: one for each row before it and for the header, and
/// those that values with line ends take.
fn line_of(connection: &Connection, view: &FileView, file: &str, wrong: &str) -> Option<i64> {
    let one = view.reader_of(&[text_literal(file)]);
    // Other files of the view may have columns that this one has not.
    let names = names_of(connection, &one).ok()?;
    let ends = names.iter().map(|name| {
        let column = identifier(name);
        format!("coalesce(length({column}) - length(replace({column}, chr(10), '')), 0)")
    });
    let ends = ends.collect::<Vec<_>>().join(" + ");
    let rows =
        format!("SELECT row_number() OVER () AS n, {ends} AS ends, {wrong} AS wrong FROM {one}");
    // All rows before the first that is wrong.
    let lines = format!(
        "WITH r AS ({rows}), w AS (SELECT min(n) AS n FROM r WHERE wrong) \
         SELECT (w.n + 1 + coalesce((SELECT sum(ends) FROM r WHERE r.n < w.n), 0))::BIGINT FROM w"
    );
    connection.query_row(&lines, [], |row| row.get::<_, Option<i64>>(0)).ok().flatten()
}
