//! Small answers of text.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

/// The media type of JSON.
pub(super) const JSON: &str = "application/json";
/// The media type of texts for people.
pub(super) const TEXT: &str = "text/plain";

/// An answer of plain text.
pub(super) fn plain(status: StatusCode, text: impl IntoResponse) -> Response {
    (status, [(CONTENT_TYPE, TEXT)], text).into_response()
}
