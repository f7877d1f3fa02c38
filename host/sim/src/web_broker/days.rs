//! Business days and trades of the market.

use std::collections::BTreeMap;

use domain::execution::ExecutionClient;
use domain::instrument::DailyLimits;
use domain::market::Trade;
use domain::session::TradingHours;
use domain::{ExchangeCalendar, JstDate, Price, Quantity, TsNanos, clock};

use super::broker::{Broker, DayPrices, ix};
use super::event_log::EventKind;
use super::faults::FaultKind;
use super::times;

/// A day that begins.
#[derive(Debug, Clone)]
pub(crate) struct NewDay {
    pub(crate) date: JstDate,
    /// Its sessions are those of this date; none: the market stands inside the morning session.
    pub(crate) hours_of: Option<JstDate>,
    /// Shares that one share has become overnight, by the issue's place.
    pub(crate) splits: BTreeMap<usize, u64>,
}

impl NewDay {
    /// A day with the sessions of a date.
    pub(crate) fn with_sessions_of(date: JstDate, hours_of: JstDate) -> Self {
        Self { date, hours_of: Some(hours_of), splits: BTreeMap::new() }
    }

    /// A day whose market stands until trades are posted.
    pub(crate) fn standing(date: JstDate) -> Self {
        Self { date, hours_of: None, splits: BTreeMap::new() }
    }

    /// Shares that one share of an issue has become; 1 where there was no split.
    pub(crate) fn split_of(&self, issue: usize) -> u64 {
        self.splits.get(&issue).copied().unwrap_or(1)
    }
}

const NANOS_PER_DAY: u64 = 86_400_000_000_000;
/// The time of day, in Japan, at which a market without data stands: inside the morning session.
pub(super) const STANDING_TIME: u64 = (9 * 60 + 30) * 60 * 1_000_000_000;

impl Broker {
    /// The market stands inside a session: its opening auction is over.
    pub(super) fn stand_at(&mut self, of_day: u64) {
        let opened = self.hours.morning_open;
        for index in 0..self.issues.len() {
            self.exchange.set_last_price(ix(index), self.last[index], opened);
        }
        self.market_time = self.market_time.max(self.hours.start.plus_nanos(of_day));
    }

    /// The broker's clock.
    pub(crate) fn clock(&self) -> TsNanos {
        clock::wall_now().plus_nanos(self.ahead_nanos)
    }

    /// A business day begins: price ranges, orders that go on, the frames that tell the phase.
    pub(super) fn start_day(&mut self, hours: TradingHours) {
        (self.day, self.hours) = (hours.date, hours);
        self.market_time = self.market_time.max(hours.start);
        self.limits = (0..self.issues.len())
            .map(|index| DailyLimits::around(self.last[index]).aligned(self.issues[index].ticks))
            .collect();
        self.log.begin_day();
        for index in 0..self.issues.len() {
            self.exchange.begin_day(hours, ix(index), Some(self.last[index]));
        }
        for number in self.open.clone() {
            let order = &mut self.orders[number];
            (order.day, order.is_carried) = (hours.date, true);
        }
        let now = times::second(self.clock());
        let system = vec![("p_CT", now), ("p_LK", "1".to_owned()), ("p_SS", "1".to_owned())];
        self.log.push(EventKind::Ss, system);
        self.tell_phase();
        self.run_due(hours.start);
        for number in self.open.clone() {
            self.notice(number, "16", None);
        }
        self.release();
    }

    /// The frame of the market's phase.
    pub(crate) fn tell_phase(&mut self) {
        let phase = match self.faults.standing(FaultKind::VenueClosed) {
            Some(phase) => format!("{phase:03}"),
            None if self.is_over => "300".to_owned(),
            None => "120".to_owned(),
        };
        let text = |text: &str| text.to_owned();
        let items = vec![
            ("p_CT", times::second(self.clock())),
            ("p_MC", text("00")),
            ("p_GSCD", String::new()),
            ("p_SHSB", String::new()),
            ("p_UC", text("01")),
            ("p_UU", text("0101")),
            ("p_EDK", text("0")),
            ("p_US", phase),
        ];
        self.log.push(EventKind::Us, items);
    }

    /// Orders are not taken.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_over || self.faults.has(FaultKind::VenueClosed)
    }

    /// The business day ends: orders of the day lapse.
    pub(crate) fn end_day(&mut self) {
        let end = self.market_time.max(self.hours.close);
        self.run_due(end);
        self.market_time = end;
        self.exchange.end_day(end);
        self.take_events();
        self.release();
    }

    /// The day's trading is over: orders of the day lapse, and none is taken.
    pub(crate) fn close_day(&mut self) {
        self.end_day();
        self.is_over = true;
        self.tell_phase();
        self.release();
    }

    /// The business day after this one.
    pub(crate) fn next_date(&self) -> JstDate {
        next_day(&self.calendar, self.day)
    }

    /// Goes to another day, which is later.
    pub(crate) fn begin_day(&mut self, new: &NewDay) {
        let days = (new.date - self.day).num_days().unsigned_abs();
        self.ahead_nanos += days * NANOS_PER_DAY;
        self.is_over = false;
        for (issue, into) in &new.splits {
            self.split(*issue, *into);
        }
        self.start_day(moved_hours(new.date, new.hours_of));
        if new.hours_of.is_none() {
            self.stand_at(STANDING_TIME);
        }
    }

    /// One share of an issue has become `into`. Its orders, of a price and shares of before, lapse.
    fn split(&mut self, issue: usize, into: u64) {
        let is_meant = |index: &usize| self.orders[*index].terms.issue == issue;
        let ending: Vec<usize> = self.open.iter().copied().filter(is_meant).collect();
        for index in ending {
            self.lapse(index);
        }
        self.last[issue] = crate::after_split(self.issues[issue].ticks, self.last[issue], into);
        self.exchange.set_last_price(ix(issue), self.last[issue], self.market_time);
        self.ledger.split(issue, into);
        self.keep_books();
    }

    /// What is due by itself up to `until`.
    pub(super) fn run_due(&mut self, until: TsNanos) {
        while let Some(due) = self.exchange.next_due().filter(|due| *due <= until) {
            self.market_time = self.market_time.max(due);
            self.exchange.run_due();
            self.take_events();
        }
    }

    /// A trade of the market.
    pub(crate) fn trade(&mut self, issue: usize, time: TsNanos, price: Price, shares: u64) {
        let time = time.max(self.market_time);
        self.run_due(time);
        self.market_time = time;
        self.counts.trades += 1;
        for number in &self.open {
            let order = &mut self.orders[*number];
            let (terms, is_waiting) = (&order.terms, order.is_waiting_stop());
            let reached = terms.trigger.is_some_and(|trigger| {
                if terms.is_buy() { price >= trigger } else { price <= trigger }
            });
            if is_waiting && terms.issue == issue && reached {
                order.is_triggered = true;
            }
        }
        let quantity = Quantity::new(shares);
        self.exchange.take_trade(&Trade { ts_event: time, instrument: ix(issue), price, quantity });
        self.exchange.set_last_price(ix(issue), price, time);
        self.note_price(issue, price, shares);
        if self.take_events() {
            self.release();
        }
    }

    fn note_price(&mut self, issue: usize, price: Price, volume: u64) {
        self.last[issue] = price;
        let date = self.day;
        match self.history[issue].last_mut().filter(|row| row.date == date) {
            Some(row) => {
                (row.high, row.low) = (row.high.max(price), row.low.min(price));
                row.close = price;
                row.volume += volume;
            }
            None => self.history[issue].push(DayPrices {
                date,
                open: price,
                high: price,
                low: price,
                close: price,
                volume,
            }),
        }
    }
}

/// The business day after a date.
pub(crate) fn next_day(calendar: &ExchangeCalendar, date: JstDate) -> JstDate {
    calendar.business_day_after(date).unwrap_or(date)
}

/// The business day before a date.
pub(crate) fn day_before(calendar: &ExchangeCalendar, date: JstDate) -> JstDate {
    calendar.business_day_before(date).unwrap_or(date)
}

/// The sessions of a business day: those of the date whose trades are played on it.
pub(crate) fn moved_hours(day: JstDate, hours_of: Option<JstDate>) -> TradingHours {
    let today = TradingHours::longest_of(day);
    let Some(date) = hours_of else { return today };
    let of_date = TradingHours::of(date);
    let moved =
        |time: TsNanos| today.start.plus_nanos(time.nanos().saturating_sub(of_date.start.nanos()));
    TradingHours {
        date: day,
        start: today.start,
        morning_open: moved(of_date.morning_open),
        morning_close: moved(of_date.morning_close),
        afternoon_open: moved(of_date.afternoon_open),
        close: moved(of_date.close),
    }
}
