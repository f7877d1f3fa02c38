//! Reads the order's own data in its details (`CLMOrderListDetail`), beside the fills.
//!
//! Before it reports fills from details, the desk checks these data against the order of its request.

use domain::{OrderSide, Quantity};

use crate::web_broker::account::{optional, text};
use crate::web_broker::transport::Answered;

/// Data of an order in its details, each if it is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrderDetail {
    /// `7203` (`sIssueCode`).
    pub symbol: Option<String>,
    /// Its side (`sOrderBaibaiKubun`); `None` if it settles a margin position with shares or cash.
    pub side: Option<OrderSide>,
    /// Total shares filled (`sYakuzyouSuryou`).
    pub filled: Option<Quantity>,
}

/// Reads the order's data in its details.
///
/// # Errors
/// A field that is there and cannot be read.
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
