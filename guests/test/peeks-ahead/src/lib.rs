//! Reads the last trade of its window before its time: it buys where the price will be higher there,
//! and sells at that trade. Windows of one trade give it nothing to read, and it does nothing.
//!
//! `Trades::prices` of the SDK gives later prices too, up to the limit of the call. This guest reads up to the
//! end of the window, so it speaks with the host by itself.

#![cfg(target_arch = "wasm32")]

use std::cell::RefCell;

#[expect(clippy::allow_attributes_without_reason, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({ path: "../../../wit/strategy", world: "strategy" });
}

use bindings::exports::kumiki::strategy::guest::{Guest, Window};
use bindings::kumiki::strategy::actions::act;
use bindings::kumiki::strategy::types::{
    AccountEvent, Action, Instrument, OrderEvent, OrderRequest, OrderSide, OrderType, TimeInForce,
    TradeColumns,
};

/// Gain in 1/10,000 yen from which looking ahead pays.
const GAIN_MIN: i64 = 20_000;

/// What is kept between two calls.
struct Peeker {
    lot: u64,
    orders: u64,
    holds: bool,
    window: Option<TradeColumns>,
    reached: u32,
}

thread_local! {
    static PEEKER: RefCell<Peeker> = const {
        RefCell::new(Peeker { lot: 0, orders: 0, holds: false, window: None, reached: 0 })
    };
}

impl Peeker {
    /// Handles the rows below `limit` up to the first at which it asks for something.
    fn advance(&mut self, limit: u32) -> u32 {
        while self.reached < limit {
            let row = self.reached as usize;
            self.reached += 1;
            let Some(window) = &self.window else { break };
            let Some(last) = window.price.last() else { break };
            let gain = last - window.price[row];
            let is_last = row + 1 == window.price.len();
            let side = match self.holds {
                false if gain >= GAIN_MIN => OrderSide::Buy,
                true if is_last => OrderSide::Sell,
                _ => continue,
            };
            self.holds = !self.holds;
            self.send(side);
            break;
        }
        self.reached
    }

    fn send(&mut self, side: OrderSide) {
        self.orders += 1;
        act(&[Action::Submit(OrderRequest {
            client_order_id: format!("P-{}", self.orders),
            instrument: 0,
            side,
            order_type: OrderType::Market,
            quantity: self.lot,
            price: None,
            trigger_price: None,
            trigger_type: None,
            time_in_force: TimeInForce::Day,
            expire_time: None,
            post_only: false,
            reduce_only: false,
            tags: Vec::new(),
        })]);
    }
}

/// The strategy.
struct PeeksAhead;

impl Guest for PeeksAhead {
    fn init(_config: String, instruments: Vec<Instrument>) -> Result<(), String> {
        PEEKER.with_borrow_mut(|peeker| {
            peeker.lot = instruments.first().map_or(0, |instrument| instrument.lot);
        });
        Ok(())
    }

    fn start(_now: u64) {}

    fn advance(window: Window, limit: u32) -> u32 {
        PEEKER.with_borrow_mut(|peeker| match window {
            Window::Resume => peeker.advance(limit),
            Window::Trades(columns) => {
                (peeker.window, peeker.reached) = (Some(columns), 0);
                peeker.advance(limit)
            }
            // There is nothing ahead to read.
            Window::OneTrade(_) | Window::OneBar(_) | Window::Bars(_) => limit,
        })
    }

    fn on_order_events(_events: Vec<OrderEvent>) {}

    fn on_account_events(_events: Vec<AccountEvent>) {}

    fn stop(_now: u64) {}
}

#[expect(unsafe_code, reason = "generated")]
mod exports {
    use super::PeeksAhead;

    super::bindings::export!(PeeksAhead with_types_in super::bindings);
}
