//! Texts of clients and modules as messages may repeat them: short and on one line.

use crate::limits::SHOWN_CHARS_MAX;

/// Characters of a module's own text that a message repeats.
const MODULE_CHARS_MAX: usize = 300;

/// The beginning of a client's text, at most [`SHOWN_CHARS_MAX`] characters.
pub(crate) fn excerpt(text: &str) -> String {
    let mut short: String = text
        .chars()
        .take(SHOWN_CHARS_MAX)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(SHOWN_CHARS_MAX).is_some() {
        short.push('…');
    }
    short
}

/// A module's own text, which its author wrote for people.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().take(MODULE_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
