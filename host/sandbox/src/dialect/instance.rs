//! One running dialect.

use std::sync::Arc;

use domain::fault::Identity;
use domain::limits::DIALECT_ROWS_PER_CALL;
use domain::order::{ReasonCode, Rejection};
use domain::order_mapping::{
    Allocation, BrokerAnswer, BrokerChange, BrokerFrame, BrokerOrder, BrokerOutcome, BrokerRequest,
    BrokerRow, DialectDescription, Field, ListedFill, Mapped, OrderMapping, OrderPlan, Verdict,
};
use wasmtime::{Result as Called, Store};

use super::check;
use super::renewed::Renewed;
use crate::general::{Mapping, MappingReady};
use crate::state::State;

/// One running dialect of a broker, with its own memory. It is made anew after a fault, and after
/// [`domain::limits::DIALECT_CALLS_PER_INSTANCE`] calls, so that no dialect can rely on what it kept.
pub struct DialectInstance {
    program: Renewed<MappingReady>,
    description: Arc<DialectDescription>,
}

/// What a dialect says of itself, held against the limits.
pub(super) fn describe(program: &mut Renewed<MappingReady>) -> Mapped<DialectDescription> {
    program.call("describe", Mapping::describe)
}

impl DialectInstance {
    pub(super) const fn new(
        program: Renewed<MappingReady>,
        description: Arc<DialectDescription>,
    ) -> Self {
        Self { program, description }
    }

    /// Fuel used so far by all calls; the same on every machine and every run.
    #[must_use]
    pub const fn fuel_used(&self) -> u64 {
        self.program.fuel_used()
    }

    fn call<R>(
        &mut self,
        export: &'static str,
        act: impl FnOnce(&Mapping, &mut Store<State>) -> Called<R>,
    ) -> Mapped<R> {
        self.program.call(export, act)
    }

    /// Reads rows in calls of limited size; what is too large is not handed over.
    fn read_rows<R>(
        &mut self,
        export: &'static str,
        rows: &[Vec<Field>],
        read: impl Fn(&Mapping, &mut Store<State>, &[&[Field]]) -> Called<Vec<Result<R, String>>>,
    ) -> Mapped<Vec<Result<R, String>>> {
        let mut all = Vec::with_capacity(rows.len());
        for rows in rows.chunks(DIALECT_ROWS_PER_CALL) {
            let checked: Vec<_> = rows.iter().map(|row| check::fields(row)).collect();
            let fit = rows.iter().zip(&checked).filter(|(_, checked)| checked.is_ok());
            let fit: Vec<&[Field]> = fit.map(|(row, _)| row.as_slice()).collect();
            let mut read = self.call(export, |calls, store| read(calls, store, &fit))?.into_iter();
            for checked in checked {
                match checked {
                    Err(why) => all.push(Err(why)),
                    // There is an answer for each row that was asked about.
                    Ok(()) => all.extend(read.next()),
                }
            }
        }
        Ok(all)
    }
}

impl std::fmt::Debug for DialectInstance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DialectInstance")
            .field("component", &self.program.identity())
            .finish_non_exhaustive()
    }
}

impl OrderMapping for DialectInstance {
    fn identity(&self) -> Identity {
        self.program.identity()
    }

    fn description(&self) -> &DialectDescription {
        &self.description
    }

    fn plan(&mut self, order: &BrokerOrder) -> Mapped<Result<OrderPlan, Rejection>> {
        match check::order(order) {
            Err(rejection) => Ok(Err(rejection)),
            Ok(()) => self.call("plan", |calls, store| calls.plan(store, order)),
        }
    }

    fn new_order(
        &mut self,
        order: &BrokerOrder,
        account: &str,
        allocations: &[Allocation],
    ) -> Mapped<Result<BrokerRequest, Rejection>> {
        match check::order(order).and_then(|()| check::allocations(account, allocations)) {
            Err(rejection) => Ok(Err(rejection)),
            Ok(()) => self.call("new-order", |calls, store| {
                calls.new_order(store, order, account, allocations)
            }),
        }
    }

    fn modify_order(&mut self, change: &BrokerChange) -> Mapped<Result<BrokerRequest, Rejection>> {
        match check::change(change) {
            Err(rejection) => Ok(Err(rejection)),
            Ok(()) => self.call("modify-order", |calls, store| calls.modify_order(store, change)),
        }
    }

    fn cancel_order(
        &mut self,
        venue_order_id: &str,
        business_day: Option<&str>,
    ) -> Mapped<Result<BrokerRequest, Rejection>> {
        match check::order_id(venue_order_id, business_day) {
            Err(rejection) => Ok(Err(rejection)),
            Ok(()) => self.call("cancel-order", |calls, store| {
                calls.cancel_order(store, venue_order_id, business_day)
            }),
        }
    }

    fn cancel_all(&mut self) -> Mapped<BrokerRequest> {
        self.call("cancel-all", Mapping::cancel_all)
    }

    fn list_orders(&mut self) -> Mapped<BrokerRequest> {
        self.call("list-orders", Mapping::list_orders)
    }

    fn list_fills(
        &mut self,
        venue_order_id: &str,
        business_day: Option<&str>,
    ) -> Mapped<Result<BrokerRequest, Rejection>> {
        if self.description.fill_rows.is_none() {
            let text = "NO_DETAILS: the dialect has no request for the fills of an order";
            return Ok(Err(Rejection::new(ReasonCode::VenueUnsupported, text)));
        }
        match check::order_id(venue_order_id, business_day) {
            Err(rejection) => Ok(Err(rejection)),
            Ok(()) => self.call("list-fills", |calls, store| {
                calls.list_fills(store, venue_order_id, business_day)
            }),
        }
    }

    fn judge(&mut self, answer: &BrokerAnswer) -> Mapped<BrokerOutcome> {
        if let Err(why) = check::answer(answer) {
            let text = Rejection::new(ReasonCode::InternalError, format!("ANSWER: {why}")).text;
            return Ok(BrokerOutcome { verdict: Verdict::Unknown(text), venue_closed: false });
        }
        self.call("judge", |calls, store| calls.judge(store, answer))
    }

    fn read_orders(&mut self, rows: &[Vec<Field>]) -> Mapped<Vec<Result<BrokerRow, String>>> {
        self.read_rows("read-orders", rows, Mapping::read_orders)
    }

    fn read_fills(&mut self, rows: &[Vec<Field>]) -> Mapped<Vec<Result<ListedFill, String>>> {
        self.read_rows("read-fills", rows, Mapping::read_fills)
    }

    fn read_frame(&mut self, fields: &[Field]) -> Mapped<Result<BrokerFrame, String>> {
        match check::fields(fields) {
            Err(why) => Ok(Err(why)),
            Ok(()) => self.call("read-frame", |calls, store| calls.read_frame(store, fields)),
        }
    }
}
