//! A snapshot of the combined database: how it is made, and what can go wrong.

mod dense;
mod error;
mod folder;
mod lock;
mod publish;
mod source;
mod splits;
#[cfg(test)]
mod tests;

pub use error::PublishError;
pub use lock::PublicationLock;
pub use publish::{Published, publish, remove_leftovers};
pub use source::make_tables;
