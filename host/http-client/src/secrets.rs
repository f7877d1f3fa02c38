//! Texts that are free of secrets, however a server spells them.

use secrecy::{ExposeSecret, SecretString};

/// What stands in the place of a secret.
const HIDDEN: &str = "***";

/// Shortest secret that is looked for in base64: a shorter one would be found where it is not.
const BASE64_SECRET_BYTES_MIN: usize = 8;
/// The digits of base64, and the two of its form for addresses.
const BASE64: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const BASE64_ENDS: [[u8; 2]; 2] = [*b"+/", *b"-_"];

/// Shortest secret that is looked for within a code: the digits of a shorter one stand in many.
const CODE_SECRET_BYTES_MIN: usize = 6;

/// What no text may ever show. Nothing shows it.
#[derive(Clone, Default)]
pub struct Secrets(Vec<SecretString>);

impl Secrets {
    /// Keeps a text out of what [`Self::redacted`] gives, as it is or encoded, in letters of either case.
    pub fn hide(&mut self, secret: &SecretString) {
        let text = secret.expose_secret();
        let is_known = self.0.iter().any(|known| known.expose_secret() == text);
        if !text.is_empty() && !is_known {
            self.0.push(secret.clone());
            self.0.extend(in_base64(secret.expose_secret().as_bytes()));
            // What is a part of another one must not tear it.
            self.0.sort_by_key(|secret| std::cmp::Reverse(secret.expose_secret().len()));
        }
    }

    /// A text free of secrets.
    #[must_use]
    pub fn redacted(&self, text: &str) -> String {
        let without = |text: String, secret: &SecretString| without(&text, secret.expose_secret());
        self.0.iter().fold(text.to_owned(), without)
    }

    /// Whether a short word, as a code, is a secret or has a long one in it.
    #[must_use]
    pub fn stands_in(&self, code: &str) -> bool {
        self.0.iter().map(ExposeSecret::expose_secret).any(|secret| {
            spelled(code.as_bytes(), secret.as_bytes()) == Some(code.len())
                || (secret.len() >= CODE_SECRET_BYTES_MIN && without(code, secret) != code)
        })
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

/// A secret in base64, as a part of whatever stands around it: with none, one or two bytes before it in its group
/// of three, as after the name of a user, and without the digits that the bytes around it have a part in.
fn in_base64(secret: &[u8]) -> Vec<SecretString> {
    if secret.len() < BASE64_SECRET_BYTES_MIN {
        return Vec::new();
    }
    let forms = BASE64_ENDS.iter().flat_map(|ends| (0..3_usize).map(move |before| (ends, before)));
    let mut found: Vec<String> = forms
        .map(|(ends, before)| {
            let bits = |place: usize| {
                // Bits of the secret, behind so many of other bytes.
                let at = place.checked_sub(before * 8)?;
                secret.get(at / 8).map(|byte| byte >> (7 - at % 8) & 1)
            };
            let digits = (before * 8).div_ceil(6)..(before + secret.len()) * 8 / 6;
            let digit = |place: usize| -> Option<char> {
                let value = (place * 6..place * 6 + 6).try_fold(0_usize, |value, place| {
                    Some(value * 2 + usize::from(bits(place)?))
                })?;
                let digit = BASE64.get(value).or_else(|| ends.get(value - BASE64.len()))?;
                Some(char::from(*digit))
            };
            digits.filter_map(digit).collect()
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(SecretString::from).collect()
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
/// address, a form or a JSON text, in letters of either case, with anything between them that nobody sees.
fn spelled(text: &[u8], secret: &[u8]) -> Option<usize> {
    if text.starts_with(secret) {
        return Some(secret.len());
    }
    let mut at = 0;
    // A blank at its start would be found at each one of a long row of them.
    for byte in secret.trim_ascii_start() {
        let is_blank = byte.is_ascii_whitespace() || byte.is_ascii_control();
        loop {
            let rest = text.get(at..).unwrap_or_default();
            if let Some(bytes) = spelled_byte(rest, *byte) {
                at += bytes;
                break;
            }
            // A blank of the secret's may be missing.
            if is_blank {
                break;
            }
            at += unseen(rest).filter(|_| at > 0)?;
        }
    }
    (at > 0).then_some(at)
}

/// The number behind a spelling of one byte or of one unit of UTF-16, and the bytes of the spelling.
fn escaped(text: &[u8]) -> Option<(u32, usize)> {
    let (digits, bytes) = match text {
        [b'%', digits @ ..] => (digits.get(..2)?, 3),
        [b'\\', b'u', digits @ ..] => (digits.get(..4)?, 6),
        _ => return None,
    };
    let digits = str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
    Some((u32::from_str_radix(digits, 16).ok()?, bytes))
}

fn spelled_byte(text: &[u8], byte: u8) -> Option<usize> {
    let is = |other: u32| u8::try_from(other).is_ok_and(|other| other.eq_ignore_ascii_case(&byte));
    if let Some((_, bytes)) = escaped(text).filter(|(number, _)| is(*number)) {
        return Some(bytes);
    }
    match text {
        [b'\\', escaped @ (b'"' | b'\\' | b'/'), ..] if *escaped == byte => Some(2),
        [b'+', ..] if byte == b' ' => Some(1),
        [first, ..] if is(u32::from(*first)) => Some(1),
        _ => None,
    }
}

/// How many bytes of the text's start are a character that nobody sees: a blank, a control character, one
/// that joins others or turns their direction.
fn unseen(text: &[u8]) -> Option<usize> {
    let is_unseen = |letter: char| {
        letter.is_whitespace()
            || letter.is_control()
            || matches!(letter, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
            || matches!(letter, '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    if let Some((number, bytes)) = escaped(text) {
        return char::from_u32(number).is_some_and(is_unseen).then_some(bytes);
    }
    let start = &text[..text.len().min(4)];
    let letter = start.utf8_chunks().next()?.valid().chars().next()?;
    is_unseen(letter).then(|| letter.len_utf8())
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
    fn a_secret_in_base64_is_hidden_wherever_it_begins() {
        let secrets = secrets(&["program-vendor-key-5711\u{fb}\u{ff}"]);
        // With none, one, two and five bytes before it, and what stands behind it.
        for text in [
            "cHJvZ3JhbS12ZW5kb3Ita2V5LTU3MTHDu8O/",
            "eHByb2dyYW0tdmVuZG9yLWtleS01NzExw7vDvw==",
            "dTpwcm9ncmFtLXZlbmRvci1rZXktNTcxMcO7w78=",
            "dXNlcjpwcm9ncmFtLXZlbmRvci1rZXktNTcxMcO7w787bW9yZQ==",
            "cHJvZ3JhbS12ZW5kb3Ita2V5LTU3MTHDu8O_",
        ] {
            let hidden = secrets.redacted(text);
            assert!(hidden.contains("***") && hidden.len() < 24, "{text}: {hidden}");
        }
        // Nothing of a short one: its digits stand in many a word.
        assert_eq!(self::secrets(&["ab"]).redacted("YWI="), "YWI=");
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

    #[test]
    fn a_secret_in_other_letters_or_torn_is_hidden() {
        let secrets = secrets(&["Ab3/x y", "パス9"]);
        for spelling in [
            "AB3/X Y",
            "ab3/xy",
            "a b 3 / x y",
            "A\u{1}b\u{7f}3/\u{200b}x\u{3000}y",
            "a\nb3/x\ty",
            "%41%62%01%33%2f%78+y",
            r"a\u0000b3\/x\u200by",
            "aB3/x%20y",
            "パ ス\u{feff}9",
        ] {
            assert_eq!(secrets.redacted(&format!("<{spelling}>")), "<***>", "{spelling}");
        }
        for other in ["Ab3-x y", "Ab3/x", "ab4/xy", "%zz", r"\u00", "パ", " ", ""] {
            assert_eq!(secrets.redacted(other), other);
        }
        assert_eq!(
            self::secrets(&[" ", "\t"]).redacted("a b"),
            "a***b",
            "a blank is one, and no more"
        );
    }

    #[test]
    fn a_long_row_of_blanks_is_read_once() {
        let blanks = " ".repeat(1 << 20);
        assert_eq!(secrets(&[" Ab 3"]).redacted(&blanks), blanks);
        assert_eq!(secrets(&[" Ab 3"]).redacted("  AB3"), "  ***");
    }

    #[test]
    fn a_code_is_no_secret_because_of_two_equal_digits() {
        let secrets = secrets(&["13", "Canary-1"]);
        for (code, is_secret) in [
            ("13", true),
            ("11304", false),
            ("xcanary-1", true),
            ("CANARY-1", true),
            ("canary", false),
        ] {
            assert_eq!(secrets.stands_in(code), is_secret, "{code}");
        }
    }
}
