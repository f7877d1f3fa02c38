//! Never returns from the day on which the first issue's close is a given one.

use formula_turns::Turn;

/// What happens on that day.
#[derive(Debug)]
pub struct Loops;

impl Turn for Loops {
    const NAME: &'static str = "loops";

    fn turn(_: &[f64]) -> Vec<f64> {
        loop {
            std::hint::spin_loop();
        }
    }
}

kumiki_formula_sdk::register_formula!(formula_turns::Turns<Loops>);
