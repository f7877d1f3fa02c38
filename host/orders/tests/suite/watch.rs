//! Rules for every request for a new order, in any crossing.
//!
//! It is written down, its phase takes it, and the account's newest balance suffices.

use domain::order_mapping::{BrokerOrder, BrokerRequest, Field, Funding};
use domain::{OrderSide, OrderType, TimeInForce};
use orders::OrderPhase;

use crate::account::{BALANCES, Balance};
use crate::dialect::{closes, funding, named, order};

/// The day's upper limit of the masters, in yen.
const UPPER_LIMIT: u64 = 3_000;

/// Shares of positions in ascending number, of the wanted ones or of all; `None` if they do not suffice.
pub(crate) fn ascending(
    free: &[(String, u64)],
    wanted: &[&str],
    wanted_shares: u64,
) -> Option<Vec<(String, u64)>> {
    let mut left = wanted_shares;
    let mut taken = Vec::new();
    for (id, shares) in free.iter().filter(|(id, _)| wanted.is_empty() || wanted.contains(&&**id)) {
        let part = left.min(*shares);
        if part > 0 {
            taken.push((id.clone(), part));
        }
        left -= part;
    }
    (left == 0).then_some(taken)
}

/// Whether a phase takes an order (specification 4, P34), by a table of the test's own.
pub(crate) fn takes(
    phase: OrderPhase,
    (kind, time, side): (OrderType, TimeInForce, OrderSide),
    tags: &[&str],
) -> bool {
    match phase {
        OrderPhase::O0 => {
            (kind, time, side) == (OrderType::Market, TimeInForce::Day, OrderSide::Buy)
                && tags.is_empty()
        }
        OrderPhase::O1 | OrderPhase::O2 => {
            matches!(kind, OrderType::Market | OrderType::Limit)
                && time == TimeInForce::Day
                && tags.iter().all(|tag| *tag == "cash_margin=cash")
        }
        OrderPhase::O3 => true,
    }
}

/// What an order may cost.
fn value(order: &BrokerOrder) -> u64 {
    let has_limit = matches!(order.order_type, OrderType::Limit | OrderType::StopLimit);
    let price = order.price.filter(|_| has_limit);
    let price = price.map_or(UPPER_LIMIT * 10_000, |price| price.units().unsigned_abs());
    (order.quantity.shares() * price).div_ceil(10_000)
}

/// Checks a request for a new order against its phase, and against the broker's balances since the desk's last
/// other event.
pub(crate) fn new_order(
    request: &BrokerRequest,
    phase: OrderPhase,
    reported: &[Balance],
) -> Vec<String> {
    let fields = &request.fields;
    let order = order(fields).expect("a whole order");
    let tags: Vec<&str> = named(fields, "tags").split_whitespace().collect();
    let kinds = (order.order_type, order.time_in_force, order.side);
    assert!(takes(phase, kinds, &tags), "{phase} does not take {order:?} {tags:?}");
    if phase < OrderPhase::O3 {
        return kinds_of(&order, fields, phase);
    }
    let (wanted_shares, cost) = (order.quantity.shares(), value(&order));
    let needs_cash = named(fields, "needs-cash") == "true";
    // The answer to a person who has stopped waiting may be before it.
    let count = if needs_cash { 2 } else { 1 };
    let newest = &reported[reported.len().saturating_sub(count)..];
    let is_enough = match (funding(fields), order.side, newest) {
        (Funding::Cash, OrderSide::Buy, [Balance::Cash(yen)])
        | (Funding::MarginNew, _, [Balance::Margin(yen)]) => cost <= *yen,
        (Funding::Cash, OrderSide::Sell, [Balance::Sellable(shares)]) => wanted_shares <= *shares,
        (Funding::MarginRepay, _, [Balance::Positions(free), cash @ ..]) => {
            let wanted: Vec<&str> =
                named(fields, "wanted").split(',').filter(|id| !id.is_empty()).collect();
            let all = ascending(free, &wanted, wanted_shares);
            let named = closes(fields);
            let is_right = match wanted.is_empty() {
                true => all.is_some() && named.is_empty(),
                false => all == Some(named),
            };
            let is_paid = match (needs_cash, cash) {
                (false, []) => true,
                (true, [Balance::Cash(yen)]) => cost <= *yen,
                _ => false,
            };
            is_right && is_paid
        }
        _ => false,
    };
    assert!(is_enough, "{order:?} {tags:?} was sent after {reported:?}");
    kinds_of(&order, fields, phase)
}

/// The kinds of an order, in words.
fn kinds_of(order: &BrokerOrder, fields: &[Field], phase: OrderPhase) -> Vec<String> {
    let named = named(fields, "wanted").split(',').filter(|id| !id.is_empty());
    let funding = match (funding(fields), named.count()) {
        (Funding::Cash, _) => "cash",
        (Funding::MarginNew, _) => "margin-new",
        (Funding::MarginRepay, 0) => "repay of none",
        (Funding::MarginRepay, 1) => "repay of one",
        (Funding::MarginRepay, _) => "repay of several",
    };
    let (kind, time) = (order.order_type.as_str(), order.time_in_force.as_str());
    let words = [phase.as_str(), kind, time, order.side.as_str(), funding];
    words.map(str::to_owned).to_vec()
}

/// Checks every other request against its phase.
pub(crate) fn other(id: &str, phase: OrderPhase) {
    let is_change = ["modify", "cancel", "cancel-all"].contains(&id);
    assert!(!is_change || phase > OrderPhase::O0, "{id} in {phase}");
    assert!(
        is_change || BALANCES.contains(&id) || ["list", "detail"].contains(&id),
        "{id} is no request"
    );
}
