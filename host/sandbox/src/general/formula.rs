//! Formula modules on the general path: linked, made and called.

use domain::fault::FaultKind;
use domain::formula::{Column, FormulaDescription, FormulaInput, FormulaParameter};
use wasmtime::component::{Component, Linker};
use wasmtime::{Result, Store};

use super::HOST_BYTES_PER_BYTE;
use super::formula_bindings as bindings;
use super::to_guest::same_cases;
use crate::abi::{DESCRIPTION_BYTES, INPUT_BYTES, PARAMETER_BYTES};
use crate::calls::FormulaCalls;
use crate::state::State;
use bindings::exports::kumiki::formula::guest as wit;

same_cases!(wit::Column => Column { Open, High, Low, Close, Volume });

/// A formula module that can be instantiated.
pub(crate) struct FormulaReady(bindings::FormulaPre<State>);

impl FormulaReady {
    /// A component, linked with nothing: a formula imports nothing.
    pub(crate) fn new(component: &Component) -> Result<Self> {
        let linker = Linker::new(component.engine());
        bindings::FormulaPre::new(linker.instantiate_pre(component)?).map(Self)
    }

    pub(crate) fn instantiate(&self, store: &mut Store<State>) -> Result<Formula> {
        let bytes = store.data().limits.result_bytes;
        store.set_hostcall_fuel(bytes.saturating_mul(HOST_BYTES_PER_BYTE));
        self.0.instantiate(store).map(Formula)
    }
}

/// One running formula module.
pub(crate) struct Formula(bindings::Formula);

impl FormulaCalls for Formula {
    fn describe(&self, store: &mut Store<State>) -> Result<FormulaDescription> {
        let found = self.0.kumiki_formula_guest().call_describe(&mut *store)?;
        let of_parameter =
            |one: &wit::Parameter| PARAMETER_BYTES + one.name.len() + one.description.len();
        let texts = found.name.len() + found.version.len() + found.summary.len();
        let parameters: usize = found.parameters.iter().map(of_parameter).sum();
        spend(store, DESCRIPTION_BYTES + texts + parameters)?;
        Ok(FormulaDescription {
            name: found.name,
            version: found.version,
            summary: found.summary,
            parameters: found.parameters.into_iter().map(parameter).collect(),
        })
    }

    fn configure(
        &self,
        store: &mut Store<State>,
        values: &[f64],
    ) -> Result<Result<Vec<FormulaInput>, String>> {
        let found = self.0.kumiki_formula_guest().call_configure(&mut *store, values)?;
        let bytes = found.as_ref().map_or_else(String::len, |inputs| inputs.len() * INPUT_BYTES);
        spend(store, bytes)?;
        Ok(found.map(|inputs| inputs.into_iter().map(input).collect()))
    }

    fn evaluate(
        &self,
        store: &mut Store<State>,
        columns: &[&[f64]],
        out: &mut [f64],
    ) -> Result<()> {
        let rows = u32::try_from(out.len())?;
        let values = columns.concat();
        let answer = self.0.kumiki_formula_guest().call_evaluate(&mut *store, rows, &values)?;
        spend(store, size_of_val(&answer[..]))?;
        if answer.len() != out.len() {
            let length = answer.len();
            let text = format!("it answered {length} values for {rows} rows");
            return store.data_mut().breach(FaultKind::Protocol(text));
        }
        out.copy_from_slice(&answer);
        Ok(())
    }
}

/// Counts what was copied out of the module's memory.
fn spend(store: &mut Store<State>, bytes: usize) -> Result<()> {
    let state = store.data_mut();
    let taken = state.spend(bytes);
    taken.or_else(|kind| state.breach(kind))
}

fn parameter(parameter: wit::Parameter) -> FormulaParameter {
    FormulaParameter {
        name: parameter.name,
        description: parameter.description,
        default: parameter.default_value,
        minimum: parameter.minimum,
        maximum: parameter.maximum,
    }
}

fn input(input: wit::Input) -> FormulaInput {
    FormulaInput {
        column: input.column.into(),
        first_lag: input.first_lag,
        last_lag: input.last_lag,
    }
}
