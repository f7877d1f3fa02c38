//! Masters.
