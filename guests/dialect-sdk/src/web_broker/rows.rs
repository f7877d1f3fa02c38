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

/// Reads a row. `kind` says the type of an order with its limit and its trigger price. A row that is merely
/// unusual is believed: an order that is over may have a quantity of 0, and say nothing of open shares.
///
/// # Errors
/// Why it is none, by the name of its field: `order NUMBER: FIELD ...`.
pub fn order_of(
    words: Words,
    row: &[Field],
    kind: impl FnOnce(&[Field]) -> Result<(OrderType, Option<String>, Option<String>), String>,
) -> Result<OrderRow, String> {
    let id = words.of(row, "sOrderNumber", "sOrderOrderNumber").and_then(name);
    let id = id.ok_or("sOrderOrderNumber is missing, or is no order number")?;
    let bad = |what: &str| format!("order {id}: {what}");
    let symbol = words.of(row, "sIssueCode", "sOrderIssueCode").and_then(name);
    let symbol = symbol.ok_or_else(|| bad("sOrderIssueCode is missing, or names no issue"))?;
    let side = words.of(row, "sBaibaiKubun", "sOrderBaibaiKubun").and_then(side_of);
    let (side, close_action) =
        side.ok_or_else(|| bad("sOrderBaibaiKubun is no side that is known"))?;
    let (order_type, limit, trigger) = kind(row).map_err(|what| bad(&what))?;
    let condition = words.of(row, "sCondition", "sOrderCondition").unwrap_or("0");
    let expiry = words.of(row, "sOrderExpireDay", "sOrderOrderExpireDay").unwrap_or("0");
    let (time_in_force, expire_date, funari) =
        times_of(condition, expiry).map_err(|what| bad(&what))?;
    let day = words.of(row, "sEigyouDay", "sOrderSikkouDay");
    let business_day = day.map(|text| date(text).ok_or_else(|| bad("sOrderSikkouDay is no date")));
    let placed = of(row, "sOrderOrderDateTime").and_then(time);
    let placed = placed.ok_or_else(|| bad("sOrderOrderDateTime is no time"))?;
    let situation = match of(row, "sOrderStatusCode") {
        None => None,
        Some(code) => {
            let unknown = || bad("sOrderStatusCode is no status that is known");
            Some(situation_of(code).ok_or_else(unknown)?)
        }
    };
    let is_over = matches!(
        situation,
        Some(Situation::Filled | Situation::Canceled | Situation::Lapsed | Situation::Refused)
    );
    let number = |specified: &str, vendors: &str| {
        let text = words.of(row, specified, vendors);
        text.and_then(shares).ok_or_else(|| bad(&format!("{vendors} is no number of shares")))
    };
    let ordered = number("sOrderSuryou", "sOrderOrderSuryou")?;
    let filled = number("sOrderYakuzyouSuryo", "sOrderYakuzyouSuryo")?;
    let leaves = match of(row, "sOrderCurrentSuryou") {
        None if is_over => 0,
        _ => number("sOrderCurrentSuryou", "sOrderCurrentSuryou")?,
    };
    let working = filled
        .checked_add(leaves)
        .ok_or_else(|| bad("sOrderYakuzyouSuryo and sOrderCurrentSuryou are too many shares"))?;
    // While shares are open, those and the filled ones are what is asked for now.
    let quantity = if leaves > 0 || ordered == 0 { working } else { ordered };
    let may_be_none = is_over && situation != Some(Situation::Filled);
    if quantity == 0 && !may_be_none || working > quantity {
        let what = "sOrderOrderSuryou, sOrderYakuzyouSuryo and sOrderCurrentSuryou do not add up";
        return Err(bad(what));
    }
    let situation = match situation {
        // It has a number, so the broker has it.
        None if leaves == 0 && filled == quantity => Situation::Filled,
        None => Situation::Working,
        Some(situation) => situation,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What the host makes of a row that is no record: it is none, and does not end the reading of the others.
    #[test]
    fn a_row_without_fields_is_none() {
        for words in [Words::Specification, Words::Vendor] {
            let read = order_of(words, &[], |_| Ok((OrderType::Market, None, None)));
            assert!(read.unwrap_err().starts_with("sOrderOrderNumber is missing"));
        }
    }
}
