//! Panics on the day on which the first issue's close is a given one.

use formula_turns::Turn;

/// What happens on that day.
#[derive(Debug)]
pub struct Traps;

impl Turn for Traps {
    const NAME: &'static str = "traps";

    fn turn(closes: &[f64]) -> Vec<f64> {
        panic!("the close {:?} was too much for me", closes.first());
    }
}

kumiki_formula_sdk::register_formula!(formula_turns::Turns<Traps>);
