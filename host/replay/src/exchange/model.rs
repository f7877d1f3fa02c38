//! The parameters of the simulated exchange and the rules in words. Every result prints them.

use domain::Quantity;
use serde::Serialize;

/// How the simulated exchange fills orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ExecutionModel {
    /// Time from an order's sending to its arrival, in nanoseconds.
    pub latency_ns: u64,
    /// Ticks that an order that takes liquidity pays on top of the print, because the side of a
    /// print is unknown.
    pub slippage_ticks: u32,
    /// Share of each print that our orders may take, in percent, 1 to 100.
    pub participation_percent: u32,
}

impl Default for ExecutionModel {
    fn default() -> Self {
        Self { latency_ns: 0, slippage_ticks: 1, participation_percent: 100 }
    }
}

impl ExecutionModel {
    /// Shares of a print of `printed` shares that our orders may take, in whole lots (F3).
    #[must_use]
    #[inline]
    pub fn budget(&self, printed: Quantity, lot: Quantity) -> Quantity {
        let shares = u128::from(printed.shares()) * u128::from(self.participation_percent) / 100;
        // A percentage of at most 100 keeps the value inside 64 bits.
        Quantity::new(shares as u64).floor_to(lot)
    }
}

/// The rules, by their names.
pub const RULES: [(&str, &str); 9] = [
    (
        "F1",
        "An order can match only trades that are strictly later than the event the strategy was \
         handling when it sent the order, and not earlier than its arrival (sending + latency). \
         Trades of the same instant are one sweep and never match.",
    ),
    (
        "F2",
        "A market order fills from the first such trade on, at the trade's price plus the slippage \
         (minus for a sell), never outside the day's price limits.",
    ),
    (
        "F3",
        "All our orders together take at most the participation of each trade's shares, in whole \
         lots: first orders that take liquidity in the order of their arrival, then resting buys \
         from the highest price, then resting sells from the lowest, the older first. The rest \
         waits for the next trade. No share is used twice.",
    ),
    (
        "F4",
        "A limit order that is marketable when it arrives fills like a market order, never past \
         its limit, until the price leaves it; from then on it rests. A resting order fills at its \
         own price, and only when a trade goes through that price; a touch is not enough.",
    ),
    (
        "F6",
        "A DAY order ends with the day's last trade, or at the official close where that is later, \
         at that time and not at the next trade.",
    ),
    (
        "F7",
        "Checked when an order is sent: lot, price limits of the day (around the previous close; \
         on the first day around its first trade), cash at the worst possible price, no short \
         sale. Limit prices off the tick grid are rounded to it, away from the market.",
    ),
    (
        "F8",
        "When the data ends, open orders expire with END_OF_DATA; an open position is valued at \
         the last price, not closed.",
    ),
    (
        "F9",
        "Prices and money are integers of 1/10,000 yen. No wall clock, no random numbers, no \
         unordered collections.",
    ),
    ("FEE", "No commission is charged."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_in_whole_lots() {
        let budget = |percent, printed, lot| {
            let model = ExecutionModel { participation_percent: percent, ..Default::default() };
            model.budget(Quantity::new(printed), Quantity::new(lot)).shares()
        };
        assert_eq!(budget(100, 250, 100), 200);
        assert_eq!(budget(10, 2_990, 100), 200);
        assert_eq!(budget(10, 990, 100), 0);
        assert_eq!(budget(100, u64::MAX, 1), u64::MAX);
    }
}
