//! Panics on the day on which the first issue's close is a given one.

use kumiki_formula_sdk::prelude::*;

/// The formula. Parameter: `close`, the first issue's close at which it happens.
#[derive(Debug)]
pub struct Traps {
    close: f64,
}

impl Formula for Traps {
    const DESCRIPTION: Description = Description {
        name: "traps",
        version: env!("CARGO_PKG_VERSION"),
        summary: "the close, until the first issue's close is `close`",
        parameters: &[Parameter {
            name: "close",
            description: "yen",
            default: 0.0,
            minimum: 0.0,
            maximum: 1e9,
        }],
    };

    fn new(values: &Values) -> Result<Self, String> {
        Ok(Self { close: values.get("close") })
    }

    fn inputs(&self) -> Vec<Input> {
        vec![Input::at(Column::Close, 0)]
    }

    fn evaluate(&self, day: &Day) -> Vec<f64> {
        let closes = day.column(Column::Close, 0);
        if closes.first() == Some(&self.close) {
            panic!("the close {} was too much for me", self.close);
        }
        closes.to_vec()
    }
}

kumiki_formula_sdk::register_formula!(Traps);
