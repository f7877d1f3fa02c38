//! The words every other crate speaks: exact prices and money, integer time, instruments, sessions,
//! orders and their states, events, and the interface between the host and one strategy.
//!
//! This crate does no input or output. It knows nothing of wasm, files, sockets or databases, and
//! its [`clock`] module is the only place of the whole host that reads time.

pub mod account;
pub mod adjustment;
pub mod calendar;
pub mod clock;
pub mod command;
pub mod csv_cell;
pub mod digest;
pub mod event;
pub mod execution;
pub mod fault;
pub mod formula;
pub mod gateway_mapping;
pub mod guest_limit;
pub mod holidays;
pub mod instrument;
pub mod limits;
pub mod market;
pub mod market_update;
pub mod money;
pub mod order;
pub mod order_mapping;
pub mod order_rules;
pub mod price;
pub mod random;
pub mod request_key;
pub mod secret;
pub mod session;
pub mod strategy;
pub mod tags;
pub mod text;
pub mod threads;
pub mod time;

pub use calendar::{ExchangeCalendar, TradingCalendar};
pub use command::OrderCommand;
pub use event::{AccountEvent, AccountEventKind, Fill, OrderEvent, OrderEventKind, Split};
pub use guest_limit::GuestLimit;
pub use instrument::{Instrument, InstrumentId, InstrumentIx, TickTable, VendorCode};
pub use money::Money;
pub use order::{
    Discrepancy, OrderModify, OrderOrigin, OrderRecord, OrderRequest, OrderSide, OrderStatus,
    OrderType, Origin, ReasonCode, Rejection, TimeInForce, TriggerType,
};
pub use order_rules::OrderFilter;
pub use price::{Price, Quantity};
pub use random::Random;
pub use secret::Secret;
pub use text::ShortText;
pub use time::{JstDate, TsNanos};
