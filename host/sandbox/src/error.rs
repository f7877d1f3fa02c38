//! Why a component cannot be run at all. Faults while it runs are [`domain::fault::Fault`].

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
    #[error("cannot read the {kind} {path}: {source}")]
    Read {
        /// What it should be.
        kind: &'static str,
        /// Path of the file, as it was given.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is larger than allowed.
    #[error("the {kind} {path} has {found} bytes; {allowed} are allowed")]
    TooLarge {
        /// What it should be.
        kind: &'static str,
        /// Path of the file, as it was given.
        path: PathBuf,
        /// Size of the file in bytes.
        found: u64,
        /// Largest size in bytes, see `SandboxConfig::component_bytes`.
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
        "{name} is a core module that does not say which contract it follows (it has no \
         `component-type` section); build it with the Kumiki SDK, or make it a component with \
         `wasm-tools component new`"
    )]
    NotAComponent {
        /// Name of the component.
        name: String,
    },
    /// A core module that is not what its description of the contract says, or not valid.
    #[error("{name} is a core module that cannot be made a component: {reason}")]
    NotEncoded {
        /// Name of the component.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It wants something that such components do not get.
    #[error(
        "{name} imports `{import}`; a {kind} may import {allowed}. It gets no clock, no \
         randomness, no files and no network{hint}"
    )]
    ForeignImport {
        /// What it should be.
        kind: &'static str,
        /// Name of the component.
        name: String,
        /// What it wants.
        import: String,
        /// What there is.
        allowed: &'static str,
        /// What to do about it, where that is known.
        hint: &'static str,
    },
    /// A strategy has a callback for what it never gets.
    #[error(
        "{name} exports `{export}`; strategies get no order books and no quotes, neither in a replay nor live. \
         Take it out, and decide by trades and bars"
    )]
    QuoteCallback {
        /// Name of the component.
        name: String,
        /// What it exports.
        export: String,
    },
    /// It is made for another version of the contract.
    #[error(
        "{name} is built for `{interface}`; this Kumiki runs {} of every version {}.x. Build it for that, or \
         take a newer Kumiki",
        plural(.kind),
        .version.split('.').next().unwrap_or_default()
    )]
    OtherVersion {
        /// What it should be.
        kind: &'static str,
        /// Name of the component.
        name: String,
        /// The interface that it imports or exports, with its version.
        interface: String,
        /// The version of this host.
        version: &'static str,
    },
    /// The direct path was asked for, and it is not proven that it can be taken.
    #[error("{name} cannot be called directly: {reason}")]
    NotDirect {
        /// Name of the component.
        name: String,
        /// What stands against it.
        reason: String,
    },
    /// It is a component, but not of this contract.
    #[error("{name} does not export `{export}`; it is no Kumiki {kind} of version 1: {reason}")]
    NotOfContract {
        /// What it should be.
        kind: &'static str,
        /// Name of the component.
        name: String,
        /// What is missing.
        export: &'static str,
        /// What is missing or of another type, as the check of the contract says.
        reason: String,
    },
    /// A strategy was too much to compile.
    #[error("{0}")]
    Fault(#[from] Box<domain::fault::Fault>),
    /// A formula module was too much to compile, or failed while it was asked what it is.
    #[error("{0}")]
    Formula(#[from] Box<domain::formula::FormulaFault>),
    /// A dialect, of a broker or a gateway, was too much to compile, or failed while it was asked what it is.
    #[error("{0}")]
    Dialect(#[from] Box<domain::order_mapping::MappingFault>),
    /// Nobody wanted it any more.
    #[error("interrupted while it was compiled")]
    Stopped,
    /// It does not compile.
    #[error("{name} does not compile: {reason}")]
    Compile {
        /// Name of the component.
        name: String,
        /// What the compiler says.
        reason: String,
    },
}

fn plural(kind: &str) -> String {
    match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{kind}s"),
    }
}
