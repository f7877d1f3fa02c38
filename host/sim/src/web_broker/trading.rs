//! New orders, changes, cancels: what is checked, and what is handed to the exchange.

use domain::{
    Money, OrderCommand, OrderRequest, OrderSide, OrderType, Price, Quantity, ShortText,
    TimeInForce, TriggerType, TsNanos,
};
use secrecy::ExposeSecret as _;

use super::broker::{Broker, ix};
use super::config::Form;
use super::faults::FaultKind;
use super::ledger::value;
use super::limits::{ORDER_SHARES_MAX, ORDERS_KEPT_MAX};
use super::order::{FIRST_NUMBER, Order, State, Terms};
use super::refusal::{
    FUNARI_MARKET, Family, LOT, NO_CAPACITY, NO_CASH_TO_TAKE, NO_SHARES, PRICE_LIMIT, Refusal,
    STOP_CONDITION, STOP_LIMIT, STOP_REACHED, STOP_TICK, TICK, TOO_MUCH,
};
use super::request::Request;
use super::times;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

impl Broker {
    /// Whether the second password is right.
    pub(crate) fn is_second_password(&self, request: &Request) -> bool {
        request.text("sSecondPassword") == self.config.second_password.expose_secret()
    }

    /// Whether the password of the login is right.
    pub(crate) fn is_login_password(&self, request: &Request) -> bool {
        request.text("sPassword") == self.config.password.expose_secret()
    }

    /// Whether the authentication id of the login is right.
    pub(crate) fn is_auth_id(&self, request: &Request) -> bool {
        request.text("sAuthId") == self.config.auth_id.expose_secret()
    }

    pub(super) fn check_second_password(
        &self,
        request: &Request,
        family: Family,
    ) -> Result<(), Refusal> {
        if self.is_second_password(request) {
            return Ok(());
        }
        if !request.has("sSecondPassword") {
            return Err(Refusal::Parameter("sSecondPassword is missing".to_owned()));
        }
        Err(match self.config.form {
            Form::Spec => Refusal::Session(4, "second password is wrong."),
            Form::V4r8 | Form::V4r10 if request.text("sSecondPassword").is_empty() => {
                family.malformed_password()
            }
            Form::V4r8 | Form::V4r10 => family.wrong_password(),
        })
    }

    /// `CLMKabuNewOrder`; tells the order's place.
    pub(crate) fn new_order(&mut self, request: &Request) -> Result<usize, Refusal> {
        let terms = self.read_terms(request)?;
        self.check_second_password(request, Family::New)?;
        if self.is_closed() {
            return Err(Family::New.closed());
        }
        // It was let in with one.
        let p_no = request.text("p_no").parse().unwrap_or_default();
        self.place(terms, Some(p_no))
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

    pub(super) fn worst(&self, terms: &Terms) -> Price {
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

    pub(super) fn check_prices(&self, terms: &Terms) -> Result<(), Refusal> {
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

    pub(super) fn is_trigger_reached(&self, terms: &Terms) -> bool {
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
    pub(super) fn check_balance(
        &self,
        terms: &Terms,
        shares: u64,
        released: Money,
    ) -> Result<(), Refusal> {
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

    /// Takes an order that was read, of a request or of another channel; tells its place.
    pub(crate) fn place(&mut self, terms: Terms, p_no: Option<u64>) -> Result<usize, Refusal> {
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
            p_no,
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
            let named = terms.closes.first().map(|(number, _)| *number);
            let mut known = self.ledger.positions.iter();
            let price = known.find(|known| Some(known.number) == named).map(|known| known.price);
            self.book_fill(index, price.unwrap_or_default(), terms.quantity);
        } else if p_no.is_some() && self.faults.of_notice(FaultKind::RefuseLater) {
            self.refuse(index);
        } else {
            self.execute(command);
            self.take_events();
        }
        Ok(index)
    }

    /// The order that a request names.
    pub(super) fn named(&self, request: &Request) -> Result<usize, Refusal> {
        let unknown =
            || Refusal::Parameter("sOrderNumber is not an order of this account".to_owned());
        let number: u64 = request.needed("sOrderNumber")?.parse().map_err(|_| unknown())?;
        let index = number.checked_sub(FIRST_NUMBER).and_then(|index| usize::try_from(index).ok());
        let index = index.filter(|index| *index < self.orders.len()).ok_or_else(unknown)?;
        if self.config.form.is_vendors() || request.has("sEigyouDay") {
            let day = request.needed("sEigyouDay")?;
            let order = &self.orders[index];
            if times::day(order.day) != day && times::day(order.placed_on) != day {
                return Err(Refusal::Parameter("sEigyouDay is not a day of the order".to_owned()));
            }
        }
        Ok(index)
    }

    pub(super) fn check_state(&self, index: usize, family: Family) -> Result<(), Refusal> {
        Err(family.state(match self.orders[index].state {
            State::Filled => 294,
            State::Canceled => 295,
            State::Lapsed | State::Refused => 293,
            State::Changing(_) => 291,
            State::Canceling => 292,
            _ => return Ok(()),
        }))
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
        self.execute(OrderCommand::Cancel { client_order_id: ShortText::from(id.as_str()) });
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
        client_order_id: ShortText::from(order.number.to_string().as_str()),
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
