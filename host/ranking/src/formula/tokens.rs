//! The tokens of the formula language, as nom parsers.

use nom::branch::alt;
use nom::bytes::complete::{take_while, take_while1};
use nom::character::complete::{anychar, char, digit1};
use nom::combinator::{opt, recognize, verify};
use nom::multi::fold_many0;
use nom::sequence::{pair, preceded};
use nom::{IResult, Parser};

use super::fault::Fault;
use crate::text::excerpt;

pub(super) type Parsed<'a, T> = IResult<&'a str, T, Fault<'a>>;

/// White space, as much as there is.
pub(super) fn space(input: &str) -> Parsed<'_, &str> {
    take_while(char::is_whitespace).parse(input)
}

/// A number: `12`, `12.5` or `.5`.
pub(super) fn number(input: &str) -> Parsed<'_, &str> {
    let fraction = || pair(char('.'), digit1);
    alt((recognize(pair(digit1, opt(fraction()))), recognize(fraction()))).parse(input)
}

/// A name, whatever it means.
pub(super) fn name(input: &str) -> Parsed<'_, &str> {
    let starts = |name: &&str| name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    verify(take_while1(|c: char| c.is_alphanumeric() || c == '_'), starts).parse(input)
}

/// One of these characters, with white space before it.
pub(super) fn sign<'a>(
    signs: &'static str,
) -> impl Parser<&'a str, Output = char, Error = Fault<'a>> {
    preceded(space, verify(anychar, move |c| signs.contains(*c)))
}

/// How many tokens a text has; anything else than names and numbers counts one by one.
pub(super) fn count(text: &str) -> usize {
    let token = preceded(space, alt((name, number, recognize(anychar))));
    fold_many0(token, || 0_usize, |count, _| count + 1)
        .parse(text)
        .map_or(usize::MAX, |(_, count)| count)
}

/// The first token of a text as a message shows it; `None` where nothing is left.
pub(super) fn first(text: &str) -> Option<String> {
    if let Ok((_, token)) = alt((name, number)).parse(text) {
        return Some(excerpt(token));
    }
    let first = text.chars().next()?;
    if first.is_control() || first.is_whitespace() || is_invisible(first) {
        return Some(format!("U+{:04X}", u32::from(first)));
    }
    Some(first.to_string())
}

/// Characters that would change or hide the text around them.
fn is_invisible(c: char) -> bool {
    matches!(u32::from(c), 0xad | 0x0300..=0x036f | 0x200b..=0x200f | 0x2028..=0x202e
        | 0x2060..=0x206f | 0xfe00..=0xfe0f | 0xfeff | 0xfff9..=0xfffb | 0xe0000..=0xe01ef)
}
