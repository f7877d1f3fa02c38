//! Formula modules: ready to run, and running.

mod description;
mod exports;
mod instance;

use domain::formula::FormulaDescription;
use wasmtime::InstancePre;

use crate::artefact::Artefact;
use crate::config::Limits;
use crate::error::SandboxError;
use crate::running::{Origin, Running};
use crate::state::State;

pub use instance::FormulaInstance;

/// The interface that every formula module exports.
pub(crate) const GUEST: &str = "kumiki:formula/guest@1.0.0";

/// A formula module that is compiled and checked. Each [`FormulaModule::instantiate`] is a fresh one.
pub struct FormulaModule {
    ready: InstancePre<State>,
    origin: Origin,
    description: FormulaDescription,
}

impl FormulaModule {
    /// Asks the module what it is.
    pub(crate) fn new(ready: InstancePre<State>, origin: Origin) -> Result<Self, SandboxError> {
        let mut module = Self { ready, origin, description: FormulaDescription::default() };
        module.description = module.instantiate(Limits::formula())?.describe()?;
        Ok(module)
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

    /// A fresh instance with its own memory; [`Limits::formula`] are the usual limits. When the
    /// module itself fails while it is made, the first call of the instance is the fault.
    ///
    /// # Errors
    /// When there is not enough memory or address space.
    pub fn instantiate(&self, limits: Limits) -> Result<FormulaInstance, SandboxError> {
        let running = Running::make(&self.origin, limits, |store| {
            let instance = self.ready.instantiate(&mut *store)?;
            exports::Exports::find(store, instance)
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
