//! New orders: checked, added to the map, guarded, logged and sent (specification 2, "Submit flow").
//!
//! Specification 4, P10, P11, P24, P41.

use std::collections::VecDeque;

use domain::order::OrderTrigger;
use domain::order_mapping::{Allocation, Funding, OrderPlan};
use domain::{OrderSide, OrderStatus, Origin, ReasonCode, Rejection, ShortText};

use super::guards::{Guard, login_account};
use super::{Desk, Job, JobKind, Now, RequestContext};
use crate::audit;
use crate::book::{DeskOrder, OrderKey, close_action};
use crate::check::check_order;
use crate::command::NewOrder;
use crate::event::{FailureCode, Reply, SubmitReply};
use crate::password::HeldPassword;

/// A new order on its way to the broker.
#[derive(Debug)]
pub(crate) struct SubmitJob {
    pub(crate) key: OrderKey,
    pub(crate) plan: OrderPlan,
    /// The guards that are left before it is sent.
    pub(crate) guards: VecDeque<Guard>,
    pub(crate) allocations: Vec<Allocation>,
    pub(crate) password: HeldPassword,
    /// Its request has left.
    pub(crate) is_sent: bool,
    /// It sells what its strategy holds, and goes before other orders.
    pub(crate) sells_own_shares: bool,
    /// A warning for its sender, beside the broker's.
    pub(crate) warning: Option<(String, String)>,
}

impl Desk {
    /// A new order. The steps are those of P24, in that order.
    pub fn submit(&mut self, context: RequestContext, order: NewOrder, now: Now) {
        crate::kill::here("command_taken");
        let NewOrder { origin, client_order_id, request_key, request } = order;
        let id = (origin.kind(), client_order_id.as_str());
        let looks = request.as_ref().ok().map(|request| (request.instrument, request.side));
        let own = (&origin, &client_order_id);
        let checked = request.and_then(|request| {
            let place = request.instrument;
            let name = self.book.instruments().name(place).unwrap_or_default();
            let (phase, masters) = (self.rules.phase, self.session.masters());
            let checked = check_order(request, &name, phase, masters, now.wall)?;
            let plan = self.mapping.plan(&checked.order).map_err(|fault| fault_of(&fault))??;
            Ok((checked, plan, (place, name)))
        });
        let (checked, plan, instrument) = match checked {
            Ok(checked) => checked,
            Err(rejection) => {
                return self.report_new_refused(&context, own, looks, &rejection, now);
            }
        };
        if let Some(key) = self.book.by_id(id.0, id.1) {
            let order = self.book.get(key);
            // A strategy never sends an order again: its ids are new ones (P92).
            let is_same = order.is_some_and(|order| {
                order.request_key == request_key && order.strategy_id().is_none()
            });
            return self.known_id(&context, key, is_same);
        }
        let may_go = self
            .session
            .check_active()
            .and_then(|()| self.session.check_masters())
            .and_then(|()| self.session.check_open())
            .and_then(|()| self.password.check_lock(now.mono))
            .and_then(|()| match origin.strategy_id() {
                // What it holds limits its sells, so that none waits for the room of others.
                Some(_) if looks.is_some_and(|(_, side)| side == OrderSide::Sell) => Ok(()),
                _ => self.has_room(context.client),
            });
        if let Err(rejection) = may_go {
            return self.report_new_refused(&context, own, looks, &rejection, now);
        }
        let password = match (self.password.use_it(now.mono), origin.strategy_id()) {
            (Some(password), _) => password,
            (None, None) => {
                return self.request_password(context, Some((origin.kind(), client_order_id)));
            }
            (None, Some(_)) => {
                let rejection = self.without_password(&client_order_id);
                return self.report_new_refused(&context, own, looks, &rejection, now);
            }
        };
        let mut made = DeskOrder::new(
            client_order_id.clone(),
            request_key,
            instrument,
            checked.order,
            now.wall.millis(),
        );
        made.origin = Some(origin.clone());
        made.is_margin = origin.strategy_id().is_some() && plan.funding != Funding::Cash;
        let sells_own_shares = made.sells_own_shares();
        if let Err(rejection) = self.check_own_order(&made, &plan) {
            return self.report_new_refused(&context, own, looks, &rejection, now);
        }
        made.expire_time = checked.expire_time;
        made.request_id = Some(context.request_id.clone());
        let Some(key) = self.book.add(made) else {
            let text = "TOO_MANY_ORDERS: the order desk is full and takes no more orders today";
            let rejection = Rejection::new(ReasonCode::InternalError, text);
            return self.report_new_refused(&context, own, looks, &rejection, now);
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
            sells_own_shares,
            warning,
        };
        self.enqueue(Some(context), JobKind::Submit(submit), now);
    }

    /// Checks a new order of a strategy: its fills are written (P128), it sells for cash only what the strategy holds
    /// (P114), and it is of the login's tax account: what a strategy holds is not counted by accounts.
    fn check_own_order(&self, made: &DeskOrder, plan: &OrderPlan) -> Result<(), Rejection> {
        if made.strategy_id().is_none() {
            return Ok(());
        }
        self.check_written()?;
        let unsupported = |text: &str| Err(Rejection::new(ReasonCode::VenueUnsupported, text));
        let account = login_account(self.session.account());
        if plan.account.is_some_and(|asked| Some(asked) != account) {
            let text = "ACCOUNT_TYPE: a strategy trades in the tax account of the login; leave the tag out";
            return unsupported(text);
        }
        if close_action(&made.order.tags).is_some() {
            let text =
                "CLOSE_ACTION: a strategy does not take or hand over shares of a margin position";
            return unsupported(text);
        }
        self.check_position(None, made, made.order.quantity.shares())
    }

    /// An id that an order has already: the same again is answered from the book, another one refused.
    fn known_id(&mut self, context: &RequestContext, key: OrderKey, is_same: bool) {
        let Some(order) = self.book.get(key) else { return };
        let venue_order_id = order.venue_order_id.clone();
        let client_order_id = order.client_order_id.clone().unwrap_or_default();
        if !is_same {
            let text = format!(
                "CLIENT_ORDER_ID: another order has `{client_order_id}` already; give a new order a new \
                 id, or send the first order again as it was to see what became of it"
            );
            return self.report_error(context, FailureCode::Conflict, text, venue_order_id);
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
        let reply = SubmitReply {
            request_id: context.request_id.clone(),
            client_order_id,
            is_new: false,
            status,
            venue_order_id,
            warning: is_unknown.then(|| ("order_status_unknown".to_owned(), text.to_owned())),
        };
        self.reply(context.client, Reply::Submitted(reply));
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
        let is_of_strategy = self.book.get(key).is_some_and(|order| order.strategy_id().is_some());
        let written = if is_of_strategy { self.check_written() } else { Ok(()) };
        let may_go = written
            .and_then(|()| self.session.check_open())
            .and_then(|()| self.may_use(&password, now));
        if let Err(rejection) = may_go {
            return self.refuse_job(job, &rejection, now);
        }
        let Some(order) = self.book.get(key) else { return };
        if submit.allocations.is_empty() {
            submit.allocations = super::guards::whole(&submit.plan, order.order.quantity);
        }
        let made =
            self.mapping.new_order(&order.order, self.session.account(), &submit.allocations);
        let request = match made.map_err(|fault| fault_of(&fault)).and_then(|made| made) {
            Ok(request) => request,
            Err(rejection) => return self.refuse_job(job, &rejection, now),
        };
        crate::kill::here("before_submit_line");
        if let Err(error) = audit::submit(&mut *self.log, order, now.wall) {
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
        if let Some(strategy_id) = self.book.get(key).and_then(DeskOrder::strategy_id) {
            self.strategies.holdings.submitted(strategy_id);
        }
        self.report_submitted(key, now);
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

    /// An order of which nothing was sent: its id is free, as if it had never come.
    pub(crate) fn refuse_submit(
        &mut self,
        context: Option<&RequestContext>,
        key: OrderKey,
        rejection: &Rejection,
        now: Now,
    ) {
        let order = self.book.get(key).map(|order| {
            let looks = (order.instrument, order.order.side);
            (order.origin.clone().unwrap_or_default(), order.client_order_id.clone(), looks)
        });
        if let (Some(context), Some((origin, Some(id), looks))) = (context, order) {
            self.report_new_refused(context, (&origin, &id), Some(looks), rejection, now);
        }
        self.book.remove(key);
    }

    /// Asks for the second password: nothing else is said, and the command is sent again by its sender.
    pub(crate) fn request_password(
        &mut self,
        context: RequestContext,
        order: Option<(Origin, ShortText)>,
    ) {
        let request_id = context.request_id.clone();
        self.reply(context.client, Reply::SecondPasswordRequired { request_id });
        self.password.wait(context, order);
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
