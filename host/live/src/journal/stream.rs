//! A stream of the market whose steps go into a journal.

use domain::fault::FaultKind;
use replay::stream::{MarketStream, StreamStep};

use super::record::{HostRecord, Row};
use super::writer::Journal;

/// A stream whose steps go into a journal, each before all that it causes. Where the journal fails, the run fails
/// with [`FaultKind::Journal`], also while the strategy is not called.
pub struct JournaledStream<'a> {
    source: &'a mut dyn MarketStream,
    journal: Journal,
}

impl<'a> JournaledStream<'a> {
    /// A stream with the journal of its run.
    #[must_use]
    pub const fn new(source: &'a mut dyn MarketStream, journal: Journal) -> Self {
        Self { source, journal }
    }
}

impl MarketStream for JournaledStream<'_> {
    fn ready(&mut self) {
        self.source.ready();
    }

    fn next(&mut self) -> StreamStep {
        let step = self.source.next();
        self.journal.step(&step);
        match self.journal.failure() {
            Some(text) => StreamStep::Fail(FaultKind::Journal(text)),
            None => step,
        }
    }
}

impl Journal {
    /// Records a step of the market.
    pub(crate) fn step(&self, step: &StreamStep) {
        match step {
            StreamStep::Trade { trade, aggressor } => {
                self.row(Row::Trade { trade: *trade, aggressor: *aggressor });
            }
            StreamStep::Bar(bar) => self.row(Row::Bar(*bar)),
            StreamStep::EndOfDay => self.host(HostRecord::EndOfDay),
            StreamStep::Note(text) => self.host(HostRecord::Note(text.into())),
            StreamStep::MarketDataLost(is_lost) => {
                self.host(HostRecord::MarketDataLost(*is_lost));
            }
            StreamStep::Stop => self.host(HostRecord::Stop),
            StreamStep::Fail(kind) => {
                self.host(HostRecord::Failed(kind.to_string().into()));
            }
            // It changes nothing; and a live market gives no orders.
            StreamStep::ReportBuyingPower | StreamStep::Order { .. } => {}
        }
    }
}
