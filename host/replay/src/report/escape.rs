//! JSON that can stand inside a `<script>` element whatever its texts hold.

use serde::Serialize;

/// A value as JSON in which no text can end the element, open a comment or become markup.
///
/// The replaced characters have no meaning in JSON outside of strings, so the value stays the same.
pub(crate) fn script_json(value: &impl Serialize) -> String {
    // Only a map whose keys are no texts fails here, and the page's data has none; the page says so
    // when it finds `null`.
    let json = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
    let mut safe = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '<' => safe.push_str("\\u003c"),
            '>' => safe.push_str("\\u003e"),
            '&' => safe.push_str("\\u0026"),
            '\u{2028}' => safe.push_str("\\u2028"),
            '\u{2029}' => safe.push_str("\\u2029"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_can_end_the_element_and_the_value_stays() {
        let hostile = "</script><!-- <script> ]]> &lt; \u{2028}\u{2029} \" \\ \u{0} 組木";
        let json = script_json(&[hostile]);
        assert!(!json.contains(['<', '>', '&', '\u{2028}', '\u{2029}']), "{json}");
        let back: Vec<String> = serde_json::from_str(&json).unwrap();
        assert_eq!(back, [hostile]);
    }
}
