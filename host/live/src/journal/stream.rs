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
        match &step {
            StreamStep::Trade { trade, aggressor } => {
                self.journal.row(Row::Trade { trade: *trade, aggressor: *aggressor });
            }
            StreamStep::Bar(bar) => self.journal.row(Row::Bar(*bar)),
            StreamStep::EndOfDay => self.journal.host(HostRecord::EndOfDay),
            StreamStep::Note(text) => self.journal.host(HostRecord::Note(text.into())),
            StreamStep::MarketDataLost(is_lost) => {
                self.journal.host(HostRecord::MarketDataLost(*is_lost));
            }
            StreamStep::Stop => self.journal.host(HostRecord::Stop),
            StreamStep::Fail(kind) => {
                self.journal.host(HostRecord::Failed(kind.to_string().into()));
            }
            // It changes nothing; and a live market gives no orders.
            StreamStep::ReportBuyingPower | StreamStep::Order { .. } => {}
        }
        match self.journal.failure() {
            Some(text) => StreamStep::Fail(FaultKind::Journal(text)),
            None => step,
        }
    }
}
