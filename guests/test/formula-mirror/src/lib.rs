//! Computes `(Close - Close[-N]) / Close[-N] * 100` in the order in which a sortBy formula does.

use kumiki_formula_sdk::prelude::*;

/// The formula. Parameter: `lag`.
#[derive(Debug)]
pub struct Mirror {
    lag: u32,
}

impl Formula for Mirror {
    const DESCRIPTION: Description = Description {
        name: "mirror",
        version: env!("CARGO_PKG_VERSION"),
        summary: "(Close - Close[-lag]) / Close[-lag] * 100",
        parameters: &[Parameter {
            name: "lag",
            description: "business days before",
            default: 5.0,
            minimum: 1.0,
            maximum: 2_600.0,
        }],
    };

    fn new(values: &Values) -> Result<Self, String> {
        Ok(Self { lag: values.whole("lag")? })
    }

    fn inputs(&self) -> Vec<Input> {
        vec![Input::at(Column::Close, 0), Input::at(Column::Close, self.lag)]
    }

    #[inline(always)]
    fn evaluate(&self, day: &Day) -> Vec<f64> {
        let (now, before) = (day.column(Column::Close, 0), day.column(Column::Close, self.lag));
        now.iter().zip(before).map(|(now, before)| (now - before) / before * 100.0).collect()
    }
}

kumiki_formula_sdk::register_formula!(Mirror);
