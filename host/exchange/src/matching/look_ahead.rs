//! Look-ahead: the first row at which the exchange may act, so that a strategy gets many rows in one
//! call. The rule between this file and the code that matches (`matching`, `auction`, `bars`): a row
//! that is skipped here would have changed nothing there. It may stop too often, never too late. So
//! trades are skipped while they reach no price of the book and no auction, bars only while the book
//! is empty, and nothing that is due is passed. Debug builds try skipped rows on a copy.

use domain::TsNanos;
use domain::instrument::DailyLimits;
use domain::market::{Bar, TradeColumns};

use crate::book::Book;
use crate::{Exchange, Market};

/// Rows that are looked at together while nothing is open.
const CALM_ROWS_MAX: usize = 4_096;

/// Skipped rows that debug builds try in one call at most.
#[cfg(any(debug_assertions, test))]
const ROWS_CHECKED_MAX: usize = 64;

impl Exchange {
    /// The first row of `from..to` before which or at which the exchange may act. Only looks;
    /// changes nothing, so it may be asked for any part of the rows, in any pieces.
    #[must_use]
    #[inline]
    pub fn next_stop(&self, rows: TradeColumns<'_>, from: usize, to: usize) -> usize {
        self.next_stop_past(rows, from, to, &mut 0)
    }

    /// The same for one who asks for many parts of the same rows on one day. `calm` begins with 0: rows
    /// before it were looked at and are inside their ranges. A range only grows during a day, so they are
    /// not looked at again.
    #[must_use]
    #[inline]
    pub fn next_stop_past(
        &self,
        rows: TradeColumns<'_>,
        from: usize,
        to: usize,
        calm: &mut usize,
    ) -> usize {
        let to = self.before_due(rows, from, to);
        let stop = if self.open.is_empty() {
            if *calm <= from {
                let end = rows.price.len().min(from + CALM_ROWS_MAX);
                *calm = self.find_left_range(rows, from, end);
            }
            to.min(*calm)
        } else {
            self.find_stop(rows, from, to)
        };
        #[cfg(debug_assertions)]
        self.assert_unmoved_by(rows, from, stop);
        stop
    }

    /// The first row that comes after what is due next.
    fn before_due(&self, rows: TradeColumns<'_>, from: usize, to: usize) -> usize {
        let due = self.next_due().map_or(u64::MAX, TsNanos::nanos);
        match rows.ts_event[from..to].last() {
            Some(last) if *last >= due => {
                from + rows.ts_event[from..to].partition_point(|ts| *ts < due)
            }
            _ => to,
        }
    }

    fn find_stop(&self, rows: TradeColumns<'_>, from: usize, to: usize) -> usize {
        let mut end = to;
        for index in 0..self.markets.len() {
            end = self.find_match(index, rows, from, end);
        }
        end
    }

    /// The first row outside the day's range of its instrument; orders there are none.
    fn find_left_range(&self, rows: TradeColumns<'_>, from: usize, to: usize) -> usize {
        let mut end = to;
        for (index, market) in self.markets.iter().enumerate() {
            // Without limits only the cash of open orders is watched.
            let Some(limits) = market.range.limits() else { continue };
            let (low, high) = (limits.low.units(), limits.high.units());
            let found = if self.markets.len() == 1 {
                first_outside(&rows.price[from..end], low, high)
            } else {
                let is_outside = |price: &i64| (*price < low) | (*price > high);
                let pairs = rows.price[from..end].iter().zip(&rows.instrument[from..end]);
                let mut outside =
                    pairs.map(|(price, of)| usize::from(*of) == index && is_outside(price));
                outside.position(|outside| outside)
            };
            end = found.map_or(end, |found| from + found);
        }
        end
    }

    /// The first row that may fill, trigger, move or end an order of this market, or leave its range.
    fn find_match(
        &self,
        instrument: usize,
        rows: TradeColumns<'_>,
        from: usize,
        to: usize,
    ) -> usize {
        let market = &self.markets[instrument];
        let counts_touches = self.model.queue_ahead.is_some();
        let watched = market.range.watched();
        let reach = reach(&market.book, counts_touches, market.auction_from, watched);
        // A queue moves with trades of any size, and they show that the price has left an order.
        let moves_by_any = counts_touches || market.book.has_limit_takers;
        let needed = if moves_by_any { 0 } else { market.smallest_print };
        let columns = rows.ts_event[from..to]
            .iter()
            .zip(&rows.instrument[from..to])
            .zip(&rows.price[from..to])
            .zip(&rows.quantity[from..to]);
        let mut matters = columns.map(|(((ts, of), price), quantity)| {
            usize::from(*of) == instrument && reach.is_hit_by(*ts, *price, *quantity, needed)
        });
        matters.position(|matters| matters).map_or(to, |found| from + found)
    }

    /// The first bar of `from..to` before which or at which the exchange may act. Only looks.
    #[must_use]
    pub fn next_bar_stop(&self, bars: &[Bar], from: usize, to: usize) -> usize {
        let due = self.next_due().unwrap_or(TsNanos::MAX);
        let acts = |market: &Market, bar: &Bar| {
            !market.book.is_empty() || market.range.is_left_by(bar.low, bar.high)
        };
        let matters = |bar: &Bar| {
            let market = self.markets.get(usize::from(bar.instrument.0));
            bar.ts_event >= due || market.is_some_and(|market| acts(market, bar))
        };
        let stop = bars[from..to].iter().position(matters).map_or(to, |found| from + found);
        #[cfg(debug_assertions)]
        for bar in &bars[from..stop.min(from + ROWS_CHECKED_MAX)] {
            self.assert_unmoved(|copy| copy.take_bar(bar.instrument, bar), bar.ts_event);
        }
        stop
    }

    /// Holds skipped trades against the code that matches: none of them moves anything.
    #[cfg(any(debug_assertions, test))]
    fn assert_unmoved_by(&self, rows: TradeColumns<'_>, from: usize, stop: usize) {
        for row in from..stop.min(from + ROWS_CHECKED_MAX) {
            let trade = rows.trade(row);
            self.assert_unmoved(|copy| copy.take_trade(&trade), trade.ts_event);
        }
    }

    #[cfg(any(debug_assertions, test))]
    fn assert_unmoved(&self, act: impl FnOnce(&mut Self), at: TsNanos) {
        let trace = |exchange: &Self| {
            // Where orders work, an auction must not go by unseen.
            let auction_from = |market: &Market| {
                if market.book.is_empty() { TsNanos::MAX } else { market.auction_from }
            };
            let markets = exchange.markets.iter();
            let books: Vec<_> =
                markets.map(|market| (&market.book, auction_from(market))).collect();
            let open: Vec<_> =
                exchange.open.iter().map(|number| &exchange.orders[*number]).collect();
            let limits: Vec<_> =
                exchange.markets.iter().map(|market| market.range.limits()).collect();
            format!("{books:?} {open:?} {limits:?} {:?} {:?}", exchange.account, exchange.events)
        };
        assert!(self.next_due().is_none_or(|due| due > at), "a row at {at} skips what is due");
        let mut copy = self.clone();
        act(&mut copy);
        assert_eq!(trace(self), trace(&copy), "a row at {at} was skipped and moves something");
    }
}

/// The first price below `low` or above `high`, which is almost never there: whole pieces are passed without a
/// branch for each price.
fn first_outside(prices: &[i64], low: i64, high: i64) -> Option<usize> {
    const PIECE: usize = 64;
    // Below 0 where the price is outside: no price of a market and no limit is below 0, so nothing overflows.
    let side = |price: &i64| price.wrapping_sub(low) | high.wrapping_sub(*price);
    let mut passed = 0;
    for piece in prices.chunks(PIECE) {
        if piece.iter().fold(0, |sides, price| sides | side(price)) < 0 {
            return piece.iter().position(|price| side(price) < 0).map(|at| passed + at);
        }
        passed += piece.len();
    }
    None
}

/// What a trade must be to matter to a book. `touches` says whether a trade at the price of a
/// resting order matters, not only one through it; from the auction on a trade is one, and outside
/// the watched range every trade matters.
#[inline]
fn reach(book: &Book, touches: bool, auction_from: TsNanos, watched: DailyLimits) -> Reach {
    let through = i64::from(!touches);
    Reach {
        takers_after: book.takers_after,
        auction_from,
        resting: Span {
            low: book.buys.first_price().map_or(i64::MIN, |price| price - through),
            high: book.sells.first_price().map_or(i64::MAX, |price| price + through),
        },
        stops: Span {
            low: book.stop_sells.first_price().unwrap_or(i64::MIN),
            high: book.stop_buys.first_price().unwrap_or(i64::MAX),
        },
        range: Span { low: watched.low.units() - 1, high: watched.high.units() + 1 },
    }
}

/// Two prices; what is at or outside them matters.
#[derive(Debug, Clone, Copy)]
struct Span {
    low: i64,
    high: i64,
}

impl Span {
    #[inline]
    const fn is_hit_by(self, price: i64) -> bool {
        price <= self.low || price >= self.high
    }
}

/// What a trade must be to matter to a book.
#[derive(Debug, Clone, Copy)]
struct Reach {
    takers_after: TsNanos,
    auction_from: TsNanos,
    resting: Span,
    stops: Span,
    range: Span,
}

impl Reach {
    /// Whether a trade may fill, trigger or end an order. One of fewer than `needed` shares fills
    /// none.
    #[inline]
    fn is_hit_by(self, ts_event: u64, price: i64, quantity: u64, needed: u64) -> bool {
        let may_fill = ts_event > self.takers_after.nanos() || self.resting.is_hit_by(price);
        may_fill && quantity >= needed
            || self.stops.is_hit_by(price)
            || self.range.is_hit_by(price)
            || ts_event >= self.auction_from.nanos()
    }
}

#[cfg(test)]
mod tests;
