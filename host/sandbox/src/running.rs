//! One running program: made and called under a fuel budget and a watchdog, and what becomes of its
//! errors.

use std::sync::Arc;

use domain::fault::{FaultKind, Identity};
use wasmtime::{Engine, Result, Store};

use crate::artefact::Artefact;
use crate::config::Limits;
use crate::error::SandboxError;
use crate::fault::{self, Allowed, Failure};
use crate::feeder::FeederModules;
use crate::state::State;
use crate::watchdog::{Watchdog, Watchdogs};

/// What every instance of a module shares.
pub(crate) struct Origin {
    pub(crate) engine: Engine,
    pub(crate) watchdogs: Arc<Watchdogs>,
    pub(crate) artefact: Arc<Artefact>,
    pub(crate) feeders: Arc<FeederModules>,
    /// Stack of one call in bytes.
    pub(crate) stack_bytes: usize,
}

/// A program with its memory. After a failure it refuses every further call.
pub(crate) struct Running<E> {
    pub(crate) store: Store<State>,
    /// None once something failed: the memory may be in any state.
    exports: Option<E>,
    /// Why the program could not be made; the first call tells.
    stillborn: Option<Box<Failure>>,
    artefact: Arc<Artefact>,
    stack_bytes: usize,
    watchdog: Option<Watchdog>,
    fuel_used: u64,
}

impl<E> Running<E> {
    /// A fresh store, in which `make` instantiates the program with the fuel of a lifecycle call. The
    /// program's own code may run meanwhile; where that fails, the first call is the fault.
    ///
    /// # Errors
    /// What is not the program's doing: no memory, no address space, no thread.
    pub(crate) fn make(
        origin: &Origin,
        limits: Limits,
        make: impl FnOnce(&mut Store<State>) -> Result<E>,
    ) -> Result<Self, SandboxError> {
        let failed = |error: wasmtime::Error| SandboxError::Engine(format!("{error:#}"));
        let watchdog = limits.watchdog.map(|allowed| origin.watchdogs.start(allowed)).transpose();
        let watchdog = watchdog.map_err(|error| SandboxError::Engine(error.to_string()))?;
        let mut store = Store::new(&origin.engine, State::new(limits));
        store.limiter(|state| state);
        store.epoch_deadline_trap();
        // Without a watchdog the epoch never moves, and the deadline lies beyond its end.
        store.set_epoch_deadline(watchdog.as_ref().map_or(u64::MAX / 2, Watchdog::deadline));
        store.set_fuel(limits.fuel_per_lifecycle_call).map_err(failed)?;
        let made = make(&mut store);
        let mut running = Self {
            store,
            exports: None,
            stillborn: None,
            artefact: Arc::clone(&origin.artefact),
            stack_bytes: origin.stack_bytes,
            watchdog,
            fuel_used: 0,
        };
        match made {
            Ok(exports) => running.exports = Some(exports),
            Err(error) => {
                let allowed = running.allowed(limits.fuel_per_lifecycle_call);
                match fault::at_birth(&allowed, running.store.data_mut(), &error) {
                    Some(failure) => running.stillborn = Some(failure),
                    None => return Err(failed(error)),
                }
            }
        }
        Ok(running)
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
        let Some(exports) = &self.exports else { return Err(self.dead()) };
        if let Some(watchdog) = &self.watchdog {
            self.store.set_epoch_deadline(watchdog.deadline());
        }
        let state = self.store.data_mut();
        state.bytes_left = state.limits.result_bytes;
        let result = self.store.set_fuel(fuel).and_then(|()| act(exports, &mut self.store));
        // Fuel is on in every engine of this crate, so asking for it cannot fail.
        self.fuel_used += fuel - self.store.get_fuel().unwrap_or(0).min(fuel);
        result.map_err(|error| self.failure_of(fuel, &error))
    }

    fn allowed(&self, fuel: u64) -> Allowed {
        Allowed {
            fuel,
            stack_bytes: self.stack_bytes,
            watchdog_ms: self.watchdog.as_ref().map_or(0, Watchdog::allowed_ms),
        }
    }

    #[cold]
    fn dead(&mut self) -> Box<Failure> {
        let text = "it was called after it had failed".to_owned();
        self.stillborn.take().unwrap_or_else(|| self.breach(FaultKind::Protocol(text)))
    }

    #[cold]
    fn failure_of(&mut self, fuel: u64, error: &wasmtime::Error) -> Box<Failure> {
        self.exports = None;
        fault::from_error(&self.allowed(fuel), self.store.data_mut(), error)
    }

    /// A failure that the host found in an answer.
    #[cold]
    pub(crate) fn breach(&mut self, kind: FaultKind) -> Box<Failure> {
        self.exports = None;
        Box::new(Failure { export: None, kind, ts_event: None, backtrace: Vec::new() })
    }
}
