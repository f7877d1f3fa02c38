//! A message of the engine in the lines that there are for it: what to do often stands at its end.

use ratatui::text::Span;

/// Lines of a note at most, whatever the terminal.
pub(super) const NOTE_LINES_MAX: usize = 6;
/// What stands at the end of a note that is longer.
const CUT: &str = "…";

/// A text in lines of at most `width` columns, broken between words where that is possible and never within a number;
/// of more than `lines_max` lines the last one says that it goes on.
pub(super) fn wrapped(text: &str, width: usize, lines_max: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last().map_or(0, |line| columns(line));
        let space = usize::from(line > 0);
        if line + space + columns(word) <= width {
            push(&mut lines, if space > 0 { " " } else { "" });
            push(&mut lines, word);
            continue;
        }
        // Japanese has no spaces: a long word is broken anywhere, from where it stands.
        if columns(word) > width && line + space < width {
            push(&mut lines, if space > 0 { " " } else { "" });
        } else if line > 0 {
            lines.push(String::new());
        }
        for piece in pieces(word) {
            let is_too_wide = columns(piece) > width && piece.starts_with(is_of_number);
            let piece = if is_too_wide { CUT } else { piece };
            let line = lines.last().map_or(0, |line| columns(line));
            if line > 0 && line + columns(piece) > width {
                lines.push(String::new());
            }
            push(&mut lines, piece);
        }
    }
    if lines.len() > lines_max {
        lines.truncate(lines_max);
        if let Some(last) = lines.last_mut() {
            while !last.is_empty() && columns(last) + columns(CUT) > width {
                let of_end = pieces(last).last().map_or(0, str::len);
                last.truncate(last.len() - of_end);
            }
            last.push_str(CUT);
        }
    }
    lines
}

/// Whether a letter is of a number: half of one is another number.
fn is_of_number(letter: char) -> bool {
    letter.is_numeric() || matches!(letter, '.' | ',' | ':')
}

/// A text in what may not be broken: its letters, and its numbers as a whole.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = match is_of_number(first) {
            true => rest.find(|letter| !is_of_number(letter)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (piece, left) = rest.split_at(end);
        rest = left;
        Some(piece)
    })
}

fn push(lines: &mut [String], text: &str) {
    if let Some(last) = lines.last_mut() {
        last.push_str(text);
    }
}

/// Columns of a terminal that a text takes.
pub(super) fn columns(text: &str) -> usize {
    Span::raw(text).width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("", 10, 3), [""]);
        assert_eq!(wrapped("start the program", 17, 3), ["start the program"]);
        assert_eq!(wrapped("start the program", 16, 3), ["start the", "program"]);
        assert_eq!(wrapped("a  b", 1, 3), ["a", "b"]);
    }

    #[test]
    fn a_long_word_is_broken_anywhere() {
        assert_eq!(wrapped("ab cdefghij k", 6, 9), ["ab cde", "fghij", "k"]);
        assert_eq!(wrapped("ゲートウェイを起動", 8, 9), ["ゲートウ", "ェイを起", "動"]);
        // A letter of two columns where there is one.
        assert_eq!(wrapped("動", 1, 9), ["動"]);
    }

    #[test]
    fn a_number_is_whole_or_not_there() {
        assert_eq!(wrapped("qty=12,300yen", 9, 9), ["qty=", "12,300yen"]);
        assert_eq!(wrapped("残り12,300株", 5, 9), ["残り…", "株"]);
        assert_eq!(wrapped("of 12,300 or so", 5, 9), ["of …", "or so"]);
        assert_eq!(wrapped("of 12,300 more", 9, 1), ["of …"]);
        assert_eq!(wrapped("of 12,300 more", 10, 1), ["of 12,300…"]);
    }

    #[test]
    fn there_are_not_more_lines_than_wanted() {
        assert_eq!(wrapped("one two three four", 5, 2), ["one", "two…"]);
        assert_eq!(wrapped("onetwothree", 3, 2), ["one", "tw…"]);
        assert_eq!(wrapped("one two", 3, 2), ["one", "two"]);
    }
}
