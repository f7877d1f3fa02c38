//! Splits between two days of a run (F12).

use domain::fault::Fault;
use domain::session::TradingHours;
use domain::strategy::{LogLevel, LogLine};
use domain::{AccountEvent, AccountEventKind, Split, TsNanos};

use super::Run;

impl Run<'_> {
    /// Takes in the splits whose date is not after the day that begins, before its open and its price
    /// ranges; tells what there is to tell the strategy of them once the day has begun. Those up to
    /// the run's first day were before it.
    pub(super) fn take_ex_rights(
        &mut self,
        hours: TradingHours,
    ) -> Result<Vec<AccountEvent>, Box<Fault>> {
        let due = self.ex_rights.partition_point(|ex_rights| ex_rights.date <= hours.date);
        let (due, later) = self.ex_rights.split_at(due);
        self.ex_rights = later;
        let mut events = Vec::new();
        if due.is_empty() || !self.started {
            return Ok(events);
        }
        self.last_prices.tell(&mut self.exchange);
        // What was due before the day keeps its own time.
        self.run_due(TsNanos::from_nanos(hours.start.nanos().saturating_sub(1)))?;
        self.now = hours.start;
        for ex_rights in due {
            let (instrument, adjustment) = (ex_rights.instrument, ex_rights.adjustment);
            let index = usize::from(instrument.0);
            let base = self.base_prices[index].map(|price| adjustment.price(price));
            self.base_prices[index] = base;
            let last_price = self.last_prices.adjust(ex_rights);
            let ticks = self.listed[index].ticks;
            let made = last_price.or(base);
            self.split_prices[index] = made.map(|price| (price, ticks.nearest(price)));
            let cash_paid = self.exchange.adjust(self.now, ex_rights);
            let quantity = self.exchange.account().held(instrument);
            let split = Split { adjustment, quantity, cash_paid, last_price };
            let kind = AccountEventKind::Split(split);
            events.push(AccountEvent { ts_event: self.now, instrument, kind });
            // Where nothing has traded nothing was ever held.
            let Some(price) = last_price else { continue };
            self.recorder.adjustment(self.now, ex_rights, price);
            let message = format!(
                "ex-rights: {adjustment} shares of {} from {} on; its last price becomes {price}",
                self.listed[index].id, ex_rights.date
            );
            self.note(LogLevel::Info, message);
        }
        Ok(events)
    }

    /// Tells the strategy what happened to the account at the present instant, after what became of
    /// its orders, and does what it asks for.
    pub(super) fn tell_account_events(
        &mut self,
        events: &[AccountEvent],
    ) -> Result<(), Box<Fault>> {
        if events.is_empty() {
            return Ok(());
        }
        // Orders go into the new day first, so that those which it ends are told too.
        self.run_due(self.now)?;
        self.deliver()?;
        self.push_portfolio();
        let actions = self.strategy.on_account_events(events)?;
        self.execute(actions);
        self.deliver()
    }

    fn note(&mut self, level: LogLevel, message: String) {
        self.recorder.log([LogLine { ts_event: Some(self.now), level, message }]);
    }
}
