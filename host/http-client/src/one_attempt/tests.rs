//! One attempt is one request.
