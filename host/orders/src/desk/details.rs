//! Details of orders (`CLMOrderListDetail`): the fills that a list has and no notice.
//!
//! Details are requested if the stream has lost the notice of a fill, or was down. They have each fill with its
//! price and its time, but without a number. So a fill in notices and details is matched by its shares and its
//! price.
//!
//! Details are checked against what is known of the order. If one thing does not fit, nothing of them is
//! reported: an invented fill is worse than a missing one. Only fills that the details lack, too, are reported
//! as missing.
//!
//! No client waits for details. So they are requested when nothing else waits, and their answer has a short
//! time limit. If it does not come, none are requested for a while.

use domain::order_mapping::{BrokerAccepted, BrokerFill, ListedFill};
use domain::{Discrepancy, Quantity, ShortText};
use venues::web_broker::{Answered, Called, OrderDetail, read_order_detail};

use super::answers::Ended;
use super::notices::can_be;
use super::submit::fault_of;
use super::{Desk, Job, JobKind, Now};
use crate::audit::FillSource;
use crate::book::{DeskOrder, OrderKey, close_action, detail_id};
use crate::event::StrategyEvent;
use crate::limits::{
    CLAIM_SLACK_MS, DETAILS_PAUSE, DETAILS_TRIES_MAX, DETAILS_WAITING_MAX, FILLS_PER_ORDER_MAX,
};

/// Why details give no fill, or not all of them.
#[derive(Debug, PartialEq, Eq)]
enum Failed {
    /// They may have it later.
    Yet(String),
    /// They contradict what is known, and are not requested again.
    Wrong(String),
}

impl From<String> for Failed {
    fn from(why: String) -> Self {
        Self::Yet(why)
    }
}

/// Checks details against the order with their number.
fn check(order: &DeskOrder, detail: &OrderDetail, fills: &[ListedFill]) -> Result<(), Failed> {
    let wrong = |why: String| Err(Failed::Wrong(why));
    if detail.symbol.as_deref().is_some_and(|symbol| *symbol != *order.order.symbol) {
        return wrong("the answer is about another issue".to_owned());
    }
    // An order that settles a margin position has the side that its tag means.
    let has_own_side = close_action(&order.order.tags).is_none();
    if has_own_side && detail.side.is_some_and(|side| side != order.order.side) {
        return wrong("the answer is about the other side".to_owned());
    }
    if fills.iter().any(|fill| !can_be(fill.quantity, fill.price)) {
        return wrong("a fill has no shares, no price, or one that cannot be".to_owned());
    }
    let sum = fills.iter().fold(0_u64, |sum, fill| sum.saturating_add(fill.quantity.shares()));
    if let Some(filled) = detail.filled.map(Quantity::shares).filter(|filled| *filled != sum) {
        return wrong(format!("its fills have {sum} shares in all, but it says {filled}"));
    }
    // If the order was changed elsewhere, only a later list has its present terms.
    let by_order = |why: String| match order.changed_elsewhere {
        None => Err(Failed::Wrong(why)),
        Some(_) => Err(Failed::Yet(why)),
    };
    if let Some(fill) = fills.iter().find(|fill| order.is_too_bad(fill.price)) {
        return by_order(format!("a fill at {} is worse than the limit of the order", fill.price));
    }
    let wanted = order.pending.as_ref().and_then(|pending| pending.wanted.as_ref());
    let wanted = wanted.map_or(0, |wanted| wanted.quantity.shares());
    let ordered = order.order.quantity.shares().max(wanted);
    if sum > ordered {
        return by_order(format!("its fills have {sum} shares, but the order has {ordered}"));
    }
    // It may have been filled further since the list.
    let listed = order.listed.map_or(0, |listed| listed.filled.shares());
    if order.end_unseen {
        // Without its issue an empty answer may be about no order at all.
        return match detail.symbol {
            Some(_) => Ok(()),
            None => Err(Failed::Yet("the broker's answer does not describe the order".to_owned())),
        };
    }
    if sum > listed {
        return Err(Failed::Yet(format!("its fills have {sum} shares, more than the list has")));
    }
    Ok(())
}

impl Desk {
    /// Requests the details of an order that has more shares filled than notices reported. Returns false if
    /// that is useless: the dialect has no such request, or it has failed too often.
    pub(crate) fn request_details(&mut self, key: OrderKey, now: Now) -> bool {
        let tried = self.book.get(key).map_or(DETAILS_TRIES_MAX, |order| order.details_tried);
        if self.mapping.description().fill_rows.is_none() || tried >= DETAILS_TRIES_MAX {
            return false;
        }
        let has_room = self.reconciliation.lists.details.len() < DETAILS_WAITING_MAX;
        if has_room
            && self.may_request_details(now)
            && self.reconciliation.lists.details.insert(key)
        {
            // A list has just been answered; the queue continues after it is applied.
            let kind = JobKind::Details(key);
            self.queue.put(Job { context: None, received: now.mono, kind, is_abandoned: false });
        }
        true
    }

    /// Whether details may be requested now. They may not while a cancel of many waits for its lists, nor for a
    /// while after a failure.
    fn may_request_details(&self, now: Now) -> bool {
        self.cancels.is_empty()
            && self.reconciliation.lists.no_details_until.is_none_or(|until| now.mono >= until)
    }

    /// Removes an order from those whose details are requested.
    pub(super) fn details_done(&mut self, key: OrderKey) {
        self.reconciliation.lists.details.remove(&key);
    }

    pub(super) fn begin_details(&mut self, job: Job, key: OrderKey, now: Now) {
        if !self.may_request_details(now) {
            // The next list plans them again.
            return self.details_done(key);
        }
        let order = self.book.get(key);
        let Some(number) = order.and_then(|order| order.venue_order_id.clone()) else {
            return self.details_done(key);
        };
        let day = order.and_then(|order| order.business_day.clone());
        let why = match self.mapping.list_fills(&number, day.as_deref()) {
            Ok(Ok(request)) => return self.send(job, request, None),
            Ok(Err(rejection)) => rejection.text,
            Err(fault) => fault_of(&fault).text,
        };
        self.details_done(key);
        self.details_failed(key, &Failed::Yet(why), now);
    }

    pub(super) fn details_answered(&mut self, key: OrderKey, called: Called, now: Now) {
        self.details_done(key);
        let failed = match self.end_of(called) {
            Ended::Done(accepted, answered) => {
                match self.take_details(key, &accepted, &answered, now) {
                    Ok(()) => return,
                    Err(failed) => failed,
                }
            }
            Ended::Nothing(_) => Failed::Yet("the broker has no details of it".to_owned()),
            Ended::Refused(rejection) => Failed::Yet(rejection.text),
            Ended::WrongPassword(_, text) => Failed::Yet(text),
            Ended::Expired => return self.freeze(now),
            Ended::Unknown(why) => {
                let failed = Failed::Yet(why);
                // The other requests would fail as well.
                for other in std::mem::take(&mut self.reconciliation.lists.details) {
                    self.details_failed(other, &failed, now);
                }
                failed
            }
        };
        self.reconciliation.lists.no_details_until = Some(now.mono + DETAILS_PAUSE);
        self.details_failed(key, &failed, now);
    }

    /// Takes details up. An error says why they lack some of the missing fills.
    fn take_details(
        &mut self,
        key: OrderKey,
        accepted: &BrokerAccepted,
        answered: &Answered,
        now: Now,
    ) -> Result<(), Failed> {
        let number = self.book.get(key).and_then(|order| order.venue_order_id.as_ref());
        if number.is_none() || accepted.venue_order_id.as_ref() != number {
            return Err(Failed::Wrong("the answer is about another order".to_owned()));
        }
        let fills = self.read_fills(answered)?;
        let detail = read_order_detail(answered).map_err(Failed::Wrong)?;
        let Some(order) = self.book.get(key) else { return Ok(()) };
        check(order, &detail, &fills)?;
        let unreported = order.unreported_of(&fills).ok_or_else(|| {
            Failed::Yet("its details lack a fill that came in a notice".to_owned())
        })?;
        let shares =
            unreported.iter().fold(0_u64, |sum, fill| sum.saturating_add(fill.quantity.shares()));
        // A list must first say how many shares the order has.
        let end_unseen = order.end_unseen;
        if !end_unseen && self.may_end_early(key, Quantity::new(shares)) {
            return Ok(());
        }
        for fill in &unreported {
            self.report_detailed(key, fill, now);
        }
        if end_unseen {
            self.end_of_day_known(key, now);
            return Ok(());
        }
        let Some(order) = self.book.get_mut(key) else { return Ok(()) };
        let listed = order.listed.map_or(0, |listed| listed.filled.shares());
        if order.cumulative < listed {
            return Err(Failed::Yet(format!(
                "its details have {} shares in all",
                order.cumulative
            )));
        }
        order.details_tried = 0;
        Ok(())
    }

    /// All fills of an order of an earlier day are known: what is left of it has expired with its day.
    pub(super) fn end_of_day_known(&mut self, key: OrderKey, now: Now) {
        let Some(order) = self.book.get_mut(key) else { return };
        (order.end_unseen, order.details_tried) = (false, 0);
        self.expired(key, now.wall, now);
    }

    /// Reports a fill that only the details have, with a number of the desk's own.
    fn report_detailed(&mut self, key: OrderKey, fill: &ListedFill, now: Now) {
        let Some(order) = self.book.get_mut(key) else { return };
        order.details_reported += 1;
        let number = match &order.business_day {
            Some(day) => format!("{day}-D{}", order.details_reported),
            None => format!("D{}", order.details_reported),
        };
        let trade_id = ShortText::from(number.as_str());
        order.note_detailed(detail_id(&trade_id), (fill.quantity, fill.price));
        let reported = BrokerFill { trade_id, quantity: fill.quantity, price: fill.price };
        // A time in the future counts as unknown; the clocks may differ by the slack.
        let latest = now.wall.millis().saturating_add(CLAIM_SLACK_MS);
        let time = fill.time.filter(|time| time.millis() <= latest);
        self.take_fill(key, FillSource::Details, &reported, time.unwrap_or(now.wall), now);
    }

    fn read_fills(&mut self, answered: &Answered) -> Result<Vec<ListedFill>, String> {
        let name = self.mapping.description().fill_rows.clone().unwrap_or_default();
        let rows =
            answered.lists.get(&name).ok_or_else(|| format!("the answer has no `{name}`"))?;
        if rows.len() > FILLS_PER_ORDER_MAX {
            let count = rows.len();
            return Err(format!("{count} rows; the engine reads at most {FILLS_PER_ORDER_MAX}"));
        }
        let read = self.mapping.read_fills(rows).map_err(|fault| fault_of(&fault).text)?;
        read.into_iter().collect()
    }

    /// Details failed or are incomplete. After some attempts the fills are reported as missing; if the details
    /// contradict what is known, at once.
    fn details_failed(&mut self, key: OrderKey, failed: &Failed, now: Now) {
        let (why, is_wrong) = match failed {
            Failed::Yet(why) => (why, false),
            Failed::Wrong(why) => (why, true),
        };
        tracing::warn!(why, "the details of an order lack fills that the list has");
        let Some(order) = self.book.get_mut(key) else { return };
        order.details_tried = if is_wrong { DETAILS_TRIES_MAX } else { order.details_tried + 1 };
        let listed = order.listed.map_or(0, |listed| listed.filled.shares());
        let reported = order.cumulative;
        if order.details_tried >= DETAILS_TRIES_MAX && reported < listed {
            let text = format!(
                "the list has {listed} shares filled, the engine has reported {reported}; details: \
                 {why}"
            );
            self.report_discrepancy(Some(key), None, Discrepancy::FillsMissing, text, now);
        } else if order.details_tried >= DETAILS_TRIES_MAX
            && order.end_unseen
            && let Some(strategy_id) = order.strategy_id().map(ShortText::from)
        {
            let order = order.named_with_number();
            self.report_strategy(StrategyEvent::EndUnknown { strategy_id, order });
        }
    }
}
