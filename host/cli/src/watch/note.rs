//! A message of the engine in the lines that there are for it: what to do often stands at its end.

use ratatui::text::Span;

/// Lines of a note at most, whatever the terminal.
pub(super) const NOTE_LINES_MAX: usize = 6;
/// What stands at the end of a note that is longer.
const CUT: &str = "…";

/// A text in lines of at most `width` columns, broken between words where that is possible; of more than
/// `lines_max` lines the last one says that it goes on.
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
        for letter in word.chars() {
            let mut bytes = [0; 4];
            let letter = letter.encode_utf8(&mut bytes);
            let line = lines.last().map_or(0, |line| columns(line));
            if line > 0 && line + columns(letter) > width {
                lines.push(String::new());
            }
            push(&mut lines, letter);
        }
    }
    if lines.len() > lines_max {
        lines.truncate(lines_max);
        if let Some(last) = lines.last_mut() {
            while !last.is_empty() && columns(last) + columns(CUT) > width {
                last.pop();
            }
            last.push_str(CUT);
        }
    }
    lines
}

fn push(lines: &mut [String], text: &str) {
    if let Some(last) = lines.last_mut() {
        last.push_str(text);
    }
}

/// Columns of a terminal that a text takes.
fn columns(text: &str) -> usize {
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
    fn there_are_not_more_lines_than_wanted() {
        assert_eq!(wrapped("one two three four", 5, 2), ["one", "two…"]);
        assert_eq!(wrapped("onetwothree", 3, 2), ["one", "tw…"]);
        assert_eq!(wrapped("one two", 3, 2), ["one", "two"]);
    }
}
