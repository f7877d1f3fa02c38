//! Takes memory without end on the day on which the first issue's close is a given one.

use kumiki_formula_sdk::prelude::*;

/// The formula. Parameter: `close`, the first issue's close at which it happens.
#[derive(Debug)]
pub struct Grows {
    close: f64,
}

impl Formula for Grows {
    const DESCRIPTION: Description = Description {
        name: "grows",
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
            let mut kept = Vec::new();
            loop {
                kept.push(std::hint::black_box(vec![1_u8; 1 << 20]));
            }
        }
        closes.to_vec()
    }
}

kumiki_formula_sdk::register_formula!(Grows);
