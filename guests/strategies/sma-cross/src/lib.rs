//! The moving-average crossover: long while the average of the last `fast` prices is above that of
//! the last `slow`, else flat; each instrument by itself. Prices are those of trades, or the closes
//! of bars. Integers only.

use std::cell::Cell;
use std::cmp::Ordering;

use kumiki_sdk::prelude::*;

/// Longest average that may be asked for, in prices.
const LENGTH_MAX: usize = 100_000;

/// Sums of prices below two to this power fit 64 bits when they are multiplied with a length.
const SUM_BITS: u32 = 46;
const _: () = assert!((1_u128 << SUM_BITS) * (LENGTH_MAX as u128) < i64::MAX as u128);

/// Largest factor of a price after splits: with it the longest sum of prices of a million yen fits 64
/// bits.
const SCALE_MAX: i64 = 1_000;

/// Prices that a loop over many takes at a turn.
const STEPS: usize = 4;

/// Prices that there is room for behind those of the slow average.
const ROOM: usize = 1_024;

/// The strategy. Parameters: `fast` and `slow` (prices in each average), `quantity` (shares).
#[derive(Debug)]
pub struct SmaCross {
    fast: usize,
    slow: usize,
    quantity: Quantity,
    /// By instrument.
    averages: Vec<Averages>,
}

/// The two averages of one instrument.
#[derive(Debug)]
struct Averages {
    /// The last `slow` prices end at `sums.end`; behind them there is room for more. Where it ends, they move to
    /// the front.
    prices: Box<[i64]>,
    sums: Sums,
    /// What a price is multiplied with before it is taken in: 1 up to the first split. After one the
    /// kept prices stand multiplied with the old shares and new ones with the new shares, so both
    /// count the same shares, and nothing is rounded: averages that are equal stay equal.
    scale: i64,
    /// The side of the last order that was sent.
    sent: Side,
    /// The days, in Japan, on which a buy and a sell were rejected last. The same order would be rejected
    /// again, so that side waits for the next day.
    no_buys_on: Option<u64>,
    no_sells_on: Option<u64>,
}

/// What changes with each price: a few numbers, which a loop over many prices keeps at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sums {
    fast: usize,
    slow: usize,
    /// Where the next price goes. So many places before it as an average is long is the one that it loses then.
    end: usize,
    /// Prices that are still to come before there is a slow average.
    missing: usize,
    sum_fast: i64,
    sum_slow: i64,
}

impl SmaCross {
    /// The averages of an instrument; empty ones at its first price.
    #[inline]
    fn averages(&mut self, instrument: InstrumentIx) -> &mut Averages {
        let index = usize::from(instrument.0);
        if self.averages.len() <= index {
            self.make_averages(index + 1);
        }
        &mut self.averages[index]
    }

    #[cold]
    #[inline(never)]
    fn make_averages(&mut self, instruments: usize) {
        let (fast, slow) = (self.fast, self.slow);
        self.averages.resize_with(instruments, || Averages::new(fast, slow));
    }

    /// One price. Inlined, because a strict replay comes here with every trade.
    #[inline(always)]
    fn on_price(&mut self, context: &mut Context, instrument: InstrumentIx, price: Price) {
        let stand = self.averages(instrument).push(price.units());
        if stand.is_some() && stand == awaited(context, instrument) {
            self.send(context, instrument);
        }
    }

    #[cold]
    #[inline(never)]
    fn send(&mut self, context: &mut Context, instrument: InstrumentIx) {
        let held = context.position(instrument);
        let (side, shares) =
            if held.is_flat() { (Side::Buy, self.quantity) } else { (Side::Sell, held.shares()) };
        if self.averages(instrument).may_send(side, context.now()) {
            context.submit(Order::market(instrument, side, shares));
        }
    }
}

/// How the averages must stand for an order to be sent: the fast one above while nothing is held, below
/// while shares are. None while an order works.
#[inline]
fn awaited(context: &mut Context, instrument: InstrumentIx) -> Option<Ordering> {
    if context.has_working_orders(instrument) {
        return None;
    }
    let held = context.position(instrument);
    if held.is_flat() { Some(Ordering::Greater) } else { held.is_long().then_some(Ordering::Less) }
}

/// The day in Japan, counted from 1970.
const fn day_of(now: Timestamp) -> u64 {
    const HOUR_NANOS: u64 = 3_600_000_000_000;
    (now.0 + 9 * HOUR_NANOS) / (24 * HOUR_NANOS)
}

impl Averages {
    fn new(fast: usize, slow: usize) -> Self {
        Self {
            prices: vec![0; slow + ROOM].into_boxed_slice(),
            sums: Sums { fast, slow, end: slow, missing: slow, sum_fast: 0, sum_slow: 0 },
            scale: 1,
            sent: Side::Buy,
            no_buys_on: None,
            no_sells_on: None,
        }
    }

    /// Takes in a price; tells how the averages stand then. Inlined, because a strict replay comes here with every
    /// trade.
    #[inline(always)]
    fn push(&mut self, price: i64) -> Option<Ordering> {
        if self.sums.end == self.prices.len() {
            self.make_room();
        }
        self.sums.push(&mut self.prices, scaled(price, self.scale))
    }

    /// The same while the averages are not complete.
    #[cold]
    #[inline(never)]
    fn push_early(&mut self, price: i64) -> Option<Ordering> {
        self.push(price)
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        let Sums { slow, end, .. } = self.sums;
        self.prices.copy_within(end - slow..end, 0);
        self.sums.end = slow;
    }

    /// Takes in prices up to the one after which the averages stand as awaited. Tells how many, and
    /// whether they do.
    fn follow(&mut self, prices: &[i64], awaited: Option<Ordering>) -> (usize, bool) {
        let mut taken = 0;
        while let Some(rest) = prices.get(taken..).filter(|rest| !rest.is_empty()) {
            let (more, found) = match awaited {
                _ if self.sums.missing > 0 => {
                    let stand = self.push_early(rest[0]);
                    (1, stand.is_some() && stand == awaited)
                }
                Some(Ordering::Greater) => self.run::<1>(rest),
                Some(Ordering::Less) => self.run::<-1>(rest),
                Some(Ordering::Equal) | None => self.run::<0>(rest),
            };
            taken += more;
            if found {
                return (taken, true);
            }
        }
        (taken, false)
    }

    /// The loop over many prices, as far as there is room for them. It has no bounds checks and no calls,
    /// so its numbers stay in registers: it is a function of its own for that. It takes [`STEPS`] prices
    /// a turn, because each turn asks whether there is fuel, and looks once a turn whether the averages
    /// stood as awaited after any of them.
    #[inline(never)]
    fn run<const AWAITED: i8>(&mut self, prices: &[i64]) -> (usize, bool) {
        let is_awaited = |stand: Ordering| AWAITED != 0 && stand as i8 == AWAITED;
        if self.sums.end == self.prices.len() {
            self.make_room();
        }
        let (mut sums, scale) = (self.sums, self.scale);
        // What is written at one place is read at the others later.
        let kept = Cell::from_mut(&mut *self.prices).as_slice_of_cells();
        let places = &kept[sums.end..];
        let prices = &prices[..places.len().min(prices.len())];
        let places = &places[..prices.len()];
        let leave_fast = &kept[sums.end - sums.fast..][..prices.len()];
        let leave_slow = &kept[sums.end - sums.slow..][..prices.len()];
        let mut taken = 0;
        // In one turn no price leaves the fast average that comes in it, and none has to be scaled.
        if sums.fast >= STEPS && scale == 1 {
            let (turns, _) = prices.as_chunks::<STEPS>();
            let (places, _) = places.as_chunks::<STEPS>();
            let (leave_fast, _) = leave_fast.as_chunks::<STEPS>();
            let (leave_slow, _) = leave_slow.as_chunks::<STEPS>();
            let turns = turns.iter().zip(places).zip(leave_fast).zip(leave_slow);
            for (((prices, places), leave_fast), leave_slow) in turns {
                let leaving = (leave_fast, leave_slow);
                let Some(after) = sums.turn::<AWAITED>(prices, leaving) else { break };
                places.iter().zip(prices).for_each(|(place, price)| place.set(*price));
                sums = after;
                taken += STEPS;
            }
        }
        let mut stopped = false;
        let rest = prices[taken..].iter().zip(&places[taken..]);
        let rest = rest.zip(&leave_fast[taken..]).zip(&leave_slow[taken..]);
        for (((price, place), leave_fast), leave_slow) in rest {
            let price = scaled(*price, scale);
            sums.add(price, leave_fast.get(), leave_slow.get());
            place.set(price);
            taken += 1;
            // Wide sums are looked at with care.
            stopped = sums.are_wide() || is_awaited(sums.compare_narrow());
            if stopped {
                break;
            }
        }
        sums.end += taken;
        self.sums = sums;
        (taken, stopped && is_awaited(sums.compare()))
    }

    /// Whether no order of this side was rejected on this day; it is the last one sent then.
    fn may_send(&mut self, side: Side, now: Timestamp) -> bool {
        let rejected_on = match side {
            Side::Buy => self.no_buys_on,
            Side::Sell => self.no_sells_on,
        };
        let may = rejected_on.is_none_or(|day| day != day_of(now));
        if may {
            self.sent = side;
        }
        may
    }

    /// The last order was rejected.
    fn reject(&mut self, now: Timestamp) {
        match self.sent {
            Side::Buy => self.no_buys_on = Some(day_of(now)),
            Side::Sell => self.no_sells_on = Some(day_of(now)),
        }
    }

    /// Takes in a split: the kept prices go on as prices of the new shares.
    fn split(&mut self, split: &Split) {
        if !self.rescale(i64::from(split.old_shares), i64::from(split.new_shares)) {
            // After splits that no shares ever had: the averages begin anew, and say nothing until
            // they have seen enough.
            *self = Self::new(self.sums.fast, self.sums.slow);
        }
    }

    /// Whether all numbers stay small enough.
    fn rescale(&mut self, old: i64, new: i64) -> bool {
        let (Some(scale), Some(sum)) =
            (self.scale.checked_mul(new), self.sums.sum_slow.checked_mul(old))
        else {
            return false;
        };
        if scale > SCALE_MAX || sum > i64::MAX / 2 {
            return false;
        }
        self.scale = scale;
        // Prices are above zero: each is at most their sum.
        let Sums { slow, end, .. } = self.sums;
        self.prices[end - slow..end].iter_mut().for_each(|price| *price *= old);
        self.sums.sum_fast *= old;
        self.sums.sum_slow *= old;
        true
    }
}

impl Sums {
    /// Takes in a price; tells whether the fast average stands above (`Greater`) or below (`Less`) the
    /// slow one then, once `slow` prices were seen.
    #[inline(always)]
    fn push(&mut self, prices: &mut [i64], price: i64) -> Option<Ordering> {
        // Slots not written yet hold 0, so the sums need no special case at the start.
        // A place that wrapped is none of the prices'.
        let end = self.end;
        let before = |length: usize| prices[end.wrapping_sub(length)];
        let (fast, slow) = (before(self.fast), before(self.slow));
        prices[end] = price;
        self.add(price, fast, slow);
        self.end = end.wrapping_add(1);
        if self.missing > 0 {
            self.missing -= 1;
            if self.missing > 0 {
                return None;
            }
        }
        Some(self.compare())
    }

    /// Takes in a price in place of those that leave the averages.
    #[inline]
    fn add(&mut self, price: i64, leaves_fast: i64, leaves_slow: i64) {
        // Sums of prices of shares do not come near the end of 64 bits; wrapped, they would still be
        // exact again once the prices that wrapped them have left.
        self.sum_fast = self.sum_fast.wrapping_add(price.wrapping_sub(leaves_fast));
        self.sum_slow = self.sum_slow.wrapping_add(price.wrapping_sub(leaves_slow));
    }

    /// The sums after a turn; none where the averages stand as awaited after one of its prices, or the sums are
    /// wide.
    #[inline(always)]
    fn turn<const AWAITED: i8>(
        mut self,
        prices: &[i64; STEPS],
        (leave_fast, leave_slow): (&[Cell<i64>; STEPS], &[Cell<i64>; STEPS]),
    ) -> Option<Self> {
        // The bits of all sums, and those of all differences: the sign's is there when one was below 0.
        let (mut sums, mut differences) = (0, 0);
        for at in 0..STEPS {
            self.add(prices[at], leave_fast[at].get(), leave_slow[at].get());
            sums |= self.sum_fast | self.sum_slow;
            let (fast, slow) = self.across();
            differences |= match AWAITED {
                0 => 0,
                1.. => slow.wrapping_sub(fast),
                _ => fast.wrapping_sub(slow),
            };
        }
        (!are_wide(sums) && differences >= 0).then_some(self)
    }

    /// How the fast average stands to the slow one, exactly: the sums are compared across, so nothing is
    /// divided.
    #[inline]
    fn compare(&self) -> Ordering {
        if self.are_wide() {
            return compare_wide((self.sum_fast, self.fast), (self.sum_slow, self.slow));
        }
        self.compare_narrow()
    }

    /// Whether the sums, multiplied with a length, might not fit 64 bits.
    #[inline]
    fn are_wide(&self) -> bool {
        are_wide(self.sum_fast | self.sum_slow)
    }

    /// The comparison for sums that are not wide.
    #[inline]
    fn compare_narrow(&self) -> Ordering {
        let (fast, slow) = self.across();
        fast.cmp(&slow)
    }

    /// The sums, each multiplied with the other's length.
    #[inline]
    fn across(&self) -> (i64, i64) {
        // A checked product would be one of 128 bits, which is a call of a function in wasm.
        let across = |sum: i64, length: usize| sum.wrapping_mul(length as i64);
        (across(self.sum_fast, self.slow), across(self.sum_slow, self.fast))
    }
}

/// Whether one of the sums that these bits are from might not fit 64 bits, multiplied with a length.
#[inline]
const fn are_wide(sums: i64) -> bool {
    sums.cast_unsigned() >> SUM_BITS != 0
}

/// A price as it is taken in. It fits: a checked product is a call of a function in wasm, for each price.
#[inline]
const fn scaled(price: i64, scale: i64) -> i64 {
    price.wrapping_mul(scale)
}

/// The comparison for sums that no real prices reach.
#[cold]
#[inline(never)]
fn compare_wide((sum_fast, fast): (i64, usize), (sum_slow, slow): (i64, usize)) -> Ordering {
    let across = |sum: i64, length: usize| i128::from(sum) * length as i128;
    across(sum_fast, slow).cmp(&across(sum_slow, fast))
}

impl Strategy for SmaCross {
    fn new(params: &mut Params) -> Result<Self, ParamError> {
        let fast = params.count("fast", 20, 1..=LENGTH_MAX)?;
        let slow = params.count("slow", 100, 1..=LENGTH_MAX)?;
        let quantity = params.quantity("quantity", Quantity::new(100))?;
        if fast >= slow {
            return Err(ParamError::new(format!(
                "parameter `fast` is {fast} and `slow` is {slow}; fast must be below slow"
            )));
        }
        Ok(Self { fast, slow, quantity, averages: Vec::new() })
    }

    #[inline]
    fn on_trade_tick(&mut self, context: &mut Context, trade: &Trade) {
        self.on_price(context, trade.instrument, trade.price);
    }

    /// The same for many trades. Which order may follow does not change on the way, because what happens
    /// to orders is told between two calls.
    fn on_trade_ticks(&mut self, context: &mut Context, trades: &mut Trades<'_>) {
        let Some(instrument) = trades.instrument() else { return };
        let awaited = awaited(context, instrument);
        let (taken, found) = self.averages(instrument).follow(trades.prices(), awaited);
        trades.take(context, taken);
        if found {
            self.send(context, instrument);
        }
    }

    fn on_bar(&mut self, context: &mut Context, bar: &Bar) {
        self.on_price(context, bar.instrument, bar.close);
    }

    fn on_order_event(&mut self, _: &mut Context, event: &OrderEvent) {
        if event.status == OrderStatus::Rejected {
            self.averages(event.instrument).reject(event.ts_event);
        }
    }

    fn on_account_event(&mut self, _: &mut Context, event: &AccountEvent) {
        if let AccountEventKind::Split(split) = &event.kind {
            self.averages(event.instrument).split(split);
        }
    }
}

kumiki_sdk::register!(SmaCross);

#[cfg(test)]
mod tests {
    use super::*;
    use kumiki_sdk::testing::TestHost;
    use kumiki_sdk::{Action, Granularity};

    fn only_order(actions: &[Action]) -> (Side, u64) {
        match actions {
            [Action::Submit(order)] => (order.side, order.quantity.shares()),
            other => panic!("expected one order, got {other:?}"),
        }
    }

    #[test]
    fn buys_above_and_sells_below() {
        let mut host =
            TestHost::<SmaCross>::new(r#"{"fast": 1, "slow": 3, "quantity": 200}"#).unwrap();
        assert_eq!(host.trade("10", 100), []);
        assert_eq!(host.trade("10", 100), []);
        assert_eq!(only_order(&host.trade("11", 100)), (Side::Buy, 200));
        assert_eq!(host.trade("12", 100), [], "an order is working");
        host.fill_all("12");
        assert_eq!(host.trade("13", 100), [], "already long");
        assert_eq!(only_order(&host.trade("9", 100)), (Side::Sell, 200));
        host.fill_all("9");
        assert!(host.position().is_flat());
        assert_eq!(host.trade("8", 100), [], "already flat");
    }

    #[test]
    fn bars_count_with_their_close() {
        let mut host = TestHost::<SmaCross>::new(r#"{"fast": 1, "slow": 2}"#).unwrap();
        let bar = |close: i64| Bar {
            ts_event: Timestamp(1),
            instrument: InstrumentIx(0),
            granularity: Granularity::Minute,
            open: Price::from_yen(50),
            high: Price::from_yen(99),
            low: Price::from_yen(1),
            close: Price::from_yen(close),
            volume: Quantity::new(100),
        };
        assert_eq!(host.bar(&bar(10)), []);
        assert_eq!(only_order(&host.bar(&bar(11))), (Side::Buy, 100));
    }

    #[test]
    fn instruments_do_not_mix() {
        let mut strategy =
            SmaCross::new(&mut Params::from_json(r#"{"fast": 1, "slow": 2}"#).unwrap()).unwrap();
        strategy.averages(InstrumentIx(2)).push(5);
        assert!(strategy.averages(InstrumentIx(0)).push(6).is_none());
        assert!(strategy.averages(InstrumentIx(2)).push(7).is_some());
        assert_eq!(strategy.averages(InstrumentIx(2)).sums.sum_slow, 12);
    }

    /// What is sent over these trades, by their numbers; the last of them come after a split.
    fn orders_over(
        prices: &[i64],
        split_after: usize,
        (old, new): (u32, u32),
    ) -> Vec<(usize, Side)> {
        let mut host = TestHost::<SmaCross>::new(r#"{"fast": 3, "slow": 8}"#).unwrap();
        let mut sent = Vec::new();
        for (number, units) in prices.iter().enumerate() {
            if number == split_after && old != new {
                assert_eq!(host.split(old, new), [], "a split is no reason to trade");
            }
            let price = Price::from_units(*units).to_string();
            let actions = host.trade(&price, 100);
            if !actions.is_empty() {
                sent.push((number, only_order(&actions).0));
                host.fill_all(&price);
            }
        }
        sent
    }

    #[test]
    fn a_split_changes_no_decision() {
        // Multiples of 3 that often have equal averages; the orders are those without a split.
        let prices: Vec<i64> =
            (0..400_i64).map(|step| 30_000 + 3 * (step * step * 7 % 5)).collect();
        let plain = orders_over(&prices, 200, (1, 1));
        assert!(plain.len() > 40, "{}", plain.len());
        for (old, new) in [(1, 3), (3, 1), (3, 2), (1, 10), (10, 1)] {
            for split_after in [1, 5, 200, 201, 202, 203] {
                let mut split = prices.clone();
                for price in &mut split[split_after..] {
                    // Prices of 1/10,000 yen that are exact on both sides.
                    *price = *price * i64::from(old) * 10 / i64::from(new);
                }
                split[..split_after].iter_mut().for_each(|price| *price *= 10);
                assert_eq!(orders_over(&split, split_after, (old, new)), plain, "{new} for {old}");
            }
        }
    }

    #[test]
    fn the_averages_begin_anew_after_splits_beyond_measure() {
        let mut averages = Averages::new(1, 2);
        assert!(averages.push(10).is_none() && averages.push(20).is_some());
        let split = |old_shares, new_shares| Split {
            old_shares,
            new_shares,
            quantity: 0,
            cash_paid: Money::ZERO,
            last_price: None,
        };
        averages.split(&split(1, 1_000));
        assert_eq!((averages.scale, averages.sums.sum_slow), (1_000, 30));
        assert!(averages.push(1).is_some(), "it goes on");
        assert_eq!(averages.sums.sum_slow, 1_020);
        averages.split(&split(1, 2));
        assert_eq!((averages.scale, averages.sums.missing), (1, 2));
        assert!(averages.push(1).is_none());
        let mut huge = Averages::new(1, 2);
        huge.push(i64::MAX / 100);
        huge.split(&split(1_000, 1));
        assert_eq!((huge.scale, huge.sums.missing), (1, 2));
    }

    #[test]
    fn parameters_are_reported_with_their_defaults() {
        let host = TestHost::<SmaCross>::new(r#"{"fast": 7}"#).unwrap();
        let told: Vec<_> =
            host.parameters().iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(told, ["fast=7", "slow=100", "quantity=100"]);
    }

    #[test]
    fn equal_averages_do_nothing() {
        let mut host = TestHost::<SmaCross>::new(r#"{"fast": 2, "slow": 4}"#).unwrap();
        for _ in 0..20 {
            assert_eq!(host.trade("10.1", 100), []);
        }
    }

    #[test]
    fn an_expired_order_is_sent_again() {
        let mut host = TestHost::<SmaCross>::new(r#"{"fast": 1, "slow": 2}"#).unwrap();
        host.trade("10", 100);
        assert_eq!(host.trade("11", 100).len(), 1);
        assert_eq!(host.expire_all(), []);
        assert_eq!(host.trade("12", 100).len(), 1);
    }

    #[test]
    fn the_averages_agree_with_a_plain_computation() {
        let mut averages = Averages::new(3, 7);
        let prices: Vec<i64> = (0..200_i64).map(|step| 1_000 + step * step * 7_919 % 613).collect();
        for (index, price) in prices.iter().enumerate() {
            let ready = averages.push(*price);
            assert_eq!(ready.is_some(), index >= 6);
            let last = |count: usize| prices[..=index].iter().rev().take(count).sum::<i64>();
            let sums = averages.sums;
            assert_eq!((sums.sum_fast, sums.sum_slow), (last(3), last(7)));
        }
    }

    #[test]
    fn many_prices_at_once_are_the_same_as_one_by_one() {
        let prices: Vec<i64> = (0..500_i64).map(|step| 1_000 + step * step * 7_919 % 613).collect();
        for (fast, slow) in [(1, 2), (2, 3), (3, 7), (6, 7), (20, 100), (1, 499)] {
            for awaited in [None, Some(Ordering::Greater), Some(Ordering::Less)] {
                for piece in [1, 2, 7, 64, 500] {
                    let (mut many, mut one) =
                        (Averages::new(fast, slow), Averages::new(fast, slow));
                    let mut begin = 0;
                    while begin < prices.len() {
                        let ahead = &prices[begin..prices.len().min(begin + piece)];
                        let (taken, found) = many.follow(ahead, awaited);
                        let stands = ahead[..taken].iter().map(|price| one.push(*price));
                        let awaits = |stand: Option<Ordering>| stand.is_some() && stand == awaited;
                        let wanted: Vec<bool> = stands.map(awaits).collect();
                        let (last, before) = wanted.split_last().expect("it takes one at least");
                        assert_eq!((*last, before.contains(&true)), (found, false));
                        assert!(found || taken == ahead.len());
                        assert_eq!(many.sums, one.sums, "{fast} {slow} {awaited:?} {piece}");
                        begin += taken;
                    }
                    let last = |averages: &Averages| {
                        let Sums { slow, end, .. } = averages.sums;
                        averages.prices[end - slow..end].to_vec()
                    };
                    assert_eq!(last(&many), last(&one));
                }
            }
        }
    }

    #[test]
    fn huge_prices_compare_exactly() {
        let mut averages = Averages::new(1, 2);
        averages.push(i64::MAX / 4);
        assert_eq!(averages.push(i64::MAX / 4 + 1), Some(Ordering::Greater));
    }

    #[test]
    fn parameters_are_checked_together() {
        let message = |json: &str| TestHost::<SmaCross>::new(json).unwrap_err().to_string();
        assert_eq!(
            message(r#"{"fast": 100}"#),
            "parameter `fast` is 100 and `slow` is 100; fast must be below slow"
        );
        assert_eq!(
            message(r#"{"fats": 1}"#),
            "unknown parameter `fats`; this strategy has: fast, slow, quantity"
        );
    }
}
