//! How values go into a component's memory and come out of it: the component model's canonical ABI
//! for the types of `wit/strategy` and `wit/formula`, and no more.
//!
//! The engine can do this for any contract, at a price: a component call costs ten times a call of
//! the module inside, and a strict replay makes one for every trade. So the host calls the module
//! itself and lays out the values here. A test decodes what is written, and writes what is read,
//! with nothing but the contract's text as its guide.

mod enumeration;
mod formula;
mod from_guest;
mod lift;
mod lower;
#[cfg(test)]
mod tests;
mod to_guest;

pub(crate) use enumeration::Enumeration;
pub(crate) use formula::{
    DESCRIPTION_BYTES, INPUT_BYTES, PARAMETER_BYTES, description, inputs, values,
};
pub(crate) use from_guest::{ACTION_BYTES, actions, refusal};
pub(crate) use lift::Lift;
pub(crate) use lower::{Layout, Lower, put_at};
pub(crate) use to_guest::{
    OrderEventWords, WindowArguments, Words, account, account_events, bars, columns, instruments,
    one_bar, one_trade, order_event_words, order_events, position, working_orders,
};
