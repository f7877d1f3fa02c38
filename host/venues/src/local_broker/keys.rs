//! Names of issues at the gateway, and the one function that builds the key of a path.
//!
//! Specification 1, "Identifiers"; specification 4, P51.

use thiserror::Error;

/// Tokyo, the only market whose boards are taken (specification 1, "Identifiers").
pub const TOKYO: i64 = 1;
/// Characters of the shortest symbol (specification 4, P51).
pub const SYMBOL_CHARS_MIN: usize = 4;
/// Characters of the longest symbol (specification 4, P51).
pub const SYMBOL_CHARS_MAX: usize = 9;
/// The suffix that a ticker may have.
const SUFFIX: &str = ".TSE";
/// The suffixes of the instruments in lists; see [`instrument_of`].
const LISTED_SUFFIXES: [&str; 5] = [SUFFIX, ".NSE", ".FSE", ".SSE", ".OSE"];
/// Characters of a wrong ticker that are shown.
const SHOWN_CHARS_MAX: usize = 16;

/// A text that is no ticker.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not a ticker; write {SYMBOL_CHARS_MIN} to {SYMBOL_CHARS_MAX} digits and capital \
     letters, like 7203 or 130A"
)]
pub struct BadTicker(String);

/// Whether a text is a symbol: `[0-9A-Z]{4,9}`.
#[must_use]
pub fn is_symbol(text: &str) -> bool {
    (SYMBOL_CHARS_MIN..=SYMBOL_CHARS_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// The symbol of a ticker: `7203`, also of `7203.TSE`.
///
/// # Errors
/// [`BadTicker`]
pub fn symbol_of(ticker: &str) -> Result<&str, BadTicker> {
    checked(ticker.strip_suffix(SUFFIX).unwrap_or(ticker))
}

/// The key in a path of the gateway. Bodies of requests do not use it.
///
/// # Errors
/// [`BadTicker`]: a text that is no symbol becomes part of no path.
pub fn composite_key(symbol: &str, exchange: i64) -> Result<String, BadTicker> {
    let symbol = checked(symbol)?;
    Ok(format!("{symbol}@{exchange}"))
}

/// The instrument of a symbol at a market. It is Tokyo's also if the broker picks the place in Tokyo (9 and 27;
/// specification 4, P57). `None` for an unknown market.
#[must_use]
pub fn instrument_of(symbol: &str, exchange: i64) -> Option<String> {
    let suffix = match exchange {
        TOKYO | 9 | 27 => "TSE",
        3 => "NSE",
        5 => "FSE",
        6 => "SSE",
        _ if is_derivative(exchange) => "OSE",
        _ => return None,
    };
    Some(format!("{symbol}.{suffix}"))
}

/// Checks the instrument in a client's filter: of any market, and of Tokyo if it names none.
///
/// # Errors
/// [`BadTicker`]
pub fn listed_instrument(given: &str) -> Result<String, BadTicker> {
    let suffix = LISTED_SUFFIXES.into_iter().find(|suffix| given.ends_with(suffix));
    let symbol = given.strip_suffix(suffix.unwrap_or_default()).unwrap_or(given);
    Ok(format!("{}{}", checked(symbol)?, suffix.unwrap_or(SUFFIX)))
}

/// Whether a market is one of futures and options.
#[must_use]
pub const fn is_derivative(exchange: i64) -> bool {
    matches!(exchange, 2 | 23 | 24)
}

fn checked(symbol: &str) -> Result<&str, BadTicker> {
    if is_symbol(symbol) {
        return Ok(symbol);
    }
    let shown: String = symbol.chars().take(SHOWN_CHARS_MAX).collect();
    Err(BadTicker(domain::text::on_one_line(&shown).into_owned()))
}

#[cfg(test)]
mod tests;
