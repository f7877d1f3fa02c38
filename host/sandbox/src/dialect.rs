//! Dialects of brokers: ready to run, and running.

mod check;
mod instance;

use std::sync::Arc;

use domain::order_mapping::DialectDescription;

use crate::artefact::Artefact;
use crate::cache::{Code, Compiled};
use crate::config::Limits;
use crate::contract::ORDER_MAPPING;
use crate::error::SandboxError;
use crate::general::{Mapping, MappingReady};
use crate::running::{Origin, Running};

pub use instance::DialectInstance;

/// What all instances of a dialect share.
struct Shared {
    ready: MappingReady,
    origin: Origin,
    limits: Limits,
}

impl Shared {
    /// A fresh program with its own memory.
    fn make(&self) -> Result<Running<Mapping>, SandboxError> {
        Running::make(&self.origin, self.limits, |store| self.ready.instantiate(store))
    }
}

/// A dialect that is compiled and checked. Each [`DialectModule::instantiate`] is a fresh one.
pub struct DialectModule {
    shared: Arc<Shared>,
    description: Arc<DialectDescription>,
}

impl DialectModule {
    /// Links a dialect's code with nothing, and asks it what it is.
    pub(crate) fn new(
        compiled: Compiled,
        origin: Origin,
        limits: Limits,
    ) -> Result<Self, SandboxError> {
        let refuse = |reason: String| ORDER_MAPPING.refuse(origin.artefact.name(), reason);
        let Code::Component(component) = compiled.code else {
            return Err(refuse("it was compiled for direct calls".to_owned()));
        };
        let ready = MappingReady::new(&component).map_err(|error| refuse(format!("{error:#}")))?;
        let shared = Arc::new(Shared { ready, origin, limits });
        let description = Arc::default();
        let mut module = Self { shared, description };
        module.description = Arc::new(module.instantiate()?.describe()?);
        Ok(module)
    }

    /// Name and identity.
    #[must_use]
    pub fn artefact(&self) -> &Artefact {
        &self.shared.origin.artefact
    }

    /// What it says of itself.
    #[must_use]
    pub fn description(&self) -> &DialectDescription {
        &self.description
    }

    /// A fresh instance with its own memory. When the dialect itself fails while it is made, its calls are
    /// the fault.
    ///
    /// # Errors
    /// When there is not enough memory or address space.
    pub fn instantiate(&self) -> Result<DialectInstance, SandboxError> {
        let running = self.shared.make()?;
        let description = Arc::clone(&self.description);
        Ok(DialectInstance::new(Arc::clone(&self.shared), running, description))
    }
}

impl std::fmt::Debug for DialectModule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DialectModule")
            .field("name", &self.artefact().name())
            .field("sha256", &self.artefact().sha256())
            .finish_non_exhaustive()
    }
}
