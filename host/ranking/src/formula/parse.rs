//! The grammar, with nom:
//!
//! ```text
//! expression = term { ("+" | "-") term }
//! term       = factor { ("*" | "/") factor }
//! factor     = [ "+" | "-" ] factor | primary
//! primary    = number | column [ "[" "-" digits "]" ] | "(" expression ")"
//! ```

use nom::character::complete::{char, digit1};
use nom::combinator::cut;
use nom::multi::many0;
use nom::sequence::{pair, preceded};
use nom::{Err, Parser};

use super::fault::{Fault, FormulaError, What};
use super::node::{Column, Node, Operator};
use super::tokens::{self, Parsed, sign, space};
use crate::limits::{
    FORMULA_CHARS_MAX, FORMULA_LAGS_MAX, FORMULA_NESTING_MAX, FORMULA_TOKENS_MAX, LAG_MAX,
};
use crate::text::excerpt;

/// Reads a whole formula and holds it against the limits.
pub(super) fn parse(text: &str) -> Result<Node, FormulaError> {
    let characters = text.chars().count();
    if characters > FORMULA_CHARS_MAX {
        let message = format!(
            "the formula has {characters} characters; at most {FORMULA_CHARS_MAX} are allowed"
        );
        return Err(FormulaError { position: FORMULA_CHARS_MAX + 1, message });
    }
    let node = whole(text).map_err(|fault| error(text, fault))?;
    let tokens = tokens::count(text);
    if tokens > FORMULA_TOKENS_MAX {
        let message =
            format!("the formula has {tokens} tokens; at most {FORMULA_TOKENS_MAX} are allowed");
        return Err(FormulaError { position: 1, message });
    }
    let lags = node.lags().len();
    if lags > FORMULA_LAGS_MAX {
        let message = format!(
            "the formula has {lags} different lags; at most {FORMULA_LAGS_MAX} are allowed"
        );
        return Err(FormulaError { position: 1, message });
    }
    Ok(node)
}

/// The error for the client; `text` is the whole formula.
fn error(text: &str, fault: Fault<'_>) -> FormulaError {
    let before = text.len().saturating_sub(fault.at.len());
    let position = text.char_indices().take_while(|(byte, _)| *byte < before).count() + 1;
    let message = match fault.what {
        What::Message(message) => message,
        What::Unexpected(hint) => match tokens::first(fault.at) {
            Some(token) => format!("unexpected `{token}` at character {position}"),
            None => format!("unexpected end of the formula at character {position}; {hint}"),
        },
    };
    FormulaError { position, message }
}

fn whole(text: &str) -> Result<Node, Fault<'_>> {
    let parsed = expression(text, 0).and_then(|(rest, node)| Ok((space(rest)?.0, node)));
    match parsed {
        Ok(("", node)) => Ok(node),
        Ok((rest, _)) => Err(Fault { at: rest, what: What::Unexpected("") }),
        Err(Err::Error(fault) | Err::Failure(fault)) => Err(fault),
        Err(Err::Incomplete(_)) => Err(Fault { at: "", what: What::Unexpected("") }),
    }
}

fn failure<T>(at: &str, message: impl Into<String>) -> Parsed<'_, T> {
    Err(Err::Failure(Fault { at, what: What::Message(message.into()) }))
}

fn expression(input: &str, nesting: usize) -> Parsed<'_, Node> {
    let (rest, first) = term(input, nesting)?;
    let next = cut(move |input| term(input, nesting));
    let (rest, tail) = many0(pair(sign("+-"), next)).parse(rest)?;
    Ok((rest, chain(first, tail)))
}

fn term(input: &str, nesting: usize) -> Parsed<'_, Node> {
    let (rest, first) = factor(input, nesting)?;
    let next = cut(move |input| factor(input, nesting));
    let (rest, tail) = many0(pair(sign("*/"), next)).parse(rest)?;
    Ok((rest, chain(first, tail)))
}

/// Operators of one rank bind to the left.
fn chain(first: Node, tail: Vec<(char, Node)>) -> Node {
    tail.into_iter().fold(first, |left, (symbol, right)| {
        let operator = match symbol {
            '+' => Operator::Add,
            '-' => Operator::Subtract,
            '*' => Operator::Multiply,
            _ => Operator::Divide,
        };
        Node::Binary { operator, left: Box::new(left), right: Box::new(right) }
    })
}

fn factor(input: &str, nesting: usize) -> Parsed<'_, Node> {
    let (at, _) = space(input)?;
    let Ok((rest, symbol)) = sign("+-").parse(at) else {
        return primary(at, nesting);
    };
    let nesting = deeper(at, nesting)?;
    let (rest, inner) = cut(move |input| factor(input, nesting)).parse(rest)?;
    // A plus sign changes nothing, so it is not kept.
    Ok((rest, if symbol == '-' { Node::Negate(Box::new(inner)) } else { inner }))
}

fn deeper(at: &str, nesting: usize) -> Result<usize, Err<Fault<'_>>> {
    if nesting >= FORMULA_NESTING_MAX {
        let message =
            format!("parentheses and signs are nested more than {FORMULA_NESTING_MAX} deep");
        return Err(Err::Failure(Fault { at, what: What::Message(message) }));
    }
    Ok(nesting + 1)
}

fn primary(at: &str, nesting: usize) -> Parsed<'_, Node> {
    if let Ok((rest, _)) = char::<_, Fault<'_>>('(').parse(at) {
        let nesting = deeper(at, nesting)?;
        let (rest, inner) = cut(move |input| expression(input, nesting)).parse(rest)?;
        let (end, _) = space(rest)?;
        let close =
            char::<_, Fault<'_>>(')').parse(end).map_err(|_| missing(end, "a `)` is missing"));
        return close.map(|(rest, _)| (rest, inner));
    }
    if let Ok((rest, name)) = tokens::name(at) {
        return value(at, name, rest);
    }
    let (rest, digits) = tokens::number(at)?;
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok((rest, Node::Number(number))),
        _ => failure(at, "the number is too large for a 64-bit floating point number"),
    }
}

fn missing<'a>(at: &'a str, hint: &'static str) -> Err<Fault<'a>> {
    Err::Failure(Fault { at, what: What::Unexpected(hint) })
}

fn value<'a>(at: &'a str, name: &'a str, rest: &'a str) -> Parsed<'a, Node> {
    let Some(column) = Column::ALL.into_iter().find(|column| column.name() == name) else {
        return failure(at, not_a_column(name, rest));
    };
    match preceded(space, char::<_, Fault<'_>>('[')).parse(rest) {
        Ok((rest, _)) => {
            let (rest, lag) = lag(rest, column)?;
            Ok((rest, Node::Value { column, lag }))
        }
        Err(_) => Ok((rest, Node::Value { column, lag: 0 })),
    }
}

fn not_a_column(name: &str, rest: &str) -> String {
    if name == "PrevClose" {
        return "`PrevClose` was removed; write Close[-1]".to_owned();
    }
    let shown = excerpt(name);
    if rest.trim_start().starts_with('(') {
        return format!(
            "`{shown}` is a function; a formula has only columns, numbers and + - * / ( )"
        );
    }
    let alike = Column::ALL.into_iter().find(|column| column.name().eq_ignore_ascii_case(name));
    match alike {
        Some(column) => format!("`{shown}` is not a column; write {column}"),
        None => format!("`{shown}` is not a column; use Close, Open, High, Low or Volume"),
    }
}

/// What stands in the brackets, and the closing one.
fn lag(input: &str, column: Column) -> Parsed<'_, u32> {
    let (at, _) = space(input)?;
    let (rest, _) = match char::<_, Fault<'_>>('-').parse(at) {
        Ok(parsed) => parsed,
        Err(_) if at.starts_with(|c: char| c.is_ascii_digit()) => {
            return failure(at, format!("a lag needs a minus sign; write {column}[-N]"));
        }
        Err(_) => return Err(missing(at, "a lag is written [-N]")),
    };
    let (at, _) = space(rest)?;
    let (rest, digits) =
        digit1::<_, Fault<'_>>(at).map_err(|_| missing(at, "a lag is written [-N]"))?;
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return failure(at, "lag must be at least 1");
    }
    // So many digits that they do not fit are above the limit too.
    let lag = significant.parse::<u32>().unwrap_or(u32::MAX);
    if lag > LAG_MAX {
        return failure(at, format!("lag must be at most {LAG_MAX}"));
    }
    let (end, _) = space(rest)?;
    if end.starts_with('.') {
        return failure(end, "lag must be a whole number");
    }
    let close = char::<_, Fault<'_>>(']').parse(end).map_err(|_| missing(end, "a `]` is missing"));
    close.map(|(rest, _)| (rest, lag))
}
