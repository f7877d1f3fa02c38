//! Every limit of the ranking engine, in one place. What a client may ask for is part of the
//! contract and printed in the schema; the others bound memory, files and waiting.

/// Characters of a formula.
pub const FORMULA_CHARS_MAX: usize = 1_000;
/// Tokens of a formula: names, numbers, operators, parentheses and brackets.
pub const FORMULA_TOKENS_MAX: usize = 200;
/// How deep parentheses and signs may be nested in a formula.
pub const FORMULA_NESTING_MAX: usize = 64;
/// Different lags in one formula.
pub const FORMULA_LAGS_MAX: usize = 32;
/// The largest lag, in business days (more than ten years).
pub const LAG_MAX: u32 = 2_600;
/// Rows of each day that a client may ask for.
pub const LIMIT_MAX: u32 = 500;
/// Rows of each day when nothing is said (specification 3, default of `limit`).
pub const LIMIT_DEFAULT: u32 = 20;
/// Years between the first and the last day of a query.
pub const RANGE_YEARS_MAX: u32 = 30;
/// Business days of one issue's prices in one answer (more than ten years).
pub const PRICE_DAYS_MAX: usize = 2_600;
/// Codes that a query may name.
pub const CODES_MAX: usize = 20_000;

/// Memory of DuckDB while it makes the tables of the reference statement and runs it, as DuckDB writes it.
pub const REFERENCE_MEMORY: &str = "4GiB";

/// Worker threads of one engine.
pub const THREADS_MAX: usize = 64;
/// Queries that may run at the same time, whatever the options say.
pub const CONCURRENT_QUERIES_MAX: usize = 1_024;
/// Queries that may wait, whatever the options say.
pub const QUEUE_MAX: usize = 65_536;
/// Days that a worker evaluates before it looks for other queries, cancellation and time: below a
/// millisecond of work.
pub const SLICE_DAYS: usize = 32;
/// Instances of formula modules that a worker keeps, each with up to
/// [`domain::GuestLimit::Memory`] bytes.
pub const MODULE_INSTANCES_MAX: usize = 4;
/// Answers in the result cache.
pub const CACHE_ENTRIES_MAX: usize = 64;
/// Milliseconds between two polls for a new snapshot.
pub const SNAPSHOT_POLL_INTERVAL_MS: u64 = 250;
