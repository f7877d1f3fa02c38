//! Reconciliation: what a list of the broker means for the orders of the desk.
//!
//! Specification 4, P19, P20, P26, P27. Pure functions of what is known. The same list twice has the effect of
//! one, and the order in which lists and notices come does not change the end. No fill is inferred, no order
//! invented, and none dropped because its numbers do not add up.
//!
//! | the list has | the desk has | what follows |
//! |---|---|---|
//! | a row that fits exactly one unknown order, and no other unknown order fits it | SUBMITTED, number unknown | the order has the row's number |
//! | several rows or orders that fit, or an ambiguous row, in a list requested late enough | the same | nothing; `ambiguous` is reported, the rows count as placed elsewhere |
//! | none of these, in a list requested late enough | the same | the order is not at the broker |
//! | canceled, expired, rejected | working | the same, reported once |
//! | working | rejected by a refused change | accepted again |
//! | as a change wanted it | PENDING_UPDATE, answer unknown | the change is done |
//! | working and not pending, in a list requested late enough | PENDING_UPDATE or PENDING_CANCEL, answered or unknown | works on as the row says; the request failed |
//! | another quantity, price or date, working or filled | working | the order is as the row says |
//! | filled, in a list requested late enough | PENDING_UPDATE or PENDING_CANCEL, answered or unknown | the change is done, or the request failed |
//! | filled | anything | no fill: these come by notices; what is missing is reported, and then the order is filled |

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::order_mapping::BrokerRow;
use domain::{JstDate, OrderStatus, OrderType, Rejection};

use crate::book::{Book, DeskOrder, OrderKey, PendingOperation, close_action};
use crate::limits::{CAME_BACK_LATEST_MS, CLAIM_LATEST_MS, CLAIM_SLACK_MS};

/// When a list was requested, and by which request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListRequest {
    pub(crate) at: Duration,
    pub(crate) p_no: Option<u64>,
    /// [`crate::DeskRules::unknown_settle`].
    pub(crate) settle: Duration,
    /// Whether every row of it could be read. Only such a list proves that an order is absent.
    pub(crate) is_full: bool,
}

impl ListRequest {
    /// Whether the list was requested so long after an instant that it must show what happened then.
    pub(crate) fn has_settled_since(&self, since: Duration) -> bool {
        self.at >= since + self.settle
    }
}

/// What a row means for its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// The order works, but is REJECTED at the desk.
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
    /// It works, but has ended at the desk.
    EndedButWorking,
}

const fn is_working(status: OrderStatus) -> bool {
    use OrderStatus as S;
    matches!(
        status,
        S::Submitted | S::Accepted | S::PartiallyFilled | S::PendingUpdate | S::PendingCancel
    )
}

/// Whether a row and an order are the same except for what is filled.
fn is_same(order: &domain::order_mapping::BrokerOrder, row: &BrokerRow) -> bool {
    order.quantity == row.quantity
        && order.price == row.price
        && order.trigger_price == row.trigger_price
        && order.time_in_force == row.time_in_force
        && order.expire_date == row.expire_date
}

/// What a row means for its order. If the order has changed since the list was requested, the list knows less
/// than the desk does.
pub(crate) fn steps(order: &DeskOrder, row: &BrokerRow, request: ListRequest) -> Vec<Step> {
    if order.changed_at > request.at {
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
                let is_reported =
                    request.has_settled_since(order.changed_at) && order.client_order_id.is_some();
                steps.extend(is_reported.then_some(Step::EndedButWorking));
            }
            Some(pending) => steps.extend(pending_step(pending, row, request)),
            None if !is_same(&order.order, row) || !order.is_whole => steps.push(Step::Differs),
            None => {}
        },
        // Its fills come by notices, in phases that take them. Its pending operation ends here.
        OrderStatus::Filled if !status.is_final() => match &order.pending {
            Some(pending) => steps.extend(pending_step(pending, row, request)),
            None if !is_same(&order.order, row) => steps.push(Step::Differs),
            None => {}
        },
        _ => {}
    }
    steps
}

/// Whether a row has news of its order that must wait, because the order has changed since the list was
/// requested. The next list has it again.
pub(crate) fn is_put_off(order: &DeskOrder, row: &BrokerRow, request: ListRequest) -> bool {
    let has_news = row.status.is_final() || !is_same(&order.order, row);
    order.changed_at > request.at && !order.status.is_final() && has_news
}

/// What a row means for a pending operation.
fn pending_step(pending: &PendingOperation, row: &BrokerRow, request: ListRequest) -> Option<Step> {
    let ended = pending.ended?;
    if request.at < ended {
        return None;
    }
    if pending.wanted.as_ref().is_some_and(|wanted| is_same(wanted, row)) {
        return Some(Step::ChangeDone);
    }
    let is_under_way =
        matches!(row.status, OrderStatus::PendingUpdate | OrderStatus::PendingCancel);
    if is_under_way || !request.has_settled_since(ended) {
        return None;
    }
    let is_filled = row.status == OrderStatus::Filled;
    Some(Step::RequestFailed(match (&pending.wanted, is_filled) {
        (Some(_), true) => "CHANGE_NOT_DONE: the broker's list has the order filled",
        (Some(_), false) => "CHANGE_NOT_DONE: the broker's list has the order unchanged",
        (None, true) => "CANCEL_NOT_DONE: the broker's list has the order filled",
        (None, false) => "CANCEL_NOT_DONE: the broker's list has the order working",
    }))
}

/// A row that belongs to no order of this desk whose number is known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FreeRow<'a> {
    pub(crate) index: usize,
    pub(crate) row: &'a BrokerRow,
    /// The foreign order that it counts as since an earlier list.
    pub(crate) foreign: Option<OrderKey>,
}

impl FreeRow<'_> {
    /// Whether it may be the order of a key. A row that the desk knew before it made the order is another
    /// order.
    fn is_new_to(&self, order: OrderKey) -> bool {
        self.foreign.is_none_or(|foreign| foreign > order)
    }
}

/// What a list means for the orders whose numbers are unknown. Each list is judged by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    /// Orders and the rows that are theirs.
    pub(crate) found: Vec<(OrderKey, usize)>,
    /// Orders that the broker certainly does not have.
    pub(crate) missing: Vec<OrderKey>,
    /// Orders whose numbers stay unknown because of an ambiguous row, and why.
    pub(crate) ambiguous: Vec<(OrderKey, String)>,
    /// Rows that may belong to an order whose time is not over. They count as no other order yet.
    pub(crate) left_free: Vec<usize>,
}

/// Whether a row may be an order whose number is unknown (P19).
pub(crate) fn fits(order: &DeskOrder, row: &BrokerRow) -> bool {
    let is_in_time = row.time.millis().saturating_add(CLAIM_SLACK_MS) >= order.ts_ms;
    // A request that has left arrives soon or never.
    let is_soon = row.time.millis() <= order.ts_ms.saturating_add(CLAIM_LATEST_MS);
    is_in_time && is_soon && is_alike(order, row)
}

/// Whether a row may be an order that was reported as not at the broker (P121). The time is narrower than in
/// [`fits`]: a person may have placed an equal order since.
pub(crate) fn came_back_as(order: &DeskOrder, row: &BrokerRow) -> bool {
    fits(order, row) && row.time.millis() <= order.ts_ms.saturating_add(CAME_BACK_LATEST_MS)
}

/// Whether a row is an ambiguous match of an order whose number is unknown. Either it is the same except for
/// its time, whose clock may be wrong. Or it was placed since and changed elsewhere, for which brokers take
/// other prices and dates, and fewer shares. A row whose time differs by more than a request can take is
/// another order. The broker refuses requests with a clock that is so wrong.
fn is_doubtful(order: &DeskOrder, row: &BrokerRow) -> bool {
    let is_near = row.time.millis().abs_diff(order.ts_ms) <= CLAIM_LATEST_MS;
    let is_since = row.time.millis().saturating_add(CLAIM_SLACK_MS) >= order.ts_ms;
    let is_changed = || {
        *order.order.symbol == *row.symbol
            && row.quantity <= order.order.quantity
            && may_have_side(order, row)
    };
    is_near && (is_alike(order, row) || is_since && is_changed())
}

/// Whether they are the same except for the time.
fn is_alike(order: &DeskOrder, row: &BrokerRow) -> bool {
    let made = &order.order;
    let has_times = !order.is_whole
        || (made.time_in_force == row.time_in_force
            && made.expire_date == row.expire_date
            && made.price == row.price
            && made.trigger_price == row.trigger_price);
    *made.symbol == *row.symbol
        && has_side(order, row)
        && made.order_type == row.order_type
        && made.quantity == row.quantity
        && has_times
}

/// Whether a row has an order's side. An order that settles a margin position has the side that its tag means,
/// whatever its own is (P39). The log does not record the tags of an order.
fn has_side(order: &DeskOrder, row: &BrokerRow) -> bool {
    match close_action(&row.tags) {
        Some(action) => order.is_restored() || close_action(&order.order.tags) == Some(action),
        None => order.order.side == row.side && close_action(&order.order.tags).is_none(),
    }
}

/// Whether a row may have an order's side, if a dialect does not say what settles a margin position.
fn may_have_side(order: &DeskOrder, row: &BrokerRow) -> bool {
    let may_settle = if order.is_restored() {
        order.order.order_type == OrderType::Market
    } else {
        close_action(&order.order.tags).is_some()
    };
    order.order.side == row.side || may_settle
}

/// An order whose number is unknown, and the rows that fit it.
struct Unknown<'a> {
    key: OrderKey,
    order: &'a DeskOrder,
    has_settled: bool,
    fitting: Vec<FreeRow<'a>>,
}

/// Finds the rows of orders whose numbers are unknown.
pub(crate) fn claims<'a>(
    book: &'a Book,
    rows: &[FreeRow<'a>],
    request: ListRequest,
    today: JstDate,
) -> Claims {
    let unknown = book.iter().filter_map(|(key, order)| {
        let since = order.unknown_since.filter(|_| order.is_unknown())?;
        let fitting = rows.iter().filter(|free| free.is_new_to(key) && fits(order, free.row));
        let fitting = fitting.copied().collect();
        let has_settled = request.has_settled_since(since);
        (request.at >= since).then_some(Unknown { key, order, has_settled, fitting })
    });
    let unknown: Vec<Unknown<'_>> = unknown.collect();
    let mut orders_of: BTreeMap<usize, usize> = BTreeMap::new();
    for free in unknown.iter().flat_map(|one| &one.fitting) {
        *orders_of.entry(free.index).or_default() += 1;
    }
    let is_shared = |free: &FreeRow<'_>| orders_of.get(&free.index) != Some(&1);
    let mut claims = Claims::default();
    let mut open = Vec::new();
    for one in unknown {
        match one.fitting.as_slice() {
            [row] if !is_shared(row) && row.foreign.is_none() => {
                claims.found.push((one.key, row.index));
            }
            _ => open.push(one),
        }
    }
    let found: BTreeSet<usize> = claims.found.iter().map(|(_, row)| *row).collect();
    for one in &open {
        // A row that certainly belongs to another order makes nothing ambiguous.
        let may_be = |free: &&FreeRow<'_>| {
            let is_free = free.is_new_to(one.key) && !found.contains(&free.index);
            is_free && (fits(one.order, free.row) || is_doubtful(one.order, free.row))
        };
        let rows: Vec<FreeRow<'_>> = rows.iter().filter(may_be).copied().collect();
        match rows.first() {
            Some(_) if !one.has_settled => {
                claims.left_free.extend(rows.iter().map(|free| free.index));
            }
            Some(_) if one.fitting.len() > 1 || one.fitting.iter().any(is_shared) => {
                let text = "several rows of the list, or several orders, fit";
                claims.ambiguous.push((one.key, text.to_owned()));
            }
            Some(first) => {
                let number = &first.row.venue_order_id;
                let text = format!(
                    "order {number} of the list may be it, with another time or changed elsewhere"
                );
                claims.ambiguous.push((one.key, text));
            }
            None if is_absent(one, request, today) => claims.missing.push(one.key),
            None => {}
        }
    }
    claims.left_free.sort_unstable();
    claims.left_free.dedup();
    claims
}

/// Whether a list without a row for an order proves that the broker does not have it (P20). Every row must be
/// readable. The broker must have taken the list's request after the order's. Its lists must have the orders of
/// that day.
fn is_absent(one: &Unknown<'_>, request: ListRequest, today: JstDate) -> bool {
    let is_later = match (one.order.p_no, request.p_no) {
        (Some(order), Some(list)) => list > order,
        (None, Some(_)) => true,
        (_, None) => false,
    };
    is_later && request.is_full && one.has_settled && one.order.day() == today
}

/// How the text of an order that no list has begins (P20).
pub(crate) const NOT_AT_BROKER: &str = "NOT_AT_BROKER:";

/// The rejection of an order that no list has (P20).
pub(crate) fn not_at_broker() -> Rejection {
    let text = format!(
        "{NOT_AT_BROKER} the broker's answer was lost, and its list does not have the order"
    );
    Rejection::new(domain::ReasonCode::InternalError, text)
}
