//! The way out of a strategy. In wasm these are the contract's imports, each called directly so that
//! a component imports only what its strategy uses. Natively [`crate::testing`] answers.

#[cfg(target_arch = "wasm32")]
pub(crate) use crate::wasm::imports::{
    account, aggressor_side, log, position, report, set_now, working_orders,
};

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use crate::testing::native::{
    account, aggressor_side, log, position, report, set_now, working_orders,
};
