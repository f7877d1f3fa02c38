//! What a check of an order comes to.

use domain::{ReasonCode, Rejection};

/// Passed, or why not.
pub(crate) type Check = Result<(), Rejection>;

/// A check that was not passed; `text` begins with a tag or the name of a field.
pub(crate) fn reject(code: ReasonCode, text: impl AsRef<str>) -> Check {
    Err(Rejection::new(code, text))
}
