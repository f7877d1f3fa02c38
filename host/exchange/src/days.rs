//! Trading days: where orders stand when they arrive, how days begin and end (F6, F8).

use std::sync::Arc;

use domain::adjustment::ExRights;
use domain::order::OrderTrigger;
use domain::session::{AUCTION_SLACK, TradingHours};
use domain::time::{JST_OFFSET_NANOS, NANOS_PER_DAY};
use domain::{
    InstrumentIx, Money, OrderEventKind, Price, Quantity, TickTable, TimeInForce, TsNanos,
};

use crate::order::{Order, OrderIx, Standing};
use crate::price_range::PriceRange;
use crate::{Exchange, Scheduled};

/// Why orders expire when the data ends (F8).
const END_OF_DATA: &str = "END_OF_DATA";

impl Exchange {
    /// A trading day with the sessions `hours` begins for an instrument, whose last close before it
    /// is `base`; without one no range is known (F7). To be called for each instrument before anything
    /// of that day.
    pub fn begin_day(
        &mut self,
        hours: TradingHours,
        instrument: InstrumentIx,
        base: Option<Price>,
    ) {
        let market = &mut self.markets[usize::from(instrument.0)];
        market.range = PriceRange::of_day(base, market.instrument.ticks);
        market.auction_from = hours.morning_open;
        let is_new = self.hours.is_none_or(|present| present.date != hours.date);
        self.hours = Some(hours);
        if is_new {
            self.begin_round_trips();
        }
        if is_new && !self.open.is_empty() {
            self.schedule_at(hours.start, Scheduled::CarryOver);
        }
    }

    /// Tells whether the splits of an instrument since its last close are known, for the day that
    /// begins.
    pub fn set_splits_known(&mut self, instrument: InstrumentIx, known: bool) {
        self.markets[usize::from(instrument.0)].splits_known = known;
    }

    /// An instrument has another lot or other price steps from the day on that begins at `now`,
    /// before [`Self::begin_day`] of it (F7). With another lot its open orders expire; with other
    /// steps those of them do whose limit or trigger is no price any more.
    pub fn set_units(
        &mut self,
        now: TsNanos,
        instrument: InstrumentIx,
        lot: Quantity,
        ticks: TickTable,
    ) {
        let before = &self.markets[usize::from(instrument.0)].instrument;
        let other_lot = before.lot != lot;
        let ends = |number: &OrderIx| {
            let request = &self.orders[*number].record.request;
            let mut prices = request.price.into_iter().chain(request.trigger_price);
            let is_off_grid = prices.any(|price| ticks.floor(price) != price);
            request.instrument == instrument && (other_lot || is_off_grid)
        };
        let ending: Vec<OrderIx> = self.open.iter().copied().filter(ends).collect();
        let why = if other_lot { "LOT_CHANGE" } else { "TICK_CHANGE" };
        for number in ending {
            self.expire(number, now, Some(why));
        }
        let market = &mut self.markets[usize::from(instrument.0)];
        (market.instrument.lot, market.instrument.ticks) = (lot, ticks);
        market.smallest_print = self.model.smallest_print(lot);
    }

    /// The shares of an instrument trade without a right from the day on that begins at `now`, before
    /// [`Self::begin_day`] of it (F12): its open orders expire, and the position and the last price
    /// change. Tells the money paid for the rest of a share.
    pub fn adjust(&mut self, now: TsNanos, ex_rights: &ExRights) -> Money {
        let instrument = ex_rights.instrument;
        self.expire_where(now, Some("EX_RIGHTS"), |order| {
            order.record.request.instrument == instrument
        });
        let market = &mut self.markets[usize::from(instrument.0)];
        let last = market.last_price.map(|price| ex_rights.adjustment.price(price));
        market.last_price = last;
        market.split = Some((now, ex_rights.adjustment));
        // Where there is no price nothing was ever held.
        self.account.adjust(instrument, ex_rights.adjustment, last.unwrap_or_default())
    }

    /// The present day of an instrument will end at `end`, after the rows of that time: then its DAY orders
    /// expire, and GTD orders whose date it is. On its `last` day its data ends (F8): all its orders expire, and no
    /// order is taken any more.
    pub fn end_day_at(&mut self, end: TsNanos, instrument: InstrumentIx, last: bool) {
        let why = last.then_some(END_OF_DATA);
        self.schedule_at(end, Scheduled::DayEnd(instrument, why));
    }

    pub(crate) fn end_day_of(
        &mut self,
        instrument: InstrumentIx,
        now: TsNanos,
        why: Option<&'static str>,
    ) {
        self.expire_where(now, why, |order| {
            order.record.request.instrument == instrument
                && (why.is_some() || order.ends_with_day(now))
        });
        self.markets[usize::from(instrument.0)].closed |= why.is_some();
    }

    /// The trading day of all instruments ends at `now`.
    pub fn end_day(&mut self, now: TsNanos) {
        self.expire_where(now, None, |order| order.ends_with_day(now));
    }

    /// The data ends: open orders expire, and no order is taken any more (F8).
    pub fn end_of_data(&mut self, now: TsNanos) {
        self.expire_where(now, Some(END_OF_DATA), |_| true);
        self.closed = true;
    }

    fn expire_where(
        &mut self,
        now: TsNanos,
        why: Option<&'static str>,
        ends: impl Fn(&Order) -> bool,
    ) {
        let open = self.open.iter().copied();
        let ending: Vec<OrderIx> = open.filter(|number| ends(&self.orders[*number])).collect();
        for number in ending {
            self.expire(number, now, why);
        }
    }

    /// Orders go on into a new day: they are checked against its limits, and those that were sent
    /// for it enter the market.
    pub(crate) fn carry_over(&mut self, now: TsNanos) {
        let mut all: Vec<OrderIx> = self.open.iter().copied().collect();
        // By their sending, whoever they belong to.
        all.sort_by_key(|number| self.orders[*number].record.ts_submitted);
        for number in all {
            let order = &mut self.orders[number];
            order.next_day = false;
            let waits = order.standing == Standing::Parked;
            let funari = order.funari;
            let request = Arc::clone(&order.record.request);
            if self.check_range(&request).is_err() {
                self.expire(number, now, Some("PRICE_LIMIT"));
                continue;
            }
            match self.worst_prices(&request, funari) {
                Ok(worst) => self.orders[number].worst = worst,
                Err(rejection) => {
                    self.reject(number, now, rejection);
                    continue;
                }
            }
            if self.reserve_again(number, now) && waits {
                self.enter(number, now);
            }
        }
    }

    /// Puts an order that the venue has taken where it belongs at this time.
    pub(crate) fn enter(&mut self, number: OrderIx, now: TsNanos) {
        self.schedule_end_of_date(number);
        let order = &mut self.orders[number];
        let Some(hours) = self.hours else { return self.enter_book(number) };
        if order.next_day || now >= hours.close {
            order.standing = Standing::Parked;
            return;
        }
        let auction = match order.record.request.time_in_force {
            TimeInForce::AtTheOpen => hours.next_open(now),
            TimeInForce::AtTheClose => hours.next_close(now),
            _ => {
                order.miss_late_prints(hours, now);
                return self.enter_book(number);
            }
        };
        let Some(auction) = auction else {
            // The day has no such auction any more.
            order.next_day = true;
            order.standing = Standing::Parked;
            return;
        };
        order.auction = Some(auction);
        let works_before = order.funari;
        self.market_mut(number).book.add_to_auction(number);
        if auction <= hours.morning_close && self.orders[number].expiry.is_none() {
            // Where a session ends without the auction; the day's end sees to the afternoon.
            let end = hours.morning_close.plus_nanos(AUCTION_SLACK);
            self.orders[number].expiry = Some(self.schedule_at(end, Scheduled::Expiry(number)));
        }
        if works_before {
            self.orders[number].miss_late_prints(hours, now);
            self.enter_book(number);
        } else {
            self.orders[number].standing = Standing::Auction;
        }
    }

    /// A GTD order ends with its date even when nothing is traded then.
    fn schedule_end_of_date(&mut self, number: OrderIx) {
        let order = &self.orders[number];
        let Some(last) = order.last_day().filter(|_| order.expiry.is_none()) else { return };
        let midnight = (last + 1).saturating_mul(NANOS_PER_DAY).saturating_sub(JST_OFFSET_NANOS);
        let key = self.schedule_at(TsNanos::from_nanos(midnight), Scheduled::Expiry(number));
        self.orders[number].expiry = Some(key);
    }

    /// A GTD order has another date, and stays where it stands.
    pub(crate) fn move_end_of_date(&mut self, number: OrderIx) {
        if let Some(before) = self.orders[number].expiry.take() {
            self.schedule.remove(&before);
        }
        self.schedule_end_of_date(number);
    }

    /// Ends an order whose time is over; the reason is its time in force unless another is given.
    pub(crate) fn expire(&mut self, number: OrderIx, now: TsNanos, why: Option<&'static str>) {
        let record = &mut self.orders[number].record;
        record.expired_early = why;
        let why = why.unwrap_or(record.request.time_in_force.as_str());
        self.transition(number, OrderTrigger::Expire, now, |_| OrderEventKind::Expired(why));
        self.close(number);
    }

    /// Takes an order from where it stands.
    pub(crate) fn leave_book(&mut self, number: OrderIx) {
        let order = &mut self.orders[number];
        let expiry = order.expiry.take();
        let auction = order.auction.take();
        let standing = std::mem::replace(&mut order.standing, Standing::Nowhere);
        let (sequence, is_buy) = (order.sequence, order.is_buy());
        let (price, trigger) = (order.record.request.price, order.record.request.trigger_price);
        let book = &mut self.market_mut(number).book;
        match standing {
            Standing::Nowhere | Standing::Parked | Standing::Auction => {}
            Standing::Taker => book.remove_taker(sequence),
            Standing::Resting => {
                let levels = if is_buy { &mut book.buys } else { &mut book.sells };
                levels.remove(price.unwrap_or_default(), sequence, number);
            }
            Standing::Stop => {
                let levels = if is_buy { &mut book.stop_buys } else { &mut book.stop_sells };
                levels.remove(trigger.unwrap_or_default(), sequence, number);
            }
        }
        if auction.is_some() {
            book.remove_from_auction(number);
        }
        if let Some(expiry) = expiry {
            self.schedule.remove(&expiry);
        }
    }
}
