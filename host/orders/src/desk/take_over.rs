//! The start of a strategy's run with real orders: what it takes over (specification 4, P104 to P107, P129).
//!
//! 1. A list decides its orders whose answer was lost, and the fills that a list has and no notice are requested.
//! 2. Its orders that still work are cancelled, and their last fills count.
//! 3. The account's shares are compared with what it holds, and the cash is requested.
//!
//! Steps 1 and 2 take at most [`TAKE_OVER_TIME`] each. Then the start is refused, with the orders in its way. A
//! list with a row left out proves nothing.

use std::time::Duration;

use domain::{Discrepancy, Money, Rejection, ShortText};
use venues::Listed;
use venues::web_broker::account::Holding;

use super::strategies::Look;
use super::{Desk, Now, RequestContext};
use crate::book::DeskOrder;
use crate::event::{OwnOrder, Shortfall, Standing, StrategyEvent, Unsettled};
use crate::limits::{OWN_LIST_PAUSE, TAKE_OVER_TIME};

/// Where a takeover stands.
#[derive(Debug)]
enum Step {
    /// Lists decide unknown orders and missing fills.
    Settle,
    /// Its orders are cancelled.
    Cancel,
    /// The account's positions, then its cash, are awaited.
    Account(Vec<Shortfall>),
}

/// A takeover that is under way.
#[derive(Debug)]
pub(crate) struct TakeOver {
    context: RequestContext,
    strategy_id: ShortText,
    step: Step,
    /// Since when the time of the present step counts.
    since: Duration,
    /// A list that was requested before knows too little.
    listed_after: Duration,
    next_list: Duration,
}

impl Desk {
    /// Whether a start of a strategy is being prepared.
    pub(super) fn is_taking_over(&self, strategy_id: &str) -> bool {
        self.strategies.take_over.as_ref().is_some_and(|one| one.strategy_id == strategy_id)
    }

    /// Prepares the start of a strategy's run.
    pub(crate) fn take_over(&mut self, context: RequestContext, strategy_id: ShortText, now: Now) {
        let may_go = match self.strategies.take_over.is_some() {
            true => Err("TAKE_OVER: another start is being prepared; wait for its end".to_owned()),
            false => self.session.check_active().map_err(|rejection| rejection.text),
        };
        let may_go = may_go.and_then(|()| {
            self.write_unwritten(now).map_err(|error| {
                format!(
                    "POSITION_FILE: a fill cannot be written to the audit log ({error}); check the \
                     disk"
                )
            })
        });
        let start = TakeOver {
            context,
            strategy_id,
            step: Step::Settle,
            since: now.mono,
            listed_after: now.mono,
            next_list: now.mono,
        };
        if let Err(message) = may_go {
            return self.refuse_take_over(start, message, now);
        }
        // Fills that were given up before are looked for once more.
        let mut unseen = Vec::new();
        for (key, order) in self.book.iter_mut() {
            if order.strategy_id() == Some(start.strategy_id.as_str()) {
                order.details_tried = 0;
                order.reported.remove(&Discrepancy::FillsMissing);
                unseen.extend(order.end_unseen.then_some(key));
            }
        }
        for key in unseen {
            self.request_details(key, now);
        }
        self.strategies.take_over = Some(start);
        self.tick_take_over(now);
        self.work(now);
    }

    pub(super) fn tick_take_over(&mut self, now: Now) {
        let Some(mut start) = self.strategies.take_over.take() else { return };
        if !matches!(start.step, Step::Settle) {
            self.strategies.take_over = Some(start);
            return;
        }
        match self.unsettled(&start, now) {
            Ok(()) if self.own_orders(&start.strategy_id, now).is_empty() => {
                start.step = Step::Account(Vec::new());
                self.strategies.take_over = Some(start);
                self.look(Look::StartHoldings, now);
            }
            Ok(()) => {
                (start.step, start.since) = (Step::Cancel, now.mono);
                let id = start.strategy_id.clone();
                self.strategies.take_over = Some(start);
                self.begin_own_cancel(None, id, now);
            }
            Err(why) if now.mono.saturating_sub(start.since) >= TAKE_OVER_TIME => {
                self.refuse_take_over(start, why, now);
            }
            Err(_) => {
                let needs_list = now.mono >= start.next_list;
                if needs_list {
                    start.next_list = now.mono + OWN_LIST_PAUSE;
                }
                self.strategies.take_over = Some(start);
                if needs_list {
                    self.request_list_once(now);
                }
            }
        }
    }

    /// Why a strategy cannot start yet: no list, unknown orders, or fills that only a list has.
    fn unsettled(&self, start: &TakeOver, now: Now) -> Result<(), String> {
        let lists = &self.reconciliation.lists;
        let is_new = |at: Option<Duration>| at.is_some_and(|at| at >= start.listed_after);
        let seconds = TAKE_OVER_TIME.as_secs();
        let own = || {
            let orders = self.book.iter().map(|(_, order)| order);
            orders.filter(|order| order.strategy_id() == Some(start.strategy_id.as_str()))
        };
        let unknown: Vec<&str> = own()
            .filter(|order| order.is_unknown())
            .filter_map(|order| order.client_order_id.as_deref())
            .collect();
        if !unknown.is_empty() {
            return Err(format!(
                "UNKNOWN_ORDERS: nobody knows whether the broker has {}; look at its own pages, \
                 then decide each by `kumiki order settle ID --strategy --number N` or `kumiki \
                 order settle ID --strategy --not-at-broker`",
                unknown.join(", ")
            ));
        }
        if !is_new(lists.listed_at) {
            return Err(format!(
                "LIST: the broker's list of orders has not come within {seconds} s"
            ));
        }
        if !is_new(lists.full_at) {
            let text = "LIST: the engine cannot read some rows of the broker's list of orders; such \
                        a list proves nothing";
            return Err(text.to_owned());
        }
        // Of an order of an earlier day that no list has, a later list or its details tell the end.
        let is_unseen = |order: &&DeskOrder| {
            let is_past = order.day() < now.wall.jst_date() && order.listed.is_none();
            order.end_unseen || (is_past && !order.status.is_final() && !order.is_over)
        };
        let unseen: Vec<String> =
            own().filter(is_unseen).map(DeskOrder::named_with_number).collect();
        if !unseen.is_empty() {
            return Err(format!(
                "ENDS: the broker does not tell what became of orders of an earlier day: {}; look at its own \
                 pages, then say by `kumiki live adjust` what the strategy holds",
                unseen.join(", ")
            ));
        }
        let missing: Vec<String> = own()
            .filter_map(|order| {
                let listed = order.listed?.filled.shares();
                let number = order.venue_order_id.as_deref()?;
                let is_missing = listed > order.cumulative;
                is_missing
                    .then(|| format!("{number} ({listed} listed, {} known)", order.cumulative))
            })
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(format!(
            "FILLS: the broker's list has more filled shares than notices and details of orders {}; \
             start again later, and look at the broker's own pages",
            missing.join(", ")
        ))
    }

    /// The cancel of the strategy's orders has ended: all have, or some cannot be cancelled.
    pub(super) fn take_over_cancelled(
        &mut self,
        strategy_id: &str,
        refused: Option<Rejection>,
        now: Now,
    ) {
        let is_it = |start: &mut TakeOver| {
            start.strategy_id == strategy_id && matches!(start.step, Step::Cancel)
        };
        let Some(mut start) = self.strategies.take_over.take_if(is_it) else { return };
        let left = self.listed_own(strategy_id, now);
        if left.is_empty() {
            // What they were filled while they were cancelled counts too: a newer list has it.
            (start.step, start.listed_after) = (Step::Settle, now.mono);
            start.next_list = now.mono;
            self.strategies.take_over = Some(start);
            return;
        }
        let left: Vec<&str> = left
            .iter()
            .map(|order| order.venue_order_id.as_ref().unwrap_or(&order.client_order_id).as_str())
            .collect();
        let why = refused.map_or_else(
            || format!("they have not ended within {} s", TAKE_OVER_TIME.as_secs()),
            |rejection| format!("{}: {}", rejection.code, rejection.text),
        );
        let text = format!(
            "WORKING_ORDERS: orders {} of an earlier run still work and cannot be cancelled: {why}",
            left.join(", ")
        );
        self.refuse_take_over(start, text, now);
    }

    /// The account's positions have come.
    pub(super) fn take_over_positions(&mut self, held: Result<Listed<Holding>, String>, now: Now) {
        let is_it = |start: &mut TakeOver| matches!(start.step, Step::Account(_));
        let Some(start) = self.strategies.take_over.take_if(is_it) else { return };
        match held {
            Ok(held) => {
                let shortfalls = self.shortfalls(&start.strategy_id, &held);
                let step = Step::Account(shortfalls);
                self.strategies.take_over = Some(TakeOver { step, ..start });
                self.look(Look::StartCash, now);
            }
            Err(why) => self.refuse_take_over(start, format!("POSITIONS: {why}"), now),
        }
    }

    /// The account's cash has come: the strategy may start.
    pub(super) fn take_over_cash(&mut self, cash: Result<Money, String>, now: Now) {
        let is_it = |start: &mut TakeOver| matches!(start.step, Step::Account(_));
        let Some(start) = self.strategies.take_over.take_if(is_it) else { return };
        let Step::Account(shortfalls) = start.step else { return };
        let cash = cash.inspect_err(|why| {
            tracing::warn!(why, "the broker does not say the cash; a strategy starts without it");
        });
        let holdings = &self.strategies.holdings;
        let standing = Standing {
            held: holdings.list(Some(&start.strategy_id)),
            realised_today: holdings.realised(&start.strategy_id, now.wall.jst_date()),
            cash: cash.ok(),
            shortfalls,
            corrections: holdings.corrections(&start.strategy_id),
        };
        let request_id = start.context.request_id.clone();
        let taken = Ok(standing);
        self.answer_strategy(&start.context, StrategyEvent::TakenOver { request_id, taken });
    }

    /// Ends a takeover that cannot go on.
    pub(super) fn fail_take_over(&mut self, why: &str, now: Now) {
        if let Some(start) = self.strategies.take_over.take() {
            self.refuse_take_over(start, why.to_owned(), now);
        }
    }

    fn refuse_take_over(&mut self, start: TakeOver, message: String, now: Now) {
        let orders: Vec<OwnOrder> = self.listed_own(&start.strategy_id, now);
        let request_id = start.context.request_id.clone();
        let taken = Err(Unsettled { message, orders });
        self.answer_strategy(&start.context, StrategyEvent::TakenOver { request_id, taken });
    }
}
