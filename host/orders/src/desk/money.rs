//! Balances and positions of the account (specification 4, P57).
//!
//! Amounts are the broker's own, as decimal text, or null if it has none. Only the login says that there is no
//! margin account (`sSinyouKouzaKubun`); then margin is not requested. A failed request never counts as no
//! margin: half of an account is not reported as all of it. A row or an amount that cannot be read is left out.
//! After the rest it is reported as an error, once to each client.

use domain::{Money, ReasonCode};
use venues::web_broker::account::{Holding, MarginPosition};
use venues::web_broker::{Answered, Called, account};
use venues::{LeftOut, Listed};

use super::answers::{Ended, expired};
use super::{Desk, Job, JobKind, Now, RequestContext};
use crate::event::Reply;

/// A request for buying power: cash first, then margin.
#[derive(Debug, Default)]
pub(crate) struct BuyingPowerJob {
    /// The cash, or why it could not be read.
    cash: Option<Result<Money, String>>,
}

/// A request for positions: shares held first, then margin.
#[derive(Debug, Default)]
pub(crate) struct PositionsJob {
    held: Option<Listed<Holding>>,
}

impl Desk {
    /// Sends a client the buying power.
    pub fn buying_power(&mut self, context: RequestContext, now: Now) {
        self.request_money(context, JobKind::BuyingPower(BuyingPowerJob::default()), now);
    }

    /// Sends a client the positions.
    pub fn positions(&mut self, context: RequestContext, now: Now) {
        self.request_money(context, JobKind::Positions(PositionsJob::default()), now);
    }

    fn request_money(&mut self, context: RequestContext, kind: JobKind, now: Now) {
        match self.session.check_active().and_then(|()| self.has_room_for_read(context.client)) {
            Ok(()) => self.enqueue(Some(context), kind, now),
            Err(rejection) => {
                self.report_error(&context, rejection.code, rejection.text, None);
            }
        }
    }

    pub(crate) fn begin_buying_power(&mut self, job: Job) {
        let JobKind::BuyingPower(BuyingPowerJob { cash }) = &job.kind else { return };
        let request =
            if cash.is_none() { account::cash_request() } else { account::margin_request() };
        self.send(job, request, None);
    }

    pub(crate) fn buying_power_answered(&mut self, mut job: Job, called: Called, now: Now) {
        let got = self.money_of(called, now);
        if job.is_abandoned {
            return;
        }
        let JobKind::BuyingPower(BuyingPowerJob { cash }) = &mut job.kind else { return };
        let known = cash.take();
        let read = got.and_then(|answered| match known {
            None => Ok((account::read_cash(&answered)?, None)),
            Some(cash) => Ok((cash, Some(account::read_margin(&answered)?))),
        });
        match read {
            Ok((read, None)) if self.session.has_margin() => {
                *cash = Some(read);
                self.begin_buying_power(job);
            }
            Ok((cash, margin)) => self.report_buying_power(&job, cash, margin, now),
            Err(why) => self.no_money(&job, &why),
        }
    }

    fn report_buying_power(
        &mut self,
        job: &Job,
        cash: Result<Money, String>,
        margin: Option<Result<Money, String>>,
        now: Now,
    ) {
        let Some(context) = job.context.as_ref() else { return };
        let odd = [cash.as_ref().err(), margin.as_ref().and_then(|margin| margin.as_ref().err())];
        let odd = odd.into_iter().flatten().map(|why| LeftOut { id: None, why: why.clone() });
        let odd = self.money_left_out.news(context.client, "amounts", odd);
        let reply = Reply::BuyingPower {
            request_id: context.request_id.clone(),
            cash: cash.ok(),
            margin: margin.and_then(Result::ok),
            ts: now.wall,
        };
        self.reply(context.client, reply);
        venues::left_out_lines(&odd).for_each(|why| self.no_money(job, &why));
    }

    pub(crate) fn begin_positions(&mut self, job: Job) {
        let JobKind::Positions(PositionsJob { held }) = &job.kind else { return };
        let request = match held {
            None => account::holdings_request(),
            Some(_) => account::margin_positions_request(),
        };
        self.send(job, request, None);
    }

    pub(crate) fn positions_answered(&mut self, mut job: Job, called: Called, now: Now) {
        let got = self.money_of(called, now);
        if job.is_abandoned {
            return;
        }
        let JobKind::Positions(PositionsJob { held }) = &mut job.kind else { return };
        let known = held.take();
        let read = got.and_then(|answered| match known {
            None => Ok((account::read_holdings(&answered)?, None)),
            Some(known) => Ok((known, Some(account::read_margin_positions(&answered)?))),
        });
        match read {
            Ok((read, None)) if self.session.has_margin() => {
                *held = Some(read);
                self.begin_positions(job);
            }
            Ok((held, margin)) => {
                let none = || Listed { rows: Vec::new(), left_out: Vec::new() };
                self.report_positions(&job, held, margin.unwrap_or_else(none), now);
            }
            Err(why) => self.no_money(&job, &why),
        }
    }

    fn report_positions(
        &mut self,
        job: &Job,
        held: Listed<Holding>,
        margin: Listed<MarginPosition>,
        now: Now,
    ) {
        let Some(context) = job.context.as_ref() else { return };
        let reply = Reply::Positions {
            request_id: context.request_id.clone(),
            held: held.rows,
            margin: margin.rows,
            ts: now.wall,
        };
        self.reply(context.client, reply);
        let odd = held.left_out.into_iter().chain(margin.left_out);
        let odd = self.money_left_out.news(context.client, "positions", odd);
        venues::left_out_lines(&odd).for_each(|why| self.no_money(job, &why));
    }

    /// The answer, or why there is none.
    pub(super) fn money_of(&mut self, called: Called, now: Now) -> Result<Box<Answered>, String> {
        match self.end_of(called) {
            Ended::Done(_, answered) | Ended::Nothing(answered) => Ok(answered),
            Ended::Refused(rejection) => Err(rejection.text),
            Ended::WrongPassword(_, why) | Ended::Unknown(why) => Err(why),
            Ended::Expired => {
                self.freeze(now);
                Err(expired().text)
            }
        }
    }

    fn no_money(&mut self, job: &Job, why: &str) {
        if let Some(context) = job.context.as_ref() {
            let text = format!("BALANCES: {why}");
            self.report_error(context, ReasonCode::InternalError, text, None);
        }
    }
}
