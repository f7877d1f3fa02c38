//! The parameters of the simulated exchange.

use std::fmt;
use std::str::FromStr;

use domain::GuestLimit;
use domain::Quantity;
use domain::limits::ORDERS_MAX;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::commission::{Commission, CommissionError};

/// How the simulated exchange fills orders. [`ExecutionModel::rules`] says it in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ExecutionModel {
    /// Time from an order's sending to its arrival, in nanoseconds.
    pub latency_ns: u64,
    /// Ticks that an order that takes liquidity pays on top of the print, because the side of a
    /// print is unknown.
    pub slippage_ticks: u32,
    /// Share of each print that our orders may take, in percent, 1 to 100.
    pub participation_percent: u32,
    /// Shares that must trade at a resting order's price before a touch fills it; `None` means
    /// that a touch never fills, only a trade through the price.
    pub queue_ahead: Option<u64>,
    /// What the broker charges.
    #[schemars(with = "String")]
    pub commission: Commission,
    /// Whether the same money may go in and out of the same issue within a day: `allow` or `refuse`.
    #[schemars(with = "String")]
    pub same_day_round_trips: SameDayRoundTrips,
    /// Orders that one run may send.
    pub orders_max: u32,
}

impl Default for ExecutionModel {
    fn default() -> Self {
        Self {
            latency_ns: 0,
            slippage_ticks: 1,
            participation_percent: 100,
            queue_ahead: None,
            commission: Commission::None,
            same_day_round_trips: SameDayRoundTrips::Refuse,
            // The default fits 32 bits.
            orders_max: GuestLimit::Orders.default_value() as u32,
        }
    }
}

/// Whether the same money may go in and out of the same issue within a day (F11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SameDayRoundTrips {
    /// It may, which no broker lets a cash account do.
    Allow,
    /// An order that would do so is rejected.
    Refuse,
}

impl SameDayRoundTrips {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Refuse => "refuse",
        }
    }
}

impl fmt::Display for SameDayRoundTrips {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for SameDayRoundTrips {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "allow" => Ok(Self::Allow),
            "refuse" => Ok(Self::Refuse),
            _ => Err(format!("`{text}` is not a choice; write allow or refuse")),
        }
    }
}

/// A named set of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// Pays a tick of slippage on every trade and fills resting orders only when the price trades
    /// through them. The default.
    Strict,
    /// As strict, and: a tenth of each print at most, 100 ms of latency, and the commission of a
    /// Tokyo online broker.
    Realistic,
    /// No slippage, a touch fills resting orders at once, and the same money goes in and out of an
    /// issue within a day. For comparison with other engines only; its results say so.
    Optimistic,
}

impl Preset {
    /// Every preset, the default first.
    pub const ALL: [Self; 3] = [Self::Strict, Self::Realistic, Self::Optimistic];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Realistic => "realistic",
            Self::Optimistic => "optimistic",
        }
    }

    /// Its parameters.
    #[must_use]
    pub fn model(self) -> ExecutionModel {
        let strict = ExecutionModel::default();
        match self {
            Self::Strict => strict,
            Self::Realistic => ExecutionModel {
                latency_ns: 100_000_000,
                participation_percent: 10,
                commission: Commission::online_broker(),
                ..strict
            },
            Self::Optimistic => ExecutionModel {
                slippage_ticks: 0,
                queue_ahead: Some(0),
                same_day_round_trips: SameDayRoundTrips::Allow,
                ..strict
            },
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|preset| preset.as_str() == text);
        found.ok_or_else(|| {
            format!("`{text}` is no execution model; take strict, realistic or optimistic")
        })
    }
}

/// A parameter that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ModelError {
    /// The participation.
    #[error("the participation is {0} percent; it must be 1 to 100")]
    Participation(u32),
    /// The commission.
    #[error(transparent)]
    Commission(#[from] CommissionError),
    /// The number of orders.
    #[error("the limit of orders is {0}; it must be 1 to {ORDERS_MAX}")]
    OrdersMax(u32),
}

impl ExecutionModel {
    /// Checks the parameters.
    ///
    /// # Errors
    /// The first one that makes no sense.
    pub fn check(&self) -> Result<(), ModelError> {
        if !(1..=100).contains(&self.participation_percent) {
            return Err(ModelError::Participation(self.participation_percent));
        }
        if !(1..=ORDERS_MAX).contains(&self.orders_max) {
            return Err(ModelError::OrdersMax(self.orders_max));
        }
        Ok(self.commission.check()?)
    }

    /// The preset that has exactly these parameters.
    #[must_use]
    pub fn preset(&self) -> Option<Preset> {
        Preset::ALL.into_iter().find(|preset| preset.model() == *self)
    }

    /// What every result made with these parameters must say aloud: which of them are better than
    /// a strategy can expect of the market.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let mut reasons = Vec::new();
        if self.slippage_ticks == 0 {
            reasons.push("orders that take liquidity pay no slippage");
        }
        if self.queue_ahead == Some(0) {
            reasons.push("a touch fills resting orders as if they were first in the queue");
        }
        if reasons.is_empty() {
            return None;
        }
        Some(format!("OPTIMISTIC EXECUTION: {}; real fills will be worse", reasons.join(", and ")))
    }

    /// Shares of a print of `printed` shares that our orders may take, in whole lots (F3).
    #[must_use]
    #[inline]
    pub fn budget(&self, printed: Quantity, lot: Quantity) -> Quantity {
        let shares = u128::from(printed.shares()) * u128::from(self.participation_percent) / 100;
        // A percentage of at most 100 keeps the value inside 64 bits.
        Quantity::new(shares as u64).floor_to(lot)
    }

    /// The smallest print that leaves our orders a lot; the inverse of [`Self::budget`].
    pub(crate) fn smallest_print(&self, lot: Quantity) -> u64 {
        let percent = u128::from(self.participation_percent.max(1));
        let shares = (u128::from(lot.shares()) * 100).div_ceil(percent);
        u64::try_from(shares).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_in_whole_lots() {
        let budget = |percent, printed, lot| {
            let model = ExecutionModel { participation_percent: percent, ..Default::default() };
            model.budget(Quantity::new(printed), Quantity::new(lot)).shares()
        };
        assert_eq!(budget(100, 250, 100), 200);
        assert_eq!(budget(10, 2_990, 100), 200);
        assert_eq!(budget(10, 990, 100), 0);
        assert_eq!(budget(100, u64::MAX, 1), u64::MAX);
    }

    #[test]
    fn presets_have_names_and_only_the_optimistic_one_warns() {
        for preset in Preset::ALL {
            assert_eq!(preset.to_string().parse(), Ok(preset));
            assert_eq!(preset.model().preset(), Some(preset));
            assert_eq!(preset.model().check(), Ok(()));
            assert_eq!(preset.model().warning().is_some(), preset == Preset::Optimistic);
        }
        assert_eq!(
            Preset::Optimistic.model().warning().unwrap(),
            "OPTIMISTIC EXECUTION: orders that take liquidity pay no slippage, and a touch fills \
             resting orders as if they were first in the queue; real fills will be worse"
        );
        assert_eq!(
            "cheat".parse::<Preset>().unwrap_err(),
            "`cheat` is no execution model; take \
                   strict, realistic or optimistic"
        );
        let other = ExecutionModel { latency_ns: 1, ..Default::default() };
        assert_eq!(other.preset(), None);
    }

    #[test]
    fn parameters_that_make_no_sense_are_refused() {
        let error = |change: fn(&mut ExecutionModel)| {
            let mut model = ExecutionModel::default();
            change(&mut model);
            model.check().unwrap_err().to_string()
        };
        assert_eq!(
            error(|model| model.participation_percent = 0),
            "the participation is 0 percent; it must be 1 to 100"
        );
        assert_eq!(
            error(|model| model.orders_max = 4_000_001),
            "the limit of orders is 4000001; it must be 1 to 4000000"
        );
        assert!(
            error(|model| model.commission = Commission::PerOrder(domain::Money::from_yen(-1)))
                .contains("negative fee")
        );
    }

    proptest::proptest! {
        #[test]
        fn the_smallest_print_is_exact(percent in 1..=100_u32, lot in 1..2_000_u64) {
            let model = ExecutionModel { participation_percent: percent, ..Default::default() };
            let lot = Quantity::new(lot);
            let smallest = model.smallest_print(lot);
            proptest::prop_assert!(!model.budget(Quantity::new(smallest), lot).is_zero());
            proptest::prop_assert!(model.budget(Quantity::new(smallest - 1), lot).is_zero());
        }
    }
}
