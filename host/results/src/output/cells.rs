//! Rows as the cells of their table.

use domain::{InstrumentId, InstrumentIx, Money, OrderRecord, Price, Quantity, TsNanos};

use super::tables::{
    DAYS, EQUITY, FILLS, LOG, MARKS, NARRATIVE, ORDERS, ROUND_TRIPS, SIGNALS, Table,
};
use crate::rows::{DayRow, EquityRow, FillRow, MarkRow, PositionEnd, RoundTrip};
use crate::sink::Record;

/// The value of a column in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cell<'a> {
    /// Nothing.
    Empty,
    /// A whole number, or nanoseconds.
    Whole(i128),
    /// Exact yen in 1/10,000.
    Units(i64),
    /// Text.
    Text(&'a str),
    /// A date.
    Date(domain::JstDate),
}

/// Names of the instruments of a run, by their index.
#[derive(Debug, Clone)]
pub(super) struct Names(Vec<String>);

impl Names {
    pub(super) fn new(ids: &[InstrumentId]) -> Self {
        Self(ids.iter().map(ToString::to_string).collect())
    }

    /// The name of an instrument. An order for an index that does not exist was refused; `unknown`
    /// stands for it.
    pub(super) fn of(&self, instrument: InstrumentIx) -> &str {
        self.0.get(usize::from(instrument.0)).map_or("unknown", String::as_str)
    }
}

/// Tables that rows go to while a run goes on; the discriminant is the place in [`STREAMED`].
pub(super) const STREAMED: [Table; 9] =
    [ORDERS, FILLS, ROUND_TRIPS, EQUITY, MARKS, DAYS, SIGNALS, NARRATIVE, LOG];

/// The table of a record, as a place in [`STREAMED`], and its cells. None for what is no row of a
/// table.
pub(super) fn row_of<'a>(record: Record<'a>, names: &'a Names) -> Option<(usize, Vec<Cell<'a>>)> {
    Some(match record {
        Record::Order(order) => (0, order_cells(order, names)),
        Record::Fill(fill) => (1, fill_cells(fill, names)),
        Record::RoundTrip(trip) => (2, trip_cells(trip, names)),
        Record::Equity(row) => (3, equity_cells(row)),
        Record::Mark(row) => (4, mark_cells(row, names)),
        Record::Day(row) => (5, day_cells(row)),
        Record::Signal(moment, signal) => (
            6,
            vec![
                at(moment),
                Cell::Text(names.of(signal.instrument)),
                Cell::Text(signal.kind.as_str()),
                text(signal.side.map(|side| side.as_str())),
                price(signal.price),
                text(signal.tag.as_deref()),
                text(signal.note.as_deref()),
            ],
        ),
        Record::Narrative(moment, record) => (
            7,
            vec![
                at(moment),
                text(record.client_order_id.as_deref()),
                Cell::Text(&record.title),
                Cell::Text(&record.body),
            ],
        ),
        Record::Log(line) => (
            8,
            vec![
                line.ts_event.map_or(Cell::Empty, at),
                Cell::Text(line.level.as_str()),
                Cell::Text(&line.message),
            ],
        ),
        Record::OrderEvent { .. }
        | Record::Position(_)
        | Record::ClientWarning { .. }
        | Record::Trade(_)
        | Record::Bar(_)
        | Record::BuyingPower(_) => return None,
    })
}

fn at<'a>(moment: TsNanos) -> Cell<'a> {
    Cell::Whole(moment.nanos().into())
}

fn text(text: Option<&str>) -> Cell<'_> {
    text.map_or(Cell::Empty, Cell::Text)
}

fn price<'a>(price: Option<Price>) -> Cell<'a> {
    price.map_or(Cell::Empty, |price| Cell::Units(price.units()))
}

fn yen<'a>(money: Money) -> Cell<'a> {
    Cell::Units(money.units())
}

fn shares<'a>(quantity: Quantity) -> Cell<'a> {
    Cell::Whole(quantity.shares().into())
}

fn order_cells<'a>(order: &'a OrderRecord, names: &'a Names) -> Vec<Cell<'a>> {
    let request = &order.request;
    vec![
        at(order.ts_submitted),
        Cell::Text(names.of(request.instrument)),
        Cell::Text(&request.client_order_id),
        text(order.venue_order_id.as_deref()),
        Cell::Text(request.side.as_str()),
        Cell::Text(request.order_type.as_str()),
        Cell::Text(request.time_in_force.as_str()),
        shares(request.quantity),
        price(request.price),
        price(request.trigger_price),
        shares(order.filled),
        shares(order.leaves()),
        price(order.average_price()),
        Cell::Text(order.status.as_str()),
        at(order.ts_last),
        text(order.rejection.as_ref().map(|why| why.code.as_str())),
        text(order.rejection.as_ref().map(|why| why.text.as_str())),
        yen(order.commission),
        request.expire_time.map_or(Cell::Empty, at),
        order.ts_triggered.map_or(Cell::Empty, at),
    ]
}

fn fill_cells<'a>(fill: &'a FillRow, names: &'a Names) -> Vec<Cell<'a>> {
    vec![
        at(fill.ts_event),
        Cell::Text(names.of(fill.instrument)),
        Cell::Text(&fill.client_order_id),
        Cell::Text(&fill.venue_order_id),
        Cell::Text(&fill.trade_id),
        Cell::Text(fill.side.as_str()),
        Cell::Units(fill.price.units()),
        shares(fill.quantity),
        shares(fill.cumulative_quantity),
        shares(fill.leaves_quantity),
        yen(fill.commission),
        Cell::Units(fill.market_price.units()),
        yen(fill.slippage),
    ]
}

fn trip_cells<'a>(trip: &'a RoundTrip, names: &'a Names) -> Vec<Cell<'a>> {
    let duration = trip.ts_exit.nanos().saturating_sub(trip.ts_entry.nanos());
    vec![
        at(trip.ts_entry),
        at(trip.ts_exit),
        Cell::Text(names.of(trip.instrument)),
        Cell::Text(trip.entry_side.as_str()),
        Cell::Text(&trip.entry_order),
        Cell::Text(&trip.exit_order),
        Cell::Whole(trip.quantity.into()),
        Cell::Whole(trip.quantity_max.into()),
        Cell::Units(trip.buy_price.units()),
        Cell::Units(trip.sell_price.units()),
        Cell::Whole(trip.fills.into()),
        yen(trip.commission),
        yen(trip.pnl),
        yen(trip.mae),
        yen(trip.mfe),
        Cell::Whole(duration.into()),
    ]
}

fn equity_cells<'a>(row: &EquityRow) -> Vec<Cell<'a>> {
    vec![at(row.ts_event), yen(row.cash), yen(row.equity - row.cash), yen(row.equity)]
}

fn mark_cells<'a>(row: &MarkRow, names: &'a Names) -> Vec<Cell<'a>> {
    vec![
        at(row.ts_event),
        Cell::Text(names.of(row.instrument)),
        Cell::Units(row.price.units()),
        Cell::Whole(row.quantity.into()),
    ]
}

fn day_cells<'a>(row: &DayRow) -> Vec<Cell<'a>> {
    // The end of a minute with trades is no other day.
    vec![Cell::Date(row.ts_event.jst_date()), at(row.ts_event), yen(row.cash), yen(row.equity)]
}

/// The cells of an instrument at the end.
pub(super) fn position_cells<'a>(position: &PositionEnd, names: &'a Names) -> Vec<Cell<'a>> {
    vec![
        Cell::Text(names.of(position.instrument)),
        Cell::Whole(position.quantity.into()),
        yen(position.cost),
        price(position.average_cost()),
        price(position.last_price),
        yen(position.value()),
        yen(position.realised_pnl),
        yen(position.unrealised_pnl()),
    ]
}
