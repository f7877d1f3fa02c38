//! Tests of the crate from outside: whole files through the public interface.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod audit;
mod bars;
mod cache;
mod common;
mod convert;
mod defects;
mod limits;
mod real_data;
mod sample;
mod spellings;
