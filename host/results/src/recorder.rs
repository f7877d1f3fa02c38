//! Takes notes during a run: every row goes on to the sink at once, and what the statistics need is
//! kept in a few numbers.

mod ledger;
mod minutes;
mod working;

use std::io;

use domain::adjustment::ExRights;
use domain::digest::EventLogDigest;
use domain::strategy::{LogLine, NarrativeRecord, Signal};
use domain::{
    Fill, InstrumentIx, Money, OrderEvent, OrderEventKind, OrderRecord, OrderStatus, Price, TsNanos,
};

use crate::rows::{FillRow, PositionEnd};
use crate::sink::{Record, RunSink};
use crate::statistics::Performance;
use crate::totals::OrderCounts;
use ledger::Ledger;
use minutes::Minutes;
pub use minutes::{DaySlice, RowTimes};
use working::{Noted, WorkingOrders};

/// Takes notes during a run.
pub struct Recorder<'s> {
    sink: Notes<'s>,
    /// Identity of what was recorded so far.
    pub digest: EventLogDigest,
    ledger: Ledger,
    minutes: Minutes,
    working: WorkingOrders,
    performance: Performance,
    order_counts: OrderCounts,
    fill_count: u64,
}

/// A sink that remembers its first failure. Nothing is written after it.
pub(crate) struct Notes<'s> {
    sink: &'s mut dyn RunSink,
    failure: Option<io::Error>,
}

impl Notes<'_> {
    pub(crate) fn take(&mut self, record: Record<'_>) {
        if self.failure.is_none()
            && let Err(error) = self.sink.take(record)
        {
            self.failure = Some(error);
        }
    }
}

/// What the recorder knows when a run ends.
#[derive(Debug)]
pub struct RecorderTotals {
    /// What the statistics are made of.
    pub performance: Performance,
    /// Orders by how they ended.
    pub order_counts: OrderCounts,
    /// Fills of all orders.
    pub fill_count: u64,
    /// Each instrument at the end.
    pub positions: Vec<PositionEnd>,
    /// The first failure of the sink, which has seen no row after it.
    pub failure: Option<io::Error>,
}

impl<'s> Recorder<'s> {
    /// Notes for a run that starts with `cash` and trades `instruments` instruments.
    pub fn new(sink: &'s mut dyn RunSink, cash: Money, instruments: usize) -> Self {
        Self {
            sink: Notes { sink, failure: None },
            digest: EventLogDigest::default(),
            ledger: Ledger::new(cash, instruments),
            minutes: Minutes::new(cash, instruments),
            working: WorkingOrders::default(),
            performance: Performance::new(cash),
            order_counts: OrderCounts::default(),
            fill_count: 0,
        }
    }

    /// Whether the sink has failed, so that going on makes no sense.
    pub const fn has_failed(&self) -> bool {
        self.sink.failure.is_some()
    }

    /// Notes a position that was bought before the run, for `cost`: the run begins with it (specification 4, P103).
    pub fn carry(&mut self, ts_event: TsNanos, carried: (InstrumentIx, i64, Money)) {
        let booked = self.ledger.carry(ts_event, carried);
        self.minutes.note(booked);
    }

    /// Adds shares that the account holds from before the run; they have cost nothing.
    pub fn hold(&mut self, instrument: InstrumentIx, shares: i64) {
        self.ledger.hold(instrument, shares);
    }

    /// Notes an event of an order.
    pub fn order_event(&mut self, event: &OrderEvent) {
        self.digest.order_event(event);
        let Noted { sent, limit } = self.working.note(event);
        self.sink.take(Record::OrderEvent { event, sent });
        if let OrderEventKind::Filled(fill) = &event.kind {
            self.fill(event, fill, limit);
        }
    }

    fn fill(&mut self, event: &OrderEvent, fill: &Fill, limit: Option<Price>) {
        // A resting order gets the price it asked for, whatever the market paid beyond it.
        let asked_for = limit == Some(fill.last_price);
        let worse = (fill.last_price.units() - fill.market_price.units()) * fill.side.sign();
        let slippage = if asked_for {
            Money::ZERO
        } else {
            Money::checked_notional(Price::from_units(worse), fill.last_quantity)
                .unwrap_or_default()
        };
        let row = FillRow::of(event, fill, slippage);
        self.fill_count += 1;
        self.performance.fill(&row);
        self.sink.take(Record::Fill(&row));
        let (booked, told) = self.ledger.book(&row);
        if let Some(told) = told {
            self.sink.take(Record::Position(&told));
        }
        self.minutes.note(booked);
    }

    /// Notes that shares were split before a day's open. `price` is the last price, adjusted.
    pub fn adjustment(&mut self, ts_event: TsNanos, ex_rights: &ExRights, price: Price) {
        let (booked, paid) = self.ledger.adjust(ts_event, ex_rights, price);
        self.digest.adjustment(ts_event, ex_rights, paid);
        self.minutes.adjust(booked, price);
    }

    /// Notes a mark of the strategy.
    pub fn signal(&mut self, ts_event: TsNanos, signal: &Signal) {
        self.digest.signal(ts_event, signal);
        self.sink.take(Record::Signal(ts_event, signal));
    }

    /// Notes a decision of the strategy.
    pub fn narrative(&mut self, ts_event: TsNanos, record: &NarrativeRecord) {
        self.digest.narrative(ts_event, record);
        self.sink.take(Record::Narrative(ts_event, record));
    }

    /// Notes lines of the strategy.
    pub fn log(&mut self, lines: impl IntoIterator<Item = LogLine>) {
        for line in lines {
            self.sink.take(Record::Log(&line));
        }
    }

    /// Tells subscribers what is no row of a table: the market, cash and equity, a command of a
    /// client that came to nothing. Nothing of it is kept.
    pub fn tell(&mut self, record: Record<'_>) {
        self.sink.take(record);
    }

    /// Notes an order that is done, or that the end of the run leaves open.
    pub fn order(&mut self, order: &OrderRecord) {
        self.order_counts.all += 1;
        match order.status {
            OrderStatus::Filled => self.order_counts.filled += 1,
            OrderStatus::Rejected => self.order_counts.rejected += 1,
            OrderStatus::Expired => self.order_counts.expired += 1,
            OrderStatus::Canceled => self.order_counts.canceled += 1,
            _ => {}
        }
        self.sink.take(Record::Order(order));
    }

    /// Values the account at the end of each of some minutes of a day that goes on: all rows of these minutes,
    /// one slice for each instrument. The rows of a live market are not kept for the day's end.
    pub fn minutes(&mut self, rows: &[DaySlice<'_>], times: RowTimes) {
        self.minutes.value(rows, times, &mut self.performance, &mut self.sink);
    }

    /// Values the account at the end of each minute of a day: one slice for each instrument, cut to
    /// the rows that the strategy has seen. Minutes that are valued already are left out.
    pub fn end_day(&mut self, day: &[DaySlice<'_>], times: RowTimes) {
        self.minutes.end_day(day, times, &mut self.performance, &mut self.sink);
    }

    /// Values the account at `ts_event`, the end of a day on which nothing traded.
    pub fn end_day_without_rows(&mut self, ts_event: TsNanos) {
        self.minutes.end_day_without_rows(ts_event, &mut self.performance, &mut self.sink);
    }

    /// What is known at the end.
    pub fn finish(mut self) -> RecorderTotals {
        // Fills after the last day's end would be a fault of the loop; they are not lost even then.
        self.minutes.flush(&mut self.performance, &mut self.sink);
        RecorderTotals {
            positions: self.ledger.positions(self.minutes.last_prices()),
            performance: self.performance,
            order_counts: self.order_counts,
            fill_count: self.fill_count,
            failure: self.sink.failure,
        }
    }
}
