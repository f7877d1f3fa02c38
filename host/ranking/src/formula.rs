//! The formula language (specification 3, "sortBy formula"): columns, lags, `+ - * / ( )` and
//! numbers, nothing else. A formula is parsed into a typed tree; everything that runs is made from
//! that tree, so no text of the client goes any further than [`Formula::parse`].

mod fault;
mod node;
mod parse;
mod print;
mod sql;
#[cfg(test)]
mod tests;
mod tokens;

use std::fmt;
use std::str::FromStr;

pub use fault::FormulaError;
pub use node::{Column, Node, Operator};
pub(crate) use sql::{column_alias, value_sql};

/// The formula of the contract when the client gives none: change from the day before, in percent.
pub const FORMULA_DEFAULT: &str = "(Close - Close[-1]) / Close[-1] * 100";

/// A formula that was accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    root: Node,
    lags: Vec<u32>,
}

impl Formula {
    /// Reads a formula.
    ///
    /// # Errors
    ///
    /// Returns the first thing that does not belong there, with its position.
    pub fn parse(text: &str) -> Result<Self, FormulaError> {
        let root = parse::parse(text)?;
        let lags = root.lags();
        Ok(Self { root, lags })
    }

    /// The root of the typed tree.
    #[must_use]
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// The different lags in ascending order, in business days, each at least 1.
    #[must_use]
    pub fn lags(&self) -> &[u32] {
        &self.lags
    }

    /// The tree as indented text, one node a line, for people.
    #[must_use]
    pub fn tree(&self) -> String {
        print::tree(&self.root)
    }
}

/// Prints the canonical text: it parses to the same tree, and formulas with the same tree have the
/// same text.
impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print::canonical(&self.root))
    }
}

impl FromStr for Formula {
    type Err = FormulaError;

    fn from_str(text: &str) -> Result<Self, FormulaError> {
        Self::parse(text)
    }
}
