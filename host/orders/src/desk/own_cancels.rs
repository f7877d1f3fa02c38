//! Cancels of all orders of one strategy: at the end of its run, and before the next one (specification 4, P86,
//! P105, P110).
//!
//! What was not sent yet is not sent any more. Each order that works is cancelled as soon as it has a number and
//! nothing of it is pending. A cancel that is refused is sent again, because the order may have been busy. It ends
//! when all orders have ended, when no cancel can succeed, or after [`CANCEL_OWN_TIME`].

use std::collections::BTreeMap;
use std::time::Duration;

use domain::{OrderStatus, ReasonCode, Rejection, ShortText};

use super::change::{Change, ChangeJob, Sender};
use super::{Desk, Job, JobKind, Now, RequestContext};
use crate::book::{DeskOrder, OrderKey};
use crate::event::{OwnOrder, StrategyEvent};
use crate::limits::{CANCEL_OWN_PAUSE, CANCEL_OWN_TIME, CANCELS_OF_OWN_MAX, OWN_LIST_PAUSE};

/// A cancel of a strategy's own orders that is under way.
#[derive(Debug)]
pub(crate) struct OwnCancel {
    /// The command; none: a start waits for it.
    context: Option<RequestContext>,
    strategy_id: ShortText,
    begun: Duration,
    next_list: Duration,
    /// When a cancel of each order was queued last.
    tried: BTreeMap<OrderKey, Duration>,
    /// The newest refusal, and whether no further cancel can succeed.
    refused: Option<Rejection>,
    is_hopeless: bool,
}

/// Whether a refusal is for a reason that waiting does not end.
const fn is_hopeless(code: ReasonCode) -> bool {
    matches!(
        code,
        ReasonCode::SessionExpired
            | ReasonCode::SecondPasswordRequired
            | ReasonCode::SecondPasswordInvalid
            | ReasonCode::SecondPasswordLocked
            | ReasonCode::UnsupportedInPhaseO0
    )
}

impl Desk {
    /// Orders of a strategy that work or whose outcome is unknown.
    pub(super) fn own_orders(&self, strategy_id: &str, now: Now) -> Vec<(OrderKey, OwnOrder)> {
        let today = now.wall.jst_date();
        let own = self.book.iter().filter(|(_, order)| {
            order.strategy_id() == Some(strategy_id)
                && order.status != OrderStatus::Initialized
                && order.is_working(today)
        });
        own.map(|(key, order)| (key, own_order(order))).collect()
    }

    /// The orders without their keys.
    pub(super) fn listed_own(&self, strategy_id: &str, now: Now) -> Vec<OwnOrder> {
        self.own_orders(strategy_id, now).into_iter().map(|(_, order)| order).collect()
    }

    /// Reports the orders of a strategy that work or whose outcome is unknown.
    pub(crate) fn report_own_orders(&mut self, context: &RequestContext, id: &str, now: Now) {
        let orders = self.listed_own(id, now);
        let request_id = context.request_id.clone();
        let refused = None;
        self.answer_strategy(context, StrategyEvent::OwnOrders { request_id, orders, refused });
    }

    /// Cancels the orders of a strategy, for a command.
    pub(crate) fn cancel_own(&mut self, context: RequestContext, id: ShortText, now: Now) {
        self.begin_own_cancel(Some(context), id, now);
    }

    /// Cancels the orders of a strategy. Without a command, a start waits for the end.
    pub(super) fn begin_own_cancel(
        &mut self,
        context: Option<RequestContext>,
        strategy_id: ShortText,
        now: Now,
    ) {
        let text = "NOT_SENT: the engine cancels the orders of the strategy and sends no more";
        self.withdraw_own(&strategy_id, &Rejection::new(ReasonCode::InternalError, text), now);
        let mut cancel = OwnCancel {
            context,
            strategy_id,
            begun: now.mono,
            next_list: now.mono,
            tried: BTreeMap::new(),
            refused: None,
            is_hopeless: false,
        };
        let may_go = self
            .rules
            .phase
            .check_change("CancelOrder")
            .and_then(|()| self.session.check_active())
            .and_then(|()| self.password.check_lock(now.mono))
            .and_then(|()| match self.strategies.cancels.len() < CANCELS_OF_OWN_MAX {
                true => Ok(()),
                false => {
                    let text = "TOO_MANY_CANCELS: too many cancels of own orders are under way";
                    Err(Rejection::new(ReasonCode::InternalError, text))
                }
            });
        if let Err(rejection) = may_go {
            (cancel.refused, cancel.is_hopeless) = (Some(rejection), true);
        }
        self.strategies.cancels.push(cancel);
        self.tick_own_cancels(now);
        self.work(now);
    }

    /// Takes back what a strategy has queued and what was not sent: new orders and changes.
    fn withdraw_own(&mut self, strategy_id: &str, rejection: &Rejection, now: Now) {
        let is_own = |key: OrderKey| {
            self.book.get(key).is_some_and(|order| order.strategy_id() == Some(strategy_id))
        };
        let is_taken = |job: &Job| match &job.kind {
            JobKind::Submit(submit) => is_own(submit.key),
            JobKind::Change(change) => {
                change.sender == Sender::Strategy
                    && matches!(change.change, Change::Modify(_))
                    && is_own(change.key)
            }
            _ => false,
        };
        let waiting = self.queue.take_waiting(is_taken);
        let active = self.queue.unsent_submit().filter(|key| is_own(*key));
        for job in waiting {
            self.refuse_job(job, rejection, now);
        }
        if let Some(key) = active {
            // A guard is under way; its answer is dropped.
            let context = self.queue.abandon_active().and_then(|job| job.context.clone());
            self.refuse_submit(context.as_ref(), key, rejection, now);
        }
    }

    /// Sends the cancels that are due, and ends those of which all orders have ended, or whose time is over.
    pub(super) fn tick_own_cancels(&mut self, now: Now) {
        let mut needs_list = false;
        for mut cancel in std::mem::take(&mut self.strategies.cancels) {
            let open = self.own_orders(&cancel.strategy_id, now);
            let is_late = now.mono.saturating_sub(cancel.begun) >= CANCEL_OWN_TIME;
            if !is_late && !cancel.is_hopeless {
                self.put_own_cancels(&mut cancel, &open, now);
            }
            if open.is_empty() || cancel.is_hopeless || is_late {
                self.finish_own_cancel(cancel, open, now);
                continue;
            }
            if now.mono >= cancel.next_list {
                cancel.next_list = now.mono + OWN_LIST_PAUSE;
                needs_list = true;
            }
            self.strategies.cancels.push(cancel);
        }
        if needs_list {
            self.request_list_once(now);
        }
    }

    /// Queues the cancels that are due.
    fn put_own_cancels(&mut self, cancel: &mut OwnCancel, open: &[(OrderKey, OwnOrder)], now: Now) {
        for (key, order) in open {
            let is_due = cancel.tried.get(key).is_none_or(|at| now.mono >= *at + CANCEL_OWN_PAUSE);
            let is_idle = self.book.get(*key).is_some_and(|order| order.pending.is_none());
            let has_number = order.venue_order_id.is_some();
            if !is_due || !is_idle || !has_number || self.queue.has_cancel_of(*key) {
                continue;
            }
            cancel.tried.insert(*key, now.mono);
            if let Err(rejection) = self.put_own_cancel(*key, now) {
                (cancel.refused, cancel.is_hopeless) = (Some(rejection), true);
                return;
            }
        }
    }

    /// Queues the cancel of a strategy's order.
    pub(super) fn put_own_cancel(&mut self, key: OrderKey, now: Now) -> Result<(), Rejection> {
        let Some(password) = self.password.use_it(now.mono) else {
            let text = "NO_PASSWORD: the cancel needs the second password; set it and try again";
            return Err(Rejection::new(ReasonCode::SecondPasswordRequired, text));
        };
        let change = ChangeJob { key, change: Change::Cancel, sender: Sender::Desk, password };
        let kind = JobKind::Change(change);
        self.queue.put(Job { context: None, received: now.mono, kind, is_abandoned: false });
        Ok(())
    }

    /// A cancel of the desk's own was refused.
    pub(super) fn own_cancel_refused(&mut self, key: OrderKey, rejection: &Rejection) {
        let Some(id) = self.book.get(key).and_then(DeskOrder::strategy_id) else { return };
        for cancel in self.strategies.cancels.iter_mut().filter(|one| one.strategy_id == id) {
            cancel.is_hopeless |= is_hopeless(rejection.code);
            cancel.refused = Some(rejection.clone());
        }
    }

    /// Ends all: the session is gone.
    pub(super) fn end_own_cancels(&mut self, rejection: &Rejection, now: Now) {
        for mut cancel in std::mem::take(&mut self.strategies.cancels) {
            cancel.refused = Some(rejection.clone());
            let open = self.own_orders(&cancel.strategy_id, now);
            self.finish_own_cancel(cancel, open, now);
        }
    }

    fn finish_own_cancel(&mut self, cancel: OwnCancel, open: Vec<(OrderKey, OwnOrder)>, now: Now) {
        let refused = cancel.refused.filter(|_| !open.is_empty());
        let Some(context) = cancel.context else {
            return self.take_over_cancelled(&cancel.strategy_id, refused, now);
        };
        let request_id = context.request_id.clone();
        let orders = open.into_iter().map(|(_, order)| order).collect();
        self.answer_strategy(&context, StrategyEvent::OwnOrders { request_id, orders, refused });
    }
}

fn own_order(order: &DeskOrder) -> OwnOrder {
    OwnOrder {
        client_order_id: order.client_order_id.clone().unwrap_or_default(),
        venue_order_id: order.venue_order_id.clone(),
        instrument_id: order.instrument_id.clone(),
        side: order.order.side,
        leaves: order.leaves(),
    }
}
