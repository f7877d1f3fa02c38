//! Texts that are free of secrets, however a server spells them.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};
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

/// How often a page's reference to a letter may be encoded again, and its digits.
const ENTITY_TIMES_MAX: usize = 3;
const ENTITY_DIGITS_MAX: usize = 10;
/// The names of letters in pages that may stand in a secret.
const ENTITIES: [(&str, char); 41] = [
    ("amp;", '&'),
    ("AMP;", '&'),
    ("apos;", '\''),
    ("ast;", '*'),
    ("midast;", '*'),
    ("bsol;", '\\'),
    ("colon;", ':'),
    ("comma;", ','),
    ("commat;", '@'),
    ("dollar;", '$'),
    ("equals;", '='),
    ("excl;", '!'),
    ("grave;", '`'),
    ("DiacriticalGrave;", '`'),
    ("gt;", '>'),
    ("GT;", '>'),
    ("Hat;", '^'),
    ("lbrace;", '{'),
    ("lcub;", '{'),
    ("lbrack;", '['),
    ("lsqb;", '['),
    ("lowbar;", '_'),
    ("UnderBar;", '_'),
    ("lpar;", '('),
    ("lt;", '<'),
    ("LT;", '<'),
    ("num;", '#'),
    ("percnt;", '%'),
    ("period;", '.'),
    ("plus;", '+'),
    ("quest;", '?'),
    ("quot;", '"'),
    ("QUOT;", '"'),
    ("rbrace;", '}'),
    ("rcub;", '}'),
    ("rbrack;", ']'),
    ("rsqb;", ']'),
    ("rpar;", ')'),
    ("semi;", ';'),
    ("sol;", '/'),
    ("verbar;", '|'),
];

/// Shortest secret that is looked for within a code: the digits of a shorter one stand in many.
const CODE_SECRET_BYTES_MIN: usize = 6;

/// Shortest part of a secret that is hidden: servers cut what they repeat. Parts of fewer letters are words of
/// every text.
const PART_BYTES: usize = 12;

/// What no text may ever show. Nothing shows it.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Each secret as it is, and as it stands in encoded bytes.
    forms: Vec<SecretString>,
    /// By the first byte that a text means, in small letters: which forms it may begin with. Empty where there is
    /// no form.
    by_first: Vec<Vec<usize>>,
    /// Numbers of all parts of [`PART_BYTES`] letters; the parts themselves stand in the forms alone.
    parts: BTreeSet<u64>,
    numbers: RandomState,
}

impl Secrets {
    /// Keeps a text out of what [`Self::redacted`] gives, as it is or encoded, in letters of either case.
    pub fn hide(&mut self, secret: &SecretString) {
        let text = secret.expose_secret();
        let is_known = self.forms.iter().any(|known| known.expose_secret() == text);
        if text.is_empty() || is_known {
            return;
        }
        for word in words(text) {
            for part in word.as_bytes().windows(PART_BYTES) {
                let number = self.part_number(part);
                self.parts.extend(number);
            }
        }
        let encoded = in_base64(text.as_bytes()).into_iter().chain(in_hex(text.as_bytes()));
        for form in std::iter::once(secret.clone()).chain(encoded) {
            let place = self.forms.len();
            self.by_first.resize_with(1 << u8::BITS, Vec::new);
            for byte in first_bytes(form.expose_secret()) {
                let forms = &mut self.by_first[usize::from(byte)];
                if forms.last() != Some(&place) {
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
        let mut all: Vec<Range<usize>> = self.found(text, 0).chain(self.parts_in(text)).collect();
        all.sort_unstable_by_key(|found| found.start);
        for found in all {
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
        self.found(text, 0).next().is_some() || self.parts_in(text).next().is_some()
    }

    /// Whether a short word, as a code, is a secret or has a long one in it.
    #[must_use]
    pub fn stands_in(&self, code: &str) -> bool {
        let is_it = |form: &SecretString| spelled(code, form.expose_secret()) == Some(code.len());
        self.forms.iter().any(is_it)
            || self.found(code, CODE_SECRET_BYTES_MIN).next().is_some()
            || self.parts_in(code).next().is_some()
    }

    /// Where the text has parts of secrets, in their order.
    fn parts_in(&self, text: &str) -> impl Iterator<Item = Range<usize>> {
        let text = if self.parts.is_empty() { &[] } else { text.as_bytes() };
        let is_part =
            |part: &[u8]| self.part_number(part).is_some_and(|number| self.parts.contains(&number));
        let found = text.windows(PART_BYTES).enumerate().filter(move |(_, part)| is_part(part));
        found.map(|(start, _)| start..start + PART_BYTES)
    }

    /// The number of a part, in letters of either case; none where it is not all of ASCII.
    fn part_number(&self, part: &[u8]) -> Option<u64> {
        let part: [u8; PART_BYTES] = part.try_into().ok()?;
        part.is_ascii().then(|| self.numbers.hash_one(part.map(|byte| byte.to_ascii_lowercase())))
    }

    /// Where the text has forms of so many bytes or more, each place with its longest, in their order.
    fn found(&self, text: &str, bytes_min: usize) -> impl Iterator<Item = Range<usize>> {
        text.char_indices().filter_map(move |(start, _)| {
            let rest = &text[start..];
            let forms = meant(rest.as_bytes()).into_iter().flatten();
            let forms = forms.filter_map(|byte| self.by_first.get(usize::from(byte))).flatten();
            let forms = forms.filter_map(|place| self.forms.get(*place));
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

/// What of a secret is hidden in parts: all of it, and of an address each word of its path, because its server's
/// name is no secret.
fn words(secret: &str) -> impl Iterator<Item = &str> {
    let path = secret.split_once("://").map(|(_, rest)| rest.split(['/', '?', '&']).skip(1));
    let whole = path.is_none().then_some(secret);
    path.into_iter().flatten().chain(whole)
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

/// The bytes with which a secret may begin, in small letters: those that nobody sees may be missing.
fn first_bytes(secret: &str) -> impl Iterator<Item = u8> {
    let blanks = secret.bytes().take_while(|byte| is_blank(*byte)).count();
    secret.bytes().take(blanks + 1).map(|byte| byte.to_ascii_lowercase())
}

/// The bytes that the start of a text may mean, in small letters: as it is, and decoded.
fn meant(text: &[u8]) -> [Option<u8>; 3] {
    let decoded = match text {
        [b'+', ..] => Some(b' '),
        [b'\\', sign @ (b'"' | b'\\' | b'/'), ..] => Some(*sign),
        _ => None,
    };
    let number = escaped(text).map(|(number, _)| number);
    let byte = number.and_then(|number| u8::try_from(number).ok()).or(decoded);
    // The first byte of a letter in UTF-8, from its number or its first unit of UTF-16.
    let letter = number.filter(|number| *number > 0x7f).map(|number| match number {
        0xd800..0xdc00 => 0x1_0000 + ((number - 0xd800) << 10),
        other => other,
    });
    let letter = letter.and_then(char::from_u32).map(|letter| {
        let mut bytes = [0; 4];
        letter.encode_utf8(&mut bytes).as_bytes()[0]
    });
    [text.first().copied(), byte, letter].map(|byte| byte.map(|byte| byte.to_ascii_lowercase()))
}

const fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte.is_ascii_control()
}

/// How many bytes of the text's start are the secret: as it is, or any of its letters encoded as in an
/// address, a form, a page, a JSON text or a program's, in letters of either case, with anything between them that
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
        [b'&', ..] => return entity(text),
        _ => return None,
    };
    let digits = str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
    Some((u32::from_str_radix(digits, 16).ok()?, bytes))
}

/// A reference of a page (HTML) to a letter, by its number or its name, which may be encoded again.
fn entity(text: &[u8]) -> Option<(u32, usize)> {
    let mut rest = text.strip_prefix(b"&")?;
    for _ in 0..ENTITY_TIMES_MAX {
        let inner = rest.strip_prefix(b"amp;").filter(|inner| reference(inner).is_some());
        rest = inner.unwrap_or(rest);
    }
    let (number, bytes) = reference(rest)?;
    Some((number, text.len() - rest.len() + bytes))
}

/// What stands behind the `&` of a reference, and its bytes. The semicolon of a number may be missing.
fn reference(text: &[u8]) -> Option<(u32, usize)> {
    if let Some(number) = text.strip_prefix(b"#") {
        let (radix, digits) = match number {
            [b'x' | b'X', digits @ ..] => (16, digits),
            digits => (10, digits),
        };
        let start = text.len() - digits.len();
        let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
        let count = digits.iter().take(ENTITY_DIGITS_MAX).take_while(is_digit).count();
        let number = u32::from_str_radix(str::from_utf8(&digits[..count]).ok()?, radix).ok()?;
        let end = usize::from(digits.get(count) == Some(&b';'));
        return Some((number, start + count + end));
    }
    let (name, letter) = ENTITIES.iter().find(|(name, _)| text.starts_with(name.as_bytes()))?;
    Some((u32::from(*letter), name.len()))
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
mod tests;
