//! Daily returns and what is made of them.

use domain::Money;

/// Trading days that make a year.
pub const DAYS_PER_YEAR: f64 = 252.0;

/// Digits after the point that are kept of a power, because the last digits of `powf` differ between
/// systems and results must not.
const POWER_SCALE: f64 = 1e12;

/// Daily returns: the change of the equity per equity of the day before.
#[derive(Debug, Clone, PartialEq)]
pub struct Returns {
    daily: Vec<f64>,
    /// Equity at the end per equity at the start.
    growth: Option<f64>,
}

impl Returns {
    /// The returns of a start and of the values at the ends of the days. A day that begins without
    /// money has a return of 0.
    #[must_use]
    pub fn new(start: Money, days: impl IntoIterator<Item = Money>) -> Self {
        let mut before = start;
        let daily = |value: Money| {
            let base = std::mem::replace(&mut before, value);
            if base > Money::ZERO {
                (value - base).approximate_yen() / base.approximate_yen()
            } else {
                0.0
            }
        };
        let daily: Vec<f64> = days.into_iter().map(daily).collect();
        let growth = (start > Money::ZERO && !daily.is_empty())
            .then(|| before.approximate_yen() / start.approximate_yen());
        Self { daily, growth }
    }

    /// The returns, day by day.
    #[must_use]
    pub fn daily(&self) -> &[f64] {
        &self.daily
    }

    /// Growth per year, compounded: `(end / start)^(252 / days) - 1`. None without days, or when
    /// nothing is left.
    #[must_use]
    pub fn cagr(&self) -> Option<f64> {
        let growth = self.growth.filter(|growth| *growth > 0.0)?;
        let yearly = growth.powf(DAYS_PER_YEAR / as_number(self.daily.len())) - 1.0;
        // Few days with a large change give numbers beyond all meaning.
        yearly.is_finite().then(|| (yearly * POWER_SCALE).round() / POWER_SCALE)
    }

    /// Standard deviation of the returns (of a sample: n - 1), per year: `s * sqrt(252)`. None with
    /// fewer than two days.
    #[must_use]
    pub fn volatility(&self) -> Option<f64> {
        Some(deviation(&self.daily)? * DAYS_PER_YEAR.sqrt())
    }

    /// Mean return per standard deviation, per year: `mean / s * sqrt(252)`. None where the returns
    /// do not differ.
    #[must_use]
    pub fn sharpe(&self) -> Option<f64> {
        sharpe_of(&self.daily)
    }

    /// Mean return per downside deviation, per year: `mean / d * sqrt(252)`, with `d` the root of the
    /// mean of the squares of the negative returns over all days. None without a negative return.
    #[must_use]
    pub fn sortino(&self) -> Option<f64> {
        let squares: f64 = self.daily.iter().map(|day| day.min(0.0).powi(2)).sum();
        let downside = (squares / as_number(self.daily.len().max(1))).sqrt();
        (downside > 0.0).then(|| mean(&self.daily) / downside * DAYS_PER_YEAR.sqrt())
    }

    /// The largest and the smallest return.
    #[must_use]
    pub fn best_and_worst(&self) -> Option<(f64, f64)> {
        let best = self.daily.iter().copied().reduce(f64::max)?;
        let worst = self.daily.iter().copied().reduce(f64::min)?;
        Some((best, worst))
    }
}

/// Mean per standard deviation, per year, of any daily returns. None where they do not differ.
#[must_use]
pub fn sharpe_of(daily: &[f64]) -> Option<f64> {
    let deviation = deviation(daily).filter(|deviation| *deviation > 0.0)?;
    Some(mean(daily) / deviation * DAYS_PER_YEAR.sqrt())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / as_number(values.len().max(1))
}

/// Standard deviation of a sample. Returns that are all the same deviate by nothing, whatever
/// rounding says.
fn deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    if values.windows(2).all(|pair| pair[0] == pair[1]) {
        return Some(0.0);
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / as_number(values.len() - 1)).sqrt())
}

/// A count as a number to divide by.
#[expect(clippy::cast_precision_loss, reason = "counts of days stay far below 2^53")]
pub(crate) fn as_number(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn returns(start: i64, days: &[i64]) -> Returns {
        Returns::new(Money::from_yen(start), days.iter().map(|yen| Money::from_yen(*yen)))
    }

    fn close(found: Option<f64>, wanted: f64) {
        let found = found.unwrap();
        assert!((found - wanted).abs() < 1e-9 * wanted.abs().max(1.0), "{found}, not {wanted}");
    }

    #[test]
    fn four_days_by_hand() {
        // Returns 10 %, -10 %, 0 %, 20 %: mean 5 %, squares of differences 25 + 225 + 25 + 225
        // (in 1/10,000), sample variance 500 / 3, downside variance 100 / 4.
        let four = returns(1_000, &[1_100, 990, 990, 1_188]);
        let wanted = [0.1, -0.1, 0.0, 0.2];
        assert!(four.daily().iter().zip(wanted).all(|(found, day)| (found - day).abs() < 1e-12));
        let year = 252.0_f64.sqrt();
        let deviation = (500.0_f64 / 3.0).sqrt() / 100.0;
        close(four.volatility(), deviation * year);
        close(four.sharpe(), 0.05 / deviation * year);
        close(four.sortino(), 0.05 / 0.05 * year);
        close(four.cagr(), 1.188_f64.powf(63.0) - 1.0);
        let (best, worst) = four.best_and_worst().unwrap();
        assert!((best - 0.2).abs() < 1e-12 && (worst + 0.1).abs() < 1e-12);
    }

    #[test]
    fn a_year_of_days_grows_by_what_it_grew() {
        let year: Vec<i64> = (1..=252).map(|day| 1_000_000 + 400 * day).collect();
        close(returns(1_000_000, &year).cagr(), 0.1008);
    }

    #[test]
    fn what_cannot_be_told_is_missing() {
        let none = returns(1_000, &[]);
        assert_eq!((none.cagr(), none.volatility(), none.sharpe()), (None, None, None));
        assert_eq!((none.sortino(), none.best_and_worst()), (None, None));
        let one = returns(1_000, &[1_010]);
        assert_eq!((one.volatility(), one.sharpe(), one.sortino()), (None, None, None));
        assert!(one.cagr().is_some());
        let flat = returns(1_000, &[1_000, 1_000, 1_000]);
        assert_eq!((flat.volatility(), flat.sharpe()), (Some(0.0), None));
        close(flat.cagr(), 0.0);
        let broke = returns(1_000, &[0, 0]);
        assert_eq!((broke.cagr(), broke.daily()), (None, &[-1.0, 0.0][..]));
        assert_eq!(returns(0, &[5]).cagr(), None);
        assert_eq!(returns(1, &[1_000_000_000]).cagr(), None);
    }
}
