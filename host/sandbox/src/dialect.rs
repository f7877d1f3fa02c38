//! Dialects of brokers and of local gateways: ready to run, and running.

mod check;
mod gateway;
mod instance;
mod renewed;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use domain::order_mapping::DialectDescription;

use crate::artefact::Artefact;
use crate::cache::Compiled;
use crate::config::Limits;
use crate::error::SandboxError;
use crate::general::MappingReady;
use crate::running::Origin;
use renewed::{Renewed, Shared};

pub use gateway::{GatewayDialectInstance, GatewayDialectModule};
pub use instance::DialectInstance;

/// A dialect of a broker that is compiled and checked. Each [`DialectModule::instantiate`] is a fresh one.
pub struct DialectModule {
    shared: Arc<Shared<MappingReady>>,
    description: Arc<DialectDescription>,
}

impl DialectModule {
    /// Links a dialect's code with nothing, and asks it what it is.
    pub(crate) fn new(
        compiled: Compiled,
        origin: Origin,
        limits: Limits,
    ) -> Result<Self, SandboxError> {
        let shared = Shared::link(compiled, origin, limits)?;
        let description = Arc::new(instance::describe(&mut Renewed::new(&shared)?)?);
        Ok(Self { shared, description })
    }

    /// Name and identity.
    #[must_use]
    pub fn artefact(&self) -> &Artefact {
        self.shared.artefact()
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
        let description = Arc::clone(&self.description);
        Ok(DialectInstance::new(Renewed::new(&self.shared)?, description))
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
