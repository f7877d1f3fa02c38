//! The direct path of strategies: what a program can ask the host for, which are the imports of
//! `wit/strategy` and nothing else.

use std::sync::Arc;

use domain::fault::FaultKind;
use domain::strategy::{Capabilities, LogLevel};
use domain::{GuestLimit, OrderSide};
use wasmtime::{AsContextMut, Caller, Error, Linker, Result};

use crate::abi::{self, Enumeration, Lift, Lower};
use crate::feeder;
use crate::proof::HostImport;
use crate::state::{Guest, State};

/// `aggressor.side`, by its number in the contract.
const NO_AGGRESSOR: u32 = 0;
const BUYER: u32 = 1;
const SELLER: u32 = 2;

/// Defines every import of a program as it sees it: numbers, pointers and lengths.
pub(crate) fn define(linker: &mut Linker<State>, imports: &[HostImport]) -> Result<()> {
    // A program may list an import twice.
    linker.allow_shadowing(true);
    for HostImport { module, name, interface, function } in imports {
        match (interface.as_str(), function.as_str()) {
            ("log", "write") => linker.func_wrap(module, name, log_write)?,
            ("parameters", "report") => linker.func_wrap(module, name, report)?,
            ("actions", "act") => linker.func_wrap(module, name, act)?,
            ("portfolio", "get-account") => linker.func_wrap(module, name, get_account)?,
            ("portfolio", "get-position") => linker.func_wrap(module, name, get_position)?,
            ("portfolio", "working-orders") => linker.func_wrap(module, name, working_orders)?,
            ("aggressor", "of-trade") => linker.func_wrap(module, name, of_trade)?,
            _ => {
                return Err(Error::msg(format!(
                    "this Kumiki has no function `{function}` in the interface `{interface}`"
                )));
            }
        };
    }
    Ok(())
}

/// Which optional imports a component uses, by interface and function.
pub(crate) fn capabilities<'a>(imports: impl Iterator<Item = (&'a str, &'a str)>) -> Capabilities {
    let mut found = Capabilities::default();
    for import in imports {
        match import {
            ("portfolio", "working-orders") => found.working_orders = true,
            ("portfolio", _) => found.portfolio = true,
            ("aggressor", _) => found.aggressor = true,
            _ => {}
        }
    }
    found
}

/// Something of the calling module; refused while it may not call.
#[inline]
fn of_guest<T>(caller: &mut Caller<'_, State>, take: impl FnOnce(&Arc<Guest>) -> T) -> Result<T> {
    if !caller.data().may_leave && !feeder::takes_leave(&mut *caller) {
        let text = "it called the host from inside its allocator".to_owned();
        return caller.data_mut().breach(FaultKind::Protocol(text));
    }
    let state = caller.data_mut();
    match &state.guest {
        Some(guest) => Ok(take(guest)),
        None => state.breach(FaultKind::Protocol("it called the host while it was made".into())),
    }
}

/// Writes a record that is numbers alone where the caller wants it. Strategies ask for such a record with
/// every trade, so nothing is kept and nothing counted on the way.
#[inline]
fn answer(
    caller: &mut Caller<'_, State>,
    pointer: u32,
    record: impl FnOnce(&mut State) -> Result<abi::Words>,
) -> Result<()> {
    let memory = of_guest(caller, |guest| guest.memory)?;
    let (memory, state) = memory.data_and_store_mut(&mut *caller);
    let record = record(state)?.map(u64::to_le);
    abi::put_at(memory, 8, pointer, bytemuck::bytes_of(&record))
}

/// Takes something out of the caller's memory, within what this call may still copy out.
fn take(
    caller: &mut Caller<'_, State>,
    take: impl FnOnce(&mut Lift<'_>, &mut State) -> Result<(), FaultKind>,
) -> Result<()> {
    let memory = of_guest(caller, |guest| guest.memory)?;
    let (memory, state) = memory.data_and_store_mut(&mut *caller);
    let mut lift = Lift::new(memory, state.limits.result_bytes, state.bytes_left);
    let taken = take(&mut lift, state);
    state.bytes_left = lift.left();
    taken.or_else(|kind| state.breach(kind))?;
    feeder::end_batch(caller);
    Ok(())
}

fn log_write(
    mut caller: Caller<'_, State>,
    level: u32,
    ts_event: u64,
    pointer: u32,
    length: u32,
) -> Result<()> {
    take(&mut caller, |lift, state| {
        let known = u8::try_from(level).ok().and_then(LogLevel::of_code);
        let level = known.ok_or_else(|| FaultKind::Protocol(format!("{level} is no log level")))?;
        state.check_line(level, length as usize)?;
        state.write(level, ts_event, lift.text_at(pointer, length)?)
    })
}

fn report(
    mut caller: Caller<'_, State>,
    name: u32,
    name_length: u32,
    value: u32,
    value_length: u32,
) -> Result<()> {
    take(&mut caller, |lift, state| {
        state.check_report(name_length as usize, value_length as usize)?;
        let name = lift.text_at(name, name_length)?;
        state.report(name, lift.text_at(value, value_length)?)
    })
}

fn act(mut caller: Caller<'_, State>, pointer: u32, length: u32) -> Result<()> {
    take(&mut caller, |lift, state| {
        state.limits.allow(GuestLimit::Actions, state.actions.len() + length as usize)?;
        let before = state.actions.len();
        let State { limits, actions, .. } = &mut *state;
        abi::actions(lift, limits, (pointer, length), actions)?;
        state.count_actions(before)
    })
}

fn get_account(mut caller: Caller<'_, State>, pointer: u32) -> Result<()> {
    answer(&mut caller, pointer, |state| Ok(abi::account(&state.portfolio.account)))
}

/// The instrument is a number of 16 bits in one of 32, of which the others do not count.
pub(crate) fn get_position(
    mut caller: Caller<'_, State>,
    instrument: u32,
    pointer: u32,
) -> Result<()> {
    let instrument = instrument & u32::from(u16::MAX);
    answer(&mut caller, pointer, |state| Ok(abi::position(&state.position_of(instrument)?)))
}

fn working_orders(mut caller: Caller<'_, State>, pointer: u32) -> Result<()> {
    let guest = of_guest(&mut caller, Arc::clone)?;
    // The strategy's allocator runs meanwhile, and is not to be answered anything.
    feeder::forget_answers(&mut caller);
    // Taken out for the time of the call.
    let orders = std::mem::take(&mut caller.data_mut().portfolio.working_orders);
    let mut context = caller.as_context_mut();
    let mut lower = Lower::new(&mut context, &guest);
    abi::working_orders(&mut lower, &orders)?;
    lower.finish_at(4, pointer)?;
    caller.data_mut().portfolio.working_orders = orders;
    Ok(())
}

/// Live trading estimates the side; the market data of a replay has none.
fn of_trade(mut caller: Caller<'_, State>, row: u32) -> Result<u32> {
    of_guest(&mut caller, |_| ())?;
    Ok(match caller.data().aggressor_of(row) {
        None => NO_AGGRESSOR,
        Some(OrderSide::Buy) => BUYER,
        Some(OrderSide::Sell) => SELLER,
    })
}
