//! Changes and cancels of one order (specification 2, "Modify and cancel"; specification 4, P25 to P27).
//!
//! | the call ended with | a change | a cancel |
//! |---|---|---|
//! | the broker's consent | the order is as wanted, OrderUpdated | stays pending until a notice or a list (P27) |
//! | the broker's refusal | OrderRejected; the order as the dialect says (P26) | OrderRejected, works on |
//! | nothing left, or the session ended | OrderRejected, works on | OrderRejected, works on |
//! | anything else | stays pending until a list resolves it | stays pending until a list resolves it |

use domain::order::OrderTrigger;
use domain::order_mapping::{BrokerChange, BrokerOrder, BrokerRequest};
use domain::{
    OrderEventKind, OrderModify, OrderType, Origin, ReasonCode, Rejection, ShortText, TimeInForce,
    TsNanos,
};
use venues::web_broker::Called;

use super::answers::{Ended, expired};
use super::submit::fault_of;
use super::{Desk, Job, JobKind, Now, RequestContext};
use crate::book::{DeskOrder, OrderKey, PendingOperation};
use crate::check::{check_expiry, check_lot, issue_of, limit_on_tick, trigger_on_tick};
use crate::command::{NamedOrder, OrderChange};
use crate::password::HeldPassword;
use crate::phase::OrderPhase;

/// Characters of an id that a refusal repeats; the longest that can be one fits.
const ID_CHARS_SHOWN: usize = 64;

/// What is to be done with an order.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// The fields that change.
    Modify(OrderModify),
    /// Cancel it.
    Cancel,
}

/// Who wants a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    /// A person, or a script for one.
    Person,
    /// The strategy of the order.
    Strategy,
    /// The desk, which ends the orders of a strategy.
    Desk,
}

/// A change on its way to the broker.
#[derive(Debug)]
pub(crate) struct ChangeJob {
    pub(crate) key: OrderKey,
    pub(crate) change: Change,
    pub(crate) sender: Sender,
    pub(crate) password: HeldPassword,
}

impl ChangeJob {
    pub(crate) const fn is_cancel(&self) -> bool {
        matches!(self.change, Change::Cancel)
    }

    /// Whether it goes before questions and other orders: a cancel of a strategy's order by it or for it.
    pub(crate) fn reduces_risk(&self) -> bool {
        self.is_cancel() && self.sender != Sender::Person
    }
}

fn invalid(text: impl AsRef<str>) -> Rejection {
    Rejection::new(ReasonCode::ValidationError, text)
}

/// Checks the prices of a change, whatever its order is (specification 4, P24).
fn check_prices(change: &OrderModify) -> Result<(), Rejection> {
    let named = [("NEW_PRICE", change.price), ("NEW_TRIGGER_PRICE", change.trigger_price)];
    for (field, price) in named {
        if price.is_some_and(|price| price.units() <= 0) {
            return Err(invalid(format!("{field}: must be above zero")));
        }
    }
    Ok(())
}

impl Desk {
    /// Changes an order.
    pub fn modify(
        &mut self,
        context: RequestContext,
        OrderChange { order, change }: OrderChange,
        now: Now,
    ) {
        let checked = change.and_then(|change| {
            check_prices(&change)?;
            self.rules.phase.check_change("ModifyOrder")?;
            let is_dated = change.expire_time.is_some() || change.trigger_price.is_some();
            if is_dated && self.rules.phase != OrderPhase::O3 {
                let text = format!(
                    "PHASE: phase {} takes no stops and no dates; for them set order_phase to O3",
                    self.rules.phase
                );
                return Err(Rejection::new(ReasonCode::VenueUnsupported, text));
            }
            let key = self.find(&order)?;
            let known = self.book.get(key).ok_or_else(|| status_unknown(order.ids()))?;
            let (wanted, _) = self.wanted(known, change, now)?;
            self.check_own_change(key, &wanted)?;
            Ok((key, Change::Modify(change)))
        });
        self.change(context, &order, checked, now);
    }

    /// Cancels an order.
    pub fn cancel(&mut self, context: RequestContext, order: &NamedOrder, now: Now) {
        let checked = self.rules.phase.check_change("CancelOrder");
        let checked = checked.and_then(|()| Ok((self.find(order)?, Change::Cancel)));
        self.change(context, order, checked, now);
    }

    fn change(
        &mut self,
        context: RequestContext,
        order: &NamedOrder,
        checked: Result<(OrderKey, Change), Rejection>,
        now: Now,
    ) {
        let may_go = checked.and_then(|(key, change)| {
            self.session.check_active()?;
            self.password.check_lock(now.mono)?;
            match order.origin {
                Origin::Client => self.has_room(context.client)?,
                Origin::Strategy => self.make_way(key, now)?,
            }
            Ok((key, change))
        });
        let (key, change) = match may_go {
            Ok(checked) => checked,
            Err(rejection) => return self.report_change_refused(&context, order, &rejection, now),
        };
        let name = self.book.get(key).and_then(DeskOrder::name);
        let sender = match order.origin {
            Origin::Client => Sender::Person,
            Origin::Strategy => Sender::Strategy,
        };
        let password = match (self.password.use_it(now.mono), sender) {
            (Some(password), _) => password,
            (None, Sender::Person) => return self.request_password(context, name),
            (None, _) => {
                let id = name.map(|(_, id)| id).unwrap_or_default();
                let rejection = self.without_password(&id);
                return self.report_rejected(key, None, &rejection, now);
            }
        };
        let job = ChangeJob { key, change, sender, password };
        self.enqueue(Some(context), JobKind::Change(job), now);
    }

    /// One change of a strategy's order waits at most, the newest, so that a strategy fills no queue. A cancel that
    /// waits gives way to nothing.
    fn make_way(&mut self, key: OrderKey, now: Now) -> Result<(), Rejection> {
        let is_its = |job: &Job| matches!(&job.kind, JobKind::Change(change) if change.key == key && change.sender == Sender::Strategy);
        let is_cancel =
            |job: &Job| matches!(&job.kind, JobKind::Change(change) if change.is_cancel());
        if self.queue.any_waiting(|job| is_its(job) && is_cancel(job)) {
            return Err(invalid(
                "CANCEL_WAITS: a cancel of the order waits for the broker already",
            ));
        }
        let text = "REPLACED: a newer command for the order came before this change was sent";
        for job in self.queue.take_waiting(is_its) {
            self.refuse_job(job, &invalid(text), now);
        }
        Ok(())
    }

    /// The named order. One whose number is unknown cannot be changed (ORDER_STATUS_UNKNOWN).
    fn find(&self, order: &NamedOrder) -> Result<OrderKey, Rejection> {
        let ids = order.ids();
        if ids == (None, None) {
            let text = "CLIENT_ORDER_ID: the command names no order; send client_order_id or \
                        venue_order_id";
            return Err(invalid(text));
        }
        let key = self.order_key_of(order).ok_or_else(|| no_order(ids))?;
        let is_numbered = self.book.get(key).is_some_and(|order| order.venue_order_id.is_some());
        if is_numbered && !self.book.has_twin_number(key) {
            Ok(key)
        } else {
            Err(status_unknown(ids))
        }
    }

    fn report_change_refused(
        &mut self,
        context: &RequestContext,
        order: &NamedOrder,
        rejection: &Rejection,
        now: Now,
    ) {
        let (client, venue) = order.ids();
        match client {
            Some(id) => {
                if order.origin == Origin::Strategy {
                    return self.report_own_change_refused(context, id, rejection, now);
                }
                // An id that is too long to be one is cut.
                let id: String = id.chars().take(ID_CHARS_SHOWN).collect();
                self.report_order_refused(context, (order.origin, &id), rejection, now);
            }
            None => match venue.and_then(|number| self.book.by_number_alone(number)) {
                Some(key) => {
                    self.report_rejected(key, Some(context.request_id.clone()), rejection, now)
                }
                None => self.report_refused(context.request_id.clone(), rejection, now),
            },
        }
    }

    /// A strategy's change is refused: an event of the order. One that has ended, and was rejected, is known to the
    /// sender of the command only.
    fn report_own_change_refused(
        &mut self,
        context: &RequestContext,
        id: &str,
        rejection: &Rejection,
        now: Now,
    ) {
        match self.book.by_id(Origin::Strategy, id) {
            Some(key) => self.report_rejected(key, None, rejection, now),
            None => self.report_error(context, rejection.code, rejection.text.clone(), None),
        }
    }

    /// The order after a change, prices on the grid (specification 4, P35), or the rejection.
    fn wanted(
        &self,
        order: &DeskOrder,
        change: OrderModify,
        now: Now,
    ) -> Result<(BrokerOrder, Option<TsNanos>), Rejection> {
        let mut wanted = order.order.clone();
        let mut expire_time = order.expire_time;
        let has_limit = matches!(wanted.order_type, OrderType::Limit | OrderType::StopLimit);
        let has_trigger = matches!(wanted.order_type, OrderType::StopMarket | OrderType::StopLimit);
        if change.price.is_some() && !has_limit {
            return Err(invalid("NEW_PRICE: the order has no limit price"));
        }
        if change.trigger_price.is_some() && !has_trigger {
            return Err(invalid("NEW_TRIGGER_PRICE: the order has no trigger price"));
        }
        let is_auction =
            matches!(wanted.time_in_force, TimeInForce::AtTheOpen | TimeInForce::AtTheClose);
        if change.expire_time.is_some() && is_auction {
            return Err(invalid(
                "NEW_EXPIRE_TIME_NS: the order is for an auction of today and takes no date",
            ));
        }
        let masters = self.session.masters();
        let issue = masters.map(|masters| issue_of(masters, &wanted.symbol)).transpose()?;
        if let Some(quantity) = change.quantity {
            if quantity.shares() <= order.cumulative {
                let filled = order.cumulative;
                return Err(invalid(format!("NEW_QUANTITY: {filled} shares are filled already")));
            }
            if let Some(issue) = issue {
                check_lot("NEW_QUANTITY", quantity, issue)?;
            }
            wanted.quantity = quantity;
        }
        let side = wanted.side;
        if let Some(price) = change.price {
            wanted.price = Some(match masters.zip(issue) {
                Some((masters, issue)) => limit_on_tick("NEW_PRICE", masters, issue, side, price)?,
                None => price,
            });
        }
        if let Some(price) = change.trigger_price {
            wanted.trigger_price = Some(match masters.zip(issue) {
                Some((masters, issue)) => {
                    trigger_on_tick("NEW_TRIGGER_PRICE", masters, issue, side, price)?
                }
                None => price,
            });
        }
        if let Some(expire) = change.expire_time {
            if let Some(masters) = masters {
                check_expiry("NEW_EXPIRE_TIME_NS", masters, expire, now.wall)?;
            }
            wanted.time_in_force = TimeInForce::Gtd;
            wanted.expire_date = Some(expire.jst_date());
            expire_time = Some(expire);
        }
        Ok((wanted, expire_time))
    }

    /// Checks a change of a strategy's order, whoever wants it: its fills are written (P128), and it sells for cash
    /// only what the strategy holds (P114).
    fn check_own_change(&self, key: OrderKey, wanted: &BrokerOrder) -> Result<(), Rejection> {
        let Some(order) = self.book.get(key) else { return Ok(()) };
        if order.strategy_id().is_none() {
            return Ok(());
        }
        self.check_written()?;
        if wanted.quantity <= order.order.quantity {
            return Ok(());
        }
        let shares = wanted.quantity.shares().saturating_sub(order.cumulative);
        self.check_position(Some(key), order, shares)
    }

    /// Begins a change or a cancel.
    pub(crate) fn begin_change(&mut self, job: Job, now: Now) {
        let JobKind::Change(change) = &job.kind else { return };
        let (key, password) = (change.key, change.password.clone());
        let made = self.may_use(&password, now).and_then(|()| self.change_request(change, now));
        let (request, wanted) = match made {
            Ok(made) => made,
            Err(rejection) => return self.refuse_job(job, &rejection, now),
        };
        let (trigger, kind) = match change.change {
            Change::Modify(change) => {
                (OrderTrigger::SendModify, OrderEventKind::PendingUpdate(change))
            }
            Change::Cancel => (OrderTrigger::SendCancel, OrderEventKind::PendingCancel),
        };
        if let Some(order) = self.book.get_mut(key) {
            // `change_request` has checked that the state takes it.
            let _ = order.take(trigger, now.mono, &mut self.illegal);
            let request_id = job.request_id();
            let asked = wanted.as_ref().map_or(0, |wanted| wanted.quantity.shares());
            order.most_asked = order.most_asked.max(asked);
            order.pending = Some(PendingOperation { request_id, wanted, sent: now, ended: None });
        }
        self.report_pending(key, kind, now);
        self.send(job, request, Some(password.value));
    }

    fn change_request(
        &mut self,
        job: &ChangeJob,
        now: Now,
    ) -> Result<(BrokerRequest, Option<BrokerOrder>), Rejection> {
        let gone = || status_unknown((None, None));
        let order = self.book.get(job.key).ok_or_else(gone)?;
        let number = order.venue_order_id.clone().ok_or_else(gone)?;
        let trigger = match job.change {
            Change::Modify(_) => OrderTrigger::SendModify,
            Change::Cancel => OrderTrigger::SendCancel,
        };
        if order.status.transition(trigger).is_err() {
            let text = format!(
                "ORDER_STATE: the order is {} and takes no change or cancel now",
                order.status
            );
            return Err(Rejection::new(ReasonCode::VenueRejected, text));
        }
        let business_day = order.business_day.clone();
        let day = business_day.clone();
        let (request, wanted) = match &job.change {
            Change::Cancel => {
                let made = self.mapping.cancel_order(&number, business_day.as_deref());
                (made.map_err(|fault| fault_of(&fault))??, None)
            }
            Change::Modify(change) => {
                let (wanted, _) = self.wanted(order, *change, now)?;
                self.check_own_change(job.key, &wanted)?;
                let change = BrokerChange {
                    venue_order_id: number.clone(),
                    business_day,
                    order_type: wanted.order_type,
                    quantity: change.quantity.map(|_| wanted.quantity),
                    price: change.price.and(wanted.price),
                    trigger_price: change.trigger_price.and(wanted.trigger_price),
                    expire_date: change.expire_time.and(wanted.expire_date),
                };
                let made = self.mapping.modify_order(&change);
                (made.map_err(|fault| fault_of(&fault))??, Some(wanted))
            }
        };
        self.check_names(&request, &number, day.as_deref(), Some(job.key))?;
        Ok((request, wanted))
    }

    /// Checks that the request identifies its order: numbers are unique on one day only, and a dialect may send
    /// them without the day.
    pub(super) fn check_names(
        &self,
        request: &BrokerRequest,
        number: &str,
        day: Option<&str>,
        key: Option<OrderKey>,
    ) -> Result<(), Rejection> {
        let has_day = request.fields.iter().any(|field| Some(field.value.as_str()) == day);
        if has_day || !self.book.is_number_of_another(number, key) {
            return Ok(());
        }
        let text = format!(
            "NUMBER_OF_TWO: an order of another day has number {number} too, and the request names \
             only the number; use the broker's own pages"
        );
        Err(Rejection::new(ReasonCode::OrderStatusUnknown, text))
    }

    pub(crate) fn change_answered(&mut self, job: Job, called: Called, now: Now) {
        let is_answered = called.result.is_ok();
        let ended = self.end_of(called);
        let JobKind::Change(change) = &job.kind else { return };
        let (key, is_update) = (change.key, matches!(change.change, Change::Modify(_)));
        match ended {
            Ended::Done(..) => {
                self.password.accept();
                if is_update {
                    self.updated(key, now);
                } else {
                    self.await_list(key, now);
                }
            }
            Ended::Nothing(_) => {
                self.await_list(key, now);
                self.report_unknown(&job, "the answer has no data");
            }
            Ended::Unknown(why) => {
                self.await_list(key, now);
                self.report_unknown(&job, &why);
            }
            Ended::Refused(rejection) => {
                self.change_refused(key, &job, &rejection, is_answered, now);
            }
            Ended::WrongPassword(counts, text) => {
                let used = change.password.clone();
                let rejection = self.wrong_password(&used, counts, &text, now);
                self.change_refused(key, &job, &rejection, true, now);
            }
            Ended::Expired => {
                // Before the freeze ends a cancel of many that this cancel may be a part of.
                self.change_refused(key, &job, &expired(), false, now);
                self.freeze(now);
            }
        }
        self.release_held(now);
    }

    /// A notice or a list of the broker will resolve the order.
    fn await_list(&mut self, key: OrderKey, now: Now) {
        let order = self.book.get_mut(key);
        if let Some(pending) = order.and_then(|order| order.pending.as_mut()) {
            pending.ended = Some(now.mono);
        }
        self.request_list_soon(now);
    }

    /// A change is done.
    pub(crate) fn updated(&mut self, key: OrderKey, now: Now) {
        let Some(order) = self.book.get_mut(key) else { return };
        let pending = order.pending.take();
        // An order that has ended in the meantime has no pending operation.
        let Some(PendingOperation { request_id, wanted: Some(wanted), .. }) = pending else {
            return;
        };
        let partly_filled = order.is_partly_filled();
        let done = OrderTrigger::ModifyDone { partly_filled };
        let is_taken = order.take(done, now.mono, &mut self.illegal);
        order.expire_time = match (wanted.expire_date == order.order.expire_date, order.expire_time)
        {
            (true, known) => known,
            (false, _) => wanted.expire_date.and_then(crate::book::last_moment),
        };
        order.note_past_limit();
        order.order = wanted;
        if is_taken {
            order.end_if_filled(now.mono, &mut self.illegal);
            self.report_updated(key, request_id, now);
        }
    }

    /// A change or a cancel is refused. `by_broker`: by the broker, which in some dialects sets the order to
    /// REJECTED until a list has it.
    pub(crate) fn change_refused(
        &mut self,
        key: OrderKey,
        job: &Job,
        rejection: &Rejection,
        by_broker: bool,
        now: Now,
    ) {
        self.work_on(key, job.request_id(), rejection, by_broker, now);
        if matches!(&job.kind, JobKind::Change(change) if change.sender == Sender::Desk) {
            self.own_cancel_refused(key, rejection);
        }
    }

    /// Ends the pending operation of an order, which works on, and reports the refusal.
    pub(crate) fn work_on(
        &mut self,
        key: OrderKey,
        request_id: Option<String>,
        rejection: &Rejection,
        by_broker: bool,
        now: Now,
    ) {
        let rejects = by_broker && self.mapping.description().refused_change_rejects;
        let Some(order) = self.book.get_mut(key) else { return };
        // A strategy would take it for ended, and sell its shares a second time.
        let rejects = rejects && order.strategy_id().is_none();
        let is_update = order.pending.take().is_some_and(|pending| pending.wanted.is_some());
        let partly_filled = order.is_partly_filled();
        let trigger = match (is_update, rejects) {
            (true, true) => OrderTrigger::Reject,
            (true, false) => OrderTrigger::ModifyRefused { partly_filled },
            (false, _) => OrderTrigger::CancelRefused { partly_filled },
        };
        // An order that has ended in the meantime stays ended; its request was refused all the same.
        let is_taken = !order.status.is_final() && order.take(trigger, now.mono, &mut self.illegal);
        if is_taken && trigger == OrderTrigger::Reject {
            order.awaits_list = true;
            self.request_list_soon(now);
        }
        self.report_rejected(key, request_id, rejection, now);
    }

    /// Refuses a change that was not sent.
    pub(crate) fn refuse_change(
        &mut self,
        context: Option<&RequestContext>,
        change: &ChangeJob,
        rejection: &Rejection,
        now: Now,
    ) {
        let context = context.filter(|_| change.sender == Sender::Person);
        let request_id = context.map(|context| context.request_id.clone());
        self.report_rejected(change.key, request_id, rejection, now);
        if change.sender == Sender::Desk {
            self.own_cancel_refused(change.key, rejection);
        }
    }
}

/// The rejection if no known order has the id or number.
fn no_order((client, venue): (Option<&str>, Option<&str>)) -> Rejection {
    let named = match (client, venue) {
        (None, Some(number)) => format!("VENUE_ORDER_ID: no order has the number `{number}`"),
        (client, _) => {
            format!("CLIENT_ORDER_ID: no order has the id `{}`", client.unwrap_or_default())
        }
    };
    let text = format!("{named}; `kumiki order list` shows the orders");
    Rejection::new(ReasonCode::OrderStatusUnknown, text)
}

fn status_unknown((client, venue): (Option<&str>, Option<&str>)) -> Rejection {
    let named: ShortText = match (client, venue) {
        (Some(id), _) => format!("CLIENT_ORDER_ID: `{id}`").into(),
        (None, Some(number)) => format!("VENUE_ORDER_ID: `{number}`").into(),
        (None, None) => "CLIENT_ORDER_ID: the order".into(),
    };
    let text = format!("{named} has no known number at the broker; read the order list");
    Rejection::new(ReasonCode::OrderStatusUnknown, text)
}
