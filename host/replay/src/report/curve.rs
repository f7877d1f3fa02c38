//! The account over time, thinned out where a run is long.

use domain::Money;
use domain::time::NANOS_PER_MINUTE;
use serde::Serialize;

use crate::record::EquityRow;
use crate::report::columns::{Amounts, Exact, counts, differences};

/// The account over time: one point for each span of minutes, with the values at the span's end.
#[derive(Debug, Serialize)]
pub(super) struct Curve {
    /// Minutes with trades in one point.
    step: usize,
    /// Minutes with trades in the whole run.
    minutes: usize,
    /// Ends of the spans in minutes since 1970, each as the difference from the one before.
    end: Vec<i64>,
    price: Amounts,
    equity: Amounts,
    quantity: Vec<Exact>,
    /// The deepest fall below the highest equity so far inside the span, so that thinning out hides
    /// none. Negative or zero.
    drawdown: Amounts,
    /// The same in millionths of that highest equity.
    drawdown_ppm: Vec<i64>,
}

/// A fall below the highest equity so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fall {
    units: i64,
    ppm: i64,
}

impl Curve {
    /// The curve of a run, with at most `points_max` points or one for each day.
    pub(super) fn new(cash_start: Money, rows: &[EquityRow], points_max: usize) -> Self {
        let days: Vec<&[EquityRow]> =
            rows.chunk_by(|one, next| day_of(one) == day_of(next)).collect();
        let step = step_for(&days, points_max);
        let falls = falls(cash_start, rows);
        let mut from = 0;
        let (mut points, mut deepest) = (Vec::<&EquityRow>::new(), Vec::<&Fall>::new());
        for span in days.iter().flat_map(|day| day.chunks(step)) {
            points.extend(span.last());
            deepest.extend(falls[from..from + span.len()].iter().max_by_key(|fall| fall.units));
            from += span.len();
        }
        let minute = |row: &&EquityRow| (row.ts_event.nanos() / NANOS_PER_MINUTE).cast_signed();
        Self {
            step,
            minutes: rows.len(),
            end: differences(points.iter().map(minute)),
            price: Amounts::all(points.iter().map(|row| row.price.units())),
            equity: Amounts::all(points.iter().map(|row| row.equity.units())),
            quantity: counts(points.iter().map(|row| row.quantity)),
            drawdown: Amounts::all(deepest.iter().map(|fall| -fall.units)),
            drawdown_ppm: deepest.iter().map(|fall| -fall.ppm).collect(),
        }
    }
}

/// The Japanese day of a minute. A row stands at its minute's end, which is no other day.
fn day_of(row: &EquityRow) -> u64 {
    row.ts_event.jst_day()
}

/// Minutes in one point, so that there are at most `points_max` points. Spans end with their day,
/// so a point never mixes two days.
fn step_for(days: &[&[EquityRow]], points_max: usize) -> usize {
    let longest = days.iter().map(|day| day.len()).max().unwrap_or(1);
    let points = |step: usize| days.iter().map(|day| day.len().div_ceil(step)).sum::<usize>();
    (1..longest).find(|step| points(*step) <= points_max).unwrap_or(longest)
}

/// How far each row is below the highest equity so far.
fn falls(cash_start: Money, rows: &[EquityRow]) -> Vec<Fall> {
    let mut peak = cash_start;
    let fall = |row: &EquityRow| {
        peak = peak.max(row.equity);
        let units = (peak - row.equity).units();
        let ppm = i128::from(units) * 1_000_000 / i128::from(peak.units().max(1));
        Fall { units, ppm: i64::try_from(ppm).unwrap_or(i64::MAX) }
    };
    rows.iter().map(fall).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{JstDate, Price, TsNanos};
    use serde_json::json;

    fn row(day: u32, minute: u64, yen: i64) -> EquityRow {
        let date = JstDate::from_ymd_opt(2025, 1, day).unwrap();
        EquityRow {
            ts_event: TsNanos::from_jst(date, minute * NANOS_PER_MINUTE).unwrap(),
            price: Price::from_yen(yen),
            quantity: 1,
            cash: Money::ZERO,
            equity: Money::from_yen(yen),
        }
    }

    #[test]
    fn short_runs_keep_every_minute() {
        let rows = [row(6, 541, 110), row(6, 542, 99), row(7, 541, 120)];
        let curve = json!(Curve::new(Money::from_yen(100), &rows, 3));
        assert_eq!(curve["step"], 1);
        assert_eq!(curve["equity"], json!({ "decimals": 0, "values": [110, 99, 120] }));
        assert_eq!(curve["drawdown"]["values"], json!([0, -11, 0]));
        assert_eq!(curve["drawdown_ppm"], json!([0, -100_000, 0]));
        assert_eq!(curve["end"][1], 1);
    }

    #[test]
    fn thinning_keeps_days_apart_and_the_deepest_fall() {
        let rows: Vec<EquityRow> = [6, 7]
            .into_iter()
            .flat_map(|day| [(541, 100), (542, 60), (543, 90)].map(|(at, yen)| row(day, at, yen)))
            .collect();
        let curve = json!(Curve::new(Money::from_yen(100), &rows, 4));
        assert_eq!(curve["step"], 2);
        assert_eq!(curve["minutes"], 6);
        assert_eq!(curve["equity"]["values"], json!([60, 90, 60, 90]));
        assert_eq!(curve["drawdown"]["values"], json!([-40, -10, -40, -10]));
        let by_day = json!(Curve::new(Money::from_yen(100), &rows, 1));
        assert_eq!(by_day["drawdown"]["values"], json!([-40, -40]));
    }

    #[test]
    fn an_account_without_money_has_no_ratio_to_fail_on() {
        let rows = [row(6, 541, 0), row(6, 542, -5)];
        assert_eq!(falls(Money::ZERO, &rows)[1].units, 50_000);
        assert!(json!(Curve::new(Money::ZERO, &[], 10))["end"].as_array().unwrap().is_empty());
    }
}
