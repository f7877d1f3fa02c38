//! One running program: calls under a fuel budget and a watchdog, and what becomes of their errors.

use std::sync::Arc;

use domain::TsNanos;
use domain::fault::{FaultKind, Identity};
use wasmtime::{Result, Store};

use crate::artefact::Artefact;
use crate::fault::{self, Allowed};
use crate::state::State;
use crate::watchdog::Watchdog;

/// A program with its memory. After a failure it refuses every further call.
pub(crate) struct Running<E> {
    pub(crate) store: Store<State>,
    exports: E,
    artefact: Arc<Artefact>,
    stack_bytes: usize,
    watchdog: Option<Watchdog>,
    fuel_used: u64,
    /// A call failed; the memory may be in any state.
    failed: bool,
}

/// What went wrong in a call.
pub(crate) struct Failure {
    pub(crate) kind: FaultKind,
    /// The event that the program was handling, where it told it itself.
    pub(crate) ts_event: Option<TsNanos>,
    /// The program's own frames, innermost first.
    pub(crate) backtrace: Vec<String>,
}

impl<E> Running<E> {
    pub(crate) fn new(
        store: Store<State>,
        exports: E,
        artefact: Arc<Artefact>,
        stack_bytes: usize,
        watchdog: Option<Watchdog>,
    ) -> Self {
        Self { store, exports, artefact, stack_bytes, watchdog, fuel_used: 0, failed: false }
    }

    pub(crate) fn artefact(&self) -> &Artefact {
        &self.artefact
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity {
            component: self.artefact.name().to_owned(),
            sha256: self.artefact.sha256().to_owned(),
        }
    }

    /// Fuel used so far by all calls; the same on every machine and every run.
    pub(crate) const fn fuel_used(&self) -> u64 {
        self.fuel_used
    }

    /// Makes one call under a fuel budget and the watchdog.
    #[inline]
    pub(crate) fn call<R>(
        &mut self,
        fuel: u64,
        act: impl FnOnce(&E, &mut Store<State>) -> Result<R>,
    ) -> Result<R, Box<Failure>> {
        if self.failed {
            let text = "it was called after it had failed".to_owned();
            return Err(self.breach(FaultKind::Protocol(text)));
        }
        if let Some(watchdog) = &self.watchdog {
            self.store.set_epoch_deadline(watchdog.deadline());
        }
        let state = self.store.data_mut();
        state.bytes_left = state.limits.result_bytes;
        let result = self.store.set_fuel(fuel).and_then(|()| act(&self.exports, &mut self.store));
        // Fuel is on in every engine of this crate, so asking for it cannot fail.
        self.fuel_used += fuel - self.store.get_fuel().unwrap_or(0).min(fuel);
        result.map_err(|error| self.failure_of(fuel, &error))
    }

    #[cold]
    fn failure_of(&mut self, fuel: u64, error: &wasmtime::Error) -> Box<Failure> {
        self.failed = true;
        let allowed = Allowed {
            fuel,
            stack_bytes: self.stack_bytes,
            watchdog_ms: self.watchdog.as_ref().map_or(0, Watchdog::allowed_ms),
        };
        fault::from_error(&allowed, self.store.data_mut(), error)
    }

    /// A failure that the host found in an answer.
    #[cold]
    pub(crate) fn breach(&mut self, kind: FaultKind) -> Box<Failure> {
        self.failed = true;
        Box::new(Failure { kind, ts_event: None, backtrace: Vec::new() })
    }
}
