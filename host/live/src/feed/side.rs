//! Who was the aggressor of a live trade, as strategies get it (P118).

use domain::OrderSide;
use domain::market_update::{SideRule, TradePrint};

/// The last prices of an instrument that differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Trail {
    last: Option<i64>,
    /// The last price before it that differs from it.
    other: Option<i64>,
}

impl Trail {
    /// The aggressor of the instrument's next trade.
    ///
    /// The side's rule (P54) says how the price stood to the quote before. At or beyond the best quote that side is
    /// the aggressor; in a crossed quote it is the buyer. Strictly inside the tick rule decides: against the last
    /// price that differs. Where neither says anything there is none: one side of the quote that does not hold, an
    /// auction, a gap.
    pub(super) fn judge(&mut self, trade: &TradePrint) -> Option<OrderSide> {
        let side = match trade.side_rule {
            Some(SideRule::AtAsk | SideRule::Crossed) => Some(OrderSide::Buy),
            Some(SideRule::AtBid) => Some(OrderSide::Sell),
            Some(SideRule::Midpoint | SideRule::InsideNearer) => self.direction(trade.price),
            Some(SideRule::OneSided | SideRule::AfterGap | SideRule::Auction) | None => None,
        };
        if self.last != Some(trade.price) {
            self.other = self.last.replace(trade.price);
        }
        side
    }

    fn direction(self, price: i64) -> Option<OrderSide> {
        let before = if self.last == Some(price) { self.other } else { self.last };
        before.map(|before| if price > before { OrderSide::Buy } else { OrderSide::Sell })
    }
}
