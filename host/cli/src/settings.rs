//! Values of settings: what each kind takes. An error says what is taken; none where that is what the
//! setting's kind says.

use toml::Value;

/// A value that was taken.
pub(crate) type Taken<T> = Result<T, Option<String>>;

/// A text.
pub(crate) fn text(value: &Value) -> Taken<&str> {
    value.as_str().ok_or(None)
}

/// A text or a path that names something: an empty one would be a folder itself, or a file without a name.
pub(crate) fn name(value: &Value) -> Taken<&str> {
    let found = text(value)?;
    let takes =
        || Some("a name or a path that is not empty; leave it out for the default".to_owned());
    if found.trim().is_empty() { Err(takes()) } else { Ok(found) }
}

/// A number within limits that both count.
pub(crate) fn number(value: &Value, (least, most): (i64, i64)) -> Taken<u64> {
    let found = value.as_integer().filter(|number| (least..=most).contains(number));
    let found = found.and_then(|number| u64::try_from(number).ok());
    found.ok_or_else(|| Some(format!("a whole number from {least} to {most}")))
}

/// True or false.
pub(crate) fn boolean(value: &Value) -> Taken<bool> {
    value.as_bool().ok_or_else(|| Some("true or false".to_owned()))
}
