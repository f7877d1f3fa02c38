//! Dialects of brokers: linked, made and called.

mod from_guest;
mod to_guest;

use domain::fault::FaultKind;
use domain::order::Rejection;
use domain::order_mapping::{
    Allocation, BrokerAnswer, BrokerChange, BrokerFrame, BrokerOrder, BrokerOutcome, BrokerRequest,
    BrokerRow, DialectDescription, Field, ListedFill, OrderPlan,
};
use wasmtime::component::{Component, InstancePre, Linker};
use wasmtime::{Error, Result, Store};

use super::HOST_BYTES_PER_BYTE;
use super::order_mapping_bindings as bindings;
use crate::state::State;
use bindings::exports::kumiki::order_mapping::{guest as wit, venue as wit_venue};
use from_guest::{Answered, Operation, Reader};

/// The interface that a dialect need not export: those of 1.0 do not.
const VENUE: &str = "kumiki:order-mapping/venue@1.1.0";

/// A dialect that can be instantiated.
pub(crate) struct MappingReady {
    ready: InstancePre<State>,
    guest: wit::GuestIndices,
    venue: Option<wit_venue::GuestIndices>,
}

impl MappingReady {
    /// A component, linked with nothing: a dialect imports nothing.
    pub(crate) fn new(component: &Component) -> Result<Self> {
        let ready = Linker::new(component.engine()).instantiate_pre(component)?;
        let guest = wit::GuestIndices::new(&ready)?;
        let has_venue = component.get_export_index(None, VENUE).is_some();
        let venue = has_venue.then(|| wit_venue::GuestIndices::new(&ready)).transpose()?;
        Ok(Self { ready, guest, venue })
    }

    pub(crate) fn instantiate(&self, store: &mut Store<State>) -> Result<Mapping> {
        let bytes = store.data().limits.result_bytes;
        store.set_hostcall_fuel(bytes.saturating_mul(HOST_BYTES_PER_BYTE));
        let instance = self.ready.instantiate(&mut *store)?;
        let guest = self.guest.load(&mut *store, &instance)?;
        let venue = self.venue.as_ref().map(|venue| venue.load(&mut *store, &instance));
        Ok(Mapping { guest, venue: venue.transpose()? })
    }
}

/// One running dialect. What it says is held against the contract before it is handed on.
pub(crate) struct Mapping {
    guest: wit::Guest,
    venue: Option<wit_venue::Guest>,
}

/// Reads what a call gave; what breaks the contract ends the call with a fault.
fn read<T>(
    store: &mut Store<State>,
    convert: impl FnOnce(&mut Reader) -> Answered<T>,
) -> Result<T> {
    let state = store.data_mut();
    let mut reader = Reader::new(state.limits.result_bytes);
    convert(&mut reader).or_else(|kind| state.breach(kind))
}

/// There is an answer for each row.
fn as_many(what: &str, answers: usize, rows: usize) -> Answered<()> {
    if answers == rows {
        return Ok(());
    }
    Err(FaultKind::Protocol(format!("it answered {answers} {what} for {rows} rows")))
}

impl Mapping {
    const fn guest(&self) -> &wit::Guest {
        &self.guest
    }

    /// The interface of 1.1. The host asks a dialect of 1.0 nothing of it.
    fn venue(&self) -> Result<&wit_venue::Guest> {
        self.venue.as_ref().ok_or_else(|| Error::msg(format!("the host asks it for `{VENUE}`")))
    }

    pub(crate) fn describe(&self, store: &mut Store<State>) -> Result<DialectDescription> {
        let found = self.guest().call_describe(&mut *store)?;
        let venue = self.venue.as_ref();
        let scope = venue.map(|venue| venue.call_scope_of(&mut *store)).transpose()?;
        read(store, |reader| reader.description(found, scope))
    }

    pub(crate) fn plan(
        &self,
        store: &mut Store<State>,
        order: &BrokerOrder,
    ) -> Result<Result<OrderPlan, Rejection>> {
        let found = self.guest().call_plan(&mut *store, &to_guest::order(order)?)?;
        read(store, |reader| reader.answer_of(found, Reader::plan))
    }

    pub(crate) fn new_order(
        &self,
        store: &mut Store<State>,
        order: &BrokerOrder,
        account: &str,
        allocations: &[Allocation],
    ) -> Result<Result<BrokerRequest, Rejection>> {
        let allocations: Vec<_> = allocations.iter().map(to_guest::allocation).collect();
        let order = to_guest::order(order)?;
        let found = self.guest().call_new_order(&mut *store, &order, account, &allocations)?;
        read(store, |reader| {
            reader.answer_of(found, |reader, found| reader.request(found, Operation::New))
        })
    }

    pub(crate) fn modify_order(
        &self,
        store: &mut Store<State>,
        change: &BrokerChange,
    ) -> Result<Result<BrokerRequest, Rejection>> {
        let found = self.guest().call_modify_order(&mut *store, &to_guest::change(change)?)?;
        read(store, |reader| {
            reader.answer_of(found, |reader, found| reader.request(found, Operation::Modify))
        })
    }

    pub(crate) fn cancel_order(
        &self,
        store: &mut Store<State>,
        venue_order_id: &str,
        business_day: Option<&str>,
    ) -> Result<Result<BrokerRequest, Rejection>> {
        let found = self.guest().call_cancel_order(&mut *store, venue_order_id, business_day)?;
        read(store, |reader| {
            reader.answer_of(found, |reader, found| reader.request(found, Operation::Cancel))
        })
    }

    pub(crate) fn cancel_all(&self, store: &mut Store<State>) -> Result<BrokerRequest> {
        let found = self.guest().call_cancel_all(&mut *store)?;
        read(store, |reader| reader.request(found, Operation::CancelAll))
    }

    pub(crate) fn list_orders(&self, store: &mut Store<State>) -> Result<BrokerRequest> {
        let found = self.guest().call_list_orders(&mut *store)?;
        read(store, |reader| reader.request(found, Operation::List))
    }

    pub(crate) fn list_fills(
        &self,
        store: &mut Store<State>,
        venue_order_id: &str,
        business_day: Option<&str>,
    ) -> Result<Result<BrokerRequest, Rejection>> {
        let found = self.venue()?.call_list_fills(&mut *store, venue_order_id, business_day)?;
        read(store, |reader| {
            reader.answer_of(found, |reader, found| reader.request(found, Operation::Fills))
        })
    }

    pub(crate) fn judge(
        &self,
        store: &mut Store<State>,
        answer: &BrokerAnswer,
    ) -> Result<BrokerOutcome> {
        let found = self.guest().call_judge(&mut *store, &to_guest::answer(answer))?;
        read(store, |reader| reader.outcome(found))
    }

    /// As many answers as rows.
    pub(crate) fn read_orders(
        &self,
        store: &mut Store<State>,
        rows: &[&[Field]],
    ) -> Result<Vec<Result<BrokerRow, String>>> {
        let given: Vec<_> = rows.iter().map(|row| to_guest::fields(row)).collect();
        let found = self.guest().call_read_orders(&mut *store, &given)?;
        read(store, |reader| {
            as_many("orders", found.len(), rows.len())?;
            found.into_iter().map(|row| reader.or_words(row, Reader::row)).collect()
        })
    }

    /// As many answers as rows.
    pub(crate) fn read_fills(
        &self,
        store: &mut Store<State>,
        rows: &[&[Field]],
    ) -> Result<Vec<Result<ListedFill, String>>> {
        let given: Vec<_> = rows.iter().map(|row| to_guest::fields(row)).collect();
        let found = self.venue()?.call_read_fills(&mut *store, &given)?;
        read(store, |reader| {
            as_many("fills", found.len(), rows.len())?;
            let listed = |reader: &mut Reader, fill| reader.listed_fill(&fill).map(Ok);
            found.into_iter().map(|fill| reader.or_words(fill, listed)).collect()
        })
    }

    pub(crate) fn read_frame(
        &self,
        store: &mut Store<State>,
        fields: &[Field],
    ) -> Result<Result<BrokerFrame, String>> {
        let found = self.guest().call_read_frame(&mut *store, &to_guest::fields(fields))?;
        read(store, |reader| reader.or_words(found, Reader::frame))
    }
}
