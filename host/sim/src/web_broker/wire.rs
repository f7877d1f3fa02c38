//! Bytes: HTTP heads, the broker's percent-encoding, Shift-JIS. Written from the vendor's documents and
//! shared with no client, because it judges them.

use encoding_rs::SHIFT_JIS;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::limits::{CONTROL_BODY_BYTES_MAX, HEAD_BYTES_MAX, HEADERS_MAX};

/// A request's line and headers.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) method: String,
    pub(crate) path: String,
    /// What stands after the first `?`, as it came.
    pub(crate) query: String,
    headers: Vec<(String, String)>,
}

impl Head {
    /// A header's value; its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether a header names a word, in any case.
    pub(crate) fn says(&self, name: &str, word: &str) -> bool {
        let words = self.header(name).unwrap_or_default().split(',');
        words.into_iter().any(|said| said.trim().eq_ignore_ascii_case(word))
    }
}

/// Why a request cannot be read.
#[derive(Debug)]
pub(crate) enum BadRequest {
    /// The connection ended, or broke.
    Gone,
    /// Told with this status.
    Status(u16, &'static str),
}

/// Reads the next request's head; what follows it stays in `buffer`.
pub(crate) async fn read_head(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> Result<Head, BadRequest> {
    loop {
        let end = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        if let Some(end) = end.filter(|end| *end <= HEAD_BYTES_MAX) {
            let head = String::from_utf8(buffer[..end].to_vec());
            buffer.drain(..end + 4);
            let head = head.map_err(|_| BadRequest::Status(400, "the head is no text"))?;
            return parse_head(&head);
        }
        if buffer.len() > HEAD_BYTES_MAX {
            return Err(BadRequest::Status(431, "the head is longer than HEAD_BYTES_MAX"));
        }
        fill(stream, buffer).await?;
    }
}

async fn fill(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> Result<(), BadRequest> {
    match stream.read_buf(buffer).await {
        Ok(0) | Err(_) => Err(BadRequest::Gone),
        Ok(_) => Ok(()),
    }
}

/// Reads the body that a head announces.
pub(crate) async fn read_body(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
    head: &Head,
) -> Result<Vec<u8>, BadRequest> {
    let length = match head.header("content-length").map(str::parse::<usize>) {
        None if head.header("transfer-encoding").is_some() => {
            return Err(BadRequest::Status(411, "a body needs a Content-Length"));
        }
        None => 0,
        Some(Ok(length)) if length <= CONTROL_BODY_BYTES_MAX => length,
        Some(Ok(_)) => return Err(BadRequest::Status(413, "longer than CONTROL_BODY_BYTES_MAX")),
        Some(Err(_)) => return Err(BadRequest::Status(400, "Content-Length is no number")),
    };
    while buffer.len() < length {
        fill(stream, buffer).await?;
    }
    Ok(buffer.drain(..length).collect())
}

fn parse_head(text: &str) -> Result<Head, BadRequest> {
    let bad = |why| BadRequest::Status(400, why);
    let mut lines = text.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(bad("the first line must be METHOD TARGET HTTP/1.1"));
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut headers = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or_else(|| bad("a header has no colon"))?;
        if headers.len() == HEADERS_MAX {
            return Err(BadRequest::Status(431, "more headers than HEADERS_MAX"));
        }
        headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok(Head { method: method.to_owned(), path: path.to_owned(), query: query.to_owned(), headers })
}

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
    Ok(text.ok_or("the bytes are no Shift-JIS")?.into_owned())
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
