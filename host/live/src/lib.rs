//! Runs a strategy on the live market, and keeps a journal that reproduces what it decided.
//!
//! `feed` brings the market to the strategy's thread, `paper` runs it over the simulated exchange, `journal`
//! records all that it was given and asked for, `compare` puts a run beside the simulated exchange, and `notify`
//! starts a program on what a person has to know.

pub mod compare;
pub mod feed;
pub mod journal;
pub mod notify;
pub mod paper;
pub mod real;
