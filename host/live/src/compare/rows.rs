//! The rows of a journal as a stream of the market.

use std::iter::Take;

use domain::fault::FaultKind;
use replay::stream::{MarketStream, StreamStep};

use crate::journal::{HostRecord, Input, JournalError, Record, Records, Row};

/// Gives what a journal says of the market, and of the host, in its order.
pub(super) struct JournalRows {
    records: Take<Records>,
    /// A row was given that the recorded strategy has not got yet. Another one before that is the same row, with the
    /// time at which it was given.
    row_waits: bool,
    error: Option<JournalError>,
}

impl JournalRows {
    /// The rows of the first `count` records: a run that goes on writes more of them.
    pub(super) fn new(records: Records, count: usize) -> Self {
        Self { records: records.take(count), row_waits: false, error: None }
    }

    /// Why it ended before the journal did.
    pub(super) fn into_error(self) -> Option<JournalError> {
        self.error
    }

    /// The step of a record, if it has one.
    fn step(&mut self, record: &Record<'_>) -> Option<StreamStep> {
        match record {
            Record::Row(row) => {
                if std::mem::replace(&mut self.row_waits, true) {
                    return None;
                }
                Some(match *row {
                    Row::Trade { trade, aggressor } => StreamStep::Trade { trade, aggressor },
                    Row::Bar(bar) => StreamStep::Bar(bar),
                })
            }
            Record::Call(call) => {
                if matches!(call.input, Input::Row) {
                    self.row_waits = false;
                }
                None
            }
            Record::Host(host) => Some(match host {
                HostRecord::EndOfDay => StreamStep::EndOfDay,
                HostRecord::Note(text) => StreamStep::Note(text.clone().into_owned()),
                HostRecord::MarketDataLost(is_lost) => StreamStep::MarketDataLost(*is_lost),
                // The stop was a step before it.
                HostRecord::End => return None,
                HostRecord::Stop => StreamStep::Stop,
                HostRecord::Failed(text) => {
                    StreamStep::Fail(FaultKind::Journal(text.clone().into_owned()))
                }
            }),
            Record::Header(_) | Record::Portfolio(_) => None,
        }
    }
}

impl MarketStream for JournalRows {
    fn ready(&mut self) {}

    fn next(&mut self) -> StreamStep {
        while let Some(record) = self.records.next() {
            match record {
                Ok(record) => {
                    if let Some(step) = self.step(&record) {
                        return step;
                    }
                }
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            }
        }
        // Nobody knows what the run did then.
        StreamStep::Fail(FaultKind::Journal("the journal ends here".to_owned()))
    }
}
