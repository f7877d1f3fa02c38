//! Frames of the stream of events: `key^Bvalue^Akey^Bvalue`, lists in a value with `^C` between.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::order_mapping::Field;

use crate::web_broker::encoding::from_cp932;
use crate::web_broker::limits::{FRAME_BYTES_MAX, FRAME_FIELDS_MAX};

const BETWEEN_ITEMS: u8 = 1;
const BEFORE_VALUE: u8 = 2;
/// Values that are Japanese, as BASE64 of Shift-JIS: a name, a headline, the text of news.
const JAPANESE: [&str; 3] = ["p_IN", "p_HDL", "p_TX"];

/// Why bytes are no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Too long.
    #[error("a frame has more than {FRAME_BYTES_MAX} bytes")]
    TooLong,
    /// Too many fields.
    #[error("a frame has more than {FRAME_FIELDS_MAX} fields")]
    TooManyFields,
    /// A key or a value is no text.
    #[error("a frame holds what is neither UTF-8 nor Shift-JIS")]
    NotText,
    /// An item is no key with a value.
    #[error("an item of a frame has no key or no value")]
    NoKey,
}

/// Reads a frame: fields in their order, whatever that is; values may be empty, and a separator may
/// end it. Names and news come as text; where their BASE64 is none, as they are.
///
/// # Errors
/// [`FrameError`].
pub fn parse(frame: &[u8]) -> Result<Vec<Field>, FrameError> {
    if frame.len() > FRAME_BYTES_MAX {
        return Err(FrameError::TooLong);
    }
    let mut fields = Vec::new();
    // None of the separators can be the second byte of a character of Shift-JIS.
    for item in frame.split(|byte| *byte == BETWEEN_ITEMS) {
        let item = item.trim_ascii();
        if item.is_empty() {
            continue;
        }
        if fields.len() >= FRAME_FIELDS_MAX {
            return Err(FrameError::TooManyFields);
        }
        let at = item.iter().position(|byte| *byte == BEFORE_VALUE).filter(|at| *at > 0);
        let (key, value) = item.split_at(at.ok_or(FrameError::NoKey)?);
        let (key, value) = (text(key)?, text(&value[1..])?);
        let value = match JAPANESE.contains(&key.as_str()) {
            true => japanese(&value).unwrap_or(value),
            false => value,
        };
        fields.push(Field { name: key, value });
    }
    Ok(fields)
}

fn text(bytes: &[u8]) -> Result<String, FrameError> {
    match str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => from_cp932(bytes).ok_or(FrameError::NotText),
    }
}

fn japanese(value: &str) -> Option<String> {
    from_cp932(&STANDARD.decode(value).ok()?)
}

#[cfg(test)]
mod tests;
