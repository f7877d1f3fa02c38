//! What a strategy can ask the host for, on the general path.

use domain::{GuestLimit, OrderSide};
use wasmtime::Result;

use super::strategy_bindings::kumiki::strategy::{
    actions, aggressor, log, parameters, portfolio, types,
};
use super::{from_guest, to_guest};
use crate::state::{Breach, State};

impl types::Host for State {}

impl log::Host for State {
    fn write(&mut self, level: log::Level, ts_event: u64, message: String) -> Result<()> {
        // Here the engine has copied it already, as far as its own limit lets it.
        let level = level.into();
        let taken = self.check_line(level, message.len());
        let taken = taken.and_then(|()| self.spend(message.len()));
        let taken = taken.and_then(|()| self.write(level, ts_event, &message));
        taken.or_else(|kind| self.breach(kind))
    }
}

impl parameters::Host for State {
    fn report(&mut self, name: String, value: String) -> Result<()> {
        // Here the engine has copied both already, as far as its own limit lets it.
        let taken = self.check_report(name.len(), value.len());
        let taken = taken.and_then(|()| self.spend(name.len() + value.len()));
        let taken = taken.and_then(|()| self.report(&name, &value));
        taken.or_else(|kind| self.breach(kind))
    }
}

impl actions::Host for State {
    fn act(&mut self, actions: Vec<types::Action>) -> Result<()> {
        let taken = self.take(actions);
        taken.or_else(|kind| self.breach(kind))
    }
}

impl State {
    /// Takes actions within the limits that the direct path has. Here the engine has copied them
    /// already, as far as its own limit on what a guest hands over lets it.
    fn take(&mut self, actions: Vec<types::Action>) -> Breach<()> {
        self.limits.allow(GuestLimit::Actions, self.actions.len() + actions.len())?;
        for action in &actions {
            from_guest::check(action, &self.limits)?;
        }
        self.spend(actions.iter().map(from_guest::bytes_of).sum())?;
        let before = self.actions.len();
        self.actions.extend(actions.into_iter().map(from_guest::action));
        self.count_actions(before)
    }
}

impl portfolio::Host for State {
    fn get_account(&mut self) -> Result<types::Account> {
        Ok(to_guest::account(&self.portfolio.account))
    }

    fn get_position(&mut self, instrument: u16) -> Result<types::Position> {
        Ok(to_guest::position(&self.position_of(u32::from(instrument))?))
    }

    fn working_orders(&mut self) -> Result<Vec<types::Order>> {
        Ok(self.portfolio.working_orders.iter().map(to_guest::working_order).collect())
    }
}

impl aggressor::Host for State {
    /// Live trading estimates the side; the market data of a replay has none.
    fn of_trade(&mut self, row: u32) -> Result<aggressor::Side> {
        Ok(match self.aggressor_of(row) {
            None => aggressor::Side::NoAggressor,
            Some(OrderSide::Buy) => aggressor::Side::Buyer,
            Some(OrderSide::Sell) => aggressor::Side::Seller,
        })
    }
}
