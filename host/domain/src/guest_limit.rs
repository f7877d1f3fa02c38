//! The limits of a guest that a user may change (`--limit name=value`): name, default, unit and
//! reason of each, once. Faults name them, the sandbox holds their values.

use std::fmt;

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitUnit {
    /// Bytes.
    Bytes,
    /// Things.
    Count,
    /// Units of fuel: about one for each instruction of the guest.
    Fuel,
}

impl LimitUnit {
    /// The word for tables and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Count => "count",
            Self::Fuel => "fuel",
        }
    }
}

/// Declares the limits: for each its variant, name, unit, default, what a fault calls it, reason.
macro_rules! guest_limits {
    ($($limit:ident: $name:literal, $unit:ident, $default:expr, $what:literal, $reason:literal;)+) => {
        /// A limit of a guest that a user may change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum GuestLimit {
            $(#[doc = concat!("`", $name, "`: ", $reason)] $limit,)+
        }

        impl GuestLimit {
            /// All of them, in the order in which they are listed.
            pub const ALL: &[Self] = &[$(Self::$limit),+];

            /// The name in `--limit name=value`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$limit => $name),+ }
            }

            /// What it counts.
            #[must_use]
            pub const fn unit(self) -> LimitUnit {
                match self { $(Self::$limit => LimitUnit::$unit),+ }
            }

            /// The value unless the user says otherwise.
            #[must_use]
            pub const fn default_value(self) -> u64 {
                match self { $(Self::$limit => $default),+ }
            }

            /// What there was too much of, in a fault.
            #[must_use]
            pub const fn what(self) -> &'static str {
                match self { $(Self::$limit => $what),+ }
            }

            /// Why it is there, and why it has its default.
            #[must_use]
            pub const fn reason(self) -> &'static str {
                match self { $(Self::$limit => $reason),+ }
            }
        }
    };
}

guest_limits! {
    Fuel: "fuel", Fuel, 100_000_000, "units of fuel in one call",
        "work for each event that a call handles, about 0.1 s: an endless loop ends soon, at the \
         same point on every machine";
    LifecycleFuel: "lifecycle-fuel", Fuel, 2_000_000_000, "units of fuel in one call",
        "work of setting up, init, start and stop, about 2 s each: tables may be built there";
    Memory: "memory", Bytes, 64 << 20, "bytes of memory",
        "linear memory of one guest; a sweep has one for each job";
    TableEntries: "table", Count, 20_000, "table entries",
        "entries of a guest's tables; compiled functions need a few thousand";
    Instances: "instances", Count, 64, "core instances, memories or tables",
        "core modules, memories and tables of one component: its program and the adapters around it";
    Actions: "actions", Count, 256, "orders and other actions in one call",
        "orders, changes, cancels, signals and narratives of one call into the guest";
    Result: "result", Bytes, 16 << 20, "or more bytes in one call",
        "bytes copied out of the guest's memory in one call";
    Records: "records", Count, 4_096, "records at one event",
        "orders, changes, cancels, signals, narratives and log lines of one event with all that \
         is answered at the same instant: what an instant may leave in memory and in the folder";
    Commands: "commands", Count, 4_000_000, "orders, changes and cancels in one run",
        "one for each second of a year's sessions and half of them again; a change or a cancel \
         leaves about 0.6 kB in the run's folder";
    Orders: "orders", Count, 1_800_000, "orders in one run",
        "each costs the host 25 bytes for the whole run, so that its id stays unique, and about 1.2 kB of \
         the run's folder; one more order than 1.8 million would double the table of ids";
    Output: "output", Bytes, 4 << 20, "bytes of log, signals and narrative in one run",
        "texts that a guest writes, as JSON spells them, with 40 bytes for a line of the log, 96 for a \
         narrative and 128 for a signal: a run's folder has each three or four times, 20 MB in all";
    EventOutput: "event-output", Bytes, 1 << 20, "bytes of log, signals and narrative at one event",
        "the same at one event: what stays in memory until the host has written it";
    Log: "log", Bytes, 3 << 20, "bytes of log in one run",
        "the part of `output` that lines of the log may take, so that signals and narratives have \
         room";
    LogLine: "log-line", Bytes, 16 << 10, "bytes in one log line",
        "one line of the log, and the reason with which init refuses";
    Warnings: "warnings", Count, 1_000, "warnings in one run",
        "warnings of commands that came to nothing: so many are kept in the log, the others are \
         counted";
    OrderId: "order-id", Bytes, 256, "bytes in one client order id",
        "an id of more than 36 characters is rejected, and kept with the rejection up to this length";
    Tags: "tags", Count, 32, "tags of one order",
        "the venue knows fewer than ten, but `tategyoku` may be repeated";
    Tag: "tag", Bytes, 256, "bytes in one tag",
        "one tag of an order, or the tag of a signal";
    Note: "note", Bytes, 4 << 10, "bytes in one signal's note",
        "a remark beside the price; longer texts are narratives";
    Title: "title", Bytes, 1 << 10, "bytes in one narrative's title",
        "a few words";
    Body: "body", Bytes, 64 << 10, "bytes in one narrative's body",
        "the reasons of one decision, as text or JSON";
}

impl GuestLimit {
    /// The limit with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|limit| limit.name() == name)
    }

    /// A value as `--limit` takes it: `64MiB`, `256`.
    #[must_use]
    pub fn show(self, value: u64) -> String {
        const SUFFIXES: [(&str, u32); 3] = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
        let whole = |shift: u32| value > 0 && value.is_multiple_of(1 << shift);
        match SUFFIXES.into_iter().find(|(_, shift)| whole(*shift)) {
            Some((suffix, shift)) if self.unit() == LimitUnit::Bytes => {
                format!("{}{suffix}", value >> shift)
            }
            _ => value.to_string(),
        }
    }

    /// What a user can do who wants more than `allowed`.
    #[must_use]
    pub fn advice(self, allowed: u64) -> String {
        format!("`--limit {}={}` allows more", self, self.show(allowed.saturating_mul(2)))
    }
}

impl fmt::Display for GuestLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Bytes that a line of the log costs besides its text; a third of what it takes in its three files.
pub const LOG_LINE_COST: usize = 40;
/// Bytes that a narrative costs besides its texts; a third of what it takes in its three files.
pub const NARRATIVE_COST: usize = 96;
/// Bytes that a signal costs besides its texts; a quarter of what it takes in its four files.
pub const SIGNAL_COST: usize = 128;

/// What a text costs: the bytes that it has in JSON without its quotation marks, which is the
/// longest of the forms in which a run's folder has it.
#[must_use]
pub fn text_cost(text: &str) -> usize {
    let more = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        0..=0x1f => 5,
        _ => 0,
    };
    text.len() + text.bytes().map(more).sum::<usize>()
}
