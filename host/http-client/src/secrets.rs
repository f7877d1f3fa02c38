//! Texts that are free of secrets, however a server spells them.

use secrecy::{ExposeSecret, SecretString};

/// What stands in the place of a secret.
const HIDDEN: &str = "***";

/// What no text may ever show.
#[derive(Default)]
pub(crate) struct Secrets(Vec<SecretString>);

impl Secrets {
    pub(crate) fn hide(&mut self, secret: &SecretString) {
        if !secret.expose_secret().is_empty() {
            self.0.push(secret.clone());
            // What is a part of another one must not tear it.
            self.0.sort_by_key(|secret| std::cmp::Reverse(secret.expose_secret().len()));
        }
    }

    pub(crate) fn redacted(&self, text: &str) -> String {
        let without = |text: String, secret: &SecretString| without(&text, secret.expose_secret());
        self.0.iter().fold(text.to_owned(), without)
    }
}

fn without(text: &str, secret: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let found = spelled(rest.as_bytes(), secret.as_bytes());
        match found.and_then(|bytes| rest.get(bytes..)) {
            Some(after) => {
                kept.push_str(HIDDEN);
                rest = after;
            }
            None => {
                kept.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    kept
}

/// How many bytes of the text's start are the secret: as it is, or any of its bytes encoded as in an
/// address, a form or a JSON text.
fn spelled(text: &[u8], secret: &[u8]) -> Option<usize> {
    if text.starts_with(secret) {
        return Some(secret.len());
    }
    let mut at = 0;
    for byte in secret {
        at += spelled_byte(text.get(at..)?, *byte)?;
    }
    Some(at)
}

fn spelled_byte(text: &[u8], byte: u8) -> Option<usize> {
    let is = |digits: &[u8]| {
        let digits = str::from_utf8(digits).ok();
        digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) == Some(byte)
    };
    match text {
        [b'%', a, b, ..] if is(&[*a, *b]) => Some(3),
        [b'\\', b'u', b'0', b'0', a, b, ..] if is(&[*a, *b]) => Some(6),
        [b'\\', escaped @ (b'"' | b'\\' | b'/'), ..] if *escaped == byte => Some(2),
        [b'+', ..] if byte == b' ' => Some(1),
        [first, ..] if *first == byte => Some(1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(texts: &[&str]) -> Secrets {
        let mut secrets = Secrets::default();
        texts.iter().for_each(|text| secrets.hide(&SecretString::from((*text).to_owned())));
        secrets
    }

    #[test]
    fn every_spelling_of_a_secret_is_hidden() {
        let secrets = secrets(&[r#"a+b/c"d\e%41=&"#]);
        for spelling in [
            r#"a+b/c"d\e%41=&"#,
            "a%2Bb%2Fc%22d%5Ce%2541%3D%26",
            "a%2bb/c%22d%5ce%2541=%26",
            "%61%2B%62%2F%63%22%64%5C%65%25%34%31%3D%26",
            r#"a+b/c\"d\\e%41=&"#,
            r#"a+b\/c\"d\\e%41=&"#,
            r"a\u002bb\u002Fc\u0022d\u005ce\u002541\u003d\u0026",
        ] {
            let text = format!("日本 key={spelling}; 語");
            assert_eq!(secrets.redacted(&text), "日本 key=***; 語", "{spelling}");
        }
        for other in ["a+b/c", "a%2Bb%2Fc%22d%5Ce", "%", r"\u00", "%2", "日本", ""] {
            assert_eq!(secrets.redacted(other), other);
        }
    }

    #[test]
    fn secrets_within_secrets_are_hidden_whole() {
        let secrets = secrets(&["key", "", "key-and-more"]);
        assert_eq!(secrets.redacted("key key-and-more keykey"), "*** *** ******");
    }

    #[test]
    fn what_looks_encoded_may_be_the_secret_itself() {
        assert_eq!(secrets(&["%25%41"]).redacted("<%25%41> <%2525%2541>"), "<***> <***>");
    }
}
