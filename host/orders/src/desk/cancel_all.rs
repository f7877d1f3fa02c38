//! Cancels of many orders (specification 2, "CancelAllOrders"; specification 4, P13, P23b): a list, then
//! the broker's own request for all or single cancels where a filter is given, then lists until all have
//! ended or the time is over. Foreign orders of the account are cancelled, too.

use std::time::Duration;

use domain::order::OrderTrigger;
use domain::{OrderSide, OrderStatus, Rejection};
use ipc::{CancelAllOrders, CancelAllResult, Event};
use venues::web_broker::Called;

use super::answers::{Ended, expired};
use super::change::{Change, ChangeJob};
use super::lists::Purpose;
use super::submit::fault_of;
use super::{Asked, Desk, Job, JobKind, Now, Recipient};
use crate::book::{OrderKey, Pending};
use crate::check::symbol_of;
use crate::limits::{CANCEL_ALL_LIST_PAUSE, CANCEL_ALL_TIME};
use crate::password::HeldPassword;

/// A cancel of many.
#[derive(Debug)]
pub(crate) struct CancelAll {
    number: u64,
    asked: Asked,
    password: HeldPassword,
    /// Only orders of this instrument, or of this side.
    instrument_id: Option<String>,
    side: Option<OrderSide>,
    begun: Duration,
    /// The orders, once a list was read.
    targets: Option<Vec<OrderKey>>,
    /// When the next list is asked for.
    next_list: Duration,
    /// A list is waited for.
    is_listing: bool,
}

impl Desk {
    /// Cancels every open order, or those of one instrument or side.
    pub fn cancel_all(&mut self, asked: Asked, all: &CancelAllOrders, now: Now) {
        let may_go = self.rules.phase.check_change("CancelAllOrders").and_then(|()| {
            all.instrument_id.as_deref().map(symbol_of).transpose()?;
            self.check_session()?;
            self.password.check_lock(now.mono)?;
            self.has_room()
        });
        if let Err(rejection) = may_go {
            return self.tell_refused(asked.request_id, &rejection, now);
        }
        let Some(password) = self.password.use_it(now.mono) else {
            return self.ask_password(asked, None);
        };
        self.cancels_begun += 1;
        let number = self.cancels_begun;
        self.cancels.push(CancelAll {
            number,
            asked: asked.clone(),
            password,
            instrument_id: all.instrument_id.clone(),
            side: all.order_side,
            begun: now.mono,
            targets: None,
            next_list: now.mono,
            is_listing: true,
        });
        self.enqueue_list(None, Purpose::CancelAll(number), now);
    }

    /// A list that a cancel of many asked for has come.
    pub(crate) fn cancel_all_listed(&mut self, number: u64, now: Now) {
        let Some(at) = self.cancels.iter().position(|all| all.number == number) else { return };
        let all = &mut self.cancels[at];
        all.is_listing = false;
        all.next_list = now.mono + CANCEL_ALL_LIST_PAUSE;
        let request_id = all.asked.request_id.clone();
        if all.targets.is_some() {
            let client = all.asked.client;
            self.tell_list(client, &request_id, None);
            return self.tick_cancels(now);
        }
        let (instrument_id, side) = (all.instrument_id.clone(), all.side);
        let asked = all.asked.clone();
        let password = all.password.clone();
        let is_target = |order: &crate::book::DeskOrder| {
            let is_wanted = instrument_id.as_deref().is_none_or(|id| *id == *order.instrument_id)
                && side.is_none_or(|side| side == order.order.side);
            let is_open = !order.status.is_final() && !order.is_over;
            is_wanted && is_open && order.venue_order_id.is_some()
        };
        let targets: Vec<OrderKey> =
            self.book.iter().filter(|(_, order)| is_target(order)).map(|(key, _)| key).collect();
        let filtered = instrument_id.is_some() || side.is_some();
        self.cancels[at].targets = Some(targets.clone());
        if targets.is_empty() {
            return self.tick_cancels(now);
        }
        if !filtered {
            return self.enqueue(Some(asked), JobKind::CancelAll { number, targets }, now);
        }
        for key in targets {
            let job = ChangeJob { key, change: Change::Cancel, password: password.clone() };
            self.enqueue(Some(asked.clone()), JobKind::Change(job), now);
        }
    }

    /// The turn of the broker's own request for all has come.
    pub(crate) fn begin_cancel_all(&mut self, job: Job, now: Now) {
        let JobKind::CancelAll { number, targets } = &job.kind else { return };
        let Some(all) = self.cancels.iter().find(|all| all.number == *number) else { return };
        let password = all.password.clone();
        let request_id = all.asked.request_id.clone();
        let targets = targets.clone();
        let made = self.may_use(&password, now);
        let made = made.and_then(|()| self.mapping.cancel_all().map_err(|fault| fault_of(&fault)));
        let request = match made {
            Ok(request) => request,
            Err(rejection) => return self.refuse_job(job, &rejection, now),
        };
        for key in targets {
            let Some(order) = self.book.get_mut(key) else { continue };
            if order.take(OrderTrigger::SendCancel, now.mono).is_err() {
                continue;
            }
            let request_id = Some(request_id.clone());
            order.pending = Some(Pending { request_id, wanted: None, sent: now, ended: None });
            self.tell_pending(key, false, now);
        }
        self.send(job, request, Some(password.value));
    }

    /// The broker's own request for all was answered. Its orders are those of the job: the cancel of many
    /// itself may have been given up in the meantime.
    pub(crate) fn cancel_all_answered(&mut self, job: Job, called: Called, now: Now) {
        let ended = self.end_of(called);
        let JobKind::CancelAll { number, targets } = &job.kind else { return };
        let mut is_expired = false;
        let refusal = match ended {
            Ended::Done(..) => {
                self.password.accept();
                None
            }
            Ended::Nothing(_) => None,
            Ended::Unknown(why) => {
                self.tell_unknown(&job, &why);
                None
            }
            Ended::Refused(rejection) => Some(rejection),
            Ended::WrongPassword(counts, text) => {
                let used = self.cancels.iter().find(|all| all.number == *number);
                let used = used.map(|all| all.password.clone());
                Some(match used {
                    Some(used) => self.wrong_password(&used, counts, &text, now),
                    None => Rejection::new(domain::ReasonCode::SecondPasswordInvalid, text),
                })
            }
            Ended::Expired => {
                is_expired = true;
                Some(expired())
            }
        };
        for key in targets {
            let Some(order) = self.book.get_mut(*key) else { continue };
            let Some(pending) = order.pending.as_mut().filter(|pending| pending.ended.is_none())
            else {
                continue;
            };
            let request_id = pending.request_id.clone();
            match &refusal {
                Some(rejection) => self.work_on(*key, request_id, rejection, false, now),
                None => pending.ended = Some(now.mono),
            }
        }
        let number = *number;
        if is_expired {
            self.freeze(now);
        }
        match (refusal, job.asked) {
            (Some(rejection), Some(asked)) => {
                self.tell_refused(asked.request_id, &rejection, now);
                self.finish_cancel_all(number);
            }
            (Some(_), None) => self.finish_cancel_all(number),
            (None, _) => self.ask_list_soon(now),
        }
    }

    /// A cancel of many of which nothing was sent.
    pub(crate) fn refuse_cancel_all(&mut self, number: u64, rejection: &Rejection, now: Now) {
        let Some(at) = self.cancels.iter().position(|all| all.number == number) else { return };
        let all = self.cancels.remove(at);
        self.tell_refused(all.asked.request_id, rejection, now);
    }

    /// Ends the cancels whose orders have all ended, or whose time is over, and asks for lists.
    pub(crate) fn tick_cancels(&mut self, now: Now) {
        let mut done = Vec::new();
        let mut listing = Vec::new();
        for all in &mut self.cancels {
            let Some(targets) = &all.targets else {
                if now.mono.saturating_sub(all.begun) >= CANCEL_ALL_TIME {
                    done.push(all.number);
                }
                continue;
            };
            let is_final = |key: &OrderKey| {
                let order = self.book.get(*key);
                order.is_none_or(|order| order.status.is_final() || order.is_over)
            };
            let is_late = now.mono.saturating_sub(all.begun) >= CANCEL_ALL_TIME;
            if is_late || targets.iter().all(is_final) {
                done.push(all.number);
            } else if !all.is_listing && now.mono >= all.next_list {
                all.is_listing = true;
                listing.push(all.number);
            }
        }
        for number in done {
            self.finish_cancel_all(number);
        }
        for number in listing {
            self.enqueue_list(None, Purpose::CancelAll(number), now);
        }
    }

    /// A list that a cancel of many waited for has not come.
    pub(crate) fn cancel_all_unlisted(&mut self, number: u64, rejection: &Rejection, now: Now) {
        let Some(all) = self.cancels.iter_mut().find(|all| all.number == number) else { return };
        all.is_listing = false;
        all.next_list = now.mono + CANCEL_ALL_LIST_PAUSE;
        if all.targets.is_none() {
            self.refuse_cancel_all(number, rejection, now);
        }
    }

    fn finish_cancel_all(&mut self, number: u64) {
        let Some(at) = self.cancels.iter().position(|all| all.number == number) else { return };
        let all = self.cancels.remove(at);
        let targets = all.targets.unwrap_or_default();
        let is_canceled = |key: &&OrderKey| {
            let order = self.book.get(**key);
            order.is_some_and(|order| order.status == OrderStatus::Canceled)
        };
        let canceled = targets.iter().filter(is_canceled).count();
        let request_id = all.asked.request_id;
        self.tell_list(all.asked.client, &request_id, None);
        let result = CancelAllResult {
            request_id: request_id.into(),
            canceled_count: canceled as u64,
            failed_count: (targets.len() - canceled) as u64,
        };
        self.tell(Recipient::Client(all.asked.client), Event::CancelAllResult(result));
    }

    /// Ends all cancels of many: the session is gone.
    pub(crate) fn end_cancels(&mut self) {
        for number in self.cancels.iter().map(|all| all.number).collect::<Vec<_>>() {
            self.finish_cancel_all(number);
        }
    }
}
