//! Running formula modules of one worker, kept from one day and one query to the next.

use std::sync::Arc;

use domain::formula::{FormulaFault, FormulaRuntime};
use domain::strategy::{FaultKind, Identity};
use sandbox::{FormulaInstance, FormulaModule, Limits, SandboxError};

use crate::limits::MODULES_KEPT;
use crate::registry::BoundFormula;

/// Why a module did not compute a day.
#[derive(Debug)]
pub(crate) enum ModuleFault {
    /// It failed.
    Fault(Box<FormulaFault>),
    /// There is no room for it.
    Sandbox(SandboxError),
}

impl From<Box<FormulaFault>> for ModuleFault {
    fn from(fault: Box<FormulaFault>) -> Self {
        Self::Fault(fault)
    }
}

struct Kept {
    module: Arc<FormulaModule>,
    /// The bits of the values that it was configured with; none yet in a fresh instance.
    values: Option<Vec<u64>>,
    instance: FormulaInstance,
}

/// The instances, the last used one at the end; at most [`MODULES_KEPT`].
#[derive(Default)]
pub(super) struct Modules {
    kept: Vec<Kept>,
}

impl Modules {
    /// Computes one day into `out`. An instance that fails is dropped.
    pub(super) fn evaluate(
        &mut self,
        bound: &BoundFormula,
        columns: &[&[f64]],
        out: &mut [f64],
    ) -> Result<(), ModuleFault> {
        let is_it = |kept: &Kept| Arc::ptr_eq(&kept.module, bound.module());
        let mut kept = match self.kept.iter().position(is_it) {
            Some(place) => self.kept.remove(place),
            None => Kept {
                module: Arc::clone(bound.module()),
                values: None,
                instance: bound
                    .module()
                    .instantiate(Limits::formula())
                    .map_err(ModuleFault::Sandbox)?,
            },
        };
        kept.configure(bound)?;
        kept.instance.evaluate(columns, out)?;
        if self.kept.len() >= MODULES_KEPT {
            self.kept.remove(0);
        }
        self.kept.push(kept);
        Ok(())
    }
}

impl Kept {
    /// Sets the parameters, unless it has them already.
    fn configure(&mut self, bound: &BoundFormula) -> Result<(), ModuleFault> {
        let wanted = Some(bound.values().iter().map(|value| value.to_bits()).collect());
        if self.values == wanted {
            return Ok(());
        }
        let inputs = self.instance.configure(bound.values())?;
        if inputs != bound.inputs() {
            let Identity { component, sha256 } = self.instance.identity();
            let text = "it reads other columns than before with the same parameters".to_owned();
            return Err(ModuleFault::Fault(Box::new(FormulaFault {
                component,
                sha256,
                export: "configure",
                kind: FaultKind::Protocol(text),
                backtrace: Vec::new(),
            })));
        }
        self.values = wanted;
        Ok(())
    }
}

impl std::fmt::Debug for Modules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Modules").field("kept", &self.kept.len()).finish()
    }
}
