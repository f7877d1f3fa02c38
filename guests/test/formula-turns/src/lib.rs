//! For test formulas that go wrong: the close, until the day on which the first issue's close is a
//! given one.

use std::marker::PhantomData;

use kumiki_formula_sdk::prelude::*;

/// What happens on that day.
pub trait Turn: 'static {
    /// The formula's name.
    const NAME: &'static str;

    /// Answers for that day, given the closes, of which the first is the given one.
    fn turn(closes: &[f64]) -> Vec<f64>;
}

/// The formula. Parameter: `close`, the first issue's close at which it happens.
#[derive(Debug)]
pub struct Turns<T> {
    close: f64,
    turn: PhantomData<T>,
}

impl<T: Turn> Formula for Turns<T> {
    const DESCRIPTION: Description = Description {
        name: T::NAME,
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
        Ok(Self { close: values.get("close"), turn: PhantomData })
    }

    fn inputs(&self) -> Vec<Input> {
        vec![Input::at(Column::Close, 0)]
    }

    fn evaluate(&self, day: &Day) -> Vec<f64> {
        let closes = day.column(Column::Close, 0);
        if closes.first() == Some(&self.close) { T::turn(closes) } else { closes.to_vec() }
    }
}
