//! Reconciliation: what a list of the broker means for the orders of the desk (specification 4, P19, P20,
//! P26, P27). Pure functions of what is known: the same list twice changes nothing more than once, the
//! order in which lists and notices come changes nothing in the end, and nothing is made up: no fill is
//! inferred, no order invented, none dropped because its numbers do not add up.
//!
//! | the list has | the desk has | what follows |
//! |---|---|---|
//! | a row that fits exactly one unknown order, and no other unknown order fits it | SUBMITTED, number unknown | the order has the row's number |
//! | several rows or orders that fit | the same | nothing; `ambiguous` is told |
//! | no row that fits, asked for late enough | the same | the order is not at the broker |
//! | canceled, expired, rejected | working | the same, told once |
//! | working | rejected by a refused change | accepted again |
//! | as a change wanted it | PENDING_UPDATE, answer unknown | the change is done |
//! | working and not pending, asked for late enough | PENDING_UPDATE or PENDING_CANCEL, answered or unknown | works on as the row says; the request failed |
//! | another quantity, price or date | working | the order is as the row says |
//! | filled | anything | nothing: fills come by notices; what is missing is told |

use std::collections::BTreeMap;
use std::time::Duration;

use domain::order_mapping::BrokerRow;
use domain::{JstDate, OrderStatus, Rejection};

use crate::book::{Book, DeskOrder, OrderKey, Pending};
use crate::limits::{CLAIM_LATEST_MS, CLAIM_SLACK_MS};

/// When a list was asked for, and by which request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListAsked {
    pub(crate) at: Duration,
    pub(crate) p_no: Option<u64>,
    /// [`crate::DeskRules::unknown_settle`].
    pub(crate) settle: Duration,
    /// Whether every row of it could be read: another list proves no absence.
    pub(crate) is_full: bool,
}

impl ListAsked {
    /// Whether the list was asked for so long after an instant that it must know what happened then.
    pub(crate) fn has_settled_since(&self, since: Duration) -> bool {
        self.at >= since + self.settle
    }
}

/// What a row means for the order that it tells of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// The order works, and counted as rejected.
    FoundWorking,
    /// It is cancelled.
    Canceled,
    /// Its time ran out.
    Expired,
    /// The broker has rejected it.
    Rejected,
    /// A change whose answer is unknown was done.
    ChangeDone,
    /// A change or a cancel was not done.
    RequestFailed(&'static str),
    /// It was changed elsewhere, or the desk did not know all of it.
    Differs,
    /// The desk knows it as ended.
    EndedButWorking,
}

const fn is_working(status: OrderStatus) -> bool {
    use OrderStatus as S;
    matches!(
        status,
        S::Submitted | S::Accepted | S::PartiallyFilled | S::PendingUpdate | S::PendingCancel
    )
}

/// Whether a row and an order are the same but for what is filled.
fn is_same(order: &domain::order_mapping::BrokerOrder, row: &BrokerRow) -> bool {
    order.quantity == row.quantity
        && order.price == row.price
        && order.trigger_price == row.trigger_price
        && order.time_in_force == row.time_in_force
        && order.expire_date == row.expire_date
}

/// What a row means for its order. Of an order that has changed since the list was asked for, the list
/// knows less than the desk does.
pub(crate) fn steps(order: &DeskOrder, row: &BrokerRow, asked: ListAsked) -> Vec<Step> {
    if order.changed_at > asked.at {
        return Vec::new();
    }
    let mut steps = Vec::new();
    let mut status = order.status;
    if order.awaits_list && row.status != OrderStatus::Rejected {
        steps.push(Step::FoundWorking);
        status = OrderStatus::Accepted;
    }
    match row.status {
        OrderStatus::Canceled if !status.is_final() => steps.push(Step::Canceled),
        OrderStatus::Expired if !status.is_final() => steps.push(Step::Expired),
        OrderStatus::Rejected if !status.is_final() => steps.push(Step::Rejected),
        working if is_working(working) => match &order.pending {
            _ if status.is_final() => {
                let is_told =
                    asked.has_settled_since(order.changed_at) && order.client_order_id.is_some();
                steps.extend(is_told.then_some(Step::EndedButWorking));
            }
            Some(pending) => steps.extend(pending_step(pending, row, asked)),
            None if !is_same(&order.order, row) || !order.is_whole => steps.push(Step::Differs),
            None => {}
        },
        _ => {}
    }
    steps
}

/// What a row means for a change or a cancel that was sent.
fn pending_step(pending: &Pending, row: &BrokerRow, asked: ListAsked) -> Option<Step> {
    let ended = pending.ended?;
    if asked.at < ended {
        return None;
    }
    if pending.wanted.as_ref().is_some_and(|wanted| is_same(wanted, row)) {
        return Some(Step::ChangeDone);
    }
    let is_under_way =
        matches!(row.status, OrderStatus::PendingUpdate | OrderStatus::PendingCancel);
    if is_under_way || !asked.has_settled_since(ended) {
        return None;
    }
    Some(Step::RequestFailed(match pending.wanted {
        Some(_) => "CHANGE_NOT_DONE: the broker's list has the order unchanged",
        None => "CANCEL_NOT_DONE: the broker's list has the order working",
    }))
}

/// What a list says of the orders whose numbers are unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    /// Orders and the rows that are theirs.
    pub(crate) found: Vec<(OrderKey, usize)>,
    /// Orders that the broker surely does not have.
    pub(crate) missing: Vec<OrderKey>,
    /// Orders that several rows fit, or that share a row with another one, and stay so.
    pub(crate) ambiguous: Vec<OrderKey>,
    /// Rows that may belong to an order of which that is not yet sure.
    pub(crate) kept_free: Vec<usize>,
}

/// Whether a row may be an order whose number is unknown (P19).
pub(crate) fn fits(order: &DeskOrder, row: &BrokerRow) -> bool {
    let is_in_time = row.time.millis().saturating_add(CLAIM_SLACK_MS) >= order.ts_ms;
    // A request that has left arrives soon or never.
    let is_soon = row.time.millis() <= order.ts_ms.saturating_add(CLAIM_LATEST_MS);
    is_in_time && is_soon && is_alike(order, row)
}

/// Whether a row leaves a doubt that it is an order whose number is unknown: the same but for the time,
/// which may come from a clock that is not set like ours; or of the same symbol and placed since, because an
/// order may have been changed elsewhere, and a broker may tell its side and its kind in words of its own.
fn is_doubtful(order: &DeskOrder, row: &BrokerRow) -> bool {
    let is_since = row.time.millis().saturating_add(CLAIM_SLACK_MS) >= order.ts_ms;
    is_alike(order, row) || is_since && *order.order.symbol == *row.symbol
}

/// The same but for the time.
fn is_alike(order: &DeskOrder, row: &BrokerRow) -> bool {
    let made = &order.order;
    let has_times = !order.is_whole
        || (made.time_in_force == row.time_in_force
            && made.expire_date == row.expire_date
            && made.price == row.price
            && made.trigger_price == row.trigger_price);
    *made.symbol == *row.symbol
        && made.side == row.side
        && made.order_type == row.order_type
        && made.quantity == row.quantity
        && has_times
}

/// Finds the rows of orders whose numbers are unknown. `rows` are those of no known order.
pub(crate) fn claims(
    book: &Book,
    rows: &[(usize, &BrokerRow)],
    asked: ListAsked,
    today: JstDate,
) -> Claims {
    let unknown = book.iter().filter_map(|(key, order)| {
        let since = order.unknown_since.filter(|_| order.is_unknown() && !order.is_ambiguous)?;
        (asked.at >= since).then_some((key, order, since))
    });
    let mut found = Claims::default();
    let mut by_row: BTreeMap<usize, Vec<OrderKey>> = BTreeMap::new();
    let mut of_order: Vec<(OrderKey, Vec<usize>, bool)> = Vec::new();
    for (key, order, since) in unknown {
        let fitting: Vec<usize> =
            rows.iter().filter(|(_, row)| fits(order, row)).map(|(index, _)| *index).collect();
        if fitting.is_empty() {
            // The list's request was taken by the broker after the order's.
            let is_later = match (order.p_no, asked.p_no) {
                (Some(order), Some(list)) => list > order,
                (None, Some(_)) => true,
                (_, None) => false,
            };
            let doubtful = rows.iter().filter(|(_, row)| is_doubtful(order, row));
            let doubtful: Vec<usize> = doubtful.map(|(index, _)| *index).collect();
            let is_sure = is_later
                && asked.is_full
                && asked.has_settled_since(since)
                && order.is_findable(today);
            match (doubtful.is_empty(), is_sure) {
                (true, true) => found.missing.push(key),
                (true, false) => {}
                (false, true) => found.ambiguous.push(key),
                (false, false) => found.kept_free.extend(doubtful),
            }
            continue;
        }
        for row in &fitting {
            by_row.entry(*row).or_default().push(key);
        }
        of_order.push((key, fitting, asked.has_settled_since(since)));
    }
    for (key, fitting, has_settled) in of_order {
        match fitting.as_slice() {
            [row] if by_row.get(row).is_some_and(|orders| orders.len() == 1) => {
                found.found.push((key, *row));
            }
            _ if has_settled => found.ambiguous.push(key),
            _ => found.kept_free.extend(fitting),
        }
    }
    found.kept_free.sort_unstable();
    found.kept_free.dedup();
    found
}

/// The rejection of an order that no list has (P20).
pub(crate) fn not_at_broker() -> Rejection {
    let text = "NOT_AT_BROKER: the broker's answer was lost, and its list does not have the order";
    Rejection::new(domain::ReasonCode::InternalError, text)
}
