//! The description of a formula, and the one trait that it implements.

use crate::day::Day;

/// A daily column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// First price of the day, in yen.
    Open,
    /// Highest price of the day, in yen.
    High,
    /// Lowest price of the day, in yen.
    Low,
    /// Last price of the day, in yen.
    Close,
    /// Shares traded on the day.
    Volume,
}

/// A number that users may set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// What users write: `a` to `z`, `0` to `9` and `_`, beginning with a letter.
    pub name: &'static str,
    /// One line for people.
    pub description: &'static str,
    /// The default value.
    pub default: f64,
    /// The smallest value.
    pub minimum: f64,
    /// The largest value.
    pub maximum: f64,
}

/// What a formula is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Description {
    /// What users call it: `a` to `z`, `0` to `9` and `-`, beginning with a letter.
    pub name: &'static str,
    /// The author's version; `env!("CARGO_PKG_VERSION")` is a good one.
    pub version: &'static str,
    /// What it computes, for people.
    pub summary: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
}

/// The values of the parameters; the host has held each against its range.
#[derive(Debug, Clone, PartialEq)]
pub struct Values {
    parameters: &'static [Parameter],
    values: Vec<f64>,
}

impl Values {
    pub(crate) fn new(parameters: &'static [Parameter], values: Vec<f64>) -> Result<Self, String> {
        if values.len() != parameters.len() {
            return Err(format!("{} values for {} parameters", values.len(), parameters.len()));
        }
        Ok(Self { parameters, values })
    }

    /// The value of a parameter.
    ///
    /// # Panics
    /// When the description has no such parameter.
    #[must_use]
    pub fn get(&self, name: &str) -> f64 {
        match self.parameters.iter().position(|parameter| parameter.name == name) {
            Some(index) => self.values[index],
            None => panic!("the description has no parameter `{name}`"),
        }
    }

    /// The value of a parameter that counts things.
    ///
    /// # Errors
    /// When it is no whole number.
    ///
    /// # Panics
    /// When the description has no such parameter.
    pub fn whole(&self, name: &str) -> Result<u32, String> {
        let value = self.get(name);
        if value.fract() != 0.0 || !(0.0..=f64::from(u32::MAX)).contains(&value) {
            return Err(format!("parameter `{name}` is {value}; it must be a whole number"));
        }
        Ok(value as u32)
    }
}

/// What a formula reads: a column at one lag or at many in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Input {
    /// The column.
    pub column: Column,
    /// The smallest lag in business days; 0 is the day that is ranked.
    pub first_lag: u32,
    /// The largest lag, at most 2,600.
    pub last_lag: u32,
}

impl Input {
    /// A column at one lag.
    #[must_use]
    pub const fn at(column: Column, lag: u32) -> Self {
        Self { column, first_lag: lag, last_lag: lag }
    }

    /// A column at every lag from the first to the last.
    #[must_use]
    pub const fn window(column: Column, first_lag: u32, last_lag: u32) -> Self {
        Self { column, first_lag, last_lag }
    }

    /// How many lags it has.
    #[must_use]
    pub const fn lags(self) -> usize {
        (self.last_lag - self.first_lag) as usize + 1
    }
}

/// A formula module: a function of its parameters and the day's columns alone.
pub trait Formula: Sized {
    /// What it is.
    const DESCRIPTION: Description;

    /// Makes it from the values of its parameters.
    ///
    /// # Errors
    /// A message for the user, for example about two parameters together.
    fn new(values: &Values) -> Result<Self, String>;

    /// What it reads; at most 300 lags of all inputs together.
    fn inputs(&self) -> Vec<Input>;

    /// A value for each issue of the day, in the order of the columns. "Not a number" is null. Write
    /// `#[inline(always)]` before it: only then its loops get vector instructions.
    fn evaluate(&self, day: &Day) -> Vec<f64>;
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: &[Parameter] =
        &[Parameter { name: "days", description: "", default: 5.0, minimum: 1.0, maximum: 9.0 }];

    #[test]
    fn values_are_read_by_name() {
        let values = Values::new(PARAMETERS, vec![3.0]).unwrap();
        assert_eq!((values.get("days"), values.whole("days")), (3.0, Ok(3)));
        let values = Values::new(PARAMETERS, vec![2.5]).unwrap();
        assert_eq!(
            values.whole("days").unwrap_err(),
            "parameter `days` is 2.5; it must be a whole number"
        );
        assert_eq!(Values::new(PARAMETERS, vec![]).unwrap_err(), "0 values for 1 parameters");
    }

    #[test]
    fn inputs_count_their_lags() {
        assert_eq!(Input::at(Column::Close, 7).lags(), 1);
        assert_eq!(Input::window(Column::Close, 0, 20).lags(), 21);
    }
}
