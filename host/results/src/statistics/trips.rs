//! Round trips in a few numbers.

use domain::Money;

/// Round trips, counted and summed up. A trip wins when its profit, fees taken off, is above zero,
/// and loses when it is below.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TripTotals {
    /// Round trips of the run that ended, those without profit or loss too.
    pub count: u64,
    /// Those that won.
    pub wins: u64,
    /// Those that lost.
    pub losses: u64,
    /// Profits of those that won.
    pub gross_profit: Money,
    /// Losses of those that lost, as a positive amount.
    pub gross_loss: Money,
}

impl TripTotals {
    /// Takes in the profit or loss of a trip.
    pub fn take(&mut self, pnl: Money) {
        self.count += 1;
        if pnl > Money::ZERO {
            self.wins += 1;
            self.gross_profit += pnl;
        } else if pnl < Money::ZERO {
            self.losses += 1;
            self.gross_loss -= pnl;
        }
    }

    /// Trips that won, per trip; none without a trip.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub fn win_rate(&self) -> Option<f64> {
        (self.count > 0).then(|| self.wins as f64 / self.count as f64)
    }

    /// Profits per losses; none without a loss.
    #[must_use]
    pub fn profit_factor(&self) -> Option<f64> {
        (self.gross_loss > Money::ZERO)
            .then(|| self.gross_profit.approximate_yen() / self.gross_loss.approximate_yen())
    }

    /// Profit or loss of a trip on average, cut off at 1/10,000 yen.
    #[must_use]
    pub fn expectancy(&self) -> Option<Money> {
        average(self.gross_profit - self.gross_loss, self.count)
    }

    /// Profit of a trip that won on average, cut off at 1/10,000 yen.
    #[must_use]
    pub fn average_win(&self) -> Option<Money> {
        average(self.gross_profit, self.wins)
    }

    /// Loss of a trip that lost on average, below zero, cut off at 1/10,000 yen.
    #[must_use]
    pub fn average_loss(&self) -> Option<Money> {
        average(-self.gross_loss, self.losses)
    }
}

fn average(sum: Money, count: u64) -> Option<Money> {
    let count = i64::try_from(count).ok().filter(|count| *count > 0)?;
    Some(Money::from_units(sum.units() / count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(yen: &[i64]) -> TripTotals {
        let mut totals = TripTotals::default();
        yen.iter().for_each(|pnl| totals.take(Money::from_yen(*pnl)));
        totals
    }

    #[test]
    fn five_trips_by_hand() {
        let trips = totals(&[300, -100, 0, 100, -50]);
        assert_eq!((trips.count, trips.wins, trips.losses), (5, 2, 2));
        assert_eq!(trips.win_rate(), Some(0.4));
        // 400 per 150.
        assert!((trips.profit_factor().unwrap() - 8.0 / 3.0).abs() < 1e-12);
        assert_eq!(trips.expectancy(), Some(Money::from_yen(50)));
        assert_eq!(trips.average_win(), Some(Money::from_yen(200)));
        assert_eq!(trips.average_loss(), Some(Money::from_yen(-75)));
    }

    #[test]
    fn what_cannot_be_divided_is_missing() {
        let none = totals(&[]);
        assert_eq!((none.win_rate(), none.profit_factor(), none.expectancy()), (None, None, None));
        let won = totals(&[5]);
        assert_eq!((won.profit_factor(), won.average_loss()), (None, None));
    }
}
