//! The engine, and how components are made ready to run: which way they are called, and their code
//! from the cache or compiled now.

#[cfg(test)]
mod mutants;

use std::path::Path;
use std::sync::Arc;

use wasmtime::component::Component;
use wasmtime::{Config, Engine, Module, OptLevel};

use crate::artefact::Artefact;
use crate::cache::{CacheOutcome, Code, CompileCache, Compiled};
use crate::config::{CallPath, SandboxConfig};
use crate::contract::{self, Contract};
use crate::error::SandboxError;
use crate::formula::FormulaModule;
use crate::general::StrategyLinker;
use crate::program;
use crate::proof::{self, Plan};
use crate::running::Origin;
use crate::strategy::StrategyModule;
use crate::watchdog::Watchdogs;

/// The engine with its one configuration, used in live trading and in replay alike.
pub struct Sandbox {
    engine: Engine,
    strategies: StrategyLinker,
    watchdogs: Arc<Watchdogs>,
    config: SandboxConfig,
    cache: Option<CompileCache>,
    shipped: Option<CompileCache>,
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
        let strategies = StrategyLinker::new(&engine).map_err(engine_error)?;
        let folder = config.cache_folder.as_deref();
        let cache = |contract| folder.map(|path| CompileCache::new(path, &engine, contract));
        let (cache, formula_cache) = (cache(&contract::STRATEGY), cache(&contract::FORMULA));
        let shipped = config.shipped_folder.as_deref();
        let shipped = shipped.map(|path| CompileCache::new(path, &engine, &contract::STRATEGY));
        let watchdogs = Arc::new(Watchdogs::of(engine.weak()));
        Ok(Self { engine, strategies, watchdogs, config, cache, shipped, formula_cache })
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
        let caches = (self.cache.as_ref(), self.shipped.as_ref());
        let compiled = self.compile(&contract::STRATEGY, &artefact, caches)?;
        StrategyModule::new(&self.strategies, compiled, self.origin(artefact))
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
        let caches = (self.formula_cache.as_ref(), None);
        let compiled = self.compile(&contract::FORMULA, &artefact, caches)?;
        FormulaModule::new(compiled, self.origin(artefact), self.config.formula_limits)
    }

    /// What every instance of this component shares.
    fn origin(&self, artefact: Artefact) -> Origin {
        Origin {
            engine: self.engine.clone(),
            watchdogs: Arc::clone(&self.watchdogs),
            artefact: Arc::new(artefact),
            stack_bytes: self.config.stack_bytes,
        }
    }

    /// A component's code: from the cache, from what came with the program, or compiled now.
    fn compile(
        &self,
        contract: &Contract,
        artefact: &Artefact,
        (cache, shipped): (Option<&CompileCache>, Option<&CompileCache>),
    ) -> Result<Compiled, SandboxError> {
        let (kind, name) = (contract.kind, artefact.name());
        let proof = self.prove(contract, artefact);
        let path = match &proof {
            Ok(_) => CallPath::Direct,
            Err(reason) if self.config.call_path == Some(CallPath::Direct) => {
                let name = name.to_owned();
                return Err(SandboxError::NotDirect { name, reason: reason.clone() });
            }
            Err(_) => CallPath::General,
        };
        let kept = |cache: &CompileCache| cache.load(&self.engine, artefact, path);
        let (code, cache_outcome) = if let Some(code) = cache.and_then(kept) {
            (code, CacheOutcome::Hit)
        } else if let Some(code) = shipped.and_then(kept) {
            (code, CacheOutcome::Shipped)
        } else {
            let code = self.compile_now(contract, artefact, &proof)?;
            let store = |cache: &CompileCache| cache.store(artefact, path, &code);
            let outcome = cache.map_or(CacheOutcome::NoCache, store);
            (code, outcome)
        };
        tell(kind, name, &cache_outcome);
        let (plan, reason) = match proof {
            Ok(plan) => (Some(plan), "one program, its texts in UTF-8".to_owned()),
            Err(reason) => (None, reason),
        };
        Ok(Compiled { code, plan, reason, cache_outcome })
    }

    /// The proof that the direct path may be taken, or why the general one is.
    fn prove(&self, contract: &Contract, artefact: &Artefact) -> Result<Plan, String> {
        if self.config.call_path == Some(CallPath::General) {
            return Err("it was asked for".to_owned());
        }
        if artefact.version().is_none() {
            return Err("its interfaces are of several versions".to_owned());
        }
        proof::prove(contract, artefact.component())
    }

    fn compile_now(
        &self,
        contract: &Contract,
        artefact: &Artefact,
        proof: &Result<Plan, String>,
    ) -> Result<Code, SandboxError> {
        Self::check(contract, artefact)?;
        let code = self.code(artefact.component(), proof);
        code.map_err(|error| not_compiled(artefact, &error))
    }

    /// Holds a component against the contract.
    fn check(contract: &Contract, artefact: &Artefact) -> Result<(), SandboxError> {
        // With several versions there is no one text to hold it against; the engine compares each
        // import and export then.
        let Some(version) = artefact.version() else { return Ok(()) };
        program::check(contract, version, artefact.component())
            .map_err(|reason| contract.refuse(artefact.name(), reason))
    }

    fn code(&self, component: &[u8], proof: &Result<Plan, String>) -> wasmtime::Result<Code> {
        match proof {
            Ok(plan) => {
                Module::new(&self.engine, component.get(plan.program.clone()).unwrap_or(&[]))
                    .map(Code::Program)
            }
            Err(_) => Component::new(&self.engine, component).map(Code::Component),
        }
    }
}

fn not_compiled(artefact: &Artefact, error: &wasmtime::Error) -> SandboxError {
    let name = artefact.name().to_owned();
    SandboxError::Compile { name, reason: format!("{error:#}") }
}

fn tell(kind: &str, name: &str, outcome: &CacheOutcome) {
    match outcome {
        CacheOutcome::NotKept(why) => {
            tracing::warn!(name, "the compiled {kind} could not be kept: {why}");
        }
        CacheOutcome::Repaired => {
            tracing::warn!(name, "the compiled {kind} in the cache was damaged; made again");
        }
        CacheOutcome::Hit => tracing::debug!(name, "the compiled {kind} came from the cache"),
        CacheOutcome::Shipped => tracing::debug!(name, "the compiled {kind} came with the program"),
        CacheOutcome::Compiled | CacheOutcome::NoCache => {
            tracing::debug!(name, "the {kind} was compiled");
        }
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
