//! The engine, and components that are ready to run.

use std::path::Path;
use std::sync::Arc;

use domain::strategy::Capabilities;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Config, Engine, OptLevel};

use crate::artefact::Artefact;
use crate::bindings::{Strategy, StrategyPre};
use crate::cache::{CacheOutcome, CompileCache};
use crate::config::{Limits, SandboxConfig};
use crate::error::SandboxError;
use crate::instance::StrategyInstance;
use crate::state::State;
use crate::watchdog::Watchdog;

/// What every strategy exports.
const GUEST_EXPORT: &str = "kumiki:strategy/guest@1.0.0";

/// The engine with its one configuration, used in live trading and in replay alike.
pub struct Sandbox {
    engine: Engine,
    linker: Linker<State>,
    config: SandboxConfig,
    cache: Option<CompileCache>,
}

impl Sandbox {
    /// Starts the engine.
    ///
    /// # Errors
    /// When it does not run on this machine.
    pub fn new(config: SandboxConfig) -> Result<Self, SandboxError> {
        let engine_error = |error: wasmtime::Error| SandboxError::Engine(format!("{error:#}"));
        let engine = Engine::new(&engine_config(&config)).map_err(engine_error)?;
        let mut linker = Linker::new(&engine);
        Strategy::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut State| state)
            .map_err(engine_error)?;
        let cache = config.cache_folder.as_deref().map(|path| CompileCache::new(path, &engine));
        Ok(Self { engine, linker, config, cache })
    }

    /// Where compiled components are kept.
    #[must_use]
    pub fn cache(&self) -> Option<&CompileCache> {
        self.cache.as_ref()
    }

    /// Reads a strategy's file and makes it ready to run.
    ///
    /// # Errors
    /// When it cannot be read, is no strategy, or wants what strategies do not get.
    pub fn load(&self, path: &Path) -> Result<StrategyModule, SandboxError> {
        self.prepare(Artefact::read(path, self.config.component_bytes)?)
    }

    /// Makes a component that is already in memory ready to run.
    ///
    /// # Errors
    /// When it is no strategy.
    pub fn prepare(&self, artefact: Artefact) -> Result<StrategyModule, SandboxError> {
        let name = || artefact.name().to_owned();
        let loaded = match &self.cache {
            Some(cache) => cache.load(&self.engine, &artefact),
            None => Component::new(&self.engine, artefact.component())
                .map(|component| (component, CacheOutcome::NoCache)),
        };
        let (component, cache_outcome) = loaded.map_err(|error| SandboxError::Compile {
            name: name(),
            reason: format!("{error:#}"),
        })?;
        let not_a_strategy = |error: wasmtime::Error| SandboxError::NotAStrategy {
            name: name(),
            export: GUEST_EXPORT,
            reason: format!("{error:#}"),
        };
        let capabilities = capabilities(&self.engine, &component);
        let ready = self
            .linker
            .instantiate_pre(&component)
            .and_then(StrategyPre::new)
            .map_err(not_a_strategy)?;
        Ok(StrategyModule {
            ready,
            artefact: Arc::new(artefact),
            capabilities,
            cache_outcome,
            stack_bytes: self.config.stack_bytes,
        })
    }
}

/// A strategy that is compiled and checked. Each [`StrategyModule::instantiate`] is a fresh one.
pub struct StrategyModule {
    ready: StrategyPre<State>,
    artefact: Arc<Artefact>,
    capabilities: Capabilities,
    cache_outcome: CacheOutcome,
    stack_bytes: usize,
}

impl StrategyModule {
    /// Name and identity.
    #[must_use]
    pub fn artefact(&self) -> &Artefact {
        &self.artefact
    }

    /// Which optional imports it uses.
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// How its compiled form came about.
    #[must_use]
    pub const fn cache_outcome(&self) -> &CacheOutcome {
        &self.cache_outcome
    }

    /// A fresh instance with its own memory.
    ///
    /// # Errors
    /// When there is not enough memory or address space.
    pub fn instantiate(&self, limits: Limits) -> Result<StrategyInstance, SandboxError> {
        let engine = self.ready.engine();
        let mut store = wasmtime::Store::new(engine, State::new(limits));
        store.limiter(|state| state);
        store.set_hostcall_fuel(limits.result_bytes);
        store.epoch_deadline_trap();
        // Without a watchdog the epoch never moves, and the deadline lies beyond its end.
        store.set_epoch_deadline(u64::MAX / 2);
        let watchdog =
            limits.watchdog.map(|allowed| Watchdog::start(engine.weak(), allowed)).transpose();
        let watchdog = watchdog.map_err(|error| SandboxError::Engine(error.to_string()))?;
        let failed = |error: wasmtime::Error| SandboxError::Engine(format!("{error:#}"));
        store.set_fuel(limits.fuel_per_lifecycle_call).map_err(failed)?;
        let bindings = self.ready.instantiate(&mut store).map_err(failed)?;
        Ok(StrategyInstance::new(
            store,
            bindings,
            Arc::clone(&self.artefact),
            self.capabilities,
            self.stack_bytes,
            watchdog,
        ))
    }
}

fn engine_config(config: &SandboxConfig) -> Config {
    let mut engine = Config::new();
    engine
        // The same input gives the same output, to the last bit, on every machine.
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        // Fuel makes the point of a kill reproducible; epochs serve the watchdog of live trading,
        // and are compiled in for replay too so that both run the same code.
        .consume_fuel(true)
        .epoch_interruption(true)
        // Calls are made one at a time; bookkeeping for concurrent ones would cost three times more.
        .concurrency_support(false)
        .cranelift_opt_level(OptLevel::Speed)
        .max_wasm_stack(config.stack_bytes);
    if let Some(bytes) = config.memory_reservation_bytes {
        engine.memory_reservation(bytes);
    }
    engine
}

fn capabilities(engine: &Engine, component: &Component) -> Capabilities {
    let mut found = Capabilities::default();
    for (name, import) in component.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(instance) = import.ty else { continue };
        for (function, _) in instance.exports(engine) {
            match (name, function) {
                ("kumiki:strategy/portfolio@1.0.0", "get-account" | "get-position") => {
                    found.portfolio = true;
                }
                ("kumiki:strategy/portfolio@1.0.0", "working-orders") => {
                    found.working_orders = true;
                }
                ("kumiki:strategy/aggressor@1.0.0", "of-trade") => found.aggressor = true,
                _ => {}
            }
        }
    }
    found
}
