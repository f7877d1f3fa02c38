//! Failures of a strategy: what went wrong, in which component, at which event, and how it got there.

use std::fmt;

use thiserror::Error;

use crate::guest_limit::GuestLimit;
use crate::text::{of_guest, on_one_line};
use crate::time::TsNanos;

/// What went wrong inside a strategy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FaultKind {
    /// It panicked; the text is its own.
    #[error("panicked: {}", of_guest(.0))]
    Panic(String),
    /// It did something that WebAssembly forbids.
    #[error("trapped: {0}")]
    Trap(String),
    /// It used up its fuel: an endless loop, or more work than the budget allows.
    #[error("used up its fuel of {budget} units in one call; look for an endless loop")]
    Fuel {
        /// Fuel that the call was given.
        budget: u64,
        /// Fuel that a call is given for each event.
        per_event: u64,
    },
    /// It asked for more memory than allowed.
    #[error("asked for {asked} bytes of memory; {allowed} are allowed")]
    Memory {
        /// Bytes it would have had.
        asked: usize,
        /// Bytes allowed.
        allowed: usize,
    },
    /// It called itself too deeply.
    #[error("used up its stack of {allowed} bytes; look for endless recursion")]
    Stack {
        /// Bytes allowed.
        allowed: usize,
    },
    /// It took too long to compile.
    #[error("was not compiled within {allowed_ms} ms")]
    CompileTime {
        /// Milliseconds allowed.
        allowed_ms: u64,
    },
    /// One of its functions costs a compiler too much.
    #[error(
        "has a function (number {function}) that costs at least {used} units to compile; {allowed} are \
         allowed"
    )]
    CompileCost {
        /// The function's index in its module.
        function: u32,
        /// What was counted of it until it was too much.
        used: u64,
        /// Units allowed.
        allowed: u64,
    },
    /// Its constants cost a compiler too much.
    #[error(
        "has constants in globals and elements that cost at least {used} units to compile; {allowed} are \
         allowed"
    )]
    CompileConstants {
        /// What was counted of them until it was too much.
        used: u64,
        /// Units allowed.
        allowed: u64,
    },
    /// Its functions together cost a compiler too much.
    #[error(
        "has functions that cost at least {used} units to compile together; {allowed} are allowed"
    )]
    CompileCosts {
        /// What was counted of them until it was too much.
        used: u64,
        /// Units allowed.
        allowed: u64,
    },
    /// It took too long in live use.
    #[error("did not answer within {allowed_ms} ms")]
    Watchdog {
        /// Milliseconds allowed.
        allowed_ms: u64,
    },
    /// What it leaves in the run's folder is too much; some of it, or all, are rejected orders.
    #[error(
        "produced {used} {}, {rejected} of them rejected orders; {allowed} are allowed",
        GuestLimit::Folder.what()
    )]
    Folder {
        /// Bytes there would be in all.
        used: u64,
        /// Those of rejected orders.
        rejected: u64,
        /// Bytes allowed.
        allowed: u64,
    },
    /// It reached a limit that the user may change.
    #[error("produced {used} {}; {allowed} are allowed", limit.what())]
    Budget {
        /// The limit.
        limit: GuestLimit,
        /// How much there was.
        used: u64,
        /// How much is allowed.
        allowed: u64,
    },
    /// It produced more than the contract allows.
    #[error("produced {used} {what}; {allowed} are allowed")]
    Limit {
        /// What there was too much of.
        what: &'static str,
        /// How much there was.
        used: u64,
        /// How much is allowed.
        allowed: u64,
    },
    /// It broke the contract.
    #[error("broke the contract: {}", of_guest(.0))]
    Protocol(String),
    /// Live events waited too long for it (specification 4, P116).
    #[error("TOO_SLOW: {0}")]
    TooSlow(String),
    /// What it did cannot be kept, so it does no more (specification 4, P112).
    #[error("JOURNAL: {0}")]
    Journal(String),
    /// The host has halted its trading with real orders: `POSITION_FILE: ...`, `POSITION_MISMATCH: ...` or
    /// `ORDER_CAME_BACK: ...` (specification 4, P107, P121, P128).
    #[error("{0}")]
    Halt(String),
    /// Its init refused the configuration; the text is its own.
    #[error("refused its configuration: {}", of_guest(.0))]
    Refused(String),
}

impl FaultKind {
    /// What a user can do who wants more than the limit that was reached in this export; none where
    /// no limit was reached that may be changed.
    #[must_use]
    pub fn advice(&self, export: &str) -> Option<String> {
        match self {
            Self::Folder { allowed, .. } => Some(GuestLimit::Folder.advice(*allowed)),
            Self::Budget { limit, allowed, .. } => Some(limit.advice(*allowed)),
            Self::CompileTime { allowed_ms } => Some(GuestLimit::Compile.advice(*allowed_ms)),
            Self::CompileCost { allowed, .. } | Self::CompileConstants { allowed, .. } => {
                Some(GuestLimit::Function.advice(*allowed))
            }
            Self::CompileCosts { allowed, .. } => Some(GuestLimit::Functions.advice(*allowed)),
            Self::Memory { allowed, .. } => Some(GuestLimit::Memory.advice(*allowed as u64)),
            Self::Fuel { budget, per_event } => Some(match export {
                "advance" | "on-order-events" | "on-account-events" | "describe" | "configure"
                | "evaluate" => GuestLimit::Fuel.advice(*per_event),
                _ => GuestLimit::LifecycleFuel.advice(*budget),
            }),
            _ => None,
        }
    }
}

/// A strategy failed: what, where, when, and how it got there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Name of the component.
    pub component: String,
    /// Its identity, in hexadecimal.
    pub sha256: String,
    /// The call that failed.
    pub export: &'static str,
    /// The event that the strategy was handling, once there was one.
    pub ts_event: Option<TsNanos>,
    /// What went wrong.
    pub kind: FaultKind,
    /// The strategy's own frames, innermost first.
    pub backtrace: Vec<String>,
}

impl std::error::Error for Fault {}

impl Fault {
    /// Whether another text of a fault tells of the same: strategy, call, event and kind. Where the engine or the
    /// host explains it in words of its own, how far a limit was passed when that was seen, and how it got there,
    /// is left out.
    #[must_use]
    pub fn is_told_by(&self, text: &str) -> bool {
        let Some(rest) = text.strip_prefix(&self.place()).map(str::trim_start) else {
            return false;
        };
        let passes = |what: &str, allowed: &u64| {
            let told = rest
                .strip_prefix("produced ")
                .map(|told| told.trim_start_matches(char::is_numeric));
            told.is_some_and(|told| told.starts_with(&format!(" {what}; {allowed} are allowed")))
        };
        match &self.kind {
            FaultKind::Protocol(_) => rest.starts_with("broke the contract:"),
            FaultKind::Trap(_) => rest.starts_with("trapped:"),
            FaultKind::Fuel { .. } => rest.starts_with("used up its fuel"),
            FaultKind::Budget { limit, allowed, .. } => passes(limit.what(), allowed),
            FaultKind::Limit { what, allowed, .. } => passes(what, allowed),
            kind => rest.starts_with(&kind.to_string()),
        }
    }

    /// Which strategy failed, and where.
    fn place(&self) -> String {
        let mut text = String::new();
        // Writing into a text does not fail.
        let _ = self.write_place(&mut text);
        text
    }

    fn write_place(&self, f: &mut dyn fmt::Write) -> fmt::Result {
        let short_hash = self.sha256.get(..12).unwrap_or(&self.sha256);
        write!(f, "strategy `{}` ({short_hash})", on_one_line(&self.component))?;
        if !matches!(self.kind, FaultKind::Refused(_)) {
            write!(f, ", in `{}`", self.export)?;
            if let Some(timestamp) = self.ts_event {
                write!(f, " at {timestamp}")?;
            }
            write!(f, ",")?;
        }
        Ok(())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_place(f)?;
        write!(f, " {}", self.kind)?;
        if let Some(advice) = self.kind.advice(self.export) {
            write!(f, "; {advice}")?;
        }
        for frame in &self.backtrace {
            write!(f, "\n    at {}", on_one_line(frame))?;
        }
        Ok(())
    }
}

/// Name and content of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its file's name without the ending.
    pub component: String,
    /// SHA-256 of its file, in hexadecimal.
    pub sha256: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(kind: FaultKind) -> Fault {
        Fault {
            component: "mine".to_owned(),
            sha256: "26d558135750ffff".to_owned(),
            export: "advance",
            ts_event: Some(TsNanos::default()),
            kind,
            backtrace: vec!["deep".to_owned()],
        }
    }

    #[test]
    fn the_same_fault_is_told_in_other_words() {
        let result = |used, allowed| {
            let limit = GuestLimit::Result;
            fault(FaultKind::Budget { limit, used, allowed })
        };
        let cases = [
            (result(9, 5), result(6, 5), true),
            (result(9, 5), result(9, 6), false),
            (result(9, 5), fault(FaultKind::Limit { what: "actions", used: 9, allowed: 5 }), false),
            (fault(FaultKind::Trap("one".into())), fault(FaultKind::Trap("two".into())), true),
            (fault(FaultKind::Trap("one".into())), fault(FaultKind::Protocol("one".into())), false),
            (fault(FaultKind::Stack { allowed: 1 }), fault(FaultKind::Stack { allowed: 2 }), false),
        ];
        for (one, other, same) in cases {
            assert!(one.is_told_by(&one.to_string()));
            assert_eq!(one.is_told_by(&other.to_string()), same, "{one} / {other}");
            let elsewhere = Fault { export: "stop", ..one.clone() };
            assert!(!elsewhere.is_told_by(&one.to_string()), "{one}");
        }
    }
}
