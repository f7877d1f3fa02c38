//! What an answer means for the order that was sent (specification 2, "Submit flow", 4 to 6).
//!
//! Specification 4, P18.
//!
//! | the call ended with | the order | its log line | its sender gets |
//! |---|---|---|---|
//! | a number | ACCEPTED | accepted | OrderAccepted, SubmitOrderResult |
//! | a clear refusal | REJECTED, id free | rejected | OrderRejected |
//! | a wrong second password | REJECTED, id free | rejected | OrderRejected SECOND_PASSWORD_INVALID |
//! | an ended session | REJECTED, id free | session_expired, rejected | OrderRejected SESSION_EXPIRED |
//! | nothing left this machine | REJECTED, id free | rejected | OrderRejected |
//! | anything else | SUBMITTED, unknown | none | Error INTERNAL_ERROR |

use domain::order::OrderTrigger;
use domain::order_mapping::{BrokerAccepted, BrokerOutcome, Verdict};
use domain::{ReasonCode, Rejection};
use venues::web_broker::{Answered, CallFailure, Called};

use super::guards::guard_failed;
use super::submit::{SubmitJob, fault_of};
use super::{Desk, Job, JobKind, Now, RequestContext, VENUE};
use crate::audit::{self, plain};
use crate::book::{OrderKey, Seen};
use crate::event::{Reply, StrategyEvent, SubmitReply};
use crate::limits::NUMBER_CHARS_MAX;
use crate::password::HeldPassword;

/// The result of a call.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The broker did it.
    Done(BrokerAccepted, Box<Answered>),
    /// The broker did it, and its answer has no number.
    Nothing(Box<Answered>),
    /// It was certainly not done.
    Refused(Rejection),
    /// The second password is wrong.
    WrongPassword(bool, String),
    /// The session is gone.
    Expired,
    /// The outcome is unknown.
    Unknown(String),
}

impl Desk {
    /// The result of a call, for any request.
    pub(crate) fn end_of(&mut self, called: Called) -> Ended {
        let answered = match called.result {
            Ok(answered) => answered,
            Err(CallFailure::NotSent(why)) => {
                let text = format!("NOT_SENT: {why}");
                return Ended::Refused(Rejection::new(ReasonCode::InternalError, text));
            }
            Err(CallFailure::Refused(_)) => {
                // The addresses of a login are secret, so the text names the venue only.
                let text = format!(
                    "CONNECTION_REFUSED: the server of {VENUE} refuses the connection, nothing was \
                     sent; see whether it runs, then send again"
                );
                return Ended::Refused(Rejection::new(ReasonCode::ConnectionError, text));
            }
            Err(CallFailure::NotLoggedIn) => {
                let text = "NOT_LOGGED_IN: log in at web_broker first";
                return Ended::Refused(Rejection::new(ReasonCode::SessionExpired, text));
            }
            Err(CallFailure::Unknown(why)) => return Ended::Unknown(why),
        };
        let BrokerOutcome { verdict, venue_closed } = match self.mapping.judge(&answered.answer) {
            Ok(outcome) => outcome,
            // The request left, and its answer cannot be read.
            Err(fault) => return Ended::Unknown(fault_of(&fault).text),
        };
        if venue_closed {
            self.session.set_closed_by_answer(true);
        } else if matches!(verdict, Verdict::Accepted(_) | Verdict::NoData) {
            self.session.set_closed_by_answer(false);
        }
        match verdict {
            Verdict::Accepted(accepted) => Ended::Done(accepted, Box::new(answered)),
            Verdict::NoData => Ended::Nothing(Box::new(answered)),
            Verdict::Refused(rejection) => Ended::Refused(rejection),
            Verdict::WrongPassword { counts, text } => Ended::WrongPassword(counts, text),
            Verdict::SessionExpired => Ended::Expired,
            Verdict::Unknown(why) => Ended::Unknown(why),
        }
    }

    pub(crate) fn submit_answered(&mut self, mut job: Job, called: Called, now: Now) {
        let p_no = called.p_no;
        let ended = self.end_of(called);
        let JobKind::Submit(submit) = &mut job.kind else { return };
        if !submit.is_sent {
            crate::kill::here("guard_answered");
            return self.guard_answered(job, ended, now);
        }
        crate::kill::here("answer_received");
        let key = submit.key;
        if let Some(order) = self.book.get_mut(key) {
            order.p_no = p_no;
        }
        match ended {
            Ended::Done(accepted, _) if accepted.venue_order_id.is_some() => {
                if let Err(why) = self.check_number(&accepted, key, now) {
                    return self.unknown(&job, key, why, now);
                }
                self.password.accept();
                self.accepted(key, &accepted, p_no.unwrap_or(0), now);
                self.report_created(&job, key, &accepted);
                self.release_held(now);
            }
            Ended::Done(..) => self.unknown(&job, key, "the answer has no order number", now),
            Ended::Nothing(_) => self.unknown(&job, key, "the answer has no data", now),
            Ended::Unknown(why) => self.unknown(&job, key, &why, now),
            Ended::Refused(rejection) => {
                self.reject(key, job.context.as_ref(), &rejection, now);
            }
            Ended::WrongPassword(counts, text) => {
                let used = submit.password.clone();
                let rejection = self.wrong_password(&used, counts, &text, now);
                self.reject(key, job.context.as_ref(), &rejection, now);
            }
            Ended::Expired => {
                self.freeze(now);
                let rejection = expired();
                self.reject(key, job.context.as_ref(), &rejection, now);
            }
        }
    }

    /// Whether a number can be that of a new order: a plain word that no other order of the day has.
    fn check_number(
        &self,
        accepted: &BrokerAccepted,
        key: OrderKey,
        now: Now,
    ) -> Result<(), &'static str> {
        let number = accepted.venue_order_id.as_deref().unwrap_or_default();
        if !is_word(number) {
            return Err("the answer has no order number");
        }
        let order = self.book.get(key);
        let seen = Seen {
            day: accepted.business_day.as_deref(),
            placed: Some(now.wall.jst_date()),
            today: now.wall.jst_date(),
            is_new: true,
            symbol: order.map_or("", |order| &order.order.symbol),
            side: None,
        };
        match self.book.by_number(number, seen) {
            Some(other) if other != key => Err(
                "the answer has the number of another order: the broker gave it twice (a simulator \
                  that was restarted needs an engine with a new config folder)",
            ),
            _ => Ok(()),
        }
    }

    /// Takes a guard's answer: sends the next guard's request or the order, or ends the order.
    fn guard_answered(&mut self, mut job: Job, ended: Ended, now: Now) {
        let JobKind::Submit(submit) = &mut job.kind else { return };
        let judged = match ended {
            Ended::Done(_, answered) | Ended::Nothing(answered) => {
                match submit.guards.pop_front() {
                    Some(guard) => self.judge_guard(submit, guard, &answered),
                    None => Ok(()),
                }
            }
            Ended::Expired => {
                self.freeze(now);
                Err(expired())
            }
            Ended::Refused(rejection) if rejection.code == ReasonCode::MarketClosed => {
                Err(rejection)
            }
            Ended::Refused(rejection) if rejection.code == ReasonCode::ConnectionError => {
                Err(rejection)
            }
            Ended::Refused(rejection) => Err(guard_failed(&rejection.text)),
            Ended::WrongPassword(_, why) | Ended::Unknown(why) => Err(guard_failed(&why)),
        };
        if job.is_abandoned {
            // The order was refused when its time was over.
            return;
        }
        let is_late = job.is_late(now);
        match judged {
            Ok(()) if is_late => self.withdraw(job, now),
            // What reduces a strategy's risk goes first; this order goes on after it.
            Ok(()) if self.queue.has_before(&job) => self.queue.put_first(job),
            Ok(()) => self.continue_submit(job, now),
            Err(rejection) => self.refuse_job(job, &rejection, now),
        }
    }

    /// The broker has given an order its number.
    pub(crate) fn accepted(
        &mut self,
        key: OrderKey,
        accepted: &BrokerAccepted,
        p_no: u64,
        now: Now,
    ) {
        let Some(number) = &accepted.venue_order_id else { return };
        self.book.set_number(key, number, accepted.business_day.as_ref());
        let Some(order) = self.book.get_mut(key) else { return };
        let is_taken = order.take(OrderTrigger::VenueAccepts, now.mono, &mut self.illegal);
        self.take_earlier_fills(key);
        crate::kill::here("before_accepted_line");
        if let Some(order) = self.book.get(key) {
            let day = accepted.business_day.as_deref();
            let warning = warning_of(accepted);
            audit::accepted(&mut *self.log, order, day, p_no, warning, now.wall);
        }
        crate::kill::here("accepted_line_written");
        if is_taken {
            self.report_accepted(key, now);
        }
    }

    /// Answers the sender of an order that was accepted.
    fn report_created(&mut self, job: &Job, key: OrderKey, accepted: &BrokerAccepted) {
        let (Some(context), Some(order)) = (&job.context, self.book.get(key)) else { return };
        if job.is_abandoned || order.strategy_id().is_some() {
            return;
        }
        let JobKind::Submit(SubmitJob { warning, .. }) = &job.kind else { return };
        let reply = SubmitReply {
            request_id: context.request_id.clone(),
            client_order_id: order.client_order_id.clone().unwrap_or_default(),
            is_new: true,
            status: order.status,
            venue_order_id: order.venue_order_id.clone(),
            warning: both(warning_of(accepted), warning.clone()),
        };
        self.reply(context.client, Reply::Submitted(reply));
    }

    /// The request has left and its outcome is unknown. The order stays as it is, and lists are requested until
    /// they resolve it.
    fn unknown(&mut self, job: &Job, key: OrderKey, why: &str, now: Now) {
        if let Some(order) = self.book.get_mut(key) {
            order.unknown_since = Some(now.mono);
        }
        self.report_unknown(job, why);
        self.request_list_soon(now);
    }

    /// Reports to the sender that the outcome of a request is unknown.
    pub(crate) fn report_unknown(&mut self, job: &Job, why: &str) {
        if job.is_abandoned {
            return;
        }
        let why = plain(why);
        let why = format!(
            "OUTCOME_UNKNOWN: {why}; the engine does not send it again; read the order list"
        );
        if let Some((strategy_id, client_order_id)) = self.strategy_of(job) {
            let unknown = StrategyEvent::OutcomeUnknown { strategy_id, client_order_id, why };
            return self.report_strategy(unknown);
        }
        if let Some(context) = &job.context {
            self.report_error(context, ReasonCode::InternalError, why, None);
        }
    }

    /// Ends an order that was sent: writes its line, reports the rejection and frees its id.
    pub(crate) fn reject(
        &mut self,
        key: OrderKey,
        context: Option<&RequestContext>,
        rejection: &Rejection,
        now: Now,
    ) {
        let Some(order) = self.book.get_mut(key) else { return };
        // A notice may report it twice, or after another end.
        if order.status.is_final() || !order.take(OrderTrigger::Reject, now.mono, &mut self.illegal)
        {
            return;
        }
        let request_id = context.map(|context| context.request_id.clone());
        let request_id = request_id.or_else(|| order.request_id.clone());
        let request_id = request_id.filter(|_| order.strategy_id().is_none());
        order.unknown_since = None;
        order.pending = None;
        audit::rejected(&mut *self.log, order, rejection, now.wall);
        self.report_rejected(key, request_id, rejection, now);
        self.book.free_id(key);
    }

    /// The broker refuses the second password.
    pub(crate) fn wrong_password(
        &mut self,
        used: &HeldPassword,
        counts: bool,
        text: &str,
        now: Now,
    ) -> Rejection {
        self.password.refuse(used, counts, now.mono);
        Rejection::new(ReasonCode::SecondPasswordInvalid, text)
    }
}

/// The rejection of everything that an expired session ends.
pub(crate) fn expired() -> Rejection {
    let text = "SESSION_EXPIRED: the broker has ended the session; log in again";
    Rejection::new(ReasonCode::SessionExpired, text)
}

/// Whether a broker's text can be a number or a code; other texts are not passed on as one.
fn is_word(text: &str) -> bool {
    let is_short = (1..=NUMBER_CHARS_MAX).contains(&text.len());
    is_short && text.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'-')
}

/// Joins the broker's warning and the desk's: the broker's code, and both texts.
fn both(
    broker: Option<(String, String)>,
    own: Option<(String, String)>,
) -> Option<(String, String)> {
    match (broker, own) {
        (Some((code, text)), Some((own, words))) => {
            let text = if text.is_empty() { code.clone() } else { text };
            Some((code, format!("{text}; {own}: {words}")))
        }
        (broker, own) => broker.or(own),
    }
}

/// The broker's warning. A code that is not a plain word is not passed on.
fn warning_of(accepted: &BrokerAccepted) -> Option<(String, String)> {
    let code = accepted.warning_code.as_deref()?;
    let code = if is_word(code) { code } else { "broker_warning" };
    Some((code.to_owned(), plain(accepted.warning_text.as_deref().unwrap_or_default())))
}
