//! Dialects of brokers: linked, made and called.

mod from_guest;
mod to_guest;

use domain::fault::FaultKind;
use domain::order::Rejection;
use domain::order_mapping::{
    Allocation, BrokerAnswer, BrokerChange, BrokerFrame, BrokerOrder, BrokerOutcome, BrokerRequest,
    BrokerRow, DialectDescription, Field, OrderPlan,
};
use wasmtime::component::{Component, Linker};
use wasmtime::{Result, Store};

use super::HOST_BYTES_PER_BYTE;
use super::order_mapping_bindings as bindings;
use crate::state::State;
use bindings::exports::kumiki::order_mapping::guest as wit;
use from_guest::{Answered, Operation, Reader};

/// A dialect that can be instantiated.
pub(crate) struct MappingReady(bindings::OrderMappingPre<State>);

impl MappingReady {
    /// A component, linked with nothing: a dialect imports nothing.
    pub(crate) fn new(component: &Component) -> Result<Self> {
        let linker = Linker::new(component.engine());
        bindings::OrderMappingPre::new(linker.instantiate_pre(component)?).map(Self)
    }

    pub(crate) fn instantiate(&self, store: &mut Store<State>) -> Result<Mapping> {
        let bytes = store.data().limits.result_bytes;
        store.set_hostcall_fuel(bytes.saturating_mul(HOST_BYTES_PER_BYTE));
        self.0.instantiate(store).map(Mapping)
    }
}

/// One running dialect. What it says is held against the contract before it is handed on.
pub(crate) struct Mapping(bindings::OrderMapping);

/// Reads what a call gave; what breaks the contract ends the call with a fault.
fn read<T>(
    store: &mut Store<State>,
    convert: impl FnOnce(&mut Reader) -> Answered<T>,
) -> Result<T> {
    let state = store.data_mut();
    let mut reader = Reader::new(state.limits.result_bytes);
    convert(&mut reader).or_else(|kind| state.breach(kind))
}

impl Mapping {
    fn guest(&self) -> &wit::Guest {
        self.0.kumiki_order_mapping_guest()
    }

    pub(crate) fn describe(&self, store: &mut Store<State>) -> Result<DialectDescription> {
        let found = self.guest().call_describe(&mut *store)?;
        read(store, |reader| reader.description(found))
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
            if found.len() != rows.len() {
                let (answers, rows) = (found.len(), rows.len());
                let text = format!("it answered {answers} orders for {rows} rows");
                return Err(FaultKind::Protocol(text));
            }
            found.into_iter().map(|row| reader.or_words(row, Reader::row)).collect()
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
