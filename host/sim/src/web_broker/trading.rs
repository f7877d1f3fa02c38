//! New orders, changes, cancels: what is checked, and what is handed to the exchange.

use std::sync::Arc;

use domain::{
    JstDate, Money, OrderCommand, OrderModify, OrderRequest, OrderSide, OrderType, Price, Quantity,
    TimeInForce, TriggerType, TsNanos,
};
use secrecy::ExposeSecret as _;

use super::broker::{Broker, ix};
use super::config::Form;
use super::faults::FaultKind;
use super::ledger::value;
use super::limits::{ORDER_SHARES_MAX, ORDERS_KEPT_MAX};
use super::order::{Change, FIRST_NUMBER, Order, State, Terms};
use super::refusal::{
    CONDITION_STAYS, EXPIRY, EXPIRY_CONDITION, FUNARI_MARKET, Family, INCREASE, LOT, NO_CAPACITY,
    NO_CASH_TO_TAKE, NO_ISSUE, NO_POSITION, NO_SHARES, PRICE_LIMIT, Refusal, STOP_CONDITION,
    STOP_LIMIT, STOP_REACHED, STOP_REFUSED, STOP_TICK, TICK, TOO_MUCH,
};
use super::request::Request;
use super::times;

const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// Business days that an order may last.
const EXPIRY_DAYS_MAX: u32 = 10;

/// One character of a field, of those that it may be.
fn one_of(request: &Request, name: &str, allowed: &str) -> Result<char, Refusal> {
    let text = request.needed(name)?;
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(character), None) if allowed.contains(character) => Ok(character),
        _ => Err(Refusal::Parameter(format!("{name} is none of {allowed}"))),
    }
}

fn price_of(request: &Request, name: &str) -> Result<Price, Refusal> {
    let wrong = || Refusal::Parameter(format!("{name} is no price"));
    let price: Price = request.needed(name)?.parse().map_err(|_| wrong())?;
    if price > Price::default() { Ok(price) } else { Err(wrong()) }
}

fn shares_of(request: &Request, name: &str) -> Result<u64, Refusal> {
    let text = request.needed(name)?;
    let shares = text.parse().ok().filter(|shares| *shares > 0 && !text.starts_with(['0', '+']));
    shares.ok_or_else(|| Refusal::Parameter(format!("{name} is no number of shares")))
}

impl Broker {
    /// Whether the second password is right.
    pub(crate) fn is_second_password(&self, request: &Request) -> bool {
        request.text("sSecondPassword") == self.config.second_password.expose_secret()
    }

    /// Whether the password of the login is right.
    pub(crate) fn is_login_password(&self, request: &Request) -> bool {
        request.text("sPassword") == self.config.password.expose_secret()
    }

    fn check_second_password(&self, request: &Request, family: Family) -> Result<(), Refusal> {
        if self.is_second_password(request) {
            return Ok(());
        }
        if !request.has("sSecondPassword") {
            return Err(Refusal::Parameter("sSecondPassword is missing".to_owned()));
        }
        Err(match self.config.form {
            Form::Spec => Refusal::Session(4, "second password is wrong."),
            Form::V4r8 if request.text("sSecondPassword").is_empty() => family.malformed_password(),
            Form::V4r8 => family.wrong_password(),
        })
    }

    /// `CLMKabuNewOrder`; tells the order's place.
    pub(crate) fn new_order(&mut self, request: &Request) -> Result<usize, Refusal> {
        let terms = self.read_terms(request)?;
        self.check_second_password(request, Family::New)?;
        if self.is_closed() {
            return Err(Family::New.closed());
        }
        self.place(terms, false)
    }

    fn read_terms(&self, request: &Request) -> Result<Terms, Refusal> {
        let issue = self.issue_index(request.needed("sIssueCode")?).ok_or(NO_ISSUE)?;
        one_of(request, "sSizyouC", "0").or_else(|refusal| match request.text("sSizyouC") {
            "00" => Ok('0'),
            _ => Err(refusal),
        })?;
        let tax = one_of(request, "sZyoutoekiKazeiC", "1356")?;
        let side = one_of(request, "sBaibaiKubun", "1357")?;
        let condition = one_of(request, "sCondition", "0246")?;
        let credit = one_of(request, "sGenkinShinyouKubun", "02468")?;
        let quantity = shares_of(request, "sOrderSuryou")?;
        let is_settlement = matches!(side, '5' | '7');
        let (price, trigger) = self.read_prices(request, is_settlement)?;
        let expires = self.read_expiry(request.needed("sOrderExpireDay")?, condition)?;
        let mut terms = Terms {
            issue,
            tax,
            side,
            condition,
            credit,
            quantity,
            price,
            trigger,
            expires,
            closes: Vec::new(),
        };
        terms.closes = self.read_closes(request, &terms)?;
        Ok(terms)
    }

    /// Limit and trigger, by the form's own rules.
    fn read_prices(
        &self,
        request: &Request,
        is_settlement: bool,
    ) -> Result<(Option<Price>, Option<Price>), Refusal> {
        let wrong = |text: &str| Err(Refusal::Parameter(text.to_owned()));
        let (plain, zyouken, then) = (
            request.needed("sOrderPrice")?,
            request.needed("sGyakusasiZyouken")?,
            request.text("sGyakusasiPrice"),
        );
        let is_stop = match self.config.form {
            Form::Spec => zyouken != "0",
            Form::V4r8 => match one_of(request, "sGyakusasiOrderType", "012")? {
                '0' if zyouken != "0" || then != "*" => {
                    return wrong("sGyakusasiOrderType is 0, but a stop is given");
                }
                '0' => false,
                // A live limit order with a stop beside it: not simulated.
                '2' => return Err(STOP_REFUSED),
                _ if plain != "*" => return wrong("sOrderPrice of a stop must be *"),
                _ => true,
            },
        };
        if !is_stop {
            return match plain {
                "*" if is_settlement => Ok((None, None)),
                "*" => wrong("sOrderPrice is *, and the order is no stop"),
                "0" => Ok((None, None)),
                _ => Ok((Some(price_of(request, "sOrderPrice")?), None)),
            };
        }
        let trigger = price_of(request, "sGyakusasiZyouken")?;
        match then {
            "*" | "" => wrong("sGyakusasiPrice of a stop is missing"),
            "0" => Ok((None, Some(trigger))),
            _ => Ok((Some(price_of(request, "sGyakusasiPrice")?), Some(trigger))),
        }
    }

    fn read_expiry(&self, text: &str, condition: char) -> Result<Option<JstDate>, Refusal> {
        if text == "0" {
            return Ok(None);
        }
        if condition != '0' {
            return Err(EXPIRY_CONDITION);
        }
        let date = times::parse_day(text)
            .ok_or_else(|| Refusal::Parameter("sOrderExpireDay is no date".to_owned()))?;
        let ahead = self.calendar.business_days_between(self.day, date, EXPIRY_DAYS_MAX);
        let is_open = self.calendar.is_business_day(date);
        if date < self.day || !is_open || ahead > EXPIRY_DAYS_MAX {
            return Err(EXPIRY);
        }
        Ok(Some(date))
    }

    /// The positions that an order closes, and shares of each.
    fn read_closes(&self, request: &Request, terms: &Terms) -> Result<Vec<(u64, u64)>, Refusal> {
        let parameter = |text: &str| Refusal::Parameter(text.to_owned());
        if !terms.closes_position() {
            return match terms.is_settlement() {
                true => {
                    Err(parameter("genbiki and genwatasi repay: sGenkinShinyouKubun is 4 or 8"))
                }
                false => Ok(Vec::new()),
            };
        }
        let free = |number: u64, open: u64| open.saturating_sub(self.being_closed(number));
        let mut left = terms.quantity;
        let mut closes = Vec::new();
        match request.text("sTatebiType") {
            "1" => {
                let mut rows = request.rows("aCLMKabuHensaiData");
                let text = |row: &serde_json::Map<_, serde_json::Value>, name: &str| {
                    row.get(name).and_then(|value| value.as_str()?.parse::<u64>().ok())
                };
                rows.sort_by_key(|row| text(row, "sTatebiZyuni"));
                for row in rows {
                    let (Some(number), Some(shares), Some(_)) = (
                        text(row, "sTategyokuNumber"),
                        text(row, "sOrderSuryou"),
                        text(row, "sTatebiZyuni"),
                    ) else {
                        return Err(parameter("aCLMKabuHensaiData lacks a number"));
                    };
                    let found = self.ledger.closable(terms).find(|known| known.number == number);
                    let room = found.map_or(0, |known| free(number, known.open()));
                    if shares == 0 || shares > room || shares > left {
                        return Err(NO_POSITION);
                    }
                    left -= shares;
                    closes.push((number, shares));
                }
            }
            // By day, profit or loss: the oldest first, as they are numbered.
            "*" | "2" | "3" | "4" => {
                for known in self.ledger.closable(terms) {
                    let taken = left.min(free(known.number, known.open()));
                    if taken > 0 {
                        left -= taken;
                        closes.push((known.number, taken));
                    }
                }
            }
            _ => return Err(parameter("sTatebiType is none of *1234")),
        }
        if left > 0 { Err(NO_POSITION) } else { Ok(closes) }
    }

    /// Shares of a position that open orders close.
    pub(crate) fn being_closed(&self, position: u64) -> u64 {
        let of_order = |index: &usize| {
            let order = &self.orders[*index];
            let asked = order.terms.closes.iter().filter(|(number, _)| *number == position);
            let asked: u64 = asked.map(|(_, shares)| shares).sum();
            asked.min(order.leaves())
        };
        self.open.iter().map(of_order).sum()
    }

    /// Shares of an account that open orders sell or give.
    pub(crate) fn being_sold(&self, issue: usize, tax: char) -> u64 {
        let sells = |order: &&Order| {
            let terms = &order.terms;
            let is_cash_sale = terms.credit == '0' && terms.side == '1';
            (is_cash_sale || terms.side == '5') && terms.issue == issue && terms.tax == tax
        };
        self.open.iter().map(|index| &self.orders[*index]).filter(sells).map(Order::leaves).sum()
    }

    fn worst(&self, terms: &Terms) -> Price {
        let is_sure = terms.price.filter(|_| terms.condition != '6');
        is_sure.unwrap_or(self.limits[terms.issue].high)
    }

    /// Cash that no order needs.
    pub(crate) fn free_cash(&self) -> Money {
        let buys = self.open.iter().map(|index| &self.orders[*index]);
        let buys = buys.filter(|order| order.terms.credit == '0' && order.terms.side == '3');
        let reserved: Money =
            buys.map(|order| value(self.worst(&order.terms), order.leaves())).sum();
        self.ledger.cash - reserved
    }

    /// Value of positions that may still be opened.
    pub(crate) fn free_margin(&self) -> Money {
        let opening = self.open.iter().map(|index| &self.orders[*index]);
        let opening = opening.filter(|order| order.terms.opens_position());
        let reserved: Money =
            opening.map(|order| value(self.worst(&order.terms), order.leaves())).sum();
        self.ledger.margin_capacity - self.ledger.margin_used() - reserved
    }

    fn check_prices(&self, terms: &Terms) -> Result<(), Refusal> {
        let (ticks, limits) = (self.issues[terms.issue].ticks, self.limits[terms.issue]);
        if let Some(price) = terms.price {
            if !ticks.is_aligned(price) {
                return Err(TICK);
            }
            if !limits.contains(price) {
                return Err(PRICE_LIMIT);
            }
        }
        let Some(trigger) = terms.trigger else { return Ok(()) };
        if !ticks.is_aligned(trigger) {
            return Err(STOP_TICK);
        }
        if limits.contains(trigger) { Ok(()) } else { Err(STOP_LIMIT) }
    }

    fn is_trigger_reached(&self, terms: &Terms) -> bool {
        let last = self.last[terms.issue];
        terms.trigger.is_some_and(
            |trigger| {
                if terms.is_buy() { last >= trigger } else { last <= trigger }
            },
        )
    }

    fn check_terms(&self, terms: &Terms) -> Result<(), Refusal> {
        let lot = self.issues[terms.issue].lot.shares();
        if !terms.quantity.is_multiple_of(lot) {
            return Err(LOT);
        }
        if terms.quantity > ORDER_SHARES_MAX || self.orders.len() >= ORDERS_KEPT_MAX {
            return Err(TOO_MUCH);
        }
        if terms.trigger.is_some() && terms.condition != '0' {
            return Err(STOP_CONDITION);
        }
        if terms.condition == '6' && terms.price.is_none() {
            return Err(FUNARI_MARKET);
        }
        self.check_prices(terms)?;
        if self.is_trigger_reached(terms) {
            return Err(STOP_REACHED);
        }
        self.check_balance(terms, terms.quantity, Money::ZERO)
    }

    /// Whether cash, shares or margin suffice for so many shares; `released` is what the order held.
    fn check_balance(&self, terms: &Terms, shares: u64, released: Money) -> Result<(), Refusal> {
        let needed = value(self.worst(terms), shares);
        let held = self.ledger.held(terms.issue, terms.tax);
        let sellable = held.saturating_sub(self.being_sold(terms.issue, terms.tax));
        if terms.opens_position() {
            return if needed > self.free_margin() + released { Err(NO_CAPACITY) } else { Ok(()) };
        }
        match (terms.credit, terms.side) {
            ('0', '3') if matches!(terms.tax, '5' | '6') => Err(TOO_MUCH),
            ('0', '3') if needed > self.free_cash() + released => Err(Family::New.no_cash()),
            ('0', '1') if shares > sellable => Err(NO_SHARES),
            ('4' | '8', '5') if shares > sellable => Err(NO_SHARES),
            ('4' | '8', '7') => {
                let price =
                    |number: u64| self.ledger.positions.iter().find(|known| known.number == number);
                let cost = |(number, shares): &(u64, u64)| {
                    price(*number).map_or(Money::ZERO, |known| value(known.price, *shares))
                };
                let needed: Money = terms.closes.iter().map(cost).sum();
                if needed > self.free_cash() { Err(NO_CASH_TO_TAKE) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// Takes an order that was read; tells its place.
    pub(crate) fn place(&mut self, terms: Terms, is_foreign: bool) -> Result<usize, Refusal> {
        self.check_terms(&terms)?;
        let index = self.orders.len();
        let order = Order {
            number: FIRST_NUMBER + index as u64,
            day: self.day,
            placed_on: self.day,
            placed_at: times::second(self.clock()),
            state: State::Working,
            filled: 0,
            filled_value: Money::ZERO,
            fills: Vec::new(),
            is_triggered: false,
            is_foreign,
            is_carried: false,
            branch: 0,
            terms,
        };
        let command = OrderCommand::Submit(exchange_request(&order));
        self.orders.push(order);
        self.open.insert(index);
        self.notice(index, "1", None);
        let terms = self.orders[index].terms.clone();
        if terms.is_settlement() {
            let price = self.ledger.closable(&terms).next().map(|known| known.price);
            self.book_fill(index, price.unwrap_or_default(), terms.quantity);
        } else {
            self.execute(command);
            self.take_events();
        }
        Ok(index)
    }

    /// The order that a request names.
    fn named(&self, request: &Request) -> Result<usize, Refusal> {
        let unknown = || Refusal::Parameter("sOrderNumber is no order of this account".to_owned());
        let number: u64 = request.needed("sOrderNumber")?.parse().map_err(|_| unknown())?;
        let index = number.checked_sub(FIRST_NUMBER).and_then(|index| usize::try_from(index).ok());
        let index = index.filter(|index| *index < self.orders.len()).ok_or_else(unknown)?;
        if self.config.form == Form::V4r8 || request.has("sEigyouDay") {
            let day = request.needed("sEigyouDay")?;
            let order = &self.orders[index];
            if times::day(order.day) != day && times::day(order.placed_on) != day {
                return Err(Refusal::Parameter("sEigyouDay is no day of the order".to_owned()));
            }
        }
        Ok(index)
    }

    fn check_state(&self, index: usize, family: Family) -> Result<(), Refusal> {
        Err(family.state(match self.orders[index].state {
            State::Filled => 294,
            State::Canceled => 295,
            State::Lapsed => 293,
            State::Changing(_) => 291,
            State::Canceling => 292,
            _ => return Ok(()),
        }))
    }

    /// `CLMKabuCorrectOrder`; tells the order's place.
    pub(crate) fn correct_order(&mut self, request: &Request) -> Result<usize, Refusal> {
        let index = self.named(request)?;
        self.check_second_password(request, Family::Correct)?;
        if self.is_closed() {
            return Err(Family::Correct.closed());
        }
        self.check_state(index, Family::Correct)?;
        let change = self.read_change(request, index).inspect_err(|refusal| {
            if matches!(refusal, Refusal::Business(..)) {
                self.orders[index].state = State::ChangeFailed;
            }
        })?;
        self.orders[index].state = State::Changing(change);
        self.notice(index, "2", None);
        if !self.faults.has(FaultKind::HoldChanges) {
            self.finish_change(index);
        }
        Ok(index)
    }

    fn read_change(&self, request: &Request, index: usize) -> Result<Change, Refusal> {
        let order = &self.orders[index];
        let mut terms = order.terms.clone();
        let said = |name: &str| Some(request.text(name)).filter(|text| !matches!(*text, "*" | ""));
        let mut change = Change::default();
        if said("sCondition").is_some_and(|condition| condition != terms.condition.to_string()) {
            return Err(CONDITION_STAYS);
        }
        if said("sOrderSuryou").is_some() {
            let quantity = shares_of(request, "sOrderSuryou")?;
            if quantity > terms.quantity {
                return Err(INCREASE);
            }
            let lot = self.issues[terms.issue].lot.shares();
            if quantity <= order.filled || !quantity.is_multiple_of(lot) {
                return Err(Family::Correct.state(298));
            }
            change.quantity = Some(quantity);
        }
        let price_field = match terms.trigger {
            Some(_) if !order.is_triggered && said("sGyakusasiPrice").is_some() => {
                "sGyakusasiPrice"
            }
            Some(_) if !order.is_triggered && self.config.form == Form::V4r8 => {
                if said("sOrderPrice").is_some() {
                    return Err(STOP_REFUSED);
                }
                "sGyakusasiPrice"
            }
            _ => "sOrderPrice",
        };
        if said(price_field).is_some() {
            if terms.price.is_none() {
                let text = format!("{price_field}: a market order stays one here");
                return Err(Refusal::Parameter(text));
            }
            change.price = Some(price_of(request, price_field)?);
        }
        if said("sGyakusasiZyouken").is_some_and(|text| text != "0" || terms.trigger.is_some()) {
            if order.is_triggered || terms.trigger.is_none() {
                return Err(Family::Correct.state(296));
            }
            change.trigger = Some(price_of(request, "sGyakusasiZyouken")?);
        }
        if let Some(day) = said("sOrderExpireDay") {
            change.expires =
                self.read_expiry(day, terms.condition).map_err(|refusal| match refusal {
                    EXPIRY => Refusal::Business(12_120, "注文期日が誤っています"),
                    EXPIRY_CONDITION => Refusal::Business(12_033, "期日の訂正はできません"),
                    other => other,
                })?;
            if change.expires.is_none() || terms.expires.is_none() {
                return Err(Refusal::Business(12_033, "期日の訂正はできません"));
            }
        }
        terms.quantity = change.quantity.unwrap_or(terms.quantity);
        terms.price = change.price.or(terms.price);
        terms.trigger = change.trigger.or(terms.trigger);
        let of_change = |refusal| match refusal {
            Refusal::Business(code, text) => Refusal::Business(Family::Correct.code(code), text),
            other => other,
        };
        self.check_prices(&terms).map_err(of_change)?;
        if change.trigger.is_some() && self.is_trigger_reached(&terms) {
            return Err(of_change(STOP_REACHED));
        }
        if terms.credit == '0' && terms.is_buy() || terms.opens_position() {
            let released = value(self.worst(&order.terms), order.leaves());
            let shares = terms.quantity - order.filled;
            self.check_balance(&terms, shares, released).map_err(of_change)?;
        }
        Ok(change)
    }

    /// Does a change that was accepted; where the exchange refuses it, that is told by a notice.
    pub(crate) fn finish_change(&mut self, index: usize) {
        let State::Changing(change) = self.orders[index].state else { return };
        let last_of = |date| TsNanos::from_jst(date, (24 * 3_600 - 1) * NANOS_PER_SECOND);
        let change = OrderModify {
            quantity: change.quantity.map(Quantity::new),
            price: change.price,
            trigger_price: change.trigger,
            expire_time: change.expires.and_then(last_of),
        };
        let id = self.orders[index].number.to_string();
        if self.exchange.check_change(self.market_time, &id, change).is_err() {
            return self.fail_change(index);
        }
        self.execute(OrderCommand::Modify { client_order_id: Arc::from(id.as_str()), change });
        self.take_events();
        if matches!(self.orders[index].state, State::Changing(_)) {
            self.fail_change(index);
        }
    }

    /// A change that was accepted, or a cancel, fails.
    pub(crate) fn fail_change(&mut self, index: usize) {
        let (state, notice) = match self.orders[index].state {
            State::Changing(_) => (State::ChangeFailed, "8"),
            State::Canceling => (State::CancelFailed, "9"),
            _ => return,
        };
        self.orders[index].state = state;
        self.notice(index, notice, None);
    }

    /// `CLMKabuCancelOrder`; tells the order's place.
    pub(crate) fn cancel_order(&mut self, request: &Request) -> Result<usize, Refusal> {
        let index = self.named(request)?;
        self.check_second_password(request, Family::Cancel)?;
        if self.is_closed() {
            return Err(Family::Cancel.closed());
        }
        self.check_state(index, Family::Cancel)?;
        self.cancel(index);
        Ok(index)
    }

    /// Cancels an open order.
    pub(crate) fn cancel(&mut self, index: usize) {
        self.orders[index].state = State::Canceling;
        self.notice(index, "3", None);
        if !self.faults.has(FaultKind::HoldChanges) {
            self.finish_cancel(index);
        }
    }

    /// Does a cancel that was accepted.
    pub(crate) fn finish_cancel(&mut self, index: usize) {
        let id = self.orders[index].number.to_string();
        self.execute(OrderCommand::Cancel { client_order_id: Arc::from(id.as_str()) });
        self.take_events();
        self.fail_change(index);
    }

    /// `CLMKabuCancelOrderAll`.
    pub(crate) fn cancel_all(&mut self, request: &Request) -> Result<(), Refusal> {
        self.check_second_password(request, Family::Cancel)?;
        if self.is_closed() {
            return Err(Family::Cancel.closed());
        }
        for index in self.open.clone() {
            if self.check_state(index, Family::Cancel).is_ok() {
                self.cancel(index);
            }
        }
        Ok(())
    }
}

/// The order as the exchange takes it.
fn exchange_request(order: &Order) -> OrderRequest {
    let terms = &order.terms;
    let order_type = match (terms.trigger.is_some(), terms.price.is_some()) {
        (false, false) => OrderType::Market,
        (false, true) => OrderType::Limit,
        (true, false) => OrderType::StopMarket,
        (true, true) => OrderType::StopLimit,
    };
    let time_in_force = match (terms.condition, terms.expires) {
        ('2', _) => TimeInForce::AtTheOpen,
        ('4' | '6', _) => TimeInForce::AtTheClose,
        (_, Some(_)) => TimeInForce::Gtd,
        _ => TimeInForce::Day,
    };
    let last_of = |date| TsNanos::from_jst(date, (24 * 3_600 - 1) * NANOS_PER_SECOND);
    let is_funari = terms.condition == '6';
    OrderRequest {
        client_order_id: Arc::from(order.number.to_string().as_str()),
        instrument: ix(terms.issue),
        side: if terms.is_buy() { OrderSide::Buy } else { OrderSide::Sell },
        order_type,
        quantity: Quantity::new(terms.quantity),
        price: terms.price,
        trigger_price: terms.trigger,
        trigger_type: terms.trigger.map(|_| TriggerType::Last),
        time_in_force,
        expire_time: terms.expires.and_then(last_of),
        post_only: false,
        reduce_only: false,
        tags: if is_funari { vec!["close_strategy=funari".to_owned()] } else { Vec::new() },
    }
}
