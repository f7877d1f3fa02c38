//! JSON that can stand inside a `<script>` element whatever its texts hold.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// Writes a value as JSON in which no text can end the element, open a comment or become markup.
///
/// The replaced characters have no meaning in JSON outside of strings, so the value stays the same.
pub fn write_script_json(out: impl Write, value: &impl Serialize) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, InScript))?;
    Ok(())
}

/// The same as a text.
pub fn script_json(value: &impl Serialize) -> String {
    let mut json = Vec::new();
    // Memory takes every byte; only a map whose keys are no texts fails, and then the page finds
    // `null` and says so.
    match write_script_json(&mut json, value) {
        Ok(()) => String::from_utf8_lossy(&json).into_owned(),
        Err(_) => "null".to_owned(),
    }
}

/// Writes the characters that mean something to HTML as escapes.
struct InScript;

impl Formatter for InScript {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(index) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            let (before, after) = rest.split_at(index);
            writer.write_all(before.as_bytes())?;
            let mut letters = after.chars();
            if let Some(letter) = letters.next() {
                write!(writer, "\\u{:04x}", u32::from(letter))?;
            }
            rest = letters.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_can_end_the_element_and_the_value_stays() {
        let hostile = "</script><!-- <script> ]]> &lt; \u{2028}\u{2029} \" \\ \u{0} 組木";
        let mut json = Vec::new();
        write_script_json(&mut json, &[hostile]).unwrap();
        let json = String::from_utf8(json).unwrap();
        assert!(!json.contains(['<', '>', '&', '\u{2028}', '\u{2029}']), "{json}");
        let back: Vec<String> = serde_json::from_str(&json).unwrap();
        assert_eq!(back, [hostile]);
    }
}
