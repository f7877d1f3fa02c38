//! Changes of working orders.

use domain::{OrderCommand, OrderModify, Quantity, ShortText, TsNanos};

use super::broker::Broker;
use super::faults::FaultKind;
use super::ledger::value;
use super::order::{Change, State};
use super::refusal::{
    CONDITION_STAYS, EXPIRY, EXPIRY_CONDITION, Family, INCREASE, Refusal, STOP_REACHED,
    STOP_REFUSED,
};
use super::request::Request;
use super::terms::{price_of, shares_of};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

impl Broker {
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
            Some(_) if !order.is_triggered && self.config.form.is_vendors() => {
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
        let is_vendors = self.config.form.is_vendors();
        if is_vendors && order.is_triggered && said("sGyakusasiPrice").is_some() {
            return Err(Family::Correct.state(296));
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
        self.execute(OrderCommand::Modify {
            client_order_id: ShortText::from(id.as_str()),
            change,
        });
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
}
