//! Numbers rise.
