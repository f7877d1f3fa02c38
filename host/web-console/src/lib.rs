//! The engine's page in the browser: who may open it, and its files over HTTP.
//!
//! | module | what it does |
//! |---|---|
//! | `random` | bytes that nobody guesses |
//! | `sessions` | one-time codes, sessions with keys, one-time addresses of reports |
//! | `http` | the server on 127.0.0.1: which requests it answers, and what a browser may do with the answers |
//! | `files` | the page's files, in the program |
//!
//! The page is a client of the engine like any other. This crate gives it a key of its own and never sees the engine's
//! token, an order or a market.

mod files;
mod http;
mod random;
mod sessions;

pub use http::{Console, Place};
pub use random::random_hex;
pub use sessions::{CODE_TIME, SESSIONS_MAX, Scope, SessionKey, Sessions};
