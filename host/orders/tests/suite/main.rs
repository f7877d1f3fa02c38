//! The order desk from outside: commands in, events and requests out, a broker made of a few lines.

mod broker;
mod dialect;
mod flows;
mod interleavings;
mod reconciliation;
mod world;
