//! A module with values for its parameters.

use std::fmt;
use std::sync::Arc;

use domain::formula::{FormulaDescription, FormulaInput};
use sandbox::FormulaModule;

use crate::error::RankError;
use crate::formula::Column;
use crate::text::excerpt;

/// A formula module with values for its parameters: what a query sorts by.
#[derive(Debug, Clone)]
pub struct BoundFormula {
    name: String,
    module: Arc<FormulaModule>,
    values: Vec<f64>,
    inputs: Vec<FormulaInput>,
    /// Every lag of every input, in the order of the contract.
    leaves: Vec<(Column, u32)>,
}

impl BoundFormula {
    pub(super) fn new(
        name: &str,
        module: Arc<FormulaModule>,
        values: Vec<f64>,
        inputs: Vec<FormulaInput>,
    ) -> Self {
        let lags = |input: &FormulaInput| {
            let column = input.column;
            (input.first_lag..=input.last_lag).map(move |lag| (column, lag))
        };
        let leaves = inputs.iter().flat_map(lags).collect();
        Self { name: name.to_owned(), module, values, inputs, leaves }
    }

    /// The name in the list.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// SHA-256 of the module's file, in hexadecimal.
    #[must_use]
    pub fn sha256(&self) -> &str {
        self.module.artefact().sha256()
    }

    /// What the module says of itself.
    #[must_use]
    pub fn description(&self) -> &FormulaDescription {
        self.module.description()
    }

    /// The parameters with their values, defaults included.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, f64)> {
        let names = self.description().parameters.iter().map(|one| one.name.as_str());
        names.zip(self.values.iter().copied())
    }

    /// What it reads.
    #[must_use]
    pub fn inputs(&self) -> &[FormulaInput] {
        &self.inputs
    }

    /// The largest lag that it reads, in business days.
    #[must_use]
    pub fn reach(&self) -> u32 {
        self.inputs.iter().map(|input| input.last_lag).max().unwrap_or(0)
    }

    pub(crate) fn module(&self) -> &Arc<FormulaModule> {
        &self.module
    }

    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }

    pub(crate) fn leaves(&self) -> &[(Column, u32)] {
        &self.leaves
    }

    /// The same for the same content with the same values, and for no formula text.
    pub(crate) fn key(&self) -> String {
        let bits: Vec<String> =
            self.values.iter().map(|value| format!("{:016x}", value.to_bits())).collect();
        format!("module {} {}", self.sha256(), bits.join(","))
    }
}

/// As people write it: `momentum(lookback=20)`.
impl fmt::Display for BoundFormula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<String> =
            self.parameters().map(|(name, value)| format!("{name}={value}")).collect();
        write!(f, "{}({})", self.name, values.join(", "))
    }
}

/// A value for each parameter, in the module's order.
pub(super) fn values(
    formula: &str,
    description: &FormulaDescription,
    given: &[(String, f64)],
) -> Result<Vec<f64>, RankError> {
    let refused = |text: String| Err(RankError::FormulaParams(text));
    let known = &description.parameters;
    for (index, (name, value)) in given.iter().enumerate() {
        let Some(parameter) = known.iter().find(|parameter| parameter.name == *name) else {
            let names: Vec<&str> = known.iter().map(|one| one.name.as_str()).collect();
            let there = match names.as_slice() {
                [] => "it has none".to_owned(),
                names => format!("it has: {}", names.join(", ")),
            };
            let name = excerpt(name);
            return refused(format!("formula `{formula}` has no parameter `{name}`; {there}"));
        };
        if given.iter().take(index).any(|(other, _)| other == name) {
            return refused(format!("parameter `{name}` is given twice; give it once"));
        }
        let (low, high) = (parameter.minimum, parameter.maximum);
        if !(low..=high).contains(value) {
            return refused(format!("parameter `{name}` is {value}; it may be {low} to {high}"));
        }
    }
    let value = |name: &str| given.iter().find(|(one, _)| one == name).map(|(_, value)| *value);
    Ok(known.iter().map(|one| value(&one.name).unwrap_or(one.default)).collect())
}
