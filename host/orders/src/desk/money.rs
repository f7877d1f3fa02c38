//! Balances and positions of the account (specification 4, P57; the broker's own amounts as decimal text,
//! null where it has none).
//!
//! That there is no margin is the login's own word (`sSinyouKouzaKubun`), and nothing is asked then. An
//! answer that is none never means it: half of what an account has is not told as all of it. A row or an amount
//! that cannot be read is left out, and told as an error after the rest: to each client once.

use domain::{Money, OrderSide};
use ipc::{BuyingPowerUpdated, Event, PositionRow, PositionsUpdated, Text};
use venues::web_broker::account::{Holding, MarginPosition};
use venues::web_broker::{Answered, Called, account};
use venues::{LeftOut, Listed};

use super::answers::{Ended, expired};
use super::{Asked, Desk, Job, JobKind, Now, Recipient, VENUE};

/// Buying power that is being asked for: cash first, then margin.
#[derive(Debug, Default)]
pub(crate) struct BuyingPowerJob {
    /// The cash, or why it is no amount.
    cash: Option<Result<Money, String>>,
}

/// Positions that are being asked for: shares held first, then margin.
#[derive(Debug, Default)]
pub(crate) struct PositionsJob {
    held: Option<Listed<Holding>>,
}

impl Desk {
    /// Tells the buying power.
    pub fn buying_power(&mut self, asked: Asked, now: Now) {
        self.ask_money(asked, JobKind::BuyingPower(BuyingPowerJob::default()), now);
    }

    /// Tells the positions.
    pub fn positions(&mut self, asked: Asked, now: Now) {
        self.ask_money(asked, JobKind::Positions(PositionsJob::default()), now);
    }

    fn ask_money(&mut self, asked: Asked, kind: JobKind, now: Now) {
        match self.check_session().and_then(|()| self.has_room_to_ask(asked.client)) {
            Ok(()) => self.enqueue(Some(asked), kind, now),
            Err(rejection) => {
                self.tell_error(&asked, rejection.code.as_str(), rejection.text, None);
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
        if job.is_given_up {
            return;
        }
        let JobKind::BuyingPower(BuyingPowerJob { cash }) = &mut job.kind else { return };
        let known = cash.take();
        let read = got.and_then(|answered| match known {
            None => Ok((account::read_cash(&answered)?, None)),
            Some(cash) => Ok((cash, Some(account::read_margin(&answered)?))),
        });
        match read {
            Ok((read, None)) if self.has_margin => {
                *cash = Some(read);
                self.begin_buying_power(job);
            }
            Ok((cash, margin)) => self.tell_buying_power(&job, cash, margin, now),
            Err(why) => self.no_money(&job, &why),
        }
    }

    fn tell_buying_power(
        &mut self,
        job: &Job,
        cash: Result<Money, String>,
        margin: Option<Result<Money, String>>,
        now: Now,
    ) {
        let Some(asked) = job.asked.as_ref() else { return };
        let odd = [cash.as_ref().err(), margin.as_ref().and_then(|margin| margin.as_ref().err())];
        let odd = odd.into_iter().flatten().map(|why| LeftOut { id: None, why: why.clone() });
        let odd = self.money_left_out.news(asked.client, "amounts", odd);
        let event = Event::BuyingPowerUpdated(BuyingPowerUpdated {
            request_id: Some(asked.request_id.clone().into()),
            venue: VENUE.into(),
            cash_available: cash.ok().map(Into::into),
            cash_shortfall: None,
            credit_available: margin.and_then(Result::ok).map(Into::into),
            ts_ms: now.wall.millis(),
        });
        self.tell(Recipient::Client(asked.client), event);
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
        if job.is_given_up {
            return;
        }
        let JobKind::Positions(PositionsJob { held }) = &mut job.kind else { return };
        let known = held.take();
        let read = got.and_then(|answered| match known {
            None => Ok((account::read_holdings(&answered)?, None)),
            Some(known) => Ok((known, Some(account::read_margin_positions(&answered)?))),
        });
        match read {
            Ok((read, None)) if self.has_margin => {
                *held = Some(read);
                self.begin_positions(job);
            }
            Ok((held, margin)) => {
                let none = || Listed { rows: Vec::new(), left_out: Vec::new() };
                self.tell_positions(&job, &held, &margin.unwrap_or_else(none), now);
            }
            Err(why) => self.no_money(&job, &why),
        }
    }

    fn tell_positions(
        &mut self,
        job: &Job,
        held: &Listed<Holding>,
        margin: &Listed<MarginPosition>,
        now: Now,
    ) {
        let Some(asked) = job.asked.as_ref() else { return };
        let row = |symbol: &str| PositionRow {
            instrument_id: Text::Owned(format!("{symbol}.TSE")),
            qty: domain::Quantity::ZERO.into(),
            avg_open_price: None,
            market_value: None,
            unrealized_pnl: None,
            side: OrderSide::Buy,
            position_type: "cash".into(),
            tategyoku_id: None,
            venue: VENUE.into(),
        };
        let shares = held.rows.iter().map(|one| PositionRow {
            qty: one.quantity.into(),
            avg_open_price: one.average_price.map(Into::into),
            market_value: one.market_value.map(Into::into),
            unrealized_pnl: one.profit.map(Into::into),
            ..row(&one.symbol)
        });
        let positions = margin.rows.iter().map(|one| PositionRow {
            qty: one.quantity.into(),
            avg_open_price: Some(one.price.into()),
            market_value: one.market_value.map(Into::into),
            unrealized_pnl: one.profit.map(Into::into),
            side: one.side,
            position_type: if one.is_general { "margin_general" } else { "margin_credit" }.into(),
            tategyoku_id: Some(one.id.clone().into()),
            ..row(&one.symbol)
        });
        let event = Event::PositionsUpdated(PositionsUpdated {
            request_id: Some(asked.request_id.clone().into()),
            venue: VENUE.into(),
            positions: shares.chain(positions).collect(),
            ts_ms: now.wall.millis(),
        });
        self.tell(Recipient::Client(asked.client), event);
        let odd = held.left_out.iter().chain(&margin.left_out).cloned();
        let odd = self.money_left_out.news(asked.client, "positions", odd);
        venues::left_out_lines(&odd).for_each(|why| self.no_money(job, &why));
    }

    /// An answer, or in words why there is none.
    fn money_of(&mut self, called: Called, now: Now) -> Result<Box<Answered>, String> {
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
        if let Some(asked) = job.asked.as_ref() {
            let code = domain::ReasonCode::InternalError.as_str();
            self.tell_error(asked, code, format!("BALANCES: {why}"), None);
        }
    }
}
