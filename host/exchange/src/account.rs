//! The cash account: money, positions, profit and loss. Exact.

use domain::account::{self, Account, Position};
use domain::adjustment::Adjustment;
use domain::{InstrumentIx, Money, OrderSide, Price, Quantity};

/// Money and shares. Buying needs cash, selling needs shares; there is no credit.
#[derive(Debug, Clone)]
pub struct CashAccount {
    account: Account,
    positions: Vec<Position>,
}

/// A position was opened, or went back to flat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PositionChange {
    /// From flat to held.
    Opened,
    /// Still held.
    Changed,
    /// From held to flat; the profit or loss of this sale.
    Closed,
}

impl PositionChange {
    /// What became of a position that had `before` shares and has `after`.
    const fn between(before: i64, after: i64) -> Self {
        match (before, after) {
            (0, _) => Self::Opened,
            (_, 0) => Self::Closed,
            _ => Self::Changed,
        }
    }
}

impl CashAccount {
    /// An account with `cash` and nothing else, for `instruments` instruments.
    #[must_use]
    pub fn new(cash: Money, instruments: usize) -> Self {
        let positions = (0..instruments)
            .map(|index| Position {
                // The number of instruments is limited far below 65,536.
                instrument: InstrumentIx(index as u16),
                ..Position::default()
            })
            .collect();
        Self { account: Account { cash, ..Account::default() }, positions }
    }

    /// Money and results.
    #[must_use]
    pub const fn account(&self) -> &Account {
        &self.account
    }

    /// What is held, by instrument.
    #[must_use]
    pub fn positions(&self) -> &[Position] {
        &self.positions
    }

    /// Adds shares that are held from before the run; they have cost nothing.
    pub fn hold(&mut self, instrument: InstrumentIx, shares: i64) {
        self.positions[usize::from(instrument.0)].quantity += shares;
    }

    /// Shares held of an instrument.
    #[must_use]
    pub fn held(&self, instrument: InstrumentIx) -> i64 {
        self.positions[usize::from(instrument.0)].quantity
    }

    /// Money that a new buy order may use.
    #[must_use]
    pub fn free_cash(&self) -> Money {
        self.account.cash - self.account.reserved
    }

    /// Reserves money, in 1/10,000 yen, for an open order.
    pub fn reserve(&mut self, amount: Money) {
        self.account.reserved += amount;
    }

    /// Releases reserved money.
    ///
    /// # Panics
    /// When more is released than is reserved.
    pub fn release(&mut self, amount: Money) {
        self.account.reserved -= amount;
        assert!(self.account.reserved >= Money::ZERO, "more money was released than reserved");
    }

    /// Books a fill.
    ///
    /// # Panics
    /// When the value does not fit, or more is sold than is held: the exchange checks both first.
    pub fn book(
        &mut self,
        instrument: InstrumentIx,
        side: OrderSide,
        price: Price,
        quantity: Quantity,
        commission: Money,
    ) -> PositionChange {
        let value = Money::checked_notional(price, quantity);
        #[expect(clippy::expect_used, reason = "the cash check covers every value that can come")]
        let value = value.expect("the value of a fill fits");
        let shares = quantity.shares().cast_signed();
        let position = &mut self.positions[usize::from(instrument.0)];
        let before = position.quantity;
        match side {
            OrderSide::Buy => {
                self.account.cash -= value;
                position.quantity += shares;
                position.cost += value;
            }
            OrderSide::Sell => {
                assert!(shares <= before, "more shares were sold than held");
                let cost = share_of(position.cost, shares, before);
                self.account.cash += value;
                self.account.realised_pnl += value - cost;
                position.quantity -= shares;
                position.cost -= cost;
                position.realised_pnl += value - cost;
            }
        }
        self.account.cash -= commission;
        self.account.commission += commission;
        PositionChange::between(before, position.quantity)
    }

    /// What a fill would do to the position of an instrument.
    #[must_use]
    pub fn change(
        &self,
        instrument: InstrumentIx,
        side: OrderSide,
        quantity: Quantity,
    ) -> PositionChange {
        let before = self.positions[usize::from(instrument.0)].quantity;
        PositionChange::between(before, before + quantity.shares().cast_signed() * side.sign())
    }

    /// Adjusts a position for a split (F12). What is no whole share is sold at `price`, the adjusted
    /// last price. Tells the money paid for it.
    pub fn adjust(
        &mut self,
        instrument: InstrumentIx,
        adjustment: Adjustment,
        price: Price,
    ) -> Money {
        let position = &mut self.positions[usize::from(instrument.0)];
        if position.quantity == 0 {
            return Money::ZERO;
        }
        let shares = adjustment.shares(position.quantity);
        let paid = adjustment.worth_of_rest(shares, price);
        let (_, old) = adjustment.terms();
        let whole = i128::from(shares.whole) * i128::from(old);
        let cost =
            share_of_wide(position.cost, i128::from(shares.rest), whole + i128::from(shares.rest));
        position.quantity = shares.whole;
        position.cost -= cost;
        position.realised_pnl += paid - cost;
        self.account.realised_pnl += paid - cost;
        self.account.cash += paid;
        paid
    }

    /// Cash plus the value of what is held, each at its price.
    #[must_use]
    pub fn equity(&self, prices: &[Price]) -> Money {
        account::equity(self.account.cash, &self.positions, prices)
    }
}

/// The part of `cost` that `sold` of `held` shares have, cut off; all of it when all are sold.
fn share_of(cost: Money, sold: i64, held: i64) -> Money {
    share_of_wide(cost, i128::from(sold), i128::from(held))
}

fn share_of_wide(cost: Money, sold: i128, held: i128) -> Money {
    let part = i128::from(cost.units()) * sold / held;
    // A part of a value of 64 bits has 64 bits.
    Money::from_units(part as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: InstrumentIx = InstrumentIx(0);

    fn book(
        account: &mut CashAccount,
        side: OrderSide,
        price: &str,
        shares: u64,
    ) -> PositionChange {
        account.book(ONE, side, price.parse().unwrap(), Quantity::new(shares), Money::ZERO)
    }

    #[test]
    fn average_cost_and_profit_by_hand() {
        let mut account = CashAccount::new(Money::from_yen(1_000_000), 1);
        assert_eq!(book(&mut account, OrderSide::Buy, "1000", 100), PositionChange::Opened);
        assert_eq!(book(&mut account, OrderSide::Buy, "1010", 200), PositionChange::Changed);
        // 302,000 for 300 shares; a third of it is sold for 1,020 each.
        assert_eq!(book(&mut account, OrderSide::Sell, "1020", 100), PositionChange::Changed);
        let position = account.positions()[0];
        assert_eq!(position.quantity, 200);
        assert_eq!(position.realised_pnl.to_string(), "1333.3334");
        assert_eq!(position.cost.to_string(), "201333.3334");
        assert_eq!(book(&mut account, OrderSide::Sell, "990", 200), PositionChange::Closed);
        let position = account.positions()[0];
        assert_eq!((position.quantity, position.cost), (0, Money::ZERO));
        // Bought for 302,000, sold for 102,000 + 198,000.
        assert_eq!(position.realised_pnl, Money::from_yen(-2_000));
        assert_eq!(account.account().cash, Money::from_yen(998_000));
    }

    #[test]
    fn equity_values_what_is_held() {
        let mut account = CashAccount::new(Money::from_yen(500_000), 1);
        book(&mut account, OrderSide::Buy, "1674.1", 100);
        assert_eq!(account.equity(&["1674.1".parse().unwrap()]), Money::from_yen(500_000));
        assert_eq!(account.equity(&["1675.1".parse().unwrap()]), Money::from_yen(500_100));
    }

    #[test]
    fn a_split_keeps_what_is_held_worth_the_same() {
        let mut account = CashAccount::new(Money::from_yen(1_000_000), 1);
        book(&mut account, OrderSide::Buy, "1000", 105);
        let reverse = Adjustment::of_price_factor("10").unwrap();
        let before = account.equity(&[Price::from_yen(1_200)]);
        let paid = account.adjust(ONE, reverse, Price::from_yen(12_000));
        assert_eq!(paid, Money::from_yen(6_000), "half a share of 12,000 yen");
        assert_eq!(account.equity(&[Price::from_yen(12_000)]), before);
        let position = account.positions()[0];
        assert_eq!((position.quantity, position.cost), (10, Money::from_yen(100_000)));
        assert_eq!(position.realised_pnl, Money::from_yen(1_000));
        let split = Adjustment::of_price_factor("0.1").unwrap();
        assert_eq!(account.adjust(ONE, split, Price::from_yen(1_200)), Money::ZERO);
        assert_eq!(account.held(ONE), 100);
        assert_eq!(account.equity(&[Price::from_yen(1_200)]), before);
    }

    #[test]
    #[should_panic(expected = "more shares were sold than held")]
    fn nothing_is_sold_short() {
        let mut account = CashAccount::new(Money::from_yen(1), 1);
        book(&mut account, OrderSide::Sell, "1", 1);
    }
}
