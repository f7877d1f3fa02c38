//! The few numbers that a sweep keeps of each run, and by which of them runs are ranked.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use domain::Money;
use domain::limits::SWEEP_ERROR_TEXT_MAX;
use exchange::round_trips_words;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::luck::{ReturnBlocks, shape};
use results::summary::Summary;
use results::totals::RunTotals;

/// A run in the numbers that a sweep keeps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Score {
    /// Trades that the strategy has seen.
    pub trades_seen: u64,
    /// Orders sent.
    pub orders: u64,
    /// Orders that were rejected, by the checks or by the exchange.
    pub orders_rejected: u64,
    /// Fills of all orders.
    pub fills: u64,
    /// Times the position went from held to flat.
    pub round_trips: u64,
    /// Round trips with a profit, per round trip; none without a round trip.
    #[serde(with = "exact")]
    #[schemars(with = "Option<String>")]
    pub win_rate: Option<f64>,
    /// Money and value of shares at the end, in 1/10,000 yen; so are all amounts here.
    #[schemars(with = "i64")]
    pub equity_end: Money,
    /// Profit per cash at the start; none without cash.
    #[serde(with = "exact")]
    #[schemars(with = "Option<String>")]
    pub return_ratio: Option<f64>,
    /// Largest drop of the equity from its highest point so far, at the end of minutes.
    #[schemars(with = "i64")]
    pub max_drawdown: Money,
    /// The same, per highest point.
    #[serde(with = "exact")]
    #[schemars(with = "Option<String>")]
    pub max_drawdown_ratio: Option<f64>,
    /// Mean of the daily returns per their standard deviation, times the root of 252; none with
    /// fewer than two days or without any change.
    #[serde(with = "exact")]
    #[schemars(with = "Option<String>")]
    pub sharpe: Option<f64>,
    /// Days of the run.
    pub days: u64,
    /// Skewness of the daily returns; none without any change.
    #[serde(with = "exact")]
    #[schemars(with = "Option<String>")]
    pub skewness: Option<f64>,
    /// Kurtosis of the daily returns, 3 for a normal distribution; none without any change.
    #[serde(with = "exact")]
    #[schemars(with = "Option<String>")]
    pub kurtosis: Option<f64>,
    /// The daily returns in blocks; none for few days, and for runs outside the sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_blocks: Option<Box<ReturnBlocks>>,
    /// Value of everything bought and sold.
    #[schemars(with = "i64")]
    pub turnover: Money,
    /// Fees of all fills, in 1/10,000 yen.
    #[schemars(with = "i64")]
    pub commission: Money,
    /// xxh3-128 of the event log.
    pub digest: String,
    /// Sentences that a reader of the run must know: its warnings, and then its notes.
    pub warnings: u64,
    /// The first of them, at most [`SWEEP_ERROR_TEXT_MAX`] characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// The numbers of a run, from its statistics.
#[must_use]
pub fn score(totals: &RunTotals) -> Score {
    let summary = Summary::new(totals);
    let drawdown = totals.performance.drawdown.deepest();
    let returns = totals.performance.returns();
    let shape = shape(returns.daily());
    // A run also notes that a rule has rejected nothing; that it has comes last there, and is of the run
    // itself, not of its data.
    let nothing = round_trips_words(0);
    let told =
        totals.warnings.iter().chain(totals.notes.iter().rev()).filter(|text| **text != nothing);
    let told: Vec<&String> = told.collect();
    Score {
        trades_seen: totals.trades_seen,
        orders: totals.order_counts.all,
        orders_rejected: totals.order_counts.rejected,
        fills: totals.fill_count,
        round_trips: summary.round_trips,
        win_rate: summary.win_rate,
        equity_end: totals.equity_end,
        return_ratio: summary.return_ratio,
        max_drawdown: drawdown.map_or(Money::ZERO, |one| one.depth()),
        max_drawdown_ratio: Some(summary.max_drawdown_ratio),
        sharpe: summary.sharpe,
        days: summary.days,
        skewness: shape.map(|shape| shape.0),
        kurtosis: shape.map(|shape| shape.1),
        return_blocks: ReturnBlocks::of(returns.daily()).map(Box::new),
        turnover: totals.performance.turnover,
        commission: totals.commission,
        digest: summary.event_log_digest,
        warnings: told.len() as u64,
        warning: told.first().map(|text| cut((*text).clone())),
    }
}

/// At most [`SWEEP_ERROR_TEXT_MAX`] characters.
pub(crate) fn cut(text: String) -> String {
    match text.char_indices().nth(SWEEP_ERROR_TEXT_MAX) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text,
    }
}

/// Floating point as the shortest text that gives the same bits again. Numbers in JSON are read
/// faster than exactly, and a resumed sweep has to give the same bytes.
mod exact {
    use super::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        ratio: &Option<f64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        ratio.map(|ratio| ratio.to_string()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<f64>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(serde::de::Error::custom)).transpose()
    }
}

/// A number of a run by which runs can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// The Sharpe ratio.
    Sharpe,
    /// Profit per cash at the start.
    Return,
    /// Money and value of shares at the end.
    EquityEnd,
    /// The largest drop per highest point; lower is better.
    MaxDrawdown,
    /// Round trips with a profit, per round trip.
    WinRate,
    /// Round trips.
    RoundTrips,
    /// Fills of all orders; more is better.
    Fills,
    /// Value of everything bought and sold.
    Turnover,
    /// Fees; lower is better.
    Commission,
}

impl Statistic {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Sharpe,
        Self::Return,
        Self::EquityEnd,
        Self::MaxDrawdown,
        Self::WinRate,
        Self::RoundTrips,
        Self::Fills,
        Self::Turnover,
        Self::Commission,
    ];

    /// The column's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sharpe => "sharpe",
            Self::Return => "return",
            Self::EquityEnd => "equity_end",
            Self::MaxDrawdown => "max_drawdown",
            Self::WinRate => "win_rate",
            Self::RoundTrips => "round_trips",
            Self::Fills => "fills",
            Self::Turnover => "turnover",
            Self::Commission => "commission",
        }
    }

    /// Whether a higher number is better.
    #[must_use]
    pub const fn higher_is_better(self) -> bool {
        !matches!(self, Self::MaxDrawdown | Self::Commission)
    }

    /// The number of a run; none where the run has none.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts of one run are far below 2^53")]
    pub fn of(self, score: &Score) -> Option<f64> {
        match self {
            Self::Sharpe => score.sharpe,
            Self::Return => score.return_ratio,
            Self::EquityEnd => Some(score.equity_end.approximate_yen()),
            Self::MaxDrawdown => score.max_drawdown_ratio,
            Self::WinRate => score.win_rate,
            Self::RoundTrips => Some(score.round_trips as f64),
            Self::Fills => Some(score.fills as f64),
            Self::Turnover => Some(score.turnover.approximate_yen()),
            Self::Commission => Some(score.commission.approximate_yen()),
        }
    }

    /// Compares two runs, the better first; a run without the number comes last.
    #[must_use]
    pub fn compare(self, left: Option<&Score>, right: Option<&Score>) -> Ordering {
        let number = |score: Option<&Score>| score.and_then(|score| self.of(score));
        match (number(left), number(right)) {
            (Some(left), Some(right)) if self.higher_is_better() => right.total_cmp(&left),
            (Some(left), Some(right)) => left.total_cmp(&right),
            (left, right) => right.is_some().cmp(&left.is_some()),
        }
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Statistic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|one| one.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("`{text}` is not a number of a run; there are: {names}")
        })
    }
}

#[cfg(test)]
pub(super) fn scored(sharpe: Option<f64>, max_drawdown_ratio: f64) -> Score {
    Score {
        trades_seen: 10,
        orders: 4,
        orders_rejected: 1,
        fills: 3,
        round_trips: 1,
        win_rate: Some(1.0),
        equity_end: Money::from_yen(10_100_000),
        return_ratio: Some(0.01),
        max_drawdown: Money::from_units(12_345),
        max_drawdown_ratio: Some(max_drawdown_ratio),
        sharpe,
        days: 3,
        skewness: Some(0.5),
        kurtosis: Some(3.0),
        return_blocks: None,
        turnover: Money::from_yen(1_000_000),
        commission: Money::ZERO,
        digest: "0123".to_owned(),
        warnings: 0,
        warning: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_runs_come_first_and_runs_without_the_number_last() {
        let (good, bad) = (scored(Some(2.0), 0.3), scored(Some(-1.0), 0.1));
        let none = scored(None, 0.0);
        let compare =
            |by: Statistic, left: &Score, right: &Score| by.compare(Some(left), Some(right));
        assert_eq!(compare(Statistic::Sharpe, &good, &bad), Ordering::Less);
        assert_eq!(compare(Statistic::MaxDrawdown, &good, &bad), Ordering::Greater);
        assert_eq!(compare(Statistic::Sharpe, &none, &bad), Ordering::Greater);
        assert_eq!(Statistic::Sharpe.compare(None, Some(&bad)), Ordering::Greater);
        assert_eq!(Statistic::Sharpe.compare(None, None), Ordering::Equal);
    }

    #[test]
    fn names_are_read_back() {
        for one in Statistic::ALL {
            assert_eq!(one.to_string().parse(), Ok(one));
        }
        let error = "sharp".parse::<Statistic>().unwrap_err();
        assert!(error.contains("there are: sharpe, return, equity_end"), "{error}");
    }

    proptest::proptest! {
        #[test]
        fn scores_survive_their_json_to_the_last_bit(bits: u64) {
            let sharpe = Some(f64::from_bits(bits)).filter(|ratio| ratio.is_finite());
            let score = scored(sharpe, 0.1 + 0.2);
            let json = serde_json::to_string(&score).unwrap();
            proptest::prop_assert_eq!(serde_json::from_str::<Score>(&json).unwrap(), score);
        }
    }
}
