//! Answers about the account: balances, orders and positions, read exactly.
//!
//! Specification 1, "Gateway REST calls"; specification 4, P57. An answer that cannot be read as a whole is an
//! error. A row or an amount that cannot be read is left out and named by its field, and the rest is shown.

mod orders;
mod row;

use domain::{Money, OrderSide, OrderStatus, OrderType, Price, Quantity, TimeInForce, TsNanos};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::Listed;
use crate::local_broker::keys::{instrument_of, is_derivative, is_symbol};
use row::{List, Row, wrong};

pub use orders::read_orders;

/// An answer of the gateway's that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the engine cannot read the gateway's answer to GET {path} and shows nothing of it: {what}"
)]
pub struct Unreadable {
    path: &'static str,
    what: String,
}

/// An amount, or why it cannot be read; `None` if the gateway has none.
pub type Amount = Result<Option<Money>, String>;

/// An order of the account's list. The gateway lists the orders of every sender, with its own ids only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountOrder {
    /// The broker's id of it.
    pub venue_order_id: String,
    /// The instrument, like `7203.TSE`.
    pub instrument_id: String,
    /// Side.
    pub side: OrderSide,
    /// Type.
    pub order_type: OrderType,
    /// Shares ordered.
    pub quantity: Quantity,
    /// Shares filled.
    pub filled: Quantity,
    /// Shares open.
    pub leaves: Quantity,
    /// Its limit; `None` for a market order.
    pub price: Option<Price>,
    /// How long it lives.
    pub time_in_force: TimeInForce,
    /// Its last moment, if that is on a later day.
    pub expires: Option<TsNanos>,
    /// Its state.
    pub status: OrderStatus,
    /// When the broker has received it.
    pub received: TsNanos,
    /// All further fields, in the gateway's own texts.
    pub extra: Map<String, Value>,
}

/// A position of the account's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountPosition {
    /// The instrument, like `7203.TSE`.
    pub instrument_id: String,
    /// Shares held.
    pub quantity: Quantity,
    /// Average price of these.
    pub average_price: Option<Price>,
    /// Their value at the last price.
    pub market_value: Option<Money>,
    /// Profit or loss at the last price.
    pub unrealized: Option<Money>,
    /// Side that it is held on.
    pub side: OrderSide,
    /// Its kind.
    pub kind: PositionKind,
    /// The broker's number of it.
    pub number: Option<String>,
}

/// How a position is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PositionKind {
    /// Shares in cash.
    Cash,
    /// System margin.
    SystemMargin,
    /// General margin.
    GeneralMargin,
    /// Futures and options.
    Derivative,
}

/// The money for cash orders (`StockAccountWallet` of `GET /wallet/cash`); `None` for null.
///
/// # Errors
/// [`Unreadable`]
pub fn read_cash(body: &str) -> Result<Amount, Unreadable> {
    read_amount(body, "/wallet/cash", "StockAccountWallet")
}

/// The money for margin orders (`MarginAccountWallet` of `GET /wallet/margin`); `None` for null.
///
/// # Errors
/// [`Unreadable`]
pub fn read_margin(body: &str) -> Result<Amount, Unreadable> {
    read_amount(body, "/wallet/margin", "MarginAccountWallet")
}

fn read_amount(body: &str, path: &'static str, name: &str) -> Result<Amount, Unreadable> {
    let unreadable = |what| Unreadable { path, what };
    let row = Row::read(body).map_err(unreadable)?;
    if !row.has(name) {
        return Err(unreadable(format!("{name} is missing")));
    }
    let units = row.units(name).map_err(|what| format!("GET {path}: {what}"));
    Ok(units.map(|units| units.map(Money::from_units)))
}

/// The positions (`GET /positions`).
///
/// # Errors
/// [`Unreadable`]
pub fn read_positions(body: &str) -> Result<Listed<AccountPosition>, Unreadable> {
    read_rows(body, "/positions", &["ExecutionID", "Symbol"], position)
}

fn position(row: &Row<'_>) -> Result<AccountPosition, String> {
    let exchange = row.required_whole("Exchange")?;
    let kind = match row.whole("MarginTradeType")? {
        _ if is_derivative(exchange) => PositionKind::Derivative,
        None | Some(0) => PositionKind::Cash,
        Some(1) => PositionKind::SystemMargin,
        Some(2 | 3) => PositionKind::GeneralMargin,
        Some(other) => {
            let what = "is not 1 (system), 2 or 3 (general margin)";
            return Err(wrong("MarginTradeType", &other.to_string(), what));
        }
    };
    Ok(AccountPosition {
        instrument_id: instrument(row, exchange)?,
        quantity: Quantity::new(row.shares("LeavesQty")?),
        average_price: row.average("Price")?.map(Price::from_units),
        market_value: row.average("Valuation")?.map(Money::from_units),
        unrealized: row.average("ProfitLoss")?.map(Money::from_units),
        side: side(row)?,
        kind,
        number: row.text("ExecutionID")?,
    })
}

/// Reads the rows of a list one by one. A row that cannot be read is named by the first of its fields in `ids`.
fn read_rows<T>(
    body: &str,
    path: &'static str,
    ids: &[&str],
    read: fn(&Row<'_>) -> Result<T, String>,
) -> Result<Listed<T>, Unreadable> {
    let list = List::read(body).map_err(|what| Unreadable { path, what })?;
    let id = |text: &&RawValue| {
        let row = Row::read(text.get()).ok()?;
        ids.iter().find_map(|name| row.text(name).ok().flatten())
    };
    Ok(Listed::read(&list.0, id, |text| {
        let row = Row::read(text.get()).and_then(|row| read(&row));
        row.map_err(|what| format!("GET {path}: {what}"))
    }))
}

/// The gateway's codes of the sides: 1 sells, 2 buys (specification 1, "Order side codes"). The web broker's
/// code of a buy, 3, is an error here.
fn side(row: &Row<'_>) -> Result<OrderSide, String> {
    let code = row.code("Side")?;
    match code.as_str() {
        "1" => Ok(OrderSide::Sell),
        "2" => Ok(OrderSide::Buy),
        other => Err(wrong("Side", other, "is neither 1 (sell) nor 2 (buy)")),
    }
}

/// The instrument of a row of a market.
fn instrument(row: &Row<'_>, exchange: i64) -> Result<String, String> {
    let symbol = row.required_text("Symbol")?;
    if !is_symbol(&symbol) {
        return Err(wrong("Symbol", &symbol, "is not 4 to 9 digits and capital letters"));
    }
    instrument_of(&symbol, exchange)
        .ok_or_else(|| wrong("Exchange", &exchange.to_string(), "is not a known market"))
}

#[cfg(test)]
mod tests;
