//! New orders: checked, put into the map, guarded, written down, sent (specification 2, "Submit flow";
//! specification 4, P10, P11, P24, P41).

use std::collections::VecDeque;

use domain::order::OrderTrigger;
use domain::order_mapping::{Allocation, OrderPlan};
use domain::{OrderStatus, ReasonCode, Rejection, ShortText};
use ipc::{AuditLine, AuditSubmit, Event, SubmitOrderRequest, SubmitOrderResult, SubmitOutcome};

use super::guards::Guard;
use super::{Asked, Desk, Job, JobKind, Now, Out, Recipient};
use crate::book::{DeskOrder, OrderKey};
use crate::check::check_order;
use crate::password::HeldPassword;

/// A new order on its way to the broker.
#[derive(Debug)]
pub(crate) struct SubmitJob {
    pub(crate) key: OrderKey,
    pub(crate) plan: OrderPlan,
    /// What has to be asked for before it is sent.
    pub(crate) guards: VecDeque<Guard>,
    pub(crate) allocations: Vec<Allocation>,
    pub(crate) password: HeldPassword,
    /// Its request has left.
    pub(crate) is_sent: bool,
    /// A warning for its sender, beside the broker's.
    pub(crate) warning: Option<(String, String)>,
}

impl Desk {
    /// A new order. The steps are those of P24, in that order.
    pub fn submit(&mut self, asked: Asked, order: &SubmitOrderRequest, now: Now) {
        crate::kill::here("command_taken");
        let id = order.client_order_id.as_str();
        let checked = check_order(order, self.rules.phase, self.masters.as_deref(), now.wall);
        let checked = checked.and_then(|checked| {
            let plan = self.mapping.plan(&checked.order).map_err(|fault| fault_of(&fault))??;
            Ok((checked, plan))
        });
        let (checked, plan) = match checked {
            Ok(checked) => checked,
            Err(rejection) => return self.tell_order_refused(&asked, id, &rejection, now),
        };
        let request_key = order.request_key();
        if let Some(key) = self.book.by_id(id) {
            return self.known_id(&asked, key, request_key);
        }
        let may_go = self
            .check_session()
            .and_then(|()| self.check_masters())
            .and_then(|()| self.check_open())
            .and_then(|()| self.password.check_lock(now.mono))
            .and_then(|()| self.has_room(asked.client));
        if let Err(rejection) = may_go {
            return self.tell_order_refused(&asked, id, &rejection, now);
        }
        let Some(password) = self.password.use_it(now.mono) else {
            return self.ask_password(asked, Some(id.into()));
        };
        let mut made = DeskOrder::new(
            id.into(),
            request_key,
            checked.instrument_id,
            checked.order,
            now.wall.millis(),
        );
        made.expire_time = checked.expire_time;
        made.request_id = Some(asked.request_id.clone());
        let Some(key) = self.book.add(made) else {
            let text = "TOO_MANY_ORDERS: the order desk is full and takes no more orders today";
            let rejection = Rejection::new(ReasonCode::InternalError, text);
            return self.tell_order_refused(&asked, id, &rejection, now);
        };
        crate::kill::here("id_in_map");
        let guards = self.guards_of(key, &plan);
        let warning = unknown_tags(&plan);
        let submit = SubmitJob {
            key,
            plan,
            guards,
            allocations: Vec::new(),
            password,
            is_sent: false,
            warning,
        };
        self.enqueue(Some(asked), JobKind::Submit(submit), now);
    }

    /// An id that an order has already: the same again is answered from the book, another one refused.
    fn known_id(&mut self, asked: &Asked, key: OrderKey, request_key: u64) {
        let Some(order) = self.book.get(key) else { return };
        let venue_order_id = order.venue_order_id.as_deref().map(|id| id.to_owned().into());
        let id = order.client_order_id.as_deref().unwrap_or_default().to_owned();
        if order.request_key != request_key {
            let text = format!(
                "CLIENT_ORDER_ID: another order has `{id}` already; give a new order a new id, or send \
                 the first order again as it was to see what became of it"
            );
            let number = venue_order_id.map(std::borrow::Cow::into_owned);
            return self.tell_error(asked, ipc::error_code::CONFLICT, text, number);
        }
        let is_unknown = order.venue_order_id.is_none();
        let status = match order.status {
            OrderStatus::Initialized => OrderStatus::Submitted,
            status => status,
        };
        let text = match order.is_ambiguous {
            true => {
                "the order was sent before, and orders of the broker's list may be this one; look \
                 at the broker's own pages, and give a new order a new id"
            }
            false => {
                "the order was sent before, and the broker's answer is unknown; read the order list"
            }
        };
        let result = SubmitOrderResult {
            request_id: asked.request_id.clone().into(),
            client_order_id: id.into(),
            outcome: SubmitOutcome::IdempotentReplay,
            status,
            venue_order_id,
            warning_code: is_unknown.then(|| "order_status_unknown".into()),
            warning_text: is_unknown.then(|| text.into()),
        };
        self.tell(Recipient::Client(asked.client), Event::SubmitOrderResult(result));
    }

    /// Goes on with a new order: the next guard, or the order itself.
    pub(crate) fn continue_submit(&mut self, mut job: Job, now: Now) {
        let JobKind::Submit(submit) = &mut job.kind else { return };
        if let Some(guard) = submit.guards.front() {
            crate::kill::here("guard_asked");
            let request = self.guard_request(submit.key, guard);
            return self.send(job, request, None);
        }
        let password = submit.password.clone();
        let key = submit.key;
        let may_go = self.check_open().and_then(|()| self.may_use(&password, now));
        if let Err(rejection) = may_go {
            return self.refuse_job(job, &rejection, now);
        }
        let Some(order) = self.book.get(key) else { return };
        if submit.allocations.is_empty() {
            submit.allocations = super::guards::whole(&submit.plan, order.order.quantity);
        }
        let made = self.mapping.new_order(&order.order, &self.account, &submit.allocations);
        let request = match made.map_err(|fault| fault_of(&fault)).and_then(|made| made) {
            Ok(request) => request,
            Err(rejection) => return self.refuse_job(job, &rejection, now),
        };
        crate::kill::here("before_submit_line");
        if let Err(error) = self.log_submit(key, now) {
            let text = format!(
                "AUDIT_LOG: the engine cannot write the order to the audit log ({}) and does not \
                 send it; check the disk",
                error.kind()
            );
            let rejection = Rejection::new(ReasonCode::InternalError, text);
            return self.refuse_job(job, &rejection, now);
        }
        crate::kill::here("submit_line_synced");
        submit.is_sent = true;
        if let Some(order) = self.book.get_mut(key) {
            order.ts_ms = now.wall.millis();
            // The book holds it as INITIALIZED until here.
            let _ = order.take(OrderTrigger::Send, now.mono, &mut self.illegal);
        }
        self.tell_submitted(key, now);
        self.send(job, request, Some(password.value));
    }

    /// Whether a password that a command has taken may still be sent.
    pub(crate) fn may_use(&mut self, password: &HeldPassword, now: Now) -> Result<(), Rejection> {
        self.password.check_lock(now.mono)?;
        if self.password.is_refused(password) {
            let text = "REFUSED_BEFORE: the broker has refused this second password; set it again";
            return Err(Rejection::new(ReasonCode::SecondPasswordInvalid, text));
        }
        Ok(())
    }

    fn log_submit(&mut self, key: OrderKey, now: Now) -> std::io::Result<()> {
        let Some(order) = self.book.get(key) else { return Ok(()) };
        let made = &order.order;
        let line = AuditLine::Submit(AuditSubmit {
            ts: now.wall.millis(),
            client_order_id: order.client_order_id.as_deref().unwrap_or_default().into(),
            request_key: order.request_key,
            instrument_id: (&*order.instrument_id).into(),
            order_side: made.side,
            order_type: made.order_type,
            quantity: made.quantity.into(),
            price: made.price.map(Into::into),
            trigger_price: made.trigger_price.map(Into::into),
            time_in_force: Some(made.time_in_force),
            expire_time_ns: order.expire_time.map(domain::TsNanos::nanos),
            request_key_version: Some(crate::restore::REQUEST_KEY_VERSION),
            context: ipc::AuditContext::default(),
        });
        self.log.append(&[line], true)
    }

    /// An order of which nothing was sent: its id is free, as if it had never come.
    pub(crate) fn refuse_submit(
        &mut self,
        asked: Option<&Asked>,
        key: OrderKey,
        rejection: &Rejection,
        now: Now,
    ) {
        let id: Option<ShortText> =
            self.book.get(key).and_then(|order| order.client_order_id.clone());
        if let (Some(asked), Some(id)) = (asked, id) {
            self.tell_order_refused(asked, &id, rejection, now);
        }
        self.book.remove(key);
    }

    /// Asks for the second password: nothing else is said, and the command is sent again by its sender.
    pub(crate) fn ask_password(&mut self, asked: Asked, id: Option<ShortText>) {
        let request_id = asked.request_id.clone().into();
        let to = Recipient::Client(asked.client);
        self.tell(to, Event::SecondPasswordRequired(ipc::SecondPasswordRequired { request_id }));
        let is_same = |(other, _): &(Asked, Option<ShortText>)| *other == asked;
        if !self.at_modal.iter().any(is_same) {
            if self.at_modal.len() >= crate::limits::JOBS_WAITING_MAX {
                self.at_modal.remove(0);
            }
            self.at_modal.push((asked, id));
        }
    }

    pub(crate) fn tell(&mut self, to: Recipient, event: Event<'static>) {
        self.out.push(Out::Tell(to, Box::new(event)));
    }
}

/// What a dialect that failed means for a command.
pub(crate) fn fault_of(fault: &domain::order_mapping::MappingFault) -> Rejection {
    tracing::error!(%fault, "the dialect failed");
    let text = format!("DIALECT_FAILED: the dialect `{}` failed; see the log", fault.component);
    Rejection::new(ReasonCode::InternalError, text)
}

fn unknown_tags(plan: &OrderPlan) -> Option<(String, String)> {
    let first: String = plan.unknown_tags.first()?.chars().take(32).collect();
    let others = match plan.unknown_tags.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some((
        "unknown_tag".to_owned(),
        format!("tag `{first}`{others} is not in the registry: ignored"),
    ))
}
