//! One line: the checksum of its JSON, a space, the JSON, and the end of the line.

use std::io;

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

/// Hexadecimal digits of a checksum.
const DIGITS: usize = 16;
/// Bytes before the JSON.
const HEAD: usize = DIGITS + 1;

/// Adds a record as a line to `out`. JSON has no line end inside.
///
/// # Errors
/// Where the record cannot be JSON; `out` is as it was then.
pub(super) fn push(out: &mut Vec<u8>, record: &impl Serialize) -> serde_json::Result<()> {
    let start = out.len();
    out.extend_from_slice(&[b' '; HEAD]);
    if let Err(error) = serde_json::to_writer(&mut *out, record) {
        out.truncate(start);
        return Err(error);
    }
    let digits = checksum(&out[start + HEAD..]);
    out[start..start + DIGITS].copy_from_slice(&digits);
    out.push(b'\n');
    Ok(())
}

/// The JSON of a line with its end; none where the line is incomplete or its checksum is another one.
pub(super) fn json(line: &[u8]) -> Option<&[u8]> {
    let (head, rest) = line.split_at_checked(HEAD)?;
    let json = rest.strip_suffix(b"\n")?;
    let is_sealed = head[DIGITS] == b' ' && head[..DIGITS] == checksum(json);
    is_sealed.then_some(json)
}

/// Reads the JSON of a line.
///
/// # Errors
/// Where it is not what a journal of this version has.
pub(super) fn parse<T: serde::de::DeserializeOwned>(json: &[u8]) -> io::Result<T> {
    serde_json::from_slice(json).map_err(io::Error::from)
}

fn checksum(json: &[u8]) -> [u8; DIGITS] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let sum = xxh3_64(json).to_be_bytes();
    std::array::from_fn(|index| {
        let byte = sum[index / 2];
        let digit = if index % 2 == 0 { byte >> 4 } else { byte & 15 };
        HEX[usize::from(digit)]
    })
}
