//! Texts of others, made fit to be shown: none steers a terminal, and none looks like a line of ours.
//!
//! | where | what [`steers`] | what [`hides`] | what looks like a formula |
//! |---|---|---|---|
//! | terminal, log | spelled, `\u202e` | as it is | as it is |
//! | pages, names of issues | spelled | spelled | as it is, never markup |
//! | CSV | as it is | as it is | [`crate::csv_cell`] |
//! | JSON, Parquet, Arrow | as it is | as it is | as it is |

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Write as _;
use std::iter;

/// A text that is mostly short, like the id and the number of an order: up to 23 bytes stand in it without memory
/// of their own, and a copy of it never copies more.
pub type ShortText = smol_str::SmolStr;

/// How far the later lines of a guest's text stand to the right.
const INDENT: &str = "\n    ";

/// Whether a character is a command to whatever shows it: control characters, separators of lines that are
/// no line end, and what turns the direction of the text around it.
#[must_use]
pub fn steers(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a character is not seen, so that texts that differ could look alike.
#[must_use]
pub const fn hides(letter: char) -> bool {
    matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// A text for a terminal: what would steer it is spelled like `\u001b`, as JSON does, so that a text that
/// is JSON says the same as before. Line ends stay.
#[must_use]
pub fn for_terminal(text: &str) -> Cow<'_, str> {
    spelled(text, |letter| letter != '\n' && steers(letter))
}

/// The same on one line: line ends are spelled too.
#[must_use]
pub fn on_one_line(text: &str) -> Cow<'_, str> {
    spelled(text, steers)
}

/// A guest's own text inside of one of ours: its later lines are indented.
#[must_use]
pub fn of_guest(text: &str) -> String {
    for_terminal(text.trim_end()).replace('\n', INDENT)
}

fn spelled(text: &str, is_spelled: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_spelled) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_spelled(letter) {
            // All of these have four digits; writing into a string cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(letter));
        } else {
            out.push(letter);
        }
    }
    Cow::Owned(out)
}

/// An error with its causes, leaving out a cause that the text before it tells already.
#[must_use]
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = iter::successors(error.source(), |&cause| cause.source());
    causes.map(ToString::to_string).fold(error.to_string(), |text, cause| {
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_a_terminal() {
        let hostile = "a\u{1b}[2J\r\u{9b}31m\u{7f}\u{202e}b\u{2028}\u{0}";
        let shown = for_terminal(hostile);
        assert_eq!(shown, r"a\u001b[2J\u000d\u009b31m\u007f\u202eb\u2028\u0000");
        assert!(!shown.contains(steers));
        assert_eq!(for_terminal("日本\nplain"), "日本\nplain");
        assert!(matches!(for_terminal("plain\n"), Cow::Borrowed(_)));
        assert_eq!(on_one_line("a\nb\tc"), r"a\u000ab\u0009c");
    }

    #[test]
    fn json_says_the_same_as_before() {
        let text = serde_json::to_string("\u{9b}2J\u{1b}\u{7f} \"quoted\" \n").unwrap();
        assert!(text.contains(steers), "JSON leaves some of them");
        let shown = for_terminal(&text);
        assert!(!shown.contains(steers));
        let (was, is): (String, String) =
            (serde_json::from_str(&text).unwrap(), serde_json::from_str(&shown).unwrap());
        assert_eq!(was, is);
    }

    #[test]
    fn lines_of_a_guest_are_no_lines_of_ours() {
        assert_eq!(of_guest("panic\nerror: forged\r\n"), "panic\n    error: forged");
        assert_eq!(of_guest("left: 1\n right: 2"), "left: 1\n     right: 2");
    }
}
