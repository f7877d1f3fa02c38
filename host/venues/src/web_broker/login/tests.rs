//! Answers to logins.
