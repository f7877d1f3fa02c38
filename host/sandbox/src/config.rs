//! What the sandbox allows.

use std::path::PathBuf;
use std::time::Duration;

use domain::limits;

/// Limits of one strategy instance. Live trading and replay use the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// All linear memories together, in bytes.
    pub memory_bytes: usize,
    /// Entries of each table.
    pub table_entries: usize,
    /// Core instances of the component.
    pub instances: usize,
    /// Fuel for each event that a call may handle.
    pub fuel_per_event: u64,
    /// Fuel for init, start and stop.
    pub fuel_per_lifecycle_call: u64,
    /// Orders, commands, signals and notes returned by one call.
    pub actions_per_call: usize,
    /// Bytes copied out of the strategy's memory by one call.
    pub result_bytes: usize,
    /// Bytes of log in one run.
    pub log_bytes: usize,
    /// Bytes of one log line.
    pub log_line_bytes: usize,
    /// Bytes of narrative records in one run.
    pub narrative_bytes: usize,
    /// Wall-clock time of one call; `None` in replay, where only fuel may end a call.
    pub watchdog: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: limits::GUEST_MEMORY_MAX,
            table_entries: limits::GUEST_TABLE_MAX,
            instances: limits::GUEST_INSTANCES_MAX,
            fuel_per_event: limits::FUEL_PER_EVENT,
            fuel_per_lifecycle_call: limits::FUEL_PER_LIFECYCLE_CALL,
            actions_per_call: limits::ACTIONS_PER_CALL_MAX,
            result_bytes: limits::CALL_RESULT_BYTES_MAX,
            log_bytes: limits::LOG_BYTES_MAX,
            log_line_bytes: limits::LOG_LINE_MAX,
            narrative_bytes: limits::NARRATIVE_BYTES_MAX,
            watchdog: None,
        }
    }
}

impl Limits {
    /// The limits of live trading: those of replay and a watchdog on the wall clock.
    #[must_use]
    pub fn live() -> Self {
        Self { watchdog: Some(Duration::from_millis(limits::WATCHDOG_MS)), ..Self::default() }
    }

    /// The limits of a formula module; each call has fuel of its own besides.
    #[must_use]
    pub fn formula() -> Self {
        Self { fuel_per_lifecycle_call: limits::FORMULA_FUEL_PER_DAY, ..Self::default() }
    }
}

/// A way of calling a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallPath {
    /// The host calls the program inside the component. Taken when it is proven from the component's
    /// bytes that this is the same.
    Direct,
    /// The engine calls the component, whatever it is made of.
    General,
}

impl CallPath {
    /// `direct` or `general`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::General => "general",
        }
    }
}

/// How the sandbox is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxConfig {
    /// Where compiled components are kept; `None` compiles afresh each time.
    pub cache_folder: Option<PathBuf>,
    /// Stack of a strategy in bytes.
    pub stack_bytes: usize,
    /// Address space set aside for each memory; `None` is the engine's choice (4 GiB, the fastest).
    /// Lower it to the memory limit where address space is scarce.
    pub memory_reservation_bytes: Option<u64>,
    /// Largest component file in bytes.
    pub component_bytes: u64,
    /// How guests are called; `None` takes the direct path where it is proven that it may be taken.
    pub call_path: Option<CallPath>,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self {
            cache_folder: None,
            stack_bytes: limits::GUEST_STACK_MAX,
            memory_reservation_bytes: None,
            component_bytes: limits::COMPONENT_BYTES_MAX,
            call_path: None,
        }
    }
}
