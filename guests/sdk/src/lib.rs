//! Write Kumiki strategies in Rust.
//!//! A strategy is a type that implements [`Strategy`]; [`register!`] makes it a component. It sees one event after
//!the other, in live trading and in replay, and sends orders through its [`Context`]. The SDK handles windows,
//!columns and calls across the sandbox.
//!
//! ```
//! use kumiki_sdk::prelude::*;
//!
//! /// Buys one lot at the first trade.
//! struct FirstTrade {
//!     bought: bool,
//! }
//!
//! impl Strategy for FirstTrade {
//!     fn new(_params: &mut Params) -> Result<Self, ParamError> {
//!         Ok(Self { bought: false })
//!     }
//!
//!     fn on_trade_tick(&mut self, context: &mut Context, trade: &Trade) {
//!         if !self.bought {
//!             self.bought = true;
//!             let lot = context.instrument(trade.instrument).lot;
//!             context.submit(Order::market(trade.instrument, Side::Buy, lot));
//!         }
//!     }
//! }
//!
//! kumiki_sdk::register!(FirstTrade);
//! # fn main() {}
//! ```
//!//! There are no callbacks for order books or quotes: replay has no past order book, so you could not test them.
//![`Price`], [`Quantity`] and [`Money`] are exact integers.
//! Test a strategy's logic without wasm with [`testing::TestHost`].

#[cfg(any(
    test,
    all(feature = "allocator", target_arch = "wasm32", not(target_feature = "atomics"))
))]
#[expect(unsafe_code, reason = "an allocator hands out memory")]
mod allocator;
mod context;
mod host;
mod model;
mod number;
mod params;
mod runner;
mod strategy;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
mod trades;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod wasm;

pub use context::Context;
pub use model::{
    Account, AccountEvent, AccountEventKind, AggressorSide, Bar, Fill, Granularity, Instrument,
    InstrumentIx, LogLevel, Narrative, Order, OrderChange, OrderEvent, OrderEventKind, OrderStatus,
    OrderType, Position, Rejection, Side, Signal, SignalKind, Split, TickBand, TimeInForce,
    Timestamp, Trade, WorkingOrder,
};
pub use number::{Money, NumberError, Price, Quantity};
pub use params::{ParamError, Params};
pub use runner::{Action, Runner, TradeSlices};
pub use strategy::Strategy;
pub use trades::{PRICES_AHEAD_MAX, Trades};

/// Everything that a strategy needs.
pub mod prelude {
    pub use crate::{
        AccountEvent, AccountEventKind, Bar, Context, Fill, InstrumentIx, Money, Order, OrderEvent,
        OrderEventKind, OrderStatus, ParamError, Params, Price, Quantity, Side, SignalKind, Split,
        Strategy, TimeInForce, Timestamp, Trade, Trades,
    };
}

/// Makes a [`Strategy`] the component's strategy. Use it once, at the top level of the crate.
#[macro_export]
macro_rules! register {
    ($strategy:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            struct Component;

            impl $crate::wasm::Slot for Component {
                type Strategy = $strategy;

                fn with<R>(
                    act: impl FnOnce(&mut Option<$crate::wasm::Machine<$strategy>>) -> R,
                ) -> R {
                    ::std::thread_local! {
                        static MACHINE: ::std::cell::RefCell<
                            Option<$crate::wasm::Machine<$strategy>>,
                        > = const { ::std::cell::RefCell::new(None) };
                    }
                    MACHINE.with_borrow_mut(act)
                }
            }

            $crate::export_order_events!(Component);
    $crate::wasm::export!(Component with_types_in $crate::wasm::bindings);
        };
    };
}
