//! Repeats work and prints what it took.

use domain::clock::Stopwatch;
use serde_json::{Value, json};

/// Repetitions of each piece of work.
const REPETITIONS: usize = 7;

/// Seconds that a piece of work took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seconds {
    pub(crate) best: f64,
    pub(crate) median: f64,
}

/// Repeats a piece of work and tells how long it took.
pub(crate) fn seconds<R>(mut work: impl FnMut() -> R) -> Seconds {
    let mut all: Vec<f64> = (0..REPETITIONS)
        .map(|_| {
            let watch = Stopwatch::start();
            std::hint::black_box(work());
            watch.elapsed().as_secs_f64()
        })
        .collect();
    all.sort_by(f64::total_cmp);
    Seconds { best: all[0], median: all[REPETITIONS / 2] }
}

/// Prints a figure.
pub(crate) fn figure(name: &str, unit: &str, median: f64, best: f64, more: &Value) {
    let mut line =
        json!({ "figure": name, "unit": unit, "median": round(median), "best": round(best) });
    if let (Some(line), Some(more)) = (line.as_object_mut(), more.as_object()) {
        let rounded = more.iter().map(|(name, value)| match value.as_f64() {
            Some(number) if value.is_f64() => (name.clone(), json!(round(number))),
            _ => (name.clone(), value.clone()),
        });
        line.extend(rounded);
    }
    println!("{line}");
}

/// Prints a rate: `amount` in the time taken.
pub(crate) fn rate(name: &str, unit: &str, amount: f64, taken: Seconds, more: &Value) {
    figure(name, unit, amount / taken.median, amount / taken.best, more);
}

/// Four digits are more than a measurement has.
fn round(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10_f64.powi(3 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}
