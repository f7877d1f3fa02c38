//! The account at the broker in memory, beside its cash: room for margin, shares, positions.

use std::collections::BTreeMap;

use domain::order_mapping::{Field, Funding};
use venues::web_broker::Answered;

use crate::broker::{AtBroker, answer};

pub(crate) const SYMBOL: &str = "7203";

/// The lists and balances that guards request.
pub(crate) const BALANCES: [&str; 5] = [
    "CLMZanKaiKanougaku",
    "CLMZanShinkiKanoIjiritu",
    "CLMZanUriKanousuu",
    "CLMShinyouTategyokuList",
    "CLMGenbutuKabuList",
];

/// The broker's answer to a guard's request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Balance {
    Cash(u64),
    Margin(u64),
    Sellable(u64),
    /// Positions that an order may close, in ascending number.
    Positions(Vec<(String, u64)>),
}

pub(crate) struct Account {
    /// Yen for new margin positions.
    pub(crate) margin: u64,
    /// Shares in the account.
    pub(crate) shares: u64,
    /// Shares of margin positions, by their numbers.
    pub(crate) positions: BTreeMap<String, u64>,
    /// They were sold, not bought.
    pub(crate) are_short: bool,
    opened: u64,
}

impl Default for Account {
    fn default() -> Self {
        let (margin, shares) = (1_000_000_000, 100_000);
        Self { margin, shares, positions: BTreeMap::new(), are_short: false, opened: 0 }
    }
}

/// Shares of each position that the part of an order from one share to another closes.
fn part(closes: &[(String, u64)], from: u64, to: u64) -> Vec<(String, u64)> {
    let mut begin = 0;
    let mut found = Vec::new();
    for (id, shares) in closes {
        let end = begin + shares;
        let (first, last) = (from.max(begin), to.min(end));
        if last > first {
            found.push((id.clone(), last - first));
        }
        begin = end;
    }
    found
}

impl Account {
    pub(crate) fn open(&mut self, shares: u64) {
        self.opened += 1;
        self.positions.insert(format!("T{:04}", self.opened), shares);
    }

    /// Shares of each position that no working order closes.
    pub(crate) fn free<'a>(
        &self,
        orders: impl Iterator<Item = &'a AtBroker>,
    ) -> Vec<(String, u64)> {
        let mut free = self.positions.clone();
        for order in orders.filter(|order| order.is_open()) {
            for (id, shares) in part(&order.closes, order.filled, order.order.quantity.shares()) {
                *free.get_mut(&id).expect("a working order closes what is there") -= shares;
            }
        }
        free.into_iter().collect()
    }

    /// Shares that may be sold.
    pub(crate) fn sellable<'a>(&self, orders: impl Iterator<Item = &'a AtBroker>) -> u64 {
        let sells = orders.filter(|order| order.is_open() && order.sells_shares());
        let bound: u64 = sells.map(|order| order.order.quantity.shares() - order.filled).sum();
        self.shares.saturating_sub(bound)
    }

    /// An order is filled from one share to another; `yen` is their value.
    pub(crate) fn filled(&mut self, order: &AtBroker, from: u64, to: u64, yen: u64) {
        match order.funding {
            Funding::Cash if order.sells_shares() => self.shares -= to - from,
            Funding::Cash => self.shares += to - from,
            Funding::MarginNew => {
                self.margin = self.margin.saturating_sub(yen);
                self.open(to - from);
            }
            Funding::MarginRepay => {
                for (id, shares) in part(&order.closes, from, to) {
                    let held = self.positions.get_mut(&id).expect("it closes what is there");
                    *held -= shares;
                }
                self.positions.retain(|_, shares| *shares > 0);
            }
        }
    }
}

/// The answer with a balance of the account.
pub(crate) fn balance_answer(id: &str, reported: &Balance, are_short: bool) -> Answered {
    let mut fields = vec![Field::new("sResultCode", "0")];
    let mut rows = Vec::new();
    match reported {
        Balance::Cash(yen) => fields.push(Field::new("sSummaryGenkabuKaituke", yen.to_string())),
        Balance::Margin(yen) => fields.push(Field::new("sSummarySinyouSinkidate", yen.to_string())),
        Balance::Sellable(shares) => {
            for account in ["Ippan", "Tokutei", "Nisa", "Nseityou"] {
                let name = format!("sZanKabuSuryouUriKanou{account}");
                fields.push(Field::new(name, shares.to_string()));
            }
        }
        Balance::Positions(positions) => {
            rows.extend(positions.iter().map(|(id, shares)| {
                vec![
                    Field::new("sOrderTategyokuNumber", id.as_str()),
                    Field::new("sOrderIssueCode", SYMBOL),
                    Field::new("sOrderBaibaiKubun", if are_short { "1" } else { "3" }),
                    Field::new("sOrderBensaiKubun", "26"),
                    Field::new("sOrderZyoutoekiKazeiC", "1"),
                    Field::new("sOrderTategyokuSuryou", shares.to_string()),
                    Field::new("sOrderHensaiKanouSuryou", shares.to_string()),
                    Field::new("sOrderTategyokuTanka", "2500"),
                ]
            }));
        }
    }
    let mut answered = answer(id, "", fields);
    if matches!(reported, Balance::Positions(_)) {
        answered.lists.insert("aShinyouTategyokuList".to_owned(), rows);
    }
    answered
}
