//! The host's values in the contract's layout, field by field in the order of `wit/strategy`.

use domain::account::{Account, Position, WorkingOrder};
use domain::market::{Bar, Trade, TradeColumns};
use domain::{
    AccountEvent, AccountEventKind, Instrument, OrderEvent, OrderEventKind, OrderRequest, Price,
    TsNanos,
};
use wasmtime::{Result, StoreContextMut};

use super::{Enumeration, Layout, Lower};
use crate::state::{Guest, State};

/// The records of the contract's lists.
const BAR: Layout = (56, 8);
const INSTRUMENT: Layout = (24, 8);
const TICK_BAND: Layout = (16, 8);
const ORDER_EVENT: Layout = (88, 8);
const ACCOUNT_EVENT: Layout = (64, 8);
const ORDER: Layout = (128, 8);
/// A `string` as an element.
const TEXT: Layout = (8, 4);

/// A `window` and its limit as `advance` takes them: the case, then the joined payloads of all cases
/// (`one-bar` is the widest), then the limit.
pub(crate) type WindowArguments = (u32, u64, u32, u64, u64, u64, u64, u64, u64, u32);

/// The cases of `window`; 0 is `resume`.
const ONE_TRADE: u32 = 1;
const ONE_BAR: u32 = 2;
const TRADES: u32 = 3;
const BARS: u32 = 4;

#[inline]
pub(crate) fn one_trade(trade: &Trade, limit: u32) -> WindowArguments {
    let (timestamp, instrument) = (trade.ts_event.nanos(), u32::from(trade.instrument.0));
    let (price, shares) = (trade.price.units().cast_unsigned(), trade.quantity.shares());
    (ONE_TRADE, timestamp, instrument, price, shares, 0, 0, 0, 0, limit)
}

pub(crate) fn one_bar(bar: &Bar, limit: u32) -> WindowArguments {
    let price = |price: Price| price.units().cast_unsigned();
    (
        ONE_BAR,
        bar.ts_event.nanos(),
        u32::from(bar.instrument.0),
        u64::from(bar.granularity.code()),
        price(bar.open),
        price(bar.high),
        price(bar.low),
        price(bar.close),
        bar.volume.shares(),
        limit,
    )
}

/// Many trades: four lists.
pub(crate) fn columns(
    store: &mut StoreContextMut<'_, State>,
    guest: &Guest,
    columns: TradeColumns<'_>,
    limit: u32,
) -> Result<WindowArguments> {
    let rows = u32::try_from(columns.ts_event.len())?;
    let timestamps = guest.copy_in(store, 8, bytemuck::cast_slice(columns.ts_event))?;
    let instruments = guest.copy_in(store, 2, bytemuck::cast_slice(columns.instrument))?;
    let prices = guest.copy_in(store, 8, bytemuck::cast_slice(columns.price))?;
    let shares = guest.copy_in(store, 8, bytemuck::cast_slice(columns.quantity))?;
    let (rows_wide, wide) = (u64::from(rows), |pointer: u32| u64::from(pointer));
    Ok((
        TRADES,
        wide(timestamps),
        rows,
        wide(instruments),
        rows_wide,
        wide(prices),
        rows_wide,
        wide(shares),
        rows_wide,
        limit,
    ))
}

/// Many bars: one list.
pub(crate) fn bars(
    store: &mut StoreContextMut<'_, State>,
    guest: &Guest,
    bars: &[Bar],
    limit: u32,
) -> Result<WindowArguments> {
    let pointer = Lower::new(store, guest).argument(bars, BAR, |lower, one| {
        bar(lower, one);
        Ok(())
    })?;
    Ok((BARS, u64::from(pointer), u32::try_from(bars.len())?, 0, 0, 0, 0, 0, 0, limit))
}

/// `record bar`
pub(super) fn bar(lower: &mut Lower<'_>, bar: &Bar) {
    lower.u64(bar.ts_event.nanos());
    lower.u16(bar.instrument.0);
    lower.u8(bar.granularity.code());
    for price in [bar.open, bar.high, bar.low, bar.close] {
        lower.s64(price.units());
    }
    lower.u64(bar.volume.shares());
}

/// `list<instrument>`; tells its pointer.
pub(crate) fn instruments(lower: Lower<'_>, instruments: &[Instrument]) -> Result<u32> {
    lower.argument(instruments, INSTRUMENT, instrument)
}

/// `record instrument`
pub(super) fn instrument(lower: &mut Lower<'_>, instrument: &Instrument) -> Result<()> {
    lower.align(8);
    lower.text(instrument.id.as_str())?;
    lower.u64(instrument.lot.shares());
    let bands: Vec<_> = instrument.ticks.bands().collect();
    lower.list(&bands, TICK_BAND, |lower, (up_to, tick)| {
        lower.s64(up_to.units());
        lower.s64(tick.units());
        Ok(())
    })?;
    lower.align(8);
    Ok(())
}

/// `list<order-event>`; tells its pointer.
pub(crate) fn order_events(lower: Lower<'_>, events: &[OrderEvent]) -> Result<u32> {
    lower.argument(events, ORDER_EVENT, order_event)
}

/// `record order-event`
pub(super) fn order_event(lower: &mut Lower<'_>, event: &OrderEvent) -> Result<()> {
    let record = order_event_words(event, |_, text| lower.place(text))?;
    lower.bytes(bytemuck::bytes_of(&record.map(u64::to_le)));
    Ok(())
}

/// `record order-event`, in 64 bits each.
pub(crate) type OrderEventWords = [u64; 11];
const _: () = assert!(size_of::<OrderEventWords>() == ORDER_EVENT.0);

/// `record order-event`. `place` takes its texts in their order, each with the byte of the record where its pointer
/// stands, and tells the pointer.
#[inline]
pub(crate) fn order_event_words(
    event: &OrderEvent,
    mut place: impl FnMut(usize, &str) -> Result<u32>,
) -> Result<OrderEventWords> {
    let mut text = |at: usize, text: &str| -> Result<u64> {
        let pointer = u64::from(place(at, text)?);
        Ok(pointer | u64::from(u32::try_from(text.len())?) << 32)
    };
    let client_order_id = text(8, &event.client_order_id)?;
    let venue_order_id = event.venue_order_id.as_deref().map(|id| text(20, id)).transpose()?;
    let (has_venue_order_id, venue_order_id) =
        (u64::from(venue_order_id.is_some()), venue_order_id.unwrap_or_default());
    let instrument_and_status =
        u64::from(event.instrument.0) << 32 | u64::from(event.status.code()) << 48;
    let mut payload = [0; 6];
    let case = match &event.kind {
        OrderEventKind::Submitted(_) => 0,
        OrderEventKind::Accepted => 1,
        OrderEventKind::Rejected(why) => {
            (payload[0], payload[1]) = (text(40, why.code.as_str())?, text(48, &why.text)?);
            2
        }
        OrderEventKind::PendingUpdate(_) => 3,
        OrderEventKind::Updated(_) => 4,
        OrderEventKind::PendingCancel => 5,
        OrderEventKind::Canceled => 6,
        OrderEventKind::Expired(why) => {
            payload[0] = text(40, why)?;
            7
        }
        OrderEventKind::Filled(fill) => {
            payload = [
                text(40, &fill.trade_id)?,
                fill.last_quantity.shares(),
                fill.last_price.units().cast_unsigned(),
                fill.cumulative_quantity.shares(),
                fill.leaves_quantity.shares(),
                fill.known_commission().units().cast_unsigned(),
            ];
            8
        }
    };
    let [first, second, third, fourth, fifth, sixth] = payload;
    Ok([
        event.ts_event.nanos(),
        client_order_id,
        has_venue_order_id | venue_order_id << 32,
        venue_order_id >> 32 | instrument_and_status,
        case,
        first,
        second,
        third,
        fourth,
        fifth,
        sixth,
    ])
}

/// `list<account-event>`; tells its pointer.
pub(crate) fn account_events(lower: Lower<'_>, events: &[AccountEvent]) -> Result<u32> {
    lower.argument(events, ACCOUNT_EVENT, account_event)
}

/// `record account-event`
pub(super) fn account_event(lower: &mut Lower<'_>, event: &AccountEvent) -> Result<()> {
    lower.u64(event.ts_event.nanos());
    lower.u16(event.instrument.0);
    let AccountEventKind::Split(split) = &event.kind;
    let (new, old) = split.adjustment.terms();
    // A split, the only payload, has 40 bytes.
    lower.variant(0, 8, 40, |lower| {
        lower.u32(old);
        lower.u32(new);
        lower.s64(split.quantity);
        lower.s64(split.cash_paid.units());
        lower.optional_u64(split.last_price.map(|price| price.units().cast_unsigned()));
        Ok(())
    })
}

/// A record of four numbers, each in 64 bits of its own.
pub(crate) type Words = [u64; 4];

/// `record account`
pub(crate) fn account(account: &Account) -> Words {
    let Account { cash, reserved, realised_pnl, commission } = account;
    [cash, reserved, realised_pnl, commission].map(|amount| amount.units().cast_unsigned())
}

/// `record position`. The instrument has 16 bits, and padding up to the next number.
#[inline]
pub(crate) fn position(position: &Position) -> Words {
    let Position { instrument, quantity, cost, realised_pnl } = position;
    let numbers = [*quantity, cost.units(), realised_pnl.units()].map(i64::cast_unsigned);
    [u64::from(instrument.0), numbers[0], numbers[1], numbers[2]]
}

/// `list<order>` as an answer: its pointer and length.
pub(crate) fn working_orders(lower: &mut Lower<'_>, orders: &[WorkingOrder]) -> Result<()> {
    lower.list(orders, ORDER, |lower, order| {
        order_request(lower, &order.request)?;
        lower.optional_text(order.venue_order_id.as_deref())?;
        lower.u8(order.status.code());
        lower.u64(order.filled_quantity.shares());
        lower.u64(order.ts_submitted.nanos());
        Ok(())
    })
}

/// `record order-request`
fn order_request(lower: &mut Lower<'_>, request: &OrderRequest) -> Result<()> {
    let units = |price: Price| price.units().cast_unsigned();
    lower.align(8);
    lower.text(&request.client_order_id)?;
    lower.u16(request.instrument.0);
    lower.u8(request.side.code());
    lower.u8(request.order_type.code());
    lower.u64(request.quantity.shares());
    lower.optional_u64(request.price.map(units));
    lower.optional_u64(request.trigger_price.map(units));
    lower.optional_code(request.trigger_type.map(Enumeration::code));
    lower.u8(request.time_in_force.code());
    lower.optional_u64(request.expire_time.map(TsNanos::nanos));
    lower.u8(u8::from(request.post_only));
    lower.u8(u8::from(request.reduce_only));
    lower.list(&request.tags, TEXT, |lower, tag| lower.text(tag))?;
    lower.align(8);
    Ok(())
}
