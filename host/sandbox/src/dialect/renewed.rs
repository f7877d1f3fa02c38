//! A dialect's program, made anew after a fault and after so many calls, so that no dialect can rely on what it
//! kept.

use std::sync::Arc;

use domain::fault::{FaultKind, Identity};
use domain::limits::{DIALECT_CALLS_PER_INSTANCE, GATEWAY_CALLS_PER_INSTANCE};
use domain::order_mapping::{Mapped, MappingFault};
use wasmtime::component::Component;
use wasmtime::{Result as Called, Store};

use crate::artefact::Artefact;
use crate::cache::{Code, Compiled};
use crate::config::Limits;
use crate::contract::{Contract, GATEWAY_MAPPING, ORDER_MAPPING};
use crate::error::SandboxError;
use crate::fault::Failure;
use crate::general::{Gateway, GatewayReady, Mapping, MappingReady};
use crate::running::{Origin, Running};
use crate::state::State;

/// A contract of dialects: its component linked with nothing, from which programs are made.
pub(super) trait Ready: Sized {
    /// The calls of a program.
    type Calls;
    /// The contract.
    const CONTRACT: &'static Contract;
    /// Calls that one program answers.
    const CALLS_PER_INSTANCE: u32;

    fn link(component: &Component) -> Called<Self>;
    fn instantiate(&self, store: &mut Store<State>) -> Called<Self::Calls>;
}

impl Ready for MappingReady {
    type Calls = Mapping;
    const CONTRACT: &'static Contract = &ORDER_MAPPING;
    const CALLS_PER_INSTANCE: u32 = DIALECT_CALLS_PER_INSTANCE;

    fn link(component: &Component) -> Called<Self> {
        Self::new(component)
    }

    fn instantiate(&self, store: &mut Store<State>) -> Called<Mapping> {
        self.instantiate(store)
    }
}

impl Ready for GatewayReady {
    type Calls = Gateway;
    const CONTRACT: &'static Contract = &GATEWAY_MAPPING;
    const CALLS_PER_INSTANCE: u32 = GATEWAY_CALLS_PER_INSTANCE;

    fn link(component: &Component) -> Called<Self> {
        Self::new(component)
    }

    fn instantiate(&self, store: &mut Store<State>) -> Called<Gateway> {
        self.instantiate(store)
    }
}

/// What all instances of a dialect share.
pub(super) struct Shared<R> {
    ready: R,
    origin: Origin,
    limits: Limits,
}

impl<R: Ready> Shared<R> {
    /// Links a dialect's code with nothing.
    pub(super) fn link(
        compiled: Compiled,
        origin: Origin,
        limits: Limits,
    ) -> Result<Arc<Self>, SandboxError> {
        let refuse = |reason: String| R::CONTRACT.refuse(origin.artefact.name(), reason);
        let Code::Component(component) = compiled.code else {
            return Err(refuse("it was compiled for direct calls".to_owned()));
        };
        let ready = R::link(&component).map_err(|error| refuse(format!("{error:#}")))?;
        Ok(Arc::new(Self { ready, origin, limits }))
    }

    pub(super) fn artefact(&self) -> &Artefact {
        &self.origin.artefact
    }

    /// A fresh program with its own memory.
    fn make(&self) -> Result<Running<R::Calls>, SandboxError> {
        Running::make(&self.origin, self.limits, |store| self.ready.instantiate(store))
    }
}

/// A running program with what it is made anew from.
pub(super) struct Renewed<R: Ready> {
    shared: Arc<Shared<R>>,
    running: Running<R::Calls>,
    /// Calls that the present program may still answer.
    calls_left: u32,
    fuel_used_before: u64,
}

impl<R: Ready> Renewed<R> {
    /// When the dialect itself fails while it is made, its calls are the fault.
    pub(super) fn new(shared: &Arc<Shared<R>>) -> Result<Self, SandboxError> {
        let (shared, running) = (Arc::clone(shared), shared.make()?);
        Ok(Self { shared, running, calls_left: R::CALLS_PER_INSTANCE, fuel_used_before: 0 })
    }

    pub(super) fn identity(&self) -> Identity {
        self.running.identity()
    }

    pub(super) const fn fuel_used(&self) -> u64 {
        self.fuel_used_before + self.running.fuel_used()
    }

    pub(super) fn call<T>(
        &mut self,
        export: &'static str,
        act: impl FnOnce(&R::Calls, &mut Store<State>) -> Called<T>,
    ) -> Mapped<T> {
        if self.calls_left == 0 {
            self.renew(export)?;
        }
        self.calls_left -= 1;
        let fuel = self.shared.limits.fuel_per_event;
        self.running.call(fuel, act).map_err(|failure| {
            // The next call meets a fresh one.
            self.calls_left = 0;
            self.fault_of(export, *failure)
        })
    }

    #[cold]
    fn renew(&mut self, export: &'static str) -> Mapped<()> {
        let failed = |error: SandboxError| {
            let kind = FaultKind::Trap(error.to_string());
            let failure = Failure { export: None, kind, ts_event: None, backtrace: Vec::new() };
            self.fault_of(export, failure)
        };
        let fresh = self.shared.make().map_err(failed)?;
        let old = std::mem::replace(&mut self.running, fresh);
        self.fuel_used_before += old.fuel_used();
        self.calls_left = R::CALLS_PER_INSTANCE;
        Ok(())
    }

    #[cold]
    fn fault_of(&self, export: &'static str, failure: Failure) -> Box<MappingFault> {
        let Identity { component, sha256 } = self.running.identity();
        let Failure { export: elsewhere, kind, backtrace, .. } = failure;
        let export = elsewhere.unwrap_or(export);
        Box::new(MappingFault { component, sha256, export, kind, backtrace })
    }
}
