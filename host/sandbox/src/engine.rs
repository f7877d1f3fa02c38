//! The engine, and components that are ready to run.

use std::path::Path;
use std::sync::Arc;

use domain::strategy::Capabilities;
use wasmtime::{Config, Engine, Instance, InstancePre, Linker, Module, OptLevel, Store};

use crate::artefact::Artefact;
use crate::cache::{CacheOutcome, CompileCache};
use crate::config::{Limits, SandboxConfig};
use crate::contract::{self, Contract};
use crate::error::SandboxError;
use crate::exports::Exports;
use crate::formula::FormulaModule;
use crate::imports;
use crate::instance::StrategyInstance;
use crate::program;
use crate::running::Running;
use crate::state::State;
use crate::watchdog::Watchdog;

/// The engine with its one configuration, used in live trading and in replay alike.
pub struct Sandbox {
    engine: Engine,
    linker: Linker<State>,
    config: SandboxConfig,
    cache: Option<CompileCache>,
    formula_cache: Option<CompileCache>,
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
        let folder = config.cache_folder.as_deref();
        let cache = |contract| folder.map(|path| CompileCache::new(path, &engine, contract));
        let (cache, formula_cache) = (cache(&contract::STRATEGY), cache(&contract::FORMULA));
        Ok(Self { engine, linker, config, cache, formula_cache })
    }

    /// Where compiled strategies are kept.
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
        let (module, cache_outcome) =
            self.compile(&contract::STRATEGY, &artefact, self.cache.as_ref())?;
        let ready = self
            .linker
            .instantiate_pre(&module)
            .map_err(|error| not_of(&contract::STRATEGY, &artefact, format!("{error:#}")))?;
        Ok(StrategyModule {
            ready,
            capabilities: imports::capabilities(&module),
            artefact: Arc::new(artefact),
            cache_outcome,
            stack_bytes: self.config.stack_bytes,
        })
    }

    /// Reads a formula module's file and makes it ready to run.
    ///
    /// # Errors
    /// When it cannot be read, is no formula, or imports anything.
    pub fn load_formula(&self, path: &Path) -> Result<FormulaModule, SandboxError> {
        let artefact = Artefact::read_as(&contract::FORMULA, path, self.config.component_bytes)?;
        self.prepare_formula(artefact)
    }

    /// Makes a formula module that is already in memory ready to run, and asks what it is.
    ///
    /// # Errors
    /// When it is no formula, imports anything, or does not describe itself within the limits.
    pub fn formula_from_bytes(
        &self,
        name: &str,
        bytes: Vec<u8>,
    ) -> Result<FormulaModule, SandboxError> {
        self.prepare_formula(Artefact::from_bytes_as(&contract::FORMULA, name, bytes)?)
    }

    fn prepare_formula(&self, artefact: Artefact) -> Result<FormulaModule, SandboxError> {
        let contract = &contract::FORMULA;
        let (module, _) = self.compile(contract, &artefact, self.formula_cache.as_ref())?;
        // Nothing is defined in this linker: a formula imports nothing.
        let ready = Linker::new(&self.engine)
            .instantiate_pre(&module)
            .map_err(|error| not_of(contract, &artefact, format!("{error:#}")))?;
        FormulaModule::new(ready, artefact, self.config.stack_bytes, self.config.formula_limits)
    }

    /// The program inside a component, from the cache or compiled now.
    fn compile(
        &self,
        contract: &Contract,
        artefact: &Artefact,
        cache: Option<&CompileCache>,
    ) -> Result<(Module, CacheOutcome), SandboxError> {
        let (kind, name) = (contract.kind, artefact.name());
        if let Some(module) = cache.and_then(|cache| cache.load(&self.engine, artefact)) {
            tracing::debug!(name, "the compiled {kind} came from the cache");
            return Ok((module, CacheOutcome::Hit));
        }
        let refused = |reason| not_of(contract, artefact, reason);
        program::check(contract, artefact.component()).map_err(refused)?;
        let program = program::find(contract, artefact.component()).map_err(refused)?;
        let module = Module::new(&self.engine, program).map_err(|error| {
            let name = artefact.name().to_owned();
            SandboxError::Compile { name, reason: format!("{error:#}") }
        })?;
        let outcome = cache.map_or(CacheOutcome::NoCache, |cache| cache.store(artefact, &module));
        match &outcome {
            CacheOutcome::NotKept(why) => {
                tracing::warn!(name, "the compiled {kind} could not be kept: {why}");
            }
            CacheOutcome::Repaired => {
                tracing::warn!(name, "the compiled {kind} in the cache was damaged; made again");
            }
            CacheOutcome::Hit | CacheOutcome::Compiled | CacheOutcome::NoCache => {
                tracing::debug!(name, "the {kind} was compiled");
            }
        }
        Ok((module, outcome))
    }
}

fn not_of(contract: &Contract, artefact: &Artefact, reason: String) -> SandboxError {
    SandboxError::NotOfContract {
        kind: contract.kind,
        name: artefact.name().to_owned(),
        export: contract.guest,
        reason,
    }
}

/// A fresh instance under its limits, with the fuel of a lifecycle call.
pub(crate) fn instantiate(
    ready: &InstancePre<State>,
    limits: Limits,
) -> Result<(Store<State>, Instance), SandboxError> {
    let failed = |error: wasmtime::Error| SandboxError::Engine(format!("{error:#}"));
    let mut store = Store::new(ready.module().engine(), State::new(limits));
    store.limiter(|state| state);
    store.epoch_deadline_trap();
    // Without a watchdog the epoch never moves, and the deadline lies beyond its end.
    store.set_epoch_deadline(u64::MAX / 2);
    store.set_fuel(limits.fuel_per_lifecycle_call).map_err(failed)?;
    let instance = ready.instantiate(&mut store).map_err(failed)?;
    Ok((store, instance))
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
        let watchdog =
            limits.watchdog.map(|allowed| Watchdog::start(engine.weak(), allowed)).transpose();
        let watchdog = watchdog.map_err(|error| SandboxError::Engine(error.to_string()))?;
        let (mut store, instance) = instantiate(&self.ready, limits)?;
        let exports = Exports::find(&mut store, instance)
            .map_err(|error| SandboxError::Engine(format!("{error:#}")))?;
        let artefact = Arc::clone(&self.artefact);
        let running = Running::new(store, exports, artefact, self.stack_bytes, watchdog);
        Ok(StrategyInstance::new(running, self.capabilities))
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
