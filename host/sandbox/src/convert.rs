//! Between the host's own types and those generated from the contract.

use std::sync::Arc;

use domain::strategy::{
    self, Account, Action, Bar, BarGranularity, LogLevel, NarrativeRecord, Position, Signal,
    SignalKind, Trade, WorkingOrder,
};
use domain::{
    Instrument, InstrumentIx, OrderEvent, OrderEventKind, OrderModify, OrderRequest, OrderSide,
    OrderStatus, OrderType, Price, Quantity, TickTable, TimeInForce, TriggerType, TsNanos,
};

use crate::bindings::kumiki::strategy::{log, types as wit};

/// Maps enums with the same cases.
macro_rules! same_cases {
    ($function:ident, $from:ty => $to:ty { $($case:ident),+ $(,)? }) => {
        fn $function(value: $from) -> $to {
            match value { $(<$from>::$case => <$to>::$case,)+ }
        }
    };
}

same_cases!(side_in, wit::OrderSide => OrderSide { Buy, Sell });
same_cases!(side_out, OrderSide => wit::OrderSide { Buy, Sell });
same_cases!(trigger_in, wit::TriggerType => TriggerType { Last });
same_cases!(trigger_out, TriggerType => wit::TriggerType { Last });
same_cases!(signal_in, wit::SignalKind => SignalKind { EntryLong, EntryShort, Exit, Annotate });
same_cases!(granularity_out, BarGranularity => wit::Granularity { Minute, Day });
same_cases!(order_type_in, wit::OrderType => OrderType {
    Market, Limit, StopMarket, StopLimit, MarketIfTouched, LimitIfTouched
});
same_cases!(order_type_out, OrderType => wit::OrderType {
    Market, Limit, StopMarket, StopLimit, MarketIfTouched, LimitIfTouched
});
same_cases!(time_in_force_in, wit::TimeInForce => TimeInForce {
    Day, Gtc, Gtd, Ioc, Fok, AtTheOpen, AtTheClose
});
same_cases!(time_in_force_out, TimeInForce => wit::TimeInForce {
    Day, Gtc, Gtd, Ioc, Fok, AtTheOpen, AtTheClose
});
same_cases!(status_out, OrderStatus => wit::OrderStatus {
    Initialized, Submitted, Accepted, PartiallyFilled, Filled, PendingUpdate, PendingCancel,
    Canceled, Expired, Rejected
});
same_cases!(level_in, log::Level => LogLevel { Debug, Info, Warn, Error, Panic });

pub(crate) fn log_level(level: log::Level) -> LogLevel {
    level_in(level)
}

pub(crate) fn trade(trade: &Trade) -> wit::Trade {
    wit::Trade {
        ts_event: trade.ts_event.nanos(),
        instrument: trade.instrument.0,
        price: trade.price.units(),
        quantity: trade.quantity.shares(),
    }
}

pub(crate) fn bar(bar: &Bar) -> wit::Bar {
    wit::Bar {
        ts_event: bar.ts_event.nanos(),
        instrument: bar.instrument.0,
        granularity: granularity_out(bar.granularity),
        open: bar.open.units(),
        high: bar.high.units(),
        low: bar.low.units(),
        close: bar.close.units(),
        volume: bar.volume.shares(),
    }
}

pub(crate) fn columns(columns: strategy::TradeColumns<'_>) -> wit::TradeColumns<'_> {
    wit::TradeColumns {
        ts_event: columns.ts_event,
        instrument: columns.instrument,
        price: columns.price,
        quantity: columns.quantity,
    }
}

/// The bands of a tick table in the contract's form.
pub(crate) fn tick_bands(table: TickTable) -> Vec<wit::TickBand> {
    table
        .bands()
        .map(|(up_to, tick)| wit::TickBand { up_to: up_to.units(), tick: tick.units() })
        .collect()
}

pub(crate) fn instrument<'a>(
    instrument: &'a Instrument,
    ticks: &'a [wit::TickBand],
) -> wit::Instrument<'a> {
    wit::Instrument { id: instrument.id.as_str(), lot: instrument.lot.shares(), ticks }
}

pub(crate) fn account(account: &Account) -> wit::Account {
    wit::Account {
        cash: account.cash.units(),
        reserved: account.reserved.units(),
        realised_pnl: account.realised_pnl.units(),
        commission: account.commission.units(),
    }
}

pub(crate) fn position(position: &Position) -> wit::Position {
    wit::Position {
        instrument: position.instrument.0,
        quantity: position.quantity,
        cost: position.cost.units(),
        realised_pnl: position.realised_pnl.units(),
    }
}

pub(crate) fn working_order(order: &WorkingOrder) -> wit::Order {
    let request = &order.request;
    wit::Order {
        request: wit::OrderRequest {
            client_order_id: request.client_order_id.to_string(),
            instrument: request.instrument.0,
            side: side_out(request.side),
            order_type: order_type_out(request.order_type),
            quantity: request.quantity.shares(),
            price: request.price.map(Price::units),
            trigger_price: request.trigger_price.map(Price::units),
            trigger_type: request.trigger_type.map(trigger_out),
            time_in_force: time_in_force_out(request.time_in_force),
            expire_time: request.expire_time.map(TsNanos::nanos),
            post_only: request.post_only,
            reduce_only: request.reduce_only,
            tags: request.tags.clone(),
        },
        venue_order_id: order.venue_order_id.as_deref().map(str::to_owned),
        status: status_out(order.status),
        filled_quantity: order.filled_quantity.shares(),
        ts_submitted: order.ts_submitted.nanos(),
    }
}

pub(crate) fn order_event(event: &OrderEvent) -> wit::OrderEvent<'_> {
    use wit::OrderEventKind as Out;
    let kind = match &event.kind {
        OrderEventKind::Submitted(_) => Out::Submitted,
        OrderEventKind::Accepted => Out::Accepted,
        OrderEventKind::Rejected(why) => {
            Out::Rejected(wit::Rejection { reason_code: why.code.as_str(), reason_text: &why.text })
        }
        OrderEventKind::PendingUpdate(_) => Out::PendingUpdate,
        OrderEventKind::Updated => Out::Updated,
        OrderEventKind::PendingCancel => Out::PendingCancel,
        OrderEventKind::Canceled => Out::Canceled,
        OrderEventKind::Expired(why) => Out::Expired(why),
        OrderEventKind::Filled(fill) => Out::Filled(wit::Fill {
            trade_id: &fill.trade_id,
            last_quantity: fill.last_quantity.shares(),
            last_price: fill.last_price.units(),
            cumulative_quantity: fill.cumulative_quantity.shares(),
            leaves_quantity: fill.leaves_quantity.shares(),
            commission: fill.commission.units(),
        }),
    };
    wit::OrderEvent {
        ts_event: event.ts_event.nanos(),
        client_order_id: &event.client_order_id,
        venue_order_id: event.venue_order_id.as_deref(),
        instrument: event.instrument.0,
        status: status_out(event.status),
        kind,
    }
}

pub(crate) fn action(action: wit::Action) -> Action {
    match action {
        wit::Action::Submit(request) => Action::Submit(order_request(request)),
        wit::Action::Modify(change) => Action::Modify {
            client_order_id: Arc::from(change.client_order_id),
            change: OrderModify {
                quantity: change.quantity.map(Quantity::new),
                price: change.price.map(Price::from_units),
                trigger_price: change.trigger_price.map(Price::from_units),
                expire_time: change.expire_time.map(TsNanos::from_nanos),
            },
        },
        wit::Action::Cancel(id) => Action::Cancel { client_order_id: Arc::from(id) },
        wit::Action::CancelAll(instrument) => {
            Action::CancelAll { instrument: instrument.map(InstrumentIx) }
        }
        wit::Action::EmitSignal(signal) => Action::Signal(Signal {
            instrument: InstrumentIx(signal.instrument),
            kind: signal_in(signal.kind),
            side: signal.side.map(side_in),
            price: signal.price.map(Price::from_units),
            tag: signal.tag,
            note: signal.note,
        }),
        wit::Action::Narrate(record) => Action::Narrative(NarrativeRecord {
            client_order_id: record.client_order_id.map(Arc::from),
            title: record.title,
            body: record.body,
        }),
    }
}

fn order_request(request: wit::OrderRequest) -> OrderRequest {
    OrderRequest {
        client_order_id: Arc::from(request.client_order_id),
        instrument: InstrumentIx(request.instrument),
        side: side_in(request.side),
        order_type: order_type_in(request.order_type),
        quantity: Quantity::new(request.quantity),
        price: request.price.map(Price::from_units),
        trigger_price: request.trigger_price.map(Price::from_units),
        trigger_type: request.trigger_type.map(trigger_in),
        time_in_force: time_in_force_in(request.time_in_force),
        expire_time: request.expire_time.map(TsNanos::from_nanos),
        post_only: request.post_only,
        reduce_only: request.reduce_only,
        tags: request.tags,
    }
}
