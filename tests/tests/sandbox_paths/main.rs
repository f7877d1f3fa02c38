//! How components of all shapes are made and called: each test on every way there is.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod agreement;
mod birth;
mod common;
mod mutations;
mod parameters;
mod shapes;
