//! The account over time, thinned out where a run is long. The tables are read twice rather than
//! kept.

use std::path::Path;

use domain::time::NANOS_PER_MINUTE;
use domain::{Money, TsNanos};
use serde::Serialize;

use super::columns::{Amounts, Exact, differences};
use crate::output::ReadError;
use crate::output::read::TableReader;
use crate::output::tables::{Equity, Marks};

/// The account over time: one point for each span of minutes, with the values at the span's end.
#[derive(Debug, Serialize)]
pub(super) struct Curve {
    /// Minutes with trades in one point.
    step: usize,
    /// Minutes with trades in the whole run.
    minutes: usize,
    /// Ends of the spans in minutes since 1970, each as the difference from the one before.
    end: Vec<i64>,
    equity: Amounts,
    /// The deepest drawdown from the highest equity so far inside the span, so that thinning out
    /// hides none. Negative or zero.
    drawdown: Amounts,
    /// The same in millionths of that highest equity.
    drawdown_ppm: Vec<i64>,
    /// Ends of the spans in nanoseconds.
    #[serde(skip)]
    ends: Vec<u64>,
}

/// An instrument at the points of a curve.
#[derive(Debug, Serialize)]
pub(super) struct InstrumentCurve {
    id: String,
    /// The last price; none before the first trade.
    price: Amounts,
    /// Shares held.
    quantity: Vec<Exact>,
}

/// How far the equity is below its highest value so far, in 1/10,000 yen and in millionths of that
/// value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Drawdown {
    units: i64,
    ppm: i64,
}

/// Reads a column of timestamps and one of amounts, row by row.
fn each_minute(folder: &Path, mut take: impl FnMut(TsNanos, Money)) -> Result<(), ReadError> {
    let mut rows = TableReader::open(folder, &Equity::TABLE)?;
    while let Some(row) = rows.next_row()? {
        let timestamp = TsNanos::from_nanos(row.timestamp("ts_event_ns")?);
        take(timestamp, Money::from_units(row.units("equity")?));
    }
    Ok(())
}

impl Curve {
    /// Minutes in one point, so that the curve of a run's folder has at most `points_max` points or
    /// one for each day.
    pub(super) fn step_of(folder: &Path, points_max: usize) -> Result<usize, ReadError> {
        let mut days: Vec<(u64, usize)> = Vec::new();
        each_minute(folder, |timestamp, _| match days.last_mut() {
            Some((day, minutes)) if *day == timestamp.jst_day() => *minutes += 1,
            _ => days.push((timestamp.jst_day(), 1)),
        })?;
        let lengths: Vec<usize> = days.iter().map(|(_, minutes)| *minutes).collect();
        Ok(step_for(&lengths, points_max))
    }

    /// The curve of a run's folder, with one point for each `step` minutes of a day.
    pub(super) fn read(folder: &Path, cash_start: Money, step: usize) -> Result<Self, ReadError> {
        let mut minutes = 0;
        let mut points = Points::new(cash_start, step);
        each_minute(folder, |timestamp, equity| {
            minutes += 1;
            points.take(timestamp, equity);
        })?;
        points.end_span();
        let minute = |end: &u64| (end / NANOS_PER_MINUTE).cast_signed();
        Ok(Self {
            step: points.step,
            minutes,
            end: differences(points.ends.iter().map(minute)),
            equity: Amounts::all(points.equity),
            drawdown: Amounts::all(points.drawdowns.iter().map(|one| -one.units)),
            drawdown_ppm: points.drawdowns.iter().map(|one| -one.ppm).collect(),
            ends: points.ends,
        })
    }

    /// The instruments at the points of this curve, in the order given.
    pub(super) fn instruments(
        &self,
        folder: &Path,
        ids: &[String],
    ) -> Result<Vec<InstrumentCurve>, ReadError> {
        let points = self.ends.len();
        let mut prices = vec![Vec::with_capacity(points); ids.len()];
        let mut quantities = vec![Vec::with_capacity(points); ids.len()];
        let mut last = vec![(None, 0_i128); ids.len()];
        let mut rows = TableReader::open(folder, &Marks::TABLE)?;
        let mut end_points_before = |timestamp: u64, last: &[(Option<i64>, i128)]| {
            for (index, (price, quantity)) in last.iter().enumerate() {
                let done = prices[index].len();
                let ended = self.ends[done..].partition_point(|end| *end < timestamp);
                prices[index].extend(std::iter::repeat_n(*price, ended));
                quantities[index].extend(std::iter::repeat_n(Exact(*quantity), ended));
            }
        };
        while let Some(row) = rows.next_row()? {
            end_points_before(row.timestamp("ts_event_ns")?, &last);
            if let Some(index) = ids.iter().position(|id| id == row.text("instrument_id")) {
                last[index] = (Some(row.units("price")?), row.whole("quantity")?);
            }
        }
        end_points_before(u64::MAX, &last);
        let curve = |((id, price), quantity): ((&String, Vec<Option<i64>>), Vec<Exact>)| {
            InstrumentCurve { id: id.clone(), price: Amounts::new(&price), quantity }
        };
        Ok(ids.iter().zip(prices).zip(quantities).map(curve).collect())
    }
}

/// Points while the minutes come.
struct Points {
    step: usize,
    peak: Money,
    /// The present span: its day, its minutes so far, its last values, its deepest drawdown.
    day: u64,
    minutes: usize,
    last: (u64, i64),
    deepest: Drawdown,
    ends: Vec<u64>,
    equity: Vec<i64>,
    drawdowns: Vec<Drawdown>,
}

impl Points {
    const fn new(cash_start: Money, step: usize) -> Self {
        Self {
            step,
            peak: cash_start,
            day: 0,
            minutes: 0,
            last: (0, 0),
            deepest: Drawdown { units: 0, ppm: 0 },
            ends: Vec::new(),
            equity: Vec::new(),
            drawdowns: Vec::new(),
        }
    }

    fn take(&mut self, timestamp: TsNanos, equity: Money) {
        // Spans end with their day, so a point never mixes two days.
        if self.minutes == self.step || timestamp.jst_day() != self.day {
            self.end_span();
            self.day = timestamp.jst_day();
        }
        let drawdown = self.drawdown_at(equity);
        if self.minutes == 0 || drawdown.units > self.deepest.units {
            self.deepest = drawdown;
        }
        self.minutes += 1;
        self.last = (timestamp.nanos(), equity.units());
    }

    /// How far a value is below the highest so far.
    fn drawdown_at(&mut self, equity: Money) -> Drawdown {
        self.peak = self.peak.max(equity);
        let units = (self.peak - equity).units();
        let ppm = i128::from(units) * 1_000_000 / i128::from(self.peak.units().max(1));
        Drawdown { units, ppm: i64::try_from(ppm).unwrap_or(i64::MAX) }
    }

    fn end_span(&mut self) {
        if self.minutes > 0 {
            self.ends.push(self.last.0);
            self.equity.push(self.last.1);
            self.drawdowns.push(self.deepest);
        }
        self.minutes = 0;
        self.deepest = Drawdown::default();
    }
}

/// Minutes in one point, so that there are at most `points_max` points.
fn step_for(days: &[usize], points_max: usize) -> usize {
    let longest = days.iter().copied().max().unwrap_or(1);
    let points = |step: usize| days.iter().map(|day| day.div_ceil(step)).sum::<usize>();
    (1..longest).find(|step| points(*step) <= points_max).unwrap_or(longest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::JstDate;
    use serde_json::{Value, json};

    /// A folder with an equity table of (day of January 2025, minute, yen), and marks of the same.
    fn folder(rows: &[(u32, u64, i64)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut equity = String::from("ts_event_ns,cash,position_value,equity\n");
        let mut marks = String::from("ts_event_ns,instrument_id,price,quantity\n");
        for (day, minute, yen) in rows {
            let date = JstDate::from_ymd_opt(2025, 1, *day).unwrap();
            let end = TsNanos::from_jst(date, minute * NANOS_PER_MINUTE).unwrap().nanos();
            equity.push_str(&format!("{end},0,{yen},{yen}\n"));
            if minute % 2 == 0 {
                marks.push_str(&format!("{end},7203.TSE,{yen},{day}\n"));
            }
        }
        std::fs::write(folder.path().join("equity.csv"), equity).unwrap();
        std::fs::write(folder.path().join("marks.csv"), marks).unwrap();
        folder
    }

    fn curve(start: i64, rows: &[(u32, u64, i64)], points_max: usize) -> Value {
        let folder = folder(rows);
        let step = Curve::step_of(folder.path(), points_max).unwrap();
        json!(Curve::read(folder.path(), Money::from_yen(start), step).unwrap())
    }

    #[test]
    fn short_runs_keep_every_minute() {
        let curve = curve(100, &[(6, 541, 110), (6, 542, 99), (7, 541, 120)], 3);
        assert_eq!(curve["step"], 1);
        assert_eq!(curve["equity"], json!({ "decimals": 0, "values": [110, 99, 120] }));
        assert_eq!(curve["drawdown"]["values"], json!([0, -11, 0]));
        assert_eq!(curve["drawdown_ppm"], json!([0, -100_000, 0]));
        assert_eq!(curve["end"][1], 1);
    }

    #[test]
    fn thinning_keeps_days_apart_and_the_deepest_drawdown() {
        let rows: Vec<_> = [6, 7]
            .into_iter()
            .flat_map(|day| [(541, 100), (542, 60), (543, 90)].map(|(at, yen)| (day, at, yen)))
            .collect();
        let two = curve(100, &rows, 4);
        assert_eq!((&two["step"], &two["minutes"]), (&json!(2), &json!(6)));
        assert_eq!(two["equity"]["values"], json!([60, 90, 60, 90]));
        assert_eq!(two["drawdown"]["values"], json!([-40, -10, -40, -10]));
        assert_eq!(curve(100, &rows, 1)["drawdown"]["values"], json!([-40, -40]));
    }

    #[test]
    fn an_account_without_money_has_no_ratio_to_fail_on() {
        let broke = curve(0, &[(6, 541, 0), (6, 542, -5)], 9);
        assert_eq!(broke["drawdown"]["values"], json!([0, -5]));
        assert!(curve(0, &[], 10)["end"].as_array().unwrap().is_empty());
    }

    #[test]
    fn instruments_keep_their_last_price() {
        let rows = [(6, 541, 100), (6, 542, 60), (6, 543, 90), (7, 541, 80), (7, 542, 70)];
        let folder = folder(&rows);
        let curve = Curve::read(folder.path(), Money::from_yen(100), 1).unwrap();
        let ids = ["6758.TSE".to_owned(), "7203.TSE".to_owned()];
        let both = json!(curve.instruments(folder.path(), &ids).unwrap());
        assert_eq!(both[0]["price"]["values"], json!([null, null, null, null, null]));
        assert_eq!(both[1]["price"]["values"], json!([null, 60, 60, 60, 70]));
        assert_eq!(both[1]["quantity"], json!([0, 6, 6, 6, 7]));
    }
}
