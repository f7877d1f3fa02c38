//! Dialects of local gateways: linked, made and called. What one says is held against the contract here: what
//! does not fit it is a fault, not a value.

use domain::fault::FaultKind;
use domain::gateway_mapping::{
    BOARD_LEVELS_MAX, GatewayBoard, GatewayDescription, GatewayErrorKind, GatewayRefusal,
};
use domain::limits::{
    FORMULA_NAME_BYTES_MAX, FORMULA_TEXT_BYTES_MAX, FORMULA_WORD_BYTES_MAX, GATEWAY_NUMBER_MAX,
    GATEWAY_PATH_BYTES_MAX, GATEWAY_SYMBOL_BYTES_MAX, GATEWAY_TEXT_BYTES_MAX,
};
use domain::market_update::Level;
use domain::text::{on_one_line, steers};
use wasmtime::component::{Component, Linker};
use wasmtime::{Result, Store};

use super::HOST_BYTES_PER_BYTE;
use super::gateway_mapping_bindings as bindings;
use super::to_guest::same_cases;
use crate::formula::description;
use crate::state::State;
use bindings::exports::kumiki::gateway_mapping::guest as wit;

same_cases!(wit::ErrorKind => GatewayErrorKind { TokenExpired, RegisterFull, RateLimited, Other });

/// A dialect that can be instantiated.
pub(crate) struct GatewayReady(bindings::GatewayMappingPre<State>);

impl GatewayReady {
    /// A component, linked with nothing: a dialect imports nothing.
    pub(crate) fn new(component: &Component) -> Result<Self> {
        let linker = Linker::new(component.engine());
        bindings::GatewayMappingPre::new(linker.instantiate_pre(component)?).map(Self)
    }

    pub(crate) fn instantiate(&self, store: &mut Store<State>) -> Result<Gateway> {
        let bytes = store.data().limits.result_bytes;
        store.set_hostcall_fuel(bytes.saturating_mul(HOST_BYTES_PER_BYTE));
        self.0.instantiate(store).map(Gateway)
    }
}

/// Nanoseconds of a millisecond: what has more of them than 64 bits is no time of ours.
const NANOS_PER_MILLI: u64 = 1_000_000;

/// One running dialect.
pub(crate) struct Gateway(bindings::GatewayMapping);

/// A value that fits the contract, or what breaks it.
type Answered<T> = Result<T, FaultKind>;

/// What breaks the contract ends the call with a fault.
fn read<T>(store: &mut Store<State>, read: Answered<T>) -> Result<T> {
    read.or_else(|kind| store.data_mut().breach(kind))
}

impl Gateway {
    fn guest(&self) -> &wit::Guest {
        self.0.kumiki_gateway_mapping_guest()
    }

    pub(crate) fn describe(&self, store: &mut Store<State>) -> Result<GatewayDescription> {
        let found = self.guest().call_describe(&mut *store)?;
        read(store, describe(found))
    }

    pub(crate) fn classify(
        &self,
        store: &mut Store<State>,
        status: u16,
        body: &str,
    ) -> Result<GatewayRefusal> {
        let found = self.guest().call_classify(&mut *store, status, body)?;
        read(store, refusal(found))
    }

    pub(crate) fn read_board(
        &self,
        store: &mut Store<State>,
        message: &str,
    ) -> Result<Result<GatewayBoard, String>> {
        match self.guest().call_read_board(&mut *store, message)? {
            Ok(found) => read(store, board(found)).map(Ok),
            Err(why) => read(store, line("the reason", &why).map(|()| Err(why))),
        }
    }
}

#[cold]
fn broken<T>(what: String) -> Answered<T> {
    Err(FaultKind::Protocol(what))
}

fn within(what: &'static str, used: usize, allowed: usize) -> Answered<()> {
    if used > allowed {
        let (used, allowed) = (used as u64, allowed as u64);
        return Err(FaultKind::Limit { what, used, allowed });
    }
    Ok(())
}

/// A text on one line.
fn line(what: &str, text: &str) -> Answered<()> {
    within("bytes in one text", text.len(), GATEWAY_TEXT_BYTES_MAX)?;
    match text.contains(steers) {
        false => Ok(()),
        true => broken(format!("{what} has control characters: `{}`", on_one_line(text))),
    }
}

/// Words of small letters, digits, `_` and `-`, each after a `/`.
fn path(what: &str, text: &str) -> Answered<()> {
    let fits =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    let is_path = text
        .strip_prefix('/')
        .is_some_and(|rest| rest.split('/').all(|word| !word.is_empty() && word.bytes().all(fits)));
    if is_path && text.len() <= GATEWAY_PATH_BYTES_MAX {
        return Ok(());
    }
    let shown = &text[..text.floor_char_boundary(GATEWAY_PATH_BYTES_MAX)];
    broken(format!("{what} `{}` is no path like `/a/b` of 64 bytes", on_one_line(shown)))
}

fn describe(found: wit::Description) -> Answered<GatewayDescription> {
    description::word("its name", &found.name, FORMULA_NAME_BYTES_MAX, b'-')?;
    description::text("its version", &found.version, FORMULA_WORD_BYTES_MAX)?;
    description::text("its summary", &found.summary, FORMULA_TEXT_BYTES_MAX)?;
    if !found.rest_prefix.is_empty() {
        path("the prefix", &found.rest_prefix)?;
    }
    path("the push path", &found.push_path)?;
    Ok(GatewayDescription {
        name: found.name,
        version: found.version,
        summary: found.summary,
        rest_prefix: found.rest_prefix,
        push_path: found.push_path,
        board_read_registers: found.board_read_registers,
    })
}

fn refusal(found: wit::GatewayError) -> Answered<GatewayRefusal> {
    line("the message", &found.message)?;
    Ok(GatewayRefusal { kind: found.kind.into(), code: found.code, message: found.message })
}

fn board(found: wit::Board) -> Answered<GatewayBoard> {
    symbol(&found.symbol)?;
    if let Some(name) = &found.name {
        line("the name", name)?;
    }
    price("the last price", found.last_price)?;
    number("the volume", found.volume, 0)?;
    if found.time_ms.is_some_and(|time| time > u64::MAX / NANOS_PER_MILLI) {
        return broken("its time is after the year 2554".to_owned());
    }
    side("best ask", found.best_ask, &found.asks)?;
    side("best bid", found.best_bid, &found.bids)?;
    Ok(GatewayBoard {
        symbol: found.symbol,
        exchange: found.exchange,
        name: found.name,
        last_price: found.last_price,
        time_ms: found.time_ms,
        volume: found.volume,
        best_ask: found.best_ask,
        best_bid: found.best_bid,
        asks: levels(found.asks),
        bids: levels(found.bids),
    })
}

fn symbol(text: &str) -> Answered<()> {
    let fits = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
    if (1..=GATEWAY_SYMBOL_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits) {
        return Ok(());
    }
    within("bytes in one text", text.len(), GATEWAY_TEXT_BYTES_MAX)?;
    broken(format!("the issue `{}` is not 1 to 16 digits and capitals", on_one_line(text)))
}

fn number(what: &str, units: Option<i64>, least: i64) -> Answered<()> {
    match units {
        Some(units) if !(least..=GATEWAY_NUMBER_MAX).contains(&units) => {
            broken(format!("{what} is {units}; {least} to {GATEWAY_NUMBER_MAX} are allowed"))
        }
        _ => Ok(()),
    }
}

fn price(what: &str, units: Option<i64>) -> Answered<()> {
    number(what, units, 1)
}

/// One side of a board. The best price is that of the first level, or none.
fn side(what: &str, best: Option<i64>, levels: &[wit::Level]) -> Answered<()> {
    within("levels of one side", levels.len(), BOARD_LEVELS_MAX)?;
    for level in levels {
        price("a level's price", Some(level.price))?;
        number("a level's quantity", Some(level.qty), 0)?;
    }
    match (best, levels.first()) {
        (Some(best), first) if first.is_none_or(|first| first.price != best) => {
            broken(format!("the {what} {best} is not the price of the first level"))
        }
        _ => Ok(()),
    }
}

/// The same levels, in the memory that they are in.
fn levels(levels: Vec<wit::Level>) -> Vec<Level> {
    levels.into_iter().map(|wit::Level { price, qty }| Level { price, quantity: qty }).collect()
}

#[cfg(test)]
mod tests;
