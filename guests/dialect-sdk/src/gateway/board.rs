//! Reads a message about a board. `BidPrice` and `AskPrice` are never looked at: gateways swap them. The first
//! levels say what the best prices are.

use super::json::{Json, Read};
use super::{Board, LEVELS_MAX, Level, NUMBER_MAX, line, time};

/// Bytes of an issue's code.
const SYMBOL_BYTES_MAX: usize = 16;

/// What is read of a message: each has a number, and levels are most of it.
struct Field;

impl Field {
    const SELL: usize = 0;
    const BUY: usize = Self::SELL + LEVELS_MAX;
    const SYMBOL: usize = Self::BUY + LEVELS_MAX;
    const SYMBOL_NAME: usize = Self::SYMBOL + 1;
    const EXCHANGE: usize = Self::SYMBOL + 2;
    const CURRENT_PRICE: usize = Self::SYMBOL + 3;
    const CURRENT_PRICE_TIME: usize = Self::SYMBOL + 4;
    const TRADING_VOLUME: usize = Self::SYMBOL + 5;

    fn of(name: &str) -> Option<usize> {
        match name.as_bytes() {
            [b'S', b'e', b'l', b'l', level @ ..] => Some(Self::SELL + index(level)?),
            [b'B', b'u', b'y', level @ ..] => Some(Self::BUY + index(level)?),
            b"Symbol" => Some(Self::SYMBOL),
            b"SymbolName" => Some(Self::SYMBOL_NAME),
            b"Exchange" => Some(Self::EXCHANGE),
            b"CurrentPrice" => Some(Self::CURRENT_PRICE),
            b"CurrentPriceTime" => Some(Self::CURRENT_PRICE_TIME),
            b"TradingVolume" => Some(Self::TRADING_VOLUME),
            _ => None,
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
    // Those who sell, then those who buy.
    let mut levels: [Option<Level>; 2 * LEVELS_MAX] = [None; 2 * LEVELS_MAX];
    let mut seen: u32 = 0;
    let mut json = Json::new(message);
    json.object(|json, name| {
        let Some(field) = Field::of(name) else { return json.skip() };
        let bit = 1 << field;
        if seen & bit != 0 {
            return json.twice(name);
        }
        seen |= bit;
        if json.null()? {
            return Ok(());
        }
        match field {
            Field::SYMBOL => board.symbol = symbol(&json.text(name)?)?,
            Field::SYMBOL_NAME => {
                board.name = Some(line(&json.text(name)?)).filter(|name| !name.is_empty());
            }
            Field::EXCHANGE => board.exchange = Some(json.integer(name)?),
            Field::CURRENT_PRICE => board.last_price = price(json, name)?,
            Field::CURRENT_PRICE_TIME => {
                let text = json.text(name)?;
                board.time_ms = Some(time::epoch_ms(&text).ok_or_else(|| no_time(&text))?);
            }
            Field::TRADING_VOLUME => board.volume = Some(quantity(json, name)?),
            place => levels[place] = level(json, name)?,
        }
        Ok(())
    })?;
    json.end()?;
    if board.symbol.is_empty() {
        return Err("Symbol: it is missing".to_owned());
    }
    let (sell, buy) = levels.split_at(LEVELS_MAX);
    board.best_ask = sell[0].map(|level| level.price);
    board.best_bid = buy[0].map(|level| level.price);
    board.asks = side(sell);
    board.bids = side(buy);
    Ok(board)
}

/// A level; none where it has no price.
fn level(json: &mut Json<'_>, level: &str) -> Read<Option<Level>> {
    let (mut found, mut qty) = (None, None);
    let (mut has_price, mut has_qty) = (false, false);
    let read = json.object(|json, name| match name {
        "Price" => {
            if std::mem::replace(&mut has_price, true) {
                return json.twice(name);
            }
            if !json.null()? {
                found = price(json, name)?;
            }
            Ok(())
        }
        "Qty" => {
            if std::mem::replace(&mut has_qty, true) {
                return json.twice(name);
            }
            if !json.null()? {
                qty = Some(quantity(json, name)?);
            }
            Ok(())
        }
        _ => json.skip(),
    });
    read.map_err(|why| format!("{level}: {why}"))?;
    Ok(found.map(|price| Level { price, qty: qty.unwrap_or(0) }))
}

/// The levels that have a price.
fn side(levels: &[Option<Level>]) -> Vec<Level> {
    let mut side = Vec::with_capacity(LEVELS_MAX);
    side.extend(levels.iter().flatten().copied());
    side
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
