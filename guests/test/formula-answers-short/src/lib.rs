//! Answers with one value too few on the day on which the first issue's close is a given one.

use formula_turns::Turn;

/// What happens on that day.
#[derive(Debug)]
pub struct AnswersShort;

impl Turn for AnswersShort {
    const NAME: &'static str = "answers-short";

    fn turn(closes: &[f64]) -> Vec<f64> {
        closes[1..].to_vec()
    }
}

kumiki_formula_sdk::register_formula!(formula_turns::Turns<AnswersShort>);
