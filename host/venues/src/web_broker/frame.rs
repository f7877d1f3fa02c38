//! Frames of the stream of events: `key^Bvalue^Akey^Bvalue`, lists in a value with `^C` between.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::order_mapping::Field;

use crate::web_broker::encoding::from_cp932;
use crate::web_broker::limits::{FRAME_BYTES_MAX, FRAME_FIELDS_MAX};

const BETWEEN_ITEMS: u8 = 1;
const BEFORE_VALUE: u8 = 2;
/// Values in Japanese, as BASE64 of Shift-JIS: a name, a headline, the text of news.
const JAPANESE: [&str; 3] = ["p_IN", "p_HDL", "p_TX"];

/// Fields of a frame's delivery, not of its content: its number in the connection, the time of its sending, and
/// whether it was sent before.
const OF_DELIVERY: [&str; 3] = ["p_no", "p_date", RESENT];
/// `0` if it was sent before.
const RESENT: &str = "p_ALT";
/// Business day and number of an event, which identify it together.
const NUMBER: [&str; 2] = ["p_ED", "p_ENO"];

/// Why bytes are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Too long.
    #[error("a frame has more than {FRAME_BYTES_MAX} bytes")]
    TooLong,
    /// Too many fields.
    #[error("a frame has more than {FRAME_FIELDS_MAX} fields")]
    TooManyFields,
    /// A key or a value is not text.
    #[error("a frame holds bytes that are neither UTF-8 nor Shift-JIS")]
    NotText,
    /// An item lacks its key or its value.
    #[error("an item of a frame has no key or no value")]
    NoKey,
}

/// Reads a frame: fields in any order. Values may be empty, and a separator may end it. Names and news become
/// text; if they are not BASE64, they stay as they are.
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

/// The fields that identify a frame when it is sent again. They are its number if it has one, else all fields
/// except those of the delivery, sorted by name.
#[must_use]
pub fn identity(fields: &[Field]) -> Vec<&Field> {
    let named = |name: &str| fields.iter().find(|field| field.name == name);
    let number: Vec<&Field> = NUMBER.iter().filter_map(|name| named(name)).collect();
    if number.len() == NUMBER.len() && number.iter().all(|field| !field.value.is_empty()) {
        return number;
    }
    let is_content = |field: &&Field| !OF_DELIVERY.contains(&field.name.as_str());
    let mut content: Vec<&Field> = fields.iter().filter(is_content).collect();
    content.sort_by(|one, other| one.name.cmp(&other.name));
    content
}

/// Whether the broker says that it has sent a frame before.
#[must_use]
pub fn is_resent(fields: &[Field]) -> bool {
    fields.iter().any(|field| field.name == RESENT && field.value == "0")
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
