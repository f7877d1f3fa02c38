//! Evaluates a formula over the grid and takes the first rows of each day. This is the fast way;
//! the statement in [`crate::store`] is the same in SQL, and tests hold both against each other.

mod adjust;
mod day;
mod modules;
mod program;
mod top;

#[cfg(test)]
mod tests;

pub(crate) use day::{DayFault, DayRanker, Plan, Values};
pub(crate) use modules::ModuleFault;
pub(crate) use program::Program;
