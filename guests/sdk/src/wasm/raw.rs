//! The two ways that each order takes, an order alone and what happened to orders, in the layout of the canonical
//! ABI itself. The generated bindings build a list of the contract's records first and move each of them
//! three times, which costs more than all else that a strategy does for an order.
#![expect(unsafe_code, reason = "the host hands over memory, and is handed some")]

use std::alloc::{Layout, dealloc};

use super::{Slot, machine};
use crate::model::{
    Fill, InstrumentIx, Order, OrderEvent, OrderEventKind, OrderStatus, OrderType, Rejection, Side,
    TimeInForce, Timestamp,
};
use crate::number::{Money, Price, Quantity};

/// A `string`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Text {
    pointer: *mut u8,
    length: usize,
}

impl Text {
    /// The text, whose memory is the guest's own then.
    ///
    /// # Safety
    /// It was handed over by the host and not taken before.
    unsafe fn take(self) -> String {
        match self.length {
            // Nothing was asked for.
            0 => String::new(),
            // SAFETY: the host asked `cabi_realloc` for just so many bytes, and fills them with UTF-8.
            length => unsafe { String::from_raw_parts(self.pointer, length, length) },
        }
    }
}

/// `record order-event`
#[doc(hidden)]
#[repr(C)]
pub struct RawOrderEvent {
    ts_event: u64,
    client_order_id: Text,
    has_venue_order_id: u8,
    venue_order_id: Text,
    instrument: u16,
    status: u8,
    kind: RawKind,
}

/// `variant order-event-kind`
#[repr(C, align(8))]
struct RawKind {
    case: u8,
    payload: Payload,
}

/// What its cases hold.
#[repr(C)]
union Payload {
    rejection: [Text; 2],
    why: Text,
    fill: RawFill,
}

/// `record fill`
#[derive(Clone, Copy)]
#[repr(C)]
struct RawFill {
    trade_id: Text,
    last_quantity: u64,
    last_price: i64,
    cumulative_quantity: u64,
    leaves_quantity: u64,
    commission: i64,
}

// The places of the contract.
const _: () = {
    assert!(size_of::<RawOrderEvent>() == 88 && align_of::<RawOrderEvent>() == 8);
    assert!(std::mem::offset_of!(RawOrderEvent, venue_order_id) == 20);
    assert!(std::mem::offset_of!(RawOrderEvent, kind) == 32);
    assert!(std::mem::offset_of!(RawOrderEvent, kind.payload) == 40);
    assert!(size_of::<RawSubmit>() == 104 && align_of::<RawSubmit>() == 8);
    assert!(std::mem::offset_of!(RawSubmit, price) == 40);
    assert!(std::mem::offset_of!(RawSubmit, trigger_type) == 64);
    assert!(std::mem::offset_of!(RawSubmit, expire_time) == 80);
    assert!(std::mem::offset_of!(RawSubmit, tags) == 92);
};

impl RawOrderEvent {
    /// # Safety
    /// It was handed over by the host and not taken before.
    #[inline(always)]
    unsafe fn take(&self) -> OrderEvent {
        // SAFETY: each text is taken once; of the payload the part that its case has.
        unsafe {
            OrderEvent {
                ts_event: Timestamp(self.ts_event),
                client_order_id: self.client_order_id.take(),
                venue_order_id: (self.has_venue_order_id != 0).then(|| self.venue_order_id.take()),
                instrument: InstrumentIx(self.instrument),
                status: status(self.status),
                kind: match self.kind.case {
                    0 => OrderEventKind::Submitted,
                    1 => OrderEventKind::Accepted,
                    2 => {
                        let [code, text] = self.kind.payload.rejection;
                        let (reason_code, reason_text) = (code.take(), text.take());
                        OrderEventKind::Rejected(Rejection { reason_code, reason_text })
                    }
                    3 => OrderEventKind::PendingUpdate,
                    4 => OrderEventKind::Updated,
                    5 => OrderEventKind::PendingCancel,
                    6 => OrderEventKind::Canceled,
                    7 => OrderEventKind::Expired(self.kind.payload.why.take()),
                    _ => OrderEventKind::Filled(self.kind.payload.fill.take()),
                },
            }
        }
    }
}

impl RawFill {
    /// # Safety
    /// As [`Text::take`].
    unsafe fn take(self) -> Fill {
        Fill {
            // SAFETY: as the caller promises.
            trade_id: unsafe { self.trade_id.take() },
            last_quantity: Quantity::new(self.last_quantity),
            last_price: Price::from_units(self.last_price),
            cumulative_quantity: Quantity::new(self.cumulative_quantity),
            leaves_quantity: Quantity::new(self.leaves_quantity),
            commission: Money::from_units(self.commission),
        }
    }
}

fn status(code: u8) -> OrderStatus {
    match code {
        0 => OrderStatus::Initialized,
        1 => OrderStatus::Submitted,
        2 => OrderStatus::Accepted,
        3 => OrderStatus::PartiallyFilled,
        4 => OrderStatus::Filled,
        5 => OrderStatus::PendingUpdate,
        6 => OrderStatus::PendingCancel,
        7 => OrderStatus::Canceled,
        8 => OrderStatus::Expired,
        _ => OrderStatus::Rejected,
    }
}

/// Exports `on-order-events` of the strategy in a slot.
#[doc(hidden)]
#[macro_export]
macro_rules! export_order_events {
    ($slot:ty) => {
        // SAFETY: no other function has this name.
        #[allow(unsafe_code, reason = "an export has its name for itself")]
        #[unsafe(export_name = "kumiki:strategy/guest@1.0.0#on-order-events")]
        unsafe extern "C" fn on_order_events(
            events: *mut $crate::wasm::RawOrderEvent,
            count: usize,
        ) {
            // SAFETY: it is the host that calls this.
            unsafe { $crate::wasm::on_order_events::<$slot>(events, count) }
        }
    };
}

/// `on-order-events`
///
/// # Safety
/// The host calls it with a list that it has just handed over.
#[doc(hidden)]
#[inline]
pub unsafe fn on_order_events<T: Slot>(events: *mut RawOrderEvent, count: usize) {
    machine::<T, _>(|machine| {
        // SAFETY: the list has so many records.
        let list = unsafe { std::slice::from_raw_parts(events, count) };
        for event in list {
            // SAFETY: each is taken once.
            machine.runner.order_event(&unsafe { event.take() });
        }
        let layout = Layout::for_value(list);
        if count > 0 {
            // SAFETY: the host asked `cabi_realloc` for this memory.
            unsafe { dealloc(events.cast(), layout) };
        }
        machine.act();
    });
}

/// `variant action` with an order in it.
#[repr(C)]
struct RawSubmit {
    case: u8,
    client_order_id: AlignedText,
    instrument: u16,
    side: u8,
    order_type: u8,
    quantity: u64,
    has_price: u8,
    price: i64,
    has_trigger_price: u8,
    trigger_price: i64,
    trigger_type: [u8; 2],
    time_in_force: u8,
    has_expire_time: AlignedByte,
    expire_time: u64,
    post_only: u8,
    reduce_only: u8,
    tags: Text,
}

/// A text where the payload of a variant begins.
#[repr(C, align(8))]
struct AlignedText(Text);

/// Whether there is an `option` of a number of 64 bits.
#[repr(C, align(8))]
struct AlignedByte(u8);

// SAFETY: the contract's function, laid flat as the canonical ABI says.
#[link(wasm_import_module = "kumiki:strategy/actions@1.0.0")]
unsafe extern "C" {
    #[link_name = "act"]
    fn act(actions: *const RawSubmit, count: usize);
}

/// Hands an order over to the host, unless it has tags.
#[inline]
pub(super) fn submit(order: &Order) -> bool {
    if !order.tags.is_empty() {
        return false;
    }
    let text = |text: &str| Text { pointer: text.as_ptr().cast_mut(), length: text.len() };
    let (time_in_force, expire_time) = match order.time_in_force {
        TimeInForce::Day => (0, None),
        TimeInForce::Gtd(expiry) => (2, Some(expiry.0)),
        TimeInForce::AtTheOpen => (5, None),
        TimeInForce::AtTheClose => (6, None),
    };
    let raw = RawSubmit {
        case: 0,
        client_order_id: AlignedText(text(order.client_order_id.as_deref().unwrap_or_default())),
        instrument: order.instrument.0,
        side: u8::from(order.side == Side::Sell),
        order_type: match order.order_type {
            OrderType::Market => 0,
            OrderType::Limit => 1,
            OrderType::StopMarket => 2,
            OrderType::StopLimit => 3,
        },
        quantity: order.quantity.shares(),
        has_price: u8::from(order.price.is_some()),
        price: order.price.map_or(0, Price::units),
        has_trigger_price: u8::from(order.trigger_price.is_some()),
        trigger_price: order.trigger_price.map_or(0, Price::units),
        trigger_type: [0, 0],
        time_in_force,
        has_expire_time: AlignedByte(u8::from(expire_time.is_some())),
        expire_time: expire_time.unwrap_or(0),
        post_only: u8::from(order.post_only),
        reduce_only: u8::from(order.reduce_only),
        // A list of nothing is aligned, too.
        tags: Text { pointer: std::ptr::dangling_mut::<Text>().cast(), length: 0 },
    };
    // SAFETY: the host reads the record and the text during the call.
    unsafe { act(&raw, 1) };
    true
}
