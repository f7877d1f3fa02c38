//! Reads a message about a board. `BidPrice` and `AskPrice` are never looked at: gateways swap them. The first
//! levels say what the best prices are.

use super::json::{Json, Read};
use super::{Board, LEVELS_MAX, Level, NUMBER_MAX, line, time};

/// Bytes of an issue's code.
const SYMBOL_BYTES_MAX: usize = 16;

/// One side of a board: each level that has a price, at its place.
type Side = [Option<Level>; LEVELS_MAX];

/// A field that is read, as a bit: which were seen.
#[derive(Debug, Clone, Copy)]
enum Field {
    Symbol,
    SymbolName,
    Exchange,
    CurrentPrice,
    CurrentPriceTime,
    TradingVolume,
    /// A level of those who sell, from 0.
    Sell(usize),
    /// A level of those who buy, from 0.
    Buy(usize),
}

impl Field {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "Symbol" => Self::Symbol,
            "SymbolName" => Self::SymbolName,
            "Exchange" => Self::Exchange,
            "CurrentPrice" => Self::CurrentPrice,
            "CurrentPriceTime" => Self::CurrentPriceTime,
            "TradingVolume" => Self::TradingVolume,
            _ => match name.as_bytes() {
                [b'S', b'e', b'l', b'l', level @ ..] => Self::Sell(index(level)?),
                [b'B', b'u', b'y', level @ ..] => Self::Buy(index(level)?),
                _ => return None,
            },
        })
    }

    const fn bit(self) -> u32 {
        match self {
            Self::Symbol => 1,
            Self::SymbolName => 1 << 1,
            Self::Exchange => 1 << 2,
            Self::CurrentPrice => 1 << 3,
            Self::CurrentPriceTime => 1 << 4,
            Self::TradingVolume => 1 << 5,
            Self::Sell(index) => 1 << (6 + index),
            Self::Buy(index) => 1 << (6 + LEVELS_MAX + index),
        }
    }
}

/// The index of a level from its number, which begins at 1.
fn index(number: &[u8]) -> Option<usize> {
    match number {
        [digit @ b'1'..=b'9'] => Some(usize::from(digit - b'1')),
        b"10" => Some(9),
        _ => None,
    }
}

/// Reads a message about a board.
///
/// What is null or missing is left out, and so is a level without a price; a price without a quantity has 0.
/// A price of 0 is none, as gateways write it. The levels stand as they are numbered, and are neither sorted
/// nor filled in.
///
/// # Errors
/// Why it is none, on one line: it is no JSON, a field is there twice, has a value of another kind, is negative,
/// finer than 1/10,000 or too large, or it names no issue.
pub fn read(message: &str) -> Read<Board> {
    let mut board = Board {
        symbol: String::new(),
        exchange: None,
        name: None,
        last_price: None,
        time_ms: None,
        volume: None,
        best_ask: None,
        best_bid: None,
        asks: Vec::new(),
        bids: Vec::new(),
    };
    let (mut sell, mut buy): (Side, Side) = Default::default();
    let mut seen = 0;
    let mut json = Json::new(message);
    json.object(|json, name| {
        let Some(field) = Field::of(name) else { return json.skip() };
        if seen & field.bit() != 0 {
            return json.twice(name);
        }
        seen |= field.bit();
        if json.null()? {
            return Ok(());
        }
        match field {
            Field::Symbol => board.symbol = symbol(&json.text(name)?)?,
            Field::SymbolName => {
                board.name = Some(line(&json.text(name)?)).filter(|name| !name.is_empty());
            }
            Field::Exchange => board.exchange = Some(json.integer(name)?),
            Field::CurrentPrice => board.last_price = price(json, name)?,
            Field::CurrentPriceTime => {
                let text = json.text(name)?;
                board.time_ms = Some(time::epoch_ms(&text).ok_or_else(|| no_time(&text))?);
            }
            Field::TradingVolume => board.volume = Some(quantity(json, name)?),
            Field::Sell(index) => sell[index] = level(json, name)?,
            Field::Buy(index) => buy[index] = level(json, name)?,
        }
        Ok(())
    })?;
    json.end()?;
    if board.symbol.is_empty() {
        return Err("Symbol: it is missing".to_owned());
    }
    board.best_ask = sell[0].map(|level| level.price);
    board.best_bid = buy[0].map(|level| level.price);
    board.asks = levels(sell);
    board.bids = levels(buy);
    Ok(board)
}

/// A level; none where it has no price.
fn level(json: &mut Json<'_>, level: &str) -> Read<Option<Level>> {
    let (mut found, mut qty) = (None, None);
    let (mut has_price, mut has_qty) = (false, false);
    let read = json.object(|json, name| {
        match name {
            "Price" if std::mem::replace(&mut has_price, true) => return json.twice(name),
            "Qty" if std::mem::replace(&mut has_qty, true) => return json.twice(name),
            "Price" if !json.null()? => found = price(json, name)?,
            "Qty" if !json.null()? => qty = Some(quantity(json, name)?),
            "Price" | "Qty" => {}
            _ => return json.skip(),
        }
        Ok(())
    });
    read.map_err(|why| format!("{level}: {why}"))?;
    Ok(found.map(|price| Level { price, qty: qty.unwrap_or(0) }))
}

fn levels(side: Side) -> Vec<Level> {
    let mut levels = Vec::with_capacity(LEVELS_MAX);
    levels.extend(side.into_iter().flatten());
    levels
}

/// A number of 0 or more.
#[inline]
fn quantity(json: &mut Json<'_>, field: &str) -> Read<i64> {
    match json.decimal(field)? {
        units @ 0..=NUMBER_MAX => Ok(units),
        units if units < 0 => Err(format!("{field}: it is negative")),
        _ => Err(format!("{field}: it is too large")),
    }
}

/// A price; 0 is none.
#[inline]
fn price(json: &mut Json<'_>, field: &str) -> Read<Option<i64>> {
    quantity(json, field).map(|units| Some(units).filter(|units| *units > 0))
}

/// The code of an issue, capitals and digits.
fn symbol(text: &str) -> Read<String> {
    let fits = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
    if (1..=SYMBOL_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits) {
        return Ok(text.to_owned());
    }
    Err(format!("Symbol: it is not 1 to {SYMBOL_BYTES_MAX} digits and capitals"))
}

#[cold]
fn no_time(text: &str) -> String {
    let text = line(text);
    let end = text.floor_char_boundary(text.len().min(40));
    format!("CurrentPriceTime: `{}` is no time with an offset", &text[..end])
}

#[cfg(test)]
mod tests;
