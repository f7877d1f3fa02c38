//! The registry of tags (specification 2, "Venue tag registry"; 4, P39). A new tag is added here first.

use super::{invalid, unsupported};
use crate::text::name;
use crate::{Account, Funding, Order, OrderPlan, OrderType, Refusal, Side, TimeInForce};

/// How an order is paid for: `sGenkinShinyouKubun`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CashMargin {
    /// `cash_margin=cash`
    #[default]
    Cash,
    /// `cash_margin=margin_credit_new`
    CreditNew,
    /// `cash_margin=margin_credit_repay`
    CreditRepay,
    /// `cash_margin=margin_general_new`
    GeneralNew,
    /// `cash_margin=margin_general_repay`
    GeneralRepay,
}

impl CashMargin {
    /// All of them, with what a tag says and the broker's code.
    pub const ALL: [(Self, &'static str, &'static str); 5] = [
        (Self::Cash, "cash", "0"),
        (Self::CreditNew, "margin_credit_new", "2"),
        (Self::CreditRepay, "margin_credit_repay", "4"),
        (Self::GeneralNew, "margin_general_new", "6"),
        (Self::GeneralRepay, "margin_general_repay", "8"),
    ];

    /// The broker's code.
    #[must_use]
    pub fn code(self) -> &'static str {
        Self::ALL.iter().find(|one| one.0 == self).map_or("0", |one| one.2)
    }

    /// Which balance must suffice.
    #[must_use]
    pub const fn funding(self) -> Funding {
        match self {
            Self::Cash => Funding::Cash,
            Self::CreditNew | Self::GeneralNew => Funding::MarginNew,
            Self::CreditRepay | Self::GeneralRepay => Funding::MarginRepay,
        }
    }
}

/// A margin position closed by its shares changing hands: `sBaibaiKubun`, whatever the order's side is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseAction {
    /// `close_action=physical_settle_buy`
    PhysicalSettleBuy,
    /// `close_action=physical_settle_sell`
    PhysicalSettleSell,
}

impl CloseAction {
    /// The broker's code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::PhysicalSettleBuy => "7",
            Self::PhysicalSettleSell => "5",
        }
    }
}

/// `sZyoutoekiKazeiC` of an account.
pub(super) const fn account_code(account: Account) -> &'static str {
    match account {
        Account::Specific => "1",
        Account::General => "3",
        Account::Nisa => "5",
        Account::NisaGrowth => "6",
    }
}

fn account_of(value: &str) -> Option<Account> {
    match value {
        "specific" => Some(Account::Specific),
        "general" => Some(Account::General),
        "nisa" => Some(Account::Nisa),
        "nisa_growth" => Some(Account::NisaGrowth),
        _ => None,
    }
}

/// What the tags of an order say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tags {
    cash_margin: Option<CashMargin>,
    /// The account that they name.
    pub account: Option<Account>,
    /// How it closes a position, where not by a trade.
    pub close_action: Option<CloseAction>,
    /// Whether a limit order becomes a market order at the close.
    pub is_funari: bool,
    /// Numbers of the margin positions that it closes, in the order in which they were named.
    pub positions: Vec<String>,
    /// Tags that mean nothing here.
    pub unknown: Vec<String>,
}

impl Tags {
    /// Reads the tags of an order, and holds them against each other and against the order.
    ///
    /// # Errors
    /// `CONFLICTING_TAGS`, `ACCOUNT_TYPE` or `TATEGYOKU`.
    pub fn of(order: &Order) -> Result<Self, Refusal> {
        let mut tags = Self::default();
        for (index, tag) in order.tags.iter().enumerate() {
            // The same tag twice with one text counts once.
            if !order.tags[..index].contains(tag) {
                tags.take(tag)?;
            }
        }
        tags.check(order)?;
        Ok(tags)
    }

    /// How the order is paid for.
    #[must_use]
    pub fn cash_margin(&self) -> CashMargin {
        self.cash_margin.unwrap_or_default()
    }

    /// `sBaibaiKubun` of the order.
    #[must_use]
    pub fn side_code(&self, side: Side) -> &'static str {
        self.close_action.map_or(super::side_code(side), CloseAction::code)
    }

    /// What the order needs before it can be sent.
    #[must_use]
    pub fn plan(&self) -> OrderPlan {
        OrderPlan {
            funding: self.cash_margin().funding(),
            account: self.account,
            positions: self.positions.clone(),
            needs_cash: self.close_action == Some(CloseAction::PhysicalSettleBuy),
            unknown_tags: self.unknown.clone(),
        }
    }

    fn take(&mut self, tag: &str) -> Result<(), Refusal> {
        let (key, value) = tag.split_once('=').unwrap_or((tag, ""));
        let known_margin = || CashMargin::ALL.iter().find(|one| one.1 == value).map(|one| one.0);
        match (key, value) {
            ("cash_margin", _) if known_margin().is_some() => {
                once(key, &mut self.cash_margin, known_margin())
            }
            ("account_type", _) if account_of(value).is_some() => {
                once(key, &mut self.account, account_of(value))
            }
            ("close_action", "physical_settle_buy") => {
                once(key, &mut self.close_action, Some(CloseAction::PhysicalSettleBuy))
            }
            ("close_action", "physical_settle_sell") => {
                once(key, &mut self.close_action, Some(CloseAction::PhysicalSettleSell))
            }
            ("close_strategy", "funari") => {
                self.is_funari = true;
                Ok(())
            }
            ("tategyoku", _) => {
                let Some(id) = name(value) else {
                    return Err(unsupported(
                        "TATEGYOKU",
                        "a position's number is letters and digits",
                    ));
                };
                self.positions.push(id.to_owned());
                Ok(())
            }
            _ => {
                self.unknown.push(tag.to_owned());
                Ok(())
            }
        }
    }

    fn check(&self, order: &Order) -> Result<(), Refusal> {
        let conflict = |words: &str| Err(unsupported("CONFLICTING_TAGS", words));
        let funding = self.cash_margin().funding();
        if self.is_funari && order.time_in_force != TimeInForce::AtTheClose {
            return conflict("close_strategy=funari goes with AT_THE_CLOSE only");
        }
        let is_nisa = matches!(self.account, Some(Account::Nisa | Account::NisaGrowth));
        if is_nisa && funding != Funding::Cash {
            return conflict("a margin order cannot go to a NISA account");
        }
        if self.account == Some(Account::NisaGrowth) {
            return Err(unsupported("ACCOUNT_TYPE", "account_type=nisa_growth is not taken yet"));
        }
        if self.account == Some(Account::Nisa) && order.side == Side::Buy {
            return Err(unsupported("ACCOUNT_TYPE", "account_type=nisa can only sell"));
        }
        if !self.positions.is_empty() && funding != Funding::MarginRepay {
            return conflict("tategyoku goes with a margin repayment only");
        }
        if self.close_action.is_some() {
            let is_plain =
                order.order_type == OrderType::Market && order.time_in_force == TimeInForce::Day;
            if funding != Funding::MarginRepay || self.positions.is_empty() || !is_plain {
                return conflict(
                    "close_action needs a margin repayment, a tategyoku tag, MARKET and DAY",
                );
            }
        }
        if order.quantity == 0 {
            return Err(invalid("QUANTITY", "an order is for 1 share or more"));
        }
        Ok(())
    }
}

/// Sets what may be said once; two values of one kind conflict.
fn once<T>(key: &str, place: &mut Option<T>, value: Option<T>) -> Result<(), Refusal> {
    if place.is_some() {
        return Err(unsupported("CONFLICTING_TAGS", &format!("{key} has two values")));
    }
    *place = value;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::order;

    fn of(tags: &[&str]) -> Tags {
        Tags::of(&order(Side::Sell, OrderType::Market, tags)).unwrap()
    }

    fn refused(order: &Order) -> String {
        Tags::of(order).unwrap_err().text.split(':').next().unwrap().to_owned()
    }

    #[test]
    fn every_row_of_the_registry() {
        for (cash_margin, value, code) in CashMargin::ALL {
            let tags = of(&[&format!("cash_margin={value}")]);
            assert_eq!((tags.cash_margin(), cash_margin.code()), (cash_margin, code));
        }
        assert_eq!(of(&[]).cash_margin(), CashMargin::Cash, "the default");
        for (value, code) in [("specific", "1"), ("general", "3"), ("nisa", "5")] {
            let account = of(&[&format!("account_type={value}")]).account.unwrap();
            assert_eq!(account_code(account), code);
        }
        assert_eq!(account_code(account_of("nisa_growth").unwrap()), "6");
        let repay = ["cash_margin=margin_credit_repay", "tategyoku=201", "tategyoku=202"];
        assert_eq!(of(&repay).positions, ["201", "202"], "tategyoku may repeat");
        for (value, code) in [("physical_settle_buy", "7"), ("physical_settle_sell", "5")] {
            let tags = of(&[repay[0], repay[1], &format!("close_action={value}")]);
            // P39: whatever the order's side is.
            assert_eq!((tags.side_code(Side::Buy), tags.side_code(Side::Sell)), (code, code));
            assert_eq!(tags.plan().needs_cash, code == "7");
        }
        let mut at_close = order(Side::Sell, OrderType::Limit, &["close_strategy=funari"]);
        assert_eq!(refused(&at_close), "CONFLICTING_TAGS", "funari without AT_THE_CLOSE");
        at_close.time_in_force = TimeInForce::AtTheClose;
        assert!(Tags::of(&at_close).unwrap().is_funari);
    }

    /// P39
    #[test]
    fn tags_that_conflict_are_refused_by_name() {
        let sell = |tags: &[&str]| order(Side::Sell, OrderType::Market, tags);
        let once = of(&["cash_margin=cash", "cash_margin=cash", "note=a", "note=a"]);
        assert_eq!(
            (once.cash_margin(), once.unknown),
            (CashMargin::Cash, vec!["note=a".to_owned()])
        );
        for tags in [
            &["cash_margin=cash", "cash_margin=margin_credit_new"][..],
            &["account_type=general", "account_type=specific"],
            &["cash_margin=margin_credit_new", "account_type=nisa"],
            &["cash_margin=margin_general_repay", "account_type=nisa_growth"],
            &["tategyoku=201"],
            &["cash_margin=margin_credit_new", "tategyoku=201"],
            &["close_action=physical_settle_buy", "tategyoku=201"],
            &["close_action=physical_settle_buy", "cash_margin=margin_credit_repay"],
            &[
                "close_action=physical_settle_buy",
                "close_action=physical_settle_sell",
                "cash_margin=margin_credit_repay",
                "tategyoku=201",
            ],
        ] {
            assert_eq!(refused(&sell(tags)), "CONFLICTING_TAGS", "{tags:?}");
        }
        let settle = [
            "close_action=physical_settle_buy",
            "cash_margin=margin_credit_repay",
            "tategyoku=201",
        ];
        assert!(Tags::of(&sell(&settle)).is_ok());
        assert_eq!(refused(&order(Side::Sell, OrderType::Limit, &settle)), "CONFLICTING_TAGS");
        let at_open = Order { time_in_force: TimeInForce::AtTheOpen, ..sell(&settle) };
        assert_eq!(refused(&at_open), "CONFLICTING_TAGS", "close_action needs DAY");
        assert_eq!(refused(&sell(&["account_type=nisa_growth"])), "ACCOUNT_TYPE");
        let nisa = order(Side::Buy, OrderType::Market, &["account_type=nisa"]);
        assert_eq!(refused(&nisa), "ACCOUNT_TYPE");
        assert_eq!(
            refused(&sell(&["cash_margin=margin_credit_repay", "tategyoku=a b"])),
            "TATEGYOKU"
        );
    }

    /// P39
    #[test]
    fn unknown_tags_are_accepted_and_told() {
        let tags = of(&["note=a", "cash_margin=shells", "bare"]);
        assert_eq!(tags.plan().unknown_tags, ["note=a", "cash_margin=shells", "bare"]);
        assert_eq!(tags.plan().funding, Funding::Cash);
    }
}
