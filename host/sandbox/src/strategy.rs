//! A strategy that is compiled and checked.

use domain::strategy::Capabilities;
use wasmtime::{InstancePre, Linker};

use crate::artefact::Artefact;
use crate::cache::{CacheOutcome, Code, Compiled};
use crate::calls::Either;
use crate::config::{CallPath, Limits};
use crate::contract::STRATEGY;
use crate::error::SandboxError;
use crate::exports::Exports;
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
    ready: Either<(InstancePre<State>, Plan), general::StrategyReady>,
    reason: String,
    origin: Origin,
    capabilities: Capabilities,
    cache_outcome: CacheOutcome,
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
                let ready = linker.instantiate_pre(&program).map_err(refuse)?;
                let capabilities = imports::capabilities(
                    plan.imports.iter().map(|one| (&one.interface[..], &one.function[..])),
                );
                (Either::Direct((ready, plan)), capabilities)
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
        let Either::Direct((_, plan)) = &self.ready else { return false };
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
            Either::Direct((ready, plan)) => {
                plan.allow_instances(store.data_mut())?;
                let instance = ready.instantiate(&mut *store)?;
                Exports::find(store, instance, plan).map(Either::Direct)
            }
            Either::General(ready) => ready.instantiate(store).map(Either::General),
        })?;
        Ok(StrategyInstance::new(running, self.capabilities))
    }
}
