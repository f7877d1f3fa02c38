//! Turns an error of the engine into a typed fault.

use std::fmt::{self, Write as _};

use domain::fault::FaultKind;
use domain::{GuestLimit, TsNanos, text};
use wasmtime::{Error, ExternType, Module, Trap, WasmBacktrace};

use crate::feeder;
use crate::state::State;

/// The limits of a call that failed.
pub(crate) struct Allowed {
    pub(crate) fuel: u64,
    pub(crate) stack_bytes: usize,
    pub(crate) watchdog_ms: u64,
}

/// What went wrong in a call.
pub(crate) struct Failure {
    /// Where it failed, if not in the call itself.
    pub(crate) export: Option<&'static str>,
    pub(crate) kind: FaultKind,
    /// The event that the program was handling, where it told it itself.
    pub(crate) ts_event: Option<TsNanos>,
    /// The program's own frames, innermost first.
    pub(crate) backtrace: Vec<String>,
}

/// What a fault names as the call that failed while a program was made.
const INSTANTIATION: &str = "instantiation";
/// The same where the program's own set-up failed.
const INITIALIZE: &str = "_initialize";
/// How the engine begins when there are more instances, tables or memories than allowed.
const TOO_MANY: &str = "resource limit exceeded: ";
/// Bytes of a function's name in a backtrace.
const FRAME_BYTES_MAX: usize = 256;
/// How the engine begins its picture of a backtrace.
const BACKTRACE: &str = "error while executing at wasm backtrace";
/// How the engine says that a guest hands over more than the host lets it.
const TOO_MUCH_COPIED: &str = "fuel allocated for hostcalls has been exhausted";

/// The failure behind an error while a program was made, if it is the program's: its start function
/// trapped, did not end or broke the contract, or it wanted more than its limits. Anything else is the host's.
pub(crate) fn at_birth(
    allowed: &Allowed,
    state: &mut State,
    error: &Error,
) -> Option<Box<Failure>> {
    if state.breach.is_none() {
        state.breach = too_many(state.limits.instances, &format!("{error:#}"));
    }
    // What the engine itself finds wrong in what the program's code hands over is no trap, but has its frames.
    let is_of_program = error.is::<Trap>() || error.is::<WasmBacktrace>();
    if state.breach.is_none() && !is_of_program {
        return None;
    }
    let mut failure = from_error(allowed, state, error);
    let is_set_up = failure.backtrace.iter().any(|frame| frame == INITIALIZE);
    failure.export = Some(if is_set_up { INITIALIZE } else { INSTANTIATION });
    Some(failure)
}

/// The breach behind the engine's words `<what> count too high at <number>`.
fn too_many(allowed: usize, words: &str) -> Option<FaultKind> {
    let (_, found) = words.split_once(TOO_MANY)?;
    let (limit, allowed) = (GuestLimit::Instances, allowed as u64);
    let used = found.rsplit(' ').next().and_then(|number| number.parse().ok());
    Some(FaultKind::Budget { limit, used: used.unwrap_or(allowed + 1), allowed })
}

/// The failure behind an error of a call.
pub(crate) fn from_error(allowed: &Allowed, state: &mut State, error: &Error) -> Box<Failure> {
    let panic_message = state.panic_message.take();
    Box::new(Failure {
        export: None,
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
        None => of_words(state, words(error)),
    }
}

/// The words of an error, without the engine's own picture of a backtrace.
fn words(error: &Error) -> String {
    let all = error.chain().map(ToString::to_string);
    let told: Vec<String> = all.filter(|text| !text.starts_with(BACKTRACE)).collect();
    told.join(": ")
}

/// The fault behind an error that the engine tells in words alone.
fn of_words(state: &State, words: String) -> FaultKind {
    if words.contains(TOO_MUCH_COPIED) {
        let allowed = state.limits.result_bytes as u64;
        return FaultKind::Budget { limit: GuestLimit::Result, used: allowed + 1, allowed };
    }
    FaultKind::Protocol(words)
}

/// The program's own frames, with names for people.
fn backtrace(error: &Error) -> Vec<String> {
    let Some(trace) = error.downcast_ref::<WasmBacktrace>() else { return Vec::new() };
    trace
        .frames()
        .iter()
        .filter(|frame| !is_adapter(frame.module()) && !feeder::is_part(frame.module()))
        .map(|frame| match frame.func_name() {
            Some(name) => Frame::of(name),
            None => format!("function {}", frame.func_index()),
        })
        .collect()
}

/// Whether a module is what tools put between a program and its imports, which only the general path runs: it
/// gives a table and functions that have numbers for names, has no memory and asks for nothing.
fn is_adapter(module: &Module) -> bool {
    let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let mut has_table = false;
    let only_jumps = module.exports().all(|export| match export.ty() {
        ExternType::Table(_) => {
            has_table = true;
            true
        }
        ExternType::Func(_) => is_number(export.name()),
        _ => false,
    });
    only_jumps && has_table && module.imports().len() == 0
}

/// A function's name in a backtrace: short names of the guest's can stand for very long ones.
struct Frame(String);

impl Frame {
    fn of(name: &str) -> String {
        let mut frame = Self(String::new());
        // It ends early where the name is too long.
        let _ = write!(frame, "{:#}", rustc_demangle::demangle(name));
        frame.0
    }
}

impl fmt::Write for Frame {
    fn write_str(&mut self, name: &str) -> fmt::Result {
        for character in name.chars() {
            if self.0.len() >= FRAME_BYTES_MAX {
                self.0.push('…');
                return Err(fmt::Error);
            }
            self.0.push(if text::steers(character) { '\u{fffd}' } else { character });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_frames_are_short_and_plain() {
        assert_eq!(
            Frame::of("_ZN4core9panicking5panic17h0123456789abcdefE"),
            "core::panicking::panic"
        );
        // 46 bytes that stand for a name of a megabyte.
        let long = Frame::of("_RYFG_FGyyEvRYFF_EvRYFFEvERLB_B_B_ERLRjB_B_B_");
        assert!(long.len() <= FRAME_BYTES_MAX + 8, "{} bytes", long.len());
        assert!(long.ends_with('…'), "{long}");
        assert_eq!(Frame::of("a\u{1b}[31m\nerror: forged"), "a\u{fffd}[31m\u{fffd}error: forged");
    }
}
