//! What Kumiki is measured against: the same work as a first attempt, or the least possible.

mod matrices;
mod plain_files;
mod rank_sql;

pub(crate) use matrices::Matrices;
pub(crate) use plain_files::{plain_copy, plain_split};
pub(crate) use rank_sql::NaiveSql;
