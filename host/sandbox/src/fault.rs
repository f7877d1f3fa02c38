//! Turns an error of the engine into a typed fault.

use domain::TsNanos;
use domain::strategy::{Fault, FaultKind};
use wasmtime::{Error, Trap, WasmBacktrace};

use crate::artefact::Artefact;
use crate::state::State;

/// Where and under which limits a call failed.
pub(crate) struct CallSite {
    pub(crate) export: &'static str,
    pub(crate) ts_event: Option<TsNanos>,
    pub(crate) fuel: u64,
    pub(crate) stack_bytes: usize,
    pub(crate) watchdog_ms: u64,
}

/// A fault without a trap behind it.
pub(crate) fn fault(artefact: &Artefact, site: &CallSite, kind: FaultKind) -> Box<Fault> {
    Box::new(Fault {
        component: artefact.name().to_owned(),
        sha256: artefact.sha256().to_owned(),
        export: site.export,
        ts_event: site.ts_event,
        kind,
        backtrace: Vec::new(),
    })
}

/// The fault behind an error of a call.
pub(crate) fn from_error(
    artefact: &Artefact,
    site: &CallSite,
    state: &mut State,
    error: &Error,
) -> Box<Fault> {
    let last_words = state.last_words.take();
    let mut found = fault(artefact, site, kind_of(site, state, last_words.as_ref(), error));
    if let Some((Some(moment), _)) = last_words {
        found.ts_event = Some(moment);
    }
    found.backtrace = backtrace(error);
    found
}

fn kind_of(
    site: &CallSite,
    state: &mut State,
    last_words: Option<&(Option<TsNanos>, String)>,
    error: &Error,
) -> FaultKind {
    if let Some(breach) = state.breach.take() {
        return breach;
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => FaultKind::Fuel { budget: site.fuel },
        Some(Trap::StackOverflow) => FaultKind::Stack { allowed: site.stack_bytes },
        Some(Trap::Interrupt) => FaultKind::Watchdog { allowed_ms: site.watchdog_ms },
        Some(trap) => match last_words {
            Some((_, text)) => FaultKind::Panic(text.clone()),
            None if *trap == Trap::MemoryOutOfBounds => {
                FaultKind::Trap(format!("{trap}; endless recursion ends like this too"))
            }
            None => FaultKind::Trap(trap.to_string()),
        },
        None => FaultKind::Protocol(format!("{error:#}")),
    }
}

/// The strategy's own frames, with names for people.
fn backtrace(error: &Error) -> Vec<String> {
    let Some(trace) = error.downcast_ref::<WasmBacktrace>() else { return Vec::new() };
    trace
        .frames()
        .iter()
        .map(|frame| match frame.func_name() {
            Some(name) => format!("{:#}", rustc_demangle::demangle(name)),
            None => format!("function {}", frame.func_index()),
        })
        .collect()
}
