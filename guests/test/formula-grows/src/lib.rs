//! Takes memory without end on the day on which the first issue's close is a given one.

use formula_turns::Turn;

/// What happens on that day.
#[derive(Debug)]
pub struct Grows;

impl Turn for Grows {
    const NAME: &'static str = "grows";

    fn turn(_: &[f64]) -> Vec<f64> {
        let mut kept = Vec::new();
        loop {
            kept.push(std::hint::black_box(vec![1_u8; 1 << 20]));
        }
    }
}

kumiki_formula_sdk::register_formula!(formula_turns::Turns<Grows>);
