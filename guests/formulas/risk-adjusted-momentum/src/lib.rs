//! Return over a look-back divided by the standard deviation of the daily returns in it: of two
//! issues that rose as much, the one that rose more evenly is ahead.

use kumiki_formula_sdk::prelude::*;

/// The formula. Parameter: `lookback` (business days).
#[derive(Debug)]
pub struct RiskAdjustedMomentum {
    lookback: u32,
}

impl Formula for RiskAdjustedMomentum {
    const DESCRIPTION: Description = Description {
        name: "risk-adjusted-momentum",
        version: env!("CARGO_PKG_VERSION"),
        summary: "Return of the close over `lookback` business days divided by the standard \
                  deviation of the daily returns in between; null when a close is missing or all \
                  returns are equal",
        parameters: &[Parameter {
            name: "lookback",
            description: "business days that are looked back",
            default: 60.0,
            minimum: 2.0,
            maximum: 250.0,
        }],
    };

    fn new(values: &Values) -> Result<Self, String> {
        Ok(Self { lookback: values.whole("lookback")? })
    }

    fn inputs(&self) -> Vec<Input> {
        vec![Input::window(Column::Close, 0, self.lookback)]
    }

    /// Sums grow column by column, so that each column is read once, in the order in which it lies in
    /// memory. A missing close makes them "not a number".
    #[inline(always)]
    fn evaluate(&self, day: &Day) -> Vec<f64> {
        let close = |lag| day.column(Column::Close, lag);
        let mut sums = vec![0.0; day.rows()];
        let mut squares = vec![0.0; day.rows()];
        for lag in (0..self.lookback).rev() {
            let pairs = close(lag).iter().zip(close(lag + 1));
            for ((sum, square), (now, before)) in sums.iter_mut().zip(&mut squares).zip(pairs) {
                let change = now / before - 1.0;
                *sum += change;
                *square += change * change;
            }
        }
        let count = f64::from(self.lookback);
        let ends = close(0).iter().zip(close(self.lookback));
        let value = |((now, start), (sum, square)): ((&f64, &f64), (&f64, &f64))| {
            let variance = (square - sum * sum / count) / (count - 1.0);
            // Of equal returns rounding leaves a little; nothing real is so even.
            let is_even = variance <= square * 1e-12;
            let ratio = (now / start - 1.0) / variance.sqrt();
            if is_even { f64::NAN } else { ratio }
        };
        ends.zip(sums.iter().zip(&squares)).map(value).collect()
    }
}

kumiki_formula_sdk::register_formula!(RiskAdjustedMomentum);

#[cfg(test)]
mod tests {
    use super::*;
    use kumiki_formula_sdk::testing::TestDay;

    fn day(closes: &[[f64; 3]]) -> TestDay {
        let lags = (0_u32..).zip(closes);
        lags.fold(TestDay::new(3), |day, (lag, closes)| day.with(Column::Close, lag, closes))
    }

    #[test]
    fn the_even_rise_is_ahead() {
        // From the latest: both rise from 100 to 121, the first in equal parts almost.
        let day = day(&[[121.0, 121.0, 121.0], [110.5, 120.0, f64::NAN], [100.0, 100.0, 100.0]]);
        let found = day.evaluate::<RiskAdjustedMomentum>(&[("lookback", 2.0)]).unwrap();
        let by_hand = |middle: f64| {
            let (first, second) = (middle / 100.0 - 1.0, 121.0 / middle - 1.0);
            let mean = (first + second) / 2.0;
            let variance = (first - mean).powi(2) + (second - mean).powi(2);
            0.21 / variance.sqrt()
        };
        assert!((found[0] / by_hand(110.5) - 1.0).abs() < 1e-9, "{found:?}");
        assert!((found[1] / by_hand(120.0) - 1.0).abs() < 1e-9, "{found:?}");
        assert!(found[0] > found[1] && found[2].is_nan());
    }

    #[test]
    fn equal_returns_and_missing_closes_are_null() {
        let day = day(&[[400.0, 1.0, 1.0], [200.0, 1.0, 1.0], [100.0, 1.0, f64::NAN]]);
        let found = day.evaluate::<RiskAdjustedMomentum>(&[("lookback", 2.0)]).unwrap();
        assert!(found.iter().all(|value| value.is_nan()), "{found:?}");
        let found = day.evaluate::<RiskAdjustedMomentum>(&[]).unwrap();
        assert!(found.iter().all(|value| value.is_nan()), "60 days are not known");
    }

    #[test]
    fn a_look_back_is_a_whole_number() {
        let refused =
            |days| TestDay::new(0).evaluate::<RiskAdjustedMomentum>(&[("lookback", days)]);
        assert!(refused(2.5).unwrap_err().contains("whole number"));
        assert!(refused(251.0).unwrap_err().contains("it may be 2 to 250"));
    }
}
