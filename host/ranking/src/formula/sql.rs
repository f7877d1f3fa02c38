//! The one place where a formula becomes SQL. It is written from the typed tree only: columns are
//! five fixed letters, lags are integers, numbers are printed again from their value.

use std::fmt::Write as _;

use super::node::{Column, Node, Operator};

/// The name of a column of the grid, `lag` business days earlier: `c`, `c_5`.
pub(crate) fn column_alias(column: Column, lag: u32) -> String {
    let letter = column_letter(column);
    if lag == 0 { letter.to_string() } else { format!("{letter}_{lag}") }
}

pub(super) const fn column_letter(column: Column) -> char {
    match column {
        Column::Open => 'o',
        Column::High => 'h',
        Column::Low => 'l',
        Column::Close => 'c',
        Column::Volume => 'v',
    }
}

/// The formula over the columns named by [`column_alias`]. Columns hold null for 0 already; every
/// other divisor is guarded here, except numbers that are not 0.
pub(crate) fn value_sql(node: &Node) -> String {
    let mut sql = String::new();
    write(&mut sql, node);
    sql
}

fn write(sql: &mut String, node: &Node) {
    match node {
        Node::Number(value) => sql.push_str(&number_sql(*value)),
        Node::Value { column, lag } => sql.push_str(&column_alias(*column, *lag)),
        Node::Negate(inner) => {
            sql.push_str("(-");
            write(sql, inner);
            sql.push(')');
        }
        Node::Binary { operator, left, right } => {
            sql.push('(');
            write(sql, left);
            // Writing to a string cannot fail.
            let _ = write!(sql, " {} ", operator.symbol());
            if *operator == Operator::Divide && may_be_zero(right) {
                sql.push_str("nullif(");
                write(sql, right);
                sql.push_str(", 0.0::DOUBLE)");
            } else {
                write(sql, right);
            }
            sql.push(')');
        }
    }
}

/// Whether a divisor needs a guard.
fn may_be_zero(node: &Node) -> bool {
    match node {
        Node::Number(value) => *value == 0.0,
        Node::Value { .. } => false,
        Node::Negate(_) | Node::Binary { .. } => true,
    }
}

/// Digits up to which `1.25::DOUBLE` is read exactly: the text is a DECIMAL first, and its digits
/// must fit into a double.
const DECIMAL_DIGITS_MAX: usize = 15;

/// A number as a DOUBLE. Without the cast `100` is an INTEGER and `0.1` a DECIMAL, with other
/// arithmetic; longer ones are written with an exponent, which makes them a DOUBLE at once.
fn number_sql(value: f64) -> String {
    let plain = format!("{value:?}");
    let is_plain = plain.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_plain && plain.len() <= DECIMAL_DIGITS_MAX {
        format!("({plain}::DOUBLE)")
    } else {
        format!("({value:e}::DOUBLE)")
    }
}
