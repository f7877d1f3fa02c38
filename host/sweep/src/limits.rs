//! The limits of what a sweep says of luck.

/// Runs whose daily returns are kept for the probability of backtest overfitting; of more runs a
/// seeded sample. Each keeps [`RETURN_BLOCKS`] pairs of numbers, so all of them half a megabyte.
pub const OVERFITTING_RUNS_MAX: usize = 2_000;
/// Blocks of neighbouring days that are put together to halves: 12,870 ways to choose one half.
pub const RETURN_BLOCKS: usize = 16;
/// Days under which the probability of backtest overfitting is not stated: two in each block.
pub const OVERFITTING_DAYS_MIN: usize = 2 * RETURN_BLOCKS;
