//! Look-ahead: the first row at which something can happen at the exchange, so that a strategy gets many
//! rows in one call.
//!
//! The rule between this file and the code that matches (`matching`, `auction`, `bars`): a row that is
//! skipped here would have changed nothing there. It may stop too often, never too late. Debug builds
//! try skipped rows on a copy.

use domain::TsNanos;
use domain::instrument::DailyLimits;
use domain::market::{Bar, TradeColumns};

use crate::book::Book;
use crate::{Exchange, Market};

/// Skipped rows that debug builds try in one call at most.
#[cfg(any(debug_assertions, test))]
const ROWS_CHECKED_MAX: usize = 64;

impl Exchange {
    /// The first row of `from..to` before which or at which something can happen here. Only looks;
    /// changes nothing, so it may be asked for any part of the rows, in any pieces.
    #[must_use]
    #[inline]
    pub fn next_stop(&self, rows: TradeColumns<'_>, from: usize, to: usize) -> usize {
        let stop = if self.open.is_empty() && self.schedule.is_empty() {
            self.find_left_range(rows, from, to)
        } else {
            self.find_stop(rows, from, to)
        };
        #[cfg(debug_assertions)]
        self.assert_unmoved_by(rows, from, stop);
        stop
    }

    fn find_stop(&self, rows: TradeColumns<'_>, from: usize, to: usize) -> usize {
        let mut end = to;
        if let Some(due) = self.next_due() {
            end = from + rows.ts_event[from..to].partition_point(|ts| *ts < due.nanos());
        }
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
            let is_outside = |price: &i64| *price < low || *price > high;
            let found = if self.markets.len() == 1 {
                rows.price[from..end].iter().position(is_outside)
            } else {
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
        let reach = reach(&market.book, counts_touches, market.range.watched());
        // A queue moves with trades of any size.
        let needed = if counts_touches { 0 } else { market.smallest_print };
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

    /// The first bar of `from..to` before which or at which something can happen here. Only looks.
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
            let books: Vec<&Book> = exchange.markets.iter().map(|market| &market.book).collect();
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

/// What a trade must be to matter to a book. `touches` says whether a trade at the price of a
/// resting order matters, not only one through it; outside `watched` every trade matters.
#[inline]
fn reach(book: &Book, touches: bool, watched: DailyLimits) -> Reach {
    let through = i64::from(!touches);
    Reach {
        takers_after: book.takers_after,
        auction_from: book.auction_from,
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
mod tests {
    use domain::session::TradingHours;
    use domain::{
        Instrument, InstrumentIx, JstDate, Money, OrderCommand, OrderRequest, OrderSide, OrderType,
        Origin, Price, Quantity, TickTable, TimeInForce,
    };
    use proptest::prelude::*;

    use super::*;
    use crate::ExecutionModel;

    const EVERY_PRICE: DailyLimits =
        DailyLimits { low: Price::from_units(0), high: Price::from_units(i64::MAX - 1) };

    /// A small exchange with orders of every kind at prices near 1,000 yen.
    fn busy(orders: &[(u8, i64, u64)], queue_ahead: Option<u64>, latency_ns: u64) -> Exchange {
        let instrument = Instrument {
            id: "7203.TSE".parse().unwrap(),
            lot: Quantity::new(100),
            ticks: TickTable::Fixed(Price::from_yen(1)),
        };
        let model = ExecutionModel { queue_ahead, latency_ns, ..ExecutionModel::default() };
        let cash = Money::from_yen(1_000_000_000);
        let mut exchange = Exchange::new(model, &[instrument], cash);
        let date = JstDate::from_ymd_opt(2025, 1, 6).unwrap();
        exchange.begin_day(TradingHours::of(date), InstrumentIx(0), Some(Price::from_yen(1_000)));
        exchange.set_last_price(InstrumentIx(0), Price::from_yen(1_000));
        let now = at(0);
        for (number, (kind, yen, lots)) in orders.iter().enumerate() {
            let (order_type, time_in_force) = [
                (OrderType::Market, TimeInForce::Day),
                (OrderType::Limit, TimeInForce::Day),
                (OrderType::StopMarket, TimeInForce::Day),
                (OrderType::StopLimit, TimeInForce::Day),
                (OrderType::Limit, TimeInForce::AtTheClose),
            ][usize::from(*kind) % 5];
            let price = Price::from_yen(*yen);
            let is_stop = matches!(order_type, OrderType::StopMarket | OrderType::StopLimit);
            let has_limit = matches!(order_type, OrderType::Limit | OrderType::StopLimit);
            let request = OrderRequest {
                client_order_id: format!("O-{number}").into(),
                instrument: InstrumentIx(0),
                side: OrderSide::Buy,
                order_type,
                quantity: Quantity::new(lots * 100),
                price: has_limit.then_some(price),
                trigger_price: is_stop.then_some(price),
                trigger_type: None,
                time_in_force,
                expire_time: None,
                post_only: false,
                reduce_only: false,
                tags: Vec::new(),
            };
            let origin = if number % 3 == 0 { Origin::Client } else { Origin::Strategy };
            exchange.execute(now, origin, OrderCommand::Submit(request));
        }
        exchange.take_events();
        exchange
    }

    /// A time so many milliseconds after 09:30.
    fn at(ms: u64) -> TsNanos {
        let date = JstDate::from_ymd_opt(2025, 1, 6).unwrap();
        TsNanos::from_jst(date, 34_200_000_000_000 + ms * 1_000_000).unwrap()
    }

    proptest! {
        /// The rule of this module, also where debug assertions are off.
        #[test]
        fn a_skipped_row_would_have_changed_nothing(
            orders in prop::collection::vec((any::<u8>(), 990..1_010_i64, 1..5_u64), 1..8),
            queue_ahead in prop::sample::select(vec![None, Some(0), Some(300)]),
            latency_ns in prop::sample::select(vec![0, 3_000_000]),
            rows in prop::collection::vec((0..4_u64, 985..1_015_i64, 1..9_u64), 1..40),
        ) {
            let exchange = busy(&orders, queue_ahead, latency_ns);
            let mut now = 0;
            let (mut ts_event, mut price, mut quantity) = (Vec::new(), Vec::new(), Vec::new());
            for (step, yen, half_lots) in rows {
                now += step;
                ts_event.push(at(now).nanos());
                price.push(Price::from_yen(yen).units());
                quantity.push(half_lots * 50);
            }
            let instrument = vec![0; ts_event.len()];
            let columns = TradeColumns {
                ts_event: &ts_event,
                instrument: &instrument,
                price: &price,
                quantity: &quantity,
            };
            for from in 0..ts_event.len() {
                let stop = exchange.next_stop(columns, from, ts_event.len());
                exchange.assert_unmoved_by(columns, from, stop);
            }
        }
    }

    #[test]
    #[should_panic(expected = "was skipped and moves something")]
    fn a_row_that_moves_something_is_seen() {
        let exchange = busy(&[(1, 1_000, 1)], None, 0);
        let columns = TradeColumns {
            ts_event: &[at(5).nanos()],
            instrument: &[0],
            price: &[Price::from_yen(990).units()],
            quantity: &[100],
        };
        exchange.assert_unmoved_by(columns, 0, 1);
    }

    #[test]
    fn what_matters_depends_on_the_kind_of_order() {
        let mut book = Book::default();
        let hit = |book: &Book, touches, price: i64, quantity| {
            reach(book, touches, EVERY_PRICE).is_hit_by(
                5,
                Price::from_yen(price).units(),
                quantity,
                100,
            )
        };
        assert!(!hit(&book, false, 10, 100), "nobody is there");
        book.buys.add(Price::from_yen(10), 1, 1);
        assert!(!hit(&book, false, 10, 100) && hit(&book, true, 10, 100));
        assert!(hit(&book, false, 9, 100) && !hit(&book, false, 9, 99));
        book.stop_buys.add(Price::from_yen(20), 2, 2);
        assert!(hit(&book, false, 20, 1), "a stop needs no volume");
        book.add_taker(3, 3, TsNanos::from_nanos(5));
        assert!(!hit(&book, false, 15, 100), "the same instant");
        book.add_taker(4, 4, TsNanos::from_nanos(4));
        assert!(hit(&book, false, 15, 100));
        book.remove_taker(4);
        assert!(!hit(&book, false, 15, 100));
        book.add_to_auction(5, TsNanos::from_nanos(5));
        assert!(hit(&book, false, 15, 1));
    }
}
