//! Who sent an order at a broker, and which differences a broker's data may show.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Origin;
use crate::text::ShortText;

/// Who sent an order at a broker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum OrderOrigin {
    /// A person, or a script for one.
    #[default]
    Person,
    /// A strategy, by its id.
    Strategy(ShortText),
}

impl OrderOrigin {
    /// What a line of a log says: one without an origin is a person's.
    #[must_use]
    pub fn read(origin: Option<Origin>, strategy_id: Option<&str>) -> Self {
        match origin {
            None | Some(Origin::Client) => Self::Person,
            Some(Origin::Strategy) => Self::Strategy(strategy_id.unwrap_or_default().into()),
        }
    }

    /// Whose it is, without the strategy's id.
    #[must_use]
    pub const fn kind(&self) -> Origin {
        match self {
            Self::Person => Origin::Client,
            Self::Strategy(_) => Origin::Strategy,
        }
    }

    /// The strategy that sent it.
    #[must_use]
    pub fn strategy_id(&self) -> Option<&str> {
        match self {
            Self::Person => None,
            Self::Strategy(id) => Some(id),
        }
    }
}

/// A difference between the broker's data and the engine's (specification 4, P19). The engine
/// invents nothing: the order stands as the broker says.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Discrepancy {
    /// The list has more filled shares than notices and the broker's details of the order.
    FillsMissing,
    /// Notices and details have more filled shares than the list.
    FillsUnlisted,
    /// Notices and details have more filled shares than the order.
    Overfilled,
    /// Two notices have the same fill with different shares or prices.
    FillConflict,
    /// The broker took a fill back.
    FillCanceled,
    /// Several rows of the list, or several orders, fit an order whose number is unknown.
    Ambiguous,
    /// A notice names an order that no list has.
    NoticeWithoutOrder,
    /// An accepted order is in no list of the day.
    OrderMissing,
    /// The list has an order working that the engine knows as ended.
    EndedButWorking,
    /// The engine cannot read a row of the list, or a notice.
    Unreadable,
}
