//! Balances and positions: requests, and readers of their answers (specification 4, P40).
//!
//! Names of the balances come from the facts about the vendor. The specification has no fields for the lists of
//! holdings and of margin positions; these follow the vendor's own samples.

use domain::order_mapping::{BrokerRequest, Field, field};
use domain::{Money, OrderSide, Price, Quantity};

use crate::Listed;
use crate::web_broker::transport::Answered;

/// Shares of an issue that may be sold, by tax account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sellable {
    /// General (`sZanKabuSuryouUriKanouIppan`).
    pub general: Quantity,
    /// Specific (`sZanKabuSuryouUriKanouTokutei`).
    pub specific: Quantity,
    /// NISA (`sZanKabuSuryouUriKanouNisa`).
    pub nisa: Quantity,
    /// NISA, growth (`sZanKabuSuryouUriKanouNseityou`).
    pub growth: Quantity,
}

/// Shares of an issue in the account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// `7203`.
    pub symbol: String,
    /// Tax account in the broker's code (`1` specific, `3` general, `5` NISA, `6` NISA growth), if the broker
    /// sends it.
    pub account: Option<String>,
    /// Shares.
    pub quantity: Quantity,
    /// Shares of these that may be sold.
    pub sellable: Quantity,
    /// Average purchase price, if the broker sends it.
    pub average_price: Option<Price>,
    /// Value at the broker's last price.
    pub market_value: Option<Money>,
    /// Profit, or loss, at that value.
    pub profit: Option<Money>,
}

/// A margin position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarginPosition {
    /// The broker's number of it (`sOrderTategyokuNumber`), which `tategyoku` tags name.
    pub id: String,
    /// `7203`.
    pub symbol: String,
    /// Whether it was bought or sold.
    pub side: OrderSide,
    /// Tax account in the broker's code, if the broker sends it.
    pub account: Option<String>,
    /// Shares (`sOrderTategyokuSuryou`).
    pub quantity: Quantity,
    /// Shares of these that an order may close (`sOrderHensaiKanouSuryou`).
    pub open_quantity: Quantity,
    /// Price at which it was opened.
    pub price: Price,
    /// Value at the broker's last price, if the broker sends that price.
    pub market_value: Option<Money>,
    /// Profit, or loss, at that value.
    pub profit: Option<Money>,
    /// Whether it is general margin (`sOrderBensaiKubun` 36, 39), not the exchange's system (26, 29).
    pub is_general: bool,
}

/// The request for the money that may be spent on shares.
#[must_use]
pub fn cash_request() -> BrokerRequest {
    request("CLMZanKaiKanougaku", &[("sIssueCode", ""), ("sSizyouC", "")])
}

/// Cash to buy with (`sSummaryGenkabuKaituke`), or why the amount cannot be read.
///
/// # Errors
/// Why the answer cannot be used.
pub fn read_cash(answered: &Answered) -> Result<Result<Money, String>, String> {
    amount(answered, "sSummaryGenkabuKaituke")
}

/// Whether the broker reports a shortage of money (`sHusokukinHasseiFlg`); `None` if it does not say.
#[must_use]
pub fn read_shortage(answered: &Answered) -> Option<bool> {
    match field(&answered.answer.fields, "sHusokukinHasseiFlg")? {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// The request for the amount that may be opened on margin.
#[must_use]
pub fn margin_request() -> BrokerRequest {
    request("CLMZanShinkiKanoIjiritu", &[("sIssueCode", ""), ("sSizyouC", "")])
}

/// The amount that may be opened on margin (`sSummarySinyouSinkidate`), or why it cannot be read.
///
/// # Errors
/// Why the answer cannot be used.
pub fn read_margin(answered: &Answered) -> Result<Result<Money, String>, String> {
    amount(answered, "sSummarySinyouSinkidate")
}

/// The request for the shares of an issue that may be sold.
#[must_use]
pub fn sellable_request(symbol: &str) -> BrokerRequest {
    request("CLMZanUriKanousuu", &[("sIssueCode", symbol)])
}

/// Shares that may be sold.
///
/// # Errors
/// Why the answer does not have them.
pub fn read_sellable(answered: &Answered) -> Result<Sellable, String> {
    checked(answered)?;
    let shares = |name: &str| quantity(&answered.answer.fields, name);
    Ok(Sellable {
        general: shares("sZanKabuSuryouUriKanouIppan")?,
        specific: shares("sZanKabuSuryouUriKanouTokutei")?,
        nisa: shares("sZanKabuSuryouUriKanouNisa")?,
        growth: shares("sZanKabuSuryouUriKanouNseityou")?,
    })
}

/// The request for the shares in the account.
#[must_use]
pub fn holdings_request() -> BrokerRequest {
    request("CLMGenbutuKabuList", &[("sIssueCode", "")])
}

/// The shares in the account (`aGenbutuKabuList`).
///
/// # Errors
/// Why the answer cannot be used.
pub fn read_holdings(answered: &Answered) -> Result<Listed<Holding>, String> {
    rows(answered, "aGenbutuKabuList", "sUriOrderIssueCode", holding)
}

fn holding(row: &[Field]) -> Result<Holding, String> {
    Ok(Holding {
        symbol: text(row, "sUriOrderIssueCode")?,
        account: text(row, "sUriOrderZyoutoekiKazeiC").ok(),
        quantity: quantity(row, "sUriOrderZanKabuSuryou")?,
        sellable: quantity(row, "sUriOrderUritukeKanouSuryou")?,
        average_price: optional(row, "sUriOrderGaisanBokaTanka")?,
        market_value: optional(row, "sUriOrderGaisanHyoukagaku")?,
        profit: optional(row, "sUriOrderGaisanHyoukaSoneki")?,
    })
}

/// The request for the margin positions.
#[must_use]
pub fn margin_positions_request() -> BrokerRequest {
    request("CLMShinyouTategyokuList", &[("sIssueCode", "")])
}

/// The margin positions (`aShinyouTategyokuList`).
///
/// # Errors
/// Why the answer cannot be used.
pub fn read_margin_positions(answered: &Answered) -> Result<Listed<MarginPosition>, String> {
    rows(answered, "aShinyouTategyokuList", "sOrderTategyokuNumber", margin_position)
}

fn margin_position(row: &[Field]) -> Result<MarginPosition, String> {
    let side = match text(row, "sOrderBaibaiKubun")?.as_str() {
        "1" => OrderSide::Sell,
        "3" => OrderSide::Buy,
        _ => return Err("sOrderBaibaiKubun is neither 1 nor 3".to_owned()),
    };
    let is_general = match text(row, "sOrderBensaiKubun")?.as_str() {
        "26" | "29" => false,
        "36" | "39" => true,
        _ => return Err("sOrderBensaiKubun is not 26, 29, 36 or 39".to_owned()),
    };
    let all = quantity(row, "sOrderTategyokuSuryou")?;
    let last: Option<Price> = optional(row, "sOrderHyoukaTanka")?;
    let price = text(row, "sOrderTategyokuTanka")?;
    Ok(MarginPosition {
        id: text(row, "sOrderTategyokuNumber")?,
        symbol: text(row, "sOrderIssueCode")?,
        side,
        account: text(row, "sOrderZyoutoekiKazeiC").ok(),
        quantity: all,
        open_quantity: quantity(row, "sOrderHensaiKanouSuryou")?,
        price: price.parse().map_err(|_| "sOrderTategyokuTanka is not a price".to_owned())?,
        // The list has the price only.
        market_value: last.and_then(|last| Money::checked_notional(last, all)),
        profit: optional(row, "sOrderGaisanHyoukaSoneki")?,
        is_general,
    })
}

fn request(id: &str, fields: &[(&str, &str)]) -> BrokerRequest {
    let fields = fields.iter().map(|(name, value)| Field::new(*name, *value)).collect();
    BrokerRequest { id: id.to_owned(), fields, ..Default::default() }
}

/// Checks that neither the session nor the broker refuses.
fn checked(answered: &Answered) -> Result<(), String> {
    let answer = &answered.answer;
    if !answer.errno.is_empty() {
        return Err(format!("p_errno {}: {}", answer.errno, answer.error_text));
    }
    match field(&answer.fields, "sResultCode") {
        Some("0") => Ok(()),
        Some(code) => {
            let words = field(&answer.fields, "sResultText").unwrap_or_default();
            Err(format!("{code}: {words}"))
        }
        None => Err("the answer has no sResultCode".to_owned()),
    }
}

/// Reads the rows of a list one by one; `id` is the field that identifies a row.
fn rows<T>(
    answered: &Answered,
    name: &str,
    id: &str,
    read: fn(&[Field]) -> Result<T, String>,
) -> Result<Listed<T>, String> {
    checked(answered)?;
    let rows = answered.lists.get(name).ok_or_else(|| format!("the answer has no {name}"))?;
    Ok(Listed::read(rows, |row| text(row, id).ok(), |row| read(row)))
}

/// An amount. An answer without the field belongs to another request.
fn amount(answered: &Answered, name: &str) -> Result<Result<Money, String>, String> {
    checked(answered)?;
    let fields = &answered.answer.fields;
    field(fields, name).ok_or_else(|| format!("the answer has no {name}"))?;
    Ok(money(fields, name))
}

pub(super) fn text(fields: &[Field], name: &str) -> Result<String, String> {
    let text = field(fields, name).map(str::trim).filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| format!("{name} is missing"))
}

fn money(fields: &[Field], name: &str) -> Result<Money, String> {
    text(fields, name)?.parse().map_err(|_| format!("{name} is not an amount"))
}

fn quantity(fields: &[Field], name: &str) -> Result<Quantity, String> {
    let shares =
        text(fields, name)?.parse().map_err(|_| format!("{name} is not a number of shares"));
    shares.map(Quantity::new)
}

/// A number that may be missing or blank; any other text is an error.
pub(super) fn optional<T: std::str::FromStr>(
    fields: &[Field],
    name: &str,
) -> Result<Option<T>, String> {
    match field(fields, name).map(str::trim) {
        None | Some("" | "-" | "*") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| format!("{name} is not a number")),
    }
}
