//! Formula modules: ready to run, and running.

pub(crate) mod description;
mod exports;
mod instance;

use domain::formula::FormulaDescription;
use wasmtime::{InstancePre, Linker};

use crate::artefact::Artefact;
use crate::cache::{Code, Compiled};
use crate::calls::Either;
use crate::config::{CallPath, Limits};
use crate::contract::FORMULA;
use crate::error::SandboxError;
use crate::general::FormulaReady;
use crate::proof::Plan;
use crate::running::{Origin, Running};
use crate::state::State;

pub use instance::FormulaInstance;

/// A formula module that is compiled and checked. Each [`FormulaModule::instantiate`] is a fresh one.
pub struct FormulaModule {
    ready: Either<(InstancePre<State>, Plan), FormulaReady>,
    reason: String,
    origin: Origin,
    description: FormulaDescription,
    limits: Limits,
}

impl FormulaModule {
    /// Links a module's code with nothing, and asks it what it is.
    pub(crate) fn new(
        compiled: Compiled,
        origin: Origin,
        limits: Limits,
    ) -> Result<Self, SandboxError> {
        let refuse =
            |error: wasmtime::Error| FORMULA.refuse(origin.artefact.name(), format!("{error:#}"));
        let Compiled { code, plan, reason, .. } = compiled;
        let ready = match (code, plan) {
            (Code::Program(program), Some(plan)) => {
                let ready =
                    Linker::new(&origin.engine).instantiate_pre(&program).map_err(refuse)?;
                Either::Direct((ready, plan))
            }
            (Code::Component(component), _) => {
                Either::General(FormulaReady::new(&component).map_err(refuse)?)
            }
            (Code::Program(_), None) => {
                let reason = "its program was compiled without a plan".to_owned();
                return Err(FORMULA.refuse(origin.artefact.name(), reason));
            }
        };
        let description = FormulaDescription::default();
        let mut module = Self { ready, reason, origin, description, limits };
        module.description = module.instantiate(limits)?.describe()?;
        Ok(module)
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

    /// Name and identity.
    #[must_use]
    pub fn artefact(&self) -> &Artefact {
        &self.origin.artefact
    }

    /// What it says of itself.
    #[must_use]
    pub const fn description(&self) -> &FormulaDescription {
        &self.description
    }

    /// The limits of the sandbox that made it, for its instances.
    #[must_use]
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// A fresh instance with its own memory; [`Self::limits`] are the usual limits. When the
    /// module itself fails while it is made, the first call of the instance is the fault.
    ///
    /// # Errors
    /// When there is not enough memory or address space.
    pub fn instantiate(&self, limits: Limits) -> Result<FormulaInstance, SandboxError> {
        let running = Running::make(&self.origin, limits, |store| match &self.ready {
            Either::Direct((ready, plan)) => {
                plan.allow_instances(store.data_mut())?;
                let instance = ready.instantiate(&mut *store)?;
                exports::Exports::find(store, instance, plan).map(Either::Direct)
            }
            Either::General(ready) => ready.instantiate(store).map(Either::General),
        })?;
        Ok(FormulaInstance::new(running))
    }
}

impl std::fmt::Debug for FormulaModule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FormulaModule")
            .field("name", &self.artefact().name())
            .field("sha256", &self.artefact().sha256())
            .finish_non_exhaustive()
    }
}
