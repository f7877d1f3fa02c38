//! Requests as bytes.
