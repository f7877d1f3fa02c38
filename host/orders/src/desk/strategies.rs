//! Orders of strategies: what differs from people's (specification 4, P91, P97, P100 to P103, P107, P114, P122,
//! P128).
//!
//! - A refusal is an event of the order, so that the strategy's thread sees events of orders only.
//! - A fill is in the log, on the disk, before it is reported. One that cannot be written waits, and no order of a
//!   strategy leaves meanwhile.
//! - While a run is under way, its cash is requested after each of its fills, and positions after a fill of
//!   somebody else's SELL.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use domain::{
    Discrepancy, InstrumentIx, OrderEventKind, OrderOrigin, OrderSide, OrderStatus, ReasonCode,
    Rejection, ShortText,
};
use venues::Listed;
use venues::web_broker::Called;
use venues::web_broker::account::{self, Holding};

use super::change::Sender;
use super::own_cancels::OwnCancel;
use super::reports::with_prefix;
use super::take_over::TakeOver;
use super::{Desk, Job, JobKind, Now, RequestContext};
use crate::audit::holdings::{Holdings, Uncounted};
use crate::audit::{self, FillLine};
use crate::book::{DeskOrder, OrderKey};
use crate::event::{DeskEvent, DeskOrderEvent, Reply, Shortfall, StrategyEvent};
use crate::limits::{FILLS_UNWRITTEN_MAX, POSITIONS_CHECKED_AFTER};

/// A request of the desk itself for a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Cash after a fill.
    Cash,
    /// Shares after a fill of somebody else's SELL.
    Holdings,
    /// Shares at the start of a run.
    StartHoldings,
    /// Cash at the start of a run.
    StartCash,
}

/// The comparison of positions that follows a fill of somebody else's SELL.
#[derive(Debug)]
struct PositionsCheck {
    /// When the first of these fills came, and the newest one.
    since: Duration,
    newest: Duration,
    /// How often positions were requested.
    asked: usize,
    is_asking: bool,
}

/// All that the desk knows of strategies.
#[derive(Debug, Default)]
pub(crate) struct Strategies {
    /// What they hold, by the log.
    pub(super) holdings: Holdings,
    /// The strategy whose run is under way.
    pub(super) runs: Option<ShortText>,
    /// Fills that could not be written yet, in order.
    unwritten: VecDeque<FillLine>,
    /// Clients were asked for the second password since one was set.
    has_asked_password: bool,
    /// The second password was held at the last look.
    had_password: bool,
    check: Option<PositionsCheck>,
    pub(super) take_over: Option<TakeOver>,
    pub(super) cancels: Vec<OwnCancel>,
}

impl Strategies {
    /// With what a log says.
    pub(super) fn new(holdings: Holdings) -> Self {
        Self { holdings, ..Self::default() }
    }

    /// Whether a strategy has fills that could not be written.
    pub(super) fn has_unwritten(&self, strategy_id: &str) -> bool {
        let is_its = |line: &FillLine| line.context.strategy_id.as_deref() == Some(strategy_id);
        self.unwritten.iter().any(is_its)
    }

    /// A second password was set: the next lack of one is told again.
    pub(super) const fn password_set(&mut self) {
        self.has_asked_password = false;
        self.had_password = true;
    }
}

impl Desk {
    pub(crate) fn report_strategy(&mut self, event: StrategyEvent) {
        self.broadcast(DeskEvent::Strategy(event));
    }

    /// Answers a command about strategies.
    pub(super) fn answer_strategy(&mut self, context: &RequestContext, event: StrategyEvent) {
        let event = Box::new(DeskEvent::Strategy(event));
        self.out.push(super::Out::Emit(super::Recipient::Client(context.client), event));
    }

    /// Notes which strategy's run is under way.
    pub(crate) fn strategy_runs(&mut self, strategy_id: Option<ShortText>, now: Now) {
        self.password.stand_still(strategy_id.is_some(), now.mono);
        self.strategies.had_password = self.password.is_held();
        self.strategies.check = None;
        self.strategies.runs = strategy_id;
    }

    /// Reports the refusal of a new order that was not sent. Of a strategy's order it is an event of that order.
    pub(crate) fn report_new_refused(
        &mut self,
        context: &RequestContext,
        (origin, id): (&OrderOrigin, &ShortText),
        looks: Option<(InstrumentIx, OrderSide)>,
        rejection: &Rejection,
        now: Now,
    ) {
        let (Some(_), Some((instrument, side))) = (origin.strategy_id(), looks) else {
            return self.report_order_refused(context, (origin.kind(), id), rejection, now);
        };
        let event = DeskOrderEvent {
            request_id: None,
            origin: Some(origin.clone()),
            client_order_id: Some(id.clone()),
            venue_order_id: None,
            instrument,
            instrument_id: self.book.instruments().name(instrument).unwrap_or_default(),
            side,
            ts_event: now.wall,
            status: OrderStatus::Rejected,
            is_written: true,
            kind: OrderEventKind::Rejected(with_prefix(rejection)),
        };
        self.broadcast(DeskEvent::Order(event));
    }

    /// The rejection of a strategy's command without a second password. Asks all clients for it, once until one
    /// is set (P97).
    pub(crate) fn without_password(&mut self, client_order_id: &str) -> Rejection {
        if !std::mem::replace(&mut self.strategies.has_asked_password, true) {
            let request_id = client_order_id.to_owned();
            self.broadcast(DeskEvent::Reply(Reply::SecondPasswordRequired { request_id }));
        }
        let text = "NO_PASSWORD: the order needs the second password; the engine does not send it \
                    again";
        Rejection::new(ReasonCode::SecondPasswordRequired, text)
    }

    /// Checks that a strategy's order may leave: all fills of strategies are written (P128).
    pub(crate) fn check_written(&self) -> Result<(), Rejection> {
        if self.strategies.unwritten.is_empty() {
            return Ok(());
        }
        let text = "POSITION_FILE: a fill of a strategy cannot be written to the audit log; no \
                    order of a strategy is sent before it is; check the disk";
        Err(Rejection::new(ReasonCode::InternalError, text))
    }

    /// Checks that a strategy sells for cash only what it holds (P114). `shares` are those of `order` that are still
    /// to trade; other orders of the strategy that sell the instrument count too. `key` is that of an order that is
    /// to change.
    pub(crate) fn check_position(
        &self,
        key: Option<OrderKey>,
        order: &DeskOrder,
        shares: u64,
    ) -> Result<(), Rejection> {
        let Some(strategy_id) = order.strategy_id().filter(|_| order.sells_own_shares()) else {
            return Ok(());
        };
        let others = self.book.iter().filter(|(other, one)| {
            Some(*other) != key
                && one.sells_own_shares()
                && one.strategy_id() == Some(strategy_id)
                && one.instrument_id == order.instrument_id
                && !one.status.is_final()
                && !one.is_over
        });
        let selling = others.fold(0_u64, |sum, (_, one)| sum.saturating_add(one.most_leaves()));
        let held = self.strategies.holdings.of(strategy_id, &order.instrument_id).quantity;
        let held = held.unsigned_abs();
        if selling.saturating_add(shares) <= held {
            return Ok(());
        }
        let text = format!(
            "POSITION: the order sells {shares} shares; the strategy holds {held}, of which its \
             other orders sell {selling}"
        );
        Err(Rejection::new(ReasonCode::ValidationError, text))
    }

    /// The strategy and the order of a job that a strategy has sent.
    pub(super) fn strategy_of(&self, job: &Job) -> Option<(ShortText, ShortText)> {
        let key = match &job.kind {
            JobKind::Submit(submit) => submit.key,
            JobKind::Change(change) if change.sender == Sender::Strategy => change.key,
            _ => return None,
        };
        let order = self.book.get(key)?;
        Some((order.strategy_id()?.into(), order.client_order_id.clone()?))
    }

    /// Writes a fill of a strategy's order and counts it. Returns false if it could not be written; it is tried
    /// again.
    pub(super) fn write_fill(&mut self, line: FillLine, now: Now) -> bool {
        let strategy_id = line.context.strategy_id.as_deref().map(ShortText::from);
        if self.strategies.unwritten.len() >= FILLS_UNWRITTEN_MAX {
            tracing::error!("too many fills wait for the audit log; a restart takes this one up");
            return false;
        }
        self.strategies.unwritten.push_back(line);
        let Err(error) = self.write_unwritten(now) else { return true };
        let why = error.to_string();
        tracing::error!(why, "cannot write a fill of a strategy to the audit log");
        if let Some(strategy_id) = strategy_id {
            self.report_strategy(StrategyEvent::FillNotWritten { strategy_id, why });
        }
        false
    }

    /// Writes the fills that wait, in order, and counts each.
    pub(super) fn write_unwritten(&mut self, now: Now) -> io::Result<()> {
        while let Some(line) = self.strategies.unwritten.pop_front() {
            if let Err(error) = audit::sync_filled(&mut *self.log, &line) {
                self.strategies.unwritten.push_front(line);
                return Err(error);
            }
            crate::kill::here("fill_line_synced");
            if let Err(why) = self.strategies.holdings.filled(&line) {
                self.report_uncounted(&line, why, now);
            }
        }
        Ok(())
    }

    fn report_uncounted(&mut self, line: &FillLine, why: Uncounted, now: Now) {
        let what = match why {
            Uncounted::Oversold(shares) => format!("sells {shares} shares more than"),
            Uncounted::TooLarge => "is too large to count for".to_owned(),
        };
        let text = format!(
            "fill {} {what} its strategy holds; look at the broker's own pages, and correct it by \
             `kumiki live adjust`",
            line.trade_id
        );
        let id = line.client_order_id.as_deref().map(ShortText::from);
        let number = Some(ShortText::from(&*line.venue_order_id));
        self.push_discrepancy(id, number, Discrepancy::Overfilled, text, now);
    }

    /// What follows from a fill for the strategy that runs: its cash is another one, or somebody else has sold
    /// what it holds.
    pub(super) fn after_fill_for_run(&mut self, key: OrderKey, now: Now) {
        let (Some(order), Some(runs)) = (self.book.get(key), &self.strategies.runs) else { return };
        if order.strategy_id() == Some(runs.as_str()) {
            return self.look(Look::Cash, now);
        }
        let held = self.strategies.holdings.of(runs, &order.instrument_id).quantity;
        if order.order.side == OrderSide::Sell && held > 0 {
            let check = self.strategies.check.get_or_insert(PositionsCheck {
                since: now.mono,
                newest: now.mono,
                asked: 0,
                is_asking: false,
            });
            check.newest = now.mono;
        }
    }

    /// Queues a request of the desk's own, unless the same one waits.
    pub(super) fn look(&mut self, look: Look, now: Now) {
        if !self.queue.has_look(look) {
            let kind = JobKind::Look(look);
            self.queue.put(Job { context: None, received: now.mono, kind, is_abandoned: false });
        }
    }

    pub(super) fn begin_look(&mut self, job: Job, look: Look) {
        let request = match look {
            Look::Cash | Look::StartCash => account::cash_request(),
            Look::Holdings | Look::StartHoldings => account::holdings_request(),
        };
        self.send(job, request, None);
    }

    pub(super) fn look_answered(&mut self, look: Look, called: Called, now: Now) {
        let answered = self.money_of(called, now);
        match look {
            Look::Cash => match answered.and_then(|answered| account::read_cash(&answered)?) {
                Ok(cash) if self.strategies.runs.is_some() => {
                    self.report_strategy(StrategyEvent::Cash(cash));
                }
                Ok(_) => {}
                Err(why) => self.look_failed(look, &why, now),
            },
            Look::StartCash => {
                let cash = answered.and_then(|answered| account::read_cash(&answered)?);
                self.take_over_cash(cash, now);
            }
            Look::Holdings => match answered.and_then(|one| account::read_holdings(&one)) {
                Ok(held) => self.positions_checked(Some(&held), now),
                Err(why) => self.look_failed(look, &why, now),
            },
            Look::StartHoldings => {
                let held = answered.and_then(|answered| account::read_holdings(&answered));
                self.take_over_positions(held, now);
            }
        }
    }

    /// A request of the desk's own has failed, or was not sent.
    pub(super) fn look_failed(&mut self, look: Look, why: &str, now: Now) {
        tracing::warn!(?look, why, "the broker does not say what a strategy has");
        match look {
            Look::Cash => {}
            Look::Holdings => self.positions_checked(None, now),
            Look::StartHoldings => self.take_over_positions(Err(why.to_owned()), now),
            Look::StartCash => self.take_over_cash(Err(why.to_owned()), now),
        }
    }

    /// Instruments of a strategy of which the account holds fewer shares than all strategies together. A row that
    /// was left out may have the rest (P129).
    pub(super) fn shortfalls(
        &self,
        strategy_id: &str,
        account: &Listed<Holding>,
    ) -> Vec<Shortfall> {
        if !account.left_out.is_empty() {
            return Vec::new();
        }
        let held = self.strategies.holdings.list(Some(strategy_id));
        let of = |instrument_id: &str| {
            let symbol = instrument_id.split('.').next().unwrap_or_default();
            let rows = account.rows.iter().filter(|row| row.symbol == symbol);
            let shares = rows.fold(0_u64, |sum, row| sum.saturating_add(row.quantity.shares()));
            i64::try_from(shares).unwrap_or(i64::MAX)
        };
        let both = held.iter().filter(|one| one.quantity > 0).map(|one| Shortfall {
            instrument_id: one.instrument_id.clone(),
            strategy: one.quantity,
            together: self.strategies.holdings.together(&one.instrument_id),
            account: of(&one.instrument_id),
        });
        both.filter(|one| one.account < one.together).collect()
    }

    /// Compares positions after a fill of somebody else's SELL: a shortage counts when it stands twice. No
    /// positions prove nothing.
    fn positions_checked(&mut self, account: Option<&Listed<Holding>>, now: Now) {
        let (Some(runs), Some(mut check)) =
            (self.strategies.runs.clone(), self.strategies.check.take())
        else {
            return;
        };
        let found = account.map(|account| self.shortfalls(&runs, account));
        check.asked += 1;
        check.is_asking = false;
        let is_last = check.asked >= POSITIONS_CHECKED_AFTER.len();
        match found {
            Some(found) if is_last => {
                for shortfall in found {
                    self.report_strategy(StrategyEvent::Mismatch(shortfall));
                }
            }
            Some(found) if found.is_empty() => {}
            // The broker does not say: once more, until it does.
            None if is_last => {
                (check.asked, check.since) = (check.asked - 1, now.mono);
                self.strategies.check = Some(check);
                return;
            }
            // Fewer shares, or no answer: once more.
            _ => {
                self.strategies.check = Some(check);
                return;
            }
        }
        if check.newest > check.since {
            let newest = check.newest.max(now.mono.saturating_sub(POSITIONS_CHECKED_AFTER[0]));
            self.strategies.check =
                Some(PositionsCheck { since: newest, newest, asked: 0, is_asking: false });
        }
    }

    /// Writes fills that wait, asks for what is due, and reports that the second password is gone.
    pub(super) fn tick_strategies(&mut self, now: Now) {
        if !self.strategies.unwritten.is_empty() && self.write_unwritten(now).is_ok() {
            tracing::info!("the fills of strategies that waited are in the audit log");
        }
        if let Some(check) = &mut self.strategies.check {
            let after = POSITIONS_CHECKED_AFTER.get(check.asked).copied().unwrap_or_default();
            if !check.is_asking && now.mono >= check.since + after {
                check.is_asking = true;
                self.look(Look::Holdings, now);
            }
        }
        self.watch_password(now);
        self.tick_own_cancels(now);
        self.tick_take_over(now);
    }

    /// Reports that the second password is gone while the strategy that runs needs it (P122).
    fn watch_password(&mut self, now: Now) {
        let is_held = self.password.is_held();
        let was_held = std::mem::replace(&mut self.strategies.had_password, is_held);
        let Some(runs) = self.strategies.runs.clone().filter(|_| was_held && !is_held) else {
            return;
        };
        let holds = !self.strategies.holdings.list(Some(&runs)).is_empty();
        if holds || !self.own_orders(&runs, now).is_empty() {
            self.report_strategy(StrategyEvent::SecondPasswordNeeded { strategy_id: runs });
        }
    }

    /// The session is gone: nothing that waits for the broker goes on.
    pub(super) fn end_strategies(&mut self, rejection: &Rejection, now: Now) {
        self.fail_take_over(&rejection.text, now);
        self.end_own_cancels(rejection, now);
    }
}
