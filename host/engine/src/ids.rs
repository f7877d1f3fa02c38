//! Numbers of a venue as clients of a replay see them (specification 4, P71): orders are `R1`, `R2`,
//! and so on, fills 1, 2, and so on, over the orders of both origins. The exchange has its own letters.

use std::sync::Arc;

use domain::{OrderEvent, OrderEventKind};

/// The digits behind the exchange's letter.
fn digits(number: &str) -> &str {
    number.trim_start_matches(|letter: char| !letter.is_ascii_digit())
}

/// The number of an order as clients see it.
pub(crate) fn order_number(of_exchange: &str) -> Arc<str> {
    format!("R{}", digits(of_exchange)).into()
}

/// The number of a fill as clients see it.
pub(crate) fn trade_id(of_exchange: &str) -> &str {
    digits(of_exchange)
}

/// An event of the exchange with the numbers that clients see.
pub(crate) fn for_clients(event: &OrderEvent) -> OrderEvent {
    let mut event = event.clone();
    event.venue_order_id = event.venue_order_id.as_deref().map(order_number);
    if let OrderEventKind::Filled(fill) = &mut event.kind {
        fill.trade_id = trade_id(&fill.trade_id).into();
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_exchange_in_other_letters() {
        assert_eq!(&*order_number("V-12"), "R12");
        assert_eq!(trade_id("T-7"), "7");
    }
}
