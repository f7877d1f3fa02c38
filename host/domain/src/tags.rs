//! The registry of venue tags on orders (specification 2, "Venue tag registry"): what each tag
//! means, which of them exclude each other. Unknown tags are told, not rejected.

use crate::order::{ReasonCode, Rejection, TimeInForce};

/// How an order is paid for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CashMargin {
    /// With the account's own money or shares; the default.
    #[default]
    Cash,
    /// `margin_credit_new`: opens a position on standardised credit.
    CreditNew,
    /// `margin_credit_repay`: closes one.
    CreditRepay,
    /// `margin_general_new`: opens a position on the broker's own credit.
    GeneralNew,
    /// `margin_general_repay`: closes one.
    GeneralRepay,
}

/// Which tax account an order belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountType {
    /// `specific`.
    Specific,
    /// `general`.
    General,
    /// `nisa`: sell only since 2024.
    Nisa,
    /// `nisa_growth`.
    NisaGrowth,
}

/// How a margin position is settled with shares instead of a trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseAction {
    /// `physical_settle_buy`.
    PhysicalSettleBuy,
    /// `physical_settle_sell`.
    PhysicalSettleSell,
}

/// What the tags of one order say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrderTags {
    /// `cash_margin=...`
    pub cash_margin: CashMargin,
    /// `account_type=...`; without one the login's account type holds.
    pub account_type: Option<AccountType>,
    /// `close_action=...`
    pub close_action: Option<CloseAction>,
    /// `close_strategy=funari`: a limit order that turns market at the close.
    pub funari: bool,
    /// `tategyoku=<id>`: the margin positions to close; may repeat.
    pub positions: Vec<String>,
    /// Tags that are not in the registry, as they were given. They have no effect.
    pub unknown: Vec<String>,
}

/// Characters of an unknown tag that its sender is shown.
const UNKNOWN_CHARS_SHOWN: usize = 80;

impl OrderTags {
    /// Reads the tags of an order.
    ///
    /// # Errors
    /// `VENUE_UNSUPPORTED` with a text that starts with `CONFLICTING_TAGS` when two tags of one
    /// kind are given, or `close_strategy=funari` without `AT_THE_CLOSE`. The same text twice counts
    /// once (specification 4, P39).
    pub fn parse(tags: &[String], time_in_force: TimeInForce) -> Result<Self, Rejection> {
        let mut found = Self::default();
        let mut kinds: Vec<&str> = Vec::new();
        for (index, tag) in tags.iter().enumerate() {
            if tags[..index].contains(tag) {
                continue;
            }
            let (key, value) = tag.split_once('=').unwrap_or((tag, ""));
            if !found.take(key, value) {
                found.unknown.push(tag.clone());
                continue;
            }
            if key == "tategyoku" {
                continue;
            }
            if kinds.contains(&key) {
                return Err(conflict(&format!("`{key}` is given twice; give it once")));
            }
            kinds.push(key);
        }
        if found.funari && time_in_force != TimeInForce::AtTheClose {
            let text = format!("`close_strategy=funari` needs AT_THE_CLOSE, not {time_in_force}");
            return Err(conflict(&text));
        }
        Ok(found)
    }

    /// Notes one tag; tells whether the registry has it.
    fn take(&mut self, key: &str, value: &str) -> bool {
        match (key, value) {
            ("cash_margin", "cash") => self.cash_margin = CashMargin::Cash,
            ("cash_margin", "margin_credit_new") => self.cash_margin = CashMargin::CreditNew,
            ("cash_margin", "margin_credit_repay") => self.cash_margin = CashMargin::CreditRepay,
            ("cash_margin", "margin_general_new") => self.cash_margin = CashMargin::GeneralNew,
            ("cash_margin", "margin_general_repay") => self.cash_margin = CashMargin::GeneralRepay,
            ("account_type", "specific") => self.account_type = Some(AccountType::Specific),
            ("account_type", "general") => self.account_type = Some(AccountType::General),
            ("account_type", "nisa") => self.account_type = Some(AccountType::Nisa),
            ("account_type", "nisa_growth") => self.account_type = Some(AccountType::NisaGrowth),
            ("close_action", "physical_settle_buy") => {
                self.close_action = Some(CloseAction::PhysicalSettleBuy);
            }
            ("close_action", "physical_settle_sell") => {
                self.close_action = Some(CloseAction::PhysicalSettleSell);
            }
            ("close_strategy", "funari") => self.funari = true,
            ("tategyoku", id) if !id.is_empty() => self.positions.push(id.to_owned()),
            _ => return false,
        }
        true
    }

    /// What the sender of an order is told of tags that are not in the registry; nothing where there are none.
    #[must_use]
    pub fn unknown_text(&self, client_order_id: &str) -> Option<String> {
        let first: String = self.unknown.first()?.chars().take(UNKNOWN_CHARS_SHOWN).collect();
        let others = match self.unknown.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!(
            "tag `{first}`{others} of `{client_order_id}` is not in the registry: ignored"
        ))
    }

    /// Whether any of them belongs to a margin account.
    #[must_use]
    pub fn is_margin(&self) -> bool {
        self.cash_margin != CashMargin::Cash
            || self.close_action.is_some()
            || !self.positions.is_empty()
    }
}

fn conflict(text: &str) -> Rejection {
    Rejection::new(ReasonCode::VenueUnsupported, format!("CONFLICTING_TAGS: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(tags: &[&str], time_in_force: TimeInForce) -> Result<OrderTags, String> {
        let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
        OrderTags::parse(&tags, time_in_force).map_err(|rejection| rejection.to_string())
    }

    #[test]
    fn every_tag_of_the_registry_is_known() {
        for tag in [
            "cash_margin=cash",
            "cash_margin=margin_credit_new",
            "cash_margin=margin_credit_repay",
            "cash_margin=margin_general_new",
            "cash_margin=margin_general_repay",
            "account_type=specific",
            "account_type=general",
            "account_type=nisa",
            "account_type=nisa_growth",
            "close_action=physical_settle_buy",
            "close_action=physical_settle_sell",
            "close_strategy=funari",
            "tategyoku=A-1",
        ] {
            let tags = parse(&[tag], TimeInForce::AtTheClose).unwrap();
            assert_eq!(tags.unknown, Vec::<String>::new(), "{tag}");
        }
    }

    #[test]
    fn unknown_tags_are_told() {
        let tags = parse(&["colour=blue", "cash_margin=cash"], TimeInForce::Day).unwrap();
        assert_eq!(tags.unknown, ["colour=blue"]);
        assert!(!tags.is_margin());
    }

    #[test]
    fn conflicts_are_rejected() {
        let rejection = |tags: &[&str]| parse(tags, TimeInForce::Day).unwrap_err();
        assert_eq!(
            rejection(&["cash_margin=cash", "cash_margin=margin_credit_new"]),
            "VENUE_UNSUPPORTED: CONFLICTING_TAGS: `cash_margin` is given twice; give it once"
        );
        assert_eq!(
            rejection(&["account_type=specific", "account_type=general"]),
            "VENUE_UNSUPPORTED: CONFLICTING_TAGS: `account_type` is given twice; give it once"
        );
        assert_eq!(
            rejection(&["close_strategy=funari"]),
            "VENUE_UNSUPPORTED: CONFLICTING_TAGS: `close_strategy=funari` needs AT_THE_CLOSE, not \
             DAY"
        );
        let twice = ["account_type=specific", "a", "account_type=specific", "a"];
        let once = parse(&twice, TimeInForce::Day).unwrap();
        assert_eq!((once.account_type, once.unknown.len()), (Some(AccountType::Specific), 1));
        let two = parse(&["tategyoku=1", "tategyoku=2", "tategyoku=1"], TimeInForce::Day).unwrap();
        assert_eq!(two.positions, ["1", "2"]);
        assert!(two.is_margin());
    }
}
