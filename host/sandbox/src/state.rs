//! What the host keeps for one instance: limits, log, and the answers to its questions.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::account::{PortfolioView, Position};
use domain::fault::FaultKind;
use domain::guest_limit::{
    GuestLimit, LOG_LINE_COST, NARRATIVE_COST, SIGNAL_COST, text_cost, text_page_cost,
};
use domain::strategy::{Action, LogLevel, LogLine};
use domain::{OrderSide, TsNanos};
use wasmtime::{Error, Memory, ResourceLimiter, Result, TypedFunc};

use crate::config::Limits;

/// The parts of a program that moving values on the direct path needs.
pub(crate) struct Guest {
    pub(crate) memory: Memory,
    /// `cabi_realloc(old, old_size, alignment, size) -> new`, the strategy's own allocator.
    pub(crate) realloc: TypedFunc<(u32, u32, u32, u32), u32>,
}

/// This part of what one event may leave is expected of the rows of a call.
const OUTPUT_PART: u64 = 2;

/// Done, or the limit that was reached.
pub(crate) type Breach<T> = std::result::Result<T, FaultKind>;

/// What a guest has caused so far, against the budgets of an event and of the run.
#[derive(Debug, Clone, Copy, Default)]
struct Written {
    /// Cost of the log in this run.
    log: usize,
    /// Cost of log, signals and narratives in this run.
    output: usize,
    /// Orders, changes and cancels in this run.
    commands: u64,
    /// Records of the present event, or of all rows that the present call handles.
    event_records: usize,
    /// Cost of log, signals and narratives of the same.
    event_output: usize,
    /// The instant whose answers share a budget; none while rows are handled.
    answered: Option<TsNanos>,
}

/// What the host keeps for one instance.
pub(crate) struct State {
    pub(crate) limits: Limits,
    pub(crate) portfolio: PortfolioView,
    /// What the strategy asked for in the present call.
    pub(crate) actions: Vec<Action>,
    pub(crate) log: Vec<LogLine>,
    /// Whether init runs, in which alone parameters may be reported.
    pub(crate) in_init: bool,
    /// What it reported: values as JSON by their names.
    pub(crate) parameters: BTreeMap<String, String>,
    written: Written,
    /// The message of a panic, with the event it was handling.
    pub(crate) panic_message: Option<(Option<TsNanos>, String)>,
    /// A breach noticed inside a call, more precise than the trap that follows.
    pub(crate) breach: Option<FaultKind>,
    /// The program's memory and allocator on the direct path, once it is instantiated.
    pub(crate) guest: Option<Arc<Guest>>,
    /// Whether the strategy may call an import now: not from inside its allocator.
    pub(crate) may_leave: bool,
    /// The aggressor of the trade that is handed over, where it is known.
    pub(crate) aggressor: Option<OrderSide>,
    /// Bytes that the present call may still copy out.
    pub(crate) bytes_left: usize,
    /// Bytes of all its memories together.
    memory_bytes: usize,
    /// Where records are laid out before they are copied in; kept, because every event needs it.
    pub(crate) buffer: Vec<u8>,
    /// The memory of the feeder, where there is one.
    pub(crate) batch: Option<Memory>,
    /// What the host itself has in the store.
    ours: Ours,
    /// Whether something of the host's is being made.
    making_ours: bool,
}

/// Instances, tables and memories in the store that are the host's and count for nobody.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ours {
    pub(crate) instances: usize,
    pub(crate) tables: usize,
    pub(crate) memories: usize,
}

impl State {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            portfolio: PortfolioView::default(),
            actions: Vec::new(),
            log: Vec::new(),
            in_init: false,
            parameters: BTreeMap::new(),
            written: Written::default(),
            panic_message: None,
            breach: None,
            guest: None,
            may_leave: true,
            aggressor: None,
            bytes_left: limits.result_bytes,
            memory_bytes: 0,
            buffer: Vec::new(),
            batch: None,
            ours: Ours::default(),
            making_ours: false,
        }
    }

    /// Something of the host's own is about to be made.
    pub(crate) fn begin_ours(&mut self, more: Ours) {
        self.ours.instances += more.instances;
        self.ours.tables += more.tables;
        self.ours.memories += more.memories;
        self.making_ours = true;
    }

    /// It is made.
    pub(crate) fn end_ours(&mut self) {
        self.making_ours = false;
    }

    /// Ends the call with a fault of this kind.
    pub(crate) fn breach<T>(&mut self, kind: FaultKind) -> Result<T> {
        let error = Error::msg(kind.to_string());
        self.breach = Some(kind);
        Err(error)
    }

    /// Takes bytes that were copied out in this call.
    pub(crate) fn spend(&mut self, bytes: usize) -> Breach<()> {
        let (allowed, limit) = (self.limits.result_bytes as u64, GuestLimit::Result);
        let left = self.bytes_left.checked_sub(bytes);
        self.bytes_left = left.ok_or(FaultKind::Budget { limit, used: allowed + 1, allowed })?;
        Ok(())
    }

    /// A call begins that handles an event, or some rows of the market: they have the budget of one event
    /// together. What stays within it would row by row; where it does not, the run with window 1 tells.
    #[inline]
    pub(crate) fn begin_event(&mut self) {
        let written = &mut self.written;
        (written.event_records, written.event_output, written.answered) = (0, 0, None);
    }

    /// So many rows of the market may be handled in the next call, by the records and output of the last one,
    /// which handled some.
    pub(crate) fn rows_for_output(&self, rows: u32) -> u64 {
        let Self { written, limits, .. } = self;
        let fits = |limit: GuestLimit, used: usize| match used {
            0 => u64::MAX,
            used => (limits.get(limit) / OUTPUT_PART).saturating_mul(rows.into()) / used as u64,
        };
        fits(GuestLimit::Records, written.event_records)
            .min(fits(GuestLimit::EventOutput, written.event_output))
    }

    /// A call begins that tells what happened to orders. All answers at one instant share a budget,
    /// because what a guest asks for there happens at that instant too.
    #[inline]
    pub(crate) fn begin_answers(&mut self, instant: TsNanos) {
        if self.written.answered != Some(instant) {
            self.begin_event();
            self.written.answered = Some(instant);
        }
    }

    /// Counts what the strategy wants done, from the action at this index on.
    pub(crate) fn count_actions(&mut self, from: usize) -> Breach<()> {
        let actions = std::mem::take(&mut self.actions);
        let counted = actions[from..].iter().try_for_each(|action| self.count_action(action));
        self.actions = actions;
        counted
    }

    fn count_action(&mut self, action: &Action) -> Breach<()> {
        match action {
            Action::Order(_) => {
                self.written.commands += 1;
                let (used, allowed) = (self.written.commands, self.limits.commands);
                if used > allowed {
                    let limit = GuestLimit::Commands;
                    return Err(FaultKind::Budget { limit, used, allowed });
                }
                self.count(0)
            }
            Action::Signal(signal) => {
                let texts = [&signal.tag, &signal.note].into_iter().flatten();
                self.count(SIGNAL_COST + texts.map(|text| text_cost(text)).sum::<usize>())
            }
            Action::Narrative(record) => {
                let texts = text_cost(&record.title) + text_cost(&record.body);
                let id = record.client_order_id.as_deref().map_or(0, text_cost);
                self.count(NARRATIVE_COST + texts + id)
            }
        }
    }

    /// Counts a record with its cost in bytes against the budgets.
    fn count(&mut self, cost: usize) -> Breach<()> {
        let Self { written, limits, .. } = self;
        written.event_records += 1;
        written.event_output += cost;
        written.output += cost;
        limits.allow(GuestLimit::Records, written.event_records)?;
        limits.allow(GuestLimit::EventOutput, written.event_output)?;
        limits.allow(GuestLimit::Output, written.output)
    }

    /// Holds a line of the log against its limit, before anything of it is copied. A panic's text is cut off, not
    /// refused: it is the reason of the fault.
    pub(crate) fn check_line(&self, level: LogLevel, bytes: usize) -> Breach<()> {
        match level {
            LogLevel::Panic => Ok(()),
            _ => self.limits.allow(GuestLimit::LogLine, bytes),
        }
    }

    /// Takes a line of the log, which is within its limit and still in the guest's memory.
    pub(crate) fn write(&mut self, level: LogLevel, ts_event: u64, message: &str) -> Breach<()> {
        let timestamp = (ts_event != 0).then(|| TsNanos::from_nanos(ts_event));
        if level == LogLevel::Panic {
            let end = message.floor_char_boundary(self.limits.log_line_bytes);
            self.panic_message = Some((timestamp, message[..end].to_owned()));
            return Ok(());
        }
        let cost = LOG_LINE_COST + text_cost(message);
        self.written.log += cost;
        self.limits.allow(GuestLimit::Log, self.written.log)?;
        self.count(cost)?;
        self.log.push(LogLine { ts_event: timestamp, level, message: message.to_owned() });
        Ok(())
    }

    /// Holds a parameter that is about to be reported against the limits, before anything of it is
    /// copied.
    pub(crate) fn check_report(&self, name_bytes: usize, value_bytes: usize) -> Breach<()> {
        if !self.in_init {
            let text = "it reported a parameter outside of its init".to_owned();
            return Err(FaultKind::Protocol(text));
        }
        self.limits.allow(GuestLimit::Parameters, self.parameters.len() + 1)?;
        self.limits.allow(GuestLimit::Parameter, name_bytes.saturating_add(value_bytes))
    }

    /// Takes a parameter that was reported.
    pub(crate) fn report(&mut self, name: &str, value: &str) -> Breach<()> {
        let broken = |text: String| Err(FaultKind::Protocol(text));
        if name.is_empty() {
            return broken("it reported a parameter without a name".to_owned());
        }
        // As deep as it stands in the manifest, and a little more: whoever reads that has the same limit.
        let nested = format!("[[[[{value}]]]]");
        let parsed = serde_json::from_str::<serde_json::Value>(value).and_then(|parsed| {
            serde_json::from_str::<serde_json::Value>(&nested)?;
            Ok(parsed)
        });
        let written = match parsed {
            Ok(parsed) => parsed.to_string(),
            Err(error) => {
                let text = format!("the value of the parameter {name:?} is no JSON: {error}");
                return broken(text);
            }
        };
        // As the manifest and the page spell it: a short number may be a long one there.
        let bytes = text_page_cost(name).saturating_add(text_page_cost(&written));
        self.limits.allow(GuestLimit::Parameter, bytes)?;
        match self.parameters.insert(name.to_owned(), value.to_owned()) {
            None => Ok(()),
            Some(_) => broken(format!("it reported the parameter {name:?} twice")),
        }
    }

    /// The aggressor of a row of the present window: known only of a trade that is a window of its own.
    pub(crate) fn aggressor_of(&self, row: u32) -> Option<OrderSide> {
        self.aggressor.filter(|_| row == 0)
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
        if self.making_ours {
            return Ok(true);
        }
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
            let (limit, used, allowed) = (GuestLimit::TableEntries, desired as u64, allowed as u64);
            return self.breach(FaultKind::Budget { limit, used, allowed });
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        self.limits.instances.saturating_add(self.ours.instances)
    }

    fn tables(&self) -> usize {
        self.limits.instances.saturating_add(self.ours.tables)
    }

    fn memories(&self) -> usize {
        self.limits.instances.saturating_add(self.ours.memories)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_beyond_a_limit_is_a_typed_breach() {
        let mut state = State::new(Limits::default());
        let memory = Limits::default().memory_bytes;
        assert!(state.memory_growing(0, memory - 10, None).is_ok());
        assert!(state.memory_growing(0, 10, None).is_ok(), "another one");
        assert!(state.memory_growing(0, memory, Some(10)).is_ok(), "that fails by itself");
        assert!(state.memory_growing(0, 1, None).is_err());
        let (asked, allowed) = (memory + 1, memory);
        assert_eq!(state.breach.take(), Some(FaultKind::Memory { asked, allowed }));

        let table = Limits::default().table_entries;
        assert!(state.table_growing(0, table, None).is_ok());
        assert!(state.table_growing(0, table + 1, None).is_err());
        let (used, allowed) = (table as u64 + 1, table as u64);
        let limit = GuestLimit::TableEntries;
        assert_eq!(state.breach.take(), Some(FaultKind::Budget { limit, used, allowed }));
        assert_eq!(state.instances(), Limits::default().instances);
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
