//! The engine, and how components are made ready to run: which way they are called, and their code
//! from the cache or compiled now.

#[cfg(test)]
mod mutants;
#[cfg(test)]
mod third_world;

use std::path::Path;
use std::sync::Arc;

use wasmtime::{Config, Engine, OperatorCost, OptLevel};

use crate::artefact::Artefact;
use crate::cache::{CacheOutcome, CompileCache, Compiled};
use crate::compiler::Compiler;
use crate::complexity::Allowed;
use crate::config::{CallPath, Limits, SandboxConfig};
use crate::contract::{self, Contract};
use crate::dialect::{DialectModule, GatewayDialectModule};
use crate::error::SandboxError;
use crate::feeder::FeederModules;
use crate::formula::FormulaModule;
use crate::general::StrategyLinker;
use crate::proof::{self, Plan};
use crate::running::Origin;
use crate::strategy::StrategyModule;
use crate::watchdog::Watchdogs;

/// The engine with its one configuration, used in live trading and in replay alike.
pub struct Sandbox {
    engine: Engine,
    strategies: StrategyLinker,
    watchdogs: Arc<Watchdogs>,
    feeders: Arc<FeederModules>,
    config: SandboxConfig,
    cache: Option<CompileCache>,
    shipped: Option<CompileCache>,
    formula_cache: Option<CompileCache>,
    dialect_cache: Option<CompileCache>,
    gateway_cache: Option<CompileCache>,
}

/// What a component is made ready for, and within which bounds.
struct Task<'a> {
    contract: &'static Contract,
    limits: Limits,
    cache: Option<&'a CompileCache>,
    shipped: Option<&'a CompileCache>,
    stopped: &'a dyn Fn() -> bool,
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
        let dialect_cache = cache(&contract::ORDER_MAPPING);
        let gateway_cache = cache(&contract::GATEWAY_MAPPING);
        let (cache, formula_cache) = (cache(&contract::STRATEGY), cache(&contract::FORMULA));
        let shipped = config.shipped_folder.as_deref();
        let shipped = shipped.map(|path| CompileCache::new(path, &engine, &contract::STRATEGY));
        let watchdogs = Arc::new(Watchdogs::of(engine.weak()));
        Ok(Self {
            engine,
            strategies,
            watchdogs,
            feeders: Arc::new(FeederModules::new(cache.clone())),
            config,
            cache,
            shipped,
            formula_cache,
            dialect_cache,
            gateway_cache,
        })
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
        self.load_unless(path, &|| false)
    }

    /// The same, as long as `stopped` says no.
    ///
    /// # Errors
    /// [`SandboxError::Stopped`] besides.
    pub fn load_unless(
        &self,
        path: &Path,
        stopped: &dyn Fn() -> bool,
    ) -> Result<StrategyModule, SandboxError> {
        self.prepare_unless(Artefact::read(path, self.config.component_bytes)?, stopped)
    }

    /// Makes a component that is already in memory ready to run.
    ///
    /// # Errors
    /// When it is no strategy.
    pub fn prepare(&self, artefact: Artefact) -> Result<StrategyModule, SandboxError> {
        self.prepare_unless(artefact, &|| false)
    }

    fn prepare_unless(
        &self,
        artefact: Artefact,
        stopped: &dyn Fn() -> bool,
    ) -> Result<StrategyModule, SandboxError> {
        let task = Task {
            contract: &contract::STRATEGY,
            limits: self.config.strategy_limits,
            cache: self.cache.as_ref(),
            shipped: self.shipped.as_ref(),
            stopped,
        };
        let origin = self.origin(artefact);
        let compiled = self.compile(&origin.artefact, &task)?;
        StrategyModule::new(&self.strategies, compiled, origin)
    }

    /// Reads a formula module's file and makes it ready to run.
    ///
    /// # Errors
    /// When it cannot be read, is no formula, or imports anything.
    pub fn load_formula(&self, path: &Path) -> Result<FormulaModule, SandboxError> {
        let artefact = Artefact::read_as(&contract::FORMULA, path, self.config.component_bytes)?;
        self.prepare_formula(artefact, &|| false)
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
        self.formula_from_bytes_unless(name, bytes, &|| false)
    }

    /// The same, as long as `stopped` says no.
    ///
    /// # Errors
    /// [`SandboxError::Stopped`] besides.
    pub fn formula_from_bytes_unless(
        &self,
        name: &str,
        bytes: Vec<u8>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<FormulaModule, SandboxError> {
        self.prepare_formula(Artefact::from_bytes_as(&contract::FORMULA, name, bytes)?, stopped)
    }

    fn prepare_formula(
        &self,
        artefact: Artefact,
        stopped: &dyn Fn() -> bool,
    ) -> Result<FormulaModule, SandboxError> {
        let task = Task {
            contract: &contract::FORMULA,
            limits: self.config.formula_limits,
            cache: self.formula_cache.as_ref(),
            shipped: None,
            stopped,
        };
        let origin = self.origin(artefact);
        let compiled = self.compile(&origin.artefact, &task)?;
        FormulaModule::new(compiled, origin, self.config.formula_limits)
    }

    /// Reads a dialect's file and makes it ready to run.
    ///
    /// # Errors
    /// When it cannot be read, is no dialect, imports anything, or does not describe itself within the
    /// limits.
    pub fn load_dialect(&self, path: &Path) -> Result<DialectModule, SandboxError> {
        let bytes_max = self.config.component_bytes;
        self.prepare_dialect(Artefact::read_as(&contract::ORDER_MAPPING, path, bytes_max)?)
    }

    /// Makes a dialect that is already in memory ready to run.
    ///
    /// # Errors
    /// As [`Self::load_dialect`].
    pub fn dialect_from_bytes(
        &self,
        name: &str,
        bytes: Vec<u8>,
    ) -> Result<DialectModule, SandboxError> {
        self.prepare_dialect(Artefact::from_bytes_as(&contract::ORDER_MAPPING, name, bytes)?)
    }

    fn prepare_dialect(&self, artefact: Artefact) -> Result<DialectModule, SandboxError> {
        let task = Task {
            contract: &contract::ORDER_MAPPING,
            limits: self.config.dialect_limits,
            cache: self.dialect_cache.as_ref(),
            shipped: None,
            stopped: &|| false,
        };
        let origin = self.origin(artefact);
        let compiled = self.compile(&origin.artefact, &task)?;
        DialectModule::new(compiled, origin, self.config.dialect_limits)
    }

    /// Reads the file of a gateway's dialect and makes it ready to run.
    ///
    /// # Errors
    /// As [`Self::load_dialect`].
    pub fn load_gateway_dialect(&self, path: &Path) -> Result<GatewayDialectModule, SandboxError> {
        let bytes_max = self.config.component_bytes;
        self.prepare_gateway(Artefact::read_as(&contract::GATEWAY_MAPPING, path, bytes_max)?)
    }

    /// Makes a gateway's dialect that is already in memory ready to run.
    ///
    /// # Errors
    /// As [`Self::load_dialect`].
    pub fn gateway_dialect_from_bytes(
        &self,
        name: &str,
        bytes: Vec<u8>,
    ) -> Result<GatewayDialectModule, SandboxError> {
        self.prepare_gateway(Artefact::from_bytes_as(&contract::GATEWAY_MAPPING, name, bytes)?)
    }

    fn prepare_gateway(&self, artefact: Artefact) -> Result<GatewayDialectModule, SandboxError> {
        let task = Task {
            contract: &contract::GATEWAY_MAPPING,
            limits: self.config.gateway_limits,
            cache: self.gateway_cache.as_ref(),
            shipped: None,
            stopped: &|| false,
        };
        let origin = self.origin(artefact);
        let compiled = self.compile(&origin.artefact, &task)?;
        GatewayDialectModule::new(compiled, origin, self.config.gateway_limits)
    }

    /// What every instance of this component shares.
    fn origin(&self, artefact: Artefact) -> Origin {
        Origin {
            engine: self.engine.clone(),
            watchdogs: Arc::clone(&self.watchdogs),
            artefact: Arc::new(artefact),
            feeders: Arc::clone(&self.feeders),
            stack_bytes: self.config.stack_bytes,
        }
    }

    /// A component's code: from the cache, from what came with the program, or compiled now.
    fn compile(&self, artefact: &Arc<Artefact>, task: &Task<'_>) -> Result<Compiled, SandboxError> {
        let &Task { contract, limits, cache, shipped, stopped } = task;
        let (kind, name) = (contract.kind, artefact.name());
        let proof = self.prove(contract, artefact);
        let path = match &proof {
            Ok(_) => CallPath::Direct,
            Err(reason)
                if contract.is_called_directly
                    && self.config.call_path == Some(CallPath::Direct) =>
            {
                let name = name.to_owned();
                return Err(SandboxError::NotDirect { name, reason: reason.clone() });
            }
            Err(_) => CallPath::General,
        };
        let program = proof.as_ref().ok().map(|plan| plan.program.clone());
        let engine = self.engine.clone();
        let compiler =
            Compiler { engine, contract, artefact: Arc::clone(artefact), program, limits };
        // What is kept under its plain name is within the default of what functions may cost; what is not has the
        // limits in its name. So the same is refused whether or not it was compiled before.
        let (usual, asked) = (Allowed::USUAL, Allowed::of(&limits));
        let plain = artefact.sha256().to_owned();
        let raised =
            asked.exceeds(usual).then(|| format!("{plain}-{}-{}", asked.function, asked.functions));
        let kept = |cache: &CompileCache| {
            let names = [Some(&plain), raised.as_ref()];
            names.into_iter().flatten().find_map(|name| cache.load(&self.engine, name, path))
        };
        let found = cache.and_then(kept).map(|code| (code, CacheOutcome::Hit));
        let found = found.or_else(|| Some((shipped.and_then(kept)?, CacheOutcome::Shipped)));
        let (code, cache_outcome) = if let Some(found) = found {
            if usual.exceeds(asked) {
                compiler.check_cost(asked)?;
            }
            found
        } else {
            let kept_as = match &raised {
                Some(raised) if compiler.check_cost(usual).is_err() => raised,
                _ => &plain,
            };
            let code = compiler.run(stopped)?;
            let store = |cache: &CompileCache| cache.store(kept_as, path, &code);
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
        if !contract.is_called_directly {
            return Err("its contract has no other way".to_owned());
        }
        if self.config.call_path == Some(CallPath::General) {
            return Err("it was asked for".to_owned());
        }
        if artefact.version().is_none() {
            return Err("its interfaces are of several versions".to_owned());
        }
        proof::prove(contract, artefact.component())
    }
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

/// Fuel of growing a memory or a table, whatever comes of it.
const GROW_FUEL: u8 = 100;
/// Fuel of an operation on many bytes or elements, besides what they cost.
const BULK_FUEL: u8 = 20;

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
        .operator_cost(OperatorCost {
            // They leave the guest's code, also where there is nothing to do.
            MemoryGrow: GROW_FUEL,
            TableGrow: GROW_FUEL,
            MemoryCopy: BULK_FUEL,
            MemoryFill: BULK_FUEL,
            MemoryInit: BULK_FUEL,
            TableCopy: BULK_FUEL,
            TableFill: BULK_FUEL,
            TableInit: BULK_FUEL,
            ..OperatorCost::default()
        })
        .cranelift_opt_level(OptLevel::Speed)
        .max_wasm_stack(config.stack_bytes);
    if let Some(bytes) = config.memory_reservation_bytes {
        engine.memory_reservation(bytes);
    }
    engine
}
