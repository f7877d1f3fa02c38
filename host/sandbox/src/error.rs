//! Why a component cannot be run at all. Faults while it runs are [`domain::strategy::Fault`].

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a component cannot be run.
#[derive(Debug, Error)]
pub enum SandboxError {
    /// The engine does not start on this machine.
    #[error("the WebAssembly engine does not start: {0}")]
    Engine(String),
    /// The file cannot be read.
    #[error("cannot read the strategy {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is larger than allowed.
    #[error("the strategy {path} has {found} bytes; {allowed} are allowed")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        found: u64,
        /// The limit.
        allowed: u64,
    },
    /// The file is no WebAssembly.
    #[error("{name} is not WebAssembly: {reason}")]
    NotWasm {
        /// Name of the component.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A core module without the contract's description inside.
    #[error(
        "{name} is a core module that does not say which contract it follows ({reason}); build it \
         with the Kumiki SDK, or make it a component with `wasm-tools component new`"
    )]
    NotAComponent {
        /// Name of the component.
        name: String,
        /// What is missing.
        reason: String,
    },
    /// It wants something that strategies do not get.
    #[error(
        "{name} imports `{import}`; a strategy may import only {allowed}. It gets no clock, no \
         randomness, no files and no network{hint}"
    )]
    ForeignImport {
        /// Name of the component.
        name: String,
        /// What it wants.
        import: String,
        /// What there is.
        allowed: String,
        /// What to do about it, where that is known.
        hint: &'static str,
    },
    /// It is a component, but no strategy of this contract.
    #[error("{name} does not export `{export}`; it is no Kumiki strategy of version 1: {reason}")]
    NotAStrategy {
        /// Name of the component.
        name: String,
        /// What is missing.
        export: &'static str,
        /// The linker's words.
        reason: String,
    },
    /// It does not compile.
    #[error("{name} does not compile: {reason}")]
    Compile {
        /// Name of the component.
        name: String,
        /// The compiler's words.
        reason: String,
    },
}
