//! Cancels of many orders (specification 2, "CancelAllOrders"; specification 4, P13, P23a, P23b).
//!
//! It requests a list, then sends the broker's own request for all, or single cancels if there is a filter.
//! Then it requests lists until all orders have ended or the time is over. It also cancels foreign orders of
//! the account, and rows of the list whose owner is not known yet.
//!
//! A cancel of many has one end. It is `OrderRejected` without an order if it was refused, not sent in time or
//! ended with the session. Else it is `CancelAllResult`. Its single cancels report failures of orders, but no
//! end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::order::OrderTrigger;
use domain::order_mapping::BrokerRow;
use domain::{OrderEventKind, OrderOrigin, OrderSide, OrderStatus, ReasonCode, Rejection};
use venues::web_broker::Called;

use super::answers::{Ended, expired};
use super::change::{Change, ChangeJob, Sender};
use super::lists::Purpose;
use super::submit::fault_of;
use super::{Desk, Job, JobKind, Now, RequestContext};
use crate::book::{Book, DeskOrder, OrderKey, PendingOperation, Seen};
use crate::check::symbol_of;
use crate::command::CancelMany;
use crate::event::Reply;
use crate::limits::{CANCEL_ALL_LIST_PAUSE, CANCEL_ALL_TIME, CANCELS_UNDER_WAY_MAX};
use crate::password::HeldPassword;

/// What a cancel of many is to end.
#[derive(Debug)]
enum Target {
    /// An order of the book.
    Order(OrderKey),
    /// A row of the newest list that no order of the book has, because it may be one whose number is unknown.
    Row(Box<BrokerRow>),
}

impl Target {
    fn is_final(&self, book: &Book) -> bool {
        match self {
            Self::Order(key) => !book.get(*key).is_some_and(is_open),
            Self::Row(row) => row.status.is_final(),
        }
    }

    fn is_canceled(&self, book: &Book) -> bool {
        let status = match self {
            Self::Order(key) => book.get(*key).map(|order| order.status),
            Self::Row(row) => Some(row.status),
        };
        status == Some(OrderStatus::Canceled)
    }
}

fn is_open(order: &DeskOrder) -> bool {
    !order.status.is_final() && !order.is_over
}

/// The cancel of a row that no order of the book has.
#[derive(Debug)]
pub(crate) struct RowCancel {
    row: Box<BrokerRow>,
    password: HeldPassword,
}

/// A cancel of many.
#[derive(Debug)]
pub(crate) struct CancelAll {
    number: u64,
    context: RequestContext,
    password: HeldPassword,
    /// Which orders.
    wanted: CancelMany,
    begun: Duration,
    /// The orders to end, once a list was read.
    targets: Option<Vec<Target>>,
    /// The broker's own request for all is queued or unanswered.
    is_requesting: bool,
    /// When the next list is due.
    next_list: Duration,
    /// A list is pending.
    is_listing: bool,
}

/// The cancels of many that are under way.
#[derive(Debug, Default)]
pub(crate) struct CancelsOfMany {
    under_way: Vec<CancelAll>,
    begun: u64,
    /// Rows that they end or have ended, and that no order of the book has yet.
    unowned: Vec<BrokerRow>,
}

impl CancelsOfMany {
    /// Whether none is under way.
    pub(super) const fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    fn check_room(&self) -> Result<(), Rejection> {
        if self.under_way.len() < CANCELS_UNDER_WAY_MAX {
            return Ok(());
        }
        let text = format!(
            "TOO_MANY_CANCELS: {CANCELS_UNDER_WAY_MAX} CancelAllOrders are under way; wait until \
             one ends"
        );
        Err(Rejection::new(ReasonCode::InternalError, text))
    }

    /// Begins one, which waits for a list; gives its number.
    fn begin(
        &mut self,
        context: RequestContext,
        wanted: CancelMany,
        password: HeldPassword,
        now: Now,
    ) -> u64 {
        self.begun += 1;
        self.under_way.push(CancelAll {
            number: self.begun,
            context,
            password,
            wanted,
            begun: now.mono,
            targets: None,
            is_requesting: false,
            next_list: now.mono,
            is_listing: true,
        });
        self.begun
    }

    fn get(&self, number: u64) -> Option<&CancelAll> {
        self.under_way.iter().find(|all| all.number == number)
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut CancelAll> {
        self.under_way.iter_mut().find(|all| all.number == number)
    }

    /// Ends one; none where it has ended already.
    fn end(&mut self, number: u64) -> Option<CancelAll> {
        let place = self.under_way.iter().position(|all| all.number == number)?;
        Some(self.under_way.remove(place))
    }

    /// Remembers rows that are to be cancelled.
    fn note_unowned(&mut self, rows: Vec<BrokerRow>) {
        for row in rows {
            if !self.unowned.iter().any(|known| id_of(known) == id_of(&row)) {
                self.unowned.push(row);
            }
        }
    }
}

impl Desk {
    /// Cancels every open order, or those of one sender, instrument or side.
    pub fn cancel_all(&mut self, context: RequestContext, wanted: CancelMany, now: Now) {
        let may_go = self.rules.phase.check_change("CancelAllOrders").and_then(|()| {
            wanted.instrument_id.as_deref().map(symbol_of).transpose()?;
            self.session.check_active()?;
            self.password.check_lock(now.mono)?;
            self.has_room(context.client)?;
            self.cancels.check_room()
        });
        if let Err(rejection) = may_go {
            return self.report_refused(context.request_id, &rejection, now);
        }
        let Some(password) = self.password.use_it(now.mono) else {
            return self.request_password(context, None);
        };
        let number = self.cancels.begin(context, wanted, password, now);
        self.enqueue_list(None, Purpose::CancelAll(number), now);
    }

    /// The list of a cancel of many has arrived.
    pub(crate) fn cancel_all_listed(&mut self, number: u64, now: Now) {
        let Some(all) = self.cancels.get_mut(number) else { return };
        all.is_listing = false;
        all.next_list = now.mono + CANCEL_ALL_LIST_PAUSE;
        if all.targets.is_some() {
            self.report_cancels(now);
            return self.tick_cancels(now);
        }
        if is_late(all, now) {
            return self.refuse_cancel_all(number, &not_listed(), now);
        }
        let wanted = all.wanted.clone();
        let targets = self.targets_of(&wanted, now);
        let Some(all) = self.cancels.get_mut(number) else { return };
        let (context, begun, password) = (all.context.clone(), all.begun, all.password.clone());
        if all.wanted.is_all() {
            // Also if the list is empty: the broker may have an order that its list does not show yet.
            let keys = targets.iter().filter_map(|target| match target {
                Target::Order(key) => Some(*key),
                Target::Row(_) => None,
            });
            let kind = JobKind::CancelAll { number, targets: keys.collect() };
            (all.targets, all.is_requesting) = (Some(targets), true);
            return self.enqueue_part(context, begun, kind, now);
        }
        let kinds: Vec<JobKind> = targets
            .iter()
            .map(|target| {
                let password = password.clone();
                match target {
                    Target::Order(key) => {
                        let change = Change::Cancel;
                        let sender = Sender::Person;
                        JobKind::Change(ChangeJob { key: *key, change, sender, password })
                    }
                    Target::Row(row) => {
                        JobKind::CancelRow(RowCancel { row: row.clone(), password })
                    }
                }
            })
            .collect();
        all.targets = Some(targets);
        for kind in kinds {
            self.enqueue_part(context.clone(), begun, kind, now);
        }
        self.tick_cancels(now);
    }

    /// Queues a request of a cancel of many. Its time counts from the receipt of the whole, and its own end is
    /// not reported.
    fn enqueue_part(
        &mut self,
        context: RequestContext,
        received: Duration,
        kind: JobKind,
        now: Now,
    ) {
        self.queue.put(Job { context: Some(context), received, kind, is_abandoned: true });
        self.work(now);
    }

    /// The open orders of the newest list, and the open orders of the book that are not in it.
    fn targets_of(&mut self, wanted: &CancelMany, now: Now) -> Vec<Target> {
        let orders = self.book.iter().filter(|(_, order)| {
            is_open(order)
                && order.venue_order_id.is_some()
                && wanted.takes(order.origin.as_ref(), &order.instrument_id, order.order.side)
        });
        let mut targets: Vec<Target> = orders.map(|(key, _)| Target::Order(key)).collect();
        let today = now.wall.jst_date();
        let (mut rows, mut seen) = (Vec::new(), BTreeSet::new());
        for row in &self.reconciliation.lists.rows {
            let is_wanted = wanted.takes(None, &format!("{}.TSE", row.symbol), row.side);
            let is_open = is_wanted && !row.status.is_final() && seen.insert(id_of(row));
            if is_open && self.book.by_number(&row.venue_order_id, Seen::row(row, today)).is_none()
            {
                rows.push(row.clone());
            }
        }
        targets.extend(rows.iter().map(|row| Target::Row(Box::new(row.clone()))));
        self.cancels.note_unowned(rows);
        targets
    }

    /// Updates the targets that no order of the book has by the newest list. If one turns out to be an ended
    /// order from elsewhere, its end is reported, because its cancel was requested here.
    pub(crate) fn renew_targets(&mut self, now: Now) {
        let Self { cancels: CancelsOfMany { under_way, unowned, .. }, book, .. } = self;
        if unowned.is_empty() {
            return;
        }
        let today = now.wall.jst_date();
        let lists = &self.reconciliation.lists;
        let owner = |row: &BrokerRow| book.by_number(&row.venue_order_id, Seen::row(row, today));
        let newest: BTreeMap<_, &BrokerRow> =
            lists.rows.iter().map(|row| (id_of(row), row)).collect();
        for target in under_way.iter_mut().filter_map(|all| all.targets.as_mut()).flatten() {
            let Target::Row(row) = target else { continue };
            match (owner(row), newest.get(&id_of(row))) {
                (Some(key), _) => *target = Target::Order(key),
                (None, Some(listed)) => (**row).clone_from(listed),
                (None, None) => {}
            }
        }
        let mut owned = Vec::new();
        unowned.retain(|row| {
            let key = owner(row);
            owned.extend(key);
            // A list with a row left out may have it in that row (P129).
            key.is_none() && (newest.contains_key(&id_of(row)) || !lists.left_out.is_empty())
        });
        for key in owned {
            let order = self.book.get(key).filter(|order| order.client_order_id.is_none());
            match order.map(|order| order.status) {
                Some(OrderStatus::Canceled) => self.report_canceled(key, now.wall),
                Some(OrderStatus::Expired) => self.report_expired(key, now.wall),
                _ => {}
            }
        }
    }

    /// Begins the cancel of a row.
    pub(crate) fn begin_cancel_row(&mut self, job: Job, now: Now) {
        let JobKind::CancelRow(RowCancel { row, password }) = &job.kind else { return };
        let password = password.clone();
        let seen = Seen::row(row, now.wall.jst_date());
        if let Some(key) = self.book.by_number(&row.venue_order_id, seen) {
            let sender = Sender::Person;
            let change = ChangeJob { key, change: Change::Cancel, sender, password };
            return self.begin_change(Job { kind: JobKind::Change(change), ..job }, now);
        }
        let made = self.may_use(&password, now).and_then(|()| {
            let made = self.mapping.cancel_order(&row.venue_order_id, row.business_day.as_deref());
            let request = made.map_err(|fault| fault_of(&fault))??;
            self.check_names(&request, &row.venue_order_id, row.business_day.as_deref(), None)?;
            Ok(request)
        });
        match made {
            Ok(request) => self.send(job, request, Some(password.value)),
            Err(rejection) => self.refuse_job(job, &rejection, now),
        }
    }

    /// The cancel of a row was answered. Lists show whether it has ended.
    pub(crate) fn cancel_row_answered(&mut self, job: Job, called: Called, now: Now) {
        let ended = self.end_of(called);
        let JobKind::CancelRow(cancel) = &job.kind else { return };
        let rejection = match ended {
            Ended::Done(..) => {
                self.password.accept();
                return self.request_list_soon(now);
            }
            Ended::Nothing(_) | Ended::Unknown(_) => return self.request_list_soon(now),
            Ended::Refused(rejection) => rejection,
            Ended::WrongPassword(counts, text) => {
                let used = cancel.password.clone();
                self.wrong_password(&used, counts, &text, now)
            }
            Ended::Expired => {
                self.refuse_job(job, &expired(), now);
                return self.freeze(now);
            }
        };
        self.refuse_job(job, &rejection, now);
    }

    /// A row is not cancelled.
    pub(crate) fn refuse_cancel_row(
        &mut self,
        context: Option<&RequestContext>,
        cancel: &RowCancel,
        rejection: &Rejection,
        now: Now,
    ) {
        let request_id = context.map(|context| context.request_id.clone());
        self.report_row_refused(&cancel.row, request_id, rejection, now);
    }

    /// Begins the broker's own request for all.
    pub(crate) fn begin_cancel_all(&mut self, job: Job, now: Now) {
        let JobKind::CancelAll { number, targets } = &job.kind else { return };
        let Some(all) = self.cancels.get(*number) else { return };
        let password = all.password.clone();
        let request_id = all.context.request_id.clone();
        let targets = targets.clone();
        let made = self.may_use(&password, now);
        let made = made.and_then(|()| self.mapping.cancel_all().map_err(|fault| fault_of(&fault)));
        let request = match made {
            Ok(request) => request,
            Err(rejection) => return self.refuse_job(job, &rejection, now),
        };
        for key in targets {
            let Some(order) = self.book.get_mut(key) else { continue };
            // It ended since the list, or something else is pending.
            let takes_it = order.status.transition(OrderTrigger::SendCancel).is_ok();
            if !takes_it || !order.take(OrderTrigger::SendCancel, now.mono, &mut self.illegal) {
                continue;
            }
            let request_id = Some(request_id.clone());
            order.pending =
                Some(PendingOperation { request_id, wanted: None, sent: now, ended: None });
            self.report_pending(key, OrderEventKind::PendingCancel, now);
        }
        self.send(job, request, Some(password.value));
    }

    /// The broker's own request for all was answered. Its orders are those of the job: the cancel of many
    /// itself may have ended in the meantime.
    pub(crate) fn cancel_all_answered(&mut self, job: Job, called: Called, now: Now) {
        let ended = self.end_of(called);
        let JobKind::CancelAll { number, targets } = &job.kind else { return };
        let mut is_expired = false;
        let refusal = match ended {
            Ended::Done(..) => {
                self.password.accept();
                None
            }
            // Lists show the outcome of the orders; the result counts them.
            Ended::Nothing(_) | Ended::Unknown(_) => None,
            Ended::Refused(rejection) => Some(rejection),
            Ended::WrongPassword(counts, text) => {
                let used = self.cancels.get(*number).map(|all| all.password.clone());
                Some(match used {
                    Some(used) => self.wrong_password(&used, counts, &text, now),
                    None => Rejection::new(ReasonCode::SecondPasswordInvalid, text),
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
            // This ends every cancel of many.
            self.freeze(now);
        }
        if let Some(rejection) = refusal {
            return self.refuse_cancel_all(number, &rejection, now);
        }
        if let Some(all) = self.cancels.get_mut(number) {
            all.is_requesting = false;
        }
        self.request_list_soon(now);
        self.tick_cancels(now);
    }

    /// Ends a cancel of many that sent nothing, unless it has ended already.
    pub(crate) fn refuse_cancel_all(&mut self, number: u64, rejection: &Rejection, now: Now) {
        let Some(all) = self.cancels.end(number) else { return };
        self.report_refused(all.context.request_id, rejection, now);
    }

    /// Ends the cancels of many whose orders have all ended, or whose time is over. Requests a list if one is
    /// due; one list serves all of them.
    pub(crate) fn tick_cancels(&mut self, now: Now) {
        let mut done = Vec::new();
        let mut unlisted = Vec::new();
        let mut listing = None;
        let is_followed = |all: &CancelAll| all.is_listing && all.targets.is_some();
        let is_listing = self.cancels.under_way.iter().any(is_followed);
        for all in &mut self.cancels.under_way {
            let is_late = is_late(all, now);
            match &all.targets {
                None if is_late => unlisted.push(all.number),
                None => {}
                Some(targets) => {
                    let mut open = targets.iter().filter(|target| !target.is_final(&self.book));
                    if is_late || (!all.is_requesting && open.next().is_none()) {
                        done.push(all.number);
                    } else if !is_listing && listing.is_none() && now.mono >= all.next_list {
                        all.is_listing = true;
                        listing = Some(all.number);
                    }
                }
            }
        }
        for number in unlisted {
            self.refuse_cancel_all(number, &not_listed(), now);
        }
        for number in done {
            self.finish_cancel_all(number);
        }
        if let Some(number) = listing {
            self.enqueue_list(None, Purpose::CancelAll(number), now);
        }
    }

    /// Sends the newest list to the clients whose cancels of many wait for its orders to end.
    fn report_cancels(&mut self, now: Now) {
        let mut reported = Vec::new();
        for all in self.cancels.under_way.iter_mut().filter(|all| all.targets.is_some()) {
            all.next_list = now.mono + CANCEL_ALL_LIST_PAUSE;
            reported.push(all.context.clone());
        }
        for context in reported {
            self.report_list(context.client, &context.request_id, None);
        }
    }

    /// The list of a cancel of many did not arrive.
    pub(crate) fn cancel_all_unlisted(&mut self, number: u64, rejection: &Rejection, now: Now) {
        let Some(all) = self.cancels.get_mut(number) else { return };
        all.is_listing = false;
        all.next_list = now.mono + CANCEL_ALL_LIST_PAUSE;
        if all.targets.is_none() {
            self.refuse_cancel_all(number, rejection, now);
        }
    }

    fn finish_cancel_all(&mut self, number: u64) {
        let Some(all) = self.cancels.end(number) else { return };
        let targets = all.targets.unwrap_or_default();
        let canceled = targets.iter().filter(|target| target.is_canceled(&self.book)).count();
        let request_id = all.context.request_id;
        self.report_list(all.context.client, &request_id, None);
        let failed = (targets.len() - canceled) as u64;
        let reply = Reply::CanceledMany { request_id, canceled: canceled as u64, failed };
        self.reply(all.context.client, reply);
    }

    /// Ends all cancels of many: the session is gone.
    pub(crate) fn end_cancels(&mut self, now: Now) {
        for number in self.cancels.under_way.iter().map(|all| all.number).collect::<Vec<_>>() {
            self.refuse_cancel_all(number, &expired(), now);
        }
    }
}

impl CancelMany {
    /// Whether it cancels every order of the account.
    const fn is_all(&self) -> bool {
        self.origin.is_none() && self.instrument_id.is_none() && self.side.is_none()
    }

    /// Whether it cancels this order.
    fn takes(&self, origin: Option<&OrderOrigin>, instrument_id: &str, side: OrderSide) -> bool {
        self.origin.as_ref().is_none_or(|wanted| Some(wanted) == origin)
            && self.instrument_id.as_deref().is_none_or(|id| id == instrument_id)
            && self.side.is_none_or(|wanted| wanted == side)
    }
}

fn is_late(all: &CancelAll, now: Now) -> bool {
    now.mono.saturating_sub(all.begun) >= CANCEL_ALL_TIME
}

/// The rejection of a cancel of many whose first list has not come.
fn not_listed() -> Rejection {
    let seconds = CANCEL_ALL_TIME.as_secs();
    let text = format!(
        "NOT_SENT: the broker's list of orders has not come within {seconds} s; no cancel was sent"
    );
    Rejection::new(ReasonCode::InternalError, text)
}

/// Identifies a row among those of all business days.
fn id_of(row: &BrokerRow) -> (&str, Option<&str>) {
    (&row.venue_order_id, row.business_day.as_deref())
}
