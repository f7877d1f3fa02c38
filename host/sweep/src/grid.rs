//! The parameters of a sweep: which values each takes, and what they are for the strategy.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use domain::limits::{SWEEP_AXES_MAX, SWEEP_RUNS_MAX};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::points::Points;
use crate::rows::RowRange;

/// Digits of a number in a range, before and after the point together.
const DIGITS_MAX: usize = 18;

/// Why a grid makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GridError {
    /// Not `name=values`; the text. Those below hold the parameter and what was written of it.
    #[error("`{0}` is no grid; write a range like fast=5:50:5 or a list like mode=a,b,c")]
    NoName(String),
    /// A range with fewer or more than three parts.
    #[error("`{0}={1}` is no range; write start:end:step, like {0}=5:50:5 (the end is included)")]
    Parts(String, String),
    /// A part of a range that is no plain decimal number.
    #[error(
        "`{0}={1}`: `{2}` is no decimal number of at most {DIGITS_MAX} digits; a range needs three, like {0}=0.5:2:0.25"
    )]
    NotDecimal(String, String, String),
    /// A range whose step leads nowhere.
    #[error("`{0}={1}`: the step must be above 0 and the end not below the start")]
    Direction(String, String),
    /// A list with an empty value.
    #[error("`{0}={1}` has an empty value; write a list like {0}=a,b,c")]
    EmptyValue(String, String),
    /// A list that has a value twice.
    #[error("`{0}={1}` has the value {2} twice; give each value once")]
    ValueTwice(String, String, String),
    /// More values than runs may be.
    #[error("`{0}={1}` has more than {SWEEP_RUNS_MAX} values; take a larger step")]
    TooManyValues(String, String),
    /// No parameter is swept.
    #[error("a sweep needs at least one --grid, like --grid fast=5:50:5, or --points FILE")]
    NoAxes,
    /// More parameters than can be swept.
    #[error("{0} parameters are swept, the limit is {SWEEP_AXES_MAX}; sweep fewer")]
    TooManyAxes(usize),
    /// A parameter is given twice.
    #[error("the parameter `{0}` is given twice; give it once: swept, or with --param")]
    ParameterTwice(String),
    /// More combinations than can be numbered.
    #[error("the grid has more than 10^18 combinations; take fewer values")]
    TooManyCombinations,
    /// More runs than a sweep may have.
    #[error(
        "the sweep has {0} runs, the limit is {SWEEP_RUNS_MAX}; take fewer values, or draw some of \
         the combinations with --random N --seed S"
    )]
    TooManyRuns(u64),
    /// Rows that the sweep does not have.
    #[error("--rows {0}: the sweep has {1} rows, from 0; ask for 0..{1} at most")]
    NoSuchRows(RowRange, usize),
    /// No run at all.
    #[error("--random 0 asks for no run; ask for at least 1")]
    NoRuns,
}

/// One parameter of the grid and the values it takes, in order, as exact texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// The parameter's name.
    pub name: String,
    /// Its values.
    pub values: Vec<String>,
}

/// `fast=5:50:5` (start, end, step; the end is included when a step reaches it), `mode=a,b,c`, or
/// one value.
impl FromStr for Axis {
    type Err = GridError;

    fn from_str(given: &str) -> Result<Self, GridError> {
        let (name, text) = given
            .split_once('=')
            .filter(|(name, text)| !name.is_empty() && !text.is_empty())
            .ok_or_else(|| GridError::NoName(given.to_owned()))?;
        let values = if !text.contains(',') && text.contains(':') {
            range(name, text)?
        } else {
            list(name, text)?
        };
        Ok(Self { name: name.to_owned(), values })
    }
}

fn list(name: &str, text: &str) -> Result<Vec<String>, GridError> {
    let wrong = |problem: fn(String, String) -> GridError| problem(name.into(), shortened(text));
    let values: Vec<String> = text.split(',').map(|value| value.trim().to_owned()).collect();
    if values.len() as u64 > SWEEP_RUNS_MAX {
        return Err(wrong(GridError::TooManyValues));
    }
    let mut seen = BTreeSet::new();
    for value in &values {
        if value.is_empty() {
            return Err(wrong(GridError::EmptyValue));
        }
        // `1` and `1.0` are written differently and mean the same.
        if !seen.insert(param_value(value).to_string()) {
            return Err(GridError::ValueTwice(name.into(), shortened(text), value.clone()));
        }
    }
    Ok(values)
}

fn range(name: &str, text: &str) -> Result<Vec<String>, GridError> {
    let wrong = |problem: fn(String, String) -> GridError| problem(name.into(), shortened(text));
    let parts: Vec<&str> = text.split(':').collect();
    let [start, end, step] = parts[..] else { return Err(wrong(GridError::Parts)) };
    let number = |part: &str| {
        Decimal::parse(part)
            .ok_or_else(|| GridError::NotDecimal(name.into(), shortened(text), part.to_owned()))
    };
    let (start, end, step) = (number(start)?, number(end)?, number(step)?);
    let digits = start.digits.max(end.digits).max(step.digits);
    let (start, end, step) = (start.scaled(digits), end.scaled(digits), step.scaled(digits));
    if step <= 0 || end < start {
        return Err(wrong(GridError::Direction));
    }
    let last = (end - start) / step;
    if last >= i128::from(SWEEP_RUNS_MAX) {
        return Err(wrong(GridError::TooManyValues));
    }
    Ok((0..=last).map(|index| written(start + index * step, digits)).collect())
}

fn shortened(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// A plain decimal: `value / 10^digits`.
struct Decimal {
    value: i128,
    digits: usize,
}

impl Decimal {
    fn parse(text: &str) -> Option<Self> {
        let (negative, number) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let all = format!("{whole}{fraction}");
        let sound = !whole.is_empty() && all.bytes().all(|byte| byte.is_ascii_digit());
        if !sound || all.len() > DIGITS_MAX || number.ends_with('.') {
            return None;
        }
        let value: i128 = all.parse().ok()?;
        Some(Self { value: if negative { -value } else { value }, digits: fraction.len() })
    }

    /// The value in parts of `10^-digits`; at most 36 digits, which fit.
    fn scaled(&self, digits: usize) -> i128 {
        (self.digits..digits).fold(self.value, |value, _| value * 10)
    }
}

/// The shortest exact text of `value / 10^digits`.
fn written(value: i128, digits: usize) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let text = format!("{:0>width$}", value.unsigned_abs(), width = digits + 1);
    let (whole, fraction) = text.split_at(text.len() - digits);
    match fraction.trim_end_matches('0') {
        "" => format!("{sign}{whole}"),
        fraction => format!("{sign}{whole}.{fraction}"),
    }
}

/// A parameter's value as JSON: a number or a truth value where the text is one, else a text.
#[must_use]
pub fn param_value(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ (Value::Number(_) | Value::Bool(_))) => value,
        _ => Value::String(text.to_owned()),
    }
}

/// All combinations of the values of some parameters, of which the last changes fastest; or those
/// that a file of points has, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid {
    axes: Vec<Axis>,
    fixed: BTreeMap<String, Value>,
    combinations: u64,
    points: Option<Points>,
}

impl Grid {
    /// A grid of `axes`; every run also gets the parameters in `fixed`.
    ///
    /// # Errors
    /// [`GridError`] when there is no axis, when there are too many, or a parameter is given twice.
    pub fn new(axes: Vec<Axis>, fixed: BTreeMap<String, Value>) -> Result<Self, GridError> {
        if axes.is_empty() {
            return Err(GridError::NoAxes);
        }
        if axes.len() > SWEEP_AXES_MAX {
            return Err(GridError::TooManyAxes(axes.len()));
        }
        all_named_once(&axes, &fixed)?;
        const COMBINATIONS_MAX: u64 = 1_000_000_000_000_000_000;
        let combinations = axes.iter().try_fold(1_u64, |product, axis| {
            product.checked_mul(axis.values.len() as u64).filter(|all| *all <= COMBINATIONS_MAX)
        });
        let combinations = combinations.ok_or(GridError::TooManyCombinations)?;
        Ok(Self { axes, fixed, combinations, points: None })
    }

    /// The points of a file as combinations; every run also gets the parameters in `fixed`.
    ///
    /// # Errors
    /// [`GridError`] when a parameter is given twice.
    pub fn of_points(points: Points, fixed: BTreeMap<String, Value>) -> Result<Self, GridError> {
        let axes = points.axes().to_vec();
        all_named_once(&axes, &fixed)?;
        Ok(Self { axes, fixed, combinations: points.count(), points: Some(points) })
    }

    /// The points that the combinations are; none where they are all of a grid.
    #[must_use]
    pub fn points(&self) -> Option<&Points> {
        self.points.as_ref()
    }

    /// The parameters that are swept.
    #[must_use]
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The parameters that are the same in every run.
    #[must_use]
    pub fn fixed(&self) -> &BTreeMap<String, Value> {
        &self.fixed
    }

    /// How many combinations there are.
    #[must_use]
    pub fn combinations(&self) -> u64 {
        self.combinations
    }

    /// For each axis, the index of its value in the combination with this number (from 0).
    #[must_use]
    pub fn value_indexes(&self, mut combination: u64) -> Vec<usize> {
        if let Some(points) = &self.points {
            return points.indexes(combination);
        }
        let mut indexes = vec![0; self.axes.len()];
        for (index, axis) in indexes.iter_mut().zip(&self.axes).rev() {
            let values = axis.values.len() as u64;
            // A remainder below a length is an index.
            *index = (combination % values) as usize;
            combination /= values;
        }
        indexes
    }

    /// The values of the combination with this number, in the order of the axes.
    #[must_use]
    pub fn values(&self, combination: u64) -> Vec<&str> {
        let indexes = self.value_indexes(combination);
        let pairs = self.axes.iter().zip(indexes);
        pairs.map(|(axis, index)| axis.values[index].as_str()).collect()
    }

    /// The JSON object that the strategy's init gets in the run of this combination; the same as
    /// the one that `replay run` makes of the same parameters.
    #[must_use]
    pub fn config_json(&self, combination: u64) -> String {
        let mut all = self.fixed.clone();
        for (axis, value) in self.axes.iter().zip(self.values(combination)) {
            all.insert(axis.name.clone(), param_value(value));
        }
        serde_json::json!(all).to_string()
    }
}

fn all_named_once(axes: &[Axis], fixed: &BTreeMap<String, Value>) -> Result<(), GridError> {
    let mut names: BTreeSet<&str> = fixed.keys().map(String::as_str).collect();
    match axes.iter().find(|axis| !names.insert(&axis.name)) {
        Some(axis) => Err(GridError::ParameterTwice(axis.name.clone())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> String {
        text.parse::<Axis>().unwrap().values.join(" ")
    }

    fn message(text: &str) -> String {
        text.parse::<Axis>().unwrap_err().to_string()
    }

    #[test]
    fn ranges_are_exact_and_include_their_end() {
        assert_eq!(values("fast=5:50:15"), "5 20 35 50");
        assert_eq!(values("fast=5:52:15"), "5 20 35 50");
        assert_eq!(values("x=0.1:0.5:0.1"), "0.1 0.2 0.3 0.4 0.5");
        assert_eq!(values("x=-0.05:0.05:0.05"), "-0.05 0 0.05");
        assert_eq!(values("x=0.10:0.10:1"), "0.1");
        assert_eq!(values("x=999999999999999999:999999999999999999:1"), "999999999999999999");
    }

    #[test]
    fn lists_keep_their_order_and_text() {
        assert_eq!(values("mode=b, a,c"), "b a c");
        assert_eq!(values("at=09:00,12:30"), "09:00 12:30");
        assert_eq!(values("on=true"), "true");
        assert_eq!(values("n=10,1,1.5"), "10 1 1.5");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, wanted) in [
            ("fast", "`fast` is no grid; write a range like fast=5:50:5 or a list"),
            ("=5:6:1", "is no grid"),
            ("fast=", "is no grid"),
            ("fast=5:50", "`fast=5:50` is no range; write start:end:step, like fast=5:50:5"),
            ("fast=5:50:5:5", "is no range"),
            ("fast=5:fifty:5", "`fifty` is no decimal number"),
            ("fast=5:1e3:5", "`1e3` is no decimal number"),
            ("fast=5:50.:5", "`50.` is no decimal number"),
            ("fast=0:1234567890123456789:1", "at most 18 digits"),
            ("fast=50:5:5", "the step must be above 0 and the end not below the start"),
            ("fast=5:50:0", "the step must be above 0"),
            ("mode=a,,b", "has an empty value"),
            ("mode=a,b,a", "has the value a twice"),
            ("fast=1:1000001:1", "has more than 1000000 values"),
        ] {
            let message = message(text);
            assert!(message.contains(wanted), "{text}: {message}");
        }
    }

    fn grid(axes: &[&str]) -> Result<Grid, GridError> {
        let axes = axes.iter().map(|axis| axis.parse().unwrap()).collect();
        Grid::new(axes, BTreeMap::from([("quantity".to_owned(), Value::from(100))]))
    }

    #[test]
    fn the_last_parameter_changes_fastest() {
        let grid = grid(&["a=1,2", "b=x,y,z"]).unwrap();
        assert_eq!(grid.combinations(), 6);
        assert_eq!(grid.values(0), ["1", "x"]);
        assert_eq!(grid.values(1), ["1", "y"]);
        assert_eq!(grid.values(3), ["2", "x"]);
        assert_eq!(grid.value_indexes(5), [1, 2]);
        assert_eq!(grid.config_json(4), r#"{"a":2,"b":"y","quantity":100}"#);
    }

    #[test]
    fn senseless_grids_are_refused() {
        assert_eq!(grid(&[]).unwrap_err(), GridError::NoAxes);
        let twice = grid(&["a=1", "a=2"]).unwrap_err();
        assert_eq!(twice, GridError::ParameterTwice("a".into()));
        assert!(grid(&["quantity=1,2"]).unwrap_err().to_string().contains("`quantity` is given"));
        let many: Vec<String> = (0..=SWEEP_AXES_MAX).map(|n| format!("p{n}=1,2")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(grid(&many).unwrap_err(), GridError::TooManyAxes(17));
        let large = ["a=1:1000000:1", "b=1:1000000:1", "c=1:1000000:1"];
        assert_eq!(grid(&large).unwrap().combinations(), 1_000_000_000_000_000_000);
        let larger = ["a=1:1000000:1", "b=1:1000000:1", "c=1:1000000:1", "d=1,2"];
        assert_eq!(grid(&larger).unwrap_err(), GridError::TooManyCombinations);
    }

    proptest::proptest! {
        #[test]
        fn ranges_step_exactly(start in -1000_i64..1000, steps in 0_i64..200, step in 1_i64..500) {
            // Hundredths, checked against whole-number arithmetic.
            let end = start + steps * step;
            let text = |value: i64| written(i128::from(value), 2);
            let axis: Axis =
                format!("x={}:{}:{}", text(start), text(end), text(step)).parse().unwrap();
            let expected: Vec<String> = (0..=steps).map(|n| text(start + n * step)).collect();
            proptest::prop_assert_eq!(axis.values, expected);
        }
    }
}
