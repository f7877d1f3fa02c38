//! Where the rows of a run go while it runs. A run keeps none of them itself, so its memory does not
//! grow with its length: a sink that writes files makes long runs as small as short ones.

use std::io;

use domain::adjustment::ExRights;
use domain::market::{Bar, Trade};
use domain::strategy::{LogLine, NarrativeRecord, Signal};
use domain::{OrderEvent, OrderRecord, Price, Rejection, TsNanos};

use crate::rows::{
    BuyingPowerRow, ClientCommand, EquityRow, FillRow, MarkRow, PositionEvent, RoundTrip,
};
use crate::totals::{RunResult, RunTotals};

/// One row, told once and in the order of the run; minutes, days and round trips at
/// the end of their day.
#[derive(Debug, Clone, Copy)]
pub enum Record<'a> {
    /// An event of an order.
    OrderEvent {
        /// The event with the state of its order after it.
        event: &'a OrderEvent,
        /// Whether the order had been sent: false for orders that were rejected before.
        sent: bool,
    },
    /// An order that is done, or that the end of the run left open.
    Order(&'a OrderRecord),
    /// A fill; follows its order event.
    Fill(&'a FillRow),
    /// A position was opened or closed; follows its fill.
    Position(&'a PositionEvent),
    /// A way from flat to flat.
    RoundTrip(&'a RoundTrip),
    /// The account at the end of a minute.
    Equity(&'a EquityRow),
    /// An instrument at the end of a minute.
    Mark(&'a MarkRow),
    /// The account at the end of a day.
    Day(&'a EquityRow),
    /// A mark of the strategy.
    Signal(TsNanos, &'a Signal),
    /// A decision of the strategy.
    Narrative(TsNanos, &'a NarrativeRecord),
    /// A line of the strategy, or a warning of the host.
    Log(&'a LogLine),
    /// A client's command came to nothing; the log has the same.
    ClientWarning {
        /// Virtual time of the command.
        ts_event: TsNanos,
        /// The id that it named.
        client_order_id: &'a str,
        /// What it was and why it came to nothing.
        text: &'a str,
    },
    /// Shares of an instrument were split before a day's open.
    Split {
        /// The split.
        ex_rights: &'a ExRights,
        /// The instrument's last price, adjusted: what parts of shares were sold at.
        price: Price,
    },
    /// A client's change of an order was refused before it was sent; the order stays as it is.
    ClientRejection {
        /// Virtual time of the command.
        ts_event: TsNanos,
        /// The order.
        client_order_id: &'a str,
        /// Why.
        rejection: &'a Rejection,
    },
    /// What a client did to the run, before what came of it.
    ClientCommand(&'a ClientCommand<'a>),
    /// A trade of the market; only for sinks that want them.
    Trade(&'a Trade),
    /// A bar of the market; only for sinks that want them.
    Bar(&'a Bar),
    /// Cash and equity: after fills where the sink wants it, and where the driver asks for it.
    BuyingPower(&'a BuyingPowerRow),
}

/// What a sink wants besides the rows of tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LiveRecords {
    /// Every trade or bar of the market, before what it does to orders.
    pub market: bool,
    /// Cash and equity after fills.
    pub buying_power: bool,
}

/// Takes the rows of one run.
pub trait RunSink {
    /// Takes one row.
    ///
    /// # Errors
    /// When it cannot be kept. The run ends at its next look outside and reports the error.
    fn take(&mut self, record: Record<'_>) -> io::Result<()>;

    /// The sink before this one cannot keep a row, so that this one does not get it. The run is over for both: no
    /// further row comes.
    fn record_failed(&mut self, _: Record<'_>, _: &io::Error) {}

    /// What it wants besides the rows of tables; asked once, before a run. Nothing by default.
    fn live_records(&self) -> LiveRecords {
        LiveRecords::default()
    }
}

/// Keeps no rows: for runs of which only the totals are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct TotalsOnly;

impl RunSink for TotalsOnly {
    fn take(&mut self, _: Record<'_>) -> io::Result<()> {
        Ok(())
    }
}

/// Gives every row to two sinks, one after the other: nobody is told what is not kept.
pub struct Tee<'a> {
    /// Takes a row first.
    pub first: &'a mut dyn RunSink,
    /// Takes it then, or hears that the first could not.
    pub second: &'a mut dyn RunSink,
}

impl RunSink for Tee<'_> {
    fn take(&mut self, record: Record<'_>) -> io::Result<()> {
        match self.first.take(record) {
            Ok(()) => self.second.take(record),
            Err(error) => {
                self.second.record_failed(record, &error);
                Err(error)
            }
        }
    }

    fn live_records(&self) -> LiveRecords {
        let (first, second) = (self.first.live_records(), self.second.live_records());
        LiveRecords {
            market: first.market || second.market,
            buying_power: first.buying_power || second.buying_power,
        }
    }
}

/// Keeps all rows in memory.
#[derive(Debug, Clone, Default)]
pub struct InMemory {
    orders: Vec<OrderRecord>,
    order_events: Vec<OrderEvent>,
    fills: Vec<FillRow>,
    position_events: Vec<PositionEvent>,
    round_trips: Vec<RoundTrip>,
    equity: Vec<EquityRow>,
    marks: Vec<MarkRow>,
    days: Vec<EquityRow>,
    signals: Vec<(TsNanos, Signal)>,
    narrative: Vec<(TsNanos, NarrativeRecord)>,
    log: Vec<LogLine>,
}

impl RunSink for InMemory {
    fn take(&mut self, record: Record<'_>) -> io::Result<()> {
        match record {
            Record::OrderEvent { event, .. } => self.order_events.push(event.clone()),
            Record::Order(order) => self.orders.push(order.clone()),
            Record::Fill(fill) => self.fills.push(fill.clone()),
            Record::Position(event) => self.position_events.push(event.clone()),
            Record::RoundTrip(trip) => self.round_trips.push(trip.clone()),
            Record::Equity(row) => self.equity.push(*row),
            Record::Mark(row) => self.marks.push(*row),
            Record::Day(row) => self.days.push(*row),
            Record::Signal(ts_event, signal) => self.signals.push((ts_event, signal.clone())),
            Record::Narrative(ts_event, record) => self.narrative.push((ts_event, record.clone())),
            Record::Log(line) => self.log.push(line.clone()),
            Record::ClientWarning { .. }
            | Record::ClientCommand(_)
            | Record::ClientRejection { .. }
            | Record::Split { .. }
            | Record::Trade(_)
            | Record::Bar(_)
            | Record::BuyingPower(_) => {}
        }
        Ok(())
    }
}

impl InMemory {
    /// The rows, with the totals of their run; orders by origin and in the order of
    /// their sending.
    #[must_use]
    pub fn into_result(mut self, totals: RunTotals) -> RunResult {
        // They came as they were done.
        self.orders.sort_by_key(|order| (order.origin, order.number));
        RunResult {
            totals,
            orders: self.orders,
            order_events: self.order_events,
            fills: self.fills,
            position_events: self.position_events,
            round_trips: self.round_trips,
            equity: self.equity,
            marks: self.marks,
            days: self.days,
            signals: self.signals,
            narrative: self.narrative,
            log: self.log,
        }
    }
}
