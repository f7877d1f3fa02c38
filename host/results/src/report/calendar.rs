//! Returns by month and year, their histogram, and the Sharpe ratio over a moving span of days.

use std::path::Path;

use domain::{JstDate, Money};
use serde::Serialize;

use crate::output::ReadError;
use crate::output::read::TableReader;
use crate::output::tables::Days;
use crate::statistics::{Returns, sharpe_of};

/// Bars that a histogram has at most.
const BARS_MAX: usize = 25;
/// Spans of the moving Sharpe ratio in days, each with the days that a run must have for it.
const SPANS: [(usize, usize); 3] = [(63, 126), (20, 30), (5, 8)];

/// Returns by the calendar.
#[derive(Debug, Serialize)]
pub(super) struct Calendar {
    /// `YYYY-MM` and the return of the month.
    months: Vec<(String, f64)>,
    /// `YYYY` and the return of the year.
    years: Vec<(String, f64)>,
    histogram: Option<Histogram>,
    rolling: Option<Rolling>,
}

/// How many days had a return in each of some spans of equal width.
#[derive(Debug, PartialEq, Serialize)]
struct Histogram {
    /// Lower end of the first bar.
    from: f64,
    /// Width of a bar.
    width: f64,
    days: Vec<u32>,
}

/// The Sharpe ratio of the days up to each day.
#[derive(Debug, Serialize)]
struct Rolling {
    /// Days in each ratio.
    span: usize,
    /// Last days of the spans.
    dates: Vec<String>,
    sharpe: Vec<Option<f64>>,
}

impl Calendar {
    /// Reads the days of a run's folder.
    pub(super) fn read(folder: &Path, cash_start: Money) -> Result<Self, ReadError> {
        let (mut dates, mut equity) = (Vec::new(), Vec::new());
        let mut rows = TableReader::open(folder, &Days::TABLE)?;
        while let Some(row) = rows.next_row()? {
            dates.push(row.date("date")?);
            equity.push(Money::from_units(row.units("equity")?));
        }
        Ok(Self::new(cash_start, &dates, &equity))
    }

    fn new(cash_start: Money, dates: &[JstDate], equity: &[Money]) -> Self {
        let returns = Returns::new(cash_start, equity.iter().copied());
        Self {
            months: by_period(cash_start, dates, equity, "%Y-%m"),
            years: by_period(cash_start, dates, equity, "%Y"),
            histogram: histogram(returns.daily()),
            rolling: rolling(returns.daily(), dates),
        }
    }
}

/// The return of each period, from the last day before it to its own last day.
fn by_period(
    cash_start: Money,
    dates: &[JstDate],
    equity: &[Money],
    form: &str,
) -> Vec<(String, f64)> {
    let mut ends: Vec<(String, Money)> = Vec::new();
    for (date, value) in dates.iter().zip(equity) {
        let name = date.format(form).to_string();
        match ends.last_mut() {
            Some((last, end)) if *last == name => *end = *value,
            _ => ends.push((name, *value)),
        }
    }
    let returns = Returns::new(cash_start, ends.iter().map(|(_, end)| *end));
    ends.into_iter().map(|(name, _)| name).zip(returns.daily().iter().copied()).collect()
}

fn histogram(daily: &[f64]) -> Option<Histogram> {
    let low = daily.iter().copied().reduce(f64::min)?;
    let high = daily.iter().copied().reduce(f64::max)?;
    let width = bar_width(high - low);
    let bar = |value: f64| (value / width).floor();
    let first = bar(low);
    // Both are whole numbers and few apart.
    let mut days = vec![0; (bar(high) - first) as usize + 1];
    for value in daily {
        days[(bar(*value) - first) as usize] += 1;
    }
    Some(Histogram { from: first * width, width, days })
}

/// The smallest of 1, 2 and 5 times a power of ten that gives few enough bars.
fn bar_width(range: f64) -> f64 {
    // Two bars may be cut at the ends.
    let least = (range / (BARS_MAX - 2) as f64).max(1e-5);
    let mut power = 1e-5;
    loop {
        for digit in [1.0, 2.0, 5.0] {
            if digit * power >= least {
                return digit * power;
            }
        }
        power *= 10.0;
    }
}

fn rolling(daily: &[f64], dates: &[JstDate]) -> Option<Rolling> {
    let (span, _) = *SPANS.iter().find(|(_, needed)| daily.len() >= *needed)?;
    Some(Rolling {
        span,
        dates: dates[span - 1..].iter().map(ToString::to_string).collect(),
        sharpe: daily.windows(span).map(sharpe_of).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yen(amounts: &[i64]) -> Vec<Money> {
        amounts.iter().map(|amount| Money::from_yen(*amount)).collect()
    }

    fn date(text: &str) -> JstDate {
        text.parse().unwrap()
    }

    #[test]
    fn months_and_years_by_hand() {
        let dates = ["2024-12-27", "2024-12-30", "2025-01-06", "2025-03-03"].map(date);
        let equity = yen(&[1_050, 1_100, 990, 1_188]);
        let calendar = Calendar::new(Money::from_yen(1_000), &dates, &equity);
        let close = |found: &[(String, f64)], wanted: &[(&str, f64)]| {
            assert_eq!(found.len(), wanted.len());
            for ((name, ratio), (wanted_name, wanted)) in found.iter().zip(wanted) {
                assert_eq!(name, wanted_name);
                assert!((ratio - wanted).abs() < 1e-12, "{name}: {ratio}");
            }
        };
        close(&calendar.months, &[("2024-12", 0.1), ("2025-01", -0.1), ("2025-03", 0.2)]);
        close(&calendar.years, &[("2024", 0.1), ("2025", 0.08)]);
        assert!(calendar.rolling.is_none());
    }

    #[test]
    fn every_day_stands_in_one_bar() {
        let daily: Vec<f64> =
            (0..200).map(|day| f64::from(day * 7 % 31) / 1_000.0 - 0.012).collect();
        let found = histogram(&daily).unwrap();
        assert_eq!(found.days.iter().sum::<u32>(), 200);
        assert!(found.days.len() <= BARS_MAX, "{found:?}");
        assert!(found.from <= -0.012 && found.days[0] > 0);
        assert_eq!(histogram(&[]), None);
        assert_eq!(histogram(&[0.0, 0.0]).unwrap().days, [2]);
        assert_eq!(histogram(&[-1.0, 90.0]).unwrap().days.iter().sum::<u32>(), 2);
    }

    #[test]
    fn the_moving_span_grows_with_the_run() {
        let days = |count: u32| {
            let first = date("2025-01-06");
            let dates: Vec<_> = first.iter_days().take(count as usize).collect();
            let daily: Vec<f64> = (0..count).map(|day| f64::from(day % 3) / 100.0).collect();
            rolling(&daily, &dates).map(|rolling| (rolling.span, rolling.sharpe.len()))
        };
        assert_eq!(days(7), None);
        assert_eq!(days(8), Some((5, 4)));
        assert_eq!(days(30), Some((20, 11)));
        assert_eq!(days(245), Some((63, 183)));
    }
}
