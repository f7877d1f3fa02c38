//! One running formula module.

use domain::fault::{FaultKind, Identity};
use domain::formula::{FormulaDescription, FormulaFault, FormulaInput, FormulaRuntime};
use domain::limits::FORMULA_FUEL_PER_VALUE;
use wasmtime::{Result, Store};

use super::description;
use super::exports::Exports;
use crate::calls::{Either, FormulaCalls};
use crate::fault::Failure;
use crate::general::Formula;
use crate::running::Running;
use crate::state::State;

/// The two ways of calling a formula module.
type Calls = Either<Exports, Formula>;

/// One running module, with its own memory. After a fault it refuses every further call.
pub struct FormulaInstance {
    running: Running<Calls>,
}

impl FormulaInstance {
    pub(crate) fn new(running: Running<Calls>) -> Self {
        Self { running }
    }

    /// Fuel used so far by all calls; the same on every machine and every run.
    #[must_use]
    pub const fn fuel_used(&self) -> u64 {
        self.running.fuel_used()
    }

    fn fuel_per_day(&self) -> u64 {
        self.running.store.data().limits.fuel_per_event
    }

    /// What the module says of itself, held against the limits.
    pub(crate) fn describe(&mut self) -> Result<FormulaDescription, Box<FormulaFault>> {
        let found = self.call("describe", self.fuel_per_day(), Calls::describe)?;
        match description::check(&found) {
            Ok(()) => Ok(found),
            Err(kind) => Err(self.breach("describe", kind)),
        }
    }

    #[inline]
    fn call<R>(
        &mut self,
        export: &'static str,
        fuel: u64,
        act: impl FnOnce(&Calls, &mut Store<State>) -> Result<R>,
    ) -> Result<R, Box<FormulaFault>> {
        let outcome = self.running.call(fuel, act);
        outcome.map_err(|failure| self.fault_of(export, *failure))
    }

    #[cold]
    fn fault_of(&self, export: &'static str, failure: Failure) -> Box<FormulaFault> {
        let Identity { component, sha256 } = self.running.identity();
        let Failure { export: elsewhere, kind, backtrace, .. } = failure;
        let export = elsewhere.unwrap_or(export);
        Box::new(FormulaFault { component, sha256, export, kind, backtrace })
    }

    #[cold]
    fn breach(&mut self, export: &'static str, kind: FaultKind) -> Box<FormulaFault> {
        let failure = self.running.breach(kind);
        self.fault_of(export, *failure)
    }
}

impl FormulaRuntime for FormulaInstance {
    fn identity(&self) -> Identity {
        self.running.identity()
    }

    fn configure(&mut self, values: &[f64]) -> Result<Vec<FormulaInput>, Box<FormulaFault>> {
        let configured = self.call("configure", self.fuel_per_day(), |calls, store| {
            calls.configure(store, values)
        })?;
        let inputs =
            configured.map_err(|text| self.breach("configure", FaultKind::Refused(text)))?;
        match description::check_inputs(&inputs) {
            Ok(()) => Ok(inputs),
            Err(kind) => Err(self.breach("configure", kind)),
        }
    }

    #[inline]
    fn evaluate(&mut self, columns: &[&[f64]], out: &mut [f64]) -> Result<(), Box<FormulaFault>> {
        let values = columns.len().saturating_mul(out.len()) as u64;
        let fuel =
            self.fuel_per_day().saturating_add(FORMULA_FUEL_PER_VALUE.saturating_mul(values));
        self.call("evaluate", fuel, |calls, store| calls.evaluate(store, columns, out))
    }
}
