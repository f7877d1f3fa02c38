//! Every limit that the host sets by default, in one place, but those of guests, which users may
//! change ([`crate::guest_limit`]). Each has a test that hits it.

/// Instruments in one replay (specification 2, `MAX_REPLAY_INSTRUMENTS`).
pub const INSTRUMENTS_MAX: usize = 4;
/// Characters of a client order id (specification 2).
pub const CLIENT_ORDER_ID_MAX: usize = 36;
/// Characters of a rejection's text (specification 2).
pub const REASON_TEXT_MAX: usize = 512;
/// Cash that a replay may begin with, in yen: nine times as much is still exact in 1/10,000 yen.
pub const CASH_YEN_MAX: i64 = 100_000_000_000_000;
/// Shares in a trading unit: far above every exchange's, and a lot times a price stays exact.
pub const LOT_MAX: u64 = 1_000_000;
/// Orders that may work at the same time in one replay.
pub const WORKING_ORDERS_MAX: usize = 10_000;
/// Most orders of one replay that a user may ask for: client order ids stay unique over the whole
/// run, which costs 22 bytes of memory for each.
pub const ORDERS_MAX: u32 = 4_000_000;
/// Business days that a GTD order may live (specification 2, "GTD horizon").
pub const GTD_BUSINESS_DAYS_MAX: u32 = 10;
/// Rows of a table of commissions.
pub const COMMISSION_TIERS_MAX: usize = 16;
/// Events whose fuel one call into a strategy is given at most, however many events it handles.
pub const FUEL_EVENTS_MAX: usize = 16;
/// Rows of one window handed to a strategy.
pub const WINDOW_ROWS_MAX: u32 = 65_536;
/// Rows of the market that a run over a live market takes in one minute, because it keeps them until the
/// minute has passed: 17,000 a second.
pub const MINUTE_ROWS_MAX: usize = 1 << 20;
/// Names that the verification of a run tells of files in its folder that the run does not write.
pub const VERIFY_OTHERS_MAX: usize = 100;
/// Stack of a strategy in bytes.
pub const GUEST_STACK_MAX: usize = 1 << 20;
/// Functions, types, imports, exports and the like of all modules and components of a component. The
/// interpreters of Python and JavaScript have about 28,000 and 40,000.
pub const COMPONENT_ITEMS_MAX: u64 = 65_536;
/// Instances of modules and components that a component makes, those inside of others too.
pub const COMPONENT_INSTANCES_MAX: u64 = 1_024;
/// Bytes of a component file.
pub const COMPONENT_BYTES_MAX: u64 = 64 << 20;
/// Bytes of the JSON handed to a strategy's init.
pub const INIT_CONFIG_BYTES_MAX: usize = 1 << 20;
/// Wall-clock time of one call in live use, in milliseconds.
pub const WATCHDOG_MS: u64 = 1_000;
/// Bytes of a JSON file of a run's folder that is read again: somebody else may have written it.
pub const RUN_JSON_BYTES_MAX: u64 = 16 << 20;
/// Runs of one sweep; each keeps a few hundred bytes until the table is written.
pub const SWEEP_RUNS_MAX: u64 = 1_000_000;
/// Bytes of a file of points: a million points of sixteen numbers.
pub const SWEEP_POINTS_BYTES_MAX: u64 = 256 << 20;
/// Parts that are merged at once; they are read one after the other.
pub const SWEEP_PARTS_MAX: usize = 100_000;
/// Parameters that one sweep varies.
pub const SWEEP_AXES_MAX: usize = 16;
/// Runs of a sweep at the same time; each has its strategy's memory.
pub const SWEEP_JOBS_MAX: usize = 256;
/// Characters of a failed run's error that a sweep keeps.
pub const SWEEP_ERROR_TEXT_MAX: usize = 2_000;
/// Bytes of one line of a sweep's journal: an error text with every character escaped, and numbers.
pub const SWEEP_JOURNAL_LINE_MAX: usize = 64 << 10;
/// Fuel of a formula module for one day, whatever it reads; about 0.1 s of work.
pub const FORMULA_FUEL_PER_DAY: u64 = 100_000_000;
/// Fuel of a formula module for each value that it reads on a day, on top.
pub const FORMULA_FUEL_PER_VALUE: u64 = 1_000;
/// Parameters of a formula module.
pub const FORMULA_PARAMETERS_MAX: usize = 16;
/// Inputs that a formula module declares.
pub const FORMULA_INPUTS_MAX: usize = 64;
/// Lags of all inputs of a formula module together: with 20,000 issues they take 48 MB of its memory.
pub const FORMULA_COLUMNS_MAX: usize = 300;
/// The largest lag of a formula module, in business days (more than ten years).
pub const FORMULA_LAG_MAX: u32 = 2_600;
/// Bytes of a formula module's name.
pub const FORMULA_NAME_BYTES_MAX: usize = 64;
/// Bytes of a formula module's version, and of a parameter's name.
pub const FORMULA_WORD_BYTES_MAX: usize = 32;
/// Bytes of what a formula module says of itself or of a parameter.
pub const FORMULA_TEXT_BYTES_MAX: usize = 400;
/// Fuel of one call of a dialect, about 0.1 s of work; an order takes a thousandth of it.
pub const DIALECT_FUEL_PER_CALL: u64 = 100_000_000;
/// Bytes of a dialect's memory.
pub const DIALECT_MEMORY_BYTES: usize = 16 << 20;
/// Bytes copied out of a dialect's memory by one call.
pub const DIALECT_RESULT_BYTES: usize = 1 << 20;
/// Calls that one instance of a dialect answers before it is made anew, so that nothing can be kept.
pub const DIALECT_CALLS_PER_INSTANCE: u32 = 1_024;
/// Fields of a request that a dialect makes, and of a record in it.
pub const DIALECT_REQUEST_FIELDS_MAX: usize = 64;
/// Lists of a request that a dialect makes.
pub const DIALECT_REQUEST_LISTS_MAX: usize = 4;
/// Records of a list in such a request, margin positions for example, and what an order allocates.
pub const DIALECT_REQUEST_ROWS_MAX: usize = 256;
/// Hosts that a dialect is made for; a broker has a few.
pub const DIALECT_HOSTS_MAX: usize = 16;
/// Rows of the list of orders, or of fills, that a dialect reads in one call; longer lists are several calls.
pub const DIALECT_ROWS_PER_CALL: usize = 64;
/// Fields of an answer, a row or a frame that a dialect reads; the vendor's have about 40.
pub const DIALECT_FIELDS_MAX: usize = 256;
/// Bytes of one text that a dialect reads or writes.
pub const DIALECT_TEXT_BYTES_MAX: usize = 4 << 10;
/// Tags of one order that a dialect reads or tells.
pub const DIALECT_TAGS_MAX: usize = 64;
/// Bytes of a message or of an error's body that a gateway's dialect reads; the vendor's messages have 2,300.
pub const GATEWAY_MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Bytes of one text that a gateway's dialect answers.
pub const GATEWAY_TEXT_BYTES_MAX: usize = 512;
/// Bytes of an issue's code that a gateway's dialect answers.
pub const GATEWAY_SYMBOL_BYTES_MAX: usize = 16;
/// Bytes of a path that a gateway's dialect names.
pub const GATEWAY_PATH_BYTES_MAX: usize = 64;
/// The largest price, quantity or volume that a gateway's dialect answers, in 1/10,000: 10^12 yen or shares, so
/// that sums of them fit.
pub const GATEWAY_NUMBER_MAX: i64 = 10_000_000_000_000_000;
/// Fuel of one call of a gateway's dialect, about 50 ms of work; the worst message takes less than half of it.
pub const GATEWAY_FUEL_PER_CALL: u64 = 50_000_000;
/// Bytes of the memory of a gateway's dialect.
pub const GATEWAY_MEMORY_BYTES: usize = 4 << 20;
/// Bytes copied out of the memory of a gateway's dialect by one call.
pub const GATEWAY_RESULT_BYTES: usize = 64 << 10;
/// Calls that one instance of a gateway's dialect answers before it is made anew: about once a second at 50,000
/// messages a second, so that what it costs is not seen.
pub const GATEWAY_CALLS_PER_INSTANCE: u32 = 65_536;
