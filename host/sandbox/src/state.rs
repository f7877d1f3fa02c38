//! What the host keeps for one instance: limits, log, and the answers to its questions.

use std::sync::Arc;

use domain::TsNanos;
use domain::account::{PortfolioView, Position};
use domain::fault::FaultKind;
use domain::strategy::{Action, LogLevel, LogLine};
use wasmtime::{Error, Memory, ResourceLimiter, Result, TypedFunc};

use crate::config::Limits;

/// What a strategy has copied out too much of.
pub(crate) const BYTES_IN_ONE_CALL: &str = "or more bytes in one call";

/// The parts of a program that moving values on the direct path needs.
pub(crate) struct Guest {
    pub(crate) memory: Memory,
    /// `cabi_realloc(old, old_size, alignment, size) -> new`, the strategy's own allocator.
    pub(crate) realloc: TypedFunc<(u32, u32, u32, u32), u32>,
}

/// What the host keeps for one instance.
pub(crate) struct State {
    pub(crate) limits: Limits,
    pub(crate) portfolio: PortfolioView,
    /// What the strategy asked for in the present call.
    pub(crate) actions: Vec<Action>,
    pub(crate) log: Vec<LogLine>,
    log_bytes: usize,
    narrative_bytes: usize,
    /// The message of a panic, with the event it was handling.
    pub(crate) panic_message: Option<(Option<TsNanos>, String)>,
    /// A breach noticed inside a call, more precise than the trap that follows.
    pub(crate) breach: Option<FaultKind>,
    /// The program's memory and allocator on the direct path, once it is instantiated.
    pub(crate) guest: Option<Arc<Guest>>,
    /// Whether the strategy may call an import now: not from inside its allocator.
    pub(crate) may_leave: bool,
    /// Bytes that the present call may still copy out.
    pub(crate) bytes_left: usize,
    /// Bytes of all its memories together.
    memory_bytes: usize,
    /// Where records are laid out before they are copied in; kept, because every event needs it.
    pub(crate) buffer: Vec<u8>,
}

impl State {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            portfolio: PortfolioView::default(),
            actions: Vec::new(),
            log: Vec::new(),
            log_bytes: 0,
            narrative_bytes: 0,
            panic_message: None,
            breach: None,
            guest: None,
            may_leave: true,
            bytes_left: limits.result_bytes,
            memory_bytes: 0,
            buffer: Vec::new(),
        }
    }

    /// Ends the call with a fault of this kind.
    pub(crate) fn breach<T>(&mut self, kind: FaultKind) -> Result<T> {
        let error = Error::msg(kind.to_string());
        self.breach = Some(kind);
        Err(error)
    }

    /// Takes bytes that were copied out in this call.
    pub(crate) fn spend(&mut self, bytes: usize) -> Result<()> {
        match self.bytes_left.checked_sub(bytes) {
            Some(left) => {
                self.bytes_left = left;
                Ok(())
            }
            None => {
                let allowed = self.limits.result_bytes as u64;
                self.breach(FaultKind::Limit {
                    what: BYTES_IN_ONE_CALL,
                    used: allowed + 1,
                    allowed,
                })
            }
        }
    }

    /// Takes what the strategy wants done.
    pub(crate) fn act(&mut self, mut actions: Vec<Action>) -> Result<()> {
        let (used, allowed) = (self.actions.len() + actions.len(), self.limits.actions_per_call);
        if used > allowed {
            return self.breach(FaultKind::Limit {
                what: "orders and other actions in one call",
                used: used as u64,
                allowed: allowed as u64,
            });
        }
        for action in &actions {
            if let Action::Narrative(record) = action {
                self.narrative_bytes += record.title.len() + record.body.len();
            }
        }
        self.actions.append(&mut actions);
        if self.narrative_bytes > self.limits.narrative_bytes {
            return self.breach(FaultKind::Limit {
                what: "bytes of narrative",
                used: self.narrative_bytes as u64,
                allowed: self.limits.narrative_bytes as u64,
            });
        }
        Ok(())
    }

    /// Takes a line of the log.
    pub(crate) fn write(&mut self, level: LogLevel, ts_event: u64, message: String) -> Result<()> {
        let timestamp = (ts_event != 0).then(|| TsNanos::from_nanos(ts_event));
        if message.len() > self.limits.log_line_bytes && level != LogLevel::Panic {
            return self.breach(FaultKind::Limit {
                what: "bytes in one log line",
                used: message.len() as u64,
                allowed: self.limits.log_line_bytes as u64,
            });
        }
        if level == LogLevel::Panic {
            // A panic's text is cut off, not refused: it is the reason of the fault.
            let text = message.chars().take(self.limits.log_line_bytes).collect();
            self.panic_message = Some((timestamp, text));
            return Ok(());
        }
        self.log_bytes += message.len();
        if self.log_bytes > self.limits.log_bytes {
            return self.breach(FaultKind::Limit {
                what: "bytes of log",
                used: self.log_bytes as u64,
                allowed: self.limits.log_bytes as u64,
            });
        }
        self.log.push(LogLine { ts_event: timestamp, level, message });
        Ok(())
    }

    /// What is held of an instrument.
    pub(crate) fn position_of(&mut self, instrument: u32) -> Result<Position> {
        match self.portfolio.positions.get(instrument as usize) {
            Some(position) => Ok(*position),
            None => {
                let count = self.portfolio.positions.len();
                self.breach(FaultKind::Protocol(format!(
                    "it asked for the position of instrument {instrument}; there are {count}"
                )))
            }
        }
    }
}

impl ResourceLimiter for State {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            // It comes to nothing: the memory itself says how large it may be.
            return Ok(true);
        }
        let allowed = self.limits.memory_bytes;
        let growth = desired.saturating_sub(current);
        let asked = self.memory_bytes.saturating_add(growth);
        if asked > allowed {
            return self.breach(FaultKind::Memory { asked, allowed });
        }
        // Where the system has none left it stays counted: a guest does not get far without.
        self.memory_bytes = asked;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> Result<bool> {
        let allowed = self.limits.table_entries;
        if desired > allowed {
            return self.breach(FaultKind::Limit {
                what: "table entries",
                used: desired as u64,
                allowed: allowed as u64,
            });
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        self.limits.instances
    }

    fn tables(&self) -> usize {
        self.limits.instances
    }

    fn memories(&self) -> usize {
        self.limits.instances
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_beyond_a_limit_is_a_typed_breach() {
        let mut state = State::new(Limits::default());
        let memory = domain::limits::GUEST_MEMORY_MAX;
        assert!(state.memory_growing(0, memory - 10, None).is_ok());
        assert!(state.memory_growing(0, 10, None).is_ok(), "another one");
        assert!(state.memory_growing(0, memory, Some(10)).is_ok(), "that fails by itself");
        assert!(state.memory_growing(0, 1, None).is_err());
        let (asked, allowed) = (memory + 1, memory);
        assert_eq!(state.breach.take(), Some(FaultKind::Memory { asked, allowed }));

        let table = domain::limits::GUEST_TABLE_MAX;
        assert!(state.table_growing(0, table, None).is_ok());
        assert!(state.table_growing(0, table + 1, None).is_err());
        let (used, allowed) = (table as u64 + 1, table as u64);
        let what = "table entries";
        assert_eq!(state.breach.take(), Some(FaultKind::Limit { what, used, allowed }));
        assert_eq!(state.instances(), domain::limits::GUEST_INSTANCES_MAX);
    }

    #[test]
    fn a_position_of_an_unknown_instrument_is_a_breach() {
        let mut state = State::new(Limits::default());
        assert!(state.position_of(3).is_err());
        match state.breach {
            Some(FaultKind::Protocol(text)) => {
                assert_eq!(text, "it asked for the position of instrument 3; there are 0");
            }
            other => panic!("{other:?}"),
        }
    }
}
