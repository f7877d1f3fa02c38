//! The quote rule: finds the aggressor of a trade by the quote before it.
//!
//! Specification 1, "Derived trade"; specification 4, P54. Prices are in 1/10,000 yen.

use domain::gateway_mapping::GatewayBoard;
use domain::market_update::{AggressorSide, SideRule};

/// The best prices of a board.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Quote {
    /// The lowest price at which there is a seller.
    pub(crate) ask: Option<i64>,
    /// The highest price at which there is a buyer.
    pub(crate) bid: Option<i64>,
}

impl Quote {
    pub(crate) const fn of(board: &GatewayBoard) -> Self {
        Self { ask: board.best_ask, bid: board.best_bid }
    }

    /// The aggressor of a trade at `price`, and the rule. `None` without a quote.
    pub(crate) fn judge(self, price: i64) -> Option<(AggressorSide, SideRule)> {
        Some(match (self.ask, self.bid) {
            (None, None) => return None,
            (Some(ask), None) if price >= ask => (AggressorSide::Buy, SideRule::AtAsk),
            (None, Some(bid)) if price <= bid => (AggressorSide::Sell, SideRule::AtBid),
            (Some(_), None) | (None, Some(_)) => (AggressorSide::Unknown, SideRule::OneSided),
            (Some(ask), Some(bid)) => between(price, ask, bid),
        })
    }
}

/// The clauses in order: the first that holds decides.
fn between(price: i64, ask: i64, bid: i64) -> (AggressorSide, SideRule) {
    if price >= ask {
        let rule = if bid > ask { SideRule::Crossed } else { SideRule::AtAsk };
        return (AggressorSide::Buy, rule);
    }
    if price <= bid {
        return (AggressorSide::Sell, SideRule::AtBid);
    }
    // Here bid < price < ask: the distances are positive and fit.
    let (to_ask, to_bid) = (ask.abs_diff(price), price.abs_diff(bid));
    match to_ask.cmp(&to_bid) {
        std::cmp::Ordering::Equal => (AggressorSide::Buy, SideRule::Midpoint),
        std::cmp::Ordering::Less => (AggressorSide::Buy, SideRule::InsideNearer),
        std::cmp::Ordering::Greater => (AggressorSide::Sell, SideRule::InsideNearer),
    }
}

#[cfg(test)]
mod tests {
    use AggressorSide::{Buy, Sell, Unknown};
    use SideRule::{AtAsk, AtBid, Crossed, InsideNearer, Midpoint, OneSided};
    use proptest::prelude::*;

    use super::*;

    fn judge(price: i64, ask: Option<i64>, bid: Option<i64>) -> Option<(AggressorSide, SideRule)> {
        Quote { ask, bid }.judge(price)
    }

    #[test]
    fn p54_every_rule_has_its_case() {
        for (price, ask, bid, side, rule) in [
            (101, 101, 100, Buy, AtAsk),
            (102, 101, 100, Buy, AtAsk),
            (100, 101, 100, Sell, AtBid),
            (99, 101, 100, Sell, AtBid),
            (105, 110, 100, Buy, Midpoint),
            (106, 110, 100, Buy, InsideNearer),
            (104, 110, 100, Sell, InsideNearer),
            // No price is halfway between an even and an odd one.
            (105, 111, 100, Sell, InsideNearer),
            (106, 111, 100, Buy, InsideNearer),
            // Both at one price: the first clause.
            (100, 100, 100, Buy, AtAsk),
            (99, 100, 100, Sell, AtBid),
        ] {
            let found = judge(price, Some(ask), Some(bid));
            assert_eq!(found, Some((side, rule)), "{price} between {bid} and {ask}");
        }
    }

    #[test]
    fn p54_in_a_crossed_quote_the_first_clause_decides() {
        for price in [100, 101, 102, 103] {
            assert_eq!(judge(price, Some(100), Some(102)), Some((Buy, Crossed)), "{price}");
        }
        // The first clause does not hold below the ask; the second one does.
        assert_eq!(judge(99, Some(100), Some(102)), Some((Sell, AtBid)));
    }

    #[test]
    fn p54_one_side_decides_where_its_clause_holds() {
        assert_eq!(judge(100, Some(100), None), Some((Buy, AtAsk)));
        assert_eq!(judge(99, Some(100), None), Some((Unknown, OneSided)));
        assert_eq!(judge(100, None, Some(100)), Some((Sell, AtBid)));
        assert_eq!(judge(101, None, Some(100)), Some((Unknown, OneSided)));
        assert_eq!(judge(100, None, None), None);
    }

    proptest! {
        /// In exact arithmetic, over the whole range of prices.
        #[test]
        fn the_nearer_side_is_the_aggressor(price: i64, ask: i64, bid: i64) {
            let (side, rule) = judge(price, Some(ask), Some(bid)).unwrap();
            let (price, ask, bid) = (i128::from(price), i128::from(ask), i128::from(bid));
            let buys = price >= ask || (price > bid && 2 * price >= ask + bid);
            prop_assert_eq!(side, if buys { Buy } else { Sell });
            prop_assert_eq!(rule == Midpoint, bid < price && price < ask && 2 * price == ask + bid);
            prop_assert_eq!(rule == Crossed, ask < bid && price >= ask);
        }
    }
}
