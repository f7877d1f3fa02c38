//! Random orders and changes of every kind that a phase takes.

use domain::{OrderSide, OrderType, Random, TimeInForce};
use ipc::{OrderModifyChange, SubmitOrderRequest};
use orders::OrderPhase;

use crate::watch::takes;
use crate::world::limit_buy;

/// 2026-11-24, 15:00 in Japan: the calendar's next day.
const NEXT_DAY_NS: u64 = 1_795_500_000_000_000_000;

fn price(random: &mut Random) -> String {
    (2_400 + random.below(40)).to_string()
}

fn lots(random: &mut Random) -> u64 {
    (1 + random.below(5)) * 100
}

fn one<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.place(of.len())]
}

/// A random order; the phase takes most of them.
pub(crate) fn order(
    random: &mut Random,
    id: &str,
    phase: OrderPhase,
    positions: &[String],
) -> SubmitOrderRequest {
    let mut made = limit_buy(id, lots(random), &price(random));
    let widest = if random.permille(80) { OrderPhase::O3 } else { phase };
    if widest == OrderPhase::O0 {
        made.order_type = OrderType::Market;
        made.price = None;
        return made;
    }
    // Lost answers confuse equal orders.
    if random.permille(400) {
        return made;
    }
    made.order_side = one(random, OrderSide::ALL);
    let (kinds, times) = if widest == OrderPhase::O3 { (4, 4) } else { (2, 1) };
    let kind = [OrderType::Limit, OrderType::Market, OrderType::StopMarket, OrderType::StopLimit]
        [random.place(kinds)];
    made.order_type = kind;
    if !matches!(kind, OrderType::Limit | OrderType::StopLimit) {
        made.price = None;
    }
    if matches!(kind, OrderType::StopMarket | OrderType::StopLimit) {
        made.trigger_price = Some(price(random));
    }
    let times =
        &[TimeInForce::Day, TimeInForce::Gtd, TimeInForce::AtTheOpen, TimeInForce::AtTheClose]
            [..times];
    made.time_in_force = one(random, times);
    made.expire_time_ns = (made.time_in_force == TimeInForce::Gtd).then_some(NEXT_DAY_NS);
    if widest == OrderPhase::O3 {
        made.tags = tags(random, &mut made, positions);
    }
    made
}

/// Tags of margin orders and of auctions.
fn tags(
    random: &mut Random,
    made: &mut SubmitOrderRequest,
    positions: &[String],
) -> Option<Vec<String>> {
    let mut tags = Vec::new();
    match random.below(5) {
        0 => {}
        1 => tags.push("cash_margin=cash".to_owned()),
        2 => tags.push("cash_margin=margin_credit_new".to_owned()),
        _ => {
            tags.push("cash_margin=margin_credit_repay".to_owned());
            // All positions are long.
            if random.permille(900) {
                made.order_side = OrderSide::Sell;
            }
            // No position, one, or several, some of which are closed in the meantime.
            for _ in 0..random.below(4).min(positions.len() as u64) {
                tags.push(format!("tategyoku={}", positions[random.place(positions.len())]));
            }
            if tags.len() > 1 && random.permille(200) {
                tags.push("close_action=physical_settle_buy".to_owned());
                made.order_type = OrderType::Market;
                made.time_in_force = TimeInForce::Day;
                (made.price, made.trigger_price, made.expire_time_ns) = (None, None, None);
            }
        }
    }
    if made.time_in_force == TimeInForce::AtTheClose && random.permille(500) {
        tags.push("close_strategy=funari".to_owned());
    }
    (!tags.is_empty()).then_some(tags)
}

/// Whether the phase takes an order, by the test's own table.
pub(crate) fn is_taken(order: &SubmitOrderRequest, phase: OrderPhase) -> bool {
    let tags: Vec<&str> = order.tags.iter().flatten().map(String::as_str).collect();
    takes(phase, (order.order_type, order.time_in_force, order.order_side), &tags)
}

/// A change; fields that an order does not have are refused.
pub(crate) fn change(random: &mut Random, phase: OrderPhase) -> OrderModifyChange {
    let mut made = OrderModifyChange::default();
    if random.permille(800) {
        made.new_quantity = Some(lots(random).to_string());
    }
    if made.new_quantity.is_none() || random.permille(500) {
        made.new_price = Some(price(random));
    }
    if phase == OrderPhase::O3 && random.permille(250) {
        made.new_price = None;
        made.new_trigger_price = Some(price(random));
    }
    if phase == OrderPhase::O3 && random.permille(150) {
        made.new_expire_time_ns = Some(NEXT_DAY_NS);
    }
    made
}
