//! Formula modules: the words between a ranking and a sandboxed function of daily columns
//! (`wit/formula`).

use std::fmt;

use crate::fault::{FaultKind, Identity};
use crate::text::on_one_line;

/// A daily column (specification 3, formula rule 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    /// Opening price in yen.
    Open,
    /// Highest price in yen.
    High,
    /// Lowest price in yen.
    Low,
    /// Closing price in yen.
    Close,
    /// Shares traded.
    Volume,
}

impl Column {
    /// All columns, in the order of the daily table and of `wit/formula`.
    pub const ALL: [Self; 5] = [Self::Open, Self::High, Self::Low, Self::Close, Self::Volume];

    /// The name in formulas.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "Open",
            Self::High => "High",
            Self::Low => "Low",
            Self::Close => "Close",
            Self::Volume => "Volume",
        }
    }

    /// Place in [`Column::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether users may write this as the name of a module (`sign` is `-`) or of a parameter (`_`): small
/// letters, digits and the sign, beginning with a letter.
#[must_use]
pub fn is_name(text: &str, bytes_max: usize, sign: u8) -> bool {
    let is_known = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == sign;
    let begins = text.bytes().next().is_some_and(|c| c.is_ascii_lowercase());
    begins && text.len() <= bytes_max && text.bytes().all(is_known)
}

/// A number that users of a module may set.
#[derive(Debug, Clone, PartialEq)]
pub struct FormulaParameter {
    /// What users write.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// The value when nothing is said.
    pub default: f64,
    /// The smallest value.
    pub minimum: f64,
    /// The largest value.
    pub maximum: f64,
}

/// What a module says of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FormulaDescription {
    /// What users call it.
    pub name: String,
    /// The author's version.
    pub version: String,
    /// What it computes, for people.
    pub summary: String,
    /// Its parameters, in the order in which it takes their values.
    pub parameters: Vec<FormulaParameter>,
}

/// What a module reads: a column at the lags from `first_lag` to `last_lag`, in business days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormulaInput {
    /// The column.
    pub column: Column,
    /// The smallest lag; 0 is the day that is ranked.
    pub first_lag: u32,
    /// The largest lag.
    pub last_lag: u32,
}

/// As in a formula: `Close`, `Close[-5]`, and `Close[-1..-20]` for many lags.
impl fmt::Display for FormulaInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.first_lag, self.last_lag) {
            (0, 0) => write!(f, "{}", self.column),
            (first, last) if first == last => write!(f, "{}[-{first}]", self.column),
            (0, last) => write!(f, "{}[0..-{last}]", self.column),
            (first, last) => write!(f, "{}[-{first}..-{last}]", self.column),
        }
    }
}

/// A module failed: which, where, and how it got there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormulaFault {
    /// Name of the component.
    pub component: String,
    /// Its identity, in hexadecimal.
    pub sha256: String,
    /// The call that failed.
    pub export: &'static str,
    /// What went wrong.
    pub kind: FaultKind,
    /// The module's own frames, innermost first.
    pub backtrace: Vec<String>,
}

impl std::error::Error for FormulaFault {}

impl fmt::Display for FormulaFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short_hash = self.sha256.get(..12).unwrap_or(&self.sha256);
        write!(f, "formula `{}` ({short_hash})", on_one_line(&self.component))?;
        if !matches!(self.kind, FaultKind::Refused(_)) {
            write!(f, ", in `{}`,", self.export)?;
        }
        write!(f, " {}", self.kind)?;
        if let Some(advice) = self.kind.advice(self.export) {
            write!(f, "; {advice}")?;
        }
        for frame in &self.backtrace {
            write!(f, "\n    at {}", on_one_line(frame))?;
        }
        Ok(())
    }
}

/// One running module. After a [`FormulaFault`] it must not be called again.
pub trait FormulaRuntime: Send {
    /// Its name and content.
    fn identity(&self) -> Identity;

    /// Sets the parameters, in the order of the module's description, and tells what it reads.
    ///
    /// # Errors
    /// A fault; [`FaultKind::Refused`] when the module does not accept the values.
    fn configure(&mut self, values: &[f64]) -> Result<Vec<FormulaInput>, Box<FormulaFault>>;

    /// Computes one day: `columns` holds, for each lag of each input, as many values as `out`, which
    /// gets the answer. Null is "not a number"; in the answer infinities are null too.
    ///
    /// # Errors
    /// A fault.
    fn evaluate(&mut self, columns: &[&[f64]], out: &mut [f64]) -> Result<(), Box<FormulaFault>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_shown_as_in_formulas() {
        let shown =
            |column, first_lag, last_lag| FormulaInput { column, first_lag, last_lag }.to_string();
        assert_eq!(shown(Column::Close, 0, 0), "Close");
        assert_eq!(shown(Column::High, 5, 5), "High[-5]");
        assert_eq!(shown(Column::Volume, 0, 20), "Volume[0..-20]");
        assert_eq!(shown(Column::Close, 1, 20), "Close[-1..-20]");
    }

    #[test]
    fn a_fault_names_module_and_call() {
        let mut fault = FormulaFault {
            component: "mine".to_owned(),
            sha256: "0123456789abcdef".to_owned(),
            export: "evaluate",
            kind: FaultKind::Fuel { budget: 9, per_event: 7 },
            backtrace: vec!["mine::evaluate".to_owned()],
        };
        assert_eq!(
            fault.to_string(),
            "formula `mine` (0123456789ab), in `evaluate`, used up its fuel of 9 units in one call; \
             look for an endless loop; `--guest-limit fuel=14` allows more\n    at mine::evaluate"
        );
        fault.kind = FaultKind::Refused("too long".to_owned());
        fault.backtrace.clear();
        assert_eq!(
            fault.to_string(),
            "formula `mine` (0123456789ab) refused its configuration: too long"
        );
    }
}
