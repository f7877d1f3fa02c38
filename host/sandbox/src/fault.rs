//! Turns an error of the engine into a typed fault.

use domain::TsNanos;
use domain::fault::FaultKind;
use wasmtime::{Error, Trap, WasmBacktrace};

use crate::running::Failure;
use crate::state::State;

/// The limits of a call that failed.
pub(crate) struct Allowed {
    pub(crate) fuel: u64,
    pub(crate) stack_bytes: usize,
    pub(crate) watchdog_ms: u64,
}

/// The failure behind an error of a call.
pub(crate) fn from_error(allowed: &Allowed, state: &mut State, error: &Error) -> Box<Failure> {
    let panic_message = state.panic_message.take();
    Box::new(Failure {
        kind: kind_of(allowed, state, panic_message.as_ref(), error),
        ts_event: panic_message.and_then(|(timestamp, _)| timestamp),
        backtrace: backtrace(error),
    })
}

fn kind_of(
    allowed: &Allowed,
    state: &mut State,
    panic_message: Option<&(Option<TsNanos>, String)>,
    error: &Error,
) -> FaultKind {
    if let Some(breach) = state.breach.take() {
        return breach;
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => {
            let per_event = state.limits.fuel_per_event;
            FaultKind::Fuel { budget: allowed.fuel, per_event }
        }
        Some(Trap::StackOverflow) => FaultKind::Stack { allowed: allowed.stack_bytes },
        Some(Trap::Interrupt) => FaultKind::Watchdog { allowed_ms: allowed.watchdog_ms },
        Some(trap) => match panic_message {
            Some((_, text)) => FaultKind::Panic(text.clone()),
            None if *trap == Trap::MemoryOutOfBounds => {
                FaultKind::Trap(format!("{trap}; endless recursion ends like this too"))
            }
            None => FaultKind::Trap(trap.to_string()),
        },
        None => FaultKind::Protocol(format!("{error:#}")),
    }
}

/// The program's own frames, with names for people.
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
