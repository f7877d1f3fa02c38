//! Lists of orders: when they are requested, and how their rows are applied.
//!
//! Clients request them; the desk does after every reconnect and login, and while an outcome is unknown.
//! `crate::reconcile` decides what a list means.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::order_mapping::{BrokerAccepted, BrokerRow};
use domain::{Discrepancy, OrderFilter, OrderStatus, ReasonCode, Rejection};
use venues::web_broker::{Answered, Called};

use super::answers::{Ended, expired};
use super::list_rows::filter_of;
use super::submit::fault_of;
use super::{Desk, Job, JobKind, Now, RequestContext, SessionState};
use crate::book::{DeskOrder, OrderKey, Seen};
use crate::limits::{LIST_ROWS_MAX, RESYNC_PAUSE_MAX};
use crate::reconcile::{self, FreeRow, ListRequest, Step};

/// Rows that a dialect reads in one call.
const ROWS_PER_CALL: usize = 500;

/// What a list is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A client wants it.
    Client(OrderFilter),
    /// The desk resolves the state of its orders.
    Resync,
    /// A cancel of many waits for it.
    CancelAll(u64),
}

/// A list that is queued or under way.
#[derive(Debug)]
pub(crate) struct ListJob {
    pub(crate) purpose: Purpose,
    /// When it was requested.
    sent_at: Duration,
}

/// Lists that the desk requests by itself.
#[derive(Debug, Default)]
pub(crate) struct ListSchedule {
    /// When the next one is due.
    due: Option<Duration>,
    /// The pause before the list after it, while something stays unknown.
    pause: Duration,
    /// One is queued or under way.
    is_requested: bool,
    /// Orders whose rows of the newest list could not be applied yet.
    put_off: BTreeSet<OrderKey>,
    /// Orders whose details are queued or under way.
    pub(crate) details: BTreeSet<OrderKey>,
    /// Until when no details are requested, after a failure.
    pub(crate) no_details_until: Option<Duration>,
    /// Since when the stream of notices is up.
    pub(crate) stream_up: Option<Duration>,
    /// The broker's newest list, and when it was requested.
    pub(crate) rows: Vec<BrokerRow>,
    pub(crate) listed_at: Option<Duration>,
    /// When the newest list without an unreadable row was requested.
    pub(crate) full_at: Option<Duration>,
    /// Why rows of the newest list were left out: each is reported once.
    pub(crate) left_out: BTreeSet<String>,
}

impl Desk {
    /// Sends a client the orders of the broker's list.
    pub fn order_list(
        &mut self,
        context: RequestContext,
        filter: Result<OrderFilter, Rejection>,
        now: Now,
    ) {
        let filter = self.rules.phase.check_change("GetOrderList").and_then(|()| {
            let filter = filter_of(filter?, now.wall.jst_date())?;
            self.session.check_active()?;
            self.has_room_for_read(context.client)?;
            Ok(filter)
        });
        match filter {
            Ok(filter) => self.enqueue_list(Some(context), Purpose::Client(filter), now),
            Err(rejection) => self.report_refused(context.request_id, &rejection, now),
        }
    }

    pub(crate) fn enqueue_list(
        &mut self,
        context: Option<RequestContext>,
        purpose: Purpose,
        now: Now,
    ) {
        let job = ListJob { purpose, sent_at: now.mono };
        self.enqueue(context, JobKind::List(job), now);
    }

    /// Requests a list at once, and further ones while something stays unknown.
    pub(crate) fn request_list_soon(&mut self, now: Now) {
        self.reconciliation.lists.due = Some(now.mono);
        self.reconciliation.lists.pause = self.rules.unknown_settle;
    }

    /// Requests a list at once, unless one is queued or under way.
    pub(super) fn request_list_once(&mut self, now: Now) {
        if !self.reconciliation.lists.is_requested {
            self.request_list_soon(now);
            self.tick_resync(now);
        }
    }

    pub(crate) fn tick_resync(&mut self, now: Now) {
        let is_due = self.reconciliation.lists.due.is_some_and(|due| now.mono >= due);
        if is_due
            && !self.reconciliation.lists.is_requested
            && self.session.state() == SessionState::Active
        {
            self.reconciliation.lists.is_requested = true;
            self.reconciliation.lists.due = None;
            self.enqueue_list(None, Purpose::Resync, now);
        }
    }

    pub(crate) fn begin_list(&mut self, mut job: Job, now: Now) {
        let made = self.mapping.list_orders();
        match made {
            Ok(request) => {
                if let JobKind::List(list) = &mut job.kind {
                    list.sent_at = now.mono;
                }
                self.send(job, request, None);
            }
            Err(fault) => {
                let rejection = fault_of(&fault);
                self.refuse_job(job, &rejection, now);
            }
        }
    }

    pub(crate) fn list_answered(&mut self, job: Job, called: Called, now: Now) {
        let p_no = called.p_no;
        let ended = self.end_of(called);
        let JobKind::List(list) = &job.kind else { return };
        let settle = self.rules.unknown_settle;
        let mut request = ListRequest { at: list.sent_at, p_no, settle, is_full: true };
        let rejection = match ended {
            Ended::Done(_, answered) | Ended::Nothing(answered) => {
                match self.read_rows(&answered, now) {
                    Ok((rows, is_full)) => {
                        request.is_full = is_full;
                        self.apply_list(rows, request, now);
                        return self.list_done(&job, now);
                    }
                    Err(why) => Rejection::new(ReasonCode::InternalError, why),
                }
            }
            Ended::Refused(rejection) => rejection,
            Ended::WrongPassword(_, text) => {
                Rejection::new(ReasonCode::SecondPasswordInvalid, text)
            }
            Ended::Expired => {
                self.freeze(now);
                expired()
            }
            Ended::Unknown(why) => {
                Rejection::new(ReasonCode::InternalError, format!("LIST_FAILED: {why}"))
            }
        };
        let Job { context, kind: JobKind::List(list), .. } = job else { return };
        self.refuse_list(context.as_ref(), &list, &rejection, now);
    }

    /// Finishes a list that has arrived.
    fn list_done(&mut self, job: &Job, now: Now) {
        let JobKind::List(list) = &job.kind else { return };
        self.renew_targets(now);
        match &list.purpose {
            Purpose::Client(filter) => {
                if let Some(context) = job.context.as_ref().filter(|_| !job.is_abandoned) {
                    let (client, request_id) = (context.client, context.request_id.clone());
                    self.report_list(client, &request_id, Some(filter));
                }
            }
            Purpose::Resync => self.reconciliation.lists.is_requested = false,
            Purpose::CancelAll(number) => self.cancel_all_listed(*number, now),
        }
        self.serve_waiting_lists(list.sent_at);
        self.list_came(now);
        self.plan_resync(now);
    }

    /// Finishes a list that failed.
    pub(crate) fn refuse_list(
        &mut self,
        context: Option<&RequestContext>,
        list: &ListJob,
        rejection: &Rejection,
        now: Now,
    ) {
        match (&list.purpose, context) {
            (Purpose::Client(_), Some(context)) => {
                self.report_refused(context.request_id.clone(), rejection, now);
            }
            (Purpose::CancelAll(number), _) => self.cancel_all_unlisted(*number, rejection, now),
            (Purpose::Resync, _) => {
                self.reconciliation.lists.is_requested = false;
                tracing::warn!(why = %rejection, "the broker gave no list of orders");
                self.put_off_resync(now);
            }
            (Purpose::Client(_), None) => {}
        }
    }

    /// Plans the desk's next list, while something stays unknown.
    fn plan_resync(&mut self, now: Now) {
        let is_open = |order: &DeskOrder| {
            order.is_unknown()
                || order.awaits_list
                || order.pending.is_some()
                || order.is_unconfirmed()
        };
        let is_needed = self.book.iter().any(|(_, order)| is_open(order))
            || !self.reconciliation.held.is_empty()
            || !self.reconciliation.lists.put_off.is_empty()
            || self.has_unreported_fills();
        if is_needed {
            self.put_off_resync(now);
        } else if self.reconciliation.lists.due.is_none() {
            self.reconciliation.lists.pause = self.rules.unknown_settle;
        }
    }

    /// Plans a list of the desk, if none is planned.
    pub(crate) fn put_off_resync_once(&mut self, now: Now) {
        if self.reconciliation.lists.due.is_none() && !self.reconciliation.lists.is_requested {
            self.put_off_resync(now);
        }
    }

    fn put_off_resync(&mut self, now: Now) {
        let pause = self.reconciliation.lists.pause.max(self.rules.unknown_settle);
        let due = now.mono + pause;
        self.reconciliation.lists.due =
            Some(self.reconciliation.lists.due.map_or(due, |known| known.min(due)));
        self.reconciliation.lists.pause =
            (pause * 2).min(RESYNC_PAUSE_MAX.max(self.rules.unknown_settle));
    }

    /// Reads the rows of an answer by the dialect; the flag says whether all could be read.
    fn read_rows(
        &mut self,
        answered: &Answered,
        now: Now,
    ) -> Result<(Vec<BrokerRow>, bool), String> {
        let name = self.mapping.description().order_rows.clone();
        // An answer without the field of rows belongs to another request, and is no empty list.
        let Some(raw) = answered.lists.get(&name) else {
            return Err(format!("LIST_FAILED: the answer has no `{name}`"));
        };
        if raw.len() > LIST_ROWS_MAX {
            let count = raw.len();
            return Err(format!(
                "LIST_TOO_LONG: {count} rows; the engine reads at most {LIST_ROWS_MAX}"
            ));
        }
        let (mut rows, mut unreadable) = (Vec::with_capacity(raw.len()), Vec::new());
        for part in raw.chunks(ROWS_PER_CALL) {
            let read = self.mapping.read_orders(part).map_err(|fault| fault_of(&fault).text)?;
            for row in read {
                match row {
                    Ok(row) => rows.push(row),
                    Err(why) => unreadable.push(why),
                }
            }
        }
        self.report_unreadable_rows(unreadable, now);
        let is_full = rows.len() == raw.len();
        Ok((rows, is_full))
    }

    /// Whether a held notice may be about an order whose number is unknown.
    fn has_held_notice_for(&self, key: OrderKey) -> bool {
        let symbol = self.book.get(key).map(|order| &order.order.symbol);
        self.reconciliation.held.has_symbol(symbol)
    }

    /// Applies a list.
    fn apply_list(&mut self, rows: Vec<BrokerRow>, request: ListRequest, now: Now) {
        self.reconciliation.lists.put_off.clear();
        let mut free: Vec<FreeRow<'_>> = Vec::new();
        let mut listed = BTreeSet::new();
        for (index, row) in rows.iter().enumerate() {
            let seen = Seen::row(row, now.wall.jst_date());
            match self.book.by_number(&row.venue_order_id, seen) {
                Some(key) if !listed.insert(key) => {
                    let text = format!("the list has number {} twice", row.venue_order_id);
                    let kind = Discrepancy::Ambiguous;
                    self.report_discrepancy(Some(key), None, kind, text, now);
                }
                Some(key) => {
                    self.apply_row(key, row, request, now);
                    if self.book.get(key).is_some_and(|order| order.client_order_id.is_none()) {
                        free.push(FreeRow { index, row, foreign: Some(key) });
                    }
                }
                None => free.push(FreeRow { index, row, foreign: None }),
            }
        }
        let claims = reconcile::claims(&self.book, &free, request, now.wall.jst_date());
        for (key, index) in &claims.found {
            let Some(row) = rows.get(*index) else { continue };
            let accepted = BrokerAccepted {
                venue_order_id: Some(row.venue_order_id.clone()),
                business_day: row.business_day.clone(),
                ..BrokerAccepted::default()
            };
            self.accepted(*key, &accepted, request.p_no.unwrap_or(0), now);
            listed.insert(*key);
            // It was accepted just now by this row, so the row must not count as older.
            if let Some(order) = self.book.get_mut(*key) {
                order.changed_at = request.at;
            }
            self.apply_row(*key, row, request, now);
        }
        for key in &claims.missing {
            if self.has_held_notice_for(*key) {
                continue;
            }
            self.presume_rejected(*key);
            self.reject(*key, None, &reconcile::not_at_broker(), now);
        }
        let in_doubt: BTreeSet<OrderKey> = claims.ambiguous.iter().map(|(key, _)| *key).collect();
        self.book.set_ambiguous(|key| in_doubt.contains(&key));
        for (key, why) in &claims.ambiguous {
            let text = format!("{why}; its number stays unknown");
            self.report_discrepancy(Some(*key), None, Discrepancy::Ambiguous, text, now);
        }
        let is_claimed = |index: usize| {
            claims.found.iter().any(|(_, claimed)| *claimed == index)
                || claims.left_free.binary_search(&index).is_ok()
        };
        free.retain(|free| free.foreign.is_none() && !is_claimed(free.index));
        let back = self.reconciliation.presumed_rejected.take_back(&free);
        let mut taken = BTreeSet::new();
        for (order, index) in back {
            let Some(row) = rows.get(index) else { continue };
            let Some(key) = self.came_back(order, row, request.p_no.unwrap_or(0), now) else {
                continue;
            };
            taken.insert(index);
            listed.insert(key);
            if let Some(order) = self.book.get_mut(key) {
                order.changed_at = request.at;
            }
            self.apply_row(key, row, request, now);
        }
        for FreeRow { index, row, .. } in free {
            if taken.contains(&index) {
                continue;
            }
            let instrument = self.book.instrument_of(&row.symbol);
            let foreign = instrument.map(|instrument| DeskOrder::foreign(row, instrument));
            if let Some(key) = foreign.and_then(|order| self.book.add(order)) {
                listed.insert(key);
                self.apply_foreign(key, row, now);
                self.take_earlier_fills(key);
                self.find_presumed_rejected(row, now);
            }
        }
        self.apply_absence(&listed, request, now);
        self.end_doubts(request);
        self.reconciliation.lists.rows = rows;
        self.reconciliation.lists.listed_at = Some(request.at);
        if request.is_full {
            self.reconciliation.lists.full_at = Some(request.at);
        }
        self.release_held(now);
        self.compare_fills(request, now);
    }

    /// A list shows all changes from elsewhere that are older than its request.
    fn end_doubts(&mut self, request: ListRequest) {
        for key in self.book.keys() {
            let Some(order) = self.book.get_mut(key) else { continue };
            let is_reported = order.changed_elsewhere.is_some_and(|since| request.at >= since);
            if is_reported && !self.reconciliation.lists.put_off.contains(&key) {
                order.changed_elsewhere = None;
            }
        }
    }

    /// Sees an order that was placed elsewhere for the first time. Its present state is no event.
    fn apply_foreign(&mut self, key: OrderKey, row: &BrokerRow, now: Now) {
        let Some(order) = self.book.get_mut(key) else { return };
        order.status = match row.status {
            OrderStatus::Submitted | OrderStatus::Initialized => OrderStatus::Accepted,
            OrderStatus::PendingUpdate | OrderStatus::PendingCancel if row.filled.is_zero() => {
                OrderStatus::Accepted
            }
            // Fills are reported by notices, which are sent again, or were reported before.
            OrderStatus::Filled | OrderStatus::PartiallyFilled => OrderStatus::Accepted,
            OrderStatus::PendingUpdate | OrderStatus::PendingCancel => OrderStatus::Accepted,
            status => status,
        };
        order.is_over = row.status == OrderStatus::Filled;
        order.changed_at = now.mono;
        order.seen_on = Some(now.wall.jst_date());
        order.set_listed(row, now.mono);
    }

    /// Applies a row to its order.
    fn apply_row(&mut self, key: OrderKey, row: &BrokerRow, request: ListRequest, now: Now) {
        let Some(order) = self.book.get_mut(key) else { return };
        if row.business_day.is_some() {
            order.business_day.clone_from(&row.business_day);
        }
        order.seen_on = Some(now.wall.jst_date());
        order.set_listed(row, request.at);
        let steps = reconcile::steps(order, row, request);
        if reconcile::is_put_off(order, row, request) {
            self.reconciliation.lists.put_off.insert(key);
        }
        if !row.status.is_final() {
            (order.is_over, order.is_gone) = (false, false);
        } else if order.changed_at <= request.at {
            order.is_over = true;
        }
        for step in steps {
            let Some(order) = self.book.get_mut(key) else { return };
            let pending = order.pending.as_ref();
            let request_id = pending.and_then(|pending| pending.request_id.clone());
            match step {
                Step::FoundWorking => {
                    if order.found_working(now.mono, &mut self.illegal) {
                        self.report_accepted(key, now);
                    }
                }
                Step::Canceled => self.canceled(key, now.wall, now),
                Step::Expired => self.expired(key, now.wall, now),
                Step::Rejected => {
                    let text = "LISTED_AS_REJECTED: the broker's list has the order as rejected";
                    let rejection = Rejection::new(ReasonCode::VenueRejected, text);
                    self.reject(key, None, &rejection, now);
                }
                Step::ChangeDone => self.updated(key, now),
                Step::RequestFailed(text) => {
                    let rejection = Rejection::new(ReasonCode::InternalError, text);
                    self.work_on(key, request_id, &rejection, false, now);
                }
                Step::Differs => self.take_row(key, row, now),
                Step::EndedButWorking => {
                    let status = order.status;
                    let text = format!("the order is {status} here, but the broker has it working");
                    let kind = Discrepancy::EndedButWorking;
                    self.report_discrepancy(Some(key), None, kind, text, now);
                }
            }
        }
    }

    /// Sets an order to the broker's row: it was changed elsewhere, or the log did not record all of it.
    fn take_row(&mut self, key: OrderKey, row: &BrokerRow, now: Now) {
        let Some(order) = self.book.get_mut(key) else { return };
        let was_whole = std::mem::replace(&mut order.is_whole, true);
        order.note_past_limit();
        order.order.quantity = row.quantity;
        order.order.price = row.price;
        order.order.trigger_price = row.trigger_price;
        order.order.time_in_force = row.time_in_force;
        if order.order.expire_date != row.expire_date {
            order.order.expire_date = row.expire_date;
            order.expire_time = row.expire_date.and_then(crate::book::last_moment);
        }
        order.changed_at = now.mono;
        if !order.status.is_final() {
            order.end_if_filled(now.mono, &mut self.illegal);
        }
        if was_whole {
            self.report_updated(key, None, now);
        }
    }

    /// Handles orders with a number that the list does not have. Those of earlier days are over (P23), and
    /// their numbers are free. An open one of today is reported. A list with an unreadable row proves nothing.
    fn apply_absence(&mut self, listed: &BTreeSet<OrderKey>, request: ListRequest, now: Now) {
        let today = now.wall.jst_date();
        for key in self.book.keys() {
            let Some(order) = self.book.get_mut(key).filter(|_| !listed.contains(&key)) else {
                continue;
            };
            order.listed = None;
            let is_proof = request.is_full && request.has_settled_since(order.changed_at);
            if !is_proof || order.venue_order_id.is_none() {
                continue;
            }
            let is_missing = !order.is_settled() && (order.day() == today || order.lives_on(today));
            if order.day() < today {
                order.end_unseen |=
                    order.strategy_id().is_some() && !order.status.is_final() && !order.is_over;
                order.is_over = true;
                order.is_gone = order.last_day() < today;
            }
            if order.end_unseen {
                self.request_details(key, now);
            } else if is_missing {
                let text = "the order should be working, but the broker's list does not have it";
                let kind = Discrepancy::OrderMissing;
                self.report_discrepancy(Some(key), None, kind, text.to_owned(), now);
            }
        }
    }

    /// The difference between an order's fills in lists and in notices, if not reported yet. No notice repeats
    /// fills of earlier days: those that no process reported stay missing.
    fn uneven(order: &DeskOrder) -> Option<(Discrepancy, u64, u64)> {
        let listed = order.listed?.filled.shares();
        let kind = match order.cumulative.cmp(&listed) {
            std::cmp::Ordering::Less => Discrepancy::FillsMissing,
            std::cmp::Ordering::Greater => Discrepancy::FillsUnlisted,
            std::cmp::Ordering::Equal => return None,
        };
        (!order.reported.contains(&kind)).then_some((kind, order.cumulative, listed))
    }

    fn has_unreported_fills(&self) -> bool {
        let is_open = |order: &DeskOrder| {
            Self::uneven(order).is_some()
                || order.is_listed_as_filled()
                || order.conflicting_notice().is_some()
        };
        self.rules.phase.takes_notices()
            && self.stream_is_up()
            && self.book.iter().any(|(_, order)| is_open(order))
    }

    /// Settles differences between the fills of lists and notices, once both have had their time. The order's
    /// details are requested for missing fills; the rest is reported as a discrepancy. An order that the list
    /// has as filled is filled then, or at once if all its fills were reported.
    fn compare_fills(&mut self, request: ListRequest, now: Now) {
        for key in self.book.keys() {
            let Some(order) = self.book.get_mut(key) else { continue };
            if order.listed.is_some_and(|listed| listed.filled.shares() == order.cumulative) {
                order.end_as_listed(now.mono, &mut self.illegal);
            }
        }
        let has_notices = self
            .reconciliation
            .lists
            .stream_up
            .is_some_and(|since| request.has_settled_since(since));
        let takes_notices = self.rules.phase.takes_notices();
        if takes_notices && !has_notices {
            return;
        }
        let has_settled = |order: &DeskOrder| {
            !takes_notices
                || request.has_settled_since(order.changed_at)
                    && order.listed.is_some_and(|listed| request.has_settled_since(listed.since))
        };
        let settled = self.book.iter().filter(|(_, order)| has_settled(order));
        let settled: Vec<_> = settled.map(|(key, order)| (key, Self::uneven(order))).collect();
        for (key, uneven) in settled {
            if let Some((kind, reported, listed)) = uneven.filter(|_| takes_notices) {
                if kind == Discrepancy::FillsMissing && self.request_details(key, now) {
                    continue;
                }
                let text =
                    format!("the list has {listed} shares filled, notices have told {reported}");
                self.report_discrepancy(Some(key), None, kind, text, now);
            }
            if let Some(order) = self.book.get_mut(key) {
                order.end_as_listed(now.mono, &mut self.illegal);
                if let Some((shares, price)) = order.conflicting_notice() {
                    let (shares, kind) = (shares.shares(), Discrepancy::FillConflict);
                    let text = format!(
                        "a notice has {shares} shares filled at {price}; the order's details have \
                         other values"
                    );
                    self.report_discrepancy(Some(key), None, kind, text, now);
                }
            }
        }
    }

    /// Requests a list after a fill of an order whose missing fills were reported. Only a list knows whether
    /// this fill was the last one.
    pub(crate) fn after_fill(&mut self, key: OrderKey, now: Now) {
        let order = self.book.get(key).filter(|order| !order.status.is_final());
        if order.is_some_and(|order| order.reported.contains(&Discrepancy::FillsMissing)) {
            self.request_list_soon(now);
        }
    }

    /// Since when the stream of notices is up; none while it is down.
    pub(crate) fn set_stream(&mut self, up: Option<Duration>) {
        self.reconciliation.lists.stream_up = up;
    }

    pub(crate) const fn stream_is_up(&self) -> bool {
        self.reconciliation.lists.stream_up.is_some()
    }
}
