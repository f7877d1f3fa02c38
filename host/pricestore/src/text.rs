//! Texts of others in messages.

use crate::limits::SHOWN_CHARS_MAX;

/// A text of a client or a file as a message may repeat it: short and on one line.
#[must_use]
pub fn excerpt(text: &str) -> String {
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
