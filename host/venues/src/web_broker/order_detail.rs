//! What the details of an order (`CLMOrderListDetail`) say of the order itself, beside its fills: a host that tells
//! fills from them holds them against the order that it asked for.

use domain::{OrderSide, Quantity};

use crate::web_broker::account::{optional, text};
use crate::web_broker::transport::Answered;

/// What details say of their order, each where they say it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrderDetail {
    /// `7203` (`sIssueCode`).
    pub symbol: Option<String>,
    /// Its side (`sOrderBaibaiKubun`); none of what settles a margin position with shares or cash.
    pub side: Option<OrderSide>,
    /// Shares filled in all (`sYakuzyouSuryou`).
    pub filled: Option<Quantity>,
}

/// Reads what details say of their order.
///
/// # Errors
/// What is there and is none.
pub fn read_order_detail(answered: &Answered) -> Result<OrderDetail, String> {
    let fields = &answered.answer.fields;
    let side = match text(fields, "sOrderBaibaiKubun").ok().as_deref() {
        Some("1") => Some(OrderSide::Sell),
        Some("3") => Some(OrderSide::Buy),
        _ => None,
    };
    Ok(OrderDetail {
        symbol: text(fields, "sIssueCode").ok(),
        side,
        filled: optional(fields, "sYakuzyouSuryou")?.map(Quantity::new),
    })
}
