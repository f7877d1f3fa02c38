//! What the broker charges for an order.

use std::fmt;
use std::str::FromStr;

use domain::Money;
use domain::limits::COMMISSION_TIERS_MAX;
use domain::price::UNITS_PER_YEN;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// How to write a commission; part of every error about one.
const FORMS: &str = "write `none`, `450ppm` (parts per million of the value) or \
                     `450ppm,min=50,max=1000`, `order:100` (yen for each order), or \
                     `tiers:50000=55,100000=99,1070` (up to this value = this fee, then the fee \
                     above)";

/// What the broker charges. A fee belongs to an order: it is a function of the value of all its
/// fills so far, so an order filled in pieces pays the same as one filled at once, and each fill is
/// charged what it adds.
///
/// Its text form is what files show and what the command line takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one for each run")]
pub enum Commission {
    /// Nothing.
    #[default]
    None,
    /// A part of the order's value.
    Rate {
        /// Parts per million of the value, up to 1,000,000.
        per_million: u32,
        /// The least that an order with a fill pays, in yen.
        minimum: Money,
        /// The most that an order pays, in yen.
        maximum: Option<Money>,
    },
    /// The same for every order that has a fill, in yen.
    PerOrder(Money),
    /// By the order's value, as brokers' price lists give it.
    Tiers(TierTable),
}

/// One row of a price list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tier {
    /// The highest value of an order that pays this fee.
    pub up_to: Money,
    /// The fee.
    pub fee: Money,
}

/// A price list: at most 16 rows, and the fee above the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TierTable {
    rows: [Tier; COMMISSION_TIERS_MAX],
    used: usize,
    above: Money,
}

/// A commission that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CommissionError {
    /// The text has none of the forms.
    #[error("`{0}` is not a commission; {FORMS}")]
    Form(String),
    /// A rate of more than everything.
    #[error("a commission of {0} ppm is more than the value itself; give at most 1,000,000")]
    Rate(u32),
    /// A fee below zero, or a minimum above the maximum.
    #[error("the commission `{0}` has a negative fee or a minimum above its maximum")]
    Fee(String),
    /// Rows out of order.
    #[error(
        "the commission `{0}` has tiers out of order; give rising values, and fees that do not fall"
    )]
    Order(String),
    /// Too many rows.
    #[error("the commission has {0} tiers; give at most {COMMISSION_TIERS_MAX}")]
    Tiers(usize),
}

impl TierTable {
    /// A price list.
    ///
    /// # Errors
    /// When there are more than 16 rows, values do not rise, or a fee falls.
    pub fn new(rows: &[Tier], above: Money) -> Result<Self, CommissionError> {
        if rows.len() > COMMISSION_TIERS_MAX {
            return Err(CommissionError::Tiers(rows.len()));
        }
        let mut table =
            Self { rows: [Tier::default(); COMMISSION_TIERS_MAX], used: rows.len(), above };
        table.rows[..rows.len()].copy_from_slice(rows);
        let last = Tier { up_to: Money::from_units(i64::MAX), fee: above };
        let mut before = Tier::default();
        for row in rows.iter().chain([&last]) {
            if row.up_to <= before.up_to || row.fee < before.fee {
                return Err(CommissionError::Order(Commission::Tiers(table).to_string()));
            }
            before = *row;
        }
        Ok(table)
    }

    /// The rows, from the lowest value.
    #[must_use]
    pub fn rows(&self) -> &[Tier] {
        &self.rows[..self.used]
    }

    /// The fee above the last row.
    #[must_use]
    pub const fn above(&self) -> Money {
        self.above
    }

    fn fee(&self, value: Money) -> Money {
        self.rows().iter().find(|row| value <= row.up_to).map_or(self.above, |row| row.fee)
    }
}

impl Commission {
    /// The price list of a Tokyo online broker for single orders, tax included, in yen. It is the
    /// plan that the large ones had before some of them dropped fees in 2023.
    #[must_use]
    pub fn online_broker() -> Self {
        const ROWS: [(i64, i64); 7] = [
            (50_000, 55),
            (100_000, 99),
            (200_000, 115),
            (500_000, 275),
            (1_000_000, 535),
            (1_500_000, 640),
            (30_000_000, 1_013),
        ];
        let mut rows = [Tier::default(); COMMISSION_TIERS_MAX];
        for (row, (up_to, fee)) in rows.iter_mut().zip(ROWS) {
            *row = Tier { up_to: Money::from_yen(up_to), fee: Money::from_yen(fee) };
        }
        Self::Tiers(TierTable { rows, used: ROWS.len(), above: Money::from_yen(1_070) })
    }

    /// The fee of an order whose fills are worth `value` together. A rate is cut off at whole yen,
    /// before its minimum and maximum. Never falls when the value rises.
    #[must_use]
    pub fn fee(&self, value: Money) -> Money {
        if value <= Money::ZERO {
            return Money::ZERO;
        }
        match self {
            Self::None => Money::ZERO,
            Self::Rate { per_million, minimum, maximum } => {
                let yen = i128::from(value.units()) * i128::from(*per_million)
                    / 1_000_000
                    / i128::from(UNITS_PER_YEN);
                // At most the value itself, so it fits.
                let fee = Money::from_yen(yen as i64).max(*minimum);
                maximum.map_or(fee, |most| fee.min(most))
            }
            Self::PerOrder(fee) => *fee,
            Self::Tiers(table) => table.fee(value),
        }
    }

    /// How much more than they bring the next fills of a sale may cost at worst. `done` is the
    /// value of its fills so far and `paid` their fee, `next` the least value that the next fill can
    /// have, `most` the highest value that the order can reach.
    pub(crate) fn sale_shortfall(
        &self,
        done: Money,
        paid: Money,
        next: Money,
        most: Money,
    ) -> Money {
        let least = done + next;
        let short_at = |value: Money, fee: Money| fee - paid - (value - done);
        let short = match self {
            Self::None => return Money::ZERO,
            Self::PerOrder(fee) => short_at(least, *fee),
            // The cut at whole yen makes the fee rise by steps of one yen.
            Self::Rate { .. } => short_at(least, self.fee(least)) + Money::from_yen(1),
            Self::Tiers(table) => {
                let steps = table.rows().iter().map(|row| row.up_to);
                let reached = steps.filter(|step| (least..most).contains(step));
                let above = |step: Money| table.fee(step + Money::from_units(1));
                reached
                    .map(|step| short_at(step, above(step)))
                    .fold(short_at(least, table.fee(least)), Money::max)
            }
        };
        short.max(Money::ZERO)
    }

    /// Checks the numbers.
    ///
    /// # Errors
    /// The first one that makes no sense.
    pub fn check(&self) -> Result<(), CommissionError> {
        let fee_is_wrong = match self {
            Self::None => false,
            Self::Rate { per_million: 1_000_001.., .. } => {
                let Self::Rate { per_million, .. } = self else { return Ok(()) };
                return Err(CommissionError::Rate(*per_million));
            }
            Self::Rate { minimum, maximum, .. } => {
                *minimum < Money::ZERO || maximum.is_some_and(|most| most < *minimum)
            }
            Self::PerOrder(fee) => *fee < Money::ZERO,
            // Checked when it was made.
            Self::Tiers(_) => false,
        };
        if fee_is_wrong { Err(CommissionError::Fee(self.to_string())) } else { Ok(()) }
    }
}

impl fmt::Display for Commission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Rate { per_million, minimum, maximum } => {
                write!(f, "{per_million}ppm")?;
                if *minimum != Money::ZERO {
                    write!(f, ",min={minimum}")?;
                }
                maximum.map_or(Ok(()), |most| write!(f, ",max={most}"))
            }
            Self::PerOrder(fee) => write!(f, "order:{fee}"),
            Self::Tiers(table) => {
                f.write_str("tiers:")?;
                for row in table.rows() {
                    write!(f, "{}={},", row.up_to, row.fee)?;
                }
                write!(f, "{}", table.above())
            }
        }
    }
}

impl FromStr for Commission {
    type Err = CommissionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || CommissionError::Form(text.to_owned());
        let money = |part: &str| part.parse::<Money>().map_err(|_| wrong());
        let commission = if text == "none" {
            Self::None
        } else if let Some(fee) = text.strip_prefix("order:") {
            Self::PerOrder(money(fee)?)
        } else if let Some(list) = text.strip_prefix("tiers:") {
            let (rows, above) = list.rsplit_once(',').unwrap_or(("", list));
            let tier = |row: &str| {
                let (up_to, fee) = row.split_once('=').ok_or_else(wrong)?;
                Ok(Tier { up_to: money(up_to)?, fee: money(fee)? })
            };
            let rows = rows.split(',').filter(|row| !row.is_empty()).map(tier);
            Self::Tiers(TierTable::new(&rows.collect::<Result<Vec<_>, _>>()?, money(above)?)?)
        } else {
            parse_rate(text).ok_or_else(wrong)?
        };
        commission.check().map(|()| commission)
    }
}

fn parse_rate(text: &str) -> Option<Commission> {
    let mut parts = text.split(',');
    let per_million = parts.next()?.strip_suffix("ppm")?.parse().ok()?;
    let (mut minimum, mut maximum) = (Money::ZERO, None);
    for part in parts {
        match part.split_once('=')? {
            ("min", yen) => minimum = yen.parse().ok()?,
            ("max", yen) => maximum = Some(yen.parse().ok()?),
            _ => return None,
        }
    }
    Some(Commission::Rate { per_million, minimum, maximum })
}

impl Serialize for Commission {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Commission {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Commission {
        let commission: Commission = text.parse().unwrap();
        assert_eq!(commission.to_string(), text, "the text survives");
        commission
    }

    fn fee(text: &str, value: &str) -> String {
        parsed(text).fee(value.parse().unwrap()).to_string()
    }

    #[test]
    fn fees_by_hand() {
        assert_eq!(fee("none", "1000000"), "0");
        // 0.045 % of 333,333 yen is 149.99985.
        assert_eq!(fee("450ppm", "333333"), "149");
        assert_eq!(fee("450ppm,min=200", "333333"), "200");
        assert_eq!(fee("450ppm,min=50,max=100", "333333"), "100");
        assert_eq!(fee("order:99.5", "1"), "99.5");
        let list = "tiers:50000=55,100000=99,1070";
        assert_eq!(fee(list, "50000"), "55");
        assert_eq!(fee(list, "50000.0001"), "99");
        assert_eq!(fee(list, "100000.0001"), "1070");
        assert_eq!(fee(list, "0"), "0", "an order without a fill costs nothing");
        let broker = Commission::online_broker();
        assert_eq!(broker.fee(Money::from_yen(170_000)).to_string(), "115");
        assert_eq!(broker.to_string().parse(), Ok(broker));
    }

    #[test]
    fn nonsense_is_refused_with_the_forms() {
        let error = |text: &str| text.parse::<Commission>().unwrap_err().to_string();
        assert!(error("0.1%").starts_with("`0.1%` is not a commission; write `none`, `450ppm`"));
        assert!(error("tiers:50000,55").contains("is not a commission"));
        assert_eq!(
            error("1000001ppm"),
            "a commission of 1000001 ppm is more than the value itself; give at most 1,000,000"
        );
        assert!(error("10ppm,min=5,max=4").contains("a minimum above its maximum"));
        assert!(error("order:-1").contains("a negative fee"));
        assert!(error("tiers:100=5,50=6,7").contains("rising values"));
        assert!(error("tiers:50=6,100=5,7").contains("fees that do not fall"));
        assert!(error("tiers:50=6,5").contains("fees that do not fall"));
        let rows: Vec<String> = (1..=17).map(|row| format!("{row}={row}")).collect();
        assert_eq!(
            error(&format!("tiers:{},20", rows.join(","))),
            "the commission has 17 tiers; give at most 16"
        );
    }

    proptest::proptest! {
        #[test]
        fn fees_never_fall_and_a_sale_never_costs_more_than_was_said(
            kind in 0..4_usize, done in 0..2_000_000_i64, next in 1..200_000_i64, more in 0..2_000_000_i64,
        ) {
            let commission = parsed(
                ["450ppm,min=50,max=900", "order:300", "tiers:500=100,1000=800,4000", "none"][kind],
            );
            let (done, next) = (Money::from_units(done * 7), Money::from_units(next * 13));
            let most = done + next + Money::from_units(more * 11);
            let paid = commission.fee(done);
            let short = commission.sale_shortfall(done, paid, next, most);
            for step in 0..20 {
                let value = done + next + Money::from_units((most - done - next).units() / 19 * step);
                proptest::prop_assert!(commission.fee(value) >= paid);
                let cost = commission.fee(value) - paid - (value - done);
                proptest::prop_assert!(cost <= short, "{cost} > {short}");
            }
        }
    }
}
