//! Texts that are free of secrets, however a server spells them.

use std::ops::Range;

use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

/// What stands in the place of a secret.
const HIDDEN: &str = "***";

/// Shortest secret that is looked for in base64: a shorter one would be found where it is not.
const BASE64_SECRET_BYTES_MIN: usize = 6;
/// The digits of base64, and the two of its form for addresses.
const BASE64: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const BASE64_ENDS: [[u8; 2]; 2] = [*b"+/", *b"-_"];

/// Shortest secret that is looked for in hexadecimal digits: those of a shorter one stand in many a number.
const HEX_SECRET_BYTES_MIN: usize = 4;

/// Shortest secret that is looked for within a code: the digits of a shorter one stand in many.
const CODE_SECRET_BYTES_MIN: usize = 6;

/// What no text may ever show. Nothing shows it.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Each secret as it is, and as it stands in encoded bytes.
    forms: Vec<SecretString>,
    /// By the first byte of a text: which forms it may begin with. Empty where there is no form.
    by_first: Vec<Vec<usize>>,
}

impl Secrets {
    /// Keeps a text out of what [`Self::redacted`] gives, as it is or encoded, in letters of either case.
    pub fn hide(&mut self, secret: &SecretString) {
        let text = secret.expose_secret();
        let is_known = self.forms.iter().any(|known| known.expose_secret() == text);
        if text.is_empty() || is_known {
            return;
        }
        let encoded = in_base64(text.as_bytes()).into_iter().chain(in_hex(text.as_bytes()));
        for form in std::iter::once(secret.clone()).chain(encoded) {
            let place = self.forms.len();
            self.by_first.resize_with(1 << u8::BITS, Vec::new);
            for (byte, forms) in self.by_first.iter_mut().enumerate() {
                if u8::try_from(byte).is_ok_and(|byte| may_begin(byte, form.expose_secret())) {
                    forms.push(place);
                }
            }
            self.forms.push(form);
        }
    }

    /// A text free of secrets. What two of them have a part in is hidden as a whole.
    #[must_use]
    pub fn redacted(&self, text: &str) -> String {
        let mut kept = String::with_capacity(text.len());
        let mut hidden_to = 0;
        for found in self.found(text, 0) {
            if found.start >= hidden_to {
                kept.push_str(&text[hidden_to..found.start]);
                kept.push_str(HIDDEN);
            }
            hidden_to = hidden_to.max(found.end);
        }
        kept.push_str(&text[hidden_to..]);
        kept
    }

    /// Whether a text holds a secret: whoever cuts such a text may leave a part of one that nothing finds again.
    #[must_use]
    pub fn stand_in(&self, text: &str) -> bool {
        self.found(text, 0).next().is_some()
    }

    /// Whether a short word, as a code, is a secret or has a long one in it.
    #[must_use]
    pub fn stands_in(&self, code: &str) -> bool {
        let is_it = |form: &SecretString| spelled(code, form.expose_secret()) == Some(code.len());
        self.forms.iter().any(is_it) || self.found(code, CODE_SECRET_BYTES_MIN).next().is_some()
    }

    /// Where the text has forms of so many bytes or more, each place with its longest, in their order.
    fn found(&self, text: &str, bytes_min: usize) -> impl Iterator<Item = Range<usize>> {
        text.char_indices().filter_map(move |(start, _)| {
            let rest = &text[start..];
            let forms = self.by_first.get(usize::from(*rest.as_bytes().first()?))?;
            let forms = forms.iter().filter_map(|place| self.forms.get(*place));
            let long =
                forms.map(ExposeSecret::expose_secret).filter(|form| form.len() >= bytes_min);
            let found = long.filter_map(|form| spelled(rest, form));
            let longest = found.filter(|bytes| rest.is_char_boundary(*bytes)).max()?;
            Some(start..start + longest)
        })
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

/// A secret in hexadecimal digits; those of either case are found.
fn in_hex(secret: &[u8]) -> Option<SecretString> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut hex = Zeroizing::new(String::with_capacity(secret.len() * 2));
    for byte in secret {
        hex.push(char::from(DIGITS[usize::from(byte >> 4)]));
        hex.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    (secret.len() >= HEX_SECRET_BYTES_MIN).then(|| SecretString::from(hex.as_str()))
}

/// A secret in base64, as a part of whatever stands around it: with none, one or two bytes before it in its group
/// of three, as after the name of a user, and without the digits that the bytes around it have a part in.
fn in_base64(secret: &[u8]) -> Vec<SecretString> {
    if secret.len() < BASE64_SECRET_BYTES_MIN {
        return Vec::new();
    }
    let mut found: Vec<SecretString> = Vec::new();
    for (ends, before) in BASE64_ENDS.iter().flat_map(|ends| (0..3_usize).map(move |b| (ends, b))) {
        let bits = |place: usize| {
            // Bits of the secret, behind so many of other bytes.
            let at = place.checked_sub(before * 8)?;
            secret.get(at / 8).map(|byte| byte >> (7 - at % 8) & 1)
        };
        let digit = |place: usize| -> Option<char> {
            let value = (place * 6..place * 6 + 6)
                .try_fold(0_usize, |value, place| Some(value * 2 + usize::from(bits(place)?)))?;
            let digit = BASE64.get(value).or_else(|| ends.get(value - BASE64.len()))?;
            Some(char::from(*digit))
        };
        // It has room for all from the beginning: one that grows leaves parts behind.
        let mut form = Zeroizing::new(String::with_capacity(secret.len() * 2));
        form.extend(((before * 8).div_ceil(6)..(before + secret.len()) * 8 / 6).filter_map(digit));
        if !found.iter().any(|known| known.expose_secret() == form.as_str()) {
            found.push(SecretString::from(form.as_str()));
        }
    }
    found
}

/// Whether a text that [`spelled`] finds a secret at may begin with a byte.
fn may_begin(byte: u8, secret: &str) -> bool {
    // Each byte may be encoded, and those that nobody sees may be missing.
    let is_first =
        |letter: u8| letter.eq_ignore_ascii_case(&byte) || (letter == b' ' && byte == b'+');
    let visible = secret.bytes().position(|byte| !is_blank(byte)).unwrap_or(secret.len());
    matches!(byte, b'%' | b'\\') || secret.bytes().take(visible + 1).any(is_first)
}

const fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte.is_ascii_control()
}

/// How many bytes of the text's start are the secret: as it is, or any of its letters encoded as in an
/// address, a form, a JSON text or a program's, in letters of either case, with anything between them that
/// nobody sees.
fn spelled(text: &str, secret: &str) -> Option<usize> {
    if text.starts_with(secret) {
        return Some(secret.len());
    }
    let text = text.as_bytes();
    let mut at = 0;
    // A blank at its start would be found at each one of a long row of them.
    for letter in secret.trim_ascii_start().chars() {
        let may_miss = u8::try_from(letter).is_ok_and(is_blank);
        loop {
            let rest = text.get(at..).unwrap_or_default();
            if let Some(bytes) = spelled_letter(rest, letter) {
                at += bytes;
                break;
            }
            // A blank of the secret's may be missing.
            if may_miss {
                break;
            }
            at += unseen(rest).filter(|_| at > 0)?;
        }
    }
    (at > 0).then_some(at)
}

/// How many bytes of the text's start are a letter: its bytes, each as it is or encoded, or its units of UTF-16.
fn spelled_letter(text: &[u8], letter: char) -> Option<usize> {
    let parts =
        |at: usize, part: &dyn Fn(&[u8]) -> Option<usize>| Some(at + part(text.get(at..)?)?);
    let mut bytes = [0; 4];
    let mut bytes = letter.encode_utf8(&mut bytes).bytes();
    let as_bytes = bytes.try_fold(0, |at, byte| parts(at, &|rest| spelled_byte(rest, byte)));
    if as_bytes.is_some() || letter.is_ascii() {
        return as_bytes;
    }
    let unit_of = |rest: &[u8], unit: u32| {
        escaped(rest).filter(|(number, _)| *number == unit).map(|(_, bytes)| bytes)
    };
    let whole = unit_of(text, u32::from(letter));
    let mut units = [0; 2];
    let mut units = letter.encode_utf16(&mut units).iter();
    whole.or_else(|| {
        units.try_fold(0, |at, unit| parts(at, &|rest| unit_of(rest, u32::from(*unit))))
    })
}

/// The number behind a spelling of one byte, of one unit of UTF-16 or of one letter, and the bytes of the spelling.
fn escaped(text: &[u8]) -> Option<(u32, usize)> {
    let (digits, bytes) = match text {
        [b'%', digits @ ..] => (digits.get(..2)?, 3),
        [b'\\', b'x', digits @ ..] => (digits.get(..2)?, 4),
        [b'\\', b'u', b'{', digits @ ..] => {
            let end = digits.iter().take(7).position(|byte| *byte == b'}')?;
            (digits.get(..end)?, end + 4)
        }
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
    if let [b'\\', b'b' | b'f' | b'n' | b'r' | b't', ..] = text {
        return Some(2);
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
        let of_six = self::secrets(&["Pass01"]);
        for text in ["UGFzczAx", "dTpQYXNzMDE=", "dXU6UGFzczAxOg=="] {
            assert!(of_six.redacted(text).contains("***"), "{text}");
        }
    }

    #[test]
    fn a_secret_in_hexadecimal_digits_is_hidden() {
        let secrets = secrets(&["Key\u{fb}7", "abc", " \u{e9}1"]);
        for text in
            ["4b6579c3bb37", "4B6579C3BB37", "4b 65 79 C3 bb 37", r"\x4b\x65\x79\xc3\xbb\x37"]
        {
            assert_eq!(secrets.redacted(&format!("0x{text}!")), "0x***!", "{text}");
        }
        assert_eq!(secrets.redacted("4b6579c3bb3 616263"), "4b6579c3bb3 616263");
        assert_eq!(secrets.redacted("20c3a931"), "***");
    }

    #[test]
    fn what_two_secrets_have_a_part_in_is_hidden_whole() {
        let secrets = secrets(&["abcdef", "defghi", "bc"]);
        for text in ["abcdefghi", "ABC def\u{200b}ghi", "%61bcdefghi"] {
            assert_eq!(secrets.redacted(&format!("<{text}>")), "<***>", "{text}");
        }
        assert_eq!(secrets.redacted("xbcx defgh abcdefdefghi"), "x***x defgh ******");
    }

    #[test]
    fn letters_that_are_no_ascii_are_found_in_every_spelling() {
        let secrets = secrets(&["é鍵\u{1f511}x"]);
        for text in [
            "é鍵\u{1f511}x",
            r"\u00e9\u9375\ud83d\uDD11x",
            r"\u00E9鍵\ud83d\udd11\u0078",
            r"é\u{9375}\u{1f511}X",
            "%C3%A9%e9%8d%b5%F0%9F%94%91x",
            r"é\n鍵\u{200b}\u200b🔑\tx",
            "w6npjbXwn5SReA==",
        ] {
            let hidden = secrets.redacted(text);
            assert!(hidden.contains("***") && hidden.len() < 8, "{text}: {hidden}");
        }
        for other in [r"\u00e9\u9375", "é鍵", r"\u{", r"\u{}", r"\u{1234567}", r"\x4", r"\", "鍵"]
        {
            assert_eq!(secrets.redacted(other), other);
        }
    }

    #[test]
    fn a_text_that_holds_a_secret_is_known() {
        let secrets = secrets(&["canary-1", ""]);
        for (text, holds) in
            [("a canary-1", true), ("CANARY%2d1", true), ("canary-", false), ("", false)]
        {
            assert_eq!(secrets.stand_in(text), holds, "{text}");
        }
        assert!(!Secrets::default().stand_in("canary-1"));
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
