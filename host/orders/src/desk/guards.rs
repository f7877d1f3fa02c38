//! Guards: requests to the broker before an order is sent, for cash, margin, shares and positions.
//!
//! Specification 4, P39 and P40. If a guard's request fails the order is refused, and nothing was sent.

use std::collections::VecDeque;

use domain::order_mapping::{
    Allocation, BrokerOrder, BrokerRequest, Funding, OrderPlan, TaxAccount,
};
use domain::{Money, OrderSide, OrderType, Quantity, ReasonCode, Rejection};
use venues::web_broker::account::MarginPosition;
use venues::web_broker::{Answered, Masters, account};

use super::Desk;
use super::submit::SubmitJob;
use crate::book::{DeskOrder, OrderKey};

/// A check of an order by the broker's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Is there cash for it?
    Cash,
    /// Is there room for a new margin position?
    Margin,
    /// Are there shares to sell?
    Sellable,
    /// Are enough shares open in the positions that it closes, and how many of each?
    Positions,
}

fn funds(text: String) -> Rejection {
    Rejection::new(ReasonCode::InsufficientFunds, text)
}

pub(crate) fn guard_failed(why: &str) -> Rejection {
    Rejection::new(
        ReasonCode::InternalError,
        format!("GUARD: the engine does not know the balances: {why}"),
    )
}

impl Desk {
    /// The guards of an order. Positions are requested in every phase that has them, because the order names
    /// the shares that it closes.
    pub(crate) fn guards_of(&self, key: OrderKey, plan: &OrderPlan) -> VecDeque<Guard> {
        let Some(order) = self.book.get(key) else { return VecDeque::new() };
        let guards = self.rules.phase.guards_balances();
        let side = order.order.side;
        let mut found = VecDeque::new();
        match plan.funding {
            Funding::Cash if guards && side == OrderSide::Buy => found.push_back(Guard::Cash),
            // What a strategy holds is known, and was compared with the account at the start (P107, P114).
            Funding::Cash if order.sells_own_shares() => {}
            Funding::Cash if guards => found.push_back(Guard::Sellable),
            Funding::MarginNew if guards => found.push_back(Guard::Margin),
            Funding::MarginRepay if guards || plan.positions.len() > 1 => {
                found.push_back(Guard::Positions);
            }
            _ => {}
        }
        if plan.needs_cash && guards {
            found.push_back(Guard::Cash);
        }
        found
    }

    pub(crate) fn guard_request(&self, key: OrderKey, guard: &Guard) -> BrokerRequest {
        match guard {
            Guard::Cash => account::cash_request(),
            Guard::Margin => account::margin_request(),
            Guard::Sellable => {
                let order = self.book.get(key);
                account::sellable_request(order.map_or("", |order| &order.order.symbol))
            }
            Guard::Positions => account::margin_positions_request(),
        }
    }

    /// Judges an order by the answer to a guard's request.
    pub(crate) fn judge_guard(
        &self,
        submit: &mut SubmitJob,
        guard: Guard,
        answered: &Answered,
    ) -> Result<(), Rejection> {
        let failed = |why: String| guard_failed(&why);
        let Some(order) = self.book.get(submit.key) else { return Ok(()) };
        let ordered = order.order.quantity;
        match guard {
            Guard::Cash => {
                let value = self.value_of(order)?;
                let cash = account::read_cash(answered).flatten().map_err(failed)?;
                if value > cash {
                    let text =
                        format!("CASH: the order needs {value} yen, but only {cash} yen are free");
                    return Err(funds(text));
                }
            }
            Guard::Margin => {
                let value = self.value_of(order)?;
                let room = account::read_margin(answered).flatten().map_err(failed)?;
                if value > room {
                    let text = format!(
                        "MARGIN: the order needs {value} yen, but new positions may take only \
                         {room} yen"
                    );
                    return Err(funds(text));
                }
            }
            Guard::Sellable => {
                let held = account::read_sellable(answered).map_err(failed)?;
                let held =
                    match submit.plan.account.or_else(|| login_account(self.session.account())) {
                        Some(TaxAccount::General) => held.general,
                        Some(TaxAccount::Nisa) => held.nisa,
                        Some(TaxAccount::NisaGrowth) => held.growth,
                        Some(TaxAccount::Specific) | None => held.specific,
                    };
                if ordered > held {
                    let (ordered, held) = (ordered.shares(), held.shares());
                    let text = format!(
                        "SELLABLE: the order sells {ordered} shares, but only {held} can be sold"
                    );
                    return Err(funds(text));
                }
            }
            Guard::Positions => {
                // A position that was left out may be one that the order closes (P129).
                let open = account::read_margin_positions(answered)
                    .and_then(venues::Listed::whole)
                    .map_err(failed)?;
                let closable = open.iter().filter(|one| is_closed_by(&order.order, one));
                let mut open: Vec<(&str, Quantity)> =
                    closable.map(|one| (one.id.as_str(), one.open_quantity)).collect();
                submit.allocations = allocate(&submit.plan.positions, ordered, &mut open)?;
            }
        }
        Ok(())
    }

    /// What an order may cost: at its limit price, else at the day's upper limit (P40).
    fn value_of(&self, order: &DeskOrder) -> Result<Money, Rejection> {
        let made = &order.order;
        let has_limit = matches!(made.order_type, OrderType::Limit | OrderType::StopLimit);
        let price = match made.price.filter(|_| has_limit) {
            Some(price) => price,
            None => upper_limit(self.session.masters(), &made.symbol)?,
        };
        let shares = i64::try_from(made.quantity.shares()).ok();
        let units = shares.and_then(|shares| price.units().checked_mul(shares));
        units.map(Money::from_units).ok_or_else(|| {
            Rejection::new(
                ReasonCode::ValidationError,
                "QUANTITY: price times quantity is too large; send a smaller order",
            )
        })
    }
}

fn upper_limit(masters: Option<&Masters>, symbol: &str) -> Result<domain::Price, Rejection> {
    let issue = masters.and_then(|masters| masters.issue(symbol));
    issue.and_then(|issue| issue.upper_limit).ok_or_else(|| {
        let text = "MASTER_MISSING: the engine does not know the day's upper limit of the issue; \
                    log in again";
        Rejection::new(ReasonCode::InternalError, text)
    })
}

/// The tax account of a login's code (sZyoutoekiKazeiC).
pub(super) fn login_account(code: &str) -> Option<TaxAccount> {
    match code {
        "1" => Some(TaxAccount::Specific),
        "3" => Some(TaxAccount::General),
        "5" => Some(TaxAccount::Nisa),
        "6" => Some(TaxAccount::NisaGrowth),
        _ => None,
    }
}

/// Whether an order closes this position: same symbol, other side, and the kind of margin that its tag names.
/// An order that settles with shares or cash closes the side that its tag names, whatever its own side is
/// (P39).
fn is_closed_by(order: &BrokerOrder, position: &MarginPosition) -> bool {
    let has = |tag: &str| order.tags.iter().any(|one| one == tag);
    let is_of_side = if has("close_action=physical_settle_buy") {
        position.side == OrderSide::Buy
    } else if has("close_action=physical_settle_sell") {
        position.side == OrderSide::Sell
    } else {
        position.side != order.side
    };
    let is_of_kind = match position.is_general {
        true => !has("cash_margin=margin_credit_repay"),
        false => !has("cash_margin=margin_general_repay"),
    };
    *position.symbol == *order.symbol && is_of_side && is_of_kind
}

/// Allocates an order's shares to positions (P39). One named position takes the whole order; several are filled
/// in ascending number. If none is named the broker chooses, and all positions that it may close must suffice.
fn allocate(
    wanted: &[String],
    ordered: Quantity,
    open: &mut [(&str, Quantity)],
) -> Result<Vec<Allocation>, Rejection> {
    open.sort_unstable();
    let mut left = ordered.shares();
    let mut found = Vec::new();
    let mut available = 0_u64;
    for (id, shares) in open.iter() {
        if !wanted.is_empty() && !wanted.iter().any(|one| one == id) {
            continue;
        }
        available = available.saturating_add(shares.shares());
        let taken = left.min(shares.shares());
        if taken > 0 && !wanted.is_empty() {
            let quantity = Quantity::new(taken);
            found.push(Allocation { position: (*id).to_owned(), quantity });
        }
        left -= taken;
    }
    if left > 0 {
        let text = format!(
            "TATEGYOKU: the order closes {} shares, but its positions have only {available} open",
            ordered.shares()
        );
        return Err(funds(text));
    }
    Ok(found)
}

/// The allocation of an order that names one position, if no guard has checked its open shares.
pub(crate) fn whole(plan: &OrderPlan, ordered: Quantity) -> Vec<Allocation> {
    match plan.positions.as_slice() {
        [position] => vec![Allocation { position: position.clone(), quantity: ordered }],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(count: u64) -> Quantity {
        Quantity::new(count)
    }

    /// Specification 4, P39.
    #[test]
    fn positions_are_filled_in_ascending_number() {
        let open = || vec![("B", shares(200)), ("A", shares(100)), ("C", shares(500))];
        let wanted = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        let found = allocate(&wanted(&["B", "A"]), shares(250), &mut open()).unwrap();
        let reported: Vec<_> =
            found.iter().map(|one| (one.position.as_str(), one.quantity.shares())).collect();
        assert_eq!(reported, [("A", 100), ("B", 150)]);
        let reported = allocate(&wanted(&["A"]), shares(200), &mut open()).unwrap_err();
        assert_eq!(reported.code, ReasonCode::InsufficientFunds);
        assert!(reported.text.starts_with("TATEGYOKU: the order closes 200 shares"), "{reported}");
        assert_eq!(allocate(&[], shares(800), &mut open()).unwrap(), []);
        assert!(allocate(&[], shares(801), &mut open()).is_err());
        assert!(allocate(&wanted(&["Z"]), shares(1), &mut open()).is_err());
    }
}
