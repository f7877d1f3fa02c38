//! The limits of a guest that a user may change (`--guest-limit name=value`): name, default, unit and
//! reason of each, once. Faults name them, the sandbox holds their values.

use std::fmt;
use std::str::FromStr;

use crate::limits::ORDERS_MAX;

/// Suffixes of sizes with their powers of two.
const SUFFIXES: [(&str, u32); 3] = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
/// The least memory of a guest: one page of WebAssembly.
const MEMORY_LEAST: u64 = 64 << 10;

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitUnit {
    /// Bytes.
    Bytes,
    /// Things.
    Count,
    /// Units of fuel: about one for each instruction of the guest.
    Fuel,
    /// Milliseconds on the wall clock.
    Milliseconds,
}

impl LimitUnit {
    /// The word for tables and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Count => "count",
            Self::Fuel => "fuel",
            Self::Milliseconds => "milliseconds",
        }
    }
}

/// Declares the limits: for each its variant, name, unit, default, highest value, what a fault calls
/// it, reason.
macro_rules! guest_limits {
    ($($limit:ident: $name:literal, $unit:ident, $default:expr, $most:expr, $what:literal,
       $reason:literal;)+) => {
        /// A limit of a guest that a user may change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum GuestLimit {
            $(#[doc = concat!("`", $name, "`: ", $reason)] $limit,)+
        }

        impl GuestLimit {
            /// All of them, in the order in which they are listed.
            pub const ALL: &[Self] = &[$(Self::$limit),+];

            /// The name in `--guest-limit name=value`.
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

            /// The highest value that a user may ask for, or a manifest may have: what a machine
            /// survives.
            #[must_use]
            pub const fn most(self) -> u64 {
                match self { $(Self::$limit => $most),+ }
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
    Fuel: "fuel", Fuel, 100_000_000, 1_000_000_000_000, "units of fuel in one call",
        "work for each event that a call handles, about 0.1 s, at most that of 16 events. An \
         endless loop ends soon, at the same point on every machine. Calls of the host that do \
         nothing take up to thirty times as long";
    LifecycleFuel: "lifecycle-fuel", Fuel, 2_000_000_000, 1_000_000_000_000, "units of fuel in one call",
        "work of setting up, init, start and stop, about 2 s each: a strategy may build tables \
         there. A formula module has 100000000";
    Memory: "memory", Bytes, 64 << 20, 1 << 30, "bytes of memory",
        "linear memory of one guest; a sweep has one for each job";
    TableEntries: "table", Count, 20_000, 200_000, "table entries",
        "entries of a guest's tables; compiled functions need a few thousand";
    Instances: "instances", Count, 64, 256, "core instances, memories or tables",
        "core modules, memories and tables of one component: its program and the adapters around it";
    Actions: "actions", Count, 256, 65_536, "orders and other actions in one call",
        "orders, changes, cancels, signals and narratives of one call into the guest";
    Result: "result", Bytes, 16 << 20, 256 << 20, "or more bytes in one call",
        "bytes copied out of the guest's memory in one call";
    Records: "records", Count, 4_096, 1_000_000, "records at one event",
        "orders, changes, cancels, signals, narratives and log lines of one event, with all \
         answers at the same instant. It limits what an instant leaves in memory and in the folder";
    Commands: "commands", Count, 4_000_000, 1_000_000_000, "orders, changes and cancels in one run",
        "one for each second of a year's sessions, and half as many again";
    Orders: "orders", Count, 1_800_000, ORDERS_MAX as u64, "orders in one run",
        "each costs the host 22 bytes for the whole run, so that its id stays unique. More than \
         1.8 million orders would double the table of ids";
    Folder: "folder", Bytes, 16 << 20, 16 << 30, "bytes of records in the run's folder",
        "what orders, changes, fills, signals, narratives and log lines leave in the run's folder \
         together. An order with its fill takes 2.9 kB, so about 5,800 fit on the first day";
    FolderDay: "folder-day", Bytes, 6 << 20, 1 << 30, "bytes of records in the run's folder",
        "so much more for each day after the first, about 2,100 orders with their fills. What a \
         day does not need, later days may use";
    Rejected: "rejected", Bytes, 16 << 20, 4 << 30, "bytes of rejected orders in one run",
        "1,200 for each rejected order and four times its id, tags and reason: about what it \
         leaves in the run's folder. So about 10,000 orders: a strategy that sends more is wrong";
    Output: "output", Bytes, 4 << 20, 1 << 30, "bytes of log, signals and narrative in one run",
        "texts that a guest writes, as JSON, with 40 bytes for a log line, 96 for a narrative and \
         128 for a signal. A run's folder has each three or four times, 20 MB in all";
    EventOutput: "event-output", Bytes, 1 << 20, 64 << 20, "bytes of log, signals and narrative at one event",
        "the same at one event: what stays in memory until the host has written it";
    Log: "log", Bytes, 3 << 20, 256 << 20, "bytes of log in one run",
        "the part of `output` that lines of the log may take, so that signals and narratives have \
         room";
    LogLine: "log-line", Bytes, 16 << 10, 1 << 20, "bytes in one log line",
        "one line of the log, and the reason with which init refuses";
    Warnings: "warnings", Count, 1_000, 1_000_000, "warnings in one run",
        "warnings of commands that had no effect: the log keeps so many and counts the others";
    OrderId: "order-id", Bytes, 256, 4 << 10, "bytes in one client order id",
        "an id of more than 36 characters is rejected, and kept with the rejection up to this length";
    Tags: "tags", Count, 32, 64, "tags of one order",
        "the venue knows fewer than ten, but `tategyoku` may be repeated";
    Tag: "tag", Bytes, 256, 512, "bytes in one tag",
        "one tag of an order, or the tag of a signal";
    Note: "note", Bytes, 4 << 10, 64 << 10, "bytes in one signal's note",
        "a remark beside the price; longer texts are narratives";
    Title: "title", Bytes, 1 << 10, 64 << 10, "bytes in one narrative's title",
        "a few words";
    Body: "body", Bytes, 64 << 10, 1 << 20, "bytes in one narrative's body",
        "the reasons of one decision, as text or JSON";
    Parameters: "parameters", Count, 256, 512, "reported parameters",
        "parameters that init reports as in effect; the manifest has each of them";
    Parameter: "parameter", Bytes, 4 << 10, 8 << 10, "bytes in one reported parameter",
        "name and value of one parameter together, as the page spells them. 256 of them take at \
         most 2 MiB in the manifest, and as much in the page";
    Compile: "compile", Milliseconds, 300_000, 3_600_000, "milliseconds of compiling",
        "wall time of compiling a guest before it runs for the first time. The interpreters of \
         Python and JavaScript take half a minute, everything else less than a second";
    Function: "function", Count, 1_000_000, 100_000_000, "units of compiling in one function",
        "four for an instruction, up to 250 more for some, 40 for each way out of a br_table. Ten \
         where a calculation with a constant goes on with another. Values that are merged where \
         control flow meets count too, those of loops eight times. A unit is about 500 bytes of \
         memory while the function is compiled. The constants of all globals and elements count \
         like one function. The largest functions of the interpreters of Python and JavaScript \
         have about 700,000";
    Functions: "functions", Count, 40_000_000, 1_000_000_000, "units of compiling in all functions",
        "the same of all functions together. A million takes 3 s, up to 15 s where functions are \
         made to be slow to compile. The interpreters of Python and JavaScript have 18 and 27 \
         million";
}

impl GuestLimit {
    /// The limit with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|limit| limit.name() == name)
    }

    /// A value as `--guest-limit` takes it: `64MiB`, `256`.
    #[must_use]
    pub fn show(self, value: u64) -> String {
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
        let most = self.most();
        if allowed >= most {
            return format!("`--guest-limit {self}` takes no more than {}", self.show(most));
        }
        let more = allowed.saturating_mul(2).min(most);
        format!("`--guest-limit {}={}` allows more", self, self.show(more))
    }
}

impl fmt::Display for GuestLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Another value for a limit: `name=value`, sizes also with KiB, MiB or GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitChange {
    /// The limit.
    pub limit: GuestLimit,
    /// Its new value, from 1.
    pub value: u64,
}

/// Why a text changes no limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// No `=`.
    #[error("`{0}` is not a limit with its value; write one like memory=128MiB")]
    NoValue(String),
    /// A name that is none.
    #[error("there is no limit `{name}`; there are: {}", names())]
    NoName {
        /// What was given.
        name: String,
    },
    /// A value that is none.
    #[error(
        "`{text}` is no value for the limit {limit}; write a whole number from 1{}",
        if limit.unit() == LimitUnit::Bytes { ", for bytes also like 512KiB, 64MiB or 1GiB" } else { "" }
    )]
    Value {
        /// The limit.
        limit: GuestLimit,
        /// What was given.
        text: String,
    },
    /// Less memory than any guest has.
    #[error(
        "memory={} is {} bytes, and a guest needs at least 64KiB; {}", .0, .0, mebibytes(*.0)
    )]
    MemoryTooSmall(u64),
    /// Two values for one limit.
    #[error("the limit {0} is given twice; give it once")]
    Twice(GuestLimit),
    /// More than there can be.
    #[error(
        "{} is too much for the limit {limit}; give at most {}",
        limit.show(*value), limit.show(limit.most())
    )]
    TooMuch {
        /// The limit.
        limit: GuestLimit,
        /// What was given.
        value: u64,
    },
}

/// What to write for so much memory, where MiB are meant.
fn mebibytes(value: u64) -> String {
    match value << 20 <= GuestLimit::Memory.most() {
        true => format!("did you mean memory={value}MiB?"),
        false => "write it like memory=64MiB".to_owned(),
    }
}

/// The names of all limits, for messages.
fn names() -> String {
    GuestLimit::ALL.iter().map(|limit| limit.name()).collect::<Vec<_>>().join(", ")
}

impl FromStr for LimitChange {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, value) =
            text.split_once('=').ok_or_else(|| LimitError::NoValue(text.to_owned()))?;
        let limit = GuestLimit::of_name(name)
            .ok_or_else(|| LimitError::NoName { name: name.to_owned() })?;
        let suffixes = SUFFIXES.iter().filter(|_| limit.unit() == LimitUnit::Bytes);
        let mut suffixes =
            suffixes.filter_map(|(suffix, shift)| Some((value.strip_suffix(suffix)?, *shift)));
        let (digits, shift) = suffixes.next().unwrap_or((value, 0));
        let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
        match number.filter(|number| *number > 0) {
            Some(value) if limit == GuestLimit::Memory && value < MEMORY_LEAST => {
                Err(LimitError::MemoryTooSmall(value))
            }
            Some(value) => Ok(Self { limit, value }),
            None => Err(LimitError::Value { limit, text: value.to_owned() }),
        }
    }
}

/// Files of a run that have a line of the log or a narrative: three forms of a table.
pub const TABLE_FORMS: usize = 3;
/// Files that have a signal: three forms of its table, and the log of events.
pub const SIGNAL_FORMS: usize = 4;
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
    text.bytes().map(|byte| usize::from(BYTE_COSTS[usize::from(byte)])).sum()
}

/// What a text costs in a run's page, which has it as JSON: there `<`, `>` and `&` have six bytes.
#[must_use]
pub fn text_page_cost(text: &str) -> usize {
    let further = text.bytes().filter(|byte| matches!(byte, b'<' | b'>' | b'&')).count();
    text_cost(text) + 5 * further
}

/// What each byte of a text costs.
const BYTE_COSTS: [u8; 256] = {
    let mut costs = [1; 256];
    let mut byte = 0;
    while byte < costs.len() {
        costs[byte] = match byte as u8 {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
            0..=0x1f => 6,
            _ => 1,
        };
        byte += 1;
    }
    costs
};

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str) -> Result<(GuestLimit, u64), String> {
        let change: Result<LimitChange, _> = text.parse();
        change.map(|change| (change.limit, change.value)).map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_numbers_or_sizes() {
        assert_eq!(changed("memory=128MiB"), Ok((GuestLimit::Memory, 128 << 20)));
        assert_eq!(changed("log=7"), Ok((GuestLimit::Log, 7)));
        assert_eq!(changed("output=1GiB"), Ok((GuestLimit::Output, 1 << 30)));
        assert_eq!(changed("fuel=5"), Ok((GuestLimit::Fuel, 5)));
        for text in ["memory=0", "memory=", "memory=1MB", "memory=99999999999GiB", "log=-1"] {
            assert!(changed(text).unwrap_err().contains("is no value for the limit"), "{text}");
        }
        assert_eq!(
            changed("memory=128").unwrap_err(),
            "memory=128 is 128 bytes, and a guest needs at least 64KiB; did you mean memory=128MiB?"
        );
        let fuel = changed("fuel=1KiB").unwrap_err();
        assert_eq!(fuel, "`1KiB` is no value for the limit fuel; write a whole number from 1");
    }

    #[test]
    fn a_wrong_name_is_told_the_right_ones() {
        let error = changed("ram=1").unwrap_err();
        assert!(
            error.starts_with("there is no limit `ram`; there are: fuel, lifecycle-fuel, memory")
        );
        assert!(changed("memory").unwrap_err().contains("write one like memory=128MiB"));
        for limit in GuestLimit::ALL {
            assert!(error.contains(limit.name()), "{limit}");
            for value in [limit.default_value(), limit.most()] {
                let shown = format!("{limit}={}", limit.show(value));
                assert_eq!(changed(&shown), Ok((*limit, value)));
            }
            assert!(limit.default_value() <= limit.most(), "{limit}");
        }
    }

    #[test]
    fn advice_names_no_more_than_there_may_be() {
        let memory = GuestLimit::Memory;
        assert_eq!(memory.advice(64 << 20), "`--guest-limit memory=128MiB` allows more");
        assert_eq!(memory.advice(900 << 20), "`--guest-limit memory=1GiB` allows more");
        assert_eq!(memory.advice(1 << 30), "`--guest-limit memory` takes no more than 1GiB");
    }

    #[test]
    fn a_text_costs_what_it_has_in_json() {
        for text in ["", "plain", "\u{3042}", "a\"b\\c", "\n\t\r\u{8}\u{c}", "\u{0}\u{1f}\u{7f}"] {
            let json = serde_json::to_string(text).unwrap();
            assert_eq!(text_cost(text), json.len() - 2, "{json}");
        }
    }
}
