//! Trees as text: the canonical formula, and a drawing for people.

use std::fmt::Write as _;

use super::node::{Node, Operator};
use crate::limits::FORMULA_CHARS_MAX;

/// How tightly a node holds together; a looser one inside a tighter one needs parentheses.
#[derive(PartialEq, PartialOrd)]
enum Rank {
    Sum,
    Product,
    Factor,
}

fn rank(node: &Node) -> Rank {
    match node {
        Node::Binary { operator: Operator::Add | Operator::Subtract, .. } => Rank::Sum,
        Node::Binary { operator: Operator::Multiply | Operator::Divide, .. } => Rank::Product,
        Node::Number(_) | Node::Value { .. } | Node::Negate(_) => Rank::Factor,
    }
}

/// The canonical text: no parentheses without need, spaces around operators. Where the spaces would
/// make it longer than a formula may be there are none, so it can always be read again.
pub(super) fn canonical(root: &Node) -> String {
    let mut text = String::new();
    write(&mut text, root, true);
    if text.chars().count() > FORMULA_CHARS_MAX {
        text.clear();
        write(&mut text, root, false);
    }
    text
}

fn write(text: &mut String, node: &Node, spaced: bool) {
    match node {
        Node::Number(number) => {
            let digits = number.to_string();
            text.push_str(if spaced { &digits } else { shortest(&digits) });
        }
        Node::Value { column, lag: 0 } => text.push_str(column.name()),
        Node::Value { column, lag } => text.push_str(&format!("{column}[-{lag}]")),
        Node::Negate(inner) => {
            text.push('-');
            wrapped(text, inner, rank(inner) < Rank::Factor, spaced);
        }
        Node::Binary { operator, left, right } => {
            let own = rank(node);
            wrapped(text, left, rank(left) < own, spaced);
            let symbol = operator.symbol();
            if spaced {
                text.extend([' ', symbol, ' ']);
            } else {
                text.push(symbol);
            }
            wrapped(text, right, rank(right) <= own, spaced);
        }
    }
}

/// `.5` is as good as `0.5`.
fn shortest(digits: &str) -> &str {
    digits.strip_prefix('0').filter(|rest| rest.starts_with('.')).unwrap_or(digits)
}

fn wrapped(text: &mut String, node: &Node, in_parentheses: bool, spaced: bool) {
    if in_parentheses {
        text.push('(');
    }
    write(text, node, spaced);
    if in_parentheses {
        text.push(')');
    }
}

/// One node a line, indented by depth.
pub(super) fn tree(root: &Node) -> String {
    let mut text = String::new();
    draw(&mut text, root, 0);
    text
}

fn draw(text: &mut String, node: &Node, depth: usize) {
    text.extend(std::iter::repeat_n("  ", depth));
    match node {
        Node::Number(number) => text.push_str(&number.to_string()),
        Node::Value { column, lag: 0 } => text.push_str(column.name()),
        Node::Value { column, lag } => {
            let days = if *lag == 1 { "business day" } else { "business days" };
            // Writing to a string cannot fail.
            let _ = write!(text, "{column}, {lag} {days} earlier");
        }
        Node::Negate(_) => text.push_str("negate"),
        Node::Binary { operator, .. } => text.push(operator.symbol()),
    }
    text.push('\n');
    match node {
        Node::Negate(inner) => draw(text, inner, depth + 1),
        Node::Binary { left, right, .. } => {
            draw(text, left, depth + 1);
            draw(text, right, depth + 1);
        }
        Node::Number(_) | Node::Value { .. } => {}
    }
}
