//! One line: a checksum, a space, JSON, and the end of the line.
//!
//! The checksum is that of the JSON, with the checksum of the line before as its seed. So a line that is taken out makes
//! the next one wrong. The first line of a file has the seed 0, and says in its JSON how the file before it ended.

use std::io;

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Hexadecimal digits of a checksum.
const DIGITS: usize = 16;
/// Bytes before the JSON.
const HEAD: usize = DIGITS + 1;

/// Adds a record as a line to `out`, after the line with the checksum `before`. JSON has no line end inside. Gives the
/// checksum of the new line.
///
/// # Errors
/// Where the record cannot be JSON; `out` is as it was then.
pub(super) fn push(
    out: &mut Vec<u8>,
    record: &impl Serialize,
    before: u64,
) -> serde_json::Result<u64> {
    let start = out.len();
    out.extend_from_slice(&[b' '; HEAD]);
    if let Err(error) = serde_json::to_writer(&mut *out, record) {
        out.truncate(start);
        return Err(error);
    }
    let sum = xxh3_64_with_seed(&out[start + HEAD..], before);
    out[start..start + DIGITS].copy_from_slice(&hexadecimal(sum));
    out.push(b'\n');
    Ok(sum)
}

/// The checksum and the JSON of a line with its end; none where the line is incomplete, or is not the one that followed
/// the line with the checksum `before`.
pub(super) fn json(line: &[u8], before: u64) -> Option<(u64, &[u8])> {
    let (head, rest) = line.split_at_checked(HEAD)?;
    let json = rest.strip_suffix(b"\n")?;
    let sum = xxh3_64_with_seed(json, before);
    let is_sealed = head[DIGITS] == b' ' && head[..DIGITS] == hexadecimal(sum);
    is_sealed.then_some((sum, json))
}

/// Reads the JSON of a line.
///
/// # Errors
/// Where it is not what a journal of this version has.
pub(super) fn parse<T: serde::de::DeserializeOwned>(json: &[u8]) -> io::Result<T> {
    serde_json::from_slice(json).map_err(io::Error::from)
}

fn hexadecimal(sum: u64) -> [u8; DIGITS] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let sum = sum.to_be_bytes();
    std::array::from_fn(|index| {
        let byte = sum[index / 2];
        let digit = if index % 2 == 0 { byte >> 4 } else { byte & 15 };
        HEX[usize::from(digit)]
    })
}
