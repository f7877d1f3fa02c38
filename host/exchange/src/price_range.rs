//! The prices that a day may trade at (F7): the exchange's range around the base price, as far as it is
//! known from what has traded, and the prices up to which open orders have their cash.

use domain::adjustment::Adjustment;
use domain::instrument::DailyLimits;
use domain::{InstrumentIx, OrderRequest, Price, ReasonCode, Rejection, TickTable, TsNanos};

use crate::order::OrderIx;
use crate::{Exchange, Market};

/// How many times the usual width the exchange takes when a range is not wide enough.
const WIDER: i64 = 4;
/// Notes of left ranges that one run keeps; more are only counted.
const NOTES_MAX: usize = 20;
/// Every price.
pub(crate) const ANY: DailyLimits =
    DailyLimits { low: Price::from_units(i64::MIN + 1), high: Price::from_units(i64::MAX - 1) };

/// The prices of one instrument's day.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PriceRange {
    base: Option<Price>,
    /// None where no base price is known, or a trade has shown that it is none.
    limits: Option<DailyLimits>,
    /// A trade outside makes the range wider, or open orders need other reserves.
    watched: DailyLimits,
}

impl PriceRange {
    pub(crate) const UNKNOWN: Self = Self { base: None, limits: None, watched: ANY };

    /// The range of a day around its base price, where there is one.
    pub(crate) fn of_day(base: Option<Price>, ticks: TickTable) -> Self {
        let limits = base.map(|base| DailyLimits::around(base).aligned(ticks));
        Self { base, limits, watched: limits.unwrap_or(ANY) }
    }

    /// The price that the day's range is around: the last close before it, splits counted in.
    pub(crate) const fn base(&self) -> Option<Price> {
        self.base
    }

    /// The day's limits, where they are known.
    pub(crate) const fn limits(&self) -> Option<DailyLimits> {
        self.limits
    }

    /// Prices whose trades need no attention.
    pub(crate) const fn watched(&self) -> DailyLimits {
        self.watched
    }

    /// Whether trades at these prices, the lowest and the highest, need attention.
    pub(crate) fn is_left_by(&self, low: Price, high: Price) -> bool {
        !self.watched.contains(low) || !self.watched.contains(high)
    }

    /// An order has its cash for these prices only.
    fn watch(&mut self, worst: DailyLimits) {
        if self.limits.is_none() {
            let DailyLimits { low, high } = self.watched;
            self.watched = DailyLimits { low: low.max(worst.low), high: high.min(worst.high) };
        }
    }

    /// Trades at these prices were seen outside. Tells in words what became of known limits.
    fn leave(&mut self, low: Price, high: Price, ticks: TickTable) -> Option<String> {
        let Some((base, before)) = self.base.zip(self.limits) else {
            self.watched = usual(low, high, ticks);
            return None;
        };
        let wide = DailyLimits::around_by(base, WIDER).aligned(ticks);
        let mut limits = before;
        if low < before.low {
            limits.low = wide.low;
        }
        if high > before.high {
            limits.high = wide.high;
        }
        let seen = if high > before.high { high } else { low };
        let left = format!("a trade at {seen} lies outside {} to {}", before.low, before.high);
        if limits.contains(low) && limits.contains(high) {
            *self = Self { base: Some(base), limits: Some(limits), watched: limits };
            return Some(format!(
                "{left}: the range is {} to {} from then on",
                limits.low, limits.high
            ));
        }
        *self = Self { watched: usual(low, high, ticks), ..Self::UNKNOWN };
        Some(format!(
            "{left} and outside {WIDER} times that range: {base} is no base price, no range is checked from then on"
        ))
    }
}

/// The usual range around the lowest and the highest price seen. Both are inside, also where the ticks are
/// so coarse that the grid has no price beyond them.
fn usual(low: Price, high: Price, ticks: TickTable) -> DailyLimits {
    let around = |price| DailyLimits::around(price).aligned(ticks);
    DailyLimits { low: around(low).low.min(low), high: around(high).high.max(high) }
}

impl Market {
    /// The lowest and the highest price that an order may fill at as far as can be known now: the
    /// day's limits, else the usual range around the last trade seen.
    fn expected(&self) -> Option<DailyLimits> {
        let ticks = self.instrument.ticks;
        self.range.limits.or_else(|| self.last_price.map(|last| usual(last, last, ticks)))
    }
}

/// Days whose range a trade has left, for results.
#[derive(Debug, Clone, Default)]
pub(crate) struct RangeNotes {
    kept: Vec<String>,
    more: u64,
}

impl RangeNotes {
    fn add(&mut self, note: String) {
        if self.kept.len() < NOTES_MAX {
            self.kept.push(note);
        } else {
            self.more += 1;
        }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let more = (self.more > 0).then(|| format!("and {} more ranges were left", self.more));
        self.kept.iter().cloned().chain(more).collect()
    }
}

impl Exchange {
    /// The prices that an order needs cash for. A market order needs a price that has traded.
    pub(crate) fn worst_prices(
        &self,
        request: &OrderRequest,
        funari: bool,
    ) -> Result<DailyLimits, Rejection> {
        let expected = self.markets[usize::from(request.instrument.0)].expected();
        let own = request.price.filter(|_| !funari);
        let own = own.map(|price| DailyLimits { low: price, high: price });
        expected.or(own).ok_or_else(|| {
            let text = "NO_REFERENCE_PRICE: nothing has traded yet and no earlier close is known, \
                        so the cost of a market order is unknown; a limit order needs none";
            Rejection::new(ReasonCode::VenueRejected, text)
        })
    }

    /// Notes that an order's cash lasts for its worst prices only.
    pub(crate) fn watch_worst(&mut self, number: OrderIx) {
        let worst = self.orders[number].worst;
        self.market_mut(number).range.watch(worst);
    }

    /// Trades outside the range, or outside of what open orders have cash for: the range becomes
    /// wider and the cash of the instrument's open orders is checked again. `open` is the first price of the row
    /// that shows them, `low` and `high` are the lowest and the highest of them.
    pub(crate) fn leave_range(
        &mut self,
        instrument: InstrumentIx,
        (open, low, high): (Price, Price, Price),
        now: TsNanos,
    ) {
        let is_first = self
            .hours
            .is_some_and(|hours| self.markets[usize::from(instrument.0)].over < hours.start);
        let market = &mut self.markets[usize::from(instrument.0)];
        let ticks = market.instrument.ticks;
        let opens_outside = market.range.limits.is_some_and(|limits| !limits.contains(open));
        if let Some(note) = market.range.leave(low, high, ticks) {
            let id = &market.instrument.id;
            let held = self.account.held(instrument);
            let over = market.over;
            let since_last_trade = |(at, _): &(TsNanos, Adjustment)| *at > over;
            match market.split.filter(since_last_trade) {
                _ if !is_first || !opens_outside => {}
                Some((_, adjustment)) => self.gap_warnings.add(format!(
                    "SPLIT FACTOR: {id}, {now}: {note}; the vendor's factor of that day, \
                     {adjustment} shares, does not fit these prices; if it is wrong, profit and \
                     loss are wrong too"
                )),
                None if held != 0 && !market.splits_known => self.gap_warnings.add(format!(
                    "PRICE GAP: {id}, {now}: {note}; {held} shares were held over night. A split \
                     that is missing from the vendor's daily files looks like this; profit and \
                     loss are then wrong"
                )),
                None => {}
            }
            self.range_notes.add(format!("{id}, {now}: {note}"));
        }
        let worst = market.range.limits.unwrap_or_else(|| usual(low, high, ticks));
        let is_of_it =
            |number: &OrderIx| self.orders[*number].record.request.instrument == instrument;
        let open: Vec<OrderIx> = self.open.iter().copied().filter(is_of_it).collect();
        for number in open {
            self.orders[number].worst = worst;
            self.reserve_again(number, now);
        }
    }

    /// Checks the cash of an open order whose worst prices have changed, also against the money of same-day
    /// round trips (F11), and holds back what is needed now. Tells whether it goes on.
    pub(crate) fn reserve_again(&mut self, number: OrderIx, now: TsNanos) -> bool {
        if let Err(rejection) = self.check_cash_again(number) {
            self.reject(number, now, rejection);
            return false;
        }
        if let Err(rejection) = self.round_trip_rejection_again(number) {
            self.reject(number, now, rejection);
            return false;
        }
        self.release(number);
        self.reserve(number);
        self.has_reserved_again = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yen(yen: i64) -> Price {
        Price::from_yen(yen)
    }

    fn limits(range: &PriceRange) -> Option<(i64, i64)> {
        let in_yen = |price: Price| price.units() / 10_000;
        range.limits().map(|limits| (in_yen(limits.low), in_yen(limits.high)))
    }

    #[test]
    fn a_range_that_is_left_becomes_four_times_as_wide_on_that_side() {
        let mut range = PriceRange::of_day(Some(yen(1_000)), TickTable::Normal);
        assert_eq!(limits(&range), Some((700, 1_300)));
        assert!(!range.is_left_by(yen(700), yen(1_300)));
        assert!(range.is_left_by(yen(1_301), yen(1_301)));
        let note = range.leave(yen(1_301), yen(1_301), TickTable::Normal).unwrap();
        assert_eq!(
            note,
            "a trade at 1301 lies outside 700 to 1300: the range is 700 to 2200 from then on"
        );
        assert_eq!(limits(&range), Some((700, 2_200)));
        range.leave(yen(650), yen(660), TickTable::Normal).unwrap();
        assert_eq!(limits(&range), Some((1, 2_200)), "never below a tick");
        let note = range.leave(yen(9_000), yen(9_000), TickTable::Normal).unwrap();
        assert!(note.contains("1000 is no base price"), "{note}");
        assert_eq!(limits(&range), None);
        assert_eq!(range.watched(), usual(yen(9_000), yen(9_000), TickTable::Normal));
    }

    #[test]
    fn without_a_base_only_what_orders_have_cash_for_is_watched() {
        let mut range = PriceRange::of_day(None, TickTable::Normal);
        assert!(!range.is_left_by(yen(1), yen(1_000_000)));
        range.watch(usual(yen(1_000), yen(1_000), TickTable::Normal));
        range.watch(usual(yen(900), yen(900), TickTable::Normal));
        assert!(
            range.is_left_by(yen(1_051), yen(1_051)) && !range.is_left_by(yen(750), yen(1_050))
        );
        assert_eq!(range.leave(yen(1_051), yen(1_051), TickTable::Normal), None);
        assert!(!range.is_left_by(yen(751), yen(1_351)));
    }

    #[test]
    fn notes_have_a_limit() {
        let mut notes = RangeNotes::default();
        (0..NOTES_MAX + 3).for_each(|number| notes.add(number.to_string()));
        assert_eq!(notes.lines().len(), NOTES_MAX + 1);
        assert_eq!(notes.lines().last().unwrap(), "and 3 more ranges were left");
    }
}
