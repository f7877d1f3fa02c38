//! The one place that turns what the host knows in its own words into messages of the wire.

pub(crate) mod local_broker;
pub(crate) mod market;
pub(crate) mod orders;
