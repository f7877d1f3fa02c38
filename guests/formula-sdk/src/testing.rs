//! Tests of a formula's logic without wasm: set the columns of a day, look at its values.
//!
//! ```
//! # use kumiki_formula_sdk::prelude::*;
//! # struct Range;
//! # impl Formula for Range {
//! #     const DESCRIPTION: Description =
//! #         Description { name: "range", version: "1", summary: "", parameters: &[] };
//! #     fn new(_: &Values) -> Result<Self, String> { Ok(Self) }
//! #     fn inputs(&self) -> Vec<Input> {
//! #         vec![Input::at(Column::High, 0), Input::at(Column::Low, 0)]
//! #     }
//! #     fn evaluate(&self, day: &Day) -> Vec<f64> {
//! #         let (high, low) = (day.column(Column::High, 0), day.column(Column::Low, 0));
//! #         high.iter().zip(low).map(|(high, low)| high - low).collect()
//! #     }
//! # }
//! use kumiki_formula_sdk::testing::TestDay;
//!
//! let day = TestDay::new(2).with(Column::High, 0, &[110.0, 55.0]).with(Column::Low, 0, &[100.0, 50.0]);
//! assert_eq!(day.evaluate::<Range>(&[]), Ok(vec![10.0, 5.0]));
//! ```

use crate::day::Day;
use crate::model::{Column, Formula, Values};

/// A day to evaluate a formula on. Columns that are not set are null.
#[derive(Debug, Clone)]
pub struct TestDay {
    rows: usize,
    columns: Vec<(Column, u32, Vec<f64>)>,
}

impl TestDay {
    /// A day with this number of issues and no values.
    #[must_use]
    pub fn new(rows: usize) -> Self {
        Self { rows, columns: Vec::new() }
    }

    /// Sets a column `lag` business days before the day, a value for each issue.
    ///
    /// # Panics
    /// When there are more or fewer values than issues.
    #[must_use]
    pub fn with(mut self, column: Column, lag: u32, values: &[f64]) -> Self {
        assert_eq!(values.len(), self.rows, "a value for each issue");
        self.columns.push((column, lag, values.to_vec()));
        self
    }

    /// The formula's answer with these parameters; others have their defaults.
    ///
    /// # Errors
    /// When a parameter is unknown or out of its range, or when the formula refuses it.
    ///
    /// # Panics
    /// When the formula answers with more or fewer values than there are issues.
    pub fn evaluate<F: Formula>(&self, parameters: &[(&str, f64)]) -> Result<Vec<f64>, String> {
        let formula = F::new(&values::<F>(parameters)?)?;
        let inputs = formula.inputs();
        let mut all = Vec::new();
        for input in &inputs {
            for lag in input.first_lag..=input.last_lag {
                let is_it = |one: &&(Column, u32, Vec<f64>)| one.0 == input.column && one.1 == lag;
                match self.columns.iter().rfind(is_it) {
                    Some((_, _, values)) => all.extend_from_slice(values),
                    None => all.resize(all.len() + self.rows, f64::NAN),
                }
            }
        }
        let out = formula.evaluate(&Day::new(&inputs, self.rows, &all));
        assert_eq!(out.len(), self.rows, "a value for each issue");
        Ok(out)
    }
}

fn values<F: Formula>(given: &[(&str, f64)]) -> Result<Values, String> {
    let known = F::DESCRIPTION.parameters;
    let mut values: Vec<f64> = known.iter().map(|parameter| parameter.default).collect();
    for (name, value) in given {
        let Some(index) = known.iter().position(|parameter| parameter.name == *name) else {
            return Err(format!("the formula has no parameter `{name}`"));
        };
        let (low, high) = (known[index].minimum, known[index].maximum);
        if !(low..=high).contains(value) {
            return Err(format!("parameter `{name}` is {value}; it may be {low} to {high}"));
        }
        values[index] = *value;
    }
    Values::new(known, values)
}
