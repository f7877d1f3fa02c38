//! The account: cash, shares and margin positions. The exchange matches only; who may trade and what a
//! fill does to the account is decided here. Fills settle at once, and nothing is charged.

use std::collections::BTreeMap;

use domain::{JstDate, Money, Price, Quantity};

use super::order::Terms;

/// Shares of one issue in one tax account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) quantity: u64,
    pub(crate) cost: Money,
}

/// A margin position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) number: u64,
    pub(crate) issue: usize,
    pub(crate) tax: char,
    /// `3` bought, `1` sold.
    pub(crate) side: char,
    /// `26`, `36`.
    pub(crate) repayment: &'static str,
    pub(crate) price: Price,
    pub(crate) opened: JstDate,
    /// Shares at first, closed by trades, settled with shares.
    pub(crate) quantity: u64,
    pub(crate) closed: u64,
    pub(crate) settled: u64,
}

impl Position {
    /// Shares that are open.
    pub(crate) fn open(&self) -> u64 {
        self.quantity - self.closed - self.settled
    }
}

/// The account.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    pub(crate) cash: Money,
    pub(crate) margin_capacity: Money,
    pub(crate) holdings: BTreeMap<(usize, char), Holding>,
    pub(crate) positions: Vec<Position>,
}

/// Price times shares; what orders may hold fits.
pub(crate) fn value(price: Price, shares: u64) -> Money {
    Money::checked_notional(price, Quantity::new(shares)).unwrap_or_default()
}

impl Ledger {
    pub(crate) fn new(cash: Money, margin_capacity: Money) -> Self {
        Self { cash, margin_capacity, holdings: BTreeMap::new(), positions: Vec::new() }
    }

    pub(crate) fn held(&self, issue: usize, tax: char) -> u64 {
        self.holdings.get(&(issue, tax)).map_or(0, |holding| holding.quantity)
    }

    /// Puts shares into the account, or takes them out, at their average cost.
    pub(crate) fn move_shares(&mut self, key: (usize, char), bought: Option<Money>, shares: u64) {
        let holding = self.holdings.entry(key).or_default();
        if let Some(cost) = bought {
            holding.quantity += shares;
            holding.cost += cost;
            return;
        }
        let cost = i128::from(holding.cost.units()) * i128::from(shares)
            / i128::from(holding.quantity.max(1));
        holding.quantity = holding.quantity.saturating_sub(shares);
        // A part of a value of 64 bits has 64 bits.
        holding.cost -= Money::from_units(cost as i64);
        if holding.quantity == 0 {
            self.holdings.remove(&key);
        }
    }

    /// One share of an issue has become `into`; what was paid stays.
    pub(crate) fn split(&mut self, issue: usize, into: u64) {
        for ((of, _), holding) in &mut self.holdings {
            if *of == issue {
                holding.quantity *= into;
            }
        }
        let parts = i64::try_from(into).unwrap_or(1);
        for position in self.positions.iter_mut().filter(|position| position.issue == issue) {
            position.price = Price::from_units(position.price.units() / parts);
            position.quantity *= into;
            position.closed *= into;
            position.settled *= into;
        }
    }

    /// Value of the open positions, at the prices at which they were opened.
    pub(crate) fn margin_used(&self) -> Money {
        self.positions.iter().map(|position| value(position.price, position.open())).sum()
    }

    /// Open positions that an order can close: the other side, the same credit.
    pub(crate) fn closable<'a>(&'a self, terms: &'a Terms) -> impl Iterator<Item = &'a Position> {
        // Sold positions are closed by a buy or by giving shares, bought ones by a sale or for cash.
        let side = if matches!(terms.side, '3' | '5') { '1' } else { '3' };
        self.positions.iter().filter(move |position| {
            position.issue == terms.issue
                && position.side == side
                && position.repayment == terms.repayment()
                && position.open() > 0
        })
    }

    /// Books a fill of an order of which `before` shares were filled earlier.
    pub(crate) fn book(
        &mut self,
        terms: &Terms,
        before: u64,
        price: Price,
        shares: u64,
        today: JstDate,
    ) {
        let paid = value(price, shares);
        if terms.opens_position() {
            let number = 300_000_001 + self.positions.len() as u64;
            self.positions.push(Position {
                number,
                issue: terms.issue,
                tax: terms.tax,
                side: terms.side,
                repayment: terms.repayment(),
                price,
                opened: today,
                quantity: shares,
                closed: 0,
                settled: 0,
            });
        } else if terms.closes_position() {
            self.close(terms, before, price, shares);
        } else if terms.is_buy() {
            self.cash -= paid;
            self.move_shares((terms.issue, terms.tax), Some(paid), shares);
        } else {
            self.cash += paid;
            self.move_shares((terms.issue, terms.tax), None, shares);
        }
    }

    /// Closes positions in the order in which the order names them.
    fn close(&mut self, terms: &Terms, before: u64, price: Price, shares: u64) {
        let (mut skip, mut left) = (before, shares);
        for (number, asked) in &terms.closes {
            let skipped = skip.min(*asked);
            skip -= skipped;
            let taken = left.min(asked - skipped);
            let found = self.positions.iter_mut().find(|position| position.number == *number);
            let Some(position) = found.filter(|_| taken > 0) else { continue };
            left -= taken;
            let opened_for = value(position.price, taken);
            let (is_bought, key) = (position.side == '3', (position.issue, terms.tax));
            if terms.is_settlement() {
                position.settled += taken;
                if is_bought {
                    self.cash -= opened_for;
                    self.move_shares(key, Some(opened_for), taken);
                } else {
                    self.cash += opened_for;
                    self.move_shares(key, None, taken);
                }
            } else {
                position.closed += taken;
                let now = value(price, taken);
                self.cash += if is_bought { now - opened_for } else { opened_for - now };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(side: char, credit: char, quantity: u64, closes: &[(u64, u64)]) -> Terms {
        Terms {
            issue: 0,
            tax: '1',
            side,
            condition: '0',
            credit,
            quantity,
            price: None,
            trigger: None,
            expires: None,
            closes: closes.to_vec(),
        }
    }

    #[test]
    fn margin_positions_are_closed_by_hand_counted_amounts() {
        let today = JstDate::from_ymd_opt(2026, 5, 11).unwrap();
        let yen = Money::from_yen;
        let mut ledger = Ledger::new(yen(1_000_000), yen(3_000_000));
        ledger.book(&terms('3', '2', 200, &[]), 0, Price::from_yen(1_000), 200, today);
        ledger.book(&terms('1', '2', 100, &[]), 0, Price::from_yen(1_100), 100, today);
        assert_eq!((ledger.cash, ledger.margin_used()), (yen(1_000_000), yen(310_000)));
        let (bought, sold) = (300_000_001, 300_000_002);
        // 100 of them are sold for 50 more, 100 taken for cash; the sold ones bought back 100 cheaper.
        ledger.book(&terms('1', '4', 100, &[(bought, 100)]), 0, Price::from_yen(1_050), 100, today);
        assert_eq!(ledger.cash, yen(1_005_000));
        ledger.book(&terms('3', '4', 100, &[(sold, 100)]), 0, Price::from_yen(1_000), 100, today);
        assert_eq!(ledger.cash, yen(1_015_000));
        ledger.book(&terms('7', '4', 100, &[(bought, 100)]), 0, Price::default(), 100, today);
        assert_eq!((ledger.cash, ledger.held(0, '1')), (yen(915_000), 100));
        assert_eq!(ledger.margin_used(), Money::ZERO);
    }

    #[test]
    fn a_sale_takes_its_part_of_the_cost() {
        let today = JstDate::from_ymd_opt(2026, 5, 11).unwrap();
        let mut ledger = Ledger::new(Money::from_yen(500_000), Money::ZERO);
        ledger.book(&terms('3', '0', 300, &[]), 0, Price::from_yen(1_000), 300, today);
        ledger.book(&terms('1', '0', 100, &[]), 0, Price::from_yen(1_200), 100, today);
        let holding = ledger.holdings[&(0, '1')];
        assert_eq!((holding.quantity, holding.cost), (200, Money::from_yen(200_000)));
        assert_eq!(ledger.cash, Money::from_yen(320_000));
    }
}
