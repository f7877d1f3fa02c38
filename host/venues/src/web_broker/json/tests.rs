//! What is read and what is refused.
