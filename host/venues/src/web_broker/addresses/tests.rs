//! Which addresses are refused.
