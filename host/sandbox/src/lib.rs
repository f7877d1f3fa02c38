//! Runs strategies, formula modules and dialects of brokers and gateways as WebAssembly components. This is the
//! only crate that knows wasmtime.
//!
//! - [`Sandbox`] holds the engine, one configuration for live trading and replay alike, and turns a
//!   file into a [`StrategyModule`]: size, imports and exports checked, compiled once and kept in a
//!   cache under the component's SHA-256 and the engine's version.
//! - [`StrategyInstance`] is one running strategy behind [`domain::strategy::StrategyRuntime`]:
//!   limits on memory, tables, stack, fuel, actions, log and results; every breach is a typed
//!   [`domain::fault::Fault`].
//!
//! - [`FormulaModule`] and [`FormulaInstance`] are the same for formula modules, behind
//!   [`domain::formula::FormulaRuntime`]. One engine, one cache, the same limits and faults.
//! - [`DialectModule`] and [`DialectInstance`] are the same for dialects of brokers, behind
//!   [`domain::order_mapping::OrderMapping`], on the general path alone; [`GatewayDialectModule`] and
//!   [`GatewayDialectInstance`] for those of local gateways, behind [`domain::gateway_mapping::GatewayMapping`].
//!
//! A component is compiled beside the thread that waits for it (`compiler`), within a deadline and after what there
//! is to it (`extent`) and the cost of its functions (`complexity`) were counted, because a few kilobytes can keep a
//! compiler for minutes.
//!
//! There are two ways of calling a guest, behind one trait for each contract (`calls`). *Direct*: the
//! program inside the component is called through `abi`, the canonical ABI of the contract's types;
//! a component call of the engine costs ten times as much. It is taken when `proof` shows from the
//! component's bytes that it is the same. *General*: the engine calls the component, whatever it is
//! made of, through bindings that are generated from the contract's text.
//!
//! In a strict replay each trade is a call, and getting in and out of the engine costs more than the trade. There a
//! module of the host's own keeps a batch of trades inside the engine and calls the strategy on the direct path for
//! each (`feeder`).
//!
//! A contract needs the general path only: its text in `wit`, a value in `contract`, generated bindings
//! and conversions in `general`, and a runtime trait in `domain`.
//!
//! A strategy gets no clock, no randomness, no files and no network: nothing but the contract in
//! `wit/strategy` exists in the linker, and a component that wants more is refused by name. Formulas and
//! dialects get nothing at all.

mod abi;
mod artefact;
mod cache;
mod calls;
mod compiler;
mod complexity;
mod config;
mod contract;
mod dialect;
mod engine;
mod error;
mod exports;
mod extent;
mod fault;
mod feeder;
mod formula;
mod general;
mod imports;
mod instance;
mod program;
mod proof;
mod reach;
mod running;
mod state;
mod strategy;
mod version;
mod watchdog;

/// The engine and its version, as manifests name it: results may depend on it.
pub const ENGINE: &str = "wasmtime 48.0.8";

pub use artefact::{Artefact, sha256};
pub use cache::{CacheOutcome, CompileCache};
pub use config::{CallPath, Limits, SandboxConfig};
pub use dialect::{DialectInstance, DialectModule, GatewayDialectInstance, GatewayDialectModule};
pub use engine::Sandbox;
pub use error::SandboxError;
pub use formula::{FormulaInstance, FormulaModule};
pub use instance::StrategyInstance;
pub use strategy::StrategyModule;

#[cfg(test)]
mod tests {
    #[test]
    fn the_engine_has_the_version_that_is_named() {
        let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
        let lock = std::fs::read_to_string(lock).unwrap();
        let version = super::ENGINE.strip_prefix("wasmtime ").unwrap();
        let entry = format!("name = \"wasmtime\"\nversion = \"{version}\"\n");
        assert!(lock.contains(&entry), "Cargo.lock has another wasmtime than {version}");
    }
}
