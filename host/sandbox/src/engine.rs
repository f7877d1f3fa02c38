//! The engine, and components that are ready to run.

use std::path::Path;
use std::sync::Arc;

use domain::strategy::Capabilities;
use wasmtime::{Config, Engine, InstancePre, Linker, Module, OptLevel};

use crate::artefact::Artefact;
use crate::cache::{CacheOutcome, CompileCache};
use crate::config::{Limits, SandboxConfig};
use crate::error::SandboxError;
use crate::exports::{self, Exports};
use crate::imports;
use crate::instance::StrategyInstance;
use crate::program;
use crate::state::State;
use crate::watchdog::Watchdog;

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
        imports::define(&mut linker).map_err(engine_error)?;
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
        let not_a_strategy = |reason: String| SandboxError::NotAStrategy {
            name: artefact.name().to_owned(),
            export: exports::GUEST,
            reason,
        };
        let kept = self.cache.as_ref().and_then(|cache| cache.load(&self.engine, &artefact));
        let (module, cache_outcome) = match kept {
            Some(module) => (module, CacheOutcome::Hit),
            None => {
                program::check(artefact.component()).map_err(not_a_strategy)?;
                let program = program::find(artefact.component()).map_err(not_a_strategy)?;
                let module = Module::new(&self.engine, program).map_err(|error| {
                    let name = artefact.name().to_owned();
                    SandboxError::Compile { name, reason: format!("{error:#}") }
                })?;
                let outcome = self
                    .cache
                    .as_ref()
                    .map_or(CacheOutcome::NoCache, |cache| cache.keep(&artefact, &module));
                (module, outcome)
            }
        };
        let capabilities = imports::capabilities(&module);
        let ready = self
            .linker
            .instantiate_pre(&module)
            .map_err(|error| not_a_strategy(format!("{error:#}")))?;
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
    ready: InstancePre<State>,
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
        let engine = self.ready.module().engine();
        let mut store = wasmtime::Store::new(engine, State::new(limits));
        store.limiter(|state| state);
        store.epoch_deadline_trap();
        // Without a watchdog the epoch never moves, and the deadline lies beyond its end.
        store.set_epoch_deadline(u64::MAX / 2);
        let watchdog =
            limits.watchdog.map(|allowed| Watchdog::start(engine.weak(), allowed)).transpose();
        let watchdog = watchdog.map_err(|error| SandboxError::Engine(error.to_string()))?;
        let failed = |error: wasmtime::Error| SandboxError::Engine(format!("{error:#}"));
        store.set_fuel(limits.fuel_per_lifecycle_call).map_err(failed)?;
        let instance = self.ready.instantiate(&mut store).map_err(failed)?;
        let exports = Exports::find(&mut store, instance).map_err(failed)?;
        Ok(StrategyInstance::new(
            store,
            exports,
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
        .cranelift_opt_level(OptLevel::Speed)
        .max_wasm_stack(config.stack_bytes);
    if let Some(bytes) = config.memory_reservation_bytes {
        engine.memory_reservation(bytes);
    }
    engine
}
