//! From what happens in the host to events of the wire.

pub(crate) mod orders;
