//! Formula modules: in the sandbox, in the registry, in rankings, over GraphQL and on
//! the command line.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;
mod modules;
mod program;
mod rankings;
mod service;
