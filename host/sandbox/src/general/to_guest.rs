//! The host's values in the words of the generated bindings.

use domain::account::{Account, Position, WorkingOrder};
use domain::market::{Bar, BarGranularity, Trade, TradeColumns};
use domain::{
    AccountEvent, AccountEventKind, Instrument, OrderEvent, OrderEventKind, OrderRequest,
    OrderSide, OrderStatus, OrderType, Price, TimeInForce, TriggerType, TsNanos,
};

use super::strategy_bindings::kumiki::strategy::types as wit;

/// Enumerations with the same cases on both sides.
macro_rules! same_cases {
    ($from:ty => $to:ty { $($case:ident),+ $(,)? }) => {
        impl From<$from> for $to {
            fn from(value: $from) -> Self {
                match value { $(<$from>::$case => Self::$case,)+ }
            }
        }
    };
}
pub(super) use same_cases;

same_cases!(BarGranularity => wit::Granularity { Minute, Day });
same_cases!(OrderSide => wit::OrderSide { Buy, Sell });
same_cases!(OrderType => wit::OrderType {
    Market, Limit, StopMarket, StopLimit, MarketIfTouched, LimitIfTouched,
});
same_cases!(TimeInForce => wit::TimeInForce { Day, Gtc, Gtd, Ioc, Fok, AtTheOpen, AtTheClose });
same_cases!(TriggerType => wit::TriggerType { Last });
same_cases!(OrderStatus => wit::OrderStatus {
    Initialized, Submitted, Accepted, PartiallyFilled, Filled, PendingUpdate, PendingCancel,
    Canceled, Expired, Rejected,
});

pub(super) fn trade(trade: &Trade) -> wit::Trade {
    wit::Trade {
        ts_event: trade.ts_event.nanos(),
        instrument: trade.instrument.0,
        price: trade.price.units(),
        quantity: trade.quantity.shares(),
    }
}

pub(super) fn columns(columns: TradeColumns<'_>) -> wit::TradeColumns<'_> {
    wit::TradeColumns {
        ts_event: columns.ts_event,
        instrument: columns.instrument,
        price: columns.price,
        quantity: columns.quantity,
    }
}

pub(super) fn bar(bar: &Bar) -> wit::Bar {
    wit::Bar {
        ts_event: bar.ts_event.nanos(),
        instrument: bar.instrument.0,
        granularity: bar.granularity.into(),
        open: bar.open.units(),
        high: bar.high.units(),
        low: bar.low.units(),
        close: bar.close.units(),
        volume: bar.volume.shares(),
    }
}

/// The bands of an instrument's tick table.
pub(super) fn bands(instrument: &Instrument) -> Vec<wit::TickBand> {
    let band =
        |(up_to, tick): (Price, Price)| wit::TickBand { up_to: up_to.units(), tick: tick.units() };
    instrument.ticks.bands().map(band).collect()
}

pub(super) fn instrument<'a>(
    instrument: &'a Instrument,
    ticks: &'a [wit::TickBand],
) -> wit::Instrument<'a> {
    wit::Instrument { id: instrument.id.as_str(), lot: instrument.lot.shares(), ticks }
}

pub(super) fn order_event(event: &OrderEvent) -> wit::OrderEvent<'_> {
    wit::OrderEvent {
        ts_event: event.ts_event.nanos(),
        client_order_id: &event.client_order_id,
        venue_order_id: event.venue_order_id.as_deref(),
        instrument: event.instrument.0,
        status: event.status.into(),
        kind: match &event.kind {
            OrderEventKind::Submitted(_) => wit::OrderEventKind::Submitted,
            OrderEventKind::Accepted => wit::OrderEventKind::Accepted,
            OrderEventKind::Rejected(why) => wit::OrderEventKind::Rejected(wit::Rejection {
                reason_code: why.code.as_str(),
                reason_text: &why.text,
            }),
            OrderEventKind::PendingUpdate(_) => wit::OrderEventKind::PendingUpdate,
            OrderEventKind::Updated(_) => wit::OrderEventKind::Updated,
            OrderEventKind::PendingCancel => wit::OrderEventKind::PendingCancel,
            OrderEventKind::Canceled => wit::OrderEventKind::Canceled,
            OrderEventKind::Expired(why) => wit::OrderEventKind::Expired(why),
            OrderEventKind::Filled(fill) => wit::OrderEventKind::Filled(wit::Fill {
                trade_id: &fill.trade_id,
                last_quantity: fill.last_quantity.shares(),
                last_price: fill.last_price.units(),
                cumulative_quantity: fill.cumulative_quantity.shares(),
                leaves_quantity: fill.leaves_quantity.shares(),
                commission: fill.known_commission().units(),
            }),
        },
    }
}

pub(super) fn account_event(event: &AccountEvent) -> wit::AccountEvent {
    let AccountEventKind::Split(split) = &event.kind;
    let (new_shares, old_shares) = split.adjustment.terms();
    wit::AccountEvent {
        ts_event: event.ts_event.nanos(),
        instrument: event.instrument.0,
        kind: wit::AccountEventKind::Split(wit::Split {
            old_shares,
            new_shares,
            quantity: split.quantity,
            cash_paid: split.cash_paid.units(),
            last_price: split.last_price.map(Price::units),
        }),
    }
}

pub(super) fn account(account: &Account) -> wit::Account {
    wit::Account {
        cash: account.cash.units(),
        reserved: account.reserved.units(),
        realised_pnl: account.realised_pnl.units(),
        commission: account.commission.units(),
    }
}

pub(super) fn position(position: &Position) -> wit::Position {
    wit::Position {
        instrument: position.instrument.0,
        quantity: position.quantity,
        cost: position.cost.units(),
        realised_pnl: position.realised_pnl.units(),
    }
}

pub(super) fn working_order(order: &WorkingOrder) -> wit::Order {
    wit::Order {
        request: order_request(&order.request),
        venue_order_id: order.venue_order_id.as_deref().map(str::to_owned),
        status: order.status.into(),
        filled_quantity: order.filled_quantity.shares(),
        ts_submitted: order.ts_submitted.nanos(),
    }
}

fn order_request(request: &OrderRequest) -> wit::OrderRequest {
    wit::OrderRequest {
        client_order_id: request.client_order_id.to_string(),
        instrument: request.instrument.0,
        side: request.side.into(),
        order_type: request.order_type.into(),
        quantity: request.quantity.shares(),
        price: request.price.map(Price::units),
        trigger_price: request.trigger_price.map(Price::units),
        trigger_type: request.trigger_type.map(Into::into),
        time_in_force: request.time_in_force.into(),
        expire_time: request.expire_time.map(TsNanos::nanos),
        post_only: request.post_only,
        reduce_only: request.reduce_only,
        tags: request.tags.clone(),
    }
}
