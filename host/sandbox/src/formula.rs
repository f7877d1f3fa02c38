//! Formula modules: ready to run, and running.

mod description;
mod exports;
mod instance;

use std::sync::Arc;

use domain::formula::FormulaDescription;
use wasmtime::InstancePre;

use crate::artefact::Artefact;
use crate::config::Limits;
use crate::engine::instantiate;
use crate::error::SandboxError;
use crate::running::Running;
use crate::state::State;

pub use instance::FormulaInstance;

/// The interface that every formula module exports.
pub(crate) const GUEST: &str = "kumiki:formula/guest@1.0.0";

/// A formula module that is compiled and checked. Each [`FormulaModule::instantiate`] is a fresh one.
pub struct FormulaModule {
    ready: InstancePre<State>,
    artefact: Arc<Artefact>,
    description: FormulaDescription,
    stack_bytes: usize,
    limits: Limits,
}

impl FormulaModule {
    /// Asks the module what it is.
    pub(crate) fn new(
        ready: InstancePre<State>,
        artefact: Artefact,
        stack_bytes: usize,
        limits: Limits,
    ) -> Result<Self, SandboxError> {
        let artefact = Arc::new(artefact);
        let description = FormulaDescription::default();
        let mut module = Self { ready, artefact, description, stack_bytes, limits };
        module.description = module.instantiate(limits)?.describe()?;
        Ok(module)
    }

    /// Name and identity.
    #[must_use]
    pub fn artefact(&self) -> &Artefact {
        &self.artefact
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

    /// A fresh instance with its own memory; [`Self::limits`] are the usual limits.
    ///
    /// # Errors
    /// When there is not enough memory or address space.
    pub fn instantiate(&self, limits: Limits) -> Result<FormulaInstance, SandboxError> {
        let (mut store, instance) = instantiate(&self.ready, limits)?;
        let exports = exports::Exports::find(&mut store, instance)
            .map_err(|error| SandboxError::Engine(format!("{error:#}")))?;
        let artefact = Arc::clone(&self.artefact);
        let running = Running::new(store, exports, artefact, self.stack_bytes, None);
        Ok(FormulaInstance::new(running))
    }
}

impl std::fmt::Debug for FormulaModule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FormulaModule")
            .field("name", &self.artefact.name())
            .field("sha256", &self.artefact.sha256())
            .finish_non_exhaustive()
    }
}
