//! What speaks to DuckDB about rankings: the statement of a query and the answer that the kernel is held
//! against. The tables that it reads are made by [`pricestore::make_tables`].

mod adjust;
mod reference;
mod statement;

#[cfg(test)]
mod tests;

pub(crate) use reference::{ReferenceAnswer, answer};
pub(crate) use statement::Statement;
