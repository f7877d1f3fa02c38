//! The typed tree of a formula.

pub use domain::formula::Column;

/// An operator between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`; by 0 it gives null.
    Divide,
}

impl Operator {
    /// The sign in formulas.
    #[must_use]
    pub const fn symbol(self) -> char {
        match self {
            Self::Add => '+',
            Self::Subtract => '-',
            Self::Multiply => '*',
            Self::Divide => '/',
        }
    }
}

/// A formula or a part of one.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// A number, finite and not negative.
    Number(f64),
    /// A column's value `lag` business days earlier; 0 is the day itself.
    Value {
        /// The column of the grid.
        column: Column,
        /// Business days back, 0 to [`crate::limits::LAG_MAX`].
        lag: u32,
    },
    /// The value with the other sign.
    Negate(Box<Node>),
    /// Two values and what is done with them.
    Binary {
        /// What is computed of both.
        operator: Operator,
        /// The operand before the operator.
        left: Box<Node>,
        /// The operand after the operator.
        right: Box<Node>,
    },
}

impl Node {
    /// The different (column, lag) pairs, in ascending order.
    #[must_use]
    pub fn values(&self) -> Vec<(Column, u32)> {
        let mut found = Vec::new();
        self.collect(&mut found);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The different lags above 0, in ascending order.
    #[must_use]
    pub fn lags(&self) -> Vec<u32> {
        let mut lags: Vec<u32> =
            self.values().into_iter().map(|(_, lag)| lag).filter(|&lag| lag > 0).collect();
        lags.sort_unstable();
        lags.dedup();
        lags
    }

    fn collect(&self, found: &mut Vec<(Column, u32)>) {
        match self {
            Self::Number(_) => {}
            Self::Value { column, lag } => found.push((*column, *lag)),
            Self::Negate(inner) => inner.collect(found),
            Self::Binary { left, right, .. } => {
                left.collect(found);
                right.collect(found);
            }
        }
    }
}
