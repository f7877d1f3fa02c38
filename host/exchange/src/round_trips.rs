//! Same-day round trips on a cash account (F11): the same money does not go in and out of the same
//! issue within a day, as Tokyo brokers hold it (sa-kin-kessai).

use domain::{
    Money, OrderRequest, OrderSide, Price, Quantity, ReasonCode, Rejection, TimeInForce, TsNanos,
};

use crate::Exchange;
use crate::model::SameDayRoundTrips;
use crate::order::OrderIx;
use crate::rejection::{Check, reject};

/// What the text of a rejection by F11 begins with.
const TAG: &str = "SAKIN_KESSAI: ";

/// Whether an order was rejected by F11.
pub(crate) fn is_round_trip(rejection: &Rejection) -> bool {
    rejection.text.starts_with(TAG)
}

/// The money of an order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OrderMoney {
    /// What it may cost.
    pub(crate) needed: Money,
    /// What is left of the free money then.
    pub(crate) left: Money,
}

/// What was bought and sold of one issue on the present day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RoundTrips {
    /// Shares held from before that are not sold yet; they count as sold first.
    overnight: i64,
    /// Shares bought with money of today's sale of this issue: they stay until tomorrow.
    tied: i64,
    /// What today's sales of shares bought today brought, as far as it paid for no other issue: it pays
    /// for this issue tomorrow again.
    from_bought: Money,
    /// What today's sales of shares held from before brought and what paid for nothing yet.
    from_held: Money,
}

impl RoundTrips {
    /// A day begins with so many shares.
    pub(crate) const fn of_day(held: i64) -> Self {
        let (from_bought, from_held) = (Money::ZERO, Money::ZERO);
        Self { overnight: held, tied: 0, from_bought, from_held }
    }

    /// A sale that brought `proceeds`.
    fn sell(&mut self, shares: i64, proceeds: Money) {
        let overnight = shares.min(self.overnight);
        let proceeds = proceeds.max(Money::ZERO);
        let part = i128::from(proceeds.units()) * i128::from(overnight) / i128::from(shares.max(1));
        // A part of a value of 64 bits has 64 bits.
        let part = Money::from_units(part as i64);
        self.overnight -= overnight;
        self.from_held += part;
        self.from_bought += proceeds - part;
    }

    /// What today's sales of this issue brought and what paid for nothing yet.
    fn proceeds(&self) -> Money {
        self.from_bought + self.from_held
    }

    /// A purchase of another issue that no other money pays: it takes what can do less first. Gives
    /// what it still lacks.
    fn pay(&mut self, mut lacking: Money) -> Money {
        for proceeds in [&mut self.from_bought, &mut self.from_held] {
            let paid = lacking.min(*proceeds);
            *proceeds -= paid;
            lacking -= paid;
        }
        lacking
    }

    /// A purchase of this issue, of which no other money pays `lacking`.
    fn buy(&mut self, shares: Quantity, price: Price, lot: Quantity, lacking: Money) {
        let paid = lacking.min(self.from_held);
        self.from_held -= paid;
        let units = paid.units().unsigned_abs();
        let price = price.units().unsigned_abs().max(1);
        let lot = lot.shares().max(1);
        let tied = units.div_ceil(price).div_ceil(lot).saturating_mul(lot).min(shares.shares());
        self.tied += tied.cast_signed();
    }
}

/// How many orders F11 has rejected, in words.
#[must_use]
pub fn round_trips_words(rejected: u64) -> String {
    let count = match rejected {
        1 => "1 order was".to_owned(),
        many => format!("{many} orders were"),
    };
    format!("same-day round trips (F11): {count} rejected")
}

impl Exchange {
    /// A new day begins: what was bought and sold before it binds no more.
    pub(crate) fn begin_round_trips(&mut self) {
        for (market, position) in self.markets.iter_mut().zip(self.account.positions()) {
            market.round_trips = RoundTrips::of_day(position.quantity);
        }
    }

    /// Notes a fill before it is booked.
    #[inline]
    pub(crate) fn note_round_trip(
        &mut self,
        number: OrderIx,
        price: Price,
        quantity: Quantity,
        fee: Money,
    ) {
        if self.model.same_day_round_trips == SameDayRoundTrips::Allow {
            return;
        }
        let order = &self.orders[number];
        // What is reserved for this order may pay for it; all else that is reserved is spent.
        let free = self.account.free_cash() + order.reserved;
        let request = &order.record.request;
        let value = Money::checked_notional(price, quantity).unwrap_or_default();
        let bought = usize::from(request.instrument.0);
        match request.side {
            OrderSide::Buy => {
                let proceeds = self.markets.iter().map(|market| market.round_trips.proceeds());
                let other = free - proceeds.fold(Money::ZERO, |sum, one| sum + one);
                let mut lacking = (value - other.max(Money::ZERO)).max(Money::ZERO);
                for (index, market) in self.markets.iter_mut().enumerate() {
                    if index != bought {
                        lacking = market.round_trips.pay(lacking);
                    }
                }
                let market = &mut self.markets[bought];
                market.round_trips.buy(quantity, price, market.instrument.lot, lacking);
            }
            OrderSide::Sell => {
                let trips = &mut self.markets[bought].round_trips;
                trips.sell(quantity.shares().cast_signed(), value - fee);
            }
        }
    }

    /// How many orders F11 has rejected, in words; none where it rejects none.
    #[must_use]
    pub fn round_trips_note(&self) -> Option<String> {
        (self.model.same_day_round_trips == SameDayRoundTrips::Refuse)
            .then(|| round_trips_words(self.round_trips_rejected))
    }

    /// An order does not trade shares against the money of their own trade of today. `selling` are the
    /// shares in sell orders with the order's own.
    pub(crate) fn check_round_trip(
        &self,
        request: &OrderRequest,
        may_trade_today: bool,
        money: OrderMoney,
        selling: Quantity,
    ) -> Check {
        if self.model.same_day_round_trips == SameDayRoundTrips::Allow || !may_trade_today {
            return Ok(());
        }
        let trips = &self.markets[usize::from(request.instrument.0)].round_trips;
        let held = self.account.held(request.instrument);
        let text = match request.side {
            OrderSide::Buy if money.left < trips.from_bought => format!(
                "{TAG}the order needs up to {} yen, and {} yen can pay for this issue today, \
                 because {} yen are from today's sale of its shares that were bought today",
                money.needed,
                (money.left + money.needed - trips.from_bought).max(Money::ZERO),
                trips.from_bought.min(money.left + money.needed)
            ),
            OrderSide::Sell if selling.shares().cast_signed() > held - trips.tied => format!(
                "{TAG}{} of {held} shares were bought with the money of today's sale of \
                 the same issue and cannot be sold before tomorrow",
                trips.tied
            ),
            _ => return Ok(()),
        };
        reject(ReasonCode::VenueRejected, text)
    }

    /// Whether an order sent at `now` can still trade on the present day.
    pub(crate) fn may_trade_today(&self, life: TimeInForce, now: TsNanos) -> bool {
        let Some(hours) = self.hours else { return true };
        match life {
            TimeInForce::AtTheOpen => hours.next_open(now).is_some(),
            TimeInForce::AtTheClose => hours.next_close(now).is_some(),
            _ => now < hours.close,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOT: Quantity = Quantity::new(100);

    fn yen(yen: i64) -> Money {
        Money::from_yen(yen)
    }

    #[test]
    fn shares_held_from_before_count_as_sold_first() {
        let mut trips = RoundTrips::of_day(100);
        trips.sell(300, yen(3_000));
        let wanted =
            RoundTrips { overnight: 0, tied: 0, from_bought: yen(2_000), from_held: yen(1_000) };
        assert_eq!(trips, wanted);
        trips.sell(100, yen(-1));
        assert_eq!(trips, wanted, "a sale that cost more than it brought brings nothing");
    }

    #[test]
    fn other_money_pays_first_and_shares_are_tied_in_whole_lots() {
        let bought = |lacking| {
            let mut trips = RoundTrips::of_day(1_000);
            trips.sell(1_000, yen(1_000_000));
            trips.buy(Quantity::new(500), Price::from_yen(1_000), LOT, yen(lacking));
            (trips.tied, trips.from_held)
        };
        assert_eq!(bought(0), (0, yen(1_000_000)));
        assert_eq!(bought(1), (100, yen(999_999)));
        assert_eq!(bought(500_000), (500, yen(500_000)));
    }

    #[test]
    fn another_issue_takes_the_money_that_can_do_less_first() {
        let mut trips = RoundTrips::of_day(100);
        trips.sell(300, yen(3_000));
        assert_eq!(trips.pay(yen(2_500)), Money::ZERO);
        assert_eq!((trips.from_bought, trips.from_held), (Money::ZERO, yen(500)));
        assert_eq!(trips.pay(yen(700)), yen(200));
        assert_eq!(trips.proceeds(), Money::ZERO);
    }
}
