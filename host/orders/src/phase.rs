//! The phases in which the web broker venue is delivered, and what each takes.
//!
//! Specification 2, "What the service does"; specification 4, P34.

use std::fmt;
use std::str::FromStr;

use domain::{OrderRequest, OrderSide, OrderType, ReasonCode, Rejection, TimeInForce};

/// How far the venue is delivered; a later phase takes all that an earlier one takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum OrderPhase {
    /// Cash market buy orders of the day, nothing else.
    O0,
    /// Limit orders, sales, accounts, changes, cancels and lists besides.
    O1,
    /// Notices of executions besides.
    O2,
    /// Margin, stops, dates, auctions and balance guards besides.
    #[default]
    O3,
}

impl OrderPhase {
    /// All phases.
    pub const ALL: [Self; 4] = [Self::O0, Self::O1, Self::O2, Self::O3];

    /// The name in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::O0 => "O0",
            Self::O1 => "O1",
            Self::O2 => "O2",
            Self::O3 => "O3",
        }
    }

    /// Whether changes, cancels and lists are taken.
    #[must_use]
    pub fn takes_changes(self) -> bool {
        self >= Self::O1
    }

    /// Whether notices of executions are read.
    #[must_use]
    pub fn takes_notices(self) -> bool {
        self >= Self::O2
    }

    /// Whether balances are requested before an order is sent.
    #[must_use]
    pub fn guards_balances(self) -> bool {
        self >= Self::O3
    }

    fn outside(self, what: &str) -> Rejection {
        match self {
            Self::O0 => Rejection::new(
                ReasonCode::UnsupportedInPhaseO0,
                format!("PHASE: phase O0 does not take {what}; a higher order_phase may take it"),
            ),
            _ => Rejection::new(
                ReasonCode::VenueUnsupported,
                format!(
                    "PHASE: phase {self} does not take {what}; a higher order_phase may take it"
                ),
            ),
        }
    }

    /// Checks that the phase takes an order, by its kinds and tags.
    ///
    /// # Errors
    /// `UNSUPPORTED_IN_PHASE_O0` in O0; in O1 and O2 `VENUE_UNSUPPORTED` with `PHASE`.
    pub fn check(self, order: &OrderRequest) -> Result<(), Rejection> {
        if self == Self::O3 {
            return Ok(());
        }
        let tags = &order.tags;
        if self == Self::O0 {
            let refused = [
                (order.order_type != OrderType::Market, "an order_type other than MARKET"),
                (order.time_in_force != TimeInForce::Day, "a time_in_force other than DAY"),
                (order.side != OrderSide::Buy, "SELL"),
                (!tags.is_empty(), "a tag"),
                (order.post_only, "post_only"),
                (order.reduce_only, "reduce_only"),
                (order.trigger_type.is_some(), "a trigger_type"),
            ];
            return match refused.iter().find(|(is_requested, _)| *is_requested) {
                Some((_, what)) => Err(self.outside(what)),
                None => Ok(()),
            };
        }
        let is_stop = matches!(order.order_type, OrderType::StopMarket | OrderType::StopLimit);
        let is_later = matches!(
            order.time_in_force,
            TimeInForce::Gtd | TimeInForce::AtTheOpen | TimeInForce::AtTheClose
        );
        if is_stop {
            return Err(self.outside(order.order_type.as_str()));
        }
        if is_later {
            return Err(self.outside(order.time_in_force.as_str()));
        }
        if self == Self::O1 && order.trigger_type.is_some() {
            return Err(self.outside("a trigger_type"));
        }
        // For a tag that is in no registry the dialect gives a warning.
        let margin = |tag: &&String| {
            let is_margin = tag.starts_with("cash_margin=") && *tag != "cash_margin=cash";
            is_margin
                || ["close_action=", "close_strategy=", "tategyoku="]
                    .iter()
                    .any(|kind| tag.starts_with(kind))
        };
        match tags.iter().find(margin) {
            Some(tag) => {
                let kind = tag.split('=').next().unwrap_or_default();
                Err(self.outside(&format!("the tag `{kind}`")))
            }
            None => Ok(()),
        }
    }

    /// Checks that the phase takes changes, cancels and lists.
    ///
    /// # Errors
    /// `UNSUPPORTED_IN_PHASE_O0`.
    pub fn check_change(self, command: &str) -> Result<(), Rejection> {
        if self.takes_changes() { Ok(()) } else { Err(self.outside(command)) }
    }
}

impl fmt::Display for OrderPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for OrderPhase {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|phase| phase.as_str() == text);
        known.ok_or_else(|| format!("`{text}` is not a phase; write O0, O1, O2 or O3"))
    }
}

#[cfg(test)]
mod tests {
    use domain::{Price, TriggerType};

    use super::*;

    fn order(change: impl FnOnce(&mut OrderRequest)) -> OrderRequest {
        let mut order = crate::testing::market_buy("c-1");
        change(&mut order);
        order
    }

    fn tagged(tag: &str) -> OrderRequest {
        order(|order| order.tags = vec![tag.to_owned()])
    }

    /// Specification 2, "Phase O0 restrictions"; specification 4, P34.
    #[test]
    fn each_phase_takes_what_p34_says() {
        use OrderPhase::{O0, O1, O2, O3};
        let limit = order(|order| {
            order.order_type = OrderType::Limit;
            order.price = Some(Price::from_yen(100));
        });
        let first = |order: &OrderRequest| {
            OrderPhase::ALL.into_iter().find(|phase| phase.check(order).is_ok())
        };
        assert_eq!(first(&order(|_| ())), Some(O0));
        assert_eq!(first(&limit), Some(O1));
        assert_eq!(first(&order(|order| order.side = OrderSide::Sell)), Some(O1));
        assert_eq!(first(&tagged("account_type=general")), Some(O1));
        assert_eq!(first(&tagged("cash_margin=cash")), Some(O1));
        assert_eq!(first(&tagged("colour=blue")), Some(O1));
        assert_eq!(first(&order(|order| order.post_only = true)), Some(O1));
        assert_eq!(first(&order(|order| order.reduce_only = true)), Some(O1));
        let trigger = order(|order| order.trigger_type = Some(TriggerType::Last));
        assert_eq!(first(&trigger), Some(O2));
        for later in [
            tagged("cash_margin=margin_credit_new"),
            tagged("close_action=physical_settle_buy"),
            tagged("close_strategy=funari"),
            tagged("tategyoku=1"),
            order(|order| order.order_type = OrderType::StopMarket),
            order(|order| order.order_type = OrderType::StopLimit),
            order(|order| order.time_in_force = TimeInForce::Gtd),
            order(|order| order.time_in_force = TimeInForce::AtTheOpen),
            order(|order| order.time_in_force = TimeInForce::AtTheClose),
        ] {
            assert_eq!(first(&later), Some(O3), "{later:?}");
            let reported = O0.check(&later).unwrap_err();
            assert_eq!(reported.code, ReasonCode::UnsupportedInPhaseO0);
            for phase in [O1, O2] {
                let reported = phase.check(&later).unwrap_err();
                assert_eq!(reported.code, ReasonCode::VenueUnsupported);
                assert!(reported.text.starts_with("PHASE: "), "{reported}");
            }
        }
        assert!(O0.check_change("ModifyOrder").is_err() && O1.check_change("ModifyOrder").is_ok());
        assert!(!O1.takes_notices() && O2.takes_notices());
        assert!(!O2.guards_balances() && O3.guards_balances());
        assert_eq!("O2".parse::<OrderPhase>(), Ok(O2));
        assert!("O4".parse::<OrderPhase>().unwrap_err().contains("O0, O1, O2 or O3"));
    }
}
