//! The component's side of the contract: generated bindings and the conversions around them.

use crate::day::Day;
use crate::model::{Column, Formula, Input, Values};

#[expect(missing_docs, reason = "generated; the contract in wit/formula documents every item")]
#[expect(clippy::allow_attributes_without_reason, reason = "generated")]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit/formula",
        world: "formula",
        pub_export_macro: true,
        export_macro_name: "export",
        default_bindings_module: "kumiki_formula_sdk::wasm::bindings",
    });
}

pub use bindings::export;

use bindings::exports::kumiki::formula::guest as wit;

/// Where a component keeps its formula; [`crate::register_formula!`] implements it.
pub trait Slot {
    /// The formula.
    type Formula: Formula;

    /// Gives access to the one formula of the component.
    fn with<R>(act: impl FnOnce(&mut Option<Machine<Self::Formula>>) -> R) -> R;
}

/// A formula with its inputs.
pub struct Machine<F> {
    formula: F,
    inputs: Vec<Input>,
}

impl<T: Slot> wit::Guest for T {
    fn describe() -> wit::Description {
        let own = T::Formula::DESCRIPTION;
        let parameters = own.parameters.iter().map(|parameter| wit::Parameter {
            name: parameter.name.to_owned(),
            description: parameter.description.to_owned(),
            default_value: parameter.default,
            minimum: parameter.minimum,
            maximum: parameter.maximum,
        });
        wit::Description {
            name: own.name.to_owned(),
            version: own.version.to_owned(),
            summary: own.summary.to_owned(),
            parameters: parameters.collect(),
        }
    }

    fn configure(values: Vec<f64>) -> Result<Vec<wit::Input>, String> {
        let values = Values::new(T::Formula::DESCRIPTION.parameters, values)?;
        let formula = T::Formula::new(&values)?;
        let inputs = formula.inputs();
        let told = inputs.iter().map(|input| wit::Input {
            column: input.column.into(),
            first_lag: input.first_lag,
            last_lag: input.last_lag,
        });
        let told = told.collect();
        T::with(|slot| *slot = Some(Machine { formula, inputs }));
        Ok(told)
    }

    fn evaluate(rows: u32, columns: Vec<f64>) -> Vec<f64> {
        T::with(|slot| {
            let machine = slot.as_ref().expect("the host asked a formula before its configure");
            evaluate(&machine.formula, &Day::new(&machine.inputs, rows as usize, &columns))
        })
    }
}

/// A formula's own function that says `#[inline(always)]` becomes part of this one, and so of its vector
/// instructions: loops over columns take two values at a time. Others are called, and are scalar.
#[target_feature(enable = "simd128")]
fn evaluate<F: Formula>(formula: &F, day: &Day) -> Vec<f64> {
    formula.evaluate(day)
}

impl From<Column> for wit::Column {
    fn from(column: Column) -> Self {
        match column {
            Column::Open => Self::Open,
            Column::High => Self::High,
            Column::Low => Self::Low,
            Column::Close => Self::Close,
            Column::Volume => Self::Volume,
        }
    }
}
