//! What the sandbox allows.

use std::path::PathBuf;
use std::time::Duration;

use domain::fault::FaultKind;
use domain::guest_limit::{LimitChange, LimitError};
use domain::{GuestLimit, limits};

/// Declares the limits: each field with the limit of [`GuestLimit`] whose default it has.
macro_rules! limits {
    ($($(#[$doc:meta])* $field:ident: $type:ty = $limit:ident;)+) => {
        /// Limits of one instance. Live trading and replay use the same. Names for users, units,
        /// defaults and reasons: [`GuestLimit`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Limits {
            $($(#[$doc])* pub $field: $type,)+
            /// Wall-clock time of one call; `None` in replay, where only fuel may end a call.
            pub watchdog: Option<Duration>,
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($field: GuestLimit::$limit.default_value() as $type,)+ watchdog: None }
            }
        }

        impl Limits {
            /// The value of a limit.
            #[must_use]
            pub const fn get(&self, limit: GuestLimit) -> u64 {
                match limit { $(GuestLimit::$limit => self.$field as u64),+ }
            }

            /// The same limits with another value of one; `None` where it is more than
            /// [`GuestLimit::most`] or too large for this machine.
            #[must_use]
            pub fn with(mut self, limit: GuestLimit, value: u64) -> Option<Self> {
                if value > limit.most() {
                    return None;
                }
                match limit {
                    $(GuestLimit::$limit => self.$field = <$type>::try_from(value).ok()?,)+
                }
                Some(self)
            }
        }
    };
}

limits! {
    /// All linear memories together, in bytes.
    memory_bytes: usize = Memory;
    /// Entries of each table.
    table_entries: usize = TableEntries;
    /// Core instances of the component.
    instances: usize = Instances;
    /// Milliseconds of compiling it.
    compile_ms: u64 = Compile;
    /// What compiling one of its functions may cost.
    function_cost: u64 = Function;
    /// What compiling all of them may cost.
    functions_cost: u64 = Functions;
    /// Fuel for each event that a call may handle; of a formula module for each day.
    fuel_per_event: u64 = Fuel;
    /// Fuel for setting up, init, start and stop.
    fuel_per_lifecycle_call: u64 = LifecycleFuel;
    /// Orders, commands, signals and narratives returned by one call.
    actions_per_call: usize = Actions;
    /// Bytes copied out of the guest's memory by one call.
    result_bytes: usize = Result;
    /// Orders, changes, cancels, signals, narratives and log lines of one event: of each row of the
    /// market that a call may handle, with what is answered at the same instant.
    records_per_event: usize = Records;
    /// Orders, changes and cancels in one run.
    commands: u64 = Commands;
    /// Orders in one run; at most [`limits::ORDERS_MAX`].
    orders: u32 = Orders;
    /// Bytes that all records of a run may leave in its folder on its first day.
    folder_bytes: u64 = Folder;
    /// So many more on each day after it.
    folder_bytes_per_day: u64 = FolderDay;
    /// Cost of rejected orders in one run.
    rejected_bytes: u64 = Rejected;
    /// Cost of log, signals and narratives in one run ([`domain::guest_limit::text_cost`]).
    output_bytes: usize = Output;
    /// The same for one event.
    output_bytes_per_event: usize = EventOutput;
    /// The part of `output_bytes` that lines of the log may take.
    log_bytes: usize = Log;
    /// Bytes of one log line, and of the reason with which init refuses.
    log_line_bytes: usize = LogLine;
    /// Warnings of commands that came to nothing which one run keeps; the others are counted.
    warnings: u64 = Warnings;
    /// Bytes of a client order id.
    client_order_id_bytes: usize = OrderId;
    /// Tags of one order.
    tags_per_order: usize = Tags;
    /// Bytes of one tag of an order, or of a signal's tag.
    tag_bytes: usize = Tag;
    /// Bytes of a signal's note.
    signal_note_bytes: usize = Note;
    /// Bytes of a narrative's title.
    narrative_title_bytes: usize = Title;
    /// Bytes of a narrative's body.
    narrative_body_bytes: usize = Body;
    /// Parameters that init reports.
    parameters: usize = Parameters;
    /// Bytes of one reported parameter, name and value together.
    parameter_bytes: usize = Parameter;
}

impl Limits {
    /// The limits of live trading: those of replay and a watchdog on the wall clock.
    #[must_use]
    pub fn live() -> Self {
        Self { watchdog: Some(Duration::from_millis(limits::WATCHDOG_MS)), ..Self::default() }
    }

    /// The limits of a formula module: an event is a day, and it is set up with the fuel of a day.
    #[must_use]
    pub fn formula() -> Self {
        Self {
            fuel_per_event: limits::FORMULA_FUEL_PER_DAY,
            fuel_per_lifecycle_call: limits::FORMULA_FUEL_PER_DAY,
            ..Self::default()
        }
    }

    /// The limits of a dialect: an event is a call, and what it says is short.
    #[must_use]
    pub fn dialect() -> Self {
        Self {
            memory_bytes: limits::DIALECT_MEMORY_BYTES,
            fuel_per_event: limits::DIALECT_FUEL_PER_CALL,
            fuel_per_lifecycle_call: limits::DIALECT_FUEL_PER_CALL,
            result_bytes: limits::DIALECT_RESULT_BYTES,
            ..Self::default()
        }
    }

    /// The limits of a gateway's dialect: an event is a message.
    #[must_use]
    pub fn gateway() -> Self {
        Self {
            memory_bytes: limits::GATEWAY_MEMORY_BYTES,
            fuel_per_event: limits::GATEWAY_FUEL_PER_CALL,
            fuel_per_lifecycle_call: limits::GATEWAY_FUEL_PER_CALL,
            result_bytes: limits::GATEWAY_RESULT_BYTES,
            ..Self::default()
        }
    }

    /// The same limits with the changes that a user wants.
    ///
    /// # Errors
    /// [`LimitError::TooMuch`] for a value that is too large for this machine or for the limit,
    /// [`LimitError::Twice`] for two values of one.
    pub fn changed(self, changes: &[LimitChange]) -> Result<Self, LimitError> {
        for (number, LimitChange { limit, .. }) in changes.iter().enumerate() {
            if changes[..number].iter().any(|earlier| earlier.limit == *limit) {
                return Err(LimitError::Twice(*limit));
            }
        }
        changes.iter().try_fold(self, |limits, &LimitChange { limit, value }| {
            limits.with(limit, value).ok_or(LimitError::TooMuch { limit, value })
        })
    }

    /// Whether so much is allowed. Both call paths ask before they copy anything.
    ///
    /// # Errors
    /// [`FaultKind::Budget`] when it is too much.
    #[inline]
    pub fn allow(&self, limit: GuestLimit, used: usize) -> Result<(), FaultKind> {
        let (used, allowed) = (used as u64, self.get(limit));
        if used > allowed {
            return Err(FaultKind::Budget { limit, used, allowed });
        }
        Ok(())
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
    /// Where compiled components are that came with the program; looked at after the cache, and never
    /// written to. What is there is loaded as code: it must be as hard to change as the program itself.
    pub shipped_folder: Option<PathBuf>,
    /// Stack of a strategy in bytes.
    pub stack_bytes: usize,
    /// Address space set aside for each memory; `None` is the engine's choice (4 GiB, the fastest).
    /// Lower it to the memory limit where address space is scarce.
    pub memory_reservation_bytes: Option<u64>,
    /// Largest component file in bytes.
    pub component_bytes: u64,
    /// How guests are called; `None` takes the direct path where it is proven that it may be taken.
    pub call_path: Option<CallPath>,
    /// Limits of compiling strategies; instances have limits of their own.
    pub strategy_limits: Limits,
    /// Limits of formula modules.
    pub formula_limits: Limits,
    /// Limits of dialects of brokers.
    pub dialect_limits: Limits,
    /// Limits of dialects of gateways.
    pub gateway_limits: Limits,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self {
            cache_folder: None,
            shipped_folder: None,
            stack_bytes: limits::GUEST_STACK_MAX,
            memory_reservation_bytes: None,
            component_bytes: limits::COMPONENT_BYTES_MAX,
            call_path: None,
            strategy_limits: Limits::default(),
            formula_limits: Limits::formula(),
            dialect_limits: Limits::dialect(),
            gateway_limits: Limits::gateway(),
        }
    }
}
