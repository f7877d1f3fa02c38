//! Splits between two days of a run (F12), and other lots and price steps (F7).

use domain::fault::Fault;
use domain::session::TradingHours;
use domain::strategy::LogLevel;
use domain::{AccountEvent, AccountEventKind, InstrumentIx, JstDate, Split};
use results::sink::Record;

use super::Run;
use crate::options::UnitChange;

impl Run<'_> {
    /// Takes in the splits whose date is not after the day that begins, before its open and its price
    /// ranges. Gives the events that the strategy gets once the day has begun. Splits up to the run's first day
    /// were before it.
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
        let now = hours.start;
        self.session.now = now;
        for ex_rights in due {
            let (instrument, adjustment) = (ex_rights.instrument, ex_rights.adjustment);
            let index = usize::from(instrument.0);
            let last_price = self.session.prices.adjust(ex_rights);
            self.split_prices[index] = self.session.prices.known(instrument);
            let price = self.split_prices[index].unwrap_or_default();
            self.check_position(ex_rights.date, instrument, (0, price))?;
            let cash_paid = self.session.execution.adjust(now, ex_rights);
            let quantity = self.session.execution.account().held(instrument);
            self.check_position(ex_rights.date, instrument, (quantity, price))?;
            let split = Split { adjustment, quantity, cash_paid, last_price };
            let kind = AccountEventKind::Split(split);
            events.push(AccountEvent { ts_event: now, instrument, kind });
            // Where nothing has traded nothing was ever held.
            let Some(price) = last_price else { continue };
            self.session.recorder.adjustment(now, ex_rights, price);
            self.session.recorder.tell(Record::Split { ex_rights, price });
            let message = format!(
                "ex-rights: {adjustment} shares of {} from {} on; its last price becomes {price}",
                self.listed[index].id, ex_rights.date
            );
            self.session.note(LogLevel::Info, message);
        }
        Ok(events)
    }

    /// Takes in other lots and price steps from the day on that begins, before its open. Says whether
    /// there were any.
    pub(super) fn take_unit_changes(&mut self, hours: TradingHours) -> bool {
        let due = self.unit_changes.partition_point(|change| change.date <= hours.date);
        let (due, later) = self.unit_changes.split_at(due);
        self.unit_changes = later;
        if due.is_empty() {
            return false;
        }
        if self.started {
            self.session.now = hours.start;
        }
        for UnitChange { date, instrument, lot, ticks } in due.iter().copied() {
            self.session.execution.set_units(self.session.now, instrument, lot, ticks);
            if self.started {
                let id = &self.listed[usize::from(instrument.0)].id;
                let message = format!("{id}: lot {lot}, ticks {ticks} from {date} on");
                self.session.note(LogLevel::Info, message);
            }
        }
        true
    }

    /// Whether a split of what is held would be known, of every business day after its last trade up
    /// to `date`.
    pub(super) fn are_splits_known(&self, instrument: InstrumentIx, date: JstDate) -> bool {
        let options = self.options;
        if self.session.execution.account().held(instrument) == 0 {
            return true;
        }
        let Some(last) = self.session.prices.date_of(instrument) else { return true };
        let known = options.split_dates_known.get(usize::from(instrument.0));
        let is_known = |day: &JstDate| known.is_some_and(|days| days.binary_search(day).is_ok());
        let days = last.iter_days().skip(1).take_while(|day| *day <= date);
        let mut open = days.filter(|day| *day == date || options.calendar.is_business_day(*day));
        open.all(|day| is_known(&day))
    }
}
