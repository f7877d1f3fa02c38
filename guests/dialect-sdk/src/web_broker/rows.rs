//! Rows of the list of orders.

use super::{Words, side_of, times_of};
use crate::text::{date, name, of, price, shares, time};
use crate::web_broker::CashMargin;
use crate::{Field, OrderRow, OrderStatus, OrderType};

/// What the broker says of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Situation {
    /// Accepted for sending, the broker has not answered.
    Sent,
    /// The broker works it; fills are told by its numbers.
    Working,
    /// A change is in flight.
    Changing,
    /// A cancel is in flight.
    Canceling,
    /// All of it is filled.
    Filled,
    /// A cancel is done.
    Canceled,
    /// Its day has passed, or it lapsed.
    Lapsed,
    /// The broker refused it.
    Refused,
}

/// The situation that `sOrderStatusCode` names.
#[must_use]
pub fn situation_of(code: &str) -> Option<Situation> {
    Some(match code {
        "0" => Situation::Sent,
        // 4 changed, 5 change failed, 8 cancel failed: it works on. 9 partly filled. 13, 50: it has a
        // number and waits to be sent. 15, 16: a stop that waits.
        "1" | "4" | "5" | "8" | "9" | "13" | "15" | "16" | "50" => Situation::Working,
        "2" | "17" | "20" | "21" => Situation::Refused,
        "3" => Situation::Changing,
        "6" => Situation::Canceling,
        "7" => Situation::Canceled,
        "10" => Situation::Filled,
        "11" | "12" | "14" | "19" => Situation::Lapsed,
        _ => return None,
    })
}

/// Where an order stands, of both dialects (specification 2, "Order status mapping"): a refused change or
/// cancel leaves it as it was.
#[must_use]
pub fn status_of(situation: Situation, filled: u64, leaves: u64) -> OrderStatus {
    match situation {
        Situation::Sent => OrderStatus::Submitted,
        Situation::Working if filled > 0 && leaves == 0 => OrderStatus::Filled,
        Situation::Working if filled > 0 => OrderStatus::PartiallyFilled,
        Situation::Working => OrderStatus::Accepted,
        Situation::Changing => OrderStatus::PendingUpdate,
        Situation::Canceling => OrderStatus::PendingCancel,
        Situation::Filled => OrderStatus::Filled,
        Situation::Canceled => OrderStatus::Canceled,
        Situation::Lapsed => OrderStatus::Expired,
        Situation::Refused => OrderStatus::Rejected,
    }
}

/// Reads a row. `kind` says the type of an order with its limit and its trigger price.
///
/// # Errors
/// Why it is none.
pub fn order_of(
    words: Words,
    row: &[Field],
    kind: impl FnOnce(&[Field]) -> Result<(OrderType, Option<String>, Option<String>), String>,
) -> Result<OrderRow, String> {
    let id = words.of(row, "sOrderNumber", "sOrderOrderNumber").and_then(name);
    let id = id.ok_or("the row has no order number")?;
    let bad = |what: &str| format!("order {id}: {what}");
    let symbol = words.of(row, "sIssueCode", "sOrderIssueCode").and_then(name);
    let symbol = symbol.ok_or_else(|| bad("it names no issue"))?;
    let side = words.of(row, "sBaibaiKubun", "sOrderBaibaiKubun").and_then(side_of);
    let (side, close_action) = side.ok_or_else(|| bad("its side is not known"))?;
    let (order_type, limit, trigger) = kind(row).map_err(|what| bad(&what))?;
    let condition = words.of(row, "sCondition", "sOrderCondition").unwrap_or("0");
    let expiry = words.of(row, "sOrderExpireDay", "sOrderOrderExpireDay").unwrap_or("0");
    let (time_in_force, expire_date, funari) =
        times_of(condition, expiry).map_err(|what| bad(&what))?;
    let day = words.of(row, "sEigyouDay", "sOrderSikkouDay");
    let business_day = day.map(|text| date(text).ok_or_else(|| bad("its business day is no date")));
    let placed = of(row, "sOrderOrderDateTime").and_then(time);
    let placed = placed.ok_or_else(|| bad("it has no time"))?;
    let number = |specified: &str, vendors: &str| {
        let text = words.of(row, specified, vendors);
        text.and_then(shares).ok_or_else(|| bad(&format!("{vendors} is no number of shares")))
    };
    let ordered = number("sOrderSuryou", "sOrderOrderSuryou")?;
    let filled = number("sOrderYakuzyouSuryo", "sOrderYakuzyouSuryo")?;
    let leaves = number("sOrderCurrentSuryou", "sOrderCurrentSuryou")?;
    let working = filled.checked_add(leaves).ok_or_else(|| bad("its shares are too many"))?;
    // While shares are open, those and the filled ones are what is asked for now.
    let quantity = if leaves > 0 { working } else { ordered };
    if quantity == 0 || working > quantity {
        return Err(bad("its shares do not add up"));
    }
    let situation = match of(row, "sOrderStatusCode") {
        // It has a number, so the broker has it.
        None if leaves == 0 && filled == quantity => Situation::Filled,
        None => Situation::Working,
        Some(code) => situation_of(code).ok_or_else(|| bad("its status code is not known"))?,
    };
    let paid = words.of(row, "sGenkinShinyouKubun", "sGenkinSinyouKubun").unwrap_or("0");
    let margin = CashMargin::ALL.iter().find(|one| one.2 == paid && one.0 != CashMargin::Cash);
    let margin = margin.map(|(_, value, _)| format!("cash_margin={value}"));
    let own = [close_action, funari].into_iter().flatten().map(str::to_owned);
    Ok(OrderRow {
        venue_order_id: id.to_owned(),
        business_day: business_day.transpose()?,
        symbol: symbol.to_owned(),
        side,
        order_type,
        quantity,
        filled,
        leaves,
        price: limit,
        trigger_price: trigger,
        time_in_force,
        expire_date,
        status: status_of(situation, filled, leaves),
        time: placed,
        tags: margin.into_iter().chain(own).collect(),
    })
}

/// A price of a row; none where the broker uses none (`*`, blank, 0).
pub(super) fn optional(text: Option<&str>) -> Option<String> {
    text.filter(|text| *text != super::NONE).and_then(price)
}

impl Words {
    /// A price of a row by its name in the specification and the vendor's; none where it is not used.
    #[must_use]
    pub fn price_of(self, row: &[Field], specified: &str, vendors: &str) -> Option<String> {
        optional(self.of(row, specified, vendors))
    }
}
