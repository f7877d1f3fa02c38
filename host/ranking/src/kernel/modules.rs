//! Running formula modules of one worker, cached from one day and one query to the next.

use std::sync::Arc;

use domain::fault::{FaultKind, Identity};
use domain::formula::{FormulaFault, FormulaRuntime};
use sandbox::{FormulaInstance, FormulaModule, SandboxError};

use crate::limits::MODULE_INSTANCES_MAX;
use crate::registry::BoundFormula;

/// Why a module did not compute a day.
#[derive(Debug)]
pub(crate) enum ModuleFault {
    /// The module failed.
    Fault(Box<FormulaFault>),
    /// The sandbox cannot make an instance of it.
    Sandbox(SandboxError),
}

impl From<Box<FormulaFault>> for ModuleFault {
    fn from(fault: Box<FormulaFault>) -> Self {
        Self::Fault(fault)
    }
}

struct CachedInstance {
    module: Arc<FormulaModule>,
    /// The bits of the values that it was configured with; none yet in a fresh instance.
    values: Option<Vec<u64>>,
    instance: FormulaInstance,
}

/// The instances, the last used one at the end; at most [`MODULE_INSTANCES_MAX`].
#[derive(Default)]
pub(super) struct InstanceCache {
    cached: Vec<CachedInstance>,
}

impl InstanceCache {
    /// Computes one day into `out`. An instance that fails is dropped.
    pub(super) fn evaluate(
        &mut self,
        bound: &BoundFormula,
        columns: &[&[f64]],
        out: &mut [f64],
    ) -> Result<(), ModuleFault> {
        let is_it = |cached: &CachedInstance| Arc::ptr_eq(&cached.module, bound.module());
        let mut cached = match self.cached.iter().position(is_it) {
            Some(index) => self.cached.remove(index),
            None => CachedInstance {
                module: Arc::clone(bound.module()),
                values: None,
                instance: bound
                    .module()
                    .instantiate(bound.module().limits())
                    .map_err(ModuleFault::Sandbox)?,
            },
        };
        cached.configure(bound)?;
        cached.instance.evaluate(columns, out)?;
        if self.cached.len() >= MODULE_INSTANCES_MAX {
            self.cached.remove(0);
        }
        self.cached.push(cached);
        Ok(())
    }
}

impl CachedInstance {
    /// Sets the parameters, unless it has them already.
    fn configure(&mut self, bound: &BoundFormula) -> Result<(), ModuleFault> {
        let wanted = Some(bound.values().iter().map(|value| value.to_bits()).collect());
        if self.values == wanted {
            return Ok(());
        }
        let inputs = self.instance.configure(bound.values())?;
        if inputs != bound.inputs() {
            let Identity { component, sha256 } = self.instance.identity();
            let text = "with the same parameters it reads other columns than before".to_owned();
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

impl std::fmt::Debug for InstanceCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InstanceCache").field("cached", &self.cached.len()).finish()
    }
}
