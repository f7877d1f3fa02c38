//! Texts of others as cells of CSV files: a spreadsheet takes none of them for a formula, and a program
//! gets every one of them back.
//!
//! | a text | its cell |
//! |---|---|
//! | begins with `=`, `+`, `-` or `@`, in full width (`＝`) too | `'` and the text |
//! | the same behind blanks, characters that are not seen, or `'` | `'` and the text |
//! | is a number, like `-5` or `+1.5e3` | the text: numbers stay numbers |
//! | is one such sign alone, like `-` for nothing | the text |
//! | any other | the text |
//!
//! Columns of numbers, dates and words of ours are written as they are; only texts of others go through
//! here: names and codes of issues, what strategies write, parameters, answers of `kumiki sql`. Other forms
//! (JSON, Parquet, Arrow, pages) hold the text itself.

//!
//! Statements of SQL unguard cells where they read them, by [`FORMULA`] and [`NUMBER`]: these are made of
//! the same sets of characters.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;

use crate::text::hides;

/// What makes a spreadsheet take a cell for text; it is no part of what people see.
const MARK: char = '\'';
/// What formulas begin with. Spreadsheets of Japan take the ones in full width too.
const SIGNS: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// The cell for a text.
#[must_use]
pub fn guarded(text: &str) -> Cow<'_, str> {
    if is_formula(text) { Cow::Owned(format!("{MARK}{text}")) } else { Cow::Borrowed(text) }
}

/// The cell as it stands in a line (RFC 4180).
#[must_use]
pub fn quoted(cell: Cow<'_, str>) -> Cow<'_, str> {
    match cell.contains(['"', ',', '\n', '\r']) {
        true => Cow::Owned(format!("\"{}\"", cell.replace('"', "\"\""))),
        false => cell,
    }
}

/// The text of a cell that [`guarded`] has made.
#[must_use]
pub fn unguarded(cell: &str) -> &str {
    cell.strip_prefix(MARK).filter(|_| is_formula(cell)).unwrap_or(cell)
}

/// Which cells have a mark that is no part of their text, together with [`NUMBER`], as a regular expression
/// in RE2's syntax: those that match this one and not that one lose their first character.
pub static FORMULA: LazyLock<String> = LazyLock::new(|| {
    let (passed, blank) = (class(is_passed), class(char::is_whitespace));
    let signs = class(|letter| SIGNS.contains(&letter));
    format!(r"\A{MARK}[{passed}]*[{signs}](?s:.*)[^{blank}]")
});

/// Cells that are numbers behind what is passed over, as a regular expression in RE2's syntax.
pub static NUMBER: LazyLock<String> = LazyLock::new(|| {
    let (passed, blank) = (class(is_passed), class(char::is_whitespace));
    let digits = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?";
    format!(r"\A[{passed}]*[+-](?:{digits}|(?i:inf|infinity|nan))[{blank}]*\z")
});

/// What stands between the brackets of a regular expression for these characters.
fn class(has: impl Fn(char) -> bool) -> String {
    let mut found = (char::MIN..=char::MAX).filter(|letter| has(*letter)).map(u32::from).peekable();
    let mut text = String::new();
    while let Some(first) = found.next() {
        let mut last = first;
        while let Some(next) = found.next_if_eq(&(last + 1)) {
            last = next;
        }
        // Writing into a string cannot fail.
        let _ = write!(text, r"\x{{{first:x}}}-\x{{{last:x}}}");
    }
    text
}

/// What a spreadsheet passes over in front of a formula, and our marks.
fn is_passed(letter: char) -> bool {
    letter == MARK || letter.is_whitespace() || hides(letter)
}

/// Whether a spreadsheet could take the text for a formula, marks in front left out.
fn is_formula(text: &str) -> bool {
    let text = text.trim_start_matches(is_passed);
    let rest = text.strip_prefix(SIGNS).map(str::trim_end);
    rest.is_some_and(|rest| !rest.is_empty() && text.trim_end().parse::<f64>().is_err())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn each_kind_of_text_is_written_as_the_table_says() {
        for formula in [
            "=HYPERLINK(\"https://example.com\",\"7203\")",
            "+2 ticks",
            "-3% dip",
            "@SUM(A1)",
            "＝1＋1",
            "－A1",
            "\t=1+1",
            "\r\n=1",
            " =A1",
            "\u{feff}=A1",
            "\u{200b}@x",
            "'=A1",
            "-1-1",
            "--",
            "+-inf x",
        ] {
            assert_eq!(guarded(formula), format!("'{formula}"));
        }
        for plain in [
            "",
            "-",
            "=",
            "@",
            "- ",
            "-5",
            "+1.5e3",
            "-.25",
            " -7 ",
            "7203",
            "トヨタ",
            "a=b",
            "(-1)",
            "'",
            "it's",
            "O-1",
            "-inf",
        ] {
            assert!(matches!(guarded(plain), Cow::Borrowed(text) if text == plain), "{plain}");
        }
    }

    #[test]
    fn classes_are_ranges() {
        assert_eq!(
            class(|letter| matches!(letter, 'a'..='c' | 'x')),
            r"\x{61}-\x{63}\x{78}-\x{78}"
        );
        assert_eq!(class(|_| false), "");
    }

    #[test]
    fn every_text_comes_back() {
        let letters = ['\'', '=', '-', '@', '＋', '1', 'e', '.', 'x', ' ', '\t', '\u{feff}', '日'];
        let seed = 7;
        let mut random = Random::of_seed(seed);
        for _ in 0..20_000 {
            let length = random.below(7);
            let text: String = (0..length).map(|_| letters[random.place(letters.len())]).collect();
            let cell = guarded(&text).into_owned();
            assert_eq!(unguarded(&cell), text, "{cell:?}, seed {seed}");
            assert!(cell == text || cell.starts_with('\''), "{cell:?}, seed {seed}");
        }
    }
}
