//! Dialects of local gateways: ready to run, and running.

use std::sync::Arc;

use domain::fault::Identity;
use domain::gateway_mapping::{GatewayBoard, GatewayDescription, GatewayMapping, GatewayRefusal};
use domain::limits::GATEWAY_MESSAGE_BYTES_MAX;
use domain::order_mapping::Mapped;

use super::renewed::{Renewed, Shared};
use crate::artefact::Artefact;
use crate::cache::Compiled;
use crate::config::Limits;
use crate::error::SandboxError;
use crate::general::{Gateway, GatewayReady};
use crate::running::Origin;

/// A dialect of a gateway that is compiled and checked. Each [`GatewayDialectModule::instantiate`] is a fresh one.
pub struct GatewayDialectModule {
    shared: Arc<Shared<GatewayReady>>,
    description: Arc<GatewayDescription>,
}

impl GatewayDialectModule {
    /// Links a dialect's code with nothing, and asks it what it is.
    pub(crate) fn new(
        compiled: Compiled,
        origin: Origin,
        limits: Limits,
    ) -> Result<Self, SandboxError> {
        let shared = Shared::link(compiled, origin, limits)?;
        let described = Renewed::new(&shared)?.call("describe", Gateway::describe)?;
        Ok(Self { shared, description: Arc::new(described) })
    }

    /// Name and identity.
    #[must_use]
    pub fn artefact(&self) -> &Artefact {
        self.shared.artefact()
    }

    /// What it says of itself.
    #[must_use]
    pub fn description(&self) -> &GatewayDescription {
        &self.description
    }

    /// A fresh instance with its own memory. When the dialect itself fails while it is made, its calls are
    /// the fault.
    ///
    /// # Errors
    /// When there is not enough memory or address space.
    pub fn instantiate(&self) -> Result<GatewayDialectInstance, SandboxError> {
        let description = Arc::clone(&self.description);
        Ok(GatewayDialectInstance { program: Renewed::new(&self.shared)?, description })
    }
}

impl std::fmt::Debug for GatewayDialectModule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GatewayDialectModule")
            .field("name", &self.artefact().name())
            .field("sha256", &self.artefact().sha256())
            .finish_non_exhaustive()
    }
}

/// One running dialect of a gateway, with its own memory. It is made anew after a fault, and after
/// [`domain::limits::GATEWAY_CALLS_PER_INSTANCE`] calls, so that no dialect can rely on what it kept.
pub struct GatewayDialectInstance {
    program: Renewed<GatewayReady>,
    description: Arc<GatewayDescription>,
}

impl GatewayDialectInstance {
    /// Fuel used so far by all calls; the same on every machine and every run.
    #[must_use]
    pub const fn fuel_used(&self) -> u64 {
        self.program.fuel_used()
    }
}

impl std::fmt::Debug for GatewayDialectInstance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GatewayDialectInstance")
            .field("component", &self.program.identity())
            .finish_non_exhaustive()
    }
}

impl GatewayMapping for GatewayDialectInstance {
    fn identity(&self) -> Identity {
        self.program.identity()
    }

    fn description(&self) -> &GatewayDescription {
        &self.description
    }

    fn classify(&mut self, status: u16, body: &str) -> Mapped<GatewayRefusal> {
        // The status still says what it says.
        let body = if body.len() > GATEWAY_MESSAGE_BYTES_MAX { "" } else { body };
        self.program.call("classify", |calls, store| calls.classify(store, status, body))
    }

    fn read_board(&mut self, message: &str) -> Mapped<Result<GatewayBoard, String>> {
        let found = message.len();
        if found > GATEWAY_MESSAGE_BYTES_MAX {
            let text = format!("it has {found} bytes; {GATEWAY_MESSAGE_BYTES_MAX} are allowed");
            return Ok(Err(text));
        }
        self.program.call("read-board", |calls, store| calls.read_board(store, message))
    }
}
