//! The broker's encoding: text as CP932 bytes, and these bytes as `%XX`.
//!
//! Specification 4, P5; facts about the vendor, 2.8.

use encoding_rs::SHIFT_JIS;

/// Upper-case digits, as the broker's own samples write them.
const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// A text as CP932 bytes.
///
/// # Errors
/// The first character that CP932 does not have. No character is replaced.
pub fn to_cp932(text: &str) -> Result<Vec<u8>, char> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut buffer = [0; 4];
    for letter in text.chars() {
        if letter.is_ascii() {
            bytes.extend(letter.encode_utf8(&mut buffer).bytes());
            continue;
        }
        let (encoded, _, failed) = SHIFT_JIS.encode(letter.encode_utf8(&mut buffer));
        // Some characters would silently become others, as the yen sign a backslash.
        if failed || from_cp932(&encoded).is_none_or(|back| !back.chars().eq([letter])) {
            return Err(letter);
        }
        bytes.extend_from_slice(&encoded);
    }
    Ok(bytes)
}

/// CP932 bytes as text; `None` if they are not CP932.
#[must_use]
pub fn from_cp932(bytes: &[u8]) -> Option<String> {
    let text = SHIFT_JIS.decode_without_bom_handling_and_without_replacement(bytes)?;
    Some(text.into_owned())
}

/// Whether a byte begins a two-byte character.
#[must_use]
pub const fn leads(byte: u8) -> bool {
    matches!(byte, 0x81..=0x9f | 0xe0..=0xfc)
}

/// CP932 bytes in the broker's percent-encoding. ASCII letters, digits and `-._\` stay. Every byte of any other
/// character is encoded, also the second byte of 表, which equals a backslash.
#[must_use]
pub fn percent_encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    let spell = |byte: u8, text: &mut String| {
        let [high, low] = [byte >> 4, byte & 15].map(|digit| HEX[usize::from(digit)]);
        text.extend(['%', char::from(high), char::from(low)]);
    };
    let mut rest = bytes.iter().copied();
    while let Some(byte) = rest.next() {
        if leads(byte) {
            spell(byte, &mut text);
            if let Some(second) = rest.next() {
                spell(second, &mut text);
            }
        } else if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'\\') {
            text.push(char::from(byte));
        } else {
            spell(byte, &mut text);
        }
    }
    text
}

/// Replaces `%XX` by its byte if two hexadecimal digits follow; every other `%` stays (specification 4, P5).
#[must_use]
pub fn percent_decode(bytes: &[u8]) -> Vec<u8> {
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let spelled = (byte == b'%').then(|| Some(digit(at + 1)? * 16 + digit(at + 2)?)).flatten();
        match spelled.and_then(|value| u8::try_from(value).ok()) {
            Some(value) => {
                decoded.push(value);
                at += 3;
            }
            None => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    decoded
}

/// A text of an answer with its `%XX` replaced; unchanged if the result is not CP932.
#[must_use]
pub fn percent_decoded_text(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let decoded = to_cp932(text).ok().and_then(|bytes| from_cp932(&percent_decode(&bytes)));
    decoded.unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests;
