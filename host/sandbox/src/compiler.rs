//! Compiles a component beside the thread that waits for it: for as long as is allowed, and no longer
//! than somebody wants it.
//!
//! A compiler cannot be interrupted. One that takes too long is left alone and ends with the process;
//! what it can still take is bounded by how much there is to the component ([`Artefact`] counts that before
//! anything else) and by the cost of its functions.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use domain::clock::Stopwatch;
use domain::fault::{FaultKind, Identity};
use wasmtime::component::Component;
use wasmtime::{Engine, Module};

use crate::artefact::Artefact;
use crate::cache::Code;
use crate::complexity::{self, Allowed, Costly};
use crate::config::Limits;
use crate::contract::Contract;
use crate::error::SandboxError;
use crate::program;

/// What a fault names as the call that failed.
const COMPILE: &str = "compile";
/// How often somebody is asked whether it is still wanted.
const ASK_EVERY: Duration = Duration::from_millis(10);
/// Stack of the thread: that of a main thread.
const STACK_BYTES: usize = 8 << 20;

/// A component that is to be compiled.
pub(crate) struct Compiler {
    pub(crate) engine: Engine,
    pub(crate) contract: &'static Contract,
    pub(crate) artefact: Arc<Artefact>,
    /// The program inside, where it is called directly.
    pub(crate) program: Option<Range<usize>>,
    pub(crate) limits: Limits,
}

impl Compiler {
    /// Compiles it, unless it takes longer than allowed or `stopped` says yes meanwhile.
    ///
    /// # Errors
    /// When it is not of its contract or not valid, costs or takes too much, or was stopped.
    pub(crate) fn run(self, stopped: &dyn Fn() -> bool) -> Result<Code, SandboxError> {
        let allowed_ms = self.limits.compile_ms;
        let (contract, artefact) = (self.contract, Arc::clone(&self.artefact));
        let too_long = || {
            let kind = FaultKind::CompileTime { allowed_ms };
            contract.fault(artefact.name(), artefact.sha256(), kind)
        };
        let allowed = Duration::from_millis(allowed_ms);
        let watch = Stopwatch::start();
        let (sender, receiver) = sync_channel(1);
        let thread = thread::Builder::new().name("compile".to_owned()).stack_size(STACK_BYTES);
        thread
            .spawn(move || self.compile(&sender))
            .map_err(|error| SandboxError::Engine(error.to_string()))?;
        loop {
            let left = allowed.saturating_sub(watch.elapsed());
            match receiver.recv_timeout(ASK_EVERY.min(left)) {
                Ok(Err(error)) => return Err(error),
                Ok(Ok(code)) if watch.elapsed() <= allowed => return Ok(code),
                Err(RecvTimeoutError::Timeout) if stopped() => return Err(SandboxError::Stopped),
                Err(RecvTimeoutError::Timeout) if watch.elapsed() <= allowed => {}
                Ok(_) | Err(RecvTimeoutError::Timeout) => return Err(too_long()),
                Err(RecvTimeoutError::Disconnected) => {
                    let reason = "the compiler stopped".to_owned();
                    return Err(not_compiled(&artefact, reason));
                }
            }
        }
    }

    fn compile(self, sender: &SyncSender<Result<Code, SandboxError>>) {
        // Nobody listens any more where it took too long.
        let _ = sender.send(self.compiled());
    }

    fn compiled(&self) -> Result<Code, SandboxError> {
        check(self.contract, &self.artefact)?;
        self.check_cost(Allowed::of(&self.limits))?;
        code(&self.engine, self.artefact.component(), self.program.as_ref())
            .map_err(|error| not_compiled(&self.artefact, format!("{error:#}")))
    }

    /// Holds what its functions cost against limits.
    pub(crate) fn check_cost(&self, allowed: Allowed) -> Result<(), SandboxError> {
        let kind = match complexity::costly(self.artefact.component(), allowed) {
            Ok(None) => return Ok(()),
            Ok(Some(Costly::Function { index, used })) => {
                FaultKind::CompileCost { function: index, used, allowed: allowed.function }
            }
            Ok(Some(Costly::Constants { used })) => {
                FaultKind::CompileConstants { used, allowed: allowed.function }
            }
            Ok(Some(Costly::Functions { used })) => {
                FaultKind::CompileCosts { used, allowed: allowed.functions }
            }
            Err(error) => return Err(not_compiled(&self.artefact, error.to_string())),
        };
        let (name, sha256) = (self.artefact.name(), self.artefact.sha256());
        Err(self.contract.fault(name, sha256, kind))
    }
}

/// Holds a component against the contract.
pub(crate) fn check(contract: &Contract, artefact: &Artefact) -> Result<(), SandboxError> {
    // With several versions there is no one text to hold it against; the engine compares each
    // import and export then.
    let Some(version) = artefact.version() else { return Ok(()) };
    program::check(contract, version, artefact.component())
        .map_err(|reason| contract.refuse(artefact.name(), reason))
}

/// The code of a component, or of the program inside.
pub(crate) fn code(
    engine: &Engine,
    component: &[u8],
    program: Option<&Range<usize>>,
) -> wasmtime::Result<Code> {
    match program {
        Some(program) => {
            let bytes = component.get(program.clone()).unwrap_or(&[]);
            Module::new(engine, bytes).map(Code::Program)
        }
        None => Component::new(engine, component).map(Code::Component),
    }
}

pub(crate) fn not_compiled(artefact: &Artefact, reason: String) -> SandboxError {
    SandboxError::Compile { name: artefact.name().to_owned(), reason }
}

impl Contract {
    /// What a component of this contract did wrong while it was compiled, or before.
    pub(crate) fn fault(&self, name: &str, sha256: &str, kind: FaultKind) -> SandboxError {
        let identity = Identity { component: name.to_owned(), sha256: sha256.to_owned() };
        (self.fault_of)(identity, COMPILE, kind)
    }
}
