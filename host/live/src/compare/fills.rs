//! Fills of a live run beside those of the simulated exchange, share by share of each order.

use std::collections::BTreeMap;

use domain::{InstrumentIx, Money, OrderEventKind, OrderSide, Price, Quantity, ShortText, TsNanos};
use serde::Serialize;

use super::told::{Told, ToldKind};

const NANOS_PER_MILLI: i128 = 1_000_000;

/// A price and the time at which shares had it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilledAt {
    /// Yen per share.
    pub price: Price,
    /// When.
    pub ts_event: TsNanos,
}

/// Shares of an order that were filled in the run, in the simulated exchange, or in both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FillPair {
    /// The order.
    pub client_order_id: ShortText,
    /// Its instrument, as an index in the run's list.
    pub instrument: InstrumentIx,
    /// Bought or sold.
    pub side: OrderSide,
    /// Shares, above zero.
    pub quantity: Quantity,
    /// How the run had them; none of an extra fill.
    pub recorded: Option<FilledAt>,
    /// How the simulated exchange had them; none of a missed fill.
    pub simulated: Option<FilledAt>,
}

impl FillPair {
    /// What the simulated fill cost more than that of the run, in yen; below zero what it cost less. None where one
    /// of both is not there, or it cannot be counted.
    #[must_use]
    pub fn slippage(&self) -> Option<Money> {
        let (recorded, simulated) = (self.recorded?.price.units(), self.simulated?.price.units());
        let more = match self.side {
            OrderSide::Buy => simulated.checked_sub(recorded)?,
            OrderSide::Sell => recorded.checked_sub(simulated)?,
        };
        let shares = i64::try_from(self.quantity.shares()).ok()?;
        more.checked_mul(shares).map(Money::from_units)
    }

    /// How long after the run's fill the simulated one was, in nanoseconds. None where one of both is not there.
    fn later(&self) -> Option<i128> {
        let nanos = |at: FilledAt| i128::from(at.ts_event.nanos());
        Some(nanos(self.simulated?) - nanos(self.recorded?))
    }

    /// The time of the run's fill, else of the simulated one.
    fn ts_event(&self) -> Option<TsNanos> {
        self.recorded.or(self.simulated).map(|at| at.ts_event)
    }
}

/// How many fills there are, and what the simulated ones cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FillCounts {
    /// Fills of the run.
    pub recorded: u64,
    /// Fills in the simulated exchange.
    pub simulated: u64,
    /// Shares that both filled.
    pub shares_matched: u64,
    /// Pieces of the run's fills that the simulated exchange has not.
    pub missed: u64,
    /// Their shares.
    pub shares_missed: u64,
    /// Pieces of simulated fills that the run has not.
    pub extra: u64,
    /// Their shares.
    pub shares_extra: u64,
    /// What the simulated fills of the matched shares cost more than the run's, yen; below zero less.
    #[serde(serialize_with = "as_text")]
    pub slippage: Money,
    /// By how many milliseconds the simulated fills of the matched shares came later, on average by shares; below zero
    /// earlier. None without such shares.
    pub later_ms: Option<i64>,
}

fn as_text<S: serde::Serializer>(money: &Money, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(money)
}

/// An order among all: ids are unique in a run, and another version may give one to another order.
type Key = (ShortText, InstrumentIx, OrderSide);

/// A fill of which shares are left to be paired.
struct Open {
    at: FilledAt,
    left: u64,
}

fn fills(told: &[Told]) -> (BTreeMap<Key, Vec<Open>>, u64) {
    let mut orders: BTreeMap<Key, Vec<Open>> = BTreeMap::new();
    let mut count = 0;
    for told in told {
        let ToldKind::Event(event) = &told.told else { continue };
        let OrderEventKind::Filled(fill) = &event.kind else { continue };
        let key = (event.client_order_id.clone(), event.instrument, fill.side);
        let at = FilledAt { price: fill.last_price, ts_event: event.ts_event };
        orders.entry(key).or_default().push(Open { at, left: fill.last_quantity.shares() });
        count += 1;
    }
    (orders, count)
}

/// Puts the fills of both side by side, in the order of their times.
pub(super) fn paired(recorded: &[Told], simulated: &[Told]) -> (Vec<FillPair>, FillCounts) {
    let (recorded, recorded_count) = fills(recorded);
    let (mut simulated, simulated_count) = fills(simulated);
    let mut pairs = Vec::new();
    for (key, ours) in recorded {
        let theirs = simulated.remove(&key).unwrap_or_default();
        pair(&key, ours, theirs, &mut pairs);
    }
    for (key, theirs) in simulated {
        pair(&key, Vec::new(), theirs, &mut pairs);
    }
    pairs.sort_by_key(FillPair::ts_event);
    let mut counts = FillCounts {
        recorded: recorded_count,
        simulated: simulated_count,
        ..FillCounts::default()
    };
    let (mut slippage, mut later): (i64, i128) = (0, 0);
    for pair in &pairs {
        let shares = pair.quantity.shares();
        match (pair.recorded, pair.simulated) {
            (Some(_), None) => {
                counts.missed += 1;
                counts.shares_missed = counts.shares_missed.saturating_add(shares);
            }
            (None, _) => {
                counts.extra += 1;
                counts.shares_extra = counts.shares_extra.saturating_add(shares);
            }
            (Some(_), Some(_)) => {
                counts.shares_matched = counts.shares_matched.saturating_add(shares);
                later += pair.later().unwrap_or_default() * i128::from(shares);
                let more = pair.slippage().unwrap_or_default();
                slippage = slippage.saturating_add(more.units());
            }
        }
    }
    counts.slippage = Money::from_units(slippage);
    // The mean of times of 64 bits has 64 bits.
    let mean = later.checked_div(i128::from(counts.shares_matched));
    counts.later_ms = mean.map(|nanos| (nanos / NANOS_PER_MILLI) as i64);
    (pairs, counts)
}

/// Pairs the shares of one order, the first with the first.
fn pair(key: &Key, recorded: Vec<Open>, simulated: Vec<Open>, pairs: &mut Vec<FillPair>) {
    let (mut recorded, mut simulated) = (recorded.into_iter(), simulated.into_iter());
    let (mut ours, mut theirs) = (recorded.next(), simulated.next());
    while ours.is_some() || theirs.is_some() {
        let left = |open: &Option<Open>| open.as_ref().map_or(u64::MAX, |open| open.left);
        let shares = left(&ours).min(left(&theirs));
        let (client_order_id, instrument, side) = key.clone();
        pairs.push(FillPair {
            client_order_id,
            instrument,
            side,
            quantity: Quantity::new(shares),
            recorded: ours.as_ref().map(|open| open.at),
            simulated: theirs.as_ref().map(|open| open.at),
        });
        let rest = |open: Option<Open>, more: &mut dyn Iterator<Item = Open>| match open {
            Some(open) if open.left > shares => Some(Open { left: open.left - shares, ..open }),
            _ => more.next(),
        };
        (ours, theirs) = (rest(ours, &mut recorded), rest(theirs, &mut simulated));
    }
}
