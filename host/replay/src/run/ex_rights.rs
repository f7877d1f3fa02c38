//! Splits between two days of a run (F12).

use domain::TsNanos;
use domain::fault::Fault;
use domain::session::TradingHours;
use domain::strategy::{LogLevel, LogLine};

use super::Run;

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
            let index = usize::from(ex_rights.instrument.0);
            let base = self.base_prices[index].map(|price| ex_rights.adjustment.price(price));
            self.base_prices[index] = base;
            let last = self.last_prices.adjust(ex_rights);
            let ticks = self.listed[index].ticks;
            self.split_prices[index] = last.or(base).map(|price| (price, ticks.nearest(price)));
            let Some(price) = last else { continue };
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

    fn note(&mut self, level: LogLevel, message: String) {
        self.recorder.log([LogLine { ts_event: Some(self.now), level, message }]);
    }
}
