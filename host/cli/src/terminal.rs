//! Texts and numbers for people.

use clap::ColorChoice;

use crate::table::{Align, plain};

/// Forces colors on or off in all that draws, or leaves it to the terminal and NO_COLOR.
pub(crate) fn set_color(choice: ColorChoice) {
    let is_on = match choice {
        ColorChoice::Auto => return,
        ColorChoice::Always => true,
        ColorChoice::Never => false,
    };
    console::set_colors_enabled(is_on);
    console::set_colors_enabled_stderr(is_on);
    ratatui::crossterm::style::force_color_output(is_on);
}

/// The width to fit a table into; none where nobody looks at it.
pub(crate) fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0))
}

/// Names with their values below each other.
pub(crate) fn pairs(rows: &[(&str, String)]) -> String {
    let row = |(name, value): &(&str, String)| vec![(*name).to_owned(), value.clone()];
    plain(rows.iter().map(row), Align::Left)
}

/// Columns, the first to the left and the others to the right; an empty row is an empty line.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    plain(rows.iter().cloned(), Align::Right)
}

/// A decimal text with its whole part in groups of three digits.
pub(crate) fn grouped(number: &str) -> String {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", number),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut text = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if !fraction.is_empty() {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

/// What results leave out, in lines.
pub(crate) fn not_modelled(text: &str) -> String {
    wrapped(&format!("not modelled: {text}"))
}

/// A text in lines of at most 100 characters, as far as its words are that short.
fn wrapped(text: &str) -> String {
    const WIDTH: usize = 100;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

/// A ratio as a percentage with two digits.
pub(crate) fn percent(ratio: f64) -> String {
    format!("{:.2} %", ratio * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [
            ("0", "0"),
            ("999", "999"),
            ("1000", "1,000"),
            ("-1234567.8901", "-1,234,567.8901"),
            ("-100", "-100"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn texts_are_wrapped_between_words() {
        assert_eq!(wrapped(""), "");
        let (fifty, word) = ("a".repeat(50), "b".repeat(49));
        assert_eq!(wrapped(&format!("{fifty} {word}  c")), format!("{fifty} {word}\nc"));
        let long = "d".repeat(120);
        assert_eq!(wrapped(&format!("a {long} b")), format!("a\n{long}\nb"));
    }

    #[test]
    fn columns_are_aligned() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        let rows = [row(&["", "a", "bb"]), vec![], row(&["long", "1,000", "2"])];
        assert_eq!(columns(&rows), "            a  bb\n\n  long  1,000   2\n");
    }

    #[test]
    fn pairs_are_aligned() {
        let rows = [("a", "1".to_owned()), ("long", "2\n  forged  3".to_owned())];
        assert_eq!(pairs(&rows), "  a     1\n  long  2\\u000a  forged  3\n");
    }
}
