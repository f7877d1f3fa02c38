//! What a person decides and corrects: orders whose answer was lost, and what strategies hold (specification 4,
//! P124, P125).

use domain::order_mapping::BrokerAccepted;
use domain::{Money, OrderStatus, ReasonCode, Rejection, ShortText};

use super::{Desk, Now, RequestContext};
use crate::audit::{self, FillSource, plain};
use crate::book::{DeskOrder, OrderKey, split_fill_id};
use crate::check::symbol_of;
use crate::command::{Adjustment, SettleOrder};
use crate::event::{FailureCode, StrategyEvent, StrategyHolding};
use crate::limits::{NUMBER_CHARS_MAX, WHY_CHARS_MAX};

impl Desk {
    /// Decides an order whose answer was lost.
    pub(crate) fn settle(&mut self, context: &RequestContext, settle: SettleOrder, now: Now) {
        match self.check_settle(&settle, now) {
            Ok((key, foreign)) => {
                match &settle.venue_order_id {
                    Some(number) => self.settle_at(key, number, foreign, now),
                    None => {
                        let text = "SETTLED_BY_HAND: a person says that the broker does not have \
                                    the order";
                        let rejection = Rejection::new(ReasonCode::InternalError, text);
                        self.reject(key, None, &rejection, now);
                    }
                }
                let request_id = context.request_id.clone();
                let client_order_id = settle.client_order_id;
                self.answer_strategy(
                    context,
                    StrategyEvent::Settled { request_id, client_order_id },
                );
                self.request_list_soon(now);
                self.work(now);
            }
            Err(why) => {
                let text = format!("SETTLE: {why}");
                self.report_error(context, FailureCode::Invalid, text, None);
            }
        }
    }

    /// The order to settle, and the order from elsewhere that its number has counted as so far.
    fn check_settle(
        &self,
        settle: &SettleOrder,
        now: Now,
    ) -> Result<(OrderKey, Option<OrderKey>), String> {
        let id = &settle.client_order_id;
        let key = self.book.by_id(settle.origin, id);
        let (key, order) = key
            .and_then(|key| Some((key, self.book.get(key)?)))
            .ok_or_else(|| format!("no order of this kind of sender has the id `{id}`"))?;
        if !order.is_unknown() || order.unknown_since.is_none() {
            let known = match &order.venue_order_id {
                Some(number) => format!("it is {}, number {number}", order.status),
                None => "it is on its way".to_owned(),
            };
            return Err(format!("there is nothing to decide of `{id}`: {known}"));
        }
        if order.is_findable(now.wall.jst_date()) && !self.had_its_list(order) {
            return Err(format!(
                "a whole list of orders of today still decides `{id}`; log in, read the list of \
                 orders, and wait some seconds"
            ));
        }
        let Some(number) = &settle.venue_order_id else { return Ok((key, None)) };
        let is_word = number.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !is_word || !(1..=NUMBER_CHARS_MAX).contains(&number.len()) {
            return Err(format!("`{}` is no number of an order", plain(number)));
        }
        let foreign = self.check_number_free(order, number, now)?;
        Ok((key, foreign))
    }

    /// Whether a list has come that would have decided the order, had its rows been readable (P129).
    fn had_its_list(&self, order: &DeskOrder) -> bool {
        let listed_at = self.reconciliation.lists.listed_at;
        let since = order.unknown_since.map(|since| since + self.rules.unknown_settle);
        since.zip(listed_at).is_some_and(|(since, listed_at)| listed_at > since)
    }

    /// Checks that a number belongs to no other order, and to no row of another instrument or side. Numbers begin
    /// again on another day, so only orders of about the same time count.
    fn check_number_free(
        &self,
        order: &DeskOrder,
        number: &str,
        now: Now,
    ) -> Result<Option<OrderKey>, String> {
        let mut foreign = None;
        for key in self.book.of_number(number) {
            let Some(other) = self.book.get(key).filter(|other| other.day() == order.day()) else {
                continue;
            };
            if let Some(id) = &other.client_order_id {
                return Err(format!("number {number} is that of order `{id}`"));
            }
            if !has_same_looks(other.order.symbol.as_str(), order)
                || other.order.side != order.order.side
            {
                return Err(format!(
                    "number {number} is a {} order of {}, but this one is a {} order of {}",
                    other.order.side, other.instrument_id, order.order.side, order.instrument_id
                ));
            }
            foreign = Some(key);
        }
        let today = now.wall.jst_date();
        let rows = self.reconciliation.lists.rows.iter();
        let mut rows = rows.filter(|row| *row.venue_order_id == *number && order.day() == today);
        match rows.find(|row| !has_same_looks(&row.symbol, order) || row.side != order.order.side) {
            Some(row) => Err(format!(
                "the broker's list has number {number} as a {} order of {}, but this one is a {} \
                 order of {}",
                row.side, row.symbol, order.order.side, order.instrument_id
            )),
            None => Ok(foreign),
        }
    }

    /// The order has this number. What was reported of an order from elsewhere with the number is its own.
    fn settle_at(
        &mut self,
        key: OrderKey,
        number: &ShortText,
        foreign: Option<OrderKey>,
        now: Now,
    ) {
        let foreign = foreign.and_then(|key| self.book.take(key));
        let today = now.wall.jst_date();
        let day = foreign.as_ref().and_then(|order| order.business_day.clone()).or_else(|| {
            let rows = self.reconciliation.lists.rows.iter();
            let mut rows = rows.filter(|row| row.venue_order_id == *number);
            let is_it = |order: &DeskOrder| order.day() == today;
            rows.find(|_| self.book.get(key).is_some_and(is_it))?.business_day.clone()
        });
        let accepted = BrokerAccepted {
            venue_order_id: Some(number.clone()),
            business_day: day,
            ..BrokerAccepted::default()
        };
        self.accepted(key, &accepted, 0, now);
        for (id, (quantity, price)) in
            foreign.as_ref().map(|order| &order.fills).into_iter().flatten()
        {
            let is_known = self.book.get(key).is_some_and(|order| order.fills.contains_key(id));
            if is_known {
                continue;
            }
            let (from, trade_id) = split_fill_id(id);
            if matches!(from, FillSource::Details)
                && let Some(order) = self.book.get_mut(key)
            {
                order.note_detailed(id.clone(), (*quantity, *price));
                order.details_reported += 1;
            }
            let fill = domain::order_mapping::BrokerFill {
                trade_id: trade_id.into(),
                quantity: *quantity,
                price: *price,
            };
            self.take_fill(key, from, &fill, now.wall, now);
        }
        if let Some(status) = foreign.map(|order| order.status) {
            match status {
                OrderStatus::Canceled => self.canceled(key, now.wall, now),
                OrderStatus::Expired => self.expired(key, now.wall, now),
                _ => {}
            }
        }
    }

    /// Reports what all strategies hold.
    pub(crate) fn report_holdings(&mut self, context: &RequestContext) {
        let request_id = context.request_id.clone();
        let held = self.strategies.holdings.list(None);
        self.answer_strategy(context, StrategyEvent::Holdings { request_id, held });
    }

    /// Corrects what a strategy holds. It counts once it is on the disk.
    pub(crate) fn adjust(&mut self, context: &RequestContext, adjustment: &Adjustment, now: Now) {
        let (instrument_id, why) = match self.check_adjustment(adjustment, now) {
            Ok(checked) => checked,
            Err(why) => {
                let text = format!("ADJUST: {why}");
                return self.report_error(context, FailureCode::Invalid, text, None);
            }
        };
        let Adjustment { strategy_id, quantity, cost, .. } = adjustment;
        let holdings = &mut self.strategies.holdings;
        let (of, becomes) = ((strategy_id.as_str(), instrument_id.as_str()), (*quantity, *cost));
        if let Err(error) = audit::adjusted(&mut *self.log, holdings, of, becomes, &why, now.wall) {
            let text = format!(
                "POSITION_FILE: the correction cannot be written to the audit log ({error}) and \
                 does not count; check the disk"
            );
            return self.report_error(context, ReasonCode::InternalError, text, None);
        }
        // A person has looked what became of the orders whose ends nobody has told.
        let is_its = |order: &DeskOrder| {
            order.end_unseen
                && order.strategy_id() == Some(strategy_id.as_str())
                && order.instrument_id == instrument_id
        };
        let unseen: Vec<OrderKey> =
            self.book.iter().filter(|(_, order)| is_its(order)).map(|(key, _)| key).collect();
        for key in unseen {
            self.end_of_day_known(key, now);
        }
        let held = self.strategies.holdings.of(strategy_id, &instrument_id);
        let held = StrategyHolding {
            strategy_id: strategy_id.clone(),
            instrument_id,
            quantity: held.quantity,
            cost: held.cost,
            margin: held.margin,
            margin_cost: held.margin_cost,
        };
        let request_id = context.request_id.clone();
        self.answer_strategy(context, StrategyEvent::Adjusted { request_id, held });
    }

    /// The instrument's name and the reason on one line, or why the correction is refused.
    fn check_adjustment(
        &self,
        adjustment: &Adjustment,
        now: Now,
    ) -> Result<(ShortText, String), String> {
        let Adjustment { strategy_id, instrument, quantity, cost, why } = adjustment;
        if strategy_id.is_empty() {
            return Err("the strategy's id is missing".to_owned());
        }
        if self.strategies.runs.as_ref() == Some(strategy_id) || self.is_taking_over(strategy_id) {
            return Err(format!("`{strategy_id}` runs; stop it first"));
        }
        let own = self.listed_own(strategy_id, now);
        if !own.is_empty() {
            let ids: Vec<&str> = own.iter().map(|order| order.client_order_id.as_str()).collect();
            return Err(format!(
                "orders of `{strategy_id}` work, or nobody knows whether they do: {}; cancel or \
                 settle them first",
                ids.join(", ")
            ));
        }
        if self.strategies.has_unwritten(strategy_id) {
            return Err(format!("a fill of `{strategy_id}` is not written yet; check the disk"));
        }
        let instrument_id = ShortText::from(instrument.to_string());
        symbol_of(&instrument_id).map_err(|rejection| rejection.text)?;
        if i64::try_from(quantity.shares()).is_err() {
            return Err("the number of shares is too large".to_owned());
        }
        match (quantity.is_zero(), *cost) {
            (true, Money::ZERO) => {}
            (true, _) => return Err("no shares have no cost".to_owned()),
            (false, cost) if cost > Money::ZERO => {}
            (false, _) => return Err("the average price must be above zero".to_owned()),
        }
        let why = plain(why);
        let why = why.trim();
        if why.is_empty() || why.chars().count() > WHY_CHARS_MAX {
            return Err(format!("say why, in 1 to {WHY_CHARS_MAX} characters"));
        }
        Ok((instrument_id, why.to_owned()))
    }
}

fn has_same_looks(symbol: &str, order: &DeskOrder) -> bool {
    *order.order.symbol == *symbol
}
