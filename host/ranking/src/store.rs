//! What speaks to DuckDB about a snapshot: the statement of a query and the answer that the kernel is
//! held against. Snapshots themselves are made by [`pricestore::publish`].

mod adjust;
mod reference;
mod statement;

#[cfg(test)]
mod tests;

pub(crate) use reference::Reference;
pub(crate) use statement::Statement;
