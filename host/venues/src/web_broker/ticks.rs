//! Price steps from the broker's master (specification 4, P35).
//!
//! There is no table of our own, because the exchange changes its rules.

use domain::Price;
use serde::{Deserialize, Serialize};

/// A table of price steps: bands from the lowest, each with its highest price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticks {
    bands: Vec<(Price, Price)>,
}

impl Ticks {
    /// A table of bands: the highest price of each, which belongs to it, and its step.
    ///
    /// # Errors
    /// Why it is not a table: empty, not rising, or a step that is not above zero.
    pub fn new(bands: Vec<(Price, Price)>) -> Result<Self, String> {
        if bands.is_empty() {
            return Err("a table of price steps is empty".to_owned());
        }
        if bands.iter().any(|(up_to, step)| step.units() <= 0 || up_to.units() <= 0) {
            return Err("a table of price steps has one that is not above zero".to_owned());
        }
        if !bands.is_sorted_by(|(one, _), (next, _)| one < next) {
            return Err("the bands of a table of price steps do not rise".to_owned());
        }
        Ok(Self { bands })
    }

    /// The bands: highest price and step.
    #[must_use]
    pub fn bands(&self) -> &[(Price, Price)] {
        &self.bands
    }

    /// The step at a price. A band's highest price belongs to it; above the last band the last step applies.
    #[must_use]
    pub fn tick_at(&self, price: Price) -> Price {
        let band = self.bands.iter().find(|(up_to, _)| price <= *up_to).or(self.bands.last());
        band.map_or(Price::from_yen(1), |(_, step)| *step)
    }

    /// The highest price on the grid that is not above `price`; 0 if there is none above 0.
    #[must_use]
    pub fn floor(&self, price: Price) -> Price {
        let units = price.units().max(0);
        Price::from_units(units - units % self.tick_at(price).units())
    }

    /// The lowest price on the grid that is not below `price`.
    #[must_use]
    pub fn ceil(&self, price: Price) -> Price {
        let below = self.floor(price);
        if below >= price {
            return below;
        }
        Price::from_units(below.units().saturating_add(self.tick_at(price).units()))
    }
}
