//! Bytes: the broker's percent-encoding, Shift-JIS. Written from the vendor's documents and shared with no
//! client, because it judges them.

use encoding_rs::SHIFT_JIS;

/// Decodes a query: percent-encoding once, then Shift-JIS.
///
/// # Errors
/// What is wrong, without the text itself.
pub(crate) fn decode_query(query: &str) -> Result<String, &'static str> {
    let bytes = query.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'%' {
            let digit = |at: usize| bytes.get(at).and_then(|byte| (*byte as char).to_digit(16));
            let (Some(high), Some(low)) = (digit(at + 1), digit(at + 2)) else {
                return Err("a % is not followed by two hexadecimal digits");
            };
            plain.push((high * 16 + low) as u8);
            at += 3;
        } else {
            plain.push(bytes[at]);
            at += 1;
        }
    }
    let text = SHIFT_JIS.decode_without_bom_handling_and_without_replacement(&plain);
    Ok(text.ok_or("the bytes are not Shift-JIS")?.into_owned())
}

/// ASCII bytes that the broker's function leaves as they are.
fn stays(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'\\')
}

/// ASCII characters of a query that the broker's function would have encoded, each once.
pub(crate) fn left_plain(query: &str) -> String {
    let mut found: Vec<char> =
        query.bytes().filter(|byte| *byte != b'%' && !stays(*byte)).map(char::from).collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().collect()
}

/// Encodes text as Shift-JIS; what it does not have becomes `?`, as at the broker.
pub(crate) fn shift_jis(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut of_char = [0; 4];
    for character in text.chars() {
        match SHIFT_JIS.encode(character.encode_utf8(&mut of_char)) {
            (encoded, _, false) => bytes.extend_from_slice(&encoded),
            (_, _, true) => bytes.push(b'?'),
        }
    }
    bytes
}

/// Encodes text as Shift-JIS and that by the broker's percent-encoding: both bytes of a character of
/// two are always encoded, whatever the second one is.
pub(crate) fn percent_encoded(text: &str) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(text.len() * 2);
    let mut of_char = [0; 4];
    for character in text.chars() {
        let bytes = shift_jis(character.encode_utf8(&mut of_char));
        let alone = bytes.len() == 1;
        for byte in bytes {
            if alone && stays(byte) {
                encoded.push(byte);
            } else {
                encoded.extend_from_slice(format!("%{byte:02X}").as_bytes());
            }
        }
    }
    encoded
}

/// BASE64 with padding, of the names in notices.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            if digit > chunk.len() {
                text.push('=');
            } else {
                text.push(char::from(DIGITS[(bits >> (18 - 6 * digit) & 63) as usize]));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded_exactly_once() {
        assert_eq!(decode_query("%7B%22a%22%3A%22%95%5C%22%7D").unwrap(), "{\"a\":\"表\"}");
        assert_eq!(decode_query("{\"a\":\"%2541\"}").unwrap(), "{\"a\":\"%41\"}");
        assert_eq!(decode_query("%83%7D").unwrap(), "マ");
        for wrong in ["%", "%4", "%zz", "%+1", "%ff"] {
            assert!(decode_query(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn both_bytes_of_a_character_are_encoded() {
        assert_eq!(percent_encoded("表ソa-\\b"), b"%95%5C%83%5Ca-\\b");
        assert_eq!(percent_encoded("{\"a\":1}"), b"%7B%22a%22%3A1%7D");
        assert_eq!(left_plain("{\"a\":\"%22-\\"), "\":{");
        assert_eq!(shift_jis("表€"), [0x95, 0x5c, b'?']);
    }

    #[test]
    fn base64_as_everywhere() {
        assert_eq!(base64(b""), "");
        assert_eq!(base64(b"M"), "TQ==");
        assert_eq!(base64(b"Ma"), "TWE=");
        assert_eq!(base64(b"Man"), "TWFu");
        // The name in the vendor's layout of a notice.
        assert_eq!(base64(&shift_jis("トヨタ自動車")), "g2eDiINejqmTro7U");
    }
}
