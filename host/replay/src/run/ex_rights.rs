//! Splits between two days of a run (F12), and overnight gaps that look like one.

use domain::fault::Fault;
use domain::instrument::DailyLimits;
use domain::session::TradingHours;
use domain::strategy::{LogLevel, LogLine};
use domain::{InstrumentIx, Price, TsNanos};

use super::Run;

/// Warnings of a run in its results; the log has them all.
const WARNINGS_MAX: usize = 8;

impl Run<'_> {
    /// Takes in the splits whose date is not after the day that begins, before its open. Those up to
    /// the run's first day were before it.
    pub(super) fn take_ex_rights(&mut self, hours: TradingHours) -> Result<(), Box<Fault>> {
        let due = self.ex_rights.partition_point(|ex_rights| ex_rights.date <= hours.date);
        let (due, later) = self.ex_rights.split_at(due);
        self.ex_rights = later;
        if due.is_empty() || !self.started {
            return Ok(());
        }
        self.last_prices.tell(&mut self.exchange);
        // What was due before the day keeps its own time.
        self.run_due(TsNanos::from_nanos(hours.start.nanos().saturating_sub(1)))?;
        self.now = hours.start;
        for ex_rights in due {
            let Some(price) = self.last_prices.adjust(ex_rights) else { continue };
            self.exchange.adjust(self.now, ex_rights);
            self.recorder.adjustment(self.now, ex_rights, price);
            let message = format!(
                "ex-rights: {} shares of {} from {} on; its last price becomes {price}",
                ex_rights.adjustment,
                self.listed[usize::from(ex_rights.instrument.0)].id,
                ex_rights.date
            );
            self.note(LogLevel::Info, message);
        }
        self.push_portfolio();
        self.deliver()
    }

    /// An overnight gap beyond the day's price range, with shares held, is a split that no daily file
    /// has told, or something else that the results are not to be trusted with.
    pub(super) fn warn_of_gap(
        &mut self,
        hours: TradingHours,
        instrument: InstrumentIx,
        close: Option<Price>,
        first: Price,
    ) {
        let held = self.exchange.account().held(instrument);
        let Some(close) = close.filter(|close| !DailyLimits::around(*close).contains(first)) else {
            return;
        };
        if held == 0 {
            return;
        }
        let message = format!(
            "OVERNIGHT GAP: {} begins {} at {first}, outside the range around its last \
             price {close}, with {held} shares held; a split without the vendor's daily files looks \
             so, and profit and loss are then wrong",
            self.listed[usize::from(instrument.0)].id,
            hours.date
        );
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(message.clone());
        }
        self.note(LogLevel::Warn, message);
    }

    fn note(&mut self, level: LogLevel, message: String) {
        self.recorder.log([LogLine { ts_event: Some(self.now), level, message }]);
    }
}
