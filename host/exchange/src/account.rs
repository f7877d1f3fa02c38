//! The cash account: money, positions, profit and loss. Exact.

use domain::account::{self, Account, Position};
use domain::adjustment::Adjustment;
use domain::{InstrumentIx, Money, OrderSide, Price, Quantity};

/// Money and shares. Buying needs cash, selling needs shares; there is no credit.
///
/// The simulated exchange checks both first. Fills of a broker may sell more than is held, on margin: the position is
/// negative then, and its cost is what the shares were sold for, below zero.
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

    /// Takes a position that was bought before: its cost is paid from the cash.
    pub fn carry(&mut self, instrument: InstrumentIx, quantity: i64, cost: Money) {
        let position = &mut self.positions[usize::from(instrument.0)];
        position.quantity += quantity;
        position.cost += cost;
        self.account.cash -= cost;
    }

    /// Books a fill.
    ///
    /// # Panics
    /// When the value does not fit: the exchange checks that first.
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
        let shares = quantity.shares().cast_signed() * side.sign();
        let paid = Money::from_units(value.units() * side.sign());
        let position = &mut self.positions[usize::from(instrument.0)];
        let before = position.quantity;
        self.account.realised_pnl += position.trade(shares, paid);
        self.account.cash -= paid;
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
        let rest = i128::from(shares.rest);
        let cost = position.cost.share_of(rest, whole + rest);
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

    /// Fills of margin orders at a broker may sell what is not held.
    #[test]
    fn a_position_below_zero_by_hand() {
        let mut account = CashAccount::new(Money::ZERO, 1);
        assert_eq!(book(&mut account, OrderSide::Sell, "1000", 200), PositionChange::Opened);
        let position = account.positions()[0];
        assert_eq!((position.quantity, position.cost), (-200, Money::from_yen(-200_000)));
        assert_eq!(book(&mut account, OrderSide::Buy, "990", 100), PositionChange::Changed);
        assert_eq!(account.positions()[0].realised_pnl, Money::from_yen(1_000));
        // 100 of the 300 end the position, 200 open another one.
        assert_eq!(book(&mut account, OrderSide::Buy, "980", 300), PositionChange::Changed);
        let position = account.positions()[0];
        assert_eq!((position.quantity, position.cost), (200, Money::from_yen(196_000)));
        assert_eq!(position.realised_pnl, Money::from_yen(3_000));
        let equity = account.equity(&["980".parse().unwrap()]);
        assert_eq!(equity, Money::from_yen(3_000));
    }

    #[test]
    fn a_carried_position_is_worth_its_cost() {
        let mut account = CashAccount::new(Money::ZERO, 1);
        account.carry(ONE, 100, Money::from_yen(250_000));
        assert_eq!(account.equity(&["2500".parse().unwrap()]), Money::ZERO);
        assert_eq!(book(&mut account, OrderSide::Sell, "2510", 100), PositionChange::Closed);
        assert_eq!(account.account().realised_pnl, Money::from_yen(1_000));
        assert_eq!(account.account().cash, Money::from_yen(1_000));
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
}
