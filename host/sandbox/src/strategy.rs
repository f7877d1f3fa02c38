//! A strategy that is compiled and checked.

use domain::strategy::Capabilities;
#[cfg(doc)]
use domain::strategy::StrategyRuntime;
use wasmtime::{InstancePre, Linker};

use crate::artefact::Artefact;
use crate::cache::{CacheOutcome, Code, Compiled};
use crate::calls::Either;
use crate::config::{CallPath, Limits};
use crate::contract::STRATEGY;
use crate::error::SandboxError;
use crate::exports::Exports;
use crate::feeder::Feeder;
use crate::general::{self, StrategyLinker};
use crate::imports;
use crate::instance::StrategyInstance;
use crate::proof::Plan;
use crate::reach;
use crate::running::{Origin, Running};
use crate::state::State;

/// The interface of the aggressor side.
const AGGRESSOR: &str = "aggressor";

/// A strategy that is compiled and checked. Each [`StrategyModule::instantiate`] is a fresh one.
pub struct StrategyModule {
    ready: Either<DirectReady, general::StrategyReady>,
    reason: String,
    origin: Origin,
    capabilities: Capabilities,
    cache_outcome: CacheOutcome,
}

/// A program with what it imports, ready to be made an instance.
struct DirectReady {
    program: InstancePre<State>,
    linker: Linker<State>,
    plan: Plan,
}

impl StrategyModule {
    /// Links a strategy's code with what the contract lets it import.
    pub(crate) fn new(
        linker: &StrategyLinker,
        compiled: Compiled,
        origin: Origin,
    ) -> Result<Self, SandboxError> {
        let refuse =
            |error: wasmtime::Error| STRATEGY.refuse(origin.artefact.name(), format!("{error:#}"));
        let Compiled { code, plan, reason, cache_outcome } = compiled;
        let (ready, capabilities) = match (code, plan) {
            (Code::Program(program), Some(plan)) => {
                let mut linker = Linker::new(&origin.engine);
                imports::define(&mut linker, &plan.imports).map_err(refuse)?;
                let program = linker.instantiate_pre(&program).map_err(refuse)?;
                let capabilities = imports::capabilities(
                    plan.imports.iter().map(|one| (&one.interface[..], &one.function[..])),
                );
                (Either::Direct(DirectReady { program, linker, plan }), capabilities)
            }
            (Code::Component(component), _) => {
                let ready = linker.ready(&component).map_err(refuse)?;
                let used = general::imported_functions(&component);
                let capabilities = imports::capabilities(
                    used.iter().map(|(interface, function)| (&interface[..], &function[..])),
                );
                (Either::General(ready), capabilities)
            }
            (Code::Program(_), None) => {
                let reason = "its program was compiled without a plan".to_owned();
                return Err(STRATEGY.refuse(origin.artefact.name(), reason));
            }
        };
        Ok(Self { ready, reason, origin, capabilities, cache_outcome })
    }

    /// Name and identity.
    #[must_use]
    pub fn artefact(&self) -> &Artefact {
        &self.origin.artefact
    }

    /// Which optional imports it uses.
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Whether it is proven that it asks for the aggressor side: it is one program, and an export reaches
    /// the import along calls that name their function. Where it is imported without that, it may ask.
    #[must_use]
    pub fn asks_aggressor(&self) -> bool {
        let Either::Direct(DirectReady { plan, .. }) = &self.ready else { return false };
        let component = self.origin.artefact.component();
        let Some(program) = component.get(plan.program.clone()) else { return false };
        let mut imports = plan.imports.iter().filter(|one| one.interface == AGGRESSOR);
        imports.any(|one| reach::is_called(program, (&one.module, &one.name)))
    }

    /// How its compiled form came about.
    #[must_use]
    pub const fn cache_outcome(&self) -> &CacheOutcome {
        &self.cache_outcome
    }

    /// How it is called.
    #[must_use]
    pub const fn call_path(&self) -> CallPath {
        self.ready.path()
    }

    /// Why it is called that way, in a few words.
    #[must_use]
    pub fn call_path_reason(&self) -> &str {
        &self.reason
    }

    /// A fresh instance with its own memory. When the strategy itself fails while it is made, the
    /// first call of the instance is the fault.
    ///
    /// # Errors
    /// When there is not enough memory or address space.
    pub fn instantiate(&self, limits: Limits) -> Result<StrategyInstance, SandboxError> {
        let running = Running::make(&self.origin, limits, |store| match &self.ready {
            Either::Direct(DirectReady { program, plan, .. }) => {
                plan.allow_instances(store.data_mut())?;
                let instance = program.instantiate(&mut *store)?;
                Exports::find(store, instance, plan).map(Either::Direct)
            }
            Either::General(ready) => ready.instantiate(store).map(Either::General),
        })?;
        Ok(StrategyInstance::new(running, self.capabilities, None, false))
    }

    /// The same for a run that can be made again: where it can, the instance hands over what happened to orders
    /// in one step, and for a strict replay (`is_strict`) it takes many trades at once and gives the strategy
    /// one after the other ([`StrategyRuntime::batch_rows`] tells whether it does). Of a fault of such
    /// an instance nothing holds but that there may be one: the run is to be made again with an instance of
    /// [`Self::instantiate`], which this is where a batch has no room or its strategy cannot be made.
    ///
    /// # Errors
    /// As [`Self::instantiate`].
    pub fn instantiate_quick(
        &self,
        limits: Limits,
        is_strict: bool,
    ) -> Result<StrategyInstance, SandboxError> {
        let Either::Direct(DirectReady { program, linker, plan }) = &self.ready else {
            return self.instantiate(limits);
        };
        // The watchdog counts the time of one event.
        if limits.watchdog.is_some() {
            return self.instantiate(limits);
        }
        let mut feeder = None;
        let running = Running::make(&self.origin, limits, |store| {
            plan.allow_instances(store.data_mut())?;
            let parts = (linker, program.module(), plan);
            let (exports, made) = Feeder::make(&self.origin.feeders, parts, store)?;
            feeder = made;
            Ok(Either::Direct(exports))
        });
        match (running, feeder) {
            (Ok(running), Some(feeder)) => {
                Ok(StrategyInstance::new(running, self.capabilities, Some(feeder), is_strict))
            }
            // A second memory wants address space, of which there may not be enough.
            _ => self.instantiate(limits),
        }
    }
}
